!> The constants and the conformation of a fibre: the interface that Python calls. A fibre is made once and known by a number,
!> its handle; it is placed after its constants are set.
module fibre_handle
  use core_field, only: field_of
  use fibre_model, only: fibre_t, new_fibre, delete_fibre, fibre_of, place
  use iso_fortran_env, only: int32, int64, real64
  implicit none
  private
  public :: create_fibre, free_fibre, set_particles, set_elasticity, set_shapes, set_joints, set_sites, set_field, set_spheres
  public :: set_electrostatics, set_excluded_volume, set_floors, set_confinement, set_contacts, set_wells, set_limbs
  public :: place_fibre, read_fibre

contains

  subroutine create_fibre(handle)
    integer(int64), intent(out) :: handle
    handle = new_fibre()
  end subroutine create_fibre

  subroutine free_fibre(handle)
    integer(int64), intent(in) :: handle
    call delete_fibre(handle)
  end subroutine free_fibre

  !> The particles in chain order.
  subroutine set_particles(handle, n, segments, core, linker, charge)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n                !< particles
    integer(int32), intent(in) :: segments         !< n of a circle, else n - 1
    integer(int32), intent(in) :: core(n)          !< number of the core, from 1 in chain order, 0 for a bead
    integer(int32), intent(in) :: linker(segments) !< number of the linker that a segment belongs to
    real(real64), intent(in) :: charge(n)          !< e, of beads
    type(fibre_t), pointer :: fibre
    integer(int32) :: p
    fibre => fibre_of(handle)
    fibre%n = n
    fibre%n_segments = segments
    fibre%is_circle = segments == n
    fibre%core = core
    fibre%linker = linker
    fibre%charge = charge
    fibre%bead = pack([(p, p=1, n)], core == 0)
    fibre%core_particle = pack([(p, p=1, n)], core /= 0)
    fibre%n_cores = size(fibre%core_particle)
    allocate (fibre%bead_number(n), source=0)
    do p = 1, size(fibre%bead)
      fibre%bead_number(fibre%bead(p)) = p
    end do
  end subroutine set_particles

  !> Elastic constants of the segments; bend_k belongs to both ends of a segment.
  subroutine set_elasticity(handle, segments, rest_length, stretch_k, bend_k, twist_k, rest_twist)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: segments
    real(real64), intent(in) :: rest_length(segments)   !< nm
    real(real64), intent(in) :: stretch_k(segments)     !< kBT/nm^2
    real(real64), intent(in) :: bend_k(segments), twist_k(segments)   !< kBT
    real(real64), intent(in) :: rest_twist(segments)    !< radian
    type(fibre_t), pointer :: fibre
    fibre => fibre_of(handle)
    fibre%rest_length = rest_length
    fibre%stretch_k = stretch_k
    fibre%bend_k = bend_k
    fibre%twist_k = twist_k
    fibre%rest_twist = rest_twist
  end subroutine set_elasticity

  !> Which shape each core has, from 1; the shapes themselves are set one by one.
  subroutine set_shapes(handle, n_cores, n_shapes, form)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n_cores, n_shapes
    integer(int32), intent(in) :: form(n_cores)
    type(fibre_t), pointer :: fibre
    fibre => fibre_of(handle)
    allocate (fibre%shape(n_shapes))
    fibre%form = form
  end subroutine set_shapes

  !> Where DNA leaves a core of a shape (1) and arrives (2), in the core's frame.
  subroutine set_joints(handle, which, point, frame)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: which            !< of the shapes, from 1
    real(real64), intent(in) :: point(3, 2)        !< nm
    real(real64), intent(in) :: frame(3, 3, 2)     !< columns: helix axis and two normals
    type(fibre_t), pointer :: fibre
    fibre => fibre_of(handle)
    fibre%shape(which)%joint_point = point
    fibre%shape(which)%joint_frame = frame
  end subroutine set_joints

  !> The charge sites of cores of a shape.
  subroutine set_sites(handle, which, n_sites, site, site_charge)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: which, n_sites
    real(real64), intent(in) :: site(3, n_sites), site_charge(n_sites)   !< nm, e
    type(fibre_t), pointer :: fibre
    fibre => fibre_of(handle)
    fibre%shape(which)%site = site
    fibre%shape(which)%site_charge = site_charge
  end subroutine set_sites

  !> Meet the sites of a shape by the table of their field, which must live as long as the fibre.
  subroutine set_field(handle, which, field)
    integer(int64), intent(in) :: handle, field    !< of the fibre, of the field
    integer(int32), intent(in) :: which            !< of the shapes, from 1
    type(fibre_t), pointer :: fibre
    fibre => fibre_of(handle)
    fibre%shape(which)%field => field_of(field)
  end subroutine set_field

  !> The floor of cores of a shape. `near` is 1 where wrapped DNA continues in the linker at the exit (1) or the entry (2).
  subroutine set_spheres(handle, which, n_spheres, sphere, radius, near)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: which, n_spheres
    real(real64), intent(in) :: sphere(3, n_spheres), radius(n_spheres)   !< nm
    integer(int32), intent(in) :: near(2, n_spheres)
    type(fibre_t), pointer :: fibre
    fibre => fibre_of(handle)
    fibre%shape(which)%sphere = sphere
    fibre%shape(which)%sphere_radius = radius
    fibre%shape(which)%sphere_near = near
  end subroutine set_spheres

  !> Debye-Hueckel potentials; `dna_kappa` acts between linker beads.
  subroutine set_electrostatics(handle, bjerrum, kappa, dna_kappa, cutoff)
    integer(int64), intent(in) :: handle
    real(real64), intent(in) :: bjerrum            !< nm
    real(real64), intent(in) :: kappa, dna_kappa   !< 1/nm
    real(real64), intent(in) :: cutoff             !< nm, of excluded volume too
    type(fibre_t), pointer :: fibre
    fibre => fibre_of(handle)
    fibre%bjerrum = bjerrum
    fibre%kappa = kappa
    fibre%dna_kappa = dna_kappa
    fibre%cutoff = cutoff
  end subroutine set_electrostatics

  !> Excluded volume of linker beads and charge sites.
  subroutine set_excluded_volume(handle, strength, bead_bead, bead_site, site_site)
    integer(int64), intent(in) :: handle
    real(real64), intent(in) :: strength           !< kBT
    real(real64), intent(in) :: bead_bead, bead_site, site_site   !< sigma of each pair, nm
    type(fibre_t), pointer :: fibre
    fibre => fibre_of(handle)
    fibre%excluded_k = strength
    fibre%sigma = [bead_bead, bead_site, site_site]
  end subroutine set_excluded_volume

  subroutine set_floors(handle, dna_radius, stiffness)
    integer(int64), intent(in) :: handle
    real(real64), intent(in) :: dna_radius         !< nm
    real(real64), intent(in) :: stiffness          !< kBT/nm^2
    type(fibre_t), pointer :: fibre
    fibre => fibre_of(handle)
    fibre%dna_radius = dna_radius
    fibre%floor_k = stiffness
  end subroutine set_floors

  !> A confining sphere, and the soft walls of a container; stiffness 0 where there is none.
  subroutine set_confinement(handle, stiffness, radius, wall_stiffness, wall)
    integer(int64), intent(in) :: handle
    real(real64), intent(in) :: stiffness, wall_stiffness   !< kBT/nm^2
    real(real64), intent(in) :: radius             !< nm
    real(real64), intent(in) :: wall(3)            !< nm, half the container's edges
    type(fibre_t), pointer :: fibre
    fibre => fibre_of(handle)
    fibre%confinement_k = stiffness
    fibre%confinement_radius = radius
    fibre%wall_k = wall_stiffness
    fibre%wall = wall
  end subroutine set_confinement

  !> Restraints of particles, numbered from 1; there are none until they are set.
  subroutine set_contacts(handle, n_contacts, contact, stiffness, distance)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n_contacts
    integer(int32), intent(in) :: contact(2, n_contacts)
    real(real64), intent(in) :: stiffness(n_contacts), distance(n_contacts)   !< kBT/nm^2, nm
    type(fibre_t), pointer :: fibre
    fibre => fibre_of(handle)
    fibre%contact = contact
    fibre%contact_k = stiffness
    fibre%contact_distance = distance
  end subroutine set_contacts

  !> Energies of contacts, which act within `reach`; there are none until they are set.
  subroutine set_wells(handle, n_wells, pair, energy, flat, reach)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n_wells
    integer(int32), intent(in) :: pair(2, n_wells)   !< particles, from 1
    real(real64), intent(in) :: energy(n_wells)      !< kBT, of a contact
    real(real64), intent(in) :: flat, reach          !< nm: up to where it is whole, from where on there is none
    type(fibre_t), pointer :: fibre
    integer(int32) :: k, side
    integer(int32), allocatable :: place(:)
    fibre => fibre_of(handle)
    fibre%well_first = [(1, k=1, fibre%n + 1)]
    do k = 1, fibre%n
      fibre%well_first(k + 1) = fibre%well_first(k) + count(pair == k)
    end do
    fibre%well_partner = [(0, k=1, 2 * n_wells)]
    fibre%well_energy = [(0.0_real64, k=1, 2 * n_wells)]
    place = fibre%well_first(1:fibre%n)
    do k = 1, n_wells
      do side = 1, 2
        associate (at => place(pair(side, k)))
          fibre%well_partner(at) = pair(3 - side, k)
          fibre%well_energy(at) = energy(k)
          at = at + 1
        end associate
      end do
    end do
    fibre%well_flat = flat
    fibre%well_reach = reach
  end subroutine set_wells

  !> Points of flexible chains that each core carries along in its own frame; there are none until they are set.
  subroutine set_limbs(handle, n_limbs, n_cores, limb, charge, kind, sigma, strength)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n_limbs, n_cores
    real(real64), intent(in) :: limb(3, n_limbs, n_cores), charge(n_limbs, n_cores)   !< nm, e
    integer(int32), intent(in) :: kind(n_limbs, n_cores)   !< of matter, 0 for a point that is not there
    real(real64), intent(in) :: sigma(5, 5), strength(5, 5)   !< nm, kBT: excluded volume between kinds
    type(fibre_t), pointer :: fibre
    fibre => fibre_of(handle)
    if (all(kind == 0)) return
    fibre%n_limbs = n_limbs
    fibre%limb = limb
    fibre%limb_charge = charge
    fibre%limb_kind = kind
    fibre%limb_sigma = sigma
    fibre%strength = strength
  end subroutine set_limbs

  !> Put the fibre into a conformation.
  subroutine place_fibre(handle, n, position, frame)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n
    real(real64), intent(in) :: position(3, n)     !< nm
    real(real64), intent(in) :: frame(3, 3, n)     !< columns: the axes of a core; direction of a bead's segment, two normals
    call place(fibre_of(handle), position, frame)
  end subroutine place_fibre

  !> The conformation that the fibre has come to.
  subroutine read_fibre(handle, n, position, frame)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n
    real(real64), intent(out) :: position(3, n), frame(3, 3, n)   !< as in `place_fibre`
    type(fibre_t), pointer :: fibre
    fibre => fibre_of(handle)
    position = fibre%position
    frame = fibre%frame
  end subroutine read_fibre

end module fibre_handle
