!> Forces of materials of one kind of atoms: Lennard-Jones cut off without a switch, and the embedded-atom method of Daw and
!> Baskes (Phys. Rev. B 29, 6443 (1984)): the energy is the sum of phi(r) over pairs and of F(rho_i) over atoms, rho_i being
!> the sum of the densities rho(r) of the neighbours. With the embedded-atom method a step has three parts, between which
!> ghosts exchange: densities go back to the owners (`add_densities`), slopes of F go out (`embed`), forces go back.
!>
!> Ghosts and pairs are those of module nonbonded: each pair once, none of two ghosts.
#include "../pairs/coordinate_kind.inc"
module material
  use base_kinds, only: int32, int64, real64
  use pair_precision, only: real_pair
  use bounding_box, only: find_bounds
  use hermite_table, only: hermite_table_t
  use kernel_dispatch, only: choose_material_kernels
  use material_kernels, only: embedded_table_t, material_kernels_t
  use row_list, only: row_list_t
  implicit none
  private
  public :: material_t

  !> Atoms whose energies and virials are summed together.
  integer, parameter :: chunk_atoms = 4096

  type :: material_t
    !> Whether there is a material, and whether its atoms are embedded.
    logical :: is_on = .false., is_embedded = .false.
    real(real64) :: cutoff = 0.0_real64
    !> The lists reach so far (angstrom).
    real(real64) :: reach = 0.0_real64
    !> Force of the pairs on all local atoms, ghosts included (kcal/mol/angstrom).
    real(real64), allocatable, private :: force(:, :)
    class(material_kernels_t), allocatable, private :: kernels
    type(row_list_t), private :: rows
    integer, private :: n_owned = 0, n_total = 0
    !> c6, c12, energy at the cutoff.
    real(real_pair), private :: lj(3) = 0.0_real_pair
    type(hermite_table_t), private :: embedding
    type(embedded_table_t), private :: table
    !> Coordinates (4, n_slots + 1) are (position - origin)/unit; the fourth keeps them apart by a power of two.
    COORDINATE_KIND, allocatable, private :: coordinate(:, :)
    real(real64), private :: origin(3) = 0.0_real64, unit = 1.0_real64
    !> Slope of the embedding energy of each slot.
    real(real_pair), allocatable, private :: slope(:)
  contains
    procedure :: use_lennard_jones
    procedure :: use_embedded_atoms
    procedure :: rebuild
    procedure :: place
    procedure :: add_densities
    procedure :: embed
    procedure :: compute
    procedure :: add_forces
    procedure :: n_pairs
  end type material_t

contains

  !> Lennard-Jones, c12/r^12 - c6/r^6 (kcal/mol, angstrom) up to the cutoff; with `shift` less its value there. The instruction
  !> set is the best or at most `highest_instruction_set`.
  subroutine use_lennard_jones(self, c6, c12, cutoff, reach, shift, highest_instruction_set)
    class(material_t), intent(inout) :: self
    real(real64), intent(in) :: c6, c12, cutoff, reach
    logical, intent(in) :: shift
    integer, intent(in), optional :: highest_instruction_set
    call choose_material_kernels(self%kernels, highest_instruction_set)
    self%is_on = .true.
    self%is_embedded = .false.
    self%cutoff = cutoff
    self%reach = reach
    self%lj = real([c6, c12, merge(c12*cutoff**(-12) - c6*cutoff**(-6), 0.0_real64, shift)], real_pair)
  end subroutine use_lennard_jones

  !> The embedded-atom method. `embedding`: energy (kcal/mol) of a density; `density` and `pair`, of the same steps: density of
  !> an atom and distance times pair energy (kcal/mol angstrom) at a distance (angstrom).
  subroutine use_embedded_atoms(self, embedding, density, pair, cutoff, reach, highest_instruction_set)
    class(material_t), intent(inout) :: self
    type(hermite_table_t), intent(in) :: embedding, density, pair
    real(real64), intent(in) :: cutoff, reach
    integer, intent(in), optional :: highest_instruction_set
    call choose_material_kernels(self%kernels, highest_instruction_set)
    self%is_on = .true.
    self%is_embedded = .true.
    self%cutoff = cutoff
    self%reach = reach
    self%embedding = embedding
    self%table%inverse_step = real(density%inverse_step, real_pair)
    self%table%density = real(density%coefficient, real_pair)
    self%table%pair = real(pair%coefficient, real_pair)
    self%table%n_intervals = size(self%table%density, 2)
  end subroutine use_embedded_atoms

  !> Make the lists for the atoms of this rank, owned ones first.
  !> `position`: (3, n_total), angstrom.
  subroutine rebuild(self, n_owned, n_total, position)
    class(material_t), intent(inout) :: self
    integer, intent(in) :: n_owned, n_total
    real(real64), intent(in) :: position(:, :)
    real(real64) :: low(3), high(3)

    self%n_owned = n_owned
    self%n_total = n_total
    call self%rows%make(n_owned, n_total, position, self%reach, self%kernels)
    if (allocated(self%coordinate)) deallocate (self%coordinate)
    if (allocated(self%slope)) deallocate (self%slope)
    if (allocated(self%force)) deallocate (self%force)
    allocate (self%coordinate(4, self%rows%n_slots + 1), self%slope(self%rows%n_slots + 1), self%force(3, n_total))
    self%force = 0.0_real64
    self%slope = 0.0_real_pair
    if (self%rows%n_slots == 0) return
    call find_bounds(position(:, :n_total), low, high)
    self%origin = 0.5_real64*(low + high)
#ifdef CHROMAMD_DOUBLE
    ! What fills up the rows is out of reach of all.
    self%coordinate = 0.0_real64
    self%coordinate(:3, self%rows%n_slots + 1) = 1.0e5_real64*(maxval(high - low) + self%reach)
#else
    ! A power of two, so that scaling is exact; a factor of two is left for motion until the next rebuild, and as much again for
    ! what fills up the rows, out of reach of all.
    self%unit = 2.0_real64**(exponent(0.5_real64*maxval(high - low) + self%reach) - 28)
    self%coordinate = 0
    self%coordinate(:3, self%rows%n_slots + 1) = 2**30
#endif
  end subroutine rebuild

  !> Pairs in the lists.
  pure integer(int64) function n_pairs(self)
    class(material_t), intent(in) :: self
    n_pairs = self%rows%n_pairs()
  end function n_pairs

  !> Take the present positions of all local atoms.
  !> `position`: (3, local atoms), angstrom.
  subroutine place(self, position)
    class(material_t), intent(inout) :: self
    real(real64), intent(in) :: position(:, :)
    real(real64) :: scaled(3)
    integer :: s
    !$omp parallel do schedule(static) private(scaled)
    do s = 1, self%rows%n_slots
      scaled = (position(:, self%rows%atom(s)) - self%origin)/self%unit
#ifdef CHROMAMD_DOUBLE
      self%coordinate(:3, s) = scaled
#else
      self%coordinate(:3, s) = int(scaled + sign(0.5_real64, scaled), int32)
#endif
    end do
    !$omp end parallel do
  end subroutine place

  !> Electron densities of this rank's pairs at all local atoms, ghosts included, in `density(1, :)`.
  !> `density`: (1, local atoms), in the unit of the potential's file.
  subroutine add_densities(self, density)
    class(material_t), intent(inout) :: self
    real(real64), intent(out) :: density(:, :)
    integer :: b
    !$omp parallel do schedule(dynamic)
    do b = 1, size(self%rows%block)
      self%rows%block(b)%result = 0.0_real_pair
      call self%kernels%add_density(self%rows%block(b), self%coordinate, self%unit, self%cutoff, self%table)
    end do
    !$omp end parallel do
    call gather(self, 1, 1.0_real64, density)
  end subroutine add_densities

  !> From whole densities of the owned atoms, `value(1, :)`, to the slopes of their embedding energies in its place. `energy`:
  !> the sum of these energies (kcal/mol).
  subroutine embed(self, value, energy)
    class(material_t), intent(in) :: self
    real(real64), intent(inout) :: value(:, :)
    real(real64), intent(out) :: energy
    real(real64) :: chunk_energy((self%n_owned + chunk_atoms - 1)/chunk_atoms), slope, one
    integer :: chunk, i
    !$omp parallel do schedule(static) private(i, slope, one)
    do chunk = 1, size(chunk_energy)
      chunk_energy(chunk) = 0.0_real64
      do i = (chunk - 1)*chunk_atoms + 1, min(self%n_owned, chunk*chunk_atoms)
        call self%embedding%evaluate(value(1, i), one, slope)
        chunk_energy(chunk) = chunk_energy(chunk) + one
        value(1, i) = slope
      end do
    end do
    !$omp end parallel do
    energy = sum(chunk_energy)
  end subroutine embed

  !> Find the forces on all local atoms; with `want_energy` the energy of the pairs (kcal/mol), else it is undefined.
  !> `slope(1, :)`: of the embedding energies of all local atoms, for embedded atoms.
  subroutine compute(self, want_energy, energy, slope)
    class(material_t), intent(inout) :: self
    logical, intent(in) :: want_energy
    real(real64), intent(out) :: energy
    real(real64), intent(in), optional :: slope(:, :)
    real(real64) :: block_energy(size(self%rows%block))
    integer :: b, s

    if (present(slope)) then
      !$omp parallel do schedule(static)
      do s = 1, self%rows%n_slots
        self%slope(s) = real(slope(1, self%rows%atom(s)), real_pair)
      end do
      !$omp end parallel do
    end if
    block_energy = 0.0_real64
    !$omp parallel do schedule(dynamic)
    do b = 1, size(self%rows%block)
      associate (block => self%rows%block(b))
        block%result = 0.0_real_pair
        if (present(slope)) then
          call self%kernels%add_embedded_atoms(want_energy, block, self%coordinate, self%unit, self%cutoff, self%table, &
                                               self%slope, block_energy(b))
        else
          call self%kernels%add_lennard_jones(want_energy, block, self%coordinate, self%unit, self%cutoff, self%lj, &
                                              block_energy(b))
        end if
      end associate
    end do
    !$omp end parallel do
    energy = sum(block_energy)
    call gather(self, 3, self%unit, self%force)
  end subroutine compute

  !> Add the forces found to `force`, (3, local atoms), kcal/mol/angstrom; `position`: (3, local atoms), angstrom. With
  !> `want_energy` give the virial, sum over pairs of r_ij f_ij (kcal/mol), too, else 0.
  subroutine add_forces(self, position, want_energy, force, virial)
    class(material_t), intent(in) :: self
    real(real64), intent(in) :: position(:, :)
    logical, intent(in) :: want_energy
    real(real64), intent(inout) :: force(:, :)
    real(real64), intent(out) :: virial(3, 3)
    real(real64) :: chunk_virial(3, 3, (self%n_total + chunk_atoms - 1)/chunk_atoms)
    integer :: chunk, i, axis
    chunk_virial = 0.0_real64
    !$omp parallel do schedule(static) private(i, axis)
    do chunk = 1, size(chunk_virial, 3)
      do i = (chunk - 1)*chunk_atoms + 1, min(self%n_total, chunk*chunk_atoms)
        force(:, i) = force(:, i) + self%force(:, i)
        if (.not. want_energy) cycle
        ! The sum of all these forces is zero, so that any origin serves.
        do axis = 1, 3
          chunk_virial(:, axis, chunk) = chunk_virial(:, axis, chunk) + (position(:, i) - self%origin)*self%force(axis, i)
        end do
      end do
    end do
    !$omp end parallel do
    virial = sum(chunk_virial, dim=3)
  end subroutine add_forces

  !> Sum the first `n` components of the blocks' results over the blocks, times `scale`.
  subroutine gather(self, n, scale, value)
    type(material_t), intent(in) :: self
    integer, intent(in) :: n
    real(real64), intent(in) :: scale
    real(real64), intent(inout) :: value(:, :)
    real(real64) :: total(3)
    integer :: part, s, b, first, last
    total = 0.0_real64
    if (self%rows%n_slots == 0) then
      value = 0.0_real64
      return
    end if
    !$omp parallel do schedule(static) private(s, b, first, last) firstprivate(total)
    do part = 1, size(self%rows%block)
      do s = self%rows%block(part)%first, self%rows%block(part)%last
        total(:n) = 0.0_real64
        ! Only blocks before this one, and it itself, add to its slots; a far one reaches less.
        do b = 1, part
          if (s > self%rows%block(b)%upper) cycle
          first = 4*(s - 1)
          last = first + n - 1
          total(:n) = total(:n) + real(self%rows%block(b)%result(first:last), real64)
        end do
        value(:, self%rows%atom(s)) = scale*total
      end do
    end do
    !$omp end parallel do
  end subroutine gather

end module material
