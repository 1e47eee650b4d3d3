!> Rigid-body dynamics of a fibre: annealing and minimisation on its elastic, floor, restraint and confinement energy, and
!> dynamics in its whole energy, by the forces of fibre_forces.
!>
!> Charges and their excluded volume change slowly on the scale of the elastic terms: they push every few steps, as many
!> times harder (impulse multiple time steps; Tuckerman, Berne & Martyna, J. Chem. Phys. 97:1990, 1992).
module fibre_relaxation
  use iso_fortran_env, only: int32, real64
  use fibre_energy, only: fibre_t, load_fibre
  use fibre_forces, only: pairs_t, list_pairs, moved_far, all_forces, displace, set_masses, n_freedoms
  implicit none
  private
  public :: relax, conformation_forces

  ! FIRE (Bitzek et al., Phys. Rev. Lett. 97:170201, 2006)
  real(real64), parameter :: speed_up = 1.1_real64, slow_down = 0.5_real64, first_mixing = 0.1_real64, &
    less_mixing = 0.99_real64
  integer(int32), parameter :: patience = 5

contains

  !> Move a conformation for n_steps: dynamics with friction (1/time) when minimise = 0, FIRE otherwise.
  !> `velocity` (7, n+1) goes in and comes out (column n+1: the walls). `margin` (nm) widens every floor. `pressure`
  !> (kBT/nm^3) acts on the box that reaches `rim` beyond walls at +-`wall`; it must be zero without walls.
  !> Charges and their excluded volume act every `charge_interval` steps, never when it is 0. `energy`: elastic, floor,
  !> restraint, confinement, p V, charges (at their last push). `largest_force` is the largest component of the force at the end.
  subroutine relax(n, n_cores, n_sites, n_spheres, n_contacts, position, frame, core, linker, rest_length, &
      stretch_k, bend_k, twist_k, rest_twist, charge, joint_point, joint_frame, site, site_charge, sphere, &
      sphere_radius, sphere_near, contact, contact_k, contact_distance, scalar, n_steps, minimise, charge_interval, &
      step, friction, margin, pressure, rim, velocity, wall, energy, largest_force)
    integer(int32), intent(in) :: n, n_cores, n_sites, n_spheres, n_contacts, n_steps, minimise, charge_interval
    real(real64), intent(inout) :: position(3, n), frame(3, 3, n), velocity(7, n + 1), wall(3)
    integer(int32), intent(in) :: core(n), linker(n - 1), sphere_near(2, n_spheres), contact(2, n_contacts)
    real(real64), intent(in) :: rest_length(n - 1), stretch_k(n - 1), bend_k(n - 1), twist_k(n - 1), rest_twist(n - 1)
    real(real64), intent(in) :: charge(n), joint_point(3, 2), joint_frame(3, 3, 2)
    real(real64), intent(in) :: site(3, n_sites), site_charge(n_sites), sphere(3, n_spheres), sphere_radius(n_spheres)
    real(real64), intent(in) :: contact_k(n_contacts), contact_distance(n_contacts), scalar(16)
    real(real64), intent(in) :: step, friction, margin, pressure, rim
    real(real64), intent(out) :: energy(6), largest_force
    type(fibre_t) :: fibre
    type(pairs_t) :: pairs
    real(real64) :: force(n_freedoms, n + 1), inverse_mass(n_freedoms, n + 1), time_step, mixing, power, ratio
    integer(int32) :: k, downhill, pushes
    call load_fibre(fibre, n, n_cores, n_sites, n_spheres, position, frame, core, linker, rest_length, stretch_k, &
      bend_k, twist_k, rest_twist, charge, joint_point, joint_frame, site, site_charge, sphere, sphere_radius, &
      sphere_near, contact, contact_k, contact_distance, scalar)
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
    position = fibre%position
    frame = fibre%frame
    wall = fibre%wall
  end subroutine relax

  !> Forces (7, n+1) on every freedom at a conformation, with charges = 1 those of charges too; for tests.
  subroutine conformation_forces(n, n_cores, n_sites, n_spheres, n_contacts, position, frame, core, linker, rest_length, &
      stretch_k, bend_k, twist_k, rest_twist, charge, joint_point, joint_frame, site, site_charge, sphere, &
      sphere_radius, sphere_near, contact, contact_k, contact_distance, scalar, charges, force, energy)
    integer(int32), intent(in) :: n, n_cores, n_sites, n_spheres, n_contacts, charges
    real(real64), intent(in) :: position(3, n), frame(3, 3, n)
    integer(int32), intent(in) :: core(n), linker(n - 1), sphere_near(2, n_spheres), contact(2, n_contacts)
    real(real64), intent(in) :: rest_length(n - 1), stretch_k(n - 1), bend_k(n - 1), twist_k(n - 1), rest_twist(n - 1)
    real(real64), intent(in) :: charge(n), joint_point(3, 2), joint_frame(3, 3, 2)
    real(real64), intent(in) :: site(3, n_sites), site_charge(n_sites), sphere(3, n_spheres), sphere_radius(n_spheres)
    real(real64), intent(in) :: contact_k(n_contacts), contact_distance(n_contacts), scalar(16)
    real(real64), intent(out) :: force(7, n + 1), energy(6)
    type(fibre_t) :: fibre
    type(pairs_t) :: pairs
    call load_fibre(fibre, n, n_cores, n_sites, n_spheres, position, frame, core, linker, rest_length, stretch_k, &
      bend_k, twist_k, rest_twist, charge, joint_point, joint_frame, site, site_charge, sphere, sphere_radius, &
      sphere_near, contact, contact_k, contact_distance, scalar)
    call list_pairs(fibre, 0.0_real64, charges > 0, pairs)
    call all_forces(fibre, pairs, 0.0_real64, 0.0_real64, 0.0_real64, charges, force, energy)
  end subroutine conformation_forces

end module fibre_relaxation
