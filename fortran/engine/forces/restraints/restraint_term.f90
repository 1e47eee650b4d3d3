!> Restraints as a term of the force field.
module restraint_term
  use base_kinds, only: real64
  use base_error, only: error_t
  use background, only: background_t
  use energies, only: energies_t, is_restraint
  use force_term, only: force_term_t, interactions_t
  use restraints, only: restraints_t
  use settings, only: settings_t
  use system_state, only: system_state_t
  implicit none
  private
  public :: restraint_term_t

  type, extends(force_term_t) :: restraint_term_t
    type(restraints_t), private :: restraints
  contains
    procedure :: prepare
    procedure :: compute
    procedure :: take_atoms
    procedure :: take_parameters
  end type restraint_term_t

contains

  subroutine prepare(self, settings, state, shared, error)
    class(restraint_term_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    type(error_t), allocatable, intent(out) :: error
    associate (unused => shared); end associate
    self%is_bias = .true.
    call self%restraints%init(settings, state, error)
  end subroutine prepare

  subroutine take_atoms(self, state, shared, error)
    class(restraint_term_t), intent(inout) :: self
    type(system_state_t), intent(in) :: state
    type(interactions_t), intent(inout) :: shared
    type(error_t), allocatable, intent(out) :: error
    associate (unused => shared, unused2 => error); end associate
    call self%restraints%assign(state%atoms)
  end subroutine take_atoms

  subroutine take_parameters(self, settings, state, shared)
    class(restraint_term_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    associate (unused => state, unused2 => shared); end associate
    call self%restraints%take_parameters(settings)
  end subroutine take_parameters

  subroutine compute(self, state, shared, part, want_energy, sums, beside)
    class(restraint_term_t), intent(inout) :: self
    type(system_state_t), target, intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    integer, intent(in) :: part
    logical, intent(in) :: want_energy
    type(energies_t), intent(inout) :: sums
    class(background_t), intent(inout), optional :: beside
    real(real64) :: virial(3, 3)
    associate (unused => shared, unused2 => part, unused3 => want_energy, unused4 => present(beside)); end associate
    call self%restraints%compute(state%comm, state%atoms, state%grid, state%progress, sums%part(is_restraint), virial, &
                                 sums%release_work)
    sums%virial = sums%virial + virial
  end subroutine compute

end module restraint_term
