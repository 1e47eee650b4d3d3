!> Counter-based random numbers: Philox 4x32 with 10 rounds (Salmon, Moraes, Dror and Shaw, SC 2011). A number depends
!> only on its key and counter, never on who draws it or when.
module random_numbers
  use precision, only: int64, real64
  use constants, only: acceleration_unit, boltzmann, pi
  implicit none
  private
  public :: philox, maxwell_velocity

  integer(int64), parameter :: mask = int(z"FFFFFFFF", int64)

contains

  !> Four 32-bit numbers (held in 64 bits) for a 128-bit counter and a 64-bit key.
  pure function philox(counter, key) result(x)
    integer(int64), intent(in) :: counter(4), key(2)
    integer(int64) :: x(4), k(2), high(2), low(2)
    integer :: round
    x = iand(counter, mask)
    k = iand(key, mask)
    do round = 1, 10
      call multiply(int(z"D2511F53", int64), x(1), high(1), low(1))
      call multiply(int(z"CD9E8D57", int64), x(3), high(2), low(2))
      x = [ieor(ieor(high(2), x(2)), k(1)), low(2), ieor(ieor(high(1), x(4)), k(2)), low(1)]
      k = iand(k + [int(z"9E3779B9", int64), int(z"BB67AE85", int64)], mask)
    end do
  end function philox

  !> 32 x 32 -> 64 bit product in halves; by 16-bit parts so that nothing overflows a signed 64-bit number.
  pure subroutine multiply(a, b, high, low)
    integer(int64), intent(in) :: a, b
    integer(int64), intent(out) :: high, low
    integer(int64) :: lower, upper
    lower = a*iand(b, 65535_int64)
    upper = a*shiftr(b, 16) + shiftr(lower, 16)
    high = shiftr(upper, 16)
    low = ior(shiftl(iand(upper, 65535_int64), 16), iand(lower, 65535_int64))
  end subroutine multiply

  !> Velocity (angstrom/ps) of an atom from the Maxwell distribution, by Box and Muller's transformation.
  !> `mass` in atomic mass units, `temperature` in kelvin.
  pure function maxwell_velocity(seed, atom, mass, temperature) result(velocity)
    integer(int64), intent(in) :: seed, atom
    real(real64), intent(in) :: mass, temperature
    real(real64) :: velocity(3), uniform(4), radius(2)
    integer(int64) :: bits(4)
    bits = philox([atom, shiftr(atom, 32), 0_int64, 0_int64], [seed, shiftr(seed, 32)])
    uniform = (real(bits, real64) + 0.5_real64)/4294967296.0_real64
    radius = sqrt(-2.0_real64*log(uniform([1, 3])))
    velocity = [radius(1)*cos(2.0_real64*pi*uniform(2)), radius(1)*sin(2.0_real64*pi*uniform(2)), &
                radius(2)*cos(2.0_real64*pi*uniform(4))]*sqrt(boltzmann*temperature*acceleration_unit/mass)
  end function maxwell_velocity

end module random_numbers
