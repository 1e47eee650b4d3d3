!> Moves a real grid between bricks and the layout of the FFT. Each rank has one brick of the periodic grid; bricks may
!> overlap and reach beyond the grid (index i stands for point i modulo n). `collect` adds all bricks up; `spread`
!> copies the grid back into them.
module brick_exchange
  use mpi_f08, only: MPI_Allgather, MPI_Allreduce, MPI_Alltoallv, MPI_Comm, MPI_Comm_rank, MPI_Comm_size, &
    MPI_Datatype, &
                     MPI_IN_PLACE, MPI_INTEGER, MPI_MAX, MPI_REAL4, MPI_REAL8
  use precision, only: real32, real64, real_pair
  implicit none
  private
  public :: brick_exchange_t

  type :: brick_exchange_t
    private
    type(MPI_Comm) :: comm
    type(MPI_Datatype) :: number
    integer :: rank = 0, n_ranks = 1
    integer :: grid_lower(3) = 0, grid_upper(3) = -1
    integer :: brick_lower(3) = 0, brick_upper(3) = -1
    !> Regions of this brick for each rank, and regions of this part of the grid from each rank:
    !> (lower and upper corner of the source or target in grid indices, shift to brick indices).
    integer, allocatable :: out_region(:, :), in_region(:, :)
    integer, allocatable :: out_first(:), in_first(:)
    integer, allocatable :: out_count(:), out_start(:), in_count(:), in_start(:)
    real(real_pair), allocatable :: out_buffer(:), in_buffer(:)
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
    class(brick_exchange_t), intent(out) :: self
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: n(3), grid_lower(3), grid_upper(3), brick_lower(3), brick_upper(3)
    integer, allocatable :: corners(:, :)
    integer :: r

    self%comm = comm
    call MPI_Comm_rank(comm, self%rank)
    call MPI_Comm_size(comm, self%n_ranks)
    self%number = MPI_REAL8
    if (real_pair == real32) self%number = MPI_REAL4
    self%grid_lower = grid_lower
    self%grid_upper = grid_upper
    self%brick_lower = brick_lower
    self%brick_upper = brick_upper
    allocate (corners(12, 0:self%n_ranks - 1))
    call MPI_Allgather([grid_lower, grid_upper, brick_lower, brick_upper], 12, MPI_INTEGER, corners, 12, &
      MPI_INTEGER, comm)
    allocate (self%out_region(9, 0), self%in_region(9, 0))
    allocate (self%out_first(0:self%n_ranks), self%in_first(0:self%n_ranks))
    self%out_first(0) = 1
    self%in_first(0) = 1
    do r = 0, self%n_ranks - 1
      call add_regions(n, corners(1:3, r), corners(4:6, r), brick_lower, brick_upper, self%out_region)
      call add_regions(n, grid_lower, grid_upper, corners(7:9, r), corners(10:12, r), self%in_region)
      self%out_first(r + 1) = size(self%out_region, 2) + 1
      self%in_first(r + 1) = size(self%in_region, 2) + 1
    end do
    call count_points(self%n_ranks, self%rank, self%out_region, self%out_first, self%out_count, self%out_start)
    call count_points(self%n_ranks, self%rank, self%in_region, self%in_first, self%in_count, self%in_start)
    allocate (self%out_buffer(sum(self%out_count)), self%in_buffer(sum(self%in_count)))
  end subroutine create

  !> Append the regions in which a brick covers a part of the grid, one per periodic image.
  pure subroutine add_regions(n, grid_lower, grid_upper, brick_lower, brick_upper, region)
    integer, intent(in) :: n(3), grid_lower(3), grid_upper(3), brick_lower(3), brick_upper(3)
    integer, allocatable, intent(inout) :: region(:, :)
    integer :: x, y, z, shift(3), low(3), high(3), first(3), last(3)
    integer, allocatable :: longer(:, :)

    first = floor(real(brick_lower, real64)/n)
    last = floor(real(brick_upper, real64)/n)
    do z = first(3), last(3)
      do y = first(2), last(2)
        do x = first(1), last(1)
          shift = [x, y, z]*n
          low = max(grid_lower, brick_lower - shift)
          high = min(grid_upper, brick_upper - shift)
          if (any(low > high)) cycle
          allocate (longer(9, size(region, 2) + 1))
          longer(:, :size(region, 2)) = region
          longer(:, size(longer, 2)) = [low, high, shift]
          call move_alloc(longer, region)
        end do
      end do
    end do
  end subroutine add_regions

  !> Points to and from each rank; what stays on the rank itself takes no message.
  pure subroutine count_points(n_ranks, rank, region, first, count, start)
    integer, intent(in) :: n_ranks, rank, region(:, :), first(0:)
    integer, allocatable, intent(out) :: count(:), start(:)
    integer :: r, k
    allocate (count(0:n_ranks - 1), source=0)
    allocate (start(0:n_ranks - 1), source=0)
    do r = 0, n_ranks - 1
      if (r > 0) start(r) = start(r - 1) + count(r - 1)
      if (r == rank) cycle
      do k = first(r), first(r + 1) - 1
        count(r) = count(r) + product(region(4:6, k) - region(1:3, k) + 1)
      end do
    end do
  end subroutine count_points

  !> Sum of all bricks. `brick` has the bounds brick_lower:brick_upper, `grid` grid_lower:grid_upper.
  subroutine collect(self, brick, grid)
    class(brick_exchange_t), intent(inout) :: self
    real(real_pair), intent(in) :: brick(self%brick_lower(1):, self%brick_lower(2):, self%brick_lower(3):)
    real(real_pair), intent(inout) :: grid(self%grid_lower(1):, self%grid_lower(2):, self%grid_lower(3):)
    integer :: r, k, z, at, low(3), high(3), s(3)

    !$omp parallel do schedule(static)
    do z = lbound(grid, 3), ubound(grid, 3)
      grid(:, :, z) = 0.0_real_pair
    end do
    !$omp end parallel do
    if (self%n_ranks > 1) then
      do r = 0, self%n_ranks - 1
        if (r == self%rank) cycle
        at = self%out_start(r)
        do k = self%out_first(r), self%out_first(r + 1) - 1
          call corners_of(self%out_region(:, k), low, high, s)
          call copy_out(brick(low(1) + s(1):high(1) + s(1), low(2) + s(2):high(2) + s(2), &
            low(3) + s(3):high(3) + s(3)), &
                        self%out_buffer(at + 1:))
          at = at + product(high - low + 1)
        end do
      end do
      call MPI_Alltoallv(self%out_buffer, self%out_count, self%out_start, self%number, self%in_buffer, self%in_count, &
                         self%in_start, self%number, self%comm)
    end if
    ! In the order of the ranks, so that sums always round the same way.
    do r = 0, self%n_ranks - 1
      at = self%in_start(r)
      do k = self%in_first(r), self%in_first(r + 1) - 1
        call corners_of(self%in_region(:, k), low, high, s)
        if (r == self%rank) then
          !$omp parallel do schedule(static)
          do z = low(3), high(3)
            grid(low(1):high(1), low(2):high(2), z) = grid(low(1):high(1), low(2):high(2), z) &
              + brick(low(1) + s(1):high(1) + s(1), low(2) + s(2):high(2) + s(2), z + s(3))
          end do
          !$omp end parallel do
        else
          call add_in(self%in_buffer(at + 1:), grid(low(1):high(1), low(2):high(2), low(3):high(3)))
          at = at + product(high - low + 1)
        end if
      end do
    end do
  end subroutine collect

  !> Fill the bricks from the grid.
  subroutine spread(self, grid, brick)
    class(brick_exchange_t), intent(inout) :: self
    real(real_pair), intent(in) :: grid(self%grid_lower(1):, self%grid_lower(2):, self%grid_lower(3):)
    real(real_pair), intent(inout) :: brick(self%brick_lower(1):, self%brick_lower(2):, self%brick_lower(3):)
    integer :: r, k, z, at, low(3), high(3), s(3)

    if (self%n_ranks > 1) then
      do r = 0, self%n_ranks - 1
        if (r == self%rank) cycle
        at = self%in_start(r)
        do k = self%in_first(r), self%in_first(r + 1) - 1
          call corners_of(self%in_region(:, k), low, high, s)
          call copy_out(grid(low(1):high(1), low(2):high(2), low(3):high(3)), self%in_buffer(at + 1:))
          at = at + product(high - low + 1)
        end do
      end do
      call MPI_Alltoallv(self%in_buffer, self%in_count, self%in_start, self%number, self%out_buffer, self%out_count, &
                         self%out_start, self%number, self%comm)
    end if
    do r = 0, self%n_ranks - 1
      at = self%out_start(r)
      do k = self%out_first(r), self%out_first(r + 1) - 1
        call corners_of(self%out_region(:, k), low, high, s)
        if (r == self%rank) then
          !$omp parallel do schedule(static)
          do z = low(3), high(3)
            brick(low(1) + s(1):high(1) + s(1), low(2) + s(2):high(2) + s(2), z + s(3)) = &
              grid(low(1):high(1), low(2):high(2), z)
          end do
          !$omp end parallel do
        else
          call copy_in(self%out_buffer(at + 1:), &
                       brick(low(1) + s(1):high(1) + s(1), low(2) + s(2):high(2) + s(2), low(3) + s(3):high(3) + s(3)))
          at = at + product(high - low + 1)
        end if
      end do
    end do
  end subroutine spread

  !> The largest value over all ranks.
  function largest(self, value) result(maximum)
    class(brick_exchange_t), intent(in) :: self
    integer, intent(in) :: value
    integer :: maximum
    maximum = value
    if (self%n_ranks > 1) call MPI_Allreduce(MPI_IN_PLACE, maximum, 1, MPI_INTEGER, MPI_MAX, self%comm)
  end function largest

  pure subroutine corners_of(region, low, high, shift)
    integer, intent(in) :: region(9)
    integer, intent(out) :: low(3), high(3), shift(3)
    low = region(1:3)
    high = region(4:6)
    shift = region(7:9)
  end subroutine corners_of

  subroutine copy_out(block, buffer)
    real(real_pair), intent(in) :: block(:, :, :)
    real(real_pair), intent(inout) :: buffer(size(block, 1), size(block, 2), size(block, 3))
    integer :: z
    !$omp parallel do schedule(static)
    do z = 1, size(block, 3)
      buffer(:, :, z) = block(:, :, z)
    end do
    !$omp end parallel do
  end subroutine copy_out

  subroutine copy_in(buffer, block)
    real(real_pair), intent(inout) :: block(:, :, :)
    real(real_pair), intent(in) :: buffer(size(block, 1), size(block, 2), size(block, 3))
    integer :: z
    !$omp parallel do schedule(static)
    do z = 1, size(block, 3)
      block(:, :, z) = buffer(:, :, z)
    end do
    !$omp end parallel do
  end subroutine copy_in

  subroutine add_in(buffer, block)
    real(real_pair), intent(inout) :: block(:, :, :)
    real(real_pair), intent(in) :: buffer(size(block, 1), size(block, 2), size(block, 3))
    integer :: z
    !$omp parallel do schedule(static)
    do z = 1, size(block, 3)
      block(:, :, z) = block(:, :, z) + buffer(:, :, z)
    end do
    !$omp end parallel do
  end subroutine add_in

end module brick_exchange
