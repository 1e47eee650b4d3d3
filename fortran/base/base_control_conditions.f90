!> When keys of a control file have an effect. The table gives each key its conditions (`when`), all of which must hold,
!> with blanks between them, and within each the ways to meet it, with | between them:
!>
!> - `[SECTION]`: the file has this section;
!> - `key`: this key has another value than its default;
!> - `key=WORD`: it has this one;
!> - `!key`: it has its default.
!>
!> A key of another section is written as `SECTION.key`.
module base_control_conditions
  use base_error, only: error_t
  use base_control_file, only: control_file_t
  use base_control_keys, only: key_t
  implicit none
  private
  public :: refuse_idle_keys, conditions_in_words

contains

  !> Refuse the first key that was changed from its default and has no effect.
  subroutine refuse_idle_keys(control, error)
    type(control_file_t), intent(in) :: control
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: rest, condition, remedy
    integer :: k
    do k = 1, size(control%key)
      associate (key => control%key(k))
        if (.not. control%differs(trim(key%section), trim(key%name))) cycle
        rest = trim(key%when)
        do while (rest /= "")
          call take(rest, " ", condition)
          if (holds(control, trim(key%section), condition)) cycle
          remedy = "; add that, or leave it out"
          if (condition(1:1) == "!") remedy = "; leave one of them out"
          call control%refuse(trim(key%section), trim(key%name), "has no effect "//in_words(condition)//remedy, error)
          return
        end do
      end associate
    end do
  end subroutine refuse_idle_keys

  !> What the help says of a key: "; no effect without key = WORD" for each of its conditions; empty without any.
  pure function conditions_in_words(key) result(text)
    type(key_t), intent(in) :: key
    character(len=:), allocatable :: text, rest, condition
    text = ""
    rest = trim(key%when)
    do while (rest /= "")
      call take(rest, " ", condition)
      if (text /= "") text = text//" or "
      text = text//in_words(condition)
    end do
    if (text /= "") text = "; no effect "//text
  end function conditions_in_words

  !> Whether one of the ways to meet a condition is there.
  pure logical function holds(control, own_section, condition)
    class(control_file_t), intent(in) :: control
    character(len=*), intent(in) :: own_section, condition
    character(len=:), allocatable :: rest, way, section, name, word
    holds = .false.
    rest = condition
    do while (rest /= "" .and. .not. holds)
      call take(rest, "|", way)
      if (way(1:1) == "[") then
        holds = control%has_section(way(2:len(way) - 1))
        cycle
      end if
      call split(way(verify(way, "!"):), section, name, word)
      if (section == "") section = own_section
      holds = control%differs(section, name) .neqv. way(1:1) == "!"
      if (word /= "") holds = control%text(section, name) == word
    end do
  end function holds

  !> "without a = A or b in [SECTION]", or "beside" what must not be there.
  pure function in_words(condition) result(text)
    character(len=*), intent(in) :: condition
    character(len=:), allocatable :: text, rest, way, section, name, word
    text = "without "
    if (condition(1:1) == "!") text = "beside "
    rest = condition
    do while (rest /= "")
      call take(rest, "|", way)
      if (way(1:1) == "[") then
        text = text//"a section "//way
      else
        call split(way(verify(way, "!"):), section, name, word)
        text = text//name
        if (word /= "") text = text//" = "//word
        if (section /= "") text = text//" in ["//section//"]"
      end if
      if (rest /= "") text = text//" or "
    end do
  end function in_words

  !> Take what stands before the first separator from a list.
  pure subroutine take(list, separator, first)
    character(len=:), allocatable, intent(inout) :: list
    character(len=1), intent(in) :: separator
    character(len=:), allocatable, intent(out) :: first
    integer :: place
    place = index(list//separator, separator)
    first = list(:place - 1)
    list = list(min(place, len(list)) + 1:)
  end subroutine take

  !> SECTION.key=WORD in its parts, of which the first and the last may be empty.
  pure subroutine split(way, section, name, word)
    character(len=*), intent(in) :: way
    character(len=:), allocatable, intent(out) :: section, name, word
    integer :: dot, equals
    dot = index(way, ".")
    equals = index(way//"=", "=")
    section = way(:dot - 1)
    name = way(dot + 1:equals - 1)
    word = way(equals + 1:)
  end subroutine split

end module base_control_conditions
