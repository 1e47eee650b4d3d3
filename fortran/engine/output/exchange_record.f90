!> What happened to replicas: attempts and acceptances of each pair of parameters, round trips of each replica between the
!> ends of a dimension, and the file of a replica that says which parameter it had from which step on.
!>
!> A line of that file is a step and the parameter from there on: at the start of the run and after every attempt, as in
!> GENESIS.
module exchange_record
  use base_kinds, only: int64
  use base_error, only: error_t, exit_corrupt_file, exit_resources, fail
  use base_posix_file, only: rename_file, sync_file
  use base_text, only: decimal_text, read_line, to_text
  use exchange_settings, only: exchange_settings_t
  implicit none
  private
  public :: exchange_record_t

  integer, parameter :: nowhere = 0, at_lower_end = 1, at_upper_end = 2

  type :: exchange_record_t
    type(exchange_settings_t), private :: exchange
    !> Of a parameter and its upper neighbour, (parameters, dimensions).
    integer(int64), allocatable, private :: tried(:, :), accepted(:, :)
    !> Of a replica: how often it came back to the lower end from the upper one, and where it was last; likewise.
    integer(int64), allocatable, private :: trips(:, :), last_end(:, :)
    integer, private :: unit = -1
    character(len=:), allocatable, private :: path
  contains
    procedure :: init
    procedure :: count_pair
    procedure :: visit
    procedure :: numbers
    procedure :: take_numbers
    procedure :: open => open_record
    procedure :: write => write_line
    procedure :: keep
    procedure :: close => close_record
    procedure :: n_lines
    procedure :: line
  end type exchange_record_t

contains

  subroutine init(self, exchange)
    class(exchange_record_t), intent(out) :: self
    type(exchange_settings_t), intent(in) :: exchange
    integer :: n, m
    self%exchange = exchange
    n = exchange%n_replicas()
    m = size(exchange%dimension)
    allocate (self%tried(n, m), self%accepted(n, m), self%trips(n, m), self%last_end(n, m), source=0_int64)
  end subroutine init

  !> A parameter and its upper neighbour in a dimension were tried.
  subroutine count_pair(self, lower, d, accepted)
    class(exchange_record_t), intent(inout) :: self
    integer, intent(in) :: lower, d
    logical, intent(in) :: accepted
    self%tried(lower, d) = self%tried(lower, d) + 1
    if (accepted) self%accepted(lower, d) = self%accepted(lower, d) + 1
  end subroutine count_pair

  !> Replicas have these parameters now.
  subroutine visit(self, parameter)
    class(exchange_record_t), intent(inout) :: self
    integer, intent(in) :: parameter(:)
    integer :: replica, d, place
    do d = 1, size(self%exchange%dimension)
      do replica = 1, size(parameter)
        place = self%exchange%place(parameter(replica), d)
        associate (last => self%last_end(replica, d))
          if (place == 1 .and. last == at_upper_end) self%trips(replica, d) = self%trips(replica, d) + 1
          if (place == 1) last = at_lower_end
          if (place == self%exchange%dimension(d)%n .and. last /= nowhere) last = at_upper_end
        end associate
      end do
    end do
  end subroutine visit

  !> All counts, for a checkpoint.
  pure function numbers(self)
    class(exchange_record_t), intent(in) :: self
    integer(int64), allocatable :: numbers(:)
    integer :: n
    n = size(self%tried)
    numbers = [reshape(self%tried, [n]), reshape(self%accepted, [n]), reshape(self%trips, [n]), reshape(self%last_end, [n])]
  end function numbers

  !> Go on from what `numbers` gave; anything else is left alone.
  pure subroutine take_numbers(self, numbers)
    class(exchange_record_t), intent(inout) :: self
    integer(int64), intent(in) :: numbers(:)
    integer :: n
    n = size(self%tried)
    if (size(numbers) /= 4*n) return
    self%tried = reshape(numbers(:n), shape(self%tried))
    self%accepted = reshape(numbers(n + 1:2*n), shape(self%tried))
    self%trips = reshape(numbers(2*n + 1:3*n), shape(self%tried))
    self%last_end = reshape(numbers(3*n + 1:), shape(self%tried))
  end subroutine take_numbers

  !> Start the file of a replica, which has a parameter at a step; or go on with the file of a run that has a checkpoint of
  !> that step, if `continues`. Of the root; an empty path means no file.
  subroutine open_record(self, path, step, parameter, continues, error)
    class(exchange_record_t), intent(inout) :: self
    character(len=*), intent(in) :: path
    integer(int64), intent(in) :: step
    integer, intent(in) :: parameter
    logical, intent(in) :: continues
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: text
    integer(int64) :: found_step
    integer :: unit, status, last
    if (path == "") return
    self%path = path
    open (newunit=self%unit, file=path//".part", status="replace", action="write", iostat=status)
    last = parameter
    if (status == 0 .and. continues) then
      last = 0
      open (newunit=unit, file=path, status="old", action="read", iostat=status)
      if (status /= 0) then
        call fail(error, exit_corrupt_file, path//": this file of the run that goes on is missing; put it back, or remove "// &
                  "the checkpoint to start anew")
        return
      end if
      do
        call read_line(unit, text, status)
        if (status /= 0) exit
        read (text, *, iostat=status) found_step, last
        if (status /= 0 .or. found_step > step) exit
        write (self%unit, "(a)") text
      end do
      close (unit)
      status = 0
      if (last == 0) call fail(error, exit_corrupt_file, path//": holds no parameter of a replica; remove the checkpoint "// &
                               "to start anew")
      if (allocated(error)) return
    end if
    if (status == 0 .and. .not. continues) call self%write(step, parameter, error)
    if (allocated(error)) return
    if (status == 0) close (self%unit, iostat=status)
    if (status /= 0) then
      call fail(error, exit_resources, path//".part: cannot be written; check folder, permission and free space")
      return
    end if
    call rename_file(path//".part", path, error)
    if (allocated(error)) return
    open (newunit=self%unit, file=path, status="old", position="append", action="write", iostat=status)
    if (status /= 0) call fail(error, exit_resources, path//": cannot be written; check folder and permission")
  end subroutine open_record

  !> From this step on the replica has this parameter.
  subroutine write_line(self, step, parameter, error)
    class(exchange_record_t), intent(in) :: self
    integer(int64), intent(in) :: step
    integer, intent(in) :: parameter
    type(error_t), allocatable, intent(out) :: error
    integer :: status
    if (self%unit == -1) return
    write (self%unit, "(i12,1x,i8)", iostat=status) step, parameter
    if (status == 0) flush (self%unit, iostat=status)
    if (status /= 0) call fail(error, exit_resources, self%path//": writing failed; check free space")
  end subroutine write_line

  !> Bring what was written to the disk.
  subroutine keep(self, error)
    class(exchange_record_t), intent(in) :: self
    type(error_t), allocatable, intent(out) :: error
    if (self%unit == -1) return
    flush (self%unit)
    call sync_file(self%path, error)
  end subroutine keep

  subroutine close_record(self)
    class(exchange_record_t), intent(in) :: self
    if (self%unit /= -1) close (self%unit)
  end subroutine close_record

  !> Lines of the report: one for each pair, and one for each replica.
  pure integer function n_lines(self)
    class(exchange_record_t), intent(in) :: self
    n_lines = 2*size(self%tried)
  end function n_lines

  !> A line of the report; empty where there is nothing to say.
  function line(self, number) result(text)
    class(exchange_record_t), intent(in) :: self
    integer, intent(in) :: number
    character(len=:), allocatable :: text
    integer :: n, d, k
    n = size(self%tried, 1)
    d = mod(number - 1, size(self%tried))/n + 1
    k = mod(number - 1, n) + 1
    text = ""
    if (number > size(self%tried)) then
      text = "replica "//to_text(k)//": "//to_text(self%trips(k, d))//" round trips through dimension "//to_text(d)
    else if (self%exchange%upper_neighbour(k, d) > 0) then
      text = "exchange of parameters "//to_text(k)//" and "//to_text(self%exchange%upper_neighbour(k, d))//": "// &
             to_text(self%accepted(k, d))//" of "//to_text(self%tried(k, d))//" accepted"
      if (self%tried(k, d) > 0) text = text//", "// &
        decimal_text(real(self%accepted(k, d), kind(1.0d0))/real(self%tried(k, d), kind(1.0d0)), 4)
    end if
  end function line

end module exchange_record
