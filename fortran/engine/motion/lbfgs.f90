!> Directions of the limited-memory BFGS method by the two-loop recursion (Nocedal, Math. Comput. 35, 773 (1980)). The
!> atoms are spread over ranks; sums do not depend on the number of threads, in the deterministic mode not on that of ranks.
module lbfgs
  use base_kinds, only: int64, real64
  use comm_communicator, only: communicator_t
  use base_fixed_point, only: rounding_t
  implicit none
  private
  public :: lbfgs_t

  !> Steps that are remembered; each takes 48 bytes an atom.
  integer, parameter :: n_remembered = 6
  !> Atoms whose sums are formed one after another.
  integer, parameter :: block_size = 4096

  type :: lbfgs_t
    private
    type(rounding_t) :: rounding
    !> Atoms of all ranks.
    integer(int64) :: n_atoms = 0
    !> Number of steps at hand, and the place of the newest.
    integer, public :: n_known = 0
    integer :: newest = 0
    !> Changes of positions and of the gradient, (3, atoms of this rank, step), and their products.
    real(real64), allocatable :: step(:, :, :), change(:, :, :)
    real(real64) :: product(n_remembered) = 0.0_real64
    !> Inverse curvature along the newest step.
    real(real64) :: scale = 1.0_real64
  contains
    procedure :: init
    procedure :: forget
    procedure :: learn
    procedure :: direction
    procedure :: dot
    procedure :: hand_over
    procedure :: take_back
  end type lbfgs_t

contains

  !> `n_atoms`: of all ranks.
  subroutine init(self, rounding, n_atoms)
    class(lbfgs_t), intent(out) :: self
    type(rounding_t), intent(in) :: rounding
    integer(int64), intent(in) :: n_atoms
    self%rounding = rounding
    self%n_atoms = n_atoms
  end subroutine init

  !> Forget all steps, because the energy rose.
  subroutine forget(self)
    class(lbfgs_t), intent(inout) :: self
    self%n_known = 0
  end subroutine forget

  !> Hand over what is remembered of each atom, (numbers, atoms), before atoms get a new order.
  subroutine hand_over(self, carried)
    class(lbfgs_t), intent(inout) :: self
    real(real64), allocatable, intent(out) :: carried(:, :)
    integer :: k, m
    if (self%n_known == 0) return
    allocate (carried(6*self%n_known, size(self%step, 2)))
    do k = 1, self%n_known
      m = modulo(self%newest - k, n_remembered) + 1
      carried(6*k - 5:6*k - 3, :) = self%step(:, :, m)
      carried(6*k - 2:6*k, :) = self%change(:, :, m)
    end do
    deallocate (self%step, self%change)
  end subroutine hand_over

  !> Take back what was handed over, which is given up, in the new order.
  subroutine take_back(self, carried)
    class(lbfgs_t), intent(inout) :: self
    real(real64), allocatable, intent(inout) :: carried(:, :)
    integer :: k, m
    if (.not. allocated(carried)) return
    allocate (self%step(3, size(carried, 2), n_remembered), self%change(3, size(carried, 2), n_remembered))
    do k = 1, self%n_known
      m = modulo(self%newest - k, n_remembered) + 1
      self%step(:, :, m) = carried(6*k - 5:6*k - 3, :)
      self%change(:, :, m) = carried(6*k - 2:6*k, :)
    end do
    deallocate (carried)
  end subroutine take_back

  !> Scalar product over the atoms of all ranks of two vectors, (3, atoms of this rank) each.
  real(real64) function dot(self, comm, a, b)
    class(lbfgs_t), intent(in) :: self
    type(communicator_t), intent(in) :: comm
    real(real64), intent(in) :: a(:, :), b(:, :)
    real(real64) :: total(1), largest
    call add_up(a, b, 0.0_real64, total(1), largest)
    ! The largest product says how finely the products may be rounded.
    if (self%rounding%is_on()) &
      call add_up(a, b, self%rounding%for_sum(comm%maximum(largest), self%n_atoms), total(1), largest)
    call comm%sum(total)
    dot = total(1)
  end function dot

  !> Sum of the atoms' products, each rounded by adding `coarse` and taking it away, and the largest magnitude of them.
  subroutine add_up(a, b, coarse, total, largest)
    real(real64), intent(in) :: a(:, :), b(:, :), coarse
    real(real64), intent(out) :: total, largest
    real(real64) :: sums((size(a, 2) + block_size - 1)/block_size), product
    integer :: block, i
    largest = 0.0_real64
    !$omp parallel do schedule(static) private(i, product) reduction(max: largest)
    do block = 1, size(sums)
      sums(block) = 0.0_real64
      do i = (block - 1)*block_size + 1, min(size(a, 2), block*block_size)
        product = a(1, i)*b(1, i) + a(2, i)*b(2, i) + a(3, i)*b(3, i)
        sums(block) = sums(block) + ((product + coarse) - coarse)
        largest = max(largest, abs(product))
      end do
    end do
    !$omp end parallel do
    total = sum(sums)
  end subroutine add_up

  !> Remember a step (angstrom) and the change of the gradient (kcal/mol/angstrom) over it, (3, atoms of this rank) each.
  !> Where the energy curves down there is nothing to learn.
  subroutine learn(self, comm, step, change)
    class(lbfgs_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    real(real64), intent(in) :: step(:, :), change(:, :)
    real(real64) :: along, curvature
    along = self%dot(comm, step, change)
    curvature = self%dot(comm, change, change)
    if (.not. along > 1.0e-10_real64*curvature) return
    if (self%n_known == 0 .and. allocated(self%step)) deallocate (self%step, self%change)
    if (.not. allocated(self%step)) &
      allocate (self%step(3, size(step, 2), n_remembered), self%change(3, size(step, 2), n_remembered))
    self%newest = mod(self%newest, n_remembered) + 1
    self%n_known = min(self%n_known + 1, n_remembered)
    self%step(:, :, self%newest) = step
    self%change(:, :, self%newest) = change
    self%product(self%newest) = along
    self%scale = along/curvature
  end subroutine learn

  !> Where to go under these forces (kcal/mol/angstrom): the estimated inverse Hessian times them, angstrom; both (3, atoms
  !> of this rank).
  subroutine direction(self, comm, force, way)
    class(lbfgs_t), intent(in) :: self
    type(communicator_t), intent(in) :: comm
    real(real64), intent(in) :: force(:, :)
    real(real64), intent(out) :: way(:, :)
    real(real64) :: weight(n_remembered), correction
    integer :: k, m
    way = force
    do k = 0, self%n_known - 1
      m = modulo(self%newest - 1 - k, n_remembered) + 1
      weight(m) = self%dot(comm, self%step(:, :, m), way)/self%product(m)
      call add(way, -weight(m), self%change(:, :, m))
    end do
    way = self%scale*way
    do k = self%n_known - 1, 0, -1
      m = modulo(self%newest - 1 - k, n_remembered) + 1
      correction = weight(m) - self%dot(comm, self%change(:, :, m), way)/self%product(m)
      call add(way, correction, self%step(:, :, m))
    end do
  end subroutine direction

  !> Add a multiple of a vector, (3, atoms of this rank), to another.
  subroutine add(sum, factor, other)
    real(real64), intent(inout) :: sum(:, :)
    real(real64), intent(in) :: factor, other(:, :)
    integer :: i
    !$omp parallel do schedule(static)
    do i = 1, size(sum, 2)
      sum(:, i) = sum(:, i) + factor*other(:, i)
    end do
    !$omp end parallel do
  end subroutine add

end module lbfgs
