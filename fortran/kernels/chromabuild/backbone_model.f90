!> The tables of backbone_closure, and the duplex whose bases they are closed over; angstrom and radian.
module backbone_model
  use iso_c_binding, only: c_f_pointer, c_loc, c_null_ptr
  use iso_fortran_env, only: int32, int64, real32, real64
  implicit none
  private
  public :: backbone_t, terms_t, new_backbone, delete_backbone, backbone_of
  public :: sugar_atoms, phosphate_atoms, c1_atom, base_atoms, atoms_most, unknowns, tail, head, previous_atoms
  public :: window_free, window_pairs, window, needs_phosphate

  integer(int32), parameter :: sugar_atoms = 11, phosphate_atoms = 3, c1_atom = 7
  integer(int32), parameter :: base_atoms = 11, atoms_most = sugar_atoms + base_atoms
  integer(int32), parameter :: unknowns = 3 * sugar_atoms
  integer(int32), parameter :: tail = 9, head = 15          !! coordinates coupled to the next, to the previous
  integer(int32), parameter :: previous_atoms = 3           !! C4', C3', O3' of the previous nucleotide
  integer(int32), parameter :: window_free = previous_atoms + sugar_atoms
  integer(int32), parameter :: window_pairs = window_free * (window_free + 1) / 2
  integer(int32), parameter :: window = window_free + 3     !! and the base's N with its two neighbours
  integer(int32), parameter :: needs_phosphate = previous_atoms + phosphate_atoms !! absent at a 5' end up to here

  !> Terms over the same number of atoms each, of a window.
  type :: terms_t
    integer(int32), allocatable :: atom(:, :)              !! (atoms of a term, terms)
    real(real64), allocatable :: target(:, :), sigma(:)    !! (terms, 4 bases) and (terms); angstrom, or radian
  end type terms_t

  type :: backbone_t
    ! Atoms: bases are 1 A, 2 C, 3 G, 4 T; classes are C, N, O, P, methyl.
    integer(int32) :: base_size(4) = 0                     !! heavy atoms of each base without C1'
    integer(int32) :: base_class(base_atoms, 4) = 0, sugar_class(sugar_atoms) = 0
    integer(int32) :: excluded_own(sugar_atoms, atoms_most, 4) = 0   !! 1: within three bonds; second index sugar, then base
    integer(int32) :: excluded_next(sugar_atoms, sugar_atoms) = 0    !! 1: within three bonds of an atom of the next nucleotide
    type(terms_t) :: terms(2:4)                            !! bonds, angles and torsions, by their number of atoms
    real(real64) :: c1_sigma = 1
    real(real64) :: contact_distance(8, 8) = 0, contact_sigma = 1        !! by atom class
    ! The duplex: strand I, then strand J, each 5' to 3'.
    integer(int32) :: n = 0                                !! nucleotides
    integer(int32), allocatable :: base_type(:)
    real(real64), allocatable :: base_position(:, :, :)    !! (3, 11, n); the first three are N and its two neighbours
    real(real64), allocatable :: c1_position(:, :)         !! (3, n), where the base wants C1'
    integer(int32), allocatable :: obstacle_first(:)       !! those of nucleotide i are obstacle_first(i)+1 .. obstacle_first(i+1)
    integer(int32), allocatable :: obstacle_class(:)
    real(real64), allocatable :: obstacle_position(:, :)
  end type backbone_t

contains

  !> A model of a backbone on the heap, as an opaque number.
  function new_backbone() result(handle)
    integer(int64) :: handle
    type(backbone_t), pointer :: backbone
    allocate (backbone)
    handle = transfer(c_loc(backbone), handle)
  end function new_backbone

  !> What belongs to a number from `new_backbone`.
  function backbone_of(handle) result(backbone)
    integer(int64), intent(in) :: handle
    type(backbone_t), pointer :: backbone
    call c_f_pointer(transfer(handle, c_null_ptr), backbone)
  end function backbone_of

  subroutine delete_backbone(handle)
    integer(int64), intent(in) :: handle
    type(backbone_t), pointer :: backbone
    backbone => backbone_of(handle)
    deallocate (backbone)
  end subroutine delete_backbone

end module backbone_model
