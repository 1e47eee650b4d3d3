!> Sums that do not depend on their order. In the deterministic mode every contribution to a force, an energy or a charge
!> on the grid is rounded to a multiple of a fixed power of two before it is added; sums of such numbers are exact while
!> they stay below 2^53 multiples, so that they have the same bits in any order, on any number of
!> ranks and threads. Positions are kept on a lattice of the same kind, box edges too, so that differences and periodic
!> shifts are exact and do not depend on the image in which a rank sees an atom.
!>
!> A number is rounded by adding 1.5*2^52 times the multiple and taking it away again. The constants of `rounding_t` are
!> those sums; where they are zero nothing is rounded, so that one expression serves both modes.
module base_fixed_point
  use base_kinds, only: int64, real64
  implicit none
  private
  public :: rounding_t, lattice_shifter

  real(real64), parameter :: shifter = 1.5_real64*2.0_real64**52
  !> 6e-8 kcal/mol/angstrom, exact up to 5e8; 1e-6 kcal/mol, exact up to 8e9.
  real(real64), parameter :: force_step = 2.0_real64**(-24), energy_step = 2.0_real64**(-20)

  type :: rounding_t
    real(real64) :: position = 0.0_real64, force = 0.0_real64, energy = 0.0_real64
  contains
    procedure :: switch_on
    procedure :: fit_box
    procedure :: is_on
    procedure :: on_lattice
    procedure :: for_sum
  end type rounding_t

contains

  !> Round from now on. `box`: edges, angstrom.
  subroutine switch_on(self, box)
    class(rounding_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    self%force = shifter*force_step
    self%energy = shifter*energy_step
    call self%fit_box(box)
  end subroutine switch_on

  !> Choose the lattice of the positions for another box (angstrom): the finest on which twice the box can be counted.
  subroutine fit_box(self, box)
    class(rounding_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    if (self%is_on()) self%position = lattice_shifter(box)
  end subroutine fit_box

  !> The constant that rounds to the lattice of the positions in a box (angstrom).
  pure real(real64) function lattice_shifter(box)
    real(real64), intent(in) :: box(3)
    lattice_shifter = shifter*2.0_real64**(exponent(maxval(box)) - 50)
  end function lattice_shifter

  pure logical function is_on(self)
    class(rounding_t), intent(in) :: self
    is_on = self%force > 0.0_real64
  end function is_on

  !> The nearest point of the lattice of the positions.
  elemental real(real64) function on_lattice(self, x)
    class(rounding_t), intent(in) :: self
    real(real64), intent(in) :: x
    on_lattice = (x + self%position) - self%position
  end function on_lattice

  !> The constant that rounds numbers of which none exceeds `largest` so that a sum of `n_terms` of them is exact: for sums
  !> whose size is not known beforehand. Zero, which rounds nothing, where the mode is off or numbers are infinite.
  elemental real(real64) function for_sum(self, largest, n_terms)
    class(rounding_t), intent(in) :: self
    real(real64), intent(in) :: largest
    integer(int64), intent(in) :: n_terms
    integer :: power
    for_sum = 0.0_real64
    if (.not. self%is_on() .or. .not. largest < huge(largest)) return
    power = exponent(largest) + exponent(real(n_terms, real64)) - 51
    if (power < maxexponent(largest) - 53) for_sum = shifter*2.0_real64**max(power, minexponent(largest))
  end function for_sum

end module base_fixed_point
