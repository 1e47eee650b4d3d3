!> Ewald summation of the dispersion in reciprocal space as a term of the force field.
module dispersion_term
  use base_kinds, only: real64
  use base_error, only: error_t
  use background, only: background_t
  use energies, only: energies_t, is_dispersion
  use force_term, only: beside_return, interactions_t
  use lennard_jones, only: lennard_jones_of, lennard_jones_t
  use mesh_term, only: mesh_term_t
  use settings, only: settings_t
  use system_state, only: system_state_t
  implicit none
  private
  public :: dispersion_term_t

  type, extends(mesh_term_t) :: dispersion_term_t
    !> Roots of c6 of the types and of the kinds of atoms.
    real(real64), allocatable, private :: type_root_c6(:), root_c6(:)
  contains
    procedure :: prepare
    procedure :: compute
    procedure :: take_atoms
  end type dispersion_term_t

contains

  subroutine prepare(self, settings, state, shared, error)
    class(dispersion_term_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    type(error_t), allocatable, intent(out) :: error
    type(lennard_jones_t) :: lj
    self%stage = beside_return
    self%is_slow = .true.
    lj = lennard_jones_of(state%topology)
    self%type_root_c6 = lj%root_c6()
    call self%pme%init(state%comm%handle, state%grid%dims, state%grid%box, state%grid_points, &
                       settings%energy%spline_order, shared%dispersion_alpha, 1.0_real64, error, of_dispersion=.true., &
                       fft=settings%comm%fft, shape=state%grid%shape)
  end subroutine prepare

  subroutine take_atoms(self, state, shared, error)
    class(dispersion_term_t), intent(inout) :: self
    type(system_state_t), intent(in) :: state
    type(interactions_t), intent(inout) :: shared
    type(error_t), allocatable, intent(out) :: error
    associate (unused => shared, unused2 => error); end associate
    self%root_c6 = self%type_root_c6(state%atoms%lj_type)
  end subroutine take_atoms

  subroutine compute(self, state, shared, part, want_energy, sums, beside)
    class(dispersion_term_t), intent(inout) :: self
    type(system_state_t), target, intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    integer, intent(in) :: part
    logical, intent(in) :: want_energy
    type(energies_t), intent(inout) :: sums
    class(background_t), intent(inout), optional :: beside
    real(real64), pointer, contiguous :: force(:, :)
    real(real64) :: virial(3, 3)
    associate (unused => shared, unused2 => part, unused3 => present(beside)); end associate
    force => state%slow_forces()
    associate (atoms => state%atoms)
      call self%pme%compute(atoms%n_owned, atoms%position, atoms%kind, self%root_c6, force, sums%part(is_dispersion), &
                            virial, want_energy)
    end associate
    sums%virial = sums%virial + virial
  end subroutine compute

end module dispersion_term
