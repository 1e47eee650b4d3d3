!> The separable (Kleinman-Bylander) part of the potential of the ions: projections of states on the projectors of all
!> atoms, the energy, what it does to states, and the forces: as direct products, or by Euler exponential splines.
!>
!> Projectors beta(G) = (-i)^l f(G) exp(-iG.R)/root of the volume, f with the real harmonic of G. A projection is the
!> value at R of the real field with the waves i^l f c; so splines need a transform for each pair of states and kind of
!> projector, and nothing that grows with the number of atoms but the reading of the mesh about each.
module nonlocal_potential
  use base_kinds, only: real64
  use comm_communicator, only: communicator_t
  use euler_spline, only: euler_spline_t, spline_settings_t, support_t
  use ions, only: ions_t
  use pseudopotential, only: real_harmonic
  use state_products, only: add_rotated, overlap_here, sum_matrix
  use wave_sphere, only: sphere_t
  implicit none
  private
  public :: nonlocal_potential_t

  complex(real64), parameter :: turn(0:3) = [(1.0_real64, 0.0_real64), (0.0_real64, -1.0_real64), &
                                             (-1.0_real64, 0.0_real64), (0.0_real64, 1.0_real64)]
  !> States on the mesh at a time.
  integer, parameter :: batch = 8

  !> Of one species: its projectors with all magnetic quantum numbers on the waves, and their couplings (hartree).
  type :: projectors_t
    real(real64), allocatable :: form(:, :), coupling(:, :)
    integer, allocatable :: l(:)
  end type projectors_t

  type :: nonlocal_potential_t
    type(projectors_t), allocatable, private :: species(:)
    !> The first projector of each atom, and the end.
    integer, allocatable, private :: first(:)
    !> <projector|state> (projectors, states).
    real(real64), allocatable, private :: projection(:, :)
    !> Direct: projectors of all atoms (waves, projectors).
    complex(real64), allocatable, private :: projector(:, :)
    !> Splines: about each atom, and derivatives of projections by its place (projectors, states, axis).
    logical, private :: is_spline = .false.
    type(euler_spline_t), private :: spline
    type(support_t), allocatable, private :: support(:)
    real(real64), allocatable, private :: slope(:, :, :)
  contains
    procedure :: create
    procedure :: move
    procedure :: apply
    procedure :: forces
    procedure :: n_projectors
    procedure :: project_here
    procedure :: slope_here
    procedure :: add_here
    procedure :: add_forces
    procedure :: couple
    procedure, private :: project
    procedure, private :: add_spread
  end type nonlocal_potential_t

contains

  subroutine create(self, waves, system, n_states, settings, comm)
    class(nonlocal_potential_t), intent(inout) :: self
    type(sphere_t), intent(in) :: waves
    type(ions_t), intent(in) :: system
    integer, intent(in) :: n_states
    type(spline_settings_t), intent(in) :: settings
    type(communicator_t), intent(in) :: comm
    integer :: s, a

    allocate (self%species(size(system%pseudo)), self%first(system%n_atoms() + 1))
    do s = 1, size(system%pseudo)
      call make_projectors(waves, system, s, self%species(s))
    end do
    self%first(1) = 1
    do a = 1, system%n_atoms()
      self%first(a + 1) = self%first(a) + size(self%species(system%species(a))%l)
    end do
    associate (n => self%first(system%n_atoms() + 1) - 1)
      self%is_spline = settings%for_nonlocal .and. n > 0
      allocate (self%projection(n, n_states), self%projector(waves%n_waves, merge(0, n, self%is_spline)))
      if (.not. self%is_spline) return
      ! Waves of states need half of the points that those of the density need.
      call self%spline%create(waves, (waves%n + 1)/2, settings, comm)
      allocate (self%support(system%n_atoms()), self%slope(n, n_states, 3))
    end associate
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

  !> Take notice of new positions.
  subroutine move(self, waves, system)
    class(nonlocal_potential_t), intent(inout) :: self
    type(sphere_t), intent(in) :: waves
    type(ions_t), intent(in) :: system
    complex(real64), allocatable :: phase(:)
    integer :: a, k
    if (.not. self%is_spline) allocate (phase(waves%n_waves))
    do a = 1, system%n_atoms()
      associate (of => self%species(system%species(a)))
        if (size(of%l) == 0) cycle
        if (self%is_spline) then
          self%support(a) = self%spline%support_of(system%position(:, a))
        else
          call waves%phases(system%position(:, a), phase)
          do k = 1, size(of%l)
            self%projector(:, self%first(a) + k - 1) = turn(of%l(k))*of%form(:, k)*phase
          end do
        end if
      end associate
    end do
  end subroutine move

  !> Add the potential times each state to `product`. `energy`: of one electron in each state (hartree).
  subroutine apply(self, waves, comm, system, states, product, energy)
    class(nonlocal_potential_t), intent(inout) :: self
    type(sphere_t), intent(in) :: waves
    type(communicator_t), intent(in) :: comm
    type(ions_t), intent(in) :: system
    complex(real64), contiguous, intent(in) :: states(:, :)
    complex(real64), contiguous, intent(inout) :: product(:, :)
    real(real64), intent(out) :: energy
    real(real64), allocatable :: coupled(:, :)
    if (self%is_spline) then
      call self%project(comm, system, states)
    else
      call self%project_here(waves, states, self%projection)
      call sum_matrix(comm, self%projection)
    end if
    allocate (coupled, source=self%couple(system, self%projection))
    energy = sum(coupled*self%projection)
    if (self%is_spline) then
      call self%add_spread(system, coupled, product)
    else
      call self%add_here(coupled, product)
    end if
  end subroutine apply

  !> Couplings times projections (projectors, states), atom by atom.
  function couple(self, system, projection) result(coupled)
    class(nonlocal_potential_t), intent(in) :: self
    type(ions_t), intent(in) :: system
    real(real64), intent(in) :: projection(:, :)
    real(real64) :: coupled(size(projection, 1), size(projection, 2))
    integer :: a
    do a = 1, system%n_atoms()
      associate (first => self%first(a), last => self%first(a + 1) - 1)
        if (last >= first) &
          coupled(first:last, :) = matmul(self%species(system%species(a))%coupling, projection(first:last, :))
      end associate
    end do
  end function couple

  !> Projectors of all atoms.
  pure integer function n_projectors(self)
    class(nonlocal_potential_t), intent(in) :: self
    n_projectors = size(self%projection, 1)
  end function n_projectors

  !> What the waves held here add to the projections (projectors, states) of some states; direct sums.
  subroutine project_here(self, waves, states, projection)
    class(nonlocal_potential_t), intent(in) :: self
    type(sphere_t), intent(in) :: waves
    complex(real64), contiguous, intent(in) :: states(:, :)
    real(real64), intent(out) :: projection(:, :)
    call overlap_here(self%projector, states, waves%zero, projection)
  end subroutine project_here

  !> The same of the derivatives of projections by the places of their atoms along an axis.
  subroutine slope_here(self, waves, axis, states, slope)
    class(nonlocal_potential_t), intent(in) :: self
    type(sphere_t), intent(in) :: waves
    integer, intent(in) :: axis
    complex(real64), contiguous, intent(in) :: states(:, :)
    real(real64), intent(out) :: slope(:, :)
    complex(real64), allocatable :: moved(:, :)
    integer :: k
    allocate (moved, mold=self%projector)
    !$omp parallel do
    do k = 1, size(moved, 2)
      moved(:, k) = cmplx(waves%g(:, axis)*aimag(self%projector(:, k)), &
                          -waves%g(:, axis)*real(self%projector(:, k), real64), real64)
    end do
    call overlap_here(moved, states, waves%zero, slope)
  end subroutine slope_here

  !> Add the projectors times `coupled` (projectors, states) to the waves held here.
  subroutine add_here(self, coupled, product)
    class(nonlocal_potential_t), intent(in) :: self
    real(real64), intent(in) :: coupled(:, :)
    complex(real64), contiguous, intent(inout) :: product(:, :)
    call add_rotated(self%projector, coupled, product)
  end subroutine add_here

  !> Projections and their derivatives: each state times each kind of projector on the mesh, read about the atoms.
  subroutine project(self, comm, system, states)
    class(nonlocal_potential_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(ions_t), intent(in) :: system
    complex(real64), intent(in) :: states(:, :)
    complex(real64), allocatable :: waves(:, :)
    real(real64), allocatable :: mesh(:, :, :, :)
    real(real64) :: slope(3)
    integer :: first, n, s, k, b, a, row
    associate (m => self%spline%n)
      allocate (mesh(m(1), m(2), self%spline%transform%n_planes, batch), waves(size(states, 1), batch))
    end associate
    do first = 1, size(states, 2), batch
      n = min(batch, size(states, 2) - first + 1)
      do s = 1, size(self%species)
        do k = 1, size(self%species(s)%l)
          !$omp parallel do
          do b = 1, n
            waves(:, b) = conjg(turn(self%species(s)%l(k)))*(self%spline%d*self%species(s)%form(:, k))*states(:, first + b - 1)
          end do
          call self%spline%transform%to_grid(waves(:, :n), mesh(:, :, :, :n))
          !$omp parallel do private(row, b, slope)
          do a = 1, system%n_atoms()
            if (system%species(a) /= s) cycle
            row = self%first(a) + k - 1
            do b = 1, n
              call self%spline%gather(self%support(a), mesh(:, :, :, b), self%projection(row, first + b - 1), slope)
              self%slope(row, first + b - 1, :) = slope
            end do
          end do
        end do
      end do
    end do
    call sum_matrix(comm, self%projection)
    do k = 1, 3
      call sum_matrix(comm, self%slope(:, :, k))
    end do
  end subroutine project

  !> Add to `product` the projectors times `coupled` (projectors, states): the way of `project` back.
  subroutine add_spread(self, system, coupled, product)
    class(nonlocal_potential_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    real(real64), intent(in) :: coupled(:, :)
    complex(real64), intent(inout) :: product(:, :)
    complex(real64), allocatable :: waves(:, :)
    real(real64), allocatable :: mesh(:, :, :, :)
    real(real64) :: points
    integer :: first, n, s, k, b, a
    points = real(self%spline%n(1), real64)*self%spline%n(2)*self%spline%n(3)
    associate (m => self%spline%n)
      allocate (mesh(m(1), m(2), self%spline%transform%n_planes, batch), waves(size(product, 1), batch))
    end associate
    do first = 1, size(product, 2), batch
      n = min(batch, size(product, 2) - first + 1)
      do s = 1, size(self%species)
        do k = 1, size(self%species(s)%l)
          !$omp parallel do private(a)
          do b = 1, n
            mesh(:, :, :, b) = 0.0_real64
            do a = 1, system%n_atoms()
              if (system%species(a) == s) &
                call self%spline%spread(self%support(a), coupled(self%first(a) + k - 1, first + b - 1), mesh(:, :, :, b))
            end do
          end do
          call self%spline%transform%to_waves(mesh(:, :, :, :n), waves(:, :n))
          !$omp parallel do
          do b = 1, n
            product(:, first + b - 1) = product(:, first + b - 1) + &
              points*turn(self%species(s)%l(k))*(self%spline%d*self%species(s)%form(:, k))*waves(:, b)
          end do
        end do
      end do
    end do
  end subroutine add_spread

  !> Add forces (3, n) on the ions, with `occupation` electrons in each of the states that `apply` had last; the same on
  !> all ranks.
  subroutine forces(self, waves, comm, system, states, occupation, force)
    class(nonlocal_potential_t), intent(in) :: self
    type(sphere_t), intent(in) :: waves
    type(communicator_t), intent(in) :: comm
    type(ions_t), intent(in) :: system
    complex(real64), contiguous, intent(in) :: states(:, :)
    real(real64), intent(in) :: occupation
    real(real64), intent(inout) :: force(:, :)
    real(real64), allocatable :: coupled(:, :), change(:, :)
    integer :: axis

    if (size(self%projection, 1) == 0) return
    allocate (coupled, source=self%couple(system, self%projection))
    allocate (change, mold=self%projection)
    do axis = 1, 3
      if (self%is_spline) then
        change = self%slope(:, :, axis)
      else
        call self%slope_here(waves, axis, states, change)
        call sum_matrix(comm, change)
      end if
      call self%add_forces(axis, occupation, coupled*change, force)
    end do
  end subroutine forces

  !> Add what comes from projections times their derivatives, `change` (projectors, states), along an axis.
  pure subroutine add_forces(self, axis, occupation, change, force)
    class(nonlocal_potential_t), intent(in) :: self
    integer, intent(in) :: axis
    real(real64), intent(in) :: occupation, change(:, :)
    real(real64), intent(inout) :: force(:, :)
    integer :: a
    do a = 1, size(force, 2)
      force(axis, a) = force(axis, a) - 2.0_real64*occupation*sum(change(self%first(a):self%first(a + 1) - 1, :))
    end do
  end subroutine add_forces

end module nonlocal_potential
