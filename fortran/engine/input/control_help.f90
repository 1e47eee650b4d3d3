!> `chromamd help`: the table of keys as a control file.
module control_help
  use, intrinsic :: iso_fortran_env, only: output_unit
  use base_error, only: error_t, exit_bad_input, fail
  use base_text, only: lower_case
  use control_keys, only: closest, is_choice, keys
  use genesis_keys, only: class_name, genesis_key_t, genesis_keys_table, genesis_words, other_keys, same_keys
  implicit none
  private
  public :: print_help, print_genesis_keys

contains

  !> Print a control file with all keys (of one section, or of all if `section` is empty), defaults, units and meanings.
  subroutine print_help(section, error)
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
      note = trim(keys(k)%about)
      if (keys(k)%kind == is_choice .and. index(trim(keys(k)%allowed), " ") > 0) &
        note = note//" ("//trim(keys(k)%allowed)//")"
      if (keys(k)%unit /= "") note = note//" ["//trim(keys(k)%unit)//"]"
      if (keys(k)%default == "" .or. index(keys(k)%name, "#") > 0) then
        write (output_unit, "(a,a17,a,a12,2a)") "# ", numbered_example(keys(k)%name), "= ", keys(k)%default, " # ", note
      else
        write (output_unit, "(a19,a,a12,2a)") keys(k)%name, "= ", keys(k)%default, " # ", note
      end if
    end do
  end subroutine print_help

  !> `chromamd help genesis`: the keys of GENESIS with what they are here, one a line: class, section and key, for a missing
  !> one in parentheses the values that ask for nothing, meaning.
  subroutine print_genesis_keys()
    integer :: k
    do k = 1, size(same_keys)
      associate (blank => index(same_keys(k), " "))
        write (output_unit, "(5a)") "same     [", same_keys(k)(:blank - 1), "] ", trim(same_keys(k)(blank + 1:)), ":"
      end associate
    end do
    do k = 1, size(other_keys)
      call print_one(other_keys(k))
    end do
    do k = 1, size(genesis_keys_table)
      call print_one(genesis_keys_table(k))
    end do
    do k = 1, size(genesis_words)
      associate (word => genesis_words(k))
        write (output_unit, "(9a)") "missing  [", trim(word%section), "] ", trim(word%name), " = ", trim(word%word), ": ", &
          trim(word%about)
      end associate
    end do
  contains
    subroutine print_one(key)
      type(genesis_key_t), intent(in) :: key
      character(len=:), allocatable :: harmless
      harmless = ""
      if (key%harmless /= "") harmless = " ("//trim(key%harmless)//")"
      write (output_unit, "(9a)") class_name(key%class), " [", trim(key%section), "] ", trim(key%name), harmless, ": ", &
        trim(key%about)
    end subroutine print_one
  end subroutine print_genesis_keys

  !> group# as it is written for the first entry: group1.
  pure function numbered_example(name) result(example)
    character(len=*), intent(in) :: name
    character(len=len(name)) :: example
    example = name
    if (index(name, "#") > 0) example(index(name, "#"):index(name, "#")) = "1"
  end function numbered_example

end module control_help
