!> The help of a program: its table of keys as a control file.
module base_control_help
  use, intrinsic :: iso_fortran_env, only: output_unit
  use base_error, only: error_t, exit_bad_input, fail
  use base_text, only: lower_case
  use base_control_conditions, only: conditions_in_words
  use base_control_keys, only: closest, is_choice, key_t
  implicit none
  private
  public :: print_help

contains

  !> Print a control file with all keys (of one section, or of all if `section` is empty), defaults, units and meanings.
  subroutine print_help(keys, section, error)
    type(key_t), intent(in) :: keys(:)
    character(len=*), intent(in) :: section
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: note, wanted, current
    integer :: k
    wanted = section
    if (index(wanted, "[") == 1) wanted = wanted(2:max(1, len(wanted) - 1))
    if (wanted /= "" .and. .not. any(lower_case(keys%section) == lower_case(wanted))) then
      call fail(error, exit_bad_input, "section ["//wanted//"] does not exist; nearest is ["// &
                closest(wanted, keys%section)//"]")
      return
    end if
    current = ""
    do k = 1, size(keys)
      if (wanted /= "" .and. lower_case(keys(k)%section) /= lower_case(wanted)) cycle
      if (keys(k)%section /= current) then
        if (current /= "") write (output_unit, "(a)") ""
        current = trim(keys(k)%section)
        write (output_unit, "(3a)") "[", current, "]"
      end if
      note = trim(keys(k)%about)//conditions_in_words(keys(k))
      if (keys(k)%kind == is_choice .and. index(trim(keys(k)%allowed), " ") > 0) &
        note = note//" ("//trim(keys(k)%allowed)//")"
      if (keys(k)%unit /= "") note = note//" ["//trim(keys(k)%unit)//"]"
      if (keys(k)%default == "" .or. index(keys(k)%name, "#") > 0) then
        write (output_unit, "(a,a20,a,a12,2a)") "# ", numbered_example(keys(k)%name), "= ", keys(k)%default, " # ", note
      else
        write (output_unit, "(a20,2x,a,a12,2a)") keys(k)%name, "= ", keys(k)%default, " # ", note
      end if
    end do
  end subroutine print_help

  !> group# as it is written for the first entry: group1.
  pure function numbered_example(name) result(example)
    character(len=*), intent(in) :: name
    character(len=len(name)) :: example
    example = name
    if (index(name, "#") > 0) example(index(name, "#"):index(name, "#")) = "1"
  end function numbered_example

end module base_control_help
