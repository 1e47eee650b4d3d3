!> The virtual sites among a rank's owned atoms: placed after each change of positions, and their forces handed to their
!> parents, r = r1 + w2 (r2 - r1) + w3 (r3 - r1). Sites belong to the constraint group of their parents, so nothing is
!> communicated. A site is a linear function of its parents: the virial, the sum of r f, is the same before and after its
!> force is handed over.
module virtual_sites
  use base_kinds, only: real64
  use atoms, only: atoms_t
  use base_fixed_point, only: rounding_t
  use topology, only: topology_t
  implicit none
  private
  public :: virtual_sites_t

  type :: virtual_sites_t
    integer, private :: n = 0
    !> Sites of one constraint group after another: those of the k-th that has any are `first(k):first(k+1)-1`.
    integer, private :: n_groups = 0
    integer, allocatable, private :: first(:)
    !> Local indices of site and parents, (4, n); weights of the second and third parent, (2, n).
    integer, allocatable, private :: atom(:, :)
    real(real64), allocatable, private :: weight(:, :)
  contains
    procedure :: assign
    procedure :: place
    procedure :: place_kept
    procedure :: hand_over
    procedure :: clear
  end type virtual_sites_t

contains

  !> List the sites of the owned groups after these changed.
  subroutine assign(self, topology, atoms)
    class(virtual_sites_t), intent(inout) :: self
    type(topology_t), intent(in) :: topology
    type(atoms_t), intent(in) :: atoms
    integer :: pass, g, i, k, s, group
    logical :: found
    if (.not. topology%has_sites) return
    do pass = 1, 2
      self%n = 0
      self%n_groups = 0
      do g = 1, atoms%n_groups
        i = atoms%group_first(g)
        found = .false.
        associate (template => topology%templates(atoms%template(atoms%kind(i))))
          group = template%group_of_atom(atoms%index_in_template(atoms%kind(i)))
          do s = 1, template%sites%n
            if (template%group_of_atom(template%sites%atom(1, s)) /= group) cycle
            self%n = self%n + 1
            if (.not. found) then
              found = .true.
              self%n_groups = self%n_groups + 1
              if (pass == 2) self%first(self%n_groups) = self%n
            end if
            if (pass == 1) cycle
            do k = 1, 4
              self%atom(k, self%n) = i - 1 + template%place_in_group(template%sites%atom(k, s))
            end do
            self%weight(:, self%n) = template%sites%weight(2:, s)
          end do
        end associate
      end do
      if (pass == 2) exit
      if (allocated(self%atom)) deallocate (self%atom, self%weight, self%first)
      allocate (self%atom(4, self%n), self%weight(2, self%n), self%first(self%n_groups + 1))
    end do
    self%first(self%n_groups + 1) = self%n + 1
  end subroutine assign

  !> Place the sites: `position` (3, atoms), angstrom. What is added to the place of the first parent is `rounding`ed, so
  !> that the image in which a rank sees a group does not matter.
  subroutine place(self, position, rounding)
    class(virtual_sites_t), intent(in) :: self
    real(real64), intent(inout) :: position(:, :)
    type(rounding_t), intent(in) :: rounding
    integer :: s
    !$omp parallel do schedule(static)
    do s = 1, self%n
      associate (atom => self%atom(:, s))
        position(:, atom(1)) = position(:, atom(2)) + &
                               rounding%on_lattice(self%weight(1, s)*(position(:, atom(3)) - position(:, atom(2))) + &
                                                   self%weight(2, s)*(position(:, atom(4)) - position(:, atom(2))))
      end associate
    end do
    !$omp end parallel do
  end subroutine place

  !> Place the sites, and let `kept`, earlier positions (3, atoms), have the same places for them: sites move with their
  !> parents, and what is learnt of a step is learnt of the parents alone.
  subroutine place_kept(self, position, kept, rounding)
    class(virtual_sites_t), intent(in) :: self
    real(real64), intent(inout) :: position(:, :), kept(:, :)
    type(rounding_t), intent(in) :: rounding
    integer :: s
    call self%place(position, rounding)
    !$omp parallel do schedule(static)
    do s = 1, self%n
      kept(:, self%atom(1, s)) = position(:, self%atom(1, s))
    end do
    !$omp end parallel do
  end subroutine place_kept

  !> Hand the forces on sites (3, atoms) to their parents.
  subroutine hand_over(self, force)
    class(virtual_sites_t), intent(in) :: self
    real(real64), intent(inout) :: force(:, :)
    real(real64) :: second(3), third(3)
    integer :: g, s
    ! Two sites of a group may have the same parents: threads share the groups.
    !$omp parallel do schedule(static) private(s, second, third)
    do g = 1, self%n_groups
      do s = self%first(g), self%first(g + 1) - 1
        associate (atom => self%atom(:, s))
          second = self%weight(1, s)*force(:, atom(1))
          third = self%weight(2, s)*force(:, atom(1))
          force(:, atom(2)) = force(:, atom(2)) + (force(:, atom(1)) - second - third)
          force(:, atom(3)) = force(:, atom(3)) + second
          force(:, atom(4)) = force(:, atom(4)) + third
          force(:, atom(1)) = 0.0_real64
        end associate
      end do
    end do
    !$omp end parallel do
  end subroutine hand_over

  !> Set what sites have in an array (3, atoms) to zero.
  subroutine clear(self, values)
    class(virtual_sites_t), intent(in) :: self
    real(real64), intent(inout) :: values(:, :)
    integer :: s
    !$omp parallel do schedule(static)
    do s = 1, self%n
      values(:, self%atom(1, s)) = 0.0_real64
    end do
    !$omp end parallel do
  end subroutine clear

end module virtual_sites
