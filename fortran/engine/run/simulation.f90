!> Everything that one rank holds of a simulation, and the two operations that all commands share: rebuild the lists
!> after atoms moved far, and compute the forces.
module simulation
  use base_kinds, only: int32, int64, real64
  use pair_precision, only: real_pair
  use atoms, only: atoms_t
  use barostat, only: barostat_settings_t, barostat_t
  use barostats, only: make_barostat, no_barostat
  use background, only: background_t
  use bonded, only: bonded_t, n_bonded_energies, with_ghosts, without_ghosts
  use bricks, only: brick_list_t
  use coarse_place, only: int16, measure_moves, n_places, note_places
  use comm_communicator, only: communicator_t
  use base_constants, only: acceleration_unit, atmosphere, boltzmann, pi
  use constraints, only: constraints_t
  use settings, only: anisotropic, area_fixed, forcefield_lennard_jones, forcefield_topology, isotropic, memory_saved, &
                      memory_used, no_tail, respa, semi_isotropic, settings_t, tail_in_energy_and_pressure
  use comm_domain_grid, only: domain_grid_t
  use ensemble_state, only: chain_state_t, ensemble_state_t
  use energies, only: energies_t, is_dispersion, is_elec, is_reciprocal, is_restraint, is_vdw, n_energies
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, fail
  use base_fixed_point, only: rounding_t
  use comm_halo, only: halo_options_t, halo_t
  use comm_migration, only: migrate
  use eam_file, only: eam_file_t
  use lennard_jones, only: lennard_jones_t
  use monte_carlo, only: first_largest_move
  use comm_load_balance, only: balanced_borders
  use material, only: material_t
  use nonbonded, only: meets_ghosts, meets_owned, nonbonded_t
  use open_box, only: open_edges, open_origin
  use nonbonded_options, only: nonbonded_options_t, usual_many_atoms
  use pair_ownership, only: pair_ownership_t, place_share
  use pair_parameters, only: vdw_cut, vdw_force_switch, vdw_pme, vdw_shift, vdw_switch
  use pme, only: dispersion_alpha, ewald_alpha, pme_grid_size, pme_t
  use pme_ranks, only: pme_client_t
  use ensemble_state, only: chain_state_t, ensemble_state_t
  use restart, only: phase_fresh, restart_t
  use restraints, only: restraints_t
  use setup, only: read_domain
  use base_text, only: to_text
  use thermostat, only: thermostat_settings_t, thermostat_t
  use thermostats, only: make_thermostat
  use timing, only: in_bonded, in_communication, in_list, in_real_space, in_reciprocal, timer_t
  use topology, only: topology_t
  use comm_torus_map, only: map_to_torus
  use verlet_buffer, only: list_limit_t, verlet_buffer_t
  implicit none
  private
  public :: simulation_t

  !> Owned groups are sorted by cells about this wide (angstrom).
  real(real64), parameter :: sort_cell = 8.0_real64
  !> Without a periodic box: cells along an edge of the large box.
  integer, parameter :: open_sort_cells = 64
  !> How much longer than its constraint a bond may be before minimisation has relaxed it.
  real(real64), parameter :: bond_slack = 1.25_real64
  !> The halo is wider than the pair list needs by this (angstrom), and at most by this share of the box' edge, where
  !> domains allow it, so that pair lists can be renewed several times before atoms have to be handed over and terms found
  !> anew. In a small box, which is mostly halo, each angstrom more costs more than rebuilding. The box and not the domain
  !> counts, so that any number of ranks hands atoms over at the same steps (then L-BFGS begins anew).
  real(real64), parameter :: halo_slack = 4.0_real64, halo_slack_share = 0.05_real64

  !> The pair list reaches this far beyond the cutoff (angstrom) where domains allow it, and the part of it that the
  !> kernels run over at most so far (less where missed pairs are tolerated and less is cheaper); see docs/engine.md.
  real(real64), parameter :: outer_buffer = 2.5_real64, inner_buffer = 0.7_real64
  !> Left between the halo and the size of a domain when the reach is chosen: bonds may become longer.
  real(real64), parameter :: halo_reserve = 1.0_real64
  !> Drift of the energy, kT/ns/atom, that missed pairs may add when pairs are 32-bit arithmetic.
  real(real64), parameter :: mixed_tolerance = 0.005_real64
  !> Positions are remembered in parts of the box: those of reference atoms when atoms came to their owners in 2^30 parts,
  !> below 1e-6 angstrom in a box of 1000 (owned atoms stay far within twice the box); those of all atoms when the pair list
  !> was made in parts of at most `coarse_quantum` (angstrom), at least 2^16 of them, of which the last 16 bits are kept:
  !> they tell displacements up to half of 2^16 parts. Images of an atom have the same parts.
  real(real64), parameter :: place_quantum = 2.0_real64**(-30), coarse_quantum = 2.0_real64**(-10)

  !> A box that changes may make the grid of reciprocal space this much coarser or finer than asked before a continued
  !> run chooses another.
  real(real64), parameter :: grid_slack = 0.1_real64

  !> Work of an atom beside its pairs (PME, bonds, integration), in pairs of the list.
  integer, parameter :: pairs_per_atom = 150
  !> Borders move when the largest work of a rank exceeds the mean by this factor, and so many times at once at first.
  real(real64), parameter :: tolerated_imbalance = 1.05_real64
  integer, parameter :: first_moves = 12
  !> A domain may become so narrow, as a share of evenly spaced ones, before the reach of the list is cut for it.
  real(real64), parameter :: least_share = 0.7_real64

  !> Groups whose energies are summed one after another, so that sums do not depend on the number of threads.
  integer, parameter :: groups_per_block = 2048

  type :: simulation_t
    type(communicator_t) :: comm
    type(domain_grid_t) :: grid
    type(topology_t) :: topology
    type(atoms_t) :: atoms
    type(halo_t) :: halo
    type(bonded_t) :: bonded
    type(nonbonded_t) :: nonbonded
    !> Who computes what: by the half shell or by midpoints.
    type(pair_ownership_t) :: ownership
    !> In place of pairs and reciprocal space of molecules.
    type(material_t) :: material
    !> There is no periodic box: the model stands in the middle of a larger one (module open_box). With `is_vacuum` no
    !> pair may be beyond the cutoff.
    logical :: is_open = .false.
    logical, private :: is_vacuum = .false.
    !> Whether charges have a part in reciprocal space.
    logical, private :: sums_charges = .true.
    type(pme_t) :: pme
    !> In place of `pme` where ranks apart do its work.
    type(pme_client_t) :: pme_client
    !> Ewald summation of the dispersion, with the roots of c6 of the types and of the kinds of atoms.
    logical :: sums_dispersion = .false.
    type(pme_t) :: dispersion
    real(real64), allocatable :: type_root_c6(:), root_c6(:)
    type(constraints_t) :: constraints
    type(restraints_t) :: restraints
    class(thermostat_t), allocatable :: thermostat
    class(barostat_t), allocatable :: barostat
    !> What the restart file says of thermostats and barostats; those at work keep their own state since.
    type(ensemble_state_t), private :: kept
    type(timer_t) :: timer
    !> How positions, forces and energies are rounded: in the deterministic mode.
    type(rounding_t) :: rounding
    !> Parts and virial of the last force computation on this rank only.
    type(energies_t) :: mine
    integer(int64) :: step = 0
    real(real64) :: time = 0.0_real64
    integer :: phase = phase_fresh
    !> Atoms have no velocities; what their array holds is something else.
    logical :: is_at_rest = .false.
    !> Steps between stops of the centre of mass, 0 = never.
    integer(int64) :: stop_period = 0
    !> Points of the reciprocal-space grid.
    integer :: pme_points(3) = 0
    !> Degrees of freedom of the atoms' velocities and of those of the groups' centres of mass.
    real(real64) :: n_freedom = 1.0_real64, n_group_freedom = 1.0_real64
    real(real64) :: pairlist_distance = 0.0_real64
    !> Beyond the cutoff: how far the kernels' entries reach.
    real(real64), private :: inner_buffer = 0.0_real64, cutoff = 0.0_real64
    !> What it would be if domains allowed it.
    real(real64), private :: wanted_inner_buffer = inner_buffer
    !> Reach that the control file asks for.
    real(real64), private :: least_reach = 0.0_real64
    !> An atom may move this far (angstrom) from where it was when the pair list was made; where pairs may be missed,
    !> atoms may move as far as the limit says.
    real(real64) :: allowed_displacement = 0.0_real64
    type(verlet_buffer_t), private :: tolerance
    type(list_limit_t), private :: list_limit
    integer(int64), private :: listed_step = 0
    !> Forces of reciprocal space are kept apart, in `slow_force`, to be used in longer steps.
    logical :: split_forces = .false.
    real(real64), allocatable :: slow_force(:, :)
    !> Logarithm of how much the box was scaled since the pair list was made (largest of the axes).
    real(real64), private :: strain = 0.0_real64
    !> Tail energy times volume.
    real(real64), private :: tail_energy_volume = 0.0_real64
    logical, private :: tail_in_virial = .false.
    !> Positions of the owned atoms when the pair list was made, and into how many parts the box was cut for them.
    integer(int16), allocatable, private :: listed_place(:, :)
    real(real64), private :: listed_parts(3) = 0.0_real64
    !> Positions of the reference atoms of the groups when atoms came to their owners, in `place_quantum` of the box, and
    !> how far from each other these may have been then to be both at hand where the pair is computed.
    integer(int32), allocatable, private :: settled_place(:, :)
    real(real64) :: halo_width = 0.0_real64
    !> Ghosts came from within this distance of the domain.
    real(real64) :: ghost_width = 0.0_real64
    !> What needs no message is computed while messages travel.
    logical, private :: overlaps = .false.
    !> Borders between domains follow the work; they are evenly spaced since the last `rebuild` and may move now.
    logical, private :: balances = .false., may_move = .false.
    !> Links of a torus that a byte of the halo travels: with ranks in the order of the machine, and now.
    real(real64) :: hops(2) = 0.0_real64
    !> Largest work of a rank over the mean: with evenly spaced borders, and now.
    real(real64) :: imbalance(2) = 0.0_real64
  contains
    procedure :: start_from_bricks
    procedure :: start_from_restart
    procedure :: make_restart
    procedure :: write_restart
    procedure :: prepare_forces
    procedure :: prepare_ensemble
    procedure :: reset_ensemble
    procedure :: rebuild
    procedure :: renew_list
    procedure :: compute_forces
    procedure :: scale_box
    procedure :: set_box
    procedure :: list_is_due
    procedure :: largest_displacement
    procedure :: sum_energies
    procedure :: read_topology
    procedure :: make_grid
    procedure :: box_of
    procedure :: place_in_box
    procedure :: check_restart
    procedure :: describe_balance
    procedure, private :: make_list
    procedure, private :: redistribute
  end type simulation_t

  !> What is under way between ranks while forces are computed.
  type, extends(background_t) :: travelling_t
    type(halo_t), pointer :: halo => null()
    type(pme_t), pointer :: pme => null()
    type(pme_client_t), pointer :: pme_client => null()
  contains
    procedure :: advance => advance_travelling
  end type travelling_t

  interface
    subroutine chromamd_trim_memory() bind(c)
    end subroutine chromamd_trim_memory
  end interface

contains

  !> Let positions of ghosts and the transforms of reciprocal space go on.
  subroutine advance_travelling(self)
    class(travelling_t), intent(inout) :: self
    call self%halo%advance_update()
    call self%pme%advance(.false.)
    call self%pme_client%advance()
  end subroutine advance_travelling

  !> Take the atoms of this rank's domain from the bricks; velocities are zero.
  subroutine start_from_bricks(self, settings, error)
    class(simulation_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(brick_list_t) :: list
    integer(int64) :: total(1)
    integer :: n_read
    call self%read_topology(settings, error)
    if (allocated(error)) return
    call list%read(settings%input%shards, error)
    call self%comm%agree(error)
    if (allocated(error)) return
    if (list%n_atoms /= self%topology%n_atoms) then
      call fail(error, exit_bad_input, settings%input%shards//": has "//to_text(list%n_atoms)// &
                " atoms, "// &
                settings%input%topology//" has "//to_text(self%topology%n_atoms)// &
                  ": give files of the same build")
      return
    end if
    call self%make_grid(settings, self%box_of(settings, list%box), [0, 0, 0], self%comm%rank, self%comm%n_ranks, error)
    if (allocated(error)) return
    call read_domain(self%grid, self%comm%rank, self%topology, list, self%atoms%id, self%atoms%position, n_read, error)
    call self%comm%agree(error)
    if (allocated(error)) return
    total = size(self%atoms%id, kind=int64)
    call self%comm%sum(total)
    if (total(1) /= self%topology%n_atoms) &
      call fail(error, exit_corrupt_file, "the bricks give "//to_text(total(1))// &
                " atoms to the domains, the topology has "//to_text(self%topology%n_atoms)// &
                ": shards and topology do not belong together")
    call self%comm%agree(error)
    if (allocated(error)) return
    allocate (self%atoms%velocity(3, size(self%atoms%id)), source=0.0_real64)
    call self%place_in_box(self%atoms%position)
    call self%atoms%identify_owned(self%topology)
    self%time = settings%dynamics%initial_time
  end subroutine start_from_bricks

  !> Take atoms, velocities, step and time from the restart files of an equal number of ranks.
  subroutine start_from_restart(self, settings, error)
    class(simulation_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(restart_t) :: saved
    integer(int64) :: sums(2)
    call self%read_topology(settings, error)
    if (allocated(error)) return
    call saved%read(settings%input%restart, self%comm%rank, self%comm%n_ranks, error)
    call self%comm%agree(error)
    if (.not. allocated(error) .and. size(settings%comm%torus) > 0) then
      call place_on_torus(self, settings, saved%dims, saved%box, error)
      if (.not. allocated(error)) &
        call saved%read(settings%input%restart, self%comm%rank, self%comm%n_ranks, error)
      call self%comm%agree(error)
    end if
    if (allocated(error)) return
    if (saved%n_system /= self%topology%n_atoms) &
      call fail(error, exit_bad_input, settings%input%restart//": is of a system of "// &
                to_text(saved%n_system)// &
                " atoms, "//settings%input%topology//" has "//to_text(self%topology%n_atoms)// &
                ": give files of the same build")
    call self%comm%agree(error)
    if (allocated(error)) return
    sums = [size(saved%id, kind=int64), saved%step]
    call self%comm%sum(sums)
    if (sums(1) /= self%topology%n_atoms .or. sums(2) /= saved%step*self%comm%n_ranks) &
      call fail(error, exit_corrupt_file, settings%input%restart// &
                ": the files of the ranks are not of the same step; start from another restart")
    call self%comm%agree(error)
    if (allocated(error)) return
    call self%check_restart(settings, saved, error)
    if (allocated(error)) return
    call self%make_grid(settings, saved%box, saved%dims, self%comm%rank, self%comm%n_ranks, error)
    if (allocated(error)) return
    call move_alloc(saved%id, self%atoms%id)
    call move_alloc(saved%position, self%atoms%position)
    call move_alloc(saved%velocity, self%atoms%velocity)
    call self%atoms%identify_owned(self%topology)
    self%step = saved%step
    self%time = saved%time
    self%phase = saved%phase
    self%kept = saved%ensemble
    self%pme_points = saved%ensemble%grid_points
  end subroutine start_from_restart

  !> Take the rank whose domain has its neighbours on near nodes.
  subroutine place_on_torus(self, settings, dims, box, error)
    type(simulation_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    integer, intent(in) :: dims(3)
    real(real64), intent(in) :: box(3)
    type(error_t), allocatable, intent(out) :: error
    integer, allocatable :: process(:)
    real(real64) :: width
    if (mod(int(self%comm%n_ranks, int64), product(int(settings%comm%torus, int64))) /= 0) then
      call settings%refuse("COMM", "torus", "has "//to_text(product(int(settings%comm%torus, int64)))//" nodes, and "// &
                          to_text(int(self%comm%n_ranks, int64))//" ranks cannot be dealt to them evenly", error)
    end if
    if (allocated(error)) return
    width = settings%energy%list_distance
    if (settings%comm%midpoint) width = 0.5_real64*width
    call map_to_torus(dims, settings%comm%torus, box/dims, width, process, self%hops)
    call self%comm%reorder(findloc(process, self%comm%rank, dim=1) - 1)
  end subroutine place_on_torus

  !> The topology, with the masses that the control file asks for.
  subroutine read_topology(self, settings, error)
    class(simulation_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    logical :: fits
    call self%topology%read(settings%input%topology, error)
    call self%comm%agree(error)
    if (allocated(error) .or. .not. settings%dynamics%heavy_hydrogens) return
    associate (dynamics => settings%dynamics)
      call self%topology%repartition_hydrogen_mass(dynamics%hydrogen_ratio, dynamics%lone_hydrogen_ratio, &
                                                   dynamics%heavy_water_hydrogens, fits)
    end associate
    if (.not. fits) call settings%refuse("DYNAMICS", "hmr_ratio", "makes a heavy atom lighter than its hydrogens", error)
  end subroutine read_topology

  !> Edges (angstrom) of the box for bricks in a box with edges `box`.
  function box_of(self, settings, box) result(edges)
    class(simulation_t), intent(in) :: self
    type(settings_t), intent(in) :: settings
    real(real64), intent(in) :: box(3)
    real(real64) :: edges(3)
    edges = box
    if (settings%boundary%is_open) &
      edges = open_edges(box, max(settings%energy%list_distance, &
                                  settings%energy%cutoff + outer_buffer) + halo_slack + &
                              2.0_real64*bond_slack*self%topology%longest_constraint())
  end function box_of

  !> Bring positions of bricks to where they lie in the box.
  subroutine place_in_box(self, position)
    class(simulation_t), intent(in) :: self
    real(real64), intent(inout) :: position(:, :)
    if (self%is_open) position = position + spread(open_origin(self%grid%box), 2, size(position, 2))
  end subroutine place_in_box

  !> Whether the restart has a periodic box if and only if the control file wants one.
  subroutine check_restart(self, settings, saved, error)
    class(simulation_t), intent(in) :: self
    type(settings_t), intent(in) :: settings
    type(restart_t), intent(in) :: saved
    type(error_t), allocatable, intent(out) :: error
    associate (unused => self); end associate
    if (saved%is_open .and. .not. settings%boundary%is_open) then
      call settings%refuse("BOUNDARY", "type", "contradicts the restart files, which have no periodic box; give NOBC", error)
    else if (.not. saved%is_open .and. settings%boundary%is_open) then
      call settings%refuse("BOUNDARY", "type", "contradicts the restart files, which have a periodic box: run chromamd "// &
                          "setup with type = NOBC from the bricks", error)
    end if
  end subroutine check_restart

  !> Cut the box, for rank `rank` of `n_ranks`; `saved_dims`: the domains of restart files, 0 where there are none.
  subroutine make_grid(self, settings, box, saved_dims, rank, n_ranks, error)
    class(simulation_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    real(real64), intent(in) :: box(3)
    integer, intent(in) :: saved_dims(3), rank, n_ranks
    type(error_t), allocatable, intent(out) :: error
    character(len=1), parameter :: axis_name(3) = ["x", "y", "z"]
    real(real64) :: wanted_box, width, edges(3)
    integer :: axis, dims(3)
    self%pairlist_distance = settings%energy%list_distance
    self%is_open = settings%boundary%is_open
    self%is_vacuum = settings%energy%vacuum
    if (self%is_open .and. n_ranks > 1) then
      call settings%refuse("BOUNDARY", "type", "runs as one domain; use one rank and several threads (OMP_NUM_THREADS)", &
                          error)
      return
    end if
    do axis = 1, 3
      wanted_box = settings%boundary%box(axis)
      if (wanted_box > 0.0_real64 .and. abs(wanted_box - box(axis)) > 1.0e-3_real64) then
        call settings%refuse("BOUNDARY", "box_size_"//axis_name(axis), "differs from the box of the input, "// &
                            to_text(box(axis))//" angstrom", error)
        return
      end if
      if (box(axis) < 2.0_real64*self%pairlist_distance) then
        call settings%refuse("ENERGY", "pairlistdist", "must not exceed half the box, which is "//to_text(box(axis))// &
                            " angstrom along "//axis_name(axis), error)
        return
      end if
      dims(axis) = settings%boundary%domains(axis)
      if (saved_dims(axis) == 0) cycle
      if (dims(axis) > 0 .and. dims(axis) /= saved_dims(axis)) then
        call settings%refuse("BOUNDARY", "domain_"//axis_name(axis), "differs from the restart files, which have "// &
                            to_text(saved_dims(axis))//" domains along "//axis_name(axis), error)
        return
      end if
      dims(axis) = saved_dims(axis)
    end do
    width = self%pairlist_distance + 2.0_real64*bond_slack*self%topology%longest_constraint()
    edges = box
    if (settings%energy%deterministic) then
      call self%rounding%switch_on(box)
      self%atoms%rounding = self%rounding
      edges = self%rounding%on_lattice(box)
    end if
    self%balances = settings%boundary%balances_load .and. n_ranks > 1
    self%ownership%is_on = settings%comm%midpoint
    call self%grid%create(rank, n_ranks, edges, dims, merge(0.5_real64, 1.0_real64, self%ownership%is_on)*width, error)
    if (allocated(error)) return
    call choose_reach(self, settings)
  end subroutine make_grid

  !> Reach of the pair list, buffers, and what may be missed.
  subroutine choose_reach(self, settings)
    class(simulation_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    self%cutoff = settings%energy%cutoff
    self%material%is_on = settings%energy%forcefield /= forcefield_topology
    self%sums_charges = settings%energy%ewald_charges .and. .not. self%material%is_on
    self%least_reach = settings%energy%list_distance
    call fit_reach(self)
  end subroutine choose_reach

  !> Let pair lists miss what the tolerance of the control file allows; only dynamics has a drift.
  subroutine prepare_tolerance(self, settings, rigid)
    type(simulation_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    logical, intent(in) :: rigid
    real(real64), parameter :: ps_per_ns = 1000.0_real64
    real(real64), allocatable :: mass(:), number(:, :), charge(:)
    real(real64) :: drift, temperature
    temperature = settings%ensemble%temperature
    drift = merge(mixed_tolerance, 0.0_real64, real_pair /= real64 .and. .not. self%rounding%is_on())
    if (allocated(settings%energy%list_tolerance)) drift = settings%energy%list_tolerance
    if (.not. settings%runs_dynamics .or. .not. drift > 0.0_real64 .or. .not. self%sums_charges) return
    call self%topology%classes_of_motion(rigid, mass, number, charge)
    call self%tolerance%prepare(self%nonbonded%pair_constants(), settings%energy%switch_distance, &
                                self%topology%coulomb_constant, mass, number, charge, self%topology%c6, &
                                self%topology%c12, self%topology%n_atoms/product(self%grid%box), &
                                drift*boltzmann*temperature*settings%dynamics%timestep/ps_per_ns, &
                                sqrt(3.0_real64*boltzmann*temperature*acceleration_unit)* &
                                settings%dynamics%timestep)
    self%wanted_inner_buffer = self%tolerance%cheapest_buffer(self%cutoff, self%cutoff + outer_buffer, inner_buffer)
    call fit_reach(self)
    call self%nonbonded%set_reach(self%pairlist_distance, self%inner_buffer)
    call self%nonbonded%tolerate_misses(self%tolerance)
    self%list_limit = self%tolerance%limit(self%pairlist_distance - self%cutoff)
  end subroutine prepare_tolerance

  !> The reach and buffers that fit the present box.
  subroutine fit_reach(self)
    class(simulation_t), intent(inout) :: self
    real(real64) :: room, buffer
    room = merge(least_share, 1.0_real64, self%balances)*minval(self%grid%box/self%grid%dims)
    if (self%ownership%is_on) room = 2.0_real64*room
    room = min(room - 2.0_real64*bond_slack*self%topology%longest_constraint() - halo_reserve, &
               0.5_real64*minval(self%grid%box))
    self%pairlist_distance = max(self%least_reach, min(self%cutoff + outer_buffer, room))
    if (self%material%is_on) self%pairlist_distance = self%least_reach
    buffer = self%pairlist_distance - self%cutoff
    self%inner_buffer = min(self%wanted_inner_buffer, 0.5_real64*buffer)
    if (self%material%is_on) self%inner_buffer = 0.0_real64
    self%allowed_displacement = 0.5_real64*(buffer - self%inner_buffer)
  end subroutine fit_reach

  !> How far from a domain (angstrom) ghosts must come from, so that all pairs of groups within `width` of each other are
  !> at hand where they are computed.
  pure real(real64) function ghosts_within(self, width)
    type(simulation_t), intent(in) :: self
    real(real64), intent(in) :: width
    ghosts_within = width
    if (self%ownership%is_on) ghosts_within = 0.5_real64*width + place_reserve(self)
  end function ghosts_within

  !> The middle of a pair, of places that are whole numbers, is that of the positions to within this (angstrom).
  pure real(real64) function place_reserve(self)
    type(simulation_t), intent(in) :: self
    place_reserve = 4.0_real64*place_share*maxval(self%grid%box)
  end function place_reserve

  !> The state as a restart.
  function make_restart(self) result(saved)
    class(simulation_t), intent(in) :: self
    type(restart_t) :: saved
    integer :: n
    n = self%atoms%n_owned
    saved%dims = self%grid%dims
    saved%n_system = self%topology%n_atoms
    saved%step = self%step
    saved%phase = self%phase
    saved%time = self%time
    saved%box = self%grid%box
    saved%is_open = self%is_open
    saved%ensemble = self%kept
    call self%thermostat%put_into(saved%ensemble%bath)
    call self%barostat%put_into(saved%ensemble)
    saved%ensemble%grid_points = self%pme_points
    allocate (saved%id, source=self%atoms%id(:n))
    allocate (saved%position, source=self%atoms%position(:, :n))
    allocate (saved%velocity, source=self%atoms%velocity(:, :n))
  end function make_restart

  !> Write the restart files of all ranks: first all under temporary names, then, if all succeeded, under their own.
  subroutine write_restart(self, name, error)
    class(simulation_t), intent(in) :: self
    character(len=*), intent(in) :: name
    type(error_t), allocatable, intent(out) :: error
    type(restart_t) :: saved
    saved = self%make_restart()
    call saved%write(name, self%comm%rank, self%comm%n_ranks, error)
    call self%comm%agree(error)
    if (allocated(error)) return
    call saved%put_in_place(name, self%comm%rank, error)
    call self%comm%agree(error)
  end subroutine write_restart

  !> Set up the force field. `rigid`: bonds to hydrogen and waters are constrained.
  subroutine prepare_forces(self, settings, rigid, error)
    class(simulation_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    logical, intent(in) :: rigid
    type(error_t), allocatable, intent(out) :: error
    type(nonbonded_options_t) :: options
    real(real64) :: alpha, spacing
    integer :: points(3)

    self%halo%options = halo_options(settings)
    call self%bonded%init(self%topology%coulomb_constant, self%topology%cmap, rigid, self%rounding)
    call self%constraints%init(self%topology, rigid, settings%constraints%settle_waters, &
                               settings%constraints%iterations, &
                               settings%constraints%tolerance)
    if (self%is_open) then
      call self%restraints%init(settings, self%topology, error, self%grid%box)
    else
      call self%restraints%init(settings, self%topology, error)
    end if
    call self%comm%agree(error)
    if (allocated(error)) return
    if (self%material%is_on) then
      call prepare_material(self, settings, error)
      call self%comm%agree(error)
      return
    end if
    if (.not. self%sums_charges) then
      alpha = 0.0_real64
    else if (allocated(settings%energy%alpha)) then
      alpha = settings%energy%alpha
    else
      alpha = ewald_alpha(settings%energy%cutoff, settings%energy%alpha_tolerance)
    end if
    call prepare_nonbonded(self, settings, alpha, options, error)
    call self%comm%agree(error)
    if (allocated(error)) return
    call prepare_tolerance(self, settings, rigid)
    if (settings%energy%tail /= no_tail) call prepare_tail(self, settings)
    if (.not. self%sums_charges) return
    self%overlaps = settings%comm%overlap .and. self%comm%n_ranks > 1
    if (self%overlaps) call self%nonbonded%keep_ghosts_apart()
    points = settings%energy%grid_points
    spacing = settings%energy%grid_spacing
    if (any(self%pme_points > 0)) then
      ! The box of the restart was scaled: the grid of before goes on unless it has become unfit.
      where (points == 0 .and. self%grid%box > (1.0_real64 - grid_slack)*spacing*(self%pme_points - 2) .and. &
             self%grid%box < (1.0_real64 + grid_slack)*spacing*self%pme_points) points = self%pme_points
    end if
    where (points == 0) points = pme_grid_size(self%grid%box, spacing)
    self%pme_points = points
    if (self%comm%n_apart > 0) then
      call self%pme_client%init(self%comm, self%grid%box, points, settings%energy%spline_order, alpha, &
                                self%topology%coulomb_constant, self%rounding, &
                                settings%comm%fft, error)
    else
      call self%pme%init(self%comm%handle, self%grid%dims, self%grid%box, points, &
                         settings%energy%spline_order, alpha, self%topology%coulomb_constant, error, &
                         rounding=self%rounding, scheme=settings%comm%fft, &
                         in_background=self%overlaps)
    end if
    call self%comm%agree(error)
    if (allocated(error)) return
    if (self%sums_dispersion) &
      call self%dispersion%init(self%comm%handle, self%grid%dims, self%grid%box, points, &
                                settings%energy%spline_order, options%dispersion_alpha, 1.0_real64, &
                                error, of_dispersion=.true., scheme=settings%comm%fft)
    call self%comm%agree(error)
  end subroutine prepare_forces

  !> Set up Lennard-Jones or embedded atoms in place of the topology's interactions.
  subroutine prepare_material(self, settings, error)
    type(simulation_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(eam_file_t) :: potential
    logical :: simple
    simple = size(self%topology%templates) == 1
    if (simple) simple = self%topology%templates(1)%n_atoms == 1
    if (simple) simple = self%topology%templates(1)%charge(1) == 0.0_real64
    if (.not. simple) then
      call settings%refuse("ENERGY", "forcefield", "is for uncharged atoms of one kind, one atom a molecule; "// &
                          settings%input%topology//" has others", error)
      return
    end if
    if (settings%energy%forcefield == forcefield_lennard_jones) then
      associate (lj_type => self%topology%templates(1)%lj_type(1))
        call self%material%use_lennard_jones(self%topology%c6(lj_type, lj_type), self%topology%c12(lj_type, lj_type), &
                                             self%cutoff, self%pairlist_distance, settings%energy%shift)
      end associate
      return
    end if
    call potential%read(settings%input%embedded_atoms, settings%energy%element, error)
    if (allocated(error)) return
    if (abs(self%cutoff - potential%cutoff) > 1.0e-6_real64) then
      call settings%refuse("ENERGY", "cutoffdist", "must be that of "//settings%input%embedded_atoms//", "// &
                          to_text(potential%cutoff)//" angstrom", error)
      return
    end if
    call self%material%use_embedded_atoms(potential%embedding, potential%density, potential%pair, self%cutoff, &
                                          self%pairlist_distance)
  end subroutine prepare_material

  !> How ghosts travel. Transports are tried out only where many steps follow; they do not change results.
  type(halo_options_t) function halo_options(settings) result(options)
    type(settings_t), intent(in) :: settings
    options%pattern = settings%comm%pattern
    options%transport = settings%comm%transport
    options%combine = settings%comm%combine_messages
    options%whole_shell = settings%comm%midpoint
    options%time_transports = settings%comm%time_transports .and. &
                              (settings%runs_dynamics .or. settings%runs_minimisation)
  end function halo_options

  !> Degrees of freedom and thermostat as the control file says. `rigid`: as for `prepare_forces`.
  subroutine prepare_ensemble(self, settings, rigid)
    class(simulation_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    logical, intent(in) :: rigid
    ! Noise and fixed points move the centre of mass, unless it is stopped again and again.
    logical :: centre_moves
    type(thermostat_settings_t) :: bath
    bath%temperature = settings%ensemble%temperature
    bath%tau = settings%ensemble%relaxation_time
    bath%friction = settings%ensemble%friction
    bath%chain_length = settings%ensemble%chain_length
    bath%chain_steps = settings%ensemble%chain_steps
    bath%of_groups = settings%ensemble%of_groups
    bath%seed = settings%dynamics%seed
    call make_thermostat(settings%ensemble%bath, bath, self%thermostat)
    self%stop_period = settings%dynamics%stop_period
    centre_moves = self%stop_period == 0 .and. (self%thermostat%moves_centre() .or. settings%restrains_positions())
    self%n_freedom = 3.0_real64*self%topology%n_atoms - merge(0.0_real64, 3.0_real64, centre_moves)
    self%n_group_freedom = 3.0_real64*self%topology%group_count() - merge(0.0_real64, 3.0_real64, centre_moves)
    if (rigid) self%n_freedom = self%n_freedom - self%topology%constraint_count()
    self%thermostat%n_freedom = max(1.0_real64, merge(self%n_group_freedom, self%n_freedom, bath%of_groups))
    call self%thermostat%take_from(self%kept%bath)
    self%split_forces = settings%dynamics%integrator == respa
    call prepare_barostat(self, settings)
  end subroutine prepare_ensemble

  !> Pistons as the control file says.
  subroutine prepare_barostat(self, settings)
    class(simulation_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(barostat_settings_t) :: wanted
    class(thermostat_t), allocatable :: bath
    select case (settings%ensemble%isotropy)
    case (isotropic)
      wanted%pistons%of_axis = 1
    case (semi_isotropic)
      wanted%pistons%of_axis = [1, 1, 2]
    case (anisotropic)
      wanted%pistons%of_axis = [1, 2, 3]
    case (area_fixed)
      wanted%pistons%of_axis = [0, 0, 1]
    end select
    wanted%pressure = settings%ensemble%pressure*atmosphere
    wanted%tau = settings%ensemble%pressure_relaxation_time
    wanted%compressibility = settings%ensemble%compressibility/atmosphere
    wanted%temperature = self%thermostat%temperature
    wanted%seed = self%thermostat%seed
    wanted%n_freedom = max(1.0_real64, self%n_group_freedom)
    wanted%n_groups = real(self%topology%group_count(), real64)
    ! The pistons have a thermostat of the kind of that of the atoms.
    allocate (bath, mold=self%thermostat)
    bath%thermostat_settings_t = self%thermostat%thermostat_settings_t
    bath%friction = settings%ensemble%piston_friction
    bath%n_freedom = wanted%pistons%number()
    call make_barostat(merge(settings%ensemble%barostat, no_barostat, settings%ensemble%changes_box()), wanted, bath, &
                       self%barostat)
    ! Where no run has made a move yet.
    if (.not. self%kept%largest_move > 0.0_real64) self%kept%largest_move = first_largest_move
    call self%barostat%take_from(self%kept)
  end subroutine prepare_barostat

  !> Thermostat and barostat as if nothing had happened yet.
  subroutine reset_ensemble(self)
    class(simulation_t), intent(inout) :: self
    self%kept%bath = chain_state_t()
    self%kept%piston_bath = chain_state_t()
    self%kept%strain_rate = 0.0_real64
    call self%thermostat%take_from(self%kept%bath)
    call self%barostat%take_from(self%kept)
  end subroutine reset_ensemble

  !> Whether a barostat changes the box; nothing does where no ensemble was prepared.
  pure logical function box_changes(self)
    type(simulation_t), intent(in) :: self
    box_changes = .false.
    if (allocated(self%barostat)) box_changes = self%barostat%changes_box()
  end function box_changes

  !> Hand the non-bonded options and parameters over.
  subroutine prepare_nonbonded(self, settings, alpha, options, error)
    class(simulation_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    real(real64), intent(in) :: alpha
    type(nonbonded_options_t), intent(out) :: options
    type(error_t), allocatable, intent(out) :: error
    type(lennard_jones_t) :: lj
    options%cutoff = settings%energy%cutoff
    options%switch_distance = settings%energy%switch_distance
    options%list_distance = self%pairlist_distance
    options%inner_buffer = self%inner_buffer
    options%rounding = self%rounding
    options%alpha = alpha
    options%table_order = settings%energy%table_order
    options%table_density = settings%energy%table_density
    if (settings%energy%memory == memory_saved) options%many_atoms = 0
    if (settings%energy%memory == memory_used) options%many_atoms = huge(options%many_atoms)
    options%vdw_form = vdw_switch
    if (settings%energy%force_switch) options%vdw_form = vdw_force_switch
    if (settings%energy%shift) options%vdw_form = vdw_shift
    if (self%is_vacuum) then
      options%vdw_form = vdw_cut
    else if (.not. self%sums_charges) then
      options%coulomb_shift = 1.0_real64/options%cutoff
    end if
    self%sums_dispersion = settings%energy%ewald_dispersion
    if (self%sums_dispersion) then
      options%vdw_form = vdw_pme
      if (allocated(settings%energy%dispersion_alpha)) then
        options%dispersion_alpha = settings%energy%dispersion_alpha
      else
        options%dispersion_alpha = dispersion_alpha(options%cutoff, settings%energy%dispersion_alpha_tolerance)
      end if
    end if
    allocate (lj%c6, source=self%topology%c6)
    allocate (lj%c12, source=self%topology%c12)
    allocate (lj%sigma, source=self%topology%sigma)
    allocate (lj%epsilon, source=self%topology%epsilon)
    self%type_root_c6 = lj%root_c6()
    call self%nonbonded%init(lj, self%topology%coulomb_constant, options, error)
  end subroutine prepare_nonbonded

  !> Energy of the van der Waals tail that cutoff and switching leave out, for a uniform density of atoms: 2 pi/V times
  !> the sum over atom pairs of the integral of (1 - S(r)) (c12/r^12 - c6/r^6) r^2.
  subroutine prepare_tail(self, settings)
    class(simulation_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    integer, parameter :: n_intervals = 2000
    real(real64) :: c6, c12, on, off, r, u, weight, integral6, integral12
    integer :: i
    call self%topology%total_c6_and_c12(c6, c12)
    on = settings%energy%switch_distance
    off = settings%energy%cutoff
    integral6 = off**(-3)/3.0_real64
    integral12 = off**(-9)/9.0_real64
    if (on < off) then
      do i = 0, n_intervals
        r = on + (off - on)*i/n_intervals
        u = (r**2 - on**2)/(off**2 - on**2)
        ! Simpson's rule; 1 - S = u^2 (3 - 2 u).
        weight = (off - on)/n_intervals/3.0_real64*merge(1.0_real64, merge(4.0_real64, 2.0_real64, mod(i, 2) == 1), &
                                                           i == 0 .or. i == n_intervals)
        integral6 = integral6 + weight*u**2*(3.0_real64 - 2.0_real64*u)*r**(-4)
        integral12 = integral12 + weight*u**2*(3.0_real64 - 2.0_real64*u)*r**(-10)
      end do
    end if
    self%tail_energy_volume = 2.0_real64*pi*(c12*integral12 - c6*integral6)
    self%tail_in_virial = settings%energy%tail == tail_in_energy_and_pressure
  end subroutine prepare_tail

  !> Bring atoms to their owners and make halo, lists and terms anew. The result depends only on where the atoms are:
  !> borders are evenly spaced.
  subroutine rebuild(self, error)
    class(simulation_t), intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    if (self%balances) then
      call self%grid%space_evenly()
      call follow_borders(self)
      self%may_move = .true.
    end if
    call self%redistribute(error)
  end subroutine rebuild

  !> Let the grids of reciprocal space know this rank's domain.
  subroutine follow_borders(self)
    type(simulation_t), intent(inout) :: self
    if (.not. self%sums_charges .or. self%pme_client%is_on) return
    call self%pme%set_domain(self%grid%lower/self%grid%box, self%grid%upper/self%grid%box)
    if (self%sums_dispersion) &
      call self%dispersion%set_domain(self%grid%lower/self%grid%box, self%grid%upper/self%grid%box)
  end subroutine follow_borders

  !> Move the borders to where the work of the present list says, and bring atoms to their owners. With `may_move`, after
  !> borders were evenly spaced, this is done over and over.
  subroutine rebalance(self, error)
    type(simulation_t), intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    real(real64), allocatable :: border(:, :)
    real(real64) :: least(3), width
    integer(int64), allocatable :: work(:)
    integer :: k, axis, first

    do k = 1, merge(first_moves, 1, self%may_move)
      call measure_work(self, work)
      if (k == 1 .and. self%may_move) self%imbalance(1) = self%imbalance(2)
      width = self%pairlist_distance + 2.0_real64*self%comm%maximum(self%atoms%group_extent()) + halo_reserve
      width = ghosts_within(self, width)
      least = width/max(1, ceiling(width/(self%grid%box/self%grid%dims)))
      border = self%grid%border
      first = 0
      do axis = 1, 3
        associate (n => self%grid%dims(axis))
          border(:n, axis) = balanced_borders(self%grid%border(:n, axis), real(work(first + 1:first + n), real64), &
                                              least(axis)/self%grid%box(axis))
          first = first + n
        end associate
      end do
      if (self%imbalance(2) > tolerated_imbalance .and. any(border /= self%grid%border)) then
        where (self%grid%dims == 1) least = 0.0_real64
        call self%grid%move_borders(border, least, error)
        if (allocated(error)) return
        call follow_borders(self)
      else if (k > 1) then
        exit
      end if
      call self%redistribute(error)
      if (allocated(error)) return
    end do
    self%may_move = .false.
    call measure_work(self, work)
  end subroutine rebalance

  !> Work of each slab of domains, x, then y, then z, and the imbalance of the ranks.
  subroutine measure_work(self, work)
    type(simulation_t), intent(inout) :: self
    integer(int64), allocatable, intent(out) :: work(:)
    integer(int64) :: mine
    integer :: axis, first
    if (self%material%is_on) then
      mine = self%material%n_pairs()
    else
      mine = self%nonbonded%listed_pairs() + int(pairs_per_atom, int64)*self%atoms%n_owned
    end if
    allocate (work(sum(self%grid%dims)), source=0_int64)
    first = 0
    do axis = 1, 3
      work(first + self%grid%coordinate(axis) + 1) = mine
      first = first + self%grid%dims(axis)
    end do
    call self%comm%sum(work)
    self%imbalance(2) = self%comm%maximum(real(mine, real64))*self%comm%n_ranks/ &
                        max(1.0_real64, real(sum(work(:self%grid%dims(1))), real64))
  end subroutine measure_work

  !> For the log: what moving the borders has done; empty where they do not move.
  function describe_balance(self) result(text)
    class(simulation_t), intent(in) :: self
    character(len=:), allocatable :: text
    character(len=120) :: line
    line = ""
    if (self%balances .and. self%imbalance(1) > 0.0_real64) &
      write (line, "(2(a,f0.3))") "load balance: largest over mean work of a rank ", self%imbalance(1), &
        " with even borders, now ", self%imbalance(2)
    text = trim(line)
  end function describe_balance

  !> Bring atoms to the owners that the present borders give them and make halo, lists and terms anew.
  subroutine redistribute(self, error)
    class(simulation_t), intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    real(real64), allocatable :: payload(:, :), ghost_position(:, :)
    integer(int64), allocatable :: ghost_id(:)
    real(real64) :: width
    integer :: i, n_carried

    call self%constraints%explain_failure(self%atoms%id, error)
    if (.not. allocated(error)) then
      do i = 1, self%atoms%n_owned
        if (all(abs(self%atoms%position(:, i)) < 1.0e9_real64)) cycle
        call fail(error, exit_bad_input, "atom "//to_text(self%atoms%id(i))//" (counted from 0) flew away at step "// &
                  to_text(self%step)//": the system is unstable, minimise it first or use a shorter timestep")
        exit
      end do
    end if
    call self%comm%agree(error)
    if (allocated(error)) return

    call self%nonbonded%forget_list()
    if (allocated(self%atoms%force)) deallocate (self%atoms%force)
    if (self%atoms%n_owned >= usual_many_atoms) call chromamd_trim_memory()
    call self%atoms%put_on_lattice()
    call self%atoms%wrap(self%grid)
    if (self%comm%n_ranks > 1) then
      n_carried = 0
      if (allocated(self%atoms%carried)) n_carried = size(self%atoms%carried, 1)
      allocate (payload(6 + n_carried, self%atoms%n_owned))
      payload(:3, :) = self%atoms%position
      payload(4:6, :) = self%atoms%velocity
      if (n_carried > 0) payload(7:, :) = self%atoms%carried
      call migrate(self%comm, self%grid, self%pairlist_distance, self%atoms%group_first, &
                   self%atoms%position(:, self%atoms%group_reference), self%atoms%id, payload, error)
      call self%comm%agree(error)
      if (allocated(error)) return
      self%atoms%position = payload(:3, :)
      self%atoms%velocity = payload(4:6, :)
      if (n_carried > 0) self%atoms%carried = payload(7:, :)
      call self%atoms%identify_owned(self%topology)
    end if
    call self%atoms%sort(self%grid, merge(maxval(self%grid%box)/open_sort_cells, sort_cell, self%is_open))
    call self%atoms%identify_owned(self%topology)

    if (box_changes(self)) then
      call fit_reach(self)
      if (.not. self%material%is_on) call self%nonbonded%set_reach(self%pairlist_distance, self%inner_buffer)
      if (self%tolerance%per_step > 0.0_real64) &
        self%list_limit = self%tolerance%limit(self%pairlist_distance - self%cutoff)
    end if
    if (any(self%grid%box < 2.0_real64*self%least_reach)) then
      call fail(error, exit_bad_input, "the box has shrunk to "//to_text(minval(self%grid%box))// &
                " angstrom, less than twice the pairlistdist: equilibrate at constant volume first or give a "// &
                "larger tau_p")
      return
    end if
    width = self%pairlist_distance + 2.0_real64*self%comm%maximum(self%atoms%group_extent())
    ! No more layers of domains than are needed.
    self%ghost_width = min(ghosts_within(self, width + min(halo_slack, halo_slack_share*minval(self%grid%box))), &
                           minval(self%grid%layers_within(ghosts_within(self, width))*self%grid%narrowest()))
    self%halo_width = self%ghost_width
    if (self%ownership%is_on) self%halo_width = 2.0_real64*(self%ghost_width - place_reserve(self))
    if (allocated(self%settled_place)) deallocate (self%settled_place)
    allocate (self%settled_place(3, self%atoms%n_groups))
    !$omp parallel do schedule(static)
    do i = 1, self%atoms%n_groups
      self%settled_place(:, i) = nint(self%atoms%position(:, self%atoms%group_reference(i))/(place_quantum*self%grid%box), &
                                      int32)
    end do
    !$omp end parallel do
    call self%timer%lap(in_list)
    call self%halo%build(self%comm, self%grid, self%ghost_width, self%atoms%group_first, self%atoms%group_reference, &
                         self%atoms%position, self%atoms%id, ghost_id, ghost_position, error)
    if (allocated(error)) return
    call self%timer%lap(in_communication)
    if (self%is_open) call check_extent(self, size(ghost_id), error)
    if (allocated(error)) return
    call self%atoms%add_ghosts(self%topology, ghost_id, ghost_position)
    if (self%ownership%is_on) call place_groups(self)
    call self%bonded%assign(self%comm, self%topology, self%atoms, self%grid%box, self%ownership, error)
    if (allocated(error)) return
    call self%constraints%assign(self%topology, self%atoms)
    call self%restraints%assign(self%atoms)
    if (self%pme_client%is_on) &
      call self%pme_client%take_atoms(self%atoms%charge(self%atoms%kind(:self%atoms%n_owned)), self%grid%lower/self%grid%box, &
                                      self%grid%upper/self%grid%box)
    call self%make_list()
  end subroutine redistribute

  !> Let all ranks know the places that decide who computes a pair.
  subroutine place_groups(self)
    type(simulation_t), intent(inout) :: self
    real(real64), allocatable :: value(:, :)
    associate (atoms => self%atoms)
      allocate (value(3, atoms%n_total))
      call self%ownership%set_domain(self%grid%lower/self%grid%box, self%grid%upper/self%grid%box)
      call self%ownership%place_owned(atoms%group_first, atoms%group_reference, atoms%position, self%grid%box, value)
      call self%halo%update_positions(atoms%n_owned, value, shifted=.false.)
      call self%ownership%place_ghosts(atoms%n_owned, value, atoms%position, self%grid%box)
    end associate
  end subroutine place_groups

  !> Whether the model still stands within the box, and with `is_vacuum` within the cutoff.
  subroutine check_extent(self, n_ghosts, error)
    type(simulation_t), intent(in) :: self
    integer, intent(in) :: n_ghosts
    type(error_t), allocatable, intent(out) :: error
    real(real64) :: extent
    extent = norm2(maxval(self%atoms%position, dim=2) - minval(self%atoms%position, dim=2))
    if (n_ghosts > 0) then
      call fail(error, exit_bad_input, "at step "//to_text(self%step)//" atoms have moved too far from where the input "// &
                "had them to go on without a periodic box: keep the model together, or start anew from bricks of a "// &
                "larger box")
    else if (self%is_vacuum .and. extent + halo_slack > self%cutoff) then
      call fail(error, exit_bad_input, "vacuum = YES needs a cutoffdist beyond the model, which measures "// &
                to_text(extent)//" angstrom at step "//to_text(self%step)//": give cutoffdist = "// &
                to_text(real(ceiling(1.5_real64*extent + 2.0_real64*halo_slack), real64))//" or more")
    end if
  end subroutine check_extent

  !> Make the pair list anew after atoms moved far, and all else too if the ghosts at hand no longer hold every atom
  !> within reach of an owned one: then `moved` is true, and owned atoms have a new order. What is done depends only on
  !> how the atoms moved since the last `rebuild`.
  subroutine renew_list(self, error, moved)
    class(simulation_t), intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    logical, intent(out) :: moved
    real(real64) :: reach2, worst2, unsettled
    integer :: g

    worst2 = 0.0_real64
    !$omp parallel do schedule(static) private(reach2) reduction(max: worst2)
    do g = 1, self%atoms%n_groups
      reach2 = sum((self%atoms%position(:, self%atoms%group_reference(g)) - &
                    place_quantum*self%grid%box*self%settled_place(:, g))**2)
      if (.not. reach2 < 1.0e18_real64) reach2 = 1.0e18_real64
      worst2 = max(worst2, reach2)
    end do
    !$omp end parallel do
    unsettled = self%atoms%group_extent() + sqrt(worst2)
    if (self%constraints%failed_atom > 0) unsettled = huge(unsettled)
    unsettled = self%comm%maximum(unsettled)
    ! Any two atoms within the list's reach now have reference atoms that were within the halo's width of each other.
    moved = 2.0_real64*unsettled > self%halo_width - self%pairlist_distance .or. self%may_move
    if (moved .and. self%balances) then
      call rebalance(self, error)
    else if (moved) then
      call self%redistribute(error)
    else
      call self%halo%update_positions(self%atoms%n_owned, self%atoms%position)
      call self%timer%lap(in_communication)
      call self%make_list()
    end if
  end subroutine renew_list

  !> Make the pair list of the present owned and ghost atoms. In dynamics the forces of before are of no use any more: they
  !> leave their room to what lists are made with.
  subroutine make_list(self)
    class(simulation_t), intent(inout) :: self
    if (allocated(self%atoms%force) .and. .not. self%is_at_rest) deallocate (self%atoms%force)
    if (self%material%is_on) then
      call self%material%rebuild(self%atoms%n_owned, self%atoms%n_total, self%atoms%position)
    else
      call self%nonbonded%rebuild(self%atoms%n_owned, self%atoms%n_total, self%atoms%position, self%atoms%kind, &
                                  self%atoms%charge, self%atoms%lj_type, self%atoms%id, self%bonded%exclusion_first, &
                                  self%bonded%exclusion_partner, self%ownership)
    end if
    ! They are kept there until atoms come to other owners.
    if (allocated(self%bonded%exclusion_first)) deallocate (self%bonded%exclusion_first, self%bonded%exclusion_partner)
    if (allocated(self%listed_place)) deallocate (self%listed_place)
    allocate (self%listed_place(3, self%atoms%n_owned))
    self%listed_parts = max(real(n_places, real64), 2.0_real64**exponent(self%grid%box/coarse_quantum))
    call note_places(self%atoms%position(:, :self%atoms%n_owned), self%listed_parts/self%grid%box, self%listed_place)
    if (self%atoms%n_owned >= usual_many_atoms) call chromamd_trim_memory()
    if (.not. allocated(self%atoms%force)) allocate (self%atoms%force(3, self%atoms%n_total))
    self%listed_step = self%step
    self%strain = 0.0_real64
    if (self%sums_dispersion) self%root_c6 = self%type_root_c6(self%atoms%lj_type)
    call self%timer%lap(in_list)
  end subroutine make_list

  !> Forces on owned atoms at their present positions, and this rank's part of the energies. With split forces those of
  !> reciprocal space are computed unless `slow` is present and false.
  subroutine compute_forces(self, want_energy, slow)
    class(simulation_t), target, intent(inout) :: self
    logical, intent(in) :: want_energy
    logical, intent(in), optional :: slow
    type(travelling_t) :: travelling
    logical :: with_reciprocal
    real(real64) :: virial(3, 3), tail
    integer :: axis, i
    with_reciprocal = self%sums_charges
    if (self%split_forces .and. present(slow)) with_reciprocal = with_reciprocal .and. slow
    self%mine%part = 0.0_real64
    self%mine%virial = 0.0_real64
    associate (atoms => self%atoms, part => self%mine%part)
      call self%halo%start_update(atoms%n_owned, atoms%position)
      if (.not. self%overlaps) call self%halo%finish_update(atoms%n_owned, atoms%position)
      call self%timer%lap(in_communication)
      !$omp parallel do schedule(static)
      do i = 1, size(atoms%force, 2)
        atoms%force(:, i) = 0.0_real64
      end do
      !$omp end parallel do
      if (with_reciprocal .and. self%pme_client%is_on) then
        call self%pme_client%start(atoms%position, want_energy)
      else if (with_reciprocal .and. self%overlaps) then
        call self%pme%start(atoms%n_owned, atoms%position, atoms%kind, atoms%charge, want_energy)
      end if
      call self%timer%lap(in_reciprocal)
      if (self%overlaps) then
        travelling%halo => self%halo
        travelling%pme => self%pme
        travelling%pme_client => self%pme_client
        call compute_pairs(self, want_energy, meets_owned, travelling)
        call compute_bonded(self, without_ghosts)
        call self%halo%finish_update(atoms%n_owned, atoms%position)
        call self%timer%lap(in_communication)
        call compute_bonded(self, with_ghosts)
        call compute_pairs(self, want_energy, meets_ghosts, travelling)
        call self%timer%move(travelling%seconds, in_real_space, in_reciprocal)
      else
        call compute_bonded(self)
        if (self%material%is_on) then
          call compute_material(self, part(is_vdw), virial, want_energy)
          self%mine%virial = self%mine%virial + virial
          call self%timer%lap(in_real_space)
        else
          call compute_pairs(self, want_energy)
        end if
      end if
      call self%restraints%compute(self%comm, atoms, self%grid%box, part(is_restraint), virial)
      self%mine%virial = self%mine%virial + virial
      if (self%overlaps) call self%halo%start_return(atoms%n_owned, atoms%force)
      call self%timer%lap(in_communication)
      if (with_reciprocal .and. self%split_forces) then
        if (allocated(self%slow_force)) deallocate (self%slow_force)
        allocate (self%slow_force(3, atoms%n_owned), source=0.0_real64)
        call compute_reciprocal(self, self%slow_force, want_energy)
      else if (with_reciprocal) then
        call compute_reciprocal(self, atoms%force, want_energy)
      end if
      call self%timer%lap(in_reciprocal)
      if (.not. self%overlaps) call self%halo%start_return(atoms%n_owned, atoms%force)
      call self%halo%finish_return(atoms%n_owned, atoms%force)
      call self%timer%lap(in_communication)
      if (self%comm%is_root()) then
        tail = self%tail_energy_volume/product(self%grid%box)
        tail = (tail + self%rounding%energy) - self%rounding%energy
        part(is_dispersion) = part(is_dispersion) + tail
        do axis = 1, 3
          if (self%tail_in_virial) self%mine%virial(axis, axis) = self%mine%virial(axis, axis) + tail
        end do
      end if
    end associate
  end subroutine compute_forces

  !> Add forces, energies and virial of the bonded terms, or of a part of them.
  subroutine compute_bonded(self, part)
    type(simulation_t), intent(inout) :: self
    integer, intent(in), optional :: part
    real(real64) :: energy(n_bonded_energies), virial(3, 3)
    call self%bonded%compute(self%atoms%position, self%atoms%force, energy, virial, part)
    self%mine%part(:n_bonded_energies) = self%mine%part(:n_bonded_energies) + energy
    self%mine%virial = self%mine%virial + virial
    call self%timer%lap(in_bonded)
  end subroutine compute_bonded

  !> The same of the pairs.
  subroutine compute_pairs(self, want_energy, part, travelling)
    type(simulation_t), intent(inout) :: self
    logical, intent(in) :: want_energy
    integer, intent(in), optional :: part
    type(travelling_t), intent(inout), optional :: travelling
    real(real64) :: vdw, elec, virial(3, 3)
    call self%nonbonded%compute(self%atoms%position, self%atoms%kind, self%atoms%charge, self%atoms%lj_type, &
                                self%atoms%force, vdw, elec, virial, want_energy, part, travelling)
    self%mine%part(is_vdw) = self%mine%part(is_vdw) + vdw
    self%mine%part(is_elec) = self%mine%part(is_elec) + elec
    self%mine%virial = self%mine%virial + virial
    call self%timer%lap(in_real_space)
  end subroutine compute_pairs

  !> Add the forces of the material to all local atoms.
  subroutine compute_material(self, energy, virial, want_energy)
    type(simulation_t), intent(inout) :: self
    real(real64), intent(out) :: energy, virial(3, 3)
    logical, intent(in) :: want_energy
    real(real64), allocatable :: value(:, :)
    real(real64) :: embedding
    associate (atoms => self%atoms, material => self%material)
      call material%place(atoms%position)
      if (material%is_embedded) then
        ! Densities to the owners, slopes of the embedding energy to the ghosts.
        allocate (value(3, atoms%n_total))
        call material%add_densities(value)
        call self%timer%lap(in_real_space)
        call self%halo%return_forces(atoms%n_owned, value)
        call self%timer%lap(in_communication)
        call material%embed(value, embedding)
        call self%timer%lap(in_real_space)
        call self%halo%update_positions(atoms%n_owned, value, shifted=.false.)
        call self%timer%lap(in_communication)
        call material%compute(want_energy, energy, value)
        energy = energy + embedding
      else
        call material%compute(want_energy, energy)
      end if
      call material%add_forces(atoms%position, want_energy, atoms%force, virial)
      if (.not. want_energy) energy = 0.0_real64
    end associate
  end subroutine compute_material

  !> Add the forces of reciprocal space to `force`, its energies and virial to this rank's parts. If work overlaps or ranks
  !> apart do it, it was begun already.
  subroutine compute_reciprocal(self, force, want_energy)
    type(simulation_t), intent(inout) :: self
    real(real64), intent(inout) :: force(:, :)
    logical, intent(in) :: want_energy
    real(real64) :: virial(3, 3)
    associate (atoms => self%atoms, part => self%mine%part)
      if (self%pme_client%is_on) then
        call self%pme_client%finish(force, part(is_reciprocal), virial)
      else
        if (.not. self%overlaps) call self%pme%start(atoms%n_owned, atoms%position, atoms%kind, atoms%charge, want_energy)
        call self%pme%finish(atoms%position, atoms%kind, atoms%charge, force, part(is_reciprocal), virial)
      end if
      self%mine%virial = self%mine%virial + virial
      if (.not. self%sums_dispersion) return
      call self%dispersion%compute(atoms%n_owned, atoms%position, atoms%kind, self%root_c6, force, part(is_dispersion), virial, &
                                   want_energy)
      self%mine%virial = self%mine%virial + virial
    end associate
  end subroutine compute_reciprocal

  !> Scale the box along x, y and z, and with it the centres of mass of the constraint groups.
  subroutine scale_box(self, factor)
    class(simulation_t), intent(inout) :: self
    real(real64), intent(in) :: factor(3)
    real(real64) :: shift(3), edges(3), image(3)
    integer :: g, i, a, b
    if (all(factor == 1.0_real64)) return
    edges = self%rounding%on_lattice(factor*self%grid%box)
    associate (atoms => self%atoms)
      !$omp parallel do schedule(static) private(i, a, b, shift, image)
      do g = 1, atoms%n_groups
        a = atoms%group_first(g)
        b = atoms%group_first(g + 1) - 1
        shift = 0.0_real64
        do i = a + 1, b
          shift = shift + atoms%mass(atoms%kind(i))*(atoms%position(:, i) - atoms%position(:, a))
        end do
        ! By the image in the box, so that it does not matter in which the rank sees the group.
        image = floor(atoms%position(:, a)/self%grid%box)
        shift = atoms%position(:, a) - image*self%grid%box + shift/sum(atoms%mass(atoms%kind(a:b)))
        shift = self%rounding%on_lattice((factor - 1.0_real64)*shift) + image*(edges - self%grid%box)
        do i = a, b
          atoms%position(:, i) = atoms%position(:, i) + shift
        end do
      end do
      !$omp end parallel do
    end associate
    self%strain = self%strain + maxval(abs(log(factor)))
    self%halo_width = self%halo_width*min(1.0_real64, minval(factor))
    call self%set_box(edges)
  end subroutine scale_box

  !> Give the box other edges (angstrom) and leave the atoms where they are.
  subroutine set_box(self, box)
    class(simulation_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    call self%grid%set_box(box)
    call self%halo%set_box(box)
    if (self%pme_client%is_on) then
      call self%pme_client%set_box(box)
    else if (self%sums_charges) then
      call self%pme%set_box(box)
    end if
    if (self%sums_dispersion) call self%dispersion%set_box(box)
    call self%rounding%fit_box(box)
    self%atoms%rounding = self%rounding
  end subroutine set_box

  !> Whether atoms moved, or the box shrank, so much that the pair list must be made anew; or would after a strain of
  !> the box that is still to come.
  logical function list_is_due(self, coming_strain)
    class(simulation_t), intent(in) :: self
    real(real64), intent(in), optional :: coming_strain
    real(real64) :: strain
    real(real64) :: farthest, mean_square, lost
    strain = self%strain
    if (present(coming_strain)) strain = strain + coming_strain
    lost = strain*self%pairlist_distance
    if (.not. self%tolerance%per_step > 0.0_real64) then
      list_is_due = self%largest_displacement() > self%allowed_displacement - 0.5_real64*lost
      return
    end if
    call measure_displacements(self, farthest, mean_square)
    list_is_due = farthest > self%pairlist_distance - self%cutoff - lost .or. &
                  .not. self%list_limit%keeps(mean_square, int(self%step - self%listed_step), lost)
  end function list_is_due

  !> Largest distance of any atom of all ranks from where it was when the pair list was made; huge when something
  !> failed.
  real(real64) function largest_displacement(self) result(largest)
    class(simulation_t), intent(in) :: self
    real(real64) :: mean_square
    call measure_displacements(self, largest, mean_square)
  end function largest_displacement

  !> Largest displacement of the atoms of all ranks since the pair list was made (angstrom; huge when something failed)
  !> and the mean of the squares (angstrom^2), which depends neither on threads nor on ranks.
  subroutine measure_displacements(self, largest, mean_square)
    class(simulation_t), intent(in) :: self
    real(real64), intent(out) :: largest, mean_square
    real(real64) :: worst2
    integer(int64) :: sum2(3)
    call measure_moves(self%atoms%position(:, :self%atoms%n_owned), self%listed_parts/self%grid%box, self%listed_place, &
                       worst2, sum2)
    if (self%constraints%failed_atom > 0) worst2 = 1.0e18_real64
    largest = self%comm%maximum(sqrt(worst2))
    mean_square = 0.0_real64
    if (.not. self%tolerance%per_step > 0.0_real64) return
    call self%comm%sum(sum2)
    mean_square = sum((self%grid%box/self%listed_parts)**2*sum2)/self%topology%n_atoms
  end subroutine measure_displacements

  !> Sum the energies over all ranks, with the kinetic energies of the present velocities.
  function sum_energies(self) result(total)
    class(simulation_t), intent(in) :: self
    type(energies_t) :: total
    real(real64) :: values(n_energies + 18), momentum(3), mass, centre(3), force(3)
    real(real64), allocatable :: block_sums(:, :)
    integer :: g, i, block, first
    associate (atoms => self%atoms)
      total = self%mine
      allocate (block_sums(8, (atoms%n_groups + groups_per_block - 1)/groups_per_block))
      !$omp parallel do schedule(static) private(g, i, first, momentum, mass, centre, force)
      do block = 1, size(block_sums, 2)
        associate (kinetic => block_sums(1, block), force2 => block_sums(2, block), &
                   group_kinetic => block_sums(3:5, block), inner_virial => block_sums(6:8, block))
          block_sums(:, block) = 0.0_real64
          do g = (block - 1)*groups_per_block + 1, min(atoms%n_groups, block*groups_per_block)
            momentum = 0.0_real64
            mass = 0.0_real64
            centre = 0.0_real64
            first = atoms%group_first(g)
            do i = first, atoms%group_first(g + 1) - 1
              mass = mass + atoms%mass(atoms%kind(i))
              centre = centre + atoms%mass(atoms%kind(i))*(atoms%position(:, i) - atoms%position(:, first))
            end do
            centre = centre/mass
            do i = first, atoms%group_first(g + 1) - 1
              if (.not. self%is_at_rest) then
                kinetic = kinetic + rounded(0.5_real64*atoms%mass(atoms%kind(i))*sum(atoms%velocity(:, i)**2)/acceleration_unit)
                momentum = momentum + atoms%mass(atoms%kind(i))*atoms%velocity(:, i)
              end if
              force = atoms%force(:, i)
              if (self%split_forces) force = force + self%slow_force(:, i)
              inner_virial = inner_virial + rounded((atoms%position(:, i) - atoms%position(:, first) - centre)*force)
              force2 = force2 + rounded(sum(force**2))
            end do
            group_kinetic = group_kinetic + rounded(0.5_real64*momentum**2/mass/acceleration_unit)
          end do
        end associate
      end do
      !$omp end parallel do
      values(:n_energies) = total%part
      values(n_energies + 1:n_energies + 9) = reshape(total%virial, [9])
      values(n_energies + 10:n_energies + 17) = sum(block_sums, dim=2)
      values(n_energies + 18) = total%half_kick
      call self%comm%sum(values)
      total%part = values(:n_energies)
      total%virial = reshape(values(n_energies + 1:n_energies + 9), [3, 3])
      total%kinetic = values(n_energies + 10)
      total%force2 = values(n_energies + 11)
      total%group_kinetic = values(n_energies + 12:n_energies + 14)
      total%inner_virial = values(n_energies + 15:n_energies + 17)
      total%half_kick = values(n_energies + 18)
      total%box = self%grid%box
      if (allocated(self%thermostat)) &
        total%bath = self%thermostat%conserved_part() + self%barostat%conserved_part(product(self%grid%box))
    end associate
  contains
    elemental real(real64) function rounded(x)
      real(real64), intent(in) :: x
      rounded = (x + self%rounding%energy) - self%rounding%energy
    end function rounded
  end function sum_energies

end module simulation
