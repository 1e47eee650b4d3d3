!> The table of a core's field: the interface that Python calls.
module field_table
  use core_field, only: field_t, set_scalars, horner
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: sample_field

contains

  !> The smooth parts on all points of the grid, (3, points): what Python turns into coefficients.
  subroutine sample_field(n_sites, nx, ny, nz, site, site_charge, scalar, value)
    integer(int32), intent(in) :: n_sites, nx, ny, nz
    real(real64), intent(in) :: site(3, n_sites), site_charge(n_sites), scalar(11)
    real(real64), intent(out) :: value(3, nx, ny, nz)
    type(field_t) :: field
    real(real64) :: x(3), y, r, part(3), cutoff2
    integer(int32) :: i, j, k, s
    call set_scalars(field, scalar)
    cutoff2 = scalar(7)**2
    !$omp parallel do private(x, y, r, part, i, j, s) schedule(static)
    do k = 1, nz
      do j = 1, ny
        do i = 1, nx
          x = field%lower + field%edge * [i - 1, j - 1, k - 1]
          part = 0
          do s = 1, n_sites
            y = (x(1) - site(1, s))**2 + (x(2) - site(2, s))**2 + (x(3) - site(3, s))**2
            if (y >= cutoff2) cycle
            if (y < field%joint**2) then
              part(1) = part(1) + site_charge(s) * (horner(field%polynomial(:, 1), y) - field%shift(1))
              part(2) = part(2) + horner(field%polynomial(:, 2), y) - field%shift(2)
              part(3) = part(3) + horner(field%polynomial(:, 3), y) - field%shift(3)
            else
              r = sqrt(y)
              part(1) = part(1) + site_charge(s) * (exp(-field%kappa * r) / r - field%shift(1))
              part(2) = part(2) + y**(-6) - field%shift(2)
              part(3) = part(3) + y**(-3) - field%shift(3)
            end if
          end do
          value(:, i, j, k) = part
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine sample_field

end module field_table
