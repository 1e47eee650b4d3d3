!> Monte Carlo moves of the volume (Aqvist et al., Chem. Phys. Lett. 384, 288 (2004)).
module monte_carlo
  use base_kinds, only: int64, real64
  use barostat, only: barostat_t
  use base_constants, only: boltzmann
  use base_random, only: for_barostat, random_stream_t
  use ensemble_state, only: ensemble_state_t
  implicit none
  private
  public :: monte_carlo_t, first_largest_move

  !> Largest change of the logarithm of the volume with which moves begin.
  real(real64), parameter :: first_largest_move = 0.003_real64
  !> Trial moves after which the largest one is adapted, and between which rates of acceptance it is left alone.
  integer, parameter :: trials_between_changes = 10
  real(real64), parameter :: acceptance(2) = [0.25_real64, 0.6_real64]

  type, extends(barostat_t) :: monte_carlo_t
    !> Largest change of the logarithm of the volume; trials and acceptances since it was changed.
    real(real64), private :: largest_move = first_largest_move
    integer, private :: n_tried = 0, n_accepted = 0
    !> Potential energy (kcal/mol) that accepted moves have put into the system.
    real(real64), private :: heat = 0.0_real64
  contains
    procedure :: trial_move
    procedure :: accepts
    procedure :: conserved_part
    procedure :: take_from
    procedure :: put_into
  end type monte_carlo_t

contains

  !> Factors of the box edges of a move: the logarithm of the volume changes by a uniform number, by one piston chosen at
  !> random.
  subroutine trial_move(self, step, factor)
    class(monte_carlo_t), intent(in) :: self
    integer(int64), intent(in) :: step
    real(real64), intent(out) :: factor(3)
    type(random_stream_t) :: random
    real(real64) :: change
    integer :: p
    call random%start(self%seed, for_barostat, step, 0)
    associate (of_axis => self%pistons%of_axis, n => self%pistons%number())
      p = min(1 + int(n*random%uniform()), n)
      change = self%largest_move*(2.0_real64*random%uniform() - 1.0_real64)
      factor = 1.0_real64
      where (of_axis == p) factor = exp(change/count(of_axis == p))
    end associate
  end subroutine trial_move

  !> Whether a move is accepted that changes the potential energy by so much (kcal/mol), and the volume (angstrom^3).
  !> Adapts the largest move.
  logical function accepts(self, step, energy_change, old_volume, new_volume)
    class(monte_carlo_t), intent(inout) :: self
    integer(int64), intent(in) :: step
    real(real64), intent(in) :: energy_change, old_volume, new_volume
    type(random_stream_t) :: random
    real(real64) :: kt, exponent
    kt = boltzmann*self%temperature
    ! The logarithm of the volume is what moves uniformly: one more volume than in the partition function.
    exponent = -(energy_change + self%pressure*(new_volume - old_volume))/kt + &
               (self%n_groups + 1.0_real64)*log(new_volume/old_volume)
    call random%start(self%seed, for_barostat, step, 1)
    accepts = log(random%uniform()) < exponent
    self%n_tried = self%n_tried + 1
    if (accepts) self%n_accepted = self%n_accepted + 1
    if (accepts) self%heat = self%heat + energy_change
    if (self%n_tried < trials_between_changes) return
    if (self%n_accepted < acceptance(1)*self%n_tried) self%largest_move = self%largest_move/1.1_real64
    if (self%n_accepted > acceptance(2)*self%n_tried) self%largest_move = min(0.1_real64, 1.1_real64*self%largest_move)
    self%n_tried = 0
    self%n_accepted = 0
  end function accepts

  real(real64) function conserved_part(self, volume) result(energy)
    class(monte_carlo_t), intent(in) :: self
    real(real64), intent(in) :: volume
    associate (unused => volume); end associate
    energy = -self%heat
  end function conserved_part

  subroutine take_from(self, state)
    class(monte_carlo_t), intent(inout) :: self
    type(ensemble_state_t), intent(in) :: state
    self%heat = state%piston_bath%heat
    self%largest_move = state%largest_move
    self%n_tried = state%n_tried
    self%n_accepted = state%n_accepted
  end subroutine take_from

  subroutine put_into(self, state)
    class(monte_carlo_t), intent(in) :: self
    type(ensemble_state_t), intent(inout) :: state
    state%piston_bath%heat = self%heat
    state%largest_move = self%largest_move
    state%n_tried = self%n_tried
    state%n_accepted = self%n_accepted
  end subroutine put_into

end module monte_carlo
