!> Watches a run: dynamics that leaves the bands of [HEALTH], or whose atoms are nowhere, ends with a sentence.
!>
!> The bands are looked at where energies are written and before anything is saved, so that a state outside of them takes
!> the place of no restart file and no checkpoint.
module health_watch
  use base_kinds, only: real64
  use base_constants, only: boltzmann
  use base_error, only: error_t
  use base_text, only: decimal_text
  use energies, only: energies_t
  use instability, only: atom_in_place, explain_instability
  use neighbour_lists, only: check_positions
  use settings, only: bath_none, ensemble_nve, health_settings_t, settings_t
  use simulation, only: simulation_t
  use vital_signs, only: of_solute, vital_meter_t, vital_signs_t
  implicit none
  private
  public :: health_watch_t

  !> The automatic band of the temperature, in multiples of that of the thermostat, and natural logarithm of how rarely
  !> chance may lead beyond that (Laurent and Massart, Ann. Stat. 28, 1302 (2000), lemma 1).
  real(real64), parameter :: hot = 3.0_real64, rarity = 35.0_real64
  !> The drift is that over this time at least, ps.
  real(real64), parameter :: least_time = 1.0_real64
  !> A largest force beyond this (kcal/mol/angstrom) is no number.
  real(real64), parameter :: no_number = 1.0e150_real64

  type :: health_watch_t
    type(vital_meter_t), private :: meter
    type(health_settings_t), private :: limits
    !> Highest temperature of solute and solvent, K; 0 = any.
    real(real64), private :: max_temperature(2) = 0.0_real64
    !> Where this run began, or went on: time (ps), volume (angstrom^3) and conserved energy (kcal/mol), and kT of its
    !> thermostat, kcal/mol.
    real(real64), private :: time = 0.0_real64, volume = 0.0_real64, conserved = 0.0_real64, thermal_energy = 0.0_real64
  contains
    procedure :: init
    procedure :: begin
    procedure :: measure
    procedure :: check
    procedure :: examine
  end type health_watch_t

contains

  !> `rigid`: constraints act.
  subroutine init(self, sim, rigid)
    class(health_watch_t), intent(inout) :: self
    class(simulation_t), intent(in) :: sim
    logical, intent(in) :: rigid
    call self%meter%init(sim%topology, rigid, sim%n_freedom, sim%fixed%n_freedom)
  end subroutine init

  !> Watch the bands of dynamics from the present state on, which has the energies `total` and these signs.
  subroutine begin(self, sim, settings, total, signs)
    class(health_watch_t), intent(inout) :: self
    class(simulation_t), intent(in) :: sim
    type(settings_t), intent(in) :: settings
    type(energies_t), intent(in) :: total
    type(vital_signs_t), intent(in) :: signs
    real(real64) :: highest
    integer :: k
    self%limits = settings%health
    self%time = sim%time
    self%volume = product(sim%grid%box)
    self%conserved = total%potential() + total%kinetic + total%bath
    highest = max(highest_temperature(settings), maxval(signs%temperature))
    self%thermal_energy = boltzmann*highest
    if (allocated(settings%health%max_temperature)) then
      self%max_temperature = settings%health%max_temperature
    else if (settings%ensemble%ensemble /= ensemble_nve .and. settings%ensemble%bath /= bath_none) then
      do k = 1, 2
        associate (n => max(1.0_real64, self%meter%n_freedom(k)))
          self%max_temperature(k) = hot*highest*(1.0_real64 + 2.0_real64*sqrt(rarity/n) + 2.0_real64*rarity/n)
        end associate
      end do
    end if
  end subroutine begin

  !> The highest temperature (K) that the thermostat is to have.
  pure real(real64) function highest_temperature(settings) result(highest)
    type(settings_t), intent(in) :: settings
    highest = settings%ensemble%highest_temperature()
    associate (dynamics => settings%dynamics)
      if (dynamics%annealing_period > 0) highest = max(highest, settings%ensemble%temperature + &
        dynamics%temperature_change*(dynamics%schedule%steps/dynamics%annealing_period))
    end associate
  end function highest_temperature

  !> The vital signs of the present state.
  function measure(self, sim) result(signs)
    class(health_watch_t), intent(in) :: self
    class(simulation_t), intent(in) :: sim
    type(vital_signs_t) :: signs
    signs = self%meter%measure(sim%system_state_t)
  end function measure

  !> End the run where atoms are nowhere, or where these signs, or the energies `total`, are outside of the bands. The error
  !> is that of one rank: all must agree afterwards.
  subroutine check(self, sim, signs, error, total)
    class(health_watch_t), intent(in) :: self
    class(simulation_t), intent(in) :: sim
    type(vital_signs_t), intent(in) :: signs
    type(error_t), allocatable, intent(out) :: error
    type(energies_t), intent(in), optional :: total
    character(len=:), allocatable :: what
    call check_positions(sim%system_state_t, sim%constraints, error)
    ! All know of the bands; the rank that owns the atom with the largest force speaks.
    if (allocated(error) .or. signs%local_atom == 0) return
    what = finding(self, sim, signs, total)
    if (what /= "") call explain_instability(sim%system_state_t, sim%constraints%active, what, signs%local_atom, error)
  end subroutine check

  !> The first band that is left, and the atom with the largest force; empty where all is well.
  function finding(self, sim, signs, total) result(what)
    class(health_watch_t), intent(in) :: self
    class(simulation_t), intent(in) :: sim
    type(vital_signs_t), intent(in) :: signs
    type(energies_t), intent(in), optional :: total
    character(len=:), allocatable :: what, force
    real(real64) :: ratio, drift
    integer :: k
    what = ""
    force = decimal_text(signs%largest_force, 0)//" kcal/mol/angstrom"
    if (signs%largest_force > no_number) force = "no number"
    if (is_above(signs%largest_force, self%limits%max_force)) then
      what = "the force on "//atom_in_place(sim%system_state_t, signs%local_atom)//" is "//force//", above max_force = "// &
             decimal_text(self%limits%max_force, 0)
      return
    end if
    do k = 1, 2
      if (what == "" .and. is_above(signs%temperature(k), self%max_temperature(k))) &
        what = "the "//trim(merge("solute ", "solvent", k == of_solute))//" is at "//decimal_text(signs%temperature(k), 0)// &
               " K, above max_temperature = "//decimal_text(self%max_temperature(k), 0)
    end do
    if (present(total) .and. self%thermal_energy > 0.0_real64 .and. what == "") then
      drift = abs(total%potential() + total%kinetic + total%bath - self%conserved)/ &
              (self%thermal_energy*sim%topology%n_atoms*max(least_time, sim%time - self%time))
      if (is_above(drift, self%limits%max_drift)) &
        what = "the conserved energy drifts by "//decimal_text(drift, 3)//" kT/ps/atom, above max_drift = "// &
               decimal_text(self%limits%max_drift, 3)
    end if
    if (self%limits%max_volume_ratio > 0.0_real64 .and. what == "") then
      ratio = product(sim%grid%box)/self%volume
      if (is_above(max(ratio, 1.0_real64/ratio), self%limits%max_volume_ratio)) &
        what = "the volume is "//decimal_text(ratio, 3)//" times that at the start of the run, beyond max_volume_ratio = "// &
               decimal_text(self%limits%max_volume_ratio, 3)
    end if
    if (what == "") return
    what = what//"; the largest force, "//force//", is on "//atom_in_place(sim%system_state_t, signs%local_atom)
  end function finding

  !> Whether a value is above a limit, or no number; never where the limit is 0.
  elemental logical function is_above(value, limit)
    real(real64), intent(in) :: value, limit
    is_above = limit > 0.0_real64 .and. .not. value <= limit
  end function is_above

  !> Measure and check a state that is about to be saved; all ranks must call it.
  subroutine examine(self, sim, error)
    class(health_watch_t), intent(in) :: self
    class(simulation_t), intent(in) :: sim
    type(error_t), allocatable, intent(out) :: error
    call self%check(sim, self%measure(sim), error)
    call sim%comm%agree(error)
  end subroutine examine

end module health_watch
