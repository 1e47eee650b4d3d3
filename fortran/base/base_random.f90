!> Counter-based random numbers: Philox 4x32 with 10 rounds (Salmon, Moraes, Dror and Shaw, SC 2011). A number depends
!> only on its key and counter, never on who draws it or when.
module base_random
  use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
  use base_kinds, only: int64, real64
  use base_constants, only: acceleration_unit, boltzmann, pi
  implicit none
  private
  public :: philox, maxwell_velocities, atom_normals, random_stream_t, keyed_uniform, replica_seed, for_thermostat, &
            for_langevin, for_barostat, for_exchange, atoms_together

  integer(int64), parameter :: mask = int(z"FFFFFFFF", int64)
  !> Sequences within a step; blocks of four numbers of one sequence are this far apart in the counter.
  integer(int64), parameter :: max_parts = 16
  !> What a number is for; 0 are the Maxwell velocities.
  integer(int64), parameter :: for_thermostat = 1, for_langevin = 2, for_barostat = 3, for_exchange = 4

  !> So many atoms at once keep vectors full, and their numbers in the cache.
  integer, parameter :: atoms_together = 256

  !> Numbers drawn one after another; which ones depends only on seed, purpose and step.
  type :: random_stream_t
    integer(int64), private :: key(2) = 0, counter(4) = 0
    real(real64), private :: spare(4) = 0.0_real64
    integer, private :: n_spare = 0
  contains
    procedure :: start
    procedure :: uniform
    procedure :: normal
    procedure :: gamma => gamma_variate
  end type random_stream_t

  interface
    !> Philox and Box and Muller's transformation for n atoms at once, in base_normals.c.
    pure subroutine chroma_atom_normals(seed, purpose, step, n, atom, normal) bind(c)
      import :: c_double, c_int64_t
      integer(c_int64_t), value, intent(in) :: seed, purpose, step, n
      integer(c_int64_t), intent(in) :: atom(n)
      real(c_double), intent(out) :: normal(n, 3)
    end subroutine chroma_atom_normals
  end interface

contains

  !> Four 32-bit numbers (held in 64 bits) for a 128-bit counter and a 64-bit key.
  pure function philox(counter, key) result(x)
    integer(int64), intent(in) :: counter(4), key(2)
    integer(int64) :: x(4), k(2), high(2), low(2)
    integer :: round
    x = iand(counter, mask)
    k = iand(key, mask)
    do round = 1, 10
      call multiply(int(z"D2511F53", int64), x(1), high(1), low(1))
      call multiply(int(z"CD9E8D57", int64), x(3), high(2), low(2))
      x = [ieor(ieor(high(2), x(2)), k(1)), low(2), ieor(ieor(high(1), x(4)), k(2)), low(1)]
      k = iand(k + [int(z"9E3779B9", int64), int(z"BB67AE85", int64)], mask)
    end do
  end function philox

  !> 32 x 32 -> 64 bit product in halves; by 16-bit parts so that nothing overflows a signed 64-bit number.
  pure subroutine multiply(a, b, high, low)
    integer(int64), intent(in) :: a, b
    integer(int64), intent(out) :: high, low
    integer(int64) :: lower, upper
    lower = a*iand(b, 65535_int64)
    upper = a*shiftr(b, 16) + shiftr(lower, 16)
    high = shiftr(upper, 16)
    low = ior(shiftl(iand(upper, 65535_int64), 16), iand(lower, 65535_int64))
  end subroutine multiply

  !> Uniform numbers in (0, 1).
  pure function uniforms(bits)
    integer(int64), intent(in) :: bits(4)
    real(real64) :: uniforms(4)
    uniforms = (real(bits, real64) + 0.5_real64)/4294967296.0_real64
  end function uniforms

  !> Counter of an atom (below 2^48) at a step: purpose, atom and step share its 128 bits.
  pure function counter_of(purpose, atom, step) result(counter)
    integer(int64), intent(in) :: purpose, atom, step
    integer(int64) :: counter(4)
    counter = [atom, ior(shiftr(atom, 32), shiftl(purpose, 16)), step, shiftr(step, 32)]
  end function counter_of

  !> Standard normal numbers (atoms, 3) of atoms (below 2^48) for one purpose at one step: the counter of an atom holds
  !> all three, as `counter_of` puts them. The same bits on every processor.
  pure subroutine atom_normals(seed, purpose, atom, step, normals)
    integer(int64), intent(in) :: seed, purpose, atom(:), step
    real(real64), intent(out) :: normals(:, :)
    call chroma_atom_normals(seed, purpose, step, size(atom, kind=int64), atom, normals)
  end subroutine atom_normals

  !> A uniform number in (0, 1) for one purpose at one step; `key` tells several apart.
  pure real(real64) function keyed_uniform(seed, purpose, key, step) result(value)
    integer(int64), intent(in) :: seed, purpose, key, step
    real(real64) :: values(4)
    values = uniforms(philox(counter_of(purpose, key, step), [seed, shiftr(seed, 32)]))
    value = values(1)
  end function keyed_uniform

  !> Seed of a replica, below 2^32: that of the whole for the first.
  pure integer(int64) function replica_seed(seed, replica)
    integer(int64), intent(in) :: seed
    integer, intent(in) :: replica
    integer(int64) :: bits(4)
    replica_seed = seed
    if (replica == 1) return
    bits = philox(counter_of(for_exchange, int(replica, int64), 0_int64), [seed, shiftr(seed, 32)])
    replica_seed = bits(1)
  end function replica_seed

  !> Velocities (3, atoms; angstrom/ps) from the Maxwell distribution. `mass` in atomic mass units, 0 for atoms that do not
  !> move, `temperature` in kelvin.
  pure subroutine maxwell_velocities(seed, atom, mass, temperature, velocity)
    integer(int64), intent(in) :: seed, atom(:)
    real(real64), intent(in) :: mass(:), temperature
    real(real64), intent(out) :: velocity(:, :)
    real(real64) :: normals(atoms_together, 3)
    integer :: first, n, i
    velocity = 0.0_real64
    do first = 0, size(atom) - 1, atoms_together
      n = min(atoms_together, size(atom) - first)
      call atom_normals(seed, 0_int64, atom(first + 1:first + n), 0_int64, normals(:n, :))
      do i = 1, n
        if (mass(first + i) > 0.0_real64) &
          velocity(:, first + i) = normals(i, :)*sqrt(boltzmann*temperature*acceleration_unit/mass(first + i))
      end do
    end do
  end subroutine maxwell_velocities

  !> Begin the numbers of one purpose at one step; `part` (0 to 15) tells apart several sequences within a step.
  pure subroutine start(self, seed, purpose, step, part)
    class(random_stream_t), intent(inout) :: self
    integer(int64), intent(in) :: seed, purpose, step
    integer, intent(in) :: part
    self%key = [seed, shiftr(seed, 32)]
    self%counter = counter_of(purpose, int(part, int64), step)
    self%n_spare = 0
  end subroutine start

  !> The next uniform number in (0, 1).
  real(real64) function uniform(self)
    class(random_stream_t), intent(inout) :: self
    if (self%n_spare == 0) then
      self%spare = uniforms(philox(self%counter, self%key))
      self%n_spare = 4
      self%counter(1) = self%counter(1) + max_parts
    end if
    uniform = self%spare(self%n_spare)
    self%n_spare = self%n_spare - 1
  end function uniform

  !> The next standard normal number.
  real(real64) function normal(self)
    class(random_stream_t), intent(inout) :: self
    real(real64) :: radius
    radius = sqrt(-2.0_real64*log(self%uniform()))
    normal = radius*cos(2.0_real64*pi*self%uniform())
  end function normal

  !> A number from the gamma distribution of unit scale and the given shape (at least 1/2), by Marsaglia and Tsang
  !> (ACM Trans. Math. Softw. 26, 363 (2000)).
  real(real64) function gamma_variate(self, shape) result(value)
    class(random_stream_t), intent(inout) :: self
    real(real64), intent(in) :: shape
    real(real64) :: d, c, x, v
    value = 1.0_real64
    d = shape - 1.0_real64/3.0_real64
    if (shape < 1.0_real64) then
      value = self%uniform()**(1.0_real64/shape)
      d = d + 1.0_real64
    end if
    c = 1.0_real64/sqrt(9.0_real64*d)
    do
      x = self%normal()
      v = (1.0_real64 + c*x)**3
      if (v <= 0.0_real64) cycle
      if (log(self%uniform()) < 0.5_real64*x**2 + d - d*v + d*log(v)) exit
    end do
    value = value*d*v
  end function gamma_variate

end module base_random
