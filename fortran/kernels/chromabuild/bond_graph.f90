!> The graph of covalent bonds, and what it says of pairs of atoms: the interface that Python calls.
!> Atom numbers are 0-based in every argument.
module bond_graph
  use bonded_neighbours, only: within_three_bonds, list_within_three_bonds
  use iso_fortran_env, only: int8, int32, real64
  implicit none
  private
  public :: compress_bonds, mark_bonded_pairs, contact_limits

contains

  !> Compressed rows of bonded neighbours.
  subroutine compress_bonds(n_atoms, n_bonds, bond, graph_first, neighbour)
    integer(int32), intent(in) :: n_atoms
    integer(int32), intent(in) :: n_bonds
    integer(int32), intent(in) :: bond(2, n_bonds)
    !> neighbours of atom i are neighbour(first(i) .. first(i+1)-1), 0-based places
    integer(int32), intent(inout) :: graph_first(n_atoms + 1)
    integer(int32), intent(inout) :: neighbour(2*n_bonds)

    integer(int32) :: i, k, side, total, here

    graph_first = 0
    do k = 1, n_bonds
      do side = 1, 2
        graph_first(bond(side, k) + 1) = graph_first(bond(side, k) + 1) + 1
      end do
    end do
    total = 0
    do i = 1, n_atoms
      here = graph_first(i)
      graph_first(i) = total
      total = total + here
    end do
    graph_first(n_atoms + 1) = total
    do k = 1, n_bonds
      do side = 1, 2
        i = bond(side, k) + 1
        neighbour(graph_first(i) + 1) = bond(3 - side, k)
        graph_first(i) = graph_first(i) + 1
      end do
    end do
    do i = n_atoms, 2, -1
      graph_first(i) = graph_first(i - 1)
    end do
    graph_first(1) = 0
  end subroutine compress_bonds

  !> Mark (1) the pairs of atoms that one, two or three bonds join.
  subroutine mark_bonded_pairs(graph_first, neighbour, n_pairs, pair, bonded)
    integer(int32), intent(in) :: graph_first(:), neighbour(:)   !! as from compress_bonds
    integer(int32), intent(in) :: n_pairs
    integer(int32), intent(in) :: pair(2, n_pairs)
    integer(int32), intent(inout) :: bonded(n_pairs)

    integer(int32) :: k

    do k = 1, n_pairs
      bonded(k) = merge(1_int32, 0_int32, within_three_bonds(graph_first, neighbour, pair(1, k), pair(2, k)))
    end do
  end subroutine mark_bonded_pairs

  !> How near moved atoms may come to those around them and to each other: table values of their kinds, 0 for pairs that
  !> one, two or three bonds join. Of the moved atoms only pairs from different bodies are listed: others keep their
  !> distance.
  subroutine contact_limits(contact_table, severe_table, kind_of, graph_first, neighbour, around, moved, body, contact, &
      severe, inner, inner_contact, inner_severe, n_inner)
    !> (kinds, kinds) comfortable and severe distances of two kinds, angstrom, symmetric
    real(real64), intent(in) :: contact_table(:, :), severe_table(:, :)
    !> (atoms) kind of each atom, from 0
    integer(int8), intent(in) :: kind_of(:)
    !> as from compress_bonds
    integer(int32), intent(in) :: graph_first(:), neighbour(:)
    !> ascending 0-based atoms, none of them moved
    integer(int32), intent(in) :: around(:)
    !> 0-based atoms
    integer(int32), intent(in) :: moved(:)
    !> (moved) numbers of rigid bodies
    integer(int32), intent(in) :: body(:)
    !> (around, moved) angstrom
    real(real64), intent(inout) :: contact(:, :), severe(:, :)
    !> (2, room) 0-based places in moved; room for m (m - 1) / 2 pairs of m moved atoms
    integer(int32), intent(inout) :: inner(:, :)
    !> (room) angstrom
    real(real64), intent(inout) :: inner_contact(:), inner_severe(:)
    integer(int32), intent(out) :: n_inner

    integer(int32), parameter :: most_excluded = 96
    integer(int32) :: m, p, e, k, kind_m, n_excluded, excluded(most_excluded), place

    n_inner = 0
    do m = 1, size(moved)
      kind_m = kind_of(moved(m) + 1) + 1
      do e = 1, size(around)
        k = kind_of(around(e) + 1) + 1
        contact(e, m) = contact_table(k, kind_m)
        severe(e, m) = severe_table(k, kind_m)
      end do
      call list_within_three_bonds(graph_first, neighbour, moved(m), most_excluded, excluded, n_excluded)
      if (n_excluded <= most_excluded) then
        do k = 1, n_excluded
          place = place_of(around, excluded(k))
          if (place == 0) cycle
          contact(place, m) = 0
          severe(place, m) = 0
        end do
      else
        do e = 1, size(around)
          if (.not. within_three_bonds(graph_first, neighbour, moved(m), around(e))) cycle
          contact(e, m) = 0
          severe(e, m) = 0
        end do
      end if
      do p = m + 1, size(moved)
        if (body(p) == body(m)) cycle
        if (within_three_bonds(graph_first, neighbour, moved(m), moved(p))) cycle
        n_inner = n_inner + 1
        k = kind_of(moved(p) + 1) + 1
        inner(:, n_inner) = [m - 1, p - 1]
        inner_contact(n_inner) = contact_table(k, kind_m)
        inner_severe(n_inner) = severe_table(k, kind_m)
      end do
    end do
  end subroutine contact_limits

  !> Where an ascending list holds a number, 0 where it does not (bisection).
  pure integer(int32) function place_of(list, wanted) result(place)
    integer(int32), intent(in) :: list(:), wanted

    integer(int32) :: low, high

    low = 1
    high = size(list)
    do while (low <= high)
      place = (low + high)/2
      if (list(place) == wanted) return
      if (list(place) < wanted) then
        low = place + 1
      else
        high = place - 1
      end if
    end do
    place = 0
  end function place_of

end module bond_graph
