!> What the atoms of clusters have to interact by, where those without charge are kept apart.
module cluster_contents
  implicit none
  private
  public :: cluster_contents_t

  !> Atoms of an i cluster, which is half of a j cluster.
  integer, parameter :: half_size = 4

  type :: cluster_contents_t
    private
    !> Whether i clusters have atoms with charges, and with Lennard-Jones terms; not there where nothing was noted.
    logical, allocatable :: has_charge(:), has_lj(:)
  contains
    procedure :: note
    procedure :: interact
  end type cluster_contents_t

contains

  !> Note what the atoms have: `slot_atom` as in module pair_list, the others of all atoms.
  subroutine note(self, slot_atom, has_lj, has_charge)
    class(cluster_contents_t), intent(inout) :: self
    integer, intent(in) :: slot_atom(:)
    logical, intent(in) :: has_lj(:), has_charge(:)
    integer :: i
    allocate (self%has_lj(size(slot_atom)/half_size), self%has_charge(size(slot_atom)/half_size))
    !$omp parallel do schedule(static)
    do i = 1, size(self%has_lj)
      associate (atom => slot_atom(half_size*(i - 1) + 1:half_size*i))
        self%has_lj(i) = any(has_lj(max(atom, 1)) .and. atom > 0)
        self%has_charge(i) = any(has_charge(max(atom, 1)) .and. atom > 0)
      end associate
    end do
    !$omp end parallel do
  end subroutine note

  !> Whether any atoms of i cluster `i` and j cluster `j` interact.
  pure logical function interact(self, i, j)
    class(cluster_contents_t), intent(in) :: self
    integer, intent(in) :: i, j
    interact = .true.
    if (.not. allocated(self%has_lj)) return
    interact = self%has_charge(i) .and. (self%has_charge(2*j - 1) .or. self%has_charge(2*j)) .or. &
               self%has_lj(i) .and. (self%has_lj(2*j - 1) .or. self%has_lj(2*j))
  end function interact

end module cluster_contents
