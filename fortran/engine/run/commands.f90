!> The commands of the program: setup, run, energy, merge.
module commands
  use, intrinsic :: iso_fortran_env, only: output_unit
  use base_kinds, only: int64, real64
  use atom_ranges, only: atom_ranges_t
  use kernel_dispatch, only: chosen_set
  use pair_precision, only: precision_name
  use replica_exchange, only: replica_exchange_t
  use comm_communicator, only: communicator_t
  use settings, only: schedule_t, settings_t
  use ensemble_setup, only: prepare_ensemble
  use domain_setup, only: set_up_domains
  use energies, only: energies_t, energy_name, shown_parts
  use energy_log, only: energy_log_t
  use base_error, only: error_t, exit_unstable
  use checkpoints, only: checkpoints_t
  use force_file, only: write_forces
  use health_watch, only: health_watch_t
  use integrator, only: run_dynamics
  use merge, only: merge_trajectories
  use minimiser, only: run_minimisation
  use open_box, only: open_origin
  use simulation, only: simulation_t
  use restart, only: phase_fresh, restart_t, saved_ranks
  use start, only: start_from_bricks, start_from_files, start_from_restart
  use base_text, only: listed, to_text
  use topology, only: topology_t
  use trajectory, only: trajectory_t
  implicit none
  private
  public :: command_setup, command_run, command_energy, command_merge

contains

  !> Shards and topology to one restart file a rank.
  subroutine command_setup(comm, settings, error)
    type(communicator_t), intent(in) :: comm
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    call set_up_domains(comm, settings, error)
  end subroutine command_setup

  !> Minimisation or dynamics from restart files, or from a checkpoint of the same run.
  subroutine command_run(comm, settings, error)
    type(communicator_t), intent(in) :: comm
    type(settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(simulation_t) :: sim
    type(energy_log_t) :: log
    type(trajectory_t) :: frames
    integer(int64) :: first_step
    type(checkpoints_t) :: checkpoints
    type(health_watch_t) :: watch
    type(replica_exchange_t) :: exchange
    logical :: rigid

    call exchange%prepare(comm, settings)
    call begin_run(sim, comm, settings, checkpoints, exchange, first_step, error)
    if (allocated(error)) return
    rigid = settings%runs_dynamics .and. settings%constraints%rigid_bonds
    call sim%fixed%init(settings, sim%system_state_t, rigid, error)
    if (.not. allocated(error)) call sim%prepare_forces(settings, rigid, error)
    if (.not. allocated(error)) then
      call prepare_ensemble(sim, settings, rigid)
      call watch%init(sim, rigid)
      call open_outputs(sim, settings, checkpoints, exchange, first_step, log, frames, error)
    end if
    call exchange%agree(error)
    if (allocated(error)) return
    if (settings%runs_dynamics) then
      call run_dynamics(sim, settings, log, frames, checkpoints, watch, exchange, error)
    else
      call run_minimisation(sim, settings, log, frames, checkpoints, watch, error)
    end if
    if (allocated(error)) then
      if (error%code == exit_unstable) then
        error%message = error%message//"; "//checkpoints%last_good(settings)
        call log%note(error%message)
      end if
    end if
    call exchange%part(error)
    call exchange%close()
    call sim%halo%destroy()
    call frames%close()
    call log%close()
    call checkpoints%finish(sim%comm)
  end subroutine command_run

  !> The state that a run begins with, of its restart files or of its checkpoint; `first_step`: that at which the run, as a
  !> whole, has begun.
  subroutine begin_run(sim, comm, settings, checkpoints, exchange, first_step, error)
    type(simulation_t), intent(inout) :: sim
    type(communicator_t), intent(in) :: comm
    type(settings_t), intent(inout) :: settings
    type(checkpoints_t), intent(inout) :: checkpoints
    type(replica_exchange_t), intent(inout) :: exchange
    integer(int64), intent(out) :: first_step
    type(error_t), allocatable, intent(out) :: error
    type(restart_t) :: saved
    first_step = 0
    call set_up_imported(comm, settings, error)
    call exchange%agree(error)
    if (allocated(error)) return
    sim%comm = comm
    call sim%timer%start()
    call checkpoints%prepare(comm, settings, error)
    if (allocated(error)) return
    call start_from_files(sim, settings, checkpoints%start_from(settings), saved, error)
    if (.not. allocated(error)) call checkpoints%check_set(sim%comm, saved, error)
    call exchange%agree(error)
    if (allocated(error)) return
    first_step = merge(0_int64, sim%step, sim%phase == phase_fresh .or. .not. settings%runs_dynamics)
    call checkpoints%take_first_step(first_step)
    call exchange%begin(settings, sim%step, sim%kept%parameter, checkpoints%mark%exchanges, error)
  end subroutine begin_run

  !> Open log, trajectory and the record of exchanges, and say in the log what is run.
  subroutine open_outputs(sim, settings, checkpoints, exchange, first_step, log, frames, error)
    type(simulation_t), intent(inout) :: sim
    type(settings_t), intent(in) :: settings
    type(checkpoints_t), intent(in) :: checkpoints
    type(replica_exchange_t), intent(inout) :: exchange
    integer(int64), intent(in) :: first_step
    type(energy_log_t), intent(inout) :: log
    type(trajectory_t), intent(inout) :: frames
    type(error_t), allocatable, intent(out) :: error
    real(real64), allocatable :: origin(:)
    character(len=:), allocatable :: extent
    type(atom_ranges_t) :: chosen
    type(schedule_t) :: schedule
    real(real64) :: timestep
    character(len=160) :: line
    call log%open(settings%output%log, sim%comm%is_root(), checkpoints%mark%log_bytes, error)
    call sim%comm%agree(error)
    if (allocated(error)) return
    log%n_atoms = sim%topology%n_atoms - sim%fixed%n_atoms
    log%degrees_of_freedom = sim%n_freedom
    log%shows_boosts = settings%boost%is_on
    log%shows_bases = sim%topology%has_bases()
    call sim%field%boost%open(sim%comm%is_root(), checkpoints%mark%state, error)
    call sim%comm%agree(error)
    if (allocated(error)) return
    extent = " atoms, no periodic box, "
    if (.not. sim%is_open) extent = " atoms, box "//to_text(sim%grid%box(1))//" x "//to_text(sim%grid%box(2))//" x "// &
                                   to_text(sim%grid%box(3))//" angstrom, "
    if (sim%grid%shape%leans) then
      write (line, "(3(f0.3,1x))") sim%grid%shape%tilt(sim%grid%box)
      extent = extent//"triclinic with b_x, c_x, c_y "//trim(line)//", "
    end if
    call log%note("chromamd, "//precision_name//" precision, "//chosen_set()//": "//to_text(sim%topology%n_atoms)//extent// &
                  to_text(sim%grid%dims(1))//" x "//to_text(sim%grid%dims(2))//" x "// &
                  to_text(sim%grid%dims(3))//" domains")
    if (settings%energy%ewald_charges .and. .not. settings%has_material()) then
      write (line, "(a,i0,a,i0,a,i0,a,f7.5,a)") "reciprocal space: ", sim%grid_points(1), " x ", sim%grid_points(2), " x ", &
        sim%grid_points(3), " points, alpha ", sim%field%shared%alpha, "/angstrom"
      if (sim%comm%n_apart > 0) line = trim(line)//", "//to_text(int(sim%comm%n_apart, int64))//" ranks apart"
      call log%note(trim(line))
    end if
    if (size(settings%source%ignored) > 0) &
      call log%note("keys of GENESIS without effect here: "//listed(settings%source%ignored))
    if (sim%fixed%are_there()) call log%note(sim%fixed%describe(settings))
    if (settings%ensemble%changes_box() .and. .not. settings%ensemble%of_groups) &
      call log%note("group_tp = NO: the thermostat's alone; pressure and barostat are those of groups of rigid bonds")
    if (size(settings%comm%torus) > 0) then
      write (line, "(a,f0.3,a,f0.3,a)") "torus "//settings%comm%torus_name//": a byte of the halo travels ", &
        sim%hops(2), " links (", sim%hops(1), " with ranks in the order of the machine)"
      call log%note(trim(line))
    end if
    call settings%trajectory_atoms(sim%topology%n_atoms, chosen, error)
    if (allocated(error)) return
    schedule = settings%minimisation%schedule
    timestep = 0.0_real64
    if (settings%runs_dynamics) then
      schedule = settings%dynamics%schedule
      timestep = settings%dynamics%timestep
    end if
    ! Not allocated, it counts as absent.
    if (sim%is_open) origin = open_origin(sim%grid%box)
    call frames%open(sim%comm, settings%output%frames, chosen, timestep, schedule%frame_period, first_step, &
                     checkpoints%kept_frames(sim%comm), error, origin, sim%grid%shape%leans)
    if (.not. allocated(error)) &
      call exchange%open_record(sim%comm, settings, merge(sim%step, first_step, checkpoints%continues), checkpoints%continues, &
                                error)
    if (allocated(error)) return
    if (settings%exchange%is_on) call log%note(exchange%describe())
  end subroutine open_outputs

  !> Restart files to start from where the control file names imported coordinates, or a set of another number of ranks.
  subroutine set_up_imported(comm, settings, error)
    type(communicator_t), intent(in) :: comm
    type(settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(settings_t) :: setup
    integer :: n_saved
    if (settings%input%scratch == "") return
    if (settings%input%restart /= "") then
      call saved_ranks(settings%input%restart, n_saved, error)
      call comm%agree(error)
      if (allocated(error)) return
      if (n_saved == comm%n_ranks) return
    end if
    setup = settings
    setup%output%restart = settings%input%scratch//"_"//to_text(int(comm%n_ranks, int64))//"_().rst"
    call set_up_domains(comm, setup, error)
    settings%input%restart = setup%output%restart
  end subroutine set_up_imported

  !> One evaluation of energies and forces, from restart files if the control file names them, else from the bricks; with
  !> [REMD] one for each parameter, and the forces of the last.
  subroutine command_energy(comm, settings, error)
    type(communicator_t), intent(in) :: comm
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(simulation_t) :: sim
    type(settings_t) :: changed
    integer :: parameter

    sim%comm = comm
    call sim%timer%start()
    if (settings%input%restart /= "") then
      call start_from_restart(sim, settings, error)
    else
      call start_from_bricks(sim, settings, error)
    end if
    if (allocated(error)) return
    call sim%prepare_forces(settings, settings%constraints%rigid_bonds, error)
    if (allocated(error)) return
    call sim%rebuild(error)
    if (allocated(error)) return
    changed = settings
    do parameter = 1, settings%exchange%n_replicas()
      if (settings%exchange%is_on) then
        call changed%take_parameter(parameter)
        call sim%take_parameters(changed)
        if (sim%comm%is_root()) write (output_unit, "(a,i0)") "PARAMETER = ", parameter
      end if
      call sim%compute_forces(.true.)
      call print_energies(sim)
    end do
    call sim%halo%destroy()
    if (settings%output%forces /= "") call write_forces(settings%output%forces, sim%comm, sim%topology%n_atoms, sim%atoms, error)
  end subroutine command_energy

  !> Those of the last evaluation, on standard output.
  subroutine print_energies(sim)
    type(simulation_t), intent(in) :: sim
    type(energies_t) :: total
    integer :: k
    total = sim%sum_energies()
    if (sim%comm%is_root()) then
      write (output_unit, "(a,i0)") "ATOMS = ", sim%topology%n_atoms
      write (output_unit, "(a,es23.15e3)") "POTENTIAL_ENE = ", total%potential()
      associate (shown => shown_parts(sim%field%boost%is_on, sim%topology%has_bases()))
        do k = 1, size(shown)
          write (output_unit, "(2a,es23.15e3)") trim(energy_name(shown(k))), " = ", total%part(shown(k))
        end do
      end associate
      write (output_unit, "(a,es23.15e3)") "KINETIC_ENE = ", total%kinetic
      write (output_unit, "(a,es23.15e3)") "RMSG = ", sqrt(total%force2/(3.0_real64*sim%topology%n_atoms))
      write (output_unit, "(a,9es24.15e3)") "VIRIAL = ", total%virial
    end if
  end subroutine print_energies

  !> Per-domain trajectories to one DCD; the root does it alone.
  subroutine command_merge(comm, settings, error)
    type(communicator_t), intent(in) :: comm
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(topology_t) :: topology
    if (comm%is_root()) then
      call topology%read(settings%input%topology, error)
      if (.not. allocated(error)) call merge_trajectories(settings, topology, error)
    end if
    call comm%agree(error)
  end subroutine command_merge

end module commands
