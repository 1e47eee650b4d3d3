!> Stochastic velocity rescaling (Bussi, Donadio and Parrinello, J. Chem. Phys. 126, 014101 (2007)); of pistons as in
!> Bussi, Zykova-Timan and Parrinello, J. Chem. Phys. 130, 074101 (2009).
module bussi
  use base_kinds, only: real64
  use base_random, only: random_stream_t
  use rescaling, only: rescaling_t
  implicit none
  private
  public :: bussi_t

  type, extends(rescaling_t) :: bussi_t
  contains
    procedure :: velocity_factor
  end type bussi_t

contains

  real(real64) function velocity_factor(self, kinetic, wanted, n_freedom, time, random) result(factor)
    class(bussi_t), intent(inout) :: self
    real(real64), intent(in) :: kinetic, wanted, n_freedom, time
    type(random_stream_t), intent(inout) :: random
    factor = 1.0_real64
    if (.not. kinetic > 0.0_real64) return
    factor = sqrt(rescaled_kinetic_energy(random, kinetic, wanted, n_freedom, time/self%tau)/kinetic)
  end function velocity_factor

  !> Kinetic energy after a time (in units of tau) of stochastic velocity rescaling from `kinetic` towards `wanted`: a
  !> sample of the distribution that solves eq. 7 of Bussi, Donadio and Parrinello exactly (their eq. A7).
  real(real64) function rescaled_kinetic_energy(random, kinetic, wanted, n_freedom, time) result(new)
    type(random_stream_t), intent(inout) :: random
    real(real64), intent(in) :: kinetic, wanted, n_freedom, time
    real(real64) :: kept, first, others
    kept = exp(-time)
    first = random%normal()
    others = 0.0_real64
    if (n_freedom > 1.0_real64) others = 2.0_real64*random%gamma(0.5_real64*(n_freedom - 1.0_real64))
    new = kept*kinetic + (1.0_real64 - kept)*wanted/n_freedom*(first**2 + others) + &
          2.0_real64*first*sqrt(kept*(1.0_real64 - kept)*wanted/n_freedom*kinetic)
  end function rescaled_kinetic_energy

end module bussi
