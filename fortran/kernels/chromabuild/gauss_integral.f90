!> The writhe of a polygon: Gauss' double integral, exact for straight segments (Klenin & Langowski 2000, method 1a).
module gauss_integral
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: polygon_writhe

  real(real64), parameter :: pi = acos(-1.0_real64)
  real(real64), parameter :: flat = 1.0e-20_real64 !! angstrom^4: four points in a plane through a common point

contains

  !> Two segments that share a point, or lie in one plane, contribute nothing. Sums run in a fixed order.
  subroutine polygon_writhe(n, point, closed, n_threads, writhe)
    integer(int32), intent(in) :: n
    real(real64), intent(in) :: point(3, n) !! angstrom
    integer(int32), intent(in) :: closed    !! 1: the last point is joined to the first
    integer(int32), intent(in) :: n_threads
    real(real64), intent(out) :: writhe
    real(real64), allocatable :: partial(:)
    integer(int32) :: segments, i, j

    segments = merge(n, n - 1, closed == 1)
    allocate (partial(max(segments, 0)))
    !$omp parallel do schedule(dynamic, 16) num_threads(n_threads) private(j)
    do i = 1, segments
      partial(i) = 0
      do j = i + 2, segments
        partial(i) = partial(i) + solid_angle(point(:, i), point(:, modulo(i, n) + 1), point(:, j), &
          point(:, modulo(j, n) + 1))
      end do
    end do
    !$omp end parallel do
    writhe = sum(partial) / (2 * pi)
  end subroutine polygon_writhe

  !> Signed solid angle under which two segments p1-p2 and p3-p4 are seen to cross, over 2.
  pure real(real64) function solid_angle(p1, p2, p3, p4)
    real(real64), intent(in) :: p1(3), p2(3), p3(3), p4(3)
    real(real64), dimension(3) :: r13, r14, r23, r24, n1, n2, n3, n4
    real(real64) :: turn

    r13 = p3 - p1
    r14 = p4 - p1
    r23 = p3 - p2
    r24 = p4 - p2
    solid_angle = 0
    n1 = cross(r13, r14)
    n2 = cross(r14, r24)
    n3 = cross(r24, r23)
    n4 = cross(r23, r13)
    if (min(dot_product(n1, n1), dot_product(n2, n2), dot_product(n3, n3), dot_product(n4, n4)) < flat) return
    n1 = n1 / norm2(n1)
    n2 = n2 / norm2(n2)
    n3 = n3 / norm2(n3)
    n4 = n4 / norm2(n4)
    turn = arc_sine(dot_product(n1, n2)) + arc_sine(dot_product(n2, n3)) + arc_sine(dot_product(n3, n4)) &
      + arc_sine(dot_product(n4, n1))
    solid_angle = sign(turn, dot_product(cross(p4 - p3, p2 - p1), r13))
  end function solid_angle

  !> Rounding may carry a cosine beyond one.
  pure real(real64) function arc_sine(x)
    real(real64), intent(in) :: x
    arc_sine = asin(max(-1.0_real64, min(1.0_real64, x)))
  end function arc_sine

  pure function cross(u, v) result(w)
    real(real64), intent(in) :: u(3), v(3)
    real(real64) :: w(3)
    w = [u(2) * v(3) - u(3) * v(2), u(3) * v(1) - u(1) * v(3), u(1) * v(2) - u(2) * v(1)]
  end function cross
end module gauss_integral
