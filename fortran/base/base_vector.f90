!> Algebra of vectors in space.
module base_vector
  use base_kinds, only: real64
  implicit none
  private
  public :: cross

contains

  pure function cross(a, b)
    real(real64), intent(in) :: a(3), b(3)
    real(real64) :: cross(3)
    cross = [a(2)*b(3) - a(3)*b(2), a(3)*b(1) - a(1)*b(3), a(1)*b(2) - a(2)*b(1)]
  end function cross

end module base_vector
