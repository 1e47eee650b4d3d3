!> Parameters of Ewald summation: as the settings say, or as they follow from a tolerance or a spacing.
module ewald_screening
  use base_kinds, only: real64
  use settings, only: energy_settings_t
  implicit none
  private
  public :: choose_screening, choose_grid, ewald_alpha, pme_grid_size

  !> A box that changes may make the grid of reciprocal space this much coarser or finer than asked before a continued
  !> run chooses another.
  real(real64), parameter :: grid_slack = 0.1_real64

contains

  !> Screening of charges and of the dispersion (1/angstrom; 0 where it is cut off): what the settings say, or what leaves
  !> the tolerated share at the cutoff.
  subroutine choose_screening(energy, alpha, of_dispersion)
    type(energy_settings_t), intent(in) :: energy
    real(real64), intent(out) :: alpha, of_dispersion
    if (allocated(energy%alpha)) then
      alpha = energy%alpha
    else
      alpha = ewald_alpha(energy%cutoff, energy%alpha_tolerance)
    end if
    of_dispersion = 0.0_real64
    if (.not. energy%ewald_dispersion) return
    if (allocated(energy%dispersion_alpha)) then
      of_dispersion = energy%dispersion_alpha
    else
      of_dispersion = dispersion_alpha(energy%cutoff, energy%dispersion_alpha_tolerance)
    end if
  end subroutine choose_screening

  !> Points of the grid of reciprocal space in a box with edges of these lengths (angstrom); `points` come in as those of
  !> a restart, or 0.
  subroutine choose_grid(energy, box, points)
    type(energy_settings_t), intent(in) :: energy
    real(real64), intent(in) :: box(3)
    integer, intent(inout) :: points(3)
    integer :: chosen(3)
    chosen = energy%grid_points
    if (any(points > 0)) then
      ! The box of the restart was scaled: the grid of before goes on unless it has become unfit.
      where (chosen == 0 .and. box > (1.0_real64 - grid_slack)*energy%grid_spacing*(points - 2) .and. &
             box < (1.0_real64 + grid_slack)*energy%grid_spacing*points) chosen = points
    end if
    where (chosen == 0) chosen = pme_grid_size(box, energy%grid_spacing)
    points = chosen
  end subroutine choose_grid

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
