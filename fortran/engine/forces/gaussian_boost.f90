!> Gaussian accelerated dynamics (Miao, Feher and McCammon, J. Chem. Theory Comput. 11, 3584 (2015); Pang, Miao, Wang and
!> McCammon, ibid. 13, 9 (2017)): where an energy V lies below a threshold E, k (E - V)^2/2 is added to it, so that its forces
!> are multiplied by 1 - k (E - V).
!>
!> Of both energies together (GENESIS' DUAL) the second is that of proper torsions and correction maps, the first all the
!> rest; alone the first is everything. Energies of restraints are left out.
module gaussian_boost
  use base_kinds, only: int64, real64
  use base_error, only: error_t, exit_corrupt_file, exit_resources, fail
  use base_posix_file, only: cut_file, file_bytes, sync_file
  use boost_settings, only: boost_settings_t, deviation, highest, lowest, mean
  use comm_communicator, only: communicator_t
  implicit none
  private
  public :: gaussian_boost_t

  type :: gaussian_boost_t
    logical :: is_on = .false.
    type(boost_settings_t), private :: settings
    !> Of potential and torsions: what is known of each, and what follows (kcal/mol, mol/kcal; 0 = no boost).
    real(real64), private :: known(4, 2) = 0.0_real64
    real(real64), private :: threshold(2) = 0.0_real64, constant(2) = 0.0_real64
    !> Of the last evaluation, without boosts.
    real(real64), private :: energy(2) = 0.0_real64
    !> Since the last new values: steps, and sums of energies and of their squares, counted from the first.
    integer(int64), private :: n = 0
    real(real64), private :: first(2) = 0.0_real64, total(2) = 0.0_real64, total_square(2) = 0.0_real64
    integer, private :: unit = 0
    logical, private :: writes = .false.
  contains
    procedure :: init
    procedure :: splits_torsions
    procedure :: act
    procedure :: open
    procedure :: keep
    procedure :: learn
  end type gaussian_boost_t

  !> Numbers of what a boost has learnt.
  integer, parameter :: n_kept = 20

contains

  subroutine init(self, settings)
    class(gaussian_boost_t), intent(inout) :: self
    type(boost_settings_t), intent(in) :: settings
    self%is_on = settings%is_on
    self%settings = settings
    self%known = settings%known
    call set_thresholds(self)
  end subroutine init

  !> Whether forces of torsions are needed apart from all others.
  pure logical function splits_torsions(self)
    class(gaussian_boost_t), intent(in) :: self
    splits_torsions = self%is_on .and. self%settings%of(2)
  end function splits_torsions

  !> The factors of the forces for energies of which this rank has `mine`, and what is added to the energies of the whole.
  subroutine act(self, comm, mine, factor, added)
    class(gaussian_boost_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    real(real64), intent(in) :: mine(2)
    real(real64), intent(out) :: factor(2), added(2)
    real(real64) :: below(2)
    self%energy = mine
    call comm%sum(self%energy)
    below = max(0.0_real64, self%threshold - self%energy)
    factor = 1.0_real64 - self%constant*below
    added = 0.5_real64*self%constant*below**2
  end subroutine act

  !> Thresholds and constants from what is known.
  subroutine set_thresholds(self)
    class(gaussian_boost_t), intent(inout) :: self
    real(real64) :: span, share, wanted
    integer :: k
    self%constant = 0.0_real64
    do k = 1, 2
      associate (known => self%known(:, k))
        span = known(highest) - known(lowest)
        if (.not. (self%settings%acts .and. self%settings%of(k) .and. span > 0.0_real64 .and. known(deviation) > 0.0_real64)) cycle
        wanted = self%settings%largest_deviation(k)/known(deviation)
        if (self%settings%is_upper) then
          share = (1.0_real64 - wanted)*span/(known(mean) - known(lowest))
          if (.not. (share > 0.0_real64 .and. share < 1.0_real64)) share = 1.0_real64
          self%threshold(k) = known(lowest) + span/share
        else
          share = min(1.0_real64, wanted*span/(known(highest) - known(mean)))
          self%threshold(k) = known(highest)
        end if
        self%constant(k) = share/span
      end associate
    end do
  end subroutine set_thresholds

  !> Open the file of new values on the root; `kept`: what a checkpoint that the run goes on from keeps, or nothing.
  subroutine open(self, is_root, kept, error)
    class(gaussian_boost_t), intent(inout) :: self
    logical, intent(in) :: is_root
    real(real64), intent(in) :: kept(:)
    type(error_t), allocatable, intent(out) :: error
    integer :: status
    if (.not. self%is_on .or. self%settings%period == 0) return
    self%writes = is_root
    if (size(kept) == n_kept) then
      self%known = reshape(kept(:8), [4, 2])
      self%threshold = kept(9:10)
      self%constant = kept(11:12)
      self%first = kept(13:14)
      self%total = kept(15:16)
      self%total_square = kept(17:18)
      self%n = nint(kept(19), int64)
    else if (size(kept) > 0) then
      call fail(error, exit_corrupt_file, "the checkpoint does not hold what the boost has learnt; remove it to start anew")
    end if
    if (allocated(error) .or. .not. is_root) return
    if (size(kept) > 0) then
      call cut_file(self%settings%file, nint(kept(20), int64), error)
      if (allocated(error)) return
      open (newunit=self%unit, file=self%settings%file, status="old", position="append", action="write", iostat=status)
    else
      open (newunit=self%unit, file=self%settings%file, status="replace", action="write", iostat=status)
      if (status == 0) write (self%unit, "(a10,8a16)", iostat=status) "STEP", "POT_MAX", "POT_MIN", "POT_AVE", "POT_DEV", &
        "DIH_MAX", "DIH_MIN", "DIH_AVE", "DIH_DEV"
      if (status == 0) flush (self%unit, iostat=status)
    end if
    if (status /= 0) call fail(error, exit_resources, self%settings%file// &
                               ": this file cannot be written; check folder, permission and free space")
  end subroutine open

  !> What a checkpoint is to keep, nothing of a boost that does not learn. The file of new values is brought to the disk.
  subroutine keep(self, kept, error)
    class(gaussian_boost_t), intent(in) :: self
    real(real64), allocatable, intent(out) :: kept(:)
    type(error_t), allocatable, intent(out) :: error
    integer(int64) :: bytes
    allocate (kept(0))
    if (.not. self%is_on .or. self%settings%period == 0) return
    bytes = 0
    if (self%writes) then
      flush (self%unit)
      bytes = file_bytes(self%settings%file)
      call sync_file(self%settings%file, error)
    end if
    kept = [self%known, self%threshold, self%constant, self%first, self%total, self%total_square, real(self%n, real64), &
            real(bytes, real64)]
  end subroutine keep

  !> Take the energies of a step; after `period` of them there are new values, and they act.
  subroutine learn(self, step, error)
    class(gaussian_boost_t), intent(inout) :: self
    integer(int64), intent(in) :: step
    type(error_t), allocatable, intent(out) :: error
    integer :: status
    if (.not. self%is_on .or. self%settings%period == 0) return
    self%known(highest, :) = max(self%known(highest, :), self%energy)
    self%known(lowest, :) = min(self%known(lowest, :), self%energy)
    if (self%n == 0) self%first = self%energy
    self%n = self%n + 1
    self%total = self%total + (self%energy - self%first)
    self%total_square = self%total_square + (self%energy - self%first)**2
    if (self%n < self%settings%period) return
    self%total = self%total/self%n
    self%known(mean, :) = self%first + self%total
    self%known(deviation, :) = sqrt(max(0.0_real64, self%total_square/self%n - self%total**2))
    call set_thresholds(self)
    self%n = 0
    self%total = 0.0_real64
    self%total_square = 0.0_real64
    if (.not. self%writes) return
    write (self%unit, "(i10,8f16.4)", iostat=status) step, self%known
    if (status == 0) flush (self%unit, iostat=status)
    if (status /= 0) call fail(error, exit_resources, self%settings%file//": writing failed; check free space")
  end subroutine learn

end module gaussian_boost
