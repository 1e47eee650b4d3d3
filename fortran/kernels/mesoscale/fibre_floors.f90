!> The geometric floor of a fibre: capsules of linker DNA and spheres of cores push each other apart where they overlap.
module fibre_floors
  use fibre_grid, only: points_near
  use fibre_model, only: fibre_t, are_close_in_chain, around, continued_end, counted_from, first_segment, is_among, &
    last_segment
  use geometry, only: closest_points
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: range_floor, segment_segment_floor, segment_core_floor, core_core_floor, longest_segment

  real(real64), parameter :: longest_segment = 8   !< nm; a move that stretches one further is refused

contains

  !> Floor energy of all pairs whose relative position a move of first..last can change.
  pure function range_floor(self, first, last) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: first, last
    real(real64) :: energy
    integer(int32) :: i, j, s, t, p, q, k, count, found(self%n)
    real(real64) :: middle(3), reach
    logical :: s_bridges
    energy = 0
    if (self%floor_k <= 0) return
    ! Segments first-1 and last bridge to what stands still: they change against everything.
    do i = first_segment(self, first), last_segment(self, last)
      s = around(self, i)
      s_bridges = i == first - 1 .or. i == last
      middle = 0.5_real64 * (self%segment_start(:, s) + self%segment_end(:, s))
      reach = 0.5_real64 * self%length(s) + self%dna_radius
      call points_near(self%segment_grid, middle, reach + self%dna_radius + 0.5_real64 * longest_segment, found, count)
      do k = 1, count
        t = found(k)
        j = counted_from(self, t, first - 1)
        if (j >= first - 1 .and. j <= last) then
          if (j >= i) cycle
          if (.not. (s_bridges .or. j == first - 1)) cycle
        end if
        energy = energy + segment_segment_floor(self, s, t)
      end do
      call points_near(self%core_grid, middle, reach + self%sphere_reach, found, count)
      do k = 1, count
        p = self%core_particle(found(k))
        if (is_among(self, p, first, last) .and. .not. s_bridges) cycle
        energy = energy + segment_core_floor(self, s, p)
      end do
    end do
    do i = first, last
      p = around(self, i)
      if (self%core(p) == 0) cycle
      call points_near(self%core_grid, self%position(:, p), 2 * self%sphere_reach, found, count)
      do k = 1, count
        q = self%core_particle(found(k))
        if (.not. is_among(self, q, first, last)) energy = energy + core_core_floor(self, p, q)
      end do
      reach = self%sphere_reach + self%dna_radius + 0.5_real64 * longest_segment
      call points_near(self%segment_grid, self%position(:, p), reach, found, count)
      do k = 1, count
        t = found(k)
        if (.not. is_among(self, t, first - 1, last)) energy = energy + segment_core_floor(self, t, p)
      end do
    end do
  end function range_floor

  !> Two capsules of linker DNA; nearby segments of one linker are held apart by bending already.
  pure function segment_segment_floor(self, s, t) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: s, t
    real(real64) :: energy, d(3), reach, distance, along, other
    energy = 0
    d = 0.5_real64 * (self%segment_start(:, s) + self%segment_end(:, s) - self%segment_start(:, t) - self%segment_end(:, t))
    reach = 0.5_real64 * (self%length(s) + self%length(t)) + 2 * self%dna_radius
    if (dot_product(d, d) >= reach**2) return
    if (are_close_in_chain(self, s, t)) return
    call closest_points(self%segment_start(:, s), self%segment_end(:, s), self%segment_start(:, t), &
      self%segment_end(:, t), distance, along, other)
    energy = overlap(self, distance, 2 * self%dna_radius)
  end function segment_segment_floor

  !> A linker capsule and the spheres of a core; a linker ignores the wrapped DNA that it continues.
  pure function segment_core_floor(self, s, p) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: s, p
    real(real64) :: energy, d(3), reach, a(3), along(3), x(3), t, length2, d2, contact
    integer(int32) :: i, core, continued
    energy = 0
    d = 0.5_real64 * (self%segment_start(:, s) + self%segment_end(:, s)) - self%position(:, p)
    reach = 0.5_real64 * self%length(s) + self%sphere_reach + self%dna_radius
    if (dot_product(d, d) >= reach**2) return
    continued = continued_end(self, s, p)
    core = self%core(p)
    a = self%segment_start(:, s)
    along = self%segment_end(:, s) - a
    length2 = dot_product(along, along)
    associate (shape => self%shape(self%form(core)))
      do i = 1, size(shape%sphere, 2)
        x = self%sphere_world(:, i, core) - a
        t = min(1.0_real64, max(0.0_real64, dot_product(x, along) / length2))
        x = x - t * along
        d2 = dot_product(x, x)
        contact = self%dna_radius + shape%sphere_radius(i)
        if (d2 >= contact**2) cycle
        if (continued /= 0) then
          if (shape%sphere_near(continued, i) /= 0) cycle
        end if
        energy = energy + overlap(self, sqrt(d2), contact)
      end do
    end associate
  end function segment_core_floor

  !> The spheres of two cores.
  pure function core_core_floor(self, p, q) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, q
    real(real64) :: energy, d(3), x(3), d2, contact, widest
    integer(int32) :: i, j, core_p, core_q
    energy = 0
    d = self%position(:, p) - self%position(:, q)
    if (dot_product(d, d) >= (2 * self%sphere_reach)**2) return
    core_p = self%core(p)
    core_q = self%core(q)
    widest = self%widest_sphere
    associate (one => self%shape(self%form(core_p)), other => self%shape(self%form(core_q)))
      do i = 1, size(one%sphere, 2)
        x = self%sphere_world(:, i, core_p)
        d = x - self%position(:, q)
        if (dot_product(d, d) >= (self%sphere_reach + one%sphere_radius(i))**2) cycle
        do j = 1, size(other%sphere, 2)
          d2 = (x(1) - self%sphere_world(1, j, core_q))**2 + (x(2) - self%sphere_world(2, j, core_q))**2 &
            + (x(3) - self%sphere_world(3, j, core_q))**2
          if (d2 >= (one%sphere_radius(i) + widest)**2) cycle
          contact = one%sphere_radius(i) + other%sphere_radius(j)
          if (d2 < contact**2) energy = energy + overlap(self, sqrt(d2), contact)
        end do
      end do
    end associate
  end function core_core_floor

  !> Energy of two bodies at a distance, which touch at `contact` (nm).
  pure function overlap(self, distance, contact) result(energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: distance, contact
    real(real64) :: energy
    energy = 0.5_real64 * self%floor_k * max(0.0_real64, contact - distance)**2
  end function overlap

end module fibre_floors
