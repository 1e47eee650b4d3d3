!> How far atoms moved since a moment, by six bytes an atom. Each axis is cut into parts, and of the number of the part
!> nearest to an atom the last 16 bits are kept: they tell displacements of up to half of 2^16 parts, each to one part.
!>
!> Numbers of parts are whole numbers kept as real64, which processors convert and round by vectors, as they do not integers.
module coarse_place
  use, intrinsic :: iso_fortran_env, only: int16
  use base_kinds, only: int64, real64
  implicit none
  private
  public :: int16, place_record_t, note_places, measure_moves

  integer, parameter :: n_places = 2**16
  !> So far away (angstrom, sums of coordinates) there are no atoms, and the square of a displacement that stands for it.
  real(real64), parameter :: astray = 1.0e11_real64, astray2 = 1.0e18_real64
  !> Atoms whose squares (below 2^30 each) are summed before they are made integers, so that sums are exact.
  integer, parameter :: summed_together = 2048

  !> Parts of the box are at most this long (angstrom), and at least 2^16 of them: images of an atom have the same parts.
  real(real64), parameter :: longest_part = 2.0_real64**(-10)

  !> Where atoms were at a moment, in parts of the box, which may change since.
  type :: place_record_t
    private
    integer(int16), allocatable :: place(:, :)
    real(real64) :: parts(3) = 0.0_real64
  contains
    procedure :: note
    procedure :: measure
  end type place_record_t

contains

  !> Note where the atoms are (angstrom; 3, atoms) in a box with these edges (angstrom).
  subroutine note(self, position, box)
    class(place_record_t), intent(inout) :: self
    real(real64), intent(in) :: position(:, :), box(3)
    if (allocated(self%place)) deallocate (self%place)
    allocate (self%place(3, size(position, 2)))
    self%parts = max(real(n_places, real64), 2.0_real64**exponent(box/longest_part))
    call note_places(position, self%parts/box, self%place)
  end subroutine note

  !> Square of the largest displacement since then (angstrom^2; 1e18 if an atom is nowhere); along each axis the sum of the
  !> squares in parts^2, and what one of these is (angstrom^2).
  subroutine measure(self, position, box, farthest2, sum2, unit2)
    class(place_record_t), intent(in) :: self
    real(real64), contiguous, intent(in) :: position(:, :)
    real(real64), intent(in) :: box(3)
    real(real64), intent(out) :: farthest2, unit2(3)
    integer(int64), intent(out) :: sum2(3)
    call measure_moves(position, self%parts/box, self%place, farthest2, sum2)
    unit2 = (box/self%parts)**2
  end subroutine measure

  !> Note where atoms are, `position` (3, atoms; angstrom); `density`: parts in an angstrom along each axis.
  subroutine note_places(position, density, place)
    real(real64), intent(in) :: position(:, :), density(3)
    integer(int16), intent(out) :: place(:, :)
    real(real64) :: part(3)
    integer :: i
    !$omp parallel do schedule(static) private(part)
    do i = 1, size(place, 2)
      part = last_bits(nearest_whole(density*position(:, i)))
      place(:, i) = int(merge(part, -part, part < n_places/2), int16)
    end do
    !$omp end parallel do
  end subroutine note_places

  !> Square of the largest displacement (angstrom^2; 1e18 if an atom is nowhere), and along each axis the sum of the
  !> squares in parts^2, which is a whole number so that it has no order.
  subroutine measure_moves(position, density, place, farthest2, sum2)
    real(real64), contiguous, intent(in) :: position(:, :)
    real(real64), intent(in) :: density(3)
    integer(int16), contiguous, intent(in) :: place(:, :)
    real(real64), intent(out) :: farthest2
    integer(int64), intent(out) :: sum2(3)
    real(real64) :: unit2(3), x2, y2, z2, x2_sum, y2_sum, z2_sum, farthest, far
    integer :: i, first

    unit2 = density**(-2)
    farthest2 = 0.0_real64
    sum2 = 0
    !$omp parallel do schedule(static) private(i, x2, y2, z2, x2_sum, y2_sum, z2_sum, farthest, far) &
    !$omp& reduction(max: farthest2) reduction(+: sum2)
    do first = 1, size(place, 2), summed_together
      farthest = 0.0_real64
      far = 0.0_real64
      x2_sum = 0.0_real64
      y2_sum = 0.0_real64
      z2_sum = 0.0_real64
      !$omp simd private(x2, y2, z2) reduction(max: farthest) reduction(+: far, x2_sum, y2_sum, z2_sum)
      do i = first, min(size(place, 2), first + summed_together - 1)
        far = far + abs(position(1, i)) + abs(position(2, i)) + abs(position(3, i))
        x2 = last_bits(nearest_whole(density(1)*position(1, i)) - place(1, i))**2
        y2 = last_bits(nearest_whole(density(2)*position(2, i)) - place(2, i))**2
        z2 = last_bits(nearest_whole(density(3)*position(3, i)) - place(3, i))**2
        farthest = max(farthest, unit2(1)*x2 + unit2(2)*y2 + unit2(3)*z2)
        x2_sum = x2_sum + x2
        y2_sum = y2_sum + y2
        z2_sum = z2_sum + z2
      end do
      if (far < astray) then
        farthest2 = max(farthest2, farthest)
        sum2 = sum2 + int([x2_sum, y2_sum, z2_sum], int64)
      else
        farthest2 = astray2
      end if
    end do
    !$omp end parallel do
  end subroutine measure_moves

  !> Of the last 16 bits of a whole number the one number from -2^15 to 2^15 (each of these two stands for both).
  elemental real(real64) function last_bits(whole)
    real(real64), intent(in) :: whole
    last_bits = whole - n_places*nearest_whole(whole/n_places)
  end function last_bits

  !> The whole number nearest to one below 2^51: beyond 2^52 there are no others, and the difference is exact.
  elemental real(real64) function nearest_whole(number)
    real(real64), intent(in) :: number
    real(real64), parameter :: above = 1.5_real64*2.0_real64**52
    nearest_whole = (number + above) - above
  end function nearest_whole

end module coarse_place
