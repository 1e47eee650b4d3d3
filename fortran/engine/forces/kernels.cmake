# Kernels: the loops of loop_variants.cmake, compiled once for each instruction set and chosen at run time, so that one
# program serves every processor of its architecture.
set(CHROMAMD_GENERATED ${CMAKE_CURRENT_BINARY_DIR}/generated)

# Sums may be reordered, no infinity or NaN arises (the loops are written so). Estimates of 1/sqrt are no faster than the
# exact instructions.
set(CHROMAMD_KERNEL_FLAGS $<$<NOT:$<CONFIG:Debug>>:-O3> -fopenmp-simd -fno-math-errno -fno-trapping-math -fno-signed-zeros -fassociative-math
  -freciprocal-math -ffinite-math-only -ffree-line-length-none
  # Called from many threads at once: no local array may be static.
  -frecursive
  # The loops share one argument list; not every one uses all of it.
  -Wno-unused-dummy-argument)

# The deterministic mode: every operation as it is written, so that neither vectors nor their remainders round differently.
# (gfortran takes -fno-signed-zeros with -fno-trapping-math for leave to reorder sums.)
set(CHROMAMD_EXACT_KERNEL_FLAGS ${CHROMAMD_KERNEL_FLAGS})
list(REMOVE_ITEM CHROMAMD_EXACT_KERNEL_FLAGS -fassociative-math -freciprocal-math -fno-signed-zeros)
list(APPEND CHROMAMD_EXACT_KERNEL_FLAGS -fno-associative-math -ffp-contract=off)

# Flags of the sets, and pairs handled side by side in the two precisions.
set(CHROMAMD_FLAGS_baseline)
set(CHROMAMD_FLAGS_avx2 -mavx2 -mfma)
set(CHROMAMD_FLAGS_avx512 -march=skylake-avx512 -mprefer-vector-width=512)
set(CHROMAMD_LANES_baseline 8)
set(CHROMAMD_LANES_avx2 8)
set(CHROMAMD_LANES_avx512 16)
set(CHROMAMD_DOUBLE_LANES 8)

# Sets for which the mixed programs prune in C.
set(pruning_sets avx2 avx512)
set_source_files_properties(forces/pairs/prune_clusters.c PROPERTIES COMPILE_OPTIONS "-O2")

# In C, with the instructions that are to be fused written so; an optimisation that unrolls more spills more registers.
set_source_files_properties(forces/pairs/vector_loops.c PROPERTIES COMPILE_OPTIONS "-O2;-ffp-contract=off")

# Sources of all programs: names of the properties, and the choice among the sets.
function(chromamd_generate_choice)
  list(TRANSFORM pair_laws PREPEND law_ OUTPUT_VARIABLE law_names)
  enumerate_values(LAWS ${law_names})
  enumerate_values(PARAMETERS ${parameters_values})
  enumerate_values(ENERGIES ${energy_values})
  enumerate_values(ENTRIES ${entries_values})
  configure_file(forces/pairs/loop_properties.f90.in ${CHROMAMD_GENERATED}/loop_properties.f90 @ONLY)
  list(JOIN CHROMA_COMPILED_SETS ", " SETS)
  foreach(set IN LISTS CHROMA_COMPILED_SETS)
    foreach(room pair material)
      string(TOUPPER ${room} ROOM)
      string(APPEND USE_KERNELS "  use ${room}_kernels_${set}, only: ${room}_kernels_${set}_t\n")
      string(APPEND ALLOCATE_${ROOM}_KERNELS "    case (${set})\n      allocate (${room}_kernels_${set}_t :: kernels)\n")
    endforeach()
  endforeach()
  configure_file(forces/kernel_dispatch.f90.in ${CHROMAMD_GENERATED}/kernel_dispatch.f90 @ONLY)
endfunction()

# Loops of PME, for which one instruction set does.
function(chromamd_generate_splines)
  foreach(order IN LISTS pme_orders)
    string(APPEND ORDER_CASES
      "    case (${order})\n      self%spread => spread_slab_${order}\n      self%gather => gather_run_${order}\n")
    string(APPEND ORDER_LOOPS "#define ORDER ${order}\n#define NAME(x) x/**/_${order}\n#include \"pme_loops.inc\"\n"
      "#undef ORDER\n#undef NAME\n\n")
  endforeach()
  configure_file(forces/mesh/pme_splines.F90.in ${CHROMAMD_GENERATED}/pme_splines.F90 @ONLY)
  # The loops share one argument list; the order is an argument of some only.
  set_source_files_properties(${CHROMAMD_GENERATED}/pme_splines.F90 PROPERTIES COMPILE_OPTIONS -Wno-unused-dummy-argument)
endfunction()

# The kernels of an instruction set: templates with its name and loops put in, a file for each law so that they compile side
# by side. Programs differ in definitions alone.
function(chromamd_generate_kernels INSTRUCTION_SET)
  macro(generate template name)
    set(source ${CHROMAMD_GENERATED}/${name}_${INSTRUCTION_SET}.F90)
    configure_file(forces/${template}.F90.in ${source} @ONLY)
    list(APPEND ${ARGN} ${source})
  endmacro()

  generate(pairs/pair_loop pair_loop sources)
  set(PREFIX)
  generate(pairs/exclusions exclusions sources)
  set(PREFIX exact_)
  generate(pairs/exclusions exact_exclusions exact_sources)
  foreach(LAW IN LISTS pair_laws)
    string(TOUPPER ${LAW} LAW_MACRO)
    expand_loops(pair_loop.inc LOOPS LOOP_TABLE ${pair_loop_properties})
    generate(pairs/pair_loops pair_loops_${LAW} sources)
    string(APPEND USE_LOOPS "  use pair_loops_${LAW}_${INSTRUCTION_SET}, only: take_${LAW} => take_loops\n")
    string(APPEND TAKE_LOOPS "    case (law_${LAW})\n      call take_${LAW}(self%loop)\n")
  endforeach()
  foreach(LAW IN LISTS exact_pair_laws)
    string(TOUPPER ${LAW} LAW_MACRO)
    expand_loops(exact_loop.inc LOOPS LOOP_TABLE ${exact_loop_properties})
    generate(pairs/exact_loops exact_loops_${LAW} exact_sources)
    string(APPEND USE_LOOPS "  use exact_loops_${LAW}_${INSTRUCTION_SET}, only: take_exact_${LAW} => take_loops\n")
    string(APPEND TAKE_EXACT_LOOPS "    case (law_${LAW})\n      call take_exact_${LAW}(self%exact_loop)\n")
  endforeach()
  generate(pairs/pair_kernels_set pair_kernels sources)
  set(all_loops)
  foreach(law_values IN LISTS material_laws)
    set(energies_values ${${law_values}_energies})
    expand_loops(material_rows.inc LOOPS table law energies)
    string(APPEND all_loops "${LOOPS}")
  endforeach()
  set(LOOPS "${all_loops}")
  generate(material/material_kernels_set material_kernels sources)
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS
    "${CHROMAMD_KERNEL_FLAGS};${CHROMAMD_FLAGS_${INSTRUCTION_SET}}")
  set_source_files_properties(${exact_sources} PROPERTIES COMPILE_OPTIONS
    "${CHROMAMD_EXACT_KERNEL_FLAGS};${CHROMAMD_FLAGS_${INSTRUCTION_SET}}")
  set(CHROMAMD_KERNELS_${INSTRUCTION_SET} ${sources} ${exact_sources} PARENT_SCOPE)
endfunction()

# Library PROGRAM_kernels_SET.
function(chromamd_add_kernels program set)
  set(library ${program}_kernels_${set})
  set(modules ${CMAKE_BINARY_DIR}/modules/${program}_kernels)
  set(lanes ${CHROMAMD_LANES_${set}})
  if("CHROMAMD_DOUBLE" IN_LIST ${program}_definitions)
    set(lanes ${CHROMAMD_DOUBLE_LANES})
  endif()
  add_library(${library} STATIC ${CHROMAMD_KERNELS_${set}})
  target_compile_definitions(${library} PRIVATE LANES=${lanes} ${${program}_definitions})
  if(set IN_LIST pruning_sets AND NOT "CHROMAMD_DOUBLE" IN_LIST ${program}_definitions)
    target_sources(${library} PRIVATE forces/pairs/prune_clusters.c)
    target_compile_definitions(${library} PRIVATE PRUNE_CLUSTERS=chroma_prune_clusters_${set})
  endif()
  if(set STREQUAL avx2 AND NOT "CHROMAMD_DOUBLE" IN_LIST ${program}_definitions)
    target_sources(${library} PRIVATE forces/pairs/vector_loops.f90 forces/pairs/vector_loops.c)
    target_compile_definitions(${library} PRIVATE VECTOR_LOOPS)
  endif()
  target_link_libraries(${library} PRIVATE chromabuild_flags ${program}_parameters)
  set_target_properties(${library} PROPERTIES Fortran_MODULE_DIRECTORY ${modules})
  target_include_directories(${library} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/forces/pairs
    ${CMAKE_CURRENT_SOURCE_DIR}/forces/material PUBLIC ${modules})
endfunction()

chromamd_generate_choice()
chromamd_generate_splines()
foreach(set IN LISTS CHROMA_COMPILED_SETS)
  chromamd_generate_kernels(${set})
endforeach()
