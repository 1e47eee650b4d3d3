!> The bonded terms and 1-4 pairs of a rank, and the exclusions for its pair list.
!>
!> A term may occur in several domains. Seen from one of its owned atoms, the others are the copies (owned or ghost)
!> nearest to it. Ghosts come from positive neighbours only, so just one domain, the lexicographically lowest of those
!> that the term touches, finds a near copy of every atom; it computes the term. If several atoms of the term are owned
!> there and near each other, the first of them in the term stands for it.
!>
!> In the midpoint method (module pair_ownership) ghosts come from all around: the owner of the middle atom computes a
!> term, and exclusions belong to the rank that the middle of the pair belongs to.
module bonded
  use base_kinds, only: int64, real64
  use atoms, only: atoms_t
  use bonded_terms, only: sum_terms
  use cmap, only: cmap_t
  use comm_communicator, only: communicator_t
  use comm_domain_grid, only: domain_grid_t
  use base_error, only: error_t, exit_bad_input, fail
  use base_fixed_point, only: rounding_t
  use id_map, only: id_map_t
  use implicit_solvent, only: implicit_solvent_t
  use pair_ownership, only: pair_ownership_t
  use term_list, only: is_dihedral, is_exclusion, is_gaussian, is_pair14, kind_columns, kind_name, kind_width, n_kinds
  use base_text, only: to_text
  use topology, only: topology_t
  use turns, only: turns_t
  implicit none
  private
  public :: bonded_t, n_bonded_energies, without_ghosts, with_ghosts, is_torsion

  !> Energies: the kinds 1..6 in their order, then Lennard-Jones and Coulomb of the 1-4 pairs, then what bases do to each
  !> other; Gaussian wells of torsions are among the dihedrals.
  integer, parameter :: n_bonded_energies = 11
  !> Parts of the terms.
  integer, parameter :: without_ghosts = 1, with_ghosts = 2
  !> Kinds of terms that make the energy of torsions: proper ones and correction maps.
  logical, parameter :: is_torsion(n_kinds - 1) = [.false., .false., .false., .true., .false., .true., .false., .true., &
                                                    .false., .false., .false.]
  !> Terms of a block. Blocks are added in order, so that sums do not depend on the number of threads.
  integer, parameter :: block_size = 512
  !> A thread that is so many blocks ahead of what is added waits.
  integer, parameter :: most_waiting = 256
  !> Owned atoms whose terms one thread finds; what it found is then put together in order of the atoms.
  integer, parameter :: atoms_per_part = 8192

  !> What one part of the atoms brought: `entry(:, n)`.
  type :: part_t
    integer :: n = 0
    integer, allocatable :: entry(:, :)
  contains
    procedure :: append
  end type part_t

  type :: local_terms_t
    integer :: n = 0
    !> The first ones have no ghosts.
    integer :: n_without_ghosts = 0
    integer, allocatable :: atom(:, :)
    !> Which parameters each has.
    integer, allocatable :: row(:)
  end type local_terms_t

  !> Parameters of the terms of one kind of all templates: of term t of a template in row `before(template) + t`, as in the
  !> topology; of dihedrals the cosine and the sine of the phase stand in its place.
  type :: parameter_table_t
    integer, allocatable :: before(:)
    real(real64), allocatable :: parameter(:, :)
  end type parameter_table_t

  !> Terms `first` to `last` of one kind, their energies (of 1-4 pairs: Lennard-Jones, Coulomb) and virial, and the forces
  !> on the atoms of each until they are added.
  type :: block_t
    integer :: kind, first, last
    real(real64) :: energy(2), virial(3, 3)
    real(real64), allocatable :: force(:, :, :)
  end type block_t

  type :: bonded_t
    private
    logical :: rigid = .false.
    real(real64) :: coulomb_constant = 0.0_real64
    type(rounding_t) :: rounding
    type(implicit_solvent_t) :: solvent
    type(cmap_t) :: cmap
    type(local_terms_t) :: terms(n_kinds - 1)
    type(parameter_table_t) :: table(n_kinds - 1)
    !> Exclusions of atom i, owned or in the midpoint method any: local partners
    !> `exclusion_partner(exclusion_first(i):exclusion_first(i+1)-1)`.
    integer, allocatable, public :: exclusion_first(:), exclusion_partner(:)
  contains
    procedure :: init
    procedure :: assign
    procedure :: take_parameters
    procedure :: compute
  end type bonded_t

contains

  !> `rigid`: leave out the bonds and angles that constraints replace.
  !> `coulomb_constant`: kcal angstrom/mol/e^2.
  subroutine init(self, coulomb_constant, cmap, rigid, rounding, solvent)
    class(bonded_t), intent(inout) :: self
    real(real64), intent(in) :: coulomb_constant
    type(cmap_t), intent(in) :: cmap
    logical, intent(in) :: rigid
    type(rounding_t), intent(in) :: rounding
    !> In it charges of 1-4 pairs are, where it is on.
    type(implicit_solvent_t), intent(in) :: solvent
    self%rounding = rounding
    self%solvent = solvent
    self%cmap = cmap
    self%coulomb_constant = coulomb_constant
    self%rigid = rigid
  end subroutine init

  !> Find the terms of this rank after the list of owned and ghost atoms changed. Fails on all ranks when the terms of
  !> all ranks are not exactly those of the topology.
  subroutine assign(self, comm, topology, atoms, grid, ownership, error)
    class(bonded_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(topology_t), intent(in) :: topology
    type(atoms_t), intent(in) :: atoms
    type(domain_grid_t), intent(in) :: grid
    type(pair_ownership_t), intent(in) :: ownership
    type(error_t), allocatable, intent(out) :: error
    type(id_map_t) :: map
    integer(int64) :: found(n_kinds), expected(n_kinds)
    integer :: i, kind, n_exclusions
    logical :: searched(size(topology%templates))

    ! Molecules of one group, most of all waters, are whole and in order: their atoms need no search.
    searched = topology%templates%n_groups > 1
    call map%create(count(searched(atoms%template(atoms%kind(:atoms%n_total)))), atoms%n_total)
    do i = 1, atoms%n_total
      if (searched(atoms%template(atoms%kind(i)))) call map%add(atoms%id(i), i)
    end do
    do kind = 1, n_kinds - 1
      if (.not. allocated(self%table(kind)%before)) call make_table(self, kind, topology)
      call assign_kind(self, kind, topology, atoms, map, grid, ownership%is_on)
      found(kind) = self%terms(kind)%n
    end do
    call assign_exclusions(self, topology, atoms, map, grid, ownership, n_exclusions)
    found(is_exclusion) = n_exclusions

    call comm%sum(found)
    expected = topology%term_count(self%rigid)
    do kind = 1, n_kinds
      if (found(kind) == expected(kind)) cycle
      call fail(error, exit_bad_input, "only "//to_text(found(kind))//" of "//to_text(expected(kind))// &
                " terms of kind '"//trim(kind_name(kind))// &
                "' lie within the halo: a molecule is torn apart, minimise longer or check the input"// &
                trim(merge(", or give [COMM] method = HALF_SHELL, whose halo is twice as wide", &
                           repeat(" ", 65), ownership%is_on)))
      return
    end do
  end subroutine assign

  !> Local copies of the atoms of term t, seen from owned atom i, which is atom number `place` of the term. `mine`: all
  !> are near, and i is the first of those that are owned, or `by_middle` the middle one.
  pure subroutine find_term(topology, atoms, map, grid, i, kind, t, place, by_middle, local, mine)
    type(topology_t), intent(in) :: topology
    type(atoms_t), intent(in) :: atoms
    type(id_map_t), intent(in) :: map
    type(domain_grid_t), intent(in) :: grid
    integer, intent(in) :: i, kind, t, place
    logical, intent(in) :: by_middle
    integer, intent(out) :: local(:)
    logical, intent(out) :: mine
    integer :: k, offset
    associate (template => topology%templates(atoms%template(atoms%kind(i))))
      mine = .false.
      if (by_middle .and. place /= (size(local) + 1)/2) return
      do k = 1, size(local)
        if (k == place) then
          local(k) = i
          cycle
        end if
        offset = template%terms(kind)%atom(k, t) - atoms%index_in_template(atoms%kind(i))
        if (template%n_groups == 1) then
          local(k) = i + offset
        else
          local(k) = map%first_copy(atoms%id(i) + offset)
          do while (local(k) > 0)
            if (all(abs(grid%straight(atoms%position(:, local(k)) - atoms%position(:, i))) < 0.5_real64*grid%box)) exit
            local(k) = map%next_copy(local(k))
          end do
          if (local(k) == 0) return
        end if
        if (k < place .and. local(k) <= atoms%n_owned .and. .not. by_middle) return
      end do
    end associate
    mine = .true.
  end subroutine find_term

  !> Parameters of one kind.
  subroutine make_table(self, kind, topology)
    type(bonded_t), intent(inout) :: self
    integer, intent(in) :: kind
    type(topology_t), intent(in) :: topology
    integer :: t, n
    associate (table => self%table(kind))
      allocate (table%before(size(topology%templates)))
      n = 0
      do t = 1, size(topology%templates)
        table%before(t) = n
        n = n + size(topology%templates(t)%terms(kind)%atom, 2)
      end do
      allocate (table%parameter(max(4, kind_columns(kind)), n), source=0.0_real64)
      do t = 1, size(topology%templates)
        associate (given => topology%templates(t)%terms(kind)%parameter)
          table%parameter(:size(given, 1), table%before(t) + 1:table%before(t) + size(given, 2)) = given
        end associate
      end do
      if (kind == is_dihedral) table%parameter(3:, :) = reshape([cos(table%parameter(3, :)), sin(table%parameter(3, :))], &
                                                                [2, n], order=[2, 1])
      if (kind == is_pair14) table%parameter(1, :) = self%coulomb_constant*table%parameter(1, :)
    end associate
  end subroutine make_table

  !> Take the parameters of all terms anew.
  subroutine take_parameters(self, topology)
    class(bonded_t), intent(inout) :: self
    type(topology_t), intent(in) :: topology
    integer :: kind
    do kind = 1, n_kinds - 1
      if (.not. allocated(self%table(kind)%before)) cycle
      deallocate (self%table(kind)%before, self%table(kind)%parameter)
      call make_table(self, kind, topology)
    end do
  end subroutine take_parameters

  subroutine assign_kind(self, kind, topology, atoms, map, grid, by_middle)
    type(bonded_t), intent(inout) :: self
    integer, intent(in) :: kind
    type(topology_t), intent(in) :: topology
    type(atoms_t), intent(in) :: atoms
    type(id_map_t), intent(in) :: map
    type(domain_grid_t), intent(in) :: grid
    logical, intent(in) :: by_middle
    type(part_t) :: part((atoms%n_owned + atoms_per_part - 1)/atoms_per_part)
    integer :: p, i, a, entry, t, place, n, n_with, local(kind_width(kind))
    logical :: mine

    !$omp parallel do schedule(dynamic) private(i, a, entry, t, place, local, mine)
    do p = 1, size(part)
      allocate (part(p)%entry(kind_width(kind) + 1, 1024))
      do i = (p - 1)*atoms_per_part + 1, min(atoms%n_owned, p*atoms_per_part)
        a = atoms%index_in_template(atoms%kind(i))
        associate (terms => topology%templates(atoms%template(atoms%kind(i)))%terms(kind))
          do entry = terms%first_of_atom(a), terms%first_of_atom(a + 1) - 1
            t = terms%term_of_atom(entry)
            if (self%rigid .and. terms%rigid(t)) cycle
            place = findloc(terms%atom(:, t), a, dim=1)
            call find_term(topology, atoms, map, grid, i, kind, t, place, by_middle, local, mine)
            if (mine) call part(p)%append([local, self%table(kind)%before(atoms%template(atoms%kind(i))) + t])
          end do
        end associate
      end do
    end do
    !$omp end parallel do
    associate (mine_terms => self%terms(kind), width => kind_width(kind))
      mine_terms%n = sum(part%n)
      if (allocated(mine_terms%atom)) deallocate (mine_terms%atom, mine_terms%row)
      allocate (mine_terms%atom(width, mine_terms%n), mine_terms%row(mine_terms%n))
      mine_terms%n_without_ghosts = 0
      do p = 1, size(part)
        do i = 1, part(p)%n
          if (.not. any(part(p)%entry(:width, i) > atoms%n_owned)) &
            mine_terms%n_without_ghosts = mine_terms%n_without_ghosts + 1
        end do
      end do
      ! Those without ghosts come first.
      n = 0
      n_with = mine_terms%n_without_ghosts
      do p = 1, size(part)
        do i = 1, part(p)%n
          if (any(part(p)%entry(:width, i) > atoms%n_owned)) then
            n_with = n_with + 1
            t = n_with
          else
            n = n + 1
            t = n
          end if
          mine_terms%atom(:, t) = part(p)%entry(:width, i)
          mine_terms%row(t) = part(p)%entry(width + 1, i)
        end do
        deallocate (part(p)%entry)
      end do
    end associate
  end subroutine assign_kind

  !> Add an entry.
  pure subroutine append(self, values)
    class(part_t), intent(inout) :: self
    integer, intent(in) :: values(:)
    integer, allocatable :: bigger(:, :)
    if (self%n == size(self%entry, 2)) then
      allocate (bigger(size(self%entry, 1), 2*self%n))
      bigger(:, :self%n) = self%entry
      call move_alloc(bigger, self%entry)
    end if
    self%n = self%n + 1
    self%entry(:, self%n) = values
  end subroutine append

  !> Exclusions: owned-owned pairs under both atoms, owned-ghost pairs under the owned one; in the midpoint method this
  !> rank's pairs under both atoms. `n_pairs` counts pairs once.
  subroutine assign_exclusions(self, topology, atoms, map, grid, ownership, n_pairs)
    type(bonded_t), intent(inout) :: self
    type(topology_t), intent(in) :: topology
    type(atoms_t), intent(in) :: atoms
    type(id_map_t), intent(in) :: map
    type(domain_grid_t), intent(in) :: grid
    type(pair_ownership_t), intent(in) :: ownership
    integer, intent(out) :: n_pairs
    type(part_t), allocatable :: part(:)
    integer :: p, i, a, entry, t, place, n, other, pairs, n_rows

    n_rows = merge(atoms%n_total, atoms%n_owned, ownership%is_on)
    allocate (part((n_rows + atoms_per_part - 1)/atoms_per_part))
    if (allocated(self%exclusion_first)) deallocate (self%exclusion_first, self%exclusion_partner)
    allocate (self%exclusion_first(n_rows + 1))
    pairs = 0
    !$omp parallel do schedule(dynamic) private(i, a, entry, t, place, other) reduction(+: pairs)
    do p = 1, size(part)
      allocate (part(p)%entry(1, 4*atoms_per_part))
      do i = (p - 1)*atoms_per_part + 1, min(n_rows, p*atoms_per_part)
        ! Counted within the part at first.
        self%exclusion_first(i) = part(p)%n + 1
        a = atoms%index_in_template(atoms%kind(i))
        associate (template => topology%templates(atoms%template(atoms%kind(i))))
          do entry = template%terms(is_exclusion)%first_of_atom(a), &
                     template%terms(is_exclusion)%first_of_atom(a + 1) - 1
            t = template%terms(is_exclusion)%term_of_atom(entry)
            place = 1
            if (template%terms(is_exclusion)%atom(1, t) == a) place = 2
            other = template%terms(is_exclusion)%atom(place, t) - a
            if (template%n_groups == 1) then
              other = i + other
            else
              other = map%first_copy(atoms%id(i) + other)
              do while (other > 0)
                if (all(abs(grid%straight(atoms%position(:, other) - atoms%position(:, i))) < 0.5_real64*grid%box)) exit
                other = map%next_copy(other)
              end do
              if (other == 0) cycle
            end if
            if (ownership%is_on) then
              if (.not. ownership%owns(i, other)) cycle
            end if
            call part(p)%append([other])
            if (other > i) pairs = pairs + 1
          end do
        end associate
      end do
    end do
    !$omp end parallel do
    n_pairs = pairs
    n = sum(part%n)
    allocate (self%exclusion_partner(n))
    n = 0
    do p = 1, size(part)
      associate (first => (p - 1)*atoms_per_part + 1, last => min(n_rows, p*atoms_per_part))
        self%exclusion_first(first:last) = self%exclusion_first(first:last) + n
      end associate
      self%exclusion_partner(n + 1:n + part(p)%n) = part(p)%entry(1, :part(p)%n)
      n = n + part(p)%n
    end do
    self%exclusion_first(n_rows + 1) = n + 1
  end subroutine assign_exclusions

  !> Add the forces of all terms, or of those of one part or of some `kinds`, to `force(3, n_total)`; energies (kcal/mol) and virial (sum of
  !> r f, kcal/mol) of them on this rank. Blocks are computed side by side and added one after the other.
  subroutine compute(self, position, force, energy, virial, part, kinds)
    class(bonded_t), intent(in) :: self
    real(real64), contiguous, intent(in) :: position(:, :)
    real(real64), contiguous, intent(inout) :: force(:, :)
    real(real64), intent(out) :: energy(n_bonded_energies), virial(3, 3)
    integer, intent(in), optional :: part
    logical, intent(in), optional :: kinds(n_kinds - 1)
    type(block_t), allocatable :: block(:)
    type(turns_t) :: turns
    integer :: b

    call cut_blocks(self, block, part, kinds)
    call turns%open(1, size(block))
    !$omp parallel do schedule(monotonic: dynamic)
    do b = 1, size(block)
      call compute_block(self, position, block(b))
      call turns%complete(b)
      do
        call add_complete(self, turns, block, force)
        if (.not. turns%is_far_ahead(b, most_waiting)) exit
      end do
    end do
    !$omp end parallel do
    call add_complete(self, turns, block, force)
    call turns%close()
    energy = 0.0_real64
    virial = 0.0_real64
    do b = 1, size(block)
      associate (kind => block(b)%kind)
        energy(energy_of(kind)) = energy(energy_of(kind)) + block(b)%energy(1)
        if (kind == is_pair14) energy(kind + 1) = energy(kind + 1) + block(b)%energy(2)
      end associate
      virial = virial + block(b)%virial
    end do
  end subroutine compute

  !> Which of the energies a kind of terms has.
  pure integer function energy_of(kind)
    integer, intent(in) :: kind
    energy_of = kind
    if (kind == is_gaussian) energy_of = is_dihedral
  end function energy_of

  !> The terms, or those of one part or of some kinds, in blocks of one kind each.
  pure subroutine cut_blocks(self, block, part, kinds)
    type(bonded_t), intent(in) :: self
    type(block_t), allocatable, intent(out) :: block(:)
    integer, intent(in), optional :: part
    logical, intent(in), optional :: kinds(n_kinds - 1)
    integer :: kind, b, n, first(n_kinds - 1), last(n_kinds - 1)

    first = 1
    last = self%terms%n
    if (present(part)) then
      if (part == without_ghosts) last = self%terms%n_without_ghosts
      if (part == with_ghosts) first = self%terms%n_without_ghosts + 1
    end if
    if (present(kinds)) last = merge(last, first - 1, kinds)
    allocate (block(sum((last - first + block_size)/block_size)))
    n = 0
    do kind = 1, n_kinds - 1
      do b = first(kind), last(kind), block_size
        n = n + 1
        block(n)%kind = kind
        block(n)%first = b
        block(n)%last = min(last(kind), b + block_size - 1)
      end do
    end do
  end subroutine cut_blocks

  subroutine compute_block(self, position, block)
    type(bonded_t), intent(in) :: self
    real(real64), contiguous, intent(in) :: position(:, :)
    type(block_t), intent(inout) :: block
    integer :: n

    associate (terms => self%terms(block%kind), width => kind_width(block%kind), first => block%first, last => block%last)
      n = last - first + 1
      allocate (block%force(3, width, n))
      call sum_terms(block%kind, width, n, terms%atom(:, first:last), terms%row(first:last), &
                     self%table(block%kind)%parameter, self%cmap, self%rounding, self%solvent, &
                     position, block%force, block%energy, block%virial)
    end associate
  end subroutine compute_block

  !> Add the forces of the blocks whose turn has come.
  subroutine add_complete(self, turns, block, force)
    type(bonded_t), intent(in) :: self
    type(turns_t), intent(inout) :: turns
    type(block_t), intent(inout) :: block(:)
    real(real64), contiguous, intent(inout) :: force(:, :)
    integer :: t, k

    if (.not. turns%begin()) return
    do while (turns%has_next())
      associate (added => block(turns%next))
        do t = 1, size(added%force, 3)
          do k = 1, size(added%force, 2)
            associate (i => self%terms(added%kind)%atom(k, added%first + t - 1))
              force(:, i) = force(:, i) + ((added%force(:, k, t) + self%rounding%force) - self%rounding%force)
            end associate
          end do
        end do
        deallocate (added%force)
      end associate
      call turns%advance()
    end do
    call turns%finish()
  end subroutine add_complete

end module bonded
