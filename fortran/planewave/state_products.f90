!> Products of states: overlaps, rotations among states, and the inverse square root of an overlap matrix.
!>
!> Coefficients are complex on half of the sphere; overlaps are real. In memory they are pairs of real numbers, so both
!> products are real matrix products, of tall matrices: kernels of our own (products/) take these.
module state_products
  use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_loc, c_long, c_ptr
  use base_kinds, only: real64
  use base_error, only: error_t, exit_unstable, fail
  use comm_communicator, only: communicator_t
  use wave_sphere, only: sphere_t
  implicit none
  private
  public :: overlap, overlap_here, add_rotated, add_unit, inverse_square_root, starting_scale, has_settled, sum_matrix, &
            orthonormalise, symmetric, most_cycles, singular

  !> Rows of coefficients and columns that a thread takes at a time.
  integer, parameter :: row_block = 1536, column_block = 48, symmetric_block = 24
  !> Newton-Schulz cycles before a matrix counts as singular.
  integer, parameter :: most_cycles = 80
  character(len=*), parameter :: singular = "states have become linearly dependent (no inverse square root of their "// &
    "overlap); use a shorter time step or a larger electron mass, or another seed"

  interface
    !> s(m, n) = s + a(k, m)^T b(k, n), with so many numbers between columns.
    subroutine product_overlap(k, m, n, a, columns_a, b, columns_b, s, columns_s) bind(c)
      import :: c_double, c_long, c_ptr
      integer(c_long), value :: k, m, n, columns_a, columns_b, columns_s
      type(c_ptr), value :: a, b
      real(c_double), intent(inout) :: s(*)
    end subroutine product_overlap
    !> c(k, n) = c + a(k, m) x(m, n). `work`: of m (n + 80) numbers.
    subroutine product_rotate(k, m, n, a, columns_a, x, c, columns_c, work) bind(c)
      import :: c_double, c_long, c_ptr
      integer(c_long), value :: k, m, n, columns_a, columns_c
      type(c_ptr), value :: a, c
      real(c_double), intent(in) :: x(*)
      real(c_double), intent(inout) :: work(*)
    end subroutine product_rotate
  end interface

contains

  !> <a|b> over the whole sphere and all ranks: `s` (columns of a, columns of b). `is_symmetric`: that matrix is, but for
  !> rounding, so that half of it is computed.
  subroutine overlap(sphere, comm, a, b, s, is_symmetric)
    type(sphere_t), intent(in) :: sphere
    type(communicator_t), intent(in) :: comm
    complex(real64), contiguous, target, intent(in) :: a(:, :), b(:, :)
    real(real64), intent(out) :: s(:, :)
    logical, intent(in) :: is_symmetric
    call overlap_here(a, b, sphere%zero, s, is_symmetric)
    call sum_matrix(comm, s)
  end subroutine overlap

  !> What the rows held here (half of the sphere) add to <a|b>. `zero`: row of G = 0, 0 where there is none.
  subroutine overlap_here(a, b, zero, s, is_symmetric)
    complex(real64), contiguous, target, intent(in) :: a(:, :), b(:, :)
    integer, intent(in) :: zero
    real(real64), intent(out) :: s(:, :)
    logical, intent(in) :: is_symmetric
    real(real64), allocatable :: part(:, :)
    integer(c_long) :: n, m
    integer :: first, last, rows, width, k

    s = 0.0_real64
    n = 2*size(a, 1)
    m = size(a, 2)
    if (n == 0 .or. size(s) == 0) return
    ! Of a symmetric matrix each block of columns takes the rows down to its own last one.
    width = merge(symmetric_block, column_block, is_symmetric)
    !$omp parallel do private(last, rows, part, k) schedule(dynamic)
    do first = 1, size(b, 2), width
      last = min(first + width - 1, size(b, 2))
      rows = merge(last, int(m), is_symmetric)
      allocate (part(rows, last - first + 1), source=0.0_real64)
      call product_overlap(n, int(rows, c_long), int(last - first + 1, c_long), c_loc(a), n, c_loc(b(1, first)), n, part, &
                           int(rows, c_long))
      s(:rows, first:last) = 2.0_real64*part
      deallocate (part)
      if (zero > 0) then
        do k = first, last
          s(:rows, k) = s(:rows, k) - real(a(zero, :rows), real64)*real(b(zero, k), real64)
        end do
      end if
    end do
    if (.not. is_symmetric) return
    do k = 1, size(s, 2)
      s(k + 1:, k) = s(k, k + 1:)
    end do
  end subroutine overlap_here

  !> Sum a matrix over all ranks; every rank receives the same bits.
  subroutine sum_matrix(comm, s)
    type(communicator_t), intent(in) :: comm
    real(real64), intent(inout) :: s(:, :)
    real(real64), allocatable :: values(:)
    if (comm%n_ranks == 1 .or. size(s) == 0) return
    values = reshape(s, [size(s)])
    call comm%sum(values)
    s = reshape(values, shape(s))
  end subroutine sum_matrix

  !> target = target + states times a real matrix.
  subroutine add_rotated(states, matrix, target_states)
    complex(real64), contiguous, target, intent(in) :: states(:, :)
    real(real64), intent(in) :: matrix(:, :)
    complex(real64), contiguous, target, intent(inout) :: target_states(:, :)
    real(real64), contiguous, pointer :: from(:, :), to(:, :)
    real(real64) :: x(size(matrix, 1), size(matrix, 2))
    real(real64), allocatable :: work(:)
    integer(c_long) :: n, m, row
    n = 2*size(states, 1)
    m = size(states, 2)
    if (n == 0 .or. m == 0) return
    x = matrix
    call c_f_pointer(c_loc(states), from, [n, m])
    call c_f_pointer(c_loc(target_states), to, [n, size(x, 2, c_long)])
    !$omp parallel private(work)
    allocate (work(m*(size(x, 2) + 80)))
    !$omp do
    do row = 1, n, row_block
      call product_rotate(min(int(row_block, c_long), n - row + 1), m, size(x, 2, c_long), c_loc(from(row, 1)), n, x, &
                          c_loc(to(row, 1)), n, work)
    end do
    !$omp end do
    !$omp end parallel
  end subroutine add_rotated

  !> s^(-1/2) of a symmetric positive matrix by coupled Newton-Schulz cycles (three products each), to rounding. Far from
  !> the unit matrix `s` is scaled by its largest column sum first.
  subroutine inverse_square_root(s, root, error)
    real(real64), intent(in) :: s(:, :)
    real(real64), intent(out) :: root(:, :)
    type(error_t), allocatable, intent(out) :: error
    real(real64), allocatable :: y(:, :), w(:, :), last_root(:, :)
    real(real64) :: scale, change, last_change
    integer :: cycle_number

    allocate (y, source=s)
    allocate (w, last_root, mold=s)
    root = 0.0_real64
    call add_unit(root, 1.0_real64)
    if (size(s) == 0) return
    scale = starting_scale(sum(abs(s - root), 1), sum(abs(s), 1))
    y = s/scale
    last_change = huge(last_change)
    do cycle_number = 1, most_cycles
      w = -matmul(root, y)
      call add_unit(w, 3.0_real64)
      y = 0.5_real64*matmul(y, w)
      last_root = root
      root = 0.5_real64*matmul(w, root)
      change = maxval(abs(root - last_root))/maxval(abs(root))
      if (has_settled(change, last_change)) then
        root = symmetric(root)/sqrt(scale)
        return
      end if
      if (.not. change < huge(change)) exit
      last_change = change
    end do
    call fail(error, exit_unstable, singular)
  end subroutine inverse_square_root

  !> What an overlap matrix is divided by before the cycles, from the sums of the columns of |S - 1| and of |S|.
  pure real(real64) function starting_scale(from_one, whole)
    real(real64), intent(in) :: from_one(:), whole(:)
    starting_scale = 1.0_real64
    if (maxval(from_one) > 0.5_real64) starting_scale = maxval(whole)
  end function starting_scale

  !> Convergence is of second order: once relative changes are small and no longer shrink, only rounding is left.
  pure logical function has_settled(change, last_change)
    real(real64), intent(in) :: change, last_change
    has_settled = change < 1.0e-15_real64 .or. (change < 1.0e-10_real64 .and. change >= 0.5_real64*last_change)
  end function has_settled

  !> Add a multiple of the unit matrix.
  pure subroutine add_unit(a, amount)
    real(real64), intent(inout) :: a(:, :)
    real(real64), intent(in) :: amount
    integer :: k
    do k = 1, size(a, 1)
      a(k, k) = a(k, k) + amount
    end do
  end subroutine add_unit

  !> Half of a matrix and its transpose.
  pure function symmetric(a)
    real(real64), intent(in) :: a(:, :)
    real(real64) :: symmetric(size(a, 1), size(a, 2))
    symmetric = 0.5_real64*(a + transpose(a))
  end function symmetric

  !> Make states orthonormal: states S^(-1/2), which changes them least. `root`: receives S^(-1/2); `worst`: the largest
  !> difference of S from 1.
  subroutine orthonormalise(sphere, comm, states, error, root, worst)
    type(sphere_t), intent(in) :: sphere
    type(communicator_t), intent(in) :: comm
    complex(real64), contiguous, intent(inout) :: states(:, :)
    type(error_t), allocatable, intent(out) :: error
    real(real64), intent(out), optional :: root(:, :), worst
    complex(real64), allocatable :: old(:, :)
    real(real64), allocatable :: s(:, :), inverse(:, :)
    allocate (s(size(states, 2), size(states, 2)), inverse(size(states, 2), size(states, 2)))
    allocate (old, source=states)
    call overlap(sphere, comm, old, old, s, .true.)
    call inverse_square_root(s, inverse, error)
    if (allocated(error)) return
    states = 0.0_real64
    call add_rotated(old, inverse, states)
    if (present(root)) root = inverse
    if (.not. present(worst)) return
    call add_unit(s, -1.0_real64)
    worst = maxval(abs(s))
  end subroutine orthonormalise

end module state_products
