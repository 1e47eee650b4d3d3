!> Energy and forces of single bonded terms. Formulas as in docs/reference/file-formats.md; dihedral gradients after Blondel
!> and Karplus, J. Comput. Chem. 17, 1132 (1996), which have no singularity where sin(phi) = 0.
module bonded_terms
  use base_kinds, only: real64
  use cmap, only: cmap_t
  use base_constants, only: pi
  use base_fixed_point, only: rounding_t
  use implicit_solvent, only: implicit_solvent_t
  use term_list, only: is_angle, is_bond, is_cmap, is_dihedral, is_improper, is_urey_bradley
  implicit none
  private
  public :: sum_terms, cross

  !> Keeps collinear or coincident atoms, which occur before minimisation, from dividing by zero.
  real(real64), parameter :: tiny_length2 = 1.0e-12_real64
  !> Dihedrals computed side by side, and the highest periodicity that they may have; others go one by one.
  integer, parameter :: together = 64, highest_periodicity = 6

contains

  !> Terms of one kind, each of `width` atoms: the forces on their atoms in the order of the terms, the summed energies
  !> (of 1-4 pairs: Lennard-Jones, Coulomb) and the virial. The loops stand beside the terms so that these are inlined.
  !> `atom`: local atoms of each term; `position` and `term_force` in angstrom and kcal/mol/angstrom, energies in
  !> kcal/mol; `parameter`: what the topology says of each term, up to four numbers.
  pure subroutine sum_terms(kind, width, n, atom, parameter, cmap, rounding, solvent, position, term_force, energy, virial)
    integer, intent(in) :: kind, width, n, atom(width, n)
    type(cmap_t), intent(in) :: cmap
    !> How what is added to energies and virial is rounded.
    type(rounding_t), intent(in) :: rounding
    !> Of the charges of 1-4 pairs.
    type(implicit_solvent_t), intent(in) :: solvent
    real(real64), intent(in) :: parameter(4, n), position(3, *)
    real(real64), intent(inout) :: term_force(3, width, n)
    real(real64), intent(out) :: energy(2), virial(3, 3)
    real(real64) :: e(2), r(3, 5)
    integer :: t, k, axis
    energy = 0.0_real64
    virial = 0.0_real64
    if (kind == is_dihedral) then
      do t = 1, n, together
        call sum_dihedrals(min(together, n - t + 1), atom(:, t:), parameter(:, t:), rounding, position, &
                           term_force(:, :, t:), energy(1), virial)
      end do
    end if
    do t = 1, n
      if (kind == is_dihedral .and. parameter(2, t) < highest_periodicity + 0.5_real64) cycle
      do k = 1, width
        r(:, k) = position(:, atom(k, t))
      end do
      e(2) = 0.0_real64
      select case (kind)
      case (is_bond, is_urey_bradley)
        call bond(r, parameter(:, t), term_force(:, :, t), e(1))
      case (is_angle)
        call angle(r, parameter(:, t), term_force(:, :, t), e(1))
      case (is_dihedral)
        call dihedral(r, parameter(:, t), term_force(:, :, t), e(1))
      case (is_improper)
        call improper(r, parameter(:, t), term_force(:, :, t), e(1))
      case (is_cmap)
        call coupled_torsions(r, cmap, nint(parameter(1, t)), term_force(:, :, t), e(1))
      case default
        if (solvent%is_on) then
          call screened_pair14(r, parameter(:, t), solvent, term_force(:, :, t), e(1), e(2))
        else
          call pair14(r, parameter(:, t), term_force(:, :, t), e(1), e(2))
        end if
      end select
      energy = energy + ((e + rounding%energy) - rounding%energy)
      do k = 2, width
        do axis = 1, 3
          virial(:, axis) = virial(:, axis) + (((r(:, k) - r(:, 1))*term_force(axis, k, t) + rounding%energy) - &
                                               rounding%energy)
        end do
      end do
    end do
  end subroutine sum_terms

  !> Dihedrals side by side, like `torsion` and `dihedral` below but without angles: the cosine and the sine of n phi
  !> follow from those of phi by de Moivre's formula. Those of a higher periodicity are left out.
  pure subroutine sum_dihedrals(n, atom, parameter, rounding, position, term_force, energy, virial)
    integer, intent(in) :: n, atom(4, n)
    type(rounding_t), intent(in) :: rounding
    real(real64), intent(in) :: parameter(4, n), position(3, *)
    real(real64), intent(inout) :: term_force(3, 4, n), energy, virial(3, 3)
    real(real64), dimension(together) :: fx, fy, fz, gx, gy, gz, hx, hy, hz, e
    real(real64), dimension(together, 12) :: out
    real(real64) :: ax, ay, az, bx, by, bz, a2, b2, g1, c, s, length, cn, sn, c0, s0, next, fg, hg, slope, chosen
    integer :: t, k, axis

    do t = 1, n
      fx(t) = position(1, atom(1, t)) - position(1, atom(2, t))
      fy(t) = position(2, atom(1, t)) - position(2, atom(2, t))
      fz(t) = position(3, atom(1, t)) - position(3, atom(2, t))
      gx(t) = position(1, atom(2, t)) - position(1, atom(3, t))
      gy(t) = position(2, atom(2, t)) - position(2, atom(3, t))
      gz(t) = position(3, atom(2, t)) - position(3, atom(3, t))
      hx(t) = position(1, atom(4, t)) - position(1, atom(3, t))
      hy(t) = position(2, atom(4, t)) - position(2, atom(3, t))
      hz(t) = position(3, atom(4, t)) - position(3, atom(3, t))
    end do
    !$omp simd private(ax, ay, az, bx, by, bz, a2, b2, g1, c, s, length, cn, sn, c0, s0, next, fg, hg, slope, &
    !$omp& chosen, k)
    do t = 1, n
      ax = fy(t)*gz(t) - fz(t)*gy(t)
      ay = fz(t)*gx(t) - fx(t)*gz(t)
      az = fx(t)*gy(t) - fy(t)*gx(t)
      bx = hy(t)*gz(t) - hz(t)*gy(t)
      by = hz(t)*gx(t) - hx(t)*gz(t)
      bz = hx(t)*gy(t) - hy(t)*gx(t)
      a2 = max(ax*ax + ay*ay + az*az, tiny_length2)
      b2 = max(bx*bx + by*by + bz*bz, tiny_length2)
      g1 = sqrt(max(gx(t)*gx(t) + gy(t)*gy(t) + gz(t)*gz(t), tiny_length2))
      c = ax*bx + ay*by + az*bz
      s = ((by*az - bz*ay)*gx(t) + (bz*ax - bx*az)*gy(t) + (bx*ay - by*ax)*gz(t))/g1
      ! Tiny added to the cosine: angle 0 where no angle is defined, as atan2 has it.
      c = c + tiny_length2*tiny_length2
      length = 1.0_real64/sqrt(c*c + s*s)
      c = c*length
      s = s*length
      cn = 1.0_real64
      sn = 0.0_real64
      c0 = 1.0_real64
      s0 = 0.0_real64
      !GCC$ unroll 6
      do k = 1, highest_periodicity
        next = c0*c - s0*s
        s0 = c0*s + s0*c
        c0 = next
        chosen = merge(1.0_real64, 0.0_real64, abs(parameter(2, t) - k) < 0.5_real64)
        cn = cn + chosen*(c0 - cn)
        sn = sn + chosen*(s0 - sn)
      end do
      e(t) = parameter(1, t)*(1.0_real64 + cn*parameter(3, t) + sn*parameter(4, t))
      slope = parameter(1, t)*parameter(2, t)*(sn*parameter(3, t) - cn*parameter(4, t))
      fg = slope*(fx(t)*gx(t) + fy(t)*gy(t) + fz(t)*gz(t))/(a2*g1)
      hg = slope*(hx(t)*gx(t) + hy(t)*gy(t) + hz(t)*gz(t))/(b2*g1)
      a2 = -slope*g1/a2
      b2 = slope*g1/b2
      out(t, 1) = a2*ax
      out(t, 2) = a2*ay
      out(t, 3) = a2*az
      out(t, 10) = b2*bx
      out(t, 11) = b2*by
      out(t, 12) = b2*bz
      out(t, 4) = fg*ax - hg*bx - out(t, 1)
      out(t, 5) = fg*ay - hg*by - out(t, 2)
      out(t, 6) = fg*az - hg*bz - out(t, 3)
      out(t, 7) = hg*bx - fg*ax - out(t, 10)
      out(t, 8) = hg*by - fg*ay - out(t, 11)
      out(t, 9) = hg*bz - fg*az - out(t, 12)
    end do
    do t = 1, n
      if (parameter(2, t) > highest_periodicity + 0.5_real64) cycle
      energy = energy + ((e(t) + rounding%energy) - rounding%energy)
      do k = 1, 4
        term_force(:, k, t) = out(t, 3*k - 2:3*k)
      end do
      ! From the first atom: -f, -f - g, -f - g + h.
      do axis = 1, 3
        virial(1, axis) = virial(1, axis) + ((hx(t)*out(t, 9 + axis) - gx(t)*(out(t, 6 + axis) + out(t, 9 + axis)) &
          - fx(t)*(out(t, 3 + axis) + out(t, 6 + axis) + out(t, 9 + axis)) + rounding%energy) - rounding%energy)
        virial(2, axis) = virial(2, axis) + ((hy(t)*out(t, 9 + axis) - gy(t)*(out(t, 6 + axis) + out(t, 9 + axis)) &
          - fy(t)*(out(t, 3 + axis) + out(t, 6 + axis) + out(t, 9 + axis)) + rounding%energy) - rounding%energy)
        virial(3, axis) = virial(3, axis) + ((hz(t)*out(t, 9 + axis) - gz(t)*(out(t, 6 + axis) + out(t, 9 + axis)) &
          - fz(t)*(out(t, 3 + axis) + out(t, 6 + axis) + out(t, 9 + axis)) + rounding%energy) - rounding%energy)
      end do
    end do
  end subroutine sum_dihedrals

  pure function cross(a, b) result(c)
    real(real64), intent(in) :: a(3), b(3)
    real(real64) :: c(3)
    c = [a(2)*b(3) - a(3)*b(2), a(3)*b(1) - a(1)*b(3), a(1)*b(2) - a(2)*b(1)]
  end function cross

  !> k (r - r0)^2 between two atoms. `parameter` = k, r0.
  pure subroutine bond(r, parameter, f, energy)
    real(real64), intent(in) :: r(3, 2), parameter(4)
    real(real64), intent(out) :: f(3, 2), energy
    real(real64) :: d(3), length, stretch
    d = r(:, 1) - r(:, 2)
    length = sqrt(max(dot_product(d, d), tiny_length2))
    stretch = length - parameter(2)
    energy = parameter(1)*stretch**2
    f(:, 1) = -2.0_real64*parameter(1)*stretch/length*d
    f(:, 2) = -f(:, 1)
  end subroutine bond

  !> k (theta - theta0)^2. `parameter` = k, theta0 (radian).
  pure subroutine angle(r, parameter, f, energy)
    real(real64), intent(in) :: r(3, 3), parameter(4)
    real(real64), intent(out) :: f(3, 3), energy
    real(real64) :: a(3), b(3), n(3), sine, theta, slope
    a = r(:, 1) - r(:, 2)
    b = r(:, 3) - r(:, 2)
    n = cross(a, b)
    sine = sqrt(max(dot_product(n, n), tiny_length2))
    theta = atan2(sqrt(dot_product(n, n)), dot_product(a, b))
    energy = parameter(1)*(theta - parameter(2))**2
    slope = 2.0_real64*parameter(1)*(theta - parameter(2))/sine
    f(:, 1) = -slope/max(dot_product(a, a), tiny_length2)*cross(a, n)
    f(:, 3) = -slope/max(dot_product(b, b), tiny_length2)*cross(n, b)
    f(:, 2) = -f(:, 1) - f(:, 3)
  end subroutine angle

  !> Dihedral angle of four atoms (IUPAC sign) and its gradient.
  pure subroutine torsion(r, phi, gradient)
    real(real64), intent(in) :: r(3, 4)
    real(real64), intent(out) :: phi, gradient(3, 4)
    real(real64) :: f(3), g(3), h(3), a(3), b(3), a2, b2, g_length, fg, hg
    f = r(:, 1) - r(:, 2)
    g = r(:, 2) - r(:, 3)
    h = r(:, 4) - r(:, 3)
    a = cross(f, g)
    b = cross(h, g)
    a2 = max(dot_product(a, a), tiny_length2)
    b2 = max(dot_product(b, b), tiny_length2)
    g_length = sqrt(max(dot_product(g, g), tiny_length2))
    phi = atan2(dot_product(cross(b, a), g)/g_length, dot_product(a, b))
    fg = dot_product(f, g)/(a2*g_length)
    hg = dot_product(h, g)/(b2*g_length)
    gradient(:, 1) = -g_length/a2*a
    gradient(:, 4) = g_length/b2*b
    gradient(:, 2) = -gradient(:, 1) + fg*a - hg*b
    gradient(:, 3) = -gradient(:, 4) - fg*a + hg*b
  end subroutine torsion

  !> k (1 + cos(n phi - phase)). `parameter` = k, n, cosine and sine of the phase.
  pure subroutine dihedral(r, parameter, f, energy)
    real(real64), intent(in) :: r(3, 4), parameter(4)
    real(real64), intent(out) :: f(3, 4), energy
    real(real64) :: phi, argument
    call torsion(r, phi, f)
    argument = parameter(2)*phi - atan2(parameter(4), parameter(3))
    energy = parameter(1)*(1.0_real64 + cos(argument))
    f = parameter(1)*parameter(2)*sin(argument)*f
  end subroutine dihedral

  !> k (psi - psi0)^2 with the difference taken around the circle. `parameter` = k, psi0 (radian).
  pure subroutine improper(r, parameter, f, energy)
    real(real64), intent(in) :: r(3, 4), parameter(4)
    real(real64), intent(out) :: f(3, 4), energy
    real(real64) :: psi, difference
    call torsion(r, psi, f)
    difference = psi - parameter(2)
    difference = difference - 2.0_real64*pi*anint(difference/(2.0_real64*pi))
    energy = parameter(1)*difference**2
    f = -2.0_real64*parameter(1)*difference*f
  end subroutine improper

  !> Correction map `map` of the dihedrals of atoms 1 to 4 and 2 to 5.
  pure subroutine coupled_torsions(r, cmap, map, f, energy)
    real(real64), intent(in) :: r(3, 5)
    type(cmap_t), intent(in) :: cmap
    integer, intent(in) :: map
    real(real64), intent(out) :: f(3, 5), energy
    real(real64) :: phi, psi, by_phi, by_psi, phi_gradient(3, 4), psi_gradient(3, 4)
    call torsion(r(:, :4), phi, phi_gradient)
    call torsion(r(:, 2:), psi, psi_gradient)
    call cmap%evaluate(map, phi, psi, energy, by_phi, by_psi)
    f(:, :4) = -by_phi*phi_gradient
    f(:, 5) = 0.0_real64
    f(:, 2:) = f(:, 2:) - by_psi*psi_gradient
  end subroutine coupled_torsions

  !> Plain Coulomb and Lennard-Jones of a 1-4 pair. `parameter` = charge product times the Coulomb constant, sigma,
  !> epsilon.
  pure subroutine pair14(r, parameter, f, energy_lj, energy_elec)
    real(real64), intent(in) :: r(3, 2), parameter(4)
    real(real64), intent(out) :: f(3, 2), energy_lj, energy_elec
    real(real64) :: d(3), r2, s6
    d = r(:, 1) - r(:, 2)
    r2 = max(dot_product(d, d), tiny_length2)
    s6 = (parameter(2)**2/r2)**3
    energy_lj = 4.0_real64*parameter(3)*(s6*s6 - s6)
    energy_elec = parameter(1)/sqrt(r2)
    f(:, 1) = (energy_elec + 24.0_real64*parameter(3)*(2.0_real64*s6*s6 - s6))/r2*d
    f(:, 2) = -f(:, 1)
  end subroutine pair14

  !> The same in implicit solvent, by the law of the other pairs but without an end at the cutoff.
  pure subroutine screened_pair14(r, parameter, solvent, f, energy_lj, energy_elec)
    real(real64), intent(in) :: r(3, 2), parameter(4)
    type(implicit_solvent_t), intent(in) :: solvent
    real(real64), intent(out) :: f(3, 2), energy_lj, energy_elec
    real(real64) :: d(3), distance, slope, plain
    call pair14(r, parameter, f, energy_lj, plain)
    d = r(:, 1) - r(:, 2)
    distance = sqrt(max(dot_product(d, d), tiny_length2))
    call solvent%evaluate(distance, energy_elec, slope)
    energy_elec = parameter(1)*energy_elec
    f(:, 1) = f(:, 1) + (parameter(1)*slope - plain/distance)/distance*d
    f(:, 2) = -f(:, 1)
  end subroutine screened_pair14

end module bonded_terms
