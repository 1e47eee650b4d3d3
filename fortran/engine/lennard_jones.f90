!> Lennard-Jones parameters of the atom types: pair matrices, and per-type values for the Lorentz-Berthelot rule.
module lennard_jones
  use precision, only: real64
  implicit none
  private
  public :: lennard_jones_t

  type :: lennard_jones_t
    !> E = c12/r^12 - c6/r^6 for each pair of types, special pairs (NBFIX) included; kcal/mol and angstrom.
    real(real64), allocatable :: c6(:, :), c12(:, :)
    !> Of each type: sigma (angstrom), epsilon (kcal/mol).
    real(real64), allocatable :: sigma(:), epsilon(:)
  contains
    procedure :: follows_lorentz_berthelot
    procedure :: root_c6
  end type lennard_jones_t

contains

  !> True if the matrices are what the Lorentz-Berthelot rule makes of sigma and epsilon (to 1e-6).
  pure logical function follows_lorentz_berthelot(self) result(follows)
    class(lennard_jones_t), intent(in) :: self
    real(real64), parameter :: tolerance = 1.0e-6_real64
    real(real64) :: sigma, c6, c12
    integer :: a, b
    follows = .true.
    do b = 1, size(self%sigma)
      do a = 1, size(self%sigma)
        sigma = 0.5_real64*(self%sigma(a) + self%sigma(b))
        c6 = 4.0_real64*sqrt(self%epsilon(a)*self%epsilon(b))*sigma**6
        c12 = c6*sigma**6
        if (abs(self%c6(a, b) - c6) > tolerance*c6 .or. abs(self%c12(a, b) - c12) > tolerance*c12) follows = .false.
      end do
    end do
  end function follows_lorentz_berthelot

  !> Of each type: root of the c6 with itself, from sigma and epsilon, in (kcal/mol)^(1/2) angstrom^3. Ewald summation of
  !> the dispersion multiplies these, whatever the rule within the cutoff.
  pure function root_c6(self)
    class(lennard_jones_t), intent(in) :: self
    real(real64) :: root_c6(size(self%sigma))
    root_c6 = 2.0_real64*sqrt(self%epsilon)*self%sigma**3
  end function root_c6

end module lennard_jones
