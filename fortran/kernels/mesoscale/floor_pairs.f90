!> Lists of the pairs of a fibre that may act on each other before something has moved half the skin: floor bodies, and
!> particles with charges.
module floor_pairs
  use fibre_grid, only: grid_t, make_grid, points_near
  use fibre_model, only: fibre_t, are_close_in_chain, are_neighbours, continued_end, worth_threads
  use growing_list, only: append
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: pairs_t, list_pairs, moved_far, skin, n_shares

  real(real64), parameter :: skin = 1.0_real64  !< nm; pairs are listed this far beyond contact

  !> Work is divided into so many shares, whatever the number of threads, and put together in their order: results do not
  !> depend on threads.
  integer(int32), parameter :: n_shares = 16

  !> Pairs of floor bodies that may touch, and of particles whose charges may, before the list is made again.
  type :: pairs_t
    integer(int32) :: spheres = 0, capsules = 0, mixed = 0, charged = 0
    integer(int32), allocatable :: sphere_pair(:, :)   !< core, sphere, core, sphere
    integer(int32), allocatable :: capsule_pair(:, :)  !< segment, segment
    integer(int32), allocatable :: mixed_pair(:, :)    !< segment, core, sphere
    integer(int32), allocatable :: charged_pair(:, :)  !< particle, particle
    real(real64), allocatable :: sphere_world(:, :, :), segment_start(:, :), segment_end(:, :)  !< when it was made
  end type pairs_t

contains

  !> Has anything moved more than half the skin since the list was made?
  pure function moved_far(self, pairs) result(far)
    type(fibre_t), intent(in) :: self
    type(pairs_t), intent(in) :: pairs
    logical :: far
    real(real64), parameter :: most = (0.5_real64 * skin)**2
    far = any(sum((self%segment_start - pairs%segment_start)**2, 1) > most) &
      .or. any(sum((self%segment_end - pairs%segment_end)**2, 1) > most) &
      .or. any(sum((self%sphere_world - pairs%sphere_world)**2, 1) > most)
  end function moved_far

  !> List the pairs of floor bodies within contact, margin and skin; and, if charges are wanted, those of particles whose
  !> charges are within the cutoff and skin.
  subroutine list_pairs(self, margin, charges, pairs)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: margin
    logical, intent(in) :: charges
    type(pairs_t), intent(inout) :: pairs
    type(pairs_t) :: share(n_shares)
    type(grid_t) :: core_grid, segment_grid
    integer(int32) :: b
    if (.not. allocated(pairs%sphere_pair)) call make_room(pairs)
    pairs%spheres = 0
    pairs%capsules = 0
    pairs%mixed = 0
    pairs%charged = 0
    pairs%sphere_world = self%sphere_world
    pairs%segment_start = self%segment_start
    pairs%segment_end = self%segment_end
    call make_grid(core_grid, self%position(:, self%core_particle), 2 * self%sphere_reach + margin + skin)
    call make_grid(segment_grid, 0.5_real64 * (self%segment_start + self%segment_end), &
      maxval(self%length) + 2 * self%dna_radius + margin + skin)
    !$omp parallel do schedule(dynamic) if(self%n >= worth_threads)
    do b = 1, n_shares
      call make_room(share(b))
      call list_share(self, margin, core_grid, segment_grid, b, share(b))
    end do
    !$omp end parallel do
    do b = 1, n_shares   ! in the order of particles: threads make no difference
      call append(pairs%sphere_pair, pairs%spheres, flat(share(b)%sphere_pair, share(b)%spheres))
      call append(pairs%capsule_pair, pairs%capsules, flat(share(b)%capsule_pair, share(b)%capsules))
      call append(pairs%mixed_pair, pairs%mixed, flat(share(b)%mixed_pair, share(b)%mixed))
    end do
    if (charges) call list_charged(self, pairs)
  end subroutine list_pairs

  !> First room of the lists.
  pure subroutine make_room(pairs)
    type(pairs_t), intent(inout) :: pairs
    allocate (pairs%sphere_pair(4, 1024), pairs%capsule_pair(2, 256), pairs%mixed_pair(3, 1024), &
      pairs%charged_pair(2, 1024))
  end subroutine make_room

  !> The first `count` columns of a list, one after the other.
  pure function flat(list, count) result(items)
    integer(int32), intent(in) :: list(:, :), count
    integer(int32) :: items(size(list, 1) * count)
    items = reshape(list(:, :count), [size(items)])
  end function flat

  !> The pairs of floor bodies of the b-th of n_shares parts of the cores, and of the segments.
  subroutine list_share(self, margin, core_grid, segment_grid, b, pairs)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: margin
    type(grid_t), intent(in) :: core_grid, segment_grid
    integer(int32), intent(in) :: b
    type(pairs_t), intent(inout) :: pairs
    integer(int32) :: k, m, s, t, count, n_cores, found(self%n)
    real(real64) :: longest, d(3), middle(3)
    longest = maxval(self%length)
    n_cores = size(self%core_particle)
    do k = 1 + (b - 1) * n_cores / n_shares, b * n_cores / n_shares
      associate (p => self%core_particle(k))
        call points_near(core_grid, self%position(:, p), 2 * self%sphere_reach + margin + skin, found, count)
        do m = 1, count
          if (found(m) < k) call list_spheres(self, p, self%core_particle(found(m)), margin, pairs)
        end do
        call points_near(segment_grid, self%position(:, p), &
          0.5_real64 * longest + self%sphere_reach + self%dna_radius + margin + skin, found, count)
        do m = 1, count
          call list_mixed(self, found(m), p, margin, pairs)
        end do
      end associate
    end do
    do s = 1 + (b - 1) * self%n_segments / n_shares, b * self%n_segments / n_shares
      middle = 0.5_real64 * (self%segment_start(:, s) + self%segment_end(:, s))
      call points_near(segment_grid, middle, longest + 2 * self%dna_radius + margin + skin, found, count)
      do m = 1, count
        t = found(m)
        if (t >= s) cycle
        if (are_close_in_chain(self, s, t)) cycle
        d = middle - 0.5_real64 * (self%segment_start(:, t) + self%segment_end(:, t))
        if (dot_product(d, d) < (2 * self%dna_radius + margin + skin + 0.5_real64 * (self%length(s) + self%length(t)))**2) &
          call append(pairs%capsule_pair, pairs%capsules, [s, t])
      end do
    end do
  end subroutine list_share

  !> Particles that are not neighbours in the chain; in a pair of a bead and a core the bead comes first.
  subroutine list_charged(self, pairs)
    type(fibre_t), intent(in) :: self
    type(pairs_t), intent(inout) :: pairs
    type(grid_t) :: grid
    integer(int32) :: p, q, k, count, found(self%n)
    real(real64) :: reach, widest, d(3)
    widest = self%cutoff + 2 * self%site_reach + skin
    call make_grid(grid, self%position, widest)
    do p = 1, self%n
      call points_near(grid, self%position(:, p), widest, found, count)
      do k = 1, count
        q = found(k)
        if (are_neighbours(self, p, q)) cycle
        if ((self%core(p) == 0) .neqv. (self%core(q) == 0)) then
          if (self%core(p) /= 0) cycle
        else if (p > q) then
          cycle
        end if
        reach = self%cutoff + skin
        if (self%core(p) /= 0) reach = reach + self%site_reach
        if (self%core(q) /= 0) reach = reach + self%site_reach
        d = self%position(:, p) - self%position(:, q)
        if (dot_product(d, d) < reach**2) call append(pairs%charged_pair, pairs%charged, [p, q])
      end do
    end do
  end subroutine list_charged

  !> The pairs of spheres of cores p and q.
  pure subroutine list_spheres(self, p, q, margin, pairs)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, q
    real(real64), intent(in) :: margin
    type(pairs_t), intent(inout) :: pairs
    integer(int32) :: i, j
    real(real64) :: reach, d(3), a(3)
    d = self%position(:, p) - self%position(:, q)
    if (dot_product(d, d) >= (2 * self%sphere_reach + margin + skin)**2) return
    associate (one => self%shape(self%form(self%core(p))), other => self%shape(self%form(self%core(q))))
      do i = 1, size(one%sphere, 2)
        a = self%sphere_world(:, i, self%core(p))
        reach = one%sphere_radius(i) + margin + skin
        d = a - self%position(:, q)
        if (dot_product(d, d) >= (self%sphere_reach + reach)**2) cycle
        do j = 1, size(other%sphere, 2)
          d = a - self%sphere_world(:, j, self%core(q))
          if (dot_product(d, d) < (reach + other%sphere_radius(j))**2) &
            call append(pairs%sphere_pair, pairs%spheres, [p, i, q, j])
        end do
      end do
    end associate
  end subroutine list_spheres

  !> The pairs of segment s with spheres of core p; a linker ignores the wrapped DNA that it continues.
  pure subroutine list_mixed(self, s, p, margin, pairs)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: s, p
    real(real64), intent(in) :: margin
    type(pairs_t), intent(inout) :: pairs
    integer(int32) :: i, end_
    real(real64) :: d(3), a(3), along
    d = 0.5_real64 * (self%segment_start(:, s) + self%segment_end(:, s)) - self%position(:, p)
    if (dot_product(d, d) >= &
      (0.5_real64 * self%length(s) + self%sphere_reach + self%dna_radius + margin + skin)**2) return
    end_ = continued_end(self, s, p)
    associate (shape => self%shape(self%form(self%core(p))))
      do i = 1, size(shape%sphere, 2)
        if (end_ /= 0) then
          if (shape%sphere_near(end_, i) /= 0) cycle
        end if
        a = self%sphere_world(:, i, self%core(p)) - self%segment_start(:, s)
        along = min(self%length(s), max(0.0_real64, dot_product(a, self%direction(:, s))))
        a = a - along * self%direction(:, s)
        if (dot_product(a, a) < (self%dna_radius + shape%sphere_radius(i) + margin + skin)**2) &
          call append(pairs%mixed_pair, pairs%mixed, [s, p, i])
      end do
    end associate
  end subroutine list_mixed

end module floor_pairs
