!> Reciprocal-space part of the Coulomb energy by smooth particle mesh Ewald (Essmann et al., J. Chem. Phys. 103, 8577,
!> 1995), with the self energy and the energy of the uniform background that neutralises a net charge. The same mesh
!> sums the dispersion -c c/r^6 between atoms with coefficients c in place of charges (section VI of that paper).
!>
!> Each rank spreads its own atoms on a brick that covers its domain and a margin; the bricks are added up into the
!> layout of the FFT and the potential comes back the same way. Results do not depend on the number of threads, and in the
!> deterministic mode (module base_fixed_point) not on that of ranks: charges on the grid are then sums of rounded numbers,
!> each line of the FFT has the same bits wherever it is transformed, and all schemes transform along x, y, z in turn.
module pme
  use, intrinsic :: iso_c_binding, only: c_loc
  use base_box_shape, only: box_shape_t
  use base_kinds, only: int64, real64
  use pair_precision, only: real_pair
  use base_constants, only: pi
  use base_error, only: error_t, exit_bad_input, fail
  use settings, only: fft_settings_t
  use fft_distributed, only: distributed_fft_t, fft_options_t, MPI_Comm
  use brick_exchange, only: brick_exchange_t
  use base_fixed_point, only: rounding_t
  use pme_mesh, only: pme_mesh_t
  use pme_placement, only: placed_together, pme_placement_t
  use pme_splines, only: pme_splines_t
  use pme_waves, only: pme_waves_t
  implicit none
  private
  public :: pme_t

  integer, parameter :: largest_order = 10
  !> What is under way.
  integer, parameter :: resting = 0, collecting = 1, going_forward = 2, going_back = 3, spreading = 4

  type :: pme_t
    private
    type(distributed_fft_t) :: fft
    type(brick_exchange_t) :: exchange
    type(rounding_t) :: rounding
    type(pme_splines_t) :: splines
    type(pme_placement_t) :: placement
    type(pme_waves_t) :: waves
    !> Its arrays and those of the atoms live only within `compute`.
    type(pme_mesh_t) :: mesh
    !> Of the computation under way: stage, atoms, whether energies are wanted; energies of the waves with the virial, and
    !> of the charges with themselves.
    integer :: stage = resting, n_owned = 0
    logical :: with_energy = .true.
    real(real64) :: energy = 0.0_real64, virial(3, 3) = 0.0_real64, own_energy = 0.0_real64
  contains
    procedure :: init
    procedure :: set_box
    procedure :: set_domain
    procedure :: compute
    procedure :: start
    procedure :: advance
    procedure :: finish
  end type pme_t

contains

  !> Prepare; all ranks of `comm` must call it. Ranks hold the domains of a `domain_dims` grid, x fastest. `box` in
  !> angstrom, `alpha` in 1/angstrom, `grid_size` in points, `coulomb_constant` in kcal angstrom/mol/e^2; 1 with
  !> `of_dispersion`, where the charges are roots of c6 in (kcal/mol)^(1/2) angstrom^3. Fails on an order, a grid or a
  !> scheme that cannot be.
  subroutine init(self, comm, domain_dims, box, grid_size, spline_order, alpha, coulomb_constant, error, &
                  of_dispersion, rounding, fft, in_background, shape)
    class(pme_t), intent(out) :: self
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: domain_dims(3), grid_size(3), spline_order
    real(real64), intent(in) :: box(3), alpha, coulomb_constant
    type(error_t), allocatable, intent(out) :: error
    logical, intent(in), optional :: of_dispersion
    type(rounding_t), intent(in), optional :: rounding
    !> Scheme, subset and chunks of the FFT; default: the model of the library chooses.
    type(fft_settings_t), intent(in), optional :: fft
    !> Messages of the FFT travel while `advance` is called; default: they are waited for.
    logical, intent(in), optional :: in_background
    !> How edges of the box lean.
    type(box_shape_t), intent(in), optional :: shape
    type(fft_options_t) :: options
    integer :: place(3)
    character(len=160) :: message

    if (spline_order < 3 .or. spline_order > largest_order .or. any(grid_size < spline_order)) then
      write (message, "(a,i0,a,3(i0,1x),a)") "pme_nspline ", spline_order, " does not go with a grid of ", grid_size, &
        "points: use an order from 3 to 10 and at least as many points an axis"
      call fail(error, exit_bad_input, trim(message))
      return
    end if
    ! Waves are multiplied where their lines are.
    options = fft_options_t(grid=domain_dims, bytes=storage_size(0.0_real_pair)/8, wave_order=[3, 1, 2], &
                            returns=.false.)
    if (present(fft)) then
      options%scheme = fft%scheme
      options%subset = fft%subset
      options%n_chunks = fft%n_chunks
      if (fft%n_chunks > 1 .or. fft%scheme == "qcdoc") options%transport = "persistent"
    end if
    if (present(in_background)) then
      if (in_background) options%transport = "persistent"
    end if
    if (present(fft)) then
      if (fft%by_node) options%transport = "by_node"
    end if
    ! These have process grids of their own.
    if (any(options%scheme == ["slab  ", "pencil"])) options%grid = 0
    call self%exchange%open(comm)
    ! Waves stay where one rank's planes leave them.
    if (self%exchange%n_ranks == 1) then
      options%scheme = "slab"
      options%subset = "full"
      options%n_chunks = 1
      options%wave_order = [1, 2, 3]
    end if
    call self%fft%create(comm, grid_size, error, options)
    if (allocated(error)) return
    if (.not. self%fft%can_share_array()) error stop "the FFT of PME must go by way of an array of its own"
    if (present(rounding)) self%rounding = rounding
    call self%splines%choose(spline_order, self%rounding%is_on())
    call prepare_waves(self, grid_size, spline_order, alpha, coulomb_constant)
    if (present(of_dispersion)) self%waves%of_dispersion = of_dispersion
    if (present(shape)) then
      self%waves%shape = shape
      self%placement%shape = shape
    end if
    call self%waves%list_lines(self%fft%wave_layout)
    call self%waves%make_influence(box)
    self%mesh = pme_mesh_t(n=grid_size, order=spline_order, n_lines=size(self%waves%line_wave, 2), &
                           is_alone=self%exchange%n_ranks == 1, has_planes=self%waves%has_planes)
    self%placement%order = spline_order
    self%placement%n = grid_size
    self%placement%is_exact = self%rounding%is_on()
    call self%placement%set_box(box)
    associate (rank => self%fft%rank, dims => domain_dims)
      place = [mod(rank, dims(1)), mod(rank/dims(1), dims(2)), rank/(dims(1)*dims(2))]
    end associate
    call self%placement%set_domain(real(grid_size, real64)*place/domain_dims, real(grid_size, real64)*(place + 1)/domain_dims, &
                                   (place + 0.5_real64)/domain_dims, domain_dims == 1)
    call connect_brick(self)
  end subroutine init

  subroutine prepare_waves(self, grid_size, spline_order, alpha, coulomb_constant)
    type(pme_t), intent(inout) :: self
    integer, intent(in) :: grid_size(3), spline_order
    real(real64), intent(in) :: alpha, coulomb_constant
    self%waves%n = grid_size
    self%waves%order = spline_order
    self%waves%alpha = alpha
    self%waves%coulomb_constant = coulomb_constant
    self%waves%rounding = self%rounding
    self%waves%has_planes = self%exchange%n_ranks == 1
  end subroutine prepare_waves

  !> Exchange between the grid and the brick as it is now.
  subroutine connect_brick(self)
    type(pme_t), intent(inout) :: self
    call self%exchange%create(self%placement%n, self%fft%real_lower, self%fft%real_upper, self%placement%brick_lower, &
                              self%placement%brick_upper)
  end subroutine connect_brick

  !> Another box (angstrom) with the same grid.
  subroutine set_box(self, box)
    class(pme_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    call self%placement%set_box(box)
    call self%waves%make_influence(box)
  end subroutine set_box

  !> Other borders of this rank's domain, as fractions of the box; all ranks must call it.
  subroutine set_domain(self, lower, upper)
    class(pme_t), intent(inout) :: self
    real(real64), intent(in) :: lower(3), upper(3)
    call self%placement%set_domain(self%placement%n*lower, self%placement%n*upper, 0.5_real64*(lower + upper), &
                                   lower <= 0.0_real64 .and. upper >= 1.0_real64)
    call connect_brick(self)
  end subroutine set_domain

  !> Add the forces on the owned atoms (kcal/mol/angstrom) to `force`. `position` (3, atoms; angstrom) and `force` have
  !> the owned atoms first. `charge` (e) is that of the kinds of atoms, `kind` that of each atom. `energy` (kcal/mol)
  !> and `virial` (sum of r f) are this rank's share: their sums over ranks are the reciprocal, self and background
  !> energy. They are zero when `want_energy` is present and false.
  subroutine compute(self, n_owned, position, kind, charge, force, energy, virial, want_energy)
    class(pme_t), target, intent(inout) :: self
    integer, intent(in) :: n_owned
    real(real64), intent(in) :: position(:, :), charge(:)
    integer, intent(in) :: kind(:)
    real(real64), intent(inout) :: force(:, :)
    real(real64), intent(out) :: energy, virial(3, 3)
    logical, intent(in), optional :: want_energy
    call self%start(n_owned, position, kind, charge, want_energy)
    call self%finish(position, kind, charge, force, energy, virial)
  end subroutine compute

  !> Begin `compute`: charges are on their way to the grid afterwards. All ranks start several of them in the same order.
  !> Arguments as those of `compute`.
  subroutine start(self, n_owned, position, kind, charge, want_energy)
    class(pme_t), target, intent(inout) :: self
    integer, intent(in) :: n_owned
    real(real64), intent(in) :: position(:, :), charge(:)
    integer, intent(in) :: kind(:)
    logical, intent(in), optional :: want_energy
    integer :: z

    self%with_energy = .true.
    if (present(want_energy)) self%with_energy = want_energy
    self%n_owned = n_owned
    call place_atoms(self, n_owned, position)
    if (self%mesh%is_alone) call make_mesh(self)
    call self%mesh%allocate_brick(self%placement%brick_lower, self%placement%brick_upper)
    !$omp parallel do schedule(static)
    do z = lbound(self%mesh%brick, 3), ubound(self%mesh%brick, 3)
      self%mesh%brick(:, :, z) = 0.0_real_pair
    end do
    !$omp end parallel do
    call spread_charges(self, position, kind, charge)
    self%own_energy = 0.0_real64
    if (self%with_energy) then
      if (self%waves%of_dispersion) then
        self%own_energy = self%waves%alpha**6/12.0_real64*sum_of_squares(kind(:n_owned), charge)
      else
        self%own_energy = -self_energy(self, kind(:n_owned), charge)
      end if
    end if
    if (self%exchange%n_ranks > 1) then
      call make_mesh(self)
      call self%exchange%start_collect(self%mesh%brick, self%mesh%grid)
    else
      call self%mesh%brick_to_grid()
    end if
    self%stage = collecting
  end subroutine start

  !> Go on as far as is possible without waiting, or with `wait` to where the potential is back on the brick.
  subroutine advance(self, wait)
    class(pme_t), target, intent(inout) :: self
    logical, intent(in) :: wait

    if (self%stage == collecting) then
      if (self%exchange%n_ranks > 1) then
        if (.not. wait) then
          if (.not. self%exchange%is_collected()) return
        end if
        call self%exchange%finish_collect()
      end if
      call self%mesh%deallocate_brick()
      call self%fft%start(1, c_loc(self%mesh%grid), c_loc(self%mesh%wave))
      self%stage = going_forward
    end if
    if (self%stage == going_forward) then
      if (.not. transformed()) return
      self%energy = 0.0_real64
      self%virial = 0.0_real64
      if (self%with_energy) then
        call self%waves%sum_energy(self%mesh%wave, self%energy, self%virial)
        self%energy = self%energy + self%own_energy
      end if
      call self%waves%apply_influence(self%mesh%wave)
      call self%fft%start(2, c_loc(self%mesh%wave), c_loc(self%mesh%grid))
      self%stage = going_back
    end if
    if (self%stage == going_back) then
      if (.not. transformed()) return
      call self%mesh%allocate_brick(self%placement%brick_lower, self%placement%brick_upper)
      if (self%exchange%n_ranks > 1) then
        call self%exchange%start_spread(self%mesh%grid, self%mesh%brick)
      else
        call self%mesh%grid_to_brick()
      end if
      self%stage = spreading
    end if
    if (self%stage == spreading) then
      if (self%exchange%n_ranks > 1) then
        if (.not. wait) then
          if (.not. self%exchange%is_spread()) return
        end if
        call self%exchange%finish_spread()
        call self%mesh%deallocate_mesh()
      end if
      self%stage = resting
    end if

  contains

    logical function transformed()
      transformed = .true.
      if (wait) then
        call self%fft%finish()
      else
        transformed = self%fft%progress()
      end if
    end function transformed

  end subroutine advance

  !> Complete what `start` began; arguments as those of `compute`, positions and charges the same as in `start`.
  subroutine finish(self, position, kind, charge, force, energy, virial)
    class(pme_t), target, intent(inout) :: self
    real(real64), intent(in) :: position(:, :), charge(:)
    integer, intent(in) :: kind(:)
    real(real64), intent(inout) :: force(:, :)
    real(real64), intent(out) :: energy, virial(3, 3)

    call self%advance(.true.)
    energy = self%energy
    virial = self%virial
    call gather_forces(self, position, kind, charge, force)
    call self%mesh%deallocate_brick()
    if (self%exchange%n_ranks == 1) call self%mesh%deallocate_mesh()
  end subroutine finish

  pure real(real64) function sum_of_squares(kind, charge)
    integer, intent(in) :: kind(:)
    real(real64), intent(in) :: charge(:)
    integer :: i
    sum_of_squares = 0.0_real64
    do i = 1, size(kind)
      sum_of_squares = sum_of_squares + charge(kind(i))**2
    end do
  end function sum_of_squares

  !> Coulomb constant*alpha/sqrt(pi) times the sum of the squared charges.
  pure real(real64) function self_energy(self, kind, charge)
    type(pme_t), intent(in) :: self
    integer, intent(in) :: kind(:)
    real(real64), intent(in) :: charge(:)
    real(real64) :: factor
    integer :: i
    factor = self%waves%coulomb_constant*self%waves%alpha/sqrt(pi)
    self_energy = 0.0_real64
    do i = 1, size(kind)
      self_energy = self_energy + ((factor*charge(kind(i))**2 + self%rounding%energy) - self%rounding%energy)
    end do
  end function self_energy

  !> Sort the atoms, with the brick widened first if one is outside of it; all ranks must call it.
  subroutine place_atoms(self, n_owned, position)
    type(pme_t), intent(inout) :: self
    integer, intent(in) :: n_owned
    real(real64), intent(in) :: position(:, :)
    integer :: lacking(3)
    if (self%exchange%n_ranks > 1) then
      lacking = self%placement%lacking(n_owned, position)
      call self%exchange%take_largest(lacking)
      if (any(lacking > 0)) then
        where (lacking > 0) self%placement%margin = self%placement%margin + lacking + 1
        call self%placement%bound_brick()
        call connect_brick(self)
      end if
    end if
    call self%placement%sort_atoms(n_owned, position)
  end subroutine place_atoms

  subroutine make_mesh(self)
    type(pme_t), intent(inout) :: self
    call self%mesh%allocate_mesh(self%fft%real_lower, self%fft%real_upper, &
                                 product(int(self%placement%brick_upper - self%placement%brick_lower + 1, int64)))
  end subroutine make_mesh

  !> Charges to the brick. Slabs of planes at least as thick as the spline are done in two sets, odd and even, so that
  !> no two threads write to the same plane and sums are always formed in the same order.
  subroutine spread_charges(self, position, kind, charge)
    type(pme_t), intent(inout) :: self
    real(real64), intent(in) :: position(:, :), charge(:)
    integer, intent(in) :: kind(:)
    integer :: set, slab, first

    do set = self%placement%first_set, self%placement%first_set + 1
      !$omp parallel do schedule(dynamic) private(first)
      do slab = 2 - modulo(set, 2), size(self%placement%slab_first) - 1, 2
        associate (slab_end => self%placement%slab_first(slab + 1) - 1)
          do first = self%placement%slab_first(slab), slab_end, placed_together
            call spread_some(self, self%placement%slab_atom(first:min(slab_end, first + placed_together - 1)), position, kind, &
                             charge)
          end do
        end associate
      end do
      !$omp end parallel do
    end do
    deallocate (self%placement%slab_atom)
  end subroutine spread_charges

  !> Charges of a few atoms of one slab.
  subroutine spread_some(self, atom, position, kind, charge)
    type(pme_t), intent(inout) :: self
    integer, intent(in) :: atom(:)
    real(real64), intent(in) :: position(:, :), charge(:)
    integer, intent(in) :: kind(:)
    integer :: point(3, size(atom)), place(size(atom)), axis, k
    real(real_pair) :: fraction(size(atom), 3), point_charge(size(atom))
    real(real64) :: coordinate(size(atom), 3)

    do k = 1, size(atom)
      coordinate(k, :) = position(:, atom(k))
      if (self%placement%shape%leans) coordinate(k, :) = self%placement%shape%straight(coordinate(k, :))
      point_charge(k) = real(charge(kind(atom(k))), real_pair)
      place(k) = k
    end do
    do axis = 1, 3
      call self%placement%place_along(axis, coordinate(:, axis), point(axis, :), fraction(:, axis))
    end do
    call self%splines%spread(self%placement%order, place, point, fraction, point_charge, self%mesh%brick)
  end subroutine spread_some

  !> Forces from the potential on the brick.
  subroutine gather_forces(self, position, kind, charge, force)
    type(pme_t), intent(in) :: self
    real(real64), intent(in) :: position(:, :), charge(:)
    integer, intent(in) :: kind(:)
    real(real64), intent(inout) :: force(:, :)
    integer :: chunk, first

    !$omp parallel do schedule(static) private(first)
    do chunk = 1, (self%n_owned + placed_together - 1)/placed_together
      first = (chunk - 1)*placed_together + 1
      call gather_some(self, first, min(self%n_owned, first + placed_together - 1), position, kind, charge, force)
    end do
    !$omp end parallel do
  end subroutine gather_forces

  !> Forces on a few atoms.
  subroutine gather_some(self, first, last, position, kind, charge, force)
    type(pme_t), intent(in) :: self
    integer, intent(in) :: first, last
    real(real64), intent(in) :: position(:, :), charge(:)
    integer, intent(in) :: kind(:)
    real(real64), intent(inout) :: force(:, :)
    integer :: point(3, last - first + 1), axis, k, n
    real(real_pair) :: fraction(last - first + 1, 3), point_charge(last - first + 1)
    real(real64) :: own_force(3, last - first + 1)

    n = last - first + 1
    do axis = 1, 3
      if (self%placement%shape%leans) then
        call self%placement%place_along(axis, self%placement%straight_along(axis, position(:, first:last)), &
                                        point(axis, :), fraction(:, axis))
      else
        call self%placement%place_along(axis, position(axis, first:last), point(axis, :), fraction(:, axis))
      end if
    end do
    do k = 1, n
      point_charge(k) = real(charge(kind(first + k - 1)), real_pair)
    end do
    own_force = 0.0_real64
    call self%splines%gather(self%placement%order, 1, n, point, fraction, point_charge, self%mesh%brick, &
                             self%placement%density, own_force)
    if (self%placement%shape%leans) then
      do k = 1, n
        own_force(:, k) = self%placement%shape%of_gradient(own_force(:, k))
      end do
    end if
    do k = 1, n
      force(:, first + k - 1) = force(:, first + k - 1) + &
                                ((own_force(:, k) + self%rounding%force) - self%rounding%force)
    end do
  end subroutine gather_some

end module pme
