!> The potential k e^n of atoms that are a distance e outside of all spheres (module spheres), a restraint in the sums.
module sphere_term
  use base_kinds, only: real64
  use base_error, only: error_t
  use background, only: background_t
  use energies, only: energies_t, is_restraint
  use force_term, only: force_term_t, interactions_t
  use settings, only: settings_t
  use spheres, only: spheres_t
  use system_state, only: system_state_t
  implicit none
  private
  public :: sphere_term_t

  !> Atoms whose energies are summed one after another, so that sums do not depend on the number of threads.
  integer, parameter :: block_size = 2048

  type, extends(force_term_t) :: sphere_term_t
    type(spheres_t), private :: spheres
    !> kcal/mol/angstrom^exponent.
    real(real64), private :: constant = 0.0_real64
    integer, private :: exponent = 2
  contains
    procedure :: prepare
    procedure :: compute
  end type sphere_term_t

contains

  subroutine prepare(self, settings, state, shared, error)
    class(sphere_term_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    type(error_t), allocatable, intent(out) :: error
    associate (unused => shared); end associate
    self%is_bias = .true.
    self%constant = settings%boundary%sphere%constant
    self%exponent = settings%boundary%sphere%exponent
    call self%spheres%find(settings, state, error)
  end subroutine prepare

  subroutine compute(self, state, shared, part, want_energy, sums, beside)
    class(sphere_term_t), intent(inout) :: self
    type(system_state_t), target, intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    integer, intent(in) :: part
    logical, intent(in) :: want_energy
    type(energies_t), intent(inout) :: sums
    class(background_t), intent(inout), optional :: beside
    real(real64) :: block_sums(10, (state%atoms%n_owned + block_size - 1)/block_size)
    real(real64) :: distance, away(3), force(3)
    integer :: block, i, a
    associate (unused => shared, unused2 => part, unused3 => want_energy, unused4 => present(beside)); end associate
    associate (atoms => state%atoms, coarse => state%rounding)
      !$omp parallel do schedule(static) private(i, a, distance, away, force)
      do block = 1, size(block_sums, 2)
        block_sums(:, block) = 0.0_real64
        do i = (block - 1)*block_size + 1, min(atoms%n_owned, block*block_size)
          call self%spheres%excess(atoms%position(:, i), distance, away)
          if (.not. distance > 0.0_real64) cycle
          force = -self%exponent*self%constant*distance**(self%exponent - 1)/norm2(away)*away
          atoms%force(:, i) = atoms%force(:, i) + ((force + coarse%force) - coarse%force)
          block_sums(10, block) = block_sums(10, block) + &
                                  ((self%constant*distance**self%exponent + coarse%energy) - coarse%energy)
          do a = 1, 3
            block_sums(3*a - 2:3*a, block) = block_sums(3*a - 2:3*a, block) + &
                                              ((away*force(a) + coarse%energy) - coarse%energy)
          end do
        end do
      end do
      !$omp end parallel do
    end associate
    sums%part(is_restraint) = sums%part(is_restraint) + sum(block_sums(10, :))
    sums%virial = sums%virial + reshape(sum(block_sums(:9, :), dim=2), [3, 3])
  end subroutine compute

end module sphere_term
