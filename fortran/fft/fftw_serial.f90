!> One-dimensional Fourier transforms of many lines through the C interface of FFTW, in either precision. Another
!> library with the same three plans could stand here. Plans are made once; `execute` may be called from several
!> threads on different arrays, aligned or not. Plans are estimated, not measured: a measured plan may differ from run
!> to run, and with it the last bits of the result.
module fftw_serial
  use, intrinsic :: iso_c_binding, only: c_associated, c_int, c_null_ptr, c_ptr
  implicit none
  private
  public :: line_transform_t, forward, backward

  !> Sign of the exponent.
  integer, parameter :: forward = -1, backward = 1
  !> FFTW_ESTIMATE + FFTW_UNALIGNED.
  integer(c_int), parameter :: flags = 64 + 2

  integer, parameter :: complex_to_complex = 1, real_to_complex = 2, complex_to_real = 3

  !> Transforms of a set of lines in one call.
  type :: line_transform_t
    private
    type(c_ptr) :: plan = c_null_ptr
    integer :: what = 0
    logical :: single = .false.
  contains
    procedure :: plan_complex
    procedure :: plan_to_complex
    procedure :: plan_to_real
    procedure :: execute
    procedure :: destroy
  end type line_transform_t

  interface
    function fftw_plan_many_dft(rank, n, howmany, input, inembed, istride, idist, output, onembed, ostride, odist, &
                                 sign, flags) bind(c) result(plan)
      import :: c_int, c_ptr
      integer(c_int), value :: rank, howmany, istride, idist, ostride, odist, sign, flags
      integer(c_int), intent(in) :: n(*), inembed(*), onembed(*)
      type(c_ptr), value :: input, output
      type(c_ptr) :: plan
    end function fftw_plan_many_dft
    function fftw_plan_many_dft_r2c(rank, n, howmany, input, inembed, istride, idist, output, onembed, ostride, odist, &
                                 flags) bind(c) result(plan)
      import :: c_int, c_ptr
      integer(c_int), value :: rank, howmany, istride, idist, ostride, odist, flags
      integer(c_int), intent(in) :: n(*), inembed(*), onembed(*)
      type(c_ptr), value :: input, output
      type(c_ptr) :: plan
    end function fftw_plan_many_dft_r2c
    function fftw_plan_many_dft_c2r(rank, n, howmany, input, inembed, istride, idist, output, onembed, ostride, odist, &
                                 flags) bind(c) result(plan)
      import :: c_int, c_ptr
      integer(c_int), value :: rank, howmany, istride, idist, ostride, odist, flags
      integer(c_int), intent(in) :: n(*), inembed(*), onembed(*)
      type(c_ptr), value :: input, output
      type(c_ptr) :: plan
    end function fftw_plan_many_dft_c2r
    subroutine fftw_execute_dft(plan, input, output) bind(c)
      import :: c_ptr
      type(c_ptr), value :: plan, input, output
    end subroutine fftw_execute_dft
    subroutine fftw_execute_dft_r2c(plan, input, output) bind(c)
      import :: c_ptr
      type(c_ptr), value :: plan, input, output
    end subroutine fftw_execute_dft_r2c
    subroutine fftw_execute_dft_c2r(plan, input, output) bind(c)
      import :: c_ptr
      type(c_ptr), value :: plan, input, output
    end subroutine fftw_execute_dft_c2r
    subroutine fftw_destroy_plan(plan) bind(c)
      import :: c_ptr
      type(c_ptr), value :: plan
    end subroutine fftw_destroy_plan
    function fftwf_plan_many_dft(rank, n, howmany, input, inembed, istride, idist, output, onembed, ostride, odist, &
                                 sign, flags) bind(c) result(plan)
      import :: c_int, c_ptr
      integer(c_int), value :: rank, howmany, istride, idist, ostride, odist, sign, flags
      integer(c_int), intent(in) :: n(*), inembed(*), onembed(*)
      type(c_ptr), value :: input, output
      type(c_ptr) :: plan
    end function fftwf_plan_many_dft
    function fftwf_plan_many_dft_r2c(rank, n, howmany, input, inembed, istride, idist, output, onembed, ostride, &
      odist, &
                                 flags) bind(c) result(plan)
      import :: c_int, c_ptr
      integer(c_int), value :: rank, howmany, istride, idist, ostride, odist, flags
      integer(c_int), intent(in) :: n(*), inembed(*), onembed(*)
      type(c_ptr), value :: input, output
      type(c_ptr) :: plan
    end function fftwf_plan_many_dft_r2c
    function fftwf_plan_many_dft_c2r(rank, n, howmany, input, inembed, istride, idist, output, onembed, ostride, &
      odist, &
                                 flags) bind(c) result(plan)
      import :: c_int, c_ptr
      integer(c_int), value :: rank, howmany, istride, idist, ostride, odist, flags
      integer(c_int), intent(in) :: n(*), inembed(*), onembed(*)
      type(c_ptr), value :: input, output
      type(c_ptr) :: plan
    end function fftwf_plan_many_dft_c2r
    subroutine fftwf_execute_dft(plan, input, output) bind(c)
      import :: c_ptr
      type(c_ptr), value :: plan, input, output
    end subroutine fftwf_execute_dft
    subroutine fftwf_execute_dft_r2c(plan, input, output) bind(c)
      import :: c_ptr
      type(c_ptr), value :: plan, input, output
    end subroutine fftwf_execute_dft_r2c
    subroutine fftwf_execute_dft_c2r(plan, input, output) bind(c)
      import :: c_ptr
      type(c_ptr), value :: plan, input, output
    end subroutine fftwf_execute_dft_c2r
    subroutine fftwf_destroy_plan(plan) bind(c)
      import :: c_ptr
      type(c_ptr), value :: plan
    end subroutine fftwf_destroy_plan
  end interface

contains

  !> Complex lines in place: element k of line l is number l*distance + k*stride of the array at `array`, counted from
  !> 0.
  subroutine plan_complex(self, single, n, n_lines, stride, distance, sign, array)
    class(line_transform_t), intent(inout) :: self
    logical, intent(in) :: single
    integer, intent(in) :: n, n_lines, stride, distance, sign
    type(c_ptr), intent(in) :: array
    call self%destroy()
    self%single = single
    self%what = complex_to_complex
    if (single) then
      self%plan = fftwf_plan_many_dft(1, [n], n_lines, array, [n], stride, distance, array, [n], stride, distance, &
        sign, &
                                      flags)
    else
      self%plan = fftw_plan_many_dft(1, [n], n_lines, array, [n], stride, distance, array, [n], stride, distance, &
        sign, &
                                     flags)
    end if
  end subroutine plan_complex

  !> Contiguous lines of n reals at `input` to n/2 + 1 complex numbers each at `output`.
  subroutine plan_to_complex(self, single, n, n_lines, input, output)
    class(line_transform_t), intent(inout) :: self
    logical, intent(in) :: single
    integer, intent(in) :: n, n_lines
    type(c_ptr), intent(in) :: input, output
    call self%destroy()
    self%single = single
    self%what = real_to_complex
    if (single) then
      self%plan = fftwf_plan_many_dft_r2c(1, [n], n_lines, input, [n], 1, n, output, [n/2 + 1], 1, n/2 + 1, flags)
    else
      self%plan = fftw_plan_many_dft_r2c(1, [n], n_lines, input, [n], 1, n, output, [n/2 + 1], 1, n/2 + 1, flags)
    end if
  end subroutine plan_to_complex

  !> The way back of `plan_to_complex`, not normalised; its execution destroys the input.
  subroutine plan_to_real(self, single, n, n_lines, input, output)
    class(line_transform_t), intent(inout) :: self
    logical, intent(in) :: single
    integer, intent(in) :: n, n_lines
    type(c_ptr), intent(in) :: input, output
    call self%destroy()
    self%single = single
    self%what = complex_to_real
    if (single) then
      self%plan = fftwf_plan_many_dft_c2r(1, [n], n_lines, input, [n/2 + 1], 1, n/2 + 1, output, [n], 1, n, flags)
    else
      self%plan = fftw_plan_many_dft_c2r(1, [n], n_lines, input, [n/2 + 1], 1, n/2 + 1, output, [n], 1, n, flags)
    end if
  end subroutine plan_to_real

  !> Transform the lines at `input` into `output` (the same for a plan in place).
  subroutine execute(self, input, output)
    class(line_transform_t), intent(in) :: self
    type(c_ptr), intent(in) :: input, output
    select case (self%what)
    case (complex_to_complex)
      if (self%single) then
        call fftwf_execute_dft(self%plan, input, output)
      else
        call fftw_execute_dft(self%plan, input, output)
      end if
    case (real_to_complex)
      if (self%single) then
        call fftwf_execute_dft_r2c(self%plan, input, output)
      else
        call fftw_execute_dft_r2c(self%plan, input, output)
      end if
    case (complex_to_real)
      if (self%single) then
        call fftwf_execute_dft_c2r(self%plan, input, output)
      else
        call fftw_execute_dft_c2r(self%plan, input, output)
      end if
    end select
  end subroutine execute

  subroutine destroy(self)
    class(line_transform_t), intent(inout) :: self
    if (.not. c_associated(self%plan)) return
    if (self%single) then
      call fftwf_destroy_plan(self%plan)
    else
      call fftw_destroy_plan(self%plan)
    end if
    self%plan = c_null_ptr
  end subroutine destroy

end module fftw_serial
