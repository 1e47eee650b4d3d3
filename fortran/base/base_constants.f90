!> Physical constants in the units of the engine: angstrom, kcal/mol, atomic mass unit, ps, kelvin.
module base_constants
  use base_kinds, only: real64
  implicit none
  private
  public :: pi, degree, boltzmann, acceleration_unit, atmosphere

  real(real64), parameter :: pi = 3.14159265358979323846_real64
  !> One degree in radian.
  real(real64), parameter :: degree = pi/180.0_real64
  !> kcal/mol/K: the exact SI value 8.31446261815324 J/mol/K over 4184.
  real(real64), parameter :: boltzmann = 8.31446261815324_real64/4184.0_real64
  !> angstrom/ps^2 per (kcal/mol/angstrom)/u: 1 kcal/mol = 4184 J/mol = 418.4 u angstrom^2/ps^2.
  real(real64), parameter :: acceleration_unit = 418.4_real64
  !> kcal/mol/angstrom^3 in one atmosphere (101325 Pa).
  real(real64), parameter :: atmosphere = 101325.0_real64*6.02214076e23_real64/4184.0_real64*1.0e-30_real64

end module base_constants
