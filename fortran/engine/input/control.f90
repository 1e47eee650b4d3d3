!> The control file: GENESIS sections and keys. One table (`keys`) drives reading, checking, defaults and help.
module control
  use, intrinsic :: iso_fortran_env, only: output_unit
  use base_kinds, only: int64, real64
  use base_error, only: error_t, exit_bad_input, fail
  use base_text, only: edit_distance, lower_case, read_line, to_text
  implicit none
  private
  public :: control_t

  integer, parameter :: is_text = 1, is_integer = 2, is_real = 3, is_choice = 4

  type :: key_t
    character(len=12) :: section
    character(len=20) :: name
    integer :: kind
    !> Default as it would stand in the file; empty = none.
    character(len=12) :: default
    character(len=24) :: unit
    !> Allowed words of a choice, separated by blanks; or the smallest allowed number.
    character(len=48) :: allowed
    character(len=110) :: about
  end type key_t

  type :: control_t
    character(len=:), allocatable, private :: path
    character(len=1024), allocatable, private :: value(:)
    !> Line where the key stands, 0 = default.
    integer, allocatable, private :: line(:)
    !> Keys that end with a number, e.g. group2: place in the table, number, value and line.
    integer, allocatable, private :: numbered_key(:), number(:), numbered_line(:)
    character(len=1024), allocatable, private :: numbered_value(:)
    logical, private :: dynamics_section = .false., minimize_section = .false.
  contains
    procedure :: read => read_control
    procedure :: print_help
    procedure :: text => get_text
    procedure :: integer => get_integer
    procedure :: real => get_real
    procedure :: yes
    procedure :: given
    procedure :: numbered
    procedure :: refuse_numbered
    procedure :: require
    procedure :: refuse
    procedure :: wants_dynamics
    procedure :: wants_minimisation
    procedure :: uses_midpoint
  end type control_t

  !> Every key there is.
  type(key_t), parameter :: keys(*) = [ &
    key_t("INPUT", "topologyfile", is_text, "", "", "", "topology of the system (topology.h5)"), &
    key_t("INPUT", "shardfile", is_text, "", "", "", &
          "list of the bricks of the box (shards/bricks.txt); for setup and energy"), &
    key_t("INPUT", "rstfile", is_text, "", "", "", &
          "restart files to start from, () stands for the rank; for run and energy"), &
    key_t("INPUT", "reffile", is_text, "", "", "", &
          "bricks.txt of the reference coordinates of POSI and RMSD restraints"), &
    key_t("INPUT", "dcdfile", is_text, "", "", "", &
          "per-domain trajectories to merge, () stands for the rank; for merge"), &
    key_t("INPUT", "eamfile", is_text, "", "", "", "embedded-atom potential: funcfl or setfl file, for forcefield = EAM"), &
    key_t("OUTPUT", "logfile", is_text, "", "", "", "energies and timings; default: standard output"), &
    key_t("OUTPUT", "dcdfile", is_text, "", "", "", &
          "trajectory: DCD, or XTC if so named; with () one file per domain in our own format, for chromamd merge"), &
    key_t("OUTPUT", "dcd_first_atom", is_integer, "1", "", "1", "first atom of a whole-system dcdfile"), &
    key_t("OUTPUT", "dcd_last_atom", is_integer, "0", "", "0", &
          "last atom of a whole-system dcdfile, 0 = the last of all"), &
    key_t("OUTPUT", "dcd_group", is_integer, "0", "", "0", &
          "merge: number of the group in [SELECTION] to write, 0 = all atoms"), &
    key_t("OUTPUT", "rstfile", is_text, "", "", "", "restart files to write, () stands for the rank"), &
    key_t("OUTPUT", "forcefile", is_text, "", "", "", "forces of all atoms in global order; for energy"), &
    key_t("ENERGY", "forcefield", is_choice, "TOPOLOGY", "", "TOPOLOGY LJ EAM", &
          "all that the topology says; or for atoms of one kind Lennard-Jones or embedded atoms"), &
    key_t("ENERGY", "eam_element", is_text, "", "", "", "name of the element in a setfl file of several"), &
    key_t("ENERGY", "electrostatic", is_choice, "PME", "", "PME CUTOFF", &
          "particle mesh Ewald, or charges up to cutoffdist: q q (1/r - 1/cutoffdist)"), &
    key_t("ENERGY", "vacuum", is_choice, "NO", "", "YES NO", &
          "with type = NOBC: no switch, no shift and a cutoffdist beyond the whole model"), &
    key_t("ENERGY", "switchdist", is_real, "10.0", "angstrom", "0", &
          "where the switching of van der Waals begins; = cutoffdist: none"), &
    key_t("ENERGY", "cutoffdist", is_real, "12.0", "angstrom", "0", "end of real-space interactions"), &
    key_t("ENERGY", "pairlistdist", is_real, "13.5", "angstrom", "0", &
          "least reach of the pair list; made up to cutoffdist + 2.5 where domains allow it"), &
    key_t("ENERGY", "pairlist_tolerance", is_text, "auto", "kT/ns/atom", "", &
          "drift of the energy that pairs missed by the lists may add; 0 = none is ever missed"), &
    key_t("ENERGY", "deterministic", is_choice, "NO", "", "YES NO", &
          "forces, trajectories and energies of dynamics have the same bits on any number of ranks and threads"), &
    key_t("ENERGY", "vdw", is_choice, "CUTOFF", "", "CUTOFF PME", &
          "van der Waals up to the cutoff, or its dispersion by Ewald summation without end (no switch)"), &
    key_t("ENERGY", "vdw_pme_alpha", is_text, "auto", "1/angstrom", "", "screening of the dispersion, or auto"), &
    key_t("ENERGY", "vdw_pme_alpha_tol", is_real, "1.0e-3", "", "1e-12", &
          "auto: share of the dispersion of a pair at the cutoff that is left to real space"), &
    key_t("ENERGY", "vdw_force_switch", is_choice, "NO", "", "YES NO", &
          "switch the van der Waals force instead of the energy"), &
    key_t("ENERGY", "vdw_shift", is_choice, "NO", "", "YES NO", &
          "shift the van der Waals energy to zero at the cutoff"), &
    key_t("ENERGY", "table", is_choice, "NO", "", "YES NO", &
          "look real-space pairs up in a table over 1/r^2 instead of computing them (slower)"), &
    key_t("ENERGY", "table_order", is_choice, "1", "", "1 3", "interpolation in the table: linear or cubic"), &
    key_t("ENERGY", "table_density", is_real, "20.0", "", "1", &
          "point k of the table stands for 1/r^2 = k/(table_density cutoffdist^2)"), &
    key_t("ENERGY", "save_memory", is_choice, "AUTO", "", "AUTO YES NO", &
          "coordinates and parameters of pairs live for a part of the pair list at a time; AUTO: from 1e6 atoms a rank on"), &
    key_t("ENERGY", "pme_alpha", is_text, "auto", "1/angstrom", "", "Ewald screening, or auto"), &
    key_t("ENERGY", "pme_alpha_tol", is_real, "1.0e-5", "", "1e-15", &
          "auto screening solves erfc(alpha cutoffdist) = this"), &
    key_t("ENERGY", "pme_nspline", is_integer, "4", "", "4", "order of the B-splines, 4 to 10"), &
    key_t("ENERGY", "pme_ngrid_x", is_integer, "0", "", "0", "grid points, 0 = automatic"), &
    key_t("ENERGY", "pme_ngrid_y", is_integer, "0", "", "0", "grid points, 0 = automatic"), &
    key_t("ENERGY", "pme_ngrid_z", is_integer, "0", "", "0", "grid points, 0 = automatic"), &
    key_t("ENERGY", "pme_max_spacing", is_real, "1.2", "angstrom", "0.01", "widest automatic grid spacing"), &
    key_t("ENERGY", "dispersion_corr", is_choice, "NONE", "", "NONE ENERGY EPRESS", &
          "correction for the van der Waals tail beyond the cutoff"), &
    key_t("MINIMIZE", "method", is_choice, "SD", "", "SD LBFGS", &
          "steepest descent, or limited-memory BFGS after a soft start by steepest descent"), &
    key_t("MINIMIZE", "nsteps", is_integer, "100", "", "0", "number of steps"), &
    key_t("MINIMIZE", "eneout_period", is_integer, "10", "steps", "1", "energy output"), &
    key_t("MINIMIZE", "crdout_period", is_integer, "0", "steps", "0", "trajectory output, 0 = none"), &
    key_t("MINIMIZE", "rstout_period", is_integer, "0", "steps", "0", "restart output, 0 = at the end only"), &
    key_t("MINIMIZE", "force_scale_init", is_real, "5.0e-5", "angstrom^2 mol/kcal", "1e-12", &
          "first displacement per force"), &
    key_t("MINIMIZE", "force_scale_max", is_real, "1.0e-4", "angstrom^2 mol/kcal", "1e-12", &
          "largest displacement per force"), &
    key_t("MINIMIZE", "displacement_max", is_real, "0.1", "angstrom", "1e-6", "no atom moves farther in a step"), &
    key_t("DYNAMICS", "integrator", is_choice, "VVER", "", "VVER LEAP VRES", &
          "velocity Verlet, leapfrog, or r-RESPA with reciprocal space in the longer step"), &
    key_t("DYNAMICS", "nsteps", is_integer, "100", "", "0", "number of steps"), &
    key_t("DYNAMICS", "timestep", is_real, "0.001", "ps", "1e-9", "time step"), &
    key_t("DYNAMICS", "eneout_period", is_integer, "10", "steps", "1", "energy output"), &
    key_t("DYNAMICS", "crdout_period", is_integer, "0", "steps", "0", "trajectory output, 0 = none"), &
    key_t("DYNAMICS", "rstout_period", is_integer, "0", "steps", "0", "restart output, 0 = at the end only"), &
    key_t("DYNAMICS", "nbupdate_period", is_integer, "0", "steps", "0", &
          "rebuild the pair list this often at least; 0 = only when atoms moved"), &
    key_t("DYNAMICS", "stoptr_period", is_integer, "10", "steps", "0", &
          "bring the centre of mass to rest this often; 0 = never (default with POSI)"), &
    key_t("DYNAMICS", "thermostat_period", is_integer, "1", "steps", "1", &
          "the thermostat acts on velocities this often"), &
    key_t("DYNAMICS", "barostat_period", is_integer, "1", "steps", "1", "the barostat acts this often"), &
    key_t("DYNAMICS", "elec_long_period", is_integer, "1", "steps", "1", &
          "reciprocal-space forces this often, with VRES"), &
    key_t("DYNAMICS", "hydrogen_mr", is_choice, "NO", "", "YES NO", &
          "move mass from heavy atoms to their hydrogens, for longer time steps"), &
    key_t("DYNAMICS", "hmr_target", is_choice, "ALL", "", "ALL SOLUTE", "of all molecules, or not of waters"), &
    key_t("DYNAMICS", "hmr_ratio", is_real, "3.0", "", "1", "factor of the hydrogens' masses"), &
    key_t("DYNAMICS", "hmr_ratio_xh1", is_real, "0.0", "", "0", &
          "the same where a heavy atom has one hydrogen; 0 = hmr_ratio"), &
    key_t("DYNAMICS", "annealing", is_choice, "NO", "", "YES NO", "change the temperature in the course of the run"), &
    key_t("DYNAMICS", "anneal_period", is_integer, "0", "steps", "0", "between changes of the temperature"), &
    key_t("DYNAMICS", "dtemperature", is_real, "0.0", "K", "-1e6", "each change of the temperature"), &
    key_t("DYNAMICS", "iseed", is_integer, "314159", "", "0", "seed of velocities, thermostat and barostat"), &
    key_t("DYNAMICS", "initial_time", is_real, "0.0", "ps", "-1e30", "time of a fresh start"), &
    key_t("CONSTRAINTS", "rigid_bond", is_choice, "NO", "", "YES NO", &
          "keep bonds to hydrogen and waters rigid in dynamics"), &
    key_t("CONSTRAINTS", "fast_water", is_choice, "YES", "", "YES NO", "SETTLE for rigid waters (else SHAKE)"), &
    key_t("CONSTRAINTS", "shake_iteration", is_integer, "500", "", "1", "iterations before SHAKE gives up"), &
    key_t("CONSTRAINTS", "shake_tolerance", is_real, "1.0e-10", "", "1e-15", &
          "relative tolerance of SHAKE and RATTLE"), &
    key_t("ENSEMBLE", "ensemble", is_choice, "NVE", "", "NVE NVT NPT NPAT", &
          "what is kept: number of atoms, volume or pressure (NPAT: and the area), energy or temperature"), &
    key_t("ENSEMBLE", "tpcontrol", is_choice, "NO", "", "NO BUSSI LANGEVIN NHC BERENDSEN", &
          "velocity rescaling, Langevin dynamics, Nose-Hoover chain, weak coupling"), &
    key_t("ENSEMBLE", "temperature", is_real, "298.15", "K", "0", "of the thermostat and of drawn velocities"), &
    key_t("ENSEMBLE", "tau_t", is_real, "5.0", "ps", "1e-6", "relaxation time of BUSSI, NHC and BERENDSEN"), &
    key_t("ENSEMBLE", "gamma_t", is_real, "1.0", "1/ps", "0", "friction of LANGEVIN"), &
    key_t("ENSEMBLE", "nhchain", is_integer, "5", "", "1", "links of the Nose-Hoover chain, 1 to 8"), &
    key_t("ENSEMBLE", "nhmultistep", is_integer, "4", "", "1", "steps of the chain within one of its uses"), &
    key_t("ENSEMBLE", "barostat", is_choice, "AUTO", "", "AUTO MTK BERENDSEN MC", &
          "pistons, weak coupling or Monte Carlo; AUTO: BERENDSEN with that thermostat, else MTK"), &
    key_t("ENSEMBLE", "pressure", is_real, "1.0", "atm", "-1e6", "of NPT and NPAT"), &
    key_t("ENSEMBLE", "tau_p", is_real, "5.0", "ps", "1e-3", "relaxation time of the pressure (MTK, BERENDSEN)"), &
    key_t("ENSEMBLE", "gamma_p", is_real, "0.1", "1/ps", "0", "friction of the pistons with LANGEVIN"), &
    key_t("ENSEMBLE", "compressibility", is_real, "4.63e-5", "1/atm", "0", "of the system, for BERENDSEN"), &
    key_t("ENSEMBLE", "isotropy", is_choice, "ISO", "", "ISO SEMI-ISO ANISO XY-FIXED", &
          "axes that change together: all; x and y; none; only z changes"), &
    key_t("ENSEMBLE", "group_tp", is_choice, "YES", "", "YES NO", &
          "thermostat of the centres of mass of constraint groups, or of atoms"), &
    key_t("SELECTION", "group#", is_text, "", "", "", &
          "group1, group2, ...: atoms, e.g. segid:A and rno:1-9 and not an:H*; also ai:1-99, resname:, heavy"), &
    key_t("RESTRAINTS", "nfunctions", is_integer, "0", "", "0", "number of restraints"), &
    key_t("RESTRAINTS", "function#", is_choice, "", "", "POSI DIST DISTMASS DIHED DIHEDMASS RMSD RMSDMASS", &
          "function1, ...: what is restrained; MASS: centres of mass, mass-weighted"), &
    key_t("RESTRAINTS", "constant#", is_real, "0.0", "kcal/mol/angstrom^2", "0", &
          "k of k (x - reference)^2; per radian^2 for dihedrals"), &
    key_t("RESTRAINTS", "reference#", is_real, "0.0", "angstrom", "-1e6", &
          "wanted distance, RMSD, or dihedral in degrees; POSI: 0"), &
    key_t("RESTRAINTS", "select_index#", is_text, "", "", "", "groups: one for POSI and RMSD, 2 DIST, 4 DIHED"), &
    key_t("RESTRAINTS", "direction#", is_choice, "ALL", "", "ALL X Y Z", "of POSI: along which axes"), &
    key_t("BOUNDARY", "type", is_choice, "PBC", "", "PBC NOBC", "periodic box; or none: one rank, electrostatic = CUTOFF"), &
    key_t("BOUNDARY", "box_size_x", is_real, "0.0", "angstrom", "0", &
          "box, checked against the input; 0 = from the input"), &
    key_t("BOUNDARY", "box_size_y", is_real, "0.0", "angstrom", "0", &
          "box, checked against the input; 0 = from the input"), &
    key_t("BOUNDARY", "box_size_z", is_real, "0.0", "angstrom", "0", &
          "box, checked against the input; 0 = from the input"), &
    key_t("BOUNDARY", "domain_x", is_integer, "0", "", "0", "domains along x, 0 = automatic"), &
    key_t("BOUNDARY", "domain_y", is_integer, "0", "", "0", "domains along y, 0 = automatic"), &
    key_t("BOUNDARY", "domain_z", is_integer, "0", "", "0", "domains along z, 0 = automatic"), &
    key_t("BOUNDARY", "load_balance", is_choice, "NO", "", "YES NO", &
          "move the borders between domains until all have about the same work"), &
    key_t("COMM", "method", is_choice, "HALF_SHELL", "", "HALF_SHELL MIDPOINT", &
          "who computes a pair: of the owners of its atoms the lower; or where its middle lies, with half as wide a halo"), &
    key_t("COMM", "pattern", is_choice, "AUTO", "", "AUTO HALF FULL STAGED", &
          "domains that ghosts come from directly: 13, 26, or 6 along one axis after the other"), &
    key_t("COMM", "transport", is_choice, "AUTO", "", "AUTO PERSISTENT NEIGHBOURHOOD ONE_SIDED SHARED", &
          "how ghosts travel; results do not depend on it"), &
    key_t("COMM", "combine_messages", is_choice, "YES", "", "YES NO", "all that goes to one rank in one message"), &
    key_t("COMM", "fft", is_choice, "MODEL", "", "MODEL TIME SLAB PENCIL 1D 2D COLUMNS", &
          "scheme of the FFT of PME; MODEL and TIME choose, by a model or by trials"), &
    key_t("COMM", "overlap", is_choice, "NO", "", "YES NO", &
          "compute what needs no message while messages travel; changes only the rounding of sums"), &
    key_t("COMM", "pme_ranks", is_integer, "0", "", "0", &
          "so many of the ranks, the last ones, compute nothing but reciprocal space; the others have the domains"), &
    key_t("COMM", "torus", is_text, "", "nodes", "", &
          "the machine's torus, e.g. 4x4x2 (filled along the first axis first): neighbouring domains on near nodes"), &
    key_t("COMM", "planner", is_choice, "TIME", "", "TIME MODEL", &
          "for transport = AUTO: try all at the start of a run, or take PERSISTENT")]

  !> GENESIS' names of files that the engine does not read itself.
  character(len=12), parameter :: foreign_files(*) = [character(len=12) :: "topfile", "parfile", "strfile", "psffile", &
                                  "pdbfile", "crdfile", "prmtopfile", "ambcrdfile", "grotopfile", "grocrdfile"]

contains

  !> Read a control file; anything not in the table, or of the wrong kind, is refused with file and line.
  subroutine read_control(self, path, error)
    class(control_t), intent(out) :: self
    character(len=*), intent(in) :: path
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: line, section, name, value
    integer :: unit, status, number, equals, k, earlier, entry

    self%path = path
    allocate (self%value(size(keys)), self%line(size(keys)))
    self%value = keys%default
    self%line = 0
    allocate (self%numbered_key(0), self%number(0), self%numbered_line(0), self%numbered_value(0))
    open (newunit=unit, file=path, status="old", action="read", iostat=status)
    if (status /= 0) then
      call fail(error, exit_bad_input, path//": this control file cannot be opened; check the name")
      return
    end if
    section = ""
    number = 0
    do
      call read_line(unit, line, status)
      if (status /= 0) exit
      number = number + 1
      if (index(line, "#") > 0) line = line(:index(line, "#") - 1)
      if (index(line, "!") > 0) line = line(:index(line, "!") - 1)
      line = trim(adjustl(without_controls(line)))
      if (len(line) == 0) cycle
      if (line(1:1) == "[") then
        if (index(line, "]") /= len(line)) then
          call fail_at(self, number, "a section is written as [NAME], not '"//line//"'", error)
          exit
        end if
        section = trim(adjustl(line(2:len(line) - 1)))
        if (.not. any(lower_case(keys%section) == lower_case(section))) then
          call fail_at(self, number, "section ["//section//"] does not exist; nearest is ["// &
                       closest(section, keys%section)//"]", error)
          exit
        end if
        if (lower_case(section) == "dynamics") self%dynamics_section = .true.
        if (lower_case(section) == "minimize") self%minimize_section = .true.
        cycle
      end if
      equals = index(line, "=")
      if (equals == 0) then
        call fail_at(self, number, "expected 'key = value', found '"//line//"'", error)
        exit
      end if
      if (section == "") then
        call fail_at(self, number, "'"//line//"' stands before any [SECTION]", error)
        exit
      end if
      name = lower_case(trim(line(:equals - 1)))
      value = trim(adjustl(line(equals + 1:)))
      k = position_of(section, name)
      if (k == 0 .and. lower_case(section) == "input" .and. any(foreign_files == name)) then
        call fail_at(self, number, "'"//name//"' names a file of another program: run `chromabuild import` on it and "// &
                     "give its topology.h5 as topologyfile and its shards/bricks.txt as shardfile", error)
        exit
      end if
      if (k == 0) then
        call fail_at(self, number, "key '"//name//"' does not exist in ["//section//"]; nearest is '"// &
                     closest(name, pack(keys%name, lower_case(keys%section) == lower_case(section)))//"'", error)
        exit
      end if
      earlier = self%line(k)
      if (index(keys(k)%name, "#") > 0) then
        read (name(index(keys(k)%name, "#"):), *) entry
        earlier = sum(self%numbered_line, mask=self%numbered_key == k .and. self%number == entry)
      end if
      if (earlier > 0) then
        call fail_at(self, number, "'"//name//"' was already given in line "//to_text(earlier), error)
        exit
      end if
      call check_value(self, keys(k), value, number, error)
      if (allocated(error)) exit
      if (index(keys(k)%name, "#") > 0) then
        self%numbered_key = [self%numbered_key, k]
        self%number = [self%number, entry]
        self%numbered_line = [self%numbered_line, number]
        self%numbered_value = [character(len=len(self%value)) :: self%numbered_value, value]
        cycle
      end if
      self%value(k) = value
      self%line(k) = number
    end do
    close (unit)
    if (.not. allocated(error) .and. status > 0) &
      call fail(error, exit_bad_input, path//": line "//to_text(number + 1)//" cannot be read; is this a text file?")
    if (.not. allocated(error)) call check_together(self, error)
  end subroutine read_control

  !> Tabulators and carriage returns as blanks.
  pure function without_controls(line) result(clean)
    character(len=*), intent(in) :: line
    character(len=len(line)) :: clean
    integer :: i
    clean = line
    do i = 1, len(line)
      if (iachar(line(i:i)) < 32) clean(i:i) = " "
    end do
  end function without_controls

  !> Index of a key in the table, 0 = there is none.
  pure integer function position_of(section, name)
    character(len=*), intent(in) :: section, name
    character(len=len(name) + 1) :: general
    integer :: digits
    ! group12 is an entry of group#.
    general = name
    digits = verify(name, "0123456789", back=.true.) + 1
    if (digits > 1 .and. digits <= len_trim(name) .and. len_trim(name) - digits < 6) general = name(:digits - 1)//"#"
    do position_of = size(keys), 1, -1
      if (lower_case(keys(position_of)%section) /= lower_case(section)) cycle
      if (keys(position_of)%name == name .or. keys(position_of)%name == general) return
    end do
  end function position_of

  !> The candidate with the smallest edit distance.
  pure function closest(word, candidates) result(best)
    character(len=*), intent(in) :: word, candidates(:)
    character(len=:), allocatable :: best
    integer :: i, distance, smallest
    smallest = huge(smallest)
    do i = 1, size(candidates)
      distance = edit_distance(lower_case(word), lower_case(trim(candidates(i))))
      if (distance < smallest) then
        smallest = distance
        best = trim(candidates(i))
      end if
    end do
  end function closest

  !> Check one value against the kind and range of its key.
  subroutine check_value(self, key, value, number, error)
    type(control_t), intent(in) :: self
    type(key_t), intent(in) :: key
    character(len=*), intent(in) :: value
    integer, intent(in) :: number
    type(error_t), allocatable, intent(out) :: error
    integer(int64) :: whole
    real(real64) :: real_value, smallest
    integer :: status
    character(len=:), allocatable :: say

    say = trim(key%name)//" = "//value
    if (value == "") then
      call fail_at(self, number, "'"//trim(key%name)//"' has no value", error)
    else if (len(value) > len(self%value)) then
      call fail_at(self, number, "the value of '"//trim(key%name)//"' is longer than "// &
                   to_text(len(self%value))//" letters", error)
    else if (key%kind == is_choice) then
      if (index(" "//trim(key%allowed)//" ", " "//upper_case(value)//" ") == 0) &
        call fail_at(self, number, "'"//say//"' is not one of: "//trim(key%allowed), error)
    else if (key%kind == is_integer) then
      status = verify(value, "+-0123456789")
      if (status == 0) read (value, *, iostat=status) whole
      read (key%allowed, *) smallest
      if (status /= 0) then
        call fail_at(self, number, "'"//say//"' is not a whole number", error)
      else if (whole < smallest) then
        call fail_at(self, number, "'"//say//"' must be at least "//trim(key%allowed), error)
      end if
    else if (key%kind == is_real .or. (key%default == "auto" .and. lower_case(value) /= "auto")) then
      status = verify(value, "+-0123456789.eEdD")
      if (status == 0) read (value, *, iostat=status) real_value
      smallest = 0.0_real64
      if (key%allowed /= "") read (key%allowed, *) smallest
      if (status /= 0) then
        call fail_at(self, number, "'"//say//"' is not a number", error)
      else if (.not. real_value >= smallest .or. real_value > 1.0e30_real64) then
        call fail_at(self, number, "'"//say//"' must be a number of at least "//trim(key%allowed), error)
      end if
    end if
  end subroutine check_value

  pure function upper_case(text) result(upper)
    character(len=*), intent(in) :: text
    character(len=len(text)) :: upper
    integer :: i
    upper = text
    do i = 1, len(text)
      if (text(i:i) >= "a" .and. text(i:i) <= "z") upper(i:i) = achar(iachar(text(i:i)) - 32)
    end do
  end function upper_case

  !> Values that are fine alone but contradict each other.
  subroutine check_together(self, error)
    type(control_t), intent(in) :: self
    type(error_t), allocatable, intent(out) :: error
    if (self%dynamics_section .and. self%minimize_section) then
      call fail(error, exit_bad_input, self%path// &
                ": [MINIMIZE] and [DYNAMICS] stand together; one run does one of them")
    else if (self%real("ENERGY", "cutoffdist") <= 0.0_real64) then
      call self%refuse("ENERGY", "cutoffdist", "must be positive", error)
    else if (self%text("ENERGY", "vdw") /= "PME" .and. self%text("ENERGY", "forcefield") == "TOPOLOGY" .and. &
             self%real("ENERGY", "switchdist") > self%real("ENERGY", "cutoffdist")) then
      call self%refuse("ENERGY", "switchdist", "must not exceed cutoffdist", error)
    else if (self%real("ENERGY", "cutoffdist") >= self%real("ENERGY", "pairlistdist")) then
      call self%refuse("ENERGY", "pairlistdist", "must exceed cutoffdist", error)
    else if (self%yes("ENERGY", "vdw_force_switch") .and. self%yes("ENERGY", "vdw_shift")) then
      call self%refuse("ENERGY", "vdw_shift", "contradicts vdw_force_switch = YES", error)
    else if (self%text("ENERGY", "vdw") == "PME" .and. self%yes("ENERGY", "deterministic")) then
      call self%refuse("ENERGY", "deterministic", "does not go with vdw = PME; give vdw = CUTOFF", error)
    else if (self%text("ENERGY", "electrostatic") == "CUTOFF" .and. &
             self%text("DYNAMICS", "integrator") == "VRES") then
      call self%refuse("DYNAMICS", "integrator", "needs reciprocal space, which electrostatic = CUTOFF has not; give VVER", &
                       error)
    else if (self%text("ENERGY", "electrostatic") == "CUTOFF" .and. self%text("ENERGY", "vdw") == "PME") then
      call self%refuse("ENERGY", "vdw", "needs electrostatic = PME", error)
    else if (self%text("ENERGY", "electrostatic") == "CUTOFF" .and. &
             self%text("ENERGY", "pairlist_tolerance") /= "auto") then
      call self%refuse("ENERGY", "pairlist_tolerance", "needs electrostatic = PME; remove it", error)
    else if (self%yes("ENERGY", "table") .and. self%text("ENERGY", "vdw") == "PME") then
      call self%refuse("ENERGY", "table", "does not go with vdw = PME; give table = NO", error)
    else if (self%yes("ENERGY", "table") .and. self%yes("ENERGY", "deterministic")) then
      call self%refuse("ENERGY", "table", "does not go with deterministic = YES; give table = NO", error)
    else if (self%integer("COMM", "pme_ranks") > 0 .and. self%text("ENERGY", "electrostatic") == "CUTOFF") then
      call self%refuse("COMM", "pme_ranks", "needs electrostatic = PME", error)
    else if (self%integer("COMM", "pme_ranks") > 0 .and. self%text("ENERGY", "forcefield") /= "TOPOLOGY") then
      call self%refuse("COMM", "pme_ranks", "needs forcefield = TOPOLOGY; others have no reciprocal space", error)
    else if (self%integer("COMM", "pme_ranks") > 0 .and. self%given("COMM", "torus")) then
      call self%refuse("COMM", "torus", "does not go with pme_ranks; remove one of them", error)
    else if (self%integer("COMM", "pme_ranks") > 0 .and. self%text("ENERGY", "vdw") == "PME") then
      call self%refuse("COMM", "pme_ranks", "does not go with vdw = PME; give vdw = CUTOFF", error)
    else if (self%uses_midpoint() .and. self%text("ENERGY", "forcefield") /= "TOPOLOGY") then
      call self%refuse("COMM", "method", "needs forcefield = TOPOLOGY; give HALF_SHELL", error)
    else if (self%uses_midpoint() .and. self%text("COMM", "pattern") == "HALF") then
      call self%refuse("COMM", "pattern", "does not go with method = MIDPOINT, whose ghosts come from all around; give FULL "// &
                       "or STAGED", error)
    else if (self%text("ENERGY", "vdw") == "PME" .and. &
             (self%yes("ENERGY", "vdw_force_switch") .or. self%yes("ENERGY", "vdw_shift") .or. &
              self%text("ENERGY", "dispersion_corr") /= "NONE")) then
      call self%refuse("ENERGY", "vdw", &
                       "sums the dispersion beyond the cutoff; remove vdw_force_switch, vdw_shift and dispersion_corr", &
                       error)
    else if (self%text("ENERGY", "vdw") == "PME" .and. self%given("ENERGY", "switchdist") .and. &
             self%real("ENERGY", "switchdist") < self%real("ENERGY", "cutoffdist")) then
      call self%refuse("ENERGY", "switchdist", "does not go with vdw = PME, which has no switch; remove it", error)
    else if (self%text("ENERGY", "vdw") /= "PME" .and. self%text("ENERGY", "vdw_pme_alpha") /= "auto") then
      call self%refuse("ENERGY", "vdw_pme_alpha", "needs vdw = PME", error)
    else if (self%integer("ENERGY", "pme_nspline") > 10) then
      call self%refuse("ENERGY", "pme_nspline", "must be at most 10", error)
    else if (self%text("ENERGY", "dispersion_corr") /= "NONE" .and. &
             (self%yes("ENERGY", "vdw_force_switch") .or. self%yes("ENERGY", "vdw_shift"))) then
      call self%refuse("ENERGY", "dispersion_corr", &
                       "goes only with the switched energy, not with vdw_force_switch or vdw_shift", &
                       error)
    else if (self%text("ENSEMBLE", "ensemble") == "NVE" .and. self%text("ENSEMBLE", "tpcontrol") /= "NO") then
      call self%refuse("ENSEMBLE", "tpcontrol", "contradicts ensemble = NVE; give ensemble = NVT", error)
    else if (self%text("ENSEMBLE", "ensemble") /= "NVE" .and. self%text("ENSEMBLE", "tpcontrol") == "NO") then
      call self%refuse("ENSEMBLE", "tpcontrol", "leaves ensemble = "//self%text("ENSEMBLE", "ensemble")// &
                       " without a thermostat; give BUSSI, LANGEVIN, NHC or BERENDSEN", error)
    else if (self%text("ENSEMBLE", "ensemble") == "NPAT" .and. self%text("ENSEMBLE", "isotropy") /= "XY-FIXED") then
      call self%refuse("ENSEMBLE", "isotropy", "does not keep the area; NPAT needs XY-FIXED", error)
    else if (self%text("ENSEMBLE", "ensemble") == "NPT" .and. self%text("ENSEMBLE", "isotropy") == "XY-FIXED") then
      call self%refuse("ENSEMBLE", "isotropy", "keeps the area; give ensemble = NPAT", error)
    else if (self%text("DYNAMICS", "integrator") /= "VRES" .and. self%integer("DYNAMICS", "elec_long_period") > 1) then
      call self%refuse("DYNAMICS", "elec_long_period", "needs integrator = VRES", error)
    else if (self%text("DYNAMICS", "integrator") == "LEAP" .and. self%text("ENSEMBLE", "tpcontrol") == "LANGEVIN") then
      call self%refuse("DYNAMICS", "integrator", "does not go with tpcontrol = LANGEVIN; give VVER", error)
    else if (self%yes("DYNAMICS", "annealing") .and. (self%integer("DYNAMICS", "anneal_period") == 0 .or. &
                                                      self%text("ENSEMBLE", "tpcontrol") == "NO")) then
      call self%refuse("DYNAMICS", "annealing", "needs anneal_period and a thermostat", error)
    else if (.not. is_multiple_of_long(self)) then
      call self%refuse("DYNAMICS", "elec_long_period", &
                       "must divide nsteps, eneout_period, rstout_period, thermostat_period and barostat_period", error)
    else if (self%text("ENSEMBLE", "ensemble") == "NVE" .and. self%text("ENSEMBLE", "barostat") /= "AUTO") then
      call self%refuse("ENSEMBLE", "barostat", "contradicts ensemble = NVE; give ensemble = NPT", error)
    else if (self%text("ENSEMBLE", "ensemble") == "NVT" .and. self%text("ENSEMBLE", "barostat") /= "AUTO") then
      call self%refuse("ENSEMBLE", "barostat", "contradicts ensemble = NVT; give ensemble = NPT", error)
    else if (self%integer("ENSEMBLE", "nhchain") > 8) then
      call self%refuse("ENSEMBLE", "nhchain", "must be at most 8", error)
    else if (self%real("MINIMIZE", "force_scale_init") > self%real("MINIMIZE", "force_scale_max")) then
      call self%refuse("MINIMIZE", "force_scale_init", "must not exceed force_scale_max", error)
    else if (self%integer("OUTPUT", "dcd_last_atom") > 0 .and. &
             self%integer("OUTPUT", "dcd_last_atom") < self%integer("OUTPUT", "dcd_first_atom")) then
      call self%refuse("OUTPUT", "dcd_last_atom", "must not be smaller than dcd_first_atom", error)
    else if (self%text("OUTPUT", "rstfile") /= "" .and. index(self%text("OUTPUT", "rstfile"), "()") == 0) then
      call self%refuse("OUTPUT", "rstfile", "must contain (), which stands for the rank", error)
    else if (self%text("INPUT", "rstfile") /= "" .and. index(self%text("INPUT", "rstfile"), "()") == 0) then
      call self%refuse("INPUT", "rstfile", "must contain (), which stands for the rank", error)
    else
      call check_open(self, error)
      if (.not. allocated(error)) call check_material(self, error)
    end if
  end subroutine check_together

  !> Keys that do not go with type = NOBC, and that only go with it.
  subroutine check_open(self, error)
    type(control_t), intent(in) :: self
    type(error_t), allocatable, intent(inout) :: error
    character(len=*), parameter :: key(*) = [character(len=12) :: "box_size_x", "box_size_y", "box_size_z"]
    integer :: k
    if (self%text("BOUNDARY", "type") == "PBC") then
      if (self%yes("ENERGY", "vacuum")) call self%refuse("ENERGY", "vacuum", "needs type = NOBC in [BOUNDARY]", error)
      return
    end if
    if (self%text("ENERGY", "forcefield") /= "TOPOLOGY") then
      call self%refuse("BOUNDARY", "type", "does not go with forcefield = "//self%text("ENERGY", "forcefield")// &
                       "; give PBC", error)
    else if (self%text("ENERGY", "electrostatic") == "PME") then
      call self%refuse("BOUNDARY", "type", "does not go with PME, which needs a periodic box; give "// &
                       "electrostatic = CUTOFF in [ENERGY]", error)
    else if (self%text("ENSEMBLE", "ensemble") == "NPT" .or. self%text("ENSEMBLE", "ensemble") == "NPAT") then
      call self%refuse("BOUNDARY", "type", "does not go with ensemble = "//self%text("ENSEMBLE", "ensemble")// &
                       ": without a box there is no pressure; give NVE or NVT", error)
    else if (self%text("ENERGY", "dispersion_corr") /= "NONE") then
      call self%refuse("ENERGY", "dispersion_corr", "needs a uniform density, which type = NOBC has not; give NONE", error)
    else if (self%yes("ENERGY", "vacuum") .and. self%given("ENERGY", "switchdist") .and. &
             self%real("ENERGY", "switchdist") < self%real("ENERGY", "cutoffdist")) then
      call self%refuse("ENERGY", "switchdist", "does not go with vacuum = YES, which has no switch; remove it", error)
    else if (self%yes("ENERGY", "vacuum") .and. (self%yes("ENERGY", "vdw_force_switch") .or. &
                                                 self%yes("ENERGY", "vdw_shift"))) then
      call self%refuse("ENERGY", "vacuum", "has neither switch nor shift; remove vdw_force_switch and vdw_shift", error)
    end if
    do k = 1, size(key)
      if (.not. allocated(error) .and. self%given("BOUNDARY", trim(key(k)))) &
        call self%refuse("BOUNDARY", trim(key(k)), "does not go with type = NOBC; remove it", error)
    end do
  end subroutine check_open

  !> Keys that do not go with forcefield = LJ or EAM, and that only go with it.
  subroutine check_material(self, error)
    type(control_t), intent(in) :: self
    type(error_t), allocatable, intent(inout) :: error
    character(len=20), parameter :: molecular(*) = [character(len=20) :: "electrostatic", "switchdist", "vdw", &
      "vdw_force_switch", "dispersion_corr", "deterministic", "pairlist_tolerance", "vacuum", "table", "table_order", &
      "table_density", "pme_alpha", "pme_alpha_tol", "pme_nspline", "pme_ngrid_x", "pme_ngrid_y", "pme_ngrid_z", &
      "pme_max_spacing"]
    character(len=:), allocatable :: forcefield
    integer :: k
    forcefield = self%text("ENERGY", "forcefield")
    if (forcefield /= "EAM" .and. self%given("INPUT", "eamfile")) then
      call self%refuse("INPUT", "eamfile", "needs forcefield = EAM in [ENERGY]", error)
    else if (forcefield /= "EAM" .and. self%given("ENERGY", "eam_element")) then
      call self%refuse("ENERGY", "eam_element", "needs forcefield = EAM", error)
    else if (forcefield == "EAM" .and. .not. self%given("INPUT", "eamfile")) then
      call self%refuse("ENERGY", "forcefield", "needs eamfile in [INPUT]", error)
    else if (forcefield == "EAM" .and. self%yes("ENERGY", "vdw_shift")) then
      call self%refuse("ENERGY", "vdw_shift", "does not go with forcefield = EAM", error)
    else if (forcefield /= "TOPOLOGY" .and. self%text("DYNAMICS", "integrator") == "VRES") then
      call self%refuse("DYNAMICS", "integrator", "needs reciprocal space, which forcefield = "//forcefield// &
                       " has not; give VVER", error)
    end if
    if (forcefield == "TOPOLOGY") return
    do k = 1, size(molecular)
      if (.not. allocated(error) .and. self%given("ENERGY", trim(molecular(k)))) &
        call self%refuse("ENERGY", trim(molecular(k)), "does not go with forcefield = "//forcefield//"; remove it", error)
    end do
  end subroutine check_material

  !> Whether everything that happens between steps falls on the end of a long step.
  pure logical function is_multiple_of_long(self)
    type(control_t), intent(in) :: self
    integer(int64) :: long
    long = self%integer("DYNAMICS", "elec_long_period")
    is_multiple_of_long = .true.
    if (long == 1) return
    is_multiple_of_long = all(mod([self%integer("DYNAMICS", "nsteps"), self%integer("DYNAMICS", "eneout_period"), &
                                   self%integer("DYNAMICS", "rstout_period"), &
                                   merge(long, self%integer("DYNAMICS", "thermostat_period"), &
                                         self%text("ENSEMBLE", "ensemble") == "NVE"), &
                                   merge(self%integer("DYNAMICS", "barostat_period"), long, &
                                         self%text("ENSEMBLE", "ensemble") == "NPT" .or. &
                                         self%text("ENSEMBLE", "ensemble") == "NPAT")], long) == 0)
  end function is_multiple_of_long

  subroutine fail_at(self, line, message, error)
    type(control_t), intent(in) :: self
    integer, intent(in) :: line
    character(len=*), intent(in) :: message
    type(error_t), allocatable, intent(out) :: error
    call fail(error, exit_bad_input, self%path//", line "//to_text(line)//": "//message)
  end subroutine fail_at

  !> Refuse the value of a key for a reason found later.
  subroutine refuse(self, section, name, reason, error)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name, reason
    type(error_t), allocatable, intent(out) :: error
    integer :: k
    k = position_of(section, name)
    if (self%line(k) > 0) then
      call fail_at(self, self%line(k), name//" = "//trim(self%value(k))//" "//reason, error)
    else
      call fail(error, exit_bad_input, self%path//": "//name//" (default "//trim(self%value(k))//") "//reason)
    end if
  end subroutine refuse

  !> Fail unless a key that a command cannot do without is there.
  subroutine require(self, section, name, error)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    type(error_t), allocatable, intent(out) :: error
    if (.not. self%given(section, name)) &
      call fail(error, exit_bad_input, self%path//": '"//name//"' is missing; add it to ["//section//"]")
  end subroutine require

  !> Whether the file gives this key.
  pure logical function given(self, section, name)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    given = self%line(position_of(section, name)) > 0
  end function given

  !> The value of entry `number` of a key that ends with # in the table; its default when it is not given.
  pure function numbered(self, section, name, number) result(value)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    integer, intent(in) :: number
    character(len=:), allocatable :: value
    integer :: k, i
    k = position_of(section, name//"#")
    value = trim(keys(k)%default)
    do i = 1, size(self%number)
      if (self%numbered_key(i) == k .and. self%number(i) == number) value = trim(self%numbered_value(i))
    end do
    if (keys(k)%kind == is_choice) value = upper_case(value)
  end function numbered

  !> Refuse the value of such an entry.
  subroutine refuse_numbered(self, section, name, number, reason, error)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name, reason
    integer, intent(in) :: number
    type(error_t), allocatable, intent(out) :: error
    integer :: k, i
    k = position_of(section, name//"#")
    do i = 1, size(self%number)
      if (self%numbered_key(i) /= k .or. self%number(i) /= number) cycle
      call fail_at(self, self%numbered_line(i), name//to_text(number)//" = "//trim(self%numbered_value(i))//" "// &
                   reason, error)
      return
    end do
    call fail(error, exit_bad_input, self%path//": "//name//to_text(number)//" in ["//section//"] "//reason)
  end subroutine refuse_numbered

  pure function get_text(self, section, name) result(value)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    character(len=:), allocatable :: value
    integer :: k
    k = position_of(section, name)
    value = trim(self%value(k))
    if (keys(k)%kind == is_choice) value = upper_case(value)
  end function get_text

  pure integer(int64) function get_integer(self, section, name) result(value)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    read (self%value(position_of(section, name)), *) value
  end function get_integer

  pure real(real64) function get_real(self, section, name) result(value)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    read (self%value(position_of(section, name)), *) value
  end function get_real

  pure logical function yes(self, section, name)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section, name
    yes = self%text(section, name) == "YES"
  end function yes

  pure logical function wants_dynamics(self)
    class(control_t), intent(in) :: self
    wants_dynamics = self%dynamics_section
  end function wants_dynamics

  pure logical function wants_minimisation(self)
    class(control_t), intent(in) :: self
    wants_minimisation = self%minimize_section
  end function wants_minimisation

  pure logical function uses_midpoint(self)
    class(control_t), intent(in) :: self
    uses_midpoint = self%text("COMM", "method") == "MIDPOINT"
  end function uses_midpoint

  !> Print a control file with all keys (of one section, or of all if `section` is empty), defaults, units and meanings.
  subroutine print_help(self, section, error)
    class(control_t), intent(in) :: self
    character(len=*), intent(in) :: section
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: note, wanted, current
    integer :: k
    associate (unused => self); end associate
    wanted = section
    if (index(wanted, "[") == 1) wanted = wanted(2:max(1, len(wanted) - 1))
    if (wanted /= "" .and. .not. any(lower_case(keys%section) == lower_case(wanted))) then
      call fail(error, exit_bad_input, "section ["//wanted//"] does not exist; nearest is ["// &
                closest(wanted, keys%section)//"]")
      return
    end if
    current = ""
    do k = 1, size(keys)
      if (wanted /= "" .and. lower_case(keys(k)%section) /= lower_case(wanted)) cycle
      if (keys(k)%section /= current) then
        if (current /= "") write (output_unit, "(a)") ""
        current = trim(keys(k)%section)
        write (output_unit, "(3a)") "[", current, "]"
      end if
      note = trim(keys(k)%about)
      if (keys(k)%kind == is_choice .and. index(trim(keys(k)%allowed), " ") > 0) &
        note = note//" ("//trim(keys(k)%allowed)//")"
      if (keys(k)%unit /= "") note = note//" ["//trim(keys(k)%unit)//"]"
      if (keys(k)%default == "" .or. index(keys(k)%name, "#") > 0) then
        write (output_unit, "(a,a17,a,12x,2a)") "# ", numbered_example(keys(k)%name), "= ", " # ", note
      else
        write (output_unit, "(a19,a,a12,2a)") keys(k)%name, "= ", keys(k)%default, " # ", note
      end if
    end do
  end subroutine print_help

  !> group# as it is written for the first entry: group1.
  pure function numbered_example(name) result(example)
    character(len=*), intent(in) :: name
    character(len=len(name)) :: example
    example = name
    if (index(name, "#") > 0) example(index(name, "#"):index(name, "#")) = "1"
  end function numbered_example

end module control
