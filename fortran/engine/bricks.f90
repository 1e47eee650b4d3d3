!> The bricks of the box (docs/formats.md section 4): the list in bricks.txt and the binary files it names.
module bricks
  use precision, only: int32, int64, real64
  use error, only: error_t, exit_bad_input, exit_corrupt_file, fail
  use text, only: read_line, to_text
  implicit none
  private
  public :: brick_list_t

  character(len=8), parameter :: magic = "CBBRICK1"

  type :: brick_list_t
    character(len=:), allocatable, private :: path
    real(real64) :: box(3) = 0.0_real64
    integer(int64) :: n_atoms = 0
    integer :: n_bricks = 0
    !> Corners of every brick.
    real(real64), allocatable :: lower(:, :), upper(:, :)
    character(len=256), allocatable, private :: file(:)
    integer(int64), allocatable, private :: atoms_in(:)
  contains
    procedure :: read => read_list
    procedure :: read_brick
  end type brick_list_t

contains

  !> Read bricks.txt.
  subroutine read_list(self, path, error)
    class(brick_list_t), intent(out) :: self
    character(len=*), intent(in) :: path
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: line
    character(len=24) :: word
    integer :: unit, status, number, grid(3), version, b

    self%path = path
    open (newunit=unit, file=path, status="old", action="read", iostat=status)
    if (status /= 0) then
      call fail(error, exit_bad_input, path//": this list of bricks cannot be opened; check the name")
      return
    end if
    do number = 1, 4
      call read_line(unit, line, status)
      if (status == 0) then
        select case (number)
        case (1)
          read (line, *, iostat=status) word, version
          if (status == 0 .and. (word /= "chromabuild-bricks" .or. version /= 1)) status = 1
        case (2)
          read (line, *, iostat=status) word, self%box
          if (status == 0 .and. (word /= "box" .or. .not. all(self%box > 0.0_real64))) status = 1
        case (3)
          read (line, *, iostat=status) word, grid
          if (status == 0 .and. (word /= "grid" .or. any(grid < 1))) status = 1
        case (4)
          read (line, *, iostat=status) word, self%n_atoms
          if (status == 0 .and. word /= "atoms") status = 1
        end select
      end if
      if (status /= 0) exit
    end do
    if (status == 0) then
      self%n_bricks = product(grid)
      allocate (self%file(self%n_bricks), self%atoms_in(self%n_bricks), self%lower(3, self%n_bricks), &
                self%upper(3, self%n_bricks))
      do b = 1, self%n_bricks
        call read_line(unit, line, status)
        if (status == 0) read (line, *, iostat=status) self%file(b), self%atoms_in(b), self%lower(:, b), &
          self%upper(:, b)
        number = 4 + b
        if (status /= 0) exit
      end do
    end if
    close (unit)
    if (status /= 0) then
      call fail(error, exit_corrupt_file, path//", line "//to_text(number)// &
                ": not a line of a brick list; make it again")
    else if (sum(self%atoms_in) /= self%n_atoms) then
      call fail(error, exit_corrupt_file, path//": its bricks hold "//to_text(sum(self%atoms_in))// &
                " atoms, its header says "// &
                to_text(self%n_atoms))
    end if
  end subroutine read_list

  !> Read brick b: ascending global ids and positions (angstrom).
  subroutine read_brick(self, b, id, position, error)
    class(brick_list_t), intent(in) :: self
    integer, intent(in) :: b
    integer(int64), allocatable, intent(out) :: id(:)
    real(real64), allocatable, intent(out) :: position(:, :)
    type(error_t), allocatable, intent(out) :: error
    integer(int32), allocatable :: thousandth(:, :)
    character(len=:), allocatable :: path
    character(len=8) :: word
    integer(int64) :: n, bytes
    real(real64) :: corners(9)
    integer :: unit, status

    path = self%path(:index(self%path, "/", back=.true.))//trim(self%file(b))
    open (newunit=unit, file=path, access="stream", form="unformatted", status="old", action="read", &
          iostat=status)
    if (status /= 0) then
      call fail(error, exit_bad_input, path//": this brick cannot be opened; it is named in "//self%path)
      return
    end if
    inquire (unit=unit, size=bytes)
    read (unit, iostat=status) word, n, corners
    if (status /= 0 .or. word /= magic) then
      call fail(error, exit_corrupt_file, path//": not a brick file, or cut short; make it again")
    else if (n /= self%atoms_in(b) .or. bytes /= 88 + 20*n) then
      call fail(error, exit_corrupt_file, path//": holds "//to_text(n)//" atoms in "//to_text(bytes)//" bytes, "// &
                self%path// &
                " says "//to_text(self%atoms_in(b))//" atoms; make it again")
    else if (any(abs(corners(:3) - self%box) > 1.0e-3_real64)) then
      call fail(error, exit_corrupt_file, path//": belongs to another box than "//self%path)
    end if
    if (allocated(error)) then
      allocate (id(0), position(3, 0))
    else
      allocate (id(n), thousandth(3, n), position(3, n))
      read (unit, iostat=status) id, thousandth
      position = 0.001_real64*thousandth
      if (status /= 0) then
        call fail(error, exit_corrupt_file, path//": cannot be read to its end")
      else if (n > 0) then
        if (any(id(2:) <= id(:n - 1)) .or. id(1) < 0 .or. id(n) >= self%n_atoms) &
          call fail(error, exit_corrupt_file, path//": its atom ids are not ascending within the system")
      end if
    end if
    close (unit)
  end subroutine read_brick

end module bricks
