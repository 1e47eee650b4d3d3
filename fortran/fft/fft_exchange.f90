!> Moves an array from one layout to another among the ranks of a communicator. The points that each rank keeps are
!> copied, the rest travel in one message per pair of ranks; pairs that share nothing exchange nothing (except that
!> the transport `alltoall` pads all messages to the longest).
!>
!> A message holds, grid after grid of a batch, the common blocks of the sender's and the receiver's boxes (sender's
!> boxes in the outer loop), each in the receiver's axis order.
module fft_exchange
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int8_t, c_ptr
  use, intrinsic :: iso_fortran_env, only: int64
  use mpi_f08, only: MPI_ADDRESS_KIND, MPI_Allreduce, MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw, MPI_BYTE, MPI_Comm, &
    MPI_Comm_group, MPI_Comm_rank, MPI_Comm_size, MPI_Datatype, MPI_DOUBLE_COMPLEX, operator(/=), &
    MPI_Group, MPI_Group_free, MPI_Group_incl, MPI_Group_translate_ranks, MPI_Ialltoall, MPI_Ialltoallv, &
    MPI_IN_PLACE, MPI_INFO_NULL, MPI_INTEGER, MPI_MAX, MPI_Put, MPI_REAL4, MPI_REAL8, MPI_Recv_init, MPI_Request, &
    MPI_Request_free, MPI_Send_init, MPI_Startall, MPI_STATUSES_IGNORE, MPI_STATUS_IGNORE, MPI_Test, MPI_Testall, &
    MPI_Type_commit, MPI_Type_create_hvector, MPI_Type_create_struct, MPI_Type_free, MPI_Wait, MPI_Waitall, MPI_Win, &
    MPI_Win_complete, MPI_Win_create, MPI_Win_free, MPI_WIN_NULL, MPI_Win_post, MPI_Win_start, MPI_Win_test, &
    MPI_Win_wait
  use base_error, only: error_t, exit_resources, fail
  use fft_block_copy, only: at_byte, block_copy_t, copy_blocks
  use fft_layout, only: box_t, layout_t
  use fft_node_messages, only: node_messages_t
  implicit none
  private
  public :: exchange_t, transport_names

  !> How the messages travel. The first three and the last one block. (No ialltoallw: the Fortran interface of Open MPI
  !> 4.1 frees the list of types before the transfer is over.)
  integer, parameter :: alltoall = 1, alltoallv = 2, alltoallw = 3, ialltoall = 4, ialltoallv = 5, persistent = 6, &
                        one_sided = 7, by_node = 8
  character(len=*), parameter :: transport_names(8) = [character(len=10) :: "alltoall", "alltoallv", "alltoallw", &
    "ialltoall", "ialltoallv", "persistent", "one_sided", "by_node"]

  type :: exchange_t
    !> Messages to other ranks, and their bytes, as sent by this rank in one exchange.
    integer :: n_messages = 0
    integer(int64) :: n_bytes = 0
    !> Elements of the message buffers, for the whole batch.
    integer(int64) :: send_size = 0, receive_size = 0
    !> Elements of this rank's target array that come from anywhere; the caller must clear those that do not.
    integer(int64) :: n_arriving = 0
    !> Elements to and from each rank of the communicator.
    integer, allocatable :: send_count(:), receive_count(:)
    integer, private :: width = 8, transport = alltoallv, rank = 0, n_ranks = 1
    logical, private :: add = .false.
    type(MPI_Comm), private :: comm
    type(MPI_Datatype), private :: number
    type(block_copy_t), allocatable, private :: pack(:), unpack(:), keep(:)
    !> Last copy to and from each rank (index -1: 0).
    integer, allocatable, private :: pack_end(:), unpack_end(:)
    integer, allocatable, private :: send_start(:), receive_start(:)
    !> One-sided: rank in the window's communicator, and where messages begin there.
    integer, allocatable, private :: target_rank(:), target_start(:)
    !> Messages straight between the arrays (alltoallw).
    type(MPI_Datatype), allocatable, private :: send_type(:), receive_type(:)
    type(MPI_Request), allocatable, private :: request(:)
    type(MPI_Group), private :: sources, targets
    type(MPI_Win), private :: window = MPI_WIN_NULL
    type(node_messages_t), private :: node_messages
    type(c_ptr), private :: send, receive, to
    logical, private :: open = .false.
  contains
    procedure :: create
    procedure :: attach
    procedure :: start
    procedure :: is_done
    procedure :: finish
    procedure :: destroy
  end type exchange_t

contains

  !> Find out what goes where; no communication except for padding (`alltoall`) and one-sided puts. `from` and `to`: the
  !> layouts of all ranks of `comm`, from 0. `axis`, `range`: only points whose index along the axis is in this rank's
  !> range (which ranks that exchange anything have in common); axis 0: all. `width`: bytes of an element (4, 8, 16).
  !> `period`: for boxes of `from` or `to` that reach beyond a periodic grid of so many points. `add`: add what arrives
  !> (real numbers).
  subroutine create(self, comm, from, to, axis, range, n_batch, width, transport, error, period, add)
    class(exchange_t), intent(inout) :: self
    type(MPI_Comm), intent(in) :: comm
    type(layout_t), intent(in) :: from(0:), to(0:)
    integer, intent(in) :: axis, range(2), n_batch, width, transport
    type(error_t), allocatable, intent(out) :: error
    integer, intent(in), optional :: period(3)
    logical, intent(in), optional :: add
    integer :: r, longest

    call self%destroy()
    self%comm = comm
    call MPI_Comm_rank(comm, self%rank)
    call MPI_Comm_size(comm, self%n_ranks)
    self%width = width
    self%transport = transport
    if (present(add)) self%add = add
    self%number = MPI_REAL8
    if (width == 4) self%number = MPI_REAL4
    if (width == 16) self%number = MPI_DOUBLE_COMPLEX
    if (n_batch*max(from(self%rank)%n_points(), to(self%rank)%n_points()) > huge(1)) then
      call fail(error, exit_resources, "a rank of the FFT would hold more than 2147483647 points: use more ranks")
    end if

    allocate (self%pack(0), self%unpack(0), self%keep(0))
    allocate (self%send_count(0:self%n_ranks - 1), self%receive_count(0:self%n_ranks - 1), source=0)
    allocate (self%send_start(0:self%n_ranks - 1), self%receive_start(0:self%n_ranks - 1), source=0)
    if (.not. allocated(error)) then
      associate (me => self%rank)
        call common_blocks(from(me), to(me), 0, self%keep, self%send_count(me))
        self%n_arriving = self%send_count(me)
        self%send_count(me) = 0
        do r = 0, self%n_ranks - 1
          if (r == me) cycle
          call count_blocks(from(me), to(r), self%send_count(r))
          call count_blocks(from(r), to(me), self%receive_count(r))
        end do
      end associate
    end if
    self%n_arriving = self%n_arriving + sum(int(self%receive_count, int64))
    self%n_messages = count(self%send_count > 0)
    self%n_bytes = width*sum(int(self%send_count, int64))
    self%send_size = self%n_bytes/width
    self%receive_size = sum(int(self%receive_count, int64))
    longest = 0
    if (any(transport == [alltoall, ialltoall])) then
      longest = max(maxval(self%send_count), maxval(self%receive_count))
      call MPI_Allreduce(MPI_IN_PLACE, longest, 1, MPI_INTEGER, MPI_MAX, comm)
      self%n_messages = merge(self%n_ranks - 1, 0, longest > 0)
      self%n_bytes = int(width, int64)*longest*(self%n_ranks - 1)
      self%send_size = int(longest, int64)*self%n_ranks
      self%receive_size = self%send_size
    end if
    if (max(self%send_size, self%receive_size) > huge(1)) then
      call fail(error, exit_resources, "a rank of the FFT would send more than 2147483647 numbers: use more ranks")
    end if
    if (allocated(error)) return
    do r = 1, self%n_ranks - 1
      self%send_start(r) = self%send_start(r - 1) + merge(longest, self%send_count(r - 1), longest > 0)
      self%receive_start(r) = self%receive_start(r - 1) + merge(longest, self%receive_count(r - 1), longest > 0)
    end do
    allocate (self%pack_end(-1:self%n_ranks - 1), self%unpack_end(-1:self%n_ranks - 1), source=0)
    do r = 0, self%n_ranks - 1
      if (self%send_count(r) > 0) call common_blocks(from(self%rank), to(r), -1, self%pack, self%send_count(r))
      if (self%receive_count(r) > 0) call common_blocks(from(r), to(self%rank), 1, self%unpack, self%receive_count(r))
      self%pack_end(r) = size(self%pack)
      self%unpack_end(r) = size(self%unpack)
    end do
    if (transport == alltoallw) call make_types(self)
    if (transport == by_node) then
      self%send_size = 0
      self%receive_size = 0
    end if
    if (longest > 0) then
      self%send_count = longest
      self%receive_count = longest
    end if
    if (transport == one_sided) then
      allocate (self%target_start(0:self%n_ranks - 1))
      call MPI_Alltoall(self%receive_start, 1, MPI_INTEGER, self%target_start, 1, MPI_INTEGER, comm)
    end if

  contains

    !> Points that two layouts have in common within the window, times the batch.
    subroutine count_blocks(source, target, n_points)
      type(layout_t), intent(in) :: source, target
      integer, intent(out) :: n_points
      type(block_copy_t), allocatable :: none(:)
      call common_blocks(source, target, -2, none, n_points)
    end subroutine count_blocks

    !> Append the copies of what two layouts have in common: `side` -1 from `source` to the send buffer, 1 from the
    !> receive buffer to `target`, 0 from `source` to `target`, -2 count only.
    subroutine common_blocks(source, target, side, copies, n_points)
      type(layout_t), intent(in) :: source, target
      integer, intent(in) :: side
      type(block_copy_t), allocatable, intent(inout) :: copies(:)
      integer, intent(out) :: n_points
      type(block_copy_t), allocatable :: found(:)
      type(block_copy_t) :: copy
      type(box_t) :: common
      integer :: i, j, n_found, source_first, target_first, x, y, z, shift(3), low(3), high(3), extent(3)
      integer :: buffer_first, per_grid, k

      n_found = 0
      per_grid = 0
      allocate (found(merge(0, 16, side == -2)))
      source_first = 0
      do i = 1, size(source%box)
        target_first = 0
        do j = 1, size(target%box)
          low = 0
          high = 0
          if (present(period)) then
            ! Point p of the source is point p + shift of the target.
            low = ceiling_ratio(target%box(j)%lower - source%box(i)%upper, period)
            high = floor_ratio(target%box(j)%upper - source%box(i)%lower, period)
          end if
          do z = low(3), high(3)
            do y = low(2), high(2)
              do x = low(1), high(1)
                shift = 0
                if (present(period)) shift = [x, y, z]*period
                common%lower = max(source%box(i)%lower, target%box(j)%lower - shift)
                common%upper = min(source%box(i)%upper, target%box(j)%upper - shift)
                if (axis > 0) then
                  common%lower(axis) = max(common%lower(axis), range(1))
                  common%upper(axis) = min(common%upper(axis), range(2))
                end if
                extent = common%extent()
                if (any(extent == 0)) cycle
                if (side /= -2) then
                  copy%extent(:3) = extent(target%order)
                  copy%from_first = source_first + sum(source%strides(i)*(common%lower - source%box(i)%lower))
                  copy%from_stride(:3) = ordered(source%strides(i), target%order)
                  copy%to_first = target_first + sum(target%strides(j)*(common%lower + shift - target%box(j)%lower))
                  copy%to_stride(:3) = ordered(target%strides(j), target%order)
                  if (side == -1) then
                    copy%to_first = per_grid
                    copy%to_stride(:3) = [1, copy%extent(1), copy%extent(1)*copy%extent(2)]
                  else if (side == 1) then
                    copy%from_first = per_grid
                    copy%from_stride(:3) = [1, copy%extent(1), copy%extent(1)*copy%extent(2)]
                  end if
                  if (n_found == size(found)) found = [found, found]
                  n_found = n_found + 1
                  found(n_found) = copy
                end if
                per_grid = per_grid + product(extent)
              end do
            end do
          end do
          target_first = target_first + int(target%box(j)%n_points())
        end do
        source_first = source_first + int(source%box(i)%n_points())
      end do
      n_points = n_batch*per_grid
      if (side == -2) return
      buffer_first = 0
      if (side == -1) buffer_first = self%send_start(r)
      if (side == 1) buffer_first = self%receive_start(r)
      do k = 1, n_found
        found(k)%extent(4) = n_batch
        found(k)%from_stride(4) = merge(per_grid, int(source%n_points()), side == 1)
        found(k)%to_stride(4) = merge(per_grid, int(target%n_points()), side == -1)
        if (side == -1) found(k)%to_first = found(k)%to_first + buffer_first
        if (side == 1) found(k)%from_first = found(k)%from_first + buffer_first
      end do
      copies = [copies, found(:n_found)]
    end subroutine common_blocks

  end subroutine create

  pure function ordered(values, order)
    integer, intent(in) :: values(3), order(3)
    integer :: ordered(3)
    ordered = values(order)
  end function ordered

  elemental integer function floor_ratio(a, b)
    integer, intent(in) :: a, b
    floor_ratio = (a - modulo(a, b))/b
  end function floor_ratio

  elemental integer function ceiling_ratio(a, b)
    integer, intent(in) :: a, b
    ceiling_ratio = -floor_ratio(-a, b)
  end function ceiling_ratio

  !> Data types that pick the messages out of the arrays.
  subroutine make_types(self)
    class(exchange_t), intent(inout) :: self
    integer :: r
    allocate (self%send_type(0:self%n_ranks - 1), self%receive_type(0:self%n_ranks - 1))
    self%send_type = MPI_BYTE
    self%receive_type = MPI_BYTE
    do r = 0, self%n_ranks - 1
      associate (sent => self%pack(self%pack_end(r - 1) + 1:self%pack_end(r)), &
                 received => self%unpack(self%unpack_end(r - 1) + 1:self%unpack_end(r)))
        if (size(sent) > 0) self%send_type(r) = message_type(self, sent, .true.)
        if (size(received) > 0) self%receive_type(r) = message_type(self, received, .false.)
        self%send_count(r) = merge(1, 0, size(sent) > 0)
        self%receive_count(r) = merge(1, 0, size(received) > 0)
      end associate
    end do
    self%send_start = 0
    self%receive_start = 0
    self%send_size = 0
    self%receive_size = 0
  end subroutine make_types

  !> The type of one message on the sender's side (`from`) or on the receiver's: both list the elements in one order.
  function message_type(self, copies, from) result(message)
    class(exchange_t), intent(in) :: self
    type(block_copy_t), intent(in) :: copies(:)
    logical, intent(in) :: from
    type(MPI_Datatype) :: message, part(size(copies)), inner
    integer(MPI_ADDRESS_KIND) :: first(size(copies))
    integer :: k, dimension, stride(4)
    do k = 1, size(copies)
      stride = merge(copies(k)%from_stride, copies(k)%to_stride, from)
      first(k) = int(self%width, MPI_ADDRESS_KIND)*merge(copies(k)%from_first, copies(k)%to_first, from)
      part(k) = self%number
      do dimension = 1, 4
        inner = part(k)
        call MPI_Type_create_hvector(copies(k)%extent(dimension), 1, &
                                     int(self%width, MPI_ADDRESS_KIND)*stride(dimension), inner, part(k))
        if (dimension > 1) call MPI_Type_free(inner)
      end do
    end do
    call MPI_Type_create_struct(size(copies), [(1, k=1, size(copies))], first, part, message)
    call MPI_Type_commit(message)
    do k = 1, size(copies)
      call MPI_Type_free(part(k))
    end do
  end function message_type

  !> Give the exchange its message buffers (send_size and receive_size elements), which it keeps until it is destroyed.
  !> All ranks of `everyone` must call it: windows are made there, because Open MPI 4.1 mixes up the shared memory of
  !> windows on disjoint communicators. By node the buffers are others, in the memory of the node; `ranks_a_node`: so
  !> many ranks are taken for one (0: those that share memory).
  subroutine attach(self, send, receive, everyone, ranks_a_node)
    class(exchange_t), intent(inout) :: self
    type(c_ptr), intent(in) :: send, receive
    type(MPI_Comm), intent(in) :: everyone
    integer, intent(in), optional :: ranks_a_node
    integer(c_int8_t), pointer, contiguous :: buffer(:)
    type(MPI_Group) :: here, there
    integer :: r, k
    integer, allocatable :: partners(:)

    self%send = send
    self%receive = receive
    if (self%transport == by_node) then
      k = 0
      if (present(ranks_a_node)) k = ranks_a_node
      call self%node_messages%create(self%comm, everyone, k, self%width, self%number, self%send_count, self%send_start, &
                                     self%receive_count, self%receive_start)
      self%send = self%node_messages%send
      self%receive = self%node_messages%receive
      self%n_messages = self%node_messages%n_messages
      self%n_bytes = self%node_messages%n_bytes
      return
    end if
    if (self%n_ranks == 1) return
    select case (self%transport)
    case (persistent)
      allocate (self%request(count(self%send_count > 0) + count(self%receive_count > 0)))
      k = 0
      do r = 0, self%n_ranks - 1
        if (self%receive_count(r) == 0) cycle
        k = k + 1
        call c_f_pointer(at_byte(receive, int(self%width, int64)*self%receive_start(r)), buffer, [1])
        call MPI_Recv_init(buffer, self%receive_count(r), self%number, r, 0, self%comm, self%request(k))
      end do
      do r = 0, self%n_ranks - 1
        if (self%send_count(r) == 0) cycle
        k = k + 1
        call c_f_pointer(at_byte(send, int(self%width, int64)*self%send_start(r)), buffer, [1])
        call MPI_Send_init(buffer, self%send_count(r), self%number, r, 0, self%comm, self%request(k))
      end do
    case (one_sided)
      call c_f_pointer(receive, buffer, [1])
      call MPI_Win_create(buffer, self%width*int(self%receive_size, MPI_ADDRESS_KIND), self%width, MPI_INFO_NULL, &
                          everyone, self%window)
      call MPI_Comm_group(self%comm, here)
      call MPI_Comm_group(everyone, there)
      allocate (self%target_rank(0:self%n_ranks - 1))
      call MPI_Group_translate_ranks(here, self%n_ranks, [(r, r=0, self%n_ranks - 1)], there, self%target_rank)
      partners = pack([(r, r=0, self%n_ranks - 1)], self%receive_count > 0)
      call MPI_Group_incl(here, size(partners), partners, self%sources)
      partners = pack([(r, r=0, self%n_ranks - 1)], self%send_count > 0)
      call MPI_Group_incl(here, size(partners), partners, self%targets)
      call MPI_Group_free(here)
      call MPI_Group_free(there)
    case default
      allocate (self%request(1))
    end select
  end subroutine attach

  !> Send the array at `from`; what stays on this rank is copied to the array at `to` at once. Neither may be touched
  !> before `finish`. Several exchanges may be under way; all ranks must start them in the same order.
  subroutine start(self, from, to)
    class(exchange_t), intent(inout) :: self
    type(c_ptr), intent(in) :: from, to
    integer(c_int8_t), pointer, contiguous, asynchronous :: send(:), receive(:)
    integer :: r

    self%to = to
    self%open = self%n_ranks > 1
    call copy_blocks(self%pack(:merge(0, size(self%pack), allocated(self%send_type))), self%width, from, self%send, &
                     .false.)
    if (self%n_ranks > 1) then
      call c_f_pointer(self%send, send, [1])
      call c_f_pointer(self%receive, receive, [1])
      if (allocated(self%send_type)) then
        call c_f_pointer(from, send, [1])
        call c_f_pointer(to, receive, [1])
      end if
      associate (sc => self%send_count, rc => self%receive_count, ss => self%send_start, rs => self%receive_start)
        select case (self%transport)
        case (alltoall)
          if (sc(0) > 0) call MPI_Alltoall(send, sc(0), self%number, receive, sc(0), self%number, self%comm)
          self%open = .false.
        case (alltoallv)
          call MPI_Alltoallv(send, sc, ss, self%number, receive, rc, rs, self%number, self%comm)
          self%open = .false.
        case (alltoallw)
          call MPI_Alltoallw(send, sc, ss, self%send_type, receive, rc, rs, self%receive_type, self%comm)
          self%open = .false.
        case (ialltoall)
          self%open = sc(0) > 0
          if (self%open) call MPI_Ialltoall(send, sc(0), self%number, receive, sc(0), self%number, self%comm, &
                                            self%request(1))
        case (ialltoallv)
          call MPI_Ialltoallv(send, sc, ss, self%number, receive, rc, rs, self%number, self%comm, self%request(1))
        case (persistent)
          call MPI_Startall(size(self%request), self%request)
        case (one_sided)
          call MPI_Win_post(self%sources, 0, self%window)
          call MPI_Win_start(self%targets, 0, self%window)
          do r = 0, self%n_ranks - 1
            if (sc(r) == 0) cycle
            call c_f_pointer(at_byte(self%send, int(self%width, int64)*ss(r)), send, [1])
            call MPI_Put(send, sc(r), self%number, self%target_rank(r), &
                         int(self%target_start(r), MPI_ADDRESS_KIND), sc(r), self%number, self%window)
          end do
          call MPI_Win_complete(self%window)
        case (by_node)
          call self%node_messages%exchange()
          self%open = .false.
        end select
      end associate
    end if
    call copy_blocks(self%keep, self%width, from, to, self%add)
  end subroutine start

  !> Have all messages come? Lets them progress. Once true, `finish` does not wait.
  logical function is_done(self)
    class(exchange_t), intent(inout) :: self
    if (self%open) then
      select case (self%transport)
      case (persistent)
        call MPI_Testall(size(self%request), self%request, is_done, MPI_STATUSES_IGNORE)
      case (one_sided)
        call MPI_Win_test(self%window, is_done)
      case default
        call MPI_Test(self%request(1), is_done, MPI_STATUS_IGNORE)
      end select
      self%open = .not. is_done
    end if
    is_done = .not. self%open
  end function is_done

  !> Wait for the messages and put them where they belong.
  subroutine finish(self)
    class(exchange_t), intent(inout) :: self
    if (self%open) then
      select case (self%transport)
      case (persistent)
        call MPI_Waitall(size(self%request), self%request, MPI_STATUSES_IGNORE)
      case (one_sided)
        call MPI_Win_wait(self%window)
      case default
        call MPI_Wait(self%request(1), MPI_STATUS_IGNORE)
      end select
      self%open = .false.
    end if
    call copy_blocks(self%unpack(:merge(0, size(self%unpack), allocated(self%receive_type))), self%width, &
                     self%receive, self%to, self%add)
  end subroutine finish

  !> All ranks of the communicator must call it (windows).
  subroutine destroy(self)
    class(exchange_t), intent(inout) :: self
    integer :: k
    if (allocated(self%request) .and. self%transport == persistent) then
      do k = 1, size(self%request)
        call MPI_Request_free(self%request(k))
      end do
    end if
    if (allocated(self%send_type)) then
      do k = 0, self%n_ranks - 1
        if (self%send_type(k) /= MPI_BYTE) call MPI_Type_free(self%send_type(k))
        if (self%receive_type(k) /= MPI_BYTE) call MPI_Type_free(self%receive_type(k))
      end do
    end if
    call self%node_messages%destroy()
    if (self%window /= MPI_WIN_NULL) then
      call MPI_Win_free(self%window)
      call MPI_Group_free(self%sources)
      call MPI_Group_free(self%targets)
    end if
    if (allocated(self%request)) deallocate (self%request)
    if (allocated(self%send_type)) deallocate (self%send_type, self%receive_type)
    if (allocated(self%target_start)) deallocate (self%target_start)
    if (allocated(self%target_rank)) deallocate (self%target_rank)
    if (allocated(self%pack)) deallocate (self%pack, self%unpack, self%keep, self%pack_end, self%unpack_end, &
                                          self%send_count, self%receive_count, self%send_start, self%receive_start)
  end subroutine destroy

end module fft_exchange
