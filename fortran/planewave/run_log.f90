!> What a run says on the terminal: one line a step, from the first rank.
module run_log
  use, intrinsic :: iso_fortran_env, only: output_unit
  use base_kinds, only: real64
  use kohn_sham, only: energies_t
  implicit none
  private
  public :: run_log_t

  type :: run_log_t
    !> Does this rank speak?
    logical :: speaks = .false.
    logical, private :: has_heading = .false.
  contains
    procedure :: say
    procedure :: minimisation
    procedure :: dynamics_heading
    procedure :: dynamics
  end type run_log_t

contains

  subroutine say(self, text)
    class(run_log_t), intent(in) :: self
    character(len=*), intent(in) :: text
    if (self%speaks) write (output_unit, "(a)") text
  end subroutine say

  !> A step of minimisation; `distance`: what can still be gained.
  subroutine minimisation(self, step, energy, distance)
    class(run_log_t), intent(inout) :: self
    integer, intent(in) :: step
    type(energies_t), intent(in) :: energy
    real(real64), intent(in) :: distance
    if (.not. self%speaks) return
    if (.not. self%has_heading) write (output_unit, "(a)") "# energies in hartree"
    if (.not. self%has_heading) write (output_unit, "(a5,a19,6a15,a11)") "step", "total", "kinetic", "hartree", "local", &
      "nonlocal", "xc", "ewald", "to gain"
    self%has_heading = .true.
    write (output_unit, "(i5,f19.9,6f15.7,es11.2)") step, energy%total(), energy%kinetic, energy%hartree, energy%local, &
      energy%nonlocal, energy%xc, energy%ewald, distance
    flush (output_unit)
  end subroutine minimisation

  subroutine dynamics_heading(self)
    class(run_log_t), intent(in) :: self
    if (self%speaks) write (output_unit, "(a/a7,a13,a19,2a15,a19,a10)") "# dynamics: energies in hartree", "step", "time (fs)", &
      "potential", "ions' kinetic", "states' kinetic", "conserved", "T (K)"
  end subroutine dynamics_heading

  !> A step of dynamics. `time` in fs, `temperature` in K.
  subroutine dynamics(self, step, time, potential, kinetic, conserved, temperature)
    class(run_log_t), intent(in) :: self
    integer, intent(in) :: step
    real(real64), intent(in) :: time, potential, kinetic(2), conserved, temperature
    if (.not. self%speaks) return
    write (output_unit, "(i7,f13.5,f19.9,2f15.9,f19.9,f10.2)") step, time, potential, kinetic, conserved, temperature
    flush (output_unit)
  end subroutine dynamics

end module run_log
