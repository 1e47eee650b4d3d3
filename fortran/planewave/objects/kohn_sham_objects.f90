!> The layer of fine objects: what Bohm et al. (2008) draw. Every kind of object is dealt to ranks by a table of its own
!> (object_map), waits for messages and not for phases, and calls the kernels that the layer of whole states calls.
!> Coefficients here are one column: the waves of G(k, p) object after object.
module kohn_sham_objects
  use base_kinds, only: int64, real64
  use base_error, only: error_t, exit_bad_input, fail
  use base_text, only: to_text
  use comm_communicator, only: communicator_t
  use euler_spline, only: spline_settings_t
  use functional_objects, only: functional_objects_t, message_names
  use ions, only: ions_t
  use kohn_sham, only: energies_t, kohn_sham_t
  use message_traffic, only: traffic_t
  use object_map, only: grain_t, object_map_t
  use ortho_tiles, only: ortho_names
  use pair_objects, only: pair_names, pair_objects_t, round_kind_t
  use start_states, only: draw_states
  use structure_objects, only: structure_names, structure_objects_t
  use wave_sphere, only: grid_size, sphere_t
  use xc_functional, only: xc_t
  implicit none
  private
  public :: kohn_sham_objects_t

  type, extends(kohn_sham_t) :: kohn_sham_objects_t
    type(object_map_t), pointer :: map => null()
    type(functional_objects_t), pointer, private :: functional => null()
    type(pair_objects_t), pointer, private :: pairs => null()
    !> Structure factors by splines, where they are.
    type(structure_objects_t), pointer, private :: structure => null()
    !> The whole sphere of the density.
    type(sphere_t), private :: dense
  contains
    procedure :: create
    procedure :: draw
    procedure :: move_ions
    procedure :: evaluate
    procedure :: forces
    procedure :: overlap
    procedure :: add_rotated
    procedure :: project_out
    procedure :: orthonormalise
    procedure :: rotate
    procedure :: traffic
  end type kohn_sham_objects_t

contains

  !> As kohn_sham_states has it; `grain`: how fine objects are, and their map.
  subroutine create(self, comm, system, cutoff, n_states, occupation, xc, memory, splines, grain, error)
    class(kohn_sham_objects_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(ions_t), intent(in) :: system
    real(real64), intent(in) :: cutoff, occupation
    integer, intent(in) :: n_states, memory
    type(xc_t), intent(in) :: xc
    type(spline_settings_t), intent(in) :: splines
    type(grain_t), intent(in) :: grain
    type(error_t), allocatable, intent(out) :: error
    real(real64) :: needed
    integer :: n(3), k, s
    call self%init(comm, n_states, occupation, xc)
    n = grid_size(4.0_real64*cutoff, system%box)
    ! Lines of all sets are known once it is clear how many sets there are.
    call self%waves%create(system%box, n, cutoff, 1, 0)
    call self%dense%create(system%box, n, 4.0_real64*cutoff, 1, 0)
    allocate (self%map, self%functional, self%pairs)
    call self%map%create(grain, n_states, self%waves, self%dense, comm%n_ranks, error)
    if (allocated(error)) return
    needed = comm%maximum(16.0_real64*n(1)*n(2)*count(self%map%r == comm%rank))/1048576.0_real64
    if (needed > memory) then
      call fail(error, exit_bad_input, "planes of states take "//to_text(ceiling(needed))//" MB on a rank and memory in "// &
                "[ELECTRONS] is "//to_text(memory)//"; raise it, use more ranks, or layer = STATES in [PARALLEL]")
      return
    end if
    call self%waves%create(system%box, n, cutoff, self%map%n_sets, 0)
    call self%dense%create(system%box, n, 4.0_real64*cutoff, self%map%n_rho_sets, 0)
    allocate (self%functional%office, self%pairs%office, self%pairs%ortho%office)
    call self%functional%office%open(comm, message_names)
    call self%pairs%office%open(comm, pair_names)
    call self%pairs%ortho%office%open(comm, ortho_names)
    call self%functional%create(self%map, system, self%waves, self%dense, xc, occupation, splines, comm)
    if (splines%for_local) then
      allocate (self%structure)
      allocate (self%structure%office)
      call self%structure%office%open(comm, structure_names)
      call self%structure%create(self%map, system, self%dense, splines, comm)
    end if
    call self%pairs%create(self%map, self%waves, self%functional%wave, self%functional%place_of_wave, comm)

    self%n_columns = 1
    self%layout = fingerprint([self%map%n_sets, reshape(self%map%g, [size(self%map%g)])])
    self%n_rows = sum([(self%functional%wave(k)%n*self%functional%wave(k)%n_waves, k=1, size(self%functional%wave))])
    allocate (self%g2(self%n_rows), self%zero(0))
    do k = 1, size(self%functional%wave)
      associate (wave => self%functional%wave(k), sphere => self%functional%set(self%functional%wave(k)%set)%sphere)
        do s = 0, wave%n - 1
          self%g2(wave%first + s*wave%n_waves + 1:wave%first + (s + 1)*wave%n_waves) = sphere%g2
          if (sphere%zero > 0) self%zero = [self%zero, wave%first + s*wave%n_waves + sphere%zero]
        end do
      end associate
    end do
  end subroutine create

  !> A number for a list of numbers that are not negative.
  pure integer(int64) function fingerprint(numbers)
    integer, intent(in) :: numbers(:)
    integer :: k
    fingerprint = 1
    do k = 1, size(numbers)
      fingerprint = modulo(31*fingerprint + numbers(k), 2147483647_int64)
    end do
  end function fingerprint

  subroutine draw(self, seed, states)
    class(kohn_sham_objects_t), intent(in) :: self
    integer(int64), intent(in) :: seed
    complex(real64), contiguous, intent(out) :: states(:, :)
    complex(real64), allocatable :: drawn(:, :)
    integer :: k
    do k = 1, size(self%functional%wave)
      associate (wave => self%functional%wave(k))
        allocate (drawn(wave%n_waves, wave%n))
        call draw_states(self%functional%set(wave%set)%sphere, seed, 2*wave%pair - 1, drawn)
        states(wave%first + 1:wave%first + size(drawn), 1) = reshape(drawn, [size(drawn)])
        deallocate (drawn)
      end associate
    end do
  end subroutine draw

  subroutine move_ions(self, system)
    class(kohn_sham_objects_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    real(real64) :: of_waves, part
    integer :: k
    call self%functional%move_ions(system)
    if (associated(self%structure)) call self%structure%sum_atoms(system)
    of_waves = 0.0_real64
    do k = 1, size(self%functional%density%set)
      associate (waves => self%functional%density%set(k)%waves)
        if (associated(self%structure)) then
          waves%structure%value = self%structure%set(k)%value
          call waves%take_structure(system, part)
        else
          call waves%move_ions(system, part)
        end if
      end associate
      of_waves = of_waves + part
    end do
    call self%take_coulomb(system, self%dense, of_waves)
  end subroutine move_ions

  subroutine evaluate(self, system, states, product, energy)
    class(kohn_sham_objects_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    complex(real64), contiguous, intent(in) :: states(:, :)
    complex(real64), contiguous, intent(out) :: product(:, :)
    type(energies_t), intent(out) :: energy
    real(real64) :: sums(5)
    call self%functional%evaluate(system, states(:, 1), product(:, 1))
    sums = [self%occupation*self%functional%kinetic, self%occupation*self%functional%nonlocal, &
            self%functional%density%energies()]
    call self%comm%sum(sums)
    energy = energies_t(sums(1), sums(3), sums(4), sums(2), sums(5), self%ewald_energy)
  end subroutine evaluate

  subroutine forces(self, system, states, force)
    class(kohn_sham_objects_t), intent(inout) :: self
    type(ions_t), intent(in) :: system
    complex(real64), contiguous, intent(in) :: states(:, :)
    real(real64), intent(out) :: force(:, :)
    real(real64) :: sums(3*system%n_atoms())
    integer :: k
    force = 0.0_real64
    do k = 1, size(self%functional%density%set)
      associate (set => self%functional%density%set(k))
        if (associated(self%structure)) then
          self%structure%set(k)%value = set%waves%field_on_structure(system, set%density(:, 1))
        else
          call set%waves%forces(system, set%density(:, 1), force)
        end if
      end associate
    end do
    if (associated(self%structure)) call self%structure%forces(force)
    call self%functional%nonlocal_forces(system, states(:, 1), self%occupation, force)
    sums = [force]
    call self%comm%sum(sums)
    force = self%ewald_force + reshape(sums, shape(force))
  end subroutine forces

  subroutine overlap(self, a, b, s, is_symmetric)
    class(kohn_sham_objects_t), intent(inout) :: self
    complex(real64), contiguous, intent(in) :: a(:, :), b(:, :)
    real(real64), intent(out) :: s(:, :)
    logical, intent(in) :: is_symmetric
    complex(real64) :: none(0)
    ! Both halves come from the same messages.
    associate (unused => is_symmetric); end associate
    call self%pairs%round(round_kind_t(sends_b=.true., spreads=.false., applies=.false., is_symmetric=.false.), &
                          a(:, 1), b(:, 1), none)
    call self%pairs%ortho%whole(s)
  end subroutine overlap

  subroutine add_rotated(self, states, matrix, target_states)
    class(kohn_sham_objects_t), intent(inout) :: self
    complex(real64), contiguous, intent(in) :: states(:, :)
    real(real64), intent(in) :: matrix(:, :)
    complex(real64), contiguous, intent(inout) :: target_states(:, :)
    call self%pairs%round(round_kind_t(multiplies=.false., spreads=.false., keep=1.0_real64), states(:, 1), states(:, 1), &
                          target_states(:, 1), matrix)
  end subroutine add_rotated

  subroutine project_out(self, states, vectors, is_symmetric)
    class(kohn_sham_objects_t), intent(inout) :: self
    complex(real64), contiguous, intent(in) :: states(:, :)
    complex(real64), contiguous, intent(inout) :: vectors(:, :)
    logical, intent(in) :: is_symmetric
    complex(real64), allocatable :: b(:)
    allocate (b, source=vectors(:, 1))
    call self%pairs%round(round_kind_t(sends_b=.true., is_symmetric=is_symmetric, keep=1.0_real64, add=-1.0_real64), &
                          states(:, 1), b, vectors(:, 1))
  end subroutine project_out

  subroutine orthonormalise(self, states, error, worst)
    class(kohn_sham_objects_t), intent(inout) :: self
    complex(real64), contiguous, intent(inout) :: states(:, :)
    type(error_t), allocatable, intent(out) :: error
    real(real64), intent(out), optional :: worst
    complex(real64), allocatable :: a(:)
    real(real64) :: largest
    allocate (a, source=states(:, 1))
    call self%pairs%round(round_kind_t(spreads=.false., applies=.false.), a, a, states(:, 1))
    call self%pairs%ortho%inverse_root(error, largest)
    if (present(worst)) worst = largest
    if (allocated(error)) return
    ! The calculators have kept the states.
    call self%pairs%round(round_kind_t(sends_a=.false., multiplies=.false.), a, a, states(:, 1))
  end subroutine orthonormalise

  subroutine rotate(self, vectors)
    class(kohn_sham_objects_t), intent(inout) :: self
    complex(real64), contiguous, intent(inout) :: vectors(:, :)
    complex(real64), allocatable :: a(:)
    allocate (a, source=vectors(:, 1))
    call self%pairs%round(round_kind_t(multiplies=.false.), a, a, vectors(:, 1))
  end subroutine rotate

  function traffic(self) result(sent)
    class(kohn_sham_objects_t), intent(in) :: self
    type(traffic_t), allocatable :: sent(:)
    sent = [self%functional%office%sent, self%pairs%office%sent, self%pairs%ortho%office%sent]
    if (associated(self%structure)) sent = [sent, self%structure%office%sent]
  end function traffic

end module kohn_sham_objects
