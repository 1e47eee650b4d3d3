!> Forces of charges and of their excluded volume on the particles of a fibre, summed site by site.
module charge_forces
  use body_motion, only: push_core
  use fibre_model, only: fibre_t, bead_bead, bead_site, site_site
  use floor_pairs, only: pairs_t
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: add_charges

  real(real64), parameter :: closest = 0.5_real64  !< of sigma: nearer, excluded volume pushes no harder

contains

  !> Electrostatics and excluded volume of the listed pairs, as fibre_energy has them; forces times `scale`.
  subroutine add_charges(self, pairs, scale, force, energy)
    type(fibre_t), intent(in) :: self
    type(pairs_t), intent(in) :: pairs
    real(real64), intent(in) :: scale
    real(real64), intent(inout) :: force(:, :), energy
    integer(int32) :: k, p, q, i, n
    real(real64) :: a(3), d(3), reach, push(3)
    real(real64), dimension(max(1, self%most_sites)) :: x, y, z, charge, on_x, on_y, on_z
    do k = 1, pairs%charged
      p = pairs%charged_pair(1, k)
      q = pairs%charged_pair(2, k)
      d = self%position(:, p) - self%position(:, q)
      if (self%core(q) == 0) then   ! then p is a bead too
        if (dot_product(d, d) >= self%cutoff**2) cycle
        x(1) = self%position(1, q)
        y(1) = self%position(2, q)
        z(1) = self%position(3, q)
        charge(1) = self%charge(q)
        on_x(1) = 0
        on_y(1) = 0
        on_z(1) = 0
        call push_point(self, self%position(:, p), self%charge(p), bead_bead, 1, x, y, z, charge, push, on_x, on_y, on_z, &
          energy)
        force(1:3, p) = force(1:3, p) + scale * push
        force(1:3, q) = force(1:3, q) - scale * push
        cycle
      end if
      reach = self%cutoff + self%site_reach
      if (self%core(p) == 0 .and. dot_product(d, d) >= reach**2) cycle
      if (self%core(p) == 0) reach = self%cutoff
      ! The sites of q that p can reach, next to each other.
      n = 0
      associate (shape => self%shape(self%form(self%core(q))))
        do i = 1, size(shape%site, 2)
          a = self%site_world(:, i, self%core(q))
          d = a - self%position(:, p)
          if (dot_product(d, d) >= reach**2) cycle
          n = n + 1
          x(n) = a(1)
          y(n) = a(2)
          z(n) = a(3)
          charge(n) = shape%site_charge(i)
        end do
      end associate
      if (n == 0) cycle
      on_x(:n) = 0
      on_y(:n) = 0
      on_z(:n) = 0
      if (self%core(p) == 0) then
        call push_point(self, self%position(:, p), self%charge(p), bead_site, n, x, y, z, charge, push, on_x, on_y, on_z, &
          energy)
        force(1:3, p) = force(1:3, p) + scale * push
      else
        associate (shape => self%shape(self%form(self%core(p))))
          do i = 1, size(shape%site, 2)
            a = self%site_world(:, i, self%core(p))
            d = a - self%position(:, q)
            if (dot_product(d, d) >= reach**2) cycle
            call push_point(self, a, shape%site_charge(i), site_site, n, x, y, z, charge, push, on_x, on_y, on_z, energy)
            call push_core(self, p, a, scale * push, force)
          end do
        end associate
      end if
      do i = 1, n
        call push_core(self, q, [x(i), y(i), z(i)], -scale * [on_x(i), on_y(i), on_z(i)], force)
      end do
    end do
  end subroutine add_charges

  !> Energy of a point charge with n others, the force on it, and its opposite added up on each of the others.
  subroutine push_point(self, point, own, kind, n, x, y, z, charge, push, on_x, on_y, on_z, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: point(3), own, x(:), y(:), z(:), charge(:)
    integer(int32), intent(in) :: kind, n   !< kind: bead_bead, bead_site, site_site
    real(real64), intent(out) :: push(3)
    real(real64), intent(inout) :: on_x(:), on_y(:), on_z(:), energy
    integer(int32) :: i, j, m
    integer(int32) :: near(n)
    real(real64) :: r2(n), slope(n), r, u, screened, s6, total, strength, least, kappa, shift
    kappa = merge(self%dna_kappa, self%kappa, kind == bead_bead)
    shift = merge(self%dna_screened_at_cutoff, self%screened_at_cutoff, kind == bead_bead)
    m = 0
    do i = 1, n
      r = (point(1) - x(i))**2 + (point(2) - y(i))**2 + (point(3) - z(i))**2
      if (r >= self%cutoff**2) cycle
      m = m + 1
      near(m) = i
      r2(m) = r
    end do
    push = 0
    if (m == 0) return
    total = 0
    strength = self%bjerrum * own
    least = (closest * self%sigma(kind))**2
    !$omp simd private(r, u, screened, s6) reduction(+:total)
    do i = 1, m
      r = sqrt(r2(i))
      ! exp(-kappa r), kappa r at most 9, as the 16th power of a series whose remainder is below 1e-9; between linker
      ! beads in Mg2+, where kappa r can be 18, it is wrong by 1e-5 of next to nothing.
      u = -kappa * r / 16
      u = 1 + u * (1 + u / 2 * (1 + u / 3 * (1 + u / 4 * (1 + u / 5 * (1 + u / 6 * (1 + u / 7 * (1 + u / 8 * (1 + u / 9))))))))
      u = u * u
      u = u * u
      u = u * u
      screened = strength * charge(near(i)) * u * u / r
      s6 = (self%sigma(kind)**2 / max(r2(i), least))**3
      total = total + screened + self%excluded_k * (s6 * (s6 - 1) - self%excluded_at_cutoff(kind)) &
        - strength * charge(near(i)) * shift
      slope(i) = screened * (kappa + 1 / r) / r + self%excluded_k * 6 * s6 * (2 * s6 - 1) / r2(i)
    end do
    energy = energy + total
    do j = 1, m
      i = near(j)
      on_x(i) = on_x(i) + slope(j) * (point(1) - x(i))
      on_y(i) = on_y(i) + slope(j) * (point(2) - y(i))
      on_z(i) = on_z(i) + slope(j) * (point(3) - z(i))
      push = push + slope(j) * (point - [x(i), y(i), z(i)])
    end do
  end subroutine push_point

end module charge_forces
