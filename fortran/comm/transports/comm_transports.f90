!> The transports by name. A new one takes a line in `transport_names` and a case in `make_transport`.
module comm_transports
  use comm_neighbourhood, only: neighbourhood_t
  use comm_one_sided, only: one_sided_t
  use comm_persistent, only: persistent_t
  use comm_shared, only: shared_t
  use comm_transport, only: transport_t
  implicit none
  private
  public :: make_transport, transport_names, persistent

  integer, parameter :: persistent = 1
  character(len=*), parameter :: transport_names(4) = [character(len=13) :: "PERSISTENT", "NEIGHBOURHOOD", &
                                                       "ONE_SIDED", "SHARED"]

contains

  !> The transport of that place in `transport_names`, not connected yet.
  subroutine make_transport(which, transport)
    integer, intent(in) :: which
    class(transport_t), allocatable, intent(out) :: transport
    select case (transport_names(which))
    case ("PERSISTENT")
      allocate (persistent_t :: transport)
    case ("NEIGHBOURHOOD")
      allocate (neighbourhood_t :: transport)
    case ("ONE_SIDED")
      allocate (one_sided_t :: transport)
    case ("SHARED")
      allocate (shared_t :: transport)
    end select
  end subroutine make_transport

end module comm_transports
