!> The schemes of a distributed 3D transform as pure geometry: what each rank of a process grid holds at each stage.
!> Every scheme is a list of stages; data arrive at a stage by an exchange along some axes of the process grid and are
!> then transformed along the axes that the rank holds whole. Nothing here communicates, so that message counts can be
!> had for any number of ranks.
!>
!> Sources: 1d and 2d all-to-all, Jung et al., J. Comput. Chem. 40, 1919 (2019); there-and-back transposes with overlap
!> (qcdoc), Fang, Deng, Martyna, Comput. Phys. Commun. 176, 531 (2007); column and plane transposes among subsets of
!> ranks (columns), Eleftheriou et al., IBM Research Report (2007).
module fft_scheme
  use fft_layout, only: brick_of, layout_t, lines_of, share_of, whole_axis
  implicit none
  private
  public :: decomposition_t, stage_t, scheme_names, subset_names, default_grid, half_axis

  integer, parameter :: slab = 1, pencil = 2, one_d = 3, two_d = 4, qcdoc = 5, columns = 6
  character(len=*), parameter :: scheme_names(6) = &
    [character(len=7) :: "slab", "pencil", "1d", "2d", "qcdoc", "columns"]
  character(len=*), parameter :: subset_names(3) = [character(len=10) :: "full", "compressed", "expanded"]

  !> The transform and the process grid.
  type :: decomposition_t
    !> Number of the scheme in scheme_names.
    integer :: scheme = slab
    !> Grid points along x, y, z; wave indices kx of a transformed line.
    integer :: n(3) = 1, n_waves = 1
    !> Ranks along x, y, z; rank = ix + Px*(iy + Py*iz).
    integer :: grid(3) = 1
    !> Wave indices kx that are wanted, ascending.
    integer, allocatable :: kx(:)
    !> Axis order of boxes of waves.
    integer :: wave_order(3) = [3, 1, 2]
    !> Lines belong to the ranks whose coordinates add up to a multiple of this (1: all ranks, 2: checkerboard).
    integer :: checker = 1
    !> In qcdoc, whether waves go back from lines along z to bricks.
    logical :: returns = .true.
  contains
    procedure :: stages
    procedure :: place
    procedure :: choose_subset
  end type decomposition_t

  type :: stage_t
    !> What a rank holds when the data have arrived. Transforms along x turn lines of n(1) into lines of n_waves.
    type(layout_t) :: layout
    !> Axes of the process grid along which the exchange that leads here runs.
    logical :: among(3) = .false.
    !> Axis along which this exchange may be cut into chunks, and the indices that all its ranks have in common. Axis 0:
    !> not.
    integer :: chop_axis = 0, chop_range(2) = [0, -1]
    !> Axes of the transforms on arrival; 0: none.
    integer :: axes(2) = 0
  end type stage_t

contains

  !> Wave indices of a line of n points.
  elemental integer function half_axis(n, is_real)
    integer, intent(in) :: n
    logical, intent(in) :: is_real
    half_axis = merge(n/2 + 1, n, is_real)
  end function half_axis

  !> Coordinates of a rank in the process grid.
  pure function place(self, rank)
    class(decomposition_t), intent(in) :: self
    integer, intent(in) :: rank
    integer :: place(3)
    place = [mod(rank, self%grid(1)), mod(rank/self%grid(1), self%grid(2)), rank/(self%grid(1)*self%grid(2))]
  end function place

  !> The process grid of a scheme for so many ranks. Slabs: (1, 1, P). Pencils: as square as can
  !> be. Else the grid whose bricks have the least surface.
  pure function default_grid(scheme, n, n_ranks) result(grid)
    integer, intent(in) :: scheme, n(3), n_ranks
    integer :: grid(3), x, y
    real :: surface, least
    grid = [1, 1, n_ranks]
    select case (scheme)
    case (slab)
    case (pencil)
      do y = 1, n_ranks
        if (mod(n_ranks, y) /= 0) cycle
        if (y*y <= n_ranks) grid = [1, y, n_ranks/y]
      end do
    case default
      least = huge(least)
      do x = 1, n_ranks
        if (mod(n_ranks, x) /= 0) cycle
        do y = 1, n_ranks/x
          if (mod(n_ranks/x, y) /= 0) cycle
          associate (edge => real(n)/[x, y, n_ranks/(x*y)])
            surface = edge(1)*edge(2) + edge(2)*edge(3) + edge(1)*edge(3)
            ! A brick must hold something.
            if (any(edge < 1.0)) surface = surface + 1e6*count(edge < 1.0)
          end associate
          if (surface < least*0.999) then
            least = surface
            grid = [x, y, n_ranks/(x*y)]
          end if
        end do
      end do
    end select
  end function default_grid

  !> Set which ranks own lines: all (full), every second as on a checkerboard (compressed), or as many as there are
  !> lines along the axis with the fewest, spread evenly (expanded).
  pure subroutine choose_subset(self, subset)
    class(decomposition_t), intent(inout) :: self
    integer, intent(in) :: subset
    integer :: lines
    lines = minval([self%n(2)*self%n(3), self%n_waves*self%n(3), self%n_waves*self%n(2)])
    select case (subset)
    case (1)
      self%checker = 1
    case (2)
      self%checker = 2
    case default
      self%checker = max(1, (product(self%grid) + lines - 1)/lines)
    end select
  end subroutine choose_subset

  !> What the rank at `place` holds, stage after stage, on the way from grid points to waves.
  pure function stages(self, place) result(list)
    class(decomposition_t), intent(in) :: self
    integer, intent(in) :: place(3)
    type(stage_t), allocatable :: list(:)
    integer, allocatable :: x(:), y(:), z(:), kx(:), my_x(:), my_y(:), my_z(:), my_kx(:)
    logical, parameter :: f = .false., t = .true.
    integer :: order(3)

    allocate (x, source=whole_axis(self%n(1)))
    allocate (y, source=whole_axis(self%n(2)))
    allocate (z, source=whole_axis(self%n(3)))
    allocate (kx, source=self%kx)
    allocate (my_x, source=share_of(x, self%grid(1), place(1)))
    allocate (my_y, source=share_of(y, self%grid(2), place(2)))
    allocate (my_z, source=share_of(z, self%grid(3), place(3)))
    allocate (my_kx, source=share_of(kx, self%grid(1), place(1)))
    order = self%wave_order

    allocate (list(0))
    if (all(self%scheme /= [slab, pencil])) then
      call append(list, brick_of(my_x, my_y, my_z, [1, 2, 3]), [f, f, f], 0, z, [0, 0])
      call append(list, lines(1, my_y, my_z, [1, 2, 3]), [t, f, f], 3, my_z, [1, 0])
    end if
    select case (self%scheme)
    case (slab)
      my_y = share_of(y, self%grid(3), place(3))
      call append(list, brick_of(x, y, my_z, [1, 2, 3]), [f, f, f], 0, z, [1, 2])
      call append(list, brick_of(kx, my_y, z, order), [f, f, t], 1, kx, [3, 0])
    case (pencil)
      my_kx = share_of(kx, self%grid(2), place(2))
      call append(list, brick_of(x, my_y, my_z, [1, 2, 3]), [f, f, f], 0, z, [1, 0])
      call append(list, brick_of(my_kx, y, my_z, [2, 1, 3]), [f, t, f], 3, my_z, [2, 0])
      my_y = share_of(y, self%grid(3), place(3))
      call append(list, brick_of(my_kx, my_y, z, order), [f, f, t], 1, my_kx, [3, 0])
    case (one_d, qcdoc)
      call append(list, brick_of(my_kx, my_y, my_z, [1, 2, 3]), [t, f, f], 3, my_z, [0, 0])
      call append(list, lines(2, my_kx, my_z, [2, 1, 3]), [f, t, f], 3, my_z, [2, 0])
      call append(list, brick_of(my_kx, my_y, my_z, [1, 2, 3]), [f, t, f], 1, my_kx, [0, 0])
      call append(list, lines(3, my_y, my_kx, [3, 2, 1]), [f, f, t], 1, my_kx, [3, 0])
      if (self%scheme == qcdoc .and. self%returns) &
        call append(list, brick_of(my_kx, my_y, my_z, [1, 2, 3]), [f, f, t], 1, my_kx, [0, 0])
    case (two_d)
      my_kx = share_of(kx, self%grid(1)*self%grid(2), place(1) + self%grid(1)*place(2))
      call append(list, brick_of(my_kx, y, my_z, [2, 1, 3]), [t, t, f], 3, my_z, [2, 0])
      my_y = share_of(y, self%grid(3), place(3))
      call append(list, brick_of(my_kx, my_y, z, order), [f, f, t], 1, my_kx, [3, 0])
    case (columns)
      call append(list, lines(2, my_kx, my_z, [2, 1, 3]), [t, t, f], 3, my_z, [2, 0])
      call append(list, lines(3, my_y, my_kx, [3, 2, 1]), [f, t, t], 1, my_kx, [3, 0])
    end select

  contains

    !> This rank's share of the lines along `axis`, dealt among the owners in its row of the process grid.
    pure function lines(axis, fast, slow, order) result(layout)
      integer, intent(in) :: axis, fast(:), slow(:), order(3)
      type(layout_t) :: layout
      integer :: k, other(3), n_owners, mine
      n_owners = 0
      mine = -1
      other = place
      do k = 0, self%grid(axis) - 1
        other(axis) = k
        if (mod(sum(other), self%checker) /= 0) cycle
        if (k == place(axis)) mine = n_owners
        n_owners = n_owners + 1
      end do
      ! A row without an owner, as in grids of one rank along an axis.
      if (n_owners == 0) then
        n_owners = self%grid(axis)
        mine = place(axis)
      end if
      if (mine < 0) then
        layout%order = order
        allocate (layout%box(0))
      else
        layout = lines_of(self%n(axis), fast, slow, order, n_owners, mine)
      end if
    end function lines

  end function stages

  !> Add a stage whose exchange may be cut along an axis, over the given indices.
  pure subroutine append(list, layout, among, chop_axis, chopped, axes)
    type(stage_t), allocatable, intent(inout) :: list(:)
    type(layout_t), intent(in) :: layout
    logical, intent(in) :: among(3)
    integer, intent(in) :: chop_axis, chopped(:), axes(2)
    type(stage_t), allocatable :: longer(:)
    integer :: k
    allocate (longer(size(list) + 1))
    do k = 1, size(list)
      longer(k) = list(k)
    end do
    associate (new => longer(size(longer)))
      new%layout = layout
      new%among = among
      new%chop_axis = chop_axis
      if (size(chopped) > 0) new%chop_range = [chopped(1), chopped(size(chopped))]
      new%axes = axes
    end associate
    call move_alloc(longer, list)
  end subroutine append

end module fft_scheme
