!> Ways of a message among some of the ranks: sums up a tree, and a multicast by rows and columns.
module section_tree
  use base_kinds, only: real64
  implicit none
  private
  public :: tree_node_t, distinct, next_in_rectangle

  !> A rank's place in a tree of ranks, and the sum that goes up there. Parts are added in a fixed order, whenever they
  !> come.
  type :: tree_node_t
    !> -1: this is the top.
    integer :: parent = -1
    !> Which child of its parent this is; children.
    integer :: place = 0
    integer, allocatable :: children(:)
    !> Parts of this rank and of children that are not there yet.
    integer :: waiting = 0
    real(real64), allocatable :: own(:), from(:, :)
  contains
    procedure :: create
    procedure :: restart
    procedure :: total
  end type tree_node_t

contains

  !> A tree of two branches of distinct `members` below `top`, in ascending order: where rank `me` is in it.
  subroutine create(self, members, top, me)
    class(tree_node_t), intent(inout) :: self
    integer, intent(in) :: members(:), top, me
    integer, allocatable :: order(:)
    integer :: k, here
    allocate (order, source=distinct(members))
    order = [top, pack(order, order /= top)]
    here = findloc(order, me, dim=1)
    allocate (self%children(0))
    do k = 2*here, min(2*here + 1, size(order))
      self%children = [self%children, order(k)]
    end do
    if (here == 1) return
    self%parent = order(here/2)
    self%place = 1 + mod(here, 2)
  end subroutine create

  !> Begin a sum of n numbers, `n_parts` of them from this rank.
  subroutine restart(self, n, n_parts)
    class(tree_node_t), intent(inout) :: self
    integer, intent(in) :: n, n_parts
    self%waiting = n_parts + size(self%children)
    if (.not. allocated(self%own)) allocate (self%own(n), self%from(n, size(self%children)))
    if (size(self%own) /= n) then
      deallocate (self%own, self%from)
      allocate (self%own(n), self%from(n, size(self%children)))
    end if
    self%own = 0.0_real64
  end subroutine restart

  pure function total(self)
    class(tree_node_t), intent(in) :: self
    real(real64) :: total(size(self%own))
    integer :: k
    total = self%own
    do k = 1, size(self%children)
      total = total + self%from(:, k)
    end do
  end function total

  !> Distinct numbers in ascending order.
  pure function distinct(numbers)
    integer, intent(in) :: numbers(:)
    integer, allocatable :: distinct(:)
    integer :: k
    distinct = pack([(k, k=minval(numbers), maxval(numbers))], &
                    [(any(numbers == k), k=minval(numbers), maxval(numbers))])
  end function distinct

  !> Ranks lie row after row in a rectangle of `width` columns; a multicast goes along the row of `root` and from there
  !> down the columns. The ranks to which `me` hands on what goes to `targets` (distinct).
  pure function next_in_rectangle(targets, root, me, width) result(next)
    integer, intent(in) :: targets(:), root, me, width
    integer, allocatable :: next(:)
    integer :: k, at
    allocate (next(0))
    if (me/width /= root/width) return
    do k = 1, size(targets)
      if (targets(k) == root) cycle
      at = (root/width)*width + mod(targets(k), width)
      if (at /= me .and. me == root) then
        ! Along the row first, once a column.
        if (all(next /= at)) next = [next, at]
      else if (at == me .and. targets(k) /= me) then
        next = [next, targets(k)]
      end if
    end do
  end function next_in_rectangle

end module section_tree
