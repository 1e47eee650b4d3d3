!> Whether any of many points is within a radius of a position, by cells at least as wide.
module near_points
  use base_kinds, only: real64
  use base_counting_sort, only: counting_sort
  use comm_domain_grid, only: domain_grid_t
  implicit none
  private
  public :: near_points_t

  !> Cells along an axis at most.
  integer, parameter :: most_cells = 100

  type :: near_points_t
    private
    type(domain_grid_t) :: grid
    logical :: is_periodic = .true.
    real(real64) :: radius = 0.0_real64
    !> Where the cells begin and how wide they all are together, straight (angstrom).
    real(real64) :: origin(3) = 0.0_real64, extent(3) = 1.0_real64
    integer :: n_cells(3) = 1
    !> Points in the order of their cells; those of cell c are `first(c):first(c+1)-1`.
    real(real64), allocatable :: point(:, :)
    integer, allocatable :: first(:)
  contains
    procedure :: create
    procedure :: is_near
  end type near_points_t

contains

  !> Sort the points, (3, n; n > 0), into cells. `grid`: the box, with images if `is_periodic`. All lengths in angstrom.
  subroutine create(self, grid, is_periodic, radius, point)
    class(near_points_t), intent(out) :: self
    type(domain_grid_t), intent(in) :: grid
    logical, intent(in) :: is_periodic
    real(real64), intent(in) :: radius, point(:, :)
    integer, allocatable :: cell(:), order(:)
    integer :: i, c(3)
    self%grid = grid
    self%is_periodic = is_periodic
    self%radius = radius
    self%extent = grid%box
    if (.not. is_periodic) then
      self%origin = minval(point, dim=2)
      self%extent = max(maxval(point, dim=2) - self%origin, radius)
    end if
    self%n_cells = max(1, min(most_cells, floor(self%extent/grid%depth([radius, radius, radius]))))
    allocate (cell(size(point, 2)))
    do i = 1, size(cell)
      c = min(max(cell_of(self, point(:, i)), 0), self%n_cells - 1)
      cell(i) = number_of(self, c)
    end do
    call counting_sort(cell, product(self%n_cells), order, self%first)
    self%point = point(:, order)
  end subroutine create

  !> Whether a point is at most the radius away from a position (angstrom).
  pure logical function is_near(self, position)
    class(near_points_t), intent(in) :: self
    real(real64), intent(in) :: position(3)
    real(real64) :: apart(3)
    integer :: home(3), c(3), x, y, z, i
    is_near = .false.
    home = cell_of(self, position)
    do z = -1, 1
      do y = -1, 1
        do x = -1, 1
          c = home + [x, y, z]
          if (self%is_periodic) then
            c = modulo(c, self%n_cells)
          else
            ! Points on the last face are in the last cell.
            if (any(c < 0 .or. c > self%n_cells)) cycle
            c = min(c, self%n_cells - 1)
          end if
          do i = self%first(number_of(self, c)), self%first(number_of(self, c) + 1) - 1
            apart = position - self%point(:, i)
            if (self%is_periodic) apart = self%grid%nearest_image(apart)
            is_near = sum(apart**2) <= self%radius**2
            if (is_near) return
          end do
        end do
      end do
    end do
  end function is_near

  !> Cell in which a position lies, from 0 along each axis; it may be outside of a box without images.
  pure function cell_of(self, position) result(cell)
    type(near_points_t), intent(in) :: self
    real(real64), intent(in) :: position(3)
    integer :: cell(3)
    real(real64) :: here(3)
    here = position
    if (self%is_periodic) here = self%grid%straight(position + self%grid%wrap_shift(position))
    ! Far outside is outside.
    cell = floor(max(-2.0_real64, min(most_cells + 2.0_real64, (here - self%origin)/self%extent*self%n_cells)))
  end function cell_of

  pure integer function number_of(self, cell) result(number)
    type(near_points_t), intent(in) :: self
    integer, intent(in) :: cell(3)
    number = cell(1) + self%n_cells(1)*(cell(2) + self%n_cells(2)*cell(3)) + 1
  end function number_of

end module near_points
