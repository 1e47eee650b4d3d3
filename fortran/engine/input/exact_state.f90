!> Positions and velocities of all imported atoms in double precision, beside bricks, which round: a magic word,
!> the edges of the box (a_x, b_y, c_z, angstrom), then x, y, z (angstrom) and vx, vy, vz (angstrom/ps) of each atom in
!> global order, real64.
module exact_state
  use base_kinds, only: int64, real64
  use base_error, only: error_t, exit_corrupt_file, fail
  use comm_domain_grid, only: domain_grid_t
  implicit none
  private
  public :: read_exact_state, read_exact_box

  character(len=8), parameter :: with_velocities = "CMSTATE1", without_velocities = "CMSTATE0"
  !> Byte at which the atoms begin.
  integer(int64), parameter :: first_atom = 33_int64

contains

  !> Edges of the box (angstrom); `box` stays where the file cannot be read, which `read_exact_state` tells.
  subroutine read_exact_box(path, box)
    character(len=*), intent(in) :: path
    real(real64), intent(inout) :: box(3)
    real(real64) :: edges(3)
    integer :: unit, status
    open (newunit=unit, file=path, access="stream", form="unformatted", status="old", action="read", iostat=status)
    if (status /= 0) return
    read (unit, pos=9, iostat=status) edges
    close (unit)
    if (status == 0 .and. all(edges > 0.0_real64)) box = edges
  end subroutine read_exact_box

  !> Of the atoms `id` (from 0) of a system of `n_atoms`: `position` (3, n), which is near already, in the same image of
  !> the box of `grid`; `velocity` likewise, if the file has any (`moves`).
  subroutine read_exact_state(path, n_atoms, id, grid, position, velocity, moves, error)
    character(len=*), intent(in) :: path
    integer(int64), intent(in) :: n_atoms, id(:)
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(inout) :: position(:, :), velocity(:, :)
    logical, intent(out) :: moves
    type(error_t), allocatable, intent(out) :: error
    character(len=8) :: word
    real(real64) :: values(6)
    integer(int64) :: bytes
    integer :: unit, status, i
    moves = .false.
    open (newunit=unit, file=path, access="stream", form="unformatted", status="old", action="read", iostat=status)
    if (status == 0) then
      inquire (unit=unit, size=bytes)
      read (unit, iostat=status) word
      if (bytes /= first_atom - 1 + 48*n_atoms .or. .not. any(word == [with_velocities, without_velocities])) status = 1
      moves = word == with_velocities
      do i = 1, merge(size(id), 0, status == 0)
        read (unit, pos=first_atom + 48*id(i), iostat=status) values
        if (status /= 0) exit
        position(:, i) = values(:3) + grid%translation(anint(grid%straight(position(:, i) - values(:3))/grid%box))
        if (moves) velocity(:, i) = values(4:)
      end do
      close (unit)
    end if
    if (status /= 0) call fail(error, exit_corrupt_file, path//": is missing, damaged or of another system; import "// &
                               "again into an empty folder")
  end subroutine read_exact_state

end module exact_state
