!> NEIGHBOURHOOD: one collective on a graph of partners, which is made once.
module comm_neighbourhood
  use mpi_f08, only: MPI_Comm, MPI_Comm_free, MPI_COMM_NULL, MPI_Dist_graph_create_adjacent, MPI_Ineighbor_alltoallv, &
                     MPI_INFO_NULL, MPI_REAL8, MPI_Request, MPI_REQUEST_NULL, MPI_STATUS_IGNORE, MPI_Test, &
                     MPI_UNWEIGHTED, MPI_Wait, operator(/=), operator(==)
  use comm_transport, only: n_entries, transport_t
  implicit none
  private
  public :: neighbourhood_t

  type, extends(transport_t) :: neighbourhood_t
    private
    type(MPI_Comm) :: graph = MPI_COMM_NULL
    type(MPI_Request) :: request = MPI_REQUEST_NULL
    !> Numbers of the messages and before them, along the graph. The library may look at these while the exchange is
    !> under way.
    integer, allocatable :: send_numbers(:), send_place(:), receive_numbers(:), receive_place(:)
  contains
    procedure :: make_ready
    procedure :: start
    procedure :: is_done
    procedure :: finish
    procedure :: release_buffers
    procedure :: destroy
  end type neighbourhood_t

contains

  subroutine make_ready(self, available)
    class(neighbourhood_t), intent(inout) :: self
    logical, intent(out) :: available
    available = .true.
    allocate (self%out(3, n_entries(self%sends)), self%in(3, n_entries(self%receives)))
    if (self%graph == MPI_COMM_NULL) &
      call MPI_Dist_graph_create_adjacent(self%comm, size(self%receives%rank), self%receives%rank, MPI_UNWEIGHTED, &
                                          size(self%sends%rank), self%sends%rank, MPI_UNWEIGHTED, MPI_INFO_NULL, .false., &
                                          self%graph)
    self%send_numbers = 3*self%sends%count
    self%send_place = 3*(self%sends%first - 1)
    self%receive_numbers = 3*self%receives%count
    self%receive_place = 3*(self%receives%first - 1)
  end subroutine make_ready

  subroutine start(self)
    class(neighbourhood_t), intent(inout) :: self
    call MPI_Ineighbor_alltoallv(self%out, self%send_numbers, self%send_place, MPI_REAL8, self%in, &
                                 self%receive_numbers, self%receive_place, MPI_REAL8, self%graph, self%request)
  end subroutine start

  logical function is_done(self)
    class(neighbourhood_t), intent(inout) :: self
    call MPI_Test(self%request, is_done, MPI_STATUS_IGNORE)
  end function is_done

  subroutine finish(self)
    class(neighbourhood_t), intent(inout) :: self
    call MPI_Wait(self%request, MPI_STATUS_IGNORE)
  end subroutine finish

  subroutine release_buffers(self)
    class(neighbourhood_t), intent(inout) :: self
    if (associated(self%out)) deallocate (self%out, self%in)
  end subroutine release_buffers

  subroutine destroy(self)
    class(neighbourhood_t), intent(inout) :: self
    call self%release_buffers()
    if (self%graph /= MPI_COMM_NULL) call MPI_Comm_free(self%graph)
  end subroutine destroy

end module comm_neighbourhood
