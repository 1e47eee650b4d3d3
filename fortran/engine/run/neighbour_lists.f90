!> Which atoms a rank sees and when that is found anew: owners, halo, terms and the pair list, and how far atoms may move
!> until then.
module neighbour_lists
  use base_kinds, only: int32, int64, real64
  use base_error, only: error_t, exit_bad_input, fail
  use base_text, only: to_text
  use bounding_box, only: find_bounds
  use border_balance, only: border_balance_t
  use coarse_place, only: place_record_t
  use constraints, only: constraints_t
  use force_field, only: force_field_t
  use instability, only: atom_in_place, explain_instability
  use nonbonded_options, only: usual_many_atoms
  use pair_ownership, only: place_share
  use pair_term, only: pair_term_t
  use settings, only: settings_t
  use system_state, only: system_state_t
  use timing, only: in_communication, in_list
  use verlet_buffer, only: list_limit_t, verlet_buffer_t
  implicit none
  private
  public :: neighbour_lists_t, check_positions, bond_slack, halo_slack, outer_buffer

  !> Owned groups are sorted by cells about this wide (angstrom).
  real(real64), parameter :: sort_cell = 8.0_real64
  !> Without a periodic box: least number of cells along an edge of the large box.
  integer, parameter :: open_sort_cells = 64
  !> How much longer than its constraint a bond may be before minimisation has relaxed it.
  real(real64), parameter :: bond_slack = 1.25_real64
  !> The halo is wider than the pair list needs by this (angstrom), and at most by this share of the box' edge, where
  !> domains allow it, so that pair lists can be renewed several times before atoms have to be handed over and terms found
  !> anew. In a small box, which is mostly halo, each angstrom more costs more than rebuilding. The box and not the domain
  !> counts, so that any number of ranks hands atoms over at the same steps (then L-BFGS begins anew).
  real(real64), parameter :: halo_slack = 4.0_real64, halo_slack_share = 0.05_real64
  !> The pair list reaches this far beyond the cutoff (angstrom) where domains allow it, and the part of it that the
  !> kernels run over at most so far (less where missed pairs are tolerated and less is cheaper); see docs/explanation/neighbour-lists.md.
  real(real64), parameter :: outer_buffer = 2.5_real64, largest_inner_buffer = 0.7_real64
  !> Left between the halo and the size of a domain when the reach is chosen: bonds may become longer.
  real(real64), parameter :: halo_reserve = 1.0_real64
  !> Positions of reference atoms when atoms came to their owners are remembered in 2^30 parts of the box, below 1e-6
  !> angstrom in a box of 1000 (owned atoms stay far within twice the box). Images of an atom have the same parts.
  real(real64), parameter :: home_quantum = 2.0_real64**(-30)
  !> Borders move so many times at once at first.
  integer, parameter :: first_moves = 12
  !> A domain may become so narrow, as a share of evenly spaced ones, before the reach of the list is cut for it.
  real(real64), parameter :: least_share = 0.7_real64

  type :: neighbour_lists_t
    !> Reach that the control file asks for, and what the inner buffer would be if domains allowed it (angstrom).
    real(real64), private :: least_reach = 0.0_real64, wanted_inner_buffer = largest_inner_buffer
    !> The reach is `least_reach`, with no inner buffer: a material's lists have but one part.
    logical, private :: is_plain = .false.
    !> No pair may be beyond the cutoff.
    logical, private :: is_vacuum = .false.
    !> The box changes in the course of the run.
    logical :: box_changes = .false.
    !> An atom may move this far (angstrom) from where it was when the pair list was made; where pairs may be missed,
    !> atoms may move as far as the limit says.
    real(real64) :: allowed_displacement = 0.0_real64
    type(verlet_buffer_t), private :: tolerance
    type(list_limit_t), private :: list_limit
    integer(int64), private :: listed_step = 0
    !> Logarithm of how much the box was scaled since the pair list was made (largest of the axes).
    real(real64), private :: strain = 0.0_real64
    !> Positions of the owned atoms when the pair list was made.
    type(place_record_t), private :: listed
    !> Positions of the reference atoms of the groups when atoms came to their owners, in `home_quantum` of the box, and how
    !> far from each other these may have been then to be both at hand where the pair is computed.
    integer(int32), allocatable, private :: home_place(:, :)
    real(real64), private :: halo_width = 0.0_real64
    !> Ghosts came from within this distance of the domain (angstrom).
    real(real64) :: ghost_width = 0.0_real64
    type(border_balance_t) :: balance
  contains
    procedure :: choose_reach
    procedure :: prepare_tolerance
    procedure :: rebuild
    procedure :: find_constraints
    procedure :: renew
    procedure :: is_due
    procedure :: largest_displacement
    procedure :: note_scaling
    procedure, private :: hand_over
    procedure, private :: make
  end type neighbour_lists_t

  interface
    subroutine chromamd_trim_memory() bind(c)
    end subroutine chromamd_trim_memory
  end interface

contains

  !> Reach of the pair list and buffers for the present box and domains.
  subroutine choose_reach(self, settings, state, field)
    class(neighbour_lists_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(in) :: state
    type(force_field_t), intent(inout) :: field
    field%shared%cutoff = settings%energy%cutoff
    self%is_plain = settings%has_material()
    self%is_vacuum = settings%energy%vacuum
    self%least_reach = settings%energy%list_distance
    call fit_reach(self, state, field)
  end subroutine choose_reach

  !> Let pair lists miss what the settings tolerate.
  subroutine prepare_tolerance(self, settings, state, field)
    class(neighbour_lists_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(in) :: state
    type(force_field_t), target, intent(inout) :: field
    type(pair_term_t), pointer :: term
    logical :: may_miss
    term => field%pairs()
    if (.not. associated(term)) return
    call term%find_tolerance(settings, state, field%shared, self%tolerance, may_miss)
    if (.not. may_miss) return
    associate (cutoff => field%shared%cutoff)
      self%wanted_inner_buffer = self%tolerance%cheapest_buffer(cutoff, cutoff + outer_buffer, largest_inner_buffer)
      call fit_reach(self, state, field)
      call field%set_reach()
      call term%pairs%tolerate_misses(self%tolerance)
      self%list_limit = self%tolerance%limit(field%shared%list_distance - cutoff)
    end associate
  end subroutine prepare_tolerance

  !> The reach and buffers that fit the present box.
  subroutine fit_reach(self, state, field)
    class(neighbour_lists_t), intent(inout) :: self
    type(system_state_t), intent(in) :: state
    type(force_field_t), intent(inout) :: field
    real(real64) :: room, buffer
    associate (shared => field%shared)
      room = merge(least_share, 1.0_real64, self%balance%is_on)*minval(state%grid%even_width())
      if (shared%ownership%is_on) room = 2.0_real64*room
      room = min(room - 2.0_real64*bond_slack*state%topology%longest_constraint() - halo_reserve, &
                 0.5_real64*state%grid%shape%shortest_translation(state%grid%box))
      shared%list_distance = max(self%least_reach, min(shared%cutoff + outer_buffer, room))
      if (self%is_plain) shared%list_distance = self%least_reach
      buffer = shared%list_distance - shared%cutoff
      shared%inner_buffer = min(self%wanted_inner_buffer, 0.5_real64*buffer)
      if (self%is_plain) shared%inner_buffer = 0.0_real64
      self%allowed_displacement = 0.5_real64*(buffer - shared%inner_buffer)
    end associate
  end subroutine fit_reach

  !> How far from a domain (angstrom) ghosts must come from, so that all pairs of groups within `width` of each other are
  !> at hand where they are computed.
  pure real(real64) function ghosts_within(width, state, field)
    real(real64), intent(in) :: width
    type(system_state_t), intent(in) :: state
    type(force_field_t), intent(in) :: field
    ghosts_within = width
    if (field%shared%ownership%is_on) ghosts_within = 0.5_real64*width + place_reserve(state)
  end function ghosts_within

  !> The middle of a pair, of places that are whole numbers, is that of the positions to within this (angstrom).
  pure real(real64) function place_reserve(state)
    type(system_state_t), intent(in) :: state
    place_reserve = merge(8.0_real64, 4.0_real64, state%grid%shape%leans)*place_share*maxval(state%grid%box)
  end function place_reserve

  !> Bring atoms to their owners and make halo, lists and terms anew. The result depends only on where the atoms are:
  !> borders are evenly spaced.
  subroutine rebuild(self, state, field, constraints, error)
    class(neighbour_lists_t), intent(inout) :: self
    type(system_state_t), intent(inout) :: state
    type(force_field_t), intent(inout) :: field
    type(constraints_t), intent(inout) :: constraints
    type(error_t), allocatable, intent(out) :: error
    call space_evenly(self, state, field)
    call self%hand_over(state, field, constraints, error)
  end subroutine rebuild

  !> Bring atoms to their owners and find their constraints. There are no lists: `rebuild` makes them when the atoms are
  !> where the constraints want them.
  subroutine find_constraints(self, state, field, constraints, error)
    class(neighbour_lists_t), intent(inout) :: self
    type(system_state_t), intent(inout) :: state
    type(force_field_t), intent(inout) :: field
    type(constraints_t), intent(inout) :: constraints
    type(error_t), allocatable, intent(out) :: error
    call space_evenly(self, state, field)
    call bring_home(self, state, field, constraints, error)
    if (.not. allocated(error)) call constraints%assign(state%topology, state%atoms)
  end subroutine find_constraints

  !> Borders back to even distances, from where the work of the lists may move them.
  subroutine space_evenly(self, state, field)
    type(neighbour_lists_t), intent(inout) :: self
    type(system_state_t), intent(inout) :: state
    type(force_field_t), intent(inout) :: field
    if (.not. self%balance%is_on) return
    call state%grid%space_evenly()
    call field%follow_borders(state)
    self%balance%may_move = .true.
  end subroutine space_evenly

  !> Move the borders to where the work of the present list says, and bring atoms to their owners. When borders were
  !> evenly spaced before, this is done over and over.
  subroutine rebalance(self, state, field, constraints, error)
    type(neighbour_lists_t), intent(inout) :: self
    type(system_state_t), intent(inout) :: state
    type(force_field_t), intent(inout) :: field
    type(constraints_t), intent(inout) :: constraints
    type(error_t), allocatable, intent(out) :: error
    real(real64), allocatable :: border(:, :)
    real(real64) :: least(3), width
    integer(int64), allocatable :: work(:)
    integer :: k

    associate (balance => self%balance, grid => state%grid)
      do k = 1, merge(first_moves, 1, balance%may_move)
        call balance%measure(state, field%work(state%atoms%n_owned), work)
        if (k == 1 .and. balance%may_move) balance%imbalance(1) = balance%imbalance(2)
        width = field%shared%list_distance + 2.0_real64*state%comm%maximum(state%atoms%group_extent()) + halo_reserve
        width = ghosts_within(width, state, field)
        least = width/max(1, ceiling(width/grid%even_width()))
        border = balance%better_borders(state, work, least)
        if (.not. balance%is_tolerable() .and. any(border /= grid%border)) then
          where (grid%dims == 1) least = 0.0_real64
          call grid%move_borders(border, least, error)
          if (allocated(error)) return
          call field%follow_borders(state)
        else if (k > 1) then
          exit
        end if
        call self%hand_over(state, field, constraints, error)
        if (allocated(error)) return
      end do
      balance%may_move = .false.
      call balance%measure(state, field%work(state%atoms%n_owned), work)
    end associate
  end subroutine rebalance

  !> Bring atoms to the owners that the present borders give them and make halo, lists and terms anew.
  subroutine hand_over(self, state, field, constraints, error)
    class(neighbour_lists_t), intent(inout) :: self
    type(system_state_t), intent(inout) :: state
    type(force_field_t), intent(inout) :: field
    type(constraints_t), intent(inout) :: constraints
    type(error_t), allocatable, intent(out) :: error
    call bring_home(self, state, field, constraints, error)
    if (allocated(error)) return
    call field%take_atoms(state, error)
    if (allocated(error)) return
    call constraints%assign(state%topology, state%atoms)
    call self%make(state, field)
  end subroutine hand_over

  !> Bring atoms to the owners that the present borders give them, and ghosts to where they are needed. Lists and terms of
  !> the atoms before are lost.
  subroutine bring_home(self, state, field, constraints, error)
    type(neighbour_lists_t), intent(inout) :: self
    type(system_state_t), intent(inout) :: state
    type(force_field_t), intent(inout) :: field
    type(constraints_t), intent(in) :: constraints
    type(error_t), allocatable, intent(out) :: error
    real(real64), allocatable :: ghost_position(:, :)
    integer(int64), allocatable :: ghost_id(:)

    call check_positions(state, constraints, error)
    if (.not. allocated(error)) call check_moves(self, state, field%shared%list_distance, constraints, error)
    call state%comm%agree(error)
    if (allocated(error)) return
    call field%forget_lists()
    associate (atoms => state%atoms, grid => state%grid)
      if (allocated(atoms%force)) deallocate (atoms%force)
      if (atoms%n_owned >= usual_many_atoms) call chromamd_trim_memory()
      call atoms%put_on_lattice()
      call atoms%wrap(grid)
      if (state%comm%n_ranks > 1) call state%migrate(field%shared%list_distance, error)
      if (allocated(error)) return
      call atoms%sort(grid, merge(min(sort_cell, maxval(grid%box)/open_sort_cells), sort_cell, state%is_open))
      call atoms%identify_owned(state%topology)
      call state%sites%assign(state%topology, atoms)
      call state%sites%place(atoms%position, state%rounding)

      if (self%box_changes) then
        call fit_reach(self, state, field)
        call field%set_reach()
        if (self%tolerance%per_step > 0.0_real64) &
          self%list_limit = self%tolerance%limit(field%shared%list_distance - field%shared%cutoff)
      end if
      if (grid%shape%shortest_translation(grid%box) < 2.0_real64*self%least_reach) then
        call fail(error, exit_bad_input, "the box has shrunk to "// &
                  to_text(grid%shape%shortest_translation(grid%box))// &
                  " angstrom, less than twice the pairlistdist: equilibrate at constant volume first or give a "// &
                  "larger tau_p")
        return
      end if
      call widen_halo(self, state, field)
      call state%timer%lap(in_list)
      call state%halo%build(state%comm, grid, self%ghost_width, atoms%group_first, atoms%group_reference, &
                            atoms%position, atoms%id, ghost_id, ghost_position, error)
      if (allocated(error)) return
      call state%timer%lap(in_communication)
      if (state%is_open) call check_extent(self, state, field%shared%cutoff, error)
      if (allocated(error)) return
      call atoms%add_ghosts(state%topology, ghost_id, ghost_position)
      if (field%shared%ownership%is_on) call place_groups(state, field)
    end associate
  end subroutine bring_home

  !> Whether all atoms are still where they can be.
  subroutine check_positions(state, constraints, error)
    type(system_state_t), intent(in) :: state
    type(constraints_t), intent(in) :: constraints
    type(error_t), allocatable, intent(out) :: error
    integer :: i
    if (constraints%failed_atom > 0) then
      call explain_instability(state, constraints%active, "the rigid bonds of "// &
                               atom_in_place(state, constraints%failed_atom)//" cannot be satisfied", &
                               constraints%failed_atom, error)
      return
    end if
    do i = 1, state%atoms%n_owned
      if (all(abs(state%atoms%position(:, i)) < 1.0e9_real64)) cycle
      call explain_instability(state, constraints%active, atom_in_place(state, i)//" flew away", i, error)
      return
    end do
  end subroutine check_positions

  !> Whether no atom has jumped beyond `reach` (angstrom) since atoms came to their owners: lists would have been renewed.
  subroutine check_moves(self, state, reach, constraints, error)
    type(neighbour_lists_t), intent(in) :: self
    type(system_state_t), intent(in) :: state
    real(real64), intent(in) :: reach
    type(constraints_t), intent(in) :: constraints
    type(error_t), allocatable, intent(out) :: error
    integer :: g, i
    if (.not. allocated(self%home_place)) return
    do g = 1, state%atoms%n_groups
      i = state%atoms%group_reference(g)
      if (sum((state%atoms%position(:, i) - home_quantum*state%grid%box*self%home_place(:, g))**2) <= reach**2) cycle
      call explain_instability(state, constraints%active, atom_in_place(state, i)//" jumped by more than "// &
                               to_text(reach)//" angstrom", i, error)
      return
    end do
  end subroutine check_moves

  !> Choose how far from the domain ghosts come, and remember where groups are now.
  subroutine widen_halo(self, state, field)
    class(neighbour_lists_t), intent(inout) :: self
    type(system_state_t), intent(in) :: state
    type(force_field_t), intent(in) :: field
    real(real64) :: width
    integer :: g
    associate (atoms => state%atoms, grid => state%grid)
      width = field%shared%list_distance + 2.0_real64*state%comm%maximum(atoms%group_extent())
      ! No more layers of domains than are needed.
      self%ghost_width = min(ghosts_within(width + min(halo_slack, halo_slack_share*minval(grid%box)), state, field), &
                             minval(grid%layers_within(ghosts_within(width, state, field))*grid%narrowest()))
      self%halo_width = self%ghost_width
      if (field%shared%ownership%is_on) self%halo_width = 2.0_real64*(self%ghost_width - place_reserve(state))
      if (allocated(self%home_place)) deallocate (self%home_place)
      allocate (self%home_place(3, atoms%n_groups))
      !$omp parallel do schedule(static)
      do g = 1, atoms%n_groups
        self%home_place(:, g) = nint(atoms%position(:, atoms%group_reference(g))/(home_quantum*grid%box), int32)
      end do
      !$omp end parallel do
    end associate
  end subroutine widen_halo

  !> Let all ranks know the places that decide who computes a pair.
  subroutine place_groups(state, field)
    type(system_state_t), intent(inout) :: state
    type(force_field_t), intent(inout) :: field
    real(real64), allocatable :: value(:, :), straight(:, :)
    integer :: i
    associate (atoms => state%atoms, grid => state%grid, ownership => field%shared%ownership)
      allocate (value(3, atoms%n_total), straight(3, atoms%n_total))
      do i = 1, atoms%n_total
        straight(:, i) = grid%straight(atoms%position(:, i))
      end do
      call ownership%set_domain(grid%lower/grid%box, grid%upper/grid%box)
      call ownership%place_owned(atoms%group_first, atoms%group_reference, straight, grid%box, value)
      call state%halo%update_positions(atoms%n_owned, value, shifted=.false.)
      call ownership%place_ghosts(atoms%n_owned, value, straight, grid%box)
    end associate
  end subroutine place_groups

  !> Whether the model still stands so far from the faces of the box that no image is within reach, and in vacuum, where
  !> there is one rank, within the cutoff.
  subroutine check_extent(self, state, cutoff, error)
    type(neighbour_lists_t), intent(in) :: self
    type(system_state_t), intent(in) :: state
    real(real64), intent(in) :: cutoff
    type(error_t), allocatable, intent(out) :: error
    real(real64) :: extent, low(3), high(3), room
    call find_bounds(state%atoms%position(:, :state%atoms%n_owned), low, high)
    extent = 0.0_real64
    if (self%is_vacuum) extent = norm2(high - low)
    room = -state%comm%maximum(-minval([low, state%grid%box - high]))
    if (room < self%ghost_width) then
      call fail(error, exit_bad_input, "at step "//to_text(state%step)//" atoms have moved too far from where the input "// &
                "had them to go on without a periodic box: keep the model together, or start anew from bricks of a "// &
                "larger box")
    else if (self%is_vacuum .and. extent + halo_slack > cutoff) then
      call fail(error, exit_bad_input, "vacuum = YES needs a cutoffdist beyond the model, which measures "// &
                to_text(extent)//" angstrom at step "//to_text(state%step)//": give cutoffdist = "// &
                to_text(real(ceiling(1.5_real64*extent + 2.0_real64*halo_slack), real64))//" or more")
    end if
  end subroutine check_extent

  !> Make the pair list anew after atoms moved far, and all else too if the ghosts at hand no longer hold every atom
  !> within reach of an owned one: then `moved` is true, and owned atoms have a new order. What is done depends only on
  !> how the atoms moved since the last `rebuild`.
  subroutine renew(self, state, field, constraints, error, moved)
    class(neighbour_lists_t), intent(inout) :: self
    type(system_state_t), intent(inout) :: state
    type(force_field_t), intent(inout) :: field
    type(constraints_t), intent(inout) :: constraints
    type(error_t), allocatable, intent(out) :: error
    logical, intent(out) :: moved
    real(real64) :: reach2, worst2, from_home
    integer :: g

    worst2 = 0.0_real64
    !$omp parallel do schedule(static) private(reach2) reduction(max: worst2)
    do g = 1, state%atoms%n_groups
      reach2 = sum((state%atoms%position(:, state%atoms%group_reference(g)) - &
                    home_quantum*state%grid%box*self%home_place(:, g))**2)
      if (.not. reach2 < 1.0e18_real64) reach2 = 1.0e18_real64
      worst2 = max(worst2, reach2)
    end do
    !$omp end parallel do
    from_home = state%atoms%group_extent() + sqrt(worst2)
    if (constraints%failed_atom > 0) from_home = huge(from_home)
    from_home = state%comm%maximum(from_home)
    ! Any two atoms within the list's reach now have reference atoms that were within the halo's width of each other.
    moved = 2.0_real64*from_home > self%halo_width - field%shared%list_distance .or. self%balance%may_move
    if (moved .and. self%balance%is_on) then
      call rebalance(self, state, field, constraints, error)
    else if (moved) then
      call self%hand_over(state, field, constraints, error)
    else
      call state%halo%update_positions(state%atoms%n_owned, state%atoms%position)
      call state%timer%lap(in_communication)
      call self%make(state, field)
    end if
  end subroutine renew

  !> Make the pair list of the present owned and ghost atoms. Dynamics has used the old forces: their memory is freed for
  !> the work arrays of the lists.
  subroutine make(self, state, field)
    class(neighbour_lists_t), intent(inout) :: self
    type(system_state_t), intent(inout) :: state
    type(force_field_t), intent(inout) :: field
    associate (atoms => state%atoms)
      if (allocated(atoms%force) .and. .not. state%is_at_rest) deallocate (atoms%force)
      call field%make_lists(state)
      call self%listed%note(atoms%position(:, :atoms%n_owned), state%grid%box)
      if (atoms%n_owned >= usual_many_atoms) call chromamd_trim_memory()
      if (.not. allocated(atoms%force)) allocate (atoms%force(3, atoms%n_total))
    end associate
    self%listed_step = state%step
    self%strain = 0.0_real64
    call state%timer%lap(in_list)
  end subroutine make

  !> Follow a scaling of the box by `factor` along x, y and z.
  subroutine note_scaling(self, factor)
    class(neighbour_lists_t), intent(inout) :: self
    real(real64), intent(in) :: factor(3)
    self%strain = self%strain + maxval(abs(log(factor)))
    self%halo_width = self%halo_width*min(1.0_real64, minval(factor))
  end subroutine note_scaling

  !> Whether atoms moved, or the box shrank, so much that the pair list must be made anew; or would after a strain of
  !> the box (logarithm of a factor) that is still to come.
  logical function is_due(self, state, field, constraints, coming_strain)
    class(neighbour_lists_t), intent(in) :: self
    type(system_state_t), intent(in) :: state
    type(force_field_t), intent(in) :: field
    type(constraints_t), intent(in) :: constraints
    real(real64), intent(in), optional :: coming_strain
    real(real64) :: strain, farthest, mean_square, lost
    strain = self%strain
    if (present(coming_strain)) strain = strain + coming_strain
    lost = strain*field%shared%list_distance
    if (.not. self%tolerance%per_step > 0.0_real64) then
      is_due = self%largest_displacement(state, constraints) > self%allowed_displacement - 0.5_real64*lost
      return
    end if
    call measure_displacements(self, state, constraints, farthest, mean_square)
    is_due = farthest > field%shared%list_distance - field%shared%cutoff - lost .or. &
             .not. self%list_limit%keeps(mean_square, int(state%step - self%listed_step), lost)
  end function is_due

  !> Largest distance of any atom of all ranks from where it was when the pair list was made; huge when something
  !> failed.
  real(real64) function largest_displacement(self, state, constraints) result(largest)
    class(neighbour_lists_t), intent(in) :: self
    type(system_state_t), intent(in) :: state
    type(constraints_t), intent(in) :: constraints
    real(real64) :: mean_square
    call measure_displacements(self, state, constraints, largest, mean_square)
  end function largest_displacement

  !> Largest displacement of the atoms of all ranks since the pair list was made (angstrom; huge when something failed)
  !> and the mean of the squares (angstrom^2), which depends neither on threads nor on ranks.
  subroutine measure_displacements(self, state, constraints, largest, mean_square)
    class(neighbour_lists_t), intent(in) :: self
    type(system_state_t), intent(in) :: state
    type(constraints_t), intent(in) :: constraints
    real(real64), intent(out) :: largest, mean_square
    real(real64) :: worst2, unit2(3)
    integer(int64) :: sum2(3)
    call self%listed%measure(state%atoms%position(:, :state%atoms%n_owned), state%grid%box, worst2, sum2, unit2)
    if (constraints%failed_atom > 0) worst2 = 1.0e18_real64
    largest = state%comm%maximum(sqrt(worst2))
    mean_square = 0.0_real64
    if (.not. self%tolerance%per_step > 0.0_real64) return
    call state%comm%sum(sum2)
    mean_square = sum(unit2*sum2)/state%topology%n_atoms
  end subroutine measure_displacements

end module neighbour_lists
