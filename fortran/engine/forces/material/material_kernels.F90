!> The loops over the rows of module row_list for an instruction set, as the rest of the engine sees them; extensions
!> (material_kernels_set.F90.in) know the length of the vectors. All atoms are of one kind.
#include "../pairs/coordinate_kind.inc"
module material_kernels
  use base_kinds, only: int32, real64
  use pair_precision, only: real_pair
  use row_block, only: row_block_t
  implicit none
  private
  public :: embedded_table_t, material_kernels_t

  !> Tables of the embedded-atom method in the distance, four coefficients an interval: (4, n_intervals) density of an atom,
  !> and distance times pair energy (kcal/mol angstrom). Intervals have the inverse length 1/angstrom.
  type :: embedded_table_t
    real(real_pair) :: inverse_step = 1.0_real_pair
    integer :: n_intervals = 0
    real(real_pair), allocatable :: density(:, :), pair(:, :)
  end type embedded_table_t

  type, abstract :: material_kernels_t
    !> Length of the vectors.
    integer :: lanes = 8
  contains
    procedure(choice), deferred :: choose
    procedure(collection), deferred :: collect
    procedure(lennard_jones_sum), deferred :: add_lennard_jones
    procedure(density_sum), deferred :: add_density
    procedure(embedded_atoms_sum), deferred :: add_embedded_atoms
  end type material_kernels_t

  ! Coordinates are (4, n_slots + 1) in multiples of `unit` (angstrom). Forces are added to the result of a block in units of
  ! kcal/mol/angstrom^2 times `unit`, densities to component 1, energies of pairs (kcal/mol) to `energy`.
  abstract interface
    !> Before any of the others.
    subroutine choice(self)
      import :: material_kernels_t
      class(material_kernels_t), intent(inout) :: self
    end subroutine choice

    !> Append the partners of slot `i` among the slots `first..last` to `partner(:n)`, which has room for them and one more.
    !> `sorted(n_slots, 3)`: coordinates of the slots (angstrom).
    subroutine collection(self, i, first, last, sorted, is_owned, reach2, partner, n)
      import :: material_kernels_t, real64, real_pair
      class(material_kernels_t), intent(in) :: self
      integer, intent(in) :: i, first, last
      real(real_pair), contiguous, intent(in) :: sorted(:, :)
      integer, contiguous, intent(in) :: is_owned(:)
      real(real64), intent(in) :: reach2
      integer, contiguous, intent(inout) :: partner(:)
      integer, intent(inout) :: n
    end subroutine collection

    !> `lj`: c6, c12, energy at the cutoff.
    subroutine lennard_jones_sum(self, want_energy, block, coordinate, unit, cutoff, lj, energy)
      import :: int32, material_kernels_t, real64, real_pair, row_block_t
      class(material_kernels_t), intent(in) :: self
      logical, intent(in) :: want_energy
      type(row_block_t), intent(inout) :: block
      COORDINATE_KIND, intent(in) :: coordinate(*)
      real(real64), intent(in) :: unit, cutoff
      real(real_pair), intent(in) :: lj(3)
      real(real64), intent(inout) :: energy
    end subroutine lennard_jones_sum

    subroutine density_sum(self, block, coordinate, unit, cutoff, table)
      import :: embedded_table_t, int32, material_kernels_t, real64, row_block_t
      class(material_kernels_t), intent(in) :: self
      type(row_block_t), intent(inout) :: block
      COORDINATE_KIND, intent(in) :: coordinate(*)
      real(real64), intent(in) :: unit, cutoff
      type(embedded_table_t), intent(in) :: table
    end subroutine density_sum

    !> `slope(slot)`: of the embedding energies.
    subroutine embedded_atoms_sum(self, want_energy, block, coordinate, unit, cutoff, table, slope, energy)
      import :: embedded_table_t, int32, material_kernels_t, real64, real_pair, row_block_t
      class(material_kernels_t), intent(in) :: self
      logical, intent(in) :: want_energy
      type(row_block_t), intent(inout) :: block
      COORDINATE_KIND, intent(in) :: coordinate(*)
      real(real64), intent(in) :: unit, cutoff
      type(embedded_table_t), intent(in) :: table
      real(real_pair), intent(in) :: slope(*)
      real(real64), intent(inout) :: energy
    end subroutine embedded_atoms_sum
  end interface

end module material_kernels
