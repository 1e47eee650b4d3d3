!> `chromaqm run`: states of least energy, forces, and dynamics from there.
module qm_run
  use base_kinds, only: int64, real64
  use base_error, only: error_t, exit_bad_input, exit_not_converged, fail
  use base_text, only: decimal_text, to_text
  use comm_communicator, only: communicator_t
  use atomic_units, only: bohr
  use kohn_sham, only: energies_t, kohn_sham_t
  use kohn_sham_objects, only: kohn_sham_objects_t
  use kohn_sham_states, only: kohn_sham_states_t
  use qm_dynamics, only: run_dynamics
  use qm_restart, only: read_states, write_qm_restart
  use qm_settings, only: qm_settings_t
  use result_file, only: write_result
  use run_log, only: run_log_t
  use state_minimiser, only: minimise, outcome_t
  implicit none
  private
  public :: command_run

contains

  subroutine command_run(comm, settings, error)
    type(communicator_t), intent(in) :: comm
    type(qm_settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    class(kohn_sham_t), allocatable :: ks
    type(run_log_t) :: log
    type(outcome_t) :: outcome
    type(energies_t) :: energy
    complex(real64), allocatable :: states(:, :), product(:, :)
    real(real64), allocatable :: force(:, :), sent(:, :, :)
    integer :: a

    log%speaks = comm%is_root()
    call create_layer(comm, settings, ks, error)
    if (allocated(error)) return
    if (ks%waves%n_all < settings%n_states) then
      call fail(error, exit_bad_input, "the box holds fewer waves than there are states; enlarge it or raise the cutoff")
      return
    end if
    call describe(log, comm, settings, ks)
    call ks%move_ions(settings%system)
    allocate (states(ks%n_rows, ks%n_columns), product(ks%n_rows, ks%n_columns))
    if (settings%states_in == "") then
      call ks%draw(settings%seed, states)
    else
      call read_states(settings%states_in, ks, settings%system, states, error)
      if (allocated(error)) return
      call log%say("# begins from the states of "//settings%states_in)
    end if
    ! At the Gamma point with norm-conserving potentials overlaps do not depend on where the ions are.
    call ks%orthonormalise(states, error)
    if (allocated(error)) return
    if (settings%restart_in == "") then
      call minimise(ks, settings%system, states, product, energy, settings%tolerance, settings%most_steps, &
                    settings%is_steepest, log, outcome, error)
      if (allocated(error)) return
    else
      outcome = outcome_t(.true., 0, 0.0_real64)
    end if
    if (settings%dynamics%is_wanted .and. outcome%is_converged) then
      call run_dynamics(ks, settings, states, log, energy, force, error)
      if (allocated(error)) return
    else
      allocate (force(3, merge(settings%system%n_atoms(), 0, settings%wants_forces)))
      if (settings%wants_forces) call ks%forces(settings%system, states, force)
      ! Before the result: where that is, the states are too.
      if (settings%restart_out /= "") call write_qm_restart(settings%restart_out, ks, settings%system, states, error)
      if (allocated(error)) return
    end if
    if (settings%wants_forces) then
      call log%say("# forces on the ions in hartree/bohr")
      do a = 1, size(force, 2)
        call log%say(settings%element(a)//join(force(:, a)))
      end do
    end if
    call gather_traffic(ks, sent)
    if (settings%result_file /= "" .and. comm%is_root()) &
      call write_result(settings%result_file, ks, settings%system, settings%element, energy, force, sent, outcome, error)
    call comm%agree(error)
    if (allocated(error)) return
    if (.not. outcome%is_converged) then
      call fail(error, exit_not_converged, "the minimum was not reached in "//to_text(outcome%n_steps)// &
                " steps: about "//scientific(outcome%distance)//" hartree can still be gained, and tolerance = "// &
                scientific(settings%tolerance)//"; raise nsteps or tolerance in [MINIMIZE]")
      return
    end if
  end subroutine command_run

  !> The layer that the settings ask for.
  subroutine create_layer(comm, settings, ks, error)
    type(communicator_t), intent(in) :: comm
    type(qm_settings_t), intent(in) :: settings
    class(kohn_sham_t), allocatable, intent(out) :: ks
    type(error_t), allocatable, intent(out) :: error
    type(kohn_sham_states_t), allocatable :: states
    type(kohn_sham_objects_t), allocatable :: objects
    if (settings%is_fine) then
      allocate (objects)
      call objects%create(comm, settings%system, settings%cutoff, settings%n_states, settings%occupation, settings%xc, &
                          settings%memory, settings%splines, settings%grain, error)
      call move_alloc(objects, ks)
    else
      allocate (states)
      call states%create(comm, settings%system, settings%cutoff, settings%n_states, settings%occupation, settings%xc, &
                         settings%memory, settings%splines, settings%map)
      call move_alloc(states, ks)
    end if
    call comm%agree(error)
  end subroutine create_layer

  !> Messages and bytes of each kind that each rank sent to others: (2, kinds, n_ranks).
  subroutine gather_traffic(ks, sent)
    class(kohn_sham_t), intent(in) :: ks
    real(real64), allocatable, intent(out) :: sent(:, :, :)
    real(real64), allocatable :: values(:)
    associate (mine => ks%traffic())
      allocate (sent(2, size(mine), 0:ks%comm%n_ranks - 1), source=0.0_real64)
      sent(1, :, ks%comm%rank) = real(mine%messages, real64)
      sent(2, :, ks%comm%rank) = real(mine%bytes, real64)
    end associate
    values = reshape(sent, [size(sent)])
    call ks%comm%sum(values)
    sent = reshape(values, shape(sent))
  end subroutine gather_traffic

  !> What is computed, before the first step.
  subroutine describe(log, comm, settings, ks)
    type(run_log_t), intent(in) :: log
    type(communicator_t), intent(in) :: comm
    type(qm_settings_t), intent(in) :: settings
    class(kohn_sham_t), intent(in) :: ks
    integer :: s
    call log%say("# "//to_text(settings%system%n_atoms())//" atoms, "//to_text(settings%n_states)//" states of "// &
                 to_text(nint(settings%occupation))//" electrons, box of "//decimal_text(settings%system%box(1)*bohr, 4)//" x "// &
                 decimal_text(settings%system%box(2)*bohr, 4)//" x "//decimal_text(settings%system%box(3)*bohr, 4)//" angstrom")
    call log%say("# "//to_text(2_int64*ks%waves%n_all - 1)//" waves to "//decimal_text(settings%cutoff, 1)//" Ry, grid of "// &
                 to_text(ks%waves%n(1))//" x "//to_text(ks%waves%n(2))//" x "//to_text(ks%waves%n(3))//", "// &
                 to_text(comm%n_ranks)//" ranks")
    do s = 1, size(settings%system%pseudo)
      call log%say("# "//settings%system%pseudo(s)%element//" with charge "// &
                   decimal_text(settings%system%pseudo(s)%charge, 0)//" from "//settings%system%pseudo(s)%source)
    end do
    if (settings%warning /= "") call log%say("# warning: "//settings%warning)
  end subroutine describe

  function join(values) result(text)
    real(real64), intent(in) :: values(:)
    character(len=:), allocatable :: text
    character(len=60) :: buffer
    write (buffer, "(3f18.10)") values
    text = trim(buffer)
  end function join

  function scientific(value) result(text)
    real(real64), intent(in) :: value
    character(len=:), allocatable :: text
    character(len=12) :: buffer
    write (buffer, "(es9.2)") value
    text = trim(adjustl(buffer))
  end function scientific

end module qm_run
