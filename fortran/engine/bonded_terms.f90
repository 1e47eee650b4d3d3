!> Energy and forces of single bonded terms. Formulas as in docs/formats.md section 5; dihedral gradients after Blondel
!> and Karplus, J. Comput. Chem. 17, 1132 (1996), which have no singularity where sin(phi) = 0.
module bonded_terms
  use precision, only: real64
  use constants, only: pi
  use term_list, only: is_angle, is_bond, is_dihedral, is_improper, is_urey_bradley
  implicit none
  private
  public :: sum_terms, cross

  !> Keeps collinear or coincident atoms, which occur before minimisation, from dividing by zero.
  real(real64), parameter :: tiny_length2 = 1.0e-12_real64

contains

  !> Terms of one kind, each of `width` atoms: the forces on their atoms in the order of the terms, the summed energies
  !> (of 1-4 pairs: Lennard-Jones, Coulomb) and the virial. The loops stand beside the terms so that these are inlined.
  pure subroutine sum_terms(kind, width, n, atom, parameter, position, term_force, energy, virial)
    integer, intent(in) :: kind, width, n, atom(width, n)
    real(real64), intent(in) :: parameter(3, n), position(3, *)
    real(real64), intent(inout) :: term_force(3, width, n)
    real(real64), intent(out) :: energy(2), virial(3, 3)
    real(real64) :: e(2), r(3, 4)
    integer :: t, k, axis
    energy = 0.0_real64
    virial = 0.0_real64
    do t = 1, n
      do k = 1, width
        r(:, k) = position(:, atom(k, t))
      end do
      e(2) = 0.0_real64
      select case (kind)
      case (is_bond, is_urey_bradley)
        call bond(r, parameter(:, t), term_force(:, :, t), e(1))
      case (is_angle)
        call angle(r, parameter(:, t), term_force(:, :, t), e(1))
      case (is_dihedral)
        call dihedral(r, parameter(:, t), term_force(:, :, t), e(1))
      case (is_improper)
        call improper(r, parameter(:, t), term_force(:, :, t), e(1))
      case default
        call pair14(r, parameter(:, t), term_force(:, :, t), e(1), e(2))
      end select
      energy = energy + e
      do k = 2, width
        do axis = 1, 3
          virial(:, axis) = virial(:, axis) + (r(:, k) - r(:, 1))*term_force(axis, k, t)
        end do
      end do
    end do
  end subroutine sum_terms

  pure function cross(a, b) result(c)
    real(real64), intent(in) :: a(3), b(3)
    real(real64) :: c(3)
    c = [a(2)*b(3) - a(3)*b(2), a(3)*b(1) - a(1)*b(3), a(1)*b(2) - a(2)*b(1)]
  end function cross

  !> k (r - r0)^2 between two atoms. `parameter` = k, r0.
  pure subroutine bond(r, parameter, f, energy)
    real(real64), intent(in) :: r(3, 2), parameter(3)
    real(real64), intent(out) :: f(3, 2), energy
    real(real64) :: d(3), length, stretch
    d = r(:, 1) - r(:, 2)
    length = sqrt(max(dot_product(d, d), tiny_length2))
    stretch = length - parameter(2)
    energy = parameter(1)*stretch**2
    f(:, 1) = -2.0_real64*parameter(1)*stretch/length*d
    f(:, 2) = -f(:, 1)
  end subroutine bond

  !> k (theta - theta0)^2. `parameter` = k, theta0 (radian).
  pure subroutine angle(r, parameter, f, energy)
    real(real64), intent(in) :: r(3, 3), parameter(3)
    real(real64), intent(out) :: f(3, 3), energy
    real(real64) :: a(3), b(3), n(3), sine, theta, slope
    a = r(:, 1) - r(:, 2)
    b = r(:, 3) - r(:, 2)
    n = cross(a, b)
    sine = sqrt(max(dot_product(n, n), tiny_length2))
    theta = atan2(norm2(n), dot_product(a, b))
    energy = parameter(1)*(theta - parameter(2))**2
    slope = 2.0_real64*parameter(1)*(theta - parameter(2))/sine
    f(:, 1) = -slope/max(dot_product(a, a), tiny_length2)*cross(a, n)
    f(:, 3) = -slope/max(dot_product(b, b), tiny_length2)*cross(n, b)
    f(:, 2) = -f(:, 1) - f(:, 3)
  end subroutine angle

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

  !> k (1 + cos(n phi - phase)). `parameter` = k, n, phase (radian).
  pure subroutine dihedral(r, parameter, f, energy)
    real(real64), intent(in) :: r(3, 4), parameter(3)
    real(real64), intent(out) :: f(3, 4), energy
    real(real64) :: phi, argument
    call torsion(r, phi, f)
    argument = parameter(2)*phi - parameter(3)
    energy = parameter(1)*(1.0_real64 + cos(argument))
    f = parameter(1)*parameter(2)*sin(argument)*f
  end subroutine dihedral

  !> k (psi - psi0)^2 with the difference taken around the circle. `parameter` = k, psi0 (radian).
  pure subroutine improper(r, parameter, f, energy)
    real(real64), intent(in) :: r(3, 4), parameter(3)
    real(real64), intent(out) :: f(3, 4), energy
    real(real64) :: psi, difference
    call torsion(r, psi, f)
    difference = psi - parameter(2)
    difference = difference - 2.0_real64*pi*anint(difference/(2.0_real64*pi))
    energy = parameter(1)*difference**2
    f = -2.0_real64*parameter(1)*difference*f
  end subroutine improper

  !> Plain Coulomb and Lennard-Jones of a 1-4 pair. `parameter` = charge product times the Coulomb constant, sigma,
  !> epsilon.
  pure subroutine pair14(r, parameter, f, energy_lj, energy_elec)
    real(real64), intent(in) :: r(3, 2), parameter(3)
    real(real64), intent(out) :: f(3, 2), energy_lj, energy_elec
    real(real64) :: d(3), r2, s6
    d = r(:, 1) - r(:, 2)
    r2 = max(dot_product(d, d), tiny_length2)
    s6 = (parameter(2)**2/r2)**3
    energy_lj = 4.0_real64*parameter(3)*(s6*s6 - s6)
    energy_elec = parameter(1)/sqrt(r2)
    f(:, 1) = (energy_elec + 24.0_real64*parameter(3)*(2.0_real64*s6*s6 - s6))/r2*d
    f(:, 2) = -f(:, 1)
  end subroutine pair14

end module bonded_terms
