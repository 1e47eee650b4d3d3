!> SETTLE: rigid three-point water in closed form (Miyamoto and Kollman, J. Comput. Chem. 13, 952 (1992)), and the exact
!> velocity part of RATTLE for it.
module settle
  use precision, only: real64
  use bonded_terms, only: cross
  implicit none
  private
  public :: water_shape_t

  type :: water_shape_t
    real(real64) :: mass_oxygen = 0.0_real64, mass_hydrogen = 0.0_real64
    !> Distances (angstrom): oxygen and hydrogen line from the centre of mass, half the hydrogen-hydrogen distance.
    real(real64), private :: oxygen_height = 0.0_real64, hydrogen_depth = 0.0_real64, half_width = 0.0_real64
  contains
    procedure :: create
    procedure :: constrain_positions
    procedure :: constrain_velocities
  end type water_shape_t

contains

  pure subroutine create(self, mass_oxygen, mass_hydrogen, distance_oh, distance_hh)
    class(water_shape_t), intent(inout) :: self
    real(real64), intent(in) :: mass_oxygen, mass_hydrogen, distance_oh, distance_hh
    real(real64) :: height
    self%mass_oxygen = mass_oxygen
    self%mass_hydrogen = mass_hydrogen
    self%half_width = 0.5_real64*distance_hh
    height = sqrt(distance_oh**2 - self%half_width**2)
    self%oxygen_height = height*2.0_real64*mass_hydrogen/(mass_oxygen + 2.0_real64*mass_hydrogen)
    self%hydrogen_depth = height - self%oxygen_height
  end subroutine create

  !> Move `new` (O, H1, H2 after an unconstrained step from `old`, which obeys the constraints) onto the rigid shape.
  !> `ok` is false when the step was too large for a solution.
  pure subroutine constrain_positions(self, old, new, ok)
    class(water_shape_t), intent(in) :: self
    real(real64), intent(in) :: old(3, 3)
    real(real64), intent(inout) :: new(3, 3)
    logical, intent(out) :: ok
    real(real64) :: centre(3), axis(3, 3), b0(2), c0(2), a1(3), b1(3), c1(3)
    real(real64) :: sin_phi, cos_phi, sin_psi, cos_psi, sin_theta, cos_theta
    real(real64) :: ya, xb, yb, yc, alpha, beta, gamma, length2, root

    centre = (self%mass_oxygen*new(:, 1) + self%mass_hydrogen*(new(:, 2) + new(:, 3)))/ &
             (self%mass_oxygen + 2.0_real64*self%mass_hydrogen)
    ! Frame: z normal to the old plane, x normal to z and to the new oxygen direction.
    axis(:, 3) = cross(old(:, 2) - old(:, 1), old(:, 3) - old(:, 1))
    axis(:, 1) = cross(new(:, 1) - centre, axis(:, 3))
    axis(:, 2) = cross(axis(:, 3), axis(:, 1))
    axis(:, 1) = axis(:, 1)/norm2(axis(:, 1))
    axis(:, 2) = axis(:, 2)/norm2(axis(:, 2))
    axis(:, 3) = axis(:, 3)/norm2(axis(:, 3))
    b0 = matmul(old(:, 2) - old(:, 1), axis(:, :2))
    c0 = matmul(old(:, 3) - old(:, 1), axis(:, :2))
    a1 = matmul(new(:, 1) - centre, axis)
    b1 = matmul(new(:, 2) - centre, axis)
    c1 = matmul(new(:, 3) - centre, axis)

    sin_phi = a1(3)/self%oxygen_height
    cos_phi = 1.0_real64 - sin_phi**2
    ok = cos_phi > 0.0_real64
    if (.not. ok) return
    cos_phi = sqrt(cos_phi)
    sin_psi = (b1(3) - c1(3))/(2.0_real64*self%half_width*cos_phi)
    cos_psi = 1.0_real64 - sin_psi**2
    ok = cos_psi > 0.0_real64
    if (.not. ok) return
    cos_psi = sqrt(cos_psi)
    ya = self%oxygen_height*cos_phi
    xb = -self%half_width*cos_psi
    yb = -self%hydrogen_depth*cos_phi - self%half_width*sin_psi*sin_phi
    yc = -self%hydrogen_depth*cos_phi + self%half_width*sin_psi*sin_phi
    alpha = xb*(b0(1) - c0(1)) + b0(2)*yb + c0(2)*yc
    beta = xb*(c0(2) - b0(2)) + b0(1)*yb + c0(1)*yc
    gamma = b0(1)*b1(2) - b1(1)*b0(2) + c0(1)*c1(2) - c1(1)*c0(2)
    length2 = alpha**2 + beta**2
    root = length2 - gamma**2
    ok = root > 0.0_real64
    if (.not. ok) return
    sin_theta = (alpha*gamma - beta*sqrt(root))/length2
    cos_theta = sqrt(max(0.0_real64, 1.0_real64 - sin_theta**2))
    new(:, 1) = centre + matmul(axis, [-ya*sin_theta, ya*cos_theta, a1(3)])
    new(:, 2) = centre + matmul(axis, [xb*cos_theta - yb*sin_theta, xb*sin_theta + yb*cos_theta, b1(3)])
    new(:, 3) = centre + matmul(axis, [-xb*cos_theta - yc*sin_theta, -xb*sin_theta + yc*cos_theta, c1(3)])
  end subroutine constrain_positions

  !> Remove the velocity components along the three rigid distances: three linear equations, solved by Cramer's rule.
  pure subroutine constrain_velocities(self, position, velocity)
    class(water_shape_t), intent(in) :: self
    real(real64), intent(in) :: position(3, 3)
    real(real64), intent(inout) :: velocity(3, 3)
    integer, parameter :: first(3) = [1, 1, 2], second(3) = [2, 3, 3]
    real(real64) :: d(3, 3), inverse_mass(3), matrix(3, 3), right(3), multiplier(3), determinant
    integer :: k, l
    inverse_mass = 1.0_real64/[self%mass_oxygen, self%mass_hydrogen, self%mass_hydrogen]
    do k = 1, 3
      d(:, k) = position(:, first(k)) - position(:, second(k))
      right(k) = -dot_product(d(:, k), velocity(:, first(k)) - velocity(:, second(k)))
    end do
    do l = 1, 3
      do k = 1, 3
        matrix(k, l) = dot_product(d(:, k), d(:, l))*( &
                       merge(inverse_mass(first(k)), 0.0_real64, first(k) == first(l)) &
                       - merge(inverse_mass(first(k)), 0.0_real64, first(k) == second(l)) &
                       - merge(inverse_mass(second(k)), 0.0_real64, second(k) == first(l)) &
                       + merge(inverse_mass(second(k)), 0.0_real64, second(k) == second(l)))
      end do
    end do
    determinant = dot_product(matrix(:, 1), cross(matrix(:, 2), matrix(:, 3)))
    multiplier(1) = dot_product(right, cross(matrix(:, 2), matrix(:, 3)))/determinant
    multiplier(2) = dot_product(matrix(:, 1), cross(right, matrix(:, 3)))/determinant
    multiplier(3) = dot_product(matrix(:, 1), cross(matrix(:, 2), right))/determinant
    do k = 1, 3
      velocity(:, first(k)) = velocity(:, first(k)) + inverse_mass(first(k))*multiplier(k)*d(:, k)
      velocity(:, second(k)) = velocity(:, second(k)) - inverse_mass(second(k))*multiplier(k)*d(:, k)
    end do
  end subroutine constrain_velocities

end module settle
