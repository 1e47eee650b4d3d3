!> Atoms from XYZ files: number of atoms, a comment, then element and coordinates of each.
module atom_file
  use base_kinds, only: real64
  use base_error, only: error_t, exit_bad_input, fail
  use base_text, only: read_line, to_text
  implicit none
  private
  public :: read_atoms, standard_mass

  !> Elements with their standard atomic weights (IUPAC 2021, abridged), in unified atomic mass units.
  character(len=2), parameter :: known(24) = [character(len=2) :: "H", "He", "Li", "Be", "B", "C", "N", "O", "F", "Ne", &
    "Na", "Mg", "Al", "Si", "P", "S", "Cl", "Ar", "K", "Ca", "Mn", "Zn", "Se", "Br"]
  real(real64), parameter :: weight(24) = [1.008_real64, 4.0026_real64, 6.94_real64, 9.0122_real64, 10.81_real64, &
    12.011_real64, 14.007_real64, 15.999_real64, 18.998_real64, 20.180_real64, 22.990_real64, 24.305_real64, 26.982_real64, &
    28.085_real64, 30.974_real64, 32.06_real64, 35.45_real64, 39.95_real64, 39.098_real64, 40.078_real64, 54.938_real64, &
    65.38_real64, 78.971_real64, 79.904_real64]

contains

  !> Elements (their symbols) and positions (3, n) as they stand in the file.
  subroutine read_atoms(path, element, position, error)
    character(len=*), intent(in) :: path
    character(len=2), allocatable, intent(out) :: element(:)
    real(real64), allocatable, intent(out) :: position(:, :)
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: line
    character(len=8) :: word
    integer :: unit, status, n, k, n_lines, last

    open (newunit=unit, file=path, status="old", action="read", iostat=status)
    if (status /= 0) then
      call fail(error, exit_bad_input, path//": this file of atoms cannot be opened; check the name")
      return
    end if
    call read_line(unit, line, status)
    n = 0
    if (status == 0) read (line, *, iostat=status) n
    if (status /= 0 .or. n < 1) then
      call fail(error, exit_bad_input, path//", line 1: the number of atoms is expected, found '"//line//"'")
      close (unit)
      return
    end if
    ! Lines are counted before memory is taken for as many atoms as the first of them claims; blank ones at the end say
    ! nothing.
    n_lines = 1
    last = 1
    do
      call read_line(unit, line, status)
      if (status /= 0) exit
      n_lines = n_lines + 1
      if (line /= "") last = n_lines
    end do
    if (last - 2 > n) then
      call fail(error, exit_bad_input, path//", line "//to_text(n + 3)//": there are more lines than the "//to_text(n)// &
                " atoms that line 1 counts; correct the number there, or remove what is too much (one frame alone is read)")
      close (unit)
      return
    end if
    rewind (unit)
    call read_line(unit, line, status)
    call read_line(unit, line, status)
    allocate (element(max(0, min(n, n_lines - 2))), position(3, max(0, min(n, n_lines - 2))))
    do k = 1, n
      if (k > size(element)) then
        call fail(error, exit_bad_input, path//", line "//to_text(k + 2)//": the file ends, and atom "//to_text(k)//" of "// &
                  to_text(n)//" is expected; correct the number in line 1, or add what is missing")
        exit
      end if
      call read_line(unit, line, status)
      ! A slash ends the reading of a line early, and leaves the rest as it was.
      position(:, k) = huge(position)
      word = "none"
      if (status == 0) read (line, *, iostat=status) word, position(:, k)
      if (status /= 0) then
        call fail(error, exit_bad_input, path//", line "//to_text(k + 2)//": an element and three coordinates of atom "// &
                  to_text(k)//" of "//to_text(n)//" are expected, found '"//line//"'")
        exit
      else if (len_trim(word) > 2 .or. .not. all(abs(position(:, k)) < 1.0e6_real64)) then
        call fail(error, exit_bad_input, path//", line "//to_text(k + 2)//": '"//line//"' is not an atom; write an element "// &
                  "and three coordinates below 1000000")
        exit
      end if
      element(k) = word(:2)
    end do
    close (unit)
  end subroutine read_atoms

  !> Mass of an element (unified atomic mass units); 0 where it is not in our list.
  pure real(real64) function standard_mass(element)
    character(len=*), intent(in) :: element
    integer :: k
    standard_mass = 0.0_real64
    do k = 1, size(known)
      if (known(k) == element) standard_mass = weight(k)
    end do
  end function standard_mass

end module atom_file
