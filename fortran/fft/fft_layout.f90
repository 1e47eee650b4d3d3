!> Who owns which points of a three-dimensional grid, and how a rank stores what it owns.
!>
!> A layout is a list of boxes stored one after the other, each with the axes in the same order. Bricks, pencils and
!> slabs are one box; a run of lines is a few; sticks of arbitrary ownership are one box each. Indices count from 0.
module fft_layout
  use, intrinsic :: iso_fortran_env, only: int64
  implicit none
  private
  public :: box_t, layout_t, whole_axis, share_of, share_lower, share_upper, brick_of, lines_of

  type :: box_t
    integer :: lower(3) = 0, upper(3) = -1
  contains
    procedure :: extent => box_extent
    procedure :: n_points => box_points
  end type box_t

  type :: layout_t
    !> Axes (1, 2, 3) in memory, fastest first.
    integer :: order(3) = [1, 2, 3]
    type(box_t), allocatable :: box(:)
  contains
    procedure :: n_points => layout_points
    procedure :: holds_lines
    procedure :: line_ranges
    procedure :: same_as
    procedure :: strides
  end type layout_t

contains

  pure function box_extent(self) result(extent)
    class(box_t), intent(in) :: self
    integer :: extent(3)
    extent = max(0, self%upper - self%lower + 1)
  end function box_extent

  pure integer(int64) function box_points(self)
    class(box_t), intent(in) :: self
    box_points = product(int(self%extent(), int64))
  end function box_points

  pure integer(int64) function layout_points(self)
    class(layout_t), intent(in) :: self
    integer :: k
    layout_points = 0
    do k = 1, size(self%box)
      layout_points = layout_points + self%box(k)%n_points()
    end do
  end function layout_points

  !> Does this rank hold whole lines of `n` points along `axis`, each contiguous in memory?
  pure logical function holds_lines(self, axis, n)
    class(layout_t), intent(in) :: self
    integer, intent(in) :: axis, n
    integer :: k
    holds_lines = self%order(1) == axis
    do k = 1, size(self%box)
      if (self%box(k)%n_points() == 0) cycle
      holds_lines = holds_lines .and. self%box(k)%lower(axis) == 0 .and. self%box(k)%upper(axis) == n - 1
    end do
  end function holds_lines

  !> The contiguous lines whose index along `axis` lies in `range`: (first line from 0, number of lines) of each run.
  !> Axis 0: all lines.
  function line_ranges(self, axis, range) result(runs)
    class(layout_t), intent(in) :: self
    integer, intent(in) :: axis, range(2)
    integer, allocatable :: runs(:, :)
    integer :: k, slow, first, low, high, extent(3), n_runs
    integer, allocatable :: all_runs(:, :)

    n_runs = 0
    do k = 1, size(self%box)
      n_runs = n_runs + 1
      if (self%order(2) == axis) n_runs = n_runs + self%box(k)%upper(self%order(3)) - self%box(k)%lower(self%order(3))
    end do
    allocate (all_runs(2, max(0, n_runs)))
    n_runs = 0
    first = 0
    do k = 1, size(self%box)
      extent = self%box(k)%extent()
      extent = extent(self%order)
      if (axis == 0) then
        call append(first, extent(2)*extent(3))
      else
        low = max(range(1), self%box(k)%lower(axis)) - self%box(k)%lower(axis)
        high = min(range(2), self%box(k)%upper(axis)) - self%box(k)%lower(axis)
        if (self%order(3) == axis) then
          call append(first + low*extent(2), (high - low + 1)*extent(2))
        else
          do slow = 0, extent(3) - 1
            call append(first + slow*extent(2) + low, high - low + 1)
          end do
        end if
      end if
      first = first + extent(2)*extent(3)
    end do
    runs = all_runs(:, :n_runs)

  contains

    subroutine append(start, count)
      integer, intent(in) :: start, count
      if (count <= 0) return
      if (n_runs > 0) then
        if (all_runs(1, n_runs) + all_runs(2, n_runs) == start) then
          all_runs(2, n_runs) = all_runs(2, n_runs) + count
          return
        end if
      end if
      n_runs = n_runs + 1
      all_runs(:, n_runs) = [start, count]
    end subroutine append

  end function line_ranges

  pure logical function same_as(self, other)
    class(layout_t), intent(in) :: self, other
    integer :: k
    same_as = size(self%box) == size(other%box) .and. all(self%order == other%order)
    if (.not. same_as) return
    do k = 1, size(self%box)
      same_as = same_as .and. all(self%box(k)%lower == other%box(k)%lower) &
                .and. all(self%box(k)%upper == other%box(k)%upper)
    end do
  end function same_as

  !> Distance in memory between neighbours along x, y, z in box `k`.
  pure function strides(self, k) result(stride)
    class(layout_t), intent(in) :: self
    integer, intent(in) :: k
    integer :: stride(3), extent(3)
    extent = self%box(k)%extent()
    stride(self%order(1)) = 1
    stride(self%order(2)) = extent(self%order(1))
    stride(self%order(3)) = extent(self%order(1))*extent(self%order(2))
  end function strides

  !> First index of share `part` (from 0) when `n` items are dealt to `n_parts`.
  pure integer function share_lower(n, n_parts, part)
    integer, intent(in) :: n, n_parts, part
    share_lower = part*(n/n_parts) + min(part, mod(n, n_parts))
  end function share_lower

  !> Last index of a share.
  pure integer function share_upper(n, n_parts, part)
    integer, intent(in) :: n, n_parts, part
    share_upper = share_lower(n, n_parts, part + 1) - 1
  end function share_upper

  !> All indices of an axis.
  pure function whole_axis(n) result(index)
    integer, intent(in) :: n
    integer :: index(n), k
    index = [(k, k=0, n - 1)]
  end function whole_axis

  !> The share of a list of indices.
  pure function share_of(index, n_parts, part) result(share)
    integer, intent(in) :: index(:), n_parts, part
    integer, allocatable :: share(:)
    share = index(share_lower(size(index), n_parts, part) + 1:share_upper(size(index), n_parts, part) + 1)
  end function share_of

  !> Boxes of all points with x, y, z among ascending indices.
  pure function brick_of(x, y, z, order) result(layout)
    integer, intent(in) :: x(:), y(:), z(:), order(3)
    type(layout_t) :: layout
    integer, allocatable :: range_x(:, :), range_y(:, :), range_z(:, :)
    integer :: i, j, k, at
    allocate (range_x, source=ranges_of(x))
    allocate (range_y, source=ranges_of(y))
    allocate (range_z, source=ranges_of(z))
    layout%order = order
    allocate (layout%box(size(range_x, 2)*size(range_y, 2)*size(range_z, 2)))
    at = 0
    do k = 1, size(range_z, 2)
      do j = 1, size(range_y, 2)
        do i = 1, size(range_x, 2)
          at = at + 1
          layout%box(at) = box_t([range_x(1, i), range_y(1, j), range_z(1, k)], &
                                 [range_x(2, i), range_y(2, j), range_z(2, k)])
        end do
      end do
    end do
  end function brick_of

  !> Consecutive indices put together: (first, last) of each run.
  pure function ranges_of(index) result(ranges)
    integer, intent(in) :: index(:)
    integer, allocatable :: ranges(:, :)
    integer :: all_ranges(2, size(index)), k, n_ranges
    n_ranges = 0
    do k = 1, size(index)
      if (n_ranges > 0) then
        if (all_ranges(2, n_ranges) == index(k) - 1) then
          all_ranges(2, n_ranges) = index(k)
          cycle
        end if
      end if
      n_ranges = n_ranges + 1
      all_ranges(:, n_ranges) = index(k)
    end do
    ranges = all_ranges(:, :n_ranges)
  end function ranges_of

  !> Share `part` of `n_parts` of the lines of `n` points along order(1) that go through the indices `fast` of axis
  !> order(2) and `slow` of axis order(3), dealt evenly in memory order.
  pure function lines_of(n, fast, slow, order, n_parts, part) result(layout)
    integer, intent(in) :: n, fast(:), slow(:), order(3), n_parts, part
    type(layout_t) :: layout
    integer :: first, last, row, from, to, k, at
    integer, allocatable :: ranges(:, :)
    type(box_t) :: box
    type(box_t), allocatable :: boxes(:)

    layout%order = order
    first = share_lower(size(fast)*size(slow), n_parts, part)
    last = share_upper(size(fast)*size(slow), n_parts, part)
    allocate (boxes(0))
    at = 0
    if (last >= first) then
      do row = first/size(fast), last/size(fast)
        from = max(first - row*size(fast), 0)
        to = min(last - row*size(fast), size(fast) - 1)
        if (allocated(ranges)) deallocate (ranges)
        allocate (ranges, source=ranges_of(fast(from + 1:to + 1)))
        if (at == 1 .and. size(ranges, 2) == 1) then
          associate (previous => boxes(size(boxes)))
            ! Whole rows that follow each other are one box.
            if (previous%lower(order(2)) == ranges(1, 1) .and. previous%upper(order(2)) == ranges(2, 1) &
                .and. previous%upper(order(3)) == slow(row + 1) - 1) then
              previous%upper(order(3)) = slow(row + 1)
              cycle
            end if
          end associate
        end if
        at = size(ranges, 2)
        do k = 1, at
          box%lower(order) = [0, ranges(1, k), slow(row + 1)]
          box%upper(order) = [n - 1, ranges(2, k), slow(row + 1)]
          boxes = [boxes, box]
        end do
      end do
    end if
    call move_alloc(boxes, layout%box)
  end function lines_of

end module fft_layout
