!> Terms between beads of DNA in the model 3SPN.2 (Hinckley, Freeman, Whitmer and de Pablo, J. Chem. Phys. 139, 144903
!> (2013)): torsions in a Gaussian well, and what bases do to each other, stacking along a strand, pairs and
!> cross-stacking between strands. Parameters as in docs/reference/file-formats.md.
!>
!> Bases hold each other by a Morse well, whose repulsive branch acts from all sides and whose attractive one only in the
!> right direction: a factor w of each angle is 1 about its reference, falls as 1 - cos^2, and is 0 far from it.
module base_terms
  use base_kinds, only: real64
  use base_constants, only: pi
  use base_vector, only: cross
  use torsion_angle, only: tiny_length, tiny_length2, torsion
  implicit none
  private
  public :: gaussian_torsion, stacking, base_pair, cross_stacking

  !> The cosine of the angle of two bases ends here in cross-stacking, so that its arc has a slope.
  real(real64), parameter :: largest_cosine = 0.99_real64

contains

  !> -k exp(-d^2/(2 width^2)), d being the angle less phi0 around the circle. `parameter` = k, width, phi0 (radian).
  pure subroutine gaussian_torsion(r, parameter, f, energy)
    real(real64), intent(in) :: r(3, 4), parameter(:)
    real(real64), intent(out) :: f(3, 4), energy
    real(real64) :: phi, d
    call torsion(r, phi, f)
    d = phi - parameter(3)
    d = d - 2.0_real64*pi*anint(d/(2.0_real64*pi))
    energy = -parameter(1)*exp(-0.5_real64*(d/parameter(2))**2)
    f = energy*d/parameter(2)**2*f
  end subroutine gaussian_torsion

  !> Sugar, its base, and the next base of the strand. `parameter` = epsilon, r0, theta0, alpha, sharpness.
  pure subroutine stacking(r, parameter, f, energy)
    real(real64), intent(in) :: r(3, 3), parameter(:)
    real(real64), intent(out) :: f(3, 3), energy
    real(real64) :: repulsion, attraction, slopes(2), along(3), w, w_slope, gradient(3, 3)
    call morse(r(:, 3) - r(:, 2), parameter(1), parameter(2), parameter(4), repulsion, attraction, slopes, along)
    call bend(r, parameter(3), parameter(5), w, w_slope, gradient)
    energy = repulsion + w*attraction
    f = -attraction*w_slope*gradient
    f(:, 3) = f(:, 3) - (slopes(1) + w*slopes(2))*along
    f(:, 2) = f(:, 2) + (slopes(1) + w*slopes(2))*along
  end subroutine stacking

  !> Sugar and base of one strand, base and sugar of the other. `parameter` = epsilon, r0, theta1, theta2, phi0, alpha,
  !> sharpness.
  pure subroutine base_pair(r, parameter, f, energy)
    real(real64), intent(in) :: r(3, 4), parameter(:)
    real(real64), intent(out) :: f(3, 4), energy
    real(real64) :: repulsion, attraction, slopes(2), along(3), w1, w2, w1_slope, w2_slope, one(3, 3), two(3, 3), phi, turn, &
                    round, by_phi(3, 4)
    call morse(r(:, 3) - r(:, 2), parameter(1), parameter(2), parameter(6), repulsion, attraction, slopes, along)
    call bend(r(:, :3), parameter(3), parameter(7), w1, w1_slope, one)
    call bend(r(:, 4:2:-1), parameter(4), parameter(7), w2, w2_slope, two)
    call torsion(r, phi, by_phi)
    turn = 0.5_real64*(1.0_real64 + cos(phi - parameter(5)))
    round = turn*w1*w2
    energy = repulsion + round*attraction
    f = 0.5_real64*sin(phi - parameter(5))*w1*w2*attraction*by_phi
    f(:, :3) = f(:, :3) - turn*w2*attraction*w1_slope*one
    f(:, 4:2:-1) = f(:, 4:2:-1) - turn*w1*attraction*w2_slope*two
    f(:, 3) = f(:, 3) - (slopes(1) + round*slopes(2))*along
    f(:, 2) = f(:, 2) + (slopes(1) + round*slopes(2))*along
  end subroutine base_pair

  !> Sugar and base of one strand, base and sugar that pair with them, and the base beside that one, to which the first base
  !> leans over. `parameter` = epsilon, r0, theta3 (between the bases of the pair), theta (at the first base), alpha,
  !> sharpness of theta3 and of theta. There is no repulsion, which excluded volume does.
  pure subroutine cross_stacking(r, parameter, f, energy)
    real(real64), intent(in) :: r(3, 5), parameter(:)
    real(real64), intent(out) :: f(3, 5), energy
    real(real64) :: repulsion, attraction, slopes(2), along(3), w3, w, w3_slope, w_slope, gradient(3, 3), one(3), two(3), &
                    length(2), cosine
    call morse(r(:, 5) - r(:, 2), parameter(1), parameter(2), parameter(5), repulsion, attraction, slopes, along)
    call bend(r(:, [1, 2, 5]), parameter(4), parameter(7), w, w_slope, gradient)
    one = r(:, 1) - r(:, 2)
    two = r(:, 4) - r(:, 3)
    length = max([norm2(one), norm2(two)], tiny_length)
    one = one/length(1)
    two = two/length(2)
    cosine = dot_product(one, two)
    call window(acos(max(-largest_cosine, min(largest_cosine, cosine))) - parameter(3), parameter(6), w3, w3_slope)
    energy = w3*w*attraction
    f = 0.0_real64
    f(:, [1, 2, 5]) = -w3*attraction*w_slope*gradient
    if (abs(cosine) < largest_cosine) then
      w3_slope = w*attraction*w3_slope/sqrt(1.0_real64 - cosine**2)
      one = w3_slope*(two - cosine*one)/length(1)
      two = w3_slope*((r(:, 1) - r(:, 2))/length(1) - cosine*two)/length(2)
      f(:, 1) = f(:, 1) + one
      f(:, 2) = f(:, 2) - one
      f(:, 4) = f(:, 4) + two
      f(:, 3) = f(:, 3) - two
    end if
    f(:, 5) = f(:, 5) - w3*w*slopes(2)*along
    f(:, 2) = f(:, 2) + w3*w*slopes(2)*along
  end subroutine cross_stacking

  !> Both branches of a Morse well of the vector `to`, their slopes along it, and its direction: epsilon u^2 nearer than r0,
  !> and epsilon u^2 - epsilon beyond, with u = 1 - exp(-alpha (r - r0)); inside r0 the attraction is -epsilon.
  pure subroutine morse(to, epsilon, r0, alpha, repulsion, attraction, slopes, along)
    real(real64), intent(in) :: to(3), epsilon, r0, alpha
    real(real64), intent(out) :: repulsion, attraction, slopes(2), along(3)
    real(real64) :: length, fall
    length = max(norm2(to), tiny_length)
    along = to/length
    fall = exp(-alpha*(length - r0))
    repulsion = 0.0_real64
    attraction = -epsilon
    slopes = 0.0_real64
    if (length < r0) then
      repulsion = epsilon*(1.0_real64 - fall)**2
      slopes(1) = 2.0_real64*epsilon*alpha*fall*(1.0_real64 - fall)
    else
      attraction = epsilon*(1.0_real64 - fall)**2 - epsilon
      slopes(2) = 2.0_real64*epsilon*alpha*fall*(1.0_real64 - fall)
    end if
  end subroutine morse

  !> Factor of the angle of three atoms, its slope by the angle, and the gradient of the angle.
  pure subroutine bend(r, theta0, sharpness, w, slope, gradient)
    real(real64), intent(in) :: r(3, 3), theta0, sharpness
    real(real64), intent(out) :: w, slope, gradient(3, 3)
    real(real64) :: a(3), b(3), n(3), sine
    a = r(:, 1) - r(:, 2)
    b = r(:, 3) - r(:, 2)
    n = cross(a, b)
    sine = norm2(n)
    call window(atan2(sine, dot_product(a, b)) - theta0, sharpness, w, slope)
    n = n/max(sine, tiny_length)
    gradient(:, 1) = cross(a, n)/max(dot_product(a, a), tiny_length2)
    gradient(:, 3) = cross(n, b)/max(dot_product(b, b), tiny_length2)
    gradient(:, 2) = -gradient(:, 1) - gradient(:, 3)
  end subroutine bend

  !> Factor of a deviation (radian), and its slope.
  pure subroutine window(deviation, sharpness, w, slope)
    real(real64), intent(in) :: deviation, sharpness
    real(real64), intent(out) :: w, slope
    real(real64) :: x
    x = sharpness*deviation
    w = 0.0_real64
    slope = 0.0_real64
    if (abs(x) < 0.5_real64*pi) then
      w = 1.0_real64
    else if (abs(x) < pi) then
      w = 1.0_real64 - cos(x)**2
      slope = sharpness*sin(2.0_real64*x)
    end if
  end subroutine window

end module base_terms
