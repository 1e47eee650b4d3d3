!> The ions: where they are, what they are, and their Coulomb energy by Ewald summation. Atomic units.
module ions
  use base_kinds, only: real64
  use base_constants, only: pi
  use comm_communicator, only: communicator_t
  use pseudopotential, only: pseudopotential_t
  use wave_sphere, only: sphere_t
  implicit none
  private
  public :: ewald_kernel, ions_t, shortest_distance

  type :: ions_t
    !> Edges of the box (bohr).
    real(real64) :: box(3) = 0.0_real64
    !> Whether these ions are alone, or repeated with the box.
    logical :: is_cluster = .false.
    !> Of each atom: species, position (3, n) in bohr, velocity, mass in masses of the electron.
    integer, allocatable :: species(:)
    real(real64), allocatable :: position(:, :), velocity(:, :), mass(:)
    !> Kinds of atoms.
    type(pseudopotential_t), allocatable :: pseudo(:)
  contains
    procedure :: n_atoms
    procedure :: charge
    procedure :: coulomb
    procedure, private :: ewald_pairs
    procedure, private :: direct_sum
    procedure :: kinetic_energy
  end type ions_t

  !> exp(-this) is where both sums of Ewald end: below the rounding of the total.
  real(real64), parameter :: sharpness = 38.0_real64

contains

  pure integer function n_atoms(self)
    class(ions_t), intent(in) :: self
    n_atoms = size(self%species)
  end function n_atoms

  !> Charge of an ion (e).
  elemental real(real64) function charge(self, atom)
    class(ions_t), intent(in) :: self
    integer, intent(in) :: atom
    charge = self%pseudo(self%species(atom))%charge
  end function charge

  pure real(real64) function kinetic_energy(self)
    class(ions_t), intent(in) :: self
    kinetic_energy = 0.5_real64*sum(self%mass*sum(self%velocity**2, 1))
  end function kinetic_energy

  !> Coulomb energy of the ions, and the forces of it added to `force` (3, n); of periodic ones without the sum over waves,
  !> for which there is `ewald_kernel`. `sphere`: waves of the density. Each rank adds its part; the caller sums over ranks.
  subroutine coulomb(self, sphere, comm, energy, force)
    class(ions_t), intent(in) :: self
    type(sphere_t), intent(in) :: sphere
    type(communicator_t), intent(in) :: comm
    real(real64), intent(out) :: energy
    real(real64), intent(inout) :: force(:, :)
    if (self%is_cluster) then
      call self%direct_sum(comm, energy, force)
    else
      call self%ewald_pairs(sphere, comm, energy, force)
    end if
  end subroutine coulomb

  !> Of ions that are alone: pairs in turn to ranks.
  subroutine direct_sum(self, comm, energy, force)
    class(ions_t), intent(in) :: self
    type(communicator_t), intent(in) :: comm
    real(real64), intent(out) :: energy
    real(real64), intent(inout) :: force(:, :)
    real(real64) :: d(3), pair
    integer :: a, b
    energy = 0.0_real64
    do a = 1 + comm%rank, self%n_atoms(), comm%n_ranks
      do b = 1, self%n_atoms()
        if (a == b) cycle
        d = self%position(:, a) - self%position(:, b)
        pair = self%charge(a)*self%charge(b)/norm2(d)
        energy = energy + 0.5_real64*pair
        force(:, a) = force(:, a) + pair/sum(d**2)*d
      end do
    end do
  end subroutine direct_sum

  !> Of periodic ones, with a uniform background that makes the box neutral: what Ewald's method sums over pairs.
  subroutine ewald_pairs(self, sphere, comm, energy, force)
    class(ions_t), intent(in) :: self
    type(sphere_t), intent(in) :: sphere
    type(communicator_t), intent(in) :: comm
    real(real64), intent(out) :: energy
    real(real64), intent(inout) :: force(:, :)
    real(real64) :: alpha, reach, d(3), r2, r, q(self%n_atoms()), pair, slope
    integer :: a, b, x, y, z, most(3), shift(3)

    do a = 1, self%n_atoms()
      q(a) = self%charge(a)
    end do
    alpha = split(sphere)
    reach = sqrt(sharpness)/alpha
    energy = 0.0_real64
    if (comm%is_root()) &
      energy = -alpha/sqrt(pi)*sum(q**2) - pi*sum(q)**2/(2.0_real64*sphere%volume*alpha**2)

    ! Pairs and images in turn to ranks.
    do a = 1 + comm%rank, self%n_atoms(), comm%n_ranks
      do b = 1, self%n_atoms()
        d = self%position(:, a) - self%position(:, b)
        shift = nint(d/self%box)
        d = d - shift*self%box
        most = int(reach/self%box + 0.5_real64) + 1
        do z = -most(3), most(3)
          do y = -most(2), most(2)
            do x = -most(1), most(1)
              if (a == b .and. all([x, y, z] == 0)) cycle
              r2 = sum((d + [x, y, z]*self%box)**2)
              if (r2 > reach**2) cycle
              r = sqrt(r2)
              pair = q(a)*q(b)*erfc(alpha*r)/r
              slope = (pair + q(a)*q(b)*2.0_real64*alpha/sqrt(pi)*exp(-(alpha*r)**2))/r2
              energy = energy + 0.5_real64*pair
              force(:, a) = force(:, a) + slope*(d + [x, y, z]*self%box)
            end do
          end do
        end do
      end do
    end do
  end subroutine ewald_pairs

  !> What is left of the energy of periodic ions (hartree): the sum over all waves of this times the squares of
  !> sum over ions of charge exp(-iG.R).
  function ewald_kernel(sphere) result(kernel)
    type(sphere_t), intent(in) :: sphere
    real(real64) :: kernel(sphere%n_waves)
    where (sphere%g2 > 0.0_real64)
      kernel = 2.0_real64*pi/sphere%volume*exp(-0.25_real64*sphere%g2/split(sphere)**2)/sphere%g2
    elsewhere
      kernel = 0.0_real64
    end where
  end function ewald_kernel

  !> Where Ewald's method splits 1/r (1/bohr): the waves set how its two sums share the work.
  pure real(real64) function split(sphere)
    type(sphere_t), intent(in) :: sphere
    split = sqrt(0.25_real64*sphere%largest_g2/sharpness)
  end function split

  !> The smallest distance (bohr) between two atoms or an atom and an image, and the two atoms.
  pure subroutine shortest_distance(position, box, distance, pair)
    real(real64), intent(in) :: position(:, :), box(3)
    real(real64), intent(out) :: distance
    integer, intent(out) :: pair(2)
    real(real64) :: d(3)
    integer :: a, b
    distance = minval(box)
    pair = 0
    do a = 1, size(position, 2)
      do b = a + 1, size(position, 2)
        d = position(:, a) - position(:, b)
        d = d - nint(d/box)*box
        if (norm2(d) >= distance) cycle
        distance = norm2(d)
        pair = [a, b]
      end do
    end do
  end subroutine shortest_distance

end module ions
