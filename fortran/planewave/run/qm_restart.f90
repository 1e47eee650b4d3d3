!> Restart files, one a rank: ions and states, what dynamics needs beside them, and a checksum at the end. A set of
!> dynamics goes on, bit for bit, on as many ranks as wrote it; the states of any set begin a minimisation at other
!> positions.
module qm_restart
  use base_kinds, only: int64, real64
  use base_checksum, only: ends_with_checksum, file_checksum
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, exit_resources, fail
  use base_posix_file, only: check_size, remove_file, rename_file, sync_file
  use base_text, only: decimal_text, to_text, with_rank
  use atomic_units, only: bohr
  use dynamics, only: dynamics_t
  use ions, only: ions_t
  use kohn_sham, only: kohn_sham_t
  implicit none
  private
  public :: write_qm_restart, read_qm_restart, read_states

  character(len=8), parameter :: magic = "chromaqm"
  !> Format, ranks, rank, rows of coefficients here, states, atoms, grid (3), kind of dynamics (0: none) and 100 times the
  !> layout of the rows, functional, step.
  integer, parameter :: header_length = 12
  integer(int64), parameter :: version = 2
  !> Edges (bohr) and cutoffs (rydberg) nearer than this are the same.
  real(real64), parameter :: near = 1.0e-10_real64
  character(len=*), parameter :: shorter = ": is shorter than it should be; start from another set"
  character(len=*), parameter :: remedy = "; only positions may differ: take another set, or leave statesfile out"

contains

  pure function header_of(ks, system, kind_number, step) result(header)
    class(kohn_sham_t), intent(in) :: ks
    type(ions_t), intent(in) :: system
    integer, intent(in) :: kind_number
    integer(int64), intent(in) :: step
    integer(int64) :: header(header_length)
    header = [version, int(ks%comm%n_ranks, int64), int(ks%comm%rank, int64), int(ks%n_rows, int64), &
              int(ks%n_states, int64), int(system%n_atoms(), int64), int(ks%waves%n, int64), &
              kind_number + 100*ks%layout, int(ks%xc%number, int64), step]
  end function header_of

  !> Write the files of all ranks: first all under temporary names, then, if all succeeded, under their own. `run`: the
  !> dynamics that the coefficients are of; without it they are those of a minimum.
  subroutine write_qm_restart(name, ks, system, coefficient, error, run)
    character(len=*), intent(in) :: name
    class(kohn_sham_t), intent(in) :: ks
    type(ions_t), intent(in) :: system
    complex(real64), intent(in) :: coefficient(:, :)
    type(error_t), allocatable, intent(out) :: error
    class(dynamics_t), intent(in), optional :: run
    integer(int64) :: header(header_length)
    character(len=:), allocatable :: part
    integer :: unit, status, closed
    integer(int64) :: bytes
    header = header_of(ks, system, 0, 0_int64)
    if (present(run)) header = header_of(ks, system, run%kind_number, run%step)
    part = with_rank(name, ks%comm%rank)//".part"
    open (newunit=unit, file=part, access="stream", form="unformatted", status="replace", action="write", iostat=status)
    closed = 0
    if (status == 0) then
      write (unit, iostat=status) magic, header, ks%waves%box, ks%waves%largest_g2, system%position, &
        system%velocity, coefficient
      if (present(run)) then
        if (status == 0) call run%ion_bath%write_to(unit, status)
        if (status == 0) call run%write_to(unit, status)
      end if
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
    integer(int64) :: header(header_length), expected(header_length)
    real(real64) :: box(3), largest_g2
    integer :: unit, status

    path = with_rank(name, ks%comm%rank)
    call open_set(path, ks, unit, header, box, largest_g2, error)
    if (.not. allocated(error)) then
      expected = header_of(ks, system, run%kind_number, header(12))
      if (any(header /= expected) .or. any(abs(box - ks%waves%box) > near) .or. &
          abs(largest_g2 - ks%waves%largest_g2) > near) then
        call fail(error, exit_bad_input, path//": belongs to another system, box, cutoff, functional, method of dynamics "// &
                  "or layer of states; keep those of the run that wrote it")
      else
        read (unit, iostat=status) system%position, system%velocity, run%coefficient
        if (status == 0) call run%ion_bath%read_from(unit, status)
        if (status == 0) call run%read_from(unit, status)
        if (status /= 0) call fail(error, exit_corrupt_file, path//shorter)
        run%step = header(12)
      end if
      close (unit)
    end if
    call ks%comm%agree(error)
    if (.not. allocated(error)) call check_steps(path, ks, run%step, error)
  end subroutine read_qm_restart

  !> Read the states of a set, of dynamics or of a minimum, and nothing else: its atoms may lie elsewhere, and its
  !> functional may be another one. Free states are not orthonormal.
  subroutine read_states(name, ks, system, coefficient, error)
    character(len=*), intent(in) :: name
    class(kohn_sham_t), intent(in) :: ks
    type(ions_t), intent(in) :: system
    complex(real64), intent(out) :: coefficient(:, :)
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: path
    integer(int64) :: header(header_length), expected(header_length)
    real(real64) :: box(3), largest_g2, place(3, system%n_atoms()), velocity(3, system%n_atoms())
    integer :: unit, status

    path = with_rank(name, ks%comm%rank)
    call open_set(path, ks, unit, header, box, largest_g2, error)
    if (.not. allocated(error)) then
      expected = header_of(ks, system, 0, 0_int64)
      if (header(6) /= expected(6)) then
        call fail(error, exit_bad_input, path//": has states of "//to_text(header(6))//" atoms, and here are "// &
                  to_text(expected(6))//remedy)
      else if (header(5) /= expected(5)) then
        call fail(error, exit_bad_input, path//": has "//to_text(header(5))//" states, and here are "// &
                  to_text(expected(5))//remedy)
      else if (any(abs(box - ks%waves%box) > near)) then
        call fail(error, exit_bad_input, path//": has states in a box of "//edges(box)//" angstrom, and here it is "// &
                  edges(ks%waves%box)//remedy)
      else if (abs(largest_g2 - ks%waves%largest_g2) > near) then
        call fail(error, exit_bad_input, path//": has states to "//decimal_text(largest_g2, 4)//" Ry, and here cutoff is "// &
                  decimal_text(ks%waves%largest_g2, 4)//remedy)
      else if (header(10)/100 /= expected(10)/100 .or. header(4) /= expected(4)) then
        call fail(error, exit_bad_input, path//": has states of another layer or map; keep those of the run that wrote it")
      else
        read (unit, iostat=status) place, velocity, coefficient
        if (status /= 0) call fail(error, exit_corrupt_file, path//shorter)
      end if
      close (unit)
    end if
    call ks%comm%agree(error)
    if (.not. allocated(error)) call check_steps(path, ks, header(12), error)
  end subroutine read_states

  !> Open one file of a set behind its header; refused where it is not there, damaged, of another version or of another
  !> number of ranks.
  subroutine open_set(path, ks, unit, header, box, largest_g2, error)
    character(len=*), intent(in) :: path
    class(kohn_sham_t), intent(in) :: ks
    integer, intent(out) :: unit
    integer(int64), intent(out) :: header(:)
    real(real64), intent(out) :: box(3), largest_g2
    type(error_t), allocatable, intent(out) :: error
    character(len=8) :: word
    logical :: is_there
    integer :: status

    inquire (file=path, exist=is_there)
    if (.not. is_there) then
      call fail(error, exit_bad_input, path//": this restart file is not there; check the name, and use as many ranks as "// &
                "wrote the set")
    else if (.not. ends_with_checksum(path)) then
      call fail(error, exit_corrupt_file, path//": is damaged (its checksum does not fit); start from another set")
    end if
    if (allocated(error)) return
    open (newunit=unit, file=path, access="stream", form="unformatted", status="old", action="read", iostat=status)
    if (status == 0) read (unit, iostat=status) word, header, box, largest_g2
    if (status /= 0 .or. word /= magic .or. header(1) /= version) then
      call fail(error, exit_corrupt_file, path//": is no restart file of this version of chromaqm")
    else if (header(2) /= ks%comm%n_ranks .or. header(3) /= ks%comm%rank) then
      call fail(error, exit_bad_input, path//": was written by "//to_text(header(2))//" ranks; go on with as many")
    end if
    if (allocated(error)) close (unit)
  end subroutine open_set

  !> Refuse a set whose files are of different steps.
  subroutine check_steps(path, ks, step, error)
    character(len=*), intent(in) :: path
    class(kohn_sham_t), intent(in) :: ks
    integer(int64), intent(in) :: step
    type(error_t), allocatable, intent(out) :: error
    if (nint(ks%comm%maximum(real(step, real64)), int64) /= -nint(ks%comm%maximum(-real(step, real64)), int64)) &
      call fail(error, exit_corrupt_file, path//": the files of the set are of different steps; start from another set")
  end subroutine check_steps

  !> Edges of a box (bohr) as text in angstrom.
  pure function edges(box) result(text)
    real(real64), intent(in) :: box(3)
    character(len=:), allocatable :: text
    text = decimal_text(bohr*box(1), 4)//" x "//decimal_text(bohr*box(2), 4)//" x "//decimal_text(bohr*box(3), 4)
  end function edges

end module qm_restart
