!> Relaxes bases as rigid bodies: each tethered to its place, elastic against its partner, and pushed off the bases of
!> the neighbouring pairs where atoms overlap.
!>
!> A body's six unknowns are a translation and a rotation in its own frame. Two bodies make a pair, and a pair meets only
!> the next one: the normal matrix is block-tridiagonal with blocks of 12. Gauss-Newton on pieces of the duplex with
!> margins; a piece reads only where the bases began, so that the result does not depend on the number of threads.
module base_stacking
  use iso_fortran_env, only: int32, int64, real64
  use stacking_model, only: stacking_t, new_stacking, delete_stacking, stacking_of, atoms_most
  implicit none
  private
  public :: create_stacking, free_stacking, set_bases, set_elasticity, set_contacts, relax_stack

  integer(int32), parameter :: six = 6, twelve = 12
  integer(int32), parameter :: contacts_most = 160       !! between two neighbouring pairs
  real(real64), parameter :: longest_move = 0.5_real64   !! angstrom, per iteration
  real(real64), parameter :: longest_turn = 0.15_real64  !! radian
  real(real64), parameter :: difference = 1.0e-5_real64  !! angstrom and radian, of numerical derivatives
  real(real64), parameter :: degree = 180 / acos(-1.0_real64)

contains

  subroutine create_stacking(handle)
    integer(int64), intent(out) :: handle
    handle = new_stacking()
  end subroutine create_stacking

  subroutine free_stacking(handle)
    integer(int64), intent(in) :: handle
    call delete_stacking(handle)
  end subroutine free_stacking

  subroutine set_bases(handle, size_of, atom, is_oxygen)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: size_of(4)       !! heavy atoms of A, C, G, T without C1'
    real(real64), intent(in) :: atom(3, 11, 4)     !! in the base frame, angstrom
    integer(int32), intent(in) :: is_oxygen(11, 4)
    type(stacking_t), pointer :: self

    self => stacking_of(handle)
    self%size_of = size_of
    self%atom = atom
    self%is_oxygen = is_oxygen
  end subroutine set_bases

  !> Standard deviations of what holds a base.
  subroutine set_elasticity(handle, pair_sigma, tether_shift, tether_turn)
    integer(int64), intent(in) :: handle
    real(real64), intent(in) :: pair_sigma(6)      !! of shear ... opening, angstrom and degree
    real(real64), intent(in) :: tether_shift, tether_turn   !! angstrom, radian
    type(stacking_t), pointer :: self

    self => stacking_of(handle)
    self%pair_sigma = pair_sigma
    self%tether_shift = tether_shift
    self%tether_turn = tether_turn
  end subroutine set_elasticity

  !> How near atoms of neighbouring pairs may come, with an oxygen among them and without, and how far they are looked for.
  subroutine set_contacts(handle, contact, contact_oxygen, sigma, reach)
    integer(int64), intent(in) :: handle
    real(real64), intent(in) :: contact, contact_oxygen, sigma, reach   !! angstrom
    type(stacking_t), pointer :: self

    self => stacking_of(handle)
    self%contact = contact
    self%contact_oxygen = contact_oxygen
    self%contact_sigma = sigma
    self%reach = reach
  end subroutine set_contacts

  !> Bodies come in the order I0, J'0, I1, J'1, ...: J' is the partner of I.
  subroutine relax_stack(handle, n, kind, rest, piece, margin, most_iterations, converged, n_threads, place, turn, failed)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n                        !! base pairs
    integer(int32), intent(in) :: kind(2 * n)              !! 1 A, 2 C, 3 G, 4 T
    real(real64), intent(in) :: rest(6, n)                 !! shear ... opening at rest, angstrom and degree
    integer(int32), intent(in) :: piece, margin            !! base pairs
    integer(int32), intent(in) :: most_iterations, n_threads
    real(real64), intent(in) :: converged                  !! angstrom and radian
    real(real64), intent(inout) :: place(3, 2 * n), turn(3, 3, 2 * n) !! angstrom; columns of a frame are x, y, z
    integer(int32), intent(out) :: failed                  !! steps with more contacts than there is room for
    real(real64), allocatable :: home_place(:, :), home_turn(:, :, :)
    type(stacking_t), pointer :: self
    integer(int32) :: k, size_of(4), is_oxygen(atoms_most, 4)
    real(real64) :: atom(3, atoms_most, 4), pair_sigma(six), tether_sigma(2), contact, contact_oxygen, contact_sigma, reach

    self => stacking_of(handle)
    size_of = self%size_of
    is_oxygen = self%is_oxygen
    atom = self%atom
    pair_sigma = self%pair_sigma
    tether_sigma = [self%tether_shift, self%tether_turn]
    contact = self%contact
    contact_oxygen = self%contact_oxygen
    contact_sigma = self%contact_sigma
    reach = self%reach
    allocate (home_place, source=place)
    allocate (home_turn, source=turn)
    failed = 0
    !$omp parallel do schedule(dynamic) num_threads(n_threads) reduction(+:failed)
    do k = 1, n, piece
      call relax_piece(k, min(k + piece - 1, n), failed)
    end do
    !$omp end parallel do

  contains

    subroutine relax_piece(keep_first, keep_last, overflow)
      integer(int32), intent(in) :: keep_first, keep_last
      integer(int32), intent(inout) :: overflow
      real(real64), allocatable :: spot(:, :), frame(:, :, :), diagonal(:, :, :), below(:, :, :), gradient(:, :)
      real(real64), allocatable :: pair_slopes(:, :, :)
      integer(int32), allocatable :: n_contacts(:), member(:, :, :)
      real(real64) :: scale, row(six, 2), direction(3), apart(3), distance, limit, value, deviation(six), back(3, 3)
      real(real64) :: tether(six), weight(six)
      integer(int32) :: from, to, iteration, k, s, c, m, ends(2), at(2)
      logical :: definite

      from = max(keep_first - margin, 1)
      to = min(keep_last + margin, n)
      allocate (spot(3, 2 * from - 1:2 * to), frame(3, 3, 2 * from - 1:2 * to))
      spot(:, :) = home_place(:, 2 * from - 1:2 * to)
      frame(:, :, :) = home_turn(:, :, 2 * from - 1:2 * to)
      allocate (diagonal(twelve, twelve, from:to), below(twelve, twelve, from:to), gradient(twelve, from:to))
      allocate (pair_slopes(six, twelve, from:to), n_contacts(from:to), member(4, contacts_most, from:to))
      weight(:3) = 1 / tether_sigma(1)
      weight(4:) = 1 / tether_sigma(2)
      do k = from, to
        call pair_derivatives(spot(:, body(k, 0):body(k, 1)), frame(:, :, body(k, 0):body(k, 1)), pair_slopes(:, :, k))
        n_contacts(k) = 0
        if (k < to) call list_contacts(k, n_contacts(k), member(:, :, k))
        if (n_contacts(k) > contacts_most) overflow = overflow + 1
        n_contacts(k) = min(n_contacts(k), contacts_most)
      end do

      do iteration = 1, most_iterations
        do k = from, to
          ! Bases turn by a few degrees only: the derivatives of the first iteration serve all.
          deviation = (pair_parameters(spot(:, body(k, 0):body(k, 1)), frame(:, :, body(k, 0):body(k, 1))) - rest(:, k)) &
            / pair_sigma
          diagonal(:, :, k) = matmul(transpose(pair_slopes(:, :, k)), pair_slopes(:, :, k))
          gradient(:, k) = matmul(deviation, pair_slopes(:, :, k))
          below(:, :, k) = 0
          do s = 0, 1
            m = body(k, s)
            back = matmul(transpose(home_turn(:, :, m)), frame(:, :, m))
            tether(:3) = matmul(spot(:, m) - home_place(:, m), home_turn(:, :, m))
            tether(4:) = rotation_vector(back)
            tether = tether * weight**2
            c = six * s
            gradient(c + 1:c + 3, k) = gradient(c + 1:c + 3, k) + matmul(tether(:3), back)
            gradient(c + 4:c + 6, k) = gradient(c + 4:c + 6, k) + tether(4:)
            do m = 1, six
              diagonal(c + m, c + m, k) = diagonal(c + m, c + m, k) + weight(m)**2
            end do
          end do
        end do
        do k = from, to - 1
          do m = 1, n_contacts(k)
            ends = [body(k, member(1, m, k)), body(k + 1, member(3, m, k))]
            at = kind(ends)
            apart = spot(:, ends(1)) + matmul(frame(:, :, ends(1)), atom(:, member(2, m, k), at(1))) &
              - spot(:, ends(2)) - matmul(frame(:, :, ends(2)), atom(:, member(4, m, k), at(2)))
            limit = contact
            if (is_oxygen(member(2, m, k), at(1)) + is_oxygen(member(4, m, k), at(2)) > 0) limit = contact_oxygen
            distance = norm2(apart)
            if (distance >= limit) cycle
            value = (limit - distance) / contact_sigma
            direction = apart / (distance * contact_sigma)
            row(:3, 1) = -matmul(direction, frame(:, :, ends(1)))
            row(:3, 2) = matmul(direction, frame(:, :, ends(2)))
            row(4:, 1) = cross(atom(:, member(2, m, k), at(1)), row(:3, 1))
            row(4:, 2) = cross(atom(:, member(4, m, k), at(2)), row(:3, 2))
            s = six * member(1, m, k)
            c = six * member(3, m, k)
            gradient(s + 1:s + six, k) = gradient(s + 1:s + six, k) + value * row(:, 1)
            gradient(c + 1:c + six, k + 1) = gradient(c + 1:c + six, k + 1) + value * row(:, 2)
            call add_outer(row(:, 1), row(:, 1), diagonal(s + 1:s + six, s + 1:s + six, k))
            call add_outer(row(:, 2), row(:, 2), diagonal(c + 1:c + six, c + 1:c + six, k + 1))
            call add_outer(row(:, 2), row(:, 1), below(c + 1:c + six, s + 1:s + six, k + 1))
          end do
        end do
        gradient = -gradient
        call solve(from, to, diagonal, below, gradient, definite)
        if (.not. definite) exit
        scale = 1
        do k = from, to
          do s = 0, 1
            scale = max(scale, maxval(abs(gradient(six * s + 1:six * s + 3, k))) / longest_move, &
              maxval(abs(gradient(six * s + 4:six * s + 6, k))) / longest_turn)
          end do
        end do
        gradient = gradient / scale
        do k = from, to
          do s = 0, 1
            m = body(k, s)
            spot(:, m) = spot(:, m) + matmul(frame(:, :, m), gradient(six * s + 1:six * s + 3, k))
            frame(:, :, m) = matmul(frame(:, :, m), rotation(gradient(six * s + 4:six * s + 6, k)))
          end do
        end do
        if (maxval(abs(gradient)) < converged) exit
      end do
      place(:, 2 * keep_first - 1:2 * keep_last) = spot(:, 2 * keep_first - 1:2 * keep_last)
      turn(:, :, 2 * keep_first - 1:2 * keep_last) = frame(:, :, 2 * keep_first - 1:2 * keep_last)
    end subroutine relax_piece

    !> Atom pairs of the bases of pairs k and k + 1 within reach where they begin: base (0 or 1) and atom of either.
    subroutine list_contacts(k, n_contacts, member)
      integer(int32), intent(in) :: k
      integer(int32), intent(out) :: n_contacts, member(4, contacts_most)
      real(real64) :: first(3, atoms_most), second(atoms_most, 3), squared(atoms_most)
      integer(int32) :: s, t, i, j

      n_contacts = 0
      do t = 0, 1
        do j = 1, size_of(kind(body(k + 1, t)))
          second(j, :) = home_place(:, body(k + 1, t)) + &
            matmul(home_turn(:, :, body(k + 1, t)), atom(:, j, kind(body(k + 1, t))))
        end do
        do s = 0, 1
          first = matmul(home_turn(:, :, body(k, s)), atom(:, :, kind(body(k, s))))
          do i = 1, size_of(kind(body(k, s)))
            first(:, i) = first(:, i) + home_place(:, body(k, s))
            do j = 1, size_of(kind(body(k + 1, t)))
              squared(j) = (second(j, 1) - first(1, i))**2 + (second(j, 2) - first(2, i))**2 &
                + (second(j, 3) - first(3, i))**2
            end do
            do j = 1, size_of(kind(body(k + 1, t)))
              if (squared(j) >= reach**2) cycle
              n_contacts = n_contacts + 1
              if (n_contacts <= contacts_most) member(:, n_contacts) = [s, i, t, j]
            end do
          end do
        end do
      end do
    end subroutine list_contacts

    !> Derivatives of the standardised pair parameters to the motions of base I, then of base II.
    subroutine pair_derivatives(spot, frame, slopes)
      real(real64), intent(in) :: spot(3, 2), frame(3, 3, 2)
      real(real64), intent(out) :: slopes(six, twelve)
      real(real64) :: moved(3, 2), turned(3, 3, 2), values(six, 2), motion(3)
      integer(int32) :: s, c, side

      do s = 1, 2
        do c = 1, six
          do side = 1, 2
            moved = spot
            turned = frame
            motion = 0
            motion(modulo(c - 1, 3) + 1) = (3 - 2 * side) * difference
            if (c <= 3) then
              moved(:, s) = spot(:, s) + matmul(frame(:, :, s), motion)
            else
              turned(:, :, s) = matmul(frame(:, :, s), rotation(motion))
            end if
            values(:, side) = pair_parameters(moved, turned)
          end do
          slopes(:, six * (s - 1) + c) = (values(:, 1) - values(:, 2)) / (2 * difference * pair_sigma)
        end do
      end do
    end subroutine pair_derivatives
  end subroutine relax_stack

  !> Place of base s (0: strand I, 1: its partner) of pair k.
  pure integer(int32) function body(k, s)
    integer(int32), intent(in) :: k, s
    body = 2 * k - 1 + s
  end function body

  !> Shear, stretch, stagger (angstrom), buckle, propeller, opening (degree) of two bases, each in its own strand's sense
  !> (El Hassan & Calladine 1995; chromabuild.dna.steps has the same in Python).
  pure function pair_parameters(spot, frame) result(parameters)
    real(real64), intent(in) :: spot(3, 2), frame(3, 3, 2)
    real(real64) :: parameters(six), partner(3, 3), hinge(3), first(3, 3), second(3, 3), middle(3, 3)
    real(real64) :: sine, angle, twist

    partner(:, 1) = frame(:, 1, 2)
    partner(:, 2:) = -frame(:, 2:, 2)
    hinge = cross(partner(:, 3), frame(:, 3, 1))
    sine = norm2(hinge)
    angle = atan2(sine, dot_product(partner(:, 3), frame(:, 3, 1)))
    if (sine > 1.0e-14_real64) hinge = hinge * (angle / sine)
    first = matmul(rotation(0.5_real64 * hinge), partner)
    second = matmul(rotation(-0.5_real64 * hinge), frame(:, :, 1))
    twist = atan2(dot_product(second(:, 1), first(:, 2)), dot_product(second(:, 1), first(:, 1)))
    middle(:, 1) = cos(0.5_real64 * twist) * first(:, 1) + sin(0.5_real64 * twist) * first(:, 2)
    middle(:, 2) = cos(0.5_real64 * twist) * first(:, 2) - sin(0.5_real64 * twist) * first(:, 1)
    middle(:, 3) = first(:, 3)
    parameters(:3) = matmul(spot(:, 1) - spot(:, 2), middle)
    parameters(4:5) = degree * matmul(hinge, middle(:, :2))
    parameters(6) = degree * twist
  end function pair_parameters

  !> Rotation by |v| radian about v (Rodrigues).
  pure function rotation(v) result(matrix)
    real(real64), intent(in) :: v(3)
    real(real64) :: matrix(3, 3), angle, first, second
    integer(int32) :: c

    angle = norm2(v)
    first = 1
    second = 0.5_real64
    if (angle > 1.0e-8_real64) then
      first = sin(angle) / angle
      second = 0.5_real64 * (sin(0.5_real64 * angle) / (0.5_real64 * angle))**2
    end if
    do c = 1, 3
      matrix(:, c) = second * v * v(c)
      matrix(c, c) = matrix(c, c) + 1 - second * angle**2
    end do
    matrix(:, 1) = matrix(:, 1) + first * [0.0_real64, v(3), -v(2)]
    matrix(:, 2) = matrix(:, 2) + first * [-v(3), 0.0_real64, v(1)]
    matrix(:, 3) = matrix(:, 3) + first * [v(2), -v(1), 0.0_real64]
  end function rotation

  !> The inverse of ``rotation``, for less than half a turn.
  pure function rotation_vector(matrix) result(v)
    real(real64), intent(in) :: matrix(3, 3)
    real(real64) :: v(3), sine

    v = 0.5_real64 * [matrix(3, 2) - matrix(2, 3), matrix(1, 3) - matrix(3, 1), matrix(2, 1) - matrix(1, 2)]
    sine = norm2(v)
    if (sine > 1.0e-12_real64) &
      v = v * (atan2(sine, 0.5_real64 * (matrix(1, 1) + matrix(2, 2) + matrix(3, 3) - 1)) / sine)
  end function rotation_vector

  pure function cross(u, v) result(w)
    real(real64), intent(in) :: u(3), v(3)
    real(real64) :: w(3)
    w = [u(2) * v(3) - u(3) * v(2), u(3) * v(1) - u(1) * v(3), u(1) * v(2) - u(2) * v(1)]
  end function cross

  !> matrix = matrix + u v^T.
  pure subroutine add_outer(u, v, matrix)
    real(real64), intent(in) :: u(six), v(six)
    real(real64), intent(inout) :: matrix(six, six)
    integer(int32) :: c

    do c = 1, six
      matrix(:, c) = matrix(:, c) + u * v(c)
    end do
  end subroutine add_outer

  !> Solves the block-tridiagonal system in place by Cholesky; only lower triangles of the diagonal blocks are used.
  !> below(:, :, k) has rows of block k and columns of block k - 1.
  pure subroutine solve(from, to, diagonal, below, x, definite)
    integer(int32), intent(in) :: from, to
    real(real64), intent(inout) :: diagonal(twelve, twelve, from:to), below(twelve, twelve, from:to), x(twelve, from:to)
    logical, intent(out) :: definite
    integer(int32) :: i, j, k

    definite = .true.
    do i = from, to
      if (i > from) then
        do j = 1, twelve
          do k = 1, j - 1
            below(:, j, i) = below(:, j, i) - below(:, k, i) * diagonal(j, k, i - 1)
          end do
          below(:, j, i) = below(:, j, i) / diagonal(j, j, i - 1)
        end do
        do j = 1, twelve
          do k = 1, twelve
            diagonal(:, j, i) = diagonal(:, j, i) - below(:, k, i) * below(j, k, i)
          end do
        end do
        x(:, i) = x(:, i) - matmul(below(:, :, i), x(:, i - 1))
      end if
      do j = 1, twelve
        if (diagonal(j, j, i) <= 0) then
          definite = .false.
          return
        end if
        diagonal(j, j, i) = sqrt(diagonal(j, j, i))
        diagonal(j + 1:, j, i) = diagonal(j + 1:, j, i) / diagonal(j, j, i)
        do k = j + 1, twelve
          diagonal(k:, k, i) = diagonal(k:, k, i) - diagonal(k:, j, i) * diagonal(k, j, i)
        end do
        x(j, i) = x(j, i) / diagonal(j, j, i)
        x(j + 1:, i) = x(j + 1:, i) - diagonal(j + 1:, j, i) * x(j, i)
      end do
    end do
    do i = to, from, -1
      if (i < to) x(:, i) = x(:, i) - matmul(x(:, i + 1), below(:, :, i + 1))
      do j = twelve, 1, -1
        x(j, i) = (x(j, i) - dot_product(diagonal(j + 1:, j, i), x(j + 1:, i))) / diagonal(j, j, i)
      end do
    end do
  end subroutine solve

end module base_stacking
