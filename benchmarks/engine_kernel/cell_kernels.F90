!> Algorithms 1 to 4 of the source paper (Jung et al. 2019, doi:10.1002/jcc.25840), each with coordinates as arrays of
!> structures (aos: (3, atoms, cells)) and as structures of arrays (soa: (atoms, 3, cells)); see cell_algorithms.f90.
module cell_kernels
  use pair_precision, only: rp => real_pair
  implicit none
  private
  public :: cells_t, lanes, over_distance
  public :: find_neighbours_aos, pair_forces_aos, mark_neighbours_aos, dense_forces_aos
  public :: find_neighbours_soa, pair_forces_soa, mark_neighbours_soa, dense_forces_soa

  !> Numbers in a vector.
  integer, parameter :: lanes = 16

  !> Atoms by cells; pairs of cells with the shift (angstrom) that brings the first beside the second.
  type :: cells_t
    integer :: n_cells = 0, capacity = 0, n_pairs = 0
    integer, allocatable :: n_atoms(:), atom(:, :), lj_type(:, :), pair(:, :)
    real(rp), allocatable :: charge(:, :), shift(:, :)
  end type cells_t

contains

  !> Force over distance of a pair at the squared distance `r2` by a linear table of module pair_table; zero beyond the
  !> cutoff.
  pure real(rp) function over_distance(r2, qq, lj6, lj12, table_scale, table, cutoff2) result(f)
    real(rp), intent(in) :: r2, qq, lj6, lj12, table_scale, table(0:*), cutoff2
    real(rp) :: place, u
    integer :: entry
#include "cell_pair.inc"
  end function over_distance

#define COORDINATE(axis, i, c) coordinate(axis, i, c)
#define FORCE(axis, i, c) force(axis, i, c)
#define FIRST 3
#define SECOND cells%capacity
#define NAMED(name) name/**/_aos
#include "cell_algorithms.inc"
#undef COORDINATE
#undef FORCE
#undef FIRST
#undef SECOND
#undef NAMED

#define COORDINATE(axis, i, c) coordinate(i, axis, c)
#define FORCE(axis, i, c) force(i, axis, c)
#define FIRST cells%capacity
#define SECOND 3
#define NAMED(name) name/**/_soa
#include "cell_algorithms.inc"

end module cell_kernels
