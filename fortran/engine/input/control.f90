!> The control file of the engine as text, and what of it decides a trajectory. What keys mean, and whether they go
!> together, is for the modules `settings_reader` and `settings_checks`; no other module asks for a key.
module control
  use base_control_file, only: control_file_t, value_length
  use base_control_keys, only: is_choice, upper_case
  use base_error, only: error_t
  use base_text, only: to_text
  use control_keys, only: bound_keys, foreign_files, free_keys, keys
  implicit none
  private
  public :: control_t, line_length

  !> Longest line of `deciding`; a multiple of 8.
  integer, parameter :: line_length = value_length + 80

  type, extends(control_file_t) :: control_t
  contains
    procedure :: read => read_control
    procedure :: deciding
    procedure :: wants_dynamics
    procedure :: wants_minimisation
  end type control_t

contains

  !> Read a control file; anything not in the table, or of the wrong kind, is refused with file and line.
  subroutine read_control(self, path, error)
    class(control_t), intent(out) :: self
    character(len=*), intent(in) :: path
    type(error_t), allocatable, intent(out) :: error
    call self%read_with(keys, path, error, foreign_files, "names a file of another program: run `chromabuild import` on "// &
                        "it and give its topology.h5 as topologyfile and its shards/bricks.txt as shardfile")
  end subroutine read_control

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

end module control
