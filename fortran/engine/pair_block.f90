!> Pair lists of a run of i clusters (4 atoms each) against j clusters (8 atoms each), and the window of clusters that
!> they touch. A block has its own force buffer, so that blocks can be computed in any order on any thread and summed
!> in one fixed order.
module pair_block
  use precision, only: real64, real_pair
  implicit none
  private
  public :: pair_block_t

  type :: pair_block_t
    integer :: first_i = 1, last_i = 0
    !> First and last j cluster of the force buffer.
    integer :: lower = 1, upper = 0
    !> Rows (`first_i:last_i+1`) of the entries that carry exclusion bits, and of those that do not.
    integer, allocatable :: masked_first(:), masked_cluster(:), masked_bits(:)
    integer, allocatable :: plain_first(:), plain_cluster(:)
    !> The plain entries with atoms close enough to meet within the next steps: what the kernel runs over.
    integer, allocatable :: near_first(:), near_cluster(:)
    real(real_pair), allocatable :: force(:, :, :)
    !> The same in the deterministic mode.
    real(real64), allocatable :: exact_force(:, :, :)
  contains
    procedure :: find_window
    procedure :: keep_near
  end type pair_block_t

contains

  !> Let the near entries be the plain ones, without the others.
  subroutine keep_near(self)
    class(pair_block_t), intent(inout) :: self
    self%plain_first = self%near_first
    self%plain_cluster = self%near_cluster(:self%near_first(self%last_i + 1) - 1)
  end subroutine keep_near

  !> Set the window and make the force buffer for it, of clusters of 8 with `exact`.
  subroutine find_window(self, lanes, exact)
    class(pair_block_t), intent(inout) :: self
    integer, intent(in) :: lanes
    logical, intent(in) :: exact
    integer :: n_masked, n_plain
    n_masked = self%masked_first(self%last_i + 1) - 1
    n_plain = self%plain_first(self%last_i + 1) - 1
    self%lower = min((self%first_i + 1)/2, minval(self%masked_cluster(:n_masked)), minval(self%plain_cluster(:n_plain)))
    self%upper = max((self%last_i + 1)/2, maxval(self%masked_cluster(:n_masked)), maxval(self%plain_cluster(:n_plain)))
    if (allocated(self%force)) deallocate (self%force)
    if (allocated(self%exact_force)) deallocate (self%exact_force)
    if (exact) then
      allocate (self%exact_force(8, 3, self%lower:self%upper))
    else
      allocate (self%force(lanes, 3, self%lower:self%upper))
    end if
  end subroutine find_window

end module pair_block
