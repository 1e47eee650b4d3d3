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
  use backbone_model, only: backbone_t, terms_t, new_backbone, delete_backbone, backbone_of, sugar_atoms, phosphate_atoms, &
    c1_atom, base_atoms, atoms_most, unknowns, tail, head, previous_atoms, window_free, window_pairs, window
  use backbone_solver, only: factorise, substitute, padded
  use backbone_terms, only: add_term, angles, bonds, pair_index, skips, torsion
  use iso_fortran_env, only: int32, int64, real32, real64
  implicit none
  private
  public :: create_backbone, free_backbone, set_atoms, set_terms, set_tether, set_contacts, set_duplex
  public :: set_obstacles, close_pieces

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

contains

  subroutine create_backbone(handle)
    integer(int64), intent(out) :: handle
    handle = new_backbone()
  end subroutine create_backbone

  subroutine free_backbone(handle)
    integer(int64), intent(in) :: handle
    call delete_backbone(handle)
  end subroutine free_backbone

  !> What the atoms are, and which are too near by bonds to be in contact.
  subroutine set_atoms(handle, base_size, base_class, sugar_class, excluded_own, excluded_next)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: base_size(4)          !! heavy atoms of A, C, G, T without C1'
    integer(int32), intent(in) :: base_class(11, 4)     !! atom class (C, N, O, P, methyl) of the base atoms
    integer(int32), intent(in) :: sugar_class(11)       !! atom class of the sugar-phosphate atoms
    integer(int32), intent(in) :: excluded_own(11, 22, 4) !! 1: within three bonds; second index sugar, then base
    integer(int32), intent(in) :: excluded_next(11, 11) !! 1: within three bonds of an atom of the next nucleotide
    type(backbone_t), pointer :: self

    self => backbone_of(handle)
    self%base_size = base_size
    self%base_class = base_class
    self%sugar_class = sugar_class
    self%excluded_own = excluded_own
    self%excluded_next = excluded_next
  end subroutine set_atoms

  !> The terms over so many atoms of a window: bonds (2), angles (3) or torsions (4).
  subroutine set_terms(handle, n_atoms, n, atom, target, sigma)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n_atoms, n
    integer(int32), intent(in) :: atom(n_atoms, n)      !! of the window, from 1
    real(real64), intent(in) :: target(n, 4), sigma(n)  !! by base; angstrom, or radian
    type(backbone_t), pointer :: self

    self => backbone_of(handle)
    self%terms(n_atoms) = terms_t(atom, target, sigma)
  end subroutine set_terms

  !> How firmly C1' is held where its base wants it.
  subroutine set_tether(handle, sigma)
    integer(int64), intent(in) :: handle
    real(real64), intent(in) :: sigma                   !! angstrom
    type(backbone_t), pointer :: self

    self => backbone_of(handle)
    self%c1_sigma = sigma
  end subroutine set_tether

  !> Soft contacts of atoms by their classes.
  subroutine set_contacts(handle, distance, sigma)
    integer(int64), intent(in) :: handle
    real(real64), intent(in) :: distance(8, 8), sigma   !! angstrom, by atom class
    type(backbone_t), pointer :: self

    self => backbone_of(handle)
    self%contact_distance = distance
    self%contact_sigma = sigma
  end subroutine set_contacts

  !> The duplex: strand I, then strand J, each 5' to 3'.
  subroutine set_duplex(handle, n, base_type, base_position, c1_position)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n                     !! nucleotides; even
    integer(int32), intent(in) :: base_type(n)          !! 1 A, 2 C, 3 G, 4 T
    real(real64), intent(in) :: base_position(3, 11, n) !! angstrom; the first three are N and its two neighbours
    real(real64), intent(in) :: c1_position(3, n)       !! angstrom, where the base wants C1'
    type(backbone_t), pointer :: self

    self => backbone_of(handle)
    self%n = n
    self%base_type = base_type
    self%base_position = base_position
    self%c1_position = c1_position
  end subroutine set_duplex

  !> Atoms of proteins that stand still.
  subroutine set_obstacles(handle, n, n_obstacles, first, atom_class, position)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n, n_obstacles
    integer(int32), intent(in) :: first(n + 1)          !! those of nucleotide i are first(i)+1 .. first(i+1)
    integer(int32), intent(in) :: atom_class(n_obstacles)
    real(real64), intent(in) :: position(3, n_obstacles) !! angstrom
    type(backbone_t), pointer :: self

    self => backbone_of(handle)
    self%obstacle_first = first
    self%obstacle_class = atom_class
    self%obstacle_position = position
  end subroutine set_obstacles

  !> One pass: every piece is minimised while all else stays as it came in.
  subroutine close_pieces(handle, n, n_pieces, piece_first, piece_last, margin, most_iterations, converged_fraction, n_threads, &
      position, iterations, last_step, failed)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n, n_pieces           !! nucleotides, pieces
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
    type(backbone_t), pointer :: self
    integer(int32), pointer, contiguous :: bond_atom(:, :), angle_atom(:, :), torsion_atom(:, :)
    integer(int32), pointer, contiguous :: base_type(:), obstacle_first(:), obstacle_class(:)
    real(real64), pointer, contiguous :: bond_target(:, :), angle_target(:, :), torsion_target(:, :)
    real(real64), pointer, contiguous :: bond_sigma(:), angle_sigma(:), torsion_sigma(:)
    real(real64), pointer, contiguous :: base_position(:, :, :), c1_position(:, :), obstacle_position(:, :)
    real(real64) :: contact_distance(8, 8), contact_sigma, c1_sigma
    integer(int32) :: sugar_class(sugar_atoms), base_class(base_atoms, 4)
    real(real32), allocatable, dimension(:, :) :: cosine_angle, sine_angle, cosine_torsion, sine_torsion
    real(real32), allocatable :: inverse_sharp(:)
    integer(int32) :: n_bond, n_angle, n_torsion, k, a, b, base

    self => backbone_of(handle)
    base_type => self%base_type
    base_position => self%base_position
    c1_position => self%c1_position
    obstacle_first => self%obstacle_first
    obstacle_class => self%obstacle_class
    obstacle_position => self%obstacle_position
    bond_atom => self%terms(2)%atom
    bond_target => self%terms(2)%target
    bond_sigma => self%terms(2)%sigma
    angle_atom => self%terms(3)%atom
    angle_target => self%terms(3)%target
    angle_sigma => self%terms(3)%sigma
    torsion_atom => self%terms(4)%atom
    torsion_target => self%terms(4)%target
    torsion_sigma => self%terms(4)%sigma
    contact_distance = self%contact_distance
    contact_sigma = self%contact_sigma
    c1_sigma = self%c1_sigma
    sugar_class = self%sugar_class
    base_class = self%base_class
    n_bond = size(bond_sigma)
    n_angle = size(angle_sigma)
    n_torsion = size(torsion_sigma)
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
          if (b > sugar_atoms + self%base_size(base)) reach(b, a, base, :) = -1
        end do
        where (self%excluded_own(a, :, base) == 1) reach(:, a, base, itself) = -1
        reach(:a, a, base, itself) = -1 ! every pair once
        where (self%excluded_next(a, :) == 1) reach(:sugar_atoms, a, base, next) = -1
        where (self%excluded_next(:, a) == 1) reach(:sugar_atoms, a, base, previous) = -1
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
          place(:, torsion_atom(4, k)), cosine_torsion(k, base), sine_torsion(k, base), deviation, torsion_slopes)
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
  end subroutine close_pieces

end module backbone_closure
