!> No barostat: the box stays.
module fixed_box
  use base_kinds, only: real64
  use barostat, only: barostat_t
  implicit none
  private
  public :: fixed_box_t

  type, extends(barostat_t) :: fixed_box_t
  contains
    procedure :: changes_box
    procedure :: conserved_part
  end type fixed_box_t

contains

  pure logical function changes_box(self)
    class(fixed_box_t), intent(in) :: self
    associate (unused => self); end associate
    changes_box = .false.
  end function changes_box

  real(real64) function conserved_part(self, volume) result(energy)
    class(fixed_box_t), intent(in) :: self
    real(real64), intent(in) :: volume
    associate (unused_1 => self, unused_2 => volume); end associate
    energy = 0.0_real64
  end function conserved_part

end module fixed_box
