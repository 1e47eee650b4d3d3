!> Lists of integer tuples, one a column, that grow as needed.
module growing_list
  use iso_fortran_env, only: int32
  implicit none
  private
  public :: append

contains

  !> Put tuples, one after the other in `items`, behind the first `count` columns of a list.
  pure subroutine append(list, count, items)
    integer(int32), allocatable, intent(inout) :: list(:, :)
    integer(int32), intent(inout) :: count
    integer(int32), intent(in) :: items(:)
    integer(int32), allocatable :: longer(:, :)
    integer(int32) :: width, total, k
    width = size(list, 1)
    total = count + size(items) / width
    if (total > size(list, 2)) then
      allocate (longer(width, 2 * total))
      longer(:, :count) = list(:, :count)
      call move_alloc(longer, list)
    end if
    do k = count + 1, total
      list(:, k) = items((k - count - 1) * width + 1:(k - count) * width)
    end do
    count = total
  end subroutine append

end module growing_list
