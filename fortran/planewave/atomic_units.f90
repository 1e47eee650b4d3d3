!> Atomic units (hbar = e = mass of the electron = 1) in those of the rest of the project. CODATA 2018.
module atomic_units
  use base_kinds, only: real64
  implicit none
  private
  public :: bohr, dalton, kelvin, time_unit, rydberg

  !> One bohr in angstrom.
  real(real64), parameter :: bohr = 0.529177210903_real64
  !> One unified atomic mass unit in masses of the electron.
  real(real64), parameter :: dalton = 1822.888486209_real64
  !> One kelvin in hartree.
  real(real64), parameter :: kelvin = 3.1668115634556e-6_real64
  !> One hbar/hartree in femtoseconds.
  real(real64), parameter :: time_unit = 0.024188843265857_real64
  !> One rydberg in hartree.
  real(real64), parameter :: rydberg = 0.5_real64

end module atomic_units
