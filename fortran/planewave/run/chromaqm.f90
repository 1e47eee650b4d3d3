!> chromaqm: plane-wave electronic structure and Car-Parrinello dynamics. `chromaqm help` shows the control file.
program chromaqm
  use, intrinsic :: iso_fortran_env, only: error_unit, output_unit
  use base_argument, only: argument
  use base_control_help, only: print_help
  use base_control_keys, only: closest
  use base_error, only: error_t, fail
  use base_kinds, only: int64, real64
  use base_text, only: to_text
  use comm_communicator, only: communicator_t
  use qm_keys, only: keys
  use qm_run, only: command_run
  use qm_settings, only: qm_settings_t, read_qm_settings
  use qm_version, only: version
  implicit none
  character(len=8), parameter :: known(4) = [character(len=8) :: "run", "check", "help", "version"]
  integer, parameter :: exit_usage = 2
  type(communicator_t) :: comm
  type(qm_settings_t) :: settings
  type(error_t), allocatable :: error
  character(len=:), allocatable :: command, path

  command = argument(1)
  path = argument(2)
  select case (command)
  case ("version", "--version")
    write (output_unit, "(a)") "chromaqm "//version
  case ("help", "--help", "")
    if (path == "") write (output_unit, "(a,/)") &
      "# usage: chromaqm run FILE, chromaqm check FILE [RANKS], chromaqm help [SECTION], chromaqm version; FILE:"
    call print_help(keys, path, error)
    if (allocated(error)) then
      write (error_unit, "(2a)") "chromaqm: ", error%message
      stop exit_usage, quiet=.true.
    end if
  case ("run")
    call comm%start()
    if (path == "") then
      call fail(error, exit_usage, "'chromaqm run' needs a control file; chromaqm help shows one")
    else
      call read_qm_settings(path, comm%n_ranks, comm%ranks_of_node(), settings, error)
      call comm%agree(error)
    end if
    if (.not. allocated(error)) call command_run(comm, settings, error)
    ! Every error is that of all ranks, so all end here together and one of them speaks.
    if (allocated(error)) then
      if (comm%is_root()) then
        write (error_unit, "(2a)") "chromaqm: ", error%message
        ! Before MPI ends: mpirun drops what comes later.
        flush (error_unit)
      end if
      call comm%finish()
      stop error%code, quiet=.true.
    end if
    call comm%finish()
  case ("check")
    call check(path, argument(3))
  case default
    write (error_unit, "(a)") "chromaqm: command '"//command//"' does not exist; nearest is '"//closest(command, known)//"'"
    stop exit_usage, quiet=.true.
  end select

contains

  !> Refuse, in this one process, what each of so many ranks would refuse once it has started.
  subroutine check(path, ranks)
    character(len=*), intent(in) :: path, ranks
    integer :: n_ranks, status
    n_ranks = 1
    status = 0
    if (ranks /= "") read (ranks, *, iostat=status) n_ranks
    if (path == "" .or. status /= 0 .or. n_ranks < 1) then
      call fail(error, exit_usage, "'chromaqm check' needs a control file and a number of ranks; chromaqm help shows one")
    else
      ! How many of them share a machine is known once they run.
      call read_qm_settings(path, n_ranks, 1, settings, error)
    end if
    if (allocated(error)) then
      write (error_unit, "(2a)") "chromaqm: ", error%message
      stop error%code, quiet=.true.
    end if
    write (output_unit, "(a)") path//" can run on "//to_text(n_ranks)//" ranks; each needs about "// &
      to_text(nint(settings%bytes/1.0e6_real64, int64))//" MB of memory"
  end subroutine check

end program chromaqm
