!> Pistons that follow the equations of motion of Martyna, Tobias and Klein (J. Chem. Phys. 101, 4177 (1994)), with a
!> thermostat of their own, of the kind that the atoms have.
module mtk
  use base_kinds, only: int64, real64
  use atoms, only: atoms_t
  use barostat, only: barostat_t
  use base_constants, only: boltzmann
  use base_random, only: for_barostat, random_stream_t
  use comm_communicator, only: communicator_t
  use ensemble_state, only: ensemble_state_t
  use kinetics, only: group_kinetic_energy, scale_velocities
  use thermostat, only: thermostat_t
  implicit none
  private
  public :: mtk_t

  type, extends(barostat_t) :: mtk_t
    class(thermostat_t), allocatable :: bath
  contains
    procedure :: set_temperature
    procedure :: act_before
    procedure :: act_after
    procedure :: scaling
    procedure :: conserved_part
    procedure :: take_from
    procedure :: put_into
    procedure, private :: mass
    procedure, private :: push
    procedure, private :: thermalise
    procedure, private :: damping
  end type mtk_t

contains

  subroutine set_temperature(self, temperature)
    class(mtk_t), intent(inout) :: self
    real(real64), intent(in) :: temperature
    self%temperature = temperature
    self%bath%temperature = temperature
  end subroutine set_temperature

  subroutine act_before(self, comm, atoms, volume, step, time)
    class(mtk_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(inout) :: atoms
    real(real64), intent(in) :: volume, time
    integer(int64), intent(in) :: step
    call self%thermalise(step, 2, time)
    call self%push(comm, atoms, volume, time)
  end subroutine act_before

  subroutine act_after(self, comm, atoms, volume, step, time)
    class(mtk_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(inout) :: atoms
    real(real64), intent(in) :: volume, time
    integer(int64), intent(in) :: step
    call self%push(comm, atoms, volume, time)
    call self%thermalise(step, 3, time)
  end subroutine act_after

  !> For a time (ps): velocities are damped, pistons pushed by the excess of pressure, velocities damped.
  subroutine push(self, comm, atoms, volume, time)
    class(mtk_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(inout) :: atoms
    real(real64), intent(in) :: volume, time
    real(real64) :: kinetic(3), excess(3), mass(self%pistons%number())
    integer :: p
    call scale_velocities(atoms, self%damping(0.5_real64*time), of_groups=.true.)
    kinetic = group_kinetic_energy(comm, atoms)
    excess = 2.0_real64*kinetic + self%virial - self%pressure*volume + 2.0_real64*sum(kinetic)/self%n_freedom
    mass = self%mass()
    associate (pistons => self%pistons)
      do p = 1, size(mass)
        where (pistons%of_axis == p) pistons%rate = pistons%rate + time*sum(excess, mask=pistons%of_axis == p)/mass(p)
      end do
    end associate
    call scale_velocities(atoms, self%damping(0.5_real64*time), of_groups=.true.)
  end subroutine push

  !> Let the pistons' own thermostat act for a time (ps); `part` tells apart two uses within one step.
  subroutine thermalise(self, step, part, time)
    class(mtk_t), intent(inout) :: self
    integer(int64), intent(in) :: step
    integer, intent(in) :: part
    real(real64), intent(in) :: time
    type(random_stream_t) :: random
    call random%start(self%seed, for_barostat, step, part)
    call self%bath%act_on_pistons(self%pistons, self%mass(), random, time)
  end subroutine thermalise

  !> Inertia of each piston (kcal/mol ps^2): every axis it moves counts a third of that of an isotropic piston.
  pure function mass(self)
    class(mtk_t), intent(in) :: self
    real(real64) :: mass(self%pistons%number())
    integer :: p
    do p = 1, size(mass)
      mass(p) = count(self%pistons%of_axis == p)/3.0_real64*(self%n_freedom + 3.0_real64)*boltzmann*self%temperature* &
                self%tau**2
    end do
  end function mass

  !> Factors of the velocities of the groups along each axis over a time (ps), with which the pistons damp them.
  pure function damping(self, time) result(factor)
    class(mtk_t), intent(in) :: self
    real(real64), intent(in) :: time
    real(real64) :: factor(3)
    factor = exp(-time*(self%pistons%rate + sum(self%pistons%rate)/self%n_freedom))
  end function damping

  pure function scaling(self, time) result(factor)
    class(mtk_t), intent(in) :: self
    real(real64), intent(in) :: time
    real(real64) :: factor(3)
    factor = exp(time*self%pistons%rate)
  end function scaling

  real(real64) function conserved_part(self, volume) result(energy)
    class(mtk_t), intent(in) :: self
    real(real64), intent(in) :: volume
    energy = self%pressure*volume + self%pistons%kinetic_energy(self%mass()) + self%bath%conserved_part()
  end function conserved_part

  subroutine take_from(self, state)
    class(mtk_t), intent(inout) :: self
    type(ensemble_state_t), intent(in) :: state
    call self%pistons%take_rates(state%strain_rate)
    call self%bath%take_from(state%piston_bath)
  end subroutine take_from

  subroutine put_into(self, state)
    class(mtk_t), intent(in) :: self
    type(ensemble_state_t), intent(inout) :: state
    state%strain_rate = self%pistons%rate
    call self%bath%put_into(state%piston_bath)
  end subroutine put_into

end module mtk
