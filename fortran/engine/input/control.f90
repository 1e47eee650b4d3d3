!> The control file as text: sections, keys and values, checked against the table of keys one by one. What they mean, and
!> whether they go together, is for the modules `settings_reader` and `settings_checks`; no other module asks for a key.
module control
  use base_kinds, only: int64, real64
  use base_error, only: error_t, exit_bad_input, fail
  use base_text, only: lower_case, read_line, to_text
  use control_keys, only: bound_keys, free_keys, is_choice, is_integer, is_real, key_t, keys, position_of, suggestion, &
                          upper_case
  use genesis_keys, only: about_word, genesis_keys_table, genesis_position, is_harmless, is_ignored, is_imported
  implicit none
  private
  public :: control_t, line_length

  !> Longest value, and longest line of `deciding`; multiples of 8.
  integer, parameter :: value_length = 4096, line_length = value_length + 80

  type :: control_t
    character(len=:), allocatable, private :: path
    character(len=value_length), allocatable, private :: value(:)
    !> Line where the key stands, 0 = default.
    integer, allocatable, private :: line(:)
    !> Keys that end with a number, e.g. group2: place in the table, number, value and line.
    integer, allocatable, private :: numbered_key(:), number(:), numbered_line(:)
    character(len=value_length), allocatable, private :: numbered_value(:)
    logical, private :: dynamics_section = .false., minimize_section = .false.
    !> Keys of GENESIS that have no effect, as "[SECTION] key", and its files of other programs, as "key = file".
    character(len=40), allocatable :: ignored(:)
    character(len=value_length), allocatable :: imported(:)
    !> Line of the first of these.
    integer, private :: imported_line = 0
  contains
    procedure :: read => read_control
    procedure :: text => get_text
    procedure :: integer => get_integer
    procedure :: real => get_real
    procedure :: yes
    procedure :: choice
    procedure :: given
    procedure :: differs
    procedure :: numbered
    procedure :: entries
    procedure :: deciding
    procedure :: refuse_numbered
    procedure :: require
    procedure :: refuse
    procedure :: refuse_file
    procedure :: wants_dynamics
    procedure :: wants_minimisation
    procedure :: take
    procedure :: imports
    procedure :: refuse_imports
  end type control_t

contains

  !> Read a control file; anything not in the table, or of the wrong kind, is refused with file and line.
  subroutine read_control(self, path, error)
    class(control_t), intent(out) :: self
    character(len=*), intent(in) :: path
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: line, section, name, value, begun
    integer :: unit, status, number, equals, k, earlier, entry

    self%path = path
    allocate (self%value(size(keys)), self%line(size(keys)))
    self%value = keys%default
    self%line = 0
    allocate (self%numbered_key(0), self%number(0), self%numbered_line(0), self%numbered_value(0), self%ignored(0), &
              self%imported(0))
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
        call check_section(self, section, number, error)
        if (allocated(error)) exit
        if (lower_case(section) == "dynamics") self%dynamics_section = .true.
        if (lower_case(section) == "minimize") self%minimize_section = .true.
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
      k = position_of(section, name)
      if (k == 0) then
        call take_foreign(self, section, name, value, number, error)
        if (allocated(error)) exit
        cycle
      end if
      if (keys(k)%allowed == "YES NO" .and. lower_case(value) == "true") value = "YES"
      if (keys(k)%allowed == "YES NO" .and. lower_case(value) == "false") value = "NO"
      earlier = self%line(k)
      if (index(keys(k)%name, "#") > 0) then
        read (name(index(keys(k)%name, "#"):), *) entry
        earlier = sum(self%numbered_line, mask=self%numbered_key == k .and. self%number == entry)
      end if
      if (earlier > 0) then
        call fail_at(self, number, "'"//name//"' was already given in line "//to_text(earlier), error)
        exit
      end if
      call check_value(self, keys(k), value, number, error)
      if (allocated(error)) exit
      if (index(keys(k)%name, "#") > 0) then
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

  !> Refuse a section that does not exist here, unless it is one of GENESIS whose keys may be harmless.
  subroutine check_section(self, section, number, error)
    type(control_t), intent(in) :: self
    character(len=*), intent(in) :: section
    integer, intent(in) :: number
    type(error_t), allocatable, intent(out) :: error
    integer :: k
    if (any(lower_case(keys%section) == lower_case(section))) return
    do k = 1, size(genesis_keys_table)
      associate (key => genesis_keys_table(k))
        if (key%section /= upper_case(section)) cycle
        if (key%name == "*") call fail_at(self, number, "chromamd lacks section ["//section//"] of GENESIS, which "// &
                                          trim(key%about), error)
        return
      end associate
    end do
    call fail_at(self, number, "section ["//section//"] does not exist"// &
                 suggestion(section, keys%section, "[", "]"), error)
  end subroutine check_section

  !> Take note of a key of GENESIS that is not among those of this program; refuse it where it asks for what is lacking.
  subroutine take_foreign(self, section, name, value, number, error)
    type(control_t), intent(inout) :: self
    character(len=*), intent(in) :: section, name, value
    integer, intent(in) :: number
    type(error_t), allocatable, intent(out) :: error
    integer :: k
    k = genesis_position(section, name)
    if (k == 0) then
      call fail_at(self, number, "key '"//name//"' does not exist in ["//section//"]"// &
                   suggestion(name, pack(keys%name, lower_case(keys%section) == lower_case(section)), "'", "'"), error)
      return
    end if
    associate (key => genesis_keys_table(k))
      if (key%class == is_imported) then
        if (value == "") call fail_at(self, number, "'"//name//"' has no value", error)
        self%imported = [character(len=value_length) :: self%imported, name//" = "//value]
        if (self%imported_line == 0) self%imported_line = number
      else if (key%class == is_ignored .or. is_harmless(key, value)) then
        self%ignored = [character(len=40) :: self%ignored, "["//upper_case(section)//"] "//name]
      else
        call fail_at(self, number, "chromamd lacks '"//name//"' of GENESIS, which "//trim(key%about), error)
      end if
    end associate
  end subroutine take_foreign

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

  !> Check one value against the kind and range of its key.
  subroutine check_value(self, key, value, number, error)
    type(control_t), intent(in) :: self
    type(key_t), intent(in) :: key
    character(len=*), intent(in) :: value
    integer, intent(in) :: number
    type(error_t), allocatable, intent(out) :: error
    integer(int64) :: whole
    real(real64) :: real_value, smallest
    integer :: status
    character(len=:), allocatable :: say

    say = trim(key%name)//" = "//value
    if (value == "") then
      call fail_at(self, number, "'"//trim(key%name)//"' has no value", error)
    else if (len(value) > len(self%value)) then
      call fail_at(self, number, "the value of '"//trim(key%name)//"' is longer than "// &
                   to_text(len(self%value))//" letters", error)
    else if (key%kind == is_choice) then
      if (index(" "//trim(key%allowed)//" ", " "//upper_case(value)//" ") == 0) &
        call fail_at(self, number, "'"//say//"' "//unknown_word(key, value), error)
    else if (key%kind == is_integer) then
      status = verify(value, "+-0123456789")
      if (status == 0) read (value, *, iostat=status) whole
      read (key%allowed, *) smallest
      if (status /= 0) then
        call fail_at(self, number, "'"//say//"' is not a whole number", error)
      else if (whole < smallest) then
        call fail_at(self, number, "'"//say//"' must be at least "//trim(key%allowed), error)
      end if
    else if (key%kind == is_real .or. (key%default == "auto" .and. lower_case(value) /= "auto")) then
      status = verify(value, "+-0123456789.eEdD")
      if (status == 0) read (value, *, iostat=status) real_value
      smallest = 0.0_real64
      if (key%allowed /= "") read (key%allowed, *) smallest
      if (status /= 0) then
        call fail_at(self, number, "'"//say//"' is not a number", error)
      else if (.not. real_value >= smallest .or. real_value > 1.0e30_real64) then
        call fail_at(self, number, "'"//say//"' must be a number of at least "//trim(key%allowed), error)
      end if
    end if
  end subroutine check_value

  !> Why a word is none of a choice.
  pure function unknown_word(key, value) result(reason)
    type(key_t), intent(in) :: key
    character(len=*), intent(in) :: value
    character(len=:), allocatable :: reason
    reason = about_word(trim(key%section), trim(key%name), value)
    if (reason == "") then
      reason = "is not one of: "//trim(key%allowed)
    else
      reason = reason//" (of "//trim(key%allowed)//")"
    end if
  end function unknown_word

  !> Fail with the file and a line of it before the message.
  subroutine fail_at(self, line, message, error)
    type(control_t), intent(in) :: self
    integer, intent(in) :: line
    character(len=*), intent(in) :: message
    type(error_t), allocatable, intent(out) :: error
    call fail(error, exit_bad_input, self%path//", line "//to_text(line)//": "//message)
  end subroutine fail_at

  !> Fail with the name of the file before the message.
  subroutine refuse_file(self, message, error)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: message
    type(error_t), allocatable, intent(out) :: error
    call fail(error, exit_bad_input, self%path//": "//message)
  end subroutine refuse_file

  !> Refuse the value of a key for a reason found later.
  subroutine refuse(self, section, name, reason, error)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name, reason
    type(error_t), allocatable, intent(out) :: error
    integer :: k
    k = position_of(section, name)
    if (self%line(k) > 0) then
      call fail_at(self, self%line(k), name//" = "//trim(self%value(k))//" "//reason, error)
    else
      call fail(error, exit_bad_input, self%path//": "//name//" (default "//trim(self%value(k))//") "//reason)
    end if
  end subroutine refuse

  !> Fail unless a key that a command cannot do without is there.
  subroutine require(self, section, name, error)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    type(error_t), allocatable, intent(out) :: error
    if (.not. self%given(section, name)) &
      call fail(error, exit_bad_input, self%path//": '"//name//"' is missing; add it to ["//section//"]")
  end subroutine require

  !> Whether the file gives this key.
  pure logical function given(self, section, name)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    given = self%line(position_of(section, name)) > 0
  end function given

  !> Whether the file gives a key another value than its default, which `chromamd help` writes down for all keys.
  pure logical function differs(self, section, name)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    integer :: k
    k = position_of(section, name)
    differs = .false.
    if (self%line(k) > 0) differs = upper_case(trim(self%value(k))) /= upper_case(trim(keys(k)%default))
  end function differs

  !> The value of entry `number` of a key that ends with # in the table; its default when it is not given.
  pure function numbered(self, section, name, number) result(value)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    integer, intent(in) :: number
    character(len=:), allocatable :: value
    integer :: k, i
    k = position_of(section, name//"#")
    value = trim(keys(k)%default)
    do i = 1, size(self%number)
      if (self%numbered_key(i) == k .and. self%number(i) == number) value = trim(self%numbered_value(i))
    end do
    if (keys(k)%kind == is_choice) value = upper_case(value)
  end function numbered

  !> Refuse the value of such an entry.
  subroutine refuse_numbered(self, section, name, number, reason, error)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name, reason
    integer, intent(in) :: number
    type(error_t), allocatable, intent(out) :: error
    integer :: k, i
    k = position_of(section, name//"#")
    do i = 1, size(self%number)
      if (self%numbered_key(i) /= k .or. self%number(i) /= number) cycle
      call fail_at(self, self%numbered_line(i), name//to_text(number)//" = "//trim(self%numbered_value(i))//" "// &
                   reason, error)
      return
    end do
    call fail(error, exit_bad_input, self%path//": "//name//to_text(number)//" in ["//section//"] "//reason)
  end subroutine refuse_numbered

  pure function get_text(self, section, name) result(value)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    character(len=:), allocatable :: value
    integer :: k
    k = position_of(section, name)
    value = trim(self%value(k))
    if (keys(k)%kind == is_choice) value = upper_case(value)
  end function get_text

  pure integer(int64) function get_integer(self, section, name) result(value)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    read (self%value(position_of(section, name)), *) value
  end function get_integer

  pure real(real64) function get_real(self, section, name) result(value)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    read (self%value(position_of(section, name)), *) value
  end function get_real

  pure logical function yes(self, section, name)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    yes = self%text(section, name) == "YES"
  end function yes

  !> Which of the allowed words of a key, counted from 1, its value is.
  pure integer function choice(self, section, name)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    character(len=:), allocatable :: words
    integer :: k, place, i
    k = position_of(section, name)
    words = " "//trim(keys(k)%allowed)//" "
    place = index(words, " "//self%text(section, name)//" ")
    choice = count([(words(i:i) == " ", i=1, place)])
  end function choice

  !> The numbers that a key that ends with # in the table is given with, in the order of the file.
  pure function entries(self, section, name) result(number)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    integer, allocatable :: number(:)
    number = pack(self%number, self%numbered_key == position_of(section, name//"#"))
  end function entries

  !> What decides the trajectory and differs from its default, as "SECTION key = value"; other lines, another trajectory.
  function deciding(self) result(lines)
    class(control_t), intent(in) :: self
    character(len=line_length), allocatable :: lines(:)
    integer :: k, i
    logical :: length_decides
    allocate (lines(0))
    ! What changes from the start to the end of a run does so the slower, the longer the run.
    length_decides = self%given("ENSEMBLE", "temperature_end") .or. size(self%entries("RESTRAINTS", "constant_end")) > 0
    if (self%minimize_section) lines = [character(len=line_length) :: "MINIMIZE"]
    do k = 1, size(keys)
      if (any(keys(k)%section == [character(len=12) :: "INPUT", "COMM", "HEALTH"])) cycle
      if (any(keys(k)%name == free_keys) .and. .not. (length_decides .and. keys(k)%name == "nsteps")) cycle
      if (keys(k)%section == "OUTPUT" .and. .not. any(keys(k)%name == bound_keys)) cycle
      if (index(keys(k)%name, "#") == 0) then
        if (self%line(k) > 0) call add(self%value(k), "")
      else
        do i = 1, size(self%number)
          if (self%numbered_key(i) == k) call add(self%numbered_value(i), to_text(self%number(i)))
        end do
      end if
    end do
  contains
    subroutine add(value, number)
      character(len=*), intent(in) :: value, number
      character(len=line_length) :: line
      character(len=:), allocatable :: name, text
      name = trim(keys(k)%name)
      if (number /= "") name = name(:len(name) - 1)//number
      text = trim(value)
      if (keys(k)%kind == is_choice) text = upper_case(text)
      if (text == keys(k)%default) return
      line = trim(keys(k)%section)//" "//name//" = "//text
      lines = [character(len=line_length) :: lines, line]
    end subroutine add
  end function deciding

  !> Give a key a value that an import has found.
  subroutine take(self, section, name, value)
    class(control_t), intent(inout) :: self
    character(len=*), intent(in) :: section, name, value
    integer :: k
    k = position_of(section, name)
    if (k == 0) return
    self%value(k) = value
    if (self%line(k) == 0) self%line(k) = self%imported_line
  end subroutine take

  !> Refuse the files of other programs that it names.
  subroutine refuse_imports(self, reason, error)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: reason
    type(error_t), allocatable, intent(out) :: error
    call fail_at(self, self%imported_line, "'"//trim(self%imported(1))//"': "//reason, error)
  end subroutine refuse_imports

  !> All that decides what an import makes, as "key = value".
  function imports(self) result(lines)
    class(control_t), intent(in) :: self
    character(len=value_length), allocatable :: lines(:)
    character(len=*), parameter :: deciding_keys(*) = [character(len=20) :: "INPUT rstfile", "INPUT reffile", &
      "BOUNDARY type", "BOUNDARY box_size_x", "BOUNDARY box_size_y", "BOUNDARY box_size_z"]
    character(len=20) :: name
    integer :: i, k, blank
    lines = self%imported
    do i = 1, size(deciding_keys)
      blank = index(deciding_keys(i), " ")
      name = deciding_keys(i)(blank + 1:)
      k = position_of(deciding_keys(i)(:blank - 1), trim(name))
      if (self%line(k) > 0) lines = [character(len=value_length) :: lines, trim(name)//" = "//trim(self%value(k))]
    end do
  end function imports

  !> Whether there is a section [DYNAMICS].
  pure logical function wants_dynamics(self)
    class(control_t), intent(in) :: self
    wants_dynamics = self%dynamics_section
  end function wants_dynamics

  !> Whether there is a section [MINIMIZE].
  pure logical function wants_minimisation(self)
    class(control_t), intent(in) :: self
    wants_minimisation = self%minimize_section
  end function wants_minimisation

end module control
