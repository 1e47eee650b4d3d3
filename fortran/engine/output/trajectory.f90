!> Trajectories of the whole system or of some of its atoms. One CHARMM/X-PLOR DCD file that the ranks fill together, or an
!> XTC file that the root fills; or, where the name has `()`, one file a rank in our own format, which `chromamd merge`
!> turns into a DCD.
!>
!> One file is filled in two phases: the ranks exchange positions until some of them have slices of the file's order
!> (module comm_slices); each of these writes its slices at their places. No rank has a list of all atoms, but the root
!> for XTC.
!>
!> Domain format, little-endian stream: `char[8] "CMDTRAJ1"`, then per frame `int64 step, n`, `float64 time, box[3]`,
!> `int64 id[n]`, `float32 position[n][3]`; ps and angstrom.
module trajectory
  use base_kinds, only: int64, real32, real64
  use atom_ranges, only: atom_ranges_t
  use atoms, only: atoms_t
  use comm_communicator, only: communicator_t
  use comm_domain_grid, only: domain_grid_t
  use comm_slices, only: slices_t
  use base_error, only: error_t, exit_resources, fail
  use base_posix_file, only: check_size, cut_file, make_folder_of, sync_file
  use frame_file, only: is_filled_together, join_frame_file, open_frame_file
  use frame_writer, only: frame_writer_t, kept_frames_t
  use base_text, only: with_rank
  implicit none
  private
  public :: trajectory_t, domain_magic, leaning_magic

  character(len=8), parameter :: domain_magic = "CMDTRAJ1", leaning_magic = "CMDTRAJ2"

  type :: trajectory_t
    private
    !> Every rank has a file of its own.
    logical, public :: per_domain = .false.
    character(len=:), allocatable :: path
    logical :: active = .false.
    integer :: unit = -1
    integer(int64) :: n_frames = 0
    !> The file of all ranks, on those that write to it.
    class(frame_writer_t), allocatable :: file
    type(slices_t) :: slices
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
  !> of all ranks; its bytes then on the root alone. `origin` (angstrom): positions count from there, and there is no
  !> periodic box. `leans`: whether edges of the box do.
  subroutine open_trajectory(self, comm, path, chosen, timestep, period, start, kept, error, origin, leans)
    class(trajectory_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    character(len=*), intent(in) :: path
    type(atom_ranges_t), intent(in) :: chosen
    real(real64), intent(in) :: timestep
    integer(int64), intent(in) :: period, start
    type(kept_frames_t), intent(in) :: kept
    type(error_t), allocatable, intent(out) :: error
    real(real64), intent(in), optional :: origin(3)
    logical, intent(in), optional :: leans
    self%is_open = present(origin)
    if (present(origin)) self%origin = origin
    self%active = path /= "" .and. period > 0
    if (.not. self%active) return
    self%path = path
    self%chosen = chosen
    self%per_domain = index(path, "()") > 0
    if (self%per_domain) then
      self%path = with_rank(path, comm%rank)
      call make_folder_of(path, comm%rank)
      call open_domain_file(self, kept, error, leans)
    else
      call self%slices%cut(comm, chosen%n_members(), merge(comm%n_ranks, 1, is_filled_together(path)))
      if (comm%is_root()) &
        call open_frame_file(path, chosen%n_members(), timestep, period, start, kept, self%file, error)
      call comm%agree(error)
      if (allocated(error)) return
      if (self%slices%is_held() .and. .not. comm%is_root()) &
        call join_frame_file(path, chosen%n_members(), kept%frames, self%file, error)
    end if
    call comm%agree(error)
  end subroutine open_trajectory

  !> Start the file of this rank, or go on with what is `kept` of it.
  subroutine open_domain_file(self, kept, error, leans)
    type(trajectory_t), intent(inout) :: self
    type(kept_frames_t), intent(in) :: kept
    type(error_t), allocatable, intent(out) :: error
    logical, intent(in), optional :: leans
    character(len=len(domain_magic)) :: magic
    integer :: status
    self%n_frames = kept%frames
    if (kept%bytes > 0) then
      call cut_file(self%path, kept%bytes, error)
      if (allocated(error)) return
      open (newunit=self%unit, file=self%path, access="stream", form="unformatted", status="old", action="write", &
            position="append", iostat=status)
    else
      open (newunit=self%unit, file=self%path, access="stream", form="unformatted", status="replace", action="write", &
            iostat=status)
      magic = domain_magic
      if (present(leans)) magic = merge(leaning_magic, domain_magic, leans)
      if (status == 0) write (self%unit, iostat=status) magic
    end if
    if (status /= 0) call fail(error, exit_resources, self%path//": cannot be written; check folder and free space")
  end subroutine open_domain_file

  !> Append a frame, its constraint groups in the box of `grid`: `time` in ps. Fails on all ranks when the disk does.
  subroutine write_frame(self, comm, step, time, grid, atoms, error)
    class(trajectory_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    integer(int64), intent(in) :: step
    real(real64), intent(in) :: time
    type(domain_grid_t), intent(in) :: grid
    type(atoms_t), intent(in) :: atoms
    type(error_t), allocatable, intent(out) :: error
    real(real32), allocatable :: position(:, :)
    integer(int64), allocatable :: place(:)
    real(real64) :: cell(6)
    if (.not. self%active) return
    cell = 0.0_real64
    if (.not. self%is_open) cell = [grid%box, grid%shape%tilt(grid%box)]
    call atoms%in_box(grid, self%origin, position)
    allocate (place(atoms%n_owned))
    place(:) = self%chosen%place_of(atoms%id(:atoms%n_owned))
    if (self%per_domain) then
      call append_to_domain_file(self, step, time, cell(:merge(6, 3, grid%shape%leans)), atoms%id(:atoms%n_owned), &
                                 place > 0, position, error)
      call comm%agree(error)
    else
      call fill_frame(self, comm, step, time, cell, place, position, error)
    end if
  end subroutine write_frame

  !> Append a frame of those atoms of this rank that are `chosen`.
  subroutine append_to_domain_file(self, step, time, cell, id, chosen, position, error)
    type(trajectory_t), intent(inout) :: self
    integer(int64), intent(in) :: step, id(:)
    real(real64), intent(in) :: time, cell(:)
    logical, intent(in) :: chosen(:)
    real(real32), intent(in) :: position(:, :)
    type(error_t), allocatable, intent(out) :: error
    integer, allocatable :: mine(:)
    integer(int64) :: next
    integer :: status, i
    mine = pack([(i, i=1, size(id))], chosen)
    write (self%unit, iostat=status) step, size(mine, kind=int64), time, cell, id(mine), position(:, mine)
    if (status == 0) flush (self%unit, iostat=status)
    inquire (unit=self%unit, pos=next)
    if (status /= 0) then
      call fail(error, exit_resources, self%path//": writing failed; check free space")
    else
      call check_size(self%path, next - 1, error)
    end if
    self%n_frames = self%n_frames + 1
  end subroutine append_to_domain_file

  !> Append a frame to the file of all ranks. `place`: of this rank's atoms in the file, 0 = not in it. The frame counts
  !> when all ranks have written.
  subroutine fill_frame(self, comm, step, time, cell, place, position, error)
    type(trajectory_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    integer(int64), intent(in) :: step, place(:)
    real(real64), intent(in) :: time, cell(6)
    real(real32), intent(in) :: position(:, :)
    type(error_t), allocatable, intent(out) :: error
    integer, allocatable :: entry(:), first(:)
    real(real32), allocatable :: slice(:, :)
    integer(int64) :: before
    integer :: round
    if (allocated(self%file)) call self%file%begin_frame(step, time, cell, error)
    call self%slices%order(place, entry, first)
    do round = 1, self%slices%n_rounds
      call self%slices%bring(comm, round, place, position, entry, first, before, slice)
      if (size(slice, 1) > 0 .and. .not. allocated(error)) call self%file%put(before, slice, error)
    end do
    call comm%agree(error)
    if (allocated(error)) return
    if (allocated(self%file)) call self%file%end_frame(error)
    call comm%agree(error)
  end subroutine fill_frame

  !> Bring what this rank has written to the disk, and say how much the file holds.
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

  subroutine close_trajectory(self)
    class(trajectory_t), intent(inout) :: self
    if (.not. self%active) return
    if (self%per_domain) then
      close (self%unit)
    else if (allocated(self%file)) then
      call self%file%close()
    end if
  end subroutine close_trajectory

end module trajectory
