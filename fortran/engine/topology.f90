!> The topology: molecule templates and a run-length list of which template occurs how often in global atom order. What
!> an atom is follows from its global id (from 0) by a search in that list; nothing here grows with the number of atoms.
module topology
  use precision, only: int64, real64
  use cmap, only: cmap_t
  use error, only: error_t, exit_corrupt_file, fail
  use hdf5_file, only: hdf5_file_t
  use molecule_template, only: molecule_template_t
  use term_list, only: n_kinds
  implicit none
  private
  public :: topology_t

  type :: topology_t
    real(real64) :: coulomb_constant = 0.0_real64
    !> Pair matrices E = c12/r^12 - c6/r^6, and sigma and epsilon per type.
    real(real64), allocatable :: c6(:, :), c12(:, :), sigma(:), epsilon(:)
    type(cmap_t) :: cmap
    type(molecule_template_t), allocatable :: templates(:)
    !> Template of each run, and the global id of its first atom (one more entry than runs: the end).
    integer, allocatable :: run_template(:)
    integer(int64), allocatable :: run_first_atom(:)
    integer(int64) :: n_atoms = 0
  contains
    procedure :: read => read_topology
    procedure :: locate
    procedure :: term_count
    procedure :: constraint_count
    procedure :: group_count
    procedure :: molecule_count
    procedure :: repartition_hydrogen_mass
    procedure :: longest_constraint
    procedure :: total_c6_and_c12
  end type topology_t

  !> Lighter atoms are hydrogens (atomic mass units).
  real(real64), parameter :: heaviest_hydrogen = 1.5_real64

contains

  !> Read a topology file (docs/formats.md section 5).
  subroutine read_topology(self, path, error)
    class(topology_t), intent(out) :: self
    character(len=*), intent(in) :: path
    type(error_t), allocatable, intent(out) :: error
    type(hdf5_file_t) :: file
    call file%open(path, error)
    if (allocated(error)) return
    call read_contents(self, file, error)
    call file%close()
  end subroutine read_topology

  subroutine read_contents(self, file, error)
    class(topology_t), intent(inout) :: self
    type(hdf5_file_t), intent(in) :: file
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: format
    character(len=16) :: group
    integer(int64), allocatable :: count(:)
    integer :: t, run

    call file%text_attribute("/", "format", format, error)
    if (allocated(error)) return
    if (format /= "chromabuild-topology") then
      call fail(error, exit_corrupt_file, file%path//": its format is '"//format//"', expected 'chromabuild-topology'")
      return
    end if
    call file%real_attribute("/", "coulomb_constant", self%coulomb_constant, error)
    if (allocated(error)) return
    call file%read_real("lj/sigma", self%sigma, error)
    if (allocated(error)) return
    call file%read_real("lj/epsilon", self%epsilon, error)
    if (allocated(error)) return
    call file%read_real_table("lj/c6", self%c6, error)
    if (allocated(error)) return
    call file%read_real_table("lj/c12", self%c12, error)
    if (allocated(error)) return
    call file%read_integer("molecule/template", self%run_template, error)
    if (allocated(error)) return
    call file%read_long("molecule/count", count, error)
    if (allocated(error)) return
    if (any([shape(self%c6), shape(self%c12), size(self%epsilon)] /= size(self%sigma))) then
      call fail(error, exit_corrupt_file, file%path//": the arrays under lj/ have different sizes")
    else if (size(count) /= size(self%run_template) .or. size(count) == 0 .or. any(count < 0)) then
      call fail(error, exit_corrupt_file, file%path//": molecule/template and molecule/count do not fit each other")
    else if (any(self%run_template < 0)) then
      call fail(error, exit_corrupt_file, file%path//": molecule/template has a negative entry")
    end if
    if (allocated(error)) return

    call read_maps(self%cmap, file, error)
    if (allocated(error)) return
    allocate (self%templates(maxval(self%run_template) + 1))
    do t = 1, size(self%templates)
      write (group, "(a,i4.4)") "template/", t - 1
      call self%templates(t)%read(file, trim(group), size(self%sigma), self%cmap%n_maps, error)
      if (allocated(error)) return
    end do
    self%run_template = self%run_template + 1
    allocate (self%run_first_atom(size(count) + 1))
    self%run_first_atom(1) = 0
    do run = 1, size(count)
      self%run_first_atom(run + 1) = self%run_first_atom(run) + &
        count(run)*self%templates(self%run_template(run))%n_atoms
    end do
    self%n_atoms = self%run_first_atom(size(count) + 1)
  end subroutine read_contents

  !> The correction maps, if there are any.
  subroutine read_maps(cmap, file, error)
    type(cmap_t), intent(inout) :: cmap
    type(hdf5_file_t), intent(in) :: file
    type(error_t), allocatable, intent(out) :: error
    real(real64), allocatable :: energy(:, :)
    integer :: n
    if (.not. file%exists("cmap")) return
    call file%read_real_table("cmap/energy", energy, error)
    if (allocated(error)) return
    n = nint(sqrt(real(size(energy, 1), real64)))
    if (n*n /= size(energy, 1) .or. (n < 4 .and. size(energy) > 0)) then
      call fail(error, exit_corrupt_file, file%path//": the maps of cmap/energy are not squares of at least 4 x 4 points")
      return
    end if
    call cmap%create(reshape(energy, [n, n, size(energy, 2)]))
  end subroutine read_maps

  !> What the atom with global id `id` is: its template, its index in it (from 1), and the global id of the first atom
  !> of its molecule.
  pure subroutine locate(self, id, template, atom, molecule_first)
    class(topology_t), intent(in) :: self
    integer(int64), intent(in) :: id
    integer, intent(out) :: template, atom
    integer(int64), intent(out) :: molecule_first
    integer :: low, high, middle
    integer(int64) :: within
    low = 1
    high = size(self%run_template)
    do while (low < high)
      middle = (low + high + 1)/2
      if (self%run_first_atom(middle) <= id) then
        low = middle
      else
        high = middle - 1
      end if
    end do
    template = self%run_template(low)
    within = id - self%run_first_atom(low)
    atom = int(mod(within, int(self%templates(template)%n_atoms, int64))) + 1
    molecule_first = id - atom + 1
  end subroutine locate

  !> Number of terms of each kind in the whole system; without those that constraints replace if `rigid`.
  pure function term_count(self, rigid) result(total)
    class(topology_t), intent(in) :: self
    logical, intent(in) :: rigid
    integer(int64) :: total(n_kinds), molecules
    integer :: run, kind
    total = 0
    do run = 1, size(self%run_template)
      associate (template => self%templates(self%run_template(run)))
        molecules = (self%run_first_atom(run + 1) - self%run_first_atom(run))/template%n_atoms
        do kind = 1, n_kinds
          total(kind) = total(kind) + molecules*count(.not. (rigid .and. template%terms(kind)%rigid))
        end do
      end associate
    end do
  end function term_count

  !> Number of constraints in the whole system.
  pure integer(int64) function constraint_count(self)
    class(topology_t), intent(in) :: self
    integer :: run
    constraint_count = 0
    do run = 1, size(self%run_template)
      associate (template => self%templates(self%run_template(run)))
        constraint_count = constraint_count + size(template%constraint_distance)* &
                           ((self%run_first_atom(run + 1) - self%run_first_atom(run))/template%n_atoms)
      end associate
    end do
  end function constraint_count

  !> Number of constraint groups (an atom without constraints is a group of its own).
  pure integer(int64) function group_count(self)
    class(topology_t), intent(in) :: self
    integer :: run
    group_count = 0
    do run = 1, size(self%run_template)
      associate (template => self%templates(self%run_template(run)))
        group_count = group_count + template%n_groups* &
                      ((self%run_first_atom(run + 1) - self%run_first_atom(run))/template%n_atoms)
      end associate
    end do
  end function group_count

  !> Number of molecules of a template.
  pure integer(int64) function molecule_count(self, template)
    class(topology_t), intent(in) :: self
    integer, intent(in) :: template
    integer :: run
    molecule_count = 0
    do run = 1, size(self%run_template)
      if (self%run_template(run) == template) molecule_count = molecule_count + &
        (self%run_first_atom(run + 1) - self%run_first_atom(run))/self%templates(template)%n_atoms
    end do
  end function molecule_count

  !> Multiply the masses of hydrogens by a ratio and take what that adds from the heavy atoms they are bound to
  !> (Feenstra, Hess and Berendsen, J. Comput. Chem. 20, 786 (1999)). `single_ratio`: where it is the only hydrogen.
  !> `with_water`: of waters too. `fits` is false, and nothing else defined, when a heavy atom would become lighter than
  !> its hydrogens.
  pure subroutine repartition_hydrogen_mass(self, ratio, single_ratio, with_water, fits)
    class(topology_t), intent(inout) :: self
    real(real64), intent(in) :: ratio, single_ratio
    logical, intent(in) :: with_water
    logical, intent(out) :: fits
    real(real64) :: factor, added
    integer :: t, g, k, heavy
    fits = .true.
    do t = 1, size(self%templates)
      associate (template => self%templates(t))
        if (template%rigid_water .and. .not. with_water) cycle
        do g = 1, template%n_groups
          heavy = template%group_reference(g)
          associate (members => template%group_atom(template%group_first(g):template%group_first(g + 1) - 1))
            factor = ratio
            if (size(members) == 2) factor = single_ratio
            do k = 1, size(members)
              if (members(k) == heavy .or. template%mass(members(k)) > heaviest_hydrogen) cycle
              added = (factor - 1.0_real64)*template%mass(members(k))
              template%mass(members(k)) = template%mass(members(k)) + added
              template%mass(heavy) = template%mass(heavy) - added
            end do
            fits = fits .and. template%mass(heavy) >= maxval(template%mass(members))
          end associate
        end do
      end associate
    end do
  end subroutine repartition_hydrogen_mass

  !> The longest constraint (angstrom), which bounds how far a group reaches from its reference atom.
  pure real(real64) function longest_constraint(self)
    class(topology_t), intent(in) :: self
    integer :: t
    longest_constraint = 0.0_real64
    do t = 1, size(self%templates)
      longest_constraint = max(longest_constraint, maxval([0.0_real64, self%templates(t)%constraint_distance]))
    end do
  end function longest_constraint

  !> Sums of c6 and c12 over all ordered pairs of atoms (an atom with itself included): what the tail correction needs.
  pure subroutine total_c6_and_c12(self, c6, c12)
    class(topology_t), intent(in) :: self
    real(real64), intent(out) :: c6, c12
    real(real64) :: atoms(size(self%sigma))
    integer :: run, a
    atoms = 0.0_real64
    do run = 1, size(self%run_template)
      associate (template => self%templates(self%run_template(run)))
        do a = 1, template%n_atoms
          atoms(template%lj_type(a)) = atoms(template%lj_type(a)) + &
            real((self%run_first_atom(run + 1) - self%run_first_atom(run))/template%n_atoms, real64)
        end do
      end associate
    end do
    c6 = dot_product(atoms, matmul(self%c6, atoms))
    c12 = dot_product(atoms, matmul(self%c12, atoms))
  end subroutine total_c6_and_c12

end module topology
