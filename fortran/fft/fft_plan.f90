!> How a plan is made: the stages of a scheme, with the caller's layouts at their ends, become steps with exchanges,
!> transforms and memory.
submodule(fft_distributed) fft_plan
  use mpi_f08, only: MPI_Allreduce, MPI_Comm_dup, MPI_Comm_rank, MPI_Comm_split, MPI_IN_PLACE, MPI_LAND, MPI_LOGICAL, &
    MPI_LOR
  use fft_lines, only: complex_lines, complex_to_real, real_to_complex
  use fft_scheme, only: default_grid, half_axis, stage_t
  use fft_step, only: chunk_range, make_schedule
  use fft_user_layouts, only: check_layouts, gather_layouts
  implicit none

contains

  !> The plan of a given scheme.
  module subroutine make_plan(self, comm, n, options, error, real_layout, wave_layout)
    class(distributed_fft_t), target, intent(inout) :: self
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: n(3)
    type(fft_options_t), intent(in) :: options
    type(error_t), allocatable, intent(out) :: error
    type(layout_t), intent(in), optional :: real_layout, wave_layout
    type(layout_t), allocatable :: users_grid(:), users_waves(:)
    type(stage_t), allocatable :: stage(:)
    !> Whose layout counts at a stage: 0 the scheme's, 1 the user's grid, 2 the user's waves.
    integer, allocatable :: origin(:), scheme_stage(:)
    integer :: k, direction, n_waves
    logical, allocatable :: wanted(:)
    logical :: is_whole

    call self%destroy()
    call MPI_Comm_dup(comm, self%comm)
    self%is_made = .true.
    call MPI_Comm_rank(comm, self%rank)
    call MPI_Comm_size(comm, self%n_ranks)
    self%n = n
    self%options = options
    n_waves = half_axis(n(1), options%is_real)
    if (present(real_layout)) call gather_layouts(self%comm, real_layout, users_grid)
    if (present(wave_layout)) call gather_layouts(self%comm, wave_layout, users_waves)
    if (present(real_layout)) call check_layouts(users_grid, n, .true., error)
    if (allocated(error)) return
    if (present(wave_layout)) call check_layouts(users_waves, [n_waves, n(2), n(3)], .false., error)
    if (allocated(error)) return

    ! Only the kx that somebody wants.
    allocate (wanted(0:n_waves - 1), source=.not. present(wave_layout))
    if (present(wave_layout)) then
      do k = 1, size(wave_layout%box)
        if (wave_layout%box(k)%n_points() > 0) wanted(wave_layout%box(k)%lower(1):wave_layout%box(k)%upper(1)) = .true.
      end do
      call MPI_Allreduce(MPI_IN_PLACE, wanted, n_waves, MPI_LOGICAL, MPI_LOR, self%comm)
    end if
    is_whole = all(wanted)
    associate (d => self%decomposition)
      d%scheme = findloc(scheme_names == options%scheme, .true., 1)
      d%n = n
      d%n_waves = n_waves
      d%kx = pack([(k, k=0, n_waves - 1)], wanted)
      d%grid = options%grid
      d%returns = options%returns
      if (all(d%grid == 0)) d%grid = default_grid(d%scheme, n, self%n_ranks)
      ! Lines along y can only be left out where they are a stage of their own.
      if (options%scheme == "slab" .and. .not. is_whole) d%scheme = findloc(scheme_names == "pencil", .true., 1)
      if ((options%scheme == "slab" .and. any(d%grid(:2) /= 1)) .or. &
          (options%scheme == "pencil" .and. d%grid(1) /= 1)) then
        call fail(error, exit_bad_input, "FFT scheme "//trim(options%scheme)//" needs a process grid of "// &
                  "1 x 1 x P (slab) or 1 x P1 x P2 (pencil)")
        return
      end if
      d%wave_order = options%wave_order
      if (all(d%wave_order == 0)) d%wave_order = merge([1, 2, 3], [3, 1, 2], self%n_ranks == 1)
      call d%choose_subset(findloc(subset_names == options%subset, .true., 1))
      self%options%grid = d%grid
      allocate (stage, source=d%stages(d%place(self%rank)))
    end associate
    scheme_stage = [(k, k=1, size(stage))]
    origin = spread(0, 1, size(stage))
    if (present(real_layout)) call splice_users_grid()
    if (present(wave_layout)) call splice_users_waves()
    self%real_layout = stage(1)%layout
    self%wave_layout = stage(size(stage))%layout
    if (stage(size(stage))%axes(1) == 1) self%wave_layout = after_x(self%wave_layout)
    call single_box(self%real_layout, self%real_lower, self%real_upper)
    call single_box(self%wave_layout, self%wave_lower, self%wave_upper)

    ! One for each set of axes.
    allocate (self%group(8), self%path(2))
    do direction = 1, 2
      call make_steps(self%path(direction), direction)
      if (allocated(error)) return
      call make_schedule(self%path(direction), options%n_chunks, options%overlap_axes)
    end do
    call assign_arrays()

  contains

    !> What rank r of the process grid holds at a stage, before or after the transforms there.
    function layout_at(s, r, arrived) result(layout)
      integer, intent(in) :: s, r
      logical, intent(in) :: arrived
      type(layout_t) :: layout
      type(stage_t), allocatable :: list(:)
      select case (origin(s))
      case (0)
        allocate (list, source=self%decomposition%stages(self%decomposition%place(r)))
        layout = list(scheme_stage(s))%layout
      case (1)
        layout = users_grid(r)
      case default
        layout = users_waves(r)
      end select
      if (.not. arrived .and. stage(s)%axes(1) == 1) layout = after_x(layout)
    end function layout_at

    !> Lines along x once they are waves.
    function after_x(layout) result(waves)
      type(layout_t), intent(in) :: layout
      type(layout_t) :: waves
      integer :: b
      waves = layout
      do b = 1, size(waves%box)
        if (waves%box(b)%n_points() > 0) waves%box(b)%upper(1) = n_waves - 1
      end do
    end function after_x

    !> Agree on a property of all ranks.
    logical function everywhere(here)
      logical, intent(in) :: here
      everywhere = here
      call MPI_Allreduce(MPI_IN_PLACE, everywhere, 1, MPI_LOGICAL, MPI_LAND, self%comm)
    end function everywhere

    !> Begin with the user's layout of the grid: as it is where it has the lines (or planes) that the first transform
    !> needs, else with an exchange among all ranks.
    subroutine splice_users_grid()
      integer :: first
      type(stage_t) :: users
      if (everywhere(real_layout%same_as(stage(1)%layout))) return
      users%layout = real_layout
      first = 1
      do while (stage(first)%axes(1) /= 1)
        first = first + 1
      end do
      if (everywhere(holds_what_it_takes(real_layout, stage(first)%axes))) then
        users%axes = stage(first)%axes
        first = first + 1
      else if (stage(1)%axes(1) > 0) then
        first = 1
      else
        ! Straight to the lines.
        first = 2
      end if
      call keep_stages(first, size(stage), 1, 0)
      stage(1) = users
      origin(1) = 1
      call among_all(stage(2))
    end subroutine splice_users_grid

    !> Are lines along the first axis, or planes of both axes, whole and in order?
    logical function holds_what_it_takes(layout, axes)
      type(layout_t), intent(in) :: layout
      integer, intent(in) :: axes(2)
      holds_what_it_takes = layout%holds_lines(axes(1), n(axes(1)))
      if (axes(2) == 0 .or. .not. holds_what_it_takes .or. layout%n_points() == 0) return
      holds_what_it_takes = size(layout%box) == 1 .and. layout%order(2) == axes(2) .and. &
                            layout%box(1)%lower(axes(2)) == 0 .and. layout%box(1)%upper(axes(2)) == n(axes(2)) - 1
    end function holds_what_it_takes

    !> End with the user's layout of the waves: lines along z are transformed as they are, anything else comes after an
    !> exchange among all ranks.
    subroutine splice_users_waves()
      integer :: last
      type(stage_t) :: users
      associate (s => stage(size(stage)))
        if (s%axes(1) /= 1 .and. everywhere(wave_layout%same_as(s%layout))) return
      end associate
      users%layout = wave_layout
      last = size(stage)
      do while (stage(last)%axes(1) == 0)
        last = last - 1
      end do
      if (everywhere(wave_layout%holds_lines(3, n(3))) .and. stage(last)%axes(1) == 3) then
        users%axes = [3, 0]
        last = last - 1
        if (stage(last)%axes(1) == 0) last = last - 1
      end if
      call keep_stages(1, last, 0, 1)
      stage(last + 1) = users
      origin(last + 1) = 2
      call among_all(stage(last + 1))
    end subroutine splice_users_waves

    !> Keep stages first..last, with room for others before and after.
    subroutine keep_stages(first, last, n_before, n_after)
      integer, intent(in) :: first, last, n_before, n_after
      type(stage_t), allocatable :: kept(:)
      integer :: s
      allocate (kept(n_before + last - first + 1 + n_after))
      do s = first, last
        kept(n_before + s - first + 1) = stage(s)
      end do
      call move_alloc(kept, stage)
      scheme_stage = [spread(0, 1, n_before), scheme_stage(first:last), spread(0, 1, n_after)]
      origin = [spread(0, 1, n_before), origin(first:last), spread(0, 1, n_after)]
    end subroutine keep_stages

    subroutine among_all(s)
      type(stage_t), intent(inout) :: s
      s%among = .true.
      s%chop_axis = 0
    end subroutine among_all

    !> The steps there (1) or back (2).
    subroutine make_steps(path, direction)
      type(path_t), intent(inout) :: path
      integer, intent(in) :: direction
      integer :: s, at

      allocate (path%step(count(stage%axes(1) > 0) + size(stage) - 1))
      at = 0
      if (direction == 1) then
        do s = 1, size(stage)
          if (s > 1) call add_exchange(path, at, s, .true.)
          if (allocated(error)) return
          if (stage(s)%axes(1) > 0) call add_transform(path, at, s, .true.)
        end do
      else
        do s = size(stage), 1, -1
          if (stage(s)%axes(1) > 0) call add_transform(path, at, s, .false.)
          if (s > 1) call add_exchange(path, at, s, .false.)
          if (allocated(error)) return
        end do
      end if
      path%n_steps = at
    end subroutine make_steps

    !> Exchange from stage s - 1 to stage s, or back.
    subroutine add_exchange(path, at, s, ahead)
      type(path_t), intent(inout) :: path
      integer, intent(inout) :: at
      integer, intent(in) :: s
      logical, intent(in) :: ahead
      type(layout_t), allocatable :: from(:), to(:)
      integer :: g, r, width, me, chunk, range(2)
      integer(int64) :: arriving

      g = group_of(stage(s)%among)
      associate (member => self%group(g)%member)
        allocate (from(0:size(member) - 1), to(0:size(member) - 1))
        me = findloc(member, self%rank, 1) - 1
        do r = 0, size(member) - 1
          from(r) = layout_at(s - 1, member(r + 1), .false.)
          to(r) = layout_at(s, member(r + 1), .true.)
        end do
        if (size(member) == 1) then
          if (from(0)%same_as(to(0))) return
        end if
      end associate
      ! Numbers are real before the transform along x.
      width = 2*options%bytes
      if (options%is_real .and. all(stage(:s - 1)%axes(1) /= 1)) width = options%bytes
      at = at + 1
      associate (step => path%step(at))
        step%is_exchange = .true.
        step%group = g
        step%chop_axis = merge(stage(s)%chop_axis, 0, options%n_chunks > 1)
        step%chop_range = stage(s)%chop_range
        allocate (step%exchange(merge(options%n_chunks, 1, step%chop_axis > 0)))
        arriving = 0
        do chunk = 1, size(step%exchange)
          range = chunk_range(step, size(step%exchange), chunk)
          associate (transport => transport_among(size(from)))
            if (ahead) then
              call step%exchange(chunk)%create(self%group(g)%comm, from, to, step%chop_axis, range, options%n_batch, &
                                               width, transport, error)
            else
              call step%exchange(chunk)%create(self%group(g)%comm, to, from, step%chop_axis, range, options%n_batch, &
                                               width, transport, error)
            end if
          end associate
          arriving = arriving + step%exchange(chunk)%n_arriving
        end do
        associate (target => merge(to(me)%n_points(), from(me)%n_points(), ahead))
          step%to_bytes = target*options%n_batch*width
          if (arriving < target*options%n_batch) step%clear_bytes = step%to_bytes
        end associate
        step%width = width
      end associate
    end subroutine add_exchange

    !> How messages travel among so many ranks. A node's one message for another saves messages and costs a copy on
    !> either side, so that it is for short ones alone.
    integer function transport_among(n_members)
      integer, intent(in) :: n_members
      character(len=len(options%transport)) :: name
      real(real64) :: bytes
      name = options%transport
      bytes = product(real(n, real64))*options%n_batch*options%bytes*merge(1, 2, options%is_real)
      if (name == "by_node" .and. bytes/self%n_ranks/n_members > longest_by_node) name = "alltoallv"
      transport_among = findloc(transport_names == name, .true., 1)
    end function transport_among

    !> Transforms on the axes of stage s.
    subroutine add_transform(path, at, s, ahead)
      type(path_t), intent(inout) :: path
      integer, intent(inout) :: at
      integer, intent(in) :: s
      logical, intent(in) :: ahead
      type(layout_t) :: layout, transformed
      integer :: k, axis, what, extent(3), n_here(3), neighbour, chunk, place_in_order, inner, b, batch
      integer(int64) :: n_all
      integer, allocatable :: runs(:, :)

      at = at + 1
      layout = layout_at(s, self%rank, .true.)
      extent = 0
      if (size(layout%box) == 1) extent = layout%box(1)%extent()
      associate (step => path%step(at))
        step%n_axes = count(stage(s)%axes > 0)
        do k = 1, step%n_axes
          axis = stage(s)%axes(k)
          ! In the order of execution.
          place_in_order = merge(k, step%n_axes + 1 - k, ahead)
          what = complex_lines
          if (options%is_real .and. axis == 1) what = merge(real_to_complex, complex_to_real, ahead)
          n_here = extent
          if (stage(s)%axes(1) == 1 .and. axis /= 1) n_here(1) = n_waves
          inner = 1
          if (.not. layout%holds_lines(axis, n(axis))) then
            do b = 1, findloc(layout%order, axis, 1) - 1
              inner = inner*n_here(layout%order(b))
            end do
          end if
          n_all = 0
          if (size(layout%box) == 1 .or. inner == 1) n_all = layout%n_points()/n(axis)
          if (step%n_axes == 2) then
            step%n_planes = extent(layout%order(3))*options%n_batch
            n_all = merge(n_waves, extent(2), axis == 2)
          end if
          step%n_lines(place_in_order) = int(n_all)
          call step%transform(place_in_order)%create(what, merge(-1, 1, ahead), options%bytes, n(axis), max(1, inner))
        end do
        ! Along x from one array to another, so that there the user's input is kept and back the output is reached.
        step%in_place = all(stage(s)%axes /= 1)
        transformed = layout_at(s, self%rank, .not. ahead)
        step%to_bytes = transformed%n_points()*options%n_batch*step%transform(step%n_axes)%width_out
        if (step%n_axes == 1) then
          ! Chunks belong to the exchange next to it.
          neighbour = merge(s, min(s + 1, size(stage)), s > 1)
          if (layout%holds_lines(stage(s)%axes(1), n(stage(s)%axes(1))) .and. options%n_chunks > 1) then
            step%chop_axis = stage(neighbour)%chop_axis
            step%chop_range = stage(neighbour)%chop_range
          end if
          allocate (step%chunk(merge(options%n_chunks, 1, step%chop_axis > 0)))
          do chunk = 1, size(step%chunk)
            if (layout%holds_lines(stage(s)%axes(1), n(stage(s)%axes(1)))) then
              runs = layout%line_ranges(step%chop_axis, chunk_range(step, size(step%chunk), chunk))
            else
              runs = reshape([0, step%n_lines(1)], [2, 1])
            end if
            allocate (step%chunk(chunk)%run(2, size(runs, 2)*options%n_batch))
            do batch = 0, options%n_batch - 1
              step%chunk(chunk)%run(1, batch*size(runs, 2) + 1:(batch + 1)*size(runs, 2)) = &
                runs(1, :) + batch*step%n_lines(1)
              step%chunk(chunk)%run(2, batch*size(runs, 2) + 1:(batch + 1)*size(runs, 2)) = runs(2, :)
            end do
          end do
        end if
      end associate
    end subroutine add_transform

    !> The communicator among the ranks along some axes of the process grid.
    integer function group_of(among)
      logical, intent(in) :: among(3)
      type(group_t) :: new
      integer :: g, r, mine(3), place(3), colour
      do g = 1, self%n_groups
        if (all(self%group(g)%among .eqv. among)) then
          group_of = g
          return
        end if
      end do
      associate (d => self%decomposition)
        mine = d%place(self%rank)
        new%among = among
        colour = sum(merge(0, mine, among)*[1, d%grid(1), d%grid(1)*d%grid(2)])
        call MPI_Comm_split(self%comm, colour, self%rank, new%comm)
        allocate (new%member(product(merge(d%grid, 1, among))))
        do r = 0, size(new%member) - 1
          place = mine
          if (among(1)) place(1) = mod(r, d%grid(1))
          if (among(2)) place(2) = mod(r/merge(d%grid(1), 1, among(1)), d%grid(2))
          if (among(3)) place(3) = r/product(merge(d%grid(:2), 1, among(:2)))
          new%member(r + 1) = place(1) + d%grid(1)*(place(2) + d%grid(2)*place(3))
        end do
      end associate
      self%n_groups = self%n_groups + 1
      group_of = self%n_groups
      self%group(group_of) = new
    end function group_of

    !> Which array each step reads and writes, memory for those that are not the user's, and for messages.
    subroutine assign_arrays()
      integer :: path, k, id, chunk, n_steps
      integer(int64) :: at
      !> Bytes, then first bytes of: arrays 2.. ; send and receive buffers.
      integer(int64), allocatable :: array(:), send(:), receive(:)
      type(c_ptr) :: base

      n_steps = maxval(self%path%n_steps)
      allocate (array(2:n_steps + 2), send(n_steps), receive(n_steps), source=0_int64)
      do path = 1, 2
        associate (step => self%path(path)%step(:self%path(path)%n_steps))
          id = 0
          do k = 1, size(step)
            step(k)%from = id
            if (.not. step(k)%in_place) id = id + 1
            step(k)%to = id
          end do
          where (step%to == id) step%to = -1
          where (step%from == id) step%from = -1
          ! Two work arrays take turns unless steps overlap.
          where (step%to > 0) step%to = merge(2 + mod(step%to, 2), 1 + step%to, options%n_chunks == 1)
          where (step%from > 0) step%from = merge(2 + mod(step%from, 2), 1 + step%from, options%n_chunks == 1)
          where (step%to == -1) step%to = 1
          where (step%from == -1) step%from = 1
          do k = 1, size(step)
            step(k)%buffer = merge(1, k, options%n_chunks == 1)
            if (step(k)%to > 1) array(step(k)%to) = max(array(step(k)%to), step(k)%to_bytes)
            if (.not. step(k)%is_exchange) cycle
            do chunk = 1, size(step(k)%exchange)
              associate (e => step(k)%exchange(chunk), width => step(k)%width)
                send(step(k)%buffer) = max(send(step(k)%buffer), e%send_size*width)
                receive(step(k)%buffer) = max(receive(step(k)%buffer), e%receive_size*width)
              end associate
            end do
          end do
        end associate
      end do
      at = 0
      call place(array, at)
      call place(send, at)
      call place(receive, at)
      allocate (self%work(at/16 + 1))
      base = c_loc(self%work)
      call move_alloc(array, self%array_start)
      do path = 1, 2
        do k = 1, self%path(path)%n_steps
          associate (step => self%path(path)%step(k))
            if (.not. step%is_exchange) cycle
            do chunk = 1, size(step%exchange)
              call step%exchange(chunk)%attach(at_byte(base, send(step%buffer)), at_byte(base, receive(step%buffer)), &
                                                 self%comm, options%ranks_a_node)
            end do
          end associate
        end do
      end do
    end subroutine assign_arrays

    !> Turn lengths into first bytes, on cache lines.
    subroutine place(length, at)
      integer(int64), intent(inout) :: length(:), at
      integer(int64) :: next
      integer :: k
      do k = 1, size(length)
        next = at + (length(k) + 63)/64*64
        length(k) = at
        at = next
      end do
    end subroutine place

  end subroutine make_plan

  !> Corners of the only box of a layout; an empty box if there is none or there are several.
  subroutine single_box(layout, lower, upper)
    type(layout_t), intent(in) :: layout
    integer, intent(out) :: lower(3), upper(3)
    lower = 0
    upper = -1
    if (size(layout%box) /= 1) return
    lower = layout%box(1)%lower
    upper = layout%box(1)%upper
  end subroutine single_box

end submodule fft_plan
