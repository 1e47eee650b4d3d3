!> Energy of a chromatin fibre, whole or what a move can change.
!>
!> The terms are those of the published mesoscale model (Beard and Schlick 2001; Sun, Zhang, Schlick 2005): stretching,
!> bending and twisting of linkers, Debye-Hueckel electrostatics, excluded volume; plus a geometric floor (capsules for
!> linker DNA, spheres for cores), contact restraints, wells and a confining sphere. mesoscale/model.py states the formulas;
!> the two implementations are tested against each other.
module fibre_energy
  use contact_wells, only: closeness
  use fibre_charges, only: add_charged_pair
  use fibre_floors, only: range_floor, segment_segment_floor, segment_core_floor, core_core_floor
  use fibre_model, only: fibre_t, around, is_among, particle_after, segment_before, worth_threads, n_terms, stretch, &
    bend, twist, floor_, restraint, confinement
  use geometry, only: angle, cross, transported
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: range_energy, full_energy, twist_energy_at

  real(real64), parameter :: pi = acos(-1.0_real64)

contains

  !> Energy that a move of the particles first..last can change and that is cheap: all but charges and their excluded
  !> volume.
  pure function range_energy(self, first, last) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: first, last
    real(real64) :: energy(n_terms)
    integer(int32) :: p, s, low, high, end_
    energy = 0
    ! Bonded terms change only at the two ends of the range; those of a circle that is moved whole but for one particle
    ! meet.
    low = first - 2
    end_ = low + self%n - 1
    if (.not. self%is_circle) then
      low = max(1, low)
      end_ = self%n
    end if
    high = min(end_, first + 1)
    do s = low, high
      call add_bonded(self, around(self, s), energy)
    end do
    do s = max(high + 1, last - 1), min(end_, last + 1)
      call add_bonded(self, around(self, s), energy)
    end do
    do p = first, last
      energy(confinement) = energy(confinement) + confinement_energy(self, around(self, p))
    end do
    energy(restraint) = contact_energy(self, first, last) + wells_energy(self, first, last)
    energy(floor_) = range_floor(self, first, last)
  end function range_energy

  !> Energy of the whole fibre, term by term.
  function full_energy(self) result(energy)
    type(fibre_t), intent(in) :: self
    real(real64) :: energy(n_terms), part(n_terms, self%n)
    integer(int32) :: p
    !$omp parallel do schedule(dynamic, 8) if(self%n >= worth_threads)
    do p = 1, self%n
      part(:, p) = energy_at(self, p)
    end do
    !$omp end parallel do
    energy = sum(part, 2)
    do p = 1, size(self%contact, 2)
      energy(restraint) = energy(restraint) + one_contact(self, p)
    end do
    do p = 2, self%n
      energy(restraint) = energy(restraint) + wells_between(self, p, 1, p - 1)
    end do
  end function full_energy

  !> The share of particle p, and of segment p, in the energy of the fibre: with those before it.
  pure function energy_at(self, p) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p
    real(real64) :: energy(n_terms)
    integer(int32) :: q
    energy = 0
    call add_bonded(self, p, energy)
    energy(confinement) = confinement_energy(self, p)
    do q = 1, p - 1
      call add_charged_pair(self, p, q, energy)
      if (self%core(p) /= 0 .and. self%core(q) /= 0) energy(floor_) = energy(floor_) + core_core_floor(self, p, q)
    end do
    if (p > self%n_segments) return
    do q = 1, p - 1
      energy(floor_) = energy(floor_) + segment_segment_floor(self, p, q)
    end do
    do q = 1, self%n
      if (self%core(q) /= 0) energy(floor_) = energy(floor_) + segment_core_floor(self, p, q)
    end do
  end function energy_at

  !> Stretch and twist of segment p and bends at particle p.
  pure subroutine add_bonded(self, p, energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p
    real(real64), intent(inout) :: energy(n_terms)
    integer(int32) :: s
    s = segment_before(self, p)
    if (p <= self%n_segments) then
      energy(stretch) = energy(stretch) + 0.5_real64 * self%stretch_k(p) * (self%length(p) - self%rest_length(p))**2
      energy(twist) = energy(twist) + twist_energy_at(self, p)
    end if
    if (self%core(p) /= 0) then
      if (p <= self%n_segments) energy(bend) = energy(bend) &
        + 0.5_real64 * self%bend_k(p) * angle(self%exit_frame(:, 1, p), self%direction(:, p))**2
      if (s > 0) energy(bend) = energy(bend) &
        + 0.5_real64 * self%bend_k(s) * angle(self%direction(:, s), self%entry_frame(:, 1, p))**2
    else if (s > 0 .and. p <= self%n_segments) then
      energy(bend) = energy(bend) + 0.25_real64 * (self%bend_k(s) + self%bend_k(p)) &
        * angle(self%direction(:, s), self%direction(:, p))**2
    end if
  end subroutine add_bonded

  !> Twist between the frame leaving particle p and the frame arriving at the next.
  pure function twist_energy_at(self, p) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p
    real(real64) :: energy, b(3), c(3), b_next(3), c_next(3), deviation
    integer(int32) :: q
    energy = 0
    if (self%twist_k(p) <= 0) return
    if (self%core(p) /= 0) then
      b = transported(self%exit_frame(:, 2, p), self%exit_frame(:, 1, p), self%direction(:, p))
      c = cross(self%direction(:, p), b)
    else
      b = self%frame(:, 2, p)
      c = self%frame(:, 3, p)
    end if
    q = particle_after(self, p)
    if (self%core(q) /= 0) then
      b_next = self%entry_frame(:, 2, q)
      c_next = self%entry_frame(:, 3, q)
    else
      b_next = self%frame(:, 2, q)
      c_next = self%frame(:, 3, q)
    end if
    deviation = atan2(dot_product(c, b_next) - dot_product(b, c_next), dot_product(b, b_next) + dot_product(c, c_next)) &
      - self%rest_twist(p)
    deviation = deviation - 2 * pi * anint(deviation / (2 * pi))
    energy = 0.5_real64 * self%twist_k(p) * deviation**2
  end function twist_energy_at

  !> Contacts with exactly one partner among first..last.
  pure function contact_energy(self, first, last) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: first, last
    real(real64) :: energy
    integer(int32) :: i
    energy = 0
    do i = 1, size(self%contact, 2)
      if (is_among(self, self%contact(1, i), first, last) .neqv. is_among(self, self%contact(2, i), first, last)) &
        energy = energy + one_contact(self, i)
    end do
  end function contact_energy

  !> Wells with exactly one partner among first..last.
  pure function wells_energy(self, first, last) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: first, last
    real(real64) :: energy
    integer(int32) :: p
    energy = 0
    if (size(self%well_partner) == 0) return
    do p = first, last
      if (last > self%n) then   ! on beyond the last particle of a circle
        energy = energy + wells_between(self, around(self, p), last + 1 - self%n, first - 1)
      else
        energy = energy + wells_between(self, p, 1, first - 1) + wells_between(self, p, last + 1, self%n)
      end if
    end do
  end function wells_energy

  !> Wells of particle p with partners among first..last.
  pure function wells_between(self, p, first, last) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, first, last
    real(real64) :: energy
    integer(int32) :: k
    energy = 0
    if (size(self%well_partner) == 0) return
    do k = self%well_first(p), self%well_first(p + 1) - 1
      if (self%well_partner(k) < first .or. self%well_partner(k) > last) cycle
      energy = energy + self%well_energy(k) &
        * closeness(norm2(self%position(:, p) - self%position(:, self%well_partner(k))), self%well_flat, self%well_reach)
    end do
  end function wells_between

  !> Flat to d0, harmonic to 2 d0, linear beyond.
  pure function one_contact(self, i) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: i
    real(real64) :: energy, excess, d0
    d0 = self%contact_distance(i)
    excess = norm2(self%position(:, self%contact(1, i)) - self%position(:, self%contact(2, i))) - d0
    energy = 0
    if (excess > d0) then
      energy = self%contact_k(i) * d0 * (excess - 0.5_real64 * d0)
    else if (excess > 0) then
      energy = 0.5_real64 * self%contact_k(i) * excess**2
    end if
  end function one_contact

  !> The confining sphere and the walls of the container, at particle p.
  pure function confinement_energy(self, p) result(energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p
    real(real64) :: energy
    integer(int32) :: i
    energy = 0
    if (self%confinement_k > 0) energy = 0.5_real64 * self%confinement_k &
      * max(0.0_real64, norm2(self%position(:, p)) - self%confinement_radius)**2
    if (self%wall_k <= 0) return
    if (self%core(p) == 0) then
      energy = energy + 0.5_real64 * self%wall_k * sum(max(0.0_real64, abs(self%position(:, p)) - self%wall)**2)
    else
      do i = 1, size(self%shape(self%form(self%core(p)))%sphere, 2)
        energy = energy + 0.5_real64 * self%wall_k &
          * sum(max(0.0_real64, abs(self%sphere_world(:, i, self%core(p))) - self%wall)**2)
      end do
    end if
  end function confinement_energy

end module fibre_energy
