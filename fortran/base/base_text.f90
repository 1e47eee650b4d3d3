!> Small text helpers: numbers to text, edit distance, file names with a rank in them.
module base_text
  use base_kinds, only: int64, real64
  implicit none
  private
  public :: to_text, decimal_text, lower_case, edit_distance, with_rank, with_replica, of_all_ranks, has_folders, &
            read_line, listed

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

  !> Replace `()` in a file name by the rank, as GENESIS does: `rst().bin` is `rst3.bin` on rank 3. In a tree of folders
  !> `(by256)` is the number of the 256 ranks that a folder holds: `(by256)/rst().bin` is `1/rst300.bin` on rank 300.
  pure function with_rank(name, rank) result(path)
    character(len=*), intent(in) :: name
    integer, intent(in) :: rank
    character(len=:), allocatable :: path
    integer :: at, first, last, together
    path = name
    call find_folders(name, first, last, together)
    if (together > 0) path = name(:first - 1)//to_text(rank/together)//name(last + 1:)
    at = index(path, "()")
    if (at > 0) path = path(:at - 1)//to_text(rank)//path(at + 2:)
  end function with_rank

  !> Replace `{}` in a file name by the number of a replica, as GENESIS does: `run_rep{}.log` is `run_rep2.log` of replica 2.
  pure function with_replica(name, replica) result(path)
    character(len=*), intent(in) :: name
    integer, intent(in) :: replica
    character(len=:), allocatable :: path
    integer :: at
    path = name
    at = index(name, "{}")
    if (at > 0) path = name(:at - 1)//to_text(replica)//name(at + 2:)
  end function with_replica

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

  !> Name of a file of all ranks: the word in place of `()`, beside the folders of the ranks where these have any.
  pure function of_all_ranks(name, word) result(path)
    character(len=*), intent(in) :: name, word
    character(len=:), allocatable :: path
    integer :: at, first, last, together
    path = name
    call find_folders(name, first, last, together)
    if (together > 0) path = name(:first - 1)//name(last + 1 + merge(1, 0, name(last + 1:last + 1) == "/"):)
    at = index(path, "()")
    if (at > 0) path = path(:at - 1)//word//path(at + 2:)
  end function of_all_ranks

  !> Whether the files of the ranks lie in several folders.
  pure logical function has_folders(name)
    character(len=*), intent(in) :: name
    integer :: first, last, together
    call find_folders(name, first, last, together)
    has_folders = together > 0
  end function has_folders

  !> Where `(by256)` stands in a name, and the number in it; 0 where it is not there.
  pure subroutine find_folders(name, first, last, together)
    character(len=*), intent(in) :: name
    integer, intent(out) :: first, last, together
    integer :: status
    together = 0
    last = 0
    first = index(name, "(by")
    if (first == 0) return
    last = first + index(name(first:), ")") - 1
    if (last <= first + 3 .or. last > first + 12) return
    if (verify(name(first + 3:last - 1), "0123456789") > 0) return
    read (name(first + 3:last - 1), *, iostat=status) together
    if (status /= 0) together = 0
  end subroutine find_folders

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
