module debye_hueckel
  use, intrinsic :: iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: count_close
contains
  subroutine count_close(n, position, cutoff, count)
    integer(int32), intent(in) :: n
    real(real64), intent(in) :: position(3, n), cutoff
    integer(int32), intent(out) :: count
    integer(int32) :: i
    count = 0
    do i = 1, n
      if (norm2(position(:, i)) < cutoff) count = count + 1
    end do
  end subroutine count_close
end module debye_hueckel
