!> How many messages of a kind, and of how many bytes, a rank sends to others.
module message_traffic
  use base_kinds, only: int64
  implicit none
  private
  public :: traffic_t

  type :: traffic_t
    character(len=32) :: name = ""
    integer(int64) :: messages = 0, bytes = 0
  end type traffic_t

end module message_traffic
