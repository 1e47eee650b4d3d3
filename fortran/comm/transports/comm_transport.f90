!> One-way traffic of a round of messages that travel at the same time: what lies in `out` on the senders arrives in
!> `in` on the receivers. An entry is three numbers. The transport decides how; what arrives is the same bits with all.
!>
!> An exchange is `open` (then `out` may be filled), `start`, `finish` (then `in` may be read), `close`. A new transport
!> is one extension of `transport_t` in a file of its own, and one line in module comm_transports.
module comm_transport
  use mpi_f08, only: MPI_Comm, MPI_REAL8, MPI_Recv_init, MPI_Request, MPI_Request_free, MPI_Send_init
  use base_kinds, only: real64
  implicit none
  private
  public :: transport_t, message_list_t, n_entries, make_requests, free_requests

  !> Messages of one side: partner, tag, first entry in the buffer (from 1), entries. Between two ranks tags differ.
  type :: message_list_t
    integer, allocatable :: rank(:), tag(:), first(:), count(:)
  end type message_list_t

  type, abstract :: transport_t
    !> Entries (3, :) to send, and those that arrived.
    real(real64), pointer, contiguous :: out(:, :) => null(), in(:, :) => null()
    type(MPI_Comm) :: comm
    type(message_list_t) :: sends, receives
  contains
    procedure :: connect
    procedure(make_ready_interface), deferred :: make_ready
    procedure :: open => do_nothing
    procedure(exchange_interface), deferred :: start
    procedure(is_done_interface), deferred :: is_done
    procedure(exchange_interface), deferred :: finish
    procedure :: close => do_nothing
    procedure(exchange_interface), deferred :: release_buffers
    procedure(exchange_interface), deferred :: destroy
  end type transport_t

  abstract interface
    !> Make buffers, requests and windows for `sends` and `receives`.
    subroutine make_ready_interface(self, available)
      import :: transport_t
      class(transport_t), intent(inout) :: self
      logical, intent(out) :: available
    end subroutine make_ready_interface

    !> `start`: send what is in `out`, which must then be left alone. `finish`: wait until everything is in `in`.
    !> `release_buffers`: give back what `make_ready` makes anew. `destroy`: give everything back; all ranks must call it.
    subroutine exchange_interface(self)
      import :: transport_t
      class(transport_t), intent(inout) :: self
    end subroutine exchange_interface

    !> Has everything come, so that `finish` will not wait? Lets messages progress.
    logical function is_done_interface(self)
      import :: transport_t
      class(transport_t), intent(inout) :: self
    end function is_done_interface
  end interface

contains

  !> Get ready for messages of these sizes; none goes to this rank itself. All ranks of `comm` must call it, when no
  !> exchange is under way; partners and their order may change only after `destroy`. `available`: whether the transport
  !> can be had, the same on all ranks.
  subroutine connect(self, comm, sends, receives, available)
    class(transport_t), intent(inout) :: self
    type(MPI_Comm), intent(in) :: comm
    type(message_list_t), intent(in) :: sends, receives
    logical, intent(out) :: available
    call self%release_buffers()
    self%comm = comm
    self%sends = sends
    self%receives = receives
    call self%make_ready(available)
  end subroutine connect

  subroutine do_nothing(self)
    class(transport_t), intent(inout) :: self
    associate (unused => self)
    end associate
  end subroutine do_nothing

  pure integer function n_entries(list)
    type(message_list_t), intent(in) :: list
    n_entries = sum(list%count)
  end function n_entries

  !> Persistent requests of the chosen messages, of those that receive first. `out` and `in` must stay where they are
  !> until the requests are freed.
  !> `out`, `in`: (3, entries).
  subroutine make_requests(comm, sends, send_chosen, out, receives, receive_chosen, in, request)
    type(MPI_Comm), intent(in) :: comm
    type(message_list_t), intent(in) :: sends, receives
    logical, intent(in) :: send_chosen(:), receive_chosen(:)
    real(real64), contiguous, intent(in) :: out(:, :)
    real(real64), contiguous, intent(inout) :: in(:, :)
    type(MPI_Request), allocatable, intent(out) :: request(:)
    integer :: k, n
    allocate (request(count(send_chosen) + count(receive_chosen)))
    n = 0
    do k = 1, size(receive_chosen)
      if (.not. receive_chosen(k)) cycle
      n = n + 1
      call MPI_Recv_init(in(1, receives%first(k)), 3*receives%count(k), MPI_REAL8, receives%rank(k), receives%tag(k), &
                         comm, request(n))
    end do
    do k = 1, size(send_chosen)
      if (.not. send_chosen(k)) cycle
      n = n + 1
      call MPI_Send_init(out(1, sends%first(k)), 3*sends%count(k), MPI_REAL8, sends%rank(k), sends%tag(k), comm, &
                         request(n))
    end do
  end subroutine make_requests

  subroutine free_requests(request)
    type(MPI_Request), allocatable, intent(inout) :: request(:)
    integer :: k
    if (.not. allocated(request)) return
    do k = 1, size(request)
      call MPI_Request_free(request(k))
    end do
    deallocate (request)
  end subroutine free_requests

end module comm_transport
