!> Energy of a chromatin fibre of rigid nucleosome cores and DNA linker beads, in nm, kBT and elementary charges.
!>
!> The terms are those of the published mesoscale model (Beard and Schlick 2001; Sun, Zhang, Schlick 2005): stretching,
!> bending and twisting of linkers, Debye-Hueckel electrostatics, excluded volume; plus a geometric floor (capsules for
!> linker DNA, spheres for cores), contact restraints and a confining sphere. mesoscale/model.py states the formulas;
!> the two implementations are tested against each other.
!>
!> Particles are stored in chain order. Segment s joins particle s to particle s+1; it starts at the exit point of a
!> core (or at the bead) and ends at the entry point of the next core (or at the bead).
module fibre_energy
  use iso_fortran_env, only: int32, real64
  use core_field, only: field_t, field_at, n_parts
  use fibre_grid, only: grid_t, make_grid, move_point, points_near
  implicit none
  private
  public :: fibre_t, load_fibre, load_limbs, refresh, refresh_particle, refresh_segment, range_energy
  public :: near_t, range_pairs, remember_pairs, replace_pairs, add_pairs, full_energy, twist_energy_at, longest_segment
  public :: n_terms, worth_threads, own_reach, transported, cross, closest_points, are_close_in_chain, continued_end
  public :: dna, core_site

  integer(int32), parameter :: n_terms = 8
  integer(int32), parameter :: n_kinds = 5, dna = 1, core_site = 2   !< of matter; the others are those of limbs
  integer(int32), parameter :: stretch = 1, bend = 2, twist = 3, electrostatic = 4, excluded = 5, floor_ = 6, &
    restraint = 7, confinement = 8
  real(real64), parameter :: pi = acos(-1.0_real64)
  real(real64), parameter :: bead_cell = 5, core_cell = 8   !< nm, edges of the grids' cells
  real(real64), parameter :: longest_segment = 8   !< nm; a move that stretches one further is refused
  integer(int32), parameter :: worth_threads = 200  !< particles; fewer are left to one thread

  !> The particles near one, and the electrostatics and excluded volume of each with it.
  type :: near_t
    integer(int32) :: n = 0
    integer(int32), allocatable :: particle(:)
    real(real64), allocatable :: terms(:, :)
  end type near_t

  type :: fibre_t
    integer(int32) :: n = 0
    integer(int32), allocatable :: core(:)            !< number of the core, 0 for a bead
    integer(int32), allocatable :: linker(:)          !< number of the linker that a segment belongs to
    real(real64), allocatable :: position(:, :), frame(:, :, :)
    real(real64), allocatable :: rest_length(:), stretch_k(:), bend_k(:), twist_k(:), rest_twist(:)
    real(real64), allocatable :: charge(:)            !< of beads
    real(real64) :: joint_point(3, 2) = 0, joint_frame(3, 3, 2) = 0   !< 1 = exit, 2 = entry; columns tangent, b, c
    real(real64), allocatable :: site(:, :), site_charge(:), site_world(:, :, :)
    ! Limbs: points of flexible chains that a core carries along, each with the kind of matter it is (0: not there).
    integer(int32) :: n_limbs = 0
    integer(int32), allocatable :: limb_kind(:, :)    !< (limbs, cores)
    real(real64), allocatable :: limb(:, :, :), limb_charge(:, :), limb_world(:, :, :), limb_reach(:)
    real(real64) :: carried_reach = 0                 !< of sites and limbs
    type(field_t) :: field                            !< of a core's sites; where it is not there, they are summed over
    real(real64) :: sigma2(n_kinds, n_kinds) = 0, strength(n_kinds, n_kinds) = 0, excluded_shift(n_kinds, n_kinds) = 0
    real(real64), allocatable :: sphere(:, :), sphere_radius(:), sphere_world(:, :, :)
    integer(int32), allocatable :: sphere_near(:, :)  !< (2, spheres): wrapped DNA next to the exit, the entry
    real(real64), allocatable :: exit_frame(:, :, :), entry_frame(:, :, :), exit_point(:, :), entry_point(:, :)
    real(real64), allocatable :: segment_start(:, :), segment_end(:, :), direction(:, :), length(:)
    integer(int32), allocatable :: contact(:, :)
    real(real64), allocatable :: contact_k(:), contact_distance(:)
    real(real64) :: bjerrum = 0, kappa = 0, dna_kappa = 0, cutoff = 0, excluded_k = 0, sigma(3) = 0, dna_radius = 0, floor_k = 0
    real(real64) :: confinement_k = 0, confinement_radius = 0, wall_k = 0, wall(3) = 0
    real(real64) :: site_reach = 0, sphere_reach = 0, widest_sphere = 0
    real(real64) :: screened_at_cutoff = 0, dna_screened_at_cutoff = 0, excluded_at_cutoff(3) = 0   !< what shifts the pair potentials to zero
    ! What is near: beads, cores, middles of segments. Grids number beads and cores in chain order: bead_of, core_of.
    type(grid_t) :: bead_grid, core_grid, segment_grid
    integer(int32), allocatable :: bead(:), bead_number(:), core_particle(:)
  end type fibre_t

contains

  !> Take over a chain and a conformation as Python hands them in (mesoscale/montecarlo.py, kernel_arguments).
  subroutine load_fibre(fibre, n, n_cores, n_sites, n_spheres, position, frame, core, linker, rest_length, stretch_k, bend_k, &
      twist_k, rest_twist, charge, joint_point, joint_frame, site, site_charge, sphere, sphere_radius, sphere_near, &
      contact, contact_k, contact_distance, scalar)
    type(fibre_t), intent(out) :: fibre
    integer(int32), intent(in) :: n, n_cores, n_sites, n_spheres
    real(real64), intent(in) :: position(:, :), frame(:, :, :), rest_length(:), stretch_k(:), bend_k(:), twist_k(:), &
      rest_twist(:), charge(:), joint_point(:, :), joint_frame(:, :, :), site(:, :), site_charge(:), sphere(:, :), &
      sphere_radius(:), contact_k(:), contact_distance(:), scalar(:)
    integer(int32), intent(in) :: core(:), linker(:), sphere_near(:, :), contact(:, :)
    integer(int32) :: p
    fibre%n = n
    fibre%core = core
    fibre%linker = linker
    fibre%position = position
    fibre%frame = frame
    fibre%rest_length = rest_length
    fibre%stretch_k = stretch_k
    fibre%bend_k = bend_k
    fibre%twist_k = twist_k
    fibre%rest_twist = rest_twist
    fibre%charge = charge
    fibre%joint_point = joint_point
    fibre%joint_frame = joint_frame
    fibre%site = site
    fibre%site_charge = site_charge
    fibre%sphere = sphere
    fibre%sphere_radius = sphere_radius
    fibre%sphere_near = sphere_near
    fibre%contact = contact
    fibre%contact_k = contact_k
    fibre%contact_distance = contact_distance
    fibre%bjerrum = scalar(1)
    fibre%kappa = scalar(2)
    fibre%cutoff = scalar(3)
    fibre%excluded_k = scalar(4)
    fibre%sigma = scalar(5:7)
    fibre%dna_radius = scalar(8)
    fibre%floor_k = scalar(9)
    fibre%confinement_k = scalar(10)
    fibre%confinement_radius = scalar(11)
    fibre%wall_k = scalar(12)
    fibre%wall = scalar(13:15)
    if (n_sites > 0) fibre%site_reach = maxval(norm2(site, 1))
    if (n_spheres > 0) fibre%sphere_reach = maxval(norm2(sphere, 1) + sphere_radius)
    if (n_spheres > 0) fibre%widest_sphere = maxval(sphere_radius)
    fibre%carried_reach = fibre%site_reach
    fibre%dna_kappa = scalar(16)
    fibre%dna_screened_at_cutoff = exp(-fibre%dna_kappa * fibre%cutoff) / fibre%cutoff
    fibre%screened_at_cutoff = exp(-fibre%kappa * fibre%cutoff) / fibre%cutoff
    fibre%excluded_at_cutoff = (fibre%sigma / fibre%cutoff)**6 * ((fibre%sigma / fibre%cutoff)**6 - 1)
    allocate (fibre%site_world(3, n_sites, n_cores), fibre%sphere_world(3, n_spheres, n_cores))
    allocate (fibre%exit_frame(3, 3, n), fibre%entry_frame(3, 3, n), source=0.0_real64)
    allocate (fibre%exit_point(3, n), fibre%entry_point(3, n), source=0.0_real64)
    allocate (fibre%segment_start(3, n - 1), fibre%segment_end(3, n - 1), fibre%direction(3, n - 1), fibre%length(n - 1))
    do p = 1, n
      call refresh_particle(fibre, p)
    end do
    do p = 1, n - 1
      call refresh_segment(fibre, p)
    end do
    allocate (fibre%bead, source=pack([(p, p=1, n)], core == 0))
    allocate (fibre%core_particle, source=pack([(p, p=1, n)], core /= 0))
    allocate (fibre%bead_number(n), source=0)
    do p = 1, size(fibre%bead)
      fibre%bead_number(fibre%bead(p)) = p
    end do
    call make_grid(fibre%bead_grid, position(:, fibre%bead), bead_cell)
    call make_grid(fibre%core_grid, position(:, fibre%core_particle), core_cell)
    call make_grid(fibre%segment_grid, 0.5_real64 * (fibre%segment_start + fibre%segment_end), bead_cell)
  end subroutine load_fibre

  !> Give the cores their limbs: places (3, limbs, cores) in the cores' frames. `sigma` and `strength` (kinds, kinds) are
  !> those of the excluded volume of limbs.
  subroutine load_limbs(fibre, limb, limb_charge, limb_kind, sigma, strength)
    type(fibre_t), intent(inout) :: fibre
    real(real64), intent(in) :: limb(:, :, :), limb_charge(:, :), sigma(:, :), strength(:, :)
    integer(int32), intent(in) :: limb_kind(:, :)
    real(real64) :: s6(n_kinds, n_kinds)
    integer(int32) :: c
    if (all(limb_kind == 0)) return
    fibre%n_limbs = size(limb, 2)
    fibre%limb = limb
    fibre%limb_charge = limb_charge
    fibre%limb_kind = limb_kind
    fibre%sigma2 = sigma**2
    fibre%strength = strength
    s6 = (sigma / fibre%cutoff)**6
    fibre%excluded_shift = s6 * (s6 - 1)
    allocate (fibre%limb_world, mold=limb)
    allocate (fibre%limb_reach(size(limb, 3)))
    do c = 1, size(limb, 3)
      fibre%limb_reach(c) = sqrt(maxval(merge(sum(limb(:, :, c)**2, 1), 0.0_real64, limb_kind(:, c) /= 0)))
    end do
    fibre%carried_reach = max(fibre%site_reach, maxval(fibre%limb_reach))
    do c = 1, size(fibre%core_particle)
      call refresh_particle(fibre, fibre%core_particle(c))
    end do
  end subroutine load_limbs

  !> Bring all that depends on the particles first..last up to date.
  pure subroutine refresh(self, first, last)
    type(fibre_t), intent(inout) :: self
    integer(int32), intent(in) :: first, last
    integer(int32) :: p
    do p = first, last
      call refresh_particle(self, p)
      if (self%core(p) == 0) then
        call move_point(self%bead_grid, self%bead_number(p), self%position(:, p))
      else
        call move_point(self%core_grid, self%core(p), self%position(:, p))
      end if
    end do
    do p = max(1, first - 1), min(self%n - 1, last)
      call refresh_segment(self, p)
      call move_point(self%segment_grid, p, 0.5_real64 * (self%segment_start(:, p) + self%segment_end(:, p)))
    end do
  end subroutine refresh

  !> Place what a core carries: joints, charge sites, floor spheres.
  pure subroutine refresh_particle(self, p)
    type(fibre_t), intent(inout) :: self
    integer(int32), intent(in) :: p
    integer(int32) :: c, i
    real(real64) :: r(3), f(3, 3)
    r = self%position(:, p)
    c = self%core(p)
    if (c == 0) then
      self%exit_point(:, p) = r
      self%entry_point(:, p) = r
      return
    end if
    f = self%frame(:, :, p)
    self%exit_point(:, p) = r + matmul(f, self%joint_point(:, 1))
    self%entry_point(:, p) = r + matmul(f, self%joint_point(:, 2))
    self%exit_frame(:, :, p) = matmul(f, self%joint_frame(:, :, 1))
    self%entry_frame(:, :, p) = matmul(f, self%joint_frame(:, :, 2))
    do i = 1, size(self%site, 2)
      self%site_world(:, i, c) = r + f(:, 1) * self%site(1, i) + f(:, 2) * self%site(2, i) + f(:, 3) * self%site(3, i)
    end do
    do i = 1, self%n_limbs
      self%limb_world(:, i, c) = r + f(:, 1) * self%limb(1, i, c) + f(:, 2) * self%limb(2, i, c) &
        + f(:, 3) * self%limb(3, i, c)
    end do
    do i = 1, size(self%sphere, 2)
      self%sphere_world(:, i, c) = r + f(:, 1) * self%sphere(1, i) + f(:, 2) * self%sphere(2, i) &
        + f(:, 3) * self%sphere(3, i)
    end do
  end subroutine refresh_particle

  !> End points and direction of a segment; a bead's frame is carried along without twisting it.
  pure subroutine refresh_segment(self, s)
    type(fibre_t), intent(inout) :: self
    integer(int32), intent(in) :: s
    real(real64) :: d(3), b(3)
    self%segment_start(:, s) = self%exit_point(:, s)
    self%segment_end(:, s) = self%entry_point(:, s + 1)
    d = self%segment_end(:, s) - self%segment_start(:, s)
    self%length(s) = norm2(d)
    d = d / self%length(s)
    self%direction(:, s) = d
    if (self%core(s) /= 0) return
    b = transported(self%frame(:, 2, s), self%frame(:, 1, s), d)
    b = b - dot_product(b, d) * d
    b = b / norm2(b)
    self%frame(:, 1, s) = d
    self%frame(:, 2, s) = b
    self%frame(:, 3, s) = cross(d, b)
  end subroutine refresh_segment

  !> Energy that a move of the particles first..last can change and that is cheap: all but charges and their excluded
  !> volume.
  pure function range_energy(self, first, last) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: first, last
    real(real64) :: energy(n_terms)
    integer(int32) :: p, s, low, high
    energy = 0
    ! Bonded terms change only at the two ends of the range.
    low = max(1, first - 2)
    high = min(self%n, first + 1)
    do s = low, high
      call add_bonded(self, s, energy)
    end do
    do s = max(high + 1, last - 1), min(self%n, last + 1)
      call add_bonded(self, s, energy)
    end do
    do p = first, last
      energy(confinement) = energy(confinement) + confinement_energy(self, p)
    end do
    energy(restraint) = contact_energy(self, first, last)
    energy(floor_) = range_floor(self, first, last)
  end function range_energy

  !> What is near the particles first..last, but for themselves.
  subroutine range_pairs(self, first, last, fresh)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: first, last
    type(near_t), intent(out) :: fresh(first:last)
    integer(int32) :: p
    do p = first, last
      call list_near(self, p, first, last, fresh(p))
    end do
  end subroutine range_pairs

  !> What is near particle p, but for first..last.
  subroutine list_near(self, p, first, last, near)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, first, last
    type(near_t), intent(inout) :: near
    integer(int32) :: q, k, count, found(self%n)
    real(real64) :: reach, terms(2)
    reach = self%cutoff
    if (self%core(p) /= 0) reach = reach + self%carried_reach
    call points_near(self%bead_grid, self%position(:, p), reach, found, count)
    do k = 1, count
      q = self%bead(found(k))
      if (q >= first .and. q <= last) cycle
      terms = pair_terms(self, p, q)
      if (any(abs(terms) > 0)) call append(near, q, terms)
    end do
    call points_near(self%core_grid, self%position(:, p), reach + self%carried_reach, found, count)
    do k = 1, count
      q = self%core_particle(found(k))
      if (q >= first .and. q <= last) cycle
      terms = pair_terms(self, p, q)
      if (any(abs(terms) > 0)) call append(near, q, terms)
    end do
  end subroutine list_near

  pure subroutine append(self, particle, terms)
    type(near_t), intent(inout) :: self
    integer(int32), intent(in) :: particle
    real(real64), intent(in) :: terms(2)
    type(near_t) :: longer
    if (.not. allocated(self%particle)) allocate (self%particle(32), self%terms(2, 32))
    if (self%n == size(self%particle)) then
      allocate (longer%particle(2 * self%n), longer%terms(2, 2 * self%n))
      longer%particle(:self%n) = self%particle
      longer%terms(:, :self%n) = self%terms
      call move_alloc(longer%particle, self%particle)
      call move_alloc(longer%terms, self%terms)
    end if
    self%n = self%n + 1
    self%particle(self%n) = particle
    self%terms(:, self%n) = terms
  end subroutine append

  !> Take the particle out of the list; the last comes in its place.
  pure subroutine remove(self, particle)
    type(near_t), intent(inout) :: self
    integer(int32), intent(in) :: particle
    integer(int32) :: k
    do k = 1, self%n
      if (self%particle(k) /= particle) cycle
      self%particle(k) = self%particle(self%n)
      self%terms(:, k) = self%terms(:, self%n)
      self%n = self%n - 1
      return
    end do
  end subroutine remove

  !> How far what belongs to particle p reaches from its position: sites, limbs, spheres and joints of a core.
  pure function own_reach(self, p) result(reach)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p
    real(real64) :: reach
    reach = 0
    if (self%core(p) == 0) return
    reach = max(self%site_reach, self%sphere_reach, maxval(norm2(self%joint_point, 1)))
    if (self%n_limbs > 0) reach = max(reach, self%limb_reach(self%core(p)))
  end function own_reach

  !> Electrostatics and excluded volume of two particles.
  pure function pair_terms(self, p, q) result(terms)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, q
    real(real64) :: terms(2), energy(n_terms)
    energy = 0
    call add_charged_pair(self, p, q, energy)
    terms = energy([electrostatic, excluded])
  end function pair_terms

  !> Remember the pairs of all particles, so that a trial need not compute again what it leaves.
  subroutine remember_pairs(self, near)
    type(fibre_t), intent(in) :: self
    type(near_t), allocatable, intent(out) :: near(:)
    integer(int32) :: p, q, k
    integer(int32) :: found(self%n)
    allocate (near(self%n))
    !$omp parallel do schedule(dynamic, 8) if(self%n >= worth_threads)
    do p = 1, self%n   ! each pair once, for both
      call list_near(self, p, p, self%n, near(p))
    end do
    !$omp end parallel do
    found = near%n
    do p = 1, self%n
      do k = 1, found(p)
        q = near(p)%particle(k)
        call append(near(q), p, near(p)%terms(:, k))
      end do
    end do
  end subroutine remember_pairs

  !> The pairs of the particles first..last with those outside are now these.
  pure subroutine replace_pairs(near, first, last, fresh)
    type(near_t), intent(inout) :: near(:)
    integer(int32), intent(in) :: first, last
    type(near_t), intent(in) :: fresh(first:last)
    integer(int32) :: p, q, k, kept
    do p = first, last
      kept = 0
      do k = 1, near(p)%n
        q = near(p)%particle(k)
        if (q < first .or. q > last) then
          call remove(near(q), p)
        else
          kept = kept + 1
          near(p)%particle(kept) = q
          near(p)%terms(:, kept) = near(p)%terms(:, k)
        end if
      end do
      near(p)%n = kept
      do k = 1, fresh(p)%n
        call append(near(p), fresh(p)%particle(k), fresh(p)%terms(:, k))
        call append(near(fresh(p)%particle(k)), p, fresh(p)%terms(:, k))
      end do
    end do
  end subroutine replace_pairs

  !> The sum of the pairs of the particles first..last with those outside, added to `energy`.
  pure subroutine add_pairs(near, first, last, energy)
    integer(int32), intent(in) :: first, last
    type(near_t), intent(in) :: near(first:last)
    real(real64), intent(inout) :: energy(n_terms)
    real(real64) :: total(2)
    integer(int32) :: p, k
    total = 0
    do p = first, last
      do k = 1, near(p)%n
        if (near(p)%particle(k) < first .or. near(p)%particle(k) > last) total = total + near(p)%terms(:, k)
      end do
    end do
    energy([electrostatic, excluded]) = energy([electrostatic, excluded]) + total
  end subroutine add_pairs

  !> Energy of the whole fibre, term by term.
  function full_energy(self) result(energy)
    type(fibre_t), intent(in) :: self
    real(real64) :: energy(n_terms), part(n_terms, self%n)
    integer(int32) :: p
    !$omp parallel do schedule(dynamic, 8) if(self%n >= worth_threads)
    do p = 1, self%n
      part(:, p) = energy_at(self, p)
    end do
    !$omp end parallel do
    energy = sum(part, 2)
    do p = 1, size(self%contact, 2)
      energy(restraint) = energy(restraint) + one_contact(self, p)
    end do
  end function full_energy

  !> The share of particle p, and of segment p, in the energy of the fibre: with those before it.
  pure function energy_at(self, p) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p
    real(real64) :: energy(n_terms)
    integer(int32) :: q
    energy = 0
    call add_bonded(self, p, energy)
    energy(confinement) = confinement_energy(self, p)
    do q = 1, p - 1
      call add_charged_pair(self, p, q, energy)
      if (self%core(p) /= 0 .and. self%core(q) /= 0) energy(floor_) = energy(floor_) + core_core_floor(self, p, q)
    end do
    if (p == self%n) return
    do q = 1, p - 1
      energy(floor_) = energy(floor_) + segment_segment_floor(self, p, q)
    end do
    do q = 1, self%n
      if (self%core(q) /= 0) energy(floor_) = energy(floor_) + segment_core_floor(self, p, q)
    end do
  end function energy_at

  !> Stretch and twist of segment p and bends at particle p.
  pure subroutine add_bonded(self, p, energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p
    real(real64), intent(inout) :: energy(n_terms)
    if (p < self%n) then
      energy(stretch) = energy(stretch) + 0.5_real64 * self%stretch_k(p) * (self%length(p) - self%rest_length(p))**2
      energy(twist) = energy(twist) + twist_energy_at(self, p)
    end if
    if (self%core(p) /= 0) then
      if (p < self%n) energy(bend) = energy(bend) &
        + 0.5_real64 * self%bend_k(p) * angle(self%exit_frame(:, 1, p), self%direction(:, p))**2
      if (p > 1) energy(bend) = energy(bend) &
        + 0.5_real64 * self%bend_k(p - 1) * angle(self%direction(:, p - 1), self%entry_frame(:, 1, p))**2
    else if (p > 1 .and. p < self%n) then
      energy(bend) = energy(bend) + 0.25_real64 * (self%bend_k(p - 1) + self%bend_k(p)) &
        * angle(self%direction(:, p - 1), self%direction(:, p))**2
    end if
  end subroutine add_bonded

  !> Twist between the frame leaving particle p and the frame arriving at p+1.
  pure function twist_energy_at(self, p) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p
    real(real64) :: energy, b(3), c(3), b_next(3), c_next(3), deviation
    energy = 0
    if (self%twist_k(p) <= 0) return
    if (self%core(p) /= 0) then
      b = transported(self%exit_frame(:, 2, p), self%exit_frame(:, 1, p), self%direction(:, p))
      c = cross(self%direction(:, p), b)
    else
      b = self%frame(:, 2, p)
      c = self%frame(:, 3, p)
    end if
    if (self%core(p + 1) /= 0) then
      b_next = self%entry_frame(:, 2, p + 1)
      c_next = self%entry_frame(:, 3, p + 1)
    else
      b_next = self%frame(:, 2, p + 1)
      c_next = self%frame(:, 3, p + 1)
    end if
    deviation = atan2(dot_product(c, b_next) - dot_product(b, c_next), dot_product(b, b_next) + dot_product(c, c_next)) &
      - self%rest_twist(p)
    deviation = deviation - 2 * pi * anint(deviation / (2 * pi))
    energy = 0.5_real64 * self%twist_k(p) * deviation**2
  end function twist_energy_at

  !> Electrostatics and excluded volume of two particles. Neighbours in the chain have none but those of limbs.
  pure subroutine add_charged_pair(self, p, q, energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, q
    real(real64), intent(inout) :: energy(n_terms)
    integer(int32) :: i, core_p, core_q, one, other
    real(real64) :: reach, d(3)
    if (self%n_limbs > 0) then
      if (self%core(p) /= 0) call add_limbs(self, p, q, energy)
      if (self%core(q) /= 0) call add_limbs(self, q, p, energy)
      if (self%core(p) /= 0 .and. self%core(q) /= 0) call add_limb_pairs(self, self%core(p), self%core(q), energy)
    end if
    if (abs(p - q) < 2) return
    core_p = self%core(p)
    core_q = self%core(q)
    reach = self%cutoff
    if (core_p /= 0) reach = reach + self%site_reach
    if (core_q /= 0) reach = reach + self%site_reach
    d = self%position(:, p) - self%position(:, q)
    if (dot_product(d, d) >= reach**2) return
    if (core_p /= 0 .and. core_q /= 0) then
      ! The sites of the first core in the field of the second: always the same way, for a table has rounding errors.
      one = min(core_p, core_q)
      other = max(core_p, core_q)
      do i = 1, size(self%site, 2)
        d = self%site_world(:, i, one) - self%position(:, self%core_particle(other))
        if (dot_product(d, d) >= (self%cutoff + self%site_reach)**2) cycle
        call add_sites(self, self%site_world(:, i, one), self%site_charge(i), other, self%sigma(3)**2, &
          self%excluded_k, self%excluded_at_cutoff(3), energy)
      end do
    else if (core_p /= 0) then
      call add_sites(self, self%position(:, q), self%charge(q), core_p, self%sigma(2)**2, self%excluded_k, &
        self%excluded_at_cutoff(2), energy)
    else if (core_q /= 0) then
      call add_sites(self, self%position(:, p), self%charge(p), core_q, self%sigma(2)**2, self%excluded_k, &
        self%excluded_at_cutoff(2), energy)
    else
      call add_bead_pair(self, sqrt(dot_product(d, d)), self%charge(p) * self%charge(q), energy)
    end if
  end subroutine add_charged_pair

  !> The limbs of core p with bead q, or with the sites of core q.
  pure subroutine add_limbs(self, p, q, energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, q
    real(real64), intent(inout) :: energy(n_terms)
    integer(int32) :: i, kind, core_p, core_q
    real(real64) :: reach, d(3), d2
    core_p = self%core(p)
    core_q = self%core(q)
    reach = self%cutoff
    if (core_q /= 0) reach = reach + self%site_reach
    d = self%position(:, p) - self%position(:, q)
    if (dot_product(d, d) >= (reach + self%limb_reach(core_p))**2) return
    do i = 1, self%n_limbs
      kind = self%limb_kind(i, core_p)
      if (kind == 0) cycle
      d = self%limb_world(:, i, core_p) - self%position(:, q)
      d2 = dot_product(d, d)
      if (d2 >= reach**2) cycle
      if (core_q == 0) then
        call add_limb_point(self, d2, self%limb_charge(i, core_p) * self%charge(q), kind, dna, energy)
      else
        call add_sites(self, self%limb_world(:, i, core_p), self%limb_charge(i, core_p), core_q, &
          self%sigma2(kind, core_site), self%strength(kind, core_site), self%excluded_shift(kind, core_site), energy)
      end if
    end do
  end subroutine add_limbs

  !> The limbs of two cores with each other.
  pure subroutine add_limb_pairs(self, core_p, core_q, energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: core_p, core_q
    real(real64), intent(inout) :: energy(n_terms)
    integer(int32) :: i, j, p, q
    real(real64) :: d(3), d2
    p = self%core_particle(core_p)
    q = self%core_particle(core_q)
    d = self%position(:, p) - self%position(:, q)
    if (dot_product(d, d) >= (self%cutoff + self%limb_reach(core_p) + self%limb_reach(core_q))**2) return
    do i = 1, self%n_limbs
      if (self%limb_kind(i, core_p) == 0) cycle
      d = self%limb_world(:, i, core_p) - self%position(:, q)
      if (dot_product(d, d) >= (self%cutoff + self%limb_reach(core_q))**2) cycle
      do j = 1, self%n_limbs
        if (self%limb_kind(j, core_q) == 0) cycle
        d = self%limb_world(:, i, core_p) - self%limb_world(:, j, core_q)
        d2 = dot_product(d, d)
        if (d2 < self%cutoff**2) call add_limb_point(self, d2, self%limb_charge(i, core_p) * self%limb_charge(j, core_q), &
          self%limb_kind(i, core_p), self%limb_kind(j, core_q), energy)
      end do
    end do
  end subroutine add_limb_pairs

  pure subroutine add_limb_point(self, r2, charge_product, kind, other, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: r2, charge_product
    integer(int32), intent(in) :: kind, other
    real(real64), intent(inout) :: energy(n_terms)
    real(real64) :: r, s6
    r = sqrt(r2)
    energy(electrostatic) = energy(electrostatic) + self%bjerrum * charge_product &
      * (exp(-self%kappa * r) / r - self%screened_at_cutoff)
    s6 = (self%sigma2(kind, other) / r2)**3
    energy(excluded) = energy(excluded) + self%strength(kind, other) * (s6 * (s6 - 1) - self%excluded_shift(kind, other))
  end subroutine add_limb_point

  !> A point charge with all sites of a core; excluded volume of that range squared, strength, and value at the cutoff.
  pure subroutine add_sites(self, point, charge, core, sigma2, strength, shift, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: point(3), charge, sigma2, strength, shift
    integer(int32), intent(in) :: core
    real(real64), intent(inout) :: energy(n_terms)
    integer(int32) :: p
    real(real64) :: field(n_parts), d(3), local(3)
    if (.not. self%field%present) then
      call add_sites_one_by_one(self, point, charge, core, sigma2, strength, shift, energy)
      return
    end if
    p = self%core_particle(core)
    d = point - self%position(:, p)
    local = [dot_product(d, self%frame(:, 1, p)), dot_product(d, self%frame(:, 2, p)), dot_product(d, self%frame(:, 3, p))]
    field = field_at(self%field, local)
    energy(electrostatic) = energy(electrostatic) + self%bjerrum * charge * field(1)
    energy(excluded) = energy(excluded) + strength * sigma2**3 * (sigma2**3 * field(2) - field(3))
  end subroutine add_sites

  pure subroutine add_sites_one_by_one(self, point, charge, core, sigma2, strength, shift, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: point(3), charge, sigma2, strength, shift
    integer(int32), intent(in) :: core
    real(real64), intent(inout) :: energy(n_terms)
    integer(int32) :: i, n
    real(real64) :: r2, r, s6, el, ex
    real(real64) :: near_r2(size(self%site_charge)), near_charge(size(self%site_charge))
    ! First who is near, then their energies in one loop, which vectorises.
    n = 0
    do i = 1, size(self%site_charge)
      r2 = (point(1) - self%site_world(1, i, core))**2 + (point(2) - self%site_world(2, i, core))**2 &
        + (point(3) - self%site_world(3, i, core))**2
      if (r2 >= self%cutoff**2) cycle
      n = n + 1
      near_r2(n) = r2
      near_charge(n) = self%site_charge(i)
    end do
    el = 0
    ex = 0
    !$omp simd reduction(+:el, ex) private(r, s6)
    do i = 1, n
      r = sqrt(near_r2(i))
      el = el + near_charge(i) * (exp(-self%kappa * r) / r - self%screened_at_cutoff)
      s6 = (sigma2 / near_r2(i))**3
      ex = ex + s6 * (s6 - 1) - shift
    end do
    energy(electrostatic) = energy(electrostatic) + self%bjerrum * charge * el
    energy(excluded) = energy(excluded) + strength * ex
  end subroutine add_sites_one_by_one

  !> Both pair potentials of two linker beads, shifted to zero at the cutoff.
  pure subroutine add_bead_pair(self, r, charge_product, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: r, charge_product
    real(real64), intent(inout) :: energy(n_terms)
    real(real64) :: s6
    if (r >= self%cutoff) return
    energy(electrostatic) = energy(electrostatic) + self%bjerrum * charge_product &
      * (exp(-self%dna_kappa * r) / r - self%dna_screened_at_cutoff)
    s6 = (self%sigma(1) / r)**6
    energy(excluded) = energy(excluded) + self%excluded_k * (s6 * (s6 - 1) - self%excluded_at_cutoff(1))
  end subroutine add_bead_pair

  !> Floor energy of all pairs whose relative position a move of first..last can change.
  pure function range_floor(self, first, last) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: first, last
    real(real64) :: energy
    integer(int32) :: s, t, p, q, k, count, found(self%n)
    real(real64) :: middle(3), reach
    logical :: s_bridges
    energy = 0
    if (self%floor_k <= 0) return
    ! Segments first-1 and last bridge to what stands still: they change against everything.
    do s = max(1, first - 1), min(self%n - 1, last)
      s_bridges = s == first - 1 .or. s == last
      middle = 0.5_real64 * (self%segment_start(:, s) + self%segment_end(:, s))
      reach = 0.5_real64 * self%length(s) + self%dna_radius
      call points_near(self%segment_grid, middle, reach + self%dna_radius + 0.5_real64 * longest_segment, found, count)
      do k = 1, count
        t = found(k)
        if (t >= first - 1 .and. t <= last) then
          if (t >= s) cycle
          if (.not. (s_bridges .or. t == first - 1)) cycle
        end if
        energy = energy + segment_segment_floor(self, s, t)
      end do
      call points_near(self%core_grid, middle, reach + self%sphere_reach, found, count)
      do k = 1, count
        p = self%core_particle(found(k))
        if (p >= first .and. p <= last .and. .not. s_bridges) cycle
        energy = energy + segment_core_floor(self, s, p)
      end do
    end do
    do p = first, last
      if (self%core(p) == 0) cycle
      call points_near(self%core_grid, self%position(:, p), 2 * self%sphere_reach, found, count)
      do k = 1, count
        q = self%core_particle(found(k))
        if (q < first .or. q > last) energy = energy + core_core_floor(self, p, q)
      end do
      reach = self%sphere_reach + self%dna_radius + 0.5_real64 * longest_segment
      call points_near(self%segment_grid, self%position(:, p), reach, found, count)
      do k = 1, count
        t = found(k)
        if (t < first - 1 .or. t > last) energy = energy + segment_core_floor(self, t, p)
      end do
    end do
  end function range_floor

  !> Two capsules of linker DNA; nearby segments of one linker are held apart by bending already.
  pure function segment_segment_floor(self, s, t) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: s, t
    real(real64) :: energy, d(3), reach, distance, along, other
    energy = 0
    d = 0.5_real64 * (self%segment_start(:, s) + self%segment_end(:, s) - self%segment_start(:, t) - self%segment_end(:, t))
    reach = 0.5_real64 * (self%length(s) + self%length(t)) + 2 * self%dna_radius
    if (dot_product(d, d) >= reach**2) return
    if (are_close_in_chain(self, s, t)) return
    call closest_points(self%segment_start(:, s), self%segment_end(:, s), self%segment_start(:, t), &
      self%segment_end(:, t), distance, along, other)
    energy = overlap(self, distance, 2 * self%dna_radius)
  end function segment_segment_floor

  !> Neighbouring segments of a linker, which bending holds apart.
  pure function are_close_in_chain(self, s, t) result(close)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: s, t
    logical :: close
    close = self%linker(s) == self%linker(t) .and. abs(s - t) <= 2
  end function are_close_in_chain

  !> The end of core p that the linker of segment s continues: 1 exit, 2 entry, 0 neither.
  pure function continued_end(self, s, p) result(end_)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: s, p
    integer(int32) :: end_
    end_ = 0
    if (p < self%n) then
      if (self%linker(p) == self%linker(s)) end_ = 1
    end if
    if (p > 1) then
      if (self%linker(p - 1) == self%linker(s)) end_ = 2
    end if
  end function continued_end

  !> A linker capsule and the spheres of a core; a linker ignores the wrapped DNA that it continues.
  pure function segment_core_floor(self, s, p) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: s, p
    real(real64) :: energy, d(3), reach, a(3), along(3), x(3), t, length2, d2, contact
    integer(int32) :: i, core, continued
    energy = 0
    d = 0.5_real64 * (self%segment_start(:, s) + self%segment_end(:, s)) - self%position(:, p)
    reach = 0.5_real64 * self%length(s) + self%sphere_reach + self%dna_radius
    if (dot_product(d, d) >= reach**2) return
    continued = continued_end(self, s, p)
    core = self%core(p)
    a = self%segment_start(:, s)
    along = self%segment_end(:, s) - a
    length2 = dot_product(along, along)
    do i = 1, size(self%sphere, 2)
      x = self%sphere_world(:, i, core) - a
      t = min(1.0_real64, max(0.0_real64, dot_product(x, along) / length2))
      x = x - t * along
      d2 = dot_product(x, x)
      contact = self%dna_radius + self%sphere_radius(i)
      if (d2 >= contact**2) cycle
      if (continued /= 0) then
        if (self%sphere_near(continued, i) /= 0) cycle
      end if
      energy = energy + overlap(self, sqrt(d2), contact)
    end do
  end function segment_core_floor

  pure function core_core_floor(self, p, q) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, q
    real(real64) :: energy, d(3), x(3), d2, contact, widest
    integer(int32) :: i, j, core_p, core_q
    energy = 0
    d = self%position(:, p) - self%position(:, q)
    if (dot_product(d, d) >= (2 * self%sphere_reach)**2) return
    core_p = self%core(p)
    core_q = self%core(q)
    widest = self%widest_sphere
    do i = 1, size(self%sphere, 2)
      x = self%sphere_world(:, i, core_p)
      d = x - self%position(:, q)
      if (dot_product(d, d) >= (self%sphere_reach + self%sphere_radius(i))**2) cycle
      do j = 1, size(self%sphere, 2)
        d2 = (x(1) - self%sphere_world(1, j, core_q))**2 + (x(2) - self%sphere_world(2, j, core_q))**2 &
          + (x(3) - self%sphere_world(3, j, core_q))**2
        if (d2 >= (self%sphere_radius(i) + widest)**2) cycle
        contact = self%sphere_radius(i) + self%sphere_radius(j)
        if (d2 < contact**2) energy = energy + overlap(self, sqrt(d2), contact)
      end do
    end do
  end function core_core_floor

  pure function overlap(self, distance, contact) result(energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: distance, contact
    real(real64) :: energy
    energy = 0.5_real64 * self%floor_k * max(0.0_real64, contact - distance)**2
  end function overlap

  !> Contacts with exactly one partner among first..last.
  pure function contact_energy(self, first, last) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: first, last
    real(real64) :: energy
    integer(int32) :: i
    energy = 0
    do i = 1, size(self%contact, 2)
      if ((self%contact(1, i) >= first .and. self%contact(1, i) <= last) &
        .neqv. (self%contact(2, i) >= first .and. self%contact(2, i) <= last)) energy = energy + one_contact(self, i)
    end do
  end function contact_energy

  !> Flat to d0, harmonic to 2 d0, linear beyond.
  pure function one_contact(self, i) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: i
    real(real64) :: energy, excess, d0
    d0 = self%contact_distance(i)
    excess = norm2(self%position(:, self%contact(1, i)) - self%position(:, self%contact(2, i))) - d0
    energy = 0
    if (excess > d0) then
      energy = self%contact_k(i) * d0 * (excess - 0.5_real64 * d0)
    else if (excess > 0) then
      energy = 0.5_real64 * self%contact_k(i) * excess**2
    end if
  end function one_contact

  pure function confinement_energy(self, p) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p
    real(real64) :: energy
    integer(int32) :: i
    energy = 0
    if (self%confinement_k > 0) energy = 0.5_real64 * self%confinement_k &
      * max(0.0_real64, norm2(self%position(:, p)) - self%confinement_radius)**2
    if (self%wall_k <= 0) return
    if (self%core(p) == 0) then
      energy = energy + 0.5_real64 * self%wall_k * sum(max(0.0_real64, abs(self%position(:, p)) - self%wall)**2)
    else
      do i = 1, size(self%sphere, 2)
        energy = energy + 0.5_real64 * self%wall_k &
          * sum(max(0.0_real64, abs(self%sphere_world(:, i, self%core(p))) - self%wall)**2)
      end do
    end if
  end function confinement_energy

  !> Shortest distance between two line segments (closest points of two lines, clamped one after the other).
  pure subroutine closest_points(p1, p2, q1, q2, distance, s, t)
    real(real64), intent(in) :: p1(3), p2(3), q1(3), q2(3)
    real(real64), intent(out) :: distance, s, t   !< shares of the two lengths where they are closest
    real(real64) :: u(3), v(3), w(3), a, b, c, d, e, determinant
    u = p2 - p1
    v = q2 - q1
    w = p1 - q1
    a = dot_product(u, u)
    b = dot_product(u, v)
    c = dot_product(v, v)
    d = dot_product(u, w)
    e = dot_product(v, w)
    determinant = a * c - b * b
    s = 0
    if (determinant > 1.0e-12_real64 * a * c) s = min(1.0_real64, max(0.0_real64, (b * e - c * d) / determinant))
    t = (b * s + e) / c
    if (t < 0) then
      t = 0
      s = min(1.0_real64, max(0.0_real64, -d / a))
    else if (t > 1) then
      t = 1
      s = min(1.0_real64, max(0.0_real64, (b - d) / a))
    end if
    distance = norm2(w + s * u - t * v)
  end subroutine closest_points

  !> The vector v turned by the smallest rotation that takes the unit vector a to the unit vector b.
  pure function transported(v, a, b) result(w)
    real(real64), intent(in) :: v(3), a(3), b(3)
    real(real64) :: w(3), axis(3), cosine
    axis = cross(a, b)
    cosine = dot_product(a, b)
    if (1 + cosine < 1.0e-12_real64) then
      w = v   ! a reversal has no unique smallest rotation; it is never accepted
    else
      w = cosine * v + cross(axis, v) + axis * (dot_product(axis, v) / (1 + cosine))
    end if
  end function transported

  pure function angle(a, b) result(beta)
    real(real64), intent(in) :: a(3), b(3)
    real(real64) :: beta
    beta = atan2(norm2(cross(a, b)), dot_product(a, b))
  end function angle

  pure function cross(a, b) result(c)
    real(real64), intent(in) :: a(3), b(3)
    real(real64) :: c(3)
    c = [a(2) * b(3) - a(3) * b(2), a(3) * b(1) - a(1) * b(3), a(1) * b(2) - a(2) * b(1)]
  end function cross

end module fibre_energy
