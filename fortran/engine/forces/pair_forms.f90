!> Forms of the van der Waals energy of a pair near the cutoff, and those of GROMACS (GROMACS reference manual, "Modified
!> non-bonded interactions"), which GENESIS has for its files: a switch of the energy that is quintic in r, and a force that
!> a cubic polynomial beyond the switch distance shifts to zero.
module pair_forms
  use base_kinds, only: real64
  implicit none
  private
  public :: quintic_switch, quintic_slope, force_shift, has_formula

  !> vdw_shift is a shift of the energy alone; vdw_repulsive is Lennard-Jones within its minimum, less its depth (Weeks, Chandler
  !> and Andersen, J. Chem. Phys. 54, 5237 (1971)).
  integer, parameter, public :: vdw_cut = 0, vdw_switch = 1, vdw_shift = 2, vdw_force_switch = 3, vdw_pme = 4, &
                                vdw_quintic_switch = 5, vdw_force_shift = 6, vdw_repulsive = 7

contains

  !> Whether the loops over pairs have a formula for a form; others are looked up in tables.
  pure logical function has_formula(form)
    integer, intent(in) :: form
    has_formula = form /= vdw_quintic_switch .and. form /= vdw_force_shift
  end function has_formula

  !> 1 - 10 u^3 + 15 u^4 - 6 u^5, u being how much of the way from the switch distance to the cutoff is done.
  elemental real(real64) function quintic_switch(u) result(value)
    real(real64), intent(in) :: u
    value = 1.0_real64
    if (u > 0.0_real64) value = 1.0_real64 - u**3*(10.0_real64 - u*(15.0_real64 - 6.0_real64*u))
  end function quintic_switch

  !> Its slope in u.
  elemental real(real64) function quintic_slope(u) result(value)
    real(real64), intent(in) :: u
    value = 0.0_real64
    if (u > 0.0_real64) value = -30.0_real64*(u*(1.0_real64 - u))**2
  end function quintic_slope

  !> What is added to r^-n and to the force n/r^(n+1): energy and force that are zero at the cutoff, the force with its
  !> slope. Distances in angstrom.
  pure subroutine force_shift(n, on, off, r, energy, force)
    integer, intent(in) :: n
    real(real64), intent(in) :: on, off, r
    real(real64), intent(out) :: energy, force
    real(real64) :: square, cube, at_cutoff, x
    ! Of -n (square x^2 + cube x^3), x = r - on.
    square = ((n + 4)*off - (n + 1)*on)/(off**(n + 2)*(off - on)**2)
    cube = -((n + 3)*off - (n + 1)*on)/(off**(n + 2)*(off - on)**3)
    at_cutoff = off**(-n) + n*(square*(off - on)**3/3.0_real64 + cube*(off - on)**4/4.0_real64)
    x = max(0.0_real64, r - on)
    force = -n*(square*x**2 + cube*x**3)
    energy = n*(square*x**3/3.0_real64 + cube*x**4/4.0_real64) - at_cutoff
  end subroutine force_shift

end module pair_forms
