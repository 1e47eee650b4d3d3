!> Instruction sets of processors that kernels may be compiled for.
module base_instruction_set
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  private
  public :: instruction_set_name, processor_instruction_set

  !> In rising order; the same numbers as in base_cpu_features.c.
  integer, parameter, public :: baseline = 0, avx2 = 2, avx512 = 3

  interface
    !> The best instruction set that the processor and its operating system have; see base_cpu_features.c.
    integer(c_int) function processor_instruction_set() bind(c, name="chroma_instruction_set")
      import :: c_int
    end function processor_instruction_set
  end interface

contains

  !> For the log.
  pure function instruction_set_name(instruction_set) result(name)
    integer, intent(in) :: instruction_set
    character(len=:), allocatable :: name
    select case (instruction_set)
    case (avx512)
      name = "AVX-512"
    case (avx2)
      name = "AVX2"
    case default
      name = "baseline"
    end select
  end function instruction_set_name

end module base_instruction_set
