!> Owned and ghost atoms of one domain of a system that is wholly in memory: the contract of the halo (half shell,
!> ghosts from positive neighbours only, already shifted) in the simplest form, for tests and measurements of the
!> forces.
module image_ghosts
  use base_kinds, only: int64, real64
  implicit none
  private
  public :: image_ghosts_t

  type :: image_ghosts_t
    integer :: n_owned = 0, n_total = 0
    !> Of each local atom: its number in the system, its position, its global id.
    integer, allocatable :: atom(:)
    real(real64), allocatable :: position(:, :)
    integer(int64), allocatable :: global_id(:)
    integer, allocatable :: exclusion_first(:), exclusion_partner(:)
  contains
    procedure :: build
  end type image_ghosts_t

contains

  !> Domain `rank` (x fastest) of `dims`; positions in [0, box); `exclusion(2, :)` pairs of atoms, each once.
  subroutine build(self, rank, dims, box, reach, position, exclusion)
    class(image_ghosts_t), intent(out) :: self
    integer, intent(in) :: rank, dims(3), exclusion(:, :)
    real(real64), intent(in) :: box(3), reach, position(:, :)
    integer :: n, i, x, y, z, place(3), home(3), offset(3), capacity, pass
    real(real64) :: lower(3), upper(3), r(3), gap(3)

    n = size(position, 2)
    place = [mod(rank, dims(1)), mod(rank/dims(1), dims(2)), rank/(dims(1)*dims(2))]
    lower = box*place/dims
    upper = box*(place + 1)/dims
    do pass = 1, 2
      if (pass == 2) then
        capacity = self%n_total
        allocate (self%atom(capacity), self%position(3, capacity))
      end if
      self%n_owned = 0
      do i = 1, n
        if (any(floor(position(:, i)*dims/box) /= place)) cycle
        self%n_owned = self%n_owned + 1
        if (pass == 2) self%atom(self%n_owned) = i
        if (pass == 2) self%position(:, self%n_owned) = position(:, i)
      end do
      self%n_total = self%n_owned
      do i = 1, n
        home = floor(position(:, i)*dims/box)
        do z = -1, 1
          do y = -1, 1
            do x = -1, 1
              offset = home + [x, y, z]*dims - place
              if (any(abs(offset) > 1) .or. .not. is_positive(offset)) cycle
              r = position(:, i) + [x, y, z]*box
              gap = max(0.0_real64, lower - r, r - upper)
              if (sum(gap**2) > reach**2) cycle
              self%n_total = self%n_total + 1
              if (pass == 2) self%atom(self%n_total) = i
              if (pass == 2) self%position(:, self%n_total) = r
            end do
          end do
        end do
      end do
    end do
    self%global_id = int(self%atom, int64)
    call make_exclusions(self, n, box, position, exclusion)
  end subroutine build

  pure logical function is_positive(offset)
    integer, intent(in) :: offset(3)
    is_positive = offset(3) > 0 .or. (offset(3) == 0 .and. (offset(2) > 0 .or. (offset(2) == 0 .and. offset(1) > 0)))
  end function is_positive

  !> Rows over owned atoms; the partner is the local copy at the nearest image.
  subroutine make_exclusions(self, n, box, position, exclusion)
    type(image_ghosts_t), intent(inout) :: self
    integer, intent(in) :: n, exclusion(:, :)
    real(real64), intent(in) :: box(3), position(:, :)
    integer, allocatable :: first(:), partner(:), copy_first(:), copy(:), length(:)
    integer :: i, k, m, a, b, pass, count
    real(real64) :: d(3), wanted(3)

    ! All exclusions of each atom of the system, and all local copies of it.
    allocate (first(n + 1), copy_first(n + 1), source=0)
    do k = 1, size(exclusion, 2)
      first(exclusion(:, k) + 1) = first(exclusion(:, k) + 1) + 1
    end do
    do k = 1, self%n_total
      copy_first(self%atom(k) + 1) = copy_first(self%atom(k) + 1) + 1
    end do
    first(1) = 1
    copy_first(1) = 1
    do i = 1, n
      first(i + 1) = first(i + 1) + first(i)
      copy_first(i + 1) = copy_first(i + 1) + copy_first(i)
    end do
    allocate (partner(first(n + 1)), copy(copy_first(n + 1)), length(n))
    length = 0
    do k = 1, size(exclusion, 2)
      a = exclusion(1, k)
      b = exclusion(2, k)
      partner(first(a) + length(a)) = b
      partner(first(b) + length(b)) = a
      length([a, b]) = length([a, b]) + 1
    end do
    length = 0
    do k = 1, self%n_total
      a = self%atom(k)
      copy(copy_first(a) + length(a)) = k
      length(a) = length(a) + 1
    end do
    allocate (self%exclusion_first(self%n_owned + 1))
    do pass = 1, 2
      count = 0
      do i = 1, self%n_owned
        self%exclusion_first(i) = count + 1
        a = self%atom(i)
        do k = first(a), first(a + 1) - 1
          b = partner(k)
          wanted = position(:, b) - position(:, a)
          wanted = wanted - box*nint(wanted/box)
          do m = copy_first(b), copy_first(b + 1) - 1
            d = self%position(:, copy(m)) - self%position(:, i) - wanted
            if (maxval(abs(d)) > 1.0e-6_real64) cycle
            count = count + 1
            if (pass == 2) self%exclusion_partner(count) = copy(m)
          end do
        end do
      end do
      self%exclusion_first(self%n_owned + 1) = count + 1
      if (pass == 1) allocate (self%exclusion_partner(count))
    end do
  end subroutine make_exclusions

end module image_ghosts
