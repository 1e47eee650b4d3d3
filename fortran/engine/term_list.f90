!> Terms of one kind (bonds, angles, ...) of a molecule template: their atoms, their parameters, and which terms an atom
!> takes part in.
module term_list
  use precision, only: real64
  implicit none
  private
  public :: term_list_t, n_kinds, is_bond, is_angle, is_urey_bradley, is_dihedral, is_improper, is_cmap, &
            is_pair14, is_exclusion, kind_name, kind_width

  integer, parameter :: is_bond = 1, is_angle = 2, is_urey_bradley = 3, is_dihedral = 4, is_improper = 5, &
                        is_cmap = 6, is_pair14 = 7, is_exclusion = 8, n_kinds = 8
  character(len=12), parameter :: kind_name(n_kinds) = &
    ["bond        ", "angle       ", "urey_bradley", "dihedral    ", "improper    ", "cmap        ", &
     "pair14      ", "exclusion   "]
  !> Atoms in a term of each kind.
  integer, parameter :: kind_width(n_kinds) = [2, 3, 2, 4, 4, 5, 2, 2]

  type :: term_list_t
    integer :: n = 0
    !> `atom(kind_width, n)`, counted from 1 within the molecule.
    integer, allocatable :: atom(:, :)
    !> `parameter(3, n)` in the order of the file (angles in radian); unused ones are 0.
    real(real64), allocatable :: parameter(:, :)
    !> Left out when constraints are on.
    logical, allocatable :: rigid(:)
    !> Terms of atom i: `term_of_atom(first_of_atom(i):first_of_atom(i+1)-1)`.
    integer, allocatable :: first_of_atom(:), term_of_atom(:)
  contains
    procedure :: index_atoms
  end type term_list_t

contains

  !> Build the atom-to-term lists for a molecule of `n_atoms` atoms.
  pure subroutine index_atoms(self, n_atoms)
    class(term_list_t), intent(inout) :: self
    integer, intent(in) :: n_atoms
    integer :: filled(n_atoms), t, k, a
    allocate (self%first_of_atom(n_atoms + 1), self%term_of_atom(size(self%atom)))
    filled = 0
    do t = 1, self%n
      do k = 1, size(self%atom, 1)
        filled(self%atom(k, t)) = filled(self%atom(k, t)) + 1
      end do
    end do
    self%first_of_atom(1) = 1
    do a = 1, n_atoms
      self%first_of_atom(a + 1) = self%first_of_atom(a) + filled(a)
    end do
    filled = 0
    do t = 1, self%n
      do k = 1, size(self%atom, 1)
        a = self%atom(k, t)
        self%term_of_atom(self%first_of_atom(a) + filled(a)) = t
        filled(a) = filled(a) + 1
      end do
    end do
  end subroutine index_atoms

end module term_list
