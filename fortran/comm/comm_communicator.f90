!> The few collective and point-to-point operations that the engine needs, so that MPI stays in this folder.
module comm_communicator
  use mpi_f08, only: MPI_Abort, MPI_Allreduce, MPI_Barrier, MPI_Bcast, MPI_CHARACTER, MPI_Comm, MPI_COMM_WORLD, &
                     MPI_Comm_free, MPI_Comm_rank, MPI_Comm_size, MPI_Comm_split, MPI_Comm_split_type, &
                     MPI_COMM_TYPE_SHARED, MPI_Finalize, MPI_INFO_NULL, MPI_Init_thread, MPI_INTEGER, MPI_INTEGER8, &
                     MPI_MAX, MPI_MIN, MPI_Probe, MPI_Get_count, MPI_REAL8, MPI_Recv, MPI_Reduce, &
                     MPI_Send, MPI_Status, MPI_STATUS_IGNORE, MPI_SUM, MPI_THREAD_FUNNELED
  use base_kinds, only: int64, real64
  use base_error, only: error_t, fail
  implicit none
  private
  public :: communicator_t

  type :: communicator_t
    type(MPI_Comm) :: handle
    integer :: rank = 0
    integer :: n_ranks = 1
    !> Groups of ranks that each hold a whole system (`split`), and which of them this one is in, from 1.
    integer :: n_replicas = 1, replica = 1
    !> All ranks of this replica, and how many of them are on the other side of `set_apart`.
    type(MPI_Comm) :: world
    integer :: n_apart = 0
    !> The ranks of all replicas on this side of `set_apart`.
    type(MPI_Comm), private :: everyone
    !> Does this rank stand apart from those with atoms?
    logical :: is_apart = .false.
  contains
    procedure :: start
    procedure :: split
    procedure :: of_all_replicas
    procedure :: set_apart
    procedure :: reorder
    procedure :: finish
    procedure :: abort
    procedure :: agree
    procedure :: barrier
    procedure :: is_root
    procedure :: ranks_of_node
    procedure :: maximum
    procedure, private :: sum_real
    procedure, private :: sum_integer
    !> Sum an array over all ranks; every rank gets the same bits.
    generic :: sum => sum_real, sum_integer
    procedure, private :: send_integer
    procedure, private :: send_real
    !> Send an array to the root (rank 0).
    generic :: send_to_root => send_integer, send_real
    procedure, private :: receive_integer
    procedure, private :: receive_real
    !> Receive on the root an array of unknown length from one rank.
    generic :: receive_from => receive_integer, receive_real
  end type communicator_t

contains

  !> Start MPI and take all of its ranks.
  subroutine start(self)
    class(communicator_t), intent(out) :: self
    integer :: provided
    call MPI_Init_thread(MPI_THREAD_FUNNELED, provided)
    self%handle = MPI_COMM_WORLD
    self%world = MPI_COMM_WORLD
    self%everyone = MPI_COMM_WORLD
    call MPI_Comm_rank(self%handle, self%rank)
    call MPI_Comm_size(self%handle, self%n_ranks)
  end subroutine start

  !> Share the ranks out among replicas, evenly and in order: from now on `rank` and `n_ranks` are counted within a
  !> replica, and nothing but `of_all_replicas` reaches the others. All ranks must call it; `n` divides their number.
  subroutine split(self, n)
    class(communicator_t), intent(inout) :: self
    integer, intent(in) :: n
    self%n_replicas = n
    self%replica = self%rank/(self%n_ranks/n) + 1
    call MPI_Comm_split(self%world, self%replica, self%rank, self%handle)
    self%world = self%handle
    call MPI_Comm_rank(self%handle, self%rank)
    call MPI_Comm_size(self%handle, self%n_ranks)
  end subroutine split

  !> The ranks of all replicas that hold atoms; of one replica its own.
  type(communicator_t) function of_all_replicas(self) result(all)
    class(communicator_t), intent(in) :: self
    all = self
    all%handle = self%everyone
    call MPI_Comm_rank(all%handle, all%rank)
    call MPI_Comm_size(all%handle, all%n_ranks)
  end function of_all_replicas

  !> Set the last `n` ranks apart: from now on `rank`, `n_ranks` and `n_apart` are counted on either side. All ranks must
  !> call it.
  subroutine set_apart(self, n)
    class(communicator_t), intent(inout) :: self
    integer, intent(in) :: n
    integer :: place
    self%is_apart = self%rank >= self%n_ranks - n
    self%n_apart = merge(self%n_ranks - n, n, self%is_apart)
    call MPI_Comm_split(self%world, merge(1, 0, self%is_apart), self%rank, self%handle)
    call MPI_Comm_rank(MPI_COMM_WORLD, place)
    call MPI_Comm_split(MPI_COMM_WORLD, merge(1, 0, self%is_apart), place, self%everyone)
    call MPI_Comm_rank(self%handle, self%rank)
    call MPI_Comm_size(self%handle, self%n_ranks)
  end subroutine set_apart

  !> Take another rank; every rank of this communicator must be taken once.
  subroutine reorder(self, rank)
    class(communicator_t), intent(inout) :: self
    integer, intent(in) :: rank
    type(MPI_Comm) :: reordered
    call MPI_Comm_split(self%handle, 0, rank, reordered)
    self%handle = reordered
    call MPI_Comm_rank(self%handle, self%rank)
  end subroutine reorder

  !> Ranks that share the memory of a machine with this one, itself among them. All ranks must call it.
  integer function ranks_of_node(self) result(n)
    class(communicator_t), intent(in) :: self
    type(MPI_Comm) :: node
    call MPI_Comm_split_type(self%handle, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node)
    call MPI_Comm_size(node, n)
    call MPI_Comm_free(node)
  end function ranks_of_node

  !> End MPI; all ranks of the program must call it.
  subroutine finish(self)
    class(communicator_t), intent(in) :: self
    associate (unused => self); end associate
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Finalize()
  end subroutine finish

  !> End all ranks of the program from one of them, with an exit code.
  subroutine abort(self, code)
    class(communicator_t), intent(in) :: self
    integer, intent(in) :: code
    associate (unused => self); end associate
    call MPI_Abort(MPI_COMM_WORLD, code)
  end subroutine abort

  subroutine barrier(self)
    class(communicator_t), intent(in) :: self
    call MPI_Barrier(self%handle)
  end subroutine barrier

  pure logical function is_root(self)
    class(communicator_t), intent(in) :: self
    is_root = self%rank == 0
  end function is_root

  !> Make an error of any rank the error of all ranks (the one of the lowest rank if several failed).
  subroutine agree(self, error)
    class(communicator_t), intent(in) :: self
    type(error_t), allocatable, intent(inout) :: error
    integer :: mine, lowest, header(2)
    character(len=:), allocatable :: message
    mine = self%n_ranks
    if (allocated(error)) mine = self%rank
    call MPI_Allreduce(mine, lowest, 1, MPI_INTEGER, MPI_MIN, self%handle)
    if (lowest == self%n_ranks) return
    if (self%rank == lowest) header = [error%code, len(error%message)]
    call MPI_Bcast(header, 2, MPI_INTEGER, lowest, self%handle)
    if (self%rank == lowest) then
      message = error%message
    else
      allocate (character(len=header(2)) :: message)
    end if
    call MPI_Bcast(message, header(2), MPI_CHARACTER, lowest, self%handle)
    call fail(error, header(1), message)
  end subroutine agree

  !> Largest value over all ranks.
  function maximum(self, value) result(largest)
    class(communicator_t), intent(in) :: self
    real(real64), intent(in) :: value
    real(real64) :: largest
    call MPI_Allreduce(value, largest, 1, MPI_REAL8, MPI_MAX, self%handle)
  end function maximum

  ! Reduce and broadcast rather than Allreduce: MPI does not promise that Allreduce gives every rank the same rounding,
  ! and decisions (accept a step, rebuild a list) must be the same everywhere.
  subroutine sum_real(self, values)
    class(communicator_t), intent(in) :: self
    real(real64), intent(inout) :: values(:)
    real(real64) :: total(size(values))
    call MPI_Reduce(values, total, size(values), MPI_REAL8, MPI_SUM, 0, self%handle)
    if (self%rank == 0) values = total
    call MPI_Bcast(values, size(values), MPI_REAL8, 0, self%handle)
  end subroutine sum_real

  subroutine sum_integer(self, values)
    class(communicator_t), intent(in) :: self
    integer(int64), intent(inout) :: values(:)
    integer(int64) :: total(size(values))
    call MPI_Allreduce(values, total, size(values), MPI_INTEGER8, MPI_SUM, self%handle)
    values = total
  end subroutine sum_integer

  subroutine send_integer(self, values)
    class(communicator_t), intent(in) :: self
    integer(int64), intent(in) :: values(:)
    call MPI_Send(values, size(values), MPI_INTEGER8, 0, 1, self%handle)
  end subroutine send_integer

  subroutine send_real(self, values)
    class(communicator_t), intent(in) :: self
    real(real64), intent(in) :: values(:, :)
    call MPI_Send(values, size(values), MPI_REAL8, 0, 2, self%handle)
  end subroutine send_real

  subroutine receive_integer(self, rank, values)
    class(communicator_t), intent(in) :: self
    integer, intent(in) :: rank
    integer(int64), allocatable, intent(out) :: values(:)
    type(MPI_Status) :: status
    integer :: n
    call MPI_Probe(rank, 1, self%handle, status)
    call MPI_Get_count(status, MPI_INTEGER8, n)
    allocate (values(n))
    call MPI_Recv(values, n, MPI_INTEGER8, rank, 1, self%handle, MPI_STATUS_IGNORE)
  end subroutine receive_integer

  subroutine receive_real(self, rank, values)
    class(communicator_t), intent(in) :: self
    integer, intent(in) :: rank
    real(real64), allocatable, intent(out) :: values(:, :)
    type(MPI_Status) :: status
    integer :: n
    call MPI_Probe(rank, 2, self%handle, status)
    call MPI_Get_count(status, MPI_REAL8, n)
    allocate (values(3, n/3))
    call MPI_Recv(values, n, MPI_REAL8, rank, 2, self%handle, MPI_STATUS_IGNORE)
  end subroutine receive_real

end module comm_communicator
