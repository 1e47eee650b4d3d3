!> Constants of the pair interaction, prepared once for the kernels: cutoffs, the switch, and the polynomials of the
!> Ewald correction.
!>
!> The real-space Coulomb energy is q q (1/r - alpha E(x)) and the force over r is q q (1/r^3 - alpha^3 F(x)) with
!> x = (alpha r)^2, E(x) = erf(sqrt x)/sqrt x and F(x) = -2 dE/dx. E and F are entire functions of x, so that a
!> polynomial fitted at Chebyshev nodes replaces erfc and exp; excluded pairs keep only the polynomial part.
!>
!> With Ewald summation of the dispersion too (Essmann et al., J. Chem. Phys. 103, 8577 (1995)), reciprocal space holds
!> -c c G(y)/r^6 of every pair, c being the root of an atom's c6, G = 1 - exp(-y)(1 + y + y^2/2) and y = (beta r)^2. Real
!> space adds it back: the energy c c beta^6 P(y) and the force over r c c beta^8 D(y), with P = G/y^3 and D = -2 dP/dy,
!> entire functions as well.
!>
!> Charges in implicit solvent (module implicit_solvent) have the energy q q r^-p P(r) and the force over r
!> q q r^-(p + 2) Q(r), p being 1 or 2. P and Q, which bring both to zero at the cutoff, are entire functions of r itself,
!> so that their polynomials have another argument.
module pair_parameters
  use base_kinds, only: real64
  use pair_precision, only: real_pair
  use base_constants, only: pi
  use base_error, only: error_t, exit_bad_input, fail
  use chebyshev_fit, only: chebyshev_nodes, polynomial, power_series
  use implicit_solvent, only: implicit_solvent_t
  use pair_forms, only: has_formula, vdw_cut, vdw_force_shift, vdw_force_switch, vdw_pme, vdw_shift, vdw_switch, &
                        vdw_quintic_switch
  implicit none
  private
  public :: pair_parameters_t, fit_degree, exclusion_degree, screened_dispersion, screened_dispersion_slope

  !> Degrees of the polynomials: up to the cutoff in the kind of the pair arithmetic, and for excluded pairs (real64).
  integer, parameter :: fit_degree = merge(12, 28, kind(1.0_real_pair) == kind(1.0))
  integer, parameter :: exclusion_degree = 16
  !> Excluded pairs beyond this alpha*r are computed with the intrinsic function.
  real(real64), parameter :: exclusion_reach = 2.0_real64
  !> Pairs closer than this (angstrom) feel the force law of this distance: clashes stay finite.
  real(real64), parameter :: closest_distance = 0.3_real64
  !> Places at which polynomials are compared with what they stand for.
  integer, parameter :: n_checks = 200

  type :: pair_parameters_t
    real(real64) :: cutoff = 0.0_real64, list_distance = 0.0_real64, alpha = 0.0_real64
    !> Screening of the dispersion (vdw_pme), and what is taken from 1/r in the Coulomb energy, 1/angstrom.
    real(real64) :: dispersion_alpha = 0.0_real64, coulomb_shift = 0.0_real64
    integer :: vdw_form = vdw_cut
    !> Most clusters of the present list have charges alone or Lennard-Jones terms alone.
    logical :: has_bare_clusters = .false.
    real(real_pair) :: cutoff2 = 0.0_real_pair, closest2 = 0.0_real_pair
    !> The switch is 1 - u^2 (switch_fit(1) - u switch_fit(2)), u = max(0, r^2 - switch2); its slope over r, with the sign
    !> of a force, u (switch_slope(1) - u switch_slope(2)).
    real(real_pair) :: switch2 = 0.0_real_pair, switch_fit(2) = 0.0_real_pair, switch_slope(2) = 0.0_real_pair
    !> Subtracted from r^-6 and r^-12 in the energy (vdw_shift, vdw_pme, and vdw_force_switch inside the switch distance).
    real(real_pair) :: shift6 = 0.0_real_pair, shift12 = 0.0_real_pair
    !> Force switch: r_c^-3, r_c^-6, r_c^3/(r_c^3 - r_s^3), r_c^6/(r_c^6 - r_s^6).
    real(real_pair) :: cutoff_m3 = 0.0_real_pair, cutoff_m6 = 0.0_real_pair
    real(real_pair) :: switch_factor6 = 0.0_real_pair, switch_factor12 = 0.0_real_pair
    !> Charges are those in implicit solvent; the powers of 1/r, 1 and 2, in front of their polynomials.
    logical :: is_screened = .false.
    real(real_pair) :: lead(2) = 0.0_real_pair
    !> Argument of the polynomials: r^2*fit_scale - 1, in implicit solvent r*fit_scale - 1; in [-1, 1] inside the cutoff.
    real(real_pair) :: fit_scale = 0.0_real_pair
    real(real_pair) :: force_fit(0:fit_degree) = 0.0_real_pair, energy_fit(0:fit_degree) = 0.0_real_pair
    !> beta^8 D and beta^6 (P - P at the cutoff) of vdw_pme.
    real(real_pair) :: dispersion_force_fit(0:fit_degree) = 0.0_real_pair
    real(real_pair) :: dispersion_energy_fit(0:fit_degree) = 0.0_real_pair
    real(real64) :: exclusion_scale = 0.0_real64, exclusion_reach2 = 0.0_real64
    real(real64) :: exclusion_force_fit(0:exclusion_degree) = 0.0_real64
    real(real64) :: exclusion_energy_fit(0:exclusion_degree) = 0.0_real64
    !> Tables in place of all this but the exclusions, if module pair_table made them (order 0 = none): point k stands for
    !> r^2 = table_scale/k. Without tables they hold one number, so that they can be handed to all loops.
    integer :: table_order = 0
    !> No formula gives these energies: the loops need a table.
    logical :: needs_table = .false.
    real(real_pair) :: table_scale = 0.0_real_pair
    real(real_pair), allocatable :: table_force(:), table_energy(:)
  contains
    procedure :: prepare
  end type pair_parameters_t

contains

  !> Prepare all constants. Distances in angstrom, `alpha` in 1/angstrom (0 = plain Coulomb within the cutoff);
  !> `dispersion_alpha` likewise, used with vdw_pme only; `coulomb_shift`, 1/angstrom, is taken from 1/r in the energy.
  !> With `solvent` charges are those in implicit solvent, and `alpha` and `coulomb_shift` are zero.
  subroutine prepare(self, cutoff, switch_distance, list_distance, alpha, vdw_form, dispersion_alpha, coulomb_shift, &
                     error, solvent)
    class(pair_parameters_t), intent(out) :: self
    real(real64), intent(in) :: cutoff, switch_distance, list_distance, alpha, dispersion_alpha, coulomb_shift
    integer, intent(in) :: vdw_form
    type(error_t), allocatable, intent(out) :: error
    type(implicit_solvent_t), intent(in), optional :: solvent
    ! Allowed errors of the fit, relative to the value at contact.
    real(real64), parameter :: tolerance = merge(1.0e-6_real64, 1.0e-11_real64, real_pair == kind(1.0))
    real(real64) :: force_fit(0:fit_degree), energy_fit(0:fit_degree), worst(2), range
    character(len=200) :: message

    allocate (self%table_force(0:0), self%table_energy(0:0), source=0.0_real_pair)
    self%cutoff = cutoff
    self%list_distance = list_distance
    self%alpha = alpha
    self%vdw_form = vdw_form
    self%dispersion_alpha = dispersion_alpha
    self%coulomb_shift = coulomb_shift
    if (any(vdw_form == [vdw_switch, vdw_quintic_switch]) .and. switch_distance >= cutoff) self%vdw_form = vdw_cut
    if (any(vdw_form == [vdw_force_switch, vdw_force_shift]) .and. switch_distance >= cutoff) self%vdw_form = vdw_shift
    self%needs_table = .not. has_formula(self%vdw_form)
    self%cutoff2 = real(cutoff**2, real_pair)
    self%closest2 = real(closest_distance**2, real_pair)
    select case (self%vdw_form)
    case (vdw_switch)
      self%switch2 = real(switch_distance**2, real_pair)
      range = cutoff**2 - switch_distance**2
      self%switch_fit = real([3.0_real64/range**2, 2.0_real64/range**3], real_pair)
      self%switch_slope = real([12.0_real64/range**2, 12.0_real64/range**3], real_pair)
    case (vdw_shift, vdw_pme)
      self%shift6 = real(cutoff**(-6), real_pair)
      self%shift12 = real(cutoff**(-12), real_pair)
    case (vdw_force_switch)
      self%switch2 = real(switch_distance**2, real_pair)
      self%shift6 = real(1.0_real64/(switch_distance*cutoff)**3, real_pair)
      self%shift12 = real(1.0_real64/(switch_distance*cutoff)**6, real_pair)
      self%cutoff_m3 = real(cutoff**(-3), real_pair)
      self%cutoff_m6 = real(cutoff**(-6), real_pair)
      self%switch_factor6 = real(cutoff**3/(cutoff**3 - switch_distance**3), real_pair)
      self%switch_factor12 = real(cutoff**6/(cutoff**6 - switch_distance**6), real_pair)
    end select

    if (self%vdw_form == vdw_pme) then
      call fit(screened_dispersion, screened_dispersion_slope, (dispersion_alpha*cutoff)**2, energy_fit, force_fit, worst)
      if (any(worst > tolerance)) then
        write (message, "(a,f0.3,a,f0.2,a)") "screening of the dispersion, ", dispersion_alpha, &
          " /angstrom, is too strong for a cutoff of ", cutoff, " angstrom: raise vdw_pme_alpha_tol"
        call fail(error, exit_bad_input, trim(message))
        return
      end if
      energy_fit(0) = energy_fit(0) - screened_dispersion((dispersion_alpha*cutoff)**2)
      self%dispersion_energy_fit = real(dispersion_alpha**6*energy_fit, real_pair)
      self%dispersion_force_fit = real(dispersion_alpha**8*force_fit, real_pair)
    end if
    call fit(scaled_erf, scaled_erf_slope, (alpha*cutoff)**2, energy_fit, force_fit, worst)
    if (any(worst > tolerance)) then
      if (self%vdw_form == vdw_pme) then
        write (message, "(2(a,f0.3),a)") "Ewald screening pme_alpha = ", alpha, " /angstrom with cutoffdist = ", cutoff, &
          " goes with vdw = CUTOFF only: lower pme_alpha, or give vdw = CUTOFF"
        call fail(error, exit_bad_input, trim(message))
        return
      end if
      self%needs_table = .true.
      energy_fit = 0.0_real64
      force_fit = 0.0_real64
    end if
    self%fit_scale = real(2.0_real64/cutoff**2, real_pair)
    self%force_fit = real(alpha**3*force_fit, real_pair)
    self%energy_fit = real(alpha*energy_fit, real_pair)
    self%energy_fit(0) = real(alpha*energy_fit(0) + coulomb_shift, real_pair)
    call fit(scaled_erf, scaled_erf_slope, exclusion_reach**2, self%exclusion_energy_fit, self%exclusion_force_fit, &
             worst)
    self%exclusion_scale = 2.0_real64*(alpha/exclusion_reach)**2
    self%exclusion_energy_fit = alpha*self%exclusion_energy_fit
    self%exclusion_force_fit = alpha**3*self%exclusion_force_fit
    self%exclusion_reach2 = huge(alpha)
    if (alpha > 0.0_real64) self%exclusion_reach2 = (exclusion_reach/alpha)**2
    if (.not. present(solvent)) return
    if (solvent%is_on) call fit_solvent(self, solvent, tolerance, error)
  end subroutine prepare

  !> Power series in t = 2 x/x_max - 1 of an energy and its slope on [0, x_max], by interpolation at Chebyshev nodes;
  !> `worst`: the largest errors seen between the nodes. The bits of trajectories follow from the order of its operations.
  pure subroutine fit(energy_of, slope_of, x_max, energy, force, worst)
    interface
      pure function energy_of(x) result(value)
        import :: real64
        real(real64), intent(in) :: x
        real(real64) :: value
      end function energy_of
      pure function slope_of(x) result(value)
        import :: real64
        real(real64), intent(in) :: x
        real(real64) :: value
      end function slope_of
    end interface
    real(real64), intent(in) :: x_max
    real(real64), intent(out) :: energy(0:), force(0:), worst(2)
    integer :: degree, k, m
    real(real64) :: node, x, t, angle, norm
    real(real64) :: chebyshev(0:ubound(energy, 1), 2), previous(0:ubound(energy, 1)), current(0:ubound(energy, 1))
    real(real64) :: next(0:ubound(energy, 1))

    degree = ubound(energy, 1)
    chebyshev = 0.0_real64
    do k = 0, degree
      angle = pi*(k + 0.5_real64)/(degree + 1)
      node = cos(angle)
      x = 0.5_real64*x_max*(node + 1.0_real64)
      do m = 0, degree
        norm = merge(1.0_real64, 2.0_real64, m == 0)/(degree + 1)*cos(m*angle)
        chebyshev(m, 1) = chebyshev(m, 1) + norm*energy_of(x)
        chebyshev(m, 2) = chebyshev(m, 2) + norm*slope_of(x)
      end do
    end do
    ! Chebyshev polynomials to powers: T_0 = 1, T_1 = t, T_(m+1) = 2 t T_m - T_(m-1).
    previous = 0.0_real64
    current = 0.0_real64
    previous(0) = 1.0_real64
    current(1) = 1.0_real64
    energy = chebyshev(0, 1)*previous + chebyshev(1, 1)*current
    force = chebyshev(0, 2)*previous + chebyshev(1, 2)*current
    do m = 2, degree
      next(0) = -previous(0)
      next(1:) = 2.0_real64*current(:degree - 1) - previous(1:)
      energy = energy + chebyshev(m, 1)*next
      force = force + chebyshev(m, 2)*next
      previous = current
      current = next
    end do
    worst = 0.0_real64
    do k = 0, n_checks
      t = 2.0_real64*k/n_checks - 1.0_real64
      x = 0.5_real64*x_max*(t + 1.0_real64)
      worst(1) = max(worst(1), abs(polynomial(energy, t) - energy_of(x)))
      worst(2) = max(worst(2), abs(polynomial(force, t) - slope_of(x)))
    end do
  end subroutine fit

  !> The polynomials of charges in implicit solvent; `tolerance` of their errors, relative to the value at contact.
  subroutine fit_solvent(self, solvent, tolerance, error)
    class(pair_parameters_t), intent(inout) :: self
    type(implicit_solvent_t), intent(in) :: solvent
    real(real64), intent(in) :: tolerance
    type(error_t), allocatable, intent(out) :: error
    real(real64), dimension(0:fit_degree) :: energy, force, energy_fit, force_fit
    real(real64) :: t, energy_here, force_here, worst
    character(len=200) :: message
    integer :: k

    self%is_screened = .true.
    self%fit_scale = real(2.0_real64/self%cutoff, real_pair)
    self%lead = 0.0_real_pair
    self%lead(solvent%order) = 1.0_real_pair
    call shifted_solvent(solvent, self%cutoff, 0.5_real64*self%cutoff*(chebyshev_nodes(fit_degree) + 1.0_real64), energy, &
                         force)
    energy_fit = power_series(energy)
    force_fit = power_series(force)
    worst = 0.0_real64
    do k = 0, n_checks
      t = 2.0_real64*k/n_checks - 1.0_real64
      call shifted_solvent(solvent, self%cutoff, 0.5_real64*self%cutoff*(t + 1.0_real64), energy_here, force_here)
      worst = max(worst, abs(polynomial(energy_fit, t) - energy_here), abs(polynomial(force_fit, t) - force_here))
    end do
    if (worst*solvent%permittivity > tolerance) then
      write (message, "(2(a,f0.2),a)") "a Debye length of ", 1.0_real64/solvent%screening, &
        " angstrom is too short for a cutoff of ", self%cutoff, " angstrom: lower cutoffdist or the ionic_strength"
      call fail(error, exit_bad_input, trim(message))
      return
    end if
    self%energy_fit = real(energy_fit, real_pair)
    self%force_fit = real(force_fit, real_pair)
  end subroutine fit_solvent

  !> Of two charges whose force and energy are shifted to zero at the cutoff: r**order times the energy, and
  !> r**(order + 1) times the force.
  elemental subroutine shifted_solvent(solvent, cutoff, r, energy, force)
    type(implicit_solvent_t), intent(in) :: solvent
    real(real64), intent(in) :: cutoff, r
    real(real64), intent(out) :: energy, force
    real(real64) :: energy_there, force_there
    call solvent%evaluate(cutoff, energy_there, force_there)
    energy = exp(-solvent%screening*r)/solvent%permittivity
    force = energy*(solvent%order + solvent%screening*r) - r**(solvent%order + 1)*force_there
    energy = energy - r**solvent%order*(energy_there - (r - cutoff)*force_there)
  end subroutine shifted_solvent

  !> E(x) = erf(sqrt x)/sqrt x.
  pure function scaled_erf(x) result(value)
    real(real64), intent(in) :: x
    real(real64) :: value
    if (x < 1.0e-8_real64) then
      value = 2.0_real64/sqrt(pi)*(1.0_real64 - x/3.0_real64)
    else
      value = erf(sqrt(x))/sqrt(x)
    end if
  end function scaled_erf

  !> F(x) = -2 dE/dx; by its power series where the closed form cancels.
  pure function scaled_erf_slope(x) result(value)
    real(real64), intent(in) :: x
    real(real64) :: value, power
    integer :: k
    if (x < 1.0_real64) then
      value = 0.0_real64
      power = 1.0_real64
      do k = 1, 25
        value = value + power*2.0_real64/(2*k + 1)
        power = -power*x/k
      end do
      value = value*2.0_real64/sqrt(pi)
    else
      value = (scaled_erf(x) - 2.0_real64/sqrt(pi)*exp(-x))/x
    end if
  end function scaled_erf_slope

  !> P(y) = (1 - exp(-y) (1 + y + y^2/2))/y^3 = exp(-y) sum y^k/(k + 3)!, a series of positive terms.
  pure function screened_dispersion(y) result(value)
    real(real64), intent(in) :: y
    real(real64) :: value
    value = exp(-y)*rest_of_exponential(y, 3)
  end function screened_dispersion

  !> D(y) = -2 dP/dy = 6 (1 - exp(-y) (1 + y + y^2/2 + y^3/6))/y^4.
  pure function screened_dispersion_slope(y) result(value)
    real(real64), intent(in) :: y
    real(real64) :: value
    value = 6.0_real64*exp(-y)*rest_of_exponential(y, 4)
  end function screened_dispersion_slope

  !> Sum over k from 0 of y^k/(k + first)!
  pure function rest_of_exponential(y, first) result(value)
    real(real64), intent(in) :: y
    integer, intent(in) :: first
    real(real64) :: value, term
    integer :: k
    term = 1.0_real64/gamma(first + 1.0_real64)
    value = 0.0_real64
    k = first
    do while (value + term > value)
      value = value + term
      k = k + 1
      term = term*y/k
    end do
  end function rest_of_exponential

end module pair_parameters
