!> Hands groups of atoms that left a domain to the rank that now owns them.
module comm_migration
  use mpi_f08, only: MPI_INTEGER, MPI_INTEGER8, MPI_Irecv, MPI_Isend, MPI_REAL8, MPI_Request, MPI_STATUSES_IGNORE, &
                     MPI_Waitall
  use base_kinds, only: int64, real64
  use comm_communicator, only: communicator_t
  use comm_domain_grid, only: domain_grid_t
  use base_error, only: error_t, exit_unstable, fail
  implicit none
  private
  public :: migrate

contains

  !> Move whole groups between ranks whose domains lie within `reach` (angstrom). `payload(n_values, n_atoms)` travels
  !> with the ids; a group goes where its reference atom (position `reference_position(:, group)`, already wrapped) lies.
  !> On return `id` and `payload` hold the groups that stayed, in order, then those that came. Fails when a group came
  !> farther; all ranks must call it and share the error afterwards.
  subroutine migrate(comm, grid, reach, group_first, reference_position, id, payload, error)
    type(communicator_t), intent(in) :: comm
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(in) :: reach
    integer, intent(in) :: group_first(:)
    real(real64), intent(in) :: reference_position(:, :)
    integer(int64), allocatable, intent(inout) :: id(:)
    real(real64), allocatable, intent(inout) :: payload(:, :)
    type(error_t), allocatable, intent(out) :: error
    integer, allocatable :: neighbour(:), destination(:), send_first(:), receive_first(:), order(:), counts(:, :)
    integer(int64), allocatable :: send_id(:), new_id(:)
    real(real64), allocatable :: send_payload(:, :), new_payload(:, :)
    type(MPI_Request), allocatable :: request(:)
    integer :: n_groups, n_values, g, k, i, n, n_stay, n_requests, rank
    character(len=160) :: message

    n_groups = size(group_first) - 1
    n_values = size(payload, 1)
    call list_neighbours(comm, grid, reach, neighbour)
    allocate (destination(n_groups))
    do g = 1, n_groups
      rank = grid%rank_of(grid%domain_of(grid%straight(reference_position(:, g))))
      destination(g) = 0
      if (rank == comm%rank) cycle
      destination(g) = findloc(neighbour, rank, dim=1)
      if (destination(g) == 0 .and. .not. allocated(error)) then
        write (message, "(a,i0,a)") "atom ", id(group_first(g)) + 1, &
          " went too far between two list updates: the system is unstable, minimise it first or use a "// &
          "shorter timestep"
        call fail(error, exit_unstable, trim(message))
      end if
    end do

    ! Atoms in order of destination; 0 = stays.
    allocate (order(size(id)), send_first(size(neighbour) + 1))
    n = 0
    do k = 0, size(neighbour)
      if (k > 0) send_first(k) = n + 1
      do g = 1, n_groups
        if (destination(g) /= k) cycle
        do i = group_first(g), group_first(g + 1) - 1
          n = n + 1
          order(n) = i
        end do
      end do
      if (k == 0) n_stay = n
    end do
    send_first(size(neighbour) + 1) = n + 1

    allocate (counts(2, size(neighbour)), request(2*size(neighbour)), receive_first(size(neighbour) + 1))
    counts(1, :) = send_first(2:) - send_first(:size(neighbour))
    do k = 1, size(neighbour)
      call MPI_Irecv(counts(2, k), 1, MPI_INTEGER, neighbour(k), 1, comm%handle, request(2*k - 1))
      call MPI_Isend(counts(1, k), 1, MPI_INTEGER, neighbour(k), 1, comm%handle, request(2*k))
    end do
    call MPI_Waitall(size(request), request, MPI_STATUSES_IGNORE)
    receive_first(1) = n_stay + 1
    do k = 1, size(neighbour)
      receive_first(k + 1) = receive_first(k) + counts(2, k)
    end do
    n = receive_first(size(neighbour) + 1) - 1

    send_id = id(order)
    send_payload = payload(:, order)
    allocate (new_id(n), new_payload(n_values, n))
    new_id(:n_stay) = send_id(:n_stay)
    new_payload(:, :n_stay) = send_payload(:, :n_stay)
    deallocate (request)
    allocate (request(4*size(neighbour)))
    n_requests = 0
    do k = 1, size(neighbour)
      associate (a => receive_first(k), b => receive_first(k + 1) - 1, c => send_first(k), d => send_first(k + 1) - 1)
        call MPI_Irecv(new_id(a:b), b - a + 1, MPI_INTEGER8, neighbour(k), 2, comm%handle, request(n_requests + 1))
        call MPI_Isend(send_id(c:d), d - c + 1, MPI_INTEGER8, neighbour(k), 2, comm%handle, request(n_requests + 2))
        call MPI_Irecv(new_payload(:, a:b), n_values*(b - a + 1), MPI_REAL8, neighbour(k), 3, comm%handle, &
                       request(n_requests + 3))
        call MPI_Isend(send_payload(:, c:d), n_values*(d - c + 1), MPI_REAL8, neighbour(k), 3, comm%handle, &
                       request(n_requests + 4))
      end associate
      n_requests = n_requests + 4
    end do
    call MPI_Waitall(n_requests, request, MPI_STATUSES_IGNORE)
    call move_alloc(new_id, id)
    call move_alloc(new_payload, payload)
  end subroutine migrate

  !> The distinct ranks within reach (26 where domains are not narrower), without this one.
  subroutine list_neighbours(comm, grid, reach, neighbour)
    type(communicator_t), intent(in) :: comm
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(in) :: reach
    integer, allocatable, intent(out) :: neighbour(:)
    integer :: dx, dy, dz, rank, layers(3)
    allocate (neighbour(0))
    layers = grid%layers_within(reach)
    do dz = -layers(3), layers(3)
      do dy = -layers(2), layers(2)
        do dx = -layers(1), layers(1)
          rank = grid%rank_of(grid%coordinate + [dx, dy, dz])
          if (rank == comm%rank) cycle
          if (any(neighbour == rank)) cycle
          neighbour = [neighbour, rank]
        end do
      end do
    end do
  end subroutine list_neighbours

end module comm_migration
