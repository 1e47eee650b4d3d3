!> The atoms of a frame, given in any order, in the order of their places, however many there are: they go through a file
!> beside the result that has a region for each slice of places. Memory is a slice.
module frame_sorter
  use base_kinds, only: int32, int64, real32
  use base_error, only: error_t
  use base_placed_file, only: placed_file_t
  use comm_slices, only: order_by_slice
  implicit none
  private
  public :: frame_sorter_t, slice_size

  !> Places in a slice, and atoms that wait until they go to the file.
  integer(int64), parameter :: slice_size = 2_int64**20
  !> 4-byte numbers of an atom there: place in the slice, bits of the position.
  integer, parameter :: n_words = 4

  type :: frame_sorter_t
    private
    type(placed_file_t) :: file
    integer :: n_slices = 0
    integer(int64), allocatable :: place(:)
    real(real32), allocatable :: position(:, :)
    integer :: n_waiting = 0
    !> Atoms of each slice in the file.
    integer(int64), allocatable :: n_filed(:)
  contains
    procedure :: open => open_sorter
    procedure :: clear
    procedure :: add
    procedure :: take
    procedure :: close => close_sorter
  end type frame_sorter_t

contains

  !> For `n_places` places; `path`: of the file between.
  subroutine open_sorter(self, path, n_places, error)
    class(frame_sorter_t), intent(inout) :: self
    character(len=*), intent(in) :: path
    integer(int64), intent(in) :: n_places
    type(error_t), allocatable, intent(out) :: error
    self%n_slices = int((n_places - 1)/slice_size) + 1
    allocate (self%n_filed(self%n_slices), source=0_int64)
    allocate (self%place(slice_size), self%position(3, slice_size))
    call self%file%open_scratch(path, error)
  end subroutine open_sorter

  !> Forget all atoms.
  subroutine clear(self)
    class(frame_sorter_t), intent(inout) :: self
    self%n_waiting = 0
    self%n_filed(:) = 0
  end subroutine clear

  !> Take an atom: its place (from 1) and position.
  subroutine add(self, place, position, error)
    class(frame_sorter_t), intent(inout) :: self
    integer(int64), intent(in) :: place
    real(real32), intent(in) :: position(3)
    type(error_t), allocatable, intent(out) :: error
    if (self%n_waiting == size(self%place)) then
      call file_waiting(self, error)
      if (allocated(error)) return
    end if
    self%n_waiting = self%n_waiting + 1
    self%place(self%n_waiting) = place
    self%position(:, self%n_waiting) = position
  end subroutine add

  !> Put the waiting atoms behind those of their slices. A slice that is full has atoms twice: they lie over its last ones.
  subroutine file_waiting(self, error)
    type(frame_sorter_t), intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    integer(int32), allocatable :: words(:)
    integer, allocatable :: entry(:), first(:)
    integer :: k, i, n, axis
    integer(int64) :: before
    call order_by_slice(self%place(:self%n_waiting), slice_size, self%n_slices, entry, first)
    do k = 1, self%n_slices
      n = first(k + 1) - first(k)
      if (n == 0) cycle
      allocate (words(n_words*n))
      do i = 1, n
        associate (a => entry(first(k) + i - 1), at => n_words*(i - 1))
          words(at + 1) = int(self%place(a) - (k - 1)*slice_size, int32)
          do axis = 1, 3
            words(at + 1 + axis) = transfer(self%position(axis, a), 0_int32)
          end do
        end associate
      end do
      before = (k - 1)*slice_size + min(self%n_filed(k), slice_size - n)
      call self%file%write_at(4*n_words*before, words, error)
      if (allocated(error)) return
      self%n_filed(k) = self%n_filed(k) + n
      deallocate (words)
    end do
    self%n_waiting = 0
  end subroutine file_waiting

  !> The atoms of a slice in ascending order of their places: `position(:, axis)`. `is_right`: no place was given twice.
  subroutine take(self, slice, position, is_right, error)
    class(frame_sorter_t), intent(inout) :: self
    integer, intent(in) :: slice
    real(real32), allocatable, intent(out) :: position(:, :)
    logical, intent(out) :: is_right
    type(error_t), allocatable, intent(out) :: error
    integer(int32), allocatable :: words(:)
    integer, allocatable :: at(:)
    integer :: i, n, place, axis
    is_right = .false.
    call file_waiting(self, error)
    if (allocated(error)) return
    n = int(min(self%n_filed(slice), slice_size))
    allocate (words(n_words*n), at(slice_size))
    call self%file%read_at(4*n_words*(slice - 1)*slice_size, words, error)
    if (allocated(error)) return
    at(:) = 0
    do i = 1, n
      at(words(n_words*(i - 1) + 1)) = i
    end do
    is_right = count(at > 0) == self%n_filed(slice)
    allocate (position(count(at > 0), 3))
    n = 0
    do place = 1, size(at)
      if (at(place) == 0) cycle
      n = n + 1
      do axis = 1, 3
        position(n, axis) = transfer(words(n_words*(at(place) - 1) + 1 + axis), 0.0_real32)
      end do
    end do
  end subroutine take

  subroutine close_sorter(self)
    class(frame_sorter_t), intent(inout) :: self
    call self%file%close()
  end subroutine close_sorter

end module frame_sorter
