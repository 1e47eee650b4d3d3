!> Tables of the pair interaction over the inverse squared distance, in place of its formulas: points k at
!> x = density cutoff^2/r^2 = k, so that they lie dense where energies are steep (Jung et al., J. Comput. Chem. 34, 2412
!> (2013)). The energy of a pair is qq T_1(x) + c12 T_2(x) - c6 T_3(x), and its force over the distance likewise; screening,
!> switch and shift are in the tables.
!>
!> Between points values are interpolated linearly, or by the cubic Hermite polynomial of values and slopes. Points follow
!> each other with the three interactions side by side: 3 numbers a point, or 6 with the slope behind each value.
module pair_table
  use base_kinds, only: real64
  use pair_precision, only: real_pair
  use base_constants, only: pi
  use base_error, only: error_t, exit_bad_input, fail
  use pair_forms, only: force_shift, quintic_slope, quintic_switch, vdw_force_shift, vdw_force_switch, vdw_pme, &
                        vdw_quintic_switch, vdw_shift, vdw_switch
  use pair_parameters, only: pair_parameters_t
  implicit none
  private
  public :: tabulate, linear_table, cubic_table

  !> Values of `table_order`.
  integer, parameter :: linear_table = 1, cubic_table = 3
  !> A table larger than the caches serves nobody.
  real(real64), parameter :: most_points = 1.0e7_real64

contains

  !> Put tables into `pair`, which is prepared. `switch_distance` in angstrom; `density`: number of points beyond those
  !> within the cutoff. Fails when the form of the energy has no table or the table would be too large.
  subroutine tabulate(pair, switch_distance, order, density, error)
    type(pair_parameters_t), intent(inout) :: pair
    real(real64), intent(in) :: switch_distance, density
    integer, intent(in) :: order
    type(error_t), allocatable, intent(out) :: error
    ! Step of the differences, as a share of x.
    real(real64), parameter :: step = 1.0e-3_real64
    real(real64) :: scale, value(6), slope(6)
    integer :: k, last, n
    character(len=160) :: message

    if (pair%vdw_form == vdw_pme) then
      call fail(error, exit_bad_input, "there is no table of the dispersion of vdw = PME: give table = NO")
      return
    end if
    scale = density*pair%cutoff**2
    if (scale/real(pair%closest2, real64) > most_points) then
      write (message, "(a,f0.1,a)") "a table of ", 1.0e-6_real64*scale/real(pair%closest2, real64), &
        " million points is too large: lower table_density or cutoffdist, or give table = NO"
      call fail(error, exit_bad_input, trim(message))
      return
    end if
    n = merge(2, 1, order == cubic_table)
    ! One more point than the clamp needs, for the rounding of x.
    last = int(scale/real(pair%closest2, real64)) + 2
    if (allocated(pair%table_force)) deallocate (pair%table_force, pair%table_energy)
    allocate (pair%table_force(0:3*n*(last + 1) - 1), pair%table_energy(0:3*n*(last + 1) - 1), source=0.0_real_pair)
    do k = int(density), last
      value = interaction(pair, switch_distance, scale/k)
      pair%table_energy(3*n*k:3*n*(k + 1) - n:n) = real(value(:3), real_pair)
      pair%table_force(3*n*k:3*n*(k + 1) - n:n) = real(value(4:), real_pair)
      if (order /= cubic_table) cycle
      slope = (8.0_real64*(at(1.0_real64) - at(-1.0_real64)) - (at(2.0_real64) - at(-2.0_real64)))/(12.0_real64*step*k)
      pair%table_energy(6*k + 1:6*k + 5:2) = real(slope(:3), real_pair)
      pair%table_force(6*k + 1:6*k + 5:2) = real(slope(4:), real_pair)
    end do
    pair%table_order = order
    pair%table_scale = real(scale, real_pair)

  contains

    pure function at(steps) result(values)
      real(real64), intent(in) :: steps
      real(real64) :: values(6)
      values = interaction(pair, switch_distance, scale/(k*(1.0_real64 + steps*step)))
    end function at
  end subroutine tabulate

  !> Energies of a pair with qq = c12 = 1, c6 = -1 (Coulomb, r^-12, r^-6) and its forces over the distance, beyond the
  !> cutoff as the formulas go on.
  pure function interaction(pair, switch_distance, r2) result(value)
    type(pair_parameters_t), intent(in) :: pair
    real(real64), intent(in) :: switch_distance, r2
    real(real64) :: value(6)
    real(real64) :: r, power(2), on2, range, u, cutoff_power(2), on_power(2), factor(2), added
    real(real64), parameter :: exponents(2) = [12.0_real64, 6.0_real64]
    integer :: k

    r = sqrt(r2)
    power = [r2**(-6), r2**(-3)]
    value(1) = erfc(pair%alpha*r)/r
    value(4) = (value(1) + 2.0_real64*pair%alpha/sqrt(pi)*exp(-(pair%alpha*r)**2))/r2
    value(1) = value(1) - pair%coulomb_shift
    value(2:3) = power
    value(5:) = exponents*power/r2
    cutoff_power = [pair%cutoff**(-12), pair%cutoff**(-6)]
    select case (pair%vdw_form)
    case (vdw_switch)
      on2 = switch_distance**2
      range = pair%cutoff**2 - on2
      u = max(0.0_real64, r2 - on2)/range
      value(2:3) = (1.0_real64 - u*u*(3.0_real64 - 2.0_real64*u))*power
      value(5:) = exponents*value(2:3)/r2 + 12.0_real64*u*(1.0_real64 - u)/range*power
    case (vdw_shift)
      value(2:3) = power - cutoff_power
    case (vdw_quintic_switch)
      range = pair%cutoff - switch_distance
      u = (r - switch_distance)/range
      value(2:3) = quintic_switch(u)*power
      value(5:) = exponents*value(2:3)/r2 - quintic_slope(u)/range*power/r
    case (vdw_force_shift)
      do k = 1, 2
        call force_shift(nint(exponents(k)), switch_distance, pair%cutoff, r, value(k + 1), added)
        value(k + 1) = power(k) + value(k + 1)
        value(k + 4) = exponents(k)*power(k)/r2 + added/r
      end do
    case (vdw_force_switch)
      on_power = [switch_distance**(-12), switch_distance**(-6)]
      if (r2 <= switch_distance**2) then
        value(2:3) = power - sqrt(on_power*cutoff_power)
      else
        factor = 1.0_real64/(1.0_real64 - sqrt(cutoff_power/on_power))
        value(2:3) = factor*(sqrt(power) - sqrt(cutoff_power))**2
        value(5:) = exponents*factor*sqrt(power)*(sqrt(power) - sqrt(cutoff_power))/r2
      end if
    end select
  end function interaction

end module pair_table
