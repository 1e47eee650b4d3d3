!> Charges in reciprocal space, on the ranks with atoms, as a term of the force field.
module reciprocal_term
  use base_kinds, only: real64
  use base_error, only: error_t
  use background, only: background_t
  use energies, only: energies_t, is_reciprocal
  use force_term, only: beside_return, interactions_t
  use mesh_term, only: mesh_term_t
  use settings, only: settings_t
  use system_state, only: system_state_t
  implicit none
  private
  public :: reciprocal_term_t

  type, extends(mesh_term_t) :: reciprocal_term_t
  contains
    procedure :: prepare
    procedure :: begin
    procedure :: advance
    procedure :: compute
  end type reciprocal_term_t

contains

  subroutine prepare(self, settings, state, shared, error)
    class(reciprocal_term_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    type(error_t), allocatable, intent(out) :: error
    self%stage = beside_return
    self%is_slow = .true.
    call self%pme%init(state%comm%handle, state%grid%dims, state%grid%box, state%grid_points, &
                       settings%energy%spline_order, shared%alpha, state%topology%coulomb_constant, error, &
                       rounding=state%rounding, fft=settings%comm%fft, in_background=shared%overlaps, &
                       shape=state%grid%shape)
  end subroutine prepare

  subroutine begin(self, state, shared, want_energy)
    class(reciprocal_term_t), intent(inout) :: self
    type(system_state_t), target, intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    logical, intent(in) :: want_energy
    if (shared%overlaps) call start(self, state, want_energy)
  end subroutine begin

  subroutine start(self, state, want_energy)
    type(reciprocal_term_t), intent(inout) :: self
    type(system_state_t), target, intent(inout) :: state
    logical, intent(in) :: want_energy
    associate (atoms => state%atoms)
      call self%pme%start(atoms%n_owned, atoms%position, atoms%kind, atoms%charge, want_energy)
    end associate
  end subroutine start

  subroutine advance(self)
    class(reciprocal_term_t), intent(inout) :: self
    call self%pme%advance(.false.)
  end subroutine advance

  subroutine compute(self, state, shared, part, want_energy, sums, beside)
    class(reciprocal_term_t), intent(inout) :: self
    type(system_state_t), target, intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    integer, intent(in) :: part
    logical, intent(in) :: want_energy
    type(energies_t), intent(inout) :: sums
    class(background_t), intent(inout), optional :: beside
    real(real64), pointer, contiguous :: force(:, :)
    real(real64) :: virial(3, 3)
    associate (unused => part, unused2 => present(beside)); end associate
    if (.not. shared%overlaps) call start(self, state, want_energy)
    force => state%slow_forces()
    associate (atoms => state%atoms)
      call self%pme%finish(atoms%position, atoms%kind, atoms%charge, force, sums%part(is_reciprocal), virial)
    end associate
    sums%virial = sums%virial + virial
  end subroutine compute

end module reciprocal_term
