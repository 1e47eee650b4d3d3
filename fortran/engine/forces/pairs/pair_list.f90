!> Clusters of atoms and the list of cluster pairs within reach of each other.
!>
!> Where many atoms have no charge (oxygens of some four-point waters), they form clusters of their own: these meet only
!> clusters with Lennard-Jones terms, and those of the other atoms, most of which have none, meet each other.
!>
!> Atoms are sorted into columns along z (owned and ghost atoms apart), each column along z, and cut into clusters of
!> 8; a cluster is a j cluster as a whole and two i clusters of 4 as halves. Clusters are numbered column by column,
!> x slowest. An owned i cluster is paired with owned j clusters that do not come before its own and with all ghost
!> clusters within reach, so that each pair occurs once and ghosts never meet each other. In the midpoint method an i
!> cluster of ghosts is paired with ghost clusters that do not come before its own, and of all pairs with ghosts those
!> are left out, or masked, that another rank computes.
module pair_list
  use base_kinds, only: int64, real64
  use bounding_box, only: find_bounds
  use cluster_columns, only: cluster_columns_t
  use cluster_contents, only: cluster_contents_t
  use pair_block, only: longest_run, meets_all, meets_ghosts, meets_owned, pair_block_t
  use pair_ownership, only: all_mine, none_mine, pair_ownership_t
  implicit none
  private
  public :: pair_list_t, cluster_size

  integer, parameter :: cluster_size = 8, half_size = 4
  !> A cluster reaches at most this far along z (angstrom): a sparse column is cut into padded clusters.
  real(real64), parameter :: longest_cluster = 12.0_real64
  !> Blocks of about this many clusters, at most `most_blocks`, or as many as make them `thickest_block` thick along x
  !> (angstrom), so that what is there for one block at a time stays small; independent of the number of threads.
  integer, parameter :: clusters_per_block = 128, most_blocks = 16
  real(real64), parameter :: thickest_block = 25.0_real64
  !> Atoms without charge are kept apart where they are at least and at most this share of all.
  real(real64), parameter :: least_bare = 1.0_real64/16.0_real64, most_bare = 0.5_real64

  type :: pair_list_t
    integer :: n_clusters = 0
    !> Atom of each slot (`cluster_size*n_clusters`); a pad repeats the first atom of its cluster with a minus sign.
    integer, allocatable :: slot_atom(:)
    !> Slot of each atom, while lists are made.
    integer, allocatable :: atom_slot(:)
    type(pair_block_t), allocatable :: block(:)
    !> Pairs with ghosts in blocks of their own, after those of owned atoms with each other.
    logical :: keeps_ghosts_apart = .false.
    type(cluster_columns_t), private :: columns
    type(cluster_contents_t), private :: contents
    !> First cluster of bin 2*column - 1 (owned) or 2*column (ghosts), columns as of module cluster_columns.
    integer, allocatable, private :: bin_first(:)
    !> Corners of the j clusters.
    real(real64), allocatable, private :: lower(:, :), upper(:, :)
  contains
    procedure :: make
    procedure :: search
    procedure :: is_of_ghosts
    procedure :: keeps_bare_apart
    procedure :: forget_corners
  end type pair_list_t

contains

  !> Make the clusters of all atoms, and blocks that are still without entries. Positions (3, n_total), owned atoms first.
  subroutine make(self, n_owned, n_total, position, global_id, has_lj, has_charge, ownership)
    class(pair_list_t), intent(inout) :: self
    integer, intent(in) :: n_owned, n_total
    real(real64), intent(in) :: position(3, n_total)
    integer(int64), intent(in) :: global_id(n_total)
    !> Which atoms have Lennard-Jones terms: they come first in each half of a cluster.
    logical, intent(in) :: has_lj(n_total), has_charge(n_total)
    type(pair_ownership_t), intent(inout) :: ownership
    real(real64) :: bare

    bare = count(.not. has_charge)
    self%columns%bare_width = 0
    ! As many atoms in as thick a column of either kind, but for flatter clusters of the rarer kind.
    if (bare >= least_bare*n_total .and. bare <= most_bare*n_total) &
      self%columns%bare_width = max(1, nint(1.2_real64*((n_total - bare)/bare)**(1.0_real64/3.0_real64)))
    call make_clusters(self, n_owned, n_total, position, global_id, has_charge)
    call put_lj_first(self, has_lj)
    self%contents = cluster_contents_t()
    if (self%columns%bare_width > 0) call self%contents%note(self%slot_atom, has_lj, has_charge)
    call find_corners(self, position)
    if (ownership%is_on) call ownership%bound_clusters(self%slot_atom, cluster_size)
    call cut_blocks(self, n_owned > 0 .or. ownership%is_on)
  end subroutine make

  !> Sort atoms into columns and along z, and cut the columns into clusters.
  subroutine make_clusters(self, n_owned, n_total, position, global_id, has_charge)
    type(pair_list_t), intent(inout) :: self
    integer, intent(in) :: n_owned, n_total
    real(real64), intent(in) :: position(3, n_total)
    integer(int64), intent(in) :: global_id(n_total)
    logical, intent(in) :: has_charge(n_total)
    real(real64) :: corner(3), extent(3), low(3), high(3), side, slice
    integer, allocatable :: fine(:), fine_first(:), order(:), count(:)
    integer :: n_slices, n_bins, bin, i, k, first, last, n_dense
    logical :: is_bare

    call find_bounds(position, corner, extent)
    extent = extent - corner
    ! The side of a cube that holds one cluster, at the density of the owned atoms.
    side = 4.0_real64
    if (n_owned > 0) then
      call find_bounds(position(:, :n_owned), low, high)
      n_dense = n_owned
      if (self%columns%bare_width > 0) n_dense = max(1, number_of(has_charge(:n_owned)))
      side = (product(max(1.0_real64, high - low))*cluster_size/n_dense)**(1.0_real64/3.0_real64)
    end if
    side = max(2.0_real64, min(side, 12.0_real64))
    side = max(side, sqrt(extent(1)*extent(2)/(n_total + 1)))
    self%columns%n = int(extent(1:2)/side) + 1
    self%columns%corner = corner(1:2)
    self%columns%width = extent(1:2)/self%columns%n + tiny(1.0_real64)
    n_bins = 2*self%columns%total()
    n_slices = max(1, min(2*n_total/n_bins, int(extent(3)) + 1))
    slice = extent(3)/n_slices + tiny(1.0_real64)

    allocate (fine(n_total), fine_first(n_bins*n_slices + 1), order(n_total), count(n_bins + 1))
    !$omp parallel do schedule(static) private(bin, is_bare)
    do i = 1, n_total
      is_bare = self%columns%bare_width > 0 .and. .not. has_charge(i)
      bin = 2*self%columns%number(self%columns%along(1, position(1, i)), self%columns%along(2, position(2, i)), is_bare)
      if (i > n_owned) bin = bin + 1
      fine(i) = bin*n_slices + min(n_slices - 1, int((position(3, i) - corner(3))/slice)) + 1
    end do
    !$omp end parallel do
    fine_first = 0
    do i = 1, n_total
      fine_first(fine(i) + 1) = fine_first(fine(i) + 1) + 1
    end do
    fine_first(1) = 1
    do k = 2, size(fine_first)
      fine_first(k) = fine_first(k) + fine_first(k - 1)
    end do
    ! Place from the end, so that the first of each bin is restored.
    do k = size(fine_first), 2, -1
      fine_first(k) = fine_first(k - 1)
    end do
    do i = 1, n_total
      k = fine(i) + 1
      order(fine_first(k)) = i
      fine_first(k) = fine_first(k) + 1
    end do

    !$omp parallel do schedule(dynamic, 16) private(first, last)
    do bin = 1, n_bins
      first = fine_first((bin - 1)*n_slices + 1)
      last = fine_first(bin*n_slices + 1) - 1
      call sort_along_z(order(first:last), position, global_id)
      count(bin + 1) = clusters_of(order(first:last), position)
    end do
    !$omp end parallel do
    count(1) = 1
    do bin = 1, n_bins
      count(bin + 1) = count(bin + 1) + count(bin)
    end do
    call move_alloc(count, self%bin_first)
    self%n_clusters = self%bin_first(n_bins + 1) - 1

    if (allocated(self%slot_atom)) deallocate (self%slot_atom)
    allocate (self%slot_atom(cluster_size*self%n_clusters), self%atom_slot(n_total))
    !$omp parallel do schedule(dynamic, 16) private(first, last)
    do bin = 1, n_bins
      first = fine_first((bin - 1)*n_slices + 1)
      last = fine_first(bin*n_slices + 1) - 1
      call fill_clusters(order(first:last), position, self%bin_first(bin), self%slot_atom)
    end do
    !$omp end parallel do
  end subroutine make_clusters

  !> Reorder the atoms within each half of the clusters, and note the slot of each atom.
  subroutine put_lj_first(self, has_lj)
    type(pair_list_t), intent(inout) :: self
    logical, intent(in) :: has_lj(:)
    integer :: half, slot, atom(half_size)
    logical :: first(half_size)

    !$omp parallel do schedule(static) private(atom, first)
    do half = 1, 2*self%n_clusters
      atom = self%slot_atom(half_size*(half - 1) + 1:half_size*half)
      first = atom > 0
      where (first) first = has_lj(max(atom, 1))
      self%slot_atom(half_size*(half - 1) + 1:half_size*half) = [pack(atom, first), pack(atom, .not. first)]
    end do
    !$omp end parallel do
    !$omp parallel do schedule(static)
    do slot = 1, size(self%slot_atom)
      if (self%slot_atom(slot) > 0) self%atom_slot(self%slot_atom(slot)) = slot
    end do
    !$omp end parallel do
  end subroutine put_lj_first

  !> Whether atoms without charge have clusters of their own.
  pure logical function keeps_bare_apart(self)
    class(pair_list_t), intent(in) :: self
    keeps_bare_apart = self%columns%bare_width > 0
  end function keeps_bare_apart

  !> Number of true ones.
  pure integer function number_of(flags)
    logical, intent(in) :: flags(:)
    number_of = count(flags)
  end function number_of

  !> Insertion sort by z, then by id: the atoms come nearly sorted.
  pure subroutine sort_along_z(order, position, global_id)
    integer, intent(inout) :: order(:)
    real(real64), intent(in) :: position(:, :)
    integer(int64), intent(in) :: global_id(:)
    integer :: a, b, atom
    do a = 2, size(order)
      atom = order(a)
      b = a - 1
      do while (b >= 1)
        if (position(3, order(b)) < position(3, atom)) exit
        if (position(3, order(b)) <= position(3, atom) .and. global_id(order(b)) <= global_id(atom)) exit
        order(b + 1) = order(b)
        b = b - 1
      end do
      order(b + 1) = atom
    end do
  end subroutine sort_along_z

  !> Number of clusters that `fill_clusters` makes.
  pure integer function clusters_of(order, position) result(n)
    integer, intent(in) :: order(:)
    real(real64), intent(in) :: position(:, :)
    integer :: first
    n = 0
    first = 1
    do while (first <= size(order))
      first = first + members(order, position, first)
      n = n + 1
    end do
  end function clusters_of

  !> Number of atoms in the cluster that begins at `first`.
  pure integer function members(order, position, first) result(n)
    integer, intent(in) :: order(:), first
    real(real64), intent(in) :: position(:, :)
    n = 1
    do while (n < cluster_size .and. first + n <= size(order))
      if (position(3, order(first + n)) - position(3, order(first)) > longest_cluster) exit
      n = n + 1
    end do
  end function members

  pure subroutine fill_clusters(order, position, first_cluster, slot_atom)
    integer, intent(in) :: order(:), first_cluster
    real(real64), intent(in) :: position(:, :)
    integer, intent(inout) :: slot_atom(:)
    integer :: first, n, slot
    slot = cluster_size*(first_cluster - 1)
    first = 1
    do while (first <= size(order))
      n = members(order, position, first)
      slot_atom(slot + 1:slot + n) = order(first:first + n - 1)
      slot_atom(slot + n + 1:slot + cluster_size) = -order(first)
      slot = slot + cluster_size
      first = first + n
    end do
  end subroutine fill_clusters

  !> Boxes around the clusters.
  subroutine find_corners(self, position)
    type(pair_list_t), intent(inout) :: self
    real(real64), intent(in) :: position(:, :)
    integer :: i

    if (allocated(self%lower)) deallocate (self%lower, self%upper)
    allocate (self%lower(3, self%n_clusters), self%upper(3, self%n_clusters))
    !$omp parallel do schedule(static)
    do i = 1, self%n_clusters
      call box_around(self%slot_atom(cluster_size*(i - 1) + 1:cluster_size*i), position, self%lower(:, i), self%upper(:, i))
    end do
    !$omp end parallel do
  end subroutine find_corners

  !> Box around the atoms of some slots.
  pure subroutine box_around(atom, position, low, high)
    integer, intent(in) :: atom(:)
    real(real64), intent(in) :: position(:, :)
    real(real64), intent(out) :: low(3), high(3)
    integer :: k
    low = position(:, abs(atom(1)))
    high = low
    do k = 2, size(atom)
      low = min(low, position(:, abs(atom(k))))
      high = max(high, position(:, abs(atom(k))))
    end do
  end subroutine box_around

  !> Give back what only `search` needs.
  subroutine forget_corners(self)
    class(pair_list_t), intent(inout) :: self
    deallocate (self%lower, self%upper, self%atom_slot)
  end subroutine forget_corners

  !> Cut the clusters into blocks with equal numbers of owned clusters; none if there are no pairs. Of several blocks the last
  !> is cut in two, so that threads that take one after the other end nearer to each other.
  subroutine cut_blocks(self, any_pairs)
    type(pair_list_t), intent(inout) :: self
    logical, intent(in) :: any_pairs
    integer :: n_blocks, n_halves, b, c, seen, n_owned_clusters, bin
    logical, allocatable :: owned(:)

    allocate (owned(self%n_clusters), source=.false.)
    do bin = 1, size(self%bin_first) - 1, 2
      owned(self%bin_first(bin):self%bin_first(bin + 1) - 1) = .true.
    end do
    n_owned_clusters = count(owned)
    n_blocks = max(most_blocks, int(self%columns%n(1)*self%columns%width(1)/thickest_block))
    n_blocks = max(1, min(n_blocks, n_owned_clusters/clusters_per_block))
    n_halves = 2*n_blocks
    if (n_blocks > 1) n_blocks = n_blocks + 1
    if (.not. any_pairs) n_blocks = 0
    if (allocated(self%block)) deallocate (self%block)
    allocate (self%block(n_blocks))
    seen = 0
    b = 1
    do c = 1, self%n_clusters
      if (.not. owned(c)) cycle
      if (b < n_blocks .and. seen*int(n_halves, int64) >= min(2*b, n_blocks - 2 + b)*int(n_owned_clusters, int64)) then
        self%block(b)%last_i = 2*(c - 1)
        b = b + 1
        self%block(b)%first_i = 2*c - 1
      end if
      seen = seen + 1
    end do
    if (n_blocks > 0) self%block(n_blocks)%last_i = 2*self%n_clusters
    if (.not. self%keeps_ghosts_apart) return
    self%block%meets = meets_owned
    self%block = [self%block, self%block]
    self%block(n_blocks + 1:)%meets = meets_ghosts
  end subroutine cut_blocks

  !> Find the entries of one of the blocks within `reach` (angstrom). Exclusions are rows of all local atoms,
  !> `exclusion_partner(exclusion_first(i):exclusion_first(i+1)-1)`; those of ghosts count in the midpoint method only.
  subroutine search(self, block, n_owned, position, exclusion_first, exclusion_partner, reach, ownership)
    class(pair_list_t), intent(in) :: self
    type(pair_block_t), intent(inout) :: block
    integer, intent(in) :: n_owned, exclusion_first(:), exclusion_partner(:)
    real(real64), intent(in) :: position(:, :), reach
    type(pair_ownership_t), intent(in) :: ownership
    ! Entry of the exclusion table of the i cluster at hand that belongs to a j cluster; 0 = none.
    integer, allocatable :: table_of(:), table_cluster(:), table_bits(:)
    integer, allocatable :: near(:)
    integer :: n_table, n_masked, n_plain, n_near, i, own, j, k, previous, bits, share
    real(real64) :: low(3), high(3), gap(3), reach2
    logical :: of_ghosts

    reach2 = reach**2
    allocate (table_of(self%n_clusters), source=0)
    allocate (table_cluster(64), table_bits(64), near(1024))
    allocate (block%masked_first(block%first_i:block%last_i + 1), block%plain_first(block%first_i:block%last_i + 1))
    allocate (block%masked_cluster(8*(block%last_i - block%first_i + 1)))
    allocate (block%masked_bits(size(block%masked_cluster)), block%plain_run(6*size(block%masked_cluster)))
    n_masked = 0
    n_plain = 0
    do i = block%first_i, block%last_i
      block%masked_first(i) = n_masked + 1
      block%plain_first(i) = n_plain + 1
      own = (i + 1)/2
      of_ghosts = self%is_of_ghosts(own, n_owned)
      if (of_ghosts .and. (.not. ownership%is_on .or. block%meets == meets_owned)) cycle
      ! Both halves of a cluster choose from what is within reach of the whole.
      if (mod(i, 2) == 1) then
        call find_near(self, own, of_ghosts, block%meets, reach, n_near, near)
        if (ownership%is_on) call drop_others(self, own, of_ghosts, n_owned, ownership, n_near, near)
      end if
      call make_table(self, i, n_owned, of_ghosts, exclusion_first, exclusion_partner, n_table, table_cluster, &
                      table_bits, table_of)
      call box_around(self%slot_atom(half_size*(i - 1) + 1:half_size*i), position, low, high)
      do k = 1, n_table
        j = table_cluster(k)
        if (block%meets /= meets_all) then
          if ((block%meets == meets_ghosts) .neqv. self%is_of_ghosts(j, n_owned)) cycle
        end if
        gap = max(0.0_real64, self%lower(:, j) - high, low - self%upper(:, j))
        if (sum(gap**2) >= reach2 .or. .not. self%contents%interact(i, j)) cycle
        bits = table_bits(k)
        if (ownership%is_on .and. self%is_of_ghosts(j, n_owned)) then
          bits = iand(bits, own_bits(i, j))
          if (bits == 0) cycle
        end if
        call add_masked(j, bits)
      end do
      call reserve(block%plain_run, n_plain + n_near)
      previous = -1
      do k = 1, n_near
        j = near(k)
        gap = max(0.0_real64, self%lower(:, j) - high, low - self%upper(:, j))
        if (gap(1)**2 + gap(2)**2 + gap(3)**2 >= reach2 .or. table_of(j) /= 0) cycle
        if (.not. self%contents%interact(i, j)) cycle
        if (ownership%is_on) then
          if (self%is_of_ghosts(j, n_owned)) then
            share = ownership%share_of_half(i, j)
            if (share /= all_mine) then
              bits = 0
              if (share /= none_mine) bits = own_bits(i, j)
              if (bits /= 0) call add_masked(j, bits)
              cycle
            end if
          end if
        end if
        if (j == previous + 1 .and. mod(block%plain_run(max(1, n_plain)), longest_run) < longest_run - 1) then
          block%plain_run(n_plain) = block%plain_run(n_plain) + 1
        else
          n_plain = n_plain + 1
          block%plain_run(n_plain) = longest_run*(j - 1)
        end if
        previous = j
      end do
      do k = 1, n_table
        table_of(table_cluster(k)) = 0
      end do
    end do
    block%masked_first(block%last_i + 1) = n_masked + 1
    block%plain_first(block%last_i + 1) = n_plain + 1

  contains

    !> Which pairs of an i and a j cluster are this rank's and within reach now.
    integer function own_bits(i, j)
      integer, intent(in) :: i, j
      own_bits = ownership%bits_of(self%slot_atom(half_size*(i - 1) + 1:half_size*i), &
                                   self%slot_atom(cluster_size*(j - 1) + 1:cluster_size*j), position, reach2)
    end function own_bits

    subroutine add_masked(j, bits)
      integer, intent(in) :: j, bits
      n_masked = n_masked + 1
      call reserve(block%masked_cluster, n_masked)
      call reserve(block%masked_bits, n_masked)
      block%masked_cluster(n_masked) = j
      block%masked_bits(n_masked) = bits
    end subroutine add_masked
  end subroutine search

  !> Leave out of `near` the ghost clusters of whose pairs with cluster `own` none is this rank's.
  subroutine drop_others(self, own, of_ghosts, n_owned, ownership, n_near, near)
    type(pair_list_t), intent(in) :: self
    integer, intent(in) :: own, n_owned
    logical, intent(in) :: of_ghosts
    type(pair_ownership_t), intent(in) :: ownership
    integer, intent(inout) :: n_near, near(:)
    integer :: k, n
    n = 0
    do k = 1, n_near
      if (of_ghosts .or. self%is_of_ghosts(near(k), n_owned)) then
        if (ownership%share_of_clusters(own, near(k)) == none_mine) cycle
      end if
      n = n + 1
      near(n) = near(k)
    end do
    n_near = n
  end subroutine drop_others

  !> Ghost and owned atoms are never in one cluster.
  pure logical function is_of_ghosts(self, c, n_owned)
    class(pair_list_t), intent(in) :: self
    integer, intent(in) :: c, n_owned
    is_of_ghosts = abs(self%slot_atom(cluster_size*c)) > n_owned
  end function is_of_ghosts

  !> The j clusters within reach of a cluster, of those of its kind (owned, ghosts) only the ones that do not come before
  !> it. Ghosts (`of_ghosts`) meet ghosts only.
  subroutine find_near(self, own, of_ghosts, meets, reach, n_near, near)
    type(pair_list_t), intent(in) :: self
    integer, intent(in) :: own, meets
    logical, intent(in) :: of_ghosts
    real(real64), intent(in) :: reach
    integer, intent(out) :: n_near
    integer, allocatable, intent(inout) :: near(:)
    integer :: x, y, bin, first, last, j, x_range(2), y_range(2)
    real(real64) :: low(3), high(3), reach2

    n_near = 0
    reach2 = reach**2
    low = self%lower(:, own)
    high = self%upper(:, own)
    x_range = [self%columns%along(1, low(1) - reach), self%columns%along(1, high(1) + reach)]
    y_range = [self%columns%along(2, low(2) - reach), self%columns%along(2, high(2) + reach)]
    do x = x_range(1), x_range(2)
      do y = y_range(1), y_range(2)
        call look_into(x, y, 1, .false.)
      end do
    end do
    if (self%columns%bare_width == 0) return
    do x = x_range(1)/self%columns%bare_width, x_range(2)/self%columns%bare_width
      do y = y_range(1)/self%columns%bare_width, y_range(2)/self%columns%bare_width
        call look_into(x, y, self%columns%bare_width, .true.)
      end do
    end do

  contains

    !> Add what is near of the column at places `x` and `y` of those that are `wide` columns wide.
    subroutine look_into(x, y, wide, is_bare)
      integer, intent(in) :: x, y, wide
      logical, intent(in) :: is_bare
      real(real64) :: gap(3), column_gap(2)
      integer :: column
      column_gap(1) = max(0.0_real64, self%columns%corner(1) + x*wide*self%columns%width(1) - high(1), &
                          low(1) - self%columns%corner(1) - (x + 1)*wide*self%columns%width(1))
      column_gap(2) = max(0.0_real64, self%columns%corner(2) + y*wide*self%columns%width(2) - high(2), &
                          low(2) - self%columns%corner(2) - (y + 1)*wide*self%columns%width(2))
      if (sum(column_gap**2) >= reach2) return
      column = self%columns%number(x*wide, y*wide, is_bare)
      do bin = 2*column + merge(2, 1, meets == meets_ghosts .or. of_ghosts), 2*column + merge(1, 2, meets == meets_owned)
        first = self%bin_first(bin)
        last = self%bin_first(bin + 1) - 1
        if (bin == 2*column + 1 .or. of_ghosts) first = max(first, own)
        if (first > last) cycle
        first = first_above(self%upper, first, last, low(3) - reach)
        call reserve(near, n_near + last - first + 2)
        do j = first, last
          if (self%lower(3, j) >= high(3) + reach) exit
          gap = max(0.0_real64, self%lower(:, j) - high, low - self%upper(:, j))
          near(n_near + 1) = j
          n_near = n_near + merge(1, 0, gap(1)**2 + gap(2)**2 + gap(3)**2 < reach2)
        end do
      end do
    end subroutine look_into

  end subroutine find_near

  !> The j clusters in which the atoms of i cluster `i` have excluded partners, itself included, with their bits: bit
  !> 8 a + b tells whether atom a (0..3) and atom b (0..7) interact.
  subroutine make_table(self, i, n_owned, of_ghosts, exclusion_first, exclusion_partner, n_table, table_cluster, &
                        table_bits, table_of)
    type(pair_list_t), intent(in) :: self
    integer, intent(in) :: i, n_owned, exclusion_first(:), exclusion_partner(:)
    logical, intent(in) :: of_ghosts
    integer, intent(out) :: n_table
    integer, allocatable, intent(inout) :: table_cluster(:), table_bits(:)
    integer, intent(inout) :: table_of(:)
    integer :: own, a, b, k, atom, slot, j, bits

    own = (i + 1)/2
    ! In its own cluster an atom meets the atoms after it.
    bits = 0
    do a = 0, half_size - 1
      do b = half_size*(1 - mod(i, 2)) + a + 1, cluster_size - 1
        bits = ibset(bits, 8*a + b)
      end do
    end do
    n_table = 1
    table_cluster(1) = own
    table_bits(1) = bits
    table_of(own) = 1
    do a = 0, half_size - 1
      atom = self%slot_atom(half_size*(i - 1) + a + 1)
      if (atom < 1) cycle
      do k = exclusion_first(atom), exclusion_first(atom + 1) - 1
        slot = self%atom_slot(exclusion_partner(k)) - 1
        j = slot/cluster_size + 1
        b = mod(slot, cluster_size)
        ! Such pairs are found from the other side: of one kind, from the cluster that comes first; else from the owned.
        if (merge(j < own, of_ghosts, (exclusion_partner(k) > n_owned) .eqv. of_ghosts)) cycle
        if (table_of(j) == 0) then
          n_table = n_table + 1
          call reserve(table_cluster, n_table)
          call reserve(table_bits, n_table)
          table_cluster(n_table) = j
          table_bits(n_table) = not(0)
          table_of(j) = n_table
        end if
        table_bits(table_of(j)) = ibclr(table_bits(table_of(j)), 8*a + b)
      end do
    end do
  end subroutine make_table

  !> First cluster of a column whose upper end lies at or above `z`; `last + 1` if none.
  pure integer function first_above(upper, first, last, z) result(found)
    real(real64), intent(in) :: upper(:, :), z
    integer, intent(in) :: first, last
    integer :: low, high, middle
    low = first
    high = last + 1
    do while (low < high)
      middle = (low + high)/2
      if (upper(3, middle) < z) then
        low = middle + 1
      else
        high = middle
      end if
    end do
    found = low
  end function first_above

  !> Make room for `n` entries.
  pure subroutine reserve(array, n)
    integer, allocatable, intent(inout) :: array(:)
    integer, intent(in) :: n
    integer, allocatable :: larger(:)
    if (n <= size(array)) return
    allocate (larger(max(n, size(array) + size(array)/2 + 16)))
    larger(:size(array)) = array
    call move_alloc(larger, array)
  end subroutine reserve

end module pair_list
