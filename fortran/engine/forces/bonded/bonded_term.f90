!> Bonded terms and 1-4 pairs as a term of the force field.
module bonded_term
  use base_kinds, only: real64
  use base_error, only: error_t
  use background, only: background_t
  use bonded, only: bonded_t, is_torsion, n_bonded_energies, with_ghosts, without_ghosts
  use energies, only: energies_t, is_bases
  use force_term, only: all_atoms, force_term_t, interactions_t, owned_atoms
  use implicit_solvent, only: implicit_solvent_of
  use settings, only: settings_t
  use system_state, only: system_state_t
  use timing, only: in_bonded
  implicit none
  private
  public :: bonded_term_t

  type, extends(force_term_t) :: bonded_term_t
    type(bonded_t), private :: terms
    !> Torsions are computed apart, by `compute_torsions`.
    logical, private :: leaves_torsions = .false.
  contains
    procedure :: compute_torsions
    procedure :: prepare
    procedure :: compute
    procedure :: take_atoms
    procedure :: take_parameters
  end type bonded_term_t

contains

  subroutine prepare(self, settings, state, shared, error)
    class(bonded_term_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    type(error_t), allocatable, intent(out) :: error
    associate (unused => error); end associate
    self%has_parts = .true.
    self%leaves_torsions = settings%boost%is_on .and. settings%boost%of(2)
    call self%terms%init(state%topology%coulomb_constant, state%topology%cmap, shared%rigid, state%rounding, &
                         implicit_solvent_of(settings, state%topology%coulomb_constant))
  end subroutine prepare

  !> Exclusions are found with the terms.
  subroutine take_atoms(self, state, shared, error)
    class(bonded_term_t), intent(inout) :: self
    type(system_state_t), intent(in) :: state
    type(interactions_t), intent(inout) :: shared
    type(error_t), allocatable, intent(out) :: error
    call self%terms%assign(state%comm, state%topology, state%atoms, state%grid, shared%ownership, error)
    if (allocated(error)) return
    call move_alloc(self%terms%exclusion_first, shared%exclusion_first)
    call move_alloc(self%terms%exclusion_partner, shared%exclusion_partner)
  end subroutine take_atoms

  subroutine take_parameters(self, settings, state, shared)
    class(bonded_term_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    associate (unused => settings, unused2 => shared); end associate
    call self%terms%take_parameters(state%topology)
  end subroutine take_parameters

  subroutine compute(self, state, shared, part, want_energy, sums, beside)
    class(bonded_term_t), intent(inout) :: self
    type(system_state_t), target, intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    integer, intent(in) :: part
    logical, intent(in) :: want_energy
    type(energies_t), intent(inout) :: sums
    class(background_t), intent(inout), optional :: beside
    real(real64) :: energy(n_bonded_energies), virial(3, 3)
    logical :: kinds(size(is_torsion))
    associate (unused => shared, unused2 => want_energy, unused3 => present(beside)); end associate
    kinds = .not. (self%leaves_torsions .and. is_torsion)
    if (part == all_atoms) then
      call self%terms%compute(state%atoms%position, state%atoms%force, energy, virial, kinds=kinds)
    else
      call self%terms%compute(state%atoms%position, state%atoms%force, energy, virial, &
                              merge(without_ghosts, with_ghosts, part == owned_atoms), kinds)
    end if
    call add(sums, energy, virial)
    call state%timer%lap(in_bonded)
  end subroutine compute

  !> Add the forces of torsions, and their energies and virial to `sums`.
  subroutine compute_torsions(self, state, sums)
    class(bonded_term_t), intent(in) :: self
    type(system_state_t), target, intent(inout) :: state
    type(energies_t), intent(inout) :: sums
    real(real64) :: energy(n_bonded_energies), virial(3, 3)
    call self%terms%compute(state%atoms%position, state%atoms%force, energy, virial, kinds=is_torsion)
    call add(sums, energy, virial)
    call state%timer%lap(in_bonded)
  end subroutine compute_torsions

  !> Energies of the terms go to their parts of the sums.
  pure subroutine add(sums, energy, virial)
    type(energies_t), intent(inout) :: sums
    real(real64), intent(in) :: energy(n_bonded_energies), virial(3, 3)
    integer, parameter :: n_others = n_bonded_energies - size(is_bases)
    sums%part(:n_others) = sums%part(:n_others) + energy(:n_others)
    sums%part(is_bases) = sums%part(is_bases) + energy(n_others + 1:)
    sums%virial = sums%virial + virial
  end subroutine add

end module bonded_term
