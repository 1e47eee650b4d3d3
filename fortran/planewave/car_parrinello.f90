!> Car-Parrinello dynamics: ions and the coefficients of states move together, from the Lagrangian
!> L = sum_s sum_G mu(G) |dc_s/dt|^2 + 1/2 sum_I M_I |dR_I/dt|^2 - E(c, R), by velocity Verlet.
!>
!> Two forms. RATTLE: states stay orthonormal by constraints (Car and Parrinello, Phys. Rev. Lett. 55, 2471 (1985)).
!> Free: states Phi may overlap, and the energy is that of Psi = Phi S^(-1/2), with the force
!> (F_Psi - Psi Lambda) S^(-1/2), Lambda = Psi^+ F_Psi (after Hutter, Tuckerman and Parrinello, J. Chem. Phys. 102, 859
!> (1995)). Heavy waves: mu(G) = mu max(1, G^2/(2 E_m)).
module car_parrinello
  use base_kinds, only: int64, real64
  use base_error, only: error_t, exit_unstable, fail
  use base_text, only: to_text
  use dynamics, only: dynamics_t
  use heat_bath, only: heat_bath_t
  use ions, only: ions_t
  use kohn_sham, only: kohn_sham_t
  use state_products, only: inverse_square_root, symmetric
  implicit none
  private
  public :: car_parrinello_t

  !> Constraints end at this error of an overlap, or where rounding stops them after so many rounds.
  real(real64), parameter :: constraint_tolerance = 1.0e-14_real64
  integer, parameter :: most_rounds = 60

  type, extends(dynamics_t) :: car_parrinello_t
    logical :: is_free = .false.
    !> Largest overlap before free states are made orthonormal.
    real(real64) :: overlap_tolerance = 0.0_real64
    !> Fictitious mass of long waves (masses of the electron); waves above the cutoff (rydberg) are heavier.
    real(real64) :: mass = 0.0_real64, mass_cutoff = 0.0_real64
    !> Of the coefficients: orthonormal states, or free ones.
    complex(real64), allocatable :: velocity(:, :)
    type(heat_bath_t) :: state_bath
    !> Kinetic energy taken away when free states were made orthonormal, and how often.
    real(real64) :: moved = 0.0_real64
    integer(int64) :: n_resets = 0
    real(real64), allocatable, private :: inverse_mass(:)
    !> Psi of free states, else room for a change of the coefficients; what the force on these is, over minus the
    !> occupation; coefficients over the mass, along which constraints act.
    complex(real64), allocatable, private :: psi(:, :), product(:, :), direction(:, :)
  contains
    procedure :: start
    procedure :: advance
    procedure :: states_kinetic
    procedure :: conserved
    procedure :: write_to
    procedure :: read_from
    procedure, private :: find_forces
    procedure, private :: half_step_of_baths
    procedure, private :: move_states
    procedure, private :: make_orthonormal
    procedure, private :: keep_orthonormal
    procedure, private :: keep_velocities
  end type car_parrinello_t

contains

  subroutine start(self, ks, system, error)
    class(car_parrinello_t), intent(inout) :: self
    class(kohn_sham_t), intent(inout) :: ks
    type(ions_t), intent(inout) :: system
    type(error_t), allocatable, intent(out) :: error
    self%inverse_mass = 1.0_real64/(self%mass*max(1.0_real64, ks%g2/self%mass_cutoff))
    allocate (self%psi, self%product, mold=self%coefficient)
    allocate (self%ion_force(3, system%n_atoms()))
    if (.not. self%is_free) then
      allocate (self%direction, mold=self%coefficient)
      call find_direction(self)
    end if
    call self%find_forces(ks, system, error)
  end subroutine start

  !> One step.
  subroutine advance(self, ks, system, error)
    class(car_parrinello_t), intent(inout) :: self
    class(kohn_sham_t), intent(inout) :: ks
    type(ions_t), intent(inout) :: system
    type(error_t), allocatable, intent(out) :: error

    call self%half_step_of_baths(ks, system)
    call self%kick_ions(system)
    call self%move_states(ks, self%time_step)
    if (.not. self%is_free) call self%keep_orthonormal(ks, error)
    if (allocated(error)) return
    system%position = system%position + self%time_step*system%velocity
    call ks%move_ions(system)
    call self%find_forces(ks, system, error)
    if (allocated(error)) return
    call self%kick_ions(system)
    call self%move_states(ks, 0.0_real64)
    if (.not. self%is_free) call self%keep_velocities(ks, error)
    if (allocated(error)) return
    call self%half_step_of_baths(ks, system)
    self%step = self%step + 1
    if (.not. abs(self%energy%total()) < huge(1.0_real64)) &
      call fail(error, exit_unstable, "dynamics broke down at step "//to_text(self%step)//": the energy is no number; use a "// &
                "shorter time step or a larger electron mass")
  end subroutine advance

  !> Half a step of the velocities of the states, and a step `time` of their coefficients.
  subroutine move_states(self, ks, time)
    class(car_parrinello_t), intent(inout) :: self
    class(kohn_sham_t), intent(in) :: ks
    real(real64), intent(in) :: time
    integer :: s
    !$omp parallel do
    do s = 1, size(self%velocity, 2)
      self%velocity(:, s) = self%velocity(:, s) - 0.5_real64*self%time_step*ks%occupation*self%inverse_mass*self%product(:, s)
      if (time > 0.0_real64) self%coefficient(:, s) = self%coefficient(:, s) + time*self%velocity(:, s)
    end do
  end subroutine move_states

  !> The baths of states and ions, before and after a step: constraints of velocities are linear, so scaling keeps them.
  subroutine half_step_of_baths(self, ks, system)
    class(car_parrinello_t), intent(inout) :: self
    class(kohn_sham_t), intent(in) :: ks
    type(ions_t), intent(inout) :: system
    call self%half_step_of_bath(system)
    if (size(self%state_bath%position) > 0) &
      self%velocity = self%state_bath%factor(self%states_kinetic(ks), 0.5_real64*self%time_step)*self%velocity
  end subroutine half_step_of_baths

  subroutine find_direction(self)
    type(car_parrinello_t), intent(inout) :: self
    integer :: s
    !$omp parallel do
    do s = 1, size(self%coefficient, 2)
      self%direction(:, s) = self%inverse_mass*self%coefficient(:, s)
    end do
  end subroutine find_direction

  !> Energy, H times each state without its part along all of them where these are free, and forces on ions.
  subroutine find_forces(self, ks, system, error)
    class(car_parrinello_t), intent(inout) :: self
    class(kohn_sham_t), intent(inout) :: ks
    type(ions_t), intent(in) :: system
    type(error_t), allocatable, intent(out) :: error
    if (.not. self%is_free) then
      call ks%evaluate(system, self%coefficient, self%product, self%energy)
      call ks%forces(system, self%coefficient, self%ion_force)
      return
    end if
    call self%make_orthonormal(ks, error)
    if (allocated(error)) return
    call ks%evaluate(system, self%psi, self%product, self%energy)
    call ks%forces(system, self%psi, self%ion_force)
    call ks%project_out(self%psi, self%product, .true.)
    call ks%rotate(self%product)
  end subroutine find_forces

  !> Psi of free states; beyond the tolerance Psi takes their place, and Psi is made of that, as after a restart.
  subroutine make_orthonormal(self, ks, error)
    class(car_parrinello_t), intent(inout) :: self
    class(kohn_sham_t), intent(inout) :: ks
    type(error_t), allocatable, intent(out) :: error
    real(real64) :: worst, before
    self%psi = self%coefficient
    call ks%orthonormalise(self%psi, error, worst)
    if (allocated(error) .or. worst <= self%overlap_tolerance) return
    before = self%states_kinetic(ks)
    call ks%rotate(self%velocity)
    self%coefficient = self%psi
    call ks%orthonormalise(self%psi, error)
    self%moved = self%moved + before - self%states_kinetic(ks)
    self%n_resets = self%n_resets + 1
  end subroutine make_orthonormal

  !> Add D X to the moved coefficients, with D those of before over the mass and X symmetric, so that they are
  !> orthonormal: A + B X + X^T B^T + X C X = 1. Rounds with the root of B as a guess of the inverse.
  subroutine keep_orthonormal(self, ks, error)
    class(car_parrinello_t), intent(inout) :: self
    class(kohn_sham_t), intent(inout) :: ks
    type(error_t), allocatable, intent(out) :: error
    real(real64), allocatable, dimension(:, :) :: a, b, c, p, x, left, bx
    real(real64) :: worst, last
    integer :: round, k, s

    allocate (a(ks%n_states, ks%n_states))
    allocate (b, c, p, x, left, bx, mold=a)
    call ks%overlap(self%coefficient, self%coefficient, a, .true.)
    call ks%overlap(self%coefficient, self%direction, b, .false.)
    call ks%overlap(self%direction, self%direction, c, .true.)
    call inverse_square_root(symmetric(b), p, error)
    if (allocated(error)) return
    x = 0.0_real64
    last = huge(last)
    do round = 1, most_rounds
      bx = matmul(b, x)
      left = -(a + bx + transpose(bx) + matmul(x, matmul(c, x)))
      do k = 1, size(a, 1)
        left(k, k) = left(k, k) + 1.0_real64
      end do
      worst = maxval(abs(left))
      if (worst < constraint_tolerance .or. (worst < 1.0e-12_real64 .and. worst >= last)) exit
      last = worst
      x = x + 0.5_real64*symmetric(matmul(p, matmul(left, p)))
    end do
    if (.not. worst < 1.0e-10_real64) then
      call fail(error, exit_unstable, "states cannot be kept orthonormal at step "//to_text(self%step + 1)//"; use a shorter "// &
                "time step or a larger electron mass")
      return
    end if
    associate (change => self%psi)
      !$omp parallel do
      do s = 1, size(change, 2)
        change(:, s) = 0.0_real64
      end do
      call ks%add_rotated(self%direction, x, change)
      !$omp parallel do
      do s = 1, size(change, 2)
        self%coefficient(:, s) = self%coefficient(:, s) + change(:, s)
        self%velocity(:, s) = self%velocity(:, s) + change(:, s)/self%time_step
      end do
    end associate
  end subroutine keep_orthonormal

  !> Take from the velocities what would change overlaps: v + D Y with Y symmetric and c^+ v + v^+ c = 0 afterwards.
  subroutine keep_velocities(self, ks, error)
    class(car_parrinello_t), intent(inout) :: self
    class(kohn_sham_t), intent(inout) :: ks
    type(error_t), allocatable, intent(out) :: error
    real(real64), allocatable, dimension(:, :) :: a, b, p, y, left, by
    real(real64) :: worst, last, scale
    integer :: round

    allocate (a(ks%n_states, ks%n_states))
    allocate (b, p, y, left, by, mold=a)
    call find_direction(self)
    call ks%overlap(self%coefficient, self%velocity, a, .false.)
    call ks%overlap(self%coefficient, self%direction, b, .true.)
    call inverse_square_root(b, p, error)
    if (allocated(error)) return
    y = 0.0_real64
    last = huge(last)
    scale = 1.0_real64/self%time_step
    do round = 1, most_rounds
      by = matmul(b, y)
      left = -(a + transpose(a) + by + transpose(by))
      worst = maxval(abs(left))
      if (worst < constraint_tolerance*scale .or. worst >= last) exit
      last = worst
      y = y + 0.5_real64*symmetric(matmul(p, matmul(left, p)))
    end do
    call ks%add_rotated(self%direction, y, self%velocity)
  end subroutine keep_velocities

  !> Fictitious kinetic energy of the states (hartree).
  real(real64) function states_kinetic(self, ks)
    class(car_parrinello_t), intent(in) :: self
    class(kohn_sham_t), intent(in) :: ks
    real(real64) :: column(size(self%velocity, 2)), sums(1)
    integer :: s
    !$omp parallel do
    do s = 1, size(self%velocity, 2)
      column(s) = ks%doubled((real(self%velocity(:, s), real64)**2 + aimag(self%velocity(:, s))**2)/self%inverse_mass)
    end do
    sums = sum(column)
    call ks%comm%sum(sums)
    states_kinetic = sums(1)
  end function states_kinetic

  !> The conserved quantity (hartree).
  real(real64) function conserved(self, ks, system)
    class(car_parrinello_t), intent(in) :: self
    class(kohn_sham_t), intent(in) :: ks
    type(ions_t), intent(in) :: system
    conserved = self%energy%total() + system%kinetic_energy() + self%states_kinetic(ks) + self%ion_bath%energy() + &
                self%state_bath%energy() + self%moved
  end function conserved

  subroutine write_to(self, unit, status)
    class(car_parrinello_t), intent(in) :: self
    integer, intent(in) :: unit
    integer, intent(out) :: status
    call self%state_bath%write_to(unit, status)
    if (status == 0) write (unit, iostat=status) self%moved, self%n_resets, self%velocity
  end subroutine write_to

  subroutine read_from(self, unit, status)
    class(car_parrinello_t), intent(inout) :: self
    integer, intent(in) :: unit
    integer, intent(out) :: status
    call self%state_bath%read_from(unit, status)
    if (status == 0) read (unit, iostat=status) self%moved, self%n_resets, self%velocity
  end subroutine read_from

end module car_parrinello
