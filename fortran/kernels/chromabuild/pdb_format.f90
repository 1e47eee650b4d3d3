!> Fixed-column PDB lines, many times faster than formatted output: every number is looked up, not divided out.
module pdb_format
  use iso_fortran_env, only: int8, int32, int64
  implicit none
  private
  public :: format_atoms

  integer, parameter :: line_length = 81
  integer, parameter :: largest_whole = 9999

contains

  !> Fill one line an atom. Everything that is the same for all copies of an atom (record, name, residue name,
  !> element, line feed) is in `template_line`; serial, chain, residue number, coordinates and segment are written here.
  !>
  !> Serials are the global atom number (id + 1) modulo 100,000. Coordinates are in units of 0.001 angstrom and must lie
  !> in -999.999 .. 9999.999 angstrom (8 columns); `bad_atom` is the first atom (1-based) outside, or 0.
  subroutine format_atoms(n_atoms, n_residues, n_lines, template_line, residue_line, residue_size, residue_first_id, &
      residue_number, residue_tag, position, text, bad_atom)
    integer(int32), intent(in) :: n_atoms, n_residues, n_lines
    integer(int8), intent(in) :: template_line(81, n_lines)
    !> Line of the residue's first atom in `template_line` (from 0), its number of atoms, and its first atom's id.
    integer(int32), intent(in) :: residue_line(n_residues), residue_size(n_residues)
    integer(int64), intent(in) :: residue_first_id(n_residues)
    integer(int32), intent(in) :: residue_number(n_residues)
    !> Chain letter, then the four characters of the segment.
    integer(int8), intent(in) :: residue_tag(5, n_residues)
    integer(int32), intent(in) :: position(3, n_atoms)
    integer(int8), intent(inout) :: text(81, n_atoms)
    integer(int32), intent(out) :: bad_atom
    !f2py threadsafe
    integer(int8) :: whole(4, 0:largest_whole), negative_whole(4, 0:999), digits(3, 0:999)
    integer(int8) :: line(line_length), residue_digits(4)
    integer(int32) :: atom, residue, k, serial, x, axis, column, quotient

    call fill_tables(whole, negative_whole, digits)
    bad_atom = 0
    atom = 0
    do residue = 1, n_residues
      serial = int(modulo(residue_first_id(residue) + 1_int64, 100000_int64), int32)
      if (residue_number(residue) < 0) then
        residue_digits = negative_whole(:, modulo(-residue_number(residue), 1000))
      else
        residue_digits = whole(:, modulo(residue_number(residue), 10000))
      end if
      do k = 1, residue_size(residue)
        atom = atom + 1
        line = template_line(:, residue_line(residue) + k)
        quotient = serial / 1000
        if (quotient > 0) then
          line(7:8) = whole(3:4, quotient)
          line(9:11) = digits(:, serial - 1000*quotient)
        else
          line(7) = whole(1, 0)
          line(8:11) = whole(:, serial)
        end if
        line(22) = residue_tag(1, residue)
        line(23:26) = residue_digits
        do axis = 1, 3
          x = position(axis, atom)
          column = 31 + 8*(axis - 1)
          if (x >= 0) then
            quotient = x / 1000
            if (quotient > largest_whole) then
              if (bad_atom == 0) bad_atom = atom
              cycle
            end if
            line(column:column + 3) = whole(:, quotient)
            line(column + 5:column + 7) = digits(:, x - 1000*quotient)
          else
            quotient = (-x) / 1000
            if (quotient > 999) then
              if (bad_atom == 0) bad_atom = atom
              cycle
            end if
            line(column:column + 3) = negative_whole(:, quotient)
            line(column + 5:column + 7) = digits(:, -x - 1000*quotient)
          end if
        end do
        line(73:76) = residue_tag(2:5, residue)
        text(:, atom) = line
        serial = serial + 1
        if (serial == 100000) serial = 0
      end do
    end do
  end subroutine format_atoms

  !> Right-justified numbers in four columns (with and without minus sign) and three-digit numbers with leading zeros.
  pure subroutine fill_tables(whole, negative_whole, digits)
    integer(int8), intent(out) :: whole(4, 0:largest_whole), negative_whole(4, 0:999), digits(3, 0:999)
    integer(int32) :: i, k, rest

    whole = int(iachar(" "), int8)
    negative_whole = int(iachar(" "), int8)
    do i = 0, largest_whole
      rest = i
      do k = 4, 1, -1
        whole(k, i) = int(iachar("0") + modulo(rest, 10), int8)
        rest = rest / 10
        if (rest == 0) exit
      end do
    end do
    do i = 0, 999
      rest = i
      do k = 4, 2, -1
        negative_whole(k, i) = int(iachar("0") + modulo(rest, 10), int8)
        rest = rest / 10
        if (rest == 0) exit
      end do
      negative_whole(k - 1, i) = int(iachar("-"), int8)
      digits(:, i) = int(iachar("0") + [i / 100, modulo(i / 10, 10), modulo(i, 10)], int8)
    end do
  end subroutine fill_tables

end module pdb_format
