# Flags shared by kernels and engine. No -ffast-math: results must not depend on how a loop was vectorised.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
add_library(chromabuild_flags INTERFACE)
if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
  target_compile_options(chromabuild_flags INTERFACE
    $<$<COMPILE_LANGUAGE:Fortran>:-std=f2018 -Wall -Wextra -fimplicit-none>
    # gfortran 12 warns about every allocatable that it cannot prove allocated and about
    # comparisons of reals that are meant exactly; both are noise here.
    $<$<COMPILE_LANGUAGE:Fortran>:-Wno-maybe-uninitialized -Wno-compare-reals>
    $<$<AND:$<COMPILE_LANGUAGE:Fortran>,$<CONFIG:Debug>>:-O1 -fcheck=all,no-array-temps -fbacktrace -ffpe-trap=invalid,zero,overflow>)
endif()
if(CHROMABUILD_WERROR)
  target_compile_options(chromabuild_flags INTERFACE $<$<COMPILE_LANGUAGE:Fortran>:-Werror>)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/InstructionSets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/Library.cmake)
