!> Which waters of a regular filling touch the solute. All coordinates are whole numbers of 0.001 angstrom, so that the
!> answer is exact and the same for every grouping of the waters.
module solvent_overlap
  use iso_fortran_env, only: int8, int32, real64
  implicit none
  private
  public :: sort_into_cells, classify_waters

contains

  !> Counting sort of the solute's atoms into the cells of a regular grid over the box.
  !> `first(c)` .. `first(c+1)-1` (1-based) are the places of cell c's atoms in `order` (1-based atom indices).
  subroutine sort_into_cells(n_atoms, position, box, grid, n_cells, order, first)
    integer(int32), intent(in) :: n_atoms
    integer(int32), intent(in) :: position(3, n_atoms)
    integer(int32), intent(in) :: box(3), grid(3), n_cells
    integer(int32), intent(out) :: order(n_atoms), first(n_cells + 1)
    !f2py threadsafe
    integer(int32) :: i, cell
    integer(int32), allocatable :: next(:)

    first = 0
    do i = 1, n_atoms
      cell = cell_index(position(:, i), box, grid)
      first(cell + 2) = first(cell + 2) + 1
    end do
    first(1) = 1
    do cell = 1, n_cells
      first(cell + 1) = first(cell + 1) + first(cell)
    end do
    allocate (next(n_cells + 1))
    next(:) = first
    do i = 1, n_atoms
      cell = cell_index(position(:, i), box, grid)
      order(next(cell + 1)) = i
      next(cell + 1) = next(cell + 1) + 1
    end do
  end subroutine sort_into_cells

  !> `status` of every water: 0 = closer to a solute atom than the table allows, 1 = its oxygen is closer than
  !> `near_distance` to a solute atom, 2 = farther. Cells must be at least as wide as every distance asked for.
  subroutine classify_waters(n_waters, n_atoms, n_elements, n_cells, water, atom, element, first, box, grid, &
      closest, near_distance, n_threads, status)
    integer(int32), intent(in) :: n_waters, n_atoms, n_elements, n_cells
    !> Water sites (oxygen in the box), solute atoms in the order of their cells, their elements (from 1).
    integer(int32), intent(in) :: water(3, 3, n_waters), atom(3, n_atoms), element(n_atoms), first(n_cells + 1)
    integer(int32), intent(in) :: box(3), grid(3)
    !> Smallest distance allowed of oxygen (1) and hydrogen (2) of water to each element.
    real(real64), intent(in) :: closest(2, n_elements), near_distance
    integer(int32), intent(in) :: n_threads
    integer(int8), intent(out) :: status(n_waters)
    !f2py threadsafe
    integer(int32) :: w
    real(real64) :: closest_squared(2, n_elements), near_squared

    closest_squared = closest**2
    near_squared = near_distance**2
    !$omp parallel do num_threads(n_threads) schedule(dynamic, 256) default(shared) private(w)
    do w = 1, n_waters
      status(w) = water_status(water(:, :, w), atom, element, first, box, grid, closest_squared, near_squared)
    end do
    !$omp end parallel do
  end subroutine classify_waters

  pure function water_status(site, atom, element, first, box, grid, closest_squared, near_squared) result(status)
    integer(int32), intent(in) :: site(3, 3), atom(:, :), element(:), first(:), box(3), grid(3)
    real(real64), intent(in) :: closest_squared(:, :), near_squared
    integer(int8) :: status
    integer(int32) :: home(3), cell(3), shift(3), dx, dy, dz, i, c
    real(real64) :: oxygen_squared

    status = 2
    home = cell_of(site(:, 1), box, grid)
    do dz = -1, 1
      do dy = -1, 1
        do dx = -1, 1
          cell = home + [dx, dy, dz]
          ! The neighbour beyond a face is the image of the cell at the other side, moved by the box.
          shift = merge(-box, merge(box, 0, cell == grid), cell < 0)
          cell = modulo(cell, grid)
          c = cell(1) + grid(1)*(cell(2) + grid(2)*cell(3)) + 1
          do i = first(c), first(c + 1) - 1
            oxygen_squared = distance_squared(site(:, 1), atom(:, i) + shift)
            if (oxygen_squared < near_squared) then
              status = 1
              if (oxygen_squared < closest_squared(1, element(i)) .or. &
                  distance_squared(site(:, 2), atom(:, i) + shift) < closest_squared(2, element(i)) .or. &
                  distance_squared(site(:, 3), atom(:, i) + shift) < closest_squared(2, element(i))) then
                status = 0
                return
              end if
            end if
          end do
        end do
      end do
    end do
  end function water_status

  pure function distance_squared(a, b) result(squared)
    integer(int32), intent(in) :: a(3), b(3)
    real(real64) :: squared
    real(real64) :: d(3)
    d = real(a - b, real64)
    squared = d(1)*d(1) + d(2)*d(2) + d(3)*d(3)
  end function distance_squared

  !> Cell coordinates from 0; positions outside the box fall into the cells at its faces.
  pure function cell_of(position, box, grid) result(cell)
    integer(int32), intent(in) :: position(3), box(3), grid(3)
    integer(int32) :: cell(3)
    cell = max(0, min(grid - 1, int(real(position, real64) * grid / box, int32)))
  end function cell_of

  !> The cell's number from 0, x fastest.
  pure function cell_index(position, box, grid) result(number)
    integer(int32), intent(in) :: position(3), box(3), grid(3)
    integer(int32) :: number
    integer(int32) :: cell(3)
    cell = cell_of(position, box, grid)
    number = cell(1) + grid(1)*(cell(2) + grid(2)*cell(3))
  end function cell_index

end module solvent_overlap
