!> Ghost atoms. Each rank receives from its 13 positive neighbours (half shell) the groups near the common border,
!> already shifted into its own frame, and sends the forces on them back. Where the neighbour is the rank itself the
!> ghosts are shifted copies made without a message.
module halo
  use mpi_f08, only: MPI_INTEGER, MPI_INTEGER8, MPI_Irecv, MPI_Isend, MPI_REAL8, MPI_Request, MPI_STATUSES_IGNORE, &
                     MPI_Waitall
  use precision, only: int64, real64
  use communicator, only: communicator_t
  use domain_grid, only: domain_grid_t
  implicit none
  private
  public :: halo_t

  integer, parameter :: n_neighbours = 13
  !> Offsets whose last non-zero component, read z, y, x, is +1.
  integer, parameter :: positive_offset(3, n_neighbours) = reshape([ &
    1, 0, 0, -1, 1, 0, 0, 1, 0, 1, 1, 0, -1, -1, 1, 0, -1, 1, 1, -1, 1, &
    -1, 0, 1, 0, 0, 1, 1, 0, 1, -1, 1, 1, 0, 1, 1, 1, 1, 1], [3, n_neighbours])

  type :: halo_t
    private
    type(communicator_t) :: comm
    !> Message m goes to `send_rank(m)` (at minus the offset) and comes from `receive_rank(m)` (at the offset).
    integer :: send_rank(n_neighbours) = 0, receive_rank(n_neighbours) = 0
    !> Added to positions so that they are in the frame of the receiver.
    real(real64) :: shift(3, n_neighbours) = 0.0_real64
    !> Atoms of message m: `send_atom(send_first(m):send_first(m+1)-1)`; ghosts in order of messages likewise.
    integer :: send_first(n_neighbours + 1) = 1, receive_first(n_neighbours + 1) = 1
    integer, allocatable :: send_atom(:)
    real(real64), allocatable :: send_buffer(:, :), receive_buffer(:, :)
  contains
    procedure :: build
    procedure :: update_positions
    procedure :: return_forces
    procedure :: set_box
  end type halo_t

contains

  !> Choose and exchange ghosts. A whole group goes when its reference atom is within `width` of the receiver's domain.
  !> `group_first(n_groups+1)`: first atom of each group; `group_reference`: its reference atom; owned atoms only.
  subroutine build(self, comm, grid, width, group_first, group_reference, position, global_id, ghost_id, ghost_position)
    class(halo_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(in) :: width
    integer, intent(in) :: group_first(:), group_reference(:)
    real(real64), intent(in) :: position(:, :)
    integer(int64), intent(in) :: global_id(:)
    integer(int64), allocatable, intent(out) :: ghost_id(:)
    real(real64), allocatable, intent(out) :: ghost_position(:, :)
    integer(int64), allocatable :: send_id(:)
    type(MPI_Request) :: request(2*n_neighbours)
    integer :: receive_count(n_neighbours), send_count(n_neighbours)
    integer :: m, n_requests, n_ghosts, a, b, c, d

    self%comm = comm
    call select_atoms(self, grid, width, group_first, group_reference, position)
    send_count = self%send_first(2:) - self%send_first(:n_neighbours)
    n_requests = 0
    do m = 1, n_neighbours
      if (self%receive_rank(m) == comm%rank) then
        receive_count(m) = send_count(m)
        cycle
      end if
      call MPI_Irecv(receive_count(m), 1, MPI_INTEGER, self%receive_rank(m), m, comm%handle, request(n_requests + 1))
      call MPI_Isend(send_count(m), 1, MPI_INTEGER, self%send_rank(m), m, comm%handle, request(n_requests + 2))
      n_requests = n_requests + 2
    end do
    call MPI_Waitall(n_requests, request, MPI_STATUSES_IGNORE)
    self%receive_first(1) = 1
    do m = 1, n_neighbours
      self%receive_first(m + 1) = self%receive_first(m) + receive_count(m)
    end do
    n_ghosts = self%receive_first(n_neighbours + 1) - 1

    allocate (ghost_id(n_ghosts), ghost_position(3, n_ghosts), send_id(size(self%send_atom)))
    send_id = global_id(self%send_atom)
    n_requests = 0
    do m = 1, n_neighbours
      a = self%receive_first(m); b = self%receive_first(m + 1) - 1
      c = self%send_first(m); d = self%send_first(m + 1) - 1
      if (self%receive_rank(m) == comm%rank) then
        ghost_id(a:b) = send_id(c:d)
        cycle
      end if
      call MPI_Irecv(ghost_id(a:b), receive_count(m), MPI_INTEGER8, self%receive_rank(m), m, comm%handle, &
                     request(n_requests + 1))
      call MPI_Isend(send_id(c:d), send_count(m), MPI_INTEGER8, self%send_rank(m), m, comm%handle, &
                     request(n_requests + 2))
      n_requests = n_requests + 2
    end do
    call MPI_Waitall(n_requests, request, MPI_STATUSES_IGNORE)

    if (allocated(self%send_buffer)) deallocate (self%send_buffer, self%receive_buffer)
    allocate (self%send_buffer(3, size(self%send_atom)), self%receive_buffer(3, n_ghosts))
    call exchange_positions(self, position)
    ghost_position = self%receive_buffer
  end subroutine build

  !> The box has other edges now (angstrom): ghosts across its faces stand as far from where they come from.
  subroutine set_box(self, box)
    class(halo_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    integer :: m
    do m = 1, n_neighbours
      where (self%shift(:, m) > 0.0_real64) self%shift(:, m) = box
      where (self%shift(:, m) < 0.0_real64) self%shift(:, m) = -box
    end do
  end subroutine set_box

  !> Fill `send_atom`, the ranks and the shifts of the 13 messages.
  subroutine select_atoms(self, grid, width, group_first, group_reference, position)
    type(halo_t), intent(inout) :: self
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(in) :: width
    integer, intent(in) :: group_first(:), group_reference(:)
    real(real64), intent(in) :: position(:, :)
    real(real64) :: lower(3), upper(3), r(3), outside(3), slice(3)
    integer :: m, g, i, n, receiver(3), pass

    slice = grid%box/grid%dims
    do pass = 1, 2
      n = 0
      do m = 1, n_neighbours
        receiver = grid%coordinate - positive_offset(:, m)
        self%send_rank(m) = grid%rank_of(receiver)
        self%receive_rank(m) = grid%rank_of(grid%coordinate + positive_offset(:, m))
        self%shift(:, m) = 0.0_real64
        where (receiver < 0) self%shift(:, m) = grid%box
        where (receiver >= grid%dims) self%shift(:, m) = -grid%box
        lower = slice*modulo(receiver, grid%dims)
        upper = slice*(modulo(receiver, grid%dims) + 1)
        self%send_first(m) = n + 1
        do g = 1, size(group_reference)
          r = position(:, group_reference(g)) + self%shift(:, m)
          outside = max(0.0_real64, lower - r, r - upper)
          if (sum(outside**2) > width**2) cycle
          if (pass == 1) then
            n = n + group_first(g + 1) - group_first(g)
          else
            do i = group_first(g), group_first(g + 1) - 1
              n = n + 1
              self%send_atom(n) = i
            end do
          end if
        end do
      end do
      self%send_first(n_neighbours + 1) = n + 1
      if (pass == 1) then
        if (allocated(self%send_atom)) deallocate (self%send_atom)
        allocate (self%send_atom(n))
      end if
    end do
  end subroutine select_atoms

  !> Exchange positions into the receive buffer.
  subroutine exchange_positions(self, position)
    type(halo_t), intent(inout) :: self
    real(real64), intent(in) :: position(:, :)
    type(MPI_Request) :: request(2*n_neighbours)
    integer :: m, i, n_requests, a, b, c, d

    n_requests = 0
    do m = 1, n_neighbours
      a = self%receive_first(m); b = self%receive_first(m + 1) - 1
      if (self%receive_rank(m) == self%comm%rank) cycle
      call MPI_Irecv(self%receive_buffer(:, a:b), 3*(b - a + 1), MPI_REAL8, self%receive_rank(m), m, self%comm%handle, &
                     request(n_requests + 1))
      n_requests = n_requests + 1
    end do
    do m = 1, n_neighbours
      c = self%send_first(m); d = self%send_first(m + 1) - 1
      !$omp parallel do schedule(static)
      do i = c, d
        self%send_buffer(:, i) = position(:, self%send_atom(i)) + self%shift(:, m)
      end do
      !$omp end parallel do
      if (self%receive_rank(m) == self%comm%rank) then
        a = self%receive_first(m); b = self%receive_first(m + 1) - 1
        self%receive_buffer(:, a:b) = self%send_buffer(:, c:d)
      else
        call MPI_Isend(self%send_buffer(:, c:d), 3*(d - c + 1), MPI_REAL8, self%send_rank(m), m, self%comm%handle, &
                       request(n_requests + 1))
        n_requests = n_requests + 1
      end if
    end do
    call MPI_Waitall(n_requests, request, MPI_STATUSES_IGNORE)
  end subroutine exchange_positions

  !> Bring the positions of the ghosts (`position(:, n_owned+1:)`) up to date.
  subroutine update_positions(self, n_owned, position)
    class(halo_t), intent(inout) :: self
    integer, intent(in) :: n_owned
    real(real64), intent(inout) :: position(:, :)
    call exchange_positions(self, position)
    position(:, n_owned + 1:n_owned + size(self%receive_buffer, 2)) = self%receive_buffer
  end subroutine update_positions

  !> Add the forces on ghosts to their owners. Always in the order of the messages, so that sums round the same way.
  subroutine return_forces(self, n_owned, force)
    class(halo_t), intent(inout) :: self
    integer, intent(in) :: n_owned
    real(real64), intent(inout) :: force(:, :)
    type(MPI_Request) :: request(2*n_neighbours)
    integer :: m, i, n_requests, a, b, c, d

    n_requests = 0
    do m = 1, n_neighbours
      if (self%receive_rank(m) == self%comm%rank) cycle
      a = self%receive_first(m); b = self%receive_first(m + 1) - 1
      c = self%send_first(m); d = self%send_first(m + 1) - 1
      self%receive_buffer(:, a:b) = force(:, n_owned + a:n_owned + b)
      call MPI_Irecv(self%send_buffer(:, c:d), 3*(d - c + 1), MPI_REAL8, self%send_rank(m), m, self%comm%handle, &
                     request(n_requests + 1))
      call MPI_Isend(self%receive_buffer(:, a:b), 3*(b - a + 1), MPI_REAL8, self%receive_rank(m), m, self%comm%handle, &
                     request(n_requests + 2))
      n_requests = n_requests + 2
    end do
    call MPI_Waitall(n_requests, request, MPI_STATUSES_IGNORE)
    do m = 1, n_neighbours
      c = self%send_first(m); d = self%send_first(m + 1) - 1
      a = self%receive_first(m)
      if (self%receive_rank(m) == self%comm%rank) self%send_buffer(:, c:d) = force(:, n_owned + a:n_owned + a + d - c)
      ! An atom occurs at most once in a message.
      !$omp parallel do schedule(static)
      do i = c, d
        force(:, self%send_atom(i)) = force(:, self%send_atom(i)) + self%send_buffer(:, i)
      end do
      !$omp end parallel do
    end do
  end subroutine return_forces

end module halo
