!> Groups of atoms that stay together while the halo is built: which go to the receivers of a round, and what arrives.
module comm_halo_groups
  use base_kinds, only: real64
  use comm_communicator, only: communicator_t
  use comm_domain_grid, only: domain_grid_t
  use comm_halo_pattern, only: staged
  use comm_halo_round, only: round_t
  implicit none
  private
  public :: groups_t, choose_groups, append_groups, running_sum

  !> Groups of atoms in the pool while it is built.
  type :: groups_t
    integer :: n = 0
    !> Reference atoms' straight positions, and offset of the domain that owns the group.
    real(real64), allocatable :: reference(:, :)
    integer, allocatable :: origin(:, :)
    !> Atoms of group g: `first(g):first(g+1)-1` of the pool.
    integer, allocatable :: first(:)
  end type groups_t

contains

  !> The groups for each receiver: `chosen(chosen_first(s):chosen_first(s+1)-1)`, in their order.
  subroutine choose_groups(round, grid, pattern, width, groups, chosen, chosen_first)
    type(round_t), intent(in) :: round
    type(domain_grid_t), intent(in) :: grid
    !> One of comm_halo_pattern; a group goes when its reference atom is within `width` (angstrom) of the receiver's domain.
    integer, intent(in) :: pattern
    real(real64), intent(in) :: width
    type(groups_t), intent(in) :: groups
    integer, allocatable, intent(out) :: chosen(:), chosen_first(:)
    integer :: pass, g, s, n_chosen(round%n_segments), receiver(3), axis
    logical :: near
    real(real64) :: lower(3, round%n_segments), upper(3, round%n_segments), outside(3), room(3), r(3), depth(3)

    depth = grid%depth([width, width, width])
    do s = 1, round%n_segments
      receiver = modulo(grid%coordinate + round%displacement(:, s), grid%dims)
      do axis = 1, 3
        lower(axis, s) = grid%edge(axis, receiver(axis))
        upper(axis, s) = grid%edge(axis, receiver(axis) + 1)
      end do
    end do
    do pass = 1, 2
      n_chosen = 0
      do g = 1, groups%n
        if (pattern /= staged) then
          ! Most groups are far from any face.
          room = min(groups%reference(:, g) - grid%lower, grid%upper - groups%reference(:, g))
          if (all(room > depth)) cycle
        end if
        do s = 1, round%n_segments
          r = groups%reference(:, g) + round%image(:, s)*grid%box
          outside = max(0.0_real64, lower(:, s) - r, r - upper(:, s))
          if (pattern == staged) then
            near = all(outside**2 <= depth**2 .or. round%displacement(:, s) == 0)
          else
            near = grid%is_within(outside, width)
          end if
          if (.not. near) cycle
          if (pass == 2) chosen(chosen_first(s) + n_chosen(s)) = g
          n_chosen(s) = n_chosen(s) + 1
        end do
      end do
      if (pass == 2) exit
      chosen_first = running_sum(n_chosen)
      allocate (chosen(sum(n_chosen)))
    end do
  end subroutine choose_groups

  !> Where runs of these lengths begin when they stand one after the other from 1, and the end.
  pure function running_sum(lengths) result(first)
    integer, intent(in) :: lengths(:)
    integer :: first(size(lengths) + 1), k
    first(1) = 1
    do k = 1, size(lengths)
      first(k + 1) = first(k) + lengths(k)
    end do
  end function running_sum

  !> Exchange what is known of the chosen groups.
  !> `chosen`, `chosen_first`: as `choose_groups` gives them.
  subroutine append_groups(comm, grid, round, chosen, chosen_first, groups)
    type(communicator_t), intent(in) :: comm
    type(domain_grid_t), intent(in) :: grid
    type(round_t), intent(in) :: round
    integer, intent(in) :: chosen(:), chosen_first(:)
    type(groups_t), intent(inout) :: groups
    integer :: arriving(round%n_segments), arrival_first(round%n_segments + 1), s, k, g
    real(real64), allocatable :: out(:, :), in(:, :)
    type(groups_t) :: longer

    call round%count_arrivals(comm, chosen_first(2:) - chosen_first(:round%n_segments), arriving)
    arrival_first = running_sum(arriving)
    allocate (out(7, size(chosen)), in(7, sum(arriving)))
    do s = 1, round%n_segments
      do k = chosen_first(s), chosen_first(s + 1) - 1
        g = chosen(k)
        out(:, k) = [groups%reference(:, g) + round%image(:, s)*grid%box, &
                     real(groups%origin(:, g) - round%displacement(:, s), real64), &
                     real(groups%first(g + 1) - groups%first(g), real64)]
      end do
    end do
    call round%swap_reals(comm, chosen_first, out, arrival_first, in)
    longer%n = groups%n + size(in, 2)
    allocate (longer%reference(3, longer%n), longer%origin(3, longer%n), longer%first(longer%n + 1))
    longer%reference(:, :groups%n) = groups%reference
    longer%origin(:, :groups%n) = groups%origin
    longer%first(:groups%n + 1) = groups%first(:groups%n + 1)
    do k = 1, size(in, 2)
      g = groups%n + k
      longer%reference(:, g) = in(:3, k)
      longer%origin(:, g) = nint(in(4:6, k))
      longer%first(g + 1) = longer%first(g) + nint(in(7, k))
    end do
    groups = longer
  end subroutine append_groups

end module comm_halo_groups
