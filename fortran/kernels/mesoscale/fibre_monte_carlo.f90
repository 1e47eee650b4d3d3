!> Metropolis Monte Carlo of a chromatin fibre: the interface that Python calls, and the moves.
!>
!> Every move is a rigid motion of a range of neighbours in the chain (one bead, one core, a crank, an end arm) or a
!> spin of one bead's frame about its segment. A circle has no end arms; its cranks begin and end anywhere. All random
!> numbers come in from the caller, eleven for each trial.
!>
!> With more than one thread a window of trials is weighed at once, each thread on a copy of the fibre; trials are then
!> carried out in order. A trial near an earlier accepted one is weighed again. The result does not depend on the number of
!> threads.
module fibre_monte_carlo
  use fibre_energy, only: range_energy, full_energy, twist_energy_at
  use fibre_floors, only: longest_segment
  use fibre_model, only: fibre_t, fibre_of, around, counted_from, first_segment, is_among, last_segment, own_reach, &
    refresh, segment_before, span, n_terms, twist, floor_, worth_threads
  use geometry, only: turn
  use iso_fortran_env, only: int32, int64, real64
  use near_pairs, only: near_t, range_pairs, remember_pairs, replace_pairs, add_pairs
  use omp_lib, only: omp_get_max_threads, omp_get_thread_num
  implicit none
  private
  public :: run_trials, total_energy

  integer(int32), parameter :: n_moves = 6, n_random = 11
  integer(int32), parameter :: bead_translation = 1, core_translation = 2, core_rotation = 3, crank = 4, end_pivot = 5, &
    bead_spin = 6
  real(real64), parameter :: pi = acos(-1.0_real64)
  integer(int32), parameter :: ahead_a_thread = 8, most_ahead = 128   !< trials
  integer(int32), parameter :: chain_reach = 4   !< particles along the chain that elastic terms reach, and one

  !> A move that was weighed, but not carried out.
  type :: trial_t
    logical :: weighed = .false., accepted = .false.
    integer(int32) :: first = 1, last = 0        !< the particles that move
    real(real64) :: change(n_terms) = 0
    real(real64), allocatable :: position(:, :), frame(:, :, :)   !< of the particles from first-1 to last+1 after it
    type(near_t), allocatable :: near(:)         !< pairs after it
    real(real64), allocatable :: place(:, :, :), reach(:)   !< where they were and are (3, 2, moved); how far they act
  end type trial_t

contains

  !> Make n_trials trials with the fibre as it was placed. With strict = 1 a move that would raise the floor energy is
  !> refused outright.
  subroutine run_trials(handle, n_trials, weight, step, longest, strict, random, energy, tried, accepted)
    integer(int64), intent(in) :: handle           !< of the fibre
    integer(int32), intent(in) :: n_trials
    real(real64), intent(in) :: weight(6)          !< cumulative probability of each kind of move
    real(real64), intent(in) :: step(6)            !< largest displacement of each kind of move, nm or radian
    integer(int32), intent(in) :: longest          !< particles that one crank or pivot moves at most
    integer(int32), intent(in) :: strict
    real(real64), intent(in) :: random(11, n_trials)   !< in [0, 1)
    real(real64), intent(inout) :: energy(8)       !< kBT, of each term, before and after
    integer(int32), intent(out) :: tried(6), accepted(6)   !< of each kind of move
    type(fibre_t), pointer :: self
    type(fibre_t), allocatable :: fibre(:)   !< for each thread
    type(near_t), allocatable :: near(:)
    type(trial_t) :: ahead(0:most_ahead - 1)
    integer(int32) :: trial, next, last, window, threads, move, moves(n_trials), k
    self => fibre_of(handle)
    threads = merge(1, omp_get_max_threads(), self%n < worth_threads)
    window = min(most_ahead, merge(1, ahead_a_thread * threads, threads == 1))
    call remember_pairs(self, near)
    allocate (fibre(0:threads - 1))
    do k = 0, threads - 1
      fibre(k) = self
    end do
    tried = 0
    accepted = 0
    do trial = 1, n_trials
      do move = 1, n_moves - 1
        if (random(1, trial) < weight(move)) exit
      end do
      moves(trial) = move
    end do
    next = 1
    do while (next <= n_trials)
      last = min(n_trials, next + window - 1)
      !$omp parallel do schedule(dynamic) num_threads(threads) if(threads > 1)
      do trial = next, last
        if (.not. ahead(mod(trial, window))%weighed) call weigh(fibre(omp_get_thread_num()), near, moves(trial), &
          random(:, trial), longest, strict /= 0, step(moves(trial)), ahead(mod(trial, window)))
      end do
      !$omp end parallel do
      do while (next <= last)
        if (.not. ahead(mod(next, window))%weighed) exit
        associate (now => ahead(mod(next, window)))
          tried(moves(next)) = tried(moves(next)) + 1
          if (now%accepted) then
            accepted(moves(next)) = accepted(moves(next)) + 1
            do trial = next + 1, last
              if (is_in_the_way(fibre(0), now, ahead(mod(trial, window)))) ahead(mod(trial, window))%weighed = .false.
            end do
            energy = energy + now%change
            do k = 0, threads - 1
              call put(fibre(k), now%first, now%last, now%position, now%frame)
            end do
            if (allocated(now%near)) call replace_pairs(fibre(0), near, now%first, now%last, now%near)
          end if
          now%weighed = .false.
        end associate
        next = next + 1
      end do
    end do
    self = fibre(0)
  end subroutine run_trials

  !> Energy of every term (kBT) in the conformation in which the fibre was placed, computed from scratch.
  subroutine total_energy(handle, energy)
    integer(int64), intent(in) :: handle
    real(real64), intent(out) :: energy(8)
    energy = full_energy(fibre_of(handle))
  end subroutine total_energy

  !> One trial: choose, move, weigh by Metropolis, undo.
  subroutine weigh(fibre, near, move, random, longest, strict, step, trial)
    type(fibre_t), intent(inout) :: fibre   !< in the end as it was
    type(near_t), intent(in) :: near(:)
    integer(int32), intent(in) :: move, longest
    real(real64), intent(in) :: random(n_random), step
    logical, intent(in) :: strict
    type(trial_t), intent(out) :: trial
    integer(int32) :: first, last, p, k
    real(real64) :: before(n_terms), after(n_terms), shift(3), rotation(3, 3), centre(3), axis(3), stretched
    real(real64), allocatable :: old_position(:, :), old_frame(:, :, :)
    trial%weighed = .true.
    shift = 0
    centre = 0
    rotation = reshape([1, 0, 0, 0, 1, 0, 0, 0, 1], [3, 3])
    select case (move)
    case (bead_translation)
      if (size(fibre%bead) == 0) return
      first = pick(random(2), fibre%bead)
      last = first
      shift = step * (2 * random(4:6) - 1)
    case (core_translation)
      if (size(fibre%core_particle) == 0) return
      first = pick(random(2), fibre%core_particle)
      last = first
      shift = step * (2 * random(4:6) - 1)
    case (core_rotation)
      if (size(fibre%core_particle) == 0) return
      first = pick(random(2), fibre%core_particle)
      last = first
      centre = fibre%position(:, first)
      rotation = turn(random_axis(random(7:8)), step * (2 * random(9) - 1))
    case (crank)
      ! Particles first..last turn about the line through the standing points on either side.
      if (fibre%is_circle) then
        first = min(fibre%n, 1 + int(random(2) * fibre%n, int32))
        last = first + int(random(3)**2 * longest, int32)
        if (last - first > fibre%n - 2) return
      else
        first = 2 + int(random(2) * (fibre%n - 2), int32)
        last = first + int(random(3)**2 * longest, int32)   ! more short ones than long ones
        if (first > fibre%n - 1 .or. last > fibre%n - 1) return
      end if
      centre = fibre%exit_point(:, around(fibre, first - 1))
      axis = fibre%entry_point(:, around(fibre, last + 1)) - centre
      if (norm2(axis) < 1.0e-6_real64) return
      rotation = turn(axis / norm2(axis), step * (2 * random(9) - 1))
    case (end_pivot)
      if (fibre%is_circle) return
      first = int(random(3) * min(longest, fibre%n - 1), int32) + 1
      if (random(2) < 0.5_real64) then
        last = first
        first = 1
        centre = fibre%entry_point(:, last + 1)
      else
        last = fibre%n
        first = fibre%n - first + 1
        centre = fibre%exit_point(:, first - 1)
      end if
      rotation = turn(random_axis(random(7:8)), step * (2 * random(9) - 1))
    case (bead_spin)
      if (size(fibre%bead) == 0) return
      call weigh_spin(fibre, pick(random(2), fibre%bead), step * (2 * random(9) - 1), random(11), trial)
      return
    end select

    before = range_energy(fibre, first, last)
    old_position = fibre%position(:, span(fibre, first, last))
    old_frame = fibre%frame(:, :, span(fibre, first, last))
    stretched = longest_beside(fibre, first, last)
    do k = first, last
      p = around(fibre, k)
      fibre%position(:, p) = matmul(rotation, fibre%position(:, p) - centre) + centre + shift
      fibre%frame(:, :, p) = orthonormal(matmul(rotation, fibre%frame(:, :, p)))
    end do
    call refresh(fibre, first, last)
    after = range_energy(fibre, first, last)
    trial%first = first
    trial%last = last
    stretched = max(stretched, longest_beside(fibre, first, last))
    call remember_places(trial, fibre, old_position(:, first - first_segment(fibre, first) + 1:), stretched)
    if (.not. (strict .and. after(floor_) > before(floor_)) &
      .and. longest_beside(fibre, first, last) < longest_segment) then
      ! Charges cost most: only for what the floors allow.
      allocate (trial%near(first:last))
      call range_pairs(fibre, first, last, trial%near)
      call add_pairs(fibre, trial%near, [(k - first + 1, k=first, last)], first, last, after)
      call add_pairs(fibre, near, [(around(fibre, k), k=first, last)], first, last, before)
      trial%change = after - before
      trial%accepted = sum(after) - sum(before) <= -log(max(random(11), tiny(1.0_real64)))
      trial%position = fibre%position(:, span(fibre, first, last))
      trial%frame = fibre%frame(:, :, span(fibre, first, last))
    end if
    call put(fibre, first, last, old_position, old_frame)
  end subroutine weigh

  !> Put the particles first..last and their neighbours there.
  pure subroutine put(fibre, first, last, position, frame)
    type(fibre_t), intent(inout) :: fibre
    integer(int32), intent(in) :: first, last
    real(real64), intent(in) :: position(:, :), frame(:, :, :)
    fibre%position(:, span(fibre, first, last)) = position
    fibre%frame(:, :, span(fibre, first, last)) = frame
    call refresh(fibre, first, last)
    fibre%frame(:, :, span(fibre, first, last)) = frame   ! to the last bit: refreshing rounds
  end subroutine put

  !> Length of the longest segment of the particles first..last.
  pure function longest_beside(fibre, first, last) result(length)
    type(fibre_t), intent(in) :: fibre
    integer(int32), intent(in) :: first, last
    real(real64) :: length
    integer(int32) :: k
    length = 0
    do k = first_segment(fibre, first), last_segment(fibre, last)
      length = max(length, fibre%length(around(fibre, k)))
    end do
  end function longest_beside

  !> Where particles are moved from and to, and how far they act on others: half of what two may be apart from each other.
  pure subroutine remember_places(trial, fibre, old, stretched)
    type(trial_t), intent(inout) :: trial
    type(fibre_t), intent(in) :: fibre
    real(real64), intent(in) :: old(:, :), stretched   !< positions before, the longest segment before or after
    integer(int32) :: p
    allocate (trial%place(3, 2, trial%first:trial%last), trial%reach(trial%first:trial%last))
    do p = trial%first, trial%last
      trial%place(:, 1, p) = old(:, p - trial%first + 1)
      trial%place(:, 2, p) = fibre%position(:, around(fibre, p))
      trial%reach(p) = own_reach(fibre, around(fibre, p)) + max(0.5_real64 * fibre%cutoff, stretched + fibre%dna_radius)
    end do
  end subroutine remember_places

  !> Can an accepted move have changed what another trial was weighed by?
  pure function is_in_the_way(fibre, moved, other) result(met)
    type(fibre_t), intent(in) :: fibre
    type(trial_t), intent(in) :: moved, other
    logical :: met
    integer(int32) :: k, p, q, i, j, first
    real(real64) :: d(3)
    first = other%first
    if (fibre%is_circle) first = counted_from(fibre, first, moved%first - fibre%n / 2)   ! the copy that is nearer
    met = moved%first - (first + other%last - other%first) <= chain_reach .and. first - moved%last <= chain_reach
    if (fibre%is_circle) met = met .or. first + fibre%n - moved%last <= chain_reach &
      .or. moved%first + fibre%n - (first + other%last - other%first) <= chain_reach
    if (met .or. .not. (allocated(moved%place) .and. allocated(other%place))) return
    do k = 1, size(fibre%contact, 2)
      met = any(is_among(fibre, fibre%contact(:, k), moved%first, moved%last)) &
        .and. any(is_among(fibre, fibre%contact(:, k), other%first, other%last))
      if (met) return
    end do
    if (size(fibre%well_partner) > 0) then
      do p = moved%first, moved%last
        k = around(fibre, p)
        associate (partner => fibre%well_partner(fibre%well_first(k):fibre%well_first(k + 1) - 1))
          met = any(is_among(fibre, partner, other%first, other%last))
        end associate
        if (met) return
      end do
    end if
    do p = moved%first, moved%last
      do q = other%first, other%last
        do i = 1, 2
          do j = 1, 2
            d = moved%place(:, i, p) - other%place(:, j, q)
            met = dot_product(d, d) < (moved%reach(p) + other%reach(q))**2
            if (met) return
          end do
        end do
      end do
    end do
  end function is_in_the_way

  !> Turn a bead's frame about its segment: only twist changes.
  subroutine weigh_spin(fibre, p, angle, random, trial)
    type(fibre_t), intent(inout) :: fibre   !< in the end as it was
    integer(int32), intent(in) :: p
    real(real64), intent(in) :: angle, random
    type(trial_t), intent(inout) :: trial
    real(real64) :: old(3, 3), difference
    if (p > fibre%n_segments) return
    trial%first = p
    trial%last = p
    old = fibre%frame(:, :, p)
    difference = -spin_energy()
    fibre%frame(:, 2, p) = cos(angle) * old(:, 2) + sin(angle) * old(:, 3)
    fibre%frame(:, 3, p) = cos(angle) * old(:, 3) - sin(angle) * old(:, 2)
    difference = difference + spin_energy()
    trial%change(twist) = difference
    trial%accepted = difference <= -log(max(random, tiny(1.0_real64)))
    trial%position = fibre%position(:, span(fibre, p, p))
    trial%frame = fibre%frame(:, :, span(fibre, p, p))
    fibre%frame(:, :, p) = old
  contains
    function spin_energy() result(value)
      real(real64) :: value
      integer(int32) :: s
      value = twist_energy_at(fibre, p)
      s = segment_before(fibre, p)
      if (s > 0) value = value + twist_energy_at(fibre, s)
    end function spin_energy
  end subroutine weigh_spin

  !> An item of a list, by a number in [0, 1).
  pure function pick(random, list) result(item)
    real(real64), intent(in) :: random
    integer(int32), intent(in) :: list(:)
    integer(int32) :: item
    item = list(min(size(list), 1 + int(random * size(list))))
  end function pick

  !> A direction evenly spread over the sphere, from two numbers in [0, 1).
  pure function random_axis(random) result(axis)
    real(real64), intent(in) :: random(2)
    real(real64) :: axis(3), z, rho
    z = 2 * random(1) - 1
    rho = sqrt(max(0.0_real64, 1 - z * z))
    axis = [rho * cos(2 * pi * random(2)), rho * sin(2 * pi * random(2)), z]
  end function random_axis

  !> The columns made orthonormal again, so that rounding errors of many rotations do not add up.
  pure function orthonormal(frame) result(f)
    real(real64), intent(in) :: frame(3, 3)
    real(real64) :: f(3, 3)
    f(:, 1) = frame(:, 1) / norm2(frame(:, 1))
    f(:, 2) = frame(:, 2) - dot_product(frame(:, 2), f(:, 1)) * f(:, 1)
    f(:, 2) = f(:, 2) / norm2(f(:, 2))
    f(1, 3) = f(2, 1) * f(3, 2) - f(3, 1) * f(2, 2)
    f(2, 3) = f(3, 1) * f(1, 2) - f(1, 1) * f(3, 2)
    f(3, 3) = f(1, 1) * f(2, 2) - f(2, 1) * f(1, 2)
  end function orthonormal

end module fibre_monte_carlo
