!> chromamd: molecular dynamics of chromatin on many ranks. `chromamd help` shows the control file.
program chromamd
  use, intrinsic :: iso_fortran_env, only: error_unit, output_unit
  use base_kinds, only: int64
  use pair_precision, only: precision_name
  use commands, only: command_energy, command_merge, command_run, command_setup
  use comm_communicator, only: communicator_t
  use base_argument, only: argument
  use base_control_help, only: print_help
  use control_keys, only: keys
  use genesis_help, only: print_genesis_keys
  use settings, only: settings_t
  use settings_reader, only: read_settings
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, fail
  use pme_ranks, only: end_pme_service, serve_pme
  use base_stop_signal, only: catch_stop_signals
  use base_text, only: edit_distance, listed, to_text
  use kernel_dispatch, only: check_processor, chosen_set
  use verify_files, only: state_of
  use program_version, only: version
  implicit none
  character(len=8), parameter :: known(9) = [character(len=8) :: "setup", "run", "energy", "merge", "verify", "check", &
    "ranks", "help", "version"]
  integer, parameter :: exit_usage = 2
  type(communicator_t) :: comm, everyone
  type(settings_t) :: settings
  type(error_t), allocatable :: error
  character(len=:), allocatable :: command, path

  command = argument(1)
  path = argument(2)
  select case (command)
  case ("version", "--version")
    write (output_unit, "(a)") "chromamd "//version//" ("//precision_name//" precision, "//chosen_set()//")"
  case ("help", "--help", "")
    if (path == "") write (output_unit, "(a,/)") &
      "# usage: chromamd setup|run|energy|merge FILE, chromamd import FILE, chromamd check FILE ..., "// &
      "chromamd verify RESTART ..., chromamd help [SECTION], chromamd help genesis, chromamd ranks, chromamd version; FILE:"
    if (path == "genesis") then
      call print_genesis_keys()
    else
      call print_help(keys, path, error)
    end if
    if (allocated(error)) then
      write (error_unit, "(2a)") "chromamd: ", error%message
      stop exit_usage, quiet=.true.
    end if
  case ("verify")
    call verify()
  case ("check")
    call check()
  case ("ranks")
    ! To try a launcher: the number of ranks that it starts.
    call comm%start()
    if (comm%is_root()) write (output_unit, "(i0)") comm%n_ranks
    call comm%finish()
  case ("setup", "run", "energy", "merge")
    call comm%start()
    call check_launcher(error)
    if (.not. allocated(error) .and. path == "") then
      call fail(error, exit_usage, "'chromamd "//command//"' needs a control file; chromamd help shows one")
    else if (.not. allocated(error)) then
      call check_processor(error)
      if (.not. allocated(error)) call read_settings(path, command, settings, error)
      call comm%agree(error)
    end if
    if (.not. allocated(error) .and. command == "run" .and. settings%output%checkpoint /= "") call catch_stop_signals()
    if (.not. allocated(error) .and. command == "run") call share_out_replicas()
    if (.not. allocated(error) .and. any(command == ["run   ", "energy"])) call set_pme_ranks_apart()
    if (comm%is_apart) then
      call serve_pme(comm)
    else if (.not. allocated(error)) then
      select case (command)
      case ("setup")
        call command_setup(comm, settings, error)
      case ("run")
        call command_run(comm, settings, error)
      case ("energy")
        call command_energy(comm, settings, error)
      case ("merge")
        call command_merge(comm, settings, error)
      end select
    end if
    if (comm%n_apart > 0 .and. .not. comm%is_apart) call end_pme_service(comm)
    ! Every error has been made that of all ranks, so all end here together and one of them speaks.
    if (allocated(error)) then
      everyone = comm%of_all_replicas()
      if (everyone%is_root() .and. .not. comm%is_apart) then
        write (error_unit, "(2a)") "chromamd: ", error%message
        ! Before MPI ends: mpirun drops what comes later.
        flush (error_unit)
      end if
      call comm%finish()
      stop error%code, quiet=.true.
    end if
    call comm%finish()
  case default
    write (error_unit, "(a)") "chromamd: command '"//command//"' does not exist; nearest is '"//most_like(command)//"'"
    stop exit_usage, quiet=.true.
  end select

contains

  !> Say of each file named on the command line whether it is as it was written.
  subroutine verify()
    character(len=:), allocatable :: state
    logical :: whole
    integer :: k
    whole = .true.
    do k = 2, command_argument_count()
      state = state_of(argument(k))
      write (output_unit, "(3a)") argument(k), ": ", state
      whole = whole .and. state == "ok"
    end do
    if (whole .and. k > 2) return
    if (k == 2) write (error_unit, "(a)") "chromamd: 'chromamd verify' needs restart files or marks of checkpoints"
    stop merge(exit_usage, exit_corrupt_file, k == 2), quiet=.true.
  end subroutine verify

  !> Say of each control file named on the command line whether `run` would take its keys and values.
  subroutine check()
    type(settings_t) :: settings
    type(error_t), allocatable :: error
    logical :: good
    integer :: k
    good = .true.
    do k = 2, command_argument_count()
      if (allocated(error)) deallocate (error)
      call read_settings(argument(k), "check", settings, error)
      good = good .and. .not. allocated(error)
      if (allocated(error)) then
        write (output_unit, "(a)") error%message
      else if (size(settings%source%ignored) > 0) then
        write (output_unit, "(3a)") argument(k), ": ok; keys of GENESIS without effect here: ", &
          listed(settings%source%ignored)
      else
        write (output_unit, "(2a)") argument(k), ": ok"
      end if
    end do
    if (good .and. k > 2) return
    if (k == 2) write (error_unit, "(a)") "chromamd: 'chromamd check' needs control files"
    stop merge(exit_usage, exit_bad_input, k == 2), quiet=.true.
  end subroutine check

  !> The command whose name is nearest.
  function most_like(name)
    character(len=*), intent(in) :: name
    character(len=:), allocatable :: most_like
    integer :: k
    most_like = trim(known(minloc([(edit_distance(name, trim(known(k))), k=1, size(known))], dim=1)))
  end function most_like

  !> Whether there are as many ranks as were asked for: a launcher that does not fit the MPI library starts as many
  !> programs of one rank each, which would write to the same files.
  subroutine check_launcher(error)
    type(error_t), allocatable, intent(out) :: error
    character(len=20) :: asked
    integer :: n, status
    call get_environment_variable("CHROMAMD_RANKS", asked, status=status)
    if (status /= 0) return
    read (asked, *, iostat=status) n
    if (status == 0 .and. n == comm%n_ranks) return
    call fail(error, exit_bad_input, "this program runs on "//to_text(comm%n_ranks)//" of the "// &
              trim(asked)//" ranks that were asked for (CHROMAMD_RANKS): its launcher does not fit the MPI library of "// &
              "chromamd; set dynamics.launcher to another one, e.g. mpirun")
  end subroutine check_launcher

  !> Give each replica as many of the ranks as the others.
  subroutine share_out_replicas()
    integer :: n
    n = settings%exchange%n_replicas()
    if (mod(comm%n_ranks, n) /= 0) then
      call settings%refuse("REMD", "dimension", "makes "//to_text(n)//" replicas, and "//to_text(comm%n_ranks)// &
                           " ranks cannot be shared out evenly among them: start the program with a multiple of "// &
                           to_text(n)//" ranks", error)
      return
    end if
    if (n > 1) call comm%split(n)
  end subroutine share_out_replicas

  !> Give the ranks that the control file asks for to reciprocal space.
  subroutine set_pme_ranks_apart()
    integer :: n
    n = settings%comm%pme_ranks
    if (n == 0) return
    if (n > comm%n_ranks/2) then
      call settings%refuse("COMM", "pme_ranks", "must be at most half of the "//to_text(int(comm%n_ranks, int64))// &
                           " ranks that the program was started with; a PME rank serves at least one with atoms", error)
      return
    end if
    call comm%set_apart(n)
  end subroutine set_pme_ranks_apart

end program chromamd
