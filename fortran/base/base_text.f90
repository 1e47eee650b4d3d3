!> Small text helpers: numbers to text, edit distance, file names with a rank in them.
module base_text
  use base_kinds, only: int64, real64
  implicit none
  private
  public :: to_text, decimal_text, lower_case, edit_distance, with_rank, read_line, listed

  interface to_text
    procedure :: integer_to_text, long_to_text, real_to_text
  end interface to_text

contains

  pure function integer_to_text(value) result(text)
    integer, intent(in) :: value
    character(len=:), allocatable :: text
    text = long_to_text(int(value, int64))
  end function integer_to_text

  pure function long_to_text(value) result(text)
    integer(int64), intent(in) :: value
    character(len=:), allocatable :: text
    character(len=24) :: buffer
    write (buffer, "(i0)") value
    text = trim(buffer)
  end function long_to_text

  pure function real_to_text(value) result(text)
    real(real64), intent(in) :: value
    character(len=:), allocatable :: text
    character(len=32) :: buffer
    if (abs(value) < 1.0e7_real64) then
      write (buffer, "(f0.3)") value
    else
      write (buffer, "(es12.5)") value
    end if
    text = trim(adjustl(buffer))
  end function real_to_text

  !> A number with so many decimals.
  pure function decimal_text(value, decimals) result(text)
    real(real64), intent(in) :: value
    integer, intent(in) :: decimals
    character(len=:), allocatable :: text
    character(len=32) :: buffer, form
    if (.not. abs(value) < 1.0e7_real64) then
      write (buffer, "(es12.3)") value
    else
      write (form, "(a,i0,a)") "(f24.", decimals, ")"
      write (buffer, form) value
    end if
    text = trim(adjustl(buffer))
    if (decimals == 0 .and. index(text, ".") == len(text)) text = text(:len(text) - 1)
  end function decimal_text

  elemental function lower_case(text) result(lower)
    character(len=*), intent(in) :: text
    character(len=len(text)) :: lower
    integer :: i
    lower = text
    do i = 1, len(text)
      if (text(i:i) >= "A" .and. text(i:i) <= "Z") lower(i:i) = achar(iachar(text(i:i)) + 32)
    end do
  end function lower_case

  !> Levenshtein distance: how many single-letter insertions, deletions and replacements make `a` into `b`.
  pure integer function edit_distance(a, b)
    character(len=*), intent(in) :: a, b
    integer :: row(0:len(b)), diagonal, above, i, j
    row = [(j, j=0, len(b))]
    do i = 1, len(a)
      diagonal = row(0)
      row(0) = i
      do j = 1, len(b)
        above = row(j)
        row(j) = min(above + 1, row(j - 1) + 1, diagonal + merge(0, 1, a(i:i) == b(j:j)))
        diagonal = above
      end do
    end do
    edit_distance = row(len(b))
  end function edit_distance

  !> Replace `()` in a file name by the rank, as GENESIS does: `rst().bin` is `rst3.bin` on rank 3.
  pure function with_rank(name, rank) result(path)
    character(len=*), intent(in) :: name
    integer, intent(in) :: rank
    character(len=:), allocatable :: path
    integer :: at
    at = index(name, "()")
    if (at == 0) then
      path = name
    else
      path = name(:at - 1)//to_text(rank)//name(at + 2:)
    end if
  end function with_rank

  !> Texts with commas between them.
  pure function listed(texts) result(list)
    character(len=*), intent(in) :: texts(:)
    character(len=:), allocatable :: list
    integer :: k
    list = trim(texts(1))
    do k = 2, size(texts)
      list = list//", "//trim(texts(k))
    end do
  end function listed

  !> Read one line of any length; `status` as iostat.
  subroutine read_line(unit, line, status)
    integer, intent(in) :: unit
    character(len=:), allocatable, intent(out) :: line
    integer, intent(out) :: status
    character(len=512) :: buffer
    integer :: length
    line = ""
    do
      read (unit, "(a)", advance="no", size=length, iostat=status) buffer
      if (status > 0) return
      line = line//buffer(:length)
      if (is_iostat_eor(status)) then
        status = 0
        return
      end if
      if (is_iostat_end(status)) then
        if (len(line) > 0) status = 0
        return
      end if
    end do
  end subroutine read_line

end module base_text
