!> The trajectory file that a name asks for.
module frame_file
  use base_kinds, only: int64, real64
  use dcd, only: dcd_writer_t
  use base_error, only: error_t
  use frame_writer, only: frame_writer_t, kept_frames_t
  use xtc, only: xtc_writer_t
  implicit none
  private
  public :: open_frame_file, join_frame_file, is_filled_together

contains

  !> Start an XTC file where `path` ends with .xtc, else a DCD file, or go on with what is `kept` of it. `timestep` in ps,
  !> `period`: steps between frames, `start`: step at which the run started.
  subroutine open_frame_file(path, n_atoms, timestep, period, start, kept, file, error)
    character(len=*), intent(in) :: path
    integer(int64), intent(in) :: n_atoms, period, start
    real(real64), intent(in) :: timestep
    type(kept_frames_t), intent(in) :: kept
    class(frame_writer_t), allocatable, intent(out) :: file
    type(error_t), allocatable, intent(out) :: error
    type(xtc_writer_t), allocatable :: compressed
    type(dcd_writer_t), allocatable :: plain
    if (is_filled_together(path)) then
      allocate (plain)
      call plain%open(path, n_atoms, timestep, period, start, kept, error)
      call move_alloc(plain, file)
    else
      allocate (compressed)
      call compressed%open(path, n_atoms, kept, error)
      call move_alloc(compressed, file)
    end if
  end subroutine open_frame_file

  !> Help to fill a file that another process has opened, after `n_frames` frames.
  subroutine join_frame_file(path, n_atoms, n_frames, file, error)
    character(len=*), intent(in) :: path
    integer(int64), intent(in) :: n_atoms, n_frames
    class(frame_writer_t), allocatable, intent(out) :: file
    type(error_t), allocatable, intent(out) :: error
    type(dcd_writer_t), allocatable :: plain
    allocate (plain)
    call plain%join(path, n_atoms, n_frames, error)
    call move_alloc(plain, file)
  end subroutine join_frame_file

  !> Can several processes fill a frame? A compressed one is a single stream.
  pure logical function is_filled_together(path)
    character(len=*), intent(in) :: path
    is_filled_together = .true.
    if (len(path) > 4) is_filled_together = path(len(path) - 3:) /= ".xtc"
  end function is_filled_together

end module frame_file
