# The forces of the engine as a library. Include after project() and cmake/CompilerFlags.cmake; then
#   chromamd_add_forces(NAME [DOUBLE])
# makes the static library NAME, in mixed precision or, with DOUBLE, in real64 throughout: kinds, errors, constants,
# pair lists, pair kernels, FFT and PME. Link it (it carries its module folder) and do not list those sources again.
# The pair kernels are compiled once per instruction set and chosen at run time, so that one executable serves every
# processor of its architecture.
set(CHROMAMD_FORCES_DIR ${CMAKE_CURRENT_LIST_DIR})
find_package(MPI REQUIRED COMPONENTS Fortran)
find_package(OpenMP REQUIRED COMPONENTS Fortran)
include(${CHROMAMD_FORCES_DIR}/../fft/sources.cmake)

# Flags of the pair kernels alone: sums may be reordered, no infinity or NaN arises (the loops are written so).
# Estimates of 1/sqrt instead of the exact instructions were measured to be no faster.
set(CHROMAMD_KERNEL_FLAGS -O3 -fopenmp-simd -fno-math-errno -fno-trapping-math -fno-signed-zeros -fassociative-math
  -freciprocal-math -ffinite-math-only -ffree-line-length-none
  # Called from many threads at once: no local array may be static.
  -frecursive
  # The variants of the pair loop share one argument list; not every variant uses all of it.
  -Wno-unused-dummy-argument)

# The deterministic mode: every operation as it is written, so that neither vectors nor their remainders round differently.
# (gfortran takes -fno-signed-zeros with -fno-trapping-math for leave to reorder sums.)
set(CHROMAMD_EXACT_KERNEL_FLAGS ${CHROMAMD_KERNEL_FLAGS})
list(REMOVE_ITEM CHROMAMD_EXACT_KERNEL_FLAGS -fassociative-math -freciprocal-math -fno-signed-zeros)
list(APPEND CHROMAMD_EXACT_KERNEL_FLAGS -fno-associative-math -ffp-contract=off)

# One library of the kernels `kind`_kernel.F90.in (nonbonded, table, exact or material) for an instruction set.
function(chromamd_add_kernel target kind INSTRUCTION_SET lanes lanes_double double)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}_kernels/${kind}_kernel_${INSTRUCTION_SET}.F90)
  configure_file(${CHROMAMD_FORCES_DIR}/${kind}_kernel.F90.in ${source} @ONLY)
  set(library ${target}_${kind}_${INSTRUCTION_SET})
  add_library(${library} STATIC ${source})
  if(double)
    target_compile_definitions(${library} PRIVATE CHROMAMD_DOUBLE LANES=${lanes_double})
  else()
    target_compile_definitions(${library} PRIVATE LANES=${lanes})
  endif()
  if(kind STREQUAL "exact")
    target_compile_options(${library} PRIVATE ${ARGN} ${CHROMAMD_EXACT_KERNEL_FLAGS})
  else()
    target_compile_options(${library} PRIVATE ${ARGN} ${CHROMAMD_KERNEL_FLAGS})
  endif()
  target_link_libraries(${library} PRIVATE chromabuild_flags ${target}_base)
  set_target_properties(${library} PROPERTIES Fortran_MODULE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${target}_modules)
  target_include_directories(${library} PRIVATE ${CHROMAMD_FORCES_DIR} ${CMAKE_CURRENT_BINARY_DIR}/${target}_modules)
endfunction()

function(chromamd_add_forces name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "DOUBLE" "" "")
  set(modules ${CMAKE_CURRENT_BINARY_DIR}/${name}_modules)
  set(definitions)
  if(arg_DOUBLE)
    list(APPEND definitions CHROMAMD_DOUBLE)
  endif()

  add_library(${name}_base STATIC)
  target_sources(${name}_base PRIVATE ${CHROMAMD_FORCES_DIR}/precision.F90 ${CHROMAMD_FORCES_DIR}/error.f90
    ${CHROMAMD_FORCES_DIR}/constants.f90 ${CHROMAMD_FORCES_DIR}/fixed_point.f90
    ${CHROMAMD_FORCES_DIR}/pair_parameters.f90)
  set(kernels)
  foreach(kind nonbonded table exact material)
    chromamd_add_kernel(${name} ${kind} baseline 8 8 "${arg_DOUBLE}")
    list(APPEND kernels ${name}_${kind}_baseline)
  endforeach()
  # A debug build checks bounds, which are the same in the others: it is spared a minute and a half of compiling them.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND CMAKE_Fortran_COMPILER_ID STREQUAL "GNU"
     AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    foreach(kind nonbonded table exact material)
      chromamd_add_kernel(${name} ${kind} avx2 8 8 "${arg_DOUBLE}" -mavx2 -mfma)
      chromamd_add_kernel(${name} ${kind} avx512 16 8 "${arg_DOUBLE}" -march=skylake-avx512
        -mprefer-vector-width=512)
      list(APPEND kernels ${name}_${kind}_avx2 ${name}_${kind}_avx512)
    endforeach()
    list(APPEND definitions CHROMAMD_X86_KERNELS)
  endif()

  add_library(${name} STATIC)
  target_sources(${name} PRIVATE
    ${CHROMAMD_FORCES_DIR}/cpu_features.c
    ${CHROMAMD_FORCES_DIR}/kernel_dispatch.F90
    ${CHROMAMD_FORCES_DIR}/lennard_jones.f90
    ${CHROMAMD_FORCES_DIR}/pair_table.f90
    ${CHROMAMD_FORCES_DIR}/nonbonded_options.f90
    ${CHROMAMD_FORCES_DIR}/dispersion_exclusions.f90 ${CHROMAMD_FORCES_DIR}/coarse_place.f90
    ${CHROMAMD_FORCES_DIR}/verlet_buffer.f90
    ${CHROMAMD_FORCES_DIR}/background.f90 ${CHROMAMD_FORCES_DIR}/bounding_box.f90
    ${CHROMAMD_FORCES_DIR}/pair_ownership.f90
    ${CHROMAMD_FORCES_DIR}/pair_block.f90
    ${CHROMAMD_FORCES_DIR}/pair_list.f90
    ${CHROMAMD_FORCES_DIR}/force_sums.f90 ${CHROMAMD_FORCES_DIR}/turns.f90
    ${CHROMAMD_FORCES_DIR}/nonbonded.F90
    ${CHROMAMD_FORCES_DIR}/row_block.f90
    ${CHROMAMD_FORCES_DIR}/row_list.f90
    ${CHROMAMD_FORCES_DIR}/hermite_table.f90
    ${CHROMAMD_FORCES_DIR}/material_dispatch.F90
    ${CHROMAMD_FORCES_DIR}/material.F90
    ${CHROMAMD_FORCES_DIR}/pme.F90
    ${CHROMAFFT_SOURCES}
    ${CHROMAMD_FORCES_DIR}/../fft/brick_exchange.f90)
  # Its calls are macros, one long line each.
  set_source_files_properties(${CHROMAMD_FORCES_DIR}/kernel_dispatch.F90
    ${CHROMAMD_FORCES_DIR}/material_dispatch.F90 PROPERTIES COMPILE_OPTIONS -ffree-line-length-none)
  foreach(target ${name} ${name}_base)
    target_compile_definitions(${target} PRIVATE ${definitions})
    target_compile_options(${target} PRIVATE
      $<$<AND:$<COMPILE_LANGUAGE:Fortran>,$<NOT:$<CONFIG:Debug>>>:-O3 -fno-math-errno -fno-trapping-math>)
    set_target_properties(${target} PROPERTIES Fortran_MODULE_DIRECTORY ${modules})
    target_include_directories(${target} PUBLIC ${modules})
    target_link_libraries(${target} PRIVATE chromabuild_flags OpenMP::OpenMP_Fortran)
  endforeach()
  # Static, not object libraries: only of those does CMake learn which modules to wait for.
  target_link_libraries(${name} PRIVATE ${name}_base ${kernels} chromafft_lines
    PUBLIC MPI::MPI_Fortran OpenMP::OpenMP_Fortran m)
endfunction()
