!> Weak coupling to a bath (Berendsen et al., J. Chem. Phys. 81, 3684 (1984)).
module berendsen_thermostat
  use base_kinds, only: real64
  use base_random, only: random_stream_t
  use rescaling, only: rescaling_t
  implicit none
  private
  public :: berendsen_thermostat_t

  type, extends(rescaling_t) :: berendsen_thermostat_t
  contains
    procedure :: velocity_factor
  end type berendsen_thermostat_t

contains

  real(real64) function velocity_factor(self, kinetic, wanted, n_freedom, time, random) result(factor)
    class(berendsen_thermostat_t), intent(inout) :: self
    real(real64), intent(in) :: kinetic, wanted, n_freedom, time
    type(random_stream_t), intent(inout) :: random
    associate (unused_1 => n_freedom, unused_2 => random); end associate
    factor = 1.0_real64
    if (.not. kinetic > 0.0_real64) return
    factor = sqrt(1.0_real64 + (1.0_real64 - exp(-time/self%tau))*(wanted/kinetic - 1.0_real64))
  end function velocity_factor

end module berendsen_thermostat
