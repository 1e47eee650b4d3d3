!> Atoms as people call them, for messages: the number that selections use, names of atom, residue and segment, and the
!> place in the box.
module atom_label
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use base_text, only: decimal_text, to_text
  use hdf5_file, only: hdf5_file_t
  use open_box, only: open_origin
  use selection, only: molecule_names_t
  use system_state, only: system_state_t
  use topology, only: topology_t
  implicit none
  private
  public :: label_of, place_of

contains

  !> The atom with global id `id` (from 0), e.g. `atom 812 (OP1 of DA 26, segment DNA1)`. Of equal molecules, which share
  !> their names, the number of the molecule is told instead of the segment. Reads the topology file; where that fails
  !> only the number is told.
  function label_of(topology, id) result(label)
    type(topology_t), intent(in) :: topology
    integer(int64), intent(in) :: id
    character(len=:), allocatable :: label, home
    type(molecule_names_t) :: names
    type(hdf5_file_t) :: file
    type(error_t), allocatable :: error
    integer :: kind, atom
    label = "atom "//to_text(id + 1)
    call topology%locate_in_molecule(id, kind, atom)
    call file%open(topology%path, error)
    if (allocated(error)) return
    call names%read(file, topology%molecules(kind)%named_as, error)
    call file%close()
    if (allocated(error)) return
    home = "segment "//trim(names%segment(atom))
    if (topology%molecule_count(kind) > 1) &
      home = "molecule "//to_text(number_of_molecule(topology, id, kind))//" of "//to_text(topology%molecule_count(kind))
    label = label//" ("//trim(names%atom(atom))//" of "//trim(names%residue(atom))//" "// &
            to_text(names%residue_number(atom))//", "//home//")"
  end function label_of

  !> Which of the molecules of its kind the one with atom `id` is, from 1.
  pure integer(int64) function number_of_molecule(topology, id, kind) result(number)
    type(topology_t), intent(in) :: topology
    integer(int64), intent(in) :: id
    integer, intent(in) :: kind
    integer :: run
    number = 1
    do run = 1, size(topology%run_molecule)
      if (topology%molecules(topology%run_molecule(run))%named_as /= topology%molecules(kind)%named_as .or. &
          topology%run_first_atom(run) > id) cycle
      number = number + (min(id, topology%run_first_atom(run + 1)) - topology%run_first_atom(run))/ &
               topology%molecules(kind)%n_atoms
    end do
  end function number_of_molecule

  !> Where local atom `i` is, e.g. `at 12.30, 45.60, 7.89 angstrom`: in the box, or without one in the input's coordinates.
  function place_of(state, i) result(place)
    type(system_state_t), intent(in) :: state
    integer, intent(in) :: i
    character(len=:), allocatable :: place
    real(real64) :: position(3)
    position = state%atoms%position(:, i)
    if (.not. all(abs(position) < 1.0e9_real64)) then
      place = "nowhere"
      return
    end if
    if (state%is_open) then
      position = position - open_origin(state%grid%box)
    else
      position = position + state%grid%wrap_shift(position)
    end if
    place = "at "//decimal_text(position(1), 2)//", "//decimal_text(position(2), 2)//", "//decimal_text(position(3), 2)// &
            " angstrom"
  end function place_of

end module atom_label
