!> The parts of the potential energy, and how they are named in the log.
module energies
  use precision, only: real64
  implicit none
  private
  public :: energies_t, n_energies, energy_name, is_vdw, is_elec, is_reciprocal, is_dispersion

  !> Parts 1 to 7 are those of `bonded`.
  integer, parameter :: is_vdw = 8, is_elec = 9, is_reciprocal = 10, is_dispersion = 11, n_energies = 11
  character(len=16), parameter :: energy_name(n_energies) = [character(len=16) :: "BOND", "ANGLE", "UREY-BRADLEY", &
                                  "DIHEDRAL", "IMPROPER", "PAIR14_VDW", "PAIR14_ELECT", "VDWAALS", "ELECT", &
                                  "RECIPROCAL", "DISPERSION"]

  !> Sums over all ranks, kcal/mol.
  type :: energies_t
    real(real64) :: part(n_energies) = 0.0_real64
    !> Sum of r f over all forces but those of constraints.
    real(real64) :: virial(3, 3) = 0.0_real64
    !> Sum of (r - R) f within constraint groups, R being the reference atom; the rest of the virial acts between
    !> groups.
    real(real64) :: group_virial = 0.0_real64
    real(real64) :: kinetic = 0.0_real64
    !> Kinetic energy of the centres of mass of the groups.
    real(real64) :: group_kinetic = 0.0_real64
    !> Sum of squared force components.
    real(real64) :: force2 = 0.0_real64
  contains
    procedure :: potential
  end type energies_t

contains

  pure real(real64) function potential(self)
    class(energies_t), intent(in) :: self
    potential = sum(self%part)
  end function potential

end module energies
