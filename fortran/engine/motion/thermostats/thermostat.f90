!> What all thermostats share. A thermostat acts on the velocities of atoms before and after the steps of its period, or in
!> the middle of every drift, and on the pistons of a barostat. A new one extends `thermostat_t` in a file of its own and
!> takes a line in module thermostats.
!>
!> Random numbers are keyed by seed, step and atom: the same on any number of ranks and threads.
module thermostat
  use base_kinds, only: int64, real64
  use atoms, only: atoms_t
  use base_random, only: random_stream_t
  use comm_communicator, only: communicator_t
  use ensemble_state, only: chain_state_t
  use pistons, only: pistons_t
  implicit none
  private
  public :: thermostat_t, thermostat_settings_t

  type :: thermostat_settings_t
    !> K.
    real(real64) :: temperature = 0.0_real64
    !> Relaxation time (ps) and friction (1/ps).
    real(real64) :: tau = 1.0_real64, friction = 0.0_real64
    !> The temperature that is controlled is that of the centres of mass of the constraint groups.
    logical :: of_groups = .false.
    !> Degrees of freedom of that temperature.
    real(real64) :: n_freedom = 1.0_real64
    integer(int64) :: seed = 0
    !> Links of a Nose-Hoover chain and its steps within one of the thermostat.
    integer :: chain_length = 5, chain_steps = 1
  end type thermostat_settings_t

  type, abstract, extends(thermostat_settings_t) :: thermostat_t
    !> Energy (kcal/mol) that this thermostat has put into the system so far, same on all ranks; and the part of it
    !> that this rank alone knows of until `gather_heat`.
    real(real64) :: heat = 0.0_real64, my_heat = 0.0_real64
    !> The work of restraints whose constants change is booked with the heat, by each rank alone.
    logical :: is_worked_on = .false.
  contains
    procedure :: acts_on_velocities
    procedure :: acts_in_drift
    procedure :: moves_centre
    procedure :: kick_share
    procedure :: act_on_velocities
    procedure :: act_in_drift
    procedure(act_on_pistons), deferred :: act_on_pistons
    procedure :: gather_heat
    procedure :: conserved_part
    procedure :: take_from
    procedure :: put_into
  end type thermostat_t

  abstract interface
    !> Act on the pistons of a barostat, with `mass` (kcal/mol ps^2) each, for a time (ps).
    subroutine act_on_pistons(self, pistons, mass, random, time)
      import :: pistons_t, random_stream_t, real64, thermostat_t
      class(thermostat_t), intent(inout) :: self
      type(pistons_t), intent(inout) :: pistons
      real(real64), intent(in) :: mass(:)
      type(random_stream_t), intent(inout) :: random
      real(real64), intent(in) :: time
    end subroutine act_on_pistons
  end interface

contains

  !> Whether `act_on_velocities` does anything.
  pure logical function acts_on_velocities(self)
    class(thermostat_t), intent(in) :: self
    associate (unused => self); end associate
    acts_on_velocities = .false.
  end function acts_on_velocities

  !> Whether `act_in_drift` does anything.
  pure logical function acts_in_drift(self)
    class(thermostat_t), intent(in) :: self
    associate (unused => self); end associate
    acts_in_drift = .false.
  end function acts_in_drift

  !> Whether the thermostat sets the centre of mass of the system in motion.
  pure logical function moves_centre(self)
    class(thermostat_t), intent(in) :: self
    associate (unused => self); end associate
    moves_centre = .false.
  end function moves_centre

  !> Share of the energy of half a kick that makes kinetic energies of whole steps those of the temperature: see module
  !> half_kick.
  pure real(real64) function kick_share(self)
    class(thermostat_t), intent(in) :: self
    associate (unused => self); end associate
    kick_share = 2.0_real64/3.0_real64
  end function kick_share

  !> Act on the velocities of all atoms for a time (ps). `part` tells apart two uses within one step.
  subroutine act_on_velocities(self, comm, atoms, step, part, time)
    class(thermostat_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(inout) :: atoms
    integer(int64), intent(in) :: step
    integer, intent(in) :: part
    real(real64), intent(in) :: time
    associate (unused_1 => self, unused_2 => comm, unused_3 => atoms, unused_4 => step, unused_5 => part, unused_6 => time)
    end associate
  end subroutine act_on_velocities

  !> Act on the velocities of this rank's atoms in the middle of the drift of a step, for a time (ps). What it does to the
  !> kinetic energy is for the caller to add to `my_heat`, who may still apply constraints.
  subroutine act_in_drift(self, atoms, step, time)
    class(thermostat_t), intent(in) :: self
    type(atoms_t), intent(inout) :: atoms
    integer(int64), intent(in) :: step
    real(real64), intent(in) :: time
    associate (unused_1 => self, unused_2 => atoms, unused_3 => step, unused_4 => time)
    end associate
  end subroutine act_in_drift

  !> Make the heat that ranks know alone known to all.
  subroutine gather_heat(self, comm)
    class(thermostat_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    real(real64) :: total(1)
    if (.not. (self%acts_in_drift() .or. self%is_worked_on)) return
    total = self%my_heat
    call comm%sum(total)
    self%heat = self%heat + total(1)
    self%my_heat = 0.0_real64
  end subroutine gather_heat

  !> What is added to the energy of the system to make a conserved quantity (kcal/mol).
  real(real64) function conserved_part(self) result(energy)
    class(thermostat_t), intent(in) :: self
    energy = -self%heat
  end function conserved_part

  !> Go on from the state of an earlier run.
  subroutine take_from(self, state)
    class(thermostat_t), intent(inout) :: self
    type(chain_state_t), intent(in) :: state
    self%heat = state%heat
    self%my_heat = state%my_heat
  end subroutine take_from

  !> Put into `state` what this thermostat carries to the next run; the rest is another's and stays.
  subroutine put_into(self, state)
    class(thermostat_t), intent(in) :: self
    type(chain_state_t), intent(inout) :: state
    state%heat = self%heat
    state%my_heat = self%my_heat
    state%temperature = self%temperature
  end subroutine put_into

end module thermostat
