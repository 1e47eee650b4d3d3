!> The real-space algorithms of the source paper (module cell_kernels) beside the engine's: lists of atoms for each pair
!> of cells (Algorithms 1 and 2) or marks and whole cells (3 and 4), with coordinates as arrays of structures or
!> structures of arrays, on a box of TIP3P-like water. Single precision, one thread, linear tables over 1/r^2 as the
!> source has them.
!>   cell_algorithms [waters_per_axis cutoff list_distance switch_distance repeats]
!> Defaults: 31 waters an axis (89,373 atoms), 12, 13.5, 10, 5. A cell is half the list distance wide or more, and meets
!> cells up to two places away. Prints the tables of the paper, for 2,000 steps with a list every 10: memory of the
!> list, pairs computed in a step, processor time of lists and forces (best of the repeats). Last column: rms difference
!> of the forces from the engine's with formulas, over the rms force.
program cell_algorithms
  use, intrinsic :: iso_fortran_env, only: int64
  use base_kinds, only: real64
  use pair_precision, only: rp => real_pair
  use cell_kernels, only: cells_t, dense_forces_aos, dense_forces_soa, find_neighbours_aos, find_neighbours_soa, &
                          lanes, mark_neighbours_aos, mark_neighbours_soa, over_distance, pair_forces_aos, &
                          pair_forces_soa
  use base_error, only: error_t
  use image_ghosts, only: image_ghosts_t
  use lennard_jones, only: lennard_jones_t
  use nonbonded, only: nonbonded_t
  use nonbonded_options, only: nonbonded_options_t
  use pair_forms, only: vdw_switch
  use pair_parameters, only: pair_parameters_t
  use pair_table, only: linear_table, tabulate
  use ewald_screening, only: ewald_alpha
  use water_box, only: make_water, water_lennard_jones
  implicit none

  real(real64), parameter :: coulomb_constant = 332.0637_real64
  integer, parameter :: n_steps = 2000, list_period = 10
  !> Where pads are, angstrom.
  real(rp), parameter :: far = 1.0e4_rp

  real(real64) :: choice(5), box(3)
  real(real64), allocatable :: position(:, :), charge(:), force(:, :), judge(:, :)
  integer, allocatable :: lj_type(:), exclusion(:, :)
  type(lennard_jones_t) :: lj
  type(pair_parameters_t) :: pair
  type(cells_t) :: cells
  type(error_t), allocatable :: error
  real(rp) :: c6(2, 2), c12(2, 2), reach2
  integer, allocatable :: n_neighbours(:, :), first(:), neighbour(:), marked(:, :)
  real(rp), allocatable :: aos(:, :, :), soa(:, :, :), aos_force(:, :, :), soa_force(:, :, :)
  real(real64) :: best(2), start
  integer :: repeats, k, layout
  character(len=64) :: word

  choice = [31.0_real64, 12.0_real64, 13.5_real64, 10.0_real64, 5.0_real64]
  do k = 1, min(5, command_argument_count())
    call get_command_argument(k, word)
    read (word, *) choice(k)
  end do
  repeats = nint(choice(5))
  call make_water(nint(choice(1)), box, position, charge, lj_type, exclusion)
  lj = water_lennard_jones()
  c6 = real(lj%c6, rp)
  c12 = real(lj%c12, rp)
  reach2 = real(choice(3)**2, rp)
  call pair%prepare(choice(2), choice(4), choice(3), ewald_alpha(choice(2), 1.0e-5_real64), vdw_switch, 0.0_real64, &
                    0.0_real64, error)
  if (.not. allocated(error)) call tabulate(pair, choice(4), linear_table, 20.0_real64, error)
  if (allocated(error)) error stop "bad options"
  call make_cells(choice(3))
  allocate (n_neighbours(cells%capacity, cells%n_pairs), first(cells%n_pairs), neighbour(room_for_neighbours()))
  allocate (marked(cells%capacity, cells%n_pairs))

  print "(i0,a,f0.1,a,3(f0.2,1x),a,i0,a,i0,a)", size(position, 2), " atoms, box ", box(1), &
    " A, cutoff, list, switch ", choice(2:4), "; ", cells%n_cells, " cells, ", cells%n_pairs, " pairs of cells"
  print "(a)", "algorithm               list (MiB)   pairs a step   lists (s)  forces (s)   total (s)   difference"
  call run_engine(0, "engine, formulas")
  call run_engine(linear_table, "engine, linear tables")
  do layout = 1, 2
    best = huge(best)
    do k = 1, repeats
      start = seconds()
      if (layout == 1) call find_neighbours_aos(cells, reach2, aos, n_neighbours, first, neighbour)
      if (layout == 2) call find_neighbours_soa(cells, reach2, soa, n_neighbours, first, neighbour)
      best(1) = min(best(1), seconds() - start)
      start = seconds()
      if (layout == 1) call pair_forces_aos(cells, c6, c12, pair%table_scale, pair%table_force, pair%cutoff2, aos, &
                                            n_neighbours, first, neighbour, aos_force)
      if (layout == 2) call pair_forces_soa(cells, c6, c12, pair%table_scale, pair%table_force, pair%cutoff2, soa, &
                                            n_neighbours, first, neighbour, soa_force)
      best(2) = min(best(2), seconds() - start)
    end do
    call report("Algorithms 1, 2 "//merge("(AoS)", "(SoA)", layout == 1), &
                4.0_real64*(size(n_neighbours) + size(first) + size(neighbour)), listed_pairs(), difference(layout))
  end do
  do layout = 1, 2
    best = huge(best)
    do k = 1, repeats
      start = seconds()
      if (layout == 1) call mark_neighbours_aos(cells, reach2, aos, marked)
      if (layout == 2) call mark_neighbours_soa(cells, reach2, soa, marked)
      best(1) = min(best(1), seconds() - start)
      start = seconds()
      if (layout == 1) call dense_forces_aos(cells, c6, c12, pair%table_scale, pair%table_force, pair%cutoff2, aos, &
                                             marked, aos_force)
      if (layout == 2) call dense_forces_soa(cells, c6, c12, pair%table_scale, pair%table_force, pair%cutoff2, soa, &
                                             marked, soa_force)
      best(2) = min(best(2), seconds() - start)
    end do
    call report("Algorithms 3, 4 "//merge("(AoS)", "(SoA)", layout == 1), 4.0_real64*size(marked), marked_pairs(), &
                difference(layout))
  end do

contains

  real(real64) function seconds()
    call cpu_time(seconds)
  end function seconds

  subroutine report(name, bytes, n_pairs, difference)
    character(len=*), intent(in) :: name
    real(real64), intent(in) :: bytes, difference
    integer(int64), intent(in) :: n_pairs
    real(real64) :: lists, forces
    character(len=22) :: label
    label = name
    lists = best(1)*n_steps/list_period
    forces = best(2)*n_steps
    print "(a,f12.2,i15,3f12.2,es13.2)", label, bytes/2.0_real64**20, n_pairs, lists, forces, lists + forces, &
      difference
  end subroutine report

  !> The engine's lists and kernels; without tables its forces become the judge of all others.
  subroutine run_engine(table_order, name)
    integer, intent(in) :: table_order
    character(len=*), intent(in) :: name
    type(nonbonded_t) :: real_space
    type(image_ghosts_t) :: local
    real(real64), allocatable :: local_force(:, :)
    real(real64) :: energy(2), virial(3, 3)
    integer :: i
    ! Without screening of excluded pairs, which the source has elsewhere.
    call real_space%init(lj, coulomb_constant, nonbonded_options_t(cutoff=choice(2), switch_distance=choice(4), &
                         list_distance=choice(3), alpha=pair%alpha, table_order=table_order), error)
    if (allocated(error)) error stop "bad options"
    call local%build(0, [1, 1, 1], box, choice(3), position, exclusion)
    allocate (local_force(3, local%n_total))
    best = huge(best)
    do k = 1, repeats
      start = seconds()
      call real_space%rebuild(local%n_owned, local%n_total, local%position, local%atom, charge, lj_type, &
                              local%global_id, local%exclusion_first, local%exclusion_partner)
      best(1) = min(best(1), seconds() - start)
      local_force = 0.0_real64
      start = seconds()
      call real_space%compute(local%position, local%atom, charge, lj_type, local_force, energy(1), energy(2), virial, .false.)
      best(2) = min(best(2), seconds() - start)
    end do
    allocate (force(3, size(position, 2)), source=0.0_real64)
    do i = 1, local%n_total
      force(:, local%atom(i)) = force(:, local%atom(i)) + local_force(:, i)
    end do
    if (table_order == 0) judge = force
    call report(name, real(real_space%list_bytes(), real64), real_space%listed_pairs(), &
                sqrt(sum((force - judge)**2)/sum(judge**2)))
    deallocate (force)
  end subroutine run_engine

  !> Sort the atoms into cells and find the pairs of cells that are up to two places apart along each axis.
  subroutine make_cells(list_distance)
    real(real64), intent(in) :: list_distance
    integer :: n(3), i, a, x, y, z, place(3), other(3), pass, n_pairs
    n = floor(2.0_real64*box/list_distance)
    if (any(n < 5)) error stop "the box must be at least 2.5 list distances wide"
    cells%n_cells = product(n)
    allocate (cells%n_atoms(cells%n_cells))
    do pass = 1, 2
      cells%n_atoms = 0
      do i = 1, size(position, 2)
        place = min(n - 1, int(position(:, i)/box*n))
        a = place(1) + n(1)*(place(2) + n(2)*place(3)) + 1
        cells%n_atoms(a) = cells%n_atoms(a) + 1
        if (pass == 1) cycle
        cells%atom(cells%n_atoms(a), a) = i
        cells%charge(cells%n_atoms(a), a) = real(charge(i)*sqrt(coulomb_constant), rp)
        cells%lj_type(cells%n_atoms(a), a) = lj_type(i)
        aos(:, cells%n_atoms(a), a) = real(position(:, i), rp)
        soa(cells%n_atoms(a), :, a) = real(position(:, i), rp)
      end do
      if (pass == 2) exit
      ! Whole vectors, and one more: Algorithm 1 writes before it knows that an atom counts.
      cells%capacity = lanes*(maxval(cells%n_atoms)/lanes + 1)
      allocate (cells%atom(cells%capacity, cells%n_cells), cells%lj_type(cells%capacity, cells%n_cells), source=1)
      allocate (cells%charge(cells%capacity, cells%n_cells), source=0.0_rp)
      allocate (aos(3, cells%capacity, cells%n_cells), soa(cells%capacity, 3, cells%n_cells), source=far)
      allocate (aos_force, source=aos)
      allocate (soa_force, source=soa)
    end do
    do pass = 1, 2
      n_pairs = 0
      do a = 1, cells%n_cells
        place = [mod(a - 1, n(1)), mod((a - 1)/n(1), n(2)), (a - 1)/(n(1)*n(2))]
        do z = 0, 2
          do y = merge(-2, 0, z > 0), 2
            do x = merge(-2, 0, z > 0 .or. y > 0), 2
              n_pairs = n_pairs + 1
              if (pass == 1) cycle
              other = place + [x, y, z]
              cells%shift(:, n_pairs) = real(-box*floor(real(other, real64)/n), rp)
              other = modulo(other, n)
              cells%pair(:, n_pairs) = [a, other(1) + n(1)*(other(2) + n(2)*other(3)) + 1]
            end do
          end do
        end do
      end do
      if (pass == 1) allocate (cells%pair(2, n_pairs), cells%shift(3, n_pairs))
    end do
    cells%n_pairs = n_pairs
  end subroutine make_cells

  !> Length of the list of neighbours: what the average density has within reach, and a tenth for what is denser.
  !> Algorithm 1 writes one entry before it knows that it counts.
  integer function room_for_neighbours()
    associate (n => real(size(position, 2), real64))
      room_for_neighbours = nint(1.1_real64*n*(n/product(box))*2.0_real64/3.0_real64*acos(-1.0_real64)*choice(3)**3) + 1
    end associate
  end function room_for_neighbours

  integer(int64) function listed_pairs()
    listed_pairs = sum(int(n_neighbours, int64))
  end function listed_pairs

  integer(int64) function marked_pairs()
    integer :: p, i
    marked_pairs = 0
    do p = 1, cells%n_pairs
      associate (a => cells%pair(1, p), b => cells%pair(2, p))
        do i = 1, cells%n_atoms(a)
          if (marked(i, p) /= 0) marked_pairs = marked_pairs + cells%n_atoms(b) - merge(i, 0, a == b)
        end do
      end associate
    end do
  end function marked_pairs

  !> From the engine's forces, after excluded pairs are taken out and their screening put in.
  real(real64) function difference(layout)
    integer, intent(in) :: layout
    real(real64) :: d(3), r, f
    integer :: a, i, e
    allocate (force(3, size(position, 2)))
    do a = 1, cells%n_cells
      do i = 1, cells%n_atoms(a)
        if (layout == 1) force(:, cells%atom(i, a)) = aos_force(:, i, a)
        if (layout == 2) force(:, cells%atom(i, a)) = soa_force(i, :, a)
      end do
    end do
    do e = 1, size(exclusion, 2)
      associate (first => exclusion(1, e), second => exclusion(2, e))
        d = position(:, first) - position(:, second)
        d = d - box*anint(d/box)
        r = norm2(d)
        f = over_distance(real(r**2, rp), real(coulomb_constant*charge(first)*charge(second), rp), &
                          c6(lj_type(first), lj_type(second)), c12(lj_type(first), lj_type(second)), pair%table_scale, &
                          pair%table_force, pair%cutoff2)
        ! What reciprocal space holds of the pair.
        f = f + coulomb_constant*charge(first)*charge(second)*(erf(pair%alpha*r)/r - 2.0_real64*pair%alpha/ &
                sqrt(acos(-1.0_real64))*exp(-(pair%alpha*r)**2))/r**2
        force(:, first) = force(:, first) - f*d
        force(:, second) = force(:, second) + f*d
      end associate
    end do
    difference = sqrt(sum((force - judge)**2)/sum(judge**2))
    deallocate (force)
  end function difference

end program cell_algorithms
