!> The spheres of [BOUNDARY] spherical_pot, which hold the atoms of an open model together: where they stand, and how far
!> outside of them a position is. Their centres are given, or are atoms where the run is set up; they do not move.
module spheres
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use open_box, only: open_origin
  use selection, only: atom_names_t, selection_t
  use settings, only: settings_t
  use start_coordinates, only: start_coordinates_t
  use system_state, only: system_state_t
  implicit none
  private
  public :: spheres_t

  type :: spheres_t
    !> (3, spheres) in the large box; angstrom, both.
    real(real64), allocatable :: centre(:, :), radius(:)
  contains
    procedure :: find
    procedure :: excess
    procedure, private :: add
  end type spheres_t

contains

  !> Find the spheres of the settings; all ranks do so alike.
  subroutine find(self, settings, state, error)
    class(spheres_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(in) :: state
    type(error_t), allocatable, intent(out) :: error
    type(atom_names_t) :: names
    real(real64) :: origin(3)
    integer :: k
    origin = open_origin(state%grid%box)
    allocate (self%centre(3, 0), self%radius(0))
    associate (sphere => settings%boundary%sphere)
      do k = 1, size(sphere%centre, 2)
        call self%add(sphere%centre(:, k) + origin, sphere%radius(k))
      end do
      if (size(sphere%group) > 0) call names%read(state%topology, error)
      do k = 1, size(sphere%group)
        if (.not. allocated(error)) &
          call add_around_atoms(self, settings, state, names, sphere%group(k), sphere%radius(k), error)
      end do
    end associate
  end subroutine find

  !> A sphere about each atom of a group.
  subroutine add_around_atoms(self, settings, state, names, group, radius, error)
    type(spheres_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(in) :: state
    type(atom_names_t), intent(in) :: names
    integer, intent(in) :: group
    real(real64), intent(in) :: radius
    type(error_t), allocatable, intent(out) :: error
    type(selection_t) :: selection
    type(start_coordinates_t) :: start
    integer(int64), allocatable :: id(:)
    real(real64), allocatable :: position(:, :)
    integer :: part, i, n_before
    call selection%read(settings, group, state%topology, names, error)
    if (.not. allocated(error)) call start%find(settings, error, of_setup=.true.)
    if (allocated(error)) return
    n_before = size(self%radius)
    do part = 1, start%n_parts
      call start%read_part(part, id, position, error)
      do i = 1, size(id)
        if (allocated(error)) return
        if (selection%holds(state%topology, names, id(i), error)) &
          call self%add(position(:, i) + start%origin(state%grid%box), radius)
      end do
      if (allocated(error)) return
    end do
    if (size(self%radius) == n_before) call settings%refuse_group(group, "chooses no atom", error)
  end subroutine add_around_atoms

  subroutine add(self, centre, radius)
    class(spheres_t), intent(inout) :: self
    real(real64), intent(in) :: centre(3), radius
    self%centre = reshape([self%centre, centre], [3, size(self%radius) + 1])
    self%radius = [self%radius, radius]
  end subroutine add

  !> How far (angstrom) a position is outside of the sphere that it is least outside of, negative inside; `away`: from the
  !> centre of that sphere.
  pure subroutine excess(self, position, distance, away)
    class(spheres_t), intent(in) :: self
    real(real64), intent(in) :: position(3)
    real(real64), intent(out) :: distance, away(3)
    real(real64) :: this
    integer :: s
    distance = huge(distance)
    away = 0.0_real64
    do s = 1, size(self%radius)
      this = norm2(position - self%centre(:, s)) - self%radius(s)
      if (this >= distance) cycle
      distance = this
      away = position - self%centre(:, s)
    end do
  end subroutine excess

end module spheres
