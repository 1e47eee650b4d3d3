!> Fourier transforms between waves in a sphere and a grid in planes of z, two real fields in each complex transform.
!>
!> Waves to grid: lines along z of the sticks that this rank holds; an exchange after which each rank has all lines in
!> its planes; then plane after plane, while it lies in the cache, lines along y where the sphere has waves, and lines
!> along x. The kernels are those of our FFT library; its three-dimensional plans are not used, because here a plane of
!> the grid is consumed (squared into the density, multiplied by the potential) before the next one is made.
!>
!> Pairs go in rounds. While a rank works on the planes of one round, lines of the next are on their way to it and waves
!> of the last one on their way back.
!>
!> Which rank holds a plane of a pair is the map's choice (`state_planes`). Without a map a rank has its planes of all
!> pairs; otherwise densities of planes are summed, and potentials sent, between the ranks that share a plane.
module sphere_transform
  use mpi_f08, only: MPI_Alltoallv, MPI_DOUBLE_COMPLEX, MPI_DOUBLE_PRECISION, MPI_Ialltoallv, MPI_Request, MPI_REQUEST_NULL, &
                     MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE, MPI_Testall, MPI_Wait
  use omp_lib, only: omp_get_thread_num
  use base_kinds, only: int64, real64
  use comm_communicator, only: communicator_t
  use fft_layout, only: share_lower, share_upper
  use message_traffic, only: traffic_t
  use state_planes, only: round_t, state_planes_t
  use stick_lines, only: backward, forward, plane_transform_t, stick_lines_t
  use wave_sphere, only: sphere_t
  implicit none
  private
  public :: sphere_transform_t

  !> Sticks, of two lines along z each, that a thread takes at a time.
  integer, parameter :: sticks_a_turn = 8

  !> A round under way.
  type :: flight_t
    type(round_t) :: round
    !> Points of lines along z that travel, and that lie in the planes held here; how many go to each rank on the way to
    !> planes (our lines in its planes), and come from it, and where these begin.
    complex(real64), allocatable :: sent(:), column(:)
    integer, allocatable :: out(:), start_out(:), into(:), start_into(:)
  end type flight_t

  type :: sphere_transform_t
    !> Grid points along x, y, z; planes held here, and the z of the first of them (from 0).
    integer :: n(3) = 0, n_planes = 0, first_plane = 0
    type(communicator_t), private :: comm
    !> Of each rank (from 0): its first plane, its first line among all lines.
    integer, allocatable, private :: plane_start(:), line_start(:)
    !> Who has which plane of which pair.
    type(state_planes_t) :: map
    !> Transposes, sums of densities and potentials so far.
    type(traffic_t) :: transposes = traffic_t("transposes"), densities = traffic_t("densities"), &
                       potentials = traffic_t("potentials")
    !> The lines of each rank (from 0), and the transforms.
    type(stick_lines_t), allocatable, private :: lines(:)
    type(plane_transform_t), private :: planes
    integer, private :: n_lines = 0
    !> Rounds under way, of three numbers in turn, and what they wait for; how many rounds lines leave ahead of their turn.
    type(flight_t), allocatable, private :: flight(:)
    type(MPI_Request), allocatable, private :: request(:)
    integer, private :: ahead = 0
  contains
    procedure :: create
    procedure :: to_grid
    procedure :: to_waves
    procedure :: add_density
    procedure :: apply_potential
    procedure, private :: sum_planes
    procedure, private :: spread_planes
    procedure, private :: n_rounds
    procedure, private :: start_round
    procedure, private :: send_to_planes
    procedure, private :: wait_for_planes
    procedure, private :: send_to_waves
    procedure, private :: wait_for_waves
    procedure, private :: progress
    procedure, private :: plane_to_grid
    procedure, private :: plane_to_waves
    procedure, private :: place_of
  end type sphere_transform_t

contains

  !> Plan the transforms of a sphere. `map`: where planes of pairs are.
  subroutine create(self, sphere, comm, map)
    class(sphere_transform_t), intent(inout) :: self
    type(sphere_t), intent(in) :: sphere
    type(communicator_t), intent(in) :: comm
    type(state_planes_t), intent(in), optional :: map
    integer :: r, k, at

    self%n = sphere%n
    self%comm = comm
    associate (p => comm%n_ranks, n => sphere%n)
      allocate (self%plane_start(0:p), self%line_start(0:p), self%lines(0:p - 1))
      self%plane_start = [(share_lower(n(3), p, r), r=0, p - 1), n(3)]
      self%first_plane = self%plane_start(comm%rank)
      self%n_planes = share_upper(n(3), p, comm%rank) - self%first_plane + 1
      at = 0
      do r = 0, p - 1
        call self%lines(r)%create(sphere, r)
        self%line_start(r) = at
        at = at + self%lines(r)%n_lines
      end do
      self%line_start(p) = at
      self%n_lines = self%lines(comm%rank)%n_lines
      if (present(map)) self%map = map
      call self%map%prepare(self%plane_start, comm%rank)
      self%ahead = merge(1, 0, p > 1)
      allocate (self%flight(0:2*self%ahead), self%request(0:2*self%ahead))
      do k = 0, 2*self%ahead
        self%request(k) = MPI_REQUEST_NULL
        allocate (self%flight(k)%column(max(1, at*self%map%most_objects)))
        allocate (self%flight(k)%sent(merge(max(1, self%n_lines*n(3)*self%map%batch), 1, p > 1)))
      end do
      call self%planes%create(sphere)
    end associate
  end subroutine create

  !> Real fields on the planes held here from their waves (n_waves, n): sum over waves of a exp(iG.r).
  subroutine to_grid(self, waves, grid)
    class(sphere_transform_t), target, intent(inout) :: self
    complex(real64), intent(in) :: waves(:, :)
    real(real64), intent(out) :: grid(:, :, :, :)
    complex(real64), allocatable, target :: plane(:, :)
    type(flight_t), pointer :: flight
    integer :: r, n, z, field, o
    n = self%n_rounds(waves)
    do r = 1 - self%ahead, n
      if (r + self%ahead <= n) call self%send_to_planes(r + self%ahead, waves)
      if (r < 1) cycle
      call self%wait_for_planes(r, flight)
      associate (round => flight%round)
        !$omp parallel private(plane, field, z)
        allocate (plane(self%n(1), self%n(2)))
        !$omp do
        do o = 1, round%n
          call self%plane_to_grid(flight, o, plane)
          z = round%z(round%first + o) - self%first_plane
          field = 2*round%pair(round%b(round%first + o)) - 1
          grid(:, :, z, field) = real(plane, real64)
          if (field < size(waves, 2)) grid(:, :, z, field + 1) = aimag(plane)
          call self%progress()
        end do
        !$omp end do
        deallocate (plane)
        !$omp end parallel
      end associate
    end do
  end subroutine to_grid

  !> Waves of real fields on the grid: mean over the grid of f exp(-iG.r).
  subroutine to_waves(self, grid, waves)
    class(sphere_transform_t), target, intent(inout) :: self
    real(real64), intent(in) :: grid(:, :, :, :)
    complex(real64), intent(out) :: waves(:, :)
    complex(real64), allocatable, target :: plane(:, :)
    type(flight_t), pointer :: flight
    integer :: r, n, z, field, o
    waves = 0.0_real64
    n = self%n_rounds(waves)
    do r = 1, n + self%ahead
      if (r <= n) then
        call self%start_round(r, waves, flight)
        associate (round => flight%round)
          !$omp parallel private(plane, field, z)
          allocate (plane(self%n(1), self%n(2)))
          !$omp do
          do o = 1, round%n
            z = round%z(round%first + o) - self%first_plane
            field = 2*round%pair(round%b(round%first + o)) - 1
            if (field < size(waves, 2)) then
              plane = cmplx(grid(:, :, z, field), grid(:, :, z, field + 1), real64)
            else
              plane = grid(:, :, z, field)
            end if
            call self%plane_to_waves(flight, o, plane)
            call self%progress()
          end do
          !$omp end do
          deallocate (plane)
          !$omp end parallel
        end associate
        call self%send_to_waves(r)
      end if
      if (r > self%ahead) call self%wait_for_waves(r - self%ahead, waves)
    end do
  end subroutine to_waves

  !> Add `weight` times the squares of states on the grid to `density`. `kept` (n(1), n(2), map%n_objects): receives the
  !> states there; of no size: they are not kept.
  subroutine add_density(self, states, weight, density, kept)
    class(sphere_transform_t), target, intent(inout) :: self
    complex(real64), intent(in) :: states(:, :)
    real(real64), intent(in) :: weight
    real(real64), intent(inout) :: density(:, :, :)
    complex(real64), intent(inout) :: kept(:, :, :)
    complex(real64), allocatable, target :: plane(:, :)
    real(real64), allocatable :: here(:, :, :)
    type(flight_t), pointer :: flight
    integer :: r, n, o, k, at
    n = self%n_rounds(states)
    allocate (here(self%n(1), self%n(2), size(self%map%held)), source=0.0_real64)
    at = 0
    do r = 1 - self%ahead, n
      if (r + self%ahead <= n) call self%send_to_planes(r + self%ahead, states)
      if (r < 1) cycle
      call self%wait_for_planes(r, flight)
      associate (round => flight%round)
        !$omp parallel private(plane, o)
        allocate (plane(self%n(1), self%n(2)))
        !$omp do
        do k = 1, size(self%map%held)
          do o = 1, round%n
            if (round%z(round%first + o) /= self%map%held(k)) cycle
            call self%plane_to_grid(flight, o, plane)
            here(:, :, k) = here(:, :, k) + weight*(real(plane, real64)**2 + aimag(plane)**2)
            if (size(kept, 3) > 0) kept(:, :, at + o) = plane
          end do
          call self%progress()
        end do
        !$omp end do
        deallocate (plane)
        !$omp end parallel
        at = at + round%n
      end associate
    end do
    if (self%map%is_mapped) then
      call self%sum_planes(here, density)
    else
      density = density + here
    end if
  end subroutine add_density

  !> Add to `product` the waves of potential times state. `kept`: as add_density left it.
  subroutine apply_potential(self, potential, states, product, kept)
    class(sphere_transform_t), target, intent(inout) :: self
    real(real64), contiguous, target, intent(in) :: potential(:, :, :)
    complex(real64), intent(in) :: states(:, :)
    complex(real64), intent(inout) :: product(:, :)
    complex(real64), intent(in) :: kept(:, :, :)
    complex(real64), allocatable, target :: plane(:, :)
    real(real64), contiguous, pointer :: here(:, :, :)
    real(real64), allocatable, target :: received(:, :, :)
    type(flight_t), pointer :: flight
    logical :: is_kept
    integer :: r, n, o, k, at
    here => potential
    if (self%map%is_mapped) then
      allocate (received(self%n(1), self%n(2), size(self%map%held)))
      call self%spread_planes(potential, received)
      here => received
    end if
    is_kept = size(kept, 3) > 0
    n = self%n_rounds(states)
    at = 0
    do r = 1 - self%ahead, n + self%ahead
      if (.not. is_kept .and. r + self%ahead <= n) call self%send_to_planes(r + self%ahead, states)
      if (r >= 1 .and. r <= n) then
        if (is_kept) call self%start_round(r, states, flight)
        if (.not. is_kept) call self%wait_for_planes(r, flight)
        associate (round => flight%round)
          !$omp parallel private(plane, o)
          allocate (plane(self%n(1), self%n(2)))
          !$omp do
          do k = 1, size(self%map%held)
            do o = 1, round%n
              if (round%z(round%first + o) /= self%map%held(k)) cycle
              if (is_kept) then
                plane = kept(:, :, at + o)*here(:, :, k)
              else
                call self%plane_to_grid(flight, o, plane)
                plane = plane*here(:, :, k)
              end if
              call self%plane_to_waves(flight, o, plane)
            end do
            call self%progress()
          end do
          !$omp end do
          deallocate (plane)
          !$omp end parallel
          at = at + round%n
        end associate
        call self%send_to_waves(r)
      end if
      if (r > self%ahead) call self%wait_for_waves(r - self%ahead, product)
    end do
  end subroutine apply_potential

  !> Add the parts that ranks have of each plane of the density to the plane, rank after rank.
  subroutine sum_planes(self, here, density)
    class(sphere_transform_t), intent(inout) :: self
    real(real64), intent(in) :: here(:, :, :)
    real(real64), intent(inout) :: density(:, :, :)
    real(real64), allocatable :: received(:, :, :)
    integer :: r, z, at
    integer, allocatable :: out(:), into(:)
    call count_planes(self, out, into)
    allocate (received(self%n(1), self%n(2), max(1, sum(into))))
    call exchange_planes(self, here, out, received, into, self%densities)
    at = 0
    do r = 0, self%comm%n_ranks - 1
      do z = 1, self%n_planes
        if (.not. self%map%has(self%first_plane + z, r)) cycle
        at = at + 1
        density(:, :, z) = density(:, :, z) + received(:, :, at)
      end do
    end do
  end subroutine sum_planes

  !> Send planes of the potential to all ranks that have states there.
  subroutine spread_planes(self, potential, here)
    class(sphere_transform_t), intent(inout) :: self
    real(real64), intent(in) :: potential(:, :, :)
    real(real64), intent(inout) :: here(:, :, :)
    real(real64), allocatable :: sent(:, :, :)
    integer :: r, z, at
    integer, allocatable :: out(:), into(:)
    call count_planes(self, out, into)
    allocate (sent(self%n(1), self%n(2), max(1, sum(into))))
    at = 0
    do r = 0, self%comm%n_ranks - 1
      do z = 1, self%n_planes
        if (.not. self%map%has(self%first_plane + z, r)) cycle
        at = at + 1
        sent(:, :, at) = potential(:, :, z)
      end do
    end do
    call exchange_planes(self, sent, into, here, out, self%potentials)
  end subroutine spread_planes

  !> Planes with states here whose density each rank has, and planes of our density with states at each rank.
  subroutine count_planes(self, out, into)
    class(sphere_transform_t), intent(in) :: self
    integer, allocatable, intent(out) :: out(:), into(:)
    integer :: r
    allocate (out(self%comm%n_ranks), into(self%comm%n_ranks))
    do r = 0, self%comm%n_ranks - 1
      out(r + 1) = count(self%map%has(self%plane_start(r) + 1:self%plane_start(r + 1), self%comm%rank))
      into(r + 1) = count(self%map%has(self%first_plane + 1:self%first_plane + self%n_planes, r))
    end do
  end subroutine count_planes

  !> So many planes to and from each rank.
  subroutine exchange_planes(self, sent, out, received, into, traffic)
    class(sphere_transform_t), intent(in) :: self
    real(real64), intent(in) :: sent(:, :, :)
    real(real64), intent(inout) :: received(:, :, :)
    integer, intent(in) :: out(:), into(:)
    type(traffic_t), intent(inout) :: traffic
    integer :: a_plane
    a_plane = self%n(1)*self%n(2)
    call MPI_Alltoallv(sent, a_plane*out, a_plane*starts(out), MPI_DOUBLE_PRECISION, &
                       received, a_plane*into, a_plane*starts(into), MPI_DOUBLE_PRECISION, self%comm%handle)
    call add_traffic(traffic, a_plane*out, 8, self%comm%rank)
  end subroutine exchange_planes

  !> Where each of parts of these sizes begins, counted from 0.
  pure function starts(counts)
    integer, intent(in) :: counts(:)
    integer :: starts(size(counts)), k
    starts = [(sum(counts(:k - 1)), k=1, size(counts))]
  end function starts

  !> Count messages of so many items to each rank, but for that to this one.
  pure subroutine add_traffic(traffic, counts, item_bytes, rank)
    type(traffic_t), intent(inout) :: traffic
    integer, intent(in) :: counts(0:), item_bytes, rank
    traffic%messages = traffic%messages + count(counts > 0) - merge(1, 0, counts(rank) > 0)
    traffic%bytes = traffic%bytes + item_bytes*(sum(int(counts, int64)) - counts(rank))
  end subroutine add_traffic

  !> Rounds that the pairs of these waves make.
  pure integer function n_rounds(self, waves)
    class(sphere_transform_t), intent(in) :: self
    complex(real64), intent(in) :: waves(:, :)
    n_rounds = ((size(waves, 2) + 1)/2 + self%map%batch - 1)/self%map%batch
  end function n_rounds

  !> Give round r of the pairs of these waves its place.
  subroutine start_round(self, r, waves, flight)
    class(sphere_transform_t), target, intent(inout) :: self
    integer, intent(in) :: r
    complex(real64), intent(in) :: waves(:, :)
    type(flight_t), pointer, intent(out) :: flight
    flight => self%flight(mod(r, size(self%flight)))
    call self%map%start_round(1 + (r - 1)*self%map%batch, (size(waves, 2) + 1)/2, flight%round)
    associate (p => self%comm%n_ranks, round => flight%round)
      flight%out = self%n_lines*(round%start(1:) - round%start(:p - 1))
      flight%start_out = self%n_lines*round%start(:p - 1)
      flight%into = (self%line_start(1:) - self%line_start(:p - 1))*round%n
      flight%start_into = self%line_start(:p - 1)*round%n
    end associate
  end subroutine start_round

  !> Start round r: its pairs as lines along z, transformed to the grid, leave for the ranks that have their planes.
  subroutine send_to_planes(self, r, waves)
    class(sphere_transform_t), target, intent(inout) :: self
    integer, intent(in) :: r
    complex(real64), intent(in) :: waves(:, :)
    type(flight_t), pointer :: flight
    call self%start_round(r, waves, flight)
    if (self%ahead == 0) then
      call scatter(self, waves, flight%round, flight%column)
      return
    end if
    call scatter(self, waves, flight%round, flight%sent)
    call MPI_Ialltoallv(flight%sent, flight%out, flight%start_out, MPI_DOUBLE_COMPLEX, &
                        flight%column, flight%into, flight%start_into, MPI_DOUBLE_COMPLEX, self%comm%handle, &
                        self%request(mod(r, size(self%flight))))
    call add_traffic(self%transposes, flight%out, 16, self%comm%rank)
  end subroutine send_to_planes

  !> Wait for what `send_to_planes` of round r has sent.
  subroutine wait_for_planes(self, r, flight)
    class(sphere_transform_t), target, intent(inout) :: self
    integer, intent(in) :: r
    type(flight_t), pointer, intent(out) :: flight
    flight => self%flight(mod(r, size(self%flight)))
    if (self%ahead > 0) call MPI_Wait(self%request(mod(r, size(self%flight))), MPI_STATUS_IGNORE)
  end subroutine wait_for_planes

  !> The planes of round r as lines along z leave for the ranks that have their waves.
  subroutine send_to_waves(self, r)
    class(sphere_transform_t), target, intent(inout) :: self
    integer, intent(in) :: r
    if (self%ahead == 0) return
    associate (flight => self%flight(mod(r, size(self%flight))))
      call MPI_Ialltoallv(flight%column, flight%into, flight%start_into, MPI_DOUBLE_COMPLEX, &
                          flight%sent, flight%out, flight%start_out, MPI_DOUBLE_COMPLEX, self%comm%handle, &
                          self%request(mod(r, size(self%flight))))
      call add_traffic(self%transposes, flight%into, 16, self%comm%rank)
    end associate
  end subroutine send_to_waves

  !> Wait for what `send_to_waves` of round r has sent, and add it to `waves`.
  subroutine wait_for_waves(self, r, waves)
    class(sphere_transform_t), target, intent(inout) :: self
    integer, intent(in) :: r
    complex(real64), intent(inout) :: waves(:, :)
    associate (flight => self%flight(mod(r, size(self%flight))))
      if (self%ahead == 0) then
        call gather(self, flight%round, flight%column, waves)
      else
        call MPI_Wait(self%request(mod(r, size(self%flight))), MPI_STATUS_IGNORE)
        call gather(self, flight%round, flight%sent, waves)
      end if
    end associate
  end subroutine wait_for_waves

  !> Let messages under way go on, which they do within calls of the library alone. For all threads of a team to call.
  subroutine progress(self)
    class(sphere_transform_t), intent(inout) :: self
    logical :: are_done
    if (self%ahead == 0) return
    if (omp_get_thread_num() == 0) call MPI_Testall(size(self%request), self%request, are_done, MPI_STATUSES_IGNORE)
  end subroutine progress

  !> Waves of a round to lines, a few at a time while they lie in the cache, and these into the order in which they
  !> travel: all lines of a rank in a plane of a pair follow each other.
  subroutine scatter(self, waves, round, travelling)
    class(sphere_transform_t), intent(in) :: self
    complex(real64), intent(in) :: waves(:, :)
    type(round_t), intent(in) :: round
    complex(real64), intent(inout) :: travelling(:)
    complex(real64), allocatable, target :: line(:, :)
    integer :: b, first, last, s, field, z, lower, upper, at
    associate (mine => self%lines(self%comm%rank))
      !$omp parallel private(line, last, s, field, z, lower, upper, at)
      allocate (line(self%n(3), 2*sticks_a_turn))
      !$omp do collapse(2)
      do b = 1, round%n_pairs
        do first = 1, mine%n_sticks, sticks_a_turn
          last = min(first + sticks_a_turn - 1, mine%n_sticks)
          lower = mine%line_of(first)
          upper = mine%mirror_of(last)
          field = 2*round%pair(b) - 1
          do s = first, last
            call mine%scatter(s, waves(:, field:min(field + 1, size(waves, 2))), line, lower - 1)
          end do
          call self%planes%along_z(backward, 0, upper - lower + 1, line)
          do z = 1, self%n(3)
            at = self%n_lines*(round%place(z, b) - 1)
            travelling(at + lower:at + upper) = line(z, :upper - lower + 1)
          end do
        end do
      end do
      !$omp end do
      deallocate (line)
      !$omp end parallel
    end associate
  end subroutine scatter

  !> The way of `scatter` back; adds to `waves`.
  subroutine gather(self, round, travelling, waves)
    class(sphere_transform_t), intent(in) :: self
    type(round_t), intent(in) :: round
    complex(real64), intent(in) :: travelling(:)
    complex(real64), intent(inout) :: waves(:, :)
    complex(real64), allocatable, target :: line(:, :)
    integer :: b, first, last, s, field, z, lower, upper, at
    associate (mine => self%lines(self%comm%rank))
      !$omp parallel private(line, last, s, field, z, lower, upper, at)
      allocate (line(self%n(3), 2*sticks_a_turn))
      !$omp do collapse(2)
      do b = 1, round%n_pairs
        do first = 1, mine%n_sticks, sticks_a_turn
          last = min(first + sticks_a_turn - 1, mine%n_sticks)
          lower = mine%line_of(first)
          upper = mine%mirror_of(last)
          do z = 1, self%n(3)
            at = self%n_lines*(round%place(z, b) - 1)
            line(z, :upper - lower + 1) = travelling(at + lower:at + upper)
          end do
          call self%planes%along_z(forward, 0, upper - lower + 1, line)
          field = 2*round%pair(b) - 1
          do s = first, last
            call mine%gather(s, line, waves(:, field:min(field + 1, size(waves, 2))), lower - 1)
          end do
        end do
      end do
      !$omp end do
      deallocate (line)
      !$omp end parallel
    end associate
  end subroutine gather

  !> Object o of the round, of those that are here, from lines to grid points.
  subroutine plane_to_grid(self, flight, o, plane)
    class(sphere_transform_t), intent(in) :: self
    type(flight_t), intent(in) :: flight
    integer, intent(in) :: o
    complex(real64), target, contiguous, intent(out) :: plane(:, :)
    integer :: r, l, at
    plane = 0.0_real64
    do r = 0, self%comm%n_ranks - 1
      at = self%place_of(r, o, flight%round%n)
      associate (lines => self%lines(r))
        do l = 1, lines%n_lines
          plane(lines%x(l), lines%y(l)) = flight%column(at + l)
        end do
      end associate
    end do
    call self%planes%to_grid(plane)
  end subroutine plane_to_grid

  !> Object o of the round, of those that are here, from grid points to lines. Overwrites `plane`.
  subroutine plane_to_waves(self, flight, o, plane)
    class(sphere_transform_t), intent(in) :: self
    type(flight_t), intent(inout) :: flight
    integer, intent(in) :: o
    complex(real64), target, contiguous, intent(inout) :: plane(:, :)
    integer :: r, l, at
    call self%planes%to_waves(plane)
    do r = 0, self%comm%n_ranks - 1
      at = self%place_of(r, o, flight%round%n)
      associate (lines => self%lines(r))
        do l = 1, lines%n_lines
          flight%column(at + l) = plane(lines%x(l), lines%y(l))
        end do
      end associate
    end do
  end subroutine plane_to_waves

  !> Where line 1 of rank r begins, less one, in object o of the n that are here.
  pure integer function place_of(self, r, o, n)
    class(sphere_transform_t), intent(in) :: self
    integer, intent(in) :: r, o, n
    place_of = self%line_start(r)*n + (o - 1)*(self%line_start(r + 1) - self%line_start(r))
  end function place_of

end module sphere_transform
