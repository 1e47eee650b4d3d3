!> Nose-Hoover chains (Martyna, Tuckerman, Tobias and Klein, Mol. Phys. 87, 1117 (1996)).
module nose_hoover_chain
  use base_kinds, only: real64
  use base_constants, only: boltzmann
  use base_random, only: random_stream_t
  use ensemble_state, only: chain_state_t, max_chain
  use rescaling, only: rescaling_t
  implicit none
  private
  public :: nose_hoover_chain_t

  !> Weights of the sixth-order decomposition of Yoshida and Suzuki.
  real(real64), parameter :: w1 = 0.784513610477560_real64, w2 = 0.235573213359357_real64, w3 = -1.17767998417887_real64
  real(real64), parameter :: weight(7) = [w1, w2, w3, 1.0_real64 - 2.0_real64*(w1 + w2 + w3), w3, w2, w1]

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
    real(real64) :: kt, mass(max_chain), dt
    integer :: repeat, k, j, m
    associate (unused_1 => wanted, unused_2 => random); end associate
    kt = boltzmann*self%temperature
    mass = kt*self%tau**2
    mass(1) = n_freedom*mass(1)
    m = self%chain_length
    factor = 1.0_real64
    associate (v => self%velocity, x => self%position)
      do repeat = 1, self%chain_steps
        do k = 1, size(weight)
          dt = weight(k)*time/self%chain_steps
          do j = m, 1, -1
            call push(j)
          end do
          factor = factor*exp(-dt*v(1))
          x(:m) = x(:m) + dt*v(:m)
          do j = 1, m
            call push(j)
          end do
        end do
      end do
    end associate
  contains
    !> Velocity of a link by half a time step, against the friction of the next link.
    subroutine push(link)
      integer, intent(in) :: link
      real(real64) :: acceleration, damping
      if (link == 1) then
        acceleration = (2.0_real64*kinetic*factor**2 - n_freedom*kt)/mass(1)
      else
        acceleration = (mass(link - 1)*self%velocity(link - 1)**2 - kt)/mass(link)
      end if
      damping = 1.0_real64
      if (link < m) damping = exp(-0.25_real64*dt*self%velocity(link + 1))
      self%velocity(link) = (self%velocity(link)*damping + 0.5_real64*dt*acceleration)*damping
    end subroutine push
  end function velocity_factor

  real(real64) function conserved_part(self) result(energy)
    class(nose_hoover_chain_t), intent(in) :: self
    real(real64) :: kt
    integer :: m
    kt = boltzmann*self%temperature
    m = self%chain_length
    energy = -self%heat
    energy = energy + 0.5_real64*kt*self%tau**2*(self%n_freedom*self%velocity(1)**2 + sum(self%velocity(2:m)**2)) + &
             kt*(self%n_freedom*self%position(1) + sum(self%position(2:m)))
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
