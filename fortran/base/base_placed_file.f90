!> A file of 4-byte numbers that is written and read at places, also by several processes at once that keep to their own
!> places. Unlike a Fortran unit it has no buffer, so a failure, a full disk too, is known when `write_at` returns.
module base_placed_file
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_int64_t, c_loc, c_null_char, c_ptr
  use base_kinds, only: int32, int64, real32
  use base_error, only: error_t, exit_resources, fail
  implicit none
  private
  public :: placed_file_t

  type :: placed_file_t
    character(len=:), allocatable :: path
    integer(c_int), private :: handle = -1
  contains
    procedure :: create
    procedure :: open => open_placed
    procedure :: open_scratch
    procedure, private :: write_words
    procedure, private :: write_singles
    !> Write an array behind the first `offset` bytes of the file.
    generic :: write_at => write_words, write_singles
    procedure :: read_at
    procedure :: close => close_placed
  end type placed_file_t

  interface
    function c_open_placed(path, replace) bind(c, name="chroma_open_placed") result(handle)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int), value :: replace
      integer(c_int) :: handle
    end function c_open_placed
    function c_open_scratch(path) bind(c, name="chroma_open_scratch") result(handle)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int) :: handle
    end function c_open_scratch
    function c_write_at(handle, values, bytes, offset) bind(c, name="chroma_write_at") result(status)
      import :: c_int, c_int64_t, c_ptr
      integer(c_int), value :: handle
      type(c_ptr), value :: values
      integer(c_int64_t), value :: bytes, offset
      integer(c_int) :: status
    end function c_write_at
    function c_read_at(handle, values, bytes, offset) bind(c, name="chroma_read_at") result(status)
      import :: c_int, c_int64_t, c_ptr
      integer(c_int), value :: handle
      type(c_ptr), value :: values
      integer(c_int64_t), value :: bytes, offset
      integer(c_int) :: status
    end function c_read_at
    function c_close(handle) bind(c, name="close") result(status)
      import :: c_int
      integer(c_int), value :: handle
      integer(c_int) :: status
    end function c_close
  end interface

contains

  !> Start an empty file in place of what is there.
  subroutine create(self, path, error)
    class(placed_file_t), intent(inout) :: self
    character(len=*), intent(in) :: path
    type(error_t), allocatable, intent(out) :: error
    self%path = path
    self%handle = c_open_placed(path//c_null_char, 1_c_int)
    if (self%handle < 0) call fail(error, exit_resources, path//": cannot be written; check folder and free space")
  end subroutine create

  !> Start an empty file that can be read too and goes with the process, however that ends. `path`: where it has its
  !> bytes.
  subroutine open_scratch(self, path, error)
    class(placed_file_t), intent(inout) :: self
    character(len=*), intent(in) :: path
    type(error_t), allocatable, intent(out) :: error
    self%path = path
    self%handle = c_open_scratch(path//c_null_char)
    if (self%handle < 0) call fail(error, exit_resources, path//": cannot be written; check folder and free space")
  end subroutine open_scratch

  !> Open a file that is there.
  subroutine open_placed(self, path, error)
    class(placed_file_t), intent(inout) :: self
    character(len=*), intent(in) :: path
    type(error_t), allocatable, intent(out) :: error
    self%path = path
    self%handle = c_open_placed(path//c_null_char, 0_c_int)
    if (self%handle < 0) call fail(error, exit_resources, path//": cannot be opened; check that every node sees this "// &
                                   "folder and may write to it")
  end subroutine open_placed

  subroutine write_words(self, offset, values, error)
    class(placed_file_t), intent(in) :: self
    integer(int64), intent(in) :: offset
    integer(int32), contiguous, target, intent(in) :: values(:)
    type(error_t), allocatable, intent(out) :: error
    call note(self, c_write_at(self%handle, c_loc(values), 4*size(values, kind=c_int64_t), int(offset, c_int64_t)), &
              "written; check free space", error)
  end subroutine write_words

  subroutine write_singles(self, offset, values, error)
    class(placed_file_t), intent(in) :: self
    integer(int64), intent(in) :: offset
    real(real32), contiguous, target, intent(in) :: values(:)
    type(error_t), allocatable, intent(out) :: error
    call note(self, c_write_at(self%handle, c_loc(values), 4*size(values, kind=c_int64_t), int(offset, c_int64_t)), &
              "written; check free space", error)
  end subroutine write_singles

  !> Read an array from behind the first `offset` bytes of a scratch file.
  subroutine read_at(self, offset, values, error)
    class(placed_file_t), intent(in) :: self
    integer(int64), intent(in) :: offset
    integer(int32), contiguous, target, intent(out) :: values(:)
    type(error_t), allocatable, intent(out) :: error
    call note(self, c_read_at(self%handle, c_loc(values), 4*size(values, kind=c_int64_t), int(offset, c_int64_t)), &
              "read; it has changed meanwhile", error)
  end subroutine read_at

  subroutine note(self, status, what, error)
    type(placed_file_t), intent(in) :: self
    integer(c_int), intent(in) :: status
    character(len=*), intent(in) :: what
    type(error_t), allocatable, intent(out) :: error
    if (status /= 0) call fail(error, exit_resources, self%path//": cannot be "//what)
  end subroutine note

  subroutine close_placed(self)
    class(placed_file_t), intent(inout) :: self
    integer(c_int) :: status
    if (self%handle >= 0) status = c_close(self%handle)
    self%handle = -1
  end subroutine close_placed

end module base_placed_file
