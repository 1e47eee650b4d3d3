!> A chain of Nose and Hoover that keeps the kinetic energy of ions or of states about a value. Atomic units.
module heat_bath
  use base_kinds, only: real64
  use base_constants, only: pi
  use base_nose_hoover, only: chain_energy, propagate_chain
  implicit none
  private
  public :: heat_bath_t

  !> Steps of the chain in half a step of the dynamics.
  integer, parameter :: n_steps = 1

  type :: heat_bath_t
    !> Links: positions, velocities (1/time); none: no bath.
    real(real64), allocatable :: position(:), velocity(:)
    real(real64), private :: kt = 1.0_real64, tau = 1.0_real64, n_freedom = 1.0_real64
  contains
    procedure :: create
    procedure :: factor
    procedure :: energy
    procedure :: write_to
    procedure :: read_from
  end type heat_bath_t

contains

  !> A bath at rest that keeps a kinetic energy (hartree) of so many degrees of freedom; `period` (hbar/hartree): of its
  !> own oscillations. Without links there is none.
  subroutine create(self, n_links, kinetic, n_freedom, period)
    class(heat_bath_t), intent(inout) :: self
    integer, intent(in) :: n_links
    real(real64), intent(in) :: kinetic, n_freedom, period
    allocate (self%position(n_links), self%velocity(n_links), source=0.0_real64)
    self%n_freedom = n_freedom
    self%kt = 2.0_real64*kinetic/n_freedom
    self%tau = period/(2.0_real64*pi)
  end subroutine create

  !> Move the bath for a time against a kinetic energy: what velocities are to be multiplied with.
  real(real64) function factor(self, kinetic, time)
    class(heat_bath_t), intent(inout) :: self
    real(real64), intent(in) :: kinetic, time
    factor = 1.0_real64
    if (size(self%position) == 0) return
    call propagate_chain(self%position, self%velocity, self%kt, self%tau, self%n_freedom, kinetic, time, n_steps, factor)
  end function factor

  !> Part of the conserved quantity (hartree).
  pure real(real64) function energy(self)
    class(heat_bath_t), intent(in) :: self
    energy = 0.0_real64
    if (size(self%position) > 0) &
      energy = chain_energy(self%position, self%velocity, self%kt, self%tau, self%n_freedom)
  end function energy

  subroutine write_to(self, unit, status)
    class(heat_bath_t), intent(in) :: self
    integer, intent(in) :: unit
    integer, intent(out) :: status
    write (unit, iostat=status) size(self%position), self%position, self%velocity
  end subroutine write_to

  !> Take the links that a file has; where it has another number of them, the bath stays at rest.
  subroutine read_from(self, unit, status)
    class(heat_bath_t), intent(inout) :: self
    integer, intent(in) :: unit
    integer, intent(out) :: status
    real(real64), allocatable :: position(:), velocity(:)
    integer :: n
    read (unit, iostat=status) n
    if (status /= 0) return
    allocate (position(n), velocity(n))
    read (unit, iostat=status) position, velocity
    if (n /= size(self%position)) return
    self%position = position
    self%velocity = velocity
  end subroutine read_from

end module heat_bath
