!> File of the forces on all atoms.
module force_file
  use base_kinds, only: int64, real64
  use atoms, only: atoms_t
  use base_error, only: error_t, exit_resources, fail
  use base_posix_file, only: check_size, remove_file, rename_file
  use comm_communicator, only: communicator_t
  implicit none
  private
  public :: write_forces

contains

  !> Write `char[8] "CMDFORC1"`, `int64 n`, `float64 force[n][3]` (kcal/mol/angstrom) in the order of the global ids. All
  !> ranks must call it, and share the error.
  subroutine write_forces(path, comm, n_atoms, atoms, error)
    character(len=*), intent(in) :: path
    type(communicator_t), intent(in) :: comm
    !> Of all ranks.
    integer(int64), intent(in) :: n_atoms
    type(atoms_t), intent(in) :: atoms
    type(error_t), allocatable, intent(out) :: error
    integer(int64), allocatable :: id(:)
    real(real64), allocatable :: force(:, :)
    integer :: unit, opened, status, closed, rank, i
    allocate (id, source=atoms%id(:atoms%n_owned))
    allocate (force, source=atoms%force(:, :atoms%n_owned))
    if (comm%is_root()) then
      open (newunit=unit, file=path//".part", access="stream", form="unformatted", status="replace", action="write", &
            iostat=opened)
      status = opened
      if (status == 0) write (unit, iostat=status) "CMDFORC1", n_atoms
      do rank = 0, comm%n_ranks - 1
        if (rank > 0) then
          call comm%receive_from(rank, id)
          call comm%receive_from(rank, force)
        end if
        do i = 1, size(id)
          if (status == 0) write (unit, pos=17 + 24*id(i), iostat=status) force(:, i)
        end do
      end do
      closed = 0
      if (opened == 0) close (unit, iostat=closed)
      if (status /= 0 .or. closed /= 0) then
        call fail(error, exit_resources, path//": cannot be written; check folder, permission and free space")
      else
        call check_size(path//".part", 16 + 24*n_atoms, error)
      end if
      if (.not. allocated(error)) call rename_file(path//".part", path, error)
      if (allocated(error)) call remove_file(path//".part")
    else
      call comm%send_to_root(id)
      call comm%send_to_root(force)
    end if
    call comm%agree(error)
  end subroutine write_forces

end module force_file
