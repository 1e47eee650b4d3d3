!> What the user can choose about the real-space energy.
module nonbonded_options
  use base_kinds, only: real64
  use base_error, only: error_t, exit_bad_input, fail
  use base_fixed_point, only: rounding_t
  use implicit_solvent, only: implicit_solvent_t
  use pair_forms, only: vdw_switch
  implicit none
  private
  public :: nonbonded_options_t

  !> From so many atoms on a rank saves memory at the cost of time, unless the user says otherwise.
  integer, parameter, public :: usual_many_atoms = 1000000

  type :: nonbonded_options_t
    !> Distances in angstrom: end of all pairs, begin of the switch, reach of the pair list.
    real(real64) :: cutoff = 12.0_real64, switch_distance = 10.0_real64, list_distance = 13.5_real64
    !> The kernels run over the pairs within cutoff + inner_buffer, sought anew among those of the list when an atom moved
    !> farther than half of the buffer, or when %tolerate_misses of nonbonded allows no more.
    real(real64) :: inner_buffer = 0.7_real64
    !> Ewald screening, 1/angstrom; 0 = plain Coulomb up to the cutoff.
    real(real64) :: alpha = 0.0_real64
    !> Taken from 1/r in the energy, 1/angstrom.
    real(real64) :: coulomb_shift = 0.0_real64
    !> With it charges are not as these two say; van der Waals energies are switched or cut off.
    type(implicit_solvent_t) :: solvent
    !> One of module pair_forms.
    integer :: vdw_form = vdw_switch
    !> How sums are rounded; see module fixed_point.
    type(rounding_t) :: rounding
    !> With vdw_pme: screening of the dispersion, 1/angstrom.
    real(real64) :: dispersion_alpha = 0.0_real64
    !> From so many atoms of a rank on, arrays in the order of clusters live for one block of the list at a time.
    integer :: many_atoms = usual_many_atoms
    !> Tables in place of formulas: linear_table or cubic_table of module pair_table (0 = none, but where there is no
    !> formula), and their density.
    integer :: table_order = 0
    real(real64) :: table_density = 20.0_real64
  contains
    procedure :: check
  end type nonbonded_options_t

contains

  !> Fails when distances are out of order.
  subroutine check(self, error)
    class(nonbonded_options_t), intent(in) :: self
    type(error_t), allocatable, intent(out) :: error
    character(len=160) :: message
    if (self%cutoff > 0.0_real64 .and. self%list_distance >= self%cutoff) return
    write (message, "(2(a,f0.3))") "pairlistdist ", self%list_distance, &
      " must be at least cutoffdist, and cutoffdist positive: ", self%cutoff
    call fail(error, exit_bad_input, trim(message))
  end subroutine check

end module nonbonded_options
