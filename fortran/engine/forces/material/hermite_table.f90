!> Tables at equal steps from 0, interpolated by cubic Hermite polynomials with slopes from five-point differences (three and
!> two points at the ends): what LAMMPS does with the same points, so that energies can be compared.
module hermite_table
  use base_kinds, only: real64
  implicit none
  private
  public :: hermite_table_t

  type :: hermite_table_t
    real(real64) :: inverse_step = 1.0_real64
    !> Value in interval k (from 0) at the fraction t of it: c0 + t (c1 + t (c2 + t c3)).
    real(real64), allocatable :: coefficient(:, :)
  contains
    procedure :: create
    procedure :: evaluate
  end type hermite_table_t

contains

  !> From at least five values at 0, step, 2 step, ...
  pure subroutine create(self, step, value)
    class(hermite_table_t), intent(inout) :: self
    real(real64), intent(in) :: step, value(:)
    real(real64) :: slope(size(value))
    integer :: n, k
    n = size(value)
    self%inverse_step = 1.0_real64/step
    slope(1) = value(2) - value(1)
    slope(2) = 0.5_real64*(value(3) - value(1))
    slope(3:n - 2) = (8.0_real64*(value(4:n - 1) - value(2:n - 3)) - (value(5:n) - value(1:n - 4)))/12.0_real64
    slope(n - 1) = 0.5_real64*(value(n) - value(n - 2))
    slope(n) = value(n) - value(n - 1)
    if (allocated(self%coefficient)) deallocate (self%coefficient)
    allocate (self%coefficient(0:3, 0:n - 2))
    do k = 0, n - 2
      associate (rise => value(k + 2) - value(k + 1), a => slope(k + 1), b => slope(k + 2))
        self%coefficient(:, k) = [value(k + 1), a, 3.0_real64*rise - 2.0_real64*a - b, a + b - 2.0_real64*rise]
      end associate
    end do
  end subroutine create

  !> Value and slope at x >= 0, in the units of `step` and `value` of `create`; beyond the last point as a straight line.
  pure subroutine evaluate(self, x, value, slope)
    class(hermite_table_t), intent(in) :: self
    real(real64), intent(in) :: x
    real(real64), intent(out) :: value, slope
    real(real64) :: place, t
    integer :: k
    place = max(0.0_real64, x)*self%inverse_step
    k = int(min(place, real(ubound(self%coefficient, 2), real64)))
    t = min(1.0_real64, place - k)
    associate (c => self%coefficient(:, k))
      ! A section's first element is number 1.
      slope = c(2) + t*(2.0_real64*c(3) + 3.0_real64*t*c(4))
      value = c(1) + t*(c(2) + t*(c(3) + t*c(4))) + slope*(place - k - t)
      slope = slope*self%inverse_step
    end associate
  end subroutine evaluate

end module hermite_table
