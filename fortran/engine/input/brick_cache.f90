!> Bricks that were read last: domains that are set up one after another touch mostly the same ones.
module brick_cache
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use bricks, only: brick_list_t
  implicit none
  private
  public :: brick_cache_t

  type :: brick_t
    !> Its number in the list, 0 = none, and when it was last asked for.
    integer :: number = 0
    integer(int64) :: asked = 0
    !> Global ids, ascending, and positions (3, n; angstrom).
    integer(int64), allocatable :: id(:)
    real(real64), allocatable :: position(:, :)
  end type brick_t

  type :: brick_cache_t
    !> Bricks that are kept.
    integer :: most = 1
    type(brick_t), allocatable :: brick(:)
    integer(int64), private :: clock = 0
  contains
    procedure :: fetch
  end type brick_cache_t

contains

  !> Have brick `number` of the list at hand as `brick(place)`; the one that nobody asked for longest makes room.
  subroutine fetch(self, list, number, place, error)
    class(brick_cache_t), intent(inout) :: self
    type(brick_list_t), intent(in) :: list
    integer, intent(in) :: number
    integer, intent(out) :: place
    type(error_t), allocatable, intent(out) :: error
    if (.not. allocated(self%brick)) allocate (self%brick(self%most))
    self%clock = self%clock + 1
    place = findloc(self%brick%number, number, dim=1)
    if (place == 0) then
      place = minloc(self%brick%asked, dim=1)
      associate (brick => self%brick(place))
        brick%number = 0
        call list%read_brick(number, brick%id, brick%position, error)
        if (allocated(error)) return
        brick%number = number
      end associate
    end if
    self%brick(place)%asked = self%clock
  end subroutine fetch

end module brick_cache
