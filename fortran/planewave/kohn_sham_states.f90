!> The layer of whole states: every rank has its waves of all states, and planes of the grid of pairs of states. Phases
!> follow each other, and all ranks have all matrices of states.
module kohn_sham_states
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use comm_communicator, only: communicator_t
  use cluster_screening, only: screening_function
  use density_waves, only: density_waves_t
  use euler_spline, only: spline_settings_t
  use ions, only: ions_t
  use kohn_sham, only: energies_t, kohn_sham_t
  use message_traffic, only: traffic_t
  use nonlocal_potential, only: nonlocal_potential_t
  use sphere_transform, only: sphere_transform_t
  use start_states, only: draw_states
  use state_planes, only: state_planes_t
  use state_products, only: add_products => add_rotated, make_orthonormal => orthonormalise, overlap_of => overlap
  use wave_sphere, only: grid_size
  use xc_functional, only: xc_t
  implicit none
  private
  public :: kohn_sham_states_t

  type, extends(kohn_sham_t) :: kohn_sham_states_t
    type(sphere_transform_t) :: state_transform
    type(sphere_transform_t), private :: dense_transform
    !> Waves of the density held here, and what acts there.
    type(density_waves_t), private :: dense
    type(nonlocal_potential_t), private :: nonlocal
    !> Electron density (1/bohr^3) on the grid and its waves, each a list of one field; Kohn-Sham potential (hartree).
    real(real64), allocatable, private :: density(:, :, :, :), potential(:, :, :)
    complex(real64), allocatable, private :: density_waves(:, :)
    !> States on the grid, where there is memory for them.
    complex(real64), allocatable, private :: kept(:, :, :)
    !> The last S^(-1/2).
    real(real64), allocatable, private :: root(:, :)
  contains
    procedure :: create
    procedure :: draw
    procedure :: move_ions
    procedure :: evaluate
    procedure :: forces
    procedure :: overlap
    procedure :: add_rotated
    procedure :: project_out
    procedure :: orthonormalise
    procedure :: rotate
    procedure :: traffic
    procedure, private :: density_and_potential
    procedure, private :: exchange_correlation
  end type kohn_sham_states_t

contains

  !> Make waves, transforms and form factors. `cutoff`: largest kinetic energy of a wave (rydberg); `memory`: megabytes a
  !> rank that states on the grid may take, so that they are not transformed a second time; `map`: where those are.
  subroutine create(self, comm, system, cutoff, n_states, occupation, xc, memory, splines, map)
    class(kohn_sham_states_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(ions_t), intent(in) :: system
    real(real64), intent(in) :: cutoff, occupation
    integer, intent(in) :: n_states, memory
    type(xc_t), intent(in) :: xc
    type(spline_settings_t), intent(in) :: splines
    type(state_planes_t), intent(in) :: map
    real(real64), allocatable :: screening(:)
    integer :: n(3), n_objects

    call self%init(comm, n_states, occupation, xc)
    n = grid_size(4.0_real64*cutoff, system%box)
    call self%waves%create(system%box, n, cutoff, comm%n_ranks, comm%rank)
    self%n_rows = self%waves%n_waves
    self%n_columns = n_states
    self%g2 = self%waves%g2
    self%zero = pack([self%waves%zero], [self%waves%zero > 0])
    call self%dense%sphere%create(system%box, n, 4.0_real64*cutoff, comm%n_ranks, comm%rank)
    call self%state_transform%create(self%waves, comm, map)
    call self%dense_transform%create(self%dense%sphere, comm)
    allocate (screening(self%dense%sphere%n_waves), source=0.0_real64)
    if (system%is_cluster) screening = screening_function(self%dense%sphere, self%dense_transform)
    call self%dense%create(system, splines, comm, screening)
    call self%nonlocal%create(self%waves, system, n_states, splines, comm)
    associate (n_planes => self%state_transform%n_planes)
      n_objects = self%state_transform%map%n_objects((n_states + 1)/2)
      ! All ranks keep states or none does; one without planes of states has room for one all the same.
      n_objects = merge(max(1, n_objects), 0, comm%maximum(16.0_real64*n(1)*n(2)*n_objects) <= memory*1048576.0_real64)
      allocate (self%kept(n(1), n(2), n_objects))
      allocate (self%density(n(1), n(2), n_planes, 1), self%potential(n(1), n(2), n_planes))
    end associate
    allocate (self%density_waves(self%dense%sphere%n_waves, 1), self%root(n_states, n_states))
  end subroutine create

  subroutine draw(self, seed, states)
    class(kohn_sham_states_t), intent(in) :: self
    integer(int64), intent(in) :: seed
    complex(real64), contiguous, intent(out) :: states(:, :)
    call draw_states(self%waves, seed, 1, states)
  end subroutine draw

  subroutine move_ions(self, system)
    class(kohn_sham_states_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    real(real64) :: of_waves

    call self%dense%move_ions(system, of_waves)
    call self%nonlocal%move(self%waves, system)
    call self%take_coulomb(system, self%dense%sphere, of_waves)
  end subroutine move_ions

  subroutine evaluate(self, system, states, product, energy)
    class(kohn_sham_states_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    complex(real64), contiguous, intent(in) :: states(:, :)
    complex(real64), contiguous, intent(out) :: product(:, :)
    type(energies_t), intent(out) :: energy
    real(real64) :: sums(4), row(size(states, 2))
    integer :: s

    call self%density_and_potential(states, energy)
    !$omp parallel do
    do s = 1, size(states, 2)
      product(:, s) = 0.5_real64*self%waves%g2*states(:, s)
      row(s) = sum(real(states(:, s), real64)*real(product(:, s), real64) + aimag(states(:, s))*aimag(product(:, s)))
    end do
    energy%kinetic = 2.0_real64*self%occupation*sum(row)
    call self%state_transform%apply_potential(self%potential, states, product, self%kept)
    sums = [energy%kinetic, energy%hartree, energy%local, energy%xc]
    call self%comm%sum(sums)
    energy%kinetic = sums(1)
    energy%hartree = sums(2)
    energy%local = sums(3)
    energy%xc = sums(4)
    energy%ewald = self%ewald_energy
    call self%nonlocal%apply(self%waves, self%comm, system, states, product, energy%nonlocal)
    energy%nonlocal = self%occupation*energy%nonlocal
    ! Rounding must not give the wave G = 0 of a real field an imaginary part.
    if (self%waves%zero > 0) product(self%waves%zero, :) = real(product(self%waves%zero, :), real64)
  end subroutine evaluate

  !> The density of states, the potential of it and of the ions, and this rank's part of their energies.
  subroutine density_and_potential(self, states, energy)
    class(kohn_sham_states_t), intent(inout) :: self
    complex(real64), intent(in) :: states(:, :)
    type(energies_t), intent(inout) :: energy
    complex(real64), allocatable :: v(:, :)
    real(real64), allocatable :: v_grid(:, :, :, :)

    self%density = 0.0_real64
    call self%state_transform%add_density(states, self%occupation/self%waves%volume, self%density(:, :, :, 1), &
                                          self%kept)
    call self%dense_transform%to_waves(self%density, self%density_waves)
    allocate (v, mold=self%density_waves)
    allocate (v_grid, mold=self%density)
    call self%dense%potential(self%density_waves(:, 1), v(:, 1), energy%hartree, energy%local)
    call self%exchange_correlation(v(:, 1), energy%xc)
    call self%dense_transform%to_grid(v, v_grid)
    self%potential = self%potential + v_grid(:, :, :, 1)
  end subroutine density_and_potential

  !> Exchange and correlation: energy of this rank's planes, the local part of the potential in `potential`, and what
  !> comes from the gradient added to the waves `v`: f(rho, |grad rho|^2) has the potential
  !> df/drho - div(2 df/dgamma grad rho), both derivatives on the waves of the density.
  subroutine exchange_correlation(self, v, energy)
    class(kohn_sham_states_t), intent(inout) :: self
    complex(real64), intent(inout) :: v(:)
    real(real64), intent(out) :: energy
    complex(real64), allocatable :: slope(:, :)
    real(real64), allocatable :: gradient(:, :, :, :)
    real(real64) :: of_plane(size(self%density, 3))
    integer :: z, n_axes

    n_axes = merge(3, 0, self%xc%uses_gradient())
    associate (n => shape(self%potential))
      allocate (slope(size(v), n_axes), gradient(n(1), n(2), n(3), n_axes))
    end associate
    call self%dense%gradient(self%density_waves(:, 1), slope)
    if (n_axes > 0) call self%dense_transform%to_grid(slope, gradient)
    of_plane = 0.0_real64
    !$omp parallel do
    do z = 1, size(self%density, 3)
      call self%xc%evaluate_plane(self%density(:, :, z, 1), gradient(:, :, z, :), self%potential(:, :, z), of_plane(z))
    end do
    energy = sum(of_plane)*self%waves%volume/product(real(self%waves%n, real64))
    if (n_axes == 0) return
    call self%dense_transform%to_waves(gradient, slope)
    call self%dense%add_divergence(slope, v)
  end subroutine exchange_correlation

  subroutine forces(self, system, states, force)
    class(kohn_sham_states_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    complex(real64), contiguous, intent(in) :: states(:, :)
    real(real64), intent(out) :: force(:, :)
    real(real64), allocatable :: local(:, :)
    real(real64) :: sums(3*system%n_atoms())

    allocate (local(3, system%n_atoms()), source=0.0_real64)
    call self%dense%forces(system, self%density_waves(:, 1), local)
    sums = [local]
    call self%comm%sum(sums)
    force = self%ewald_force + reshape(sums, shape(force))
    call self%nonlocal%forces(self%waves, self%comm, system, states, self%occupation, force)
  end subroutine forces

  subroutine overlap(self, a, b, s, is_symmetric)
    class(kohn_sham_states_t), intent(inout) :: self
    complex(real64), contiguous, intent(in) :: a(:, :), b(:, :)
    real(real64), intent(out) :: s(:, :)
    logical, intent(in) :: is_symmetric
    call overlap_of(self%waves, self%comm, a, b, s, is_symmetric)
  end subroutine overlap

  subroutine add_rotated(self, states, matrix, target_states)
    class(kohn_sham_states_t), intent(inout) :: self
    complex(real64), contiguous, intent(in) :: states(:, :)
    real(real64), intent(in) :: matrix(:, :)
    complex(real64), contiguous, intent(inout) :: target_states(:, :)
    associate (unused => self); end associate
    call add_products(states, matrix, target_states)
  end subroutine add_rotated

  subroutine project_out(self, states, vectors, is_symmetric)
    class(kohn_sham_states_t), intent(inout) :: self
    complex(real64), contiguous, intent(in) :: states(:, :)
    complex(real64), contiguous, intent(inout) :: vectors(:, :)
    logical, intent(in) :: is_symmetric
    real(real64), allocatable :: along(:, :)
    allocate (along, mold=self%root)
    call overlap_of(self%waves, self%comm, states, vectors, along, is_symmetric)
    call add_products(states, -along, vectors)
  end subroutine project_out

  subroutine orthonormalise(self, states, error, worst)
    class(kohn_sham_states_t), intent(inout) :: self
    complex(real64), contiguous, intent(inout) :: states(:, :)
    type(error_t), allocatable, intent(out) :: error
    real(real64), intent(out), optional :: worst
    call make_orthonormal(self%waves, self%comm, states, error, self%root, worst)
  end subroutine orthonormalise

  subroutine rotate(self, vectors)
    class(kohn_sham_states_t), intent(inout) :: self
    complex(real64), contiguous, intent(inout) :: vectors(:, :)
    complex(real64), allocatable :: old(:, :)
    allocate (old, source=vectors)
    vectors = 0.0_real64
    call add_products(old, self%root, vectors)
  end subroutine rotate

  function traffic(self) result(sent)
    class(kohn_sham_states_t), intent(in) :: self
    type(traffic_t), allocatable :: sent(:)
    sent = [self%state_transform%transposes, self%state_transform%densities, self%state_transform%potentials]
  end function traffic

end module kohn_sham_states
