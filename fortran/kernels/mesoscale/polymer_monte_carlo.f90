!> Metropolis Monte Carlo of polymers of few beads: springs along the chain, which may be closed to a ring, an energy for
!> the contact of each pair of beads, and around them a soft confining sphere, or neighbours: the periodic images of the
!> chain in a cubic cell. Many walks are sampled side by side, each from its own random numbers.
!>
!> The cell is at least twice as wide as a contact reaches, so that of all images of a bead one at most meets another.
module polymer_monte_carlo
  use contact_wells, only: closeness
  use geometry, only: turn
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: sample_polymers, polymer_energy

  integer(int32), parameter :: translation = 1, crank = 2, pivot = 3
  real(real64), parameter :: moves(2) = [0.5_real64, 0.75_real64]   !< cumulative share of the first two kinds
  real(real64), parameter :: pi = acos(-1.0_real64)

contains

  !> Make `trials` trials in each walk, and keep the places after every `every` of them.
  subroutine sample_polymers(n, walks, trials, every, samples, spring, pair, well, sphere, cell, step, random, place, kept, &
    accepted)
    integer(int32), intent(in) :: n                !< beads
    integer(int32), intent(in) :: walks, trials, every
    integer(int32), intent(in) :: samples          !< trials / every
    real(real64), intent(in) :: spring(n)          !< kBT/nm^2: energy k/2 d^2; the last joins the last bead to the first
    real(real64), intent(in) :: pair(n, n)         !< kBT that the contact of two beads costs; symmetric
    real(real64), intent(in) :: well(2)            !< nm, flat part and reach of a contact
    real(real64), intent(in) :: sphere(2)          !< kBT/nm^2, nm: stiffness and radius
    real(real64), intent(in) :: cell(2)            !< nm, kBT: edge (0: none), and what the contact with an image costs
    real(real64), intent(in) :: step               !< nm, largest displacement of a bead
    real(real64), intent(in) :: random(7, trials, walks)   !< in [0, 1)
    real(real64), intent(inout) :: place(3, n, walks)      !< nm
    real(real64), intent(out) :: kept(3, n, samples, walks)
    integer(int32), intent(out) :: accepted(walks)
    integer(int32) :: walk, trial
    logical :: moved
    !$omp parallel do private(trial, moved) schedule(static)
    do walk = 1, walks
      accepted(walk) = 0
      do trial = 1, trials
        call try(spring, pair, well, sphere, cell, step, random(:, trial, walk), place(:, :, walk), moved)
        if (moved) accepted(walk) = accepted(walk) + 1
        if (mod(trial, every) == 0 .and. trial / every <= samples) kept(:, :, trial / every, walk) = place(:, :, walk)
      end do
    end do
    !$omp end parallel do
  end subroutine sample_polymers

  !> Energy (kBT) of a conformation.
  function polymer_energy(n, spring, pair, well, sphere, cell, place) result(energy)
    integer(int32), intent(in) :: n                !< beads
    real(real64), intent(in) :: spring(n), pair(n, n), well(2), sphere(2), cell(2)   !< as in `sample_polymers`
    real(real64), intent(in) :: place(3, n)        !< nm
    real(real64) :: energy
    integer(int32) :: i, j
    energy = 0.5_real64 * spring(n) * sum((place(:, 1) - place(:, n))**2)
    do i = 1, n
      energy = energy + outside(place(:, i), sphere)
      if (i < n) energy = energy + 0.5_real64 * spring(i) * sum((place(:, i + 1) - place(:, i))**2)
      do j = 1, i - 1
        energy = energy + pair(j, i) * closeness(norm2(place(:, i) - place(:, j)), well(1), well(2)) &
          + image_energy(place(:, i) - place(:, j), well, cell)
      end do
    end do
  end function polymer_energy

  !> One trial: a bead is shifted, an inner part turned about the line between its neighbours, or an end about its own.
  pure subroutine try(spring, pair, well, sphere, cell, step, random, place, moved)
    real(real64), intent(in) :: spring(:), pair(:, :), well(2), sphere(2), cell(2), step, random(7)
    real(real64), intent(inout) :: place(:, :)
    logical, intent(out) :: moved
    integer(int32) :: n, first, last, p, q, move
    real(real64) :: change, axis(3), centre(3), rotation(3, 3), new(3, size(place, 2)), before, after, reach2
    n = size(place, 2)
    moved = .false.
    move = 1 + count(random(1) >= moves)
    if (move == crank .and. n < 3) move = translation
    select case (move)
    case (translation)
      first = 1 + int(random(2) * n, int32)
      last = first
      new(:, first) = place(:, first) + step * (2 * random(4:6) - 1)
    case (crank)
      first = 2 + int(random(2) * (n - 2), int32)
      last = first + int(random(3) * (n - first), int32)
      centre = place(:, first - 1)
      axis = place(:, last + 1) - centre
      if (norm2(axis) < 1.0e-6_real64) return
      axis = axis / norm2(axis)
    case (pivot)
      p = 1 + int(random(2) * n, int32)
      first = merge(p, 1, random(3) < 0.5_real64)
      last = merge(n, p, random(3) < 0.5_real64)
      centre = place(:, p)
      axis(3) = 2 * random(4) - 1
      axis(1:2) = sqrt(max(0.0_real64, 1 - axis(3)**2)) * [cos(2 * pi * random(5)), sin(2 * pi * random(5))]
    end select
    if (move /= translation) then
      rotation = turn(axis, 2 * pi * random(6))
      do p = first, last
        new(:, p) = matmul(rotation, place(:, p) - centre) + centre
      end do
    end if
    change = 0
    if (move == translation) then
      if (first > 1) change = change + 0.5_real64 * spring(first - 1) &
        * (sum((new(:, first) - place(:, first - 1))**2) - sum((place(:, first) - place(:, first - 1))**2))
      if (last < n) change = change + 0.5_real64 * spring(last) &
        * (sum((place(:, last + 1) - new(:, last))**2) - sum((place(:, last + 1) - place(:, last))**2))
    end if
    if (last == n .and. first > 1) then   ! the spring that closes a ring
      change = change + 0.5_real64 * spring(n) &
        * (sum((new(:, n) - place(:, 1))**2) - sum((place(:, n) - place(:, 1))**2))
    else if (first == 1 .and. last < n) then
      change = change + 0.5_real64 * spring(n) &
        * (sum((new(:, 1) - place(:, n))**2) - sum((place(:, 1) - place(:, n))**2))
    end if
    reach2 = well(2)**2
    do p = first, last
      change = change + outside(new(:, p), sphere) - outside(place(:, p), sphere)
      do q = 1, n
        if (q >= first .and. q <= last) cycle
        before = sum((place(:, p) - place(:, q))**2)
        after = sum((new(:, p) - place(:, q))**2)
        if (before >= reach2 .and. after >= reach2) cycle
        change = change + pair(q, p) * (closeness(sqrt(after), well(1), well(2)) - closeness(sqrt(before), well(1), well(2)))
      end do
    end do
    if (cell(1) > 0) change = change + images_change(place, new, first, last, well, cell)
    moved = change <= -log(max(random(7), tiny(1.0_real64)))
    if (moved) place(:, first:last) = new(:, first:last)
  end subroutine try

  !> What the contacts with images change by (kBT) when the beads first..last move: also those among themselves, for a
  !> part that turns does not turn its images about the same point.
  pure function images_change(place, new, first, last, well, cell) result(change)
    real(real64), intent(in) :: place(:, :), new(:, :), well(2), cell(2)
    integer(int32), intent(in) :: first, last
    real(real64) :: change
    integer(int32) :: p, q
    change = 0
    do p = first, last
      do q = 1, size(place, 2)
        if (q >= first .and. q <= p) cycle
        if (q > p .and. q <= last) then
          change = change + image_energy(new(:, p) - new(:, q), well, cell) &
            - image_energy(place(:, p) - place(:, q), well, cell)
        else
          change = change + image_energy(new(:, p) - place(:, q), well, cell) &
            - image_energy(place(:, p) - place(:, q), well, cell)
        end if
      end do
    end do
  end function images_change

  !> Energy (kBT) of a bead and the nearest image of another, when that is not the other itself; d is between the two.
  pure function image_energy(d, well, cell) result(energy)
    real(real64), intent(in) :: d(3), well(2), cell(2)
    real(real64) :: energy, nearest(3), square
    integer(int32) :: shift(3)
    energy = 0
    if (cell(1) <= 0) return
    if (all(abs(d) < 0.5_real64 * cell(1))) return
    shift = int(d / cell(1) + sign(0.5_real64, d), int32)   ! faster than nint
    nearest = d - cell(1) * shift
    square = dot_product(nearest, nearest)
    if (square < well(2)**2) energy = cell(2) * closeness(sqrt(square), well(1), well(2))
  end function image_energy

  !> Energy (kBT) of a bead beyond the sphere.
  pure function outside(place, sphere) result(energy)
    real(real64), intent(in) :: place(3), sphere(2)
    real(real64) :: energy
    energy = 0
    if (sphere(1) > 0) energy = 0.5_real64 * sphere(1) * max(0.0_real64, norm2(place) - sphere(2))**2
  end function outside

end module polymer_monte_carlo
