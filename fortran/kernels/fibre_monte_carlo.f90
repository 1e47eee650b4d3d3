!> Metropolis Monte Carlo of a chromatin fibre: the interface that Python calls, and the moves.
!>
!> Every move is a rigid motion of a range of neighbours in the chain (one bead, one core, a crank, an end arm) or a
!> spin of one bead's frame about its segment. All random numbers come in from the caller, eleven for each trial.
module fibre_monte_carlo
  use core_field, only: load_field
  use iso_fortran_env, only: int32, real32, real64
  use fibre_energy, only: fibre_t, near_t, load_fibre, load_limbs, refresh, range_energy, range_pairs, remember_pairs, &
    replace_pairs, add_pairs, full_energy, twist_energy_at, longest_segment, n_terms
  implicit none
  private
  public :: run_trials, total_energy

  integer(int32), parameter :: n_moves = 6, n_random = 11
  integer(int32), parameter :: bead_translation = 1, core_translation = 2, core_rotation = 3, crank = 4, end_pivot = 5, &
    bead_spin = 6
  integer(int32), parameter :: twist_term = 3, floor_term = 6
  real(real64), parameter :: pi = acos(-1.0_real64)

contains

  !> Make n_trials trials. Positions, frames (columns) and the energy of each term are updated in place.
  !> `weight` holds the cumulative probability of each kind of move, `step` its largest displacement (nm or radian).
  !> With strict = 1 a move that would raise the floor energy is refused outright.
  subroutine run_trials(n, n_beads, n_cores, n_sites, n_limbs, n_spheres, n_contacts, n_trials, position, frame, core, &
      linker, &
      rest_length, stretch_k, bend_k, twist_k, rest_twist, charge, joint_point, joint_frame, site, site_charge, &
      limb, limb_charge, limb_kind, sigma, strength, nx, ny, nz, n_cells, n_near, coefficient, cells, cell_first, cell_site, &
      field_scalar, sphere, sphere_radius, sphere_near, contact, contact_k, contact_distance, scalar, beads, cores, longest, &
      strict, weight, step, random, energy, tried, accepted)
    integer(int32), intent(in) :: n, n_beads, n_cores, n_sites, n_limbs, n_spheres, n_contacts, n_trials, longest, strict
    real(real64), intent(inout) :: position(3, n), frame(3, 3, n), energy(8)
    integer(int32), intent(in) :: core(n), linker(n - 1), sphere_near(2, n_spheres), contact(2, n_contacts)
    integer(int32), intent(in) :: beads(n_beads), cores(n_cores)
    real(real64), intent(in) :: rest_length(n - 1), stretch_k(n - 1), bend_k(n - 1), twist_k(n - 1), rest_twist(n - 1)
    real(real64), intent(in) :: charge(n), joint_point(3, 2), joint_frame(3, 3, 2)
    real(real64), intent(in) :: site(3, n_sites), site_charge(n_sites), sphere(3, n_spheres), sphere_radius(n_spheres)
    real(real64), intent(in) :: limb(3, n_limbs, n_cores), limb_charge(n_limbs, n_cores), sigma(5, 5), strength(5, 5)
    integer(int32), intent(in) :: limb_kind(n_limbs, n_cores)
    integer(int32), intent(in) :: nx, ny, nz, n_cells, n_near, cells(3), cell_first(n_cells), cell_site(n_near)
    real(real32), intent(in) :: coefficient(4, nx, ny, nz)
    real(real64), intent(in) :: field_scalar(11)
    real(real64), intent(in) :: contact_k(n_contacts), contact_distance(n_contacts), scalar(16)
    real(real64), intent(in) :: weight(6), step(6), random(11, n_trials)
    integer(int32), intent(out) :: tried(6), accepted(6)
    type(fibre_t) :: fibre
    integer(int32) :: trial, move
    logical :: success
    call load_fibre(fibre, n, n_cores, n_sites, n_spheres, position, frame, core, linker, rest_length, stretch_k, bend_k, &
      twist_k, rest_twist, charge, joint_point, joint_frame, site, site_charge, sphere, sphere_radius, sphere_near, &
      contact, contact_k, contact_distance, scalar)
    call load_limbs(fibre, limb, limb_charge, limb_kind, sigma, strength)
    call load_field(fibre%field, site, site_charge, coefficient, cells, cell_first, cell_site, field_scalar)
    call remember_pairs(fibre)
    tried = 0
    accepted = 0
    do trial = 1, n_trials
      do move = 1, n_moves - 1
        if (random(1, trial) < weight(move)) exit
      end do
      call try_move(fibre, move, random(:, trial), beads, cores, longest, strict /= 0, step(move), energy, success)
      tried(move) = tried(move) + 1
      if (success) accepted(move) = accepted(move) + 1
    end do
    position = fibre%position
    frame = fibre%frame
  end subroutine run_trials

  !> Energy of every term, computed from scratch.
  subroutine total_energy(n, n_cores, n_sites, n_limbs, n_spheres, n_contacts, position, frame, core, linker, &
      rest_length, stretch_k, bend_k, twist_k, rest_twist, charge, joint_point, joint_frame, site, site_charge, &
      limb, limb_charge, limb_kind, sigma, strength, nx, ny, nz, n_cells, n_near, coefficient, cells, cell_first, cell_site, &
      field_scalar, sphere, sphere_radius, sphere_near, contact, contact_k, contact_distance, scalar, energy)
    integer(int32), intent(in) :: n, n_cores, n_sites, n_limbs, n_spheres, n_contacts
    real(real64), intent(in) :: position(3, n), frame(3, 3, n)
    integer(int32), intent(in) :: core(n), linker(n - 1), sphere_near(2, n_spheres), contact(2, n_contacts)
    real(real64), intent(in) :: rest_length(n - 1), stretch_k(n - 1), bend_k(n - 1), twist_k(n - 1), rest_twist(n - 1)
    real(real64), intent(in) :: charge(n), joint_point(3, 2), joint_frame(3, 3, 2)
    real(real64), intent(in) :: site(3, n_sites), site_charge(n_sites), sphere(3, n_spheres), sphere_radius(n_spheres)
    real(real64), intent(in) :: limb(3, n_limbs, n_cores), limb_charge(n_limbs, n_cores), sigma(5, 5), strength(5, 5)
    integer(int32), intent(in) :: limb_kind(n_limbs, n_cores)
    integer(int32), intent(in) :: nx, ny, nz, n_cells, n_near, cells(3), cell_first(n_cells), cell_site(n_near)
    real(real32), intent(in) :: coefficient(4, nx, ny, nz)
    real(real64), intent(in) :: field_scalar(11)
    real(real64), intent(in) :: contact_k(n_contacts), contact_distance(n_contacts), scalar(16)
    real(real64), intent(out) :: energy(8)
    type(fibre_t) :: fibre
    call load_fibre(fibre, n, n_cores, n_sites, n_spheres, position, frame, core, linker, rest_length, stretch_k, bend_k, &
      twist_k, rest_twist, charge, joint_point, joint_frame, site, site_charge, sphere, sphere_radius, sphere_near, &
      contact, contact_k, contact_distance, scalar)
    call load_limbs(fibre, limb, limb_charge, limb_kind, sigma, strength)
    call load_field(fibre%field, site, site_charge, coefficient, cells, cell_first, cell_site, field_scalar)
    energy = full_energy(fibre)
  end subroutine total_energy

  !> One trial: choose, move, weigh by Metropolis, undo if refused.
  subroutine try_move(fibre, move, random, beads, cores, longest, strict, step, energy, success)
    type(fibre_t), intent(inout) :: fibre
    integer(int32), intent(in) :: move, beads(:), cores(:), longest
    real(real64), intent(in) :: random(n_random), step
    logical, intent(in) :: strict
    real(real64), intent(inout) :: energy(n_terms)
    logical, intent(out) :: success
    integer(int32) :: first, last, p, low, high
    real(real64) :: before(n_terms), after(n_terms), shift(3), rotation(3, 3), centre(3), axis(3)
    real(real64), allocatable :: old_position(:, :), old_frame(:, :, :), new_position(:, :), new_frame(:, :, :)
    type(near_t), allocatable :: fresh(:)
    success = .false.
    shift = 0
    centre = 0
    rotation = reshape([1, 0, 0, 0, 1, 0, 0, 0, 1], [3, 3])
    select case (move)
    case (bead_translation)
      if (size(beads) == 0) return
      first = pick(random(2), beads)
      last = first
      shift = step * (2 * random(4:6) - 1)
    case (core_translation)
      if (size(cores) == 0) return
      first = pick(random(2), cores)
      last = first
      shift = step * (2 * random(4:6) - 1)
    case (core_rotation)
      if (size(cores) == 0) return
      first = pick(random(2), cores)
      last = first
      centre = fibre%position(:, first)
      rotation = turn(random_axis(random(7:8)), step * (2 * random(9) - 1))
    case (crank)
      ! Particles first..last turn about the line through the standing points on either side.
      first = 2 + int(random(2) * (fibre%n - 2), int32)
      last = first + int(random(3)**2 * longest, int32)   ! more short ones than long ones
      if (first > fibre%n - 1 .or. last > fibre%n - 1) return
      centre = fibre%exit_point(:, first - 1)
      axis = fibre%entry_point(:, last + 1) - centre
      if (norm2(axis) < 1.0e-6_real64) return
      rotation = turn(axis / norm2(axis), step * (2 * random(9) - 1))
    case (end_pivot)
      first = int(random(3) * min(longest, fibre%n - 1), int32) + 1
      if (random(2) < 0.5_real64) then
        last = first
        first = 1
        centre = fibre%entry_point(:, last + 1)
      else
        last = fibre%n
        first = fibre%n - first + 1
        centre = fibre%exit_point(:, first - 1)
      end if
      rotation = turn(random_axis(random(7:8)), step * (2 * random(9) - 1))
    case (bead_spin)
      if (size(beads) == 0) return
      call try_spin(fibre, pick(random(2), beads), step * (2 * random(9) - 1), random(11), energy, success)
      return
    end select

    low = max(1, first - 1)
    high = min(fibre%n, last + 1)
    before = range_energy(fibre, first, last)
    old_position = fibre%position(:, low:high)
    old_frame = fibre%frame(:, :, low:high)
    do p = first, last
      fibre%position(:, p) = matmul(rotation, fibre%position(:, p) - centre) + centre + shift
      fibre%frame(:, :, p) = orthonormal(matmul(rotation, fibre%frame(:, :, p)))
    end do
    call refresh(fibre, first, last)
    after = range_energy(fibre, first, last)
    success = .not. (strict .and. after(floor_term) > before(floor_term)) &
      .and. maxval(fibre%length(max(1, first - 1):min(fibre%n - 1, last))) < longest_segment
    if (success) then
      ! Charges cost most: only for what the floors allow.
      allocate (fresh(first:last))
      call range_pairs(fibre, first, last, fresh)
      call add_pairs(fresh, first, last, after)
      call add_pairs(fibre%near(first:last), first, last, before)
      new_position = fibre%position(:, low:high)
      new_frame = fibre%frame(:, :, low:high)
      call put(old_position, old_frame)
      success = sum(after) - sum(before) <= -log(max(random(11), tiny(1.0_real64)))
      if (success) then
        energy = energy + after - before
        call put(new_position, new_frame)
        call replace_pairs(fibre, first, last, fresh)
      end if
    else
      call put(old_position, old_frame)
    end if
  contains
    subroutine put(position, frame)
      real(real64), intent(in) :: position(:, :), frame(:, :, :)
      fibre%position(:, low:high) = position
      fibre%frame(:, :, low:high) = frame
      call refresh(fibre, first, last)
    end subroutine put
  end subroutine try_move

  !> Turn a bead's frame about its segment: only twist changes.
  subroutine try_spin(fibre, p, angle, random, energy, success)
    type(fibre_t), intent(inout) :: fibre
    integer(int32), intent(in) :: p
    real(real64), intent(in) :: angle, random
    real(real64), intent(inout) :: energy(n_terms)
    logical, intent(out) :: success
    real(real64) :: old(3, 3), difference
    success = .false.
    if (p == fibre%n) return
    old = fibre%frame(:, :, p)
    difference = -spin_energy()
    fibre%frame(:, 2, p) = cos(angle) * old(:, 2) + sin(angle) * old(:, 3)
    fibre%frame(:, 3, p) = cos(angle) * old(:, 3) - sin(angle) * old(:, 2)
    difference = difference + spin_energy()
    success = difference <= -log(max(random, tiny(1.0_real64)))
    if (success) then
      energy(twist_term) = energy(twist_term) + difference
    else
      fibre%frame(:, :, p) = old
    end if
  contains
    function spin_energy() result(value)
      real(real64) :: value
      value = twist_energy_at(fibre, p)
      if (p > 1) value = value + twist_energy_at(fibre, p - 1)
    end function spin_energy
  end subroutine try_spin

  pure function pick(random, list) result(item)
    real(real64), intent(in) :: random
    integer(int32), intent(in) :: list(:)
    integer(int32) :: item
    item = list(min(size(list), 1 + int(random * size(list))))
  end function pick

  !> A direction evenly spread over the sphere, from two numbers in [0, 1).
  pure function random_axis(random) result(axis)
    real(real64), intent(in) :: random(2)
    real(real64) :: axis(3), z, rho
    z = 2 * random(1) - 1
    rho = sqrt(max(0.0_real64, 1 - z * z))
    axis = [rho * cos(2 * pi * random(2)), rho * sin(2 * pi * random(2)), z]
  end function random_axis

  !> Rotation matrix for an angle about a unit axis (Rodrigues).
  pure function turn(axis, angle) result(rotation)
    real(real64), intent(in) :: axis(3), angle
    real(real64) :: rotation(3, 3), c, s
    integer(int32) :: i, j
    c = cos(angle)
    s = sin(angle)
    do j = 1, 3
      do i = 1, 3
        rotation(i, j) = (1 - c) * axis(i) * axis(j)
      end do
      rotation(j, j) = rotation(j, j) + c
    end do
    rotation(3, 2) = rotation(3, 2) + s * axis(1)
    rotation(2, 3) = rotation(2, 3) - s * axis(1)
    rotation(1, 3) = rotation(1, 3) + s * axis(2)
    rotation(3, 1) = rotation(3, 1) - s * axis(2)
    rotation(2, 1) = rotation(2, 1) + s * axis(3)
    rotation(1, 2) = rotation(1, 2) - s * axis(3)
  end function turn

  !> The columns made orthonormal again, so that rounding errors of many rotations do not add up.
  pure function orthonormal(frame) result(f)
    real(real64), intent(in) :: frame(3, 3)
    real(real64) :: f(3, 3)
    f(:, 1) = frame(:, 1) / norm2(frame(:, 1))
    f(:, 2) = frame(:, 2) - dot_product(frame(:, 2), f(:, 1)) * f(:, 1)
    f(:, 2) = f(:, 2) / norm2(f(:, 2))
    f(1, 3) = f(2, 1) * f(3, 2) - f(3, 1) * f(2, 2)
    f(2, 3) = f(3, 1) * f(1, 2) - f(1, 1) * f(3, 2)
    f(3, 3) = f(1, 1) * f(2, 2) - f(2, 1) * f(1, 2)
  end function orthonormal

end module fibre_monte_carlo
