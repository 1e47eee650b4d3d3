!> The thermostats by name. A new one takes a name in `thermostat_names` and a case in `make_thermostat`.
module thermostats
  use berendsen_thermostat, only: berendsen_thermostat_t
  use bussi, only: bussi_t
  use isolated, only: isolated_t
  use langevin, only: langevin_t
  use nose_hoover_chain, only: nose_hoover_chain_t
  use thermostat, only: thermostat_settings_t, thermostat_t
  implicit none
  private
  public :: make_thermostat, thermostat_names

  !> As the control file has them, in the order of the table of keys.
  character(len=*), parameter :: thermostat_names(5) = [character(len=9) :: "NO", "BUSSI", "LANGEVIN", "NHC", "BERENDSEN"]

contains

  !> The thermostat of that place in `thermostat_names`, with no past.
  subroutine make_thermostat(which, settings, thermostat)
    integer, intent(in) :: which
    type(thermostat_settings_t), intent(in) :: settings
    class(thermostat_t), allocatable, intent(out) :: thermostat
    select case (thermostat_names(which))
    case ("NO")
      allocate (isolated_t :: thermostat)
    case ("BUSSI")
      allocate (bussi_t :: thermostat)
    case ("LANGEVIN")
      allocate (langevin_t :: thermostat)
    case ("NHC")
      allocate (nose_hoover_chain_t :: thermostat)
    case ("BERENDSEN")
      allocate (berendsen_thermostat_t :: thermostat)
    end select
    thermostat%thermostat_settings_t = settings
  end subroutine make_thermostat

end module thermostats
