!> First atoms of a rank, taken from the bricks that touch its domain.
module setup
  use precision, only: int64, real64
  use bricks, only: brick_list_t
  use communicator, only: communicator_t
  use domain_grid, only: domain_grid_t
  use error, only: error_t, exit_corrupt_file, fail
  use random_numbers, only: maxwell_velocity
  use text, only: to_text
  use topology, only: topology_t
  implicit none
  private
  public :: read_domain, draw_velocities

  !> A residue lies in the brick of its first heavy atom; its other atoms are at most this far from it (angstrom).
  real(real64), parameter :: residue_reach = 25.0_real64

contains

  !> Read the constraint groups whose reference atom lies in this rank's domain: global ids (group after group) and
  !> unbroken positions. Fails on all ranks when the ranks together do not hold every atom of the topology once.
  subroutine read_domain(comm, grid, topology, list, id, position, error)
    type(communicator_t), intent(in) :: comm
    type(domain_grid_t), intent(in) :: grid
    type(topology_t), intent(in) :: topology
    type(brick_list_t), intent(in) :: list
    integer(int64), allocatable, intent(out) :: id(:)
    real(real64), allocatable, intent(out) :: position(:, :)
    type(error_t), allocatable, intent(out) :: error
    integer(int64), allocatable :: brick_id(:)
    real(real64), allocatable :: brick_position(:, :)
    integer(int64) :: total(1)
    integer :: b, n

    allocate (id(4096), position(3, 4096))
    n = 0
    do b = 1, list%n_bricks
      if (.not. touches(grid, list%lower(:, b), list%upper(:, b))) cycle
      call list%read_brick(b, brick_id, brick_position, error)
      if (.not. allocated(error)) &
        call keep_groups(comm%rank, grid, topology, brick_id, brick_position, n, id, position, error)
      if (allocated(error)) exit
    end do
    call comm%agree(error)
    if (allocated(error)) return
    id = id(:n)
    position = position(:, :n)
    total = n
    call comm%sum(total)
    if (total(1) /= topology%n_atoms) &
      call fail(error, exit_corrupt_file, "the bricks give "//to_text(total(1))// &
                " atoms to the domains, the topology has "// &
                to_text(topology%n_atoms)//": shards and topology do not belong together")
  end subroutine read_domain

  !> Whether a brick comes within the reach of a residue of this domain, across the periodic faces too.
  pure logical function touches(grid, lower, upper)
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(in) :: lower(3), upper(3)
    logical :: along(3)
    integer :: image
    along = .false.
    do image = -1, 1
      along = along .or. (lower + image*grid%box < grid%upper + residue_reach .and. &
                          upper + image*grid%box > grid%lower - residue_reach)
    end do
    touches = all(along)
  end function touches

  !> Append the groups of a brick that this rank owns.
  subroutine keep_groups(rank, grid, topology, brick_id, brick_position, n, id, position, error)
    integer, intent(in) :: rank
    type(domain_grid_t), intent(in) :: grid
    type(topology_t), intent(in) :: topology
    integer(int64), intent(in) :: brick_id(:)
    real(real64), intent(in) :: brick_position(:, :)
    integer, intent(inout) :: n
    integer(int64), allocatable, intent(inout) :: id(:)
    real(real64), allocatable, intent(inout) :: position(:, :)
    type(error_t), allocatable, intent(out) :: error
    real(real64) :: reference(3), apart(3)
    integer(int64) :: molecule_first, member
    integer :: i, j, k, t, atom, group

    do i = 1, size(brick_id)
      call topology%locate(brick_id(i), t, atom, molecule_first)
      associate (template => topology%templates(t))
        group = template%group_of_atom(atom)
        if (template%group_reference(group) /= atom) cycle
        reference = brick_position(:, i)
        reference = reference + grid%wrap_shift(reference)
        if (grid%rank_of(grid%domain_of(reference)) /= rank) cycle
        if (n + template%n_atoms > size(id)) call grow(id, position, n + template%n_atoms)
        do k = template%group_first(group), template%group_first(group + 1) - 1
          member = molecule_first + template%group_atom(k) - 1
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
          position(:, n) = reference + apart - grid%box*anint(apart/grid%box)
        end do
      end associate
    end do
  end subroutine keep_groups

  !> Room for `needed` atoms or more.
  subroutine grow(id, position, needed)
    integer(int64), allocatable, intent(inout) :: id(:)
    real(real64), allocatable, intent(inout) :: position(:, :)
    integer, intent(in) :: needed
    integer(int64), allocatable :: new_id(:)
    real(real64), allocatable :: new_position(:, :)
    integer :: n
    n = size(id)
    allocate (new_id(needed + needed/2), new_position(3, needed + needed/2))
    new_id(:n) = id
    new_position(:, :n) = position
    call move_alloc(new_id, id)
    call move_alloc(new_position, position)
  end subroutine grow

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
    integer(int64) :: molecule_first
    integer :: i, t, atom
    do i = 1, size(id)
      call topology%locate(id(i), t, atom, molecule_first)
      velocity(:, i) = maxwell_velocity(seed, id(i), topology%templates(t)%mass(atom), temperature)
    end do
  end subroutine draw_velocities

end module setup
