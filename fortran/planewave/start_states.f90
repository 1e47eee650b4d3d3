!> States to begin with: random coefficients of long waves, the same on any number of ranks.
module start_states
  use base_kinds, only: int64, real64
  use base_constants, only: pi
  use base_random, only: philox
  use wave_sphere, only: sphere_t
  implicit none
  private
  public :: draw_states

  !> Key of these numbers beside the seed, apart from the purposes of base_random.
  integer(int64), parameter :: for_states = 101

contains

  !> Fill states (waves, states), of which `first` is the number of the first one, with normal numbers times (1 + (G^2/2)^2)^-1; they are neither orthogonal nor normalised.
  subroutine draw_states(sphere, seed, first, states)
    type(sphere_t), intent(in) :: sphere
    integer(int64), intent(in) :: seed
    integer, intent(in) :: first
    complex(real64), intent(out) :: states(:, :)
    integer(int64) :: bits(4)
    real(real64) :: radius, angle
    integer :: k, s
    do s = 1, size(states, 2)
      do k = 1, sphere%n_waves
        bits = philox([int(sphere%index(:, k), int64), int(first + s - 1, int64)], [seed, for_states])
        radius = sqrt(-2.0_real64*log((bits(1) + 0.5_real64)/4294967296.0_real64))
        angle = 2.0_real64*pi*(bits(2)/4294967296.0_real64)
        states(k, s) = cmplx(radius*cos(angle), radius*sin(angle), real64)/(1.0_real64 + 0.25_real64*sphere%g2(k)**2)
      end do
      if (sphere%zero > 0) states(sphere%zero, s) = real(states(sphere%zero, s), real64)
    end do
  end subroutine draw_states

end module start_states
