!> `chromamd merge`: per-domain trajectories into one DCD or XTC, a chunk of atoms at a time.
module merge
  use base_kinds, only: int64, real32, real64
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, fail
  use atom_ranges, only: atom_ranges_t
  use frame_file, only: open_frame_file
  use frame_writer, only: frame_writer_t, kept_frames_t
  use selection, only: atom_names_t, selection_t
  use settings, only: settings_t
  use base_text, only: to_text, with_rank
  use topology, only: topology_t
  use trajectory, only: chunk_atoms, domain_magic
  implicit none
  private
  public :: merge_trajectories

contains

  !> Merge the files that [INPUT] dcdfile names (rank 0, 1, ... as far as they exist) into [OUTPUT] dcdfile: of
  !> dcd_atoms those that dcd_group chooses. Runs on one rank.
  subroutine merge_trajectories(settings, topology, error)
    type(settings_t), intent(in) :: settings
    type(topology_t), intent(in) :: topology
    type(error_t), allocatable, intent(out) :: error
    class(frame_writer_t), allocatable :: merged
    character(len=:), allocatable :: name
    type(selection_t) :: selection
    type(atom_names_t) :: names
    integer, allocatable :: n_chosen(:), place(:)
    integer(int64), allocatable :: next(:), frame_at(:)
    type(atom_ranges_t) :: chosen
    integer(int64) :: chunk_first, step, n_written, written
    real(real64) :: box(3), time(2)
    real(real32), allocatable :: chunk(:, :)
    integer :: n_files, i, unit, n_frames, c, group
    logical :: there, ended

    name = settings%input%frames
    call settings%trajectory_atoms(topology%n_atoms, chosen, error)
    if (allocated(error)) return
    group = settings%output%group
    if (group > 0) then
      call selection%read(settings, group, error)
      if (.not. allocated(error)) call names%read(settings%input%topology, size(topology%molecules), error)
      if (allocated(error)) return
    end if
    ! Atoms are looked at a chunk at a time: no list of the chosen ones is kept.
    allocate (n_chosen((chosen%n_members() - 1)/chunk_atoms + 1))
    do c = 1, size(n_chosen)
      call choose(c, place, error)
      if (allocated(error)) return
      n_chosen(c) = count(place > 0)
    end do
    n_written = sum(int(n_chosen, int64))
    if (n_written == 0) then
      call settings%refuse_group(group, "chooses no atom", error)
      return
    end if
    n_files = 0
    do
      inquire (file=with_rank(name, n_files), exist=there)
      if (.not. there) exit
      n_files = n_files + 1
    end do
    if (n_files == 0) then
      call fail(error, exit_bad_input, with_rank(name, 0)//": this trajectory does not exist; check the name")
      return
    end if
    allocate (next(n_files), frame_at(n_files))
    do i = 1, n_files
      call open_domain_file(with_rank(name, i - 1), unit, error)
      if (allocated(error)) return
      close (unit)
    end do
    next = 9
    n_frames = 0
    time = 0.0_real64
    frames: do
      frame_at = next
      written = 0
      do c = 1, size(n_chosen)
        if (n_chosen(c) == 0) cycle
        next = frame_at
        chunk_first = 1 + (c - 1)*chunk_atoms
        call choose(c, place, error)
        if (allocated(error)) exit frames
        allocate (chunk(3, n_chosen(c)))
        call read_chunk(name, chosen, chunk_first, place, chunk, next, step, time(2), box, ended, error)
        if (ended .or. allocated(error)) exit frames
        if (n_frames == 0 .and. written == 0) then
          call open_frame_file(settings%output%frames, n_written, settings%dynamics%timestep, &
                               max(1_int64, step), 0_int64, kept_frames_t(), merged, error)
          if (allocated(error)) exit frames
        end if
        if (written == 0) call merged%begin_frame(step, time(2), box)
        call merged%put(written, chunk)
        written = written + n_chosen(c)
        deallocate (chunk)
      end do
      call merged%end_frame(error)
      if (allocated(error)) exit
      n_frames = n_frames + 1
    end do frames
    if (n_frames > 0) call merged%close()
    if (n_frames == 0 .and. .not. allocated(error)) &
      call fail(error, exit_bad_input, with_rank(name, 0)//": holds no frame; nothing to merge")

  contains

    !> Where each atom of chunk `c` goes among the chosen ones of it, 0 = nowhere.
    subroutine choose(c, place, error)
      integer, intent(in) :: c
      integer, allocatable, intent(out) :: place(:)
      type(error_t), allocatable, intent(out) :: error
      integer(int64) :: start
      logical :: is_in_group
      integer :: a, n
      start = (c - 1)*chunk_atoms
      allocate (place(min(chosen%n_members() - start, chunk_atoms)), source=0)
      n = 0
      do a = 1, size(place)
        if (group > 0) then
          is_in_group = selection%holds(topology, names, chosen%member(start + a), error)
          if (allocated(error)) return
          if (.not. is_in_group) cycle
        end if
        n = n + 1
        place(a) = n
      end do
    end subroutine choose

  end subroutine merge_trajectories

  subroutine open_domain_file(path, unit, error)
    character(len=*), intent(in) :: path
    integer, intent(out) :: unit
    type(error_t), allocatable, intent(out) :: error
    character(len=8) :: word
    integer :: status
    open (newunit=unit, file=path, access="stream", form="unformatted", status="old", action="read", &
          iostat=status)
    if (status == 0) read (unit, iostat=status) word
    if (status /= 0 .or. word /= domain_magic) &
      call fail(error, exit_corrupt_file, path//": not a domain trajectory of this program")
  end subroutine open_domain_file

  !> Read from every file the atoms of one chunk of the frame at byte `next`, put chosen atom `chunk_first + i - 1` into
  !> column `place(i)` (0: nowhere), and move `next` behind the frame. `ended`: a file has no whole frame there (a run that
  !> was stopped while writing leaves a partial last frame).
  subroutine read_chunk(name, chosen, chunk_first, place, chunk, next, step, time, box, ended, error)
    integer, intent(in) :: place(:)
    character(len=*), intent(in) :: name
    type(atom_ranges_t), intent(in) :: chosen
    integer(int64), intent(in) :: chunk_first
    real(real32), intent(out) :: chunk(:, :)
    integer(int64), intent(inout) :: next(:)
    integer(int64), intent(out) :: step
    real(real64), intent(out) :: time, box(3)
    logical, intent(out) :: ended
    type(error_t), allocatable, intent(out) :: error
    integer(int64), allocatable :: id(:)
    real(real32), allocatable :: position(:, :)
    integer(int64) :: n, this_step, bytes, at
    integer :: unit, i, a, status, found
    ended = .false.
    found = 0
    step = 0
    do i = 1, size(next)
      ! One file is open at a time: of domains there are more than files that a process may open.
      call open_domain_file(with_rank(name, i - 1), unit, error)
      if (allocated(error)) return
      inquire (unit=unit, size=bytes)
      read (unit, pos=next(i), iostat=status) this_step, n, time, box
      if (status == 0 .and. next(i) - 1 + 48 + 20*n > bytes) status = 1
      if (status /= 0) then
        ended = .true.
        close (unit)
        return
      end if
      if (i == 1) step = this_step
      if (this_step /= step) then
        call fail(error, exit_corrupt_file, with_rank(name, i - 1)//": its frames are not those of the other ranks")
        close (unit)
        return
      end if
      allocate (id(n), position(3, n))
      read (unit, iostat=status) id, position
      close (unit)
      do a = 1, int(n)
        at = chosen%place_of(id(a)) - chunk_first + 1
        if (at < 1 .or. at > size(place)) cycle
        if (place(at) == 0) cycle
        chunk(:, place(at)) = position(:, a)
        found = found + 1
      end do
      deallocate (id, position)
      next(i) = next(i) + 48 + 20*n
    end do
    if (found /= size(chunk, 2)) &
      call fail(error, exit_corrupt_file, name//": the frames of step "//to_text(step)//" hold "//to_text(found)// &
                " of "// &
                to_text(size(chunk, 2))//" atoms; a file of a rank is missing or damaged, or dcd_atoms is not that of the run")
  end subroutine read_chunk

end module merge
