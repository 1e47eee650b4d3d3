!> Copies of rectangular blocks between arrays and message buffers, for elements of 4, 8 and 16 bytes.
module fft_block_copy
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_intptr_t, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  implicit none
  private
  public :: block_copy_t, copy_blocks, at_byte

  !> Element (i1, i2, i3, i4) of the block is number first + sum of i*stride of either array, all from 0.
  type :: block_copy_t
    integer :: extent(4) = 0
    integer :: from_first = 0, from_stride(4) = 0
    integer :: to_first = 0, to_stride(4) = 0
  end type block_copy_t

contains

  !> Copy the blocks, or add them (`add`; real numbers only). `width`: bytes of an element.
  subroutine copy_blocks(blocks, width, from, to, add)
    type(block_copy_t), intent(in) :: blocks(:)
    integer, intent(in) :: width
    type(c_ptr), intent(in) :: from, to
    logical, intent(in) :: add
    real(real32), pointer, contiguous :: from_4(:), to_4(:)
    real(real64), pointer, contiguous :: from_8(:), to_8(:)
    complex(real64), pointer, contiguous :: from_16(:), to_16(:)
    integer :: k

    ! The kernels take arrays of unknown size.
    select case (width)
    case (4)
      call c_f_pointer(from, from_4, [1])
      call c_f_pointer(to, to_4, [1])
      do k = 1, size(blocks)
        call copy_4(blocks(k), from_4, to_4, add)
      end do
    case (8)
      call c_f_pointer(from, from_8, [1])
      call c_f_pointer(to, to_8, [1])
      do k = 1, size(blocks)
        call copy_8(blocks(k), from_8, to_8, add)
      end do
    case (16)
      call c_f_pointer(from, from_16, [1])
      call c_f_pointer(to, to_16, [1])
      do k = 1, size(blocks)
        call copy_16(blocks(k), from_16, to_16, add)
      end do
    end select
  end subroutine copy_blocks

  !> Is a block worth a team of threads?
  pure logical function many(block)
    type(block_copy_t), intent(in) :: block
    many = product(int(block%extent, int64)) > 16384
  end function many

  !> The address `bytes` after `base`.
  pure function at_byte(base, bytes) result(address)
    type(c_ptr), intent(in) :: base
    integer(int64), intent(in) :: bytes
    type(c_ptr) :: address
    address = transfer(transfer(base, 0_c_intptr_t) + int(bytes, c_intptr_t), c_null_ptr)
  end function at_byte

#define NAME copy_4
#define ELEMENT real(real32)
#include "block_copy.inc"
#undef NAME
#undef ELEMENT

#define NAME copy_8
#define ELEMENT real(real64)
#include "block_copy.inc"
#undef NAME
#undef ELEMENT

#define NAME copy_16
#define ELEMENT complex(real64)
#include "block_copy.inc"
#undef NAME
#undef ELEMENT

end module fft_block_copy
