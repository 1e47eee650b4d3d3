!> A simulation on one rank: its state, and what acts on it. The operations that all commands share stand here; each is
!> the work of a module of its own.
module simulation
  use base_kinds, only: int64, real64
  use atoms, only: hold
  use barostat, only: barostat_t
  use base_error, only: error_t
  use comm_halo, only: halo_options_t
  use constraints, only: constraints_t
  use energies, only: energies_t
  use ensemble_state, only: chain_state_t, ensemble_state_t
  use energy_sums, only: sum_over_ranks
  use fixed_atoms, only: fixed_atoms_t
  use force_field, only: force_field_t
  use neighbour_lists, only: neighbour_lists_t
  use settings, only: settings_t
  use solute_scaling, only: solute_scaling_t
  use system_state, only: system_state_t
  use thermostat, only: thermostat_t
  implicit none
  private
  public :: simulation_t

  type, extends(system_state_t) :: simulation_t
    type(neighbour_lists_t) :: lists
    type(force_field_t) :: field
    type(constraints_t) :: constraints
    type(solute_scaling_t) :: solute
    type(fixed_atoms_t) :: fixed
    !> Not there before an ensemble is prepared.
    class(thermostat_t), allocatable :: thermostat
    class(barostat_t), allocatable :: barostat
    !> What the restart file says of thermostats and barostats; those at work keep their own state since.
    type(ensemble_state_t) :: kept
    !> Steps of a longer step, with split forces.
    integer(int64) :: long_period = 1
    !> Parts and virial of the last force computation on this rank only.
    type(energies_t) :: mine
    !> Steps between stops of the centre of mass, 0 = never.
    integer(int64) :: stop_period = 0
    !> Its rotation is stopped with it: without a periodic box.
    logical :: stops_rotation = .false.
    !> Degrees of freedom of the atoms' velocities and of those of the groups' centres of mass.
    real(real64) :: n_freedom = 1.0_real64, n_group_freedom = 1.0_real64
    !> Links of a torus that a byte of the halo travels: with ranks in the order of the machine, and now.
    real(real64) :: hops(2) = 0.0_real64
  contains
    procedure :: prepare_forces
    procedure :: take_parameters
    procedure :: rebuild
    procedure :: find_constraints
    procedure :: renew_list
    procedure :: list_is_due
    procedure :: largest_displacement
    procedure :: compute_forces
    procedure :: sum_energies
    procedure :: scale_box
    procedure :: change_box
    procedure :: reset_ensemble
  end type simulation_t

contains

  !> Set up the force field. `rigid`: bonds to hydrogen and waters are constrained.
  subroutine prepare_forces(self, settings, rigid, error)
    class(simulation_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    logical, intent(in) :: rigid
    type(error_t), allocatable, intent(out) :: error
    self%halo%options = halo_options(settings)
    call self%solute%init(settings, self%topology, error)
    call self%comm%agree(error)
    if (allocated(error)) return
    if (self%solute%is_on) call self%atoms%take_parameters(self%topology)
    call self%constraints%init(self%topology, rigid, settings%constraints%settle_waters, settings%constraints%iterations, &
                               settings%constraints%tolerance)
    call self%field%prepare(settings, self%system_state_t, rigid, error)
    if (allocated(error)) return
    call self%lists%prepare_tolerance(settings, self%system_state_t, self%field)
    if (settings%exchange%is_on) call self%take_parameters(settings)
  end subroutine prepare_forces

  !> Follow parameters of the settings that replicas exchange and that decide forces.
  subroutine take_parameters(self, settings)
    class(simulation_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    if (self%solute%is_on) then
      call self%solute%apply(settings%solute%factor, self%topology)
      call self%atoms%take_parameters(self%topology)
    end if
    call self%field%take_parameters(settings, self%system_state_t)
  end subroutine take_parameters

  !> How ghosts travel. Transports are tried out only where many steps follow; they do not change results.
  type(halo_options_t) function halo_options(settings) result(options)
    type(settings_t), intent(in) :: settings
    options%pattern = settings%comm%pattern
    options%transport = settings%comm%transport
    options%combine = settings%comm%combine_messages
    options%whole_shell = settings%comm%midpoint
    options%time_transports = settings%comm%time_transports .and. (settings%runs_dynamics .or. settings%runs_minimisation)
  end function halo_options

  !> Bring atoms to their owners and make halo, lists and terms anew, whether or not they are due.
  subroutine rebuild(self, error)
    class(simulation_t), intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    call self%lists%rebuild(self%system_state_t, self%field, self%constraints, error)
  end subroutine rebuild

  !> Bring atoms to their owners and find their constraints, without lists and terms: `rebuild` comes next.
  subroutine find_constraints(self, error)
    class(simulation_t), intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    call self%lists%find_constraints(self%system_state_t, self%field, self%constraints, error)
  end subroutine find_constraints

  !> Make the pair list anew, and all else if need be: then `moved` is true, and owned atoms have a new order.
  subroutine renew_list(self, error, moved)
    class(simulation_t), intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    logical, intent(out) :: moved
    call self%lists%renew(self%system_state_t, self%field, self%constraints, error, moved)
  end subroutine renew_list

  !> Whether the pair list must be made anew, or would have to be after a strain of the box (logarithm of a
  !> factor) that is still to come.
  logical function list_is_due(self, coming_strain)
    class(simulation_t), intent(in) :: self
    real(real64), intent(in), optional :: coming_strain
    list_is_due = self%lists%is_due(self%system_state_t, self%field, self%constraints, coming_strain)
  end function list_is_due

  !> Largest distance (angstrom) of any atom of all ranks from where it was when the pair list was made.
  real(real64) function largest_displacement(self)
    class(simulation_t), intent(in) :: self
    largest_displacement = self%lists%largest_displacement(self%system_state_t, self%constraints)
  end function largest_displacement

  !> Forces on owned atoms at their present positions, none on those that do not move, and this rank's part of the energies.
  !> With split forces those of reciprocal space are computed unless `slow` is present and false.
  subroutine compute_forces(self, want_energy, slow)
    class(simulation_t), intent(inout) :: self
    logical, intent(in) :: want_energy
    logical, intent(in), optional :: slow
    self%atoms%half_kick_is_known = .false.
    call self%field%compute(self%system_state_t, want_energy, self%mine, slow)
    call self%sites%hand_over(self%atoms%force)
    ! Where slow forces were not computed they are those of an earlier step, which no site has any more.
    if (self%split_forces) call self%sites%hand_over(self%slow_force)
    call hold(self%atoms%fixed, self%atoms%force)
    if (.not. self%split_forces) return
    ! Those of an earlier step may be of other atoms.
    if (present(slow)) then
      if (.not. slow) return
    end if
    call hold(self%atoms%fixed, self%slow_force)
  end subroutine compute_forces

  !> Sum the energies over all ranks, with the kinetic energies of the present velocities.
  function sum_energies(self) result(total)
    class(simulation_t), intent(in) :: self
    type(energies_t) :: total
    total = sum_over_ranks(self%system_state_t, self%mine)
    if (allocated(self%thermostat)) &
      total%bath = self%thermostat%conserved_part() + self%barostat%conserved_part(product(self%grid%box))
  end function sum_energies

  !> Scale the box along x, y and z, and with it the centres of mass of the constraint groups.
  !> `factor`: of each edge.
  subroutine scale_box(self, factor)
    class(simulation_t), intent(inout) :: self
    real(real64), intent(in) :: factor(3)
    real(real64) :: edges(3)
    if (all(factor == 1.0_real64)) return
    edges = self%rounding%on_lattice(factor*self%grid%box)
    call self%scale_positions(factor, edges)
    call self%sites%place(self%atoms%position, self%rounding)
    call self%lists%note_scaling(factor)
    call self%change_box(edges)
  end subroutine scale_box

  !> Give the box other edges (angstrom) and leave the atoms where they are.
  subroutine change_box(self, box)
    class(simulation_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    call self%set_box(box)
    call self%field%set_box(box)
  end subroutine change_box

  !> Thermostat and barostat as if nothing had happened yet.
  subroutine reset_ensemble(self)
    class(simulation_t), intent(inout) :: self
    self%kept%bath = chain_state_t()
    self%kept%piston_bath = chain_state_t()
    self%kept%strain_rate = 0.0_real64
    call self%thermostat%take_from(self%kept%bath)
    call self%barostat%take_from(self%kept)
  end subroutine reset_ensemble

end module simulation
