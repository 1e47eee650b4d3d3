!> A control file as text: sections, keys and values, checked against a table of keys one by one. What they mean, and
!> whether they go together, is for those who read settings from it.
module base_control_file
  use base_kinds, only: int64, real64
  use base_error, only: error_t, exit_bad_input, fail
  use base_text, only: lower_case, read_line, to_text
  use base_control_keys, only: is_choice, is_integer, is_real, is_reals, key_t, position_of, suggestion, upper_case
  implicit none
  private
  public :: control_file_t, value_length, words

  !> Longest value, a multiple of 8; longest name of a section.
  integer, parameter :: value_length = 4096, section_length = 12

  type :: control_file_t
    !> The table, and in its order the values.
    type(key_t), allocatable :: key(:)
    character(len=value_length), allocatable :: value(:)
    !> Line where the key stands, 0 = default.
    integer, allocatable :: line(:)
    !> Keys that end with a number, e.g. group2: place in the table, number, value and line.
    integer, allocatable :: numbered_key(:), number(:), numbered_line(:)
    character(len=value_length), allocatable :: numbered_value(:)
    character(len=:), allocatable, private :: path
    !> Sections that the file has.
    character(len=section_length), allocatable, private :: section(:)
  contains
    procedure :: read_with => read_control
    procedure :: text => get_text
    procedure :: integer => get_integer
    procedure :: real => get_real
    procedure :: yes
    procedure :: choice
    procedure :: given
    procedure :: differs
    procedure :: numbered
    procedure :: numbered_reals
    procedure :: entries
    procedure :: refuse_numbered
    procedure :: require
    procedure :: refuse
    procedure :: refuse_file
    procedure :: has_section
    procedure :: fail_at
    !> What a program that knows more sections, keys and words than its table overrides.
    procedure :: check_section
    procedure :: take_unknown
    procedure :: unknown_word
  end type control_file_t

contains

  !> Read a control file; anything not in the table `keys`, or of the wrong kind, is refused with file and line.
  subroutine read_control(self, keys, path, error)
    class(control_file_t), intent(out) :: self
    type(key_t), intent(in) :: keys(:)
    character(len=*), intent(in) :: path
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: line, section, name, value, begun
    integer :: unit, status, number, equals, k, earlier, entry

    self%path = path
    self%key = keys
    allocate (self%value(size(self%key)), self%line(size(self%key)))
    self%value = self%key%default
    self%line = 0
    allocate (self%section(0), self%numbered_key(0), self%number(0), self%numbered_line(0), self%numbered_value(0))
    open (newunit=unit, file=path, status="old", action="read", iostat=status)
    if (status /= 0) then
      call fail(error, exit_bad_input, path//": this control file cannot be opened; check the name")
      return
    end if
    section = ""
    begun = ""
    number = 0
    do
      call read_line(unit, line, status)
      if (status /= 0) exit
      number = number + 1
      if (index(line, "#") > 0) line = line(:index(line, "#") - 1)
      ! In a selection it means not.
      if (index(line, "!") > 0 .and. lower_case(section) /= "selection") line = line(:index(line, "!") - 1)
      line = begun//trim(adjustl(without_controls(line)))
      begun = ""
      if (len(line) == 0) cycle
      if (line(len(line):) == "\") then
        begun = line(:len(line) - 1)
        cycle
      end if
      if (line(1:1) == "[") then
        if (index(line, "]") /= len(line)) then
          call fail_at(self, number, "a section is written as [NAME], not '"//line//"'", error)
          exit
        end if
        section = trim(adjustl(line(2:len(line) - 1)))
        if (.not. any(lower_case(self%key%section) == lower_case(section))) call self%check_section(section, number, error)
        if (allocated(error)) exit
        self%section = [self%section, lower_case(padded(section))]
        cycle
      end if
      equals = index(line, "=")
      if (equals == 0) then
        call fail_at(self, number, "expected 'key = value', found '"//line//"'", error)
        exit
      end if
      if (section == "") then
        call fail_at(self, number, "'"//line//"' stands before any [SECTION]", error)
        exit
      end if
      name = lower_case(trim(line(:equals - 1)))
      value = trim(adjustl(line(equals + 1:)))
      k = position_of(self%key, section, name)
      if (k == 0) then
        call self%take_unknown(section, name, value, number, error)
        if (allocated(error)) exit
        cycle
      end if
      if (self%key(k)%allowed == "YES NO" .and. lower_case(value) == "true") value = "YES"
      if (self%key(k)%allowed == "YES NO" .and. lower_case(value) == "false") value = "NO"
      earlier = self%line(k)
      if (index(self%key(k)%name, "#") > 0) then
        read (name(index(self%key(k)%name, "#"):), *) entry
        earlier = sum(self%numbered_line, mask=self%numbered_key == k .and. self%number == entry)
      end if
      if (earlier > 0) then
        call fail_at(self, number, "'"//name//"' was already given in line "//to_text(earlier), error)
        exit
      end if
      call check_value(self, self%key(k), name, value, number, error)
      if (allocated(error)) exit
      if (index(self%key(k)%name, "#") > 0) then
        self%numbered_key = [self%numbered_key, k]
        self%number = [self%number, entry]
        self%numbered_line = [self%numbered_line, number]
        self%numbered_value = [character(len=len(self%value)) :: self%numbered_value, value]
        cycle
      end if
      self%value(k) = value
      self%line(k) = number
    end do
    close (unit)
    if (.not. allocated(error) .and. status > 0) &
      call fail(error, exit_bad_input, path//": line "//to_text(number + 1)//" cannot be read; is this a text file?")
  end subroutine read_control

  !> A name of a section at its full length.
  pure function padded(name)
    character(len=*), intent(in) :: name
    character(len=section_length) :: padded
    padded = name
  end function padded

  !> Tabulators and carriage returns as blanks.
  pure function without_controls(line) result(clean)
    character(len=*), intent(in) :: line
    character(len=len(line)) :: clean
    integer :: i
    clean = line
    do i = 1, len(line)
      if (iachar(line(i:i)) < 32) clean(i:i) = " "
    end do
  end function without_controls

  !> Refuse a section that the table does not have.
  subroutine check_section(self, section, number, error)
    class(control_file_t), intent(inout) :: self
    character(len=*), intent(in) :: section
    integer, intent(in) :: number
    type(error_t), allocatable, intent(out) :: error
    call self%fail_at(number, "section ["//section//"] does not exist"// &
                      suggestion(section, self%key%section, "[", "]"), error)
  end subroutine check_section

  !> Refuse a key that the table does not have.
  subroutine take_unknown(self, section, name, value, number, error)
    class(control_file_t), intent(inout) :: self
    character(len=*), intent(in) :: section, name, value
    integer, intent(in) :: number
    type(error_t), allocatable, intent(out) :: error
    associate (given => value)
    end associate
    call self%fail_at(number, "key '"//name//"' does not exist in ["//section//"]"// &
                      suggestion(name, pack(self%key%name, lower_case(self%key%section) == lower_case(section)), &
                                 "'", "'"), error)
  end subroutine take_unknown

  !> Why a word is none of a choice.
  pure function unknown_word(self, key, value) result(reason)
    class(control_file_t), intent(in) :: self
    type(key_t), intent(in) :: key
    character(len=*), intent(in) :: value
    character(len=:), allocatable :: reason
    associate (given => value, table => self)
    end associate
    reason = "is not one of: "//trim(key%allowed)
  end function unknown_word

  !> Check one value against the kind and range of its key; `name`: as the file has it.
  subroutine check_value(self, key, name, value, number, error)
    class(control_file_t), intent(in) :: self
    type(key_t), intent(in) :: key
    character(len=*), intent(in) :: name, value
    integer, intent(in) :: number
    type(error_t), allocatable, intent(out) :: error
    integer(int64) :: whole
    real(real64) :: real_value, smallest, largest
    integer :: status, begin, length
    character(len=:), allocatable :: say, range

    say = name//" = "//value
    if (value == "") then
      call fail_at(self, number, "'"//name//"' has no value", error)
    else if (len(value) > len(self%value)) then
      call fail_at(self, number, "the value of '"//name//"' is longer than "// &
                   to_text(len(self%value))//" letters", error)
    else if (key%kind == is_choice) then
      if (index(" "//trim(key%allowed)//" ", " "//upper_case(value)//" ") == 0) &
        call fail_at(self, number, "'"//say//"' "//self%unknown_word(key, value), error)
    else if (key%kind == is_integer) then
      status = verify(value, "+-0123456789")
      if (status == 0) read (value, *, iostat=status) whole
      call key%range(smallest, largest, range)
      if (status /= 0) then
        call fail_at(self, number, "'"//say//"' is not a whole number", error)
      else if (whole < smallest .or. whole > largest) then
        call fail_at(self, number, "'"//say//"' must be "//range, error)
      end if
    else if (key%kind == is_reals) then
      begin = 1
      do while (begin <= len(value) .and. .not. allocated(error))
        length = index(value(begin:)//" ", " ") - 1
        if (length > 0) call check_real(value(begin:begin + length - 1))
        begin = begin + length + 1
      end do
    else if (key%kind == is_real .or. (key%default == "auto" .and. lower_case(value) /= "auto")) then
      call check_real(value)
    end if
  contains
    subroutine check_real(word)
      character(len=*), intent(in) :: word
      status = verify(word, "+-0123456789.eEdD")
      if (status == 0) read (word, *, iostat=status) real_value
      call key%range(smallest, largest, range)
      if (status /= 0) then
        call fail_at(self, number, "'"//say//"' is not a number", error)
      else if (.not. real_value >= smallest .or. real_value > min(largest, 1.0e30_real64)) then
        call fail_at(self, number, "'"//say//"' must be a number, "//range, error)
      end if
    end subroutine check_real
  end subroutine check_value

  !> Fail with the file and a line of it before the message.
  subroutine fail_at(self, line, message, error)
    class(control_file_t), intent(in) :: self
    integer, intent(in) :: line
    character(len=*), intent(in) :: message
    type(error_t), allocatable, intent(out) :: error
    call fail(error, exit_bad_input, self%path//", line "//to_text(line)//": "//message)
  end subroutine fail_at

  !> Fail with the name of the file before the message.
  subroutine refuse_file(self, message, error)
    class(control_file_t), intent(in) :: self
    character(len=*), intent(in) :: message
    type(error_t), allocatable, intent(out) :: error
    call fail(error, exit_bad_input, self%path//": "//message)
  end subroutine refuse_file

  !> Refuse the value of a key for a reason found later.
  subroutine refuse(self, section, name, reason, error)
    class(control_file_t), intent(in) :: self
    character(len=*), intent(in) :: section, name, reason
    type(error_t), allocatable, intent(out) :: error
    integer :: k
    k = position_of(self%key, section, name)
    if (self%line(k) > 0) then
      call fail_at(self, self%line(k), name//" = "//trim(self%value(k))//" "//reason, error)
    else
      call fail(error, exit_bad_input, self%path//": "//name//" (default "//trim(self%value(k))//") "//reason)
    end if
  end subroutine refuse

  !> Fail unless a key that a command cannot do without is there.
  subroutine require(self, section, name, error)
    class(control_file_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    type(error_t), allocatable, intent(out) :: error
    if (.not. self%given(section, name)) &
      call fail(error, exit_bad_input, self%path//": '"//name//"' is missing; add it to ["//section//"]")
  end subroutine require

  !> Whether the file gives this key.
  pure logical function given(self, section, name)
    class(control_file_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    given = self%line(position_of(self%key, section, name)) > 0
  end function given

  !> Whether the file gives a key another value than its default, which the help writes down for all keys; numbers are
  !> the same however they are written.
  pure logical function differs(self, section, name)
    class(control_file_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    real(real64) :: value, default
    integer :: k, status
    k = position_of(self%key, section, name)
    differs = .false.
    if (self%line(k) == 0) return
    differs = upper_case(trim(self%value(k))) /= upper_case(trim(self%key(k)%default))
    if (all(self%key(k)%kind /= [is_integer, is_real])) return
    read (self%value(k), *, iostat=status) value
    if (status == 0) read (self%key(k)%default, *, iostat=status) default
    if (status == 0) differs = value < default .or. value > default
  end function differs

  !> The value of entry `number` of a key that ends with # in the table; its default when it is not given.
  pure function numbered(self, section, name, number) result(value)
    class(control_file_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    integer, intent(in) :: number
    character(len=:), allocatable :: value
    integer :: k, i
    k = position_of(self%key, section, name//"#")
    value = trim(self%key(k)%default)
    do i = 1, size(self%number)
      if (self%numbered_key(i) == k .and. self%number(i) == number) value = trim(self%numbered_value(i))
    end do
    if (self%key(k)%kind == is_choice) value = upper_case(value)
  end function numbered

  !> The numbers of such an entry whose key is a list of them; none where it is not given and has no default.
  pure function numbered_reals(self, section, name, number) result(values)
    class(control_file_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    integer, intent(in) :: number
    real(real64), allocatable :: values(:)
    character(len=:), allocatable :: list
    list = self%numbered(section, name, number)
    allocate (values(words(list)))
    read (list, *) values
  end function numbered_reals

  !> Number of words, separated by blanks.
  pure integer function words(text)
    character(len=*), intent(in) :: text
    integer :: i
    words = 0
    do i = 1, len_trim(text)
      if (text(i:i) /= " " .and. (i == 1 .or. text(max(1, i - 1):max(1, i - 1)) == " ")) words = words + 1
    end do
  end function words

  !> Refuse the value of such an entry.
  subroutine refuse_numbered(self, section, name, number, reason, error)
    class(control_file_t), intent(in) :: self
    character(len=*), intent(in) :: section, name, reason
    integer, intent(in) :: number
    type(error_t), allocatable, intent(out) :: error
    integer :: k, i
    k = position_of(self%key, section, name//"#")
    do i = 1, size(self%number)
      if (self%numbered_key(i) /= k .or. self%number(i) /= number) cycle
      call fail_at(self, self%numbered_line(i), name//to_text(number)//" = "//trim(self%numbered_value(i))//" "// &
                   reason, error)
      return
    end do
    call fail(error, exit_bad_input, self%path//": "//name//to_text(number)//" in ["//section//"] "//reason)
  end subroutine refuse_numbered

  pure function get_text(self, section, name) result(value)
    class(control_file_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    character(len=:), allocatable :: value
    integer :: k
    k = position_of(self%key, section, name)
    value = trim(self%value(k))
    if (self%key(k)%kind == is_choice) value = upper_case(value)
  end function get_text

  pure integer(int64) function get_integer(self, section, name) result(value)
    class(control_file_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    read (self%value(position_of(self%key, section, name)), *) value
  end function get_integer

  pure real(real64) function get_real(self, section, name) result(value)
    class(control_file_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    read (self%value(position_of(self%key, section, name)), *) value
  end function get_real

  pure logical function yes(self, section, name)
    class(control_file_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    yes = self%text(section, name) == "YES"
  end function yes

  !> Which of the allowed words of a key, counted from 1, its value is.
  pure integer function choice(self, section, name)
    class(control_file_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    character(len=:), allocatable :: words
    integer :: k, place, i
    k = position_of(self%key, section, name)
    words = " "//trim(self%key(k)%allowed)//" "
    place = index(words, " "//self%text(section, name)//" ")
    choice = count([(words(i:i) == " ", i=1, place)])
  end function choice

  !> The numbers that a key that ends with # in the table is given with, in the order of the file.
  pure function entries(self, section, name) result(number)
    class(control_file_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    integer, allocatable :: number(:)
    number = pack(self%number, self%numbered_key == position_of(self%key, section, name//"#"))
  end function entries

  !> Whether the file has this section.
  pure logical function has_section(self, name)
    class(control_file_t), intent(in) :: self
    character(len=*), intent(in) :: name
    has_section = any(self%section == lower_case(name))
  end function has_section

end module base_control_file
