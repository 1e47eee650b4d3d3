!> What the health of a system is judged by beside its energies: temperatures of solute and solvent apart, density, and
!> the largest force with its atom. Sums are rounded as the atoms say (module base_fixed_point).
module vital_signs
  use base_kinds, only: int64, real64
  use base_constants, only: acceleration_unit, boltzmann
  use system_state, only: system_state_t
  use topology, only: topology_t
  implicit none
  private
  public :: vital_signs_t, vital_meter_t, of_solute, of_solvent

  integer, parameter :: of_solute = 1, of_solvent = 2
  !> Groups whose sums are formed one after another, so that sums do not depend on the number of threads.
  integer, parameter :: groups_per_block = 2048
  !> g/cm^3 in one atomic mass unit/angstrom^3.
  real(real64), parameter :: density_unit = 10.0_real64/6.02214076_real64

  type :: vital_signs_t
    !> Of solute and solvent, K; 0 where there is none or nothing moves.
    real(real64) :: temperature(2) = 0.0_real64
    !> g/cm^3; 0 without a periodic box.
    real(real64) :: density = 0.0_real64
    !> Largest force on an atom, without those of constraints: kcal/mol/angstrom, 1e150 or more if it is no number.
    real(real64) :: largest_force = 0.0_real64
    !> Global id (from 0) of that atom, the lowest of equals, and its local index on the rank that owns it, else 0.
    integer(int64) :: atom = -1
    integer :: local_atom = 0
  end type vital_signs_t

  !> What stays the same while a system is measured.
  type :: vital_meter_t
    !> Templates that are solvent: rigid waters and lone atoms.
    logical, allocatable, private :: is_solvent(:)
    !> Degrees of freedom of the velocities of solute and solvent.
    real(real64) :: n_freedom(2) = 0.0_real64
    !> Atomic mass units.
    real(real64), private :: mass = 0.0_real64
  contains
    procedure :: init
    procedure :: measure
  end type vital_meter_t

contains

  !> `rigid`: constraints act. `n_freedom`: of the whole system; what it lacks because motions are stopped is missing in
  !> solute and solvent by the share of each. `n_fixed`: what solute and solvent lack because atoms do not move.
  subroutine init(self, topology, rigid, n_freedom, n_fixed)
    class(vital_meter_t), intent(inout) :: self
    type(topology_t), intent(in) :: topology
    logical, intent(in) :: rigid
    real(real64), intent(in) :: n_freedom, n_fixed(2)
    integer :: t, which
    allocate (self%is_solvent(size(topology%templates)))
    do t = 1, size(topology%templates)
      associate (template => topology%templates(t))
        self%is_solvent(t) = template%is_solvent()
        which = merge(of_solvent, of_solute, self%is_solvent(t))
        self%n_freedom(which) = self%n_freedom(which) + 3.0_real64*sum(template%copies, mask=template%mass > 0.0_real64)
        if (rigid) self%n_freedom(which) = self%n_freedom(which) - sum(template%copies(template%constraint_atom(1, :)))
        self%mass = self%mass + sum(template%copies*template%mass)
      end associate
    end do
    self%n_freedom = self%n_freedom - n_fixed
    if (sum(self%n_freedom) > 0.0_real64) self%n_freedom = self%n_freedom*(max(0.0_real64, n_freedom)/sum(self%n_freedom))
  end subroutine init

  !> The present state of all ranks, in one pass over the atoms; every rank gets the same but for `local_atom`.
  function measure(self, state) result(signs)
    class(vital_meter_t), intent(in) :: self
    type(system_state_t), intent(in) :: state
    type(vital_signs_t) :: signs
    real(real64) :: kinetic(2), largest2, lowest
    real(real64) :: block_kinetic(2, (state%atoms%n_groups + groups_per_block - 1)/groups_per_block)
    real(real64) :: block_largest2((state%atoms%n_groups + groups_per_block - 1)/groups_per_block)
    integer :: block_atom((state%atoms%n_groups + groups_per_block - 1)/groups_per_block)
    integer :: block, mine
    !$omp parallel do schedule(static)
    do block = 1, size(block_atom)
      call measure_block(self, state, block, block_kinetic(:, block), block_largest2(block), block_atom(block))
    end do
    !$omp end parallel do
    kinetic = sum(block_kinetic, dim=2)
    call state%comm%sum(kinetic)
    where (self%n_freedom > 0.0_real64) signs%temperature = 2.0_real64*kinetic/(self%n_freedom*boltzmann)
    if (.not. state%is_open) signs%density = density_unit*self%mass/product(state%grid%box)
    mine = 0
    do block = 1, size(block_atom)
      if (mine > 0) then
        if (.not. is_before(state, block_largest2(block), block_atom(block), largest2, mine)) cycle
      end if
      largest2 = block_largest2(block)
      mine = block_atom(block)
    end do
    if (mine == 0) largest2 = -1.0_real64
    signs%largest_force = state%comm%maximum(largest2)
    lowest = -huge(lowest)
    if (mine > 0 .and. largest2 >= signs%largest_force) lowest = -real(state%atoms%id(mine), real64)
    signs%atom = nint(-state%comm%maximum(lowest), int64)
    if (mine > 0) then
      if (state%atoms%id(mine) == signs%atom) signs%local_atom = mine
    end if
    signs%largest_force = sqrt(signs%largest_force)
  end function measure

  !> Kinetic energies (kcal/mol) of solute and solvent, and square of the largest force and its atom, of one block of
  !> groups.
  subroutine measure_block(self, state, block, kinetic, largest2, atom)
    type(vital_meter_t), intent(in) :: self
    type(system_state_t), intent(in) :: state
    integer, intent(in) :: block
    real(real64), intent(out) :: kinetic(2), largest2
    integer, intent(out) :: atom
    real(real64) :: force(3), force2, energy
    integer :: g, i, which
    kinetic = 0.0_real64
    largest2 = -1.0_real64
    atom = 0
    associate (atoms => state%atoms, coarse => state%rounding%energy)
      do g = (block - 1)*groups_per_block + 1, min(atoms%n_groups, block*groups_per_block)
        which = merge(of_solvent, of_solute, self%is_solvent(atoms%template(atoms%kind(atoms%group_first(g)))))
        do i = atoms%group_first(g), atoms%group_first(g + 1) - 1
          if (.not. state%is_at_rest) then
            energy = sum(atoms%velocity(:, i)**2)
            if (atoms%half_kick_is_known) energy = energy + atoms%kick_share*sum(atoms%half_kick(:, i)**2)
            energy = 0.5_real64*atoms%mass(atoms%kind(i))*energy/acceleration_unit
            kinetic(which) = kinetic(which) + ((energy + coarse) - coarse)
          end if
          force = atoms%force(:, i)
          if (state%split_forces) force = force + state%slow_force(:, i)
          force2 = sum(force**2)
          if (.not. force2 < huge(force2)) force2 = huge(force2)
          if (atom > 0) then
            if (.not. is_before(state, force2, i, largest2, atom)) cycle
          end if
          largest2 = force2
          atom = i
        end do
      end do
    end associate
  end subroutine measure_block

  !> Whether atom i with the square of its force comes before atom j: the larger force, of equals the lower id.
  pure logical function is_before(state, force2_i, i, force2_j, j)
    type(system_state_t), intent(in) :: state
    real(real64), intent(in) :: force2_i, force2_j
    integer, intent(in) :: i, j
    is_before = force2_i > force2_j
    if (.not. force2_i < force2_j .and. .not. is_before) is_before = state%atoms%id(i) < state%atoms%id(j)
  end function is_before

end module vital_signs
