!> Molecules and residues whose copies are not chosen alike get parameters of their own: a topology is divided until equal
!> molecules, and equal pieces of them, are chosen alike with all atoms that their terms reach.
module divided_pieces
  use base_kinds, only: int64
  use base_error, only: error_t
  use molecule_template, only: molecule_template_t
  use selection, only: atom_names_t, selection_t
  use term_list, only: n_kinds, term_list_t
  use topology, only: molecule_t, topology_t
  implicit none
  private
  public :: divide_pieces

  type :: mask_t
    logical, allocatable :: of(:)
  end type mask_t

  !> A piece of the divided template: which one it was, and what is chosen of the atoms that its terms reach.
  type :: piece_t
    integer :: source = 0
    logical, allocatable :: chosen(:)
  end type piece_t

contains

  !> Divide a topology by what is chosen of the first molecule of each run.
  subroutine divide_pieces(topology, selection, names, error)
    type(topology_t), intent(inout) :: topology
    type(selection_t), intent(in) :: selection
    type(atom_names_t), intent(in) :: names
    type(error_t), allocatable, intent(out) :: error
    type(mask_t), allocatable :: chosen(:)
    call divide_molecules(topology, selection, names, chosen, error)
    if (allocated(error)) return
    call divide_template(topology, chosen)
    call topology%recount()
  end subroutine divide_pieces

  !> Make kinds of molecules whose molecules are chosen alike; `chosen`: of the atoms of each kind.
  subroutine divide_molecules(topology, selection, names, chosen, error)
    type(topology_t), intent(inout) :: topology
    type(selection_t), intent(in) :: selection
    type(atom_names_t), intent(in) :: names
    type(mask_t), allocatable, intent(out) :: chosen(:)
    type(error_t), allocatable, intent(out) :: error
    type(molecule_t) :: molecule
    type(mask_t) :: mask
    integer(int64) :: id
    integer :: run, kind, a
    logical :: is_new
    allocate (chosen(size(topology%molecules)))
    do run = 1, size(topology%run_molecule)
      if (topology%run_first_atom(run + 1) == topology%run_first_atom(run)) cycle
      molecule = topology%molecules(topology%run_molecule(run))
      allocate (mask%of(molecule%n_atoms))
      do a = 1, molecule%n_atoms
        id = topology%run_first_atom(run) + a - 1
        mask%of(a) = selection%holds(topology, names, id, error)
        if (allocated(error)) return
      end do
      is_new = .true.
      do kind = 1, size(topology%molecules)
        if (topology%molecules(kind)%named_as /= molecule%named_as) cycle
        if (.not. allocated(chosen(kind)%of)) chosen(kind)%of = mask%of
        is_new = any(chosen(kind)%of .neqv. mask%of)
        if (.not. is_new) exit
      end do
      if (is_new) then
        chosen = [chosen, mask]
        if (.not. topology%templates(molecule%template)%in_pieces) then
          topology%templates = [topology%templates, topology%templates(molecule%template)]
          molecule%template = size(topology%templates)
        end if
        topology%molecules = [topology%molecules, molecule]
        kind = size(topology%molecules)
      end if
      topology%run_molecule(run) = kind
      deallocate (mask%of)
    end do
  end subroutine divide_molecules

  !> Make pieces that are chosen alike wherever they stand.
  subroutine divide_template(topology, chosen)
    type(topology_t), intent(inout) :: topology
    type(mask_t), intent(in) :: chosen(:)
    type(piece_t), allocatable :: piece(:)
    type(piece_t) :: here
    integer, allocatable :: reach(:, :), first_atom(:), standing(:)
    integer :: t, m, k, p, n
    t = findloc(topology%templates%in_pieces, .true., dim=1)
    if (t == 0) return
    allocate (piece(0), standing(sum([(size(topology%molecules(m)%first_in_template), m=1, size(topology%molecules))])))
    reach = topology%templates(t)%reach_of_terms()
    n = 0
    do m = 1, size(topology%molecules)
      associate (molecule => topology%molecules(m), before => topology%templates(t)%first_atom)
        if (molecule%template /= t .or. .not. allocated(chosen(m)%of)) cycle
        do k = 1, size(molecule%first_in_template)
          here%source = findloc(before, molecule%first_in_template(k), dim=1)
          here%chosen = chosen(m)%of(molecule%first_atom(k) + reach(1, here%source) + 1: &
                                     molecule%first_atom(k) + reach(2, here%source) + 1)
          do p = 1, size(piece)
            if (piece(p)%source /= here%source) cycle
            if (all(piece(p)%chosen .eqv. here%chosen)) exit
          end do
          if (p > size(piece)) piece = [piece, here]
          n = n + 1
          standing(n) = p
        end do
      end associate
    end do
    if (n == 0) return
    call put_together(topology%templates(t), piece%source, first_atom)
    n = 0
    do m = 1, size(topology%molecules)
      associate (molecule => topology%molecules(m))
        if (molecule%template /= t .or. .not. allocated(chosen(m)%of)) cycle
        molecule%first_in_template = first_atom(standing(n + 1:n + size(molecule%first_in_template)))
        n = n + size(molecule%first_in_template)
      end associate
    end do
  end subroutine divide_template

  !> Make a template of pieces of itself, `source`, each of which may occur several times; `first_atom` of each.
  subroutine put_together(template, source, first_atom)
    type(molecule_template_t), intent(inout) :: template
    integer, intent(in) :: source(:)
    integer, allocatable, intent(out) :: first_atom(:)
    type(molecule_template_t) :: made
    integer :: k, kind
    made%in_pieces = .true.
    allocate (made%first_atom(1), made%group_first(1), made%constraint_first(1), source=1)
    allocate (made%lj_type(0), made%group_of_atom(0), made%group_atom(0), made%group_reference(0), &
              made%constraint_atom(2, 0), made%sites%atom(4, 0), source=0)
    allocate (made%charge(0), made%mass(0), made%constraint_distance(0), made%sites%weight(3, 0))
    do k = 1, size(source)
      call append(made, template, source(k))
    end do
    do kind = 1, n_kinds
      made%terms(kind) = gathered(template%terms(kind), template%first_atom, source, made%first_atom)
      call made%terms(kind)%index_atoms(made%first_atom)
    end do
    allocate (made%copies(made%n_atoms), source=0_int64)
    first_atom = made%first_atom(:size(source))
    template = made
  end subroutine put_together

  !> Put the atoms, groups, constraints and virtual sites of piece `p` of a template behind those of another one.
  subroutine append(made, template, p)
    type(molecule_template_t), intent(inout) :: made
    type(molecule_template_t), intent(in) :: template
    integer, intent(in) :: p
    integer :: shift, g, group_shift, k
    associate (first => template%first_atom(p), last => template%first_atom(p + 1) - 1)
      shift = made%n_atoms + 1 - first
      made%lj_type = [made%lj_type, template%lj_type(first:last)]
      made%charge = [made%charge, template%charge(first:last)]
      made%mass = [made%mass, template%mass(first:last)]
      made%n_atoms = size(made%lj_type)
      made%first_atom = [made%first_atom, made%n_atoms + 1]
      ! Groups lie within pieces, one piece's behind the other's.
      group_shift = made%n_groups + 1 - template%group_of_atom(first)
      made%group_of_atom = [made%group_of_atom, template%group_of_atom(first:last) + group_shift]
      do g = template%group_of_atom(first), maxval(template%group_of_atom(first:last))
        associate (members => template%group_atom(template%group_first(g):template%group_first(g + 1) - 1), &
                   one => template%constraint_first(g), end => template%constraint_first(g + 1))
          made%group_atom = [made%group_atom, members + shift]
          made%group_first = [made%group_first, size(made%group_atom) + 1]
          made%group_reference = [made%group_reference, template%group_reference(g) + shift]
          made%constraint_atom = reshape([made%constraint_atom, template%constraint_atom(:, one:end - 1) + shift], &
                                         [2, size(made%constraint_atom, 2) + end - one])
          made%constraint_distance = [made%constraint_distance, template%constraint_distance(one:end - 1)]
          made%constraint_first = [made%constraint_first, size(made%constraint_distance) + 1]
          made%n_groups = made%n_groups + 1
        end associate
      end do
      do k = 1, template%sites%n
        if (template%sites%atom(1, k) < first .or. template%sites%atom(1, k) > last) cycle
        made%sites%n = made%sites%n + 1
        made%sites%atom = reshape([made%sites%atom, template%sites%atom(:, k) + shift], [4, made%sites%n])
        made%sites%weight = reshape([made%sites%weight, template%sites%weight(:, k)], [3, made%sites%n])
      end do
    end associate
  end subroutine append

  !> Terms of pieces that stand elsewhere; `before` and `after`: first atoms of the pieces there and here.
  pure function gathered(old, before, source, after) result(new)
    type(term_list_t), intent(in) :: old
    integer, intent(in) :: before(:), source(:), after(:)
    type(term_list_t) :: new
    integer, allocatable :: row(:)
    integer :: k, t
    allocate (new%first_of_piece(size(source) + 1))
    new%first_of_piece(1) = 1
    do k = 1, size(source)
      new%first_of_piece(k + 1) = new%first_of_piece(k) + old%first_of_piece(source(k) + 1) - old%first_of_piece(source(k))
    end do
    new%n = new%first_of_piece(size(source) + 1) - 1
    allocate (row(new%n))
    do k = 1, size(source)
      row(new%first_of_piece(k):new%first_of_piece(k + 1) - 1) = &
        [(t, t=old%first_of_piece(source(k)), old%first_of_piece(source(k) + 1) - 1)]
    end do
    new%atom = old%atom(:, row)
    new%parameter = old%parameter(:, row)
    new%rigid = old%rigid(row)
    do k = 1, size(source)
      associate (atom => new%atom(:, new%first_of_piece(k):new%first_of_piece(k + 1) - 1))
        atom = atom + (after(k) - before(source(k)))
      end associate
    end do
  end function gathered

end module divided_pieces
