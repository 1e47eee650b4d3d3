!> Ghost atoms: what a rank sees of its neighbours, already shifted into its own frame. The half shell of the ghosts
!> (those from domains at positive offsets), or with `whole_shell` all, are handed over, in an order that does not depend
!> on how they travelled; the forces on them go back to their owners.
!>
!> Of the patterns (module comm_halo_pattern) HALF and FULL send what is within the halo's width of the receiver's domain,
!> STAGED what is so along each axis. Forces come back the same way; with STAGED they are summed on the way, so that sums
!> round differently. The whole shell comes by FULL or STAGED.
module comm_halo
  use base_kinds, only: int64, real64
  use comm_communicator, only: communicator_t
  use comm_domain_grid, only: domain_grid_t
  use base_error, only: error_t, exit_resources, fail
  use comm_transports, only: persistent, transport_names
  use comm_halo_groups, only: append_groups, choose_groups, groups_t, running_sum
  use comm_halo_pattern, only: both_ways, cheapest_pattern, full, half, pattern_names, staged, wanted_offsets
  use comm_halo_round, only: round_t
  use base_text, only: to_text
  implicit none
  private
  public :: halo_t, halo_options_t, halo_traffic_t, pattern_names, check_capacity

  !> Largest number of local atoms: three times as many numbers must be countable in 32 bits.
  integer(int64), parameter :: most_atoms = (huge(1) - 1)/3
  !> Exchanges of a trial of a transport after one that does not count; another than the first in the list must be
  !> faster by this factor.
  integer, parameter :: n_trials = 4
  real(real64), parameter :: worth_changing = 0.95_real64

  type :: halo_options_t
    !> Index in `pattern_names` and in `transport_names` of comm_transports; 0 = let the planner choose.
    integer :: pattern = 0, transport = 0
    !> All that goes to one rank at a time in one message.
    logical :: combine = .true.
    !> The planner may time transports; otherwise it takes persistent messages.
    logical :: time_transports = .false.
    !> Ghosts from all around are wanted.
    logical :: whole_shell = .false.
  end type halo_options_t

  !> What this rank sends to others in one update of positions.
  type :: halo_traffic_t
    !> Domains that it is sent to, counted once for every place around this one (each round: once again).
    integer :: n_links = 0
    !> Messages that hold anything, and the ranks that they go to.
    integer :: n_messages = 0, n_partners = 0
    integer(int64) :: n_bytes = 0
    !> Atoms that are sent, with copies for this rank itself.
    integer(int64) :: n_atoms = 0
  end type halo_traffic_t

  type :: halo_t
    type(halo_options_t) :: options
    !> What was chosen.
    integer :: pattern = 0, transport = 0
    type(communicator_t), private :: comm
    type(round_t), allocatable, private :: round(:)
    !> How many domains away ghosts come from along each axis.
    integer, private :: layers(3) = 0
    !> Offsets that ghosts are wanted from: (3, 13) for the half shell with one layer, (3, 26) for the whole.
    integer, allocatable, private :: offset(:, :)
    integer, private :: n_ghosts = 0
    !> Where ghosts stand in the pool; not needed where the pool is the array of positions itself.
    integer, allocatable, private :: place_in_pool(:)
    real(real64), allocatable, private :: pool(:, :)
    !> Round that is under way.
    integer, private :: at_round = 0
  contains
    procedure :: build
    procedure :: update_positions
    procedure :: start_update
    procedure :: advance_update
    procedure :: finish_update
    procedure :: return_forces
    procedure :: start_return
    procedure :: finish_return
    procedure :: set_box
    procedure :: traffic
    procedure :: describe
    procedure :: destroy
  end type halo_t

contains

  !> Choose and exchange ghosts. A whole group goes when its reference atom is within `width` (angstrom) of the receiver's
  !> domain. Positions, of owned atoms and of ghosts, are (3, atoms), angstrom; ids, of owned atoms and of ghosts, global.
  !> `group_first(n_groups+1)`: first atom of each group; `group_reference`: its reference atom; owned atoms only.
  !> Fails on all ranks when arrays would be too large to count or the transport asked for cannot be had.
  subroutine build(self, comm, grid, width, group_first, group_reference, position, global_id, ghost_id, &
                   ghost_position, error)
    class(halo_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(in) :: width
    integer, intent(in) :: group_first(:), group_reference(:)
    real(real64), intent(in) :: position(:, :)
    integer(int64), intent(in) :: global_id(:)
    integer(int64), allocatable, intent(out) :: ghost_id(:)
    real(real64), allocatable, intent(out) :: ghost_position(:, :)
    type(error_t), allocatable, intent(out) :: error
    type(groups_t) :: groups
    integer(int64), allocatable :: id(:)
    real(real64), allocatable :: pool(:, :)
    integer :: k, n_owned

    n_owned = size(global_id)
    self%comm = comm
    call make_rounds(self, grid, width)
    groups%n = size(group_reference)
    groups%reference = position(:, group_reference)
    do k = 1, merge(groups%n, 0, grid%shape%leans)
      groups%reference(:, k) = grid%straight(groups%reference(:, k))
    end do
    groups%first = group_first
    allocate (groups%origin(3, groups%n), source=0)
    id = global_id
    do k = 1, size(self%round)
      call add_round(self, self%round(k), grid, width, groups, id, error)
      if (allocated(error)) return
    end do
    call place_ghosts(self, grid, width, groups, n_owned)
    call choose_transport(self, error)
    if (allocated(error)) return

    if (allocated(self%place_in_pool)) then
      ghost_id = id(self%place_in_pool)
    else
      ghost_id = id(n_owned + 1:n_owned + self%n_ghosts)
    end if
    allocate (pool(3, n_owned + self%n_ghosts))
    pool(:, :n_owned) = position(:, :n_owned)
    call self%update_positions(n_owned, pool)
    ghost_position = pool(:, n_owned + 1:)
  end subroutine build

  !> Fail when a rank would hold more atoms, ghosts included, or send more, than its counters can count.
  !> Both counts are of atoms.
  subroutine check_capacity(n_local, n_sent, error)
    integer(int64), intent(in) :: n_local, n_sent
    type(error_t), allocatable, intent(out) :: error
    if (n_local > most_atoms) then
      call fail(error, exit_resources, "a rank would hold "//to_text(n_local)//" atoms with those of its "// &
                "neighbours, more than the "//to_text(most_atoms)//" it can count: use more ranks")
    else if (n_sent > most_atoms) then
      call fail(error, exit_resources, "a rank would send "//to_text(n_sent)//" atoms to its neighbours, "// &
                "more than the "//to_text(most_atoms)//" it can count: use more ranks")
    end if
  end subroutine check_capacity

  !> Pattern and rounds for the present grid, anew if they are not the same as before.
  subroutine make_rounds(self, grid, width)
    class(halo_t), intent(inout) :: self
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(in) :: width
    integer :: layers(3), axis, k, m, pattern
    integer, allocatable :: displacement(:, :)

    layers = grid%layers_within(width)
    ! Chosen every time, so that a continued run chooses as one that was not interrupted.
    pattern = self%options%pattern
    if (pattern == 0) pattern = cheapest_pattern(grid, layers, width, self%options%whole_shell)
    if (any(layers /= self%layers) .or. pattern /= self%pattern .or. .not. allocated(self%round)) then
      call self%destroy()
      self%layers = layers
      self%offset = wanted_offsets(layers, self%options%whole_shell)
      self%pattern = pattern
      allocate (self%round(merge(3, 1, self%pattern == staged)))
    end if
    if (self%pattern /= staged) then
      displacement = -self%offset
      if (self%pattern == full .and. .not. self%options%whole_shell) displacement = both_ways(displacement)
      call self%round(1)%create(grid, self%comm%rank, displacement)
    else
      do axis = 1, 3
        if (allocated(displacement)) deallocate (displacement)
        allocate (displacement(3, 2*layers(axis)), source=0)
        m = 0
        do k = 1, layers(axis)
          displacement(axis, m + 1) = k
          displacement(axis, m + 2) = -k
          m = m + 2
        end do
        call self%round(axis)%create(grid, self%comm%rank, displacement)
      end do
    end if
  end subroutine make_rounds

  !> Find what goes to each receiver of a round, and let the receivers know the ids. With STAGED the groups that arrive
  !> are appended to `groups`, to be passed on.
  subroutine add_round(self, round, grid, width, groups, id, error)
    class(halo_t), intent(in) :: self
    type(round_t), intent(inout) :: round
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(in) :: width
    type(groups_t), intent(inout) :: groups
    integer(int64), allocatable, intent(inout) :: id(:)
    type(error_t), allocatable, intent(out) :: error
    integer, allocatable :: chosen(:), chosen_first(:)
    integer(int64), allocatable :: longer(:)
    integer :: leaving(round%n_segments), arriving(round%n_segments), s, k, i, n

    call choose_groups(round, grid, self%pattern, width, groups, chosen, chosen_first)
    do s = 1, round%n_segments
      associate (mine => chosen(chosen_first(s):chosen_first(s + 1) - 1))
        leaving(s) = sum(groups%first(mine + 1) - groups%first(mine))
      end associate
    end do
    call round%count_arrivals(self%comm, leaving, arriving)
    call check_capacity(size(id) + sum(int(arriving, int64)), sum(int(leaving, int64)), error)
    call self%comm%agree(error)
    if (allocated(error)) return

    round%base = size(id)
    round%first = running_sum(leaving)
    round%arrival_first = running_sum(arriving)
    if (allocated(round%atom)) deallocate (round%atom)
    allocate (round%atom(sum(leaving)))
    n = 0
    do k = 1, size(chosen)
      do i = groups%first(chosen(k)), groups%first(chosen(k) + 1) - 1
        n = n + 1
        round%atom(n) = i
      end do
    end do
    allocate (longer(size(id) + sum(arriving)))
    longer(:size(id)) = id
    call round%swap_integers(self%comm, round%first, id(round%atom), round%arrival_first, longer(size(id) + 1:))
    call move_alloc(longer, id)
    if (self%pattern == staged) call append_groups(self%comm, grid, round, chosen, chosen_first, groups)
  end subroutine add_round

  !> Find the ghosts that are wanted in the pool: in order of the offsets that they come from, and of their owners.
  subroutine place_ghosts(self, grid, width, groups, n_owned)
    class(halo_t), intent(inout) :: self
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(in) :: width
    type(groups_t), intent(in) :: groups
    integer, intent(in) :: n_owned
    integer :: pass, g, i, m, n_pool, n(size(self%offset, 2)), n_offsets
    integer :: number(-self%layers(1):self%layers(1), -self%layers(2):self%layers(2), -self%layers(3):self%layers(3))
    real(real64) :: outside(3)
    integer, allocatable :: first(:)

    n_offsets = size(self%offset, 2)
    if (allocated(self%place_in_pool)) deallocate (self%place_in_pool)
    if (allocated(self%pool)) deallocate (self%pool)
    if (self%pattern /= staged) then
      self%n_ghosts = self%round(1)%arrival_first(n_offsets + 1) - 1
      if (self%pattern == half .or. self%options%whole_shell) return
      self%place_in_pool = [(n_owned + i, i=1, self%n_ghosts)]
      n_pool = n_owned + self%round(1)%arrival_first(2*n_offsets + 1) - 1
    else
      n_pool = groups%first(groups%n + 1) - 1
      number = 0
      do m = 1, n_offsets
        number(self%offset(1, m), self%offset(2, m), self%offset(3, m)) = m
      end do
      do pass = 1, 2
        n = 0
        do g = 1, groups%n
          m = number(groups%origin(1, g), groups%origin(2, g), groups%origin(3, g))
          if (m == 0) cycle
          ! The same numbers as where the group comes from.
          outside = max(0.0_real64, grid%lower - groups%reference(:, g), groups%reference(:, g) - grid%upper)
          if (.not. grid%is_within(outside, width)) cycle
          do i = groups%first(g), groups%first(g + 1) - 1
            if (pass == 2) self%place_in_pool(first(m) + n(m)) = i
            n(m) = n(m) + 1
          end do
        end do
        if (pass == 2) exit
        first = running_sum(n)
        self%n_ghosts = sum(n)
        allocate (self%place_in_pool(self%n_ghosts))
      end do
    end if
    allocate (self%pool(3, n_pool))
  end subroutine place_ghosts

  !> Get the rounds ready with the transport asked for, or the fastest in a trial, which is then kept.
  subroutine choose_transport(self, error)
    class(halo_t), intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    integer :: k, best
    real(real64) :: seconds, least
    logical :: available

    if (self%transport == 0) self%transport = self%options%transport
    if (self%transport == 0 .and. (self%comm%n_ranks == 1 .or. .not. self%options%time_transports)) &
      self%transport = persistent
    if (self%transport > 0) then
      call connect_rounds(self, self%transport, available)
      if (.not. available) &
        call fail(error, exit_resources, "the halo transport "//trim(transport_names(self%transport))// &
                  " cannot be had here (no memory for its windows, or none over this network): choose another "// &
                  "[COMM] transport")
      return
    end if
    least = huge(least)
    best = persistent
    do k = 1, size(transport_names)
      call connect_rounds(self, k, available)
      if (available) then
        seconds = trial(self)
        if (seconds < worth_changing*least) then
          least = seconds
          best = k
        end if
      end if
      call release_rounds(self)
    end do
    self%transport = best
    call connect_rounds(self, best, available)
  end subroutine choose_transport

  subroutine connect_rounds(self, transport, available)
    class(halo_t), intent(inout) :: self
    integer, intent(in) :: transport
    logical, intent(out) :: available
    integer :: k
    do k = 1, size(self%round)
      call self%round(k)%connect(self%comm, transport, self%options%combine, available)
      if (.not. available) return
    end do
  end subroutine connect_rounds

  !> Seconds that exchanges there and back take on the slowest rank.
  real(real64) function trial(self)
    class(halo_t), intent(inout) :: self
    real(real64), allocatable :: pool(:, :)
    integer(int64) :: begin, now, rate
    integer :: n, k, r
    associate (last => self%round(size(self%round)))
      n = last%base + last%arrival_first(last%n_segments + 1) - 1
    end associate
    allocate (pool(3, n), source=0.0_real64)
    do k = 0, n_trials
      if (k == 1) then
        call self%comm%barrier()
        call system_clock(begin, rate)
      end if
      do r = 1, size(self%round)
        call self%round(r)%start_carry(pool)
        call self%round(r)%finish_carry(pool)
      end do
      do r = size(self%round), 1, -1
        call self%round(r)%start_return(pool)
        call self%round(r)%finish_return(pool)
      end do
    end do
    call system_clock(now)
    trial = self%comm%maximum(real(now - begin, real64)/real(rate, real64))
  end function trial

  !> Bring the positions of the ghosts (`position(:, n_owned+1:)`, angstrom) up to date; or, with `shifted` false, other
  !> vectors that are the same in all images.
  subroutine update_positions(self, n_owned, position, shifted)
    class(halo_t), intent(inout) :: self
    integer, intent(in) :: n_owned
    real(real64), contiguous, intent(inout) :: position(:, :)
    logical, intent(in), optional :: shifted
    call self%start_update(n_owned, position, shifted)
    call self%finish_update(n_owned, position, shifted)
  end subroutine update_positions

  !> Begin it; arguments as of `update_positions`. Until `finish_update` the ghosts' positions are of no use, and owned
  !> atoms must not move.
  subroutine start_update(self, n_owned, position, shifted)
    class(halo_t), intent(inout) :: self
    integer, intent(in) :: n_owned
    real(real64), contiguous, intent(inout) :: position(:, :)
    logical, intent(in), optional :: shifted
    self%at_round = 1
    if (.not. allocated(self%place_in_pool)) then
      call self%round(1)%start_carry(position, shifted)
    else
      call copy(n_owned, position, self%pool)
      call self%round(1)%start_carry(self%pool, shifted)
    end if
  end subroutine start_update

  !> Go on as far as is possible without waiting; of positions (`shifted`) only.
  subroutine advance_update(self)
    class(halo_t), intent(inout) :: self
    do while (self%at_round > 0)
      if (.not. self%round(self%at_round)%is_carried() .or. self%at_round == size(self%round)) return
      call next_round(self)
    end do
  end subroutine advance_update

  !> End the round under way, of several, and begin the next.
  subroutine next_round(self, shifted)
    class(halo_t), intent(inout) :: self
    logical, intent(in), optional :: shifted
    call self%round(self%at_round)%finish_carry(self%pool)
    self%at_round = self%at_round + 1
    call self%round(self%at_round)%start_carry(self%pool, shifted)
  end subroutine next_round

  !> Wait for the ghosts' positions; arguments as of `start_update`.
  subroutine finish_update(self, n_owned, position, shifted)
    class(halo_t), intent(inout) :: self
    integer, intent(in) :: n_owned
    real(real64), contiguous, intent(inout) :: position(:, :)
    logical, intent(in), optional :: shifted
    integer :: i
    if (.not. allocated(self%place_in_pool)) then
      call self%round(1)%finish_carry(position)
      self%at_round = 0
      return
    end if
    do while (self%at_round < size(self%round))
      call next_round(self, shifted)
    end do
    call self%round(self%at_round)%finish_carry(self%pool)
    self%at_round = 0
    !$omp parallel do schedule(static)
    do i = 1, self%n_ghosts
      position(:, n_owned + i) = self%pool(:, self%place_in_pool(i))
    end do
    !$omp end parallel do
  end subroutine finish_update

  !> Add the forces on ghosts to their owners. `force`: (3, owned atoms, then ghosts), kcal/mol/angstrom.
  subroutine return_forces(self, n_owned, force)
    class(halo_t), intent(inout) :: self
    integer, intent(in) :: n_owned
    real(real64), contiguous, intent(inout) :: force(:, :)
    call self%start_return(n_owned, force)
    call self%finish_return(n_owned, force)
  end subroutine return_forces

  !> Begin it; arguments as of `return_forces`. Until `finish_return` the ghosts' forces must not change; those of owned
  !> atoms may.
  subroutine start_return(self, n_owned, force)
    class(halo_t), intent(inout) :: self
    integer, intent(in) :: n_owned
    real(real64), contiguous, intent(in) :: force(:, :)
    integer :: i
    if (.not. allocated(self%place_in_pool)) then
      call self%round(1)%start_return(force)
      return
    end if
    !$omp parallel do schedule(static)
    do i = n_owned + 1, size(self%pool, 2)
      self%pool(:, i) = 0.0_real64
    end do
    !$omp end parallel do
    !$omp parallel do schedule(static)
    do i = 1, self%n_ghosts
      self%pool(:, self%place_in_pool(i)) = force(:, n_owned + i)
    end do
    !$omp end parallel do
    call self%round(size(self%round))%start_return(self%pool)
  end subroutine start_return

  !> Wait for the forces and add them; arguments as of `return_forces`.
  subroutine finish_return(self, n_owned, force)
    class(halo_t), intent(inout) :: self
    integer, intent(in) :: n_owned
    real(real64), contiguous, intent(inout) :: force(:, :)
    integer :: k
    if (.not. allocated(self%place_in_pool)) then
      call self%round(1)%finish_return(force)
      return
    end if
    call copy(n_owned, force, self%pool)
    do k = size(self%round), 1, -1
      call self%round(k)%finish_return(self%pool)
      if (k > 1) call self%round(k - 1)%start_return(self%pool)
    end do
    call copy(n_owned, self%pool, force)
  end subroutine finish_return

  !> Copy the vectors of `n` atoms.
  subroutine copy(n, from, to)
    integer, intent(in) :: n
    real(real64), contiguous, intent(in) :: from(:, :)
    real(real64), contiguous, intent(inout) :: to(:, :)
    integer :: i
    !$omp parallel do schedule(static)
    do i = 1, n
      to(:, i) = from(:, i)
    end do
    !$omp end parallel do
  end subroutine copy

  !> The box of the grid has other edges now: ghosts across its faces stand as far from where they come from.
  subroutine set_box(self, grid)
    class(halo_t), intent(inout) :: self
    type(domain_grid_t), intent(in) :: grid
    integer :: k, s
    if (.not. allocated(self%round)) return
    do k = 1, size(self%round)
      do s = 1, self%round(k)%n_segments
        self%round(k)%shift(:, s) = grid%translation(real(self%round(k)%image(:, s), real64))
      end do
    end do
  end subroutine set_box

  !> What this rank sends in one update of positions.
  type(halo_traffic_t) function traffic(self)
    class(halo_t), intent(in) :: self
    integer, allocatable :: partners(:)
    integer :: k, m
    allocate (partners(0))
    do k = 1, size(self%round)
      associate (round => self%round(k))
        traffic%n_links = traffic%n_links + round%n_segments
        traffic%n_atoms = traffic%n_atoms + size(round%atom)
        traffic%n_messages = traffic%n_messages + count(round%sends%count > 0)
        traffic%n_bytes = traffic%n_bytes + 24_int64*sum(int(round%sends%count, int64))
        do m = 1, size(round%sends%rank)
          if (round%sends%count(m) == 0) cycle
          if (.not. any(partners == round%sends%rank(m))) partners = [partners, round%sends%rank(m)]
        end do
      end associate
    end do
    traffic%n_partners = size(partners)
  end function traffic

  !> What was chosen, for people.
  function describe(self) result(text)
    class(halo_t), intent(in) :: self
    character(len=:), allocatable :: text
    type(halo_traffic_t) :: sent
    sent = self%traffic()
    text = "halo: "//trim(merge("whole", "half ", self%options%whole_shell))//" shell, pattern "// &
           trim(pattern_names(self%pattern))//", transport "//trim(transport_names(self%transport))// &
           "; rank 0 has "//to_text(int(self%n_ghosts, int64))//" ghosts and sends "// &
           to_text(int(sent%n_messages, int64))//" messages, "//to_text(sent%n_bytes)//" bytes a step each way"
  end function describe

  !> Give back what transports hold; all ranks must call it.
  subroutine release_rounds(self)
    class(halo_t), intent(inout) :: self
    integer :: k
    do k = 1, size(self%round)
      call self%round(k)%destroy()
    end do
  end subroutine release_rounds

  !> Forget everything but the options; all ranks must call it.
  subroutine destroy(self)
    class(halo_t), intent(inout) :: self
    if (allocated(self%round)) then
      call release_rounds(self)
      deallocate (self%round)
    end if
    self%transport = 0
    self%layers = 0
  end subroutine destroy

end module comm_halo
