!> Virtual sites of a molecule template: massless atoms whose place is an average of three atoms that constraints hold
!> together, r = r1 + w2 (r2 - r1) + w3 (r3 - r1) (the charge of four-point waters).
module rigid_sites
  use base_kinds, only: real64
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, fail
  use base_text, only: to_text
  use hdf5_file, only: hdf5_file_t
  implicit none
  private
  public :: rigid_sites_t

  type :: rigid_sites_t
    integer :: n = 0
    !> Site and parents, (4, n), counted within the template; weights of the parents, (3, n), which add up to 1.
    integer, allocatable :: atom(:, :)
    real(real64), allocatable :: weight(:, :)
  contains
    procedure :: read => read_sites
    procedure :: check_parents
    procedure :: reach
  end type rigid_sites_t

contains

  !> Read `group/virtual_site` of a topology file, if it is there. `mass` (atomic mass unit) of the template's atoms: sites
  !> have none, all others some.
  subroutine read_sites(self, file, group, mass, error)
    class(rigid_sites_t), intent(inout) :: self
    type(hdf5_file_t), intent(in) :: file
    character(len=*), intent(in) :: group
    real(real64), intent(in) :: mass(:)
    type(error_t), allocatable, intent(out) :: error
    real(real64), allocatable :: second(:), third(:)
    logical :: is_site(size(mass))
    integer :: k

    allocate (self%atom(4, 0), second(0), third(0))
    if (file%exists(group//"/virtual_site")) then
      call file%read_integer_table(group//"/virtual_site/atoms", self%atom, error)
      if (allocated(error)) return
      call file%read_real(group//"/virtual_site/w2", second, error)
      if (allocated(error)) return
      call file%read_real(group//"/virtual_site/w3", third, error)
      if (allocated(error)) return
    end if
    self%atom = self%atom + 1
    self%n = size(self%atom, 2)
    if (size(self%atom, 1) /= 4 .or. size(second) /= self%n .or. size(third) /= self%n) then
      call damaged("must have four atoms and two weights a site")
    else if (any(self%atom < 1 .or. self%atom > size(mass))) then
      call damaged("names an atom that the template does not have")
    end if
    if (allocated(error)) return
    allocate (self%weight(3, self%n))
    self%weight(1, :) = 1.0_real64 - second - third
    self%weight(2, :) = second
    self%weight(3, :) = third
    is_site = .false.
    do k = 1, self%n
      is_site(self%atom(1, k)) = .true.
    end do
    if (count(is_site) /= self%n) then
      call damaged("names a site twice")
    else if (any([(is_site(self%atom(2:, k)), k=1, self%n)])) then
      call damaged("has a site among the parents of another")
    end if
    if (allocated(error)) return
    do k = 1, size(mass)
      if (is_site(k) .eqv. abs(mass(k)) <= 0.0_real64) then
        if (mass(k) >= 0.0_real64) cycle
      end if
      call fail(error, exit_corrupt_file, file%path//": atom "//to_text(k)//" of "//group//" has the mass "// &
                to_text(mass(k))//", but "//trim(merge("virtual sites have none            ", &
                                                       "all but virtual sites must have one", is_site(k))))
      return
    end do

  contains

    subroutine damaged(what)
      character(len=*), intent(in) :: what
      call fail(error, exit_corrupt_file, file%path//": "//group//"/virtual_site "//what)
    end subroutine damaged

  end subroutine read_sites

  !> Whether constraints hold the parents of each site together: atoms that they join have the same number in `joined`, of
  !> all atoms of the template. `place`: names the template in errors.
  subroutine check_parents(self, joined, place, error)
    class(rigid_sites_t), intent(in) :: self
    integer, intent(in) :: joined(:)
    character(len=*), intent(in) :: place
    type(error_t), allocatable, intent(out) :: error
    integer :: k
    do k = 1, self%n
      if (all(joined(self%atom(3:, k)) == joined(self%atom(2, k)))) cycle
      call fail(error, exit_bad_input, place//": virtual site "//to_text(self%atom(1, k))// &
                " is placed by atoms that no constraints hold together, which the engine does not have; run it in another "// &
                "program")
      return
    end do
  end subroutine check_parents

  !> No site is farther from any of its group's parents than this times the largest distance of two parents.
  pure real(real64) function reach(self)
    class(rigid_sites_t), intent(in) :: self
    reach = maxval([1.0_real64, sum(abs(self%weight), dim=1)])
  end function reach

end module rigid_sites
