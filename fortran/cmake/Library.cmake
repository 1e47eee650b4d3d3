# chroma_library(NAME [SOURCE ...]): a static library of Fortran modules, which lie in modules/NAME of the build tree and
# come along to whatever links it. Static, not object libraries: only of those does CMake learn which modules to wait for.
function(chroma_library name)
  set(modules ${CMAKE_BINARY_DIR}/modules/${name})
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PRIVATE chromabuild_flags)
  target_compile_options(${name} PRIVATE
    $<$<AND:$<COMPILE_LANGUAGE:Fortran>,$<NOT:$<CONFIG:Debug>>>:-O3 -fno-math-errno -fno-trapping-math>)
  set_target_properties(${name} PROPERTIES Fortran_MODULE_DIRECTORY ${modules})
  target_include_directories(${name} PUBLIC ${modules})
endfunction()
