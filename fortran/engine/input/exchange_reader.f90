!> [REMD] to typed settings, and what of it contradicts itself or the rest of the control file.
module exchange_reader
  use base_kinds, only: int64, real64
  use base_error, only: error_t
  use base_text, only: lower_case, to_text
  use base_control_file, only: words
  use control, only: control_t
  use exchange_settings, only: dimension_settings_t, exchanges_pressure, exchanges_restraints, &
                               exchanges_solute, exchanges_temperature
  use settings, only: bath_none, respa, scales_charge, scales_lj, settings_t
  implicit none
  private
  public :: read_exchange

  !> Most replicas; no machine has the ranks for more.
  integer(int64), parameter :: most_replicas = 100000

contains

  !> Read and check [REMD], if the file has it.
  subroutine read_exchange(control, settings, error)
    type(control_t), intent(in) :: control
    type(settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    integer(int64) :: n
    integer :: d
    settings%exchange%is_on = control%has_section("REMD")
    call check_lists(control, settings, error)
    if (allocated(error) .or. .not. settings%exchange%is_on) return
    associate (exchange => settings%exchange)
      exchange%period = control%integer("REMD", "exchange_period")
      exchange%seed = control%integer("REMD", "iseed")
      if (control%integer("REMD", "dimension") > 9) then
        call control%refuse("REMD", "dimension", "must be at most 9", error)
        return
      end if
      allocate (exchange%dimension(control%integer("REMD", "dimension")))
      n = 1
      do d = 1, size(exchange%dimension)
        call read_dimension(control, d, exchange%dimension(d), error)
        if (.not. allocated(error)) call read_functions(control, d, settings, error)
        if (.not. allocated(error)) call read_solute(control, d, settings, error)
        if (allocated(error)) return
        n = n*exchange%dimension(d)%n
        if (n > most_replicas) call control%refuse_numbered("REMD", "nreplica", d, "makes more than "// &
                                                            to_text(most_replicas)//" replicas in all", error)
        if (allocated(error)) return
        if (count(exchange%dimension(:d)%kind == exchange%dimension(d)%kind) > 1) then
          call control%refuse_numbered("REMD", "type", d, "is that of another dimension; give each once", error)
          return
        end if
      end do
      settings%ensemble%exchanged_temperature = exchange%largest_value(exchanges_temperature)
      ! What the first replica starts with; the reader's checks see values that will be used.
      call settings%take_parameter(1)
    end associate
    call check_exchange(settings, error)
    if (.not. allocated(error) .and. settings%runs_dynamics) call check_names(settings, error)
  end subroutine read_exchange

  subroutine read_dimension(control, number, dimension, error)
    type(control_t), intent(in) :: control
    integer, intent(in) :: number
    type(dimension_settings_t), intent(out) :: dimension
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: kind, number_of_values
    kind = control%numbered("REMD", "type", number)
    select case (kind)
    case ("TEMPERATURE")
      dimension%kind = exchanges_temperature
    case ("PRESSURE")
      dimension%kind = exchanges_pressure
    case ("RESTRAINT")
      dimension%kind = exchanges_restraints
    case ("REST")
      dimension%kind = exchanges_solute
    end select
    number_of_values = control%numbered("REMD", "nreplica", number)
    read (number_of_values, *) dimension%n
    dimension%is_cyclic = control%numbered("REMD", "cyclic_params", number) == "YES"
    dimension%value = control%numbered_reals("REMD", "parameters", number)
    if (dimension%n == 0) then
      call control%refuse_numbered("REMD", "nreplica", number, "is missing; dimension asks for it", error)
    else if (dimension%kind == exchanges_restraints .and. size(dimension%value) > 0) then
      call control%refuse_numbered("REMD", "parameters", number, "does not go with RESTRAINT, whose values are those of "// &
                                   "constant and reference in [RESTRAINTS]; remove it", error)
    else if (dimension%is_cyclic .and. dimension%n == 2) then
      call control%refuse_numbered("REMD", "cyclic_params", number, "needs three parameters or more", error)
    else if (dimension%kind == exchanges_restraints) then
      return
    else if (size(dimension%value) == 0) then
      call control%refuse_numbered("REMD", "parameters", number, "is missing; type"//to_text(number)//" = "//kind// &
                                   " needs it", error)
    else if (size(dimension%value) /= dimension%n) then
      call control%refuse_numbered("REMD", "parameters", number, "must be nreplica"//to_text(number)//" = "// &
                                   to_text(dimension%n)//" numbers, not "//to_text(size(dimension%value)), error)
    else if (any(dimension%value(2:) <= dimension%value(:dimension%n - 1))) then
      call control%refuse_numbered("REMD", "parameters", number, "must ascend, since neighbours in the list exchange", error)
    else if (dimension%kind /= exchanges_pressure .and. .not. dimension%value(1) > 0.0_real64) then
      call control%refuse_numbered("REMD", "parameters", number, "must be positive temperatures", error)
    end if
  end subroutine read_dimension

  !> The restraints of a dimension, whose constants and references must be as many as its values, or one for all.
  subroutine read_functions(control, number, settings, error)
    type(control_t), intent(in) :: control
    integer, intent(in) :: number
    type(settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    character(len=:), allocatable :: list
    integer :: k, status
    associate (dimension => settings%exchange%dimension(number))
      allocate (dimension%restraint(0))
      list = control%numbered("REMD", "rest_function", number)
      if (dimension%kind /= exchanges_restraints) then
        if (list /= "") call control%refuse_numbered("REMD", "rest_function", number, "needs type"//to_text(number)// &
                                                     " = RESTRAINT", error)
        return
      end if
      deallocate (dimension%restraint)
      allocate (dimension%restraint(words(list)))
      status = merge(0, 1, verify(list, "0123456789 ") == 0 .and. list /= "")
      if (status == 0) read (list, *, iostat=status) dimension%restraint
      if (status == 0 .and. any(dimension%restraint < 1 .or. dimension%restraint > size(settings%restraint))) status = 1
      if (status /= 0) then
        call control%refuse_numbered("REMD", "rest_function", number, "must name functions of [RESTRAINTS], 1 to "// &
                                     to_text(size(settings%restraint)), error)
        return
      end if
      do k = 1, size(dimension%restraint)
        associate (restraint => settings%restraint(dimension%restraint(k)))
          if (restraint%constant /= restraint%final_constant) then
            call control%refuse_numbered("RESTRAINTS", "constant_end", dimension%restraint(k), &
                                         "does not go with a restraint that replicas exchange; remove it", error)
          else if (all(size(restraint%constants) /= [1, dimension%n])) then
            call control%refuse_numbered("RESTRAINTS", "constant", dimension%restraint(k), "must be nreplica"// &
                                         to_text(number)//" = "//to_text(dimension%n)//" numbers, or one for all", error)
          else if (all(size(restraint%references) /= [1, dimension%n])) then
            call control%refuse_numbered("RESTRAINTS", "reference", dimension%restraint(k), "must be nreplica"// &
                                         to_text(number)//" = "//to_text(dimension%n)//" numbers, or one for all", error)
          end if
          if (allocated(error)) return
        end associate
      end do
    end associate
  end subroutine read_functions

  !> Constants and references that are lists, though no replicas exchange them.
  subroutine check_lists(control, settings, error)
    type(control_t), intent(in) :: control
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    integer :: k, d
    logical :: is_exchanged
    do k = 1, size(settings%restraint)
      is_exchanged = .false.
      if (settings%exchange%is_on) then
        do d = 1, int(min(9_int64, control%integer("REMD", "dimension")))
          is_exchanged = is_exchanged .or. &
                         index(" "//control%numbered("REMD", "rest_function", d)//" ", " "//to_text(k)//" ") > 0
        end do
      end if
      if (is_exchanged) cycle
      if (size(settings%restraint(k)%constants) > 1) then
        call control%refuse_numbered("RESTRAINTS", "constant", k, "is a list, which needs a rest_function of [REMD] that "// &
                                     "names it; give one number", error)
      else if (size(settings%restraint(k)%references) > 1) then
        call control%refuse_numbered("RESTRAINTS", "reference", k, "is a list, which needs a rest_function of [REMD] that "// &
                                     "names it; give one number", error)
      end if
      if (allocated(error)) return
    end do
  end subroutine check_lists

  !> The solute of a dimension, and which of its terms are scaled.
  subroutine read_solute(control, number, settings, error)
    type(control_t), intent(in) :: control
    integer, intent(in) :: number
    type(settings_t), intent(inout) :: settings
    type(error_t), allocatable, intent(out) :: error
    character(len=9), parameter :: long(8) = [character(len=9) :: "bond", "angle", "urey", "dihedral", "improper", "cmap", &
                                              "charge", "lj"]
    character(len=2), parameter :: short(8) = ["b ", "a ", "u ", "d ", "i ", "cm", "c ", "l "]
    character(len=:), allocatable :: list, word
    integer :: begin, length, k
    if (settings%exchange%dimension(number)%kind /= exchanges_solute) then
      if (control%numbered("REMD", "select_index", number) /= "0") &
        call control%refuse_numbered("REMD", "select_index", number, "needs type"//to_text(number)//" = REST", error)
      return
    end if
    associate (solute => settings%solute)
      list = control%numbered("REMD", "select_index", number)
      read (list, *) solute%group
      if (solute%group == 0) then
        call control%refuse_numbered("REMD", "select_index", number, "is missing; type"//to_text(number)// &
                                     " = REST needs the group of the solute", error)
      else
        call settings%require_groups([solute%group], error)
      end if
      if (allocated(error)) return
      list = lower_case(control%numbered("REMD", "param_type", number))
      begin = 1
      do while (begin <= len(list))
        length = index(list(begin:)//" ", " ") - 1
        word = list(begin:begin + length - 1)
        begin = begin + length + 1
        if (word == "") cycle
        if (word == "all") then
          solute%scales = .true.
          cycle
        end if
        do k = size(long), 1, -1
          if (any(word == [character(len=10) :: short(k), long(k), trim(long(k))//"s"])) exit
        end do
        if (k == 0) then
          call control%refuse_numbered("REMD", "param_type", number, "has '"//word//"', which is none of ALL BOND ANGLE "// &
                                       "UREY DIHEDRAL IMPROPER CMAP CHARGE LJ", error)
          return
        end if
        solute%scales(k) = .true.
      end do
    end associate
  end subroutine read_solute

  !> What does not go with an exchange.
  subroutine check_exchange(settings, error)
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    associate (exchange => settings%exchange, ensemble => settings%ensemble, dynamics => settings%dynamics)
      if (settings%runs_minimisation) then
        call settings%source%refuse_file("[REMD] and [MINIMIZE] stand together; replicas exchange in [DYNAMICS]", error)
      else if (exchange%has_kind(exchanges_temperature) .and. ensemble%bath == bath_none) then
        call settings%refuse("ENSEMBLE", "tpcontrol", "leaves an exchange of temperatures without a thermostat; give "// &
                             "ensemble = NVT or NPT and BUSSI, LANGEVIN or NHC", error)
      else if (exchange%has_kind(exchanges_temperature) .and. dynamics%annealing_period > 0) then
        call settings%refuse("DYNAMICS", "annealing", "contradicts an exchange of temperatures; remove it", error)
      else if (exchange%has_kind(exchanges_temperature) .and. allocated(ensemble%final_temperature)) then
        call settings%refuse("ENSEMBLE", "temperature_end", "contradicts an exchange of temperatures; remove it", error)
      else if (exchange%has_kind(exchanges_pressure) .and. .not. ensemble%changes_box()) then
        call settings%refuse("ENSEMBLE", "ensemble", "keeps the box, so that there are no pressures to exchange; give NPT", &
                             error)
      else if (exchange%period > 0 .and. dynamics%integrator == respa .and. &
               mod(exchange%period, dynamics%long_period) /= 0) then
        call settings%refuse("REMD", "exchange_period", "must be a multiple of elec_long_period, "// &
                             to_text(dynamics%long_period), error)
      else if (exchange%has_kind(exchanges_solute) .and. exchange%has_kind(exchanges_temperature)) then
        call settings%source%refuse_file("[REMD] has the types TEMPERATURE and REST, which scale one thing twice; give one", &
                                         error)
      else if (exchange%has_kind(exchanges_solute) .and. settings%has_material()) then
        call settings%refuse("ENERGY", "forcefield", "does not go with an exchange of type REST", error)
      else if (exchange%has_kind(exchanges_solute) .and. settings%energy%ewald_dispersion .and. &
               settings%solute%scales(scales_lj)) then
        call settings%refuse("ENERGY", "vdw", "does not go with a solute whose Lennard-Jones terms are scaled; give CUTOFF", &
                             error)
      else if (exchange%has_kind(exchanges_solute) .and. settings%comm%pme_ranks > 0 .and. &
               settings%solute%scales(scales_charge)) then
        call settings%refuse("COMM", "pme_ranks", "does not go with a solute whose charges are scaled; remove it", error)
      else if (size(settings%comm%torus) > 0) then
        call settings%refuse("COMM", "torus", "does not go with replica exchange; remove it", error)
      end if
    end associate
  end subroutine check_exchange

  !> Names of files that each replica writes on its own.
  subroutine check_names(settings, error)
    type(settings_t), intent(in) :: settings
    type(error_t), allocatable, intent(out) :: error
    associate (output => settings%output)
      if (output%log == "") then
        call settings%source%require("OUTPUT", "logfile", error)
        return
      end if
      call check("logfile", output%log)
      call check("dcdfile", output%frames)
      call check("rstfile", output%restart)
      call check("remfile", output%parameters)
      call check("checkpoint", output%checkpoint)
    end associate
  contains
    subroutine check(key, name)
      character(len=*), intent(in) :: key, name
      if (allocated(error) .or. name == "" .or. index(name, "{}") > 0) return
      call settings%refuse("OUTPUT", key, "must contain {}, which stands for the number of the replica", error)
    end subroutine check
  end subroutine check_names

end module exchange_reader
