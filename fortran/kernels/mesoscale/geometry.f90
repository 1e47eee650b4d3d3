!> Vectors, line segments and rotations.
module geometry
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: angle, closest_points, cross, transported, turn

contains

  !> Shortest distance between two line segments (closest points of two lines, clamped one after the other).
  pure subroutine closest_points(p1, p2, q1, q2, distance, s, t)
    real(real64), intent(in) :: p1(3), p2(3), q1(3), q2(3)
    real(real64), intent(out) :: distance, s, t   !< shares of the two lengths where they are closest
    real(real64) :: u(3), v(3), w(3), a, b, c, d, e, determinant
    u = p2 - p1
    v = q2 - q1
    w = p1 - q1
    a = dot_product(u, u)
    b = dot_product(u, v)
    c = dot_product(v, v)
    d = dot_product(u, w)
    e = dot_product(v, w)
    determinant = a * c - b * b
    s = 0
    if (determinant > 1.0e-12_real64 * a * c) s = min(1.0_real64, max(0.0_real64, (b * e - c * d) / determinant))
    t = (b * s + e) / c
    if (t < 0) then
      t = 0
      s = min(1.0_real64, max(0.0_real64, -d / a))
    else if (t > 1) then
      t = 1
      s = min(1.0_real64, max(0.0_real64, (b - d) / a))
    end if
    distance = norm2(w + s * u - t * v)
  end subroutine closest_points

  !> The vector v turned by the smallest rotation that takes the unit vector a to the unit vector b.
  pure function transported(v, a, b) result(w)
    real(real64), intent(in) :: v(3), a(3), b(3)
    real(real64) :: w(3), axis(3), cosine
    axis = cross(a, b)
    cosine = dot_product(a, b)
    if (1 + cosine < 1.0e-12_real64) then
      w = v   ! a reversal has no unique smallest rotation; it is never accepted
    else
      w = cosine * v + cross(axis, v) + axis * (dot_product(axis, v) / (1 + cosine))
    end if
  end function transported

  !> Angle between two vectors, radian.
  pure function angle(a, b) result(beta)
    real(real64), intent(in) :: a(3), b(3)
    real(real64) :: beta
    beta = atan2(norm2(cross(a, b)), dot_product(a, b))
  end function angle

  !> Vector product.
  pure function cross(a, b) result(c)
    real(real64), intent(in) :: a(3), b(3)
    real(real64) :: c(3)
    c = [a(2) * b(3) - a(3) * b(2), a(3) * b(1) - a(1) * b(3), a(1) * b(2) - a(2) * b(1)]
  end function cross

  !> Rotation matrix for an angle about a unit axis (Rodrigues).
  pure function turn(axis, angle) result(rotation)
    real(real64), intent(in) :: axis(3), angle
    real(real64) :: rotation(3, 3), c, s
    integer(int32) :: i, j
    c = cos(angle)
    s = sin(angle)
    do j = 1, 3
      do i = 1, 3
        rotation(i, j) = (1 - c) * axis(i) * axis(j)
      end do
      rotation(j, j) = rotation(j, j) + c
    end do
    rotation(3, 2) = rotation(3, 2) + s * axis(1)
    rotation(2, 3) = rotation(2, 3) - s * axis(1)
    rotation(1, 3) = rotation(1, 3) + s * axis(2)
    rotation(3, 1) = rotation(3, 1) - s * axis(2)
    rotation(2, 1) = rotation(2, 1) + s * axis(3)
    rotation(1, 2) = rotation(1, 2) - s * axis(3)
  end function turn

end module geometry
