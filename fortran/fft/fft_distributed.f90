!> Three-dimensional transforms, real to complex or complex, spread over MPI ranks.
!>
!> A plan is a list of steps, each an exchange between two layouts or local transforms of lines (module fft_scheme says
!> which, for every scheme). A static schedule cuts steps into chunks, so that an exchange is under way while other
!> chunks are transformed or sent along another axis. Any grid, any number of ranks: shares need not be equal and may be
!> empty. Forward: sum over the grid of f exp(-2 pi i (k.j/n)); backward: sum over waves with the other sign, not
!> normalised.
module fft_distributed
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int8_t, c_loc, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: int64, real64
  ! Other names of MPI are used where they are needed: gfortran 12 loses those that the submodule uses too.
  use mpi_f08, only: MPI_Comm, MPI_Comm_free, MPI_Comm_size
  use base_error, only: error_t, exit_bad_input, fail
  use fft_block_copy, only: at_byte
  use fft_exchange, only: transport_names
  use fft_layout, only: layout_t
  use fft_scheme, only: decomposition_t, scheme_names, subset_names
  use fft_step, only: finish_exchange, path_t, run_transform, start_exchange, transform
  implicit none
  private
  public :: distributed_fft_t, fft_options_t, exchange_count_t, MPI_Comm

  type :: fft_options_t
    !> slab, pencil, 1d, 2d, qcdoc, columns; model: what the cost model takes for fastest; time: what is fastest in a
    !> trial.
    character(len=16) :: scheme = "model"
    !> alltoall, alltoallv, alltoallw, by_node; ialltoall, ialltoallv, persistent, one_sided, which do not block.
    character(len=16) :: transport = "alltoallv"
    !> by_node: so many ranks are taken for a node; 0: those that share memory.
    integer :: ranks_a_node = 0
    !> Which ranks own lines in 1d, qcdoc and columns: full, compressed (every second, as on a checkerboard), expanded
    !> (as many as there are lines).
    character(len=16) :: subset = "full"
    !> Ranks along x, y, z; x fastest. 0: chosen. The planner takes it for 1d, 2d and columns only.
    integer :: grid(3) = 0
    !> Chunks into which exchanges and the transforms around them are cut. 0: what is fastest in a trial where the
    !> scheme is, else 2 for qcdoc and 1 for the others.
    integer :: n_chunks = 1
    !> May the exchange along one axis be under way while chunks of the one before are?
    logical :: overlap_axes = .true.
    !> In qcdoc, go back from lines along z to bricks. A product of waves needs no bricks.
    logical :: returns = .true.
    !> Grids transformed together; one after the other in memory.
    integer :: n_batch = 1
    !> Real numbers on the grid (else complex), of 4 or 8 bytes.
    logical :: is_real = .true.
    integer :: bytes = 8
    !> Axis order in memory of the waves where the scheme leaves boxes; 0: z, x, y on several ranks, x, y, z on one.
    integer :: wave_order(3) = 0
    !> Cost model: seconds a message, bytes a second, floating-point operations a second.
    real(real64) :: latency = 2.0e-6_real64, bandwidth = 5.0e9_real64, arithmetic = 5.0e9_real64
  end type fft_options_t

  !> Bytes of a message from which on ranks send for themselves: where a message of 0.67 us costs as much as the copies
  !> of its bytes at a rank's share of 100 GB/s (chromabuild/scaling/machines/infiniband.yaml).
  real(real64), parameter :: longest_by_node = 1024.0_real64

  !> One exchange of the forward transform as this rank sends it.
  type :: exchange_count_t
    !> Ranks that take part, messages to others, bytes in them.
    integer :: n_ranks = 0, n_messages = 0
    integer(int64) :: n_bytes = 0
  end type exchange_count_t

  !> Steps that a plan can have.
  integer, parameter :: most_steps = 16
  !> Numbers of chunks that the planner tries, and transports under which they would wait for each other.
  integer, parameter :: chunks_tried(3) = [2, 4, 8]
  character(len=*), parameter :: blocking(4) = [character(len=9) :: "alltoall", "alltoallv", "alltoallw", "by_node"]

  !> The ranks along some axes of the process grid.
  type :: group_t
    logical :: among(3) = .false.
    type(MPI_Comm) :: comm
    !> Ranks of the process grid.
    integer, allocatable :: member(:)
  end type group_t

  type :: distributed_fft_t
    !> Grid points along x, y, z.
    integer :: n(3) = 0
    !> This rank, and what it holds of the grid and of the waves (kx to n(1)/2 for real grids).
    integer :: rank = 0
    type(layout_t) :: real_layout, wave_layout
    !> The same where it is a single box (empty if it is none), for callers that work on boxes.
    integer :: real_lower(3) = 0, real_upper(3) = -1, wave_lower(3) = 0, wave_upper(3) = -1
    !> As chosen.
    type(fft_options_t) :: options
    !> Most exchanges under way at once in the last transform, and most of them along different axes.
    integer :: most_under_way = 0, most_axes_under_way = 0
    type(decomposition_t), private :: decomposition
    type(MPI_Comm), private :: comm
    integer, private :: n_ranks = 1, n_groups = 0
    logical, private :: is_made = .false.
    ! Pointers, because gfortran 12 fails to clear such nested components of a variable that is intent(out).
    type(group_t), pointer, private :: group(:) => null()
    !> There and back.
    type(path_t), pointer, private :: path(:) => null()
    complex(real64), allocatable, private :: work(:)
    integer(int64), allocatable, private :: array_start(:)
    !> The transform under way.
    type(c_ptr), private :: input = c_null_ptr, output = c_null_ptr
    integer, private :: direction = 0, position = 0
    integer, allocatable, private :: under_way(:)
  contains
    procedure :: create
    procedure :: forward
    procedure :: backward
    procedure :: start
    procedure :: progress
    procedure :: finish
    procedure :: can_share_array
    procedure :: counts
    procedure :: estimate
    procedure :: destroy
  end type distributed_fft_t

  interface
    !> The plan of a given scheme.
    module subroutine make_plan(self, comm, n, options, error, real_layout, wave_layout)
      class(distributed_fft_t), target, intent(inout) :: self
      type(MPI_Comm), intent(in) :: comm
      integer, intent(in) :: n(3)
      type(fft_options_t), intent(in) :: options
      type(error_t), allocatable, intent(out) :: error
      type(layout_t), intent(in), optional :: real_layout, wave_layout
    end subroutine make_plan
  end interface

contains

  !> Make the plan; all ranks of `comm` must call it. `real_layout`, `wave_layout`: what this rank holds of the grid and
  !> of the waves; otherwise what the scheme starts and ends with. Ranks hold each point once; waves held by nobody are
  !> neither computed nor sent, and count as zero backward. Fails on a grid, an option or a layout that cannot be.
  subroutine create(self, comm, n, error, options, real_layout, wave_layout)
    class(distributed_fft_t), intent(inout) :: self
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: n(3)
    type(error_t), allocatable, intent(out) :: error
    type(fft_options_t), intent(in), optional :: options
    type(layout_t), intent(in), optional :: real_layout, wave_layout
    type(fft_options_t) :: wanted, trial, best
    integer :: scheme, subset, k
    real(real64) :: least

    if (present(options)) wanted = options
    call check(wanted, comm, n, error)
    if (allocated(error)) return
    if (all(wanted%scheme /= ["model", "time "])) then
      if (wanted%n_chunks == 0) wanted%n_chunks = merge(2, 1, wanted%scheme == "qcdoc")
      call make_plan(self, comm, n, wanted, error, real_layout, wave_layout)
      return
    end if
    least = huge(least)
    do scheme = 1, size(scheme_names)
      do subset = 1, size(subset_names)
        trial = wanted
        trial%scheme = scheme_names(scheme)
        trial%subset = subset_names(subset)
        trial%grid = process_grid(trial%scheme)
        trial%n_chunks = max(1, wanted%n_chunks)
        if (is_candidate(trial, comm)) call try()
        if (allocated(error)) return
      end do
    end do
    if (wanted%scheme == "time" .and. wanted%n_chunks == 0) then
      ! The fastest of them once more in chunks, which travel while others are transformed.
      trial = best
      if (any(trial%transport == blocking)) trial%transport = "persistent"
      do k = 1, size(chunks_tried)
        trial%n_chunks = chunks_tried(k)
        call try()
        if (allocated(error)) return
      end do
    end if
    call make_plan(self, comm, n, best, error, real_layout, wave_layout)

  contains

    !> Make the plan of a trial; remember it where it costs less than the best so far.
    subroutine try()
      real(real64) :: cost
      call make_plan(self, comm, n, trial, error, real_layout, wave_layout)
      if (allocated(error)) return
      if (wanted%scheme == "time") then
        cost = measured(self)
      else
        cost = self%estimate()
      end if
      if (cost >= 0.999_real64*least) return
      least = cost
      best = trial
    end subroutine try

    !> Slabs and pencils have their own process grids.
    function process_grid(scheme) result(grid)
      character(len=*), intent(in) :: scheme
      integer :: grid(3)
      grid = wanted%grid
      if (any(scheme == ["slab  ", "pencil"])) grid = 0
    end function process_grid

  end subroutine create

  !> Sense of the options.
  subroutine check(options, comm, n, error)
    type(fft_options_t), intent(in) :: options
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: n(3)
    type(error_t), allocatable, intent(out) :: error
    character(len=200) :: message
    integer :: n_ranks
    call MPI_Comm_size(comm, n_ranks)
    message = ""
    if (any(n < 1)) then
      write (message, "(a,3(i0,1x),a)") "FFT grid ", n, "needs at least 1 point an axis"
    else if (all(options%scheme /= [character(len=16) :: scheme_names, "model", "time"])) then
      message = "FFT scheme '"//trim(options%scheme)//"' is unknown: use slab, pencil, 1d, 2d, qcdoc, " &
                //"columns, model or time"
    else if (all(options%transport /= transport_names)) then
      message = "FFT transport '"//trim(options%transport)//"' is unknown: use alltoall, alltoallv, " &
                //"alltoallw, ialltoall, ialltoallv, persistent, one_sided or by_node"
    else if (all(options%subset /= subset_names)) then
      message = "FFT subset '"//trim(options%subset)//"' is unknown: use full, compressed or expanded"
    else if (any(options%grid /= 0) .and. product(options%grid) /= n_ranks) then
      write (message, "(a,3(i0,1x),a,i0,a)") "FFT process grid ", options%grid, "does not have ", n_ranks, " ranks"
    else if (options%ranks_a_node < 0) then
      write (message, "(a,i0,a)") "FFT of ", options%ranks_a_node, " ranks a node: use 1 or more, or 0 for those that "// &
        "share memory"
    else if (options%n_chunks < 0 .or. options%n_batch < 1 .or. all(options%bytes /= [4, 8])) then
      write (message, "(3(a,i0),a)") "FFT of ", options%n_chunks, " chunks, ", options%n_batch, " grids, ", &
        options%bytes, " bytes a real: use at least 1 chunk (0: chosen) and grid, and 4 or 8 bytes"
    end if
    if (message /= "") call fail(error, exit_bad_input, trim(message))
  end subroutine check

  !> Is a scheme worth considering? Subsets matter where lines are dealt; qcdoc is 1d, which runs in chunks too, and a
  !> way back.
  logical function is_candidate(options, comm)
    type(fft_options_t), intent(in) :: options
    type(MPI_Comm), intent(in) :: comm
    integer :: n_ranks
    call MPI_Comm_size(comm, n_ranks)
    is_candidate = options%subset == "full" .or. any(options%scheme == ["1d     ", "columns"])
    if (n_ranks == 1) is_candidate = is_candidate .and. options%scheme == "slab"
    if (options%scheme == "qcdoc") is_candidate = .false.
  end function is_candidate

  !> Transform the grid into waves. Arrays as real_layout and wave_layout say, of the kind of the options, grid after
  !> grid of a batch.
  subroutine forward(self, grid, waves)
    class(distributed_fft_t), intent(inout) :: self
    type(*), intent(in), target :: grid(*)
    type(*), intent(inout), target :: waves(*)
    call self%start(1, c_loc(grid), c_loc(waves))
    call self%finish()
  end subroutine forward

  !> Transform waves into the grid. Overwrites `waves`.
  subroutine backward(self, waves, grid)
    class(distributed_fft_t), intent(inout) :: self
    type(*), intent(inout), target :: waves(*)
    type(*), intent(inout), target :: grid(*)
    call self%start(2, c_loc(waves), c_loc(grid))
    call self%finish()
  end subroutine backward

  !> Begin a transform, forward (1) or backward (2), between the arrays at `input` and `output`, which may not be
  !> touched until `finish`. Plans may be under way together; all ranks must start them in the same order.
  subroutine start(self, direction, input, output)
    class(distributed_fft_t), intent(inout) :: self
    integer, intent(in) :: direction
    type(c_ptr), intent(in) :: input, output
    logical :: done
    self%input = input
    self%output = output
    self%direction = direction
    self%position = 1
    self%most_under_way = 0
    self%most_axes_under_way = 0
    self%under_way = spread(0, 1, size(self%group))
    done = self%progress()
  end subroutine start

  !> Go on as far as is possible without waiting. True when the transform is complete.
  logical function progress(self)
    class(distributed_fft_t), intent(inout) :: self
    call advance(self, .false.)
    progress = self%position > size(self%path(self%direction)%schedule, 2)
  end function progress

  !> Complete the transform.
  subroutine finish(self)
    class(distributed_fft_t), intent(inout) :: self
    call advance(self, .true.)
  end subroutine finish

  subroutine advance(self, wait)
    class(distributed_fft_t), target, intent(inout) :: self
    logical, intent(in) :: wait
    integer :: chunk

    associate (path => self%path(self%direction))
      do while (self%position <= size(path%schedule, 2))
        chunk = path%schedule(3, self%position)
        associate (step => path%step(path%schedule(2, self%position)))
          select case (path%schedule(1, self%position))
          case (start_exchange)
            if (step%clear_bytes > 0 .and. chunk == 1) call clear(array(self, step%to), step%clear_bytes)
            call step%exchange(chunk)%start(array(self, step%from), array(self, step%to))
            self%under_way(step%group) = self%under_way(step%group) + 1
            self%most_under_way = max(self%most_under_way, sum(self%under_way))
            self%most_axes_under_way = max(self%most_axes_under_way, count(self%under_way > 0))
          case (finish_exchange)
            if (.not. wait) then
              if (.not. step%exchange(chunk)%is_done()) return
            end if
            call step%exchange(chunk)%finish()
            self%under_way(step%group) = self%under_way(step%group) - 1
          case (transform)
            call run_transform(step, chunk, array(self, step%from), array(self, step%to))
          end select
        end associate
        self%position = self%position + 1
      end do
    end associate
  end subroutine advance

  !> May grid and waves be one array, as large as the larger of them? So they may where the schedule reads the last of
  !> the input before it writes the first of the output, or planes are all that moves.
  pure logical function can_share_array(self)
    class(distributed_fft_t), intent(in) :: self
    integer :: k, at, last_read, first_write
    can_share_array = self%options%n_batch == 1
    do k = 1, size(self%path)
      last_read = 0
      first_write = huge(1)
      do at = 1, size(self%path(k)%schedule, 2)
        associate (step => self%path(k)%step(self%path(k)%schedule(2, at)))
          if (step%n_axes == 2 .and. step%from == 0 .and. step%to == 1) cycle
          if (step%from == 0) last_read = at
          if (step%to == 1) first_write = min(first_write, at)
        end associate
      end do
      can_share_array = can_share_array .and. last_read < first_write
    end do
  end function can_share_array

  !> Address of an array of a step.
  type(c_ptr) function array(self, id)
    class(distributed_fft_t), target, intent(in) :: self
    integer, intent(in) :: id
    select case (id)
    case (0)
      array = self%input
    case (1)
      array = self%output
    case default
      array = at_byte(c_loc(self%work), self%array_start(id))
    end select
  end function array

  subroutine clear(address, n_bytes)
    type(c_ptr), intent(in) :: address
    integer(int64), intent(in) :: n_bytes
    integer(c_int8_t), pointer, contiguous :: byte(:)
    call c_f_pointer(address, byte, [n_bytes])
    byte = 0_c_int8_t
  end subroutine clear

  !> The exchanges of the forward transform, in order, as this rank sends them.
  function counts(self) result(list)
    class(distributed_fft_t), intent(in) :: self
    type(exchange_count_t), allocatable :: list(:)
    integer :: k, at
    associate (step => self%path(1)%step(:self%path(1)%n_steps))
      allocate (list(count(step%is_exchange)))
      at = 0
      do k = 1, size(step)
        if (.not. step(k)%is_exchange) cycle
        at = at + 1
        list(at) = exchange_count_t(size(self%group(step(k)%group)%member), sum(step(k)%exchange%n_messages), &
                                    sum(step(k)%exchange%n_bytes))
      end do
    end associate
  end function counts

  !> Seconds of a forward transform by the cost model: the slowest rank of each step; messages, bytes sent and copied,
  !> 5 n log2(n) operations a line. Of c chunks all but the first hide the shorter of wire and work behind the longer,
  !> unless the transport blocks. All ranks must call it.
  real(real64) function estimate(self)
    use mpi_f08, only: MPI_Allreduce, MPI_DOUBLE_PRECISION, MPI_IN_PLACE, MPI_MAX
    class(distributed_fft_t), intent(in) :: self
    !> Bytes under way; all else.
    real(real64) :: wire(most_steps), work(most_steps)
    integer :: k, axis

    wire = 0.0_real64
    work = 0.0_real64
    associate (step => self%path(1)%step(:self%path(1)%n_steps), o => self%options)
      do k = 1, size(step)
        if (step(k)%is_exchange) then
          wire(k) = real(sum(step(k)%exchange%n_bytes), real64)/o%bandwidth
          work(k) = o%latency*sum(step(k)%exchange%n_messages) + real(step(k)%to_bytes, real64)/o%bandwidth
        else
          do axis = 1, step(k)%n_axes
            associate (n => step(k)%transform(axis)%length_in)
              work(k) = work(k) + 5.0_real64*n*log(real(n, real64))/log(2.0_real64)*step(k)%n_lines(axis) &
                        *merge(step(k)%n_planes, o%n_batch, step(k)%n_axes == 2)/o%arithmetic
            end associate
          end do
        end if
      end do
      ! Ranks may have left out steps that move nothing, so the number of steps differs.
      call MPI_Allreduce(MPI_IN_PLACE, wire, size(wire), MPI_DOUBLE_PRECISION, MPI_MAX, self%comm)
      call MPI_Allreduce(MPI_IN_PLACE, work, size(work), MPI_DOUBLE_PRECISION, MPI_MAX, self%comm)
      estimate = sum(wire) + sum(work)
      if (all(o%transport /= blocking)) &
        estimate = estimate - (1.0_real64 - 1.0_real64/o%n_chunks)*min(sum(wire), sum(work))
    end associate
  end function estimate

  !> Seconds of a forward and a backward transform: the best of three, on the slowest rank.
  real(real64) function measured(self)
    use mpi_f08, only: MPI_Allreduce, MPI_DOUBLE_PRECISION, MPI_IN_PLACE, MPI_MAX, MPI_Wtime
    class(distributed_fft_t), intent(inout) :: self
    real(real64) :: begin, seconds
    complex(real64), allocatable, target :: grid(:), waves(:)
    integer :: trial
    associate (n => self%options%n_batch)
      allocate (grid(n*self%real_layout%n_points() + 1), waves(n*self%wave_layout%n_points() + 1), &
                source=(0.0_real64, 0.0_real64))
    end associate
    measured = huge(measured)
    do trial = 1, 3
      begin = MPI_Wtime()
      call self%forward(grid, waves)
      call self%backward(waves, grid)
      seconds = MPI_Wtime() - begin
      call MPI_Allreduce(MPI_IN_PLACE, seconds, 1, MPI_DOUBLE_PRECISION, MPI_MAX, self%comm)
      measured = min(measured, seconds)
    end do
  end function measured

  !> Give everything back; all ranks must call it.
  subroutine destroy(self)
    class(distributed_fft_t), intent(inout) :: self
    integer :: path, k, chunk, g
    if (.not. self%is_made) return
    do path = 1, merge(2, 0, associated(self%path))
      do k = 1, self%path(path)%n_steps
        associate (step => self%path(path)%step(k))
          if (allocated(step%exchange)) then
            do chunk = 1, size(step%exchange)
              call step%exchange(chunk)%destroy()
            end do
          end if
          call step%transform(1)%destroy()
          call step%transform(2)%destroy()
        end associate
      end do
    end do
    do g = 1, self%n_groups
      call MPI_Comm_free(self%group(g)%comm)
    end do
    if (associated(self%path)) deallocate (self%path, self%group)
    self%n_groups = 0
    if (allocated(self%work)) deallocate (self%work, self%array_start)
    call MPI_Comm_free(self%comm)
    self%is_made = .false.
  end subroutine destroy

end module fft_distributed
