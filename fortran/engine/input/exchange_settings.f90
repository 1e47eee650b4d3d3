!> [REMD]: what replicas exchange, as typed values, and which of the combined parameters are neighbours.
!>
!> A parameter of the whole is a combination of one of each kind (dimension). They are counted from 1, those of the first
!> dimension fastest.
module exchange_settings
  use base_kinds, only: int64, real64
  use base_text, only: decimal_text, to_text
  implicit none
  private
  public :: exchange_settings_t, dimension_settings_t

  ! In the order of the words in the table of keys.
  integer, parameter, public :: exchanges_temperature = 1, exchanges_pressure = 2, exchanges_restraints = 3, &
                                exchanges_solute = 4

  !> One kind of parameter: K, atm, or K of a solute.
  type :: dimension_settings_t
    integer :: kind = exchanges_temperature
    integer :: n = 0
    real(real64), allocatable :: value(:)
    !> The first and the last are neighbours.
    logical :: is_cyclic = .false.
    !> Numbers of the restraints whose constants and references are exchanged together.
    integer, allocatable :: restraint(:)
  end type dimension_settings_t

  type :: exchange_settings_t
    logical :: is_on = .false.
    !> Steps between attempts, 0 = never.
    integer(int64) :: period = 0
    integer(int64) :: seed = 0
    type(dimension_settings_t), allocatable :: dimension(:)
  contains
    procedure :: n_replicas
    procedure :: place
    procedure :: upper_neighbour
    procedure :: has_kind
    procedure :: changes_forces
    procedure :: largest_value
    procedure :: turn
    procedure :: partner
    procedure :: name_of
  end type exchange_settings_t

contains

  !> As many as there are parameters.
  pure integer function n_replicas(self)
    class(exchange_settings_t), intent(in) :: self
    n_replicas = 1
    if (self%is_on) n_replicas = product(self%dimension%n)
  end function n_replicas

  !> Which value of a dimension a parameter has.
  pure integer function place(self, parameter, d)
    class(exchange_settings_t), intent(in) :: self
    integer, intent(in) :: parameter, d
    place = mod((parameter - 1)/product(self%dimension(:d - 1)%n), self%dimension(d)%n) + 1
  end function place

  !> The parameter that has the next value of a dimension and else the same, 0 where there is none.
  pure integer function upper_neighbour(self, parameter, d) result(neighbour)
    class(exchange_settings_t), intent(in) :: self
    integer, intent(in) :: parameter, d
    integer :: stride
    stride = product(self%dimension(:d - 1)%n)
    neighbour = parameter + stride
    if (self%place(parameter, d) < self%dimension(d)%n) return
    neighbour = 0
    if (self%dimension(d)%is_cyclic) neighbour = parameter - stride*(self%dimension(d)%n - 1)
  end function upper_neighbour

  pure logical function has_kind(self, kind)
    class(exchange_settings_t), intent(in) :: self
    integer, intent(in) :: kind
    has_kind = .false.
    if (self%is_on) has_kind = any(self%dimension%kind == kind)
  end function has_kind

  !> Whether the parameters of a dimension decide the potential energy.
  pure logical function changes_forces(self, d)
    class(exchange_settings_t), intent(in) :: self
    integer, intent(in) :: d
    changes_forces = any(self%dimension(d)%kind == [exchanges_restraints, exchanges_solute])
  end function changes_forces

  !> Of a kind, 0 where that is not exchanged.
  pure real(real64) function largest_value(self, kind) result(largest)
    class(exchange_settings_t), intent(in) :: self
    integer, intent(in) :: kind
    integer :: d
    largest = 0.0_real64
    if (.not. self%is_on) return
    do d = 1, size(self%dimension)
      if (self%dimension(d)%kind == kind) largest = maxval(self%dimension(d)%value)
    end do
  end function largest_value

  !> Whose turn it is at an attempt, counted from 1: a dimension, the last one first, and of its values the first lower one
  !> of a pair. The pairs of a dimension take turns so that each value is in at most one of them; two values are always one.
  pure subroutine turn(self, attempt, d, first)
    class(exchange_settings_t), intent(in) :: self
    integer(int64), intent(in) :: attempt
    integer, intent(out) :: d, first
    integer(int64) :: n_turns, round
    d = int(mod(attempt, size(self%dimension, kind=int64))) + 1
    round = (attempt - 1)/size(self%dimension)
    associate (dimension => self%dimension(d))
      n_turns = 2
      if (dimension%n == 2) n_turns = 1
      ! Around an odd ring it takes three turns to bring every neighbour together once.
      if (dimension%is_cyclic .and. mod(dimension%n, 2) == 1) n_turns = 3
    end associate
    first = int(mod(round, n_turns)) + 1
  end subroutine turn

  !> The value that a parameter has in a dimension, as words.
  pure function name_of(self, parameter, d) result(text)
    class(exchange_settings_t), intent(in) :: self
    integer, intent(in) :: parameter, d
    character(len=:), allocatable :: text
    associate (dimension => self%dimension(d), k => self%place(parameter, d))
      select case (dimension%kind)
      case (exchanges_temperature)
        text = "temperature "//decimal_text(dimension%value(k), 2)//" K"
      case (exchanges_pressure)
        text = "pressure "//decimal_text(dimension%value(k), 2)//" atm"
      case (exchanges_restraints)
        text = "restraints "//to_text(k)//" of "//to_text(dimension%n)
      case (exchanges_solute)
        text = "solute at "//decimal_text(dimension%value(k), 2)//" K"
      end select
    end associate
  end function name_of

  !> With which parameter another one is paired at an attempt, 0 = none.
  pure integer function partner(self, parameter, attempt)
    class(exchange_settings_t), intent(in) :: self
    integer, intent(in) :: parameter
    integer(int64), intent(in) :: attempt
    integer :: d, first, lower, k
    call self%turn(attempt, d, first)
    partner = 0
    do k = 1, self%n_replicas()
      lower = self%place(k, d)
      if (lower < first .or. mod(lower - first, 2) /= 0) cycle
      if (self%upper_neighbour(k, d) == 0) cycle
      if (k == parameter) partner = self%upper_neighbour(k, d)
      if (self%upper_neighbour(k, d) == parameter) partner = k
    end do
  end function partner

end module exchange_settings
