!> How the particles of a fibre move: rotations of cores, spins of beads about their segments, and shifts of both.
module body_motion
  use fibre_model, only: fibre_t, refresh_particle, refresh_segment, worth_threads
  use geometry, only: cross
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: displace, set_masses, push_core, limit, n_freedoms, largest_shift

  integer(int32), parameter :: n_freedoms = 7   !< of a particle: three shifts, three turns of a core, spin of a bead
  ! Masses (kBT per square of nm and unit of time): they only set how fast things move on the way to a minimum.
  real(real64), parameter :: bead_mass = 4, bead_inertia = 4, core_mass = 8, core_inertia = 64, &
    wall_mass = 200
  real(real64), parameter :: largest_shift = 0.1_real64   !< nm a step
  real(real64), parameter :: largest_turn = 0.05_real64   !< radian a step

contains

  !> Inverse masses (7, n+1), those of the walls in the last column; what cannot move has none.
  pure subroutine set_masses(self, walls_move, inverse_mass)
    type(fibre_t), intent(in) :: self
    logical, intent(in) :: walls_move
    real(real64), intent(out) :: inverse_mass(:, :)
    integer(int32) :: p
    inverse_mass = 0
    do p = 1, self%n
      if (self%core(p) /= 0) then
        inverse_mass(1:3, p) = 1 / core_mass
        inverse_mass(4:6, p) = 1 / core_inertia
      else
        inverse_mass(1:3, p) = 1 / bead_mass
        if (p <= self%n_segments) inverse_mass(7, p) = 1 / bead_inertia
      end if
    end do
    if (walls_move) inverse_mass(1:3, self%n + 1) = 1 / wall_mass
  end subroutine set_masses

  !> Move everything by its velocity (7, n+1) times the time step, and no farther than is safe.
  subroutine displace(self, velocity, time_step)
    type(fibre_t), intent(inout) :: self
    real(real64), intent(inout) :: velocity(:, :)
    real(real64), intent(in) :: time_step
    integer(int32) :: p
    real(real64) :: b(3), angle
    !$omp parallel if(self%n >= worth_threads)
    !$omp do private(b, angle) schedule(static)
    do p = 1, self%n
      call limit(velocity(1:3, p), largest_shift / time_step)
      self%position(:, p) = self%position(:, p) + time_step * velocity(1:3, p)
      if (self%core(p) /= 0) then
        call limit(velocity(4:6, p), largest_turn / time_step)
        call turn_frame(self%frame(:, :, p), time_step * velocity(4:6, p))
      else
        angle = time_step * velocity(7, p)
        b = cos(angle) * self%frame(:, 2, p) + sin(angle) * self%frame(:, 3, p)
        self%frame(:, 3, p) = cos(angle) * self%frame(:, 3, p) - sin(angle) * self%frame(:, 2, p)
        self%frame(:, 2, p) = b
      end if
      call refresh_particle(self, p)
    end do
    !$omp end do
    !$omp do schedule(static)
    do p = 1, self%n_segments
      call refresh_segment(self, p)
    end do
    !$omp end do
    !$omp end parallel
    call limit(velocity(1:3, self%n + 1), largest_shift / time_step)
    self%wall = self%wall + time_step * velocity(1:3, self%n + 1)
  end subroutine displace

  !> Shorten a vector to a largest length.
  pure subroutine limit(v, most)
    real(real64), intent(inout) :: v(3)
    real(real64), intent(in) :: most
    real(real64) :: size2
    size2 = dot_product(v, v)
    if (size2 > most**2) v = v * (most / sqrt(size2))
  end subroutine limit

  !> Turn a frame by a rotation vector and make it orthonormal again.
  pure subroutine turn_frame(f, by)
    real(real64), intent(inout) :: f(3, 3)
    real(real64), intent(in) :: by(3)
    real(real64) :: angle, axis(3), c, s
    integer(int32) :: k
    angle = norm2(by)
    if (angle < 1.0e-14_real64) return
    axis = by / angle
    c = cos(angle)
    s = sin(angle)
    do k = 1, 3
      f(:, k) = c * f(:, k) + s * cross(axis, f(:, k)) + (1 - c) * dot_product(axis, f(:, k)) * axis
    end do
    f(:, 1) = f(:, 1) / norm2(f(:, 1))
    f(:, 2) = f(:, 2) - dot_product(f(:, 2), f(:, 1)) * f(:, 1)
    f(:, 2) = f(:, 2) / norm2(f(:, 2))
    f(:, 3) = cross(f(:, 1), f(:, 2))
  end subroutine turn_frame

  !> A push (kBT/nm) on a point of core p becomes a force and a torque on it.
  pure subroutine push_core(self, p, point, push, force)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p
    real(real64), intent(in) :: point(3), push(3)
    real(real64), intent(inout) :: force(:, :)
    force(1:3, p) = force(1:3, p) + push
    force(4:6, p) = force(4:6, p) + cross(point - self%position(:, p), push)
  end subroutine push_core

end module body_motion
