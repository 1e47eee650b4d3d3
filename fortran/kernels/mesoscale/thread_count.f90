!> How many threads the kernels of this package share their work among.
module thread_count
  use iso_fortran_env, only: int32
  use omp_lib, only: omp_set_num_threads
  implicit none
  private
  public :: set_threads

contains

  subroutine set_threads(n)
    integer(int32), intent(in) :: n
    call omp_set_num_threads(n)
  end subroutine set_threads

end module thread_count
