!> Thermostat of Nose-Hoover chains.
module nose_hoover_chain
  use base_kinds, only: real64
  use base_constants, only: boltzmann
  use base_nose_hoover, only: chain_energy, propagate_chain
  use base_random, only: random_stream_t
  use ensemble_state, only: chain_state_t, max_chain
  use rescaling, only: rescaling_t
  implicit none
  private
  public :: nose_hoover_chain_t

  type, extends(rescaling_t) :: nose_hoover_chain_t
    !> Position (no unit) and velocity (1/ps) of each link.
    real(real64), private :: position(max_chain) = 0.0_real64, velocity(max_chain) = 0.0_real64
  contains
    procedure :: velocity_factor
    procedure :: books_heat
    procedure :: conserved_part
    procedure :: take_from
    procedure :: put_into
  end type nose_hoover_chain_t

contains

  pure logical function books_heat(self)
    class(nose_hoover_chain_t), intent(in) :: self
    associate (unused => self); end associate
    books_heat = .false.
  end function books_heat

  !> Propagate the chain for a time (ps) against a kinetic energy (kcal/mol) of so many degrees of freedom.
  real(real64) function velocity_factor(self, kinetic, wanted, n_freedom, time, random) result(factor)
    class(nose_hoover_chain_t), intent(inout) :: self
    real(real64), intent(in) :: kinetic, wanted, n_freedom, time
    type(random_stream_t), intent(inout) :: random
    associate (unused_1 => wanted, unused_2 => random, m => self%chain_length)
      call propagate_chain(self%position(:m), self%velocity(:m), boltzmann*self%temperature, self%tau, n_freedom, kinetic, &
                           time, self%chain_steps, factor)
    end associate
  end function velocity_factor

  real(real64) function conserved_part(self) result(energy)
    class(nose_hoover_chain_t), intent(in) :: self
    associate (m => self%chain_length)
      energy = chain_energy(self%position(:m), self%velocity(:m), boltzmann*self%temperature, self%tau, self%n_freedom) - &
               self%heat
    end associate
  end function conserved_part

  subroutine take_from(self, state)
    class(nose_hoover_chain_t), intent(inout) :: self
    type(chain_state_t), intent(in) :: state
    self%heat = state%heat
    self%my_heat = state%my_heat
    self%position = state%position
    self%velocity = state%velocity
  end subroutine take_from

  subroutine put_into(self, state)
    class(nose_hoover_chain_t), intent(in) :: self
    type(chain_state_t), intent(inout) :: state
    state = chain_state_t(self%heat, self%position, self%velocity, self%my_heat, self%temperature)
  end subroutine put_into

end module nose_hoover_chain
