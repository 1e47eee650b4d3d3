!> Cholesky factorisation of a piece's damped block-tridiagonal matrix, in single precision.
module backbone_solver
  use backbone_model, only: unknowns, tail, head
  use iso_fortran_env, only: int32, real32
  implicit none
  private
  public :: factorise, substitute, padded

  integer(int32), parameter :: padded = 36 !! unknowns, rounded up to whole vector registers

contains

  !> Cholesky factor of the damped block-tridiagonal matrix, its diagonal inverted and apart, and the link blocks below
  !> the diagonal. Columns are padded with zeros, so that every loop runs over whole vector registers.
  pure subroutine factorise(from, to, hessian, coupling, damping, factor, inverse, link, definite)
    integer(int32), intent(in) :: from, to
    real(real32), intent(in) :: hessian(unknowns, unknowns, from:to), coupling(head, tail, from:to), damping
    real(real32), intent(out) :: factor(padded, unknowns, from:to) !! strictly below the diagonal
    real(real32), intent(out) :: inverse(unknowns, from:to), link(head, tail, from:to)
    logical, intent(out) :: definite
    integer(int32), parameter :: shift = unknowns - tail, upper = 16
    real(real32) :: work(padded, unknowns)
    integer(int32) :: i, j, k, c

    definite = .true.
    link(:, :, from) = 0
    work(unknowns + 1:, :) = 0
    do i = from, to
      work(:unknowns, :) = hessian(:, :, i)
      do j = 1, unknowns
        work(j, j) = work(j, j) + damping
      end do
      if (i > from) then
        do j = 1, tail
          link(:, j, i) = coupling(:, j, i)
          do k = 1, j - 1
            link(:, j, i) = link(:, j, i) - link(:, k, i) * factor(shift + j, shift + k, i - 1)
          end do
          link(:, j, i) = link(:, j, i) * inverse(shift + j, i - 1)
        end do
        do j = 1, head
          do k = 1, tail
            work(:head, j) = work(:head, j) - link(:, k, i) * link(j, k, i)
          end do
        end do
      end if
      do j = 1, unknowns, 3
        do c = j, j + 2
          do k = j, c - 1
            work(c:unknowns, c) = work(c:unknowns, c) - work(c:unknowns, k) * work(c, k)
          end do
          if (work(c, c) <= 0) then
            definite = .false.
            return
          end if
          inverse(c, i) = 1 / sqrt(work(c, c))
          work(c + 1:unknowns, c) = work(c + 1:unknowns, c) * inverse(c, i)
          work(:c, c) = 0
        end do
        if (j < upper) then
          do k = j + 3, unknowns
            work(:, k) = work(:, k) - work(:, j) * work(k, j) - work(:, j + 1) * work(k, j + 1) &
              - work(:, j + 2) * work(k, j + 2)
          end do
        else
          do k = j + 3, unknowns
            work(upper + 1:, k) = work(upper + 1:, k) - work(upper + 1:, j) * work(k, j) &
              - work(upper + 1:, j + 1) * work(k, j + 1) - work(upper + 1:, j + 2) * work(k, j + 2)
          end do
        end if
      end do
      factor(:, :, i) = work
    end do
  end subroutine factorise

  !> Solves with the factor in place.
  pure subroutine substitute(from, to, factor, inverse, link, x)
    integer(int32), intent(in) :: from, to
    real(real32), intent(in) :: factor(padded, unknowns, from:to), inverse(unknowns, from:to)
    real(real32), intent(in) :: link(head, tail, from:to)
    real(real32), intent(inout) :: x(unknowns, from:to)
    integer(int32), parameter :: shift = unknowns - tail
    real(real32) :: y(padded), partial(4)
    integer(int32) :: i, j, k

    y = 0
    do i = from, to
      y(:unknowns) = x(:, i)
      if (i > from) then
        do k = 1, tail
          y(:head) = y(:head) - link(:, k, i) * x(shift + k, i - 1)
        end do
      end if
      do j = 1, unknowns
        x(j, i) = y(j) * inverse(j, i)
        y = y - factor(:, j, i) * x(j, i)
      end do
    end do
    do i = to, from, -1
      y(:unknowns) = x(:, i)
      if (i < to) then
        do k = 1, tail
          y(shift + k) = y(shift + k) - dot_product(link(:, k, i + 1), x(:head, i + 1))
        end do
      end if
      do j = unknowns, 1, -1
        ! Four partial sums, always the same: a vector register's worth.
        partial = 0
        do k = 1, padded, 4
          partial = partial + factor(k:k + 3, j, i) * y(k:k + 3)
        end do
        y(j) = (y(j) - ((partial(1) + partial(3)) + (partial(2) + partial(4)))) * inverse(j, i)
      end do
      x(:, i) = y(:unknowns)
    end do
  end subroutine substitute

end module backbone_solver
