!> Which parameter a replica had when: what module exchange_record writes, read again.
module parameter_history
  use base_kinds, only: int64
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, fail
  use base_text, only: read_line, to_text, with_replica
  implicit none
  private
  public :: parameter_history_t, read_histories

  type :: parameter_history_t
    !> Ascending; the parameter holds behind the step.
    integer(int64), allocatable, private :: step(:)
    integer, allocatable, private :: parameter(:)
  contains
    procedure :: parameter_at
  end type parameter_history_t

contains

  !> The histories of replicas 1, 2, ... as far as their files exist; `name`: with {}.
  subroutine read_histories(name, histories, error)
    character(len=*), intent(in) :: name
    type(parameter_history_t), allocatable, intent(out) :: histories(:)
    type(error_t), allocatable, intent(out) :: error
    logical :: there
    integer :: n, k
    n = 0
    do
      inquire (file=with_replica(name, n + 1), exist=there)
      if (.not. there) exit
      n = n + 1
    end do
    allocate (histories(n))
    if (n < 2) call fail(error, exit_bad_input, with_replica(name, n + 1)//": this record of a replica does not exist; check "// &
                         "the name")
    do k = 1, n
      if (.not. allocated(error)) call read_history(histories(k), with_replica(name, k), n, error)
    end do
  end subroutine read_histories

  subroutine read_history(self, path, n, error)
    type(parameter_history_t), intent(out) :: self
    character(len=*), intent(in) :: path
    integer, intent(in) :: n
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: line
    integer(int64) :: step
    integer :: unit, status, number, parameter, pass
    do pass = 1, 2
      open (newunit=unit, file=path, status="old", action="read", iostat=status)
      number = 0
      do while (status == 0)
        call read_line(unit, line, status)
        if (status /= 0) exit
        number = number + 1
        read (line, *, iostat=status) step, parameter
        if (status == 0 .and. (parameter < 1 .or. parameter > n)) status = 1
        if (status /= 0) then
          call fail(error, exit_corrupt_file, path//", line "//to_text(number)//": is not a step and a parameter of 1 to "// &
                    to_text(n)//"; give the records of one run")
          return
        end if
        if (pass == 1) cycle
        self%step(number) = step
        self%parameter(number) = parameter
      end do
      close (unit)
      if (pass == 1) allocate (self%step(number), self%parameter(number))
    end do
    if (number == 0) call fail(error, exit_corrupt_file, path//": is empty; give the records of one run")
  end subroutine read_history

  !> With which parameter the replica came to a step; an exchange at the end of that step comes after its frame.
  pure integer function parameter_at(self, step)
    class(parameter_history_t), intent(in) :: self
    integer(int64), intent(in) :: step
    integer :: low, high, middle
    low = 1
    high = size(self%step)
    do while (low < high)
      middle = (low + high + 1)/2
      if (self%step(middle) < step) then
        low = middle
      else
        high = middle - 1
      end if
    end do
    parameter_at = self%parameter(low)
  end function parameter_at

end module parameter_history
