!> Thermostats that multiply all velocities by one factor, which follows from the kinetic energy.
module rescaling
  use base_kinds, only: int64, real64
  use atoms, only: atoms_t
  use base_constants, only: boltzmann
  use base_random, only: for_thermostat, random_stream_t
  use comm_communicator, only: communicator_t
  use kinetics, only: kinetic_energy, scale_velocities
  use pistons, only: pistons_t
  use thermostat, only: thermostat_t
  implicit none
  private
  public :: rescaling_t

  type, abstract, extends(thermostat_t) :: rescaling_t
  contains
    procedure :: acts_on_velocities
    procedure :: act_on_velocities
    procedure :: act_on_pistons
    procedure :: books_heat
    procedure(velocity_factor), deferred :: velocity_factor
  end type rescaling_t

  abstract interface
    !> Factor of the velocities over a time (ps) that takes a kinetic energy of `n_freedom` degrees of freedom towards
    !> `wanted`, both kcal/mol.
    real(real64) function velocity_factor(self, kinetic, wanted, n_freedom, time, random)
      import :: random_stream_t, real64, rescaling_t
      class(rescaling_t), intent(inout) :: self
      real(real64), intent(in) :: kinetic, wanted, n_freedom, time
      type(random_stream_t), intent(inout) :: random
    end function velocity_factor
  end interface

contains

  pure logical function acts_on_velocities(self)
    class(rescaling_t), intent(in) :: self
    associate (unused => self); end associate
    acts_on_velocities = .true.
  end function acts_on_velocities

  !> Whether changes of the kinetic energy are booked as heat; where not, the thermostat itself holds that energy.
  pure logical function books_heat(self)
    class(rescaling_t), intent(in) :: self
    associate (unused => self); end associate
    books_heat = .true.
  end function books_heat

  subroutine act_on_velocities(self, comm, atoms, step, part, time)
    class(rescaling_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(inout) :: atoms
    integer(int64), intent(in) :: step
    integer, intent(in) :: part
    real(real64), intent(in) :: time
    type(random_stream_t) :: random
    real(real64) :: kinetic, wanted, factor
    kinetic = kinetic_energy(comm, atoms, self%of_groups)
    if (.not. kinetic > 0.0_real64) return
    wanted = 0.5_real64*self%n_freedom*boltzmann*self%temperature
    call random%start(self%seed, for_thermostat, step, part)
    factor = self%velocity_factor(kinetic, wanted, self%n_freedom, time, random)
    call scale_velocities(atoms, spread(factor, 1, 3), self%of_groups)
    if (self%books_heat()) self%heat = self%heat + (factor**2 - 1.0_real64)*kinetic
  end subroutine act_on_velocities

  subroutine act_on_pistons(self, pistons, mass, random, time)
    class(rescaling_t), intent(inout) :: self
    type(pistons_t), intent(inout) :: pistons
    real(real64), intent(in) :: mass(:)
    type(random_stream_t), intent(inout) :: random
    real(real64), intent(in) :: time
    real(real64) :: kinetic, n, kt
    kinetic = pistons%kinetic_energy(mass)
    n = pistons%number()
    kt = boltzmann*self%temperature
    pistons%rate = pistons%rate*self%velocity_factor(kinetic, 0.5_real64*n*kt, n, time, random)
    if (self%books_heat()) self%heat = self%heat + pistons%kinetic_energy(mass) - kinetic
  end subroutine act_on_pistons

end module rescaling
