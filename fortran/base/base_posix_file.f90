!> What Fortran lacks for safe files: atomic rename, cutting, removal, locks, and waiting for the disk.
module base_posix_file
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t, c_null_char
  use base_kinds, only: int64, real64
  use base_error, only: error_t, exit_busy, exit_corrupt_file, exit_resources, fail
  use base_text, only: has_folders, to_text, with_rank
  implicit none
  private
  public :: rename_file, remove_file, sync_file, sync_folder_of, cut_file, file_bytes, check_size, lock_file, &
            make_folder_of

  !> Seconds between two tries of a lock.
  real(real64), parameter :: lock_period = 0.05_real64

  interface
    function c_rename(old, new) bind(c, name="rename") result(status)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: old(*), new(*)
      integer(c_int) :: status
    end function c_rename
    function c_unlink(path) bind(c, name="unlink") result(status)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int) :: status
    end function c_unlink
    function c_sync(path) bind(c, name="chroma_sync") result(status)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int) :: status
    end function c_sync
    function c_truncate(path, bytes) bind(c, name="chroma_truncate") result(status)
      import :: c_char, c_int, c_int64_t
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int64_t), value :: bytes
      integer(c_int) :: status
    end function c_truncate
    function c_make_folder(path) bind(c, name="chroma_make_folder") result(status)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int) :: status
    end function c_make_folder
    function c_file_bytes(path) bind(c, name="chroma_file_bytes") result(bytes)
      import :: c_char, c_int64_t
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int64_t) :: bytes
    end function c_file_bytes
    function c_lock(path) bind(c, name="chroma_lock") result(status)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int) :: status
    end function c_lock
    subroutine c_pause(seconds) bind(c, name="chroma_pause")
      import :: c_double
      real(c_double), value :: seconds
    end subroutine c_pause
  end interface

contains

  !> Give `old` the name `new`, replacing a file of that name in one step.
  subroutine rename_file(old, new, error)
    character(len=*), intent(in) :: old, new
    type(error_t), allocatable, intent(out) :: error
    if (c_rename(old//c_null_char, new//c_null_char) /= 0) then
      call fail(error, exit_resources, new//": cannot be put in place (renaming "//old//" failed); check folder, "// &
                "permission and free space")
      call remove_file(old)
    end if
  end subroutine rename_file

  !> Remove a file; nothing happens where there is none.
  subroutine remove_file(path)
    character(len=*), intent(in) :: path
    integer(c_int) :: status
    status = c_unlink(path//c_null_char)
  end subroutine remove_file

  !> Hold a file, made if need be, until this process ends, however it ends; wait for another holder up to `patience` (s).
  !> On a file system without locks nothing is held.
  subroutine lock_file(path, patience, error)
    character(len=*), intent(in) :: path
    real(real64), intent(in) :: patience
    type(error_t), allocatable, intent(out) :: error
    integer :: status, k
    do k = 0, int(patience/lock_period)
      if (k > 0) call c_pause(real(lock_period, c_double))
      status = int(c_lock(path//c_null_char))
      if (status /= 1) exit
    end do
    if (status == 1) call fail(error, exit_busy, path//": another run is at work with these files; wait for its end, "// &
                               "or stop it")
    if (status < 0) call fail(error, exit_resources, path//": cannot be written; check folder, permission and free space")
  end subroutine lock_file

  !> Make the folder of a rank's file, if it is one of a tree and not there yet. Nothing is said where it cannot be made:
  !> then the file cannot either.
  subroutine make_folder_of(name, rank)
    character(len=*), intent(in) :: name
    integer, intent(in) :: rank
    character(len=:), allocatable :: path
    integer(c_int) :: status
    if (.not. has_folders(name)) return
    path = with_rank(name, rank)
    status = c_make_folder(path(:index(path, "/", back=.true.))//c_null_char)
  end subroutine make_folder_of

  !> Wait until a file that was closed or flushed is on the disk.
  subroutine sync_file(path, error)
    character(len=*), intent(in) :: path
    type(error_t), allocatable, intent(out) :: error
    if (c_sync(path//c_null_char) /= 0) &
      call fail(error, exit_resources, path//": cannot be brought to the disk; check free space")
  end subroutine sync_file

  !> Wait until new names in the folder of `path` are on the disk. File systems that cannot do that need not.
  subroutine sync_folder_of(path)
    character(len=*), intent(in) :: path
    integer(c_int) :: status
    integer :: slash
    slash = index(path, "/", back=.true.)
    if (slash == 0) then
      status = c_sync("."//c_null_char)
    else
      status = c_sync(path(:slash)//c_null_char)
    end if
  end subroutine sync_folder_of

  !> Size of a file as the disk has it; what waits in a buffer of a unit does not count. -1 where there is no file.
  integer(int64) function file_bytes(path)
    character(len=*), intent(in) :: path
    file_bytes = int(c_file_bytes(path//c_null_char), int64)
  end function file_bytes

  !> Fail unless a file that was flushed or closed has the `bytes` that were written to it: gfortran's flush and close do
  !> not tell when the disk is full.
  subroutine check_size(path, bytes, error)
    character(len=*), intent(in) :: path
    integer(int64), intent(in) :: bytes
    type(error_t), allocatable, intent(out) :: error
    if (file_bytes(path) < bytes) &
      call fail(error, exit_resources, path//": cannot be written to its end; check free space")
  end subroutine check_size

  !> Cut a file that has grown since to the `bytes` that it had at a checkpoint.
  subroutine cut_file(path, bytes, error)
    character(len=*), intent(in) :: path
    integer(int64), intent(in) :: bytes
    type(error_t), allocatable, intent(out) :: error
    integer(int64) :: present_size
    logical :: is_there
    inquire (file=path, exist=is_there, size=present_size)
    if (.not. is_there) then
      call fail(error, exit_corrupt_file, path//": is missing, and the checkpoint goes on with it; put it back, or remove "// &
                "the checkpoint to start the run anew")
    else if (present_size < bytes) then
      call fail(error, exit_corrupt_file, path//": has "//to_text(present_size)//" bytes and had "//to_text(bytes)// &
                " at the checkpoint; put the whole file back, or remove the checkpoint to start the run anew")
    else if (c_truncate(path//c_null_char, int(bytes, c_int64_t)) /= 0) then
      call fail(error, exit_resources, path//": cannot be cut to the checkpoint; check its permission")
    end if
  end subroutine cut_file

end module base_posix_file
