!> Steepest descent. The step is the force times a scale that grows after a step that lowered the energy and shrinks
!> after one that did not (which is undone). No atom moves farther than a cap, so overlapping atoms, whose forces are
!> huge, part without harm.
module minimiser
  use precision, only: int64, real64
  use control, only: control_t
  use energies, only: energies_t
  use energy_log, only: energy_log_t
  use error, only: error_t
  use restart, only: phase_fresh
  use simulation, only: simulation_t
  use timing, only: in_integration, in_output
  use trajectory, only: trajectory_t
  implicit none
  private
  public :: run_minimisation

  real(real64), parameter :: growth = 1.2_real64, shrinkage = 0.3_real64

contains

  !> Run [MINIMIZE] from the present state; all bonds are harmonic here, rigid ones too.
  subroutine run_minimisation(sim, control, log, frames, error)
    type(simulation_t), intent(inout) :: sim
    type(control_t), intent(in) :: control
    type(energy_log_t), intent(inout) :: log
    type(trajectory_t), intent(inout) :: frames
    type(error_t), allocatable, intent(out) :: error
    type(energies_t) :: now, trial
    real(real64), allocatable :: start(:, :), force(:, :)
    real(real64) :: scale, largest_scale, cap
    integer(int64) :: n_steps, i_step, energy_period, frame_period, restart_period
    character(len=:), allocatable :: restart_name
    logical :: lower

    n_steps = control%integer("MINIMIZE", "nsteps")
    energy_period = control%integer("MINIMIZE", "eneout_period")
    frame_period = control%integer("MINIMIZE", "crdout_period")
    restart_period = control%integer("MINIMIZE", "rstout_period")
    scale = control%real("MINIMIZE", "force_scale_init")
    largest_scale = control%real("MINIMIZE", "force_scale_max")
    cap = min(control%real("MINIMIZE", "displacement_max"), 0.4_real64*sim%allowed_displacement)
    restart_name = control%text("OUTPUT", "rstfile")
    sim%phase = phase_fresh
    sim%atoms%velocity = 0.0_real64

    call sim%rebuild(error)
    if (allocated(error)) return
    call sim%compute_forces(.true.)
    now = sim%sum_energies()
    call log%write(0_int64, 0.0_real64, now)
    do i_step = 1, n_steps
      sim%step = i_step
      start = sim%atoms%position(:, :sim%atoms%n_owned)
      force = sim%atoms%force(:, :sim%atoms%n_owned)
      call move_along_forces(sim, scale, cap)
      call sim%timer%lap(in_integration)
      call sim%compute_forces(.true.)
      trial = sim%sum_energies()
      lower = trial%potential() <= now%potential()
      ! An energy that is no number (atoms on top of each other) can only become better.
      if (.not. now%potential() < huge(1.0_real64)) lower = .true.
      if (lower) then
        now = trial
        scale = min(largest_scale, growth*scale)
        ! The next trial may move every atom by the cap before its lists are checked again.
        if (sim%largest_displacement() > sim%allowed_displacement - cap) then
          call sim%renew_list(error)
          if (allocated(error)) return
          call sim%compute_forces(.true.)
          now = sim%sum_energies()
        end if
      else
        sim%atoms%position(:, :sim%atoms%n_owned) = start
        sim%atoms%force(:, :sim%atoms%n_owned) = force
        scale = shrinkage*scale
      end if
      if (mod(i_step, energy_period) == 0 .or. i_step == n_steps) then
        call log%write(i_step, 0.0_real64, now)
        call log%check(error)
        call sim%comm%agree(error)
        if (allocated(error)) return
      end if
      if (frame_period > 0) then
        if (mod(i_step, frame_period) == 0) &
          call frames%write(sim%comm, i_step, real(i_step, real64), sim%grid%box, sim%atoms, error)
        if (allocated(error)) return
      end if
      if (restart_period > 0 .and. restart_name /= "" .and. i_step < n_steps) then
        if (mod(i_step, restart_period) == 0) call write_minimised(sim, restart_name, error)
        if (allocated(error)) return
      end if
      call sim%timer%lap(in_output)
    end do
    if (restart_name /= "") call write_minimised(sim, restart_name, error)
    if (allocated(error)) return
    call sim%timer%lap(in_output)
    call sim%timer%report(sim%comm, log%unit, n_steps, sim%topology%n_atoms, 0.0_real64)
  end subroutine run_minimisation

  !> Write the restart after bringing every group to its owner.
  subroutine write_minimised(sim, name, error)
    type(simulation_t), intent(inout) :: sim
    character(len=*), intent(in) :: name
    type(error_t), allocatable, intent(out) :: error
    call sim%rebuild(error)
    if (allocated(error)) return
    call sim%compute_forces(.true.)
    call sim%write_restart(name, error)
  end subroutine write_minimised

  !> Move every atom by scale times its force, by the cap at most.
  subroutine move_along_forces(sim, scale, cap)
    type(simulation_t), intent(inout) :: sim
    real(real64), intent(in) :: scale, cap
    real(real64) :: move(3), length, largest
    integer :: i
    !$omp parallel do schedule(static) private(move, length, largest)
    do i = 1, sim%atoms%n_owned
      move = sim%atoms%force(:, i)
      largest = maxval(abs(move))
      if (.not. largest < huge(largest)) then
        ! An infinite force has no direction left; any, different for neighbours, parts the atoms.
        move = cos(real(mod(sim%atoms%id(i), 1000_int64), real64)*[1.0_real64, 2.0_real64, 3.0_real64])
        largest = maxval(abs(move))
        length = cap
      else if (largest > 0.0_real64) then
        length = min(cap, scale*largest*norm2(move/largest))
      else
        cycle
      end if
      move = move/largest
      sim%atoms%position(:, i) = sim%atoms%position(:, i) + length*move/norm2(move)
    end do
    !$omp end parallel do
  end subroutine move_along_forces

end module minimiser
