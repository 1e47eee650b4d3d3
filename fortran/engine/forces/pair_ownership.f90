!> Which rank computes a pair of atoms in the midpoint method: the one in whose domain the middle between the reference
!> atoms of their constraint groups lies, as these stood when atoms came to their owners. Each rank then needs ghosts
!> from half as far as pairs reach, but from all around its domain, and computes pairs of ghosts too.
!>
!> Places are whole numbers of 2^-28 of the box, the same on all ranks that see a group, and a whole number of boxes
!> apart in its images. Twice the middle of a pair is the sum of two places; domains cut the sums, modulo two boxes, into
!> half-open intervals, so that one rank and one pair of images is found whatever the rounding. Places of owned groups lie
!> within the domain: pairs of them are the rank's own. A box that is scaled leaves all this as it is.
module pair_ownership
  use base_kinds, only: int32, real64
  implicit none
  private
  public :: pair_ownership_t, all_mine, none_mine, place_share

  !> Places within the box. Images of up to a box to both sides, and sums of two, are countable in 32 bits.
  integer(int32), parameter :: places = 2_int32**28
  !> A place is a group's position to within this share of the box.
  real(real64), parameter :: place_share = 1.0_real64/places
  !> Of the pairs of two sets of atoms.
  integer, parameter :: none_mine = 0, some_mine = 1, all_mine = 2

  type :: pair_ownership_t
    !> Whether ownership goes by midpoints.
    logical :: is_on = .false.
    !> Twice the places of the corners of this rank's domain: lower included, upper not.
    integer(int32), private :: lower(3) = 0, upper(3) = 2*places
    !> Of all local atoms: the place of the reference atom of the group, (3, n_total).
    integer(int32), allocatable, private :: place(:, :)
    !> Corners of the boxes around the places of i clusters (`half_`) and of j clusters.
    integer(int32), allocatable, private :: half_low(:, :), half_high(:, :), low(:, :), high(:, :)
  contains
    procedure :: set_domain
    procedure :: place_owned
    procedure :: place_ghosts
    procedure :: bound_clusters
    procedure :: forget_clusters
    procedure :: owns
    procedure :: share_of_clusters
    procedure :: share_of_half
    procedure :: bits_of
  end type pair_ownership_t

contains

  !> The corners of this rank's domain as fractions of the box.
  subroutine set_domain(self, lower, upper)
    class(pair_ownership_t), intent(inout) :: self
    real(real64), intent(in) :: lower(3), upper(3)
    self%lower = 2*nint(lower*places, int32)
    self%upper = 2*nint(upper*places, int32)
  end subroutine set_domain

  !> Note the places of the owned groups (`group_first`, `group_reference` as in atoms_t), whose reference atoms stand at
  !> `position(3, n_total)`, in the box and straight (angstrom). `value(3, n_total)` gets, for owned atoms, what
  !> `place_ghosts` needs.
  subroutine place_owned(self, group_first, group_reference, position, box, value)
    class(pair_ownership_t), intent(inout) :: self
    integer, intent(in) :: group_first(:), group_reference(:)
    real(real64), intent(in) :: position(:, :), box(3)
    real(real64), intent(inout) :: value(:, :)
    integer :: g, i
    if (allocated(self%place)) deallocate (self%place)
    allocate (self%place(3, size(value, 2)))
    !$omp parallel do schedule(static) private(i)
    do g = 1, size(group_reference)
      do i = group_first(g), group_first(g + 1) - 1
        self%place(:, i) = max(self%lower/2, min(self%upper/2 - 1, &
                                                 int(position(:, group_reference(g))/box*places, int32)))
        value(:, i) = self%place(:, i)
      end do
    end do
    !$omp end parallel do
  end subroutine place_owned

  !> Note the places of ghosts, atoms `n_owned+1` and on. `value(3, n_total)`: what `place_owned` gave of the atoms that
  !> they are images of; `position(3, n_total)`: straight, less than half a box (angstrom) from the reference atom.
  subroutine place_ghosts(self, n_owned, value, position, box)
    class(pair_ownership_t), intent(inout) :: self
    integer, intent(in) :: n_owned
    real(real64), intent(in) :: value(:, :), position(:, :), box(3)
    integer :: i
    !$omp parallel do schedule(static)
    do i = n_owned + 1, size(value, 2)
      self%place(:, i) = nint(value(:, i), int32) + &
                         places*nint(position(:, i)/box - value(:, i)*place_share, int32)
    end do
    !$omp end parallel do
  end subroutine place_ghosts

  !> Prepare for questions about clusters: `slot_atom(cluster_size*n_clusters)` as in pair_list.
  subroutine bound_clusters(self, slot_atom, cluster_size)
    class(pair_ownership_t), intent(inout) :: self
    integer, intent(in) :: slot_atom(:), cluster_size
    integer :: half, half_size, k, n, atom
    half_size = cluster_size/2
    n = size(slot_atom)/cluster_size
    call self%forget_clusters()
    allocate (self%half_low(3, 2*n), self%half_high(3, 2*n), self%low(3, n), self%high(3, n))
    !$omp parallel do schedule(static) private(k, atom)
    do half = 1, 2*n
      self%half_low(:, half) = huge(1_int32)
      self%half_high(:, half) = -huge(1_int32)
      do k = half_size*(half - 1) + 1, half_size*half
        atom = abs(slot_atom(k))
        self%half_low(:, half) = min(self%half_low(:, half), self%place(:, atom))
        self%half_high(:, half) = max(self%half_high(:, half), self%place(:, atom))
      end do
    end do
    !$omp end parallel do
    self%low = min(self%half_low(:, 1::2), self%half_low(:, 2::2))
    self%high = max(self%half_high(:, 1::2), self%half_high(:, 2::2))
  end subroutine bound_clusters

  subroutine forget_clusters(self)
    class(pair_ownership_t), intent(inout) :: self
    if (allocated(self%low)) deallocate (self%half_low, self%half_high, self%low, self%high)
  end subroutine forget_clusters

  !> Does this rank compute the pair of local atoms i and j, these very images?
  pure logical function owns(self, i, j)
    class(pair_ownership_t), intent(in) :: self
    integer, intent(in) :: i, j
    owns = all(self%place(:, i) + self%place(:, j) >= self%lower .and. &
               self%place(:, i) + self%place(:, j) < self%upper)
  end function owns

  !> Which of the pairs of two clusters can be this rank's.
  !> `c`, `d`: indices of clusters, from 1.
  pure integer function share_of_clusters(self, c, d) result(share)
    class(pair_ownership_t), intent(in) :: self
    integer, intent(in) :: c, d
    integer(int32) :: low(3), high(3)
    low = self%low(:, c) + self%low(:, d)
    high = self%high(:, c) + self%high(:, d)
    share = share_between(self, low, high)
  end function share_of_clusters

  !> The same of i cluster `half` and j cluster `c`.
  pure integer function share_of_half(self, half, c) result(share)
    class(pair_ownership_t), intent(in) :: self
    integer, intent(in) :: half, c
    integer(int32) :: low(3), high(3)
    low = self%half_low(:, half) + self%low(:, c)
    high = self%half_high(:, half) + self%high(:, c)
    share = share_between(self, low, high)
  end function share_of_half

  !> Which of the pairs with sums of places within a box are this rank's.
  pure integer function share_between(self, low, high) result(share)
    type(pair_ownership_t), intent(in) :: self
    integer(int32), intent(in) :: low(3), high(3)
    if (any(high < self%lower) .or. any(low >= self%upper)) then
      share = none_mine
    else if (all(low >= self%lower) .and. all(high < self%upper)) then
      share = all_mine
    else
      share = some_mine
    end if
  end function share_between

  !> Bit 8 a + b tells whether atom a (0..3) of an i cluster and atom b (0..7) of a j cluster are a pair of this rank
  !> within the root of `reach2` (angstrom^2). Slots as in pair_list: pads, which are negative, have no pairs.
  pure integer function bits_of(self, i_slots, j_slots, position, reach2) result(bits)
    class(pair_ownership_t), intent(in) :: self
    integer, intent(in) :: i_slots(4), j_slots(8)
    real(real64), intent(in) :: position(:, :), reach2
    real(real64) :: x(8), y(8), z(8), here(3), room(8)
    integer(int32) :: place_x(8), place_y(8), place_z(8), low(3), last(3), outside(8)
    integer :: a, b, k, near
    do b = 1, 8
      k = abs(j_slots(b))
      x(b) = position(1, k)
      y(b) = position(2, k)
      z(b) = position(3, k)
      place_x(b) = self%place(1, k)
      place_y(b) = self%place(2, k)
      place_z(b) = self%place(3, k)
    end do
    bits = 0
    do a = 1, 4
      if (i_slots(a) < 0) cycle
      do k = 1, 3
        here(k) = position(k, i_slots(a))
        low(k) = self%lower(k) - self%place(k, i_slots(a))
        last(k) = self%upper(k) - 1 - self%place(k, i_slots(a))
      end do
      ! Differences with a sign are outside; all in one, so that atoms go side by side.
      do b = 1, 8
        outside(b) = ior(ior(ior(place_x(b) - low(1), last(1) - place_x(b)), &
                             ior(place_y(b) - low(2), last(2) - place_y(b))), &
                         ior(ior(place_z(b) - low(3), last(3) - place_z(b)), j_slots(b)))
      end do
      do b = 1, 8
        room(b) = reach2 - ((x(b) - here(1))**2 + (y(b) - here(2))**2 + (z(b) - here(3))**2)
      end do
      near = 0
      do b = 1, 8
        near = near + shiftl(iand(shiftr(not(outside(b)), 31), merge(1, 0, room(b) > 0.0_real64)), b - 1)
      end do
      bits = ior(bits, shiftl(near, 8*(a - 1)))
    end do
  end function bits_of

end module pair_ownership
