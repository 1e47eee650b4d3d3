!> The smallest box along the axes that holds atoms.
module bounding_box
  use base_kinds, only: real64
  implicit none
  private
  public :: find_bounds

contains

  !> Lowest and highest coordinates of `position(3, n)`; of no atoms the largest number and its negative.
  subroutine find_bounds(position, low, high)
    real(real64), intent(in) :: position(:, :)
    real(real64), intent(out) :: low(3), high(3)
    integer :: i

    low = huge(low)
    high = -huge(high)
    !$omp parallel do schedule(static) reduction(min: low) reduction(max: high)
    do i = 1, size(position, 2)
      low = min(low, position(:, i))
      high = max(high, position(:, i))
    end do
    !$omp end parallel do
  end subroutine find_bounds

end module bounding_box
