!> Kinds of numbers, from the compiler's own list.
module base_kinds
  use, intrinsic :: iso_fortran_env, only: int16, int32, int64, real32, real64
  implicit none
  private
  public :: int16, int32, int64, real32, real64

end module base_kinds
