!> Reads cases, `domains torus-axes torus edge width` in a line, and writes for each the links that a byte of the halo
!> travels as ranks come and as fortran/comm/comm_torus_map.f90 places them.
program torus_links
  use, intrinsic :: iso_fortran_env, only: input_unit, output_unit
  use base_kinds, only: real64
  use comm_torus_map, only: map_to_torus
  implicit none
  integer :: domains(3), axes, status
  integer, allocatable :: torus(:), process(:)
  real(real64) :: edge(3), width, links(2)
  character(len=1000) :: line
  do
    read (input_unit, "(a)", iostat=status) line
    if (status /= 0) exit
    read (line, *) domains, axes
    allocate (torus(axes))
    read (line, *) domains, axes, torus, edge, width
    call map_to_torus(domains, torus, edge, width, process, links)
    write (output_unit, "(2f12.6)") links
    deallocate (torus)
  end do
end program torus_links
