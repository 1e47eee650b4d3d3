!> A box of TIP3P-like water for the benchmarks of the pair kernels.
module water_box
  use base_kinds, only: int64, real64
  use lennard_jones, only: lennard_jones_t
  implicit none
  private
  public :: make_water, water_lennard_jones

  !> Of the lattice, angstrom: the density of the liquid.
  real(real64), parameter :: spacing = 3.104_real64

contains

  !> Type 1: oxygen; type 2: hydrogen, which has no Lennard-Jones terms.
  type(lennard_jones_t) function water_lennard_jones() result(lj)
    allocate (lj%sigma, source=[3.15075_real64, 1.0_real64])
    allocate (lj%epsilon, source=[0.1521_real64, 0.0_real64])
    allocate (lj%c6(2, 2), lj%c12(2, 2), source=0.0_real64)
    lj%c6(1, 1) = 4.0_real64*lj%epsilon(1)*lj%sigma(1)**6
    lj%c12(1, 1) = lj%c6(1, 1)*lj%sigma(1)**6
  end function water_lennard_jones

  !> `n_side`^3 waters on a jittered lattice, oriented at random: box (angstrom), positions in it, charges, types and the
  !> pairs of a water. A linear congruential generator keeps the box the same everywhere.
  subroutine make_water(n_side, box, position, charge, lj_type, exclusion)
    integer, intent(in) :: n_side
    real(real64), intent(out) :: box(3)
    real(real64), allocatable, intent(out) :: position(:, :), charge(:)
    integer, allocatable, intent(out) :: lj_type(:), exclusion(:, :)
    integer(int64) :: state
    integer :: x, y, z, w
    real(real64) :: centre(3), a(3), b(3), u(3), v(3)

    box = n_side*spacing
    allocate (position(3, 3*n_side**3), charge(3*n_side**3), lj_type(3*n_side**3), exclusion(2, 3*n_side**3))
    state = 12345
    w = 0
    do z = 0, n_side - 1
      do y = 0, n_side - 1
        do x = 0, n_side - 1
          centre = ([x, y, z] + 0.5_real64)*spacing + 0.4_real64*[uniform(state), uniform(state), uniform(state)]
          a = [uniform(state), uniform(state), uniform(state)] + 1.0e-3_real64
          b = [uniform(state), uniform(state), uniform(state)] - 1.0e-3_real64
          u = a/norm2(a)
          v = b - dot_product(b, u)*u
          v = v/norm2(v)
          position(:, w + 1) = centre
          position(:, w + 2) = centre + 0.9572_real64*u
          position(:, w + 3) = centre + 0.9572_real64*(-0.25_real64*u + 0.968_real64*v)
          charge(w + 1:w + 3) = [-0.834_real64, 0.417_real64, 0.417_real64]
          lj_type(w + 1:w + 3) = [1, 2, 2]
          exclusion(:, w + 1) = [w + 1, w + 2]
          exclusion(:, w + 2) = [w + 1, w + 3]
          exclusion(:, w + 3) = [w + 2, w + 3]
          w = w + 3
        end do
      end do
    end do
    do w = 1, size(position, 2)
      position(:, w) = modulo(position(:, w), box)
    end do
  end subroutine make_water

  !> From -1 to 1.
  real(real64) function uniform(state)
    integer(int64), intent(inout) :: state
    state = modulo(state*1103515245_int64 + 12345_int64, 2147483648_int64)
    uniform = 2.0_real64*real(state, real64)/2147483648.0_real64 - 1.0_real64
  end function uniform

end module water_box
