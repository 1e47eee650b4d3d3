!> PERSISTENT: point-to-point requests made once.
module comm_persistent
  use mpi_f08, only: MPI_Request, MPI_Startall, MPI_STATUSES_IGNORE, MPI_Testall, MPI_Waitall
  use comm_transport, only: free_requests, make_requests, n_entries, transport_t
  implicit none
  private
  public :: persistent_t

  type, extends(transport_t) :: persistent_t
    private
    type(MPI_Request), allocatable :: request(:)
  contains
    procedure :: make_ready
    procedure :: start
    procedure :: is_done
    procedure :: finish
    procedure :: release_buffers
    procedure :: destroy => release_buffers
  end type persistent_t

contains

  subroutine make_ready(self, available)
    class(persistent_t), intent(inout) :: self
    logical, intent(out) :: available
    available = .true.
    allocate (self%out(3, n_entries(self%sends)), self%in(3, n_entries(self%receives)))
    call make_requests(self%comm, self%sends, self%sends%count > 0, self%out, self%receives, self%receives%count > 0, &
                       self%in, self%request)
  end subroutine make_ready

  subroutine start(self)
    class(persistent_t), intent(inout) :: self
    call MPI_Startall(size(self%request), self%request)
  end subroutine start

  logical function is_done(self)
    class(persistent_t), intent(inout) :: self
    call MPI_Testall(size(self%request), self%request, is_done, MPI_STATUSES_IGNORE)
  end function is_done

  subroutine finish(self)
    class(persistent_t), intent(inout) :: self
    call MPI_Waitall(size(self%request), self%request, MPI_STATUSES_IGNORE)
  end subroutine finish

  subroutine release_buffers(self)
    class(persistent_t), intent(inout) :: self
    call free_requests(self%request)
    if (associated(self%out)) deallocate (self%out, self%in)
  end subroutine release_buffers

end module comm_persistent
