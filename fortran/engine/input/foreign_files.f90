!> Control files that name the files of CHARMM, AMBER or GROMACS, as GENESIS' do. `chromamd import` makes topology and bricks
!> of them and writes down where these are, in a note beside the control file: lines `from: key = value`, what it was made
!> of, and `to: key = file`, what takes their place (`-`: nothing).
module foreign_files
  use base_error, only: error_t
  use base_text, only: read_line
  use control, only: control_t
  implicit none
  private
  public :: take_imported, set_name

  !> Behind the name of the control file.
  character(len=*), parameter :: note_suffix = ".import"
  integer, parameter :: line_length = 4200

contains

  !> Put what the note says into the control file's values, if it names files of other programs; `scratch`: name for the
  !> restart files that such a run starts from, empty if it names none; `exact_state`: file of module exact_state, or empty.
  subroutine take_imported(control, path, scratch, exact_state, error)
    type(control_t), intent(inout) :: control
    character(len=*), intent(in) :: path
    character(len=:), allocatable, intent(out) :: scratch, exact_state
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: line, key, value
    character(len=line_length), allocatable :: source(:), wanted(:)
    integer :: unit, status, equals, k
    logical :: fits

    scratch = ""
    exact_state = ""
    if (size(control%imported) == 0) return
    wanted = control%imports()
    allocate (source(0))
    open (newunit=unit, file=path//note_suffix, status="old", action="read", iostat=status)
    if (status == 0) then
      do
        call read_line(unit, line, status)
        if (status /= 0) exit
        if (index(line, "from: ") == 1) source = [character(len=line_length) :: source, line(7:)]
      end do
      rewind (unit)
    end if
    fits = size(source) == size(wanted) .and. size(source) > 0
    do k = 1, merge(size(wanted), 0, fits)
      if (.not. any(same(source, wanted(k)))) fits = .false.
    end do
    if (.not. fits) then
      call control%refuse_imports("no import of this file of another program, and of those beside it, is at hand: run "// &
                                  "`chromamd import "//path//"` first, or start the run with the command chromamd", error)
      return
    end if
    do
      call read_line(unit, line, status)
      if (status /= 0) exit
      if (index(line, "to: ") /= 1) cycle
      equals = index(line, " = ")
      key = line(5:equals - 1)
      value = trim(line(equals + 3:))
      if (key == "scratch") then
        scratch = value
      else if (key == "exact_state") then
        exact_state = value
      else
        if (value == "-") value = ""
        call control%take("INPUT", key, value)
      end if
    end do
    close (unit)
  end subroutine take_imported

  !> Whether two lines are the same but for blanks.
  elemental logical function same(a, b)
    character(len=*), intent(in) :: a, b
    character(len=len(a)) :: dense_a
    character(len=len(b)) :: dense_b
    integer :: i, n
    dense_a = ""
    dense_b = ""
    n = 0
    do i = 1, len_trim(a)
      if (a(i:i) == " ") cycle
      n = n + 1
      dense_a(n:n) = a(i:i)
    end do
    n = 0
    do i = 1, len_trim(b)
      if (b(i:i) == " ") cycle
      n = n + 1
      dense_b(n:n) = b(i:i)
    end do
    same = dense_a == dense_b
  end function same

  !> The name of a set of restart files for one of GENESIS', which is a file for all: `a_().rst` for `a.rst`.
  pure function set_name(name) result(set)
    character(len=*), intent(in) :: name
    character(len=:), allocatable :: set
    integer :: dot
    set = name
    if (name == "" .or. index(name, "()") > 0) return
    dot = index(name, ".", back=.true.)
    if (dot <= index(name, "/", back=.true.) + 1) dot = len(name) + 1
    set = name(:dot - 1)//"_()"//name(dot:)
  end function set_name

end module foreign_files
