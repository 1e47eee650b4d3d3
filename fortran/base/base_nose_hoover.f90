!> Nose-Hoover chains (Martyna, Tuckerman, Tobias and Klein, Mol. Phys. 87, 1117 (1996)). Link k has the mass kT tau^2,
!> the first one times the degrees of freedom that it acts on. Any units in which kT, kinetic energy and time fit.
module base_nose_hoover
  use base_kinds, only: real64
  implicit none
  private
  public :: chain_energy, propagate_chain

  !> Weights of the sixth-order decomposition of Yoshida and Suzuki.
  real(real64), parameter :: w1 = 0.784513610477560_real64, w2 = 0.235573213359357_real64, w3 = -1.17767998417887_real64
  real(real64), parameter :: weight(7) = [w1, w2, w3, 1.0_real64 - 2.0_real64*(w1 + w2 + w3), w3, w2, w1]

contains

  !> Propagate positions (no unit) and velocities (1/time) of links for a time in `n_steps` steps, against a kinetic energy
  !> of `n_freedom` degrees of freedom. `factor`: what the velocities of these are to be multiplied with.
  subroutine propagate_chain(position, velocity, kt, tau, n_freedom, kinetic, time, n_steps, factor)
    real(real64), intent(inout) :: position(:), velocity(:)
    real(real64), intent(in) :: kt, tau, n_freedom, kinetic, time
    integer, intent(in) :: n_steps
    real(real64), intent(out) :: factor
    real(real64) :: mass(size(position)), dt
    integer :: repeat, k, j
    mass = kt*tau**2
    mass(1) = n_freedom*mass(1)
    factor = 1.0_real64
    do repeat = 1, n_steps
      do k = 1, size(weight)
        dt = weight(k)*time/n_steps
        do j = size(position), 1, -1
          call push(j)
        end do
        factor = factor*exp(-dt*velocity(1))
        position = position + dt*velocity
        do j = 1, size(position)
          call push(j)
        end do
      end do
    end do
  contains
    !> Velocity of a link by half a time step, against the friction of the next link.
    subroutine push(link)
      integer, intent(in) :: link
      real(real64) :: acceleration, damping
      if (link == 1) then
        acceleration = (2.0_real64*kinetic*factor**2 - n_freedom*kt)/mass(1)
      else
        acceleration = (mass(link - 1)*velocity(link - 1)**2 - kt)/mass(link)
      end if
      damping = 1.0_real64
      if (link < size(position)) damping = exp(-0.25_real64*dt*velocity(link + 1))
      velocity(link) = (velocity(link)*damping + 0.5_real64*dt*acceleration)*damping
    end subroutine push
  end subroutine propagate_chain

  !> What a chain adds to the energy of the system to make a conserved quantity.
  pure real(real64) function chain_energy(position, velocity, kt, tau, n_freedom) result(energy)
    real(real64), intent(in) :: position(:), velocity(:), kt, tau, n_freedom
    energy = 0.5_real64*kt*tau**2*(n_freedom*velocity(1)**2 + sum(velocity(2:)**2)) + &
             kt*(n_freedom*position(1) + sum(position(2:)))
  end function chain_energy

end module base_nose_hoover
