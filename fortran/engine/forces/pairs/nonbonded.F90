!> Real-space part of the non-bonded energy: Lennard-Jones and screened Coulomb between atoms within the cutoff, and the
!> Ewald corrections of excluded pairs. Pairs are owned-owned and owned-ghost, in the midpoint method (module
!> pair_ownership) ghost-ghost too; ghosts come already shifted.
!>
!> The result does not depend on the number of threads: work is cut into blocks by the data alone, each block sums into
!> its own buffer, and the buffers are added in a fixed order, by whichever thread comes when none is at it. In the
!> deterministic mode (module base_fixed_point) it does not depend on the ranks either.
!>
!> Where ghosts are kept apart, the pairs of owned atoms can be computed before the ghosts have arrived.
module nonbonded
  use omp_lib, only: omp_get_thread_num
  use base_kinds, only: int64, real64
  use pair_precision, only: real_pair
  use atom_types, only: atom_types_t
  use background, only: background_t
  use bounding_box, only: find_bounds
  use cluster_window, only: find_special, frame_t, window_t
  use coarse_place, only: int16, measure_moves, note_places
  use base_error, only: error_t
  use base_fixed_point, only: rounding_t
  use excluded_pairs, only: excluded_pairs_t
  use force_moment_sum, only: force_moment
  use force_sums, only: force_sums_t
  use base_instruction_set, only: instruction_set_name
  use kernel_dispatch, only: choose_pair_kernels
  use lennard_jones, only: lennard_jones_t
  use nonbonded_options, only: nonbonded_options_t, usual_many_atoms
  use pair_block, only: meets_all, meets_ghosts, meets_owned, pair_block_t, run_length
  use pair_kernels, only: pair_kernels_t
  use pair_list, only: cluster_size, pair_list_t
  use pair_ownership, only: pair_ownership_t
  use pair_forms, only: vdw_pme
  use pair_parameters, only: pair_parameters_t
  use pair_table, only: cubic_table, tabulate
  use pruning, only: prune_masked, prune_plain
  use turns, only: turns_t
  use verlet_buffer, only: list_limit_t, verlet_buffer_t
  implicit none
  private
  public :: nonbonded_t, meets_ghosts, meets_owned

  !> Displacements are measured in `real_pair`.
  real(real64), parameter :: rounding_reserve = 0.999_real64
  !> Positions are remembered to this (angstrom).
  real(real64), parameter :: place_quantum = 2.0_real64**(-10)

  !> Forces of a block on the clusters that it touches: (lanes, 3, clusters), or (8, 3, clusters) in the deterministic mode.
  type :: buffer_t
    real(real_pair), allocatable :: force(:, :, :)
    real(real64), allocatable :: exact_force(:, :, :)
  end type buffer_t

  type :: nonbonded_t
    private
    class(pair_kernels_t), allocatable :: kernels
    type(pair_parameters_t) :: pair
    type(pair_list_t) :: list
    type(atom_types_t) :: types
    !> The halves of clusters and clusters that hold atoms of types with pairs that need matrices.
    logical, allocatable :: special_half(:), special_cluster(:)
    integer :: n_owned = 0, n_total = 0
    !> There are many atoms: a window for each block in turn; else one for all.
    integer :: many_atoms = usual_many_atoms
    logical :: is_frugal = .false.
    type(window_t) :: all
    !> With vdw_pme: root of c6 of each atom.
    real(real64), allocatable :: root_c6(:)
    type(excluded_pairs_t) :: excluded
    type(frame_t) :: frame
    !> How far the kernels' entries reach, and where atoms were when they were chosen, in quanta.
    real(real64) :: inner_reach = 0.0_real64
    integer(int16), allocatable :: pruned_place(:, :)
    !> How far atoms may move until the entries are chosen anew, if some pairs may be missed, and the number of times that
    !> they have served.
    type(verlet_buffer_t) :: tolerance
    type(list_limit_t) :: limit
    integer :: age = 0
    !> The entries of owned atoms with each other were chosen anew in this step.
    logical :: owned_are_fresh = .false.
    type(rounding_t) :: rounding
  contains
    procedure :: init
    procedure :: rebuild
    procedure :: take_parameters
    procedure :: forget_list
    procedure :: compute
    procedure :: instruction_set
    procedure :: listed_pairs
    procedure :: list_bytes
    procedure :: set_reach
    procedure :: pair_constants
    procedure :: tolerate_misses
    procedure :: keep_ghosts_apart
  end type nonbonded_t

contains

  !> Prepare for a force field. `coulomb_constant` in kcal angstrom/mol/e^2; `highest_instruction_set` (0, 2, 3) is for
  !> tests. Fails when distances are out of order.
  subroutine init(self, lj, coulomb_constant, options, error, highest_instruction_set)
    class(nonbonded_t), intent(out) :: self
    type(lennard_jones_t), intent(in) :: lj
    real(real64), intent(in) :: coulomb_constant
    type(nonbonded_options_t), intent(in) :: options
    type(error_t), allocatable, intent(out) :: error
    integer, intent(in), optional :: highest_instruction_set
    integer :: order
    call options%check(error)
    if (allocated(error)) return
    call self%pair%prepare(options%cutoff, options%switch_distance, options%list_distance, options%alpha, &
                           options%vdw_form, options%dispersion_alpha, options%coulomb_shift, error, options%solvent)
    if (allocated(error)) return
    order = options%table_order
    if (self%pair%needs_table .and. order == 0) order = cubic_table
    if (order > 0) call tabulate(self%pair, options%switch_distance, order, options%table_density, error)
    if (allocated(error)) return
    self%inner_reach = min(options%cutoff + options%inner_buffer, options%list_distance)
    self%rounding = options%rounding
    self%many_atoms = options%many_atoms
    call self%types%init(lj, coulomb_constant)
    call choose_pair_kernels(self%kernels, self%pair, highest_instruction_set)
  end subroutine init

  !> Name of the instruction set in use, for the log.
  function instruction_set(self) result(name)
    class(nonbonded_t), intent(in) :: self
    character(len=:), allocatable :: name
    name = instruction_set_name(self%kernels%instruction_set)
  end function instruction_set

  !> Other reaches (angstrom) from the next list on: of the list, and of the kernels' entries beyond the cutoff.
  subroutine set_reach(self, list_distance, inner_buffer)
    class(nonbonded_t), intent(inout) :: self
    real(real64), intent(in) :: list_distance, inner_buffer
    self%pair%list_distance = list_distance
    self%inner_reach = min(self%pair%cutoff + inner_buffer, list_distance)
    call update_limit(self)
  end subroutine set_reach

  !> Let `compute` do the pairs with ghosts by themselves; from the next list on.
  subroutine keep_ghosts_apart(self)
    class(nonbonded_t), intent(inout) :: self
    self%list%keeps_ghosts_apart = .true.
  end subroutine keep_ghosts_apart

  !> Constants of the pair interaction.
  pure type(pair_parameters_t) function pair_constants(self)
    class(nonbonded_t), intent(in) :: self
    pair_constants = self%pair
  end function pair_constants

  !> Let the kernels miss as many pairs as `tolerance` allows for the buffer of their entries.
  subroutine tolerate_misses(self, tolerance)
    class(nonbonded_t), intent(inout) :: self
    type(verlet_buffer_t), intent(in) :: tolerance
    self%tolerance = tolerance
    call update_limit(self)
  end subroutine tolerate_misses

  subroutine update_limit(self)
    type(nonbonded_t), intent(inout) :: self
    real(real64) :: buffer
    buffer = rounding_reserve*(self%inner_reach - self%pair%cutoff)
    if (self%tolerance%per_step > 0.0_real64 .and. abs(buffer - self%limit%buffer) > 0.0_real64) &
      self%limit = self%tolerance%limit(buffer)
  end subroutine update_limit

  !> Pairs that the kernels run over: entries of the lists in use times the pairs of an entry.
  pure function listed_pairs(self) result(n)
    class(nonbonded_t), intent(in) :: self
    integer(int64) :: n
    integer :: b
    n = 0
    if (.not. allocated(self%list%block)) return
    do b = 1, size(self%list%block)
      associate (block => self%list%block(b))
        n = n + block%masked_first(block%last_i + 1) - 1 + &
            sum(run_length(block%near_run(:block%near_first(block%last_i + 1) - 1)))
        if (self%types%by_matrix .and. .not. self%rounding%is_on()) &
          n = n + sum(run_length(block%special_run(:block%special_first(block%last_i + 1) - 1)))
      end associate
    end do
    n = n*(cluster_size*cluster_size/2)
  end function listed_pairs

  !> Bytes of the lists, those of the kernels and those that they are chosen from.
  pure integer(int64) function list_bytes(self)
    class(nonbonded_t), intent(in) :: self
    integer :: b
    list_bytes = 0
    if (.not. allocated(self%list%block)) return
    do b = 1, size(self%list%block)
      associate (block => self%list%block(b))
        list_bytes = list_bytes + 4*(size(block%masked_first) + size(block%masked_cluster) + size(block%masked_bits) + &
                                     size(block%plain_first) + size(block%plain_run) + size(block%near_first) + &
                                     size(block%near_run))
        if (allocated(block%outer_first)) &
          list_bytes = list_bytes + 4*(size(block%outer_first) + 2*size(block%outer_cluster))
      end associate
    end do
  end function list_bytes

  !> Make the pair list for the atoms of this rank: owned atoms first, then ghosts. `position`: (3, n_total), angstrom;
  !> `global_id`: of each atom. `charge` (e) and `lj_type` (from 1) are
  !> those of the kinds of atoms, `kind` that of each atom. Exclusions are rows over owned atoms: owned-owned pairs under
  !> both atoms, owned-ghost pairs under the owned one; where `ownership` goes by midpoints rows over all atoms, this rank's
  !> pairs under both atoms. If they are absent, or not allocated, those of the last list hold, which was of the same atoms.
  subroutine rebuild(self, n_owned, n_total, position, kind, charge, lj_type, global_id, exclusion_first, &
                     exclusion_partner, ownership)
    class(nonbonded_t), intent(inout) :: self
    integer, intent(in) :: n_owned, n_total
    real(real64), intent(in) :: position(:, :), charge(:)
    integer, intent(in) :: kind(:), lj_type(:)
    integer(int64), intent(in) :: global_id(:)
    integer, intent(in), optional :: exclusion_first(:), exclusion_partner(:)
    type(pair_ownership_t), intent(inout), target, optional :: ownership
    type(pair_ownership_t), target :: of_half_shell
    type(pair_ownership_t), pointer :: owner
    type(pair_block_t), allocatable :: block(:)
    real(real64) :: low(3), high(3), extent
    integer :: b
    self%n_owned = n_owned
    self%n_total = n_total
    self%is_frugal = n_total >= self%many_atoms
    if (self%pair%vdw_form == vdw_pme) self%root_c6 = self%types%root_c6(lj_type(kind(:n_total)))
    if (n_total == 0) return
    owner => of_half_shell
    if (present(ownership)) owner => ownership
    call find_bounds(position(:, :n_total), low, high)
    self%frame%origin = 0.5_real64*(low + high)
    extent = 0.5_real64*maxval(high - low) + 1.0_real64
#ifndef CHROMAMD_DOUBLE
    ! A power of two, so that scaling is exact; a factor of two is left for motion until the next rebuild.
    self%frame%unit = 2.0_real64**(exponent(extent) - 29)
#endif
    if (present(exclusion_first)) then
      if (owner%is_on) then
        self%excluded = excluded_pairs_t(exclusion_first, exclusion_partner)
      else
        call self%excluded%mirror(n_owned, n_total, exclusion_first, exclusion_partner)
      end if
    end if
    self%all = window_t()
    call self%list%make(n_owned, n_total, position(:, :n_total), global_id(:n_total), &
                        self%types%interacts(lj_type(kind(:n_total))), abs(charge(kind(:n_total))) > 0.0_real64, owner)
    self%pair%has_bare_clusters = self%list%keeps_bare_apart()
    if (self%types%by_matrix) &
      call find_special(self%list, self%types, lj_type(kind(:n_total)), self%special_half, self%special_cluster)
    if (.not. self%is_frugal) then
      call self%all%pack_parameters(self%list, self%types, self%kernels%lanes, 1, self%list%n_clusters, kind, charge, lj_type)
      call pack_coordinates(self, self%all, 1, self%list%n_clusters, meets_all, position)
    end if
    if (allocated(self%pruned_place)) deallocate (self%pruned_place)
    allocate (self%pruned_place(3, n_total))
    allocate (block(size(self%list%block)))
    ! A block is pruned as soon as it is found: what the search finds takes several times the memory of what is kept.
    !$omp parallel do schedule(dynamic)
    do b = 1, size(block)
      block(b) = self%list%block(b)
      call self%list%search(block(b), n_owned, position, self%excluded%row_first, self%excluded%partner, &
                            self%pair%list_distance, owner)
      call block(b)%find_window()
      if (self%is_frugal) call block(b)%count_from(block(b)%lower - 1)
      if (owner%is_on) call block(b)%keep_outer()
      call select_entries(self, block(b), position)
    end do
    !$omp end parallel do
    call move_alloc(block, self%list%block)
    call self%list%forget_corners()
    call owner%forget_clusters()
    call note_pruned(self, position)
  end subroutine rebuild

  !> Take other parameters of the kinds of atoms than when the list was made; arguments as of `init` and `rebuild`.
  subroutine take_parameters(self, lj, kind, charge, lj_type)
    class(nonbonded_t), intent(inout) :: self
    type(lennard_jones_t), intent(in) :: lj
    integer, intent(in) :: kind(:), lj_type(:)
    real(real64), intent(in) :: charge(:)
    call self%types%init(lj, (self%types%coulomb_constant))
    if (.not. self%is_frugal) &
      call self%all%pack_parameters(self%list, self%types, self%kernels%lanes, 1, self%list%n_clusters, kind, charge, lj_type)
  end subroutine take_parameters

  !> Of what the search found keep the entries of the list, and of these find the near ones.
  subroutine select_entries(self, block, position)
    type(nonbonded_t), intent(in) :: self
    type(pair_block_t), intent(inout) :: block
    real(real64), intent(in) :: position(:, :)
    type(window_t) :: window
    if (self%is_frugal) then
      call pack_coordinates(self, window, block%lower, block%upper, meets_all, position)
      call prune_plain(block, self%kernels, window, self%pair%list_distance)
      call block%keep_near()
      call choose_near(self, block, window)
    else
      call prune_plain(block, self%kernels, self%all, self%pair%list_distance)
      call block%keep_near()
      call block%find_window()
      call choose_near(self, block, self%all)
    end if
  end subroutine select_entries

  !> Give the memory of the list back; `rebuild` comes next.
  subroutine forget_list(self)
    class(nonbonded_t), intent(inout) :: self
    self%list = pair_list_t(keeps_ghosts_apart=self%list%keeps_ghosts_apart)
    call self%excluded%forget()
    if (allocated(self%pruned_place)) deallocate (self%pruned_place)
    self%all = window_t()
  end subroutine forget_list

  !> Blocks of the pairs that clusters of owned atoms have with `meets`.
  pure subroutine block_range(self, meets, first, last)
    type(nonbonded_t), intent(in) :: self
    integer, intent(in) :: meets
    integer, intent(out) :: first, last
    first = 1
    last = size(self%list%block)
    if (meets == meets_owned) last = last/2
    if (meets == meets_ghosts) first = last/2 + 1
  end subroutine block_range

  !> Let the kernels run over the plain entries of a block that have atoms within the inner reach of each other now, with
  !> those that need pair matrices apart.
  subroutine choose_near(self, block, window)
    type(nonbonded_t), intent(in) :: self
    type(pair_block_t), intent(inout) :: block
    type(window_t), intent(in) :: window
    call prune_plain(block, self%kernels, window, self%inner_reach)
    call prune_masked(block, self%kernels, window, self%inner_reach)
    if (self%types%by_matrix .and. .not. self%rounding%is_on()) &
      call block%split_special(self%special_half, self%special_cluster(block%base + 1:))
  end subroutine choose_near

  !> The same of the blocks that `meets` tells.
  subroutine prune(self, meets, position)
    type(nonbonded_t), intent(inout) :: self
    integer, intent(in) :: meets
    real(real64), intent(in) :: position(:, :)
    integer :: b, first, last

    call block_range(self, meets, first, last)
    !$omp parallel do schedule(dynamic)
    do b = first, last
      if (self%list%block(b)%is_empty()) cycle
      if (self%is_frugal) then
        call prune_frugally(self, self%list%block(b), position)
      else
        call choose_near(self, self%list%block(b), self%all)
      end if
    end do
    !$omp end parallel do
  end subroutine prune

  subroutine prune_frugally(self, block, position)
    type(nonbonded_t), intent(in) :: self
    type(pair_block_t), intent(inout) :: block
    real(real64), intent(in) :: position(:, :)
    type(window_t) :: window
    call pack_coordinates(self, window, block%lower, block%upper, meets_all, position)
    call choose_near(self, block, window)
  end subroutine prune_frugally

  !> All entries were chosen for the present positions.
  subroutine note_pruned(self, position)
    type(nonbonded_t), intent(inout) :: self
    real(real64), intent(in) :: position(:, :)
    self%age = 0
    call note_places(position(:, :self%n_total), spread(1.0_real64/place_quantum, 1, 3), self%pruned_place)
  end subroutine note_pruned

  !> Pack the coordinates of clusters `first` to `last`, of all atoms or of those that `meets` tells.
  subroutine pack_coordinates(self, window, first, last, meets, position)
    type(nonbonded_t), intent(in) :: self
    type(window_t), intent(inout) :: window
    integer, intent(in) :: first, last, meets
    real(real64), intent(in) :: position(:, :)
    call window%pack_coordinates(self%list, self%frame, self%kernels%lanes, first, last, meets, self%n_owned, position)
  end subroutine pack_coordinates

  !> Whether pairs may have come within the cutoff that the kernels do not run over, because one of the atoms that `meets`
  !> tells moved farther than half of the buffer; or, where misses are tolerated, more of them than allowed, or an atom
  !> moved by twice the buffer.
  logical function is_stale(self, position, meets) result(stale)
    type(nonbonded_t), intent(in) :: self
    real(real64), intent(in) :: position(:, :)
    integer, intent(in) :: meets
    real(real64) :: buffer, farthest2
    integer(int64) :: sum2(3)
    integer :: first, last

    first = merge(self%n_owned + 1, 1, meets == meets_ghosts)
    last = merge(self%n_owned, self%n_total, meets == meets_owned)
    call measure_moves(position(:, first:last), spread(1.0_real64/place_quantum, 1, 3), self%pruned_place(:, first:last), &
                       farthest2, sum2)
    buffer = self%inner_reach - self%pair%cutoff
    stale = .false.
    if (self%tolerance%per_step > 0.0_real64) then
      stale = .not. self%limit%keeps(sum(sum2)*place_quantum**2/max(1, last - first + 1), self%age, 0.0_real64)
      buffer = 4.0_real64*buffer
    end if
    ! Displacements are known to a quantum along each axis.
    stale = stale .or. sqrt(farthest2) + 2.0_real64*place_quantum > 0.5_real64*buffer
  end function is_stale

  !> Add forces (kcal/mol/angstrom) to `force(3, n_total)`, ghosts included. With `want_energy` also give the energies
  !> (kcal/mol) and the virial, sum over pairs of r_ij f_ij (positive where pairs repel); else they are zero.
  !> Where ghosts are kept apart, `part` tells to compute the pairs of owned atoms with each other (`meets_owned`, positions
  !> of ghosts may be old) and afterwards in a second call those with ghosts (`meets_ghosts`); each gives its share of the
  !> energies and of the virial. `background`: what to look after meanwhile.
  subroutine compute(self, position, kind, charge, lj_type, force, energy_lj, energy_elec, virial, want_energy, part, &
                     background)
    class(nonbonded_t), intent(inout) :: self
    real(real64), intent(in) :: position(:, :), charge(:)
    integer, intent(in) :: kind(:), lj_type(:)
    real(real64), intent(inout) :: force(:, :)
    real(real64), intent(out) :: energy_lj, energy_elec, virial(3, 3)
    logical, intent(in) :: want_energy
    integer, intent(in), optional :: part
    class(background_t), intent(inout), optional :: background
    integer :: meets
    energy_lj = 0.0_real64
    energy_elec = 0.0_real64
    virial = 0.0_real64
    if (self%n_total == 0) return
    meets = meets_all
    if (present(part)) meets = part
    call renew_entries(self, position, meets)
    if (want_energy .and. .not. self%rounding%is_on()) &
      virial = force_moment(self%frame%origin, position(:, :self%n_total), force(:, :self%n_total))
    call compute_blocks(self, meets, want_energy, position, kind, charge, lj_type, force, energy_lj, energy_elec, virial, &
                        background)
    if (meets /= meets_owned .and. self%pair%alpha > 0.0_real64) &
      call self%excluded%correct(self%kernels, self%pair, self%types%coulomb_constant, self%rounding, position, kind, &
                                 charge, want_energy, force, energy_elec, virial)
    if (.not. self%rounding%is_on()) then
      if (meets /= meets_owned .and. self%pair%vdw_form == vdw_pme) &
        call self%excluded%correct_dispersion(position, self%root_c6, self%pair%dispersion_alpha, force, energy_lj)
      if (want_energy) &
        virial = force_moment(self%frame%origin, position(:, :self%n_total), force(:, :self%n_total)) - virial
    end if
    if (.not. want_energy) then
      energy_lj = 0.0_real64
      energy_elec = 0.0_real64
      virial = 0.0_real64
    end if
  end subroutine compute

  !> Take the positions over, and choose the entries that the kernels run over anew if need be. If just a ghost moved too
  !> far, the entries of owned atoms, which have served already, are chosen anew for the next step, so that there is one
  !> set of positions to compare with.
  subroutine renew_entries(self, position, meets)
    type(nonbonded_t), intent(inout) :: self
    real(real64), intent(in) :: position(:, :)
    integer, intent(in) :: meets
    logical :: stale

    if (meets /= meets_ghosts) then
      self%age = self%age + 1
      self%owned_are_fresh = .false.
    end if
    if (.not. self%is_frugal) call pack_coordinates(self, self%all, 1, self%list%n_clusters, meets, position)
    stale = is_stale(self, position, meets)
    if (meets == meets_owned) then
      if (stale) call prune(self, meets_owned, position)
      self%owned_are_fresh = stale
    else if (self%owned_are_fresh) then
      call prune(self, meets_ghosts, position)
      call note_pruned(self, position)
    else if (stale) then
      call prune(self, meets_all, position)
      call note_pruned(self, position)
    end if
  end subroutine renew_entries

  !> Run the pair kernels of all blocks and add their forces to `force` in the order of the blocks. A block's buffer lives
  !> from its computation until its turn, so that there are about as many as threads. One thread at a time adds what is
  !> complete; the others go on with their blocks. In the deterministic mode what is added is rounded first, so that sums
  !> are exact, and the virial is summed here.
  subroutine compute_blocks(self, meets, want_energy, position, kind, charge, lj_type, force, energy_lj, energy_elec, virial, &
                            background)
    type(nonbonded_t), intent(inout) :: self
    integer, intent(in) :: meets
    logical, intent(in) :: want_energy
    real(real64), intent(in) :: position(:, :), charge(:)
    integer, intent(in) :: kind(:), lj_type(:)
    real(real64), intent(inout) :: force(:, :), virial(3, 3)
    real(real64), intent(out) :: energy_lj, energy_elec
    class(background_t), intent(inout), optional :: background
    type(buffer_t) :: buffer(size(self%list%block))
    type(force_sums_t) :: sums
    real(real64) :: block_energy(2, size(self%list%block)), block_virial(6, size(self%list%block)), virial_sums(6)
    type(turns_t) :: turns
    integer :: b, first, last

    if (self%rounding%is_on() .and. .not. self%is_frugal) &
      call self%all%pack_exactly(self%list, 1, self%list%n_clusters, position)
    block_energy = 0.0_real64
    block_virial = 0.0_real64
    call block_range(self, meets, first, last)
    call sums%open(self%list%block(first:last)%lower, self%list%block(first:last)%upper)
    call turns%open(first, last)
    !$omp parallel do schedule(monotonic: dynamic)
    do b = first, last
      if (present(background)) call look_after(background)
      if (.not. self%list%block(b)%is_empty()) then
        if (self%is_frugal) then
          call compute_frugally(self, self%list%block(b), want_energy, position, kind, charge, lj_type, buffer(b), &
                                block_energy(:, b), block_virial(:, b))
        else
          call compute_window(self, self%list%block(b), self%all, want_energy, buffer(b), block_energy(:, b), &
                              block_virial(:, b))
        end if
      end if
      call turns%complete(b)
      call add_complete(self, first, turns, buffer, sums, force)
    end do
    !$omp end parallel do
    call add_complete(self, first, turns, buffer, sums, force)
    call turns%close()
    call sums%give_rest(self%list%slot_atom, force)
    energy_lj = sum(block_energy(1, :))
    energy_elec = sum(block_energy(2, :))
    if (.not. self%rounding%is_on()) return
    virial_sums = sum(block_virial, dim=2)
    virial = virial + reshape(virial_sums([1, 4, 5, 4, 2, 6, 5, 6, 3]), [3, 3])
  end subroutine compute_blocks

  !> Kernels of a block with a window of its own.
  subroutine compute_frugally(self, block, want_energy, position, kind, charge, lj_type, buffer, energy, virial)
    type(nonbonded_t), intent(in) :: self
    type(pair_block_t), intent(in) :: block
    logical, intent(in) :: want_energy
    real(real64), intent(in) :: position(:, :), charge(:)
    integer, intent(in) :: kind(:), lj_type(:)
    type(buffer_t), intent(inout) :: buffer
    real(real64), intent(inout) :: energy(2), virial(6)
    type(window_t) :: window
    call window%pack_parameters(self%list, self%types, self%kernels%lanes, block%lower, block%upper, kind, charge, lj_type)
    if (self%rounding%is_on()) then
      call window%pack_exactly(self%list, block%lower, block%upper, position)
    else
      call pack_coordinates(self, window, block%lower, block%upper, meets_all, position)
    end if
    call compute_window(self, block, window, want_energy, buffer, energy, virial)
  end subroutine compute_frugally

  !> Kernels of a block.
  subroutine compute_window(self, block, window, want_energy, buffer, energy, virial)
    type(nonbonded_t), intent(in) :: self
    type(pair_block_t), intent(in) :: block
    type(window_t), intent(in) :: window
    logical, intent(in) :: want_energy
    type(buffer_t), intent(inout) :: buffer
    real(real64), intent(inout) :: energy(2), virial(6)

    if (self%rounding%is_on()) then
      allocate (buffer%exact_force(cluster_size, 3, block%lower:block%upper), source=0.0_real64)
      call self%kernels%compute_exactly(block, window, self%types, self%pair, self%rounding, want_energy, buffer%exact_force, &
                                        energy, virial)
    else
      allocate (buffer%force(self%kernels%lanes, 3, block%lower:block%upper), source=0.0_real_pair)
      call self%kernels%compute(block, window, self%types, self%pair, want_energy, buffer%force, energy)
    end if
  end subroutine compute_window

  !> The thread that may communicate looks after what is under way.
  subroutine look_after(background)
    class(background_t), intent(inout) :: background
    if (omp_get_thread_num() == 0) call background%look_after()
  end subroutine look_after

  !> Add the buffers whose turn has come; `first`: the first of the blocks.
  subroutine add_complete(self, first, turns, buffer, sums, force)
    type(nonbonded_t), intent(in) :: self
    integer, intent(in) :: first
    type(turns_t), intent(inout) :: turns
    type(buffer_t), intent(inout) :: buffer(:)
    type(force_sums_t), intent(inout) :: sums
    real(real64), intent(inout) :: force(:, :)

    if (.not. turns%begin()) return
    do while (turns%has_next())
      associate (b => turns%next - first + 1, added => buffer(turns%next), lower => self%list%block(turns%next)%lower, &
                 slot_atom => self%list%slot_atom)
        if (allocated(added%force)) then
          call sums%add(b, lower, added%force, self%frame%unit, slot_atom, force)
          deallocate (added%force)
        else if (allocated(added%exact_force)) then
          call sums%add_exact(b, lower, added%exact_force, slot_atom, force)
          deallocate (added%exact_force)
        end if
      end associate
      call turns%advance()
    end do
    call turns%finish()
  end subroutine add_complete

end module nonbonded
