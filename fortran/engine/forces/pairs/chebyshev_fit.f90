!> Polynomials on [-1, 1] through the values of a function at the Chebyshev nodes.
module chebyshev_fit
  use base_kinds, only: real64
  use base_constants, only: pi
  implicit none
  private
  public :: chebyshev_nodes, power_series, polynomial

contains

  !> The nodes of a polynomial of this degree, in [-1, 1].
  pure function chebyshev_nodes(degree) result(node)
    integer, intent(in) :: degree
    real(real64) :: node(0:degree)
    integer :: k
    node = [(cos(pi*(k + 0.5_real64)/(degree + 1)), k=0, degree)]
  end function chebyshev_nodes

  !> Coefficients of the powers, from 0 on, of the polynomial with these values at the nodes.
  pure function power_series(value) result(power)
    real(real64), intent(in) :: value(0:)
    real(real64), dimension(0:ubound(value, 1)) :: power, chebyshev, previous, current, next
    real(real64) :: angle
    integer :: degree, k, m

    degree = ubound(value, 1)
    chebyshev = 0.0_real64
    do k = 0, degree
      angle = pi*(k + 0.5_real64)/(degree + 1)
      do m = 0, degree
        chebyshev(m) = chebyshev(m) + merge(1.0_real64, 2.0_real64, m == 0)/(degree + 1)*cos(m*angle)*value(k)
      end do
    end do
    ! Chebyshev polynomials to powers: T_0 = 1, T_1 = t, T_(m+1) = 2 t T_m - T_(m-1).
    previous = 0.0_real64
    current = 0.0_real64
    previous(0) = 1.0_real64
    current(1) = 1.0_real64
    power = chebyshev(0)*previous + chebyshev(1)*current
    do m = 2, degree
      next(0) = -previous(0)
      next(1:) = 2.0_real64*current(:degree - 1) - previous(1:)
      power = power + chebyshev(m)*next
      previous = current
      current = next
    end do
  end function power_series

  pure function polynomial(coefficient, t) result(value)
    real(real64), intent(in) :: coefficient(0:), t
    real(real64) :: value
    integer :: k
    value = 0.0_real64
    do k = ubound(coefficient, 1), 0, -1
      value = value*t + coefficient(k)
    end do
  end function polynomial

end module chebyshev_fit
