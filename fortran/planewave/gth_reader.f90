!> Potentials of Goedecker, Teter and Hutter from our compact table (templates/gth_potentials.txt), which is built in, or
!> from a file of the same form. A line: element, charge of the ion, functional, r_loc, number of coefficients and
!> coefficients, number of angular momenta, and for s, p, d: radius, number of projectors, upper triangle of h by rows.
module gth_reader
  use base_kinds, only: real64
  use base_error, only: error_t, exit_bad_input, fail
  use base_text, only: read_line, to_text
  use gth_table, only: table_line, table_lines
  use pseudopotential, only: most_l, pseudopotential_t
  implicit none
  private
  public :: find_gth

contains

  !> The potential of an element for a functional (LDA, BLYP, PBE). `charge`: of the ion; 0: the smallest there is.
  !> `path`: a table of the user's, empty for the one built in.
  subroutine find_gth(path, element, functional, charge, pseudo, error)
    character(len=*), intent(in) :: path, element, functional
    integer, intent(in) :: charge
    type(pseudopotential_t), intent(out) :: pseudo
    type(error_t), allocatable, intent(out) :: error
    type(pseudopotential_t) :: candidate
    character(len=:), allocatable :: source, wanted
    character(len=table_line), allocatable :: lines(:)
    integer :: k, status
    logical :: is_found

    source = "the built-in table"
    if (path == "") then
      lines = table_lines
    else
      source = path
      call read_lines(path, lines, error)
      if (allocated(error)) return
    end if
    is_found = .false.
    do k = 1, size(lines)
      if (lines(k) == "" .or. lines(k)(1:1) == "#") cycle
      call parse(lines(k), candidate, status)
      if (status /= 0) then
        call fail(error, exit_bad_input, source//", line "//to_text(k)//": is not a line of a table of GTH potentials: '"// &
                  trim(lines(k)(:min(40, len_trim(lines(k)))))//"'; the form stands in templates/gth_potentials.txt")
        return
      end if
      if (candidate%element /= element .or. candidate%functional /= functional) cycle
      if (charge > 0 .and. nint(candidate%charge) /= charge) cycle
      if (is_found) then
        if (candidate%charge > pseudo%charge) cycle
      end if
      pseudo = candidate
      pseudo%source = source
      is_found = .true.
    end do
    if (is_found) return
    wanted = trim(element)
    if (charge > 0) wanted = wanted//" with a charge of "//to_text(charge)
    call fail(error, exit_bad_input, source//": has no "//functional//" potential of "//wanted// &
              "; name a UPF file in [INPUT], or a table as gthfile")
  end subroutine find_gth

  subroutine read_lines(path, lines, error)
    character(len=*), intent(in) :: path
    character(len=table_line), allocatable, intent(out) :: lines(:)
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: line
    character(len=table_line) :: padded
    integer :: unit, status
    open (newunit=unit, file=path, status="old", action="read", iostat=status)
    if (status /= 0) then
      call fail(error, exit_bad_input, path//": this table of potentials cannot be opened; check the name")
      return
    end if
    allocate (lines(0))
    do
      call read_line(unit, line, status)
      if (status /= 0) exit
      padded = line
      lines = [lines, padded]
    end do
    close (unit)
  end subroutine read_lines

  !> One line of the table; `status` /= 0 if it is none.
  subroutine parse(line, pseudo, status)
    character(len=*), intent(in) :: line
    type(pseudopotential_t), intent(out) :: pseudo
    integer, intent(out) :: status
    character(len=8) :: functional
    character(len=16) :: word(200)
    integer :: n_words, at, n, n_l, l, i, j, first

    word = ""
    at = 1
    n_words = 0
    do while (at <= len_trim(line) .and. n_words < size(word))
      n = scan(line(at:)//" ", " ") - 1
      if (n > 0) then
        n_words = n_words + 1
        word(n_words) = line(at:at + n - 1)
      end if
      at = at + n + 1
    end do
    status = 1
    if (n_words < 6) return
    pseudo%element = word(1)(:2)
    functional = word(3)(:8)
    pseudo%functional = trim(functional)
    at = 2
    pseudo%charge = next()
    at = 4
    pseudo%r_local = next()
    n = nint(next())
    if (n < 0 .or. n > 4) return
    do i = 1, n
      pseudo%c(i) = next()
    end do
    n_l = nint(next())
    if (n_l < 0 .or. n_l > most_l + 1) return
    allocate (pseudo%l(0), pseudo%order(0), pseudo%radius(0), pseudo%h(3*(most_l + 1), 3*(most_l + 1)))
    pseudo%h = 0.0_real64
    do l = 0, n_l - 1
      first = size(pseudo%l)
      associate (radius => next())
        n = nint(next())
        if (n < 0 .or. n > merge(2, 3, l == 2)) return
        pseudo%l = [pseudo%l, spread(l, 1, n)]
        pseudo%order = [pseudo%order, (i, i=1, n)]
        pseudo%radius = [pseudo%radius, spread(radius, 1, n)]
      end associate
      do i = first + 1, first + n
        do j = i, first + n
          pseudo%h(i, j) = next()
          pseudo%h(j, i) = pseudo%h(i, j)
        end do
      end do
    end do
    pseudo%h = pseudo%h(:size(pseudo%l), :size(pseudo%l))
    status = merge(0, 1, at == n_words + 1 .and. pseudo%charge > 0.0_real64 .and. pseudo%r_local > 0.0_real64)

  contains

    !> The next number; a word that is none moves past the end, so that the line is refused.
    real(real64) function next()
      integer :: problem
      next = 0.0_real64
      problem = 1
      if (at <= n_words) read (word(at), *, iostat=problem) next
      at = merge(at + 1, size(word) + 10, problem == 0)
    end function next

  end subroutine parse

end module gth_reader
