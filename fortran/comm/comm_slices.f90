!> The places 1, 2, ... of a list that no rank holds, in slices that some ranks, the holders, put in order: the first phase
!> of writing a list that is spread over all ranks to one file.
!>
!> A slice has a fixed size, so the memory of a holder does not grow with the list. The slices go round the holders, which
!> lie evenly among the ranks; in each round all ranks exchange what belongs to one slice of each holder.
module comm_slices
  use mpi_f08, only: MPI_Alltoall, MPI_Alltoallv, MPI_INTEGER
  use base_kinds, only: int32, int64, real32
  use base_counting_sort, only: counting_sort
  use comm_communicator, only: communicator_t
  implicit none
  private
  public :: slices_t, order_by_slice

  !> A megabyte of 4-byte numbers: large enough for a disk, and 16 bytes a place are far below what a message may have.
  integer(int64), parameter :: slice_size = 2_int64**18

  type :: slices_t
    integer(int64), private :: n_places = 0
    integer, private :: n_slices = 0, n_ranks = 1, n_holders = 1
    !> Which of the holders, from 0, this rank is; -1 where it is none.
    integer, private :: turn = -1
    integer :: n_rounds = 0
  contains
    procedure :: cut
    procedure :: is_held
    procedure :: order
    procedure :: bring
    procedure, private :: holder
    procedure, private :: length
  end type slices_t

contains

  !> Cut `n_places` places for at most `most_holders` holders.
  subroutine cut(self, comm, n_places, most_holders)
    class(slices_t), intent(out) :: self
    type(communicator_t), intent(in) :: comm
    integer(int64), intent(in) :: n_places
    integer, intent(in) :: most_holders
    integer :: k
    self%n_places = n_places
    self%n_slices = int((n_places - 1)/slice_size) + 1
    self%n_ranks = comm%n_ranks
    self%n_holders = min(self%n_slices, most_holders)
    self%n_rounds = (self%n_slices - 1)/self%n_holders + 1
    do k = 0, self%n_holders - 1
      if (self%holder(k) == comm%rank) self%turn = k
    end do
  end subroutine cut

  !> Does this rank get any slice?
  pure logical function is_held(self)
    class(slices_t), intent(in) :: self
    is_held = self%turn >= 0
  end function is_held

  !> Rank of a holder. The first of them is the root.
  pure integer function holder(self, k)
    class(slices_t), intent(in) :: self
    integer, intent(in) :: k
    holder = int(k*int(self%n_ranks, int64)/self%n_holders)
  end function holder

  !> Places in a slice, none in those behind the last.
  pure integer function length(self, slice)
    class(slices_t), intent(in) :: self
    integer, intent(in) :: slice
    length = int(max(0_int64, min(slice_size, self%n_places - (slice - 1)*slice_size)))
  end function length

  !> The entries of a rank in the order of their slices, see `order_by_slice`.
  pure subroutine order(self, place, entry, first)
    class(slices_t), intent(in) :: self
    integer(int64), intent(in) :: place(:)
    integer, allocatable, intent(out) :: entry(:), first(:)
    call order_by_slice(place, slice_size, self%n_slices, entry, first)
  end subroutine order

  !> Bring to each holder its slice of a round, from 1 to `n_rounds`. A rank has entries `column(:, i)` (three values) with
  !> places `place(i)`, and `entry` and `first` of `order`. On return `slice(:, axis)` has the values at places
  !> `before + 1, before + 2, ...`; it is empty where the rank holds nothing in this round. All ranks must call it.
  subroutine bring(self, comm, round, place, column, entry, first, before, slice)
    class(slices_t), intent(in) :: self
    type(communicator_t), intent(in) :: comm
    integer, intent(in) :: round, entry(:), first(:)
    integer(int64), intent(in) :: place(:)
    real(real32), intent(in) :: column(:, :)
    integer(int64), intent(out) :: before
    real(real32), allocatable, intent(out) :: slice(:, :)
    !> Place in the slice, and the bits of the values.
    integer(int32), allocatable :: sent(:, :), received(:, :)
    integer, allocatable :: n_sent(:), n_received(:), sent_at(:), received_at(:)
    integer :: lowest, k, i, n, rank, axis

    lowest = (round - 1)*self%n_holders + 1
    allocate (n_sent(0:self%n_ranks - 1), n_received(0:self%n_ranks - 1), sent_at(0:self%n_ranks - 1), &
              received_at(0:self%n_ranks - 1), source=0)
    n = first(min(lowest + self%n_holders, self%n_slices + 1)) - first(lowest)
    allocate (sent(4, n))
    n = 0
    do k = lowest, min(lowest + self%n_holders - 1, self%n_slices)
      rank = self%holder(k - lowest)
      sent_at(rank) = 4*n
      n_sent(rank) = 4*(first(k + 1) - first(k))
      do i = first(k), first(k + 1) - 1
        n = n + 1
        sent(1, n) = int(place(entry(i)) - (k - 1)*slice_size, int32)
        do axis = 1, 3
          sent(1 + axis, n) = transfer(column(axis, entry(i)), 0_int32)
        end do
      end do
    end do
    call MPI_Alltoall(n_sent, 1, MPI_INTEGER, n_received, 1, MPI_INTEGER, comm%handle)
    n = 0
    do rank = 0, self%n_ranks - 1
      received_at(rank) = n
      n = n + n_received(rank)
    end do
    allocate (received(4, n/4))
    call MPI_Alltoallv(sent, n_sent, sent_at, MPI_INTEGER, received, n_received, received_at, MPI_INTEGER, comm%handle)
    deallocate (sent)
    k = lowest + self%turn
    before = (k - 1)*slice_size
    allocate (slice(merge(self%length(k), 0, self%is_held()), 3))
    do i = 1, size(received, 2)
      do axis = 1, 3
        slice(received(1, i), axis) = transfer(received(1 + axis, i), 0.0_real32)
      end do
    end do
  end subroutine bring

  !> Entries in the order of their slices: those of slice k of `n_slices` are `entry(first(k):first(k+1)-1)`. A place of 0
  !> belongs to no slice.
  pure subroutine order_by_slice(place, size_of_slice, n_slices, entry, first)
    integer(int64), intent(in) :: place(:), size_of_slice
    integer, intent(in) :: n_slices
    integer, allocatable, intent(out) :: entry(:), first(:)
    integer, allocatable :: key(:)
    integer :: i
    allocate (key(size(place)))
    do i = 1, size(place)
      key(i) = n_slices + 1
      if (place(i) > 0) key(i) = int((place(i) - 1)/size_of_slice) + 1
    end do
    call counting_sort(key, n_slices + 1, entry, first)
  end subroutine order_by_slice

end module comm_slices
