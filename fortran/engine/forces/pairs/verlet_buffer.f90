!> How long a pair list with a buffer serves, from the energy that missed pairs are allowed to add.
!>
!> A list holds the pairs that were within cutoff + b of each other. A pair that was farther and has come to r < cutoff
!> is missed, and its energy V(r) - V(cutoff) enters at once when the list is renewed. For uncorrelated atoms of density
!> rho whose displacements along a line have the relative standard deviation s, that is, per atom,
!>     2 pi cutoff^2 rho * integral over u from 0 of |V(cutoff - u) - V(cutoff)| * erfc((b + u)/(s sqrt 2))/2 du,
!> as in Pall and Hess, Comput. Phys. Commun. 184, 2641 (2013), with the potential itself in place of its expansion. All
!> signs are taken to add up, which makes it an upper estimate of the drift. Displacements are those of the run: what is
!> estimated beforehand is only their ratio between light and heavy atoms, that of free flight.
module verlet_buffer
  use base_kinds, only: real64
  use base_constants, only: pi
  use pair_forms, only: force_shift, quintic_switch, vdw_cut, vdw_force_shift, vdw_force_switch, vdw_pme, vdw_quintic_switch, &
                        vdw_shift, vdw_switch
  use pair_parameters, only: pair_parameters_t
  implicit none
  private
  public :: verlet_buffer_t, list_limit_t

  !> Depths inside the cutoff at which potentials are tabulated, as far as `deepest` (angstrom).
  integer, parameter :: n_depths = 60
  real(real64), parameter :: deepest = 3.0_real64
  integer, parameter :: n_displacements = 64
  !> A model of what a buffer costs. Entries of a list with the reach r are as (r + cluster_depth)^3, since clusters stick
  !> out of the sphere; to look through an entry of the outer list costs this share of what its forces cost.
  real(real64), parameter :: cluster_depth = 1.5_real64, look_cost = 0.25_real64
  !> Buffers that are compared: multiples of this (angstrom).
  real(real64), parameter :: buffer_step = 0.05_real64
  !> Steps beyond which nothing is gained.
  integer, parameter :: longest_service = 100

  !> The atoms and their potential.
  type :: verlet_buffer_t
    private
    !> Of each pair of classes of atoms: standard deviation of the relative displacement for a root mean square
    !> displacement (in space) of 1 over all atoms; and the prefactor times |V(cutoff - u) - V(cutoff)| at each depth.
    real(real64), allocatable :: spread(:), energy(:, :)
    !> Energy (kcal/mol) per atom that a list may miss for each step that it has served; 0 = none.
    real(real64), public :: per_step = 0.0_real64
    !> Root mean square displacement of the atoms in a step of free flight (angstrom).
    real(real64) :: flight = 0.0_real64
  contains
    procedure :: prepare
    procedure :: limit
    procedure :: cheapest_buffer
  end type verlet_buffer_t

  !> How far atoms may have moved, for one buffer.
  type :: list_limit_t
    real(real64) :: buffer = 0.0_real64
    real(real64) :: per_step = 0.0_real64
    !> Missed energy per atom (kcal/mol) when the root mean square displacement is k/n_displacements of the buffer.
    real(real64), private :: missed(0:n_displacements) = 0.0_real64
  contains
    procedure :: keeps
  end type list_limit_t

contains

  !> Classes of atoms by mass (atomic mass units), with the number of atoms of each class and Lennard-Jones type and the
  !> sum of |charge| of each class (e); c6 and c12 of each pair of types (kcal/mol, angstrom). `density`: atoms per cubic
  !> angstrom; `per_step` as above; `flight`: displacement (angstrom) in a step of free flight of a mass of 1.
  subroutine prepare(self, pair, switch_distance, coulomb_constant, mass, number, charge, c6, c12, density, per_step, &
                     flight)
    class(verlet_buffer_t), intent(out) :: self
    type(pair_parameters_t), intent(in) :: pair
    real(real64), intent(in) :: switch_distance, coulomb_constant, density, per_step, flight
    real(real64), intent(in) :: mass(:), number(:, :), charge(:), c6(:, :), c12(:, :)
    real(real64) :: atoms(size(mass)), shape(3, n_depths), at_cutoff(3), mean_square, shell
    integer :: a, b, k, n

    self%per_step = per_step
    at_cutoff = potential(pair, switch_distance, pair%cutoff)
    do k = 1, n_depths
      shape(:, k) = potential(pair, switch_distance, pair%cutoff - (k - 0.5_real64)*deepest/n_depths) - at_cutoff
    end do
    atoms = sum(number, dim=2)
    ! Of free flight along one axis, in units of its average over the atoms.
    mean_square = sum(atoms/mass)/sum(atoms)
    self%flight = flight*sqrt(mean_square)
    allocate (self%spread(size(mass)*(size(mass) + 1)/2), self%energy(n_depths, size(mass)*(size(mass) + 1)/2))
    n = 0
    do a = 1, size(mass)
      do b = a, size(mass)
        n = n + 1
        self%spread(n) = sqrt((1.0_real64/mass(a) + 1.0_real64/mass(b))/(3.0_real64*mean_square))
        shell = merge(1.0_real64, 2.0_real64, a == b)*2.0_real64*pi*pair%cutoff**2*density/sum(atoms)**2* &
                deepest/n_depths
        self%energy(:, n) = shell*(coulomb_constant*charge(a)*charge(b)*abs(shape(3, :)) + &
                                   abs(dot_product(number(a, :), matmul(c12, number(b, :)))*shape(2, :) - &
                                       dot_product(number(a, :), matmul(c6, number(b, :)))*shape(1, :)))
      end do
    end do
  end subroutine prepare

  !> Of a pair with c6 = 1, c12 = 1 and charge product over Coulomb constant = 1: r^-6, r^-12 and Coulomb terms as the
  !> real-space force has them, up to constants.
  pure function potential(pair, switch_distance, r) result(value)
    type(pair_parameters_t), intent(in) :: pair
    real(real64), intent(in) :: switch_distance, r
    real(real64) :: value(3), u, y, switching, on3, off3, added(2), unused
    value = [r**(-6), r**(-12), erfc(pair%alpha*r)/r]
    select case (pair%vdw_form)
    case (vdw_cut, vdw_shift)
      continue
    case (vdw_switch)
      u = max(0.0_real64, (r**2 - switch_distance**2)/(pair%cutoff**2 - switch_distance**2))
      switching = 1.0_real64 - u**2*(3.0_real64 - 2.0_real64*u)
      value(1:2) = switching*value(1:2)
    case (vdw_force_switch)
      if (r > switch_distance) then
        on3 = switch_distance**3
        off3 = pair%cutoff**3
        value(1) = off3/(off3 - on3)*(r**(-3) - 1.0_real64/off3)**2
        value(2) = off3**2/(off3**2 - on3**2)*(r**(-6) - off3**(-2))**2
      else
        value(1) = r**(-6) - (switch_distance*pair%cutoff)**(-3)
        value(2) = r**(-12) - (switch_distance*pair%cutoff)**(-6)
      end if
    case (vdw_quintic_switch)
      value(1:2) = quintic_switch((r - switch_distance)/(pair%cutoff - switch_distance))*value(1:2)
    case (vdw_force_shift)
      call force_shift(6, switch_distance, pair%cutoff, r, added(1), unused)
      call force_shift(12, switch_distance, pair%cutoff, r, added(2), unused)
      value(1:2) = value(1:2) + added
    case (vdw_pme)
      y = (pair%dispersion_alpha*r)**2
      value(1) = exp(-y)*(1.0_real64 + y + 0.5_real64*y**2)*r**(-6)
    end select
  end function potential

  !> What a list with this buffer (angstrom) misses.
  pure type(list_limit_t) function limit(self, buffer)
    class(verlet_buffer_t), intent(in) :: self
    real(real64), intent(in) :: buffer
    real(real64) :: apart
    integer :: k, n, u
    limit%buffer = buffer
    limit%per_step = self%per_step
    do k = 1, n_displacements
      do n = 1, size(self%spread)
        do u = 1, n_depths
          apart = (buffer + (u - 0.5_real64)*deepest/n_depths)/(self%spread(n)*buffer*k/n_displacements)
          if (apart > 8.0_real64) exit
          limit%missed(k) = limit%missed(k) + self%energy(u, n)*0.5_real64*erfc(apart/sqrt(2.0_real64))
        end do
      end do
    end do
  end function limit

  !> The buffer (angstrom) of the inner list, at most `largest`, with which a step costs least: a larger one means more
  !> pairs, a smaller one that the outer list with the reach `outer` is looked through more often. Atoms fly freely.
  pure real(real64) function cheapest_buffer(self, cutoff, outer, largest) result(best)
    class(verlet_buffer_t), intent(in) :: self
    real(real64), intent(in) :: cutoff, outer, largest
    type(list_limit_t) :: limit
    real(real64) :: buffer, cost, least
    integer :: k, steps
    best = largest
    least = huge(least)
    do k = 1, int(largest/buffer_step)
      buffer = k*buffer_step
      limit = self%limit(buffer)
      steps = 0
      do while (steps < longest_service .and. limit%keeps((self%flight*(steps + 1))**2, steps + 1, 0.0_real64))
        steps = steps + 1
      end do
      ! New entries serve the step that chooses them in any case.
      cost = (cutoff + buffer + cluster_depth)**3 + look_cost*(outer + cluster_depth)**3/(steps + 1)
      if (cost >= least) cycle
      least = cost
      best = buffer
    end do
  end function cheapest_buffer

  !> Whether the list still serves when it is `steps` old and atoms have moved by `mean_square` (angstrom^2) on average.
  !> `lost` (angstrom): what a shrinking box took from the buffer.
  pure logical function keeps(self, mean_square, steps, lost)
    class(list_limit_t), intent(in) :: self
    real(real64), intent(in) :: mean_square, lost
    integer, intent(in) :: steps
    real(real64) :: place
    integer :: k
    keeps = .false.
    if (.not. lost < self%buffer) return
    place = n_displacements*sqrt(mean_square)/(self%buffer - lost)
    if (.not. place < n_displacements) return
    k = int(place)
    keeps = self%missed(k) + (place - k)*(self%missed(k + 1) - self%missed(k)) <= self%per_step*max(steps, 1)
  end function keeps

end module verlet_buffer
