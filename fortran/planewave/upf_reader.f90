!> Norm-conserving pseudopotentials from UPF files, version 2 (the format of Quantum ESPRESSO).
module upf_reader
  use base_kinds, only: real64
  use base_error, only: error_t, exit_bad_input, fail
  use base_text, only: lower_case, to_text
  use atomic_units, only: rydberg
  use pseudopotential, only: most_l, pseudopotential_t
  implicit none
  private
  public :: read_upf

  !> Beyond this radius (bohr) tables of local potentials are noise around -Z/r, as pw.x treats them.
  real(real64), parameter :: local_radius = 10.0_real64

contains

  !> Read a file; refused are other kinds of pseudopotential than norm-conserving ones without core correction.
  subroutine read_upf(path, pseudo, error)
    character(len=*), intent(in) :: path
    type(pseudopotential_t), intent(out) :: pseudo
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: text, header, tag, name
    real(real64), allocatable :: numbers(:)
    integer :: n_points, n_projectors, k

    call read_whole(path, text, error)
    if (allocated(error)) return
    if (index(text, "<UPF version=""2") == 0) then
      call refuse("is not a UPF file of version 2; convert it with upfconv.x of Quantum ESPRESSO")
      return
    end if
    header = tag_of(text, "PP_HEADER")
    if (adjustl(attribute(header, "pseudo_type")) /= "NC" .and. adjustl(attribute(header, "pseudo_type")) /= "SL") then
      call refuse("holds a pseudopotential of type "//trim(attribute(header, "pseudo_type"))// &
                  "; only norm-conserving ones (NC) can be used")
    else if (is_true(attribute(header, "core_correction"))) then
      call refuse("has a core correction, which chromaqm does not know; take one without")
    else if (is_true(attribute(header, "has_so"))) then
      call refuse("has spin-orbit terms, which chromaqm does not know; take a scalar-relativistic one")
    end if
    if (allocated(error)) return
    pseudo%source = path
    pseudo%is_table = .true.
    pseudo%element = adjustl(attribute(header, "element"))
    pseudo%functional = functional_of(attribute(header, "functional"))
    if (pseudo%functional == "") then
      call refuse("is made with the functional '"//trim(adjustl(attribute(header, "functional")))// &
                  "'; LDA, BLYP and PBE are known")
      return
    end if
    pseudo%charge = number_in(header, "z_valence")
    n_projectors = nint(number_in(header, "number_of_proj"))
    n_points = nint(number_in(header, "mesh_size"))
    if (pseudo%charge <= 0.0_real64 .or. n_projectors < 0 .or. n_points < 3 .or. pseudo%element == "") then
      call refuse("is damaged: its PP_HEADER is not whole; fetch it anew")
      return
    end if

    call read_numbers("PP_R", n_points, pseudo%r)
    call read_numbers("PP_RAB", n_points, pseudo%weight)
    call read_numbers("PP_LOCAL", n_points, pseudo%v_local)
    if (allocated(error)) return
    pseudo%v_local = rydberg*pseudo%v_local
    k = count(pseudo%r <= local_radius) + 1
    pseudo%n_local = min(2*((k + 1)/2) - 1, 2*((n_points + 1)/2) - 1)
    allocate (pseudo%l(n_projectors), pseudo%order(n_projectors), source=0)
    allocate (pseudo%r_beta(n_points, n_projectors), pseudo%h(n_projectors, n_projectors), &
              pseudo%radius(n_projectors), source=0.0_real64)
    do k = 1, n_projectors
      name = "PP_BETA."//to_text(k)
      tag = tag_of(text, name)
      pseudo%l(k) = nint(number_in(tag, "angular_momentum"))
      if (pseudo%l(k) < 0 .or. pseudo%l(k) > most_l) then
        call refuse("has a projector of another angular momentum than s, p or d; take a softer one")
        return
      end if
      pseudo%order(k) = count(pseudo%l(:k) == pseudo%l(k))
      pseudo%n_beta = max(pseudo%n_beta, nint(number_in(tag, "cutoff_radius_index")))
      call read_numbers(name, n_points, numbers)
      if (allocated(error)) return
      pseudo%r_beta(:, k) = numbers
    end do
    if (pseudo%n_beta <= 0 .or. pseudo%n_beta > n_points) pseudo%n_beta = n_points
    if (n_projectors > 0) then
      call read_numbers("PP_DIJ", n_projectors**2, numbers)
      if (allocated(error)) return
      pseudo%h = rydberg*reshape(numbers, [n_projectors, n_projectors])
    end if

  contains

    subroutine refuse(reason)
      character(len=*), intent(in) :: reason
      call fail(error, exit_bad_input, path//": "//reason)
    end subroutine refuse

    !> The numbers between two tags.
    subroutine read_numbers(name, n, values)
      character(len=*), intent(in) :: name
      integer, intent(in) :: n
      real(real64), allocatable, intent(out) :: values(:)
      integer :: first, last, problem
      if (allocated(error)) return
      allocate (values(n))
      first = index(text, "<"//name//">")
      if (first == 0) first = index(text, "<"//name//" ")
      if (first > 0) first = first + index(text(first:), ">")
      last = index(text, "</"//name//">") - 1
      problem = 1
      if (first > 0 .and. last >= first) read (text(first:last), *, iostat=problem) values
      if (problem /= 0) call refuse("is damaged: "//name//" does not have its "//to_text(n)//" numbers; fetch it anew")
    end subroutine read_numbers

  end subroutine read_upf

  !> A text file in one string, lines separated by blanks.
  subroutine read_whole(path, text, error)
    character(len=*), intent(in) :: path
    character(len=:), allocatable, intent(out) :: text
    type(error_t), allocatable, intent(out) :: error
    integer :: unit, status, bytes, k
    open (newunit=unit, file=path, access="stream", form="unformatted", status="old", action="read", iostat=status)
    if (status == 0) then
      inquire (unit=unit, size=bytes)
      allocate (character(len=bytes) :: text)
      read (unit, iostat=status) text
      close (unit)
    end if
    if (status /= 0) then
      call fail(error, exit_bad_input, path//": this pseudopotential cannot be read; check the name")
      return
    end if
    do k = 1, len(text)
      if (iachar(text(k:k)) < 32) text(k:k) = " "
    end do
  end subroutine read_whole

  !> The opening tag of a section with its attributes; empty where there is none.
  pure function tag_of(text, name) result(tag)
    character(len=*), intent(in) :: text, name
    character(len=:), allocatable :: tag
    integer :: first
    tag = ""
    first = index(text, "<"//name//" ")
    if (first > 0) tag = text(first:first + index(text(first:), ">") - 1)
  end function tag_of

  !> The value of an attribute; blank where there is none.
  pure function attribute(tag, name) result(value)
    character(len=*), intent(in) :: tag, name
    character(len=:), allocatable :: value
    integer :: first, length
    value = " "
    first = index(tag, " "//name//"=""")
    if (first == 0) return
    first = first + len(name) + 3
    length = index(tag(first:), """") - 1
    if (length > 0) value = tag(first:first + length - 1)
  end function attribute

  !> The number that an attribute is; -1 where there is none.
  pure real(real64) function number_in(tag, name)
    character(len=*), intent(in) :: tag, name
    character(len=:), allocatable :: value
    integer :: status
    value = attribute(tag, name)
    read (value, *, iostat=status) number_in
    if (status /= 0) number_in = -1.0_real64
  end function number_in

  pure logical function is_true(word)
    character(len=*), intent(in) :: word
    is_true = any(lower_case(adjustl(word)) == [character(len=6) :: "true", ".true.", "t"])
  end function is_true

  !> LDA, BLYP or PBE from the words of a UPF file.
  pure function functional_of(words) result(name)
    character(len=*), intent(in) :: words
    character(len=:), allocatable :: name, text
    integer :: k
    text = ""
    do k = 1, len(words)
      if (words(k:k) == " " .or. words(k:k) == "+" .or. words(k:k) == "-") cycle
      text = text//lower_case(words(k:k))
    end do
    select case (text)
    case ("slapznogxnogc", "slapwnogxnogc", "pz", "pw", "lda", "slapz", "slapw")
      name = "LDA"
    case ("slalypb88blyp", "blyp")
      name = "BLYP"
    case ("slapwpbepbe", "slapwpbxpbc", "pbe")
      name = "PBE"
    case default
      name = ""
    end select
  end function functional_of

end module upf_reader
