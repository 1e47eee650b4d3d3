!> Speed of the forces on a box of TIP3P-like water: pairs inside the cutoff per second, time to make the list, and PME.
!>   kernel_benchmark [waters_per_axis cutoff list_distance switch_distance instruction_set repeats table_order table_density
!>                     FILE]
!> Defaults: 22 waters an axis (31,944 atoms), 9, 10.5, 9 (no switch), best instruction set, 10, 0 (no tables), 20; forces
!> of the pairs are written to FILE, if given, as a stream of real64.
program kernel_benchmark
  use, intrinsic :: iso_fortran_env, only: int64
  use omp_lib, only: omp_get_max_threads
  use mpi_f08, only: MPI_COMM_WORLD, MPI_Finalize, MPI_Init
  use base_kinds, only: real64
  use pair_precision, only: precision_name
  use base_error, only: error_t
  use image_ghosts, only: image_ghosts_t
  use lennard_jones, only: lennard_jones_t
  use nonbonded, only: nonbonded_t
  use nonbonded_options, only: nonbonded_options_t
  use pair_forms, only: vdw_cut, vdw_switch
  use ewald_screening, only: ewald_alpha, pme_grid_size
  use pme, only: pme_t
  use water_box, only: make_water, water_lennard_jones
  implicit none
  real(real64), parameter :: coulomb_constant = 332.0637_real64
  real(real64) :: choice(8), box(3), virial(3, 3), energy(3), best(5), start
  real(real64), allocatable :: position(:, :), charge(:), force(:, :)
  integer, allocatable :: lj_type(:), exclusion(:, :)
  integer :: n_side, repeats, k, i, unit
  character(len=512) :: word
  type(lennard_jones_t) :: lj
  type(nonbonded_options_t) :: options
  type(nonbonded_t) :: real_space
  type(pme_t) :: reciprocal
  type(image_ghosts_t) :: local
  type(error_t), allocatable :: error
  real(real64) :: n_useful

  call MPI_Init()
  choice = [22.0_real64, 9.0_real64, 10.5_real64, 9.0_real64, 3.0_real64, 10.0_real64, 0.0_real64, 20.0_real64]
  do k = 1, min(8, command_argument_count())
    call get_command_argument(k, word)
    read (word, *) choice(k)
  end do
  n_side = nint(choice(1))
  repeats = nint(choice(6))
  call make_water(n_side, box, position, charge, lj_type, exclusion)
  lj = water_lennard_jones()
  options = nonbonded_options_t(cutoff=choice(2), switch_distance=choice(4), list_distance=choice(3), &
                                alpha=ewald_alpha(choice(2), 1.0e-5_real64), &
                                vdw_form=merge(vdw_switch, vdw_cut, choice(4) < choice(2)), &
                                table_order=nint(choice(7)), table_density=choice(8))
  call real_space%init(lj, coulomb_constant, options, error, nint(choice(5)))
  if (allocated(error)) error stop "bad options"
  call reciprocal%init(MPI_COMM_WORLD, [1, 1, 1], box, pme_grid_size(box, 1.2_real64), 4, options%alpha, &
    coulomb_constant, &
                       error)
  if (allocated(error)) error stop "bad grid"
  call local%build(0, [1, 1, 1], box, options%list_distance, position, exclusion)
  allocate (force(3, local%n_total), source=0.0_real64)

  best = huge(best)
  do k = 1, repeats
    start = seconds()
    call real_space%rebuild(local%n_owned, local%n_total, local%position, local%atom, charge, lj_type, &
                            local%global_id, local%exclusion_first, local%exclusion_partner)
    best(1) = min(best(1), seconds() - start)
    start = seconds()
    call real_space%compute(local%position, local%atom, charge, lj_type, force, energy(1), energy(2), virial, .false.)
    best(2) = min(best(2), seconds() - start)
    start = seconds()
    call real_space%compute(local%position, local%atom, charge, lj_type, force, energy(1), energy(2), virial, .true.)
    best(3) = min(best(3), seconds() - start)
    start = seconds()
    call reciprocal%compute(local%n_owned, local%position, local%atom, charge, force, energy(3), virial, .false.)
    best(4) = min(best(4), seconds() - start)
    start = seconds()
    call reciprocal%compute(local%n_owned, local%position, local%atom, charge, force, energy(3), virial, .true.)
    best(5) = min(best(5), seconds() - start)
  end do
  if (command_argument_count() > 8) call write_forces()
  ! The density is uniform: pairs from the volume of the sphere, less the excluded ones.
  i = size(position, 2)
  n_useful = 0.5_real64*i*(i/product(box)*4.18879020478639_real64*choice(2)**3) - size(exclusion, 2)
  print "(a,1x,a,i0,a,f0.1,a,3(f0.2,1x))", precision_name, real_space%instruction_set()//": ", i, " atoms, box ", &
    box(1), &
    " A, cutoff, list, switch ", choice(2:4)
  print "(a,f8.2,a)", "useful pairs      ", n_useful*1.0e-6_real64, " M"
  print "(a,f8.2,a,f5.1,a)", "listed pairs      ", real_space%listed_pairs()*1.0e-6_real64, " M, ", &
    100.0_real64*n_useful/real_space%listed_pairs(), " % of them useful"
  print "(a,f8.2,a,f7.1,a)", "forces            ", best(2)*1.0e3_real64, " ms, ", n_useful/best(2)*1.0e-6_real64, &
    " M pairs/s"
  print "(a,f8.2,a)", "forces and energy ", best(3)*1.0e3_real64, " ms"
  print "(a,f8.2,a)", "list              ", best(1)*1.0e3_real64, " ms"
  print "(a,f8.2,a,f8.2,a)", "PME               ", best(4)*1.0e3_real64, " ms, with energy ", best(5)*1.0e3_real64, &
    " ms"
  print "(a,3es20.12)", "energies", energy
  call MPI_Finalize()

contains

  !> Real-space forces of all atoms.
  subroutine write_forces()
    real(real64), allocatable :: total(:, :)
    integer :: atom
    force = 0.0_real64
    call real_space%compute(local%position, local%atom, charge, lj_type, force, energy(1), energy(2), virial, .false.)
    allocate (total(3, size(position, 2)), source=0.0_real64)
    do atom = 1, local%n_total
      total(:, local%atom(atom)) = total(:, local%atom(atom)) + force(:, atom)
    end do
    call get_command_argument(9, word)
    open (newunit=unit, file=trim(word), access="stream", form="unformatted", status="replace", action="write")
    write (unit) total
    close (unit)
  end subroutine write_forces

  !> Processor time over the number of threads: the machine may be shared.
  function seconds()
    real(real64) :: seconds
    call cpu_time(seconds)
    seconds = seconds/omp_get_max_threads()
  end function seconds

end program kernel_benchmark
