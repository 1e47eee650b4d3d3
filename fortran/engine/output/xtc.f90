!> XTC trajectories (GROMACS): coordinates as whole numbers of 0.001 nm, packed into bits; big-endian.
!>
!> A frame is a header (magic number, atoms, step, time, box matrix in nm) and the coordinates: least and largest value
!> along each axis, then a stream of bits. The first atom of a run is stored as the mixed-radix number of its three
!> offsets from the least values; up to eight atoms that follow it closely as mixed-radix numbers of their differences
!> from the atom before, all three below `small_size`. The first difference is stored the other way round (the stored
!> atom is the second), which suits O-H-H. Between them stand one bit, or six when the length of the run changes.
!>
!> The stream can only be written from its beginning to its end, so one process holds a frame: 12 bytes an atom, and up to
!> as many for the stream.
module xtc
  use, intrinsic :: iso_fortran_env, only: int8
  use base_kinds, only: int32, int64, real32, real64
  use base_error, only: error_t, exit_bad_input, exit_resources, fail
  use base_text, only: to_text
  use frame_writer, only: frame_writer_t, kept_frames_t
  use base_posix_file, only: check_size, cut_file
  implicit none
  private
  public :: xtc_writer_t

  integer(int32), parameter :: magic = 1995
  !> Larger systems need another header.
  integer(int64), parameter :: most_atoms = 298261616_int64
  !> Whole numbers in an angstrom, and in a nanometre as the file states it.
  real(real32), parameter :: per_angstrom = 100.0_real32, per_nanometre = 1000.0_real32
  !> Differences of bonded atoms: 27 bits hold three numbers below 2^(27/3).
  integer, parameter :: small_bits = 27, small_size = 512
  integer, parameter :: longest_run = 8
  !> Frames of so few atoms are not compressed.
  integer, parameter :: uncompressed = 9
  !> Edges up to this (angstrom) keep the product of three offsets within 63 bits.
  real(real64), parameter :: largest_box = 2.0e4_real64

  !> Bits, the most significant first.
  type :: bit_stream_t
    integer(int8), allocatable :: byte(:)
    integer(int64) :: n_bytes = 0
    integer :: n_pending = 0, pending = 0
  contains
    procedure :: add
    procedure :: add_number
    procedure :: flush_bits
  end type bit_stream_t

  type, extends(frame_writer_t) :: xtc_writer_t
    private
    character(len=:), allocatable :: path
    integer :: unit = -1, status = 0
    integer(int64) :: n_atoms = 0, step = 0, n_frames = 0
    real(real64) :: time = 0.0_real64, cell(6) = 0.0_real64
    !> The present frame: positions in whole numbers, its stream, and positions of the first atoms as they are.
    integer(int32), allocatable :: whole(:, :)
    type(bit_stream_t) :: stream
    real(real32) :: first(3, uncompressed) = 0.0_real32
  contains
    procedure :: open => open_xtc
    procedure :: begin_frame
    procedure :: put
    procedure :: end_frame
    procedure :: kept
    procedure :: close => close_xtc
  end type xtc_writer_t

contains

  !> Start a file for `n_atoms` atoms, or go on with what is `kept` of it.
  subroutine open_xtc(self, path, n_atoms, kept, error)
    class(xtc_writer_t), intent(inout) :: self
    character(len=*), intent(in) :: path
    integer(int64), intent(in) :: n_atoms
    type(kept_frames_t), intent(in) :: kept
    type(error_t), allocatable, intent(out) :: error
    if (n_atoms > most_atoms) then
      call fail(error, exit_bad_input, path//": an XTC file holds at most 298261616 atoms; choose fewer with "// &
                "dcd_atoms, or write a file per domain with ()")
      return
    end if
    self%path = path
    self%n_atoms = n_atoms
    self%n_frames = kept%frames
    ! Whether this machine has what a frame takes is known before the run begins.
    call make_room(self, error)
    if (allocated(error)) return
    deallocate (self%whole, self%stream%byte)
    if (kept%bytes > 0) then
      call cut_file(path, kept%bytes, error)
      if (allocated(error)) return
      open (newunit=self%unit, file=path, access="stream", form="unformatted", status="old", action="write", &
            position="append", iostat=self%status)
    else
      open (newunit=self%unit, file=path, access="stream", form="unformatted", status="replace", action="write", &
            iostat=self%status)
    end if
    if (self%status /= 0) call fail(error, exit_resources, path//": cannot be written; check folder and free space")
  end subroutine open_xtc

  subroutine begin_frame(self, step, time, cell, error)
    class(xtc_writer_t), intent(inout) :: self
    integer(int64), intent(in) :: step
    real(real64), intent(in) :: time, cell(6)
    type(error_t), allocatable, intent(out) :: error
    self%step = step
    self%time = time
    self%cell = cell
    call make_room(self, error)
  end subroutine begin_frame

  !> Memory for a frame, and for its stream.
  subroutine make_room(self, error)
    type(xtc_writer_t), intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    integer :: status
    self%stream = bit_stream_t()
    allocate (self%whole(3, self%n_atoms), self%stream%byte(12*self%n_atoms + 64), stat=status)
    if (status /= 0) call fail(error, exit_resources, self%path//": a frame of "//to_text(self%n_atoms)//" atoms takes "// &
      to_text(24*self%n_atoms)//" bytes on the root rank, which this machine does not have; choose fewer with dcd_atoms, "// &
      "write a DCD, or write a file per domain with ()")
  end subroutine make_room

  subroutine put(self, before, position, error)
    class(xtc_writer_t), intent(inout) :: self
    integer(int64), intent(in) :: before
    real(real32), contiguous, intent(in) :: position(:, :)
    type(error_t), allocatable, intent(out) :: error
    integer :: axis, i
    if (.not. all(abs(position) < 0.5_real64*largest_box)) then
      call fail(error, exit_bad_input, self%path//": XTC does not hold coordinates beyond 10000 angstrom; write a DCD")
      return
    end if
    do i = 1, size(position, 1)
      do axis = 1, 3
        self%whole(axis, before + i) = nint(per_angstrom*position(i, axis), int32)
      end do
    end do
    do i = 1, int(min(int(size(position, 1), int64), uncompressed - before))
      self%first(:, before + i) = position(i, :)
    end do
  end subroutine put

  subroutine end_frame(self, error)
    class(xtc_writer_t), intent(inout) :: self
    type(error_t), allocatable, intent(out) :: error
    real(real32) :: cell(3, 3)
    integer(int32) :: n_atoms
    integer(int64) :: next
    integer :: axis
    n_atoms = int(self%n_atoms, int32)
    cell = 0.0_real32
    do axis = 1, 3
      cell(axis, axis) = real(0.1_real64*self%cell(axis), real32)
    end do
    cell(1, 2) = real(0.1_real64*self%cell(4), real32)
    cell(:2, 3) = real(0.1_real64*self%cell(5:), real32)
    ! Steps are 32-bit numbers there; a longer run counts modulo 2^31.
    write (self%unit, iostat=self%status) big_endian([magic, n_atoms, int(modulo(self%step, 2_int64**31), int32), &
      transfer(real(self%time, real32), magic), transfer(cell, magic, 9), n_atoms])
    if (n_atoms <= uncompressed) then
      if (self%status == 0) write (self%unit, iostat=self%status) &
        big_endian(transfer(0.1_real32*self%first(:, :n_atoms), magic, 3*n_atoms))
    else if (self%status == 0) then
      call write_compressed(self)
    end if
    if (self%status == 0) flush (self%unit, iostat=self%status)
    deallocate (self%whole, self%stream%byte)
    self%n_frames = self%n_frames + 1
    if (self%status /= 0) then
      call fail(error, exit_resources, self%path//": writing failed; check free space")
    else
      inquire (unit=self%unit, pos=next)
      call check_size(self%path, next - 1, error)
    end if
  end subroutine end_frame

  subroutine write_compressed(self)
    class(xtc_writer_t), intent(inout) :: self
    integer(int32) :: least(3), largest(3)
    integer(int64) :: extent(3)
    integer :: i, n, k, run, run_before, n_bits

    least = minval(self%whole, dim=2)
    largest = maxval(self%whole, dim=2)
    extent = int(largest, int64) - least + 1
    n_bits = bits_of(extent(1)*extent(2)*extent(3))
    n = size(self%whole, 2)
    run_before = 0
    i = 1
    do while (i <= n)
      ! Atoms after the first of the run that are close to the one before; the second and the first change places.
      run = 0
      if (i < n) then
        if (is_small(self%whole(:, i) - self%whole(:, i + 1))) then
          run = 1
          do while (run < longest_run .and. i + run + 1 <= n)
            k = merge(i, i + run, run == 1)
            if (.not. is_small(self%whole(:, i + run + 1) - self%whole(:, k))) exit
            run = run + 1
          end do
        end if
      end if
      k = merge(i + 1, i, run > 0)
      call self%stream%add_number(mixed_radix(int(self%whole(:, k) - least, int64), extent), n_bits)
      if (run == run_before) then
        call self%stream%add(0, 1)
      else
        ! Three times the length, plus one: the size of the differences stays.
        call self%stream%add(1, 1)
        call self%stream%add(3*run + 1, 5)
        run_before = run
      end if
      if (run > 0) call self%stream%add_number(small_number(self%whole(:, i) - self%whole(:, i + 1)), small_bits)
      do k = 2, run
        call self%stream%add_number(small_number(self%whole(:, i + k) - self%whole(:, merge(i, i + k - 1, k == 2))), small_bits)
      end do
      i = i + run + 1
    end do
    call self%stream%flush_bits()
    do while (modulo(self%stream%n_bytes, 4_int64) /= 0)
      self%stream%n_bytes = self%stream%n_bytes + 1
      self%stream%byte(self%stream%n_bytes) = 0_int8
    end do
    write (self%unit, iostat=self%status) big_endian([transfer(per_nanometre, magic), least, largest, &
      int(small_bits, int32), int(self%stream%n_bytes, int32)]), self%stream%byte(:self%stream%n_bytes)
  end subroutine write_compressed

  !> The bytes of a number in opposite order: files are little-endian otherwise.
  elemental integer(int32) function big_endian(number)
    integer(int32), intent(in) :: number
    integer :: k
    big_endian = 0
    do k = 0, 24, 8
      call mvbits(number, k, 8, big_endian, 24 - k)
    end do
  end function big_endian

  pure logical function is_small(difference)
    integer(int32), intent(in) :: difference(3)
    is_small = all(difference >= -small_size/2 .and. difference < small_size/2)
  end function is_small

  pure integer(int64) function small_number(difference)
    integer(int32), intent(in) :: difference(3)
    small_number = mixed_radix(int(difference + small_size/2, int64), spread(int(small_size, int64), 1, 3))
  end function small_number

  pure integer(int64) function mixed_radix(digit, base)
    integer(int64), intent(in) :: digit(3), base(3)
    mixed_radix = (digit(1)*base(2) + digit(2))*base(3) + digit(3)
  end function mixed_radix

  !> Number of binary digits.
  pure integer function bits_of(number)
    integer(int64), intent(in) :: number
    bits_of = storage_size(number) - leadz(number)
  end function bits_of

  !> Append the `n` lowest bits of `value`, at most 8.
  pure subroutine add(self, value, n)
    class(bit_stream_t), intent(inout) :: self
    integer, intent(in) :: value, n
    integer :: whole
    self%pending = ior(shiftl(self%pending, n), iand(value, 2**n - 1))
    self%n_pending = self%n_pending + n
    if (self%n_pending < 8) return
    self%n_pending = self%n_pending - 8
    whole = shiftr(self%pending, self%n_pending)
    self%pending = iand(self%pending, 2**self%n_pending - 1)
    self%n_bytes = self%n_bytes + 1
    self%byte(self%n_bytes) = int(merge(whole - 256, whole, whole > 127), int8)
  end subroutine add

  !> Append a number of `n` bits, its lowest byte first and its topmost bits last.
  pure subroutine add_number(self, number, n)
    class(bit_stream_t), intent(inout) :: self
    integer(int64), intent(in) :: number
    integer, intent(in) :: n
    integer :: at
    do at = 0, n - 1, 8
      call self%add(int(ibits(number, at, min(8, n - at))), min(8, n - at))
    end do
  end subroutine add_number

  !> Fill the last byte with zeros.
  pure subroutine flush_bits(self)
    class(bit_stream_t), intent(inout) :: self
    if (self%n_pending > 0) call self%add(0, 8 - self%n_pending)
  end subroutine flush_bits

  type(kept_frames_t) function kept(self)
    class(xtc_writer_t), intent(in) :: self
    kept%frames = self%n_frames
    inquire (unit=self%unit, pos=kept%bytes)
    kept%bytes = kept%bytes - 1
  end function kept

  subroutine close_xtc(self)
    class(xtc_writer_t), intent(inout) :: self
    close (self%unit)
  end subroutine close_xtc

end module xtc
