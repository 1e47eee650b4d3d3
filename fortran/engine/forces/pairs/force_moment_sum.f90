!> The virial of forces on atoms.
module force_moment_sum
  use base_kinds, only: real64
  implicit none
  private
  public :: force_moment

  !> Runs of atoms whose sums are formed together.
  integer, parameter :: chunk_atoms = 4096

contains

  !> Sum of r f over all atoms. The forces of pairs add up to zero, so that any origin serves for what they change.
  !> Positions (3, atoms) and `origin` in angstrom, forces in kcal/mol/angstrom.
  function force_moment(origin, position, force) result(moment)
    real(real64), intent(in) :: origin(3), position(:, :), force(:, :)
    real(real64) :: moment(3, 3)
    real(real64), allocatable :: chunk_moment(:, :, :)
    integer :: i, chunk, axis

    allocate (chunk_moment(3, 3, (size(position, 2) + chunk_atoms - 1)/chunk_atoms), source=0.0_real64)
    !$omp parallel do schedule(static) private(i, axis)
    do chunk = 1, size(chunk_moment, 3)
      do i = (chunk - 1)*chunk_atoms + 1, min(size(position, 2), chunk*chunk_atoms)
        do axis = 1, 3
          chunk_moment(:, axis, chunk) = chunk_moment(:, axis, chunk) + (position(:, i) - origin)*force(axis, i)
        end do
      end do
    end do
    !$omp end parallel do
    moment = sum(chunk_moment, dim=3)
  end function force_moment

end module force_moment_sum
