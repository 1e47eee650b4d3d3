!> A chromatin fibre of rigid nucleosome cores and DNA linker beads: constants of its energy and its conformation, in nm,
!> kBT and elementary charges.
!>
!> Particles are stored in chain order. Segment s joins particle s to particle s+1; it starts at the exit point of a
!> core (or at the bead) and ends at the entry point of the next core (or at the bead). A circle has one segment more,
!> which joins its last particle to the first; ranges of neighbours are then counted on beyond the last particle.
module fibre_model
  use core_field, only: field_t
  use fibre_grid, only: grid_t, make_grid, move_point
  use geometry, only: cross, transported
  use iso_c_binding, only: c_f_pointer, c_loc, c_null_ptr
  use iso_fortran_env, only: int32, int64, real64
  implicit none
  private
  public :: fibre_t, shape_t, new_fibre, delete_fibre, fibre_of, place, refresh, refresh_particle, refresh_segment
  public :: own_reach, are_neighbours, are_close_in_chain, continued_end
  public :: around, counted_from, is_among, particle_after, segment_before, first_segment, last_segment, span
  public :: n_terms, n_kinds, worth_threads, dna, core_site, bead_bead, bead_site, site_site
  public :: stretch, bend, twist, electrostatic, excluded, floor_, restraint, confinement

  integer(int32), parameter :: n_terms = 8   !< of the energy, in this order
  integer(int32), parameter :: stretch = 1, bend = 2, twist = 3, electrostatic = 4, excluded = 5, floor_ = 6, &
    restraint = 7, confinement = 8
  integer(int32), parameter :: n_kinds = 5, dna = 1, core_site = 2   !< of matter; the others are those of limbs
  integer(int32), parameter :: bead_bead = 1, bead_site = 2, site_site = 3   !< pairs that have an excluded volume
  real(real64), parameter :: bead_cell = 5, core_cell = 8   !< nm, edges of the grids' cells
  integer(int32), parameter :: worth_threads = 200  !< particles; fewer are left to one thread

  !> A rigid core in its own frame.
  type :: shape_t
    real(real64) :: joint_point(3, 2) = 0, joint_frame(3, 3, 2) = 0   !< 1 = exit, 2 = entry; columns tangent, b, c
    real(real64), allocatable :: site(:, :), site_charge(:)           !< nm, e
    real(real64), allocatable :: sphere(:, :), sphere_radius(:)       !< nm
    integer(int32), allocatable :: sphere_near(:, :)  !< (2, spheres): wrapped DNA next to the exit, the entry
    type(field_t), pointer :: field => null()         !< of the sites; without it they are summed over
  end type shape_t

  type :: fibre_t
    integer(int32) :: n = 0                           !< particles
    integer(int32) :: n_segments = 0                  !< n of a circle, else n - 1
    integer(int32) :: n_cores = 0
    logical :: is_circle = .false.
    integer(int32), allocatable :: core(:)            !< number of the core, 0 for a bead
    integer(int32), allocatable :: linker(:)          !< number of the linker that a segment belongs to
    real(real64), allocatable :: charge(:)            !< e, of beads
    integer(int32), allocatable :: bead(:), bead_number(:), core_particle(:)   !< particles of beads, their numbers, cores
    ! Elasticity, of segments: nm, kBT/nm^2, kBT, kBT, radian.
    real(real64), allocatable :: rest_length(:), stretch_k(:), bend_k(:), twist_k(:), rest_twist(:)
    type(shape_t), allocatable :: shape(:)            !< that cores have
    integer(int32), allocatable :: form(:)            !< (cores): number of the shape
    ! Limbs: points of flexible chains that a core carries along, each with the kind of matter it is (0: not there).
    integer(int32) :: n_limbs = 0
    integer(int32), allocatable :: limb_kind(:, :)    !< (limbs, cores)
    real(real64), allocatable :: limb(:, :, :), limb_charge(:, :)
    real(real64) :: limb_sigma(n_kinds, n_kinds) = 0, strength(n_kinds, n_kinds) = 0   !< nm, kBT
    ! Pair potentials.
    real(real64) :: bjerrum = 0, kappa = 0, dna_kappa = 0, cutoff = 0   !< nm, 1/nm, 1/nm, nm
    real(real64) :: excluded_k = 0, sigma(3) = 0      !< kBT, nm
    real(real64) :: dna_radius = 0, floor_k = 0       !< nm, kBT/nm^2
    integer(int32), allocatable :: contact(:, :)      !< (2, contacts) particles
    real(real64), allocatable :: contact_k(:), contact_distance(:)      !< kBT/nm^2, nm
    ! Wells, both ways round: of particle p the entries well_first(p) to well_first(p+1)-1.
    integer(int32), allocatable :: well_first(:), well_partner(:)
    real(real64), allocatable :: well_energy(:)       !< kBT of a contact
    real(real64) :: well_flat = 0, well_reach = 0     !< nm
    real(real64) :: confinement_k = 0, confinement_radius = 0, wall_k = 0, wall(3) = 0   !< kBT/nm^2, nm
    ! What follows from these constants: how far things reach (nm), and what shifts pair potentials to zero.
    real(real64) :: site_reach = 0, sphere_reach = 0, joint_reach = 0, widest_sphere = 0
    integer(int32) :: most_sites = 0, most_spheres = 0
    real(real64), allocatable :: limb_reach(:)
    real(real64) :: carried_reach = 0                 !< of sites and limbs
    real(real64) :: screened_at_cutoff = 0, dna_screened_at_cutoff = 0, excluded_at_cutoff(3) = 0
    real(real64) :: sigma2(n_kinds, n_kinds) = 0, excluded_shift(n_kinds, n_kinds) = 0
    ! The conformation, and what follows from it.
    real(real64), allocatable :: position(:, :), frame(:, :, :)
    real(real64), allocatable :: site_world(:, :, :), limb_world(:, :, :), sphere_world(:, :, :)   !< (3, each, cores)
    real(real64), allocatable :: exit_frame(:, :, :), entry_frame(:, :, :), exit_point(:, :), entry_point(:, :)
    real(real64), allocatable :: segment_start(:, :), segment_end(:, :), direction(:, :), length(:)
    ! What is near: beads, cores, middles of segments. Grids number beads and cores in chain order.
    type(grid_t) :: bead_grid, core_grid, segment_grid
  end type fibre_t

contains

  !> A fibre of its own on the heap, as an opaque number.
  function new_fibre() result(handle)
    integer(int64) :: handle
    type(fibre_t), pointer :: fibre
    allocate (fibre)
    allocate (fibre%contact(2, 0), fibre%contact_k(0), fibre%contact_distance(0))
    allocate (fibre%well_first(0), fibre%well_partner(0), fibre%well_energy(0))
    handle = transfer(c_loc(fibre), handle)
  end function new_fibre

  !> The fibre that belongs to a number from `new_fibre`.
  function fibre_of(handle) result(fibre)
    integer(int64), intent(in) :: handle
    type(fibre_t), pointer :: fibre
    call c_f_pointer(transfer(handle, c_null_ptr), fibre)
  end function fibre_of

  subroutine delete_fibre(handle)
    integer(int64), intent(in) :: handle
    type(fibre_t), pointer :: fibre
    fibre => fibre_of(handle)
    deallocate (fibre)
  end subroutine delete_fibre

  !> Put the fibre into a conformation: positions (3, n) in nm and frames (3, 3, n), whose columns are the axes.
  subroutine place(self, position, frame)
    type(fibre_t), intent(inout) :: self
    real(real64), intent(in) :: position(:, :), frame(:, :, :)
    integer(int32) :: p
    call derive(self)
    self%position = position
    self%frame = frame
    if (.not. allocated(self%length)) call make_room(self)
    do p = 1, self%n
      call refresh_particle(self, p)
    end do
    do p = 1, self%n_segments
      call refresh_segment(self, p)
    end do
    call make_grid(self%bead_grid, self%position(:, self%bead), bead_cell)
    call make_grid(self%core_grid, self%position(:, self%core_particle), core_cell)
    call make_grid(self%segment_grid, 0.5_real64 * (self%segment_start + self%segment_end), bead_cell)
  end subroutine place

  !> Constants that follow from those that were set.
  pure subroutine derive(self)
    type(fibre_t), intent(inout) :: self
    real(real64) :: s6(n_kinds, n_kinds)
    integer(int32) :: c, k
    do k = 1, size(self%shape)
      associate (shape => self%shape(k))
        self%most_sites = max(self%most_sites, size(shape%site_charge))
        self%most_spheres = max(self%most_spheres, size(shape%sphere_radius))
        self%joint_reach = max(self%joint_reach, maxval(norm2(shape%joint_point, 1)))
        if (size(shape%site_charge) > 0) self%site_reach = max(self%site_reach, maxval(norm2(shape%site, 1)))
        if (size(shape%sphere_radius) == 0) cycle
        self%sphere_reach = max(self%sphere_reach, maxval(norm2(shape%sphere, 1) + shape%sphere_radius))
        self%widest_sphere = max(self%widest_sphere, maxval(shape%sphere_radius))
      end associate
    end do
    self%dna_screened_at_cutoff = exp(-self%dna_kappa * self%cutoff) / self%cutoff
    self%screened_at_cutoff = exp(-self%kappa * self%cutoff) / self%cutoff
    self%excluded_at_cutoff = (self%sigma / self%cutoff)**6 * ((self%sigma / self%cutoff)**6 - 1)
    self%carried_reach = self%site_reach
    if (self%n_limbs == 0) return
    self%sigma2 = self%limb_sigma**2
    s6 = (self%limb_sigma / self%cutoff)**6
    self%excluded_shift = s6 * (s6 - 1)
    if (.not. allocated(self%limb_reach)) allocate (self%limb_reach(self%n_cores))
    do c = 1, self%n_cores
      self%limb_reach(c) = sqrt(maxval(merge(sum(self%limb(:, :, c)**2, 1), 0.0_real64, self%limb_kind(:, c) /= 0)))
    end do
    self%carried_reach = max(self%site_reach, maxval(self%limb_reach))
  end subroutine derive

  pure subroutine make_room(self)
    type(fibre_t), intent(inout) :: self
    associate (n => self%n, s => self%n_segments, n_cores => self%n_cores)
      allocate (self%site_world(3, self%most_sites, n_cores), self%sphere_world(3, self%most_spheres, n_cores), &
        source=0.0_real64)
      allocate (self%limb_world(3, self%n_limbs, n_cores))
      allocate (self%exit_frame(3, 3, n), self%entry_frame(3, 3, n), source=0.0_real64)
      allocate (self%exit_point(3, n), self%entry_point(3, n), source=0.0_real64)
      allocate (self%segment_start(3, s), self%segment_end(3, s), self%direction(3, s), self%length(s))
    end associate
  end subroutine make_room

  !> Bring all that depends on the particles first..last up to date.
  pure subroutine refresh(self, first, last)
    type(fibre_t), intent(inout) :: self
    integer(int32), intent(in) :: first, last
    integer(int32) :: k, p
    do k = first, last
      p = around(self, k)
      call refresh_particle(self, p)
      if (self%core(p) == 0) then
        call move_point(self%bead_grid, self%bead_number(p), self%position(:, p))
      else
        call move_point(self%core_grid, self%core(p), self%position(:, p))
      end if
    end do
    do k = first_segment(self, first), last_segment(self, last)
      p = around(self, k)
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
    associate (shape => self%shape(self%form(c)))
      self%exit_point(:, p) = r + matmul(f, shape%joint_point(:, 1))
      self%entry_point(:, p) = r + matmul(f, shape%joint_point(:, 2))
      self%exit_frame(:, :, p) = matmul(f, shape%joint_frame(:, :, 1))
      self%entry_frame(:, :, p) = matmul(f, shape%joint_frame(:, :, 2))
      do i = 1, size(shape%site, 2)
        self%site_world(:, i, c) = r + f(:, 1) * shape%site(1, i) + f(:, 2) * shape%site(2, i) + f(:, 3) * shape%site(3, i)
      end do
      do i = 1, size(shape%sphere, 2)
        self%sphere_world(:, i, c) = r + f(:, 1) * shape%sphere(1, i) + f(:, 2) * shape%sphere(2, i) &
          + f(:, 3) * shape%sphere(3, i)
      end do
    end associate
    do i = 1, self%n_limbs
      self%limb_world(:, i, c) = r + f(:, 1) * self%limb(1, i, c) + f(:, 2) * self%limb(2, i, c) &
        + f(:, 3) * self%limb(3, i, c)
    end do
  end subroutine refresh_particle

  !> End points and direction of a segment; a bead's frame is carried along without twisting it.
  pure subroutine refresh_segment(self, s)
    type(fibre_t), intent(inout) :: self
    integer(int32), intent(in) :: s
    real(real64) :: d(3), b(3)
    self%segment_start(:, s) = self%exit_point(:, s)
    self%segment_end(:, s) = self%entry_point(:, particle_after(self, s))
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

  !> How far what belongs to particle p reaches from its position: sites, limbs, spheres and joints of a core.
  pure function own_reach(self, p) result(reach)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p
    real(real64) :: reach
    reach = 0
    if (self%core(p) == 0) return
    reach = max(self%site_reach, self%sphere_reach, self%joint_reach)
    if (self%n_limbs > 0) reach = max(reach, self%limb_reach(self%core(p)))
  end function own_reach

  !> The particle, or segment, that a number means which is counted on beyond the ends of a circle.
  pure function around(self, k) result(p)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: k
    integer(int32) :: p
    p = k
    if (self%is_circle) p = 1 + modulo(k - 1, self%n)
  end function around

  !> The number of particle p, or segment p, that is counted from `first` on; where there is no circle, p.
  pure function counted_from(self, p, first) result(k)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, first
    integer(int32) :: k
    k = p
    if (self%is_circle) k = first + modulo(p - first, self%n)
  end function counted_from

  !> Is particle p, or segment p, one of first..last?
  elemental function is_among(self, p, first, last) result(among)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, first, last
    logical :: among
    integer(int32) :: k
    k = counted_from(self, p, first)
    among = k >= first .and. k <= last
  end function is_among

  !> The particle that segment s ends at.
  pure function particle_after(self, s) result(p)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: s
    integer(int32) :: p
    p = around(self, s + 1)
  end function particle_after

  !> The segment that ends at particle p, 0 where none does.
  pure function segment_before(self, p) result(s)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p
    integer(int32) :: s
    s = p - 1
    if (self%is_circle .and. p == 1) s = self%n
  end function segment_before

  !> The particle before a range that begins with `first`, from which its first segment starts too.
  pure function first_segment(self, first) result(s)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: first
    integer(int32) :: s
    s = first - 1
    if (.not. self%is_circle) s = max(1, s)
  end function first_segment

  !> The last segment of a range of particles that ends with `last`.
  pure function last_segment(self, last) result(s)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: last
    integer(int32) :: s
    s = last
    if (.not. self%is_circle) s = min(self%n - 1, s)
  end function last_segment

  !> The neighbour behind particle `last`, or the last particle itself.
  pure function span_end(self, last) result(p)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: last
    integer(int32) :: p
    p = last + 1
    if (.not. self%is_circle) p = min(self%n, p)
  end function span_end

  !> The particles first..last with their neighbours on either side.
  pure function span(self, first, last) result(particles)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: first, last
    integer(int32) :: particles(span_end(self, last) - first_segment(self, first) + 1)
    integer(int32) :: k
    particles = [(around(self, k), k=first_segment(self, first), span_end(self, last))]
  end function span

  !> Particles that are the same or neighbours in the chain.
  pure function are_neighbours(self, p, q) result(close)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, q
    logical :: close
    close = abs(p - q) < 2 .or. (self%is_circle .and. abs(p - q) == self%n - 1)
  end function are_neighbours

  !> Neighbouring segments of a linker, which bending holds apart.
  pure function are_close_in_chain(self, s, t) result(close)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: s, t
    integer(int32) :: k, low, high
    logical :: close
    close = self%linker(s) == self%linker(t) .and. abs(s - t) <= 2
    if (.not. self%is_circle .or. self%linker(s) /= self%linker(t)) return
    ! The shorter way around; a lone core has its linker on either side.
    low = min(s, t)
    high = max(s, t)
    if (2 * (high - low) > self%n) then
      k = low
      low = high
      high = k + self%n
    end if
    close = high - low <= 2
    do k = low + 1, high
      if (self%core(around(self, k)) /= 0) close = .false.
    end do
  end function are_close_in_chain

  !> The end of core p that the linker of segment s continues: 1 exit, 2 entry, 0 neither.
  pure function continued_end(self, s, p) result(end_)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: s, p
    integer(int32) :: end_, before
    end_ = 0
    if (p <= self%n_segments) then
      if (self%linker(p) == self%linker(s)) end_ = 1
    end if
    before = segment_before(self, p)
    if (before == 0) return
    if (self%linker(before) /= self%linker(s)) return
    ! Both ends of the linker of a lone core in a circle are its own: the nearer one.
    if (end_ == 1 .and. 2 * modulo(s - p, self%n) < self%n) return
    end_ = 2
  end function continued_end

end module fibre_model
