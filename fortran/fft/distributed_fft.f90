!> Three-dimensional transforms of real data spread over MPI ranks, in the kind of the pair arithmetic.
!>
!> The ranks form a grid of p1 x p2 (p1 = 1, slabs, while there are planes enough; pencils beyond). Stages: lines along
!> x, exchange x-y among p1 ranks, lines along y, exchange y-z among p2 ranks, lines along z. Any grid, any number of
!> ranks: shares need not be equal and may be empty.
module distributed_fft
  use, intrinsic :: iso_c_binding, only: c_loc
  use mpi_f08, only: MPI_Alltoallv, MPI_Comm, MPI_Comm_rank, MPI_Comm_size, MPI_Comm_split, MPI_COMPLEX, &
                     MPI_Datatype, MPI_DOUBLE_COMPLEX
  use precision, only: real32, real_pair
  use error, only: error_t, exit_bad_input, fail
  use fftw_serial, only: backward_sign => backward, forward_sign => forward, line_transform_t
  implicit none
  private
  public :: distributed_fft_t, MPI_Comm, share_lower, share_upper

  type :: distributed_fft_t
    !> Grid points along x, y, z.
    integer :: n(3) = 0
    !> This rank's part of the real grid, indices from 0: the array is (x, y, z).
    integer :: real_lower(3) = 0, real_upper(3) = -1
    !> This rank's part of the spectrum, wave indices kx, ky, kz from 0 (kx to n/2): the array is (kz, kx, ky).
    integer :: wave_lower(3) = 0, wave_upper(3) = -1
    !> This rank in the communicator.
    integer :: rank = 0
    integer, private :: n_ranks(2) = 1, place(2) = 0
    type(MPI_Comm), private :: group(2)
    type(MPI_Datatype), private :: number
    type(line_transform_t), private :: x_forward, x_backward, y_forward, y_backward, z_forward, z_backward
    !> Lines along x (kx, y, z) and along y (kx, ky, z).
    complex(real_pair), allocatable, private :: x_lines(:, :, :), y_lines(:, :, :)
    complex(real_pair), allocatable, private :: send(:), receive(:)
  contains
    procedure :: create
    procedure :: forward
    procedure :: backward
  end type distributed_fft_t

contains

  !> First index (from 0) of share `part` (from 0) when `n` items are dealt to `n_parts`.
  pure integer function share_lower(n, n_parts, part)
    integer, intent(in) :: n, n_parts, part
    share_lower = part*(n/n_parts) + min(part, mod(n, n_parts))
  end function share_lower

  !> Last index of a share.
  pure integer function share_upper(n, n_parts, part)
    integer, intent(in) :: n, n_parts, part
    share_upper = share_lower(n, n_parts, part + 1) - 1
  end function share_upper

  !> Make the plan; all ranks of `comm` must call it. `rows`: number p1 of ranks along y (a divisor of the rank count);
  !> chosen when left out. Fails on an odd or non-positive first dimension or an impossible `rows`.
  subroutine create(self, comm, n, error, rows)
    class(distributed_fft_t), intent(out) :: self
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: n(3)
    type(error_t), allocatable, intent(out) :: error
    integer, intent(in), optional :: rows
    integer :: n_all, p1
    character(len=120) :: message
    logical, parameter :: single = real_pair == real32
    real(real_pair), allocatable, target :: real_line(:)
    complex(real_pair), allocatable, target :: complex_line(:)

    call MPI_Comm_rank(comm, self%rank)
    call MPI_Comm_size(comm, n_all)
    if (any(n < 2) .or. mod(n(1), 2) /= 0) then
      write (message, "(a,3(i0,1x),a)") "FFT grid ", n, "needs at least 2 points an axis and an even number along x"
      call fail(error, exit_bad_input, trim(message))
      return
    end if
    ! Slabs need one exchange only; pencils start when slabs would leave ranks idle.
    p1 = 1
    do while (n_all/p1 > min(n(2), n(3)) .or. mod(n_all, p1) /= 0)
      if (p1 >= n_all) exit
      p1 = p1 + 1
    end do
    if (present(rows)) p1 = rows
    if (p1 < 1 .or. mod(n_all, max(1, p1)) /= 0) then
      write (message, "(i0,a,i0,a)") p1, " rows do not divide ", n_all, " ranks of the FFT"
      call fail(error, exit_bad_input, trim(message))
      return
    end if
    self%n = n
    self%n_ranks = [p1, n_all/p1]
    self%place = [mod(self%rank, p1), self%rank/p1]
    call MPI_Comm_split(comm, self%place(2), self%place(1), self%group(1))
    call MPI_Comm_split(comm, self%place(1), self%place(2), self%group(2))
    self%number = MPI_DOUBLE_COMPLEX
    if (real_pair == real32) self%number = MPI_COMPLEX

    associate (p => self%n_ranks, r => self%place, half => n(1)/2 + 1)
      self%real_lower = [0, share_lower(n(2), p(1), r(1)), share_lower(n(3), p(2), r(2))]
      self%real_upper = [n(1) - 1, share_upper(n(2), p(1), r(1)), share_upper(n(3), p(2), r(2))]
      self%wave_lower = [share_lower(half, p(1), r(1)), share_lower(n(2), p(2), r(2)), 0]
      self%wave_upper = [share_upper(half, p(1), r(1)), share_upper(n(2), p(2), r(2)), n(3) - 1]
      associate (n_y => self%real_upper(2) - self%real_lower(2) + 1, &
        n_z => self%real_upper(3) - self%real_lower(3) + 1, &
                 n_kx => self%wave_upper(1) - self%wave_lower(1) + 1, &
                 n_ky => self%wave_upper(2) - self%wave_lower(2) + 1)
        allocate (self%y_lines(n_kx, n(2), n_z))
        if (p(1) > 1) allocate (self%x_lines(half, n_y, n_z))
        allocate (self%send(merge(0, max(half*n_y*n_z, n_kx*n(2)*n_z, n_kx*n_ky*n(3)), n_all == 1)))
        allocate (self%receive(size(self%send)))
        allocate (real_line(max(1, n(1)*n_y)), complex_line(max(half*n_y, n_kx*n(2), n_kx*n(3), 1)))
        ! FFTW refuses empty sets of lines; such plans are never executed.
        call self%x_forward%plan_to_complex(single, n(1), max(1, n_y), c_loc(real_line), c_loc(complex_line))
        call self%x_backward%plan_to_real(single, n(1), max(1, n_y), c_loc(complex_line), c_loc(real_line))
        if (n_kx > 0) then
          call self%y_forward%plan_complex(single, n(2), n_kx, n_kx, 1, forward_sign, c_loc(complex_line))
          call self%y_backward%plan_complex(single, n(2), n_kx, n_kx, 1, backward_sign, c_loc(complex_line))
          call self%z_forward%plan_complex(single, n(3), n_kx, 1, n(3), forward_sign, c_loc(complex_line))
          call self%z_backward%plan_complex(single, n(3), n_kx, 1, n(3), backward_sign, c_loc(complex_line))
        end if
      end associate
    end associate
  end subroutine create

  !> Sum over the grid of real_block exp(-2 pi i (k.j/n)); `real_block` (x, y, z) and `wave_block` (kz, kx, ky) have the
  !> bounds that the plan tells.
  subroutine forward(self, real_block, wave_block)
    class(distributed_fft_t), target, intent(inout) :: self
    real(real_pair), contiguous, target, intent(inout) :: real_block(:, :, :)
    complex(real_pair), contiguous, target, intent(inout) :: wave_block(:, :, :)
    integer :: z, y
    logical :: with_y

    with_y = size(self%y_lines, 1) > 0
    if (self%n_ranks(1) == 1) then
      !$omp parallel do schedule(static)
      do z = 1, size(real_block, 3)
        call self%x_forward%execute(c_loc(real_block(1, 1, z)), c_loc(self%y_lines(1, 1, z)))
        call self%y_forward%execute(c_loc(self%y_lines(1, 1, z)), c_loc(self%y_lines(1, 1, z)))
      end do
      !$omp end parallel do
    else
      !$omp parallel do schedule(static)
      do z = 1, size(real_block, 3)
        if (size(real_block, 2) > 0) call self%x_forward%execute(c_loc(real_block(1, 1, z)), c_loc(self%x_lines(1, &
          1, z)))
      end do
      !$omp end parallel do
      call exchange_xy(self, .true.)
      !$omp parallel do schedule(static)
      do z = 1, size(real_block, 3)
        if (with_y) call self%y_forward%execute(c_loc(self%y_lines(1, 1, z)), c_loc(self%y_lines(1, 1, z)))
      end do
      !$omp end parallel do
    end if
    call exchange_yz(self, .true., wave_block)
    !$omp parallel do schedule(static)
    do y = 1, size(wave_block, 3)
      if (with_y) call self%z_forward%execute(c_loc(wave_block(1, 1, y)), c_loc(wave_block(1, 1, y)))
    end do
    !$omp end parallel do
  end subroutine forward

  !> Sum over waves of wave_block exp(+2 pi i (k.j/n)): the inverse times the number of grid points. Overwrites
  !> `wave_block`.
  subroutine backward(self, wave_block, real_block)
    class(distributed_fft_t), target, intent(inout) :: self
    complex(real_pair), contiguous, target, intent(inout) :: wave_block(:, :, :)
    real(real_pair), contiguous, target, intent(inout) :: real_block(:, :, :)
    integer :: z, y
    logical :: with_y

    with_y = size(self%y_lines, 1) > 0
    !$omp parallel do schedule(static)
    do y = 1, size(wave_block, 3)
      if (with_y) call self%z_backward%execute(c_loc(wave_block(1, 1, y)), c_loc(wave_block(1, 1, y)))
    end do
    !$omp end parallel do
    call exchange_yz(self, .false., wave_block)
    if (self%n_ranks(1) == 1) then
      !$omp parallel do schedule(static)
      do z = 1, size(real_block, 3)
        call self%y_backward%execute(c_loc(self%y_lines(1, 1, z)), c_loc(self%y_lines(1, 1, z)))
        call self%x_backward%execute(c_loc(self%y_lines(1, 1, z)), c_loc(real_block(1, 1, z)))
      end do
      !$omp end parallel do
    else
      !$omp parallel do schedule(static)
      do z = 1, size(real_block, 3)
        if (with_y) call self%y_backward%execute(c_loc(self%y_lines(1, 1, z)), c_loc(self%y_lines(1, 1, z)))
      end do
      !$omp end parallel do
      call exchange_xy(self, .false.)
      !$omp parallel do schedule(static)
      do z = 1, size(real_block, 3)
        if (size(real_block, 2) > 0) call self%x_backward%execute(c_loc(self%x_lines(1, 1, z)), c_loc(real_block(1, &
          1, z)))
      end do
      !$omp end parallel do
    end if
  end subroutine backward

  !> x_lines (all kx, my y, my z) to y_lines (my kx, all y, my z), or back.
  subroutine exchange_xy(self, to_y)
    type(distributed_fft_t), intent(inout) :: self
    logical, intent(in) :: to_y
    ! Message to or from each rank: on the x side its kx of my y, on the y side my kx of its y.
    integer, dimension(self%n_ranks(1)) :: x_low, x_high, y_low, y_high, x_count, x_first, y_count, y_first
    integer :: part

    call shares(self%n(1)/2 + 1, x_low, x_high)
    call shares(self%n(2), y_low, y_high)
    x_count = (x_high - x_low + 1)*size(self%x_lines, 2)*size(self%x_lines, 3)
    y_count = (y_high - y_low + 1)*size(self%y_lines, 1)*size(self%y_lines, 3)
    x_first = starts(x_count)
    y_first = starts(y_count)
    if (to_y) then
      do part = 1, size(x_low)
        call to_buffer(self%x_lines(x_low(part):x_high(part), :, :), self%send(x_first(part) + 1:))
      end do
      call MPI_Alltoallv(self%send, x_count, x_first, self%number, self%receive, y_count, y_first, self%number, &
                         self%group(1))
      do part = 1, size(x_low)
        call from_buffer(self%receive(y_first(part) + 1:), self%y_lines(:, y_low(part):y_high(part), :))
      end do
    else
      do part = 1, size(x_low)
        call to_buffer(self%y_lines(:, y_low(part):y_high(part), :), self%send(y_first(part) + 1:))
      end do
      call MPI_Alltoallv(self%send, y_count, y_first, self%number, self%receive, x_count, x_first, self%number, &
                         self%group(1))
      do part = 1, size(x_low)
        call from_buffer(self%receive(x_first(part) + 1:), self%x_lines(x_low(part):x_high(part), :, :))
      end do
    end if
  end subroutine exchange_xy

  !> y_lines (my kx, all ky, my z) to the wave block (all z, my kx, my ky), or back.
  subroutine exchange_yz(self, to_z, wave_block)
    type(distributed_fft_t), intent(inout) :: self
    logical, intent(in) :: to_z
    complex(real_pair), intent(inout) :: wave_block(:, :, :)
    ! Messages hold (z, kx, ky): on the y side its ky of my z, on the z side my ky of its z.
    integer, dimension(self%n_ranks(2)) :: y_low, y_high, z_low, z_high, y_count, y_first, z_count, z_first
    integer :: part

    if (self%n_ranks(2) == 1) then
      if (to_z) then
        call z_to_front(self%y_lines, wave_block)
      else
        call z_to_back(wave_block, self%y_lines)
      end if
      return
    end if
    call shares(self%n(2), y_low, y_high)
    call shares(self%n(3), z_low, z_high)
    y_count = (y_high - y_low + 1)*size(self%y_lines, 1)*size(self%y_lines, 3)
    z_count = (z_high - z_low + 1)*size(wave_block, 2)*size(wave_block, 3)
    y_first = starts(y_count)
    z_first = starts(z_count)
    if (to_z) then
      do part = 1, size(y_low)
        call z_to_front(self%y_lines(:, y_low(part):y_high(part), :), self%send(y_first(part) + 1:))
      end do
      call MPI_Alltoallv(self%send, y_count, y_first, self%number, self%receive, z_count, z_first, self%number, &
                         self%group(2))
      do part = 1, size(y_low)
        call from_buffer(self%receive(z_first(part) + 1:), wave_block(z_low(part):z_high(part), :, :))
      end do
    else
      do part = 1, size(y_low)
        call to_buffer(wave_block(z_low(part):z_high(part), :, :), self%send(z_first(part) + 1:))
      end do
      call MPI_Alltoallv(self%send, z_count, z_first, self%number, self%receive, y_count, y_first, self%number, &
                         self%group(2))
      do part = 1, size(y_low)
        call z_to_back(self%receive(y_first(part) + 1:), self%y_lines(:, y_low(part):y_high(part), :))
      end do
    end if
  end subroutine exchange_yz

  !> Shares of all parts, indices from 1.
  pure subroutine shares(n, low, high)
    integer, intent(in) :: n
    integer, intent(out) :: low(:), high(:)
    integer :: part
    do part = 1, size(low)
      low(part) = share_lower(n, size(low), part - 1) + 1
      high(part) = share_upper(n, size(low), part - 1) + 1
    end do
  end subroutine shares

  !> Displacements of consecutive messages.
  pure function starts(count) result(first)
    integer, intent(in) :: count(:)
    integer :: first(size(count)), k
    first(1) = 0
    do k = 2, size(count)
      first(k) = first(k - 1) + count(k - 1)
    end do
  end function starts

  subroutine to_buffer(block, buffer)
    complex(real_pair), intent(in) :: block(:, :, :)
    complex(real_pair), intent(inout) :: buffer(size(block, 1), size(block, 2), size(block, 3))
    integer :: k
    !$omp parallel do schedule(static)
    do k = 1, size(block, 3)
      buffer(:, :, k) = block(:, :, k)
    end do
    !$omp end parallel do
  end subroutine to_buffer

  subroutine from_buffer(buffer, block)
    complex(real_pair), intent(inout) :: block(:, :, :)
    complex(real_pair), intent(in) :: buffer(size(block, 1), size(block, 2), size(block, 3))
    integer :: k
    !$omp parallel do schedule(static)
    do k = 1, size(block, 3)
      block(:, :, k) = buffer(:, :, k)
    end do
    !$omp end parallel do
  end subroutine from_buffer

  !> block (kx, ky, z) to buffer (z, kx, ky).
  subroutine z_to_front(block, buffer)
    complex(real_pair), intent(in) :: block(:, :, :)
    complex(real_pair), intent(inout) :: buffer(size(block, 3), size(block, 1), size(block, 2))
    integer :: x, y, z
    !$omp parallel do schedule(static) private(x, z)
    do y = 1, size(block, 2)
      do z = 1, size(block, 3)
        do x = 1, size(block, 1)
          buffer(z, x, y) = block(x, y, z)
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine z_to_front

  !> buffer (z, kx, ky) to block (kx, ky, z).
  subroutine z_to_back(buffer, block)
    complex(real_pair), intent(inout) :: block(:, :, :)
    complex(real_pair), intent(in) :: buffer(size(block, 3), size(block, 1), size(block, 2))
    integer :: x, y, z
    !$omp parallel do schedule(static) private(x, z)
    do y = 1, size(block, 2)
      do z = 1, size(block, 3)
        do x = 1, size(block, 1)
          block(x, y, z) = buffer(z, x, y)
        end do
      end do
    end do
    !$omp end parallel do
  end subroutine z_to_back

end module distributed_fft
