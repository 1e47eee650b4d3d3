!> Sections and keys of GENESIS (spdyn and atdyn 2.1, user guide and `-h ctrl_all`) that are not in the table of module
!> control_keys: those that have no effect here, which are accepted and told in the log, files that `chromamd import` reads,
!> and those that stand for what this program lacks, which are refused with what they do and what to use.
module genesis_keys
  use base_control_keys, only: upper_case
  use base_text, only: lower_case
  implicit none
  private
  public :: genesis_key_t, genesis_keys_table, same_keys, other_keys, genesis_word_t, genesis_words, genesis_position, &
            is_harmless, class_name, about_word

  integer, parameter, public :: is_ignored = 1, is_imported = 2, is_missing = 3, is_other = 4
  character(len=8), parameter :: class_name(4) = [character(len=8) :: "ignored", "imported", "missing", "other"]

  type :: genesis_key_t
    !> A name of `*` stands for the whole section.
    character(len=12) :: section
    character(len=26) :: name
    integer :: class
    !> Values, separated by blanks, with which a missing key asks for nothing that is lacking.
    character(len=24) :: harmless
    !> What the key does; of a missing one also what to use instead, if there is anything.
    character(len=110) :: about
  end type genesis_key_t

  type(genesis_key_t), parameter :: genesis_keys_table(*) = [ &
    genesis_key_t("INPUT", "topfile", is_imported, "", "residues of CHARMM"), &
    genesis_key_t("INPUT", "parfile", is_imported, "", "parameters of CHARMM"), &
    genesis_key_t("INPUT", "strfile", is_imported, "", "residues and parameters of CHARMM"), &
    genesis_key_t("INPUT", "psffile", is_imported, "", "structure of CHARMM"), &
    genesis_key_t("INPUT", "pdbfile", is_imported, "", "coordinates"), &
    genesis_key_t("INPUT", "crdfile", is_imported, "", "coordinates of CHARMM"), &
    genesis_key_t("INPUT", "prmtopfile", is_imported, "", "structure and parameters of AMBER"), &
    genesis_key_t("INPUT", "ambcrdfile", is_imported, "", "coordinates of AMBER"), &
    genesis_key_t("INPUT", "ambreffile", is_imported, "", "reference coordinates of AMBER, as reffile"), &
    genesis_key_t("INPUT", "grotopfile", is_imported, "", "structure and parameters of GROMACS"), &
    genesis_key_t("INPUT", "grocrdfile", is_imported, "", "coordinates of GROMACS"), &
    genesis_key_t("INPUT", "groreffile", is_imported, "", "reference coordinates of GROMACS, as reffile"), &
    genesis_key_t("INPUT", "selfile", is_ignored, "", "list of groups for parallel input"), &
    genesis_key_t("INPUT", "localresfile", is_imported, "", &
                  "restraints of bonds, angles and dihedrals, which become terms: UREY-BRADLEY, ANGLE, IMPROPER in the log"), &
    genesis_key_t("INPUT", "modefile", is_missing, "", "gives principal components for restraints of kind PC"), &
    genesis_key_t("INPUT", "fitfile", is_missing, "", "gives a structure to fit on: use RMSD restraints, which fit on reffile"), &
    genesis_key_t("INPUT", "eef1file", is_missing, "", &
                  "gives parameters of the implicit solvent EEF1: use electrostatic = DEBYE"), &
    genesis_key_t("INPUT", "tablefile", is_missing, "", "gives a table of an implicit solvent: use electrostatic = DEBYE"), &
    genesis_key_t("INPUT", "gprfile", is_missing, "", "gives a Go model: use a force field of all atoms"), &
    genesis_key_t("INPUT", "morphfile", is_missing, "", "gives distances for morphing"), &
    genesis_key_t("INPUT", "minfofile", is_missing, "", "gives vibrational coordinates"), &
    genesis_key_t("INPUT", "spotfile", is_missing, "", &
                  "gives spherical potentials: give center1, radius1 and the like in [BOUNDARY]"), &
    genesis_key_t("OUTPUT", "pdbfile", is_missing, "", "writes a pdb: make it from dcdfile or rstfile after the run"), &
    genesis_key_t("OUTPUT", "dcdvelfile", is_missing, "", "writes a trajectory of velocities: rstfile holds them"), &
    genesis_key_t("OUTPUT", "selfile", is_ignored, "", "list of groups for parallel input"), &
    genesis_key_t("OUTPUT", "enefile", is_missing, "", "writes energies of gREST replicas"), &
    genesis_key_t("OUTPUT", "rpathfile", is_missing, "", "belongs to the string method"), &
    genesis_key_t("OUTPUT", "rpathlogfile", is_missing, "", "belongs to the string method"), &
    genesis_key_t("OUTPUT", "mfrcfile", is_missing, "", "belongs to the string method"), &
    genesis_key_t("OUTPUT", "fepfile", is_missing, "", "belongs to free-energy perturbation"), &
    genesis_key_t("ENERGY", "pme_scheme", is_ignored, "", "scheme of the FFT; here fft in [COMM]"), &
    genesis_key_t("ENERGY", "nonbond_kernel", is_ignored, "", "loop over pairs; here the fastest of the processor"), &
    genesis_key_t("ENERGY", "output_style", is_ignored, "", "form of the log"), &
    genesis_key_t("ENERGY", "water_model", is_ignored, "", "residue of waters; here they are known by their bonds"), &
    genesis_key_t("ENERGY", "contact_check", is_ignored, "", "guard against clashes; here forces of clashes are always finite"), &
    genesis_key_t("ENERGY", "nonb_limiter", is_ignored, "", "guard against clashes; here forces of clashes are always finite"), &
    genesis_key_t("ENERGY", "minimum_contact", is_ignored, "", "distance of the guard against clashes"), &
    genesis_key_t("ENERGY", "err_minimum_contact", is_ignored, "", "distance of the guard against clashes"), &
    genesis_key_t("ENERGY", "structure_check", is_ignored, "", "search for rings that bonds pierce"), &
    genesis_key_t("ENERGY", "cmap_pspline", is_ignored, "", "kind of spline of CMAP; here always periodic"), &
    genesis_key_t("ENERGY", "dmin_size_cg", is_ignored, "", "size of domains of coarse models"), &
    genesis_key_t("ENERGY", "scale_pairlist_fugaku", is_ignored, "", "memory of pair lists"), &
    genesis_key_t("ENERGY", "scale_pairlist_generic", is_ignored, "", "memory of pair lists"), &
    genesis_key_t("ENERGY", "pme_multiple", is_ignored, "", "processes of reciprocal space; here pme_ranks in [COMM]"), &
    genesis_key_t("ENERGY", "pme_mul_ratio", is_ignored, "", "processes of reciprocal space; here pme_ranks in [COMM]"), &
    genesis_key_t("ENERGY", "dielec_const", is_missing, "1 1.0 1.00", &
                  "scales all charges: use electrostatic = DEBYE with dielectric, or scale the charges of the topology"), &
    genesis_key_t("ENERGY", "dispersion_pme", is_missing, "NO no No FALSE false", &
                  "sums the dispersion by Ewald's method: give vdw = PME"), &
    genesis_key_t("ENERGY", "efield_x", is_missing, "0 0.0 0.00", "applies an electric field"), &
    genesis_key_t("ENERGY", "efield_y", is_missing, "0 0.0 0.00", "applies an electric field"), &
    genesis_key_t("ENERGY", "efield_z", is_missing, "0 0.0 0.00", "applies an electric field"), &
    genesis_key_t("ENERGY", "efield_virial", is_ignored, "", "belongs to an electric field"), &
    genesis_key_t("ENERGY", "efield_normal", is_ignored, "", "belongs to an electric field"), &
    genesis_key_t("ENERGY", "implicit_solvent", is_missing, "NONE none None NO", &
                  "replaces water by GBSA or EEF1: use electrostatic = DEBYE"), &
    genesis_key_t("MINIMIZE", "nbupdate_period", is_ignored, "", "steps between pair lists; here made when atoms moved"), &
    genesis_key_t("MINIMIZE", "verbose", is_ignored, "", "more lines in the log"), &
    genesis_key_t("MINIMIZE", "check_structure", is_ignored, "", "search for rings that bonds pierce"), &
    genesis_key_t("MINIMIZE", "exclude_ring_grpid", is_ignored, "", "belongs to fix_ring_error"), &
    genesis_key_t("MINIMIZE", "exclude_chiral_grpid", is_ignored, "", "belongs to fix_chirality_error"), &
    genesis_key_t("MINIMIZE", "fix_ring_error", is_missing, "NO no No FALSE false", &
                  "frees rings that bonds pierce: mend the coordinates before"), &
    genesis_key_t("MINIMIZE", "fix_chirality_error", is_missing, "NO no No FALSE false", &
                  "inverts centres of wrong chirality: mend the coordinates before"), &
    genesis_key_t("MINIMIZE", "tol_rmsg", is_ignored, "", "gradient at which to stop; here nsteps are done"), &
    genesis_key_t("MINIMIZE", "tol_maxg", is_ignored, "", "gradient at which to stop; here nsteps are done"), &
    genesis_key_t("MINIMIZE", "ncorrection", is_ignored, "", "memory of LBFGS"), &
    genesis_key_t("MINIMIZE", "lbfgs_bnd", is_ignored, "", "bound of moves of LBFGS; here displacement_max"), &
    genesis_key_t("MINIMIZE", "lbfgs_bnd_maxmove", is_ignored, "", "bound of moves of LBFGS; here displacement_max"), &
    genesis_key_t("MINIMIZE", "lbfgs_bnd_qmonly", is_ignored, "", "belongs to QM/MM"), &
    genesis_key_t("DYNAMICS", "verbose", is_ignored, "", "more lines in the log"), &
    genesis_key_t("DYNAMICS", "velout_period", is_missing, "0", "writes a trajectory of velocities: rstfile holds them"), &
    genesis_key_t("DYNAMICS", "target_md", is_missing, "NO no No FALSE false", &
                  "pulls to a structure by its RMSD: use a RMSD restraint with constant_end"), &
    genesis_key_t("DYNAMICS", "steered_md", is_missing, "NO no No FALSE false", &
                  "moves the reference of a restraint: use several runs with other references"), &
    genesis_key_t("DYNAMICS", "initial_rmsd", is_ignored, "", "belongs to targeted and steered dynamics"), &
    genesis_key_t("DYNAMICS", "final_rmsd", is_ignored, "", "belongs to targeted and steered dynamics"), &
    genesis_key_t("DYNAMICS", "initial_value", is_ignored, "", "belongs to targeted and steered dynamics"), &
    genesis_key_t("DYNAMICS", "final_value", is_ignored, "", "belongs to targeted and steered dynamics"), &
    genesis_key_t("DYNAMICS", "hmr_ratio_xh2", is_missing, "0 0.0", "factor of masses of CH2 and NH2: give hmr_ratio"), &
    genesis_key_t("DYNAMICS", "hmr_ratio_xh3", is_missing, "0 0.0", "factor of masses of CH3 and NH3: give hmr_ratio"), &
    genesis_key_t("DYNAMICS", "hmr_ratio_ring", is_missing, "0 0.0", "factor of masses of hydrogens of rings: give hmr_ratio"), &
    genesis_key_t("DYNAMICS", "lbupdate_period", is_ignored, "", "steps between balances of load; here load_balance"), &
    genesis_key_t("DYNAMICS", "multi_interval", is_ignored, "", "belongs to older multiple time steps"), &
    genesis_key_t("DYNAMICS", "xi_respa", is_ignored, "", "belongs to older multiple time steps"), &
    genesis_key_t("DYNAMICS", "xo_respa", is_ignored, "", "belongs to older multiple time steps"), &
    genesis_key_t("DYNAMICS", "esp_mm", is_ignored, "", "belongs to QM/MM"), &
    genesis_key_t("CONSTRAINTS", "water_model", is_ignored, "", "residue of waters; here they are known by their bonds"), &
    genesis_key_t("CONSTRAINTS", "hydrogen_type", is_ignored, "", "how hydrogens are known; here by their mass"), &
    genesis_key_t("CONSTRAINTS", "hydrogen_mass_upper_bound", is_ignored, "", "how hydrogens are known"), &
    genesis_key_t("CONSTRAINTS", "fast_bond", is_ignored, "", "LINCS; here SHAKE"), &
    genesis_key_t("CONSTRAINTS", "lincs_iteration", is_ignored, "", "belongs to LINCS"), &
    genesis_key_t("CONSTRAINTS", "lincs_order", is_ignored, "", "belongs to LINCS"), &
    genesis_key_t("CONSTRAINTS", "noshake_index", is_missing, "", "leaves bonds of a group flexible: give rigid_bond = NO"), &
    genesis_key_t("ENSEMBLE", "gamma", is_missing, "0 0.0", "surface tension of NPgT: use NPT with isotropy = SEMI-ISO, or NPAT"), &
    genesis_key_t("BOUNDARY", "cell_size_buffer", is_ignored, "", "size of cells"), &
    genesis_key_t("BOUNDARY", "num_cells_x", is_ignored, "", "number of cells"), &
    genesis_key_t("BOUNDARY", "num_cells_y", is_ignored, "", "number of cells"), &
    genesis_key_t("BOUNDARY", "num_cells_z", is_ignored, "", "number of cells"), &
    genesis_key_t("BOUNDARY", "domain_x_max", is_ignored, "", "domains of coarse models"), &
    genesis_key_t("BOUNDARY", "domain_y_max", is_ignored, "", "domains of coarse models"), &
    genesis_key_t("BOUNDARY", "domain_z_max", is_ignored, "", "domains of coarse models"), &
    genesis_key_t("BOUNDARY", "pio_domain_x", is_ignored, "", "domains of parallel input"), &
    genesis_key_t("BOUNDARY", "pio_domain_y", is_ignored, "", "domains of parallel input"), &
    genesis_key_t("BOUNDARY", "pio_domain_z", is_ignored, "", "domains of parallel input"), &
    genesis_key_t("BOUNDARY", "pairlist_grid", is_ignored, "", "size of cells"), &
    genesis_key_t("BOUNDARY", "shift_origin", is_ignored, "", "where the box lies"), &
    genesis_key_t("BOUNDARY", "origin_x", is_ignored, "", "where the box lies"), &
    genesis_key_t("BOUNDARY", "origin_y", is_ignored, "", "where the box lies"), &
    genesis_key_t("BOUNDARY", "origin_z", is_ignored, "", "where the box lies"), &
    genesis_key_t("BOUNDARY", "duplicate_x", is_missing, "1", "repeats the system along x: repeat it in its files"), &
    genesis_key_t("BOUNDARY", "duplicate_y", is_missing, "1", "repeats the system along y: repeat it in its files"), &
    genesis_key_t("BOUNDARY", "duplicate_z", is_missing, "1", "repeats the system along z: repeat it in its files"), &
    genesis_key_t("BOUNDARY", "restart", is_ignored, "", "belongs to spherical_pot; give the same keys in each run"), &
    genesis_key_t("SELECTION", "mole_name#", is_missing, "", &
                  "names a range of residues for molname: use segid and rno in the groups"), &
    genesis_key_t("RESTRAINTS", "exponent#", is_missing, "2", "power of the restraint: chromamd has 2 alone"), &
    genesis_key_t("RESTRAINTS", "exponent_dist#", is_missing, "1", "powers of distances that are added up"), &
    genesis_key_t("RESTRAINTS", "weight_dist#", is_missing, "1 1.0", "weights of distances that are added up"), &
    genesis_key_t("RESTRAINTS", "mode#", is_missing, "", "number of a principal component"), &
    genesis_key_t("RESTRAINTS", "vector#", is_missing, "", "belongs to restraints of kind PC"), &
    genesis_key_t("RESTRAINTS", "target_function", is_missing, "0", "restraint of targeted dynamics"), &
    genesis_key_t("RESTRAINTS", "verbose", is_ignored, "", "more lines in the log"), &
    genesis_key_t("RESTRAINTS", "pressure_position", is_ignored, "", &
                  "whether POSI restraints count in the pressure; here they do"), &
    genesis_key_t("RESTRAINTS", "pressure_rmsd", is_ignored, "", &
                  "whether RMSD restraints count in the pressure; here they do"), &
    genesis_key_t("FITTING", "fitting_method", is_missing, "TR+ROT tr+rot", &
                  "how structures are laid on each other: chromamd has TR+ROT alone"), &
    genesis_key_t("FITTING", "fitting_atom", is_ignored, "", "group to fit; here that of the restraint"), &
    genesis_key_t("FITTING", "mass_weight", is_ignored, "", "weights of the fit; here those of RMSD or RMSDMASS"), &
    genesis_key_t("FITTING", "force_no_fitting", is_missing, "NO no No FALSE false", "measures the RMSD without a fit"), &
    genesis_key_t("FITTING", "zrot_ngrid", is_ignored, "", "belongs to other methods of fitting"), &
    genesis_key_t("FITTING", "zrot_zsize", is_ignored, "", "belongs to other methods of fitting"), &
    genesis_key_t("REMD", "analysis_grest", is_missing, "NO no No FALSE false", &
                  "writes energies of all solute temperatures"), &
    genesis_key_t("RPATH", "*", is_missing, "", "finds paths by the string method"), &
    genesis_key_t("ALCHEMY", "*", is_missing, "", "computes free energies by perturbation"), &
    genesis_key_t("EXPERIMENTS", "*", is_missing, "", "fits structures to density maps"), &
    genesis_key_t("QMMM", "*", is_missing, "", "treats atoms by quantum chemistry"), &
    genesis_key_t("VIBRATION", "*", is_missing, "", "computes vibrations"), &
    genesis_key_t("MORPH", "*", is_missing, "", "morphs structures")]

  !> Keys of module control_keys that GENESIS has with the same meaning, as "SECTION name".
  character(len=32), parameter :: same_keys(*) = [character(len=32) :: &
    "OUTPUT logfile", "OUTPUT dcdfile", "OUTPUT remfile", &
    "ENERGY forcefield", "ENERGY electrostatic", "ENERGY switchdist", "ENERGY cutoffdist", "ENERGY vdw_force_switch", &
    "ENERGY vdw_shift", "ENERGY table_order", "ENERGY table_density", "ENERGY pme_alpha", "ENERGY pme_alpha_tol", &
    "ENERGY pme_nspline", "ENERGY pme_ngrid_x", "ENERGY pme_ngrid_y", "ENERGY pme_ngrid_z", "ENERGY pme_max_spacing", &
    "ENERGY dispersion_corr", &
    "MINIMIZE method", "MINIMIZE nsteps", "MINIMIZE eneout_period", "MINIMIZE crdout_period", "MINIMIZE rstout_period", &
    "MINIMIZE force_scale_init", "MINIMIZE force_scale_max", &
    "DYNAMICS integrator", "DYNAMICS nsteps", "DYNAMICS timestep", "DYNAMICS eneout_period", "DYNAMICS crdout_period", &
    "DYNAMICS rstout_period", "DYNAMICS stoptr_period", "DYNAMICS thermostat_period", "DYNAMICS barostat_period", &
    "DYNAMICS elec_long_period", "DYNAMICS hydrogen_mr", "DYNAMICS hmr_target", "DYNAMICS hmr_ratio", &
    "DYNAMICS hmr_ratio_xh1", "DYNAMICS annealing", "DYNAMICS anneal_period", "DYNAMICS dtemperature", &
    "DYNAMICS initial_time", &
    "CONSTRAINTS rigid_bond", "CONSTRAINTS fast_water", "CONSTRAINTS shake_iteration", "CONSTRAINTS shake_tolerance", &
    "ENSEMBLE ensemble", "ENSEMBLE tpcontrol", "ENSEMBLE temperature", "ENSEMBLE tau_t", "ENSEMBLE gamma_t", &
    "ENSEMBLE nhchain", "ENSEMBLE nhmultistep", "ENSEMBLE pressure", "ENSEMBLE tau_p", "ENSEMBLE gamma_p", &
    "ENSEMBLE compressibility", "ENSEMBLE isotropy", &
    "SELECTION group#", &
    "RESTRAINTS nfunctions", "RESTRAINTS function#", "RESTRAINTS constant#", "RESTRAINTS reference#", &
    "RESTRAINTS select_index#", "RESTRAINTS direction#", &
    "REMD dimension", "REMD exchange_period", "REMD iseed", "REMD type#", "REMD nreplica#", "REMD parameters#", &
    "REMD cyclic_params#", "REMD rest_function#", "REMD select_index#", "REMD param_type#", &
    "BOUNDARY constant", "BOUNDARY exponent", "BOUNDARY nindex", "BOUNDARY nfunctions", "BOUNDARY center#", &
    "BOUNDARY radius#", "BOUNDARY fixatom", "BOUNDARY fix_layer", "BOUNDARY type", &
    "BOUNDARY domain_x", "BOUNDARY domain_y", "BOUNDARY domain_z"]

  !> Those that GENESIS has with another meaning; the class is that of no other table.
  type(genesis_key_t), parameter :: other_keys(*) = [ &
    genesis_key_t("INPUT", "rstfile", is_other, "", &
                  "of GENESIS, or a set of chromamd's, one file a rank: a.rst stands for a_().rst"), &
    genesis_key_t("INPUT", "reffile", is_other, "", &
                  "a pdb beside psffile and the like, which is imported; else bricks"), &
    genesis_key_t("OUTPUT", "rstfile", is_other, "", &
                  "a set of files, one a rank: a.rst stands for a_().rst beside psffile and the like"), &
    genesis_key_t("ENERGY", "pairlistdist", is_other, "", &
                  "the least reach of the lists, which follow from how far atoms move"), &
    genesis_key_t("ENERGY", "table", is_other, "", &
                  "NO by default: formulas instead of tables"), &
    genesis_key_t("ENERGY", "vacuum", is_other, "", &
                  "goes with type = NOBC only"), &
    genesis_key_t("DYNAMICS", "nbupdate_period", is_other, "", &
                  "lists are made anew when atoms have moved, and this often at least"), &
    genesis_key_t("DYNAMICS", "iseed", is_other, "", &
                  "-1 is a fixed number and not the clock"), &
    genesis_key_t("MINIMIZE", "fixatm_select_index", is_other, "", &
                  "as there, but energies among fixed atoms stay in the sums"), &
    genesis_key_t("DYNAMICS", "fixatm_select_index", is_other, "", &
                  "as in [MINIMIZE]"), &
    genesis_key_t("CONSTRAINTS", "fixatm_select_index", is_other, "", &
                  "as in [MINIMIZE], for dynamics"), &
    genesis_key_t("ENSEMBLE", "group_tp", is_other, "", &
                  "of the thermostat; pressure and barostat are always those of groups"), &
    genesis_key_t("BOUNDARY", "spherical_pot", is_other, "", &
                  "its energy is in RESTRAINT_TOTAL; an atom belongs to the sphere whose surface is nearest"), &
    genesis_key_t("BOUNDARY", "center_select_index#", is_other, "", &
                  "atoms where shardfile, or the imported coordinates, have them; else rstfile"), &
    genesis_key_t("BOUNDARY", "box_size_x", is_other, "", &
                  "the box where coordinates have none; else it is compared with the input"), &
    genesis_key_t("BOUNDARY", "box_size_y", is_other, "", &
                  "as box_size_x"), &
    genesis_key_t("BOUNDARY", "box_size_z", is_other, "", &
                  "as box_size_x")]

  !> Words of GENESIS for keys of module control_keys that stand for what this program lacks.
  type :: genesis_word_t
    character(len=12) :: section
    character(len=12) :: name
    character(len=12) :: word
    !> What it is, and what to use instead, if there is anything.
    character(len=90) :: about
  end type genesis_word_t

  character(len=*), parameter :: coarse = "is a coarse model: use a force field of all atoms"
  type(genesis_word_t), parameter :: genesis_words(*) = [ &
    genesis_word_t("ENERGY", "forcefield", "CHARMM19", &
                   "scales charges of 1-4 pairs, which the import does not read: use CHARMM and its files"), &
    genesis_word_t("ENERGY", "forcefield", "GROMARTINI", coarse), &
    genesis_word_t("ENERGY", "forcefield", "AAGO", coarse), &
    genesis_word_t("ENERGY", "forcefield", "CAGO", coarse), &
    genesis_word_t("ENERGY", "forcefield", "KBGO", coarse), &
    genesis_word_t("ENERGY", "forcefield", "RESIDCG", coarse), &
    genesis_word_t("ENERGY", "forcefield", "SOFT", coarse), &
    genesis_word_t("REMD", "type#", "GAMMA", "exchanges surface tensions"), &
    genesis_word_t("REMD", "type#", "ALCHEMY", "exchanges stages of free-energy perturbation"), &
    genesis_word_t("ENSEMBLE", "ensemble", "NPGT", &
                   "keeps the surface tension: use NPT with isotropy = SEMI-ISO, or NPAT"), &
    genesis_word_t("ENSEMBLE", "tpcontrol", "NOSE-HOOVER", "is a chain of one link: use NHC"), &
    genesis_word_t("ENSEMBLE", "tpcontrol", "GAUSS", "keeps the kinetic energy fixed: use BUSSI"), &
    genesis_word_t("ENSEMBLE", "tpcontrol", "EVANS", "keeps the kinetic energy fixed: use BUSSI"), &
    genesis_word_t("ENSEMBLE", "tpcontrol", "ANDERSEN", "draws velocities: use LANGEVIN"), &
    genesis_word_t("RESTRAINTS", "function#", "PC", "restrains a principal component: use RMSD"), &
    genesis_word_t("RESTRAINTS", "function#", "PCCOM", "restrains a principal component: use RMSD"), &
    genesis_word_t("RESTRAINTS", "function#", "RG", "restrains the radius of gyration: use RMSD"), &
    genesis_word_t("RESTRAINTS", "function#", "RGMASS", "restrains the radius of gyration: use RMSDMASS"), &
    genesis_word_t("RESTRAINTS", "function#", "RGWOMASS", "restrains the radius of gyration: use RMSD"), &
    genesis_word_t("RESTRAINTS", "function#", "EM", "fits to a density map")]

contains

  !> Index of a key in the table, 0 = there is none; keys that end with a number as in control_keys.
  pure integer function genesis_position(section, name) result(place)
    character(len=*), intent(in) :: section, name
    character(len=len(name) + 1) :: general
    integer :: digits
    general = name
    digits = verify(name, "0123456789", back=.true.) + 1
    if (digits > 1 .and. digits <= len_trim(name)) general = name(:digits - 1)//"#"
    do place = size(genesis_keys_table), 1, -1
      if (genesis_keys_table(place)%section /= upper_case(section)) cycle
      if (any(genesis_keys_table(place)%name == [character(len=27) :: "*", lower_case(name), lower_case(general)])) return
    end do
  end function genesis_position

  !> What a word of GENESIS stands for, empty where it is none.
  pure function about_word(section, name, word) result(about)
    character(len=*), intent(in) :: section, name, word
    character(len=:), allocatable :: about
    integer :: k
    about = ""
    do k = 1, size(genesis_words)
      if (genesis_words(k)%section == section .and. genesis_words(k)%name == name .and. &
          genesis_words(k)%word == upper_case(word)) about = trim(genesis_words(k)%about)
    end do
  end function about_word

  !> Whether a missing key with this value asks for nothing.
  pure logical function is_harmless(key, value)
    type(genesis_key_t), intent(in) :: key
    character(len=*), intent(in) :: value
    is_harmless = value /= "" .and. index(" "//trim(key%harmless)//" ", " "//trim(value)//" ") > 0
  end function is_harmless

end module genesis_keys
