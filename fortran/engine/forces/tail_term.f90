!> The van der Waals tail that cutoff and switching leave out, for a uniform density of atoms.
module tail_term
  use base_kinds, only: real64
  use base_constants, only: pi
  use base_error, only: error_t
  use background, only: background_t
  use energies, only: energies_t, is_dispersion
  use force_term, only: after_return, force_term_t, interactions_t
  use pair_forms, only: quintic_switch
  use settings, only: settings_t, tail_in_energy_and_pressure
  use system_state, only: system_state_t
  implicit none
  private
  public :: tail_term_t

  type, extends(force_term_t) :: tail_term_t
    !> Energy and a third of the trace of the virial, times volume (kcal/mol angstrom^3).
    real(real64), private :: energy_volume = 0.0_real64, virial_volume = 0.0_real64
    logical, private :: in_virial = .false.
  contains
    procedure :: prepare
    procedure :: take_parameters
    procedure :: compute
  end type tail_term_t

contains

  subroutine take_parameters(self, settings, state, shared)
    class(tail_term_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    type(error_t), allocatable :: error
    call self%prepare(settings, state, shared, error)
  end subroutine take_parameters

  !> 2 pi times the sum over atom pairs of the integral of (1 - S(r)) (c12/r^12 - c6/r^6) r^2, S being the switch. The
  !> virial is that of the missing forces, -2 pi/3 times the integral of their energy's slope times r^3: by parts the same
  !> integral, and at an unswitched cutoff r_c, where the energy jumps, 2 pi/3 r_c^3 (c12/r_c^12 - c6/r_c^6) besides.
  subroutine prepare(self, settings, state, shared, error)
    class(tail_term_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    type(error_t), allocatable, intent(out) :: error
    integer, parameter :: n_intervals = 2000
    real(real64) :: c6, c12, on, off, r, u, weight, missing, integral6, integral12
    integer :: i
    associate (unused => shared, unused2 => error); end associate
    self%stage = after_return
    call state%topology%total_c6_and_c12(c6, c12)
    on = settings%energy%switch_distance
    off = settings%energy%cutoff
    integral6 = off**(-3)/3.0_real64
    integral12 = off**(-9)/9.0_real64
    if (on < off) then
      do i = 0, n_intervals
        r = on + (off - on)*i/n_intervals
        u = (r**2 - on**2)/(off**2 - on**2)
        missing = u**2*(3.0_real64 - 2.0_real64*u)
        if (settings%energy%quintic_switch) missing = 1.0_real64 - quintic_switch((r - on)/(off - on))
        ! Simpson's rule.
        weight = (off - on)/n_intervals/3.0_real64*merge(1.0_real64, merge(4.0_real64, 2.0_real64, mod(i, 2) == 1), &
                                                           i == 0 .or. i == n_intervals)
        integral6 = integral6 + weight*missing*r**(-4)
        integral12 = integral12 + weight*missing*r**(-10)
      end do
    end if
    self%energy_volume = 2.0_real64*pi*(c12*integral12 - c6*integral6)
    self%virial_volume = self%energy_volume
    if (on >= off) self%virial_volume = self%energy_volume + 2.0_real64*pi/3.0_real64*(c12*off**(-9) - c6*off**(-3))
    self%in_virial = settings%energy%tail == tail_in_energy_and_pressure
  end subroutine prepare

  !> It has no forces, and its energy is one rank's.
  subroutine compute(self, state, shared, part, want_energy, sums, beside)
    class(tail_term_t), intent(inout) :: self
    type(system_state_t), target, intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    integer, intent(in) :: part
    logical, intent(in) :: want_energy
    type(energies_t), intent(inout) :: sums
    class(background_t), intent(inout), optional :: beside
    real(real64) :: tail, virial
    integer :: axis
    associate (unused => shared, unused2 => part, unused3 => want_energy, unused4 => present(beside)); end associate
    if (.not. state%comm%is_root()) return
    tail = self%energy_volume/product(state%grid%box)
    tail = (tail + state%rounding%energy) - state%rounding%energy
    sums%part(is_dispersion) = sums%part(is_dispersion) + tail
    if (.not. self%in_virial) return
    virial = self%virial_volume/product(state%grid%box)
    virial = (virial + state%rounding%energy) - state%rounding%energy
    do axis = 1, 3
      sums%virial(axis, axis) = sums%virial(axis, axis) + virial
    end do
  end subroutine compute

end module tail_term
