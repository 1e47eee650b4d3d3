!> How far atoms moved since a moment, by six bytes an atom. Each axis is cut into parts, and of the number of the part
!> in which an atom stands the last 16 bits are kept: they tell displacements of up to half of 2^16 parts, each to one
!> part.
module coarse_place
  use, intrinsic :: iso_fortran_env, only: int16
  use precision, only: int64, real64
  implicit none
  private
  public :: int16, n_places, note_places, measure_moves

  integer, parameter :: n_places = 2**16
  !> Farther away there are no atoms (angstrom), and the square of a displacement that stands for it.
  real(real64), parameter :: astray = 1.0e9_real64, astray2 = 1.0e18_real64

contains

  !> Note where atoms are; `density`: parts in an angstrom along each axis.
  subroutine note_places(position, density, place)
    real(real64), intent(in) :: position(:, :), density(3)
    integer(int16), intent(out) :: place(:, :)
    integer :: i
    !$omp parallel do schedule(static)
    do i = 1, size(place, 2)
      place(:, i) = place_in(density, position(:, i))
    end do
    !$omp end parallel do
  end subroutine note_places

  !> Square of the largest displacement (angstrom^2; 1e18 if an atom is nowhere), and along each axis the sum of the
  !> squares in parts^2, which is a whole number so that it has no order.
  subroutine measure_moves(position, density, place, farthest2, sum2)
    real(real64), intent(in) :: position(:, :), density(3)
    integer(int16), intent(in) :: place(:, :)
    real(real64), intent(out) :: farthest2
    integer(int64), intent(out) :: sum2(3)
    real(real64) :: unit(3), moved2
    integer(int64) :: change(3)
    integer :: i
    unit = 1.0_real64/density
    farthest2 = 0.0_real64
    sum2 = 0
    !$omp parallel do schedule(static) private(change, moved2) reduction(max: farthest2) reduction(+: sum2)
    do i = 1, size(place, 2)
      change = int(place_in(density, position(:, i)), int64) - place(:, i)
      ! Beyond half of the range it was the other way.
      change = change - n_places*(change/(n_places/2))
      moved2 = sum((unit*real(change, real64))**2)
      if (.not. sum(abs(position(:, i))) < astray) moved2 = astray2
      farthest2 = max(farthest2, moved2)
      sum2 = sum2 + change**2
    end do
    !$omp end parallel do
  end subroutine measure_moves

  !> Last bits of the number of a part; of a number made positive, which is one instruction.
  elemental integer(int16) function place_in(density, coordinate)
    real(real64), intent(in) :: density, coordinate
    real(real64), parameter :: above = 2.0_real64**40
    place_in = int(iand(int(coordinate*density + above, int64), n_places - 1_int64) - n_places/2, int16)
  end function place_in

end module coarse_place
