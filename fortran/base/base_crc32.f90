!> 32-bit cyclic redundancy check of bytes (polynomial of IEEE 802.3, reflected), as zlib and Python's `zlib.crc32` make
!> it; eight bytes a step.
module base_crc32
  use base_kinds, only: int32, int64
  use, intrinsic :: iso_fortran_env, only: int8
  implicit none
  private
  public :: crc32_of

  integer(int32), parameter :: polynomial = int(z"EDB88320", int32)

contains

  pure integer(int32) function crc32_of(bytes)
    integer(int8), intent(in) :: bytes(:)
    integer(int32) :: table(0:255, 0:7), crc, low, high
    integer(int64) :: i, n
    call fill(table)
    n = size(bytes, kind=int64)
    crc = not(0_int32)
    i = 0
    do while (i + 8 <= n)
      low = ieor(crc, word(bytes(i + 1:i + 4)))
      high = word(bytes(i + 5:i + 8))
      crc = ieor(ieor(ieor(table(part(low, 0), 7), table(part(low, 1), 6)), &
                      ieor(table(part(low, 2), 5), table(part(low, 3), 4))), &
                 ieor(ieor(table(part(high, 0), 3), table(part(high, 1), 2)), &
                      ieor(table(part(high, 2), 1), table(part(high, 3), 0))))
      i = i + 8
    end do
    do i = i + 1, n
      crc = ieor(shiftr(crc, 8), table(iand(ieor(crc, int(bytes(i), int32)), 255_int32), 0))
    end do
    crc32_of = not(crc)
  end function crc32_of

  !> Four bytes, lowest first.
  pure integer(int32) function word(bytes)
    integer(int8), intent(in) :: bytes(4)
    integer :: k
    word = 0
    do k = 4, 1, -1
      word = ior(shiftl(word, 8), iand(int(bytes(k), int32), 255_int32))
    end do
  end function word

  !> Byte k (from 0) of a word.
  pure integer(int32) function part(value, k)
    integer(int32), intent(in) :: value
    integer, intent(in) :: k
    part = iand(shiftr(value, 8*k), 255_int32)
  end function part

  pure subroutine fill(table)
    integer(int32), intent(out) :: table(0:255, 0:7)
    integer(int32) :: entry
    integer :: byte, bit, k
    do byte = 0, 255
      entry = byte
      do bit = 1, 8
        if (btest(entry, 0)) then
          entry = ieor(shiftr(entry, 1), polynomial)
        else
          entry = shiftr(entry, 1)
        end if
      end do
      table(byte, 0) = entry
    end do
    do k = 1, 7
      do byte = 0, 255
        entry = table(byte, k - 1)
        table(byte, k) = ieor(shiftr(entry, 8), table(iand(entry, 255_int32), 0))
      end do
    end do
  end subroutine fill

end module base_crc32
