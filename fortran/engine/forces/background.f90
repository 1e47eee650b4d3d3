!> Work that goes on beside a computation: what is under way between ranks and needs to be looked after now and then.
module background
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  private
  public :: background_t

  type, abstract :: background_t
    !> Time that `look_after` took, in all.
    real(real64) :: seconds = 0.0_real64
  contains
    procedure :: look_after
    procedure(advance_work), deferred :: advance
  end type background_t

  abstract interface
    !> Go on as far as is possible without waiting.
    subroutine advance_work(self)
      import :: background_t
      class(background_t), intent(inout) :: self
    end subroutine advance_work
  end interface

contains

  !> Advance it; for the thread that may communicate only.
  subroutine look_after(self)
    class(background_t), intent(inout) :: self
    integer(int64) :: begin, now, rate
    call system_clock(begin, rate)
    call self%advance()
    call system_clock(now)
    self%seconds = self%seconds + real(now - begin, real64)/real(rate, real64)
  end subroutine look_after

end module background
