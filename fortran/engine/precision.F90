!> Kinds of the numbers in the engine. Coordinates, velocities, forces and energies are always `real64`; the pair
!> arithmetic is `real_pair`, which is what the two executables differ in.
module precision
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  implicit none
  private
  public :: int32, int64, real32, real64, real_pair, precision_name

#ifdef CHROMAMD_DOUBLE
  integer, parameter :: real_pair = real64
  character(len=*), parameter :: precision_name = "double"
#else
  integer, parameter :: real_pair = real32
  character(len=*), parameter :: precision_name = "mixed"
#endif

end module precision
