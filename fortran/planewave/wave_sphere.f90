!> Plane waves exp(iG.r) of a rectangular periodic box inside a sphere in reciprocal space, and which rank holds them.
!>
!> Fields are real, so the coefficient of -G is the complex conjugate of that of G and half of the sphere is held:
!> sticks (kx, ky) with kx > 0, or kx = 0 and ky > 0, and of the stick (0, 0) the waves with kz >= 0. A stick has one
!> owner, and whole sticks are dealt so that ranks hold nearly equal numbers of waves.
module wave_sphere
  use base_kinds, only: int64, real64
  use base_constants, only: pi
  implicit none
  private
  public :: sphere_t, grid_size, smooth_size

  type :: stick_t
    !> Indices kx, ky; range of kz; rank.
    integer :: x = 0, y = 0, lower = 0, upper = -1, owner = 0
  end type stick_t

  type :: sphere_t
    !> Edges of the box (bohr), its volume (bohr^3), grid points along x, y, z.
    real(real64) :: box(3) = 0.0_real64, volume = 0.0_real64
    integer :: n(3) = 0
    !> Largest square of a wave vector (1/bohr^2): a kinetic energy in rydberg.
    real(real64) :: largest_g2 = 0.0_real64
    !> All sticks of the half sphere, owner after owner, and the first of each owner (from rank 0).
    type(stick_t), allocatable :: stick(:)
    integer, allocatable :: first_stick(:)
    !> Waves held here, and of the half sphere on all ranks.
    integer :: n_waves = 0
    integer(int64) :: n_all = 0
    !> Wave vectors held here (n_waves, 3) in 1/bohr and their squares; indices kx, ky, kz (3, n_waves).
    real(real64), allocatable :: g(:, :), g2(:)
    integer, allocatable :: index(:, :)
    !> Place of G = 0 among the waves held here; 0: another rank has it.
    integer :: zero = 0
  contains
    procedure :: create
    procedure :: phases
    procedure :: doubled
  end type sphere_t

contains

  !> Grid points an axis for products of two states: the smallest number without prime factors above 5 that keeps waves
  !> up to the density's cutoff apart. `largest_g2`: square of the longest wave vector of the density (1/bohr^2).
  elemental integer function grid_size(largest_g2, edge) result(n)
    real(real64), intent(in) :: largest_g2, edge
    n = smooth_size(2*int(sqrt(largest_g2)*edge/(2.0_real64*pi)) + 1)
  end function grid_size

  !> The smallest number from `least` on without prime factors above 5.
  elemental integer function smooth_size(least) result(n)
    integer, intent(in) :: least
    integer :: rest
    n = least
    do
      rest = n
      do while (mod(rest, 2) == 0)
        rest = rest/2
      end do
      do while (mod(rest, 3) == 0)
        rest = rest/3
      end do
      do while (mod(rest, 5) == 0)
        rest = rest/5
      end do
      if (rest == 1) return
      n = n + 1
    end do
  end function smooth_size

  !> Deal the waves with G^2 <= `largest_g2` (1/bohr^2) of a box to `n_ranks` ranks; `rank` is this one.
  subroutine create(self, box, n, largest_g2, n_ranks, rank)
    class(sphere_t), intent(out) :: self
    real(real64), intent(in) :: box(3), largest_g2
    integer, intent(in) :: n(3), n_ranks, rank
    type(stick_t), allocatable :: found(:)
    integer, allocatable :: load(:), by_length(:)
    integer :: most(3), x, y, n_found, length, k, s, owner, at, z
    real(real64) :: left, unit(3)

    self%box = box
    self%volume = product(box)
    self%n = n
    self%largest_g2 = largest_g2
    unit = 2.0_real64*pi/box
    most = int(sqrt(largest_g2)/unit)
    allocate (found((most(1) + 1)*(2*most(2) + 1)))
    n_found = 0
    do x = 0, most(1)
      do y = -most(2), most(2)
        if (x == 0 .and. y < 0) cycle
        left = largest_g2 - (x*unit(1))**2 - (y*unit(2))**2
        if (left < 0.0_real64) cycle
        n_found = n_found + 1
        length = int(sqrt(left)/unit(3))
        found(n_found) = stick_t(x, y, merge(0, -length, x == 0 .and. y == 0), length, 0)
      end do
    end do

    ! The longest first, each to the rank with the fewest waves so far.
    allocate (by_length(0))
    do length = 2*most(3) + 1, 1, -1
      by_length = [by_length, pack([(k, k=1, n_found)], found(:n_found)%upper - found(:n_found)%lower + 1 == length)]
    end do
    allocate (load(0:n_ranks - 1), source=0)
    do k = 1, n_found
      associate (stick => found(by_length(k)))
        stick%owner = minloc(load, dim=1) - 1
        load(stick%owner) = load(stick%owner) + stick%upper - stick%lower + 1
      end associate
    end do
    allocate (self%stick(n_found), self%first_stick(0:n_ranks))
    at = 0
    do owner = 0, n_ranks - 1
      self%first_stick(owner) = at + 1
      do k = 1, n_found
        if (found(k)%owner /= owner) cycle
        at = at + 1
        self%stick(at) = found(k)
      end do
    end do
    self%first_stick(n_ranks) = n_found + 1

    self%n_waves = load(rank)
    self%n_all = sum(int(load, int64))
    allocate (self%g(self%n_waves, 3), self%g2(self%n_waves), self%index(3, self%n_waves))
    at = 0
    do s = self%first_stick(rank), self%first_stick(rank + 1) - 1
      do z = self%stick(s)%lower, self%stick(s)%upper
        at = at + 1
        self%index(:, at) = [self%stick(s)%x, self%stick(s)%y, z]
        self%g(at, :) = self%index(:, at)*unit
        self%g2(at) = sum(self%g(at, :)**2)
        if (all(self%index(:, at) == 0)) self%zero = at
      end do
    end do
  end subroutine create

  !> exp(-iG.R) of the waves held here for a point R (bohr).
  subroutine phases(self, position, phase)
    class(sphere_t), intent(in) :: self
    real(real64), intent(in) :: position(3)
    complex(real64), intent(out) :: phase(:)
    complex(real64), allocatable :: power(:, :)
    integer :: most, k, axis
    real(real64) :: angle
    most = maxval(self%n)/2
    allocate (power(-most:most, 3))
    do axis = 1, 3
      angle = -2.0_real64*pi*position(axis)/self%box(axis)
      do k = -most, most
        power(k, axis) = cmplx(cos(k*angle), sin(k*angle), real64)
      end do
    end do
    do k = 1, self%n_waves
      phase(k) = power(self%index(1, k), 1)*power(self%index(2, k), 2)*power(self%index(3, k), 3)
    end do
  end subroutine phases

  !> Sum over the whole sphere of a quantity that is the same at G and -G, from its values on the half held here.
  pure real(real64) function doubled(self, value)
    class(sphere_t), intent(in) :: self
    real(real64), intent(in) :: value(:)
    doubled = 2.0_real64*sum(value)
    if (self%zero > 0) doubled = doubled - value(self%zero)
  end function doubled

end module wave_sphere
