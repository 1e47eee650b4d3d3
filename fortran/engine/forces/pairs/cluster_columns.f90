!> The columns along z that atoms are sorted into before they are cut into clusters, and those of atoms without charge,
!> which are wider where these are kept apart.
module cluster_columns
  use base_kinds, only: real64
  implicit none
  private
  public :: cluster_columns_t

  type :: cluster_columns_t
    !> Columns along x and y, where they begin, and their width (angstrom).
    integer :: n(2) = 0
    real(real64) :: corner(2) = 0.0_real64, width(2) = 0.0_real64
    !> Atoms without charge are kept apart, in columns that are so many of the others wide; 0 = they are not.
    integer :: bare_width = 0
  contains
    procedure :: along
    procedure :: total
    procedure :: number
  end type cluster_columns_t

contains

  !> Column (from 0) along axis 1 or 2; coordinates outside fall into the outermost.
  pure integer function along(self, axis, coordinate)
    class(cluster_columns_t), intent(in) :: self
    integer, intent(in) :: axis
    real(real64), intent(in) :: coordinate
    real(real64) :: place
    place = (coordinate - self%corner(axis))/self%width(axis)
    along = int(max(0.0_real64, min(place, self%n(axis) - 1.0_real64)))
  end function along

  !> Number of columns of all kinds.
  pure integer function total(self)
    class(cluster_columns_t), intent(in) :: self
    total = product(self%n)
    if (self%bare_width > 0) total = ((self%n(1) - 1)/self%bare_width + 1)*per_slab(self)
  end function total

  !> Columns of both kinds in a slab along x that is as wide as a column of bare atoms.
  pure integer function per_slab(self)
    class(cluster_columns_t), intent(in) :: self
    per_slab = self%bare_width*self%n(2) + (self%n(2) - 1)/self%bare_width + 1
  end function per_slab

  !> Number (from 0) of the column at places `x` and `y` along the axes, or of that of the bare atoms which holds it: x slowest,
  !> and the columns of bare atoms behind the others that they lie upon, so that neighbours have near numbers.
  pure integer function number(self, x, y, is_bare) result(column)
    class(cluster_columns_t), intent(in) :: self
    integer, intent(in) :: x, y
    logical, intent(in) :: is_bare
    if (self%bare_width == 0) then
      column = x*self%n(2) + y
      return
    end if
    column = (x/self%bare_width)*per_slab(self)
    if (is_bare) then
      column = column + self%bare_width*self%n(2) + y/self%bare_width
    else
      column = column + mod(x, self%bare_width)*self%n(2) + y
    end if
  end function number

end module cluster_columns
