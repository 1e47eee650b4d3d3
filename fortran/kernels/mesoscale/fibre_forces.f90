!> Forces of a fibre on its elastic, floor, restraint and confinement energy and on that of charges: what fibre_relaxation and
!> fibre_dynamics have in common.
!>
!> Coordinates are the positions of particles, the rotations of cores, the spins of beads about their segments and,
!> under pressure, the edges of a box with soft walls. Forces are analytic: a joint of two frames with tangents t1, t2
!> bent by beta and twisted by psi turns its second frame with -k beta (t1 x t2)/sin(beta) and
!> -dE/dpsi (t1 + t2)/(1 + t1.t2) (the gradient of holonomy; Bergou et al., ACM Trans. Graph. 27:63, 2008), its first
!> frame with the opposite.
module fibre_forces
  use body_motion, only: push_core
  use charge_forces, only: add_charges
  use contact_wells, only: closeness, closeness_slope
  use fibre_model, only: fibre_t, particle_after, segment_before
  use floor_pairs, only: pairs_t
  use geometry, only: closest_points, transported, cross
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: all_forces

  real(real64), parameter :: pi = acos(-1.0_real64)

contains

  !> Forces on all freedoms, those of charges times `pushes`, and the energies elastic, floor, restraint, confinement,
  !> p V, charges; the last stays as it is without a push.
  subroutine all_forces(self, pairs, margin, pressure, rim, pushes, force, energy)
    type(fibre_t), intent(in) :: self
    type(pairs_t), intent(in) :: pairs
    real(real64), intent(in) :: margin, pressure, rim
    integer(int32), intent(in) :: pushes
    real(real64), intent(out) :: force(:, :)
    real(real64), intent(inout) :: energy(6)
    real(real64) :: at_start(3, self%n_segments), at_end(3, self%n_segments), torque(3, self%n_segments)
    force = 0
    energy(1:5) = 0
    if (pushes > 0) energy(6) = 0
    at_start = 0
    at_end = 0
    torque = 0
    call add_elastic(self, force, at_start, at_end, torque, energy(1))
    call add_floors(self, pairs, margin, force, at_start, at_end, energy(2))
    call add_contacts(self, force, energy(3))
    call add_wells(self, force, energy(3))
    call add_confinement(self, force, energy(4))
    if (pushes > 0) call add_charges(self, pairs, real(pushes, real64), force, energy(6))
    if (pressure > 0) then
      force(1:3, self%n + 1) = force(1:3, self%n + 1) &
        - 8 * pressure * (self%wall([2, 1, 1]) + rim) * (self%wall([3, 3, 2]) + rim)
      energy(5) = 8 * pressure * product(self%wall + rim)
    end if
    call hand_to_particles(self, at_start, at_end, torque, force)
  end subroutine all_forces

  !> Stretch, bend and twist of linkers.
  subroutine add_elastic(self, force, at_start, at_end, torque, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(inout) :: force(:, :), at_start(:, :), at_end(:, :), torque(:, :), energy
    integer(int32) :: p, q, s
    real(real64) :: pull(3), t(3), t_next(3), b(3), b_next(3), turn(3), deviation, slope
    do p = 1, self%n_segments
      pull = self%stretch_k(p) * (self%length(p) - self%rest_length(p)) * self%direction(:, p)
      at_start(:, p) = at_start(:, p) + pull
      at_end(:, p) = at_end(:, p) - pull
      energy = energy + 0.5_real64 * self%stretch_k(p) * (self%length(p) - self%rest_length(p))**2
    end do
    do p = 1, self%n
      s = segment_before(self, p)
      if (self%core(p) /= 0) then
        if (p <= self%n_segments) then
          call bend(self%exit_frame(:, 1, p), self%direction(:, p), self%bend_k(p), turn, energy)
          torque(:, p) = torque(:, p) + turn
          force(4:6, p) = force(4:6, p) - turn
        end if
        if (s > 0) then
          call bend(self%direction(:, s), self%entry_frame(:, 1, p), self%bend_k(s), turn, energy)
          force(4:6, p) = force(4:6, p) + turn
          torque(:, s) = torque(:, s) - turn
        end if
      else if (s > 0 .and. p <= self%n_segments) then
        call bend(self%direction(:, s), self%direction(:, p), 0.5_real64 * (self%bend_k(s) + self%bend_k(p)), turn, energy)
        torque(:, p) = torque(:, p) + turn
        torque(:, s) = torque(:, s) - turn
      end if
    end do
    do p = 1, self%n_segments
      if (self%twist_k(p) <= 0) cycle
      q = particle_after(self, p)
      t = self%direction(:, p)
      if (self%core(p) /= 0) then
        b = transported(self%exit_frame(:, 2, p), self%exit_frame(:, 1, p), t)
      else
        b = self%frame(:, 2, p)
      end if
      if (self%core(q) /= 0) then
        t_next = self%entry_frame(:, 1, q)
        b_next = self%entry_frame(:, 2, q)
      else
        t_next = self%direction(:, q)
        b_next = self%frame(:, 2, q)
      end if
      deviation = twist_angle(t, b, t_next, b_next) - self%rest_twist(p)
      deviation = deviation - 2 * pi * anint(deviation / (2 * pi))
      slope = self%twist_k(p) * deviation
      energy = energy + 0.5_real64 * slope * deviation
      turn = -slope * (t + t_next) / max(1 + dot_product(t, t_next), 1.0e-3_real64)
      torque(:, p) = torque(:, p) - turn
      if (self%core(q) /= 0) then
        force(4:6, q) = force(4:6, q) + turn
      else
        torque(:, q) = torque(:, q) + turn
      end if
    end do
  end subroutine add_elastic

  !> Twist from one frame (tangent t, normal b) to the next, radian.
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

  !> Overlaps of the listed floor bodies, which reach `margin` nm farther than they are.
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
      contact = radius_of(self, p, i) + radius_of(self, q, j) + margin
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
      contact = self%dna_radius + radius_of(self, p, i) + margin
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

  !> Radius (nm) of sphere i of core p.
  pure function radius_of(self, p, i) result(radius)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, i
    real(real64) :: radius
    radius = self%shape(self%form(self%core(p)))%sphere_radius(i)
  end function radius_of

  !> Restraints: flat to d0, harmonic to 2 d0, linear beyond.
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

  !> Energies of contacts.
  subroutine add_wells(self, force, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(inout) :: force(:, :), energy
    integer(int32) :: k, p, q
    real(real64) :: d(3), distance, slope
    if (size(self%well_partner) == 0) return
    do p = 1, self%n
      do k = self%well_first(p), self%well_first(p + 1) - 1
        q = self%well_partner(k)
        if (q > p) cycle   ! each has two entries
        d = self%position(:, p) - self%position(:, q)
        distance = norm2(d)
        if (distance >= self%well_reach) cycle
        energy = energy + self%well_energy(k) * closeness(distance, self%well_flat, self%well_reach)
        slope = self%well_energy(k) * closeness_slope(distance, self%well_flat, self%well_reach)
        d = slope * d / max(distance, 1.0e-9_real64)
        force(1:3, p) = force(1:3, p) - d
        force(1:3, q) = force(1:3, q) + d
      end do
    end do
  end subroutine add_wells

  !> The confining sphere, and the walls of the container.
  subroutine add_confinement(self, force, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(inout) :: force(:, :), energy
    integer(int32) :: p, i, bodies
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
      bodies = 1
      if (self%core(p) /= 0) bodies = size(self%shape(self%form(self%core(p)))%sphere, 2)
      do i = 1, bodies
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
    integer(int32) :: s, q
    real(real64) :: d(3), t(3), along, across(3), scale
    do s = 1, self%n_segments
      q = particle_after(self, s)
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
      if (self%core(q) /= 0) then
        call push_core(self, q, self%segment_end(:, s), at_end(:, s), force)
      else
        force(1:3, q) = force(1:3, q) + at_end(:, s)
      end if
    end do
  end subroutine hand_to_particles

end module fibre_forces
