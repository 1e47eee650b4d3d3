!> One evaluation of the functional by objects: phases I, II, V, VI and IX of the source, and through the objects of the
!> density III and IV.
!>
!> G(k, p) has the waves in set p of a pair of states: it sends lines along z to all planes R(k, z) of the pair, and parts
!> of projections up a tree. R(k, z) transforms its plane. Squares of all planes z that a rank has are summed, then those of
!> ranks up a tree to rho_R(z, q), whose potential comes back to every R(k, z); these send lines back to G(k, p).
module functional_objects
  use base_kinds, only: real64
  use comm_communicator, only: communicator_t
  use density_objects, only: density_message, density_objects_t, density_task
  use euler_spline, only: spline_settings_t
  use ions, only: ions_t
  use nonlocal_potential, only: nonlocal_potential_t
  use object_map, only: object_map_t
  use object_office, only: handler_t
  use projection_planes, only: projection_planes_t
  use projector_couplings, only: projector_couplings_t
  use section_tree, only: tree_node_t
  use stick_lines, only: backward, forward, plane_transform_t, stick_lines_t
  use wave_sphere, only: sphere_t
  use xc_functional, only: xc_t
  implicit none
  private
  public :: functional_objects_t, wave_object_t, message_names

  !> Kinds of messages, those of the density after them.
  integer, parameter :: to_planes = 1, to_waves = 2, sum_density = 3, sum_projections = 4, spread_projections = 5
  integer, parameter :: to_mesh = 11, from_mesh = 12
  character(len=32), parameter :: message_names(12) = [character(len=32) :: "states_to_planes", "planes_to_states", &
    "density_sums", "projection_sums", "projections", "potentials", "density_to_waves", &
    "density_to_planes", "rows_to_columns", "columns_to_rows", "states_to_mesh", "mesh_to_states"]
  !> Tasks.
  integer, parameter :: send_states = 1, plane_to_grid = 2, sum_squares = 3, plane_to_lines = 4, finish_product = 5, &
                        read_mesh = 6, spread_mesh = 7
  !> Planes between two looks for messages.
  integer, parameter :: planes_a_turn = 4

  !> G(k, p): waves of the pair are `n` states after `first` of the coefficients here, one state after the other.
  type :: wave_object_t
    integer :: pair = 0, set = 0, n = 2, first = 0, n_waves = 0, waiting = 0
    complex(real64), allocatable :: line(:, :)
  end type wave_object_t

  !> R(k, z).
  type :: plane_object_t
    integer :: pair = 0, plane = 0, wait_lines = 0, wait_potential = 0
    complex(real64), allocatable :: value(:, :)
  end type plane_object_t

  !> A set of waves: the part of their sphere, its lines, projectors.
  type :: wave_set_t
    type(sphere_t) :: sphere
    type(nonlocal_potential_t) :: nonlocal
  end type wave_set_t

  type, extends(handler_t) :: functional_objects_t
    type(wave_object_t), allocatable :: wave(:)
    type(plane_object_t), allocatable :: plane(:)
    !> Sets of waves of objects here; others are not made.
    type(wave_set_t), allocatable :: set(:)
    type(density_objects_t), pointer :: density => null()
    real(real64) :: kinetic = 0.0_real64, nonlocal = 0.0_real64
    !> Projections by splines, and what couples them.
    type(projection_planes_t), private :: mesh
    type(projector_couplings_t), private :: couplings
    type(object_map_t), pointer, private :: map => null()
    type(stick_lines_t), allocatable, private :: lines(:)
    type(plane_transform_t), private :: planes
    !> Object here of each (set, pair) and (plane, pair), 0: elsewhere.
    integer, allocatable :: place_of_wave(:, :)
    integer, allocatable, private :: place_of_plane(:, :)
    !> Planes of states here; of each plane those that are not on the grid yet.
    integer, allocatable, private :: n_of_plane(:), waiting(:)
    !> Sums of the density (parts, planes), of projections (pairs).
    type(tree_node_t), allocatable, private :: density_node(:, :), projection_node(:)
    !> Projections of all pairs that are here (projectors, 2, pairs).
    real(real64), allocatable, private :: projection(:, :, :)
    real(real64), private :: weight = 0.0_real64
    type(ions_t), pointer, private :: system => null()
    complex(real64), pointer, contiguous, private :: states(:) => null(), product(:) => null()
  contains
    procedure :: create
    procedure :: move_ions
    procedure :: evaluate
    procedure :: nonlocal_forces
    procedure :: deliver
    procedure :: perform
  end type functional_objects_t

contains

  !> `waves`, `dense`: the whole spheres, dealt to all sets; `office` is open.
  subroutine create(self, map, system, waves, dense, xc, occupation, splines, comm)
    class(functional_objects_t), intent(inout) :: self
    type(object_map_t), target, intent(in) :: map
    type(ions_t), intent(in) :: system
    type(sphere_t), intent(in) :: waves, dense
    type(xc_t), intent(in) :: xc
    real(real64), intent(in) :: occupation
    type(spline_settings_t), intent(in) :: splines
    type(communicator_t), intent(in) :: comm
    integer :: k, p, z, q, n, first

    self%map => map
    call self%couplings%create(system)
    self%weight = occupation/waves%volume
    call self%planes%create(waves)
    allocate (self%density)
    call self%density%create(map, system, dense, xc, comm)
    allocate (self%lines(map%n_sets), self%set(map%n_sets))
    allocate (self%place_of_wave(map%n_sets, map%n_pairs), self%place_of_plane(map%n_planes, map%n_pairs), source=0)
    allocate (self%wave(count(map%g == comm%rank)), self%plane(count(map%r == comm%rank)))
    do p = 1, map%n_sets
      call self%lines(p)%create(waves, p - 1)
      if (all(map%g(p, :) /= comm%rank)) cycle
      call self%set(p)%sphere%create(waves%box, waves%n, waves%largest_g2, map%n_sets, p - 1)
      call self%set(p)%nonlocal%create_forms(self%set(p)%sphere, system, splines)
    end do
    n = 0
    first = 0
    do k = 1, map%n_pairs
      do p = 1, map%n_sets
        if (map%g(p, k) /= comm%rank) cycle
        n = n + 1
        self%place_of_wave(p, k) = n
        associate (wave => self%wave(n))
          wave%pair = k
          wave%set = p
          wave%n = min(2, map%n_states - 2*(k - 1))
          wave%first = first
          wave%n_waves = self%set(p)%sphere%n_waves
          allocate (wave%line(waves%n(3), self%lines(p)%n_lines))
          first = first + wave%n*wave%n_waves
        end associate
      end do
    end do
    n = 0
    do k = 1, map%n_pairs
      do z = 1, map%n_planes
        if (map%r(z, k) /= comm%rank) cycle
        n = n + 1
        self%place_of_plane(z, k) = n
        self%plane(n)%pair = k
        self%plane(n)%plane = z
        allocate (self%plane(n)%value(waves%n(1), waves%n(2)))
      end do
    end do
    self%n_of_plane = count(self%place_of_plane > 0, 2)
    allocate (self%waiting(map%n_planes), self%density_node(map%n_parts, map%n_planes), self%projection_node(map%n_pairs))
    do z = 1, map%n_planes
      do q = 1, map%n_parts
        if (self%n_of_plane(z) > 0 .or. map%rho_r(q, z) == comm%rank) &
          call self%density_node(q, z)%create(map%r(z, :), map%rho_r(q, z), comm%rank)
      end do
    end do
    if (splines%for_nonlocal .and. self%couplings%n_projectors() > 0) &
      call self%mesh%create(map, system, waves, splines, self%couplings, self%wave%set, comm)
    ! Projections are sums over waves, or over planes of their mesh.
    do k = 1, map%n_pairs
      associate (ranks => ranks_with_projections(self, k))
        if (any(ranks == comm%rank)) call self%projection_node(k)%create(ranks, ranks(1), comm%rank)
      end associate
    end do
    allocate (self%projection(self%couplings%n_projectors(), 2, map%n_pairs))
  end subroutine create

  !> Of pair k; the first one is where their sum is made.
  pure function ranks_with_projections(self, k) result(ranks)
    class(functional_objects_t), intent(in) :: self
    integer, intent(in) :: k
    integer, allocatable :: ranks(:)
    ranks = self%map%g(:, k)
    if (self%mesh%n_planes > 0) ranks = self%mesh%rank(:, k)
  end function ranks_with_projections

  !> Take notice of new positions.
  subroutine move_ions(self, system)
    class(functional_objects_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    integer :: k
    if (self%mesh%n_planes > 0) then
      call self%mesh%move(system)
      return
    end if
    do k = 1, size(self%set)
      if (self%set(k)%sphere%n_waves > 0) call self%set(k)%nonlocal%move(self%set(k)%sphere, system)
    end do
  end subroutine move_ions

  !> Density, potential and H times each state, from and to the coefficients of the objects here. Energies are parts of
  !> this rank.
  subroutine evaluate(self, system, states, product)
    class(functional_objects_t), target, intent(inout) :: self
    type(ions_t), target, intent(in) :: system
    complex(real64), contiguous, target, intent(in) :: states(:)
    complex(real64), contiguous, target, intent(out) :: product(:)
    integer :: k, z, q, rows(2)

    self%system => system
    self%states => states
    self%product => product
    self%kinetic = 0.0_real64
    self%nonlocal = 0.0_real64
    call self%office%begin(2*size(self%wave) + 2*size(self%plane) + count(self%n_of_plane > 0) + &
                           self%density%n_tasks() + 2*self%mesh%n_here())
    call self%density%restart()
    if (self%mesh%n_planes > 0) call self%mesh%begin(self%wave%pair, self, to_mesh, from_mesh)
    self%waiting = self%n_of_plane
    do z = 1, self%map%n_planes
      do q = 1, self%map%n_parts
        if (.not. allocated(self%density_node(q, z)%children)) cycle
        rows = self%density%rows_of(q)
        call self%density_node(q, z)%restart(self%planes%n(1)*(rows(2) - rows(1) + 1), min(1, self%n_of_plane(z)))
      end do
    end do
    do k = 1, size(self%plane)
      associate (plane => self%plane(k))
        plane%value = 0.0_real64
        plane%wait_lines = self%map%n_sets
        plane%wait_potential = self%map%n_parts
        do q = 1, self%map%n_sets
          call self%office%expect(to_waves, self%map%g(q, plane%pair))
        end do
      end associate
    end do
    do k = 1, self%map%n_pairs
      if (allocated(self%projection_node(k)%children)) &
        call self%projection_node(k)%restart(2*self%couplings%n_projectors(), n_with_projections(self, k))
    end do
    do k = 1, size(self%wave)
      self%wave(k)%waiting = self%map%n_planes + merge(self%mesh%n_planes, min(1, self%couplings%n_projectors()), &
                                                       self%mesh%n_planes > 0)
      do z = 1, self%map%n_planes
        call self%office%expect(to_planes, self%map%r(z, self%wave(k)%pair))
      end do
      call self%office%push(send_states, k)
    end do
    call self%run()
  end subroutine evaluate

  !> Parts that objects here have of the projections of pair k, those of planes of a mesh in one sum.
  pure integer function n_with_projections(self, k)
    class(functional_objects_t), intent(in) :: self
    integer, intent(in) :: k
    n_with_projections = count(self%place_of_wave(:, k) > 0)
    if (self%mesh%n_planes > 0) n_with_projections = min(1, count(self%mesh%place(:, k) > 0))
  end function n_with_projections

  subroutine deliver(self, kind, index, values)
    class(functional_objects_t), target, intent(inout) :: self
    integer, intent(in) :: kind, index(3)
    real(real64), intent(in) :: values(:)
    integer :: o, l, rows(2)
    logical :: is_complete
    if (kind > density_message .and. kind < to_mesh) then
      call self%density%deliver(kind, index, values, self)
      return
    end if
    select case (kind)
    case (to_planes)  ! pair, plane; from set
      o = self%place_of_plane(index(2), index(1))
      associate (plane => self%plane(o), lines => self%lines(index(3)))
        do l = 1, lines%n_lines
          plane%value(lines%x(l), lines%y(l)) = cmplx(values(2*l - 1), values(2*l), real64)
        end do
        plane%wait_lines = plane%wait_lines - 1
        if (plane%wait_lines == 0) call self%office%push(plane_to_grid, o)
      end associate
    case (to_waves)  ! pair, set; from plane
      o = self%place_of_wave(index(2), index(1))
      do l = 1, size(values)/2
        self%wave(o)%line(index(3), l) = cmplx(values(2*l - 1), values(2*l), real64)
      end do
      call operand(self, o)
    case (sum_density)  ! plane, part; from child
      associate (node => self%density_node(index(2), index(1)))
        node%from(:, index(3)) = values
        node%waiting = node%waiting - 1
        call pass_density(self, index(2), index(1))
      end associate
    case (density_message)  ! pair, plane; from part
      o = self%place_of_plane(index(2), index(1))
      rows = self%density%rows_of(index(3))
      associate (plane => self%plane(o))
        plane%value(:, rows(1):rows(2)) = plane%value(:, rows(1):rows(2))* &
          reshape(values, [size(plane%value, 1), rows(2) - rows(1) + 1])
        plane%wait_potential = plane%wait_potential - 1
        if (plane%wait_potential == 0) call self%office%push(plane_to_lines, o)
      end associate
    case (sum_projections)  ! pair; from child
      associate (node => self%projection_node(index(1)))
        node%from(:, index(2)) = values
        node%waiting = node%waiting - 1
        call pass_projections(self, index(1))
      end associate
    case (spread_projections)  ! pair
      call take_projections(self, index(1), values)
    case (to_mesh)  ! pair, plane of the mesh; from set
      o = self%mesh%place(index(2), index(1))
      call self%mesh%receive(o, index(3), values, is_complete)
      if (is_complete) call self%office%push(read_mesh, o)
    case (from_mesh)  ! pair, set; from plane of the mesh
      o = self%place_of_wave(index(2), index(1))
      call self%mesh%receive_back(o, index(3), values)
      call operand(self, o)
    end select
  end subroutine deliver

  subroutine perform(self, what, which)
    class(functional_objects_t), target, intent(inout) :: self
    integer, intent(in) :: what, which
    logical :: is_complete
    if (what > density_task) then
      call self%density%perform(what, which, self)
      return
    end if
    select case (what)
    case (send_states)
      call start_states(self, which)
    case (plane_to_grid)
      call self%planes%to_grid(self%plane(which)%value)
      associate (z => self%plane(which)%plane)
        self%waiting(z) = self%waiting(z) - 1
        if (self%waiting(z) == 0) call self%office%push(sum_squares, z)
      end associate
    case (sum_squares)
      call square(self, which)
    case (plane_to_lines)
      call send_back(self, self%plane(which))
    case (finish_product)
      call finish(self, which)
    case (read_mesh)
      call self%mesh%read_atoms(which, self%system, is_complete)
      call self%poll()
      if (is_complete) call sum_mesh(self, self%mesh%plane(which)%pair)
    case (spread_mesh)
      associate (k => self%mesh%plane(which)%pair)
        call self%mesh%spread_atoms(which, self%system, self%couplings%couple(self%system, self%projection(:, :, k)), self, &
                                    from_mesh)
      end associate
      call self%poll()
    end select
  end subroutine perform

  !> Phases I and IX: lines along z to planes; kinetic energy; projections.
  subroutine start_states(self, which)
    class(functional_objects_t), target, intent(inout) :: self
    integer, intent(in) :: which
    complex(real64), pointer, contiguous :: c(:, :), hc(:, :)
    real(real64), allocatable :: part(:, :)
    integer :: s, z
    associate (wave => self%wave(which), set => self%set(self%wave(which)%set), lines => self%lines(self%wave(which)%set))
      c(1:wave%n_waves, 1:wave%n) => self%states(wave%first + 1:wave%first + wave%n*wave%n_waves)
      hc(1:wave%n_waves, 1:wave%n) => self%product(wave%first + 1:wave%first + wave%n*wave%n_waves)
      do s = 1, lines%n_sticks
        call lines%scatter(s, c, wave%line)
      end do
      call self%planes%along_z(backward, 0, lines%n_lines, wave%line)
      do z = 1, self%map%n_planes
        call self%office%post(to_planes, self%map%r(z, wave%pair), [wave%pair, z, wave%set], [wave%line(z, :)])
      end do
      do s = 1, wave%n
        hc(:, s) = 0.5_real64*set%sphere%g2*c(:, s)
        self%kinetic = self%kinetic + 2.0_real64*sum(real(c(:, s), real64)*real(hc(:, s), real64) + &
                                                     aimag(c(:, s))*aimag(hc(:, s)))
      end do
      if (self%couplings%n_projectors() == 0) return
      if (self%mesh%n_planes > 0) then
        call self%mesh%send(which, wave%pair, wave%set, set%nonlocal, c, self, to_mesh)
        call self%poll()
        return
      end if
      allocate (part(self%couplings%n_projectors(), 2), source=0.0_real64)
      call set%nonlocal%project_here(set%sphere, c, part(:, :wave%n))
      associate (node => self%projection_node(wave%pair))
        node%own = node%own + reshape(part, [size(part)])
        node%waiting = node%waiting - 1
      end associate
      call pass_projections(self, wave%pair)
    end associate
    call self%poll()
  end subroutine start_states

  !> All planes of the mesh of pair k that are here have been read: their sum.
  subroutine sum_mesh(self, k)
    class(functional_objects_t), target, intent(inout) :: self
    integer, intent(in) :: k
    associate (node => self%projection_node(k))
      node%own = reshape(self%mesh%sum_here(k), [size(node%own)])
      node%waiting = node%waiting - 1
    end associate
    call pass_projections(self, k)
  end subroutine sum_mesh

  !> Where a sum of projections is complete: up the tree, or from its top to all.
  subroutine pass_projections(self, k)
    class(functional_objects_t), target, intent(inout) :: self
    integer, intent(in) :: k
    real(real64), allocatable :: total(:)
    associate (node => self%projection_node(k))
      if (node%waiting > 0) return
      total = node%total()
      if (node%parent >= 0) then
        call self%office%post(sum_projections, node%parent, [k, node%place, 0], total)
        return
      end if
    end associate
    call take_projections(self, k, total)
    associate (projection => self%projection(:, :, k))
      self%nonlocal = self%nonlocal + sum(projection*self%couplings%couple(self%system, projection))
    end associate
  end subroutine pass_projections

  !> Projections of a pair: on down the tree, and to the waves here.
  subroutine take_projections(self, k, values)
    class(functional_objects_t), target, intent(inout) :: self
    integer, intent(in) :: k
    real(real64), intent(in) :: values(:)
    integer :: child, p, z
    associate (node => self%projection_node(k))
      do child = 1, size(node%children)
        call self%office%post(spread_projections, node%children(child), [k, 0, 0], values)
      end do
    end associate
    self%projection(:, :, k) = reshape(values, shape(self%projection(:, :, k)))
    if (self%mesh%n_planes > 0) then
      do z = 1, self%mesh%n_planes
        if (self%mesh%place(z, k) > 0) call self%office%push(spread_mesh, self%mesh%place(z, k))
      end do
      return
    end if
    do p = 1, self%map%n_sets
      if (self%place_of_wave(p, k) > 0) call operand(self, self%place_of_wave(p, k))
    end do
  end subroutine take_projections

  !> One more of what a wave object waits for.
  subroutine operand(self, which)
    class(functional_objects_t), target, intent(inout) :: self
    integer, intent(in) :: which
    self%wave(which)%waiting = self%wave(which)%waiting - 1
    if (self%wave(which)%waiting == 0) call self%office%push(finish_product, which)
  end subroutine operand

  !> Phase II: squares of all planes z here, in the order of their states.
  subroutine square(self, z)
    class(functional_objects_t), target, intent(inout) :: self
    integer, intent(in) :: z
    real(real64), allocatable :: sum_here(:, :)
    integer :: k, q, rows(2)
    allocate (sum_here(self%planes%n(1), self%planes%n(2)), source=0.0_real64)
    do k = 1, self%map%n_pairs
      if (self%place_of_plane(z, k) == 0) cycle
      associate (value => self%plane(self%place_of_plane(z, k))%value)
        sum_here = sum_here + self%weight*(real(value, real64)**2 + aimag(value)**2)
      end associate
      if (mod(k, planes_a_turn) == 0) call self%poll()
    end do
    do q = 1, self%map%n_parts
      rows = self%density%rows_of(q)
      associate (node => self%density_node(q, z))
        node%own = reshape(sum_here(:, rows(1):rows(2)), [size(node%own)])
        node%waiting = node%waiting - 1
      end associate
      call pass_density(self, q, z)
    end do
  end subroutine square

  !> Where a sum of the density is complete: up the tree, or to the density.
  subroutine pass_density(self, q, z)
    class(functional_objects_t), target, intent(inout) :: self
    integer, intent(in) :: q, z
    associate (node => self%density_node(q, z))
      if (node%waiting > 0) return
      if (node%parent >= 0) then
        call self%office%post(sum_density, node%parent, [z, q, node%place], node%total())
      else
        call self%density%receive_density(q, z, node%total(), self)
      end if
    end associate
  end subroutine pass_density

  !> Phase VI: a plane times the potential, as lines to the waves.
  subroutine send_back(self, plane)
    class(functional_objects_t), target, intent(inout) :: self
    type(plane_object_t), intent(inout) :: plane
    complex(real64), allocatable :: sent(:)
    integer :: p, l
    call self%planes%to_waves(plane%value)
    do p = 1, self%map%n_sets
      associate (lines => self%lines(p))
        sent = [(plane%value(lines%x(l), lines%y(l)), l=1, lines%n_lines)]
        call self%office%post(to_waves, self%map%g(p, plane%pair), [plane%pair, p, plane%plane], sent)
      end associate
    end do
  end subroutine send_back

  !> All that acts on the waves of a pair is there.
  subroutine finish(self, which)
    class(functional_objects_t), target, intent(inout) :: self
    integer, intent(in) :: which
    complex(real64), pointer, contiguous :: hc(:, :)
    integer :: s
    associate (wave => self%wave(which), set => self%set(self%wave(which)%set), lines => self%lines(self%wave(which)%set))
      hc(1:wave%n_waves, 1:wave%n) => self%product(wave%first + 1:wave%first + wave%n*wave%n_waves)
      call self%planes%along_z(forward, 0, lines%n_lines, wave%line)
      do s = 1, lines%n_sticks
        call lines%gather(s, wave%line, hc)
      end do
      call self%poll()
      if (self%mesh%n_planes > 0) then
        call self%mesh%finish(which, wave%set, set%nonlocal, hc)
      else
        call set%nonlocal%add_here(self%couplings%couple(self%system, self%projection(:, :wave%n, wave%pair)), hc)
      end if
      ! Rounding must not give the wave G = 0 of a real field an imaginary part.
      if (set%sphere%zero > 0) hc(set%sphere%zero, :) = real(hc(set%sphere%zero, :), real64)
    end associate
  end subroutine finish

  !> Add this rank's part of the forces of the non-local potential at the states of the last evaluation.
  subroutine nonlocal_forces(self, system, states, occupation, force)
    class(functional_objects_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    complex(real64), contiguous, target, intent(in) :: states(:)
    real(real64), intent(in) :: occupation
    real(real64), intent(inout) :: force(:, :)
    complex(real64), pointer, contiguous :: c(:, :)
    real(real64), allocatable :: slope(:, :)
    integer :: k, axis
    if (self%mesh%n_planes > 0) then
      call self%mesh%add_forces(system, self%projection, occupation, force)
      return
    end if
    do k = 1, size(self%wave)
      associate (wave => self%wave(k), set => self%set(self%wave(k)%set))
        c(1:wave%n_waves, 1:wave%n) => states(wave%first + 1:wave%first + wave%n*wave%n_waves)
        allocate (slope(self%couplings%n_projectors(), wave%n))
        do axis = 1, 3
          call set%nonlocal%slope_here(set%sphere, axis, c, slope)
          call self%couplings%add_forces(axis, occupation, &
                                         slope*self%couplings%couple(system, self%projection(:, :wave%n, wave%pair)), force)
        end do
        deallocate (slope)
      end associate
    end do
  end subroutine nonlocal_forces

end module functional_objects
