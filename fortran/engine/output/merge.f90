!> `chromamd merge`: per-domain trajectories into one DCD or XTC. Each frame is read once, a piece of a file at a time, and
!> sorted beside the result.
module merge
  use base_kinds, only: int64, real32, real64
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, fail
  use atom_ranges, only: atom_ranges_t
  use frame_file, only: open_frame_file
  use frame_sorter, only: frame_sorter_t, slice_size
  use frame_writer, only: frame_writer_t, kept_frames_t
  use selection, only: atom_names_t, selection_t
  use settings, only: settings_t
  use base_posix_file, only: remove_file
  use base_text, only: to_text, with_rank, with_replica
  use demultiplex, only: demultiplex_dcd
  use parameter_history, only: parameter_history_t, read_histories
  use topology, only: topology_t
  use trajectory, only: domain_magic, leaning_magic
  implicit none
  private
  public :: merge_trajectories

  !> Atoms of a file that are read at a time.
  integer(int64), parameter :: piece_size = 2_int64**18
  !> Bytes of a frame before its ids, without and for three further numbers of a box that leans, and for each atom: id and
  !> position.
  integer(int64), parameter :: frame_head = 48, lean_bytes = 24, id_bytes = 8, position_bytes = 12

  !> The atoms to write.
  type :: wanted_t
    type(atom_ranges_t) :: chosen
    !> Group of [SELECTION], 0 = all of those.
    integer :: group = 0
    type(selection_t) :: selection
    type(atom_names_t) :: names
    !> How many of each slice of the chosen ones.
    integer, allocatable :: n_in_slice(:)
  contains
    procedure :: read => read_wanted
    procedure :: place_of
  end type wanted_t

  !> The files of the ranks, and of the frame that is read: bytes before it, step, time (ps), edges of the box as in
  !> module frame_writer.
  type :: domain_files_t
    character(len=:), allocatable :: name
    integer(int64), allocatable :: next(:)
    integer(int64) :: step = 0
    real(real64) :: time = 0.0_real64, cell(6) = 0.0_real64
    !> Numbers that a frame has of them, and its bytes before its ids.
    integer :: n_edges = 3
    integer(int64) :: head = frame_head
    !> Of a replica: only frames with this parameter are wanted, 0 = all are.
    integer :: parameter = 0
    type(parameter_history_t) :: history
    !> Whether that frame was wanted.
    logical :: is_wanted = .true.
  contains
    procedure :: find
    procedure :: read_frame
  end type domain_files_t

contains

  !> Merge the files that [INPUT] dcdfile names (rank 0, 1, ... as far as they exist) into [OUTPUT] dcdfile: of
  !> dcd_atoms those that dcd_group chooses. Those of replicas become a file for each parameter. Runs on one rank.
  subroutine merge_trajectories(settings, topology, error)
    type(settings_t), intent(in) :: settings
    type(topology_t), intent(in) :: topology
    type(error_t), allocatable, intent(out) :: error
    type(domain_files_t), allocatable :: files(:)
    type(parameter_history_t), allocatable :: histories(:)
    integer :: p, r
    if (settings%input%parameters == "") then
      allocate (files(1))
      files(1)%name = settings%input%frames
      call merge_files(settings, topology, files, settings%output%frames, error)
      return
    end if
    call read_histories(settings%input%parameters, histories, error)
    if (allocated(error)) return
    if (index(settings%input%frames, "()") == 0) then
      call demultiplex_dcd(settings%input%frames, settings%output%frames, histories, error)
      return
    end if
    do p = 1, size(histories)
      allocate (files(size(histories)))
      do r = 1, size(files)
        files(r)%name = with_replica(settings%input%frames, r)
        files(r)%history = histories(r)
        files(r)%parameter = p
      end do
      call merge_files(settings, topology, files, with_replica(settings%output%frames, p), error)
      if (allocated(error)) return
      deallocate (files)
    end do
  end subroutine merge_trajectories

  !> Merge the wanted frames of one replica or of several, at each step of one of them, into the file `result_name`.
  subroutine merge_files(settings, topology, files, result_name, error)
    type(settings_t), intent(in) :: settings
    type(topology_t), intent(in) :: topology
    type(domain_files_t), intent(inout) :: files(:)
    character(len=*), intent(in) :: result_name
    type(error_t), allocatable, intent(out) :: error
    class(frame_writer_t), allocatable :: merged
    type(frame_sorter_t) :: sorter
    type(wanted_t) :: wanted
    integer(int64) :: n_wanted, n_found, n_here
    integer :: n_frames, r, holder

    call wanted%read(settings, topology, error)
    do r = 1, size(files)
      if (.not. allocated(error)) call files(r)%find(error)
    end do
    if (.not. allocated(error)) call sorter%open(result_name//".part", wanted%chosen%n_members(), error)
    if (allocated(error)) return
    n_wanted = sum(int(wanted%n_in_slice, int64))
    n_frames = 0
    do
      call sorter%clear()
      n_found = 0
      holder = 1
      do r = 1, size(files)
        call files(r)%read_frame(topology, wanted, sorter, n_here, error)
        if (allocated(error)) exit
        if (n_here < 0) n_found = -1
        if (n_found < 0) exit
        n_found = n_found + n_here
        if (files(r)%is_wanted) holder = r
      end do
      if (allocated(error) .or. n_found < 0) exit
      if (n_found /= n_wanted .or. any(files%step /= files(1)%step)) then
        call refuse(files(holder), n_found, n_wanted, error)
        exit
      end if
      if (n_frames == 0) call open_frame_file(result_name, n_wanted, settings%dynamics%timestep, &
                                              max(1_int64, files(holder)%step), 0_int64, kept_frames_t(), merged, error)
      if (.not. allocated(error)) call write_frame(files(holder), wanted, sorter, merged, error)
      if (allocated(error)) exit
      n_frames = n_frames + 1
    end do
    call sorter%close()
    if (allocated(merged)) then
      call merged%close()
      if (allocated(error)) call remove_file(result_name)
    end if
    if (n_frames == 0 .and. .not. allocated(error)) &
      call fail(error, exit_bad_input, with_rank(files(1)%name, 0)//": holds no frame; nothing to merge")
  end subroutine merge_files

  !> Find out which atoms are to be written, and count them.
  subroutine read_wanted(self, settings, topology, error)
    class(wanted_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(topology_t), intent(in) :: topology
    type(error_t), allocatable, intent(out) :: error
    integer(int64) :: place, at
    integer :: k
    call settings%trajectory_atoms(topology%n_atoms, self%chosen, error)
    if (allocated(error)) return
    self%group = settings%output%group
    if (self%group > 0) then
      call self%names%read(topology, error)
      if (.not. allocated(error)) call self%selection%read(settings, self%group, topology, self%names, error)
      if (allocated(error)) return
    end if
    allocate (self%n_in_slice((self%chosen%n_members() - 1)/slice_size + 1))
    do k = 1, size(self%n_in_slice)
      self%n_in_slice(k) = int(min(slice_size, self%chosen%n_members() - (k - 1)*slice_size))
      if (self%group == 0) cycle
      do place = (k - 1)*slice_size + 1, (k - 1)*slice_size + self%n_in_slice(k)
        call self%place_of(topology, self%chosen%member(place), at, error)
        if (allocated(error)) return
        if (at == 0) self%n_in_slice(k) = self%n_in_slice(k) - 1
      end do
    end do
    if (all(self%n_in_slice == 0)) call settings%refuse_group(self%group, "chooses no atom", error)
  end subroutine read_wanted

  !> Where an atom stands among the chosen ones, 0 where it is not to be written.
  subroutine place_of(self, topology, id, place, error)
    class(wanted_t), intent(in) :: self
    type(topology_t), intent(in) :: topology
    integer(int64), intent(in) :: id
    integer(int64), intent(out) :: place
    type(error_t), allocatable, intent(out) :: error
    place = self%chosen%place_of(id)
    if (place == 0 .or. self%group == 0) return
    if (.not. self%selection%holds(topology, self%names, id, error)) place = 0
  end subroutine place_of

  !> Find the files of ranks 0, 1, ...
  subroutine find(self, error)
    class(domain_files_t), intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    integer :: n_files, i, unit
    logical :: there, leans
    n_files = 0
    do
      inquire (file=with_rank(self%name, n_files), exist=there)
      if (.not. there) exit
      n_files = n_files + 1
    end do
    if (n_files == 0) then
      call fail(error, exit_bad_input, with_rank(self%name, 0)//": this trajectory does not exist; check the name")
      return
    end if
    allocate (self%next(n_files), source=int(len(domain_magic), int64))
    do i = 1, n_files
      call open_domain_file(with_rank(self%name, i - 1), unit, error, leans)
      if (allocated(error)) return
      close (unit)
      if (.not. leans) cycle
      self%n_edges = 6
      self%head = frame_head + lean_bytes
    end do
  end subroutine find

  !> Open a file and go behind its first word, which tells whether the box `leans`.
  subroutine open_domain_file(path, unit, error, leans)
    character(len=*), intent(in) :: path
    integer, intent(out) :: unit
    type(error_t), allocatable, intent(out) :: error
    logical, intent(out), optional :: leans
    character(len=8) :: word
    integer :: status
    open (newunit=unit, file=path, access="stream", form="unformatted", status="old", action="read", &
          iostat=status)
    if (status == 0) read (unit, iostat=status) word
    if (present(leans)) leans = word == leaning_magic
    if (status /= 0 .or. .not. any(word == [domain_magic, leaning_magic])) &
      call fail(error, exit_corrupt_file, path//": not a domain trajectory of this program")
  end subroutine open_domain_file

  !> Hand the wanted atoms of the next frame of all files to the sorter and go behind it. `n_found`: their number, -1 where
  !> a file has no whole frame there (a run that was stopped while writing leaves a partial last frame).
  subroutine read_frame(self, topology, wanted, sorter, n_found, error)
    class(domain_files_t), intent(inout) :: self
    type(topology_t), intent(in) :: topology
    type(wanted_t), intent(in) :: wanted
    type(frame_sorter_t), intent(inout) :: sorter
    integer(int64), intent(out) :: n_found
    type(error_t), allocatable, intent(out) :: error
    integer(int64) :: n, step, bytes, n_here
    integer :: unit, i, status
    n_found = 0
    do i = 1, size(self%next)
      ! One file is open at a time: of domains there are more than files that a process may open.
      call open_domain_file(with_rank(self%name, i - 1), unit, error)
      if (allocated(error)) return
      inquire (unit=unit, size=bytes)
      read (unit, pos=self%next(i) + 1, iostat=status) step, n, self%time, self%cell(:self%n_edges)
      if (status == 0 .and. self%next(i) + self%head + (id_bytes + position_bytes)*n > bytes) status = 1
      if (status /= 0) then
        n_found = -1
      else if (i > 1 .and. step /= self%step) then
        call fail(error, exit_corrupt_file, with_rank(self%name, i - 1)//": its frames are not those of the other ranks")
      else
        self%step = step
        n_here = 0
        if (self%parameter > 0) self%is_wanted = self%history%parameter_at(step) == self%parameter
        if (self%is_wanted) &
          call read_atoms(unit, self%next(i) + self%head, n, topology, wanted, sorter, n_here, error)
      end if
      close (unit)
      if (allocated(error) .or. n_found < 0) return
      n_found = n_found + n_here
      self%next(i) = self%next(i) + self%head + (id_bytes + position_bytes)*n
    end do
  end subroutine read_frame

  !> Hand those of `n` atoms behind the first `start` bytes of a file that are wanted to the sorter.
  subroutine read_atoms(unit, start, n, topology, wanted, sorter, n_wanted, error)
    integer, intent(in) :: unit
    integer(int64), intent(in) :: start, n
    type(topology_t), intent(in) :: topology
    type(wanted_t), intent(in) :: wanted
    type(frame_sorter_t), intent(inout) :: sorter
    integer(int64), intent(out) :: n_wanted
    type(error_t), allocatable, intent(out) :: error
    integer(int64), allocatable :: id(:)
    real(real32), allocatable :: position(:, :)
    integer(int64) :: before, n_piece, place
    integer :: a
    n_wanted = 0
    do before = 0, n - 1, piece_size
      n_piece = min(piece_size, n - before)
      allocate (id(n_piece), position(3, n_piece))
      read (unit, pos=start + id_bytes*before + 1) id
      read (unit, pos=start + id_bytes*n + position_bytes*before + 1) position
      do a = 1, int(n_piece)
        call wanted%place_of(topology, id(a), place, error)
        if (allocated(error)) return
        if (place == 0) cycle
        call sorter%add(place, position(:, a), error)
        if (allocated(error)) return
        n_wanted = n_wanted + 1
      end do
      deallocate (id, position)
    end do
  end subroutine read_atoms

  !> Append the sorted frame.
  subroutine write_frame(files, wanted, sorter, merged, error)
    type(domain_files_t), intent(in) :: files
    type(wanted_t), intent(in) :: wanted
    type(frame_sorter_t), intent(inout) :: sorter
    class(frame_writer_t), intent(inout) :: merged
    type(error_t), allocatable, intent(out) :: error
    real(real32), allocatable :: position(:, :)
    integer(int64) :: written
    integer :: k
    logical :: is_right
    call merged%begin_frame(files%step, files%time, files%cell, error)
    if (allocated(error)) return
    written = 0
    do k = 1, size(wanted%n_in_slice)
      if (wanted%n_in_slice(k) == 0) cycle
      call sorter%take(k, position, is_right, error)
      if (allocated(error)) return
      if (.not. is_right .or. size(position, 1) /= wanted%n_in_slice(k)) then
        call refuse(files, size(position, 1, int64), int(wanted%n_in_slice(k), int64), error)
        return
      end if
      call merged%put(written, position, error)
      if (allocated(error)) return
      written = written + size(position, 1)
    end do
    call merged%end_frame(error)
  end subroutine write_frame

  !> Fail because a frame does not hold each atom once.
  subroutine refuse(files, n_found, n_wanted, error)
    type(domain_files_t), intent(in) :: files
    integer(int64), intent(in) :: n_found, n_wanted
    type(error_t), allocatable, intent(out) :: error
    call fail(error, exit_corrupt_file, files%name//": the frames of step "//to_text(files%step)//" hold "// &
              to_text(n_found)//" of "//to_text(n_wanted)//" atoms; a file of a rank is missing or damaged, or dcd_atoms "// &
              "is not that of the run")
  end subroutine refuse

end module merge
