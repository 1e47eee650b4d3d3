!> The parts of the potential energy, and how they are named in the log.
module energies
  use base_kinds, only: real64
  implicit none
  private
  public :: energies_t, n_energies, energy_name, is_vdw, is_elec, is_reciprocal, is_dispersion, is_restraint, &
            is_bases, is_boost, shown_parts

  !> Parts 1 to 8 are those of `bonded`.
  integer, parameter :: is_vdw = 9, is_elec = 10, is_reciprocal = 11, is_dispersion = 12, is_restraint = 13
  !> Of bases of DNA that are beads; what Gaussian boosts add, of the potential and of torsions. Last, since only runs that have
  !> them show them.
  integer, parameter :: is_bases(3) = [14, 15, 16], is_boost(2) = [17, 18], n_energies = 18
  character(len=16), parameter :: energy_name(n_energies) = [character(len=16) :: "BOND", "ANGLE", "UREY-BRADLEY", &
                                  "DIHEDRAL", "IMPROPER", "CMAP", "PAIR14_VDW", "PAIR14_ELECT", "VDWAALS", &
                                  "ELECT", "RECIPROCAL", "DISPERSION", "RESTRAINT_TOTAL", &
                                  "STACKING", "BASE_PAIR", "CROSS_STACKING", &
                                  "POTENTIAL_GAMD", "DIHEDRAL_GAMD"]

  !> Of one rank, or sums over all (module energy_sums); kcal/mol.
  type :: energies_t
    real(real64) :: part(n_energies) = 0.0_real64
    !> Sum of r f over all forces but those of constraints.
    real(real64) :: virial(3, 3) = 0.0_real64
    !> Sum of (r - R) f along x, y and z within constraint groups, R being the centre of mass; the rest of the virial
    !> acts between groups.
    real(real64) :: inner_virial(3) = 0.0_real64
    real(real64) :: kinetic = 0.0_real64
    !> Kinetic energy of the centres of mass of the groups along x, y and z.
    real(real64) :: group_kinetic(3) = 0.0_real64
    !> Kinetic energy of half a kick, of atoms and of the centres of mass of the groups along x, y and z, and the share of
    !> it that temperature and pressure take: see module half_kick.
    real(real64) :: half_kick = 0.0_real64, group_half_kick(3) = 0.0_real64, kick_share = 0.0_real64
    !> Work (kcal/mol) that half a step's change of the constants of restraints does on the atoms where they are; of this
    !> rank alone.
    real(real64) :: release_work = 0.0_real64
    !> Sum of squared force components, (kcal/mol/angstrom)^2.
    real(real64) :: force2 = 0.0_real64
    !> What thermostat and barostat add to the total energy to make a conserved quantity.
    real(real64) :: bath = 0.0_real64
    !> Edges, angstrom.
    real(real64) :: box(3) = 1.0_real64
  contains
    procedure :: potential
    procedure :: group_virial
    procedure :: thermal_kinetic
    procedure :: pressure
  end type energies_t

contains

  !> The parts that a run with or without boosts and bases shows, in their order.
  pure function shown_parts(boosts, bases) result(parts)
    logical, intent(in) :: boosts, bases
    integer, allocatable :: parts(:)
    integer :: k
    parts = [(k, k=1, is_bases(1) - 1)]
    if (bases) parts = [parts, is_bases]
    if (boosts) parts = [parts, is_boost]
  end function shown_parts

  pure real(real64) function potential(self)
    class(energies_t), intent(in) :: self
    potential = sum(self%part)
  end function potential

  !> Virial between constraint groups along x, y and z, kcal/mol.
  pure function group_virial(self)
    class(energies_t), intent(in) :: self
    real(real64) :: group_virial(3)
    group_virial = [self%virial(1, 1), self%virial(2, 2), self%virial(3, 3)] - self%inner_virial
  end function group_virial

  !> The kinetic energy that the temperature is taken from, kcal/mol.
  pure real(real64) function thermal_kinetic(self)
    class(energies_t), intent(in) :: self
    thermal_kinetic = self%kinetic + self%kick_share*self%half_kick
  end function thermal_kinetic

  !> Pressure of the groups along x, y and z, in which constraint forces cancel; kcal/mol/angstrom^3.
  pure function pressure(self)
    class(energies_t), intent(in) :: self
    real(real64) :: pressure(3)
    pressure = (2.0_real64*(self%group_kinetic + self%kick_share*self%group_half_kick) + self%group_virial())/product(self%box)
  end function pressure

end module energies
