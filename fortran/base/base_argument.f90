!> Words of the command line.
module base_argument
  implicit none
  private
  public :: argument

contains

  !> Command-line argument n, empty if there is none.
  function argument(n) result(value)
    integer, intent(in) :: n
    character(len=:), allocatable :: value
    integer :: length
    call get_command_argument(n, length=length)
    allocate (character(len=length) :: value)
    call get_command_argument(n, value)
  end function argument

end module base_argument
