!> What is said of a run that has become unstable: what happened to which atom, where, and the likely cause.
module instability
  use base_kinds, only: real64
  use atom_label, only: label_of, place_of
  use base_error, only: error_t, exit_unstable, fail
  use base_text, only: decimal_text, to_text
  use system_state, only: system_state_t
  implicit none
  private
  public :: atom_in_place, explain_instability

  !> Closer atoms (angstrom) overlap: the shortest bonds, O-H, are longer.
  real(real64), parameter :: least_distance = 0.8_real64
  !> A step may be so long, as a share of the period of a vibration.
  real(real64), parameter :: longest_share = 0.2_real64
  !> Period (ps) of the fastest hindered rotations of water with its own masses, near 1000/cm.
  real(real64), parameter :: water_period = 0.030_real64
  !> Lighter atoms than hydrogen there are not (atomic mass units).
  real(real64), parameter :: least_mass = 0.9_real64

contains

  !> Local atom `i` with names and place.
  function atom_in_place(state, i) result(text)
    type(system_state_t), intent(in) :: state
    integer, intent(in) :: i
    character(len=:), allocatable :: text
    text = label_of(state%topology, state%atoms%id(i))//" "//place_of(state, i)
  end function atom_in_place

  !> End the run: `what` happened, at local atom `i`. `rigid`: constraints act.
  subroutine explain_instability(state, rigid, what, i, error)
    type(system_state_t), intent(in) :: state
    logical, intent(in) :: rigid
    character(len=*), intent(in) :: what
    integer, intent(in) :: i
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: when
    when = "step "//to_text(state%step)
    if (state%timestep > 0.0_real64) when = when//" ("//decimal_text(state%time, 3)//" ps)"
    call fail(error, exit_unstable, "the run is unstable at "//when//": "//what//"; the likely cause is "// &
              likely_cause(state, rigid, i))
  end subroutine explain_instability

  !> What may have led there. Before anything has moved, overlapping atoms come first; later they are found where a time
  !> step is too long, too.
  function likely_cause(state, rigid, i) result(cause)
    type(system_state_t), intent(in) :: state
    logical, intent(in) :: rigid
    integer, intent(in) :: i
    character(len=:), allocatable :: cause
    real(real64) :: mass
    cause = ""
    if (state%progress > 0.0_real64) cause = long_step(state, rigid)
    if (cause == "") cause = overlap(state, i)
    if (cause == "") cause = long_step(state, rigid)
    mass = lightest(state)
    if (cause == "" .and. mass < least_mass) cause = "an atom with a mass of "//decimal_text(mass, 3)// &
                                                     ": correct the masses of the topology"
    if (cause /= "") return
    cause = "strain that the build has left: minimise longer, or heat more slowly and with restraints"
    if (state%timestep > 0.0_real64) cause = cause//"; or the time step of "//decimal_text(1000.0_real64*state%timestep, 3)// &
                                             " fs is too long"
  end function likely_cause

  !> What a time step that is too long for the fastest motion says; empty where it is not.
  function long_step(state, rigid) result(cause)
    type(system_state_t), intent(in) :: state
    logical, intent(in) :: rigid
    character(len=:), allocatable :: cause
    real(real64) :: period, mass(2)
    cause = ""
    call state%topology%fastest_bond(rigid, period, mass)
    if (period < water_period .or. .not. any(state%topology%templates%rigid_water)) then
      cause = "bond (masses "//decimal_text(mass(1), 3)//" and "//decimal_text(mass(2), 3)//") has a period of "
    else
      period = water_period
      cause = "rotation of water has a period of "
    end if
    if (state%timestep <= longest_share*period) then
      cause = ""
      return
    end if
    cause = "the time step of "//decimal_text(1000.0_real64*state%timestep, 3)//" fs, since the fastest "//cause// &
            decimal_text(1000.0_real64*period, 1)//" fs: give "//decimal_text(1000.0_real64*longest_share*period, 1)// &
            " fs or less"
  end function long_step

  !> What the nearest other atom at hand says of local atom `i`; empty where it is far enough.
  function overlap(state, i) result(cause)
    type(system_state_t), intent(in) :: state
    integer, intent(in) :: i
    character(len=:), allocatable :: cause
    real(real64) :: distance2, nearest2
    integer :: j, nearest
    cause = ""
    nearest2 = least_distance**2
    nearest = 0
    associate (atoms => state%atoms)
      do j = 1, min(atoms%n_total, size(atoms%position, 2))
        if (atoms%id(j) == atoms%id(i)) cycle
        distance2 = sum((atoms%position(:, j) - atoms%position(:, i))**2)
        if (.not. distance2 < nearest2) cycle
        nearest2 = distance2
        nearest = j
      end do
      if (nearest == 0) return
      cause = "overlap with "//label_of(state%topology, atoms%id(nearest))//", "//decimal_text(sqrt(nearest2), 2)// &
              " angstrom away: remove clashes, or minimise longer"
    end associate
  end function overlap

  !> The least mass of an atom of the system.
  pure real(real64) function lightest(state)
    type(system_state_t), intent(in) :: state
    integer :: t
    lightest = huge(lightest)
    do t = 1, size(state%topology%templates)
      associate (template => state%topology%templates(t))
        lightest = min(lightest, minval(template%mass, mask=template%copies > 0))
      end associate
    end do
  end function lightest

end module instability
