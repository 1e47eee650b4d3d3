!> Parameters of Ewald summation that follow from a tolerance or a spacing.
module ewald_screening
  use base_kinds, only: real64
  implicit none
  private
  public :: dispersion_alpha, ewald_alpha, pme_grid_size

contains

  !> The least even numbers with no prime factor above 7 that keep the spacing within `max_spacing` (angstrom).
  pure function pme_grid_size(box, max_spacing) result(n)
    real(real64), intent(in) :: box(3), max_spacing
    integer :: n(3), axis, rest, prime
    do axis = 1, 3
      n(axis) = max(2, 2*ceiling(0.5_real64*box(axis)/max_spacing))
      do
        rest = n(axis)
        do prime = 2, 7
          do while (mod(rest, prime) == 0)
            rest = rest/prime
          end do
        end do
        if (rest == 1) exit
        n(axis) = n(axis) + 2
      end do
    end do
  end function pme_grid_size

  !> The screening alpha (1/angstrom) with erfc(alpha*cutoff) = tolerance, by bisection.
  pure function ewald_alpha(cutoff, tolerance) result(alpha)
    real(real64), intent(in) :: cutoff, tolerance
    real(real64) :: alpha, low, high
    integer :: k
    low = 0.0_real64
    high = 30.0_real64/cutoff
    do k = 1, 100
      alpha = 0.5_real64*(low + high)
      if (erfc(alpha*cutoff) > tolerance) then
        low = alpha
      else
        high = alpha
      end if
    end do
  end function ewald_alpha

  !> The screening (1/angstrom) with exp(-y) (1 + y + y^2/2) = tolerance at y = (alpha*cutoff)^2: the share of an atom
  !> pair's dispersion that real space holds at the cutoff.
  pure function dispersion_alpha(cutoff, tolerance) result(alpha)
    real(real64), intent(in) :: cutoff, tolerance
    real(real64) :: alpha, low, high, y
    integer :: k
    low = 0.0_real64
    high = 30.0_real64/cutoff
    do k = 1, 100
      alpha = 0.5_real64*(low + high)
      y = (alpha*cutoff)**2
      if (exp(-y)*(1.0_real64 + y + 0.5_real64*y**2) > tolerance) then
        low = alpha
      else
        high = alpha
      end if
    end do
  end function dispersion_alpha

end module ewald_screening
