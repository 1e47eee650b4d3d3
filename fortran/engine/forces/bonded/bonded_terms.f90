!> Energy and forces of single bonded terms. Formulas as in docs/reference/file-formats.md.
module bonded_terms
  use base_kinds, only: real64
  use base_terms, only: base_pair, cross_stacking, gaussian_torsion, stacking
  use cmap, only: cmap_t
  use base_constants, only: pi
  use base_fixed_point, only: rounding_t
  use implicit_solvent, only: implicit_solvent_t
  use term_list, only: is_angle, is_base_pair, is_bond, is_cmap, is_cross_stacking, is_dihedral, is_gaussian, is_improper, &
                       is_pair14, is_stacking, is_urey_bradley
  use torsion_angle, only: tiny_length, tiny_length2, torsion
  implicit none
  private
  public :: sum_terms

  !> Terms computed side by side.
  integer, parameter :: together = 64
  !> Dihedrals of a higher periodicity go one by one.
  integer, parameter :: highest_periodicity = 6

  !> Some terms of one kind side by side: `to(t, :, k)` leads from the first atom of term t to the k-th, `force(t, :, k)`
  !> is what it does to that one.
  type :: side_by_side_t
    integer :: n
    real(real64) :: parameter(together, 4), to(together, 3, 2:4), force(together, 3, 4), energy(together, 2)
  end type side_by_side_t

contains

  !> Terms of one kind, each of `width` atoms: the forces on their atoms in the order of the terms, the summed energies
  !> (of 1-4 pairs: Lennard-Jones, Coulomb) and the virial. The loops stand beside the terms so that these are inlined.
  !> `atom`: local atoms of each term; `position` and `term_force` in angstrom and kcal/mol/angstrom, energies in
  !> kcal/mol; `table(:, row)`: what the topology says of each term.
  pure subroutine sum_terms(kind, width, n, atom, row, table, cmap, rounding, solvent, position, term_force, energy, virial)
    integer, intent(in) :: kind, width, n, atom(width, n), row(n)
    real(real64), contiguous, intent(in) :: table(:, :)
    real(real64), intent(in) :: position(3, *)
    type(cmap_t), intent(in) :: cmap
    !> How what is added to energies and virial is rounded.
    type(rounding_t), intent(in) :: rounding
    !> Of the charges of 1-4 pairs.
    type(implicit_solvent_t), intent(in) :: solvent
    real(real64), intent(inout) :: term_force(3, width, n)
    real(real64), intent(out) :: energy(2), virial(3, 3)
    type(side_by_side_t) :: some
    integer :: t
    energy = 0.0_real64
    virial = 0.0_real64
    if (any(kind == [is_bond, is_urey_bradley, is_angle, is_dihedral, is_pair14])) then
      do t = 1, n, together
        some%n = min(together, n - t + 1)
        call take(some, width, atom(:, t:), row(t:), table, position)
        select case (kind)
        case (is_bond, is_urey_bradley)
          call bonds(some)
        case (is_angle)
          call angles(some)
        case (is_dihedral)
          call dihedrals(some)
        case default
          call pairs14(some, solvent)
        end select
        call give(some, width, rounding, term_force(:, :, t:), energy, virial)
      end do
    end if
    if (any(kind == [is_dihedral, is_improper, is_cmap, is_gaussian, is_stacking, is_base_pair, is_cross_stacking])) &
      call sum_one_by_one(kind, width, n, atom, row, table, cmap, rounding, position, term_force, energy(1), virial)
  end subroutine sum_terms

  !> Impropers, correction maps, terms between bases and dihedrals of a high periodicity.
  pure subroutine sum_one_by_one(kind, width, n, atom, row, table, cmap, rounding, position, term_force, energy, virial)
    integer, intent(in) :: kind, width, n, atom(width, n), row(n)
    real(real64), contiguous, intent(in) :: table(:, :)
    real(real64), intent(in) :: position(3, *)
    type(cmap_t), intent(in) :: cmap
    type(rounding_t), intent(in) :: rounding
    real(real64), intent(inout) :: term_force(3, width, n), energy, virial(3, 3)
    real(real64) :: e, r(3, 5)
    integer :: t, k, axis
    do t = 1, n
      associate (parameter => table(:, row(t)))
        if (kind == is_dihedral .and. parameter(2) < highest_periodicity + 0.5_real64) cycle
        do k = 1, width
          r(:, k) = position(:, atom(k, t))
        end do
        select case (kind)
        case (is_dihedral)
          call dihedral(r, parameter, term_force(:, :, t), e)
        case (is_improper)
          call improper(r, parameter, term_force(:, :, t), e)
        case (is_gaussian)
          call gaussian_torsion(r, parameter, term_force(:, :, t), e)
        case (is_stacking)
          call stacking(r, parameter, term_force(:, :, t), e)
        case (is_base_pair)
          call base_pair(r, parameter, term_force(:, :, t), e)
        case (is_cross_stacking)
          call cross_stacking(r, parameter, term_force(:, :, t), e)
        case default
          call coupled_torsions(r, cmap, nint(parameter(1)), term_force(:, :, t), e)
          e = parameter(2)*e
          term_force(:, :, t) = parameter(2)*term_force(:, :, t)
        end select
      end associate
      energy = energy + ((e + rounding%energy) - rounding%energy)
      do k = 2, width
        do axis = 1, 3
          virial(:, axis) = virial(:, axis) + (((r(:, k) - r(:, 1))*term_force(axis, k, t) + rounding%energy) - &
                                               rounding%energy)
        end do
      end do
    end do
  end subroutine sum_one_by_one

  !> Parameters and relative positions of `some%n` terms.
  pure subroutine take(some, width, atom, row, table, position)
    type(side_by_side_t), intent(inout) :: some
    integer, intent(in) :: width, atom(width, *), row(*)
    real(real64), contiguous, intent(in) :: table(:, :)
    real(real64), intent(in) :: position(3, *)
    integer :: t, k
    do t = 1, some%n
      some%parameter(t, :) = table(:4, row(t))
      do k = 2, width
        some%to(t, :, k) = position(:, atom(k, t)) - position(:, atom(1, t))
      end do
    end do
    some%energy(:some%n, 2) = 0.0_real64
  end subroutine take

  !> Forces on the atoms of the terms, the sum of their energies and their virial.
  pure subroutine give(some, width, rounding, term_force, energy, virial)
    type(side_by_side_t), intent(in) :: some
    integer, intent(in) :: width
    type(rounding_t), intent(in) :: rounding
    real(real64), intent(inout) :: term_force(3, width, *), energy(2), virial(3, 3)
    real(real64) :: total, one
    integer :: t, k, i, j
    do t = 1, some%n
      do k = 1, width
        term_force(:, k, t) = some%force(t, :, k)
      end do
    end do
    do i = 1, 2
      total = energy(i)
      !$omp simd reduction(+: total)
      do t = 1, some%n
        total = total + ((some%energy(t, i) + rounding%energy) - rounding%energy)
      end do
      energy(i) = total
    end do
    do i = 1, 3
      do j = 1, 3
        total = virial(j, i)
        !$omp simd reduction(+: total) private(one)
        do t = 1, some%n
          one = some%to(t, j, 2)*some%force(t, i, 2)
          if (width > 2) one = one + some%to(t, j, 3)*some%force(t, i, 3)
          if (width > 3) one = one + some%to(t, j, 4)*some%force(t, i, 4)
          total = total + ((one + rounding%energy) - rounding%energy)
        end do
        virial(j, i) = total
      end do
    end do
  end subroutine give

  !> k (r - r0)^2 + k4 (r - r0)^4 between two atoms. `parameter` = k, r0, k4.
  pure subroutine bonds(some)
    type(side_by_side_t), intent(inout) :: some
    real(real64) :: length, stretch, slope
    integer :: t
    !$omp simd private(length, stretch, slope)
    do t = 1, some%n
      length = sqrt(max(some%to(t, 1, 2)**2 + some%to(t, 2, 2)**2 + some%to(t, 3, 2)**2, tiny_length2))
      stretch = length - some%parameter(t, 2)
      some%energy(t, 1) = (some%parameter(t, 1) + some%parameter(t, 3)*stretch**2)*stretch**2
      slope = 2.0_real64*(some%parameter(t, 1) + 2.0_real64*some%parameter(t, 3)*stretch**2)*stretch/length
      some%force(t, 1, 1) = slope*some%to(t, 1, 2)
      some%force(t, 2, 1) = slope*some%to(t, 2, 2)
      some%force(t, 3, 1) = slope*some%to(t, 3, 2)
    end do
    some%force(:some%n, :, 2) = -some%force(:some%n, :, 1)
  end subroutine bonds

  !> k (theta - theta0)^2 with the second atom at the corner. `parameter` = k, theta0 (radian).
  pure subroutine angles(some)
    type(side_by_side_t), intent(inout) :: some
    real(real64), dimension(together) :: sine, cosine, theta
    real(real64) :: ax, ay, az, bx, by, bz, nx, ny, nz, slope, by_a, by_b
    integer :: t
    ! Products of both sides' lengths with sine and cosine.
    !$omp simd private(ax, ay, az, bx, by, bz, nx, ny, nz)
    do t = 1, some%n
      ax = -some%to(t, 1, 2)
      ay = -some%to(t, 2, 2)
      az = -some%to(t, 3, 2)
      bx = some%to(t, 1, 3) - some%to(t, 1, 2)
      by = some%to(t, 2, 3) - some%to(t, 2, 2)
      bz = some%to(t, 3, 3) - some%to(t, 3, 2)
      nx = ay*bz - az*by
      ny = az*bx - ax*bz
      nz = ax*by - ay*bx
      sine(t) = sqrt(nx*nx + ny*ny + nz*nz)
      cosine(t) = ax*bx + ay*by + az*bz
    end do
    ! Not the vector library's function, which differs from the scalar one that ends a loop: bits would depend on where a
    ! term stands among the others.
    !GCC$ novector
    do t = 1, some%n
      theta(t) = atan2(sine(t), cosine(t))
    end do
    !$omp simd private(ax, ay, az, bx, by, bz, nx, ny, nz, slope, by_a, by_b)
    do t = 1, some%n
      ax = -some%to(t, 1, 2)
      ay = -some%to(t, 2, 2)
      az = -some%to(t, 3, 2)
      bx = some%to(t, 1, 3) - some%to(t, 1, 2)
      by = some%to(t, 2, 3) - some%to(t, 2, 2)
      bz = some%to(t, 3, 3) - some%to(t, 3, 2)
      nx = ay*bz - az*by
      ny = az*bx - ax*bz
      nz = ax*by - ay*bx
      some%energy(t, 1) = some%parameter(t, 1)*(theta(t) - some%parameter(t, 2))**2
      slope = -2.0_real64*some%parameter(t, 1)*(theta(t) - some%parameter(t, 2))/max(sine(t), tiny_length)
      by_a = slope/max(ax*ax + ay*ay + az*az, tiny_length2)
      by_b = slope/max(bx*bx + by*by + bz*bz, tiny_length2)
      some%force(t, 1, 1) = by_a*(ay*nz - az*ny)
      some%force(t, 2, 1) = by_a*(az*nx - ax*nz)
      some%force(t, 3, 1) = by_a*(ax*ny - ay*nx)
      some%force(t, 1, 3) = by_b*(ny*bz - nz*by)
      some%force(t, 2, 3) = by_b*(nz*bx - nx*bz)
      some%force(t, 3, 3) = by_b*(nx*by - ny*bx)
    end do
    some%force(:some%n, :, 2) = -some%force(:some%n, :, 1) - some%force(:some%n, :, 3)
  end subroutine angles

  !> Plain Coulomb and Lennard-Jones of 1-4 pairs. `parameter` = charge product times the Coulomb constant, sigma, epsilon.
  !> In implicit solvent charges follow the law of the other pairs, but without an end at the cutoff.
  pure subroutine pairs14(some, solvent)
    type(side_by_side_t), intent(inout) :: some
    type(implicit_solvent_t), intent(in) :: solvent
    real(real64), dimension(together) :: distance, energy, slope
    real(real64) :: s6, factor
    integer :: t
    !$omp simd
    do t = 1, some%n
      distance(t) = sqrt(max(some%to(t, 1, 2)**2 + some%to(t, 2, 2)**2 + some%to(t, 3, 2)**2, tiny_length2))
      energy(t) = 1.0_real64/distance(t)
      slope(t) = energy(t)**2
    end do
    if (solvent%is_on) call solvent%evaluate(distance(:some%n), energy(:some%n), slope(:some%n))
    !$omp simd private(s6, factor)
    do t = 1, some%n
      s6 = (some%parameter(t, 2)/distance(t))**2
      s6 = s6*s6*s6
      some%energy(t, 1) = 4.0_real64*some%parameter(t, 3)*(s6*s6 - s6)
      some%energy(t, 2) = some%parameter(t, 1)*energy(t)
      factor = -(some%parameter(t, 1)*slope(t) + 24.0_real64*some%parameter(t, 3)*(2.0_real64*s6*s6 - s6)/distance(t)) &
               /distance(t)
      some%force(t, 1, 1) = factor*some%to(t, 1, 2)
      some%force(t, 2, 1) = factor*some%to(t, 2, 2)
      some%force(t, 3, 1) = factor*some%to(t, 3, 2)
    end do
    some%force(:some%n, :, 2) = -some%force(:some%n, :, 1)
  end subroutine pairs14

  !> k (1 + cos(n phi - phase)) like `torsion` and `dihedral` below but without angles: the cosine and the sine of n phi
  !> follow from those of phi by de Moivre's formula. `parameter` = k, n, cosine and sine of the phase. Those of a higher
  !> periodicity do nothing.
  pure subroutine dihedrals(some)
    type(side_by_side_t), intent(inout) :: some
    real(real64) :: fx, fy, fz, gx, gy, gz, hx, hy, hz, ax, ay, az, bx, by, bz, a2, b2, g1, c, s, length, cn, sn, c0, s0, &
                    next, fg, hg, slope, chosen, k0
    integer :: t, k
    !$omp simd private(fx, fy, fz, gx, gy, gz, hx, hy, hz, ax, ay, az, bx, by, bz, a2, b2, g1, c, s, length, cn, sn, c0, &
    !$omp& s0, next, fg, hg, slope, chosen, k0, k)
    do t = 1, some%n
      fx = -some%to(t, 1, 2)
      fy = -some%to(t, 2, 2)
      fz = -some%to(t, 3, 2)
      gx = some%to(t, 1, 2) - some%to(t, 1, 3)
      gy = some%to(t, 2, 2) - some%to(t, 2, 3)
      gz = some%to(t, 3, 2) - some%to(t, 3, 3)
      hx = some%to(t, 1, 4) - some%to(t, 1, 3)
      hy = some%to(t, 2, 4) - some%to(t, 2, 3)
      hz = some%to(t, 3, 4) - some%to(t, 3, 3)
      ax = fy*gz - fz*gy
      ay = fz*gx - fx*gz
      az = fx*gy - fy*gx
      bx = hy*gz - hz*gy
      by = hz*gx - hx*gz
      bz = hx*gy - hy*gx
      a2 = max(ax*ax + ay*ay + az*az, tiny_length2)
      b2 = max(bx*bx + by*by + bz*bz, tiny_length2)
      g1 = sqrt(max(gx*gx + gy*gy + gz*gz, tiny_length2))
      c = ax*bx + ay*by + az*bz
      s = ((by*az - bz*ay)*gx + (bz*ax - bx*az)*gy + (bx*ay - by*ax)*gz)/g1
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
        chosen = merge(1.0_real64, 0.0_real64, abs(some%parameter(t, 2) - k) < 0.5_real64)
        cn = cn + chosen*(c0 - cn)
        sn = sn + chosen*(s0 - sn)
      end do
      k0 = some%parameter(t, 1)*merge(1.0_real64, 0.0_real64, some%parameter(t, 2) < highest_periodicity + 0.5_real64)
      some%energy(t, 1) = k0*(1.0_real64 + cn*some%parameter(t, 3) + sn*some%parameter(t, 4))
      slope = k0*some%parameter(t, 2)*(sn*some%parameter(t, 3) - cn*some%parameter(t, 4))
      fg = slope*(fx*gx + fy*gy + fz*gz)/(a2*g1)
      hg = slope*(hx*gx + hy*gy + hz*gz)/(b2*g1)
      a2 = -slope*g1/a2
      b2 = slope*g1/b2
      some%force(t, 1, 1) = a2*ax
      some%force(t, 2, 1) = a2*ay
      some%force(t, 3, 1) = a2*az
      some%force(t, 1, 4) = b2*bx
      some%force(t, 2, 4) = b2*by
      some%force(t, 3, 4) = b2*bz
      some%force(t, 1, 2) = fg*ax - hg*bx - some%force(t, 1, 1)
      some%force(t, 2, 2) = fg*ay - hg*by - some%force(t, 2, 1)
      some%force(t, 3, 2) = fg*az - hg*bz - some%force(t, 3, 1)
      some%force(t, 1, 3) = hg*bx - fg*ax - some%force(t, 1, 4)
      some%force(t, 2, 3) = hg*by - fg*ay - some%force(t, 2, 4)
      some%force(t, 3, 3) = hg*bz - fg*az - some%force(t, 3, 4)
    end do
  end subroutine dihedrals

  !> k (1 + cos(n phi - phase)). `parameter` = k, n, cosine and sine of the phase.
  pure subroutine dihedral(r, parameter, f, energy)
    real(real64), intent(in) :: r(3, 4), parameter(:)
    real(real64), intent(out) :: f(3, 4), energy
    real(real64) :: phi, argument
    call torsion(r, phi, f)
    argument = parameter(2)*phi - atan2(parameter(4), parameter(3))
    energy = parameter(1)*(1.0_real64 + cos(argument))
    f = parameter(1)*parameter(2)*sin(argument)*f
  end subroutine dihedral

  !> k (psi - psi0)^2 with the difference taken around the circle. `parameter` = k, psi0 (radian).
  pure subroutine improper(r, parameter, f, energy)
    real(real64), intent(in) :: r(3, 4), parameter(:)
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

end module bonded_terms
