!> The Kohn-Sham energy of states in a box, its derivative with respect to their coefficients, and the forces on ions.
!> Gamma point, all states with the same occupation. Atomic units.
module kohn_sham
  use base_kinds, only: real64
  use base_constants, only: pi
  use comm_communicator, only: communicator_t
  use cluster_screening, only: screening_function
  use ions, only: ions_t
  use pseudopotential, only: real_harmonic
  use sphere_transform, only: sphere_transform_t
  use state_planes, only: state_planes_t
  use state_products, only: add_rotated, overlap
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

  !> Of one species: its projectors with all magnetic quantum numbers on the waves, and their couplings (hartree).
  type :: projectors_t
    real(real64), allocatable :: form(:, :), coupling(:, :)
    integer, allocatable :: l(:)
  end type projectors_t

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
    type(projectors_t), allocatable, private :: species(:)
    !> Projectors of all atoms (waves, projectors), the first of each atom, and <projector|state>.
    complex(real64), allocatable, private :: projector(:, :)
    integer, allocatable, private :: first_projector(:)
    real(real64), allocatable, private :: projection(:, :)
    !> Electron density (1/bohr^3) on the grid and its waves, each a list of one field; Kohn-Sham potential (hartree).
    real(real64), allocatable, private :: density(:, :, :, :), potential(:, :, :)
    complex(real64), allocatable, private :: density_waves(:, :)
    !> States on the grid, where there is memory for them.
    complex(real64), allocatable, private :: kept(:, :, :)
    !> Of the ions alone.
    real(real64), private :: ewald_energy = 0.0_real64
    real(real64), allocatable, private :: ewald_force(:, :)
  contains
    procedure :: create
    procedure :: move_ions
    procedure :: evaluate
    procedure :: forces
    procedure, private :: density_and_potential
    procedure, private :: exchange_correlation
    procedure, private :: coupled_projection
  end type kohn_sham_t

contains

  pure real(real64) function total(self)
    class(energies_t), intent(in) :: self
    total = self%kinetic + self%hartree + self%local + self%nonlocal + self%xc + self%ewald
  end function total

  !> Make waves, transforms and form factors. `cutoff`: largest kinetic energy of a wave (rydberg); `memory`: megabytes a
  !> rank that states on the grid may take, so that they are not transformed a second time; `map`: where those are.
  subroutine create(self, comm, system, cutoff, n_states, occupation, xc, memory, map)
    class(kohn_sham_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(ions_t), intent(in) :: system
    real(real64), intent(in) :: cutoff, occupation
    integer, intent(in) :: n_states, memory
    type(xc_t), intent(in) :: xc
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
    allocate (self%local_form(self%dense%n_waves, size(system%pseudo)), self%species(size(system%pseudo)))
    do s = 1, size(system%pseudo)
      self%local_form(:, s) = system%pseudo(s)%local_form(self%dense%g2) - system%pseudo(s)%charge*screening
      call make_projectors(self%waves, system, s, self%species(s))
    end do
    associate (n_planes => self%state_transform%n_planes)
      n_objects = self%state_transform%map%n_objects((n_states + 1)/2)
      ! All ranks keep states or none does; one without planes of states has room for one all the same.
      n_objects = merge(max(1, n_objects), 0, comm%maximum(16.0_real64*n(1)*n(2)*n_objects) <= memory*1048576.0_real64)
      allocate (self%kept(n(1), n(2), n_objects))
      allocate (self%density(n(1), n(2), n_planes, 1), self%potential(n(1), n(2), n_planes))
    end associate
    allocate (self%density_waves(self%dense%n_waves, 1), self%v_local(self%dense%n_waves))
    allocate (self%ewald_force(3, system%n_atoms()))
  end subroutine create

  !> Projectors of one species, without the phase of a place.
  subroutine make_projectors(waves, system, s, projectors)
    type(sphere_t), intent(in) :: waves
    type(ions_t), intent(in) :: system
    integer, intent(in) :: s
    type(projectors_t), intent(out) :: projectors
    real(real64), allocatable :: direction(:, :), radial(:)
    integer, allocatable :: of(:), m_of(:)
    integer :: k, m, i, j, axis

    associate (pseudo => system%pseudo(s))
      allocate (projectors%form(waves%n_waves, pseudo%n_functions()))
      allocate (projectors%coupling(pseudo%n_functions(), pseudo%n_functions()), source=0.0_real64)
      allocate (of(0), m_of(0), direction(waves%n_waves, 3))
      do axis = 1, 3
        direction(:, axis) = waves%g(:, axis)/sqrt(max(waves%g2, tiny(1.0_real64)))
      end do
      do k = 1, size(pseudo%l)
        radial = pseudo%radial_form(k, waves%g2)/sqrt(waves%volume)
        do m = 1, 2*pseudo%l(k) + 1
          of = [of, k]
          m_of = [m_of, m]
          projectors%form(:, size(of)) = radial*real_harmonic(pseudo%l(k), m, direction)
        end do
      end do
      do i = 1, size(of)
        do j = 1, size(of)
          if (m_of(i) == m_of(j) .and. pseudo%l(of(i)) == pseudo%l(of(j))) &
            projectors%coupling(i, j) = pseudo%h(of(i), of(j))
        end do
      end do
      projectors%l = pseudo%l(of)
    end associate
  end subroutine make_projectors

  !> Take notice of new positions: local potential, projectors, energy of the ions.
  subroutine move_ions(self, system)
    class(kohn_sham_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    complex(real64), allocatable :: phase(:)
    complex(real64), parameter :: turn(0:3) = [(1.0_real64, 0.0_real64), (0.0_real64, -1.0_real64), &
                                               (-1.0_real64, 0.0_real64), (0.0_real64, 1.0_real64)]
    real(real64) :: sums(1 + 3*system%n_atoms())
    integer :: a, k, n, s

    if (.not. allocated(self%first_projector)) then
      allocate (self%first_projector(system%n_atoms() + 1))
      n = 1
      do a = 1, system%n_atoms()
        self%first_projector(a) = n
        n = n + size(self%species(system%species(a))%l)
      end do
      self%first_projector(system%n_atoms() + 1) = n
      allocate (self%projector(self%waves%n_waves, n - 1), self%projection(n - 1, self%n_states))
    end if
    allocate (phase(self%dense%n_waves))
    self%v_local = 0.0_real64
    do a = 1, system%n_atoms()
      call self%dense%phases(system%position(:, a), phase)
      self%v_local = self%v_local + self%local_form(:, system%species(a))*phase/self%dense%volume
    end do
    deallocate (phase)
    allocate (phase(self%waves%n_waves))
    do a = 1, system%n_atoms()
      s = system%species(a)
      if (size(self%species(s)%l) == 0) cycle
      call self%waves%phases(system%position(:, a), phase)
      do k = 1, size(self%species(s)%l)
        self%projector(:, self%first_projector(a) + k - 1) = &
          turn(self%species(s)%l(k))*self%species(s)%form(:, k)*phase
      end do
    end do
    self%ewald_force = 0.0_real64
    call system%coulomb(self%dense, self%comm, self%ewald_energy, self%ewald_force)
    sums = [self%ewald_energy, self%ewald_force]
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
    real(real64), allocatable :: coupled(:, :)
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
    call overlap(self%waves, self%comm, self%projector, states, self%projection)
    allocate (coupled, source=self%coupled_projection(system))
    call add_rotated(self%projector, coupled, product)
    energy%nonlocal = self%occupation*sum(coupled*self%projection)
    ! Rounding must not give the wave G = 0 of a real field an imaginary part.
    if (self%waves%zero > 0) product(self%waves%zero, :) = real(product(self%waves%zero, :), real64)
  end subroutine evaluate

  !> Couplings times projections, atom by atom.
  function coupled_projection(self, system) result(coupled)
    class(kohn_sham_t), intent(in) :: self
    type(ions_t), intent(in) :: system
    real(real64) :: coupled(size(self%projection, 1), size(self%projection, 2))
    integer :: a
    do a = 1, system%n_atoms()
      associate (first => self%first_projector(a), last => self%first_projector(a + 1) - 1)
        if (last >= first) &
          coupled(first:last, :) = matmul(self%species(system%species(a))%coupling, self%projection(first:last, :))
      end associate
    end do
  end function coupled_projection

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
    complex(real64), allocatable :: phase(:), slope(:, :)
    real(real64), allocatable :: part(:), coupled(:, :), change(:, :), local(:, :)
    real(real64) :: sums(3*system%n_atoms())
    integer :: a, axis, k

    allocate (local(3, system%n_atoms()), source=0.0_real64)
    allocate (phase(self%dense%n_waves), part(self%dense%n_waves))
    do a = 1, system%n_atoms()
      call self%dense%phases(system%position(:, a), phase)
      part = self%local_form(:, system%species(a))*aimag(conjg(phase)*self%density_waves(:, 1))
      do axis = 1, 3
        local(axis, a) = 2.0_real64*sum(part*self%dense%g(:, axis))
      end do
    end do
    sums = [local]
    call self%comm%sum(sums)
    force = self%ewald_force + reshape(sums, shape(force))

    if (size(self%projection, 1) == 0) return
    allocate (coupled, source=self%coupled_projection(system))
    allocate (slope, mold=self%projector)
    allocate (change, mold=self%projection)
    do axis = 1, 3
      !$omp parallel do
      do k = 1, size(slope, 2)
        slope(:, k) = cmplx(self%waves%g(:, axis)*aimag(self%projector(:, k)), &
                            -self%waves%g(:, axis)*real(self%projector(:, k), real64), real64)
      end do
      call overlap(self%waves, self%comm, slope, states, change)
      change = coupled*change
      do a = 1, system%n_atoms()
        force(axis, a) = force(axis, a) - 2.0_real64*self%occupation* &
                         sum(change(self%first_projector(a):self%first_projector(a + 1) - 1, :))
      end do
    end do
  end subroutine forces

end module kohn_sham
