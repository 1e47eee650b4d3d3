!> A run of dynamics: start or restart, steps, log, frames and restart files.
module qm_dynamics
  use base_kinds, only: int64, real64
  use base_error, only: error_t, exit_interrupted, exit_resources, fail
  use base_random, only: maxwell_velocities
  use base_stop_signal, only: catch_stop_signals, stop_signal
  use base_text, only: decimal_text, to_text
  use atomic_units, only: bohr, dalton, kelvin, time_unit
  use born_oppenheimer, only: born_oppenheimer_t
  use car_parrinello, only: car_parrinello_t
  use dynamics, only: dynamics_t
  use ions, only: ions_t
  use kohn_sham, only: energies_t, kohn_sham_t
  use qm_restart, only: read_qm_restart, write_qm_restart
  use qm_settings, only: born_oppenheimer, nonorthogonal, qm_settings_t
  use run_log, only: run_log_t
  implicit none
  private
  public :: run_dynamics

contains

  !> Move ions and states from the minimum (`states`), or from the restart files that the settings name. Returns energy
  !> and forces at the end.
  subroutine run_dynamics(ks, settings, states, log, energy, force, error)
    class(kohn_sham_t), intent(inout) :: ks
    type(qm_settings_t), intent(inout) :: settings
    complex(real64), intent(in) :: states(:, :)
    type(run_log_t), intent(inout) :: log
    type(energies_t), intent(out) :: energy
    real(real64), allocatable, intent(out) :: force(:, :)
    type(error_t), allocatable, intent(out) :: error
    class(dynamics_t), allocatable :: run
    integer :: k

    associate (d => settings%dynamics)
      call prepare(ks, settings, states, run)
      if (settings%restart_in /= "") then
        call read_qm_restart(settings%restart_in, ks, settings%system, run, error)
        if (allocated(error)) return
        call ks%move_ions(settings%system)
      else
        call draw_velocities(settings%system, settings%seed, d%temperature)
      end if
      call run%start(ks, settings%system, error)
      if (allocated(error)) return
      if (settings%restart_out /= "") call catch_stop_signals()
      call log%dynamics_heading()
      call report(.true.)
      do k = 1, d%n_steps
        if (allocated(error)) return
        call run%advance(ks, settings%system, error)
        if (allocated(error)) return
        if (mod(run%step, int(d%period, int64)) == 0 .or. k == d%n_steps) call report(.false.)
        if (.not. allocated(error)) call keep(k == d%n_steps)
      end do
      if (allocated(error)) return
    end associate
    energy = run%energy
    force = run%ion_force
    select type (run)
    type is (born_oppenheimer_t)
      if (run%step > 0) call log%say("# "//decimal_text(real(run%n_minimiser_steps, real64)/run%step, 1)// &
                                     " steps of minimisation a step of dynamics")
    end select

  contains

    !> Write restart files when it is time; end where any rank was asked to.
    subroutine keep(is_last)
      logical, intent(in) :: is_last
      logical :: is_due, is_stopped
      if (settings%restart_out == "") return
      is_stopped = ks%comm%maximum(real(stop_signal(), real64)) > 0.0_real64
      is_due = is_last .or. is_stopped
      if (settings%dynamics%restart_period > 0) &
        is_due = is_due .or. mod(run%step, int(settings%dynamics%restart_period, int64)) == 0
      if (is_due) call write_qm_restart(settings%restart_out, ks, settings%system, run%coefficient, error, run)
      if (is_stopped .and. .not. is_last .and. .not. allocated(error)) &
        call fail(error, exit_interrupted, "interrupted at step "//to_text(run%step)//"; give "//settings%restart_out// &
                  " as restartfile in [INPUT] to go on")
    end subroutine keep

    !> A line of the log and a frame.
    subroutine report(is_first)
      logical, intent(in) :: is_first
      real(real64) :: kinetic(2), temperature, conserved
      kinetic = [settings%system%kinetic_energy(), run%states_kinetic(ks)]
      conserved = run%conserved(ks, settings%system)
      temperature = 2.0_real64*kinetic(1)/(n_freedom(settings%system)*kelvin)
      call log%dynamics(int(run%step), run%step*run%time_step*time_unit, run%energy%total(), kinetic, conserved, temperature)
      if (settings%xyz_file == "" .or. (is_first .and. settings%restart_in /= "")) return
      if (log%speaks) call write_frame(settings, run, is_first, error)
      call ks%comm%agree(error)
    end subroutine report

  end subroutine run_dynamics

  !> The kind of dynamics that settings ask for, with states at its start and baths at rest.
  subroutine prepare(ks, settings, states, run)
    class(kohn_sham_t), intent(in) :: ks
    type(qm_settings_t), intent(in) :: settings
    complex(real64), intent(in) :: states(:, :)
    class(dynamics_t), allocatable, intent(out) :: run
    type(car_parrinello_t), allocatable :: together
    type(born_oppenheimer_t), allocatable :: apart

    associate (d => settings%dynamics, system => settings%system)
      if (d%method == born_oppenheimer) then
        allocate (apart)
        apart%tolerance = settings%tolerance
        apart%most_steps = settings%most_steps
        call move_alloc(apart, run)
      else
        allocate (together)
        together%is_free = d%method == nonorthogonal
        together%overlap_tolerance = d%overlap_tolerance
        together%mass = d%electron_mass
        together%mass_cutoff = d%mass_cutoff
        allocate (together%velocity, mold=states)
        together%velocity = 0.0_real64
        ! The degrees of freedom set how light the further links are; all of a state together count as one, as the links
        ! of thousands would be too light for the time step.
        call together%state_bath%create(merge(d%n_links, 0, d%state_energy > 0.0_real64), d%state_energy, &
                                        real(ks%n_states, real64), d%state_period)
        call move_alloc(together, run)
      end if
      run%kind_number = d%method
      run%time_step = d%time_step
      allocate (run%coefficient, source=states)
      call run%ion_bath%create(merge(d%n_links, 0, d%has_thermostat), 0.5_real64*n_freedom(system)*kelvin*d%temperature, &
                               n_freedom(system), d%ion_period)
    end associate
  end subroutine prepare

  !> Degrees of freedom of the ions: the whole does not move.
  pure real(real64) function n_freedom(system)
    type(ions_t), intent(in) :: system
    n_freedom = 3.0_real64*max(1, system%n_atoms() - 1)
  end function n_freedom

  !> Velocities of a temperature (K), without motion of the whole.
  subroutine draw_velocities(system, seed, temperature)
    type(ions_t), intent(inout) :: system
    integer(int64), intent(in) :: seed
    real(real64), intent(in) :: temperature
    !> Bohr per unit of time in one angstrom/ps.
    real(real64), parameter :: unit = time_unit/1000.0_real64/bohr
    real(real64) :: drift(3)
    integer :: a
    if (temperature <= 0.0_real64) return
    call maxwell_velocities(seed, [(int(a, int64), a=1, system%n_atoms())], system%mass/dalton, temperature, system%velocity)
    system%velocity = unit*system%velocity
    drift = matmul(system%velocity, system%mass)/sum(system%mass)
    do a = 1, system%n_atoms()
      system%velocity(:, a) = system%velocity(:, a) - drift
    end do
  end subroutine draw_velocities

  !> One frame of the trajectory, in angstrom.
  subroutine write_frame(settings, run, is_first, error)
    type(qm_settings_t), intent(in) :: settings
    class(dynamics_t), intent(in) :: run
    logical, intent(in) :: is_first
    type(error_t), allocatable, intent(out) :: error
    integer :: unit, status, a
    open (newunit=unit, file=settings%xyz_file, action="write", status=merge("replace", "unknown", is_first), &
          position=merge("rewind", "append", is_first), iostat=status)
    if (status == 0) then
      write (unit, "(i0)", iostat=status) settings%system%n_atoms()
      associate (b => bohr*settings%system%box)
        write (unit, "(9(a,f0.6),a,i0,a,f0.9)") 'Lattice="', b(1), " ", 0.0, " ", 0.0, " ", 0.0, " ", b(2), " ", 0.0, " ", 0.0, &
          " ", 0.0, " ", b(3), '" Properties=species:S:1:pos:R:3 step=', run%step, " energy_hartree=", run%energy%total()
      end associate
      do a = 1, settings%system%n_atoms()
        write (unit, "(a,3f16.8)", iostat=status) settings%element(a), settings%system%position(:, a)*bohr
      end do
      close (unit)
    end if
    if (status /= 0) call fail(error, exit_resources, settings%xyz_file//": cannot be written; check folder and free space")
  end subroutine write_frame

end module qm_dynamics
