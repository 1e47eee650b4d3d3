!> The kinetic energy that whole steps do not show. Velocity Verlet moves along the trajectory of a Hamiltonian near the
!> true one, H + h^2/12 v U'' v - h^2/24 F^2/m for steps of h. Equipartition for that one, and the mean of v U'' v, which
!> is that of F^2/m, give for N degrees of freedom
!>
!>   N k T / 2 = K + 2/3 K_kick,   K_kick = sum of m (h F / 2 m)^2 / 2,
!>
!> K being the kinetic energy at whole steps and K + K_kick the mean of those half a step before and after (Jung, Kobayashi
!> and Sugita, J. Chem. Theory Comput. 15, 84 (2019)). Forces are those with constraints, which bend the path of rigid
!> bodies too; at steps with forces of a longer step, their longer kick counts.
!>
!> Langevin dynamics puts noise in the middle of its steps, where velocities are along the constraints and have the
!> temperature: there the share of K_kick is 1, and nothing bends.
module half_kick
  use base_kinds, only: int64, real64
  use kinetics, only: kick
  use simulation, only: simulation_t
  implicit none
  private
  public :: find_half_kick

contains

  !> Find what half a kick with the present forces, those of a step, would change of the velocities. It follows from the
  !> state alone, so that a continued run finds the same.
  subroutine find_half_kick(sim, step)
    type(simulation_t), intent(inout) :: sim
    integer(int64), intent(in) :: step
    real(real64), allocatable :: velocity(:, :), position(:, :)
    integer :: failed_atom
    associate (atoms => sim%atoms, timestep => sim%timestep)
      allocate (velocity, source=atoms%velocity)
      call kick(atoms%mass, atoms%kind, atoms%force, 0.5_real64*timestep, velocity)
      if (sim%split_forces .and. mod(step, sim%long_period) == 0) &
        call kick(atoms%mass, atoms%kind, sim%slow_force, 0.5_real64*sim%long_period*timestep, velocity)
      failed_atom = sim%constraints%failed_atom
      if (sim%thermostat%acts_in_drift()) then
        call sim%constraints%apply_velocities(atoms%position, velocity, timestep)
      else if (sim%constraints%active) then
        allocate (position, source=atoms%position(:, :atoms%n_owned) + &
                                   sim%rounding%on_lattice(timestep*velocity(:, :atoms%n_owned)))
        call sim%constraints%apply_positions(atoms%position, position, velocity, timestep, sim%rounding)
      end if
      ! Atoms have not moved: it is for the step to fail where forces are too large.
      sim%constraints%failed_atom = failed_atom
      atoms%half_kick = velocity - atoms%velocity
      atoms%half_kick_is_known = .true.
    end associate
  end subroutine find_half_kick

end module half_kick
