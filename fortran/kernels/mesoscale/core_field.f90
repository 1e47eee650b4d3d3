!> The field of a nucleosome core's charge sites as a table in the core's own frame, so that a charge meets a core at a
!> cost that does not depend on how many sites it has.
!>
!> Each site's potential, and the two powers of its excluded volume, are split at `joint` nm: beyond, they are as they
!> are; within, an even polynomial that joins with three continuous derivatives takes their place, and what it leaves is
!> added site by site. The smooth part is a cubic B-spline on a regular grid (mesoscale/field.py prepares it).
module core_field
  use iso_c_binding, only: c_f_pointer, c_loc, c_null_ptr
  use iso_fortran_env, only: int32, int64, real32, real64
  implicit none
  private
  public :: field_t, new_field, delete_field, field_of, set_split, field_at, field_slope_at, horner

  integer(int32), parameter, public :: n_parts = 3   !< screened potential, r**-12, r**-6
  integer(int32), parameter :: n_lanes = 4           !< parts, filled up to what vector units like

  type :: field_t
    real(real64) :: lower(3) = 0, edge = 1            !< nm, first point and spacing of the grid
    real(real64) :: joint = 0, cutoff = 0             !< nm
    real(real64) :: kappa = 0                         !< 1/nm
    real(real64) :: shift(n_parts) = 0                !< value of each part at the cutoff
    real(real64) :: polynomial(0:3, n_parts) = 0      !< in r**2, what stands for each part within the joint
    integer(int32) :: points(3) = 0
    real(real32), allocatable :: coefficient(:, :, :, :)   !< (n_lanes, x, y, z)
    ! Sites near each cell of a coarse grid.
    real(real64) :: cell_lower(3) = 0, cell_edge = 1  !< nm
    integer(int32) :: cells(3) = 0
    integer(int32), allocatable :: cell_first(:), cell_site(:)
    real(real64), allocatable :: site(:, :), site_charge(:)   !< nm, e
  end type field_t

contains

  !> A field of its own on the heap, as an opaque number.
  function new_field() result(handle)
    integer(int64) :: handle
    type(field_t), pointer :: field
    allocate (field)
    handle = transfer(c_loc(field), handle)
  end function new_field

  !> The field that belongs to a number from `new_field`.
  function field_of(handle) result(field)
    integer(int64), intent(in) :: handle
    type(field_t), pointer :: field
    call c_f_pointer(transfer(handle, c_null_ptr), field)
  end function field_of

  subroutine delete_field(handle)
    integer(int64), intent(in) :: handle
    type(field_t), pointer :: field
    field => field_of(handle)
    deallocate (field)
  end subroutine delete_field

  !> Split the potentials at `joint` nm, for an inverse screening length (1/nm) and a cutoff (nm).
  pure subroutine set_split(field, joint, kappa, cutoff)
    type(field_t), intent(inout) :: field
    real(real64), intent(in) :: joint, kappa, cutoff
    real(real64) :: power
    integer(int32) :: part
    field%joint = joint
    field%kappa = kappa
    field%cutoff = cutoff
    field%shift = [exp(-field%kappa * cutoff) / cutoff, cutoff**(-12), cutoff**(-6)]
    field%polynomial(:, 1) = even_polynomial(field%joint, screened_derivatives(field%joint, field%kappa))
    do part = 2, n_parts
      power = merge(12, 6, part == 2)
      field%polynomial(:, part) = even_polynomial(field%joint, field%joint**(-power) * [1.0_real64, -power / field%joint, &
        power * (power + 1) / field%joint**2, -power * (power + 1) * (power + 2) / field%joint**3])
    end do
  end subroutine set_split

  !> exp(-kappa r)/r and its first three derivatives.
  pure function screened_derivatives(r, kappa) result(d)
    real(real64), intent(in) :: r, kappa
    real(real64) :: d(4), x
    x = kappa * r
    d = exp(-x) / r * [1.0_real64, -(1 + x) / r, (2 + 2 * x + x**2) / r**2, -(6 + 6 * x + 3 * x**2 + x**3) / r**3]
  end function screened_derivatives

  !> Coefficients of the polynomial of third degree in y = r**2 with these value and three derivatives in r at r.
  pure function even_polynomial(r, d) result(c)
    real(real64), intent(in) :: r, d(4)
    real(real64) :: c(0:3), g(0:3), y
    ! Derivatives in y: d/dy = 1/(2 r) d/dr, again and again.
    g(0) = d(1)
    g(1) = d(2) / (2 * r)
    g(2) = (d(3) - d(2) / r) / (4 * r**2)
    g(3) = (d(4) - 3 * d(3) / r + 3 * d(2) / r**2) / (8 * r**3)
    y = r**2
    c(3) = g(3) / 6
    c(2) = g(2) / 2 - 3 * c(3) * y
    c(1) = g(1) - 2 * c(2) * y - 3 * c(3) * y**2
    c(0) = g(0) - c(1) * y - c(2) * y**2 - c(3) * y**3
  end function even_polynomial

  !> The three parts at a point of the core's frame: sum of q (exp(-kappa r)/r), of r**-12, of r**-6 over the sites, each
  !> shifted to zero at the cutoff.
  pure function field_at(self, x) result(value)
    type(field_t), intent(in) :: self
    real(real64), intent(in) :: x(3)
    real(real64) :: value(n_parts)
    real(real32) :: w(4, 3), total(n_lanes)
    real(real64) :: u(3)
    integer(int32) :: first(3), near(2)
    logical :: inside
    value = 0
    call place_in_table(self, x, inside, first, u)
    if (.not. inside) return
    w = weights(u)
    call interpolate(self%points(1), self%points(2), self%points(3), self%coefficient, first, w, total)
    value = real(total(1:n_parts), real64)
    near = sites_near(self, x)
    call add_near(self, x, near(1), near(2), value)
  end function field_at

  !> Whether the table holds this point; the first of the 4 x 4 x 4 coefficients, and where between two knots it lies.
  pure subroutine place_in_table(self, x, inside, first, u)
    type(field_t), intent(in) :: self
    real(real64), intent(in) :: x(3)
    logical, intent(out) :: inside
    integer(int32), intent(out) :: first(3)
    real(real64), intent(out) :: u(3)
    real(real64) :: t(3)
    t = (x - self%lower) / self%edge
    inside = all(t >= 1 .and. t < self%points - 3)
    first = 0
    u = 0
    if (.not. inside) return
    first = int(t, int32)
    u = t - first
  end subroutine place_in_table

  !> The cubic B-spline's weights of four coefficients along each axis.
  pure function weights(u) result(w)
    real(real64), intent(in) :: u(3)
    real(real32) :: w(4, 3)
    integer(int32) :: i
    do i = 1, 3
      w(:, i) = real([(1 - u(i))**3, 4 - 6 * u(i)**2 + 3 * u(i)**3, 1 + 3 * u(i) + 3 * u(i)**2 - 3 * u(i)**3, u(i)**3] / 6, &
                     real32)
    end do
  end function weights

  !> First and last of the entries of `cell_site` with the sites whose joint reaches a point's cell.
  pure function sites_near(self, x) result(range)
    type(field_t), intent(in) :: self
    real(real64), intent(in) :: x(3)
    integer(int32) :: range(2), at(3), cell
    range = [1, 0]
    at = int((x - self%cell_lower) / self%cell_edge, int32)
    if (any(x < self%cell_lower) .or. any(at >= self%cells)) return
    cell = 1 + at(1) + self%cells(1) * (at(2) + self%cells(2) * at(3))
    range = [self%cell_first(cell), self%cell_first(cell + 1) - 1]
  end function sites_near

  !> The weighted sum of 4 x 4 x 4 coefficients from `first` on; shapes are explicit so that lanes vectorise.
  pure subroutine interpolate(nx, ny, nz, coefficient, first, w, total)
    integer(int32), intent(in) :: nx, ny, nz, first(3)
    real(real32), intent(in) :: coefficient(n_lanes, nx, ny, nz), w(4, 3)
    real(real32), intent(out) :: total(n_lanes)
    real(real32) :: row(n_lanes), weight
    integer(int32) :: i, j, k, lane
    total = 0
    do k = 0, 3
      do j = 0, 3
        row = 0
        do i = 0, 3
          !$omp simd
          do lane = 1, n_lanes
            row(lane) = row(lane) + w(i + 1, 1) * coefficient(lane, first(1) + i, first(2) + j, first(3) + k)
          end do
        end do
        weight = w(j + 1, 2) * w(k + 1, 3)
        total = total + weight * row
      end do
    end do
  end subroutine interpolate

  !> What the polynomials leave of the sites in a list.
  pure subroutine add_near(self, x, first, last, value)
    type(field_t), intent(in) :: self
    real(real64), intent(in) :: x(3)
    integer(int32), intent(in) :: first, last
    real(real64), intent(inout) :: value(n_parts)
    real(real64) :: y, r, r6
    integer(int32) :: m, i
    do m = first, last
      i = self%cell_site(m)
      y = (x(1) - self%site(1, i))**2 + (x(2) - self%site(2, i))**2 + (x(3) - self%site(3, i))**2
      if (y >= self%joint**2) cycle
      r = sqrt(y)
      r6 = 1 / y**3
      value(1) = value(1) + self%site_charge(i) * (exp(-self%kappa * r) / r - horner(self%polynomial(:, 1), y))
      value(2) = value(2) + r6**2 - horner(self%polynomial(:, 2), y)
      value(3) = value(3) + r6 - horner(self%polynomial(:, 3), y)
    end do
  end subroutine add_near

  !> The parts at a point of the core's frame, each times its weight, and the gradient of their sum. Within `closest` (nm)
  !> of a site charges have the energy that they have there, and excluded volume pushes no harder: this is for dynamics,
  !> which comes to places that Monte Carlo refuses.
  pure subroutine field_slope_at(self, x, weight, closest, value, slope)
    type(field_t), intent(in) :: self
    real(real64), intent(in) :: x(3), weight(n_parts), closest
    real(real64), intent(out) :: value, slope(3)
    real(real32) :: w(4, 3), dw(4, 3), total(n_lanes), along(n_lanes, 3)
    real(real64) :: u(3)
    integer(int32) :: first(3), near(2), i
    logical :: inside
    value = 0
    slope = 0
    call place_in_table(self, x, inside, first, u)
    if (.not. inside) return
    w = weights(u)
    do i = 1, 3
      dw(:, i) = real([-(1 - u(i))**2, u(i) * (3 * u(i) - 4), 1 + 2 * u(i) - 3 * u(i)**2, u(i)**2] / 2, real32)
    end do
    call interpolate_slope(self%points(1), self%points(2), self%points(3), self%coefficient, first, w, dw, total, along)
    value = dot_product(weight, real(total(1:n_parts), real64))
    slope = matmul(weight, real(along(1:n_parts, :), real64)) / self%edge
    near = sites_near(self, x)
    call add_near_slope(self, x, weight, closest, near(1), near(2), value, slope)
  end subroutine field_slope_at

  !> As `interpolate`, with the derivatives along the grid's axes (in edges).
  pure subroutine interpolate_slope(nx, ny, nz, coefficient, first, w, dw, total, along)
    integer(int32), intent(in) :: nx, ny, nz, first(3)
    real(real32), intent(in) :: coefficient(n_lanes, nx, ny, nz), w(4, 3), dw(4, 3)
    real(real32), intent(out) :: total(n_lanes), along(n_lanes, 3)
    real(real32) :: row(n_lanes), steep(n_lanes), ww, dwy, dwz
    integer(int32) :: i, j, k, lane
    total = 0
    along = 0
    do k = 0, 3
      do j = 0, 3
        row = 0
        steep = 0
        do i = 0, 3
          !$omp simd
          do lane = 1, n_lanes
            row(lane) = row(lane) + w(i + 1, 1) * coefficient(lane, first(1) + i, first(2) + j, first(3) + k)
            steep(lane) = steep(lane) + dw(i + 1, 1) * coefficient(lane, first(1) + i, first(2) + j, first(3) + k)
          end do
        end do
        ww = w(j + 1, 2) * w(k + 1, 3)
        dwy = dw(j + 1, 2) * w(k + 1, 3)
        dwz = w(j + 1, 2) * dw(k + 1, 3)
        !$omp simd
        do lane = 1, n_lanes
          total(lane) = total(lane) + ww * row(lane)
          along(lane, 1) = along(lane, 1) + ww * steep(lane)
          along(lane, 2) = along(lane, 2) + dwy * row(lane)
          along(lane, 3) = along(lane, 3) + dwz * row(lane)
        end do
      end do
    end do
  end subroutine interpolate_slope

  !> What the polynomials leave of the sites in a list, and its gradient.
  pure subroutine add_near_slope(self, x, weight, closest, first, last, value, slope)
    type(field_t), intent(in) :: self
    real(real64), intent(in) :: x(3), weight(n_parts), closest
    integer(int32), intent(in) :: first, last
    real(real64), intent(inout) :: value, slope(3)
    real(real64) :: d(3), y, z, r, r6, screened, steep
    integer(int32) :: m, i
    do m = first, last
      i = self%cell_site(m)
      d = x - self%site(:, i)
      y = dot_product(d, d)
      if (y >= self%joint**2) cycle
      z = max(y, closest**2)
      r = sqrt(z)
      r6 = 1 / z**3
      screened = self%site_charge(i) * exp(-self%kappa * r) / r
      value = value + weight(1) * (screened - self%site_charge(i) * horner(self%polynomial(:, 1), y)) &
        + weight(2) * (r6**2 - horner(self%polynomial(:, 2), y)) + weight(3) * (r6 - horner(self%polynomial(:, 3), y))
      ! Twice the derivative by y, times d.
      if (y < z) screened = 0
      steep = weight(1) * (-screened * (self%kappa * r + 1) / z - 2 * self%site_charge(i) * rising(self%polynomial(:, 1), y)) &
        + weight(2) * (-12 * r6**2 / z - 2 * rising(self%polynomial(:, 2), y)) &
        + weight(3) * (-6 * r6 / z - 2 * rising(self%polynomial(:, 3), y))
      slope = slope + steep * d
    end do
  end subroutine add_near_slope

  !> Derivative of `horner`.
  pure function rising(c, y) result(value)
    real(real64), intent(in) :: c(0:3), y
    real(real64) :: value
    value = c(1) + y * (2 * c(2) + y * 3 * c(3))
  end function rising

  pure function horner(c, y) result(value)
    real(real64), intent(in) :: c(0:3), y
    real(real64) :: value
    value = c(0) + y * (c(1) + y * (c(2) + y * c(3)))
  end function horner

end module core_field
