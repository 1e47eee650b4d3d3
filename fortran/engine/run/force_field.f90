!> The force field: an ordered list of terms, and how their work goes beside messages.
!>
!> Contributions are added in the order of the list. Where work overlaps with messages, terms that can do a part without
!> ghosts do it first, the last of the list first, since pairs take longest; then come the ghosts, and the rest in order.
module force_field
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use background, only: background_t
  use comm_halo, only: halo_t
  use bonded_term, only: bonded_term_t
  use energies, only: energies_t, is_boost
  use ewald_screening, only: choose_grid, choose_screening
  use force_term, only: after_return, all_atoms, before_return, beside_return, ghost_atoms, interactions_t, owned_atoms
  use force_terms, only: choose_terms, slot_t
  use gaussian_boost, only: gaussian_boost_t
  use pair_term, only: pair_term_t
  use settings, only: settings_t
  use system_state, only: system_state_t
  use timing, only: in_communication, in_real_space, in_reciprocal
  implicit none
  private
  public :: force_field_t

  type :: force_field_t
    type(slot_t), allocatable, private :: slot(:)
    type(interactions_t) :: shared
    type(gaussian_boost_t) :: boost
  contains
    procedure :: prepare
    procedure :: compute
    procedure :: take_atoms
    procedure :: take_parameters
    procedure :: set_reach
    procedure :: forget_lists
    procedure :: make_lists
    procedure :: set_box
    procedure :: follow_borders
    procedure :: work
    procedure :: pairs
  end type force_field_t

  !> What is under way between ranks while forces are computed.
  type, extends(background_t) :: travelling_t
    type(halo_t), pointer :: halo => null()
    type(slot_t), pointer :: slot(:) => null()
  contains
    procedure :: advance => advance_travelling
  end type travelling_t

contains

  !> Set up all terms. `rigid`: bonds to hydrogen and waters are constrained.
  subroutine prepare(self, settings, state, rigid, error)
    class(force_field_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    logical, intent(in) :: rigid
    type(error_t), allocatable, intent(out) :: error
    integer :: k
    self%shared%rigid = rigid
    call self%boost%init(settings%boost)
    if (.not. settings%has_material() .and. settings%energy%ewald_charges) then
      call choose_screening(settings%energy, self%shared%alpha, self%shared%dispersion_alpha)
      self%shared%overlaps = settings%comm%overlap .and. state%comm%n_ranks > 1
      call choose_grid(settings%energy, state%grid%shape%edge_lengths(state%grid%box), state%grid_points)
    end if
    call choose_terms(settings, state%comm%n_apart, self%slot)
    do k = 1, size(self%slot)
      call self%slot(k)%term%prepare(settings, state, self%shared, error)
      call state%comm%agree(error)
      if (allocated(error)) return
    end do
  end subroutine prepare

  !> Forces on owned atoms at their present positions, and this rank's part of the energies and the virial. With split
  !> forces those of the longer step are computed unless `slow` is present and false.
  subroutine compute(self, state, want_energy, sums, slow)
    class(force_field_t), target, intent(inout) :: self
    type(system_state_t), target, intent(inout) :: state
    logical, intent(in) :: want_energy
    type(energies_t), intent(inout) :: sums
    logical, intent(in), optional :: slow
    type(travelling_t) :: travelling
    type(energies_t) :: torsions
    logical :: with_slow, with_energy
    integer :: i, k
    with_slow = .true.
    if (state%split_forces .and. present(slow)) with_slow = slow
    with_energy = want_energy .or. self%boost%is_on
    if (self%boost%splits_torsions()) call compute_torsions(self, state, torsions)
    sums%part = 0.0_real64
    sums%virial = 0.0_real64
    sums%release_work = 0.0_real64
    travelling%halo => state%halo
    travelling%slot => self%slot
    associate (atoms => state%atoms, halo => state%halo, overlaps => self%shared%overlaps)
      call halo%start_update(atoms%n_owned, atoms%position)
      if (.not. overlaps) call halo%finish_update(atoms%n_owned, atoms%position)
      call state%timer%lap(in_communication)
      !$omp parallel do schedule(static)
      do i = 1, size(atoms%force, 2)
        atoms%force(:, i) = 0.0_real64
      end do
      !$omp end parallel do
      do k = 1, size(self%slot)
        if (with_slow .or. .not. self%slot(k)%term%is_slow) call self%slot(k)%term%begin(state, self%shared, with_energy)
      end do
      call state%timer%lap(in_reciprocal)
      if (overlaps) then
        do k = size(self%slot), 1, -1
          if (self%slot(k)%term%has_parts) &
            call self%slot(k)%term%compute(state, self%shared, owned_atoms, with_energy, sums, travelling)
        end do
        call halo%finish_update(atoms%n_owned, atoms%position)
        call state%timer%lap(in_communication)
      end if
      call compute_stage(before_return)
      if (overlaps) then
        call state%timer%move(travelling%seconds, in_real_space, in_reciprocal)
        call halo%start_return(atoms%n_owned, atoms%force)
      end if
      call state%timer%lap(in_communication)
      if (with_slow .and. state%split_forces) then
        if (allocated(state%slow_force)) deallocate (state%slow_force)
        allocate (state%slow_force(3, atoms%n_owned), source=0.0_real64)
      end if
      call compute_stage(beside_return)
      call state%timer%lap(in_reciprocal)
      if (.not. overlaps) call halo%start_return(atoms%n_owned, atoms%force)
      call halo%finish_return(atoms%n_owned, atoms%force)
      call state%timer%lap(in_communication)
      call compute_stage(after_return)
      if (self%boost%is_on) then
        call apply_boost(self%boost, state, torsions, sums)
        do k = 1, size(self%slot)
          if (self%slot(k)%term%is_bias) call self%slot(k)%term%compute(state, self%shared, all_atoms, with_energy, sums)
        end do
      end if
    end associate

  contains

    !> The terms of a stage, in order, or what is left of them.
    subroutine compute_stage(stage)
      integer, intent(in) :: stage
      integer :: n
      do n = 1, size(self%slot)
        associate (term => self%slot(n)%term)
          if (term%stage /= stage .or. (term%is_slow .and. .not. with_slow)) cycle
          if (self%boost%is_on .and. term%is_bias) cycle  ! comes last
          if (.not. self%shared%overlaps) then
            call term%compute(state, self%shared, all_atoms, with_energy, sums)
          else
            call term%compute(state, self%shared, merge(ghost_atoms, all_atoms, term%has_parts), with_energy, sums, travelling)
          end if
        end associate
      end do
    end subroutine compute_stage

  end subroutine compute

  !> Forces of torsions on owned atoms, kept in `torsion_force` of the state, and this rank's part of their energies.
  subroutine compute_torsions(self, state, sums)
    type(force_field_t), intent(inout) :: self
    type(system_state_t), target, intent(inout) :: state
    type(energies_t), intent(inout) :: sums
    integer :: k
    associate (atoms => state%atoms, halo => state%halo)
      call halo%start_update(atoms%n_owned, atoms%position)
      call halo%finish_update(atoms%n_owned, atoms%position)
      call state%timer%lap(in_communication)
      atoms%force = 0.0_real64
      do k = 1, size(self%slot)
        select type (term => self%slot(k)%term)
        type is (bonded_term_t)
          call term%compute_torsions(state, sums)
        end select
      end do
      call halo%start_return(atoms%n_owned, atoms%force)
      call halo%finish_return(atoms%n_owned, atoms%force)
      call state%timer%lap(in_communication)
      state%torsion_force = atoms%force(:, :atoms%n_owned)
    end associate
  end subroutine compute_torsions

  !> Forces and energies with boosts; `torsions`: what was computed of them apart, if anything.
  subroutine apply_boost(boost, state, torsions, sums)
    type(gaussian_boost_t), intent(inout) :: boost
    type(system_state_t), intent(inout) :: state
    type(energies_t), intent(in) :: torsions
    type(energies_t), intent(inout) :: sums
    real(real64) :: factor(2), added(2)
    call boost%act(state%comm, [sum(sums%part), sum(torsions%part)], factor, added)
    associate (force => state%atoms%force(:, :state%atoms%n_owned))
      force = factor(1)*force
      if (boost%splits_torsions()) force = force + factor(2)*state%torsion_force
    end associate
    sums%virial = factor(1)*sums%virial + factor(2)*torsions%virial
    sums%part = sums%part + torsions%part
    if (state%comm%is_root()) sums%part(is_boost) = added
  end subroutine apply_boost

  !> Let positions of ghosts and what terms have begun go on.
  subroutine advance_travelling(self)
    class(travelling_t), intent(inout) :: self
    integer :: k
    call self%halo%advance_update()
    do k = 1, size(self%slot)
      call self%slot(k)%term%advance()
    end do
  end subroutine advance_travelling

  !> Follow owned and ghost atoms after these changed.
  subroutine take_atoms(self, state, error)
    class(force_field_t), intent(inout) :: self
    type(system_state_t), intent(in) :: state
    type(error_t), allocatable, intent(out) :: error
    integer :: k
    do k = 1, size(self%slot)
      call self%slot(k)%term%take_atoms(state, self%shared, error)
      if (allocated(error)) return
    end do
  end subroutine take_atoms

  !> Follow parameters that replicas exchange.
  subroutine take_parameters(self, settings, state)
    class(force_field_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    integer :: k
    do k = 1, size(self%slot)
      call self%slot(k)%term%take_parameters(settings, state, self%shared)
    end do
  end subroutine take_parameters

  !> Follow the reach of the pair list.
  subroutine set_reach(self)
    class(force_field_t), intent(inout) :: self
    integer :: k
    do k = 1, size(self%slot)
      call self%slot(k)%term%set_reach(self%shared)
    end do
  end subroutine set_reach

  !> Give the memory of lists back; `make_lists` comes next.
  subroutine forget_lists(self)
    class(force_field_t), intent(inout) :: self
    integer :: k
    do k = 1, size(self%slot)
      call self%slot(k)%term%forget_list()
    end do
  end subroutine forget_lists

  !> Make lists of the present atoms.
  subroutine make_lists(self, state)
    class(force_field_t), intent(inout) :: self
    type(system_state_t), intent(in) :: state
    integer :: k
    do k = 1, size(self%slot)
      call self%slot(k)%term%make_list(state, self%shared)
    end do
    if (allocated(self%shared%exclusion_first)) deallocate (self%shared%exclusion_first, self%shared%exclusion_partner)
  end subroutine make_lists

  !> Follow the edges of the box (angstrom).
  subroutine set_box(self, box)
    class(force_field_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    integer :: k
    do k = 1, size(self%slot)
      call self%slot(k)%term%set_box(box)
    end do
  end subroutine set_box

  !> Follow the borders of this rank's domain.
  subroutine follow_borders(self, state)
    class(force_field_t), intent(inout) :: self
    type(system_state_t), intent(in) :: state
    integer :: k
    do k = 1, size(self%slot)
      call self%slot(k)%term%set_domain(state%grid%lower/state%grid%box, state%grid%upper/state%grid%box)
    end do
  end subroutine follow_borders

  !> Work of this rank in a step, in pairs of the list.
  integer(int64) function work(self, n_owned)
    class(force_field_t), intent(in) :: self
    integer, intent(in) :: n_owned
    integer :: k
    work = 0
    do k = 1, size(self%slot)
      work = work + self%slot(k)%term%work(n_owned)
    end do
  end function work

  !> The term of pairs of molecules; null where there is a material instead.
  function pairs(self) result(term)
    class(force_field_t), target, intent(inout) :: self
    type(pair_term_t), pointer :: term
    integer :: k
    term => null()
    do k = 1, size(self%slot)
      select type (found => self%slot(k)%term)
      type is (pair_term_t)
        term => found
      end select
    end do
  end function pairs

end module force_field
