!> Reciprocal space on ranks of its own. Ranks with atoms send positions to their PME rank at the beginning of a step, go
!> on with pairs, and receive forces at its end; what is to be done is told by the first of them. A PME rank takes the
!> atoms of neighbouring domains, and as its own domain the box around theirs.
module pme_ranks
  use base_kinds, only: real64
  use comm_communicator, only: communicator_t
  use base_box_shape, only: box_shape_t, shape_of
  use base_error, only: error_t, fail
  use base_fixed_point, only: rounding_t
  use settings, only: fft_settings_t
  use pme, only: pme_t
  use comm_rank_link, only: rank_link_t
  implicit none
  private
  public :: pme_client_t, serve_pme, end_pme_service

  !> What the first rank asks for.
  integer, parameter :: to_end = 0, to_begin = 1, to_set_box = 2, to_take_atoms = 3, to_compute = 4

  !> The side of the ranks with atoms.
  type :: pme_client_t
    logical :: is_on = .false.
    !> To this rank's PME rank; and, on the first rank, to all of them.
    type(rank_link_t), private :: link, all
    integer, private :: n_owned = 0
    logical, private :: with_energy = .false., is_first = .false.
    real(real64), allocatable, private :: force(:, :)
  contains
    procedure :: init
    procedure :: set_box
    procedure :: take_atoms
    procedure :: start
    procedure :: advance
    procedure :: finish
  end type pme_client_t

contains

  !> PME rank (from 0) of a rank with atoms: about as many for each, neighbours together.
  pure integer function server_of(rank, n_clients, n_servers)
    integer, intent(in) :: rank, n_clients, n_servers
    server_of = rank*n_servers/n_clients
  end function server_of

  !> Links to the PME ranks of `comm`.
  subroutine connect(self, comm)
    class(pme_client_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    integer :: k
    self%link%comm = comm
    self%link%partner = [comm%n_ranks + server_of(comm%rank, comm%n_ranks, comm%n_apart)]
    self%all%comm = comm
    allocate (self%all%partner(0))
    if (comm%is_root()) self%all%partner = [(comm%n_ranks + k, k=0, comm%n_apart - 1)]
    self%is_first = .true.
    if (comm%rank > 0) self%is_first = server_of(comm%rank - 1, comm%n_ranks, comm%n_apart) /= &
                                       server_of(comm%rank, comm%n_ranks, comm%n_apart)
  end subroutine connect

  !> Tell the PME ranks what to do; of the first rank only.
  subroutine ask(self, what, integers, reals)
    class(pme_client_t), intent(in) :: self
    integer, intent(in) :: what
    integer, intent(in), optional :: integers(:)
    real(real64), intent(in), optional :: reals(:)
    integer :: k
    do k = 1, size(self%all%partner)
      call self%all%send(k, [what])
      if (present(integers)) call self%all%send(k, integers)
      if (present(reals)) call self%all%send(k, reals)
    end do
  end subroutine ask

  !> As `init` of `pme_t`, for the ranks apart of `comm`. Fails on all ranks.
  subroutine init(self, comm, box, shape, grid_size, spline_order, alpha, coulomb_constant, rounding, fft, error)
    class(pme_client_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    real(real64), intent(in) :: box(3), alpha, coulomb_constant
    type(box_shape_t), intent(in) :: shape
    integer, intent(in) :: grid_size(3), spline_order
    type(rounding_t), intent(in) :: rounding
    type(fft_settings_t), intent(in) :: fft
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: message
    integer :: k, status(2)
    self%is_on = .true.
    call connect(self, comm)
    call ask(self, to_begin, [grid_size, spline_order, merge(1, 0, rounding%is_on()), fft%n_chunks, &
             merge(1, 0, fft%by_node)], &
             [box, alpha, coulomb_constant, shape%lean])
    do k = 1, size(self%all%partner)
      call self%all%send(k, fft%scheme//fft%subset)
    end do
    if (comm%is_root()) then
      call self%all%receive(1, status)
      if (status(2) > 0) then
        allocate (character(len=status(2)) :: message)
        call self%all%receive(1, message)
        call fail(error, status(1), message)
      end if
    end if
    call self%link%comm%agree(error)
  end subroutine init

  !> Another box (angstrom); all ranks with atoms call it.
  subroutine set_box(self, box)
    class(pme_client_t), intent(in) :: self
    real(real64), intent(in) :: box(3)
    call ask(self, to_set_box, reals=box)
  end subroutine set_box

  !> Other owned atoms, and the borders of this rank's domain as fractions of the box; all ranks with atoms call it.
  subroutine take_atoms(self, charge, lower, upper)
    class(pme_client_t), intent(inout) :: self
    real(real64), intent(in) :: charge(:), lower(3), upper(3)
    call ask(self, to_take_atoms)
    self%n_owned = size(charge)
    call self%link%send(1, [self%n_owned])
    call self%link%send(1, [lower, upper, charge])
    if (allocated(self%force)) deallocate (self%force)
    allocate (self%force(3, self%n_owned))
  end subroutine take_atoms

  !> Send the positions (3, owned atoms; angstrom), which must not change until `finish`.
  subroutine start(self, position, want_energy)
    class(pme_client_t), target, intent(inout) :: self
    real(real64), contiguous, target, intent(in) :: position(:, :)
    logical, intent(in) :: want_energy
    self%with_energy = want_energy
    call ask(self, to_compute, [merge(1, 0, want_energy)])
    call self%link%start_receive(1, self%force)
    call self%link%start_send(1, position(:, :self%n_owned))
  end subroutine start

  !> Let messages progress.
  subroutine advance(self)
    class(pme_client_t), intent(inout) :: self
    if (self%is_on) call self%link%advance()
  end subroutine advance

  !> Add the forces (kcal/mol/angstrom) on the owned atoms to `force`, (3, atoms); energy and virial as `compute` of
  !> `pme_t` gives them, all of a PME rank on the first of its ranks.
  subroutine finish(self, force, energy, virial)
    class(pme_client_t), intent(inout) :: self
    real(real64), intent(inout) :: force(:, :)
    real(real64), intent(out) :: energy, virial(3, 3)
    real(real64) :: sums(10)
    integer :: i
    call self%link%finish()
    !$omp parallel do schedule(static)
    do i = 1, self%n_owned
      force(:, i) = force(:, i) + self%force(:, i)
    end do
    !$omp end parallel do
    sums = 0.0_real64
    if (self%with_energy .and. self%is_first) call self%link%receive(1, sums)
    energy = sums(1)
    virial = reshape(sums(2:), [3, 3])
  end subroutine finish

  !> Let the PME ranks go; by the ranks with atoms.
  subroutine end_pme_service(comm)
    type(communicator_t), intent(in) :: comm
    type(pme_client_t) :: client
    call connect(client, comm)
    call ask(client, to_end)
  end subroutine end_pme_service

  !> Do what the ranks with atoms ask for, on a rank apart, until they end it.
  subroutine serve_pme(comm)
    type(communicator_t), intent(in) :: comm
    type(rank_link_t) :: clients, first
    type(pme_t) :: pme
    integer, allocatable :: n_atoms(:)
    real(real64), allocatable :: charge(:), position(:, :), force(:, :)
    integer :: what(1), n_clients, k
    real(real64) :: box(3)

    ! Of this rank, `n_ranks` counts those apart, `n_apart` those with atoms.
    n_clients = comm%n_apart
    clients%comm = comm
    clients%partner = pack([(k, k=0, n_clients - 1)], [(server_of(k, n_clients, comm%n_ranks) == comm%rank, &
                                                        k=0, n_clients - 1)])
    first%comm = comm
    first%partner = [0]
    do
      call first%receive(1, what)
      select case (what(1))
      case (to_begin)
        call begin(comm, first, pme)
      case (to_set_box)
        call first%receive(1, box)
        call pme%set_box(box)
      case (to_take_atoms)
        call take_from(clients, pme, n_atoms, charge)
        if (allocated(position)) deallocate (position, force)
        allocate (position(3, size(charge)), force(3, size(charge)))
      case (to_compute)
        call compute_for(clients, first, pme, n_atoms, charge, position, force)
      case default
        exit
      end select
    end do
  end subroutine serve_pme

  !> Set up, and say whether it went well.
  subroutine begin(comm, first, pme)
    type(communicator_t), intent(in) :: comm
    type(rank_link_t), intent(in) :: first
    type(pme_t), intent(inout) :: pme
    type(error_t), allocatable :: error
    type(rounding_t) :: rounding
    type(fft_settings_t) :: fft
    integer :: integers(7)
    real(real64) :: reals(8)
    character(len=len(fft%scheme) + len(fft%subset)) :: names
    call first%receive(1, integers)
    call first%receive(1, reals)
    call first%receive(1, names)
    fft = fft_settings_t(names(:len(fft%scheme)), names(len(fft%scheme) + 1:), integers(6), integers(7) == 1)
    if (integers(5) == 1) call rounding%switch_on(reals(:3))
    call pme%init(comm%handle, [1, 1, comm%n_ranks], reals(:3), integers(:3), integers(4), reals(4), reals(5), error, &
                  rounding=rounding, fft=fft, shape=shape_of(reals(6:)))
    call comm%agree(error)
    if (.not. comm%is_root()) return
    if (allocated(error)) then
      call first%send(1, [error%code, len(error%message)])
      call first%send(1, error%message)
    else
      call first%send(1, [0, 0])
    end if
  end subroutine begin

  !> Charges of the partners' atoms, and the box around their domains.
  subroutine take_from(clients, pme, n_atoms, charge)
    type(rank_link_t), intent(in) :: clients
    type(pme_t), intent(inout) :: pme
    integer, allocatable, intent(out) :: n_atoms(:)
    real(real64), allocatable, intent(out) :: charge(:)
    real(real64), allocatable :: reals(:)
    real(real64) :: lower(3), upper(3)
    integer :: k, n(1)
    allocate (n_atoms(size(clients%partner)), charge(0))
    lower = 1.0_real64
    upper = 0.0_real64
    do k = 1, size(clients%partner)
      call clients%receive(k, n)
      n_atoms(k) = n(1)
      allocate (reals(6 + n(1)))
      call clients%receive(k, reals)
      lower = min(lower, reals(:3))
      upper = max(upper, reals(4:6))
      charge = [charge, reals(7:)]
      deallocate (reals)
    end do
    call pme%set_domain(lower, upper)
  end subroutine take_from

  !> Receive positions, return forces, and to the first partner energy and virial.
  subroutine compute_for(clients, first, pme, n_atoms, charge, position, force)
    type(rank_link_t), intent(inout) :: clients
    type(rank_link_t), intent(in) :: first
    type(pme_t), intent(inout) :: pme
    integer, intent(in) :: n_atoms(:)
    real(real64), intent(in) :: charge(:)
    real(real64), contiguous, intent(inout) :: position(:, :), force(:, :)
    real(real64) :: energy, virial(3, 3)
    integer :: k, i, with_energy(1)
    call first%receive(1, with_energy)
    i = 1
    do k = 1, size(n_atoms)
      call clients%start_receive(k, position(:, i:i + n_atoms(k) - 1))
      i = i + n_atoms(k)
    end do
    call clients%finish()
    !$omp parallel do schedule(static)
    do i = 1, size(force, 2)
      force(:, i) = 0.0_real64
    end do
    !$omp end parallel do
    call pme%compute(size(charge), position, [(i, i=1, size(charge))], charge, force, energy, virial, with_energy(1) == 1)
    i = 1
    do k = 1, size(n_atoms)
      call clients%start_send(k, force(:, i:i + n_atoms(k) - 1))
      i = i + n_atoms(k)
    end do
    if (with_energy(1) == 1) call clients%send(1, [energy, reshape(virial, [9])])
    call clients%finish()
  end subroutine compute_for

end module pme_ranks
