!> Rigid-body dynamics of a fibre: annealing and minimisation on its elastic, floor, restraint and confinement energy, and
!> dynamics in its whole energy, by the forces of fibre_forces.
!>
!> Charges and their excluded volume change slowly on the scale of the elastic terms: they push every few steps, as many
!> times harder (impulse multiple time steps; Tuckerman, Berne & Martyna, J. Chem. Phys. 97:1990, 1992).
module fibre_relaxation
  use body_motion, only: displace, set_masses, n_freedoms
  use fibre_forces, only: all_forces
  use fibre_model, only: fibre_t, fibre_of
  use floor_pairs, only: pairs_t, list_pairs, moved_far
  use iso_fortran_env, only: int32, int64, real64
  implicit none
  private
  public :: relax, conformation_forces

  ! FIRE (Bitzek et al., Phys. Rev. Lett. 97:170201, 2006)
  real(real64), parameter :: speed_up = 1.1_real64, slow_down = 0.5_real64, first_mixing = 0.1_real64, &
    less_mixing = 0.99_real64
  integer(int32), parameter :: patience = 5

contains

  !> Move a fibre for n_steps from where it was placed: dynamics with friction when minimise = 0, FIRE otherwise.
  !> Charges and their excluded volume act every `charge_interval` steps, never when it is 0.
  subroutine relax(handle, n, n_steps, minimise, charge_interval, step, friction, margin, pressure, rim, velocity, wall, &
      energy, largest_force)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n                !< particles
    integer(int32), intent(in) :: n_steps, minimise, charge_interval
    real(real64), intent(in) :: step, friction     !< units of time, and their inverse
    real(real64), intent(in) :: margin             !< nm by which every floor is widened
    real(real64), intent(in) :: pressure           !< kBT/nm^3 on the box; zero without walls
    real(real64), intent(in) :: rim                !< nm that the box reaches beyond the walls
    real(real64), intent(inout) :: velocity(7, n + 1)   !< column n+1: the walls
    real(real64), intent(inout) :: wall(3)         !< nm, half the edges of the box; they replace the container's here
    real(real64), intent(out) :: energy(6)   !< kBT: elastic, floor, restraint, confinement, p V, charges at their last push
    real(real64), intent(out) :: largest_force     !< largest component of the force at the end, kBT/nm
    type(fibre_t), pointer :: fibre
    type(pairs_t) :: pairs
    real(real64) :: force(n_freedoms, n + 1), inverse_mass(n_freedoms, n + 1), time_step, mixing, power, ratio, container(3)
    integer(int32) :: k, downhill, pushes
    fibre => fibre_of(handle)
    container = fibre%wall
    fibre%wall = wall
    call set_masses(fibre, pressure > 0, inverse_mass)
    call list_pairs(fibre, margin, charge_interval > 0, pairs)
    time_step = step
    mixing = first_mixing
    downhill = 0
    energy = 0
    do k = 1, n_steps
      pushes = 0
      if (charge_interval > 0) pushes = merge(charge_interval, 0, mod(k, charge_interval) == 0)
      call all_forces(fibre, pairs, margin, pressure, rim, pushes, force, energy)
      if (minimise /= 0) then
        power = sum(force * velocity)
        if (power > 0) then
          ratio = sqrt(sum(velocity**2 / max(inverse_mass, 1.0e-9_real64)) / max(sum(force**2 * inverse_mass), tiny(1.0_real64)))
          velocity = (1 - mixing) * velocity + mixing * ratio * force * inverse_mass
          downhill = downhill + 1
          if (downhill > patience) then
            time_step = min(time_step * speed_up, 4 * step)
            mixing = mixing * less_mixing
          end if
        else
          velocity = 0
          time_step = max(time_step * slow_down, 1.0e-3_real64 * step)
          mixing = first_mixing
          downhill = 0
        end if
        velocity = velocity + time_step * force * inverse_mass
      else
        velocity = (velocity + time_step * force * inverse_mass) / (1 + friction * time_step)
      end if
      call displace(fibre, velocity, time_step)
      if (moved_far(fibre, pairs)) call list_pairs(fibre, margin, charge_interval > 0, pairs)
    end do
    call all_forces(fibre, pairs, margin, pressure, rim, min(1, charge_interval), force, energy)
    largest_force = maxval(abs(force))
    wall = fibre%wall
    fibre%wall = container
  end subroutine relax

  !> Forces on every freedom where the fibre was placed, with charges = 1 those of charges too; for tests.
  subroutine conformation_forces(handle, n, charges, force, energy)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n, charges
    real(real64), intent(out) :: force(7, n + 1)   !< kBT/nm and kBT; column n+1: the walls
    real(real64), intent(out) :: energy(6)         !< kBT, as in `relax`
    type(fibre_t), pointer :: fibre
    type(pairs_t) :: pairs
    fibre => fibre_of(handle)
    energy = 0
    call list_pairs(fibre, 0.0_real64, charges > 0, pairs)
    call all_forces(fibre, pairs, 0.0_real64, 0.0_real64, 0.0_real64, charges, force, energy)
  end subroutine conformation_forces

end module fibre_relaxation
