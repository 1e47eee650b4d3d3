!> Configurational-bias regrowth of flexible chains.
!>
!> Regrowth after Siepmann & Frenkel (1992): a bead's trial positions are drawn from its own bond and angle, one is
!> chosen by its Boltzmann factor, and the products of their sums (Rosenbluth weights) decide on the whole chain. Trials
!> are weighed by pairs within a short cutoff only; the pairs beyond enter once, when the whole chain is judged (Vlugt
!> et al. 1998). Both steps keep detailed balance exactly.
module tail_regrowth
  use chain_energy, only: near_t, gather, near_energy, pair_energy, part_energy, energy_of_chain, bead_angle, n_terms, &
    electrostatic
  use chain_model, only: chains_t, chains_of, move_bead
  use iso_fortran_env, only: int32, int64, real64
  use omp_lib, only: omp_get_max_threads
  implicit none
  private
  public :: total_energy, regrow_chains

  real(real64), parameter :: pi = acos(-1.0_real64)
  real(real64), parameter :: impossible = 1.0e30_real64  !< kBT
  ! With more than one thread a window of trials is weighed at once, in any order; they are carried out in theirs. A trial
  ! near an earlier accepted one is weighed again. The result does not depend on the number of threads.
  integer(int32), parameter :: ahead_a_thread = 8, most_ahead = 128, worth_threads = 100  ! chains

  !> A chain grown anew, to be taken over or not, and the box in which all that it was weighed by lies.
  type :: trial_t
    logical :: weighed = .false., accepted = .false.
    integer(int32) :: start = 0   !< the first bead that moves
    real(real64) :: low(3) = 0, high(3) = 0, change(n_terms) = 0
    real(real64), allocatable :: new(:, :)   !< all beads of the chain
  end type trial_t

contains

  !> Energy of all chains where their beads were placed, term by term: bond, bend, tether, electrostatic, excluded volume.
  subroutine total_energy(handle, energy)
    integer(int64), intent(in) :: handle
    real(real64), intent(out) :: energy(5)         !< kBT
    type(chains_t), pointer :: chains
    integer(int32) :: c
    real(real64), allocatable :: of_chain(:, :)
    chains => chains_of(handle)
    allocate (of_chain(n_terms, size(chains%core)))
    !$omp parallel do schedule(dynamic, 16) if(size(chains%core) >= worth_threads)
    do c = 1, size(chains%core)
      of_chain(:, c) = energy_of_chain(chains, c)
    end do
    !$omp end parallel do
    energy = sum(of_chain, 2)
  end subroutine total_energy

  !> Regrow chain(m) from a random bead to its tip, for each m, from where the beads were placed.
  !>
  !> A chain of L beads takes 2 + L (8 n_trials - 3) numbers of `random`; the caller gives at least their sum.
  subroutine regrow_chains(handle, n_moves, n_random, n_trials, trial_cutoff, chain, random, energy, accepted)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n_moves, n_random
    integer(int32), intent(in) :: n_trials         !< positions tried for each bead
    real(real64), intent(in) :: trial_cutoff       !< nm, of the pairs that weigh trial positions
    integer(int32), intent(in) :: chain(n_moves)   !< from 1
    real(real64), intent(in) :: random(n_random)   !< in [0, 1)
    real(real64), intent(inout) :: energy(5)       !< kBT, of each term, before and after
    integer(int32), intent(out) :: accepted(n_moves)   !< 1 where the move was
    type(chains_t), pointer :: chains
    type(trial_t) :: ahead(0:most_ahead - 1)
    integer(int32) :: m, next, last, window, taken(n_moves + 1)
    chains => chains_of(handle)
    taken(1) = 0
    do m = 1, n_moves
      taken(m + 1) = taken(m) + 2 + (chains%first(chain(m) + 1) - chains%first(chain(m))) * (8 * n_trials - 3)
    end do
    accepted = 0
    window = 1
    if (size(chains%core) >= worth_threads) window = min(most_ahead, merge(1, ahead_a_thread * omp_get_max_threads(), &
      omp_get_max_threads() == 1))
    next = 1
    do while (next <= n_moves)
      last = min(n_moves, next + window - 1)
      !$omp parallel do schedule(dynamic) if(window > 1)
      do m = next, last
        if (ahead(mod(m, window))%weighed) cycle
        call regrow(chains, chain(m), n_trials, min(trial_cutoff, chains%cutoff), random(taken(m) + 1:taken(m + 1)), &
          ahead(mod(m, window)))
      end do
      !$omp end parallel do
      do while (next <= last)
        if (.not. ahead(mod(next, window))%weighed) exit
        associate (trial => ahead(mod(next, window)))
          if (trial%accepted) then
            do m = next + 1, last
              if (is_in_the_way(chains, chain(next), trial, ahead(mod(m, window)))) ahead(mod(m, window))%weighed = .false.
            end do
            accepted(next) = 1
            energy = energy + trial%change
            do m = trial%start, ubound(trial%new, 2)
              call move_bead(chains, m, trial%new(:, m))
            end do
          end if
          trial%weighed = .false.
        end associate
        next = next + 1
      end do
    end do
  end subroutine regrow_chains

  !> Does an accepted move of chain c begin or end where another trial has looked for partners?
  pure function is_in_the_way(self, c, moved, other) result(met)
    type(chains_t), intent(in) :: self
    integer(int32), intent(in) :: c
    type(trial_t), intent(in) :: moved, other
    logical :: met
    integer(int32) :: i
    met = lbound(moved%new, 2) == lbound(other%new, 2)   ! the same chain once more
    if (met) return
    do i = moved%start, self%first(c + 1) - 1
      met = all(self%position(:, i) >= other%low .and. self%position(:, i) <= other%high) &
        .or. all(moved%new(:, i) >= other%low .and. moved%new(:, i) <= other%high)
      if (met) return
    end do
  end function is_in_the_way

  !> One trial of regrowing a chain, weighed but not yet carried out.
  subroutine regrow(self, c, n_trials, trial_cutoff, random, trial)
    type(chains_t), intent(in) :: self
    integer(int32), intent(in) :: c, n_trials
    real(real64), intent(in) :: trial_cutoff, random(:)
    type(trial_t), intent(out) :: trial
    integer(int32) :: a, b, i, start, at, take
    real(real64) :: log_new, log_old, short_new, short_old
    real(real64) :: old(3, self%first(c):self%first(c + 1) - 1), new(3, self%first(c):self%first(c + 1) - 1)
    real(real64) :: old_energy(n_terms), new_energy(n_terms), exponent
    type(near_t) :: near
    a = self%first(c)
    b = self%first(c + 1) - 1
    start = a + min(int(random(1) * (b - a + 1), int32), b - a)
    old = self%position(:, a:b)
    new = old
    log_new = 0
    log_old = 0
    short_new = 0
    short_old = 0
    at = 2
    take = 8 * n_trials - 3
    do i = start, b
      call grow(self, near, c, i, a, new, n_trials, trial_cutoff, .true., random(at + 1:at + 4 * n_trials + 1), &
        log_new, short_new)
      call grow(self, near, c, i, a, old, n_trials, trial_cutoff, .false., random(at + 4 * n_trials + 2:at + take), &
        log_old, short_old)
      at = at + take
    end do
    old_energy = part_energy(self, near, c, start, a, old)
    new_energy = part_energy(self, near, c, start, a, new)
    exponent = log_new - log_old - (sum(new_energy(electrostatic:)) - short_new) &
      + (sum(old_energy(electrostatic:)) - short_old)
    trial%weighed = .true.
    trial%accepted = log(max(random(2), tiny(1.0_real64))) <= exponent
    trial%start = start
    trial%low = near%low
    trial%high = near%high
    trial%change = new_energy - old_energy
    allocate (trial%new(3, a:b), source=new)
  end subroutine regrow

  !> Rosenbluth factor of bead i: with `choose` one of n_trials positions becomes chain(:, i); else chain(:, i) is the
  !> first of the trials. `short` gains the energy of the one that stands.
  subroutine grow(self, near, c, i, a, chain, n_trials, cutoff, choose, random, log_weight, short)
    type(chains_t), intent(in) :: self
    integer(int32), intent(in) :: c, i, a, n_trials
    real(real64), intent(inout) :: chain(3, a:*)
    real(real64), intent(in) :: cutoff, random(:)
    logical, intent(in) :: choose
    real(real64), intent(inout) :: log_weight, short
    type(near_t), intent(inout) :: near
    integer(int32) :: t, j, at
    real(real64) :: position(3, n_trials), weight(n_trials), external(n_trials), factor(n_trials)
    real(real64) :: el, ex, el_sum, ex_sum, centre(3), reach, lowest, target
    at = 0
    do t = 1, n_trials
      if (t == 1 .and. .not. choose) then
        position(:, 1) = chain(:, i)
        call jacobian(self, i, a, chain, factor(1))
      else
        call draw(self, c, i, a, chain, random(at + 1:at + 4), position(:, t), factor(t))
        at = at + 4
      end if
    end do
    centre = sum(position, 2) / n_trials
    reach = 0
    do t = 1, n_trials
      reach = max(reach, norm2(position(:, t) - centre))
    end do
    call gather(self, c, i, centre, cutoff + reach, near)
    do t = 1, n_trials
      external(t) = impossible
      if (factor(t) <= 0) cycle
      call near_energy(self, near, position(:, t), self%charge(i), cutoff, el_sum, ex_sum)
      do j = a, i - 3
        call pair_energy(self, position(:, t), chain(:, j), i, j, cutoff, el, ex)
        el_sum = el_sum + el
        ex_sum = ex_sum + ex
      end do
      external(t) = el_sum + ex_sum
    end do
    lowest = minval(external)
    weight = factor * exp(-(external - lowest))
    if (.not. sum(weight) > 0) then
      log_weight = log_weight - impossible
      return
    end if
    log_weight = log_weight + log(sum(weight)) - lowest
    t = 1
    if (choose) then
      target = random(size(random)) * sum(weight)
      do t = 1, n_trials - 1
        target = target - weight(t)
        if (target < 0) exit
      end do
      chain(:, i) = position(:, t)
    end if
    short = short + external(t)
  end subroutine grow

  !> A position for bead i after those before it, and what turns the density it was drawn from into the Boltzmann
  !> density of its bond and angle (up to a constant); 0 where that is impossible.
  subroutine draw(self, c, i, a, chain, random, position, factor)
    type(chains_t), intent(in) :: self
    integer(int32), intent(in) :: c, i, a
    real(real64), intent(in) :: chain(3, a:*), random(4)
    real(real64), intent(out) :: position(3), factor
    real(real64) :: normal(4), length, theta, direction(3), along(3), side(3), up(3), phi
    normal(1:2) = normals(random(1), random(2))
    factor = 1
    if (i == a) then
      normal(3:4) = normals(random(3), random(4))
      position = self%tether_place(:, c) + normal(1:3) / sqrt(self%tether_k(c))
      return
    end if
    length = self%bond_length(i) + normal(1) / sqrt(self%bond_k(i))
    phi = 2 * pi * random(3)
    if (i == a + 1) then
      theta = acos(1 - 2 * random(4))
      along = [0, 0, 1]
    else
      theta = self%angle(i) + normal(2) / sqrt(self%angle_k(i))
      if (theta <= 0 .or. theta >= pi) factor = 0
      along = chain(:, i - 1) - chain(:, i - 2)
      along = along / norm2(along)
      factor = factor * sin(theta)
      theta = pi - theta
    end if
    if (length <= 0) factor = 0
    factor = factor * (length / self%bond_length(i))**2
    side = 0
    side(minloc(abs(along))) = 1
    side = side - dot_product(side, along) * along
    side = side / norm2(side)
    up = [along(2) * side(3) - along(3) * side(2), along(3) * side(1) - along(1) * side(3), &
      along(1) * side(2) - along(2) * side(1)]
    direction = cos(theta) * along + sin(theta) * (cos(phi) * side + sin(phi) * up)
    position = chain(:, i - 1) + length * direction
  end subroutine draw

  !> The same factor as `draw` gives, for the position that bead i has.
  pure subroutine jacobian(self, i, a, chain, factor)
    type(chains_t), intent(in) :: self
    integer(int32), intent(in) :: i, a
    real(real64), intent(in) :: chain(3, a:*)
    real(real64), intent(out) :: factor
    factor = 1
    if (i == a) return
    factor = (norm2(chain(:, i) - chain(:, i - 1)) / self%bond_length(i))**2
    if (i > a + 1) factor = factor * sin(bead_angle(chain(:, i - 2), chain(:, i - 1), chain(:, i)))
  end subroutine jacobian

  !> Two numbers of a standard normal distribution from two in [0, 1) (Box & Muller).
  pure function normals(u, v) result(pair)
    real(real64), intent(in) :: u, v
    real(real64) :: pair(2), r
    r = sqrt(-2 * log(1 - u))
    pair = [r * cos(2 * pi * v), r * sin(2 * pi * v)]
  end function normals

end module tail_regrowth
