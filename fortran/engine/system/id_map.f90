!> Finds the local copies (owned atom, ghosts) of a global id. Open addressing with linear probing; copies of one id are
!> chained.
module id_map
  use base_kinds, only: int64
  implicit none
  private
  public :: id_map_t

  type :: id_map_t
    private
    integer(int64) :: mask = 0
    integer(int64), allocatable :: key(:)
    integer, allocatable :: first(:), next(:)
  contains
    procedure :: create
    procedure :: add
    procedure :: first_copy
    procedure :: next_copy
  end type id_map_t

contains

  !> Make room for `n` of the local atoms 1..n_local.
  subroutine create(self, n, n_local)
    class(id_map_t), intent(inout) :: self
    integer, intent(in) :: n, n_local
    integer(int64) :: slots
    slots = 16
    do while (slots < 2_int64*n)
      slots = 2*slots
    end do
    self%mask = slots - 1
    if (allocated(self%key)) deallocate (self%key, self%first, self%next)
    allocate (self%key(0:slots - 1), source=-1_int64)
    allocate (self%first(0:slots - 1), source=0)
    allocate (self%next(n_local))
  end subroutine create

  !> Slot of an id: where it is, or where it would go.
  pure integer(int64) function slot_of(self, id)
    type(id_map_t), intent(in) :: self
    integer(int64), intent(in) :: id
    ! Mix high bits into low ones; ids come in long ascending runs.
    slot_of = iand(ieor(id, ieor(shiftr(id, 13), shiftr(id, 29))), self%mask)
    do while (self%key(slot_of) /= id .and. self%key(slot_of) >= 0)
      slot_of = iand(slot_of + 1, self%mask)
    end do
  end function slot_of

  !> Say that local atom `local` is a copy of `id`.
  subroutine add(self, id, local)
    class(id_map_t), intent(inout) :: self
    integer(int64), intent(in) :: id
    integer, intent(in) :: local
    integer(int64) :: slot
    slot = slot_of(self, id)
    self%key(slot) = id
    self%next(local) = self%first(slot)
    self%first(slot) = local
  end subroutine add

  !> A copy of `id`, 0 = there is none.
  pure integer function first_copy(self, id)
    class(id_map_t), intent(in) :: self
    integer(int64), intent(in) :: id
    first_copy = self%first(slot_of(self, id))
  end function first_copy

  !> The copy after `local`, 0 = there is no other.
  pure integer function next_copy(self, local)
    class(id_map_t), intent(in) :: self
    integer, intent(in) :: local
    next_copy = self%next(local)
  end function next_copy

end module id_map
