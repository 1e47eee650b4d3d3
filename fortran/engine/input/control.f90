!> The control file of the engine as text, and what of it decides a trajectory. What keys mean, and whether they go
!> together, is for the modules `settings_reader` and `settings_checks`; no other module asks for a key.
module control
  use base_control_file, only: control_file_t, value_length
  use base_control_keys, only: is_choice, key_t, position_of, upper_case
  use base_error, only: error_t
  use base_text, only: to_text
  use control_keys, only: bound_keys, free_keys, keys
  use genesis_keys, only: about_word, genesis_keys_table, genesis_position, is_harmless, is_ignored, is_imported
  implicit none
  private
  public :: control_t, line_length

  !> Longest line of `deciding`; a multiple of 8.
  integer, parameter :: line_length = value_length + 80

  type, extends(control_file_t) :: control_t
    !> Keys of GENESIS that have no effect, as "[SECTION] key", and its files of other programs, as "key = file".
    character(len=40), allocatable :: ignored(:)
    character(len=value_length), allocatable :: imported(:)
    !> Line of the first of these.
    integer, private :: imported_line = 0
  contains
    procedure :: read => read_control
    procedure :: check_section
    procedure :: take_unknown
    procedure :: unknown_word
    procedure :: deciding
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
    call self%read_with(keys, path, error)
    if (.not. allocated(self%ignored)) allocate (self%ignored(0))
    if (.not. allocated(self%imported)) allocate (self%imported(0))
  end subroutine read_control

  !> Refuse a section that does not exist here, unless it is one of GENESIS whose keys may be harmless.
  subroutine check_section(self, section, number, error)
    class(control_t), intent(inout) :: self
    character(len=*), intent(in) :: section
    integer, intent(in) :: number
    type(error_t), allocatable, intent(out) :: error
    integer :: k
    do k = 1, size(genesis_keys_table)
      associate (key => genesis_keys_table(k))
        if (key%section /= upper_case(section)) cycle
        if (key%name == "*") call self%fail_at(number, "chromamd lacks section ["//section//"] of GENESIS, which "// &
                                          trim(key%about), error)
        return
      end associate
    end do
    call self%control_file_t%check_section(section, number, error)
  end subroutine check_section

  !> Take note of a key of GENESIS that is not among those of this program; refuse it where it asks for what is lacking.
  subroutine take_unknown(self, section, name, value, number, error)
    class(control_t), intent(inout) :: self
    character(len=*), intent(in) :: section, name, value
    integer, intent(in) :: number
    type(error_t), allocatable, intent(out) :: error
    integer :: k
    k = genesis_position(section, name)
    if (k == 0) then
      call self%control_file_t%take_unknown(section, name, value, number, error)
      return
    end if
    if (.not. allocated(self%ignored)) allocate (self%ignored(0))
    if (.not. allocated(self%imported)) allocate (self%imported(0))
    associate (key => genesis_keys_table(k))
      if (key%class == is_imported) then
        if (value == "") call self%fail_at(number, "'"//name//"' has no value", error)
        self%imported = [character(len=value_length) :: self%imported, name//" = "//value]
        if (self%imported_line == 0) self%imported_line = number
      else if (key%class == is_ignored .or. is_harmless(key, value)) then
        self%ignored = [character(len=40) :: self%ignored, "["//upper_case(section)//"] "//name]
      else
        call self%fail_at(number, "chromamd lacks '"//name//"' of GENESIS, which "//trim(key%about), error)
      end if
    end associate
  end subroutine take_unknown

  !> Why a word is none of a choice.
  pure function unknown_word(self, key, value) result(reason)
    class(control_t), intent(in) :: self
    type(key_t), intent(in) :: key
    character(len=*), intent(in) :: value
    character(len=:), allocatable :: reason
    reason = about_word(trim(key%section), trim(key%name), value)
    if (reason == "") then
      reason = self%control_file_t%unknown_word(key, value)
    else
      reason = reason//" (of "//trim(key%allowed)//")"
    end if
  end function unknown_word

  !> What decides the trajectory and differs from its default, as "SECTION key = value"; other lines, another trajectory.
  function deciding(self) result(lines)
    class(control_t), intent(in) :: self
    character(len=line_length), allocatable :: lines(:)
    integer :: k, i
    logical :: length_decides
    allocate (lines(0))
    ! What changes from the start to the end of a run does so the slower, the longer the run.
    length_decides = self%given("ENSEMBLE", "temperature_end") .or. size(self%entries("RESTRAINTS", "constant_end")) > 0
    if (self%wants_minimisation()) lines = [character(len=line_length) :: "MINIMIZE"]
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

  !> Whether there is a section [DYNAMICS].
  pure logical function wants_dynamics(self)
    class(control_t), intent(in) :: self
    wants_dynamics = self%has_section("DYNAMICS")
  end function wants_dynamics

  !> Whether there is a section [MINIMIZE].
  pure logical function wants_minimisation(self)
    class(control_t), intent(in) :: self
    wants_minimisation = self%has_section("MINIMIZE")
  end function wants_minimisation

  !> Give a key a value that an import has found.
  subroutine take(self, section, name, value)
    class(control_t), intent(inout) :: self
    character(len=*), intent(in) :: section, name, value
    integer :: k
    k = position_of(keys, section, name)
    if (k == 0) return
    self%value(k) = value
    if (self%line(k) == 0) self%line(k) = self%imported_line
  end subroutine take

  !> Refuse the files of other programs that it names.
  subroutine refuse_imports(self, reason, error)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: reason
    type(error_t), allocatable, intent(out) :: error
    call self%fail_at(self%imported_line, "'"//trim(self%imported(1))//"': "//reason, error)
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
      k = position_of(keys, deciding_keys(i)(:blank - 1), trim(name))
      if (self%line(k) > 0) lines = [character(len=value_length) :: lines, trim(name)//" = "//trim(self%value(k))]
    end do
  end function imports

end module control
