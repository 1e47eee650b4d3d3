!> The pairs of particles whose charges act on each other, with their energies, so that a trial of Monte Carlo computes
!> only those that it changes.
module near_pairs
  use fibre_charges, only: pair_terms
  use fibre_grid, only: points_near
  use fibre_model, only: fibre_t, around, is_among, n_terms, electrostatic, excluded, worth_threads
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: near_t, range_pairs, remember_pairs, replace_pairs, add_pairs

  !> The particles near one, and the electrostatics and excluded volume (kBT) of each with it.
  type :: near_t
    integer(int32) :: n = 0
    integer(int32), allocatable :: particle(:)
    real(real64), allocatable :: terms(:, :)
  end type near_t

contains

  !> What is near the particles first..last, but for themselves.
  subroutine range_pairs(self, first, last, fresh)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: first, last
    type(near_t), intent(out) :: fresh(first:last)
    integer(int32) :: p
    do p = first, last
      call list_near(self, around(self, p), first, last, fresh(p))
    end do
  end subroutine range_pairs

  !> What is near particle p, but for first..last.
  subroutine list_near(self, p, first, last, near)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, first, last
    type(near_t), intent(inout) :: near
    integer(int32) :: q, k, count, found(self%n)
    real(real64) :: reach, terms(2)
    reach = self%cutoff
    if (self%core(p) /= 0) reach = reach + self%carried_reach
    call points_near(self%bead_grid, self%position(:, p), reach, found, count)
    do k = 1, count
      q = self%bead(found(k))
      if (is_among(self, q, first, last)) cycle
      terms = pair_terms(self, p, q)
      if (any(abs(terms) > 0)) call append(near, q, terms)
    end do
    call points_near(self%core_grid, self%position(:, p), reach + self%carried_reach, found, count)
    do k = 1, count
      q = self%core_particle(found(k))
      if (is_among(self, q, first, last)) cycle
      terms = pair_terms(self, p, q)
      if (any(abs(terms) > 0)) call append(near, q, terms)
    end do
  end subroutine list_near

  pure subroutine append(self, particle, terms)
    type(near_t), intent(inout) :: self
    integer(int32), intent(in) :: particle
    real(real64), intent(in) :: terms(2)
    type(near_t) :: longer
    if (.not. allocated(self%particle)) allocate (self%particle(32), self%terms(2, 32))
    if (self%n == size(self%particle)) then
      allocate (longer%particle(2 * self%n), longer%terms(2, 2 * self%n))
      longer%particle(:self%n) = self%particle
      longer%terms(:, :self%n) = self%terms
      call move_alloc(longer%particle, self%particle)
      call move_alloc(longer%terms, self%terms)
    end if
    self%n = self%n + 1
    self%particle(self%n) = particle
    self%terms(:, self%n) = terms
  end subroutine append

  !> Take the particle out of the list; the last comes in its place.
  pure subroutine remove(self, particle)
    type(near_t), intent(inout) :: self
    integer(int32), intent(in) :: particle
    integer(int32) :: k
    do k = 1, self%n
      if (self%particle(k) /= particle) cycle
      self%particle(k) = self%particle(self%n)
      self%terms(:, k) = self%terms(:, self%n)
      self%n = self%n - 1
      return
    end do
  end subroutine remove

  !> Remember the pairs of all particles, so that a trial need not compute again what it leaves.
  subroutine remember_pairs(self, near)
    type(fibre_t), intent(in) :: self
    type(near_t), allocatable, intent(out) :: near(:)
    integer(int32) :: p, q, k
    integer(int32) :: found(self%n)
    allocate (near(self%n))
    !$omp parallel do schedule(dynamic, 8) if(self%n >= worth_threads)
    do p = 1, self%n   ! each pair once, for both
      call list_near(self, p, p, self%n, near(p))
    end do
    !$omp end parallel do
    found = near%n
    do p = 1, self%n
      do k = 1, found(p)
        q = near(p)%particle(k)
        call append(near(q), p, near(p)%terms(:, k))
      end do
    end do
  end subroutine remember_pairs

  !> The pairs of the particles first..last with those outside are now these.
  pure subroutine replace_pairs(self, near, first, last, fresh)
    type(fibre_t), intent(in) :: self
    type(near_t), intent(inout) :: near(:)
    integer(int32), intent(in) :: first, last
    type(near_t), intent(in) :: fresh(first:last)
    integer(int32) :: i, p, q, k, kept
    do i = first, last
      p = around(self, i)
      kept = 0
      do k = 1, near(p)%n
        q = near(p)%particle(k)
        if (.not. is_among(self, q, first, last)) then
          call remove(near(q), p)
        else
          kept = kept + 1
          near(p)%particle(kept) = q
          near(p)%terms(:, kept) = near(p)%terms(:, k)
        end if
      end do
      near(p)%n = kept
      do k = 1, fresh(i)%n
        call append(near(p), fresh(i)%particle(k), fresh(i)%terms(:, k))
        call append(near(fresh(i)%particle(k)), p, fresh(i)%terms(:, k))
      end do
    end do
  end subroutine replace_pairs

  !> The sum of the pairs of the particles first..last with those outside, added to `energy`.
  pure subroutine add_pairs(self, near, place, first, last, energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: first, last, place(first:last)   !< where each is in `near`
    type(near_t), intent(in) :: near(:)
    real(real64), intent(inout) :: energy(n_terms)
    real(real64) :: total(2)
    integer(int32) :: p, k
    total = 0
    do p = first, last
      associate (of => near(place(p)))
        do k = 1, of%n
          if (.not. is_among(self, of%particle(k), first, last)) total = total + of%terms(:, k)
        end do
      end associate
    end do
    energy([electrostatic, excluded]) = energy([electrostatic, excluded]) + total
  end subroutine add_pairs

end module near_pairs
