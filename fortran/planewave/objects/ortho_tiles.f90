!> Tiles of matrices of states, ortho(a, b, t), and the inverse square root of an overlap matrix in tiles: the cycles of
!> state_products, with tiles of each factor sent to the ranks whose tiles need them.
module ortho_tiles
  use base_kinds, only: real64
  use base_error, only: error_t, exit_unstable, fail
  use comm_communicator, only: communicator_t
  use object_map, only: object_map_t
  use object_office, only: handler_t
  use state_products, only: add_unit, has_settled, most_cycles, singular, starting_scale
  implicit none
  private
  public :: ortho_tiles_t, ortho_names

  character(len=32), parameter :: ortho_names(1) = [character(len=32) :: "tiles_of_products"]

  !> Tile `number` (u, v) of a pair of blocks: from the states of tile u of the first block to those of tile v of the
  !> second one, and back.
  type :: tile_t
    integer :: pair = 0, number = 0
    !> Places among the tiles of all states.
    integer :: row = 0, column = 0
    real(real64), allocatable :: m(:, :), back(:, :)
    !> The last inverse square root.
    real(real64), allocatable :: root(:, :)
    !> Of the cycles: y, w, z.
    real(real64), allocatable :: factor(:, :, :)
  end type tile_t

  type :: box_t
    real(real64), allocatable :: a(:, :)
  end type box_t

  type, extends(handler_t) :: ortho_tiles_t
    type(tile_t), allocatable :: tile(:)
    !> Tile here of each (number, block pair), 0: elsewhere.
    integer, allocatable :: place(:, :)
    type(object_map_t), pointer, private :: map => null()
    type(communicator_t), private :: comm
    !> Tiles of factors as they came (row, column, factor); how many come of each factor.
    type(box_t), allocatable, private :: box(:, :, :)
    integer, private :: n_to_come = 0
  contains
    procedure :: create
    procedure :: n_words
    procedure :: cut_tile
    procedure :: place_tile
    procedure :: take_sum
    procedure :: words
    procedure :: inverse_root
    procedure :: whole
    procedure :: deliver
    procedure :: perform
    procedure, private :: send_factors
    procedure, private :: multiply
    procedure, private :: states_of
    procedure, private :: needs
  end type ortho_tiles_t

contains

  !> `office` is open.
  subroutine create(self, map, comm)
    class(ortho_tiles_t), intent(inout) :: self
    type(object_map_t), target, intent(in) :: map
    type(communicator_t), intent(in) :: comm
    integer :: ij, t, n, last
    self%map => map
    self%comm = comm
    allocate (self%place(map%n_tiles**2, size(map%blocks, 2)), source=0)
    allocate (self%tile(count(map%ortho == comm%rank)))
    last = map%n_tiles*map%n_blocks
    allocate (self%box(last, last, 3))
    n = 0
    do ij = 1, size(map%blocks, 2)
      do t = 1, map%n_tiles**2
        if (self%needs(comm%rank, t, ij)) self%n_to_come = self%n_to_come + 1
        if (map%ortho(t, ij) /= comm%rank) cycle
        n = n + 1
        self%place(t, ij) = n
        associate (tile => self%tile(n))
          tile%pair = ij
          tile%number = t
          tile%row = (map%blocks(1, ij) - 1)*map%n_tiles + (t - 1)/map%n_tiles + 1
          tile%column = (map%blocks(2, ij) - 1)*map%n_tiles + mod(t - 1, map%n_tiles) + 1
          allocate (tile%m(self%states_of(tile%row), self%states_of(tile%column)))
          allocate (tile%back(self%states_of(tile%column), self%states_of(tile%row)))
          allocate (tile%factor(self%states_of(tile%row), self%states_of(tile%column), 3))
        end associate
      end do
    end do
  end subroutine create

  !> States of a tile of all, and the first of them.
  pure integer function states_of(self, u)
    class(ortho_tiles_t), intent(in) :: self
    integer, intent(in) :: u
    associate (range => self%map%states_of_tile((u - 1)/self%map%n_tiles + 1, mod(u - 1, self%map%n_tiles) + 1))
      states_of = range(2) - range(1) + 1
    end associate
  end function states_of

  !> Rows and columns of a tile in the matrix of its blocks.
  pure subroutine places(self, t, ij, rows, columns)
    class(ortho_tiles_t), intent(in) :: self
    integer, intent(in) :: t, ij
    integer, intent(out) :: rows(2), columns(2)
    associate (map => self%map)
      rows = map%states_of_tile(map%blocks(1, ij), (t - 1)/map%n_tiles + 1) - 2*map%block*(map%blocks(1, ij) - 1)
      columns = map%states_of_tile(map%blocks(2, ij), mod(t - 1, map%n_tiles) + 1) - 2*map%block*(map%blocks(2, ij) - 1)
    end associate
  end subroutine places

  !> Numbers in a tile, with what goes back or without.
  pure integer function n_words(self, t, ij, has_back)
    class(ortho_tiles_t), intent(in) :: self
    integer, intent(in) :: t, ij
    logical, intent(in) :: has_back
    integer :: rows(2), columns(2)
    call places(self, t, ij, rows, columns)
    n_words = (rows(2) - rows(1) + 1)*(columns(2) - columns(1) + 1)*merge(2, 1, has_back)
  end function n_words

  !> A tile of the matrix `m` of its blocks and of the one `back`, which is `m` itself where the blocks are the same.
  pure function cut_tile(self, t, ij, has_back, m, back) result(words)
    class(ortho_tiles_t), intent(in) :: self
    integer, intent(in) :: t, ij
    logical, intent(in) :: has_back
    real(real64), intent(in) :: m(:, :), back(:, :)
    real(real64), allocatable :: words(:)
    integer :: rows(2), columns(2)
    call places(self, t, ij, rows, columns)
    words = [m(rows(1):rows(2), columns(1):columns(2))]
    if (.not. has_back) return
    if (size(back) > 0) then
      words = [words, back(columns(1):columns(2), rows(1):rows(2))]
    else
      words = [words, m(columns(1):columns(2), rows(1):rows(2))]
    end if
  end function cut_tile

  !> The way back: a tile as `words` has it into the matrices of its blocks.
  pure subroutine place_tile(self, t, ij, words, is_symmetric, m, back)
    class(ortho_tiles_t), intent(in) :: self
    integer, intent(in) :: t, ij
    real(real64), intent(in) :: words(:)
    logical, intent(in) :: is_symmetric
    real(real64), intent(inout) :: m(:, :), back(:, :)
    integer :: rows(2), columns(2), n(2)
    call places(self, t, ij, rows, columns)
    n = [rows(2) - rows(1) + 1, columns(2) - columns(1) + 1]
    m(rows(1):rows(2), columns(1):columns(2)) = reshape(words, n)
    if (size(back) == 0) return
    if (is_symmetric) then
      back(columns(1):columns(2), rows(1):rows(2)) = transpose(reshape(words, n))
    else
      back(columns(1):columns(2), rows(1):rows(2)) = reshape(words(product(n) + 1:), [n(2), n(1)])
    end if
  end subroutine place_tile

  !> A complete sum into a tile here, made symmetric where it is so but for rounding.
  subroutine take_sum(self, which, words, has_back, is_symmetric)
    class(ortho_tiles_t), intent(inout) :: self
    integer, intent(in) :: which
    real(real64), intent(in) :: words(:)
    logical, intent(in) :: has_back, is_symmetric
    associate (tile => self%tile(which))
      tile%m = reshape(words(:size(tile%m)), shape(tile%m))
      tile%back = transpose(tile%m)
      if (.not. has_back) return
      tile%back = reshape(words(size(tile%m) + 1:), shape(tile%back))
      if (is_symmetric) tile%m = 0.5_real64*(tile%m + transpose(tile%back))
    end associate
  end subroutine take_sum

  !> What calculators get of a tile: of the last sum, or of the last root, which is symmetric.
  pure function words(self, which, is_symmetric, is_root)
    class(ortho_tiles_t), intent(in) :: self
    integer, intent(in) :: which
    logical, intent(in) :: is_symmetric, is_root
    real(real64), allocatable :: words(:)
    associate (tile => self%tile(which))
      if (is_root) then
        words = [tile%root]
      else
        words = [tile%m]
        if (.not. is_symmetric .and. self%map%blocks(1, tile%pair) /= self%map%blocks(2, tile%pair)) &
          words = [words, tile%back]
      end if
    end associate
  end function words

  !> The matrix of all tiles (states, states), the same on all ranks.
  subroutine whole(self, matrix)
    class(ortho_tiles_t), intent(in) :: self
    real(real64), intent(out) :: matrix(:, :)
    real(real64), allocatable :: values(:)
    integer :: k
    matrix = 0.0_real64
    do k = 1, size(self%tile)
      associate (tile => self%tile(k), rows => range_of(self, self%tile(k)%row), columns => range_of(self, self%tile(k)%column))
        matrix(rows(1):rows(2), columns(1):columns(2)) = tile%m
        if (self%map%blocks(1, tile%pair) /= self%map%blocks(2, tile%pair)) &
          matrix(columns(1):columns(2), rows(1):rows(2)) = tile%back
      end associate
    end do
    values = reshape(matrix, [size(matrix)])
    call self%comm%sum(values)
    matrix = reshape(values, shape(matrix))
  end subroutine whole

  !> First and last state of a tile of all.
  pure function range_of(self, u) result(range)
    class(ortho_tiles_t), intent(in) :: self
    integer, intent(in) :: u
    integer :: range(2)
    range = self%map%states_of_tile((u - 1)/self%map%n_tiles + 1, mod(u - 1, self%map%n_tiles) + 1)
  end function range_of

  !> Overlaps in the tiles to their inverse square root. `worst`: largest difference of an overlap from the unit matrix.
  subroutine inverse_root(self, error, worst)
    class(ortho_tiles_t), target, intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    real(real64), intent(out) :: worst
    integer, parameter :: y = 1, w = 2, z = 3
    real(real64) :: sums(self%map%n_states, 2), values(2*self%map%n_states), scale, change, last_change, largest
    real(real64), allocatable :: new(:, :)
    integer :: k, n_cycle
    sums = 0.0_real64
    worst = 0.0_real64
    do k = 1, size(self%tile)
      associate (tile => self%tile(k), rows => range_of(self, self%tile(k)%row), columns => range_of(self, self%tile(k)%column))
        tile%factor(:, :, z) = 0.0_real64
        if (tile%row == tile%column) call add_unit(tile%factor(:, :, z), 1.0_real64)
        worst = max(worst, maxval(abs(tile%m - tile%factor(:, :, z))))
        sums(columns(1):columns(2), 1) = sums(columns(1):columns(2), 1) + sum(abs(tile%m - tile%factor(:, :, z)), 1)
        sums(columns(1):columns(2), 2) = sums(columns(1):columns(2), 2) + sum(abs(tile%m), 1)
        if (self%map%blocks(1, tile%pair) == self%map%blocks(2, tile%pair)) cycle
        sums(rows(1):rows(2), 1) = sums(rows(1):rows(2), 1) + sum(abs(tile%m), 2)
        sums(rows(1):rows(2), 2) = sums(rows(1):rows(2), 2) + sum(abs(tile%m), 2)
      end associate
    end do
    values = reshape(sums, [size(sums)])
    call self%comm%sum(values)
    sums = reshape(values, shape(sums))
    worst = self%comm%maximum(worst)
    scale = starting_scale(sums(:, 1), sums(:, 2))
    do k = 1, size(self%tile)
      self%tile(k)%factor(:, :, y) = self%tile(k)%m/scale
    end do
    last_change = huge(last_change)
    do n_cycle = 1, most_cycles
      call self%send_factors([y, z])
      do k = 1, size(self%tile)
        associate (tile => self%tile(k))
          tile%factor(:, :, w) = -self%multiply(tile, z, y)
          if (tile%row == tile%column) call add_unit(tile%factor(:, :, w), 3.0_real64)
        end associate
      end do
      call self%send_factors([w])
      change = 0.0_real64
      largest = 0.0_real64
      do k = 1, size(self%tile)
        associate (tile => self%tile(k))
          tile%factor(:, :, y) = 0.5_real64*self%multiply(tile, y, w)
          new = 0.5_real64*self%multiply(tile, w, z)
          change = max(change, maxval(abs(new - tile%factor(:, :, z))))
          largest = max(largest, maxval(abs(new)))
          tile%factor(:, :, z) = new
        end associate
      end do
      change = self%comm%maximum(change)/self%comm%maximum(largest)
      if (has_settled(change, last_change)) then
        do k = 1, size(self%tile)
          self%tile(k)%root = self%tile(k)%factor(:, :, z)/sqrt(scale)
        end do
        return
      end if
      if (.not. change < huge(change)) exit
      last_change = change
    end do
    call fail(error, exit_unstable, singular)
  end subroutine inverse_root

  !> A tile of the product of two symmetric factors.
  function multiply(self, tile, one, two) result(found)
    class(ortho_tiles_t), intent(in) :: self
    type(tile_t), intent(in) :: tile
    integer, intent(in) :: one, two
    real(real64) :: found(size(tile%m, 1), size(tile%m, 2))
    integer :: k
    found = 0.0_real64
    do k = 1, size(self%box, 1)
      found = found + matmul(boxed(self, tile%row, k, one), transpose(boxed(self, tile%column, k, two)))
    end do
  end function multiply

  !> A tile of a factor, as it came or transposed.
  function boxed(self, row, column, factor) result(a)
    class(ortho_tiles_t), intent(in) :: self
    integer, intent(in) :: row, column, factor
    real(real64) :: a(self%states_of(row), self%states_of(column))
    if (allocated(self%box(row, column, factor)%a)) then
      a = self%box(row, column, factor)%a
    else
      a = transpose(self%box(column, row, factor)%a)
    end if
  end function boxed

  !> Whether a rank has a tile in whose row or column products need this tile of a factor.
  pure logical function needs(self, rank, t, ij)
    class(ortho_tiles_t), intent(in) :: self
    integer, intent(in) :: rank, t, ij
    integer :: kl, s, u, v, row, column
    logical :: is_diagonal
    associate (map => self%map)
      row = (map%blocks(1, ij) - 1)*map%n_tiles + (t - 1)/map%n_tiles + 1
      column = (map%blocks(2, ij) - 1)*map%n_tiles + mod(t - 1, map%n_tiles) + 1
      is_diagonal = map%blocks(1, ij) == map%blocks(2, ij)
      needs = .false.
      do kl = 1, size(map%blocks, 2)
        do s = 1, map%n_tiles**2
          if (map%ortho(s, kl) /= rank) cycle
          u = (map%blocks(1, kl) - 1)*map%n_tiles + (s - 1)/map%n_tiles + 1
          v = (map%blocks(2, kl) - 1)*map%n_tiles + mod(s - 1, map%n_tiles) + 1
          needs = needs .or. u == row .or. v == row
          if (.not. is_diagonal) needs = needs .or. u == column .or. v == column
        end do
      end do
    end associate
  end function needs

  !> Send the tiles here of some factors to all ranks that need them.
  subroutine send_factors(self, factors)
    class(ortho_tiles_t), target, intent(inout) :: self
    integer, intent(in) :: factors(:)
    integer :: f, k, rank
    call self%office%begin(self%n_to_come*size(factors))
    do f = 1, size(factors)
      do k = 1, size(self%tile)
        associate (tile => self%tile(k))
          do rank = 0, self%comm%n_ranks - 1
            if (self%needs(rank, tile%number, tile%pair)) &
              call self%office%post(1, rank, [tile%row, tile%column, factors(f)], [tile%factor(:, :, factors(f))])
          end do
        end associate
      end do
    end do
    call self%run()
  end subroutine send_factors

  subroutine deliver(self, kind, index, values)
    class(ortho_tiles_t), target, intent(inout) :: self
    integer, intent(in) :: kind, index(3)
    real(real64), intent(in) :: values(:)
    self%box(index(1), index(2), index(3))%a = reshape(values, [self%states_of(index(1)), self%states_of(index(2))])
    associate (unused => kind); end associate
    self%office%n_left = self%office%n_left - 1
  end subroutine deliver

  !> Tiles wait for each other in rounds: there is nothing to do between them.
  subroutine perform(self, what, which)
    class(ortho_tiles_t), target, intent(inout) :: self
    integer, intent(in) :: what, which
    associate (unused_1 => self, unused_2 => what, unused_3 => which); end associate
  end subroutine perform

end module ortho_tiles
