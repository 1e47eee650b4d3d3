!> The constants and the beads of flexible chains: the interface that Python calls. Chains are made once and known by a
!> number, their handle; beads are placed after the constants are set.
module chain_handle
  use chain_model, only: chains_t, new_chains, delete_chains, chains_of, place, sort_points
  use iso_fortran_env, only: int32, int64, real64
  implicit none
  private
  public :: create_chains, free_chains, set_tethers, set_springs, set_charges, set_excluded_volume, set_heads
  public :: set_surroundings, place_beads, read_beads

contains

  subroutine create_chains(handle)
    integer(int64), intent(out) :: handle
    handle = new_chains()
  end subroutine create_chains

  subroutine free_chains(handle)
    integer(int64), intent(in) :: handle
    call delete_chains(handle)
  end subroutine free_chains

  !> Which beads are a chain's, and where it hangs.
  subroutine set_tethers(handle, n_chains, first, core, anchor, stiffness)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n_chains
    integer(int32), intent(in) :: first(n_chains + 1)   !< first bead of each chain, from 1, and one more than the last
    integer(int32), intent(in) :: core(n_chains)        !< from 1
    real(real64), intent(in) :: anchor(3, n_chains)     !< nm, in the core's frame
    real(real64), intent(in) :: stiffness(n_chains)     !< kBT/nm^2
    type(chains_t), pointer :: chains
    integer(int32) :: c
    chains => chains_of(handle)
    chains%first = first
    chains%core = core
    chains%anchor = anchor
    chains%tether_k = stiffness
    allocate (chains%chain_of_bead(first(n_chains + 1) - 1))
    do c = 1, n_chains
      chains%chain_of_bead(first(c):first(c + 1) - 1) = c
    end do
  end subroutine set_tethers

  !> Bonds to the bead before, and angles with the two before.
  subroutine set_springs(handle, n_beads, bond_length, bond_k, angle, angle_k)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n_beads
    real(real64), intent(in) :: bond_length(n_beads), bond_k(n_beads)   !< nm, kBT/nm^2
    real(real64), intent(in) :: angle(n_beads), angle_k(n_beads)        !< radian, kBT
    type(chains_t), pointer :: chains
    chains => chains_of(handle)
    chains%bond_length = bond_length
    chains%bond_k = bond_k
    chains%angle = angle
    chains%angle_k = angle_k
  end subroutine set_springs

  !> Charges of the beads and the kinds of matter that they are.
  subroutine set_charges(handle, n_beads, charge, kind)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n_beads
    real(real64), intent(in) :: charge(n_beads)    !< e
    integer(int32), intent(in) :: kind(n_beads)    !< 1 to 5
    type(chains_t), pointer :: chains
    chains => chains_of(handle)
    chains%charge = charge
    chains%kind = kind
  end subroutine set_charges

  !> Excluded volume between kinds of matter.
  subroutine set_excluded_volume(handle, sigma, strength)
    integer(int64), intent(in) :: handle
    real(real64), intent(in) :: sigma(5, 5), strength(5, 5)   !< nm, kBT
    type(chains_t), pointer :: chains
    chains => chains_of(handle)
    chains%sigma = sigma
    chains%strength = strength
  end subroutine set_excluded_volume

  !> Heads of linker histones; there are none until they are set.
  subroutine set_heads(handle, n_heads, n_sites, core, site, charge)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n_heads, n_sites
    integer(int32), intent(in) :: core(n_heads)    !< that carries one, from 1
    real(real64), intent(in) :: site(3, n_sites), charge(n_sites)   !< nm in the core's frame, e
    type(chains_t), pointer :: chains
    chains => chains_of(handle)
    chains%head_core = core
    chains%head_site = site
    chains%head_charge = charge
  end subroutine set_heads

  !> A fibre that stands still: its fixed points, the places of the tethers in the world, and the screening of charges.
  subroutine set_surroundings(handle, n_points, n_chains, point, point_charge, point_kind, point_core, tether_place, bjerrum, &
      kappa, cutoff)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n_points, n_chains
    real(real64), intent(in) :: point(3, n_points), point_charge(n_points)   !< nm, e
    integer(int32), intent(in) :: point_kind(n_points)   !< of matter, 1 to 5
    integer(int32), intent(in) :: point_core(n_points)   !< that a point belongs to, from 1, 0 for none
    real(real64), intent(in) :: tether_place(3, n_chains)   !< nm
    real(real64), intent(in) :: bjerrum, kappa, cutoff   !< nm, 1/nm, nm
    type(chains_t), pointer :: chains
    chains => chains_of(handle)
    chains%bjerrum = bjerrum
    chains%kappa = kappa
    chains%cutoff = cutoff
    chains%tether_place = tether_place
    call sort_points(chains, point, point_charge, point_kind, point_core)
  end subroutine set_surroundings

  !> Put the beads there.
  subroutine place_beads(handle, n_beads, bead)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n_beads
    real(real64), intent(in) :: bead(3, n_beads)   !< nm
    call place(chains_of(handle), bead)
  end subroutine place_beads

  !> Where the beads have come to.
  subroutine read_beads(handle, n_beads, bead)
    integer(int64), intent(in) :: handle
    integer(int32), intent(in) :: n_beads
    real(real64), intent(out) :: bead(3, n_beads)  !< nm
    type(chains_t), pointer :: chains
    chains => chains_of(handle)
    bead = chains%position
  end subroutine read_beads

end module chain_handle
