!> The log: a fixed-column energy table as GENESIS prints it.
module energy_log
  use, intrinsic :: iso_fortran_env, only: output_unit
  use base_kinds, only: int64, real64
  use base_constants, only: atmosphere, boltzmann
  use energies, only: energies_t, energy_name, n_energies, shown_parts
  use base_error, only: error_t, exit_resources, fail
  use base_posix_file, only: cut_file, file_bytes, sync_file
  use vital_signs, only: of_solute, of_solvent, vital_signs_t
  implicit none
  private
  public :: energy_log_t

  type :: energy_log_t
    integer :: unit = output_unit
    !> Only the root writes.
    logical, private :: writes = .false.
    logical, private :: header_written = .false.
    logical, private :: failed = .false.
    character(len=:), allocatable, private :: path
    real(real64) :: degrees_of_freedom = 0.0_real64
    integer(int64) :: n_atoms = 0
    !> With columns of what boosts add, and of bases that are beads.
    logical :: shows_boosts = .false., shows_bases = .false.
  contains
    procedure :: open => open_log
    procedure :: keep
    procedure :: close => close_log
    procedure :: note
    procedure :: write => write_energies
    procedure :: check
  end type energy_log_t

contains

  !> Open the log on the root; an empty path means standard output. `kept`: bytes that are there of a run that goes on.
  subroutine open_log(self, path, is_root, kept, error)
    class(energy_log_t), intent(inout) :: self
    character(len=*), intent(in) :: path
    logical, intent(in) :: is_root
    integer(int64), intent(in) :: kept
    type(error_t), allocatable, intent(out) :: error
    integer :: status
    self%writes = is_root
    self%path = path
    if (.not. is_root .or. path == "") return
    if (kept > 0) then
      self%header_written = .true.
      call cut_file(path, kept, error)
      if (allocated(error)) return
      open (newunit=self%unit, file=path, status="old", position="append", action="write", iostat=status)
    else
      open (newunit=self%unit, file=path, status="replace", action="write", iostat=status)
    end if
    if (status /= 0) call fail(error, exit_resources, path//": this log cannot be written; check folder and permission")
  end subroutine open_log

  !> Bring what was written to the disk; its bytes, 0 where there is no file.
  subroutine keep(self, bytes, error)
    class(energy_log_t), intent(in) :: self
    integer(int64), intent(out) :: bytes
    type(error_t), allocatable, intent(out) :: error
    bytes = 0
    if (.not. self%writes .or. self%unit == output_unit) return
    flush (self%unit)
    bytes = file_bytes(self%path)
    call sync_file(self%path, error)
  end subroutine keep

  subroutine close_log(self)
    class(energy_log_t), intent(in) :: self
    if (self%writes .and. self%unit /= output_unit) close (self%unit)
  end subroutine close_log

  !> Fail if an earlier line could not be written.
  subroutine check(self, error)
    class(energy_log_t), intent(in) :: self
    type(error_t), allocatable, intent(out) :: error
    if (self%failed) call fail(error, exit_resources, self%path//": writing the log failed; check free space")
  end subroutine check

  !> A line of text.
  subroutine note(self, text)
    class(energy_log_t), intent(inout) :: self
    character(len=*), intent(in) :: text
    integer(int64) :: before, after
    integer :: status
    if (.not. self%writes) return
    before = 0
    if (self%unit /= output_unit) before = file_bytes(self%path)
    write (self%unit, "(a)", iostat=status) text
    if (status == 0) flush (self%unit, iostat=status)
    if (status /= 0) self%failed = .true.
    ! gfortran's flush does not tell when the disk is full.
    if (self%unit == output_unit) return
    after = file_bytes(self%path)
    if (after < before + len(text) + 1) self%failed = .true.
  end subroutine note

  !> One line of the table. Units: kcal/mol, ps, K, atm, angstrom and angstrom^3, g/cm^3; RMSG and MAX_FORCE
  !> kcal/mol/angstrom. The pressure is that of constraint groups, in which constraint forces cancel. MAX_FORCE_ATOM
  !> counts from 1, as selections do.
  subroutine write_energies(self, step, time, energies, signs)
    class(energy_log_t), intent(inout) :: self
    integer(int64), intent(in) :: step
    real(real64), intent(in) :: time
    type(energies_t), intent(in) :: energies
    type(vital_signs_t), intent(in) :: signs
    character(len=16), parameter :: first(6) = [character(len=16) :: "STEP", "TIME", "TOTAL_ENE", "POTENTIAL_ENE", &
                                                "KINETIC_ENE", "RMSG"]
    character(len=16), parameter :: last(17) = [character(len=16) :: "TEMPERATURE", "VIRIAL", "PRESSURE", &
      "CONSERVED_ENE", "VOLUME", "BOXX", "BOXY", "BOXZ", "PRESSXX", "PRESSYY", "PRESSZZ", &
      "HALF_KICK_ENE", "TEMP_SOLUTE", "TEMP_SOLVENT", "DENSITY", "MAX_FORCE", "MAX_FORCE_ATOM"]
    character(len=16*(n_energies + 24)) :: line
    character(len=16) :: cell
    real(real64) :: total, virial, temperature, pressure(3)
    integer, allocatable :: shown(:)
    integer :: k, n
    if (.not. self%writes) return
    shown = shown_parts(self%shows_boosts, self%shows_bases)
    n = size(shown)
    if (.not. self%header_written) then
      line = "INFO:"
      do k = 1, 6
        line(6 + 16*(k - 1):) = adjustr(first(k))
      end do
      do k = 1, n
        line(6 + 16*(k + 5):) = adjustr(energy_name(shown(k)))
      end do
      do k = 1, size(last)
        line(6 + 16*(k + 5 + n):) = adjustr(last(k))
      end do
      call self%note(trim(line))
      self%header_written = .true.
    end if
    total = energies%potential() + energies%kinetic
    virial = energies%virial(1, 1) + energies%virial(2, 2) + energies%virial(3, 3)
    temperature = 2.0_real64*energies%thermal_kinetic()/(max(1.0_real64, self%degrees_of_freedom)*boltzmann)
    pressure = energies%pressure()/atmosphere
    line = "INFO:"
    write (cell, "(i16)") step
    line(6:) = cell
    call put(2, time)
    call put(3, total)
    call put(4, energies%potential())
    call put(5, energies%kinetic)
    call put(6, sqrt(energies%force2/(3.0_real64*self%n_atoms)))
    do k = 1, n
      call put(6 + k, energies%part(shown(k)))
    end do
    call put(n + 7, temperature)
    call put(n + 8, virial/3.0_real64)
    call put(n + 9, sum(pressure)/3.0_real64)
    call put(n + 10, total + energies%bath)
    call put(n + 11, product(energies%box))
    do k = 1, 3
      call put(n + 11 + k, energies%box(k))
      call put(n + 14 + k, pressure(k))
    end do
    call put(n + 18, energies%half_kick)
    call put(n + 19, signs%temperature(of_solute))
    call put(n + 20, signs%temperature(of_solvent))
    write (cell, "(f16.6)") signs%density
    line(6 + 16*(n + 20):) = cell
    call put(n + 22, signs%largest_force)
    write (cell, "(i16)") signs%atom + 1
    line(6 + 16*(n + 22):) = cell
    call self%note(trim(line))
  contains
    subroutine put(column, value)
      integer, intent(in) :: column
      real(real64), intent(in) :: value
      if (abs(value) < 1.0e9_real64) then
        write (cell, "(f16.4)") value
      else
        write (cell, "(es16.6e3)") value
      end if
      line(6 + 16*(column - 1):5 + 16*column) = cell
    end subroutine put
  end subroutine write_energies

end module energy_log
