!> Rows of a run of slots, and what they add to the slots; see module row_list.
module row_block
  use pair_precision, only: real_pair
  implicit none
  private
  public :: row_block_t

  type :: row_block_t
    !> Slots of the rows, and the last slot that they reach.
    integer :: first = 1, last = 0, upper = 0
    !> Row of slot i: `row_length(i)` offsets 4 (slot - 1) from `partner(row_first(i))` on, filled up to whole vectors with that
    !> of the slot behind the last.
    integer, allocatable :: row_first(:), row_length(:), partner(:)
    !> What the rows add: `result(4 (slot - 1))` and the three behind it, to 4 upper - 1.
    real(real_pair), allocatable :: result(:)
  end type row_block_t

end module row_block
