!> Atoms that one, two or three bonds join, in a graph of compressed rows: neighbours of atom i are
!> neighbour(graph_first(i+1)+1 .. graph_first(i+2)). Atom numbers are 0-based.
module bonded_neighbours
  use iso_fortran_env, only: int32
  implicit none
  private
  public :: within_three_bonds, list_within_three_bonds

contains

  !> Whether a path of at most three bonds joins two atoms.
  pure logical function within_three_bonds(graph_first, neighbour, a, b) result(joined)
    integer(int32), intent(in) :: graph_first(:), neighbour(:), a, b

    integer(int32) :: i, j, k, p, q

    joined = .true.
    do i = graph_first(a + 1) + 1, graph_first(a + 2)
      if (neighbour(i) == b) return
    end do
    do i = graph_first(a + 1) + 1, graph_first(a + 2)
      p = neighbour(i)
      do j = graph_first(b + 1) + 1, graph_first(b + 2)
        if (neighbour(j) == p) return
      end do
    end do
    do i = graph_first(a + 1) + 1, graph_first(a + 2)
      p = neighbour(i)
      do k = graph_first(p + 1) + 1, graph_first(p + 2)
        q = neighbour(k)
        do j = graph_first(b + 1) + 1, graph_first(b + 2)
          if (neighbour(j) == q) return
        end do
      end do
    end do
    joined = .false.
  end function within_three_bonds

  !> The atoms that at most three bonds join to an atom, some of them twice; counts on when the room is full.
  pure subroutine list_within_three_bonds(graph_first, neighbour, a, room, atom, n)
    integer(int32), intent(in) :: graph_first(:), neighbour(:), a, room
    integer(int32), intent(inout) :: atom(room)
    integer(int32), intent(out) :: n

    integer(int32) :: bonds, i, k, begin, finish

    n = 0
    do k = graph_first(a + 1) + 1, graph_first(a + 2)
      n = n + 1
      if (n <= room) atom(n) = neighbour(k)
    end do
    begin = 1
    do bonds = 2, 3
      if (n > room) return
      finish = n
      do i = begin, finish
        do k = graph_first(atom(i) + 1) + 1, graph_first(atom(i) + 2)
          if (neighbour(k) == a) cycle
          n = n + 1
          if (n <= room) atom(n) = neighbour(k)
        end do
      end do
      begin = finish + 1
    end do
  end subroutine list_within_three_bonds

end module bonded_neighbours
