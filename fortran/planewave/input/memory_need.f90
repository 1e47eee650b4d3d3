!> The memory that a run takes, reckoned before it takes any.
module memory_need
  use base_kinds, only: real64
  use base_constants, only: pi
  use euler_spline, only: spline_settings_t
  use wave_sphere, only: grid_size
  implicit none
  private
  public :: bytes_of_rank

  !> Program and message library of a rank.
  real(real64), parameter :: of_program = 8.0e7_real64
  !> Fields and lines of transforms for a point of the grid, without and with the gradient of the density; copies of all
  !> states in waves, with the projectors of atoms. From resident sets of runs: tests/planewave/test_memory_need.py.
  real(real64), parameter :: of_point = 98.0_real64, of_point_with_gradient = 155.0_real64, &
                             copies_of_states = 8.0_real64
  !> Matrices of states that all ranks have.
  real(real64), parameter :: matrices = 4.0_real64

contains

  !> Bytes that a rank of `n_ranks` needs, all with equal shares. `cutoff`: rydberg; `box`: bohr; `memory`: megabytes a
  !> rank that states on the grid may take, which they take where that is enough. All in real numbers: no cutoff is too
  !> large to be refused.
  pure real(real64) function bytes_of_rank(cutoff, box, n_states, n_species, uses_gradient, memory, splines, n_ranks) &
    result(bytes)
    real(real64), intent(in) :: cutoff, box(3)
    integer, intent(in) :: n_states, n_species, memory, n_ranks
    logical, intent(in) :: uses_gradient
    type(spline_settings_t), intent(in) :: splines
    real(real64) :: points, waves, kept
    points = product(real(grid_size(4.0_real64*cutoff, box), real64))
    waves = product(box)*cutoff**1.5_real64/(12.0_real64*pi**2)
    bytes = merge(of_point_with_gradient, of_point, uses_gradient)*points + 16.0_real64*copies_of_states*waves*n_states
    ! Meshes of splines: of each species, as fine as the grid; of some states, half as fine along each edge.
    if (splines%for_local) bytes = bytes + 16.0_real64*n_species*points*splines%scale**3
    if (splines%for_nonlocal) bytes = bytes + 2.0_real64*points*splines%scale**3
    kept = 16.0_real64*points*((n_states + 1)/2)/n_ranks
    if (kept > memory*1048576.0_real64) kept = 0.0_real64
    bytes = of_program + bytes/n_ranks + kept + 8.0_real64*matrices*real(n_states, real64)**2
  end function bytes_of_rank

end module memory_need
