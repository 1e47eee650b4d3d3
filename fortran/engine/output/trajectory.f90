!> Trajectories of the whole system or of some of its atoms. One CHARMM/X-PLOR DCD or XTC file, filled by the root a chunk
!> of atoms at a time; or, where the name has `()`, one file a rank in our own format, which `chromamd merge` turns into a
!> DCD.
!>
!> Domain format, little-endian stream: `char[8] "CMDTRAJ1"`, then per frame `int64 step, n`, `float64 time, box[3]`,
!> `int64 id[n]`, `float32 position[n][3]`; ps and angstrom.
module trajectory
  use base_kinds, only: int64, real32, real64
  use atom_ranges, only: atom_ranges_t
  use atoms, only: atoms_t
  use comm_communicator, only: communicator_t
  use base_error, only: error_t, exit_resources, fail
  use base_posix_file, only: check_size, cut_file, sync_file
  use frame_file, only: open_frame_file
  use frame_writer, only: frame_writer_t, kept_frames_t
  use base_text, only: with_rank
  implicit none
  private
  public :: trajectory_t, domain_magic, chunk_atoms

  character(len=8), parameter :: domain_magic = "CMDTRAJ1"
  !> Atoms gathered at a time: what the root must hold, however large the system.
  integer(int64), parameter :: chunk_atoms = 1000000_int64

  type :: trajectory_t
    private
    !> Every rank has a file of its own.
    logical, public :: per_domain = .false.
    character(len=:), allocatable :: path
    logical :: active = .false.
    integer :: unit = -1
    integer(int64) :: n_frames = 0
    class(frame_writer_t), allocatable :: file
    type(atom_ranges_t) :: chosen
    !> Where there is no periodic box: what is taken from positions (angstrom); the box of the frames is zero then.
    logical :: is_open = .false.
    real(real64) :: origin(3) = 0.0_real64
  contains
    procedure :: open => open_trajectory
    procedure :: write => write_frame
    procedure :: keep
    procedure :: close => close_trajectory
  end type trajectory_t

contains

  !> Open for the atoms `chosen`; an empty path means that no trajectory is written. `timestep` in ps, `period`: steps
  !> between frames. `start`: step at which the run started; `kept`: what is there already, of this rank's file or of that
  !> of the root. `origin` (angstrom): positions count from there, and there is no periodic box.
  subroutine open_trajectory(self, comm, path, chosen, timestep, period, start, kept, error, origin)
    class(trajectory_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    character(len=*), intent(in) :: path
    type(atom_ranges_t), intent(in) :: chosen
    real(real64), intent(in) :: timestep
    integer(int64), intent(in) :: period, start
    type(kept_frames_t), intent(in) :: kept
    type(error_t), allocatable, intent(out) :: error
    real(real64), intent(in), optional :: origin(3)
    integer :: status
    self%is_open = present(origin)
    if (present(origin)) self%origin = origin
    self%active = path /= "" .and. period > 0
    if (.not. self%active) return
    self%path = path
    self%chosen = chosen
    self%per_domain = index(path, "()") > 0
    if (self%per_domain) then
      self%path = with_rank(path, comm%rank)
      self%n_frames = kept%frames
      status = 0
      if (kept%bytes > 0) then
        call cut_file(self%path, kept%bytes, error)
        if (.not. allocated(error)) open (newunit=self%unit, file=self%path, access="stream", form="unformatted", &
                                          status="old", action="write", position="append", iostat=status)
      else
        open (newunit=self%unit, file=self%path, access="stream", form="unformatted", status="replace", action="write", &
              iostat=status)
        if (status == 0) write (self%unit, iostat=status) domain_magic
      end if
      if (status /= 0) call fail(error, exit_resources, self%path//": cannot be written; check folder and free space")
    else if (comm%is_root()) then
      call open_frame_file(path, chosen%n_members(), timestep, period, start, kept, self%file, error)
    end if
    call comm%agree(error)
  end subroutine open_trajectory

  !> Append a frame, its constraint groups in the box: `time` in ps, `box` in angstrom. Fails on all ranks when the disk
  !> does.
  subroutine write_frame(self, comm, step, time, box, atoms, error)
    class(trajectory_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    integer(int64), intent(in) :: step
    real(real64), intent(in) :: time, box(3)
    type(atoms_t), intent(in) :: atoms
    type(error_t), allocatable, intent(out) :: error
    real(real64) :: edges(3)
    real(real64), allocatable :: position(:, :)
    integer(int64) :: next
    integer, allocatable :: mine(:)
    integer :: status, i, k
    if (.not. self%active) return
    edges = merge(0.0_real64, box, self%is_open)
    position = atoms%in_box(box)
    if (self%per_domain) then
      mine = pack([(i, i=1, atoms%n_owned)], self%chosen%place_of(atoms%id(:atoms%n_owned)) > 0)
      write (self%unit, iostat=status) step, size(mine, kind=int64), time, edges, atoms%id(mine), &
        (real(position(:, mine(k)) - self%origin, real32), k=1, size(mine))
      if (status == 0) flush (self%unit, iostat=status)
      inquire (unit=self%unit, pos=next)
      if (status /= 0) then
        call fail(error, exit_resources, self%path//": writing failed; check free space")
      else
        call check_size(self%path, next - 1, error)
      end if
      self%n_frames = self%n_frames + 1
    else
      call gather_frame(self, comm, step, time, edges, atoms%id(:atoms%n_owned), position, error)
    end if
    call comm%agree(error)
  end subroutine write_frame

  !> Collect one chunk of the chosen atoms after another on the root and write it. `my_id`, `my_position`: of this rank's
  !> atoms.
  subroutine gather_frame(self, comm, step, time, box, my_id, my_position, error)
    class(trajectory_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    integer(int64), intent(in) :: step
    real(real64), intent(in) :: time, box(3)
    integer(int64), intent(in) :: my_id(:)
    real(real64), intent(in) :: my_position(:, :)
    type(error_t), allocatable, intent(out) :: error
    integer(int64) :: chunk_first, chunk_last
    integer(int64), allocatable :: place(:), to(:)
    real(real32), allocatable :: position(:, :), chunk(:, :)
    integer, allocatable :: part(:)
    integer :: i, rank

    if (comm%is_root()) call self%file%begin_frame(step, time, box)
    allocate (place(size(my_id)))
    place(:) = self%chosen%place_of(my_id)
    do chunk_first = 1, self%chosen%n_members(), chunk_atoms
      chunk_last = min(self%chosen%n_members(), chunk_first + chunk_atoms - 1)
      part = pack([(i, i=1, size(my_id))], place >= chunk_first .and. place <= chunk_last)
      to = place(part)
      position = real(my_position(:, part) - spread(self%origin, 2, size(part)), real32)
      if (.not. comm%is_root()) then
        call comm%send_to_root(to)
        call comm%send_to_root(position)
        cycle
      end if
      allocate (chunk(3, chunk_last - chunk_first + 1))
      do rank = 0, comm%n_ranks - 1
        if (rank > 0) then
          call comm%receive_from(rank, to)
          call comm%receive_from(rank, position)
        end if
        chunk(:, to - chunk_first + 1) = position
      end do
      call self%file%put(chunk_first - 1, chunk)
      deallocate (chunk)
    end do
    if (comm%is_root()) call self%file%end_frame(error)
  end subroutine gather_frame

  !> Bring what was written to the disk and say how much that is, on each rank that has a file.
  subroutine keep(self, kept, error)
    class(trajectory_t), intent(in) :: self
    type(kept_frames_t), intent(out) :: kept
    type(error_t), allocatable, intent(out) :: error
    if (.not. self%active) return
    if (self%per_domain) then
      kept%frames = self%n_frames
      inquire (unit=self%unit, pos=kept%bytes)
      kept%bytes = kept%bytes - 1
      flush (self%unit)
    else if (allocated(self%file)) then
      kept = self%file%kept()
    else
      return
    end if
    call sync_file(self%path, error)
  end subroutine keep

  subroutine close_trajectory(self, comm)
    class(trajectory_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    if (.not. self%active) return
    if (self%per_domain) then
      close (self%unit)
    else if (comm%is_root()) then
      call self%file%close()
    end if
  end subroutine close_trajectory

end module trajectory
