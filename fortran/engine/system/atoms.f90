!> The atoms of a rank: owned atoms first, in constraint groups, then ghosts.
module atoms
  use base_kinds, only: int64, real32, real64
  use base_counting_sort, only: counting_sort
  use comm_domain_grid, only: domain_grid_t
  use bounding_box, only: find_bounds
  use base_fixed_point, only: rounding_t
  use topology, only: topology_t
  implicit none
  private
  public :: atoms_t, hold

  type :: atoms_t
    integer :: n_owned = 0, n_total = 0
    !> Global ids from 0.
    integer(int64), allocatable :: id(:)
    !> (3, n_total): angstrom; kcal/mol/angstrom.
    real(real64), allocatable :: position(:, :), force(:, :)
    !> Owned atoms only: (3, n_owned), angstrom/ps.
    real(real64), allocatable :: velocity(:, :)
    !> What half a kick changes of the velocities of the owned atoms, with forces of constraints, and the share of its
    !> energy that kinetic energies lack at whole steps: see module half_kick. (3, n_owned), angstrom/ps.
    real(real64), allocatable :: half_kick(:, :)
    real(real64) :: kick_share = 0.0_real64
    !> It is that of the present forces, and of these velocities or those that thermostat and barostat took.
    logical :: half_kick_is_known = .false.
    !> Anything else that goes with the owned atoms to new owners and into a new order, if allocated: (numbers, n_owned).
    real(real64), allocatable :: carried(:, :)
    !> Where positional restraints hold the owned atoms, if there are any: (4, n_owned), see module anchors.
    real(real64), allocatable :: anchor(:, :)
    !> Which of the owned atoms do not move, if there are any.
    logical, allocatable :: fixed(:)
    !> Which of the atoms of all templates each atom is.
    integer, allocatable :: kind(:)
    !> What there is to know of each kind: mass (atomic mass unit), charge (e), type, template and index in it; and kinds
    !> before those of each template.
    real(real64), allocatable :: mass(:), charge(:)
    integer, allocatable :: lj_type(:), template(:), index_in_template(:), kinds_before(:)
    !> Owned groups: atoms `group_first(g):group_first(g+1)-1`, owner decided by atom `group_reference(g)`.
    integer :: n_groups = 0
    integer, allocatable :: group_first(:), group_reference(:)
    !> How positions and sums over atoms are rounded.
    type(rounding_t) :: rounding
  contains
    procedure :: take_parameters
    procedure :: identify_owned
    procedure :: add_ghosts
    procedure :: wrap
    procedure :: in_box
    procedure :: sort
    procedure :: group_extent
    procedure :: is_fixed
    procedure :: has_fixed
    procedure :: put_on_lattice
  end type atoms_t

contains

  !> From the ids alone, find groups and properties of the owned atoms (ids of a group stand together, ascending).
  subroutine identify_owned(self, topology)
    class(atoms_t), intent(inout) :: self
    type(topology_t), intent(in) :: topology
    integer :: i, pass, group, t, index
    integer(int64) :: origin, previous_origin
    integer :: previous_group

    self%n_owned = size(self%id)
    self%n_total = self%n_owned
    if (.not. allocated(self%kinds_before)) call list_kinds(self, topology)
    call resize(self, topology, 0)
    do pass = 1, 2
      self%n_groups = 0
      previous_group = -1
      previous_origin = -1
      do i = 1, self%n_owned
        t = self%template(self%kind(i))
        index = self%index_in_template(self%kind(i))
        origin = self%id(i) - index + 1
        group = topology%templates(t)%group_of_atom(index)
        if (group /= previous_group .or. origin /= previous_origin) then
          self%n_groups = self%n_groups + 1
          previous_group = group
          previous_origin = origin
          if (pass == 2) self%group_first(self%n_groups) = i
        end if
        if (pass == 2) then
          if (topology%templates(t)%group_reference(group) == index) &
            self%group_reference(self%n_groups) = i
        end if
      end do
      if (pass == 1) then
        if (allocated(self%group_first)) deallocate (self%group_first, self%group_reference)
        allocate (self%group_first(self%n_groups + 1), self%group_reference(self%n_groups))
      end if
    end do
    self%group_first(self%n_groups + 1) = self%n_owned + 1
  end subroutine identify_owned

  !> Take the properties of all kinds of atoms from the topology.
  subroutine list_kinds(self, topology)
    class(atoms_t), intent(inout) :: self
    type(topology_t), intent(in) :: topology
    integer :: t, n, a
    allocate (self%kinds_before(size(topology%templates)))
    n = 0
    do t = 1, size(topology%templates)
      self%kinds_before(t) = n
      n = n + topology%templates(t)%n_atoms
    end do
    allocate (self%mass(n), self%charge(n), self%lj_type(n), self%template(n), self%index_in_template(n))
    do t = 1, size(topology%templates)
      associate (template => topology%templates(t), first => self%kinds_before(t) + 1, &
                 last => self%kinds_before(t) + topology%templates(t)%n_atoms)
        self%mass(first:last) = template%mass(:template%n_atoms)
        self%charge(first:last) = template%charge(:template%n_atoms)
        self%lj_type(first:last) = template%lj_type(:template%n_atoms)
        self%template(first:last) = t
        self%index_in_template(first:last) = [(a, a=1, template%n_atoms)]
      end associate
    end do
  end subroutine list_kinds

  !> Take charges and types of all kinds of atoms anew, after they changed in the topology.
  subroutine take_parameters(self, topology)
    class(atoms_t), intent(inout) :: self
    type(topology_t), intent(in) :: topology
    integer :: t
    if (.not. allocated(self%charge)) return
    do t = 1, size(topology%templates)
      associate (template => topology%templates(t), first => self%kinds_before(t) + 1, &
                 last => self%kinds_before(t) + topology%templates(t)%n_atoms)
        self%charge(first:last) = template%charge(:template%n_atoms)
        self%lj_type(first:last) = template%lj_type(:template%n_atoms)
      end associate
    end do
  end subroutine take_parameters

  !> Find the kinds of atoms `first+1:n_total` from their ids.
  subroutine resize(self, topology, first)
    class(atoms_t), intent(inout) :: self
    type(topology_t), intent(in) :: topology
    integer, intent(in) :: first
    integer, allocatable :: kind(:)
    integer(int64) :: origin
    integer :: i, template, index
    allocate (kind(self%n_total))
    if (first > 0) kind(:first) = self%kind
    !$omp parallel do schedule(static) private(template, index, origin)
    do i = first + 1, self%n_total
      call topology%locate(self%id(i), template, index, origin)
      kind(i) = self%kinds_before(template) + index
    end do
    !$omp end parallel do
    call move_alloc(kind, self%kind)
  end subroutine resize

  !> Append ghosts behind the owned atoms (any earlier ghosts must be gone).
  !> `ghost_id`: global; `ghost_position`: (3, ghosts), angstrom.
  subroutine add_ghosts(self, topology, ghost_id, ghost_position)
    class(atoms_t), intent(inout) :: self
    type(topology_t), intent(in) :: topology
    integer(int64), intent(in) :: ghost_id(:)
    real(real64), intent(in) :: ghost_position(:, :)
    integer(int64), allocatable :: id(:)
    real(real64), allocatable :: position(:, :)
    self%n_total = self%n_owned + size(ghost_id)
    allocate (id(self%n_total), position(3, self%n_total))
    id(:self%n_owned) = self%id(:self%n_owned)
    id(self%n_owned + 1:) = ghost_id
    position(:, :self%n_owned) = self%position(:, :self%n_owned)
    position(:, self%n_owned + 1:) = ghost_position
    call move_alloc(id, self%id)
    call move_alloc(position, self%position)
    call resize(self, topology, self%n_owned)
  end subroutine add_ghosts

  !> Round the positions of the owned atoms, where they are rounded at all.
  subroutine put_on_lattice(self)
    class(atoms_t), intent(inout) :: self
    integer :: i
    if (.not. self%rounding%is_on()) return
    !$omp parallel do schedule(static)
    do i = 1, self%n_owned
      self%position(:, i) = self%rounding%on_lattice(self%position(:, i))
    end do
    !$omp end parallel do
  end subroutine put_on_lattice

  !> Drop ghosts and bring every owned group back into the box, whole: its reference atom lies, straight, in [0, box).
  subroutine wrap(self, grid)
    class(atoms_t), intent(inout) :: self
    type(domain_grid_t), intent(in) :: grid
    real(real64) :: shift(3)
    integer :: g, i
    self%n_total = self%n_owned
    self%id = self%id(:self%n_owned)
    self%position = self%position(:, :self%n_owned)
    do g = 1, self%n_groups
      shift = grid%wrap_shift(self%position(:, self%group_reference(g)))
      if (all(shift == 0.0_real64)) cycle
      do i = self%group_first(g), self%group_first(g + 1) - 1
        self%position(:, i) = self%position(:, i) + shift
      end do
    end do
  end subroutine wrap

  !> Positions of the owned atoms, (3, n_owned), as `wrap` would leave them, from `origin` (angstrom): where they stand in
  !> a frame does not depend on when they were last wrapped.
  subroutine in_box(self, grid, origin, position)
    class(atoms_t), intent(in) :: self
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(in) :: origin(3)
    real(real32), allocatable, intent(out) :: position(:, :)
    real(real64) :: shift(3)
    integer :: g, i
    allocate (position(3, self%n_owned))
    !$omp parallel do schedule(static) private(i, shift)
    do g = 1, self%n_groups
      shift = grid%wrap_shift(self%position(:, self%group_reference(g)))
      do i = self%group_first(g), self%group_first(g + 1) - 1
        position(:, i) = real(self%position(:, i) + shift - origin, real32)
      end do
    end do
    !$omp end parallel do
  end subroutine in_box

  !> Put owned groups in an order that depends only on where they are and who they are, not on their past: cells along
  !> z, y, x, then global id. Neighbours in space become neighbours in memory, and a continued run sees the same order.
  !> Cells are as wide as `cell_size` (angstrom) or wider; those beyond the atoms take no memory.
  subroutine sort(self, grid, cell_size)
    class(atoms_t), intent(inout) :: self
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(in) :: cell_size
    integer, allocatable :: cell(:), order(:), first_in_cell(:), new_atom(:)
    integer(int64), allocatable :: group_id(:)
    real(real64), allocatable :: straight(:, :)
    real(real64) :: bounds(3, 2)
    integer :: across(3), lowest(3), n_cells(3), c(3), g, i, n

    if (self%n_groups == 0) return
    across = max(1, floor((grid%upper - grid%lower)/cell_size))
    if (grid%shape%leans) then
      allocate (straight(3, self%n_groups))
      do g = 1, self%n_groups
        straight(:, g) = grid%straight(self%position(:, self%group_reference(g)))
      end do
      call find_bounds(straight, bounds(:, 1), bounds(:, 2))
    else
      call find_bounds(self%position, bounds(:, 1), bounds(:, 2))
    end if
    lowest = cell_of(bounds(:, 1))
    n_cells = cell_of(bounds(:, 2)) - lowest + 1
    allocate (cell(self%n_groups))
    do g = 1, self%n_groups
      c = cell_of(grid%straight(self%position(:, self%group_reference(g)))) - lowest
      cell(g) = c(1) + n_cells(1)*(c(2) + n_cells(2)*c(3)) + 1
    end do
    call counting_sort(cell, product(n_cells), order, first_in_cell)
    group_id = self%id(self%group_first(:self%n_groups))
    !$omp parallel do schedule(dynamic, 64)
    do i = 1, product(n_cells)
      call insertion_sort(group_id, order(first_in_cell(i):first_in_cell(i + 1) - 1))
    end do
    !$omp end parallel do
    allocate (new_atom(self%n_owned))
    n = 0
    do g = 1, self%n_groups
      do i = self%group_first(order(g)), self%group_first(order(g) + 1) - 1
        n = n + 1
        new_atom(n) = i
      end do
    end do
    self%id = self%id(new_atom)
    self%position = self%position(:, new_atom)
    self%velocity = self%velocity(:, new_atom)
    if (allocated(self%carried)) self%carried = self%carried(:, new_atom)
    if (allocated(self%anchor)) self%anchor = self%anchor(:, new_atom)
    if (allocated(self%fixed)) self%fixed = self%fixed(new_atom)

  contains

    !> Where a straight position (angstrom) lies among the cells of the domain.
    pure function cell_of(position) result(place)
      real(real64), intent(in) :: position(3)
      integer :: place(3)
      place = max(0, min(across - 1, floor((position - grid%lower)/(grid%upper - grid%lower)*across)))
    end function cell_of

  end subroutine sort

  !> Sort the few groups of one cell by global id.
  pure subroutine insertion_sort(id, order)
    integer(int64), intent(in) :: id(:)
    integer, intent(inout) :: order(:)
    integer :: i, j, moving
    do i = 2, size(order)
      moving = order(i)
      j = i - 1
      do while (j >= 1)
        if (id(order(j)) <= id(moving)) exit
        order(j + 1) = order(j)
        j = j - 1
      end do
      order(j + 1) = moving
    end do
  end subroutine insertion_sort

  !> Largest distance (angstrom) of an owned atom from the reference atom of its group.
  real(real64) function group_extent(self)
    class(atoms_t), intent(in) :: self
    real(real64) :: largest2
    integer :: g, i
    largest2 = 0.0_real64
    !$omp parallel do schedule(static) private(i) reduction(max: largest2)
    do g = 1, self%n_groups
      do i = self%group_first(g), self%group_first(g + 1) - 1
        largest2 = max(largest2, sum((self%position(:, i) - self%position(:, self%group_reference(g)))**2))
      end do
    end do
    !$omp end parallel do
    group_extent = sqrt(largest2)
  end function group_extent

  !> Whether an owned atom does not move.
  pure logical function is_fixed(self, i)
    class(atoms_t), intent(in) :: self
    integer, intent(in) :: i
    is_fixed = self%has_fixed(i, i)
  end function is_fixed

  !> Whether any of these owned atoms does not move.
  pure logical function has_fixed(self, first, last)
    class(atoms_t), intent(in) :: self
    integer, intent(in) :: first, last
    has_fixed = .false.
    if (allocated(self%fixed)) has_fixed = any(self%fixed(first:last))
  end function has_fixed

  !> Take velocities, or forces, from atoms that do not move: (3, atoms), owned ones first.
  subroutine hold(fixed, value)
    logical, allocatable, intent(in) :: fixed(:)
    real(real64), intent(inout) :: value(:, :)
    integer :: i
    if (.not. allocated(fixed)) return
    !$omp parallel do schedule(static)
    do i = 1, size(fixed)
      if (fixed(i)) value(:, i) = 0.0_real64
    end do
    !$omp end parallel do
  end subroutine hold

end module atoms
