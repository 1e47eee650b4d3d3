!> Atoms chosen by GENESIS' selection syntax: `segid:A and (resname:ALA or rno:5-10) and not an:H*`, `ai:1-120`, `all`,
!> `mname:H3`, `heavy`, `hydrogen`, `backbone`; `&`, `|` and `!` for and, or and not. The expression is translated once into
!> reverse Polish form and then asked atom by atom.
!>
!> `X around:6.0`, `around_res:` and `around_mol:` choose atoms that are not of X and are within a distance of any atom of X,
!> or are of a residue or molecule of which an atom is. They are found once, by the coordinates of module start_coordinates,
!> and take a byte an atom of the system.
module selection
  use base_kinds, only: int64, real64
  use, intrinsic :: iso_fortran_env, only: int8
  use settings, only: settings_t
  use base_error, only: error_t, exit_bad_input, fail
  use hdf5_file, only: hdf5_file_t
  use base_text, only: lower_case, to_text
  use near_points, only: near_points_t
  use start_coordinates, only: start_coordinates_t
  use topology, only: topology_t
  implicit none
  private
  public :: atom_names_t, molecule_names_t, selection_t

  integer, parameter :: name_length = 8, max_items = 256
  integer, parameter :: want_all = 1, want_heavy = 2, want_hydrogen = 3, want_index = 4, want_name = 5, &
                        want_residue = 6, want_residue_number = 7, want_segment = 8, want_molecule = 9, want_backbone = 10, &
                        does_and = 11, does_or = 12, does_not = 13, around_atoms = 14, &
                        around_residues = 15, around_molecules = 16
  !> Lighter atoms are hydrogens (atomic mass units); heavy hydrogens of repartitioning weigh up to 4.1.
  real(real64), parameter :: heaviest_hydrogen = 4.2_real64
  !> Of the backbone of a protein.
  character(len=2), parameter :: backbone_atom(4) = ["N ", "CA", "C ", "O "]

  !> Names of one kind of molecule and of its atoms.
  type :: molecule_names_t
    character(len=:), allocatable :: name
    character(len=name_length), allocatable :: atom(:), residue(:), segment(:)
    integer, allocatable :: residue_number(:)
    !> First and last atom of the residue of each atom.
    integer, allocatable :: residue_first(:), residue_last(:)
    !> Whether each atom is one of a residue that has all four of a backbone, and is one of these.
    logical, allocatable :: is_backbone(:)
    !> A molecule of one residue, such as a water.
    logical :: is_one_residue = .false.
  contains
    procedure :: read => read_molecule_names
  end type molecule_names_t

  type :: atom_names_t
    type(molecule_names_t), allocatable :: molecule(:)
  contains
    procedure :: read => read_names
  end type atom_names_t

  !> One entry of the reverse Polish form.
  type :: item_t
    integer :: kind = want_all
    character(len=name_length) :: name = ""
    integer(int64) :: first = 0, last = 0
    !> Of `around` (angstrom), and 1 for each atom of the system, from id 0, that it reaches.
    real(real64) :: radius = 0.0_real64
    integer(int8), allocatable :: reached(:)
  end type item_t

  type :: selection_t
    type(item_t), private :: item(max_items)
    integer, private :: n_items = 0
  contains
    procedure :: read => read_group
    procedure :: parse
    procedure :: holds
    procedure, private :: value_at
  end type selection_t

contains

  !> Read names, residues and segments of all kinds of molecules from the file of a topology.
  subroutine read_names(self, topology, error)
    class(atom_names_t), intent(inout) :: self
    type(topology_t), intent(in) :: topology
    type(error_t), allocatable, intent(out) :: error
    type(hdf5_file_t) :: file
    integer :: t
    call file%open(topology%path, error)
    if (allocated(error)) return
    allocate (self%molecule(maxval(topology%molecules%named_as)))
    do t = 1, size(self%molecule)
      call self%molecule(t)%read(file, t, error)
      if (allocated(error)) exit
    end do
    call file%close()
  end subroutine read_names

  !> The same of one kind of molecule.
  subroutine read_molecule_names(self, file, kind, error)
    class(molecule_names_t), intent(inout) :: self
    type(hdf5_file_t), intent(in) :: file
    integer, intent(in) :: kind
    type(error_t), allocatable, intent(out) :: error
    character(len=name_length), allocatable :: residue(:), segment(:)
    integer, allocatable :: atom_residue(:), number(:)
    character(len=16) :: group
    integer :: a, first, k
    write (group, "(a,i4.4)") "template/", kind - 1
    call file%text_attribute(trim(group), "name", self%name, error)
    if (.not. allocated(error)) call file%read_names(trim(group)//"/atom_name", self%atom, error)
    if (.not. allocated(error)) call file%read_integer(trim(group)//"/atom_residue", atom_residue, error)
    if (.not. allocated(error)) call file%read_names(trim(group)//"/residue_name", residue, error)
    if (.not. allocated(error)) call file%read_integer(trim(group)//"/residue_number", number, error)
    if (.not. allocated(error)) call file%read_names(trim(group)//"/residue_segid", segment, error)
    if (allocated(error)) return
    self%residue = residue(atom_residue + 1)
    self%segment = segment(atom_residue + 1)
    self%residue_number = number(atom_residue + 1)
    self%is_one_residue = size(number) == 1
    allocate (self%is_backbone(size(self%atom)), source=.false.)
    allocate (self%residue_first(size(self%atom)), self%residue_last(size(self%atom)))
    first = 1
    do a = 1, size(self%atom)
      if (a < size(self%atom)) then
        if (atom_residue(a + 1) == atom_residue(a)) cycle
      end if
      self%residue_first(first:a) = first
      self%residue_last(first:a) = a
      if (all([(any(self%atom(first:a) == backbone_atom(k)), k=1, size(backbone_atom))])) &
        self%is_backbone(first:a) = [(any(backbone_atom == self%atom(k)), k=first, a)]
      first = a + 1
    end do
  end subroutine read_molecule_names

  !> Translate entry `number` of [SELECTION], and find what is around its atoms.
  subroutine read_group(self, settings, number, topology, names, error)
    class(selection_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    integer, intent(in) :: number
    type(topology_t), intent(in) :: topology
    type(atom_names_t), intent(in) :: names
    type(error_t), allocatable, intent(out) :: error
    type(start_coordinates_t) :: start
    character(len=:), allocatable :: problem
    integer :: k
    call self%parse(settings%expression_of(number), problem)
    if (problem /= "") call settings%refuse_group(number, problem, error)
    if (allocated(error) .or. .not. any(self%item(:self%n_items)%kind >= around_atoms)) return
    call start%find(settings, error)
    if (allocated(error)) return
    if (start%n_parts == 0) then
      call settings%refuse_group(number, "chooses by distance, which needs coordinates; give reffile or shardfile in "// &
                                 "[INPUT]", error)
      return
    end if
    do k = 1, self%n_items
      if (self%item(k)%kind >= around_atoms) call find_around(self, k, start, topology, names, error)
      if (allocated(error)) return
    end do
  end subroutine read_group

  !> Find what item `k` reaches, which is around the atoms that the items before it choose.
  subroutine find_around(self, k, start, topology, names, error)
    type(selection_t), intent(inout) :: self
    integer, intent(in) :: k
    type(start_coordinates_t), intent(in) :: start
    type(topology_t), intent(in) :: topology
    type(atom_names_t), intent(in) :: names
    type(error_t), allocatable, intent(out) :: error
    type(near_points_t) :: near
    integer(int64), allocatable :: id(:)
    real(real64), allocatable :: position(:, :), centre(:, :)
    logical, allocatable :: chosen(:)
    integer :: part, i, m, a
    allocate (self%item(k)%reached(0:topology%n_atoms - 1), source=0_int8)
    allocate (centre(3, 0))
    do part = 1, start%n_parts
      call start%read_part(part, id, position, error)
      if (allocated(error)) return
      allocate (chosen(size(id)))
      do i = 1, size(id)
        chosen(i) = self%value_at(k - 1, topology, names, id(i), error)
        if (allocated(error)) return
      end do
      centre = reshape([centre, position(:, pack([(i, i=1, size(id))], chosen))], [3, size(centre, 2) + count(chosen)])
      deallocate (chosen)
    end do
    if (size(centre, 2) == 0) return
    call near%create(start%grid, .not. start%is_open, self%item(k)%radius, centre)
    do part = 1, start%n_parts
      call start%read_part(part, id, position, error)
      if (allocated(error)) return
      do i = 1, size(id)
        if (self%item(k)%reached(id(i)) > 0) cycle
        if (.not. near%is_near(position(:, i))) cycle
        call topology%locate_in_molecule(id(i), m, a)
        associate (reached => self%item(k)%reached, molecule => names%molecule(topology%molecules(m)%named_as))
          select case (self%item(k)%kind)
          case (around_atoms)
            reached(id(i)) = 1_int8
          case (around_residues)
            reached(id(i) - a + molecule%residue_first(a):id(i) - a + molecule%residue_last(a)) = 1_int8
          case (around_molecules)
            reached(id(i) - a + 1:id(i) - a + size(molecule%atom)) = 1_int8
          end select
        end associate
      end do
    end do
  end subroutine find_around

  !> Translate an expression. `problem` says what is wrong with it, empty when nothing is.
  subroutine parse(self, expression, problem)
    class(selection_t), intent(inout) :: self
    character(len=*), intent(in) :: expression
    character(len=:), allocatable, intent(out) :: problem
    character(len=:), allocatable :: rest, word
    rest = joined(expression)
    problem = ""
    self%n_items = 0
    word = next_word(rest)
    call parse_or(self, rest, word, problem)
    if (problem == "" .and. word /= "") problem = "has '"//word//"' where 'and', 'or' or the end is expected"
  end subroutine parse

  !> The text without blanks around colons, and around dashes between digits.
  pure function joined(text) result(dense)
    character(len=*), intent(in) :: text
    character(len=:), allocatable :: dense
    character(len=1) :: before, after
    integer :: i
    dense = ""
    do i = 1, len_trim(text)
      if (text(i:i) == " " .and. dense /= "") then
        before = dense(len(dense):)
        after = adjustl(text(i:))
        if (before == ":" .or. after == ":") cycle
        if (before == "-" .and. scan(after, "0123456789") > 0 .and. len(dense) > 1) then
          if (scan(dense(len(dense) - 1:len(dense) - 1), "0123456789") > 0) cycle
        end if
        if (after == "-" .and. scan(before, "0123456789") > 0) cycle
      end if
      dense = dense//text(i:i)
    end do
  end function joined

  !> Take the next word off the text; parentheses and `&`, `|`, `!` are words of their own, the end is an empty word.
  function next_word(rest) result(word)
    character(len=:), allocatable, intent(inout) :: rest
    character(len=:), allocatable :: word
    integer :: n
    rest = adjustl(rest)
    n = scan(rest//" ", " ()&|!") - 1
    if (n == 0 .and. len_trim(rest) > 0) n = 1
    word = rest(:n)
    rest = rest(n + 1:)
  end function next_word

  recursive subroutine parse_or(self, rest, word, problem)
    type(selection_t), intent(inout) :: self
    character(len=:), allocatable, intent(inout) :: rest, word, problem
    call parse_and(self, rest, word, problem)
    do while (problem == "" .and. (lower_case(word) == "or" .or. word == "|"))
      word = next_word(rest)
      call parse_and(self, rest, word, problem)
      call push(self, item_t(does_or), problem)
    end do
  end subroutine parse_or

  recursive subroutine parse_and(self, rest, word, problem)
    type(selection_t), intent(inout) :: self
    character(len=:), allocatable, intent(inout) :: rest, word, problem
    call parse_one(self, rest, word, problem)
    do while (problem == "" .and. (lower_case(word) == "and" .or. word == "&"))
      word = next_word(rest)
      call parse_one(self, rest, word, problem)
      call push(self, item_t(does_and), problem)
    end do
  end subroutine parse_and

  recursive subroutine parse_one(self, rest, word, problem)
    type(selection_t), intent(inout) :: self
    character(len=:), allocatable, intent(inout) :: rest, word, problem
    type(item_t) :: item
    if (lower_case(word) == "not" .or. word == "!") then
      word = next_word(rest)
      call parse_one(self, rest, word, problem)
      call push(self, item_t(does_not), problem)
      return
    else if (word == "(") then
      word = next_word(rest)
      call parse_or(self, rest, word, problem)
      if (problem /= "") return
      if (word /= ")") problem = "lacks a ')'"
    else
      call read_item(word, item, problem)
      call push(self, item, problem)
    end if
    word = next_word(rest)
    do while (problem == "" .and. index(lower_case(word), "around") == 1)
      call read_around(word, item, problem)
      call push(self, item, problem)
      word = next_word(rest)
    end do
  end subroutine parse_one

  !> What follows atoms to choose those around them, such as `around_res:6.0`.
  subroutine read_around(word, item, problem)
    character(len=*), intent(in) :: word
    type(item_t), intent(out) :: item
    character(len=:), allocatable, intent(inout) :: problem
    integer :: colon, status
    colon = index(word//":", ":")
    select case (lower_case(word(:colon - 1)))
    case ("around", "around_atoms")
      item%kind = around_atoms
    case ("around_res", "around_residues")
      item%kind = around_residues
    case ("around_mol", "around_molecules")
      item%kind = around_molecules
    case default
      problem = "has '"//word//"', which is none of around:, around_res:, around_mol:"
      return
    end select
    status = verify(word(colon + 1:), "0123456789.")
    if (status == 0) read (word(colon + 1:), *, iostat=status) item%radius
    if (status /= 0 .or. .not. item%radius > 0.0_real64) &
      problem = "has '"//word//"', whose distance must be a positive number of angstrom"
  end subroutine read_around

  subroutine push(self, item, problem)
    type(selection_t), intent(inout) :: self
    type(item_t), intent(in) :: item
    character(len=:), allocatable, intent(inout) :: problem
    if (problem /= "") return
    if (self%n_items == max_items) then
      problem = "has more than "//to_text(max_items)//" parts"
      return
    end if
    self%n_items = self%n_items + 1
    self%item(self%n_items) = item
  end subroutine push

  !> One condition such as `an:CA` or `rno:5-10`.
  subroutine read_item(word, item, problem)
    character(len=*), intent(in) :: word
    type(item_t), intent(out) :: item
    character(len=:), allocatable, intent(inout) :: problem
    character(len=:), allocatable :: value
    integer :: colon, dash, status
    if (problem /= "") return
    colon = index(word, ":")
    value = word(colon + 1:)
    select case (lower_case(word(:max(0, colon - 1))))
    case ("ai", "atomindex", "atomidx", "atomno", "ano")
      item%kind = want_index
    case ("an", "atomname", "atom_name")
      item%kind = want_name
    case ("rnam", "resname", "residuename")
      item%kind = want_residue
    case ("rno", "resno", "residueno", "resid")
      item%kind = want_residue_number
    case ("segid", "sid", "segmentid")
      item%kind = want_segment
    case ("mname", "moleculename", "molname", "mol")
      item%kind = want_molecule
    case default
      select case (lower_case(word))
      case ("all", "*")
        item%kind = want_all
      case ("heavy", "heavyatom")
        item%kind = want_heavy
      case ("hydrogen", "hydrogenatom")
        item%kind = want_hydrogen
      case ("backbone", "backboneatom")
        item%kind = want_backbone
      case default
        problem = "has '"//word//"', which is none of all, heavy, hydrogen, backbone, ai:, an:, mname:, resname:, rno:, segid:"
        if (index(lower_case(word), "around") == 1) &
          problem = "has '"//word//"' without the atoms that it is around before it"
      end select
      return
    end select
    if (value == "" .or. len(value) > name_length .and. item%kind /= want_index .and. &
        item%kind /= want_residue_number) then
      problem = "has '"//word//"', whose value is empty or too long"
      return
    end if
    item%name = value(:min(len(value), name_length))
    if (item%kind /= want_index .and. item%kind /= want_residue_number) return
    dash = index(value(2:), "-") + 1
    if (dash == 1) dash = len(value) + 1
    read (value(:dash - 1), *, iostat=status) item%first
    item%last = item%first
    if (status == 0 .and. dash <= len(value)) read (value(dash + 1:), *, iostat=status) item%last
    if (status /= 0 .or. verify(value, "0123456789-") > 0) problem = "has '"//word//"', which is no number or range"
  end subroutine read_item

  !> Whether the atom with this global id (from 0) is chosen. Equal molecules share their names in the topology. Those of one
  !> residue, such as waters, have numbers and segments of their own in imported systems, and else no number. Fails when a
  !> segment is asked for that stands for several other equal molecules.
  logical function holds(self, topology, names, id, error)
    class(selection_t), intent(in) :: self
    type(topology_t), intent(in) :: topology
    type(atom_names_t), intent(in) :: names
    integer(int64), intent(in) :: id
    type(error_t), allocatable, intent(inout) :: error
    holds = self%value_at(self%n_items, topology, names, id, error)
  end function holds

  !> The same by the last value of the first `last` items alone.
  logical function value_at(self, last, topology, names, id, error)
    class(selection_t), intent(in) :: self
    integer, intent(in) :: last
    type(topology_t), intent(in) :: topology
    type(atom_names_t), intent(in) :: names
    integer(int64), intent(in) :: id
    type(error_t), allocatable, intent(inout) :: error
    logical :: stack(max_items)
    integer(int64) :: origin, copy, number
    real(real64) :: mass
    integer :: t, a, k, top, run, named
    logical :: is_shared, is_numbered
    call topology%locate(id, t, a, origin)
    mass = topology%templates(t)%mass(a)
    call topology%locate_in_molecule(id, t, a, run, copy)
    named = topology%molecules(t)%named_as
    is_numbered = names%molecule(named)%is_one_residue .and. allocated(topology%run_residue)
    is_shared = .false.
    if (.not. is_numbered) is_shared = topology%molecule_count(t) > 1
    number = names%molecule(named)%residue_number(a)
    if (is_numbered) number = topology%run_residue(run) + copy
    top = 0
    associate (molecule => names%molecule(named))
      do k = 1, last
        associate (item => self%item(k))
          if (item%kind < does_and) top = top + 1
          select case (item%kind)
          case (want_all)
            stack(top) = .true.
          case (want_heavy)
            stack(top) = mass > heaviest_hydrogen
          case (want_hydrogen)
            stack(top) = mass > 0.0_real64 .and. mass <= heaviest_hydrogen
          case (want_index)
            stack(top) = id + 1 >= item%first .and. id + 1 <= item%last
          case (want_name)
            stack(top) = matches(molecule%atom(a), item%name)
          case (want_residue)
            stack(top) = matches(molecule%residue(a), item%name)
          case (want_residue_number)
            stack(top) = number >= item%first .and. number <= item%last
            if (molecule%is_one_residue .and. is_shared) stack(top) = .false.
          case (want_backbone)
            stack(top) = molecule%is_backbone(a)
          case (want_segment)
            if (is_numbered) then
              stack(top) = matches(topology%run_segment(run), item%name)
            else
              stack(top) = matches(molecule%segment(a), item%name)
            end if
            if (stack(top) .and. is_shared .and. .not. allocated(error)) &
              call fail(error, exit_bad_input, "segid:"//trim(item%name)//" is the first of "// &
                        to_text(topology%molecule_count(t))//" equal molecules, which share their names in the "// &
                        "topology: choose its atoms by ai:FIRST-LAST")
          case (want_molecule)
            stack(top) = matches(molecule%name, item%name)
          case (does_and)
            top = top - 1
            stack(top) = stack(top) .and. stack(top + 1)
          case (does_or)
            top = top - 1
            stack(top) = stack(top) .or. stack(top + 1)
          case (does_not)
            stack(top) = .not. stack(top)
          case (around_atoms:)
            stack(top) = item%reached(id) > 0 .and. .not. stack(top)
          end select
        end associate
      end do
    end associate
    value_at = stack(top)
  end function value_at

  !> Whether a name fits a pattern that may end with *, which stands for anything.
  pure logical function matches(name, pattern)
    character(len=*), intent(in) :: name, pattern
    integer :: star
    star = index(pattern, "*")
    if (star == 0) then
      matches = name == pattern
    else
      matches = name(:star - 1) == pattern(:star - 1)
    end if
  end function matches

end module selection
