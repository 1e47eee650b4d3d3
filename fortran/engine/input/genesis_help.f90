!> The table of GENESIS' keys as the program prints it.
module genesis_help
  use, intrinsic :: iso_fortran_env, only: output_unit
  use genesis_keys, only: class_name, genesis_key_t, genesis_keys_table, genesis_words, other_keys, same_keys
  implicit none
  private
  public :: print_genesis_keys

contains

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

end module genesis_help
