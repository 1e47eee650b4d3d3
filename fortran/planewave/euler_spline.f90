!> Euler exponential splines: exp(-iG.R) of all waves of a sphere from B-splines on a mesh about R, so that sums over
!> atoms become Fourier transforms (Lee, Tuckerman and Martyna, ChemPhysChem 6, 1827 (2005)).
!>
!> With u the place of R on a mesh of n points and M the B-spline of even order about 0,
!> exp(-2 pi i k u/n) = d(k) sum_j M(u - j) exp(-2 pi i k j/n), 1/d(k) = sum_m M(m) cos(2 pi k m/n),
!> exact for u on the mesh, and elsewhere the nearer the finer the mesh and the higher the order.
module euler_spline
  use base_kinds, only: real64
  use base_constants, only: pi
  use wave_sphere, only: smooth_size, sphere_t
  implicit none
  private
  public :: euler_spline_t, spline_settings_t, support_t

  !> Which sums over atoms are splines; order, and points of a mesh an axis in units of those that the waves need.
  type :: spline_settings_t
    logical :: for_local = .false., for_nonlocal = .false.
    integer :: order = 12
    real(real64) :: scale = 1.4_real64
  end type spline_settings_t

  !> The splines about one point: their places on the mesh (order, axis), values, and derivatives (1/bohr).
  type :: support_t
    integer, allocatable :: place(:, :)
    real(real64), allocatable :: value(:, :), slope(:, :)
  end type support_t

  type :: euler_spline_t
    !> Mesh points along x, y, z.
    integer :: n(3) = 0
    integer, private :: order = 0
    real(real64), private :: box(3) = 0.0_real64
  contains
    procedure :: create
    procedure :: sphere_on_mesh
    procedure :: factors
    procedure :: support_of
    procedure :: spread
    procedure :: gather
  end type euler_spline_t

contains

  !> Plan a mesh for the waves of a box. `needed`: mesh points an axis that keep them apart.
  pure subroutine create(self, box, needed, settings)
    class(euler_spline_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    integer, intent(in) :: needed(3)
    type(spline_settings_t), intent(in) :: settings
    self%order = settings%order
    self%box = box
    ! A mesh narrower than a spline would meet itself.
    self%n = smooth_size(max(needed, ceiling(settings%scale*needed), settings%order))
  end subroutine create

  !> The waves of a sphere, dealt to `n_owners`, with the mesh for a grid.
  subroutine sphere_on_mesh(self, sphere, n_owners, owner, on_mesh)
    class(euler_spline_t), intent(in) :: self
    type(sphere_t), intent(in) :: sphere
    integer, intent(in) :: n_owners, owner
    type(sphere_t), intent(out) :: on_mesh
    call on_mesh%create(self%box, self%n, sphere%largest_g2, n_owners, owner)
  end subroutine sphere_on_mesh

  !> d of each wave held here.
  pure function factors(self, sphere) result(d)
    class(euler_spline_t), intent(in) :: self
    type(sphere_t), intent(in) :: sphere
    real(real64) :: d(sphere%n_waves)
    real(real64), allocatable :: of_index(:)
    integer :: axis, k
    d = 1.0_real64
    do axis = 1, 3
      of_index = coefficients(self%order, self%n(axis))
      do k = 1, sphere%n_waves
        d(k) = d(k)*of_index(abs(sphere%index(axis, k)) + 1)
      end do
    end do
  end function factors

  !> d(k) for k = 0 ... n/2 on a mesh of n points.
  pure function coefficients(order, n) result(d)
    integer, intent(in) :: order, n
    real(real64) :: d(n/2 + 1)
    !> Images beyond are below rounding from order 4 on.
    integer, parameter :: most_images = 50
    real(real64) :: x
    integer :: k, m
    d(1) = 1.0_real64
    do k = 1, n/2
      x = real(k, real64)/n
      d(k + 1) = (pi*x/sin(pi*x))**order/sum([((x/(x + m))**(2*order), m=-most_images, most_images)])
    end do
  end function coefficients

  !> Values and derivatives of the B-spline at w, w + 1, ... (0 <= w < 1), where it reaches from 0 to its order.
  pure subroutine b_spline(order, w, value, slope)
    integer, intent(in) :: order
    real(real64), intent(in) :: w
    real(real64), intent(out) :: value(order), slope(order)
    integer :: n, k
    value = 0.0_real64
    value(1:2) = [w, 1.0_real64 - w]
    do n = 3, order
      if (n == order) slope = value - [0.0_real64, value(:order - 1)]
      do k = n, 2, -1
        value(k) = ((w + k - 1)*value(k) + (n - w - k + 1)*value(k - 1))/(n - 1)
      end do
      value(1) = w*value(1)/(n - 1)
    end do
  end subroutine b_spline

  !> The splines about a point (bohr).
  pure function support_of(self, position) result(support)
    class(euler_spline_t), intent(in) :: self
    real(real64), intent(in) :: position(3)
    type(support_t) :: support
    real(real64) :: u
    integer :: axis, k, below
    allocate (support%place(self%order, 3), support%value(self%order, 3), support%slope(self%order, 3))
    do axis = 1, 3
      u = position(axis)/self%box(axis)
      u = (u - floor(u))*self%n(axis)
      below = floor(u)
      call b_spline(self%order, u - below, support%value(:, axis), support%slope(:, axis))
      support%slope(:, axis) = support%slope(:, axis)*self%n(axis)/self%box(axis)
      do k = 1, self%order
        support%place(k, axis) = modulo(below + self%order/2 - k + 1, self%n(axis)) + 1
      end do
    end do
  end function support_of

  !> Add `amount` of the splines about a point to some planes of a mesh, those after `first_plane`.
  pure subroutine spread(self, support, amount, first_plane, mesh)
    class(euler_spline_t), intent(in) :: self
    type(support_t), intent(in) :: support
    real(real64), intent(in) :: amount
    integer, intent(in) :: first_plane
    real(real64), intent(inout) :: mesh(:, :, :)
    real(real64) :: along_x(self%order)
    integer :: y, z, plane
    do z = 1, self%order
      plane = support%place(z, 3) - first_plane
      if (plane < 1 .or. plane > size(mesh, 3)) cycle
      do y = 1, self%order
        along_x = amount*support%value(z, 3)*support%value(y, 2)*support%value(:, 1)
        associate (line => mesh(:, support%place(y, 2), plane))
          line(support%place(:, 1)) = line(support%place(:, 1)) + along_x
        end associate
      end do
    end do
  end subroutine spread

  !> The sum over some planes of a mesh, those after `first_plane`, of the splines about a point times the mesh, and its
  !> derivatives by the place of the point (1/bohr).
  pure subroutine gather(self, support, first_plane, mesh, value, slope)
    class(euler_spline_t), intent(in) :: self
    type(support_t), intent(in) :: support
    integer, intent(in) :: first_plane
    real(real64), intent(in) :: mesh(:, :, :)
    real(real64), intent(out) :: value, slope(3)
    real(real64) :: line(self%order), along_x, slope_x, sums(3)
    integer :: y, z, plane
    value = 0.0_real64
    slope = 0.0_real64
    do z = 1, self%order
      plane = support%place(z, 3) - first_plane
      if (plane < 1 .or. plane > size(mesh, 3)) cycle
      sums = 0.0_real64
      do y = 1, self%order
        line = mesh(support%place(:, 1), support%place(y, 2), plane)
        along_x = sum(line*support%value(:, 1))
        slope_x = sum(line*support%slope(:, 1))
        sums = sums + [slope_x*support%value(y, 2), along_x*support%slope(y, 2), along_x*support%value(y, 2)]
      end do
      value = value + support%value(z, 3)*sums(3)
      slope = slope + [support%value(z, 3)*sums(1:2), support%slope(z, 3)*sums(3)]
    end do
  end subroutine gather

end module euler_spline
