!> Fixed-radius neighbour search on a folded grid of cells (also called linked cells, spatial hashing).
!>
!> Space is cut into cubic cells; the cells are folded onto a table of limited size, cell (ix, iy, iz) going to bucket
!> (mod(ix, mx), mod(iy, my), mod(iz, mz)). Far cells may share a bucket: their atoms fail the distance test, nothing
!> else happens. So memory follows the number of atoms and never the volume of the box. Atoms are ordered by bucket
!> (counting sort); an atom meets only those buckets that its sphere touches, on average about two when the cell edge is
!> several times the radius.
!>
!>
!> Every loop over threads works on disjoint slices: the result does not depend on the number of threads.
!> Atom numbers are 0-based, as in the Python that calls.
module cell_grid
  use iso_c_binding, only: c_f_pointer, c_loc, c_null_ptr
  use iso_fortran_env, only: int32, int64, real32, real64
  implicit none
  private
  public :: cells_t, new_cells, delete_cells, cells_of, sort_atoms, search_sphere, bucket_at, folded, slice

  type :: cells_t
    integer(int32) :: n_atoms = 0, n_buckets = 0
    real(real64) :: origin(3) = 0                !! lowest corner of the atoms
    real(real64) :: edge = 1                     !! of a cell
    integer(int32) :: cells(3) = 1               !! along each axis, before folding
    integer(int32) :: fold(3) = 1                !! buckets along each axis
    integer(int32), allocatable :: first(:)      !! atoms of bucket b are order(first(b) .. first(b+1)-1)
    integer(int32), allocatable :: order(:)      !! atom at each place
    real(real32), allocatable :: sorted(:, :)    !! (places, 3) coordinates relative to origin
  end type cells_t

contains

  !> Cells of their own on the heap, as an opaque number.
  function new_cells() result(handle)
    integer(int64) :: handle
    type(cells_t), pointer :: cells
    allocate (cells)
    handle = transfer(c_loc(cells), handle)
  end function new_cells

  !> What belongs to a number from `new_cells`.
  function cells_of(handle) result(cells)
    integer(int64), intent(in) :: handle
    type(cells_t), pointer :: cells
    call c_f_pointer(transfer(handle, c_null_ptr), cells)
  end function cells_of

  subroutine delete_cells(handle)
    integer(int64), intent(in) :: handle
    type(cells_t), pointer :: cells
    cells => cells_of(handle)
    deallocate (cells)
  end subroutine delete_cells

  !> Order the atoms by bucket.
  subroutine sort_atoms(self, position, n_threads)
    type(cells_t), intent(inout) :: self
    real(real64), intent(in) :: position(3, *)   !! of self%n_atoms atoms
    integer(int32), intent(in) :: n_threads

    integer(int32) :: i, b, t, low, high, total, here, cell(3)
    integer(int32), allocatable :: bucket(:)     !! of every atom
    real(real64) :: inverse

    self%n_buckets = product(self%fold)
    allocate (bucket(self%n_atoms), self%first(self%n_buckets + 1), self%order(self%n_atoms), self%sorted(self%n_atoms, 3))
    associate (n_atoms => self%n_atoms, n_buckets => self%n_buckets, origin => self%origin, fold => self%fold, &
        first => self%first, order => self%order, sorted => self%sorted)
      inverse = 1.0_real64/self%edge
      !$omp parallel do num_threads(n_threads) if (n_atoms > 20000) schedule(static) &
      !$omp private(i, cell)
      do i = 1, n_atoms
        cell = int((position(:, i) - origin)*inverse, int32)
        bucket(i) = 1 + folded(cell(1), fold(1)) + fold(1)*(folded(cell(2), fold(2)) + fold(2)*folded(cell(3), fold(3)))
      end do
      !$omp end parallel do

      ! Each slice counts and later fills its own range of buckets, reading all atoms in order: stable and race-free.
      first = 0
      !$omp parallel do num_threads(n_threads) if (n_atoms > 20000) schedule(static, 1) &
      !$omp private(t, i, b, low, high)
      do t = 1, n_threads
        call slice(n_buckets, n_threads, t, low, high)
        do i = 1, n_atoms
          b = bucket(i)
          if (b >= low .and. b <= high) first(b) = first(b) + 1
        end do
      end do
      !$omp end parallel do
      total = 1
      do b = 1, n_buckets
        here = first(b)
        first(b) = total
        total = total + here
      end do
      first(n_buckets + 1) = total

      !$omp parallel do num_threads(n_threads) if (n_atoms > 20000) schedule(static, 1) &
      !$omp private(t, i, b, low, high, here)
      do t = 1, n_threads
        call slice(n_buckets, n_threads, t, low, high)
        do i = 1, n_atoms
          b = bucket(i)
          if (b < low .or. b > high) cycle
          here = first(b)
          first(b) = here + 1
          order(here) = i - 1
        end do
      end do
      !$omp end parallel do
      ! Gathered, not scattered along with the atoms: reads far apart overlap, writes far apart wait for their lines.
      !$omp parallel do num_threads(n_threads) if (n_atoms > 20000) schedule(static) &
      !$omp private(here, i)
      do here = 1, n_atoms
        i = order(here) + 1
        sorted(here, 1) = real(position(1, i) - origin(1), real32)
        sorted(here, 2) = real(position(2, i) - origin(2), real32)
        sorted(here, 3) = real(position(3, i) - origin(3), real32)
      end do
      !$omp end parallel do
      ! Filling moved every start to the start of the next bucket.
      do b = n_buckets, 2, -1
        first(b) = first(b - 1)
      end do
      first(1) = 1
    end associate
  end subroutine sort_atoms

  !> Atoms in one sphere; written after `skip` earlier ones when there is room for them.
  subroutine search_sphere(self, position, centre, radius, skip, found, atom)
    type(cells_t), intent(in) :: self
    real(real64), intent(in) :: position(3, *)   !! of the atoms, where they are now
    real(real64), intent(in) :: centre(3), radius
    integer(int64), intent(in) :: skip
    integer(int64), intent(out) :: found
    integer(int32), intent(inout) :: atom(:)

    integer(int32) :: low(3), high(3), x, y, z, b, j
    real(real64) :: reach

    found = 0
    associate (origin => self%origin, edge => self%edge, cells => self%cells, fold => self%fold, first => self%first, &
        order => self%order)
      reach = radius*(1 + 1.0e-9_real64) + 1.0e-6_real64
      low = int(max((centre - origin - reach)/edge, 0.0_real64))
      high = int(min((centre - origin + reach)/edge, real(cells - 1, real64)))
      if (any(centre - origin + reach < 0)) return
      ! A sphere wider than the folded table meets every bucket once.
      high = min(high, low + fold - 1)
      do z = low(3), high(3)
        do y = low(2), high(2)
          do x = low(1), high(1)
            b = 1 + folded(x, fold(1)) + fold(1)*(folded(y, fold(2)) + fold(2)*folded(z, fold(3)))
            do j = first(b), first(b + 1) - 1
              if (sum((position(:, order(j) + 1) - centre)**2) >= radius**2) cycle
              found = found + 1
              if (skip + found <= size(atom, kind=int64)) atom(skip + found) = order(j)
            end do
          end do
        end do
      end do
    end associate
  end subroutine search_sphere

  !> The bucket that holds a place, by bisection.
  pure function bucket_at(n_buckets, first, place) result(bucket)
    integer(int32), intent(in) :: n_buckets, first(n_buckets + 1), place
    integer(int32) :: bucket, above, middle
    bucket = 1
    above = n_buckets + 1
    do while (above - bucket > 1)
      middle = (bucket + above)/2
      if (first(middle) <= place) then
        bucket = middle
      else
        above = middle
      end if
    end do
  end function bucket_at

  !> Place of a cell along one axis of the folded table.
  elemental function folded(cell, fold) result(place)
    integer(int32), intent(in) :: cell, fold
    integer(int32) :: place
    place = cell
    if (place >= fold) place = mod(place, fold)
  end function folded

  !> The t-th of `parts` nearly equal ranges of 1..n.
  pure subroutine slice(n, parts, t, low, high)
    integer(int32), intent(in) :: n, parts, t
    integer(int32), intent(out) :: low, high
    low = int((int(n, int64)*(t - 1))/parts, int32) + 1
    high = int((int(n, int64)*t)/parts, int32)
  end subroutine slice

end module cell_grid
