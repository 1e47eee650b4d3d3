# Instruction sets that the hot loops are compiled for; the best that a processor has is chosen when a program runs.
set(CHROMAMD_INSTRUCTION_SETS "baseline;avx2;avx512" CACHE STRING
  "Instruction sets to compile the kernels for: of baseline, avx2, avx512 and native, the best that this processor has")

# CHROMA_COMPILED_SETS: those wanted that the compiler makes, in rising order. A debug build checks bounds, which are the
# same in all: it has the baseline alone.
function(chroma_find_instruction_sets)
  set(known baseline avx2 avx512)
  set(native baseline)
  set(wanted ${CHROMAMD_INSTRUCTION_SETS})
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" OR NOT CMAKE_Fortran_COMPILER_ID STREQUAL "GNU"
     OR CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(wanted baseline)
  elseif("native" IN_LIST wanted AND NOT CMAKE_CROSSCOMPILING)
    try_run(number is_compiled ${CMAKE_CURRENT_BINARY_DIR}/probe
      ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../base/base_cpu_features.c COMPILE_DEFINITIONS -DCHROMA_PROBE)
    if(number EQUAL 3)
      set(native avx512)
    elseif(number EQUAL 2)
      set(native avx2)
    endif()
  endif()
  list(TRANSFORM wanted REPLACE "^native$" ${native})
  foreach(set IN LISTS wanted)
    if(NOT set IN_LIST known)
      list(JOIN known ", " names)
      message(FATAL_ERROR "CHROMAMD_INSTRUCTION_SETS names \"${set}\": give a list of ${names} and native")
    endif()
  endforeach()
  foreach(set IN LISTS known)
    if(set IN_LIST wanted)
      list(APPEND compiled ${set})
    endif()
  endforeach()
  set(CHROMA_COMPILED_SETS ${compiled} PARENT_SCOPE)
endfunction()
chroma_find_instruction_sets()
