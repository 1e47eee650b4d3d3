!> Bonds, angles and torsions of a nucleotide's window with their derivatives, added to normal equations.
module backbone_terms
  use backbone_model, only: window, window_free, window_pairs, previous_atoms, needs_phosphate
  use iso_fortran_env, only: int32, real32, real64
  implicit none
  private
  public :: add_term, angles, bonds, pair_index, skips, torsion

  real(real32), parameter :: coincident = 1.0e-6_real32     !! square angstrom: atoms that a 5' end lacks lie in one place

contains

  !> Place of the pair of window atoms a >= b in a packed lower triangle.
  pure integer(int32) function pair_index(a, b)
    integer(int32), intent(in) :: a, b
    pair_index = a * (a - 1) / 2 + b
  end function pair_index

  !> Whether a term does not exist at a 5' end, or belongs to the nucleotide beyond a piece alone.
  pure logical function skips(is_first, is_beyond, atom)
    logical, intent(in) :: is_first, is_beyond
    integer(int32), intent(in) :: atom(:)
    skips = .false.
    if (is_first) skips = minval(atom) <= needs_phosphate
    if (is_beyond) skips = minval(atom) > previous_atoms
  end function skips

  !> Adds one residual with its derivatives to the normal equations of a window; base atoms do not move. The fourth
  !> component of every vector is padding.
  pure subroutine add_term(m, atom, deviation, weight, slopes, cost, block, slope)
    integer(int32), intent(in) :: m, atom(m)
    real(real32), intent(in) :: deviation, weight, slopes(4, m)
    real(real64), intent(inout) :: cost
    real(real32), intent(inout) :: block(4, 3, window_pairs), slope(4, window_free)
    real(real32) :: residual, jacobian(4, 4)
    integer(int32) :: p, q, at

    residual = weight * deviation
    cost = cost + real(residual, real64)**2
    jacobian(:, :m) = weight * slopes
    do p = 1, m
      if (atom(p) > window_free) cycle
      slope(:, atom(p)) = slope(:, atom(p)) + residual * jacobian(:, p)
      do q = 1, m
        if (atom(q) < atom(p) .or. atom(q) > window_free) cycle
        at = pair_index(atom(q), atom(p))
        block(:, 1, at) = block(:, 1, at) + jacobian(:, q) * jacobian(1, p)
        block(:, 2, at) = block(:, 2, at) + jacobian(:, q) * jacobian(2, p)
        block(:, 3, at) = block(:, 3, at) + jacobian(:, q) * jacobian(3, p)
      end do
    end do
  end subroutine add_term

  !> Lengths of bonds and their derivatives.
  pure subroutine bonds(m, atom, place, value, slopes)
    integer(int32), intent(in) :: m, atom(2, m)
    real(real32), intent(in) :: place(3, window)
    real(real32), intent(out) :: value(m), slopes(4, 3, m)
    real(real32) :: u(3)
    integer(int32) :: k

    slopes(4, :, :) = 0
    do k = 1, m
      u = place(:, atom(1, k)) - place(:, atom(2, k))
      value(k) = sqrt(max(u(1)**2 + u(2)**2 + u(3)**2, coincident))
      slopes(:3, 1, k) = u / value(k)
      slopes(:3, 2, k) = -slopes(:3, 1, k)
    end do
  end subroutine bonds

  !> Deviations of angles from their targets, radian, and their derivatives. With the deviation D it is
  !> 2 tan(D/2) = 2 sin D / (1 + cos D), which is D to 0.3 % at 10 degrees and needs no inverse function. Beyond a few
  !> standard deviations it grows faster still: strain is shared with neighbours rather than left in one angle.
  pure subroutine angles(m, atom, place, cosine_target, sine_target, inverse_sharp, value, slopes)
    integer(int32), intent(in) :: m, atom(3, m)
    real(real32), intent(in) :: place(3, window), cosine_target(m), sine_target(m)
    real(real32), intent(in) :: inverse_sharp(m) !! one over the deviation that counts double, per radian
    real(real32), intent(out) :: value(m), slopes(4, 3, m)
    real(real32), dimension(m) :: ux, uy, uz, vx, vy, vz, per_u, per_v, cosine, along_u, along_v
    real(real32) :: sine, half, excess
    integer(int32) :: k

    do k = 1, m
      ux(k) = place(1, atom(1, k)) - place(1, atom(2, k))
      uy(k) = place(2, atom(1, k)) - place(2, atom(2, k))
      uz(k) = place(3, atom(1, k)) - place(3, atom(2, k))
      vx(k) = place(1, atom(3, k)) - place(1, atom(2, k))
      vy(k) = place(2, atom(3, k)) - place(2, atom(2, k))
      vz(k) = place(3, atom(3, k)) - place(3, atom(2, k))
    end do
    do k = 1, m
      per_u(k) = 1 / sqrt(max(ux(k)**2 + uy(k)**2 + uz(k)**2, coincident))
      per_v(k) = 1 / sqrt(max(vx(k)**2 + vy(k)**2 + vz(k)**2, coincident))
      cosine(k) = (ux(k) * vx(k) + uy(k) * vy(k) + uz(k) * vz(k)) * per_u(k) * per_v(k)
      sine = sqrt(max(1 - cosine(k)**2, 1.0e-9_real32))
      half = 1 / max(1 + cosine(k) * cosine_target(k) + sine * sine_target(k), 1.0e-2_real32)
      value(k) = 2 * (sine * cosine_target(k) - cosine(k) * sine_target(k)) * half
      excess = (value(k) * inverse_sharp(k))**2
      along_u(k) = 2 * half / sine * (1 + 3 * excess) * per_u(k)
      along_v(k) = 2 * half / sine * (1 + 3 * excess) * per_v(k)
      value(k) = value(k) * (1 + excess)
    end do
    do k = 1, m
      slopes(1, 1, k) = (cosine(k) * per_u(k) * ux(k) - per_v(k) * vx(k)) * along_u(k)
      slopes(2, 1, k) = (cosine(k) * per_u(k) * uy(k) - per_v(k) * vy(k)) * along_u(k)
      slopes(3, 1, k) = (cosine(k) * per_u(k) * uz(k) - per_v(k) * vz(k)) * along_u(k)
      slopes(4, 1, k) = 0
      slopes(1, 3, k) = (cosine(k) * per_v(k) * vx(k) - per_u(k) * ux(k)) * along_v(k)
      slopes(2, 3, k) = (cosine(k) * per_v(k) * vy(k) - per_u(k) * uy(k)) * along_v(k)
      slopes(3, 3, k) = (cosine(k) * per_v(k) * vz(k) - per_u(k) * uz(k)) * along_v(k)
      slopes(4, 3, k) = 0
      slopes(:, 2, k) = -slopes(:, 1, k) - slopes(:, 3, k)
    end do
  end subroutine angles

  !> Deviation of the torsion of four points (IUPAC sign) from a target, radian, -pi..pi, and its derivatives
  !> (Blondel & Karplus 1996).
  pure subroutine torsion(p, q, r, s, cosine_target, sine_target, value, slopes)
    real(real32), intent(in) :: p(3), q(3), r(3), s(3), cosine_target, sine_target
    real(real32), intent(out) :: value, slopes(4, 4)
    real(real32) :: f(3), g(3), h(3), a(3), b(3), length, a2, b2, inner(3), sine, cosine

    f = p - q
    g = q - r
    h = s - r
    a = [f(2) * g(3) - f(3) * g(2), f(3) * g(1) - f(1) * g(3), f(1) * g(2) - f(2) * g(1)]
    b = [h(2) * g(3) - h(3) * g(2), h(3) * g(1) - h(1) * g(3), h(1) * g(2) - h(2) * g(1)]
    length = sqrt(max(g(1)**2 + g(2)**2 + g(3)**2, coincident))
    a2 = 1 / max(a(1)**2 + a(2)**2 + a(3)**2, 1.0e-6_real32)
    b2 = 1 / max(b(1)**2 + b(2)**2 + b(3)**2, 1.0e-6_real32)
    cosine = a(1) * b(1) + a(2) * b(2) + a(3) * b(3)
    sine = ((b(2) * a(3) - b(3) * a(2)) * g(1) + (b(3) * a(1) - b(1) * a(3)) * g(2) &
      + (b(1) * a(2) - b(2) * a(1)) * g(3)) / length
    value = atan2(sine * cosine_target - cosine * sine_target, cosine * cosine_target + sine * sine_target)
    slopes(4, :) = 0
    slopes(:3, 1) = -length * a2 * a
    slopes(:3, 4) = length * b2 * b
    inner = (f(1) * g(1) + f(2) * g(2) + f(3) * g(3)) * a2 / length * a &
      - (h(1) * g(1) + h(2) * g(2) + h(3) * g(3)) * b2 / length * b
    slopes(:3, 2) = -slopes(:3, 1) + inner
    slopes(:3, 3) = -slopes(:3, 4) - inner
  end subroutine torsion

end module backbone_terms
