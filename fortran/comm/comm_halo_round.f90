!> A round of the halo exchange: segments of atoms that go to other domains at the same time. Atoms come from a pool
!> (owned atoms, then what earlier rounds brought) and what arrives is appended to it. Segments for one rank travel in one
!> message if messages are combined; those for this rank itself are copies without a message.
module comm_halo_round
  use mpi_f08, only: MPI_Irecv, MPI_Isend, MPI_INTEGER, MPI_INTEGER8, MPI_REAL8, MPI_Request, MPI_STATUSES_IGNORE, &
                     MPI_Waitall
  use base_kinds, only: int64, real64
  use comm_communicator, only: communicator_t
  use comm_domain_grid, only: domain_grid_t
  use comm_transport, only: message_list_t, transport_t
  use comm_transports, only: make_transport
  implicit none
  private
  public :: round_t

  type :: round_t
    integer :: n_segments = 0
    !> Where the receiver of each segment lies, in domains from here; its rank, and that of the sender at the opposite
    !> place.
    integer, allocatable :: displacement(:, :), send_rank(:), receive_rank(:)
    !> Pool entries of segment s that are sent: `atom(first(s):first(s+1)-1)`; what arrives in it are the entries
    !> `base + arrival_first(s)` to `base + arrival_first(s+1) - 1`.
    integer, allocatable :: first(:), atom(:), arrival_first(:)
    integer :: base = 0
    !> Added to positions so that they are in the frame of the receiver, in box edges, and in angstrom.
    integer, allocatable :: image(:, :)
    real(real64), allocatable :: shift(:, :)
    !> Messages that carry the segments to other ranks and bring them from there.
    type(message_list_t) :: sends, receives
    integer, private :: rank = 0
    !> Buffer entry before the first one of a segment that goes to, or comes from, another rank.
    integer, allocatable, private :: out_before(:), in_before(:)
    class(transport_t), allocatable, private :: there, back
  contains
    procedure :: create
    procedure :: count_arrivals
    procedure :: swap_integers
    procedure :: swap_reals
    procedure :: connect
    procedure :: start_carry
    procedure :: is_carried
    procedure :: finish_carry
    procedure :: start_return
    procedure :: finish_return
    procedure :: destroy
  end type round_t

contains

  !> The segments for receivers at these displacements (3, n); no atoms yet.
  subroutine create(self, grid, rank, displacement)
    class(round_t), intent(inout) :: self
    type(domain_grid_t), intent(in) :: grid
    integer, intent(in) :: rank, displacement(:, :)
    integer :: s, receiver(3)
    self%rank = rank
    self%n_segments = size(displacement, 2)
    self%displacement = displacement
    if (allocated(self%send_rank)) deallocate (self%send_rank, self%receive_rank, self%image, self%shift)
    allocate (self%send_rank(self%n_segments), self%receive_rank(self%n_segments), self%image(3, self%n_segments), &
              self%shift(3, self%n_segments))
    do s = 1, self%n_segments
      receiver = grid%coordinate + displacement(:, s)
      self%send_rank(s) = grid%rank_of(receiver)
      self%receive_rank(s) = grid%rank_of(grid%coordinate - displacement(:, s))
      self%image(:, s) = (modulo(receiver, grid%dims) - receiver)/grid%dims
      self%shift(:, s) = grid%translation(real(self%image(:, s), real64))
    end do
  end subroutine create

  !> Tell receivers how much comes in every segment; `arriving(s)` of `leaving(s)`'s counterpart.
  !> Atoms, or anything else that is counted, of each segment.
  subroutine count_arrivals(self, comm, leaving, arriving)
    class(round_t), intent(in) :: self
    type(communicator_t), intent(in) :: comm
    integer, intent(in) :: leaving(:)
    integer, intent(out) :: arriving(:)
    type(MPI_Request) :: request(2*self%n_segments)
    integer :: s, n
    n = 0
    do s = 1, self%n_segments
      if (self%receive_rank(s) == self%rank) then
        arriving(s) = leaving(s)
        cycle
      end if
      call MPI_Irecv(arriving(s), 1, MPI_INTEGER, self%receive_rank(s), s, comm%handle, request(n + 1))
      call MPI_Isend(leaving(s), 1, MPI_INTEGER, self%send_rank(s), s, comm%handle, request(n + 2))
      n = n + 2
    end do
    call MPI_Waitall(n, request, MPI_STATUSES_IGNORE)
  end subroutine count_arrivals

  !> Send `out(first(s):first(s+1)-1)` for every segment; `in` likewise by `arrival_first`.
  !> Both have one entry more than there are segments, the end.
  subroutine swap_integers(self, comm, first, out, arrival_first, in)
    class(round_t), intent(in) :: self
    type(communicator_t), intent(in) :: comm
    integer, intent(in) :: first(:), arrival_first(:)
    integer(int64), contiguous, target, intent(in) :: out(:)
    integer(int64), contiguous, target, intent(inout) :: in(:)
    type(MPI_Request) :: request(2*self%n_segments)
    integer :: s, n
    n = 0
    do s = 1, self%n_segments
      associate (a => arrival_first(s), b => arrival_first(s + 1) - 1, c => first(s), d => first(s + 1) - 1)
        if (self%receive_rank(s) == self%rank) then
          in(a:b) = out(c:d)
          cycle
        end if
        call MPI_Irecv(in(a:b), b - a + 1, MPI_INTEGER8, self%receive_rank(s), s, comm%handle, request(n + 1))
        call MPI_Isend(out(c:d), d - c + 1, MPI_INTEGER8, self%send_rank(s), s, comm%handle, request(n + 2))
      end associate
      n = n + 2
    end do
    call MPI_Waitall(n, request, MPI_STATUSES_IGNORE)
  end subroutine swap_integers

  !> The same for columns of real numbers.
  subroutine swap_reals(self, comm, first, out, arrival_first, in)
    class(round_t), intent(in) :: self
    type(communicator_t), intent(in) :: comm
    integer, intent(in) :: first(:), arrival_first(:)
    real(real64), contiguous, target, intent(in) :: out(:, :)
    real(real64), contiguous, target, intent(inout) :: in(:, :)
    type(MPI_Request) :: request(2*self%n_segments)
    integer :: s, n
    n = 0
    do s = 1, self%n_segments
      associate (a => arrival_first(s), b => arrival_first(s + 1) - 1, c => first(s), d => first(s + 1) - 1)
        if (self%receive_rank(s) == self%rank) then
          in(:, a:b) = out(:, c:d)
          cycle
        end if
        call MPI_Irecv(in(:, a:b), size(in, 1)*(b - a + 1), MPI_REAL8, self%receive_rank(s), s, comm%handle, &
                       request(n + 1))
        call MPI_Isend(out(:, c:d), size(out, 1)*(d - c + 1), MPI_REAL8, self%send_rank(s), s, comm%handle, &
                       request(n + 2))
      end associate
      n = n + 2
    end do
    call MPI_Waitall(n, request, MPI_STATUSES_IGNORE)
  end subroutine swap_reals

  !> Make the messages for the atoms at hand and get the transport (place in `transport_names`) ready, there and back.
  !> Another transport may be chosen only after `destroy`.
  subroutine connect(self, comm, transport, combine, available)
    class(round_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    integer, intent(in) :: transport
    logical, intent(in) :: combine
    logical, intent(out) :: available
    call make_messages(self%rank, combine, self%send_rank, self%first, self%sends, self%out_before)
    call make_messages(self%rank, combine, self%receive_rank, self%arrival_first, self%receives, self%in_before)
    if (.not. allocated(self%there)) then
      call make_transport(transport, self%there)
      call make_transport(transport, self%back)
    end if
    call self%there%connect(comm%handle, self%sends, self%receives, available)
    if (available) call self%back%connect(comm%handle, self%receives, self%sends, available)
  end subroutine connect

  !> Messages to (or from) the partners of the segments, in order of their first segments, whose number is the tag: both
  !> sides see the same order.
  subroutine make_messages(me, combine, partner, first, messages, before)
    integer, intent(in) :: me, partner(:), first(:)
    logical, intent(in) :: combine
    type(message_list_t), intent(out) :: messages
    integer, allocatable, intent(out) :: before(:)
    logical :: leads(size(partner)), joins(size(partner))
    integer :: s, k, j, n
    do s = 1, size(partner)
      leads(s) = partner(s) /= me
      if (combine) leads(s) = leads(s) .and. .not. any(partner(:s - 1) == partner(s))
    end do
    messages%tag = pack([(s, s=1, size(partner))], leads)
    messages%rank = partner(messages%tag)
    allocate (before(size(partner)), source=0)
    allocate (messages%first(size(messages%rank)), messages%count(size(messages%rank)))
    n = 0
    do k = 1, size(messages%rank)
      messages%first(k) = n + 1
      joins = partner == messages%rank(k)
      if (.not. combine) joins = [(s == messages%tag(k), s=1, size(partner))]
      do j = 1, size(partner)
        if (.not. joins(j)) cycle
        before(j) = n
        n = n + first(j + 1) - first(j)
      end do
      messages%count(k) = n + 1 - messages%first(k)
    end do
  end subroutine make_messages

  !> Begin to bring positions (`pool(3, :)`, angstrom) of this round's arrivals up to date; or, with `shifted` false,
  !> any other vectors. The atoms that are sent must not move before `finish_carry`.
  subroutine start_carry(self, pool, shifted)
    class(round_t), intent(inout) :: self
    real(real64), contiguous, intent(inout) :: pool(:, :)
    logical, intent(in), optional :: shifted
    real(real64) :: shift(3, self%n_segments)
    integer :: s, i, k
    shift = self%shift(:, :self%n_segments)
    if (present(shifted)) shift = merge(shift, 0.0_real64, shifted)
    call self%there%open()
    do s = 1, self%n_segments
      if (self%send_rank(s) == self%rank) cycle
      k = self%out_before(s) - self%first(s) + 1
      !$omp parallel do schedule(static)
      do i = self%first(s), self%first(s + 1) - 1
        self%there%out(:, k + i) = pool(:, self%atom(i)) + shift(:, s)
      end do
      !$omp end parallel do
    end do
    call self%there%start()
    do s = 1, self%n_segments
      if (self%send_rank(s) /= self%rank) cycle
      k = self%base + self%arrival_first(s) - self%first(s)
      !$omp parallel do schedule(static)
      do i = self%first(s), self%first(s + 1) - 1
        pool(:, k + i) = pool(:, self%atom(i)) + shift(:, s)
      end do
      !$omp end parallel do
    end do
  end subroutine start_carry

  !> Has everything arrived, so that `finish_carry` will not wait?
  logical function is_carried(self)
    class(round_t), intent(inout) :: self
    is_carried = self%there%is_done()
  end function is_carried

  !> Wait for the arrivals and put them into the pool, `start_carry`'s.
  subroutine finish_carry(self, pool)
    class(round_t), intent(inout) :: self
    real(real64), contiguous, intent(inout) :: pool(:, :)
    integer :: s, i, k
    call self%there%finish()
    do s = 1, self%n_segments
      if (self%receive_rank(s) == self%rank) cycle
      k = self%in_before(s) + 1 - self%arrival_first(s)
      !$omp parallel do schedule(static)
      do i = self%arrival_first(s), self%arrival_first(s + 1) - 1
        pool(:, self%base + i) = self%there%in(:, k + i)
      end do
      !$omp end parallel do
    end do
    call self%there%close()
  end subroutine finish_carry

  !> Begin to send the forces (`pool(3, :)`) on this round's arrivals to where they came from.
  subroutine start_return(self, pool)
    class(round_t), intent(inout) :: self
    real(real64), contiguous, intent(in) :: pool(:, :)
    integer :: s, i, k
    call self%back%open()
    do s = 1, self%n_segments
      if (self%receive_rank(s) == self%rank) cycle
      k = self%in_before(s) + 1 - self%arrival_first(s)
      !$omp parallel do schedule(static)
      do i = self%arrival_first(s), self%arrival_first(s + 1) - 1
        self%back%out(:, k + i) = pool(:, self%base + i)
      end do
      !$omp end parallel do
    end do
    call self%back%start()
  end subroutine start_return

  !> Wait for the forces on the atoms that were sent and add them. Always in the order of the segments, so that sums
  !> round the same way whatever the transport.
  subroutine finish_return(self, pool)
    class(round_t), intent(inout) :: self
    real(real64), contiguous, intent(inout) :: pool(:, :)
    integer :: s, i, k
    call self%back%finish()
    do s = 1, self%n_segments
      ! An atom occurs at most once in a segment.
      if (self%send_rank(s) == self%rank) then
        k = self%base + self%arrival_first(s) - self%first(s)
        !$omp parallel do schedule(static)
        do i = self%first(s), self%first(s + 1) - 1
          pool(:, self%atom(i)) = pool(:, self%atom(i)) + pool(:, k + i)
        end do
        !$omp end parallel do
      else
        k = self%out_before(s) - self%first(s) + 1
        !$omp parallel do schedule(static)
        do i = self%first(s), self%first(s + 1) - 1
          pool(:, self%atom(i)) = pool(:, self%atom(i)) + self%back%in(:, k + i)
        end do
        !$omp end parallel do
      end if
    end do
    call self%back%close()
  end subroutine finish_return

  !> Give back what the transport holds; all ranks must call it.
  subroutine destroy(self)
    class(round_t), intent(inout) :: self
    if (.not. allocated(self%there)) return
    call self%there%destroy()
    call self%back%destroy()
    deallocate (self%there, self%back)
  end subroutine destroy

end module comm_halo_round
