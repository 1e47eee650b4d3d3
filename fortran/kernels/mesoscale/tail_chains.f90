!> Flexible chains of beads that hang on rigid nucleosome cores (histone tails, tails of linker histones): their energy,
!> and configurational-bias regrowth, in nm, kBT, elementary charges and radian. mesoscale/tails.py states the formulas.
!>
!> Beads of a chain are numbered from the core outward; the first is tethered to a point of its core. Everything else of
!> the fibre is a fixed point here: charge sites of cores, linker beads, globular domains of linker histones.
!>
!> Regrowth after Siepmann & Frenkel (1992): a bead's trial positions are drawn from its own bond and angle, one is
!> chosen by its Boltzmann factor, and the products of their sums (Rosenbluth weights) decide on the whole chain. Trials
!> are weighed by pairs within a short cutoff only; the pairs beyond enter once, when the whole chain is judged (Vlugt
!> et al. 1998). Both steps keep detailed balance exactly.
module tail_chains
  use iso_fortran_env, only: int32, real64
  use omp_lib, only: omp_get_max_threads
  implicit none
  private
  public :: chain_energy, regrow_chains

  integer(int32), parameter :: bond = 1, bend = 2, tether = 3, electrostatic = 4, excluded = 5, n_terms = 5
  real(real64), parameter :: pi = acos(-1.0_real64)
  real(real64), parameter :: margin = 20  ! nm around the fixed points; what lies beyond counts to the border's cells
  integer(int32), parameter :: most_cells = 2000000
  real(real64), parameter :: closest = 0.01_real64  ! nm: pairs nearer than this feel the energy of this distance
  real(real64), parameter :: impossible = 1.0e30_real64  ! kBT
  ! With more than one thread trials are weighed ahead of their turn, in any order, and carried out in theirs; one that
  ! an accepted one comes near to meanwhile is weighed once more. What comes out is what one thread makes of them.
  integer(int32), parameter :: ahead_a_thread = 8, most_ahead = 128, worth_threads = 100  ! chains

  type :: chains_t
    integer(int32) :: n_kinds = 0
    integer(int32), allocatable :: first(:), core(:), kind(:)
    real(real64), allocatable :: position(:, :), charge(:), anchor(:, :), tether_k(:)
    real(real64), allocatable :: bond_length(:), bond_k(:), angle(:), angle_k(:)
    real(real64), allocatable :: sigma(:, :), strength(:, :)
    real(real64) :: bjerrum = 0, kappa = 0, cutoff = 0
    ! Fixed points, sorted by cell; beads, as lists by cell.
    real(real64), allocatable :: point(:, :), point_charge(:)
    integer(int32), allocatable :: point_kind(:), point_core(:), cell_first(:)
    integer(int32), allocatable :: head(:), next(:), cell_of_bead(:), chain_of_bead(:)
    real(real64) :: lower(3) = 0, edge = 0
    integer(int32) :: cells(3) = 1
  end type chains_t

  !> What a bead can feel, gathered around a place; and the box around all places where anything was looked for so far.
  type :: near_t
    integer(int32) :: n = 0
    real(real64) :: low(3) = huge(1.0_real64), high(3) = -huge(1.0_real64)
    real(real64), allocatable :: x(:), y(:), z(:), charge(:), sigma2(:), strength(:), shift(:)
  end type near_t

  !> A chain grown anew, to be taken over or not, and the box in which all that it was weighed by lies.
  type :: trial_t
    logical :: weighed = .false., accepted = .false.
    integer(int32) :: start = 0   !< the first bead that moves
    real(real64) :: low(3) = 0, high(3) = 0, change(n_terms) = 0
    real(real64), allocatable :: new(:, :)   !< all beads of the chain
  end type trial_t

contains

  !> Energy of all chains, term by term: bond, bend, tether, electrostatic, excluded volume.
  subroutine chain_energy(n_points, n_beads, n_chains, n_kinds, point, point_charge, point_kind, point_core, bead, &
      charge, kind, first, core, anchor, tether_k, bond_length, bond_k, angle, angle_k, sigma, strength, scalar, energy)
    integer(int32), intent(in) :: n_points, n_beads, n_chains, n_kinds
    real(real64), intent(in) :: point(3, n_points), point_charge(n_points), bead(3, n_beads), charge(n_beads)
    integer(int32), intent(in) :: point_kind(n_points), point_core(n_points), kind(n_beads), first(n_chains + 1), &
      core(n_chains)
    real(real64), intent(in) :: anchor(3, n_chains), tether_k(n_chains), bond_length(n_beads), bond_k(n_beads), &
      angle(n_beads), angle_k(n_beads), sigma(n_kinds, n_kinds), strength(n_kinds, n_kinds), scalar(3)
    real(real64), intent(out) :: energy(5)
    type(chains_t) :: chains
    integer(int32) :: c
    real(real64) :: of_chain(n_terms, n_chains)
    call load(chains, point, point_charge, point_kind, point_core, bead, charge, kind, first, core, anchor, tether_k, &
      bond_length, bond_k, angle, angle_k, sigma, strength, scalar)
    !$omp parallel do schedule(dynamic, 16) if(n_chains >= worth_threads)
    do c = 1, n_chains
      of_chain(:, c) = energy_of_chain(chains, c)
    end do
    !$omp end parallel do
    energy = sum(of_chain, 2)
  end subroutine chain_energy

  !> Energy of a chain, its pairs with later chains only.
  function energy_of_chain(chains, c) result(energy)
    type(chains_t), intent(in) :: chains
    integer(int32), intent(in) :: c
    type(near_t) :: near
    integer(int32) :: i, j
    real(real64) :: energy(n_terms), el, ex
    energy = 0
    do i = chains%first(c), chains%first(c + 1) - 1
      energy = energy + bonded(chains, c, i, chains%position(:, i))
      call gather(chains, c, i, chains%position(:, i), chains%cutoff, near, from_bead=chains%first(c + 1))
      call near_energy(chains, near, chains%position(:, i), chains%charge(i), chains%cutoff, el, ex)
      energy(electrostatic) = energy(electrostatic) + el
      energy(excluded) = energy(excluded) + ex
      do j = chains%first(c), i - 3
        call pair_energy(chains, chains%position(:, i), chains%position(:, j), i, j, chains%cutoff, el, ex)
        energy(electrostatic) = energy(electrostatic) + el
        energy(excluded) = energy(excluded) + ex
      end do
    end do
  end function energy_of_chain

  !> Regrow chain(m) from a random bead to its tip, for each m; updates `bead` and `energy`.
  !>
  !> A chain of L beads takes 2 + L (8 n_trials - 3) numbers of `random`; the caller gives at least their sum.
  subroutine regrow_chains(n_points, n_beads, n_chains, n_kinds, n_moves, n_random, n_trials, trial_cutoff, chain, &
      random, point, point_charge, point_kind, point_core, bead, charge, kind, first, core, anchor, tether_k, &
      bond_length, bond_k, angle, angle_k, sigma, strength, scalar, energy, accepted)
    integer(int32), intent(in) :: n_points, n_beads, n_chains, n_kinds, n_moves, n_random, n_trials
    real(real64), intent(in) :: trial_cutoff
    integer(int32), intent(in) :: chain(n_moves)
    real(real64), intent(in) :: random(n_random)
    real(real64), intent(in) :: point(3, n_points), point_charge(n_points), charge(n_beads)
    real(real64), intent(inout) :: bead(3, n_beads)
    integer(int32), intent(in) :: point_kind(n_points), point_core(n_points), kind(n_beads), first(n_chains + 1), &
      core(n_chains)
    real(real64), intent(in) :: anchor(3, n_chains), tether_k(n_chains), bond_length(n_beads), bond_k(n_beads), &
      angle(n_beads), angle_k(n_beads), sigma(n_kinds, n_kinds), strength(n_kinds, n_kinds), scalar(3)
    real(real64), intent(inout) :: energy(5)
    integer(int32), intent(out) :: accepted(n_moves)
    type(chains_t) :: chains
    type(trial_t) :: ahead(0:most_ahead - 1)
    integer(int32) :: m, next, last, window, taken(n_moves + 1)
    call load(chains, point, point_charge, point_kind, point_core, bead, charge, kind, first, core, anchor, tether_k, &
      bond_length, bond_k, angle, angle_k, sigma, strength, scalar)
    taken(1) = 0
    do m = 1, n_moves
      taken(m + 1) = taken(m) + 2 + (first(chain(m) + 1) - first(chain(m))) * (8 * n_trials - 3)
    end do
    accepted = 0
    window = 1
    if (n_chains >= worth_threads) window = min(most_ahead, merge(1, ahead_a_thread * omp_get_max_threads(), &
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
              call place(chains, m, trial%new(:, m))
            end do
          end if
          trial%weighed = .false.
        end associate
        next = next + 1
      end do
    end do
    bead = chains%position
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
      position = self%anchor(:, c) + normal(1:3) / sqrt(self%tether_k(c))
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

  !> Energy of the beads from `start` on: bonds, angles and tether, and all their pairs.
  function part_energy(self, near, c, start, a, chain) result(energy)
    type(chains_t), intent(in) :: self
    integer(int32), intent(in) :: c, start, a
    real(real64), intent(in) :: chain(:, a:)
    type(near_t), intent(inout) :: near
    real(real64) :: energy(n_terms), el, ex
    integer(int32) :: i, j
    energy = 0
    do i = start, ubound(chain, 2)
      energy = energy + bonded_in(self, c, i, a, chain)
      call gather(self, c, i, chain(:, i), self%cutoff, near)
      call near_energy(self, near, chain(:, i), self%charge(i), self%cutoff, el, ex)
      energy(electrostatic) = energy(electrostatic) + el
      energy(excluded) = energy(excluded) + ex
      do j = a, i - 3
        call pair_energy(self, chain(:, i), chain(:, j), i, j, self%cutoff, el, ex)
        energy(electrostatic) = energy(electrostatic) + el
        energy(excluded) = energy(excluded) + ex
      end do
    end do
  end function part_energy

  pure function bonded(self, c, i, position) result(energy)
    type(chains_t), intent(in) :: self
    integer(int32), intent(in) :: c, i
    real(real64), intent(in) :: position(3)
    real(real64) :: energy(n_terms), chain(3, self%first(c):i)
    chain(:, :i - 1) = self%position(:, self%first(c):i - 1)
    chain(:, i) = position
    energy = bonded_in(self, c, i, self%first(c), chain)
  end function bonded

  !> Tether of a first bead, else the bond to the bead before and the angle with the two before.
  pure function bonded_in(self, c, i, a, chain) result(energy)
    type(chains_t), intent(in) :: self
    integer(int32), intent(in) :: c, i, a
    real(real64), intent(in) :: chain(3, a:i)
    real(real64) :: energy(n_terms)
    energy = 0
    if (i == a) then
      energy(tether) = 0.5_real64 * self%tether_k(c) * sum((chain(:, i) - self%anchor(:, c))**2)
      return
    end if
    energy(bond) = 0.5_real64 * self%bond_k(i) * (norm2(chain(:, i) - chain(:, i - 1)) - self%bond_length(i))**2
    if (i > a + 1) energy(bend) = 0.5_real64 * self%angle_k(i) &
      * (bead_angle(chain(:, i - 2), chain(:, i - 1), chain(:, i)) - self%angle(i))**2
  end function bonded_in

  pure function bead_angle(p, q, r) result(theta)
    real(real64), intent(in) :: p(3), q(3), r(3)
    real(real64) :: theta, u(3), v(3), w(3)
    u = p - q
    v = r - q
    w = [u(2) * v(3) - u(3) * v(2), u(3) * v(1) - u(1) * v(3), u(1) * v(2) - u(2) * v(1)]
    theta = atan2(norm2(w), dot_product(u, v))
  end function bead_angle

  !> Everything within `radius` of a place that bead i feels: fixed points (not those of the own core for a first bead)
  !> and beads of other chains, from number `from_bead` on.
  subroutine gather(self, c, i, centre, radius, near, from_bead)
    type(chains_t), intent(in) :: self
    integer(int32), intent(in) :: c, i
    real(real64), intent(in) :: centre(3), radius
    type(near_t), intent(inout) :: near
    integer(int32), intent(in), optional :: from_bead
    integer(int32) :: low(3), high(3), ix, iy, iz, cell, p, lowest, own_core
    near%n = 0
    near%low = min(near%low, centre - radius)
    near%high = max(near%high, centre + radius)
    lowest = 1
    if (present(from_bead)) lowest = from_bead
    own_core = -2  ! none: linker beads have -1
    if (i == self%first(c)) own_core = self%core(c)
    low = cell_index(self, centre - radius)
    high = cell_index(self, centre + radius)
    do iz = low(3), high(3)
      do iy = low(2), high(2)
        do ix = low(1), high(1)
          cell = cell_number(self, [ix, iy, iz])
          do p = self%cell_first(cell), self%cell_first(cell + 1) - 1
            if (self%point_core(p) == own_core) cycle
            if (sum((self%point(:, p) - centre)**2) >= radius**2) cycle
            call append(self%point(:, p), self%point_charge(p), self%point_kind(p))
          end do
          p = self%head(cell)
          do while (p /= 0)
            if (self%chain_of_bead(p) /= c .and. p >= lowest) then
              if (sum((self%position(:, p) - centre)**2) < radius**2) &
                call append(self%position(:, p), self%charge(p), self%kind(p))
            end if
            p = self%next(p)
          end do
        end do
      end do
    end do
  contains
    subroutine append(position, charge, kind)
      real(real64), intent(in) :: position(3), charge
      integer(int32), intent(in) :: kind
      real(real64) :: s6
      if (.not. allocated(near%x)) call enlarge(near)
      if (near%n == size(near%x)) call enlarge(near)
      near%n = near%n + 1
      near%x(near%n) = position(1)
      near%y(near%n) = position(2)
      near%z(near%n) = position(3)
      near%charge(near%n) = charge
      near%sigma2(near%n) = self%sigma(kind, self%kind(i))**2
      near%strength(near%n) = self%strength(kind, self%kind(i))
      s6 = (self%sigma(kind, self%kind(i)) / self%cutoff)**6
      near%shift(near%n) = s6 * (s6 - 1)
    end subroutine append
  end subroutine gather

  !> Make room for twice as many neighbours.
  pure subroutine enlarge(near)
    type(near_t), intent(inout) :: near
    integer(int32) :: room
    room = 512
    if (allocated(near%x)) room = 2 * size(near%x)
    call resize(near%x, room)
    call resize(near%y, room)
    call resize(near%z, room)
    call resize(near%charge, room)
    call resize(near%sigma2, room)
    call resize(near%strength, room)
    call resize(near%shift, room)
  end subroutine enlarge

  pure subroutine resize(array, room)
    real(real64), allocatable, intent(inout) :: array(:)
    integer(int32), intent(in) :: room
    real(real64) :: larger(room)
    larger = 0
    if (allocated(array)) larger(:size(array)) = array
    array = larger
  end subroutine resize

  !> Energy of a charge with what was gathered, pairs beyond `cutoff` left out. Both potentials are shifted to zero at
  !> the model's cutoff.
  subroutine near_energy(self, near, position, charge, cutoff, el, ex)
    type(chains_t), intent(in) :: self
    type(near_t), intent(in) :: near
    real(real64), intent(in) :: position(3), charge, cutoff
    real(real64), intent(out) :: el, ex
    real(real64) :: r2, r, s6, inside, cut2, el_shift
    integer(int32) :: i
    el = 0
    ex = 0
    cut2 = cutoff**2
    el_shift = exp(-self%kappa * self%cutoff) / self%cutoff
    !$omp simd reduction(+:el, ex) private(r2, r, s6, inside)
    do i = 1, near%n
      r2 = (position(1) - near%x(i))**2 + (position(2) - near%y(i))**2 + (position(3) - near%z(i))**2
      inside = merge(1.0_real64, 0.0_real64, r2 < cut2)
      r2 = min(max(r2, closest**2), cut2)
      r = sqrt(r2)
      el = el + inside * near%charge(i) * (exp(-self%kappa * r) / r - el_shift)
      s6 = (near%sigma2(i) / r2)**3
      ex = ex + inside * near%strength(i) * (s6 * (s6 - 1) - near%shift(i))
    end do
    el = el * self%bjerrum * charge
  end subroutine near_energy

  !> Two beads of the same chain.
  pure subroutine pair_energy(self, x, y, i, j, cutoff, el, ex)
    type(chains_t), intent(in) :: self
    real(real64), intent(in) :: x(3), y(3), cutoff
    integer(int32), intent(in) :: i, j
    real(real64), intent(out) :: el, ex
    real(real64) :: r, s6, s6_cut, sigma
    el = 0
    ex = 0
    r = max(norm2(x - y), closest)
    if (r >= cutoff) return
    el = self%bjerrum * self%charge(i) * self%charge(j) &
      * (exp(-self%kappa * r) / r - exp(-self%kappa * self%cutoff) / self%cutoff)
    sigma = self%sigma(self%kind(i), self%kind(j))
    s6 = (sigma / r)**6
    s6_cut = (sigma / self%cutoff)**6
    ex = self%strength(self%kind(i), self%kind(j)) * (s6 * (s6 - 1) - s6_cut * (s6_cut - 1))
  end subroutine pair_energy

  !> Two numbers of a standard normal distribution from two in [0, 1) (Box & Muller).
  pure function normals(u, v) result(pair)
    real(real64), intent(in) :: u, v
    real(real64) :: pair(2), r
    r = sqrt(-2 * log(1 - u))
    pair = [r * cos(2 * pi * v), r * sin(2 * pi * v)]
  end function normals

  pure function cell_index(self, position) result(index)
    type(chains_t), intent(in) :: self
    real(real64), intent(in) :: position(3)
    integer(int32) :: index(3)
    index = int(min(max((position - self%lower) / self%edge, 0.0_real64), real(self%cells - 1, real64)), int32)
  end function cell_index

  pure function cell_number(self, index) result(number)
    type(chains_t), intent(in) :: self
    integer(int32), intent(in) :: index(3)
    integer(int32) :: number
    number = 1 + index(1) + self%cells(1) * (index(2) + self%cells(2) * index(3))
  end function cell_number

  !> Move a bead and its place in the lists.
  pure subroutine place(self, i, position)
    type(chains_t), intent(inout) :: self
    integer(int32), intent(in) :: i
    real(real64), intent(in) :: position(3)
    integer(int32) :: cell, p
    self%position(:, i) = position
    cell = cell_number(self, cell_index(self, position))
    if (cell == self%cell_of_bead(i)) return
    p = self%head(self%cell_of_bead(i))
    if (p == i) then
      self%head(self%cell_of_bead(i)) = self%next(i)
    else
      do while (self%next(p) /= i)
        p = self%next(p)
      end do
      self%next(p) = self%next(i)
    end if
    self%next(i) = self%head(cell)
    self%head(cell) = i
    self%cell_of_bead(i) = cell
  end subroutine place

  subroutine load(self, point, point_charge, point_kind, point_core, bead, charge, kind, first, core, anchor, &
      tether_k, bond_length, bond_k, angle, angle_k, sigma, strength, scalar)
    type(chains_t), intent(out) :: self
    real(real64), intent(in) :: point(:, :), point_charge(:), bead(:, :), charge(:), anchor(:, :), tether_k(:), &
      bond_length(:), bond_k(:), angle(:), angle_k(:), sigma(:, :), strength(:, :), scalar(3)
    integer(int32), intent(in) :: point_kind(:), point_core(:), kind(:), first(:), core(:)
    integer(int32) :: p, c, cell, n_cells
    integer(int32), allocatable :: cell_of_point(:), cursor(:)
    real(real64) :: extent(3)
    self%first = first
    self%core = core
    self%kind = kind
    self%position = bead
    self%charge = charge
    self%anchor = anchor
    self%tether_k = tether_k
    self%bond_length = bond_length
    self%bond_k = bond_k
    self%angle = angle
    self%angle_k = angle_k
    self%sigma = sigma
    self%strength = strength
    self%bjerrum = scalar(1)
    self%kappa = scalar(2)
    self%cutoff = scalar(3)

    self%lower = minval(point, 2) - margin
    extent = maxval(point, 2) + margin - self%lower
    self%edge = max(self%cutoff / 3, (product(extent) / most_cells)**(1.0_real64 / 3))
    self%cells = max(1, int(extent / self%edge, int32))
    n_cells = product(self%cells)
    allocate (self%cell_first(n_cells + 1), source=0_int32)
    allocate (cell_of_point(size(point, 2)))
    do p = 1, size(point, 2)
      cell_of_point(p) = cell_number(self, cell_index(self, point(:, p)))
      self%cell_first(cell_of_point(p) + 1) = self%cell_first(cell_of_point(p) + 1) + 1
    end do
    self%cell_first(1) = 1
    do cell = 1, n_cells
      self%cell_first(cell + 1) = self%cell_first(cell) + self%cell_first(cell + 1)
    end do
    cursor = self%cell_first
    allocate (self%point(3, size(point, 2)), self%point_charge(size(point, 2)))
    allocate (self%point_kind(size(point, 2)), self%point_core(size(point, 2)))
    do p = 1, size(point, 2)
      cell = cell_of_point(p)
      self%point(:, cursor(cell)) = point(:, p)
      self%point_charge(cursor(cell)) = point_charge(p)
      self%point_kind(cursor(cell)) = point_kind(p)
      self%point_core(cursor(cell)) = point_core(p)
      cursor(cell) = cursor(cell) + 1
    end do

    allocate (self%head(n_cells), source=0_int32)
    allocate (self%next(size(bead, 2)), self%cell_of_bead(size(bead, 2)), self%chain_of_bead(size(bead, 2)), &
      source=0_int32)
    do c = 1, size(first) - 1
      self%chain_of_bead(first(c):first(c + 1) - 1) = c
    end do
    do p = 1, size(bead, 2)
      cell = cell_number(self, cell_index(self, bead(:, p)))
      self%next(p) = self%head(cell)
      self%head(cell) = p
      self%cell_of_bead(p) = cell
    end do
  end subroutine load

end module tail_chains
