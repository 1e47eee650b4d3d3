!> Lennard-Jones parameters of the atom types: pair matrices, and per-type values for the Lorentz-Berthelot rule.
module lennard_jones
  use base_kinds, only: real64
  use topology, only: topology_t
  implicit none
  private
  public :: lennard_jones_t, lennard_jones_of

  type :: lennard_jones_t
    !> E = c12/r^12 - c6/r^6 for each pair of types, special pairs (NBFIX) included; kcal/mol and angstrom.
    real(real64), allocatable :: c6(:, :), c12(:, :)
    !> Of each type: sigma (angstrom), epsilon (kcal/mol).
    real(real64), allocatable :: sigma(:), epsilon(:)
  contains
    procedure :: breaks_rule
    procedure :: root_c6
  end type lennard_jones_t

contains

  !> Those of a topology's atom types.
  pure function lennard_jones_of(topology) result(lj)
    type(topology_t), intent(in) :: topology
    type(lennard_jones_t) :: lj
    allocate (lj%c6, source=topology%c6)
    allocate (lj%c12, source=topology%c12)
    allocate (lj%sigma, source=topology%sigma)
    allocate (lj%epsilon, source=topology%epsilon)
  end function lennard_jones_of

  !> Of each type: does it have a pair (NBFIX) that is not what the Lorentz-Berthelot rule makes of sigma and epsilon (to
  !> 1e-6)? Pairs of which one type has none obey the rule.
  pure function breaks_rule(self)
    class(lennard_jones_t), intent(in) :: self
    logical :: breaks_rule(size(self%sigma))
    real(real64), parameter :: tolerance = 1.0e-6_real64
    real(real64) :: sigma, c6, c12
    integer :: a, b
    breaks_rule = .false.
    do b = 1, size(self%sigma)
      do a = 1, size(self%sigma)
        sigma = 0.5_real64*(self%sigma(a) + self%sigma(b))
        c6 = 4.0_real64*sqrt(self%epsilon(a)*self%epsilon(b))*sigma**6
        c12 = c6*sigma**6
        if (abs(self%c6(a, b) - c6) > tolerance*c6 .or. abs(self%c12(a, b) - c12) > tolerance*c12) &
          breaks_rule([a, b]) = .true.
      end do
    end do
  end function breaks_rule

  !> Of each type: root of the c6 with itself, from sigma and epsilon, in (kcal/mol)^(1/2) angstrom^3. Ewald summation of
  !> the dispersion multiplies these, whatever the rule within the cutoff.
  pure function root_c6(self)
    class(lennard_jones_t), intent(in) :: self
    real(real64) :: root_c6(size(self%sigma))
    root_c6 = 2.0_real64*sqrt(self%epsilon)*self%sigma**3
  end function root_c6

end module lennard_jones
