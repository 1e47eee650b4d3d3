!> ONE_SIDED: puts into windows of the receivers.
module comm_one_sided
  use, intrinsic :: iso_c_binding, only: c_ptr
  use mpi_f08, only: MPI_Accumulate, MPI_ADDRESS_KIND, MPI_Comm, MPI_INFO_NULL, MPI_INTEGER8, MPI_Put, MPI_REAL8, &
                     MPI_REPLACE, MPI_Win_allocate, MPI_Win_flush_all
  use comm_transport, only: n_entries
  use comm_window, only: flag_get, flag_stride, read_place, ready_place, window_transport_t
  implicit none
  private
  public :: one_sided_t

  type, extends(window_transport_t) :: one_sided_t
  contains
    procedure :: make_ready
    procedure :: allocate_window
    procedure :: open => open_slot
    procedure :: start
    procedure :: is_done
    procedure :: finish
    procedure :: close => close_slot
    procedure :: release_buffers
    procedure :: destroy
  end type one_sided_t

contains

  subroutine make_ready(self, available)
    class(one_sided_t), intent(inout) :: self
    logical, intent(out) :: available
    call self%make_window(self%comm, n_entries(self%receives), available)
    if (.not. available) return
    allocate (self%out(3, n_entries(self%sends)))
    call self%introduce()
  end subroutine make_ready

  subroutine allocate_window(self, bytes, comm, memory, code)
    class(one_sided_t), intent(inout) :: self
    integer(MPI_ADDRESS_KIND), intent(in) :: bytes
    type(MPI_Comm), intent(in) :: comm
    type(c_ptr), intent(out) :: memory
    integer, intent(out) :: code
    call MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, comm, memory, self%window, code)
  end subroutine allocate_window

  subroutine open_slot(self)
    class(one_sided_t), intent(inout) :: self
    call self%next_slot(self%sends%count > 0)
    self%in => self%mine%entries(:, :, self%slot)
  end subroutine open_slot

  subroutine start(self)
    class(one_sided_t), intent(inout) :: self
    integer(MPI_ADDRESS_KIND) :: place
    integer :: k
    do k = 1, size(self%sends%rank)
      if (self%sends%count(k) == 0) cycle
      place = 2*flag_stride*self%n_flags + &
              3*(int(self%slot - 1, MPI_ADDRESS_KIND)*self%capacity + self%reader_first(k) - 1)
      call MPI_Put(self%out(1, self%sends%first(k)), 3*self%sends%count(k), MPI_REAL8, self%sends%rank(k), place, &
                   3*self%sends%count(k), MPI_REAL8, self%window)
    end do
    call MPI_Win_flush_all(self%window)
    do k = 1, size(self%sends%rank)
      if (self%sends%count(k) > 0) call raise_flag(self, self%sends%rank(k), ready_place(self%reader_number(k)))
    end do
    call MPI_Win_flush_all(self%window)
  end subroutine start

  logical function is_done(self)
    class(one_sided_t), intent(inout) :: self
    integer :: k
    is_done = .true.
    do k = 1, size(self%receives%rank)
      if (self%receives%count(k) == 0) cycle
      if (flag_get(self%mine%words(ready_place(k))) < self%sequence) is_done = .false.
    end do
  end function is_done

  subroutine finish(self)
    class(one_sided_t), intent(inout) :: self
    integer :: k
    do k = 1, size(self%receives%rank)
      if (self%receives%count(k) > 0) call self%wait_for(self%mine%words(ready_place(k)), self%sequence)
    end do
  end subroutine finish

  !> Tell the senders that `in` was read.
  subroutine close_slot(self)
    class(one_sided_t), intent(inout) :: self
    integer :: k
    do k = 1, size(self%receives%rank)
      if (self%receives%count(k) > 0) call raise_flag(self, self%receives%rank(k), read_place(self%sender_number(k)))
    end do
    call MPI_Win_flush_all(self%window)
  end subroutine close_slot

  !> Set a flag in another rank's window to the number of the exchange.
  subroutine raise_flag(self, rank, place)
    type(one_sided_t), intent(in) :: self
    integer, intent(in) :: rank, place
    call MPI_Accumulate(self%sequence, 1, MPI_INTEGER8, rank, int(place - 1, MPI_ADDRESS_KIND), 1, MPI_INTEGER8, &
                        MPI_REPLACE, self%window)
  end subroutine raise_flag

  subroutine release_buffers(self)
    class(one_sided_t), intent(inout) :: self
    if (associated(self%out)) deallocate (self%out)
    ! It lies in the window.
    nullify (self%in)
  end subroutine release_buffers

  subroutine destroy(self)
    class(one_sided_t), intent(inout) :: self
    call self%release_buffers()
    call self%free_window()
  end subroutine destroy

end module comm_one_sided
