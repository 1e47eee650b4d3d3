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
  public :: screening_function

contains

  !> What is to be added to 4 pi/G^2 (bohr^2) on the waves of the density; at G = 0, where the periodic sum has nothing,
  !> all of the interaction.
  function screening_function(sphere, transform) result(screening)
    type(sphere_t), intent(in) :: sphere
    type(sphere_transform_t), intent(inout) :: transform
    real(real64) :: screening(sphere%n_waves)
    complex(real64), allocatable :: waves(:, :)
    real(real64), allocatable :: long_range(:, :, :, :), x2(:), y2(:), z2(:)
    real(real64) :: alpha
    integer :: y, z

    ! At half an edge erfc, and at the longest wave the transform of erf, are as small: exp(-G L/4).
    alpha = sqrt(sphere%largest_g2)/minval(sphere%box)
    associate (n => sphere%n)
      allocate (long_range(n(1), n(2), transform%n_planes, 1), waves(sphere%n_waves, 1))
      x2 = squares(n(1), sphere%box(1))
      y2 = squares(n(2), sphere%box(2))
      z2 = squares(n(3), sphere%box(3))
      !$omp parallel do
      do z = 1, transform%n_planes
        do y = 1, n(2)
          long_range(:, y, z, 1) = smooth(x2 + y2(y) + z2(transform%first_plane + z), alpha)
        end do
      end do
    end associate
    call transform%to_waves(long_range, waves)
    screening = sphere%volume*real(waves(:, 1), real64)
    where (sphere%g2 > 0.0_real64)
      screening = screening - 4.0_real64*pi*exp(-0.25_real64*sphere%g2/alpha)/sphere%g2
    elsewhere
      screening = screening + pi/alpha
    end where
  end function screening_function

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
