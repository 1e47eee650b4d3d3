!> The Kohn-Sham energy of states in a box, its derivative with respect to their coefficients, and the forces on ions:
!> what minimisation and dynamics ask for, whichever layer holds the states. Gamma point, all states with the same
!> occupation. Atomic units.
!>
!> Coefficients are an array (rows, columns) that a layer lays out: minimisation and dynamics work on its elements, and
!> leave to the layer all that mixes states.
module kohn_sham
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use comm_communicator, only: communicator_t
  use ions, only: ions_t
  use message_traffic, only: traffic_t
  use wave_sphere, only: sphere_t
  use xc_functional, only: xc_t
  implicit none
  private
  public :: kohn_sham_t, energies_t

  !> Parts of the energy (hartree).
  type :: energies_t
    real(real64) :: kinetic = 0.0_real64, hartree = 0.0_real64, local = 0.0_real64, nonlocal = 0.0_real64, &
                    xc = 0.0_real64, ewald = 0.0_real64
  contains
    procedure :: total
  end type energies_t

  type, abstract :: kohn_sham_t
    type(communicator_t) :: comm
    !> Waves of states: those of this rank, or all.
    type(sphere_t) :: waves
    integer :: n_states = 0
    real(real64) :: occupation = 2.0_real64
    type(xc_t) :: xc
    !> Of the coefficients held here: rows and columns, G^2 of each row, rows with G = 0.
    integer :: n_rows = 0, n_columns = 0
    real(real64), allocatable :: g2(:)
    integer, allocatable :: zero(:)
    !> What the rows are, as a number for restart files: 0 for waves of this rank.
    integer(int64) :: layout = 0
    !> Of the ions alone: energy; forces but for the sum over waves. The same on all ranks.
    real(real64) :: ewald_energy = 0.0_real64
    real(real64), allocatable :: ewald_force(:, :)
  contains
    procedure :: init
    procedure :: doubled
    procedure :: take_coulomb
    !> States to begin with, not orthonormal.
    procedure(draw), deferred :: draw
    !> Take notice of new positions of the ions.
    procedure(move_ions), deferred :: move_ions
    !> Energy of orthonormal states, and H times each of them.
    procedure(evaluate), deferred :: evaluate
    !> Forces on the ions (3, n) in hartree/bohr at the states of the last evaluation.
    procedure(forces), deferred :: forces
    !> <a|b> (states of a, states of b), the same on all ranks. `is_symmetric`: that matrix is, but for rounding.
    procedure(overlap), deferred :: overlap
    !> target = target + states times a matrix that all ranks have.
    procedure(add_rotated), deferred :: add_rotated
    !> vectors = vectors - states <states|vectors>, with the symmetric part of the matrix alone where it is symmetric but
    !> for rounding.
    procedure(project_out), deferred :: project_out
    !> Make states orthonormal, states S^(-1/2), which changes them least. `worst`: largest difference of S from 1.
    procedure(orthonormalise), deferred :: orthonormalise
    !> vectors = vectors S^(-1/2), with that of the last call of `orthonormalise`.
    procedure(rotate), deferred :: rotate
    !> What was sent so far, kind by kind.
    procedure(traffic), deferred :: traffic
  end type kohn_sham_t

  abstract interface
    subroutine draw(self, seed, states)
      import :: int64, kohn_sham_t, real64
      class(kohn_sham_t), intent(in) :: self
      integer(int64), intent(in) :: seed
      complex(real64), contiguous, intent(out) :: states(:, :)
    end subroutine draw
    subroutine move_ions(self, system)
      import :: ions_t, kohn_sham_t
      class(kohn_sham_t), intent(inout) :: self
      type(ions_t), intent(in) :: system
    end subroutine move_ions
    subroutine evaluate(self, system, states, product, energy)
      import :: energies_t, ions_t, kohn_sham_t, real64
      class(kohn_sham_t), intent(inout) :: self
      type(ions_t), intent(in) :: system
      complex(real64), contiguous, intent(in) :: states(:, :)
      complex(real64), contiguous, intent(out) :: product(:, :)
      type(energies_t), intent(out) :: energy
    end subroutine evaluate
    subroutine forces(self, system, states, force)
      import :: ions_t, kohn_sham_t, real64
      class(kohn_sham_t), intent(inout) :: self
      type(ions_t), intent(in) :: system
      complex(real64), contiguous, intent(in) :: states(:, :)
      real(real64), intent(out) :: force(:, :)
    end subroutine forces
    subroutine overlap(self, a, b, s, is_symmetric)
      import :: kohn_sham_t, real64
      class(kohn_sham_t), intent(inout) :: self
      complex(real64), contiguous, intent(in) :: a(:, :), b(:, :)
      real(real64), intent(out) :: s(:, :)
      logical, intent(in) :: is_symmetric
    end subroutine overlap
    subroutine add_rotated(self, states, matrix, target_states)
      import :: kohn_sham_t, real64
      class(kohn_sham_t), intent(inout) :: self
      complex(real64), contiguous, intent(in) :: states(:, :)
      real(real64), intent(in) :: matrix(:, :)
      complex(real64), contiguous, intent(inout) :: target_states(:, :)
    end subroutine add_rotated
    subroutine project_out(self, states, vectors, is_symmetric)
      import :: kohn_sham_t, real64
      class(kohn_sham_t), intent(inout) :: self
      complex(real64), contiguous, intent(in) :: states(:, :)
      complex(real64), contiguous, intent(inout) :: vectors(:, :)
      logical, intent(in) :: is_symmetric
    end subroutine project_out
    subroutine orthonormalise(self, states, error, worst)
      import :: error_t, kohn_sham_t, real64
      class(kohn_sham_t), intent(inout) :: self
      complex(real64), contiguous, intent(inout) :: states(:, :)
      type(error_t), allocatable, intent(out) :: error
      real(real64), intent(out), optional :: worst
    end subroutine orthonormalise
    subroutine rotate(self, vectors)
      import :: kohn_sham_t, real64
      class(kohn_sham_t), intent(inout) :: self
      complex(real64), contiguous, intent(inout) :: vectors(:, :)
    end subroutine rotate
    function traffic(self) result(sent)
      import :: kohn_sham_t, traffic_t
      class(kohn_sham_t), intent(in) :: self
      type(traffic_t), allocatable :: sent(:)
    end function traffic
  end interface

contains

  pure real(real64) function total(self)
    class(energies_t), intent(in) :: self
    total = self%kinetic + self%hartree + self%local + self%nonlocal + self%xc + self%ewald
  end function total

  !> What both layers know of the states.
  subroutine init(self, comm, n_states, occupation, xc)
    class(kohn_sham_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    integer, intent(in) :: n_states
    real(real64), intent(in) :: occupation
    type(xc_t), intent(in) :: xc
    self%comm = comm
    self%n_states = n_states
    self%occupation = occupation
    self%xc = xc
  end subroutine init

  !> The energy of the ions alone, and their forces but for the sum over waves. `dense`: waves of the density, of this rank
  !> or all; `of_waves`: this rank's part of the sum over waves (hartree).
  subroutine take_coulomb(self, system, dense, of_waves)
    class(kohn_sham_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    type(sphere_t), intent(in) :: dense
    real(real64), intent(in) :: of_waves
    real(real64) :: sums(1 + 3*system%n_atoms())
    if (.not. allocated(self%ewald_force)) allocate (self%ewald_force(3, system%n_atoms()))
    self%ewald_force = 0.0_real64
    call system%coulomb(dense, self%comm, self%ewald_energy, self%ewald_force)
    sums = [self%ewald_energy + of_waves, self%ewald_force]
    call self%comm%sum(sums)
    self%ewald_energy = sums(1)
    self%ewald_force = reshape(sums(2:), shape(self%ewald_force))
  end subroutine take_coulomb

  !> Sum over the whole sphere of a quantity that is the same at G and -G, from its values in rows held here.
  pure real(real64) function doubled(self, value)
    class(kohn_sham_t), intent(in) :: self
    real(real64), intent(in) :: value(:)
    doubled = 2.0_real64*sum(value) - sum(value(self%zero))
  end function doubled

end module kohn_sham
