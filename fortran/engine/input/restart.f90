!> Restart files: one a rank, little-endian stream. A reader can tell a damaged file: sizes, magic words and a 64-bit
!> checksum of everything before it must fit.
!>
!> Layout: `char[8] "CMDRST02"`, 16 words int64 (version: 2, or 3 where edges of the box lean, rank, ranks,
!> domains x y z, atoms of this rank, atoms of the
!> system, step, phase, time and box as float64 in words 11 to 14, 1 where there is no periodic box, bytes of the rank's
!> own trajectory at a checkpoint), `float64 ensemble[48]` (heat of the thermostat, positions and velocities of its chain,
!> 8 each; rates of strain x y z, heat of the barostat, its largest Monte Carlo move, trials and acceptances since that
!> changed, points of the PME grid x y z, heat of the thermostat that the rank alone knows of, temperature of the
!> thermostat, number of the parameters that a replica has; the rest 0), in version 3 `float64 lean[3]` (b_x/b_y,
!> c_x/c_z, c_y/c_z), `int64 id[n]`, `float64 position[n][3]`, `float64 velocity[n][3]`, `int64 checksum`.
!> Units: time ps, box and positions angstrom, velocities angstrom/ps.
module restart
  use base_kinds, only: int64, real64
  use base_box_shape, only: box_shape_t, shape_of
  use base_checksum, only: checksum_t
  use ensemble_state, only: ensemble_state_t, packed_size
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, exit_resources, fail
  use base_posix_file, only: check_size, make_folder_of, remove_file, rename_file, sync_file
  use base_text, only: to_text, with_rank
  implicit none
  private
  public :: restart_t, saved_ranks, saved_checksum, magic, phase_fresh, phase_dynamics, phase_half_step

  !> Phases: velocities are still to be drawn, or come from dynamics; or are those of half a step before (leapfrog).
  integer, parameter :: phase_fresh = 0, phase_dynamics = 1, phase_half_step = 2
  character(len=8), parameter :: magic = "CMDRST02"
  !> Files of a box whose edges lean have the second version, which programs that know no such box refuse.
  integer(int64), parameter :: version = 2, leaning_version = 3

  type :: restart_t
    !> Domains along x, y and z.
    integer :: dims(3) = 1
    !> Atoms of the whole system, and the step.
    integer(int64) :: n_system = 0, step = 0
    !> Bytes of the trajectory that this rank writes alone, at a checkpoint.
    integer(int64) :: frame_bytes = 0
    !> Of what was written or read.
    integer(int64) :: checksum = 0
    integer :: phase = phase_fresh
    !> The model stands in the middle of `box`, which is not periodic.
    logical :: is_open = .false.
    !> ps; edges, angstrom.
    real(real64) :: time = 0.0_real64, box(3) = 0.0_real64
    !> How edges lean: b_x/b_y, c_x/c_z, c_y/c_z.
    type(box_shape_t) :: shape
    type(ensemble_state_t) :: ensemble
    !> Of the atoms of this domain: global ids from 0, group after group; positions (3, n; angstrom), velocities (3, n;
    !> angstrom/ps).
    integer(int64), allocatable :: id(:)
    real(real64), allocatable :: position(:, :), velocity(:, :)
  contains
    procedure :: write => write_restart
    procedure :: put_in_place
    procedure, nopass :: discard
    procedure :: read => read_restart
  end type restart_t

contains

  !> Write the file of one rank (from 0) under a temporary name; `put_in_place`, once all ranks have written, gives it
  !> its own.
  subroutine write_restart(self, name, rank, n_ranks, error)
    class(restart_t), intent(inout) :: self
    character(len=*), intent(in) :: name
    integer, intent(in) :: rank, n_ranks
    type(error_t), allocatable, intent(out) :: error
    type(checksum_t) :: check
    integer(int64) :: header(16)
    real(real64) :: ensemble(packed_size)
    real(real64), allocatable :: lean(:)
    integer :: unit, status, closed
    ensemble = self%ensemble%packed()
    header = [merge(leaning_version, version, self%shape%leans), int(rank, int64), int(n_ranks, int64), &
              int(self%dims, int64), size(self%id, kind=int64), &
              self%n_system, self%step, int(self%phase, int64), transfer(self%time, 0_int64), &
              transfer(self%box, [0_int64]), merge(1_int64, 0_int64, self%is_open), self%frame_bytes]
    call check%add(transfer(magic, [0_int64]))
    call check%add(header)
    call check%add(transfer(ensemble, [0_int64]))
    lean = self%shape%lean(:lean_size(header(1)))
    call check%add(transfer(lean, [0_int64]))
    call check%add(self%id)
    call add_reals(check, self%position)
    call add_reals(check, self%velocity)
    self%checksum = check%value
    call make_folder_of(name, rank)
    open (newunit=unit, file=temporary(name, rank), access="stream", form="unformatted", status="replace", &
          action="write", iostat=status)
    closed = 0
    if (status == 0) then
      write (unit, iostat=status) magic, header, ensemble, lean, self%id, self%position, self%velocity, check%value
      close (unit, iostat=closed)
    end if
    if (status /= 0 .or. closed /= 0) &
      call fail(error, exit_resources, temporary(name, rank)// &
                ": cannot be written; check folder, permission and free space")
    if (.not. allocated(error)) call check_size(temporary(name, rank), file_size(header(1), header(7)), error)
    if (.not. allocated(error)) call sync_file(temporary(name, rank), error)
  end subroutine write_restart

  !> How many numbers tell how edges lean.
  pure integer function lean_size(its_version)
    integer(int64), intent(in) :: its_version
    lean_size = merge(3, 0, its_version == leaning_version)
  end function lean_size

  !> Bytes of a file of so many atoms.
  pure integer(int64) function file_size(its_version, n_atoms)
    integer(int64), intent(in) :: its_version, n_atoms
    file_size = 8 + 8*(16 + packed_size + lean_size(its_version)) + 56*n_atoms + 8
  end function file_size

  !> Rename what `write` left to its own name.
  subroutine put_in_place(self, name, rank, error)
    class(restart_t), intent(in) :: self
    character(len=*), intent(in) :: name
    integer, intent(in) :: rank
    type(error_t), allocatable, intent(out) :: error
    associate (unused => self); end associate
    call rename_file(temporary(name, rank), with_rank(name, rank), error)
  end subroutine put_in_place

  !> Remove what `write` left, because another rank has failed.
  subroutine discard(name, rank)
    character(len=*), intent(in) :: name
    integer, intent(in) :: rank
    call remove_file(temporary(name, rank))
  end subroutine discard

  pure function temporary(name, rank) result(path)
    character(len=*), intent(in) :: name
    integer, intent(in) :: rank
    character(len=:), allocatable :: path
    path = with_rank(name, rank)//".part"
  end function temporary

  !> Checksum of reals a piece at a time, without a second copy of the array.
  subroutine add_reals(check, values)
    type(checksum_t), intent(inout) :: check
    real(real64), intent(in) :: values(:, :)
    integer :: i
    do i = 1, size(values, 2)
      call check%add(transfer(values(:, i), [0_int64]))
    end do
  end subroutine add_reals

  !> The number of ranks that a set of restart files was written by, from the header of the first.
  subroutine saved_ranks(name, n_ranks, error)
    character(len=*), intent(in) :: name
    integer, intent(out) :: n_ranks
    type(error_t), allocatable, intent(out) :: error
    character(len=8) :: word
    integer(int64) :: header(3)
    integer :: unit, status
    n_ranks = 0
    open (newunit=unit, file=with_rank(name, 0), access="stream", form="unformatted", status="old", action="read", &
          iostat=status)
    if (status /= 0) then
      call fail(error, exit_bad_input, with_rank(name, 0)//": this restart file cannot be opened; check the name")
      return
    end if
    read (unit, iostat=status) word, header
    close (unit)
    if (status /= 0 .or. word /= magic .or. header(3) < 1 .or. header(3) > huge(n_ranks)) then
      call fail(error, exit_corrupt_file, with_rank(name, 0)// &
                ": not a restart file of this program, or cut short; make it again")
      return
    end if
    n_ranks = int(header(3))
  end subroutine saved_ranks

  !> The checksum at the end of the file of one rank; 0 where there is no such file.
  integer(int64) function saved_checksum(name, rank) result(value)
    character(len=*), intent(in) :: name
    integer, intent(in) :: rank
    integer(int64) :: bytes
    integer :: unit, status
    value = 0_int64
    open (newunit=unit, file=with_rank(name, rank), access="stream", form="unformatted", status="old", action="read", &
          iostat=status)
    if (status /= 0) return
    inquire (unit=unit, size=bytes)
    read (unit, pos=max(1_int64, bytes - 7), iostat=status) value
    close (unit)
    if (status /= 0) value = 0_int64
  end function saved_checksum

  !> Read the file of one rank (from 0). Fails with bad input when it is missing or made for another number of ranks,
  !> with a corrupt file when it is damaged.
  subroutine read_restart(self, name, rank, n_ranks, error)
    class(restart_t), intent(out) :: self
    character(len=*), intent(in) :: name
    integer, intent(in) :: rank, n_ranks
    type(error_t), allocatable, intent(out) :: error
    type(checksum_t) :: check
    character(len=8) :: word
    character(len=:), allocatable :: path
    integer(int64) :: header(16), stored, bytes
    real(real64) :: ensemble(packed_size), lean(3)
    integer :: unit, status, n

    path = with_rank(name, rank)
    open (newunit=unit, file=path, access="stream", form="unformatted", status="old", action="read", &
          iostat=status)
    if (status /= 0) then
      call fail(error, exit_bad_input, path//": this restart file cannot be opened; run chromamd setup with "// &
                to_text(n_ranks)//" ranks first")
      return
    end if
    inquire (unit=unit, size=bytes)
    read (unit, iostat=status) word, header
    if (status /= 0 .or. word /= magic .or. .not. any(header(1) == [version, leaning_version])) then
      call fail(error, exit_corrupt_file, path//": not a restart file of this program, or cut short; make it again")
    else if (header(7) < 0 .or. bytes /= file_size(header(1), header(7))) then
      call fail(error, exit_corrupt_file, path//": has "//to_text(bytes)//" bytes, which does not fit its "// &
                to_text(header(7))//" atoms; it is damaged, make it again")
    else if (header(3) /= n_ranks) then
      call fail(error, exit_bad_input, path//": was made for "//to_text(header(3))//" ranks and this run has "// &
                to_text(n_ranks)//"; use the same number, or run chromamd setup again")
    end if
    if (.not. allocated(error)) then
      n = int(header(7))
      allocate (self%id(n), self%position(3, n), self%velocity(3, n))
      lean = 0.0_real64
      read (unit, iostat=status) ensemble, lean(:lean_size(header(1))), self%id, self%position, self%velocity, stored
      call check%add(transfer(word, [0_int64]))
      call check%add(header)
      call check%add(transfer(ensemble, [0_int64]))
      call check%add(transfer(lean(:lean_size(header(1))), [0_int64]))
      call check%add(self%id)
      call add_reals(check, self%position)
      call add_reals(check, self%velocity)
      if (status /= 0 .or. check%value /= stored .or. header(2) /= rank) &
        call fail(error, exit_corrupt_file, path//": its checksum does not match; it is damaged, make it again")
      call self%ensemble%unpack(ensemble)
      self%shape = shape_of(lean)
      self%dims = int(header(4:6))
      self%n_system = header(8)
      self%step = header(9)
      self%phase = int(header(10))
      self%time = transfer(header(11), self%time)
      self%box = transfer(header(12:14), self%box)
      self%is_open = header(15) == 1
      self%frame_bytes = header(16)
      self%checksum = stored
    end if
    close (unit)
  end subroutine read_restart

end module restart
