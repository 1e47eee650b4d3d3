!> The thermostats. A new one takes a number in module settings and a case here.
module thermostats
  use berendsen_thermostat, only: berendsen_thermostat_t
  use bussi, only: bussi_t
  use isolated, only: isolated_t
  use langevin, only: langevin_t
  use nose_hoover_chain, only: nose_hoover_chain_t
  use settings, only: bath_berendsen, bath_bussi, bath_langevin, bath_none, bath_nose_hoover
  use thermostat, only: thermostat_settings_t, thermostat_t
  implicit none
  private
  public :: make_thermostat

contains

  !> The thermostat of a kind (one of `bath_...`), with no past.
  subroutine make_thermostat(kind, settings, thermostat)
    integer, intent(in) :: kind
    type(thermostat_settings_t), intent(in) :: settings
    class(thermostat_t), allocatable, intent(out) :: thermostat
    select case (kind)
    case (bath_none)
      allocate (isolated_t :: thermostat)
    case (bath_bussi)
      allocate (bussi_t :: thermostat)
    case (bath_langevin)
      allocate (langevin_t :: thermostat)
    case (bath_nose_hoover)
      allocate (nose_hoover_chain_t :: thermostat)
    case (bath_berendsen)
      allocate (berendsen_thermostat_t :: thermostat)
    end select
    thermostat%thermostat_settings_t = settings
  end subroutine make_thermostat

end module thermostats
