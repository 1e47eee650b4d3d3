!> The topology: molecule templates and a run-length list of which molecule occurs how often in global atom order. What
!> an atom is follows from its global id (from 0) by a search in that list. Molecules of several residues share one
!> template of pieces and keep only which piece stands where: nothing here grows with the number of atoms, and long DNA
!> costs eight bytes a residue.
module topology
  use base_kinds, only: int64, real64
  use base_constants, only: acceleration_unit, pi
  use cmap, only: cmap_t
  use base_error, only: error_t, exit_corrupt_file, fail
  use hdf5_file, only: hdf5_file_t
  use molecule_template, only: molecule_template_t
  use term_list, only: is_base_pair, is_bond, is_cross_stacking, is_stacking, n_kinds
  implicit none
  private
  public :: molecule_t, topology_t

  !> A kind of molecule: its template, and where its pieces begin in the molecule (one more entry: its end) and in the
  !> template. A molecule that is not cut is one piece. `named_as`: the kind of the file that has its names.
  type :: molecule_t
    integer :: n_atoms = 0, template = 0, named_as = 0
    integer, allocatable :: first_atom(:), first_in_template(:)
  end type molecule_t

  type :: topology_t
    !> The file that it was read from.
    character(len=:), allocatable :: path
    !> kcal angstrom/mol/e^2.
    real(real64) :: coulomb_constant = 0.0_real64
    !> Pair matrices E = c12/r^12 - c6/r^6 (kcal/mol angstrom^6, angstrom^12), and sigma (angstrom) and epsilon (kcal/mol)
    !> per type.
    real(real64), allocatable :: c6(:, :), c12(:, :), sigma(:), epsilon(:)
    type(cmap_t) :: cmap
    type(molecule_template_t), allocatable :: templates(:)
    type(molecule_t), allocatable :: molecules(:)
    !> Molecule of each run, and the global id of its first atom (one more entry than runs: the end).
    integer, allocatable :: run_molecule(:)
    integer(int64), allocatable :: run_first_atom(:)
    !> Of imported systems: number of the residue of the first molecule of each run, where molecules are one residue, and
    !> its segment. The molecules of a run are numbered one after the other.
    integer(int64), allocatable :: run_residue(:)
    character(len=8), allocatable :: run_segment(:)
    integer(int64) :: n_atoms = 0
    !> Some template has virtual sites.
    logical :: has_sites = .false.
  contains
    procedure :: read => read_topology
    procedure :: locate
    procedure :: locate_in_molecule
    procedure :: term_count
    procedure :: has_bases
    procedure :: constraint_count
    procedure :: site_count
    procedure :: group_count
    procedure :: molecule_count
    procedure :: recount
    procedure :: repartition_hydrogen_mass
    procedure :: longest_constraint
    procedure :: site_reach
    procedure :: fastest_bond
    procedure :: total_c6_and_c12
    procedure :: classes_of_motion
  end type topology_t

  !> Lighter atoms are hydrogens (atomic mass units).
  real(real64), parameter :: heaviest_hydrogen = 1.5_real64

contains

  !> Read a topology file (docs/reference/file-formats.md).
  subroutine read_topology(self, path, error)
    class(topology_t), intent(out) :: self
    character(len=*), intent(in) :: path
    type(error_t), allocatable, intent(out) :: error
    type(hdf5_file_t) :: file
    self%path = path
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
    integer(int64), allocatable :: count(:)
    integer :: run

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
    call file%read_integer("molecule/template", self%run_molecule, error)
    if (allocated(error)) return
    call file%read_long("molecule/count", count, error)
    if (allocated(error)) return
    if (any([shape(self%c6), shape(self%c12), size(self%epsilon)] /= size(self%sigma))) then
      call fail(error, exit_corrupt_file, file%path//": the arrays under lj/ have different sizes")
    else if (size(count) /= size(self%run_molecule) .or. size(count) == 0 .or. any(count < 0)) then
      call fail(error, exit_corrupt_file, file%path//": molecule/template and molecule/count do not fit each other")
    else if (any(self%run_molecule < 0)) then
      call fail(error, exit_corrupt_file, file%path//": molecule/template has a negative entry")
    end if
    if (allocated(error)) return

    self%run_molecule = self%run_molecule + 1
    call read_maps(self%cmap, file, error)
    if (allocated(error)) return
    if (file%exists("molecule/residue_number")) then
      call file%read_long("molecule/residue_number", self%run_residue, error)
      if (.not. allocated(error)) call file%read_names("molecule/segid", self%run_segment, error)
      if (allocated(error)) return
      if (any([size(self%run_residue), size(self%run_segment)] /= size(count))) then
        call fail(error, exit_corrupt_file, file%path//": molecule/residue_number and molecule/segid do not fit molecule/count")
        return
      end if
    end if
    call read_molecules(self, file, error)
    if (allocated(error)) return
    allocate (self%run_first_atom(size(count) + 1))
    self%run_first_atom(1) = 0
    do run = 1, size(count)
      self%run_first_atom(run + 1) = self%run_first_atom(run) + &
        count(run)*self%molecules(self%run_molecule(run))%n_atoms
    end do
    call self%recount()
    self%n_atoms = self%run_first_atom(size(count) + 1)
    self%has_sites = any(self%templates%sites%n > 0)
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

  !> Read the kinds of molecules, the templates of those that are not cut, and, last of the templates, the pieces.
  subroutine read_molecules(self, file, error)
    class(topology_t), intent(inout) :: self
    type(hdf5_file_t), intent(in) :: file
    type(error_t), allocatable, intent(out) :: error
    character(len=16) :: group
    logical :: cut(maxval(self%run_molecule))
    integer :: m, n

    allocate (self%molecules(size(cut)))
    do m = 1, size(cut)
      write (group, "(a,i4.4)") "template/", m - 1
      cut(m) = file%exists(trim(group)//"/piece")
    end do
    n = count(.not. cut)
    allocate (self%templates(n + merge(1, 0, any(cut))))
    if (any(cut)) call self%templates(n + 1)%read(file, "pieces", size(self%sigma), self%cmap%n_maps, error)
    if (allocated(error)) return
    n = 0
    do m = 1, size(cut)
      write (group, "(a,i4.4)") "template/", m - 1
      associate (molecule => self%molecules(m))
        molecule%named_as = m
        if (cut(m)) then
          molecule%template = size(self%templates)
          call read_pieces(molecule, self%templates(molecule%template), file, trim(group)//"/piece", error)
          if (allocated(error)) return
          cycle
        end if
        n = n + 1
        call self%templates(n)%read(file, trim(group), size(self%sigma), self%cmap%n_maps, error)
        if (allocated(error)) return
        molecule%template = n
        molecule%n_atoms = self%templates(n)%n_atoms
        molecule%first_atom = [0, molecule%n_atoms]
        molecule%first_in_template = [1]
      end associate
    end do
  end subroutine read_molecules

  !> Read which pieces a molecule is made of.
  subroutine read_pieces(molecule, template, file, name, error)
    type(molecule_t), intent(inout) :: molecule
    type(molecule_template_t), intent(in) :: template
    type(hdf5_file_t), intent(in) :: file
    character(len=*), intent(in) :: name
    type(error_t), allocatable, intent(out) :: error
    integer :: reach(2, size(template%first_atom) - 1), k
    integer, allocatable :: piece(:)

    call file%read_integer(name, piece, error)
    if (allocated(error)) return
    piece = piece + 1
    if (size(piece) == 0 .or. any(piece < 1 .or. piece > size(reach, 2))) then
      call fail(error, exit_corrupt_file, file%path//": "//name//" names a piece that the file does not have")
      return
    end if
    reach = template%reach_of_terms()
    allocate (molecule%first_atom(size(piece) + 1))
    molecule%first_atom(1) = 0
    do k = 1, size(piece)
      molecule%first_atom(k + 1) = molecule%first_atom(k) + template%first_atom(piece(k) + 1) - &
                                   template%first_atom(piece(k))
    end do
    molecule%n_atoms = molecule%first_atom(size(piece) + 1)
    molecule%first_in_template = template%first_atom(piece)
    if (any(molecule%first_atom(:size(piece)) + reach(1, piece) < 0 .or. &
            molecule%first_atom(:size(piece)) + reach(2, piece) >= molecule%n_atoms)) &
      call fail(error, exit_corrupt_file, file%path//": "//name//" has a piece with terms beyond the molecule")
  end subroutine read_pieces

  !> Count how often each atom of the templates occurs.
  subroutine recount(self)
    class(topology_t), intent(inout) :: self
    integer :: run, t
    do t = 1, size(self%templates)
      self%templates(t)%copies = 0
    end do
    do run = 1, size(self%run_molecule)
      call add_copies(self, self%run_molecule(run), (self%run_first_atom(run + 1) - self%run_first_atom(run))/ &
                      self%molecules(self%run_molecule(run))%n_atoms)
    end do
  end subroutine recount

  !> Count the atoms of `molecules` molecules of a kind in their template.
  subroutine add_copies(self, kind, molecules)
    class(topology_t), intent(inout) :: self
    integer, intent(in) :: kind
    integer(int64), intent(in) :: molecules
    integer :: k, first, last
    associate (molecule => self%molecules(kind))
      associate (copies => self%templates(molecule%template)%copies)
        do k = 1, size(molecule%first_in_template)
          first = molecule%first_in_template(k)
          last = first + molecule%first_atom(k + 1) - molecule%first_atom(k) - 1
          copies(first:last) = copies(first:last) + molecules
        end do
      end associate
    end associate
  end subroutine add_copies

  !> What the atom with global id `id` is: its template and its index in it (from 1). `origin`: what the global id of
  !> the template's first atom would be, so that atom a of the same molecule, or of the same piece, has `origin + a - 1`.
  pure subroutine locate(self, id, template, atom, origin)
    class(topology_t), intent(in) :: self
    integer(int64), intent(in) :: id
    integer, intent(out) :: template, atom
    integer(int64), intent(out) :: origin
    integer :: kind, low, high, middle
    call self%locate_in_molecule(id, kind, atom)
    associate (molecule => self%molecules(kind))
      low = 1
      high = size(molecule%first_in_template)
      do while (low < high)
        middle = (low + high + 1)/2
        if (molecule%first_atom(middle) < atom) then
          low = middle
        else
          high = middle - 1
        end if
      end do
      template = molecule%template
      atom = atom - molecule%first_atom(low) + molecule%first_in_template(low) - 1
      origin = id - atom + 1
    end associate
  end subroutine locate

  !> Kind of molecule of the atom with global id `id`, and its index in the molecule (from 1); the run of equal molecules,
  !> and which of its molecules it is (from 0).
  pure subroutine locate_in_molecule(self, id, kind, atom, run, copy)
    class(topology_t), intent(in) :: self
    integer(int64), intent(in) :: id
    integer, intent(out) :: kind, atom
    integer, intent(out), optional :: run
    integer(int64), intent(out), optional :: copy
    integer :: low, high, middle
    low = 1
    high = size(self%run_molecule)
    do while (low < high)
      middle = (low + high + 1)/2
      if (self%run_first_atom(middle) <= id) then
        low = middle
      else
        high = middle - 1
      end if
    end do
    kind = self%run_molecule(low)
    atom = int(mod(id - self%run_first_atom(low), int(self%molecules(kind)%n_atoms, int64))) + 1
    if (present(run)) run = low
    if (present(copy)) copy = (id - self%run_first_atom(low))/self%molecules(kind)%n_atoms
  end subroutine locate_in_molecule

  !> Number of terms of each kind in the whole system; without those that constraints replace if `rigid`.
  pure function term_count(self, rigid) result(total)
    class(topology_t), intent(in) :: self
    logical, intent(in) :: rigid
    integer(int64) :: total(n_kinds)
    integer :: s, p, kind, t, first
    total = 0
    do s = 1, size(self%templates)
      associate (template => self%templates(s))
        do kind = 1, n_kinds
          associate (terms => template%terms(kind))
            do p = 1, size(template%first_atom) - 1
              do t = terms%first_of_piece(p), terms%first_of_piece(p + 1) - 1
                ! Of the pieces that a term touches, that of its first atom counts it.
                first = terms%atom(1, t)
                if (first < template%first_atom(p) .or. first >= template%first_atom(p + 1)) cycle
                if (.not. (rigid .and. terms%rigid(t))) total(kind) = total(kind) + template%copies(first)
              end do
            end do
          end associate
        end do
      end associate
    end do
  end function term_count

  !> Whether there are bases of DNA that are beads, with terms between them.
  pure logical function has_bases(self)
    class(topology_t), intent(in) :: self
    integer(int64) :: count(n_kinds)
    count = self%term_count(.false.)
    has_bases = any(count([is_stacking, is_base_pair, is_cross_stacking]) > 0)
  end function has_bases

  !> Number of constraints in the whole system.
  pure integer(int64) function constraint_count(self)
    class(topology_t), intent(in) :: self
    integer :: t
    constraint_count = 0
    do t = 1, size(self%templates)
      associate (template => self%templates(t))
        constraint_count = constraint_count + sum(template%copies(template%constraint_atom(1, :)))
      end associate
    end do
  end function constraint_count

  !> Number of virtual sites in the whole system.
  pure integer(int64) function site_count(self)
    class(topology_t), intent(in) :: self
    integer :: t
    site_count = 0
    do t = 1, size(self%templates)
      associate (template => self%templates(t))
        site_count = site_count + sum(template%copies(template%sites%atom(1, :)))
      end associate
    end do
  end function site_count

  !> Number of constraint groups (an atom without constraints is a group of its own).
  pure integer(int64) function group_count(self)
    class(topology_t), intent(in) :: self
    integer :: t
    group_count = 0
    do t = 1, size(self%templates)
      group_count = group_count + sum(self%templates(t)%copies(self%templates(t)%group_reference))
    end do
  end function group_count

  !> Number of molecules that share their names with a kind.
  pure integer(int64) function molecule_count(self, kind)
    class(topology_t), intent(in) :: self
    integer, intent(in) :: kind
    integer :: run
    molecule_count = 0
    do run = 1, size(self%run_molecule)
      if (self%molecules(self%run_molecule(run))%named_as == self%molecules(kind)%named_as) molecule_count = molecule_count + &
        (self%run_first_atom(run + 1) - self%run_first_atom(run))/self%molecules(kind)%n_atoms
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
            if (count(template%mass(members) > 0.0_real64) == 2) factor = single_ratio
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

  !> The longest constraint (angstrom), or what is more for a virtual site, which bounds how far a group reaches from its
  !> reference atom.
  pure real(real64) function longest_constraint(self)
    class(topology_t), intent(in) :: self
    integer :: t
    longest_constraint = 0.0_real64
    do t = 1, size(self%templates)
      longest_constraint = max(longest_constraint, self%templates(t)%sites%reach()* &
                               maxval([0.0_real64, self%templates(t)%constraint_distance]))
    end do
  end function longest_constraint

  !> A virtual site moves at most so many times as far as any of its parents; 1 where there is none.
  pure real(real64) function site_reach(self)
    class(topology_t), intent(in) :: self
    integer :: t
    site_reach = 1.0_real64
    do t = 1, size(self%templates)
      site_reach = max(site_reach, self%templates(t)%sites%reach())
    end do
  end function site_reach

  !> Period (ps) of the fastest harmonic bond of the system and the masses of its two atoms; `rigid`: constrained ones do
  !> not count. A period without end where there is none. Bonds from piece to piece are left out.
  pure subroutine fastest_bond(self, rigid, period, mass)
    class(topology_t), intent(in) :: self
    logical, intent(in) :: rigid
    real(real64), intent(out) :: period, mass(2)
    real(real64) :: here(2), square, largest_square
    integer :: s, p, t, first, last
    largest_square = 0.0_real64
    mass = 0.0_real64
    do s = 1, size(self%templates)
      associate (template => self%templates(s), bonds => self%templates(s)%terms(is_bond))
        do p = 1, size(template%first_atom) - 1
          first = template%first_atom(p)
          last = template%first_atom(p + 1) - 1
          do t = bonds%first_of_piece(p), bonds%first_of_piece(p + 1) - 1
            if (any(bonds%atom(:2, t) < first .or. bonds%atom(:2, t) > last)) cycle
            if (template%copies(bonds%atom(1, t)) == 0 .or. (rigid .and. bonds%rigid(t))) cycle
            here = template%mass(bonds%atom(:2, t))
            ! Of the angular frequency: the energy is k (r - r0)^2, without a half.
            square = 2.0_real64*bonds%parameter(1, t)*acceleration_unit*sum(here)/product(here)
            if (.not. square > largest_square) cycle
            largest_square = square
            mass = here
          end do
        end do
      end associate
    end do
    period = huge(period)
    if (largest_square > 0.0_real64) period = 2.0_real64*pi/sqrt(largest_square)
  end subroutine fastest_bond

  !> Sums of c6 and c12 over all ordered pairs of atoms (an atom with itself included): what the tail correction needs.
  !> In kcal/mol angstrom^6 and kcal/mol angstrom^12.
  pure subroutine total_c6_and_c12(self, c6, c12)
    class(topology_t), intent(in) :: self
    real(real64), intent(out) :: c6, c12
    real(real64) :: atoms(size(self%sigma))
    integer :: t, a
    atoms = 0.0_real64
    do t = 1, size(self%templates)
      associate (template => self%templates(t))
        do a = 1, template%n_atoms
          atoms(template%lj_type(a)) = atoms(template%lj_type(a)) + real(template%copies(a), real64)
        end do
      end associate
    end do
    c6 = dot_product(atoms, matmul(self%c6, atoms))
    c12 = dot_product(atoms, matmul(self%c12, atoms))
  end subroutine total_c6_and_c12

  !> Atoms by how fast they move. An atom on a constraint to a heavier one shares its motion along that one direction;
  !> effective masses within a fifth of each other make a class, which has the least of them. A virtual site moves no more
  !> than it would if its parents were free: the inverse of its mass is the sum of w^2/m. `number(class, type)`: of
  !> atoms of each Lennard-Jones type; `charge`: sum of |charge| of each class (e). `rigid`: constraints act.
  subroutine classes_of_motion(self, rigid, mass, number, charge)
    class(topology_t), intent(in) :: self
    logical, intent(in) :: rigid
    real(real64), allocatable, intent(out) :: mass(:), number(:, :), charge(:)
    integer, parameter :: lightest = -20, heaviest = 60
    real(real64), parameter :: per_doubling = 4.0_real64
    real(real64) :: count(lightest:heaviest, size(self%sigma)), sum_charge(lightest:heaviest)
    real(real64), allocatable :: effective(:)
    integer :: t, a, k, first, second
    logical :: used(lightest:heaviest)

    count = 0.0_real64
    sum_charge = 0.0_real64
    do t = 1, size(self%templates)
      associate (template => self%templates(t))
        effective = template%mass
        do k = 1, merge(size(template%constraint_distance), 0, rigid)
          first = template%constraint_atom(1, k)
          second = template%constraint_atom(2, k)
          if (template%mass(first) > template%mass(second)) first = template%constraint_atom(2, k)
          if (template%mass(first) >= template%mass(second)) second = template%constraint_atom(1, k)
          effective(first) = 3.0_real64/(2.0_real64/template%mass(first) + &
                                         1.0_real64/(template%mass(first) + template%mass(second)))
        end do
        do k = 1, template%sites%n
          effective(template%sites%atom(1, k)) = 1.0_real64/sum(template%sites%weight(:, k)**2/ &
                                                                template%mass(template%sites%atom(2:, k)))
        end do
        do a = 1, template%n_atoms
          k = min(heaviest, max(lightest, floor(per_doubling*log(effective(a))/log(2.0_real64))))
          count(k, template%lj_type(a)) = count(k, template%lj_type(a)) + real(template%copies(a), real64)
          sum_charge(k) = sum_charge(k) + abs(template%charge(a))*real(template%copies(a), real64)
        end do
      end associate
    end do
    used = any(count > 0.0_real64, dim=2)
    mass = pack([(2.0_real64**(k/per_doubling), k=lightest, heaviest)], used)
    charge = pack(sum_charge, used)
    allocate (number(size(mass), size(self%sigma)))
    do t = 1, size(self%sigma)
      number(:, t) = pack(count(:, t), used)
    end do
  end subroutine classes_of_motion

end module topology
