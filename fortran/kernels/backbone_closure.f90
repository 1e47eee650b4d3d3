!> Closes the sugar-phosphate backbone of a duplex over fixed bases.
!>
!> Unknowns are the 11 sugar-phosphate atoms of every nucleotide. The residuals are bonds, angles and torsions divided
!> by their standard deviations, a tether of C1' to its place in the base plane, and soft contacts. They are minimised
!> by Levenberg-Marquardt on chunks of a strand. A nucleotide meets the one before it only through atoms C4', C3', O3'
!> of the former and P, OP1, OP2, O5', C5' of the latter, so that the normal matrix of a chunk is
!>
!>        33       33
!>     +--------+--------+
!>     |  H(1)  |        |      C = coupling(k), 15 x 9: the first five atoms of
!>     |      +-+-+      |      nucleotide k against the last three of k - 1
!>     +------|C  |------+
!>     |      +-+-+ H(2) |
!>     +--------+--------+  ...
!>
!> and one Cholesky sweep solves it. Chunks read a snapshot of everything outside them, so that the result does not
!> depend on how many threads share them.
module backbone_closure
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: close_backbone

  integer(int32), parameter :: sugar_atoms = 11, phosphate_atoms = 3, c1_atom = 7
  integer(int32), parameter :: unknowns = 3 * sugar_atoms
  integer(int32), parameter :: tail = 9, head = 15          !! coordinates coupled to the next, to the previous
  integer(int32), parameter :: previous_atoms = 3           !! C4', C3', O3' of the previous nucleotide
  integer(int32), parameter :: window_free = previous_atoms + sugar_atoms
  integer(int32), parameter :: window = window_free + 3     !! and the base's N with its two neighbours
  integer(int32), parameter :: needs_phosphate = previous_atoms + phosphate_atoms !! absent at a 5' end up to here
  integer(int32), parameter :: contacts_most = 900          !! per nucleotide
  integer(int32), parameter :: farthest_neighbour = 7       !! nucleotides along either strand
  real(real64), parameter :: contact_reach = 5.5_real64     !! angstrom; pairs farther apart at the start are left out
  real(real64), parameter :: sugar_reach = 16.0_real64      !! angstrom, C1' to C1'
  real(real64), parameter :: largest_step = 0.8_real64      !! angstrom, per iteration
  real(real64), parameter :: converged_step = 5.0e-4_real64 !! angstrom
  real(real64), parameter :: converged_fraction = 3.0e-5_real64 !! of the sum of squares, gained by one step
  real(real64), parameter :: least_damping = 0.02_real64    !! per square angstrom
  real(real64), parameter :: pi = acos(-1.0_real64)

contains

  !> One pass over both strands: every chunk is minimised while all others stay as they came in.
  subroutine close_backbone(n, n_bond, n_angle, n_torsion, base_type, base_size, base_class, base_position, &
      c1_position, bond_atom, bond_target, bond_sigma, angle_atom, angle_target, angle_sigma, torsion_atom, &
      torsion_target, torsion_sigma, c1_sigma, sugar_class, contact_distance, contact_sigma, excluded_own, &
      excluded_next, chunk_length, first_length, most_iterations, n_threads, position, iterations, failed)
    integer(int32), intent(in) :: n !! nucleotides: strand I, then strand J, each 5' to 3'; even
    integer(int32), intent(in) :: n_bond, n_angle, n_torsion
    integer(int32), intent(in) :: base_type(n)          !! 1 A, 2 C, 3 G, 4 T
    integer(int32), intent(in) :: base_size(4)          !! heavy atoms of each base without C1'
    integer(int32), intent(in) :: base_class(11, 4)     !! atom class (C, N, O, P, methyl) of the base atoms
    real(real64), intent(in) :: base_position(3, 11, n) !! angstrom; the first three are N and its two neighbours
    real(real64), intent(in) :: c1_position(3, n)       !! where the base wants C1'
    integer(int32), intent(in) :: bond_atom(2, n_bond), angle_atom(3, n_angle), torsion_atom(4, n_torsion) !! window
    real(real64), intent(in) :: bond_target(n_bond, 4), bond_sigma(n_bond)          !! angstrom
    real(real64), intent(in) :: angle_target(n_angle, 4), angle_sigma(n_angle)      !! radian
    real(real64), intent(in) :: torsion_target(n_torsion), torsion_sigma(n_torsion) !! radian
    real(real64), intent(in) :: c1_sigma                !! angstrom
    integer(int32), intent(in) :: sugar_class(11)       !! atom class of the sugar-phosphate atoms
    real(real64), intent(in) :: contact_distance(5, 5), contact_sigma !! angstrom, by atom class
    integer(int32), intent(in) :: excluded_own(11, 22, 4) !! 1: within three bonds; second index sugar, then base
    integer(int32), intent(in) :: excluded_next(11, 11) !! 1: within three bonds of an atom of the next nucleotide
    integer(int32), intent(in) :: chunk_length, first_length !! nucleotides; the first chunk of a strand may be shorter
    integer(int32), intent(in) :: most_iterations, n_threads
    real(real64), intent(inout) :: position(3, 11, n)   !! P OP1 OP2 O5' C5' O4' C1' C2' C4' C3' O3'; angstrom
    integer(int32), intent(out) :: iterations(n)        !! that the nucleotide's chunk took
    integer(int32), intent(out) :: failed               !! nucleotides with more contacts than there is room for
    real(real64), allocatable :: snapshot(:, :, :)
    integer(int32), allocatable :: chunk_first(:), chunk_last(:)
    integer(int32) :: k, n_chunks, strand, first, last

    allocate (snapshot, source=position)
    allocate (chunk_first(n / chunk_length + 4), chunk_last(n / chunk_length + 4))
    n_chunks = 0
    do strand = 0, 1
      first = strand * (n / 2) + 1
      last = first + first_length - 1
      do while (first <= (strand + 1) * (n / 2))
        n_chunks = n_chunks + 1
        chunk_first(n_chunks) = first
        chunk_last(n_chunks) = min(last, (strand + 1) * (n / 2))
        first = chunk_last(n_chunks) + 1
        last = first + chunk_length - 1
      end do
    end do

    failed = 0
    !$omp parallel do schedule(dynamic) num_threads(n_threads) reduction(+:failed)
    do k = 1, n_chunks
      call minimise_chunk(chunk_first(k), chunk_last(k), failed)
    end do
    !$omp end parallel do

  contains

    !> Levenberg-Marquardt on nucleotides from..to. The damping is a multiple of the unit matrix, so that the result
    !> turns with the molecule.
    subroutine minimise_chunk(from, to, overflow)
      integer(int32), intent(in) :: from, to
      integer(int32), intent(inout) :: overflow
      real(real64), allocatable, dimension(:, :, :) :: current, trial, hessian, coupling, factor, link, contact_point
      real(real64), allocatable, dimension(:, :) :: gradient, step, contact_near
      integer(int32), allocatable :: n_contacts(:), contact_atom(:, :), contact_other(:, :, :)
      real(real64) :: cost, trial_cost, damping, longest, reach
      integer(int32) :: iteration, i, a
      logical :: definite, done

      allocate (current(3, sugar_atoms, from:to), trial(3, sugar_atoms, from:to))
      allocate (hessian(unknowns, unknowns, from:to), factor(unknowns, unknowns, from:to))
      allocate (coupling(head, tail, from:to), link(head, tail, from:to))
      allocate (gradient(unknowns, from:to), step(unknowns, from:to))
      allocate (n_contacts(from:to), contact_atom(contacts_most, from:to), contact_other(2, contacts_most, from:to))
      allocate (contact_point(3, contacts_most, from:to), contact_near(contacts_most, from:to))
      current = snapshot(:, :, from:to)
      do i = from, to
        call list_contacts(i, from, to, n_contacts(i), contact_atom(:, i), contact_other(:, :, i), &
          contact_point(:, :, i), contact_near(:, i))
        if (n_contacts(i) > contacts_most) overflow = overflow + 1
        n_contacts(i) = min(n_contacts(i), contacts_most)
      end do
      damping = 1
      call evaluate(from, to, current, n_contacts, contact_atom, contact_other, contact_point, contact_near, &
        cost, hessian, coupling, gradient)
      do iteration = 1, most_iterations
        call factorise(from, to, hessian, coupling, damping, factor, link, definite)
        if (.not. definite) then
          damping = 10 * damping
          cycle
        end if
        step = -gradient
        call substitute(from, to, factor, link, step)
        longest = 0
        do i = from, to
          reach = 0
          do a = 1, sugar_atoms
            reach = max(reach, norm2(step(3 * a - 2:3 * a, i)))
          end do
          if (reach > largest_step) step(:, i) = step(:, i) * (largest_step / reach)
          longest = max(longest, reach)
          trial(:, :, i) = current(:, :, i) + reshape(step(:, i), [3, sugar_atoms])
        end do
        call evaluate(from, to, trial, n_contacts, contact_atom, contact_other, contact_point, contact_near, &
          trial_cost, hessian, coupling, gradient)
        if (trial_cost <= cost) then
          done = longest < converged_step .or. cost - trial_cost < converged_fraction * cost
          current = trial
          cost = trial_cost
          damping = max(damping / 8, least_damping)
          if (done) exit
        else
          if (longest < converged_step) exit
          damping = 6 * damping
          call evaluate(from, to, current, n_contacts, contact_atom, contact_other, contact_point, contact_near, &
            cost, hessian, coupling, gradient)
        end if
      end do
      position(:, :, from:to) = current
      iterations(from:to) = min(iteration, most_iterations)
    end subroutine minimise_chunk

    !> First nucleotide of the strand of i.
    pure integer(int32) function first_of_strand(i)
      integer(int32), intent(in) :: i
      first_of_strand = merge(1_int32, n / 2 + 1, i <= n / 2)
    end function first_of_strand

    !> Atoms that the sugar-phosphate of nucleotide i may touch. A pair of atoms that both move in the chunk is listed
    !> once, with the lower nucleotide.
    subroutine list_contacts(i, from, to, n_contacts, contact_atom, contact_other, contact_point, contact_near)
      integer(int32), intent(in) :: i, from, to
      integer(int32), intent(out) :: n_contacts, contact_atom(contacts_most), contact_other(2, contacts_most)
      real(real64), intent(out) :: contact_point(3, contacts_most), contact_near(contacts_most)
      integer(int32) :: strand, centre, j, a, b, first
      logical :: moves, excluded

      n_contacts = 0
      do strand = 0, 1
        centre = merge(i, n + 1 - i, strand == 0)
        first = first_of_strand(centre)
        do j = max(centre - farthest_neighbour, first), min(centre + farthest_neighbour, first + n / 2 - 1)
          if (sum((snapshot(:, c1_atom, i) - snapshot(:, c1_atom, j))**2) > sugar_reach**2) cycle
          moves = j >= from .and. j <= to
          do a = merge(phosphate_atoms + 1, 1, i == first_of_strand(i)), sugar_atoms
            do b = 1, base_size(base_type(j))
              if (i == j) then
                if (excluded_own(a, sugar_atoms + b, base_type(i)) == 1) cycle
              end if
              call append_contact(i, a, [0_int32, 0_int32], base_position(:, b, j), base_class(b, base_type(j)), &
                n_contacts, contact_atom, contact_other, contact_point, contact_near)
            end do
            if (moves .and. j < i) cycle
            do b = merge(phosphate_atoms + 1, 1, j == first), sugar_atoms
              excluded = .false.
              if (i == j) excluded = b <= a .or. excluded_own(a, b, base_type(i)) == 1
              if (strand == 0 .and. j == i + 1) excluded = excluded_next(a, b) == 1
              if (strand == 0 .and. j == i - 1) excluded = excluded_next(b, a) == 1
              if (excluded) cycle
              call append_contact(i, a, merge([b, j], [0_int32, 0_int32], moves), snapshot(:, b, j), sugar_class(b), &
                n_contacts, contact_atom, contact_other, contact_point, contact_near)
            end do
          end do
        end do
      end do
    end subroutine list_contacts

    subroutine append_contact(i, atom, other, point, class, n_contacts, contact_atom, contact_other, contact_point, &
        contact_near)
      integer(int32), intent(in) :: i, atom, other(2), class
      real(real64), intent(in) :: point(3)
      integer(int32), intent(inout) :: n_contacts, contact_atom(contacts_most), contact_other(2, contacts_most)
      real(real64), intent(inout) :: contact_point(3, contacts_most), contact_near(contacts_most)

      if (sum((snapshot(:, atom, i) - point)**2) > contact_reach**2) return
      n_contacts = n_contacts + 1
      if (n_contacts > contacts_most) return
      contact_atom(n_contacts) = atom
      contact_other(:, n_contacts) = other
      contact_point(:, n_contacts) = point
      contact_near(n_contacts) = contact_distance(sugar_class(atom), class)
    end subroutine append_contact

    !> Sum of squared residuals, its Gauss-Newton matrix and half its gradient for nucleotides from..to at x.
    subroutine evaluate(from, to, x, n_contacts, contact_atom, contact_other, contact_point, contact_near, &
        cost, hessian, coupling, gradient)
      integer(int32), intent(in) :: from, to
      real(real64), intent(in) :: x(3, sugar_atoms, from:to)
      integer(int32), intent(in) :: n_contacts(from:to), contact_atom(contacts_most, from:to)
      integer(int32), intent(in) :: contact_other(2, contacts_most, from:to)
      real(real64), intent(in) :: contact_point(3, contacts_most, from:to), contact_near(contacts_most, from:to)
      real(real64), intent(out) :: cost, hessian(unknowns, unknowns, from:to), coupling(head, tail, from:to)
      real(real64), intent(out) :: gradient(unknowns, from:to)
      real(real64) :: place(3, window), matrix(3 * window, 3 * window), slope(3 * window)
      integer(int32) :: i, last, behind

      cost = 0
      hessian = 0
      coupling = 0
      gradient = 0
      behind = 3 * previous_atoms
      last = first_of_strand(from) + n / 2 - 1
      do i = from, min(to + 1, last)
        place = 0
        if (i > from) then
          place(:, :previous_atoms) = x(:, sugar_atoms - 2:, i - 1)
        else if (i > first_of_strand(i)) then
          place(:, :previous_atoms) = snapshot(:, sugar_atoms - 2:, i - 1)
        end if
        if (i <= to) then
          place(:, previous_atoms + 1:window_free) = x(:, :, i)
        else
          place(:, previous_atoms + 1:window_free) = snapshot(:, :, i)
        end if
        place(:, window_free + 1:) = base_position(:, :3, i)
        matrix = 0
        slope = 0
        call add_geometry(base_type(i), i == first_of_strand(i), i > to, place, c1_position(:, i), cost, matrix, slope)
        if (i > from) then
          hessian(unknowns - tail + 1:, unknowns - tail + 1:, i - 1) = matrix(:behind, :behind) + &
            hessian(unknowns - tail + 1:, unknowns - tail + 1:, i - 1)
          gradient(unknowns - tail + 1:, i - 1) = gradient(unknowns - tail + 1:, i - 1) + slope(:behind)
        end if
        if (i > to) exit
        hessian(:, :, i) = matrix(behind + 1:behind + unknowns, behind + 1:behind + unknowns)
        gradient(:, i) = slope(behind + 1:behind + unknowns)
        if (i > from) coupling(:, :, i) = matrix(behind + 1:behind + head, :behind)
      end do
      call add_contacts(from, to, x, n_contacts, contact_atom, contact_other, contact_point, contact_near, &
        cost, hessian, gradient)
    end subroutine evaluate

    !> Bonds, angles, torsions and the tether of C1' in the window of one nucleotide. Only the lower triangle of the
    !> matrix is used. Beyond the chunk's end only terms that reach back into the chunk count.
    subroutine add_geometry(base, is_first, is_beyond, place, c1_target, cost, matrix, slope)
      integer(int32), intent(in) :: base
      logical, intent(in) :: is_first, is_beyond
      real(real64), intent(in) :: place(3, window), c1_target(3)
      real(real64), intent(inout) :: cost, matrix(3 * window, 3 * window), slope(3 * window)
      real(real64) :: jacobian(3, 4), value
      integer(int32) :: k, c, row

      do k = 1, n_bond
        if (is_first .and. minval(bond_atom(:, k)) <= needs_phosphate) cycle
        if (is_beyond .and. minval(bond_atom(:, k)) > previous_atoms) cycle
        call bond(place(:, bond_atom(:, k)), value, jacobian)
        call add_term(2, bond_atom(:, k), (value - bond_target(k, base)) / bond_sigma(k), &
          jacobian / bond_sigma(k), cost, matrix, slope)
      end do
      do k = 1, n_angle
        if (is_first .and. minval(angle_atom(:, k)) <= needs_phosphate) cycle
        if (is_beyond .and. minval(angle_atom(:, k)) > previous_atoms) cycle
        call angle(place(:, angle_atom(:, k)), value, jacobian)
        call add_term(3, angle_atom(:, k), (value - angle_target(k, base)) / angle_sigma(k), &
          jacobian / angle_sigma(k), cost, matrix, slope)
      end do
      do k = 1, n_torsion
        if (is_first .and. minval(torsion_atom(:, k)) <= needs_phosphate) cycle
        if (is_beyond .and. minval(torsion_atom(:, k)) > previous_atoms) cycle
        call torsion(place(:, torsion_atom(:, k)), value, jacobian)
        value = value - torsion_target(k)
        value = value - 2 * pi * anint(value / (2 * pi))
        call add_term(4, torsion_atom(:, k), value / torsion_sigma(k), jacobian / torsion_sigma(k), cost, matrix, slope)
      end do
      if (is_beyond) return
      do c = 1, 3
        row = 3 * (previous_atoms + c1_atom - 1) + c
        value = place(c, previous_atoms + c1_atom) - c1_target(c)
        cost = cost + (value / c1_sigma)**2
        matrix(row, row) = matrix(row, row) + 1 / c1_sigma**2
        slope(row) = slope(row) + value / c1_sigma**2
      end do
    end subroutine add_geometry

    !> Soft contacts. Between two nucleotides of the chunk the mixed block of the matrix is left out and the diagonal
    !> blocks are doubled, which bounds the true matrix from above and keeps it block-tridiagonal.
    subroutine add_contacts(from, to, x, n_contacts, contact_atom, contact_other, contact_point, contact_near, &
        cost, hessian, gradient)
      integer(int32), intent(in) :: from, to
      real(real64), intent(in) :: x(3, sugar_atoms, from:to)
      integer(int32), intent(in) :: n_contacts(from:to), contact_atom(contacts_most, from:to)
      integer(int32), intent(in) :: contact_other(2, contacts_most, from:to)
      real(real64), intent(in) :: contact_point(3, contacts_most, from:to), contact_near(contacts_most, from:to)
      real(real64), intent(inout) :: cost, hessian(unknowns, unknowns, from:to), gradient(unknowns, from:to)
      real(real64) :: difference(3), distance, direction(3), outer(3, 3), squared
      integer(int32) :: i, j, k, a, b, c

      do i = from, to
        do k = 1, n_contacts(i)
          j = contact_other(2, k, i)
          difference = x(:, contact_atom(k, i), i) - contact_point(:, k, i)
          if (j > 0) difference = x(:, contact_atom(k, i), i) - x(:, contact_other(1, k, i), j)
          squared = sum(difference**2)
          if (squared >= contact_near(k, i)**2) cycle
          distance = sqrt(max(squared, 1.0e-12_real64))
          direction = difference / (distance * contact_sigma)
          squared = (contact_near(k, i) - distance) / contact_sigma
          cost = cost + squared**2
          do c = 1, 3
            outer(:, c) = direction * direction(c)
          end do
          a = 3 * contact_atom(k, i) - 2
          gradient(a:a + 2, i) = gradient(a:a + 2, i) - squared * direction
          if (j == 0) then
            hessian(a:a + 2, a:a + 2, i) = hessian(a:a + 2, a:a + 2, i) + outer
            cycle
          end if
          b = 3 * contact_other(1, k, i) - 2
          gradient(b:b + 2, j) = gradient(b:b + 2, j) + squared * direction
          if (j == i) then
            hessian(b:b + 2, a:a + 2, i) = hessian(b:b + 2, a:a + 2, i) - outer ! b > a: lower triangle
          else
            outer = 2 * outer
          end if
          hessian(a:a + 2, a:a + 2, i) = hessian(a:a + 2, a:a + 2, i) + outer
          hessian(b:b + 2, b:b + 2, j) = hessian(b:b + 2, b:b + 2, j) + outer
        end do
      end do
    end subroutine add_contacts
  end subroutine close_backbone

  !> Adds one residual with its derivatives to the normal equations of a window; base atoms do not move.
  pure subroutine add_term(m, atom, residual, jacobian, cost, matrix, slope)
    integer(int32), intent(in) :: m, atom(m)
    real(real64), intent(in) :: residual, jacobian(3, 4)
    real(real64), intent(inout) :: cost, matrix(3 * window, 3 * window), slope(3 * window)
    integer(int32) :: p, q, c, row, column

    cost = cost + residual**2
    do p = 1, m
      if (atom(p) > window_free) cycle
      column = 3 * atom(p) - 3
      slope(column + 1:column + 3) = slope(column + 1:column + 3) + residual * jacobian(:, p)
      do q = 1, m
        if (atom(q) < atom(p) .or. atom(q) > window_free) cycle
        row = 3 * atom(q) - 3
        do c = 1, 3
          matrix(row + 1:row + 3, column + c) = matrix(row + 1:row + 3, column + c) + jacobian(:, q) * jacobian(c, p)
        end do
      end do
    end do
  end subroutine add_term

  !> Distance of two points and its derivatives.
  pure subroutine bond(place, value, jacobian)
    real(real64), intent(in) :: place(3, 2)
    real(real64), intent(out) :: value, jacobian(3, 4)

    value = norm2(place(:, 1) - place(:, 2))
    jacobian(:, 1) = (place(:, 1) - place(:, 2)) / value
    jacobian(:, 2) = -jacobian(:, 1)
    jacobian(:, 3:) = 0
  end subroutine bond

  !> Angle at the second of three points, radian, and its derivatives.
  pure subroutine angle(place, value, jacobian)
    real(real64), intent(in) :: place(3, 3)
    real(real64), intent(out) :: value, jacobian(3, 4)
    real(real64) :: u(3), v(3), length_u, length_v, cosine, sine

    u = place(:, 1) - place(:, 2)
    v = place(:, 3) - place(:, 2)
    length_u = norm2(u)
    length_v = norm2(v)
    u = u / length_u
    v = v / length_v
    cosine = dot_product(u, v)
    sine = max(norm2(cross(u, v)), 1.0e-6_real64)
    value = atan2(sine, cosine)
    jacobian(:, 1) = (cosine * u - v) / (length_u * sine)
    jacobian(:, 3) = (cosine * v - u) / (length_v * sine)
    jacobian(:, 2) = -jacobian(:, 1) - jacobian(:, 3)
    jacobian(:, 4) = 0
  end subroutine angle

  !> Torsion of four points (IUPAC sign), radian, and its derivatives (Blondel & Karplus 1996).
  pure subroutine torsion(place, value, jacobian)
    real(real64), intent(in) :: place(3, 4)
    real(real64), intent(out) :: value, jacobian(3, 4)
    real(real64) :: f(3), g(3), h(3), a(3), b(3), length, a2, b2, first(3), last(3), inner(3)

    f = place(:, 1) - place(:, 2)
    g = place(:, 2) - place(:, 3)
    h = place(:, 4) - place(:, 3)
    a = cross(f, g)
    b = cross(h, g)
    length = norm2(g)
    a2 = max(dot_product(a, a), 1.0e-12_real64)
    b2 = max(dot_product(b, b), 1.0e-12_real64)
    value = atan2(dot_product(cross(b, a), g) / length, dot_product(a, b))
    first = -length / a2 * a
    last = length / b2 * b
    inner = dot_product(f, g) / (a2 * length) * a - dot_product(h, g) / (b2 * length) * b
    jacobian(:, 1) = first
    jacobian(:, 2) = -first + inner
    jacobian(:, 3) = -last - inner
    jacobian(:, 4) = last
  end subroutine torsion

  pure function cross(u, v) result(w)
    real(real64), intent(in) :: u(3), v(3)
    real(real64) :: w(3)
    w = [u(2) * v(3) - u(3) * v(2), u(3) * v(1) - u(1) * v(3), u(1) * v(2) - u(2) * v(1)]
  end function cross

  !> Cholesky factor of the damped block-tridiagonal matrix: lower triangles and the link blocks below the diagonal.
  pure subroutine factorise(from, to, hessian, coupling, damping, factor, link, definite)
    integer(int32), intent(in) :: from, to
    real(real64), intent(in) :: hessian(unknowns, unknowns, from:to), coupling(head, tail, from:to), damping
    real(real64), intent(out) :: factor(unknowns, unknowns, from:to), link(head, tail, from:to)
    logical, intent(out) :: definite
    integer(int32), parameter :: shift = unknowns - tail
    integer(int32) :: i, j, k

    definite = .true.
    link(:, :, from) = 0
    do i = from, to
      factor(:, :, i) = hessian(:, :, i)
      do j = 1, unknowns
        factor(j, j, i) = factor(j, j, i) + damping
      end do
      if (i > from) then
        do j = 1, tail
          link(:, j, i) = coupling(:, j, i)
          do k = 1, j - 1
            link(:, j, i) = link(:, j, i) - link(:, k, i) * factor(shift + j, shift + k, i - 1)
          end do
          link(:, j, i) = link(:, j, i) / factor(shift + j, shift + j, i - 1)
        end do
        do j = 1, head
          do k = 1, tail
            factor(j:head, j, i) = factor(j:head, j, i) - link(j:head, k, i) * link(j, k, i)
          end do
        end do
      end if
      do j = 1, unknowns
        if (factor(j, j, i) <= 0) then
          definite = .false.
          return
        end if
        factor(j, j, i) = sqrt(factor(j, j, i))
        factor(j + 1:, j, i) = factor(j + 1:, j, i) / factor(j, j, i)
        do k = j + 1, unknowns
          factor(k:, k, i) = factor(k:, k, i) - factor(k:, j, i) * factor(k, j, i)
        end do
      end do
    end do
  end subroutine factorise

  !> Solves with the factor in place.
  pure subroutine substitute(from, to, factor, link, x)
    integer(int32), intent(in) :: from, to
    real(real64), intent(in) :: factor(unknowns, unknowns, from:to), link(head, tail, from:to)
    real(real64), intent(inout) :: x(unknowns, from:to)
    integer(int32), parameter :: shift = unknowns - tail
    integer(int32) :: i, j

    do i = from, to
      if (i > from) x(:head, i) = x(:head, i) - matmul(link(:, :, i), x(shift + 1:, i - 1))
      do j = 1, unknowns
        x(j, i) = x(j, i) / factor(j, j, i)
        x(j + 1:, i) = x(j + 1:, i) - factor(j + 1:, j, i) * x(j, i)
      end do
    end do
    do i = to, from, -1
      if (i < to) x(shift + 1:, i) = x(shift + 1:, i) - matmul(transpose(link(:, :, i + 1)), x(:head, i + 1))
      do j = unknowns, 1, -1
        x(j, i) = (x(j, i) - dot_product(factor(j + 1:, j, i), x(j + 1:, i))) / factor(j, j, i)
      end do
    end do
  end subroutine substitute
end module backbone_closure
