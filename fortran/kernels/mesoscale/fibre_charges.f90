!> Electrostatics and excluded volume of two particles of a fibre, with the sites and limbs that cores carry.
module fibre_charges
  use core_field, only: field_at, n_parts
  use fibre_model, only: fibre_t, are_neighbours, n_terms, electrostatic, excluded, dna, core_site, bead_bead, bead_site, &
    site_site
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: add_charged_pair, pair_terms

contains

  !> Electrostatics and excluded volume of two particles.
  pure function pair_terms(self, p, q) result(terms)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, q
    real(real64) :: terms(2), energy(n_terms)
    energy = 0
    call add_charged_pair(self, p, q, energy)
    terms = energy([electrostatic, excluded])
  end function pair_terms

  !> Electrostatics and excluded volume of two particles. Neighbours in the chain have none but those of limbs.
  pure subroutine add_charged_pair(self, p, q, energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, q
    real(real64), intent(inout) :: energy(n_terms)
    integer(int32) :: i, core_p, core_q, one, other
    real(real64) :: reach, d(3)
    if (self%n_limbs > 0) then
      if (self%core(p) /= 0) call add_limbs(self, p, q, energy)
      if (self%core(q) /= 0) call add_limbs(self, q, p, energy)
      if (self%core(p) /= 0 .and. self%core(q) /= 0) call add_limb_pairs(self, self%core(p), self%core(q), energy)
    end if
    if (are_neighbours(self, p, q)) return
    core_p = self%core(p)
    core_q = self%core(q)
    reach = self%cutoff
    if (core_p /= 0) reach = reach + self%site_reach
    if (core_q /= 0) reach = reach + self%site_reach
    d = self%position(:, p) - self%position(:, q)
    if (dot_product(d, d) >= reach**2) return
    if (core_p /= 0 .and. core_q /= 0) then
      ! The sites of the first core in the field of the second: always the same way, for a table has rounding errors.
      one = min(core_p, core_q)
      other = max(core_p, core_q)
      associate (shape => self%shape(self%form(one)))
        do i = 1, size(shape%site, 2)
          d = self%site_world(:, i, one) - self%position(:, self%core_particle(other))
          if (dot_product(d, d) >= (self%cutoff + self%site_reach)**2) cycle
          call add_sites(self, self%site_world(:, i, one), shape%site_charge(i), other, self%sigma(site_site)**2, &
            self%excluded_k, self%excluded_at_cutoff(site_site), energy)
        end do
      end associate
    else if (core_p /= 0) then
      call add_sites(self, self%position(:, q), self%charge(q), core_p, self%sigma(bead_site)**2, self%excluded_k, &
        self%excluded_at_cutoff(bead_site), energy)
    else if (core_q /= 0) then
      call add_sites(self, self%position(:, p), self%charge(p), core_q, self%sigma(bead_site)**2, self%excluded_k, &
        self%excluded_at_cutoff(bead_site), energy)
    else
      call add_bead_pair(self, sqrt(dot_product(d, d)), self%charge(p) * self%charge(q), energy)
    end if
  end subroutine add_charged_pair

  !> The limbs of core p with bead q, or with the sites of core q.
  pure subroutine add_limbs(self, p, q, energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: p, q
    real(real64), intent(inout) :: energy(n_terms)
    integer(int32) :: i, kind, core_p, core_q
    real(real64) :: reach, d(3), d2
    core_p = self%core(p)
    core_q = self%core(q)
    reach = self%cutoff
    if (core_q /= 0) reach = reach + self%site_reach
    d = self%position(:, p) - self%position(:, q)
    if (dot_product(d, d) >= (reach + self%limb_reach(core_p))**2) return
    do i = 1, self%n_limbs
      kind = self%limb_kind(i, core_p)
      if (kind == 0) cycle
      d = self%limb_world(:, i, core_p) - self%position(:, q)
      d2 = dot_product(d, d)
      if (d2 >= reach**2) cycle
      if (core_q == 0) then
        call add_limb_point(self, d2, self%limb_charge(i, core_p) * self%charge(q), kind, dna, energy)
      else
        call add_sites(self, self%limb_world(:, i, core_p), self%limb_charge(i, core_p), core_q, &
          self%sigma2(kind, core_site), self%strength(kind, core_site), self%excluded_shift(kind, core_site), energy)
      end if
    end do
  end subroutine add_limbs

  !> The limbs of two cores with each other.
  pure subroutine add_limb_pairs(self, core_p, core_q, energy)
    type(fibre_t), intent(in) :: self
    integer(int32), intent(in) :: core_p, core_q
    real(real64), intent(inout) :: energy(n_terms)
    integer(int32) :: i, j, p, q
    real(real64) :: d(3), d2
    p = self%core_particle(core_p)
    q = self%core_particle(core_q)
    d = self%position(:, p) - self%position(:, q)
    if (dot_product(d, d) >= (self%cutoff + self%limb_reach(core_p) + self%limb_reach(core_q))**2) return
    do i = 1, self%n_limbs
      if (self%limb_kind(i, core_p) == 0) cycle
      d = self%limb_world(:, i, core_p) - self%position(:, q)
      if (dot_product(d, d) >= (self%cutoff + self%limb_reach(core_q))**2) cycle
      do j = 1, self%n_limbs
        if (self%limb_kind(j, core_q) == 0) cycle
        d = self%limb_world(:, i, core_p) - self%limb_world(:, j, core_q)
        d2 = dot_product(d, d)
        if (d2 < self%cutoff**2) call add_limb_point(self, d2, self%limb_charge(i, core_p) * self%limb_charge(j, core_q), &
          self%limb_kind(i, core_p), self%limb_kind(j, core_q), energy)
      end do
    end do
  end subroutine add_limb_pairs

  !> A limb of one kind and a point of another, whose distance has the square `r2` (nm^2).
  pure subroutine add_limb_point(self, r2, charge_product, kind, other, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: r2, charge_product
    integer(int32), intent(in) :: kind, other
    real(real64), intent(inout) :: energy(n_terms)
    real(real64) :: r, s6
    r = sqrt(r2)
    energy(electrostatic) = energy(electrostatic) + self%bjerrum * charge_product &
      * (exp(-self%kappa * r) / r - self%screened_at_cutoff)
    s6 = (self%sigma2(kind, other) / r2)**3
    energy(excluded) = energy(excluded) + self%strength(kind, other) * (s6 * (s6 - 1) - self%excluded_shift(kind, other))
  end subroutine add_limb_point

  !> A point charge with all sites of a core; excluded volume of that range squared, strength, and value at the cutoff.
  pure subroutine add_sites(self, point, charge, core, sigma2, strength, shift, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: point(3), charge, sigma2, strength, shift
    integer(int32), intent(in) :: core
    real(real64), intent(inout) :: energy(n_terms)
    integer(int32) :: p
    real(real64) :: field(n_parts), d(3), local(3)
    if (.not. associated(self%shape(self%form(core))%field)) then
      call add_sites_one_by_one(self, point, charge, core, sigma2, strength, shift, energy)
      return
    end if
    p = self%core_particle(core)
    d = point - self%position(:, p)
    local = [dot_product(d, self%frame(:, 1, p)), dot_product(d, self%frame(:, 2, p)), dot_product(d, self%frame(:, 3, p))]
    field = field_at(self%shape(self%form(core))%field, local)
    energy(electrostatic) = energy(electrostatic) + self%bjerrum * charge * field(1)
    energy(excluded) = energy(excluded) + strength * sigma2**3 * (sigma2**3 * field(2) - field(3))
  end subroutine add_sites

  !> The same, site by site.
  pure subroutine add_sites_one_by_one(self, point, charge, core, sigma2, strength, shift, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: point(3), charge, sigma2, strength, shift
    integer(int32), intent(in) :: core
    real(real64), intent(inout) :: energy(n_terms)
    integer(int32) :: i, n
    real(real64) :: r2, r, s6, el, ex
    real(real64) :: near_r2(self%most_sites), near_charge(self%most_sites)
    ! First who is near, then their energies in one loop, which vectorises.
    n = 0
    associate (site_charge => self%shape(self%form(core))%site_charge)
      do i = 1, size(site_charge)
        r2 = (point(1) - self%site_world(1, i, core))**2 + (point(2) - self%site_world(2, i, core))**2 &
          + (point(3) - self%site_world(3, i, core))**2
        if (r2 >= self%cutoff**2) cycle
        n = n + 1
        near_r2(n) = r2
        near_charge(n) = site_charge(i)
      end do
    end associate
    el = 0
    ex = 0
    !$omp simd reduction(+:el, ex) private(r, s6)
    do i = 1, n
      r = sqrt(near_r2(i))
      el = el + near_charge(i) * (exp(-self%kappa * r) / r - self%screened_at_cutoff)
      s6 = (sigma2 / near_r2(i))**3
      ex = ex + s6 * (s6 - 1) - shift
    end do
    energy(electrostatic) = energy(electrostatic) + self%bjerrum * charge * el
    energy(excluded) = energy(excluded) + strength * ex
  end subroutine add_sites_one_by_one

  !> Both pair potentials of two linker beads, shifted to zero at the cutoff.
  pure subroutine add_bead_pair(self, r, charge_product, energy)
    type(fibre_t), intent(in) :: self
    real(real64), intent(in) :: r, charge_product
    real(real64), intent(inout) :: energy(n_terms)
    real(real64) :: s6
    if (r >= self%cutoff) return
    energy(electrostatic) = energy(electrostatic) + self%bjerrum * charge_product &
      * (exp(-self%dna_kappa * r) / r - self%dna_screened_at_cutoff)
    s6 = (self%sigma(bead_bead) / r)**6
    energy(excluded) = energy(excluded) + self%excluded_k * (s6 * (s6 - 1) - self%excluded_at_cutoff(bead_bead))
  end subroutine add_bead_pair

end module fibre_charges
