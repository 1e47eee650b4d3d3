!> Messages between ranks that hold atoms and ranks apart that work for them (see `set_apart` in communicator). A link
!> knows its partners' ranks in the communicator of all.
module comm_rank_link
  use mpi_f08, only: MPI_CHARACTER, MPI_INTEGER, MPI_Irecv, MPI_Isend, MPI_REAL8, MPI_Recv, MPI_Request, MPI_Send, &
                     MPI_STATUSES_IGNORE, MPI_STATUS_IGNORE, MPI_Testall, MPI_Waitall
  use base_kinds, only: real64
  use comm_communicator, only: communicator_t
  implicit none
  private
  public :: rank_link_t

  type :: rank_link_t
    type(communicator_t) :: comm
    !> Ranks at the other end.
    integer, allocatable :: partner(:)
    !> Messages under way.
    type(MPI_Request), allocatable, private :: request(:)
    integer, private :: n_requests = 0
  contains
    procedure, private :: send_integers
    procedure, private :: send_reals
    procedure, private :: send_text
    !> Send an array to partner k.
    generic :: send => send_integers, send_reals, send_text
    procedure, private :: receive_integers
    procedure, private :: receive_reals
    procedure, private :: receive_text
    !> Receive an array of known length from partner k.
    generic :: receive => receive_integers, receive_reals, receive_text
    procedure :: start_send
    procedure :: start_receive
    procedure :: advance
    procedure :: finish
  end type rank_link_t

contains

  subroutine send_integers(self, k, values)
    class(rank_link_t), intent(in) :: self
    integer, intent(in) :: k, values(:)
    call MPI_Send(values, size(values), MPI_INTEGER, self%partner(k), 1, self%comm%world)
  end subroutine send_integers

  subroutine send_reals(self, k, values)
    class(rank_link_t), intent(in) :: self
    integer, intent(in) :: k
    real(real64), intent(in) :: values(:)
    call MPI_Send(values, size(values), MPI_REAL8, self%partner(k), 2, self%comm%world)
  end subroutine send_reals

  subroutine send_text(self, k, text)
    class(rank_link_t), intent(in) :: self
    integer, intent(in) :: k
    character(len=*), intent(in) :: text
    call MPI_Send(text, len(text), MPI_CHARACTER, self%partner(k), 3, self%comm%world)
  end subroutine send_text

  subroutine receive_integers(self, k, values)
    class(rank_link_t), intent(in) :: self
    integer, intent(in) :: k
    integer, intent(out) :: values(:)
    call MPI_Recv(values, size(values), MPI_INTEGER, self%partner(k), 1, self%comm%world, MPI_STATUS_IGNORE)
  end subroutine receive_integers

  subroutine receive_reals(self, k, values)
    class(rank_link_t), intent(in) :: self
    integer, intent(in) :: k
    real(real64), intent(out) :: values(:)
    call MPI_Recv(values, size(values), MPI_REAL8, self%partner(k), 2, self%comm%world, MPI_STATUS_IGNORE)
  end subroutine receive_reals

  subroutine receive_text(self, k, text)
    class(rank_link_t), intent(in) :: self
    integer, intent(in) :: k
    character(len=*), intent(out) :: text
    call MPI_Recv(text, len(text), MPI_CHARACTER, self%partner(k), 3, self%comm%world, MPI_STATUS_IGNORE)
  end subroutine receive_text

  !> Begin to send vectors (components, vectors) to partner k (from 1), which must be left alone until `finish`.
  subroutine start_send(self, k, values)
    class(rank_link_t), intent(inout) :: self
    integer, intent(in) :: k
    real(real64), contiguous, target, intent(in) :: values(:, :)
    call make_room(self)
    call MPI_Isend(values, size(values), MPI_REAL8, self%partner(k), 4, self%comm%world, self%request(self%n_requests))
  end subroutine start_send

  !> Begin to receive vectors (components, vectors) from partner k (from 1); they are there after `finish`.
  subroutine start_receive(self, k, values)
    class(rank_link_t), intent(inout) :: self
    integer, intent(in) :: k
    real(real64), contiguous, target, intent(inout) :: values(:, :)
    call make_room(self)
    call MPI_Irecv(values, size(values), MPI_REAL8, self%partner(k), 4, self%comm%world, self%request(self%n_requests))
  end subroutine start_receive

  subroutine make_room(self)
    type(rank_link_t), intent(inout) :: self
    if (.not. allocated(self%request)) allocate (self%request(2*size(self%partner)))
    self%n_requests = self%n_requests + 1
  end subroutine make_room

  !> Let messages progress.
  subroutine advance(self)
    class(rank_link_t), intent(inout) :: self
    logical :: done
    if (self%n_requests == 0) return
    call MPI_Testall(self%n_requests, self%request, done, MPI_STATUSES_IGNORE)
    if (done) self%n_requests = 0
  end subroutine advance

  !> Wait for all that was started.
  subroutine finish(self)
    class(rank_link_t), intent(inout) :: self
    if (self%n_requests > 0) call MPI_Waitall(self%n_requests, self%request, MPI_STATUSES_IGNORE)
    self%n_requests = 0
  end subroutine finish

end module comm_rank_link
