!> Forces on clusters, summed over blocks of the pair list before they are given to the atoms.
!>
!> Atoms of a cluster lie far from each other in memory, so that each visit costs as many cache misses. A cluster is
!> touched by several blocks, all of them near each other in the order of blocks: sums are kept for the clusters between
!> the first that a later block touches and the last touched so far, and an atom is visited once.
module force_sums
  use base_kinds, only: real64
  use pair_precision, only: real_pair
  implicit none
  private
  public :: force_sums_t

  integer, parameter :: cluster_size = 8

  type :: force_sums_t
    private
    !> The first cluster that a block from this one on touches.
    integer, allocatable :: lowest(:)
    !> The first and the last cluster whose sums are kept, and the sums (atom, axis, modulo of the cluster).
    integer :: first = 1, last = 0
    real(real64), allocatable :: total(:, :, :)
  contains
    procedure :: open
    procedure :: add
    procedure :: add_exact
    procedure :: give_rest
  end type force_sums_t

contains

  !> Prepare for blocks that touch clusters `lower` to `upper` each and will be added in this order.
  subroutine open(self, lower, upper)
    class(force_sums_t), intent(out) :: self
    integer, intent(in) :: lower(:), upper(:)
    integer :: b, room, highest

    self%lowest = lower
    do b = size(lower) - 1, 1, -1
      self%lowest(b) = min(lower(b), self%lowest(b + 1))
    end do
    room = 1
    highest = 0
    do b = 1, size(lower)
      highest = max(highest, upper(b))
      room = max(room, highest - self%lowest(b) + 1)
    end do
    allocate (self%total(cluster_size, 3, 0:room - 1))
    if (size(lower) > 0) self%first = self%lowest(1)
    self%last = self%first - 1
  end subroutine open

  !> Add the forces of block `b` on clusters `lower` on: (lanes, 3, clusters) in multiples of `unit`, where lanes hold the
  !> atoms of a cluster once or several times over; `unit` in kcal/mol/angstrom, `force` (3, atoms) too. What no later
  !> block touches is given to the atoms first.
  subroutine add(self, b, lower, buffer, unit, slot_atom, force)
    class(force_sums_t), intent(inout) :: self
    integer, intent(in) :: b, lower, slot_atom(:)
    real(real_pair), contiguous, intent(in) :: buffer(:, :, :)
    real(real64), intent(in) :: unit
    real(real64), intent(inout) :: force(:, :)
    integer :: c

    call give(self, self%lowest(b) - 1, slot_atom, force)
    do c = 1, size(buffer, 3)
      call reach(self, lower + c - 1)
      call add_lanes(size(buffer, 1), buffer(:, :, c), unit, self%total(:, :, mod(lower + c - 1, size(self%total, 3))))
    end do
  end subroutine add

  !> Begin the sums of all clusters up to `c` that have none.
  pure subroutine reach(self, c)
    type(force_sums_t), intent(inout) :: self
    integer, intent(in) :: c
    do while (self%last < c)
      self%last = self%last + 1
      self%total(:, :, mod(self%last, size(self%total, 3))) = 0.0_real64
    end do
  end subroutine reach

  !> Add the lanes of a cluster to its atoms.
  pure subroutine add_lanes(lanes, buffer, unit, total)
    integer, intent(in) :: lanes
    real(real_pair), intent(in) :: buffer(lanes, 3)
    real(real64), intent(in) :: unit
    real(real64), intent(inout) :: total(cluster_size, 3)
    integer :: axis, lane, k

    do axis = 1, 3
      do lane = 0, lanes - 1, cluster_size
        do k = 1, cluster_size
          total(k, axis) = total(k, axis) + unit*real(buffer(lane + k, axis), real64)
        end do
      end do
    end do
  end subroutine add_lanes

  !> The same in the deterministic mode: (8, 3, clusters), kcal/mol/angstrom.
  subroutine add_exact(self, b, lower, buffer, slot_atom, force)
    class(force_sums_t), intent(inout) :: self
    integer, intent(in) :: b, lower, slot_atom(:)
    real(real64), contiguous, intent(in) :: buffer(:, :, :)
    real(real64), intent(inout) :: force(:, :)
    integer :: c, place

    call give(self, self%lowest(b) - 1, slot_atom, force)
    do c = 1, size(buffer, 3)
      call reach(self, lower + c - 1)
      place = mod(lower + c - 1, size(self%total, 3))
      self%total(:, :, place) = self%total(:, :, place) + buffer(:, :, c)
    end do
  end subroutine add_exact

  !> Give the sums of clusters up to `last` to the atoms; `slot_atom`: the atoms of all clusters, not positive where there
  !> is none.
  subroutine give(self, last, slot_atom, force)
    type(force_sums_t), intent(inout) :: self
    integer, intent(in) :: last, slot_atom(:)
    real(real64), intent(inout) :: force(:, :)
    integer :: c

    do c = self%first, min(last, self%last)
      call give_cluster(self%total(:, :, mod(c, size(self%total, 3))), c, slot_atom, force)
    end do
    self%first = max(self%first, last + 1)
    self%last = max(self%last, self%first - 1)
  end subroutine give

  !> Give all sums that are left, with all threads.
  !> Arguments as of `add`.
  subroutine give_rest(self, slot_atom, force)
    class(force_sums_t), intent(inout) :: self
    integer, intent(in) :: slot_atom(:)
    real(real64), intent(inout) :: force(:, :)
    integer :: c

    !$omp parallel do schedule(static)
    do c = self%first, self%last
      call give_cluster(self%total(:, :, mod(c, size(self%total, 3))), c, slot_atom, force)
    end do
    !$omp end parallel do
    self%first = self%last + 1
  end subroutine give_rest

  pure subroutine give_cluster(total, c, slot_atom, force)
    real(real64), intent(in) :: total(cluster_size, 3)
    integer, intent(in) :: c, slot_atom(:)
    real(real64), intent(inout) :: force(:, :)
    integer :: k, atom

    do k = 1, cluster_size
      atom = slot_atom(cluster_size*(c - 1) + k)
      if (atom > 0) force(:, atom) = force(:, atom) + total(k, :)
    end do
  end subroutine give_cluster

end module force_sums
