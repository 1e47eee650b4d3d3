!> The shape of a contact: 1 where two partners are together, 0 where they are apart, smooth in between.
module contact_wells
  use iso_fortran_env, only: real64
  implicit none
  private
  public :: closeness, closeness_slope

contains

  !> 1 up to a distance of `flat`, 0 from `reach` on; between them 1 - 3 t^2 + 2 t^3, t being the share of the way.
  pure function closeness(distance, flat, reach) result(f)
    real(real64), intent(in) :: distance, flat, reach   !< nm
    real(real64) :: f, t
    t = min(1.0_real64, max(0.0_real64, (distance - flat) / (reach - flat)))
    f = 1 - t * t * (3 - 2 * t)
  end function closeness

  !> Its derivative, 1/nm.
  pure function closeness_slope(distance, flat, reach) result(slope)
    real(real64), intent(in) :: distance, flat, reach   !< nm
    real(real64) :: slope, t
    t = min(1.0_real64, max(0.0_real64, (distance - flat) / (reach - flat)))
    slope = -6 * t * (1 - t) / (reach - flat)
  end function closeness_slope

end module contact_wells
