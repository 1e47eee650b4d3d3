!> Signals that ask a run to stop (SIGTERM, SIGUSR1, SIGINT, SIGHUP): noted when they come, looked at when it suits the run.
module base_stop_signal
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  private
  public :: catch_stop_signals, stop_signal

  interface
    subroutine c_catch_stop_signals() bind(c, name="chroma_catch_stop_signals")
    end subroutine c_catch_stop_signals
    function c_stop_signal() bind(c, name="chroma_stop_signal") result(number)
      import :: c_int
      integer(c_int) :: number
    end function c_stop_signal
  end interface

contains

  !> From now on these signals do not end the process; `stop_signal` tells that one came.
  subroutine catch_stop_signals()
    call c_catch_stop_signals()
  end subroutine catch_stop_signals

  !> Number of the last such signal that came to this process, 0 = none.
  integer function stop_signal()
    stop_signal = int(c_stop_signal())
  end function stop_signal

end module base_stop_signal
