!> What bases are and how they stack: constants of base_stacking, in angstrom and degree.
module stacking_model
  use iso_c_binding, only: c_f_pointer, c_loc, c_null_ptr
  use iso_fortran_env, only: int32, int64, real64
  implicit none
  private
  public :: stacking_t, new_stacking, delete_stacking, stacking_of, atoms_most

  integer(int32), parameter :: atoms_most = 11

  type :: stacking_t
    integer(int32) :: size_of(4) = 0                       !! heavy atoms of A, C, G, T without C1'
    integer(int32) :: is_oxygen(atoms_most, 4) = 0
    real(real64) :: atom(3, atoms_most, 4) = 0             !! in the base frame
    real(real64) :: pair_sigma(6) = 1                      !! of shear ... opening
    real(real64) :: tether_shift = 1, tether_turn = 1      !! standard deviations, angstrom and radian
    real(real64) :: contact = 0, contact_oxygen = 0, contact_sigma = 1, reach = 0
  end type stacking_t

contains

  !> A model of stacking on the heap, as an opaque number.
  function new_stacking() result(handle)
    integer(int64) :: handle
    type(stacking_t), pointer :: stacking
    allocate (stacking)
    handle = transfer(c_loc(stacking), handle)
  end function new_stacking

  !> What belongs to a number from `new_stacking`.
  function stacking_of(handle) result(stacking)
    integer(int64), intent(in) :: handle
    type(stacking_t), pointer :: stacking
    call c_f_pointer(transfer(handle, c_null_ptr), stacking)
  end function stacking_of

  subroutine delete_stacking(handle)
    integer(int64), intent(in) :: handle
    type(stacking_t), pointer :: stacking
    stacking => stacking_of(handle)
    deallocate (stacking)
  end subroutine delete_stacking

end module stacking_model
