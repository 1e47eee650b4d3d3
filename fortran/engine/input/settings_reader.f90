!> The control file to typed settings: the one place where keys are looked up by name.
module settings_reader
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use base_text, only: lower_case, to_text
  use boost_reader, only: read_boost
  use comm_halo, only: pattern_names
  use comm_transports, only: transport_names
  use comm_torus_map, only: read_torus
  use control, only: control_t
  use base_control_file, only: words
  use base_control_keys, only: position_of
  use control_keys, only: keys
  use exchange_reader, only: read_exchange
  use foreign_files, only: set_name, take_imported
  use settings, only: angle_restraint, forcefield_embedded_atoms, forcefield_topology, groups_of_restraint, group_settings_t, &
                      dihedral_restraint, distance_restraint, position_restraint, rmsd_restraint, restraint_settings_t, &
                      schedule_t, settings_t
  use settings_checks, only: check_command, check_release, check_together
  implicit none
  private
  public :: read_settings

contains

  !> Read and check the control file at `path` for one of the commands setup, run, energy and merge.
  subroutine read_settings(path, command, settings, error)
    character(len=*), intent(in) :: path, command
    type(settings_t), intent(out) :: settings
    type(error_t), allocatable, intent(out) :: error
    associate (control => settings%source)
      call control%read(path, error)
      if (allocated(error)) return
      settings%input%exact_state = ""
      if (command == "check") then
        ! Files may still be to import.
        settings%input%scratch = ""
        if (size(control%imported) > 0) settings%input%scratch = "*"
        if (any(index(control%imported, "ambreffile") == 1 .or. index(control%imported, "groreffile") == 1)) &
          call control%take("INPUT", "reffile", "*")
      else
        call take_imported(control, path, settings%input%scratch, settings%input%exact_state, error)
        if (allocated(error)) return
      end if
      settings%runs_minimisation = control%wants_minimisation()
      settings%runs_dynamics = control%wants_dynamics()
      call read_files(control, settings, error)
      if (allocated(error)) return
      call read_energy(control, settings)
      call read_motion(control, settings)
      call read_ensemble(control, settings)
      call read_health(control, settings)
      call read_domains(control, settings, error)
      if (allocated(error)) return
      call read_groups(control, settings)
      allocate (settings%restraint(0))
      call read_fixed(control, settings, error)
      if (.not. allocated(error)) call read_spheres(control, settings, error)
      if (.not. allocated(error)) call check_together(settings, error)
      if (.not. allocated(error)) call check_command(settings, command, error)
      if (allocated(error) .or. .not. any(command == ["run   ", "energy", "check "])) return
      call read_restraints(control, settings, error)
      if (.not. allocated(error)) call read_exchange(control, settings, error)
      if (.not. allocated(error)) call read_boost(control, settings, error)
      if (.not. allocated(error)) call check_release(settings, error)
      ! Fixed atoms hold the centre of mass, and restrained positions do unless the control file says otherwise.
      if (.not. allocated(error) .and. settings%restrains_positions() .and. .not. control%given("DYNAMICS", "stoptr_period")) &
        settings%dynamics%stop_period = 0
      if (size(settings%fixed_group) > 0 .or. settings%boundary%sphere%fixes) settings%dynamics%stop_period = 0
    end associate
  end subroutine read_settings

  !> [INPUT] and [OUTPUT].
  subroutine read_files(control, settings, error)
    type(control_t), intent(in) :: control
    type(settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: problem
    associate (input => settings%input, output => settings%output)
      input%topology = control%text("INPUT", "topologyfile")
      input%shards = control%text("INPUT", "shardfile")
      if (input%exact_state == "") input%exact_state = control%text("INPUT", "statefile")
      input%restart = control%text("INPUT", "rstfile")
      if (input%scratch /= "") input%restart = set_name(input%restart)
      input%reference = control%text("INPUT", "reffile")
      input%frames = control%text("INPUT", "dcdfile")
      input%parameters = control%text("INPUT", "remfile")
      input%embedded_atoms = control%text("INPUT", "eamfile")
      input%continues = control%yes("INPUT", "continue")
      output%log = control%text("OUTPUT", "logfile")
      output%frames = control%text("OUTPUT", "dcdfile")
      output%parameters = control%text("OUTPUT", "remfile")
      call output%atoms%parse(control%text("OUTPUT", "dcd_atoms"), problem)
      if (problem /= "") call control%refuse("OUTPUT", "dcd_atoms", problem, error)
      output%group = int(control%integer("OUTPUT", "dcd_group"))
      output%restart = control%text("OUTPUT", "rstfile")
      if (input%scratch /= "") output%restart = set_name(output%restart)
      output%checkpoint = control%text("OUTPUT", "checkpoint")
      output%checkpoint_interval = control%real("OUTPUT", "checkpoint_interval")
      output%forces = control%text("OUTPUT", "forcefile")
      call read_part(control, output%domains, error)
    end associate
  end subroutine read_files

  !> The range in [OUTPUT] setup_domains, such as 0-1023; not allocated where there is none.
  subroutine read_part(control, domains, error)
    type(control_t), intent(in) :: control
    integer, allocatable, intent(out) :: domains(:)
    type(error_t), allocatable, intent(inout) :: error
    character(len=:), allocatable :: text
    integer :: dash, status, found(2)
    text = control%text("OUTPUT", "setup_domains")
    if (text == "" .or. allocated(error)) return
    dash = index(text, "-")
    status = 1
    if (dash > 1 .and. verify(text, "0123456789-") == 0) then
      text(dash:dash) = " "
      read (text, *, iostat=status) found
    end if
    if (status == 0) then
      if (found(1) > found(2)) status = 1
    end if
    if (status == 0) then
      domains = found
    else
      call control%refuse("OUTPUT", "setup_domains", "must be a range of domains, counted from 0, such as 0-1023", error)
    end if
  end subroutine read_part

  !> [ENERGY].
  subroutine read_energy(control, settings)
    type(control_t), intent(in) :: control
    type(settings_t), intent(inout) :: settings
    associate (energy => settings%energy)
      energy%forcefield = control%choice("ENERGY", "forcefield")
      ! The other words are GENESIS' for what a topology holds.
      if (energy%forcefield > forcefield_embedded_atoms) energy%forcefield = forcefield_topology
      energy%element = control%text("ENERGY", "eam_element")
      energy%ewald_charges = control%text("ENERGY", "electrostatic") == "PME"
      energy%screened_charges = control%text("ENERGY", "electrostatic") == "DEBYE"
      energy%dielectric = control%real("ENERGY", "dielectric")
      energy%dielectric_grows = control%text("ENERGY", "dielectric_form") == "DISTANCE"
      energy%ionic_strength = control%real("ENERGY", "ionic_strength")
      if (is_number("debye_length")) energy%debye_length = control%real("ENERGY", "debye_length")
      energy%ewald_dispersion = control%text("ENERGY", "vdw") == "PME"
      energy%vacuum = control%yes("ENERGY", "vacuum")
      energy%deterministic = control%yes("ENERGY", "deterministic")
      energy%force_switch = control%yes("ENERGY", "vdw_force_switch")
      energy%force_shift = control%yes("ENERGY", "vdw_shift")
      energy%shift = control%yes("ENERGY", "vdw_energy_shift")
      energy%repulsive = control%yes("ENERGY", "vdw_repulsion")
      energy%switch_distance = control%real("ENERGY", "switchdist")
      energy%cutoff = control%real("ENERGY", "cutoffdist")
      energy%quintic_switch = control%text("ENERGY", "vdw_switch_form") == "QUINTIC"
      if (control%text("ENERGY", "forcefield") == "GROAMBER" .and. .not. control%given("ENERGY", "vdw_switch_form")) &
        energy%quintic_switch = .true.
      energy%quintic_switch = energy%quintic_switch .and. energy%switch_distance < energy%cutoff .and. &
                              .not. (energy%force_switch .or. energy%force_shift .or. energy%shift .or. &
                                     energy%screened_charges .or. energy%ewald_dispersion)
      energy%list_distance = control%real("ENERGY", "pairlistdist")
      if (is_number("pairlist_tolerance")) energy%list_tolerance = control%real("ENERGY", "pairlist_tolerance")
      if (is_number("pme_alpha")) energy%alpha = control%real("ENERGY", "pme_alpha")
      if (is_number("vdw_pme_alpha")) energy%dispersion_alpha = control%real("ENERGY", "vdw_pme_alpha")
      energy%alpha_tolerance = control%real("ENERGY", "pme_alpha_tol")
      energy%dispersion_alpha_tolerance = control%real("ENERGY", "vdw_pme_alpha_tol")
      if (control%yes("ENERGY", "table")) energy%table_order = int(control%integer("ENERGY", "table_order"))
      energy%table_density = control%real("ENERGY", "table_density")
      energy%memory = control%choice("ENERGY", "save_memory")
      energy%spline_order = int(control%integer("ENERGY", "pme_nspline"))
      energy%grid_points = [int(control%integer("ENERGY", "pme_ngrid_x")), int(control%integer("ENERGY", "pme_ngrid_y")), &
                            int(control%integer("ENERGY", "pme_ngrid_z"))]
      energy%grid_spacing = control%real("ENERGY", "pme_max_spacing")
      energy%tail = control%choice("ENERGY", "dispersion_corr")
    end associate
  contains
    logical function is_number(key)
      character(len=*), intent(in) :: key
      is_number = lower_case(control%text("ENERGY", key)) /= "auto"
    end function is_number
  end subroutine read_energy

  !> [MINIMIZE], [DYNAMICS] and [CONSTRAINTS].
  subroutine read_motion(control, settings)
    type(control_t), intent(in) :: control
    type(settings_t), intent(inout) :: settings
    associate (minimisation => settings%minimisation, dynamics => settings%dynamics, constraints => settings%constraints)
      minimisation%schedule = schedule_of(control, "MINIMIZE")
      minimisation%quasi_newton = control%text("MINIMIZE", "method") == "LBFGS"
      minimisation%first_scale = control%real("MINIMIZE", "force_scale_init")
      minimisation%largest_scale = control%real("MINIMIZE", "force_scale_max")
      minimisation%largest_displacement = control%real("MINIMIZE", "displacement_max")

      dynamics%schedule = schedule_of(control, "DYNAMICS")
      dynamics%integrator = control%choice("DYNAMICS", "integrator")
      dynamics%timestep = control%real("DYNAMICS", "timestep")
      dynamics%initial_time = control%real("DYNAMICS", "initial_time")
      dynamics%list_period = control%integer("DYNAMICS", "nbupdate_period")
      dynamics%stop_period = control%integer("DYNAMICS", "stoptr_period")
      dynamics%thermostat_period = control%integer("DYNAMICS", "thermostat_period")
      dynamics%barostat_period = control%integer("DYNAMICS", "barostat_period")
      dynamics%long_period = control%integer("DYNAMICS", "elec_long_period")
      dynamics%heavy_hydrogens = control%yes("DYNAMICS", "hydrogen_mr")
      dynamics%heavy_water_hydrogens = control%text("DYNAMICS", "hmr_target") == "ALL"
      dynamics%hydrogen_ratio = control%real("DYNAMICS", "hmr_ratio")
      dynamics%lone_hydrogen_ratio = control%real("DYNAMICS", "hmr_ratio_xh1")
      if (.not. dynamics%lone_hydrogen_ratio > 0) dynamics%lone_hydrogen_ratio = dynamics%hydrogen_ratio
      if (control%yes("DYNAMICS", "annealing")) dynamics%annealing_period = control%integer("DYNAMICS", "anneal_period")
      dynamics%temperature_change = control%real("DYNAMICS", "dtemperature")
      dynamics%seed = control%integer("DYNAMICS", "iseed")
      if (dynamics%seed < 0) read (keys(position_of(keys, "DYNAMICS", "iseed"))%default, *) dynamics%seed

      constraints%rigid_bonds = control%yes("CONSTRAINTS", "rigid_bond")
      constraints%settle_waters = control%yes("CONSTRAINTS", "fast_water")
      constraints%iterations = int(control%integer("CONSTRAINTS", "shake_iteration"))
      constraints%tolerance = control%real("CONSTRAINTS", "shake_tolerance")
    end associate
  end subroutine read_motion

  type(schedule_t) function schedule_of(control, section) result(schedule)
    type(control_t), intent(in) :: control
    character(len=*), intent(in) :: section
    schedule%steps = control%integer(section, "nsteps")
    schedule%energy_period = control%integer(section, "eneout_period")
    schedule%frame_period = control%integer(section, "crdout_period")
    schedule%restart_period = control%integer(section, "rstout_period")
  end function schedule_of

  !> [ENSEMBLE].
  subroutine read_ensemble(control, settings)
    type(control_t), intent(in) :: control
    type(settings_t), intent(inout) :: settings
    associate (ensemble => settings%ensemble)
      ensemble%ensemble = control%choice("ENSEMBLE", "ensemble")
      ensemble%bath = control%choice("ENSEMBLE", "tpcontrol")
      ensemble%barostat = control%choice("ENSEMBLE", "barostat")
      ensemble%isotropy = control%choice("ENSEMBLE", "isotropy")
      ensemble%temperature = control%real("ENSEMBLE", "temperature")
      if (control%given("ENSEMBLE", "temperature_end")) &
        ensemble%final_temperature = control%real("ENSEMBLE", "temperature_end")
      ensemble%relaxation_time = control%real("ENSEMBLE", "tau_t")
      ensemble%friction = control%real("ENSEMBLE", "gamma_t")
      ensemble%chain_length = int(control%integer("ENSEMBLE", "nhchain"))
      ensemble%chain_steps = int(control%integer("ENSEMBLE", "nhmultistep"))
      ensemble%pressure = control%real("ENSEMBLE", "pressure")
      ensemble%pressure_relaxation_time = control%real("ENSEMBLE", "tau_p")
      ensemble%piston_friction = control%real("ENSEMBLE", "gamma_p")
      ensemble%compressibility = control%real("ENSEMBLE", "compressibility")
      ensemble%of_groups = control%yes("ENSEMBLE", "group_tp")
    end associate
  end subroutine read_ensemble

  !> [HEALTH].
  subroutine read_health(control, settings)
    type(control_t), intent(in) :: control
    type(settings_t), intent(inout) :: settings
    associate (health => settings%health)
      health%max_force = control%real("HEALTH", "max_force")
      if (lower_case(control%text("HEALTH", "max_temperature")) /= "auto") &
        health%max_temperature = control%real("HEALTH", "max_temperature")
      health%max_drift = control%real("HEALTH", "max_drift")
      health%max_volume_ratio = control%real("HEALTH", "max_volume_ratio")
    end associate
  end subroutine read_health

  !> [BOUNDARY] and [COMM].
  subroutine read_domains(control, settings, error)
    type(control_t), intent(in) :: control
    type(settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    character(len=1), parameter :: axis_name(3) = ["x", "y", "z"]
    integer :: axis
    associate (boundary => settings%boundary, comm => settings%comm)
      boundary%is_open = control%text("BOUNDARY", "type") == "NOBC"
      boundary%balances_load = control%yes("BOUNDARY", "load_balance")
      do axis = 1, 3
        boundary%box(axis) = control%real("BOUNDARY", "box_size_"//axis_name(axis))
        ! As in GENESIS, of the coordinates and not of a restart; the import has taken it.
        if (settings%input%scratch /= "") boundary%box(axis) = 0.0_real64
        boundary%domains(axis) = int(control%integer("BOUNDARY", "domain_"//axis_name(axis)))
      end do
      comm%midpoint = control%text("COMM", "method") == "MIDPOINT"
      comm%pattern = findloc(pattern_names == control%text("COMM", "pattern"), .true., dim=1)
      comm%transport = findloc(transport_names == control%text("COMM", "transport"), .true., dim=1)
      comm%combine_messages = control%yes("COMM", "combine_messages")
      comm%fft%scheme = lower_case(control%text("COMM", "fft"))
      comm%fft%subset = lower_case(control%text("COMM", "fft_subset"))
      comm%fft%n_chunks = int(min(control%integer("COMM", "fft_chunks"), int(huge(comm%fft%n_chunks), int64)))
      comm%fft%by_node = control%yes("COMM", "fft_by_node")
      comm%overlap = control%yes("COMM", "overlap")
      comm%pme_ranks = int(min(control%integer("COMM", "pme_ranks"), int(huge(comm%pme_ranks), int64)))
      comm%torus_name = control%text("COMM", "torus")
      allocate (comm%torus(0))
      if (comm%torus_name /= "") then
        call read_torus(lower_case(comm%torus_name), comm%torus)
        if (size(comm%torus) == 0) &
          call control%refuse("COMM", "torus", "must be numbers of nodes with x between them, e.g. 4x4x2", error)
      end if
      comm%time_transports = control%text("COMM", "planner") == "TIME"
    end associate
  end subroutine read_domains

  !> [SELECTION].
  subroutine read_groups(control, settings)
    type(control_t), intent(in) :: control
    type(settings_t), intent(inout) :: settings
    integer, allocatable :: number(:)
    integer :: g
    allocate (number, source=control%entries("SELECTION", "group"))
    allocate (settings%group(size(number)))
    do g = 1, size(number)
      settings%group(g) = group_settings_t(number(g), control%numbered("SELECTION", "group", number(g)))
    end do
  end subroutine read_groups

  !> The groups whose atoms do not move: of a minimisation those of [MINIMIZE], of dynamics those of [DYNAMICS] and of
  !> [CONSTRAINTS], where GENESIS has them.
  subroutine read_fixed(control, settings, error)
    type(control_t), intent(in) :: control
    type(settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    character(len=*), parameter :: key = "fixatm_select_index"
    allocate (settings%fixed_group(0))
    if (settings%runs_minimisation) then
      call add("MINIMIZE")
      if (.not. allocated(error) .and. control%given("CONSTRAINTS", key)) &
        call control%refuse("CONSTRAINTS", key, "fixes atoms in dynamics; for a minimisation give it in [MINIMIZE]", error)
    end if
    if (settings%runs_dynamics .and. .not. allocated(error)) then
      call add("DYNAMICS")
      if (.not. allocated(error)) call add("CONSTRAINTS")
    end if
  contains
    subroutine add(section)
      character(len=*), intent(in) :: section
      character(len=:), allocatable :: list
      integer, allocatable :: number(:)
      logical :: ok
      list = control%text(section, key)
      if (list == "") return
      allocate (number(words(list)))
      call read_numbers(list, number, ok)
      if (.not. ok) &
        call control%refuse(section, key, "must name groups of [SELECTION] by their numbers, such as 1 or 1 2", error)
      if (ok) call settings%require_groups(number, error)
      settings%fixed_group = [settings%fixed_group, number]
    end subroutine add
  end subroutine read_fixed

  !> The spherical potential of [BOUNDARY].
  subroutine read_spheres(control, settings, error)
    type(control_t), intent(in) :: control
    type(settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: list
    integer :: k, n, n_groups, n_centres, status
    associate (sphere => settings%boundary%sphere)
      sphere%is_on = control%yes("BOUNDARY", "spherical_pot")
      if (.not. sphere%is_on) return
      sphere%constant = control%real("BOUNDARY", "constant")
      sphere%exponent = int(control%integer("BOUNDARY", "exponent"))
      sphere%fixes = control%yes("BOUNDARY", "fixatom")
      sphere%layer = control%real("BOUNDARY", "fix_layer")
      n_groups = int(control%integer("BOUNDARY", "nindex"))
      n_centres = int(control%integer("BOUNDARY", "nfunctions"))
      n = n_groups + n_centres
      if (.not. settings%boundary%is_open) then
        call control%refuse("BOUNDARY", "spherical_pot", "holds a model without a periodic box together; give type = NOBC", &
                            error)
      else if (n_groups > 0 .eqv. n_centres > 0) then
        call control%refuse("BOUNDARY", "spherical_pot", "needs either nindex and center_select_index1, ..., or "// &
                            "nfunctions and center1, ...; give one of them", error)
      end if
      if (allocated(error)) return
      allocate (sphere%group(n_groups), sphere%centre(3, n_centres), sphere%radius(n))
      do k = 1, n
        list = control%numbered("BOUNDARY", "radius", k)
        sphere%radius(k) = 0.0_real64
        if (list /= "") read (list, *) sphere%radius(k)
        if (.not. sphere%radius(k) > 0.0_real64) then
          call control%refuse_numbered("BOUNDARY", "radius", k, "must be given, in angstrom, and positive", error)
        else if (n_groups > 0) then
          list = control%numbered("BOUNDARY", "center_select_index", k)
          sphere%group(k) = 0
          if (list /= "") read (list, *) sphere%group(k)
          if (sphere%group(k) == 0) then
            call control%refuse_numbered("BOUNDARY", "center_select_index", k, "is missing; nindex asks for it", error)
          else
            call settings%require_groups([sphere%group(k)], error)
          end if
        else
          list = control%numbered("BOUNDARY", "center", k)
          status = verify(list, "0123456789.,+-eE ")
          if (status == 0) read (list, *, iostat=status) sphere%centre(:, k)
          if (status /= 0) call control%refuse_numbered("BOUNDARY", "center", k, "must be x, y and z in angstrom", error)
        end if
        if (allocated(error)) return
      end do
    end associate
  end subroutine read_spheres

  !> [RESTRAINTS], whose groups must be there.
  subroutine read_restraints(control, settings, error)
    type(control_t), intent(in) :: control
    type(settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    integer :: k
    deallocate (settings%restraint)
    allocate (settings%restraint(control%integer("RESTRAINTS", "nfunctions")))
    do k = 1, size(settings%restraint)
      associate (restraint => settings%restraint(k))
        call read_restraint(control, k, restraint, error)
        if (allocated(error)) return
        call settings%require_groups(restraint%group, error)
        if (allocated(error)) return
        if (restraint%kind == position_restraint .or. restraint%kind == rmsd_restraint) &
          call control%require("INPUT", "reffile", error)
        if (allocated(error)) return
      end associate
    end do
  end subroutine read_restraints

  subroutine read_restraint(control, number, restraint, error)
    type(control_t), intent(in) :: control
    integer, intent(in) :: number
    type(restraint_settings_t), intent(inout) :: restraint
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: kind, list
    integer :: axis
    logical :: ok
    kind = control%numbered("RESTRAINTS", "function", number)
    restraint%by_mass = index(kind, "MASS") > 0
    select case (kind)
    case ("POSI")
      restraint%kind = position_restraint
    case ("DIST", "DISTMASS")
      restraint%kind = distance_restraint
    case ("REPUL", "REPULMASS")
      restraint%kind = distance_restraint
      restraint%side = -1
    case ("FB", "FBMASS")
      restraint%kind = distance_restraint
      restraint%side = 1
    case ("ANGLE", "ANGLEMASS")
      restraint%kind = angle_restraint
    case ("DIHED", "DIHEDMASS")
      restraint%kind = dihedral_restraint
    case ("RMSD", "RMSDMASS")
      restraint%kind = rmsd_restraint
    case default
      call control%refuse_numbered("RESTRAINTS", "function", number, "is missing; nfunctions asks for it", error)
      return
    end select
    restraint%constants = control%numbered_reals("RESTRAINTS", "constant", number)
    restraint%constant = restraint%constants(1)
    restraint%final_constant = restraint%constant
    list = control%numbered("RESTRAINTS", "constant_end", number)
    if (list /= "") read (list, *) restraint%final_constant
    restraint%references = control%numbered_reals("RESTRAINTS", "reference", number)
    restraint%reference = restraint%references(1)
    axis = index("XYZ", control%numbered("RESTRAINTS", "direction", number))
    if (axis > 0) restraint%along = 0
    if (axis > 0) restraint%along(axis) = 1
    list = control%numbered("RESTRAINTS", "select_index", number)
    allocate (restraint%group(groups_of_restraint(restraint%kind)))
    call read_numbers(list, restraint%group, ok)
    if (.not. ok) &
      call control%refuse_numbered("RESTRAINTS", "select_index", number, "must name "// &
                                   to_text(size(restraint%group))//" groups for "//kind, error)
  end subroutine read_restraint

  !> Whole numbers between spaces; not `ok` where a list has others, or not as many as asked for.
  subroutine read_numbers(list, number, ok)
    character(len=*), intent(in) :: list
    integer, intent(inout) :: number(:)
    logical, intent(out) :: ok
    integer :: status
    ok = words(list) == size(number) .and. verify(list, "0123456789 ") == 0
    if (.not. ok) return
    read (list, *, iostat=status) number
    ok = status == 0
  end subroutine read_numbers

end module settings_reader
