!> Wall-clock time of the parts of a run.
module timing
  use base_kinds, only: int64, real64
  use comm_communicator, only: communicator_t
  implicit none
  private
  public :: timer_t, in_real_space, in_reciprocal, in_bonded, in_list, in_communication, in_constraints, &
            in_integration, in_output

  integer, parameter :: in_real_space = 1, in_reciprocal = 2, in_bonded = 3, in_list = 4, in_communication = 5, &
                        in_constraints = 6, in_integration = 7, in_output = 8, n_parts = 8
  character(len=14), parameter :: part_name(n_parts) = [character(len=14) :: "real space", "reciprocal", &
                                                        "bonded", "pair list", &
                                                        "communication", "constraints", "integration", "output"]

  type :: timer_t
    real(real64), private :: seconds(n_parts) = 0.0_real64
    integer(int64), private :: last = 0, begin = 0
  contains
    procedure :: start
    procedure :: lap
    procedure :: move
    procedure :: report
  end type timer_t

contains

  subroutine start(self)
    class(timer_t), intent(out) :: self
    call system_clock(self%begin)
    self%last = self%begin
  end subroutine start

  !> Book the time since the last call to a part.
  subroutine lap(self, part)
    class(timer_t), intent(inout) :: self
    integer, intent(in) :: part
    integer(int64) :: now, rate
    call system_clock(now, rate)
    self%seconds(part) = self%seconds(part) + real(now - self%last, real64)/real(rate, real64)
    self%last = now
  end subroutine lap

  !> Book seconds of one part to another.
  subroutine move(self, seconds, from, to)
    class(timer_t), intent(inout) :: self
    real(real64), intent(in) :: seconds
    integer, intent(in) :: from, to
    self%seconds([from, to]) = self%seconds([from, to]) + [-seconds, seconds]
  end subroutine move

  !> Write the summary: mean over ranks of every part, and speed. `simulated`: ps, 0 when time did not advance.
  subroutine report(self, comm, unit, n_steps, n_atoms, simulated)
    class(timer_t), intent(in) :: self
    type(communicator_t), intent(in) :: comm
    integer, intent(in) :: unit
    integer(int64), intent(in) :: n_steps, n_atoms
    real(real64), intent(in) :: simulated
    real(real64) :: mean(n_parts), wall
    integer(int64) :: now, rate
    integer :: part
    call system_clock(now, rate)
    wall = max(real(now - self%begin, real64)/real(rate, real64), 1.0e-9_real64)
    mean = self%seconds
    call comm%sum(mean)
    mean = mean/comm%n_ranks
    if (.not. comm%is_root()) return
    write (unit, "(/,a)") "Timing (seconds, mean over ranks):"
    do part = 1, n_parts
      write (unit, "(2x,a14,f12.3,f8.1,a)") part_name(part), mean(part), 100.0_real64*mean(part)/wall, " %"
    end do
    write (unit, "(2x,a14,f12.3)") "total         ", wall
    if (n_steps > 0) write (unit, "(2x,a,f14.3)") "ms/step       ", 1000.0_real64*wall/n_steps
    if (n_steps > 0) write (unit, "(2x,a,es14.4)") "atom steps/s  ", real(n_steps, real64)*real(n_atoms, real64)/wall
    if (simulated > 0.0_real64) write (unit, "(2x,a,f14.4)") "ns/day        ", simulated*86.4_real64/wall
    flush (unit)
  end subroutine report

end module timing
