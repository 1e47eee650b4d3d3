!> Trial rotations about bonds and what they run into.
module torsion_moves
  use iso_fortran_env, only: int32, real64
  implicit none
  private
  public :: rotated_states, score_states, score_state_pairs, apply_rotation, turn_in_place

contains

  !> Positions of some atoms after each trial, which turns about all torsions, from the first to the last.
  subroutine rotated_states(local, axis, turned, angle, moved, n_threads, state)
    !> (3, local) atoms that turn and atoms that carry the axes, angstrom
    real(real64), intent(in) :: local(:, :)
    !> (2, torsions) 0-based local atoms of each axis, inner end first
    integer(int32), intent(in) :: axis(:, :)
    !> (local, torsions) 1 where a torsion turns a local atom
    integer(int32), intent(in) :: turned(:, :)
    !> (torsions, trials) radian
    real(real64), intent(in) :: angle(:, :)
    !> 0-based local atoms that are asked for
    integer(int32), intent(in) :: moved(:)
    integer(int32), intent(in) :: n_threads
    !> (3, moved, trials) angstrom
    real(real64), intent(inout) :: state(:, :, :)

    integer(int32) :: s, t, n_local
    real(real64) :: here(3, size(local, 2))

    n_local = size(local, 2)
    ! Starting threads costs more than some ten thousand rotations.
    !$omp parallel do num_threads(n_threads) if (real(size(turned))*size(angle, 2) > 1.0e5) schedule(static) &
    !$omp private(s, t, here)
    do s = 1, size(angle, 2)
      here = local
      do t = 1, size(axis, 2)
        call apply_rotation(n_local, here, axis(:, t), turned(:, t), angle(t, s))
      end do
      state(:, :, s) = here(:, moved + 1)
    end do
    !$omp end parallel do
  end subroutine rotated_states

  !> What each trial position of a group costs: the pairs closer than the fatal threshold, the pairs closer than their severe
  !> distance, and the soft overlap energy, the sum of (contact - d)^2 + 4 (severe - d)^2 over pairs below these distances
  !> (angstrom^2).
  subroutine score_states(state, around, contact, severe, inner, inner_contact, inner_severe, threshold, n_threads, n_fatal, &
      n_severe, energy)
    !> (3, moved, trials) angstrom
    real(real64), intent(in) :: state(:, :, :)
    !> (3, around) atoms that stand still
    real(real64), intent(in) :: around(:, :)
    !> (around, moved) smallest comfortable distance; 0 for pairs that bonds join
    real(real64), intent(in) :: contact(:, :)
    !> (around, moved) severe distance, not above contact and not below the threshold; 0 for pairs that bonds join
    real(real64), intent(in) :: severe(:, :)
    !> (2, pairs) 0-based places in the group of pairs within it
    integer(int32), intent(in) :: inner(:, :)
    !> (pairs) as contact and severe
    real(real64), intent(in) :: inner_contact(:), inner_severe(:)
    !> fatal distance
    real(real64), intent(in) :: threshold
    integer(int32), intent(in) :: n_threads
    !> (trials)
    integer(int32), intent(inout) :: n_fatal(:), n_severe(:)
    real(real64), intent(inout) :: energy(:)

    integer(int32) :: n_moved, n_trials, n_around, s, m, e, k
    integer(int32), allocatable :: n_near(:), near(:, :)
    real(real64) :: squared, point(3), middle(3), reach

    n_moved = size(state, 2)
    n_trials = size(state, 3)
    n_around = size(around, 2)
    allocate (n_near(n_moved), near(n_around, n_moved))
    ! What an atom cannot meet in any trial is left out before the trials are looked at one by one.
    do m = 1, n_moved
      middle = (minval(state(:, m, :), dim=2) + maxval(state(:, m, :), dim=2))/2
      reach = 0
      do s = 1, n_trials
        reach = max(reach, sum((state(:, m, s) - middle)**2))
      end do
      reach = sqrt(reach)*(1 + 1.0e-9_real64) + 1.0e-6_real64
      n_near(m) = 0
      do e = 1, n_around
        if (sum((around(:, e) - middle)**2) >= (reach + contact(e, m))**2 .or. contact(e, m) <= 0) cycle
        n_near(m) = n_near(m) + 1
        near(n_near(m), m) = e
      end do
    end do

    ! Starting threads costs more than a few hundred thousand distances.
    !$omp parallel do num_threads(n_threads) if (real(n_trials)*n_moved*n_around > 1.0e6) schedule(dynamic, 4) &
    !$omp private(s, m, e, k, squared, point)
    do s = 1, n_trials
      n_fatal(s) = 0
      n_severe(s) = 0
      energy(s) = 0
      do m = 1, n_moved
        point = state(:, m, s)
        do k = 1, n_near(m)
          e = near(k, m)
          squared = (point(1) - around(1, e))**2 + (point(2) - around(2, e))**2 + (point(3) - around(3, e))**2
          if (squared < contact(e, m)**2) call add(squared, contact(e, m), severe(e, m), threshold, &
            n_fatal(s), n_severe(s), energy(s))
        end do
      end do
      do e = 1, size(inner, 2)
        squared = sum((state(:, inner(1, e) + 1, s) - state(:, inner(2, e) + 1, s))**2)
        if (squared < inner_contact(e)**2) call add(squared, inner_contact(e), inner_severe(e), threshold, &
          n_fatal(s), n_severe(s), energy(s))
      end do
    end do
    !$omp end parallel do
  end subroutine score_states

  !> What every state of one group costs beside every state of another: the score of `score_states` with a price on
  !> fatal and severe pairs.
  subroutine score_state_pairs(n_a, n_states_a, a, n_b, n_states_b, b, contact, severe, threshold, fatal_cost, &
      severe_cost, cost)
    integer(int32), intent(in) :: n_a
    integer(int32), intent(in) :: n_states_a
    real(real64), intent(in) :: a(3, n_a, n_states_a)
    integer(int32), intent(in) :: n_b
    integer(int32), intent(in) :: n_states_b
    real(real64), intent(in) :: b(3, n_b, n_states_b)
    !> as in `score_states`
    real(real64), intent(in) :: contact(n_b, n_a)
    real(real64), intent(in) :: severe(n_b, n_a)
    real(real64), intent(in) :: threshold
    real(real64), intent(in) :: fatal_cost
    real(real64), intent(in) :: severe_cost
    real(real64), intent(inout) :: cost(n_states_b, n_states_a)

    integer(int32) :: s, t, i, j, n_fatal, n_severe
    real(real64) :: squared, energy

    do s = 1, n_states_a
      do t = 1, n_states_b
        n_fatal = 0
        n_severe = 0
        energy = 0
        do i = 1, n_a
          do j = 1, n_b
            squared = sum((a(:, i, s) - b(:, j, t))**2)
            if (squared < contact(j, i)**2) call add(squared, contact(j, i), severe(j, i), threshold, n_fatal, &
              n_severe, energy)
          end do
        end do
        cost(t, s) = fatal_cost*n_fatal + severe_cost*n_severe + energy
      end do
    end do
  end subroutine score_state_pairs

  !> Turn the marked atoms about an axis by an angle (Rodrigues' formula).
  pure subroutine apply_rotation(n_local, local, axis, turned, angle)
    integer(int32), intent(in) :: n_local
    real(real64), intent(inout) :: local(3, n_local)
    !> 0-based local atoms, inner end first
    integer(int32), intent(in) :: axis(2)
    integer(int32), intent(in) :: turned(n_local)
    !> radian, right-handed about the axis
    real(real64), intent(in) :: angle

    integer(int32) :: i
    real(real64) :: unit(3), foot(3), r(3), c, s

    if (angle == 0) return
    foot = local(:, axis(2) + 1)
    unit = foot - local(:, axis(1) + 1)
    unit = unit/norm2(unit)
    c = cos(angle)
    s = sin(angle)
    do i = 1, n_local
      if (turned(i) == 0) cycle
      r = local(:, i) - foot
      local(:, i) = foot + c*r + (1 - c)*dot_product(unit, r)*unit + s*[unit(2)*r(3) - unit(3)*r(2), &
        unit(3)*r(1) - unit(1)*r(3), unit(1)*r(2) - unit(2)*r(1)]
    end do
  end subroutine apply_rotation

  !> Turn some of all atoms about an axis, as `apply_rotation` does.
  subroutine turn_in_place(n_atoms, position, inner, outer, n_turned, turned, angle)
    integer(int32), intent(in) :: n_atoms
    real(real64), intent(inout) :: position(3, n_atoms)
    !> 0-based atoms of the axis
    integer(int32), intent(in) :: inner, outer
    integer(int32), intent(in) :: n_turned
    !> 0-based atoms, neither of them on the axis
    integer(int32), intent(in) :: turned(n_turned)
    !> radian, right-handed about the axis
    real(real64), intent(in) :: angle

    real(real64) :: local(3, n_turned + 2)
    integer(int32) :: mark(n_turned + 2)

    local(:, 1) = position(:, inner + 1)
    local(:, 2) = position(:, outer + 1)
    local(:, 3:) = position(:, turned + 1)
    mark = 1
    mark(:2) = 0
    call apply_rotation(n_turned + 2_int32, local, [0_int32, 1_int32], mark, angle)
    position(:, turned + 1) = local(:, 3:)
  end subroutine turn_in_place

  !> One pair's share of the score.
  pure subroutine add(squared, contact, severe, threshold, n_fatal, n_severe, energy)
    real(real64), intent(in) :: squared, contact, severe, threshold
    integer(int32), intent(inout) :: n_fatal, n_severe
    real(real64), intent(inout) :: energy

    real(real64) :: d

    d = sqrt(squared)
    energy = energy + (contact - d)**2
    if (d >= severe) return
    energy = energy + 4*(severe - d)**2
    n_severe = n_severe + 1
    if (d < threshold) n_fatal = n_fatal + 1
  end subroutine add

end module torsion_moves
