!> Restart files of dynamics, one a rank: ions, states and velocities, and a checksum at the end. A set goes on, bit for
!> bit, on as many ranks as wrote it.
module qm_restart
  use base_kinds, only: int64, real64
  use base_checksum, only: ends_with_checksum, file_checksum
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, exit_resources, fail
  use base_posix_file, only: check_size, remove_file, rename_file, sync_file
  use base_text, only: to_text, with_rank
  use dynamics, only: dynamics_t
  use ions, only: ions_t
  use kohn_sham, only: kohn_sham_t
  implicit none
  private
  public :: write_qm_restart, read_qm_restart

  character(len=8), parameter :: magic = "chromaqm"
  !> Format, ranks, rank, rows of coefficients here, states, atoms, grid (3), kind of dynamics and 100 times the layout
  !> of the rows, functional, step.
  integer, parameter :: header_length = 12
  integer(int64), parameter :: version = 2

contains

  pure function header_of(ks, system, run) result(header)
    class(kohn_sham_t), intent(in) :: ks
    type(ions_t), intent(in) :: system
    class(dynamics_t), intent(in) :: run
    integer(int64) :: header(header_length)
    header = [version, int(ks%comm%n_ranks, int64), int(ks%comm%rank, int64), int(ks%n_rows, int64), &
              int(ks%n_states, int64), int(system%n_atoms(), int64), int(ks%waves%n, int64), &
              run%kind_number + 100*ks%layout, int(ks%xc%number, int64), run%step]
  end function header_of

  !> Write the files of all ranks: first all under temporary names, then, if all succeeded, under their own.
  subroutine write_qm_restart(name, ks, system, run, error)
    character(len=*), intent(in) :: name
    class(kohn_sham_t), intent(in) :: ks
    type(ions_t), intent(in) :: system
    class(dynamics_t), intent(in) :: run
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: part
    integer :: unit, status, closed
    integer(int64) :: bytes
    part = with_rank(name, ks%comm%rank)//".part"
    open (newunit=unit, file=part, access="stream", form="unformatted", status="replace", action="write", iostat=status)
    closed = 0
    if (status == 0) then
      write (unit, iostat=status) magic, header_of(ks, system, run), ks%waves%box, ks%waves%largest_g2, &
        system%position, system%velocity, run%coefficient
      if (status == 0) call run%ion_bath%write_to(unit, status)
      if (status == 0) call run%write_to(unit, status)
      inquire (unit=unit, pos=bytes)
      close (unit, iostat=closed)
    end if
    if (status == 0 .and. closed == 0) then
      open (newunit=unit, file=part, access="stream", form="unformatted", position="append", action="write", iostat=status)
      if (status == 0) write (unit, iostat=status) file_checksum(part)
      close (unit, iostat=closed)
    end if
    if (status /= 0 .or. closed /= 0) call fail(error, exit_resources, part// &
      ": cannot be written; check folder, permission and free space")
    if (.not. allocated(error)) call check_size(part, bytes + 7, error)
    if (.not. allocated(error)) call sync_file(part, error)
    call ks%comm%agree(error)
    if (allocated(error)) then
      call remove_file(part)
      return
    end if
    call rename_file(part, with_rank(name, ks%comm%rank), error)
    call ks%comm%agree(error)
  end subroutine write_qm_restart

  !> Read the set into ions and states; refused where it is damaged or belongs to another system.
  subroutine read_qm_restart(name, ks, system, run, error)
    character(len=*), intent(in) :: name
    class(kohn_sham_t), intent(in) :: ks
    type(ions_t), intent(inout) :: system
    class(dynamics_t), intent(inout) :: run
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: path
    character(len=8) :: word
    integer(int64) :: header(header_length), expected(header_length)
    real(real64) :: box(3), largest_g2
    logical :: is_there
    integer :: unit, status

    path = with_rank(name, ks%comm%rank)
    inquire (file=path, exist=is_there)
    if (.not. is_there) then
      call fail(error, exit_bad_input, path//": this restart file is not there; check the name, and use as many ranks as "// &
                "wrote the set")
    else if (.not. ends_with_checksum(path)) then
      call fail(error, exit_corrupt_file, path//": is damaged (its checksum does not fit); start from another set")
    else
      open (newunit=unit, file=path, access="stream", form="unformatted", status="old", action="read", iostat=status)
      if (status == 0) read (unit, iostat=status) word, header, box, largest_g2
      expected = header_of(ks, system, run)
      expected(12) = header(12)
      if (status /= 0 .or. word /= magic .or. header(1) /= version) then
        call fail(error, exit_corrupt_file, path//": is no restart file of this version of chromaqm")
      else if (header(2) /= expected(2)) then
        call fail(error, exit_bad_input, path//": was written by "//to_text(header(2))//" ranks; go on with as many")
      else if (any(header /= expected) .or. any(abs(box - ks%waves%box) > 1.0e-10_real64) .or. &
               abs(largest_g2 - ks%waves%largest_g2) > 1.0e-10_real64) then
        call fail(error, exit_bad_input, path//": belongs to another system, box, cutoff, functional, method of dynamics "// &
                  "or layer of states; keep those of the run that wrote it")
      else
        read (unit, iostat=status) system%position, system%velocity, run%coefficient
        if (status == 0) call run%ion_bath%read_from(unit, status)
        if (status == 0) call run%read_from(unit, status)
        if (status /= 0) call fail(error, exit_corrupt_file, path//": is shorter than it should be; start from another set")
        run%step = header(12)
      end if
      close (unit)
    end if
    call ks%comm%agree(error)
    if (allocated(error)) return
    if (nint(ks%comm%maximum(real(run%step, real64)), int64) /= -nint(ks%comm%maximum(-real(run%step, real64)), int64)) &
      call fail(error, exit_corrupt_file, path//": the files of the set are of different steps; start from another set")
  end subroutine read_qm_restart

end module qm_restart
