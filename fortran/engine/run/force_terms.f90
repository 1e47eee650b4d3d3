!> The terms of the force field. A new one takes a line in `choose_terms`, where its contribution is to be added.
module force_terms
  use bonded_term, only: bonded_term_t
  use dispersion_term, only: dispersion_term_t
  use force_term, only: force_term_t
  use material_term, only: material_term_t
  use pair_term, only: pair_term_t
  use pme_rank_term, only: pme_rank_term_t
  use reciprocal_term, only: reciprocal_term_t
  use restraint_term, only: restraint_term_t
  use settings, only: no_tail, settings_t
  use sphere_term, only: sphere_term_t
  use tail_term, only: tail_term_t
  implicit none
  private
  public :: slot_t, choose_terms

  type :: slot_t
    class(force_term_t), allocatable :: term
  end type slot_t

contains

  !> The terms that the settings ask for, in the order in which they are added. `n_apart`: ranks that hold no atoms and
  !> sum reciprocal space for the others.
  subroutine choose_terms(settings, n_apart, chosen)
    type(settings_t), intent(in) :: settings
    integer, intent(in) :: n_apart
    type(slot_t), allocatable, intent(out) :: chosen(:)
    type(slot_t) :: slot(9)
    logical :: molecules, mesh
    integer :: k, n
    molecules = .not. settings%has_material()
    mesh = molecules .and. settings%energy%ewald_charges
    allocate (bonded_term_t :: slot(1)%term)
    if (molecules) allocate (pair_term_t :: slot(2)%term)
    if (.not. molecules) allocate (material_term_t :: slot(3)%term)
    allocate (restraint_term_t :: slot(4)%term)
    if (mesh .and. n_apart > 0) allocate (pme_rank_term_t :: slot(5)%term)
    if (mesh .and. n_apart == 0) allocate (reciprocal_term_t :: slot(6)%term)
    if (mesh .and. settings%energy%ewald_dispersion) allocate (dispersion_term_t :: slot(7)%term)
    if (molecules .and. settings%energy%tail /= no_tail) allocate (tail_term_t :: slot(8)%term)
    if (settings%boundary%sphere%is_on) allocate (sphere_term_t :: slot(9)%term)
    allocate (chosen(count([(allocated(slot(k)%term), k=1, size(slot))])))
    n = 0
    do k = 1, size(slot)
      if (.not. allocated(slot(k)%term)) cycle
      n = n + 1
      call move_alloc(slot(k)%term, chosen(n)%term)
    end do
  end subroutine choose_terms

end module force_terms
