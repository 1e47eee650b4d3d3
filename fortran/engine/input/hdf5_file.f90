!> The few HDF5 calls the engine needs: open a file and read arrays and attributes from it.
module hdf5_file
  use, intrinsic :: iso_c_binding, only: c_char, c_f_pointer, c_loc, c_null_char, c_ptr
  use hdf5, only: h5aclose_f, h5aexists_by_name_f, h5aget_type_f, h5aopen_by_name_f, h5aread_f, h5close_f, h5dclose_f, &
                  h5dget_space_f, h5dget_type_f, h5dopen_f, h5dread_f, H5E_DEFAULT_F, h5eset_auto_f, h5fclose_f, &
                  h5fopen_f, &
                  H5F_ACC_RDONLY_F, H5_INTEGER_KIND, h5kind_to_type, h5lexists_f, h5open_f, H5_REAL_KIND, h5sclose_f, &
                  h5sget_simple_extent_dims_f, h5sget_simple_extent_ndims_f, h5tclose_f, h5tget_size_f, &
                  h5tis_variable_str_f, HID_T, HSIZE_T, SIZE_T, H5T_NATIVE_CHARACTER
  use base_kinds, only: int32, int64, real64
  use base_error, only: error_t, exit_bad_input, exit_corrupt_file, fail
  implicit none
  private
  public :: hdf5_file_t

  type :: hdf5_file_t
    character(len=:), allocatable :: path
    integer(HID_T), private :: handle = -1
  contains
    procedure :: open => open_file
    procedure :: close => close_file
    procedure :: exists
    procedure :: text_attribute
    procedure :: real_attribute
    procedure :: integer_attribute
    procedure :: read_integer
    procedure :: read_long
    procedure :: read_names
    procedure :: read_real
    procedure :: read_integer_table
    procedure :: read_real_table
  end type hdf5_file_t

contains

  !> Open for reading. Fails (bad input) when the file cannot be opened as HDF5.
  subroutine open_file(self, path, error)
    class(hdf5_file_t), intent(out) :: self
    character(len=*), intent(in) :: path
    type(error_t), allocatable, intent(out) :: error
    integer :: status, unit
    self%path = path
    open (newunit=unit, file=path, status="old", action="read", iostat=status)
    if (status /= 0) then
      call fail(error, exit_bad_input, path//": this file cannot be opened; check the name")
      return
    end if
    close (unit)
    call h5open_f(status)
    ! Our own sentence instead of the library's stack of messages.
    call h5eset_auto_f(0, status, H5E_DEFAULT_F)
    call h5fopen_f(path, H5F_ACC_RDONLY_F, self%handle, status)
    if (status /= 0) call fail(error, exit_corrupt_file, path//": not a readable HDF5 file; make it again")
  end subroutine open_file

  subroutine close_file(self)
    class(hdf5_file_t), intent(inout) :: self
    integer :: status
    call h5fclose_f(self%handle, status)
    call h5close_f(status)
  end subroutine close_file

  !> Whether a dataset is there (its group must exist).
  logical function exists(self, name)
    class(hdf5_file_t), intent(in) :: self
    character(len=*), intent(in) :: name
    integer :: status
    call h5lexists_f(self%handle, name, exists, status)
    if (status /= 0) exists = .false.
  end function exists

  subroutine open_attribute(self, object, name, attribute, error)
    type(hdf5_file_t), intent(in) :: self
    character(len=*), intent(in) :: object, name
    integer(HID_T), intent(out) :: attribute
    type(error_t), allocatable, intent(out) :: error
    logical :: there
    integer :: status
    attribute = -1
    call h5aexists_by_name_f(self%handle, object, name, there, status)
    if (status == 0 .and. there) call h5aopen_by_name_f(self%handle, object, name, attribute, status)
    if (status /= 0 .or. .not. there) &
      call fail(error, exit_corrupt_file, self%path//": attribute '"//name//"' of "//object// &
                " is missing or unreadable")
  end subroutine open_attribute

  !> A text attribute, of fixed or variable length.
  subroutine text_attribute(self, object, name, value, error)
    class(hdf5_file_t), intent(in) :: self
    character(len=*), intent(in) :: object, name
    character(len=:), allocatable, intent(out) :: value
    type(error_t), allocatable, intent(out) :: error
    integer(HID_T) :: attribute, type_id
    integer(SIZE_T) :: length
    logical :: variable
    type(c_ptr), target :: address
    type(c_ptr) :: place
    character(kind=c_char), pointer :: letters(:)
    character(kind=c_char), target :: fixed(256)
    integer :: status, i
    value = ""
    call open_attribute(self, object, name, attribute, error)
    if (allocated(error)) return
    call h5aget_type_f(attribute, type_id, status)
    call h5tis_variable_str_f(type_id, variable, status)
    fixed = c_null_char
    if (variable) then
      place = c_loc(address)
      call h5aread_f(attribute, type_id, place, status)
      if (status == 0) call c_f_pointer(address, letters, [256])
    else
      call h5tget_size_f(type_id, length, status)
      place = c_loc(fixed)
      if (length <= 256) call h5aread_f(attribute, type_id, place, status)
      letters => fixed
    end if
    if (status == 0) then
      do i = 1, 256
        if (letters(i) == c_null_char) exit
        value = value//letters(i)
      end do
    else
      call fail(error, exit_corrupt_file, self%path//": attribute '"//name//"' is unreadable")
    end if
    call h5tclose_f(type_id, status)
    call h5aclose_f(attribute, status)
  end subroutine text_attribute

  subroutine real_attribute(self, object, name, value, error)
    class(hdf5_file_t), intent(in) :: self
    character(len=*), intent(in) :: object, name
    real(real64), target, intent(out) :: value
    type(error_t), allocatable, intent(out) :: error
    value = 0.0_real64
    call read_number(self, object, name, h5kind_to_type(real64, H5_REAL_KIND), c_loc(value), "a number", error)
  end subroutine real_attribute

  subroutine integer_attribute(self, object, name, value, error)
    class(hdf5_file_t), intent(in) :: self
    character(len=*), intent(in) :: object, name
    integer, target, intent(out) :: value
    type(error_t), allocatable, intent(out) :: error
    value = 0
    call read_number(self, object, name, h5kind_to_type(int32, H5_INTEGER_KIND), c_loc(value), "a whole number", error)
  end subroutine integer_attribute

  !> An attribute as a number of the HDF5 type `kind`, to `place`; `meant` says in the error's words what it should be.
  subroutine read_number(self, object, name, kind, place, meant, error)
    type(hdf5_file_t), intent(in) :: self
    character(len=*), intent(in) :: object, name, meant
    integer(HID_T), intent(in) :: kind
    type(c_ptr), value :: place
    type(error_t), allocatable, intent(out) :: error
    integer(HID_T) :: attribute
    integer :: status
    call open_attribute(self, object, name, attribute, error)
    if (allocated(error)) return
    call h5aread_f(attribute, kind, place, status)
    if (status /= 0) call fail(error, exit_corrupt_file, self%path//": attribute '"//name//"' is not "//meant)
    call h5aclose_f(attribute, status)
  end subroutine read_number

  !> Open a dataset of as many dimensions as `extent` takes, and give its extents, fastest first as Fortran sees them.
  subroutine open_dataset(self, name, dataset, extent, error)
    type(hdf5_file_t), intent(in) :: self
    character(len=*), intent(in) :: name
    integer(HID_T), intent(out) :: dataset
    integer(HSIZE_T), intent(out) :: extent(:)
    type(error_t), allocatable, intent(out) :: error
    integer(HID_T) :: space
    integer(HSIZE_T) :: largest(size(extent))
    integer :: status, found
    extent = 0
    call h5dopen_f(self%handle, name, dataset, status)
    if (status /= 0) then
      call fail(error, exit_corrupt_file, self%path//": dataset '"//name//"' is missing")
      return
    end if
    call h5dget_space_f(dataset, space, status)
    call h5sget_simple_extent_ndims_f(space, found, status)
    if (found == size(extent)) then
      call h5sget_simple_extent_dims_f(space, extent, largest, status)
    else
      call fail(error, exit_corrupt_file, self%path//": dataset '"//name//"' has the wrong number of dimensions")
    end if
    call h5sclose_f(space, status)
  end subroutine open_dataset

  !> Read an open dataset of `n` values, each of the HDF5 type `kind`, to `place`, and close it.
  subroutine read_dataset(self, name, dataset, kind, place, n, error)
    type(hdf5_file_t), intent(in) :: self
    character(len=*), intent(in) :: name
    integer(HID_T), intent(in) :: dataset, kind
    type(c_ptr), value :: place
    integer, intent(in) :: n
    type(error_t), allocatable, intent(out) :: error
    integer :: status
    status = 0
    if (n > 0) call h5dread_f(dataset, kind, place, status)
    if (status /= 0) call fail(error, exit_corrupt_file, self%path//": dataset '"//name//"' is unreadable")
    call h5dclose_f(dataset, status)
  end subroutine read_dataset

  subroutine read_integer(self, name, values, error)
    class(hdf5_file_t), intent(in) :: self
    character(len=*), intent(in) :: name
    integer, allocatable, target, intent(out) :: values(:)
    type(error_t), allocatable, intent(out) :: error
    integer(HID_T) :: dataset
    integer(HSIZE_T) :: extent(1)
    call open_dataset(self, name, dataset, extent, error)
    allocate (values(extent(1)))
    if (allocated(error)) return
    call read_dataset(self, name, dataset, h5kind_to_type(int32, H5_INTEGER_KIND), c_loc(values), size(values), error)
  end subroutine read_integer

  subroutine read_long(self, name, values, error)
    class(hdf5_file_t), intent(in) :: self
    character(len=*), intent(in) :: name
    integer(int64), allocatable, target, intent(out) :: values(:)
    type(error_t), allocatable, intent(out) :: error
    integer(HID_T) :: dataset
    integer(HSIZE_T) :: extent(1)
    call open_dataset(self, name, dataset, extent, error)
    allocate (values(extent(1)))
    if (allocated(error)) return
    call read_dataset(self, name, dataset, h5kind_to_type(int64, H5_INTEGER_KIND), c_loc(values), size(values), error)
  end subroutine read_long

  !> Names of fixed length, padded with blanks.
  subroutine read_names(self, name, values, error)
    class(hdf5_file_t), intent(in) :: self
    character(len=*), intent(in) :: name
    character(len=*), allocatable, intent(out) :: values(:)
    type(error_t), allocatable, intent(out) :: error
    character(len=1), allocatable, target :: letters(:, :)
    integer(HID_T) :: dataset, kind
    integer(HSIZE_T) :: extent(1)
    integer(SIZE_T) :: length
    integer :: status, i, k
    call open_dataset(self, name, dataset, extent, error)
    allocate (values(extent(1)))
    if (allocated(error)) return
    values = ""
    call h5dget_type_f(dataset, kind, status)
    call h5tget_size_f(kind, length, status)
    allocate (letters(length, extent(1)))
    call read_dataset(self, name, dataset, kind, c_loc(letters), size(values), error)
    call h5tclose_f(kind, status)
    if (allocated(error)) return
    do i = 1, size(values)
      do k = 1, min(int(length), len(values))
        if (letters(k, i) /= c_null_char) values(i)(k:k) = letters(k, i)
      end do
    end do
  end subroutine read_names

  subroutine read_real(self, name, values, error)
    class(hdf5_file_t), intent(in) :: self
    character(len=*), intent(in) :: name
    real(real64), allocatable, target, intent(out) :: values(:)
    type(error_t), allocatable, intent(out) :: error
    integer(HID_T) :: dataset
    integer(HSIZE_T) :: extent(1)
    call open_dataset(self, name, dataset, extent, error)
    allocate (values(extent(1)))
    if (allocated(error)) return
    call read_dataset(self, name, dataset, h5kind_to_type(real64, H5_REAL_KIND), c_loc(values), size(values), error)
  end subroutine read_real

  !> A table; the file's rows are the columns here.
  subroutine read_integer_table(self, name, values, error)
    class(hdf5_file_t), intent(in) :: self
    character(len=*), intent(in) :: name
    integer, allocatable, target, intent(out) :: values(:, :)
    type(error_t), allocatable, intent(out) :: error
    integer(HID_T) :: dataset
    integer(HSIZE_T) :: extent(2)
    call open_dataset(self, name, dataset, extent, error)
    allocate (values(extent(1), extent(2)))
    if (allocated(error)) return
    call read_dataset(self, name, dataset, h5kind_to_type(int32, H5_INTEGER_KIND), c_loc(values), size(values), error)
  end subroutine read_integer_table

  subroutine read_real_table(self, name, values, error)
    class(hdf5_file_t), intent(in) :: self
    character(len=*), intent(in) :: name
    real(real64), allocatable, target, intent(out) :: values(:, :)
    type(error_t), allocatable, intent(out) :: error
    integer(HID_T) :: dataset
    integer(HSIZE_T) :: extent(2)
    call open_dataset(self, name, dataset, extent, error)
    allocate (values(extent(1), extent(2)))
    if (allocated(error)) return
    call read_dataset(self, name, dataset, h5kind_to_type(real64, H5_REAL_KIND), c_loc(values), size(values), error)
  end subroutine read_real_table

end module hdf5_file
