!> Moves a real grid between bricks and the layout of the FFT. Each rank has one brick of the periodic grid; bricks may
!> overlap and reach beyond the grid (index i stands for point i modulo n). `collect` adds all bricks up; `spread`
!> copies the grid back into them. Ranks exchange messages only with those whose bricks or parts of the grid touch
!> theirs.
module brick_exchange
  use, intrinsic :: iso_c_binding, only: c_loc
  use mpi_f08, only: MPI_Allgather, MPI_Allreduce, MPI_Comm, MPI_Comm_size, MPI_IN_PLACE, MPI_INTEGER, MPI_MAX
  use error, only: error_t
  use fft_exchange, only: exchange_t, transport_names
  use fft_layout, only: box_t, layout_t
  use precision, only: real_pair
  implicit none
  private
  public :: brick_exchange_t

  type :: brick_exchange_t
    private
    type(MPI_Comm) :: comm
    type(exchange_t) :: to_grid, to_brick
    !> Message buffers; the way back uses them the other way round.
    real(real_pair), allocatable :: brick_side(:), grid_side(:)
  contains
    procedure :: create
    procedure :: collect
    procedure :: spread
    procedure :: largest
  end type brick_exchange_t

contains

  !> `n`: points of the periodic grid; `grid_lower:grid_upper` this rank's part of it, `brick_lower:brick_upper` its
  !> brick (all from 0). All ranks of `comm` must call it.
  subroutine create(self, comm, n, grid_lower, grid_upper, brick_lower, brick_upper)
    class(brick_exchange_t), target, intent(inout) :: self
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: n(3), grid_lower(3), grid_upper(3), brick_lower(3), brick_upper(3)
    type(layout_t), allocatable :: grids(:), bricks(:)
    type(error_t), allocatable :: error
    integer, allocatable :: corners(:, :)
    integer :: r, n_ranks, bytes, transport

    self%comm = comm
    call MPI_Comm_size(comm, n_ranks)
    allocate (corners(12, 0:n_ranks - 1), grids(0:n_ranks - 1), bricks(0:n_ranks - 1))
    call MPI_Allgather([grid_lower, grid_upper, brick_lower, brick_upper], 12, MPI_INTEGER, corners, 12, &
                       MPI_INTEGER, comm)
    do r = 0, n_ranks - 1
      grids(r)%box = [box_t(corners(1:3, r), corners(4:6, r))]
      bricks(r)%box = [box_t(corners(7:9, r), corners(10:12, r))]
    end do
    bytes = storage_size(0.0_real_pair)/8
    transport = findloc(transport_names == "persistent", .true., 1)
    call self%to_grid%create(comm, bricks, grids, 0, [0, 0], 1, bytes, transport, error, period=n, add=.true.)
    if (allocated(error)) error stop "a rank's brick of the PME grid has more than 2147483647 points: use more ranks"
    call self%to_brick%create(comm, grids, bricks, 0, [0, 0], 1, bytes, transport, error, period=n)
    if (allocated(error)) error stop "a rank's brick of the PME grid has more than 2147483647 points: use more ranks"
    if (allocated(self%brick_side)) deallocate (self%brick_side, self%grid_side)
    allocate (self%brick_side(self%to_grid%send_size), self%grid_side(self%to_grid%receive_size))
    call self%to_grid%attach(c_loc(self%brick_side), c_loc(self%grid_side), comm)
    call self%to_brick%attach(c_loc(self%grid_side), c_loc(self%brick_side), comm)
  end subroutine create

  !> Sum of all bricks into `grid` (grid_lower:grid_upper); this rank's `brick` has the bounds brick_lower:brick_upper.
  !> The brick of this rank first, then those of the others in their order, so that sums always round the same way.
  subroutine collect(self, brick, grid)
    class(brick_exchange_t), intent(inout) :: self
    real(real_pair), contiguous, target, intent(in) :: brick(:, :, :)
    real(real_pair), contiguous, target, intent(inout) :: grid(:, :, :)
    integer :: z

    !$omp parallel do schedule(static)
    do z = 1, size(grid, 3)
      grid(:, :, z) = 0.0_real_pair
    end do
    !$omp end parallel do
    call self%to_grid%start(c_loc(brick), c_loc(grid))
    call self%to_grid%finish()
  end subroutine collect

  !> Fill the bricks from the grid.
  subroutine spread(self, grid, brick)
    class(brick_exchange_t), intent(inout) :: self
    real(real_pair), contiguous, target, intent(in) :: grid(:, :, :)
    real(real_pair), contiguous, target, intent(inout) :: brick(:, :, :)
    call self%to_brick%start(c_loc(grid), c_loc(brick))
    call self%to_brick%finish()
  end subroutine spread

  !> The largest value over all ranks.
  function largest(self, value) result(maximum)
    class(brick_exchange_t), intent(in) :: self
    integer, intent(in) :: value
    integer :: maximum
    maximum = value
    call MPI_Allreduce(MPI_IN_PLACE, maximum, 1, MPI_INTEGER, MPI_MAX, self%comm)
  end function largest

end module brick_exchange
