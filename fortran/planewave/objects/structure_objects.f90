!> Structure factors by splines among objects: R_HE(z) and G_HE(p) of the source.
!>
!> R_HE(z), a plane of the mesh, spreads atoms and sends lines along z to all sets of waves of the density, G_HE(p), which
!> are where rho_G(p) are. Forces go the same way back: sets send lines to planes, which are read about the atoms. Two
!> kinds of atoms share a complex field.
module structure_objects
  use base_kinds, only: real64
  use comm_communicator, only: communicator_t
  use euler_spline, only: euler_spline_t, spline_settings_t, support_t
  use ions, only: ions_t
  use object_map, only: object_map_t
  use object_office, only: handler_t, pairs_as_complex
  use stick_lines, only: backward, forward, plane_transform_t, stick_lines_t
  use wave_sphere, only: sphere_t
  implicit none
  private
  public :: structure_objects_t, structure_names

  !> Kinds of messages.
  integer, parameter :: to_sets = 1, to_planes = 2
  character(len=32), parameter :: structure_names(2) = [character(len=32) :: "atoms_to_waves", "waves_to_atoms"]
  !> Tasks.
  integer, parameter :: spread_atoms = 1, lines_to_waves = 2, waves_to_lines = 3, read_atoms = 4

  !> G_HE(p): structure factors, or the field that acts on them (waves, species).
  type :: structure_set_t
    integer :: set = 0, waiting = 0
    complex(real64), allocatable :: value(:, :), line(:, :, :)
    real(real64), allocatable :: d(:)
  end type structure_set_t

  !> R_HE(z), with the forces (3, n) that it puts on the atoms.
  type :: structure_plane_t
    integer :: plane = 0, waiting = 0
    complex(real64), allocatable :: value(:, :, :)
    real(real64), allocatable :: force(:, :)
  end type structure_plane_t

  type, extends(handler_t) :: structure_objects_t
    type(structure_set_t), allocatable :: set(:)
    type(structure_plane_t), allocatable, private :: plane(:)
    type(object_map_t), pointer, private :: map => null()
    type(euler_spline_t), private :: spline
    type(plane_transform_t), private :: transform
    type(stick_lines_t), allocatable, private :: lines(:)
    type(support_t), allocatable, private :: support(:)
    !> Ranks of the planes; object here of each plane and set, 0: elsewhere.
    integer, allocatable, private :: rank(:), place(:), place_of_set(:)
    integer, private :: n_fields = 0
    type(ions_t), pointer, private :: system => null()
  contains
    procedure :: create
    procedure :: sum_atoms
    procedure :: forces
    procedure :: deliver
    procedure :: perform
  end type structure_objects_t

contains

  !> `dense`: the sphere of the density, dealt to all sets; `office` is open.
  subroutine create(self, map, system, dense, settings, comm)
    class(structure_objects_t), intent(inout) :: self
    type(object_map_t), target, intent(in) :: map
    type(ions_t), intent(in) :: system
    type(sphere_t), intent(in) :: dense
    type(spline_settings_t), intent(in) :: settings
    type(communicator_t), intent(in) :: comm
    type(sphere_t) :: on_mesh, part
    integer :: p, z, n
    self%map => map
    self%n_fields = (size(system%pseudo) + 1)/2
    call self%spline%create(dense%box, dense%n, settings)
    call self%spline%sphere_on_mesh(dense, map%n_rho_sets, 0, on_mesh)
    call self%transform%create(on_mesh)
    self%rank = map%mesh_ranks(map%rho_r(1, :), self%spline%n(3))
    allocate (self%lines(map%n_rho_sets), self%place_of_set(map%n_rho_sets), self%place(self%spline%n(3)))
    allocate (self%set(count(map%rho_g == comm%rank)), self%plane(count(self%rank == comm%rank)))
    allocate (self%support(system%n_atoms()))
    n = 0
    do p = 1, map%n_rho_sets
      call self%lines(p)%create(on_mesh, p - 1)
      if (map%rho_g(p) /= comm%rank) cycle
      n = n + 1
      self%place_of_set(p) = n
      call part%create(dense%box, dense%n, dense%largest_g2, map%n_rho_sets, p - 1)
      self%set(n)%set = p
      self%set(n)%d = self%spline%factors(part)
      allocate (self%set(n)%value(part%n_waves, size(system%pseudo)))
      allocate (self%set(n)%line(self%spline%n(3), self%lines(p)%n_lines, self%n_fields))
    end do
    n = 0
    do z = 1, self%spline%n(3)
      if (self%rank(z) /= comm%rank) cycle
      n = n + 1
      self%place(z) = n
      self%plane(n)%plane = z
      allocate (self%plane(n)%value(on_mesh%n(1), on_mesh%n(2), self%n_fields), self%plane(n)%force(3, system%n_atoms()))
    end do
  end subroutine create

  !> Structure factors of the ions, into the sets here.
  subroutine sum_atoms(self, system)
    class(structure_objects_t), target, intent(inout) :: self
    type(ions_t), target, intent(in) :: system
    integer :: a
    self%system => system
    do a = 1, system%n_atoms()
      self%support(a) = self%spline%support_of(system%position(:, a))
    end do
    call begin_round(self, spread_atoms, size(self%plane))
  end subroutine sum_atoms

  !> Add to `force` (3, n) this rank's part of what a field does that is in the sets here, as structure_factors%forces has
  !> it.
  subroutine forces(self, force)
    class(structure_objects_t), target, intent(inout) :: self
    real(real64), intent(inout) :: force(:, :)
    integer :: k
    call begin_round(self, waves_to_lines, size(self%set))
    do k = 1, size(self%plane)
      force = force + self%plane(k)%force
    end do
  end subroutine forces

  !> A round that begins with the same task of n objects here.
  subroutine begin_round(self, task, n)
    class(structure_objects_t), target, intent(inout) :: self
    integer, intent(in) :: task, n
    integer :: k
    call self%office%begin(size(self%set) + size(self%plane))
    do k = 1, size(self%set)
      self%set(k)%waiting = self%spline%n(3)
    end do
    do k = 1, size(self%plane)
      self%plane(k)%waiting = self%map%n_rho_sets
      self%plane(k)%value = 0.0_real64
    end do
    do k = 1, n
      call self%office%push(task, k)
    end do
    call self%run()
  end subroutine begin_round

  subroutine deliver(self, kind, index, values)
    class(structure_objects_t), target, intent(inout) :: self
    integer, intent(in) :: kind, index(3)
    real(real64), intent(in) :: values(:)
    complex(real64), allocatable :: arrived(:, :)
    integer :: l
    arrived = reshape(pairs_as_complex(values), [size(values)/(2*self%n_fields), self%n_fields])
    if (kind == to_sets) then  ! set, plane
      associate (set => self%set(self%place_of_set(index(1))))
        set%line(index(2), :, :) = arrived
        set%waiting = set%waiting - 1
        if (set%waiting == 0) call self%office%push(lines_to_waves, self%place_of_set(index(1)))
      end associate
    else  ! plane, set
      associate (plane => self%plane(self%place(index(1))), lines => self%lines(index(2)))
        do l = 1, lines%n_lines
          plane%value(lines%x(l), lines%y(l), :) = arrived(l, :)
        end do
        plane%waiting = plane%waiting - 1
        if (plane%waiting == 0) call self%office%push(read_atoms, self%place(index(1)))
      end associate
    end if
  end subroutine deliver

  subroutine perform(self, what, which)
    class(structure_objects_t), target, intent(inout) :: self
    integer, intent(in) :: what, which
    select case (what)
    case (spread_atoms)
      call spread_plane(self, self%plane(which))
    case (lines_to_waves)
      call take_lines(self, self%set(which))
    case (waves_to_lines)
      call send_lines(self, self%set(which))
    case (read_atoms)
      call read_plane(self, self%plane(which))
    end select
  end subroutine perform

  !> All atoms on a plane of the mesh, and its lines to the sets.
  subroutine spread_plane(self, plane)
    class(structure_objects_t), target, intent(inout) :: self
    type(structure_plane_t), intent(inout) :: plane
    real(real64) :: mesh(self%spline%n(1), self%spline%n(2), 1, 2*self%n_fields)
    integer :: a, f, p, l
    mesh = 0.0_real64
    do a = 1, self%system%n_atoms()
      call self%spline%spread(self%support(a), 1.0_real64, plane%plane - 1, mesh(:, :, :, self%system%species(a)))
    end do
    do f = 1, self%n_fields
      plane%value(:, :, f) = cmplx(mesh(:, :, 1, 2*f - 1), mesh(:, :, 1, 2*f), real64)
      call self%transform%to_waves(plane%value(:, :, f))
    end do
    do p = 1, self%map%n_rho_sets
      associate (lines => self%lines(p))
        call self%office%post(to_sets, self%map%rho_g(p), [p, plane%plane, 0], &
                              [((plane%value(lines%x(l), lines%y(l), f), l=1, lines%n_lines), f=1, self%n_fields)])
      end associate
    end do
    call self%poll()
  end subroutine spread_plane

  !> All planes have sent: the structure factors.
  subroutine take_lines(self, set)
    class(structure_objects_t), target, intent(inout) :: self
    type(structure_set_t), intent(inout) :: set
    integer :: f, s
    set%value = 0.0_real64
    associate (lines => self%lines(set%set))
      do f = 1, self%n_fields
        call self%transform%along_z(forward, 0, lines%n_lines, set%line(:, :, f))
        do s = 1, lines%n_sticks
          call lines%gather(s, set%line(:, :, f), set%value(:, 2*f - 1:min(2*f, size(set%value, 2))))
        end do
      end do
    end associate
    do s = 1, size(set%value, 2)
      set%value(:, s) = product(real(self%spline%n, real64))*set%d*set%value(:, s)
    end do
  end subroutine take_lines

  !> A field on its way to the mesh.
  subroutine send_lines(self, set)
    class(structure_objects_t), target, intent(inout) :: self
    type(structure_set_t), intent(inout) :: set
    integer :: f, s, z
    do s = 1, size(set%value, 2)
      set%value(:, s) = set%d*set%value(:, s)
    end do
    associate (lines => self%lines(set%set))
      do f = 1, self%n_fields
        do s = 1, lines%n_sticks
          call lines%scatter(s, set%value(:, 2*f - 1:min(2*f, size(set%value, 2))), set%line(:, :, f))
        end do
        call self%transform%along_z(backward, 0, lines%n_lines, set%line(:, :, f))
      end do
    end associate
    do z = 1, self%spline%n(3)
      call self%office%post(to_planes, self%rank(z), [z, set%set, 0], [set%line(z, :, :)])
    end do
    call self%poll()
  end subroutine send_lines

  !> A plane of the field is there: what it does to the atoms.
  subroutine read_plane(self, plane)
    class(structure_objects_t), target, intent(inout) :: self
    type(structure_plane_t), intent(inout) :: plane
    real(real64) :: mesh(self%spline%n(1), self%spline%n(2), 1, 2*self%n_fields), value, slope(3)
    integer :: a, f
    do f = 1, self%n_fields
      call self%transform%to_grid(plane%value(:, :, f))
      mesh(:, :, 1, 2*f - 1) = real(plane%value(:, :, f), real64)
      mesh(:, :, 1, 2*f) = aimag(plane%value(:, :, f))
    end do
    do a = 1, self%system%n_atoms()
      call self%spline%gather(self%support(a), plane%plane - 1, mesh(:, :, :, self%system%species(a)), value, slope)
      plane%force(:, a) = -slope
    end do
  end subroutine read_plane

end module structure_objects
