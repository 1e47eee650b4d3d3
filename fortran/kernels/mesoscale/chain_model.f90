!> Flexible chains of beads that hang on rigid nucleosome cores (histone tails, tails of linker histones), in nm, kBT,
!> elementary charges and radian. mesoscale/tails.py states the formulas.
!>
!> Beads of a chain are numbered from the core outward; the first is tethered to a point of its core. While the fibre stands
!> still, everything else of it is a fixed point: charge sites of cores, linker beads, heads of linker histones.
module chain_model
  use iso_c_binding, only: c_f_pointer, c_loc, c_null_ptr
  use iso_fortran_env, only: int32, int64, real64
  implicit none
  private
  public :: chains_t, new_chains, delete_chains, chains_of, sort_points, place, move_bead, cell_index, cell_number

  real(real64), parameter :: margin = 20  !< nm around the fixed points; what lies beyond counts to the border's cells
  integer(int32), parameter :: most_cells = 2000000

  type :: chains_t
    integer(int32), allocatable :: first(:)           !< first bead of each chain, and one more than the last bead
    integer(int32), allocatable :: core(:)            !< number of the core that each chain hangs on, from 1
    integer(int32), allocatable :: chain_of_bead(:)
    real(real64), allocatable :: anchor(:, :)         !< nm, place of each tether in its core's frame
    real(real64), allocatable :: tether_k(:)          !< kBT/nm^2
    real(real64), allocatable :: bond_length(:), bond_k(:)   !< nm, kBT/nm^2: of the bond to the bead before
    real(real64), allocatable :: angle(:), angle_k(:)        !< radian, kBT: of the angle with the two beads before
    real(real64), allocatable :: charge(:)            !< e, of each bead
    integer(int32), allocatable :: kind(:)            !< of matter, of each bead
    real(real64), allocatable :: sigma(:, :), strength(:, :) !< nm, kBT: excluded volume between kinds
    real(real64), allocatable :: position(:, :)       !< nm, (3, beads)
    ! Heads of linker histones: the cores that carry one, and its points in the core's frame.
    integer(int32), allocatable :: head_core(:)
    real(real64), allocatable :: head_site(:, :), head_charge(:)
    ! While the fibre stands still.
    real(real64) :: bjerrum = 0, kappa = 0, cutoff = 0       !< nm, 1/nm, nm
    real(real64), allocatable :: tether_place(:, :)   !< nm, place of each tether in the world
    ! Fixed points, sorted by cell; beads, as lists by cell.
    real(real64), allocatable :: point(:, :), point_charge(:)
    integer(int32), allocatable :: point_kind(:), point_core(:), cell_first(:)
    integer(int32), allocatable :: head(:), next(:), cell_of_bead(:)
    real(real64) :: lower(3) = 0, edge = 0
    integer(int32) :: cells(3) = 1
  end type chains_t

contains

  !> Chains of their own on the heap, as an opaque number.
  function new_chains() result(handle)
    integer(int64) :: handle
    type(chains_t), pointer :: chains
    allocate (chains)
    allocate (chains%head_core(0), chains%head_site(3, 0), chains%head_charge(0))
    handle = transfer(c_loc(chains), handle)
  end function new_chains

  !> The chains that belong to a number from `new_chains`.
  function chains_of(handle) result(chains)
    integer(int64), intent(in) :: handle
    type(chains_t), pointer :: chains
    call c_f_pointer(transfer(handle, c_null_ptr), chains)
  end function chains_of

  subroutine delete_chains(handle)
    integer(int64), intent(in) :: handle
    type(chains_t), pointer :: chains
    chains => chains_of(handle)
    deallocate (chains)
  end subroutine delete_chains

  !> Put the beads (3, beads) there, nm, and into the cells of the fixed points where there are any.
  subroutine place(self, bead)
    type(chains_t), intent(inout) :: self
    real(real64), intent(in) :: bead(:, :)
    integer(int32) :: p, cell
    self%position = bead
    if (.not. allocated(self%cell_first)) return
    if (.not. allocated(self%next)) allocate (self%next(size(bead, 2)), self%cell_of_bead(size(bead, 2)))
    self%head = 0
    do p = 1, size(bead, 2)
      cell = cell_number(self, cell_index(self, bead(:, p)))
      self%next(p) = self%head(cell)
      self%head(cell) = p
      self%cell_of_bead(p) = cell
    end do
  end subroutine place

  !> Take over fixed points, in the order of the cells that they lie in: places (3, points) in nm, charges, kinds of matter
  !> and the numbers of their cores.
  subroutine sort_points(self, point, point_charge, point_kind, point_core)
    type(chains_t), intent(inout) :: self
    real(real64), intent(in) :: point(:, :), point_charge(:)
    integer(int32), intent(in) :: point_kind(:), point_core(:)   !< core: 0 for a point of none
    integer(int32) :: p, cell, n_cells
    integer(int32), allocatable :: cell_of_point(:), cursor(:)
    real(real64) :: extent(3)
    self%lower = minval(point, 2) - margin
    extent = maxval(point, 2) + margin - self%lower
    self%edge = max(self%cutoff / 3, (product(extent) / most_cells)**(1.0_real64 / 3))
    self%cells = max(1, int(extent / self%edge, int32))
    n_cells = product(self%cells)
    allocate (self%cell_first(n_cells + 1), source=0_int32)
    allocate (cell_of_point(size(point, 2)))
    do p = 1, size(point, 2)
      cell_of_point(p) = cell_number(self, cell_index(self, point(:, p)))
      self%cell_first(cell_of_point(p) + 1) = self%cell_first(cell_of_point(p) + 1) + 1
    end do
    self%cell_first(1) = 1
    do cell = 1, n_cells
      self%cell_first(cell + 1) = self%cell_first(cell) + self%cell_first(cell + 1)
    end do
    cursor = self%cell_first
    allocate (self%point(3, size(point, 2)), self%point_charge(size(point, 2)))
    allocate (self%point_kind(size(point, 2)), self%point_core(size(point, 2)))
    do p = 1, size(point, 2)
      cell = cell_of_point(p)
      self%point(:, cursor(cell)) = point(:, p)
      self%point_charge(cursor(cell)) = point_charge(p)
      self%point_kind(cursor(cell)) = point_kind(p)
      self%point_core(cursor(cell)) = point_core(p)
      cursor(cell) = cursor(cell) + 1
    end do
    allocate (self%head(n_cells))
  end subroutine sort_points

  !> The cell that a place lies in, along each axis from 0.
  pure function cell_index(self, position) result(index)
    type(chains_t), intent(in) :: self
    real(real64), intent(in) :: position(3)
    integer(int32) :: index(3)
    index = int(min(max((position - self%lower) / self%edge, 0.0_real64), real(self%cells - 1, real64)), int32)
  end function cell_index

  !> Its number, from 1.
  pure function cell_number(self, index) result(number)
    type(chains_t), intent(in) :: self
    integer(int32), intent(in) :: index(3)
    integer(int32) :: number
    number = 1 + index(1) + self%cells(1) * (index(2) + self%cells(2) * index(3))
  end function cell_number

  !> Move a bead and its place in the lists.
  pure subroutine move_bead(self, i, position)
    type(chains_t), intent(inout) :: self
    integer(int32), intent(in) :: i
    real(real64), intent(in) :: position(3)
    integer(int32) :: cell, p
    self%position(:, i) = position
    cell = cell_number(self, cell_index(self, position))
    if (cell == self%cell_of_bead(i)) return
    p = self%head(self%cell_of_bead(i))
    if (p == i) then
      self%head(self%cell_of_bead(i)) = self%next(i)
    else
      do while (self%next(p) /= i)
        p = self%next(p)
      end do
      self%next(p) = self%next(i)
    end if
    self%next(i) = self%head(cell)
    self%head(cell) = i
    self%cell_of_bead(i) = cell
  end subroutine move_bead

end module chain_model
