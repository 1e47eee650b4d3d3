!> Keys of a control file: a table of them drives reading, checking, defaults and help.
module base_control_keys
  use base_kinds, only: real64
  use base_text, only: edit_distance, lower_case
  implicit none
  private
  public :: key_t, is_text, is_integer, is_real, is_reals, is_choice, position_of, closest, suggestion, upper_case

  integer, parameter :: is_text = 1, is_integer = 2, is_real = 3, is_choice = 4
  !> Real numbers with blanks between them, in entries of a numbered key.
  integer, parameter :: is_reals = 5

  type :: key_t
    character(len=12) :: section
    character(len=20) :: name
    integer :: kind
    !> Default as it would stand in the file; empty = none.
    character(len=12) :: default
    character(len=24) :: unit
    !> Allowed words of a choice, separated by blanks; or the smallest allowed number, or that and the largest.
    character(len=100) :: allowed
    character(len=110) :: about
    !> Without what the key has no effect, as base_control_conditions reads it; empty = it always has.
    character(len=100) :: when = ""
  contains
    procedure :: range
  end type key_t

contains

  !> The smallest and the largest number that a key allows, and in words what a number must be.
  pure subroutine range(self, smallest, largest, words)
    class(key_t), intent(in) :: self
    real(real64), intent(out) :: smallest, largest
    character(len=:), allocatable, intent(out) :: words
    integer :: gap
    smallest = 0.0_real64
    largest = huge(largest)
    if (self%allowed /= "") read (self%allowed, *) smallest
    gap = index(trim(self%allowed), " ")
    words = "at least "//trim(self%allowed)
    if (gap == 0) return
    read (self%allowed(gap:), *) largest
    words = "from "//self%allowed(:gap)//"to "//trim(self%allowed(gap + 1:))
  end subroutine range

  !> Index of a key in the table, 0 = there is none.
  pure integer function position_of(keys, section, name)
    type(key_t), intent(in) :: keys(:)
    character(len=*), intent(in) :: section, name
    character(len=len(name) + 1) :: general
    integer :: digits
    ! group12 is an entry of group#.
    general = name
    digits = verify(name, "0123456789", back=.true.) + 1
    if (digits > 1 .and. digits <= len_trim(name) .and. len_trim(name) - digits < 6) general = name(:digits - 1)//"#"
    do position_of = size(keys), 1, -1
      if (lower_case(keys(position_of)%section) /= lower_case(section)) cycle
      if (keys(position_of)%name == name .or. keys(position_of)%name == general) return
    end do
  end function position_of

  !> The candidate with the smallest edit distance.
  pure function closest(word, candidates) result(best)
    character(len=*), intent(in) :: word, candidates(:)
    character(len=:), allocatable :: best
    integer :: i, distance, smallest
    smallest = huge(smallest)
    do i = 1, size(candidates)
      distance = edit_distance(lower_case(word), lower_case(trim(candidates(i))))
      if (distance < smallest) then
        smallest = distance
        best = trim(candidates(i))
      end if
    end do
  end function closest

  !> "; nearest is 'KEY'" where a candidate is near enough to a word to have been meant, else nothing.
  pure function suggestion(word, candidates, before, after) result(text)
    character(len=*), intent(in) :: word, candidates(:), before, after
    character(len=:), allocatable :: text, best
    text = ""
    if (size(candidates) == 0) return
    best = closest(word, candidates)
    if (3*edit_distance(lower_case(word), lower_case(best)) <= max(len(word), len(best))) &
      text = "; nearest is "//before//best//after
  end function suggestion

  !> A text with its letters a to z as capitals.
  pure function upper_case(text) result(upper)
    character(len=*), intent(in) :: text
    character(len=len(text)) :: upper
    integer :: i
    upper = text
    do i = 1, len(text)
      if (text(i:i) >= "a" .and. text(i:i) <= "z") upper(i:i) = achar(iachar(text(i:i)) - 32)
    end do
  end function upper_case

end module base_control_keys
