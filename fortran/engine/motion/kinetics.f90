!> Kinetic energies of atoms and of constraint groups, and changes of velocities that all atoms or groups share. Sums are
!> rounded as the atoms say (module base_fixed_point).
module kinetics
  use base_kinds, only: real64
  use atoms, only: atoms_t
  use comm_communicator, only: communicator_t
  use base_constants, only: acceleration_unit
  use base_vector, only: cross
  implicit none
  private
  public :: kinetic_energy, group_kinetic_energy, my_kinetic_energy, my_group_kinetic_energy, kick, scale_velocities, &
            remove_momentum, remove_rotation

  !> Groups whose sums are formed one after another, so that sums do not depend on the number of threads.
  integer, parameter :: groups_per_block = 2048

contains

  !> Kinetic energy (kcal/mol) of all atoms of all ranks, or with `of_groups` that of the centres of mass of the
  !> constraint groups, with the share of half a kick.
  real(real64) function kinetic_energy(comm, atoms, of_groups) result(energy)
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(in) :: atoms
    logical, intent(in) :: of_groups
    real(real64) :: total(2)
    if (of_groups) then
      energy = sum(group_kinetic_energy(comm, atoms))
      return
    end if
    ! The share is taken of the sum of all ranks, whose terms are rounded.
    total = [my_kinetic_energy(atoms, atoms%velocity), my_kinetic_energy(atoms, atoms%half_kick)]
    call comm%sum(total)
    energy = total(1) + atoms%kick_share*total(2)
  end function kinetic_energy

  !> Kinetic energy (kcal/mol) of the centres of mass of the groups of all ranks along x, y and z, with the share of half
  !> a kick.
  function group_kinetic_energy(comm, atoms) result(energy)
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(in) :: atoms
    real(real64) :: energy(3), total(6)
    total = [my_group_kinetic_energy(atoms, atoms%velocity), my_group_kinetic_energy(atoms, atoms%half_kick)]
    call comm%sum(total)
    energy = total(:3) + atoms%kick_share*total(4:)
  end function group_kinetic_energy

  !> Kinetic energy (kcal/mol) of this rank's atoms at some velocities, (3, atoms), angstrom/ps.
  real(real64) function my_kinetic_energy(atoms, velocity) result(energy)
    type(atoms_t), intent(in) :: atoms
    real(real64), intent(in) :: velocity(:, :)
    real(real64) :: block_sums((atoms%n_groups + groups_per_block - 1)/groups_per_block), coarse
    integer :: block, i
    coarse = atoms%rounding%energy
    !$omp parallel do schedule(static) private(i)
    do block = 1, size(block_sums)
      block_sums(block) = 0.0_real64
      do i = atoms%group_first((block - 1)*groups_per_block + 1), &
             atoms%group_first(min(atoms%n_groups, block*groups_per_block) + 1) - 1
        block_sums(block) = block_sums(block) + ((atoms%mass(atoms%kind(i))*sum(velocity(:, i)**2)/acceleration_unit + &
                                                  coarse) - coarse)
      end do
    end do
    !$omp end parallel do
    energy = 0.5_real64*sum(block_sums)
  end function my_kinetic_energy

  !> The same of the centres of mass of this rank's groups along x, y and z.
  function my_group_kinetic_energy(atoms, velocity) result(energy)
    type(atoms_t), intent(in) :: atoms
    real(real64), intent(in) :: velocity(:, :)
    real(real64) :: energy(3), momentum(3), mass, coarse
    real(real64) :: block_sums(3, (atoms%n_groups + groups_per_block - 1)/groups_per_block)
    integer :: block, g, i
    coarse = atoms%rounding%energy
    !$omp parallel do schedule(static) private(g, i, momentum, mass)
    do block = 1, size(block_sums, 2)
      block_sums(:, block) = 0.0_real64
      do g = (block - 1)*groups_per_block + 1, min(atoms%n_groups, block*groups_per_block)
        momentum = 0.0_real64
        mass = 0.0_real64
        do i = atoms%group_first(g), atoms%group_first(g + 1) - 1
          momentum = momentum + atoms%mass(atoms%kind(i))*velocity(:, i)
          mass = mass + atoms%mass(atoms%kind(i))
        end do
        block_sums(:, block) = block_sums(:, block) + ((momentum**2/mass/acceleration_unit + coarse) - coarse)
      end do
    end do
    !$omp end parallel do
    energy = 0.5_real64*sum(block_sums, dim=2)
  end function my_group_kinetic_energy

  !> Change velocities (angstrom/ps) of atoms of so many kinds by forces (kcal/mol/angstrom) for a time (ps). `mass`: of
  !> each kind; massless ones stay at rest.
  subroutine kick(mass, kind, force, time, velocity)
    real(real64), intent(in) :: mass(:), force(:, :), time
    integer, intent(in) :: kind(:)
    real(real64), intent(inout) :: velocity(:, :)
    real(real64) :: per_mass(size(mass))
    integer :: i
    per_mass = 0.0_real64
    where (mass > 0.0_real64) per_mass = time*acceleration_unit/mass
    !$omp parallel do schedule(static)
    do i = 1, size(velocity, 2)
      velocity(:, i) = velocity(:, i) + per_mass(kind(i))*force(:, i)
    end do
    !$omp end parallel do
  end subroutine kick

  !> Multiply all velocities by factors along x, y and z; with `of_groups` only those of the centres of mass of the
  !> groups, so that atoms keep their motion within the group.
  subroutine scale_velocities(atoms, factor, of_groups)
    type(atoms_t), intent(inout) :: atoms
    real(real64), intent(in) :: factor(3)
    logical, intent(in) :: of_groups
    real(real64) :: mean(3), mass
    integer :: g, i
    !$omp parallel do schedule(static) private(i, mean, mass)
    do g = 1, atoms%n_groups
      mean = 0.0_real64
      if (of_groups) then
        mass = 0.0_real64
        do i = atoms%group_first(g), atoms%group_first(g + 1) - 1
          mean = mean + atoms%mass(atoms%kind(i))*atoms%velocity(:, i)
          mass = mass + atoms%mass(atoms%kind(i))
        end do
        mean = (factor - 1.0_real64)*mean/mass
      end if
      do i = atoms%group_first(g), atoms%group_first(g + 1) - 1
        if (of_groups) then
          atoms%velocity(:, i) = atoms%velocity(:, i) + mean
        else
          atoms%velocity(:, i) = factor*atoms%velocity(:, i)
        end if
      end do
    end do
    !$omp end parallel do
  end subroutine scale_velocities

  !> Bring the centre of mass of the whole system to rest. Returns the kinetic energy (kcal/mol) that this took away.
  real(real64) function remove_momentum(comm, atoms) result(removed)
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(inout) :: atoms
    real(real64) :: momentum(4), block_sums(4, (atoms%n_groups + groups_per_block - 1)/groups_per_block), coarse
    integer :: block, i
    coarse = atoms%rounding%energy
    !$omp parallel do schedule(static) private(i)
    do block = 1, size(block_sums, 2)
      block_sums(:, block) = 0.0_real64
      do i = atoms%group_first((block - 1)*groups_per_block + 1), &
             atoms%group_first(min(atoms%n_groups, block*groups_per_block) + 1) - 1
        block_sums(:, block) = block_sums(:, block) + &
                               ((atoms%mass(atoms%kind(i))*[atoms%velocity(:, i), 1.0_real64] + coarse) - coarse)
      end do
    end do
    !$omp end parallel do
    momentum = sum(block_sums, dim=2)
    call comm%sum(momentum)
    !$omp parallel do schedule(static)
    do i = 1, atoms%n_owned
      atoms%velocity(:, i) = atoms%velocity(:, i) - momentum(:3)/momentum(4)
    end do
    !$omp end parallel do
    removed = 0.5_real64*sum(momentum(:3)**2)/momentum(4)/acceleration_unit
  end function remove_momentum

  !> Stop the rotation of a system whose centre of mass is at rest and whose atoms are all in one image. Returns the
  !> kinetic energy (kcal/mol) that this took away; atoms in a line are left alone.
  real(real64) function remove_rotation(comm, atoms) result(removed)
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(inout) :: atoms
    real(real64) :: centre(4), sums(9), momentum(3), inertia(3, 3), rate(3), away(3), mass, coarse
    integer :: i
    coarse = atoms%rounding%energy
    centre = 0.0_real64
    do i = 1, atoms%n_owned
      mass = atoms%mass(atoms%kind(i))
      centre = centre + ((mass*[atoms%position(:, i), 1.0_real64] + coarse) - coarse)
    end do
    call comm%sum(centre)
    centre(:3) = centre(:3)/centre(4)
    sums = 0.0_real64
    do i = 1, atoms%n_owned
      mass = atoms%mass(atoms%kind(i))
      away = atoms%position(:, i) - centre(:3)
      sums = sums + ((mass*[cross(away, atoms%velocity(:, i)), away*away, away*away([2, 3, 1])] + coarse) - coarse)
    end do
    call comm%sum(sums)
    momentum = sums(:3)
    inertia(:, 1) = [sums(5) + sums(6), -sums(7), -sums(9)]
    inertia(:, 2) = [-sums(7), sums(4) + sums(6), -sums(8)]
    inertia(:, 3) = [-sums(9), -sums(8), sums(4) + sums(5)]
    removed = 0.0_real64
    if (.not. dot_product(inertia(:, 1), cross(inertia(:, 2), inertia(:, 3))) > 1.0e-9_real64*sum(sums(4:6))**3) return
    rate = solution(inertia, momentum)
    do i = 1, atoms%n_owned
      atoms%velocity(:, i) = atoms%velocity(:, i) - cross(rate, atoms%position(:, i) - centre(:3))
    end do
    removed = 0.5_real64*dot_product(rate, momentum)/acceleration_unit
  end function remove_rotation

  !> The vector x with a x = b, by Cramer's rule.
  pure function solution(a, b) result(x)
    real(real64), intent(in) :: a(3, 3), b(3)
    real(real64) :: x(3)
    x = [dot_product(b, cross(a(:, 2), a(:, 3))), dot_product(a(:, 1), cross(b, a(:, 3))), &
         dot_product(a(:, 1), cross(a(:, 2), b))]/dot_product(a(:, 1), cross(a(:, 2), a(:, 3)))
  end function solution

end module kinetics
