!> Writes frames of made-up molecules of three atoms, spread over the ranks, and no more: `frames_driver PATH ATOMS
!> CHOSEN FRAMES KEPT_FRAMES KEPT_BYTES`. CHOSEN: as for dcd_atoms; KEPT_...: what the file has already.
!>
!> Atom i, counted from 0, stands in frame f, counted from 1, at (i mod 1009, i mod 769, i mod 509)/8 + f/8 angstrom, numbers
!> that 32 bits hold exactly. Prints the seconds of a frame until the disk has it, and the largest resident set of any
!> rank (MB): before the first frame and after the last.
program frames_driver
  use, intrinsic :: iso_c_binding, only: c_int, c_intptr_t
  use, intrinsic :: iso_fortran_env, only: error_unit
  use base_kinds, only: int64, real64
  use atom_ranges, only: atom_ranges_t
  use atoms, only: atoms_t
  use base_error, only: error_t
  use comm_communicator, only: communicator_t
  use comm_domain_grid, only: domain_grid_t
  use frame_writer, only: kept_frames_t
  use trajectory, only: trajectory_t
  implicit none
  integer(int64), parameter :: period(3) = [1009_int64, 769_int64, 509_int64]
  real(real64), parameter :: box(3) = [200.0_real64, 180.0_real64, 160.0_real64], timestep = 0.002_real64
  !> A file above its limit (ulimit -f) is to end as a full disk does: the write fails, no signal ends the program.
  integer(c_int), parameter :: sigxfsz = 25
  integer(c_intptr_t), parameter :: sig_ign = 1
  interface
    function c_signal(number, handler) bind(c, name="signal") result(before)
      import :: c_int, c_intptr_t
      integer(c_int), value :: number
      integer(c_intptr_t), value :: handler
      integer(c_intptr_t) :: before
    end function c_signal
  end interface
  integer(c_intptr_t) :: handler_before
  type(communicator_t) :: comm
  type(domain_grid_t) :: grid
  type(trajectory_t) :: frames
  type(kept_frames_t) :: kept, now
  type(atom_ranges_t) :: chosen
  type(atoms_t) :: atoms
  type(error_t), allocatable :: error
  character(len=512) :: path, text
  character(len=:), allocatable :: problem
  integer(int64) :: n_atoms, n_frames, f, begin, end, rate
  real(real64) :: before, after, seconds

  handler_before = c_signal(sigxfsz, sig_ign)
  call comm%start()
  call get_command_argument(1, path)
  n_atoms = number(2)
  n_frames = number(4)
  kept%frames = number(5)
  if (comm%is_root()) kept%bytes = number(6)
  call get_command_argument(3, text)
  call chosen%parse(trim(text), problem)
  if (chosen%is_empty()) call chosen%all_of(n_atoms)
  call own_atoms()
  call grid%create(0, 1, box, [1, 1, 1], 0.0_real64, error)
  call stop_on(error)
  call frames%open(comm, trim(path), chosen, timestep, 10_int64, 0_int64, kept, error)
  call stop_on(error)
  call place_atoms(1_int64)
  before = comm%maximum(peak_memory())
  seconds = 0.0_real64
  do f = kept%frames + 1, n_frames
    call place_atoms(f)
    call comm%barrier()
    call system_clock(begin, rate)
    call frames%write(comm, 10*f, 10*f*timestep, grid, atoms, error)
    call stop_on(error)
    call frames%keep(now, error)
    call comm%agree(error)
    call stop_on(error)
    call system_clock(end)
    seconds = seconds + real(end - begin, real64)/rate
  end do
  after = comm%maximum(peak_memory())
  call frames%close()
  if (comm%is_root()) print "(3(a,f0.3))", "SECONDS ", seconds/max(1_int64, n_frames - kept%frames), &
    " BEFORE ", before, " AFTER ", after
  call comm%finish()

contains

  integer(int64) function number(k)
    integer, intent(in) :: k
    call get_command_argument(k, text)
    read (text, *) number
  end function number

  !> Molecule m belongs to a rank that has no simple relation to it.
  subroutine own_atoms()
    integer(int64) :: m
    integer :: pass, n, i
    do pass = 1, 2
      n = 0
      do m = 0, n_atoms/3 - 1
        if (modulo(m*m/7 + m/1000, int(comm%n_ranks, int64)) /= comm%rank) cycle
        n = n + 1
        if (pass == 1) cycle
        atoms%group_first(n) = 3*n - 2
        atoms%group_reference(n) = 3*n - 2
        atoms%id(3*n - 2:3*n) = 3*m + [(i, i=0, 2)]
      end do
      if (pass == 1) allocate (atoms%id(3*n), atoms%position(3, 3*n), atoms%group_first(n + 1), atoms%group_reference(n))
    end do
    atoms%n_groups = n
    atoms%n_owned = 3*n
    atoms%group_first(n + 1) = 3*n + 1
  end subroutine own_atoms

  subroutine place_atoms(f)
    integer(int64), intent(in) :: f
    integer :: i
    do i = 1, atoms%n_owned
      atoms%position(:, i) = (modulo(atoms%id(i), period) + f)/8.0_real64
    end do
  end subroutine place_atoms

  !> Largest resident set so far, MB; 0 where the system does not tell.
  real(real64) function peak_memory()
    character(len=80) :: line
    integer :: unit, status
    peak_memory = 0.0_real64
    open (newunit=unit, file="/proc/self/status", status="old", action="read", iostat=status)
    do while (status == 0)
      read (unit, "(a)", iostat=status) line
      if (status == 0 .and. line(:6) == "VmHWM:") read (line(7:index(line, "kB") - 1), *) peak_memory
    end do
    peak_memory = peak_memory*1024/1.0e6_real64
  end function peak_memory

  subroutine stop_on(error)
    type(error_t), allocatable, intent(in) :: error
    if (.not. allocated(error)) return
    if (comm%is_root()) write (error_unit, "(a)") error%message
    call comm%finish()
    stop 1
  end subroutine stop_on

end program frames_driver
