!> Memory that processes may use, as Linux tells it; no limit where it does not.
module base_machine_memory
  use base_kinds, only: real64
  use base_text, only: read_line
  implicit none
  private
  public :: node_memory, process_memory

  character(len=*), parameter :: groups = "/sys/fs/cgroup"

contains

  !> Bytes that all processes here may use together: of the machine, or what its container, or the batch job or the service
  !> that they belong to, is allowed (control groups of both versions).
  real(real64) function node_memory() result(bytes)
    character(len=:), allocatable :: line, kinds, group
    integer :: unit, status, first, second
    logical :: is_new

    bytes = 1024.0_real64*value_after("/proc/meminfo", "MemTotal:")
    call limit_by(groups//"/memory.max", bytes)
    call limit_by(groups//"/memory/memory.limit_in_bytes", bytes)
    open (newunit=unit, file="/proc/self/cgroup", status="old", action="read", iostat=status)
    if (status /= 0) return
    do
      call read_line(unit, line, status)
      if (status /= 0) exit
      ! Number, controllers and path of the group, with colons between them; version 2 names no controllers.
      first = index(line, ":")
      second = first + index(line(first + 1:), ":")
      if (first == 0 .or. second == first) cycle
      kinds = line(first + 1:second - 1)
      group = trim(line(second + 1:))
      is_new = kinds == ""
      if (.not. is_new .and. index(","//kinds//",", ",memory,") == 0) cycle
      do while (len(group) > 1)
        if (is_new) call limit_by(groups//group//"/memory.max", bytes)
        if (.not. is_new) call limit_by(groups//"/memory"//group//"/memory.limit_in_bytes", bytes)
        group = group(:index(group, "/", back=.true.) - 1)
      end do
    end do
    close (unit)
  end function node_memory

  !> Bytes that `ulimit -v` and `ulimit -d` leave this process.
  real(real64) function process_memory() result(bytes)
    bytes = min(value_after("/proc/self/limits", "Max address space"), value_after("/proc/self/limits", "Max data size"))
  end function process_memory

  !> The number that follows a name in a file; no limit where there is none.
  real(real64) function value_after(path, name) result(value)
    character(len=*), intent(in) :: path, name
    character(len=:), allocatable :: line
    real(real64) :: found
    integer :: unit, status
    value = huge(value)
    open (newunit=unit, file=path, status="old", action="read", iostat=status)
    if (status /= 0) return
    do
      call read_line(unit, line, status)
      if (status /= 0) exit
      if (index(line, name) /= 1) cycle
      read (line(len(name) + 1:), *, iostat=status) found
      if (status == 0) value = found
      exit
    end do
    close (unit)
  end function value_after

  !> Lower `bytes` to the number in a file, where there is one.
  subroutine limit_by(path, bytes)
    character(len=*), intent(in) :: path
    real(real64), intent(inout) :: bytes
    bytes = min(bytes, value_after(path, ""))
  end subroutine limit_by

end module base_machine_memory
