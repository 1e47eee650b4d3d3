!> The forces of a system with every way of exchanging ghosts in one process per rank: `halo_driver CONTROL`, as
!> for `chromamd energy` from bricks. For every pattern, transport and message combining, rank by rank, prints
!>
!>     PLAN pattern transport combined rank links messages partners bytes atoms ghosts same difference
!>
!> same: whether the forces have the bits of the first plan of this pattern; difference: the largest of a component
!> from the first of all, over the largest component. Further `DOMAINS nx ny nz width`, `CHOSEN pattern transport` of the
!> planner, `RESULT` with the energy and three sums of forces weighted by atom, and what the counters say of too many
!> atoms.
program halo_driver
  use, intrinsic :: iso_fortran_env, only: output_unit
  use base_kinds, only: int64, real64
  use settings, only: settings_t
  use settings_reader, only: read_settings
  use energies, only: energies_t
  use base_error, only: error_t
  use comm_halo, only: check_capacity, halo_traffic_t, pattern_names
  use comm_transports, only: transport_names
  use simulation, only: simulation_t
  implicit none
  type(simulation_t) :: sim
  type(settings_t) :: settings
  type(error_t), allocatable :: error
  type(energies_t) :: total
  real(real64), allocatable :: first_force(:, :), pattern_force(:, :)
  real(real64) :: result(4)
  character(len=512) :: path
  integer :: pattern, transport, k, i

  call sim%comm%start()
  call sim%timer%start()
  call get_command_argument(1, path)
  call read_settings(trim(path), "energy", settings, error)
  call stop_on(error)
  call sim%start_from_bricks(settings, error)
  call stop_on(error)
  call sim%prepare_forces(settings, .false., error)
  call stop_on(error)
  do pattern = 1, size(pattern_names)
    if (allocated(pattern_force)) deallocate (pattern_force)
    do transport = 1, size(transport_names)
      ! All in one message, and (of the first pattern) a message from every place.
      do k = 0, merge(1, 0, pattern == 1)
        sim%halo%options%pattern = pattern
        sim%halo%options%transport = transport
        sim%halo%options%combine = k == 0
        call evaluate()
        call report()
      end do
    end do
  end do
  call sim%halo%destroy()
  sim%halo%options%pattern = 0
  sim%halo%options%transport = 0
  sim%halo%options%combine = .true.
  sim%halo%options%time_transports = .true.
  call evaluate()
  total = sim%sum_energies()
  result(1) = total%potential()
  result(2:) = 0.0_real64
  do i = 1, sim%atoms%n_owned
    result(2:) = result(2:) + sin(1.0_real64 + sim%atoms%id(i))*sim%atoms%force(:, i)
  end do
  call sim%comm%sum(result(2:))
  if (sim%comm%is_root()) then
    write (output_unit, "(a,3(1x,i0),1x,es23.15)") "DOMAINS", sim%grid%dims, sim%ghost_width
    write (output_unit, "(a,4es24.15)") "RESULT", result
    write (output_unit, "(4a)") "CHOSEN ", trim(pattern_names(sim%halo%pattern)), " ", &
      trim(transport_names(sim%halo%transport))
    call check_capacity(3000000000_int64, 5_int64, error)
    write (output_unit, "(2a)") "LOCAL ", error%message
    call check_capacity(5_int64, 3000000000_int64, error)
    write (output_unit, "(2a)") "SENT ", error%message
    call check_capacity(700000000_int64, 700000000_int64, error)
    write (output_unit, "(a,l1)") "REFUSED ", allocated(error)
  end if
  call sim%halo%destroy()
  call sim%comm%finish()

contains

  !> Lists and forces with the present options. The halo is built twice, and exchanged more often than windows have
  !> slots.
  subroutine evaluate()
    integer :: repeat
    call sim%halo%destroy()
    do repeat = 1, 2
      call sim%rebuild(error)
      call stop_on(error)
    end do
    do repeat = 1, 5
      call sim%halo%update_positions(sim%atoms%n_owned, sim%atoms%position)
    end do
    sim%atoms%force = 0.0_real64
    call sim%halo%return_forces(sim%atoms%n_owned, sim%atoms%force)
    call sim%compute_forces(.true.)
  end subroutine evaluate

  subroutine report()
    type(halo_traffic_t) :: sent
    real(real64) :: force(3, sim%atoms%n_owned), difference
    logical :: same
    integer :: rank

    force = sim%atoms%force(:, :sim%atoms%n_owned)
    if (.not. allocated(first_force)) first_force = force
    if (.not. allocated(pattern_force)) pattern_force = force
    same = all(force == pattern_force)
    difference = maxval(abs(force - first_force))/sim%comm%maximum(maxval(abs(first_force)))
    sent = sim%halo%traffic()
    do rank = 0, sim%comm%n_ranks - 1
      call sim%comm%barrier()
      if (rank /= sim%comm%rank) cycle
      write (output_unit, "(4a,l2,7(1x,i0),l2,es12.4)") "PLAN ", trim(pattern_names(pattern)), " ", &
        trim(transport_names(transport)), sim%halo%options%combine, rank, sent%n_links, sent%n_messages, &
        sent%n_partners, sent%n_bytes, sent%n_atoms, sim%atoms%n_total - sim%atoms%n_owned, same, difference
      flush (output_unit)
    end do
  end subroutine report

  subroutine stop_on(error)
    type(error_t), allocatable, intent(inout) :: error
    call sim%comm%agree(error)
    if (.not. allocated(error)) return
    if (sim%comm%is_root()) write (output_unit, "(2a)") "ERROR ", error%message
    call sim%comm%finish()
    stop 1
  end subroutine stop_on

end program halo_driver
