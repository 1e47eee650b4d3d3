!> SETTLE: rigid three-point water in closed form (Miyamoto and Kollman, J. Comput. Chem. 13, 952 (1992)), and the exact
!> velocity part of RATTLE for it.
module settle
  use base_kinds, only: real64
  implicit none
  private
  public :: water_shape_t, waters_together

  !> Waters computed side by side.
  integer, parameter :: waters_together = 32
  !> Keeps failed waters from roots of negative numbers.
  real(real64), parameter :: smallest = 1.0e-30_real64

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

  !> Masses in g/mol, distances in angstrom.
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

  !> Move the waters `new` (water, coordinate in angstrom; x y z of O, H1, H2, after an unconstrained step from `old`,
  !> which obeys the constraints) onto the rigid shape, `n` of them side by side. `ok` is false where the step was too
  !> large for a solution; `new` then has no meaning.
  pure subroutine constrain_positions(self, n, old, new, ok)
    class(water_shape_t), intent(in) :: self
    integer, intent(in) :: n
    real(real64), intent(in) :: old(waters_together, 9)
    real(real64), intent(inout) :: new(waters_together, 9)
    logical, intent(out) :: ok(waters_together)
    real(real64) :: worst(waters_together)
    real(real64) :: cx, cy, cz, bx, by, bz, dx, dy, dz, ox, oy, oz, px, py, pz, qx, qy, qz
    real(real64) :: xx, xy, xz, yx, yy, yz, zx, zy, zz, scale, share_o, share_h
    real(real64) :: b0x, b0y, c0x, c0y, az, b1x, b1y, bz1, c1x, c1y, cz1, valid
    real(real64) :: sin_phi, cos_phi, sin_psi, cos_psi, sin_theta, cos_theta
    real(real64) :: ya, xb, yb, yc, alpha, beta, gamma, length2, root, u, v
    integer :: w

    share_o = self%mass_oxygen/(self%mass_oxygen + 2.0_real64*self%mass_hydrogen)
    share_h = self%mass_hydrogen/(self%mass_oxygen + 2.0_real64*self%mass_hydrogen)
    !$omp simd private(cx, cy, cz, bx, by, bz, dx, dy, dz, ox, oy, oz, px, py, pz, qx, qy, qz, xx, xy, xz, yx, yy, yz, &
    !$omp& zx, zy, zz, scale, b0x, b0y, c0x, c0y, az, b1x, b1y, bz1, c1x, c1y, cz1, valid, sin_phi, cos_phi, sin_psi, &
    !$omp& cos_psi, sin_theta, cos_theta, ya, xb, yb, yc, alpha, beta, gamma, length2, root, u, v)
    do w = 1, n
      ! Centre of mass, the old bonds, and the new atoms from the centre.
      cx = share_o*new(w, 1) + share_h*(new(w, 4) + new(w, 7))
      cy = share_o*new(w, 2) + share_h*(new(w, 5) + new(w, 8))
      cz = share_o*new(w, 3) + share_h*(new(w, 6) + new(w, 9))
      bx = old(w, 4) - old(w, 1)
      by = old(w, 5) - old(w, 2)
      bz = old(w, 6) - old(w, 3)
      dx = old(w, 7) - old(w, 1)
      dy = old(w, 8) - old(w, 2)
      dz = old(w, 9) - old(w, 3)
      ox = new(w, 1) - cx
      oy = new(w, 2) - cy
      oz = new(w, 3) - cz
      px = new(w, 4) - cx
      py = new(w, 5) - cy
      pz = new(w, 6) - cz
      qx = new(w, 7) - cx
      qy = new(w, 8) - cy
      qz = new(w, 9) - cz
      ! Frame: z normal to the old plane, x normal to z and to the new oxygen direction.
      zx = by*dz - bz*dy
      zy = bz*dx - bx*dz
      zz = bx*dy - by*dx
      xx = oy*zz - oz*zy
      xy = oz*zx - ox*zz
      xz = ox*zy - oy*zx
      yx = zy*xz - zz*xy
      yy = zz*xx - zx*xz
      yz = zx*xy - zy*xx
      scale = 1.0_real64/sqrt(xx*xx + xy*xy + xz*xz)
      xx = xx*scale
      xy = xy*scale
      xz = xz*scale
      scale = 1.0_real64/sqrt(yx*yx + yy*yy + yz*yz)
      yx = yx*scale
      yy = yy*scale
      yz = yz*scale
      scale = 1.0_real64/sqrt(zx*zx + zy*zy + zz*zz)
      zx = zx*scale
      zy = zy*scale
      zz = zz*scale
      b0x = bx*xx + by*xy + bz*xz
      b0y = bx*yx + by*yy + bz*yz
      c0x = dx*xx + dy*xy + dz*xz
      c0y = dx*yx + dy*yy + dz*yz
      az = ox*zx + oy*zy + oz*zz
      b1x = px*xx + py*xy + pz*xz
      b1y = px*yx + py*yy + pz*yz
      bz1 = px*zx + py*zy + pz*zz
      c1x = qx*xx + qy*xy + qz*xz
      c1y = qx*yx + qy*yy + qz*yz
      cz1 = qx*zx + qy*zy + qz*zz

      sin_phi = az/self%oxygen_height
      cos_phi = 1.0_real64 - sin_phi**2
      valid = cos_phi
      cos_phi = sqrt(max(cos_phi, smallest))
      sin_psi = (bz1 - cz1)/(2.0_real64*self%half_width*cos_phi)
      cos_psi = 1.0_real64 - sin_psi**2
      valid = min(valid, cos_psi)
      cos_psi = sqrt(max(cos_psi, smallest))
      ya = self%oxygen_height*cos_phi
      xb = -self%half_width*cos_psi
      yb = -self%hydrogen_depth*cos_phi - self%half_width*sin_psi*sin_phi
      yc = -self%hydrogen_depth*cos_phi + self%half_width*sin_psi*sin_phi
      alpha = xb*(b0x - c0x) + b0y*yb + c0y*yc
      beta = xb*(c0y - b0y) + b0x*yb + c0x*yc
      gamma = b0x*b1y - b1x*b0y + c0x*c1y - c1x*c0y
      length2 = alpha**2 + beta**2
      root = length2 - gamma**2
      worst(w) = min(valid, root)
      sin_theta = (alpha*gamma - beta*sqrt(max(root, 0.0_real64)))/length2
      cos_theta = sqrt(max(0.0_real64, 1.0_real64 - sin_theta**2))
      u = -ya*sin_theta
      v = ya*cos_theta
      new(w, 1) = cx + u*xx + v*yx + az*zx
      new(w, 2) = cy + u*xy + v*yy + az*zy
      new(w, 3) = cz + u*xz + v*yz + az*zz
      u = xb*cos_theta - yb*sin_theta
      v = xb*sin_theta + yb*cos_theta
      new(w, 4) = cx + u*xx + v*yx + bz1*zx
      new(w, 5) = cy + u*xy + v*yy + bz1*zy
      new(w, 6) = cz + u*xz + v*yz + bz1*zz
      u = -xb*cos_theta - yc*sin_theta
      v = -xb*sin_theta + yc*cos_theta
      new(w, 7) = cx + u*xx + v*yx + cz1*zx
      new(w, 8) = cy + u*xy + v*yy + cz1*zy
      new(w, 9) = cz + u*xz + v*yz + cz1*zz
    end do
    ! A comparison with a number that is none is false.
    ok = .true.
    ok(:n) = worst(:n) > 0.0_real64
  end subroutine constrain_positions

  !> Remove the velocity components along the three rigid distances: three linear equations, solved by Cramer's rule.
  !> Arrays as in `constrain_positions`; velocities in angstrom/ps.
  pure subroutine constrain_velocities(self, n, position, velocity)
    class(water_shape_t), intent(in) :: self
    integer, intent(in) :: n
    real(real64), intent(in) :: position(waters_together, 9)
    real(real64), intent(inout) :: velocity(waters_together, 9)
    real(real64) :: inverse_o, inverse_h, ax, ay, az, bx, by, bz, cx, cy, cz
    real(real64) :: aa, ab, ac, bb, bc, cc, ra, rb, rc, m11, m12, m13, m22, m23, m33, inverse, la, lb, lc
    integer :: w

    inverse_o = 1.0_real64/self%mass_oxygen
    inverse_h = 1.0_real64/self%mass_hydrogen
    !$omp simd private(ax, ay, az, bx, by, bz, cx, cy, cz, aa, ab, ac, bb, bc, cc, ra, rb, rc, m11, m12, m13, m22, &
    !$omp& m23, m33, inverse, la, lb, lc)
    do w = 1, n
      ! a = O - H1, b = O - H2, c = H1 - H2.
      ax = position(w, 1) - position(w, 4)
      ay = position(w, 2) - position(w, 5)
      az = position(w, 3) - position(w, 6)
      bx = position(w, 1) - position(w, 7)
      by = position(w, 2) - position(w, 8)
      bz = position(w, 3) - position(w, 9)
      cx = position(w, 4) - position(w, 7)
      cy = position(w, 5) - position(w, 8)
      cz = position(w, 6) - position(w, 9)
      ra = -(ax*(velocity(w, 1) - velocity(w, 4)) + ay*(velocity(w, 2) - velocity(w, 5)) + &
             az*(velocity(w, 3) - velocity(w, 6)))
      rb = -(bx*(velocity(w, 1) - velocity(w, 7)) + by*(velocity(w, 2) - velocity(w, 8)) + &
             bz*(velocity(w, 3) - velocity(w, 9)))
      rc = -(cx*(velocity(w, 4) - velocity(w, 7)) + cy*(velocity(w, 5) - velocity(w, 8)) + &
             cz*(velocity(w, 6) - velocity(w, 9)))
      aa = ax*ax + ay*ay + az*az
      bb = bx*bx + by*by + bz*bz
      cc = cx*cx + cy*cy + cz*cz
      ab = ax*bx + ay*by + az*bz
      ac = ax*cx + ay*cy + az*cz
      bc = bx*cx + by*cy + bz*cz
      ! The matrix is symmetric: row k, column l is d_k.d_l times what multiplier l does to the difference k.
      m11 = aa*(inverse_o + inverse_h)
      m12 = ab*inverse_o
      m13 = -ac*inverse_h
      m22 = bb*(inverse_o + inverse_h)
      m23 = bc*inverse_h
      m33 = cc*2.0_real64*inverse_h
      inverse = 1.0_real64/(m11*(m22*m33 - m23*m23) - m12*(m12*m33 - m23*m13) + m13*(m12*m23 - m22*m13))
      la = (ra*(m22*m33 - m23*m23) - m12*(rb*m33 - m23*rc) + m13*(rb*m23 - m22*rc))*inverse
      lb = (m11*(rb*m33 - m23*rc) - ra*(m12*m33 - m23*m13) + m13*(m12*rc - rb*m13))*inverse
      lc = (m11*(m22*rc - rb*m23) - m12*(m12*rc - rb*m13) + ra*(m12*m23 - m22*m13))*inverse
      velocity(w, 1) = velocity(w, 1) + inverse_o*(la*ax + lb*bx)
      velocity(w, 2) = velocity(w, 2) + inverse_o*(la*ay + lb*by)
      velocity(w, 3) = velocity(w, 3) + inverse_o*(la*az + lb*bz)
      velocity(w, 4) = velocity(w, 4) + inverse_h*(lc*cx - la*ax)
      velocity(w, 5) = velocity(w, 5) + inverse_h*(lc*cy - la*ay)
      velocity(w, 6) = velocity(w, 6) + inverse_h*(lc*cz - la*az)
      velocity(w, 7) = velocity(w, 7) - inverse_h*(lb*bx + lc*cx)
      velocity(w, 8) = velocity(w, 8) - inverse_h*(lb*by + lc*cy)
      velocity(w, 9) = velocity(w, 9) - inverse_h*(lb*bz + lc*cz)
    end do
  end subroutine constrain_velocities

end module settle
