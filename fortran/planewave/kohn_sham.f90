!> The Kohn-Sham energy of states in a box, its derivative with respect to their coefficients, and the forces on ions.
!> Gamma point, all states with the same occupation. Atomic units.
module kohn_sham
  use base_kinds, only: real64
  use base_constants, only: pi
  use comm_communicator, only: communicator_t
  use cluster_screening, only: screening_function
  use euler_spline, only: spline_settings_t
  use ions, only: ewald_kernel, ions_t
  use nonlocal_potential, only: nonlocal_potential_t
  use sphere_transform, only: sphere_transform_t
  use state_planes, only: state_planes_t
  use structure_factors, only: structure_factors_t
  use wave_sphere, only: grid_size, sphere_t
  use xc_functional, only: xc_t
  implicit none
  private
  public :: kohn_sham_t, energies_t

  !> Parts of the energy (hartree).
  type :: energies_t
    real(real64) :: kinetic = 0.0_real64, hartree = 0.0_real64, local = 0.0_real64, nonlocal = 0.0_real64, &
                    xc = 0.0_real64, ewald = 0.0_real64
  contains
    procedure :: total
  end type energies_t

  type :: kohn_sham_t
    type(communicator_t) :: comm
    !> Waves of states, and of density and potential.
    type(sphere_t) :: waves, dense
    integer :: n_states = 0
    real(real64) :: occupation = 2.0_real64
    type(xc_t) :: xc
    type(sphere_transform_t) :: state_transform
    type(sphere_transform_t), private :: dense_transform
    !> Interaction of charges on the dense waves (bohr^2).
    real(real64), allocatable, private :: coulomb(:)
    !> Local potentials of species times the volume (dense waves, species), and of all ions.
    real(real64), allocatable, private :: local_form(:, :)
    complex(real64), allocatable, private :: v_local(:)
    type(structure_factors_t), private :: structure
    type(nonlocal_potential_t), private :: nonlocal
    !> Electron density (1/bohr^3) on the grid and its waves, each a list of one field; Kohn-Sham potential (hartree).
    real(real64), allocatable, private :: density(:, :, :, :), potential(:, :, :)
    complex(real64), allocatable, private :: density_waves(:, :)
    !> States on the grid, where there is memory for them.
    complex(real64), allocatable, private :: kept(:, :, :)
    !> Of the ions alone: energy; forces but for the sum over waves, whose kernel and charge density follow.
    real(real64), private :: ewald_energy = 0.0_real64
    real(real64), allocatable, private :: ewald_force(:, :), kernel(:)
    complex(real64), allocatable, private :: charge_waves(:)
  contains
    procedure :: create
    procedure :: move_ions
    procedure :: evaluate
    procedure :: forces
    procedure, private :: density_and_potential
    procedure, private :: exchange_correlation
  end type kohn_sham_t

contains

  pure real(real64) function total(self)
    class(energies_t), intent(in) :: self
    total = self%kinetic + self%hartree + self%local + self%nonlocal + self%xc + self%ewald
  end function total

  !> Make waves, transforms and form factors. `cutoff`: largest kinetic energy of a wave (rydberg); `memory`: megabytes a
  !> rank that states on the grid may take, so that they are not transformed a second time; `map`: where those are.
  subroutine create(self, comm, system, cutoff, n_states, occupation, xc, memory, splines, map)
    class(kohn_sham_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(ions_t), intent(in) :: system
    real(real64), intent(in) :: cutoff, occupation
    integer, intent(in) :: n_states, memory
    type(xc_t), intent(in) :: xc
    type(spline_settings_t), intent(in) :: splines
    type(state_planes_t), intent(in) :: map
    real(real64), allocatable :: screening(:)
    integer :: n(3), s, n_objects

    self%comm = comm
    self%n_states = n_states
    self%occupation = occupation
    self%xc = xc
    n = grid_size(4.0_real64*cutoff, system%box)
    call self%waves%create(system%box, n, cutoff, comm%n_ranks, comm%rank)
    call self%dense%create(system%box, n, 4.0_real64*cutoff, comm%n_ranks, comm%rank)
    call self%state_transform%create(self%waves, comm, map)
    call self%dense_transform%create(self%dense, comm)
    allocate (screening(self%dense%n_waves), self%coulomb(self%dense%n_waves), source=0.0_real64)
    if (system%is_cluster) screening = screening_function(self%dense, self%dense_transform)
    where (self%dense%g2 > 0.0_real64) self%coulomb = 4.0_real64*pi/self%dense%g2
    self%coulomb = self%coulomb + screening
    allocate (self%local_form(self%dense%n_waves, size(system%pseudo)))
    do s = 1, size(system%pseudo)
      self%local_form(:, s) = system%pseudo(s)%local_form(self%dense%g2) - system%pseudo(s)%charge*screening
    end do
    call self%structure%create(self%dense, system, splines, comm)
    call self%nonlocal%create(self%waves, system, n_states, splines, comm)
    associate (n_planes => self%state_transform%n_planes)
      n_objects = self%state_transform%map%n_objects((n_states + 1)/2)
      ! All ranks keep states or none does; one without planes of states has room for one all the same.
      n_objects = merge(max(1, n_objects), 0, comm%maximum(16.0_real64*n(1)*n(2)*n_objects) <= memory*1048576.0_real64)
      allocate (self%kept(n(1), n(2), n_objects))
      allocate (self%density(n(1), n(2), n_planes, 1), self%potential(n(1), n(2), n_planes))
    end associate
    allocate (self%density_waves(self%dense%n_waves, 1), self%v_local(self%dense%n_waves))
    allocate (self%ewald_force(3, system%n_atoms()), self%charge_waves(self%dense%n_waves))
    allocate (self%kernel(self%dense%n_waves), source=0.0_real64)
    if (.not. system%is_cluster) self%kernel = ewald_kernel(self%dense)
  end subroutine create

  !> Take notice of new positions: local potential, projectors, energy of the ions.
  subroutine move_ions(self, system)
    class(kohn_sham_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    real(real64) :: sums(1 + 3*system%n_atoms()), part(self%dense%n_waves)
    integer :: s

    call self%structure%move(self%dense, system)
    call self%nonlocal%move(self%waves, system)
    self%v_local = 0.0_real64
    self%charge_waves = 0.0_real64
    do s = 1, size(system%pseudo)
      self%v_local = self%v_local + self%local_form(:, s)*self%structure%value(:, s)/self%dense%volume
      self%charge_waves = self%charge_waves + system%pseudo(s)%charge*self%structure%value(:, s)
    end do
    self%ewald_force = 0.0_real64
    call system%coulomb(self%dense, self%comm, self%ewald_energy, self%ewald_force)
    part = self%kernel*(real(self%charge_waves, real64)**2 + aimag(self%charge_waves)**2)
    sums = [self%ewald_energy + self%dense%doubled(part), self%ewald_force]
    call self%comm%sum(sums)
    self%ewald_energy = sums(1)
    self%ewald_force = reshape(sums(2:), shape(self%ewald_force))
  end subroutine move_ions

  !> Energy of orthonormal states (waves, states) and H times each of them.
  subroutine evaluate(self, system, states, product, energy)
    class(kohn_sham_t), intent(inout) :: self
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
    class(kohn_sham_t), intent(inout) :: self
    complex(real64), intent(in) :: states(:, :)
    type(energies_t), intent(inout) :: energy
    complex(real64), allocatable :: v(:, :)
    real(real64), allocatable :: v_grid(:, :, :, :), part(:)

    self%density = 0.0_real64
    call self%state_transform%add_density(states, self%occupation/self%waves%volume, self%density(:, :, :, 1), &
                                          self%kept)
    call self%dense_transform%to_waves(self%density, self%density_waves)
    allocate (v(self%dense%n_waves, 1), part(self%dense%n_waves))
    allocate (v_grid, mold=self%density)
    associate (rho => self%density_waves(:, 1))
      v(:, 1) = self%coulomb*rho
      part = real(conjg(v(:, 1))*rho, real64)
      energy%hartree = 0.5_real64*self%dense%volume*self%dense%doubled(part)
      part = real(conjg(self%v_local)*rho, real64)
      energy%local = self%dense%volume*self%dense%doubled(part)
    end associate
    v(:, 1) = v(:, 1) + self%v_local
    call self%exchange_correlation(v(:, 1), energy%xc)
    call self%dense_transform%to_grid(v, v_grid)
    self%potential = self%potential + v_grid(:, :, :, 1)
  end subroutine density_and_potential

  !> Exchange and correlation: energy of this rank's planes, the local part of the potential in `potential`, and what
  !> comes from the gradient added to the waves `v`: f(rho, |grad rho|^2) has the potential
  !> df/drho - div(2 df/dgamma grad rho), both derivatives on the waves of the density.
  subroutine exchange_correlation(self, v, energy)
    class(kohn_sham_t), intent(inout) :: self
    complex(real64), intent(inout) :: v(:)
    real(real64), intent(out) :: energy
    complex(real64), parameter :: i = (0.0_real64, 1.0_real64)
    complex(real64), allocatable :: slope(:, :)
    real(real64), allocatable :: gradient(:, :, :, :)
    real(real64) :: gamma, d_gamma, f, of_plane(size(self%density, 3))
    integer :: x, y, z, axis, n_axes

    n_axes = merge(3, 0, self%xc%uses_gradient())
    associate (n => shape(self%potential))
      allocate (slope(self%dense%n_waves, n_axes), gradient(n(1), n(2), n(3), n_axes))
    end associate
    do axis = 1, n_axes
      slope(:, axis) = i*self%dense%g(:, axis)*self%density_waves(:, 1)
    end do
    if (n_axes > 0) call self%dense_transform%to_grid(slope, gradient)
    of_plane = 0.0_real64
    !$omp parallel do private(x, y, gamma, f, d_gamma)
    do z = 1, size(self%density, 3)
      do y = 1, size(self%density, 2)
        do x = 1, size(self%density, 1)
          gamma = sum(gradient(x, y, z, :)**2)
          call self%xc%evaluate(self%density(x, y, z, 1), gamma, f, self%potential(x, y, z), d_gamma)
          of_plane(z) = of_plane(z) + f
          gradient(x, y, z, :) = 2.0_real64*d_gamma*gradient(x, y, z, :)
        end do
      end do
    end do
    energy = sum(of_plane)*self%dense%volume/product(real(self%dense%n, real64))
    if (n_axes == 0) return
    call self%dense_transform%to_waves(gradient, slope)
    do axis = 1, 3
      v = v - i*self%dense%g(:, axis)*slope(:, axis)
    end do
  end subroutine exchange_correlation

  !> Forces on the ions (3, n) in hartree/bohr at the states of the last evaluation.
  subroutine forces(self, system, states, force)
    class(kohn_sham_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    complex(real64), contiguous, intent(in) :: states(:, :)
    real(real64), intent(out) :: force(:, :)
    complex(real64), allocatable :: field(:, :)
    real(real64), allocatable :: local(:, :)
    real(real64) :: sums(3*system%n_atoms())
    integer :: s

    allocate (local(3, system%n_atoms()), source=0.0_real64)
    allocate (field(self%dense%n_waves, size(system%pseudo)))
    do s = 1, size(field, 2)
      field(:, s) = self%local_form(:, s)*self%density_waves(:, 1) + &
                    2.0_real64*system%pseudo(s)%charge*self%kernel*self%charge_waves
    end do
    call self%structure%forces(self%dense, system, field, local)
    sums = [local]
    call self%comm%sum(sums)
    force = self%ewald_force + reshape(sums, shape(force))
    call self%nonlocal%forces(self%waves, self%comm, system, states, self%occupation, force)
  end subroutine forces

end module kohn_sham
