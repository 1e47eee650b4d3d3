!> Kind of the pair arithmetic, which is what the two programs differ in. Coordinates, velocities, forces and energies are
!> `real64` in both.
module pair_precision
  use base_kinds, only: real32, real64
  implicit none
  private
  public :: real_pair, precision_name

#ifdef CHROMAMD_DOUBLE
  integer, parameter :: real_pair = real64
  character(len=*), parameter :: precision_name = "double"
#else
  integer, parameter :: real_pair = real32
  character(len=*), parameter :: precision_name = "mixed"
#endif

end module pair_precision
