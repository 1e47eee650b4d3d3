!> Memory of the mesh of PME. Grid and waves share it in turn, and on one rank the brick does so too: between brick and grid
!> it is then moved in place.
module pme_mesh
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_loc
  use base_kinds, only: int64
  use pair_precision, only: real_pair
  implicit none
  private
  public :: pme_mesh_t

  type :: pme_mesh_t
    integer :: n(3) = 0, order = 4, n_lines = 0
    !> One rank has all of the grid.
    logical :: is_alone = .true., has_planes = .false.
    !> Grid and brick by their points, waves as in module pme_waves.
    real(real_pair), pointer, contiguous :: mesh(:) => null(), brick(:, :, :) => null(), grid(:, :, :) => null()
    complex(real_pair), pointer, contiguous :: wave(:, :) => null()
  contains
    procedure :: allocate_brick
    procedure :: deallocate_brick
    procedure :: allocate_mesh
    procedure :: deallocate_mesh
    procedure :: brick_to_grid
    procedure :: grid_to_brick
  end type pme_mesh_t

contains

  !> Room for the brick.
  !> `low`, `high`: its first and last point along x, y and z.
  subroutine allocate_brick(self, low, high)
    class(pme_mesh_t), intent(inout) :: self
    integer, intent(in) :: low(3), high(3)
    if (.not. self%is_alone) then
      allocate (self%brick(low(1):high(1), low(2):high(2), low(3):high(3)))
    else
      self%brick(low(1):high(1), low(2):high(2), low(3):high(3)) => self%mesh
    end if
  end subroutine allocate_brick

  subroutine deallocate_brick(self)
    class(pme_mesh_t), intent(inout) :: self
    if (.not. self%is_alone) deallocate (self%brick)
    nullify (self%brick)
  end subroutine deallocate_brick

  !> Room for grid and waves in turn, on one rank for the brick too.
  subroutine allocate_mesh(self, low, high, brick_size)
    class(pme_mesh_t), intent(inout) :: self
    !> Bounds of this rank's part of the grid; points of the brick.
    integer, intent(in) :: low(3), high(3)
    integer(int64), intent(in) :: brick_size
    integer(int64) :: n_grid, n_wave
    n_grid = product(int(high - low + 1, int64))
    n_wave = int(self%n(3), int64)*self%n_lines
    allocate (self%mesh(max(n_grid, 2*n_wave, merge(brick_size, 0_int64, self%is_alone))))
    self%grid(low(1):high(1), low(2):high(2), low(3):high(3)) => self%mesh(:n_grid)
    if (self%has_planes) then
      call c_f_pointer(c_loc(self%mesh), self%wave, [self%n_lines, self%n(3)])
    else
      call c_f_pointer(c_loc(self%mesh), self%wave, [self%n(3), self%n_lines])
    end if
  end subroutine allocate_mesh

  subroutine deallocate_mesh(self)
    class(pme_mesh_t), intent(inout) :: self
    deallocate (self%mesh)
    nullify (self%mesh, self%grid, self%wave)
  end subroutine deallocate_mesh

  !> On one rank: add what the brick holds beyond the box to where it belongs, and move the grid to the front of the
  !> memory, where the brick was. Rows only move down, and as many planes as fit before the first of them move side by side.
  subroutine brick_to_grid(self)
    class(pme_mesh_t), intent(inout) :: self
    integer :: y, z, first, last
    associate (brick => self%brick, n => self%n, beyond => self%order - 1)
      !$omp parallel private(first, last)
      do first = -beyond, -1
        !$omp do schedule(static)
        do y = -beyond, n(2) - 1
          brick(:, y, first + n(3)) = brick(:, y, first + n(3)) + brick(:, y, first)
        end do
        !$omp end do nowait
      end do
      !$omp barrier
      !$omp do schedule(static) private(y)
      do z = 0, n(3) - 1
        do y = -beyond, -1
          brick(:, y + n(2), z) = brick(:, y + n(2), z) + brick(:, y, z)
        end do
        do y = 0, n(2) - 1
          brick(n(1) - beyond:, y, z) = brick(n(1) - beyond:, y, z) + brick(:-1, y, z)
        end do
      end do
      !$omp end do
      first = 0
      do while (first < n(3))
        last = min(n(3), room_before(self, first)) - 1
        !$omp do collapse(2) schedule(static)
        do z = first, last
          do y = 0, n(2) - 1
            call move_row(n(1), brick(0:, y, z), self%grid(:, y, z))
          end do
        end do
        !$omp end do
        first = last + 1
      end do
      !$omp end parallel
    end associate
  end subroutine brick_to_grid

  !> The way back: the grid moves up, last plane first, and what lies beyond the box is filled in.
  subroutine grid_to_brick(self)
    class(pme_mesh_t), intent(inout) :: self
    integer :: y, z, first, last
    associate (brick => self%brick, n => self%n, beyond => self%order - 1)
      !$omp parallel private(first, last)
      last = n(3) - 1
      do while (last >= 0)
        first = last
        do while (first > 0)
          if (room_before(self, first - 1) <= last) exit
          first = first - 1
        end do
        !$omp do collapse(2) schedule(static)
        do z = first, last
          do y = 0, n(2) - 1
            call move_row(n(1), self%grid(:, y, z), brick(0:, y, z))
          end do
        end do
        !$omp end do
        last = first - 1
      end do
      !$omp do schedule(static) private(y)
      do z = 0, n(3) - 1
        do y = 0, n(2) - 1
          brick(:-1, y, z) = brick(n(1) - beyond:, y, z)
        end do
        do y = -beyond, -1
          brick(:, y, z) = brick(:, y + n(2), z)
        end do
      end do
      !$omp end do
      !$omp do collapse(2) schedule(static)
      do z = -beyond, -1
        do y = -beyond, n(2) - 1
          brick(:, y, z) = brick(:, y, z + n(3))
        end do
      end do
      !$omp end do
      !$omp end parallel
    end associate
  end subroutine grid_to_brick

  !> How many planes of the grid lie in memory before what plane `z` (from 0) of the brick holds of the box.
  pure integer function room_before(self, z)
    class(pme_mesh_t), intent(in) :: self
    integer, intent(in) :: z
    integer(int64) :: row
    associate (n => int(self%n, int64), beyond => self%order - 1)
      row = (z + beyond)*(n(2) + beyond) + beyond
      room_before = int((row*(n(1) + beyond) + beyond)/(n(1)*n(2)))
    end associate
  end function room_before

  pure subroutine move_row(n, from, to)
    integer, intent(in) :: n
    real(real_pair), intent(in) :: from(n)
    real(real_pair), intent(inout) :: to(n)
    to = from
  end subroutine move_row

end module pme_mesh
