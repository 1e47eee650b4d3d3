!> Pair lists of a run of i clusters (4 atoms each) against j clusters (8 atoms each), and the window of clusters that
!> they touch. A block sums into a force buffer of its own, so that blocks can be computed in any order on any thread and
!> added in one fixed order.
!>
!> Neighbouring clusters have neighbouring numbers, so that what an i cluster meets comes in runs. A list stores a run of
!> 1 to 8 clusters as one number, 8*(first - 1) + length - 1: a quarter of the memory that the clusters would take.
module pair_block
  implicit none
  private
  public :: pair_block_t, longest_run, run_first, run_length, meets_all, meets_owned, meets_ghosts

  !> Clusters in a run.
  integer, parameter :: longest_run = 8

  !> Which clusters the i clusters meet.
  integer, parameter :: meets_all = 0, meets_owned = 1, meets_ghosts = 2

  type :: pair_block_t
    integer :: first_i = 1, last_i = 0
    integer :: meets = meets_all
    !> First and last j cluster of the force buffer.
    integer :: lower = 1, upper = 0
    !> Lists count clusters from `base + 1` on.
    integer :: base = 0
    !> Rows (`first_i:last_i+1`) of the entries that carry exclusion bits, cluster by cluster.
    integer, allocatable :: masked_first(:), masked_cluster(:), masked_bits(:)
    !> In the midpoint method these are those of the following that have atoms close enough to meet within the next steps.
    integer, allocatable :: outer_first(:), outer_cluster(:), outer_bits(:)
    !> Rows of the runs of those that do not.
    integer, allocatable :: plain_first(:), plain_run(:)
    !> The plain entries with atoms close enough to meet within the next steps: what the kernel runs over.
    integer, allocatable :: near_first(:), near_run(:)
    !> Those of the near entries that need pair matrices, taken out of them by `split_special`.
    integer, allocatable :: special_first(:), special_run(:)
  contains
    procedure :: find_window
    procedure :: count_from
    procedure :: keep_near
    procedure :: keep_outer
    procedure :: choose_masked
    procedure :: split_special
    procedure :: most_runs
    procedure :: is_empty
  end type pair_block_t

contains

  !> First cluster of a run.
  elemental integer function run_first(run)
    integer, intent(in) :: run
    run_first = run/longest_run + 1
  end function run_first

  !> Number of clusters in a run.
  elemental integer function run_length(run)
    integer, intent(in) :: run
    run_length = mod(run, longest_run) + 1
  end function run_length

  !> Bound on the runs of any selection of the plain entries.
  pure integer function most_runs(self)
    class(pair_block_t), intent(in) :: self
    associate (n => self%plain_first(self%last_i + 1) - 1)
      most_runs = sum((run_length(self%plain_run(:n)) + 1)/2)
    end associate
  end function most_runs

  !> Does it have no entries at all?
  pure logical function is_empty(self)
    class(pair_block_t), intent(in) :: self
    is_empty = self%masked_first(self%last_i + 1) == 1 .and. self%plain_first(self%last_i + 1) == 1
    if (allocated(self%outer_first)) is_empty = is_empty .and. self%outer_first(self%last_i + 1) == 1
  end function is_empty

  !> Let the near entries be the plain ones, without the others, and arrays have the size of what they hold.
  subroutine keep_near(self)
    class(pair_block_t), intent(inout) :: self
    integer :: n_masked
    call move_alloc(self%near_first, self%plain_first)
    self%plain_run = self%near_run(:self%plain_first(self%last_i + 1) - 1)
    deallocate (self%near_run)
    n_masked = self%masked_first(self%last_i + 1) - 1
    self%masked_cluster = self%masked_cluster(:n_masked)
    self%masked_bits = self%masked_bits(:n_masked)
  end subroutine keep_near

  !> Let the masked entries be chosen again and again from those of now.
  subroutine keep_outer(self)
    class(pair_block_t), intent(inout) :: self
    integer :: n_masked
    n_masked = self%masked_first(self%last_i + 1) - 1
    self%outer_first = self%masked_first
    self%outer_cluster = self%masked_cluster(:n_masked)
    self%outer_bits = self%masked_bits(:n_masked)
  end subroutine keep_outer

  !> Let the masked entries be those of the outer ones that rows of runs name, which have their order.
  !> Runs of i cluster i: `kept_run(kept_first(i):kept_first(i+1)-1)`.
  subroutine choose_masked(self, kept_first, kept_run)
    class(pair_block_t), intent(inout) :: self
    integer, intent(in) :: kept_first(self%first_i:), kept_run(:)
    integer :: i, j, k, n, r
    n = 0
    do i = self%first_i, self%last_i
      self%masked_first(i) = n + 1
      k = self%outer_first(i)
      do r = kept_first(i), kept_first(i + 1) - 1
        do j = run_first(kept_run(r)), run_first(kept_run(r)) + run_length(kept_run(r)) - 1
          do while (self%outer_cluster(k) /= j)
            k = k + 1
          end do
          n = n + 1
          self%masked_cluster(n) = j
          self%masked_bits(n) = self%outer_bits(k)
          k = k + 1
        end do
      end do
    end do
    self%masked_first(self%last_i + 1) = n + 1
  end subroutine choose_masked

  !> Move the near entries of which both clusters hold special atoms to a list of their own. `i_special`: of the i clusters,
  !> `j_special`: of the j clusters as the lists count them.
  subroutine split_special(self, i_special, j_special)
    class(pair_block_t), intent(inout) :: self
    logical, intent(in) :: i_special(:), j_special(:)
    integer, allocatable :: all_first(:), all_run(:)
    integer :: i, j, k

    call move_alloc(self%near_first, all_first)
    call move_alloc(self%near_run, all_run)
    allocate (self%near_first(self%first_i:self%last_i + 1), self%near_run(self%most_runs()))
    if (allocated(self%special_first)) deallocate (self%special_first, self%special_run)
    allocate (self%special_first(self%first_i:self%last_i + 1), self%special_run(size(self%near_run)))
    associate (n_near => self%near_first(self%last_i + 1), n_special => self%special_first(self%last_i + 1))
      n_near = 1
      n_special = 1
      do i = self%first_i, self%last_i
        self%near_first(i) = n_near
        self%special_first(i) = n_special
        do k = all_first(i), all_first(i + 1) - 1
          if (.not. i_special(i)) then
            self%near_run(n_near) = all_run(k)
            n_near = n_near + 1
            cycle
          end if
          do j = run_first(all_run(k)), run_first(all_run(k)) + run_length(all_run(k)) - 1
            if (j_special(j)) then
              call append(j, self%special_first(i), self%special_run, n_special)
            else
              call append(j, self%near_first(i), self%near_run, n_near)
            end if
          end do
        end do
      end do
    end associate
    self%special_run = self%special_run(:self%special_first(self%last_i + 1) - 1)
  end subroutine split_special

  !> Add a cluster to the row that begins at `first` and goes on to `next - 1`.
  pure subroutine append(j, first, run, next)
    integer, intent(in) :: j, first
    integer, intent(inout) :: run(:), next
    if (next > first) then
      if (run_first(run(next - 1)) + run_length(run(next - 1)) == j .and. run_length(run(next - 1)) < longest_run) then
        run(next - 1) = run(next - 1) + 1
        return
      end if
    end if
    run(next) = longest_run*(j - 1)
    next = next + 1
  end subroutine append

  !> Let the lists of entries just found, numbered by the clusters themselves, count clusters from `base + 1` on.
  subroutine count_from(self, base)
    class(pair_block_t), intent(inout) :: self
    integer, intent(in) :: base
    self%base = base
    self%masked_cluster = self%masked_cluster - base
    self%plain_run = self%plain_run - longest_run*base
  end subroutine count_from

  !> Set the window of the force buffer.
  subroutine find_window(self)
    class(pair_block_t), intent(inout) :: self
    integer :: n_masked, n_plain
    n_masked = self%masked_first(self%last_i + 1) - 1
    n_plain = self%plain_first(self%last_i + 1) - 1
    self%lower = min((self%first_i + 1)/2, minval(self%masked_cluster(:n_masked)), &
                     minval(run_first(self%plain_run(:n_plain))))
    self%upper = max((self%last_i + 1)/2, maxval(self%masked_cluster(:n_masked)), &
                     maxval(run_first(self%plain_run(:n_plain)) + run_length(self%plain_run(:n_plain)) - 1))
  end subroutine find_window

end module pair_block
