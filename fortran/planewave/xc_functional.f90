!> Exchange and correlation of a closed-shell electron density at one point: energy per volume f(rho, gamma) with
!> gamma = |grad rho|^2, and its derivatives. Atomic units.
!>
!> Sources: PZ, Perdew and Zunger, Phys. Rev. B 23, 5048 (1981); PW92, Perdew and Wang, Phys. Rev. B 45, 13244 (1992);
!> Pade, Goedecker, Teter and Hutter, Phys. Rev. B 54, 1703 (1996); B88, Becke, Phys. Rev. A 38, 3098 (1988); LYP, Lee,
!> Yang and Parr, Phys. Rev. B 37, 785 (1988); PBE, Perdew, Burke and Ernzerhof, Phys. Rev. Lett. 77, 3865 (1996).
module xc_functional
  use base_kinds, only: real64
  use base_constants, only: pi
  implicit none
  private
  public :: xc_t, xc_names

  integer, parameter :: pz = 1, pw92 = 2, pade = 3, blyp = 4, pbe = 5
  !> Names in the control file, in the order of their numbers.
  character(len=*), parameter :: xc_names(5) = [character(len=4) :: "PZ", "PW92", "PADE", "BLYP", "PBE"]

  type :: xc_t
    !> Place in xc_names.
    integer :: number = pz
    !> Drop gradient terms at once below the densities at which pw.x does, instead of fading them out.
    logical :: has_step = .false.
  contains
    procedure :: uses_gradient
    procedure :: family
    procedure :: evaluate
    procedure :: evaluate_plane
  end type xc_t

  !> Below these nothing counts, and gradient terms do not: those of pw.x.
  real(real64), parameter :: step_least = 1.0e-10_real64, step_density = 1.0e-6_real64, step_gamma = 1.0e-10_real64
  !> Energies of smaller densities are far below rounding.
  real(real64), parameter :: least_density = 1.0e-14_real64
  !> Gradient terms fade between these densities otherwise.
  real(real64), parameter :: fade_from = 1.0e-8_real64, fade_to = 1.0e-6_real64
  real(real64), parameter :: third = 1.0_real64/3.0_real64
  !> r_s rho^(1/3); potential of exchange in the uniform gas and Fermi wave vector over rho^(1/3).
  real(real64), parameter :: wigner = (3.0_real64/(4.0_real64*pi))**third, slater = -(3.0_real64/pi)**third, &
                             fermi = (3.0_real64*pi**2)**third

contains

  !> Whether the functional depends on the gradient of the density.
  pure logical function uses_gradient(self)
    class(xc_t), intent(in) :: self
    uses_gradient = self%number >= blyp
  end function uses_gradient

  !> The functional that pseudopotentials are made with: LDA, BLYP or PBE.
  pure function family(self) result(name)
    class(xc_t), intent(in) :: self
    character(len=:), allocatable :: name
    name = "LDA"
    if (self%uses_gradient()) name = trim(xc_names(self%number))
  end function family

  !> `energy`: f in hartree/bohr^3; `d_rho`, `d_gamma`: its derivatives.
  pure subroutine evaluate(self, rho, gamma, energy, d_rho, d_gamma)
    class(xc_t), intent(in) :: self
    real(real64), intent(in) :: rho, gamma
    real(real64), intent(out) :: energy, d_rho, d_gamma
    real(real64) :: t, eps, v, part(3), other(3), weight, slope

    energy = 0.0_real64
    d_rho = 0.0_real64
    d_gamma = 0.0_real64
    if (rho <= merge(step_least, least_density, self%has_step)) return
    ! The one root that all formulas are written in: roots are what costs.
    t = rho**(-third)
    select case (self%number)
    case (pade)
      call pade_lda(t, eps, v)
      energy = rho*eps
      d_rho = v
      return
    case (pz)
      call perdew_zunger(t, eps, v)
    case (pw92, pbe)
      call perdew_wang(t, eps, v)
    end select
    d_rho = slater/t
    energy = 0.75_real64*rho*d_rho
    if (self%number /= blyp) then
      energy = energy + rho*eps
      d_rho = d_rho + v
    end if

    weight = 1.0_real64
    slope = 0.0_real64
    if (.not. self%uses_gradient()) then
      weight = 0.0_real64
    else if (self%has_step) then
      if (rho <= step_density .or. gamma <= step_gamma) weight = 0.0_real64
    else if (rho <= fade_from) then
      weight = 0.0_real64
    else if (rho < fade_to) then
      call fade(rho, weight, slope)
    end if
    part = 0.0_real64
    if (self%number == blyp) then
      call lee_yang_parr(rho, t, merge(gamma, 0.0_real64, weight > 0.0_real64), other, part)
      energy = energy + other(1)
      d_rho = d_rho + other(2)
    end if
    if (weight <= 0.0_real64) return
    select case (self%number)
    case (blyp)
      call becke(rho, t, gamma, other)
    case (pbe)
      call pbe_exchange(rho, t, gamma, other)
      call pbe_correlation(rho, t, gamma, eps, v, part)
    end select
    part = part + other
    energy = energy + weight*part(1)
    d_rho = d_rho + weight*part(2) + slope*part(1)
    d_gamma = weight*part(3)
  end subroutine evaluate

  !> On points of a plane (x, y). `gradient` (x, y, axis; no axis where the functional needs none): of the density;
  !> receives 2 df/dgamma times it. `potential`: receives df/drho; `energy`: gains the sum of f.
  pure subroutine evaluate_plane(self, density, gradient, potential, energy)
    class(xc_t), intent(in) :: self
    real(real64), intent(in) :: density(:, :)
    real(real64), intent(inout) :: gradient(:, :, :), energy
    real(real64), intent(out) :: potential(:, :)
    real(real64) :: f, d_gamma
    integer :: x, y
    do y = 1, size(density, 2)
      do x = 1, size(density, 1)
        call self%evaluate(density(x, y), sum(gradient(x, y, :)**2), f, potential(x, y), d_gamma)
        energy = energy + f
        gradient(x, y, :) = 2.0_real64*d_gamma*gradient(x, y, :)
      end do
    end do
  end subroutine evaluate_plane

  !> A quintic in the logarithm of the density from 0 to 1 with two continuous derivatives, and its slope.
  pure subroutine fade(rho, weight, slope)
    real(real64), intent(in) :: rho
    real(real64), intent(out) :: weight, slope
    real(real64) :: t
    t = log(rho/fade_from)/log(fade_to/fade_from)
    weight = t**3*(10.0_real64 + t*(6.0_real64*t - 15.0_real64))
    slope = 30.0_real64*t**2*(1.0_real64 - t)**2/(rho*log(fade_to/fade_from))
  end subroutine fade

  !> Correlation per electron and potential, at t = rho^(-1/3).
  pure subroutine perdew_zunger(t, eps, v)
    real(real64), intent(in) :: t
    real(real64), intent(out) :: eps, v
    real(real64), parameter :: a = 0.0311_real64, b = -0.048_real64, c = 0.0020_real64, d = -0.0116_real64
    real(real64), parameter :: g = -0.1423_real64, b1 = 1.0529_real64, b2 = 0.3334_real64
    real(real64) :: rs, root, low
    rs = wigner*t
    if (rs < 1.0_real64) then
      eps = a*log(rs) + b + c*rs*log(rs) + d*rs
      v = eps - third*(a + c*rs*log(rs) + c*rs + d*rs)
    else
      root = sqrt(rs)
      low = 1.0_real64 + b1*root + b2*rs
      eps = g/low
      v = eps*(1.0_real64 + third*(0.5_real64*b1*root + b2*rs)/low)
    end if
  end subroutine perdew_zunger

  pure subroutine perdew_wang(t, eps, v)
    real(real64), intent(in) :: t
    real(real64), intent(out) :: eps, v
    real(real64), parameter :: a = 0.031091_real64, a1 = 0.21370_real64
    real(real64), parameter :: b(4) = [7.5957_real64, 3.5876_real64, 1.6382_real64, 0.49294_real64]
    real(real64) :: rs, root, q, q_rs, l, eps_rs
    rs = wigner*t
    root = sqrt(rs)
    q = 2.0_real64*a*root*(b(1) + root*(b(2) + root*(b(3) + root*b(4))))
    q_rs = a*(b(1)/root + 2.0_real64*b(2) + root*(3.0_real64*b(3) + 4.0_real64*b(4)*root))
    l = log(1.0_real64 + 1.0_real64/q)
    eps = -2.0_real64*a*(1.0_real64 + a1*rs)*l
    eps_rs = -2.0_real64*a*(a1*l - (1.0_real64 + a1*rs)*q_rs/(q*(q + 1.0_real64)))
    v = eps - third*rs*eps_rs
  end subroutine perdew_wang

  !> The same of exchange and correlation together.
  pure subroutine pade_lda(t, eps, v)
    real(real64), intent(in) :: t
    real(real64), intent(out) :: eps, v
    real(real64), parameter :: a(0:3) = [0.4581652932831429_real64, 2.217058676663745_real64, 0.7405551735357053_real64, &
                                         0.01968227878617998_real64]
    real(real64), parameter :: b(4) = [1.0_real64, 4.504130959426697_real64, 1.110667363742916_real64, &
                                       0.02359291751427506_real64]
    real(real64) :: rs, top, low, top_rs, low_rs
    rs = wigner*t
    top = a(0) + rs*(a(1) + rs*(a(2) + rs*a(3)))
    top_rs = a(1) + rs*(2.0_real64*a(2) + 3.0_real64*rs*a(3))
    low = rs*(b(1) + rs*(b(2) + rs*(b(3) + rs*b(4))))
    low_rs = b(1) + rs*(2.0_real64*b(2) + rs*(3.0_real64*b(3) + 4.0_real64*rs*b(4)))
    eps = -top/low
    v = eps + third*rs*(top_rs - top*low_rs/low)/low
  end subroutine pade_lda

  !> Energy per volume and its derivatives with respect to rho and gamma, without a gradient (`local`) and what the
  !> gradient adds, in which the functional is linear.
  pure subroutine lee_yang_parr(rho, t, gamma, local, f)
    real(real64), intent(in) :: rho, t, gamma
    real(real64), intent(out) :: local(3), f(3)
    real(real64), parameter :: a = 0.04918_real64, b = 0.132_real64, c = 0.2533_real64, d = 0.349_real64
    real(real64), parameter :: uniform = 0.3_real64*fermi**2
    real(real64) :: low, delta, e, e_rho, delta_rho, slope, slope_rho, low_rho, over_rho
    over_rho = t**3
    low = 1.0_real64/(1.0_real64 + d*t)
    low_rho = third*d*t*over_rho*low**2
    delta = c*t + d*t*low
    e = b*exp(-c*t)
    e_rho = third*c*e*t*over_rho
    delta_rho = -third*t*over_rho*(c + d*low**2)
    slope = over_rho*t**2*(3.0_real64 + 7.0_real64*delta)/72.0_real64
    slope_rho = over_rho*t**2*7.0_real64*delta_rho/72.0_real64 - 5.0_real64*third*slope*over_rho
    local(1) = -a*low*rho*(1.0_real64 + e*uniform)
    local(2) = -a*(low_rho*rho*(1.0_real64 + e*uniform) + low*(1.0_real64 + e*uniform + rho*e_rho*uniform))
    local(3) = 0.0_real64
    f(3) = a*low*e*slope
    f(1) = f(3)*gamma
    f(2) = a*gamma*(low_rho*e*slope + low*(e_rho*slope + e*slope_rho))
  end subroutine lee_yang_parr

  !> What the gradient adds, as the following.
  pure subroutine becke(rho, t, gamma, f)
    real(real64), intent(in) :: rho, t, gamma
    real(real64), intent(out) :: f(3)
    real(real64), parameter :: beta = 0.0042_real64, half_root = 0.5_real64**third
    real(real64) :: n_third, over, x, root, arc, low, low_x, g, g_x_over_x
    ! Of one spin: n^(1/3), n^(-4/3).
    n_third = half_root/t
    over = 2.0_real64*t**4/half_root
    x = 0.5_real64*sqrt(gamma)*over
    root = sqrt(1.0_real64 + x**2)
    arc = log(x + root)
    low = 1.0_real64/(1.0_real64 + 6.0_real64*beta*x*arc)
    low_x = 6.0_real64*beta*(arc + x/root)
    g = x**2*low
    g_x_over_x = (2.0_real64 - x*low_x*low)*low
    f(1) = -beta*rho*n_third*g
    f(2) = -4.0_real64*third*beta*n_third*(g - x**2*g_x_over_x)
    f(3) = -0.25_real64*beta*g_x_over_x*over
  end subroutine becke

  pure subroutine pbe_exchange(rho, t, gamma, f)
    real(real64), intent(in) :: rho, t, gamma
    real(real64), intent(out) :: f(3)
    real(real64), parameter :: kappa = 0.804_real64, mu = 0.2195149727645171_real64
    real(real64) :: v, s2_gamma, s2, low, g_s2
    v = slater/t
    s2_gamma = 0.25_real64*t**8/fermi**2
    s2 = gamma*s2_gamma
    low = 1.0_real64 + mu*s2/kappa
    g_s2 = mu/low**2
    f(1) = 0.75_real64*rho*v*mu*s2/low
    f(2) = v*(mu*s2/low - 2.0_real64*g_s2*s2)
    f(3) = 0.75_real64*rho*v*g_s2*s2_gamma
  end subroutine pbe_exchange

  !> `eps`, `v`: of the uniform gas.
  pure subroutine pbe_correlation(rho, t, gamma, eps, v, f)
    real(real64), intent(in) :: rho, t, gamma, eps, v
    real(real64), intent(out) :: f(3)
    real(real64), parameter :: beta = 0.06672455060314922_real64, g = 0.0310906908696548950_real64
    real(real64) :: r_gamma, r, growth, a, a_eps, y, m, p, p_r, p_a, factor, h
    ! r is the square of the reduced gradient.
    r_gamma = pi*t**7/(16.0_real64*fermi)
    r = gamma*r_gamma
    growth = exp(-eps/g)
    a = beta/g/(growth - 1.0_real64)
    a_eps = a**2*growth/beta
    y = a*r
    m = 1.0_real64 + y + y**2
    p = r*(1.0_real64 + y)/m
    p_r = (1.0_real64 + 2.0_real64*y)/m**2
    p_a = -r**2*y*(2.0_real64 + y)/m**2
    h = g*log(1.0_real64 + beta/g*p)
    factor = beta/(1.0_real64 + beta/g*p)
    f(1) = rho*h
    f(2) = h + factor*(-7.0_real64*third*r*p_r + p_a*a_eps*(v - eps))
    f(3) = rho*factor*p_r*r_gamma
  end subroutine pbe_correlation

end module xc_functional
