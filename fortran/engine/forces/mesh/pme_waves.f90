!> Waves of the charges on the mesh of PME: what each is multiplied by to give the potential, their energy and virial.
module pme_waves
  use base_box_shape, only: box_shape_t
  use base_constants, only: pi
  use base_fixed_point, only: rounding_t
  use base_kinds, only: real64
  use fft_layout, only: layout_t
  use pair_precision, only: real_pair
  use pme_splines, only: b_spline, together
  implicit none
  private
  public :: pme_waves_t

  !> Lines of waves whose energies are summed together, so that sums do not depend on the number of threads.
  integer, parameter :: lines_together = 256

  type :: pme_waves_t
    integer :: order = 4, n(3) = 0
    !> Angstrom, 1/angstrom, kcal angstrom/mol/e^2.
    real(real64) :: box(3) = 0.0_real64, alpha = 0.0_real64, coulomb_constant = 0.0_real64
    !> How edges of the box lean.
    type(box_shape_t) :: shape
    !> Sum -c c/r^6 instead of q q/r.
    logical :: of_dispersion = .false.
    type(rounding_t) :: rounding
    !> Waves of this rank lie in whole lines along z: wave(kz + 1, line), or with `has_planes` in planes of all lines:
    !> wave(line, kz + 1); and kx, ky of each line.
    logical :: has_planes = .false.
    integer, allocatable :: line_wave(:, :)
    !> Factor of |charge wave|^2 in twice the energy: of charges the product of those of the axes over the square of the
    !> wave number, of the dispersion, and where edges lean, as stored (kz from 0, line).
    real(real64), allocatable, private :: factor_x(:), factor_y(:), factor_z(:)
    real(real_pair), allocatable, private :: influence(:, :)
  contains
    procedure :: list_lines
    procedure :: make_influence
    procedure :: apply_influence
    procedure :: sum_energy
  end type pme_waves_t

contains

  !> The lines of waves that the scheme leaves on this rank, in the order in which it stores them.
  subroutine list_lines(self, layout)
    class(pme_waves_t), intent(inout) :: self
    type(layout_t), intent(in) :: layout
    integer :: k, n_lines, fast, slow, index(3), across(2)
    if (.not. self%has_planes .and. .not. layout%holds_lines(3, self%n(3))) &
      error stop "the FFT of PME must leave whole lines along z on a rank"
    n_lines = int(layout%n_points()/self%n(3))
    allocate (self%line_wave(2, n_lines))
    if (is_stored(self)) allocate (self%influence(0:self%n(3) - 1, n_lines))
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
  end subroutine list_lines

  !> Coulomb constant/(pi V) exp(-(pi m/alpha)^2)/m^2 |b|^2 for each wave m, 0 for the mean; or
  !> -pi^(3/2) alpha^3/(3 V) f(pi m/alpha) |b|^2 (see dispersion_wave).
  !> `box`: edges, angstrom.
  subroutine make_influence(self, box)
    class(pme_waves_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    real(real64) :: m2, wave, slope, prefactor
    integer :: line, z

    self%box = box
    self%factor_x = axis_factor(self, 1)
    self%factor_y = axis_factor(self, 2)
    self%factor_z = axis_factor(self, 3)
    prefactor = self%coulomb_constant/(pi*product(self%box))
    if (self%of_dispersion) prefactor = -pi**1.5_real64*self%alpha**3/(3.0_real64*product(self%box))
    self%factor_x = prefactor*self%factor_x
    if (.not. is_stored(self)) return
    !$omp parallel do schedule(static) private(z, m2, wave, slope)
    do line = 1, size(self%line_wave, 2)
      do z = 0, self%n(3) - 1
        m2 = sum(wave_vector(self, line, z)**2)
        if (self%of_dispersion) then
          call dispersion_wave(pi/self%alpha*sqrt(m2), wave, slope)
        else
          wave = 0.0_real64
          if (m2 > 0.0_real64) wave = exp(-(pi/self%alpha)**2*m2)/m2
        end if
        self%influence(z, line) = real(self%factor_x(self%line_wave(1, line) + 1)* &
                                       self%factor_y(self%line_wave(2, line) + 1)*self%factor_z(z + 1)*wave, real_pair)
      end do
    end do
    !$omp end parallel do
  end subroutine make_influence

  !> Whether the factors of all waves are stored: they are not products of those of the axes.
  pure logical function is_stored(self)
    type(pme_waves_t), intent(in) :: self
    is_stored = self%of_dispersion .or. self%shape%leans
  end function is_stored

  !> Wave vector (1/angstrom) of a line and of kz from 0.
  pure function wave_vector(self, line, z) result(m)
    type(pme_waves_t), intent(in) :: self
    integer, intent(in) :: line, z
    real(real64) :: m(3)
    m(1) = wave_number(self%line_wave(1, line), self%n(1), self%box(1))
    m(2) = wave_number(self%line_wave(2, line), self%n(2), self%box(2))
    m(3) = wave_number(z, self%n(3), self%box(3))
    if (self%shape%leans) m = self%shape%of_gradient(m)
  end function wave_vector

  !> The factors of one line of waves.
  pure function influence_of_line(self, line) result(influence)
    class(pme_waves_t), intent(in) :: self
    integer, intent(in) :: line
    real(real_pair) :: influence(0:self%n(3) - 1)
    real(real64) :: m2, factor
    integer :: x, y, z

    if (is_stored(self)) then
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

  !> Multiply the waves by their factors. `wave` as in `pme_waves_t`.
  subroutine apply_influence(self, wave)
    class(pme_waves_t), intent(in) :: self
    complex(real_pair), contiguous, intent(inout) :: wave(:, :)
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
            wave(line, z + 1) = wave(line, z + 1)*influence(z, line - first + 1)
          end do
        end do
      else
        do line = first, last
          wave(:, line) = wave(:, line)*influence_of_line(self, line)
        end do
      end if
    end do
    !$omp end parallel do
  end subroutine apply_influence

  !> Lines `first` to `last` of the waves: (kz from 0, line).
  pure function lines_of(self, wave, first, last) result(line)
    class(pme_waves_t), intent(in) :: self
    complex(real_pair), contiguous, intent(in) :: wave(:, :)
    integer, intent(in) :: first, last
    complex(real_pair) :: line(0:self%n(3) - 1, first:last)
    if (self%has_planes) then
      line = transpose(wave(first:last, :))
    else
      line = wave(:, first:last)
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

  !> |b(m)|^2 along one axis; times exp(-(pi m/alpha)^2) where factors are products of those of the axes.
  pure function axis_factor(self, axis) result(factor)
    class(pme_waves_t), intent(in) :: self
    integer, intent(in) :: axis
    real(real64) :: factor(self%n(axis)), modulus(0:self%n(axis) - 1)
    real(real_pair) :: weight(together, self%order), slope(together, self%order)
    complex(real64) :: sum
    integer :: k, j, n, order
    logical :: by_axes

    n = self%n(axis)
    order = self%order
    call b_spline(order, 1, [0.0_real_pair], weight, slope)
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
    by_axes = .not. is_stored(self)
    do k = 0, n - 1
      factor(k + 1) = 1.0_real64/modulus(k)
      if (by_axes) &
        factor(k + 1) = exp(-(pi*wave_number(k, n, self%box(axis))/self%alpha)**2)/modulus(k)
    end do
  end function axis_factor

  !> Wave number (1/angstrom) of index k, the upper half standing for negative waves.
  pure real(real64) function wave_number(k, n, length)
    integer, intent(in) :: k, n
    real(real64), intent(in) :: length
    wave_number = merge(k, k - n, 2*k <= n)/length
  end function wave_number

  !> Energy and virial of the waves, and of the background under a net charge (the wave of index 0), both in
  !> kcal/mol. `wave`: in the layout of `line_wave`.
  subroutine sum_energy(self, wave, energy, virial)
    class(pme_waves_t), intent(in) :: self
    complex(real_pair), contiguous, intent(in) :: wave(:, :)
    real(real64), intent(out) :: energy, virial(3, 3)
    real(real64), allocatable :: part(:, :)
    real(real64) :: m(3), m2, e, factor, background, form, slope, sums(7)
    real(real_pair) :: influence(0:self%n(3) - 1)
    complex(real_pair), allocatable :: waves(:, :)
    integer :: block, first, line, z, a

    allocate (part(7, (size(self%line_wave, 2) + lines_together - 1)/lines_together), source=0.0_real64)
    background = 0.0_real64
    !$omp parallel do schedule(static) private(first, line, z, m, m2, e, factor, form, slope, sums, influence, waves) &
    !$omp& reduction(+: background)
    do block = 1, size(part, 2)
      first = (block - 1)*lines_together
      waves = lines_of(self, wave, first + 1, min(size(self%line_wave, 2), block*lines_together))
      do line = first + 1, first + size(waves, 2)
        m(1) = wave_number(self%line_wave(1, line), self%n(1), self%box(1))
        m(2) = wave_number(self%line_wave(2, line), self%n(2), self%box(2))
        sums = 0.0_real64
        influence = influence_of_line(self, line)
        do z = 0, self%n(3) - 1
          if (self%shape%leans) then
            m = wave_vector(self, line, z)
          else
            m(3) = wave_number(z, self%n(3), self%box(3))
          end if
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
            call dispersion_wave(pi/self%alpha*sqrt(m2), form, slope)
            ! f falls like exp(-b^2)/b^2.
            factor = 0.0_real64
            if (form > tiny(form)) factor = e*slope/form/m2
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

end module pme_waves
