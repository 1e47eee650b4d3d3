!> Energies summed over all ranks.
module energy_sums
  use base_kinds, only: real64
  use base_constants, only: acceleration_unit
  use energies, only: energies_t, n_energies
  use kinetics, only: my_group_kinetic_energy, my_kinetic_energy
  use system_state, only: system_state_t
  implicit none
  private
  public :: sum_over_ranks

  !> Groups whose energies are summed one after another, so that sums do not depend on the number of threads.
  integer, parameter :: groups_per_block = 2048

contains

  !> The sums of `mine`, what each rank has, with the kinetic energies of the present velocities.
  function sum_over_ranks(state, mine) result(total)
    type(system_state_t), intent(in) :: state
    type(energies_t), intent(in) :: mine
    type(energies_t) :: total
    real(real64) :: values(n_energies + 21), momentum(3), mass, centre(3), force(3)
    real(real64), allocatable :: block_sums(:, :)
    integer :: g, i, block, first
    associate (atoms => state%atoms)
      total = mine
      allocate (block_sums(8, (atoms%n_groups + groups_per_block - 1)/groups_per_block))
      !$omp parallel do schedule(static) private(g, i, first, momentum, mass, centre, force)
      do block = 1, size(block_sums, 2)
        associate (kinetic => block_sums(1, block), force2 => block_sums(2, block), &
                   group_kinetic => block_sums(3:5, block), inner_virial => block_sums(6:8, block))
          block_sums(:, block) = 0.0_real64
          do g = (block - 1)*groups_per_block + 1, min(atoms%n_groups, block*groups_per_block)
            momentum = 0.0_real64
            mass = 0.0_real64
            centre = 0.0_real64
            first = atoms%group_first(g)
            do i = first, atoms%group_first(g + 1) - 1
              mass = mass + atoms%mass(atoms%kind(i))
              centre = centre + atoms%mass(atoms%kind(i))*(atoms%position(:, i) - atoms%position(:, first))
            end do
            centre = centre/mass
            do i = first, atoms%group_first(g + 1) - 1
              if (.not. state%is_at_rest) then
                kinetic = kinetic + rounded(0.5_real64*atoms%mass(atoms%kind(i))*sum(atoms%velocity(:, i)**2)/acceleration_unit)
                momentum = momentum + atoms%mass(atoms%kind(i))*atoms%velocity(:, i)
              end if
              force = atoms%force(:, i)
              if (state%split_forces) force = force + state%slow_force(:, i)
              inner_virial = inner_virial + rounded((atoms%position(:, i) - atoms%position(:, first) - centre)*force)
              force2 = force2 + rounded(sum(force**2))
            end do
            group_kinetic = group_kinetic + rounded(0.5_real64*momentum**2/mass/acceleration_unit)
          end do
        end associate
      end do
      !$omp end parallel do
      values(:n_energies) = total%part
      values(n_energies + 1:n_energies + 9) = reshape(total%virial, [9])
      values(n_energies + 10:n_energies + 17) = sum(block_sums, dim=2)
      values(n_energies + 18:) = 0.0_real64
      if (atoms%half_kick_is_known) then
        values(n_energies + 18) = my_kinetic_energy(atoms, atoms%half_kick)
        values(n_energies + 19:) = my_group_kinetic_energy(atoms, atoms%half_kick)
      end if
      call state%comm%sum(values)
      total%part = values(:n_energies)
      total%virial = reshape(values(n_energies + 1:n_energies + 9), [3, 3])
      total%kinetic = values(n_energies + 10)
      total%force2 = values(n_energies + 11)
      total%group_kinetic = values(n_energies + 12:n_energies + 14)
      total%inner_virial = values(n_energies + 15:n_energies + 17)
      total%half_kick = values(n_energies + 18)
      total%group_half_kick = values(n_energies + 19:)
      total%kick_share = atoms%kick_share
      total%box = state%grid%box
    end associate
  contains
    elemental real(real64) function rounded(x)
      real(real64), intent(in) :: x
      rounded = (x + state%rounding%energy) - state%rounding%energy
    end function rounded
  end function sum_over_ranks

end module energy_sums
