!> `chromamd setup`: one restart file a domain, from the shards, or from the restart files of another grid of domains.
!> Ranks share the domains out and hold one at a time, so that any number of ranks sets up any grid, and the memory of a
!> rank is bounded by a domain and the bricks that touch it.
module domain_setup
  use, intrinsic :: iso_fortran_env, only: output_unit
  use base_checksum, only: file_checksum
  use base_kinds, only: int64
  use brick_cache, only: brick_cache_t
  use bricks, only: brick_list_t
  use comm_communicator, only: communicator_t
  use settings, only: settings_t
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, fail
  use exact_state, only: read_exact_box, read_exact_state
  use restart, only: phase_dynamics, phase_fresh, restart_t, saved_ranks
  use setup_part, only: setup_part_t
  use setup, only: draw_velocities, read_domain, read_saved_domain
  use simulation, only: simulation_t
  use start, only: box_of, check_restart, make_grid, origin_of, place_in_box, read_topology
  use base_text, only: to_text
  implicit none
  private
  public :: set_up_domains

  !> Bricks that stay in memory for the next domain: one of 55 angstrom touches 8 to 12 of 100 angstrom.
  integer, parameter :: bricks_kept = 12
  !> What is counted.
  integer, parameter :: atoms_done = 1, bricks_read = 2, files_kept = 3, most_atoms = 4, n_counts = 4

contains

  !> Write [OUTPUT] rstfile for domain_x x domain_y x domain_z domains (0: as many as ranks), or for a part of them.
  subroutine set_up_domains(comm, settings, error)
    type(communicator_t), intent(in) :: comm
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(simulation_t) :: sim
    type(brick_list_t) :: list
    type(restart_t) :: first
    type(setup_part_t) :: part
    integer :: n_saved
    integer(int64) :: done(n_counts)

    sim%comm = comm
    call read_topology(sim, settings, error)
    if (allocated(error)) return
    if (settings%input%restart /= "") then
      call saved_ranks(settings%input%restart, n_saved, error)
      if (.not. allocated(error)) call first%read(settings%input%restart, 0, n_saved, error)
      if (allocated(first%id)) deallocate (first%id, first%position, first%velocity)
      if (.not. allocated(error)) call check_restart(settings, first, error)
      call check_count(settings, settings%input%restart, first%n_system, sim%topology%n_atoms, error)
    else
      n_saved = 0
      call list%read(settings%input%shards, error)
      if (settings%input%exact_state /= "") call read_exact_box(settings%input%exact_state, list%box)
      first%n_system = sim%topology%n_atoms
      first%phase = phase_fresh
      first%time = settings%dynamics%initial_time
      first%box = box_of(settings, sim%topology, list%box)
      if (.not. settings%boundary%is_open) first%shape = list%shape
      first%is_open = settings%boundary%is_open
      call check_count(settings, settings%input%shards, list%n_atoms, sim%topology%n_atoms, error)
    end if
    call part%choose(settings, domains_wanted(settings, comm%n_ranks))
    if (part%is_on .and. comm%is_root() .and. .not. allocated(error)) &
      call part%begin(settings, merge(first%checksum, checksum_of_start(settings), n_saved > 0), error)
    call comm%agree(error)
    if (allocated(error)) return

    call make_domains(sim, settings, list, first, n_saved, part, done, error)
    if (comm%is_root()) call part%finish()
    if (allocated(error)) return
    if (comm%is_root()) call report(sim, settings, part, done)
  end subroutine set_up_domains

  !> This rank's share of the domains of a part; files of the whole set get their names together, those of a part each when
  !> it is whole. `first`: what all files say, without atoms; `n_saved`: restart files to start from, 0: from bricks.
  subroutine make_domains(sim, settings, list, first, n_saved, part, done, error)
    type(simulation_t), intent(inout) :: sim
    type(settings_t), intent(in) :: settings
    type(brick_list_t), intent(in) :: list
    type(restart_t), intent(in) :: first
    integer, intent(in) :: n_saved
    type(setup_part_t), intent(inout) :: part
    !> Sums over the ranks; of the last the largest of this one.
    integer(int64), intent(out) :: done(n_counts)
    type(error_t), allocatable, intent(out) :: error
    type(restart_t) :: saved
    type(brick_cache_t) :: cache
    character(len=:), allocatable :: name
    integer(int64) :: n_atoms
    integer :: domain, n_domains, n_read
    cache%most = bricks_kept
    associate (comm => sim%comm)
      name = settings%output%restart
      n_domains = domains_wanted(settings, comm%n_ranks)
      done = 0
      do domain = part%first + comm%rank, part%last, comm%n_ranks
        call make_grid(sim, settings, first%box, first%shape, [0, 0, 0], domain, n_domains, error)
        if (allocated(error)) exit
        saved = first
        saved%dims = sim%grid%dims
        if (.not. part%keeps(domain, saved, n_atoms)) then
          n_read = 0
          if (n_saved > 0) then
            call read_saved_domain(sim%grid, domain, sim%topology, settings%input%restart, first, n_saved, saved, error)
          else
            call take_from_bricks(sim, settings, domain, list, cache, saved, n_read, error)
          end if
          if (.not. allocated(error)) call saved%write(name, domain, n_domains, error)
          if (part%is_on .and. .not. allocated(error)) call saved%put_in_place(name, domain, error)
          if (allocated(error)) exit
          n_atoms = size(saved%id, kind=int64)
          done(bricks_read) = done(bricks_read) + n_read
        end if
        done(atoms_done) = done(atoms_done) + n_atoms
        done(most_atoms) = max(done(most_atoms), n_atoms)
      end do
      done(files_kept) = part%n_kept
      call comm%agree(error)
      if (allocated(error)) call discard_parts()
      if (allocated(error)) return
      call comm%sum(done(:most_atoms - 1))
      if (part%is_all() .and. done(atoms_done) /= sim%topology%n_atoms) &
        call fail(error, exit_corrupt_file, "the input gives "//to_text(done(atoms_done))// &
                  " atoms to the domains, the topology has "//to_text(sim%topology%n_atoms)// &
                  ": they do not belong together")
      call comm%agree(error)
      if (.not. part%is_on) then
        do domain = comm%rank, n_domains - 1, comm%n_ranks
          if (.not. allocated(error)) call saved%put_in_place(name, domain, error)
        end do
      end if
      call comm%agree(error)
      if (allocated(error)) call discard_parts()
    end associate
  contains
    !> Remove what this rank has written and not put in its place.
    subroutine discard_parts()
      integer :: k
      do k = part%first + sim%comm%rank, part%last, sim%comm%n_ranks
        call saved%discard(name, k)
      end do
    end subroutine discard_parts
  end subroutine make_domains

  !> The atoms of a domain and their velocities; `n_read`: bricks read.
  subroutine take_from_bricks(sim, settings, domain, list, cache, saved, n_read, error)
    type(simulation_t), intent(in) :: sim
    type(settings_t), intent(in) :: settings
    integer, intent(in) :: domain
    type(brick_list_t), intent(in) :: list
    type(brick_cache_t), intent(inout) :: cache
    type(restart_t), intent(inout) :: saved
    integer, intent(out) :: n_read
    type(error_t), allocatable, intent(out) :: error
    logical :: moves
    call read_domain(sim%grid, domain, sim%topology, list, saved%id, saved%position, n_read, error, &
                     origin_of(sim%is_open, sim%grid%box), cache)
    if (allocated(error)) return
    allocate (saved%velocity(3, size(saved%id)))
    call draw_velocities(settings%dynamics%seed, settings%ensemble%temperature, sim%topology, saved%id, saved%velocity)
    if (settings%input%exact_state /= "") then
      call read_exact_state(settings%input%exact_state, sim%topology%n_atoms, saved%id, sim%grid, saved%position, &
                            saved%velocity, moves, error)
      if (allocated(error)) return
      if (moves) saved%phase = phase_dynamics
    end if
    call place_in_box(sim%is_open, sim%grid%box, saved%position)
  end subroutine take_from_bricks

  !> What was done, on standard output.
  subroutine report(sim, settings, part, done)
    type(simulation_t), intent(in) :: sim
    type(settings_t), intent(in) :: settings
    type(setup_part_t), intent(in) :: part
    integer(int64), intent(in) :: done(n_counts)
    character(len=:), allocatable :: grid
    integer :: dims(3)
    dims = sim%grid%dims
    ! A rank may have had nothing to do.
    if (part%is_on) dims = settings%boundary%domains
    grid = to_text(dims(1))//" x "//to_text(dims(2))//" x "//to_text(dims(3))//" domains"
    if (part%is_on) then
      write (output_unit, "(a)") "setup: "//to_text(done(atoms_done))//" of "//to_text(sim%topology%n_atoms)// &
        " atoms in domains "//to_text(part%first)//" to "//to_text(part%last)//" of "//grid//"; "// &
        to_text(done(files_kept))//" files were there"
    else
      write (output_unit, "(a)") "setup: "//to_text(sim%topology%n_atoms)//" atoms in "//grid
    end if
    write (output_unit, "(a)") "setup: "//to_text(done(bricks_read))//" bricks read, largest domain of rank 0 "// &
      to_text(done(most_atoms))//" atoms"
  end subroutine report

  !> Of the files that say where atoms are, where these are bricks.
  integer(int64) function checksum_of_start(settings) result(value)
    type(settings_t), intent(in) :: settings
    value = file_checksum(settings%input%shards)
    if (settings%input%exact_state /= "") value = ieor(value, file_checksum(settings%input%exact_state))
  end function checksum_of_start

  subroutine check_count(settings, path, n_input, n_topology, error)
    type(settings_t), intent(in) :: settings
    character(len=*), intent(in) :: path
    integer(int64), intent(in) :: n_input, n_topology
    type(error_t), allocatable, intent(inout) :: error
    if (allocated(error) .or. n_input == n_topology) return
    call fail(error, exit_bad_input, path//": has "//to_text(n_input)//" atoms, "// &
              settings%input%topology//" has "//to_text(n_topology)//": give files of the same build")
  end subroutine check_count

  !> As many as the control file asks for; where it leaves an axis free, one a rank.
  integer function domains_wanted(settings, n_ranks)
    type(settings_t), intent(in) :: settings
    integer, intent(in) :: n_ranks
    domains_wanted = n_ranks
    if (all(settings%boundary%domains > 0)) domains_wanted = product(settings%boundary%domains)
  end function domains_wanted

end module domain_setup
