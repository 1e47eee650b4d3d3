!> DCD trajectories of replicas, one file each, sorted by parameter. All have frames of the same steps and size, so that
!> those of a parameter are copied byte by byte from the replica that had it.
module demultiplex
  use, intrinsic :: iso_fortran_env, only: int8
  use base_kinds, only: int32, int64
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, exit_resources, fail
  use base_text, only: to_text, with_replica
  use parameter_history, only: parameter_history_t
  implicit none
  private
  public :: demultiplex_dcd

  !> Of our DCD files: bytes before the first frame and of the cell of a frame; from which byte on stand the number of frames,
  !> the first step and the steps between frames, and the number of atoms.
  integer(int64), parameter :: head_bytes = 196, cell_bytes = 56, frames_at = 8, atoms_at = 188

  type :: head_t
    integer(int8) :: bytes(head_bytes)
    integer(int64) :: n_frames, first_step, period, frame_bytes
  end type head_t

contains

  !> `source` and `sorted`: names with {} for the replica and for the parameter.
  subroutine demultiplex_dcd(source, sorted, histories, error)
    character(len=*), intent(in) :: source, sorted
    type(parameter_history_t), intent(in) :: histories(:)
    type(error_t), allocatable, intent(out) :: error
    type(head_t) :: heads(size(histories))
    integer(int64) :: k, step
    integer :: in(size(histories)), out(size(histories)), r, p, status
    integer(int8), allocatable :: frame(:)
    do r = 1, size(histories)
      call open_source(with_replica(source, r), in(r), heads(r), error)
      if (allocated(error)) return
      if (heads(r)%n_frames /= heads(1)%n_frames .or. heads(r)%first_step /= heads(1)%first_step .or. &
          heads(r)%period /= heads(1)%period .or. heads(r)%frame_bytes /= heads(1)%frame_bytes) then
        call fail(error, exit_corrupt_file, with_replica(source, r)//": its frames are not those of the other replicas; give "// &
                  "the trajectories of one run")
        return
      end if
    end do
    do p = 1, size(histories)
      open (newunit=out(p), file=with_replica(sorted, p), access="stream", form="unformatted", status="replace", &
            action="write", iostat=status)
      if (status == 0) write (out(p), iostat=status) heads(1)%bytes
      if (status /= 0) then
        call fail(error, exit_resources, with_replica(sorted, p)//": cannot be written; check folder and free space")
        return
      end if
    end do
    allocate (frame(heads(1)%frame_bytes))
    do k = 0, heads(1)%n_frames - 1
      step = heads(1)%first_step + k*heads(1)%period
      do r = 1, size(histories)
        read (in(r), iostat=status) frame
        p = histories(r)%parameter_at(step)
        if (status == 0) then
          write (out(p), iostat=status) frame
          if (status /= 0) call fail(error, exit_resources, with_replica(sorted, p)//": writing failed; check free space")
        else
          call fail(error, exit_corrupt_file, with_replica(source, r)//": has less than the "//to_text(heads(1)%n_frames)// &
                    " frames of its head")
        end if
        if (allocated(error)) return
      end do
    end do
    do r = 1, size(histories)
      close (in(r))
      close (out(r))
    end do
  end subroutine demultiplex_dcd

  !> Open a trajectory behind its head.
  subroutine open_source(path, unit, head, error)
    character(len=*), intent(in) :: path
    integer, intent(out) :: unit
    type(head_t), intent(out) :: head
    type(error_t), allocatable, intent(out) :: error
    integer(int32) :: numbers(3), n_atoms
    integer :: status
    open (newunit=unit, file=path, access="stream", form="unformatted", status="old", action="read", iostat=status)
    if (status /= 0) then
      call fail(error, exit_bad_input, path//": this trajectory does not exist; check the name")
      return
    end if
    read (unit, iostat=status) head%bytes
    if (status == 0) then
      if (transfer(head%bytes(5:8), "    ") /= "CORD") status = 1
    end if
    if (status /= 0) then
      call fail(error, exit_corrupt_file, path//": not a DCD file of this program; merge files of one rank each (with ()) "// &
                "where replicas wrote these")
      return
    end if
    numbers = transfer(head%bytes(frames_at + 1:frames_at + 12), numbers)
    n_atoms = transfer(head%bytes(atoms_at + 1:atoms_at + 4), n_atoms)
    head%n_frames = numbers(1)
    head%first_step = numbers(2)
    head%period = numbers(3)
    head%frame_bytes = cell_bytes + 3*(8 + 4*int(n_atoms, int64))
  end subroutine open_source

end module demultiplex
