!> Charges in water and salt that are not there as atoms: the Debye-Hueckel law k q q exp(-r/L)/(eps r) of two charges, with
!> L the Debye length and the relative permittivity eps constant or, as effective between atoms of one molecule (Weiner et
!> al., J. Am. Chem. Soc. 106, 765 (1984)), c r with r in angstrom.
module implicit_solvent
  use base_kinds, only: real64
  use base_constants, only: boltzmann, pi
  use settings, only: energy_settings_t, settings_t
  implicit none
  private
  public :: implicit_solvent_t, implicit_solvent_of

  type :: implicit_solvent_t
    logical :: is_on = .false.
    !> Permittivity, or with `order` 2 that in a distance of 1 angstrom. The energy falls as r**(-order) without salt.
    real(real64) :: permittivity = 1.0_real64
    integer :: order = 1
    !> Inverse of the Debye length, 1/angstrom; 0 = no salt.
    real(real64) :: screening = 0.0_real64
  contains
    procedure :: evaluate
  end type implicit_solvent_t

contains

  !> What the settings ask for, if they do; `coulomb_constant` in kcal angstrom/mol/e^2.
  pure type(implicit_solvent_t) function implicit_solvent_of(settings, coulomb_constant) result(solvent)
    type(settings_t), intent(in) :: settings
    real(real64), intent(in) :: coulomb_constant
    associate (energy => settings%energy)
      solvent%is_on = energy%screened_charges
      if (.not. solvent%is_on) return
      solvent%permittivity = energy%dielectric
      solvent%order = merge(2, 1, energy%dielectric_grows)
      solvent%screening = 1.0_real64/length_of(energy, settings%ensemble%highest_temperature(), coulomb_constant)
    end associate
  end function implicit_solvent_of

  !> The Debye length (angstrom) that is given, or else that of water with salt at this temperature (K).
  pure real(real64) function length_of(energy, temperature, coulomb_constant)
    type(energy_settings_t), intent(in) :: energy
    real(real64), intent(in) :: temperature, coulomb_constant
    if (allocated(energy%debye_length)) then
      length_of = energy%debye_length
    else
      length_of = debye_length(energy%ionic_strength, temperature, coulomb_constant)
    end if
  end function length_of

  !> Length (angstrom) over which salt of so many mol/l screens charges in water; huge without salt.
  pure real(real64) function debye_length(ionic_strength, temperature, coulomb_constant)
    real(real64), intent(in) :: ionic_strength, temperature, coulomb_constant
    !> Ions of each sign in a cubic angstrom at 1 mol/l.
    real(real64), parameter :: density = 6.02214076e-4_real64
    debye_length = huge(debye_length)
    if (ionic_strength > 0.0_real64) &
      debye_length = sqrt(water_permittivity(temperature)*boltzmann*temperature/ &
                          (8.0_real64*pi*coulomb_constant*density*ionic_strength))
  end function debye_length

  !> Relative permittivity of water (Malmberg and Maryott, J. Res. Natl. Bur. Stand. 56, 1 (1956)); beyond 0 to 100 degrees
  !> Celsius that of the nearer of these.
  pure real(real64) function water_permittivity(temperature)
    real(real64), intent(in) :: temperature
    real(real64) :: celsius
    celsius = max(0.0_real64, min(100.0_real64, temperature - 273.15_real64))
    water_permittivity = 87.740_real64 - celsius*(0.40008_real64 - celsius*(9.398e-4_real64 - celsius*1.410e-6_real64))
  end function water_permittivity

  !> Energy (1/angstrom) and repulsion (1/angstrom^2), over the Coulomb constant, of two charges of 1 e at a distance
  !> (angstrom).
  elemental subroutine evaluate(self, r, energy, force)
    class(implicit_solvent_t), intent(in) :: self
    real(real64), intent(in) :: r
    real(real64), intent(out) :: energy, force
    energy = exp(-self%screening*r)/(self%permittivity*r**self%order)
    force = energy*(self%screening + self%order/r)
  end subroutine evaluate

end module implicit_solvent
