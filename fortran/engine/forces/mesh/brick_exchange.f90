!> Moves a real grid between bricks and the layout of the FFT. Each rank has one brick of the periodic grid; bricks may
!> overlap and reach beyond the grid (index i stands for point i modulo n). `start_collect` and `finish_collect` add all
!> bricks up; `start_spread` and `finish_spread` copy the grid back into them. Ranks exchange messages only with those
!> whose bricks or parts of the grid touch theirs.
module brick_exchange
  use, intrinsic :: iso_c_binding, only: c_loc
  use mpi_f08, only: MPI_Allgather, MPI_Allreduce, MPI_Comm, MPI_Comm_dup, MPI_Comm_size, MPI_IN_PLACE, MPI_INTEGER, MPI_MAX
  use base_error, only: error_t
  use fft_exchange, only: exchange_t, transport_names
  use fft_layout, only: box_t, layout_t
  use pair_precision, only: real_pair
  implicit none
  private
  public :: brick_exchange_t

  type :: brick_exchange_t
    private
    type(MPI_Comm) :: comm
    integer, public :: n_ranks = 1
    type(exchange_t) :: to_grid, to_brick
    !> Message buffers; the way back uses them the other way round.
    real(real_pair), allocatable :: brick_side(:), grid_side(:)
  contains
    procedure :: open => open_exchange
    procedure :: create
    procedure :: start_collect
    procedure :: is_collected
    procedure :: finish_collect
    procedure :: start_spread
    procedure :: is_spread
    procedure :: finish_spread
    procedure :: take_largest
  end type brick_exchange_t

contains

  !> Have ranks of one's own: messages may travel together with others among these. All ranks of `comm` must call it, once.
  subroutine open_exchange(self, comm)
    class(brick_exchange_t), intent(inout) :: self
    type(MPI_Comm), intent(in) :: comm
    call MPI_Comm_dup(comm, self%comm)
    call MPI_Comm_size(comm, self%n_ranks)
  end subroutine open_exchange

  !> `n`: points of the periodic grid; `grid_lower:grid_upper` this rank's part of it, `brick_lower:brick_upper` its
  !> brick (all from 0). All ranks must call it.
  subroutine create(self, n, grid_lower, grid_upper, brick_lower, brick_upper)
    class(brick_exchange_t), target, intent(inout) :: self
    integer, intent(in) :: n(3), grid_lower(3), grid_upper(3), brick_lower(3), brick_upper(3)
    type(layout_t), allocatable :: grids(:), bricks(:)
    type(error_t), allocatable :: error
    integer, allocatable :: corners(:, :)
    integer :: r, bytes, transport

    allocate (corners(12, 0:self%n_ranks - 1), grids(0:self%n_ranks - 1), bricks(0:self%n_ranks - 1))
    call MPI_Allgather([grid_lower, grid_upper, brick_lower, brick_upper], 12, MPI_INTEGER, corners, 12, &
                       MPI_INTEGER, self%comm)
    do r = 0, self%n_ranks - 1
      grids(r)%box = [box_t(corners(1:3, r), corners(4:6, r))]
      bricks(r)%box = [box_t(corners(7:9, r), corners(10:12, r))]
    end do
    bytes = storage_size(0.0_real_pair)/8
    transport = findloc(transport_names == "persistent", .true., 1)
    call self%to_grid%create(self%comm, bricks, grids, 0, [0, 0], 1, bytes, transport, error, period=n, add=.true.)
    if (allocated(error)) error stop "a rank's brick of the PME grid has more than 2147483647 points: use more ranks"
    call self%to_brick%create(self%comm, grids, bricks, 0, [0, 0], 1, bytes, transport, error, period=n)
    if (allocated(error)) error stop "a rank's brick of the PME grid has more than 2147483647 points: use more ranks"
    if (allocated(self%brick_side)) deallocate (self%brick_side, self%grid_side)
    allocate (self%brick_side(self%to_grid%send_size), self%grid_side(self%to_grid%receive_size))
    call self%to_grid%attach(c_loc(self%brick_side), c_loc(self%grid_side), self%comm)
    call self%to_brick%attach(c_loc(self%grid_side), c_loc(self%brick_side), self%comm)
  end subroutine create

  !> Begin to sum all bricks into `grid` (grid_lower:grid_upper); this rank's `brick` has the bounds
  !> brick_lower:brick_upper. The brick of this rank first, then those of the others in their order, so that sums always
  !> round the same way. Neither may be touched before `finish_collect`.
  subroutine start_collect(self, brick, grid)
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
  end subroutine start_collect

  !> Have all bricks come, so that `finish_collect` will not wait?
  logical function is_collected(self)
    class(brick_exchange_t), intent(inout) :: self
    is_collected = self%to_grid%is_done()
  end function is_collected

  subroutine finish_collect(self)
    class(brick_exchange_t), intent(inout) :: self
    call self%to_grid%finish()
  end subroutine finish_collect

  !> Begin to fill the bricks from the grid. Neither may be touched before `finish_spread`.
  subroutine start_spread(self, grid, brick)
    class(brick_exchange_t), intent(inout) :: self
    real(real_pair), contiguous, target, intent(in) :: grid(:, :, :)
    real(real_pair), contiguous, target, intent(inout) :: brick(:, :, :)
    call self%to_brick%start(c_loc(grid), c_loc(brick))
  end subroutine start_spread

  !> Has the brick been filled but for what `finish_spread` does without waiting?
  logical function is_spread(self)
    class(brick_exchange_t), intent(inout) :: self
    is_spread = self%to_brick%is_done()
  end function is_spread

  subroutine finish_spread(self)
    class(brick_exchange_t), intent(inout) :: self
    call self%to_brick%finish()
  end subroutine finish_spread

  !> Give every rank the largest values of all.
  subroutine take_largest(self, value)
    class(brick_exchange_t), intent(in) :: self
    integer, intent(inout) :: value(:)
    call MPI_Allreduce(MPI_IN_PLACE, value, size(value), MPI_INTEGER, MPI_MAX, self%comm)
  end subroutine take_largest

end module brick_exchange
