!> SHARED: receivers on the same node read the senders' memory, others get messages.
module comm_shared
  use, intrinsic :: iso_c_binding, only: c_ptr
  use mpi_f08, only: MPI_ADDRESS_KIND, MPI_Comm, MPI_Comm_free, MPI_Comm_group, MPI_COMM_NULL, MPI_Comm_split_type, &
    MPI_COMM_TYPE_SHARED, MPI_Group, MPI_Group_free, MPI_Group_translate_ranks, MPI_INFO_NULL, MPI_Request, &
    MPI_Startall, MPI_STATUSES_IGNORE, MPI_Testall, MPI_UNDEFINED, MPI_Waitall, MPI_Win_allocate_shared, &
    MPI_Win_shared_query, operator(/=), operator(==)
  use base_kinds, only: real64
  use comm_transport, only: free_requests, make_requests, n_entries
  use comm_window, only: flag_get, flag_set, read_place, ready_place, view_t, window_transport_t
  implicit none
  private
  public :: shared_t

  type, extends(window_transport_t) :: shared_t
    private
    !> Ranks that share memory with this one.
    type(MPI_Comm) :: node = MPI_COMM_NULL
    !> Which messages go to, or come from, ranks on this node, and the windows of those that send.
    logical, allocatable :: send_near(:), receive_near(:)
    type(view_t), allocatable :: sender(:)
    !> Messages to and from other nodes; `out` moves from slot to slot, this buffer (3, :) does not.
    type(MPI_Request), allocatable :: request(:)
    real(real64), pointer, contiguous :: buffer(:, :) => null()
  contains
    procedure :: make_ready
    procedure :: allocate_window
    procedure :: open => open_slot
    procedure :: start
    procedure :: is_done
    procedure :: finish
    procedure :: release_buffers
    procedure :: destroy
  end type shared_t

contains

  subroutine make_ready(self, available)
    class(shared_t), intent(inout) :: self
    logical, intent(out) :: available
    integer, allocatable :: node_rank(:)
    integer :: k
    if (self%node == MPI_COMM_NULL) &
      call MPI_Comm_split_type(self%comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, self%node)
    call self%make_window(self%node, n_entries(self%sends), available)
    if (.not. available) return
    allocate (self%in(3, n_entries(self%receives)), self%buffer(3, n_entries(self%sends)))
    call self%introduce()
    self%send_near = node_ranks(self, self%sends%rank) /= MPI_UNDEFINED
    node_rank = node_ranks(self, self%receives%rank)
    self%receive_near = node_rank /= MPI_UNDEFINED
    if (allocated(self%sender)) deallocate (self%sender)
    allocate (self%sender(size(self%receives%rank)))
    do k = 1, size(self%sender)
      if (self%receive_near(k)) self%sender(k) = window_of(self, node_rank(k))
    end do
    call make_requests(self%comm, self%sends, .not. self%send_near .and. self%sends%count > 0, self%buffer, &
                       self%receives, .not. self%receive_near .and. self%receives%count > 0, self%in, self%request)
  end subroutine make_ready

  !> The ranks on this node (MPI_UNDEFINED: on another) of ranks of the communicator.
  function node_ranks(self, rank) result(translated)
    type(shared_t), intent(in) :: self
    integer, intent(in) :: rank(:)
    integer :: translated(size(rank))
    type(MPI_Group) :: everyone, here
    call MPI_Comm_group(self%comm, everyone)
    call MPI_Comm_group(self%node, here)
    call MPI_Group_translate_ranks(everyone, size(rank), rank, here, translated)
    call MPI_Group_free(everyone)
    call MPI_Group_free(here)
  end function node_ranks

  !> The window of a rank on this node.
  type(view_t) function window_of(self, node_rank)
    type(shared_t), intent(in) :: self
    integer, intent(in) :: node_rank
    integer(MPI_ADDRESS_KIND) :: bytes
    integer :: unit
    type(c_ptr) :: memory
    call MPI_Win_shared_query(self%window, node_rank, bytes, unit, memory)
    window_of = self%view_of(memory)
  end function window_of

  subroutine allocate_window(self, bytes, comm, memory, code)
    class(shared_t), intent(inout) :: self
    integer(MPI_ADDRESS_KIND), intent(in) :: bytes
    type(MPI_Comm), intent(in) :: comm
    type(c_ptr), intent(out) :: memory
    integer, intent(out) :: code
    call MPI_Win_allocate_shared(bytes, 8, MPI_INFO_NULL, comm, memory, self%window, code)
  end subroutine allocate_window

  subroutine open_slot(self)
    class(shared_t), intent(inout) :: self
    call self%next_slot(self%send_near .and. self%sends%count > 0)
    self%out => self%mine%entries(:, :, self%slot)
  end subroutine open_slot

  subroutine start(self)
    class(shared_t), intent(inout) :: self
    integer :: k, a, b
    do k = 1, size(self%sends%rank)
      if (self%sends%count(k) == 0) cycle
      if (self%send_near(k)) then
        call flag_set(self%mine%words(ready_place(k)), self%sequence)
      else
        a = self%sends%first(k)
        b = a + self%sends%count(k) - 1
        self%buffer(:, a:b) = self%out(:, a:b)
      end if
    end do
    if (size(self%request) > 0) call MPI_Startall(size(self%request), self%request)
  end subroutine start

  logical function is_done(self)
    class(shared_t), intent(inout) :: self
    integer :: k
    is_done = .true.
    do k = 1, size(self%receives%rank)
      if (self%receives%count(k) == 0 .or. .not. self%receive_near(k)) cycle
      if (flag_get(self%sender(k)%words(ready_place(self%sender_number(k)))) < self%sequence) is_done = .false.
    end do
    if (is_done) call MPI_Testall(size(self%request), self%request, is_done, MPI_STATUSES_IGNORE)
  end function is_done

  subroutine finish(self)
    class(shared_t), intent(inout) :: self
    integer :: k, a, b, c
    do k = 1, size(self%receives%rank)
      if (self%receives%count(k) == 0 .or. .not. self%receive_near(k)) cycle
      call self%wait_for(self%sender(k)%words(ready_place(self%sender_number(k))), self%sequence)
      a = self%receives%first(k)
      b = a + self%receives%count(k) - 1
      c = self%sender_first(k)
      self%in(:, a:b) = self%sender(k)%entries(:, c:c + b - a, self%slot)
      call flag_set(self%sender(k)%words(read_place(self%sender_number(k))), self%sequence)
    end do
    if (size(self%request) > 0) call MPI_Waitall(size(self%request), self%request, MPI_STATUSES_IGNORE)
  end subroutine finish

  subroutine release_buffers(self)
    class(shared_t), intent(inout) :: self
    call free_requests(self%request)
    if (associated(self%in)) deallocate (self%in, self%buffer)
    ! It lies in the window.
    nullify (self%out)
  end subroutine release_buffers

  subroutine destroy(self)
    class(shared_t), intent(inout) :: self
    call self%release_buffers()
    call self%free_window()
    if (self%node /= MPI_COMM_NULL) call MPI_Comm_free(self%node)
  end subroutine destroy

end module comm_shared
