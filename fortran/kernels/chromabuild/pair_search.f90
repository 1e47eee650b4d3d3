!> Pairs of near atoms in a grid of cells. Distances are first bounded in real32 on sorted coordinates, then decided in
!> real64 on the given ones.
module pair_search
  use bonded_neighbours, only: within_three_bonds, list_within_three_bonds
  use cell_grid, only: cells_t, bucket_at, folded
  use iso_fortran_env, only: int8, int32, int64, real32, real64
  implicit none
  private
  public :: search_places

contains

  !> Pairs whose lower place is in begin..finish.
  subroutine search_places(self, position, threshold, kind_at, limit, graph_first, neighbour, begin, finish, found, pair, &
      distance)
    type(cells_t), intent(in) :: self
    real(real64), intent(in) :: position(3, *)   !! of the atoms
    real(real64), intent(in) :: threshold
    integer(int8), intent(in) :: kind_at(:)      !! of the atom at each place, from 0; of size 1 when kinds do not matter
    real(real64), intent(in) :: limit(:, :)      !! (kinds, kinds)
    integer(int32), intent(in) :: graph_first(:), neighbour(:)   !! of size 1 when no bonds are given
    integer(int32), intent(in) :: begin, finish
    integer(int64), intent(out) :: found         !! pairs, also those for which there is no room
    integer(int32), intent(inout) :: pair(:, :)  !! (2, room)
    real(real64), intent(inout) :: distance(:)   !! (room)

    integer(int32), parameter :: block_size = 256, most_excluded = 96
    integer(int32) :: i, j, k, low(3), high(3), corner(3), x, y, z, y_place, z_place, row, pieces, from, to, block, length
    integer(int32) :: near, left, right, atom_i, atom_j, kind_i, close_by(block_size), excluded(most_excluded), n_excluded
    integer(int32) :: bucket, next, y_own, z_own
    real(real32) :: here(3), slack, reach, bound, inverse, margin, squared(block_size)
    logical :: typed
    real(real64) :: d, own_limit, widest(size(limit, 2))

    found = 0
    typed = size(kind_at) > 1
    associate (n_buckets => self%n_buckets, edge => self%edge, cells => self%cells, fold => self%fold, first => self%first, &
        order => self%order, sorted => self%sorted)
      ! Rounding of a real32 coordinate is at most half an ulp of the extent; two atoms, three axes.
      slack = 4*epsilon(1.0_real32)*real(maxval(cells)*edge, real32)
      do k = 1, size(limit, 2)
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
        if (typed) kind_i = kind_at(i) + 1
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
                length = min(block_size, to - block + 1)
                near = 0
                do k = 1, length
                  j = block + k - 1
                  squared(k) = (sorted(j, 1) - here(1))**2 + (sorted(j, 2) - here(2))**2 + (sorted(j, 3) - here(3))**2
                  near = near + merge(1_int32, 0_int32, squared(k) < bound)
                end do
                if (near == 0) cycle
                ! Gathered without branches: which atoms are near cannot be predicted.
                near = 0
                do k = 1, length
                  close_by(near + 1) = k
                  near = near + merge(1_int32, 0_int32, squared(k) < bound)
                end do
                do j = 1, near
                  k = close_by(j)
                  if (typed) own_limit = limit(kind_at(block + k - 1) + 1, kind_i)
                  if (squared(k) >= real(own_limit, real32)**2 + margin) cycle
                  atom_j = order(block + k - 1)
                  d = sqrt(sum((position(:, atom_i + 1) - position(:, atom_j + 1))**2))
                  if (d >= own_limit .or. d >= threshold) cycle
                  if (size(graph_first) > 1) then
                    if (n_excluded < 0) call list_within_three_bonds(graph_first, neighbour, &
                      atom_i, most_excluded, excluded, n_excluded)
                    if (n_excluded <= most_excluded) then
                      if (count(excluded(:n_excluded) == atom_j) > 0) cycle
                    else
                      if (within_three_bonds(graph_first, neighbour, atom_i, atom_j)) cycle
                    end if
                  end if
                  found = found + 1
                  if (found > size(distance)) cycle
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
    end associate
  end subroutine search_places

end module pair_search
