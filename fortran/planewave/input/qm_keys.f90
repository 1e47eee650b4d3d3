!> The keys of the control file of chromaqm. This one table drives reading, checking, defaults and help.
module qm_keys
  use base_control_keys, only: is_choice, is_integer, is_real, is_text, key_t
  implicit none
  private
  public :: keys

  !> Every key there is.
  type(key_t), parameter :: keys(*) = [ &
    key_t("INPUT", "atomfile", is_text, "", "", "", "atoms: an XYZ file (number of atoms, comment, element x y z)"), &
    key_t("INPUT", "length_unit", is_choice, "ANGSTROM", "", "ANGSTROM BOHR", "unit of atomfile and of the box"), &
    key_t("INPUT", "upf#", is_text, "", "", "", &
          "element and norm-conserving UPF file (version 2) in place of its GTH potential"), &
    key_t("INPUT", "gth#", is_text, "", "", "", &
          "element and charge of the ion, where there are several GTH potentials; default: the smallest"), &
    key_t("INPUT", "gthfile", is_text, "", "", "", "table of GTH potentials in place of the built-in one"), &
    key_t("INPUT", "restartfile", is_text, "", "", "", &
          "go on from these files of a run of dynamics, () stands for the rank; nsteps more steps are done", "[DYNAMICS]"), &
    key_t("INPUT", "statesfile", is_text, "", "", "", &
          "begin from the states of these restart files, () stands for the rank; atoms may have moved", &
          "!restartfile"), &
    key_t("OUTPUT", "resultfile", is_text, "", "", "", "energies by term, forces and positions as JSON, atomic units"), &
    key_t("OUTPUT", "restartfile", is_text, "", "", "", &
          "files to go on from, () = rank; at the minimum, or the end of dynamics and on SIGTERM, SIGUSR1, SIGINT"), &
    key_t("OUTPUT", "restart_period", is_integer, "0", "steps", "0 1e9", &
          "of dynamics between restart files too; 0 = not", "[DYNAMICS] restartfile"), &
    key_t("OUTPUT", "xyzfile", is_text, "", "", "", "trajectory: XYZ in angstrom, energies in the comment", "[DYNAMICS]"), &
    key_t("OUTPUT", "period", is_integer, "1", "steps", "1 1e9", &
          "of dynamics between lines of the log and frames", "[DYNAMICS]"), &
    key_t("SYSTEM", "box", is_text, "", "length_unit", "", "edges of the periodic box: one number or three"), &
    key_t("SYSTEM", "boundary", is_choice, "PERIODIC", "", "PERIODIC CLUSTER", &
          "the box repeats, or holds a cluster alone that fills at most half of each edge"), &
    key_t("SYSTEM", "charge", is_integer, "0", "e", "-1000 1000", &
          "of the whole system; a background makes a periodic box neutral"), &
    key_t("ELECTRONS", "cutoff", is_real, "70.0", "Ry", "1.0 1.0e6", "largest kinetic energy of a plane wave of the states"), &
    key_t("ELECTRONS", "functional", is_choice, "BLYP", "", "PZ PW92 PADE BLYP PBE", "exchange and correlation"), &
    key_t("ELECTRONS", "xc_cut", is_choice, "SMOOTH", "", "SMOOTH STEP", &
          "gradient terms fade out at low density, or are dropped at once where pw.x drops them"), &
    key_t("ELECTRONS", "memory", is_integer, "2048", "MB", "0 1e9", &
          "a rank may take to keep states on the grid; beyond, they are transformed twice"), &
    key_t("ELECTRONS", "local_sums", is_choice, "DIRECT", "", "DIRECT SPLINE", &
          "structure factors and what comes from them, atom by atom or by Euler exponential splines"), &
    key_t("ELECTRONS", "nonlocal_sums", is_choice, "DIRECT", "", "DIRECT SPLINE", &
          "projections of states on atoms, likewise"), &
    key_t("ELECTRONS", "spline_order", is_integer, "12", "", "4 24", &
          "even; 6 errs by 1e-3 Ha an oxygen, 12 by 1e-5", "local_sums=SPLINE|nonlocal_sums=SPLINE"), &
    key_t("ELECTRONS", "spline_scale", is_real, "1.4", "", "1.0 10.0", &
          "points of the mesh of splines along an edge, in units of those that the waves need", &
          "local_sums=SPLINE|nonlocal_sums=SPLINE"), &
    key_t("ELECTRONS", "mapfile", is_text, "", "", "", &
          "which rank has which plane of which pair of states (chromabuild qm map), or which object (with --objects)"), &
    key_t("ELECTRONS", "iseed", is_integer, "314159", "", "0", "seed of the states to begin with, and of velocities"), &
    key_t("PARALLEL", "layer", is_choice, "STATES", "", "STATES OBJECTS", &
          "whole states, phase after phase, or fine objects that wait for messages; the same energies"), &
    key_t("PARALLEL", "gexpandfact", is_real, "1.0", "", "1e-3 1e3", &
          "sets of waves of a state, in planes of kx of half their sphere", "layer=OBJECTS"), &
    key_t("PARALLEL", "gexpandfactrho", is_real, "1.0", "", "1e-3 1e3", "the same of the density", "layer=OBJECTS"), &
    key_t("PARALLEL", "sgrainsize", is_integer, "0", "states", "0 1e9", &
          "in a block of a pair calculator; even, a divisor of all; 0 = the largest up to 32", "layer=OBJECTS"), &
    key_t("PARALLEL", "orthograinsize", is_integer, "0", "states", "0 1e9", &
          "in a tile of ortho; even, a divisor of sgrainsize; 0 = sgrainsize", "layer=OBJECTS"), &
    key_t("PARALLEL", "numchunks", is_integer, "1", "", "1 1e9", &
          "parts of a set of waves for pair calculators", "layer=OBJECTS"), &
    key_t("PARALLEL", "rhorsubplanes", is_integer, "1", "", "1 1e9", "parts of a plane of the density", "layer=OBJECTS"), &
    key_t("MINIMIZE", "method", is_choice, "CG", "", "CG SD", &
          "conjugate gradients, or steepest descent; dynamics at the minimum always has the first"), &
    key_t("MINIMIZE", "nsteps", is_integer, "200", "", "0 1e9", "most steps"), &
    key_t("MINIMIZE", "tolerance", is_real, "1.0e-10", "Ha", "1e-16 1e6", "end when about so much energy can still be gained"), &
    key_t("MINIMIZE", "forces", is_choice, "YES", "", "YES NO", "compute the forces on the ions"), &
    key_t("DYNAMICS", "method", is_choice, "RATTLE", "", "RATTLE NONORTHOGONAL BORN_OPPENHEIMER", &
          "states move too, kept orthonormal by constraints or free to overlap; or are minimised at each step"), &
    key_t("DYNAMICS", "nsteps", is_integer, "100", "", "0 1e9", "number of steps"), &
    key_t("DYNAMICS", "timestep", is_real, "5.0", "hbar/Ha", "1e-6 1e4", "time step; 1 hbar/Ha = 0.0241888 fs"), &
    key_t("DYNAMICS", "electron_mass", is_real, "400.0", "m_e", "1e-6 1e9", &
          "fictitious mass of the long waves", "method=RATTLE|method=NONORTHOGONAL"), &
    key_t("DYNAMICS", "mass_cutoff", is_real, "2.5", "Ry", "1e-6 1e6", &
          "waves of larger kinetic energy are heavier in proportion to it", "method=RATTLE|method=NONORTHOGONAL"), &
    key_t("DYNAMICS", "temperature", is_real, "0.0", "K", "0 1e6", &
          "of drawn velocities of the ions, and of their thermostat; 0 = at rest"), &
    key_t("DYNAMICS", "thermostat", is_choice, "NONE", "", "NONE NOSE_HOOVER", &
          "of the ions: a chain of Nose and Hoover", "temperature"), &
    key_t("DYNAMICS", "ion_period", is_real, "20.0", "fs", "1e-3 1e6", &
          "of the oscillations of that chain", "thermostat=NOSE_HOOVER"), &
    key_t("DYNAMICS", "state_energy", is_real, "0.0", "Ha", "0 1e3", &
          "kinetic energy of the states that a chain of their own keeps; 0 = no such chain", &
          "method=RATTLE|method=NONORTHOGONAL"), &
    key_t("DYNAMICS", "state_period", is_real, "3.0", "fs", "1e-3 1e6", "of the oscillations of that chain", "state_energy"), &
    key_t("DYNAMICS", "chain_links", is_integer, "4", "", "1 100", "links of each chain", "thermostat=NOSE_HOOVER|state_energy"), &
    key_t("DYNAMICS", "overlap_tolerance", is_real, "0.01", "", "1e-12 1.0", &
          "largest overlap of two states before they are made orthonormal", "method=NONORTHOGONAL")]

end module qm_keys
