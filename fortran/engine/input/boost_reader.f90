!> [GAMD] to typed settings, and what of it contradicts itself or the rest of the control file.
module boost_reader
  use base_kinds, only: real64
  use base_error, only: error_t
  use boost_settings, only: boost_settings_t, deviation, highest, lowest, mean
  use control, only: control_t
  use settings, only: respa, settings_t
  implicit none
  private
  public :: read_boost

  character(len=3), parameter :: energy(2) = ["pot", "dih"]

contains

  !> Read and check [GAMD]; of the settings all else must be there.
  subroutine read_boost(control, settings, error)
    type(control_t), intent(in) :: control
    type(settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: kind
    integer :: k
    associate (boost => settings%boost)
      boost%is_on = control%yes("GAMD", "gamd")
      if (.not. boost%is_on) return
      boost%acts = control%yes("GAMD", "boost")
      kind = control%text("GAMD", "boost_type")
      boost%of = [kind /= "DIHEDRAL", kind /= "POTENTIAL"]
      boost%is_upper = control%text("GAMD", "thresh_type") /= "LOWER"
      boost%period = control%integer("GAMD", "update_period")
      do k = 1, 2
        boost%largest_deviation(k) = control%real("GAMD", "sigma0_"//energy(k))
        boost%known(highest, k) = control%real("GAMD", energy(k)//"_max")
        boost%known(lowest, k) = control%real("GAMD", energy(k)//"_min")
        boost%known(mean, k) = control%real("GAMD", energy(k)//"_ave")
        boost%known(deviation, k) = control%real("GAMD", energy(k)//"_dev")
      end do
      boost%file = control%text("OUTPUT", "gamdfile")
    end associate
    call check(control, settings, error)
  end subroutine read_boost

  subroutine check(control, settings, error)
    type(control_t), intent(in) :: control
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    integer :: k
    associate (boost => settings%boost)
      if (settings%runs_minimisation) then
        call control%refuse("GAMD", "gamd", "needs [DYNAMICS]; remove [GAMD] from a minimisation", error)
      else if (settings%has_material()) then
        call control%refuse("GAMD", "gamd", "is for molecules; remove [GAMD]", error)
      else if (settings%dynamics%integrator == respa .and. settings%dynamics%long_period > 1) then
        call control%refuse("GAMD", "gamd", "scales all forces in every step; set integrator to VVER or LEAP", error)
      else if (boost%period > 0 .and. settings%exchange%is_on) then
        call control%refuse("GAMD", "update_period", "must be 0 with [REMD]: all replicas have the same boost", error)
      else if (boost%period > 0 .and. boost%file == "") then
        call control%refuse("GAMD", "update_period", "needs gamdfile in [OUTPUT], where its values go", error)
      else if (boost%period == 0 .and. .not. boost%acts) then
        call control%refuse("GAMD", "boost", "= NO watches energies, which needs an update_period", error)
      end if
      do k = 1, 2
        if (allocated(error) .or. .not. boost%of(k)) cycle
        associate (known => boost%known(:, k))
          if (known(highest) < known(lowest)) then
            if (boost%acts .and. boost%period == 0) &
              call control%refuse("GAMD", energy(k)//"_max", "is missing or below "//energy(k)//"_min: give the last values "// &
                                  "of gamdfile from a run with an update_period", error)
          else if (.not. (known(lowest) < known(mean) .and. known(mean) < known(highest) .and. known(deviation) > 0.0_real64)) then
            call control%refuse("GAMD", energy(k)//"_ave", "must lie between "//energy(k)//"_min and "//energy(k)// &
                                "_max, and "//energy(k)//"_dev be positive", error)
          end if
        end associate
      end do
    end associate
  end subroutine check

end module boost_reader
