!> Layouts that a caller brings: made known to all ranks and checked.
module fft_user_layouts
  use, intrinsic :: iso_fortran_env, only: int64
  use mpi_f08, only: MPI_Allgather, MPI_Allgatherv, MPI_Comm, MPI_Comm_size, MPI_INTEGER
  use base_error, only: error_t, exit_bad_input, fail
  use fft_layout, only: box_t, layout_t
  implicit none
  private
  public :: gather_layouts, check_layouts

contains

  !> The layouts of all ranks, from 0.
  subroutine gather_layouts(comm, mine, all_layouts)
    type(MPI_Comm), intent(in) :: comm
    type(layout_t), intent(in) :: mine
    type(layout_t), allocatable, intent(out) :: all_layouts(:)
    integer :: n_ranks, r, b
    integer, allocatable :: length(:), first(:), numbers(:), all_numbers(:)

    call MPI_Comm_size(comm, n_ranks)
    allocate (length(0:n_ranks - 1), first(0:n_ranks - 1), all_layouts(0:n_ranks - 1))
    numbers = [mine%order, (mine%box(b)%lower, mine%box(b)%upper, b=1, size(mine%box))]
    call MPI_Allgather(size(numbers), 1, MPI_INTEGER, length, 1, MPI_INTEGER, comm)
    first(0) = 0
    do r = 1, n_ranks - 1
      first(r) = first(r - 1) + length(r - 1)
    end do
    allocate (all_numbers(sum(length)))
    call MPI_Allgatherv(numbers, size(numbers), MPI_INTEGER, all_numbers, length, first, MPI_INTEGER, comm)
    do r = 0, n_ranks - 1
      associate (layout => all_layouts(r), from => all_numbers(first(r) + 1:first(r) + length(r)))
        layout%order = from(1:3)
        allocate (layout%box((length(r) - 3)/6))
        do b = 1, size(layout%box)
          layout%box(b) = box_t(from(6*b - 2:6*b), from(6*b + 1:6*b + 3))
        end do
      end associate
    end do
  end subroutine gather_layouts

  !> Layouts must lie in the grid and hold no point twice; those of the grid must hold every point (`complete`).
  subroutine check_layouts(layouts, n, complete, error)
    type(layout_t), intent(in) :: layouts(0:)
    integer, intent(in) :: n(3)
    logical, intent(in) :: complete
    type(error_t), allocatable, intent(out) :: error
    character(len=160) :: message
    integer(int64) :: total
    integer :: r, b, axis

    total = 0
    do r = 0, size(layouts) - 1
      if (any([(count(layouts(r)%order == axis) /= 1, axis=1, 3)])) then
        write (message, "(a,i0,a,3(i0,1x),a)") "rank ", r, " gives the FFT axis order ", layouts(r)%order, &
          "which is no permutation of 1 2 3"
        call fail(error, exit_bad_input, trim(message))
        return
      end if
      do b = 1, size(layouts(r)%box)
        associate (box => layouts(r)%box(b))
          if (box%n_points() > 0 .and. (any(box%lower < 0) .or. any(box%upper >= n))) then
            write (message, "(a,i0,a,3(i0,1x),a,3(i0,1x),a,3(i0,1x))") "rank ", r, " gives the FFT a box from ", &
              box%lower, "to ", box%upper, "outside of a grid of ", n
            call fail(error, exit_bad_input, trim(message))
            return
          end if
          total = total + box%n_points()
        end associate
      end do
    end do
    if (total > product(int(n, int64)) .or. (complete .and. total /= product(int(n, int64)))) then
      write (message, "(a,i0,a,i0,a)") "the ranks together hold ", total, " points of a grid of ", &
        product(int(n, int64)), " for the FFT: each point must belong to one rank"
      call fail(error, exit_bad_input, trim(message))
    end if
  end subroutine check_layouts

end module fft_user_layouts
