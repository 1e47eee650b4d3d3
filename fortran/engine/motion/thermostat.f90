!> Temperature control by velocities alone: stochastic velocity rescaling (Bussi, Donadio and Parrinello, J. Chem. Phys.
!> 126, 014101 (2007)), weak coupling (Berendsen et al., J. Chem. Phys. 81, 3684 (1984)), Nose-Hoover chains (Martyna,
!> Tuckerman, Tobias and Klein, Mol. Phys. 87, 1117 (1996)), and the friction and noise of Langevin dynamics.
!>
!> Random numbers are keyed by seed, step and atom: the same on any number of ranks and threads.
module thermostat
  use base_kinds, only: int64, real64
  use atoms, only: atoms_t
  use comm_communicator, only: communicator_t
  use base_constants, only: acceleration_unit, boltzmann
  use kinetics, only: kinetic_energy, scale_velocities
  use base_random, only: atom_normals, for_langevin, for_thermostat, random_stream_t
  implicit none
  private
  public :: thermostat_t, rescaled_kinetic_energy, max_chain, &
            no_thermostat, bussi_thermostat, berendsen_thermostat, langevin_thermostat, nose_hoover_thermostat

  integer, parameter :: no_thermostat = 0, bussi_thermostat = 1, berendsen_thermostat = 2, langevin_thermostat = 3, &
                        nose_hoover_thermostat = 4
  !> Longest Nose-Hoover chain.
  integer, parameter :: max_chain = 8
  !> Weights of the sixth-order decomposition of Yoshida and Suzuki for the chain.
  real(real64), parameter :: w1 = 0.784513610477560_real64, w2 = 0.235573213359357_real64, w3 = -1.17767998417887_real64
  real(real64), parameter :: chain_weight(7) = &
    [w1, w2, w3, 1.0_real64 - 2.0_real64*(w1 + w2 + w3), w3, w2, w1]

  type :: thermostat_t
    integer :: kind = no_thermostat
    !> K.
    real(real64) :: temperature = 0.0_real64
    !> Relaxation time (ps) and friction (1/ps).
    real(real64) :: tau = 1.0_real64, friction = 0.0_real64
    !> The temperature that is controlled is that of the centres of mass of the constraint groups.
    logical :: of_groups = .false.
    !> Degrees of freedom of that temperature.
    real(real64) :: n_freedom = 1.0_real64
    integer(int64) :: seed = 0
    integer :: chain_length = 5, chain_steps = 1
    !> Nose-Hoover chain: position (no unit) and velocity (1/ps).
    real(real64) :: chain_position(max_chain) = 0.0_real64, chain_velocity(max_chain) = 0.0_real64
    !> Energy (kcal/mol) that this thermostat has put into the system so far, same on all ranks; and the part of it
    !> that this rank alone knows of until `gather_heat`.
    real(real64) :: heat = 0.0_real64, my_heat = 0.0_real64
  contains
    procedure :: rescale
    procedure :: randomise
    procedure :: gather_heat
    procedure :: conserved_part
    procedure :: chain_factor
  end type thermostat_t

contains

  !> Let a rescaling thermostat act on the velocities for a time (ps). `part` tells apart two uses within one step.
  subroutine rescale(self, comm, atoms, step, part, time)
    class(thermostat_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(inout) :: atoms
    integer(int64), intent(in) :: step
    integer, intent(in) :: part
    real(real64), intent(in) :: time
    type(random_stream_t) :: random
    real(real64) :: kinetic, wanted, factor
    if (self%kind == no_thermostat .or. self%kind == langevin_thermostat) return
    kinetic = kinetic_energy(comm, atoms, self%of_groups)
    if (.not. kinetic > 0.0_real64) return
    wanted = 0.5_real64*self%n_freedom*boltzmann*self%temperature
    select case (self%kind)
    case (bussi_thermostat)
      call random%start(self%seed, for_thermostat, step, part)
      factor = sqrt(rescaled_kinetic_energy(random, kinetic, wanted, self%n_freedom, time/self%tau)/kinetic)
    case (berendsen_thermostat)
      factor = sqrt(1.0_real64 + (1.0_real64 - exp(-time/self%tau))*(wanted/kinetic - 1.0_real64))
    case (nose_hoover_thermostat)
      factor = self%chain_factor(2.0_real64*kinetic, self%n_freedom, time)
    end select
    call scale_velocities(atoms, spread(factor, 1, 3), self%of_groups)
    if (self%kind /= nose_hoover_thermostat) self%heat = self%heat + (factor**2 - 1.0_real64)*kinetic
  end subroutine rescale

  !> Kinetic energy after a time (in units of tau) of stochastic velocity rescaling from `kinetic` towards `wanted`: a
  !> sample of the distribution that solves eq. 7 of Bussi, Donadio and Parrinello exactly (their eq. A7).
  real(real64) function rescaled_kinetic_energy(random, kinetic, wanted, n_freedom, time) result(new)
    type(random_stream_t), intent(inout) :: random
    real(real64), intent(in) :: kinetic, wanted, n_freedom, time
    real(real64) :: kept, first, others
    kept = exp(-time)
    first = random%normal()
    others = 0.0_real64
    if (n_freedom > 1.0_real64) others = 2.0_real64*random%gamma(0.5_real64*(n_freedom - 1.0_real64))
    new = kept*kinetic + (1.0_real64 - kept)*wanted/n_freedom*(first**2 + others) + &
          2.0_real64*first*sqrt(kept*(1.0_real64 - kept)*wanted/n_freedom*kinetic)
  end function rescaled_kinetic_energy

  !> Propagate the chain for a time (ps) against twice a kinetic energy (kcal/mol) of so many degrees of freedom;
  !> returns the factor of the velocities.
  real(real64) function chain_factor(self, twice_kinetic, n_freedom, time) result(factor)
    class(thermostat_t), intent(inout) :: self
    real(real64), intent(in) :: twice_kinetic, n_freedom, time
    real(real64) :: kt, mass(max_chain), dt
    integer :: repeat, k, j, m
    kt = boltzmann*self%temperature
    mass = kt*self%tau**2
    mass(1) = n_freedom*mass(1)
    m = self%chain_length
    factor = 1.0_real64
    associate (v => self%chain_velocity, x => self%chain_position)
      do repeat = 1, self%chain_steps
        do k = 1, size(chain_weight)
          dt = chain_weight(k)*time/self%chain_steps
          do j = m, 1, -1
            call push(j)
          end do
          factor = factor*exp(-dt*v(1))
          x(:m) = x(:m) + dt*v(:m)
          do j = 1, m
            call push(j)
          end do
        end do
      end do
    end associate
  contains
    !> Velocity of a link by half a time step, against the friction of the next link.
    subroutine push(link)
      integer, intent(in) :: link
      real(real64) :: acceleration, damping
      if (link == 1) then
        acceleration = (twice_kinetic*factor**2 - n_freedom*kt)/mass(1)
      else
        acceleration = (mass(link - 1)*self%chain_velocity(link - 1)**2 - kt)/mass(link)
      end if
      damping = 1.0_real64
      if (link < m) damping = exp(-0.25_real64*dt*self%chain_velocity(link + 1))
      self%chain_velocity(link) = (self%chain_velocity(link)*damping + 0.5_real64*dt*acceleration)*damping
    end subroutine push
  end function chain_factor

  !> Friction and noise on the velocities of all atoms for a time (ps): the exact solution of the Ornstein-Uhlenbeck
  !> process. What it does to the kinetic energy is for the caller to book, who may still apply constraints.
  subroutine randomise(self, atoms, step, time)
    class(thermostat_t), intent(in) :: self
    type(atoms_t), intent(inout) :: atoms
    integer(int64), intent(in) :: step
    real(real64), intent(in) :: time
    real(real64) :: kept, noise
    integer :: i
    kept = exp(-self%friction*time)
    noise = sqrt((1.0_real64 - kept**2)*boltzmann*self%temperature*acceleration_unit)
    !$omp parallel do schedule(static)
    do i = 1, atoms%n_owned
      atoms%velocity(:, i) = kept*atoms%velocity(:, i) + noise/sqrt(atoms%mass(atoms%kind(i)))* &
                             atom_normals(self%seed, for_langevin, atoms%id(i), step)
    end do
    !$omp end parallel do
  end subroutine randomise

  !> Make the heat that ranks know alone known to all.
  subroutine gather_heat(self, comm)
    class(thermostat_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    real(real64) :: total(1)
    if (self%kind /= langevin_thermostat) return
    total = self%my_heat
    call comm%sum(total)
    self%heat = self%heat + total(1)
    self%my_heat = 0.0_real64
  end subroutine gather_heat

  !> What is added to the energy of the system to make a conserved quantity (kcal/mol).
  real(real64) function conserved_part(self) result(energy)
    class(thermostat_t), intent(in) :: self
    real(real64) :: kt
    integer :: m
    energy = -self%heat
    if (self%kind /= nose_hoover_thermostat) return
    kt = boltzmann*self%temperature
    m = self%chain_length
    energy = energy + 0.5_real64*kt*self%tau**2*(self%n_freedom*self%chain_velocity(1)**2 + &
                                                sum(self%chain_velocity(2:m)**2)) + &
             kt*(self%n_freedom*self%chain_position(1) + sum(self%chain_position(2:m)))
  end function conserved_part

end module thermostat
