!> The mark of a checkpoint: a small text file that names a set of restart files which is whole, and the run that it
!> belongs to. It is written after all of the set is on the disk, and takes the place of the earlier mark in one step: at
!> any moment the mark that is there names a whole set.
!>
!> The restart files of a set have its number in their names: of pattern `run_().rst` those of set 7 are `run_0.7.rst`,
!> `run_1.7.rst`, ..., and the mark is `run_whole.txt`.
module checkpoint_mark
  use base_kinds, only: int64, real64
  use base_checksum, only: checksum_t
  use base_error, only: error_t, exit_corrupt_file, exit_resources, fail
  use base_posix_file, only: check_size, remove_file, rename_file, sync_file, sync_folder_of
  use base_text, only: of_all_ranks, read_line, to_text
  use control, only: line_length
  implicit none
  private
  public :: checkpoint_mark_t, set_pattern, mark_path, earlier_mark_path, lock_pattern, name_of_all, title

  character(len=*), parameter :: title = "chromamd checkpoint 1"

  type :: checkpoint_mark_t
    !> Number of the set, step, and step at which the run started.
    integer(int64) :: set = 0, step = 0, first_step = 0
    integer :: n_ranks = 0
    !> Sums over the ranks of the checksums of the set, and of the restart files that the run started from (0 = unknown).
    integer(int64) :: set_checksum = 0, start_checksum = 0
    integer(int64) :: topology_checksum = 0
    !> Bytes of the log; frames and bytes of the root's trajectory.
    integer(int64) :: log_bytes = 0, frames = 0, frame_bytes = 0
    !> State of a minimiser, or what a boost of dynamics has learnt.
    real(real64), allocatable :: state(:)
    !> Counts of exchanges between replicas (module exchange_record), none where there are none.
    integer(int64), allocatable :: exchanges(:)
    !> Settings that decide the trajectory.
    character(len=line_length), allocatable :: settings(:)
  contains
    procedure :: write => write_mark
    procedure :: write_file
    procedure :: read => read_mark
    procedure :: read_file
    procedure, private :: numbers
    procedure, private :: take_numbers
    procedure, private :: checksum
  end type checkpoint_mark_t

  character(len=20), parameter :: number_name(10) = [character(len=20) :: "set", "step", "first_step", "ranks", &
    "set_checksum", "start_checksum", "topology_checksum", "log_bytes", "frames", "frame_bytes"]

contains

  !> Pattern of the restart files of a set, with () for the rank.
  pure function set_pattern(pattern, set) result(name)
    character(len=*), intent(in) :: pattern
    integer(int64), intent(in) :: set
    character(len=:), allocatable :: name
    integer :: at
    at = index(pattern, "()")
    name = pattern(:at + 1)//"."//to_text(set)//pattern(at + 2:)
  end function set_pattern

  !> Pattern of the files that the ranks of a run hold while it is at work.
  pure function lock_pattern(pattern) result(name)
    character(len=*), intent(in) :: pattern
    character(len=:), allocatable :: name
    name = pattern(:index(pattern, "()") + 1)//".lock"
  end function lock_pattern

  !> Name of the mark.
  pure function mark_path(pattern) result(path)
    character(len=*), intent(in) :: pattern
    character(len=:), allocatable :: path
    path = name_of_all(pattern, "whole")
  end function mark_path

  !> Where replicas keep the mark of their set before, until all of them have the new one.
  pure function earlier_mark_path(pattern) result(path)
    character(len=*), intent(in) :: pattern
    character(len=:), allocatable :: path
    path = name_of_all(pattern, "earlier")
  end function earlier_mark_path

  !> Name of a text file about the files of all ranks: `run_WORD.txt` of pattern `run_().rst`, also where these lie in
  !> folders of their own.
  pure function name_of_all(pattern, word) result(path)
    character(len=*), intent(in) :: pattern, word
    character(len=:), allocatable :: path, bare
    integer :: at, dot
    bare = of_all_ranks(pattern, "()")
    at = index(bare, "()")
    dot = index(bare, ".", back=.true.)
    if (dot <= at + 1) dot = len(bare) + 1
    path = bare(:at - 1)//word//bare(at + 2:dot - 1)//".txt"
  end function name_of_all

  pure function numbers(self)
    class(checkpoint_mark_t), intent(in) :: self
    integer(int64) :: numbers(size(number_name))
    numbers = [self%set, self%step, self%first_step, int(self%n_ranks, int64), self%set_checksum, self%start_checksum, &
               self%topology_checksum, self%log_bytes, self%frames, self%frame_bytes]
  end function numbers

  subroutine take_numbers(self, numbers)
    class(checkpoint_mark_t), intent(inout) :: self
    integer(int64), intent(in) :: numbers(size(number_name))
    self%set = numbers(1)
    self%step = numbers(2)
    self%first_step = numbers(3)
    self%n_ranks = int(numbers(4))
    self%set_checksum = numbers(5)
    self%start_checksum = numbers(6)
    self%topology_checksum = numbers(7)
    self%log_bytes = numbers(8)
    self%frames = numbers(9)
    self%frame_bytes = numbers(10)
  end subroutine take_numbers

  !> Of all that the mark says.
  integer(int64) function checksum(self)
    class(checkpoint_mark_t), intent(in) :: self
    type(checksum_t) :: check
    integer :: k
    call check%add(self%numbers())
    if (size(self%state) > 0) call check%add(transfer(self%state, [0_int64]))
    if (size(self%exchanges) > 0) call check%add(self%exchanges)
    do k = 1, size(self%settings)
      call check%add(transfer(self%settings(k), [0_int64]))
    end do
    checksum = check%value
  end function checksum

  !> Put the mark in the place of an earlier one of that pattern.
  subroutine write_mark(self, pattern, error)
    class(checkpoint_mark_t), intent(in) :: self
    character(len=*), intent(in) :: pattern
    type(error_t), allocatable, intent(out) :: error
    call self%write_file(mark_path(pattern), error)
  end subroutine write_mark

  !> Put the mark in a file, in one step.
  subroutine write_file(self, path, error)
    class(checkpoint_mark_t), intent(in) :: self
    character(len=*), intent(in) :: path
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: part
    integer(int64) :: number(size(number_name)), bytes
    integer :: unit, status, closed, k
    part = path//".part"
    number = self%numbers()
    ! A stream, which knows its position.
    open (newunit=unit, file=part, access="stream", form="formatted", status="replace", action="write", iostat=status)
    closed = 0
    if (status == 0) then
      write (unit, "(a)", iostat=status) title
      do k = 1, size(number_name)
        if (status == 0) write (unit, "(a,1x,i0)", iostat=status) trim(number_name(k)), number(k)
      end do
      if (status == 0) write (unit, "(a,1x,i0)", iostat=status) "state", size(self%state)
      do k = 1, size(self%state)
        if (status == 0) write (unit, "(i0)", iostat=status) transfer(self%state(k), 0_int64)
      end do
      if (size(self%exchanges) > 0 .and. status == 0) &
        write (unit, "(a,1x,i0)", iostat=status) "exchanges", size(self%exchanges)
      do k = 1, size(self%exchanges)
        if (status == 0) write (unit, "(i0)", iostat=status) self%exchanges(k)
      end do
      if (status == 0) write (unit, "(a,1x,i0)", iostat=status) "settings", size(self%settings)
      do k = 1, size(self%settings)
        if (status == 0) write (unit, "(a)", iostat=status) trim(self%settings(k))
      end do
      if (status == 0) write (unit, "(a,1x,i0)", iostat=status) "checksum", self%checksum()
      inquire (unit=unit, pos=bytes)
      bytes = bytes - 1
      close (unit, iostat=closed)
    end if
    if (status /= 0 .or. closed /= 0) then
      call fail(error, exit_resources, part//": cannot be written; check folder, permission and free space")
    else
      call check_size(part, bytes, error)
    end if
    if (.not. allocated(error)) call sync_file(part, error)
    if (.not. allocated(error)) then
      ! The names of the set first: the mark must never name files that are not there.
      call sync_folder_of(part)
      call rename_file(part, path, error)
    else
      call remove_file(part)
    end if
    call sync_folder_of(part)
  end subroutine write_file

  !> Read the mark of a pattern; `found` is false where there is none. Fails with a corrupt file when it is damaged.
  subroutine read_mark(self, pattern, found, error)
    class(checkpoint_mark_t), intent(out) :: self
    character(len=*), intent(in) :: pattern
    logical, intent(out) :: found
    type(error_t), allocatable, intent(out) :: error
    inquire (file=mark_path(pattern), exist=found)
    if (found) call self%read_file(mark_path(pattern), error)
  end subroutine read_mark

  !> Read the mark in a file. Fails with a corrupt file when it is damaged.
  subroutine read_file(self, path, error)
    class(checkpoint_mark_t), intent(out) :: self
    character(len=*), intent(in) :: path
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: line
    integer(int64) :: number(size(number_name)), stored, bits
    integer :: unit, status, k, n
    open (newunit=unit, file=path, status="old", action="read", iostat=status)
    if (status == 0) then
      call read_line(unit, line, status)
      if (status == 0 .and. line /= title) status = 1
      do k = 1, size(number_name)
        call next_number(trim(number_name(k)), number(k))
      end do
      call next_number("state", bits)
      n = int(max(0_int64, min(bits, 64_int64)))
      allocate (self%state(n))
      do k = 1, n
        call next_number("", bits)
        self%state(k) = transfer(bits, 0.0_real64)
      end do
      ! Where replicas exchange.
      if (status == 0) call read_line(unit, line, status)
      n = 0
      if (status == 0 .and. index(line, "exchanges ") == 1) then
        call take_number("exchanges", bits)
        n = int(max(0_int64, min(bits, 10000000_int64)))
      end if
      allocate (self%exchanges(n))
      do k = 1, n
        call next_number("", self%exchanges(k))
      end do
      if (n > 0 .and. status == 0) call read_line(unit, line, status)
      call take_number("settings", bits)
      n = int(max(0_int64, min(bits, 100000_int64)))
      allocate (self%settings(n))
      do k = 1, n
        if (status == 0) call read_line(unit, line, status)
        if (status == 0) self%settings(k) = line
      end do
      call next_number("checksum", stored)
      close (unit)
    end if
    if (status == 0) then
      call self%take_numbers(number)
      if (self%checksum() /= stored) status = 1
    end if
    if (status /= 0) call fail(error, exit_corrupt_file, path//": this mark of a checkpoint is damaged; "// &
                               "remove it to start the run anew")
  contains
    !> The number on the next line, after a name.
    subroutine next_number(name, value)
      character(len=*), intent(in) :: name
      integer(int64), intent(out) :: value
      if (status == 0) call read_line(unit, line, status)
      call take_number(name, value)
    end subroutine next_number
    !> The same of the line at hand.
    subroutine take_number(name, value)
      character(len=*), intent(in) :: name
      integer(int64), intent(out) :: value
      value = 0
      if (status /= 0) return
      if (index(line, name) /= 1) then
        status = 1
      else
        read (line(len(name) + 1:), *, iostat=status) value
      end if
    end subroutine take_number
  end subroutine read_file

end module checkpoint_mark
