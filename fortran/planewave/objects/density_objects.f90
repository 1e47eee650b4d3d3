!> Objects of the density: phases III and IV of the source, and the ends of II and V.
!>
!> rho_R(z, q) has rows q of plane z. Forward, its rows are transformed along x and go to the parts of the same plane that
!> have their columns [columns]; these transform along y and send lines to the sets of waves rho_G(p) [lines], which
!> transform along z. The way back is the same way. Two real fields share a complex one. With a functional of the gradient
!> there are two ways forward (density; gradient times its factor) and two back (gradient; potential).
module density_objects
  use base_kinds, only: int64, real64
  use base_random, only: philox
  use cluster_screening, only: long_range_plane, with_short_range
  use comm_communicator, only: communicator_t
  use density_waves, only: density_waves_t
  use euler_spline, only: spline_settings_t
  use fft_layout, only: share_lower, share_upper
  use ions, only: ions_t
  use object_map, only: object_map_t
  use object_office, only: handler_t, pairs_as_complex
  use stick_lines, only: backward, forward, plane_transform_t, stick_lines_t
  use wave_sphere, only: sphere_t
  use xc_functional, only: xc_t
  implicit none
  private
  public :: density_objects_t, density_message, density_task

  !> Kinds of messages here, after those of states; tasks likewise.
  integer, parameter :: density_message = 6, to_sets = 7, to_parts = 8, to_columns = 9, to_rows = 10
  integer, parameter :: density_task = 100, take_density = 101, columns_to_lines = 102, lines_to_columns = 103, &
                        rows_to_grid = 104, act_on_waves = 105
  !> Rows of exchange and correlation between two looks for messages.
  integer, parameter :: rows_a_turn = 8

  !> rho_R(z, q): rows of a plane, and columns of another part of it while fields are between grid and waves.
  type :: part_t
    integer :: plane = 0, part = 0, n_back = 0, wait_columns = 0, wait_lines = 0, wait_rows = 0
    real(real64), allocatable :: density(:, :), potential(:, :), gradient(:, :, :)
    !> (x, rows, fields), (y, columns, fields).
    complex(real64), allocatable :: row(:, :, :), column(:, :, :)
    real(real64) :: xc = 0.0_real64
    !> Pairs of states in the order in which they get the potential.
    integer, allocatable :: order(:)
  end type part_t

  !> rho_G(p).
  type :: set_t
    integer :: set = 0, n_forward = 0, waiting = 0
    type(density_waves_t) :: waves
    complex(real64), allocatable :: density(:, :), v(:, :), line(:, :, :)
    real(real64) :: hartree = 0.0_real64, local = 0.0_real64
  end type set_t

  !> Lines of a set whose columns are in a part of planes.
  type :: crossing_t
    integer, allocatable :: line(:)
  end type crossing_t

  type :: density_objects_t
    type(part_t), allocatable :: part(:)
    type(set_t), allocatable :: set(:)
    type(object_map_t), pointer, private :: map => null()
    type(xc_t), private :: xc
    type(plane_transform_t), private :: planes
    type(stick_lines_t), allocatable, private :: lines(:)
    type(crossing_t), allocatable, private :: crossing(:, :)
    !> Object here of each (part, plane) and set, 0: elsewhere; first row and column of each part (1 to n_parts + 1);
    !> place of a column among all, and x of each.
    integer, allocatable, private :: place(:, :), place_of_set(:), row_start(:), column_start(:), column_of(:), x_of(:)
    !> Ways back of fields, the last of which is the potential's.
    integer, private :: n_ways = 1
    real(real64), private :: volume = 0.0_real64
  contains
    procedure :: create
    procedure :: n_tasks
    procedure :: restart
    procedure :: rows_of
    procedure :: receive_density
    procedure :: deliver
    procedure :: perform
    procedure :: energies
    procedure, private :: create_waves
    procedure, private :: columns_of
    procedure, private :: lines_to_waves
    procedure, private :: start_forward
    procedure, private :: start_back
    procedure, private :: evaluate_xc
    procedure, private :: send_potential
  end type density_objects_t

contains

  !> `dense`: the sphere of the density, dealt to all sets.
  subroutine create(self, map, system, dense, xc, comm)
    class(density_objects_t), intent(inout) :: self
    type(object_map_t), target, intent(in) :: map
    type(ions_t), intent(in) :: system
    type(sphere_t), intent(in) :: dense
    type(xc_t), intent(in) :: xc
    type(communicator_t), intent(in) :: comm
    integer :: p, q, z, k, n, x, most
    self%map => map
    self%xc = xc
    self%n_ways = merge(2, 1, xc%uses_gradient())
    self%volume = dense%volume
    call self%planes%create(dense)
    most = self%planes%most_x
    self%x_of = [(k, k=1, most + 1), (k, k=dense%n(1) - most + 1, dense%n(1))]
    allocate (self%column_of(dense%n(1)), source=0)
    self%column_of(self%x_of) = [(k, k=1, size(self%x_of))]
    self%row_start = starts(dense%n(2), map%n_parts)
    self%column_start = starts(size(self%x_of), map%n_parts)
    allocate (self%lines(map%n_rho_sets), self%crossing(map%n_parts, map%n_rho_sets))
    do p = 1, map%n_rho_sets
      call self%lines(p)%create(dense, p - 1)
      do q = 1, map%n_parts
        associate (l => self%lines(p))
          self%crossing(q, p)%line = pack([(k, k=1, l%n_lines)], self%column_of(l%x) >= self%column_start(q) .and. &
                                          self%column_of(l%x) < self%column_start(q + 1))
        end associate
      end do
    end do

    allocate (self%place(map%n_parts, map%n_planes), self%place_of_set(map%n_rho_sets), source=0)
    allocate (self%part(count(map%rho_r == comm%rank)), self%set(count(map%rho_g == comm%rank)))
    n = 0
    do z = 1, map%n_planes
      do q = 1, map%n_parts
        if (map%rho_r(q, z) /= comm%rank) cycle
        n = n + 1
        self%place(q, z) = n
        associate (part => self%part(n), n_rows => self%row_start(q + 1) - self%row_start(q))
          part%plane = z
          part%part = q
          x = dense%n(1)
          allocate (part%density(x, n_rows), part%potential(x, n_rows), part%row(x, n_rows, self%n_ways))
          allocate (part%gradient(x, n_rows, merge(3, 0, xc%uses_gradient())))
          allocate (part%column(dense%n(2), self%column_start(q + 1) - self%column_start(q), self%n_ways))
          part%order = shuffled(map%n_pairs, int([q, z], int64))
        end associate
      end do
    end do
    n = 0
    do p = 1, map%n_rho_sets
      if (map%rho_g(p) /= comm%rank) cycle
      n = n + 1
      self%place_of_set(p) = n
      associate (set => self%set(n))
        set%set = p
        call set%waves%sphere%create(dense%box, dense%n, dense%largest_g2, map%n_rho_sets, p - 1)
        associate (n_waves => set%waves%sphere%n_waves)
          allocate (set%density(n_waves, 1), set%v(n_waves, 1))
        end associate
        allocate (set%line(dense%n(3), self%lines(p)%n_lines, self%n_ways))
      end associate
    end do
    call self%create_waves(system, comm)
  end subroutine create

  !> What acts on the waves of each set here. For a cluster alone each rank makes all planes of the screening function,
  !> once: that takes no messages.
  subroutine create_waves(self, system, comm)
    class(density_objects_t), target, intent(inout) :: self
    type(ions_t), intent(in) :: system
    type(communicator_t), intent(in) :: comm
    complex(real64), allocatable :: plane(:, :), waves(:, :)
    real(real64), allocatable :: screening(:)
    integer :: k, z, l
    if (system%is_cluster) then
      do z = 1, merge(self%planes%n(3), 0, size(self%set) > 0)
        plane = long_range_plane(self%set(1)%waves%sphere, z)
        call self%planes%to_waves(plane)
        do k = 1, size(self%set)
          associate (lines => self%lines(self%set(k)%set))
            self%set(k)%line(z, :, 1) = [(plane(lines%x(l), lines%y(l)), l=1, lines%n_lines)]
          end associate
        end do
      end do
    end if
    do k = 1, size(self%set)
      associate (set => self%set(k), sphere => self%set(k)%waves%sphere)
        screening = spread(0.0_real64, 1, sphere%n_waves)
        if (system%is_cluster) then
          allocate (waves(sphere%n_waves, 1))
          call self%lines_to_waves(k, 1, waves)
          screening = with_short_range(sphere, waves(:, 1))
          deallocate (waves)
        end if
        call set%waves%create(system, spline_settings_t(), comm, screening)
      end associate
    end do
  end subroutine create_waves

  !> The first of n things that each of so many parts has, and the end.
  pure function starts(n, n_parts)
    integer, intent(in) :: n, n_parts
    integer :: starts(n_parts + 1), k
    starts = [(share_lower(n, n_parts, k) + 1, k=0, n_parts - 1), share_upper(n, n_parts, n_parts - 1) + 2]
  end function starts

  !> Numbers 1 to n in a random order, always the same: so that not all multicasts begin with the same rank.
  pure function shuffled(n, key) result(order)
    integer, intent(in) :: n
    integer(int64), intent(in) :: key(2)
    integer :: order(n), k, other, kept
    integer(int64) :: bits(4)
    order = [(k, k=1, n)]
    do k = n, 2, -1
      bits = philox([int(k, int64), 0_int64, 0_int64, 0_int64], key)
      other = int(modulo(bits(1), int(k, int64))) + 1
      kept = order(k)
      order(k) = order(other)
      order(other) = kept
    end do
  end function shuffled

  pure integer function n_tasks(self)
    class(density_objects_t), intent(in) :: self
    n_tasks = size(self%part)*(1 + 3*self%n_ways) + size(self%set)*self%n_ways
  end function n_tasks

  !> First and last row of part q of a plane.
  pure function rows_of(self, q) result(rows)
    class(density_objects_t), intent(in) :: self
    integer, intent(in) :: q
    integer :: rows(2)
    rows = [self%row_start(q), self%row_start(q + 1) - 1]
  end function rows_of

  !> Be ready for a new density.
  subroutine restart(self)
    class(density_objects_t), intent(inout) :: self
    integer :: k
    do k = 1, size(self%part)
      associate (part => self%part(k))
        part%n_back = 0
        part%xc = 0.0_real64
        part%wait_columns = self%map%n_parts
        part%wait_rows = self%map%n_parts
        part%wait_lines = self%map%n_rho_sets
      end associate
    end do
    do k = 1, size(self%set)
      self%set(k)%n_forward = 0
      self%set(k)%waiting = self%map%n_planes*self%map%n_parts
    end do
  end subroutine restart

  !> The sum over all states of what a part of a plane has.
  subroutine receive_density(self, q, z, values, via)
    class(density_objects_t), target, intent(inout) :: self
    integer, intent(in) :: q, z
    real(real64), intent(in) :: values(:)
    class(handler_t), intent(inout) :: via
    associate (part => self%part(self%place(q, z)))
      part%density = reshape(values, shape(part%density))
    end associate
    call via%office%push(take_density, self%place(q, z))
  end subroutine receive_density

  subroutine deliver(self, kind, index, values, via)
    class(density_objects_t), target, intent(inout) :: self
    integer, intent(in) :: kind, index(3)
    real(real64), intent(in) :: values(:)
    class(handler_t), intent(inout) :: via
    complex(real64) :: arrived(size(values)/2)
    integer :: o, n
    arrived = pairs_as_complex(values)
    select case (kind)
    case (to_columns)  ! part, plane; from part
      o = self%place(index(1), index(2))
      associate (part => self%part(o), first => self%row_start(index(3)), last => self%row_start(index(3) + 1) - 1)
        n = n_fields(size(part%column, 2)*(last - first + 1))
        part%column(first:last, :, :n) = reshape(arrived, [last - first + 1, size(part%column, 2), n], order=[2, 1, 3])
        part%wait_columns = part%wait_columns - 1
        if (part%wait_columns == 0) call via%office%push(columns_to_lines, o)
      end associate
    case (to_rows)  ! part, plane; from part
      o = self%place(index(1), index(2))
      associate (part => self%part(o), x => self%x_of(self%column_start(index(3)):self%column_start(index(3) + 1) - 1))
        n = n_fields(size(part%row, 2)*size(x))
        part%row(x, :, :n) = reshape(arrived, [size(x), size(part%row, 2), n], order=[2, 1, 3])
        part%wait_rows = part%wait_rows - 1
        if (part%wait_rows == 0) call via%office%push(rows_to_grid, o)
      end associate
    case (to_sets)  ! set; part, plane
      o = self%place_of_set(index(1))
      associate (set => self%set(o), line => self%crossing(index(2), index(1))%line)
        n = n_fields(size(line))
        set%line(index(3), line, :n) = reshape(arrived, [size(line), n])
        set%waiting = set%waiting - 1
        if (set%waiting == 0) call via%office%push(act_on_waves, o)
      end associate
    case (to_parts)  ! part, plane; from set
      o = self%place(index(1), index(2))
      call take_lines(self%part(o), index(3), n_fields(size(self%crossing(index(1), index(3))%line)))
    end select

  contains

    !> Complex fields in the message; a part may have nothing of them.
    pure integer function n_fields(of_one)
      integer, intent(in) :: of_one
      n_fields = 0
      if (of_one > 0) n_fields = size(arrived)/of_one
    end function n_fields

    subroutine take_lines(part, p, n)
      type(part_t), intent(inout) :: part
      integer, intent(in) :: p, n
      integer :: f, k
      associate (y => self%lines(p)%y, line => self%crossing(part%part, p)%line, column => self%columns_of(p, part%part))
        do f = 1, n
          do k = 1, size(line)
            part%column(y(line(k)), column(k), f) = arrived((f - 1)*size(line) + k)
          end do
        end do
      end associate
      part%wait_lines = part%wait_lines - 1
      if (part%wait_lines == 0) call via%office%push(lines_to_columns, self%place(part%part, part%plane))
    end subroutine take_lines

  end subroutine deliver

  !> Columns of part q in which the lines of set p are that cross it.
  pure function columns_of(self, p, q) result(column)
    class(density_objects_t), intent(in) :: self
    integer, intent(in) :: p, q
    integer, allocatable :: column(:)
    column = self%column_of(self%lines(p)%x(self%crossing(q, p)%line)) - self%column_start(q) + 1
  end function columns_of

  subroutine perform(self, what, which, via)
    class(density_objects_t), target, intent(inout) :: self
    integer, intent(in) :: what, which
    class(handler_t), intent(inout) :: via
    select case (what)
    case (take_density)
      if (self%n_ways == 1) call self%evaluate_xc(which, via)
      associate (part => self%part(which))
        call self%start_forward(which, reshape(part%density, [shape(part%density), 1]), via)
      end associate
    case (columns_to_lines)
      call send_lines(self, which, via)
    case (lines_to_columns)
      call send_rows(self, which, via)
    case (rows_to_grid)
      call finish_back(self, which, via)
    case (act_on_waves)
      call act(self, which, via)
    end select
  end subroutine perform

  !> Real fields (x, rows, fields) of a part of a plane on their way to waves.
  subroutine start_forward(self, which, field, via)
    class(density_objects_t), target, intent(inout) :: self
    integer, intent(in) :: which
    real(real64), intent(in) :: field(:, :, :)
    class(handler_t), intent(inout) :: via
    integer :: f, q, n
    associate (part => self%part(which))
      n = (size(field, 3) + 1)/2
      do f = 1, n
        if (2*f <= size(field, 3)) then
          part%row(:, :, f) = cmplx(field(:, :, 2*f - 1), field(:, :, 2*f), real64)
        else
          part%row(:, :, f) = field(:, :, 2*f - 1)
        end if
        call self%planes%along_x(forward, part%row(:, :, f))
      end do
      do q = 1, self%map%n_parts
        associate (x => self%x_of(self%column_start(q):self%column_start(q + 1) - 1))
          call via%office%post(to_columns, self%map%rho_r(q, part%plane), [q, part%plane, part%part], [part%row(x, :, :n)])
        end associate
      end do
      part%row = 0.0_real64
    end associate
  end subroutine start_forward

  !> Columns are complete: along y, and lines to the sets.
  subroutine send_lines(self, which, via)
    class(density_objects_t), target, intent(inout) :: self
    integer, intent(in) :: which
    class(handler_t), intent(inout) :: via
    integer :: f, p, k, n
    associate (part => self%part(which))
      part%wait_columns = self%map%n_parts
      ! The first way forward has one field, the second one two.
      n = part%n_back + 1
      do f = 1, n
        call self%planes%along_y(forward, part%column(:, :, f))
      end do
      do p = 1, self%map%n_rho_sets
        associate (y => self%lines(p)%y, line => self%crossing(part%part, p)%line, column => self%columns_of(p, part%part))
          call via%office%post(to_sets, self%map%rho_g(p), [p, part%part, part%plane], &
                               [((part%column(y(line(k)), column(k), f), k=1, size(line)), f=1, n)])
        end associate
      end do
      part%column = 0.0_real64
    end associate
  end subroutine send_lines

  !> All lines are there: along z, and what is to be done with the waves.
  subroutine act(self, which, via)
    class(density_objects_t), target, intent(inout) :: self
    integer, intent(in) :: which
    class(handler_t), intent(inout) :: via
    complex(real64), allocatable :: field(:, :)
    associate (set => self%set(which))
      set%waiting = self%map%n_planes*self%map%n_parts
      set%n_forward = set%n_forward + 1
      if (set%n_forward == 1) then
        call self%lines_to_waves(which, 1, set%density)
        call set%waves%potential(set%density(:, 1), set%v(:, 1), set%hartree, set%local)
        if (self%n_ways == 2) then
          allocate (field(size(set%v, 1), 3))
          call set%waves%gradient(set%density(:, 1), field)
          call self%start_back(which, field, via)
          return
        end if
      else
        allocate (field(size(set%v, 1), 3))
        call self%lines_to_waves(which, 1, field(:, 1:2))
        call self%lines_to_waves(which, 2, field(:, 3:3))
        call set%waves%add_divergence(field, set%v(:, 1))
      end if
      call self%start_back(which, set%v, via)
    end associate

  end subroutine act

  !> The waves (waves, fields) of complex field f of set object k, which is one real field or two.
  subroutine lines_to_waves(self, k, f, waves)
    class(density_objects_t), target, intent(inout) :: self
    integer, intent(in) :: k, f
    complex(real64), intent(out) :: waves(:, :)
    integer :: s
    associate (set => self%set(k), lines => self%lines(self%set(k)%set))
      call self%planes%along_z(forward, 0, lines%n_lines, set%line(:, :, f))
      waves = 0.0_real64
      do s = 1, lines%n_sticks
        call lines%gather(s, set%line(:, :, f), waves)
      end do
    end associate
  end subroutine lines_to_waves

  !> Fields (waves, fields) of a set on their way to the grid.
  subroutine start_back(self, which, field, via)
    class(density_objects_t), target, intent(inout) :: self
    integer, intent(in) :: which
    complex(real64), intent(in) :: field(:, :)
    class(handler_t), intent(inout) :: via
    integer :: f, s, n, q, z
    associate (set => self%set(which), lines => self%lines(self%set(which)%set))
      n = (size(field, 2) + 1)/2
      do f = 1, n
        do s = 1, lines%n_sticks
          call lines%scatter(s, field(:, 2*f - 1:min(2*f, size(field, 2))), set%line(:, :, f))
        end do
        call self%planes%along_z(backward, 0, lines%n_lines, set%line(:, :, f))
      end do
      do z = 1, self%map%n_planes
        do q = 1, self%map%n_parts
          call via%office%post(to_parts, self%map%rho_r(q, z), [q, z, set%set], &
                               [set%line(z, self%crossing(q, set%set)%line, :n)])
        end do
      end do
    end associate
  end subroutine start_back

  !> All lines are back: along y, and rows to the parts of the plane.
  subroutine send_rows(self, which, via)
    class(density_objects_t), target, intent(inout) :: self
    integer, intent(in) :: which
    class(handler_t), intent(inout) :: via
    integer :: f, q, n
    associate (part => self%part(which))
      part%wait_lines = self%map%n_rho_sets
      n = self%n_ways - part%n_back
      do f = 1, n
        call self%planes%along_y(backward, part%column(:, :, f))
      end do
      do q = 1, self%map%n_parts
        call via%office%post(to_rows, self%map%rho_r(q, part%plane), [q, part%plane, part%part], &
                             [part%column(self%row_start(q):self%row_start(q + 1) - 1, :, :n)])
      end do
    end associate
  end subroutine send_rows

  !> All rows are back: along x, and what is to be done on the grid.
  subroutine finish_back(self, which, via)
    class(density_objects_t), target, intent(inout) :: self
    integer, intent(in) :: which
    class(handler_t), intent(inout) :: via
    integer :: f
    associate (part => self%part(which))
      part%wait_rows = self%map%n_parts
      part%n_back = part%n_back + 1
      do f = 1, self%n_ways - part%n_back + 1
        call self%planes%along_x(backward, part%row(:, :, f))
      end do
      if (part%n_back == self%n_ways) then
        part%potential = part%potential + real(part%row(:, :, 1), real64)
        part%row = 0.0_real64
        call self%send_potential(which, via)
      else
        part%gradient(:, :, 1) = real(part%row(:, :, 1), real64)
        part%gradient(:, :, 2) = aimag(part%row(:, :, 1))
        part%gradient(:, :, 3) = real(part%row(:, :, 2), real64)
        call self%evaluate_xc(which, via)
        call self%start_forward(which, part%gradient, via)
      end if
    end associate
  end subroutine finish_back

  subroutine evaluate_xc(self, which, via)
    class(density_objects_t), target, intent(inout) :: self
    integer, intent(in) :: which
    class(handler_t), intent(inout) :: via
    integer :: first, last
    associate (part => self%part(which))
      do first = 1, size(part%density, 2), rows_a_turn
        last = min(first + rows_a_turn - 1, size(part%density, 2))
        call self%xc%evaluate_plane(part%density(:, first:last), part%gradient(:, first:last, :), &
                                    part%potential(:, first:last), part%xc)
        call via%poll()
      end do
    end associate
  end subroutine evaluate_xc

  !> Phase V: to that plane of every pair of states, one after the other in a random order.
  subroutine send_potential(self, which, via)
    class(density_objects_t), target, intent(inout) :: self
    integer, intent(in) :: which
    class(handler_t), intent(inout) :: via
    integer :: k
    associate (part => self%part(which))
      do k = 1, size(part%order)
        call via%office%post(density_message, self%map%r(part%plane, part%order(k)), [part%order(k), part%plane, part%part], &
                             reshape(part%potential, [size(part%potential)]))
      end do
    end associate
  end subroutine send_potential

  !> This rank's part of the energies of Hartree, the local potential, exchange and correlation (hartree).
  pure function energies(self)
    class(density_objects_t), intent(in) :: self
    real(real64) :: energies(3)
    energies = [sum(self%set%hartree), sum(self%set%local), &
                sum(self%part%xc)*self%volume/product(real(self%planes%n, real64))]
  end function energies

end module density_objects
