!> Messages between objects and the tasks that they make ready: one scheduler a rank.
!>
!> An object waits for its operands. Whatever comes in is handed to `deliver`, which puts it into place and, when the last
!> operand is there, pushes a task on the ready queue; `perform` does a task and posts what follows from it. Nothing
!> blocks: `poll` takes what has come, between tasks and from within long ones. A round ends when this rank has done the
!> tasks that it has in it, a number known beforehand.
!>
!> Messages may travel in buckets of five to the same rank. The last bucket leaves when the items are there that this rank
!> has for that rank in the round, so that no bucket waits for a message that does not come.
module object_office
  use mpi_f08, only: MPI_ANY_SOURCE, MPI_Comm, MPI_Comm_dup, MPI_DOUBLE_PRECISION, MPI_Get_count, MPI_Improbe, &
                     MPI_Isend, MPI_Message, MPI_Mrecv, MPI_Request, MPI_Status, MPI_STATUSES_IGNORE, &
                     MPI_STATUS_IGNORE, MPI_Testsome, MPI_UNDEFINED, MPI_Waitall
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_loc
  use base_kinds, only: real64
  use comm_communicator, only: communicator_t
  use message_traffic, only: traffic_t
  implicit none
  private
  public :: office_t, handler_t, pairs_as_complex

  !> Items in a full bucket, as the source found best.
  integer, parameter :: bucket_size = 5
  !> Words before an item: kind, three indices, length.
  integer, parameter :: header = 5
  !> Messages under way before finished ones are looked for; rounds before their tags come again.
  integer, parameter :: many = 64, most_tags = 16384

  type :: buffer_t
    real(real64), pointer, contiguous :: word(:) => null()
    integer :: n = 0, n_items = 0
  end type buffer_t

  !> What a rank sends, receives and has ready.
  type :: office_t
    integer :: rank = 0, n_ranks = 1
    !> Sent to others: messages, and bytes without headers.
    type(traffic_t), allocatable :: sent(:)
    !> Tasks left in this round.
    integer :: n_left = 0
    type(MPI_Comm), private :: handle
    integer, private :: round = 0
    !> Tasks ready (2, ...), of which those after `head` up to `tail` are left.
    integer, allocatable, private :: ready(:, :)
    integer, private :: head = 0, tail = 0
    !> Items to objects of this rank, and room for those that come while these are handed out.
    type(buffer_t), private :: own, other
    !> Open buckets (kinds, from rank 0), items still to come for each.
    type(buffer_t), allocatable, private :: bucket(:, :)
    integer, allocatable, private :: to_come(:, :)
    type(MPI_Request), allocatable, private :: request(:)
    type(buffer_t), allocatable, private :: under_way(:)
    integer, private :: n_under_way = 0
  contains
    procedure :: open => open_office
    procedure :: begin
    procedure :: expect
    procedure, private :: post_real
    procedure, private :: post_complex
    !> Send an item to the object of a kind and three indices on a rank: in a bucket where such are expected, else
    !> alone. Complex numbers travel as pairs of real ones.
    generic :: post => post_real, post_complex
    procedure :: push
    procedure, private :: send
    procedure, private :: forget_finished
  end type office_t

  type, abstract :: handler_t
    type(office_t), pointer :: office => null()
  contains
    procedure(deliver), deferred :: deliver
    procedure(perform), deferred :: perform
    procedure :: poll
    procedure :: run
  end type handler_t

  abstract interface
    !> Put an item into place.
    subroutine deliver(self, kind, index, values)
      import :: handler_t, real64
      class(handler_t), target, intent(inout) :: self
      integer, intent(in) :: kind, index(3)
      real(real64), intent(in) :: values(:)
    end subroutine deliver
    !> Do a task: what, and with which object.
    subroutine perform(self, what, which)
      import :: handler_t
      class(handler_t), target, intent(inout) :: self
      integer, intent(in) :: what, which
    end subroutine perform
  end interface

contains

  !> All ranks must call it. `names`: of the kinds of messages.
  subroutine open_office(self, comm, names)
    class(office_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    character(len=*), intent(in) :: names(:)
    integer :: k
    self%rank = comm%rank
    self%n_ranks = comm%n_ranks
    call MPI_Comm_dup(comm%handle, self%handle)
    allocate (self%sent(size(names)), self%ready(2, 16), self%request(2*many), self%under_way(2*many))
    allocate (self%bucket(size(names), 0:comm%n_ranks - 1), self%to_come(size(names), 0:comm%n_ranks - 1))
    do k = 1, size(names)
      self%sent(k)%name = names(k)
    end do
  end subroutine open_office

  !> Begin a round with so many tasks. Messages of the next round, from ranks that are ahead, wait for it.
  subroutine begin(self, n_tasks)
    class(office_t), intent(inout) :: self
    integer, intent(in) :: n_tasks
    self%round = modulo(self%round + 1, most_tags)
    self%n_left = n_tasks
    self%head = 0
    self%tail = 0
    self%to_come = 0
  end subroutine begin

  !> One more item of a kind is to go to a rank in this round, in a bucket.
  subroutine expect(self, kind, rank)
    class(office_t), intent(inout) :: self
    integer, intent(in) :: kind, rank
    self%to_come(kind, rank) = self%to_come(kind, rank) + 1
  end subroutine expect

  subroutine post_complex(self, kind, rank, index, values)
    class(office_t), intent(inout) :: self
    integer, intent(in) :: kind, rank, index(3)
    complex(real64), contiguous, target, intent(in) :: values(:)
    real(real64), pointer, contiguous :: pairs(:)
    call c_f_pointer(c_loc(values), pairs, [2*size(values)])
    call self%post_real(kind, rank, index, pairs)
  end subroutine post_complex

  subroutine post_real(self, kind, rank, index, values)
    class(office_t), intent(inout) :: self
    integer, intent(in) :: kind, rank, index(3)
    real(real64), intent(in) :: values(:)
    type(buffer_t) :: alone
    if (rank == self%rank) then
      call append(self%own, kind, index, values)
      return
    end if
    self%sent(kind)%bytes = self%sent(kind)%bytes + 8*size(values)
    if (self%to_come(kind, rank) == 0) then
      call append(alone, kind, index, values)
      call self%send(kind, rank, alone)
      return
    end if
    associate (bucket => self%bucket(kind, rank))
      call append(bucket, kind, index, values)
      self%to_come(kind, rank) = self%to_come(kind, rank) - 1
      if (bucket%n_items == bucket_size .or. self%to_come(kind, rank) == 0) call self%send(kind, rank, bucket)
    end associate
  end subroutine post_real

  subroutine append(buffer, kind, index, values)
    type(buffer_t), intent(inout) :: buffer
    integer, intent(in) :: kind, index(3)
    real(real64), intent(in) :: values(:)
    real(real64), pointer, contiguous :: larger(:)
    integer :: n
    n = buffer%n + header + size(values)
    if (.not. associated(buffer%word)) then
      allocate (buffer%word(n))
    else if (n > size(buffer%word)) then
      allocate (larger(max(n, 2*size(buffer%word))))
      larger(:buffer%n) = buffer%word(:buffer%n)
      deallocate (buffer%word)
      buffer%word => larger
    end if
    buffer%word(buffer%n + 1:buffer%n + header) = real([kind, index, size(values)], real64)
    buffer%word(buffer%n + header + 1:n) = values
    buffer%n = n
    buffer%n_items = buffer%n_items + 1
  end subroutine append

  !> Complex numbers as post_complex sends them.
  pure function pairs_as_complex(values) result(numbers)
    real(real64), intent(in) :: values(:)
    complex(real64) :: numbers(size(values)/2)
    integer :: k
    numbers = [(cmplx(values(2*k - 1), values(2*k), real64), k=1, size(values)/2)]
  end function pairs_as_complex

  !> Send a buffer, which is empty afterwards.
  subroutine send(self, kind, rank, buffer)
    class(office_t), intent(inout) :: self
    integer, intent(in) :: kind, rank
    type(buffer_t), intent(inout) :: buffer
    if (self%n_under_way >= many) call self%forget_finished()
    if (self%n_under_way == size(self%request)) then
      self%request = [self%request, self%request]
      self%under_way = [self%under_way, self%under_way]
    end if
    self%n_under_way = self%n_under_way + 1
    self%under_way(self%n_under_way) = buffer
    call MPI_Isend(buffer%word, buffer%n, MPI_DOUBLE_PRECISION, rank, self%round, self%handle, &
                   self%request(self%n_under_way))
    self%sent(kind)%messages = self%sent(kind)%messages + 1
    buffer = buffer_t()
  end subroutine send

  !> Free what has left.
  subroutine forget_finished(self)
    class(office_t), intent(inout) :: self
    integer :: done(self%n_under_way), n_done, k, n
    logical :: is_done(self%n_under_way)
    call MPI_Testsome(self%n_under_way, self%request, n_done, done, MPI_STATUSES_IGNORE)
    if (n_done == MPI_UNDEFINED .or. n_done == 0) return
    is_done = .false.
    is_done(done(:n_done)) = .true.
    n = 0
    do k = 1, self%n_under_way
      if (is_done(k)) then
        deallocate (self%under_way(k)%word)
        cycle
      end if
      n = n + 1
      self%request(n) = self%request(k)
      self%under_way(n) = self%under_way(k)
    end do
    self%n_under_way = n
  end subroutine forget_finished

  !> A task is ready.
  subroutine push(self, what, which)
    class(office_t), intent(inout) :: self
    integer, intent(in) :: what, which
    if (self%tail == size(self%ready, 2)) then
      self%tail = self%tail - self%head
      self%ready(:, :self%tail) = self%ready(:, self%head + 1:)
      self%head = 0
      if (2*self%tail > size(self%ready, 2)) self%ready = reshape(self%ready, [2, 2*size(self%ready, 2)], pad=self%ready)
    end if
    self%tail = self%tail + 1
    self%ready(:, self%tail) = [what, which]
  end subroutine push

  !> Take what has come, and hand it out.
  subroutine poll(self)
    class(handler_t), target, intent(inout) :: self
    type(MPI_Message) :: message
    type(MPI_Status) :: status
    type(buffer_t) :: buffer
    logical :: is_there
    integer :: n
    associate (office => self%office)
      do while (office%own%n > 0)
        buffer = office%own
        office%own = office%other
        office%other = buffer_t()
        call hand_out(self, buffer)
        buffer%n = 0
        office%other = buffer
      end do
      if (office%n_ranks == 1) return
      do
        call MPI_Improbe(MPI_ANY_SOURCE, office%round, office%handle, is_there, message, status)
        if (.not. is_there) exit
        call MPI_Get_count(status, MPI_DOUBLE_PRECISION, n)
        allocate (buffer%word(n))
        buffer%n = n
        call MPI_Mrecv(buffer%word, n, MPI_DOUBLE_PRECISION, message, MPI_STATUS_IGNORE)
        call hand_out(self, buffer)
        deallocate (buffer%word)
      end do
    end associate
  end subroutine poll

  !> Deliver the items of a buffer.
  subroutine hand_out(self, buffer)
    class(handler_t), target, intent(inout) :: self
    type(buffer_t), intent(in) :: buffer
    integer :: at, length, head(header)
    at = 0
    do while (at < buffer%n)
      head = nint(buffer%word(at + 1:at + header))
      length = head(header)
      call self%deliver(head(1), head(2:4), buffer%word(at + header + 1:at + header + length))
      at = at + header + length
    end do
  end subroutine hand_out

  !> Do all tasks of the round.
  subroutine run(self)
    class(handler_t), target, intent(inout) :: self
    integer :: task(2), k
    do while (self%office%n_left > 0)
      call self%poll()
      if (self%office%head == self%office%tail) cycle
      self%office%head = self%office%head + 1
      task = self%office%ready(:, self%office%head)
      call self%perform(task(1), task(2))
      self%office%n_left = self%office%n_left - 1
    end do
    associate (office => self%office)
      call MPI_Waitall(office%n_under_way, office%request, MPI_STATUSES_IGNORE)
      do k = 1, office%n_under_way
        deallocate (office%under_way(k)%word)
      end do
      office%n_under_way = 0
    end associate
  end subroutine run

end module object_office
