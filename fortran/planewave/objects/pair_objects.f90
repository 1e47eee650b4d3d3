!> Products of states by objects: phases VII and VIII of the source.
!>
!> Forward, the waves of a pair of states in a set go to the pair calculators P(a, b, p, c) of all blocks b with their own
!> block. These multiply the waves of both blocks; what they have of a matrix is summed up a tree to the tiles of ortho,
!> which make of it what is needed, and the tile comes back, along a row of ranks and then down the columns. Backward, the
!> calculators multiply the waves they have kept by it, in place, and send the sums to the waves.
module pair_objects
  use base_kinds, only: real64
  use comm_communicator, only: communicator_t
  use fft_layout, only: share_lower, share_upper
  use functional_objects, only: wave_object_t
  use object_map, only: object_map_t
  use object_office, only: handler_t
  use ortho_tiles, only: ortho_tiles_t
  use section_tree, only: distinct, next_in_rectangle, tree_node_t
  use state_products, only: add_rotated, overlap_here
  use wave_sphere, only: sphere_t
  implicit none
  private
  public :: pair_objects_t, pair_names, round_kind_t

  integer, parameter :: to_pairs = 1, sum_overlaps = 2, spread_matrices = 3, to_states = 4
  character(len=32), parameter :: pair_names(4) = [character(len=32) :: "states_to_pairs", "overlap_sums", "matrices", &
                                                   "pairs_to_states"]
  integer, parameter :: multiply = 1, finish_tile = 2, apply_matrix = 3, sum_blocks = 4
  !> Columns of a product between two looks for messages.
  integer, parameter :: columns_a_turn = 8

  !> What is done in a round.
  type :: round_kind_t
    !> States a, and others b, go to the calculators, which otherwise have kept a.
    logical :: sends_a = .true., sends_b = .false.
    !> Products a^+ b (a^+ a) go to ortho; matrices that are there come back; they are applied to a.
    logical :: multiplies = .true., spreads = .true., applies = .true.
    !> The matrix is symmetric.
    logical :: is_symmetric = .true.
    !> What becomes of the coefficients: these times what was there, plus this times the sum.
    real(real64) :: keep = 0.0_real64, add = 1.0_real64
  end type round_kind_t

  !> P(a, b, p, c): waves `first` + 1 to `first` + `n` of set p.
  type :: calculator_t
    integer :: pair = 0, set = 0, chunk = 0, first = 0, n = 0, zero = 0, wait_states = 0, wait_tiles = 0
    !> States of both blocks (the second is none where they are the same), before and after which come others.
    integer :: n_one = 0, n_two = 0
    complex(real64), allocatable :: a(:, :), b(:, :)
    !> Matrix from the states of the first block to those of the second, and back.
    real(real64), allocatable :: m(:, :), back(:, :)
  end type calculator_t

  !> What comes back to waves G(k, p) from each block (waves, states, blocks).
  type :: returned_t
    integer :: waiting = 0
    complex(real64), allocatable :: from(:, :, :)
  end type returned_t

  type, extends(handler_t) :: pair_objects_t
    type(ortho_tiles_t) :: ortho
    type(object_map_t), pointer, private :: map => null()
    type(wave_object_t), pointer, private :: wave(:) => null()
    integer, pointer, private :: place_of_wave(:, :) => null()
    type(calculator_t), allocatable, private :: calculator(:)
    integer, allocatable, private :: place(:, :, :)
    type(returned_t), allocatable, private :: returned(:)
    !> Sums of products (tiles^2, block pairs); calculators of each block pair here, and those not ready.
    type(tree_node_t), allocatable, private :: node(:, :)
    integer, allocatable, private :: n_here(:), waiting(:)
    !> Columns of the rectangle of ranks; sums and matrices that this rank hands on for others.
    integer, private :: width = 1, n_sums = 0, n_forwards = 0
    type(round_kind_t), private :: kind
    complex(real64), pointer, contiguous, private :: a(:) => null(), b(:) => null(), changed(:) => null()
  contains
    procedure :: create
    procedure :: round
    procedure :: deliver
    procedure :: perform
  end type pair_objects_t

contains

  !> `waves`: the whole sphere, dealt to all sets; `wave`, `place_of_wave`: objects of waves here. `office` is open.
  subroutine create(self, map, waves, wave, place_of_wave, comm)
    class(pair_objects_t), intent(inout) :: self
    type(object_map_t), target, intent(in) :: map
    type(sphere_t), intent(in) :: waves
    type(wave_object_t), target, intent(in) :: wave(:)
    integer, target, intent(in) :: place_of_wave(:, :)
    type(communicator_t), intent(in) :: comm
    integer :: ij, p, c, n, t, zero(map%n_sets), n_waves(map%n_sets)
    self%map => map
    self%wave => wave
    self%place_of_wave => place_of_wave
    self%width = rectangle(comm%n_ranks)
    call measure_sets(waves, n_waves, zero)
    call self%ortho%create(map, comm)
    allocate (self%returned(size(wave)))
    do n = 1, size(wave)
      allocate (self%returned(n)%from(wave(n)%n_waves, wave(n)%n, map%n_blocks))
    end do
    allocate (self%place(map%n_chunks, map%n_sets, size(map%blocks, 2)), source=0)
    allocate (self%calculator(count(map%pair == comm%rank)), self%node(map%n_tiles**2, size(map%blocks, 2)))
    n = 0
    do ij = 1, size(map%blocks, 2)
      do p = 1, map%n_sets
        do c = 1, map%n_chunks
          if (map%pair(c, p, ij) /= comm%rank) cycle
          n = n + 1
          self%place(c, p, ij) = n
          associate (calc => self%calculator(n))
            calc%pair = ij
            calc%set = p
            calc%chunk = c
            calc%first = share_lower(n_waves(p), map%n_chunks, c - 1)
            calc%n = share_upper(n_waves(p), map%n_chunks, c - 1) - calc%first + 1
            if (zero(p) > calc%first .and. zero(p) <= calc%first + calc%n) calc%zero = zero(p) - calc%first
            calc%n_one = states_in(map, map%blocks(1, ij))
            if (map%blocks(1, ij) /= map%blocks(2, ij)) calc%n_two = states_in(map, map%blocks(2, ij))
            allocate (calc%a(calc%n, calc%n_one + calc%n_two), calc%b(calc%n, calc%n_one + calc%n_two))
            allocate (calc%m(calc%n_one, merge(calc%n_two, calc%n_one, calc%n_two > 0)), calc%back(calc%n_two, calc%n_one))
          end associate
        end do
      end do
      do t = 1, map%n_tiles**2
        if (any(map%pair(:, :, ij) == comm%rank) .or. map%ortho(t, ij) == comm%rank) &
          call self%node(t, ij)%create(reshape(map%pair(:, :, ij), [size(map%pair(:, :, ij))]), map%ortho(t, ij), comm%rank)
      end do
    end do
    do ij = 1, size(map%blocks, 2)
      associate (targets => targets_of(map, ij))
        do t = 1, map%n_tiles**2
          if (allocated(self%node(t, ij)%children)) self%n_sums = self%n_sums + merge(1, 0, self%node(t, ij)%parent >= 0)
          if (map%ortho(t, ij) /= comm%rank) self%n_forwards = self%n_forwards + &
            min(1, size(next_in_rectangle(targets, map%ortho(t, ij), comm%rank, self%width)))
        end do
      end associate
    end do
    self%n_here = count(reshape(map%pair == comm%rank, [map%n_chunks*map%n_sets, size(map%blocks, 2)]), 1)
    allocate (self%waiting, source=self%n_here)
  end subroutine create

  !> Columns of a rectangle of all ranks that is as near to a square as their number allows.
  pure integer function rectangle(n)
    integer, intent(in) :: n
    rectangle = int(sqrt(real(n)) + 0.5)
    do while (mod(n, rectangle) /= 0)
      rectangle = rectangle - 1
    end do
    rectangle = n/rectangle
  end function rectangle

  !> Waves of each set, and the place of G = 0 among them, 0: not there.
  subroutine measure_sets(waves, n_waves, zero)
    type(sphere_t), intent(in) :: waves
    integer, intent(out) :: n_waves(:), zero(:)
    integer :: p, s
    n_waves = 0
    zero = 0
    do p = 1, size(n_waves)
      do s = waves%first_stick(p - 1), waves%first_stick(p) - 1
        associate (stick => waves%stick(s))
          if (stick%x == 0 .and. stick%y == 0) zero(p) = n_waves(p) + 1
          n_waves(p) = n_waves(p) + stick%upper - stick%lower + 1
        end associate
      end do
    end do
  end subroutine measure_sets

  pure integer function states_in(map, block)
    type(object_map_t), intent(in) :: map
    integer, intent(in) :: block
    states_in = min(2*map%block*block, map%n_states) - 2*map%block*(block - 1)
  end function states_in

  !> Do a round with coefficients of the objects here. `b`: where the kind has others; `changed`: where it applies a
  !> matrix, that of ortho or `matrix` (states, states), which all ranks have.
  subroutine round(self, kind, a, b, changed, matrix)
    class(pair_objects_t), target, intent(inout) :: self
    type(round_kind_t), intent(in) :: kind
    complex(real64), contiguous, target, intent(in) :: a(:), b(:)
    complex(real64), contiguous, target, intent(inout) :: changed(:)
    real(real64), intent(in), optional :: matrix(:, :)
    integer :: k, n_tasks
    self%kind = kind
    self%a => a
    self%b => b
    self%changed => changed
    n_tasks = 0
    if (kind%multiplies) n_tasks = n_tasks + size(self%calculator) + size(self%ortho%tile) + self%n_sums
    if (kind%spreads) n_tasks = n_tasks + self%n_forwards
    if (kind%applies) n_tasks = n_tasks + size(self%calculator) + size(self%wave)
    call self%office%begin(n_tasks)
    self%waiting = self%n_here
    do k = 1, size(self%calculator)
      associate (calc => self%calculator(k))
        calc%wait_states = merge(self%map%block*merge(2, 1, calc%n_two > 0), 0, kind%sends_a)
        calc%wait_tiles = merge(self%map%n_tiles**2, 0, kind%applies .and. .not. present(matrix))
        if (present(matrix)) call take_matrix(self, calc, matrix)
      end associate
    end do
    do k = 1, size(self%returned)
      self%returned(k)%waiting = self%map%n_blocks*self%map%n_chunks
    end do
    if (kind%multiplies) call restart_sums(self)
    if (kind%sends_a) then
      do k = 1, size(self%wave)
        call send_states(self, k)
      end do
    end if
    if (kind%spreads .and. .not. kind%multiplies) then
      do k = 1, size(self%ortho%tile)
        call spread_tile(self, k)
      end do
    end if
    call self%run()
  end subroutine round

  subroutine take_matrix(self, calc, matrix)
    class(pair_objects_t), intent(in) :: self
    type(calculator_t), intent(inout) :: calc
    real(real64), intent(in) :: matrix(:, :)
    integer :: i, j
    i = 2*self%map%block*(self%map%blocks(1, calc%pair) - 1)
    j = 2*self%map%block*(self%map%blocks(2, calc%pair) - 1)
    calc%m = matrix(i + 1:i + size(calc%m, 1), j + 1:j + size(calc%m, 2))
    calc%back = matrix(j + 1:j + size(calc%back, 1), i + 1:i + size(calc%back, 2))
  end subroutine take_matrix

  subroutine restart_sums(self)
    class(pair_objects_t), intent(inout) :: self
    integer :: ij, t
    do ij = 1, size(self%node, 2)
      do t = 1, size(self%node, 1)
        if (allocated(self%node(t, ij)%children)) &
          call self%node(t, ij)%restart(self%ortho%n_words(t, ij, has_back(self, ij)), min(1, self%n_here(ij)))
      end do
    end do
  end subroutine restart_sums

  !> Whether products have a part from the second block to the first one that does not follow from the other.
  pure logical function has_back(self, ij)
    class(pair_objects_t), intent(in) :: self
    integer, intent(in) :: ij
    has_back = self%kind%sends_b .and. (self%kind%is_symmetric .or. self%map%blocks(1, ij) /= self%map%blocks(2, ij))
  end function has_back

  !> Waves of an object, chunk by chunk, to all calculators of its block.
  subroutine send_states(self, which)
    class(pair_objects_t), target, intent(inout) :: self
    integer, intent(in) :: which
    complex(real64), pointer, contiguous :: a(:, :), b(:, :)
    integer :: other, c, ij, mine, first, last
    associate (wave => self%wave(which), map => self%map)
      a(1:wave%n_waves, 1:wave%n) => self%a(wave%first + 1:wave%first + wave%n*wave%n_waves)
      if (self%kind%sends_b) b(1:wave%n_waves, 1:wave%n) => self%b(wave%first + 1:wave%first + wave%n*wave%n_waves)
      mine = (wave%pair - 1)/map%block + 1
      do other = 1, map%n_blocks
        ij = map%block_pair(min(mine, other), max(mine, other))
        do c = 1, map%n_chunks
          first = share_lower(wave%n_waves, map%n_chunks, c - 1) + 1
          last = share_upper(wave%n_waves, map%n_chunks, c - 1) + 1
          if (self%kind%sends_b) then
            call self%office%post(to_pairs, map%pair(c, wave%set, ij), [ij, wave%set*map%n_chunks + c, wave%pair], &
                                  [a(first:last, :), b(first:last, :)])
          else
            call self%office%post(to_pairs, map%pair(c, wave%set, ij), [ij, wave%set*map%n_chunks + c, wave%pair], &
                                  [a(first:last, :)])
          end if
        end do
      end do
    end associate
  end subroutine send_states

  subroutine deliver(self, kind, index, values)
    class(pair_objects_t), target, intent(inout) :: self
    integer, intent(in) :: kind, index(3)
    real(real64), intent(in) :: values(:)
    integer :: o, c, p, ij, k
    select case (kind)
    case (to_pairs)  ! block pair; set and chunk; from pair of states
      call split(self, index(2), p, c)
      o = self%place(c, p, index(1))
      call take_states(self, self%calculator(o), index(3), values)
      if (self%calculator(o)%wait_states > 0) return
      if (self%kind%multiplies) then
        call self%office%push(multiply, o)
      else if (self%calculator(o)%wait_tiles == 0) then
        call self%office%push(apply_matrix, o)
      end if
    case (sum_overlaps)  ! tile, block pair; from child
      associate (node => self%node(index(1), index(2)))
        node%from(:, index(3)) = values
        node%waiting = node%waiting - 1
      end associate
      call pass_sum(self, index(1), index(2))
    case (spread_matrices)  ! tile, block pair
      ij = index(2)
      call hand_on(self, index(1), ij, values)
      do p = 1, self%map%n_sets
        do c = 1, self%map%n_chunks
          k = self%place(c, p, ij)
          if (k == 0) cycle
          associate (calc => self%calculator(k))
            call self%ortho%place_tile(index(1), ij, values, self%kind%is_symmetric, calc%m, calc%back)
            calc%wait_tiles = calc%wait_tiles - 1
            if (calc%wait_tiles == 0 .and. calc%wait_states == 0) call self%office%push(apply_matrix, k)
          end associate
        end do
      end do
    case (to_states)  ! pair of states; set and chunk; from block
      call split(self, index(2), p, c)
      o = self%place_of_wave(p, index(1))
      associate (returned => self%returned(o), n => self%wave(o)%n_waves)
        k = share_lower(n, self%map%n_chunks, c - 1)
        if (size(values) > 0) returned%from(k + 1:k + size(values)/(2*self%wave(o)%n), :, index(3)) = &
          reshape(cmplx(values(1::2), values(2::2), real64), [size(values)/(2*self%wave(o)%n), self%wave(o)%n])
        returned%waiting = returned%waiting - 1
        if (returned%waiting == 0) call self%office%push(sum_blocks, o)
      end associate
    end select
  end subroutine deliver

  !> Set and chunk from the one number of both.
  pure subroutine split(self, both, p, c)
    class(pair_objects_t), intent(in) :: self
    integer, intent(in) :: both
    integer, intent(out) :: p, c
    p = (both - 1)/self%map%n_chunks
    c = both - p*self%map%n_chunks
  end subroutine split

  !> The states of pair k into their columns.
  subroutine take_states(self, calc, k, values)
    class(pair_objects_t), intent(in) :: self
    type(calculator_t), intent(inout) :: calc
    integer, intent(in) :: k
    real(real64), intent(in) :: values(:)
    integer :: first, n, half
    first = column(self, calc, k)
    n = min(2, self%map%n_states - 2*(k - 1))
    half = 2*calc%n*n
    calc%a(:, first:first + n - 1) = reshape(cmplx(values(1:half:2), values(2:half:2), real64), [calc%n, n])
    if (self%kind%sends_b) calc%b(:, first:first + n - 1) = &
      reshape(cmplx(values(half + 1::2), values(half + 2::2), real64), [calc%n, n])
    calc%wait_states = calc%wait_states - 1
  end subroutine take_states

  !> First column of the states of pair k.
  pure integer function column(self, calc, k)
    class(pair_objects_t), intent(in) :: self
    type(calculator_t), intent(in) :: calc
    integer, intent(in) :: k
    integer :: block
    block = (k - 1)/self%map%block + 1
    column = 2*(k - 1 - (block - 1)*self%map%block) + 1
    if (block /= self%map%blocks(1, calc%pair)) column = column + calc%n_one
  end function column

  subroutine perform(self, what, which)
    class(pair_objects_t), target, intent(inout) :: self
    integer, intent(in) :: what, which
    select case (what)
    case (multiply)
      call find_products(self, self%calculator(which))
    case (finish_tile)
      if (self%kind%spreads) call spread_tile(self, which)
    case (apply_matrix)
      call apply(self, self%calculator(which))
    case (sum_blocks)
      call sum_returned(self, which)
    end select
  end subroutine perform

  subroutine find_products(self, calc)
    class(pair_objects_t), target, intent(inout) :: self
    type(calculator_t), target, intent(inout) :: calc
    complex(real64), pointer, contiguous :: b(:, :)
    integer :: first, last, n, ij, t
    n = calc%n_one
    b => calc%a
    if (self%kind%sends_b) b => calc%b
    ! From the first block to the second one, or to itself.
    do first = 1, size(calc%m, 2), columns_a_turn
      last = min(first + columns_a_turn - 1, size(calc%m, 2))
      associate (from => merge(n, 0, calc%n_two > 0))
        call overlap_here(calc%a(:, :n), b(:, from + first:from + last), calc%zero, calc%m(:, first:last), .false.)
      end associate
      call self%poll()
    end do
    if (self%kind%sends_b .and. calc%n_two > 0) then
      do first = 1, n, columns_a_turn
        last = min(first + columns_a_turn - 1, n)
        call overlap_here(calc%a(:, n + 1:), b(:, first:last), calc%zero, calc%back(:, first:last), .false.)
        call self%poll()
      end do
    end if
    ij = calc%pair
    self%waiting(ij) = self%waiting(ij) - 1
    if (self%waiting(ij) > 0) return
    do t = 1, self%map%n_tiles**2
      call sum_here(self, t, ij)
      call pass_sum(self, t, ij)
    end do
  end subroutine find_products

  !> What all calculators here have of a tile, in the order of their indices.
  subroutine sum_here(self, t, ij)
    class(pair_objects_t), target, intent(inout) :: self
    integer, intent(in) :: t, ij
    integer :: p, c, k
    associate (node => self%node(t, ij))
      do p = 1, self%map%n_sets
        do c = 1, self%map%n_chunks
          k = self%place(c, p, ij)
          if (k > 0) node%own = node%own + self%ortho%cut_tile(t, ij, has_back(self, ij), self%calculator(k)%m, &
                                                               self%calculator(k)%back)
        end do
      end do
      node%waiting = node%waiting - 1
    end associate
  end subroutine sum_here

  !> Where a sum is complete: up the tree, or to the tile.
  subroutine pass_sum(self, t, ij)
    class(pair_objects_t), target, intent(inout) :: self
    integer, intent(in) :: t, ij
    integer :: k
    associate (node => self%node(t, ij))
      if (node%waiting > 0) return
      if (node%parent >= 0) then
        call self%office%post(sum_overlaps, node%parent, [t, ij, node%place], node%total())
        self%office%n_left = self%office%n_left - 1
      else
        k = self%ortho%place(t, ij)
        call self%ortho%take_sum(k, node%total(), has_back(self, ij), self%kind%is_symmetric)
        call self%office%push(finish_tile, k)
      end if
    end associate
  end subroutine pass_sum

  !> A tile of ortho to the calculators of its blocks.
  subroutine spread_tile(self, which)
    class(pair_objects_t), target, intent(inout) :: self
    integer, intent(in) :: which
    associate (tile => self%ortho%tile(which))
      if (any(self%map%pair(:, :, tile%pair) == self%office%rank)) then
        ! Own calculators hand on to others.
        call self%office%post(spread_matrices, self%office%rank, [tile%number, tile%pair, 0], &
                              self%ortho%words(which, self%kind%is_symmetric, .not. self%kind%multiplies))
      else
        call hand_on(self, tile%number, tile%pair, self%ortho%words(which, self%kind%is_symmetric, .not. self%kind%multiplies))
      end if
    end associate
  end subroutine spread_tile

  !> Along the row of ranks, or down the column.
  subroutine hand_on(self, t, ij, values)
    class(pair_objects_t), target, intent(inout) :: self
    integer, intent(in) :: t, ij
    real(real64), intent(in) :: values(:)
    integer :: k
    associate (root => self%map%ortho(t, ij), me => self%office%rank)
      associate (next => next_in_rectangle(targets_of(self%map, ij), root, me, self%width))
        do k = 1, size(next)
          call self%office%post(spread_matrices, next(k), [t, ij, 0], values)
        end do
        if (me /= root .and. size(next) > 0) self%office%n_left = self%office%n_left - 1
      end associate
    end associate
  end subroutine hand_on

  !> Ranks of the calculators of a pair of blocks.
  pure function targets_of(map, ij) result(ranks)
    type(object_map_t), intent(in) :: map
    integer, intent(in) :: ij
    integer, allocatable :: ranks(:)
    ranks = distinct(reshape(map%pair(:, :, ij), [size(map%pair(:, :, ij))]))
  end function targets_of

  !> Phase VIII backward: kept states times the matrix, to the waves of both blocks.
  subroutine apply(self, calc)
    class(pair_objects_t), target, intent(inout) :: self
    type(calculator_t), target, intent(inout) :: calc
    associate (n => calc%n_one, one => self%map%blocks(1, calc%pair), two => self%map%blocks(2, calc%pair))
      call send_product(calc%a(:, :n), calc%m, one, two)
      if (calc%n_two > 0) call send_product(calc%a(:, n + 1:), calc%back, two, one)
    end associate

  contains

    !> States of block `from` times a matrix, to the states of block `to`.
    subroutine send_product(states, matrix, from, to)
      complex(real64), contiguous, intent(in) :: states(:, :)
      real(real64), intent(in) :: matrix(:, :)
      integer, intent(in) :: from, to
      complex(real64), allocatable :: product(:, :)
      integer :: k, first, n
      allocate (product(calc%n, size(matrix, 2)), source=(0.0_real64, 0.0_real64))
      call add_rotated(states, matrix, product)
      call self%poll()
      do k = (to - 1)*self%map%block + 1, to*self%map%block
        first = 2*(k - 1 - (to - 1)*self%map%block) + 1
        n = min(2, self%map%n_states - 2*(k - 1))
        call self%office%post(to_states, self%map%g(calc%set, k), [k, calc%set*self%map%n_chunks + calc%chunk, from], &
                              [product(:, first:first + n - 1)])
      end do
    end subroutine send_product

  end subroutine apply

  !> What has come back from all blocks, in their order, into the coefficients.
  subroutine sum_returned(self, which)
    class(pair_objects_t), target, intent(inout) :: self
    integer, intent(in) :: which
    complex(real64), pointer, contiguous :: c(:, :)
    complex(real64), allocatable :: total(:, :)
    integer :: block
    associate (wave => self%wave(which), from => self%returned(which)%from)
      c(1:wave%n_waves, 1:wave%n) => self%changed(wave%first + 1:wave%first + wave%n*wave%n_waves)
      allocate (total, source=from(:, :, 1))
      do block = 2, size(from, 3)
        total = total + from(:, :, block)
      end do
      c = self%kind%keep*c + self%kind%add*total
    end associate
  end subroutine sum_returned

end module pair_objects
