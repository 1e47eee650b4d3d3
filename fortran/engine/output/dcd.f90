!> DCD trajectories as CHARMM writes them (4-byte record marks, unit cell in every frame). Every byte of a frame has a
!> place that is known beforehand, so that several processes fill one file.
module dcd
  use base_kinds, only: int32, int64, real32, real64
  use base_error, only: error_t, exit_bad_input, fail
  use base_placed_file, only: placed_file_t
  use base_posix_file, only: check_size, cut_file
  use frame_writer, only: frame_writer_t, kept_frames_t
  implicit none
  private
  public :: dcd_writer_t

  !> Bytes: header block, title block (one line of 80), atom count block, cell; and before the number of frames.
  integer(int64), parameter :: header_bytes = 92, title_bytes = 92, count_bytes = 12, cell_bytes = 56, frames_at = 8
  !> ps in one CHARMM (AKMA) time unit.
  real(real64), parameter :: akma_time = 0.04888821_real64

  type, extends(frame_writer_t) :: dcd_writer_t
    private
    type(placed_file_t) :: file
    !> This process writes all but the positions.
    logical :: leads = .true.
    integer :: n_frames = 0
    integer(int64) :: n_atoms = 0
  contains
    procedure :: open => open_dcd
    procedure :: join
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
    if (kept%bytes > 0) then
      control(1) = int(kept%frames, int32)
      call cut_file(path, kept%bytes, error)
      if (.not. allocated(error)) call self%file%open(path, error)
    else
      call self%file%create(path, error)
    end if
    if (allocated(error)) return
    call self%file%write_at(0_int64, [84_int32, transfer("CORD", 0_int32), control, 84_int32, 84_int32, 1_int32, &
                                      transfer(title, control, 20), 84_int32, 4_int32, int(n_atoms, int32), 4_int32], error)
  end subroutine open_dcd

  !> Help to fill a file that another process has opened, after `n_frames` frames.
  subroutine join(self, path, n_atoms, n_frames, error)
    class(dcd_writer_t), intent(inout) :: self
    character(len=*), intent(in) :: path
    integer(int64), intent(in) :: n_atoms, n_frames
    type(error_t), allocatable, intent(out) :: error
    self%leads = .false.
    self%n_atoms = n_atoms
    self%n_frames = int(n_frames)
    call self%file%open(path, error)
  end subroutine join

  !> Bytes of the headers and `n_frames` frames.
  pure integer(int64) function bytes_of(self, n_frames)
    class(dcd_writer_t), intent(in) :: self
    integer, intent(in) :: n_frames
    bytes_of = header_bytes + title_bytes + count_bytes + n_frames*(cell_bytes + 3*(4*self%n_atoms + 8))
  end function bytes_of

  !> Bytes before the coordinate record of an axis in the present frame.
  pure integer(int64) function record_at(self, axis)
    class(dcd_writer_t), intent(in) :: self
    integer, intent(in) :: axis
    record_at = bytes_of(self, self%n_frames) + cell_bytes + (axis - 1)*(4*self%n_atoms + 8)
  end function record_at

  !> Write the unit cell of the next frame; step and time follow from the header.
  subroutine begin_frame(self, step, time, cell, error)
    class(dcd_writer_t), intent(inout) :: self
    integer(int64), intent(in) :: step
    real(real64), intent(in) :: time, cell(6)
    type(error_t), allocatable, intent(out) :: error
    integer(int32) :: mark(1)
    integer :: axis
    real(real64) :: length(3)
    associate (unused_step => step, unused_time => time); end associate
    if (.not. self%leads) return
    ! Order A, gamma, B, beta, alpha, C; angles by their cosines.
    length = [cell(1), norm2([cell(4), cell(2)]), norm2([cell(5:6), cell(3)])]
    if (all(abs(cell(4:)) <= 0.0_real64)) length = cell(:3)
    call self%file%write_at(bytes_of(self, self%n_frames), [48_int32, transfer([length(1), &
      share(cell(4), length(2)), length(2), share(cell(5), length(3)), &
      share(cell(4)*cell(5) + cell(2)*cell(6), length(2)*length(3)), length(3)], mark), 48_int32], error)
    mark = int(4*self%n_atoms, int32)
    do axis = 1, 3
      if (.not. allocated(error)) call self%file%write_at(record_at(self, axis), mark, error)
      if (.not. allocated(error)) call self%file%write_at(record_at(self, axis) + 4 + 4*self%n_atoms, mark, error)
    end do

  contains

    !> A quotient; 0 where there is no box.
    pure real(real64) function share(part, whole)
      real(real64), intent(in) :: part, whole
      share = 0.0_real64
      if (whole > 0.0_real64) share = part/whole
    end function share

  end subroutine begin_frame

  subroutine put(self, before, position, error)
    class(dcd_writer_t), intent(inout) :: self
    integer(int64), intent(in) :: before
    real(real32), contiguous, intent(in) :: position(:, :)
    type(error_t), allocatable, intent(out) :: error
    integer :: axis
    do axis = 1, 3
      if (.not. allocated(error)) &
        call self%file%write_at(record_at(self, axis) + 4 + 4*before, position(:, axis), error)
    end do
  end subroutine put

  !> Count the frame in the header, so that the file is whole after every frame.
  subroutine end_frame(self, error)
    class(dcd_writer_t), intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    self%n_frames = self%n_frames + 1
    if (.not. self%leads) return
    call check_size(self%file%path, bytes_of(self, self%n_frames), error)
    if (.not. allocated(error)) call self%file%write_at(frames_at, [int(self%n_frames, int32)], error)
  end subroutine end_frame

  type(kept_frames_t) function kept(self)
    class(dcd_writer_t), intent(in) :: self
    kept = kept_frames_t(int(self%n_frames, int64), bytes_of(self, self%n_frames))
  end function kept

  subroutine close_dcd(self)
    class(dcd_writer_t), intent(inout) :: self
    call self%file%close()
  end subroutine close_dcd

end module dcd
