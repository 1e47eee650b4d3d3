!> A term of the force field. To add one, extend `force_term_t` in a file of its own and add a line to `choose_terms` of
!> module force_terms.
module force_term
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use background, only: background_t
  use energies, only: energies_t
  use pair_ownership, only: pair_ownership_t
  use settings, only: settings_t
  use system_state, only: system_state_t
  implicit none
  private
  public :: force_term_t, interactions_t, all_atoms, owned_atoms, ghost_atoms, before_return, beside_return, after_return

  !> Parts of a term: all of it; what needs owned atoms only; what needs ghosts.
  integer, parameter :: all_atoms = 0, owned_atoms = 1, ghost_atoms = 2
  !> When a term is computed: before the forces on ghosts return to the owners, since it adds to them; on owned atoms,
  !> while forces return; after they have returned.
  integer, parameter :: before_return = 1, beside_return = 2, after_return = 3

  !> What the terms share beside the state of the system.
  type :: interactions_t
    !> Who computes what: by the half shell or by midpoints.
    type(pair_ownership_t) :: ownership
    !> Real-space interactions end at the cutoff; the pair list reaches to `list_distance`, and its entries that the kernels
    !> run over to `inner_buffer` beyond the cutoff (angstrom).
    real(real64) :: cutoff = 0.0_real64, list_distance = 0.0_real64, inner_buffer = 0.0_real64
    !> Screening of charges and of the dispersion (1/angstrom), 0 = no part in reciprocal space.
    real(real64) :: alpha = 0.0_real64, dispersion_alpha = 0.0_real64
    !> Bonds to hydrogen and waters are constrained.
    logical :: rigid = .false.
    !> What needs no message is computed while messages travel.
    logical :: overlaps = .false.
    !> Exclusions, from when bonded terms find them until the pair list is made.
    integer, allocatable :: exclusion_first(:), exclusion_partner(:)
  end type interactions_t

  type, abstract :: force_term_t
    integer :: stage = before_return
    !> It can be computed in two parts, the first one without ghosts.
    logical :: has_parts = .false.
    !> It is no part of the energy that boosts see.
    logical :: is_bias = .false.
    !> It belongs to the longer of two time steps where there are two.
    logical :: is_slow = .false.
  contains
    procedure(prepare_term), deferred :: prepare
    procedure(compute_term), deferred :: compute
    procedure :: begin
    procedure :: advance
    procedure :: take_atoms
    procedure :: take_parameters
    procedure :: set_reach
    procedure :: forget_list
    procedure :: make_list
    procedure :: set_box
    procedure :: set_domain
    procedure :: work
  end type force_term_t

  abstract interface
    !> Take parameters from the settings and the topology.
    subroutine prepare_term(self, settings, state, shared, error)
      import :: error_t, force_term_t, interactions_t, settings_t, system_state_t
      class(force_term_t), intent(inout) :: self
      type(settings_t), intent(in) :: settings
      type(system_state_t), intent(inout) :: state
      type(interactions_t), intent(in) :: shared
      type(error_t), allocatable, intent(out) :: error
    end subroutine prepare_term

    !> Add the forces (kcal/mol/angstrom) of a part of the term, and this rank's share of its energies and virial to
    !> `sums`; energies may be missing unless they are wanted. `beside`, if given, is to be looked after.
    subroutine compute_term(self, state, shared, part, want_energy, sums, beside)
      import :: background_t, energies_t, force_term_t, interactions_t, system_state_t
      class(force_term_t), intent(inout) :: self
      type(system_state_t), target, intent(inout) :: state
      type(interactions_t), intent(in) :: shared
      integer, intent(in) :: part
      logical, intent(in) :: want_energy
      type(energies_t), intent(inout) :: sums
      class(background_t), intent(inout), optional :: beside
    end subroutine compute_term
  end interface

contains

  ! What most terms have no use for.

  !> Begin what needs owned atoms only and goes on beside other work.
  subroutine begin(self, state, shared, want_energy)
    class(force_term_t), intent(inout) :: self
    type(system_state_t), target, intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    logical, intent(in) :: want_energy
    associate (unused => self, unused2 => state, unused3 => shared, unused4 => want_energy); end associate
  end subroutine begin

  !> Go on with it as far as is possible without waiting.
  subroutine advance(self)
    class(force_term_t), intent(inout) :: self
    associate (unused => self); end associate
  end subroutine advance

  !> Follow owned and ghost atoms after these changed.
  subroutine take_atoms(self, state, shared, error)
    class(force_term_t), intent(inout) :: self
    type(system_state_t), intent(in) :: state
    type(interactions_t), intent(inout) :: shared
    type(error_t), allocatable, intent(out) :: error
    associate (unused => self, unused2 => state, unused3 => shared, unused4 => error); end associate
  end subroutine take_atoms

  !> Follow parameters that replicas exchange: of restraints in the settings, of a solute in the topology and in the kinds
  !> of atoms.
  subroutine take_parameters(self, settings, state, shared)
    class(force_term_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    associate (unused => self, unused2 => settings, unused3 => state, unused4 => shared); end associate
  end subroutine take_parameters

  !> Follow the reach of the pair list.
  subroutine set_reach(self, shared)
    class(force_term_t), intent(inout) :: self
    type(interactions_t), intent(in) :: shared
    associate (unused => self, unused2 => shared); end associate
  end subroutine set_reach

  !> Give the memory of lists back; `make_list` comes next.
  subroutine forget_list(self)
    class(force_term_t), intent(inout) :: self
    associate (unused => self); end associate
  end subroutine forget_list

  !> Make lists of the present atoms.
  subroutine make_list(self, state, shared)
    class(force_term_t), intent(inout) :: self
    type(system_state_t), intent(in) :: state
    type(interactions_t), intent(inout) :: shared
    associate (unused => self, unused2 => state, unused3 => shared); end associate
  end subroutine make_list

  !> Follow the edges of the box (angstrom).
  subroutine set_box(self, box)
    class(force_term_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    associate (unused => self, unused2 => box); end associate
  end subroutine set_box

  !> Follow the borders of the domain, as fractions of the box.
  subroutine set_domain(self, lower, upper)
    class(force_term_t), intent(inout) :: self
    real(real64), intent(in) :: lower(3), upper(3)
    associate (unused => self, unused2 => lower, unused3 => upper); end associate
  end subroutine set_domain

  !> Work of this rank in a step, in pairs of the list.
  integer(int64) function work(self, n_owned)
    class(force_term_t), intent(in) :: self
    integer, intent(in) :: n_owned
    associate (unused => self, unused2 => n_owned); end associate
    work = 0
  end function work

end module force_term
