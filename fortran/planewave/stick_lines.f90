!> The kernels between waves and grid: lines along z of the sticks of one part of a sphere, and planes of the grid.
!>
!> Two real fields make one complex one: its lines are those of the half sphere and their mirror images. Transforms are
!> those of our FFT library; none is normalised but that from lines to waves.
module stick_lines
  use, intrinsic :: iso_c_binding, only: c_loc
  use base_kinds, only: real64
  use fft_lines, only: complex_lines, line_transform_t
  use wave_sphere, only: sphere_t
  implicit none
  private
  public :: stick_lines_t, plane_transform_t, forward, backward

  !> From the grid to waves, and back.
  integer, parameter :: forward = 1, backward = 2

  !> The lines of one part of a sphere.
  type :: stick_lines_t
    integer :: n_sticks = 0, n_lines = 0
    !> Place of each line in a plane.
    integer, allocatable :: x(:), y(:)
    !> Of each stick: its line, the line of its mirror image, range of kz, its first wave.
    integer, allocatable :: line_of(:), mirror_of(:)
    integer, allocatable, private :: lower(:), upper(:), first_wave(:)
    integer, private :: n_z = 0
    real(real64), private :: half = 0.0_real64
  contains
    procedure :: create => create_lines
    procedure :: scatter
    procedure :: gather
  end type stick_lines_t

  !> One-dimensional transforms of a grid, and what they make of a plane.
  type :: plane_transform_t
    !> Grid points along x, y, z; largest kx of a wave.
    integer :: n(3) = 0, most_x = 0
    !> Along x, y and z of arrays, and y of columns alone.
    type(line_transform_t), private :: along(3, 2), column(2)
  contains
    procedure :: create => create_planes
    procedure :: to_grid
    procedure :: to_waves
    procedure :: along_x
    procedure :: along_y
    procedure :: along_z
    procedure, private :: columns
  end type plane_transform_t

contains

  !> The lines of the sticks that `owner` (from 0) has of a sphere.
  subroutine create_lines(self, sphere, owner)
    class(stick_lines_t), intent(inout) :: self
    type(sphere_t), intent(in) :: sphere
    integer, intent(in) :: owner
    integer :: s, n, wave
    associate (first => sphere%first_stick(owner), n_sticks => sphere%first_stick(owner + 1) - sphere%first_stick(owner))
      self%n_sticks = n_sticks
      self%n_z = sphere%n(3)
      self%half = 0.5_real64/product(real(sphere%n, real64))
      allocate (self%x(2*n_sticks), self%y(2*n_sticks), self%line_of(n_sticks), self%mirror_of(n_sticks), &
                self%lower(n_sticks), self%upper(n_sticks), self%first_wave(n_sticks))
      n = 0
      wave = 1
      do s = 1, n_sticks
        associate (stick => sphere%stick(first + s - 1))
          n = n + 1
          self%x(n) = stick%x + 1
          self%y(n) = modulo(stick%y, sphere%n(2)) + 1
          self%line_of(s) = n
          self%lower(s) = stick%lower
          self%upper(s) = stick%upper
          self%first_wave(s) = wave
          ! The line through G = 0 is its own mirror image.
          if (stick%x /= 0 .or. stick%y /= 0) then
            n = n + 1
            self%x(n) = modulo(-stick%x, sphere%n(1)) + 1
            self%y(n) = modulo(-stick%y, sphere%n(2)) + 1
          end if
          self%mirror_of(s) = n
          wave = wave + stick%upper - stick%lower + 1
        end associate
      end do
    end associate
    self%n_lines = n
    self%x = self%x(:n)
    self%y = self%y(:n)
  end subroutine create_lines

  !> Waves of one field or two (waves, fields) on the lines (n_z, lines) of stick s. `skipped`: lines before these.
  pure subroutine scatter(self, s, waves, line, skipped)
    class(stick_lines_t), intent(in) :: self
    integer, intent(in) :: s
    complex(real64), intent(in) :: waves(:, :)
    complex(real64), intent(inout) :: line(:, :)
    integer, intent(in), optional :: skipped
    complex(real64), parameter :: i = (0.0_real64, 1.0_real64)
    complex(real64) :: a, c
    integer :: k, wave, before, here, mirror
    before = 0
    if (present(skipped)) before = skipped
    here = self%line_of(s) - before
    mirror = self%mirror_of(s) - before
    line(:, here) = 0.0_real64
    line(:, mirror) = 0.0_real64
    c = 0.0_real64
    do k = self%lower(s), self%upper(s)
      wave = self%first_wave(s) + k - self%lower(s)
      a = waves(wave, 1)
      if (size(waves, 2) > 1) c = waves(wave, 2)
      line(modulo(k, self%n_z) + 1, here) = a + i*c
      line(modulo(-k, self%n_z) + 1, mirror) = conjg(a) + i*conjg(c)
    end do
  end subroutine scatter

  !> Add the lines of stick s to waves of one field or two, over the number of grid points. `skipped`: as of `scatter`.
  pure subroutine gather(self, s, line, waves, skipped)
    class(stick_lines_t), intent(in) :: self
    integer, intent(in) :: s
    complex(real64), intent(in) :: line(:, :)
    complex(real64), intent(inout) :: waves(:, :)
    integer, intent(in), optional :: skipped
    complex(real64) :: here, mirror
    integer :: k, wave, before
    before = 0
    if (present(skipped)) before = skipped
    do k = self%lower(s), self%upper(s)
      wave = self%first_wave(s) + k - self%lower(s)
      here = self%half*line(modulo(k, self%n_z) + 1, self%line_of(s) - before)
      mirror = self%half*conjg(line(modulo(-k, self%n_z) + 1, self%mirror_of(s) - before))
      waves(wave, 1) = waves(wave, 1) + here + mirror
      here = here - mirror
      if (size(waves, 2) > 1) waves(wave, 2) = waves(wave, 2) + cmplx(aimag(here), -real(here), real64)
    end do
  end subroutine gather

  subroutine create_planes(self, sphere)
    class(plane_transform_t), intent(inout) :: self
    type(sphere_t), intent(in) :: sphere
    integer :: axis, way
    self%n = sphere%n
    self%most_x = maxval(sphere%stick%x)
    do way = forward, backward
      do axis = 1, 3
        call self%along(axis, way)%create(complex_lines, merge(-1, 1, way == forward), 8, self%n(axis), &
                                          merge(self%n(1), 1, axis == 2))
      end do
      call self%column(way)%create(complex_lines, merge(-1, 1, way == forward), 8, self%n(2), 1)
    end do
  end subroutine create_planes

  !> A plane (n_x, n_y) with its lines in place, to grid points.
  subroutine to_grid(self, plane)
    class(plane_transform_t), intent(in) :: self
    complex(real64), target, contiguous, intent(inout) :: plane(:, :)
    call self%columns(backward, plane)
    call self%along(1, backward)%run(0, self%n(2), c_loc(plane), c_loc(plane))
  end subroutine to_grid

  !> Grid points of a plane to lines.
  subroutine to_waves(self, plane)
    class(plane_transform_t), intent(in) :: self
    complex(real64), target, contiguous, intent(inout) :: plane(:, :)
    call self%along(1, forward)%run(0, self%n(2), c_loc(plane), c_loc(plane))
    call self%columns(forward, plane)
  end subroutine to_waves

  !> Lines of a plane along y, where the sphere has waves.
  subroutine columns(self, way, plane)
    class(plane_transform_t), intent(in) :: self
    integer, intent(in) :: way
    complex(real64), target, contiguous, intent(inout) :: plane(:, :)
    call self%along(2, way)%run(0, self%most_x + 1, c_loc(plane), c_loc(plane))
    call self%along(2, way)%run(self%n(1) - self%most_x, self%most_x, c_loc(plane), c_loc(plane))
  end subroutine columns

  !> Rows along x of a part of a plane (n_x, rows), in place.
  subroutine along_x(self, way, row)
    class(plane_transform_t), intent(in) :: self
    integer, intent(in) :: way
    complex(real64), target, contiguous, intent(inout) :: row(:, :)
    call self%along(1, way)%run(0, size(row, 2), c_loc(row), c_loc(row))
  end subroutine along_x

  !> Columns (n_y, columns), in place.
  subroutine along_y(self, way, column)
    class(plane_transform_t), intent(in) :: self
    integer, intent(in) :: way
    complex(real64), target, contiguous, intent(inout) :: column(:, :)
    call self%column(way)%run(0, size(column, 2), c_loc(column), c_loc(column))
  end subroutine along_y

  !> `count` lines along z from line `first` (from 0) of an array (n_z, lines), in place.
  subroutine along_z(self, way, first, count, line)
    class(plane_transform_t), intent(in) :: self
    integer, intent(in) :: way, first, count
    complex(real64), target, contiguous, intent(inout) :: line(:, :)
    call self%along(3, way)%run(first, count, c_loc(line), c_loc(line))
  end subroutine along_z

end module stick_lines
