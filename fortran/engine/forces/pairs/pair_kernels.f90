!> The loops over pairs for an instruction set, as the rest of the engine sees them. Extensions (pair_kernels_set.F90.in)
!> know the length of the vectors; loops are chosen once, by the names of their properties.
module pair_kernels
  use base_fixed_point, only: rounding_t
  use base_kinds, only: real64
  use atom_types, only: atom_types_t
  use cluster_window, only: window_t
  use exact_loop, only: exact_loop_t
  use loop_properties, only: by_matrix, by_rule, forces_only, law_cubic_table, law_dispersion_pme, law_force_switch, &
    law_linear_table, law_plain, law_repulsive, law_screened, law_switch, with_energy
  use pair_block, only: pair_block_t
  use pair_forms, only: vdw_force_switch, vdw_pme, vdw_repulsive, vdw_switch
  use pair_parameters, only: pair_parameters_t
  use pair_precision, only: real_pair
  use pair_table, only: cubic_table, linear_table
  implicit none
  private
  public :: pair_kernels_t, law_of

  type, abstract :: pair_kernels_t
    !> Of module instruction_sets; and the length of the first dimension of all cluster arrays.
    integer :: instruction_set = 0, lanes = 8
    !> (parameters, energy).
    type(exact_loop_t) :: exact_loop(2, 2)
    procedure(exclusion_correction), pointer, nopass :: correct_exclusions => null(), correct_exactly => null()
  contains
    procedure(choice_of_loops), deferred :: choose
    procedure(block_computation), deferred :: compute
    procedure(pruning), deferred :: prune
    procedure :: compute_exactly
  end type pair_kernels_t

  abstract interface
    !> Take the loops for these constants of the pairs; before any of the others.
    subroutine choice_of_loops(self, pair)
      import :: pair_kernels_t, pair_parameters_t
      class(pair_kernels_t), intent(inout) :: self
      type(pair_parameters_t), intent(in) :: pair
    end subroutine choice_of_loops

    !> Add the forces of the pairs of a block to `force(lanes, 3, block%lower:block%upper)`, in kcal/mol/angstrom^2 times
    !> the unit of the window, and with `want_energy` their energies (van der Waals, Coulomb; kcal/mol) to `energy`.
    subroutine block_computation(self, block, window, types, pair, want_energy, force, energy)
      import :: atom_types_t, pair_block_t, pair_kernels_t, pair_parameters_t, real64, real_pair, window_t
      class(pair_kernels_t), intent(in) :: self
      type(pair_block_t), intent(in) :: block
      type(window_t), intent(in) :: window
      type(atom_types_t), intent(in) :: types
      type(pair_parameters_t), intent(in) :: pair
      logical, intent(in) :: want_energy
      real(real_pair), contiguous, intent(inout) :: force(:, :, :)
      real(real64), intent(inout) :: energy(2)
    end subroutine block_computation

    !> Keep those entries of the rows of the i clusters `first_i..last_i` that have at least one pair of atoms within `reach`
    !> (angstrom). Rows of runs as in module pair_block.
    subroutine pruning(self, first_i, last_i, list_first, list_run, window, reach, kept_first, kept_run)
      import :: pair_kernels_t, real64, window_t
      class(pair_kernels_t), intent(in) :: self
      integer, intent(in) :: first_i, last_i
      integer, intent(in) :: list_first(first_i:last_i + 1), list_run(*)
      type(window_t), intent(in) :: window
      real(real64), intent(in) :: reach
      integer, intent(inout) :: kept_first(first_i:last_i + 1), kept_run(*)
    end subroutine pruning

    !> See exclusions.F90.in.
    subroutine exclusion_correction(first_row, last_row, row_first, partner, n_atoms, position, charge, pair, &
                                    coulomb_constant, rounding, want_energy, force, energy, virial)
      import :: pair_parameters_t, real64, rounding_t
      integer, intent(in) :: first_row, last_row, n_atoms
      integer, intent(in) :: row_first(n_atoms + 1), partner(*)
      real(real64), intent(in) :: position(3, n_atoms), charge(n_atoms), coulomb_constant
      type(pair_parameters_t), intent(in) :: pair
      logical, intent(in) :: want_energy
      type(rounding_t), intent(in) :: rounding
      real(real64), intent(inout) :: force(3, n_atoms), energy
      real(real64), intent(inout), optional :: virial(6)
    end subroutine exclusion_correction
  end interface

contains

  !> Law of the formulas. A shift changes energies only, and costs nothing where it is zero: it is part of the plain law.
  pure integer function formula_of(pair) result(law)
    type(pair_parameters_t), intent(in) :: pair
    if (pair%is_screened) then
      law = merge(law_repulsive, law_screened, pair%vdw_form == vdw_repulsive)
      return
    end if
    select case (pair%vdw_form)
    case (vdw_switch)
      law = law_switch
    case (vdw_force_switch)
      law = law_force_switch
    case (vdw_pme)
      law = law_dispersion_pme
    case default
      law = law_plain
    end select
  end function formula_of

  !> Law of the pairs: tables, where there are any, stand for all formulas.
  pure integer function law_of(pair) result(law)
    type(pair_parameters_t), intent(in) :: pair
    select case (pair%table_order)
    case (linear_table)
      law = law_linear_table
    case (cubic_table)
      law = law_cubic_table
    case default
      law = formula_of(pair)
    end select
  end function law_of

  !> `compute` in the deterministic mode: forces on (8, 3, block%lower:block%upper), kcal/mol/angstrom,
  !> with energies the virial (xx, yy, zz, xy, xz, yz), too.
  subroutine compute_exactly(self, block, window, types, pair, rounding, want_energy, force, energy, virial)
    class(pair_kernels_t), intent(in) :: self
    type(pair_block_t), intent(in) :: block
    type(window_t), intent(in) :: window
    type(atom_types_t), intent(in) :: types
    type(pair_parameters_t), intent(in) :: pair
    type(rounding_t), intent(in) :: rounding
    logical, intent(in) :: want_energy
    real(real64), contiguous, intent(inout) :: force(:, :, :)
    real(real64), intent(inout) :: energy(2), virial(6)

    call run(.true., block%masked_first, block%masked_cluster)
    call run(.false., block%near_first, block%near_run)

  contains

    subroutine run(masked, list_first, list)
      logical, intent(in) :: masked
      integer, contiguous, intent(in) :: list_first(:), list(:)
      call self%exact_loop(merge(by_matrix, by_rule, types%by_matrix), merge(with_energy, forces_only, want_energy))%run( &
        block%first_i - 2*block%base, block%last_i - 2*block%base, list_first, list, masked, block%masked_bits, self%lanes, &
        size(window%exact_coordinate, 3), window%exact_coordinate, window%parameter_of, window%type_of, types%n, types%c6, &
        types%c12, pair, rounding, block%lower - block%base, block%upper - block%base, force, energy, virial)
    end subroutine run

  end subroutine compute_exactly

end module pair_kernels
