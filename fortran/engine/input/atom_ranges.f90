!> Some atoms of a system as ascending ranges of their ids: solute and ions are two ranges, however many atoms they have.
module atom_ranges
  use base_kinds, only: int64
  use base_text, only: lower_case
  implicit none
  private
  public :: atom_ranges_t

  type :: atom_ranges_t
    private
    !> Ids count from 0, both ends belong to a range; `before`: members of the ranges ahead of each.
    integer(int64), allocatable :: first(:), last(:), before(:)
  contains
    procedure :: parse
    procedure :: all_of
    procedure :: is_empty
    procedure :: highest
    procedure :: n_members
    procedure :: place_of
    procedure :: member
  end type atom_ranges_t

contains

  !> Take ranges from a text such as `1-1000, 90001-90100`, counted from 1; `all` leaves the set empty until `all_of` fills
  !> it. `problem` says what is wrong with the text, empty when nothing is.
  subroutine parse(self, text, problem)
    class(atom_ranges_t), intent(out) :: self
    character(len=*), intent(in) :: text
    character(len=:), allocatable, intent(out) :: problem
    character(len=:), allocatable :: rest, word
    integer(int64) :: first, last
    integer :: n, dash, status
    allocate (self%first(0), self%last(0), self%before(0))
    problem = ""
    if (lower_case(trim(adjustl(text))) == "all") return
    rest = text//" "
    do
      n = verify(rest, " ,")
      if (n == 0) exit
      rest = rest(n:)
      n = scan(rest, " ,") - 1
      word = rest(:n)
      rest = rest(n + 1:)
      dash = index(word, "-")
      if (dash == 0) dash = n + 1
      status = verify(word, "0123456789-")
      if (status == 0) read (word(:dash - 1), *, iostat=status) first
      last = first
      if (status == 0 .and. dash <= n) read (word(dash + 1:), *, iostat=status) last
      if (status /= 0) then
        problem = "has '"//word//"', which is no atom and no range FIRST-LAST"
      else if (first < 1 .or. last < first) then
        problem = "has '"//word//"', which must count from 1 and not end before it begins"
      else if (first <= self%highest() + 1) then
        problem = "has '"//word//"', which must lie behind the ranges before it"
      end if
      if (problem /= "") return
      call append(self, first - 1, last - 1)
    end do
    if (self%is_empty()) problem = "names no atom"
  end subroutine parse

  !> Every atom of a system of `n_atoms`.
  subroutine all_of(self, n_atoms)
    class(atom_ranges_t), intent(out) :: self
    integer(int64), intent(in) :: n_atoms
    allocate (self%first(0), self%last(0), self%before(0))
    call append(self, 0_int64, n_atoms - 1)
  end subroutine all_of

  subroutine append(self, first, last)
    type(atom_ranges_t), intent(inout) :: self
    integer(int64), intent(in) :: first, last
    self%before = [self%before, self%n_members()]
    self%first = [self%first, first]
    self%last = [self%last, last]
  end subroutine append

  pure logical function is_empty(self)
    class(atom_ranges_t), intent(in) :: self
    is_empty = size(self%first) == 0
  end function is_empty

  !> The highest id, -1 where there is none.
  pure integer(int64) function highest(self)
    class(atom_ranges_t), intent(in) :: self
    highest = -1
    if (.not. self%is_empty()) highest = self%last(size(self%last))
  end function highest

  pure integer(int64) function n_members(self)
    class(atom_ranges_t), intent(in) :: self
    n_members = sum(self%last - self%first + 1)
  end function n_members

  !> The place (from 1) of an id among the members, 0 where it is none of them.
  elemental integer(int64) function place_of(self, id)
    class(atom_ranges_t), intent(in) :: self
    integer(int64), intent(in) :: id
    integer :: k
    place_of = 0
    do k = 1, size(self%first)
      if (id < self%first(k)) return
      if (id > self%last(k)) cycle
      place_of = self%before(k) + id - self%first(k) + 1
      return
    end do
  end function place_of

  !> The id of the member at a place from 1 to `n_members()`.
  pure integer(int64) function member(self, place)
    class(atom_ranges_t), intent(in) :: self
    integer(int64), intent(in) :: place
    integer :: k
    k = count(self%before < place)
    member = self%first(k) + place - self%before(k) - 1
  end function member

end module atom_ranges
