!> What the control file asks for, as typed values, one type a section. `read_settings` (module settings_reader) fills them
!> once, at start; keys are explained in the table of module control_keys.
!>
!> Texts are empty where a key is not given; reals that may be `auto` are not allocated then.
module settings
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use atom_ranges, only: atom_ranges_t
  use boost_settings, only: boost_settings_t
  use base_text, only: to_text
  use control, only: control_t
  use exchange_settings, only: exchange_settings_t, exchanges_pressure, exchanges_restraints, exchanges_solute, &
                               exchanges_temperature
  implicit none
  private
  public :: settings_t, input_settings_t, output_settings_t, energy_settings_t, schedule_t, minimisation_settings_t, &
            dynamics_settings_t, constraint_settings_t, ensemble_settings_t, group_settings_t, restraint_settings_t, &
            boundary_settings_t, sphere_settings_t, comm_settings_t, fft_settings_t, health_settings_t, solute_settings_t

  ! Enumerations have the order of the words in the table of keys.
  integer, parameter, public :: forcefield_topology = 1, forcefield_lennard_jones = 2, forcefield_embedded_atoms = 3
  integer, parameter, public :: no_tail = 1, tail_in_energy = 2, tail_in_energy_and_pressure = 3
  integer, parameter, public :: memory_automatic = 1, memory_saved = 2, memory_used = 3
  integer, parameter, public :: velocity_verlet = 1, leapfrog = 2, respa = 3
  integer, parameter, public :: ensemble_nve = 1, ensemble_nvt = 2, ensemble_npt = 3, ensemble_npat = 4
  integer, parameter, public :: bath_none = 1, bath_bussi = 2, bath_langevin = 3, bath_nose_hoover = 4, bath_berendsen = 5
  integer, parameter, public :: barostat_automatic = 1, barostat_mtk = 2, barostat_berendsen = 3, barostat_monte_carlo = 4
  integer, parameter, public :: isotropic = 1, semi_isotropic = 2, anisotropic = 3, area_fixed = 4
  integer, parameter, public :: position_restraint = 1, distance_restraint = 2, dihedral_restraint = 3, rmsd_restraint = 4, &
                                angle_restraint = 5
  !> Groups of atoms that each kind of restraint takes.
  integer, parameter, public :: groups_of_restraint(5) = [1, 2, 4, 1, 3]

  !> [INPUT]: files.
  type :: input_settings_t
    character(len=:), allocatable :: topology, shards, restart, reference, frames, embedded_atoms
    !> Records of exchanging replicas.
    character(len=:), allocatable :: parameters
    !> Go on from a checkpoint.
    logical :: continues = .false.
    !> Name for restart files that a run of imported files starts from; empty where nothing was imported.
    character(len=:), allocatable :: scratch
    !> Positions and velocities of what was imported (module exact_state): statefile, or of a restart of GENESIS.
    character(len=:), allocatable :: exact_state
  end type input_settings_t

  !> [OUTPUT]: files, and the atoms of a trajectory (an empty set: all) and of them those of a group (0: all).
  type :: output_settings_t
    character(len=:), allocatable :: log, frames, restart, forces, checkpoint
    !> Steps and parameters of a replica.
    character(len=:), allocatable :: parameters
    !> Minutes, 0 = none.
    real(real64) :: checkpoint_interval = 0.0_real64
    type(atom_ranges_t) :: atoms
    integer :: group = 0
    !> First and last of the domains that setup makes, from 0, where it makes a part of them.
    integer, allocatable :: domains(:)
  end type output_settings_t

  !> [ENERGY]: distances in angstrom, screenings in 1/angstrom.
  type :: energy_settings_t
    integer :: forcefield = forcefield_topology
    character(len=:), allocatable :: element
    !> Charges: particle mesh Ewald, or in implicit solvent, else shifted at the cutoff. Dispersion: Ewald summation, else
    !> up to the cutoff.
    logical :: ewald_charges = .true., screened_charges = .false., ewald_dispersion = .false.
    !> Of implicit solvent: relative permittivity, or its slope an angstrom where it grows with the distance; length over
    !> which salt screens charges (angstrom), from the ionic strength (mol/l) where it is automatic.
    real(real64) :: dielectric = 1.0_real64, ionic_strength = 0.0_real64
    logical :: dielectric_grows = .false.
    real(real64), allocatable :: debye_length
    logical :: vacuum = .false., deterministic = .false.
    !> Of van der Waals near the cutoff: a switch of the force or a shift of it to zero, each instead of the switch of the
    !> energy; a switch of the energy that is quintic in r instead of cubic in r^2; the energy less its value at the cutoff;
    !> repulsion alone.
    logical :: force_switch = .false., force_shift = .false., quintic_switch = .false., shift = .false., &
               repulsive = .false.
    real(real64) :: switch_distance = 0.0_real64, cutoff = 0.0_real64, list_distance = 0.0_real64
    !> kT/ns/atom.
    real(real64), allocatable :: list_tolerance
    !> Screening of charges and of the dispersion, and the tolerances that choose it where it is automatic.
    real(real64), allocatable :: alpha, dispersion_alpha
    real(real64) :: alpha_tolerance = 0.0_real64, dispersion_alpha_tolerance = 0.0_real64
    !> Order of the interpolation in a table of pairs, 0 = no table.
    integer :: table_order = 0
    real(real64) :: table_density = 0.0_real64
    integer :: memory = memory_automatic
    !> Of the B-splines of PME.
    integer :: spline_order = 4
    !> Grid of reciprocal space: points along x, y and z, 0 = automatic, and the widest automatic spacing.
    integer :: grid_points(3) = 0
    real(real64) :: grid_spacing = 0.0_real64
    integer :: tail = no_tail
  end type energy_settings_t

  !> Steps of a run, and between outputs of energies, frames and restarts (0 = none).
  type :: schedule_t
    integer(int64) :: steps = 0, energy_period = 1, frame_period = 0, restart_period = 0
  end type schedule_t

  !> [MINIMIZE]: displacement per force in angstrom^2 mol/kcal, largest displacement in angstrom.
  type :: minimisation_settings_t
    type(schedule_t) :: schedule
    logical :: quasi_newton = .false.
    real(real64) :: first_scale = 0.0_real64, largest_scale = 0.0_real64, largest_displacement = 0.0_real64
  end type minimisation_settings_t

  !> [DYNAMICS]: times in ps, periods in steps.
  type :: dynamics_settings_t
    type(schedule_t) :: schedule
    integer :: integrator = velocity_verlet
    real(real64) :: timestep = 0.0_real64, initial_time = 0.0_real64
    !> Of new pair lists, stops of the centre of mass (0 = never), thermostat, barostat, and reciprocal space.
    integer(int64) :: list_period = 0, stop_period = 0, thermostat_period = 1, barostat_period = 1, long_period = 1
    !> Masses of hydrogens times these, of those that are alone on their heavy atom and of others.
    logical :: heavy_hydrogens = .false., heavy_water_hydrogens = .true.
    real(real64) :: hydrogen_ratio = 1.0_real64, lone_hydrogen_ratio = 1.0_real64
    !> Steps between changes of the temperature, 0 = no annealing, and each change (K).
    integer(int64) :: annealing_period = 0
    real(real64) :: temperature_change = 0.0_real64
    integer(int64) :: seed = 0
  end type dynamics_settings_t

  !> [CONSTRAINTS].
  type :: constraint_settings_t
    logical :: rigid_bonds = .false., settle_waters = .true.
    integer :: iterations = 0
    real(real64) :: tolerance = 0.0_real64
  end type constraint_settings_t

  !> [ENSEMBLE]: K, ps, 1/ps, atm, 1/atm.
  type :: ensemble_settings_t
    integer :: ensemble = ensemble_nve, bath = bath_none, barostat = barostat_automatic, isotropy = isotropic
    real(real64) :: temperature = 0.0_real64, relaxation_time = 0.0_real64, friction = 0.0_real64
    !> Temperature at the end of the run, where it changes linearly with the steps.
    real(real64), allocatable :: final_temperature
    !> The highest one that an exchange of replicas may bring.
    real(real64) :: exchanged_temperature = 0.0_real64
    integer :: chain_length = 0, chain_steps = 0
    real(real64) :: pressure = 0.0_real64, pressure_relaxation_time = 0.0_real64, piston_friction = 0.0_real64, &
                    compressibility = 0.0_real64
    logical :: of_groups = .true.
  contains
    procedure :: changes_box
    procedure :: highest_temperature
  end type ensemble_settings_t

  !> [HEALTH]: bands that dynamics must not leave, 0 = none: kcal/mol/angstrom, kT/ps/atom, K (not allocated: automatic).
  type :: health_settings_t
    real(real64) :: max_force = 0.0_real64, max_drift = 0.0_real64, max_volume_ratio = 0.0_real64
    real(real64), allocatable :: max_temperature
  end type health_settings_t

  !> An entry of [SELECTION].
  type :: group_settings_t
    integer :: number = 0
    character(len=:), allocatable :: expression
  end type group_settings_t

  !> A restraint k (x - reference)^2 of [RESTRAINTS]: k in kcal/mol/angstrom^2 (per radian^2) at the start and at the end
  !> of the run, reference in angstrom or degrees; the numbers of its groups, and 1 along the axes on which it acts.
  type :: restraint_settings_t
    integer :: kind = position_restraint
    logical :: by_mass = .false.
    !> Of a distance: acts only where it is shorter (-1) or longer (1) than the reference; 0: both.
    integer :: side = 0
    real(real64) :: constant = 0.0_real64, final_constant = 0.0_real64, reference = 0.0_real64, along(3) = 1.0_real64
    integer, allocatable :: group(:)
    !> All constants and references that replicas exchange, one of each where they do not.
    real(real64), allocatable :: constants(:), references(:)
  end type restraint_settings_t

  !> A solute whose interactions are multiplied by `factor` (module solute_scaling): its group, 0 = none, and which terms:
  !> those of a chain in the order of their kinds (module term_list), then charges and Lennard-Jones terms.
  type :: solute_settings_t
    integer :: group = 0
    real(real64) :: factor = 1.0_real64
    logical :: scales(8) = .false.
  end type solute_settings_t

  integer, parameter, public :: scales_charge = 7, scales_lj = 8

  !> Spheres that hold an open model together: k (kcal/mol/angstrom^exponent), whether atoms farther out than `layer`
  !> (angstrom) before their surface are fixed; centres (3, spheres) or groups of which each atom is one, and the radius of
  !> each (angstrom).
  type :: sphere_settings_t
    logical :: is_on = .false., fixes = .false.
    real(real64) :: constant = 0.0_real64, layer = 0.0_real64
    integer :: exponent = 2
    integer, allocatable :: group(:)
    real(real64), allocatable :: centre(:, :), radius(:)
  end type sphere_settings_t

  !> [BOUNDARY]: edges in angstrom and domains along x, y and z, 0 = from the input or automatic.
  type :: boundary_settings_t
    logical :: is_open = .false., balances_load = .false.
    real(real64) :: box(3) = 0.0_real64
    integer :: domains(3) = 0
    type(sphere_settings_t) :: sphere
  end type boundary_settings_t

  !> The transform of PME: scheme and subset of ranks as module fft_distributed names them, and chunks (0: chosen there).
  type :: fft_settings_t
    character(len=16) :: scheme = "model", subset = "full"
    integer :: n_chunks = 0
    !> Messages from all ranks of a node to all of another as one.
    logical :: by_node = .false.
  end type fft_settings_t

  !> [COMM].
  type :: comm_settings_t
    logical :: midpoint = .false., combine_messages = .true., overlap = .false., time_transports = .true.
    !> Indices in `pattern_names` (comm_halo) and `transport_names` (comm_transports), 0 = automatic.
    integer :: pattern = 0, transport = 0
    !> Of PME.
    type(fft_settings_t) :: fft
    integer :: pme_ranks = 0
    !> Nodes along the axes of the machine's torus, none where it has none, and how the control file writes it.
    integer, allocatable :: torus(:)
    character(len=:), allocatable :: torus_name
  end type comm_settings_t

  type :: settings_t
    type(input_settings_t) :: input
    type(output_settings_t) :: output
    type(energy_settings_t) :: energy
    !> What `chromamd run` does: one of them.
    logical :: runs_minimisation = .false., runs_dynamics = .false.
    type(minimisation_settings_t) :: minimisation
    type(dynamics_settings_t) :: dynamics
    type(constraint_settings_t) :: constraints
    type(ensemble_settings_t) :: ensemble
    type(health_settings_t) :: health
    type(group_settings_t), allocatable :: group(:)
    !> Numbers of the groups whose atoms do not move.
    integer, allocatable :: fixed_group(:)
    type(restraint_settings_t), allocatable :: restraint(:)
    type(boundary_settings_t) :: boundary
    type(comm_settings_t) :: comm
    type(exchange_settings_t) :: exchange
    type(solute_settings_t) :: solute
    type(boost_settings_t) :: boost
    !> Where the values stand, for messages about them.
    type(control_t) :: source
  contains
    procedure :: refuse
    procedure :: refuse_group
    procedure :: require_groups
    procedure :: take_parameter
    procedure :: trajectory_atoms
    procedure :: expression_of
    procedure :: restrains_positions
    procedure :: releases_restraints
    procedure :: has_material
  end type settings_t

contains

  !> Whether edges of the box follow a pressure.
  pure logical function changes_box(self)
    class(ensemble_settings_t), intent(in) :: self
    changes_box = self%ensemble == ensemble_npt .or. self%ensemble == ensemble_npat
  end function changes_box

  !> The highest temperature (K) that the run is to have.
  pure real(real64) function highest_temperature(self)
    class(ensemble_settings_t), intent(in) :: self
    highest_temperature = max(self%temperature, self%exchanged_temperature)
    if (allocated(self%final_temperature)) highest_temperature = max(highest_temperature, self%final_temperature)
  end function highest_temperature

  !> Take the values of a parameter that replicas exchange.
  pure subroutine take_parameter(self, parameter)
    class(settings_t), intent(inout) :: self
    integer, intent(in) :: parameter
    integer :: d, r
    do d = 1, size(self%exchange%dimension)
      associate (dimension => self%exchange%dimension(d), k => self%exchange%place(parameter, d))
        select case (dimension%kind)
        case (exchanges_temperature)
          self%ensemble%temperature = dimension%value(k)
        case (exchanges_pressure)
          self%ensemble%pressure = dimension%value(k)
        case (exchanges_restraints)
          do r = 1, size(dimension%restraint)
            associate (restraint => self%restraint(dimension%restraint(r)))
              restraint%constant = restraint%constants(min(k, size(restraint%constants)))
              restraint%final_constant = restraint%constant
              restraint%reference = restraint%references(min(k, size(restraint%references)))
            end associate
          end do
        case (exchanges_solute)
          self%solute%factor = self%ensemble%temperature/dimension%value(k)
        end select
      end associate
    end do
  end subroutine take_parameter

  !> Whether the constant of any restraint changes in the course of the run.
  pure logical function releases_restraints(self)
    class(settings_t), intent(in) :: self
    releases_restraints = any(self%restraint%constant /= self%restraint%final_constant)
  end function releases_restraints

  !> Whether positions are restrained, of atoms or within spheres, so that the centre of mass of the system is not free.
  pure logical function restrains_positions(self)
    class(settings_t), intent(in) :: self
    restrains_positions = any(self%restraint%kind == position_restraint) .or. self%boundary%sphere%is_on
  end function restrains_positions

  !> Whether atoms of one kind take the place of the topology's interactions.
  pure logical function has_material(self)
    class(settings_t), intent(in) :: self
    has_material = self%energy%forcefield /= forcefield_topology
  end function has_material

  !> The expression of a group of [SELECTION], empty if there is none.
  pure function expression_of(self, number) result(expression)
    class(settings_t), intent(in) :: self
    integer, intent(in) :: number
    character(len=:), allocatable :: expression
    integer :: g
    expression = ""
    do g = 1, size(self%group)
      if (self%group(g)%number == number) expression = self%group(g)%expression
    end do
  end function expression_of

  !> Refuse the value of a key of the control file for a reason that only the system shows.
  subroutine refuse(self, section, key, reason, error)
    class(settings_t), intent(in) :: self
    character(len=*), intent(in) :: section, key, reason
    type(error_t), allocatable, intent(out) :: error
    call self%source%refuse(section, key, reason, error)
  end subroutine refuse

  !> The atoms of the trajectory in a system of `n_atoms`. Refuses ranges beyond it.
  subroutine trajectory_atoms(self, n_atoms, chosen, error)
    class(settings_t), intent(in) :: self
    integer(int64), intent(in) :: n_atoms
    type(atom_ranges_t), intent(out) :: chosen
    type(error_t), allocatable, intent(out) :: error
    chosen = self%output%atoms
    if (chosen%is_empty()) call chosen%all_of(n_atoms)
    if (chosen%highest() >= n_atoms) &
      call self%refuse("OUTPUT", "dcd_atoms", "reaches beyond the "//to_text(n_atoms)//" atoms of the system", error)
  end subroutine trajectory_atoms

  !> Refuse a group of [SELECTION] likewise.
  subroutine refuse_group(self, number, reason, error)
    class(settings_t), intent(in) :: self
    integer, intent(in) :: number
    character(len=*), intent(in) :: reason
    type(error_t), allocatable, intent(out) :: error
    call self%source%refuse_numbered("SELECTION", "group", number, reason, error)
  end subroutine refuse_group

  !> Refuse the first of these groups that [SELECTION] lacks.
  subroutine require_groups(self, number, error)
    class(settings_t), intent(in) :: self
    integer, intent(in) :: number(:)
    type(error_t), allocatable, intent(inout) :: error
    integer :: k
    do k = 1, size(number)
      if (self%expression_of(number(k)) /= "") cycle
      call self%refuse_group(number(k), "is missing; the control file uses it", error)
      return
    end do
  end subroutine require_groups

end module settings
