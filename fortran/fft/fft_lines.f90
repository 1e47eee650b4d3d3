!> One-dimensional Fourier transforms of many lines, by the kernels of line_kernel.c. Another library could stand here.
!> A plan may be executed by several threads at once on different lines. A line's result does not depend on the lines
!> beside it.
module fft_lines
  use, intrinsic :: iso_c_binding, only: c_associated, c_int, c_long, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: int64
  use fft_block_copy, only: at_byte
  implicit none
  private
  public :: line_transform_t, run_plane, complex_lines, real_to_complex, complex_to_real

  integer, parameter :: complex_lines = 1, real_to_complex = 2, complex_to_real = 3

  interface
    type(c_ptr) function line_plan_create(n, is_real, bytes) bind(c)
      import :: c_int, c_ptr
      integer(c_int), value :: n, is_real, bytes
    end function line_plan_create
    integer(c_int) function line_plan_run(plan, what, sign, n_lines, stride, distance, input, output) bind(c)
      import :: c_int, c_long, c_ptr
      type(c_ptr), value :: plan, input, output
      integer(c_int), value :: what, sign, n_lines
      integer(c_long), value :: stride, distance
    end function line_plan_run
    integer(c_int) function plane_plan_run(along_x, along_y, what, sign, input, output) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: along_x, along_y, input, output
      integer(c_int), value :: what, sign
    end function plane_plan_run
    subroutine line_plan_destroy(plan) bind(c)
      import :: c_ptr
      type(c_ptr), value :: plan
    end subroutine line_plan_destroy
  end interface

  !> Transforms of lines of an array (inner, n, outer): line (i, o) runs along the middle dimension.
  type :: line_transform_t
    integer :: inner = 1
    !> Bytes of an element, and length of a line, before and after.
    integer :: width_in = 0, width_out = 0, length_in = 0, length_out = 0
    integer, private :: what = 0, sign = -1
    type(c_ptr), private :: plan = c_null_ptr
  contains
    procedure :: create
    procedure :: run
    procedure :: destroy
  end type line_transform_t

contains

  !> `what`: complex_lines with the sign of the exponent, real_to_complex (n reals to n/2 + 1 complex numbers; inner =
  !> 1) or its way back; none is normalised. `bytes`: of a real number, 4 or 8.
  subroutine create(self, what, sign, bytes, n, inner)
    class(line_transform_t), intent(inout) :: self
    integer, intent(in) :: what, sign, bytes, n, inner
    call self%destroy()
    self%what = what
    self%sign = sign
    self%inner = inner
    self%width_in = merge(bytes, 2*bytes, what == real_to_complex)
    self%width_out = merge(bytes, 2*bytes, what == complex_to_real)
    self%length_in = merge(n/2 + 1, n, what == complex_to_real)
    self%length_out = merge(n/2 + 1, n, what == real_to_complex)
    self%plan = line_plan_create(n, merge(0, 1, what == complex_lines), bytes)
    if (.not. c_associated(self%plan)) error stop "no memory for the twiddle factors of an FFT"
  end subroutine create

  !> Transform `count` lines from number `first` (from 0; the inner index runs fastest) of the array at `input` into the
  !> array at `output`.
  subroutine run(self, first, count, input, output)
    class(line_transform_t), intent(in) :: self
    integer, intent(in) :: first, count
    type(c_ptr), intent(in) :: input, output
    integer :: line, n_here
    integer(int64) :: distance
    line = first
    do while (line < first + count)
      n_here = first + count - line
      distance = self%length_in
      if (self%inner > 1) then
        n_here = min(n_here, self%inner - mod(line, self%inner))
        distance = 1
      end if
      if (line_plan_run(self%plan, self%what, self%sign, n_here, int(self%inner, c_long), int(distance, c_long), &
                        address(input, self%width_in, self%length_in), &
                        address(output, self%width_out, self%length_out)) /= 0) &
        error stop "no memory to transform a line"
      line = line + n_here
    end do

  contains

    type(c_ptr) function address(array, width, length)
      type(c_ptr), intent(in) :: array
      integer, intent(in) :: width, length
      address = at_byte(array, int(width, int64)*(mod(line, self%inner) &
                                                  + int(line/self%inner, int64)*self%inner*length))
    end function address

  end subroutine run

  !> Transform plane number `plane` (from 0) of the arrays at `input` and `output` along x, which is fastest, and y.
  !> `transform`: of both axes in the order in which they take place, x first where it takes waves forward; `n_lines`:
  !> lines of each in a plane. Output and input may be one array if both are complex.
  subroutine run_plane(transform, plane, n_lines, input, output)
    type(line_transform_t), intent(in) :: transform(2)
    integer, intent(in) :: plane, n_lines(2)
    type(c_ptr), intent(in) :: input, output
    integer :: x
    x = merge(1, 2, transform(1)%sign < 0)
    if (plane_plan_run(transform(x)%plan, transform(3 - x)%plan, transform(x)%what, transform(x)%sign, &
                       start_of(input, transform(1)%width_in, transform(1)%length_in, n_lines(1)), &
                       start_of(output, transform(2)%width_out, transform(2)%length_out, n_lines(2))) /= 0) &
      error stop "no memory to transform a plane"

  contains

    type(c_ptr) function start_of(array, width, length, lines)
      type(c_ptr), intent(in) :: array
      integer, intent(in) :: width, length, lines
      start_of = at_byte(array, int(plane, int64)*width*length*lines)
    end function start_of

  end subroutine run_plane

  subroutine destroy(self)
    class(line_transform_t), intent(inout) :: self
    if (c_associated(self%plan)) call line_plan_destroy(self%plan)
    self%plan = c_null_ptr
  end subroutine destroy

end module fft_lines
