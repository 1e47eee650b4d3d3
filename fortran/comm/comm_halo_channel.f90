!> One-way traffic of a round of messages that travel at the same time: what lies in `out` on the senders arrives in
!> `in` on the receivers. An entry is three numbers. The transport decides how; what arrives is the same bits with all.
!>
!> PERSISTENT: point-to-point requests made once. NEIGHBOURHOOD: one collective on a graph of partners. ONE_SIDED: puts
!> into windows of the receivers. SHARED: receivers on the same node read the senders' memory, others get messages.
!>
!> Windows are registered once, larger than needed, and anew only if an exchange does not fit. They have four slots used
!> in turn, so that a sender may be ahead of its receivers; that a message is there, and that it was read, is told by
!> flags with the number of the exchange.
module comm_halo_channel
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int64_t, c_loc, c_ptr
  use mpi_f08, only: MPI_Accumulate, MPI_ADDRESS_KIND, MPI_Allreduce, MPI_ANY_SOURCE, MPI_Comm, MPI_Comm_free, &
    MPI_Comm_get_errhandler, MPI_Comm_group, MPI_COMM_NULL, MPI_Comm_set_errhandler, MPI_Comm_split_type, &
    MPI_COMM_TYPE_SHARED, MPI_Dist_graph_create_adjacent, MPI_Errhandler, MPI_ERRORS_RETURN, MPI_Group, &
    MPI_Group_free, MPI_Group_translate_ranks, MPI_Ineighbor_alltoallv, MPI_INFO_NULL, MPI_INTEGER, MPI_INTEGER8, &
    MPI_Iprobe, MPI_Irecv, MPI_Isend, MPI_LAND, MPI_LOGICAL, MPI_MAX, MPI_MODE_NOCHECK, MPI_Put, MPI_REAL8, &
    MPI_Recv_init, MPI_REPLACE, MPI_Request, MPI_Request_free, MPI_Send_init, MPI_Startall, MPI_STATUS_IGNORE, &
    MPI_STATUSES_IGNORE, MPI_SUCCESS, MPI_Testall, MPI_UNDEFINED, MPI_UNWEIGHTED, MPI_Waitall, MPI_Win, &
    MPI_Win_allocate, MPI_Win_allocate_shared, MPI_Win_flush_all, MPI_Win_free, MPI_Win_lock_all, MPI_WIN_NULL, &
    MPI_Win_shared_query, MPI_Win_sync, MPI_Win_unlock_all, operator(/=), operator(==)
  use base_kinds, only: int64, real64
  implicit none
  private
  public :: channel_t, message_list_t, transport_names, persistent, neighbourhood, one_sided, shared

  integer, parameter :: persistent = 1, neighbourhood = 2, one_sided = 3, shared = 4
  character(len=*), parameter :: transport_names(4) = [character(len=13) :: "PERSISTENT", "NEIGHBOURHOOD", &
                                                       "ONE_SIDED", "SHARED"]
  integer, parameter :: n_slots = 4
  !> Numbers of 8 bytes from one flag to the next: each has a cache line to itself.
  integer, parameter :: flag_stride = 8
  !> Looks at a flag before the MPI library may work and the core is offered to others.
  integer, parameter :: looks_before_yield = 500
  !> Nobody sends with this tag.
  integer, parameter :: idle_tag = 30000

  !> Messages of one side: partner, tag, first entry in the buffer (from 1), entries. Between two ranks tags differ.
  type :: message_list_t
    integer, allocatable :: rank(:), tag(:), first(:), count(:)
  end type message_list_t

  !> The window of another rank on this node.
  type :: view_t
    integer(c_int64_t), pointer, contiguous :: words(:) => null()
    real(real64), pointer, contiguous :: entries(:, :, :) => null()
  end type view_t

  type :: channel_t
    real(real64), pointer, contiguous :: out(:, :) => null(), in(:, :) => null()
    integer, private :: transport = persistent
    type(MPI_Comm), private :: comm
    type(message_list_t), private :: sends, receives
    type(MPI_Request), allocatable, private :: request(:)
    type(MPI_Comm), private :: graph = MPI_COMM_NULL
    !> Numbers of the messages and before them, along the graph.
    integer, allocatable, private :: send_numbers(:), send_place(:), receive_numbers(:), receive_place(:)
    !> Ranks that share memory with this one, and of every partner its rank there (MPI_UNDEFINED: none).
    type(MPI_Comm), private :: node = MPI_COMM_NULL
    integer, allocatable, private :: send_node_rank(:), receive_node_rank(:)
    !> Number of a message in its partner's list, and first entry in its partner's buffer.
    integer, allocatable, private :: partner_number(:), partner_first(:), reader_number(:)
    type(MPI_Win), private :: window = MPI_WIN_NULL
    !> Entries of a slot, and how many messages have flags.
    integer, private :: capacity = 0, n_flags = 0
    type(view_t), private :: mine
    type(view_t), allocatable, private :: sender(:), reader(:)
    real(real64), pointer, contiguous, private :: buffer(:, :) => null()
    integer, private :: slot = 1
    integer(int64), private :: sequence = 0, connected_at = 0
  contains
    procedure :: connect
    procedure :: open => open_slot
    procedure :: start
    procedure :: is_done
    procedure :: finish
    procedure :: close => close_slot
    procedure :: destroy
  end type channel_t

  interface
    subroutine flag_set(flag, value) bind(C, name="chromamd_flag_set")
      import :: c_int64_t
      integer(c_int64_t), intent(inout) :: flag
      integer(c_int64_t), value :: value
    end subroutine flag_set
    function flag_get(flag) bind(C, name="chromamd_flag_get") result(value)
      import :: c_int64_t
      integer(c_int64_t), intent(inout) :: flag
      integer(c_int64_t) :: value
    end function flag_get
    subroutine yield_core() bind(C, name="chromamd_yield")
    end subroutine yield_core
  end interface

contains

  !> Get ready for messages of these sizes; none goes to this rank itself. All ranks of `comm` must call it, when no
  !> exchange is under way; partners and their order may change only after `destroy`. `available`: whether the transport
  !> can be had, the same on all ranks.
  subroutine connect(self, comm, transport, sends, receives, available)
    class(channel_t), intent(inout) :: self
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: transport
    type(message_list_t), intent(in) :: sends, receives
    logical, intent(out) :: available

    call release_buffers(self)
    self%comm = comm
    self%transport = transport
    self%sends = sends
    self%receives = receives
    self%connected_at = self%sequence
    available = .true.
    select case (transport)
    case (persistent)
      allocate (self%out(3, total(sends)), self%in(3, total(receives)))
      call make_requests(self, sends%count > 0, receives%count > 0)
    case (neighbourhood)
      allocate (self%out(3, total(sends)), self%in(3, total(receives)))
      if (self%graph == MPI_COMM_NULL) &
        call MPI_Dist_graph_create_adjacent(comm, size(receives%rank), receives%rank, MPI_UNWEIGHTED, &
                                            size(sends%rank), sends%rank, MPI_UNWEIGHTED, MPI_INFO_NULL, .false., &
                                            self%graph)
      ! The library may look at these while the exchange is under way.
      self%send_numbers = 3*sends%count
      self%send_place = 3*(sends%first - 1)
      self%receive_numbers = 3*receives%count
      self%receive_place = 3*(receives%first - 1)
      allocate (self%request(1))
    case (one_sided)
      call make_window(self, comm, total(receives), available)
      if (.not. available) return
      allocate (self%out(3, total(sends)))
      call introduce(self)
    case (shared)
      call find_node(self)
      call make_window(self, self%node, total(sends), available)
      if (.not. available) return
      allocate (self%in(3, total(receives)))
      allocate (self%buffer(3, total(sends)))
      call introduce(self)
      call view_partners(self)
      call make_requests(self, self%send_node_rank == MPI_UNDEFINED .and. sends%count > 0, &
                         self%receive_node_rank == MPI_UNDEFINED .and. receives%count > 0)
    end select
  end subroutine connect

  pure integer function total(list)
    type(message_list_t), intent(in) :: list
    total = sum(list%count)
  end function total

  !> Persistent requests of the chosen messages. Buffers that move from slot to slot are copied to one that does not.
  subroutine make_requests(self, send_chosen, receive_chosen)
    type(channel_t), intent(inout) :: self
    logical, intent(in) :: send_chosen(:), receive_chosen(:)
    integer :: k, n
    if (.not. associated(self%buffer)) self%buffer => self%out
    allocate (self%request(count(send_chosen) + count(receive_chosen)))
    n = 0
    do k = 1, size(receive_chosen)
      if (.not. receive_chosen(k)) cycle
      n = n + 1
      call MPI_Recv_init(self%in(1, self%receives%first(k)), 3*self%receives%count(k), MPI_REAL8, &
                         self%receives%rank(k), self%receives%tag(k), self%comm, self%request(n))
    end do
    do k = 1, size(send_chosen)
      if (.not. send_chosen(k)) cycle
      n = n + 1
      call MPI_Send_init(self%buffer(1, self%sends%first(k)), 3*self%sends%count(k), MPI_REAL8, self%sends%rank(k), &
                         self%sends%tag(k), self%comm, self%request(n))
    end do
  end subroutine make_requests

  !> The ranks on this node, once.
  subroutine find_node(self)
    type(channel_t), intent(inout) :: self
    if (self%node == MPI_COMM_NULL) &
      call MPI_Comm_split_type(self%comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, self%node)
    self%send_node_rank = node_ranks(self, self%sends%rank)
    self%receive_node_rank = node_ranks(self, self%receives%rank)
  end subroutine find_node

  function node_ranks(self, rank) result(translated)
    type(channel_t), intent(in) :: self
    integer, intent(in) :: rank(:)
    integer :: translated(size(rank))
    type(MPI_Group) :: everyone, here
    call MPI_Comm_group(self%comm, everyone)
    call MPI_Comm_group(self%node, here)
    call MPI_Group_translate_ranks(everyone, size(rank), rank, here, translated)
    call MPI_Group_free(everyone)
    call MPI_Group_free(here)
  end function node_ranks

  !> A window with room for `n_entries` in a slot on every rank, unless the present one has it.
  subroutine make_window(self, comm, n_entries, available)
    type(channel_t), intent(inout) :: self
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: n_entries
    logical, intent(out) :: available
    type(MPI_Errhandler) :: handler
    type(c_ptr) :: memory
    integer(MPI_ADDRESS_KIND) :: bytes
    integer :: need(2), largest(2), code

    available = .true.
    need = [n_entries, max(size(self%sends%rank), size(self%receives%rank))]
    call MPI_Allreduce(need, largest, 2, MPI_INTEGER, MPI_MAX, self%comm)
    if (self%window /= MPI_WIN_NULL .and. largest(1) <= self%capacity .and. largest(2) <= self%n_flags) return
    call free_window(self)
    self%capacity = int(min(1.5_real64*largest(1) + 64, real(huge(1) - 1, real64)/3))
    self%n_flags = max(1, largest(2))
    bytes = 8*(2_MPI_ADDRESS_KIND*flag_stride*self%n_flags + 3_MPI_ADDRESS_KIND*n_slots*self%capacity)
    call MPI_Comm_get_errhandler(comm, handler)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
    if (self%transport == shared) then
      call MPI_Win_allocate_shared(bytes, 8, MPI_INFO_NULL, comm, memory, self%window, code)
    else
      call MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, comm, memory, self%window, code)
    end if
    call MPI_Comm_set_errhandler(comm, handler)
    call MPI_Allreduce(code == MPI_SUCCESS, available, 1, MPI_LOGICAL, MPI_LAND, self%comm)
    if (.not. available) then
      ! Where it was made it cannot be freed, which takes all ranks.
      self%window = MPI_WIN_NULL
      return
    end if
    self%mine = view_of(self, memory)
    self%mine%words = 0_c_int64_t
    self%sequence = 0
    self%connected_at = 0
    call MPI_Win_lock_all(MPI_MODE_NOCHECK, self%window)
    call MPI_Win_sync(self%window)
  end subroutine make_window

  !> Flags and slots in a window.
  function view_of(self, memory) result(view)
    type(channel_t), intent(in) :: self
    type(c_ptr), intent(in) :: memory
    type(view_t) :: view
    integer(c_int64_t), pointer, contiguous :: all_words(:)
    integer :: header
    header = 2*flag_stride*self%n_flags
    call c_f_pointer(memory, all_words, [header + 1])
    view%words => all_words(:header)
    call c_f_pointer(c_loc(all_words(header + 1)), view%entries, [3, self%capacity, n_slots])
  end function view_of

  !> Place of the flag that says message k is there, and of the one that says it was read.
  pure integer function ready_place(k)
    integer, intent(in) :: k
    ready_place = 2*flag_stride*(k - 1) + 1
  end function ready_place

  pure integer function read_place(k)
    integer, intent(in) :: k
    read_place = 2*flag_stride*(k - 1) + flag_stride + 1
  end function read_place

  !> Tell partners where messages lie in one's own buffer and list. Afterwards all of them have finished what they did
  !> before.
  subroutine introduce(self)
    type(channel_t), intent(inout) :: self
    type(MPI_Request) :: request(2*(size(self%sends%rank) + size(self%receives%rank)))
    integer :: of_senders(2, size(self%receives%rank)), of_readers(2, size(self%sends%rank))
    integer :: my_sends(2, size(self%sends%rank)), my_receives(2, size(self%receives%rank))
    integer :: k, n
    n = 0
    do k = 1, size(self%receives%rank)
      my_receives(:, k) = [k, self%receives%first(k)]
      call MPI_Irecv(of_senders(1, k), 2, MPI_INTEGER, self%receives%rank(k), 2*self%receives%tag(k), self%comm, &
                     request(n + 1))
      call MPI_Isend(my_receives(1, k), 2, MPI_INTEGER, self%receives%rank(k), 2*self%receives%tag(k) + 1, self%comm, &
                     request(n + 2))
      n = n + 2
    end do
    do k = 1, size(self%sends%rank)
      my_sends(:, k) = [k, self%sends%first(k)]
      call MPI_Irecv(of_readers(1, k), 2, MPI_INTEGER, self%sends%rank(k), 2*self%sends%tag(k) + 1, self%comm, &
                     request(n + 1))
      call MPI_Isend(my_sends(1, k), 2, MPI_INTEGER, self%sends%rank(k), 2*self%sends%tag(k), self%comm, request(n + 2))
      n = n + 2
    end do
    call MPI_Waitall(n, request, MPI_STATUSES_IGNORE)
    self%partner_number = of_senders(1, :)
    self%reader_number = of_readers(1, :)
    self%partner_first = of_senders(2, :)
    if (self%transport == one_sided) self%partner_first = of_readers(2, :)
  end subroutine introduce

  !> The windows of the senders and readers on this node.
  subroutine view_partners(self)
    type(channel_t), intent(inout) :: self
    integer :: k
    if (allocated(self%sender)) deallocate (self%sender, self%reader)
    allocate (self%sender(size(self%receives%rank)), self%reader(size(self%sends%rank)))
    do k = 1, size(self%sender)
      if (self%receive_node_rank(k) /= MPI_UNDEFINED) self%sender(k) = window_of(self%receive_node_rank(k))
    end do
    do k = 1, size(self%reader)
      if (self%send_node_rank(k) /= MPI_UNDEFINED) self%reader(k) = window_of(self%send_node_rank(k))
    end do

  contains

    type(view_t) function window_of(node_rank)
      integer, intent(in) :: node_rank
      integer(MPI_ADDRESS_KIND) :: bytes
      integer :: unit
      type(c_ptr) :: memory
      call MPI_Win_shared_query(self%window, node_rank, bytes, unit, memory)
      window_of = view_of(self, memory)
    end function window_of

  end subroutine view_partners

  !> Begin an exchange: `out` may be filled after that.
  subroutine open_slot(self)
    class(channel_t), intent(inout) :: self
    integer :: k
    if (self%transport < one_sided) return
    self%sequence = self%sequence + 1
    self%slot = int(modulo(self%sequence, int(n_slots, int64))) + 1
    ! What was in the slot must have been read.
    if (self%sequence - n_slots > self%connected_at) then
      do k = 1, size(self%sends%rank)
        if (self%sends%count(k) == 0) cycle
        if (self%transport == shared) then
          if (self%send_node_rank(k) == MPI_UNDEFINED) cycle
        end if
        call wait_for(self, self%mine%words(read_place(k)), self%sequence - n_slots)
      end do
    end if
    if (self%transport == shared) self%out => self%mine%entries(:, :, self%slot)
    if (self%transport == one_sided) self%in => self%mine%entries(:, :, self%slot)
  end subroutine open_slot

  !> Send what is in `out`, which must then be left alone.
  subroutine start(self)
    class(channel_t), intent(inout) :: self
    integer(MPI_ADDRESS_KIND) :: place
    integer :: k, a, b
    select case (self%transport)
    case (persistent)
      call MPI_Startall(size(self%request), self%request)
    case (neighbourhood)
      call MPI_Ineighbor_alltoallv(self%out, self%send_numbers, self%send_place, MPI_REAL8, self%in, &
                                   self%receive_numbers, self%receive_place, MPI_REAL8, self%graph, self%request(1))
    case (one_sided)
      do k = 1, size(self%sends%rank)
        if (self%sends%count(k) == 0) cycle
        place = 2*flag_stride*self%n_flags + &
                3*(int(self%slot - 1, MPI_ADDRESS_KIND)*self%capacity + self%partner_first(k) - 1)
        call MPI_Put(self%out(1, self%sends%first(k)), 3*self%sends%count(k), MPI_REAL8, self%sends%rank(k), place, &
                     3*self%sends%count(k), MPI_REAL8, self%window)
      end do
      call MPI_Win_flush_all(self%window)
      do k = 1, size(self%sends%rank)
        if (self%sends%count(k) > 0) call raise_flag(self, self%sends%rank(k), ready_place(self%reader_number(k)))
      end do
      call MPI_Win_flush_all(self%window)
    case (shared)
      do k = 1, size(self%sends%rank)
        if (self%sends%count(k) == 0) cycle
        if (self%send_node_rank(k) == MPI_UNDEFINED) then
          a = self%sends%first(k)
          b = a + self%sends%count(k) - 1
          self%buffer(:, a:b) = self%out(:, a:b)
        else
          call flag_set(self%mine%words(ready_place(k)), self%sequence)
        end if
      end do
      if (size(self%request) > 0) call MPI_Startall(size(self%request), self%request)
    end select
  end subroutine start

  !> Has everything come, so that `finish` will not wait? Lets messages progress.
  logical function is_done(self)
    class(channel_t), intent(inout) :: self
    integer :: k
    is_done = .true.
    do k = 1, size(self%receives%rank)
      if (self%receives%count(k) == 0) cycle
      select case (self%transport)
      case (one_sided)
        if (flag_get(self%mine%words(ready_place(k))) < self%sequence) is_done = .false.
      case (shared)
        if (self%receive_node_rank(k) == MPI_UNDEFINED) cycle
        if (flag_get(self%sender(k)%words(ready_place(self%partner_number(k)))) < self%sequence) is_done = .false.
      end select
    end do
    if (.not. is_done) return
    if (allocated(self%request)) call MPI_Testall(size(self%request), self%request, is_done, MPI_STATUSES_IGNORE)
  end function is_done

  !> Wait until everything is in `in`.
  subroutine finish(self)
    class(channel_t), intent(inout) :: self
    integer :: k, a, b, c
    select case (self%transport)
    case (persistent, neighbourhood)
      call MPI_Waitall(size(self%request), self%request, MPI_STATUSES_IGNORE)
    case (one_sided)
      do k = 1, size(self%receives%rank)
        if (self%receives%count(k) == 0) cycle
        call wait_for(self, self%mine%words(ready_place(k)), self%sequence)
      end do
    case (shared)
      do k = 1, size(self%receives%rank)
        if (self%receives%count(k) == 0 .or. self%receive_node_rank(k) == MPI_UNDEFINED) cycle
        call wait_for(self, self%sender(k)%words(ready_place(self%partner_number(k))), self%sequence)
        a = self%receives%first(k)
        b = a + self%receives%count(k) - 1
        c = self%partner_first(k)
        self%in(:, a:b) = self%sender(k)%entries(:, c:c + b - a, self%slot)
        call flag_set(self%sender(k)%words(read_place(self%partner_number(k))), self%sequence)
      end do
      if (size(self%request) > 0) call MPI_Waitall(size(self%request), self%request, MPI_STATUSES_IGNORE)
    end select
  end subroutine finish

  !> End an exchange: `in` was read.
  subroutine close_slot(self)
    class(channel_t), intent(inout) :: self
    integer :: k
    if (self%transport /= one_sided) return
    do k = 1, size(self%receives%rank)
      if (self%receives%count(k) > 0) &
        call raise_flag(self, self%receives%rank(k), read_place(self%partner_number(k)))
    end do
    call MPI_Win_flush_all(self%window)
  end subroutine close_slot

  !> Set a flag in another rank's window to the number of the exchange.
  subroutine raise_flag(self, rank, place)
    type(channel_t), intent(in) :: self
    integer, intent(in) :: rank, place
    call MPI_Accumulate(self%sequence, 1, MPI_INTEGER8, rank, int(place - 1, MPI_ADDRESS_KIND), 1, MPI_INTEGER8, &
                        MPI_REPLACE, self%window)
  end subroutine raise_flag

  !> Wait until a flag has reached a value; the MPI library goes on working meanwhile.
  subroutine wait_for(self, flag, value)
    type(channel_t), intent(in) :: self
    integer(c_int64_t), intent(inout) :: flag
    integer(int64), intent(in) :: value
    integer :: look
    logical :: found
    do
      do look = 1, looks_before_yield
        if (flag_get(flag) >= value) return
      end do
      call MPI_Iprobe(MPI_ANY_SOURCE, idle_tag, self%comm, found, MPI_STATUS_IGNORE)
      call MPI_Win_sync(self%window)
      call yield_core()
    end do
  end subroutine wait_for

  !> Give back requests and buffers, keep windows and graphs.
  subroutine release_buffers(self)
    type(channel_t), intent(inout) :: self
    integer :: k
    if (allocated(self%request)) then
      ! Only persistent ones are still there.
      do k = 1, merge(0, size(self%request), self%transport == neighbourhood)
        call MPI_Request_free(self%request(k))
      end do
      deallocate (self%request)
    end if
    ! One of them may lie in a window.
    if (associated(self%buffer) .and. self%transport == shared) deallocate (self%buffer)
    if (associated(self%out) .and. self%transport /= shared) deallocate (self%out)
    if (associated(self%in) .and. self%transport /= one_sided) deallocate (self%in)
    nullify (self%buffer, self%out, self%in)
  end subroutine release_buffers

  subroutine free_window(self)
    type(channel_t), intent(inout) :: self
    if (self%window == MPI_WIN_NULL) return
    call MPI_Win_unlock_all(self%window)
    call MPI_Win_free(self%window)
  end subroutine free_window

  !> Give everything back; all ranks must call it.
  subroutine destroy(self)
    class(channel_t), intent(inout) :: self
    call release_buffers(self)
    call free_window(self)
    if (self%graph /= MPI_COMM_NULL) call MPI_Comm_free(self%graph)
    if (self%node /= MPI_COMM_NULL) call MPI_Comm_free(self%node)
  end subroutine destroy

end module comm_halo_channel
