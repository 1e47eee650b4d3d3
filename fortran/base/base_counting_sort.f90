!> Sorting by small whole numbers in one pass.
module base_counting_sort
  implicit none
  private
  public :: counting_sort

contains

  !> The places of `key` (values from 1 to `n_keys`) in ascending order of the keys, equal ones as they stand: those with
  !> key k are `order(first(k):first(k+1)-1)`.
  pure subroutine counting_sort(key, n_keys, order, first)
    integer, intent(in) :: key(:), n_keys
    integer, allocatable, intent(out) :: order(:), first(:)
    integer, allocatable :: next(:)
    integer :: i, k
    allocate (order(size(key)), first(n_keys + 1))
    first(:) = 0
    do i = 1, size(key)
      first(key(i) + 1) = first(key(i) + 1) + 1
    end do
    first(1) = 1
    do k = 1, n_keys
      first(k + 1) = first(k) + first(k + 1)
    end do
    allocate (next, source=first)
    do i = 1, size(key)
      order(next(key(i))) = i
      next(key(i)) = next(key(i)) + 1
    end do
  end subroutine counting_sort

end module base_counting_sort
