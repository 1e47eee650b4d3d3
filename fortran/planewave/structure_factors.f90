!> Structure factors of the kinds of atoms, sum over atoms of exp(-iG.R), and what acts back on the atoms: as direct
!> sums, or by Euler exponential splines.
module structure_factors
  use base_kinds, only: real64
  use comm_communicator, only: communicator_t
  use euler_spline, only: euler_spline_t, spline_settings_t, support_t
  use ions, only: ions_t
  use sphere_transform, only: sphere_transform_t
  use wave_sphere, only: sphere_t
  implicit none
  private
  public :: structure_factors_t

  type :: structure_factors_t
    !> (waves of the density held here, species).
    complex(real64), allocatable :: value(:, :)
    logical, private :: is_spline = .false.
    type(euler_spline_t), private :: spline
    type(sphere_transform_t), private :: transform
    real(real64), allocatable, private :: d(:)
    !> About each atom.
    type(support_t), allocatable, private :: support(:)
  contains
    procedure :: create
    procedure :: move
    procedure :: forces
    procedure, private :: sum_phases
    procedure, private :: spread_atoms
    procedure, private :: direct_forces
    procedure, private :: spline_forces
  end type structure_factors_t

contains

  subroutine create(self, sphere, system, settings, comm)
    class(structure_factors_t), intent(inout) :: self
    type(sphere_t), intent(in) :: sphere
    type(ions_t), intent(in) :: system
    type(spline_settings_t), intent(in) :: settings
    type(communicator_t), intent(in) :: comm
    type(sphere_t) :: on_mesh
    allocate (self%value(sphere%n_waves, size(system%pseudo)))
    self%is_spline = settings%for_local
    if (.not. self%is_spline) return
    call self%spline%create(sphere%box, sphere%n, settings)
    call self%spline%sphere_on_mesh(sphere, comm%n_ranks, comm%rank, on_mesh)
    call self%transform%create(on_mesh, comm)
    self%d = self%spline%factors(sphere)
    allocate (self%support(system%n_atoms()))
  end subroutine create

  !> Take notice of new positions.
  subroutine move(self, sphere, system)
    class(structure_factors_t), intent(inout) :: self
    type(sphere_t), intent(in) :: sphere
    type(ions_t), intent(in) :: system
    if (self%is_spline) then
      call self%spread_atoms(system)
    else
      call self%sum_phases(sphere, system)
    end if
  end subroutine move

  subroutine sum_phases(self, sphere, system)
    class(structure_factors_t), intent(inout) :: self
    type(sphere_t), intent(in) :: sphere
    type(ions_t), intent(in) :: system
    complex(real64), allocatable :: phase(:)
    integer :: a
    allocate (phase(sphere%n_waves))
    self%value = 0.0_real64
    do a = 1, system%n_atoms()
      call sphere%phases(system%position(:, a), phase)
      associate (sum_of_kind => self%value(:, system%species(a)))
        sum_of_kind = sum_of_kind + phase
      end associate
    end do
  end subroutine sum_phases

  subroutine spread_atoms(self, system)
    class(structure_factors_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    real(real64), allocatable :: mesh(:, :, :, :)
    integer :: a, s
    associate (n => self%spline%n)
      allocate (mesh(n(1), n(2), self%transform%n_planes, size(self%value, 2)), source=0.0_real64)
    end associate
    do a = 1, system%n_atoms()
      self%support(a) = self%spline%support_of(system%position(:, a))
      call self%spline%spread(self%support(a), 1.0_real64, self%transform%first_plane, mesh(:, :, :, system%species(a)))
    end do
    call self%transform%to_waves(mesh, self%value)
    do s = 1, size(self%value, 2)
      self%value(:, s) = product(real(self%spline%n, real64))*self%d*self%value(:, s)
    end do
  end subroutine spread_atoms

  !> Add to `force` (3, n) what comes from an energy with the change Re sum over all waves of field(G) conj(dS(G)), with a
  !> field (waves, species) of a real function. Each rank adds its part. Overwrites `field`.
  subroutine forces(self, sphere, system, field, force)
    class(structure_factors_t), intent(inout) :: self
    type(sphere_t), intent(in) :: sphere
    type(ions_t), intent(in) :: system
    complex(real64), intent(inout) :: field(:, :)
    real(real64), intent(inout) :: force(:, :)
    if (self%is_spline) then
      call self%spline_forces(system, field, force)
    else
      call self%direct_forces(sphere, system, field, force)
    end if
  end subroutine forces

  subroutine direct_forces(self, sphere, system, field, force)
    class(structure_factors_t), intent(in) :: self
    type(sphere_t), intent(in) :: sphere
    type(ions_t), intent(in) :: system
    complex(real64), intent(in) :: field(:, :)
    real(real64), intent(inout) :: force(:, :)
    complex(real64), allocatable :: phase(:)
    real(real64), allocatable :: part(:)
    integer :: a, axis
    allocate (phase(size(self%value, 1)), part(size(self%value, 1)))
    do a = 1, system%n_atoms()
      call sphere%phases(system%position(:, a), phase)
      part = aimag(conjg(phase)*field(:, system%species(a)))
      do axis = 1, 3
        force(axis, a) = force(axis, a) + 2.0_real64*sum(part*sphere%g(:, axis))
      end do
    end do
  end subroutine direct_forces

  subroutine spline_forces(self, system, field, force)
    class(structure_factors_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    complex(real64), intent(inout) :: field(:, :)
    real(real64), intent(inout) :: force(:, :)
    real(real64), allocatable :: mesh(:, :, :, :)
    real(real64) :: value, slope(3)
    integer :: a, s
    associate (n => self%spline%n)
      allocate (mesh(n(1), n(2), self%transform%n_planes, size(field, 2)))
    end associate
    do s = 1, size(field, 2)
      field(:, s) = self%d*field(:, s)
    end do
    call self%transform%to_grid(field, mesh)
    !$omp parallel do private(value, slope)
    do a = 1, system%n_atoms()
      call self%spline%gather(self%support(a), self%transform%first_plane, mesh(:, :, :, system%species(a)), value, slope)
      force(:, a) = force(:, a) - slope
    end do
  end subroutine spline_forces

end module structure_factors
