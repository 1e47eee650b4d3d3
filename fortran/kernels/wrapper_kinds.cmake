# f2py writes the names of kinds (int32, real64) into its wrappers of assumed-shape arguments, but not the module that
# they come from. Replace them by the kinds' numbers of bytes, which are what all compilers in use call them.
#   cmake -DWRAPPERS=FILE -P wrapper_kinds.cmake
file(TOUCH ${WRAPPERS})
file(READ ${WRAPPERS} text)
foreach(kind "int8=1" "int16=2" "int32=4" "int64=8" "real32=4" "real64=8")
  string(REPLACE "=" ";" pair ${kind})
  list(GET pair 0 name)
  list(GET pair 1 bytes)
  string(REPLACE "(kind=${name})" "(kind=${bytes})" text "${text}")
endforeach()
file(WRITE ${WRAPPERS} "${text}")
