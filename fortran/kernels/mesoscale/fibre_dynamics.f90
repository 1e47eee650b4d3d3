!> Dynamics of a fibre together with its flexible chains (histone tails, tails of linker histones), in the energy that
!> Monte Carlo samples: fibre_forces moves cores and linkers, and beads of chains move beside them.
!>
!> Springs of chains act in every step, like the elastic terms of the fibre; charges and excluded volume push every few
!> steps, as many times harder. Cores meet charges by the table of their field.
module fibre_dynamics
  use core_field, only: load_field, field_slope_at, n_parts
  use fibre_energy, only: fibre_t, load_fibre, dna, core_site, worth_threads
  use fibre_grid, only: grid_t, make_grid, points_near
  use fibre_forces, only: pairs_t, list_pairs, moved_far, all_forces, append, displace, set_masses, push_core, limit, &
    largest_shift, skin, n_shares
  use iso_fortran_env, only: int32, real32, real64
  implicit none
  private
  public :: run_dynamics, dynamics_forces

  real(real64), parameter :: tail_mass = 4
  integer(int32), parameter :: head = 4               !< kind of the points of a linker histone's head

  !> Chains of beads, each tethered to a core.
  type :: chains_t
    integer(int32), allocatable :: first(:), core(:), chain_of_bead(:)
    real(real64), allocatable :: position(:, :), anchor(:, :), tether_k(:), bond_length(:), bond_k(:), angle(:), angle_k(:)
  end type chains_t

  !> One share of the work on charges: every n_shares-th point and core with its partners.
  type :: share_t
    ! Pairs of points, and of points and cores, that may come within the cutoff before the lists are made again.
    integer(int32) :: pairs = 0, meetings = 0
    integer(int32), allocatable :: pair(:, :), meeting(:, :)
    real(real64), allocatable :: force(:, :), on_fibre(:, :)   !< on points (3, n), on freedoms of the fibre
    real(real64) :: energy = 0
  end type share_t

  !> Everything small that is charged: beads of chains, points of heads, beads of linkers, in this order.
  type :: points_t
    integer(int32) :: n_tail = 0, n_head = 0, n = 0
    real(real64), allocatable :: position(:, :), charge(:), force(:, :), head_site(:, :)
    integer(int32), allocatable :: kind(:), core(:)      !< core: that which carries it, 0 for linkers
    integer(int32), allocatable :: particle(:)           !< of a linker's bead
    real(real64) :: sigma2(5, 5) = 0, strength(5, 5) = 0
    real(real64) :: closest = 0   !< of sigma: nearer, charges do not act and excluded volume pushes no harder
    type(share_t) :: share(n_shares)
    real(real64), allocatable :: listed(:, :), listed_core(:, :)   !< where points and cores were when pairs were listed
  end type points_t

contains

  !> n_steps of dynamics without friction; positions, frames, beads and velocities are updated in place. Charges act every
  !> `charge_interval` steps; nearer than `closest` of sigma they do not, and excluded volume pushes no harder. `margin`
  !> (nm) widens every floor. `first` and the cores count from 1; a head_core of 0 is no
  !> head. `energy`: that of the fibre's elastic, floor, restraint and confinement terms, 0, charges and excluded volume
  !> at their last push, springs of chains.
  subroutine run_dynamics(n, n_cores, n_sites, n_spheres, n_contacts, position, frame, core, linker, rest_length, &
      stretch_k, bend_k, twist_k, rest_twist, charge, joint_point, joint_frame, site, site_charge, sphere, &
      sphere_radius, sphere_near, contact, contact_k, contact_distance, scalar, nx, ny, nz, n_cells, n_near, coefficient, &
      cells, cell_first, cell_site, field_scalar, n_beads, n_chains, n_heads, n_head_sites, bead, bead_charge, bead_kind, &
      first, tail_core, anchor, tether_k, bond_length, bond_k, angle, angle_k, sigma, strength, head_core, head_site, &
      head_charge, n_steps, charge_interval, step, margin, closest, velocity, bead_velocity, energy)
    integer(int32), intent(in) :: n, n_cores, n_sites, n_spheres, n_contacts, n_steps, charge_interval
    real(real64), intent(inout) :: position(3, n), frame(3, 3, n), velocity(7, n + 1)
    integer(int32), intent(in) :: core(n), linker(n - 1), sphere_near(2, n_spheres), contact(2, n_contacts)
    real(real64), intent(in) :: rest_length(n - 1), stretch_k(n - 1), bend_k(n - 1), twist_k(n - 1), rest_twist(n - 1)
    real(real64), intent(in) :: charge(n), joint_point(3, 2), joint_frame(3, 3, 2)
    real(real64), intent(in) :: site(3, n_sites), site_charge(n_sites), sphere(3, n_spheres), sphere_radius(n_spheres)
    real(real64), intent(in) :: contact_k(n_contacts), contact_distance(n_contacts), scalar(16)
    integer(int32), intent(in) :: nx, ny, nz, n_cells, n_near, cells(3), cell_first(n_cells), cell_site(n_near)
    real(real32), intent(in) :: coefficient(4, nx, ny, nz)
    real(real64), intent(in) :: field_scalar(11)
    integer(int32), intent(in) :: n_beads, n_chains, n_heads, n_head_sites
    integer(int32), intent(in) :: bead_kind(n_beads), first(n_chains + 1), tail_core(n_chains), head_core(n_heads)
    real(real64), intent(inout) :: bead(3, n_beads), bead_velocity(3, n_beads)
    real(real64), intent(in) :: bead_charge(n_beads), anchor(3, n_chains), tether_k(n_chains), bond_length(n_beads), &
      bond_k(n_beads), angle(n_beads), angle_k(n_beads), sigma(5, 5), strength(5, 5), head_site(3, n_head_sites), &
      head_charge(n_head_sites), step, margin, closest
    real(real64), intent(out) :: energy(7)
    type(fibre_t) :: fibre
    type(chains_t) :: chains
    type(points_t) :: points
    type(pairs_t) :: pairs
    real(real64) :: force(7, n + 1), inverse_mass(7, n + 1), bead_force(3, n_beads)
    integer(int32) :: k, i, pushes
    call load_fibre(fibre, n, n_cores, n_sites, n_spheres, position, frame, core, linker, rest_length, stretch_k, &
      bend_k, twist_k, rest_twist, charge, joint_point, joint_frame, site, site_charge, sphere, sphere_radius, &
      sphere_near, contact, contact_k, contact_distance, scalar)
    call load_field(fibre%field, site, site_charge, coefficient, cells, cell_first, cell_site, field_scalar)
    call load_chains(chains, bead, first, tail_core, anchor, tether_k, bond_length, bond_k, angle, angle_k)
    call load_points(points, fibre, chains, bead_charge, bead_kind, sigma, strength, head_core, head_site, head_charge)
    points%closest = closest
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
    position = fibre%position
    frame = fibre%frame
    bead = chains%position
  end subroutine run_dynamics

  !> Forces on the freedoms of the fibre (7, n+1) and on the beads (3, n_beads), and the energies; for tests.
  subroutine dynamics_forces(n, n_cores, n_sites, n_spheres, n_contacts, position, frame, core, linker, rest_length, &
      stretch_k, bend_k, twist_k, rest_twist, charge, joint_point, joint_frame, site, site_charge, sphere, &
      sphere_radius, sphere_near, contact, contact_k, contact_distance, scalar, nx, ny, nz, n_cells, n_near, coefficient, &
      cells, cell_first, cell_site, field_scalar, n_beads, n_chains, n_heads, n_head_sites, bead, bead_charge, bead_kind, &
      first, tail_core, anchor, tether_k, bond_length, bond_k, angle, angle_k, sigma, strength, head_core, head_site, &
      head_charge, force, bead_force, energy)
    integer(int32), intent(in) :: n, n_cores, n_sites, n_spheres, n_contacts
    real(real64), intent(in) :: position(3, n), frame(3, 3, n)
    integer(int32), intent(in) :: core(n), linker(n - 1), sphere_near(2, n_spheres), contact(2, n_contacts)
    real(real64), intent(in) :: rest_length(n - 1), stretch_k(n - 1), bend_k(n - 1), twist_k(n - 1), rest_twist(n - 1)
    real(real64), intent(in) :: charge(n), joint_point(3, 2), joint_frame(3, 3, 2)
    real(real64), intent(in) :: site(3, n_sites), site_charge(n_sites), sphere(3, n_spheres), sphere_radius(n_spheres)
    real(real64), intent(in) :: contact_k(n_contacts), contact_distance(n_contacts), scalar(16)
    integer(int32), intent(in) :: nx, ny, nz, n_cells, n_near, cells(3), cell_first(n_cells), cell_site(n_near)
    real(real32), intent(in) :: coefficient(4, nx, ny, nz)
    real(real64), intent(in) :: field_scalar(11)
    integer(int32), intent(in) :: n_beads, n_chains, n_heads, n_head_sites
    integer(int32), intent(in) :: bead_kind(n_beads), first(n_chains + 1), tail_core(n_chains), head_core(n_heads)
    real(real64), intent(in) :: bead(3, n_beads), bead_charge(n_beads), anchor(3, n_chains), tether_k(n_chains), &
      bond_length(n_beads), bond_k(n_beads), angle(n_beads), angle_k(n_beads), sigma(5, 5), strength(5, 5), &
      head_site(3, n_head_sites), head_charge(n_head_sites)
    real(real64), intent(out) :: force(7, n + 1), bead_force(3, n_beads), energy(7)
    type(fibre_t) :: fibre
    type(chains_t) :: chains
    type(points_t) :: points
    type(pairs_t) :: pairs
    call load_fibre(fibre, n, n_cores, n_sites, n_spheres, position, frame, core, linker, rest_length, stretch_k, &
      bend_k, twist_k, rest_twist, charge, joint_point, joint_frame, site, site_charge, sphere, sphere_radius, &
      sphere_near, contact, contact_k, contact_distance, scalar)
    call load_field(fibre%field, site, site_charge, coefficient, cells, cell_first, cell_site, field_scalar)
    call load_chains(chains, bead, first, tail_core, anchor, tether_k, bond_length, bond_k, angle, angle_k)
    call load_points(points, fibre, chains, bead_charge, bead_kind, sigma, strength, head_core, head_site, head_charge)
    call list_pairs(fibre, 0.0_real64, .false., pairs)
    energy = 0
    call forces(fibre, chains, points, pairs, 0.0_real64, 1, force, bead_force, energy)
  end subroutine dynamics_forces

  subroutine load_chains(self, bead, first, core, anchor, tether_k, bond_length, bond_k, angle, angle_k)
    type(chains_t), intent(out) :: self
    real(real64), intent(in) :: bead(:, :), anchor(:, :), tether_k(:), bond_length(:), bond_k(:), angle(:), angle_k(:)
    integer(int32), intent(in) :: first(:), core(:)
    integer(int32) :: c
    self%first = first
    self%core = core
    self%position = bead
    self%anchor = anchor
    self%tether_k = tether_k
    self%bond_length = bond_length
    self%bond_k = bond_k
    self%angle = angle
    self%angle_k = angle_k
    allocate (self%chain_of_bead(size(bead, 2)))
    do c = 1, size(core)
      self%chain_of_bead(first(c):first(c + 1) - 1) = c
    end do
  end subroutine load_chains

  subroutine load_points(self, fibre, chains, bead_charge, bead_kind, sigma, strength, head_core, head_site, head_charge)
    type(points_t), intent(out) :: self
    type(fibre_t), intent(in) :: fibre
    type(chains_t), intent(in) :: chains
    real(real64), intent(in) :: bead_charge(:), sigma(:, :), strength(:, :), head_site(:, :), head_charge(:)
    integer(int32), intent(in) :: bead_kind(:), head_core(:)
    integer(int32) :: k, at
    integer(int32), allocatable :: heads(:)
    heads = pack(head_core, head_core > 0)
    self%head_site = head_site
    self%n_tail = size(bead_charge)
    self%n_head = size(heads) * size(head_charge)
    self%n = self%n_tail + self%n_head + size(fibre%bead)
    allocate (self%position(3, self%n), self%force(3, self%n), self%charge(self%n), source=0.0_real64)
    allocate (self%kind(self%n), self%core(self%n), self%particle(self%n), source=0)
    self%charge(:self%n_tail) = bead_charge
    self%kind(:self%n_tail) = bead_kind
    self%core(:self%n_tail) = chains%core(chains%chain_of_bead)
    at = self%n_tail
    do k = 1, size(heads)
      self%charge(at + 1:at + size(head_charge)) = head_charge
      self%kind(at + 1:at + size(head_charge)) = head
      self%core(at + 1:at + size(head_charge)) = heads(k)
      at = at + size(head_charge)
    end do
    self%charge(at + 1:) = fibre%charge(fibre%bead)
    self%kind(at + 1:) = dna
    self%particle(at + 1:) = fibre%bead
    self%sigma2 = sigma**2
    self%strength = strength
    self%sigma2(dna, dna) = fibre%sigma(1)**2
    self%strength(dna, dna) = fibre%excluded_k
    self%sigma2(dna, core_site) = fibre%sigma(2)**2
    self%strength(dna, core_site) = fibre%excluded_k
    self%sigma2(core_site, core_site) = fibre%sigma(3)**2
    self%strength(core_site, core_site) = fibre%excluded_k
  end subroutine load_points

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
    call place_points(points, fibre, chains)
    call list_points(fibre, chains, points)
    call add_charges(fibre, points, real(pushes, real64), force, energy(6))
    call hand_over(fibre, points, real(pushes, real64), force, bead_force)
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

  subroutine place_points(self, fibre, chains)
    type(points_t), intent(inout) :: self
    type(fibre_t), intent(in) :: fibre
    type(chains_t), intent(in) :: chains
    integer(int32) :: k, i, p, at
    self%position(:, :self%n_tail) = chains%position
    at = self%n_tail
    do k = 1, self%n_head / max(1, size(self%head_site, 2))
      p = fibre%core_particle(self%core(at + 1))
      do i = 1, size(self%head_site, 2)
        self%position(:, at + i) = fibre%position(:, p) + matmul(fibre%frame(:, :, p), self%head_site(:, i))
      end do
      at = at + size(self%head_site, 2)
    end do
    self%position(:, at + 1:) = fibre%position(:, fibre%bead)
  end subroutine place_points

  !> List the pairs of points, and of points and cores, within the cutoff and `skin`, where anything moved half of that.
  subroutine list_points(fibre, chains, self)
    type(fibre_t), intent(in) :: fibre
    type(chains_t), intent(in) :: chains
    type(points_t), intent(inout) :: self
    type(grid_t) :: grid, core_grid
    integer(int32) :: b
    real(real64) :: reach
    if (allocated(self%listed)) then
      if (all(sum((self%position - self%listed)**2, 1) < (0.5_real64 * skin)**2) .and. &
        all(sum((fibre%position(:, fibre%core_particle) - self%listed_core)**2, 1) < (0.5_real64 * skin)**2)) return
    end if
    self%listed = self%position
    self%listed_core = fibre%position(:, fibre%core_particle)
    reach = fibre%cutoff + skin
    call make_grid(grid, self%position, 0.5_real64 * reach)
    call make_grid(core_grid, self%listed_core, 0.5_real64 * reach)
    !$omp parallel do schedule(dynamic) if(fibre%n >= worth_threads)
    do b = 1, n_shares
      call list_share(fibre, chains, self, grid, core_grid, b, self%share(b))
    end do
    !$omp end parallel do
  end subroutine list_points

  !> The pairs of every n_shares-th point, from number `b` on, with those before it and with cores.
  subroutine list_share(fibre, chains, self, grid, core_grid, b, share)
    type(fibre_t), intent(in) :: fibre
    type(chains_t), intent(in) :: chains
    type(points_t), intent(in) :: self
    type(grid_t), intent(in) :: grid, core_grid
    integer(int32), intent(in) :: b
    type(share_t), intent(inout) :: share
    integer(int32) :: i, j, k, c, count, found(max(self%n, size(fibre%core_particle)))
    real(real64) :: d(3), reach
    reach = fibre%cutoff + skin
    if (.not. allocated(share%pair)) allocate (share%pair(2, 1024), share%meeting(2, 1024))
    share%pairs = 0
    share%meetings = 0
    do i = b, self%n, n_shares
      call points_near(grid, self%position(:, i), reach, found, count)
      do k = 1, count
        j = found(k)
        if (j >= i) cycle
        d = self%position(:, i) - self%position(:, j)
        if (dot_product(d, d) >= reach**2) cycle
        if (.not. left_out(chains, self, j, i)) call append(share%pair, share%pairs, [j, i])
      end do
      call points_near(core_grid, self%position(:, i), reach + fibre%site_reach, found, count)
      do k = 1, count
        c = found(k)
        if (self%core(i) == c) then
          if (i > self%n_tail) cycle
          if (chains%first(chains%chain_of_bead(i)) == i) cycle
        else if (self%core(i) == 0) then
          if (abs(fibre%core_particle(c) - self%particle(i)) < 2) cycle
        end if
        d = self%position(:, i) - self%listed_core(:, c)
        if (dot_product(d, d) < (reach + fibre%site_reach)**2) call append(share%meeting, share%meetings, [i, c])
      end do
    end do
  end subroutine list_share

  !> Electrostatics and excluded volume: forces on points, and `scale` times those on cores.
  subroutine add_charges(fibre, self, scale, force, energy)
    type(fibre_t), intent(in) :: fibre
    type(points_t), intent(inout) :: self
    real(real64), intent(in) :: scale
    real(real64), intent(inout) :: force(:, :), energy
    type(grid_t) :: grid
    integer(int32) :: b, i, p
    call make_grid(grid, fibre%position(:, fibre%core_particle), 0.5_real64 * (fibre%cutoff + fibre%site_reach))
    !$omp parallel if(fibre%n >= worth_threads)
    !$omp do schedule(dynamic)
    do b = 1, n_shares
      associate (share => self%share(b))
        if (.not. allocated(share%force)) allocate (share%force(3, self%n), share%on_fibre(7, fibre%n + 1))
        share%force = 0
        share%on_fibre = 0
        share%energy = 0
        call add_point_pairs(fibre, self, share)
        call add_meetings(fibre, self, share)
        call add_core_pairs(fibre, self, grid, b, share)
      end associate
    end do
    !$omp end do
    !$omp do schedule(static)
    do i = 1, self%n
      self%force(:, i) = 0
      do b = 1, n_shares
        self%force(:, i) = self%force(:, i) + self%share(b)%force(:, i)
      end do
    end do
    !$omp end do nowait
    !$omp do schedule(static)
    do p = 1, fibre%n
      do b = 1, n_shares
        force(:, p) = force(:, p) + scale * self%share(b)%on_fibre(:, p)
      end do
    end do
    !$omp end do
    !$omp end parallel
    do b = 1, n_shares
      energy = energy + self%share(b)%energy
    end do
  end subroutine add_charges

  !> Electrostatics and excluded volume between points.
  subroutine add_point_pairs(fibre, self, share)
    type(fibre_t), intent(in) :: fibre
    type(points_t), intent(in) :: self
    type(share_t), intent(inout) :: share
    integer(int32) :: i, j, k
    real(real64) :: d(3), r2, z, r, kappa, shift, screened, sigma2, strength, s6, s6_cut, slope
    do k = 1, share%pairs
      j = share%pair(1, k)
      i = share%pair(2, k)
      d = self%position(:, i) - self%position(:, j)
      r2 = dot_product(d, d)
      if (r2 >= fibre%cutoff**2) cycle
      kappa = fibre%kappa
      shift = fibre%screened_at_cutoff
      if (self%kind(i) == dna .and. self%kind(j) == dna) then
        kappa = fibre%dna_kappa
        shift = fibre%dna_screened_at_cutoff
      end if
      sigma2 = self%sigma2(self%kind(i), self%kind(j))
      strength = self%strength(self%kind(i), self%kind(j))
      z = max(r2, self%closest**2 * sigma2)
      r = sqrt(z)
      screened = fibre%bjerrum * self%charge(i) * self%charge(j) * exp(-kappa * r) / r
      s6 = (sigma2 / z)**3
      s6_cut = (sigma2 / fibre%cutoff**2)**3
      share%energy = share%energy + screened - fibre%bjerrum * self%charge(i) * self%charge(j) * shift &
        + strength * (s6 * (s6 - 1) - s6_cut * (s6_cut - 1))
      if (r2 < z) screened = 0
      slope = screened * (kappa + 1 / r) / r + strength * 6 * s6 * (2 * s6 - 1) / z
      share%force(:, i) = share%force(:, i) + slope * d
      share%force(:, j) = share%force(:, j) - slope * d
    end do
  end subroutine add_point_pairs

  !> Pairs that have no energy: neighbours in a chain or in the fibre, and what one core holds in place. j < i.
  pure function left_out(chains, self, j, i) result(out)
    type(chains_t), intent(in) :: chains
    type(points_t), intent(in) :: self
    integer(int32), intent(in) :: j, i
    logical :: out
    out = .false.
    if (i <= self%n_tail) then
      out = i - j <= 2 .and. chains%chain_of_bead(i) == chains%chain_of_bead(j)
    else if (i <= self%n_tail + self%n_head) then
      if (self%core(i) /= self%core(j)) return
      out = j > self%n_tail
      if (.not. out) out = chains%first(chains%chain_of_bead(j)) == j
    else if (j > self%n_tail + self%n_head) then
      out = self%particle(i) - self%particle(j) < 2
    end if
  end function left_out

  !> Points in the fields of cores.
  subroutine add_meetings(fibre, self, share)
    type(fibre_t), intent(in) :: fibre
    type(points_t), intent(in) :: self
    type(share_t), intent(inout) :: share
    integer(int32) :: i, k, p
    real(real64) :: d(3), push(3), weight(n_parts), sigma2, strength
    do k = 1, share%meetings
      i = share%meeting(1, k)
      p = fibre%core_particle(share%meeting(2, k))
      d = self%position(:, i) - fibre%position(:, p)
      if (dot_product(d, d) >= (fibre%cutoff + fibre%site_reach)**2) cycle
      sigma2 = self%sigma2(self%kind(i), core_site)
      strength = self%strength(self%kind(i), core_site)
      weight = [fibre%bjerrum * self%charge(i), strength * sigma2**6, -strength * sigma2**3]
      call meet(fibre, p, self%position(:, i), weight, self%closest * sqrt(sigma2), push, share)
      share%force(:, i) = share%force(:, i) + push
    end do
  end subroutine add_meetings

  !> The sites of every n_shares-th core, from number `b` on, in the fields of the cores after it.
  subroutine add_core_pairs(fibre, self, grid, b, share)
    type(fibre_t), intent(in) :: fibre
    type(points_t), intent(in) :: self
    type(grid_t), intent(in) :: grid   !< of cores
    integer(int32), intent(in) :: b
    type(share_t), intent(inout) :: share
    integer(int32) :: i, k, c, q, s, p, count, found(size(fibre%core_particle))
    real(real64) :: reach, closest, d(3), push(3), weight(n_parts), sigma2, strength
    reach = fibre%cutoff + fibre%site_reach
    sigma2 = self%sigma2(core_site, core_site)
    strength = self%strength(core_site, core_site)
    closest = self%closest * sqrt(sigma2)
    do k = b, size(fibre%core_particle), n_shares
      p = fibre%core_particle(k)
      call points_near(grid, fibre%position(:, p), reach + fibre%site_reach, found, count)
      do s = 1, count
        c = found(s)
        q = fibre%core_particle(c)
        if (c <= k .or. q - p < 2) cycle
        do i = 1, size(fibre%site, 2)
          d = fibre%site_world(:, i, k) - fibre%position(:, q)
          if (dot_product(d, d) >= reach**2) cycle
          weight = [fibre%bjerrum * fibre%site_charge(i), strength * sigma2**6, -strength * sigma2**3]
          call meet(fibre, q, fibre%site_world(:, i, k), weight, closest, push, share)
          call push_core(fibre, p, fibre%site_world(:, i, k), push, share%on_fibre)
        end do
      end do
    end do
  end subroutine add_core_pairs

  !> A point in the field of core p: the push on it, and the opposite on the core.
  subroutine meet(fibre, p, point, weight, closest, push, share)
    type(fibre_t), intent(in) :: fibre
    integer(int32), intent(in) :: p
    real(real64), intent(in) :: point(3), weight(n_parts), closest
    real(real64), intent(out) :: push(3)
    type(share_t), intent(inout) :: share
    real(real64) :: d(3), slope(3), value
    d = point - fibre%position(:, p)
    call field_slope_at(fibre%field, matmul(d, fibre%frame(:, :, p)), weight, closest, value, slope)
    share%energy = share%energy + value
    push = -matmul(fibre%frame(:, :, p), slope)
    call push_core(fibre, p, point, -push, share%on_fibre)
  end subroutine meet

  !> Forces on points become forces on beads and particles.
  subroutine hand_over(fibre, self, scale, force, bead_force)
    type(fibre_t), intent(in) :: fibre
    type(points_t), intent(in) :: self
    real(real64), intent(in) :: scale
    real(real64), intent(inout) :: force(:, :), bead_force(:, :)
    integer(int32) :: i
    bead_force = bead_force + scale * self%force(:, :self%n_tail)
    do i = self%n_tail + 1, self%n
      if (self%core(i) > 0) then
        call push_core(fibre, fibre%core_particle(self%core(i)), self%position(:, i), scale * self%force(:, i), force)
      else
        force(1:3, self%particle(i)) = force(1:3, self%particle(i)) + scale * self%force(:, i)
      end if
    end do
  end subroutine hand_over

end module fibre_dynamics
