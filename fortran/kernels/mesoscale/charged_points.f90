!> Everything small that is charged while a fibre moves with its flexible chains: beads of chains, points of heads of linker
!> histones, beads of linkers; and the forces of their charges, on each other and in the fields of cores.
module charged_points
  use body_motion, only: push_core
  use chain_model, only: chains_t
  use core_field, only: field_slope_at, n_parts
  use fibre_grid, only: grid_t, make_grid, points_near
  use fibre_model, only: fibre_t, are_neighbours, dna, core_site, bead_bead, bead_site, site_site, n_kinds, worth_threads
  use floor_pairs, only: skin, n_shares
  use growing_list, only: append
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: points_t, make_points, add_charges

  integer(int32), parameter :: head = 4               !< kind of the points of a linker histone's head

  !> One share of the work on charges: every n_shares-th point and core with its partners.
  type :: share_t
    ! Pairs of points, and of points and cores, that may come within the cutoff before the lists are made again.
    integer(int32) :: pairs = 0, meetings = 0
    integer(int32), allocatable :: pair(:, :), meeting(:, :)
    real(real64), allocatable :: force(:, :), on_fibre(:, :)   !< on points (3, n), on freedoms of the fibre
    real(real64) :: energy = 0
  end type share_t

  !> Everything small that is charged: beads of chains, points of heads, beads of linkers, in this order.
  type :: points_t
    integer(int32) :: n_tail = 0, n_head = 0, n = 0
    real(real64), allocatable :: position(:, :), charge(:), force(:, :), head_site(:, :)
    integer(int32), allocatable :: kind(:), core(:)      !< core: that which carries it, 0 for linkers
    integer(int32), allocatable :: particle(:)           !< of a linker's bead
    real(real64) :: sigma2(n_kinds, n_kinds) = 0, strength(n_kinds, n_kinds) = 0   !< nm^2, kBT
    real(real64) :: closest = 0   !< of sigma: nearer, charges do not act and excluded volume pushes no harder
    type(share_t) :: share(n_shares)
    real(real64), allocatable :: listed(:, :), listed_core(:, :)   !< where points and cores were when pairs were listed
  end type points_t

contains

  !> The points of a fibre and its chains; nearer than `closest` of sigma charges do not act, and excluded volume pushes no
  !> harder.
  subroutine make_points(self, fibre, chains, closest)
    type(points_t), intent(out) :: self
    type(fibre_t), intent(in) :: fibre
    type(chains_t), intent(in) :: chains
    real(real64), intent(in) :: closest
    integer(int32) :: k, at, of_head
    of_head = size(chains%head_charge)
    self%closest = closest
    self%head_site = chains%head_site
    self%n_tail = size(chains%charge)
    self%n_head = size(chains%head_core) * of_head
    self%n = self%n_tail + self%n_head + size(fibre%bead)
    allocate (self%position(3, self%n), self%force(3, self%n), self%charge(self%n), source=0.0_real64)
    allocate (self%kind(self%n), self%core(self%n), self%particle(self%n), source=0)
    self%charge(:self%n_tail) = chains%charge
    self%kind(:self%n_tail) = chains%kind
    self%core(:self%n_tail) = chains%core(chains%chain_of_bead)
    at = self%n_tail
    do k = 1, size(chains%head_core)
      self%charge(at + 1:at + of_head) = chains%head_charge
      self%kind(at + 1:at + of_head) = head
      self%core(at + 1:at + of_head) = chains%head_core(k)
      at = at + of_head
    end do
    self%charge(at + 1:) = fibre%charge(fibre%bead)
    self%kind(at + 1:) = dna
    self%particle(at + 1:) = fibre%bead
    self%sigma2 = chains%sigma**2
    self%strength = chains%strength
    self%sigma2(dna, dna) = fibre%sigma(bead_bead)**2
    self%strength(dna, dna) = fibre%excluded_k
    self%sigma2(dna, core_site) = fibre%sigma(bead_site)**2
    self%strength(dna, core_site) = fibre%excluded_k
    self%sigma2(core_site, core_site) = fibre%sigma(site_site)**2
    self%strength(core_site, core_site) = fibre%excluded_k
  end subroutine make_points

  !> Electrostatics and excluded volume, `scale` times: forces on the fibre (7, n+1) and on the beads of chains (3, beads).
  subroutine add_charges(self, fibre, chains, scale, force, bead_force, energy)
    type(points_t), intent(inout) :: self
    type(fibre_t), intent(in) :: fibre
    type(chains_t), intent(in) :: chains
    real(real64), intent(in) :: scale
    real(real64), intent(inout) :: force(:, :), bead_force(:, :), energy
    call place_points(self, fibre, chains)
    call list_points(fibre, chains, self)
    call sum_shares(fibre, self, scale, force, energy)
    call hand_over(fibre, self, scale, force, bead_force)
  end subroutine add_charges

  !> Where the points are now.
  subroutine place_points(self, fibre, chains)
    type(points_t), intent(inout) :: self
    type(fibre_t), intent(in) :: fibre
    type(chains_t), intent(in) :: chains
    integer(int32) :: k, i, p, at
    self%position(:, :self%n_tail) = chains%position
    at = self%n_tail
    do k = 1, self%n_head / max(1, size(self%head_site, 2))
      p = fibre%core_particle(self%core(at + 1))
      do i = 1, size(self%head_site, 2)
        self%position(:, at + i) = fibre%position(:, p) + matmul(fibre%frame(:, :, p), self%head_site(:, i))
      end do
      at = at + size(self%head_site, 2)
    end do
    self%position(:, at + 1:) = fibre%position(:, fibre%bead)
  end subroutine place_points

  !> List the pairs of points, and of points and cores, within the cutoff and `skin`, where anything moved half of that.
  subroutine list_points(fibre, chains, self)
    type(fibre_t), intent(in) :: fibre
    type(chains_t), intent(in) :: chains
    type(points_t), intent(inout) :: self
    type(grid_t) :: grid, core_grid
    integer(int32) :: b
    real(real64) :: reach
    if (allocated(self%listed)) then
      if (all(sum((self%position - self%listed)**2, 1) < (0.5_real64 * skin)**2) .and. &
        all(sum((fibre%position(:, fibre%core_particle) - self%listed_core)**2, 1) < (0.5_real64 * skin)**2)) return
    end if
    self%listed = self%position
    self%listed_core = fibre%position(:, fibre%core_particle)
    reach = fibre%cutoff + skin
    call make_grid(grid, self%position, 0.5_real64 * reach)
    call make_grid(core_grid, self%listed_core, 0.5_real64 * reach)
    !$omp parallel do schedule(dynamic) if(fibre%n >= worth_threads)
    do b = 1, n_shares
      call list_share(fibre, chains, self, grid, core_grid, b, self%share(b))
    end do
    !$omp end parallel do
  end subroutine list_points

  !> The pairs of every n_shares-th point, from number `b` on, with those before it and with cores.
  subroutine list_share(fibre, chains, self, grid, core_grid, b, share)
    type(fibre_t), intent(in) :: fibre
    type(chains_t), intent(in) :: chains
    type(points_t), intent(in) :: self
    type(grid_t), intent(in) :: grid, core_grid
    integer(int32), intent(in) :: b
    type(share_t), intent(inout) :: share
    integer(int32) :: i, j, k, c, count, found(max(self%n, size(fibre%core_particle)))
    real(real64) :: d(3), reach
    reach = fibre%cutoff + skin
    if (.not. allocated(share%pair)) allocate (share%pair(2, 1024), share%meeting(2, 1024))
    share%pairs = 0
    share%meetings = 0
    do i = b, self%n, n_shares
      call points_near(grid, self%position(:, i), reach, found, count)
      do k = 1, count
        j = found(k)
        if (j >= i) cycle
        d = self%position(:, i) - self%position(:, j)
        if (dot_product(d, d) >= reach**2) cycle
        if (.not. left_out(fibre, chains, self, j, i)) call append(share%pair, share%pairs, [j, i])
      end do
      call points_near(core_grid, self%position(:, i), reach + fibre%site_reach, found, count)
      do k = 1, count
        c = found(k)
        if (self%core(i) == c) then
          if (i > self%n_tail) cycle
          if (chains%first(chains%chain_of_bead(i)) == i) cycle
        else if (self%core(i) == 0) then
          if (are_neighbours(fibre, fibre%core_particle(c), self%particle(i))) cycle
        end if
        d = self%position(:, i) - self%listed_core(:, c)
        if (dot_product(d, d) < (reach + fibre%site_reach)**2) call append(share%meeting, share%meetings, [i, c])
      end do
    end do
  end subroutine list_share

  !> Pairs that have no energy: neighbours in a chain or in the fibre, and what one core holds in place. j < i.
  pure function left_out(fibre, chains, self, j, i) result(out)
    type(fibre_t), intent(in) :: fibre
    type(chains_t), intent(in) :: chains
    type(points_t), intent(in) :: self
    integer(int32), intent(in) :: j, i
    logical :: out
    out = .false.
    if (i <= self%n_tail) then
      out = i - j <= 2 .and. chains%chain_of_bead(i) == chains%chain_of_bead(j)
    else if (i <= self%n_tail + self%n_head) then
      if (self%core(i) /= self%core(j)) return
      out = j > self%n_tail
      if (.not. out) out = chains%first(chains%chain_of_bead(j)) == j
    else if (j > self%n_tail + self%n_head) then
      out = are_neighbours(fibre, self%particle(i), self%particle(j))
    end if
  end function left_out

  !> Forces on points, and `scale` times those on cores.
  subroutine sum_shares(fibre, self, scale, force, energy)
    type(fibre_t), intent(in) :: fibre
    type(points_t), intent(inout) :: self
    real(real64), intent(in) :: scale
    real(real64), intent(inout) :: force(:, :), energy
    type(grid_t) :: grid
    integer(int32) :: b, i, p
    call make_grid(grid, fibre%position(:, fibre%core_particle), 0.5_real64 * (fibre%cutoff + fibre%site_reach))
    !$omp parallel if(fibre%n >= worth_threads)
    !$omp do schedule(dynamic)
    do b = 1, n_shares
      associate (share => self%share(b))
        if (.not. allocated(share%force)) allocate (share%force(3, self%n), share%on_fibre(7, fibre%n + 1))
        share%force = 0
        share%on_fibre = 0
        share%energy = 0
        call add_point_pairs(fibre, self, share)
        call add_meetings(fibre, self, share)
        call add_core_pairs(fibre, self, grid, b, share)
      end associate
    end do
    !$omp end do
    !$omp do schedule(static)
    do i = 1, self%n
      self%force(:, i) = 0
      do b = 1, n_shares
        self%force(:, i) = self%force(:, i) + self%share(b)%force(:, i)
      end do
    end do
    !$omp end do nowait
    !$omp do schedule(static)
    do p = 1, fibre%n
      do b = 1, n_shares
        force(:, p) = force(:, p) + scale * self%share(b)%on_fibre(:, p)
      end do
    end do
    !$omp end do
    !$omp end parallel
    do b = 1, n_shares
      energy = energy + self%share(b)%energy
    end do
  end subroutine sum_shares

  !> Electrostatics and excluded volume between points.
  subroutine add_point_pairs(fibre, self, share)
    type(fibre_t), intent(in) :: fibre
    type(points_t), intent(in) :: self
    type(share_t), intent(inout) :: share
    integer(int32) :: i, j, k
    real(real64) :: d(3), r2, z, r, kappa, shift, screened, sigma2, strength, s6, s6_cut, slope
    do k = 1, share%pairs
      j = share%pair(1, k)
      i = share%pair(2, k)
      d = self%position(:, i) - self%position(:, j)
      r2 = dot_product(d, d)
      if (r2 >= fibre%cutoff**2) cycle
      kappa = fibre%kappa
      shift = fibre%screened_at_cutoff
      if (self%kind(i) == dna .and. self%kind(j) == dna) then
        kappa = fibre%dna_kappa
        shift = fibre%dna_screened_at_cutoff
      end if
      sigma2 = self%sigma2(self%kind(i), self%kind(j))
      strength = self%strength(self%kind(i), self%kind(j))
      z = max(r2, self%closest**2 * sigma2)
      r = sqrt(z)
      screened = fibre%bjerrum * self%charge(i) * self%charge(j) * exp(-kappa * r) / r
      s6 = (sigma2 / z)**3
      s6_cut = (sigma2 / fibre%cutoff**2)**3
      share%energy = share%energy + screened - fibre%bjerrum * self%charge(i) * self%charge(j) * shift &
        + strength * (s6 * (s6 - 1) - s6_cut * (s6_cut - 1))
      if (r2 < z) screened = 0
      slope = screened * (kappa + 1 / r) / r + strength * 6 * s6 * (2 * s6 - 1) / z
      share%force(:, i) = share%force(:, i) + slope * d
      share%force(:, j) = share%force(:, j) - slope * d
    end do
  end subroutine add_point_pairs

  !> Points in the fields of cores.
  subroutine add_meetings(fibre, self, share)
    type(fibre_t), intent(in) :: fibre
    type(points_t), intent(in) :: self
    type(share_t), intent(inout) :: share
    integer(int32) :: i, k, p
    real(real64) :: d(3), push(3), weight(n_parts), sigma2, strength
    do k = 1, share%meetings
      i = share%meeting(1, k)
      p = fibre%core_particle(share%meeting(2, k))
      d = self%position(:, i) - fibre%position(:, p)
      if (dot_product(d, d) >= (fibre%cutoff + fibre%site_reach)**2) cycle
      sigma2 = self%sigma2(self%kind(i), core_site)
      strength = self%strength(self%kind(i), core_site)
      weight = [fibre%bjerrum * self%charge(i), strength * sigma2**6, -strength * sigma2**3]
      call meet(fibre, p, self%position(:, i), weight, self%closest * sqrt(sigma2), push, share)
      share%force(:, i) = share%force(:, i) + push
    end do
  end subroutine add_meetings

  !> The sites of every n_shares-th core, from number `b` on, in the fields of the cores after it.
  subroutine add_core_pairs(fibre, self, grid, b, share)
    type(fibre_t), intent(in) :: fibre
    type(points_t), intent(in) :: self
    type(grid_t), intent(in) :: grid   !< of cores
    integer(int32), intent(in) :: b
    type(share_t), intent(inout) :: share
    integer(int32) :: i, k, c, q, s, p, count, found(size(fibre%core_particle))
    real(real64) :: reach, closest, d(3), push(3), weight(n_parts), sigma2, strength
    reach = fibre%cutoff + fibre%site_reach
    sigma2 = self%sigma2(core_site, core_site)
    strength = self%strength(core_site, core_site)
    closest = self%closest * sqrt(sigma2)
    do k = b, size(fibre%core_particle), n_shares
      p = fibre%core_particle(k)
      call points_near(grid, fibre%position(:, p), reach + fibre%site_reach, found, count)
      do s = 1, count
        c = found(s)
        q = fibre%core_particle(c)
        if (c <= k .or. q - p < 2) cycle
        associate (site_charge => fibre%shape(fibre%form(k))%site_charge)
          do i = 1, size(site_charge)
            d = fibre%site_world(:, i, k) - fibre%position(:, q)
            if (dot_product(d, d) >= reach**2) cycle
            weight = [fibre%bjerrum * site_charge(i), strength * sigma2**6, -strength * sigma2**3]
            call meet(fibre, q, fibre%site_world(:, i, k), weight, closest, push, share)
            call push_core(fibre, p, fibre%site_world(:, i, k), push, share%on_fibre)
          end do
        end associate
      end do
    end do
  end subroutine add_core_pairs

  !> A point in the field of core p: the push on it, and the opposite on the core.
  subroutine meet(fibre, p, point, weight, closest, push, share)
    type(fibre_t), intent(in) :: fibre
    integer(int32), intent(in) :: p
    real(real64), intent(in) :: point(3), weight(n_parts), closest
    real(real64), intent(out) :: push(3)
    type(share_t), intent(inout) :: share
    real(real64) :: d(3), slope(3), value
    d = matmul(point - fibre%position(:, p), fibre%frame(:, :, p))
    call field_slope_at(fibre%shape(fibre%form(fibre%core(p)))%field, d, weight, closest, value, slope)
    share%energy = share%energy + value
    push = -matmul(fibre%frame(:, :, p), slope)
    call push_core(fibre, p, point, -push, share%on_fibre)
  end subroutine meet

  !> Forces on points become forces on beads and particles.
  subroutine hand_over(fibre, self, scale, force, bead_force)
    type(fibre_t), intent(in) :: fibre
    type(points_t), intent(in) :: self
    real(real64), intent(in) :: scale
    real(real64), intent(inout) :: force(:, :), bead_force(:, :)
    integer(int32) :: i
    bead_force = bead_force + scale * self%force(:, :self%n_tail)
    do i = self%n_tail + 1, self%n
      if (self%core(i) > 0) then
        call push_core(fibre, fibre%core_particle(self%core(i)), self%position(:, i), scale * self%force(:, i), force)
      else
        force(1:3, self%particle(i)) = force(1:3, self%particle(i)) + scale * self%force(:, i)
      end if
    end do
  end subroutine hand_over

end module charged_points
