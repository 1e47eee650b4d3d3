!> A solute whose interactions are weakened (or strengthened) as if it were hotter (or colder) than what is around it: REST2
!> (Wang, Friesner and Berne, J. Phys. Chem. B 115, 9431 (2011)) and gREST (Kamiya and Sugita, J. Chem. Phys. 149, 072304
!> (2018)), which chooses among the terms.
!>
!> With the factor f, temperature over that of the solute, charges of the solute are multiplied by sqrt f and its
!> Lennard-Jones energies among themselves by f and with others by sqrt f; a bonded term that has k of its l atoms in the
!> solute is multiplied by f^(k/l). Pairs 1-4 are scaled like other pairs.
!>
!> All this happens in the topology, in which the solute has parameters of its own. Only of many equal molecules in a row,
!> such as waters, all must be chosen or none.
module solute_scaling
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use divided_pieces, only: divide_pieces
  use selection, only: atom_names_t, selection_t
  use settings, only: scales_charge, scales_lj, settings_t
  use term_list, only: is_cmap, is_exclusion, is_pair14, kind_width, n_kinds
  use topology, only: topology_t
  implicit none
  private
  public :: solute_scaling_t, separate_solute

  !> Of each term of a kind of a template: how many of its atoms are of the solute, -1 = not known yet.
  type :: counts_t
    integer, allocatable :: n(:)
  end type counts_t

  type :: scaled_template_t
    !> Of each atom: 1 = of the solute, 0 = not, -1 = not known yet.
    integer, allocatable :: chosen(:)
    type(counts_t) :: terms(n_kinds)
  end type scaled_template_t

  type :: solute_scaling_t
    logical :: is_on = .false.
    !> With the types of the solute, and not scaled.
    type(topology_t), private :: base
    type(scaled_template_t), allocatable, private :: template(:)
    !> Types from this one on are of the solute.
    integer, private :: n_others = 0
    logical, private :: scales(8) = .false.
  contains
    procedure :: init
    procedure :: apply
  end type solute_scaling_t

contains

  !> Give the solute of the settings parameters of its own in a topology that has just been read.
  subroutine separate_solute(topology, settings, error)
    type(topology_t), intent(inout) :: topology
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(selection_t) :: selection
    type(atom_names_t) :: names
    call names%read(topology, error)
    if (.not. allocated(error)) call selection%read(settings, settings%solute%group, topology, names, error)
    if (.not. allocated(error)) call divide_pieces(topology, selection, names, error)
  end subroutine separate_solute

  !> Find the solute of the settings, and give its atoms types of their own. Of any rank.
  subroutine init(self, settings, topology, error)
    class(solute_scaling_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(topology_t), intent(inout) :: topology
    type(error_t), allocatable, intent(out) :: error
    type(selection_t) :: selection
    type(atom_names_t) :: names
    logical, allocatable :: mask(:), before(:)
    integer(int64) :: id
    integer :: run, m, k, t, kind
    logical :: fits, any_chosen
    self%is_on = settings%solute%group > 0
    if (.not. self%is_on) return
    self%scales = settings%solute%scales
    call names%read(topology, error)
    if (.not. allocated(error)) call selection%read(settings, settings%solute%group, topology, names, error)
    if (allocated(error)) return
    allocate (self%template(size(topology%templates)))
    do t = 1, size(topology%templates)
      allocate (self%template(t)%chosen(topology%templates(t)%n_atoms), source=-1)
      do kind = 1, n_kinds
        allocate (self%template(t)%terms(kind)%n(size(topology%templates(t)%terms(kind)%atom, 2)), source=-1)
      end do
    end do
    fits = .true.
    any_chosen = .false.
    do run = 1, size(topology%run_molecule)
      m = topology%run_molecule(run)
      allocate (mask(topology%molecules(m)%n_atoms))
      do id = topology%run_first_atom(run), topology%run_first_atom(run + 1) - 1
        k = int(mod(id - topology%run_first_atom(run), size(mask, kind=int64))) + 1
        mask(k) = selection%holds(topology, names, id, error)
        if (allocated(error)) return
        if (k < size(mask)) cycle
        if (.not. allocated(before)) then
          call note(self, topology, m, mask, fits)
          before = mask
        else
          fits = fits .and. all(mask .eqv. before)
        end if
      end do
      if (allocated(before)) any_chosen = any_chosen .or. any(before)
      if (allocated(before)) deallocate (before)
      deallocate (mask)
    end do
    if (.not. any_chosen) then
      call settings%refuse_group(settings%solute%group, "chooses no atom", error)
    else if (.not. fits) then
      call settings%refuse_group(settings%solute%group, "chooses some of several equal molecules in a row, which have one "// &
                                 "set of parameters: choose all of them or none as the solute", error)
    end if
    if (allocated(error)) return
    call divide_types(self, topology)
    self%base = topology
  end subroutine init

  !> What a molecule with these atoms chosen says of templates, atoms and terms.
  subroutine note(self, topology, m, mask, fits)
    class(solute_scaling_t), intent(inout) :: self
    type(topology_t), intent(in) :: topology
    integer, intent(in) :: m
    logical, intent(in) :: mask(:)
    logical, intent(inout) :: fits
    integer :: piece, p, a, t, kind, shift, atom(5), n, width
    associate (molecule => topology%molecules(m), template => topology%templates(topology%molecules(m)%template), &
               scaled => self%template(topology%molecules(m)%template))
      do piece = 1, size(molecule%first_in_template)
        ! Molecule's atom less template's atom, both from 1.
        shift = molecule%first_atom(piece) - molecule%first_in_template(piece) + 1
        p = findloc(template%first_atom, molecule%first_in_template(piece), dim=1)
        if (p == 0) p = 1
        do a = template%first_atom(p), template%first_atom(p + 1) - 1
          call agree(scaled%chosen(a), merge(1, 0, mask(a + shift)))
        end do
        do kind = 1, n_kinds
          if (kind == is_exclusion) cycle
          width = kind_width(kind)
          associate (terms => template%terms(kind))
            do t = terms%first_of_piece(p), terms%first_of_piece(p + 1) - 1
              atom(:width) = terms%atom(:, t) + shift
              if (any(atom(:width) < 1 .or. atom(:width) > size(mask))) cycle
              n = count(mask(atom(:width)))
              call agree(scaled%terms(kind)%n(t), n)
            end do
          end associate
        end do
      end do
    end associate
  contains
    subroutine agree(known, found)
      integer, intent(inout) :: known
      integer, intent(in) :: found
      fits = fits .and. (known == -1 .or. known == found)
      known = found
    end subroutine agree
  end subroutine note

  !> Types of the solute's atoms, like those that they had, behind the others.
  subroutine divide_types(self, topology)
    class(solute_scaling_t), intent(inout) :: self
    type(topology_t), intent(inout) :: topology
    integer, allocatable :: source(:), twin(:)
    integer :: t, a, n
    n = size(topology%sigma)
    self%n_others = n
    allocate (twin(n), source=0)
    source = [(a, a=1, n)]
    do t = 1, size(topology%templates)
      do a = 1, topology%templates(t)%n_atoms
        if (self%template(t)%chosen(a) /= 1) cycle
        associate (lj_type => topology%templates(t)%lj_type(a))
          if (twin(lj_type) == 0) then
            source = [source, lj_type]
            twin(lj_type) = size(source)
          end if
          lj_type = twin(lj_type)
        end associate
      end do
    end do
    topology%sigma = topology%sigma(source)
    topology%epsilon = topology%epsilon(source)
    topology%c6 = topology%c6(source, source)
    topology%c12 = topology%c12(source, source)
  end subroutine divide_types

  !> Scale the topology by a factor.
  subroutine apply(self, factor, topology)
    class(solute_scaling_t), intent(in) :: self
    real(real64), intent(in) :: factor
    type(topology_t), intent(inout) :: topology
    integer :: t, kind, a, b
    if (self%scales(scales_lj)) then
      do b = 1, size(topology%sigma)
        do a = 1, size(topology%sigma)
          associate (scale => power(count([a, b] > self%n_others), 2))
            topology%c6(a, b) = scale*self%base%c6(a, b)
            topology%c12(a, b) = scale*self%base%c12(a, b)
          end associate
        end do
        topology%epsilon(b) = power(merge(1, 0, b > self%n_others), 1)*self%base%epsilon(b)
      end do
    end if
    do t = 1, size(topology%templates)
      associate (base => self%base%templates(t), scaled => topology%templates(t), counts => self%template(t))
        if (self%scales(scales_charge)) then
          do a = 1, base%n_atoms
            scaled%charge(a) = power(max(counts%chosen(a), 0), 2)*base%charge(a)
          end do
        end if
        do kind = 1, n_kinds
          if (kind > is_pair14 .or. size(base%terms(kind)%atom, 2) == 0) cycle
          associate (before => base%terms(kind)%parameter, after => scaled%terms(kind)%parameter)
            do a = 1, size(before, 2)
              associate (scale => power(max(counts%terms(kind)%n(a), 0), kind_width(kind)))
                if (kind == is_pair14) then
                  if (self%scales(scales_charge)) after(1, a) = scale*before(1, a)
                  if (self%scales(scales_lj)) after(3, a) = scale*before(3, a)
                else if (self%scales(kind)) then
                  b = merge(2, 1, kind == is_cmap)
                  after(b, a) = scale*before(b, a)
                end if
              end associate
            end do
          end associate
        end do
      end associate
    end do
  contains
    !> Of k atoms out of l; exactly 1 where none is of the solute.
    pure real(real64) function power(k, l)
      integer, intent(in) :: k, l
      power = 1.0_real64
      if (k > 0) power = factor**(real(k, real64)/real(l, real64))
    end function power
  end subroutine apply

end module solute_scaling
