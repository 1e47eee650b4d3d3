!> What acts on the waves of the density, on one part of their sphere: Hartree's and the local potential, gradients, the
!> sum over waves of Ewald's method, and the forces that these put on ions. No messages: sums are those of the part.
module density_waves
  use base_kinds, only: real64
  use base_constants, only: pi
  use comm_communicator, only: communicator_t
  use euler_spline, only: spline_settings_t
  use ions, only: ewald_kernel, ions_t
  use structure_factors, only: structure_factors_t
  use wave_sphere, only: sphere_t
  implicit none
  private
  public :: density_waves_t

  type :: density_waves_t
    type(sphere_t) :: sphere
    !> Interaction of charges (bohr^2).
    real(real64), allocatable, private :: coulomb(:)
    !> Local potentials of species times the volume (waves, species), and of all ions.
    real(real64), allocatable, private :: local_form(:, :)
    complex(real64), allocatable, private :: v_local(:)
    type(structure_factors_t) :: structure
    !> Of the ions: Ewald's kernel, charge density.
    real(real64), allocatable, private :: kernel(:)
    complex(real64), allocatable, private :: charge_waves(:)
  contains
    procedure :: create
    procedure :: move_ions
    procedure :: take_structure
    procedure :: potential
    procedure :: gradient
    procedure :: add_divergence
    procedure :: forces
    procedure :: field_on_structure
  end type density_waves_t

contains

  !> `self%sphere` is made. `screening` (waves): what a cluster alone adds to the interaction (bohr^2), or zero.
  subroutine create(self, system, splines, comm, screening)
    class(density_waves_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    type(spline_settings_t), intent(in) :: splines
    type(communicator_t), intent(in) :: comm
    real(real64), intent(in) :: screening(:)
    integer :: s
    associate (sphere => self%sphere)
      allocate (self%coulomb(sphere%n_waves), self%kernel(sphere%n_waves), source=0.0_real64)
      where (sphere%g2 > 0.0_real64) self%coulomb = 4.0_real64*pi/sphere%g2
      self%coulomb = self%coulomb + screening
      allocate (self%local_form(sphere%n_waves, size(system%pseudo)))
      do s = 1, size(system%pseudo)
        self%local_form(:, s) = system%pseudo(s)%local_form(sphere%g2) - system%pseudo(s)%charge*screening
      end do
      call self%structure%create(sphere, system, splines, comm)
      allocate (self%v_local(sphere%n_waves), self%charge_waves(sphere%n_waves))
      if (.not. system%is_cluster) self%kernel = ewald_kernel(sphere)
    end associate
  end subroutine create

  !> Take notice of new positions. `energy`: of Ewald's sum over these waves (hartree).
  subroutine move_ions(self, system, energy)
    class(density_waves_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    real(real64), intent(out) :: energy
    call self%structure%move(self%sphere, system)
    call self%take_structure(system, energy)
  end subroutine move_ions

  !> The same once the structure factors are there.
  subroutine take_structure(self, system, energy)
    class(density_waves_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    real(real64), intent(out) :: energy
    real(real64) :: part(self%sphere%n_waves)
    integer :: s
    self%v_local = 0.0_real64
    self%charge_waves = 0.0_real64
    do s = 1, size(system%pseudo)
      self%v_local = self%v_local + self%local_form(:, s)*self%structure%value(:, s)/self%sphere%volume
      self%charge_waves = self%charge_waves + system%pseudo(s)%charge*self%structure%value(:, s)
    end do
    part = self%kernel*(real(self%charge_waves, real64)**2 + aimag(self%charge_waves)**2)
    energy = self%sphere%doubled(part)
  end subroutine take_structure

  !> Hartree's and the local potential `v` of a density, and their energies (hartree).
  subroutine potential(self, density, v, hartree, local)
    class(density_waves_t), intent(in) :: self
    complex(real64), intent(in) :: density(:)
    complex(real64), intent(out) :: v(:)
    real(real64), intent(out) :: hartree, local
    real(real64) :: part(size(density))
    v = self%coulomb*density
    part = real(conjg(v)*density, real64)
    hartree = 0.5_real64*self%sphere%volume*self%sphere%doubled(part)
    part = real(conjg(self%v_local)*density, real64)
    local = self%sphere%volume*self%sphere%doubled(part)
    v = v + self%v_local
  end subroutine potential

  !> Derivatives (waves, axis) of a density along axes.
  subroutine gradient(self, density, slope)
    class(density_waves_t), intent(in) :: self
    complex(real64), intent(in) :: density(:)
    complex(real64), intent(out) :: slope(:, :)
    complex(real64), parameter :: i = (0.0_real64, 1.0_real64)
    integer :: axis
    do axis = 1, size(slope, 2)
      slope(:, axis) = i*self%sphere%g(:, axis)*density
    end do
  end subroutine gradient

  !> Take the divergence of a field (waves, axis) from a potential.
  subroutine add_divergence(self, field, v)
    class(density_waves_t), intent(in) :: self
    complex(real64), intent(in) :: field(:, :)
    complex(real64), intent(inout) :: v(:)
    complex(real64), parameter :: i = (0.0_real64, 1.0_real64)
    integer :: axis
    do axis = 1, size(field, 2)
      v = v - i*self%sphere%g(:, axis)*field(:, axis)
    end do
  end subroutine add_divergence

  !> Add to `force` (3, n) what a density and the other ions do to the ions through these waves (hartree/bohr).
  subroutine forces(self, system, density, force)
    class(density_waves_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    complex(real64), intent(in) :: density(:)
    real(real64), intent(inout) :: force(:, :)
    complex(real64) :: field(self%sphere%n_waves, size(system%pseudo))
    field = self%field_on_structure(system, density)
    call self%structure%forces(self%sphere, system, field, force)
  end subroutine forces

  !> What acts on the structure factors (waves, species), as structure_factors%forces takes it.
  function field_on_structure(self, system, density) result(field)
    class(density_waves_t), intent(in) :: self
    type(ions_t), intent(in) :: system
    complex(real64), intent(in) :: density(:)
    complex(real64) :: field(size(density), size(system%pseudo))
    integer :: s
    do s = 1, size(field, 2)
      field(:, s) = self%local_form(:, s)*density + 2.0_real64*system%pseudo(s)%charge*self%kernel*self%charge_waves
    end do
  end function field_on_structure

end module density_waves
