! The pair loops for one instruction set. Compiled several times by nonbonded.cmake with other macros:
!   KERNEL_MODULE     name of the module
!   LANES             pairs handled side by side: 8 or 16
!   CHROMAMD_DOUBLE   real64 pair arithmetic
! In the mixed build coordinates are 32-bit integers in units of a small power of two, so that differences are exact
! whatever the size of the domain; in the double build they are real64.
#ifdef CHROMAMD_DOUBLE
#define COORDINATE_KIND real(real64)
#define HORNER(c, t) ((((((((((((((((((((((((((((c(28)*t+c(27))*t+c(26))*t+c(25))*t+c(24))*t+c(23))*t+c(22))*t+c(21))*t+c(20))*t+c(19))*t+c(18))*t+c(17))*t+c(16))*t+c(15))*t+c(14))*t+c(13))*t+c(12))*t+c(11))*t+c(10))*t+c(9))*t+c(8))*t+c(7))*t+c(6))*t+c(5))*t+c(4))*t+c(3))*t+c(2))*t+c(1))*t+c(0))
#else
#define COORDINATE_KIND integer(int32)
#define HORNER(c, t) ((((((((((((c(12)*t+c(11))*t+c(10))*t+c(9))*t+c(8))*t+c(7))*t+c(6))*t+c(5))*t+c(4))*t+c(3))*t+c(2))*t+c(1))*t+c(0))
#endif
#define EXCLUSION_HORNER(c, t) ((((((((((((((((c(16)*t+c(15))*t+c(14))*t+c(13))*t+c(12))*t+c(11))*t+c(10))*t+c(9))*t+c(8))*t+c(7))*t+c(6))*t+c(5))*t+c(4))*t+c(3))*t+c(2))*t+c(1))*t+c(0))
#define GROUPS (32/LANES)
#define R12_OF_R2(r2) (r2*r2*r2*r2*r2*r2)
#define FORM_PLAIN 0
#define FORM_SWITCH 1
#define FORM_FORCE_SWITCH 3
#define SHARED_BEFORE first_i, last_i, first_i, list_first, list_cluster,
#define SHARED_AFTER n_clusters, coordinate, unit, parameter_of, type_of, n_types, c6, c12, pair, force_lower, force_upper, force, energy_lj, energy_elec

module KERNEL_MODULE
  use precision, only: int32, real64, rp => real_pair
  use pair_parameters, only: exclusion_degree, fit_degree, pair_parameters_t
  implicit none
  private
  public :: compute_block, correct_exclusions, prune

  real(real64), parameter :: sqrt_pi = 1.7724538509055160273_real64

contains

  !> Forces (and energies) of one list over the i clusters `first_i..last_i`. `list_bits` is used only when `masked`.
  !> Forces are added in units of kcal/mol/angstrom^2 times the unit of the coordinates.
  subroutine compute_block(masked, want_energy, matrix, form, first_i, last_i, list_first, list_cluster, list_bits, &
                           n_clusters, coordinate, unit, parameter_of, type_of, n_types, c6, c12, pair, force_lower, &
                           force_upper, force, energy_lj, energy_elec)
    logical, intent(in) :: masked, want_energy, matrix
    integer, intent(in) :: form, first_i, last_i
    integer, intent(in) :: list_first(first_i:*), list_cluster(*), list_bits(*)
    integer, intent(in) :: n_clusters, n_types, force_lower, force_upper
    COORDINATE_KIND, intent(in) :: coordinate(LANES, 3, n_clusters)
    real(real64), intent(in) :: unit
    real(rp), intent(in) :: parameter_of(LANES, 3, n_clusters)
    integer, intent(in) :: type_of(LANES, n_clusters)
    real(rp), intent(in) :: c6(n_types*n_types), c12(n_types*n_types)
    type(pair_parameters_t), intent(in) :: pair
    real(rp), intent(inout) :: force(LANES, 3, force_lower:force_upper)
    real(real64), intent(inout) :: energy_lj, energy_elec

    integer :: variant

    variant = 8*form + merge(4, 0, matrix) + merge(2, 0, want_energy) + merge(1, 0, masked)
    select case (variant)
    case (0)
      call atom_plain(SHARED_BEFORE SHARED_AFTER)
    case (1)
      call atom_plain_masked(SHARED_BEFORE list_bits, SHARED_AFTER)
    case (2)
      call atom_plain_energy(SHARED_BEFORE SHARED_AFTER)
    case (3)
      call atom_plain_energy_masked(SHARED_BEFORE list_bits, SHARED_AFTER)
    case (4)
      call matrix_plain(SHARED_BEFORE SHARED_AFTER)
    case (5)
      call matrix_plain_masked(SHARED_BEFORE list_bits, SHARED_AFTER)
    case (6)
      call matrix_plain_energy(SHARED_BEFORE SHARED_AFTER)
    case (7)
      call matrix_plain_energy_masked(SHARED_BEFORE list_bits, SHARED_AFTER)
    case (8)
      call atom_switch(SHARED_BEFORE SHARED_AFTER)
    case (9)
      call atom_switch_masked(SHARED_BEFORE list_bits, SHARED_AFTER)
    case (10)
      call atom_switch_energy(SHARED_BEFORE SHARED_AFTER)
    case (11)
      call atom_switch_energy_masked(SHARED_BEFORE list_bits, SHARED_AFTER)
    case (12)
      call matrix_switch(SHARED_BEFORE SHARED_AFTER)
    case (13)
      call matrix_switch_masked(SHARED_BEFORE list_bits, SHARED_AFTER)
    case (14)
      call matrix_switch_energy(SHARED_BEFORE SHARED_AFTER)
    case (15)
      call matrix_switch_energy_masked(SHARED_BEFORE list_bits, SHARED_AFTER)
    case (24)
      call atom_force_switch(SHARED_BEFORE SHARED_AFTER)
    case (25)
      call atom_force_switch_masked(SHARED_BEFORE list_bits, SHARED_AFTER)
    case (26)
      call atom_force_switch_energy(SHARED_BEFORE SHARED_AFTER)
    case (27)
      call atom_force_switch_energy_masked(SHARED_BEFORE list_bits, SHARED_AFTER)
    case (28)
      call matrix_force_switch(SHARED_BEFORE SHARED_AFTER)
    case (29)
      call matrix_force_switch_masked(SHARED_BEFORE list_bits, SHARED_AFTER)
    case (30)
      call matrix_force_switch_energy(SHARED_BEFORE SHARED_AFTER)
    case (31)
      call matrix_force_switch_energy_masked(SHARED_BEFORE list_bits, SHARED_AFTER)
    end select
  end subroutine compute_block

  !> Ewald correction of excluded pairs, -q q erf(alpha r)/r, in real64. Row i of the list holds all partners of atom i,
  !> so that every pair occurs twice: each row gives the force on its own atom and half of the energy.
  subroutine correct_exclusions(first_row, last_row, row_first, partner, n_atoms, position, charge, pair, &
                                coulomb_constant, force, energy)
    integer, intent(in) :: first_row, last_row, n_atoms
    integer, intent(in) :: row_first(n_atoms + 1), partner(*)
    real(real64), intent(in) :: position(3, n_atoms), charge(n_atoms), coulomb_constant
    type(pair_parameters_t), intent(in) :: pair
    real(real64), intent(inout) :: force(3, n_atoms), energy
    integer, parameter :: chunk = 512
    real(real64) :: dx(chunk), dy(chunk), dz(chunk), qq(chunk), f(chunk), v(chunk), r2, t, fk, vk, r
    real(real64) :: force_fit(0:exclusion_degree), energy_fit(0:exclusion_degree)
    integer :: i, j, k, m, n, first, last

    force_fit = pair%exclusion_force_fit
    energy_fit = pair%exclusion_energy_fit
    first = first_row
    do while (first <= last_row)
      ! Rows until the chunk is full; a longer row is cut into pieces.
      last = first
      do while (last < last_row)
        if (row_first(last + 2) - row_first(first) > chunk) exit
        last = last + 1
      end do
      do m = row_first(first), row_first(last + 1) - 1, chunk
        n = 0
        do i = first, last
          do k = max(m, row_first(i)), min(m + chunk, row_first(i + 1)) - 1
            j = partner(k)
            n = n + 1
            dx(n) = position(1, i) - position(1, j)
            dy(n) = position(2, i) - position(2, j)
            dz(n) = position(3, i) - position(3, j)
            qq(n) = coulomb_constant*charge(i)*charge(j)
          end do
        end do
        !$omp simd private(t, fk, vk)
        do k = 1, n
          t = min((dx(k)**2 + dy(k)**2 + dz(k)**2)*pair%exclusion_scale - 1.0_real64, 1.0_real64)
          fk = EXCLUSION_HORNER(force_fit, t)
          vk = EXCLUSION_HORNER(energy_fit, t)
          f(k) = fk
          v(k) = vk
        end do
        n = 0
        do i = first, last
          do k = max(m, row_first(i)), min(m + chunk, row_first(i + 1)) - 1
            n = n + 1
            r2 = dx(n)**2 + dy(n)**2 + dz(n)**2
            if (r2 > pair%exclusion_reach2) then
              r = sqrt(r2)
              v(n) = erf(pair%alpha*r)/r
              f(n) = (v(n) - 2.0_real64*pair%alpha/sqrt_pi*exp(-pair%alpha**2*r2))/r2
            end if
            force(1, i) = force(1, i) - qq(n)*f(n)*dx(n)
            force(2, i) = force(2, i) - qq(n)*f(n)*dy(n)
            force(3, i) = force(3, i) - qq(n)*f(n)*dz(n)
            energy = energy - 0.5_real64*qq(n)*v(n)
          end do
        end do
      end do
      first = last + 1
    end do
  end subroutine correct_exclusions

  !> Keep the entries that have at least one pair of atoms within sqrt(reach2).
  subroutine prune(first_i, last_i, list_first, list_cluster, n_clusters, coordinate, unit, reach2, kept_first, &
                   kept_cluster)
    integer, intent(in) :: first_i, last_i
    integer, intent(in) :: list_first(first_i:last_i + 1), list_cluster(*)
    integer, intent(in) :: n_clusters
    COORDINATE_KIND, intent(in) :: coordinate(LANES, 3, n_clusters)
    real(real64), intent(in) :: unit, reach2
    integer, intent(inout) :: kept_first(first_i:last_i + 1), kept_cluster(*)
    COORDINATE_KIND :: xi(LANES, GROUPS), yi(LANES, GROUPS), zi(LANES, GROUPS)
    real(rp) :: nearest(LANES), dx, dy, dz, near2, closest
    integer :: i, j, k, g, lane, slot, block, n

    near2 = real(reach2/unit**2, rp)
    n = 0
    do i = first_i, last_i
      kept_first(i) = n + 1
      if (list_first(i + 1) == list_first(i)) cycle
      block = (i + 1)/2
      do g = 1, GROUPS
        do lane = 1, LANES
          slot = 4*(1 - mod(i, 2)) + (g - 1)*(LANES/8) + (lane - 1)/8 + 1
          xi(lane, g) = coordinate(slot, 1, block)
          yi(lane, g) = coordinate(slot, 2, block)
          zi(lane, g) = coordinate(slot, 3, block)
        end do
      end do
      do k = list_first(i), list_first(i + 1) - 1
        j = list_cluster(k)
        !$omp simd private(dx, dy, dz, closest)
        do lane = 1, LANES
          closest = huge(closest)
          !GCC$ unroll 8
          do g = 1, GROUPS
            dx = real(xi(lane, g) - coordinate(lane, 1, j), rp)
            dy = real(yi(lane, g) - coordinate(lane, 2, j), rp)
            dz = real(zi(lane, g) - coordinate(lane, 3, j), rp)
            closest = min(closest, dx*dx + dy*dy + dz*dz)
          end do
          nearest(lane) = closest
        end do
        kept_cluster(n + 1) = j
        n = n + merge(1, 0, minval(nearest) < near2)
      end do
    end do
    kept_first(last_i + 1) = n + 1
  end subroutine prune

#define LOOP_NAME atom_plain
#define LOOP_FORM FORM_PLAIN
#include "nonbonded_loop.inc"

#define LOOP_NAME atom_plain_masked
#define LOOP_FORM FORM_PLAIN
#define LOOP_MASKED
#include "nonbonded_loop.inc"
#undef LOOP_MASKED

#define LOOP_NAME atom_plain_energy
#define LOOP_FORM FORM_PLAIN
#define LOOP_ENERGY
#include "nonbonded_loop.inc"
#undef LOOP_ENERGY

#define LOOP_NAME atom_plain_energy_masked
#define LOOP_FORM FORM_PLAIN
#define LOOP_ENERGY
#define LOOP_MASKED
#include "nonbonded_loop.inc"
#undef LOOP_ENERGY
#undef LOOP_MASKED

#define LOOP_NAME matrix_plain
#define LOOP_FORM FORM_PLAIN
#define LOOP_MATRIX
#include "nonbonded_loop.inc"
#undef LOOP_MATRIX

#define LOOP_NAME matrix_plain_masked
#define LOOP_FORM FORM_PLAIN
#define LOOP_MATRIX
#define LOOP_MASKED
#include "nonbonded_loop.inc"
#undef LOOP_MATRIX
#undef LOOP_MASKED

#define LOOP_NAME matrix_plain_energy
#define LOOP_FORM FORM_PLAIN
#define LOOP_MATRIX
#define LOOP_ENERGY
#include "nonbonded_loop.inc"
#undef LOOP_MATRIX
#undef LOOP_ENERGY

#define LOOP_NAME matrix_plain_energy_masked
#define LOOP_FORM FORM_PLAIN
#define LOOP_MATRIX
#define LOOP_ENERGY
#define LOOP_MASKED
#include "nonbonded_loop.inc"
#undef LOOP_MATRIX
#undef LOOP_ENERGY
#undef LOOP_MASKED

#define LOOP_NAME atom_switch
#define LOOP_FORM FORM_SWITCH
#include "nonbonded_loop.inc"

#define LOOP_NAME atom_switch_masked
#define LOOP_FORM FORM_SWITCH
#define LOOP_MASKED
#include "nonbonded_loop.inc"
#undef LOOP_MASKED

#define LOOP_NAME atom_switch_energy
#define LOOP_FORM FORM_SWITCH
#define LOOP_ENERGY
#include "nonbonded_loop.inc"
#undef LOOP_ENERGY

#define LOOP_NAME atom_switch_energy_masked
#define LOOP_FORM FORM_SWITCH
#define LOOP_ENERGY
#define LOOP_MASKED
#include "nonbonded_loop.inc"
#undef LOOP_ENERGY
#undef LOOP_MASKED

#define LOOP_NAME matrix_switch
#define LOOP_FORM FORM_SWITCH
#define LOOP_MATRIX
#include "nonbonded_loop.inc"
#undef LOOP_MATRIX

#define LOOP_NAME matrix_switch_masked
#define LOOP_FORM FORM_SWITCH
#define LOOP_MATRIX
#define LOOP_MASKED
#include "nonbonded_loop.inc"
#undef LOOP_MATRIX
#undef LOOP_MASKED

#define LOOP_NAME matrix_switch_energy
#define LOOP_FORM FORM_SWITCH
#define LOOP_MATRIX
#define LOOP_ENERGY
#include "nonbonded_loop.inc"
#undef LOOP_MATRIX
#undef LOOP_ENERGY

#define LOOP_NAME matrix_switch_energy_masked
#define LOOP_FORM FORM_SWITCH
#define LOOP_MATRIX
#define LOOP_ENERGY
#define LOOP_MASKED
#include "nonbonded_loop.inc"
#undef LOOP_MATRIX
#undef LOOP_ENERGY
#undef LOOP_MASKED

#define LOOP_NAME atom_force_switch
#define LOOP_FORM FORM_FORCE_SWITCH
#include "nonbonded_loop.inc"

#define LOOP_NAME atom_force_switch_masked
#define LOOP_FORM FORM_FORCE_SWITCH
#define LOOP_MASKED
#include "nonbonded_loop.inc"
#undef LOOP_MASKED

#define LOOP_NAME atom_force_switch_energy
#define LOOP_FORM FORM_FORCE_SWITCH
#define LOOP_ENERGY
#include "nonbonded_loop.inc"
#undef LOOP_ENERGY

#define LOOP_NAME atom_force_switch_energy_masked
#define LOOP_FORM FORM_FORCE_SWITCH
#define LOOP_ENERGY
#define LOOP_MASKED
#include "nonbonded_loop.inc"
#undef LOOP_ENERGY
#undef LOOP_MASKED

#define LOOP_NAME matrix_force_switch
#define LOOP_FORM FORM_FORCE_SWITCH
#define LOOP_MATRIX
#include "nonbonded_loop.inc"
#undef LOOP_MATRIX

#define LOOP_NAME matrix_force_switch_masked
#define LOOP_FORM FORM_FORCE_SWITCH
#define LOOP_MATRIX
#define LOOP_MASKED
#include "nonbonded_loop.inc"
#undef LOOP_MATRIX
#undef LOOP_MASKED

#define LOOP_NAME matrix_force_switch_energy
#define LOOP_FORM FORM_FORCE_SWITCH
#define LOOP_MATRIX
#define LOOP_ENERGY
#include "nonbonded_loop.inc"
#undef LOOP_MATRIX
#undef LOOP_ENERGY

#define LOOP_NAME matrix_force_switch_energy_masked
#define LOOP_FORM FORM_FORCE_SWITCH
#define LOOP_MATRIX
#define LOOP_ENERGY
#define LOOP_MASKED
#include "nonbonded_loop.inc"
#undef LOOP_MATRIX
#undef LOOP_ENERGY
#undef LOOP_MASKED

end module KERNEL_MODULE
