!> How a simulation starts: topology, box and domains, and the atoms from bricks or from restart files.
module start
  use base_kinds, only: int64, real64
  use base_box_shape, only: box_shape_t
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, fail
  use base_text, only: to_text
  use bricks, only: brick_list_t
  use checkpoint, only: resume
  use comm_torus_map, only: map_to_torus
  use neighbour_lists, only: bond_slack, halo_slack, outer_buffer
  use open_box, only: open_edges, open_filling, open_origin
  use restart, only: restart_t
  use settings, only: isotropic, settings_t
  use setup, only: read_domain
  use simulation, only: simulation_t
  use solute_scaling, only: separate_solute
  use topology, only: topology_t
  implicit none
  private
  public :: start_from_bricks, start_from_restart, start_from_files, read_topology, box_of, place_in_box, origin_of, &
            check_restart, make_grid

contains

  !> Take the atoms of this rank's domain from the bricks; velocities are zero.
  subroutine start_from_bricks(sim, settings, error)
    class(simulation_t), intent(inout) :: sim
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(brick_list_t) :: list
    type(box_shape_t) :: shape
    integer(int64) :: total(1)
    integer :: n_read
    call read_topology(sim, settings, error)
    if (allocated(error)) return
    call list%read(settings%input%shards, error)
    call sim%comm%agree(error)
    if (allocated(error)) return
    if (list%n_atoms /= sim%topology%n_atoms) then
      call fail(error, exit_bad_input, settings%input%shards//": has "//to_text(list%n_atoms)// &
                " atoms, "// &
                settings%input%topology//" has "//to_text(sim%topology%n_atoms)// &
                  ": give files of the same build")
      return
    end if
    if (.not. settings%boundary%is_open) shape = list%shape
    call make_grid(sim, settings, box_of(settings, sim%topology, list%box), shape, [0, 0, 0], sim%comm%rank, &
                   sim%comm%n_ranks, error)
    if (allocated(error)) return
    call read_domain(sim%grid, sim%comm%rank, sim%topology, list, sim%atoms%id, sim%atoms%position, n_read, error, &
                     origin_of(sim%is_open, sim%grid%box))
    call sim%comm%agree(error)
    if (allocated(error)) return
    total = size(sim%atoms%id, kind=int64)
    call sim%comm%sum(total)
    if (total(1) /= sim%topology%n_atoms) &
      call fail(error, exit_corrupt_file, "the bricks give "//to_text(total(1))// &
                " atoms to the domains, the topology has "//to_text(sim%topology%n_atoms)// &
                ": shards and topology do not belong together")
    call sim%comm%agree(error)
    if (allocated(error)) return
    allocate (sim%atoms%velocity(3, size(sim%atoms%id)), source=0.0_real64)
    call place_in_box(sim%is_open, sim%grid%box, sim%atoms%position)
    call sim%atoms%identify_owned(sim%topology)
    sim%time = settings%dynamics%initial_time
  end subroutine start_from_bricks

  !> Take atoms, velocities, step and time from the restart files of an equal number of ranks.
  subroutine start_from_restart(sim, settings, error)
    class(simulation_t), intent(inout) :: sim
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(restart_t) :: saved
    call start_from_files(sim, settings, settings%input%restart, saved, error)
  end subroutine start_from_restart

  !> The same from the files of a pattern `name`; `saved` has given its atoms away.
  subroutine start_from_files(sim, settings, name, saved, error)
    class(simulation_t), intent(inout) :: sim
    type(settings_t), intent(in) :: settings
    character(len=*), intent(in) :: name
    type(restart_t), intent(out) :: saved
    type(error_t), allocatable, intent(out) :: error
    integer(int64) :: sums(2)
    call read_topology(sim, settings, error)
    if (allocated(error)) return
    call saved%read(name, sim%comm%rank, sim%comm%n_ranks, error)
    call sim%comm%agree(error)
    if (.not. allocated(error) .and. size(settings%comm%torus) > 0) then
      call place_on_torus(sim, settings, saved%dims, saved%box, error)
      if (.not. allocated(error)) &
        call saved%read(name, sim%comm%rank, sim%comm%n_ranks, error)
      call sim%comm%agree(error)
    end if
    if (allocated(error)) return
    if (saved%n_system /= sim%topology%n_atoms) &
      call fail(error, exit_bad_input, name//": is of a system of "// &
                to_text(saved%n_system)// &
                " atoms, "//settings%input%topology//" has "//to_text(sim%topology%n_atoms)// &
                ": give files of the same build")
    call sim%comm%agree(error)
    if (allocated(error)) return
    sums = [size(saved%id, kind=int64), saved%step]
    call sim%comm%sum(sums)
    if (sums(1) /= sim%topology%n_atoms .or. sums(2) /= saved%step*sim%comm%n_ranks) &
      call fail(error, exit_corrupt_file, name// &
                ": the files of the ranks are not of the same step; start from another restart")
    call sim%comm%agree(error)
    if (allocated(error)) return
    call check_restart(settings, saved, error)
    if (allocated(error)) return
    call make_grid(sim, settings, saved%box, saved%shape, saved%dims, sim%comm%rank, sim%comm%n_ranks, error)
    if (allocated(error)) return
    call resume(sim, saved)
  end subroutine start_from_files

  !> Take the rank whose domain has its neighbours on near nodes.
  subroutine place_on_torus(sim, settings, dims, box, error)
    class(simulation_t), intent(inout) :: sim
    type(settings_t), intent(in) :: settings
    integer, intent(in) :: dims(3)
    real(real64), intent(in) :: box(3)
    type(error_t), allocatable, intent(out) :: error
    integer, allocatable :: process(:)
    real(real64) :: width
    if (mod(int(sim%comm%n_ranks, int64), product(int(settings%comm%torus, int64))) /= 0) then
      call settings%refuse("COMM", "torus", "has "//to_text(product(int(settings%comm%torus, int64)))//" nodes, and "// &
                          to_text(int(sim%comm%n_ranks, int64))//" ranks cannot be dealt to them evenly", error)
    end if
    if (allocated(error)) return
    width = settings%energy%list_distance
    if (settings%comm%midpoint) width = 0.5_real64*width
    call map_to_torus(dims, settings%comm%torus, box/dims, width, process, sim%hops)
    call sim%comm%reorder(findloc(process, sim%comm%rank, dim=1) - 1)
  end subroutine place_on_torus

  !> The topology, with parameters of its own for a solute, and the masses that the control file asks for.
  subroutine read_topology(sim, settings, error)
    class(simulation_t), intent(inout) :: sim
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    logical :: fits
    call sim%topology%read(settings%input%topology, error)
    call sim%comm%agree(error)
    if (.not. allocated(error) .and. settings%solute%group > 0) call separate_solute(sim%topology, settings, error)
    if (allocated(error) .or. .not. settings%dynamics%heavy_hydrogens) return
    associate (dynamics => settings%dynamics)
      call sim%topology%repartition_hydrogen_mass(dynamics%hydrogen_ratio, dynamics%lone_hydrogen_ratio, &
                                                   dynamics%heavy_water_hydrogens, fits)
    end associate
    if (.not. fits) call settings%refuse("DYNAMICS", "hmr_ratio", "makes a heavy atom lighter than its hydrogens", error)
  end subroutine read_topology

  !> Edges (angstrom) of the box for bricks in a box with edges `box`.
  function box_of(settings, topology, box) result(edges)
    type(settings_t), intent(in) :: settings
    type(topology_t), intent(in) :: topology
    real(real64), intent(in) :: box(3)
    real(real64) :: edges(3)
    edges = box
    if (settings%boundary%is_open) &
      edges = open_edges(box, max(settings%energy%list_distance, &
                                  settings%energy%cutoff + outer_buffer) + halo_slack + &
                              2.0_real64*bond_slack*topology%longest_constraint())
  end function box_of

  !> Bring positions of bricks, (3, atoms), to where they lie in the box (angstrom, both).
  subroutine place_in_box(is_open, box, position)
    logical, intent(in) :: is_open
    real(real64), intent(in) :: box(3)
    real(real64), intent(inout) :: position(:, :)
    if (is_open) position = position + spread(open_origin(box), 2, size(position, 2))
  end subroutine place_in_box

  !> Where the origin of bricks lies in a box with these edges (angstrom, both).
  pure function origin_of(is_open, box) result(origin)
    logical, intent(in) :: is_open
    real(real64), intent(in) :: box(3)
    real(real64) :: origin(3)
    origin = 0.0_real64
    if (is_open) origin = open_origin(box)
  end function origin_of

  !> Whether the restart has a periodic box if and only if the control file wants one.
  subroutine check_restart(settings, saved, error)
    type(settings_t), intent(in) :: settings
    type(restart_t), intent(in) :: saved
    type(error_t), allocatable, intent(out) :: error
    if (saved%is_open .and. .not. settings%boundary%is_open) then
      call settings%refuse("BOUNDARY", "type", "contradicts the restart files, which have no periodic box; give NOBC", error)
    else if (.not. saved%is_open .and. settings%boundary%is_open) then
      call settings%refuse("BOUNDARY", "type", "contradicts the restart files, which have a periodic box: run chromamd "// &
                          "setup with type = NOBC from the bricks", error)
    end if
  end subroutine check_restart

  !> Cut the box (edges in angstrom, `shape`: how they lean), for rank `rank` of `n_ranks`; `saved_dims`: the domains of
  !> restart files, 0 where there are none.
  subroutine make_grid(sim, settings, box, shape, saved_dims, rank, n_ranks, error)
    class(simulation_t), intent(inout) :: sim
    type(settings_t), intent(in) :: settings
    real(real64), intent(in) :: box(3)
    type(box_shape_t), intent(in) :: shape
    integer, intent(in) :: saved_dims(3), rank, n_ranks
    type(error_t), allocatable, intent(out) :: error
    real(real64) :: width, edges(3)
    integer :: dims(3)
    sim%is_open = settings%boundary%is_open
    if (settings%energy%vacuum .and. n_ranks > 1) then
      call settings%refuse("ENERGY", "vacuum", "lets every atom meet every other, which takes one domain; use one rank "// &
                           "and several threads (OMP_NUM_THREADS)", error)
      return
    end if
    call check_shape(settings, box, shape, error)
    if (.not. allocated(error)) call choose_domains(settings, box, shape, saved_dims, dims, error)
    if (allocated(error)) return
    edges = box
    if (settings%energy%deterministic) then
      call sim%rounding%switch_on(box)
      sim%atoms%rounding = sim%rounding
      edges = sim%rounding%on_lattice(box)
    end if
    width = settings%energy%list_distance + 2.0_real64*bond_slack*sim%topology%longest_constraint()
    if (settings%comm%midpoint) width = 0.5_real64*width
    sim%lists%balance%is_on = settings%boundary%balances_load .and. n_ranks > 1
    sim%field%shared%ownership%is_on = settings%comm%midpoint
    call sim%grid%create(rank, n_ranks, edges, dims, width, error, open_filling(sim%is_open), shape)
    if (allocated(error)) return
    call sim%lists%choose_reach(settings, sim%system_state_t, sim%field)
  end subroutine make_grid

  !> Whether a triclinic box is one that all parts of the program know.
  subroutine check_shape(settings, box, shape, error)
    type(settings_t), intent(in) :: settings
    real(real64), intent(in) :: box(3)
    type(box_shape_t), intent(in) :: shape
    type(error_t), allocatable, intent(out) :: error
    if (.not. shape%leans) return
    if (.not. shape%is_compact(box)) then
      call fail(error, exit_bad_input, "edges of the triclinic box lean by more than those before them are long: "// &
                "give the same lattice by its shortest edges, as gmx editconf and chromabuild import write it")
    else if (settings%ensemble%changes_box() .and. settings%ensemble%isotropy /= isotropic) then
      call settings%refuse("ENSEMBLE", "isotropy", "must be ISO in a triclinic box, whose shape stays", error)
    else if (settings%has_material()) then
      call fail(error, exit_bad_input, "a material needs a rectangular box, and this one is triclinic")
    end if
  end subroutine check_shape

  !> Domains along x, y and z that the settings or the restart files say, 0 = automatic, if the box is what they say.
  subroutine choose_domains(settings, box, shape, saved_dims, dims, error)
    type(settings_t), intent(in) :: settings
    real(real64), intent(in) :: box(3)
    type(box_shape_t), intent(in) :: shape
    integer, intent(in) :: saved_dims(3)
    integer, intent(out) :: dims(3)
    type(error_t), allocatable, intent(out) :: error
    character(len=1), parameter :: axis_name(3) = ["x", "y", "z"]
    real(real64) :: wanted_box
    integer :: axis
    dims = settings%boundary%domains
    if (shape%leans .and. shape%shortest_translation(box) < 2.0_real64*settings%energy%list_distance) then
      call settings%refuse("ENERGY", "pairlistdist", "must not exceed half the distance between images in this box, "// &
                           "which is "//to_text(shape%shortest_translation(box))//" angstrom", error)
      return
    end if
    do axis = 1, 3
      wanted_box = settings%boundary%box(axis)
      if (wanted_box > 0.0_real64 .and. abs(wanted_box - box(axis)) > 1.0e-3_real64) then
        call settings%refuse("BOUNDARY", "box_size_"//axis_name(axis), "differs from the box of the input, "// &
                             to_text(box(axis))//" angstrom", error)
        return
      end if
      if (.not. shape%leans .and. box(axis) < 2.0_real64*settings%energy%list_distance) then
        call settings%refuse("ENERGY", "pairlistdist", "must not exceed half the box, which is "//to_text(box(axis))// &
                             " angstrom along "//axis_name(axis), error)
        return
      end if
      if (saved_dims(axis) == 0) cycle
      if (dims(axis) > 0 .and. dims(axis) /= saved_dims(axis)) then
        call settings%refuse("BOUNDARY", "domain_"//axis_name(axis), "differs from the restart files, which have "// &
                             to_text(saved_dims(axis))//" domains along "//axis_name(axis), error)
        return
      end if
      dims(axis) = saved_dims(axis)
    end do
  end subroutine choose_domains

end module start
