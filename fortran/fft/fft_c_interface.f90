!> The FFT library for C and what calls C: plans are opaque pointers; functions that can fail return 0 or an exit code
!> and write a sentence.
module fft_c_interface
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_f_pointer, c_int, c_int64_t, c_loc, c_null_char, &
    c_null_ptr, c_ptr
  use mpi_f08, only: MPI_COMM_WORLD
  use base_error, only: error_t
  use fft_distributed, only: distributed_fft_t, exchange_count_t, fft_options_t, MPI_Comm
  use fft_layout, only: layout_t
  implicit none
  private

  !> The options of a plan as in fft_options_t; names end with a null character.
  type, bind(c) :: c_options_t
    character(kind=c_char) :: scheme(16), transport(16), subset(16)
    integer(c_int) :: grid(3), n_chunks, overlap_axes, n_batch, is_real, bytes, wave_order(3), ranks_a_node
  end type c_options_t

contains

  !> The communicator of all ranks, as plans take it.
  integer(c_int) function fft_world() bind(c, name="chromafft_world")
    fft_world = MPI_COMM_WORLD%mpi_val
  end function fft_world

  !> Make a plan on the communicator `comm` (Fortran handle). `real_boxes`, `wave_boxes`: axis order (3; 1, 2, 3 for x,
  !> y, z, fastest first), then lower and upper corner (6) of each box that this rank holds; a number of boxes of -1
  !> leaves the layout to the scheme. `message`: at least 256 characters.
  integer(c_int) function fft_create(comm, n, options, n_real_boxes, real_boxes, n_wave_boxes, wave_boxes, plan, &
    message) bind(c, name="chromafft_create")
    integer(c_int), value :: comm, n_real_boxes, n_wave_boxes
    integer(c_int), intent(in) :: n(3), real_boxes(*), wave_boxes(*)
    type(c_options_t), intent(in) :: options
    type(c_ptr), intent(out) :: plan
    character(kind=c_char), intent(out) :: message(256)
    type(distributed_fft_t), pointer :: fft
    type(fft_options_t) :: wanted
    type(layout_t), allocatable :: real_layout, wave_layout
    type(error_t), allocatable :: error
    type(MPI_Comm) :: communicator
    integer :: k

    wanted%scheme = name_of(options%scheme)
    wanted%transport = name_of(options%transport)
    wanted%subset = name_of(options%subset)
    wanted%grid = options%grid
    wanted%n_chunks = options%n_chunks
    wanted%overlap_axes = options%overlap_axes /= 0
    wanted%n_batch = options%n_batch
    wanted%is_real = options%is_real /= 0
    wanted%bytes = options%bytes
    wanted%wave_order = options%wave_order
    wanted%ranks_a_node = options%ranks_a_node
    if (n_real_boxes >= 0) real_layout = layout_of(n_real_boxes, real_boxes)
    if (n_wave_boxes >= 0) wave_layout = layout_of(n_wave_boxes, wave_boxes)
    communicator%mpi_val = comm
    plan = c_null_ptr
    message = c_null_char
    allocate (fft)
    call fft%create(communicator, n, error, wanted, real_layout, wave_layout)
    fft_create = 0
    if (allocated(error)) then
      fft_create = error%code
      do k = 1, min(255, len(error%message))
        message(k) = error%message(k:k)
      end do
      call fft%destroy()
      deallocate (fft)
      return
    end if
    plan = c_loc(fft)
  end function fft_create

  !> Begin a transform: direction 1 forward (grid to waves), 2 backward, which overwrites its input.
  subroutine fft_start(plan, direction, input, output) bind(c, name="chromafft_start")
    type(c_ptr), value :: plan, input, output
    integer(c_int), value :: direction
    type(distributed_fft_t), pointer :: fft
    call c_f_pointer(plan, fft)
    call fft%start(direction, input, output)
  end subroutine fft_start

  !> Go on without waiting; 1 when complete.
  integer(c_int) function fft_progress(plan) bind(c, name="chromafft_progress")
    type(c_ptr), value :: plan
    type(distributed_fft_t), pointer :: fft
    call c_f_pointer(plan, fft)
    fft_progress = merge(1, 0, fft%progress())
  end function fft_progress

  !> Complete the transform that was started.
  subroutine fft_finish(plan) bind(c, name="chromafft_finish")
    type(c_ptr), value :: plan
    type(distributed_fft_t), pointer :: fft
    call c_f_pointer(plan, fft)
    call fft%finish()
  end subroutine fft_finish

  !> Number of boxes that this rank holds of the grid (0) or the waves (1); their axis order and corners as in
  !> chromafft_create, if `boxes` is long enough (`capacity` boxes).
  integer(c_int) function fft_layout_boxes(plan, side, capacity, boxes) bind(c, name="chromafft_layout")
    type(c_ptr), value :: plan
    integer(c_int), value :: side, capacity
    integer(c_int), intent(inout) :: boxes(3 + 6*capacity)
    type(distributed_fft_t), pointer :: fft
    type(layout_t) :: layout
    integer :: k
    call c_f_pointer(plan, fft)
    layout = fft%real_layout
    if (side == 1) layout = fft%wave_layout
    fft_layout_boxes = size(layout%box)
    if (size(layout%box) > capacity) return
    boxes(1:3) = layout%order
    do k = 1, size(layout%box)
      boxes(6*k - 2:6*k + 3) = [layout%box(k)%lower, layout%box(k)%upper]
    end do
  end function fft_layout_boxes

  !> Number of exchanges of the forward transform; for the first `capacity` of them: ranks that take part, messages and
  !> bytes that this rank sends to others.
  integer(c_int) function fft_counts(plan, capacity, counts) bind(c, name="chromafft_counts")
    type(c_ptr), value :: plan
    integer(c_int), value :: capacity
    integer(c_int64_t), intent(inout) :: counts(3, capacity)
    type(distributed_fft_t), pointer :: fft
    type(exchange_count_t), allocatable :: list(:)
    integer :: k
    call c_f_pointer(plan, fft)
    allocate (list, source=fft%counts())
    fft_counts = size(list)
    do k = 1, min(capacity, size(list))
      counts(:, k) = [int(list(k)%n_ranks, c_int64_t), int(list(k)%n_messages, c_int64_t), list(k)%n_bytes]
    end do
  end function fft_counts

  !> What the planner chose, "scheme subset Px Py Pz", and most exchanges (and axes) under way at once in the last
  !> transform.
  subroutine fft_choice(plan, text, under_way) bind(c, name="chromafft_choice")
    type(c_ptr), value :: plan
    character(kind=c_char), intent(out) :: text(64)
    integer(c_int), intent(out) :: under_way(2)
    type(distributed_fft_t), pointer :: fft
    character(len=63) :: line
    integer :: k
    call c_f_pointer(plan, fft)
    write (line, "(a,1x,a,3(1x,i0))") trim(fft%options%scheme), trim(fft%options%subset), fft%options%grid
    text = c_null_char
    do k = 1, len_trim(line)
      text(k) = line(k:k)
    end do
    under_way = [fft%most_under_way, fft%most_axes_under_way]
  end subroutine fft_choice

  !> Seconds of a forward transform by the cost model.
  real(c_double) function fft_estimate(plan) bind(c, name="chromafft_estimate")
    type(c_ptr), value :: plan
    type(distributed_fft_t), pointer :: fft
    call c_f_pointer(plan, fft)
    fft_estimate = fft%estimate()
  end function fft_estimate

  !> Give the plan back; all its ranks must call it.
  subroutine fft_destroy(plan) bind(c, name="chromafft_destroy")
    type(c_ptr), value :: plan
    type(distributed_fft_t), pointer :: fft
    call c_f_pointer(plan, fft)
    call fft%destroy()
    deallocate (fft)
  end subroutine fft_destroy

  pure function name_of(text) result(name)
    character(kind=c_char), intent(in) :: text(16)
    character(len=16) :: name
    integer :: k
    name = ""
    do k = 1, 16
      if (text(k) == c_null_char) exit
      name(k:k) = text(k)
    end do
  end function name_of

  pure function layout_of(n_boxes, numbers) result(layout)
    integer(c_int), intent(in) :: n_boxes, numbers(3 + 6*n_boxes)
    type(layout_t) :: layout
    integer :: k
    layout%order = numbers(1:3)
    allocate (layout%box(n_boxes))
    do k = 1, n_boxes
      layout%box(k)%lower = numbers(6*k - 2:6*k)
      layout%box(k)%upper = numbers(6*k + 1:6*k + 3)
    end do
  end function layout_of

end module fft_c_interface
