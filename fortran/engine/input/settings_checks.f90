!> Values of the control file that are fine alone but contradict each other, or that a command cannot do without.
module settings_checks
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use ensemble_state, only: max_chain
  use base_text, only: to_text
  use settings, only: area_fixed, barostat_automatic, bath_langevin, bath_none, energy_settings_t, ensemble_npat, &
                      ensemble_npt, ensemble_nve, ensemble_nvt, forcefield_embedded_atoms, forcefield_topology, leapfrog, &
                      no_tail, respa, settings_t
  implicit none
  private
  public :: check_together, check_command, check_release

contains

  !> What any command refuses.
  subroutine check_together(settings, error)
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    if (settings%runs_dynamics .and. settings%runs_minimisation) &
      call settings%source%refuse_file("[MINIMIZE] and [DYNAMICS] stand together; one run does one of them", error)
    if (.not. allocated(error)) call check_energy(settings, error)
    if (.not. allocated(error)) call check_dispersion(settings, error)
    if (.not. allocated(error)) call check_solvent(settings, error)
    if (.not. allocated(error)) call check_motion(settings, error)
    if (.not. allocated(error)) call check_output(settings, error)
    if (.not. allocated(error)) call check_open(settings, error)
    if (.not. allocated(error)) call check_material(settings, error)
  end subroutine check_together

  !> [ENERGY] and [COMM].
  subroutine check_energy(settings, error)
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    associate (energy => settings%energy, comm => settings%comm)
      if (energy%cutoff <= 0.0_real64) then
        call settings%refuse("ENERGY", "cutoffdist", "must be positive", error)
      else if (.not. energy%ewald_dispersion .and. energy%forcefield == forcefield_topology .and. &
               energy%switch_distance > energy%cutoff) then
        call settings%refuse("ENERGY", "switchdist", "must not exceed cutoffdist", error)
      else if (energy%cutoff >= energy%list_distance) then
        call settings%refuse("ENERGY", "pairlistdist", "must exceed cutoffdist", error)
      else if (count([energy%force_switch, energy%force_shift, energy%shift]) > 1) then
        call settings%refuse("ENERGY", merge("vdw_shift       ", "vdw_energy_shift", energy%force_shift), &
                             "contradicts another form of van der Waals near the cutoff; give one of vdw_force_switch, "// &
                             "vdw_shift and vdw_energy_shift", error)
      else if (energy%ewald_dispersion .and. energy%deterministic) then
        call settings%refuse("ENERGY", "deterministic", "does not go with vdw = PME; give vdw = CUTOFF", error)
      else if (.not. energy%ewald_charges .and. settings%dynamics%integrator == respa) then
        call settings%refuse("DYNAMICS", "integrator", "needs reciprocal space, which electrostatic = "// &
                             settings%source%text("ENERGY", "electrostatic")//" has not; give VVER", error)
      else if (.not. energy%ewald_charges .and. energy%ewald_dispersion) then
        call settings%refuse("ENERGY", "vdw", "needs electrostatic = PME", error)
      else if (.not. energy%ewald_charges .and. allocated(energy%list_tolerance)) then
        call settings%refuse("ENERGY", "pairlist_tolerance", "needs electrostatic = PME; remove it", error)
      else if (energy%table_order > 0 .and. energy%ewald_dispersion) then
        call settings%refuse("ENERGY", "table", "does not go with vdw = PME; give table = NO", error)
      else if (comm%pme_ranks > 0 .and. .not. energy%ewald_charges) then
        call settings%refuse("COMM", "pme_ranks", "needs electrostatic = PME", error)
      else if (comm%pme_ranks > 0 .and. energy%forcefield /= forcefield_topology) then
        call settings%refuse("COMM", "pme_ranks", "needs forcefield = TOPOLOGY; others have no reciprocal space", error)
      else if (comm%pme_ranks > 0 .and. size(comm%torus) > 0) then
        call settings%refuse("COMM", "torus", "does not go with pme_ranks; remove one of them", error)
      else if (comm%pme_ranks > 0 .and. energy%ewald_dispersion) then
        call settings%refuse("COMM", "pme_ranks", "does not go with vdw = PME; give vdw = CUTOFF", error)
      else if (comm%fft%subset /= "full" .and. all(comm%fft%scheme /= ["1d     ", "qcdoc  ", "columns"])) then
        call settings%refuse("COMM", "fft_subset", "needs fft = 1D, QCDOC or COLUMNS; MODEL and TIME choose it", error)
      else if (comm%fft%by_node .and. comm%overlap) then
        call settings%refuse("COMM", "fft_by_node", "does not go with overlap = YES: these messages are waited for", error)
      else if (comm%midpoint .and. energy%forcefield /= forcefield_topology) then
        call settings%refuse("COMM", "method", "needs forcefield = TOPOLOGY; give HALF_SHELL", error)
      else if (comm%midpoint .and. settings%source%text("COMM", "pattern") == "HALF") then
        call settings%refuse("COMM", "pattern", "does not go with method = MIDPOINT, whose ghosts come from all around; "// &
                             "give FULL or STAGED", error)
      else if (energy%spline_order > 10) then
        call settings%refuse("ENERGY", "pme_nspline", "must be at most 10", error)
      else if (allocated(energy%list_tolerance)) then
        if (energy%list_tolerance > 1.0_real64) then
          call settings%refuse("ENERGY", "pairlist_tolerance", "must be at most 1 kT/ns/atom", error)
        else if (energy%list_tolerance > 0.0_real64 .and. energy%deterministic) then
          call settings%refuse("ENERGY", "pairlist_tolerance", "must be 0 or auto with deterministic = YES", error)
        end if
      end if
    end associate
  end subroutine check_energy

  !> Van der Waals forces near and beyond the cutoff.
  subroutine check_dispersion(settings, error)
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    associate (energy => settings%energy)
      if (energy%ewald_dispersion .and. (changes_form(energy) .or. energy%tail /= no_tail)) then
        call settings%refuse("ENERGY", "vdw", &
                             "sums the dispersion beyond the cutoff; remove vdw_force_switch, vdw_shift, vdw_energy_shift "// &
                             "and dispersion_corr", &
                             error)
      else if (energy%ewald_dispersion .and. settings%source%given("ENERGY", "switchdist") .and. &
               energy%switch_distance < energy%cutoff) then
        call settings%refuse("ENERGY", "switchdist", "does not go with vdw = PME, which has no switch; remove it", error)
      else if (settings%source%differs("ENERGY", "vdw_switch_form") .and. (changes_form(energy) .or. &
               energy%ewald_dispersion .or. energy%screened_charges .or. energy%vacuum)) then
        call settings%refuse("ENERGY", "vdw_switch_form", "goes only with the switched energy, not with "// &
                             "vdw_force_switch, vdw_shift, vdw_energy_shift, vdw = PME, vacuum or DEBYE; remove it", error)
      else if (.not. energy%ewald_dispersion .and. allocated(energy%dispersion_alpha)) then
        call settings%refuse("ENERGY", "vdw_pme_alpha", "needs vdw = PME", error)
      else if (energy%tail /= no_tail .and. changes_form(energy)) then
        call settings%refuse("ENERGY", "dispersion_corr", &
                             "goes only with the switched energy, not with vdw_force_switch, vdw_shift or vdw_energy_shift", error)
      end if
    end associate
  end subroutine check_dispersion

  !> Whether van der Waals near the cutoff are anything else than an energy that is switched or cut off.
  pure logical function changes_form(energy)
    type(energy_settings_t), intent(in) :: energy
    changes_form = energy%force_switch .or. energy%force_shift .or. energy%shift
  end function changes_form

  !> The key that says so.
  pure function form_key(energy) result(key)
    type(energy_settings_t), intent(in) :: energy
    character(len=16) :: key
    key = "vdw_force_switch"
    if (energy%force_shift) key = "vdw_shift"
    if (energy%shift) key = "vdw_energy_shift"
  end function form_key

  !> Keys that do not go with electrostatic = DEBYE, and that only go with it.
  subroutine check_solvent(settings, error)
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    character(len=*), parameter :: own(*) = [character(len=15) :: "dielectric", "dielectric_form", "debye_length", &
                                             "ionic_strength"]
    integer :: k
    associate (energy => settings%energy, source => settings%source)
      if (.not. energy%screened_charges) then
        do k = 1, size(own)
          if (.not. allocated(error) .and. source%differs("ENERGY", trim(own(k)))) &
            call settings%refuse("ENERGY", trim(own(k)), "needs electrostatic = DEBYE", error)
        end do
        if (.not. allocated(error) .and. energy%repulsive) &
          call settings%refuse("ENERGY", "vdw_repulsion", "needs electrostatic = DEBYE", error)
      else if (changes_form(energy)) then
        call settings%refuse("ENERGY", trim(form_key(energy)), &
                             "does not go with electrostatic = DEBYE; give switchdist", error)
      else if (energy%vacuum) then
        call settings%refuse("ENERGY", "vacuum", "contradicts electrostatic = DEBYE, whose charges stand in water", error)
      else if (energy%table_order > 0) then
        call settings%refuse("ENERGY", "table", "does not go with electrostatic = DEBYE; give table = NO", error)
      else if (energy%tail /= no_tail) then
        call settings%refuse("ENERGY", "dispersion_corr", "needs a uniform density, which a solute without its water "// &
                             "has not; give NONE", error)
      else if (settings%ensemble%changes_box()) then
        call settings%refuse("ENSEMBLE", "ensemble", "needs the pressure of the water, which electrostatic = DEBYE has "// &
                             "not; give NVE or NVT", error)
      else if (.not. energy%dielectric_grows .and. .not. source%given("ENERGY", "dielectric")) then
        call settings%refuse("ENERGY", "dielectric_form", "needs dielectric, the permittivity (that of water is 78)", error)
      else if (allocated(energy%debye_length)) then
        if (energy%debye_length <= 0.0_real64) then
          call settings%refuse("ENERGY", "debye_length", "must be positive; without salt give ionic_strength = 0", error)
        else if (source%differs("ENERGY", "ionic_strength")) then
          call settings%refuse("ENERGY", "debye_length", "and ionic_strength are both given; remove one of them", error)
        end if
      end if
    end associate
  end subroutine check_solvent

  !> [ENSEMBLE], [DYNAMICS] and [MINIMIZE].
  subroutine check_motion(settings, error)
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    associate (ensemble => settings%ensemble, dynamics => settings%dynamics)
      if (ensemble%ensemble == ensemble_nve .and. ensemble%bath /= bath_none) then
        call settings%refuse("ENSEMBLE", "tpcontrol", "contradicts ensemble = NVE; give ensemble = NVT", error)
      else if (ensemble%ensemble /= ensemble_nve .and. ensemble%bath == bath_none) then
        call settings%refuse("ENSEMBLE", "tpcontrol", "leaves ensemble = "//settings%source%text("ENSEMBLE", "ensemble")// &
                             " without a thermostat; give BUSSI, LANGEVIN, NHC or BERENDSEN", error)
      else if (ensemble%ensemble == ensemble_npat .and. ensemble%isotropy /= area_fixed) then
        call settings%refuse("ENSEMBLE", "isotropy", "does not keep the area; NPAT needs XY-FIXED", error)
      else if (ensemble%ensemble == ensemble_npt .and. ensemble%isotropy == area_fixed) then
        call settings%refuse("ENSEMBLE", "isotropy", "keeps the area; give ensemble = NPAT", error)
      else if (dynamics%integrator /= respa .and. dynamics%long_period > 1) then
        call settings%refuse("DYNAMICS", "elec_long_period", "needs integrator = VRES", error)
      else if (dynamics%integrator == leapfrog .and. ensemble%bath == bath_langevin) then
        call settings%refuse("DYNAMICS", "integrator", "does not go with tpcontrol = LANGEVIN; give VVER", error)
      else if (settings%source%yes("DYNAMICS", "annealing") .and. (dynamics%annealing_period == 0 .or. &
                                                                   ensemble%bath == bath_none)) then
        call settings%refuse("DYNAMICS", "annealing", "needs anneal_period and a thermostat", error)
      else if (allocated(ensemble%final_temperature) .and. ensemble%bath == bath_none) then
        call settings%refuse("ENSEMBLE", "temperature_end", "needs a thermostat; give ensemble = NVT or NPT", error)
      else if (allocated(ensemble%final_temperature) .and. dynamics%annealing_period > 0) then
        call settings%refuse("ENSEMBLE", "temperature_end", "contradicts annealing = YES; give one of them", error)
      else if (.not. fits_long_step(settings)) then
        call settings%refuse("DYNAMICS", "elec_long_period", &
                             "must divide nsteps, eneout_period, rstout_period, thermostat_period and barostat_period", error)
      else if (ensemble%ensemble == ensemble_nve .and. ensemble%barostat /= barostat_automatic) then
        call settings%refuse("ENSEMBLE", "barostat", "contradicts ensemble = NVE; give ensemble = NPT", error)
      else if (ensemble%ensemble == ensemble_nvt .and. ensemble%barostat /= barostat_automatic) then
        call settings%refuse("ENSEMBLE", "barostat", "contradicts ensemble = NVT; give ensemble = NPT", error)
      else if (ensemble%chain_length > max_chain) then
        call settings%refuse("ENSEMBLE", "nhchain", "must be at most "//to_text(max_chain), error)
      else if (ensemble%changes_box() .and. size(settings%fixed_group) > 0) then
        call settings%refuse("ENSEMBLE", "ensemble", "changes the box, which moves all atoms, and fixatm_select_index "// &
                             "holds some where they are; give NVT or NVE", error)
      else if (settings%health%max_volume_ratio > 0.0_real64 .and. settings%health%max_volume_ratio <= 1.0_real64) then
        call settings%refuse("HEALTH", "max_volume_ratio", "must be larger than 1, or 0 to switch it off", error)
      else if (settings%minimisation%first_scale > settings%minimisation%largest_scale) then
        call settings%refuse("MINIMIZE", "force_scale_init", "must not exceed force_scale_max", error)
      end if
    end associate
  end subroutine check_motion

  !> Restraints whose constant changes: only dynamics has a time in which it can.
  subroutine check_release(settings, error)
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    integer :: k
    if (.not. settings%runs_minimisation) return
    do k = 1, size(settings%restraint)
      if (settings%restraint(k)%constant == settings%restraint(k)%final_constant) cycle
      call settings%source%refuse_numbered("RESTRAINTS", "constant_end", k, "does not go with [MINIMIZE], whose energy "// &
                                           "must not change; give constant alone", error)
      return
    end do
  end subroutine check_release

  !> Whether everything that happens between steps falls on the end of a long step.
  pure logical function fits_long_step(settings)
    type(settings_t), intent(in) :: settings
    integer(int64) :: bath_period, box_period
    associate (dynamics => settings%dynamics, long => settings%dynamics%long_period)
      bath_period = merge(long, dynamics%thermostat_period, settings%ensemble%ensemble == ensemble_nve)
      box_period = merge(dynamics%barostat_period, long, settings%ensemble%changes_box())
      fits_long_step = long == 1 .or. &
                       all(mod([dynamics%schedule%steps, dynamics%schedule%energy_period, &
                                dynamics%schedule%restart_period, bath_period, box_period], long) == 0)
    end associate
  end function fits_long_step

  !> Names of files.
  subroutine check_output(settings, error)
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    associate (input => settings%input, output => settings%output)
      if (output%restart /= "" .and. index(output%restart, "()") == 0) then
        call settings%refuse("OUTPUT", "rstfile", "must contain (), which stands for the rank", error)
      else if (output%checkpoint /= "" .and. index(output%checkpoint, "()") == 0) then
        call settings%refuse("OUTPUT", "checkpoint", "must contain (), which stands for the rank", error)
      else if (output%checkpoint == "" .and. output%checkpoint_interval > 0.0_real64) then
        call settings%refuse("OUTPUT", "checkpoint_interval", "needs checkpoint, the name of the files", error)
      else if (output%checkpoint == "" .and. input%continues) then
        call settings%refuse("INPUT", "continue", "needs checkpoint in [OUTPUT], the name of the files", error)
      else if (output%checkpoint /= "" .and. output%checkpoint == output%restart) then
        call settings%refuse("OUTPUT", "checkpoint", "is the rstfile too; give it another name", error)
      else if (input%restart /= "" .and. index(input%restart, "()") == 0) then
        call settings%refuse("INPUT", "rstfile", "must contain (), which stands for the rank", error)
      end if
    end associate
  end subroutine check_output

  !> Keys that do not go with type = NOBC, and that only go with it.
  subroutine check_open(settings, error)
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    character(len=*), parameter :: key(*) = [character(len=12) :: "box_size_x", "box_size_y", "box_size_z"]
    integer :: k
    associate (energy => settings%energy, source => settings%source)
      if (.not. settings%boundary%is_open) then
        if (energy%vacuum) call settings%refuse("ENERGY", "vacuum", "needs type = NOBC in [BOUNDARY]", error)
        return
      end if
      if (energy%forcefield /= forcefield_topology) then
        call settings%refuse("BOUNDARY", "type", "does not go with forcefield = "//source%text("ENERGY", "forcefield")// &
                             "; give PBC", error)
      else if (energy%ewald_charges) then
        call settings%refuse("BOUNDARY", "type", "does not go with PME, which needs a periodic box; give "// &
                             "electrostatic = CUTOFF or DEBYE in [ENERGY]", error)
      else if (settings%ensemble%changes_box()) then
        call settings%refuse("BOUNDARY", "type", "does not go with ensemble = "//source%text("ENSEMBLE", "ensemble")// &
                             ": without a box there is no pressure; give NVE or NVT", error)
      else if (energy%tail /= no_tail) then
        call settings%refuse("ENERGY", "dispersion_corr", "needs a uniform density, which type = NOBC has not; give NONE", &
                             error)
      else if (energy%vacuum .and. source%given("ENERGY", "switchdist") .and. energy%switch_distance < energy%cutoff) then
        call settings%refuse("ENERGY", "switchdist", "does not go with vacuum = YES, which has no switch; remove it", error)
      else if (energy%vacuum .and. changes_form(energy)) then
        call settings%refuse("ENERGY", "vacuum", "has neither switch nor shift; remove "//trim(form_key(energy)), error)
      end if
      do k = 1, size(key)
        if (.not. allocated(error) .and. source%given("BOUNDARY", trim(key(k)))) &
          call settings%refuse("BOUNDARY", trim(key(k)), "does not go with type = NOBC; remove it", error)
      end do
    end associate
  end subroutine check_open

  !> Keys that do not go with forcefield = LJ or EAM, and that only go with it.
  subroutine check_material(settings, error)
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    character(len=20), parameter :: molecular(*) = [character(len=20) :: "electrostatic", "switchdist", "vdw", &
      "vdw_force_switch", "vdw_switch_form", "dispersion_corr", "deterministic", "pairlist_tolerance", "vacuum", "table", &
      "table_order", "table_density", "pme_alpha", "pme_alpha_tol", "pme_nspline", "pme_ngrid_x", "pme_ngrid_y", &
      "pme_ngrid_z", "pme_max_spacing"]
    character(len=:), allocatable :: name
    logical :: embedded
    integer :: k
    name = settings%source%text("ENERGY", "forcefield")
    embedded = settings%energy%forcefield == forcefield_embedded_atoms
    if (.not. embedded .and. settings%input%embedded_atoms /= "") then
      call settings%refuse("INPUT", "eamfile", "needs forcefield = EAM in [ENERGY]", error)
    else if (.not. embedded .and. settings%energy%element /= "") then
      call settings%refuse("ENERGY", "eam_element", "needs forcefield = EAM", error)
    else if (embedded .and. settings%input%embedded_atoms == "") then
      call settings%refuse("ENERGY", "forcefield", "needs eamfile in [INPUT]", error)
    else if (embedded .and. settings%energy%shift) then
      call settings%refuse("ENERGY", "vdw_energy_shift", "does not go with forcefield = EAM", error)
    else if (settings%energy%forcefield /= forcefield_topology .and. settings%energy%force_shift) then
      call settings%refuse("ENERGY", "vdw_shift", "does not go with forcefield = "//name//"; a constant shift of the energy "// &
                           "is vdw_energy_shift", error)
    else if (settings%energy%forcefield /= forcefield_topology .and. settings%dynamics%integrator == respa) then
      call settings%refuse("DYNAMICS", "integrator", "needs reciprocal space, which forcefield = "//name// &
                           " has not; give VVER", error)
    end if
    if (settings%energy%forcefield == forcefield_topology) return
    do k = 1, size(molecular)
      if (.not. allocated(error) .and. settings%source%given("ENERGY", trim(molecular(k)))) &
        call settings%refuse("ENERGY", trim(molecular(k)), "does not go with forcefield = "//name//"; remove it", error)
    end do
  end subroutine check_material

  !> What one of the commands setup, run, energy and merge cannot do without, or does not take.
  subroutine check_command(settings, command, error)
    type(settings_t), intent(in) :: settings
    character(len=*), intent(in) :: command
    type(error_t), allocatable, intent(out) :: error
    select case (command)
    case ("setup")
      call check_setup(settings, error)
    case ("run", "check")
      if (.not. (settings%runs_dynamics .or. settings%runs_minimisation)) &
        call settings%source%refuse_file("has neither [MINIMIZE] nor [DYNAMICS]: add the one to run", error)
      if (command == "check" .and. settings%input%scratch /= "") return
      call require("INPUT", "topologyfile")
      ! Where files were imported, bricks will do.
      if (settings%input%scratch == "" .or. settings%input%shards == "") call require("INPUT", "rstfile")
    case ("energy")
      if (settings%input%restart /= "" .and. settings%input%shards /= "") &
        call settings%refuse("INPUT", "rstfile", "and shardfile are both given; energy starts from one of them", error)
      call require("INPUT", "topologyfile")
      if (settings%input%restart == "") call require("INPUT", "shardfile")
    case ("merge")
      call require("INPUT", "topologyfile")
      call require("INPUT", "dcdfile")
      call require("OUTPUT", "dcdfile")
      if (.not. allocated(error)) call check_sorting(settings, error)
      if (.not. allocated(error) .and. index(settings%input%frames, "()") == 0 .and. settings%input%parameters == "") &
        call settings%refuse("INPUT", "dcdfile", "must contain (), which stands for the rank", error)
      if (.not. allocated(error) .and. settings%output%group > 0) &
        call settings%require_groups([settings%output%group], error)
    end select
  contains
    subroutine require(section, key)
      character(len=*), intent(in) :: section, key
      if (.not. allocated(error)) call settings%source%require(section, key, error)
    end subroutine require
  end subroutine check_command

  !> Merging of replicas by parameter.
  subroutine check_sorting(settings, error)
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    associate (input => settings%input, output => settings%output)
      if (input%parameters == "") return
      if (index(input%parameters, "{}") == 0) then
        call settings%refuse("INPUT", "remfile", "must contain {}, which stands for the number of the replica", error)
      else if (index(input%frames, "{}") == 0) then
        call settings%refuse("INPUT", "dcdfile", "must contain {}, which stands for the number of the replica", error)
      else if (index(output%frames, "{}") == 0) then
        call settings%refuse("OUTPUT", "dcdfile", "must contain {}, which stands for the number of the parameter", error)
      else if (index(input%frames, "()") == 0 .and. (output%group > 0 .or. settings%source%given("OUTPUT", "dcd_atoms"))) then
        call settings%refuse("OUTPUT", merge("dcd_group", "dcd_atoms", output%group > 0), "chooses among the atoms of one "// &
                             "file a rank, whose names have (); these files are sorted as they are: remove it", error)
      end if
    end associate
  end subroutine check_sorting

  subroutine check_setup(settings, error)
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    call settings%source%require("OUTPUT", "rstfile", error)
    if (.not. allocated(error)) call settings%source%require("INPUT", "topologyfile", error)
    if (allocated(error)) return
    if (settings%input%restart == "") then
      call settings%source%require("INPUT", "shardfile", error)
    else if (settings%input%shards /= "") then
      call settings%refuse("INPUT", "rstfile", "and shardfile are both given; setup starts from one of them", error)
    else if (settings%input%exact_state /= "") then
      call settings%refuse("INPUT", "statefile", "belongs to shardfile, and rstfile is given; leave out one of them", error)
    else if (settings%output%restart == settings%input%restart) then
      call settings%refuse("OUTPUT", "rstfile", "is that of [INPUT]; give the new set another name", error)
    end if
    if (.not. allocated(error) .and. allocated(settings%output%domains)) call check_part(settings, error)
  end subroutine check_setup

  !> Setup of a part of the domains, whose number must be known.
  subroutine check_part(settings, error)
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    integer(int64) :: n_domains
    n_domains = product(int(settings%boundary%domains, int64))
    if (n_domains == 0) then
      call settings%refuse("OUTPUT", "setup_domains", "makes a part of the domains; give domain_x, domain_y and "// &
                           "domain_z in [BOUNDARY]", error)
    else if (settings%output%domains(2) >= n_domains) then
      call settings%refuse("OUTPUT", "setup_domains", "goes beyond the "//to_text(n_domains)// &
                           " domains of [BOUNDARY]; the last is "//to_text(n_domains - 1), error)
    end if
  end subroutine check_part

end module settings_checks
