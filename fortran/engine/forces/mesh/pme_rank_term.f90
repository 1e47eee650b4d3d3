!> Charges in reciprocal space, on ranks apart, as a term of the force field.
module pme_rank_term
  use base_kinds, only: real64
  use base_error, only: error_t
  use background, only: background_t
  use energies, only: energies_t, is_reciprocal
  use force_term, only: beside_return, force_term_t, interactions_t
  use pme_ranks, only: pme_client_t
  use settings, only: settings_t
  use system_state, only: system_state_t
  implicit none
  private
  public :: pme_rank_term_t

  type, extends(force_term_t) :: pme_rank_term_t
    type(pme_client_t), private :: client
  contains
    procedure :: prepare
    procedure :: begin
    procedure :: advance
    procedure :: compute
    procedure :: take_atoms
    procedure :: set_box
  end type pme_rank_term_t

contains

  subroutine prepare(self, settings, state, shared, error)
    class(pme_rank_term_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    type(error_t), allocatable, intent(out) :: error
    self%stage = beside_return
    self%is_slow = .true.
    call self%client%init(state%comm, state%grid%box, state%grid%shape, state%grid_points, &
                          settings%energy%spline_order, shared%alpha, state%topology%coulomb_constant, state%rounding, &
                          settings%comm%fft, error)
  end subroutine prepare

  subroutine begin(self, state, shared, want_energy)
    class(pme_rank_term_t), intent(inout) :: self
    type(system_state_t), target, intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    logical, intent(in) :: want_energy
    associate (unused => shared); end associate
    call self%client%start(state%atoms%position, want_energy)
  end subroutine begin

  subroutine advance(self)
    class(pme_rank_term_t), intent(inout) :: self
    call self%client%advance()
  end subroutine advance

  subroutine compute(self, state, shared, part, want_energy, sums, beside)
    class(pme_rank_term_t), intent(inout) :: self
    type(system_state_t), target, intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    integer, intent(in) :: part
    logical, intent(in) :: want_energy
    type(energies_t), intent(inout) :: sums
    class(background_t), intent(inout), optional :: beside
    real(real64), pointer, contiguous :: force(:, :)
    real(real64) :: virial(3, 3)
    associate (unused => shared, unused2 => part, unused3 => want_energy, unused4 => present(beside)); end associate
    force => state%slow_forces()
    call self%client%finish(force, sums%part(is_reciprocal), virial)
    sums%virial = sums%virial + virial
  end subroutine compute

  subroutine take_atoms(self, state, shared, error)
    class(pme_rank_term_t), intent(inout) :: self
    type(system_state_t), intent(in) :: state
    type(interactions_t), intent(inout) :: shared
    type(error_t), allocatable, intent(out) :: error
    associate (unused => shared, unused2 => error); end associate
    associate (atoms => state%atoms, grid => state%grid)
      call self%client%take_atoms(atoms%charge(atoms%kind(:atoms%n_owned)), grid%lower/grid%box, grid%upper/grid%box)
    end associate
  end subroutine take_atoms

  subroutine set_box(self, box)
    class(pme_rank_term_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    call self%client%set_box(box)
  end subroutine set_box

end module pme_rank_term
