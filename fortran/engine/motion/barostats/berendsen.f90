!> Weak coupling to a pressure (Berendsen et al., J. Chem. Phys. 81, 3684 (1984)).
module berendsen_barostat
  use base_kinds, only: int64, real64
  use atoms, only: atoms_t
  use barostat, only: barostat_t
  use comm_communicator, only: communicator_t
  use ensemble_state, only: ensemble_state_t
  use kinetics, only: group_kinetic_energy
  implicit none
  private
  public :: berendsen_barostat_t

  type, extends(barostat_t) :: berendsen_barostat_t
  contains
    procedure :: act_after
    procedure :: scaling
    procedure :: conserved_part
    procedure :: take_from
    procedure :: put_into
  end type berendsen_barostat_t

contains

  !> Rates of strain that take the pressure to the wanted one within the relaxation time.
  subroutine act_after(self, comm, atoms, volume, step, time)
    class(berendsen_barostat_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(inout) :: atoms
    real(real64), intent(in) :: volume, time
    integer(int64), intent(in) :: step
    real(real64) :: excess(3)
    integer :: p
    associate (unused_1 => step, unused_2 => time); end associate
    excess = (2.0_real64*group_kinetic_energy(comm, atoms) + self%virial)/volume - self%pressure
    associate (pistons => self%pistons)
      do p = 1, pistons%number()
        where (pistons%of_axis == p) pistons%rate = self%compressibility/(3.0_real64*self%tau)* &
          sum(excess, mask=pistons%of_axis == p)/count(pistons%of_axis == p)
      end do
    end associate
  end subroutine act_after

  pure function scaling(self, time) result(factor)
    class(berendsen_barostat_t), intent(in) :: self
    real(real64), intent(in) :: time
    real(real64) :: factor(3)
    factor = exp(time*self%pistons%rate)
  end function scaling

  !> Nothing is conserved; this is the work against the wanted pressure.
  real(real64) function conserved_part(self, volume) result(energy)
    class(berendsen_barostat_t), intent(in) :: self
    real(real64), intent(in) :: volume
    energy = self%pressure*volume
  end function conserved_part

  subroutine take_from(self, state)
    class(berendsen_barostat_t), intent(inout) :: self
    type(ensemble_state_t), intent(in) :: state
    call self%pistons%take_rates(state%strain_rate)
  end subroutine take_from

  subroutine put_into(self, state)
    class(berendsen_barostat_t), intent(in) :: self
    type(ensemble_state_t), intent(inout) :: state
    state%strain_rate = self%pistons%rate
  end subroutine put_into

end module berendsen_barostat
