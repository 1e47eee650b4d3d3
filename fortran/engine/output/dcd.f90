!> DCD trajectories as CHARMM writes them (little-endian, 4-byte record marks, unit cell in every frame). A frame may be
!> filled in pieces.
module dcd
  use base_kinds, only: int32, int64, real32, real64
  use base_error, only: error_t, exit_bad_input, exit_resources, fail
  use frame_writer, only: frame_writer_t, kept_frames_t
  use base_posix_file, only: check_size, cut_file
  implicit none
  private
  public :: dcd_writer_t

  !> Bytes: header block, title block (one line of 80), atom count block.
  integer(int64), parameter :: header_bytes = 92, title_bytes = 92, count_bytes = 12, cell_bytes = 56
  !> ps in one CHARMM (AKMA) time unit.
  real(real64), parameter :: akma_time = 0.04888821_real64

  type, extends(frame_writer_t) :: dcd_writer_t
    private
    character(len=:), allocatable :: path
    integer :: unit = -1, n_frames = 0, status = 0
    integer(int64) :: n_atoms = 0, frame_start = 0
  contains
    procedure :: open => open_dcd
    procedure :: begin_frame
    procedure :: put
    procedure :: end_frame
    procedure :: kept
    procedure :: close => close_dcd
  end type dcd_writer_t

contains

  !> Start a file, or go on with what is `kept` of it. `timestep` in ps, `period`: steps between frames, `start`: step at
  !> which the run started.
  subroutine open_dcd(self, path, n_atoms, timestep, period, start, kept, error)
    class(dcd_writer_t), intent(inout) :: self
    character(len=*), intent(in) :: path
    integer(int64), intent(in) :: n_atoms, period, start
    real(real64), intent(in) :: timestep
    type(kept_frames_t), intent(in) :: kept
    type(error_t), allocatable, intent(out) :: error
    integer(int32) :: control(20)
    character(len=80) :: title

    ! Record marks and the atom count are 32-bit signed numbers.
    if (4*n_atoms >= huge(1_int32)) then
      call fail(error, exit_bad_input, path// &
                ": a DCD file holds at most 536870911 atoms; choose fewer with dcd_atoms, or write a file per domain with ()")
      return
    end if
    self%path = path
    self%n_atoms = n_atoms
    control = 0
    ! Step of the first frame; a step beyond 32 bits has no place there.
    control(2) = int(min(period*(start/period + 1), int(huge(control), int64)), int32)
    control(3) = int(period, int32)
    control(10) = transfer(real(timestep/akma_time, real32), 0_int32)
    control(11) = 1
    control(20) = 24
    title = "CREATED BY CHROMAMD"
    self%n_frames = int(kept%frames)
    if (kept%bytes > 0) call cut_file(path, kept%bytes, error)
    if (allocated(error)) return
    if (kept%bytes > 0) then
      control(1) = int(kept%frames, int32)
      open (newunit=self%unit, file=path, access="stream", form="unformatted", status="old", action="write", &
            iostat=self%status)
    else
      open (newunit=self%unit, file=path, access="stream", form="unformatted", status="replace", action="write", &
            iostat=self%status)
    end if
    if (self%status == 0) write (self%unit, pos=1, iostat=self%status) 84_int32, "CORD", control, 84_int32, 84_int32, &
      1_int32, title, 84_int32, 4_int32, int(n_atoms, int32), 4_int32
    if (self%status /= 0) call fail(error, exit_resources, path//": cannot be written; check folder and free space")
  end subroutine open_dcd

  !> Bytes of the headers and `n_frames` frames.
  pure integer(int64) function bytes_of(self, n_frames)
    class(dcd_writer_t), intent(in) :: self
    integer, intent(in) :: n_frames
    bytes_of = header_bytes + title_bytes + count_bytes + n_frames*(cell_bytes + 3*(4*self%n_atoms + 8))
  end function bytes_of

  !> Write the unit cell (orthorhombic box, angstrom) of the next frame; step and time follow from the header.
  subroutine begin_frame(self, step, time, box)
    class(dcd_writer_t), intent(inout) :: self
    integer(int64), intent(in) :: step
    real(real64), intent(in) :: time, box(3)
    integer :: axis
    associate (unused_step => step, unused_time => time); end associate
    self%frame_start = 1 + bytes_of(self, self%n_frames)
    ! Order A, gamma, B, beta, alpha, C; cosines of right angles are 0.
    write (self%unit, pos=self%frame_start, iostat=self%status) 48_int32, box(1), 0.0_real64, box(2), 0.0_real64, &
      0.0_real64, box(3), 48_int32
    do axis = 0, 2
      associate (record => self%frame_start + cell_bytes + axis*(4*self%n_atoms + 8))
        if (self%status == 0) write (self%unit, pos=record, iostat=self%status) int(4*self%n_atoms, int32)
        if (self%status == 0) &
          write (self%unit, pos=record + 4 + 4*self%n_atoms, iostat=self%status) int(4*self%n_atoms, int32)
      end associate
    end do
  end subroutine begin_frame

  !> Positions (3, n; angstrom) of atoms `offset+1, offset+2, ...` of the file.
  subroutine put(self, offset, position)
    class(dcd_writer_t), intent(inout) :: self
    integer(int64), intent(in) :: offset
    real(real32), intent(in) :: position(:, :)
    integer :: axis
    do axis = 1, 3
      if (self%status == 0) write (self%unit, iostat=self%status, pos=self%frame_start + cell_bytes + 4 + 4*offset + &
                                   (axis - 1)*(4*self%n_atoms + 8)) position(axis, :)
    end do
  end subroutine put

  !> Count the frame in the header, so that the file is whole after every frame.
  subroutine end_frame(self, error)
    class(dcd_writer_t), intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    self%n_frames = self%n_frames + 1
    if (self%status == 0) write (self%unit, pos=9, iostat=self%status) int(self%n_frames, int32)
    if (self%status == 0) flush (self%unit, iostat=self%status)
    if (self%status /= 0) then
      call fail(error, exit_resources, self%path//": writing failed; check free space")
    else
      call check_size(self%path, bytes_of(self, self%n_frames), error)
    end if
  end subroutine end_frame

  type(kept_frames_t) function kept(self)
    class(dcd_writer_t), intent(in) :: self
    ! The headers of a file without frames may still wait.
    flush (self%unit)
    kept = kept_frames_t(int(self%n_frames, int64), bytes_of(self, self%n_frames))
  end function kept

  subroutine close_dcd(self)
    class(dcd_writer_t), intent(inout) :: self
    close (self%unit)
  end subroutine close_dcd

end module dcd
