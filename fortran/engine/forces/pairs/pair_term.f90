!> Van der Waals and Coulomb forces of pairs within the cutoff as a term of the force field.
module pair_term
  use base_kinds, only: int64, real64
  use base_constants, only: acceleration_unit, boltzmann
  use base_error, only: error_t
  use background, only: background_t
  use energies, only: energies_t, is_elec, is_vdw
  use force_term, only: force_term_t, interactions_t, all_atoms, owned_atoms
  use implicit_solvent, only: implicit_solvent_of
  use lennard_jones, only: lennard_jones_of
  use nonbonded, only: meets_ghosts, meets_owned, nonbonded_t
  use nonbonded_options, only: nonbonded_options_t
  use pair_forms, only: vdw_cut, vdw_force_shift, vdw_force_switch, vdw_pme, vdw_quintic_switch, vdw_repulsive, vdw_shift, &
                        vdw_switch
  use pair_precision, only: real_pair
  use settings, only: energy_settings_t, memory_saved, memory_used, settings_t
  use system_state, only: system_state_t
  use timing, only: in_real_space
  use verlet_buffer, only: verlet_buffer_t
  implicit none
  private
  public :: pair_term_t

  !> Work of an atom beside its pairs (reciprocal space, bonds, integration), in pairs of the list.
  integer, parameter :: pairs_per_atom = 150
  !> Drift of the energy, kT/ns/atom, that missed pairs may add when pairs are 32-bit arithmetic.
  real(real64), parameter :: mixed_tolerance = 0.005_real64

  type, extends(force_term_t) :: pair_term_t
    type(nonbonded_t) :: pairs
  contains
    procedure :: prepare
    procedure :: compute
    procedure :: take_parameters
    procedure :: set_reach
    procedure :: forget_list
    procedure :: make_list
    procedure :: work
    procedure :: find_tolerance
  end type pair_term_t

contains

  subroutine prepare(self, settings, state, shared, error)
    class(pair_term_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    type(error_t), allocatable, intent(out) :: error
    type(nonbonded_options_t) :: options
    self%has_parts = .true.
    options = options_of(settings%energy, shared)
    options%rounding = state%rounding
    options%solvent = implicit_solvent_of(settings, state%topology%coulomb_constant)
    call self%pairs%init(lennard_jones_of(state%topology), state%topology%coulomb_constant, options, error)
    if (shared%overlaps) call self%pairs%keep_ghosts_apart()
  end subroutine prepare

  type(nonbonded_options_t) function options_of(energy, shared) result(options)
    type(energy_settings_t), intent(in) :: energy
    type(interactions_t), intent(in) :: shared
    options%cutoff = energy%cutoff
    options%switch_distance = energy%switch_distance
    options%list_distance = shared%list_distance
    options%inner_buffer = shared%inner_buffer
    options%alpha = shared%alpha
    options%table_order = energy%table_order
    options%table_density = energy%table_density
    if (energy%memory == memory_saved) options%many_atoms = 0
    if (energy%memory == memory_used) options%many_atoms = huge(options%many_atoms)
    options%vdw_form = vdw_switch
    if (energy%force_switch) options%vdw_form = vdw_force_switch
    if (energy%quintic_switch) options%vdw_form = vdw_quintic_switch
    if (energy%force_shift) options%vdw_form = vdw_force_shift
    if (energy%shift) options%vdw_form = vdw_shift
    if (energy%repulsive) options%vdw_form = vdw_repulsive
    if (energy%vacuum) then
      options%vdw_form = vdw_cut
    else if (.not. (energy%ewald_charges .or. energy%screened_charges)) then
      options%coulomb_shift = 1.0_real64/options%cutoff
    end if
    if (energy%ewald_dispersion) then
      options%vdw_form = vdw_pme
      options%dispersion_alpha = shared%dispersion_alpha
    end if
  end function options_of

  !> What pair lists may miss under the settings, if they may at all; only dynamics has a drift.
  subroutine find_tolerance(self, settings, state, shared, tolerance, may_miss)
    class(pair_term_t), intent(in) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(in) :: state
    type(interactions_t), intent(in) :: shared
    type(verlet_buffer_t), intent(inout) :: tolerance
    logical, intent(out) :: may_miss
    real(real64), parameter :: ps_per_ns = 1000.0_real64
    real(real64), allocatable :: mass(:), number(:, :), charge(:)
    real(real64) :: drift, temperature
    drift = merge(mixed_tolerance, 0.0_real64, real_pair /= real64 .and. .not. state%rounding%is_on())
    if (allocated(settings%energy%list_tolerance)) drift = settings%energy%list_tolerance
    may_miss = settings%energy%ewald_charges .and. settings%runs_dynamics .and. drift > 0.0_real64
    if (.not. may_miss) return
    temperature = settings%ensemble%highest_temperature()
    associate (topology => state%topology)
      call topology%classes_of_motion(shared%rigid, mass, number, charge)
      call tolerance%prepare(self%pairs%pair_constants(), settings%energy%switch_distance, topology%coulomb_constant, &
                             mass, number, charge, topology%c6, topology%c12, topology%n_atoms/product(state%grid%box), &
                             drift*boltzmann*temperature*settings%dynamics%timestep/ps_per_ns, &
                             sqrt(3.0_real64*boltzmann*temperature*acceleration_unit)*settings%dynamics%timestep)
    end associate
  end subroutine find_tolerance

  subroutine take_parameters(self, settings, state, shared)
    class(pair_term_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    associate (unused => settings, unused2 => shared, atoms => state%atoms)
      call self%pairs%take_parameters(lennard_jones_of(state%topology), atoms%kind, atoms%charge, atoms%lj_type)
    end associate
  end subroutine take_parameters

  subroutine set_reach(self, shared)
    class(pair_term_t), intent(inout) :: self
    type(interactions_t), intent(in) :: shared
    call self%pairs%set_reach(shared%list_distance, shared%inner_buffer)
  end subroutine set_reach

  subroutine forget_list(self)
    class(pair_term_t), intent(inout) :: self
    call self%pairs%forget_list()
  end subroutine forget_list

  !> The pairs keep the exclusions until atoms come to other owners.
  subroutine make_list(self, state, shared)
    class(pair_term_t), intent(inout) :: self
    type(system_state_t), intent(in) :: state
    type(interactions_t), intent(inout) :: shared
    associate (atoms => state%atoms)
      call self%pairs%rebuild(atoms%n_owned, atoms%n_total, atoms%position, atoms%kind, atoms%charge, atoms%lj_type, &
                              atoms%id, shared%exclusion_first, shared%exclusion_partner, shared%ownership)
    end associate
  end subroutine make_list

  integer(int64) function work(self, n_owned)
    class(pair_term_t), intent(in) :: self
    integer, intent(in) :: n_owned
    work = self%pairs%listed_pairs() + int(pairs_per_atom, int64)*n_owned
  end function work

  subroutine compute(self, state, shared, part, want_energy, sums, beside)
    class(pair_term_t), intent(inout) :: self
    type(system_state_t), target, intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    integer, intent(in) :: part
    logical, intent(in) :: want_energy
    type(energies_t), intent(inout) :: sums
    class(background_t), intent(inout), optional :: beside
    real(real64) :: vdw, elec, virial(3, 3)
    associate (unused => shared); end associate
    associate (atoms => state%atoms)
      if (part == all_atoms) then
        call self%pairs%compute(atoms%position, atoms%kind, atoms%charge, atoms%lj_type, atoms%force, vdw, elec, virial, &
                                want_energy, background=beside)
      else
        call self%pairs%compute(atoms%position, atoms%kind, atoms%charge, atoms%lj_type, atoms%force, vdw, elec, virial, &
                                want_energy, merge(meets_owned, meets_ghosts, part == owned_atoms), beside)
      end if
    end associate
    sums%part(is_vdw) = sums%part(is_vdw) + vdw
    sums%part(is_elec) = sums%part(is_elec) + elec
    sums%virial = sums%virial + virial
    call state%timer%lap(in_real_space)
  end subroutine compute

end module pair_term
