!> The state of a simulation on one rank: atoms, box and domain, step, time and phase, and how numbers are rounded; with
!> the halo that brings ghosts, and the clock of the run.
module system_state
  use base_kinds, only: int64, real64
  use base_box_shape, only: translation
  use base_error, only: error_t
  use base_fixed_point, only: rounding_t
  use comm_communicator, only: communicator_t
  use comm_domain_grid, only: domain_grid_t
  use comm_halo, only: halo_t
  use comm_migration, only: migrate_groups => migrate
  use atoms, only: atoms_t
  use restart, only: phase_fresh
  use timing, only: timer_t
  use topology, only: topology_t
  use virtual_sites, only: virtual_sites_t
  implicit none
  private
  public :: system_state_t

  type :: system_state_t
    type(communicator_t) :: comm
    type(domain_grid_t) :: grid
    type(topology_t) :: topology
    type(atoms_t) :: atoms
    type(virtual_sites_t) :: sites
    type(halo_t) :: halo
    type(timer_t) :: timer
    !> How positions, forces and energies are rounded: in the deterministic mode.
    type(rounding_t) :: rounding
    integer(int64) :: step = 0
    !> ps.
    real(real64) :: time = 0.0_real64
    !> Length of a step of dynamics, ps; 0 in a minimisation.
    real(real64) :: timestep = 0.0_real64
    !> Share of the steps of the run that are done.
    real(real64) :: progress = 0.0_real64
    integer :: phase = phase_fresh
    !> There is no periodic box: the model stands in the middle of a larger one (module open_box).
    logical :: is_open = .false.
    !> Atoms have no velocities; what their array holds is something else.
    logical :: is_at_rest = .false.
    !> Forces of the longer step are kept apart, in `slow_force` (kcal/mol/angstrom; 3, owned atoms).
    logical :: split_forces = .false.
    real(real64), allocatable :: slow_force(:, :)
    !> Forces of torsions, where a boost needs them apart (kcal/mol/angstrom; 3, owned atoms).
    real(real64), allocatable :: torsion_force(:, :)
    !> Points of the grid of reciprocal space along x, y and z; 0 = there was none.
    integer :: grid_points(3) = 0
  contains
    procedure :: set_box
    procedure :: scale_positions
    procedure :: migrate
    procedure :: slow_forces
  end type system_state_t

contains

  !> Give the box other edges (angstrom) and leave the atoms where they are.
  subroutine set_box(self, box)
    class(system_state_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    call self%grid%set_box(box)
    call self%halo%set_box(self%grid)
    call self%rounding%fit_box(box)
    self%atoms%rounding = self%rounding
  end subroutine set_box

  !> Move the centres of mass of the constraint groups as scaling the box by `factor`, to `edges` (angstrom), moves them.
  subroutine scale_positions(self, factor, edges)
    class(system_state_t), intent(inout) :: self
    real(real64), intent(in) :: factor(3), edges(3)
    real(real64) :: shift(3), image(3), tilt_change(3)
    integer :: g, i, a, b
    associate (atoms => self%atoms, shape => self%grid%shape)
      tilt_change = shape%tilt(edges) - shape%tilt(self%grid%box)
      !$omp parallel do schedule(static) private(i, a, b, shift, image)
      do g = 1, atoms%n_groups
        a = atoms%group_first(g)
        b = atoms%group_first(g + 1) - 1
        shift = 0.0_real64
        do i = a + 1, b
          shift = shift + atoms%mass(atoms%kind(i))*(atoms%position(:, i) - atoms%position(:, a))
        end do
        ! By the image in the box, so that it does not matter in which the rank sees the group.
        shift = shift/sum(atoms%mass(atoms%kind(a:b)))
        if (shape%leans) then
          image = floor(self%grid%straight(atoms%position(:, a))/self%grid%box)
          shift = atoms%position(:, a) - self%grid%translation(image) + shift
          shift = self%rounding%on_lattice((factor - 1.0_real64)*shift) + &
                  translation(image, edges - self%grid%box, tilt_change)
        else
          image = floor(atoms%position(:, a)/self%grid%box)
          shift = atoms%position(:, a) - image*self%grid%box + shift
          shift = self%rounding%on_lattice((factor - 1.0_real64)*shift) + image*(edges - self%grid%box)
        end if
        do i = a, b
          atoms%position(:, i) = atoms%position(:, i) + shift
        end do
      end do
      !$omp end parallel do
    end associate
  end subroutine scale_positions

  !> Send the owned atoms, with all that goes with them, to the ranks whose domains they are in, which must be
  !> within `reach` (angstrom) of this one's.
  subroutine migrate(self, reach, error)
    class(system_state_t), intent(inout) :: self
    real(real64), intent(in) :: reach
    type(error_t), allocatable, intent(out) :: error
    real(real64), allocatable :: payload(:, :)
    integer :: n_carried, n_anchor, n_mark
    associate (atoms => self%atoms)
      n_carried = 0
      if (allocated(atoms%carried)) n_carried = size(atoms%carried, 1)
      n_anchor = 0
      if (allocated(atoms%anchor)) n_anchor = size(atoms%anchor, 1)
      n_mark = merge(1, 0, allocated(atoms%fixed))
      allocate (payload(6 + n_carried + n_anchor + n_mark, atoms%n_owned))
      payload(:3, :) = atoms%position
      payload(4:6, :) = atoms%velocity
      if (n_carried > 0) payload(7:6 + n_carried, :) = atoms%carried
      if (n_anchor > 0) payload(7 + n_carried:6 + n_carried + n_anchor, :) = atoms%anchor
      if (n_mark > 0) payload(7 + n_carried + n_anchor, :) = merge(1.0_real64, 0.0_real64, atoms%fixed)
      call migrate_groups(self%comm, self%grid, reach, atoms%group_first, atoms%position(:, atoms%group_reference), &
                          atoms%id, payload, error)
      call self%comm%agree(error)
      if (allocated(error)) return
      atoms%position = payload(:3, :)
      atoms%velocity = payload(4:6, :)
      if (n_carried > 0) atoms%carried = payload(7:6 + n_carried, :)
      if (n_anchor > 0) atoms%anchor = payload(7 + n_carried:6 + n_carried + n_anchor, :)
      if (n_mark > 0) atoms%fixed = payload(7 + n_carried + n_anchor, :) > 0.5_real64
      call atoms%identify_owned(self%topology)
    end associate
  end subroutine migrate

  !> Where terms of the longer step add their forces on the owned atoms.
  function slow_forces(self) result(force)
    class(system_state_t), target, intent(in) :: self
    real(real64), pointer, contiguous :: force(:, :)
    if (self%split_forces) then
      force => self%slow_force
    else
      force => self%atoms%force
    end if
  end function slow_forces

end module system_state
