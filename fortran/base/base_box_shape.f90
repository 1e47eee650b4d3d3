!> How the edges of a periodic box lean, which is then triclinic. They are a = (a_x, 0, 0), b = (b_x, b_y, 0) and
!> c = (c_x, c_y, c_z). The diagonal is what is called the box elsewhere: its product is the volume. What stands beside it
!> is kept as shares of the diagonal, which stay as they are when all edges are scaled alike.
!>
!> A shear takes the edges to the axes. Positions that it has made straight, over the box, are fractions of the edges,
!> so that grids of domains and of waves are the same for all shapes. Distances are those of positions as they are.
module base_box_shape
  use base_fixed_point, only: lattice_shifter
  use base_kinds, only: real64
  implicit none
  private
  public :: box_shape_t, shape_of, translation

  type :: box_shape_t
    logical :: leans = .false.
    !> b_x/b_y, c_x/c_z, c_y/c_z.
    real(real64) :: lean(3) = 0.0_real64
  contains
    procedure :: straight
    procedure :: slanted
    procedure :: of_gradient
    procedure :: tilt
    procedure :: stretch
    procedure :: edge_lengths
    procedure :: shortest_translation
    procedure :: is_compact
  end type box_shape_t

contains

  !> The shape of a box with these shares (b_x/b_y, c_x/c_z, c_y/c_z).
  pure type(box_shape_t) function shape_of(lean)
    real(real64), intent(in) :: lean(3)
    shape_of = box_shape_t(any(abs(lean) > 0.0_real64), lean)
  end function shape_of

  !> Vector from the edges to the axes.
  pure function straight(self, vector)
    class(box_shape_t), intent(in) :: self
    real(real64), intent(in) :: vector(3)
    real(real64) :: straight(3)
    straight = vector
    if (.not. self%leans) return
    straight(2) = vector(2) - self%lean(3)*vector(3)
    straight(1) = vector(1) - self%lean(1)*straight(2) - self%lean(2)*vector(3)
  end function straight

  !> Vector back from the axes to the edges.
  pure function slanted(self, vector)
    class(box_shape_t), intent(in) :: self
    real(real64), intent(in) :: vector(3)
    real(real64) :: slanted(3)
    slanted = vector
    if (.not. self%leans) return
    slanted(1) = vector(1) + self%lean(1)*vector(2) + self%lean(2)*vector(3)
    slanted(2) = vector(2) + self%lean(3)*vector(3)
  end function slanted

  !> A gradient by straight positions, or a wave vector of them, as one by positions: the transposed shear.
  pure function of_gradient(self, gradient)
    class(box_shape_t), intent(in) :: self
    real(real64), intent(in) :: gradient(3)
    real(real64) :: of_gradient(3)
    of_gradient = gradient
    if (.not. self%leans) return
    of_gradient(2) = gradient(2) - self%lean(1)*gradient(1)
    of_gradient(3) = gradient(3) - self%lean(2)*gradient(1) - self%lean(3)*of_gradient(2)
  end function of_gradient

  !> b_x, c_x and c_y (angstrom) of a box (angstrom), on the lattice of positions of the deterministic mode, so that
  !> translations are exact there.
  pure function tilt(self, box)
    class(box_shape_t), intent(in) :: self
    real(real64), intent(in) :: box(3)
    real(real64) :: tilt(3)
    tilt = 0.0_real64
    if (.not. self%leans) return
    associate (shifter => lattice_shifter(box))
      tilt = (self%lean*[box(2), box(3), box(3)] + shifter) - shifter
    end associate
  end function tilt

  !> How much farther along each axis straight positions can be from each other than positions: edges of the straight
  !> box over distances between opposite faces.
  pure function stretch(self)
    class(box_shape_t), intent(in) :: self
    real(real64) :: stretch(3)
    integer :: axis
    real(real64) :: normal(3)
    stretch = 1.0_real64
    if (.not. self%leans) return
    do axis = 1, 3
      normal = 0.0_real64
      normal(axis) = 1.0_real64
      stretch(axis) = norm2(self%of_gradient(normal))
    end do
  end function stretch

  !> Lengths of the edges (angstrom) of a box (angstrom).
  pure function edge_lengths(self, box) result(length)
    class(box_shape_t), intent(in) :: self
    real(real64), intent(in) :: box(3)
    real(real64) :: length(3), tilt(3)
    length = box
    if (.not. self%leans) return
    tilt = self%tilt(box)
    length(2) = norm2([tilt(1), box(2)])
    length(3) = norm2([tilt(2:3), box(3)])
  end function edge_lengths

  !> Distance (angstrom) of a point from its nearest image in a box (angstrom).
  pure real(real64) function shortest_translation(self, box) result(shortest)
    class(box_shape_t), intent(in) :: self
    real(real64), intent(in) :: box(3)
    real(real64) :: tilt(3)
    integer :: x, y, z
    shortest = minval(box)
    if (.not. self%leans) return
    tilt = self%tilt(box)
    shortest = box(1)
    do z = 0, 1
      do y = -2, 2
        do x = -3, 3
          if (x == 0 .and. y == 0 .and. z == 0) cycle
          shortest = min(shortest, norm2(translation(real([x, y, z], real64), box, tilt)))
        end do
      end do
    end do
  end function shortest_translation

  !> Whether no edge leans by more than those before it are long: nearest images are then among neighbours.
  pure logical function is_compact(self, box)
    class(box_shape_t), intent(in) :: self
    real(real64), intent(in) :: box(3)
    real(real64), parameter :: whole = 1.0_real64 + 1.0e-6_real64
    real(real64) :: tilt(3)
    tilt = self%tilt(box)
    is_compact = all(abs(tilt) <= whole*[box(1), box(1), box(2)])
  end function is_compact

  !> The sum of whole numbers of edges: `box` the diagonal, `tilt` b_x, c_x and c_y (angstrom).
  pure function translation(number, box, tilt)
    real(real64), intent(in) :: number(3), box(3), tilt(3)
    real(real64) :: translation(3)
    translation(1) = number(1)*box(1) + (number(2)*tilt(1) + number(3)*tilt(2))
    translation(2) = number(2)*box(2) + number(3)*tilt(3)
    translation(3) = number(3)*box(3)
  end function translation

end module base_box_shape
