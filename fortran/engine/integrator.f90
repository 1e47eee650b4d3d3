!> Velocity Verlet at constant energy, with SHAKE/SETTLE on positions and RATTLE on velocities.
module integrator
  use precision, only: int64, real64
  use constants, only: acceleration_unit
  use control, only: control_t
  use energy_log, only: energy_log_t
  use error, only: error_t
  use restart, only: phase_dynamics, phase_fresh
  use setup, only: draw_velocities
  use simulation, only: simulation_t
  use timing, only: in_constraints, in_integration, in_output
  use trajectory, only: trajectory_t
  implicit none
  private
  public :: run_dynamics

contains

  !> Run [DYNAMICS] from the present state.
  subroutine run_dynamics(sim, control, log, frames, error)
    type(simulation_t), intent(inout) :: sim
    type(control_t), intent(in) :: control
    type(energy_log_t), intent(inout) :: log
    type(trajectory_t), intent(inout) :: frames
    type(error_t), allocatable, intent(out) :: error
    integer(int64) :: first_step, last_step, energy_period, frame_period, restart_period, list_period
    real(real64) :: timestep
    character(len=:), allocatable :: restart_name
    logical :: restart_now, energy_now, list_now, moved

    timestep = control%real("DYNAMICS", "timestep")
    energy_period = control%integer("DYNAMICS", "eneout_period")
    frame_period = control%integer("DYNAMICS", "crdout_period")
    restart_period = control%integer("DYNAMICS", "rstout_period")
    list_period = control%integer("DYNAMICS", "nbupdate_period")
    restart_name = control%text("OUTPUT", "rstfile")

    call sim%rebuild(error)
    if (allocated(error)) return
    if (sim%phase == phase_fresh) call start_fresh(sim, control, timestep, error)
    if (allocated(error)) return
    first_step = sim%step
    last_step = first_step + control%integer("DYNAMICS", "nsteps")
    call sim%compute_forces(.true.)
    call log%write(sim%step, sim%time, sim%sum_energies())
    call sim%timer%lap(in_output)

    do while (sim%step < last_step)
      sim%step = sim%step + 1
      sim%time = sim%time + timestep
      restart_now = sim%step == last_step .or. is_multiple(sim%step, restart_period)
      energy_now = sim%step == last_step .or. is_multiple(sim%step, energy_period)
      call move_atoms(sim, timestep)
      ! A continued run starts with new lists, so the run that writes its restart rebuilds everything there too.
      list_now = is_multiple(sim%step, list_period)
      if (sim%largest_displacement() > sim%allowed_displacement) list_now = .true.
      call sim%timer%lap(in_integration)
      if (restart_now) then
        call sim%rebuild(error)
      else if (list_now) then
        call sim%renew_list(error, moved)
      end if
      if (allocated(error)) return
      call sim%compute_forces(energy_now)
      call kick(sim, 0.5_real64*timestep)
      call sim%timer%lap(in_integration)
      call sim%constraints%apply_velocities(sim%atoms%mass, sim%atoms%position, sim%atoms%velocity, timestep)
      call sim%timer%lap(in_constraints)
      if (energy_now) then
        call log%write(sim%step, sim%time, sim%sum_energies())
        call log%check(error)
        call sim%comm%agree(error)
        if (allocated(error)) return
      end if
      if (is_multiple(sim%step, frame_period)) &
        call frames%write(sim%comm, sim%step, sim%time, sim%grid%box, sim%atoms, error)
      if (allocated(error)) return
      if (restart_now .and. restart_name /= "") call sim%write_restart(restart_name, error)
      if (allocated(error)) return
      call sim%timer%lap(in_output)
    end do
    call sim%timer%report(sim%comm, log%unit, sim%step - first_step, sim%topology%n_atoms, &
                          (sim%step - first_step)*timestep)
  end subroutine run_dynamics

  pure logical function is_multiple(step, period)
    integer(int64), intent(in) :: step, period
    is_multiple = .false.
    if (period > 0) is_multiple = mod(step, period) == 0
  end function is_multiple

  !> First step of all: put the rigid bonds to their lengths, draw velocities, remove what the constraints and the rest
  !> of the centre of mass forbid.
  subroutine start_fresh(sim, control, timestep, error)
    type(simulation_t), intent(inout) :: sim
    type(control_t), intent(in) :: control
    real(real64), intent(in) :: timestep
    type(error_t), allocatable, intent(out) :: error
    real(real64) :: momentum(4)
    integer :: i
    call sim%constraints%reset_positions(sim%topology, sim%atoms%mass, sim%atoms%position)
    call sim%rebuild(error)
    if (allocated(error)) return
    call draw_velocities(control%integer("DYNAMICS", "iseed"), control%real("ENSEMBLE", "temperature"), sim%topology, &
                         sim%atoms%id(:sim%atoms%n_owned), sim%atoms%velocity)
    momentum = 0.0_real64
    do i = 1, sim%atoms%n_owned
      momentum = momentum + sim%atoms%mass(i)*[sim%atoms%velocity(:, i), 1.0_real64]
    end do
    call sim%comm%sum(momentum)
    do i = 1, sim%atoms%n_owned
      sim%atoms%velocity(:, i) = sim%atoms%velocity(:, i) - momentum(:3)/momentum(4)
    end do
    call sim%constraints%apply_velocities(sim%atoms%mass, sim%atoms%position, sim%atoms%velocity, timestep)
    sim%phase = phase_dynamics
    sim%step = 0
    sim%time = control%real("DYNAMICS", "initial_time")
    call sim%timer%lap(in_constraints)
  end subroutine start_fresh

  !> First half kick and drift, with constraints.
  subroutine move_atoms(sim, timestep)
    type(simulation_t), intent(inout) :: sim
    real(real64), intent(in) :: timestep
    real(real64), allocatable :: old(:, :)
    integer :: i
    call kick(sim, 0.5_real64*timestep)
    if (sim%constraints%active) old = sim%atoms%position(:, :sim%atoms%n_owned)
    !$omp parallel do schedule(static)
    do i = 1, sim%atoms%n_owned
      sim%atoms%position(:, i) = sim%atoms%position(:, i) + timestep*sim%atoms%velocity(:, i)
    end do
    !$omp end parallel do
    call sim%timer%lap(in_integration)
    if (.not. sim%constraints%active) return
    call sim%constraints%apply_positions(sim%atoms%mass, old, sim%atoms%position, sim%atoms%velocity, timestep)
    call sim%timer%lap(in_constraints)
  end subroutine move_atoms

  !> Velocities by forces for a time (ps).
  subroutine kick(sim, time)
    type(simulation_t), intent(inout) :: sim
    real(real64), intent(in) :: time
    integer :: i
    !$omp parallel do schedule(static)
    do i = 1, sim%atoms%n_owned
      sim%atoms%velocity(:, i) = sim%atoms%velocity(:, i) + &
                                 time*acceleration_unit/sim%atoms%mass(i)*sim%atoms%force(:, i)
    end do
    !$omp end parallel do
  end subroutine kick

end module integrator
