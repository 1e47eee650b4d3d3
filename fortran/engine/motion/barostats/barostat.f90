!> What all barostats share. What is scaled are the centres of mass of constraint groups, so that rigid bonds stay rigid,
!> and the pressure is that of groups. Axes move together or alone (a piston each) or not at all. A new barostat extends
!> `barostat_t` in a file of its own and takes a line in module barostats.
module barostat
  use base_kinds, only: int64, real64
  use atoms, only: atoms_t
  use comm_communicator, only: communicator_t
  use ensemble_state, only: ensemble_state_t
  use pistons, only: pistons_t
  implicit none
  private
  public :: barostat_t, barostat_settings_t

  type :: barostat_settings_t
    !> Wanted pressure (kcal/mol/angstrom^3), relaxation time (ps), compressibility (angstrom^3 mol/kcal).
    real(real64) :: pressure = 0.0_real64, tau = 1.0_real64, compressibility = 0.0_real64
    !> K.
    real(real64) :: temperature = 0.0_real64
    integer(int64) :: seed = 0
    !> Degrees of freedom of the groups' centres of mass, and the number of groups.
    real(real64) :: n_freedom = 1.0_real64, n_groups = 1.0_real64
    type(pistons_t) :: pistons
  end type barostat_settings_t

  type, abstract, extends(barostat_settings_t) :: barostat_t
    !> Virial of the groups along x, y and z at the last step at which the barostat acted (kcal/mol).
    real(real64) :: virial(3) = 0.0_real64
  contains
    procedure :: changes_box
    procedure :: set_temperature
    procedure :: act_before
    procedure :: act_after
    procedure :: scaling
    procedure(conserved_part), deferred :: conserved_part
    procedure :: take_from
    procedure :: put_into
  end type barostat_t

  abstract interface
    !> What is added to the energy of the system and its thermostat to make a conserved quantity (kcal/mol). `volume`:
    !> angstrom^3.
    real(real64) function conserved_part(self, volume)
      import :: barostat_t, real64
      class(barostat_t), intent(in) :: self
      real(real64), intent(in) :: volume
    end function conserved_part
  end interface

contains

  !> Whether the box ever changes.
  pure logical function changes_box(self)
    class(barostat_t), intent(in) :: self
    associate (unused => self); end associate
    changes_box = .true.
  end function changes_box

  !> Of the bath (K).
  subroutine set_temperature(self, temperature)
    class(barostat_t), intent(inout) :: self
    real(real64), intent(in) :: temperature
    self%temperature = temperature
  end subroutine set_temperature

  !> Act before the steps of a period: pistons, and velocities of atoms by them, for half the period, `time` (ps).
  !> `volume`: angstrom^3.
  subroutine act_before(self, comm, atoms, volume, step, time)
    class(barostat_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(inout) :: atoms
    real(real64), intent(in) :: volume, time
    integer(int64), intent(in) :: step
    associate (unused_1 => self, unused_2 => comm, unused_3 => atoms, unused_4 => volume, unused_5 => step, unused_6 => time)
    end associate
  end subroutine act_before

  !> Act after the steps of a period, with `virial` that of the present positions; arguments as of `act_before`.
  subroutine act_after(self, comm, atoms, volume, step, time)
    class(barostat_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(inout) :: atoms
    real(real64), intent(in) :: volume, time
    integer(int64), intent(in) :: step
    associate (unused_1 => self, unused_2 => comm, unused_3 => atoms, unused_4 => volume, unused_5 => step, unused_6 => time)
    end associate
  end subroutine act_after

  !> Factors of the box edges over a time (ps).
  pure function scaling(self, time) result(factor)
    class(barostat_t), intent(in) :: self
    real(real64), intent(in) :: time
    real(real64) :: factor(3)
    associate (unused_1 => self, unused_2 => time); end associate
    factor = 1.0_real64
  end function scaling

  !> Go on from the state of an earlier run.
  subroutine take_from(self, state)
    class(barostat_t), intent(inout) :: self
    type(ensemble_state_t), intent(in) :: state
    associate (unused_1 => self, unused_2 => state); end associate
  end subroutine take_from

  !> Put into `state` what this barostat carries to the next run; the rest is another's and stays.
  subroutine put_into(self, state)
    class(barostat_t), intent(in) :: self
    type(ensemble_state_t), intent(inout) :: state
    associate (unused_1 => self, unused_2 => state); end associate
  end subroutine put_into

end module barostat
