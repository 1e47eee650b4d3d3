!> The periodic box cut into Px x Py x Pz domains, one per rank; rank = ix + Px*(iy + Py*iz). The cuts are planes through
!> the whole box: evenly spaced at first, and moved by `move_borders` where work is spread unevenly. Where edges of the
!> box lean, planes do too: domains are cut in straight positions (module base_box_shape).
module comm_domain_grid
  use base_kinds, only: int64, real64
  use base_box_shape, only: box_shape_t, translation
  use base_error, only: error_t, exit_bad_input, fail
  implicit none
  private
  public :: domain_grid_t

  type :: domain_grid_t
    real(real64) :: box(3) = 0.0_real64
    !> How its edges lean, and b_x, c_x, c_y (angstrom).
    type(box_shape_t) :: shape
    real(real64), private :: tilt(3) = 0.0_real64
    !> Number of domains along x, y, z.
    integer :: dims(3) = 1
    !> This rank's domain, from 0.
    integer :: coordinate(3) = 0
    !> Corners of this rank's domain, straight: lower included, upper not.
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
    procedure :: straight
    procedure :: translation => translation_by
    procedure :: wrap_shift
    procedure :: nearest_image
    procedure :: depth
    procedure :: is_within
  end type domain_grid_t

contains

  !> Choose the domains. `dims`: numbers of domains, 0 = choose (the least halo volume). `halo_width`: how far ghosts
  !> reach (angstrom, as the edges of `box`); domains are narrower only if there is no other way. Fails when the numbers
  !> do not multiply to the rank count. `filled`, `shape`: as the components of these names.
  subroutine create(self, rank, n_ranks, box, dims, halo_width, error, filled, shape)
    class(domain_grid_t), intent(out) :: self
    integer, intent(in) :: rank, n_ranks, dims(3)
    real(real64), intent(in) :: box(3), halo_width
    type(error_t), allocatable, intent(out) :: error
    real(real64), intent(in), optional :: filled(2)
    type(box_shape_t), intent(in), optional :: shape
    integer :: px, py, pz, trial(3), pass
    real(real64) :: volume, best, edges(3)
    character(len=240) :: message

    if (present(filled)) self%filled = filled
    if (present(shape)) self%shape = shape
    edges = box*(self%filled(2) - self%filled(1))/self%shape%stretch()
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

  !> Width (angstrom, between opposite faces) along each axis of the part of evenly spaced domains that holds atoms.
  pure function even_width(self) result(width)
    class(domain_grid_t), intent(in) :: self
    real(real64) :: width(3)
    width = self%box*(self%filled(2) - self%filled(1))/self%dims/self%shape%stretch()
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
    real(real64) :: share(3)
    character(len=160) :: message
    share = self%depth(least)/self%box
    do axis = 1, 3
      associate (n => self%dims(axis))
        if (all(border(1:n, axis) - border(:n - 1, axis) > (1.0_real64 - 1.0e-9_real64)*share(axis))) cycle
      end associate
      write (message, "(a,f0.2,a)") "a moved border would leave a domain narrower than ", least(axis), &
        " angstrom: give load_balance = NO"
      call fail(error, exit_bad_input, trim(message))
      return
    end do
    self%border = border
    call self%set_box(self%box)
  end subroutine move_borders

  !> Straight place (angstrom) of border `k` of an axis: the lower end of domain k, the upper one of domain k - 1.
  pure real(real64) function edge(self, axis, k)
    class(domain_grid_t), intent(in) :: self
    integer, intent(in) :: axis, k
    edge = self%box(axis)*self%border(k, axis)
  end function edge

  !> Width (angstrom, between opposite faces) of the narrowest domain along each axis.
  pure function narrowest(self) result(width)
    class(domain_grid_t), intent(in) :: self
    real(real64) :: width(3)
    integer :: axis
    do axis = 1, 3
      associate (n => self%dims(axis))
        width(axis) = self%box(axis)*minval(self%border(1:n, axis) - self%border(:n - 1, axis))
      end associate
    end do
    width = width/self%shape%stretch()
  end function narrowest

  !> How many domains away along each axis atoms within `width` (angstrom) of this domain can be; at least 1.
  pure function layers_within(self, width) result(layers)
    class(domain_grid_t), intent(in) :: self
    real(real64), intent(in) :: width
    integer :: layers(3)
    layers = max(1, ceiling(width/self%narrowest() - 1.0e-9_real64))
  end function layers_within

  !> Another box (angstrom) of the same shape, cut into the same number of domains.
  subroutine set_box(self, box)
    class(domain_grid_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    integer :: axis
    self%box = box
    self%tilt = self%shape%tilt(box)
    do axis = 1, 3
      self%lower(axis) = self%edge(axis, self%coordinate(axis))
      self%upper(axis) = self%edge(axis, self%coordinate(axis) + 1)
    end do
  end subroutine set_box

  !> A vector (angstrom) made straight.
  pure function straight(self, vector)
    class(domain_grid_t), intent(in) :: self
    real(real64), intent(in) :: vector(3)
    real(real64) :: straight(3)
    straight = self%shape%straight(vector)
  end function straight

  !> The sum (angstrom) of whole numbers of edges of the box.
  pure function translation_by(self, number) result(shift)
    class(domain_grid_t), intent(in) :: self
    real(real64), intent(in) :: number(3)
    real(real64) :: shift(3)
    shift = translation(number, self%box, self%tilt)
  end function translation_by

  !> What to add to a position (angstrom) so that it lies in the box: straight, in [0, box).
  pure function wrap_shift(self, position) result(shift)
    class(domain_grid_t), intent(in) :: self
    real(real64), intent(in) :: position(3)
    real(real64) :: shift(3), straight(3)
    straight = self%straight(position)
    shift = -self%box*floor(straight/self%box)
    ! A tiny negative number would be rounded up to the box length itself; it belongs to 0.
    where (straight + shift >= self%box) shift = 0.0_real64
    if (self%shape%leans) shift = self%translation(anint(shift/self%box))
  end function wrap_shift

  !> The nearest periodic image of a difference (angstrom).
  pure function nearest_image(self, difference) result(nearest)
    class(domain_grid_t), intent(in) :: self
    real(real64), intent(in) :: difference(3)
    real(real64) :: nearest(3), image(3), first(3)
    integer :: x, y, z
    if (.not. self%shape%leans) then
      nearest = difference - self%box*anint(difference/self%box)
      return
    end if
    ! The edges in turn, then what is around.
    first = difference - self%translation([0.0_real64, 0.0_real64, anint(difference(3)/self%box(3))])
    first = first - self%translation([0.0_real64, anint(first(2)/self%box(2)), 0.0_real64])
    first(1) = first(1) - self%box(1)*anint(first(1)/self%box(1))
    nearest = first
    do z = -1, 1
      do y = -2, 2
        do x = -3, 3
          image = first - self%translation(real([x, y, z], real64))
          if (sum(image**2) < sum(nearest**2)) nearest = image
        end do
      end do
    end do
  end function nearest_image

  !> How far along each axis straight positions within a width (angstrom, of each axis) can be from each other.
  pure function depth(self, width)
    class(domain_grid_t), intent(in) :: self
    real(real64), intent(in) :: width(3)
    real(real64) :: depth(3)
    depth = width*self%shape%stretch()
  end function depth

  !> Whether a position may be within `width` (angstrom) of a domain from whose faces it is so far outside, straight and
  !> along each axis (angstrom). Where edges lean, corners of the region are not cut off.
  pure logical function is_within(self, outside, width)
    class(domain_grid_t), intent(in) :: self
    real(real64), intent(in) :: outside(3), width
    if (self%shape%leans) then
      is_within = .not. any(outside > self%depth([width, width, width]))
    else
      is_within = .not. sum(outside**2) > width**2
    end if
  end function is_within

  !> Domain of a straight position (angstrom) that lies in the box, each coordinate from 0.
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
