!> Excluded pairs of the atoms of a rank, and what Ewald summation needs to have taken out for them.
module excluded_pairs
  use base_fixed_point, only: rounding_t
  use base_kinds, only: real64
  use dispersion_exclusions, only: correct_dispersion
  use pair_kernels, only: pair_kernels_t
  use pair_parameters, only: pair_parameters_t
  implicit none
  private
  public :: excluded_pairs_t

  !> Atoms whose sums (energies, virial) are formed together.
  integer, parameter :: excluded_together = 1024

  !> Excluded partners of every local atom: row i is partner(row_first(i):row_first(i + 1) - 1).
  type :: excluded_pairs_t
    integer, allocatable :: row_first(:), partner(:)
  contains
    procedure :: mirror
    procedure :: forget
    procedure :: correct
    procedure :: correct_dispersion => correct_all_dispersion
  end type excluded_pairs_t

contains

  !> Take the rows of owned atoms as given, and mirror those of ghosts from them.
  !> Partners of atom i: `exclusion_partner(exclusion_first(i):exclusion_first(i+1)-1)`.
  subroutine mirror(self, n_owned, n_total, exclusion_first, exclusion_partner)
    class(excluded_pairs_t), intent(inout) :: self
    integer, intent(in) :: n_owned, n_total, exclusion_first(:), exclusion_partner(:)
    integer, allocatable :: length(:)
    integer :: i, k, ghost

    allocate (length(n_total), source=0)
    do i = 1, n_owned
      length(i) = exclusion_first(i + 1) - exclusion_first(i)
      do k = exclusion_first(i), exclusion_first(i + 1) - 1
        if (exclusion_partner(k) > n_owned) length(exclusion_partner(k)) = length(exclusion_partner(k)) + 1
      end do
    end do
    call self%forget()
    allocate (self%row_first(n_total + 1))
    self%row_first(1) = 1
    do i = 1, n_total
      self%row_first(i + 1) = self%row_first(i) + length(i)
    end do
    allocate (self%partner(self%row_first(n_total + 1) - 1))
    length(n_owned + 1:) = 0
    do i = 1, n_owned
      self%partner(self%row_first(i):self%row_first(i + 1) - 1) = &
        exclusion_partner(exclusion_first(i):exclusion_first(i + 1) - 1)
      do k = exclusion_first(i), exclusion_first(i + 1) - 1
        ghost = exclusion_partner(k)
        if (ghost <= n_owned) cycle
        self%partner(self%row_first(ghost) + length(ghost)) = i
        length(ghost) = length(ghost) + 1
      end do
    end do
  end subroutine mirror

  subroutine forget(self)
    class(excluded_pairs_t), intent(inout) :: self
    if (allocated(self%row_first)) deallocate (self%row_first, self%partner)
  end subroutine forget

  !> Add the Ewald correction: forces (kcal/mol/angstrom) on `force(3, atoms)`, with `want_energy` the energy (kcal/mol); in
  !> the deterministic mode the virial too. `charge` (e) is that of the kinds of atoms, `kind` that of each atom,
  !> `coulomb_constant` in kcal angstrom/mol/e^2.
  subroutine correct(self, kernels, pair, coulomb_constant, rounding, position, kind, charge, want_energy, force, energy, virial)
    class(excluded_pairs_t), intent(in) :: self
    class(pair_kernels_t), intent(in) :: kernels
    type(pair_parameters_t), intent(in) :: pair
    type(rounding_t), intent(in) :: rounding
    real(real64), contiguous, intent(in) :: position(:, :)
    real(real64), intent(in) :: coulomb_constant, charge(:)
    integer, intent(in) :: kind(:)
    logical, intent(in) :: want_energy
    real(real64), contiguous, intent(inout) :: force(:, :)
    real(real64), intent(inout) :: energy, virial(3, 3)
    real(real64), allocatable :: chunk_energy(:), chunk_virial(:, :), own_charge(:)
    real(real64) :: sums(6)
    integer :: i, chunk, first, last, n

    n = size(self%row_first) - 1
    allocate (own_charge(n))
    !$omp parallel do schedule(static)
    do i = 1, n
      own_charge(i) = charge(kind(i))
    end do
    !$omp end parallel do
    allocate (chunk_energy((n + excluded_together - 1)/excluded_together), source=0.0_real64)
    allocate (chunk_virial(6, size(chunk_energy)), source=0.0_real64)
    ! Ghosts, which come last, have few partners.
    !$omp parallel do schedule(dynamic) private(first, last)
    do chunk = 1, size(chunk_energy)
      first = (chunk - 1)*excluded_together + 1
      last = min(n, chunk*excluded_together)
      if (rounding%is_on()) then
        call kernels%correct_exactly(first, last, self%row_first, self%partner, n, position, own_charge, pair, &
                                     coulomb_constant, rounding, want_energy, force, chunk_energy(chunk), &
                                     chunk_virial(:, chunk))
      else
        call kernels%correct_exclusions(first, last, self%row_first, self%partner, n, position, own_charge, pair, &
                                        coulomb_constant, rounding, want_energy, force, chunk_energy(chunk))
      end if
    end do
    !$omp end parallel do
    energy = energy + sum(chunk_energy)
    sums = sum(chunk_virial, dim=2)
    virial = virial + reshape(sums([1, 4, 5, 4, 2, 6, 5, 6, 3]), [3, 3])
  end subroutine correct

  !> Take the dispersion of excluded pairs out of what reciprocal space holds. `root_c6(atoms)` in (kcal/mol)^(1/2)
  !> angstrom^3, `alpha` in 1/angstrom.
  subroutine correct_all_dispersion(self, position, root_c6, alpha, force, energy)
    class(excluded_pairs_t), intent(in) :: self
    real(real64), intent(in) :: position(:, :), root_c6(:), alpha
    real(real64), intent(inout) :: force(:, :), energy
    real(real64), allocatable :: chunk_energy(:)
    integer :: chunk, n_chunks, n

    n = size(self%row_first) - 1
    n_chunks = (n + excluded_together - 1)/excluded_together
    allocate (chunk_energy(n_chunks), source=0.0_real64)
    !$omp parallel do schedule(dynamic)
    do chunk = 1, n_chunks
      call correct_dispersion((chunk - 1)*excluded_together + 1, min(n, chunk*excluded_together), self%row_first, &
                              self%partner, position, root_c6, alpha, force, chunk_energy(chunk))
    end do
    !$omp end parallel do
    energy = energy + sum(chunk_energy)
  end subroutine correct_all_dispersion

end module excluded_pairs
