!> Atoms that do not move, by fixatm_select_index in [MINIMIZE], [DYNAMICS] and [CONSTRAINTS] and by fixatom in [BOUNDARY]:
!> which they are (marks that go with the owned atoms), and what motions the system lacks for them. They have neither forces
!> nor velocities, and all others feel them. Virtual sites follow their parents, fixed or not.
module fixed_atoms
  use, intrinsic :: iso_fortran_env, only: int8
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use base_text, only: to_text
  use selection, only: atom_names_t, selection_t
  use settings, only: settings_t
  use spheres, only: spheres_t
  use start_coordinates, only: start_coordinates_t
  use system_state, only: system_state_t
  implicit none
  private
  public :: fixed_atoms_t

  type :: fixed_atoms_t
    !> Of all ranks: fixed atoms, and constraint groups of which all atoms are fixed, or some.
    integer(int64) :: n_atoms = 0, n_groups = 0, n_parted = 0
    !> Degrees of freedom that solute and solvent lack for them.
    real(real64) :: n_freedom(2) = 0.0_real64
  contains
    procedure :: init
    procedure :: are_there
    procedure :: describe
  end type fixed_atoms_t

contains

  !> Mark the owned atoms that the settings fix, and count them. `rigid`: constraints act. All ranks must call it.
  subroutine init(self, settings, state, rigid, error)
    class(fixed_atoms_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    logical, intent(in) :: rigid
    type(error_t), allocatable, intent(out) :: error
    type(atom_names_t) :: names
    integer(int64) :: n_chosen(size(settings%fixed_group))
    integer :: k
    if (size(settings%fixed_group) == 0 .and. .not. settings%boundary%sphere%fixes) return
    call names%read(state%topology, error)
    call state%comm%agree(error)
    if (allocated(error)) return
    allocate (state%atoms%fixed(state%atoms%n_owned), source=.false.)
    n_chosen = 0
    do k = 1, size(n_chosen)
      if (.not. allocated(error)) call mark(settings, state, names, settings%fixed_group(k), n_chosen(k), error)
    end do
    if (settings%boundary%sphere%fixes .and. .not. allocated(error)) call mark_outside(settings, state, error)
    call state%comm%agree(error)
    if (allocated(error)) return
    call state%comm%sum(n_chosen)
    k = findloc(n_chosen, 0_int64, dim=1)
    if (k > 0) call settings%refuse_group(settings%fixed_group(k), "chooses no atom with a mass that could be fixed", error)
    if (allocated(error)) return
    call count_up(self, state, rigid)
    if (self%n_atoms < state%topology%n_atoms - state%topology%site_count()) return
    if (settings%boundary%sphere%fixes) then
      call settings%refuse("BOUNDARY", "fixatom", "leaves no atom that moves: all are outside of the spheres or near "// &
                           "their surface; give a larger radius or other centres", error)
    else
      call settings%refuse_group(settings%fixed_group(1), "leaves no atom that moves, by fixatm_select_index", error)
    end if
  end subroutine init

  !> Mark the owned atoms of a group; `n`: their number.
  subroutine mark(settings, state, names, group, n, error)
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(atom_names_t), intent(in) :: names
    integer, intent(in) :: group
    integer(int64), intent(out) :: n
    type(error_t), allocatable, intent(out) :: error
    type(selection_t) :: selection
    integer :: i
    n = 0
    call selection%read(settings, group, state%topology, names, error)
    do i = 1, state%atoms%n_owned
      if (allocated(error)) return
      if (.not. selection%holds(state%topology, names, state%atoms%id(i), error)) cycle
      if (.not. state%atoms%mass(state%atoms%kind(i)) > 0.0_real64) cycle
      n = n + 1
      state%atoms%fixed(i) = .true.
    end do
  end subroutine mark

  !> Mark the owned atoms that are outside of all spheres, or in the layer before their surface, where the run is set up.
  subroutine mark_outside(settings, state, error)
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(error_t), allocatable, intent(out) :: error
    type(spheres_t) :: spheres
    type(start_coordinates_t) :: start
    integer(int8), allocatable :: is_outside(:)
    integer(int64), allocatable :: id(:)
    real(real64), allocatable :: position(:, :)
    real(real64) :: distance, away(3)
    integer :: part, i
    call spheres%find(settings, state, error)
    if (.not. allocated(error)) call start%find(settings, error, of_setup=.true.)
    if (allocated(error)) return
    allocate (is_outside(0:state%topology%n_atoms - 1), source=0_int8)
    do part = 1, start%n_parts
      call start%read_part(part, id, position, error)
      if (allocated(error)) return
      do i = 1, size(id)
        call spheres%excess(position(:, i) + start%origin(state%grid%box), distance, away)
        if (distance > -settings%boundary%sphere%layer) is_outside(id(i)) = 1_int8
      end do
    end do
    associate (atoms => state%atoms)
      do i = 1, atoms%n_owned
        if (is_outside(atoms%id(i)) > 0 .and. atoms%mass(atoms%kind(i)) > 0.0_real64) atoms%fixed(i) = .true.
      end do
    end associate
  end subroutine mark_outside

  !> Fixed atoms and groups of all ranks, and their degrees of freedom.
  subroutine count_up(self, state, rigid)
    class(fixed_atoms_t), intent(inout) :: self
    type(system_state_t), intent(in) :: state
    logical, intent(in) :: rigid
    integer(int64) :: n(5)
    integer :: g, i, c, k, n_fixed, n_massive, n_constraints, pair(2)
    n = 0
    associate (atoms => state%atoms)
      do g = 1, atoms%n_groups
        associate (first => atoms%group_first(g), last => atoms%group_first(g + 1) - 1)
          n_fixed = count(atoms%fixed(first:last))
          if (n_fixed == 0) cycle
          n_massive = count(atoms%mass(atoms%kind(first:last)) > 0.0_real64)
          n_constraints = 0
          associate (template => state%topology%templates(atoms%template(atoms%kind(first))))
            i = template%group_of_atom(atoms%index_in_template(atoms%kind(first)))
            do c = template%constraint_first(i), template%constraint_first(i + 1) - 1
              pair = [(first - 1 + template%place_in_group(template%constraint_atom(k, c)), k=1, 2)]
              if (rigid .and. all(atoms%fixed(pair))) n_constraints = n_constraints + 1
            end do
            k = merge(5, 4, template%is_solvent())
          end associate
          n(1) = n(1) + n_fixed
          n(2) = n(2) + merge(1, 0, n_fixed == n_massive)
          n(3) = n(3) + merge(1, 0, n_fixed < n_massive)
          n(k) = n(k) + 3*n_fixed - n_constraints
        end associate
      end do
    end associate
    call state%comm%sum(n)
    self%n_atoms = n(1)
    self%n_groups = n(2)
    self%n_parted = n(3)
    self%n_freedom = real(n(4:5), real64)
  end subroutine count_up

  pure logical function are_there(self)
    class(fixed_atoms_t), intent(in) :: self
    are_there = self%n_atoms > 0
  end function are_there

  !> What the log says of them.
  function describe(self, settings) result(text)
    class(fixed_atoms_t), intent(in) :: self
    type(settings_t), intent(in) :: settings
    character(len=:), allocatable :: text
    text = to_text(self%n_atoms)//" atoms are fixed"
    if (settings%runs_dynamics) text = text//"; the centre of mass is not stopped"
    if (settings%runs_dynamics .and. self%n_parted > 0 .and. settings%ensemble%of_groups) &
      text = text//"; group_tp = NO, since "//to_text(self%n_parted)//" groups of rigid bonds are fixed in part"
  end function describe

end module fixed_atoms
