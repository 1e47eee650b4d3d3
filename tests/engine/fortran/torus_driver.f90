!> Reads cases, `dims torus-axes torus edge width` in a line, and writes for each a line with the hops before and after
!> mapping and the process of every rank.
program torus_driver
  use, intrinsic :: iso_fortran_env, only: input_unit, output_unit
  use base_kinds, only: real64
  use comm_torus_map, only: map_to_torus
  implicit none
  integer :: dims(3), n_axes, status
  integer, allocatable :: torus(:), process(:)
  real(real64) :: edge(3), width, hops(2)
  character(len=1000) :: line
  do
    read (input_unit, "(a)", iostat=status) line
    if (status /= 0) exit
    read (line, *) dims, n_axes
    allocate (torus(n_axes))
    read (line, *) dims, n_axes, torus, edge, width
    call map_to_torus(dims, torus, edge, width, process, hops)
    write (output_unit, "(2es24.16,*(1x,i0))") hops, process
    deallocate (torus)
  end do
end program torus_driver
