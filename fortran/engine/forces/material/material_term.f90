!> Lennard-Jones or embedded atoms of one kind as a term of the force field.
module material_term
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use base_text, only: to_text
  use background, only: background_t
  use eam_file, only: eam_file_t
  use energies, only: energies_t, is_vdw
  use force_term, only: force_term_t, interactions_t
  use material, only: material_t
  use settings, only: forcefield_lennard_jones, settings_t
  use system_state, only: system_state_t
  use timing, only: in_communication, in_real_space
  implicit none
  private
  public :: material_term_t

  type, extends(force_term_t) :: material_term_t
    type(material_t), private :: material
  contains
    procedure :: prepare
    procedure :: compute
    procedure :: make_list
    procedure :: work
  end type material_term_t

contains

  subroutine prepare(self, settings, state, shared, error)
    class(material_term_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    type(error_t), allocatable, intent(out) :: error
    type(eam_file_t) :: potential
    logical :: simple
    self%material%is_on = .true.
    simple = size(state%topology%templates) == 1
    if (simple) simple = state%topology%templates(1)%n_atoms == 1
    if (simple) simple = state%topology%templates(1)%charge(1) == 0.0_real64
    if (.not. simple) then
      call settings%refuse("ENERGY", "forcefield", "is for uncharged atoms of one kind, one atom a molecule; "// &
                           settings%input%topology//" has others", error)
      return
    end if
    if (settings%energy%forcefield == forcefield_lennard_jones) then
      associate (lj_type => state%topology%templates(1)%lj_type(1))
        call self%material%use_lennard_jones(state%topology%c6(lj_type, lj_type), state%topology%c12(lj_type, lj_type), &
                                             shared%cutoff, shared%list_distance, settings%energy%shift)
      end associate
      return
    end if
    call potential%read(settings%input%embedded_atoms, settings%energy%element, error)
    if (allocated(error)) return
    if (abs(shared%cutoff - potential%cutoff) > 1.0e-6_real64) then
      call settings%refuse("ENERGY", "cutoffdist", "must be that of "//settings%input%embedded_atoms//", "// &
                           to_text(potential%cutoff)//" angstrom", error)
      return
    end if
    call self%material%use_embedded_atoms(potential%embedding, potential%density, potential%pair, shared%cutoff, &
                                          shared%list_distance)
  end subroutine prepare

  subroutine make_list(self, state, shared)
    class(material_term_t), intent(inout) :: self
    type(system_state_t), intent(in) :: state
    type(interactions_t), intent(inout) :: shared
    associate (unused => shared); end associate
    call self%material%rebuild(state%atoms%n_owned, state%atoms%n_total, state%atoms%position)
  end subroutine make_list

  integer(int64) function work(self, n_owned)
    class(material_term_t), intent(in) :: self
    integer, intent(in) :: n_owned
    associate (unused => n_owned); end associate
    work = self%material%n_pairs()
  end function work

  subroutine compute(self, state, shared, part, want_energy, sums, beside)
    class(material_term_t), intent(inout) :: self
    type(system_state_t), target, intent(inout) :: state
    type(interactions_t), intent(in) :: shared
    integer, intent(in) :: part
    logical, intent(in) :: want_energy
    type(energies_t), intent(inout) :: sums
    class(background_t), intent(inout), optional :: beside
    real(real64), allocatable :: value(:, :)
    real(real64) :: energy, embedding, virial(3, 3)
    associate (unused => shared, unused2 => part, unused3 => present(beside)); end associate
    associate (atoms => state%atoms, material => self%material)
      call material%place(atoms%position)
      if (material%is_embedded) then
        ! Densities to the owners, slopes of the embedding energy to the ghosts.
        allocate (value(3, atoms%n_total))
        call material%add_densities(value)
        call state%timer%lap(in_real_space)
        call state%halo%return_forces(atoms%n_owned, value)
        call state%timer%lap(in_communication)
        call material%embed(value, embedding)
        call state%timer%lap(in_real_space)
        call state%halo%update_positions(atoms%n_owned, value, shifted=.false.)
        call state%timer%lap(in_communication)
        call material%compute(want_energy, energy, value)
        energy = energy + embedding
      else
        call material%compute(want_energy, energy)
      end if
      call material%add_forces(atoms%position, want_energy, atoms%force, virial)
    end associate
    if (want_energy) sums%part(is_vdw) = energy
    sums%virial = sums%virial + virial
    call state%timer%lap(in_real_space)
  end subroutine compute

end module material_term
