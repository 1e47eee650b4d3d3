!> `chromaqm run`: states of least energy, forces, and dynamics from there.
module qm_run
  use base_kinds, only: int64, real64
  use base_error, only: error_t, exit_bad_input, exit_not_converged, fail
  use base_text, only: decimal_text, to_text
  use comm_communicator, only: communicator_t
  use atomic_units, only: bohr
  use kohn_sham, only: energies_t, kohn_sham_t
  use qm_dynamics, only: run_dynamics
  use qm_settings, only: qm_settings_t
  use result_file, only: write_result
  use run_log, only: run_log_t
  use start_states, only: draw_states
  use state_minimiser, only: minimise, outcome_t
  use state_products, only: orthonormalise
  implicit none
  private
  public :: command_run

contains

  subroutine command_run(comm, settings, error)
    type(communicator_t), intent(in) :: comm
    type(qm_settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    type(kohn_sham_t), allocatable :: ks
    type(run_log_t) :: log
    type(outcome_t) :: outcome
    type(energies_t) :: energy
    complex(real64), allocatable :: states(:, :), product(:, :)
    real(real64), allocatable :: force(:, :), traffic(:, :)
    integer :: a

    log%speaks = comm%is_root()
    allocate (ks)
    call ks%create(comm, settings%system, settings%cutoff, settings%n_states, settings%occupation, settings%xc, settings%memory, &
                   settings%splines, settings%map)
    if (ks%waves%n_all < settings%n_states) then
      call fail(error, exit_bad_input, "the box holds fewer waves than there are states; enlarge it or raise the cutoff")
      return
    end if
    call describe(log, comm, settings, ks)
    call ks%move_ions(settings%system)
    allocate (states(ks%waves%n_waves, settings%n_states), product(ks%waves%n_waves, settings%n_states))
    call draw_states(ks%waves, settings%seed, states)
    call orthonormalise(ks%waves, comm, states, error)
    if (allocated(error)) return
    if (settings%restart_in == "") then
      call minimise(ks, settings%system, states, product, energy, settings%tolerance, settings%most_steps, log, outcome, error)
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
    end if
    if (settings%wants_forces) then
      call log%say("# forces on the ions in hartree/bohr")
      do a = 1, size(force, 2)
        call log%say(settings%element(a)//join(force(:, a)))
      end do
    end if
    call gather_traffic(ks, traffic)
    if (settings%result_file /= "" .and. comm%is_root()) &
      call write_result(settings%result_file, ks, settings%system, settings%element, energy, force, traffic, outcome, error)
    call comm%agree(error)
    if (allocated(error)) return
    if (.not. outcome%is_converged) then
      call fail(error, exit_not_converged, "the minimum was not reached in "//to_text(outcome%n_steps)// &
                " steps: about "//scientific(outcome%distance)//" hartree can still be gained, and tolerance = "// &
                scientific(settings%tolerance)//"; raise nsteps or tolerance in [MINIMIZE]")
      return
    end if
  end subroutine command_run

  !> Messages and bytes that each rank sent between states' waves and planes: transposes, densities, potentials, two
  !> rows each: (6, n_ranks).
  subroutine gather_traffic(ks, traffic)
    type(kohn_sham_t), intent(in) :: ks
    real(real64), allocatable, intent(out) :: traffic(:, :)
    real(real64) :: all_of_them(6*ks%comm%n_ranks)
    all_of_them = 0.0_real64
    associate (t => ks%state_transform, first => 6*ks%comm%rank)
      all_of_them(first + 1:first + 6) = real([t%transposes%messages, t%transposes%bytes, t%densities%messages, &
                                               t%densities%bytes, t%potentials%messages, t%potentials%bytes], real64)
    end associate
    call ks%comm%sum(all_of_them)
    traffic = reshape(all_of_them, [6, ks%comm%n_ranks])
  end subroutine gather_traffic

  !> What is computed, before the first step.
  subroutine describe(log, comm, settings, ks)
    type(run_log_t), intent(in) :: log
    type(communicator_t), intent(in) :: comm
    type(qm_settings_t), intent(in) :: settings
    type(kohn_sham_t), intent(in) :: ks
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
