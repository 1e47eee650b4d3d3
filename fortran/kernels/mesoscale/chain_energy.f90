!> Energy of flexible chains in the field of a fibre that stands still.
module chain_energy
  use chain_model, only: chains_t, cell_index, cell_number
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: near_t, gather, near_energy, pair_energy, part_energy, energy_of_chain, bead_angle
  public :: n_terms, electrostatic

  integer(int32), parameter :: bond = 1, bend = 2, tether = 3, electrostatic = 4, excluded = 5, n_terms = 5
  real(real64), parameter :: closest = 0.01_real64  !< nm: pairs nearer than this feel the energy of this distance

  !> What a bead can feel, gathered around a place; and the box around all places where anything was looked for so far.
  type :: near_t
    integer(int32) :: n = 0
    real(real64) :: low(3) = huge(1.0_real64), high(3) = -huge(1.0_real64)
    real(real64), allocatable :: x(:), y(:), z(:), charge(:), sigma2(:), strength(:), shift(:)
  end type near_t

contains

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

  !> Bonded terms of bead i at a position, after the beads before it.
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
      energy(tether) = 0.5_real64 * self%tether_k(c) * sum((chain(:, i) - self%tether_place(:, c))**2)
      return
    end if
    energy(bond) = 0.5_real64 * self%bond_k(i) * (norm2(chain(:, i) - chain(:, i - 1)) - self%bond_length(i))**2
    if (i > a + 1) energy(bend) = 0.5_real64 * self%angle_k(i) &
      * (bead_angle(chain(:, i - 2), chain(:, i - 1), chain(:, i)) - self%angle(i))**2
  end function bonded_in

  !> The angle at q, radian.
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
    own_core = -1  ! none: linker beads have 0
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

  !> The array with its contents in more room.
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

end module chain_energy
