!> What all trajectory files of a system have in common: frames that are filled in pieces.
module frame_writer
  use base_kinds, only: int64, real32, real64
  use base_error, only: error_t
  implicit none
  private
  public :: frame_writer_t, kept_frames_t

  !> What a file holds of a run that goes on: frames, and bytes with them; none where it starts anew.
  type :: kept_frames_t
    integer(int64) :: frames = 0, bytes = 0
  end type kept_frames_t

  !> Several processes may fill a frame: each begins it, puts its pieces and ends it, one of them leads. Before they end a
  !> frame, all must have put theirs.
  type, abstract :: frame_writer_t
  contains
    procedure(begin_frame), deferred :: begin_frame
    procedure(put), deferred :: put
    procedure(end_frame), deferred :: end_frame
    procedure(kept), deferred :: kept
    procedure(close_file), deferred :: close
  end type frame_writer_t

  abstract interface
    !> Start a frame: step, time (ps), edges of the box (a_x, b_y, c_z, b_x, c_x, c_y; angstrom). Fails when the disk
    !> does.
    subroutine begin_frame(self, step, time, cell, error)
      import :: error_t, frame_writer_t, int64, real64
      class(frame_writer_t), intent(inout) :: self
      integer(int64), intent(in) :: step
      real(real64), intent(in) :: time, cell(6)
      type(error_t), allocatable, intent(out) :: error
    end subroutine begin_frame

    !> Positions (n, 3; angstrom) of atoms `before+1, before+2, ...` of the file. Fails when the disk does.
    subroutine put(self, before, position, error)
      import :: error_t, frame_writer_t, int64, real32
      class(frame_writer_t), intent(inout) :: self
      integer(int64), intent(in) :: before
      real(real32), contiguous, intent(in) :: position(:, :)
      type(error_t), allocatable, intent(out) :: error
    end subroutine put

    !> Finish the frame: the file is whole. Fails when the disk does.
    subroutine end_frame(self, error)
      import :: error_t, frame_writer_t
      class(frame_writer_t), intent(inout) :: self
      type(error_t), allocatable, intent(out) :: error
    end subroutine end_frame

    !> What the file holds after a whole frame.
    type(kept_frames_t) function kept(self)
      import :: frame_writer_t, kept_frames_t
      class(frame_writer_t), intent(in) :: self
    end function kept

    subroutine close_file(self)
      import :: frame_writer_t
      class(frame_writer_t), intent(inout) :: self
    end subroutine close_file
  end interface

end module frame_writer
