!> Replicas of a system that exchange their parameters: temperature (Sugita and Okamoto, Chem. Phys. Lett. 314, 141 (1999)),
!> pressure (Okabe, Kawata, Okamoto and Mikami, Chem. Phys. Lett. 335, 435 (2001)), restraints (Sugita, Kitao and Okamoto, J.
!> Chem. Phys. 113, 6042 (2000)) and the temperature of a solute (module solute_scaling).
!>
!> Replicas meet every few steps, all at the same ones. A meeting is one sum over all ranks of a list in which each replica
!> fills its own entries: the numbers by which exchanges are decided, and whether it failed, was asked to stop or wants a
!> checkpoint. All decide from the same bits by random numbers keyed by step and parameter, so nothing more is sent, and
!> coordinates stay where they are. A replica that fails comes to the next meeting to say so, and all end there.
!>
!> An exchange of the parameters m of x and n of y is accepted with the probability min(1, exp(-D)),
!> D = u_m(y) + u_n(x) - u_m(x) - u_n(y), u = (E + p V)/kT. Where E itself changes, each replica
!> computes its energy with the partner's parameter too. Velocities are scaled by the root of the ratio of temperatures;
!> masses of pistons and of Nose-Hoover chains follow the temperature, so that their rates have the same distribution at any.
module replica_exchange
  use base_kinds, only: int64, real64
  use base_constants, only: atmosphere, boltzmann
  use base_error, only: error_t, exit_bad_input, exit_interrupted, fail
  use base_random, only: for_exchange, keyed_uniform, replica_seed
  use base_stop_signal, only: stop_signal
  use base_text, only: to_text, with_replica
  use checkpoints, only: checkpoints_t
  use comm_communicator, only: communicator_t
  use coupling, only: change_bath, is_multiple
  use energies, only: energies_t
  use energy_log, only: energy_log_t
  use exchange_record, only: exchange_record_t
  use settings, only: settings_t
  use simulation, only: simulation_t
  implicit none
  private
  public :: replica_exchange_t

  !> Meetings are at most so many steps apart: so long a signal may have to wait.
  integer(int64), parameter :: longest_wait = 100
  !> Numbers of a replica at a meeting: its potential energy, volume, and energy with the parameter of its partner.
  integer, parameter :: of_energy = 1, of_volume = 2, of_partner = 3, n_numbers = 3
  !> Behind them, counted over all ranks.
  integer, parameter :: of_failures = 1, of_signals = 2, of_checkpoints = 3, n_counts = 3

  type :: replica_exchange_t
    logical :: is_on = .false.
    !> All have met for the last time.
    logical, private :: is_over = .false.
    type(communicator_t), private :: all
    !> Those of the replica with its present parameter.
    type(settings_t), private :: settings
    integer, private :: replica = 1, n_replicas = 1
    !> This rank speaks for its replica.
    logical, private :: leads = .false.
    !> All replicas start from one set of restart files.
    logical, private :: has_common_start = .false.
    !> Steps between meetings.
    integer(int64), private :: meeting_period = 0
    !> Of each replica.
    integer, allocatable, private :: parameter(:)
    type(exchange_record_t), private :: record
    !> Forces are for now those with the parameter of the partner; and what they were before.
    logical, private :: is_other = .false.
    type(energies_t), private :: mine
    real(real64), allocatable, private :: force(:, :), slow_force(:, :)
  contains
    procedure :: prepare
    procedure :: begin
    procedure :: open_record
    procedure :: is_due
    procedure :: meet
    procedure :: meet_at_end
    procedure :: agree
    procedure :: part
    procedure :: describe
    procedure :: report
    procedure :: close => close_record
    procedure, private :: gather
    procedure, private :: compute_other
    procedure, private :: exchange
    procedure, private :: change
    procedure, private :: reduced
  end type replica_exchange_t

contains

  !> Give the replica of this rank its own files and seed, and parameters as in the order of replicas.
  subroutine prepare(self, comm, settings)
    class(replica_exchange_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(settings_t), intent(inout) :: settings
    integer :: k
    self%is_on = settings%exchange%is_on
    if (.not. self%is_on) return
    self%all = comm%of_all_replicas()
    self%replica = comm%replica
    self%leads = comm%is_root()
    self%n_replicas = comm%n_replicas
    associate (period => settings%exchange%period)
      do k = 1, int(longest_wait)
        if (is_multiple(period, int(k, int64))) self%meeting_period = k
      end do
      if (period == 0) self%meeting_period = longest_wait
    end associate
    self%has_common_start = index(settings%input%restart, "{}") == 0
    associate (input => settings%input, output => settings%output)
      input%restart = with_replica(input%restart, self%replica)
      output%log = with_replica(output%log, self%replica)
      output%frames = with_replica(output%frames, self%replica)
      output%restart = with_replica(output%restart, self%replica)
      output%checkpoint = with_replica(output%checkpoint, self%replica)
      output%parameters = with_replica(output%parameters, self%replica)
      ! What all replicas of imported files start from is made by each for itself.
      if (input%scratch /= "") input%scratch = input%scratch//"_rep"//to_text(self%replica)
    end associate
    settings%dynamics%seed = replica_seed(settings%dynamics%seed, self%replica)
    self%parameter = [(k, k=1, self%n_replicas)]
    call self%record%init(settings%exchange)
  end subroutine prepare

  !> Take the parameter of the restart, `kept`, or that of the replica's number where it has none, or where all replicas start
  !> from one set of files. `step`: of the restart.
  subroutine begin(self, settings, step, kept, counts, error)
    class(replica_exchange_t), intent(inout) :: self
    type(settings_t), intent(inout) :: settings
    integer(int64), intent(in) :: step
    integer, intent(inout) :: kept
    !> Of a checkpoint that the run goes on from, none else.
    integer(int64), intent(in) :: counts(:)
    type(error_t), allocatable, intent(out) :: error
    real(real64) :: found(2*self%n_replicas)
    integer :: k
    if (.not. self%is_on) return
    found = 0.0_real64
    found(self%replica) = real(merge(0, kept, self%has_common_start .and. size(counts) == 0), real64)
    found(self%n_replicas + self%replica) = real(step, real64)
    call self%gather(.false., found, error)
    if (allocated(error)) return
    if (any(found(self%n_replicas + 1:) /= found(self%n_replicas + 1))) then
      call fail(error, exit_bad_input, "the replicas start from different steps: "//to_text(nint(minval( &
                found(self%n_replicas + 1:)), int64))//" to "//to_text(nint(maxval(found(self%n_replicas + 1:)), int64))// &
                "; give restart files of one run")
    else if (any(found(:self%n_replicas) > 0.0_real64)) then
      self%parameter = nint(found(:self%n_replicas))
      if (.not. all([(any(self%parameter == k), k=1, self%n_replicas)])) &
        call fail(error, exit_bad_input, "the replicas do not start from all parameters: the restart files are of other "// &
                  "numbers of them, or of different runs; give those of one run")
    end if
    if (allocated(error)) then
      self%is_over = .true.
      return
    end if
    call self%record%take_numbers(counts)
    if (size(counts) == 0) call self%record%visit(self%parameter)
    kept = self%parameter(self%replica)
    call settings%take_parameter(kept)
    self%settings = settings
  end subroutine begin

  !> Start the file that says which parameter this replica has.
  subroutine open_record(self, comm, settings, step, continues, error)
    class(replica_exchange_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(settings_t), intent(in) :: settings
    integer(int64), intent(in) :: step
    logical, intent(in) :: continues
    type(error_t), allocatable, intent(out) :: error
    if (self%is_on .and. self%leads) &
      call self%record%open(settings%output%parameters, step, self%parameter(self%replica), continues, error)
    call comm%agree(error)
  end subroutine open_record

  !> Whether an exchange is tried at the end of a step.
  pure logical function is_due(self, step)
    class(replica_exchange_t), intent(in) :: self
    integer(int64), intent(in) :: step
    is_due = .false.
    if (self%is_on) is_due = is_multiple(step, self%settings%exchange%period)
  end function is_due

  !> Meet the other replicas at the end of a step, if it is one of those, and try to exchange where that is due. `error`: that
  !> of any replica.
  subroutine meet(self, sim, checkpoints, error)
    class(replica_exchange_t), intent(inout) :: self
    type(simulation_t), intent(inout) :: sim
    type(checkpoints_t), intent(inout) :: checkpoints
    type(error_t), allocatable, intent(out) :: error
    type(energies_t) :: total, other
    real(real64) :: numbers(n_numbers, self%n_replicas), counts(n_counts), list(n_numbers*self%n_replicas + n_counts)
    if (.not. self%is_on .or. .not. is_multiple(sim%step, self%meeting_period)) return
    numbers = 0.0_real64
    if (self%is_due(sim%step)) then
      total = sim%sum_energies()
      numbers(of_energy, self%replica) = total%potential()
      numbers(of_volume, self%replica) = product(sim%grid%box)
      call self%compute_other(sim, total, other)
      numbers(of_partner, self%replica) = other%potential()
      if (.not. self%leads) numbers = 0.0_real64
    end if
    counts = 0.0_real64
    if (stop_signal() /= 0) counts(of_signals) = 1.0_real64
    if (self%all%is_root()) counts(of_checkpoints) = merge(1.0_real64, 0.0_real64, checkpoints%time_has_come())
    list = [reshape(numbers, [size(numbers)]), counts]
    call self%all%sum(list)
    numbers = reshape(list(:size(numbers)), shape(numbers))
    counts = list(size(numbers) + 1:)
    if (counts(of_failures) > 0.0_real64) then
      self%is_over = .true.
      call self%all%agree(error)
      return
    end if
    call checkpoints%wish(counts(of_signals) > 0.0_real64, counts(of_checkpoints) > 0.0_real64)
    if (self%is_due(sim%step)) call self%exchange(sim, total, other, numbers, error)
    call checkpoints%take_counts(self%record%numbers())
    if (self%leads .and. sum(counts) > 0.0_real64 .and. .not. allocated(error)) call self%record%keep(error)
    call sim%comm%agree(error)
  end subroutine meet

  !> Energies with the parameter of the partner, those `total` where there is none or where they are the same. Forces are of
  !> that parameter then.
  subroutine compute_other(self, sim, total, other)
    class(replica_exchange_t), intent(inout) :: self
    type(simulation_t), intent(inout) :: sim
    type(energies_t), intent(in) :: total
    type(energies_t), intent(out) :: other
    integer(int64) :: attempt
    integer :: d, first, partner
    other = total
    attempt = sim%step/self%settings%exchange%period
    call self%settings%exchange%turn(attempt, d, first)
    partner = self%settings%exchange%partner(self%parameter(self%replica), attempt)
    self%is_other = partner > 0 .and. self%settings%exchange%changes_forces(d)
    if (.not. self%is_other) return
    self%mine = sim%mine
    self%force = sim%atoms%force
    if (sim%split_forces) self%slow_force = sim%slow_force
    call self%settings%take_parameter(partner)
    call sim%take_parameters(self%settings)
    call sim%compute_forces(.true.)
    other = sim%sum_energies()
  end subroutine compute_other

  !> Forces, energies and parameters as they were before `compute_other`.
  subroutine put_back(self, sim)
    class(replica_exchange_t), intent(inout) :: self
    type(simulation_t), intent(inout) :: sim
    call sim%take_parameters(self%settings)
    sim%mine = self%mine
    sim%atoms%force = self%force
    if (sim%split_forces) sim%slow_force = self%slow_force
  end subroutine put_back

  !> Decide on all pairs of the present attempt, and take the parameter that comes of it.
  subroutine exchange(self, sim, total, other, numbers, error)
    class(replica_exchange_t), intent(inout) :: self
    type(simulation_t), intent(inout) :: sim
    type(energies_t), intent(in) :: total, other
    real(real64), intent(in) :: numbers(:, :)
    type(error_t), allocatable, intent(out) :: error
    integer(int64) :: attempt
    integer :: d, first, lower, upper, a, b, before
    logical :: accepted
    real(real64) :: excess
    attempt = sim%step/self%settings%exchange%period
    before = self%parameter(self%replica)
    call self%settings%exchange%turn(attempt, d, first)
    do lower = 1, self%n_replicas
      upper = self%settings%exchange%upper_neighbour(lower, d)
      if (upper == 0) cycle
      if (self%settings%exchange%partner(lower, attempt) /= upper) cycle
      a = findloc(self%parameter, lower, dim=1)
      b = findloc(self%parameter, upper, dim=1)
      excess = self%reduced(lower, numbers(:, b), of_partner) + self%reduced(upper, numbers(:, a), of_partner) - &
               self%reduced(lower, numbers(:, a), of_energy) - self%reduced(upper, numbers(:, b), of_energy)
      accepted = log(keyed_uniform(self%settings%exchange%seed, for_exchange, int(lower, int64), sim%step)) < -excess
      call self%record%count_pair(lower, d, accepted)
      if (.not. accepted) cycle
      self%parameter(a) = upper
      self%parameter(b) = lower
    end do
    call self%record%visit(self%parameter)
    call self%settings%take_parameter(self%parameter(self%replica))
    if (self%parameter(self%replica) /= before) then
      call self%change(sim, total, other)
    else if (self%is_other) then
      call put_back(self, sim)
    end if
    if (self%leads) call self%record%write(sim%step, self%parameter(self%replica), error)
    call sim%comm%agree(error)
  end subroutine exchange

  !> Energy of a replica with these numbers in units of kT, at a parameter; `energy`: which of them.
  real(real64) function reduced(self, parameter, numbers, energy)
    class(replica_exchange_t), intent(inout) :: self
    integer, intent(in) :: parameter, energy
    real(real64), intent(in) :: numbers(:)
    call self%settings%take_parameter(parameter)
    associate (ensemble => self%settings%ensemble)
      reduced = numbers(energy)
      if (ensemble%changes_box()) reduced = reduced + ensemble%pressure*atmosphere*numbers(of_volume)
      reduced = reduced/(boltzmann*ensemble%temperature)
    end associate
  end function reduced

  !> Go on with the parameter that this replica has now. Energy that this brings is booked as heat, so that the conserved
  !> quantity goes on. `total` and `other`: energies before it and after it.
  subroutine change(self, sim, total, other)
    class(replica_exchange_t), intent(inout) :: self
    type(simulation_t), intent(inout) :: sim
    type(energies_t), intent(in) :: total, other
    real(real64) :: ratio
    sim%kept%parameter = self%parameter(self%replica)
    associate (ensemble => self%settings%ensemble)
      ratio = 1.0_real64
      if (sim%thermostat%temperature > 0.0_real64) ratio = ensemble%temperature/sim%thermostat%temperature
      if (ratio /= 1.0_real64) then
        associate (velocity => sim%atoms%velocity(:, :sim%atoms%n_owned))
          velocity = velocity*sqrt(ratio)
        end associate
        sim%thermostat%heat = sim%thermostat%heat + (ratio - 1.0_real64)*total%kinetic
      end if
      call change_bath(sim, ensemble%temperature, ensemble%pressure*atmosphere)
      if (.not. self%is_other) return
      sim%thermostat%heat = sim%thermostat%heat + (other%potential() - total%potential())
      sim%barostat%virial = other%group_virial()
    end associate
  end subroutine change

  !> Meet for the last time, when all steps are done.
  subroutine meet_at_end(self, error)
    class(replica_exchange_t), intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    real(real64) :: nothing(0)
    if (.not. self%is_on) return
    call self%gather(.false., nothing, error)
    self%is_over = .true.
  end subroutine meet_at_end

  !> Before the first step: an error of any replica ends all.
  subroutine agree(self, error)
    class(replica_exchange_t), intent(inout) :: self
    type(error_t), allocatable, intent(inout) :: error
    if (.not. self%is_on) return
    call self%all%agree(error)
    self%is_over = allocated(error)
  end subroutine agree

  !> Tell the others of an error that ends this replica, or hear of theirs, at their next meeting; where all have met for the
  !> last time that is done.
  subroutine part(self, error)
    class(replica_exchange_t), intent(inout) :: self
    type(error_t), allocatable, intent(inout) :: error
    type(error_t), allocatable :: told
    real(real64) :: nothing(0)
    if (.not. self%is_on .or. self%is_over) return
    if (allocated(error)) then
      told = error
      if (told%code /= exit_interrupted) told%message = "replica "//to_text(self%replica)//": "//error%message
    end if
    call self%gather(allocated(error), nothing, told)
    self%is_over = .true.
    if (allocated(told)) error = told
  end subroutine part

  !> A meeting outside the steps. `failed`: `error` is what ends this replica. `numbers` are summed over the replicas.
  subroutine gather(self, failed, numbers, error)
    class(replica_exchange_t), intent(inout) :: self
    logical, intent(in) :: failed
    real(real64), intent(inout) :: numbers(:)
    type(error_t), allocatable, intent(inout) :: error
    real(real64) :: list(n_numbers*self%n_replicas + n_counts)
    list = 0.0_real64
    if (self%leads) list(:size(numbers)) = numbers
    if (failed) list(n_numbers*self%n_replicas + of_failures) = 1.0_real64
    call self%all%sum(list)
    if (list(n_numbers*self%n_replicas + of_failures) > 0.0_real64) then
      self%is_over = .true.
      call self%all%agree(error)
    end if
    numbers = list(:size(numbers))
  end subroutine gather

  !> What this replica is.
  function describe(self) result(text)
    class(replica_exchange_t), intent(in) :: self
    character(len=:), allocatable :: text
    integer :: d
    text = "replica "//to_text(self%replica)//" of "//to_text(self%n_replicas)//", which exchange every "// &
           to_text(self%settings%exchange%period)//" steps; begins with parameter "//to_text(self%parameter(self%replica))
    do d = 1, size(self%settings%exchange%dimension)
      text = text//", "//self%settings%exchange%name_of(self%parameter(self%replica), d)
    end do
  end function describe

  !> Acceptances and round trips, into the log of the replica.
  subroutine report(self, log)
    class(replica_exchange_t), intent(in) :: self
    type(energy_log_t), intent(inout) :: log
    integer :: k
    if (.not. self%is_on) return
    do k = 1, self%record%n_lines()
      if (self%record%line(k) /= "") call log%note(self%record%line(k))
    end do
  end subroutine report

  subroutine close_record(self)
    class(replica_exchange_t), intent(in) :: self
    call self%record%close()
  end subroutine close_record

end module replica_exchange
