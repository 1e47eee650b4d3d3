!> A grid of cells over points in space, kept up to date in O(1) when one of them moves.
module fibre_grid
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: grid_t, make_grid, move_point, points_near

  integer(int32), parameter :: most_cells = 64  !< along an edge; larger extents get larger cells

  !> Points of a cell form a doubly linked list, the highest number first, so that its order does not depend on what moved
  !> in and out. What lies outside belongs to the nearest cell of the border.
  type :: grid_t
    real(real64) :: lower(3) = 0, edge(3) = 1
    integer(int32) :: cells(3) = 1
    integer(int32), allocatable :: head(:), next(:), previous(:), cell(:)
  end type grid_t

contains

  !> Sort points (3, n) into cells at least `edge` wide.
  pure subroutine make_grid(self, point, edge)
    type(grid_t), intent(inout) :: self
    real(real64), intent(in) :: point(:, :), edge
    integer(int32) :: k, n
    real(real64) :: extent(3)
    n = size(point, 2)
    if (allocated(self%cell)) then
      if (size(self%cell) /= n) deallocate (self%cell, self%next, self%previous)
    end if
    if (.not. allocated(self%cell)) allocate (self%cell(n), self%next(n), self%previous(n))
    self%lower = minval(point, 2)
    extent = maxval(point, 2) - self%lower
    self%cells = max(1, min(most_cells, int(extent / edge, int32)))
    self%edge = max(edge, extent / self%cells)
    if (allocated(self%head)) deallocate (self%head)
    allocate (self%head(product(self%cells)), source=0)
    do k = 1, n
      call insert(self, k, cell_at(self, point(:, k)))
    end do
  end subroutine make_grid

  pure function cell_at(self, point) result(cell)
    type(grid_t), intent(in) :: self
    real(real64), intent(in) :: point(3)
    integer(int32) :: cell, at(3)
    at = indices(self, point)
    cell = 1 + at(1) + self%cells(1) * (at(2) + self%cells(2) * at(3))
  end function cell_at

  pure function indices(self, point) result(at)
    type(grid_t), intent(in) :: self
    real(real64), intent(in) :: point(3)
    integer(int32) :: at(3)
    ! Clipped as real numbers: what flew far away must not overflow an integer.
    at = int(min(real(self%cells - 1, real64), max(0.0_real64, (point - self%lower) / self%edge)), int32)
  end function indices

  pure subroutine insert(self, k, cell)
    type(grid_t), intent(inout) :: self
    integer(int32), intent(in) :: k, cell
    integer(int32) :: before, after
    before = 0
    after = self%head(cell)
    do while (after > k)
      before = after
      after = self%next(after)
    end do
    self%cell(k) = cell
    self%previous(k) = before
    self%next(k) = after
    if (after /= 0) self%previous(after) = k
    if (before /= 0) then
      self%next(before) = k
    else
      self%head(cell) = k
    end if
  end subroutine insert

  !> Point k is now there.
  pure subroutine move_point(self, k, point)
    type(grid_t), intent(inout) :: self
    integer(int32), intent(in) :: k
    real(real64), intent(in) :: point(3)
    integer(int32) :: cell
    cell = cell_at(self, point)
    if (cell == self%cell(k)) return
    if (self%previous(k) /= 0) then
      self%next(self%previous(k)) = self%next(k)
    else
      self%head(self%cell(k)) = self%next(k)
    end if
    if (self%next(k) /= 0) self%previous(self%next(k)) = self%previous(k)
    call insert(self, k, cell)
  end subroutine move_point

  !> The points of all cells that the cube of half edge `reach` around a point touches.
  pure subroutine points_near(self, point, reach, found, count)
    type(grid_t), intent(in) :: self
    real(real64), intent(in) :: point(3), reach
    integer(int32), intent(inout) :: found(:)   !< as long as there are points
    integer(int32), intent(out) :: count
    integer(int32) :: low(3), high(3), i, j, k, item
    low = indices(self, point - reach)
    high = indices(self, point + reach)
    count = 0
    do k = low(3), high(3)
      do j = low(2), high(2)
        do i = low(1), high(1)
          item = self%head(1 + i + self%cells(1) * (j + self%cells(2) * k))
          do while (item /= 0)
            count = count + 1
            found(count) = item
            item = self%next(item)
          end do
        end do
      end do
    end do
  end subroutine points_near

end module fibre_grid
