!> The periodic box cut into Px x Py x Pz domains, one per rank; rank = ix + Px*(iy + Py*iz). The cuts are planes through
!> the whole box: evenly spaced at first, and moved by `move_borders` where work is spread unevenly.
module comm_domain_grid
  use base_kinds, only: int64, real64
  use base_error, only: error_t, exit_bad_input, fail
  implicit none
  private
  public :: domain_grid_t, wrap_shift

  type :: domain_grid_t
    real(real64) :: box(3) = 0.0_real64
    !> Number of domains along x, y, z.
    integer :: dims(3) = 1
    !> This rank's domain, from 0.
    integer :: coordinate(3) = 0
    !> Corners of this rank's domain: lower included, upper not.
    real(real64) :: lower(3) = 0.0_real64, upper(3) = 0.0_real64
    !> Borders along each axis as fractions of the box: `border(0:dims(axis), axis)`, from 0 to 1.
    real(real64), allocatable :: border(:, :)
    !> Part of the box along each axis that holds atoms: evenly spaced borders share it out, and the outermost domains take
    !> the empty rest.
    real(real64) :: filled(2) = [0.0_real64, 1.0_real64]
  contains
    procedure :: create
    procedure :: set_box
    procedure :: layers_within
    procedure :: domain_of
    procedure :: rank_of
    procedure :: even_border
    procedure :: even_width
    procedure :: space_evenly
    procedure :: move_borders
    procedure :: edge
    procedure :: narrowest
  end type domain_grid_t

contains

  !> Choose the domains. `dims`: numbers of domains, 0 = choose (the least halo volume). `halo_width`: how far ghosts
  !> reach (angstrom, as the edges of `box`); domains are narrower only if there is no other way. Fails when the numbers
  !> do not multiply to the rank count. `filled`: as the component of that name.
  subroutine create(self, rank, n_ranks, box, dims, halo_width, error, filled)
    class(domain_grid_t), intent(out) :: self
    integer, intent(in) :: rank, n_ranks, dims(3)
    real(real64), intent(in) :: box(3), halo_width
    type(error_t), allocatable, intent(out) :: error
    real(real64), intent(in), optional :: filled(2)
    integer :: px, py, pz, trial(3), pass
    real(real64) :: volume, best, edges(3)
    character(len=240) :: message

    if (present(filled)) self%filled = filled
    edges = box*(self%filled(2) - self%filled(1))
    best = huge(best)
    if (all(dims > 0) .and. product(int(dims, int64)) == n_ranks) then
      ! Nothing to choose: a set-up makes a grid for each of its domains.
      self%dims = dims
      best = 0.0_real64
    end if
    do pass = 1, merge(2, 0, best > 0.0_real64)
      do pz = 1, n_ranks
        if (mod(n_ranks, pz) /= 0) cycle
        do py = 1, n_ranks/pz
          if (mod(n_ranks/pz, py) /= 0) cycle
          px = n_ranks/pz/py
          trial = [px, py, pz]
          if (any(dims > 0 .and. dims /= trial)) cycle
          if (pass == 1 .and. any(edges/trial < halo_width)) cycle
          volume = product(edges/trial + 2.0_real64*halo_width)
          if (volume < best*(1.0_real64 - 1.0e-9_real64)) then
            best = volume
            self%dims = trial
          end if
        end do
      end do
      if (best < huge(best)) exit
    end do
    if (best >= huge(best)) then
      write (message, "(a,3(i0,1x),a,i0,a)") "domain_x, domain_y, domain_z = ", dims, &
        "(0 = free) cannot be made of ", n_ranks, " ranks: their product must be the number of ranks"
      call fail(error, exit_bad_input, trim(message))
      return
    end if
    self%coordinate = [mod(rank, self%dims(1)), mod(rank/self%dims(1), self%dims(2)), rank/(self%dims(1)*self%dims(2))]
    self%box = box
    call self%space_evenly()
  end subroutine create

  !> Border `k` of an axis, as a fraction of the box, where borders are evenly spaced.
  pure real(real64) function even_border(self, axis, k)
    class(domain_grid_t), intent(in) :: self
    integer, intent(in) :: axis, k
    even_border = real(k, real64)/self%dims(axis)
    if (k > 0 .and. k < self%dims(axis)) even_border = self%filled(1) + even_border*(self%filled(2) - self%filled(1))
  end function even_border

  !> Width (angstrom) along each axis of the part of evenly spaced domains that holds atoms.
  pure function even_width(self) result(width)
    class(domain_grid_t), intent(in) :: self
    real(real64) :: width(3)
    width = self%box*(self%filled(2) - self%filled(1))/self%dims
  end function even_width

  !> Make all domains of the same size.
  subroutine space_evenly(self)
    class(domain_grid_t), intent(inout) :: self
    integer :: axis, k
    if (allocated(self%border)) deallocate (self%border)
    allocate (self%border(0:maxval(self%dims), 3), source=1.0_real64)
    do axis = 1, 3
      do k = 0, self%dims(axis)
        self%border(k, axis) = self%even_border(axis, k)
      end do
    end do
    call self%set_box(self%box)
  end subroutine space_evenly

  !> Take other borders (as `border`). `least`: narrowest that a domain may become along each axis (angstrom). Fails,
  !> and changes nothing, if one would be narrower.
  subroutine move_borders(self, border, least, error)
    class(domain_grid_t), intent(inout) :: self
    real(real64), intent(in) :: border(0:, :), least(3)
    type(error_t), allocatable, intent(out) :: error
    integer :: axis
    character(len=160) :: message
    do axis = 1, 3
      associate (n => self%dims(axis))
        if (all(border(1:n, axis) - border(:n - 1, axis) > (1.0_real64 - 1.0e-9_real64)*least(axis)/self%box(axis))) cycle
      end associate
      write (message, "(a,f0.2,a)") "a moved border would leave a domain narrower than ", least(axis), &
        " angstrom: give load_balance = NO"
      call fail(error, exit_bad_input, trim(message))
      return
    end do
    self%border = border
    call self%set_box(self%box)
  end subroutine move_borders

  !> Place (angstrom) of border `k` of an axis: the lower end of domain k, the upper one of domain k - 1.
  pure real(real64) function edge(self, axis, k)
    class(domain_grid_t), intent(in) :: self
    integer, intent(in) :: axis, k
    edge = self%box(axis)*self%border(k, axis)
  end function edge

  !> Width (angstrom) of the narrowest domain along each axis.
  pure function narrowest(self) result(width)
    class(domain_grid_t), intent(in) :: self
    real(real64) :: width(3)
    integer :: axis
    do axis = 1, 3
      associate (n => self%dims(axis))
        width(axis) = self%box(axis)*minval(self%border(1:n, axis) - self%border(:n - 1, axis))
      end associate
    end do
  end function narrowest

  !> How many domains away along each axis atoms within `width` (angstrom) of this domain can be; at least 1.
  pure function layers_within(self, width) result(layers)
    class(domain_grid_t), intent(in) :: self
    real(real64), intent(in) :: width
    integer :: layers(3)
    layers = max(1, ceiling(width/self%narrowest() - 1.0e-9_real64))
  end function layers_within

  !> Another box (angstrom), cut into the same number of domains.
  subroutine set_box(self, box)
    class(domain_grid_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    integer :: axis
    self%box = box
    do axis = 1, 3
      self%lower(axis) = self%edge(axis, self%coordinate(axis))
      self%upper(axis) = self%edge(axis, self%coordinate(axis) + 1)
    end do
  end subroutine set_box

  !> What to add to a position (angstrom) so that it lies in [0, box).
  pure function wrap_shift(box, position) result(shift)
    real(real64), intent(in) :: box(3), position(3)
    real(real64) :: shift(3)
    shift = -box*floor(position/box)
    ! A tiny negative number would be rounded up to the box length itself; it belongs to 0.
    where (position + shift >= box) shift = 0.0_real64
  end function wrap_shift

  !> Domain of a position (angstrom) that lies in the box, each coordinate from 0.
  pure function domain_of(self, position) result(coordinate)
    class(domain_grid_t), intent(in) :: self
    real(real64), intent(in) :: position(3)
    integer :: coordinate(3)
    integer :: axis
    do axis = 1, 3
      coordinate(axis) = max(0, min(self%dims(axis) - 1, floor(position(axis)/self%box(axis)*self%dims(axis))))
      ! The same comparison as the neighbour makes, so that an atom on a face has one owner.
      do while (coordinate(axis) > 0)
        if (position(axis) >= self%edge(axis, coordinate(axis))) exit
        coordinate(axis) = coordinate(axis) - 1
      end do
      do while (coordinate(axis) < self%dims(axis) - 1)
        if (position(axis) < self%edge(axis, coordinate(axis) + 1)) exit
        coordinate(axis) = coordinate(axis) + 1
      end do
    end do
  end function domain_of

  !> Rank of a domain; coordinates outside the grid wrap around.
  pure integer function rank_of(self, coordinate)
    class(domain_grid_t), intent(in) :: self
    integer, intent(in) :: coordinate(3)
    integer :: c(3)
    c = modulo(coordinate, self%dims)
    rank_of = c(1) + self%dims(1)*(c(2) + self%dims(2)*c(3))
  end function rank_of

end module comm_domain_grid
