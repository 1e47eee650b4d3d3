!> One molecule template of the topology: atoms, terms, and the constraint groups (a heavy atom with its hydrogens, or a
!> whole water, with the virtual sites whose place its atoms decide) that stay together on a rank. One template is special:
!> it holds the distinct pieces (residues in their surroundings) of all long molecules one after another, each with the terms
!> that touch it.
module molecule_template
  use base_kinds, only: int64, real64
  use base_constants, only: degree
  use base_error, only: error_t, exit_corrupt_file, fail
  use hdf5_file, only: hdf5_file_t
  use rigid_sites, only: rigid_sites_t
  use term_list, only: is_angle, is_base_pair, is_bond, is_cmap, is_cross_stacking, is_dihedral, is_exclusion, is_gaussian, &
                       is_improper, is_pair14, is_stacking, is_urey_bradley, kind_columns, kind_name, kind_width, n_kinds, &
                       term_list_t
  use base_text, only: to_text
  implicit none
  private
  public :: molecule_template_t

  type :: molecule_template_t
    integer :: n_atoms = 0
    !> Atoms of piece p: `first_atom(p):first_atom(p+1)-1`; an ordinary template is one piece that is whole.
    logical :: in_pieces = .false.
    integer, allocatable :: first_atom(:)
    !> How often each atom occurs in the whole system.
    integer(int64), allocatable :: copies(:)
    logical :: rigid_water = .false.
    !> Of each atom; charges in e, masses in atomic mass units.
    integer, allocatable :: lj_type(:)
    real(real64), allocatable :: charge(:), mass(:)
    type(term_list_t) :: terms(n_kinds)
    integer :: n_groups = 0
    !> Group of each atom; atoms of group g, ascending: `group_atom(group_first(g):group_first(g+1)-1)`.
    integer, allocatable :: group_of_atom(:), group_first(:), group_atom(:)
    !> The heaviest atom of each group (the first of equals), which decides who owns the group.
    integer, allocatable :: group_reference(:)
    !> Constraints of group g are `constraint_first(g):constraint_first(g+1)-1`; atoms counted within the molecule, distances
    !> in angstrom.
    integer, allocatable :: constraint_first(:), constraint_atom(:, :)
    real(real64), allocatable :: constraint_distance(:)
    !> Massless atoms that other atoms of their group place.
    type(rigid_sites_t) :: sites
  contains
    procedure :: read => read_template
    procedure :: is_solvent
    procedure :: place_in_group
    procedure :: reach_of_terms
  end type molecule_template_t

contains

  !> Whether this is a rigid water or a lone atom.
  pure logical function is_solvent(self)
    class(molecule_template_t), intent(in) :: self
    is_solvent = self%rigid_water .or. (self%n_atoms == 1 .and. .not. self%in_pieces)
  end function is_solvent

  !> Place of an atom among those of its constraint group, both counted from 1, the atom within the template.
  pure integer function place_in_group(self, atom) result(place)
    class(molecule_template_t), intent(in) :: self
    integer, intent(in) :: atom
    integer :: first
    first = self%group_first(self%group_of_atom(atom))
    place = 1
    do while (self%group_atom(first + place - 1) /= atom)
      place = place + 1
    end do
  end function place_in_group

  !> How far each piece and its terms reach before and behind its first atom, (2, pieces).
  pure function reach_of_terms(self) result(reach)
    class(molecule_template_t), intent(in) :: self
    integer :: reach(2, size(self%first_atom) - 1), kind, p
    reach(1, :) = 0
    reach(2, :) = self%first_atom(2:) - self%first_atom(:size(reach, 2)) - 1
    do kind = 1, n_kinds
      associate (terms => self%terms(kind))
        do p = 1, size(reach, 2)
          associate (atoms => terms%atom(:, terms%first_of_piece(p):terms%first_of_piece(p + 1) - 1))
            if (size(atoms) == 0) cycle
            reach(1, p) = min(reach(1, p), minval(atoms) - self%first_atom(p))
            reach(2, p) = max(reach(2, p), maxval(atoms) - self%first_atom(p))
          end associate
        end do
      end associate
    end do
  end function reach_of_terms

  !> Read the group `template/NNNN` or `pieces` of a topology file. `n_types`, `n_maps`: Lennard-Jones types and
  !> correction maps.
  subroutine read_template(self, file, group, n_types, n_maps, error)
    class(molecule_template_t), intent(inout) :: self
    type(hdf5_file_t), intent(in) :: file
    character(len=*), intent(in) :: group
    integer, intent(in) :: n_types, n_maps
    type(error_t), allocatable, intent(out) :: error
    integer :: kind, rigid

    call file%integer_attribute(group, "rigid_water", rigid, error)
    if (allocated(error)) return
    self%rigid_water = rigid == 1
    call file%read_integer(group//"/lj_type", self%lj_type, error)
    if (allocated(error)) return
    call file%read_real(group//"/charge", self%charge, error)
    if (allocated(error)) return
    call file%read_real(group//"/mass", self%mass, error)
    if (allocated(error)) return
    self%n_atoms = size(self%lj_type)
    self%lj_type = self%lj_type + 1
    if (self%n_atoms == 0 .or. size(self%charge) /= self%n_atoms .or. size(self%mass) /= self%n_atoms) then
      call fail(error, exit_corrupt_file, file%path//": the atom arrays of "//group//" have different lengths")
    else if (any(self%lj_type < 1 .or. self%lj_type > n_types)) then
      call fail(error, exit_corrupt_file, file%path//": "//group//" has an atom with an unknown Lennard-Jones type")
    end if
    if (allocated(error)) return
    call self%sites%read(file, group, self%mass, error)
    if (allocated(error)) return
    allocate (self%copies(self%n_atoms), source=0_int64)
    self%first_atom = [1, self%n_atoms + 1]
    self%in_pieces = file%exists(group//"/first_atom")
    if (self%in_pieces) call read_bounds(file, group//"/first_atom", self%n_atoms, self%first_atom, error)
    if (allocated(error)) return
    call read_constraints(self, file, group, error)
    if (allocated(error)) return
    do kind = 1, n_kinds
      call read_terms(self, file, group, kind, error)
      if (allocated(error)) return
      call mark_rigid(self, kind)
      call self%terms(kind)%index_atoms(self%first_atom)
    end do
    associate (map => self%terms(is_cmap)%parameter(1, :))
      if (any(map < 1.0_real64 .or. map > n_maps)) &
        call fail(error, exit_corrupt_file, file%path//": "//group//"/cmap names a map that the file does not have")
    end associate
  end subroutine read_template

  !> Read where the pieces begin in a list of `n`, counted from 1, and where the last ends.
  subroutine read_bounds(file, name, n, first, error)
    type(hdf5_file_t), intent(in) :: file
    character(len=*), intent(in) :: name
    integer, intent(in) :: n
    integer, allocatable, intent(out) :: first(:)
    type(error_t), allocatable, intent(out) :: error
    integer :: last
    call file%read_integer(name, first, error)
    if (allocated(error)) return
    first = first + 1
    last = size(first)
    if (last >= 2) then
      if (first(1) == 1 .and. first(last) == n + 1 .and. all(first(2:) >= first(:last - 1))) return
    end if
    call fail(error, exit_corrupt_file, file%path//": "//name//" does not cut "//to_text(n)//" entries into pieces")
  end subroutine read_bounds

  !> Read the terms of one kind; a kind that the template does not have is empty.
  subroutine read_terms(self, file, group, kind, error)
    class(molecule_template_t), intent(inout) :: self
    type(hdf5_file_t), intent(in) :: file
    character(len=*), intent(in) :: group
    integer, intent(in) :: kind
    type(error_t), allocatable, intent(out) :: error
    character(len=14), allocatable :: column(:)
    character(len=:), allocatable :: folder, atoms
    real(real64), allocatable :: values(:)
    integer, allocatable :: whole(:)
    logical :: is_there
    integer :: c

    folder = group//"/"//trim(kind_name(kind))
    atoms = folder//"/atoms"
    if (kind == is_exclusion) atoms = folder
    associate (terms => self%terms(kind))
      is_there = file%exists(folder)
      if (is_there) then
        call file%read_integer_table(atoms, terms%atom, error)
        if (allocated(error)) return
      else
        allocate (terms%atom(kind_width(kind), 0))
      end if
      terms%n = size(terms%atom, 2)
      terms%atom = terms%atom + 1
      allocate (terms%parameter(kind_columns(kind), terms%n), source=0.0_real64)
      allocate (terms%rigid(terms%n), source=.false.)
      terms%first_of_piece = [1, terms%n + 1]
      if (self%in_pieces .and. .not. is_there) then
        terms%first_of_piece = spread(1, 1, size(self%first_atom))
      else if (self%in_pieces) then
        call read_bounds(file, group//"/first_term/"//trim(kind_name(kind)), terms%n, terms%first_of_piece, error)
        if (.not. allocated(error) .and. size(terms%first_of_piece) /= size(self%first_atom)) &
          call fail(error, exit_corrupt_file, file%path//": "//group//"/first_term does not fit first_atom")
        if (allocated(error)) return
      end if
      if (terms%n == 0) return
      if (size(terms%atom, 1) /= kind_width(kind)) then
        call fail(error, exit_corrupt_file, file%path//": "//atoms//" must have "//to_text(kind_width(kind))// &
                  " columns")
        return
      else if (.not. self%in_pieces .and. any(terms%atom < 1 .or. terms%atom > self%n_atoms)) then
        call fail(error, exit_corrupt_file, file%path//": "//atoms//" names an atom that the template does not have")
        return
      end if
      select case (kind)
      case (is_bond)
        column = [character(len=14) :: "k", "r0"]
        if (file%exists(folder//"/k4")) column = [character(len=14) :: column, "k4"]
      case (is_urey_bradley)
        column = [character(len=14) :: "k", "r0"]
      case (is_angle)
        column = [character(len=14) :: "k", "theta0"]
      case (is_dihedral)
        column = [character(len=14) :: "k", "n", "phase"]
      case (is_improper)
        column = [character(len=14) :: "k", "psi0"]
      case (is_cmap)
        column = [character(len=14) :: "map"]
      case (is_pair14)
        column = [character(len=14) :: "charge_product", "sigma", "epsilon"]
      case (is_gaussian)
        column = [character(len=14) :: "k", "width", "phi0"]
      case (is_stacking)
        column = [character(len=14) :: "epsilon", "r0", "theta0", "alpha", "sharpness"]
      case (is_base_pair)
        column = [character(len=14) :: "epsilon", "r0", "theta1", "theta2", "phi0", "alpha", "sharpness"]
      case (is_cross_stacking)
        column = [character(len=14) :: "epsilon", "r0", "theta3", "theta", "alpha", "sharpness3", "sharpness"]
      case (is_exclusion)
        allocate (column(0))
      end select
      do c = 1, size(column)
        if (column(c) == "n" .or. column(c) == "map") then
          call file%read_integer(folder//"/"//trim(column(c)), whole, error)
          if (allocated(error)) return
          values = real(whole, real64)
        else
          call file%read_real(folder//"/"//trim(column(c)), values, error)
          if (allocated(error)) return
        end if
        if (size(values) /= terms%n) then
          call fail(error, exit_corrupt_file, file%path//": "//folder//"/"//trim(column(c))//" has the wrong length")
          return
        end if
        if (any(column(c)(:3) == ["the", "psi", "pha", "phi"])) values = values*degree
        if (column(c) == "map") values = values + 1.0_real64
        terms%parameter(c, :) = values
        ! What its energy is multiplied by.
        if (column(c) == "map") terms%parameter(2, :) = 1.0_real64
      end do
    end associate
  end subroutine read_terms

  !> Mark the bonds that are constrained, and all bonds, Urey-Bradley terms and angles of a rigid water.
  subroutine mark_rigid(self, kind)
    class(molecule_template_t), intent(inout) :: self
    integer, intent(in) :: kind
    integer :: t, c, g
    if (kind /= is_bond .and. kind /= is_angle .and. kind /= is_urey_bradley) return
    if (self%rigid_water) self%terms(kind)%rigid = .true.
    if (kind /= is_bond) return
    do t = 1, self%terms(kind)%n
      associate (atom => self%terms(kind)%atom(:, t))
        if (any(atom < 1 .or. atom > self%n_atoms)) cycle  ! a bond between pieces
        g = self%group_of_atom(atom(1))
        if (g /= self%group_of_atom(atom(2))) cycle
        do c = self%constraint_first(g), self%constraint_first(g + 1) - 1
          if (all(self%constraint_atom(:, c) == atom) .or. all(self%constraint_atom(2:1:-1, c) == atom)) &
            self%terms(kind)%rigid(t) = .true.
        end do
      end associate
    end do
  end subroutine mark_rigid

  !> Read the constraints and make the groups: atoms joined by constraints, and virtual sites with their parents.
  subroutine read_constraints(self, file, group, error)
    class(molecule_template_t), intent(inout) :: self
    type(hdf5_file_t), intent(in) :: file
    character(len=*), intent(in) :: group
    type(error_t), allocatable, intent(out) :: error
    integer, allocatable :: pair(:, :), lowest(:), filled(:)
    real(real64), allocatable :: distance(:)
    integer :: c, a, g, at

    if (file%exists(group//"/constraint")) then
      call file%read_integer_table(group//"/constraint/atoms", pair, error)
      if (allocated(error)) return
      call file%read_real(group//"/constraint/distance", distance, error)
      if (allocated(error)) return
    else
      allocate (pair(2, 0), distance(0))
    end if
    pair = pair + 1
    if (size(pair, 1) /= 2 .and. size(pair) > 0 .or. size(distance) /= size(pair, 2)) then
      call fail(error, exit_corrupt_file, file%path//": the arrays of "//group//"/constraint do not fit each other")
    else if (any(pair < 1 .or. pair > self%n_atoms)) then
      call fail(error, exit_corrupt_file, file%path//": "//group// &
                "/constraint names an atom that the template does not have")
    end if
    if (allocated(error)) return

    lowest = [(a, a=1, self%n_atoms)]
    call join(pair, lowest)
    call self%sites%check_parents(lowest, file%path//": "//group, error)
    if (allocated(error)) return
    call join(self%sites%atom(:2, :), lowest)
    allocate (self%group_of_atom(self%n_atoms), self%group_atom(self%n_atoms))
    self%n_groups = 0
    do a = 1, self%n_atoms
      if (lowest(a) == a) then
        self%n_groups = self%n_groups + 1
        self%group_of_atom(a) = self%n_groups
      else
        self%group_of_atom(a) = self%group_of_atom(lowest(a))
      end if
    end do
    allocate (self%group_first(self%n_groups + 1), self%group_reference(self%n_groups), &
              self%constraint_first(self%n_groups + 1), filled(self%n_groups))
    filled = 0
    do a = 1, self%n_atoms
      g = self%group_of_atom(a)
      filled(g) = filled(g) + 1
    end do
    self%group_first(1) = 1
    do g = 1, self%n_groups
      self%group_first(g + 1) = self%group_first(g) + filled(g)
    end do
    filled = 0
    do a = 1, self%n_atoms
      g = self%group_of_atom(a)
      self%group_atom(self%group_first(g) + filled(g)) = a
      filled(g) = filled(g) + 1
    end do
    do g = 1, self%n_groups
      associate (members => self%group_atom(self%group_first(g):self%group_first(g + 1) - 1))
        self%group_reference(g) = members(maxloc(self%mass(members), dim=1))
      end associate
    end do

    filled = 0
    do c = 1, size(pair, 2)
      g = self%group_of_atom(pair(1, c))
      filled(g) = filled(g) + 1
    end do
    self%constraint_first(1) = 1
    do g = 1, self%n_groups
      self%constraint_first(g + 1) = self%constraint_first(g) + filled(g)
    end do
    allocate (self%constraint_atom(2, size(pair, 2)), self%constraint_distance(size(pair, 2)))
    filled = 0
    do c = 1, size(pair, 2)
      g = self%group_of_atom(pair(1, c))
      at = self%constraint_first(g) + filled(g)
      filled(g) = filled(g) + 1
      self%constraint_atom(:, at) = pair(:, c)
      self%constraint_distance(at) = distance(c)
    end do
  end subroutine read_constraints

  !> Give every atom the lowest of the atoms that pairs join it to: `lowest` is that of earlier pairs, or the atom itself.
  pure subroutine join(pair, lowest)
    integer, intent(in) :: pair(:, :)
    integer, intent(inout) :: lowest(:)
    integer :: c, low, high
    logical :: changed
    ! Groups are small, so few sweeps settle it.
    changed = .true.
    do while (changed)
      changed = .false.
      do c = 1, size(pair, 2)
        low = minval(lowest(pair(:, c)))
        high = maxval(lowest(pair(:, c)))
        if (low == high) cycle
        lowest(pair(:, c)) = low
        changed = .true.
      end do
    end do
  end subroutine join

end module molecule_template
