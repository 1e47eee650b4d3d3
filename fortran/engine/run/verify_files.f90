!> `chromamd verify FILE ...`: are restart files and the marks of checkpoints as they were written?
module verify_files
  use, intrinsic :: iso_fortran_env, only: output_unit
  use base_checksum, only: ends_with_checksum
  use base_error, only: error_t
  use checkpoint_mark, only: checkpoint_mark_t, mark_title => title
  use restart, only: restart_magic => magic
  implicit none
  private
  public :: state_of

contains

  !> `ok`, or what is wrong with a file.
  function state_of(path) result(state)
    character(len=*), intent(in) :: path
    character(len=:), allocatable :: state
    type(checkpoint_mark_t) :: mark
    type(error_t), allocatable :: error
    character(len=len(restart_magic)) :: first
    integer :: unit, status
    open (newunit=unit, file=path, access="stream", form="unformatted", status="old", action="read", iostat=status)
    if (status /= 0) then
      state = "missing"
      return
    end if
    read (unit, iostat=status) first
    close (unit)
    state = "ok"
    if (status == 0 .and. first == restart_magic) then
      if (.not. ends_with_checksum(path)) state = "damaged"
    else if (status == 0 .and. first == mark_title(:len(first))) then
      call mark%read_file(path, error)
      if (allocated(error)) state = "damaged"
    else
      state = "neither a restart file nor a mark of a checkpoint, or damaged"
    end if
  end function state_of

end module verify_files
