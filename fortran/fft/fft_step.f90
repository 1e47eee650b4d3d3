!> The steps of a transform, each an exchange or transforms of lines, and the static order in which their chunks run.
module fft_step
  use, intrinsic :: iso_c_binding, only: c_associated, c_f_pointer, c_loc, c_ptr
  use, intrinsic :: iso_fortran_env, only: int64, real32
  use omp_lib, only: omp_get_max_threads, omp_get_num_threads, omp_get_thread_num
  use fft_block_copy, only: at_byte
  use fft_exchange, only: exchange_t
  use fft_layout, only: share_lower, share_upper
  use fft_lines, only: line_transform_t, run_plane
  implicit none
  private
  public :: step_t, path_t, chunk_range, make_schedule, run_transform, start_exchange, finish_exchange, transform

  !> Runs of lines (first, number) of one chunk.
  type :: line_runs_t
    integer, allocatable :: run(:, :)
  end type line_runs_t

  !> One step of a transform: an exchange, or transforms of lines on one or two axes.
  type :: step_t
    logical :: is_exchange = .false.
    !> Arrays: 0 the input, 1 the output, 2.. work.
    integer :: from = 0, to = 0
    integer(int64) :: to_bytes = 0
    !> Axis along which it is cut into chunks (0: not), and the range that is cut.
    integer :: chop_axis = 0, chop_range(2) = [0, -1]
    !> Exchange: one for each chunk; the communicator's number; bytes to clear in the target first.
    type(exchange_t), allocatable :: exchange(:)
    integer :: group = 0, buffer = 0, width = 8
    integer(int64) :: clear_bytes = 0
    !> Transform: lines along each axis; lines in the whole array (one axis) or in each plane (two axes), and planes.
    type(line_transform_t) :: transform(2)
    integer :: n_axes = 0, n_lines(2) = 0, n_planes = 0
    logical :: in_place = .false.
    type(line_runs_t), allocatable :: chunk(:)
  end type step_t

  integer, parameter :: start_exchange = 1, finish_exchange = 2, transform = 3

  !> A transform in one direction.
  type :: path_t
    type(step_t), allocatable :: step(:)
    integer :: n_steps = 0
    !> (what, step, chunk) in order.
    integer, allocatable :: schedule(:, :)
  end type path_t

contains

  !> Indices of a chunk.
  pure function chunk_range(step, n_chunks, chunk) result(range)
    type(step_t), intent(in) :: step
    integer, intent(in) :: n_chunks, chunk
    integer :: range(2), n
    n = step%chop_range(2) - step%chop_range(1) + 1
    range = step%chop_range(1) + [share_lower(n, n_chunks, chunk - 1), share_upper(n, n_chunks, chunk - 1)]
  end function chunk_range

  !> The order of operations, the same on all ranks. Steps that are cut along the same axis form a pipeline: chunk k + 1
  !> is sent along one axis while chunk k is transformed and sent along the next.
  subroutine make_schedule(path, n_chunks, overlap_axes)
    type(path_t), intent(inout) :: path
    integer, intent(in) :: n_chunks
    logical, intent(in) :: overlap_axes
    integer, allocatable :: operation(:, :)
    integer :: first, last, n, t, depth, deepest, k, chunk, count_here
    integer :: depth_of(size(path%step))

    allocate (operation(3, 2*size(path%step)*n_chunks))
    n = 0
    first = 1
    do while (first <= path%n_steps)
      last = first
      do while (last < path%n_steps)
        if (path%step(first)%chop_axis == 0 .or. path%step(last + 1)%chop_axis /= path%step(first)%chop_axis) exit
        if (.not. overlap_axes .and. any(path%step(first:last)%is_exchange) .and. path%step(last + 1)%is_exchange) exit
        last = last + 1
      end do
      count_here = merge(n_chunks, 1, path%step(first)%chop_axis > 0)
      ! Depth: how many exchanges of the pipeline data have behind them after a step.
      deepest = 0
      do k = first, last
        if (path%step(k)%is_exchange) deepest = deepest + 1
        depth_of(k) = deepest
      end do
      do t = 0, count_here - 1 + deepest
        do depth = deepest, 0, -1
          chunk = t - depth + 1
          if (chunk < 1 .or. chunk > count_here) cycle
          do k = first, last
            if (depth_of(k) == depth) call append(merge(finish_exchange, transform, path%step(k)%is_exchange))
          end do
          do k = first, last
            if (depth_of(k) == depth + 1 .and. path%step(k)%is_exchange) call append(start_exchange)
          end do
        end do
      end do
      first = last + 1
    end do
    path%schedule = operation(:, :n)

  contains

    subroutine append(what)
      integer, intent(in) :: what
      n = n + 1
      operation(:, n) = [what, k, chunk]
    end subroutine append

  end subroutine make_schedule

  !> Transforms of a chunk: lines in blocks dealt to the threads, or planes.
  subroutine run_transform(step, chunk, from, to)
    type(step_t), intent(in) :: step
    integer, intent(in) :: chunk
    type(c_ptr), intent(in) :: from, to
    integer(int64) :: bytes(2)
    integer :: plane, k, line, block

    if (step%n_axes == 2) then
      bytes = plane_bytes(step)
      if (c_associated(from, to) .and. bytes(1) /= bytes(2)) then
        call run_planes_in_place(step, bytes(1), bytes(2), to)
        return
      end if
      !$omp parallel do schedule(static)
      do plane = 0, step%n_planes - 1
        call run_plane(step%transform, plane, step%n_lines, from, to)
      end do
      !$omp end parallel do
      return
    end if
    do k = 1, size(step%chunk(chunk)%run, 2)
      associate (first => step%chunk(chunk)%run(1, k), n_lines => step%chunk(chunk)%run(2, k))
        ! Enough for all threads, and where there are many lines long runs of memory.
        block = 64*max(1, min(4, n_lines/1024))
        !$omp parallel do schedule(static) if(n_lines > block)
        do line = first, first + n_lines - 1, block
          call step%transform(1)%run(line, min(block, first + n_lines - line), from, to)
        end do
        !$omp end parallel do
      end associate
    end do
  end subroutine run_transform

  !> Bytes of a plane before its transforms and after them.
  pure function plane_bytes(step) result(bytes)
    type(step_t), intent(in) :: step
    integer(int64) :: bytes(2)
    associate (first => step%transform(1), last => step%transform(2))
      bytes = [int(first%width_in, int64)*first%length_in*step%n_lines(1), &
               int(last%width_out, int64)*last%length_out*step%n_lines(2)]
    end associate
  end function plane_bytes

  !> Planes that become larger or smaller on the way, all in one array: each thread copies a plane, and when all have done
  !> so transforms it to where it belongs. Planes that grow go last first, so that none is overwritten before its turn.
  subroutine run_planes_in_place(step, bytes_in, bytes_out, array)
    type(step_t), intent(in) :: step
    integer(int64), intent(in) :: bytes_in, bytes_out
    type(c_ptr), intent(in) :: array
    real(real32), allocatable, target :: copy(:, :)
    real(real32), pointer, contiguous :: plane_now(:)
    integer :: batch, plane, me, n_threads

    ! Each on cache lines of its own.
    allocate (copy((bytes_in/64 + 1)*16, 0:omp_get_max_threads() - 1))
    !$omp parallel private(batch, plane, me, n_threads, plane_now)
    me = omp_get_thread_num()
    n_threads = omp_get_num_threads()
    do batch = 0, step%n_planes - 1, n_threads
      plane = batch + me
      if (bytes_out > bytes_in) plane = step%n_planes - 1 - plane
      if (batch + me < step%n_planes) then
        call c_f_pointer(at_byte(array, plane*bytes_in), plane_now, [bytes_in/4])
        copy(:bytes_in/4, me) = plane_now
      end if
      !$omp barrier
      if (batch + me < step%n_planes) &
        call run_plane(step%transform, 0, step%n_lines, c_loc(copy(1, me)), at_byte(array, plane*bytes_out))
      !$omp barrier
    end do
    !$omp end parallel
  end subroutine run_planes_in_place

end module fft_step
