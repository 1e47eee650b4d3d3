!> Pressure control: pistons that follow the equations of motion of Martyna, Tobias and Klein (J. Chem. Phys. 101, 4177
!> (1994)), with their own thermostat (velocity rescaling as Bussi, Zykova-Timan and Parrinello, J. Chem. Phys. 130,
!> 074101 (2009); Langevin; Nose-Hoover chain); weak coupling (Berendsen et al., J. Chem. Phys. 81, 3684 (1984)); or
!> Monte Carlo moves of the volume (Aqvist et al., Chem. Phys. Lett. 384, 288 (2004)).
!>
!> What is scaled are the centres of mass of constraint groups, so that rigid bonds stay rigid, and the pressure is that
!> of groups. Axes move together or alone (a piston each) or not at all.
module barostat
  use base_kinds, only: int64, real64
  use base_constants, only: boltzmann
  use base_random, only: for_barostat, random_stream_t
  use thermostat, only: berendsen_thermostat, bussi_thermostat, langevin_thermostat, nose_hoover_thermostat, &
                        rescaled_kinetic_energy, thermostat_t
  implicit none
  private
  public :: barostat_t, no_barostat, mtk_barostat, berendsen_barostat, monte_carlo_barostat

  integer, parameter :: no_barostat = 0, mtk_barostat = 1, berendsen_barostat = 2, monte_carlo_barostat = 3
  !> Trial moves after which the largest one is adapted, and between which rates of acceptance it is left alone.
  integer, parameter :: trials_between_changes = 10
  real(real64), parameter :: acceptance(2) = [0.25_real64, 0.6_real64]

  type :: barostat_t
    integer :: kind = no_barostat
    !> Wanted pressure (kcal/mol/angstrom^3), relaxation time (ps), compressibility (angstrom^3 mol/kcal), friction of
    !> Langevin pistons (1/ps).
    real(real64) :: pressure = 0.0_real64, tau = 1.0_real64, compressibility = 0.0_real64, friction = 0.0_real64
    !> Piston of each axis, 0 = the axis is fixed.
    integer :: piston(3) = 0
    !> Degrees of freedom of the groups' centres of mass, and their number.
    real(real64) :: n_freedom = 1.0_real64, n_groups = 1.0_real64
    !> Rate of strain of each axis (1/ps), equal for axes of one piston.
    real(real64) :: rate(3) = 0.0_real64
    !> Bath of the pistons: that of the atoms, with state of its own.
    type(thermostat_t) :: bath
    !> Monte Carlo: largest change of the logarithm of the volume; trials and acceptances since it was changed.
    real(real64) :: largest_move = 0.003_real64
    integer :: n_tried = 0, n_accepted = 0
  contains
    procedure :: accelerate
    procedure :: couple_weakly
    procedure :: damping
    procedure :: thermalise
    procedure :: kinetic_energy
    procedure :: conserved_part
    procedure :: trial_move
    procedure :: accepts
    procedure, private :: mass
    procedure, private :: n_pistons
  end type barostat_t

contains

  pure integer function n_pistons(self)
    class(barostat_t), intent(in) :: self
    n_pistons = maxval(self%piston)
  end function n_pistons

  !> Inertia of a piston (kcal/mol ps^2): every axis it moves counts a third of that of an isotropic piston.
  pure real(real64) function mass(self, piston)
    class(barostat_t), intent(in) :: self
    integer, intent(in) :: piston
    mass = count(self%piston == piston)/3.0_real64*(self%n_freedom + 3.0_real64)*boltzmann*self%bath%temperature* &
           self%tau**2
  end function mass

  !> Pistons by the excess of pressure for a time (ps). `virial` and `kinetic`: of the groups along each axis, kcal/mol.
  subroutine accelerate(self, virial, kinetic, volume, time)
    class(barostat_t), intent(inout) :: self
    real(real64), intent(in) :: virial(3), kinetic(3), volume, time
    real(real64) :: push(3)
    integer :: p
    push = 2.0_real64*kinetic + virial - self%pressure*volume + 2.0_real64*sum(kinetic)/self%n_freedom
    do p = 1, self%n_pistons()
      where (self%piston == p) self%rate = self%rate + time*sum(push, mask=self%piston == p)/self%mass(p)
    end do
  end subroutine accelerate

  !> Rates that take the pressure to the wanted one within the relaxation time.
  subroutine couple_weakly(self, virial, kinetic, volume)
    class(barostat_t), intent(inout) :: self
    real(real64), intent(in) :: virial(3), kinetic(3), volume
    real(real64) :: excess(3)
    integer :: p
    excess = (2.0_real64*kinetic + virial)/volume - self%pressure
    do p = 1, self%n_pistons()
      where (self%piston == p) self%rate = self%compressibility/(3.0_real64*self%tau)* &
        sum(excess, mask=self%piston == p)/count(self%piston == p)
    end do
  end subroutine couple_weakly

  !> Factors of the velocities of the groups along each axis over a time (ps), with which the pistons damp them.
  pure function damping(self, time) result(factor)
    class(barostat_t), intent(in) :: self
    real(real64), intent(in) :: time
    real(real64) :: factor(3)
    factor = exp(-time*(self%rate + sum(self%rate)/self%n_freedom))
  end function damping

  !> Let the pistons' own bath act for a time (ps); `part` tells apart two uses within one step.
  subroutine thermalise(self, step, part, time)
    class(barostat_t), intent(inout) :: self
    integer(int64), intent(in) :: step
    integer, intent(in) :: part
    real(real64), intent(in) :: time
    type(random_stream_t) :: random
    real(real64) :: before, kt, kept, factor, n
    integer :: p
    before = self%kinetic_energy()
    kt = boltzmann*self%bath%temperature
    n = self%n_pistons()
    call random%start(self%bath%seed, for_barostat, step, part)
    select case (self%bath%kind)
    case (bussi_thermostat)
      if (.not. before > 0.0_real64) return
      factor = sqrt(rescaled_kinetic_energy(random, before, 0.5_real64*n*kt, n, time/self%bath%tau)/before)
      self%rate = factor*self%rate
    case (berendsen_thermostat)
      if (.not. before > 0.0_real64) return
      self%rate = self%rate*sqrt(1.0_real64 + (1.0_real64 - exp(-time/self%bath%tau))*(0.5_real64*n*kt/before - &
                                                                                       1.0_real64))
    case (langevin_thermostat)
      kept = exp(-self%friction*time)
      do p = 1, self%n_pistons()
        factor = sqrt((1.0_real64 - kept**2)*kt/self%mass(p))*random%normal()
        where (self%piston == p) self%rate = kept*self%rate + factor
      end do
    case (nose_hoover_thermostat)
      self%rate = self%rate*self%bath%chain_factor(2.0_real64*before, n, time)
      return
    end select
    self%bath%heat = self%bath%heat + self%kinetic_energy() - before
  end subroutine thermalise

  !> Kinetic energy of the pistons, kcal/mol.
  pure real(real64) function kinetic_energy(self) result(energy)
    class(barostat_t), intent(in) :: self
    integer :: p
    energy = 0.0_real64
    do p = 1, self%n_pistons()
      energy = energy + 0.5_real64*self%mass(p)*maxval(abs(self%rate), mask=self%piston == p)**2
    end do
  end function kinetic_energy

  !> What is added to the energy of the system and its bath to make a conserved quantity (kcal/mol). Weak coupling has
  !> none; there it is the work against the wanted pressure.
  real(real64) function conserved_part(self, volume) result(energy)
    class(barostat_t), intent(in) :: self
    real(real64), intent(in) :: volume
    energy = 0.0_real64
    if (self%kind == no_barostat) return
    if (self%kind == monte_carlo_barostat) then
      energy = -self%bath%heat
    else
      energy = self%pressure*volume
    end if
    if (self%kind == mtk_barostat) energy = energy + self%kinetic_energy() + self%bath%conserved_part()
  end function conserved_part

  !> Factors of the box edges of a Monte Carlo move: the logarithm of the volume changes by a uniform number, by one
  !> piston chosen at random.
  subroutine trial_move(self, step, factor)
    class(barostat_t), intent(in) :: self
    integer(int64), intent(in) :: step
    real(real64), intent(out) :: factor(3)
    type(random_stream_t) :: random
    real(real64) :: change
    integer :: p
    call random%start(self%bath%seed, for_barostat, step, 0)
    p = min(1 + int(self%n_pistons()*random%uniform()), self%n_pistons())
    change = self%largest_move*(2.0_real64*random%uniform() - 1.0_real64)
    factor = 1.0_real64
    where (self%piston == p) factor = exp(change/count(self%piston == p))
  end subroutine trial_move

  !> Whether a move that changes the potential energy (kcal/mol) and the volume so is accepted. Adapts the largest move.
  logical function accepts(self, step, energy_change, old_volume, new_volume)
    class(barostat_t), intent(inout) :: self
    integer(int64), intent(in) :: step
    real(real64), intent(in) :: energy_change, old_volume, new_volume
    type(random_stream_t) :: random
    real(real64) :: kt, exponent
    kt = boltzmann*self%bath%temperature
    ! The logarithm of the volume is what moves uniformly: one more volume than in the partition function.
    exponent = -(energy_change + self%pressure*(new_volume - old_volume))/kt + &
               (self%n_groups + 1.0_real64)*log(new_volume/old_volume)
    call random%start(self%bath%seed, for_barostat, step, 1)
    accepts = log(random%uniform()) < exponent
    self%n_tried = self%n_tried + 1
    if (accepts) self%n_accepted = self%n_accepted + 1
    if (accepts) self%bath%heat = self%bath%heat + energy_change
    if (self%n_tried < trials_between_changes) return
    if (self%n_accepted < acceptance(1)*self%n_tried) self%largest_move = self%largest_move/1.1_real64
    if (self%n_accepted > acceptance(2)*self%n_tried) self%largest_move = min(0.1_real64, 1.1_real64*self%largest_move)
    self%n_tried = 0
    self%n_accepted = 0
  end function accepts

end module barostat
