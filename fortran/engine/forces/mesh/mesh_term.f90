!> A term of the force field that is summed on a mesh over the ranks with atoms: the mesh follows box and domain.
module mesh_term
  use base_kinds, only: real64
  use force_term, only: force_term_t
  use pme, only: pme_t
  implicit none
  private
  public :: mesh_term_t

  type, abstract, extends(force_term_t) :: mesh_term_t
    type(pme_t) :: pme
  contains
    procedure :: set_box
    procedure :: set_domain
  end type mesh_term_t

contains

  subroutine set_box(self, box)
    class(mesh_term_t), intent(inout) :: self
    real(real64), intent(in) :: box(3)
    call self%pme%set_box(box)
  end subroutine set_box

  subroutine set_domain(self, lower, upper)
    class(mesh_term_t), intent(inout) :: self
    real(real64), intent(in) :: lower(3), upper(3)
    call self%pme%set_domain(lower, upper)
  end subroutine set_domain

end module mesh_term
