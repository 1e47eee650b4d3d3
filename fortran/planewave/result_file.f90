!> The outcome of a run as JSON: energies by term, positions and forces, atomic units.
module result_file
  use base_kinds, only: int64, real64
  use base_error, only: error_t, exit_resources, fail
  use base_posix_file, only: rename_file
  use base_text, only: to_text
  use ions, only: ions_t
  use kohn_sham, only: energies_t, kohn_sham_t
  use message_traffic, only: traffic_t
  use state_minimiser, only: outcome_t
  implicit none
  private
  public :: write_result

contains

  !> Write the file in one step, so that it is whole or absent. `force` (3, n), or (3, 0) where there is none; `sent`
  !> (2, kinds, n_ranks): messages and bytes of each kind that each rank sent.
  subroutine write_result(path, ks, system, element, energy, force, sent, outcome, error)
    character(len=*), intent(in) :: path
    class(kohn_sham_t), intent(in) :: ks
    type(ions_t), intent(in) :: system
    character(len=2), intent(in) :: element(:)
    type(energies_t), intent(in) :: energy
    real(real64), intent(in) :: force(:, :), sent(:, :, :)
    type(outcome_t), intent(in) :: outcome
    type(error_t), allocatable, intent(out) :: error
    type(traffic_t), allocatable :: kind_of(:)
    character(len=6), parameter :: suffix(2) = [character(len=6) :: "", "_bytes"]
    integer :: unit, status, a, k, m
    open (newunit=unit, file=path//".part", action="write", status="replace", iostat=status)
    if (status == 0) then
      write (unit, "(a)", iostat=status) "{"
      write (unit, "(a)") '  "units": "hartree, bohr, rydberg (cutoff)",'
      write (unit, "(a)") '  "converged": '//trim(merge("true ", "false", outcome%is_converged))//","
      write (unit, "(a)") '  "steps": '//to_text(outcome%n_steps)//","
      call number("energy_to_gain", outcome%distance)
      call number("cutoff", ks%waves%largest_g2)
      write (unit, "(a,2(i0,', '),i0,a)") '  "grid": [', ks%waves%n, "],"
      write (unit, "(a)") '  "waves": '//to_text(2*ks%waves%n_all - 1)//","
      write (unit, "(a)") '  "states": '//to_text(ks%n_states)//","
      call number("total", energy%total())
      call number("kinetic", energy%kinetic)
      call number("hartree", energy%hartree)
      call number("local", energy%local)
      call number("nonlocal", energy%nonlocal)
      call number("xc", energy%xc)
      call number("ewald", energy%ewald)
      write (unit, "(a,*(a,:,', '))") '  "elements": [', ('"'//trim(element(a))//'"', a=1, size(element))
      write (unit, "(a)") "  ],"
      write (unit, "(a)") '  "sent_by_ranks": {'
      kind_of = ks%traffic()
      do k = 1, size(kind_of)
        do m = 1, 2
          write (unit, "(3a,*(i0,:,', '))") '    "', trim(kind_of(k)%name)//trim(suffix(m)), '": [', int(sent(m, k, :), int64)
          write (unit, "(a)") "    ]"//trim(merge(",", " ", k < size(kind_of) .or. m < 2))
        end do
      end do
      write (unit, "(a)") "  },"
      call vectors("positions", system%position, ",")
      call vectors("forces", force, "")
      write (unit, "(a)", iostat=status) "}"
      close (unit)
    end if
    if (status /= 0) then
      call fail(error, exit_resources, path//": cannot be written; check folder, permission and free space")
      return
    end if
    call rename_file(path//".part", path, error)

  contains

    subroutine number(name, value)
      character(len=*), intent(in) :: name
      real(real64), intent(in) :: value
      write (unit, "(3a,es24.16e3,a)") '  "', name, '": ', value, ","
    end subroutine number

    subroutine vectors(name, values, ending)
      character(len=*), intent(in) :: name, ending
      real(real64), intent(in) :: values(:, :)
      integer :: k
      write (unit, "(3a)") '  "', name, '": ['
      do k = 1, size(values, 2)
        write (unit, "(a,2(es24.16e3,','),es24.16e3,2a)") "    [", values(:, k), "]", merge(",", " ", k < size(values, 2))
      end do
      write (unit, "(2a)") "  ]", ending
    end subroutine vectors

  end subroutine write_result

end module result_file
