!> The barostats. A new one takes a number in module settings and a case here.
module barostats
  use barostat, only: barostat_settings_t, barostat_t
  use berendsen_barostat, only: berendsen_barostat_t
  use berendsen_thermostat, only: berendsen_thermostat_t
  use fixed_box, only: fixed_box_t
  use monte_carlo, only: monte_carlo_t
  use mtk, only: mtk_t
  use settings, only: barostat_automatic, barostat_berendsen, barostat_monte_carlo, barostat_mtk
  use thermostat, only: thermostat_t
  implicit none
  private
  public :: make_barostat, no_barostat

  !> For a box that stays.
  integer, parameter :: no_barostat = 0

contains

  !> The barostat of a kind (`no_barostat` or one of `barostat_...`), with no past. `bath`: thermostat of its pistons, which
  !> it takes if it has any use for it.
  subroutine make_barostat(kind, settings, bath, barostat)
    integer, intent(in) :: kind
    type(barostat_settings_t), intent(in) :: settings
    class(thermostat_t), allocatable, intent(inout) :: bath
    class(barostat_t), allocatable, intent(out) :: barostat
    integer :: chosen
    chosen = kind
    if (kind == barostat_automatic) chosen = matching_barostat(bath)
    select case (chosen)
    case (no_barostat)
      allocate (fixed_box_t :: barostat)
    case (barostat_mtk)
      allocate (mtk_t :: barostat)
    case (barostat_berendsen)
      allocate (berendsen_barostat_t :: barostat)
    case (barostat_monte_carlo)
      allocate (monte_carlo_t :: barostat)
    end select
    barostat%barostat_settings_t = settings
    select type (barostat)
    class is (mtk_t)
      call move_alloc(bath, barostat%bath)
    end select
  end subroutine make_barostat

  !> The barostat that goes with a thermostat: weak coupling with weak coupling, else pistons.
  pure integer function matching_barostat(bath) result(kind)
    class(thermostat_t), intent(in) :: bath
    kind = barostat_mtk
    select type (bath)
    class is (berendsen_thermostat_t)
      kind = barostat_berendsen
    end select
  end function matching_barostat

end module barostats
