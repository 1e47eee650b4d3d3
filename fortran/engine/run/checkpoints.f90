!> Checkpoints of a run: when they are due, how a set of files becomes whole, and how a run goes on from one.
!>
!> A set is written beside the last one and takes its place by its mark (module checkpoint_mark), so that a whole one is
!> there at any moment. The state of the simulation does not change by it: a run has the same course with checkpoints and
!> without. Each rank holds a lock, so that two runs never write to the same files.
module checkpoints
  use base_kinds, only: int64, real64
  use base_checksum, only: file_checksum
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, exit_interrupted, fail
  use base_posix_file, only: lock_file, make_folder_of, remove_file
  use base_stop_signal, only: stop_signal
  use base_text, only: to_text, with_rank
  use checkpoint, only: restart_of, write_set
  use checkpoint_mark, only: checkpoint_mark_t, earlier_mark_path, lock_pattern, mark_path, set_pattern
  use comm_communicator, only: communicator_t
  use control, only: line_length
  use energy_log, only: energy_log_t
  use health_watch, only: health_watch_t
  use frame_writer, only: kept_frames_t
  use pair_precision, only: precision_name
  use restart, only: restart_t, saved_checksum
  use settings, only: settings_t
  use simulation, only: simulation_t
  use trajectory, only: trajectory_t
  implicit none
  private
  public :: checkpoints_t

  !> Ranks ask each other about signals and the time about this often (s), or as often as checkpoints are
  !> due: a sum of three numbers over all ranks.
  real(real64), parameter :: look_period = 0.5_real64
  integer(int64), parameter :: most_steps_between_looks = 100000
  !> Seconds that a run waits for the processes of an earlier one, which may outlive a launcher that was killed.
  real(real64), parameter :: patience = 5.0_real64

  type :: checkpoints_t
    !> This run goes on from a checkpoint, whose mark is `mark`. Later the mark is that of the last checkpoint.
    logical :: continues = .false.
    type(checkpoint_mark_t) :: mark
    logical, private :: is_on = .false.
    character(len=:), allocatable, private :: pattern
    !> s, 0 = no checkpoints by time.
    real(real64), private :: interval = 0.0_real64
    !> Step of the next look at signals and time; step and time (s) of the last one; time of the last checkpoint.
    integer(int64), private :: next_look = 0, looked_step = -1
    real(real64), private :: looked_time = 0.0_real64, written_time = 0.0_real64
    !> Bytes of the trajectory that this rank writes alone.
    integer(int64), private :: own_frame_bytes = 0
    !> Of replicas that have met: one of them was asked to stop, or the time has come.
    logical, private :: stop_is_wished = .false., is_wished = .false.
  contains
    procedure :: prepare
    procedure :: start_from
    procedure :: check_set
    procedure :: take_first_step
    procedure :: kept_frames
    procedure :: write_if_due
    procedure :: time_has_come
    procedure :: wish
    procedure :: take_counts
    procedure :: write => write_checkpoint
    procedure :: refuse_earlier_end
    procedure :: finish
    procedure :: last_good
  end type checkpoints_t

contains

  !> Find out what this run is, and the checkpoint that it goes on from, if it is to and there is one. Fails when that
  !> is of another run. Where the run starts anew, a checkpoint of that name is removed.
  subroutine prepare(self, comm, settings, error)
    class(checkpoints_t), intent(out) :: self
    type(communicator_t), intent(in) :: comm
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(checkpoint_mark_t) :: found
    type(communicator_t) :: all
    integer(int64) :: start(2)
    logical :: is_there, all_have
    all = comm%of_all_replicas()
    allocate (self%mark%state(0), self%mark%exchanges(0))
    self%pattern = settings%output%checkpoint
    self%is_on = self%pattern /= ""
    if (.not. self%is_on) return
    call make_folder_of(self%pattern, comm%rank)
    call lock_file(with_rank(lock_pattern(self%pattern), comm%rank), patience, error)
    call all%agree(error)
    if (allocated(error)) return
    self%interval = 60.0_real64*settings%output%checkpoint_interval
    self%written_time = seconds()
    self%mark%n_ranks = comm%n_ranks
    self%mark%settings = [character(len=line_length) :: "PROGRAM precision = "//precision_name, settings%source%deciding()]
    if (comm%is_root()) self%mark%topology_checksum = file_checksum(settings%input%topology)
    start(1) = saved_checksum(settings%input%restart, comm%rank)
    start(2) = merge(1_int64, 0_int64, start(1) /= 0)
    call comm%sum(start)
    if (start(2) == comm%n_ranks) self%mark%start_checksum = start(1)
    call found%read(self%pattern, is_there, error)
    all_have = is_there
    if (settings%input%continues) then
      if (comm%n_replicas > 1) call choose_set(self%pattern, all, found, is_there, all_have, error)
      if (all_have .and. .not. allocated(error)) call check_run(self, comm, settings, found, error)
      call all%agree(error)
      if (allocated(error)) return
    end if
    self%continues = all_have .and. settings%input%continues
    if (self%continues) then
      if (comm%is_root()) found%topology_checksum = self%mark%topology_checksum
      self%mark = found
      ! What a run that was killed between two marks may have left.
      call remove_file(with_rank(set_pattern(self%pattern, found%set - 1), comm%rank))
      call remove_file(with_rank(set_pattern(self%pattern, found%set + 1), comm%rank))
    else if (is_there) then
      ! A damaged mark does not matter to a run that starts anew.
      if (allocated(error)) deallocate (error)
      call comm%barrier()
      if (comm%is_root()) call remove_file(mark_path(self%pattern))
      call comm%barrier()
      call remove_file(with_rank(set_pattern(self%pattern, found%set), comm%rank))
    end if
  end subroutine prepare

  !> Of replicas, whose marks may be of two sets where a run was killed while they were written: take the mark of the set that
  !> all have. `all_have`: there is one.
  subroutine choose_set(pattern, all, found, is_there, all_have, error)
    character(len=*), intent(in) :: pattern
    type(communicator_t), intent(in) :: all
    type(checkpoint_mark_t), intent(inout) :: found
    logical, intent(in) :: is_there
    logical, intent(out) :: all_have
    type(error_t), allocatable, intent(inout) :: error
    integer(int64) :: set, lowest
    set = 0
    if (is_there .and. .not. allocated(error)) set = found%set
    lowest = nint(-all%maximum(-real(set, real64)), int64)
    all_have = lowest > 0
    if (.not. all_have .or. set == lowest .or. allocated(error)) return
    call found%read_file(earlier_mark_path(pattern), error)
    if (allocated(error)) return
    if (found%set /= lowest) &
      call fail(error, exit_corrupt_file, mark_path(pattern)//": the checkpoints of the replicas are of different steps; "// &
                "remove them to start the run anew")
  end subroutine choose_set

  !> Whether a mark is that of this run.
  subroutine check_run(self, comm, settings, found, error)
    type(checkpoints_t), intent(in) :: self
    type(communicator_t), intent(in) :: comm
    type(settings_t), intent(in) :: settings
    type(checkpoint_mark_t), intent(in) :: found
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: path, only_here, only_there
    path = mark_path(self%pattern)
    only_here = first_missing(self%mark%settings, found%settings)
    only_there = first_missing(found%settings, self%mark%settings)
    if (comm%is_root() .and. found%topology_checksum /= self%mark%topology_checksum) then
      call fail(error, exit_bad_input, path//": this checkpoint is of another system than "//settings%input%topology// &
                "; give the topology of that run, or remove the checkpoint to start anew")
    else if (found%n_ranks /= self%mark%n_ranks) then
      call fail(error, exit_bad_input, path//": this checkpoint was written by "//to_text(found%n_ranks)// &
                " ranks and this run has "//to_text(self%mark%n_ranks)//"; use the same number, or remove the checkpoint "// &
                "to start anew")
    else if (only_here /= "" .or. only_there /= "") then
      if (only_here == "") only_here = "no such setting"
      if (only_there == "") only_there = "no such setting"
      call fail(error, exit_bad_input, path//": this checkpoint is of another run: it has '"//only_there// &
                "' and the control file '"//only_here//"'; give the same, or remove the checkpoint to start anew")
    else if (found%start_checksum /= self%mark%start_checksum .and. found%start_checksum /= 0 .and. &
             self%mark%start_checksum /= 0) then
      call fail(error, exit_bad_input, path//": this checkpoint is of a run that started from other files than "// &
                settings%input%restart//"; give those, or remove the checkpoint to start anew")
    end if
  end subroutine check_run

  !> The first line that the others lack; empty if there is none.
  pure function first_missing(lines, others) result(line)
    character(len=*), intent(in) :: lines(:), others(:)
    character(len=:), allocatable :: line
    integer :: k
    line = ""
    do k = 1, size(lines)
      if (any(others == lines(k))) cycle
      line = trim(lines(k))
      return
    end do
  end function first_missing

  !> Pattern of the restart files to start from.
  pure function start_from(self, settings) result(name)
    class(checkpoints_t), intent(in) :: self
    type(settings_t), intent(in) :: settings
    character(len=:), allocatable :: name
    name = settings%input%restart
    if (self%continues) name = set_pattern(self%pattern, self%mark%set)
  end function start_from

  !> Whether the files that were read are those of the mark.
  subroutine check_set(self, comm, saved, error)
    class(checkpoints_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(restart_t), intent(in) :: saved
    type(error_t), allocatable, intent(out) :: error
    integer(int64) :: total(1)
    if (.not. self%continues) return
    self%own_frame_bytes = saved%frame_bytes
    total = saved%checksum
    call comm%sum(total)
    if (total(1) /= self%mark%set_checksum .or. saved%step /= self%mark%step) &
      call fail(error, exit_corrupt_file, mark_path(self%pattern)//": the files of this checkpoint are not those that it "// &
                "names; remove it to start the run anew")
    call comm%agree(error)
  end subroutine check_set

  !> The step that a run which starts anew has begun at; a continued one knows it.
  subroutine take_first_step(self, step)
    class(checkpoints_t), intent(inout) :: self
    integer(int64), intent(inout) :: step
    if (.not. self%continues) self%mark%first_step = step
    step = self%mark%first_step
  end subroutine take_first_step

  !> What the checkpoint says of the trajectory that this rank writes to.
  pure type(kept_frames_t) function kept_frames(self, comm) result(kept)
    class(checkpoints_t), intent(in) :: self
    type(communicator_t), intent(in) :: comm
    if (.not. self%continues) return
    kept = kept_frames_t(self%mark%frames, self%own_frame_bytes)
    if (comm%is_root() .and. self%own_frame_bytes == 0) kept%bytes = self%mark%frame_bytes
  end function kept_frames

  !> At the end of a step before the last one, write a checkpoint if the time has come or a signal has; then `error` ends
  !> the run. `watch` looks at the state first: one that it finds ill takes the place of no checkpoint. The other arguments
  !> are those of `write_checkpoint`.
  subroutine write_if_due(self, sim, last_step, watch, log, frames, error, minimiser)
    class(checkpoints_t), intent(inout) :: self
    class(simulation_t), intent(in) :: sim
    integer(int64), intent(in) :: last_step
    type(health_watch_t), intent(in) :: watch
    type(energy_log_t), intent(inout) :: log
    type(trajectory_t), intent(in) :: frames
    type(error_t), allocatable, intent(out) :: error
    real(real64), intent(in), optional :: minimiser(:)
    logical :: due, stops
    type(communicator_t) :: all
    if (.not. self%is_on .or. sim%step >= last_step) return
    if (sim%comm%n_replicas > 1) then
      due = self%is_wished
      stops = self%stop_is_wished
      self%is_wished = .false.
    else
      if (sim%step < self%next_look) return
      call look(self, sim%comm, sim%step, due, stops)
    end if
    if (.not. due) return
    all = sim%comm%of_all_replicas()
    call watch%examine(sim, error)
    call all%agree(error)
    if (allocated(error)) return
    call self%write(sim, log, frames, error, minimiser)
    if (allocated(error) .or. .not. stops) return
    call fail(error, exit_interrupted, "stopped by a signal after step "//to_text(sim%step)//"; the checkpoint "// &
              mark_path(self%pattern)//" is written, and the run goes on from it with continue = YES")
    call log%note(error%message)
  end subroutine write_if_due

  !> Whether the interval since the last checkpoint is over.
  logical function time_has_come(self)
    class(checkpoints_t), intent(in) :: self
    real(real64) :: now
    now = seconds()
    time_has_come = self%is_on .and. self%interval > 0.0_real64 .and. now - self%written_time >= self%interval
  end function time_has_come

  !> Replicas want a checkpoint at the end of the present step, and perhaps to stop then.
  subroutine wish(self, stops, is_due)
    class(checkpoints_t), intent(inout) :: self
    logical, intent(in) :: stops, is_due
    self%stop_is_wished = stops
    self%is_wished = stops .or. is_due
  end subroutine wish

  !> Counts of exchanges that the next checkpoint is to hold.
  subroutine take_counts(self, counts)
    class(checkpoints_t), intent(inout) :: self
    integer(int64), intent(in) :: counts(:)
    self%mark%exchanges = counts
  end subroutine take_counts

  !> Ask all ranks: a checkpoint is due because a signal came to one of them, which also stops the run, or because of the
  !> time. Sets the step of the next look.
  subroutine look(self, comm, step, due, stops)
    type(checkpoints_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    integer(int64), intent(in) :: step
    logical, intent(out) :: due, stops
    integer(int64) :: asked(3)
    real(real64) :: now, period
    now = seconds()
    asked = [merge(1_int64, 0_int64, stop_signal() /= 0), 0_int64, 0_int64]
    if (comm%is_root()) then
      if (self%interval > 0.0_real64 .and. now - self%written_time >= self%interval) asked(2) = 1
      asked(3) = 1
      period = look_period
      if (self%interval > 0.0_real64) period = min(period, self%interval)
      if (self%looked_step >= 0) asked(3) = int(min(real(most_steps_between_looks, real64), period* &
        (step - self%looked_step)/max(now - self%looked_time, 1.0e-9_real64)), int64)
    end if
    call comm%sum(asked)
    self%looked_step = step
    self%looked_time = now
    self%next_look = step + max(1_int64, asked(3))
    stops = asked(1) > 0
    due = stops .or. asked(2) > 0
  end subroutine look

  !> Write a set of the present state and make it the one that holds. `minimiser`: state of a minimiser. Fails on all ranks
  !> when the disk does; the last set is there then as before.
  subroutine write_checkpoint(self, sim, log, frames, error, minimiser)
    class(checkpoints_t), intent(inout) :: self
    class(simulation_t), intent(in) :: sim
    type(energy_log_t), intent(in) :: log
    type(trajectory_t), intent(in) :: frames
    type(error_t), allocatable, intent(out) :: error
    real(real64), intent(in), optional :: minimiser(:)
    type(restart_t) :: saved
    type(checkpoint_mark_t) :: mark
    type(kept_frames_t) :: kept
    character(len=:), allocatable :: name
    type(communicator_t) :: all
    integer(int64) :: total(1)
    if (.not. self%is_on) return
    all = sim%comm%of_all_replicas()
    mark = self%mark
    mark%set = mark%set + 1
    mark%step = sim%step
    name = set_pattern(self%pattern, mark%set)
    call log%keep(mark%log_bytes, error)
    if (present(minimiser)) then
      mark%state = minimiser
    else if (.not. allocated(error)) then
      call sim%field%boost%keep(mark%state, error)
    end if
    if (.not. allocated(error)) call frames%keep(kept, error)
    call all%agree(error)
    if (allocated(error)) return
    saved = restart_of(sim)
    if (frames%per_domain) saved%frame_bytes = kept%bytes
    mark%frames = kept%frames
    mark%frame_bytes = kept%bytes
    call write_set(sim, saved, name, error)
    call all%agree(error)
    if (.not. allocated(error)) then
      total = saved%checksum
      call sim%comm%sum(total)
      mark%set_checksum = total(1)
      if (sim%comm%is_root()) call replace_mark(self, mark, sim%comm%n_replicas, error)
      call all%agree(error)
    end if
    if (allocated(error)) then
      call remove_file(with_rank(name, sim%comm%rank))
      return
    end if
    if (self%mark%set > 0) call remove_file(with_rank(set_pattern(self%pattern, self%mark%set), sim%comm%rank))
    self%mark = mark
    self%written_time = seconds()
  end subroutine write_checkpoint

  !> Put the mark of a new set in its place. The one before stays beside it where other replicas may not have come so far.
  subroutine replace_mark(self, mark, n_replicas, error)
    class(checkpoints_t), intent(in) :: self
    type(checkpoint_mark_t), intent(in) :: mark
    integer, intent(in) :: n_replicas
    type(error_t), allocatable, intent(out) :: error
    type(checkpoint_mark_t) :: before
    logical :: is_there
    if (n_replicas > 1) then
      call before%read(self%pattern, is_there, error)
      if (is_there .and. .not. allocated(error)) then
        if (before%set == self%mark%set) call before%write_file(earlier_mark_path(self%pattern), error)
      end if
    end if
    if (.not. allocated(error)) call mark%write(self%pattern, error)
  end subroutine replace_mark

  !> Refuse an end that lies before the checkpoint; one at it is fine, and nothing is left to do.
  subroutine refuse_earlier_end(self, settings, section, step, last_step, error)
    class(checkpoints_t), intent(in) :: self
    type(settings_t), intent(in) :: settings
    character(len=*), intent(in) :: section
    integer(int64), intent(in) :: step, last_step
    type(error_t), allocatable, intent(out) :: error
    if (step > last_step) &
      call settings%refuse(section, "nsteps", "ends the run before its checkpoint, which has done "// &
                           to_text(step - self%mark%first_step)//" steps; give at least that, or remove "// &
                           mark_path(self%pattern)//" to start anew", error)
  end subroutine refuse_earlier_end

  !> The run is over: remove the lock.
  subroutine finish(self, comm)
    class(checkpoints_t), intent(in) :: self
    type(communicator_t), intent(in) :: comm
    if (self%is_on) call remove_file(with_rank(lock_pattern(self%pattern), comm%rank))
  end subroutine finish

  !> From where a run that became unstable can go on. `settings`: of the run.
  function last_good(self, settings) result(text)
    class(checkpoints_t), intent(in) :: self
    type(settings_t), intent(in) :: settings
    character(len=:), allocatable :: text
    if (self%is_on .and. self%mark%set > 0) then
      text = "the last good checkpoint, of step "//to_text(self%mark%step)//", is "//mark_path(self%pattern)
    else
      text = "there is no checkpoint of this run: it began from "//settings%input%restart
    end if
  end function last_good

  !> Wall-clock time, s.
  real(real64) function seconds()
    integer(int64) :: count, rate
    call system_clock(count, rate)
    seconds = real(count, real64)/real(rate, real64)
  end function seconds

end module checkpoints
