!> How thermostat and barostat are woven into the steps of an integrator. Each acts half before and half after the steps
!> of its period, in opposite order, which keeps the whole symmetric in time; the box changes in the middle of them.
module coupling
  use base_kinds, only: int64, real64
  use settings, only: settings_t
  use energies, only: energies_t
  use base_error, only: error_t
  use half_kick, only: find_half_kick
  use monte_carlo, only: monte_carlo_t
  use simulation, only: simulation_t
  implicit none
  private
  public :: coupling_t, change_bath, is_multiple

  type :: coupling_t
    !> Steps between two uses.
    integer(int64), private :: bath_period = 1, box_period = 1
    !> Length of those periods, ps.
    real(real64), private :: bath_time = 0.0_real64, box_time = 0.0_real64
    !> Annealing: temperature of step 0, change, and the steps between changes (0 = none).
    real(real64), private :: first_temperature = 0.0_real64, temperature_change = 0.0_real64
    integer(int64), private :: annealing_period = 0
    !> Where the temperature is a linear function of the progress of the run: that of its end.
    real(real64), allocatable, private :: final_temperature
  contains
    procedure :: init
    procedure, nopass :: resume
    procedure :: acts_after
    procedure :: begin
    procedure :: finish
    procedure :: scaling
    procedure :: change_volume_at_random
    procedure :: needs_pressure
  end type coupling_t

contains

  !> Whether a step ends a period; never where the period is 0.
  pure logical function is_multiple(step, period)
    integer(int64), intent(in) :: step, period
    is_multiple = .false.
    if (period > 0) is_multiple = mod(step, period) == 0
  end function is_multiple

  !> Take periods and annealing from the settings.
  subroutine init(self, settings)
    class(coupling_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    self%bath_period = settings%dynamics%thermostat_period
    self%box_period = settings%dynamics%barostat_period
    self%bath_time = self%bath_period*settings%dynamics%timestep
    self%box_time = self%box_period*settings%dynamics%timestep
    self%first_temperature = settings%ensemble%temperature
    if (allocated(settings%ensemble%final_temperature)) self%final_temperature = settings%ensemble%final_temperature
    self%temperature_change = settings%dynamics%temperature_change
    self%annealing_period = settings%dynamics%annealing_period
  end subroutine init

  !> Go on from a checkpoint: with the temperature of that moment, which may differ from that of the settings. What the
  !> change from there had done to the energy is booked already.
  subroutine resume(sim)
    type(simulation_t), intent(inout) :: sim
    sim%thermostat%temperature = sim%kept%bath%temperature
    call sim%barostat%set_temperature(sim%kept%bath%temperature)
  end subroutine resume

  !> Whether the barostat looks at the pressure, or the energy, at the end of this step.
  pure logical function needs_pressure(self, sim)
    class(coupling_t), intent(in) :: self
    type(simulation_t), intent(in) :: sim
    needs_pressure = sim%barostat%changes_box() .and. is_multiple(sim%step, self%box_period)
  end function needs_pressure

  !> Whether velocities of the end of this step are looked at or changed before the next step.
  pure logical function acts_after(self, sim)
    class(coupling_t), intent(in) :: self
    type(simulation_t), intent(in) :: sim
    acts_after = self%needs_pressure(sim) .or. &
                 sim%thermostat%acts_on_velocities() .and. is_multiple(sim%step, self%bath_period)
  end function acts_after

  !> What comes before the motions of a step.
  subroutine begin(self, sim)
    class(coupling_t), intent(inout) :: self
    type(simulation_t), intent(inout) :: sim
    if (self%annealing_period > 0) then
      call change_bath(sim, max(0.0_real64, self%first_temperature + self%temperature_change* &
                                ((sim%step - 1)/self%annealing_period)), sim%barostat%pressure)
    else if (allocated(self%final_temperature)) then
      call change_bath(sim, self%first_temperature + sim%progress*(self%final_temperature - self%first_temperature), &
                       sim%barostat%pressure)
    end if
    if (is_multiple(sim%step - 1, self%bath_period) .or. is_multiple(sim%step - 1, self%box_period)) &
      call find_half_kick(sim, sim%step - 1)
    if (is_multiple(sim%step - 1, self%bath_period)) &
      call sim%thermostat%act_on_velocities(sim%comm, sim%atoms, sim%step, 1, 0.5_real64*self%bath_time)
    if (is_multiple(sim%step - 1, self%box_period)) &
      call sim%barostat%act_before(sim%comm, sim%atoms, product(sim%grid%box), sim%step, 0.5_real64*self%box_time)
  end subroutine begin

  !> Give thermostat and barostat another temperature (K) and pressure (kcal/mol/angstrom^3). What this changes of the energy
  !> that they hold is booked as heat, so that the conserved quantity goes on.
  subroutine change_bath(sim, temperature, pressure)
    type(simulation_t), intent(inout) :: sim
    real(real64), intent(in) :: temperature, pressure
    real(real64) :: before, volume
    volume = product(sim%grid%box)
    before = sim%thermostat%conserved_part() + sim%barostat%conserved_part(volume)
    sim%thermostat%temperature = temperature
    call sim%barostat%set_temperature(temperature)
    sim%barostat%pressure = pressure
    sim%thermostat%heat = sim%thermostat%heat + &
                          (sim%thermostat%conserved_part() + sim%barostat%conserved_part(volume) - before)
  end subroutine change_bath

  !> What comes after the motions of a step. `total`: energies at the end of it, defined where `needs_pressure`.
  subroutine finish(self, sim, total)
    class(coupling_t), intent(inout) :: self
    type(simulation_t), intent(inout) :: sim
    type(energies_t), intent(in) :: total
    if (self%needs_pressure(sim)) then
      sim%barostat%virial = total%group_virial()
      call sim%barostat%act_after(sim%comm, sim%atoms, product(sim%grid%box), sim%step, 0.5_real64*self%box_time)
    end if
    if (is_multiple(sim%step, self%bath_period)) &
      call sim%thermostat%act_on_velocities(sim%comm, sim%atoms, sim%step, 2, 0.5_real64*self%bath_time)
    ! What groups share is no motion of sites, which follow their parents.
    call sim%sites%clear(sim%atoms%velocity)
  end subroutine finish

  !> Factors by which the box is to be scaled before, and again after, the drift of this step.
  pure function scaling(self, sim) result(factor)
    class(coupling_t), intent(in) :: self
    type(simulation_t), intent(in) :: sim
    real(real64) :: factor(3)
    factor = 1.0_real64
    if (mod(sim%step - 1, self%box_period) + 1 == (self%box_period + 1)/2) &
      factor = sim%barostat%scaling(0.5_real64*self%box_time)
  end function scaling

  !> A Monte Carlo move of the volume where one is due, judged by `total`, the energies of the present positions, which
  !> it renews. `for_restart`: what it leaves must not depend on lists of the past.
  subroutine change_volume_at_random(self, sim, total, for_restart, error)
    class(coupling_t), intent(in) :: self
    type(simulation_t), intent(inout) :: sim
    type(energies_t), intent(inout) :: total
    logical, intent(in) :: for_restart
    type(error_t), allocatable, intent(out) :: error
    type(energies_t) :: trial, mine
    real(real64), allocatable :: position(:, :), force(:, :), slow_force(:, :)
    real(real64) :: factor(3), box(3)
    logical :: moved
    if (.not. is_multiple(sim%step, self%box_period)) return
    select type (barostat => sim%barostat)
    class is (monte_carlo_t)
      call barostat%trial_move(sim%step, factor)
      if (sim%list_is_due(maxval(abs(log(factor))))) then
        call sim%renew_list(error, moved)
        if (allocated(error)) return
        call sim%compute_forces(.true.)
      end if
      box = sim%grid%box
      mine = sim%mine
      position = sim%atoms%position
      force = sim%atoms%force
      if (sim%split_forces) slow_force = sim%slow_force
      call sim%scale_box(factor)
      call sim%compute_forces(.true.)
      trial = sim%sum_energies()
      if (barostat%accepts(sim%step, trial%potential() - total%potential(), product(box), product(sim%grid%box))) then
        total = trial
        if (.not. for_restart) return
        call sim%rebuild(error)
        if (allocated(error)) return
        call sim%compute_forces(.true.)
      else
        call sim%scale_box(1.0_real64/factor)
        call sim%change_box(box)
        sim%atoms%position = position
        sim%atoms%force = force
        if (sim%split_forces) sim%slow_force = slow_force
        sim%mine = mine
      end if
    end select
  end subroutine change_volume_at_random

end module coupling
