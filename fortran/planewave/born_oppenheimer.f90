!> Born-Oppenheimer dynamics: ions move by velocity Verlet on the minimum of the energy, which is found anew at each step,
!> from states extrapolated by the predictor of Kolafa (J. Comput. Chem. 25, 335 (2004)): with C_m the states m steps ago,
!> sum_m (-1)^(m+1) m binom(2K, K-m)/binom(2K-2, K-1) C_m <C_m|C_1> for m = 1 ... K. The overlaps turn older states into
!> the frame of the last ones (Kuehne et al., Phys. Rev. Lett. 98, 066401 (2007)).
module born_oppenheimer
  use base_kinds, only: int64, real64
  use base_error, only: error_t, exit_not_converged, fail
  use base_text, only: to_text
  use dynamics, only: dynamics_t
  use ions, only: ions_t
  use kohn_sham, only: kohn_sham_t
  use run_log, only: run_log_t
  use state_minimiser, only: minimise, outcome_t
  implicit none
  private
  public :: born_oppenheimer_t

  !> K.
  integer, parameter :: most_kept = 4

  type, extends(dynamics_t) :: born_oppenheimer_t
    !> Of each minimisation: what may be left to gain (hartree), and its most steps.
    real(real64) :: tolerance = 0.0_real64
    integer :: most_steps = 0
    !> Steps of all minimisations so far.
    integer(int64) :: n_minimiser_steps = 0
    !> States of earlier steps (waves, states, age), as many as there are.
    integer :: n_kept = 0
    complex(real64), allocatable, private :: kept(:, :, :), product(:, :)
  contains
    procedure :: start
    procedure :: advance
    procedure :: write_to
    procedure :: read_from
    procedure, private :: extrapolate
  end type born_oppenheimer_t

contains

  subroutine start(self, ks, system, error)
    class(born_oppenheimer_t), intent(inout) :: self
    class(kohn_sham_t), intent(inout) :: ks
    type(ions_t), intent(inout) :: system
    type(error_t), allocatable, intent(out) :: error
    if (.not. allocated(self%kept)) allocate (self%kept(ks%n_rows, ks%n_columns, most_kept - 1))
    allocate (self%product, mold=self%coefficient)
    allocate (self%ion_force(3, system%n_atoms()))
    call ks%evaluate(system, self%coefficient, self%product, self%energy)
    call ks%forces(system, self%coefficient, self%ion_force)
  end subroutine start

  subroutine advance(self, ks, system, error)
    class(born_oppenheimer_t), intent(inout) :: self
    class(kohn_sham_t), intent(inout) :: ks
    type(ions_t), intent(inout) :: system
    type(error_t), allocatable, intent(out) :: error
    type(run_log_t) :: silent
    type(outcome_t) :: outcome

    call self%half_step_of_bath(system)
    call self%kick_ions(system)
    system%position = system%position + self%time_step*system%velocity
    call ks%move_ions(system)
    call self%extrapolate(ks, error)
    if (allocated(error)) return
    call minimise(ks, system, self%coefficient, self%product, self%energy, self%tolerance, self%most_steps, .false., &
                  silent, outcome, error)
    if (allocated(error)) return
    if (.not. outcome%is_converged) then
      call fail(error, exit_not_converged, "the minimum was not reached in "//to_text(outcome%n_steps)//" steps at step "// &
                to_text(self%step + 1)//" of the dynamics; raise nsteps or tolerance in [MINIMIZE], or use a shorter time step")
      return
    end if
    self%n_minimiser_steps = self%n_minimiser_steps + outcome%n_steps
    call ks%forces(system, self%coefficient, self%ion_force)
    call self%kick_ions(system)
    call self%half_step_of_bath(system)
    self%step = self%step + 1
  end subroutine advance

  !> Replace the states by a guess of the next ones, and keep them.
  subroutine extrapolate(self, ks, error)
    class(born_oppenheimer_t), intent(inout) :: self
    class(kohn_sham_t), intent(inout) :: ks
    type(error_t), allocatable, intent(out) :: error
    complex(real64), allocatable :: last(:, :)
    real(real64), allocatable :: s(:, :)
    integer :: k, m
    allocate (last, source=self%coefficient)
    allocate (s(ks%n_states, ks%n_states))
    k = self%n_kept + 1
    self%coefficient = weight(k, 1)*last
    do m = 2, k
      call ks%overlap(self%kept(:, :, m - 1), last, s, .false.)
      call ks%add_rotated(self%kept(:, :, m - 1), weight(k, m)*s, self%coefficient)
    end do
    call ks%orthonormalise(self%coefficient, error)
    self%n_kept = min(self%n_kept + 1, most_kept - 1)
    do m = self%n_kept, 2, -1
      self%kept(:, :, m) = self%kept(:, :, m - 1)
    end do
    self%kept(:, :, 1) = last
  end subroutine extrapolate

  !> Weight of the states m steps ago where k are known.
  pure real(real64) function weight(k, m)
    integer, intent(in) :: k, m
    weight = (-1)**(m + 1)*m*binomial(2*k, k - m)/binomial(2*k - 2, k - 1)
  end function weight

  pure real(real64) function binomial(n, k)
    integer, intent(in) :: n, k
    integer :: j
    binomial = product([(real(n - k + j, real64)/j, j=1, k)])
  end function binomial

  subroutine write_to(self, unit, status)
    class(born_oppenheimer_t), intent(in) :: self
    integer, intent(in) :: unit
    integer, intent(out) :: status
    write (unit, iostat=status) self%n_kept, self%n_minimiser_steps, self%kept(:, :, :self%n_kept)
  end subroutine write_to

  subroutine read_from(self, unit, status)
    class(born_oppenheimer_t), intent(inout) :: self
    integer, intent(in) :: unit
    integer, intent(out) :: status
    read (unit, iostat=status) self%n_kept, self%n_minimiser_steps
    if (status /= 0) return
    allocate (self%kept(size(self%coefficient, 1), size(self%coefficient, 2), most_kept - 1))
    read (unit, iostat=status) self%kept(:, :, :self%n_kept)
  end subroutine read_from

end module born_oppenheimer
