!> What all kinds of dynamics share: ions moved by velocity Verlet, and a bath for their temperature. A new kind extends
!> `dynamics_t` in a file of its own.
module dynamics
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use heat_bath, only: heat_bath_t
  use ions, only: ions_t
  use kohn_sham, only: energies_t, kohn_sham_t
  implicit none
  private
  public :: dynamics_t

  type, abstract :: dynamics_t
    !> Which kind this is, in restart files.
    integer :: kind_number = 0
    !> Steps done so far, over all restarts.
    integer(int64) :: step = 0
    !> hbar/Ha.
    real(real64) :: time_step = 0.0_real64
    type(heat_bath_t) :: ion_bath
    !> States (waves, states); energy and forces (3, n) on the ions (hartree/bohr) at the present place.
    complex(real64), allocatable :: coefficient(:, :)
    type(energies_t) :: energy
    real(real64), allocatable :: ion_force(:, :)
  contains
    !> Energy and forces from ions and states that the caller has put in place.
    procedure(start), deferred :: start
    procedure(start), deferred :: advance
    procedure :: states_kinetic
    procedure :: conserved
    !> What the next run needs beside what is public here, to and from an open stream.
    procedure(write_to), deferred :: write_to
    procedure(read_from), deferred :: read_from
    procedure :: half_step_of_bath
    procedure :: kick_ions
  end type dynamics_t

  abstract interface
    subroutine start(self, ks, system, error)
      import :: dynamics_t, error_t, ions_t, kohn_sham_t
      class(dynamics_t), intent(inout) :: self
      class(kohn_sham_t), intent(inout) :: ks
      type(ions_t), intent(inout) :: system
      type(error_t), allocatable, intent(out) :: error
    end subroutine start
    subroutine write_to(self, unit, status)
      import :: dynamics_t
      class(dynamics_t), intent(in) :: self
      integer, intent(in) :: unit
      integer, intent(out) :: status
    end subroutine write_to
    subroutine read_from(self, unit, status)
      import :: dynamics_t
      class(dynamics_t), intent(inout) :: self
      integer, intent(in) :: unit
      integer, intent(out) :: status
    end subroutine read_from
  end interface

contains

  !> Fictitious kinetic energy of the states (hartree).
  real(real64) function states_kinetic(self, ks)
    class(dynamics_t), intent(in) :: self
    class(kohn_sham_t), intent(in) :: ks
    associate (unused_1 => self, unused_2 => ks); end associate
    states_kinetic = 0.0_real64
  end function states_kinetic

  !> The conserved quantity (hartree).
  real(real64) function conserved(self, ks, system)
    class(dynamics_t), intent(in) :: self
    class(kohn_sham_t), intent(in) :: ks
    type(ions_t), intent(in) :: system
    conserved = self%energy%total() + system%kinetic_energy() + self%states_kinetic(ks) + self%ion_bath%energy()
  end function conserved

  !> The bath of the ions, before and after a step.
  subroutine half_step_of_bath(self, system)
    class(dynamics_t), intent(inout) :: self
    type(ions_t), intent(inout) :: system
    system%velocity = self%ion_bath%factor(system%kinetic_energy(), 0.5_real64*self%time_step)*system%velocity
  end subroutine half_step_of_bath

  !> Half a step of the ions' velocities.
  subroutine kick_ions(self, system)
    class(dynamics_t), intent(in) :: self
    type(ions_t), intent(inout) :: system
    integer :: a
    do a = 1, system%n_atoms()
      system%velocity(:, a) = system%velocity(:, a) + 0.5_real64*self%time_step/system%mass(a)*self%ion_force(:, a)
    end do
  end subroutine kick_ions

end module dynamics
