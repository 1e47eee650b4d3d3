!> 64-bit cyclic redundancy check (polynomial of ECMA-182, reflected), eight bytes a step.
module base_checksum
  use base_kinds, only: int64
  implicit none
  private
  public :: checksum_t, file_checksum, ends_with_checksum

  integer(int64), parameter :: polynomial = int(z"C96C5795D7870F42", int64)

  type :: checksum_t
    integer(int64) :: value = 0_int64
    integer(int64), private :: table(0:255, 0:7) = 0_int64
    logical, private :: ready = .false.
  contains
    procedure :: add
  end type checksum_t

contains

  !> Add 64-bit words to the checksum.
  subroutine add(self, words)
    class(checksum_t), intent(inout) :: self
    integer(int64), intent(in) :: words(:)
    integer(int64) :: x, crc
    integer(int64) :: i
    integer :: k
    if (.not. self%ready) call make_table(self)
    crc = self%value
    do i = 1, size(words, kind=int64)
      x = ieor(crc, words(i))
      crc = 0_int64
      do k = 0, 7
        crc = ieor(crc, self%table(int(iand(shiftr(x, 8*k), 255_int64)), 7 - k))
      end do
    end do
    self%value = crc
  end subroutine add

  !> Checksum of the bytes of a file, the last word filled with zeros; 0 where it cannot be read.
  integer(int64) function file_checksum(path) result(value)
    character(len=*), intent(in) :: path
    integer(int64), parameter :: block_words = 131072
    type(checksum_t) :: check
    integer(int64), allocatable :: words(:)
    character(len=8) :: rest
    integer(int64) :: bytes, left
    integer :: unit, status
    value = 0_int64
    open (newunit=unit, file=path, access="stream", form="unformatted", status="old", action="read", iostat=status)
    if (status /= 0) return
    inquire (unit=unit, size=bytes)
    left = bytes/8
    do while (left > 0 .and. status == 0)
      allocate (words(min(left, block_words)))
      read (unit, iostat=status) words
      call check%add(words)
      left = left - size(words, kind=int64)
      deallocate (words)
    end do
    if (modulo(bytes, 8_int64) > 0 .and. status == 0) then
      rest = repeat(achar(0), 8)
      read (unit, iostat=status) rest(:modulo(bytes, 8_int64))
      call check%add(transfer(rest, [0_int64]))
    end if
    close (unit)
    if (status == 0) value = check%value
  end function file_checksum

  !> Whether the last word of a file is the checksum of the words before it; false where it cannot be read.
  logical function ends_with_checksum(path) result(fits)
    character(len=*), intent(in) :: path
    integer(int64), parameter :: block_words = 131072
    type(checksum_t) :: check
    integer(int64), allocatable :: words(:)
    integer(int64) :: bytes, left, stored
    integer :: unit, status
    fits = .false.
    open (newunit=unit, file=path, access="stream", form="unformatted", status="old", action="read", iostat=status)
    if (status /= 0) return
    inquire (unit=unit, size=bytes)
    left = bytes/8 - 1
    if (left < 1 .or. modulo(bytes, 8_int64) /= 0) status = 1
    do while (left > 0 .and. status == 0)
      allocate (words(min(left, block_words)))
      read (unit, iostat=status) words
      call check%add(words)
      left = left - size(words, kind=int64)
      deallocate (words)
    end do
    if (status == 0) read (unit, iostat=status) stored
    close (unit)
    if (status == 0) fits = check%value == stored
  end function ends_with_checksum

  subroutine make_table(self)
    type(checksum_t), intent(inout) :: self
    integer(int64) :: entry
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
      self%table(byte, 0) = entry
    end do
    do k = 1, 7
      do byte = 0, 255
        entry = self%table(byte, k - 1)
        self%table(byte, k) = ieor(shiftr(entry, 8), self%table(int(iand(entry, 255_int64)), 0))
      end do
    end do
    ! A start value other than zero, so that leading zero words count.
    self%value = not(0_int64)
    self%ready = .true.
  end subroutine make_table

end module base_checksum
