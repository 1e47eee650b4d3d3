!> The control file of chromaqm as typed values: read once, checked, and not looked up later.
module qm_settings
  use base_control_conditions, only: refuse_idle_keys
  use base_control_file, only: control_file_t
  use base_kinds, only: int64, real64
  use base_machine_memory, only: node_memory, process_memory
  use base_error, only: error_t
  use base_text, only: decimal_text, to_text
  use atom_file, only: read_atoms, standard_mass
  use atomic_units, only: bohr, dalton, time_unit
  use euler_spline, only: spline_settings_t
  use gth_reader, only: find_gth
  use memory_need, only: bytes_of_rank
  use ions, only: ions_t, shortest_distance
  use object_map, only: grain_t
  use pseudopotential, only: pseudopotential_t
  use qm_keys, only: keys
  use state_planes, only: read_state_planes, state_planes_t
  use upf_reader, only: read_upf
  use wave_sphere, only: grid_size
  use xc_functional, only: xc_names, xc_t
  implicit none
  private
  public :: qm_settings_t, dynamics_settings_t, read_qm_settings, nonorthogonal, born_oppenheimer

  type :: dynamics_settings_t
    logical :: is_wanted = .false., has_thermostat = .false.
    !> Number in the list of key `method`; links of a chain of a thermostat.
    integer :: method = 1, n_links = 4
    !> Steps, steps between lines of the log, steps between restart files (0: at the end alone).
    integer :: n_steps = 0, period = 1, restart_period = 0
    !> Atomic units; the cutoff of the mass in rydberg, the temperature in kelvin.
    real(real64) :: time_step = 5.0_real64, electron_mass = 400.0_real64, mass_cutoff = 2.5_real64
    real(real64) :: temperature = 0.0_real64, overlap_tolerance = 0.01_real64
    !> Kinetic energy of the states that a chain keeps (0: none) and periods of the chains, atomic units.
    real(real64) :: state_energy = 0.0_real64, ion_period = 0.0_real64, state_period = 0.0_real64
  end type dynamics_settings_t

  type :: qm_settings_t
    type(ions_t) :: system
    !> Symbols of the atoms.
    character(len=2), allocatable :: element(:)
    type(xc_t) :: xc
    !> Rydberg.
    real(real64) :: cutoff = 70.0_real64
    integer :: n_states = 0, memory = 2048
    real(real64) :: occupation = 2.0_real64
    !> Memory that a rank needs, about.
    real(real64) :: bytes = 0.0_real64
    integer(int64) :: seed = 0
    type(spline_settings_t) :: splines
    !> Minimisation.
    integer :: most_steps = 200
    logical :: is_steepest = .false.
    real(real64) :: tolerance = 1.0e-10_real64
    logical :: wants_forces = .true.
    type(dynamics_settings_t) :: dynamics
    character(len=:), allocatable :: result_file, restart_in, states_in, restart_out, xyz_file
    !> Whole states: which rank has which plane of which pair of them. Fine objects: how fine.
    type(state_planes_t) :: map
    logical :: is_fine = .false.
    type(grain_t) :: grain
    !> What the user should know before the numbers, empty = nothing.
    character(len=:), allocatable :: warning
  end type qm_settings_t

  !> Atoms nearer than this (bohr) overlap: half of the shortest bond there is, of H2.
  real(real64), parameter :: shortest_bond = 0.7_real64
  !> How far electrons reach beyond the outermost atoms, both sides together (bohr).
  real(real64), parameter :: tails = 10.0_real64
  !> No edge of a box may be shorter (bohr): that is where an atom meets its own image.
  real(real64), parameter :: shortest_edge = 4.0_real64
  !> A wave must resolve the narrowest Gaussian of a potential: with less the numbers mean nothing, with less than the
  !> second energies are not converged. Both in 1/(width of that Gaussian).
  real(real64), parameter :: least_resolution = 1.0_real64, good_resolution = 3.0_real64

  !> Edges (length_unit) beyond are slips of the hand.
  real(real64), parameter :: longest_edge = 1.0e6_real64

  !> Numbers of methods of dynamics; the first one is RATTLE.
  integer, parameter :: nonorthogonal = 2, born_oppenheimer = 3

contains

  !> Read and check everything that a run on `n_ranks` ranks needs but its restart files; `n_here` of them share the
  !> memory of this machine.
  subroutine read_qm_settings(path, n_ranks, n_here, settings, error)
    character(len=*), intent(in) :: path
    integer, intent(in) :: n_ranks, n_here
    type(qm_settings_t), intent(out) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(control_file_t) :: control
    real(real64) :: unit

    call control%read_with(keys, path, error)
    if (.not. allocated(error)) call refuse_idle_keys(control, error)
    if (.not. allocated(error)) call control%require("INPUT", "atomfile", error)
    if (.not. allocated(error)) call control%require("SYSTEM", "box", error)
    if (allocated(error)) return
    unit = merge(1.0_real64, 1.0_real64/bohr, control%text("INPUT", "length_unit") == "BOHR")
    settings%warning = ""
    settings%cutoff = control%real("ELECTRONS", "cutoff")
    settings%xc%number = control%choice("ELECTRONS", "functional")
    settings%xc%has_step = control%text("ELECTRONS", "xc_cut") == "STEP"
    settings%memory = int(control%integer("ELECTRONS", "memory"))
    settings%seed = control%integer("ELECTRONS", "iseed")
    settings%most_steps = int(control%integer("MINIMIZE", "nsteps"))
    settings%is_steepest = control%text("MINIMIZE", "method") == "SD"
    settings%tolerance = control%real("MINIMIZE", "tolerance")
    settings%wants_forces = control%yes("MINIMIZE", "forces")
    settings%result_file = control%text("OUTPUT", "resultfile")
    settings%restart_out = control%text("OUTPUT", "restartfile")
    settings%restart_in = control%text("INPUT", "restartfile")
    settings%states_in = control%text("INPUT", "statesfile")
    settings%xyz_file = control%text("OUTPUT", "xyzfile")
    associate (d => settings%dynamics)
      d%is_wanted = control%has_section("DYNAMICS")
      d%method = control%choice("DYNAMICS", "method")
      d%has_thermostat = control%text("DYNAMICS", "thermostat") == "NOSE_HOOVER"
      d%state_energy = control%real("DYNAMICS", "state_energy")
      d%ion_period = control%real("DYNAMICS", "ion_period")/time_unit
      d%state_period = control%real("DYNAMICS", "state_period")/time_unit
      d%n_links = int(control%integer("DYNAMICS", "chain_links"))
      d%n_steps = int(control%integer("DYNAMICS", "nsteps"))
      d%period = int(control%integer("OUTPUT", "period"))
      d%restart_period = int(control%integer("OUTPUT", "restart_period"))
      d%time_step = control%real("DYNAMICS", "timestep")
      d%electron_mass = control%real("DYNAMICS", "electron_mass")
      d%mass_cutoff = control%real("DYNAMICS", "mass_cutoff")
      d%temperature = control%real("DYNAMICS", "temperature")
      d%overlap_tolerance = control%real("DYNAMICS", "overlap_tolerance")
    end associate
    if (n_ranks > 1) then
      call check_name("INPUT", "restartfile")
      if (.not. allocated(error)) call check_name("INPUT", "statesfile")
      if (.not. allocated(error)) call check_name("OUTPUT", "restartfile")
      if (allocated(error)) return
    end if
    call read_splines(control, settings%splines, error)
    if (allocated(error)) return
    call read_box(control, unit, settings%system%box, error)
    if (allocated(error)) return
    call read_atoms(control%text("INPUT", "atomfile"), settings%element, settings%system%position, error)
    if (allocated(error)) return
    settings%system%position = unit*settings%system%position
    settings%system%is_cluster = control%text("SYSTEM", "boundary") == "CLUSTER"
    call check_distances(control, settings, error)
    if (.not. allocated(error)) call check_extent(control, settings%system, unit, error)
    if (.not. allocated(error)) call choose_pseudopotentials(control, settings, error)
    if (.not. allocated(error)) call count_electrons(control, settings, error)
    if (.not. allocated(error)) call check_cutoff(control, settings, error)
    if (.not. allocated(error)) call check_memory(control, settings, n_ranks, n_here, error)
    call read_grain(control, settings)
    if (.not. allocated(error)) call check_ranks(control, settings, n_ranks, error)
    if (allocated(error) .or. settings%is_fine .or. control%text("ELECTRONS", "mapfile") == "") return
    call read_state_planes(control%text("ELECTRONS", "mapfile"), (settings%n_states + 1)/2, &
                           grid_size(4.0_real64*settings%cutoff, settings%system%box(3)), n_ranks, settings%map, error)

  contains

    !> Refuse files of several ranks that have one name.
    subroutine check_name(section, name)
      character(len=*), intent(in) :: section, name
      if (control%given(section, name) .and. index(control%text(section, name), "()") == 0) &
        call control%refuse(section, name, "needs () for the rank, as there are several", error)
    end subroutine check_name

  end subroutine read_qm_settings

  !> How fine objects are, where states are in objects.
  subroutine read_grain(control, settings)
    type(control_file_t), intent(in) :: control
    type(qm_settings_t), intent(inout) :: settings
    settings%is_fine = control%text("PARALLEL", "layer") == "OBJECTS"
    settings%grain = grain_t(control%real("PARALLEL", "gexpandfact"), control%real("PARALLEL", "gexpandfactrho"), &
                             int(control%integer("PARALLEL", "sgrainsize")), int(control%integer("PARALLEL", "orthograinsize")), &
                             int(control%integer("PARALLEL", "numchunks")), int(control%integer("PARALLEL", "rhorsubplanes")), &
                             control%text("ELECTRONS", "mapfile"))
  end subroutine read_grain

  subroutine read_splines(control, splines, error)
    type(control_file_t), intent(in) :: control
    type(spline_settings_t), intent(out) :: splines
    type(error_t), allocatable, intent(out) :: error
    splines%for_local = control%text("ELECTRONS", "local_sums") == "SPLINE"
    splines%for_nonlocal = control%text("ELECTRONS", "nonlocal_sums") == "SPLINE"
    splines%order = int(control%integer("ELECTRONS", "spline_order"))
    splines%scale = control%real("ELECTRONS", "spline_scale")
    if (mod(splines%order, 2) /= 0) call control%refuse("ELECTRONS", "spline_order", "is odd; take an even number", error)
  end subroutine read_splines

  !> Refuse what needs more memory than this machine has.
  subroutine check_memory(control, settings, n_ranks, n_here, error)
    type(control_file_t), intent(in) :: control
    type(qm_settings_t), intent(inout) :: settings
    integer, intent(in) :: n_ranks, n_here
    type(error_t), allocatable, intent(out) :: error
    real(real64) :: there
    settings%bytes = bytes_of_rank(settings%cutoff, settings%system%box, settings%n_states, size(settings%system%pseudo), &
                                   settings%xc%uses_gradient(), settings%memory, settings%splines, n_ranks)
    there = min(node_memory(), n_here*process_memory())
    if (n_here*settings%bytes <= there) return
    call control%refuse("ELECTRONS", "cutoff", "needs about "//decimal_text(n_here*settings%bytes/1.0e9_real64, 1)// &
                        " GB of memory in this box with "//to_text(settings%n_states)//" states, and there are "// &
                        decimal_text(there/1.0e9_real64, 1)//" GB; lower it or memory in [ELECTRONS], make the box smaller, "// &
                        "or spread ranks over more machines", error)
  end subroutine check_memory

  !> Refuse ranks that would have no part of the grid.
  subroutine check_ranks(control, settings, n_ranks, error)
    type(control_file_t), intent(in) :: control
    type(qm_settings_t), intent(in) :: settings
    integer, intent(in) :: n_ranks
    type(error_t), allocatable, intent(out) :: error
    integer :: planes, pairs
    integer(int64) :: most
    character(len=:), allocatable :: remedy
    planes = grid_size(4.0_real64*settings%cutoff, settings%system%box(3))
    pairs = (settings%n_states + 1)/2
    most = planes
    if (settings%is_fine .or. control%given("ELECTRONS", "mapfile")) most = int(planes, int64)*pairs
    if (settings%is_fine) most = max(most, int(planes, int64)*settings%grain%subplanes)
    if (n_ranks <= most) return
    remedy = "use at most so many"
    if (most == planes .and. pairs > 1) remedy = remedy//", or a mapfile that shares pairs out (chromabuild qm map)"
    call control%refuse_file(to_text(n_ranks)//" ranks are more than the "//to_text(most)//" that have work with "// &
                             to_text(planes)//" planes of the grid and "//to_text(pairs)//" pairs of states; "//remedy, error)
  end subroutine check_ranks

  !> One edge or three, in bohr.
  subroutine read_box(control, unit, box, error)
    type(control_file_t), intent(in) :: control
    real(real64), intent(in) :: unit
    real(real64), intent(out) :: box(3)
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: text
    integer :: status
    text = control%text("SYSTEM", "box")
    box = -1.0_real64
    select case (n_words(text))
    case (1)
      read (text, *, iostat=status) box(1)
      box = box(1)
    case (3)
      read (text, *, iostat=status) box
    case default
      status = 1
    end select
    if (status /= 0 .or. .not. all(box > 0.0_real64 .and. box < longest_edge)) then
      call control%refuse("SYSTEM", "box", "is not one length or three, above 0 and below 1000000", error)
    else if (any(unit*box < shortest_edge)) then
      call control%refuse("SYSTEM", "box", "is too small: an edge has at least "//decimal_text(shortest_edge/unit, 2)//" "// &
                          control%text("INPUT", "length_unit")//", or atoms meet their own images", error)
    end if
    box = unit*box
  end subroutine read_box

  !> Refuse atoms that lie on each other.
  subroutine check_distances(control, settings, error)
    type(control_file_t), intent(in) :: control
    type(qm_settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    real(real64) :: distance
    integer :: pair(2)
    call shortest_distance(settings%system%position, settings%system%box, distance, pair)
    if (distance >= shortest_bond .or. any(pair == 0)) return
    call control%refuse("INPUT", "atomfile", "has overlapping atoms: "//trim(settings%element(pair(1)))//" (atom "// &
                        to_text(pair(1))//") and "//trim(settings%element(pair(2)))//" (atom "//to_text(pair(2))//") are "// &
                        decimal_text(distance*bohr, 3)//" angstrom apart, an image counted; move them, check length_unit "// &
                        "or enlarge the box", error)
  end subroutine check_distances

  !> Refuse a cluster whose charges would meet images: a box has room for twice its extent.
  subroutine check_extent(control, system, unit, error)
    type(control_file_t), intent(in) :: control
    type(ions_t), intent(in) :: system
    real(real64), intent(in) :: unit
    type(error_t), allocatable, intent(out) :: error
    real(real64) :: extent(3), wanted
    integer :: axis
    if (.not. system%is_cluster) return
    extent = maxval(system%position, 2) - minval(system%position, 2)
    axis = maxloc(extent/system%box, 1)
    if (2.0_real64*extent(axis) <= system%box(axis)) return
    wanted = 2.0_real64*(extent(axis) + tails)
    call control%refuse("SYSTEM", "box", "is too small for boundary = CLUSTER: atoms reach over "// &
                        decimal_text(extent(axis)/unit, 1)//" "//control%text("INPUT", "length_unit")//" along "// &
                        "xyz"(axis:axis)//", more than half of the edge; make it at least "//decimal_text(wanted/unit, 1)// &
                        ", twice their extent with the tails of their density", error)
  end subroutine check_extent

  !> A pseudopotential for each element: the UPF file that is named, or a GTH potential.
  subroutine choose_pseudopotentials(control, settings, error)
    type(control_file_t), intent(in) :: control
    type(qm_settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(pseudopotential_t), allocatable :: pseudo(:)
    character(len=2), allocatable :: symbol(:)
    character(len=2) :: element
    character(len=:), allocatable :: text, file, reason
    integer, allocatable :: entry(:)
    integer :: a, k, charge, status

    allocate (symbol(0))
    do a = 1, size(settings%element)
      if (all(symbol /= settings%element(a))) symbol = [symbol, settings%element(a)]
    end do
    allocate (pseudo(size(symbol)), settings%system%species(size(settings%element)))
    allocate (settings%system%mass(size(settings%element)))
    do a = 1, size(settings%element)
      settings%system%species(a) = findloc(symbol, settings%element(a), dim=1)
      settings%system%mass(a) = dalton*standard_mass(settings%element(a))
    end do
    allocate (settings%system%velocity, mold=settings%system%position)
    settings%system%velocity = 0.0_real64

    entry = control%entries("INPUT", "upf")
    do k = 1, size(entry)
      text = control%numbered("INPUT", "upf", entry(k))
      read (text, *, iostat=status) element
      file = trim(adjustl(text(min(len(text) + 1, scan(text//" ", " ")):)))
      if (status /= 0 .or. file == "") then
        reason = "is not an element and a file; write for instance O O.blyp-mt.UPF"
      else
        reason = fault_of(control, element, symbol, pseudo%is_table)
      end if
      if (reason /= "") then
        call control%refuse_numbered("INPUT", "upf", entry(k), reason, error)
        return
      end if
      a = findloc(symbol, element, dim=1)
      call read_upf(file, pseudo(a), error)
      if (allocated(error)) return
      if (pseudo(a)%element /= element) then
        call control%refuse_numbered("INPUT", "upf", entry(k), "names a file that is for "//trim(pseudo(a)%element)// &
                                     "; name one of "//trim(element), error)
        return
      end if
      if (pseudo(a)%functional /= settings%xc%family()) then
        call control%refuse_numbered("INPUT", "upf", entry(k), "names a potential made with "//pseudo(a)%functional// &
                                     ", and functional = "//trim(xc_names(settings%xc%number))//"; both must be the same", error)
        return
      end if
    end do
    call check_gth(control, symbol, pseudo%is_table, error)
    if (allocated(error)) return
    entry = control%entries("INPUT", "gth")
    do a = 1, size(symbol)
      if (pseudo(a)%is_table) cycle
      charge = 0
      do k = 1, size(entry)
        text = control%numbered("INPUT", "gth", entry(k))
        read (text, *) element
        if (element == symbol(a)) read (text, *) element, charge
      end do
      call find_gth(control%text("INPUT", "gthfile"), symbol(a), settings%xc%family(), charge, pseudo(a), error)
      if (allocated(error)) return
    end do
    call move_alloc(pseudo, settings%system%pseudo)
    a = findloc(settings%system%mass > 0.0_real64, .false., dim=1)
    if (a > 0 .and. settings%dynamics%is_wanted) &
      call control%refuse("INPUT", "atomfile", "has an atom of "//trim(settings%element(a))//", whose mass is not known; "// &
                          "dynamics cannot be done with it", error)
  end subroutine choose_pseudopotentials

  !> Refuse lines about GTH potentials that say nothing, or that no atom needs. `has_upf`: whether each element of the
  !> system has its potential from a UPF file.
  subroutine check_gth(control, symbol, has_upf, error)
    type(control_file_t), intent(in) :: control
    character(len=2), intent(in) :: symbol(:)
    logical, intent(in) :: has_upf(:)
    type(error_t), allocatable, intent(out) :: error
    character(len=2) :: element
    character(len=:), allocatable :: text, reason
    integer, allocatable :: entry(:)
    logical :: is_named(size(symbol))
    integer :: k, charge, status
    allocate (entry, source=control%entries("INPUT", "gth"))
    is_named = .false.
    do k = 1, size(entry)
      text = control%numbered("INPUT", "gth", entry(k))
      charge = 0
      read (text, *, iostat=status) element, charge
      if (status /= 0 .or. charge < 1 .or. n_words(text) /= 2) then
        reason = "is not an element and a charge; write for instance Mg 10"
      else
        reason = fault_of(control, element, symbol, has_upf .or. is_named)
      end if
      if (reason /= "") then
        call control%refuse_numbered("INPUT", "gth", entry(k), reason, error)
        return
      end if
      is_named(findloc(symbol, element, dim=1)) = .true.
    end do
    if (control%given("INPUT", "gthfile") .and. all(has_upf)) call control%refuse("INPUT", "gthfile", &
      "is not needed: all elements have UPF files; leave it out", error)
  end subroutine check_gth

  !> Why a potential cannot be that of an element, of which some have one; empty where it can.
  pure function fault_of(control, element, symbol, has_one) result(reason)
    type(control_file_t), intent(in) :: control
    character(len=2), intent(in) :: element, symbol(:)
    logical, intent(in) :: has_one(:)
    character(len=:), allocatable :: reason
    integer :: a
    a = findloc(symbol, element, dim=1)
    reason = ""
    if (a == 0) then
      reason = "is for "//trim(element)//", and there is no such atom in "//control%text("INPUT", "atomfile")// &
               "; leave it out, or write the element as there"
    else if (has_one(a)) then
      reason = "is a second potential of "//trim(element)//"; leave one"
    end if
  end function fault_of

  !> Words of a text, with blanks or commas between them.
  pure integer function n_words(text)
    character(len=*), intent(in) :: text
    integer :: i
    logical :: is_gap(0:len(text))
    is_gap(0) = .true.
    is_gap(1:) = [(index(" ,", text(i:i)) > 0, i=1, len(text))]
    n_words = count(.not. is_gap(1:) .and. is_gap(:len(text) - 1))
  end function n_words

  !> Two electrons a state; one alone has a state of its own.
  subroutine count_electrons(control, settings, error)
    type(control_file_t), intent(in) :: control
    type(qm_settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    integer :: a, n
    real(real64) :: charge
    charge = 0.0_real64
    do a = 1, settings%system%n_atoms()
      charge = charge + settings%system%charge(a)
    end do
    n = nint(charge) - int(control%integer("SYSTEM", "charge"))
    if (n < 1) then
      call control%refuse("SYSTEM", "charge", "leaves "//to_text(n)//" electrons; the ions together have "// &
                          to_text(nint(charge))//", so make it less than that", error)
    else if (mod(n, 2) == 1 .and. n > 1) then
      call control%refuse("SYSTEM", "charge", "leaves an odd number of electrons, "//to_text(n)//", and states hold pairs; "// &
                          "change the charge by one, or add or remove a hydrogen", error)
    end if
    settings%n_states = (n + 1)/2
    settings%occupation = merge(1.0_real64, 2.0_real64, n == 1)
  end subroutine count_electrons

  !> Refuse a cutoff at which the potentials cannot be told from points; say where energies are not converged.
  subroutine check_cutoff(control, settings, error)
    type(control_file_t), intent(in) :: control
    type(qm_settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    integer :: s
    real(real64) :: width, resolution
    do s = 1, size(settings%system%pseudo)
      associate (pseudo => settings%system%pseudo(s))
        width = pseudo%narrowest()
        resolution = sqrt(settings%cutoff)*width
        if (pseudo%is_table) cycle
        if (resolution < least_resolution) then
          call control%refuse("ELECTRONS", "cutoff", "is too low for the potential of "//trim(pseudo%element)//" with charge "// &
                              to_text(nint(pseudo%charge))//", which needs at least "// &
                              decimal_text((least_resolution/width)**2, 0)//" Ry; raise it, or take another potential", error)
          return
        end if
        if (resolution < good_resolution) settings%warning = settings%warning//" "//trim(pseudo%element)//" ("// &
          decimal_text((good_resolution/width)**2, 0)//" Ry)"
      end associate
    end do
    if (settings%warning /= "") settings%warning = "energies are not converged at "//decimal_text(settings%cutoff, 0)// &
      " Ry; they would be at about:"//settings%warning
  end subroutine check_cutoff

end module qm_settings
