!> Which rank has which object of a fine-grained run, and how fine the grain is (after Bohm et al. 2008).
!>
!> A pair of states shares a complex field, so objects of states are those of pairs: G(k, p), the waves in set p of pair
!> k, and R(k, z), a plane of it. The density has parts of planes, rho_R(z, q), and sets of waves, rho_G(p). A block is
!> some pairs of states; two blocks a <= b have pair calculators P(a, b, p, c), which multiply chunk c of set p, and tiles
!> of matrices, ortho(a, b, t). A map file gives the rank of each; chromabuild.scaling.placement writes it. Without one,
!> objects of a kind are dealt in the order of their indices.
module object_map
  use base_error, only: error_t, exit_bad_input, fail
  use base_kinds, only: real64
  use base_text, only: to_text
  use wave_sphere, only: sphere_t
  implicit none
  private
  public :: grain_t, object_map_t

  !> What the user sets, under the names of OpenAtom, and a map file that takes its place.
  type :: grain_t
    !> Sets of waves of states and of the density, in units of the planes of kx that their half spheres have.
    real(real64) :: g_expand = 1.0_real64, g_expand_rho = 1.0_real64
    !> States in a block (0: about 32) and in a tile (0: those of a block); chunks of a set; parts of a density plane.
    integer :: s_grain = 0, ortho_grain = 0, chunks = 1, subplanes = 1
    character(len=:), allocatable :: map_file
  end type grain_t

  type :: object_map_t
    integer :: n_states = 0, n_pairs = 0, n_planes = 0, n_sets = 0, n_rho_sets = 0, n_blocks = 0, n_tiles = 1, &
               n_chunks = 1, n_parts = 1
    !> Pairs of states in a block.
    integer :: block = 1
    !> Blocks of each pair of blocks (2, block pairs).
    integer, allocatable :: blocks(:, :)
    !> Ranks: (sets, pairs), (planes, pairs), (parts, planes), (rho sets), (chunks, sets, block pairs), (tiles^2, block
    !> pairs).
    integer, allocatable :: g(:, :), r(:, :), rho_r(:, :), rho_g(:), pair(:, :, :), ortho(:, :)
  contains
    procedure :: create
    procedure :: states_of_tile
    procedure :: block_pair
    procedure, nopass :: mesh_ranks
    procedure, private :: set_grain
    procedure, private :: deal
    procedure, private :: read_tables
  end type object_map_t

contains

  !> Lay out a run on `n_ranks` ranks. `waves`, `dense`: the spheres of states and density.
  subroutine create(self, grain, n_states, waves, dense, n_ranks, error)
    class(object_map_t), intent(inout) :: self
    type(grain_t), intent(in) :: grain
    integer, intent(in) :: n_states, n_ranks
    type(sphere_t), intent(in) :: waves, dense
    type(error_t), allocatable, intent(out) :: error
    integer :: unit, status, has(9)
    self%n_states = n_states
    self%n_pairs = (n_states + 1)/2
    self%n_planes = waves%n(3)
    if (grain%map_file == "") then
      call self%set_grain(grain, waves, dense, error)
      if (allocated(error)) return
      call self%deal(n_ranks)
      return
    end if
    open (newunit=unit, file=grain%map_file, action="read", status="old", iostat=status)
    if (status /= 0) then
      call fail(error, exit_bad_input, grain%map_file//": cannot be read; check mapfile in [ELECTRONS]")
      return
    end if
    has = 0
    read (unit, *, iostat=status) has
    if (status /= 0 .or. any(has(:3) /= [self%n_pairs, self%n_planes, n_ranks]) .or. any(has < 1)) then
      call fail(error, exit_bad_input, grain%map_file//": line 1 must have nine numbers that begin with "// &
                to_text(self%n_pairs)//" pairs of states, "//to_text(self%n_planes)//" planes and "//to_text(n_ranks)// &
                " ranks, as this run has; make a map of objects for these numbers")
    else if (mod(self%n_pairs, has(6)) /= 0 .or. mod(has(6), has(7)) /= 0 .or. has(4) > size(waves%stick) .or. &
             has(5) > size(dense%stick) .or. has(8) > waves%n_all .or. has(9) > waves%n(2)) then
      call fail(error, exit_bad_input, grain%map_file//": line 1 has a grain that does not fit "//to_text(n_states)// &
                " states, "//to_text(size(waves%stick))//" lines of waves and "//to_text(waves%n(2))//" rows of a plane")
    else
      self%n_sets = has(4)
      self%n_rho_sets = has(5)
      self%block = has(6)
      self%n_tiles = has(6)/has(7)
      self%n_chunks = has(8)
      self%n_parts = has(9)
      call self%deal(n_ranks)
      call self%read_tables(unit, grain%map_file, n_ranks, error)
    end if
    close (unit)
  end subroutine create

  !> Numbers of objects from what the user sets.
  subroutine set_grain(self, grain, waves, dense, error)
    class(object_map_t), intent(inout) :: self
    type(grain_t), intent(in) :: grain
    type(sphere_t), intent(in) :: waves, dense
    type(error_t), allocatable, intent(out) :: error
    integer, parameter :: usual_block = 16
    integer :: k
    self%n_sets = max(1, int(grain%g_expand*(maxval(waves%stick%x) + 1)))
    self%n_rho_sets = max(1, int(grain%g_expand_rho*(maxval(dense%stick%x) + 1)))
    self%block = grain%s_grain/2
    if (grain%s_grain == 0) self%block = maxval(pack([(k, k=1, usual_block)], mod(self%n_pairs, [(k, k=1, usual_block)]) == 0))
    self%n_chunks = grain%chunks
    self%n_parts = grain%subplanes
    if (mod(grain%s_grain, 2) /= 0 .or. mod(self%n_pairs, self%block) /= 0) then
      call fail(error, exit_bad_input, "sgrainsize = "//to_text(grain%s_grain)//" in [PARALLEL] must be even and divide the "// &
                to_text(2*self%n_pairs)//" states (an odd one counts as two)")
      return
    end if
    k = self%block
    if (grain%ortho_grain > 0) k = grain%ortho_grain/2
    if (mod(grain%ortho_grain, 2) /= 0 .or. mod(self%block, max(1, k)) /= 0) then
      call fail(error, exit_bad_input, "orthograinsize = "//to_text(grain%ortho_grain)//" in [PARALLEL] must be even and "// &
                "divide sgrainsize = "//to_text(2*self%block))
    else if (self%n_sets > size(waves%stick) .or. self%n_rho_sets > size(dense%stick)) then
      call fail(error, exit_bad_input, "gexpandfact or gexpandfactrho in [PARALLEL] makes more sets than there are lines of "// &
                "waves ("//to_text(size(waves%stick))//" of states, "//to_text(size(dense%stick))//" of the density); lower it")
    else if (self%n_chunks > waves%n_all) then
      call fail(error, exit_bad_input, "numchunks = "//to_text(self%n_chunks)//" in [PARALLEL] is more than the "// &
                to_text(waves%n_all)//" waves of a state; lower it")
    else if (self%n_parts > waves%n(2)) then
      call fail(error, exit_bad_input, "rhorsubplanes = "//to_text(self%n_parts)//" in [PARALLEL] is more than the "// &
                to_text(waves%n(2))//" rows of a plane; lower it")
    end if
    self%n_tiles = self%block/max(1, k)
  end subroutine set_grain

  !> Deal every kind of object in the order of its indices.
  subroutine deal(self, n_ranks)
    class(object_map_t), intent(inout) :: self
    integer, intent(in) :: n_ranks
    integer :: a, b, at
    self%n_blocks = self%n_pairs/self%block
    allocate (self%blocks(2, self%n_blocks*(self%n_blocks + 1)/2))
    at = 0
    do a = 1, self%n_blocks
      do b = a, self%n_blocks
        at = at + 1
        self%blocks(:, at) = [a, b]
      end do
    end do
    self%g = reshape(dealt(self%n_sets*self%n_pairs, n_ranks), [self%n_sets, self%n_pairs])
    self%r = reshape(dealt(self%n_planes*self%n_pairs, n_ranks), [self%n_planes, self%n_pairs])
    self%rho_r = reshape(dealt(self%n_parts*self%n_planes, n_ranks), [self%n_parts, self%n_planes])
    self%rho_g = dealt(self%n_rho_sets, n_ranks)
    self%pair = reshape(dealt(self%n_chunks*self%n_sets*at, n_ranks), [self%n_chunks, self%n_sets, at])
    self%ortho = reshape(dealt(self%n_tiles**2*at, n_ranks), [self%n_tiles**2, at])
  end subroutine deal

  pure function dealt(n, n_ranks) result(rank)
    integer, intent(in) :: n, n_ranks
    integer :: rank(n), k
    rank = [((k*n_ranks)/n, k=0, n - 1)]
  end function dealt

  !> The ranks of a map file, in the order of the tables here.
  subroutine read_tables(self, unit, path, n_ranks, error)
    class(object_map_t), intent(inout) :: self
    integer, intent(in) :: unit, n_ranks
    character(len=*), intent(in) :: path
    type(error_t), allocatable, intent(inout) :: error
    character(len=5), parameter :: names(6) = [character(len=5) :: "g", "r", "rho_r", "rho_g", "pair", "ortho"]
    integer :: status, k
    character(len=5) :: name
    do k = 1, size(names)
      read (unit, *, iostat=status) name
      if (status == 0 .and. name /= names(k)) status = 1
      if (status == 0) then
        select case (k)
        case (1)
          read (unit, *, iostat=status) self%g
          if (outside(self%g)) status = 1
        case (2)
          read (unit, *, iostat=status) self%r
          if (outside(self%r)) status = 1
        case (3)
          read (unit, *, iostat=status) self%rho_r
          if (outside(self%rho_r)) status = 1
        case (4)
          read (unit, *, iostat=status) self%rho_g
          if (outside(reshape(self%rho_g, [size(self%rho_g), 1]))) status = 1
        case (5)
          read (unit, *, iostat=status) self%pair
          if (any(self%pair < 0) .or. any(self%pair >= n_ranks)) status = 1
        case (6)
          read (unit, *, iostat=status) self%ortho
          if (outside(self%ortho)) status = 1
        end select
      end if
      if (status == 0) cycle
      call fail(error, exit_bad_input, path//": the table '"//trim(names(k))//"' is not whole or has a rank beyond 0 to "// &
                to_text(n_ranks - 1)//"; make the map anew with chromabuild qm map --objects")
      return
    end do

  contains

    pure logical function outside(ranks)
      integer, intent(in) :: ranks(:, :)
      outside = any(ranks < 0) .or. any(ranks >= n_ranks)
    end function outside

  end subroutine read_tables

  !> First and last state of tile u (from 1) of a block; the last tile of all may have one state less.
  pure function states_of_tile(self, block, u) result(range)
    class(object_map_t), intent(in) :: self
    integer, intent(in) :: block, u
    integer :: range(2), wide
    wide = 2*self%block/self%n_tiles
    range(1) = 2*self%block*(block - 1) + wide*(u - 1) + 1
    range(2) = min(range(1) + wide - 1, self%n_states)
  end function states_of_tile

  !> Ranks of n planes of a mesh: each where the plane of the grid at its height is, whose ranks these are.
  pure function mesh_ranks(ranks, n)
    integer, intent(in) :: ranks(:), n
    integer :: mesh_ranks(n), z
    mesh_ranks = ranks([(1 + (z*size(ranks))/n, z=0, n - 1)])
  end function mesh_ranks

  !> Number of the pair of blocks a <= b.
  pure integer function block_pair(self, a, b)
    class(object_map_t), intent(in) :: self
    integer, intent(in) :: a, b
    block_pair = (a - 1)*self%n_blocks - (a - 1)*(a - 2)/2 + b - a + 1
  end function block_pair

end module object_map
