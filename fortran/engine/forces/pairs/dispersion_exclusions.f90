!> Excluded pairs under Ewald summation of the dispersion: reciprocal space holds -c c G/r^6 of them too (see
!> pair_parameters), which is taken back here. The same procedure serves every instruction set: such pairs are few.
module dispersion_exclusions
  use base_kinds, only: real64
  use pair_parameters, only: screened_dispersion, screened_dispersion_slope
  implicit none
  private
  public :: correct_dispersion

contains

  !> Row i (`row_first(i):row_first(i + 1) - 1` of `partner`) holds all excluded partners of atom i, so that every pair
  !> occurs twice: each row gives the force on its own atom (kcal/mol/angstrom) and half of the energy (kcal/mol).
  !> `root_c6`: of each atom, (kcal/mol)^(1/2) angstrom^3; `alpha`: screening, 1/angstrom.
  pure subroutine correct_dispersion(first_row, last_row, row_first, partner, position, root_c6, alpha, force, energy)
    integer, intent(in) :: first_row, last_row, row_first(:), partner(:)
    real(real64), intent(in) :: position(:, :), root_c6(:), alpha
    real(real64), intent(inout) :: force(:, :), energy
    real(real64) :: apart(3), y, product_c6
    integer :: i, j, k

    do i = first_row, last_row
      if (root_c6(i) <= 0.0_real64) cycle
      do k = row_first(i), row_first(i + 1) - 1
        j = partner(k)
        if (root_c6(j) <= 0.0_real64) cycle
        apart = position(:, i) - position(:, j)
        y = alpha**2*sum(apart**2)
        product_c6 = root_c6(i)*root_c6(j)
        energy = energy + 0.5_real64*product_c6*alpha**6*screened_dispersion(y)
        force(:, i) = force(:, i) + product_c6*alpha**8*screened_dispersion_slope(y)*apart
      end do
    end do
  end subroutine correct_dispersion

end module dispersion_exclusions
