!> [GAMD]: boosts of Gaussian accelerated dynamics, as typed values. The potential energy comes first in arrays of two, that
!> of torsions second.
module boost_settings
  use base_kinds, only: int64, real64
  implicit none
  private
  public :: boost_settings_t, highest, lowest, mean, deviation

  !> Places in `known`.
  integer, parameter :: highest = 1, lowest = 2, mean = 3, deviation = 4

  type :: boost_settings_t
    logical :: is_on = .false.
    !> It acts, or energies are only watched.
    logical :: acts = .true.
    !> Which of the two energies are boosted.
    logical :: of(2) = .false.
    !> The threshold is as high as may be, instead of the highest energy.
    logical :: is_upper = .false.
    !> Largest deviation of each boost, kcal/mol.
    real(real64) :: largest_deviation(2) = 0.0_real64
    !> What earlier runs say of both energies (kcal/mol); the highest is below the lowest where nothing is known.
    real(real64) :: known(4, 2) = 0.0_real64
    !> Steps between new values of these, 0 = they stay.
    integer(int64) :: period = 0
    !> Where new values are written.
    character(len=:), allocatable :: file
  end type boost_settings_t

end module boost_settings
