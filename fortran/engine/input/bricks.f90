!> The bricks of the box (docs/reference/file-formats.md): the list in bricks.txt and the binary files it names.
module bricks
  use, intrinsic :: iso_fortran_env, only: int8
  use base_kinds, only: int32, int64, real64
  use base_box_shape, only: box_shape_t, shape_of
  use base_crc32, only: crc32_of
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, fail
  use base_text, only: read_line, to_text
  implicit none
  private
  public :: brick_list_t

  character(len=8), parameter :: magic = "CBBRICK2"
  !> Before the runs: magic, atoms, runs, box, lower and upper corner. A run: first id, atoms, origin.
  !> Lists of this version tell b_x, c_x and c_y of a box whose edges lean.
  integer, parameter :: leaning_version = 2
  integer(int64), parameter :: header_bytes = 8 + 2*8 + 9*8, run_bytes = 8 + 4 + 3*4

  type :: brick_list_t
    character(len=:), allocatable, private :: path
    !> Edges, angstrom, and how they lean.
    real(real64) :: box(3) = 0.0_real64
    type(box_shape_t) :: shape
    integer(int64) :: n_atoms = 0
    integer :: n_bricks = 0
    !> Corners of every brick, straight: (3, n_bricks), angstrom.
    real(real64), allocatable :: lower(:, :), upper(:, :)
    character(len=64), allocatable, private :: file(:)
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
    real(real64) :: tilt(3)

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
          if (status == 0 .and. (word /= "chromabuild-bricks" .or. version < 1 .or. version > leaning_version)) &
            status = 1
        case (2)
          tilt = 0.0_real64
          if (version < leaning_version) then
            read (line, *, iostat=status) word, self%box
          else
            read (line, *, iostat=status) word, self%box, tilt
          end if
          if (status == 0 .and. (word /= "box" .or. .not. all(self%box > 0.0_real64))) status = 1
          if (status == 0) self%shape = shape_of(tilt/[self%box(2), self%box(3), self%box(3)])
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

  !> Read brick b: global ids (n), ascending, and positions (3, n; angstrom).
  subroutine read_brick(self, b, id, position, error)
    class(brick_list_t), intent(in) :: self
    integer, intent(in) :: b
    integer(int64), allocatable, intent(out) :: id(:)
    real(real64), allocatable, intent(out) :: position(:, :)
    type(error_t), allocatable, intent(out) :: error
    integer(int8), allocatable :: content(:)
    character(len=:), allocatable :: path
    integer(int64) :: bytes, counts(2)
    real(real64) :: corners(9)
    integer :: unit, status

    path = self%path(:index(self%path, "/", back=.true.))//trim(self%file(b))
    allocate (id(0), position(3, 0))
    open (newunit=unit, file=path, access="stream", form="unformatted", status="old", action="read", &
          iostat=status)
    if (status /= 0) then
      call fail(error, exit_bad_input, path//": this brick cannot be opened; it is named in "//self%path)
      return
    end if
    inquire (unit=unit, size=bytes)
    allocate (content(bytes))
    read (unit, iostat=status) content
    close (unit)
    if (status /= 0 .or. bytes < header_bytes + 4) then
      call fail(error, exit_corrupt_file, path//": cut short or unreadable; make it again")
    else if (transfer(content(:8), magic) /= magic) then
      call fail(error, exit_corrupt_file, path//": not a brick file of this version; make it again")
    else if (crc32_of(content(:bytes - 4)) /= transfer(content(bytes - 3:), 0_int32)) then
      call fail(error, exit_corrupt_file, path//": its checksum does not match; it is damaged, make it again")
    end if
    if (allocated(error)) return
    counts = transfer(content(9:24), counts)
    corners = transfer(content(25:header_bytes), corners)
    if (counts(1) /= self%atoms_in(b) .or. bytes /= header_bytes + run_bytes*counts(2) + 6*counts(1) + 4) then
      call fail(error, exit_corrupt_file, path//": holds "//to_text(counts(1))//" atoms in "//to_text(bytes)// &
                " bytes, "//self%path//" says "//to_text(self%atoms_in(b))//" atoms; make it again")
    else if (any(abs(corners(:3) - self%box) > 1.0e-3_real64)) then
      call fail(error, exit_corrupt_file, path//": belongs to another box than "//self%path)
    else
      deallocate (id, position)
      allocate (id(counts(1)), position(3, counts(1)))
      call unpack_runs(content, counts(2), id, position, status)
      if (counts(1) > 0 .and. status == 0) then
        if (any(id(2:) <= id(:counts(1) - 1)) .or. id(1) < 0 .or. id(counts(1)) >= self%n_atoms) status = 1
      end if
      if (status /= 0) &
        call fail(error, exit_corrupt_file, path//": its atom ids are not ascending within the system")
    end if
  end subroutine read_brick

  !> Ids, and positions in angstrom, from the runs and offsets (0.001 angstrom) of a brick's bytes; `status` is not zero when
  !> runs and atoms disagree.
  pure subroutine unpack_runs(content, n_runs, id, position, status)
    integer(int8), intent(in) :: content(:)
    integer(int64), intent(in) :: n_runs
    integer(int64), intent(out) :: id(:)
    real(real64), intent(out) :: position(:, :)
    integer, intent(out) :: status
    integer(int64) :: run, place, i, n, first_id, at
    integer(int32) :: run_head(4), offset(3)
    integer :: axis

    status = 1
    n = 0
    at = header_bytes + run_bytes*n_runs
    do run = 1, n_runs
      place = header_bytes + run_bytes*(run - 1)
      first_id = transfer(content(place + 1:place + 8), first_id)
      run_head = transfer(content(place + 9:place + 24), run_head)
      if (run_head(1) < 1 .or. n + run_head(1) > size(id, kind=int64)) return
      do i = 0, run_head(1) - 1
        n = n + 1
        id(n) = first_id + i
        do axis = 1, 3
          offset(axis) = ior(iand(int(content(at + 1), int32), 255_int32), &
                             shiftl(iand(int(content(at + 2), int32), 255_int32), 8))
          at = at + 2
        end do
        position(:, n) = 0.001_real64*(run_head(2:4) + offset)
      end do
    end do
    if (n == size(id, kind=int64)) status = 0
  end subroutine unpack_runs

end module bricks
