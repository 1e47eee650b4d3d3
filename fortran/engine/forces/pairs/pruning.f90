!> Choice of the entries of a block that the loops over pairs run over, among those of its list.
module pruning
  use base_kinds, only: real64
  use cluster_window, only: window_t
  use pair_block, only: longest_run, pair_block_t
  use pair_kernels, only: pair_kernels_t
  implicit none
  private
  public :: prune_masked, prune_plain

contains

  !> Let the near entries of a block be the plain ones that have atoms within `reach` (angstrom) of each other now.
  subroutine prune_plain(block, kernels, window, reach)
    type(pair_block_t), intent(inout) :: block
    class(pair_kernels_t), intent(in) :: kernels
    type(window_t), intent(in) :: window
    real(real64), intent(in) :: reach
    ! Room for what could be kept at most, of which little is ever touched.
    if (.not. allocated(block%near_first)) allocate (block%near_first(block%first_i:block%last_i + 1), &
      block%near_run(block%most_runs()))
    call kernels%prune(block%first_i - 2*block%base, block%last_i - 2*block%base, block%plain_first, block%plain_run, &
                       window, reach, block%near_first, block%near_run)
  end subroutine prune_plain

  !> The same of the entries with bits, many of which lie on the border of what is this rank's.
  subroutine prune_masked(block, kernels, window, reach)
    type(pair_block_t), intent(inout) :: block
    class(pair_kernels_t), intent(in) :: kernels
    type(window_t), intent(in) :: window
    real(real64), intent(in) :: reach
    integer, allocatable :: kept_first(:), kept_run(:)
    if (.not. allocated(block%outer_first)) return
    allocate (kept_first(size(block%outer_first)), kept_run(size(block%outer_cluster)))
    call kernels%prune(block%first_i - 2*block%base, block%last_i - 2*block%base, block%outer_first, &
                       longest_run*(block%outer_cluster - 1), window, reach, kept_first, kept_run)
    call block%choose_masked(kept_first, kept_run)
  end subroutine prune_masked

end module pruning
