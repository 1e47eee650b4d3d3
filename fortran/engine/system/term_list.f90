!> Terms of one kind (bonds, angles, ...) of a molecule template: their atoms, their parameters, and which terms an atom
!> takes part in.
module term_list
  use base_kinds, only: real64
  implicit none
  private
  public :: term_list_t, n_kinds, is_bond, is_angle, is_urey_bradley, is_dihedral, is_improper, is_cmap, &
            is_pair14, is_gaussian, is_stacking, is_base_pair, is_cross_stacking, is_exclusion, kind_name, kind_width, &
            kind_columns

  integer, parameter :: is_bond = 1, is_angle = 2, is_urey_bradley = 3, is_dihedral = 4, is_improper = 5, &
                        is_cmap = 6, is_pair14 = 7, is_gaussian = 8, is_stacking = 9, is_base_pair = 10, &
                        is_cross_stacking = 11, is_exclusion = 12, n_kinds = 12
  character(len=14), parameter :: kind_name(n_kinds) = [character(len=14) :: &
    "bond", "angle", "urey_bradley", "dihedral", "improper", "cmap", "pair14", "gaussian", "stacking", "base_pair", &
    "cross_stacking", "exclusion"]
  !> Atoms in a term of each kind.
  integer, parameter :: kind_width(n_kinds) = [2, 3, 2, 4, 4, 5, 2, 4, 3, 4, 5, 2]
  !> Parameters of a term of each kind, at most.
  integer, parameter :: kind_columns(n_kinds) = [3, 3, 3, 3, 3, 3, 3, 3, 5, 7, 7, 3]

  type :: term_list_t
    integer :: n = 0
    !> `atom(kind_width, n)`, counted from 1 within the template; of a template of pieces as if the atoms of the
    !> neighbour stood before and behind the piece.
    integer, allocatable :: atom(:, :)
    !> `parameter(kind_columns, n)` in the order of the file (angles in radian); unused ones are 0.
    real(real64), allocatable :: parameter(:, :)
    !> Left out when constraints are on.
    logical, allocatable :: rigid(:)
    !> Terms of piece p: `first_of_piece(p):first_of_piece(p+1)-1`.
    integer, allocatable :: first_of_piece(:)
    !> Terms of atom i: `term_of_atom(first_of_atom(i):first_of_atom(i+1)-1)`.
    integer, allocatable :: first_of_atom(:), term_of_atom(:)
  contains
    procedure :: index_atoms
  end type term_list_t

contains

  !> Build the atom-to-term lists for pieces with the atoms `first_atom(p):first_atom(p+1)-1`.
  pure subroutine index_atoms(self, first_atom)
    class(term_list_t), intent(inout) :: self
    integer, intent(in) :: first_atom(:)
    integer :: filled(first_atom(size(first_atom))), pass, p, t, k, a
    allocate (self%first_of_atom(size(filled)))
    do pass = 1, 2
      filled = 0
      do p = 1, size(first_atom) - 1
        do t = self%first_of_piece(p), self%first_of_piece(p + 1) - 1
          do k = 1, size(self%atom, 1)
            a = self%atom(k, t)
            if (a < first_atom(p) .or. a >= first_atom(p + 1)) cycle
            if (pass == 2) self%term_of_atom(self%first_of_atom(a) + filled(a)) = t
            filled(a) = filled(a) + 1
          end do
        end do
      end do
      if (pass == 2) return
      self%first_of_atom(1) = 1
      do a = 1, size(filled) - 1
        self%first_of_atom(a + 1) = self%first_of_atom(a) + filled(a)
      end do
      allocate (self%term_of_atom(sum(filled)))
    end do
  end subroutine index_atoms

end module term_list
