!> Neighbours within a radius, by a grid of cells: the interface that Python calls. A grid is made once and known by a number,
!> its handle; it keeps no positions, they come with every call. Atom numbers are 0-based in every argument.
module cell_list
  use cell_grid, only: cells_t, new_cells, delete_cells, cells_of, sort_atoms, search_sphere, slice
  use iso_fortran_env, only: int8, int32, int64, real64
  use pair_search, only: search_places
  implicit none
  private
  public :: create_cells, free_cells, held_bytes, find_close_pairs, count_in_spheres, fill_in_spheres

contains

  !> Sort atoms into cells.
  subroutine create_cells(position, origin, edge, cells, fold, n_threads, handle)
    real(real64), intent(in) :: position(:, :)   !! (3, atoms)
    real(real64), intent(in) :: origin(3)        !! lowest corner of the atoms
    real(real64), intent(in) :: edge             !! of a cell
    integer(int32), intent(in) :: cells(3)       !! along each axis, before folding
    integer(int32), intent(in) :: fold(3)        !! buckets along each axis
    integer(int32), intent(in) :: n_threads
    integer(int64), intent(out) :: handle
    type(cells_t), pointer :: self

    handle = new_cells()
    self => cells_of(handle)
    self%n_atoms = size(position, 2)
    self%origin = origin
    self%edge = edge
    self%cells = cells
    self%fold = fold
    call sort_atoms(self, position, n_threads)
  end subroutine create_cells

  subroutine free_cells(handle)
    integer(int64), intent(in) :: handle
    call delete_cells(handle)
  end subroutine free_cells

  !> Memory of the arrays that the grid holds.
  subroutine held_bytes(handle, n_bytes)
    integer(int64), intent(in) :: handle
    integer(int64), intent(out) :: n_bytes
    type(cells_t), pointer :: self

    self => cells_of(handle)
    n_bytes = (storage_size(self%first) * size(self%first, kind=int64) + storage_size(self%order) * size(self%order, kind=int64) &
      + storage_size(self%sorted) * size(self%sorted, kind=int64)) / 8
  end subroutine held_bytes

  !> All pairs closer than a threshold. The places are cut into parts; each writes its pairs into its own room, and
  !> counts on when that is full: call again with more room then.
  subroutine find_close_pairs(handle, position, threshold, kind, limit, graph_first, neighbour, n_threads, found, pair, distance)
    integer(int64), intent(in) :: handle
    !> (3, atoms) as they were sorted
    real(real64), intent(in) :: position(:, :)
    !> a pair is close below this distance
    real(real64), intent(in) :: threshold
    !> kind of each atom, from 0; of size 1 when the threshold is the same for all
    integer(int8), intent(in) :: kind(:)
    !> (kinds, kinds); a pair must also be closer than the limit of its two kinds
    real(real64), intent(in) :: limit(:, :)
    !> as from bond_graph; pairs joined by up to three bonds are left out; of size 1 when no bonds are given
    integer(int32), intent(in) :: graph_first(:), neighbour(:)
    integer(int32), intent(in) :: n_threads
    !> (parts) pairs of each part, also beyond its room
    integer(int64), intent(inout) :: found(:)
    !> (2, room, parts) lower and higher atom of each pair
    integer(int32), intent(inout) :: pair(:, :, :)
    !> (room, parts)
    real(real64), intent(inout) :: distance(:, :)
    type(cells_t), pointer :: self
    integer(int8), allocatable :: kind_at(:)
    integer(int32) :: part, begin, finish

    self => cells_of(handle)
    kind_at = kind
    if (size(kind) > 1) kind_at = kind(self%order + 1)
    !$omp parallel do num_threads(n_threads) if (self%n_atoms > 20000) schedule(dynamic, 1) private(part, begin, finish)
    do part = 1, size(found)
      call slice(self%n_atoms, int(size(found), int32), part, begin, finish)
      call search_places(self, position, threshold, kind_at, limit, graph_first, neighbour, begin, finish, found(part), &
        pair(:, :, part), distance(:, part))
    end do
    !$omp end parallel do
  end subroutine find_close_pairs

  !> Number of atoms within a radius of each centre.
  subroutine count_in_spheres(handle, position, centre, radius, n_threads, found)
    integer(int64), intent(in) :: handle
    real(real64), intent(in) :: position(:, :)   !! (3, atoms), where they are now
    real(real64), intent(in) :: centre(:, :)     !! (3, centres)
    real(real64), intent(in) :: radius
    integer(int32), intent(in) :: n_threads
    integer(int64), intent(inout) :: found(:)    !! (centres)
    type(cells_t), pointer :: self
    integer(int32) :: c, nothing(0)

    self => cells_of(handle)
    !$omp parallel do num_threads(n_threads) if (size(found) > 1000) schedule(dynamic, 64) private(c, nothing)
    do c = 1, size(found)
      call search_sphere(self, position, centre(:, c), radius, 0_int64, found(c), nothing)
    end do
    !$omp end parallel do
  end subroutine count_in_spheres

  !> The atoms within a radius of each centre, centre after centre.
  subroutine fill_in_spheres(handle, position, centre, radius, n_threads, found, atom)
    integer(int64), intent(in) :: handle
    real(real64), intent(in) :: position(:, :)   !! (3, atoms), where they are now
    real(real64), intent(in) :: centre(:, :)     !! (3, centres)
    real(real64), intent(in) :: radius
    integer(int32), intent(in) :: n_threads
    integer(int64), intent(in) :: found(:)       !! (centres) what count_in_spheres found
    integer(int32), intent(inout) :: atom(:)     !! as many as the sum of found
    type(cells_t), pointer :: self
    integer(int32) :: c
    integer(int64) :: again
    integer(int64), allocatable :: before(:)

    self => cells_of(handle)
    allocate (before(size(found)))
    before(1) = 0
    do c = 2, size(found)
      before(c) = before(c - 1) + found(c - 1)
    end do
    !$omp parallel do num_threads(n_threads) if (size(found) > 1000) schedule(dynamic, 64) private(c, again)
    do c = 1, size(found)
      call search_sphere(self, position, centre(:, c), radius, before(c), again, atom)
    end do
    !$omp end parallel do
  end subroutine fill_in_spheres

end module cell_list
