!> `chromamd setup`: one restart file a domain, from the shards, or from the restart files of another grid of domains.
!> Ranks share the domains out and hold one at a time, so that any number of ranks sets up any grid, and the memory of a
!> rank is bounded by a domain and the bricks that touch it.
module domain_setup
  use, intrinsic :: iso_fortran_env, only: output_unit
  use base_kinds, only: int64, real64
  use bricks, only: brick_list_t
  use comm_communicator, only: communicator_t
  use settings, only: settings_t
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, fail
  use exact_state, only: read_exact_box, read_exact_state
  use restart, only: phase_dynamics, phase_fresh, restart_t, saved_ranks
  use setup, only: draw_velocities, read_domain, read_saved_domain
  use simulation, only: simulation_t
  use start, only: box_of, check_restart, make_grid, origin_of, place_in_box, read_topology
  use base_text, only: to_text
  implicit none
  private
  public :: set_up_domains

contains

  !> Write [OUTPUT] rstfile for domain_x x domain_y x domain_z domains (0: as many as ranks).
  subroutine set_up_domains(comm, settings, error)
    type(communicator_t), intent(in) :: comm
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(simulation_t) :: sim
    type(brick_list_t) :: list
    type(restart_t) :: first, saved
    character(len=:), allocatable :: name
    logical :: from_restart, moves
    real(real64) :: box(3)
    integer(int64) :: sums(2), most(1)
    integer :: domain, n_domains, n_saved, n_read

    from_restart = settings%input%restart /= ""
    name = settings%output%restart

    sim%comm = comm
    call read_topology(sim, settings, error)
    if (allocated(error)) return
    if (from_restart) then
      call saved_ranks(settings%input%restart, n_saved, error)
      if (.not. allocated(error)) call first%read(settings%input%restart, 0, n_saved, error)
      if (allocated(first%id)) deallocate (first%id, first%position, first%velocity)
      box = first%box
      if (.not. allocated(error)) call check_restart(settings, first, error)
      call check_count(settings, settings%input%restart, first%n_system, sim%topology%n_atoms, error)
    else
      call list%read(settings%input%shards, error)
      if (settings%input%exact_state /= "") call read_exact_box(settings%input%exact_state, list%box)
      box = box_of(settings, sim%topology, list%box)
      call check_count(settings, settings%input%shards, list%n_atoms, sim%topology%n_atoms, error)
    end if
    call comm%agree(error)
    if (allocated(error)) return

    n_domains = domains_wanted(settings, comm%n_ranks)
    sums = 0
    most = 0
    do domain = comm%rank, n_domains - 1, comm%n_ranks
      call make_grid(sim, settings, box, [0, 0, 0], domain, n_domains, error)
      if (allocated(error)) exit
      if (from_restart) then
        call read_saved_domain(sim%grid, domain, sim%topology, settings%input%restart, first, n_saved, &
                               saved, error)
      else
        saved%dims = sim%grid%dims
        saved%n_system = sim%topology%n_atoms
        saved%phase = phase_fresh
        saved%time = settings%dynamics%initial_time
        saved%box = box
        saved%is_open = sim%is_open
        call read_domain(sim%grid, domain, sim%topology, list, saved%id, saved%position, n_read, error, &
                         origin_of(sim%is_open, sim%grid%box))
        if (allocated(error)) exit
        if (allocated(saved%velocity)) deallocate (saved%velocity)
        allocate (saved%velocity(3, size(saved%id)))
        call draw_velocities(settings%dynamics%seed, settings%ensemble%temperature, &
                             sim%topology, saved%id, saved%velocity)
        if (settings%input%exact_state /= "") then
          call read_exact_state(settings%input%exact_state, sim%topology%n_atoms, saved%id, sim%grid%box, saved%position, &
                                saved%velocity, moves, error)
          if (allocated(error)) exit
          if (moves) saved%phase = phase_dynamics
        end if
        call place_in_box(sim%is_open, sim%grid%box, saved%position)
        sums(2) = sums(2) + n_read
      end if
      if (.not. allocated(error)) call saved%write(name, domain, n_domains, error)
      if (allocated(error)) exit
      sums(1) = sums(1) + size(saved%id)
      most = max(most, size(saved%id, kind=int64))
    end do
    call comm%agree(error)
    if (.not. allocated(error)) then
      call comm%sum(sums)
      if (sums(1) /= sim%topology%n_atoms) &
        call fail(error, exit_corrupt_file, "the input gives "//to_text(sums(1))// &
                  " atoms to the domains, the topology has "//to_text(sim%topology%n_atoms)// &
                  ": they do not belong together")
      call comm%agree(error)
    end if
    if (.not. allocated(error)) then
      do domain = comm%rank, n_domains - 1, comm%n_ranks
        if (.not. allocated(error)) call saved%put_in_place(name, domain, error)
      end do
      call comm%agree(error)
    end if
    if (allocated(error)) then
      do domain = comm%rank, n_domains - 1, comm%n_ranks
        call saved%discard(name, domain)
      end do
      return
    end if
    if (comm%is_root()) then
      write (output_unit, "(a)") "setup: "//to_text(sim%topology%n_atoms)//" atoms in "// &
        to_text(sim%grid%dims(1))//" x "//to_text(sim%grid%dims(2))//" x "//to_text(sim%grid%dims(3))//" domains"
      write (output_unit, "(a)") "setup: "//to_text(sums(2))//" bricks read, largest domain of rank 0 "// &
        to_text(most(1))//" atoms"
    end if
  end subroutine set_up_domains

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
