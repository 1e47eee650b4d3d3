!> One domain by the engine's own set-up, without the check that all domains together hold the whole system:
!> `setup_driver TOPOLOGY BRICKS PX PY PZ DOMAIN RESTART` (for ids beyond 2^31 without as many atoms).
program setup_driver
  use, intrinsic :: iso_fortran_env, only: error_unit
  use base_kinds, only: int64, real64
  use bricks, only: brick_list_t
  use comm_domain_grid, only: domain_grid_t
  use base_error, only: error_t
  use restart, only: restart_t
  use setup, only: draw_velocities, read_domain
  use topology, only: topology_t
  implicit none
  type(topology_t) :: topology
  type(brick_list_t) :: list
  type(domain_grid_t) :: grid
  type(restart_t) :: saved
  type(error_t), allocatable :: error
  character(len=512) :: argument(7)
  integer :: k, dims(3), domain, n_read

  do k = 1, 7
    call get_command_argument(k, argument(k))
  end do
  do k = 1, 3
    read (argument(2 + k), *) dims(k)
  end do
  read (argument(6), *) domain
  call topology%read(trim(argument(1)), error)
  call stop_on(error)
  call list%read(trim(argument(2)), error)
  call stop_on(error)
  call grid%create(domain, product(dims), list%box, dims, 1.0_real64, error, shape=list%shape)
  call stop_on(error)
  call read_domain(grid, domain, topology, list, saved%id, saved%position, n_read, error)
  call stop_on(error)
  allocate (saved%velocity(3, size(saved%id)))
  call draw_velocities(1_int64, 300.0_real64, topology, saved%id, saved%velocity)
  saved%dims = dims
  saved%n_system = topology%n_atoms
  saved%box = list%box
  saved%shape = list%shape
  call saved%write(trim(argument(7)), domain, product(dims), error)
  call stop_on(error)
  call saved%put_in_place(trim(argument(7)), domain, error)
  call stop_on(error)

contains

  subroutine stop_on(error)
    type(error_t), allocatable, intent(in) :: error
    if (.not. allocated(error)) return
    write (error_unit, "(a)") error%message
    stop 1
  end subroutine stop_on

end program setup_driver
