!> Degrees of freedom, thermostat and barostat as the settings say.
module ensemble_setup
  use base_kinds, only: real64
  use base_constants, only: atmosphere
  use barostat, only: berendsen_barostat, monte_carlo_barostat, mtk_barostat, no_barostat
  use settings, only: anisotropic, area_fixed, barostat_berendsen, barostat_monte_carlo, barostat_mtk, bath_berendsen, &
                      bath_bussi, bath_langevin, bath_nose_hoover, isotropic, respa, semi_isotropic, settings_t
  use simulation, only: simulation_t
  use thermostat, only: berendsen_thermostat, bussi_thermostat, langevin_thermostat, no_thermostat, nose_hoover_thermostat
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
    associate (bath => sim%thermostat)
      bath%kind = no_thermostat
      select case (settings%ensemble%bath)
      case (bath_bussi)
        bath%kind = bussi_thermostat
      case (bath_berendsen)
        bath%kind = berendsen_thermostat
      case (bath_langevin)
        bath%kind = langevin_thermostat
      case (bath_nose_hoover)
        bath%kind = nose_hoover_thermostat
      end select
      sim%stop_period = settings%dynamics%stop_period
      centre_moves = sim%stop_period == 0 .and. (bath%kind == langevin_thermostat .or. settings%restrains_positions())
      sim%n_freedom = 3.0_real64*sim%topology%n_atoms - merge(0.0_real64, 3.0_real64, centre_moves)
      sim%n_group_freedom = 3.0_real64*sim%topology%group_count() - merge(0.0_real64, 3.0_real64, centre_moves)
      if (rigid) sim%n_freedom = sim%n_freedom - sim%topology%constraint_count()
      bath%temperature = settings%ensemble%temperature
      bath%tau = settings%ensemble%relaxation_time
      bath%friction = settings%ensemble%friction
      bath%chain_length = settings%ensemble%chain_length
      bath%chain_steps = settings%ensemble%chain_steps
      bath%of_groups = settings%ensemble%of_groups
      bath%n_freedom = max(1.0_real64, merge(sim%n_group_freedom, sim%n_freedom, bath%of_groups))
      bath%seed = settings%dynamics%seed
    end associate
    sim%split_forces = settings%dynamics%integrator == respa
    call prepare_barostat(sim, settings)
    sim%lists%box_changes = sim%barostat%kind /= no_barostat
  end subroutine prepare_ensemble

  !> Pistons as the control file says.
  subroutine prepare_barostat(sim, settings)
    class(simulation_t), intent(inout) :: sim
    type(settings_t), intent(in) :: settings
    associate (barostat => sim%barostat, bath => sim%barostat%bath)
      barostat%kind = no_barostat
      if (settings%ensemble%changes_box()) then
        select case (settings%ensemble%barostat)
        case (barostat_mtk)
          barostat%kind = mtk_barostat
        case (barostat_berendsen)
          barostat%kind = berendsen_barostat
        case (barostat_monte_carlo)
          barostat%kind = monte_carlo_barostat
        case default
          barostat%kind = merge(berendsen_barostat, mtk_barostat, sim%thermostat%kind == berendsen_thermostat)
        end select
      end if
      select case (settings%ensemble%isotropy)
      case (isotropic)
        barostat%piston = 1
      case (semi_isotropic)
        barostat%piston = [1, 1, 2]
      case (anisotropic)
        barostat%piston = [1, 2, 3]
      case (area_fixed)
        barostat%piston = [0, 0, 1]
      end select
      barostat%pressure = settings%ensemble%pressure*atmosphere
      barostat%tau = settings%ensemble%pressure_relaxation_time
      barostat%compressibility = settings%ensemble%compressibility/atmosphere
      barostat%friction = settings%ensemble%piston_friction
      barostat%n_freedom = max(1.0_real64, sim%n_group_freedom)
      barostat%n_groups = real(sim%topology%group_count(), real64)
      bath%kind = sim%thermostat%kind
      bath%temperature = sim%thermostat%temperature
      bath%tau = sim%thermostat%tau
      bath%chain_length = sim%thermostat%chain_length
      bath%chain_steps = sim%thermostat%chain_steps
      bath%n_freedom = maxval(barostat%piston)
      bath%seed = sim%thermostat%seed
    end associate
  end subroutine prepare_barostat

end module ensemble_setup
