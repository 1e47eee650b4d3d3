!> Chooses at run time among the loops of material_kernel.F90.in, as kernel_dispatch does among those of the molecular forces.
#ifdef CHROMAMD_DOUBLE
#define COORDINATE_KIND real(real64)
#else
#define COORDINATE_KIND integer(int32)
#endif
module material_dispatch
  use base_kinds, only: int32, real64
  use pair_precision, only: real_pair
  use material_kernel_baseline, only: collect_baseline => collect, lj_baseline => lj_rows, lj_energy_baseline => lj_rows_energy, &
    density_baseline => density_rows, eam_baseline => eam_rows, eam_energy_baseline => eam_rows_energy
#ifdef CHROMAMD_X86_KERNELS
  use material_kernel_avx2, only: collect_avx2 => collect, lj_avx2 => lj_rows, lj_energy_avx2 => lj_rows_energy, density_avx2 => density_rows, &
    eam_avx2 => eam_rows, eam_energy_avx2 => eam_rows_energy
  use material_kernel_avx512, only: collect_avx512 => collect, lj_avx512 => lj_rows, lj_energy_avx512 => lj_rows_energy, &
    density_avx512 => density_rows, eam_avx512 => eam_rows, eam_energy_avx512 => eam_rows_energy
#endif
  use row_block, only: row_block_t
  implicit none
  private
  public :: collect_partners, lj_block, density_block, eam_block

contains

#define ROWS block%first, block%last, block%row_first, block%row_length, block%partner, coordinate(1), coordinate(2), \
  coordinate(3), unit, cutoff
#define RESULT 4*(block%first - 1), block%result, energy
#define TABLE(t) t(1), t(2), t(3), t(4)

  !> Append the partners of slot `i` among the slots `first..last` to `partner(:n)`, which has room for them and one more.
  !> `sorted(n_slots, 3)`: coordinates of the slots (angstrom).
  subroutine collect_partners(instruction_set, i, first, last, sorted, is_owned, reach2, partner, n)
    integer, intent(in) :: instruction_set, i, first, last
    integer, contiguous, intent(in) :: is_owned(:)
    real(real_pair), contiguous, intent(in) :: sorted(:, :)
    real(real64), intent(in) :: reach2
    integer, contiguous, intent(inout) :: partner(:)
    integer, intent(inout) :: n
    if (last < first) return
    select case (instruction_set)
#ifdef CHROMAMD_X86_KERNELS
    case (3)
      call collect_avx512(i, first, last, size(is_owned), sorted, is_owned, real(reach2, real_pair), partner, n)
    case (2)
      call collect_avx2(i, first, last, size(is_owned), sorted, is_owned, real(reach2, real_pair), partner, n)
#endif
    case default
      call collect_baseline(i, first, last, size(is_owned), sorted, is_owned, real(reach2, real_pair), partner, n)
    end select
  end subroutine collect_partners

  !> Lennard-Jones forces of a block in units of kcal/mol/angstrom^2 times `unit`, in which the coordinates are too
  !> (`coordinate(4, n_slots + 1)`); `lj`: c6, c12, energy at the cutoff.
  subroutine lj_block(instruction_set, want_energy, block, coordinate, unit, cutoff, lj, energy)
    integer, intent(in) :: instruction_set
    logical, intent(in) :: want_energy
    type(row_block_t), intent(inout) :: block
    COORDINATE_KIND, intent(in) :: coordinate(*)
    real(real64), intent(in) :: unit, cutoff
    real(real_pair), intent(in) :: lj(3)
    real(real64), intent(inout) :: energy
#define CHOOSE(plain, with_energy) if (want_energy) then; call with_energy(ROWS, lj, RESULT); else; call plain(ROWS, lj, RESULT); end if
    select case (instruction_set)
#ifdef CHROMAMD_X86_KERNELS
    case (3)
      CHOOSE(lj_avx512, lj_energy_avx512)
    case (2)
      CHOOSE(lj_avx2, lj_energy_avx2)
#endif
    case default
      CHOOSE(lj_baseline, lj_energy_baseline)
    end select
#undef CHOOSE
  end subroutine lj_block

  !> Electron densities of a block, in component 1 of its result. `density(4, n_intervals)`: table of a pair's density.
  subroutine density_block(instruction_set, block, coordinate, unit, cutoff, inverse_step, n_intervals, density)
    integer, intent(in) :: instruction_set, n_intervals
    type(row_block_t), intent(inout) :: block
    COORDINATE_KIND, intent(in) :: coordinate(*)
    real(real64), intent(in) :: unit, cutoff
    real(real_pair), intent(in) :: inverse_step, density(*)
    real(real64) :: energy
    energy = 0.0_real64
#define CALL_DENSITY(name) call name(ROWS, inverse_step, n_intervals, TABLE(density), RESULT)
    select case (instruction_set)
#ifdef CHROMAMD_X86_KERNELS
    case (3)
      CALL_DENSITY(density_avx512)
    case (2)
      CALL_DENSITY(density_avx2)
#endif
    case default
      CALL_DENSITY(density_baseline)
    end select
#undef CALL_DENSITY
  end subroutine density_block

  !> Forces of the embedded-atom method on a block; `pair(4, n_intervals)`: table of distance times pair energy, `slope(slot)`: of
  !> the embedding energies. `energy`: of the pairs.
  subroutine eam_block(instruction_set, want_energy, block, coordinate, unit, cutoff, inverse_step, n_intervals, density, &
                       pair, slope, energy)
    integer, intent(in) :: instruction_set, n_intervals
    logical, intent(in) :: want_energy
    type(row_block_t), intent(inout) :: block
    COORDINATE_KIND, intent(in) :: coordinate(*)
    real(real64), intent(in) :: unit, cutoff
    real(real_pair), intent(in) :: inverse_step, density(*), pair(*), slope(*)
    real(real64), intent(inout) :: energy
#define EAM(name) call name(ROWS, inverse_step, n_intervals, TABLE(density), TABLE(pair), slope, RESULT)
#define CHOOSE(plain, with_energy) if (want_energy) then; EAM(with_energy); else; EAM(plain); end if
    select case (instruction_set)
#ifdef CHROMAMD_X86_KERNELS
    case (3)
      CHOOSE(eam_avx512, eam_energy_avx512)
    case (2)
      CHOOSE(eam_avx2, eam_energy_avx2)
#endif
    case default
      CHOOSE(eam_baseline, eam_energy_baseline)
    end select
  end subroutine eam_block

end module material_dispatch
