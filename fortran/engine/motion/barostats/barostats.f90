!> The barostats by name. A new one takes a name in `barostat_names` and a case in `make_barostat`.
module barostats
  use barostat, only: barostat_settings_t, barostat_t
  use berendsen_barostat, only: berendsen_barostat_t
  use berendsen_thermostat, only: berendsen_thermostat_t
  use fixed_box, only: fixed_box_t
  use monte_carlo, only: monte_carlo_t
  use mtk, only: mtk_t
  use thermostat, only: thermostat_t
  implicit none
  private
  public :: make_barostat, barostat_names, no_barostat

  !> As the control file has them, in the order of the table of keys.
  character(len=*), parameter :: barostat_names(4) = [character(len=9) :: "AUTO", "MTK", "BERENDSEN", "MC"]
  !> In place of one of them, for a box that stays.
  integer, parameter :: no_barostat = 0

contains

  !> The barostat of that place in `barostat_names`, with no past. `bath`: thermostat of its pistons, which it takes if it
  !> has any use for it.
  subroutine make_barostat(which, settings, bath, barostat)
    integer, intent(in) :: which
    type(barostat_settings_t), intent(in) :: settings
    class(thermostat_t), allocatable, intent(inout) :: bath
    class(barostat_t), allocatable, intent(out) :: barostat
    character(len=len(barostat_names)) :: name
    name = "FIXED"
    if (which /= no_barostat) name = barostat_names(which)
    if (name == "AUTO") name = matching_barostat(bath)
    select case (name)
    case ("FIXED")
      allocate (fixed_box_t :: barostat)
    case ("MTK")
      allocate (mtk_t :: barostat)
    case ("BERENDSEN")
      allocate (berendsen_barostat_t :: barostat)
    case ("MC")
      allocate (monte_carlo_t :: barostat)
    end select
    barostat%barostat_settings_t = settings
    select type (barostat)
    class is (mtk_t)
      call move_alloc(bath, barostat%bath)
    end select
  end subroutine make_barostat

  !> The barostat that goes with a thermostat: weak coupling with weak coupling, else pistons.
  pure function matching_barostat(bath) result(name)
    class(thermostat_t), intent(in) :: bath
    character(len=len(barostat_names)) :: name
    name = "MTK"
    select type (bath)
    class is (berendsen_thermostat_t)
      name = "BERENDSEN"
    end select
  end function matching_barostat

end module barostats
