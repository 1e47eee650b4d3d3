!> Reciprocal-space part of the Coulomb energy by smooth particle mesh Ewald (Essmann et al., J. Chem. Phys. 103, 8577,
!> 1995), with the self energy and the energy of the uniform background that neutralises a net charge. The same mesh
!> sums the dispersion -c c/r^6 between atoms with coefficients c in place of charges (section VI of that paper).
!>
!> Each rank spreads its own atoms on a brick that covers its domain and a margin; the bricks are added up into the
!> layout of the FFT and the potential comes back the same way. Results do not depend on the number of threads, and in the
!> deterministic mode (module base_fixed_point) not on that of ranks: charges on the grid are then sums of rounded numbers,
!> each line of the FFT has the same bits wherever it is transformed, and all schemes transform along x, y, z in turn.
module pme
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_loc
  use base_kinds, only: int64, real64
  use pair_precision, only: real_pair
  use base_constants, only: pi
  use base_error, only: error_t, exit_bad_input, fail
  use fft_distributed, only: distributed_fft_t, fft_options_t, MPI_Comm
  use brick_exchange, only: brick_exchange_t
  use base_fixed_point, only: rounding_t
  implicit none
  private
  public :: pme_t, pme_grid_size, ewald_alpha, dispersion_alpha

  !> Rounds charges on the grid in the deterministic mode (module base_fixed_point): in 32-bit reals to multiples of
  !> 5e-7 e, whose sums are exact up to 8 e on a point (2^24 multiples).
  real(real_pair), parameter :: charge_rounding = merge(1.5_real_pair*2.0_real_pair**2, 1.5_real_pair*2.0_real_pair**9, &
                                                        real_pair /= real64)

  !> Fixed number of runs of atoms.
  integer, parameter :: n_chunks = 32
  integer, parameter :: largest_order = 10
  !> Lines of waves whose energies are summed together, so that sums do not depend on the number of threads.
  integer, parameter :: lines_together = 256
  !> Stands for an order where loops of the deterministic mode are chosen.
  integer, parameter :: exactly = -1
  !> What is under way.
  integer, parameter :: resting = 0, collecting = 1, going_forward = 2, going_back = 3, spreading = 4
  !> Atoms whose spline weights are computed side by side, and atoms that are placed on the grid before that.
  integer, parameter :: together = 32, placed_together = 512
  !> Atoms may leave their domain by this much (angstrom) before the bricks must be made anew.
  real(real64), parameter :: first_margin = 4.0_real64

  type :: pme_t
    private
    type(distributed_fft_t) :: fft
    type(brick_exchange_t) :: exchange
    type(rounding_t) :: rounding
    integer :: order = 4, n(3) = 0
    real(real64) :: box(3) = 0.0_real64, alpha = 0.0_real64, coulomb_constant = 0.0_real64
    !> Sum -c c/r^6 instead of q q/r.
    logical :: of_dispersion = .false.
    !> Does this rank's domain reach from one side of the box to the other?
    logical :: is_whole(3) = .true.
    !> This domain in grid units.
    real(real64) :: lower(3) = 0.0_real64, upper(3) = 0.0_real64
    !> Its centre as a fraction of the box; grid points per angstrom; the inverse of the box.
    real(real64) :: centre(3) = 0.5_real64, density(3) = 0.0_real64, inverse_box(3) = 0.0_real64
    !> How far atoms may be outside of the domain, in grid points.
    integer :: margin(3) = 0
    integer :: brick_lower(3) = 0, brick_upper(3) = -1
    !> Arrays of the grid and of the atoms live only within `compute`. Grid and waves share the memory of `mesh`, and on
    !> one rank the brick does so too.
    real(real_pair), pointer, contiguous :: mesh(:) => null(), brick(:, :, :) => null(), grid(:, :, :) => null()
    !> Waves of this rank, whole lines along z: (kz from 0, line), or with `has_planes` planes of all lines: (line, kz from
    !> 0); and kx, ky of each line.
    logical :: has_planes = .false.
    complex(real_pair), pointer, contiguous :: wave(:, :) => null()
    integer, allocatable :: line_wave(:, :)
    !> Factor of |charge wave|^2 in twice the energy: of charges the product of those of the axes over the square of the
    !> wave number, of the dispersion as stored.
    real(real64), allocatable :: factor_x(:), factor_y(:), factor_z(:)
    real(real_pair), allocatable :: influence(:, :)
    !> Atoms slab by slab of grid planes, and the first of each slab. Within a slab they keep their order, which is that
    !> of cells in space.
    integer, allocatable :: slab_atom(:), slab_first(:)
    integer :: slab_planes = 1
    !> Slabs are counted from a plane of the whole grid that does not change when the brick is widened, so that charges
    !> are always added in the same order: planes of the first slab that lie before the brick, and the first slab that is
    !> spread (the first or the second of the brick).
    integer :: planes_before = 0, first_set = 1
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

  !> The least even numbers with no prime factor above 7 that keep the spacing within `max_spacing` (angstrom).
  pure function pme_grid_size(box, max_spacing) result(n)
    real(real64), intent(in) :: box(3), max_spacing
    integer :: n(3), axis, rest, prime
    do axis = 1, 3
      n(axis) = max(2, 2*ceiling(0.5_real64*box(axis)/max_spacing))
      do
        rest = n(axis)
        do prime = 2, 7
          do while (mod(rest, prime) == 0)
            rest = rest/prime
          end do
        end do
        if (rest == 1) exit
        n(axis) = n(axis) + 2
      end do
    end do
  end function pme_grid_size

  !> The screening alpha (1/angstrom) with erfc(alpha*cutoff) = tolerance, by bisection.
  pure function ewald_alpha(cutoff, tolerance) result(alpha)
    real(real64), intent(in) :: cutoff, tolerance
    real(real64) :: alpha, low, high
    integer :: k
    low = 0.0_real64
    high = 30.0_real64/cutoff
    do k = 1, 100
      alpha = 0.5_real64*(low + high)
      if (erfc(alpha*cutoff) > tolerance) then
        low = alpha
      else
        high = alpha
      end if
    end do
  end function ewald_alpha

  !> The screening (1/angstrom) with exp(-y) (1 + y + y^2/2) = tolerance at y = (alpha*cutoff)^2: the share of an atom
  !> pair's dispersion that real space holds at the cutoff.
  pure function dispersion_alpha(cutoff, tolerance) result(alpha)
    real(real64), intent(in) :: cutoff, tolerance
    real(real64) :: alpha, low, high, y
    integer :: k
    low = 0.0_real64
    high = 30.0_real64/cutoff
    do k = 1, 100
      alpha = 0.5_real64*(low + high)
      y = (alpha*cutoff)**2
      if (exp(-y)*(1.0_real64 + y + 0.5_real64*y**2) > tolerance) then
        low = alpha
      else
        high = alpha
      end if
    end do
  end function dispersion_alpha

  !> Prepare; all ranks of `comm` must call it. Ranks hold the domains of a `domain_dims` grid, x fastest. `box` in
  !> angstrom, `coulomb_constant` in kcal angstrom/mol/e^2; 1 with `of_dispersion`, where the charges are roots of c6 in
  !> (kcal/mol)^(1/2) angstrom^3. Fails on an order, a grid or a scheme that cannot be.
  subroutine init(self, comm, domain_dims, box, grid_size, spline_order, alpha, coulomb_constant, error, &
                  of_dispersion, rounding, scheme, in_background)
    class(pme_t), intent(out) :: self
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: domain_dims(3), grid_size(3), spline_order
    real(real64), intent(in) :: box(3), alpha, coulomb_constant
    type(error_t), allocatable, intent(out) :: error
    logical, intent(in), optional :: of_dispersion
    type(rounding_t), intent(in), optional :: rounding
    !> Scheme of the FFT; default: the model of the library chooses.
    character(len=*), intent(in), optional :: scheme
    !> Messages of the FFT travel while `advance` is called; default: they are waited for.
    logical, intent(in), optional :: in_background
    type(fft_options_t) :: options
    integer :: place(3)
    character(len=160) :: message

    if (spline_order < 3 .or. spline_order > largest_order .or. any(grid_size < spline_order)) then
      write (message, "(a,i0,a,3(i0,1x),a)") "pme_nspline ", spline_order, " does not go with a grid of ", grid_size, &
        "points: use an order from 3 to 10 and at least as many points an axis"
      call fail(error, exit_bad_input, trim(message))
      return
    end if
    options = fft_options_t(grid=domain_dims, bytes=storage_size(0.0_real_pair)/8, wave_order=[3, 1, 2])
    if (present(scheme)) options%scheme = scheme
    if (present(in_background)) then
      if (in_background) options%transport = "persistent"
    end if
    ! These have process grids of their own.
    if (any(options%scheme == ["slab  ", "pencil"])) options%grid = 0
    call self%exchange%open(comm)
    ! Waves stay where one rank's planes leave them.
    self%has_planes = self%exchange%n_ranks == 1
    if (self%has_planes) then
      options%scheme = "slab"
      options%wave_order = [1, 2, 3]
    end if
    call self%fft%create(comm, grid_size, error, options)
    if (allocated(error)) return
    if (present(rounding)) self%rounding = rounding
    self%order = spline_order
    self%n = grid_size
    self%box = box
    self%alpha = alpha
    self%coulomb_constant = coulomb_constant
    if (present(of_dispersion)) self%of_dispersion = of_dispersion
    self%is_whole = domain_dims == 1
    associate (rank => self%fft%rank, dims => domain_dims)
      place = [mod(rank, dims(1)), mod(rank/dims(1), dims(2)), rank/(dims(1)*dims(2))]
    end associate
    self%lower = real(grid_size, real64)*place/domain_dims
    self%upper = real(grid_size, real64)*(place + 1)/domain_dims
    self%centre = (place + 0.5_real64)/domain_dims
    self%density = grid_size/box
    self%inverse_box = 1.0_real64/box
    self%margin = ceiling(first_margin*grid_size/box)
    call list_lines(self)
    call make_influence(self)
    call make_brick(self)
  end subroutine init

  !> The lines of waves that the scheme leaves on this rank, in the order in which it stores them.
  subroutine list_lines(self)
    type(pme_t), intent(inout) :: self
    integer :: k, n_lines, fast, slow, index(3), across(2)
    associate (layout => self%fft%wave_layout)
      if (.not. self%has_planes .and. .not. layout%holds_lines(3, self%n(3))) &
        error stop "the FFT of PME must leave whole lines along z on a rank"
      n_lines = int(layout%n_points()/self%n(3))
      allocate (self%line_wave(2, n_lines))
      if (self%of_dispersion) allocate (self%influence(0:self%n(3) - 1, n_lines))
      n_lines = 0
      do k = 1, size(layout%box)
        if (layout%box(k)%n_points() == 0) cycle
        across = pack(layout%order, layout%order /= 3)
        do slow = layout%box(k)%lower(across(2)), layout%box(k)%upper(across(2))
          do fast = layout%box(k)%lower(across(1)), layout%box(k)%upper(across(1))
            index(across) = [fast, slow]
            n_lines = n_lines + 1
            self%line_wave(:, n_lines) = index(:2)
          end do
        end do
      end do
    end associate
  end subroutine list_lines

  !> Another box (angstrom) with the same grid.
  subroutine set_box(self, box)
    class(pme_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    self%box = box
    self%density = self%n/box
    self%inverse_box = 1.0_real64/box
    call make_influence(self)
  end subroutine set_box

  !> Other borders of this rank's domain, as fractions of the box; all ranks must call it.
  subroutine set_domain(self, lower, upper)
    class(pme_t), intent(inout) :: self
    real(real64), intent(in) :: lower(3), upper(3)
    self%lower = self%n*lower
    self%upper = self%n*upper
    self%centre = 0.5_real64*(lower + upper)
    self%is_whole = lower <= 0.0_real64 .and. upper >= 1.0_real64
    self%margin = ceiling(first_margin*self%density)
    call make_brick(self)
  end subroutine set_domain

  !> Bounds and exchange of the brick for the present margin.
  subroutine make_brick(self)
    type(pme_t), intent(inout) :: self

    where (self%is_whole)
      ! Atoms are wrapped into the box.
      self%brick_lower = 1 - self%order
      self%brick_upper = self%n - 1
    elsewhere
      self%brick_lower = floor(self%lower) - self%margin + 1 - self%order
      self%brick_upper = floor(self%upper) + self%margin
    end where
    ! Thin, so that there are many for the threads to take.
    self%slab_planes = max(self%order, 4)
    self%planes_before = modulo(self%brick_lower(3), self%slab_planes)
    self%first_set = 1 + modulo((self%brick_lower(3) - self%planes_before)/self%slab_planes, 2)
    call self%exchange%create(self%n, self%fft%real_lower, self%fft%real_upper, self%brick_lower, &
                              self%brick_upper)
  end subroutine make_brick

  !> Room for the brick.
  subroutine allocate_brick(self)
    type(pme_t), intent(inout) :: self
    associate (low => self%brick_lower, high => self%brick_upper)
      if (self%exchange%n_ranks > 1) then
        allocate (self%brick(low(1):high(1), low(2):high(2), low(3):high(3)))
      else
        self%brick(low(1):high(1), low(2):high(2), low(3):high(3)) => self%mesh
      end if
    end associate
  end subroutine allocate_brick

  subroutine deallocate_brick(self)
    type(pme_t), intent(inout) :: self
    if (self%exchange%n_ranks > 1) deallocate (self%brick)
    nullify (self%brick)
  end subroutine deallocate_brick

  !> Room for grid and waves in turn, on one rank for the brick too.
  subroutine allocate_mesh(self)
    type(pme_t), intent(inout) :: self
    integer(int64) :: n_grid, n_wave, n_brick
    if (.not. self%fft%can_share_array()) error stop "the FFT of PME must go by way of an array of its own"
    n_grid = product(int(self%fft%real_upper - self%fft%real_lower + 1, int64))
    n_wave = int(self%n(3), int64)*size(self%line_wave, 2)
    n_brick = 0
    if (self%exchange%n_ranks == 1) n_brick = product(int(self%brick_upper - self%brick_lower + 1, int64))
    allocate (self%mesh(max(n_grid, 2*n_wave, n_brick)))
    associate (low => self%fft%real_lower, high => self%fft%real_upper)
      self%grid(low(1):high(1), low(2):high(2), low(3):high(3)) => self%mesh(:n_grid)
    end associate
    if (self%has_planes) then
      call c_f_pointer(c_loc(self%mesh), self%wave, [size(self%line_wave, 2), self%n(3)])
      self%wave(1:, 0:) => self%wave
    else
      call c_f_pointer(c_loc(self%mesh), self%wave, [self%n(3), size(self%line_wave, 2)])
      self%wave(0:, 1:) => self%wave
    end if
  end subroutine allocate_mesh

  subroutine deallocate_mesh(self)
    type(pme_t), intent(inout) :: self
    deallocate (self%mesh)
    nullify (self%mesh, self%grid, self%wave)
  end subroutine deallocate_mesh

  !> On one rank: add what the brick holds beyond the box to where it belongs, and move the grid to the front of the
  !> memory, where the brick was. Rows only move down, and as many planes as fit before the first of them move side by side.
  subroutine brick_to_grid(self)
    type(pme_t), intent(inout) :: self
    integer :: y, z, first, last
    associate (brick => self%brick, n => self%n, beyond => self%order - 1)
      !$omp parallel private(first, last)
      do first = -beyond, -1
        !$omp do schedule(static)
        do y = -beyond, n(2) - 1
          brick(:, y, first + n(3)) = brick(:, y, first + n(3)) + brick(:, y, first)
        end do
        !$omp end do nowait
      end do
      !$omp barrier
      !$omp do schedule(static) private(y)
      do z = 0, n(3) - 1
        do y = -beyond, -1
          brick(:, y + n(2), z) = brick(:, y + n(2), z) + brick(:, y, z)
        end do
        do y = 0, n(2) - 1
          brick(n(1) - beyond:, y, z) = brick(n(1) - beyond:, y, z) + brick(:-1, y, z)
        end do
      end do
      !$omp end do
      first = 0
      do while (first < n(3))
        last = min(n(3), room_before(self, first)) - 1
        !$omp do collapse(2) schedule(static)
        do z = first, last
          do y = 0, n(2) - 1
            call move_row(n(1), brick(0:, y, z), self%grid(:, y, z))
          end do
        end do
        !$omp end do
        first = last + 1
      end do
      !$omp end parallel
    end associate
  end subroutine brick_to_grid

  !> The way back: the grid moves up, last plane first, and what lies beyond the box is filled in.
  subroutine grid_to_brick(self)
    type(pme_t), intent(inout) :: self
    integer :: y, z, first, last
    associate (brick => self%brick, n => self%n, beyond => self%order - 1)
      !$omp parallel private(first, last)
      last = n(3) - 1
      do while (last >= 0)
        first = last
        do while (first > 0)
          if (room_before(self, first - 1) <= last) exit
          first = first - 1
        end do
        !$omp do collapse(2) schedule(static)
        do z = first, last
          do y = 0, n(2) - 1
            call move_row(n(1), self%grid(:, y, z), brick(0:, y, z))
          end do
        end do
        !$omp end do
        last = first - 1
      end do
      !$omp do schedule(static) private(y)
      do z = 0, n(3) - 1
        do y = 0, n(2) - 1
          brick(:-1, y, z) = brick(n(1) - beyond:, y, z)
        end do
        do y = -beyond, -1
          brick(:, y, z) = brick(:, y + n(2), z)
        end do
      end do
      !$omp end do
      !$omp do collapse(2) schedule(static)
      do z = -beyond, -1
        do y = -beyond, n(2) - 1
          brick(:, y, z) = brick(:, y, z + n(3))
        end do
      end do
      !$omp end do
      !$omp end parallel
    end associate
  end subroutine grid_to_brick

  !> How many planes of the grid lie in memory before what plane `z` (from 0) of the brick holds of the box.
  pure integer function room_before(self, z)
    type(pme_t), intent(in) :: self
    integer, intent(in) :: z
    integer(int64) :: row
    associate (n => int(self%n, int64), beyond => self%order - 1)
      row = (z + beyond)*(n(2) + beyond) + beyond
      room_before = int((row*(n(1) + beyond) + beyond)/(n(1)*n(2)))
    end associate
  end function room_before

  pure subroutine move_row(n, from, to)
    integer, intent(in) :: n
    real(real_pair), intent(in) :: from(n)
    real(real_pair), intent(inout) :: to(n)
    to = from
  end subroutine move_row

  !> Coulomb constant/(pi V) exp(-(pi m/alpha)^2)/m^2 |b|^2 for each wave m, 0 for the mean; or
  !> -pi^(3/2) alpha^3/(3 V) f(pi m/alpha) |b|^2 (see dispersion_wave).
  subroutine make_influence(self)
    type(pme_t), intent(inout) :: self
    real(real64) :: m2, wave, slope
    integer :: line, x, y, z

    self%factor_x = axis_factor(self, 1)
    self%factor_y = axis_factor(self, 2)
    self%factor_z = axis_factor(self, 3)
    if (.not. self%of_dispersion) then
      self%factor_x = self%coulomb_constant/(pi*product(self%box))*self%factor_x
      return
    end if
    self%factor_x = -pi**1.5_real64*self%alpha**3/(3.0_real64*product(self%box))*self%factor_x
    !$omp parallel do schedule(static) private(x, y, z, m2, wave, slope)
    do line = 1, size(self%line_wave, 2)
      x = self%line_wave(1, line)
      y = self%line_wave(2, line)
      do z = 0, self%n(3) - 1
        m2 = wave_number(x, self%n(1), self%box(1))**2 + wave_number(y, self%n(2), self%box(2))**2 &
             + wave_number(z, self%n(3), self%box(3))**2
        call dispersion_wave(pi/self%alpha*sqrt(m2), wave, slope)
        self%influence(z, line) = real(self%factor_x(x + 1)*self%factor_y(y + 1)*self%factor_z(z + 1)*wave, real_pair)
      end do
    end do
    !$omp end parallel do
  end subroutine make_influence

  !> The factors of one line of waves.
  pure function influence_of_line(self, line) result(influence)
    type(pme_t), intent(in) :: self
    integer, intent(in) :: line
    real(real_pair) :: influence(0:self%n(3) - 1)
    real(real64) :: m2, factor
    integer :: x, y, z

    if (self%of_dispersion) then
      influence = self%influence(:, line)
      return
    end if
    x = self%line_wave(1, line)
    y = self%line_wave(2, line)
    m2 = wave_number(x, self%n(1), self%box(1))**2 + wave_number(y, self%n(2), self%box(2))**2
    factor = self%factor_x(x + 1)*self%factor_y(y + 1)
    influence(0) = 0.0_real_pair
    do z = merge(0, 1, m2 > 0.0_real64), self%n(3) - 1
      influence(z) = real(factor*self%factor_z(z + 1)/(m2 + wave_number(z, self%n(3), self%box(3))**2), real_pair)
    end do
  end function influence_of_line

  !> Multiply the waves by their factors.
  subroutine apply_influence(self)
    type(pme_t), intent(inout) :: self
    real(real_pair), allocatable :: influence(:, :)
    integer :: block, first, last, line, z

    !$omp parallel do schedule(static) private(first, last, line, z, influence)
    do block = 1, (size(self%line_wave, 2) + lines_together - 1)/lines_together
      first = (block - 1)*lines_together + 1
      last = min(size(self%line_wave, 2), block*lines_together)
      if (self%has_planes) then
        if (.not. allocated(influence)) allocate (influence(0:self%n(3) - 1, lines_together))
        do line = first, last
          influence(:, line - first + 1) = influence_of_line(self, line)
        end do
        do z = 0, self%n(3) - 1
          do line = first, last
            self%wave(line, z) = self%wave(line, z)*influence(z, line - first + 1)
          end do
        end do
      else
        do line = first, last
          self%wave(:, line) = self%wave(:, line)*influence_of_line(self, line)
        end do
      end if
    end do
    !$omp end parallel do
  end subroutine apply_influence

  !> Lines `first` to `last` of the waves: (kz from 0, line).
  pure function lines_of(self, first, last) result(line)
    type(pme_t), intent(in) :: self
    integer, intent(in) :: first, last
    complex(real_pair) :: line(0:self%n(3) - 1, first:last)
    if (self%has_planes) then
      line = transpose(self%wave(first:last, :))
    else
      line = self%wave(:, first:last)
    end if
  end function lines_of

  !> Of a wave with b = pi m/alpha: f(b) = (1 - 2 b^2) exp(-b^2) + 2 b^3 sqrt(pi) erfc(b), and -b f'(b).
  elemental subroutine dispersion_wave(b, wave, slope)
    real(real64), intent(in) :: b
    real(real64), intent(out) :: wave, slope
    real(real64) :: gauss, tail
    gauss = exp(-b**2)
    tail = sqrt(pi)*b*erfc(b)
    wave = (1.0_real64 - 2.0_real64*b**2)*gauss + 2.0_real64*b**2*tail
    slope = 6.0_real64*b**2*(gauss - tail)
  end subroutine dispersion_wave

  !> |b(m)|^2 along one axis; times exp(-(pi m/alpha)^2) for charges.
  pure function axis_factor(self, axis) result(factor)
    type(pme_t), intent(in) :: self
    integer, intent(in) :: axis
    real(real64) :: factor(self%n(axis)), modulus(0:self%n(axis) - 1)
    real(real_pair) :: weight(together, self%order), slope(together, self%order)
    complex(real64) :: sum
    integer :: k, j, n, order

    n = self%n(axis)
    order = self%order
    call b_spline_any(order, 1, [0.0_real_pair], weight, slope)
    do k = 0, n - 1
      sum = (0.0_real64, 0.0_real64)
      do j = 1, order
        sum = sum + weight(1, j)*exp(cmplx(0.0_real64, 2.0_real64*pi*k*(j - 1)/n, real64))
      end do
      modulus(k) = abs(sum)**2
    end do
    ! Odd orders vanish at the edge of the spectrum; the mean of the neighbours stands in, as is usual.
    do k = 1, n - 2
      if (modulus(k) < 1.0e-7_real64) modulus(k) = 0.5_real64*(modulus(k - 1) + modulus(k + 1))
    end do
    do k = 0, n - 1
      factor(k + 1) = 1.0_real64/modulus(k)
      if (.not. self%of_dispersion) &
        factor(k + 1) = exp(-(pi*wave_number(k, n, self%box(axis))/self%alpha)**2)/modulus(k)
    end do
  end function axis_factor

  !> Wave number (1/angstrom) of index k, the upper half standing for negative waves.
  pure real(real64) function wave_number(k, n, length)
    integer, intent(in) :: k, n
    real(real64), intent(in) :: length
    wave_number = merge(k, k - n, 2*k <= n)/length
  end function wave_number

  !> Add the forces on the owned atoms (kcal/mol/angstrom) to `force`. `charge` is that of the kinds of atoms, `kind` that
  !> of each atom. `energy` (kcal/mol) and `virial` (sum of r f) are this rank's share: their sums over
  !> ranks are the reciprocal, self and background energy. They are zero when `want_energy` is present and false.
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
    call sort_atoms(self, n_owned, position)
    if (self%exchange%n_ranks == 1) call allocate_mesh(self)
    call allocate_brick(self)
    !$omp parallel do schedule(static)
    do z = lbound(self%brick, 3), ubound(self%brick, 3)
      self%brick(:, :, z) = 0.0_real_pair
    end do
    !$omp end parallel do
    call spread_charges(self, position, kind, charge)
    self%own_energy = 0.0_real64
    if (self%with_energy) then
      if (self%of_dispersion) then
        self%own_energy = self%alpha**6/12.0_real64*sum_of_squares(kind(:n_owned), charge)
      else
        self%own_energy = -self_energy(self, kind(:n_owned), charge)
      end if
    end if
    if (self%exchange%n_ranks > 1) then
      call allocate_mesh(self)
      call self%exchange%start_collect(self%brick, self%grid)
    else
      call brick_to_grid(self)
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
      call deallocate_brick(self)
      call self%fft%start(1, c_loc(self%grid), c_loc(self%wave))
      self%stage = going_forward
    end if
    if (self%stage == going_forward) then
      if (.not. transformed()) return
      self%energy = 0.0_real64
      self%virial = 0.0_real64
      if (self%with_energy) then
        call sum_energy(self, self%energy, self%virial)
        self%energy = self%energy + self%own_energy
      end if
      call apply_influence(self)
      call self%fft%start(2, c_loc(self%wave), c_loc(self%grid))
      self%stage = going_back
    end if
    if (self%stage == going_back) then
      if (.not. transformed()) return
      call allocate_brick(self)
      if (self%exchange%n_ranks > 1) then
        call self%exchange%start_spread(self%grid, self%brick)
      else
        call grid_to_brick(self)
      end if
      self%stage = spreading
    end if
    if (self%stage == spreading) then
      if (self%exchange%n_ranks > 1) then
        if (.not. wait) then
          if (.not. self%exchange%is_spread()) return
        end if
        call self%exchange%finish_spread()
        call deallocate_mesh(self)
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
    call deallocate_brick(self)
    if (self%exchange%n_ranks == 1) call deallocate_mesh(self)
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
    factor = self%coulomb_constant*self%alpha/sqrt(pi)
    self_energy = 0.0_real64
    do i = 1, size(kind)
      self_energy = self_energy + ((factor*charge(kind(i))**2 + self%rounding%energy) - self%rounding%energy)
    end do
  end function self_energy

  !> List the atoms by slabs, with the brick widened first if an atom is outside of it.
  subroutine sort_atoms(self, n_owned, position)
    type(pme_t), intent(inout) :: self
    integer, intent(in) :: n_owned
    real(real64), intent(in) :: position(:, :)
    integer, allocatable :: start(:, :), slab_of(:)
    integer :: chunk, first, last, i, k, at, axis, slab, n_slabs, n, point(placed_together), room(3), widest(3)
    real(real_pair) :: fraction(placed_together)

    if (self%exchange%n_ranks > 1) then
      room = self%brick_upper - self%brick_lower - self%order + 2
      widest = 0
      !$omp parallel do schedule(static) private(n, axis, point, fraction) reduction(max: widest)
      do i = 1, n_owned, placed_together
        n = min(placed_together, n_owned - i + 1)
        do axis = 1, 3
          call place_along(self, axis, position(axis, i:i + n - 1), point(:n), fraction(:n))
          widest(axis) = max(widest(axis), 1 - minval(point(:n)), maxval(point(:n)) - room(axis))
        end do
      end do
      !$omp end parallel do
      call self%exchange%take_largest(widest)
      if (any(widest > 0)) then
        where (widest > 0) self%margin = self%margin + widest + 1
        call make_brick(self)
      end if
    end if

    n_slabs = (self%brick_upper(3) - self%brick_lower(3) + self%planes_before)/self%slab_planes + 1
    allocate (start(n_slabs, n_chunks), slab_of(n_owned))
    !$omp parallel do schedule(static) private(first, last, i, k, n, point, fraction, slab)
    do chunk = 1, n_chunks
      call run_of(chunk, n_owned, first, last)
      start(:, chunk) = 0
      do i = first, last, placed_together
        n = min(placed_together, last - i + 1)
        call place_along(self, 3, position(3, i:i + n - 1), point(:n), fraction(:n))
        do k = 1, n
          slab = (point(k) - 1 + self%planes_before)/self%slab_planes + 1
          slab_of(i + k - 1) = slab
          start(slab, chunk) = start(slab, chunk) + 1
        end do
      end do
    end do
    !$omp end parallel do
    if (allocated(self%slab_first)) deallocate (self%slab_first)
    allocate (self%slab_first(n_slabs + 1))
    at = 1
    do slab = 1, n_slabs
      self%slab_first(slab) = at
      do chunk = 1, n_chunks
        i = start(slab, chunk)
        start(slab, chunk) = at
        at = at + i
      end do
    end do
    self%slab_first(n_slabs + 1) = at
    allocate (self%slab_atom(n_owned))
    !$omp parallel do schedule(static) private(first, last, i)
    do chunk = 1, n_chunks
      call run_of(chunk, n_owned, first, last)
      do i = first, last
        associate (next => start(slab_of(i), chunk))
          self%slab_atom(next) = i
          next = next + 1
        end associate
      end do
    end do
    !$omp end parallel do
  end subroutine sort_atoms

  !> First and last atom of a run.
  pure subroutine run_of(chunk, n, first, last)
    integer, intent(in) :: chunk, n
    integer, intent(out) :: first, last
    first = (chunk - 1)*(n/n_chunks) + min(chunk - 1, mod(n, n_chunks)) + 1
    last = chunk*(n/n_chunks) + min(chunk, mod(n, n_chunks))
  end subroutine run_of

  !> First grid point of each atom along an axis (from 1, in the brick) and its fraction of a spacing.
  pure subroutine place_along(self, axis, coordinate, point, fraction)
    type(pme_t), intent(in) :: self
    integer, intent(in) :: axis
    real(real64), intent(in) :: coordinate(:)
    integer, intent(out) :: point(:)
    real(real_pair), intent(out) :: fraction(:)
    ! Whole numbers below a number: int of something positive is one instruction, floor is a call.
    integer, parameter :: above = 2**16
    real(real64) :: density, per_box, centre, n, s
    integer :: k, whole, before

    if (self%rounding%is_on()) then
      call place_exactly(self, axis, coordinate, point, fraction)
      return
    end if
    density = self%density(axis)
    per_box = self%inverse_box(axis)
    n = self%n(axis)
    before = self%order - 2 + self%brick_lower(axis)
    if (self%is_whole(axis)) then
      do k = 1, size(coordinate)
        s = coordinate(k)*density - n*(int(coordinate(k)*per_box + above) - above)
        ! A coordinate at the edge may be rounded to the other side.
        s = merge(s, 0.0_real64, s >= 0.0_real64 .and. s < n)
        whole = int(s + above) - above
        fraction(k) = real(s - whole, real_pair)
        point(k) = whole - before
      end do
    else
      centre = self%centre(axis)
      do k = 1, size(coordinate)
        ! The image next to the domain.
        s = coordinate(k)*density - n*(int(coordinate(k)*per_box - centre + (above + 0.5_real64)) - above)
        whole = int(s + above) - above
        fraction(k) = real(s - whole, real_pair)
        point(k) = whole - before
      end do
    end if
  end subroutine place_along

  !> `place_along` in the deterministic mode: the place within the box is found first, which is exact, so that every image
  !> of an atom has the same fraction.
  pure subroutine place_exactly(self, axis, coordinate, point, fraction)
    type(pme_t), intent(in) :: self
    integer, intent(in) :: axis
    real(real64), intent(in) :: coordinate(:)
    integer, intent(out) :: point(:)
    real(real_pair), intent(out) :: fraction(:)
    real(real64) :: inside, s
    integer :: k, whole

    do k = 1, size(coordinate)
      inside = coordinate(k) - self%box(axis)*floor(coordinate(k)*self%inverse_box(axis))
      if (inside < 0.0_real64) inside = inside + self%box(axis)
      if (inside >= self%box(axis)) inside = inside - self%box(axis)
      s = inside*self%density(axis)
      whole = int(s)
      fraction(k) = real(s - whole, real_pair)
      if (self%is_whole(axis)) then
        whole = modulo(whole, self%n(axis))
      else
        ! The image next to the domain.
        whole = whole - self%n(axis)*nint((whole + 0.5_real64)/self%n(axis) - self%centre(axis))
      end if
      point(k) = whole - self%order + 2 - self%brick_lower(axis)
    end do
  end subroutine place_exactly

  !> Charges to the brick. Slabs of planes at least as thick as the spline are done in two sets, odd and even, so that
  !> no two threads write to the same plane and sums are always formed in the same order.
  subroutine spread_charges(self, position, kind, charge)
    type(pme_t), intent(inout) :: self
    real(real64), intent(in) :: position(:, :), charge(:)
    integer, intent(in) :: kind(:)
    integer :: set, slab, first

    do set = self%first_set, self%first_set + 1
      !$omp parallel do schedule(dynamic) private(first)
      do slab = 2 - modulo(set, 2), size(self%slab_first) - 1, 2
        do first = self%slab_first(slab), self%slab_first(slab + 1) - 1, placed_together
          call spread_some(self, self%slab_atom(first:min(self%slab_first(slab + 1), first + placed_together) - 1), &
                           position, kind, charge)
        end do
      end do
      !$omp end parallel do
    end do
    deallocate (self%slab_atom)
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
      point_charge(k) = real(charge(kind(atom(k))), real_pair)
      place(k) = k
    end do
    do axis = 1, 3
      call place_along(self, axis, coordinate(:, axis), point(axis, :), fraction(:, axis))
    end do
    select case (merge(exactly, self%order, self%rounding%is_on()))
    case (exactly)
      call spread_slab_exact(self%order, place, point, fraction, point_charge, self%brick)
    case (4)
      call spread_slab_4(place, point, fraction, point_charge, self%brick)
    case (5)
      call spread_slab_5(place, point, fraction, point_charge, self%brick)
    case (6)
      call spread_slab_6(place, point, fraction, point_charge, self%brick)
    case default
      call spread_slab_any(self%order, place, point, fraction, point_charge, self%brick)
    end select
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
      call place_along(self, axis, position(axis, first:last), point(axis, :), fraction(:, axis))
    end do
    do k = 1, n
      point_charge(k) = real(charge(kind(first + k - 1)), real_pair)
    end do
    own_force = 0.0_real64
    select case (merge(exactly, self%order, self%rounding%is_on()))
    case (exactly)
      call gather_run_exact(self%order, 1, n, point, fraction, point_charge, self%brick, self%density, own_force)
    case (4)
      call gather_run_4(1, n, point, fraction, point_charge, self%brick, self%density, own_force)
    case (5)
      call gather_run_5(1, n, point, fraction, point_charge, self%brick, self%density, own_force)
    case (6)
      call gather_run_6(1, n, point, fraction, point_charge, self%brick, self%density, own_force)
    case default
      call gather_run_any(self%order, 1, n, point, fraction, point_charge, self%brick, self%density, own_force)
    end select
    do k = 1, n
      force(:, first + k - 1) = force(:, first + k - 1) + &
                                ((own_force(:, k) + self%rounding%force) - self%rounding%force)
    end do
  end subroutine gather_some

  !> Energy and virial of the waves, and of the background under a net charge (the wave of index 0).
  subroutine sum_energy(self, energy, virial)
    type(pme_t), intent(in) :: self
    real(real64), intent(out) :: energy, virial(3, 3)
    real(real64), allocatable :: part(:, :)
    real(real64) :: m(3), m2, e, factor, background, wave, slope, sums(7)
    real(real_pair) :: influence(0:self%n(3) - 1)
    complex(real_pair), allocatable :: waves(:, :)
    integer :: block, first, line, z, a

    allocate (part(7, (size(self%line_wave, 2) + lines_together - 1)/lines_together), source=0.0_real64)
    background = 0.0_real64
    !$omp parallel do schedule(static) private(first, line, z, m, m2, e, factor, wave, slope, sums, influence, waves) &
    !$omp& reduction(+: background)
    do block = 1, size(part, 2)
      first = (block - 1)*lines_together
      waves = lines_of(self, first + 1, min(size(self%line_wave, 2), block*lines_together))
      do line = first + 1, first + size(waves, 2)
        m(1) = wave_number(self%line_wave(1, line), self%n(1), self%box(1))
        m(2) = wave_number(self%line_wave(2, line), self%n(2), self%box(2))
        sums = 0.0_real64
        influence = influence_of_line(self, line)
        do z = 0, self%n(3) - 1
          m(3) = wave_number(z, self%n(3), self%box(3))
          m2 = sum(m**2)
          if (m2 <= 0.0_real64 .and. .not. self%of_dispersion) then
            background = background - 0.5_real64*pi*self%coulomb_constant/(product(self%box)*self%alpha**2) &
                                      *real(real(waves(z + 1, line - first)), real64)**2
            cycle
          end if
          ! Waves with kx inside the half axis stand for their conjugates too.
          e = influence(z)*(real(waves(z + 1, line - first), real64)**2 + real(aimag(waves(z + 1, line - first)), real64)**2) &
              *merge(0.5_real64, 1.0_real64, self%line_wave(1, line) == 0 .or. 2*self%line_wave(1, line) == self%n(1))
          sums(1) = sums(1) + e
          if (m2 <= 0.0_real64) cycle
          if (self%of_dispersion) then
            call dispersion_wave(pi/self%alpha*sqrt(m2), wave, slope)
            ! f falls like exp(-b^2)/b^2.
            factor = 0.0_real64
            if (wave > tiny(wave)) factor = e*slope/wave/m2
          else
            factor = 2.0_real64*e*(1.0_real64 + (pi/self%alpha)**2*m2)/m2
          end if
          sums(2:4) = sums(2:4) + factor*m**2
          sums(5) = sums(5) + factor*m(1)*m(2)
          sums(6) = sums(6) + factor*m(1)*m(3)
          sums(7) = sums(7) + factor*m(2)*m(3)
        end do
        part(:, block) = part(:, block) + ((sums + self%rounding%energy) - self%rounding%energy)
      end do
    end do
    !$omp end parallel do
    energy = sum(part(1, :))
    virial = -reshape([sum(part(2, :)), sum(part(5, :)), sum(part(6, :)), &
                       sum(part(5, :)), sum(part(3, :)), sum(part(7, :)), &
                       sum(part(6, :)), sum(part(7, :)), sum(part(4, :))], [3, 3])
    energy = energy + ((background + self%rounding%energy) - self%rounding%energy)
    do a = 1, 3
      virial(a, a) = virial(a, a) + energy
    end do
  end subroutine sum_energy

#define ADDED(x) (x)
#define NAME(x) x/**/_any
#define ORDER_ARGUMENT order,
#define ORDER_DECLARATION integer, intent(in) :: order
#include "pme_loops.inc"
#undef NAME
#undef ORDER_ARGUMENT
#undef ORDER_DECLARATION
#define ORDER_ARGUMENT

#define NAME(x) x/**/_4
#define ORDER_DECLARATION integer, parameter :: order = 4
#include "pme_loops.inc"
#undef NAME
#undef ORDER_DECLARATION

#define NAME(x) x/**/_5
#define ORDER_DECLARATION integer, parameter :: order = 5
#include "pme_loops.inc"
#undef NAME
#undef ORDER_DECLARATION

#define NAME(x) x/**/_6
#define ORDER_DECLARATION integer, parameter :: order = 6
#include "pme_loops.inc"
#undef NAME
#undef ORDER_DECLARATION

! With the charges rounded before they are added up.
#undef ADDED
#define ADDED(x) ((x + charge_rounding) - charge_rounding)
#undef ORDER_ARGUMENT
#define NAME(x) x/**/_exact
#define ORDER_ARGUMENT order,
#define ORDER_DECLARATION integer, intent(in) :: order
#include "pme_loops.inc"

end module pme
