!> Which rank holds which plane of which pair of states: from a map file, or planes in even shares of all pairs.
!>
!> A map file has a line of four numbers (pairs of states, planes, ranks, pairs that are under way together) and, for each
!> pair in the order of their turns, a line with its number and the rank (from 0) of each plane.
!> chromabuild.scaling.placement writes it.
module state_planes
  use base_error, only: error_t, exit_bad_input, fail
  use base_text, only: to_text
  implicit none
  private
  public :: state_planes_t, round_t, read_state_planes

  type :: state_planes_t
    logical :: is_mapped = .false.
    !> Pairs of states that are under way together.
    integer :: batch = 4
    !> Pairs in the order of their turns; rank of each plane of each pair (planes, pairs).
    integer, allocatable :: order(:), owner(:, :)
    !> Planes that this rank has of any pair, ascending (from 1), and whether each rank has each (planes, from rank 0).
    integer, allocatable :: held(:)
    logical, allocatable :: has(:, :)
    !> Most planes of pairs that this rank has under way.
    integer :: most_objects = 0
    integer, private :: rank = 0
    integer, allocatable, private :: plane_start(:)
  contains
    procedure :: prepare
    procedure :: n_objects
    procedure :: start_round
  end type state_planes_t

  !> Pairs under way together: their numbers; planes of pairs (objects), those of a rank after those of the one before,
  !> pair after pair.
  type :: round_t
    integer :: n_pairs = 0
    integer, allocatable :: pair(:)
    !> Objects of all ranks before each rank (0 to n_ranks); pair (place in the round) and plane of each object.
    integer, allocatable :: start(:), b(:), z(:)
    !> Object of each plane of each pair: (planes, pairs).
    integer, allocatable :: place(:, :)
    !> Objects of this rank are those after `first`, `n` of them.
    integer :: first = 0, n = 0
  end type round_t

contains

  !> Take the even shares (first plane of each rank, from 0) for which there is no map; `rank` is this one.
  subroutine prepare(self, plane_start, rank)
    class(state_planes_t), intent(inout) :: self
    integer, intent(in) :: plane_start(0:), rank
    type(round_t) :: round
    integer :: first, r, k, n_pairs, n_planes
    self%rank = rank
    allocate (self%plane_start(0:ubound(plane_start, 1)))
    self%plane_start = plane_start
    n_planes = plane_start(ubound(plane_start, 1))
    n_pairs = self%batch
    if (self%is_mapped) n_pairs = size(self%order)
    do first = 1, n_pairs, self%batch
      call self%start_round(first, n_pairs, round)
      self%most_objects = max(self%most_objects, round%n)
    end do
    allocate (self%has(n_planes, 0:ubound(plane_start, 1) - 1), source=.false.)
    do r = 0, ubound(plane_start, 1) - 1
      if (self%is_mapped) then
        self%has(:, r) = any(self%owner == r, 2)
      else
        self%has(plane_start(r) + 1:plane_start(r + 1), r) = .true.
      end if
    end do
    self%held = pack([(k, k=1, n_planes)], self%has(:, rank))
  end subroutine prepare

  !> Planes of `n_pairs` pairs that this rank has in all.
  integer function n_objects(self, n_pairs)
    class(state_planes_t), intent(in) :: self
    integer, intent(in) :: n_pairs
    if (self%is_mapped) then
      n_objects = count(self%owner == self%rank)
    else
      n_objects = n_pairs*size(self%held)
    end if
  end function n_objects

  !> The round that begins with pair `first` of `n_pairs`, in the order of turns.
  subroutine start_round(self, first, n_pairs, round)
    class(state_planes_t), intent(in) :: self
    integer, intent(in) :: first, n_pairs
    type(round_t), intent(out) :: round
    integer, allocatable :: owner(:, :)
    integer :: b, r, z, at, n_ranks, n_planes
    n_ranks = ubound(self%plane_start, 1)
    n_planes = self%plane_start(n_ranks)
    round%n_pairs = min(self%batch, n_pairs - first + 1)
    allocate (round%pair(round%n_pairs), round%start(0:n_ranks), owner(n_planes, round%n_pairs))
    if (self%is_mapped) then
      round%pair = self%order(first:first + round%n_pairs - 1)
      owner = self%owner(:, round%pair)
    else
      round%pair = [(b, b=first, first + round%n_pairs - 1)]
      do r = 0, n_ranks - 1
        owner(self%plane_start(r) + 1:self%plane_start(r + 1), :) = r
      end do
    end if
    allocate (round%b(size(owner)), round%z(size(owner)), round%place(n_planes, round%n_pairs))
    at = 0
    round%start(0) = 0
    do r = 0, n_ranks - 1
      do b = 1, round%n_pairs
        do z = 1, n_planes
          if (owner(z, b) /= r) cycle
          at = at + 1
          round%b(at) = b
          round%z(at) = z
          round%place(z, b) = at
        end do
      end do
      round%start(r + 1) = at
    end do
    round%first = round%start(self%rank)
    round%n = round%start(self%rank + 1) - round%first
  end subroutine start_round

  !> Read a map file for `n_pairs` pairs, `n_planes` planes and `n_ranks` ranks.
  subroutine read_state_planes(path, n_pairs, n_planes, n_ranks, map, error)
    character(len=*), intent(in) :: path
    integer, intent(in) :: n_pairs, n_planes, n_ranks
    type(state_planes_t), intent(out) :: map
    type(error_t), allocatable, intent(out) :: error
    integer :: unit, status, has(4), k, number
    open (newunit=unit, file=path, action="read", status="old", iostat=status)
    if (status /= 0) then
      call fail(error, exit_bad_input, path//": cannot be read; check mapfile in [ELECTRONS]")
      return
    end if
    has = 0
    read (unit, *, iostat=status) has
    if (status /= 0 .or. any(has(:3) /= [n_pairs, n_planes, n_ranks]) .or. has(4) < 1) then
      call fail(error, exit_bad_input, path//": line 1 must begin with "//to_text(n_pairs)//" pairs of states, "// &
                to_text(n_planes)//" planes and "//to_text(n_ranks)//" ranks, as this run has; make the map for these numbers")
      close (unit)
      return
    end if
    map%is_mapped = .true.
    map%batch = min(has(4), n_pairs)
    allocate (map%order(n_pairs), map%owner(n_planes, n_pairs))
    map%order = 0
    do k = 1, n_pairs
      read (unit, *, iostat=status) number
      if (status == 0) then
        if (number < 1 .or. number > n_pairs .or. any(map%order == number)) status = 1
      end if
      if (status == 0) then
        backspace (unit)
        map%order(k) = number
        read (unit, *, iostat=status) number, map%owner(:, number)
      end if
      if (status == 0) then
        if (any(map%owner(:, number) < 0) .or. any(map%owner(:, number) >= n_ranks)) status = 1
      end if
      if (status /= 0) then
        call fail(error, exit_bad_input, path//": line "//to_text(k + 1)//" is not a pair of states (1 to "// &
                  to_text(n_pairs)//", each once) and the ranks (0 to "//to_text(n_ranks - 1)//") of its "// &
                  to_text(n_planes)//" planes")
        exit
      end if
    end do
    close (unit)
  end subroutine read_state_planes

end module state_planes
