!> The atoms of one domain, taken from the bricks that touch it, or from restart files of another grid of domains.
module setup
  use base_kinds, only: int64, real64
  use atoms, only: atoms_t
  use brick_cache, only: brick_cache_t
  use bricks, only: brick_list_t
  use comm_domain_grid, only: domain_grid_t
  use base_error, only: error_t, exit_corrupt_file, fail
  use base_random, only: maxwell_velocities
  use restart, only: restart_t
  use base_text, only: to_text, with_rank
  use topology, only: topology_t
  implicit none
  private
  public :: read_domain, read_saved_domain, draw_velocities

  !> A residue lies in the brick of its first heavy atom; its other atoms are at most this far from it (angstrom). Where
  !> one reaches farther, no domain may find its groups: `start_from_bricks` and `set_up_domains` count and refuse.
  real(real64), parameter :: residue_reach = 25.0_real64
  !> The atoms of a restart file were sorted into its domain when it was written; rounding may put one on the border.
  real(real64), parameter :: saved_reach = 0.01_real64

contains

  !> Read the constraint groups whose reference atom lies in domain `domain` of `grid`: global ids (group after group)
  !> and unbroken positions (3, atoms; angstrom). Only bricks that touch the domain are read, one at a time; `n_read`:
  !> how many touch it. `origin`, if given: where that of the bricks lies in the grid's box (angstrom); positions count from
  !> the bricks' all the same. `cache`: bricks of the domains before.
  subroutine read_domain(grid, domain, topology, list, id, position, n_read, error, origin, cache)
    type(domain_grid_t), intent(in) :: grid
    integer, intent(in) :: domain
    type(topology_t), intent(in) :: topology
    type(brick_list_t), intent(in) :: list
    integer(int64), allocatable, intent(out) :: id(:)
    real(real64), allocatable, intent(out) :: position(:, :)
    integer, intent(out) :: n_read
    type(error_t), allocatable, intent(out) :: error
    real(real64), intent(in), optional :: origin(3)
    type(brick_cache_t), intent(inout), target, optional :: cache
    type(brick_cache_t), target :: own_cache
    type(brick_cache_t), pointer :: kept
    real(real64) :: shift(3)
    integer :: b, n, place

    kept => own_cache
    if (present(cache)) kept => cache
    shift = 0.0_real64
    if (present(origin)) shift = origin
    allocate (id(4096), position(3, 4096))
    n = 0
    n_read = 0
    do b = 1, list%n_bricks
      if (.not. touches(grid, list%lower(:, b) + shift, list%upper(:, b) + shift, residue_reach)) cycle
      n_read = n_read + 1
      call kept%fetch(list, b, place, error)
      if (.not. allocated(error)) &
        call keep_groups(domain, grid, topology, shift, kept%brick(place)%id, kept%brick(place)%position, n, id, position, &
                         error)
      if (allocated(error)) exit
    end do
    id = id(:n)
    position = position(:, :n)
  end subroutine read_domain

  !> The same from the `n_saved` restart files `name` of another grid, with velocities and state; `first` is the
  !> state in the file of rank 0, without atoms. Only files whose domain touches this one are read.
  subroutine read_saved_domain(grid, domain, topology, name, first, n_saved, saved, error)
    type(domain_grid_t), intent(in) :: grid
    integer, intent(in) :: domain, n_saved
    type(topology_t), intent(in) :: topology
    character(len=*), intent(in) :: name
    type(restart_t), intent(in) :: first
    type(restart_t), intent(out) :: saved
    type(error_t), allocatable, intent(out) :: error
    type(restart_t) :: old
    type(domain_grid_t) :: saved_grid
    integer :: r, c(3), n, axis

    saved_grid%dims = first%dims
    saved_grid%filled = grid%filled
    saved = first
    saved%dims = grid%dims
    allocate (saved%id(4096), saved%position(3, 4096), saved%velocity(3, 4096))
    n = 0
    do r = 0, n_saved - 1
      c = [mod(r, first%dims(1)), mod(r/first%dims(1), first%dims(2)), r/(first%dims(1)*first%dims(2))]
      if (.not. touches(grid, grid%box*[(saved_grid%even_border(axis, c(axis)), axis=1, 3)], &
                        grid%box*[(saved_grid%even_border(axis, c(axis) + 1), axis=1, 3)], saved_reach)) cycle
      call old%read(name, r, n_saved, error)
      if (allocated(error)) return
      if (old%step /= first%step .or. old%n_system /= first%n_system .or. any(old%dims /= first%dims)) then
        call fail(error, exit_corrupt_file, with_rank(name, r)// &
                  ": is of another step or run than the file of rank 0; start from another restart")
        return
      end if
      call keep_saved_groups(domain, grid, topology, old, n, saved)
    end do
    saved%id = saved%id(:n)
    saved%position = saved%position(:, :n)
    saved%velocity = saved%velocity(:, :n)
  end subroutine read_saved_domain

  !> Whether a part of the box, straight, comes within `reach` of this domain, across the periodic faces too.
  pure logical function touches(grid, lower, upper, reach)
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(in) :: lower(3), upper(3), reach
    real(real64) :: depth(3)
    logical :: along(3)
    integer :: image
    along = .false.
    depth = grid%depth([reach, reach, reach])
    do image = -1, 1
      along = along .or. (lower + image*grid%box < grid%upper + depth .and. &
                          upper + image*grid%box > grid%lower - depth)
    end do
    touches = all(along)
  end function touches

  !> Append the groups of a brick that the domain owns. `origin`: of the brick's positions in the box.
  subroutine keep_groups(domain, grid, topology, origin, brick_id, brick_position, n, id, position, error)
    integer, intent(in) :: domain
    type(domain_grid_t), intent(in) :: grid
    type(topology_t), intent(in) :: topology
    real(real64), intent(in) :: origin(3)
    integer(int64), intent(in) :: brick_id(:)
    real(real64), intent(in) :: brick_position(:, :)
    integer, intent(inout) :: n
    integer(int64), allocatable, intent(inout) :: id(:)
    real(real64), allocatable, intent(inout) :: position(:, :)
    type(error_t), allocatable, intent(out) :: error
    real(real64) :: reference(3), apart(3), centre(3), reach(3)
    integer(int64) :: first_id, member
    integer :: i, j, k, t, atom, group, needed

    centre = 0.5_real64*(grid%lower + grid%upper) - origin
    reach = 0.5_real64*(grid%upper - grid%lower) + grid%depth([saved_reach, saved_reach, saved_reach])
    do i = 1, size(brick_id)
      ! Most atoms of a brick are far from the domain: the cheap test first.
      apart = grid%straight(brick_position(:, i)) - centre
      if (any(abs(apart - grid%box*anint(apart/grid%box)) > reach)) cycle
      call topology%locate(brick_id(i), t, atom, first_id)
      associate (template => topology%templates(t))
        group = template%group_of_atom(atom)
        if (template%group_reference(group) /= atom) cycle
        reference = brick_position(:, i)
        reference = reference + grid%wrap_shift(reference + origin)
        if (grid%rank_of(grid%domain_of(grid%straight(reference + origin))) /= domain) cycle
        needed = n + template%group_first(group + 1) - template%group_first(group)
        if (needed > size(id)) then
          call grow_ids(id, n, needed)
          call grow_vectors(position, n, needed)
        end if
        do k = template%group_first(group), template%group_first(group + 1) - 1
          member = first_id + template%group_atom(k) - 1
          j = position_in(brick_id, member, i)
          if (j == 0) then
            call fail(error, exit_corrupt_file, "atom "//to_text(member)// &
                      " (counted from 0) is not in the brick of the heavy atom "//to_text(brick_id(i))// &
                      " it is bound to: the shards are damaged or of another topology")
            return
          end if
          n = n + 1
          id(n) = member
          apart = brick_position(:, j) - brick_position(:, i)
          position(:, n) = reference + grid%nearest_image(apart)
        end do
      end associate
    end do
  end subroutine keep_groups

  !> Append the groups of a restart file that the domain owns.
  subroutine keep_saved_groups(domain, grid, topology, old, n, saved)
    integer, intent(in) :: domain
    type(domain_grid_t), intent(in) :: grid
    type(topology_t), intent(in) :: topology
    type(restart_t), intent(in) :: old
    integer, intent(inout) :: n
    type(restart_t), intent(inout) :: saved
    type(atoms_t) :: groups
    real(real64) :: shift(3)
    integer :: g, i, last

    groups%id = old%id
    call groups%identify_owned(topology)
    do g = 1, groups%n_groups
      associate (reference => old%position(:, groups%group_reference(g)))
        shift = grid%wrap_shift(reference)
        if (grid%rank_of(grid%domain_of(grid%straight(reference + shift))) /= domain) cycle
      end associate
      last = groups%group_first(g + 1) - 1
      if (n + last - groups%group_first(g) + 1 > size(saved%id)) then
        call grow_ids(saved%id, n, n + last - groups%group_first(g) + 1)
        call grow_vectors(saved%position, n, size(saved%id))
        call grow_vectors(saved%velocity, n, size(saved%id))
      end if
      do i = groups%group_first(g), last
        n = n + 1
        saved%id(n) = old%id(i)
        saved%position(:, n) = old%position(:, i) + shift
        saved%velocity(:, n) = old%velocity(:, i)
      end do
    end do
  end subroutine keep_saved_groups

  !> Room for `needed` ids or more; the first `n` are kept.
  subroutine grow_ids(id, n, needed)
    integer(int64), allocatable, intent(inout) :: id(:)
    integer, intent(in) :: n, needed
    integer(int64), allocatable :: larger(:)
    allocate (larger(needed + needed/2))
    larger(:n) = id(:n)
    call move_alloc(larger, id)
  end subroutine grow_ids

  !> Room for `needed` vectors or more; the first `n` are kept.
  subroutine grow_vectors(vector, n, needed)
    real(real64), allocatable, intent(inout) :: vector(:, :)
    integer, intent(in) :: n, needed
    real(real64), allocatable :: larger(:, :)
    allocate (larger(3, needed + needed/2))
    larger(:, :n) = vector(:, :n)
    call move_alloc(larger, vector)
  end subroutine grow_vectors

  !> Index of an id in the ascending list, searched outward from `start` (members of a group are near each other); 0 =
  !> absent.
  pure integer function position_in(list, id, start)
    integer(int64), intent(in) :: list(:), id
    integer, intent(in) :: start
    position_in = start
    do while (list(position_in) < id)
      position_in = position_in + 1
      if (position_in > size(list)) exit
    end do
    if (position_in > size(list)) then
      position_in = 0
      return
    end if
    do while (list(position_in) > id)
      position_in = position_in - 1
      if (position_in == 0) return
    end do
    if (list(position_in) /= id) position_in = 0
  end function position_in

  !> Maxwell velocities (angstrom/ps), the same whatever the domains.
  subroutine draw_velocities(seed, temperature, topology, id, velocity)
    integer(int64), intent(in) :: seed
    real(real64), intent(in) :: temperature
    type(topology_t), intent(in) :: topology
    integer(int64), intent(in) :: id(:)
    real(real64), intent(out) :: velocity(:, :)
    real(real64), allocatable :: mass(:)
    integer(int64) :: origin
    integer :: i, t, atom
    allocate (mass(size(id)))
    do i = 1, size(id)
      call topology%locate(id(i), t, atom, origin)
      mass(i) = topology%templates(t)%mass(atom)
    end do
    call maxwell_velocities(seed, id, mass, temperature, velocity)
  end subroutine draw_velocities

end module setup
