!> Parts of chromaqm for the tests.
!> `qm_driver transforms`: errors of the transforms of a sphere, one `name value` a line, of all ranks.
!> `qm_driver xc NAME` with lines `rho gamma` on standard input: f, df/drho, df/dgamma of each.
!> `qm_driver kernels EDGE STATES REPEATS`: of states at 70 Ry in a cube (bohr), operations and processor seconds of one
!> pass of their kernels, `name operations seconds` a line; on one rank.
!> `qm_driver root`: error of the inverse square root of a matrix, near to the unit matrix and far from it.
program qm_driver
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use base_error, only: error_t
  use comm_communicator, only: communicator_t
  use sphere_transform, only: sphere_transform_t
  use start_states, only: draw_states
  use state_products, only: add_rotated, inverse_square_root, orthonormalise, overlap
  use wave_sphere, only: grid_size, sphere_t
  use xc_functional, only: xc_names, xc_t
  implicit none
  type(communicator_t) :: comm
  character(len=16) :: command

  call get_command_argument(1, command)
  select case (command)
  case ("transforms")
    call comm%start()
    call check_transforms()
    call comm%finish()
  case ("kernels")
    call comm%start()
    call time_kernels()
    call comm%finish()
  case ("xc")
    call evaluate_functional()
  case ("root")
    call check_root()
  end select

contains

  subroutine check_transforms()
    integer, parameter :: n_states = 53
    real(real64), parameter :: box(3) = [7.0_real64, 8.5_real64, 9.0_real64]
    type(sphere_t) :: waves, dense
    type(sphere_transform_t) :: states_plan, dense_plan
    type(error_t), allocatable :: error
    complex(real64), allocatable :: c(:, :), back(:, :), kept(:, :, :), none(:, :, :), field(:, :), again(:, :)
    real(real64), allocatable :: grid(:, :, :, :), density(:, :, :, :), one(:, :, :), unit(:, :), whole(:, :)
    real(real64) :: worst, r(3), found(1), direct(1), sums(2)
    integer :: n(3), s, z

    n = grid_size(40.0_real64, box)
    call waves%create(box, n, 10.0_real64, comm%n_ranks, comm%rank)
    call dense%create(box, n, 40.0_real64, comm%n_ranks, comm%rank)
    call states_plan%create(waves, comm)
    call dense_plan%create(dense, comm)
    allocate (c(waves%n_waves, n_states), back(waves%n_waves, n_states), &
              unit(n_states, n_states), whole(n_states, n_states))
    call draw_states(waves, 1_int64, 1, c)
    call orthonormalise(waves, comm, c, error)
    allocate (grid(n(1), n(2), states_plan%n_planes, n_states), one(n(1), n(2), states_plan%n_planes), &
              density(n(1), n(2), states_plan%n_planes, 1))

    call states_plan%to_grid(c, grid)
    call states_plan%to_waves(grid, back)
    worst = 0.0_real64
    if (size(c) > 0) worst = maxval(abs(back - c))
    call say("round_trip", comm%maximum(worst))

    ! A point of the grid, summed wave by wave.
    z = n(3)/3
    r = [box(1)*4/n(1), box(2)*7/n(2), box(3)*z/n(3)]
    found = 0.0_real64
    if (z >= states_plan%first_plane .and. z < states_plan%first_plane + states_plan%n_planes) &
      found = grid(5, 8, z - states_plan%first_plane + 1, 3)
    direct = waves%doubled([(real(c(s, 3)*exp(cmplx(0.0_real64, dot_product(waves%g(s, :), r), real64)), real64), &
                             s=1, waves%n_waves)])
    call comm%sum(found)
    call comm%sum(direct)
    call say("direct_sum", abs(found(1) - direct(1)))

    allocate (kept(n(1), n(2), max(1, states_plan%map%n_objects((n_states + 1)/2))), none(0, 0, 0))
    density = 0.0_real64
    call states_plan%add_density(c, 2.0_real64, density(:, :, :, 1), kept)
    sums = [sum(density), sum(2.0_real64*grid**2)]
    call comm%sum(sums)
    call say("electrons", abs(sums(1)/product(n) - 2.0_real64*n_states))
    call say("squares", abs(sums(1) - sums(2))/product(n))

    ! Times one is nothing; with the states kept and transformed again.
    one = 1.0_real64
    back = -c
    call states_plan%apply_potential(one, c, back, none)
    worst = 0.0_real64
    if (size(c) > 0) worst = maxval(abs(back))
    back = -c
    call states_plan%apply_potential(one, c, back, kept)
    if (size(c) > 0) worst = max(worst, maxval(abs(back)))
    call say("potential", comm%maximum(worst))

    ! The density has no waves beyond its sphere.
    allocate (field(dense%n_waves, 1), again(dense%n_waves, 1))
    call dense_plan%to_waves(density, field)
    deallocate (grid)
    allocate (grid, mold=density)
    call dense_plan%to_grid(field, grid)
    worst = 0.0_real64
    if (size(grid) > 0) worst = maxval(abs(grid - density))
    call say("density", comm%maximum(worst))

    call overlap(waves, comm, c, c, unit, .true.)
    do s = 1, n_states
      unit(s, s) = unit(s, s) - 1.0_real64
    end do
    call say("orthonormal", maxval(abs(unit)))

    ! Half of a symmetric matrix is that of the whole one.
    do s = 1, n_states
      back(:, s) = waves%g2*c(:, s)
    end do
    call overlap(waves, comm, c, back, unit, .true.)
    call overlap(waves, comm, c, back, whole, .false.)
    call say("symmetric", maxval(abs(unit - whole))/maxval(abs(whole)))
  end subroutine check_transforms

  subroutine time_kernels()
    real(real64), parameter :: cutoff = 70.0_real64
    character(len=9), parameter :: names(4) = [character(len=9) :: "overlap", "rotation", "density", "potential"]
    character(len=32) :: word
    type(sphere_t) :: waves
    type(sphere_transform_t) :: plan
    complex(real64), allocatable :: c(:, :), back(:, :), none(:, :, :)
    real(real64), allocatable :: s(:, :), density(:, :, :)
    real(real64) :: edge, points, start, spent(4), flops(4), lines
    integer :: n(3), n_states, repeats, k, most
    call get_command_argument(2, word)
    read (word, *) edge
    call get_command_argument(3, word)
    read (word, *) n_states
    call get_command_argument(4, word)
    read (word, *) repeats
    n = grid_size(4.0_real64*cutoff, [edge, edge, edge])
    call waves%create([edge, edge, edge], n, cutoff, 1, 0)
    call plan%create(waves, comm)
    allocate (c(waves%n_waves, n_states), back(waves%n_waves, n_states), s(n_states, n_states), none(0, 0, 0))
    allocate (density(n(1), n(2), n(3)), source=0.0_real64)
    call draw_states(waves, 1_int64, 1, c)
    back = c
    spent = 0.0_real64
    do k = 0, repeats
      ! The first pass warms up.
      if (k == 1) spent = 0.0_real64
      call cpu_time(start)
      call overlap(waves, comm, c, back, s, .false.)
      call lap(start, spent(1))
      call add_rotated(c, s/norm2(s), back)
      call lap(start, spent(2))
      call plan%add_density(c, 2.0_real64, density, none)
      call lap(start, spent(3))
      call plan%apply_potential(density/maxval(abs(density)), c, back, none)
      call lap(start, spent(4))
    end do
    ! A complex transform of m points counts 5 m log2 m. Lines: along z of both halves of the sphere, along y where it
    ! has waves, all along x; to the grid once for the density, and both ways for the potential.
    points = product(real(n, real64))
    most = maxval(waves%stick%x)
    lines = 2.0_real64*size(waves%stick) - 1.0_real64
    flops(:2) = 4.0_real64*waves%n_waves*real(n_states, real64)**2
    flops(3) = 0.5_real64*n_states*(5.0_real64*log(real(n(1), real64))/log(2.0_real64))* &
               (lines*n(3) + (2*most + 1)*real(n(2), real64)*n(3) + points)
    flops(4) = 2.0_real64*flops(3)
    do k = 1, size(names)
      write (*, "(a,2es14.5)") trim(names(k)), flops(k), spent(k)/repeats
    end do

  end subroutine time_kernels

  !> Add to `spent` the processor time since `start`, which becomes now.
  subroutine lap(start, spent)
    real(real64), intent(inout) :: start, spent
    real(real64) :: now
    call cpu_time(now)
    spent = spent + now - start
    start = now
  end subroutine lap

  subroutine say(name, value)
    character(len=*), intent(in) :: name
    real(real64), intent(in) :: value
    if (comm%is_root()) write (*, "(a,1x,es12.4)") name, value
  end subroutine say

  subroutine evaluate_functional()
    character(len=16) :: name
    type(xc_t) :: xc
    real(real64) :: rho, gamma, f(3)
    integer :: status
    call get_command_argument(2, name)
    xc%number = findloc(xc_names, name(:4), dim=1)
    do
      read (*, *, iostat=status) rho, gamma
      if (status /= 0) exit
      call xc%evaluate(rho, gamma, f(1), f(2), f(3))
      write (*, "(3es25.16e3)") f
    end do
  end subroutine evaluate_functional

  !> Hilbert's matrix, scaled and added to the unit matrix; and alone with a little of the unit matrix.
  subroutine check_root()
    integer, parameter :: n = 24
    real(real64) :: s(n, n), root(n, n), product(n, n)
    type(error_t), allocatable :: error
    integer :: i, j, k
    do k = 1, 2
      do j = 1, n
        do i = 1, n
          s(i, j) = cos(0.1_real64*i*j)*merge(0.1_real64, 30.0_real64, k == 1)/(i + j)
        end do
      end do
      s = merge(s, matmul(s, s), k == 1)
      do i = 1, n
        s(i, i) = s(i, i) + 1.0_real64
      end do
      call inverse_square_root(s, root, error)
      product = matmul(root, matmul(s, root))
      do i = 1, n
        product(i, i) = product(i, i) - 1.0_real64
      end do
      write (*, "(a,i0,1x,es12.4)") "root", k, maxval(abs(product)) + merge(1.0_real64, 0.0_real64, allocated(error))
    end do
  end subroutine check_root

end program qm_driver
