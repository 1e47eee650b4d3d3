!> Where the borders between domains should move so that slabs of domains get equal work.
module comm_load_balance
  use base_kinds, only: real64
  implicit none
  private
  public :: balanced_borders

  !> Share of the way to the place that would be right if work were spread evenly within each slab.
  real(real64), parameter :: stride = 0.7_real64
  !> Slabs that were made as narrow as may be are so to within rounding.
  real(real64), parameter :: almost = 1.0_real64 - 1.0e-9_real64

contains

  !> Other borders along one axis, fractions of the box from 0 to 1, for slabs that had so much `work`. A border stays
  !> between its old neighbours and between its neighbours of evenly spaced borders, so that atoms change to an adjacent
  !> domain at most, now and when borders are spaced evenly again. `even`: evenly spaced ones; `least`: narrowest slab, at
  !> most the width between these; where the old borders do not leave so much, evenly spaced ones are returned.
  pure function balanced_borders(border, even, work, least) result(new)
    real(real64), intent(in) :: border(0:), even(0:), work(:), least
    real(real64) :: new(0:size(work)), done(0:size(work)), wanted
    integer :: n, k, j

    n = size(work)
    new = even
    if (any(border(1:n) - border(:n - 1) < almost*least) .or. .not. sum(work) > 0.0_real64) return
    done(0) = 0.0_real64
    do k = 1, n
      done(k) = done(k - 1) + work(k)
    end do
    do k = 1, n - 1
      wanted = done(n)*k/n
      j = 1
      do while (j < n .and. done(j) < wanted)
        j = j + 1
      end do
      new(k) = border(j - 1)
      if (work(j) > 0.0_real64) &
        new(k) = border(j - 1) + (border(j) - border(j - 1))*(wanted - done(j - 1))/work(j)
      new(k) = border(k) + stride*(new(k) - border(k))
      new(k) = max(border(k - 1), even(k - 1), min(border(k + 1), even(k + 1), new(k)))
    end do
    do k = 1, n - 1
      new(k) = max(new(k), new(k - 1) + least)
    end do
    do k = n - 1, 1, -1
      new(k) = min(new(k), new(k + 1) - least)
    end do
  end function balanced_borders

end module comm_load_balance
