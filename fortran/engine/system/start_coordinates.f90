!> The coordinates by which groups of atoms are chosen: as in GENESIS those of reffile, else those that the run is set up
!> from (shardfile); those of rstfile where there are neither. They are read in parts, by every rank alike.
module start_coordinates
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use bricks, only: brick_list_t
  use comm_domain_grid, only: domain_grid_t
  use open_box, only: open_origin
  use restart, only: restart_t, saved_ranks
  use settings, only: settings_t
  implicit none
  private
  public :: start_coordinates_t

  type :: start_coordinates_t
    !> 0: there are none.
    integer :: n_parts = 0
    logical :: is_open = .false.
    !> The box, whole.
    type(domain_grid_t) :: grid
    type(brick_list_t), private :: list
    !> Restart files, empty where there are bricks.
    character(len=:), allocatable, private :: restart
  contains
    procedure :: find
    procedure :: read_part
    procedure :: origin
  end type start_coordinates_t

contains

  !> Find them; with `of_setup` shardfile goes before reffile.
  subroutine find(self, settings, error, of_setup)
    class(start_coordinates_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    logical, intent(in), optional :: of_setup
    type(restart_t) :: first
    character(len=:), allocatable :: bricks
    self%is_open = settings%boundary%is_open
    self%restart = ""
    bricks = settings%input%reference
    if (bricks == "" .or. (present(of_setup) .and. settings%input%shards /= "")) bricks = settings%input%shards
    if (bricks /= "") then
      call self%list%read(bricks, error)
      if (allocated(error)) return
      self%n_parts = self%list%n_bricks
      call self%grid%create(0, 1, self%list%box, [1, 1, 1], 0.0_real64, error, shape=self%list%shape)
    else if (settings%input%restart /= "") then
      self%restart = settings%input%restart
      call saved_ranks(self%restart, self%n_parts, error)
      if (.not. allocated(error)) call first%read(self%restart, 0, self%n_parts, error)
      if (.not. allocated(error)) &
        call self%grid%create(0, 1, first%box, [1, 1, 1], 0.0_real64, error, shape=first%shape)
    end if
  end subroutine find

  !> Global ids and positions (3, atoms; angstrom) of a part, from 1.
  subroutine read_part(self, part, id, position, error)
    class(start_coordinates_t), intent(in) :: self
    integer, intent(in) :: part
    integer(int64), allocatable, intent(out) :: id(:)
    real(real64), allocatable, intent(out) :: position(:, :)
    type(error_t), allocatable, intent(out) :: error
    type(restart_t) :: saved
    if (self%restart == "") then
      call self%list%read_brick(part, id, position, error)
    else
      call saved%read(self%restart, part - 1, self%n_parts, error)
      if (allocated(error)) return
      call move_alloc(saved%id, id)
      call move_alloc(saved%position, position)
    end if
  end subroutine read_part

  !> What to add to them (angstrom) where an open model stands in a large box with these edges.
  pure function origin(self, edges)
    class(start_coordinates_t), intent(in) :: self
    real(real64), intent(in) :: edges(3)
    real(real64) :: origin(3)
    origin = 0.0_real64
    if (self%is_open .and. self%restart == "") origin = open_origin(edges)
  end function origin

end module start_coordinates
