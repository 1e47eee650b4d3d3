!> Correction maps of the CHARMM force field (CMAP): an energy over two neighbouring backbone dihedrals, given on a
!> square periodic grid (MacKerell, Feig and Brooks, J. Comput. Chem. 25, 1400 (2004)). Within a cell of the grid it is
!> the bicubic polynomial that has, at the corners, the values of the grid and the derivatives of the periodic cubic
!> splines through its lines.
module cmap
  use base_kinds, only: real64
  use base_constants, only: pi
  implicit none
  private
  public :: cmap_t

  type :: cmap_t
    private
    !> Points along an axis.
    integer :: n_points = 0
    integer, public :: n_maps = 0
    !> `coefficient(a, b, i, j, map)` of u^a v^b, where u and v run from 0 to 1 in cell (i, j).
    real(real64), allocatable :: coefficient(:, :, :, :, :)
  contains
    procedure :: create
    procedure :: evaluate
  end type cmap_t

contains

  !> `energy(j, i, map)` in kcal/mol belongs to phi = 360 i/n and psi = 360 j/n degrees.
  pure subroutine create(self, energy)
    class(cmap_t), intent(inout) :: self
    real(real64), intent(in) :: energy(0:, 0:, :)
    !> Value and slope at both ends of an interval to the coefficients of the cubic between.
    real(real64), parameter :: cubic(0:3, 4) = reshape([1.0_real64, 0.0_real64, -3.0_real64, 2.0_real64, &
                                                        0.0_real64, 0.0_real64, 3.0_real64, -2.0_real64, &
                                                        0.0_real64, 1.0_real64, -2.0_real64, 1.0_real64, &
                                                        0.0_real64, 0.0_real64, -1.0_real64, 1.0_real64], [4, 4])
    real(real64), allocatable, dimension(:, :) :: value, by_phi, by_psi, by_both, slope
    real(real64) :: corners(4, 4)
    integer :: n, map, i, j, x(2), y(2)

    n = size(energy, 1)
    self%n_points = n
    self%n_maps = size(energy, 3)
    if (allocated(self%coefficient)) deallocate (self%coefficient)
    allocate (self%coefficient(0:3, 0:3, 0:n - 1, 0:n - 1, self%n_maps))
    allocate (value(0:n - 1, 0:n - 1), by_phi(0:n - 1, 0:n - 1), by_psi(0:n - 1, 0:n - 1), by_both(0:n - 1, 0:n - 1))
    slope = spline_slope(n)
    do map = 1, self%n_maps
      value = transpose(energy(:, :, map))
      by_phi = matmul(slope, value)
      by_psi = matmul(value, transpose(slope))
      by_both = matmul(by_phi, transpose(slope))
      do j = 0, n - 1
        do i = 0, n - 1
          x = [i, mod(i + 1, n)]
          y = [j, mod(j + 1, n)]
          corners(:2, :2) = value(x, y)
          corners(3:, :2) = by_phi(x, y)
          corners(:2, 3:) = by_psi(x, y)
          corners(3:, 3:) = by_both(x, y)
          self%coefficient(:, :, i, j, map) = matmul(cubic, matmul(corners, transpose(cubic)))
        end do
      end do
    end do
  end subroutine create

  !> The matrix that gives the slopes d of the periodic cubic spline through n values f a unit apart:
  !> d(i-1) + 4 d(i) + d(i+1) = 3 (f(i+1) - f(i-1)), solved with the Green's function of the left side.
  pure function spline_slope(n) result(slope)
    integer, intent(in) :: n
    real(real64) :: slope(0:n - 1, 0:n - 1)
    real(real64), parameter :: decay = sqrt(3.0_real64) - 2.0_real64
    real(real64) :: green(0:n - 1)
    integer :: i, j, k
    do k = 0, n - 1
      green(k) = (decay**k + decay**(n - k))/((1.0_real64 - decay**n)*2.0_real64*sqrt(3.0_real64))
    end do
    do j = 0, n - 1
      do i = 0, n - 1
        slope(i, j) = 3.0_real64*(green(modulo(i - j + 1, n)) - green(modulo(i - j - 1, n)))
      end do
    end do
  end function spline_slope

  !> Energy (kcal/mol) and its derivatives by both angles (radian).
  pure subroutine evaluate(self, map, phi, psi, energy, by_phi, by_psi)
    class(cmap_t), intent(in) :: self
    integer, intent(in) :: map
    real(real64), intent(in) :: phi, psi
    real(real64), intent(out) :: energy, by_phi, by_psi
    real(real64) :: per_radian, x, y, row(0:3), row_slope(0:3)
    integer :: i, j
    per_radian = self%n_points/(2.0_real64*pi)
    x = phi*per_radian
    y = psi*per_radian
    i = floor(x)
    j = floor(y)
    x = x - i
    y = y - j
    i = modulo(i, self%n_points)
    j = modulo(j, self%n_points)
    associate (c => self%coefficient)
      row = c(:, 0, i, j, map) + y*(c(:, 1, i, j, map) + y*(c(:, 2, i, j, map) + y*c(:, 3, i, j, map)))
      row_slope = c(:, 1, i, j, map) + y*(2.0_real64*c(:, 2, i, j, map) + y*3.0_real64*c(:, 3, i, j, map))
    end associate
    energy = row(0) + x*(row(1) + x*(row(2) + x*row(3)))
    by_phi = per_radian*(row(1) + x*(2.0_real64*row(2) + x*3.0_real64*row(3)))
    by_psi = per_radian*(row_slope(0) + x*(row_slope(1) + x*(row_slope(2) + x*row_slope(3))))
  end subroutine evaluate

end module cmap
