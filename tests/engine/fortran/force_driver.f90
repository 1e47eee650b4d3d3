!> Forces of the engine on a system from a raw stream, for the tests:
!>   mpirun -n P force_driver INPUT OUTPUT px py pz [instruction_set]
!> Input (native byte order), int32: atoms, types, exclusions, grid(3), spline order (0: no PME), van der Waals form,
!> order of tables (0: none); float64: box(3), cutoff, switch, list distance, alpha, Coulomb constant, screening of the
!> dispersion, density of tables; then float64 position(n,3), charge(n); int32 type(n) from 1; float64 c6(t,t), c12(t,t),
!> sigma(t), epsilon(t); int32 exclusion(e,2) from 1; float64 drift(n,3), by which atoms move between the making of the
!> list and the forces.
!> With van der Waals form 4 (vdw_pme) the reciprocal part is that of the dispersion instead of the charges.
!> Output, float64: energies of Lennard-Jones, real-space Coulomb, reciprocal; virials of real space and reciprocal (9
!> each); forces of real space and reciprocal (n,3 each); summed over ranks.
program force_driver
  use, intrinsic :: iso_fortran_env, only: error_unit
  use mpi_f08, only: MPI_Allreduce, MPI_Comm_rank, MPI_COMM_WORLD, MPI_Finalize, MPI_IN_PLACE, MPI_Init, MPI_REAL8, &
    MPI_SUM
  use base_kinds, only: real64
  use base_error, only: error_t
  use image_ghosts, only: image_ghosts_t
  use lennard_jones, only: lennard_jones_t
  use nonbonded, only: nonbonded_t
  use nonbonded_options, only: nonbonded_options_t
  use pair_forms, only: vdw_pme
  use pme, only: pme_t
  implicit none
  integer :: header(9), rank, dims(3), k, unit, highest
  real(real64) :: box(3), settings(7), energy(3), virial(3, 3, 2)
  real(real64), allocatable :: position(:, :), charge(:), drift(:, :), force(:, :, :), local_force(:, :), weight(:), root_c6(:)
  integer, allocatable :: lj_type(:), exclusion(:, :)
  character(len=512) :: word
  type(lennard_jones_t) :: lj
  type(nonbonded_options_t) :: options
  type(nonbonded_t) :: real_space
  type(pme_t) :: reciprocal
  type(image_ghosts_t) :: local
  type(error_t), allocatable :: error

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  do k = 1, 3
    call get_command_argument(2 + k, word)
    read (word, *) dims(k)
  end do
  highest = 3
  if (command_argument_count() > 5) then
    call get_command_argument(6, word)
    read (word, *) highest
  end if
  call get_command_argument(1, word)
  open (newunit=unit, file=trim(word), access="stream", form="unformatted", status="old", action="read")
  read (unit) header, box, settings
  associate (n => header(1), n_types => header(2), n_exclusions => header(3))
    allocate (position(3, n), charge(n), lj_type(n), exclusion(2, n_exclusions), drift(3, n), force(3, n, 2))
    allocate (lj%c6(n_types, n_types), lj%c12(n_types, n_types), lj%sigma(n_types), lj%epsilon(n_types))
  end associate
  read (unit) position, charge, lj_type, lj%c6, lj%c12, lj%sigma, lj%epsilon, exclusion, drift
  close (unit)

  options = nonbonded_options_t(cutoff=settings(1), switch_distance=settings(2), list_distance=settings(3), &
                                alpha=settings(4), vdw_form=header(8), dispersion_alpha=settings(6), &
                                table_order=header(9), table_density=settings(7))
  call real_space%init(lj, settings(5), options, error, highest_instruction_set=highest)
  call stop_on(error)
  call local%build(rank, dims, box, options%list_distance, position, exclusion)
  call real_space%rebuild(local%n_owned, local%n_total, local%position, local%atom, charge, lj_type, &
                          local%global_id, local%exclusion_first, local%exclusion_partner)
  local%position = local%position + drift(:, local%atom)
  force = 0.0_real64
  allocate (local_force(3, local%n_total), source=0.0_real64)
  ! Without energies first, to see that the forces are the same.
  call real_space%compute(local%position, local%atom, charge, lj_type, local_force, energy(1), energy(2), &
                          virial(:, :, 1), .false.)
  do k = 1, local%n_total
    force(:, local%atom(k), 2) = force(:, local%atom(k), 2) + local_force(:, k)
  end do
  local_force = 0.0_real64
  call real_space%compute(local%position, local%atom, charge, lj_type, local_force, energy(1), energy(2), &
                          virial(:, :, 1), .true.)
  do k = 1, local%n_total
    force(:, local%atom(k), 1) = force(:, local%atom(k), 1) + local_force(:, k)
  end do
  ! Loops of their own: as near to each other as the mixed program is to a direct sum.
  if (sum((force(:, :, 1) - force(:, :, 2))**2) > (1.0e-5_real64)**2*sum(force(:, :, 1)**2)) then
    write (error_unit, "(a)") "forces with and without energies differ"
    error stop 1
  end if

  energy(3) = 0.0_real64
  virial(:, :, 2) = 0.0_real64
  force(:, :, 2) = 0.0_real64
  if (header(7) > 0) then
    weight = charge
    if (header(8) == vdw_pme) then
      call reciprocal%init(MPI_COMM_WORLD, dims, box, header(4:6), header(7), settings(6), 1.0_real64, error, &
                           of_dispersion=.true.)
      root_c6 = lj%root_c6()
      weight = root_c6(lj_type)
    else
      call reciprocal%init(MPI_COMM_WORLD, dims, box, header(4:6), header(7), settings(4), settings(5), error)
    end if
    call stop_on(error)
    local_force = 0.0_real64
    call reciprocal%compute(local%n_owned, local%position, local%atom, weight, local_force, energy(3), virial(:, :, 2))
    do k = 1, local%n_owned
      force(:, local%atom(k), 2) = local_force(:, k)
    end do
  end if
  call MPI_Allreduce(MPI_IN_PLACE, energy, 3, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Allreduce(MPI_IN_PLACE, virial, 18, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Allreduce(MPI_IN_PLACE, force, size(force), MPI_REAL8, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0) then
    call get_command_argument(2, word)
    open (newunit=unit, file=trim(word), access="stream", form="unformatted", status="replace", action="write")
    write (unit) energy, virial, force
    close (unit)
  end if
  call MPI_Finalize()

contains

  subroutine stop_on(error)
    type(error_t), allocatable, intent(in) :: error
    if (.not. allocated(error)) return
    write (error_unit, "(a)") error%message
    error stop 3
  end subroutine stop_on

end program force_driver
