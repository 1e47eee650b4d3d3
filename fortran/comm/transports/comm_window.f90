!> What transports through memory windows share. A window is registered once, larger than needed, and anew only if an
!> exchange does not fit. It has four slots used in turn, so that a sender may be ahead of its receivers; that a message
!> is there, and that it was read, is told by flags with the number of the exchange.
module comm_window
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int64_t, c_loc, c_ptr
  use mpi_f08, only: MPI_ADDRESS_KIND, MPI_Allreduce, MPI_ANY_SOURCE, MPI_Comm, MPI_Comm_get_errhandler, &
    MPI_Comm_set_errhandler, MPI_Errhandler, MPI_ERRORS_RETURN, MPI_INTEGER, MPI_Iprobe, MPI_Irecv, MPI_Isend, &
    MPI_LAND, MPI_LOGICAL, MPI_MAX, MPI_MODE_NOCHECK, MPI_Request, MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE, &
    MPI_SUCCESS, MPI_Waitall, MPI_Win, MPI_Win_free, MPI_Win_lock_all, MPI_WIN_NULL, MPI_Win_sync, &
    MPI_Win_unlock_all, operator(/=)
  use base_kinds, only: int64, real64
  use comm_transport, only: transport_t
  implicit none
  private
  public :: window_transport_t, view_t, flag_get, flag_set, flag_stride, n_slots, read_place, ready_place

  integer, parameter :: n_slots = 4
  !> Numbers of 8 bytes from one flag to the next: each has a cache line to itself.
  integer, parameter :: flag_stride = 8
  !> Looks at a flag before the MPI library may work and the core is offered to others.
  integer, parameter :: looks_before_yield = 500
  !> Nobody sends with this tag.
  integer, parameter :: idle_tag = 30000

  !> The window of a rank: its flags, and the entries (3, capacity, n_slots) of its slots.
  type :: view_t
    integer(c_int64_t), pointer, contiguous :: words(:) => null()
    real(real64), pointer, contiguous :: entries(:, :, :) => null()
  end type view_t

  type, abstract, extends(transport_t) :: window_transport_t
    type(MPI_Win) :: window = MPI_WIN_NULL
    type(view_t) :: mine
    !> Slot and number of the exchange under way, and the number when partners met last.
    integer :: slot = 1
    integer(int64) :: sequence = 0, connected_at = 0
    !> Entries of a slot, and how many messages have flags.
    integer :: capacity = 0, n_flags = 0
    !> Number of a message in its sender's and in its reader's list; first entry in the buffer of its sender, and of
    !> its reader.
    integer, allocatable :: sender_number(:), reader_number(:), sender_first(:), reader_first(:)
  contains
    procedure(allocate_interface), deferred :: allocate_window
    procedure :: make_window
    procedure :: introduce
    procedure :: view_of
    procedure :: next_slot
    procedure :: wait_for
    procedure :: free_window
  end type window_transport_t

  abstract interface
    !> Have the MPI library allocate a window of so many bytes on every rank of `comm`. `code`: as MPI returns it.
    subroutine allocate_interface(self, bytes, comm, memory, code)
      import :: c_ptr, MPI_ADDRESS_KIND, MPI_Comm, window_transport_t
      class(window_transport_t), intent(inout) :: self
      integer(MPI_ADDRESS_KIND), intent(in) :: bytes
      type(MPI_Comm), intent(in) :: comm
      type(c_ptr), intent(out) :: memory
      integer, intent(out) :: code
    end subroutine allocate_interface
  end interface

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

  !> A window on the ranks of `comm` with room for `n_entries` in a slot, unless the present one has it.
  subroutine make_window(self, comm, n_entries, available)
    class(window_transport_t), intent(inout) :: self
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: n_entries
    logical, intent(out) :: available
    type(MPI_Errhandler) :: handler
    type(c_ptr) :: memory
    integer(MPI_ADDRESS_KIND) :: bytes
    integer :: need(2), largest(2), code

    available = .true.
    self%connected_at = self%sequence
    need = [n_entries, max(size(self%sends%rank), size(self%receives%rank))]
    call MPI_Allreduce(need, largest, 2, MPI_INTEGER, MPI_MAX, self%comm)
    if (self%window /= MPI_WIN_NULL .and. largest(1) <= self%capacity .and. largest(2) <= self%n_flags) return
    call self%free_window()
    self%capacity = int(min(1.5_real64*largest(1) + 64, real(huge(1) - 1, real64)/3))
    self%n_flags = max(1, largest(2))
    bytes = 8*(2_MPI_ADDRESS_KIND*flag_stride*self%n_flags + 3_MPI_ADDRESS_KIND*n_slots*self%capacity)
    call MPI_Comm_get_errhandler(comm, handler)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
    call self%allocate_window(bytes, comm, memory, code)
    call MPI_Comm_set_errhandler(comm, handler)
    call MPI_Allreduce(code == MPI_SUCCESS, available, 1, MPI_LOGICAL, MPI_LAND, self%comm)
    if (.not. available) then
      ! Where it was made it cannot be freed, which takes all ranks.
      self%window = MPI_WIN_NULL
      return
    end if
    self%mine = self%view_of(memory)
    self%mine%words = 0_c_int64_t
    self%sequence = 0
    self%connected_at = 0
    call MPI_Win_lock_all(MPI_MODE_NOCHECK, self%window)
    call MPI_Win_sync(self%window)
  end subroutine make_window

  !> Flags and slots in a window.
  function view_of(self, memory) result(view)
    class(window_transport_t), intent(in) :: self
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
    class(window_transport_t), intent(inout) :: self
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
    self%sender_number = of_senders(1, :)
    self%sender_first = of_senders(2, :)
    self%reader_number = of_readers(1, :)
    self%reader_first = of_readers(2, :)
  end subroutine introduce

  !> Go on to the next slot when the chosen messages that were in it (`of_window`) have been read.
  subroutine next_slot(self, of_window)
    class(window_transport_t), intent(inout) :: self
    logical, intent(in) :: of_window(:)
    integer :: k
    self%sequence = self%sequence + 1
    self%slot = int(modulo(self%sequence, int(n_slots, int64))) + 1
    if (self%sequence - n_slots <= self%connected_at) return
    do k = 1, size(self%sends%rank)
      if (of_window(k)) call self%wait_for(self%mine%words(read_place(k)), self%sequence - n_slots)
    end do
  end subroutine next_slot

  !> Wait until a flag has reached a value; the MPI library goes on working meanwhile.
  subroutine wait_for(self, flag, value)
    class(window_transport_t), intent(in) :: self
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

  subroutine free_window(self)
    class(window_transport_t), intent(inout) :: self
    if (.not. self%window /= MPI_WIN_NULL) return
    call MPI_Win_unlock_all(self%window)
    call MPI_Win_free(self%window)
  end subroutine free_window

end module comm_window
