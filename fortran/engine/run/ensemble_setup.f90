!> Degrees of freedom, thermostat and barostat as the settings say.
module ensemble_setup
  use base_kinds, only: real64
  use base_constants, only: atmosphere
  use barostat, only: barostat_settings_t
  use barostats, only: make_barostat, no_barostat
  use monte_carlo, only: first_largest_move
  use settings, only: anisotropic, area_fixed, isotropic, respa, semi_isotropic, settings_t
  use simulation, only: simulation_t
  use thermostat, only: thermostat_settings_t, thermostat_t
  use thermostats, only: make_thermostat
  implicit none
  private
  public :: prepare_ensemble

contains

  !> Degrees of freedom and thermostat as the control file says. `rigid`: as for `prepare_forces`.
  subroutine prepare_ensemble(sim, settings, rigid)
    class(simulation_t), intent(inout) :: sim
    type(settings_t), intent(in) :: settings
    logical, intent(in) :: rigid
    ! Noise and fixed points move the centre of mass, unless it is stopped again and again.
    logical :: centre_moves
    real(real64) :: n_stopped
    type(thermostat_settings_t) :: bath
    bath%temperature = settings%ensemble%temperature
    bath%tau = settings%ensemble%relaxation_time
    bath%friction = settings%ensemble%friction
    bath%chain_length = settings%ensemble%chain_length
    bath%chain_steps = settings%ensemble%chain_steps
    ! A group that is fixed in part has no velocity of its centre of mass that could be scaled.
    bath%of_groups = settings%ensemble%of_groups .and. sim%fixed%n_parted == 0
    bath%seed = settings%dynamics%seed
    call make_thermostat(settings%ensemble%bath, bath, sim%thermostat)
    sim%atoms%kick_share = sim%thermostat%kick_share()
    sim%stop_period = settings%dynamics%stop_period
    centre_moves = sim%stop_period == 0 .and. (sim%thermostat%moves_centre() .or. settings%restrains_positions() .or. &
                                                sim%fixed%are_there())
    sim%stops_rotation = sim%is_open .and. sim%stop_period > 0 .and. sim%topology%n_atoms > 2 .and. &
                         .not. settings%restrains_positions()
    n_stopped = merge(0.0_real64, 3.0_real64, centre_moves) + merge(3.0_real64, 0.0_real64, sim%stops_rotation)
    sim%n_freedom = 3.0_real64*(sim%topology%n_atoms - sim%topology%site_count()) - n_stopped - sum(sim%fixed%n_freedom)
    sim%n_group_freedom = 3.0_real64*(sim%topology%group_count() - sim%fixed%n_groups) - n_stopped
    if (rigid) sim%n_freedom = sim%n_freedom - sim%topology%constraint_count()
    sim%thermostat%n_freedom = max(1.0_real64, merge(sim%n_group_freedom, sim%n_freedom, bath%of_groups))
    sim%thermostat%is_worked_on = settings%releases_restraints()
    call sim%thermostat%take_from(sim%kept%bath)
    sim%split_forces = settings%dynamics%integrator == respa
    call prepare_barostat(sim, settings)
    sim%lists%box_changes = sim%barostat%changes_box()
  end subroutine prepare_ensemble

  !> Pistons as the control file says.
  subroutine prepare_barostat(sim, settings)
    class(simulation_t), intent(inout) :: sim
    type(settings_t), intent(in) :: settings
    type(barostat_settings_t) :: wanted
    class(thermostat_t), allocatable :: bath
    select case (settings%ensemble%isotropy)
    case (isotropic)
      wanted%pistons%of_axis = 1
    case (semi_isotropic)
      wanted%pistons%of_axis = [1, 1, 2]
    case (anisotropic)
      wanted%pistons%of_axis = [1, 2, 3]
    case (area_fixed)
      wanted%pistons%of_axis = [0, 0, 1]
    end select
    wanted%pressure = settings%ensemble%pressure*atmosphere
    wanted%tau = settings%ensemble%pressure_relaxation_time
    wanted%compressibility = settings%ensemble%compressibility/atmosphere
    wanted%temperature = sim%thermostat%temperature
    wanted%seed = sim%thermostat%seed
    wanted%n_freedom = max(1.0_real64, sim%n_group_freedom)
    wanted%n_groups = real(sim%topology%group_count(), real64)
    ! The pistons have a thermostat of the kind of that of the atoms.
    allocate (bath, mold=sim%thermostat)
    bath%thermostat_settings_t = sim%thermostat%thermostat_settings_t
    bath%friction = settings%ensemble%piston_friction
    bath%n_freedom = wanted%pistons%number()
    call make_barostat(merge(settings%ensemble%barostat, no_barostat, settings%ensemble%changes_box()), wanted, bath, &
                       sim%barostat)
    ! Where no run has made a move yet.
    if (.not. sim%kept%largest_move > 0.0_real64) sim%kept%largest_move = first_largest_move
    call sim%barostat%take_from(sim%kept)
  end subroutine prepare_barostat

end module ensemble_setup
