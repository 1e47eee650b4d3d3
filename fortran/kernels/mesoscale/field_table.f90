!> The table of a core's field: the interface that Python calls. A field is made once and known by a number, its handle.
module field_table
  use core_field, only: field_t, new_field, delete_field, field_of, set_split, horner
  use iso_fortran_env, only: int32, int64, real32, real64
  implicit none
  private
  public :: create_field, free_field, set_coefficients, set_near_sites, sample_field

contains

  !> A field without a table.
  subroutine create_field(lower, edge, joint, kappa, cutoff, handle)
    real(real64), intent(in) :: lower(3), edge     !< nm, first point and spacing of the table
    real(real64), intent(in) :: joint              !< nm; nearer sites are summed one by one
    real(real64), intent(in) :: kappa              !< 1/nm
    real(real64), intent(in) :: cutoff             !< nm
    integer(int64), intent(out) :: handle
    type(field_t), pointer :: field
    handle = new_field()
    field => field_of(handle)
    field%lower = lower
    field%edge = edge
    call set_split(field, joint, kappa, cutoff)
  end subroutine create_field

  subroutine free_field(handle)
    integer(int64), intent(in) :: handle
    call delete_field(handle)
  end subroutine free_field

  !> The coefficients of the B-spline: lanes (three parts and a gap) of each point.
  subroutine set_coefficients(handle, nx, ny, nz, coefficient)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: nx, ny, nz
    real(real32), intent(in) :: coefficient(4, nx, ny, nz)
    type(field_t), pointer :: field
    field => field_of(handle)
    field%points = [nx, ny, nz]
    field%coefficient = coefficient
  end subroutine set_coefficients

  !> The sites, and those whose joint reaches each cell of a coarse grid.
  subroutine set_near_sites(handle, n_sites, n_cells, n_near, site, site_charge, lower, edge, cells, cell_first, cell_site)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n_sites, n_cells, n_near
    real(real64), intent(in) :: site(3, n_sites), site_charge(n_sites)   !< nm, e
    real(real64), intent(in) :: lower(3), edge     !< nm, corner of the grid and edge of its cells
    integer(int32), intent(in) :: cells(3)         !< along each axis
    integer(int32), intent(in) :: cell_first(n_cells), cell_site(n_near)   !< from 1, x runs fastest; one more entry at the end
    type(field_t), pointer :: field
    field => field_of(handle)
    field%site = site
    field%site_charge = site_charge
    field%cell_lower = lower
    field%cell_edge = edge
    field%cells = cells
    field%cell_first = cell_first
    field%cell_site = cell_site
  end subroutine set_near_sites

  !> The smooth parts on all points of the table: what Python turns into coefficients.
  subroutine sample_field(handle, n_sites, nx, ny, nz, site, site_charge, value)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n_sites, nx, ny, nz
    real(real64), intent(in) :: site(3, n_sites), site_charge(n_sites)   !< nm, e
    real(real64), intent(out) :: value(3, nx, ny, nz)   !< e/nm, nm^-12, nm^-6
    type(field_t), pointer :: field
    real(real64) :: x(3), y, r, part(3), cutoff2
    integer(int32) :: i, j, k, s
    field => field_of(handle)
    cutoff2 = field%cutoff**2
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
