!> Harmonic restraints k (x - x0)^2 of positions, of distances and dihedral angles between centres of groups, and of the
!> root-mean-square deviation from a reference after the best superposition (Kearsley, Acta Cryst. A 45, 208 (1989)).
!>
!> Positions are restrained to the anchors of the owned atoms (module anchors). Of the other kinds, whose groups are small,
!> every rank holds the ids of all restrained atoms (40 bytes each with their reference) and acts on those it owns. Such
!> groups must be smaller than half the box: their atoms are taken in the images nearest to their first atom.
!>
!> A constant may change linearly with the steps of a run. The work that this does is booked by the trapezoidal rule.
module restraints
  use base_kinds, only: int64, real64
  use anchors, only: is_anchored, set_anchors
  use atoms, only: atoms_t
  use bricks, only: brick_list_t
  use comm_communicator, only: communicator_t
  use comm_domain_grid, only: domain_grid_t
  use base_constants, only: degree, pi
  use base_error, only: error_t, exit_bad_input, fail
  use selection, only: atom_names_t, selection_t
  use settings, only: angle_restraint, dihedral_restraint, distance_restraint, position_restraint, rmsd_restraint, settings_t
  use open_box, only: open_origin
  use base_text, only: to_text
  use base_vector, only: cross
  use system_state, only: system_state_t
  use topology, only: topology_t
  implicit none
  private
  public :: restraints_t

  !> The atoms of one group of a restraint.
  type :: group_t
    !> Global ids, ascending, and weights, whose sum is one.
    integer(int64), allocatable :: id(:)
    real(real64), allocatable :: weight(:)
    !> Reference of each atom for an RMSD, angstrom about their centre.
    real(real64), allocatable :: reference(:, :)
    !> Owned atoms of this rank and, but for positions, their places in `id`.
    integer, allocatable :: atom(:), place(:)
  end type group_t

  type :: restraint_t
    integer :: kind = position_restraint
    !> The constant now, at the start and at the end of the run, and half of what a step changes.
    real(real64) :: constant = 0.0_real64, first_constant = 0.0_real64, final_constant = 0.0_real64, half_change = 0.0_real64
    real(real64) :: reference = 0.0_real64
    !> As in the settings.
    integer :: side = 0
    !> One along the axes on which a position restraint acts.
    real(real64) :: along(3) = 1.0_real64
    type(group_t), allocatable :: group(:)
  end type restraint_t

  type :: restraints_t
    type(restraint_t), allocatable, private :: restraint(:)
  contains
    procedure :: init
    procedure :: assign
    procedure :: take_parameters
    procedure :: compute
  end type restraints_t

contains

  !> Read [SELECTION] and [RESTRAINTS], and give the owned atoms their anchors.
  subroutine init(self, settings, state, error)
    class(restraints_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    type(system_state_t), intent(inout) :: state
    type(error_t), allocatable, intent(out) :: error
    type(atom_names_t) :: names
    integer :: n, k, g
    n = size(settings%restraint)
    allocate (self%restraint(n))
    if (n == 0) return
    call names%read(state%topology, error)
    call state%comm%agree(error)
    if (allocated(error)) return
    call set_anchors(settings, state, names, error)
    if (allocated(error)) return
    do k = 1, n
      associate (restraint => self%restraint(k), wanted => settings%restraint(k))
        restraint%kind = wanted%kind
        restraint%constant = wanted%constant
        restraint%first_constant = wanted%constant
        restraint%final_constant = wanted%final_constant
        restraint%half_change = 0.5_real64*(wanted%final_constant - wanted%constant)/ &
                                max(1_int64, settings%dynamics%schedule%steps)
        restraint%reference = wanted%reference
        restraint%side = wanted%side
        if (any(restraint%kind == [angle_restraint, dihedral_restraint])) restraint%reference = restraint%reference*degree
        restraint%along = wanted%along
        allocate (restraint%group(size(wanted%group)))
        if (restraint%kind == position_restraint) cycle
        do g = 1, size(restraint%group)
          call choose_atoms(restraint%group(g), settings, state%topology, names, wanted%group(g), wanted%by_mass, error)
          if (allocated(error)) return
        end do
        if (restraint%kind == rmsd_restraint) call read_reference(restraint%group(1), settings%input%reference, state, error)
        if (allocated(error)) return
      end associate
    end do
  end subroutine init

  !> Take constants and references anew from the settings.
  subroutine take_parameters(self, settings)
    class(restraints_t), intent(inout) :: self
    type(settings_t), intent(in) :: settings
    integer :: k
    if (.not. allocated(self%restraint)) return
    do k = 1, size(self%restraint)
      associate (restraint => self%restraint(k), wanted => settings%restraint(k))
        restraint%constant = wanted%constant
        restraint%first_constant = wanted%constant
        restraint%final_constant = wanted%final_constant
        restraint%reference = wanted%reference
        if (any(restraint%kind == [angle_restraint, dihedral_restraint])) restraint%reference = restraint%reference*degree
      end associate
    end do
  end subroutine take_parameters

  !> Fill a group with the atoms of groupN.
  subroutine choose_atoms(group, settings, topology, names, number, by_mass, error)
    type(group_t), intent(inout) :: group
    type(settings_t), intent(in) :: settings
    type(topology_t), intent(in) :: topology
    type(atom_names_t), intent(in) :: names
    integer, intent(in) :: number
    logical, intent(in) :: by_mass
    type(error_t), allocatable, intent(out) :: error
    type(selection_t) :: selection
    integer(int64), allocatable :: found(:), larger(:)
    integer(int64) :: id, origin
    logical :: chosen
    integer :: n, i, t, a
    call selection%read(settings, number, topology, names, error)
    if (allocated(error)) return
    allocate (found(1024))
    n = 0
    do id = 0, topology%n_atoms - 1
      chosen = selection%holds(topology, names, id, error)
      if (allocated(error)) return
      if (.not. chosen) cycle
      if (n == size(found)) then
        allocate (larger(2*n))
        larger(:n) = found
        call move_alloc(larger, found)
      end if
      n = n + 1
      found(n) = id
    end do
    if (n == 0) then
      call settings%refuse_group(number, "chooses no atom", error)
      return
    end if
    group%id = found(:n)
    allocate (group%weight(n), source=1.0_real64)
    if (by_mass) then
      do i = 1, n
        call topology%locate(group%id(i), t, a, origin)
        group%weight(i) = topology%templates(t)%mass(a)
      end do
    end if
    if (.not. sum(group%weight) > 0.0_real64) then
      call settings%refuse_group(number, "chooses virtual sites alone, which have no mass", error)
      return
    end if
    group%weight = group%weight/sum(group%weight)
  end subroutine choose_atoms

  !> Reference coordinates of a group from the bricks that the file at `path` lists.
  subroutine read_reference(group, path, state, error)
    type(group_t), intent(inout) :: group
    character(len=*), intent(in) :: path
    type(system_state_t), intent(in) :: state
    type(error_t), allocatable, intent(out) :: error
    type(brick_list_t) :: list
    integer(int64), allocatable :: id(:)
    real(real64), allocatable :: position(:, :)
    type(domain_grid_t) :: its_box
    integer :: b, i, place, n_found
    call list%read(path, error)
    if (allocated(error)) return
    allocate (group%reference(3, size(group%id)))
    n_found = 0
    do b = 1, list%n_bricks
      call list%read_brick(b, id, position, error)
      if (allocated(error)) return
      do i = 1, size(id)
        place = place_of(group%id, id(i))
        if (place == 0) cycle
        n_found = n_found + 1
        group%reference(:, place) = position(:, i)
      end do
    end do
    call its_box%create(0, 1, list%box, [1, 1, 1], 0.0_real64, error, shape=list%shape)
    if (state%is_open) then
      ! From here on as in the large box.
      its_box = state%grid
      group%reference = group%reference + spread(open_origin(state%grid%box), 2, size(group%id))
    end if
    if (n_found /= size(group%id)) then
      call fail(error, exit_bad_input, path//": holds "//to_text(n_found)//" of the "// &
                to_text(size(group%id))//" restrained atoms; give the bricks of the same build")
    else
      position = group%reference - spread(group%reference(:, 1), 2, n_found)
      do i = 1, n_found
        position(:, i) = its_box%nearest_image(position(:, i))
      end do
      group%reference = position - spread(matmul(position, group%weight), 2, n_found)
    end if
  end subroutine read_reference

  !> Place of an id in an ascending list, 0 = it is not there.
  pure integer function place_of(list, id)
    integer(int64), intent(in) :: list(:), id
    integer :: low, high
    low = 1
    high = size(list)
    do while (low < high)
      place_of = (low + high)/2
      if (list(place_of) < id) then
        low = place_of + 1
      else
        high = place_of
      end if
    end do
    place_of = merge(low, 0, list(low) == id)
  end function place_of

  !> Find the restrained atoms among the owned ones after these changed.
  subroutine assign(self, atoms)
    class(restraints_t), intent(inout) :: self
    type(atoms_t), intent(in) :: atoms
    integer :: k, g, i, n, place, pass
    if (.not. allocated(self%restraint)) return
    do k = 1, size(self%restraint)
      if (self%restraint(k)%kind == position_restraint) then
        self%restraint(k)%group(1)%atom = pack([(i, i=1, atoms%n_owned)], &
                                               [(is_anchored(atoms%anchor(:, i), k), i=1, atoms%n_owned)])
        cycle
      end if
      do g = 1, size(self%restraint(k)%group)
        associate (group => self%restraint(k)%group(g))
          do pass = 1, 2
            n = 0
            do i = 1, atoms%n_owned
              place = place_of(group%id, atoms%id(i))
              if (place == 0) cycle
              n = n + 1
              if (pass == 2) group%atom(n) = i
              if (pass == 2) group%place(n) = place
            end do
            if (pass == 2) cycle
            if (allocated(group%atom)) deallocate (group%atom, group%place)
            allocate (group%atom(n), group%place(n))
          end do
        end associate
      end do
    end do
  end subroutine assign

  !> Add the forces (kcal/mol/angstrom) of all restraints on owned atoms when a share `progress` of the run is done; this
  !> rank's share of energy and virial, and of the work of half a step's change of the constants (kcal/mol).
  subroutine compute(self, comm, atoms, grid, progress, energy, virial, work)
    class(restraints_t), intent(inout) :: self
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(inout) :: atoms
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(in) :: progress
    real(real64), intent(out) :: energy, virial(3, 3), work
    integer :: k
    energy = 0.0_real64
    virial = 0.0_real64
    work = 0.0_real64
    if (.not. allocated(self%restraint)) return
    do k = 1, size(self%restraint)
      associate (restraint => self%restraint(k))
        restraint%constant = restraint%first_constant + progress*(restraint%final_constant - restraint%first_constant)
        select case (restraint%kind)
        case (position_restraint)
          call restrain_positions(restraint, atoms, grid, energy, virial, work)
        case (rmsd_restraint)
          call restrain_rmsd(restraint, comm, atoms, grid, energy, virial, work)
        case default
          call restrain_centres(restraint, comm, atoms, grid, energy, virial, work)
        end select
      end associate
    end do
  end subroutine compute

  !> References move with the box.
  subroutine restrain_positions(restraint, atoms, grid, energy, virial, work)
    type(restraint_t), intent(in) :: restraint
    type(atoms_t), intent(inout) :: atoms
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(inout) :: energy, virial(3, 3), work
    real(real64) :: away(3), force(3)
    integer :: n, a
    associate (group => restraint%group(1))
      do n = 1, size(group%atom)
        away = atoms%position(:, group%atom(n)) - atoms%rounding%on_lattice( &
               grid%shape%slanted(grid%box*atoms%anchor(:3, group%atom(n))))
        away = restraint%along*grid%nearest_image(away)
        force = -2.0_real64*restraint%constant*away
        call add_force(atoms, group%atom(n), force)
        energy = energy + to_energy(atoms, restraint%constant*sum(away**2))
        work = work + to_energy(atoms, restraint%half_change*sum(away**2))
        do a = 1, 3
          virial(:, a) = virial(:, a) + to_energy(atoms, away*force(a))
        end do
      end do
    end associate
  end subroutine restrain_positions

  !> Add a force on an atom, rounded as forces on these atoms are.
  subroutine add_force(atoms, i, force)
    type(atoms_t), intent(inout) :: atoms
    integer, intent(in) :: i
    real(real64), intent(in) :: force(3)
    atoms%force(:, i) = atoms%force(:, i) + ((force + atoms%rounding%force) - atoms%rounding%force)
  end subroutine add_force

  !> An energy rounded as energies of these atoms are.
  elemental real(real64) function to_energy(atoms, x)
    type(atoms_t), intent(in) :: atoms
    real(real64), intent(in) :: x
    to_energy = (x + atoms%rounding%energy) - atoms%rounding%energy
  end function to_energy

  !> Centre of a group, and the position of its first atom, about which its images are taken.
  subroutine find_centre(group, comm, atoms, grid, anchor, centre)
    type(group_t), intent(in) :: group
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(in) :: atoms
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(out) :: anchor(3), centre(3)
    integer :: n
    anchor = 0.0_real64
    do n = 1, size(group%atom)
      if (group%place(n) == 1) anchor = atoms%position(:, group%atom(n))
    end do
    call comm%sum(anchor)
    centre = 0.0_real64
    do n = 1, size(group%atom)
      centre = centre + atoms%rounding%on_lattice(group%weight(group%place(n))* &
                                                  grid%nearest_image(atoms%position(:, group%atom(n)) - anchor))
    end do
    call comm%sum(centre)
    centre = anchor + centre
  end subroutine find_centre

  !> Distance between two centres, or dihedral angle of four.
  subroutine restrain_centres(restraint, comm, atoms, grid, energy, virial, work)
    type(restraint_t), intent(in) :: restraint
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(inout) :: atoms
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(inout) :: energy, virial(3, 3), work
    real(real64) :: anchor(3), centre(3, 4), force(3, 4), slope, change
    integer :: g, n, a
    do g = 1, size(restraint%group)
      call find_centre(restraint%group(g), comm, atoms, grid, anchor, centre(:, g))
      if (g > 1) centre(:, g) = centre(:, g - 1) + grid%nearest_image(centre(:, g) - centre(:, g - 1))
    end do
    if (restraint%kind == distance_restraint) then
      change = norm2(centre(:, 2) - centre(:, 1))
      force(:, 2) = (centre(:, 2) - centre(:, 1))/max(change, tiny(change))
      force(:, 1) = -force(:, 2)
      change = change - restraint%reference
      if (restraint%side < 0) change = min(change, 0.0_real64)
      if (restraint%side > 0) change = max(change, 0.0_real64)
    else if (restraint%kind == angle_restraint) then
      call angle_at(centre(:, :3), change, force(:, :3))
      change = change - restraint%reference
    else
      call dihedral(centre, change, force)
      change = change - restraint%reference
      change = change - 2.0_real64*pi*anint(change/(2.0_real64*pi))
    end if
    slope = 2.0_real64*restraint%constant*change
    do g = 1, size(restraint%group)
      force(:, g) = -slope*force(:, g)
      associate (group => restraint%group(g))
        do n = 1, size(group%atom)
          call add_force(atoms, group%atom(n), group%weight(group%place(n))*force(:, g))
        end do
      end associate
      do a = 1, 3
        if (comm%is_root()) virial(:, a) = virial(:, a) + to_energy(atoms, (centre(:, g) - centre(:, 1))*force(a, g))
      end do
    end do
    if (comm%is_root()) energy = energy + to_energy(atoms, restraint%constant*change**2)
    if (comm%is_root()) work = work + to_energy(atoms, restraint%half_change*change**2)
  end subroutine restrain_centres

  !> Angle at the second of three points (radian) and its gradients; those of a straight one are zero.
  pure subroutine angle_at(r, angle, gradient)
    real(real64), intent(in) :: r(3, 3)
    real(real64), intent(out) :: angle, gradient(3, 3)
    real(real64) :: a(3), b(3), length(2), sine
    a = r(:, 1) - r(:, 2)
    b = r(:, 3) - r(:, 2)
    length = max([norm2(a), norm2(b)], tiny(sine))
    a = a/length(1)
    b = b/length(2)
    angle = acos(max(-1.0_real64, min(1.0_real64, dot_product(a, b))))
    sine = max(norm2(cross(a, b)), 1.0e-9_real64)
    gradient(:, 1) = (dot_product(a, b)*a - b)/(sine*length(1))
    gradient(:, 3) = (dot_product(a, b)*b - a)/(sine*length(2))
    gradient(:, 2) = -gradient(:, 1) - gradient(:, 3)
  end subroutine angle_at

  !> Dihedral angle of four points (radian) and its gradients (Blondel and Karplus, J. Comput. Chem. 17, 1132 (1996)).
  pure subroutine dihedral(r, angle, gradient)
    real(real64), intent(in) :: r(3, 4)
    real(real64), intent(out) :: angle, gradient(3, 4)
    real(real64) :: f(3), g(3), h(3), a(3), b(3), length, middle(3)
    f = r(:, 1) - r(:, 2)
    g = r(:, 2) - r(:, 3)
    h = r(:, 4) - r(:, 3)
    a = cross(f, g)
    b = cross(h, g)
    length = norm2(g)
    angle = atan2(dot_product(cross(b, a), g)/length, dot_product(a, b))
    a = a/dot_product(a, a)
    b = b/dot_product(b, b)
    middle = dot_product(f, g)/length*a - dot_product(h, g)/length*b
    gradient(:, 1) = -length*a
    gradient(:, 2) = length*a + middle
    gradient(:, 3) = -middle - length*b
    gradient(:, 4) = length*b
  end subroutine dihedral

  !> Deviation from the reference after the rotation that makes it smallest.
  subroutine restrain_rmsd(restraint, comm, atoms, grid, energy, virial, work)
    type(restraint_t), intent(in) :: restraint
    type(communicator_t), intent(in) :: comm
    type(atoms_t), intent(inout) :: atoms
    type(domain_grid_t), intent(in) :: grid
    real(real64), intent(inout) :: energy, virial(3, 3), work
    real(real64) :: anchor(3), centre(3), sums(10), product(3, 3), rotation(3, 3), x(3), force(3), rmsd, slope
    integer :: n, a
    associate (group => restraint%group(1))
      call find_centre(group, comm, atoms, grid, anchor, centre)
      product = 0.0_real64
      sums = 0.0_real64
      do n = 1, size(group%atom)
        x = anchor + grid%nearest_image(atoms%position(:, group%atom(n)) - anchor) - centre
        associate (weight => group%weight(group%place(n)), reference => group%reference(:, group%place(n)))
          do a = 1, 3
            product(:, a) = product(:, a) + atoms%rounding%on_lattice(weight*reference*x(a))
          end do
          sums(10) = sums(10) + atoms%rounding%on_lattice(weight*(sum(x**2) + sum(reference**2)))
        end associate
      end do
      sums(:9) = reshape(product, [9])
      call comm%sum(sums)
      call best_rotation(reshape(sums(:9), [3, 3]), rotation, rmsd)
      rmsd = sqrt(max(0.0_real64, sums(10) - 2.0_real64*rmsd))
      slope = 2.0_real64*restraint%constant*(rmsd - restraint%reference)
      do n = 1, size(group%atom)
        x = anchor + grid%nearest_image(atoms%position(:, group%atom(n)) - anchor) - centre
        force = -slope*group%weight(group%place(n))/max(rmsd, 1.0e-9_real64)* &
                (x - matmul(rotation, group%reference(:, group%place(n))))
        call add_force(atoms, group%atom(n), force)
        do a = 1, 3
          virial(:, a) = virial(:, a) + to_energy(atoms, x*force(a))
        end do
      end do
      if (comm%is_root()) energy = energy + to_energy(atoms, restraint%constant*(rmsd - restraint%reference)**2)
      if (comm%is_root()) work = work + to_energy(atoms, restraint%half_change*(rmsd - restraint%reference)**2)
    end associate
  end subroutine restrain_rmsd

  !> The rotation that turns references onto positions, and the largest eigenvalue, the overlap that it reaches, from
  !> the sums `product` of reference times position: the eigenvector of Horn's quaternion matrix, by Jacobi's rotations.
  pure subroutine best_rotation(product, rotation, overlap)
    real(real64), intent(in) :: product(3, 3)
    real(real64), intent(out) :: rotation(3, 3), overlap
    real(real64) :: m(4, 4), v(4, 4), row(4), theta, t, c, s, q(4)
    integer :: sweep, i, j
    associate (p => product)
      m(:, 1) = [p(1, 1) + p(2, 2) + p(3, 3), p(2, 3) - p(3, 2), p(3, 1) - p(1, 3), p(1, 2) - p(2, 1)]
      m(:, 2) = [m(2, 1), p(1, 1) - p(2, 2) - p(3, 3), p(1, 2) + p(2, 1), p(3, 1) + p(1, 3)]
      m(:, 3) = [m(3, 1), m(3, 2), p(2, 2) - p(1, 1) - p(3, 3), p(2, 3) + p(3, 2)]
      m(:, 4) = [m(4, 1), m(4, 2), m(4, 3), p(3, 3) - p(1, 1) - p(2, 2)]
    end associate
    v = 0.0_real64
    do i = 1, 4
      v(i, i) = 1.0_real64
    end do
    do sweep = 1, 30
      do i = 1, 3
        do j = i + 1, 4
          if (abs(m(i, j)) <= 1.0e-18_real64*(abs(m(i, i)) + abs(m(j, j)))) cycle
          theta = 0.5_real64*(m(j, j) - m(i, i))/m(i, j)
          t = sign(1.0_real64, theta)/(abs(theta) + sqrt(theta**2 + 1.0_real64))
          c = 1.0_real64/sqrt(t**2 + 1.0_real64)
          s = t*c
          row = m(:, i)
          m(:, i) = c*row - s*m(:, j)
          m(:, j) = s*row + c*m(:, j)
          row = m(i, :)
          m(i, :) = c*row - s*m(j, :)
          m(j, :) = s*row + c*m(j, :)
          row = v(:, i)
          v(:, i) = c*row - s*v(:, j)
          v(:, j) = s*row + c*v(:, j)
        end do
      end do
    end do
    i = maxloc([m(1, 1), m(2, 2), m(3, 3), m(4, 4)], dim=1)
    overlap = m(i, i)
    q = v(:, i)
    rotation(:, 1) = [q(1)**2 + q(2)**2 - q(3)**2 - q(4)**2, 2*(q(2)*q(3) + q(1)*q(4)), 2*(q(2)*q(4) - q(1)*q(3))]
    rotation(:, 2) = [2*(q(2)*q(3) - q(1)*q(4)), q(1)**2 - q(2)**2 + q(3)**2 - q(4)**2, 2*(q(3)*q(4) + q(1)*q(2))]
    rotation(:, 3) = [2*(q(2)*q(4) + q(1)*q(3)), 2*(q(3)*q(4) - q(1)*q(2)), q(1)**2 - q(2)**2 - q(3)**2 + q(4)**2]
  end subroutine best_rotation

end module restraints
