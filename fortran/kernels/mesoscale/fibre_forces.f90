!> Forces of a fibre on its elastic, floor, restraint and confinement energy and on that of charges summed site by site, and
!> how its parts move: what fibre_relaxation and fibre_dynamics have in common.
!>
!> Coordinates are the positions of particles, the rotations of cores, the spins of beads about their segments and,
!> under pressure, the edges of a box with soft walls. Forces are analytic: a joint of two frames with tangents t1, t2
!> bent by beta and twisted by psi turns its second frame with -k beta (t1 x t2)/sin(beta) and
!> -dE/dpsi (t1 + t2)/(1 + t1.t2) (the gradient of holonomy; Bergou et al., ACM Trans. Graph. 27:63, 2008), its first
!> frame with the opposite.
module fibre_forces
  use iso_fortran_env, only: int32, real64
  use fibre_energy, only: fibre_t, refresh_particle, refresh_segment, closest_points, transported, cross, &
    are_close_in_chain, continued_end, worth_threads
  use fibre_grid, only: grid_t, make_grid, points_near
  implicit none
  private
  public :: pairs_t, list_pairs, moved_far, all_forces, displace, set_masses, push_core, limit, append
  public :: n_freedoms, largest_shift, skin, n_shares

  integer(int32), parameter :: n_freedoms = 7   !< of a particle: three shifts, three turns of a core, spin of a bead
  real(real64), parameter :: pi = acos(-1.0_real64)
  real(real64), parameter :: skin = 1.0_real64  !< nm; pairs are listed this far beyond contact
  ! Masses (kBT per square of nm and unit of time): they only set how fast things move on the way to a minimum.
  real(real64), parameter :: bead_mass = 4, bead_inertia = 4, core_mass = 8, core_inertia = 64, &
    wall_mass = 200
  real(real64), parameter :: largest_shift = 0.1_real64, largest_turn = 0.05_real64

  !> Work is divided into so many shares, whatever the number of threads, and put together in their order: results do not
  !> depend on threads.
  integer(int32), parameter :: n_shares = 16

  real(real64), parameter :: closest = 0.5_real64  !< of sigma: nearer, excluded volume pushes no harder

  !> Pairs of floor bodies that may touch, and of particles whose charges may, before the list is made again.
  type :: pairs_t
    integer(int32) :: spheres = 0, capsules = 0, mixed = 0, charged = 0
    integer(int32), allocatable :: sphere_pair(:, :)   !< core, sphere, core, sphere
    integer(int32), allocatable :: capsule_pair(:, :)  !< segment, segment
    integer(int32), allocatable :: mixed_pair(:, :)    !< segment, core, sphere
    integer(int32), allocatable :: charged_pair(:, :)  !< particle, particle
    real(real64), allocatable :: sphere_world(:, :, :), segment_start(:, :), segment_end(:, :)  !< when it was made
  end type pairs_t

contains

  !> What cannot move has no inverse mass.
  pure subroutine set_masses(self, walls_move, inverse_mass)
    type(fibre_t), intent(in) :: self
    logical, intent(in) :: walls_move
    real(real64), intent(out) :: inverse_mass(:, :)
    integer(int32) :: p
    inverse_mass = 0
    do p = 1, self%n
      if (self%core(p) /= 0) then
        inverse_mass(1:3, p) = 1 / core_mass
        inverse_mass(4:6, p) = 1 / core_inertia
      else
        inverse_mass(1:3, p) = 1 / bead_mass
        if (p < self%n) inverse_mass(7, p) = 1 / bead_inertia
      end if
    end do
    if (walls_move) inverse_mass(1:3, self%n + 1) = 1 / wall_mass
  end subroutine set_masses

  subroutine displace(self, velocity, time_step)
    type(fibre_t), intent(inout) :: self
    real(real64), intent(inout) :: velocity(:, :)
    real(real64), intent(in) :: time_step
    integer(int32) :: p
    real(real64) :: b(3), angle
    !$omp parallel if(self%n >= worth_threads)
    !$omp do private(b, angle) schedule(static)
    do p = 1, self%n
      call limit(velocity(1:3, p), largest_shift / time_step)
      self%position(:, p) = self%position(:, p) + time_step * velocity(1:3, p)
      if (self%core(p) /= 0) then
        call limit(velocity(4:6, p), largest_turn / time_step)
        call turn_frame(self%frame(:, :, p), time_step * velocity(4:6, p))
      else
        angle = time_step * velocity(7, p)
        b = cos(angle) * self%frame(:, 2, p) + sin(angle) * self%frame(:, 3, p)
        self%frame(:, 3, p) = cos(angle) * self%frame(:, 3, p) - sin(angle) * self%frame(:, 2, p)
        self%frame(:, 2, p) = b
      end if
      call refresh_particle(self, p)
    end do
    !$omp end do
    !$omp do schedule(static)
    do p = 1, self%n - 1
      call refresh_segment(self, p)
    end do
    !$omp end do
    !$omp end parallel
    call limit(velocity(1:3, self%n + 1), largest_shift / time_step)
    self%wall = self%wall + time_step * velocity(1:3, self%n + 1)
  end subroutine displace

  pure subroutine limit(v, most)
    real(real64), intent(inout) :: v(3)
    real(real64), intent(in) :: most
    real(real64) :: size2
    size2 = dot_product(v, v)
    if (size2 > most**2) v = v * (most / sqrt(size2))
  end subroutine limit

  !> Turn a frame by a rotation vector and make it orthonormal again.
  pure subroutine turn_frame(f, by)
    real(real64), intent(inout) :: f(3, 3)
    real(real64), intent(in) :: by(3)
    real(real64) :: angle, axis(3), c, s
    integer(int32) :: k
    angle = norm2(by)
    if (angle < 1.0e-14_real64) return
    axis = by / angle
    c = cos(angle)
    s = sin(angle)
    do k = 1, 3
      f(:, k) = c * f(:, k) + s * cross(axis, f(:, k)) + (1 - c) * dot_product(axis, f(:, k)) * axis
    end do
    f(:, 1) = f(:, 1) / norm2(f(:, 1))
    f(:, 2) = f(:, 2) - dot_product(f(:, 2), f(:, 1)) * f(:, 1)
    f(:, 2) = f(:, 2) / norm2(f(:, 2))
    f(:, 3) = cross(f(:, 1), f(:, 2))
  end subroutine turn_frame

  !> Forces on all freedoms, those of charges times `pushes`, and the energies elastic, floor, restraint, confinement,
  !> p V, charges; the last stays as it is without a push.
  subroutine all_forces(self, pairs, margin, pressure, rim, pushes, force, energy)
    type(fibre_t), intent(in) :: self
    type(pairs_t), intent(in) :: pairs
    real(real64), intent(in) :: margin, pressure, rim
    integer(int32), intent(in) :: pushes
    real(real64), intent(out) :: force(:, :)
    real(real64), intent(inout) :: energy(6)
    real(real64) :: at_start(3, self%n - 1), at_end(3, self%n - 1), torque(3, self%n - 1)
    force = 0
    energy(1:5) = 0
    if (pushes > 0) energy(6) = 0
    at_start = 0
    at_end = 0
    torque = 0
    call add_elastic(self, force, at_start, at_end, torque, energy(1))
    call add_floors(self, pairs, margin, force, at_start, at_end, energy(2))
    call add_contacts(self, force, energy(3))
    call add_confinement(self, force, energy(4))
    if (pushes > 0) call add_charges(self, pairs, real(pushes, real64), force, energy(6))
    if (pressure > 0) then
      force(1:3, self%n + 1) = force(1:3, self%n + 1) &
        - 8 * pressure * (self%wall([2, 1, 1]) + rim) * (self%wall([3, 3, 2]) + rim)
      energy(5) = 8 * pressure * product(self%wall + rim)
    end if
    call hand_to_particles(self, at_start, at_end, torque, force)
  end subroutine all_forces

  subroutine add_elastic(self, force, at_start, at_end, torque, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(inout) :: force(:, :), at_start(:, :), at_end(:, :), torque(:, :), energy
    integer(int32) :: p
    real(real64) :: pull(3), t(3), t_next(3), b(3), b_next(3), turn(3), deviation, slope
    do p = 1, self%n - 1
      pull = self%stretch_k(p) * (self%length(p) - self%rest_length(p)) * self%direction(:, p)
      at_start(:, p) = at_start(:, p) + pull
      at_end(:, p) = at_end(:, p) - pull
      energy = energy + 0.5_real64 * self%stretch_k(p) * (self%length(p) - self%rest_length(p))**2
    end do
    do p = 1, self%n
      if (self%core(p) /= 0) then
        if (p < self%n) then
          call bend(self%exit_frame(:, 1, p), self%direction(:, p), self%bend_k(p), turn, energy)
          torque(:, p) = torque(:, p) + turn
          force(4:6, p) = force(4:6, p) - turn
        end if
        if (p > 1) then
          call bend(self%direction(:, p - 1), self%entry_frame(:, 1, p), self%bend_k(p - 1), turn, energy)
          force(4:6, p) = force(4:6, p) + turn
          torque(:, p - 1) = torque(:, p - 1) - turn
        end if
      else if (p > 1 .and. p < self%n) then
        call bend(self%direction(:, p - 1), self%direction(:, p), 0.5_real64 * (self%bend_k(p - 1) + self%bend_k(p)), &
          turn, energy)
        torque(:, p) = torque(:, p) + turn
        torque(:, p - 1) = torque(:, p - 1) - turn
      end if
    end do
    do p = 1, self%n - 1
      if (self%twist_k(p) <= 0) cycle
      t = self%direction(:, p)
      if (self%core(p) /= 0) then
        b = transported(self%exit_frame(:, 2, p), self%exit_frame(:, 1, p), t)
      else
        b = self%frame(:, 2, p)
      end if
      if (self%core(p + 1) /= 0) then
        t_next = self%entry_frame(:, 1, p + 1)
        b_next = self%entry_frame(:, 2, p + 1)
      else
        t_next = self%direction(:, p + 1)
        b_next = self%frame(:, 2, p + 1)
      end if
      deviation = twist_angle(t, b, t_next, b_next) - self%rest_twist(p)
      deviation = deviation - 2 * pi * anint(deviation / (2 * pi))
      slope = self%twist_k(p) * deviation
      energy = energy + 0.5_real64 * slope * deviation
      turn = -slope * (t + t_next) / max(1 + dot_product(t, t_next), 1.0e-3_real64)
      torque(:, p) = torque(:, p) - turn
      if (self%core(p + 1) /= 0) then
        force(4:6, p + 1) = force(4:6, p + 1) + turn
      else
        torque(:, p + 1) = torque(:, p + 1) + turn
      end if
    end do
  end subroutine add_elastic

  pure function twist_angle(t, b, t_next, b_next) result(psi)
    real(real64), intent(in) :: t(3), b(3), t_next(3), b_next(3)
    real(real64) :: psi, c(3), c_next(3)
    c = cross(t, b)
    c_next = cross(t_next, b_next)
    psi = atan2(dot_product(c, b_next) - dot_product(b, c_next), dot_product(b, b_next) + dot_product(c, c_next))
  end function twist_angle

  !> Energy of a bend and the torque on the frame behind it.
  pure subroutine bend(t, t_next, stiffness, turn, energy)
    real(real64), intent(in) :: t(3), t_next(3), stiffness
    real(real64), intent(out) :: turn(3)
    real(real64), intent(inout) :: energy
    real(real64) :: axis(3), sine, beta
    axis = cross(t, t_next)
    sine = norm2(axis)
    beta = atan2(sine, dot_product(t, t_next))
    energy = energy + 0.5_real64 * stiffness * beta**2
    turn = -stiffness * axis
    if (sine > 1.0e-6_real64) turn = turn * (beta / sine)
  end subroutine bend

  subroutine add_floors(self, pairs, margin, force, at_start, at_end, energy)
    type(fibre_t), intent(in) :: self
    type(pairs_t), intent(in) :: pairs
    real(real64), intent(in) :: margin
    real(real64), intent(inout) :: force(:, :), at_start(:, :), at_end(:, :), energy
    integer(int32) :: k, p, q, i, j, s, t
    real(real64) :: a(3), b(3), d(3), contact, distance, along, other, push(3)
    do k = 1, pairs%spheres
      p = pairs%sphere_pair(1, k)
      i = pairs%sphere_pair(2, k)
      q = pairs%sphere_pair(3, k)
      j = pairs%sphere_pair(4, k)
      a = self%sphere_world(:, i, self%core(p))
      b = self%sphere_world(:, j, self%core(q))
      d = a - b
      contact = self%sphere_radius(i) + self%sphere_radius(j) + margin
      if (dot_product(d, d) >= contact**2) cycle
      distance = norm2(d)
      push = d * (self%floor_k * (contact - distance) / max(distance, 1.0e-9_real64))
      energy = energy + 0.5_real64 * self%floor_k * (contact - distance)**2
      call push_core(self, p, a, push, force)
      call push_core(self, q, b, -push, force)
    end do
    do k = 1, pairs%mixed
      s = pairs%mixed_pair(1, k)
      p = pairs%mixed_pair(2, k)
      i = pairs%mixed_pair(3, k)
      b = self%sphere_world(:, i, self%core(p))
      along = min(1.0_real64, max(0.0_real64, dot_product(b - self%segment_start(:, s), self%direction(:, s)) / self%length(s)))
      d = self%segment_start(:, s) + along * self%length(s) * self%direction(:, s) - b
      contact = self%dna_radius + self%sphere_radius(i) + margin
      if (dot_product(d, d) >= contact**2) cycle
      distance = norm2(d)
      push = d * (self%floor_k * (contact - distance) / max(distance, 1.0e-9_real64))
      energy = energy + 0.5_real64 * self%floor_k * (contact - distance)**2
      at_start(:, s) = at_start(:, s) + (1 - along) * push
      at_end(:, s) = at_end(:, s) + along * push
      call push_core(self, p, b, -push, force)
    end do
    do k = 1, pairs%capsules
      s = pairs%capsule_pair(1, k)
      t = pairs%capsule_pair(2, k)
      call closest_points(self%segment_start(:, s), self%segment_end(:, s), self%segment_start(:, t), &
        self%segment_end(:, t), distance, along, other)
      contact = 2 * self%dna_radius + margin
      if (distance >= contact) cycle
      d = self%segment_start(:, s) + along * self%length(s) * self%direction(:, s) &
        - self%segment_start(:, t) - other * self%length(t) * self%direction(:, t)
      push = d * (self%floor_k * (contact - distance) / max(distance, 1.0e-9_real64))
      energy = energy + 0.5_real64 * self%floor_k * (contact - distance)**2
      at_start(:, s) = at_start(:, s) + (1 - along) * push
      at_end(:, s) = at_end(:, s) + along * push
      at_start(:, t) = at_start(:, t) - (1 - other) * push
      at_end(:, t) = at_end(:, t) - other * push
    end do
  end subroutine add_floors

  pure subroutine push_core(self, p, point, push, force)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p
    real(real64), intent(in) :: point(3), push(3)
    real(real64), intent(inout) :: force(:, :)
    force(1:3, p) = force(1:3, p) + push
    force(4:6, p) = force(4:6, p) + cross(point - self%position(:, p), push)
  end subroutine push_core

  !> Electrostatics and excluded volume of the listed pairs, as fibre_energy has them; forces times `scale`.
  subroutine add_charges(self, pairs, scale, force, energy)
    type(fibre_t), intent(in) :: self
    type(pairs_t), intent(in) :: pairs
    real(real64), intent(in) :: scale
    real(real64), intent(inout) :: force(:, :), energy
    integer(int32) :: k, p, q, i, n
    real(real64) :: a(3), d(3), reach, push(3)
    real(real64), dimension(max(1, size(self%site, 2))) :: x, y, z, charge, on_x, on_y, on_z
    do k = 1, pairs%charged
      p = pairs%charged_pair(1, k)
      q = pairs%charged_pair(2, k)
      d = self%position(:, p) - self%position(:, q)
      if (self%core(q) == 0) then   ! then p is a bead too
        if (dot_product(d, d) >= self%cutoff**2) cycle
        x(1) = self%position(1, q)
        y(1) = self%position(2, q)
        z(1) = self%position(3, q)
        charge(1) = self%charge(q)
        on_x(1) = 0
        on_y(1) = 0
        on_z(1) = 0
        call push_point(self, self%position(:, p), self%charge(p), 1, 1, x, y, z, charge, push, on_x, on_y, on_z, energy)
        force(1:3, p) = force(1:3, p) + scale * push
        force(1:3, q) = force(1:3, q) - scale * push
        cycle
      end if
      reach = self%cutoff + self%site_reach
      if (self%core(p) == 0 .and. dot_product(d, d) >= reach**2) cycle
      if (self%core(p) == 0) reach = self%cutoff
      ! The sites of q that p can reach, next to each other.
      n = 0
      do i = 1, size(self%site, 2)
        a = self%site_world(:, i, self%core(q))
        d = a - self%position(:, p)
        if (dot_product(d, d) >= reach**2) cycle
        n = n + 1
        x(n) = a(1)
        y(n) = a(2)
        z(n) = a(3)
        charge(n) = self%site_charge(i)
      end do
      if (n == 0) cycle
      on_x(:n) = 0
      on_y(:n) = 0
      on_z(:n) = 0
      if (self%core(p) == 0) then
        call push_point(self, self%position(:, p), self%charge(p), 2, n, x, y, z, charge, push, on_x, on_y, on_z, energy)
        force(1:3, p) = force(1:3, p) + scale * push
      else
        do i = 1, size(self%site, 2)
          a = self%site_world(:, i, self%core(p))
          d = a - self%position(:, q)
          if (dot_product(d, d) >= reach**2) cycle
          call push_point(self, a, self%site_charge(i), 3, n, x, y, z, charge, push, on_x, on_y, on_z, energy)
          call push_core(self, p, a, scale * push, force)
        end do
      end if
      do i = 1, n
        call push_core(self, q, [x(i), y(i), z(i)], -scale * [on_x(i), on_y(i), on_z(i)], force)
      end do
    end do
  end subroutine add_charges

  !> Energy of a point charge with n others, the force on it, and its opposite added up on each of the others.
  subroutine push_point(self, point, own, kind, n, x, y, z, charge, push, on_x, on_y, on_z, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: point(3), own, x(:), y(:), z(:), charge(:)
    integer(int32), intent(in) :: kind, n   !< kind: bead-bead, bead-core, core-core
    real(real64), intent(out) :: push(3)
    real(real64), intent(inout) :: on_x(:), on_y(:), on_z(:), energy
    integer(int32) :: i, j, m
    integer(int32) :: near(n)
    real(real64) :: r2(n), slope(n), r, u, screened, s6, total, strength, least, kappa, shift
    kappa = merge(self%dna_kappa, self%kappa, kind == 1)
    shift = merge(self%dna_screened_at_cutoff, self%screened_at_cutoff, kind == 1)
    m = 0
    do i = 1, n
      r = (point(1) - x(i))**2 + (point(2) - y(i))**2 + (point(3) - z(i))**2
      if (r >= self%cutoff**2) cycle
      m = m + 1
      near(m) = i
      r2(m) = r
    end do
    push = 0
    if (m == 0) return
    total = 0
    strength = self%bjerrum * own
    least = (closest * self%sigma(kind))**2
    !$omp simd private(r, u, screened, s6) reduction(+:total)
    do i = 1, m
      r = sqrt(r2(i))
      ! exp(-kappa r), kappa r at most 9, as the 16th power of a series whose remainder is below 1e-9; between linker
      ! beads in Mg2+, where kappa r can be 18, it is wrong by 1e-5 of next to nothing.
      u = -kappa * r / 16
      u = 1 + u * (1 + u / 2 * (1 + u / 3 * (1 + u / 4 * (1 + u / 5 * (1 + u / 6 * (1 + u / 7 * (1 + u / 8 * (1 + u / 9))))))))
      u = u * u
      u = u * u
      u = u * u
      screened = strength * charge(near(i)) * u * u / r
      s6 = (self%sigma(kind)**2 / max(r2(i), least))**3
      total = total + screened + self%excluded_k * (s6 * (s6 - 1) - self%excluded_at_cutoff(kind)) &
        - strength * charge(near(i)) * shift
      slope(i) = screened * (kappa + 1 / r) / r + self%excluded_k * 6 * s6 * (2 * s6 - 1) / r2(i)
    end do
    energy = energy + total
    do j = 1, m
      i = near(j)
      on_x(i) = on_x(i) + slope(j) * (point(1) - x(i))
      on_y(i) = on_y(i) + slope(j) * (point(2) - y(i))
      on_z(i) = on_z(i) + slope(j) * (point(3) - z(i))
      push = push + slope(j) * (point - [x(i), y(i), z(i)])
    end do
  end subroutine push_point

  subroutine add_contacts(self, force, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(inout) :: force(:, :), energy
    integer(int32) :: k, a, b
    real(real64) :: d(3), distance, excess, d0, slope
    do k = 1, size(self%contact, 2)
      if (self%contact_k(k) <= 0) cycle
      a = self%contact(1, k)
      b = self%contact(2, k)
      d = self%position(:, a) - self%position(:, b)
      distance = norm2(d)
      d0 = self%contact_distance(k)
      excess = distance - d0
      if (excess <= 0) cycle
      slope = self%contact_k(k) * min(excess, d0)
      energy = energy + slope * merge(0.5_real64 * excess, excess - 0.5_real64 * d0, excess <= d0)
      force(1:3, a) = force(1:3, a) - slope * d / distance
      force(1:3, b) = force(1:3, b) + slope * d / distance
    end do
  end subroutine add_contacts

  subroutine add_confinement(self, force, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(inout) :: force(:, :), energy
    integer(int32) :: p, i
    real(real64) :: distance, x(3), beyond(3)
    do p = 1, self%n
      if (self%confinement_k > 0) then
        distance = norm2(self%position(:, p))
        if (distance > self%confinement_radius) then
          force(1:3, p) = force(1:3, p) &
            - self%confinement_k * (1 - self%confinement_radius / distance) * self%position(:, p)
          energy = energy + 0.5_real64 * self%confinement_k * (distance - self%confinement_radius)**2
        end if
      end if
      if (self%wall_k <= 0) cycle
      do i = 1, merge(size(self%sphere, 2), 1, self%core(p) /= 0)
        x = self%position(:, p)
        if (self%core(p) /= 0) x = self%sphere_world(:, i, self%core(p))
        beyond = sign(max(abs(x) - self%wall, 0.0_real64), x)
        if (all(abs(beyond) <= 0)) cycle
        energy = energy + 0.5_real64 * self%wall_k * sum(beyond**2)
        if (self%core(p) /= 0) then
          call push_core(self, p, x, -self%wall_k * beyond, force)
        else
          force(1:3, p) = force(1:3, p) - self%wall_k * beyond
        end if
        force(1:3, self%n + 1) = force(1:3, self%n + 1) + self%wall_k * abs(beyond)
      end do
    end do
  end subroutine add_confinement

  !> Forces on the ends of segments and torques on their frames become forces on particles.
  subroutine hand_to_particles(self, at_start, at_end, torque, force)
    type(fibre_t), intent(in) :: self
    real(real64), intent(inout) :: at_start(:, :), at_end(:, :)
    real(real64), intent(in) :: torque(:, :)
    real(real64), intent(inout) :: force(:, :)
    integer(int32) :: s
    real(real64) :: d(3), t(3), along, across(3), scale
    do s = 1, self%n - 1
      d = self%direction(:, s)
      along = dot_product(torque(:, s), d)
      across = torque(:, s) - along * d
      if (self%core(s) /= 0) then
        ! The segment's frame is the exit's, carried without twist: it spins as the core and its own turning demand.
        t = self%exit_frame(:, 1, s)
        scale = along / max(1 + dot_product(t, d), 1.0e-3_real64)
        force(4:6, s) = force(4:6, s) + scale * (t + d)
        across = across - scale * (t - dot_product(t, d) * d)
      else
        force(7, s) = force(7, s) + along
      end if
      across = cross(across, d) / self%length(s)
      at_end(:, s) = at_end(:, s) + across
      at_start(:, s) = at_start(:, s) - across
      if (self%core(s) /= 0) then
        call push_core(self, s, self%segment_start(:, s), at_start(:, s), force)
      else
        force(1:3, s) = force(1:3, s) + at_start(:, s)
      end if
      if (self%core(s + 1) /= 0) then
        call push_core(self, s + 1, self%segment_end(:, s), at_end(:, s), force)
      else
        force(1:3, s + 1) = force(1:3, s + 1) + at_end(:, s)
      end if
    end do
  end subroutine hand_to_particles

  !> Has anything moved more than half the skin since the list was made?
  pure function moved_far(self, pairs) result(far)
    type(fibre_t), intent(in) :: self
    type(pairs_t), intent(in) :: pairs
    logical :: far
    real(real64), parameter :: most = (0.5_real64 * skin)**2
    far = any(sum((self%segment_start - pairs%segment_start)**2, 1) > most) &
      .or. any(sum((self%segment_end - pairs%segment_end)**2, 1) > most) &
      .or. any(sum((self%sphere_world - pairs%sphere_world)**2, 1) > most)
  end function moved_far

  !> List the pairs of floor bodies within contact, margin and skin; and, if charges are wanted, those of particles whose
  !> charges are within the cutoff and skin.
  subroutine list_pairs(self, margin, charges, pairs)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: margin
    logical, intent(in) :: charges
    type(pairs_t), intent(inout) :: pairs
    type(pairs_t) :: share(n_shares)
    type(grid_t) :: core_grid, segment_grid
    integer(int32) :: b
    if (.not. allocated(pairs%sphere_pair)) call make_room(pairs)
    pairs%spheres = 0
    pairs%capsules = 0
    pairs%mixed = 0
    pairs%charged = 0
    pairs%sphere_world = self%sphere_world
    pairs%segment_start = self%segment_start
    pairs%segment_end = self%segment_end
    call make_grid(core_grid, self%position(:, self%core_particle), 2 * self%sphere_reach + margin + skin)
    call make_grid(segment_grid, 0.5_real64 * (self%segment_start + self%segment_end), &
      maxval(self%length) + 2 * self%dna_radius + margin + skin)
    !$omp parallel do schedule(dynamic) if(self%n >= worth_threads)
    do b = 1, n_shares
      call make_room(share(b))
      call list_share(self, margin, core_grid, segment_grid, b, share(b))
    end do
    !$omp end parallel do
    do b = 1, n_shares   ! in the order of particles, whoever found them
      call join(pairs%sphere_pair, pairs%spheres, share(b)%sphere_pair(:, :share(b)%spheres))
      call join(pairs%capsule_pair, pairs%capsules, share(b)%capsule_pair(:, :share(b)%capsules))
      call join(pairs%mixed_pair, pairs%mixed, share(b)%mixed_pair(:, :share(b)%mixed))
    end do
    if (charges) call list_charged(self, pairs)
  end subroutine list_pairs

  pure subroutine make_room(pairs)
    type(pairs_t), intent(inout) :: pairs
    allocate (pairs%sphere_pair(4, 1024), pairs%capsule_pair(2, 256), pairs%mixed_pair(3, 1024), &
      pairs%charged_pair(2, 1024))
  end subroutine make_room

  !> The pairs of floor bodies of the b-th of n_shares parts of the cores, and of the segments.
  subroutine list_share(self, margin, core_grid, segment_grid, b, pairs)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: margin
    type(grid_t), intent(in) :: core_grid, segment_grid
    integer(int32), intent(in) :: b
    type(pairs_t), intent(inout) :: pairs
    integer(int32) :: k, m, s, t, count, n_cores, found(self%n)
    real(real64) :: longest, d(3), middle(3)
    longest = maxval(self%length)
    n_cores = size(self%core_particle)
    do k = 1 + (b - 1) * n_cores / n_shares, b * n_cores / n_shares
      associate (p => self%core_particle(k))
        call points_near(core_grid, self%position(:, p), 2 * self%sphere_reach + margin + skin, found, count)
        do m = 1, count
          if (found(m) < k) call list_spheres(self, p, self%core_particle(found(m)), margin, pairs)
        end do
        call points_near(segment_grid, self%position(:, p), &
          0.5_real64 * longest + self%sphere_reach + self%dna_radius + margin + skin, found, count)
        do m = 1, count
          call list_mixed(self, found(m), p, margin, pairs)
        end do
      end associate
    end do
    do s = 1 + (b - 1) * (self%n - 1) / n_shares, b * (self%n - 1) / n_shares
      middle = 0.5_real64 * (self%segment_start(:, s) + self%segment_end(:, s))
      call points_near(segment_grid, middle, longest + 2 * self%dna_radius + margin + skin, found, count)
      do m = 1, count
        t = found(m)
        if (t >= s) cycle
        if (are_close_in_chain(self, s, t)) cycle
        d = middle - 0.5_real64 * (self%segment_start(:, t) + self%segment_end(:, t))
        if (dot_product(d, d) < (2 * self%dna_radius + margin + skin + 0.5_real64 * (self%length(s) + self%length(t)))**2) &
          call append(pairs%capsule_pair, pairs%capsules, [s, t])
      end do
    end do
  end subroutine list_share

  !> Particles that are not neighbours in the chain; in a pair of a bead and a core the bead comes first.
  subroutine list_charged(self, pairs)
    type(fibre_t), intent(in) :: self
    type(pairs_t), intent(inout) :: pairs
    type(grid_t) :: grid
    integer(int32) :: p, q, k, count, found(self%n)
    real(real64) :: reach, widest, d(3)
    widest = self%cutoff + 2 * self%site_reach + skin
    call make_grid(grid, self%position, widest)
    do p = 1, self%n
      call points_near(grid, self%position(:, p), widest, found, count)
      do k = 1, count
        q = found(k)
        if (abs(p - q) < 2) cycle
        if ((self%core(p) == 0) .neqv. (self%core(q) == 0)) then
          if (self%core(p) /= 0) cycle
        else if (p > q) then
          cycle
        end if
        reach = self%cutoff + skin
        if (self%core(p) /= 0) reach = reach + self%site_reach
        if (self%core(q) /= 0) reach = reach + self%site_reach
        d = self%position(:, p) - self%position(:, q)
        if (dot_product(d, d) < reach**2) call append(pairs%charged_pair, pairs%charged, [p, q])
      end do
    end do
  end subroutine list_charged

  pure subroutine list_spheres(self, p, q, margin, pairs)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, q
    real(real64), intent(in) :: margin
    type(pairs_t), intent(inout) :: pairs
    integer(int32) :: i, j
    real(real64) :: reach, d(3), a(3)
    d = self%position(:, p) - self%position(:, q)
    if (dot_product(d, d) >= (2 * self%sphere_reach + margin + skin)**2) return
    do i = 1, size(self%sphere, 2)
      a = self%sphere_world(:, i, self%core(p))
      reach = self%sphere_radius(i) + margin + skin
      d = a - self%position(:, q)
      if (dot_product(d, d) >= (self%sphere_reach + reach)**2) cycle
      do j = 1, size(self%sphere, 2)
        d = a - self%sphere_world(:, j, self%core(q))
        if (dot_product(d, d) < (reach + self%sphere_radius(j))**2) &
          call append(pairs%sphere_pair, pairs%spheres, [p, i, q, j])
      end do
    end do
  end subroutine list_spheres

  pure subroutine list_mixed(self, s, p, margin, pairs)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: s, p
    real(real64), intent(in) :: margin
    type(pairs_t), intent(inout) :: pairs
    integer(int32) :: i, end_
    real(real64) :: d(3), a(3), along
    d = 0.5_real64 * (self%segment_start(:, s) + self%segment_end(:, s)) - self%position(:, p)
    if (dot_product(d, d) >= &
      (0.5_real64 * self%length(s) + self%sphere_reach + self%dna_radius + margin + skin)**2) return
    end_ = continued_end(self, s, p)
    do i = 1, size(self%sphere, 2)
      if (end_ /= 0) then
        if (self%sphere_near(end_, i) /= 0) cycle
      end if
      a = self%sphere_world(:, i, self%core(p)) - self%segment_start(:, s)
      along = min(self%length(s), max(0.0_real64, dot_product(a, self%direction(:, s))))
      a = a - along * self%direction(:, s)
      if (dot_product(a, a) < (self%dna_radius + self%sphere_radius(i) + margin + skin)**2) &
        call append(pairs%mixed_pair, pairs%mixed, [s, p, i])
    end do
  end subroutine list_mixed

  !> Put more items behind the first `count` of a list.
  pure subroutine join(list, count, more)
    integer(int32), allocatable, intent(inout) :: list(:, :)
    integer(int32), intent(inout) :: count
    integer(int32), intent(in) :: more(:, :)
    integer(int32), allocatable :: longer(:, :)
    integer(int32) :: total
    total = count + size(more, 2)
    if (total > size(list, 2)) then
      allocate (longer(size(list, 1), 2 * total))
      longer(:, :count) = list(:, :count)
      call move_alloc(longer, list)
    end if
    list(:, count + 1:total) = more
    count = total
  end subroutine join

  pure subroutine append(list, count, item)
    integer(int32), allocatable, intent(inout) :: list(:, :)
    integer(int32), intent(inout) :: count
    integer(int32), intent(in) :: item(:)
    integer(int32), allocatable :: longer(:, :)
    if (count == size(list, 2)) then
      allocate (longer(size(list, 1), 2 * count))
      longer(:, 1:count) = list
      call move_alloc(longer, list)
    end if
    count = count + 1
    list(:, count) = item
  end subroutine append

end module fibre_forces
