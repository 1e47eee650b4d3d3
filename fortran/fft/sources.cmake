# In the order of use: layouts, local work, exchanges, schemes, plans.
set(CHROMAFFT_SOURCES)
foreach(module fft_layout.f90 fft_block_copy.F90 fft_lines.f90 fft_exchange.f90 fft_scheme.f90 fft_step.f90
        fft_user_layouts.f90 distributed_fft.f90 fft_plan.f90)
  list(APPEND CHROMAFFT_SOURCES ${CMAKE_CURRENT_LIST_DIR}/${module})
endforeach()
# Transforms of lines know no Fortran and no precision of the engine: compiled once, linked to all that have the sources above.
if(NOT TARGET chromafft_lines)
  add_library(chromafft_lines STATIC)
  foreach(kernel line_kernel line_kernel_baseline line_kernel_avx2 line_kernel_avx512)
    target_sources(chromafft_lines PRIVATE ${CMAKE_CURRENT_LIST_DIR}/${kernel}.c)
  endforeach()
endif()
