!> Fixed-radius neighbour search on a folded grid of cells (also called linked cells, spatial hashing).
!>
!> Space is cut into cubic cells; the cells are folded onto a table of limited size, cell (ix, iy, iz) going to bucket
!> (mod(ix, mx), mod(iy, my), mod(iz, mz)). Far cells may share a bucket: their atoms fail the distance test, nothing
!> else happens. So memory follows the number of atoms and never the volume of the box. Atoms are ordered by bucket
!> (counting sort); an atom meets only those buckets that its sphere touches, on average about two when the cell edge is
!> several times the radius.
!>
!> Distances are first bounded in real32 on sorted coordinates, then decided in real64 on the given ones.
!> Every loop over threads works on disjoint slices: the result does not depend on the number of threads.
!> Atom numbers are 0-based in every argument, as in the Python that calls.
module cell_list
  use iso_fortran_env, only: int8, int32, int64, real32, real64
  implicit none
  private
  public :: sort_into_cells, find_close_pairs, count_in_spheres, fill_in_spheres
  public :: bond_graph, mark_bonded_pairs, contact_limits

contains

  !> Order the atoms by bucket.
  subroutine sort_into_cells(n_atoms, position, origin, edge, fold, n_buckets, n_threads, bucket, first, order, sorted)
    integer(int32), intent(in) :: n_atoms
    real(real64), intent(in) :: position(3, n_atoms)
    !> lowest corner of the atoms
    real(real64), intent(in) :: origin(3)
    !> cell edge
    real(real64), intent(in) :: edge
    !> buckets along each axis
    integer(int32), intent(in) :: fold(3)
    !> product of fold
    integer(int32), intent(in) :: n_buckets
    integer(int32), intent(in) :: n_threads
    !> bucket of every atom
    integer(int32), intent(inout) :: bucket(n_atoms)
    !> atoms of bucket b are order(first(b) .. first(b+1)-1), 1-based places
    integer(int32), intent(inout) :: first(n_buckets + 1)
    !> atom at each place
    integer(int32), intent(inout) :: order(n_atoms)
    !> coordinates relative to origin, by place
    real(real32), intent(inout) :: sorted(n_atoms, 3)

    integer(int32) :: i, b, t, low, high, total, here, cell(3)
    real(real64) :: inverse

    inverse = 1.0_real64/edge
    !$omp parallel do num_threads(n_threads) if (n_atoms > 20000) schedule(static) default(none) &
    !$omp shared(n_atoms, position, origin, inverse, fold, bucket) private(i, cell)
    do i = 1, n_atoms
      cell = int((position(:, i) - origin)*inverse, int32)
      bucket(i) = 1 + folded(cell(1), fold(1)) + fold(1)*(folded(cell(2), fold(2)) + fold(2)*folded(cell(3), fold(3)))
    end do
    !$omp end parallel do

    ! Each slice counts and later fills its own range of buckets, reading all atoms in order: stable and race-free.
    first = 0
    !$omp parallel do num_threads(n_threads) if (n_atoms > 20000) schedule(static, 1) default(none) &
    !$omp shared(n_atoms, n_buckets, n_threads, bucket, first) private(t, i, b, low, high)
    do t = 1, n_threads
      call slice(n_buckets, n_threads, t, low, high)
      do i = 1, n_atoms
        b = bucket(i)
        if (b >= low .and. b <= high) first(b) = first(b) + 1
      end do
    end do
    !$omp end parallel do
    total = 1
    do b = 1, n_buckets
      here = first(b)
      first(b) = total
      total = total + here
    end do
    first(n_buckets + 1) = total

    !$omp parallel do num_threads(n_threads) if (n_atoms > 20000) schedule(static, 1) default(none) &
    !$omp shared(n_atoms, n_buckets, n_threads, bucket, first, order) private(t, i, b, low, high, here)
    do t = 1, n_threads
      call slice(n_buckets, n_threads, t, low, high)
      do i = 1, n_atoms
        b = bucket(i)
        if (b < low .or. b > high) cycle
        here = first(b)
        first(b) = here + 1
        order(here) = i - 1
      end do
    end do
    !$omp end parallel do
    ! Gathered, not scattered along with the atoms: reads far apart overlap, writes far apart wait for their lines.
    !$omp parallel do num_threads(n_threads) if (n_atoms > 20000) schedule(static) default(none) &
    !$omp shared(n_atoms, order, sorted, position, origin) private(here, i)
    do here = 1, n_atoms
      i = order(here) + 1
      sorted(here, 1) = real(position(1, i) - origin(1), real32)
      sorted(here, 2) = real(position(2, i) - origin(2), real32)
      sorted(here, 3) = real(position(3, i) - origin(3), real32)
    end do
    !$omp end parallel do
    ! Filling moved every start to the start of the next bucket.
    do b = n_buckets, 2, -1
      first(b) = first(b - 1)
    end do
    first(1) = 1
  end subroutine sort_into_cells

  !> All pairs closer than a threshold. The places are cut into parts; each writes its pairs into its own room, and
  !> counts on when that is full: call again with more room then.
  subroutine find_close_pairs(n_atoms, position, edge, cells, fold, n_buckets, first, order, sorted, threshold, &
      n_typed, kind_at, n_kinds, limit, n_graph, graph_first, n_neighbours, neighbour, n_threads, n_parts, room, found, &
      pair, distance)
    integer(int32), intent(in) :: n_atoms
    real(real64), intent(in) :: position(3, n_atoms)
    real(real64), intent(in) :: edge
    !> cells along each axis, before folding
    integer(int32), intent(in) :: cells(3)
    integer(int32), intent(in) :: fold(3)
    integer(int32), intent(in) :: n_buckets
    integer(int32), intent(in) :: first(n_buckets + 1)
    integer(int32), intent(in) :: order(n_atoms)
    real(real32), intent(in) :: sorted(n_atoms, 3)
    !> a pair is close below this distance
    real(real64), intent(in) :: threshold
    !> n_atoms, or 1 when the threshold is the same for all
    integer(int32), intent(in) :: n_typed
    !> kind of the atom at each place, from 0
    integer(int8), intent(in) :: kind_at(n_typed)
    integer(int32), intent(in) :: n_kinds
    !> a pair must also be closer than the limit of its two kinds
    real(real64), intent(in) :: limit(n_kinds, n_kinds)
    !> n_atoms + 1, or 1 when no bonds are given
    integer(int32), intent(in) :: n_graph
    !> bonded neighbours: pairs joined by up to three bonds are left out
    integer(int32), intent(in) :: graph_first(n_graph)
    integer(int32), intent(in) :: n_neighbours
    integer(int32), intent(in) :: neighbour(n_neighbours)
    integer(int32), intent(in) :: n_threads
    integer(int32), intent(in) :: n_parts
    !> pairs that each part can hold
    integer(int32), intent(in) :: room
    !> pairs of each part, also beyond its room
    integer(int64), intent(inout) :: found(n_parts)
    !> lower and higher atom of each pair
    integer(int32), intent(inout) :: pair(2, room, n_parts)
    real(real64), intent(inout) :: distance(room, n_parts)

    integer(int32) :: part, begin, finish

    !$omp parallel do num_threads(n_threads) if (n_atoms > 20000) schedule(dynamic, 1) default(none) &
    !$omp shared(n_atoms, position, edge, cells, fold, n_buckets, first, order, sorted, threshold, n_typed, kind_at, &
    !$omp n_kinds, limit, n_graph, graph_first, n_neighbours, neighbour, n_parts, room, found, pair, distance) &
    !$omp private(part, begin, finish)
    do part = 1, n_parts
      call slice(n_atoms, n_parts, part, begin, finish)
      call search_places(n_atoms, position, edge, cells, fold, n_buckets, first, order, sorted, threshold, &
        n_typed, kind_at, n_kinds, limit, n_graph, graph_first, n_neighbours, neighbour, begin, finish, room, found(part), &
        pair(:, :, part), distance(:, part))
    end do
    !$omp end parallel do
  end subroutine find_close_pairs

  !> Pairs whose lower place is in begin..finish.
  subroutine search_places(n_atoms, position, edge, cells, fold, n_buckets, first, order, sorted, threshold, &
      n_typed, kind_at, n_kinds, limit, n_graph, graph_first, n_neighbours, neighbour, begin, finish, room, found, pair, &
      distance)
    integer(int32), intent(in) :: n_atoms, cells(3), fold(3), n_buckets, n_typed, n_kinds, n_graph, n_neighbours
    integer(int32), intent(in) :: begin, finish
    real(real64), intent(in) :: position(3, n_atoms), edge, threshold, limit(n_kinds, n_kinds)
    integer(int8), intent(in) :: kind_at(n_typed)
    integer(int32), intent(in) :: first(n_buckets + 1), order(n_atoms), graph_first(n_graph), neighbour(n_neighbours)
    real(real32), intent(in) :: sorted(n_atoms, 3)
    integer(int32), intent(in) :: room
    integer(int64), intent(out) :: found
    integer(int32), intent(inout) :: pair(2, room)
    real(real64), intent(inout) :: distance(room)

    integer(int32), parameter :: block_size = 256, most_excluded = 96
    integer(int32) :: i, j, k, low(3), high(3), corner(3), x, y, z, y_place, z_place, row, pieces, from, to, block, size
    integer(int32) :: near, left, right, atom_i, atom_j, kind_i, close_by(block_size), excluded(most_excluded), n_excluded
    integer(int32) :: bucket, next, y_own, z_own
    real(real32) :: here(3), slack, reach, bound, inverse, margin, squared(block_size)
    real(real64) :: d, own_limit, widest(n_kinds)

    found = 0
    ! Rounding of a real32 coordinate is at most half an ulp of the extent; two atoms, three axes.
    slack = 4*epsilon(1.0_real32)*real(maxval(cells)*edge, real32)
    do k = 1, n_kinds
      widest(k) = min(threshold, maxval(limit(:, k)))
    end do
    kind_i = 1
    own_limit = threshold
    inverse = real(1/edge, real32)
    next = begin
    bucket = bucket_at(n_buckets, first, begin) - 1
    do i = begin, finish
      if (i >= next) then
        do while (next <= i)
          bucket = bucket + 1
          next = first(bucket + 1)
        end do
        y_own = (bucket - 1)/fold(1)
        z_own = y_own/fold(2)
        y_own = y_own - fold(2)*z_own
      end if
      here = sorted(i, :)
      atom_i = order(i)
      if (n_typed > 1) kind_i = kind_at(i) + 1
      reach = real(widest(kind_i), real32) + slack
      bound = (reach*(1 + 4*epsilon(1.0_real32)))**2
      ! The same slack on the square of any distance up to the widest.
      margin = bound - real(widest(kind_i), real32)**2
      n_excluded = -1
      low = max(int((here - reach)*inverse), 0)
      high = min(int((here + reach)*inverse), cells - 1)
      ! Divisions are slow: places are counted on from the first and wrapped where the fold ends.
      corner = folded(low, fold)
      left = corner(1)
      right = left + high(1) - low(1)
      pieces = 1
      if (right >= fold(1)) then
        pieces = 2
        right = right - fold(1)
      end if
      ! Rows before the atom's own hold lower places only: nothing is left to do there.
      z_place = merge(z_own, corner(3), corner(3) <= z_own)
      do z = low(3) + z_place - corner(3), high(3)
        y_place = corner(2)
        if (z_place == z_own .and. corner(2) <= y_own) y_place = y_own
        do y = low(2) + y_place - corner(2), high(2)
          row = 1 + fold(1)*(y_place + fold(2)*z_place)
          y_place = merge(0_int32, y_place + 1, y_place + 1 == fold(2))
          ! The cells of a row are one stretch of places, unless the fold runs through it.
          do x = 1, pieces
            from = first(row + merge(left, 0_int32, x == 1))
            to = first(row + merge(right, fold(1) - 1, x == pieces) + 1) - 1
            from = max(from, i + 1)
            do block = from, to, block_size
              size = min(block_size, to - block + 1)
              near = 0
              do k = 1, size
                j = block + k - 1
                squared(k) = (sorted(j, 1) - here(1))**2 + (sorted(j, 2) - here(2))**2 + (sorted(j, 3) - here(3))**2
                near = near + merge(1_int32, 0_int32, squared(k) < bound)
              end do
              if (near == 0) cycle
              ! Gathered without branches: which atoms are near cannot be predicted.
              near = 0
              do k = 1, size
                close_by(near + 1) = k
                near = near + merge(1_int32, 0_int32, squared(k) < bound)
              end do
              do j = 1, near
                k = close_by(j)
                if (n_typed > 1) own_limit = limit(kind_at(block + k - 1) + 1, kind_i)
                if (squared(k) >= real(own_limit, real32)**2 + margin) cycle
                atom_j = order(block + k - 1)
                d = sqrt(sum((position(:, atom_i + 1) - position(:, atom_j + 1))**2))
                if (d >= own_limit .or. d >= threshold) cycle
                if (n_graph > 1) then
                  if (n_excluded < 0) call list_within_three_bonds(n_graph, graph_first, n_neighbours, neighbour, &
                    atom_i, most_excluded, excluded, n_excluded)
                  if (n_excluded <= most_excluded) then
                    if (count(excluded(:n_excluded) == atom_j) > 0) cycle
                  else
                    if (within_three_bonds(n_graph, graph_first, n_neighbours, neighbour, atom_i, atom_j)) cycle
                  end if
                end if
                found = found + 1
                if (found > room) cycle
                pair(1, found) = min(atom_i, atom_j)
                pair(2, found) = max(atom_i, atom_j)
                distance(found) = d
              end do
            end do
          end do
        end do
        z_place = merge(0_int32, z_place + 1, z_place + 1 == fold(3))
      end do
    end do
  end subroutine search_places

  !> The bucket that holds a place, by bisection.
  pure function bucket_at(n_buckets, first, place) result(bucket)
    integer(int32), intent(in) :: n_buckets, first(n_buckets + 1), place
    integer(int32) :: bucket, above, middle
    bucket = 1
    above = n_buckets + 1
    do while (above - bucket > 1)
      middle = (bucket + above)/2
      if (first(middle) <= place) then
        bucket = middle
      else
        above = middle
      end if
    end do
  end function bucket_at

  !> Place of a cell along one axis of the folded table.
  elemental function folded(cell, fold) result(place)
    integer(int32), intent(in) :: cell, fold
    integer(int32) :: place
    place = cell
    if (place >= fold) place = mod(place, fold)
  end function folded

  !> Number of atoms within a radius of each centre.
  subroutine count_in_spheres(n_atoms, position, origin, edge, cells, fold, n_buckets, first, order, &
      n_centres, centre, radius, n_threads, found)
    integer(int32), intent(in) :: n_atoms
    real(real64), intent(in) :: position(3, n_atoms)
    real(real64), intent(in) :: origin(3)
    real(real64), intent(in) :: edge
    integer(int32), intent(in) :: cells(3)
    integer(int32), intent(in) :: fold(3)
    integer(int32), intent(in) :: n_buckets
    integer(int32), intent(in) :: first(n_buckets + 1)
    integer(int32), intent(in) :: order(n_atoms)
    integer(int32), intent(in) :: n_centres
    real(real64), intent(in) :: centre(3, n_centres)
    real(real64), intent(in) :: radius
    integer(int32), intent(in) :: n_threads
    integer(int64), intent(inout) :: found(n_centres)

    integer(int32) :: c, nothing(1)

    !$omp parallel do num_threads(n_threads) if (n_centres > 1000) schedule(dynamic, 64) default(none) &
    !$omp shared(n_atoms, position, origin, edge, cells, fold, n_buckets, first, order, n_centres, centre, radius, found) &
    !$omp private(c, nothing)
    do c = 1, n_centres
      call search_sphere(n_atoms, position, origin, edge, cells, fold, n_buckets, first, order, centre(:, c), radius, &
        0_int64, found(c), 1_int64, nothing)
    end do
    !$omp end parallel do
  end subroutine count_in_spheres

  !> The atoms within a radius of each centre, centre after centre.
  subroutine fill_in_spheres(n_atoms, position, origin, edge, cells, fold, n_buckets, first, order, &
      n_centres, centre, radius, n_threads, found, n_found, atom)
    integer(int32), intent(in) :: n_atoms
    real(real64), intent(in) :: position(3, n_atoms)
    real(real64), intent(in) :: origin(3)
    real(real64), intent(in) :: edge
    integer(int32), intent(in) :: cells(3)
    integer(int32), intent(in) :: fold(3)
    integer(int32), intent(in) :: n_buckets
    integer(int32), intent(in) :: first(n_buckets + 1)
    integer(int32), intent(in) :: order(n_atoms)
    integer(int32), intent(in) :: n_centres
    real(real64), intent(in) :: centre(3, n_centres)
    real(real64), intent(in) :: radius
    integer(int32), intent(in) :: n_threads
    !> what count_in_spheres found
    integer(int64), intent(in) :: found(n_centres)
    !> sum of found
    integer(int64), intent(in) :: n_found
    integer(int32), intent(inout) :: atom(n_found)

    integer(int32) :: c
    integer(int64) :: again
    integer(int64), allocatable :: before(:)

    allocate (before(n_centres))
    before(1) = 0
    do c = 2, n_centres
      before(c) = before(c - 1) + found(c - 1)
    end do
    !$omp parallel do num_threads(n_threads) if (n_centres > 1000) schedule(dynamic, 64) default(none) &
    !$omp shared(n_atoms, position, origin, edge, cells, fold, n_buckets, first, order, n_centres, centre, radius, &
    !$omp before, n_found, atom) private(c, again)
    do c = 1, n_centres
      call search_sphere(n_atoms, position, origin, edge, cells, fold, n_buckets, first, order, centre(:, c), radius, &
        before(c), again, n_found, atom)
    end do
    !$omp end parallel do
  end subroutine fill_in_spheres

  !> Atoms in one sphere; written after `skip` earlier ones when there is room for them.
  subroutine search_sphere(n_atoms, position, origin, edge, cells, fold, n_buckets, first, order, centre, radius, &
      skip, found, n_found, atom)
    integer(int32), intent(in) :: n_atoms, cells(3), fold(3), n_buckets
    real(real64), intent(in) :: position(3, n_atoms), origin(3), edge, centre(3), radius
    integer(int32), intent(in) :: first(n_buckets + 1), order(n_atoms)
    integer(int64), intent(in) :: skip, n_found
    integer(int64), intent(out) :: found
    integer(int32), intent(inout) :: atom(n_found)

    integer(int32) :: low(3), high(3), x, y, z, b, j
    real(real64) :: reach

    found = 0
    reach = radius*(1 + 1.0e-9_real64) + 1.0e-6_real64
    low = int(max((centre - origin - reach)/edge, 0.0_real64))
    high = int(min((centre - origin + reach)/edge, real(cells - 1, real64)))
    if (any(centre - origin + reach < 0)) return
    ! A sphere wider than the folded table meets every bucket once.
    high = min(high, low + fold - 1)
    do z = low(3), high(3)
      do y = low(2), high(2)
        do x = low(1), high(1)
          b = 1 + folded(x, fold(1)) + fold(1)*(folded(y, fold(2)) + fold(2)*folded(z, fold(3)))
          do j = first(b), first(b + 1) - 1
            if (sum((position(:, order(j) + 1) - centre)**2) >= radius**2) cycle
            found = found + 1
            if (skip + found <= n_found) atom(skip + found) = order(j)
          end do
        end do
      end do
    end do
  end subroutine search_sphere

  !> Compressed rows of bonded neighbours.
  subroutine bond_graph(n_atoms, n_bonds, bond, graph_first, neighbour)
    integer(int32), intent(in) :: n_atoms
    integer(int32), intent(in) :: n_bonds
    integer(int32), intent(in) :: bond(2, n_bonds)
    !> neighbours of atom i are neighbour(first(i) .. first(i+1)-1), 0-based places
    integer(int32), intent(inout) :: graph_first(n_atoms + 1)
    integer(int32), intent(inout) :: neighbour(2*n_bonds)

    integer(int32) :: i, k, side, total, here

    graph_first = 0
    do k = 1, n_bonds
      do side = 1, 2
        graph_first(bond(side, k) + 1) = graph_first(bond(side, k) + 1) + 1
      end do
    end do
    total = 0
    do i = 1, n_atoms
      here = graph_first(i)
      graph_first(i) = total
      total = total + here
    end do
    graph_first(n_atoms + 1) = total
    do k = 1, n_bonds
      do side = 1, 2
        i = bond(side, k) + 1
        neighbour(graph_first(i) + 1) = bond(3 - side, k)
        graph_first(i) = graph_first(i) + 1
      end do
    end do
    do i = n_atoms, 2, -1
      graph_first(i) = graph_first(i - 1)
    end do
    graph_first(1) = 0
  end subroutine bond_graph

  !> Mark (1) the pairs of atoms that one, two or three bonds join.
  subroutine mark_bonded_pairs(n_graph, graph_first, n_neighbours, neighbour, n_pairs, pair, bonded)
    integer(int32), intent(in) :: n_graph
    integer(int32), intent(in) :: graph_first(n_graph)
    integer(int32), intent(in) :: n_neighbours
    integer(int32), intent(in) :: neighbour(n_neighbours)
    integer(int32), intent(in) :: n_pairs
    integer(int32), intent(in) :: pair(2, n_pairs)
    integer(int32), intent(inout) :: bonded(n_pairs)

    integer(int32) :: k

    do k = 1, n_pairs
      bonded(k) = merge(1_int32, 0_int32, &
        within_three_bonds(n_graph, graph_first, n_neighbours, neighbour, pair(1, k), pair(2, k)))
    end do
  end subroutine mark_bonded_pairs

  !> How near moved atoms may come to those around them and to each other: table values of their kinds, 0 for pairs that
  !> one, two or three bonds join. Of the moved atoms only pairs from different bodies are listed: others keep their
  !> distance.
  subroutine contact_limits(n_kinds, contact_table, severe_table, n_atoms, kind_of, n_graph, graph_first, n_neighbours, &
      neighbour, n_around, around, n_moved, moved, body, contact, severe, room, inner, inner_contact, inner_severe, n_inner)
    integer(int32), intent(in) :: n_kinds
    !> comfortable and severe distances of two kinds, symmetric
    real(real64), intent(in) :: contact_table(n_kinds, n_kinds), severe_table(n_kinds, n_kinds)
    integer(int32), intent(in) :: n_atoms
    !> kind of each atom, from 0
    integer(int8), intent(in) :: kind_of(n_atoms)
    integer(int32), intent(in) :: n_graph
    integer(int32), intent(in) :: graph_first(n_graph)
    integer(int32), intent(in) :: n_neighbours
    integer(int32), intent(in) :: neighbour(n_neighbours)
    integer(int32), intent(in) :: n_around
    !> ascending 0-based atoms, none of them moved
    integer(int32), intent(in) :: around(n_around)
    integer(int32), intent(in) :: n_moved
    !> 0-based atoms
    integer(int32), intent(in) :: moved(n_moved)
    integer(int32), intent(in) :: body(n_moved)
    real(real64), intent(inout) :: contact(n_around, n_moved), severe(n_around, n_moved)
    !> n_moved (n_moved - 1) / 2 or more
    integer(int32), intent(in) :: room
    !> 0-based places in moved
    integer(int32), intent(inout) :: inner(2, room)
    real(real64), intent(inout) :: inner_contact(room), inner_severe(room)
    integer(int32), intent(out) :: n_inner

    integer(int32), parameter :: most_excluded = 96
    integer(int32) :: m, p, e, k, kind_m, n_excluded, excluded(most_excluded), place

    n_inner = 0
    do m = 1, n_moved
      kind_m = kind_of(moved(m) + 1) + 1
      do e = 1, n_around
        k = kind_of(around(e) + 1) + 1
        contact(e, m) = contact_table(k, kind_m)
        severe(e, m) = severe_table(k, kind_m)
      end do
      call list_within_three_bonds(n_graph, graph_first, n_neighbours, neighbour, moved(m), most_excluded, excluded, &
        n_excluded)
      if (n_excluded <= most_excluded) then
        do k = 1, n_excluded
          place = place_of(n_around, around, excluded(k))
          if (place == 0) cycle
          contact(place, m) = 0
          severe(place, m) = 0
        end do
      else
        do e = 1, n_around
          if (.not. within_three_bonds(n_graph, graph_first, n_neighbours, neighbour, moved(m), around(e))) cycle
          contact(e, m) = 0
          severe(e, m) = 0
        end do
      end if
      do p = m + 1, n_moved
        if (body(p) == body(m)) cycle
        if (within_three_bonds(n_graph, graph_first, n_neighbours, neighbour, moved(m), moved(p))) cycle
        n_inner = n_inner + 1
        k = kind_of(moved(p) + 1) + 1
        inner(:, n_inner) = [m - 1, p - 1]
        inner_contact(n_inner) = contact_table(k, kind_m)
        inner_severe(n_inner) = severe_table(k, kind_m)
      end do
    end do
  end subroutine contact_limits

  !> Where an ascending list holds a number, 0 where it does not (bisection).
  pure integer(int32) function place_of(n, list, wanted) result(place)
    integer(int32), intent(in) :: n, list(n), wanted

    integer(int32) :: low, high

    low = 1
    high = n
    do while (low <= high)
      place = (low + high)/2
      if (list(place) == wanted) return
      if (list(place) < wanted) then
        low = place + 1
      else
        high = place - 1
      end if
    end do
    place = 0
  end function place_of

  !> Whether a path of at most three bonds joins two atoms.
  pure logical function within_three_bonds(n_graph, graph_first, n_neighbours, neighbour, a, b) result(joined)
    integer(int32), intent(in) :: n_graph, graph_first(n_graph), n_neighbours, neighbour(n_neighbours), a, b

    integer(int32) :: i, j, k, p, q

    joined = .true.
    do i = graph_first(a + 1) + 1, graph_first(a + 2)
      if (neighbour(i) == b) return
    end do
    do i = graph_first(a + 1) + 1, graph_first(a + 2)
      p = neighbour(i)
      do j = graph_first(b + 1) + 1, graph_first(b + 2)
        if (neighbour(j) == p) return
      end do
    end do
    do i = graph_first(a + 1) + 1, graph_first(a + 2)
      p = neighbour(i)
      do k = graph_first(p + 1) + 1, graph_first(p + 2)
        q = neighbour(k)
        do j = graph_first(b + 1) + 1, graph_first(b + 2)
          if (neighbour(j) == q) return
        end do
      end do
    end do
    joined = .false.
  end function within_three_bonds

  !> The atoms that at most three bonds join to an atom, some of them twice; counts on when the room is full.
  pure subroutine list_within_three_bonds(n_graph, graph_first, n_neighbours, neighbour, a, room, atom, n)
    integer(int32), intent(in) :: n_graph, graph_first(n_graph), n_neighbours, neighbour(n_neighbours), a, room
    integer(int32), intent(inout) :: atom(room)
    integer(int32), intent(out) :: n

    integer(int32) :: bonds, i, k, begin, finish

    n = 0
    do k = graph_first(a + 1) + 1, graph_first(a + 2)
      n = n + 1
      if (n <= room) atom(n) = neighbour(k)
    end do
    begin = 1
    do bonds = 2, 3
      if (n > room) return
      finish = n
      do i = begin, finish
        do k = graph_first(atom(i) + 1) + 1, graph_first(atom(i) + 2)
          if (neighbour(k) == a) cycle
          n = n + 1
          if (n <= room) atom(n) = neighbour(k)
        end do
      end do
      begin = finish + 1
    end do
  end subroutine list_within_three_bonds

  !> The t-th of `parts` nearly equal ranges of 1..n.
  pure subroutine slice(n, parts, t, low, high)
    integer(int32), intent(in) :: n, parts, t
    integer(int32), intent(out) :: low, high
    low = int((int(n, int64)*(t - 1))/parts, int32) + 1
    high = int((int(n, int64)*t)/parts, int32)
  end subroutine slice

end module cell_list
