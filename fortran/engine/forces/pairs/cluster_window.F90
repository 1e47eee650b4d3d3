!> Coordinates and parameters of some of the clusters, packed as the loops over pairs read them: lanes first, and with 16
!> lanes the 8 atoms of a cluster twice.
#include "coordinate_kind.inc"
module cluster_window
  use base_kinds, only: int32, real64
  use atom_types, only: atom_types_t
  use pair_block, only: meets_all, meets_ghosts
  use pair_list, only: cluster_size, pair_list_t
  use pair_precision, only: real_pair
  implicit none
  private
  public :: find_special, frame_t, window_t

  !> Packed coordinates are (position - origin)/unit (angstrom).
  type :: frame_t
    real(real64) :: origin(3) = 0.0_real64, unit = 1.0_real64
  end type frame_t

  !> Clusters `base + 1` to `base + size(coordinate, 3)`.
  type :: window_t
    integer :: base = 0
    real(real64) :: unit = 1.0_real64
    !> (lanes, 3, clusters).
    COORDINATE_KIND, allocatable :: coordinate(:, :, :)
    !> (lanes, 3, clusters): charge times root of the Coulomb constant, half sigma, twice the root of epsilon.
    real(real_pair), allocatable :: parameter_of(:, :, :)
    !> (lanes, clusters); only with matrices.
    integer, allocatable :: type_of(:, :)
    !> Coordinates of the deterministic mode: angstrom, (8, 3, clusters).
    real(real64), allocatable :: exact_coordinate(:, :, :)
  contains
    procedure :: pack_parameters
    procedure :: pack_coordinates
    procedure :: pack_exactly
  end type window_t

contains

  !> Make room for clusters `first` to `last` and pack their parameters; pads do not interact. `charge` (e) and `lj_type` are
  !> those of the kinds of atoms, `kind` that of each atom.
  subroutine pack_parameters(self, list, types, lanes, first, last, kind, charge, lj_type)
    class(window_t), intent(inout) :: self
    type(pair_list_t), intent(in) :: list
    type(atom_types_t), intent(in) :: types
    integer, intent(in) :: lanes, first, last, kind(:), lj_type(:)
    real(real64), intent(in) :: charge(:)
    integer :: c, k, lane, atom, t
    real(real_pair) :: parameters(3)

    self%base = first - 1
    if (allocated(self%parameter_of)) deallocate (self%parameter_of, self%type_of)
    associate (n => last - first + 1)
      ! Only matrices are looked up by types.
      allocate (self%parameter_of(lanes, 3, n), self%type_of(lanes, merge(n, 1, types%by_matrix)))
    end associate
    !$omp parallel do schedule(static) private(k, lane, atom, t, parameters)
    do c = 1, last - self%base
      do k = 1, cluster_size
        atom = list%slot_atom(cluster_size*(c + self%base - 1) + k)
        t = types%n
        parameters(1) = 0.0_real_pair
        if (atom > 0) then
          t = lj_type(kind(atom))
          parameters(1) = real(charge(kind(atom))*sqrt(types%coulomb_constant), real_pair)
        end if
        parameters(2:) = [types%half_sigma(t), types%twice_root_epsilon(t)]
        do lane = k, lanes, cluster_size
          self%parameter_of(lane, :, c) = parameters
          if (types%by_matrix) self%type_of(lane, c) = t
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine pack_parameters

  !> Pack the coordinates of clusters `first` to `last`, of all atoms or of those that `meets` tells. `position`: (3, atoms),
  !> angstrom.
  subroutine pack_coordinates(self, list, frame, lanes, first, last, meets, n_owned, position)
    class(window_t), intent(inout) :: self
    type(pair_list_t), intent(in) :: list
    type(frame_t), intent(in) :: frame
    integer, intent(in) :: lanes, first, last, meets, n_owned
    real(real64), intent(in) :: position(:, :)
    real(real64) :: scale, scaled(cluster_size)
    integer :: c, axis, k, atom(cluster_size)

    self%unit = frame%unit
    scale = 1.0_real64/frame%unit
    self%base = first - 1
    if (.not. allocated(self%coordinate)) allocate (self%coordinate(lanes, 3, last - first + 1))
    !$omp parallel do schedule(static) private(axis, k, atom, scaled)
    do c = 1, last - self%base
      if (meets /= meets_all) then
        if ((meets == meets_ghosts) .neqv. list%is_of_ghosts(c + self%base, n_owned)) cycle
      end if
      atom = abs(list%slot_atom(cluster_size*(c + self%base - 1) + 1:cluster_size*(c + self%base)))
      do axis = 1, 3
        do k = 1, cluster_size
          scaled(k) = (position(axis, atom(k)) - frame%origin(axis))*scale
        end do
#ifdef CHROMAMD_DOUBLE
        self%coordinate(:, axis, c) = scaled
#else
        self%coordinate(:cluster_size, axis, c) = int(scaled + sign(0.5_real64, scaled), int32)
        if (lanes > cluster_size) self%coordinate(cluster_size + 1:, axis, c) = self%coordinate(:cluster_size, axis, c)
#endif
      end do
    end do
    !$omp end parallel do
  end subroutine pack_coordinates

  !> The same in the deterministic mode, in angstrom.
  subroutine pack_exactly(self, list, first, last, position)
    class(window_t), intent(inout) :: self
    type(pair_list_t), intent(in) :: list
    integer, intent(in) :: first, last
    real(real64), intent(in) :: position(:, :)
    integer :: c, k
    if (.not. allocated(self%exact_coordinate)) allocate (self%exact_coordinate(cluster_size, 3, last - first + 1))
    !$omp parallel do schedule(static) private(k)
    do c = first, last
      do k = 1, cluster_size
        self%exact_coordinate(k, :, c - first + 1) = position(:, abs(list%slot_atom(cluster_size*(c - 1) + k)))
      end do
    end do
    !$omp end parallel do
  end subroutine pack_exactly

  !> Which halves of clusters and clusters hold atoms that need pair matrices.
  !> `lj_type`: of each atom.
  !> `special_half`, `special_cluster`: of each half and each cluster of `list`.
  subroutine find_special(list, types, lj_type, special_half, special_cluster)
    type(pair_list_t), intent(in) :: list
    type(atom_types_t), intent(in) :: types
    integer, intent(in) :: lj_type(:)
    logical, allocatable, intent(out) :: special_half(:), special_cluster(:)
    integer :: half, k, atom
    logical :: special

    allocate (special_half(2*list%n_clusters), special_cluster(list%n_clusters))
    !$omp parallel do schedule(static) private(k, atom, special)
    do half = 1, 2*list%n_clusters
      special = .false.
      do k = (half - 1)*(cluster_size/2) + 1, half*(cluster_size/2)
        atom = list%slot_atom(k)
        if (atom > 0) special = special .or. types%is_special(lj_type(atom))
      end do
      special_half(half) = special
    end do
    !$omp end parallel do
    special_cluster = special_half(1::2) .or. special_half(2::2)
  end subroutine find_special

end module cluster_window
