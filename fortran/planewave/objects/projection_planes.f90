!> Projections by splines among objects: G_nl(k, p) and R_nl(k, z) of the source, phases IX to XI of its flow.
!>
!> G(k, p) sends lines along z of its waves times each kind of projector to all planes R_nl(k, z) of the mesh. These
!> transform and are read about the atoms. Once the sums over planes have come back, they spread what the potential makes
!> of them, and lines go back to G(k, p). The owner of an object of this type hands it messages and tasks.
module projection_planes
  use base_kinds, only: real64
  use comm_communicator, only: communicator_t
  use euler_spline, only: euler_spline_t, spline_settings_t, support_t
  use ions, only: ions_t
  use nonlocal_potential, only: nonlocal_potential_t
  use object_map, only: object_map_t
  use object_office, only: handler_t, pairs_as_complex
  use projector_couplings, only: projector_couplings_t
  use stick_lines, only: backward, forward, plane_transform_t, stick_lines_t
  use wave_sphere, only: sphere_t
  implicit none
  private
  public :: projection_planes_t

  !> R_nl(k, z): lines of all sets (lines, kinds of projectors); what its splines give of projections, and of their
  !> derivatives by the places of their atoms (projectors, 2 states, 1 + axis).
  type :: mesh_plane_t
    integer :: pair = 0, plane = 0, waiting = 0
    complex(real64), allocatable :: column(:, :)
    real(real64), allocatable :: part(:, :, :)
  end type mesh_plane_t

  !> Lines of a wave object on the mesh (n_z, lines, kinds of projectors).
  type :: mesh_lines_t
    complex(real64), allocatable :: line(:, :, :)
  end type mesh_lines_t

  type :: projection_planes_t
    !> Planes of the mesh, 0: no splines.
    integer :: n_planes = 0
    type(mesh_plane_t), allocatable :: plane(:)
    !> Ranks, and object here or 0, of each (plane, pair).
    integer, allocatable :: rank(:, :), place(:, :)
    type(object_map_t), pointer, private :: map => null()
    type(euler_spline_t), private :: spline
    type(plane_transform_t), private :: transform
    type(stick_lines_t), allocatable, private :: lines(:)
    !> Lines before those of each set; species and projector of each kind.
    integer, allocatable, private :: line_start(:), species(:), projector(:)
    type(projector_couplings_t), private :: couplings
    type(support_t), allocatable, private :: support(:)
    !> Planes of each pair here that are not read yet.
    integer, allocatable, private :: unread(:)
    !> Of each wave object here: its lines on the mesh, those that leave and then those that come back.
    type(mesh_lines_t), allocatable, private :: lines_of_wave(:)
  contains
    procedure :: create
    procedure :: move
    procedure :: n_here
    procedure :: begin
    procedure :: sum_here
    procedure :: send
    procedure :: receive
    procedure :: read_atoms
    procedure :: spread_atoms
    procedure :: receive_back
    procedure :: finish
    procedure :: add_forces
  end type projection_planes_t

contains

  !> `waves`: the whole sphere, dealt to all sets; `set_of_wave`: sets of the wave objects here.
  subroutine create(self, map, system, waves, settings, couplings, set_of_wave, comm)
    class(projection_planes_t), intent(inout) :: self
    type(object_map_t), target, intent(in) :: map
    type(ions_t), intent(in) :: system
    type(sphere_t), intent(in) :: waves
    type(spline_settings_t), intent(in) :: settings
    type(projector_couplings_t), intent(in) :: couplings
    integer, intent(in) :: set_of_wave(:)
    type(communicator_t), intent(in) :: comm
    type(sphere_t) :: on_mesh
    integer :: k, z, p, n, s
    self%map => map
    self%couplings = couplings
    call self%spline%create(waves%box, (waves%n + 1)/2, settings)
    call self%spline%sphere_on_mesh(waves, map%n_sets, 0, on_mesh)
    call self%transform%create(on_mesh)
    self%n_planes = self%spline%n(3)
    self%species = [((s, k=1, size(couplings%species(s)%l)), s=1, size(couplings%species))]
    self%projector = [((k, k=1, size(couplings%species(s)%l)), s=1, size(couplings%species))]
    allocate (self%lines(map%n_sets), self%line_start(map%n_sets + 1), self%support(system%n_atoms()))
    self%line_start(1) = 0
    do p = 1, map%n_sets
      call self%lines(p)%create(on_mesh, p - 1)
      self%line_start(p + 1) = self%line_start(p) + self%lines(p)%n_lines
    end do
    allocate (self%rank(self%n_planes, map%n_pairs), self%place(self%n_planes, map%n_pairs), source=0)
    do k = 1, map%n_pairs
      self%rank(:, k) = map%mesh_ranks(map%r(:, k), self%n_planes)
    end do
    allocate (self%plane(count(self%rank == comm%rank)))
    n = 0
    do k = 1, map%n_pairs
      do z = 1, self%n_planes
        if (self%rank(z, k) /= comm%rank) cycle
        n = n + 1
        self%place(z, k) = n
        self%plane(n)%pair = k
        self%plane(n)%plane = z
        allocate (self%plane(n)%column(self%line_start(map%n_sets + 1), size(self%species)))
        allocate (self%plane(n)%part(couplings%n_projectors(), 2, 4))
      end do
    end do
    allocate (self%lines_of_wave(size(set_of_wave)))
    do k = 1, size(set_of_wave)
      allocate (self%lines_of_wave(k)%line(self%n_planes, self%lines(set_of_wave(k))%n_lines, size(self%species)))
    end do
  end subroutine create

  !> Take notice of new positions.
  subroutine move(self, system)
    class(projection_planes_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    integer :: a
    do a = 1, system%n_atoms()
      self%support(a) = self%spline%support_of(system%position(:, a))
    end do
  end subroutine move

  !> Plane objects here.
  pure integer function n_here(self)
    class(projection_planes_t), intent(in) :: self
    n_here = 0
    if (self%n_planes > 0) n_here = size(self%plane)
  end function n_here

  !> Be ready for an evaluation. `there`, `back`: kinds of messages, which travel in buckets; `pair` of each wave
  !> object here.
  subroutine begin(self, pair, via, there, back)
    class(projection_planes_t), intent(inout) :: self
    integer, intent(in) :: pair(:), there, back
    class(handler_t), intent(inout) :: via
    integer :: k, p, z
    do k = 1, size(pair)
      do z = 1, self%n_planes
        call via%office%expect(there, self%rank(z, pair(k)))
      end do
    end do
    self%unread = count(self%place > 0, 1)
    do k = 1, size(self%plane)
      self%plane(k)%part = 0.0_real64
      self%plane(k)%waiting = self%map%n_sets
      do p = 1, self%map%n_sets
        call via%office%expect(back, self%map%g(p, self%plane(k)%pair))
      end do
    end do
  end subroutine begin

  !> Wave object `which`: waves (waves, states) of pair k in set p, on their way to the mesh.
  subroutine send(self, which, k, p, nonlocal, states, via, kind)
    class(projection_planes_t), intent(inout) :: self
    integer, intent(in) :: which, k, p, kind
    type(nonlocal_potential_t), intent(in) :: nonlocal
    complex(real64), intent(in) :: states(:, :)
    class(handler_t), intent(inout) :: via
    complex(real64) :: waves(size(states, 1), size(states, 2))
    integer :: f, s, z
    associate (lines => self%lines(p), line => self%lines_of_wave(which)%line)
      do f = 1, size(self%species)
        call nonlocal%to_mesh(self%species(f), self%projector(f), states, waves)
        do s = 1, lines%n_sticks
          call lines%scatter(s, waves, line(:, :, f))
        end do
        call self%transform%along_z(backward, 0, lines%n_lines, line(:, :, f))
      end do
      do z = 1, self%n_planes
        call via%office%post(kind, self%rank(z, k), [k, z, p], [line(z, :, :)])
      end do
    end associate
  end subroutine send

  !> Lines of set p; whether plane object `which` has all.
  subroutine receive(self, which, p, values, is_complete)
    class(projection_planes_t), intent(inout) :: self
    integer, intent(in) :: which, p
    real(real64), intent(in) :: values(:)
    logical, intent(out) :: is_complete
    associate (plane => self%plane(which))
      plane%column(self%line_start(p) + 1:self%line_start(p + 1), :) = &
        reshape(pairs_as_complex(values), [self%lines(p)%n_lines, size(plane%column, 2)])
      plane%waiting = plane%waiting - 1
      is_complete = plane%waiting == 0
    end associate
  end subroutine receive

  !> Projections and their derivatives from plane object `which`; whether it is the last one here of its pair.
  subroutine read_atoms(self, which, system, is_complete)
    class(projection_planes_t), intent(inout) :: self
    integer, intent(in) :: which
    type(ions_t), intent(in) :: system
    logical, intent(out) :: is_complete
    complex(real64) :: grid(self%spline%n(1), self%spline%n(2))
    real(real64) :: mesh(self%spline%n(1), self%spline%n(2), 1, 2), slope(3)
    integer :: f, a, b, p, l, row
    associate (plane => self%plane(which))
      do f = 1, size(self%species)
        grid = 0.0_real64
        do p = 1, size(self%lines)
          do l = 1, self%lines(p)%n_lines
            grid(self%lines(p)%x(l), self%lines(p)%y(l)) = plane%column(self%line_start(p) + l, f)
          end do
        end do
        call self%transform%to_grid(grid)
        mesh(:, :, 1, 1) = real(grid, real64)
        mesh(:, :, 1, 2) = aimag(grid)
        do a = 1, system%n_atoms()
          if (system%species(a) /= self%species(f)) cycle
          row = self%couplings%first(a) + self%projector(f) - 1
          do b = 1, 2
            call self%spline%gather(self%support(a), plane%plane - 1, mesh(:, :, :, b), plane%part(row, b, 1), slope)
            plane%part(row, b, 2:) = slope
          end do
        end do
      end do
      self%unread(plane%pair) = self%unread(plane%pair) - 1
      is_complete = self%unread(plane%pair) == 0
    end associate
  end subroutine read_atoms

  !> What all planes here give of the projections of pair k, in the order of the planes.
  pure function sum_here(self, k) result(total)
    class(projection_planes_t), intent(in) :: self
    integer, intent(in) :: k
    real(real64) :: total(self%couplings%n_projectors(), 2)
    integer :: z
    total = 0.0_real64
    do z = 1, self%n_planes
      if (self%place(z, k) > 0) total = total + self%plane(self%place(z, k))%part(:, :, 1)
    end do
  end function sum_here

  !> Plane object `which`: the projectors times `coupled` (projectors, states), on their way back to the waves.
  subroutine spread_atoms(self, which, system, coupled, via, kind)
    class(projection_planes_t), intent(inout) :: self
    integer, intent(in) :: which, kind
    type(ions_t), intent(in) :: system
    real(real64), intent(in) :: coupled(:, :)
    class(handler_t), intent(inout) :: via
    complex(real64) :: grid(self%spline%n(1), self%spline%n(2))
    real(real64) :: mesh(self%spline%n(1), self%spline%n(2), 1, 2)
    integer :: f, a, b, p, l
    associate (plane => self%plane(which))
      do f = 1, size(self%species)
        mesh = 0.0_real64
        do a = 1, system%n_atoms()
          if (system%species(a) /= self%species(f)) cycle
          do b = 1, size(coupled, 2)
            call self%spline%spread(self%support(a), coupled(self%couplings%first(a) + self%projector(f) - 1, b), &
                                    plane%plane - 1, mesh(:, :, :, b))
          end do
        end do
        grid = cmplx(mesh(:, :, 1, 1), mesh(:, :, 1, 2), real64)
        call self%transform%to_waves(grid)
        do p = 1, size(self%lines)
          do l = 1, self%lines(p)%n_lines
            plane%column(self%line_start(p) + l, f) = grid(self%lines(p)%x(l), self%lines(p)%y(l))
          end do
        end do
      end do
      do p = 1, size(self%lines)
        call via%office%post(kind, self%map%g(p, plane%pair), [plane%pair, p, plane%plane], &
                             [plane%column(self%line_start(p) + 1:self%line_start(p + 1), :)])
      end do
    end associate
  end subroutine spread_atoms

  !> Lines of plane z for wave object `which`.
  subroutine receive_back(self, which, z, values)
    class(projection_planes_t), intent(inout) :: self
    integer, intent(in) :: which, z
    real(real64), intent(in) :: values(:)
    associate (line => self%lines_of_wave(which)%line)
      line(z, :, :) = reshape(pairs_as_complex(values), [size(line, 2), size(line, 3)])
    end associate
  end subroutine receive_back

  !> All planes have sent to wave object `which` of set p: what the potential adds to its waves.
  subroutine finish(self, which, p, nonlocal, product)
    class(projection_planes_t), intent(inout) :: self
    integer, intent(in) :: which, p
    type(nonlocal_potential_t), intent(in) :: nonlocal
    complex(real64), intent(inout) :: product(:, :)
    complex(real64) :: waves(size(product, 1), size(product, 2))
    integer :: f, s
    associate (lines => self%lines(p), line => self%lines_of_wave(which)%line)
      do f = 1, size(self%species)
        call self%transform%along_z(forward, 0, lines%n_lines, line(:, :, f))
        waves = 0.0_real64
        do s = 1, lines%n_sticks
          call lines%gather(s, line(:, :, f), waves)
        end do
        call nonlocal%add_from_mesh(self%species(f), self%projector(f), waves, product)
      end do
    end associate
  end subroutine finish

  !> Add this rank's part of the forces (3, n). `projection` (projectors, 2, pairs): summed over planes.
  subroutine add_forces(self, system, projection, occupation, force)
    class(projection_planes_t), intent(in) :: self
    type(ions_t), intent(in) :: system
    real(real64), intent(in) :: projection(:, :, :), occupation
    real(real64), intent(inout) :: force(:, :)
    real(real64) :: coupled(size(projection, 1), 2)
    integer :: o, axis
    do o = 1, size(self%plane)
      associate (plane => self%plane(o))
        coupled = self%couplings%couple(system, projection(:, :, plane%pair))
        do axis = 1, 3
          call self%couplings%add_forces(axis, occupation, coupled*plane%part(:, :, 1 + axis), force)
        end do
      end associate
    end do
  end subroutine add_forces

end module projection_planes
