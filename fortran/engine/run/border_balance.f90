!> Borders between domains that follow the work.
module border_balance
  use base_kinds, only: int64, real64
  use comm_load_balance, only: balanced_borders
  use system_state, only: system_state_t
  implicit none
  private
  public :: border_balance_t

  !> Borders move when the largest work of a rank exceeds the mean by this factor.
  real(real64), parameter :: tolerated_imbalance = 1.05_real64

  type :: border_balance_t
    !> Borders follow the work; they are evenly spaced since the last `rebuild` of the lists and may move now.
    logical :: is_on = .false., may_move = .false.
    !> Largest work of a rank over the mean: with evenly spaced borders, and now.
    real(real64) :: imbalance(2) = 0.0_real64
  contains
    procedure :: measure
    procedure :: is_tolerable
    procedure :: better_borders
    procedure :: describe
  end type border_balance_t

contains

  !> Work of each slab of domains, x, then y, then z, and the imbalance of the ranks, from the work of this one,
  !> in pairs of the list.
  subroutine measure(self, state, mine, work)
    class(border_balance_t), intent(inout) :: self
    type(system_state_t), intent(in) :: state
    integer(int64), intent(in) :: mine
    integer(int64), allocatable, intent(out) :: work(:)
    integer :: axis, first
    associate (dims => state%grid%dims)
      allocate (work(sum(dims)), source=0_int64)
      first = 0
      do axis = 1, 3
        work(first + state%grid%coordinate(axis) + 1) = mine
        first = first + dims(axis)
      end do
      call state%comm%sum(work)
      self%imbalance(2) = state%comm%maximum(real(mine, real64))*state%comm%n_ranks/ &
                          max(1.0_real64, real(sum(work(:dims(1))), real64))
    end associate
  end subroutine measure

  pure logical function is_tolerable(self)
    class(border_balance_t), intent(in) :: self
    is_tolerable = .not. self%imbalance(2) > tolerated_imbalance
  end function is_tolerable

  !> Borders, as fractions of the box, that even out the work of the slabs; no domain narrower than `least` (angstrom).
  function better_borders(self, state, work, least) result(border)
    class(border_balance_t), intent(in) :: self
    type(system_state_t), intent(in) :: state
    integer(int64), intent(in) :: work(:)
    real(real64), intent(in) :: least(3)
    real(real64), allocatable :: border(:, :)
    real(real64) :: share(3)
    integer :: axis, first, k
    associate (unused => self); end associate
    share = state%grid%depth(least)/state%grid%box
    allocate (border, source=state%grid%border)
    first = 0
    do axis = 1, 3
      associate (n => state%grid%dims(axis))
        border(:n, axis) = balanced_borders(state%grid%border(:n, axis), [(state%grid%even_border(axis, k), k=0, n)], &
                                            real(work(first + 1:first + n), real64), share(axis))
        first = first + n
      end associate
    end do
  end function better_borders

  !> For the log: what moving the borders has done; empty where they do not move.
  function describe(self) result(text)
    class(border_balance_t), intent(in) :: self
    character(len=:), allocatable :: text
    character(len=120) :: line
    line = ""
    if (self%is_on .and. self%imbalance(1) > 0.0_real64) &
      write (line, "(2(a,f0.3))") "load balance: largest over mean work of a rank ", self%imbalance(1), &
        " with even borders, now ", self%imbalance(2)
    text = trim(line)
  end function describe

end module border_balance
