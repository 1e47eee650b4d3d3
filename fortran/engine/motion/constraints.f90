!> Rigid bonds of the owned groups: SETTLE for waters, SHAKE and RATTLE for heavy atoms with hydrogens (Ryckaert,
!> Ciccotti and Berendsen 1977; Andersen 1983). Groups are owned whole, so nothing is communicated.
!>
!> A fixed atom takes part with infinite mass: its free partners go about it. What is between fixed atoms is no constraint,
!> and a water that is fixed in part is one for SHAKE.
module constraints
  use base_kinds, only: real64
  use atoms, only: atoms_t
  use base_fixed_point, only: rounding_t
  use settle, only: water_shape_t, waters_together
  use topology, only: topology_t
  implicit none
  private
  public :: constraints_t

  type :: constraints_t
    logical :: active = .false.
    integer, private :: max_iterations = 500
    real(real64), private :: tolerance = 1.0e-10_real64
    logical, private :: fast_water = .true.
    !> Shape of each template that is a rigid water for SETTLE.
    type(water_shape_t), allocatable, private :: shape(:)
    logical, allocatable, private :: has_shape(:)
    !> Waters for SETTLE: local index of O, the first of the group, and template.
    integer, private :: n_waters = 0
    integer, allocatable, private :: oxygen(:), water_template(:)
    !> Where O and the hydrogens stand in the group, from O on: (3, templates).
    integer, allocatable, private :: member(:, :)
    !> Runs of waters of one template that are handled together: `run_first(r):run_first(r+1)-1`.
    integer, allocatable, private :: run_first(:)
    !> SHAKE groups: constraints `pair(:, first(g):first(g+1)-1)`.
    integer, private :: n_groups = 0
    integer, allocatable, private :: first(:), pair(:, :)
    !> Squares of lengths (angstrom^2), and of each atom of a pair 1/mass, 0 where it is fixed.
    real(real64), allocatable, private :: distance2(:), inverse_mass(:, :)
    !> Local index of an atom whose constraints could not be satisfied, 0 = none.
    integer :: failed_atom = 0
  contains
    procedure :: init
    procedure :: assign
    procedure :: apply_positions
    procedure :: apply_velocities
    procedure :: reset_positions
  end type constraints_t

contains

  !> `active`: bonds are rigid. `fast_water`: SETTLE where a template is a rigid water of O, H, H and virtual sites. `tolerance`:
  !> relative, of distances.
  subroutine init(self, topology, active, fast_water, max_iterations, tolerance)
    class(constraints_t), intent(inout) :: self
    type(topology_t), intent(in) :: topology
    logical, intent(in) :: active, fast_water
    integer, intent(in) :: max_iterations
    real(real64), intent(in) :: tolerance
    real(real64) :: oh(2), hh
    integer, allocatable :: massive(:)
    integer :: t, c, a
    self%active = active
    self%fast_water = fast_water
    self%max_iterations = max_iterations
    self%tolerance = tolerance
    allocate (self%shape(size(topology%templates)), self%has_shape(size(topology%templates)))
    self%has_shape = .false.
    allocate (self%member(3, size(topology%templates)), source=0)
    do t = 1, size(topology%templates)
      associate (template => topology%templates(t))
        if (.not. (template%rigid_water .and. fast_water)) cycle
        massive = pack([(a, a=1, template%n_atoms)], template%mass > 0.0_real64)
        if (size(massive) /= 3 .or. size(template%constraint_distance) /= 3) cycle
        if (template%group_reference(1) /= 1 .or. template%n_groups /= 1) cycle
        oh = 0.0_real64
        do c = 1, 3
          if (minval(template%constraint_atom(:, c)) == 1) then
            oh(merge(1, 2, maxval(template%constraint_atom(:, c)) == massive(2))) = template%constraint_distance(c)
          else
            hh = template%constraint_distance(c)
          end if
        end do
        ! SETTLE wants an isosceles triangle of equal hydrogens.
        if (oh(1) /= oh(2) .or. template%mass(massive(2)) /= template%mass(massive(3))) cycle
        call self%shape(t)%create(template%mass(1), template%mass(massive(2)), oh(1), hh)
        self%member(:, t) = massive - 1
        self%has_shape(t) = .true.
      end associate
    end do
  end subroutine init

  !> List the constraints of the owned groups after they changed.
  subroutine assign(self, topology, atoms)
    class(constraints_t), intent(inout) :: self
    type(topology_t), intent(in) :: topology
    type(atoms_t), intent(in) :: atoms
    integer :: g, i, k, c, pass, n, group, before, pair(2)
    self%failed_atom = 0
    if (.not. self%active) return
    do pass = 1, 2
      self%n_waters = 0
      self%n_groups = 0
      n = 0
      do g = 1, atoms%n_groups
        i = atoms%group_first(g)
        associate (template => topology%templates(atoms%template(atoms%kind(i))))
          group = template%group_of_atom(atoms%index_in_template(atoms%kind(i)))
          if (template%constraint_first(group + 1) == template%constraint_first(group)) cycle
          if (self%has_shape(atoms%template(atoms%kind(i))) .and. &
              .not. atoms%has_fixed(i, atoms%group_first(g + 1) - 1)) then
            self%n_waters = self%n_waters + 1
            if (pass == 2) self%oxygen(self%n_waters) = i
            if (pass == 2) self%water_template(self%n_waters) = atoms%template(atoms%kind(i))
            cycle
          end if
          before = n
          do c = template%constraint_first(group), template%constraint_first(group + 1) - 1
            pair = [(i - 1 + template%place_in_group(template%constraint_atom(k, c)), k=1, 2)]
            if (atoms%is_fixed(pair(1)) .and. atoms%is_fixed(pair(2))) cycle
            n = n + 1
            if (pass == 1) cycle
            self%pair(:, n) = pair
            self%inverse_mass(:, n) = [(merge(0.0_real64, 1.0_real64/template%mass(template%constraint_atom(k, c)), &
                                              atoms%is_fixed(pair(k))), k=1, 2)]
            self%distance2(n) = template%constraint_distance(c)**2
          end do
          if (n == before) cycle
          self%n_groups = self%n_groups + 1
          if (pass == 2) self%first(self%n_groups) = before + 1
        end associate
      end do
      if (pass == 1) then
        if (allocated(self%oxygen)) &
          deallocate (self%oxygen, self%water_template, self%first, self%pair, self%distance2, self%inverse_mass)
        allocate (self%oxygen(self%n_waters), self%water_template(self%n_waters), self%first(self%n_groups + 1), &
                  self%pair(2, n), self%distance2(n), self%inverse_mass(2, n))
      end if
    end do
    self%first(self%n_groups + 1) = n + 1
    call cut_runs(self)
  end subroutine assign

  !> Cut the waters into runs of one template.
  subroutine cut_runs(self)
    class(constraints_t), intent(inout) :: self
    integer :: first(self%n_waters + 1), w, n
    n = 0
    do w = 1, self%n_waters
      if (n > 0) then
        if (w - first(n) < waters_together .and. self%water_template(w) == self%water_template(first(n))) cycle
      end if
      n = n + 1
      first(n) = w
    end do
    first(n + 1) = self%n_waters + 1
    self%run_first = first(:n + 1)
  end subroutine cut_runs

  !> Position part: `position` after an unconstrained step from `old`; the same change over `timestep` (ps) goes into
  !> `velocity`. These are (3, local atoms), angstrom and angstrom/ps. Groups are solved relative to the old place of their
  !> first atom and put back `rounding`ed, so that the image in which a rank sees them does not matter.
  subroutine apply_positions(self, old, position, velocity, timestep, rounding)
    class(constraints_t), intent(inout) :: self
    real(real64), intent(in) :: old(:, :)
    real(real64), intent(inout) :: position(:, :), velocity(:, :)
    real(real64), intent(in) :: timestep
    type(rounding_t), intent(in) :: rounding
    real(real64) :: before(waters_together, 9), new(waters_together, 9), per_time, change(3)
    integer :: run, w, n, g, o, k, failed, member(0:2)
    logical :: ok, solved(waters_together)
    if (.not. self%active) return
    failed = 0
    per_time = 1.0_real64/timestep
    !$omp parallel do schedule(static) private(w, n, o, k, member, before, new, solved, change) reduction(max: failed)
    do run = 1, size(self%run_first) - 1
      n = self%run_first(run + 1) - self%run_first(run)
      member = self%member(:, self%water_template(self%run_first(run)))
      do w = 1, n
        o = self%oxygen(self%run_first(run) + w - 1)
        do k = 0, 2
          before(w, 3*k + 1:3*k + 3) = old(:, o + member(k)) - old(:, o)
          new(w, 3*k + 1:3*k + 3) = position(:, o + member(k)) - old(:, o)
        end do
      end do
      call self%shape(self%water_template(self%run_first(run)))%constrain_positions(n, before, new, solved)
      do w = 1, n
        o = self%oxygen(self%run_first(run) + w - 1)
        if (.not. solved(w)) then
          failed = max(failed, o)
          cycle
        end if
        do k = 0, 2
          change = old(:, o) + rounding%on_lattice(new(w, 3*k + 1:3*k + 3)) - position(:, o + member(k))
          velocity(:, o + member(k)) = velocity(:, o + member(k)) + change*per_time
          position(:, o + member(k)) = position(:, o + member(k)) + change
        end do
      end do
    end do
    !$omp end parallel do
    !$omp parallel do schedule(static) private(ok) reduction(max: failed)
    do g = 1, self%n_groups
      associate (a => self%first(g), b => self%first(g + 1) - 1)
        call shake(self, self%pair(:, a:b), self%distance2(a:b), self%inverse_mass(:, a:b), old, position, velocity, &
                   1.0_real64/timestep, rounding, ok)
        if (.not. ok) failed = max(failed, self%pair(1, a))
      end associate
    end do
    !$omp end parallel do
    if (failed > 0) self%failed_atom = failed
  end subroutine apply_positions

  !> SHAKE of one group: corrections along the old bonds until every bond has its length within the relative tolerance.
  !> `pair`: (2, bonds), local atoms; `distance2`: square of each length, angstrom^2; `inverse_mass`: (2, bonds), mol/g;
  !> `per_time`: 1/ps; the rest as for `apply_positions`. `ok` is false where there is no solution, and nothing has changed
  !> then.
  pure subroutine shake(self, pair, distance2, inverse_mass, old, position, velocity, per_time, rounding, ok)
    type(constraints_t), intent(in) :: self
    integer, intent(in) :: pair(:, :)
    real(real64), intent(in) :: distance2(:), inverse_mass(:, :), old(:, :), per_time
    real(real64), intent(inout) :: position(:, :), velocity(:, :)
    type(rounding_t), intent(in) :: rounding
    logical, intent(out) :: ok
    !> Corrections of the atoms of the group so far.
    real(real64) :: moved(3, minval(pair):maxval(pair))
    real(real64) :: bond(3), old_bond(3), change(3), difference, projection
    integer :: iteration, c, i, j
    moved = 0.0_real64
    do iteration = 1, self%max_iterations
      ok = .true.
      do c = 1, size(distance2)
        i = pair(1, c)
        j = pair(2, c)
        bond = (position(:, i) - position(:, j)) + (moved(:, i) - moved(:, j))
        difference = distance2(c) - dot_product(bond, bond)
        if (abs(difference) <= 2.0_real64*self%tolerance*distance2(c)) cycle
        ok = .false.
        old_bond = old(:, i) - old(:, j)
        projection = dot_product(old_bond, bond)
        ! The new bond stands nearly at right angles to the old one: no solution.
        if (.not. projection > 1.0e-3_real64*distance2(c)) return
        change = difference/(2.0_real64*(inverse_mass(1, c) + inverse_mass(2, c))*projection)*old_bond
        moved(:, i) = moved(:, i) + inverse_mass(1, c)*change
        moved(:, j) = moved(:, j) - inverse_mass(2, c)*change
      end do
      if (ok) exit
    end do
    if (.not. ok) return
    do i = lbound(moved, 2), ubound(moved, 2)
      change = rounding%on_lattice(moved(:, i))
      position(:, i) = position(:, i) + change
      velocity(:, i) = velocity(:, i) + change*per_time
    end do
  end subroutine shake

  !> Velocity part: remove relative velocities along rigid bonds, until a bond changes by less than the tolerance in a
  !> step of `timestep` (ps). Arguments as for `apply_positions`.
  subroutine apply_velocities(self, position, velocity, timestep)
    class(constraints_t), intent(inout) :: self
    real(real64), intent(in) :: position(:, :), timestep
    real(real64), intent(inout) :: velocity(:, :)
    real(real64) :: bond(3), rate, multiplier, at(waters_together, 9), changed(waters_together, 9)
    integer :: run, w, n, k, g, o, c, i, j, iteration, failed, member(0:2)
    logical :: ok
    if (.not. self%active) return
    failed = 0
    !$omp parallel do schedule(static) private(w, n, o, k, member, at, changed)
    do run = 1, size(self%run_first) - 1
      n = self%run_first(run + 1) - self%run_first(run)
      member = self%member(:, self%water_template(self%run_first(run)))
      do w = 1, n
        o = self%oxygen(self%run_first(run) + w - 1)
        do k = 0, 2
          at(w, 3*k + 1:3*k + 3) = position(:, o + member(k))
          changed(w, 3*k + 1:3*k + 3) = velocity(:, o + member(k))
        end do
      end do
      call self%shape(self%water_template(self%run_first(run)))%constrain_velocities(n, at, changed)
      do w = 1, n
        o = self%oxygen(self%run_first(run) + w - 1)
        do k = 0, 2
          velocity(:, o + member(k)) = changed(w, 3*k + 1:3*k + 3)
        end do
      end do
    end do
    !$omp end parallel do
    !$omp parallel do schedule(static) private(iteration, ok, c, i, j, bond, rate, multiplier) reduction(max: failed)
    do g = 1, self%n_groups
      do iteration = 1, self%max_iterations
        ok = .true.
        do c = self%first(g), self%first(g + 1) - 1
          i = self%pair(1, c)
          j = self%pair(2, c)
          bond = position(:, i) - position(:, j)
          rate = dot_product(bond, velocity(:, i) - velocity(:, j))
          if (abs(rate)*timestep <= self%tolerance*self%distance2(c)) cycle
          ok = .false.
          multiplier = rate/(dot_product(bond, bond)*(self%inverse_mass(1, c) + self%inverse_mass(2, c)))
          velocity(:, i) = velocity(:, i) - multiplier*self%inverse_mass(1, c)*bond
          velocity(:, j) = velocity(:, j) + multiplier*self%inverse_mass(2, c)*bond
        end do
        if (ok) exit
      end do
      if (.not. ok) failed = max(failed, self%pair(1, self%first(g)))
    end do
    !$omp end parallel do
    if (failed > 0) self%failed_atom = failed
  end subroutine apply_velocities

  !> Bring positions that do not obey the constraints yet (after minimisation) onto them: SHAKE along the present bonds.
  !> Arguments as for `apply_positions`.
  subroutine reset_positions(self, topology, position, rounding)
    class(constraints_t), intent(inout) :: self
    type(topology_t), intent(in) :: topology
    real(real64), intent(inout) :: position(:, :)
    type(rounding_t), intent(in) :: rounding
    real(real64), allocatable :: old(:, :), unused_velocity(:, :)
    integer :: w, g, failed
    logical :: ok
    if (.not. self%active) return
    old = position
    allocate (unused_velocity(3, size(position, 2)), source=0.0_real64)
    failed = 0
    !$omp parallel do schedule(static) private(ok) reduction(max: failed)
    do w = 1, self%n_waters
      associate (template => topology%templates(self%water_template(w)))
        call shake(self, template%constraint_atom + self%oxygen(w) - 1, template%constraint_distance**2, &
                   reshape(1.0_real64/template%mass([template%constraint_atom]), shape(template%constraint_atom)), old, &
                   position, unused_velocity, 0.0_real64, rounding, ok)
      end associate
      if (.not. ok) failed = max(failed, self%oxygen(w))
    end do
    !$omp end parallel do
    !$omp parallel do schedule(static) private(ok) reduction(max: failed)
    do g = 1, self%n_groups
      associate (a => self%first(g), b => self%first(g + 1) - 1)
        call shake(self, self%pair(:, a:b), self%distance2(a:b), self%inverse_mass(:, a:b), old, position, unused_velocity, &
                   0.0_real64, rounding, ok)
        if (.not. ok) failed = max(failed, self%pair(1, a))
      end associate
    end do
    !$omp end parallel do
    if (failed > 0) self%failed_atom = failed
  end subroutine reset_positions

end module constraints
