!> Least-squares re-adjustment of a few dozen atoms: distances held at reference values, overlaps pushed apart.
!>
!> Bonds are 1-2 distances and angles 1-3 distances; planar groups and stereocentres are volumes of four atoms.
!> Levenberg-Marquardt with a dense Cholesky solve, in one thread and in a fixed order: the result is always the same.
module local_relaxation
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: relax_group

  !> below this a pair has no usable direction
  real(real64), parameter :: coincident = 1.0e-6_real64

contains

  !> Minimise the sum of squared residuals: weight (d - target) of every distance, weight (V - target) of every volume,
  !> weight (contact - d) of every contact pair that is too close, and tether (x - x0) of every coordinate.
  subroutine relax_group(n_movable, position, restraint, target_distance, restraint_weight, volume, target_volume, &
      volume_weight, contact, contact_distance, contact_weight, tether, max_iterations, cost)
    !> the first n_movable atoms move
    integer(int32), intent(in) :: n_movable
    !> (3, atoms) angstrom
    real(real64), intent(inout) :: position(:, :)
    !> (2, restraints) 0-based atoms
    integer(int32), intent(in) :: restraint(:, :)
    !> (restraints) angstrom
    real(real64), intent(in) :: target_distance(:)
    !> (restraints) 1 / standard deviation
    real(real64), intent(in) :: restraint_weight(:)
    !> (4, volumes) 0-based atoms p, a, b, c of V = (a - p) . ((b - p) x (c - p))
    integer(int32), intent(in) :: volume(:, :)
    !> (volumes) angstrom^3
    real(real64), intent(in) :: target_volume(:)
    !> (volumes) 1 / standard deviation
    real(real64), intent(in) :: volume_weight(:)
    !> (2, contacts) 0-based atoms
    integer(int32), intent(in) :: contact(:, :)
    !> (contacts) angstrom
    real(real64), intent(in) :: contact_distance(:)
    !> 1 / angstrom
    real(real64), intent(in) :: contact_weight
    !> 1 / angstrom
    real(real64), intent(in) :: tether
    integer(int32), intent(in) :: max_iterations
    !> final sum of squares
    real(real64), intent(out) :: cost

    integer(int32) :: n, iteration, attempt, k
    real(real64) :: damping, trial_cost
    real(real64), allocatable :: normal(:, :), gradient(:), damped(:, :), step(:), start(:, :), trial(:, :)
    logical :: solved, better

    n = 3*n_movable
    allocate (normal(n, n), gradient(n), damped(n, n), step(n))
    start = position
    trial = position
    damping = 1.0e-3_real64
    do iteration = 1, max_iterations
      call assemble(position, cost, normal, gradient)
      better = .false.
      do attempt = 1, 5
        damped = normal
        do k = 1, n
          damped(k, k) = normal(k, k)*(1 + damping) + 1.0e-12_real64
        end do
        step = -gradient
        call solve_cholesky(n, damped, step, solved)
        if (solved) then
          trial(:, :n_movable) = position(:, :n_movable) + reshape(step, [3, n_movable])
          call assemble(trial, trial_cost)
          better = trial_cost < cost
        end if
        if (better) exit
        damping = damping*10
      end do
      if (.not. better) exit
      position(:, :n_movable) = trial(:, :n_movable)
      damping = max(damping*0.2_real64, 1.0e-9_real64)
      if (cost - trial_cost < 1.0e-3_real64*cost) exit
    end do
    call assemble(position, cost)

  contains

    !> Sum of squares and, when asked for, the normal equations.
    subroutine assemble(x, total, matrix, vector)
      real(real64), intent(in) :: x(:, :)
      real(real64), intent(out) :: total
      real(real64), intent(out), optional :: matrix(n, n), vector(n)

      integer(int32) :: i

      total = 0
      if (present(matrix)) matrix = 0
      if (present(vector)) vector = 0
      do i = 1, size(restraint, 2)
        call add_pair(x, restraint(:, i) + 1, target_distance(i), restraint_weight(i), .false., total, matrix, vector)
      end do
      do i = 1, size(volume, 2)
        call add_volume(x, volume(:, i) + 1, target_volume(i), volume_weight(i), total, matrix, vector)
      end do
      do i = 1, size(contact, 2)
        call add_pair(x, contact(:, i) + 1, contact_distance(i), contact_weight, .true., total, matrix, vector)
      end do
      do i = 1, n_movable
        total = total + tether**2*sum((x(:, i) - start(:, i))**2)
        if (.not. present(matrix)) cycle
        do k = 1, 3
          matrix(3*(i - 1) + k, 3*(i - 1) + k) = matrix(3*(i - 1) + k, 3*(i - 1) + k) + tether**2
        end do
        vector(3*i - 2:3*i) = vector(3*i - 2:3*i) + tether**2*(x(:, i) - start(:, i))
      end do
    end subroutine assemble

    !> One distance residual; a one-sided pair counts only when it is too close.
    subroutine add_pair(x, ends, goal, weight, one_sided, total, matrix, vector)
      real(real64), intent(in) :: x(:, :), goal, weight
      integer(int32), intent(in) :: ends(2)
      logical, intent(in) :: one_sided
      real(real64), intent(inout) :: total
      real(real64), intent(inout), optional :: matrix(n, n), vector(n)

      real(real64) :: r(3), d, slope(3, 2)

      r = x(:, ends(1)) - x(:, ends(2))
      d = norm2(r)
      if (one_sided .and. d >= goal) return
      if (d < coincident) then
        slope(:, 1) = [weight, 0.0_real64, 0.0_real64]
      else
        slope(:, 1) = weight*r/d
      end if
      slope(:, 2) = -slope(:, 1)
      call add_residual(ends, weight*(d - goal), slope, total, matrix, vector)
    end subroutine add_pair

    !> One volume residual.
    subroutine add_volume(x, corner, goal, weight, total, matrix, vector)
      real(real64), intent(in) :: x(:, :), goal, weight
      integer(int32), intent(in) :: corner(4)
      real(real64), intent(inout) :: total
      real(real64), intent(inout), optional :: matrix(n, n), vector(n)

      real(real64) :: a(3), b(3), c(3), slope(3, 4)

      a = x(:, corner(2)) - x(:, corner(1))
      b = x(:, corner(3)) - x(:, corner(1))
      c = x(:, corner(4)) - x(:, corner(1))
      slope(:, 2) = weight*cross(b, c)
      slope(:, 3) = weight*cross(c, a)
      slope(:, 4) = weight*cross(a, b)
      slope(:, 1) = -slope(:, 2) - slope(:, 3) - slope(:, 4)
      call add_residual(corner, dot_product(a, slope(:, 2)) - weight*goal, slope, total, matrix, vector)
    end subroutine add_volume

    !> Add a residual with its derivatives by the coordinates of some atoms.
    subroutine add_residual(member, residual, slope, total, matrix, vector)
      integer(int32), intent(in) :: member(:)
      real(real64), intent(in) :: residual, slope(:, :)
      real(real64), intent(inout) :: total
      real(real64), intent(inout), optional :: matrix(n, n), vector(n)

      integer(int32) :: a, b, p, q

      total = total + residual**2
      if (.not. present(matrix)) return
      do a = 1, size(member)
        if (member(a) > n_movable) cycle
        p = 3*(member(a) - 1)
        vector(p + 1:p + 3) = vector(p + 1:p + 3) + residual*slope(:, a)
        do b = 1, size(member)
          if (member(b) > n_movable) cycle
          q = 3*(member(b) - 1)
          matrix(p + 1:p + 3, q + 1:q + 3) = matrix(p + 1:p + 3, q + 1:q + 3) &
            + spread(slope(:, a), 2, 3)*spread(slope(:, b), 1, 3)
        end do
      end do
    end subroutine add_residual

  end subroutine relax_group

  !> Vector product.
  pure function cross(a, b) result(c)
    real(real64), intent(in) :: a(3), b(3)
    real(real64) :: c(3)
    c = [a(2)*b(3) - a(3)*b(2), a(3)*b(1) - a(1)*b(3), a(1)*b(2) - a(2)*b(1)]
  end function cross

  !> Solve a symmetric positive definite system in place; the lower triangle is overwritten by its factor.
  !> Each column is followed only down to its last entry: bonded neighbours are near the diagonal.
  pure subroutine solve_cholesky(n, matrix, vector, solved)
    integer(int32), intent(in) :: n
    real(real64), intent(inout) :: matrix(n, n), vector(n)
    logical, intent(out) :: solved

    integer(int32) :: j, k, last(n), e

    solved = .false.
    do j = 1, n
      last(j) = j
      do k = n, j + 1, -1
        if (matrix(k, j) /= 0) then
          last(j) = k
          exit
        end if
      end do
    end do
    do j = 1, n
      if (matrix(j, j) <= 0) return
      e = last(j)
      matrix(j, j) = sqrt(matrix(j, j))
      matrix(j + 1:e, j) = matrix(j + 1:e, j)/matrix(j, j)
      do k = j + 1, e
        if (matrix(k, j) == 0) cycle
        matrix(k:e, k) = matrix(k:e, k) - matrix(k, j)*matrix(k:e, j)
        last(k) = max(last(k), e)
      end do
    end do
    do j = 1, n
      vector(j) = vector(j)/matrix(j, j)
      vector(j + 1:last(j)) = vector(j + 1:last(j)) - vector(j)*matrix(j + 1:last(j), j)
    end do
    do j = n, 1, -1
      vector(j) = (vector(j) - dot_product(matrix(j + 1:last(j), j), vector(j + 1:last(j))))/matrix(j, j)
    end do
    solved = .true.
  end subroutine solve_cholesky

end module local_relaxation
