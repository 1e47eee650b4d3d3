!> Patterns of the halo exchange. HALF: a message from every domain of the half shell (13, or 62 where two domains fit
!> within the halo's width); FULL: from all around (26, 124), of which the half shell is used; STAGED: along x, then y,
!> then z, each round passing on what the ones before brought (6 messages, or 12).
module comm_halo_pattern
  use base_kinds, only: real64
  use comm_domain_grid, only: domain_grid_t
  implicit none
  private
  public :: half, full, staged, pattern_names, wanted_offsets, both_ways, cheapest_pattern

  integer, parameter :: half = 1, full = 2, staged = 3
  character(len=*), parameter :: pattern_names(3) = [character(len=6) :: "HALF", "FULL", "STAGED"]
  !> The model of the pattern: seconds that a round and a message cost, an atom that is copied and one that is sent too
  !> (24 bytes at 5 GB/s), and atoms in a cubic angstrom of a molecular system.
  real(real64), parameter :: round_cost = 2.0e-6_real64, message_cost = 5.0e-7_real64, copy_cost = 5.0e-9_real64, &
                             send_cost = 5.0e-9_real64, density = 0.1_real64

contains

  !> Offsets up to `layers` domains along each axis whose last non-zero component, read z, y, x, is positive.
  pure function half_shell(layers) result(offset)
    integer, intent(in) :: layers(3)
    integer, allocatable :: offset(:, :)
    integer :: x, y, z, n
    allocate (offset(3, (product(2*layers + 1) - 1)/2))
    n = 0
    do z = 0, layers(3)
      do y = merge(0, -layers(2), z == 0), layers(2)
        do x = merge(1, -layers(1), z == 0 .and. y == 0), layers(1)
          n = n + 1
          offset(:, n) = [x, y, z]
        end do
      end do
    end do
  end function half_shell

  !> Offsets that ghosts are wanted from: of the half shell, or of the whole.
  !> (3, offsets) in domains; `layers`: how many domains away ghosts come from along each axis.
  pure function wanted_offsets(layers, whole_shell) result(offset)
    integer, intent(in) :: layers(3)
    logical, intent(in) :: whole_shell
    integer, allocatable :: offset(:, :)
    offset = half_shell(layers)
    if (whole_shell) offset = both_ways(offset)
  end function wanted_offsets

  !> Offsets (3, n), followed by their opposites.
  pure function both_ways(offset) result(both)
    integer, intent(in) :: offset(:, :)
    integer :: both(3, 2*size(offset, 2))
    both(:, :size(offset, 2)) = offset
    both(:, size(offset, 2) + 1:) = -offset
  end function both_ways

  !> HALF (of the whole shell FULL) or STAGED by a model: messages to other ranks, atoms in them, and atoms copied, from
  !> the geometry alone, so that the same input always gives the same answer.
  !> `layers` as of `wanted_offsets`; ghosts come from within `width` (angstrom).
  integer function cheapest_pattern(grid, layers, width, whole_shell) result(pattern)
    type(domain_grid_t), intent(in) :: grid
    integer, intent(in) :: layers(3)
    real(real64), intent(in) :: width
    logical, intent(in) :: whole_shell
    !> Share of a square edge and corner that is within the width: quarter of a disc, eighth of a ball.
    real(real64), parameter :: rounded(3) = [1.0_real64, 0.7854_real64, 0.5236_real64]
    real(real64) :: edge(3), area, volume, copied, sent, cost(2)
    integer :: offset(3, (product(2*layers + 1) - 1)/merge(1, 2, whole_shell))
    integer :: axis, k, m, partners(size(offset, 2)), n_partners

    edge = grid%even_width()
    offset = wanted_offsets(layers, whole_shell)
    copied = 0.0_real64
    sent = 0.0_real64
    n_partners = 0
    do m = 1, size(offset, 2)
      volume = rounded(count(offset(:, m) /= 0))*product([(thickness(axis, abs(offset(axis, m))), axis=1, 3)])
      copied = copied + volume
      if (all(modulo(offset(:, m), grid%dims) == 0)) cycle
      sent = sent + volume
      k = grid%rank_of(grid%coordinate - offset(:, m))
      if (any(partners(:n_partners) == k)) cycle
      n_partners = n_partners + 1
      partners(n_partners) = k
    end do
    cost(1) = merge(round_cost, 0.0_real64, n_partners > 0) + n_partners*message_cost + &
              density*(copied*copy_cost + sent*send_cost)
    ! The whole pool is copied once more to and fro.
    copied = 2.0_real64*product(edge + 2.0_real64*width) - product(edge)
    cost(2) = density*copied*copy_cost
    area = product(edge)
    do axis = 1, 3
      area = area/edge(axis)
      sent = 0.0_real64
      do k = 1, layers(axis)
        if (modulo(k, grid%dims(axis)) > 0) sent = sent + 2.0_real64*area*thickness(axis, k)
      end do
      if (grid%dims(axis) > 1) &
        cost(2) = cost(2) + round_cost + min(2*layers(axis), grid%dims(axis) - 1)*message_cost + density*sent*send_cost
      area = area*(edge(axis) + 2.0_real64*width)
    end do
    pattern = merge(full, half, whole_shell)
    if (cost(2) < cost(1)) pattern = staged

  contains

    !> How deep ghosts are taken from a domain `away` domains along an axis.
    pure real(real64) function thickness(axis, away)
      integer, intent(in) :: axis, away
      thickness = edge(axis)
      if (away > 0) thickness = max(0.0_real64, min(edge(axis), width - (away - 1)*edge(axis)))
    end function thickness

  end function cheapest_pattern

end module comm_halo_pattern
