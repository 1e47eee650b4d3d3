!> Pistons of a barostat: each strains one or several axes of the box.
module pistons
  use base_kinds, only: real64
  implicit none
  private
  public :: pistons_t

  type :: pistons_t
    !> Piston of each axis, counted from 1; 0 = the axis is fixed.
    integer :: of_axis(3) = 0
    !> Rate of strain of each axis (1/ps), equal for axes of one piston.
    real(real64) :: rate(3) = 0.0_real64
  contains
    procedure :: number
    procedure :: take_rates
    procedure :: kinetic_energy
  end type pistons_t

contains

  pure integer function number(self)
    class(pistons_t), intent(in) :: self
    number = maxval(self%of_axis)
  end function number

  !> Go on with rates of strain (1/ps) of an earlier run, whose pistons may have been others: axes of one piston get the
  !> mean of theirs, which keeps the rate of its part of the volume, and axes without a piston stay fixed.
  pure subroutine take_rates(self, rate)
    class(pistons_t), intent(inout) :: self
    real(real64), intent(in) :: rate(3)
    real(real64) :: mean
    integer :: p
    self%rate = 0.0_real64
    do p = 1, self%number()
      mean = sum(rate, mask=self%of_axis == p)/count(self%of_axis == p)
      ! Equal ones keep their bits.
      if (maxval(rate, mask=self%of_axis == p) <= minval(rate, mask=self%of_axis == p)) &
        mean = maxval(rate, mask=self%of_axis == p)
      where (self%of_axis == p) self%rate = mean
    end do
  end subroutine take_rates

  !> Kinetic energy, kcal/mol. `mass`: inertia of each piston, kcal/mol ps^2.
  pure real(real64) function kinetic_energy(self, mass) result(energy)
    class(pistons_t), intent(in) :: self
    real(real64), intent(in) :: mass(:)
    integer :: p
    energy = 0.0_real64
    do p = 1, size(mass)
      energy = energy + 0.5_real64*mass(p)*maxval(abs(self%rate), mask=self%of_axis == p)**2
    end do
  end function kinetic_energy

end module pistons
