!> What thermostat, barostat and the grid of reciprocal space carry from one run to the next, and its place in a restart
!> file.
module ensemble_state
  use base_kinds, only: real64
  implicit none
  private
  public :: ensemble_state_t, chain_state_t, max_chain, packed_size

  !> Longest Nose-Hoover chain.
  integer, parameter :: max_chain = 8
  !> Numbers in a restart file, of which the last ones are 0: two chains, rates of strain, the largest move with its two
  !> counts, points of the grid, heat that the rank alone knows of, temperature, parameter of a replica.
  integer, parameter :: packed_size = 48, used_size = 2*(1 + 2*max_chain) + 3 + 3 + 3 + 2 + 1

  !> Of a thermostat: energy that it has put into the system (kcal/mol), positions (no unit) and velocities (1/ps) of its
  !> chain, energy that this rank has put in and the others do not know of yet, and the temperature (K) it had last.
  type :: chain_state_t
    real(real64) :: heat = 0.0_real64, position(max_chain) = 0.0_real64, velocity(max_chain) = 0.0_real64
    real(real64) :: my_heat = 0.0_real64, temperature = 0.0_real64
  end type chain_state_t

  type :: ensemble_state_t
    !> Of the atoms, and of the pistons of a barostat.
    type(chain_state_t) :: bath, piston_bath
    !> Rates of strain along x, y and z (1/ps).
    real(real64) :: strain_rate(3) = 0.0_real64
    !> Monte Carlo moves of the volume: the largest change of its logarithm (0 = none was made yet), trials and acceptances
    !> since that changed.
    real(real64) :: largest_move = 0.0_real64
    integer :: n_tried = 0, n_accepted = 0
    !> Points of the grid of reciprocal space along x, y and z, 0 = there was none.
    integer :: grid_points(3) = 0
    !> Of those that replicas exchange, from 1; 0 = there was none.
    integer :: parameter = 0
  contains
    procedure :: packed
    procedure :: unpack => unpack_state
  end type ensemble_state_t

contains

  !> As numbers, in the order of the restart file.
  pure function packed(self) result(numbers)
    class(ensemble_state_t), intent(in) :: self
    real(real64) :: numbers(packed_size)
    numbers(:used_size) = [self%bath%heat, self%bath%position, self%bath%velocity, self%strain_rate, &
                           self%piston_bath%heat, self%piston_bath%position, self%piston_bath%velocity, &
                           self%largest_move, real(self%n_tried, real64), real(self%n_accepted, real64), &
                           real(self%grid_points, real64), self%bath%my_heat, self%bath%temperature, real(self%parameter, real64)]
    numbers(used_size + 1:) = 0.0_real64
  end function packed

  !> From the numbers that `packed` gave.
  subroutine unpack_state(self, numbers)
    class(ensemble_state_t), intent(out) :: self
    real(real64), intent(in) :: numbers(packed_size)
    real(real64) :: counts(5), parameter
    integer :: used
    used = 0
    call take_chain(self%bath)
    call take(self%strain_rate)
    call take_chain(self%piston_bath)
    call take_one(self%largest_move)
    call take(counts)
    call take_one(self%bath%my_heat)
    call take_one(self%bath%temperature)
    call take_one(parameter)
    self%parameter = nint(parameter)
    self%n_tried = nint(counts(1))
    self%n_accepted = nint(counts(2))
    self%grid_points = nint(counts(3:))
  contains
    subroutine take(values)
      real(real64), intent(out) :: values(:)
      values = numbers(used + 1:used + size(values))
      used = used + size(values)
    end subroutine take
    subroutine take_one(value)
      real(real64), intent(out) :: value
      used = used + 1
      value = numbers(used)
    end subroutine take_one
    subroutine take_chain(chain)
      type(chain_state_t), intent(out) :: chain
      call take_one(chain%heat)
      call take(chain%position)
      call take(chain%velocity)
    end subroutine take_chain
  end subroutine unpack_state

end module ensemble_state
