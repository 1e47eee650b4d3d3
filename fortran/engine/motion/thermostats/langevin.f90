!> Friction and noise of Langevin dynamics, in the middle of every drift (Leimkuhler and Matthews, Proc. R. Soc. A 472,
!> 20160138 (2016)).
module langevin
  use base_kinds, only: int64, real64
  use atoms, only: atoms_t, hold
  use base_constants, only: acceleration_unit, boltzmann
  use base_random, only: atom_normals, atoms_together, for_langevin, random_stream_t
  use pistons, only: pistons_t
  use thermostat, only: thermostat_t
  implicit none
  private
  public :: langevin_t

  type, extends(thermostat_t) :: langevin_t
  contains
    procedure :: acts_in_drift
    procedure :: moves_centre
    procedure :: kick_share
    procedure :: act_in_drift
    procedure :: act_on_pistons
  end type langevin_t

contains

  pure logical function acts_in_drift(self)
    class(langevin_t), intent(in) :: self
    associate (unused => self); end associate
    acts_in_drift = .true.
  end function acts_in_drift

  pure logical function moves_centre(self)
    class(langevin_t), intent(in) :: self
    associate (unused => self); end associate
    moves_centre = .true.
  end function moves_centre

  !> Velocities have the temperature of the bath in the middle of steps.
  pure real(real64) function kick_share(self)
    class(langevin_t), intent(in) :: self
    associate (unused => self); end associate
    kick_share = 1.0_real64
  end function kick_share

  !> The exact solution of the Ornstein-Uhlenbeck process.
  subroutine act_in_drift(self, atoms, step, time)
    class(langevin_t), intent(in) :: self
    type(atoms_t), intent(inout) :: atoms
    integer(int64), intent(in) :: step
    real(real64), intent(in) :: time
    real(real64) :: kept, noise, of_kind(size(atoms%mass)), normals(atoms_together, 3)
    integer :: first, n, i
    kept = exp(-self%friction*time)
    noise = sqrt((1.0_real64 - kept**2)*boltzmann*self%temperature*acceleration_unit)
    ! Virtual sites have neither mass nor velocity.
    of_kind = 0.0_real64
    where (atoms%mass > 0.0_real64) of_kind = noise/sqrt(atoms%mass)
    !$omp parallel do schedule(static) private(n, i, normals)
    do first = 0, atoms%n_owned - 1, atoms_together
      n = min(atoms_together, atoms%n_owned - first)
      call atom_normals(self%seed, for_langevin, atoms%id(first + 1:first + n), step, normals(:n, :))
      do i = 1, n
        associate (velocity => atoms%velocity(:, first + i))
          velocity = kept*velocity + of_kind(atoms%kind(first + i))*normals(i, :)
        end associate
      end do
    end do
    !$omp end parallel do
    call hold(atoms%fixed, atoms%velocity)
  end subroutine act_in_drift

  subroutine act_on_pistons(self, pistons, mass, random, time)
    class(langevin_t), intent(inout) :: self
    type(pistons_t), intent(inout) :: pistons
    real(real64), intent(in) :: mass(:)
    type(random_stream_t), intent(inout) :: random
    real(real64), intent(in) :: time
    real(real64) :: before, kt, kept, noise
    integer :: p
    before = pistons%kinetic_energy(mass)
    kt = boltzmann*self%temperature
    kept = exp(-self%friction*time)
    do p = 1, size(mass)
      noise = sqrt((1.0_real64 - kept**2)*kt/mass(p))*random%normal()
      where (pistons%of_axis == p) pistons%rate = kept*pistons%rate + noise
    end do
    self%heat = self%heat + pistons%kinetic_energy(mass) - before
  end subroutine act_on_pistons

end module langevin
