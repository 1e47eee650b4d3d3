!> What an ion does to the valence electrons: a local potential and separable (Kleinman-Bylander) projectors, either the
!> Gaussian form of Goedecker, Teter and Hutter (Phys. Rev. B 54, 1703 (1996); Hartwigsen, Goedecker and Hutter, Phys.
!> Rev. B 58, 3641 (1998)) or tables on a radial mesh from a UPF file. Atomic units.
module pseudopotential
  use base_kinds, only: real64
  use base_constants, only: pi
  implicit none
  private
  public :: pseudopotential_t, real_harmonic, most_l

  !> Largest angular momentum of a projector.
  integer, parameter :: most_l = 2

  type :: pseudopotential_t
    !> Element; file or table that it is from; functional that it is made with: LDA, BLYP, PBE.
    character(len=2) :: element = ""
    character(len=:), allocatable :: source, functional
    !> Charge of the ion (e).
    real(real64) :: charge = 0.0_real64
    !> Is it on a mesh?
    logical :: is_table = .false.
    !> Gaussian form: radius (bohr) and coefficients of the local part (hartree).
    real(real64) :: r_local = 0.0_real64, c(4) = 0.0_real64
    !> Projectors: angular momentum, number within it, radius (Gaussian form, bohr); coupling (hartree).
    integer, allocatable :: l(:), order(:)
    real(real64), allocatable :: radius(:), h(:, :)
    !> Mesh (bohr), weights, local potential (hartree), r times projectors; points used of the local part, of projectors.
    real(real64), allocatable :: r(:), weight(:), v_local(:), r_beta(:, :)
    integer :: n_local = 0, n_beta = 0
  contains
    procedure :: local_form
    procedure :: radial_form
    procedure :: n_functions
    procedure :: narrowest
  end type pseudopotential_t

contains

  !> Projectors with all their magnetic quantum numbers.
  pure integer function n_functions(self)
    class(pseudopotential_t), intent(in) :: self
    n_functions = sum(2*self%l + 1)
  end function n_functions

  !> The smallest radius of the Gaussian form (bohr); 0 for tables.
  pure real(real64) function narrowest(self)
    class(pseudopotential_t), intent(in) :: self
    narrowest = 0.0_real64
    if (.not. self%is_table) narrowest = min(self%r_local, minval(self%radius))
  end function narrowest

  !> Fourier transform of the local potential times the volume (hartree bohr^3) at squares of wave vectors; at zero
  !> without the Coulomb term, which cancels those of electrons and other ions.
  function local_form(self, g2) result(v)
    class(pseudopotential_t), intent(in) :: self
    real(real64), intent(in) :: g2(:)
    real(real64) :: v(size(g2))
    real(real64) :: x2
    real(real64), allocatable :: shell(:), value(:), part(:)
    integer, allocatable :: shell_of(:)
    integer :: k

    if (self%is_table) then
      call find_shells(g2, shell, shell_of)
      allocate (value(size(shell)), part(self%n_local))
      associate (r => self%r(:self%n_local), z => self%charge)
        do k = 1, size(shell)
          if (shell(k) < tiny(1.0_real64)) then
            part = r*(r*self%v_local(:self%n_local) + z)
            value(k) = 4.0_real64*pi*simpson(part, self%weight)
          else
            part = (r*self%v_local(:self%n_local) + z*erf(r))*sin(sqrt(shell(k))*r)/sqrt(shell(k))
            value(k) = 4.0_real64*pi*(simpson(part, self%weight) - z*exp(-0.25_real64*shell(k))/shell(k))
          end if
        end do
      end associate
      v = value(shell_of)
      return
    end if
    associate (c => self%c, r => self%r_local)
      do k = 1, size(g2)
        x2 = g2(k)*r**2
        v(k) = sqrt(8.0_real64*pi**3)*r**3*(c(1) + c(2)*(3.0_real64 - x2) + &
               c(3)*(15.0_real64 - x2*(10.0_real64 - x2)) + c(4)*(105.0_real64 - x2*(105.0_real64 - x2*(21.0_real64 - x2))))
        if (g2(k) > 0.0_real64) then
          v(k) = exp(-0.5_real64*x2)*(v(k) - 4.0_real64*pi*self%charge/g2(k))
        else
          v(k) = v(k) + 2.0_real64*pi*r**2*self%charge
        end if
      end do
    end associate
  end function local_form

  !> Fourier transform of projector `k` without its angular part, times the root of the volume.
  function radial_form(self, k, g2) result(form)
    class(pseudopotential_t), intent(in) :: self
    integer, intent(in) :: k
    real(real64), intent(in) :: g2(:)
    real(real64) :: form(size(g2))
    real(real64), allocatable :: shell(:), value(:), part(:)
    integer, allocatable :: shell_of(:)
    integer :: s

    call find_shells(g2, shell, shell_of)
    allocate (value(size(shell)))
    if (self%is_table) then
      allocate (part(self%n_beta))
      associate (r => self%r(:self%n_beta))
        do s = 1, size(shell)
          part = self%r_beta(:self%n_beta, k)*r*spherical_bessel(self%l(k), sqrt(shell(s))*r)
          value(s) = 4.0_real64*pi*simpson(part, self%weight)
        end do
      end associate
    else
      do s = 1, size(shell)
        value(s) = gaussian_projector(self%l(k), self%order(k), self%radius(k), shell(s))
      end do
    end if
    form = value(shell_of)
  end function radial_form

  !> Projector `i` of angular momentum l in the Gaussian form.
  pure real(real64) function gaussian_projector(l, i, radius, g2) result(form)
    integer, intent(in) :: l, i
    real(real64), intent(in) :: radius, g2
    real(real64) :: x2, p
    x2 = g2*radius**2
    p = 0.0_real64
    select case (10*l + i)
    case (1)
      p = 1.0_real64
    case (2)
      p = 2.0_real64*(3.0_real64 - x2)/sqrt(15.0_real64)
    case (3)
      p = 4.0_real64*(15.0_real64 - x2*(10.0_real64 - x2))/(3.0_real64*sqrt(105.0_real64))
    case (11)
      p = 1.0_real64/sqrt(3.0_real64)
    case (12)
      p = 2.0_real64*(5.0_real64 - x2)/sqrt(105.0_real64)
    case (13)
      p = 4.0_real64*(35.0_real64 - x2*(14.0_real64 - x2))/(3.0_real64*sqrt(1155.0_real64))
    case (21)
      p = 1.0_real64/sqrt(15.0_real64)
    case (22)
      p = 2.0_real64*(7.0_real64 - x2)/(3.0_real64*sqrt(105.0_real64))
    end select
    form = 4.0_real64*pi*pi**0.25_real64*sqrt(2.0_real64**(l + 1)*radius**(2*l + 3))*p*sqrt(g2)**l*exp(-0.5_real64*x2)
  end function gaussian_projector

  !> Simpson's rule on a mesh with weights dr/dk; the last point is left out where their number is even.
  pure real(real64) function simpson(values, weight) result(total)
    real(real64), intent(in) :: values(:), weight(:)
    integer :: k
    total = 0.0_real64
    do k = 2, size(values) - 1, 2
      total = total + values(k - 1)*weight(k - 1) + 4.0_real64*values(k)*weight(k) + values(k + 1)*weight(k + 1)
    end do
    total = total/3.0_real64
  end function simpson

  !> j_l(x).
  elemental real(real64) function spherical_bessel(l, x) result(j)
    integer, intent(in) :: l
    real(real64), intent(in) :: x
    real(real64) :: term
    integer :: k
    if (x < 0.5_real64) then
      ! Power series.
      j = 0.0_real64
      term = x**l/product([(2.0_real64*k + 1.0_real64, k=0, l)])
      do k = 1, 12
        j = j + term
        term = -term*0.5_real64*x**2/(k*(2.0_real64*(l + k) + 1.0_real64))
      end do
      return
    end if
    select case (l)
    case (0)
      j = sin(x)/x
    case (1)
      j = (sin(x)/x - cos(x))/x
    case default
      j = ((3.0_real64/x**2 - 1.0_real64)*sin(x) - 3.0_real64*cos(x)/x)/x
    end select
  end function spherical_bessel

  !> Real spherical harmonic number m (1 to 2l + 1) of unit vectors (n, 3).
  pure function real_harmonic(l, m, u) result(y)
    integer, intent(in) :: l, m
    real(real64), intent(in) :: u(:, :)
    real(real64) :: y(size(u, 1))
    select case (l)
    case (0)
      y = sqrt(0.25_real64/pi)
    case (1)
      y = sqrt(0.75_real64/pi)*u(:, m)
    case default
      select case (m)
      case (1)
        y = sqrt(3.75_real64/pi)*u(:, 1)*u(:, 2)
      case (2)
        y = sqrt(3.75_real64/pi)*u(:, 2)*u(:, 3)
      case (3)
        y = sqrt(3.75_real64/pi)*u(:, 3)*u(:, 1)
      case (4)
        y = sqrt(0.9375_real64/pi)*(u(:, 1)**2 - u(:, 2)**2)
      case default
        y = sqrt(0.3125_real64/pi)*(3.0_real64*u(:, 3)**2 - sum(u**2, 2))
      end select
    end select
  end function real_harmonic

  !> The different squares of wave vectors, and which of them each is: many share one, and a table is slow to transform.
  subroutine find_shells(g2, shell, shell_of)
    real(real64), intent(in) :: g2(:)
    real(real64), allocatable, intent(out) :: shell(:)
    integer, allocatable, intent(out) :: shell_of(:)
    integer, allocatable :: place(:)
    integer :: k, n_shells
    allocate (place(size(g2)), shell(size(g2)), shell_of(size(g2)))
    call sort(g2, place)
    n_shells = 0
    do k = 1, size(g2)
      associate (value => g2(place(k)))
        if (n_shells == 0) then
          n_shells = 1
          shell(1) = value
        else if (value > shell(n_shells)*(1.0_real64 + 1.0e-12_real64)) then
          n_shells = n_shells + 1
          shell(n_shells) = value
        end if
      end associate
      shell_of(place(k)) = n_shells
    end do
    shell = shell(:n_shells)
  end subroutine find_shells

  !> Places of values in rising order, by merging runs.
  subroutine sort(value, place)
    real(real64), intent(in) :: value(:)
    integer, intent(out) :: place(:)
    integer, allocatable :: merged(:)
    integer :: width, low, middle, high, i, j, k
    place = [(k, k=1, size(value))]
    allocate (merged(size(value)))
    width = 1
    do while (width < size(value))
      do low = 1, size(value), 2*width
        middle = min(low + width, size(value) + 1)
        high = min(low + 2*width, size(value) + 1)
        i = low
        j = middle
        do k = low, high - 1
          if (i < middle .and. (j >= high)) then
            merged(k) = place(i)
            i = i + 1
          else if (i >= middle) then
            merged(k) = place(j)
            j = j + 1
          else if (value(place(i)) <= value(place(j))) then
            merged(k) = place(i)
            i = i + 1
          else
            merged(k) = place(j)
            j = j + 1
          end if
        end do
      end do
      place = merged
      width = 2*width
    end do
  end subroutine sort

end module pseudopotential
