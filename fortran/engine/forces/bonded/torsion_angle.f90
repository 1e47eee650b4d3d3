!> The dihedral angle of four atoms and its gradient, after Blondel and Karplus, J. Comput. Chem. 17, 1132 (1996), without a
!> singularity where its sine is zero.
module torsion_angle
  use base_kinds, only: real64
  use base_vector, only: cross
  implicit none
  private
  public :: torsion, tiny_length, tiny_length2

  !> Keeps collinear or coincident atoms, which occur before minimisation, from dividing by zero.
  real(real64), parameter :: tiny_length2 = 1.0e-12_real64, tiny_length = 1.0e-6_real64

contains

  !> Dihedral angle of four atoms (IUPAC sign) and its gradient.
  pure subroutine torsion(r, phi, gradient)
    real(real64), intent(in) :: r(3, 4)
    real(real64), intent(out) :: phi, gradient(3, 4)
    real(real64) :: f(3), g(3), h(3), a(3), b(3), a2, b2, g_length, fg, hg
    f = r(:, 1) - r(:, 2)
    g = r(:, 2) - r(:, 3)
    h = r(:, 4) - r(:, 3)
    a = cross(f, g)
    b = cross(h, g)
    a2 = max(dot_product(a, a), tiny_length2)
    b2 = max(dot_product(b, b), tiny_length2)
    g_length = sqrt(max(dot_product(g, g), tiny_length2))
    phi = atan2(dot_product(cross(b, a), g)/g_length, dot_product(a, b))
    fg = dot_product(f, g)/(a2*g_length)
    hg = dot_product(h, g)/(b2*g_length)
    gradient(:, 1) = -g_length/a2*a
    gradient(:, 4) = g_length/b2*b
    gradient(:, 2) = -gradient(:, 1) + fg*a - hg*b
    gradient(:, 3) = -gradient(:, 4) - fg*a + hg*b
  end subroutine torsion

end module torsion_angle
