!> What the loops over pairs of the deterministic mode (module base_fixed_point) have in common: the arguments. Forces
!> (kcal/mol/angstrom) of one list over the i clusters `first_i..last_i`: of j clusters with their `list_bits` if `masked`,
!> else of runs of j clusters as in module pair_block; with energies also the virial. As to the number of arguments see
!> pair_loop.F90.in.
module exact_loop
  use base_fixed_point, only: rounding_t
  use base_kinds, only: real64
  use pair_precision, only: rp => real_pair
  use pair_parameters, only: pair_parameters_t
  implicit none
  private
  public :: exact_loop_t

  abstract interface
    subroutine exact_loop_over_pairs(first_i, last_i, list_first, list, masked, list_bits, n_lanes, n_clusters, coordinate, &
                                     parameter_of, type_of, n_types, c6, c12, pair, rounding, force_lower, force_upper, &
                                     force, energy, virial)
      import :: real64, rp, pair_parameters_t, rounding_t
      !> Clusters; rows (first_i:last_i + 1) of entries, which are clusters or runs; 32 bits an entry.
      integer, intent(in) :: first_i, last_i
      integer, intent(in) :: list_first(first_i:*), list(*)
      logical, intent(in) :: masked
      integer, intent(in) :: list_bits(*)
      integer, intent(in) :: n_lanes, n_clusters, n_types, force_lower, force_upper
      !> Angstrom.
      real(real64), intent(in) :: coordinate(8, 3, n_clusters)
      !> As in pair_loop.F90.in; of their lanes the first 8 count.
      real(rp), intent(in) :: parameter_of(n_lanes, 3, n_clusters)
      integer, intent(in) :: type_of(n_lanes, n_clusters)
      real(rp), intent(in) :: c6(n_types*n_types), c12(n_types*n_types)
      type(pair_parameters_t), intent(in) :: pair
      type(rounding_t), intent(in) :: rounding
      !> Energies: van der Waals, Coulomb (kcal/mol); virial: xx, yy, zz, xy, xz, yz (kcal/mol).
      real(real64), intent(inout) :: force(8, 3, force_lower:force_upper), energy(2), virial(6)
    end subroutine exact_loop_over_pairs
  end interface

  type :: exact_loop_t
    procedure(exact_loop_over_pairs), pointer, nopass :: run => null()
  end type exact_loop_t

end module exact_loop
