!> What the loops over pairs need to know of the types of atoms, in the kind of the pair arithmetic.
module atom_types
  use base_kinds, only: real64
  use lennard_jones, only: lennard_jones_t
  use pair_precision, only: real_pair
  implicit none
  private
  public :: atom_types_t

  type :: atom_types_t
    !> One more type than given: the last does not interact and belongs to pads.
    integer :: n = 0
    !> Whether some pairs need pair matrices, the others Lorentz-Berthelot parameters of the atoms; and which types have
    !> such pairs with each other.
    logical :: by_matrix = .false.
    logical, allocatable :: is_special(:)
    !> Pair matrices (n*n), kcal/mol angstrom^6 and angstrom^12; half of sigma (angstrom), twice the root of epsilon
    !> (kcal/mol).
    real(real_pair), allocatable :: c6(:), c12(:), half_sigma(:), twice_root_epsilon(:)
    !> Does the type have Lennard-Jones terms with any other?
    logical, allocatable :: interacts(:)
    !> Root of c6 for the dispersion in reciprocal space, without the type of pads.
    real(real64), allocatable :: root_c6(:)
    !> kcal angstrom/mol/e^2.
    real(real64) :: coulomb_constant = 0.0_real64
  contains
    procedure :: init
  end type atom_types_t

contains

  !> `coulomb_constant`: kcal angstrom/mol/e^2.
  subroutine init(self, lj, coulomb_constant)
    class(atom_types_t), intent(out) :: self
    type(lennard_jones_t), intent(in) :: lj
    real(real64), intent(in) :: coulomb_constant
    integer :: a, n

    self%coulomb_constant = coulomb_constant
    self%is_special = [lj%breaks_rule(), .false.]
    self%by_matrix = any(self%is_special)
    n = size(lj%sigma)
    self%n = n + 1
    allocate (self%c6(self%n**2), self%c12(self%n**2), source=0.0_real_pair)
    do a = 1, n
      self%c6((a - 1)*self%n + 1:(a - 1)*self%n + n) = real(lj%c6(:, a), real_pair)
      self%c12((a - 1)*self%n + 1:(a - 1)*self%n + n) = real(lj%c12(:, a), real_pair)
    end do
    self%root_c6 = lj%root_c6()
    self%interacts = [any(abs(lj%c6) > 0.0_real64, dim=1) .or. any(abs(lj%c12) > 0.0_real64, dim=1), .false.]
    self%half_sigma = real([0.5_real64*lj%sigma, 0.5_real64], real_pair)
    self%twice_root_epsilon = real([2.0_real64*sqrt(lj%epsilon), 0.0_real64], real_pair)
  end subroutine init

end module atom_types
