!> Rows of partners for potentials whose cutoff holds few atoms (materials): each atom has a list of the atoms within
!> reach, as Verlet's.
!>
!> Atoms, owned and ghosts together, are sorted into cells, x fastest and z slowest; the place of an atom in that order is
!> its slot. A row holds later slots only, so that each pair occurs once, and no pair of two ghosts. The slots are cut into
!> blocks by the data alone. A block adds to slots from its own first to the last that it reaches, a layer of cells on, in a
!> buffer of its own: results do not depend on the number of threads.
module row_list
  use base_kinds, only: int64, real64
  use pair_precision, only: real_pair
  use bounding_box, only: find_bounds
  use material_kernels, only: material_kernels_t
  use row_block, only: row_block_t
  implicit none
  private
  public :: row_list_t

  !> Cells are a reach divided by this wide.
  integer, parameter :: cells_per_reach = 2
  integer, parameter :: slots_per_block = 1024, most_blocks = 16

  type :: row_list_t
    integer :: n_slots = 0
    !> Atom of each slot.
    integer, allocatable :: atom(:)
    type(row_block_t), allocatable :: block(:)
  contains
    procedure :: make
    procedure :: n_pairs
  end type row_list_t

contains

  !> Sort the atoms and find the pairs within `reach` (angstrom). Positions (3, n_total), owned atoms first. Rows are filled
  !> up to whole vectors of `kernels`.
  subroutine make(self, n_owned, n_total, position, reach, kernels)
    class(row_list_t), intent(inout) :: self
    integer, intent(in) :: n_owned, n_total
    real(real64), intent(in) :: position(:, :), reach
    class(material_kernels_t), intent(in) :: kernels
    real(real_pair), allocatable :: sorted(:, :)
    integer, allocatable :: cell_first(:), cell(:), is_owned(:)
    real(real64) :: corner(3), width(3)
    integer :: n_cells(3), b, n_blocks, i

    self%n_slots = n_total
    if (allocated(self%block)) deallocate (self%block)
    if (n_total == 0 .or. n_owned == 0) then
      allocate (self%block(0))
      if (allocated(self%atom)) deallocate (self%atom)
      allocate (self%atom(0))
      self%n_slots = 0
      return
    end if
    call find_bounds(position(:, :n_total), corner, width)
    width = width - corner
    ! No more cells than atoms, however far they are apart.
    n_cells = max(1, int(min(cells_per_reach*width/reach, real(n_total, real64)**(1.0_real64/3.0_real64) + 1.0_real64)))
    width = width/n_cells + tiny(1.0_real64)
    call sort_into_cells(self, n_total, position, corner, width, n_cells, cell, cell_first)
    ! The search reads whole vectors.
    allocate (sorted(n_total + kernels%lanes, 3), is_owned(n_total + kernels%lanes))
    sorted(n_total + 1:, :) = 0.0_real_pair
    is_owned(n_total + 1:) = 0
    !$omp parallel do schedule(static)
    do i = 1, n_total
      sorted(i, :) = real(position(:, self%atom(i)) - corner, real_pair)
      is_owned(i) = merge(1, 0, self%atom(i) <= n_owned)
    end do
    !$omp end parallel do
    n_blocks = max(1, min(most_blocks, n_total/slots_per_block))
    allocate (self%block(n_blocks))
    !$omp parallel do schedule(dynamic)
    do b = 1, n_blocks
      self%block(b)%first = int((b - 1)*int(n_total, int64)/n_blocks) + 1
      self%block(b)%last = int(b*int(n_total, int64)/n_blocks)
      call find_rows(self%block(b), is_owned, sorted, cell(self%block(b)%first:self%block(b)%last), cell_first, n_cells, &
                     width, reach, kernels)
    end do
    !$omp end parallel do
  end subroutine make

  !> Number of pairs in the rows.
  pure integer(int64) function n_pairs(self)
    class(row_list_t), intent(in) :: self
    integer :: b
    n_pairs = 0
    do b = 1, size(self%block)
      n_pairs = n_pairs + sum(int(self%block(b)%row_length, int64))
    end do
  end function n_pairs

  !> Give every atom a slot. `cell`: of each slot, from 0; `cell_first(c)`: first slot of cell c, one more entry than cells.
  subroutine sort_into_cells(self, n_total, position, corner, width, n_cells, cell, cell_first)
    type(row_list_t), intent(inout) :: self
    integer, intent(in) :: n_total, n_cells(3)
    real(real64), intent(in) :: position(:, :), corner(3), width(3)
    integer, allocatable, intent(out) :: cell(:), cell_first(:)
    integer, allocatable :: cell_of_atom(:), next(:)
    integer :: i, c(3), n

    allocate (cell_of_atom(n_total), cell(n_total), cell_first(0:product(n_cells)))
    !$omp parallel do schedule(static) private(c)
    do i = 1, n_total
      c = max(0, min(n_cells - 1, int((position(:, i) - corner)/width)))
      cell_of_atom(i) = c(1) + n_cells(1)*(c(2) + n_cells(2)*c(3))
    end do
    !$omp end parallel do
    cell_first = 0
    do i = 1, n_total
      cell_first(cell_of_atom(i) + 1) = cell_first(cell_of_atom(i) + 1) + 1
    end do
    cell_first(0) = 1
    do n = 1, size(cell_first) - 1
      cell_first(n) = cell_first(n - 1) + cell_first(n)
    end do
    if (allocated(self%atom)) deallocate (self%atom)
    allocate (self%atom(n_total), next(0:size(cell_first) - 1))
    next = cell_first
    do i = 1, n_total
      self%atom(next(cell_of_atom(i))) = i
      cell(next(cell_of_atom(i))) = cell_of_atom(i)
      next(cell_of_atom(i)) = next(cell_of_atom(i)) + 1
    end do
  end subroutine sort_into_cells

  !> Find the rows of a block. `cell`: of its slots.
  subroutine find_rows(block, is_owned, sorted, cell, cell_first, n_cells, width, reach, kernels)
    type(row_block_t), intent(inout) :: block
    integer, intent(in) :: cell(block%first:), cell_first(0:), n_cells(3)
    class(material_kernels_t), intent(in) :: kernels
    ! Contiguous: no copies are made for the kernels.
    integer, contiguous, intent(in) :: is_owned(:)
    real(real_pair), contiguous, intent(in) :: sorted(:, :)
    real(real64), intent(in) :: width(3), reach
    !> What coordinates lose when they become 32-bit numbers, as a share of the reach squared.
    real(real64), parameter :: rounding_reserve = 1.00001_real64
    integer, allocatable :: larger(:)
    real(real64) :: reach2, gap
    integer :: i, n, c(3), layers(3), dy_cell, dz_cell, row, first, last, pad, beyond, lanes

    lanes = kernels%lanes
    reach2 = rounding_reserve*reach**2
    layers = min(n_cells, int(reach/width) + 1)
    pad = 4*(size(is_owned) - lanes)
    allocate (block%row_first(block%first:block%last), block%row_length(block%first:block%last))
    allocate (block%partner(64*(block%last - block%first + 1)))
    block%upper = block%last
    n = 0
    do i = block%first, block%last
      block%row_first(i) = n + 1
      c(3) = cell(i)/(n_cells(1)*n_cells(2))
      c(2) = mod(cell(i)/n_cells(1), n_cells(2))
      c(1) = mod(cell(i), n_cells(1))
      do dz_cell = 0, min(layers(3), n_cells(3) - 1 - c(3))
        do dy_cell = merge(0, -min(layers(2), c(2)), dz_cell == 0), min(layers(2), n_cells(2) - 1 - c(2))
          ! Cells side by side along x hold slots side by side.
          row = n_cells(1)*(c(2) + dy_cell + n_cells(2)*(c(3) + dz_cell))
          gap = (max(0, abs(dy_cell) - 1)*width(2))**2 + (max(0, dz_cell - 1)*width(3))**2
          if (gap >= reach2) cycle
          first = cell_first(row + max(0, c(1) - layers(1)))
          if (dy_cell == 0 .and. dz_cell == 0) first = i + 1
          last = cell_first(row + min(n_cells(1) - 1, c(1) + layers(1)) + 1) - 1
          if (n + last - first + 1 + lanes > size(block%partner)) then
            allocate (larger(2*(n + last - first + 1 + lanes)))
            larger(:n) = block%partner(:n)
            call move_alloc(larger, block%partner)
          end if
          call kernels%collect(i, first, last, sorted, is_owned, reach2, block%partner, n)
        end do
      end do
      block%row_length(i) = n + 1 - block%row_first(i)
      beyond = modulo(-block%row_length(i), lanes)
      block%partner(n + 1:n + beyond) = pad
      if (block%row_length(i) > 0) block%upper = max(block%upper, maxval(block%partner(block%row_first(i):n))/4 + 1)
      n = n + beyond
    end do
    block%partner = block%partner(:n)
    allocate (block%result(4*(block%first - 1):4*block%upper - 1))
  end subroutine find_rows

end module row_list
