!> Fourier transforms between waves in a sphere and a grid in planes of z, two real fields in each complex transform.
!>
!> Waves to grid: lines along z of the sticks that this rank holds; an exchange after which each rank has all lines in
!> its planes; then plane after plane, while it lies in the cache, lines along y where the sphere has waves, and lines
!> along x. The kernels are those of our FFT library; its three-dimensional plans are not used, because here a plane of
!> the grid is consumed (squared into the density, multiplied by the potential) before the next one is made.
module sphere_transform
  use, intrinsic :: iso_c_binding, only: c_loc
  use mpi_f08, only: MPI_Alltoallv, MPI_DOUBLE_COMPLEX
  use base_kinds, only: real64
  use comm_communicator, only: communicator_t
  use fft_layout, only: share_lower, share_upper
  use fft_lines, only: complex_lines, line_transform_t
  use wave_sphere, only: sphere_t
  implicit none
  private
  public :: sphere_transform_t

  !> Pairs of fields whose lines travel in one message.
  integer, parameter :: batch_size = 4
  !> Lines along z that a thread takes at a time.
  integer, parameter :: lines_a_turn = 16

  type :: sphere_transform_t
    !> Grid points along x, y, z; planes held here, and the z of the first of them (from 0).
    integer :: n(3) = 0, n_planes = 0, first_plane = 0
    type(communicator_t), private :: comm
    !> Of each rank (from 0): its first plane, its first line among all lines.
    integer, allocatable, private :: plane_start(:), line_start(:)
    !> Place of every line in a plane, rank after rank.
    integer, allocatable, private :: x(:), y(:)
    !> Of each stick held here: its line, the line of its mirror image, range of kz, its first wave.
    integer, allocatable, private :: line_of(:), mirror_of(:), lower(:), upper(:), first_wave(:)
    !> Largest kx of a wave.
    integer, private :: most_x = 0
    integer, private :: n_lines = 0, n_waves = 0
    !> Lines along z (n(3), n_lines, batch), and what travels.
    complex(real64), allocatable, private :: line(:, :, :), sent(:), column(:)
    !> Along x, y, z; to waves (1) and to the grid (2).
    type(line_transform_t), private :: along(3, 2)
  contains
    procedure :: create
    procedure :: to_grid
    procedure :: to_waves
    procedure :: add_density
    procedure :: apply_potential
    procedure, private :: scatter
    procedure, private :: gather
    procedure, private :: exchange
    procedure, private :: plane_to_grid
    procedure, private :: plane_to_waves
    procedure, private :: place_of
  end type sphere_transform_t

contains

  !> Plan the transforms of a sphere.
  subroutine create(self, sphere, comm)
    class(sphere_transform_t), intent(inout) :: self
    type(sphere_t), intent(in) :: sphere
    type(communicator_t), intent(in) :: comm
    integer :: r, s, at, mine, wave, axis

    self%n = sphere%n
    self%comm = comm
    associate (p => comm%n_ranks, n => sphere%n)
      allocate (self%plane_start(0:p), self%line_start(0:p))
      self%plane_start = [(share_lower(n(3), p, r), r=0, p - 1), n(3)]
      self%first_plane = self%plane_start(comm%rank)
      self%n_planes = share_upper(n(3), p, comm%rank) - self%first_plane + 1
      allocate (self%x(2*size(sphere%stick)), self%y(2*size(sphere%stick)))
      mine = sphere%first_stick(comm%rank + 1) - sphere%first_stick(comm%rank)
      allocate (self%line_of(mine), self%mirror_of(mine), self%lower(mine), self%upper(mine), self%first_wave(mine))
      at = 0
      do r = 0, p - 1
        self%line_start(r) = at
        wave = 1
        do s = sphere%first_stick(r), sphere%first_stick(r + 1) - 1
          associate (stick => sphere%stick(s))
            at = at + 1
            self%x(at) = stick%x + 1
            self%y(at) = modulo(stick%y, n(2)) + 1
            if (r == comm%rank) then
              mine = s - sphere%first_stick(r) + 1
              self%line_of(mine) = at - self%line_start(r)
              self%lower(mine) = stick%lower
              self%upper(mine) = stick%upper
              self%first_wave(mine) = wave
            end if
            ! The line through G = 0 is its own mirror image.
            if (stick%x /= 0 .or. stick%y /= 0) then
              at = at + 1
              self%x(at) = modulo(-stick%x, n(1)) + 1
              self%y(at) = modulo(-stick%y, n(2)) + 1
            end if
            if (r == comm%rank) self%mirror_of(mine) = at - self%line_start(r)
            wave = wave + stick%upper - stick%lower + 1
          end associate
        end do
      end do
      self%line_start(p) = at
      self%most_x = maxval(sphere%stick%x)
      self%n_lines = self%line_start(comm%rank + 1) - self%line_start(comm%rank)
      self%n_waves = sphere%n_waves
      allocate (self%line(n(3), self%n_lines, batch_size))
      allocate (self%column(max(1, at*self%n_planes*batch_size)))
      allocate (self%sent(merge(max(1, self%n_lines*n(3)*batch_size), 1, p > 1)))
      do r = 1, 2
        do axis = 1, 3
          call self%along(axis, r)%create(complex_lines, merge(-1, 1, r == 1), 8, n(axis), merge(n(1), 1, axis == 2))
        end do
      end do
    end associate
  end subroutine create

  !> Real fields on the planes held here from their waves (n_waves, n): sum over waves of a exp(iG.r).
  subroutine to_grid(self, waves, grid)
    class(sphere_transform_t), target, intent(inout) :: self
    complex(real64), intent(in) :: waves(:, :)
    real(real64), intent(out) :: grid(:, :, :, :)
    complex(real64), allocatable, target :: plane(:, :)
    integer :: first, n_pairs, b, z, field
    do first = 1, size(waves, 2), 2*batch_size
      n_pairs = min(batch_size, (size(waves, 2) - first)/2 + 1)
      call self%scatter(waves, first, n_pairs)
      call self%exchange(.true., n_pairs)
      !$omp parallel private(plane, b, field)
      allocate (plane(self%n(1), self%n(2)))
      !$omp do
      do z = 1, self%n_planes
        do b = 1, n_pairs
          call self%plane_to_grid(b, z, n_pairs, plane)
          field = first + 2*b - 2
          grid(:, :, z, field) = real(plane, real64)
          if (field < size(waves, 2)) grid(:, :, z, field + 1) = aimag(plane)
        end do
      end do
      !$omp end do
      deallocate (plane)
      !$omp end parallel
    end do
  end subroutine to_grid

  !> Waves of real fields on the grid: mean over the grid of f exp(-iG.r).
  subroutine to_waves(self, grid, waves)
    class(sphere_transform_t), target, intent(inout) :: self
    real(real64), intent(in) :: grid(:, :, :, :)
    complex(real64), intent(out) :: waves(:, :)
    complex(real64), allocatable, target :: plane(:, :)
    integer :: first, n_pairs, b, z, field
    waves = 0.0_real64
    do first = 1, size(waves, 2), 2*batch_size
      n_pairs = min(batch_size, (size(waves, 2) - first)/2 + 1)
      !$omp parallel private(plane, b, field)
      allocate (plane(self%n(1), self%n(2)))
      !$omp do
      do z = 1, self%n_planes
        do b = 1, n_pairs
          field = first + 2*b - 2
          if (field < size(waves, 2)) then
            plane = cmplx(grid(:, :, z, field), grid(:, :, z, field + 1), real64)
          else
            plane = grid(:, :, z, field)
          end if
          call self%plane_to_waves(b, z, n_pairs, plane)
        end do
      end do
      !$omp end do
      deallocate (plane)
      !$omp end parallel
      call self%exchange(.false., n_pairs)
      call self%gather(waves, first, n_pairs)
    end do
  end subroutine to_waves

  !> Add `weight` times the squares of states on the grid to `density`. `kept` (n(1), n(2), n_planes, pairs): receives
  !> the states there; of no size: they are not kept.
  subroutine add_density(self, states, weight, density, kept)
    class(sphere_transform_t), target, intent(inout) :: self
    complex(real64), intent(in) :: states(:, :)
    real(real64), intent(in) :: weight
    real(real64), intent(inout) :: density(:, :, :)
    complex(real64), intent(inout) :: kept(:, :, :, :)
    complex(real64), allocatable, target :: plane(:, :)
    integer :: first, n_pairs, b, z
    do first = 1, size(states, 2), 2*batch_size
      n_pairs = min(batch_size, (size(states, 2) - first)/2 + 1)
      call self%scatter(states, first, n_pairs)
      call self%exchange(.true., n_pairs)
      !$omp parallel private(plane, b)
      allocate (plane(self%n(1), self%n(2)))
      !$omp do
      do z = 1, self%n_planes
        do b = 1, n_pairs
          call self%plane_to_grid(b, z, n_pairs, plane)
          density(:, :, z) = density(:, :, z) + weight*(real(plane, real64)**2 + aimag(plane)**2)
          if (size(kept, 4) > 0) kept(:, :, z, (first + 1)/2 + b - 1) = plane
        end do
      end do
      !$omp end do
      deallocate (plane)
      !$omp end parallel
    end do
  end subroutine add_density

  !> Add to `product` the waves of potential times state. `kept`: as add_density left it.
  subroutine apply_potential(self, potential, states, product, kept)
    class(sphere_transform_t), target, intent(inout) :: self
    real(real64), intent(in) :: potential(:, :, :)
    complex(real64), intent(in) :: states(:, :)
    complex(real64), intent(inout) :: product(:, :)
    complex(real64), intent(in) :: kept(:, :, :, :)
    complex(real64), allocatable, target :: plane(:, :)
    integer :: first, n_pairs, b, z
    do first = 1, size(states, 2), 2*batch_size
      n_pairs = min(batch_size, (size(states, 2) - first)/2 + 1)
      if (size(kept, 4) == 0) then
        call self%scatter(states, first, n_pairs)
        call self%exchange(.true., n_pairs)
      end if
      !$omp parallel private(plane, b)
      allocate (plane(self%n(1), self%n(2)))
      !$omp do
      do z = 1, self%n_planes
        do b = 1, n_pairs
          if (size(kept, 4) == 0) then
            call self%plane_to_grid(b, z, n_pairs, plane)
            plane = plane*potential(:, :, z)
          else
            plane = kept(:, :, z, (first + 1)/2 + b - 1)*potential(:, :, z)
          end if
          call self%plane_to_waves(b, z, n_pairs, plane)
        end do
      end do
      !$omp end do
      deallocate (plane)
      !$omp end parallel
      call self%exchange(.false., n_pairs)
      call self%gather(product, first, n_pairs)
    end do
  end subroutine apply_potential

  !> Fields from number `first` on as lines along z, transformed to the grid.
  subroutine scatter(self, waves, first, n_pairs)
    class(sphere_transform_t), target, intent(inout) :: self
    complex(real64), intent(in) :: waves(:, :)
    integer, intent(in) :: first, n_pairs
    complex(real64), parameter :: i = (0.0_real64, 1.0_real64)
    complex(real64) :: a, c
    integer :: b, s, k, wave, field
    logical :: is_pair
    !$omp parallel do collapse(2) private(field, is_pair, k, wave, a, c)
    do b = 1, n_pairs
      do s = 1, size(self%line_of)
        field = first + 2*b - 2
        is_pair = field < size(waves, 2)
        self%line(:, self%line_of(s), b) = 0.0_real64
        self%line(:, self%mirror_of(s), b) = 0.0_real64
        c = 0.0_real64
        do k = self%lower(s), self%upper(s)
          wave = self%first_wave(s) + k - self%lower(s)
          a = waves(wave, field)
          if (is_pair) c = waves(wave, field + 1)
          self%line(modulo(k, self%n(3)) + 1, self%line_of(s), b) = a + i*c
          self%line(modulo(-k, self%n(3)) + 1, self%mirror_of(s), b) = conjg(a) + i*conjg(c)
        end do
      end do
    end do
    call transform_lines(self, 2, n_pairs)
  end subroutine scatter

  !> Add lines along z, transformed to waves, to fields from number `first` on.
  subroutine gather(self, waves, first, n_pairs)
    class(sphere_transform_t), target, intent(inout) :: self
    complex(real64), intent(inout) :: waves(:, :)
    integer, intent(in) :: first, n_pairs
    complex(real64) :: here, mirror
    real(real64) :: half
    integer :: b, s, k, wave, field
    call transform_lines(self, 1, n_pairs)
    half = 0.5_real64/product(real(self%n, real64))
    !$omp parallel do collapse(2) private(field, k, wave, here, mirror)
    do b = 1, n_pairs
      do s = 1, size(self%line_of)
        field = first + 2*b - 2
        do k = self%lower(s), self%upper(s)
          wave = self%first_wave(s) + k - self%lower(s)
          here = half*self%line(modulo(k, self%n(3)) + 1, self%line_of(s), b)
          mirror = half*conjg(self%line(modulo(-k, self%n(3)) + 1, self%mirror_of(s), b))
          waves(wave, field) = waves(wave, field) + here + mirror
          here = here - mirror
          if (field < size(waves, 2)) &
            waves(wave, field + 1) = waves(wave, field + 1) + cmplx(aimag(here), -real(here), real64)
        end do
      end do
    end do
  end subroutine gather

  !> Lines along z, in place.
  subroutine transform_lines(self, direction, n_pairs)
    class(sphere_transform_t), target, intent(inout) :: self
    integer, intent(in) :: direction, n_pairs
    integer :: first, n_all
    n_all = self%n_lines*n_pairs
    !$omp parallel do
    do first = 0, n_all - 1, lines_a_turn
      call self%along(3, direction)%run(first, min(lines_a_turn, n_all - first), c_loc(self%line), c_loc(self%line))
    end do
  end subroutine transform_lines

  !> Where line 1 of rank r begins, less one, in plane z (counted there from 1) of pair b as it travels, for a rank that
  !> has `n_planes` planes: all lines of a rank in a plane follow each other.
  pure integer function place_of(self, r, n_planes, z, b, n_pairs)
    class(sphere_transform_t), intent(in) :: self
    integer, intent(in) :: r, n_planes, z, b, n_pairs
    place_of = self%line_start(r)*n_planes*n_pairs + ((b - 1)*n_planes + z - 1)*(self%line_start(r + 1) - self%line_start(r))
  end function place_of

  !> Bring lines into planes, or back.
  subroutine exchange(self, to_planes, n_pairs)
    class(sphere_transform_t), intent(inout) :: self
    logical, intent(in) :: to_planes
    integer, intent(in) :: n_pairs
    integer, allocatable :: lines_out(:), lines_in(:), start_out(:), start_in(:)
    integer :: p
    p = self%comm%n_ranks
    if (p == 1) then
      call copy(self, to_planes, n_pairs, self%column)
      return
    end if
    ! To rank r go our lines in its planes; from it come its lines in ours.
    lines_out = self%n_lines*(self%plane_start(1:) - self%plane_start(:p - 1))*n_pairs
    start_out = self%n_lines*self%plane_start(:p - 1)*n_pairs
    lines_in = (self%line_start(1:) - self%line_start(:p - 1))*self%n_planes*n_pairs
    start_in = self%line_start(:p - 1)*self%n_planes*n_pairs
    if (to_planes) then
      call copy(self, to_planes, n_pairs, self%sent)
      call MPI_Alltoallv(self%sent, lines_out, start_out, MPI_DOUBLE_COMPLEX, &
                         self%column, lines_in, start_in, MPI_DOUBLE_COMPLEX, self%comm%handle)
    else
      call MPI_Alltoallv(self%column, lines_in, start_in, MPI_DOUBLE_COMPLEX, &
                         self%sent, lines_out, start_out, MPI_DOUBLE_COMPLEX, self%comm%handle)
      call copy(self, to_planes, n_pairs, self%sent)
    end if
  end subroutine exchange

  !> Lines along z into the order in which they travel, or back.
  subroutine copy(self, to_planes, n_pairs, travelling)
    class(sphere_transform_t), intent(inout) :: self
    logical, intent(in) :: to_planes
    integer, intent(in) :: n_pairs
    complex(real64), intent(inout) :: travelling(:)
    integer, parameter :: block = 16
    integer :: r, b, z, at, first, last, n_planes, l
    !$omp parallel do collapse(2) private(r, n_planes, z, at, last, l)
    do b = 1, n_pairs
      do first = 1, self%n_lines, block
        last = min(first + block - 1, self%n_lines)
        do r = 0, self%comm%n_ranks - 1
          n_planes = self%plane_start(r + 1) - self%plane_start(r)
          do z = 1, n_planes
            at = self%n_lines*(self%plane_start(r)*n_pairs + (b - 1)*n_planes + z - 1)
            do l = first, last
              if (to_planes) then
                travelling(at + l) = self%line(self%plane_start(r) + z, l, b)
              else
                self%line(self%plane_start(r) + z, l, b) = travelling(at + l)
              end if
            end do
          end do
        end do
      end do
    end do
  end subroutine copy

  !> Plane z of pair b, from lines to grid points.
  subroutine plane_to_grid(self, b, z, n_pairs, plane)
    class(sphere_transform_t), intent(in) :: self
    integer, intent(in) :: b, z, n_pairs
    complex(real64), target, contiguous, intent(out) :: plane(:, :)
    integer :: r, l, at
    plane = 0.0_real64
    do r = 0, self%comm%n_ranks - 1
      at = self%place_of(r, self%n_planes, z, b, n_pairs) - self%line_start(r)
      do l = self%line_start(r) + 1, self%line_start(r + 1)
        plane(self%x(l), self%y(l)) = self%column(at + l)
      end do
    end do
    call transform_columns(self, 2, plane)
    call self%along(1, 2)%run(0, self%n(2), c_loc(plane), c_loc(plane))
  end subroutine plane_to_grid

  !> Plane z of pair b, from grid points to lines. Overwrites `plane`.
  subroutine plane_to_waves(self, b, z, n_pairs, plane)
    class(sphere_transform_t), intent(inout) :: self
    integer, intent(in) :: b, z, n_pairs
    complex(real64), target, contiguous, intent(inout) :: plane(:, :)
    integer :: r, l, at
    call self%along(1, 1)%run(0, self%n(2), c_loc(plane), c_loc(plane))
    call transform_columns(self, 1, plane)
    do r = 0, self%comm%n_ranks - 1
      at = self%place_of(r, self%n_planes, z, b, n_pairs) - self%line_start(r)
      do l = self%line_start(r) + 1, self%line_start(r + 1)
        self%column(at + l) = plane(self%x(l), self%y(l))
      end do
    end do
  end subroutine plane_to_waves

  !> Lines of a plane along y, where the sphere has waves.
  subroutine transform_columns(self, direction, plane)
    class(sphere_transform_t), intent(in) :: self
    integer, intent(in) :: direction
    complex(real64), target, contiguous, intent(inout) :: plane(:, :)
    call self%along(2, direction)%run(0, self%most_x + 1, c_loc(plane), c_loc(plane))
    call self%along(2, direction)%run(self%n(1) - self%most_x, self%most_x, c_loc(plane), c_loc(plane))
  end subroutine transform_columns

end module sphere_transform
