!> The error handed out by every procedure that can fail: `type(error_t), allocatable, intent(out) :: error`.
!> Not allocated means success.
module base_error
  implicit none
  private
  public :: error_t, fail, exit_bad_input, exit_corrupt_file, exit_resources, exit_interrupted, exit_busy, exit_unstable, &
            exit_not_converged

  !> Exit codes, the same as those of the Python package.
  integer, parameter :: exit_bad_input = 3, exit_corrupt_file = 5, exit_resources = 6, exit_interrupted = 7, exit_unstable = 8, &
                        exit_busy = 9, exit_not_converged = 10

  type :: error_t
    integer :: code = exit_bad_input
    !> One sentence: the file, the line or value, and the remedy.
    character(len=:), allocatable :: message
  end type error_t

contains

  !> Fill `error` with an exit code and a sentence.
  pure subroutine fail(error, code, message)
    type(error_t), allocatable, intent(out) :: error
    integer, intent(in) :: code
    character(len=*), intent(in) :: message
    allocate (error)
    error%code = code
    error%message = message
  end subroutine fail

end module base_error
