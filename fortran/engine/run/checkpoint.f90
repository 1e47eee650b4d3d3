!> The state of a simulation to restart files and back.
module checkpoint
  use base_kinds, only: real64
  use base_error, only: error_t
  use restart, only: restart_t
  use simulation, only: simulation_t
  implicit none
  private
  public :: resume, restart_of, write_restart, write_set

contains

  !> Write the restart files of all ranks: first all under temporary names, then, if all succeeded, under their own.
  subroutine write_restart(sim, name, error)
    class(simulation_t), intent(in) :: sim
    character(len=*), intent(in) :: name
    type(error_t), allocatable, intent(out) :: error
    type(restart_t) :: saved
    saved = restart_of(sim)
    call write_set(sim, saved, name, error)
  end subroutine write_restart

  !> The same of a state at hand.
  subroutine write_set(sim, saved, name, error)
    class(simulation_t), intent(in) :: sim
    type(restart_t), intent(inout) :: saved
    character(len=*), intent(in) :: name
    type(error_t), allocatable, intent(out) :: error
    call saved%write(name, sim%comm%rank, sim%comm%n_ranks, error)
    call sim%comm%agree(error)
    if (allocated(error)) then
      call saved%discard(name, sim%comm%rank)
      return
    end if
    call saved%put_in_place(name, sim%comm%rank, error)
    call sim%comm%agree(error)
  end subroutine write_set

  !> The state as a restart.
  function restart_of(sim) result(saved)
    class(simulation_t), intent(in) :: sim
    type(restart_t) :: saved
    integer :: n
    n = sim%atoms%n_owned
    saved%dims = sim%grid%dims
    saved%n_system = sim%topology%n_atoms
    saved%step = sim%step
    saved%phase = sim%phase
    saved%time = sim%time
    saved%box = sim%grid%box
    saved%shape = sim%grid%shape
    saved%is_open = sim%is_open
    saved%ensemble = sim%kept
    saved%ensemble%grid_points = sim%grid_points
    if (allocated(sim%thermostat)) then
      call sim%thermostat%put_into(saved%ensemble%bath)
      call sim%barostat%put_into(saved%ensemble)
    end if
    allocate (saved%id, source=sim%atoms%id(:n))
    allocate (saved%position, source=sim%atoms%position(:, :n))
    allocate (saved%velocity, source=sim%atoms%velocity(:, :n))
    if (sim%is_at_rest) saved%velocity = 0.0_real64
  end function restart_of

  !> Go on from a restart, which gives its atoms away. The box and its domains are there already.
  subroutine resume(sim, saved)
    class(simulation_t), intent(inout) :: sim
    type(restart_t), intent(inout) :: saved
    call move_alloc(saved%id, sim%atoms%id)
    call move_alloc(saved%position, sim%atoms%position)
    call move_alloc(saved%velocity, sim%atoms%velocity)
    call sim%atoms%identify_owned(sim%topology)
    sim%step = saved%step
    sim%time = saved%time
    sim%phase = saved%phase
    sim%kept = saved%ensemble
    sim%grid_points = saved%ensemble%grid_points
  end subroutine resume

end module checkpoint
