!> What Fortran lacks for safe files: atomic rename.
module base_posix_file
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char
  use base_error, only: error_t, exit_resources, fail
  implicit none
  private
  public :: rename_file

  interface
    function c_rename(old, new) bind(c, name="rename") result(status)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: old(*), new(*)
      integer(c_int) :: status
    end function c_rename
  end interface

contains

  !> Give `old` the name `new`, replacing a file of that name in one step.
  subroutine rename_file(old, new, error)
    character(len=*), intent(in) :: old, new
    type(error_t), allocatable, intent(out) :: error
    if (c_rename(old//c_null_char, new//c_null_char) /= 0) &
      call fail(error, exit_resources, new//": cannot be put in place (renaming "//old//" failed)")
  end subroutine rename_file

end module base_posix_file
