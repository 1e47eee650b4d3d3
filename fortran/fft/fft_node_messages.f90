!> Messages of all ranks of one node to all of another as one. The ranks of a node keep their message buffers in memory
!> that they share; for each pair of nodes one rank of each sends and receives straight from and to these buffers. The
!> ranks of a node take turns in that, so that each has as many other nodes as the next.
module fft_node_messages
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int8_t, c_ptr
  use, intrinsic :: iso_fortran_env, only: int64
  use mpi_f08, only: MPI_ADDRESS_KIND, MPI_Allgather, MPI_Allreduce, MPI_Barrier, MPI_BOTTOM, MPI_Comm, MPI_Comm_free, &
    MPI_Comm_rank, MPI_Comm_size, MPI_Comm_split, MPI_Comm_split_type, MPI_COMM_TYPE_SHARED, MPI_Datatype, &
    MPI_INFO_NULL, MPI_INTEGER, MPI_MIN, MPI_MODE_NOCHECK, MPI_Recv_init, MPI_Request, MPI_Request_free, &
    MPI_Send_init, MPI_Startall, MPI_STATUSES_IGNORE, MPI_Type_commit, MPI_Type_create_hindexed, MPI_Type_free, &
    MPI_Waitall, MPI_Win, MPI_Win_allocate_shared, MPI_Win_free, MPI_Win_lock_all, MPI_WIN_NULL, MPI_Win_shared_query, &
    MPI_Win_sync, MPI_Win_unlock_all, operator(/=)
  implicit none
  private
  public :: node_messages_t

  type :: node_messages_t
    !> Messages to other nodes that this rank sends for all, and their bytes.
    integer :: n_messages = 0
    integer(int64) :: n_bytes = 0
    !> Buffers of this rank in shared memory.
    type(c_ptr) :: send, receive
    !> The ranks of the exchange on this node.
    type(MPI_Comm), private :: near
    type(MPI_Win), private :: window = MPI_WIN_NULL
    type(MPI_Request), allocatable, private :: request(:)
    !> Where messages of other ranks of the node lie, and where they go: first byte, bytes.
    integer(MPI_ADDRESS_KIND), allocatable, private :: near_from(:), near_to(:), near_bytes(:)
  contains
    procedure :: create
    procedure :: exchange
    procedure :: destroy
  end type node_messages_t

  !> The message buffers of a rank.
  type :: buffers_t
    integer(MPI_ADDRESS_KIND) :: send = 0, receive = 0
    integer, allocatable :: send_count(:), send_start(:), receive_count(:), receive_start(:)
  end type buffers_t

contains

  !> Make the buffers and plan the messages among the ranks of `comm`; all ranks of `everyone` must call it. Counts and
  !> starts: elements of `width` bytes to and from each rank of `comm`, from 0. `ranks_a_node`: so many ranks count as a
  !> node; 0: those that share memory do.
  subroutine create(self, comm, everyone, ranks_a_node, width, number, send_count, send_start, receive_count, &
    receive_start)
    class(node_messages_t), intent(inout) :: self
    type(MPI_Comm), intent(in) :: comm, everyone
    integer, intent(in) :: ranks_a_node, width
    type(MPI_Datatype), intent(in) :: number
    integer, intent(in) :: send_count(0:), send_start(0:), receive_count(0:), receive_start(0:)
    type(MPI_Comm) :: shared, node
    type(buffers_t), allocatable :: of(:)
    type(c_ptr) :: memory
    integer(MPI_ADDRESS_KIND) :: bytes, send_bytes
    integer :: rank, n_ranks, place, shared_rank, n_shared, first, near_rank, n_near, k, b
    integer, allocatable :: places(:), shared_ranks(:), lines(:), here(:), there(:)

    call MPI_Comm_rank(comm, rank)
    call MPI_Comm_size(comm, n_ranks)
    call MPI_Comm_split_type(everyone, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, shared)
    call MPI_Comm_rank(shared, shared_rank)
    call MPI_Comm_size(shared, n_shared)
    call MPI_Comm_split(shared, shared_rank/merge(ranks_a_node, n_shared, ranks_a_node > 0), shared_rank, node)
    call MPI_Comm_rank(everyone, first)
    call MPI_Allreduce(first, place, 1, MPI_INTEGER, MPI_MIN, node)
    call MPI_Comm_free(node)
    call MPI_Comm_split(comm, place, rank, self%near)
    call MPI_Comm_rank(self%near, near_rank)
    call MPI_Comm_size(self%near, n_near)

    send_bytes = (width*sum(int(send_count, MPI_ADDRESS_KIND)) + 63)/64*64
    bytes = max(64_MPI_ADDRESS_KIND, send_bytes + width*sum(int(receive_count, MPI_ADDRESS_KIND)))
    call MPI_Win_allocate_shared((bytes + 63)/64*64, 1, MPI_INFO_NULL, shared, memory, self%window)
    call MPI_Win_lock_all(MPI_MODE_NOCHECK, self%window)
    self%send = memory
    self%receive = transfer(transfer(memory, 0_MPI_ADDRESS_KIND) + send_bytes, memory)

    allocate (places(0:n_ranks - 1), shared_ranks(0:n_near - 1), of(0:n_near - 1), lines(4*n_ranks*n_near))
    call MPI_Allgather(place, 1, MPI_INTEGER, places, 1, MPI_INTEGER, comm)
    call MPI_Allgather(shared_rank, 1, MPI_INTEGER, shared_ranks, 1, MPI_INTEGER, self%near)
    call MPI_Allgather([send_count, send_start, receive_count, receive_start], 4*n_ranks, MPI_INTEGER, lines, 4*n_ranks, &
                       MPI_INTEGER, self%near)
    do k = 0, n_near - 1
      associate (line => lines(4*n_ranks*k + 1:4*n_ranks*(k + 1)), one => of(k))
        allocate (one%send_count(0:n_ranks - 1), source=line(:n_ranks))
        allocate (one%send_start(0:n_ranks - 1), source=line(n_ranks + 1:2*n_ranks))
        allocate (one%receive_count(0:n_ranks - 1), source=line(2*n_ranks + 1:3*n_ranks))
        allocate (one%receive_start(0:n_ranks - 1), source=line(3*n_ranks + 1:))
        call MPI_Win_shared_query(self%window, shared_ranks(k), bytes, b, memory)
        one%send = transfer(memory, 0_MPI_ADDRESS_KIND)
        one%receive = one%send + (width*sum(int(one%send_count, MPI_ADDRESS_KIND)) + 63)/64*64
      end associate
    end do
    call MPI_Comm_free(shared)

    here = members(place)
    call plan_within_node()
    allocate (self%request(0))
    self%n_messages = 0
    self%n_bytes = 0
    do k = 0, n_ranks - 1
      if (places(k) == place .or. any(places(:k - 1) == places(k))) cycle
      there = members(places(k))
      ! The other node chooses by the same rule.
      if (mod(turn(k), n_near) == near_rank) call plan_with_node(there(1 + mod(turn(here(1)), size(there))))
    end do

  contains

    !> Ranks of the exchange on a node, ascending.
    function members(wanted) result(ranks)
      integer, intent(in) :: wanted
      integer, allocatable :: ranks(:)
      integer :: r
      ranks = pack([(r, r=0, n_ranks - 1)], places == wanted)
    end function members

    !> Nodes that begin before a rank, which is the first of its own.
    integer function turn(first_rank)
      integer, intent(in) :: first_rank
      integer :: r
      turn = count([(all(places(:r - 1) /= places(r)), r=0, first_rank - 1)])
    end function turn

    subroutine plan_within_node()
      integer :: j, n
      allocate (self%near_from(n_near), self%near_to(n_near), self%near_bytes(n_near))
      n = 0
      do j = 0, n_near - 1
        if (j == near_rank .or. of(j)%send_count(rank) == 0) cycle
        n = n + 1
        self%near_from(n) = of(j)%send + width*int(of(j)%send_start(rank), MPI_ADDRESS_KIND)
        self%near_to(n) = of(near_rank)%receive + width*int(receive_start(here(j + 1)), MPI_ADDRESS_KIND)
        self%near_bytes(n) = width*int(of(j)%send_count(rank), MPI_ADDRESS_KIND)
      end do
      self%near_from = self%near_from(:n)
      self%near_to = self%near_to(:n)
      self%near_bytes = self%near_bytes(:n)
    end subroutine plan_within_node

    !> What all ranks of this node have for those of another, and the other way round; `partner` acts for the other node.
    subroutine plan_with_node(partner)
      integer, intent(in) :: partner
      integer(MPI_ADDRESS_KIND) :: send_first(n_near*size(there)), receive_first(n_near*size(there))
      integer :: sent(n_near*size(there)), received(n_near*size(there)), i, j
      ! Both sides list senders in the outer loop.
      do i = 1, n_near
        do j = 1, size(there)
          associate (outgoing => j + (i - 1)*size(there), incoming => i + (j - 1)*n_near, mine => of(i - 1))
            sent(outgoing) = mine%send_count(there(j))
            send_first(outgoing) = mine%send + width*int(mine%send_start(there(j)), MPI_ADDRESS_KIND)
            received(incoming) = mine%receive_count(there(j))
            receive_first(incoming) = mine%receive + width*int(mine%receive_start(there(j)), MPI_ADDRESS_KIND)
          end associate
        end do
      end do
      if (any(received > 0)) call add_request(received, receive_first, partner, .false.)
      if (any(sent > 0)) call add_request(sent, send_first, partner, .true.)
    end subroutine plan_with_node

    subroutine add_request(counts, firsts, partner, is_send)
      integer, intent(in) :: counts(:), partner
      integer(MPI_ADDRESS_KIND), intent(in) :: firsts(:)
      logical, intent(in) :: is_send
      type(MPI_Datatype) :: message
      type(MPI_Request) :: request
      integer, allocatable :: lengths(:)
      integer(MPI_ADDRESS_KIND), allocatable :: places_in_memory(:)
      lengths = pack(counts, counts > 0)
      places_in_memory = pack(firsts, counts > 0)
      call MPI_Type_create_hindexed(size(lengths), lengths, places_in_memory, number, message)
      call MPI_Type_commit(message)
      if (is_send) then
        call MPI_Send_init(MPI_BOTTOM, 1, message, partner, 0, comm, request)
        self%n_messages = self%n_messages + 1
        self%n_bytes = self%n_bytes + width*sum(int(counts, int64))
      else
        call MPI_Recv_init(MPI_BOTTOM, 1, message, partner, 0, comm, request)
      end if
      call MPI_Type_free(message)
      self%request = [self%request, request]
    end subroutine add_request

  end subroutine create

  !> Move what lies in the send buffers of all ranks to their receive buffers; all ranks of the exchange must call it.
  subroutine exchange(self)
    class(node_messages_t), intent(inout) :: self
    integer(c_int8_t), pointer, contiguous :: from(:), to(:)
    type(c_ptr) :: place
    integer :: k
    call meet()
    call MPI_Startall(size(self%request), self%request)
    do k = 1, size(self%near_bytes)
      place = transfer(self%near_from(k), place)
      call c_f_pointer(place, from, [self%near_bytes(k)])
      place = transfer(self%near_to(k), place)
      call c_f_pointer(place, to, [self%near_bytes(k)])
      to = from
    end do
    call MPI_Waitall(size(self%request), self%request, MPI_STATUSES_IGNORE)
    call meet()
  contains
    !> Afterwards all ranks of the node see what they wrote before.
    subroutine meet()
      call MPI_Win_sync(self%window)
      call MPI_Barrier(self%near)
      call MPI_Win_sync(self%window)
    end subroutine meet
  end subroutine exchange

  !> All ranks of the node must call it.
  subroutine destroy(self)
    class(node_messages_t), intent(inout) :: self
    integer :: k
    if (self%window /= MPI_WIN_NULL) then
      do k = 1, size(self%request)
        call MPI_Request_free(self%request(k))
      end do
      call MPI_Win_unlock_all(self%window)
      call MPI_Win_free(self%window)
      call MPI_Comm_free(self%near)
      deallocate (self%request, self%near_from, self%near_to, self%near_bytes)
    end if
  end subroutine destroy

end module fft_node_messages
