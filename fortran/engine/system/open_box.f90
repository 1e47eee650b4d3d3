!> Models without a periodic box stand in the middle third of a box so large that no atom has an image within reach: all
!> else goes on as in a periodic box, whose faces nobody comes near.
module open_box
  use base_kinds, only: real64
  implicit none
  private
  public :: open_edges, open_filling, open_origin

  !> How far (angstrom) atoms may at least go from where the input has them until their images come within reach.
  real(real64), parameter :: room = 100.0_real64

contains

  !> Edges of the large box for an input in a box with edges `box` and interactions up to `reach` (angstrom).
  pure function open_edges(box, reach) result(edges)
    real(real64), intent(in) :: box(3), reach
    real(real64) :: edges(3)
    edges = 3.0_real64*max(box, reach + room)
  end function open_edges

  !> Where the origin of the input lies in the large box with these edges (angstrom).
  pure function open_origin(edges) result(origin)
    real(real64), intent(in) :: edges(3)
    real(real64) :: origin(3)
    origin = edges/3.0_real64
  end function open_origin

  !> The part of the box along each axis, as fractions of it, in which the model stands.
  pure function open_filling(is_open) result(filled)
    logical, intent(in) :: is_open
    real(real64) :: filled(2)
    filled = [0.0_real64, 1.0_real64]
    if (is_open) filled = filled/3.0_real64 + 1.0_real64/3.0_real64
  end function open_filling

end module open_box
