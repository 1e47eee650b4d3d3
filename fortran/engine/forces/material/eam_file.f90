!> Files of embedded-atom potentials: funcfl (one element, pairs by an effective charge Z(r): phi = 27.2 eV * 0.529 angstrom
!> Z^2/r) and setfl (any number of elements, r phi(r) of each pair). Their units are eV and angstrom; what is handed out is in
!> kcal/mol and angstrom.
module eam_file
  use base_kinds, only: real64
  use base_error, only: error_t, exit_bad_input, fail
  use hermite_table, only: hermite_table_t
  use base_text, only: read_line, to_text
  implicit none
  private
  public :: eam_file_t

  !> kcal/mol in one eV: the elementary charge times Avogadro's number over 4184 J.
  real(real64), parameter :: electron_volt = 1.602176634e-19_real64*6.02214076e23_real64/4184.0_real64
  !> Hartree and Bohr radius as the format rounds them.
  real(real64), parameter :: charge_squared = 27.2_real64*0.529_real64

  type :: eam_file_t
    !> Embedding energy by density; density, and distance times pair energy, by distance.
    type(hermite_table_t) :: embedding, density, pair
    real(real64) :: cutoff = 0.0_real64
    !> Atomic mass units.
    real(real64) :: mass = 0.0_real64
  contains
    procedure :: read => read_eam
  end type eam_file_t

contains

  !> Read the potential of one element; `element` is its name in a setfl file of several, else it may be empty.
  subroutine read_eam(self, path, element, error)
    class(eam_file_t), intent(out) :: self
    character(len=*), intent(in) :: path, element
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: line
    integer :: unit, status, k, n_density, n_distance
    real(real64) :: density_step, distance_step, number

    open (newunit=unit, file=path, status="old", action="read", iostat=status)
    if (status /= 0) then
      call fail(error, exit_bad_input, path//": this potential cannot be opened; check the name")
      return
    end if
    do k = 1, 3
      call read_line(unit, line, status)
      if (status /= 0) exit
      ! In a funcfl file the second line begins with two numbers: atomic number and mass.
      if (k == 2) read (line, *, iostat=status) number, self%mass
      if (k == 2 .and. status /= 0) self%mass = 0.0_real64
      status = 0
    end do
    if (status == 0 .and. self%mass > 0.0_real64) then
      read (line, *, iostat=status) n_density, density_step, n_distance, distance_step, self%cutoff
    else
      status = 1
    end if
    if (status == 0) then
      call check_sizes(path, 3, n_density, density_step, n_distance, distance_step, self%cutoff, error)
      if (.not. allocated(error)) call read_funcfl(self, unit, path, n_density, density_step, n_distance, distance_step, &
                                                   error)
    else
      call read_setfl(self, unit, path, element, error)
    end if
    close (unit)
  end subroutine read_eam

  !> Refuse tables that cannot be interpolated or end before the cutoff.
  subroutine check_sizes(path, line, n_density, density_step, n_distance, distance_step, cutoff, error)
    character(len=*), intent(in) :: path
    integer, intent(in) :: line, n_density, n_distance
    real(real64), intent(in) :: density_step, distance_step, cutoff
    type(error_t), allocatable, intent(inout) :: error
    if (n_density >= 5 .and. n_distance >= 5 .and. density_step > 0.0_real64 .and. distance_step > 0.0_real64 .and. &
        cutoff > 0.0_real64 .and. cutoff <= n_distance*distance_step) return
    call fail(error, exit_bad_input, path//", line "//to_text(line)//": expected numbers of densities and distances of at "// &
              "least 5, their positive steps, and a cutoff within the table; this is no funcfl or setfl file, or it is damaged")
  end subroutine check_sizes

  !> The tables of a funcfl file, after its third line.
  subroutine read_funcfl(self, unit, path, n_density, density_step, n_distance, distance_step, error)
    class(eam_file_t), intent(inout) :: self
    integer, intent(in) :: unit, n_density, n_distance
    character(len=*), intent(in) :: path
    real(real64), intent(in) :: density_step, distance_step
    type(error_t), allocatable, intent(inout) :: error
    real(real64) :: value(n_density + 2*n_distance)
    integer :: status
    read (unit, *, iostat=status) value
    if (status /= 0) then
      call fail_short(path, size(value), "its third line", error)
      return
    end if
    associate (charge => value(n_density + 1:n_density + n_distance))
      call self%embedding%create(density_step, electron_volt*value(:n_density))
      call self%pair%create(distance_step, electron_volt*charge_squared*charge**2)
      call self%density%create(distance_step, value(n_density + n_distance + 1:))
    end associate
  end subroutine read_funcfl

  !> A setfl file after its third line.
  subroutine read_setfl(self, unit, path, element, error)
    class(eam_file_t), intent(inout) :: self
    integer, intent(in) :: unit
    character(len=*), intent(in) :: path, element
    type(error_t), allocatable, intent(inout) :: error
    character(len=:), allocatable :: line
    character(len=8), allocatable :: name(:)
    real(real64), allocatable :: value(:)
    real(real64) :: density_step, distance_step, number, mass
    integer :: status, n, k, chosen, n_density, n_distance

    call read_line(unit, line, status)
    if (status == 0) read (line, *, iostat=status) n
    if (status == 0 .and. n > 0 .and. n < 1000) then
      allocate (name(n))
      read (line, *, iostat=status) n, name
    else
      status = 1
    end if
    if (status /= 0) then
      call fail(error, exit_bad_input, path//", line 4: expected the number of elements and their names; this is no funcfl "// &
                "or setfl file, or it is damaged")
      return
    end if
    chosen = findloc(name == element, .true., dim=1)
    if (element == "" .and. n == 1) chosen = 1
    if (chosen == 0) then
      line = ""
      do k = 1, n
        line = line//" "//trim(name(k))
      end do
      call fail(error, exit_bad_input, path//": has no element '"//element//"'; give eam_element as one of:"//line)
      return
    end if
    call read_line(unit, line, status)
    if (status == 0) read (line, *, iostat=status) n_density, density_step, n_distance, distance_step, self%cutoff
    if (status /= 0) n_density = 0
    call check_sizes(path, 5, n_density, density_step, n_distance, distance_step, self%cutoff, error)
    if (allocated(error)) return
    do k = 1, n
      call read_line(unit, line, status)
      if (status == 0) read (line, *, iostat=status) number, mass
      if (allocated(value)) deallocate (value)
      allocate (value(n_density + n_distance))
      if (status == 0) read (unit, *, iostat=status) value
      if (status /= 0) then
        call fail_short(path, size(value), "the line of element "//trim(name(k)), error)
        return
      end if
      if (k /= chosen) cycle
      self%mass = mass
      call self%embedding%create(density_step, electron_volt*value(:n_density))
      call self%density%create(distance_step, value(n_density + 1:))
    end do
    ! Pairs (1,1), (2,1), (2,2), (3,1), ...
    deallocate (value)
    allocate (value(n_distance*chosen*(chosen + 1)/2))
    read (unit, *, iostat=status) value
    if (status /= 0) then
      call fail_short(path, size(value), "the elements", error)
      return
    end if
    call self%pair%create(distance_step, electron_volt*value(size(value) - n_distance + 1:))
  end subroutine read_setfl

  subroutine fail_short(path, n, place, error)
    character(len=*), intent(in) :: path, place
    integer, intent(in) :: n
    type(error_t), allocatable, intent(inout) :: error
    call fail(error, exit_bad_input, path//": expected "//to_text(n)//" numbers behind "//place//"; the file is damaged")
  end subroutine fail_short

end module eam_file
