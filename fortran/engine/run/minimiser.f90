!> Steepest descent with the step length of Barzilai and Borwein (IMA J. Numer. Anal. 8, 141 (1988)): the step is the
!> force times a scale, and the scale is the inverse of the curvature seen along the last step. Such steps need not
!> lower the energy each time, and are far faster for it; one is undone, and the scale shrunk, only when the energy
!> rises above the highest of the last few (Grippo, Lampariello and Lucidi, SIAM J. Numer. Anal. 23, 707 (1986)). No
!> atom moves farther than a cap, so overlapping atoms, whose forces are huge, part without harm.
!>
!> The method LBFGS starts softly with such steps, while any force is larger than a bound, and whenever the energy
!> rises; then it goes where the curvature of the last steps points, under the same cap and the same judgement.
!>
!> In the deterministic mode (module base_fixed_point) the way down has the same bits on any number of ranks and threads.
module minimiser
  use base_kinds, only: int64, real64
  use settings, only: settings_t
  use checkpoint, only: write_restart
  use checkpoints, only: checkpoints_t
  use energies, only: energies_t
  use energy_log, only: energy_log_t
  use health_watch, only: health_watch_t
  use base_error, only: error_t, exit_corrupt_file, fail
  use lbfgs, only: lbfgs_t
  use restart, only: phase_fresh
  use simulation, only: simulation_t
  use base_text, only: to_text
  use timing, only: in_integration, in_output
  use trajectory, only: trajectory_t
  implicit none
  private
  public :: run_minimisation

  real(real64), parameter :: growth = 1.2_real64, shrinkage = 0.3_real64
  !> Largest force (kcal/mol/angstrom) under which a quadratic picture of the energy makes sense.
  real(real64), parameter :: soft_start_force = 500.0_real64
  !> Energies that a step is judged against.
  integer, parameter :: n_remembered = 5
  !> The last steps are short ones, which leave no stretched bonds behind.
  integer, parameter :: n_short_steps = 5
  !> Share of the displacement that the pair list allows by which an atom may move in a step.
  real(real64), parameter :: cap_share = 0.4_real64
  !> Atoms whose sums are formed one after another, so that sums do not depend on the number of threads.
  integer, parameter :: block_size = 4096

contains

  !> Run [MINIMIZE] from the present state, which may be that of a checkpoint; all bonds are harmonic here, rigid ones too.
  !> A continued L-BFGS begins with an empty history.
  subroutine run_minimisation(sim, settings, log, frames, checkpoints, watch, error)
    type(simulation_t), intent(inout) :: sim
    type(settings_t), intent(in) :: settings
    type(energy_log_t), intent(inout) :: log
    type(trajectory_t), intent(inout) :: frames
    type(checkpoints_t), intent(inout) :: checkpoints
    type(health_watch_t), intent(in) :: watch
    type(error_t), allocatable, intent(out) :: error
    type(energies_t) :: now, trial
    real(real64), allocatable :: force(:, :)
    real(real64) :: scale, largest_scale, cap, largest_cap
    integer(int64) :: n_steps, i_step, begin_step, energy_period, frame_period, restart_period
    character(len=:), allocatable :: restart_name
    real(real64) :: remembered(n_remembered)
    integer(int64) :: n_undone
    type(lbfgs_t) :: history
    logical :: accept, new_order, quasi_newton, took_history

    n_steps = settings%minimisation%schedule%steps
    energy_period = settings%minimisation%schedule%energy_period
    frame_period = settings%minimisation%schedule%frame_period
    restart_period = settings%minimisation%schedule%restart_period
    quasi_newton = settings%minimisation%quasi_newton
    scale = settings%minimisation%first_scale
    largest_scale = settings%minimisation%largest_scale
    cap = settings%minimisation%largest_displacement
    largest_cap = cap_share*sim%lists%allowed_displacement/sim%topology%site_reach()
    if (sim%rounding%is_on() .and. cap > largest_cap*(1.0_real64 + 1.0e-9_real64)) then
      call settings%refuse("MINIMIZE", "displacement_max", "must be "//to_text(largest_cap)//" at most with "// &
                          "deterministic = YES and this pairlistdist", error)
      return
    end if
    cap = min(cap, largest_cap)
    restart_name = settings%output%restart
    sim%phase = phase_fresh
    ! Nothing moves: the array of velocities holds where atoms stood before a step.
    sim%is_at_rest = .true.
    sim%atoms%velocity = 0.0_real64

    call history%init(sim%rounding, sim%topology%n_atoms)
    call sim%rebuild(error)
    if (allocated(error)) return
    call log%note(sim%halo%describe())
    call sim%compute_forces(.true.)
    now = sim%sum_energies()
    remembered = now%potential()
    n_undone = 0
    begin_step = 0
    if (checkpoints%continues) then
      begin_step = checkpoints%mark%step
      associate (state => checkpoints%mark%state)
        if (size(state) /= 2 + n_remembered) then
          call fail(error, exit_corrupt_file, "the checkpoint does not hold the state of the minimiser; remove it to "// &
                    "start anew")
          return
        end if
        scale = state(1)
        n_undone = nint(state(2), int64)
        remembered = state(3:)
      end associate
      if (begin_step >= n_steps) then
        call checkpoints%refuse_earlier_end(settings, "MINIMIZE", begin_step, n_steps, error)
        if (.not. allocated(error) .and. restart_name /= "") call write_minimised(sim, restart_name, error)
        return
      end if
      call log%note("continued from the checkpoint at step "//to_text(begin_step))
    else
      call log%write(0_int64, 0.0_real64, now, watch%measure(sim))
    end if
    do i_step = begin_step + 1, n_steps
      sim%step = i_step
      sim%atoms%velocity(:, :) = sim%atoms%position(:, :sim%atoms%n_owned)
      force = sim%atoms%force(:, :sim%atoms%n_owned)
      took_history = .false.
      if (quasi_newton) call move_by_history(sim, history, cap, took_history)
      if (.not. took_history) call move_along_forces(sim, scale, cap)
      call sim%sites%place_kept(sim%atoms%position, sim%atoms%velocity, sim%rounding)
      call sim%timer%lap(in_integration)
      call sim%compute_forces(.true.)
      trial = sim%sum_energies()
      accept = trial%potential() <= maxval(remembered)
      ! An energy that is no number (atoms on top of each other) can only become better.
      if (.not. now%potential() < huge(1.0_real64)) accept = .true.
      if (accept) then
        now = trial
        remembered = [remembered(2:), now%potential()]
        if (quasi_newton) call history%learn(sim%comm, sim%atoms%position(:, :sim%atoms%n_owned) - sim%atoms%velocity, &
                                             force - sim%atoms%force(:, :sim%atoms%n_owned))
        scale = min(largest_scale, next_scale(sim, sim%atoms%velocity, force, scale, &
                                              short=mod(i_step, 2_int64) == 0 .or. i_step >= n_steps - n_short_steps))
        ! The next trial may move every atom by the cap before its lists are checked again.
        if (sim%largest_displacement() > sim%lists%allowed_displacement - cap) then
          call history%hand_over(sim%atoms%carried)
          call sim%renew_list(error, moved=new_order)
          if (allocated(error)) return
          call history%take_back(sim%atoms%carried)
          if (new_order) call sim%compute_forces(.true.)
          if (new_order) now = sim%sum_energies()
        end if
      else
        n_undone = n_undone + 1
        sim%atoms%position(:, :sim%atoms%n_owned) = sim%atoms%velocity
        call sim%sites%place(sim%atoms%position, sim%rounding)
        sim%atoms%force(:, :sim%atoms%n_owned) = force
        ! A step by history says nothing against the scale of the forces.
        if (.not. took_history) scale = shrinkage*scale
        call history%forget()
      end if
      if (mod(i_step, energy_period) == 0 .or. i_step == n_steps) then
        call log%write(i_step, 0.0_real64, now, watch%measure(sim))
        call log%check(error)
        call sim%comm%agree(error)
        if (allocated(error)) return
      end if
      if (frame_period > 0) then
        if (mod(i_step, frame_period) == 0) &
          call frames%write(sim%comm, i_step, real(i_step, real64), sim%grid, sim%atoms, error)
        if (allocated(error)) return
      end if
      if (restart_period > 0 .and. restart_name /= "" .and. i_step < n_steps) then
        if (mod(i_step, restart_period) == 0) call write_minimised(sim, restart_name, error)
        if (allocated(error)) return
      end if
      call checkpoints%write_if_due(sim, n_steps, watch, log, frames, error, [scale, real(n_undone, real64), remembered])
      if (allocated(error)) return
      call sim%timer%lap(in_output)
    end do
    if (restart_name /= "") call write_minimised(sim, restart_name, error)
    if (allocated(error)) return
    call sim%timer%lap(in_output)
    call log%note(to_text(n_undone)//" of "//to_text(n_steps)//" steps raised the energy too much and were undone")
    if (sim%lists%balance%describe() /= "") call log%note(sim%lists%balance%describe())
    call sim%timer%report(sim%comm, log%unit, n_steps - begin_step, sim%topology%n_atoms, 0.0_real64)
    call checkpoints%write(sim, log, frames, error, [scale, real(n_undone, real64), remembered])
  end subroutine run_minimisation

  !> Move all atoms where the last steps point; the whole step is shortened so that no atom moves farther than the cap.
  !> `moved` is false, and nothing happens, while forces are large or nothing is known that leads downhill.
  subroutine move_by_history(sim, history, cap, moved)
    type(simulation_t), intent(inout) :: sim
    type(lbfgs_t), intent(in) :: history
    real(real64), intent(in) :: cap
    logical, intent(out) :: moved
    real(real64), allocatable :: way(:, :)
    real(real64) :: largest, longest
    moved = .false.
    if (history%n_known == 0) return
    associate (n => sim%atoms%n_owned, force => sim%atoms%force(:, :sim%atoms%n_owned))
      largest = sim%comm%maximum(maxval(abs(force)))
      if (.not. largest < soft_start_force) return
      allocate (way(3, n))
      call history%direction(sim%comm, force, way)
      if (.not. history%dot(sim%comm, way, force) > 0.0_real64) return
      longest = sim%comm%maximum(sqrt(maxval(sum(way**2, dim=1))))
      sim%atoms%position(:, :n) = sim%atoms%position(:, :n) + sim%rounding%on_lattice(min(1.0_real64, cap/longest)*way)
      moved = .true.
    end associate
  end subroutine move_by_history

  !> Scale for the next step from how the forces changed over the last one: s.s/s.y, or with `short` s.y/y.y, where s is
  !> the change of positions and y that of the gradient. Where the energy curves down there is nothing to learn, and the
  !> scale grows.
  !> `start`, `force`: positions (angstrom) and forces (kcal/mol/angstrom) before that step, (3, owned atoms); `scale`: of
  !> it, angstrom^2 mol/kcal.
  real(real64) function next_scale(sim, start, force, scale, short)
    type(simulation_t), intent(in) :: sim
    real(real64), intent(in) :: start(:, :), force(:, :), scale
    logical, intent(in) :: short
    real(real64) :: total(3), largest(3)
    integer :: k
    call add_up([0.0_real64, 0.0_real64, 0.0_real64], total, largest)
    if (sim%rounding%is_on()) then
      do k = 1, 3
        largest(k) = sim%comm%maximum(largest(k))
      end do
      call add_up(sim%rounding%for_sum(largest, sim%topology%n_atoms), total, largest)
    end if
    call sim%comm%sum(total)
    next_scale = growth*scale
    if (.not. total(2) > 0.0_real64) return
    next_scale = total(1)/total(2)
    if (short) next_scale = total(2)/total(3)

  contains

    !> Sums over the atoms of this rank of s.s, s.y and y.y, each rounded by adding `coarse` and taking it away, and the
    !> largest magnitudes of them.
    subroutine add_up(coarse, total, largest)
      real(real64), intent(in) :: coarse(3)
      real(real64), intent(out) :: total(3), largest(3)
      real(real64) :: sums((sim%atoms%n_owned + block_size - 1)/block_size, 3), s(3), y(3), products(3)
      integer :: block, i
      sums = 0.0_real64
      largest = 0.0_real64
      !$omp parallel do schedule(static) private(i, s, y, products) reduction(max: largest)
      do block = 1, size(sums, 1)
        do i = (block - 1)*block_size + 1, min(sim%atoms%n_owned, block*block_size)
          s = sim%atoms%position(:, i) - start(:, i)
          y = force(:, i) - sim%atoms%force(:, i)
          products = [dot_product(s, s), dot_product(s, y), dot_product(y, y)]
          sums(block, :) = sums(block, :) + ((products + coarse) - coarse)
          largest = max(largest, abs(products))
        end do
      end do
      !$omp end parallel do
      total = sum(sums, dim=1)
    end subroutine add_up

  end function next_scale

  !> Write the restart after bringing every group to its owner.
  subroutine write_minimised(sim, name, error)
    type(simulation_t), intent(inout) :: sim
    character(len=*), intent(in) :: name
    type(error_t), allocatable, intent(out) :: error
    call sim%rebuild(error)
    if (allocated(error)) return
    call sim%compute_forces(.true.)
    sim%atoms%velocity = 0.0_real64
    call write_restart(sim, name, error)
  end subroutine write_minimised

  !> Move every atom by scale times its force, by the cap at most.
  subroutine move_along_forces(sim, scale, cap)
    type(simulation_t), intent(inout) :: sim
    real(real64), intent(in) :: scale, cap
    real(real64) :: move(3), length, largest
    integer :: i
    !$omp parallel do schedule(static) private(move, length, largest)
    do i = 1, sim%atoms%n_owned
      move = sim%atoms%force(:, i)
      largest = maxval(abs(move))
      if (.not. largest < huge(largest)) then
        ! An infinite force has no direction left; any, different for neighbours, parts the atoms.
        move = cos(real(mod(sim%atoms%id(i), 1000_int64), real64)*[1.0_real64, 2.0_real64, 3.0_real64])
        largest = maxval(abs(move))
        length = cap
      else if (largest > 0.0_real64) then
        length = min(cap, scale*largest*norm2(move/largest))
      else
        cycle
      end if
      move = move/largest
      sim%atoms%position(:, i) = sim%atoms%position(:, i) + sim%rounding%on_lattice(length*move/norm2(move))
    end do
    !$omp end parallel do
  end subroutine move_along_forces

end module minimiser
