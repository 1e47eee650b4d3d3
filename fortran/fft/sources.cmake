# In the order of use: kernels, layouts, local work, exchanges, schemes, plans.
set(CHROMAFFT_SOURCES)
foreach(module line_kernel.c line_kernel_baseline.c line_kernel_avx2.c line_kernel_avx512.c
        fft_layout.f90 fft_block_copy.F90 fft_lines.f90 fft_exchange.f90 fft_scheme.f90 fft_step.f90
        fft_user_layouts.f90 distributed_fft.f90 fft_plan.f90)
  list(APPEND CHROMAFFT_SOURCES ${CMAKE_CURRENT_LIST_DIR}/${module})
endforeach()
