!> Where atoms lie on the mesh of PME: in the brick of their rank, and in which slab of its planes.
module pme_placement
  use base_box_shape, only: box_shape_t
  use base_kinds, only: real64
  use pair_precision, only: real_pair
  implicit none
  private
  public :: pme_placement_t, placed_together

  !> Fixed number of runs of atoms.
  integer, parameter :: n_chunks = 32
  !> Atoms that are placed on the grid side by side.
  integer, parameter :: placed_together = 512
  !> Atoms may leave their domain by this much (angstrom) before the bricks must be made anew.
  real(real64), parameter :: first_margin = 4.0_real64

  type :: pme_placement_t
    integer :: order = 4, n(3) = 0
    !> Angstrom.
    real(real64) :: box(3) = 0.0_real64
    !> How its edges lean: what is placed are straight positions.
    type(box_shape_t) :: shape
    !> Deterministic mode: every image of an atom has the same fraction.
    logical :: is_exact = .false.
    !> Does this rank's domain reach from one side of the box to the other?
    logical :: is_whole(3) = .true.
    !> This domain in grid units.
    real(real64) :: lower(3) = 0.0_real64, upper(3) = 0.0_real64
    !> Its centre as a fraction of the box; grid points per angstrom; the inverse of the box.
    real(real64) :: centre(3) = 0.5_real64, density(3) = 0.0_real64, inverse_box(3) = 0.0_real64
    !> How far atoms may be outside of the domain, in grid points.
    integer :: margin(3) = 0
    integer :: brick_lower(3) = 0, brick_upper(3) = -1
    !> Atoms slab by slab of grid planes, and the first of each slab. Within a slab they keep their order, which is that
    !> of cells in space.
    integer, allocatable :: slab_atom(:), slab_first(:)
    integer :: slab_planes = 1
    !> Slabs are counted from a plane of the whole grid that does not change when the brick is widened, so that charges
    !> are always added in the same order: planes of the first slab that lie before the brick, and the first slab that is
    !> spread (the first or the second of the brick).
    integer :: planes_before = 0, first_set = 1
  contains
    procedure :: set_box
    procedure :: set_domain
    procedure :: bound_brick
    procedure :: lacking
    procedure :: sort_atoms
    procedure :: place_along
    procedure :: straight_along
  end type pme_placement_t

contains

  !> Another box (angstrom) with the same grid.
  subroutine set_box(self, box)
    class(pme_placement_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    self%box = box
    self%density = self%n/box
    self%inverse_box = 1.0_real64/box
  end subroutine set_box

  !> Borders of this rank's domain in grid units and its centre as a fraction of the box, where the domain `is_whole` along
  !> an axis.
  subroutine set_domain(self, lower, upper, centre, is_whole)
    class(pme_placement_t), intent(inout) :: self
    real(real64), intent(in) :: lower(3), upper(3), centre(3)
    logical, intent(in) :: is_whole(3)
    self%lower = lower
    self%upper = upper
    self%centre = centre
    self%is_whole = is_whole
    self%margin = ceiling(first_margin*self%density)
    call self%bound_brick()
  end subroutine set_domain

  !> Bounds of the brick for the present margin.
  subroutine bound_brick(self)
    class(pme_placement_t), intent(inout) :: self

    where (self%is_whole)
      ! Atoms are wrapped into the box.
      self%brick_lower = 1 - self%order
      self%brick_upper = self%n - 1
    elsewhere
      self%brick_lower = floor(self%lower) - self%margin + 1 - self%order
      self%brick_upper = floor(self%upper) + self%margin
    end where
    ! Thin, so that there are many for the threads to take.
    self%slab_planes = max(self%order, 4)
    self%planes_before = modulo(self%brick_lower(3), self%slab_planes)
    self%first_set = 1 + modulo((self%brick_lower(3) - self%planes_before)/self%slab_planes, 2)
  end subroutine bound_brick

  !> By how many grid points the brick lacks room for the atoms, along each axis; at most 0 where it has enough.
  function lacking(self, n_owned, position) result(widest)
    class(pme_placement_t), intent(in) :: self
    integer, intent(in) :: n_owned
    real(real64), intent(in) :: position(:, :)
    integer :: widest(3), i, n, axis, point(placed_together), room(3)
    real(real_pair) :: fraction(placed_together)

    room = self%brick_upper - self%brick_lower - self%order + 2
    widest = 0
    !$omp parallel do schedule(static) private(n, axis, point, fraction) reduction(max: widest)
    do i = 1, n_owned, placed_together
      n = min(placed_together, n_owned - i + 1)
      do axis = 1, 3
        if (self%shape%leans) then
          call place_along(self, axis, self%straight_along(axis, position(:, i:i + n - 1)), point(:n), fraction(:n))
        else
          call place_along(self, axis, position(axis, i:i + n - 1), point(:n), fraction(:n))
        end if
        widest(axis) = max(widest(axis), 1 - minval(point(:n)), maxval(point(:n)) - room(axis))
      end do
    end do
    !$omp end parallel do
  end function lacking

  !> List the atoms, which must be in the brick, by slabs.
  !> `position`: (3, n_owned), angstrom.
  subroutine sort_atoms(self, n_owned, position)
    class(pme_placement_t), intent(inout) :: self
    integer, intent(in) :: n_owned
    real(real64), intent(in) :: position(:, :)
    integer, allocatable :: start(:, :), slab_of(:)
    integer :: chunk, first, last, i, k, at, slab, n_slabs, n, point(placed_together)
    real(real_pair) :: fraction(placed_together)

    n_slabs = (self%brick_upper(3) - self%brick_lower(3) + self%planes_before)/self%slab_planes + 1
    allocate (start(n_slabs, n_chunks), slab_of(n_owned))
    !$omp parallel do schedule(static) private(first, last, i, k, n, point, fraction, slab)
    do chunk = 1, n_chunks
      call run_of(chunk, n_owned, first, last)
      start(:, chunk) = 0
      do i = first, last, placed_together
        n = min(placed_together, last - i + 1)
        ! Straight along z as they are.
        call place_along(self, 3, position(3, i:i + n - 1), point(:n), fraction(:n))
        do k = 1, n
          slab = (point(k) - 1 + self%planes_before)/self%slab_planes + 1
          slab_of(i + k - 1) = slab
          start(slab, chunk) = start(slab, chunk) + 1
        end do
      end do
    end do
    !$omp end parallel do
    if (allocated(self%slab_first)) deallocate (self%slab_first)
    allocate (self%slab_first(n_slabs + 1))
    at = 1
    do slab = 1, n_slabs
      self%slab_first(slab) = at
      do chunk = 1, n_chunks
        i = start(slab, chunk)
        start(slab, chunk) = at
        at = at + i
      end do
    end do
    self%slab_first(n_slabs + 1) = at
    allocate (self%slab_atom(n_owned))
    !$omp parallel do schedule(static) private(first, last, i)
    do chunk = 1, n_chunks
      call run_of(chunk, n_owned, first, last)
      do i = first, last
        associate (next => start(slab_of(i), chunk))
          self%slab_atom(next) = i
          next = next + 1
        end associate
      end do
    end do
    !$omp end parallel do
  end subroutine sort_atoms

  !> First and last atom of a run.
  pure subroutine run_of(chunk, n, first, last)
    integer, intent(in) :: chunk, n
    integer, intent(out) :: first, last
    first = (chunk - 1)*(n/n_chunks) + min(chunk - 1, mod(n, n_chunks)) + 1
    last = chunk*(n/n_chunks) + min(chunk, mod(n, n_chunks))
  end subroutine run_of

  !> Straight coordinates along an axis of `position(3, atoms)`, angstrom.
  pure function straight_along(self, axis, position) result(coordinate)
    class(pme_placement_t), intent(in) :: self
    integer, intent(in) :: axis
    real(real64), intent(in) :: position(:, :)
    real(real64) :: coordinate(size(position, 2)), straight(3)
    integer :: k
    do k = 1, size(position, 2)
      straight = self%shape%straight(position(:, k))
      coordinate(k) = straight(axis)
    end do
  end function straight_along

  !> First grid point of each atom along an axis (from 1, in the brick) and its fraction of a spacing.
  pure subroutine place_along(self, axis, coordinate, point, fraction)
    class(pme_placement_t), intent(in) :: self
    integer, intent(in) :: axis
    real(real64), intent(in) :: coordinate(:)
    integer, intent(out) :: point(:)
    real(real_pair), intent(out) :: fraction(:)
    ! Whole numbers below a number: int of something positive is one instruction, floor is a call.
    integer, parameter :: above = 2**16
    real(real64) :: density, per_box, centre, n, s
    integer :: k, whole, before

    if (self%is_exact) then
      call place_exactly(self, axis, coordinate, point, fraction)
      return
    end if
    density = self%density(axis)
    per_box = self%inverse_box(axis)
    n = self%n(axis)
    before = self%order - 2 + self%brick_lower(axis)
    if (self%is_whole(axis)) then
      do k = 1, size(coordinate)
        s = coordinate(k)*density - n*(int(coordinate(k)*per_box + above) - above)
        ! A coordinate at the edge may be rounded to the other side.
        s = merge(s, 0.0_real64, s >= 0.0_real64 .and. s < n)
        whole = int(s + above) - above
        fraction(k) = real(s - whole, real_pair)
        point(k) = whole - before
      end do
    else
      centre = self%centre(axis)
      do k = 1, size(coordinate)
        ! The image next to the domain.
        s = coordinate(k)*density - n*(int(coordinate(k)*per_box - centre + (above + 0.5_real64)) - above)
        whole = int(s + above) - above
        fraction(k) = real(s - whole, real_pair)
        point(k) = whole - before
      end do
    end if
  end subroutine place_along

  !> `place_along` in the deterministic mode: the place within the box is found first, which is exact, so that every image
  !> of an atom has the same fraction.
  pure subroutine place_exactly(self, axis, coordinate, point, fraction)
    class(pme_placement_t), intent(in) :: self
    integer, intent(in) :: axis
    real(real64), intent(in) :: coordinate(:)
    integer, intent(out) :: point(:)
    real(real_pair), intent(out) :: fraction(:)
    real(real64) :: inside, s
    integer :: k, whole

    do k = 1, size(coordinate)
      inside = coordinate(k) - self%box(axis)*floor(coordinate(k)*self%inverse_box(axis))
      if (inside < 0.0_real64) inside = inside + self%box(axis)
      if (inside >= self%box(axis)) inside = inside - self%box(axis)
      s = inside*self%density(axis)
      whole = int(s)
      fraction(k) = real(s - whole, real_pair)
      if (self%is_whole(axis)) then
        whole = modulo(whole, self%n(axis))
      else
        ! The image next to the domain.
        whole = whole - self%n(axis)*nint((whole + 0.5_real64)/self%n(axis) - self%centre(axis))
      end if
      point(k) = whole - self%order + 2 - self%brick_lower(axis)
    end do
  end subroutine place_exactly

end module pme_placement
