!> Blocks that threads complete in any order are added up in the order of their numbers, one after the other. A thread
!> that completes a block adds all that are due unless another thread is adding: sums do not depend on the number of
!> threads, and no thread waits for one that has lost its core. A thread that has completed a block does
!>
!>     if (.not. turns%begin()) return
!>     do while (turns%has_next())
!>       ... add block turns%next ...
!>       call turns%advance()
!>     end do
!>     call turns%finish()
!>
!> and one thread does so once more when all are complete, for a block may have become complete while another was adding.
module turns
  use omp_lib, only: omp_destroy_lock, omp_init_lock, omp_lock_kind, omp_test_lock, omp_unset_lock
  implicit none
  private
  public :: turns_t

  type :: turns_t
    private
    !> The block whose turn it is.
    integer, public :: next = 1
    integer :: last = 0
    logical, allocatable :: is_complete(:)
    integer(omp_lock_kind) :: adding
  contains
    procedure :: open
    procedure :: close
    procedure :: complete
    procedure :: is_far_ahead
    procedure :: begin
    procedure :: has_next
    procedure :: advance
    procedure :: finish
  end type turns_t

contains

  !> Before threads start on blocks `first` to `last`.
  subroutine open(self, first, last)
    class(turns_t), intent(inout) :: self
    integer, intent(in) :: first, last
    self%next = first
    self%last = last
    allocate (self%is_complete(first:last), source=.false.)
    call omp_init_lock(self%adding)
  end subroutine open

  subroutine close(self)
    class(turns_t), intent(inout) :: self
    deallocate (self%is_complete)
    call omp_destroy_lock(self%adding)
  end subroutine close

  !> Block `b` can be added.
  subroutine complete(self, b)
    class(turns_t), intent(inout) :: self
    integer, intent(in) :: b
    !$omp atomic write seq_cst
    self%is_complete(b) = .true.
  end subroutine complete

  !> Whether block `b` is `most` or more blocks after the one whose turn it is.
  logical function is_far_ahead(self, b, most)
    class(turns_t), intent(in) :: self
    integer, intent(in) :: b, most
    integer :: next
    !$omp atomic read
    next = self%next
    is_far_ahead = b >= next + most
  end function is_far_ahead

  !> Whether this thread may add, which is so when no other does.
  logical function begin(self)
    class(turns_t), intent(inout) :: self
    begin = omp_test_lock(self%adding)
  end function begin

  !> Whether a block is left and complete.
  logical function has_next(self)
    class(turns_t), intent(in) :: self
    has_next = self%next <= self%last
    if (.not. has_next) return
    !$omp atomic read seq_cst
    has_next = self%is_complete(self%next)
  end function has_next

  !> Block `next` has been added.
  subroutine advance(self)
    class(turns_t), intent(inout) :: self
    !$omp atomic update
    self%next = self%next + 1
  end subroutine advance

  subroutine finish(self)
    class(turns_t), intent(inout) :: self
    call omp_unset_lock(self%adding)
  end subroutine finish

end module turns
