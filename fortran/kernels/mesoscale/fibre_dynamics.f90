!> Dynamics of a fibre together with its flexible chains (histone tails, tails of linker histones), in the energy that
!> Monte Carlo samples: fibre_forces moves cores and linkers, and beads of chains move beside them.
!>
!> Springs of chains act in every step, like the elastic terms of the fibre; charges and excluded volume push every few
!> steps, as many times harder. Cores meet charges by the table of their field.
module fibre_dynamics
  use body_motion, only: displace, set_masses, push_core, limit, largest_shift
  use chain_model, only: chains_t, chains_of
  use charged_points, only: points_t, make_points, add_charges
  use fibre_forces, only: all_forces
  use fibre_model, only: fibre_t, fibre_of, worth_threads
  use floor_pairs, only: pairs_t, list_pairs, moved_far
  use iso_fortran_env, only: int32, int64, real64
  implicit none
  private
  public :: run_dynamics, dynamics_forces

  real(real64), parameter :: tail_mass = 4

contains

  !> n_steps of dynamics without friction of a fibre with a table of its cores' field, and of its chains, from where both
  !> were placed. Charges act every `charge_interval` steps.
  subroutine run_dynamics(fibre_handle, chains_handle, n, n_beads, n_steps, charge_interval, step, margin, closest, velocity, &
      bead_velocity, energy)
    integer(int64), intent(in) :: fibre_handle, chains_handle
    integer(int32), intent(in) :: n, n_beads       !< particles, beads of chains
    integer(int32), intent(in) :: n_steps, charge_interval
    real(real64), intent(in) :: step               !< units of time
    real(real64), intent(in) :: margin             !< nm by which every floor is widened
    real(real64), intent(in) :: closest   !< of sigma: nearer, charges do not act and excluded volume pushes no harder
    real(real64), intent(inout) :: velocity(7, n + 1), bead_velocity(3, n_beads)
    real(real64), intent(out) :: energy(7)   !< kBT: elastic, floor, restraint, confinement, 0, charges at their last push, springs
    type(fibre_t), pointer :: fibre
    type(chains_t), pointer :: chains
    type(points_t) :: points
    type(pairs_t) :: pairs
    real(real64) :: force(7, n + 1), inverse_mass(7, n + 1), bead_force(3, n_beads)
    integer(int32) :: k, i, pushes
    fibre => fibre_of(fibre_handle)
    chains => chains_of(chains_handle)
    call make_points(points, fibre, chains, closest)
    call set_masses(fibre, .false., inverse_mass)
    call list_pairs(fibre, margin, .false., pairs)
    energy = 0
    do k = 1, n_steps
      pushes = merge(charge_interval, 0, mod(k, charge_interval) == 0)
      call forces(fibre, chains, points, pairs, margin, pushes, force, bead_force, energy)
      velocity = velocity + step * force * inverse_mass
      bead_velocity = bead_velocity + step / tail_mass * bead_force
      do i = 1, n_beads
        call limit(bead_velocity(:, i), largest_shift / step)
      end do
      chains%position = chains%position + step * bead_velocity
      call displace(fibre, velocity, step)
      if (moved_far(fibre, pairs)) call list_pairs(fibre, margin, .false., pairs)
    end do
  end subroutine run_dynamics

  !> Forces where both were placed, and the energies; for tests.
  subroutine dynamics_forces(fibre_handle, chains_handle, n, n_beads, force, bead_force, energy)
    integer(int64), intent(in) :: fibre_handle, chains_handle
    integer(int32), intent(in) :: n, n_beads
    real(real64), intent(out) :: force(7, n + 1), bead_force(3, n_beads)   !< kBT/nm and kBT
    real(real64), intent(out) :: energy(7)         !< kBT, as in `run_dynamics`
    type(fibre_t), pointer :: fibre
    type(chains_t), pointer :: chains
    type(points_t) :: points
    type(pairs_t) :: pairs
    fibre => fibre_of(fibre_handle)
    chains => chains_of(chains_handle)
    call make_points(points, fibre, chains, 0.0_real64)
    call list_pairs(fibre, 0.0_real64, .false., pairs)
    energy = 0
    call forces(fibre, chains, points, pairs, 0.0_real64, 1, force, bead_force, energy)
  end subroutine dynamics_forces

  !> Forces on the fibre (7, n+1) and on the chains' beads, those of charges times `pushes`.
  subroutine forces(fibre, chains, points, pairs, margin, pushes, force, bead_force, energy)
    type(fibre_t), intent(in) :: fibre
    type(chains_t), intent(in) :: chains
    type(points_t), intent(inout) :: points
    type(pairs_t), intent(in) :: pairs
    real(real64), intent(in) :: margin
    integer(int32), intent(in) :: pushes
    real(real64), intent(out) :: force(:, :), bead_force(:, :)
    real(real64), intent(inout) :: energy(7)
    call all_forces(fibre, pairs, margin, 0.0_real64, 0.0_real64, 0, force, energy(1:6))
    bead_force = 0
    energy(7) = 0
    call add_springs(fibre, chains, force, bead_force, energy(7))
    if (pushes == 0) return
    energy(6) = 0
    call add_charges(points, fibre, chains, real(pushes, real64), force, bead_force, energy(6))
  end subroutine forces

  !> Bonds, angles and tethers.
  subroutine add_springs(fibre, chains, force, bead_force, energy)
    type(fibre_t), intent(in) :: fibre
    type(chains_t), intent(in) :: chains
    real(real64), intent(inout) :: force(:, :), bead_force(:, :), energy
    integer(int32) :: c, i, a, p
    real(real64) :: d(3), u(3), v(3), length, other, cosine, sine, theta, slope, on_first(3), on_last(3)
    real(real64), dimension(3, size(chains%core)) :: anchor, pull
    real(real64) :: of_chain(size(chains%core))
    !$omp parallel do private(i, a, p, d, u, v, length, other, cosine, sine, theta, slope, on_first, on_last) &
    !$omp& if(fibre%n >= worth_threads)
    do c = 1, size(chains%core)
      a = chains%first(c)
      p = fibre%core_particle(chains%core(c))
      anchor(:, c) = fibre%position(:, p) + matmul(fibre%frame(:, :, p), chains%anchor(:, c))
      d = chains%tether_k(c) * (chains%position(:, a) - anchor(:, c))
      of_chain(c) = 0.5_real64 * dot_product(d, d) / chains%tether_k(c)
      bead_force(:, a) = bead_force(:, a) - d
      pull(:, c) = d
      do i = a + 1, chains%first(c + 1) - 1
        u = chains%position(:, i) - chains%position(:, i - 1)
        length = norm2(u)
        u = u / length
        slope = chains%bond_k(i) * (length - chains%bond_length(i))
        of_chain(c) = of_chain(c) + 0.5_real64 * slope * (length - chains%bond_length(i))
        bead_force(:, i) = bead_force(:, i) - slope * u
        bead_force(:, i - 1) = bead_force(:, i - 1) + slope * u
        if (i == a + 1) cycle
        ! The angle at bead i-1, between u and v.
        v = chains%position(:, i - 2) - chains%position(:, i - 1)
        other = norm2(v)
        v = v / other
        cosine = dot_product(u, v)
        sine = norm2([u(2) * v(3) - u(3) * v(2), u(3) * v(1) - u(1) * v(3), u(1) * v(2) - u(2) * v(1)])
        theta = atan2(sine, cosine)
        slope = chains%angle_k(i) * (theta - chains%angle(i))
        of_chain(c) = of_chain(c) + 0.5_real64 * slope * (theta - chains%angle(i))
        on_last = -slope / max(sine, 1.0e-3_real64) * (cosine * u - v) / length
        on_first = -slope / max(sine, 1.0e-3_real64) * (cosine * v - u) / other
        bead_force(:, i) = bead_force(:, i) + on_last
        bead_force(:, i - 2) = bead_force(:, i - 2) + on_first
        bead_force(:, i - 1) = bead_force(:, i - 1) - on_last - on_first
      end do
    end do
    !$omp end parallel do
    do c = 1, size(chains%core)   ! several chains pull at one core
      call push_core(fibre, fibre%core_particle(chains%core(c)), anchor(:, c), pull(:, c), force)
      energy = energy + of_chain(c)
    end do
  end subroutine add_springs

end module fibre_dynamics
