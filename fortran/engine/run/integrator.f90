!> Dynamics: velocity Verlet with SHAKE/SETTLE on positions and RATTLE on velocities; leapfrog; r-RESPA (Tuckerman,
!> Berne and Martyna, J. Chem. Phys. 97, 1990 (1992)) with the forces of reciprocal space in the longer step; Langevin
!> dynamics split as BAOAB with constraints (Leimkuhler and Matthews, Proc. R. Soc. A 472, 20160138 (2016)).
!>
!> Leapfrog is velocity Verlet whose two half kicks are taken together wherever nobody looks at the velocities in
!> between: the same trajectory up to rounding, without RATTLE in those steps.
module integrator
  use base_kinds, only: int64, real64
  use atoms, only: hold
  use base_constants, only: acceleration_unit
  use settings, only: leapfrog, settings_t
  use checkpoint, only: write_restart
  use checkpoints, only: checkpoints_t
  use coupling, only: coupling_t, is_multiple
  use energies, only: energies_t
  use energy_log, only: energy_log_t
  use health_watch, only: health_watch_t
  use base_error, only: error_t
  use half_kick, only: find_half_kick
  use kinetics, only: kick, my_kinetic_energy, remove_momentum, remove_rotation
  use replica_exchange, only: replica_exchange_t
  use restart, only: phase_dynamics, phase_fresh, phase_half_step
  use setup, only: draw_velocities
  use simulation, only: simulation_t
  use base_text, only: to_text
  use timing, only: in_constraints, in_integration, in_output
  use trajectory, only: trajectory_t
  use vital_signs, only: vital_signs_t
  implicit none
  private
  public :: run_dynamics

contains

  !> Run [DYNAMICS] from the present state, which may be that of a checkpoint. `watch` ends it where it becomes unstable, and
  !> `exchange` brings the parameters of other replicas.
  subroutine run_dynamics(sim, settings, log, frames, checkpoints, watch, exchange, error)
    type(simulation_t), intent(inout) :: sim
    type(settings_t), intent(in) :: settings
    type(energy_log_t), intent(inout) :: log
    type(trajectory_t), intent(inout) :: frames
    type(checkpoints_t), intent(inout) :: checkpoints
    type(health_watch_t), intent(inout) :: watch
    type(replica_exchange_t), intent(inout) :: exchange
    type(error_t), allocatable, intent(out) :: error
    type(coupling_t) :: coupling
    type(energies_t) :: total, shown
    type(vital_signs_t) :: signs
    integer(int64) :: first_step, last_step, begin_step, energy_period, frame_period, restart_period, list_period
    real(real64) :: timestep, first_kick, work
    character(len=:), allocatable :: restart_name
    logical :: is_leapfrog, restart_now, energy_now, want_energy, whole_step

    timestep = settings%dynamics%timestep
    sim%timestep = timestep
    energy_period = settings%dynamics%schedule%energy_period
    frame_period = settings%dynamics%schedule%frame_period
    restart_period = settings%dynamics%schedule%restart_period
    list_period = settings%dynamics%list_period
    sim%long_period = settings%dynamics%long_period
    is_leapfrog = settings%dynamics%integrator == leapfrog
    restart_name = settings%output%restart
    call coupling%init(settings)

    if (sim%phase == phase_fresh) then
      call start_fresh(sim, settings, timestep, error)
    else
      call sim%rebuild(error)
      ! They may have moved in the run before.
      call hold(sim%atoms%fixed, sim%atoms%velocity)
    end if
    if (allocated(error)) return
    call log%note(sim%halo%describe())
    first_step = checkpoints%mark%first_step
    begin_step = sim%step
    last_step = first_step + settings%dynamics%schedule%steps
    sim%progress = 0.0_real64
    if (begin_step > first_step) sim%progress = share_done(begin_step)
    if (checkpoints%continues) call coupling%resume(sim)
    if (mod(first_step, sim%long_period) /= 0) then
      call settings%refuse("DYNAMICS", "elec_long_period", "does not divide the step of the restart, "// &
                          to_text(first_step), error)
      return
    end if
    whole_step = sim%phase /= phase_half_step
    if (checkpoints%continues) then
      if (begin_step >= last_step) then
        call checkpoints%refuse_earlier_end(settings, "DYNAMICS", begin_step, last_step, error)
        if (.not. allocated(error) .and. restart_name /= "") call write_restart(sim, restart_name, error)
        return
      end if
      call log%note("continued from the checkpoint at step "//to_text(begin_step))
    end if
    call sim%compute_forces(.true.)
    call find_half_kick(sim, sim%step)
    total = sim%sum_energies()
    sim%barostat%virial = total%group_virial()
    signs = watch%measure(sim)
    if (.not. checkpoints%continues) call log%write(sim%step, sim%time, total, signs)
    call watch%begin(sim, settings, total, signs)
    call watch%check(sim, signs, error, total)
    call sim%comm%agree(error)
    if (allocated(error)) return
    call sim%timer%lap(in_output)

    do while (sim%step < last_step)
      sim%step = sim%step + 1
      sim%time = sim%time + timestep
      sim%progress = share_done(sim%step)
      restart_now = sim%step == last_step .or. is_multiple(sim%step, restart_period)
      energy_now = sim%step == last_step .or. is_multiple(sim%step, energy_period)
      want_energy = energy_now .or. coupling%needs_pressure(sim) .or. exchange%is_due(sim%step)
      if (whole_step) call coupling%begin(sim)
      if (sim%split_forces .and. is_multiple(sim%step - 1, sim%long_period)) &
        call push(sim, sim%slow_force, 0.5_real64*sim%long_period*timestep)
      first_kick = merge(0.5_real64, 1.0_real64, whole_step)*timestep
      call push(sim, sim%atoms%force, first_kick)
      call move_atoms(sim, timestep, coupling%scaling(sim))
      call sim%timer%lap(in_integration)
      call renew_lists(sim, restart_now, is_multiple(sim%step, list_period), error)
      if (allocated(error)) return
      work = sim%mine%release_work
      call sim%compute_forces(want_energy, slow=is_multiple(sim%step, sim%long_period))
      call sim%field%boost%learn(sim%step, error)
      if (allocated(error)) return
      if (sim%thermostat%is_worked_on) sim%thermostat%my_heat = sim%thermostat%my_heat + (work + sim%mine%release_work)
      whole_step = .not. is_leapfrog .or. want_energy .or. restart_now .or. coupling%acts_after(sim) .or. &
                   is_multiple(sim%step, sim%stop_period)
      sim%phase = merge(phase_dynamics, phase_half_step, whole_step)
      if (whole_step) then
        call push(sim, sim%atoms%force, 0.5_real64*timestep)
        if (sim%split_forces .and. is_multiple(sim%step, sim%long_period)) &
          call push(sim, sim%slow_force, 0.5_real64*sim%long_period*timestep)
        call sim%timer%lap(in_integration)
        call sim%constraints%apply_velocities(sim%atoms%position, sim%atoms%velocity, timestep)
        if (coupling%acts_after(sim)) call find_half_kick(sim, sim%step)
        call sim%timer%lap(in_constraints)
        if (coupling%needs_pressure(sim)) total = sim%sum_energies()
        call coupling%finish(sim, total)
        if (is_multiple(sim%step, sim%stop_period)) sim%thermostat%heat = sim%thermostat%heat - energy_of_stop(sim)
        if (want_energy .or. restart_now) call sim%thermostat%gather_heat(sim%comm)
        call coupling%change_volume_at_random(sim, total, restart_now, error)
        if (allocated(error)) return
      end if
      if (want_energy .or. restart_now) call find_half_kick(sim, sim%step)
      call sim%timer%lap(in_integration)
      if (energy_now) then
        shown = sim%sum_energies()
        signs = watch%measure(sim)
        call log%write(sim%step, sim%time, shown, signs)
        call log%check(error)
        if (.not. allocated(error)) call watch%check(sim, signs, error, shown)
        call sim%comm%agree(error)
        if (allocated(error)) return
      end if
      if (is_multiple(sim%step, frame_period)) &
        call frames%write(sim%comm, sim%step, sim%time, sim%grid, sim%atoms, error)
      if (allocated(error)) return
      call exchange%meet(sim, checkpoints, error)
      if (allocated(error)) return
      if (restart_now .and. .not. energy_now) call watch%examine(sim, error)
      if (allocated(error)) return
      if (restart_now .and. restart_name /= "") call write_restart(sim, restart_name, error)
      if (allocated(error)) return
      call checkpoints%write_if_due(sim, last_step, watch, log, frames, error)
      if (allocated(error)) return
      call sim%timer%lap(in_output)
    end do
    if (sim%lists%balance%describe() /= "") call log%note(sim%lists%balance%describe())
    call sim%timer%report(sim%comm, log%unit, sim%step - begin_step, sim%topology%n_atoms, &
                          (sim%step - begin_step)*timestep)
    call exchange%report(log)
    call exchange%meet_at_end(error)
    if (allocated(error)) return
    call checkpoints%write(sim, log, frames, error)
  contains
    !> Share of the steps of the run that are done after a step.
    pure real(real64) function share_done(step)
      integer(int64), intent(in) :: step
      share_done = real(step - first_step, real64)/(last_step - first_step)
    end function share_done
  end subroutine run_dynamics

  !> Lists where they are due. A continued run starts with new lists, so the run that writes its restart rebuilds
  !> everything there too.
  subroutine renew_lists(sim, restart_now, list_now, error)
    type(simulation_t), intent(inout) :: sim
    logical, intent(in) :: restart_now, list_now
    type(error_t), allocatable, intent(out) :: error
    logical :: moved
    if (restart_now) then
      call sim%rebuild(error)
    else if (sim%list_is_due() .or. list_now) then
      call sim%renew_list(error, moved)
    end if
  end subroutine renew_lists

  !> First step of all: put the rigid bonds to their lengths, draw velocities, remove what the constraints and the rest
  !> of the centre of mass forbid.
  subroutine start_fresh(sim, settings, timestep, error)
    type(simulation_t), intent(inout) :: sim
    type(settings_t), intent(in) :: settings
    real(real64), intent(in) :: timestep
    type(error_t), allocatable, intent(out) :: error
    real(real64) :: removed
    call sim%find_constraints(error)
    if (allocated(error)) return
    call sim%constraints%reset_positions(sim%topology, sim%atoms%position, sim%rounding)
    call sim%rebuild(error)
    if (allocated(error)) return
    call draw_velocities(settings%dynamics%seed, settings%ensemble%temperature, sim%topology, &
                         sim%atoms%id(:sim%atoms%n_owned), sim%atoms%velocity)
    call hold(sim%atoms%fixed, sim%atoms%velocity)
    if (.not. sim%fixed%are_there()) removed = energy_of_stop(sim)
    call sim%constraints%apply_velocities(sim%atoms%position, sim%atoms%velocity, timestep)
    sim%phase = phase_dynamics
    call sim%reset_ensemble()
    sim%step = 0
    sim%time = settings%dynamics%initial_time
    call sim%timer%lap(in_constraints)
  end subroutine start_fresh

  !> Bring the centre of mass to rest, and rotation with it where there is no periodic box. Returns the kinetic energy
  !> (kcal/mol) that this took away.
  real(real64) function energy_of_stop(sim) result(removed)
    type(simulation_t), intent(inout) :: sim
    removed = remove_momentum(sim%comm, sim%atoms)
    if (sim%stops_rotation) removed = removed + remove_rotation(sim%comm, sim%atoms)
    call sim%sites%clear(sim%atoms%velocity)
  end function energy_of_stop

  !> Drift, with friction and noise in its middle for Langevin dynamics, and with the box scaled by `factor` before and
  !> again after it.
  subroutine move_atoms(sim, timestep, factor)
    type(simulation_t), intent(inout) :: sim
    real(real64), intent(in) :: timestep, factor(3)
    real(real64) :: before
    call sim%scale_box(factor)
    if (sim%thermostat%acts_in_drift()) then
      associate (atoms => sim%atoms, bath => sim%thermostat)
        call drift(sim, 0.5_real64*timestep)
        call sim%constraints%apply_velocities(atoms%position, atoms%velocity, timestep)
        before = my_kinetic_energy(atoms, atoms%velocity)
        call bath%act_in_drift(atoms, sim%step, timestep)
        call sim%constraints%apply_velocities(atoms%position, atoms%velocity, timestep)
        bath%my_heat = bath%my_heat + my_kinetic_energy(atoms, atoms%velocity) - before
        call sim%timer%lap(in_constraints)
        call drift(sim, 0.5_real64*timestep)
      end associate
    else
      call drift(sim, timestep)
    end if
    call sim%scale_box(factor)
  end subroutine move_atoms

  !> Positions by velocities for a time (ps), with constraints. Forces are lost: they are of the old positions, which
  !> take their place for a while.
  subroutine drift(sim, time)
    type(simulation_t), intent(inout) :: sim
    real(real64), intent(in) :: time
    integer :: i
    !$omp parallel do schedule(static)
    do i = 1, sim%atoms%n_owned
      sim%atoms%force(:, i) = sim%atoms%position(:, i)
      sim%atoms%position(:, i) = sim%atoms%position(:, i) + sim%rounding%on_lattice(time*sim%atoms%velocity(:, i))
    end do
    !$omp end parallel do
    call sim%timer%lap(in_integration)
    if (sim%constraints%active) &
      call sim%constraints%apply_positions(sim%atoms%force, sim%atoms%position, sim%atoms%velocity, time, sim%rounding)
    call sim%sites%place(sim%atoms%position, sim%rounding)
    call sim%timer%lap(in_constraints)
  end subroutine drift

  !> Velocities by forces (kcal/mol/angstrom) for a time (ps).
  subroutine push(sim, force, time)
    type(simulation_t), intent(inout) :: sim
    real(real64), intent(in) :: force(:, :), time
    call kick(sim%atoms%mass, sim%atoms%kind, force, time, sim%atoms%velocity)
  end subroutine push

end module integrator
