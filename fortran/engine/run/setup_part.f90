!> Domains that are set up in parts, by processes that know nothing of each other. A small text file beside the restart
!> files says of which set-up these are, so that all parts are of the same; of a part that was stopped the files that are
!> whole stay.
!>
!> Of pattern `start_().rst` the file is `start_setup.txt`: a title, and a checksum of what decides the restart files.
module setup_part
  use base_checksum, only: checksum_t, file_checksum
  use base_error, only: error_t, exit_bad_input, exit_resources, fail
  use base_kinds, only: int64
  use base_posix_file, only: check_size, lock_file, remove_file, rename_file, sync_file
  use base_text, only: to_text
  use checkpoint_mark, only: name_of_all
  use control, only: line_length
  use restart, only: restart_t
  use settings, only: settings_t
  implicit none
  private
  public :: setup_part_t

  character(len=*), parameter :: title = "chromamd setup 1"
  !> Seconds that another process may hold the part before this one gives up.
  real(kind(1.0d0)), parameter :: patience = 5.0d0

  type :: setup_part_t
    logical :: is_on = .false.
    !> First and last domain, from 0; all of them where no part was asked for.
    integer :: first = 0, last = -1
    !> Domains whose files were there and whole.
    integer(int64) :: n_kept = 0
    character(len=:), allocatable, private :: pattern, lock
    integer, private :: n_domains = 0
  contains
    procedure :: choose
    procedure :: begin
    procedure :: keeps
    procedure :: is_all
    procedure :: finish
  end type setup_part_t

contains

  !> What the settings ask for of so many domains.
  subroutine choose(self, settings, n_domains)
    class(setup_part_t), intent(out) :: self
    type(settings_t), intent(in) :: settings
    integer, intent(in) :: n_domains
    self%n_domains = n_domains
    self%last = n_domains - 1
    self%pattern = settings%output%restart
    self%is_on = allocated(settings%output%domains)
    if (.not. self%is_on) return
    self%first = settings%output%domains(1)
    self%last = settings%output%domains(2)
    self%lock = name_of_all(self%pattern, "setup")//"."//to_text(self%first)//".lock"
  end subroutine choose

  !> Hold the part, and see to it that the files that are there are of the same set-up. Of one process; `input_checksum`:
  !> of the list of bricks, or of the restart files to start from.
  subroutine begin(self, settings, input_checksum, error)
    class(setup_part_t), intent(in) :: self
    type(settings_t), intent(in) :: settings
    integer(int64), intent(in) :: input_checksum
    type(error_t), allocatable, intent(out) :: error
    type(checksum_t) :: check
    character(len=line_length), allocatable :: line(:)
    character(len=64) :: found(2)
    character(len=:), allocatable :: path, identity
    integer :: k, unit, status
    call lock_file(self%lock, patience, error)
    if (allocated(error)) return
    call check%add([input_checksum, file_checksum(settings%input%topology), int(settings%boundary%domains, int64)])
    line = settings%source%deciding()
    do k = 1, size(line)
      call check%add(transfer(line(k), [0_int64]))
    end do
    identity = to_text(check%value)
    path = name_of_all(self%pattern, "setup")
    open (newunit=unit, file=path, status="old", action="read", iostat=status)
    if (status /= 0) then
      call write_identity(path, self%first, identity, error)
      return
    end if
    read (unit, "(a)", iostat=status) found
    close (unit)
    if (status /= 0 .or. found(1) /= title .or. found(2) /= identity) &
      call fail(error, exit_bad_input, path//": the restart files beside it are of another set-up (other bricks, "// &
                "topology, domains or settings); remove it with them, or give [OUTPUT] rstfile another name")
  end subroutine begin

  !> Put the file in its place in one step; processes that write it at the same time write the same.
  subroutine write_identity(path, first, identity, error)
    character(len=*), intent(in) :: path, identity
    integer, intent(in) :: first
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: part
    integer :: unit, status
    part = path//"."//to_text(first)//".part"
    open (newunit=unit, file=part, status="replace", action="write", iostat=status)
    if (status == 0) write (unit, "(a)", iostat=status) title, identity
    if (status == 0) close (unit, iostat=status)
    if (status /= 0) then
      call fail(error, exit_resources, part//": cannot be written; check folder, permission and free space")
    else
      call check_size(part, len(title) + len(identity) + 2_int64, error)
    end if
    if (.not. allocated(error)) call sync_file(part, error)
    if (.not. allocated(error)) call rename_file(part, path, error)
    if (allocated(error)) call remove_file(part)
  end subroutine write_identity

  !> Whether the file of a domain is there, whole, and what setup would write; then `n_atoms` are in it. `wanted`: what its
  !> header says beside.
  logical function keeps(self, domain, wanted, n_atoms)
    class(setup_part_t), intent(inout) :: self
    integer, intent(in) :: domain
    type(restart_t), intent(in) :: wanted
    integer(int64), intent(out) :: n_atoms
    type(restart_t) :: found
    type(error_t), allocatable :: error
    n_atoms = 0
    keeps = .false.
    if (.not. self%is_on) return
    call found%read(self%pattern, domain, self%n_domains, error)
    if (allocated(error)) return
    keeps = all(found%dims == wanted%dims) .and. found%n_system == wanted%n_system .and. found%step == wanted%step .and. &
            found%phase == wanted%phase .and. (found%is_open .eqv. wanted%is_open)
    if (.not. keeps) return
    n_atoms = size(found%id, kind=int64)
    self%n_kept = self%n_kept + 1
  end function keeps

  !> Whether the part is all domains.
  pure logical function is_all(self)
    class(setup_part_t), intent(in) :: self
    is_all = self%first == 0 .and. self%last == self%n_domains - 1
  end function is_all

  !> The part is over: remove the lock. Of one process.
  subroutine finish(self)
    class(setup_part_t), intent(in) :: self
    if (self%is_on) call remove_file(self%lock)
  end subroutine finish

end module setup_part
