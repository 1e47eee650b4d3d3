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
    !> Those of the near entries that need pair matrices, taken out of them by `split_special`.
    integer, allocatable :: special_first(:), special_cluster(:)
    real(real_pair), allocatable :: force(:, :, :)
    !> The same in the deterministic mode.
    real(real64), allocatable :: exact_force(:, :, :)
  contains
    procedure :: find_window
    procedure :: keep_near
    procedure :: split_special
  end type pair_block_t

contains

  !> Let the near entries be the plain ones, without the others, and arrays have the size of what they hold.
  subroutine keep_near(self)
    class(pair_block_t), intent(inout) :: self
    integer :: n_masked
    self%plain_first = self%near_first
    self%plain_cluster = self%near_cluster(:self%near_first(self%last_i + 1) - 1)
    deallocate (self%near_first, self%near_cluster)
    n_masked = self%masked_first(self%last_i + 1) - 1
    self%masked_cluster = self%masked_cluster(:n_masked)
    self%masked_bits = self%masked_bits(:n_masked)
  end subroutine keep_near

  !> Move the near entries of which both clusters hold special atoms to a list of their own. `i_special`, `j_special`: of
  !> the i clusters and of the j clusters.
  subroutine split_special(self, i_special, j_special)
    class(pair_block_t), intent(inout) :: self
    logical, intent(in) :: i_special(:), j_special(:)
    integer :: i, k, n_near, n_special, first
    integer, allocatable :: larger(:)

    if (.not. allocated(self%special_first)) allocate (self%special_first(self%first_i:self%last_i + 1))
    if (.not. allocated(self%special_cluster)) allocate (self%special_cluster(64))
    n_near = 0
    n_special = 0
    first = self%near_first(self%first_i)
    do i = self%first_i, self%last_i
      self%special_first(i) = n_special + 1
      associate (last => self%near_first(i + 1) - 1)
        if (n_special + last - first + 1 > size(self%special_cluster)) then
          allocate (larger(2*(n_special + last - first + 1)))
          larger(:n_special) = self%special_cluster(:n_special)
          call move_alloc(larger, self%special_cluster)
        end if
        do k = first, last
          if (i_special(i) .and. j_special(self%near_cluster(k))) then
            n_special = n_special + 1
            self%special_cluster(n_special) = self%near_cluster(k)
          else
            n_near = n_near + 1
            self%near_cluster(n_near) = self%near_cluster(k)
          end if
        end do
      end associate
      first = self%near_first(i + 1)
      self%near_first(i + 1) = n_near + 1
    end do
    self%special_first(self%last_i + 1) = n_special + 1
  end subroutine split_special

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
