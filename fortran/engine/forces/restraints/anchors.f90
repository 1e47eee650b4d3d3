!> Where positional restraints hold their atoms. A rank knows the anchors of the atoms that it owns; they go with these to
!> new owners, so that no rank has those of all atoms, however many are restrained.
module anchors
  use base_kinds, only: int64, real64
  use base_error, only: error_t, exit_bad_input, fail
  use base_text, only: to_text
  use bricks, only: brick_list_t
  use comm_domain_grid, only: domain_grid_t
  use id_map, only: id_map_t
  use open_box, only: open_origin
  use selection, only: atom_names_t, selection_t
  use settings, only: position_restraint, settings_t
  use system_state, only: system_state_t
  implicit none
  private
  public :: set_anchors, is_anchored

  !> Restraints are told apart by the bits of a whole number that a real holds exactly.
  integer, parameter :: max_restraints = 52

contains

  !> Give each owned atom its anchor: reference position as fractions of the box, and the sum of 2**(k - 1) over the
  !> positional restraints k that hold the atom. All ranks must call it.
  subroutine set_anchors(settings, state, names, error)
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(atom_names_t), intent(in) :: names
    type(error_t), allocatable, intent(out) :: error
    integer(int64), allocatable :: n_held(:)
    integer :: k
    if (.not. any(settings%restraint%kind == position_restraint)) return
    if (size(settings%restraint) > max_restraints) then
      call settings%refuse("RESTRAINTS", "nfunctions", "must be at most "//to_text(max_restraints)//" with POSI", error)
      return
    end if
    allocate (state%atoms%anchor(4, state%atoms%n_owned), source=0.0_real64)
    allocate (n_held(size(settings%restraint)), source=0_int64)
    do k = 1, size(settings%restraint)
      if (settings%restraint(k)%kind /= position_restraint) cycle
      call choose_held(settings, state, names, k, n_held(k), error)
      if (allocated(error)) exit
    end do
    call state%comm%agree(error)
    if (allocated(error)) return
    call state%comm%sum(n_held)
    do k = 1, size(settings%restraint)
      if (settings%restraint(k)%kind /= position_restraint .or. n_held(k) > 0) cycle
      call settings%refuse_group(settings%restraint(k)%group(1), "chooses no atom", error)
      return
    end do
    call read_references(settings%input%reference, state, error)
    call state%comm%agree(error)
  end subroutine set_anchors

  !> Whether restraint `k` holds an atom with this anchor.
  pure logical function is_anchored(anchor, k)
    real(real64), intent(in) :: anchor(4)
    integer, intent(in) :: k
    is_anchored = btest(int(anchor(4), int64), k - 1)
  end function is_anchored

  !> Mark the owned atoms that restraint `k` holds; `n`: their number.
  subroutine choose_held(settings, state, names, k, n, error)
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(atom_names_t), intent(in) :: names
    integer, intent(in) :: k
    integer(int64), intent(out) :: n
    type(error_t), allocatable, intent(out) :: error
    type(selection_t) :: selection
    integer :: i
    logical :: chosen
    n = 0
    call selection%read(settings, settings%restraint(k)%group(1), state%topology, names, error)
    if (allocated(error)) return
    do i = 1, state%atoms%n_owned
      chosen = selection%holds(state%topology, names, state%atoms%id(i), error)
      if (allocated(error)) return
      if (.not. chosen) cycle
      n = n + 1
      state%atoms%anchor(4, i) = state%atoms%anchor(4, i) + 2.0_real64**(k - 1)
    end do
  end subroutine choose_held

  !> Reference positions of the restrained owned atoms from the bricks that the file at `path` lists: those nearest to the
  !> domain first, and no further ones once all atoms are found.
  subroutine read_references(path, state, error)
    character(len=*), intent(in) :: path
    type(system_state_t), intent(inout) :: state
    type(error_t), allocatable, intent(out) :: error
    type(brick_list_t) :: list
    type(id_map_t) :: held
    integer(int64), allocatable :: id(:)
    real(real64), allocatable :: position(:, :), distance(:)
    real(real64) :: origin(3), edges(3)
    integer :: b, i, k, n_held, n_found
    call list%read(path, error)
    if (allocated(error)) return
    associate (atoms => state%atoms)
      n_held = count(atoms%anchor(4, :) > 0.0_real64)
      call held%create(n_held, atoms%n_owned)
      do i = 1, atoms%n_owned
        if (atoms%anchor(4, i) > 0.0_real64) call held%add(atoms%id(i), i)
      end do
      origin = 0.0_real64
      edges = list%box
      if (state%is_open) then
        ! From here on as in the large box.
        edges = state%grid%box
        origin = open_origin(edges)
      end if
      allocate (distance(list%n_bricks))
      do b = 1, list%n_bricks
        distance(b) = distance_from_domain(state%grid, (list%lower(:, b) + origin)/edges, (list%upper(:, b) + origin)/edges)
      end do
      n_found = 0
      do while (n_found < n_held .and. any(distance < huge(1.0_real64)))
        b = minloc(distance, dim=1)
        distance(b) = huge(1.0_real64)
        call list%read_brick(b, id, position, error)
        if (allocated(error)) return
        do k = 1, size(id)
          i = held%first_copy(id(k))
          if (i == 0) cycle
          n_found = n_found + 1
          ! By the vectors of the simulation: those of the list may be others of the same lattice.
          atoms%anchor(:3, i) = (state%grid%straight(position(:, k)) + origin)/edges
        end do
      end do
    end associate
    if (n_found < n_held) &
      call fail(error, exit_bad_input, path//": holds "//to_text(n_found)//" of "//to_text(n_held)// &
                " restrained atoms; give the bricks of the same build")
  end subroutine read_references

  !> Square of the distance (angstrom^2) between this rank's domain and a part of the box, given by fractions of it.
  pure real(real64) function distance_from_domain(grid, lower, upper) result(distance)
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(in) :: lower(3), upper(3)
    real(real64) :: gap(3)
    integer :: image
    gap = 1.0_real64
    do image = -1, 1
      gap = min(gap, max(0.0_real64, lower + image - grid%upper/grid%box, grid%lower/grid%box - upper - image))
    end do
    distance = sum((gap*grid%box)**2)
  end function distance_from_domain

end module anchors
