!> The keys of the control file: GENESIS sections and keys. This one table drives reading, checking, defaults and help.
module control_keys
  use base_control_keys, only: is_choice, is_integer, is_real, is_reals, is_text, key_t
  implicit none
  private
  public :: keys, free_keys, bound_keys

  !> Of all sections but the last.
  type(key_t), parameter :: first_keys(*) = [ &
    key_t("INPUT", "topologyfile", is_text, "", "", "", "topology of the system (topology.h5)"), &
    key_t("INPUT", "shardfile", is_text, "", "", "", &
          "list of the bricks of the box (shards/bricks.txt); for setup and energy"), &
    key_t("INPUT", "statefile", is_text, "", "", "", &
          "setup: positions and velocities to all digits, beside shardfile, as chromabuild import writes them"), &
    key_t("INPUT", "rstfile", is_text, "", "", "", &
          "restart files to start from, () stands for the rank; for run and energy"), &
    key_t("INPUT", "continue", is_choice, "NO", "", "YES NO", &
          "YES: go on from the checkpoint of this very run, where there is a whole one; nsteps is the total"), &
    key_t("INPUT", "reffile", is_text, "", "", "", &
          "bricks.txt of the reference coordinates of POSI and RMSD restraints"), &
    key_t("INPUT", "dcdfile", is_text, "", "", "", &
          "per-domain trajectories to merge, () stands for the rank, {} for a replica; for merge"), &
    key_t("INPUT", "remfile", is_text, "", "", "", &
          "merge: records of exchanging replicas, {} stands for the replica; frames are sorted by parameter"), &
    key_t("INPUT", "eamfile", is_text, "", "", "", "embedded-atom potential: funcfl or setfl file, for forcefield = EAM"), &
    key_t("OUTPUT", "logfile", is_text, "", "", "", "energies and timings; default: standard output"), &
    key_t("OUTPUT", "remfile", is_text, "", "", "", &
          "replica exchange: step and parameter of a replica; {} stands for its number, in this and other names"), &
    key_t("OUTPUT", "gamdfile", is_text, "", "", "", "what [GAMD] learns: a row of values every update_period"), &
    key_t("OUTPUT", "dcdfile", is_text, "", "", "", &
          "trajectory: DCD, or XTC if so named; with () one file per domain in our own format, for chromamd merge"), &
    key_t("OUTPUT", "dcd_atoms", is_text, "all", "", "", &
          "atoms of dcdfile: ascending ranges such as 1-1000, 90001-90100, counted from 1 as ai: does"), &
    key_t("OUTPUT", "dcd_group", is_integer, "0", "", "0", &
          "merge: number of the group in [SELECTION] to write, 0 = all of dcd_atoms"), &
    key_t("OUTPUT", "rstfile", is_text, "", "", "", &
          "restart files to write, () stands for the rank; (by256)/().rst: 256 ranks a folder"), &
    key_t("OUTPUT", "setup_domains", is_text, "", "", "", &
          "setup: make domains 0-1023, say, alone; files that are there and whole are kept"), &
    key_t("OUTPUT", "checkpoint", is_text, "", "", "", &
          "checkpoint files of run, () stands for the rank; written on SIGTERM, SIGHUP, SIGUSR1 and SIGINT too"), &
    key_t("OUTPUT", "checkpoint_interval", is_real, "0.0", "minutes", "0", &
          "wall-clock time between checkpoints, 0 = only on signals and at the end"), &
    key_t("OUTPUT", "forcefile", is_text, "", "", "", "forces of all atoms in global order; for energy"), &
    key_t("ENERGY", "forcefield", is_choice, "TOPOLOGY", "", "TOPOLOGY LJ EAM CHARMM AMBER GROAMBER", &
          "all that the topology says (GENESIS' names too; GROAMBER: QUINTIC switch); atoms of one kind: LJ or EAM"), &
    key_t("ENERGY", "eam_element", is_text, "", "", "", "name of the element in a setfl file of several"), &
    key_t("ENERGY", "electrostatic", is_choice, "PME", "", "PME CUTOFF DEBYE", &
          "particle mesh Ewald; up to cutoffdist: q q (1/r - 1/cutoffdist); or water and salt without their atoms"), &
    key_t("ENERGY", "dielectric", is_real, "4.0", "", "1", &
          "DEBYE: relative permittivity, or its slope an angstrom"), &
    key_t("ENERGY", "dielectric_form", is_choice, "DISTANCE", "", "CONSTANT DISTANCE", &
          "DEBYE: permittivity the same everywhere, or growing with the distance of two charges"), &
    key_t("ENERGY", "debye_length", is_text, "auto", "angstrom", "", &
          "DEBYE: over which salt screens charges; auto: of water with ionic_strength at the (highest) temperature"), &
    key_t("ENERGY", "ionic_strength", is_real, "0.15", "mol/l", "0", "DEBYE: of the salt, 0 = none"), &
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
          "shift the van der Waals force from switchdist on so that it is zero at the cutoff, as GROMACS does"), &
    key_t("ENERGY", "vdw_energy_shift", is_choice, "NO", "", "YES NO", &
          "shift the van der Waals energy to zero at the cutoff by a constant; no switch"), &
    key_t("ENERGY", "vdw_switch_form", is_choice, "CUBIC", "", "CUBIC QUINTIC", &
          "switch of the energy: cubic in r^2 as CHARMM's, or quintic in r as GROMACS'"), &
    key_t("ENERGY", "vdw_repulsion", is_choice, "NO", "", "YES NO", &
          "DEBYE: van der Waals within its minimum only, less its depth: the excluded volume of beads"), &
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
    key_t("MINIMIZE", "fixatm_select_index", is_text, "", "", "", &
          "groups of [SELECTION], 1 2, say, whose atoms do not move"), &
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
    key_t("DYNAMICS", "iseed", is_integer, "314159", "", "-1", "seed of velocities, thermostat and barostat; -1 = the default"), &
    key_t("DYNAMICS", "initial_time", is_real, "0.0", "ps", "-1e30", "time of a fresh start"), &
    key_t("DYNAMICS", "fixatm_select_index", is_text, "", "", "", &
          "groups of [SELECTION], 1 2, say, whose atoms do not move; the centre of mass is not stopped then"), &
    key_t("CONSTRAINTS", "rigid_bond", is_choice, "NO", "", "YES NO", &
          "keep bonds to hydrogen and waters rigid in dynamics"), &
    key_t("CONSTRAINTS", "fast_water", is_choice, "YES", "", "YES NO", "SETTLE for rigid waters (else SHAKE)"), &
    key_t("CONSTRAINTS", "shake_iteration", is_integer, "500", "", "1", "iterations before SHAKE gives up"), &
    key_t("CONSTRAINTS", "shake_tolerance", is_real, "1.0e-10", "", "1e-15", &
          "relative tolerance of SHAKE and RATTLE"), &
    key_t("CONSTRAINTS", "fixatm_select_index", is_text, "", "", "", &
          "more of them, where GENESIS has the key for dynamics"), &
    key_t("ENSEMBLE", "ensemble", is_choice, "NVE", "", "NVE NVT NPT NPAT", &
          "what is kept: number of atoms, volume or pressure (NPAT: and the area), energy or temperature"), &
    key_t("ENSEMBLE", "tpcontrol", is_choice, "NO", "", "NO BUSSI LANGEVIN NHC BERENDSEN", &
          "velocity rescaling, Langevin dynamics, Nose-Hoover chain, weak coupling"), &
    key_t("ENSEMBLE", "temperature", is_real, "298.15", "K", "0", "of the thermostat and of drawn velocities"), &
    key_t("ENSEMBLE", "temperature_end", is_real, "", "K", "0", &
          "of the thermostat at the end of the run, linear in time from `temperature`; default: no change"), &
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
    key_t("HEALTH", "max_force", is_real, "10000.0", "kcal/mol/angstrom", "0", &
          "dynamics ends where the force on an atom is larger; 0 = off, as for all keys of this section"), &
    key_t("HEALTH", "max_temperature", is_text, "auto", "K", "0", &
          "... where solute or solvent is hotter; auto: three times what the thermostat is set to, and chance"), &
    key_t("HEALTH", "max_drift", is_real, "1.0", "kT/ps/atom", "0", &
          "... where the conserved energy drifts faster, over a ps or more"), &
    key_t("HEALTH", "max_volume_ratio", is_real, "2.0", "", "0", &
          "... where the box has become so many times larger or smaller"), &
    key_t("SELECTION", "group#", is_text, "", "", "", &
          "group1, ...: atoms, e.g. segid:A and rno:1-9 and not an:H*, mname:H3 around_res:6; also ai:, resname:, heavy"), &
    key_t("RESTRAINTS", "nfunctions", is_integer, "0", "", "0", "number of restraints"), &
    key_t("RESTRAINTS", "function#", is_choice, "", "", &
          "POSI DIST DISTMASS REPUL REPULMASS FB FBMASS ANGLE ANGLEMASS DIHED DIHEDMASS RMSD RMSDMASS", &
          "function1, ...: what is restrained; REPUL, FB: distances below, above; MASS: centres of mass, mass-weighted"), &
    key_t("RESTRAINTS", "constant#", is_reals, "0.0", "kcal/mol/angstrom^2", "0", &
          "k of k (x - reference)^2; per radian^2 for angles and dihedrals; a list where replicas exchange it"), &
    key_t("RESTRAINTS", "constant_end#", is_real, "", "kcal/mol/angstrom^2", "0", &
          "k at the end of dynamics, linear in time from `constant`; default: no change"), &
    key_t("RESTRAINTS", "reference#", is_reals, "0.0", "angstrom", "-1e6", &
          "wanted distance, RMSD, or angle or dihedral in degrees; POSI: 0; a list where replicas exchange it"), &
    key_t("RESTRAINTS", "select_index#", is_text, "", "", "", &
          "groups: one for POSI and RMSD, 2 for DIST, REPUL and FB, 3 for ANGLE, 4 for DIHED"), &
    key_t("RESTRAINTS", "direction#", is_choice, "ALL", "", "ALL X Y Z", "of POSI: along which axes"), &
    key_t("REMD", "dimension", is_integer, "1", "", "1", &
          "replica exchange: kinds of parameters; there are as many replicas as combinations of them"), &
    key_t("REMD", "exchange_period", is_integer, "100", "steps", "0", "between attempts to exchange; 0 = never"), &
    key_t("REMD", "iseed", is_integer, "3141592", "", "0", "seed of the decisions whether to exchange"), &
    key_t("REMD", "type#", is_choice, "TEMPERATURE", "", "TEMPERATURE PRESSURE RESTRAINT REST", &
          "type1, ...: what is exchanged; REST: the temperature of a solute, by scaling what acts on it (gREST)"), &
    key_t("REMD", "nreplica#", is_integer, "0", "", "2", "number of parameters of a kind"), &
    key_t("REMD", "parameters#", is_reals, "", "K or atm", "", &
          "temperatures, pressures, or temperatures of the solute, ascending, with blanks between them"), &
    key_t("REMD", "rest_function#", is_text, "", "", "", &
          "RESTRAINT: numbers of functions in [RESTRAINTS] whose constants and references are lists"), &
    key_t("REMD", "select_index#", is_integer, "0", "", "0", "REST: number of the group in [SELECTION] that is the solute"), &
    key_t("REMD", "param_type#", is_text, "ALL", "", "", &
          "REST: terms: ALL, or of BOND ANGLE UREY DIHEDRAL IMPROPER CMAP CHARGE LJ; also as B A U D I CM C L"), &
    key_t("REMD", "cyclic_params#", is_choice, "NO", "", "YES NO", "the first and the last are neighbours too"), &
    key_t("GAMD", "gamd", is_choice, "NO", "", "YES NO", &
          "Gaussian accelerated dynamics: energies below a threshold are raised, so that barriers are lower"), &
    key_t("GAMD", "boost", is_choice, "YES", "", "YES NO", "NO: energies are watched, and nothing is raised"), &
    key_t("GAMD", "boost_type", is_choice, "DUAL", "", "DUAL DIHEDRAL POTENTIAL", &
          "what is raised: torsions, and all the rest; torsions (with correction maps); the whole potential"), &
    key_t("GAMD", "thresh_type", is_choice, "LOWER", "", "LOWER UPPER HIGHER", &
          "threshold: the highest energy seen, or the lowest plus 1/k (UPPER and HIGHER are the same)"), &
    key_t("GAMD", "update_period", is_integer, "0", "steps", "0", &
          "energies are watched, and their new values act and go to gamdfile this often; 0 = those given stay"), &
    key_t("GAMD", "sigma0_pot", is_real, "6.0", "kcal/mol", "0", "largest deviation of the boost of the potential"), &
    key_t("GAMD", "sigma0_dih", is_real, "6.0", "kcal/mol", "0", "largest deviation of the boost of torsions"), &
    key_t("GAMD", "pot_max", is_real, "-99999999.0", "kcal/mol", "-1e30", "highest potential seen"), &
    key_t("GAMD", "pot_min", is_real, "99999999.0", "kcal/mol", "-1e30", "lowest potential seen"), &
    key_t("GAMD", "pot_ave", is_real, "0.0", "kcal/mol", "-1e30", "its mean"), &
    key_t("GAMD", "pot_dev", is_real, "0.0", "kcal/mol", "0", "its standard deviation"), &
    key_t("GAMD", "dih_max", is_real, "-99999999.0", "kcal/mol", "-1e30", "highest energy of torsions seen"), &
    key_t("GAMD", "dih_min", is_real, "99999999.0", "kcal/mol", "-1e30", "lowest energy of torsions seen"), &
    key_t("GAMD", "dih_ave", is_real, "0.0", "kcal/mol", "-1e30", "its mean"), &
    key_t("GAMD", "dih_dev", is_real, "0.0", "kcal/mol", "0", "its standard deviation")]

  !> Those of the last sections: where the domains are, and what goes between them.
  type(key_t), parameter :: last_keys(*) = [ &
    key_t("BOUNDARY", "type", is_choice, "PBC", "", "PBC NOBC", "periodic box; or none: electrostatic = CUTOFF or DEBYE"), &
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
    key_t("BOUNDARY", "spherical_pot", is_choice, "NO", "", "YES NO", &
          "NOBC: pull atoms that are a distance e outside of spheres back by constant e^exponent"), &
    key_t("BOUNDARY", "constant", is_real, "10.0", "kcal/mol/angstrom^n", "0", "of spherical_pot, n = exponent"), &
    key_t("BOUNDARY", "exponent", is_integer, "2", "", "1", "of spherical_pot"), &
    key_t("BOUNDARY", "nindex", is_integer, "0", "", "0", "number of groups whose atoms are centres of spheres"), &
    key_t("BOUNDARY", "center_select_index#", is_integer, "", "", "1", &
          "numbers of these groups in [SELECTION]; the centres stay where shardfile has the atoms"), &
    key_t("BOUNDARY", "nfunctions", is_integer, "0", "", "0", "number of spheres whose centres are given"), &
    key_t("BOUNDARY", "center#", is_text, "", "angstrom", "", "x, y and z of these centres, in the input"), &
    key_t("BOUNDARY", "radius#", is_real, "", "angstrom", "0", "of each sphere, or of those of each group"), &
    key_t("BOUNDARY", "fixatom", is_choice, "YES", "", "YES NO", "atoms that are outside at setup do not move"), &
    key_t("BOUNDARY", "fix_layer", is_real, "1.0", "angstrom", "0", "nor do atoms less than this inside, with fixatom"), &
    key_t("COMM", "method", is_choice, "HALF_SHELL", "", "HALF_SHELL MIDPOINT", &
          "who computes a pair: of the owners of its atoms the lower; or where its middle lies, with half as wide a halo"), &
    key_t("COMM", "pattern", is_choice, "AUTO", "", "AUTO HALF FULL STAGED", &
          "domains that ghosts come from directly: 13, 26, or 6 along one axis after the other"), &
    key_t("COMM", "transport", is_choice, "AUTO", "", "AUTO PERSISTENT NEIGHBOURHOOD ONE_SIDED SHARED", &
          "how ghosts travel; results do not depend on it"), &
    key_t("COMM", "combine_messages", is_choice, "YES", "", "YES NO", "all that goes to one rank in one message"), &
    key_t("COMM", "fft", is_choice, "MODEL", "", "MODEL TIME SLAB PENCIL 1D 2D QCDOC COLUMNS", &
          "scheme of the FFT of PME; MODEL and TIME choose, by a model or by trials"), &
    key_t("COMM", "fft_subset", is_choice, "FULL", "", "FULL COMPRESSED EXPANDED", &
          "for fft = 1D, QCDOC, COLUMNS: lines on all ranks, every second, or as many as there are lines along an axis"), &
    key_t("COMM", "fft_chunks", is_integer, "0", "", "0", &
          "parts of the FFT of which one travels while another is transformed; 0 = 2 for QCDOC, tried for TIME, else 1"), &
    key_t("COMM", "fft_by_node", is_choice, "NO", "", "YES NO", &
          "send what all ranks of a node have for another node in the FFT as one message"), &
    key_t("COMM", "overlap", is_choice, "NO", "", "YES NO", &
          "compute what needs no message while messages travel; changes only the rounding of sums"), &
    key_t("COMM", "pme_ranks", is_integer, "0", "", "0", &
          "so many of the ranks, the last ones, compute nothing but reciprocal space; the others have the domains"), &
    key_t("COMM", "torus", is_text, "", "nodes", "", &
          "the machine's torus, e.g. 4x4x2 (filled along the first axis first): neighbouring domains on near nodes"), &
    key_t("COMM", "planner", is_choice, "TIME", "", "TIME MODEL", &
          "for transport = AUTO: try all at the start of a run, or take PERSISTENT")]

  !> Every key there is; in two parts, since a statement has 255 lines at most.
  type(key_t), parameter :: keys(*) = [first_keys, last_keys]

  !> Keys outside [INPUT], [OUTPUT], [COMM] and [HEALTH] that leave the trajectory as it is: a run may go on with other values;
  !> nsteps only where neither temperature nor restraints change linearly over the run.
  character(len=20), parameter :: free_keys(*) = [character(len=20) :: "nsteps", "rstout_period", "save_memory", &
                                                  "load_balance"]
  !> Keys of [OUTPUT] that a run may not go on without: what a trajectory file holds.
  character(len=20), parameter :: bound_keys(*) = [character(len=20) :: "dcd_atoms"]


end module control_keys
