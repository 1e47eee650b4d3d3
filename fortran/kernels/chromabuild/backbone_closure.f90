!> Closes the sugar-phosphate backbone of a duplex over fixed bases.
!>
!> Unknowns are the 11 sugar-phosphate atoms of every nucleotide. The residuals are bonds, angles and torsions divided
!> by their standard deviations, a tether of C1' to its place in the base plane, and soft contacts, also with obstacles:
!> atoms of proteins, which stand still. They are minimised
!> by Levenberg-Marquardt on pieces of a strand. A nucleotide meets the one before it only through atoms C4', C3', O3'
!> of the former and P, OP1, OP2, O5', C5' of the latter, so that the normal matrix of a piece is
!>
!>        33       33
!>     +--------+--------+
!>     |  H(1)  |        |      C = coupling(k), 15 x 9: the first five atoms of
!>     |      +-+-+      |      nucleotide k against the last three of k - 1
!>     +------|C  |------+
!>     |      +-+-+ H(2) |
!>     +--------+--------+  ...
!>
!> and one Cholesky sweep solves it. The matrix only steers the steps, so it is held in single precision; residuals and
!> positions are in double. Pieces reach some nucleotides beyond what they keep, and read a snapshot of everything
!> farther away: the result does not depend on how many threads share them.
module backbone_closure
  use iso_fortran_env, only: int32, real32, real64
  implicit none
  private
  public :: close_backbone

  integer(int32), parameter :: sugar_atoms = 11, phosphate_atoms = 3, c1_atom = 7
  integer(int32), parameter :: base_atoms = 11, atoms_most = sugar_atoms + base_atoms
  integer(int32), parameter :: unknowns = 3 * sugar_atoms
  integer(int32), parameter :: tail = 9, head = 15          !! coordinates coupled to the next, to the previous
  integer(int32), parameter :: previous_atoms = 3           !! C4', C3', O3' of the previous nucleotide
  integer(int32), parameter :: window_free = previous_atoms + sugar_atoms
  integer(int32), parameter :: window_pairs = window_free * (window_free + 1) / 2
  integer(int32), parameter :: padded = 36 !! unknowns, rounded up to whole vector registers
  integer(int32), parameter :: window = window_free + 3     !! and the base's N with its two neighbours
  integer(int32), parameter :: needs_phosphate = previous_atoms + phosphate_atoms !! absent at a 5' end up to here
  integer(int32), parameter :: contacts_most = 500          !! per nucleotide
  integer(int32), parameter :: stranger = 1, itself = 2, next = 3, previous = 4 !! what one nucleotide is to another
  integer(int32), parameter :: farthest_neighbour = 7       !! nucleotides along either strand
  real(real64), parameter :: contact_margin = 1.5_real64    !! angstrom; pairs farther than this from contact are left out
  real(real64), parameter :: deepest = 1.5_real64           !! angstrom; obstacles nearer than this are not the backbone's to avoid
  real(real64), parameter :: sugar_reach = 16.0_real64      !! angstrom, C1' to C1'
  real(real64), parameter :: largest_step = 0.8_real64      !! angstrom, per iteration
  real(real64), parameter :: converged_step = 5.0e-4_real64 !! angstrom
  real(real64), parameter :: sharpness = 7.0_real64         !! standard deviations at which an angle's deviation counts double
  real(real64), parameter :: first_damping = 1.0_real64, least_damping = 0.02_real64 !! per square angstrom
  real(real64), parameter :: most_damping = 1.0e12_real64
  real(real32), parameter :: coincident = 1.0e-6_real32     !! square angstrom: atoms that a 5' end lacks lie in one place

contains

  !> One pass: every piece is minimised while all else stays as it came in.
  subroutine close_backbone(n, n_bond, n_angle, n_torsion, n_pieces, base_type, base_size, base_class, base_position, &
      c1_position, bond_atom, bond_target, bond_sigma, angle_atom, angle_target, angle_sigma, torsion_atom, &
      torsion_target, torsion_sigma, c1_sigma, sugar_class, contact_distance, contact_sigma, excluded_own, &
      excluded_next, n_obstacles, obstacle_first, obstacle_class, obstacle_position, piece_first, piece_last, margin, &
      most_iterations, converged_fraction, n_threads, position, iterations, last_step, failed)
    integer(int32), intent(in) :: n !! nucleotides: strand I, then strand J, each 5' to 3'; even
    integer(int32), intent(in) :: n_bond, n_angle, n_torsion, n_pieces
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
    real(real64), intent(in) :: contact_distance(8, 8), contact_sigma !! angstrom, by atom class
    integer(int32), intent(in) :: excluded_own(11, 22, 4) !! 1: within three bonds; second index sugar, then base
    integer(int32), intent(in) :: excluded_next(11, 11) !! 1: within three bonds of an atom of the next nucleotide
    integer(int32), intent(in) :: n_obstacles
    integer(int32), intent(in) :: obstacle_first(n + 1) !! those of nucleotide i are obstacle_first(i)+1 .. obstacle_first(i+1)
    integer(int32), intent(in) :: obstacle_class(n_obstacles)
    real(real64), intent(in) :: obstacle_position(3, n_obstacles) !! angstrom
    integer(int32), intent(in) :: piece_first(n_pieces), piece_last(n_pieces) !! nucleotides, from 1; within a strand
    integer(int32), intent(in) :: margin !! nucleotides on either side that move with a piece but are not kept
    integer(int32), intent(in) :: most_iterations, n_threads
    real(real64), intent(in) :: converged_fraction      !! of the sum of squares, gained by one step
    real(real64), intent(inout) :: position(3, 11, n)   !! P OP1 OP2 O5' C5' O4' C1' C2' C4' C3' O3'; angstrom
    integer(int32), intent(out) :: iterations(n)        !! that the nucleotide's piece took; 0 where there is none
    real(real64), intent(out) :: last_step(n)           !! angstrom; farthest move of an atom in the last iteration
    integer(int32), intent(out) :: failed               !! nucleotides with more contacts than there is room for
    real(real64), allocatable :: snapshot(:, :, :)
    real(real64), allocatable :: place_x(:, :), place_y(:, :), place_z(:, :) !! (atoms_most, n), sugar then base
    !> squared angstrom, by atom of the other nucleotide, atom of this one, base of the other, and what the other is to
    !> this one; -1 where the two never count as a contact
    real(real64) :: reach(atoms_most, sugar_atoms, 4, stranger:previous)
    real(real32), dimension(n_angle, 4) :: cosine_angle, sine_angle
    real(real32), dimension(n_torsion) :: cosine_torsion, sine_torsion
    real(real32) :: inverse_sharp(n_angle)
    integer(int32) :: k, a, b, base

    cosine_angle = real(cos(angle_target), real32)
    sine_angle = real(sin(angle_target), real32)
    cosine_torsion = real(cos(torsion_target), real32)
    sine_torsion = real(sin(torsion_target), real32)
    inverse_sharp = real(1 / (sharpness * angle_sigma), real32)
    allocate (snapshot, source=position)
    allocate (place_x(atoms_most, n), place_y(atoms_most, n), place_z(atoms_most, n))
    place_x(:sugar_atoms, :) = position(1, :, :)
    place_y(:sugar_atoms, :) = position(2, :, :)
    place_z(:sugar_atoms, :) = position(3, :, :)
    place_x(sugar_atoms + 1:, :) = base_position(1, :, :)
    place_y(sugar_atoms + 1:, :) = base_position(2, :, :)
    place_z(sugar_atoms + 1:, :) = base_position(3, :, :)
    do base = 1, 4
      do a = 1, sugar_atoms
        do b = 1, atoms_most
          reach(b, a, base, :) = (contact_distance(sugar_class(a), class_of(b, base)) + contact_margin)**2
          if (b > sugar_atoms + base_size(base)) reach(b, a, base, :) = -1
        end do
        where (excluded_own(a, :, base) == 1) reach(:, a, base, itself) = -1
        reach(:a, a, base, itself) = -1 ! every pair once
        where (excluded_next(a, :) == 1) reach(:sugar_atoms, a, base, next) = -1
        where (excluded_next(:, a) == 1) reach(:sugar_atoms, a, base, previous) = -1
      end do
    end do

    failed = 0
    iterations = 0
    last_step = 0
    !$omp parallel do schedule(dynamic) num_threads(n_threads) reduction(+:failed)
    do k = 1, n_pieces
      call minimise_piece(piece_first(k), piece_last(k), failed)
    end do
    !$omp end parallel do

  contains

    !> Atom class of atom b of a nucleotide, sugar-phosphate first.
    pure integer(int32) function class_of(b, base)
      integer(int32), intent(in) :: b, base
      if (b <= sugar_atoms) then
        class_of = sugar_class(b)
      else
        class_of = base_class(b - sugar_atoms, base)
      end if
    end function class_of

    !> Levenberg-Marquardt on nucleotides keep_first..keep_last and their margins. The damping is a multiple of the
    !> unit matrix, so that the result turns with the molecule.
    subroutine minimise_piece(keep_first, keep_last, overflow)
      integer(int32), intent(in) :: keep_first, keep_last
      integer(int32), intent(inout) :: overflow
      real(real64), allocatable, dimension(:, :, :) :: current, trial, contact_point
      real(real32), allocatable, dimension(:, :, :) :: hessian, coupling, factor, link
      real(real64), allocatable :: gradient(:, :), contact_near(:, :), moved(:)
      real(real32), allocatable, dimension(:, :) :: step, inverse
      integer(int32), allocatable :: n_contacts(:), contact_atom(:, :), contact_other(:, :, :)
      real(real64) :: cost, trial_cost, damping, longest, reach
      integer(int32) :: iteration, i, a, from, to
      logical :: definite, done

      from = max(keep_first - margin, first_of_strand(keep_first))
      to = min(keep_last + margin, first_of_strand(keep_first) + n / 2 - 1)
      allocate (current(3, sugar_atoms, from:to), trial(3, sugar_atoms, from:to))
      allocate (hessian(unknowns, unknowns, from:to), factor(padded, unknowns, from:to), inverse(unknowns, from:to))
      allocate (coupling(head, tail, from:to), link(head, tail, from:to))
      allocate (gradient(unknowns, from:to), step(unknowns, from:to), moved(from:to))
      allocate (n_contacts(from:to), contact_atom(contacts_most, from:to), contact_other(2, contacts_most, from:to))
      allocate (contact_point(3, contacts_most, from:to), contact_near(contacts_most, from:to))
      current = snapshot(:, :, from:to)
      do i = from, to
        call list_contacts(i, from, to, n_contacts(i), contact_atom(:, i), contact_other(:, :, i), &
          contact_point(:, :, i), contact_near(:, i))
        if (n_contacts(i) > contacts_most) overflow = overflow + 1
        n_contacts(i) = min(n_contacts(i), contacts_most)
      end do
      damping = first_damping
      moved = 0
      call evaluate(from, to, current, n_contacts, contact_atom, contact_other, contact_point, contact_near, &
        cost, hessian, coupling, gradient)
      do iteration = 1, most_iterations
        call factorise(from, to, hessian, coupling, real(damping, real32), factor, inverse, link, &
          definite)
        if (.not. definite) then
          damping = min(10 * damping, most_damping)
          cycle
        end if
        step = real(-gradient, real32)
        call substitute(from, to, factor, inverse, link, step)
        longest = 0
        do i = from, to
          reach = 0
          do a = 1, sugar_atoms
            reach = max(reach, sum(real(step(3 * a - 2:3 * a, i), real64)**2))
          end do
          reach = sqrt(reach)
          if (reach > largest_step) step(:, i) = step(:, i) * real(largest_step / reach, real32)
          longest = max(longest, reach)
          moved(i) = reach
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
          damping = min(6 * damping, most_damping)
          call evaluate(from, to, current, n_contacts, contact_atom, contact_other, contact_point, contact_near, &
            cost, hessian, coupling, gradient)
        end if
      end do
      position(:, :, keep_first:keep_last) = current(:, :, keep_first:keep_last)
      iterations(keep_first:keep_last) = min(iteration, most_iterations)
      last_step(keep_first:keep_last) = moved(keep_first:keep_last)
    end subroutine minimise_piece

    !> First nucleotide of the strand of i.
    pure integer(int32) function first_of_strand(i)
      integer(int32), intent(in) :: i
      first_of_strand = merge(1_int32, n / 2 + 1, i <= n / 2)
    end function first_of_strand

    !> Atoms that the sugar-phosphate of nucleotide i may touch. A pair of atoms that both move in the piece is listed
    !> once, with the lower nucleotide.
    subroutine list_contacts(i, from, to, n_contacts, contact_atom, contact_other, contact_point, contact_near)
      integer(int32), intent(in) :: i, from, to
      integer(int32), intent(out) :: n_contacts, contact_atom(contacts_most), contact_other(2, contacts_most)
      real(real64), intent(out) :: contact_point(3, contacts_most), contact_near(contacts_most)
      real(real64) :: excess(atoms_most), x, y, z, near, squared
      integer(int32) :: strand, centre, j, k, first, lowest, relation, a, b
      logical :: moves

      n_contacts = 0
      do strand = 0, 1
        centre = merge(i, n + 1 - i, strand == 0)
        first = first_of_strand(centre)
        do j = max(centre - farthest_neighbour, first), min(centre + farthest_neighbour, first + n / 2 - 1)
          if (sum((snapshot(:, c1_atom, i) - snapshot(:, c1_atom, j))**2) > sugar_reach**2) cycle
          moves = j >= from .and. j <= to
          lowest = merge(phosphate_atoms + 1, 1, j == first) ! a 5' end has no phosphate
          if (moves .and. j < i) lowest = sugar_atoms + 1
          relation = stranger
          if (j == i) relation = itself
          if (strand == 0 .and. j == i + 1) relation = next
          if (strand == 0 .and. j == i - 1) relation = previous
          do a = merge(phosphate_atoms + 1, 1, i == first_of_strand(i)), sugar_atoms
            x = snapshot(1, a, i)
            y = snapshot(2, a, i)
            z = snapshot(3, a, i)
            do b = 1, atoms_most
              excess(b) = (place_x(b, j) - x)**2 + (place_y(b, j) - y)**2 + (place_z(b, j) - z)**2 &
                - reach(b, a, base_type(j), relation)
            end do
            do b = lowest, atoms_most
              if (excess(b) >= 0) cycle
              n_contacts = n_contacts + 1
              if (n_contacts > contacts_most) return
              contact_atom(n_contacts) = a
              contact_other(:, n_contacts) = 0
              if (moves .and. b <= sugar_atoms) contact_other(:, n_contacts) = [b, j]
              contact_point(:, n_contacts) = [place_x(b, j), place_y(b, j), place_z(b, j)]
              contact_near(n_contacts) = contact_distance(sugar_class(a), class_of(b, base_type(j)))
            end do
          end do
        end do
      end do
      do k = obstacle_first(i) + 1, obstacle_first(i + 1)
        do a = merge(phosphate_atoms + 1, 1, i == first_of_strand(i)), sugar_atoms
          near = contact_distance(sugar_class(a), obstacle_class(k))
          squared = sum((obstacle_position(:, k) - snapshot(:, a, i))**2)
          if (squared >= (near + contact_margin)**2 .or. squared < deepest**2) cycle
          n_contacts = n_contacts + 1
          if (n_contacts > contacts_most) return
          contact_atom(n_contacts) = a
          contact_other(:, n_contacts) = 0
          contact_point(:, n_contacts) = obstacle_position(:, k)
          contact_near(n_contacts) = near
        end do
      end do
    end subroutine list_contacts

    !> Sum of squared residuals, its Gauss-Newton matrix and half its gradient for nucleotides from..to at x.
    subroutine evaluate(from, to, x, n_contacts, contact_atom, contact_other, contact_point, contact_near, &
        cost, hessian, coupling, gradient)
      integer(int32), intent(in) :: from, to
      real(real64), intent(in) :: x(3, sugar_atoms, from:to)
      integer(int32), intent(in) :: n_contacts(from:to), contact_atom(contacts_most, from:to)
      integer(int32), intent(in) :: contact_other(2, contacts_most, from:to)
      real(real64), intent(in) :: contact_point(3, contacts_most, from:to), contact_near(contacts_most, from:to)
      real(real64), intent(out) :: cost, gradient(unknowns, from:to)
      real(real32), intent(out) :: hessian(unknowns, unknowns, from:to), coupling(head, tail, from:to)
      real(real32) :: place(3, window), block(4, 3, window_pairs), slope(4, window_free)
      real(real64) :: centre(3)
      integer(int32) :: i, a, b, last

      cost = 0
      coupling(:, :, from) = 0
      last = first_of_strand(from) + n / 2 - 1
      do i = from, min(to + 1, last)
        ! Differences of positions are all that counts from here on: single precision carries them to 1e-6 angstrom.
        centre = c1_position(:, i)
        place(:, :previous_atoms) = 0
        if (i > from) then
          place(:, :previous_atoms) = relative(x(:, sugar_atoms - 2:, i - 1), centre)
        else if (i > first_of_strand(i)) then
          place(:, :previous_atoms) = relative(snapshot(:, sugar_atoms - 2:, i - 1), centre)
        end if
        if (i <= to) then
          place(:, previous_atoms + 1:window_free) = relative(x(:, :, i), centre)
        else
          place(:, previous_atoms + 1:window_free) = relative(snapshot(:, :, i), centre)
        end if
        place(:, window_free + 1:) = relative(base_position(:, :3, i), centre)
        block = 0
        slope = 0
        call add_geometry(base_type(i), i == first_of_strand(i), i > to, place, cost, block, slope)
        if (i > from) then
          do b = 1, previous_atoms
            gradient(unknowns - tail + 3 * b - 2:unknowns - tail + 3 * b, i - 1) = slope(:3, b) + &
              gradient(unknowns - tail + 3 * b - 2:unknowns - tail + 3 * b, i - 1)
            do a = b, previous_atoms
              hessian(unknowns - tail + 3 * a - 2:unknowns - tail + 3 * a, &
                unknowns - tail + 3 * b - 2:unknowns - tail + 3 * b, i - 1) = block(:3, :, pair_index(a, b)) + &
                hessian(unknowns - tail + 3 * a - 2:unknowns - tail + 3 * a, &
                unknowns - tail + 3 * b - 2:unknowns - tail + 3 * b, i - 1)
            end do
          end do
        end if
        if (i > to) exit
        do b = 1, sugar_atoms
          gradient(3 * b - 2:3 * b, i) = slope(:3, previous_atoms + b)
          do a = b, sugar_atoms
            hessian(3 * a - 2:3 * a, 3 * b - 2:3 * b, i) = &
              block(:3, :, pair_index(previous_atoms + a, previous_atoms + b))
          end do
        end do
        if (i == from) cycle
        do b = 1, previous_atoms
          do a = 1, head / 3
            coupling(3 * a - 2:3 * a, 3 * b - 2:3 * b, i) = block(:3, :, pair_index(previous_atoms + a, b))
          end do
        end do
      end do
      call add_contacts(from, to, x, n_contacts, contact_atom, contact_other, contact_point, contact_near, &
        cost, hessian, gradient)
    end subroutine evaluate

    !> Points seen from a centre.
    pure function relative(points, centre) result(seen)
      real(real64), intent(in) :: points(:, :), centre(3)
      real(real32) :: seen(3, size(points, 2))
      integer(int32) :: k
      do k = 1, size(points, 2)
        seen(:, k) = real(points(:, k) - centre, real32)
      end do
    end function relative

    !> Bonds, angles, torsions and the tether of C1' (to the origin of ``place``) in the window of one nucleotide, into
    !> the blocks of atom pairs. Beyond the piece's end only terms that reach back into the piece count.
    subroutine add_geometry(base, is_first, is_beyond, place, cost, block, slope)
      integer(int32), intent(in) :: base
      logical, intent(in) :: is_first, is_beyond
      real(real32), intent(in) :: place(3, window)
      real(real64), intent(inout) :: cost
      real(real32), intent(inout) :: block(4, 3, window_pairs), slope(4, window_free)
      real(real32) :: value(max(n_bond, n_angle)), slopes(4, 3, max(n_bond, n_angle)), torsion_slopes(4, 4), deviation
      integer(int32) :: k, c, here

      call bonds(n_bond, bond_atom, place, value, slopes)
      do k = 1, n_bond
        if (skips(is_first, is_beyond, bond_atom(:, k))) cycle
        call add_term(2, bond_atom(:, k), value(k) - real(bond_target(k, base), real32), &
          real(1 / bond_sigma(k), real32), slopes(:, :, k), cost, block, slope)
      end do
      call angles(n_angle, angle_atom, place, cosine_angle(:, base), sine_angle(:, base), inverse_sharp, value, slopes)
      do k = 1, n_angle
        if (skips(is_first, is_beyond, angle_atom(:, k))) cycle
        call add_term(3, angle_atom(:, k), value(k), real(1 / angle_sigma(k), real32), slopes(:, :, k), &
          cost, block, slope)
      end do
      do k = 1, n_torsion
        if (skips(is_first, is_beyond, torsion_atom(:, k))) cycle
        call torsion(place(:, torsion_atom(1, k)), place(:, torsion_atom(2, k)), place(:, torsion_atom(3, k)), &
          place(:, torsion_atom(4, k)), cosine_torsion(k), sine_torsion(k), deviation, torsion_slopes)
        call add_term(4, torsion_atom(:, k), deviation, real(1 / torsion_sigma(k), real32), torsion_slopes, &
          cost, block, slope)
      end do
      if (is_beyond) return
      here = previous_atoms + c1_atom
      cost = cost + sum((place(:, here) / c1_sigma)**2)
      slope(:3, here) = slope(:3, here) + real(place(:, here) / c1_sigma**2, real32)
      do c = 1, 3
        block(c, c, pair_index(here, here)) = block(c, c, pair_index(here, here)) + real(1 / c1_sigma**2, real32)
      end do
    end subroutine add_geometry

    !> Soft contacts. Between two nucleotides of the piece the mixed block of the matrix is left out and the diagonal
    !> blocks are doubled, which bounds the true matrix from above and keeps it block-tridiagonal.
    subroutine add_contacts(from, to, x, n_contacts, contact_atom, contact_other, contact_point, contact_near, &
        cost, hessian, gradient)
      integer(int32), intent(in) :: from, to
      real(real64), intent(in) :: x(3, sugar_atoms, from:to)
      integer(int32), intent(in) :: n_contacts(from:to), contact_atom(contacts_most, from:to)
      integer(int32), intent(in) :: contact_other(2, contacts_most, from:to)
      real(real64), intent(in) :: contact_point(3, contacts_most, from:to), contact_near(contacts_most, from:to)
      real(real64), intent(inout) :: cost, gradient(unknowns, from:to)
      real(real32), intent(inout) :: hessian(unknowns, unknowns, from:to)
      real(real64) :: difference(3), distance, direction(3), squared
      real(real32) :: outer(3, 3)
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
            outer(:, c) = real(direction * direction(c), real32)
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

  !> Place of the pair of window atoms a >= b in a packed lower triangle.
  pure integer(int32) function pair_index(a, b)
    integer(int32), intent(in) :: a, b
    pair_index = a * (a - 1) / 2 + b
  end function pair_index

  !> Whether a term does not exist at a 5' end, or belongs to the nucleotide beyond a piece alone.
  pure logical function skips(is_first, is_beyond, atom)
    logical, intent(in) :: is_first, is_beyond
    integer(int32), intent(in) :: atom(:)
    skips = .false.
    if (is_first) skips = minval(atom) <= needs_phosphate
    if (is_beyond) skips = minval(atom) > previous_atoms
  end function skips

  !> Adds one residual with its derivatives to the normal equations of a window; base atoms do not move. The fourth
  !> component of every vector is padding.
  pure subroutine add_term(m, atom, deviation, weight, slopes, cost, block, slope)
    integer(int32), intent(in) :: m, atom(m)
    real(real32), intent(in) :: deviation, weight, slopes(4, m)
    real(real64), intent(inout) :: cost
    real(real32), intent(inout) :: block(4, 3, window_pairs), slope(4, window_free)
    real(real32) :: residual, jacobian(4, 4)
    integer(int32) :: p, q, at

    residual = weight * deviation
    cost = cost + real(residual, real64)**2
    jacobian(:, :m) = weight * slopes
    do p = 1, m
      if (atom(p) > window_free) cycle
      slope(:, atom(p)) = slope(:, atom(p)) + residual * jacobian(:, p)
      do q = 1, m
        if (atom(q) < atom(p) .or. atom(q) > window_free) cycle
        at = pair_index(atom(q), atom(p))
        block(:, 1, at) = block(:, 1, at) + jacobian(:, q) * jacobian(1, p)
        block(:, 2, at) = block(:, 2, at) + jacobian(:, q) * jacobian(2, p)
        block(:, 3, at) = block(:, 3, at) + jacobian(:, q) * jacobian(3, p)
      end do
    end do
  end subroutine add_term

  !> Lengths of bonds and their derivatives.
  pure subroutine bonds(m, atom, place, value, slopes)
    integer(int32), intent(in) :: m, atom(2, m)
    real(real32), intent(in) :: place(3, window)
    real(real32), intent(out) :: value(m), slopes(4, 3, m)
    real(real32) :: u(3)
    integer(int32) :: k

    slopes(4, :, :) = 0
    do k = 1, m
      u = place(:, atom(1, k)) - place(:, atom(2, k))
      value(k) = sqrt(max(u(1)**2 + u(2)**2 + u(3)**2, coincident))
      slopes(:3, 1, k) = u / value(k)
      slopes(:3, 2, k) = -slopes(:3, 1, k)
    end do
  end subroutine bonds

  !> Deviations of angles from their targets, radian, and their derivatives. With the deviation D it is
  !> 2 tan(D/2) = 2 sin D / (1 + cos D), which is D to 0.3 % at 10 degrees and needs no inverse function. Beyond a few
  !> standard deviations it grows faster still: strain is shared with neighbours rather than left in one angle.
  pure subroutine angles(m, atom, place, cosine_target, sine_target, inverse_sharp, value, slopes)
    integer(int32), intent(in) :: m, atom(3, m)
    real(real32), intent(in) :: place(3, window), cosine_target(m), sine_target(m)
    real(real32), intent(in) :: inverse_sharp(m) !! one over the deviation that counts double, per radian
    real(real32), intent(out) :: value(m), slopes(4, 3, m)
    real(real32), dimension(m) :: ux, uy, uz, vx, vy, vz, per_u, per_v, cosine, along_u, along_v
    real(real32) :: sine, half, excess
    integer(int32) :: k

    do k = 1, m
      ux(k) = place(1, atom(1, k)) - place(1, atom(2, k))
      uy(k) = place(2, atom(1, k)) - place(2, atom(2, k))
      uz(k) = place(3, atom(1, k)) - place(3, atom(2, k))
      vx(k) = place(1, atom(3, k)) - place(1, atom(2, k))
      vy(k) = place(2, atom(3, k)) - place(2, atom(2, k))
      vz(k) = place(3, atom(3, k)) - place(3, atom(2, k))
    end do
    do k = 1, m
      per_u(k) = 1 / sqrt(max(ux(k)**2 + uy(k)**2 + uz(k)**2, coincident))
      per_v(k) = 1 / sqrt(max(vx(k)**2 + vy(k)**2 + vz(k)**2, coincident))
      cosine(k) = (ux(k) * vx(k) + uy(k) * vy(k) + uz(k) * vz(k)) * per_u(k) * per_v(k)
      sine = sqrt(max(1 - cosine(k)**2, 1.0e-9_real32))
      half = 1 / max(1 + cosine(k) * cosine_target(k) + sine * sine_target(k), 1.0e-2_real32)
      value(k) = 2 * (sine * cosine_target(k) - cosine(k) * sine_target(k)) * half
      excess = (value(k) * inverse_sharp(k))**2
      along_u(k) = 2 * half / sine * (1 + 3 * excess) * per_u(k)
      along_v(k) = 2 * half / sine * (1 + 3 * excess) * per_v(k)
      value(k) = value(k) * (1 + excess)
    end do
    do k = 1, m
      slopes(1, 1, k) = (cosine(k) * per_u(k) * ux(k) - per_v(k) * vx(k)) * along_u(k)
      slopes(2, 1, k) = (cosine(k) * per_u(k) * uy(k) - per_v(k) * vy(k)) * along_u(k)
      slopes(3, 1, k) = (cosine(k) * per_u(k) * uz(k) - per_v(k) * vz(k)) * along_u(k)
      slopes(4, 1, k) = 0
      slopes(1, 3, k) = (cosine(k) * per_v(k) * vx(k) - per_u(k) * ux(k)) * along_v(k)
      slopes(2, 3, k) = (cosine(k) * per_v(k) * vy(k) - per_u(k) * uy(k)) * along_v(k)
      slopes(3, 3, k) = (cosine(k) * per_v(k) * vz(k) - per_u(k) * uz(k)) * along_v(k)
      slopes(4, 3, k) = 0
      slopes(:, 2, k) = -slopes(:, 1, k) - slopes(:, 3, k)
    end do
  end subroutine angles

  !> Deviation of the torsion of four points (IUPAC sign) from a target, radian, -pi..pi, and its derivatives
  !> (Blondel & Karplus 1996).
  pure subroutine torsion(p, q, r, s, cosine_target, sine_target, value, slopes)
    real(real32), intent(in) :: p(3), q(3), r(3), s(3), cosine_target, sine_target
    real(real32), intent(out) :: value, slopes(4, 4)
    real(real32) :: f(3), g(3), h(3), a(3), b(3), length, a2, b2, inner(3), sine, cosine

    f = p - q
    g = q - r
    h = s - r
    a = [f(2) * g(3) - f(3) * g(2), f(3) * g(1) - f(1) * g(3), f(1) * g(2) - f(2) * g(1)]
    b = [h(2) * g(3) - h(3) * g(2), h(3) * g(1) - h(1) * g(3), h(1) * g(2) - h(2) * g(1)]
    length = sqrt(max(g(1)**2 + g(2)**2 + g(3)**2, coincident))
    a2 = 1 / max(a(1)**2 + a(2)**2 + a(3)**2, 1.0e-6_real32)
    b2 = 1 / max(b(1)**2 + b(2)**2 + b(3)**2, 1.0e-6_real32)
    cosine = a(1) * b(1) + a(2) * b(2) + a(3) * b(3)
    sine = ((b(2) * a(3) - b(3) * a(2)) * g(1) + (b(3) * a(1) - b(1) * a(3)) * g(2) &
      + (b(1) * a(2) - b(2) * a(1)) * g(3)) / length
    value = atan2(sine * cosine_target - cosine * sine_target, cosine * cosine_target + sine * sine_target)
    slopes(4, :) = 0
    slopes(:3, 1) = -length * a2 * a
    slopes(:3, 4) = length * b2 * b
    inner = (f(1) * g(1) + f(2) * g(2) + f(3) * g(3)) * a2 / length * a &
      - (h(1) * g(1) + h(2) * g(2) + h(3) * g(3)) * b2 / length * b
    slopes(:3, 2) = -slopes(:3, 1) + inner
    slopes(:3, 3) = -slopes(:3, 4) - inner
  end subroutine torsion

  !> Cholesky factor of the damped block-tridiagonal matrix, its diagonal inverted and apart, and the link blocks below
  !> the diagonal. Columns are padded with zeros, so that every loop runs over whole vector registers.
  pure subroutine factorise(from, to, hessian, coupling, damping, factor, inverse, link, definite)
    integer(int32), intent(in) :: from, to
    real(real32), intent(in) :: hessian(unknowns, unknowns, from:to), coupling(head, tail, from:to), damping
    real(real32), intent(out) :: factor(padded, unknowns, from:to) !! strictly below the diagonal
    real(real32), intent(out) :: inverse(unknowns, from:to), link(head, tail, from:to)
    logical, intent(out) :: definite
    integer(int32), parameter :: shift = unknowns - tail, upper = 16
    real(real32) :: work(padded, unknowns)
    integer(int32) :: i, j, k, c

    definite = .true.
    link(:, :, from) = 0
    work(unknowns + 1:, :) = 0
    do i = from, to
      work(:unknowns, :) = hessian(:, :, i)
      do j = 1, unknowns
        work(j, j) = work(j, j) + damping
      end do
      if (i > from) then
        do j = 1, tail
          link(:, j, i) = coupling(:, j, i)
          do k = 1, j - 1
            link(:, j, i) = link(:, j, i) - link(:, k, i) * factor(shift + j, shift + k, i - 1)
          end do
          link(:, j, i) = link(:, j, i) * inverse(shift + j, i - 1)
        end do
        do j = 1, head
          do k = 1, tail
            work(:head, j) = work(:head, j) - link(:, k, i) * link(j, k, i)
          end do
        end do
      end if
      do j = 1, unknowns, 3
        do c = j, j + 2
          do k = j, c - 1
            work(c:unknowns, c) = work(c:unknowns, c) - work(c:unknowns, k) * work(c, k)
          end do
          if (work(c, c) <= 0) then
            definite = .false.
            return
          end if
          inverse(c, i) = 1 / sqrt(work(c, c))
          work(c + 1:unknowns, c) = work(c + 1:unknowns, c) * inverse(c, i)
          work(:c, c) = 0
        end do
        if (j < upper) then
          do k = j + 3, unknowns
            work(:, k) = work(:, k) - work(:, j) * work(k, j) - work(:, j + 1) * work(k, j + 1) &
              - work(:, j + 2) * work(k, j + 2)
          end do
        else
          do k = j + 3, unknowns
            work(upper + 1:, k) = work(upper + 1:, k) - work(upper + 1:, j) * work(k, j) &
              - work(upper + 1:, j + 1) * work(k, j + 1) - work(upper + 1:, j + 2) * work(k, j + 2)
          end do
        end if
      end do
      factor(:, :, i) = work
    end do
  end subroutine factorise

  !> Solves with the factor in place.
  pure subroutine substitute(from, to, factor, inverse, link, x)
    integer(int32), intent(in) :: from, to
    real(real32), intent(in) :: factor(padded, unknowns, from:to), inverse(unknowns, from:to)
    real(real32), intent(in) :: link(head, tail, from:to)
    real(real32), intent(inout) :: x(unknowns, from:to)
    integer(int32), parameter :: shift = unknowns - tail
    real(real32) :: y(padded), partial(4)
    integer(int32) :: i, j, k

    y = 0
    do i = from, to
      y(:unknowns) = x(:, i)
      if (i > from) then
        do k = 1, tail
          y(:head) = y(:head) - link(:, k, i) * x(shift + k, i - 1)
        end do
      end if
      do j = 1, unknowns
        x(j, i) = y(j) * inverse(j, i)
        y = y - factor(:, j, i) * x(j, i)
      end do
    end do
    do i = to, from, -1
      y(:unknowns) = x(:, i)
      if (i < to) then
        do k = 1, tail
          y(shift + k) = y(shift + k) - dot_product(link(:, k, i + 1), x(:head, i + 1))
        end do
      end if
      do j = unknowns, 1, -1
        ! Four partial sums, always the same: a vector register's worth.
        partial = 0
        do k = 1, padded, 4
          partial = partial + factor(k:k + 3, j, i) * y(k:k + 3)
        end do
        y(j) = (y(j) - ((partial(1) + partial(3)) + (partial(2) + partial(4)))) * inverse(j, i)
      end do
      x(:, i) = y(:unknowns)
    end do
  end subroutine substitute
end module backbone_closure
