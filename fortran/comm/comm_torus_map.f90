!> Where the ranks of a grid of domains stand on the nodes of a torus, so that neighbouring domains are near each other.
!> The job's processes are taken to fill the nodes one after the other, the first axis of the torus fastest.
!>
!> Where the axes of the torus, with the ranks of a node as further ones, multiply to the numbers of domains, each axis of
!> the grid is folded onto some of them like a map: neighbours on the grid are neighbours on the torus (reflected Gray
!> code). Otherwise grid and torus are run through in snakes. Of all that can be had, and of leaving ranks as they are, the
!> one is taken by which a byte of the halo travels the fewest links.
module comm_torus_map
  use base_kinds, only: real64
  implicit none
  private
  public :: map_to_torus, read_torus

  !> Assignments of axes that are compared at most, and axes with those that ranks of a node make.
  integer, parameter :: most_trials = 60, most_axes = 24

contains

  !> `process(r)`: which process of the job (from 0) becomes rank r. `dims`: domains along x, y, z; `torus`: nodes along each
  !> axis, whose product divides that of `dims`; `edge`: of a domain; `width`: of the halo (angstrom). `hops`: links
  !> that a byte of the halo travels on average, as the ranks were and as they are now.
  subroutine map_to_torus(dims, torus, edge, width, process, hops)
    integer, intent(in) :: dims(3), torus(:)
    real(real64), intent(in) :: edge(3), width
    integer, allocatable, intent(out) :: process(:)
    real(real64), intent(out) :: hops(2)
    integer, allocatable :: axis_length(:), trial(:)
    integer :: n_ranks, n_here, n_trials, snake, k, assigned(most_axes), orders(3, 6)

    n_ranks = product(dims)
    n_here = n_ranks/product(torus)
    process = [(k, k=0, n_ranks - 1)]
    hops = mean_hops(dims, torus, edge, width, process)
    axis_length = [prime_factors(n_here), torus]
    n_trials = 0
    if (size(axis_length) <= most_axes) call assign_axis(size(axis_length), [1, 1, 1])
    orders = reshape([1, 2, 3, 1, 3, 2, 2, 1, 3, 2, 3, 1, 3, 1, 2, 3, 2, 1], [3, 6])
    do snake = 1, 6
      trial = snakes(dims, torus, n_here, orders(:, snake))
      call compare()
    end do

  contains

    !> Give axis k to each axis of the grid that it divides, then those before it; `filled`: what the ones after it make.
    recursive subroutine assign_axis(k, filled)
      integer, intent(in) :: k, filled(3)
      integer :: axis, next(3)
      if (n_trials >= most_trials) return
      if (k == 0) then
        if (any(filled /= dims)) return
        n_trials = n_trials + 1
        trial = folded(dims, torus, n_here, axis_length, assigned(:size(axis_length)))
        call compare()
        return
      end if
      do axis = 1, 3
        next = filled
        next(axis) = next(axis)*axis_length(k)
        if (mod(dims(axis), next(axis)) /= 0) cycle
        assigned(k) = axis
        call assign_axis(k - 1, next)
      end do
    end subroutine assign_axis

    subroutine compare()
      real(real64) :: mean
      mean = mean_hops(dims, torus, edge, width, trial)
      if (mean > 0.999999_real64*hops(2)) return
      hops(2) = mean
      process = trial
    end subroutine compare

  end subroutine map_to_torus

  !> Nodes along each axis from a text like 4x4x2; none where it is no such text.
  pure subroutine read_torus(text, torus)
    character(len=*), intent(in) :: text
    integer, allocatable, intent(out) :: torus(:)
    character(len=len(text)) :: spaced
    integer :: k, n, status
    allocate (torus(0))
    if (verify(trim(text), "0123456789x") > 0) return
    spaced = text
    n = 1
    do k = 1, len(text)
      if (text(k:k) /= "x") cycle
      spaced(k:k) = " "
      n = n + 1
    end do
    deallocate (torus)
    allocate (torus(n))
    read (spaced, *, iostat=status) torus
    if (status /= 0 .or. any(torus < 1)) torus = [integer ::]
  end subroutine read_torus

  pure function prime_factors(n) result(factors)
    integer, intent(in) :: n
    integer, allocatable :: factors(:)
    integer :: rest, p
    allocate (factors(0))
    rest = n
    p = 2
    do while (rest > 1)
      if (mod(rest, p) == 0) then
        factors = [factors, p]
        rest = rest/p
      else
        p = p + 1
      end if
    end do
  end function prime_factors

  !> Place of each axis' digit for index `i` of a folded axis: the first axis runs fastest, forward and backward in turn.
  pure function fold(i, lengths) result(digit)
    integer, intent(in) :: i, lengths(:)
    integer :: digit(size(lengths)), k, rest
    rest = i
    do k = 1, size(lengths)
      digit(k) = mod(rest, lengths(k))
      rest = rest/lengths(k)
      ! How often the axes before have been run through decides on the direction.
      if (mod(rest, 2) == 1) digit(k) = lengths(k) - 1 - digit(k)
    end do
  end function fold

  !> Processes by folding. Later axes of the torus are nearer in one's hands: they run faster, after the ranks of a node.
  function folded(dims, torus, n_here, axis_length, assigned) result(process)
    integer, intent(in) :: dims(3), torus(:), n_here, axis_length(:), assigned(:)
    integer, allocatable :: process(:)
    integer :: r, c(3), axis, k, n_node_axes, digit(size(axis_length)), stride(size(axis_length))
    integer, allocatable :: order(:)
    n_node_axes = size(axis_length) - size(torus)
    allocate (process(0:product(dims) - 1))
    stride(1:1) = 1
    do k = 2, size(axis_length)
      stride(k) = stride(k - 1)*axis_length(k - 1)
    end do
    if (n_here /= product(axis_length(:n_node_axes))) error stop "the ranks of a node do not fill their axes"
    do r = 0, size(process) - 1
      c = [mod(r, dims(1)), mod(r/dims(1), dims(2)), r/(dims(1)*dims(2))]
      do axis = 1, 3
        order = [pack([(k, k=1, n_node_axes)], assigned(:n_node_axes) == axis), &
                 pack([(k, k=size(axis_length), n_node_axes + 1, -1)], &
                      [(assigned(k) == axis, k=size(axis_length), n_node_axes + 1, -1)])]
        ! With an even number of turns the last index is beside the first again.
        if (size(order) > 0) then
          k = findloc(mod(axis_length(order), 2) == 0, .true., dim=1, back=.true.)
          if (k > 0) order = [order(:k - 1), order(k + 1:), order(k)]
        end if
        digit(order) = fold(c(axis), axis_length(order))
      end do
      process(r) = sum(stride*digit)
    end do
  end function folded

  !> Processes by snakes through the grid, its axes in this order, and through the torus.
  function snakes(dims, torus, n_here, order) result(process)
    integer, intent(in) :: dims(3), torus(:), n_here, order(3)
    integer, allocatable :: process(:)
    integer :: i, c(3), digit(size(torus)), k, node
    allocate (process(0:product(dims) - 1))
    do i = 0, size(process) - 1
      c(order) = fold(i, dims(order))
      digit = fold(i/n_here, torus)
      node = 0
      do k = size(torus), 1, -1
        node = node*torus(k) + digit(k)
      end do
      process(c(1) + dims(1)*(c(2) + dims(2)*c(3))) = node*n_here + mod(i, n_here)
    end do
  end function snakes

  !> Links between two processes.
  pure integer function torus_distance(a, b, torus, n_here) result(distance)
    integer, intent(in) :: a, b, torus(:), n_here
    integer :: k, rest_a, rest_b, step
    rest_a = a/n_here
    rest_b = b/n_here
    distance = 0
    do k = 1, size(torus)
      step = abs(mod(rest_a, torus(k)) - mod(rest_b, torus(k)))
      distance = distance + min(step, torus(k) - step)
      rest_a = rest_a/torus(k)
      rest_b = rest_b/torus(k)
    end do
  end function torus_distance

  !> Links that a byte of the halo of all 26 neighbours travels on average: a face weighs the halo's width times the edges
  !> of the domain along it, edges and corners likewise.
  real(real64) function mean_hops(dims, torus, edge, width, process) result(mean)
    integer, intent(in) :: dims(3), torus(:), process(0:)
    real(real64), intent(in) :: edge(3), width
    real(real64) :: weight, total, links
    integer :: x, y, z, r, c(3), n_here, other
    n_here = product(dims)/product(torus)
    total = 0.0_real64
    links = 0.0_real64
    do z = 0, 1
      do y = merge(0, -1, z == 0), 1
        do x = merge(1, -1, z == 0 .and. y == 0), 1
          weight = product(merge(edge, min(edge, width), [x, y, z] == 0))
          do r = 0, size(process) - 1
            c = modulo([mod(r, dims(1)), mod(r/dims(1), dims(2)), r/(dims(1)*dims(2))] + [x, y, z], dims)
            other = c(1) + dims(1)*(c(2) + dims(2)*c(3))
            total = total + weight
            links = links + weight*torus_distance(process(r), process(other), torus, n_here)
          end do
        end do
      end do
    end do
    mean = links/total
  end function mean_hops

end module comm_torus_map
