!> States of least energy at given ions: preconditioned conjugate gradients, or steepest descent, of all states together.
!>
!> Along a search direction d, which is orthogonal to the states c, they are (c + x d) S^(-1/2). The gradient G there is
!> orthogonal to all of them, so the slope of the energy is 2 f Re tr(G^+ d S^(-1/2)) without further terms, and two
!> slopes give the step.
module state_minimiser
  use base_kinds, only: real64
  use base_error, only: error_t
  use ions, only: ions_t
  use kohn_sham, only: energies_t, kohn_sham_t
  use run_log, only: run_log_t
  implicit none
  private
  public :: minimise, outcome_t

  !> How a minimisation ended.
  type :: outcome_t
    logical :: is_converged = .false.
    integer :: n_steps = 0
    !> About how much energy there is still to gain (hartree).
    real(real64) :: distance = huge(1.0_real64)
  end type outcome_t

  !> A trial step this near to the best one is taken as it is.
  real(real64), parameter :: near_enough = 0.2_real64

contains

  !> Bring orthonormal `states` to the minimum. `product`: receives H times each; `tolerance` (hartree): end when about
  !> so much energy can still be gained; `is_steepest`: directions forget those before.
  subroutine minimise(ks, system, states, product, energy, tolerance, most_steps, is_steepest, log, outcome, error)
    class(kohn_sham_t), intent(inout) :: ks
    type(ions_t), intent(in) :: system
    complex(real64), contiguous, intent(inout) :: states(:, :), product(:, :)
    type(energies_t), intent(out) :: energy
    real(real64), intent(in) :: tolerance
    integer, intent(in) :: most_steps
    logical, intent(in) :: is_steepest
    type(run_log_t), intent(inout) :: log
    type(outcome_t), intent(out) :: outcome
    type(error_t), allocatable, intent(out) :: error
    complex(real64), allocatable :: gradient(:, :), search(:, :), steepest(:, :), start(:, :), start_search(:, :)
    real(real64), allocatable :: precondition(:)
    real(real64) :: measure, last_measure, mixed, step, slope, trial_slope, best, before
    type(energies_t) :: trial_energy
    integer :: k

    allocate (gradient, search, steepest, start, start_search, mold=states)
    search = 0.0_real64
    steepest = 0.0_real64
    last_measure = 0.0_real64
    step = 0.5_real64
    call ks%evaluate(system, states, product, energy)
    do k = 0, most_steps
      call find_gradient(ks, states, product, gradient)
      call set_precondition(ks, energy, precondition)
      mixed = inner(ks, steepest, gradient)
      call descend(ks, states, gradient, precondition, steepest)
      measure = inner(ks, steepest, gradient)
      outcome%n_steps = k
      outcome%distance = 0.5_real64*ks%occupation*measure
      call log%minimisation(k, energy, outcome%distance)
      outcome%is_converged = outcome%distance < tolerance
      if (outcome%is_converged .or. k == most_steps) exit

      ! Polak and Ribiere, from anew where it does not lead down.
      if (is_steepest) search = 0.0_real64
      if (k > 0) search = max(0.0_real64, (measure - mixed)/last_measure)*search
      search = search - steepest
      call ks%project_out(states, search, .false.)
      slope = inner(ks, gradient, search)
      if (slope >= 0.0_real64) then
        search = -steepest
        slope = -measure
      end if
      last_measure = measure

      before = energy%total()
      start = states
      start_search = search
      call go(step)
      if (allocated(error)) return
      trial_slope = inner(ks, gradient, search)
      if (trial_slope > slope) then
        best = min(step*slope/(slope - trial_slope), 4.0_real64*step)
      else
        best = 2.0_real64*step
      end if
      if (abs(best - step) > near_enough*step) then
        trial_energy = energy
        step = best
        call go(step)
        if (allocated(error)) return
        ! A bad guess far from the minimum: less.
        do while (energy%total() > trial_energy%total() + 1.0e-3_real64*abs(trial_energy%total()) .and. step > 1.0e-4_real64)
          step = 0.3_real64*step
          call go(step)
          if (allocated(error)) return
        end do
      end if
      ! Directions that forget do not mend a step too far.
      do while (is_steepest .and. energy%total() > before .and. step > 1.0e-4_real64)
        step = 0.3_real64*step
        call go(step)
        if (allocated(error)) return
      end do
    end do

  contains

    !> Go from the start so far along the search direction and turn that into the new frame.
    subroutine go(length)
      real(real64), intent(in) :: length
      states = start + length*start_search
      call ks%orthonormalise(states, error)
      if (allocated(error)) return
      search = start_search
      call ks%rotate(search)
      call ks%evaluate(system, states, product, energy)
      call find_gradient(ks, states, product, gradient)
    end subroutine go

  end subroutine minimise

  !> H c - c <c|H|c>.
  subroutine find_gradient(ks, states, product, gradient)
    class(kohn_sham_t), intent(inout) :: ks
    complex(real64), contiguous, intent(in) :: states(:, :), product(:, :)
    complex(real64), contiguous, intent(out) :: gradient(:, :)
    gradient = product
    call ks%project_out(states, gradient, .true.)
  end subroutine find_gradient

  !> Preconditioner of Teter, Payne and Allan (Phys. Rev. B 40, 12255 (1989)), with the mean kinetic energy of a state,
  !> the same for all: so it does not depend on how states are mixed. In 1/hartree.
  subroutine set_precondition(ks, energy, precondition)
    class(kohn_sham_t), intent(in) :: ks
    type(energies_t), intent(in) :: energy
    real(real64), allocatable, intent(inout) :: precondition(:)
    real(real64) :: mean, x, top
    integer :: k
    if (.not. allocated(precondition)) allocate (precondition(ks%n_rows))
    mean = energy%kinetic/(ks%occupation*ks%n_states)
    do k = 1, ks%n_rows
      x = 0.5_real64*ks%g2(k)/mean
      top = 27.0_real64 + x*(18.0_real64 + x*(12.0_real64 + x*8.0_real64))
      precondition(k) = top/(top + 16.0_real64*x**4)/mean
    end do
  end subroutine set_precondition

  !> The preconditioned gradient, without what lies along the states.
  subroutine descend(ks, states, gradient, precondition, steepest)
    class(kohn_sham_t), intent(inout) :: ks
    complex(real64), contiguous, intent(in) :: states(:, :), gradient(:, :)
    real(real64), intent(in) :: precondition(:)
    complex(real64), contiguous, intent(inout) :: steepest(:, :)
    integer :: s
    do s = 1, size(states, 2)
      steepest(:, s) = precondition*gradient(:, s)
    end do
    call ks%project_out(states, steepest, .false.)
  end subroutine descend

  !> 2 Re tr(a^+ b): twice, so that times the occupation it is a change of energy.
  real(real64) function inner(ks, a, b)
    class(kohn_sham_t), intent(in) :: ks
    complex(real64), intent(in) :: a(:, :), b(:, :)
    real(real64) :: column(size(a, 2)), sums(1)
    integer :: s
    do s = 1, size(a, 2)
      column(s) = ks%doubled(real(a(:, s), real64)*real(b(:, s), real64) + aimag(a(:, s))*aimag(b(:, s)))
    end do
    sums = 2.0_real64*sum(column)
    call ks%comm%sum(sums)
    inner = sums(1)
  end function inner

end module state_minimiser
