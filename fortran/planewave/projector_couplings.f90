!> The projectors of all atoms in one list, and what couples their projections. No waves.
module projector_couplings
  use base_kinds, only: real64
  use ions, only: ions_t
  implicit none
  private
  public :: projector_couplings_t

  !> Of one species: l of each projector with all magnetic quantum numbers, which number m (from 1) and which radial
  !> function it has; couplings (hartree).
  type :: species_couplings_t
    integer, allocatable :: l(:), m(:), radial(:)
    real(real64), allocatable :: matrix(:, :)
  end type species_couplings_t

  type :: projector_couplings_t
    type(species_couplings_t), allocatable :: species(:)
    !> The first projector of each atom, and the end.
    integer, allocatable :: first(:)
  contains
    procedure :: create
    procedure :: n_projectors
    procedure :: couple
    procedure :: add_forces
  end type projector_couplings_t

contains

  pure subroutine create(self, system)
    class(projector_couplings_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    integer :: s, a, i, j, k, m
    allocate (self%species(size(system%pseudo)), self%first(system%n_atoms() + 1))
    do s = 1, size(system%pseudo)
      associate (pseudo => system%pseudo(s), of => self%species(s))
        of%radial = [((k, m=1, 2*pseudo%l(k) + 1), k=1, size(pseudo%l))]
        of%m = [((m, m=1, 2*pseudo%l(k) + 1), k=1, size(pseudo%l))]
        of%l = pseudo%l(of%radial)
        allocate (of%matrix(size(of%l), size(of%l)), source=0.0_real64)
        do i = 1, size(of%l)
          do j = 1, size(of%l)
            if (of%m(i) == of%m(j) .and. of%l(i) == of%l(j)) of%matrix(i, j) = pseudo%h(of%radial(i), of%radial(j))
          end do
        end do
      end associate
    end do
    self%first(1) = 1
    do a = 1, system%n_atoms()
      self%first(a + 1) = self%first(a) + size(self%species(system%species(a))%l)
    end do
  end subroutine create

  !> Projectors of all atoms.
  pure integer function n_projectors(self)
    class(projector_couplings_t), intent(in) :: self
    n_projectors = self%first(size(self%first)) - 1
  end function n_projectors

  !> Couplings times projections (projectors, states), atom by atom.
  pure function couple(self, system, projection) result(coupled)
    class(projector_couplings_t), intent(in) :: self
    type(ions_t), intent(in) :: system
    real(real64), intent(in) :: projection(:, :)
    real(real64) :: coupled(size(projection, 1), size(projection, 2))
    integer :: a
    do a = 1, system%n_atoms()
      associate (first => self%first(a), last => self%first(a + 1) - 1)
        if (last >= first) &
          coupled(first:last, :) = matmul(self%species(system%species(a))%matrix, projection(first:last, :))
      end associate
    end do
  end function couple

  !> Add forces (3, n) from projections times their derivatives, `change` (projectors, states), along an axis, with
  !> `occupation` electrons in each state.
  pure subroutine add_forces(self, axis, occupation, change, force)
    class(projector_couplings_t), intent(in) :: self
    integer, intent(in) :: axis
    real(real64), intent(in) :: occupation, change(:, :)
    real(real64), intent(inout) :: force(:, :)
    integer :: a
    do a = 1, size(force, 2)
      force(axis, a) = force(axis, a) - 2.0_real64*occupation*sum(change(self%first(a):self%first(a + 1) - 1, :))
    end do
  end subroutine add_forces

end module projector_couplings
