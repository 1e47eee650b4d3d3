!> No thermostat: only the heat that is lost where the centre of mass is brought to rest is booked.
module isolated
  use base_kinds, only: real64
  use base_random, only: random_stream_t
  use pistons, only: pistons_t
  use thermostat, only: thermostat_t
  implicit none
  private
  public :: isolated_t

  type, extends(thermostat_t) :: isolated_t
  contains
    procedure :: act_on_pistons
  end type isolated_t

contains

  subroutine act_on_pistons(self, pistons, mass, random, time)
    class(isolated_t), intent(inout) :: self
    type(pistons_t), intent(inout) :: pistons
    real(real64), intent(in) :: mass(:)
    type(random_stream_t), intent(inout) :: random
    real(real64), intent(in) :: time
    associate (unused_1 => self, unused_2 => pistons, unused_3 => mass, unused_4 => random, unused_5 => time)
    end associate
  end subroutine act_on_pistons

end module isolated
