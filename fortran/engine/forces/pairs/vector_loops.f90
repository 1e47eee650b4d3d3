!> The loops of vector_loops.c, for AVX2: forces of pairs whose Lennard-Jones parameters follow the rule, for the laws
!> that most runs have. Estimates of 1/sqrt differ between makers of processors, and with them the last bits of forces.
module vector_loops
  use, intrinsic :: iso_c_binding, only: c_float, c_int
  use base_kinds, only: int32, real64
  use loop_properties, only: law_force_switch, law_plain, law_switch
  use pair_kernels, only: law_of
  use pair_parameters, only: fit_degree, pair_parameters_t
  implicit none
  private
  public :: has_vector_loop, run_vector_loop

  !> As in vector_loops.c: the laws in their order, and the constants.
  integer, parameter :: laws(0:2) = [law_plain, law_switch, law_force_switch]

  type, bind(c) :: pair_constants_t
    real(c_float) :: force_fit(0:fit_degree), fit_scale, cutoff2, closest2, switch2, switch_fit(2), switch_slope(2)
    real(c_float) :: cutoff_m3, cutoff_m6, switch_factor6, switch_factor12, unit2
  end type pair_constants_t

  interface
    subroutine chroma_vector_loop(law, is_masked, first_i, last_i, list_first, list, list_bits, coordinate, &
                                  parameter_of, pair, force_lower, force) bind(c)
      import :: c_float, c_int, pair_constants_t
      integer(c_int), value :: law, is_masked, first_i, last_i, force_lower
      integer(c_int), intent(in) :: list_first(*), list(*), list_bits(*), coordinate(*)
      real(c_float), intent(in) :: parameter_of(*)
      type(pair_constants_t), intent(in) :: pair
      real(c_float), intent(inout) :: force(*)
    end subroutine chroma_vector_loop
  end interface

contains

  !> Whether there is a loop for these pairs.
  pure logical function has_vector_loop(pair)
    type(pair_parameters_t), intent(in) :: pair
    has_vector_loop = any(laws == law_of(pair))
  end function has_vector_loop

  !> Add the forces of a list; arguments as in pair_loop.F90.in.
  subroutine run_vector_loop(is_masked, first_i, last_i, list_first, list, list_bits, coordinate, unit, parameter_of, &
                             pair, force_lower, force)
    logical, intent(in) :: is_masked
    integer, intent(in) :: first_i, last_i, force_lower
    integer, contiguous, intent(in) :: list_first(:), list(:), list_bits(:)
    integer(int32), contiguous, intent(in) :: coordinate(:, :, :)
    real(real64), intent(in) :: unit
    real(c_float), contiguous, intent(in) :: parameter_of(:, :, :)
    type(pair_parameters_t), intent(in) :: pair
    real(c_float), contiguous, intent(inout) :: force(:, :, :)
    type(pair_constants_t) :: constants

    constants = pair_constants_t(pair%force_fit, pair%fit_scale, pair%cutoff2, pair%closest2, pair%switch2, &
                                 pair%switch_fit, pair%switch_slope, pair%cutoff_m3, pair%cutoff_m6, &
                                 pair%switch_factor6, pair%switch_factor12, real(unit**2, c_float))
    call chroma_vector_loop(findloc(laws, law_of(pair), dim=1) - 1, merge(1, 0, is_masked), first_i, last_i, &
                            list_first, list, list_bits, coordinate, parameter_of, constants, force_lower, force)
  end subroutine run_vector_loop

end module vector_loops
