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
  use projector_couplings, only: projector_couplings_t
  use pseudopotential, only: real_harmonic
  use sphere_transform, only: sphere_transform_t
  use state_products, only: add_rotated, overlap_here, sum_matrix
  use wave_sphere, only: sphere_t
  implicit none
  private
  public :: nonlocal_potential_t

  complex(real64), parameter :: turn(0:3) = [(1.0_real64, 0.0_real64), (0.0_real64, -1.0_real64), &
                                             (-1.0_real64, 0.0_real64), (0.0_real64, 1.0_real64)]
  !> States on the mesh at a time.
  integer, parameter :: batch = 8

  !> Of one species: its projectors on the waves (waves, projectors), without the phase of a place.
  type :: form_t
    real(real64), allocatable :: value(:, :)
  end type form_t

  type :: nonlocal_potential_t
    type(projector_couplings_t) :: couplings
    type(form_t), allocatable, private :: form(:)
    !> <projector|state> (projectors, states).
    real(real64), allocatable, private :: projection(:, :)
    !> Direct: projectors of all atoms (waves, projectors).
    complex(real64), allocatable, private :: projector(:, :)
    !> Splines: d of each wave and the mesh's points, what is about each atom, and derivatives of projections by its place
    !> (projectors, states, axis).
    logical, private :: is_spline = .false.
    real(real64), allocatable, private :: d(:)
    real(real64), private :: n_points = 0.0_real64
    type(euler_spline_t), private :: spline
    type(sphere_transform_t), private :: transform
    type(support_t), allocatable, private :: support(:)
    real(real64), allocatable, private :: slope(:, :, :)
  contains
    procedure :: create
    procedure :: create_forms
    procedure :: move
    procedure :: apply
    procedure :: forces
    procedure :: project_here
    procedure :: slope_here
    procedure :: add_here
    procedure :: to_mesh
    procedure :: add_from_mesh
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
    type(sphere_t) :: on_mesh
    call self%create_forms(waves, system, settings)
    associate (n => self%couplings%n_projectors())
      allocate (self%projection(n, n_states))
      if (.not. self%is_spline) return
      call self%spline%sphere_on_mesh(waves, comm%n_ranks, comm%rank, on_mesh)
      call self%transform%create(on_mesh, comm)
      allocate (self%support(system%n_atoms()), self%slope(n, n_states, 3))
    end associate
  end subroutine create

  !> What acts on the waves of one part of their sphere, without what sums over parts.
  subroutine create_forms(self, waves, system, settings)
    class(nonlocal_potential_t), intent(inout) :: self
    type(sphere_t), intent(in) :: waves
    type(ions_t), intent(in) :: system
    type(spline_settings_t), intent(in) :: settings
    integer :: s
    call self%couplings%create(system)
    allocate (self%form(size(system%pseudo)))
    do s = 1, size(system%pseudo)
      call make_form(waves, system, s, self%couplings, self%form(s)%value)
    end do
    associate (n => self%couplings%n_projectors())
      self%is_spline = settings%for_nonlocal .and. n > 0
      allocate (self%projector(waves%n_waves, merge(0, n, self%is_spline)))
    end associate
    if (.not. self%is_spline) return
    ! Waves of states need half of the points that those of the density need.
    call self%spline%create(waves%box, (waves%n + 1)/2, settings)
    self%d = self%spline%factors(waves)
    self%n_points = product(real(self%spline%n, real64))
  end subroutine create_forms

  !> Projectors of one species, without the phase of a place.
  subroutine make_form(waves, system, s, couplings, form)
    type(sphere_t), intent(in) :: waves
    type(ions_t), intent(in) :: system
    integer, intent(in) :: s
    type(projector_couplings_t), intent(in) :: couplings
    real(real64), allocatable, intent(out) :: form(:, :)
    real(real64), allocatable :: direction(:, :), radial(:)
    integer :: k, axis
    allocate (direction(waves%n_waves, 3))
    do axis = 1, 3
      direction(:, axis) = waves%g(:, axis)/sqrt(max(waves%g2, tiny(1.0_real64)))
    end do
    associate (of => couplings%species(s))
      allocate (form(waves%n_waves, size(of%l)))
      do k = 1, size(of%l)
        if (of%m(k) == 1) radial = system%pseudo(s)%radial_form(of%radial(k), waves%g2)/sqrt(waves%volume)
        form(:, k) = radial*real_harmonic(of%l(k), of%m(k), direction)
      end do
    end associate
  end subroutine make_form

  !> Take notice of new positions.
  subroutine move(self, waves, system)
    class(nonlocal_potential_t), intent(inout) :: self
    type(sphere_t), intent(in) :: waves
    type(ions_t), intent(in) :: system
    complex(real64), allocatable :: phase(:)
    integer :: a, k
    if (.not. self%is_spline) allocate (phase(waves%n_waves))
    do a = 1, system%n_atoms()
      associate (of => self%couplings%species(system%species(a)), form => self%form(system%species(a))%value)
        if (size(of%l) == 0) cycle
        if (self%is_spline) then
          self%support(a) = self%spline%support_of(system%position(:, a))
        else
          call waves%phases(system%position(:, a), phase)
          do k = 1, size(of%l)
            self%projector(:, self%couplings%first(a) + k - 1) = turn(of%l(k))*form(:, k)*phase
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
    allocate (coupled, source=self%couplings%couple(system, self%projection))
    energy = sum(coupled*self%projection)
    if (self%is_spline) then
      call self%add_spread(system, coupled, product)
    else
      call self%add_here(coupled, product)
    end if
  end subroutine apply

  !> What the waves held here add to the projections (projectors, states) of some states; direct sums.
  subroutine project_here(self, waves, states, projection)
    class(nonlocal_potential_t), intent(in) :: self
    type(sphere_t), intent(in) :: waves
    complex(real64), contiguous, intent(in) :: states(:, :)
    real(real64), intent(out) :: projection(:, :)
    call overlap_here(self%projector, states, waves%zero, projection, .false.)
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
    call overlap_here(moved, states, waves%zero, slope, .false.)
  end subroutine slope_here

  !> Add the projectors times `coupled` (projectors, states) to the waves held here.
  subroutine add_here(self, coupled, product)
    class(nonlocal_potential_t), intent(in) :: self
    real(real64), intent(in) :: coupled(:, :)
    complex(real64), contiguous, intent(inout) :: product(:, :)
    call add_rotated(self%projector, coupled, product)
  end subroutine add_here

  !> Waves (waves, states) of states times projector k of species s for its mesh.
  subroutine to_mesh(self, s, k, states, waves)
    class(nonlocal_potential_t), intent(in) :: self
    integer, intent(in) :: s, k
    complex(real64), intent(in) :: states(:, :)
    complex(real64), intent(out) :: waves(:, :)
    integer :: b
    !$omp parallel do
    do b = 1, size(states, 2)
      waves(:, b) = conjg(turn(self%couplings%species(s)%l(k)))*(self%d*self%form(s)%value(:, k))*states(:, b)
    end do
  end subroutine to_mesh

  !> Add to `product` what has come from the mesh: the way of `to_mesh` back.
  subroutine add_from_mesh(self, s, k, waves, product)
    class(nonlocal_potential_t), intent(in) :: self
    integer, intent(in) :: s, k
    complex(real64), intent(in) :: waves(:, :)
    complex(real64), intent(inout) :: product(:, :)
    integer :: b
    !$omp parallel do
    do b = 1, size(product, 2)
      product(:, b) = product(:, b) + &
        self%n_points*turn(self%couplings%species(s)%l(k))*(self%d*self%form(s)%value(:, k))*waves(:, b)
    end do
  end subroutine add_from_mesh

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
      allocate (mesh(m(1), m(2), self%transform%n_planes, batch), waves(size(states, 1), batch))
    end associate
    do first = 1, size(states, 2), batch
      n = min(batch, size(states, 2) - first + 1)
      do s = 1, size(self%form)
        do k = 1, size(self%form(s)%value, 2)
          call self%to_mesh(s, k, states(:, first:first + n - 1), waves(:, :n))
          call self%transform%to_grid(waves(:, :n), mesh(:, :, :, :n))
          !$omp parallel do private(row, b, slope)
          do a = 1, system%n_atoms()
            if (system%species(a) /= s) cycle
            row = self%couplings%first(a) + k - 1
            do b = 1, n
              call self%spline%gather(self%support(a), self%transform%first_plane, mesh(:, :, :, b), &
                                      self%projection(row, first + b - 1), slope)
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
    integer :: first, n, s, k, b, a
    associate (m => self%spline%n)
      allocate (mesh(m(1), m(2), self%transform%n_planes, batch), waves(size(product, 1), batch))
    end associate
    do first = 1, size(product, 2), batch
      n = min(batch, size(product, 2) - first + 1)
      do s = 1, size(self%form)
        do k = 1, size(self%form(s)%value, 2)
          !$omp parallel do private(a)
          do b = 1, n
            mesh(:, :, :, b) = 0.0_real64
            do a = 1, system%n_atoms()
              if (system%species(a) == s) &
                call self%spline%spread(self%support(a), coupled(self%couplings%first(a) + k - 1, first + b - 1), &
                                        self%transform%first_plane, mesh(:, :, :, b))
            end do
          end do
          call self%transform%to_waves(mesh(:, :, :, :n), waves(:, :n))
          call self%add_from_mesh(s, k, waves(:, :n), product(:, first:first + n - 1))
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
    allocate (coupled, source=self%couplings%couple(system, self%projection))
    allocate (change, mold=self%projection)
    do axis = 1, 3
      if (self%is_spline) then
        change = self%slope(:, :, axis)
      else
        call self%slope_here(waves, axis, states, change)
        call sum_matrix(comm, change)
      end if
      call self%couplings%add_forces(axis, occupation, coupled*change, force)
    end do
  end subroutine forces

end module nonlocal_potential
