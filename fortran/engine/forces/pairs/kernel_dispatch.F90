!> Chooses at run time among the pair kernels compiled for the instruction sets of this architecture.
#ifdef CHROMAMD_DOUBLE
#define COORDINATE_KIND real(real64)
#else
#define COORDINATE_KIND integer(int32)
#endif
module kernel_dispatch
  use, intrinsic :: iso_c_binding, only: c_int
  use base_kinds, only: int32, real64
  use pair_precision, only: real_pair
  use base_fixed_point, only: rounding_t
  use pair_parameters, only: pair_parameters_t
  use nonbonded_kernel_baseline, only: compute_baseline => compute_block, correct_baseline => correct_exclusions, &
                                       prune_baseline => prune
  use table_kernel_baseline, only: tabulated_baseline => compute_tabulated
  use exact_kernel_baseline, only: exact_baseline => compute_exact, correct_exactly_baseline => correct_exclusions
#ifdef CHROMAMD_X86_KERNELS
  use nonbonded_kernel_avx2, only: compute_avx2 => compute_block, correct_avx2 => correct_exclusions, &
    prune_avx2 => prune
  use nonbonded_kernel_avx512, only: compute_avx512 => compute_block, correct_avx512 => correct_exclusions, &
                                     prune_avx512 => prune
  use table_kernel_avx2, only: tabulated_avx2 => compute_tabulated
  use table_kernel_avx512, only: tabulated_avx512 => compute_tabulated
  use exact_kernel_avx2, only: exact_avx2 => compute_exact, correct_exactly_avx2 => correct_exclusions
  use exact_kernel_avx512, only: exact_avx512 => compute_exact, correct_exactly_avx512 => correct_exclusions
#endif
  implicit none
  private
  public :: kernel_dispatch_t

  type :: kernel_dispatch_t
    !> 0 baseline, 2 AVX2, 3 AVX-512.
    integer :: instruction_set = 0
    !> Length of the first dimension of all cluster arrays.
    integer :: lanes = 8
  contains
    procedure :: choose
    procedure :: name
    procedure :: compute_block
    procedure :: correct_exclusions
    procedure :: prune
    procedure :: compute_exact
    procedure :: correct_exactly
  end type kernel_dispatch_t

  interface
    !> Which instruction set the processor has; see cpu_features.c.
    function chromamd_instruction_set() bind(c) result(instruction_set)
      import :: c_int
      integer(c_int) :: instruction_set
    end function chromamd_instruction_set
  end interface

contains

  !> Take the best instruction set, but none above `highest` (for tests and measurements).
  subroutine choose(self, highest)
    class(kernel_dispatch_t), intent(out) :: self
    integer, intent(in), optional :: highest
    self%instruction_set = chromamd_instruction_set()
    if (present(highest)) self%instruction_set = min(self%instruction_set, highest)
    if (self%instruction_set == 1) self%instruction_set = 0
#ifndef CHROMAMD_X86_KERNELS
    self%instruction_set = 0
#endif
    self%lanes = 8
    if (self%instruction_set == 3 .and. real_pair /= real64) self%lanes = 16
  end subroutine choose

  !> For the log.
  pure function name(self)
    class(kernel_dispatch_t), intent(in) :: self
    character(len=:), allocatable :: name
    select case (self%instruction_set)
    case (3)
      name = "AVX-512"
    case (2)
      name = "AVX2"
    case default
      name = "baseline"
    end select
  end function name

  !> See compute_block in nonbonded_kernel.F90.in; by the tables of `pair` if it has any, whatever the form.
  subroutine compute_block(self, masked, want_energy, matrix, form, first_i, last_i, list_first, list, &
    list_bits, &
                           n_clusters, coordinate, unit, parameter_of, type_of, n_types, c6, c12, pair, force_lower, &
                           force_upper, force, energy_lj, energy_elec)
    class(kernel_dispatch_t), intent(in) :: self
    logical, intent(in) :: masked, want_energy, matrix
    integer, intent(in) :: form, first_i, last_i
    integer, intent(in) :: list_first(first_i:*), list(*), list_bits(*)
    integer, intent(in) :: n_clusters, n_types, force_lower, force_upper
    COORDINATE_KIND, intent(in) :: coordinate(self%lanes, 3, n_clusters)
    real(real64), intent(in) :: unit
    real(real_pair), intent(in) :: parameter_of(self%lanes, 3, n_clusters)
    integer, intent(in) :: type_of(self%lanes, n_clusters)
    real(real_pair), intent(in) :: c6(n_types*n_types), c12(n_types*n_types)
    type(pair_parameters_t), intent(in) :: pair
    real(real_pair), intent(inout) :: force(self%lanes, 3, force_lower:force_upper)
    real(real64), intent(inout) :: energy_lj, energy_elec
#define ARGUMENTS first_i, last_i, list_first, list, list_bits, \
  n_clusters, coordinate, unit, parameter_of, type_of, n_types, c6, c12, pair, force_lower, force_upper, force, \
  energy_lj, energy_elec
    select case (merge(10, 0, pair%table_order > 0) + self%instruction_set)
#ifdef CHROMAMD_X86_KERNELS
    case (3)
      call compute_avx512(masked, want_energy, matrix, form, ARGUMENTS)
    case (2)
      call compute_avx2(masked, want_energy, matrix, form, ARGUMENTS)
    case (13)
      call tabulated_avx512(masked, want_energy, matrix, ARGUMENTS)
    case (12)
      call tabulated_avx2(masked, want_energy, matrix, ARGUMENTS)
#endif
    case (10)
      call tabulated_baseline(masked, want_energy, matrix, ARGUMENTS)
    case default
      call compute_baseline(masked, want_energy, matrix, form, ARGUMENTS)
    end select
#undef ARGUMENTS
  end subroutine compute_block

  !> See correct_exclusions in nonbonded_kernel.F90.
  subroutine correct_exclusions(self, first_row, last_row, row_first, partner, n_atoms, position, charge, pair, &
                                coulomb_constant, rounding, want_energy, force, energy)
    class(kernel_dispatch_t), intent(in) :: self
    integer, intent(in) :: first_row, last_row, n_atoms
    integer, intent(in) :: row_first(n_atoms + 1), partner(*)
    real(real64), intent(in) :: position(3, n_atoms), charge(n_atoms), coulomb_constant
    type(pair_parameters_t), intent(in) :: pair
    type(rounding_t), intent(in) :: rounding
    logical, intent(in) :: want_energy
    real(real64), intent(inout) :: force(3, n_atoms), energy
#define ARGUMENTS first_row, last_row, row_first, partner, n_atoms, position, charge, pair, \
  coulomb_constant, rounding, want_energy, force, energy
    select case (self%instruction_set)
#ifdef CHROMAMD_X86_KERNELS
    case (3)
      call correct_avx512(ARGUMENTS)
    case (2)
      call correct_avx2(ARGUMENTS)
#endif
    case default
      call correct_baseline(ARGUMENTS)
    end select
#undef ARGUMENTS
  end subroutine correct_exclusions

  !> See prune in nonbonded_kernel.F90.
  subroutine prune(self, first_i, last_i, list_first, list, n_clusters, coordinate, unit, reach2, kept_first, &
                   kept_run)
    class(kernel_dispatch_t), intent(in) :: self
    integer, intent(in) :: first_i, last_i
    integer, intent(in) :: list_first(first_i:last_i + 1), list(*)
    integer, intent(in) :: n_clusters
    COORDINATE_KIND, intent(in) :: coordinate(self%lanes, 3, n_clusters)
    real(real64), intent(in) :: unit, reach2
    integer, intent(inout) :: kept_first(first_i:last_i + 1), kept_run(*)
#define ARGUMENTS first_i, last_i, list_first, list, n_clusters, coordinate, unit, reach2, \
  kept_first, kept_run
    select case (self%instruction_set)
#ifdef CHROMAMD_X86_KERNELS
    case (3)
      call prune_avx512(ARGUMENTS)
    case (2)
      call prune_avx2(ARGUMENTS)
#endif
    case default
      call prune_baseline(ARGUMENTS)
    end select
#undef ARGUMENTS
  end subroutine prune

  !> See compute_exact in exact_kernel.F90.in.
  subroutine compute_exact(self, masked, want_energy, matrix, form, first_i, last_i, list_first, list, &
                           list_bits, n_clusters, coordinate, parameter_of, type_of, n_types, c6, c12, pair, rounding, &
                           force_lower, force_upper, force, energy, virial)
    class(kernel_dispatch_t), intent(in) :: self
    logical, intent(in) :: masked, want_energy, matrix
    integer, intent(in) :: form, first_i, last_i
    integer, intent(in) :: list_first(first_i:*), list(*), list_bits(*)
    integer, intent(in) :: n_clusters, n_types, force_lower, force_upper
    real(real64), intent(in) :: coordinate(8, 3, n_clusters)
    real(real_pair), intent(in) :: parameter_of(self%lanes, 3, n_clusters)
    integer, intent(in) :: type_of(self%lanes, n_clusters)
    real(real_pair), intent(in) :: c6(n_types*n_types), c12(n_types*n_types)
    type(pair_parameters_t), intent(in) :: pair
    type(rounding_t), intent(in) :: rounding
    real(real64), intent(inout) :: force(8, 3, force_lower:force_upper), energy(2), virial(6)
#define ARGUMENTS masked, want_energy, matrix, form, first_i, last_i, list_first, list, list_bits, \
  self%lanes, n_clusters, coordinate, parameter_of, type_of, n_types, c6, c12, pair, rounding, force_lower, \
  force_upper, force, energy, virial
    select case (self%instruction_set)
#ifdef CHROMAMD_X86_KERNELS
    case (3)
      call exact_avx512(ARGUMENTS)
    case (2)
      call exact_avx2(ARGUMENTS)
#endif
    case default
      call exact_baseline(ARGUMENTS)
    end select
#undef ARGUMENTS
  end subroutine compute_exact

  !> See correct_exclusions in exclusions.inc.
  subroutine correct_exactly(self, first_row, last_row, row_first, partner, n_atoms, position, charge, pair, &
                             coulomb_constant, rounding, want_energy, force, energy, virial)
    class(kernel_dispatch_t), intent(in) :: self
    integer, intent(in) :: first_row, last_row, n_atoms
    integer, intent(in) :: row_first(n_atoms + 1), partner(*)
    real(real64), intent(in) :: position(3, n_atoms), charge(n_atoms), coulomb_constant
    type(pair_parameters_t), intent(in) :: pair
    type(rounding_t), intent(in) :: rounding
    logical, intent(in) :: want_energy
    real(real64), intent(inout) :: force(3, n_atoms), energy, virial(6)
#define ARGUMENTS first_row, last_row, row_first, partner, n_atoms, position, charge, pair, \
  coulomb_constant, rounding, want_energy, force, energy, virial
    select case (self%instruction_set)
#ifdef CHROMAMD_X86_KERNELS
    case (3)
      call correct_exactly_avx512(ARGUMENTS)
    case (2)
      call correct_exactly_avx2(ARGUMENTS)
#endif
    case default
      call correct_exactly_baseline(ARGUMENTS)
    end select
#undef ARGUMENTS
  end subroutine correct_exactly

end module kernel_dispatch
