!> What makes the Coulomb interaction in a periodic box that of a cluster alone: the screening function of Martyna and
!> Tuckerman (J. Chem. Phys. 110, 2810 (1999)). Atomic units.
!>
!> 1/r is split by alpha. The Fourier transform of erfc(sqrt(alpha) r)/r over all space is known; that of
!> erf(sqrt(alpha) r)/r is taken over the box, from the nearest image of each grid point, so that charges less than half
!> an edge apart along each axis interact once and without images.
module cluster_screening
  use base_kinds, only: real64
  use base_constants, only: pi
  use sphere_transform, only: sphere_transform_t
  use wave_sphere, only: sphere_t
  implicit none
  private
  public :: long_range_plane, screening_function, with_short_range

contains

  !> What is to be added to 4 pi/G^2 (bohr^2) on the waves of the density; at G = 0, where the periodic sum has nothing,
  !> all of the interaction.
  function screening_function(sphere, transform) result(screening)
    type(sphere_t), intent(in) :: sphere
    type(sphere_transform_t), intent(inout) :: transform
    real(real64) :: screening(sphere%n_waves)
    complex(real64), allocatable :: waves(:, :)
    real(real64), allocatable :: long_range(:, :, :, :)
    integer :: z
    allocate (long_range(sphere%n(1), sphere%n(2), transform%n_planes, 1), waves(sphere%n_waves, 1))
    !$omp parallel do
    do z = 1, transform%n_planes
      long_range(:, :, z, 1) = long_range_plane(sphere, transform%first_plane + z)
    end do
    call transform%to_waves(long_range, waves)
    screening = with_short_range(sphere, waves(:, 1))
  end function screening_function

  !> Plane z of erf(sqrt(alpha) r)/r on the grid (1/bohr).
  pure function long_range_plane(sphere, z) result(plane)
    type(sphere_t), intent(in) :: sphere
    integer, intent(in) :: z
    real(real64) :: plane(sphere%n(1), sphere%n(2)), x2(sphere%n(1)), y2(sphere%n(2)), z2(sphere%n(3))
    integer :: y
    x2 = squares(sphere%n(1), sphere%box(1))
    y2 = squares(sphere%n(2), sphere%box(2))
    z2 = squares(sphere%n(3), sphere%box(3))
    do y = 1, sphere%n(2)
      plane(:, y) = smooth(x2 + y2(y) + z2(z), split(sphere))
    end do
  end function long_range_plane

  !> The screening function from the waves of all planes.
  pure function with_short_range(sphere, long_range) result(screening)
    type(sphere_t), intent(in) :: sphere
    complex(real64), intent(in) :: long_range(:)
    real(real64) :: screening(sphere%n_waves)
    screening = sphere%volume*real(long_range, real64)
    where (sphere%g2 > 0.0_real64)
      screening = screening - 4.0_real64*pi*exp(-0.25_real64*sphere%g2/split(sphere))/sphere%g2
    elsewhere
      screening = screening + pi/split(sphere)
    end where
  end function with_short_range

  !> alpha (1/bohr^2): at half an edge erfc, and at the longest wave the transform of erf, are as small, exp(-G L/4).
  pure real(real64) function split(sphere)
    type(sphere_t), intent(in) :: sphere
    split = sqrt(sphere%largest_g2)/minval(sphere%box)
  end function split

  !> Squared distances (bohr^2) of grid points along an edge from the nearest image of the origin.
  pure function squares(n, edge)
    integer, intent(in) :: n
    real(real64), intent(in) :: edge
    real(real64) :: squares(n)
    integer :: k
    squares = [((min(k, n - k)*edge/n)**2, k=0, n - 1)]
  end function squares

  !> erf(sqrt(alpha) r)/r from the square of r.
  elemental real(real64) function smooth(r2, alpha)
    real(real64), intent(in) :: r2, alpha
    if (r2 > 0.0_real64) then
      smooth = erf(sqrt(alpha*r2))/sqrt(r2)
    else
      smooth = 2.0_real64*sqrt(alpha/pi)
    end if
  end function smooth

end module cluster_screening
