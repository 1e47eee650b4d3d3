# The table of the loops that are compiled in variants: one procedure for each combination of the values below, generated
# from a template when CMake configures, so that the inner loops hold no branches. Values are names of constants in Fortran
# (module loop_properties) and, in upper case behind LOOP_ or LAW_, macros of the templates.

# Law of the pairs: the van der Waals energy near the cutoff, charges in implicit solvent (with a switch, which may have no
# width, or with repulsion alone), or tables in place of all formulas. A source file each.
set(pair_laws plain switch force_switch dispersion_pme screened repulsive linear_table cubic_table)
set(exact_pair_laws plain switch force_switch screened repulsive linear_table cubic_table)

# Lennard-Jones parameters by the Lorentz-Berthelot rule from those of the atoms, or from the matrices of the types.
set(parameters_values by_rule by_matrix)
set(energy_values forces_only with_energy)
# Do all pairs of an entry of the list count, or those that its bits tell?
set(entries_values whole masked)

set(pair_loop_properties parameters energy entries)
set(exact_loop_properties parameters energy)

# Loops over the rows of a material: laws, each with the values of energy that it comes with.
set(material_laws lennard_jones electron_density embedded_atoms)
set(lennard_jones_energies forces_only with_energy)
set(electron_density_energies forces_only)
set(embedded_atoms_energies forces_only with_energy)

# Orders of the splines of PME whose loops have a fixed length.
set(pme_orders 4 5 6)

# expand_loops(TEMPLATE LOOPS TABLE PROPERTY...): in LOOPS the text that includes the template once for each combination of
# the properties' values, in TABLE that of the assignments loop(VALUE, ...)%run => VALUE_....
function(expand_loops template loops_variable table_variable first)
  set(rows ${${first}_values})
  foreach(property IN LISTS ARGN)
    set(longer)
    foreach(row IN LISTS rows)
      foreach(value IN LISTS ${property}_values)
        list(APPEND longer ${row}:${value})
      endforeach()
    endforeach()
    set(rows ${longer})
  endforeach()
  set(loops)
  set(table)
  foreach(row IN LISTS rows)
    string(REPLACE ":" "_" name ${row})
    string(REPLACE ":" ", " indices ${row})
    string(REPLACE ":" ";" values ${row})
    string(TOUPPER "${values}" macros)
    string(APPEND loops "#define LOOP_NAME ${name}\n")
    list(TRANSFORM macros REPLACE "(.+)" "#define LOOP_\\1" OUTPUT_VARIABLE defines)
    list(TRANSFORM macros REPLACE "(.+)" "#undef LOOP_\\1" OUTPUT_VARIABLE undefines)
    list(JOIN defines "\n" defines)
    list(JOIN undefines "\n" undefines)
    string(APPEND loops "${defines}\n#include \"${template}\"\n${undefines}\n\n")
    string(APPEND table "    loop(${indices})%run => ${name}\n")
  endforeach()
  set(${loops_variable} "${loops}" PARENT_SCOPE)
  set(${table_variable} "${table}" PARENT_SCOPE)
endfunction()

# enumerate_values(RESULT NAME...): Fortran constants of these names, counted from 1.
function(enumerate_values result)
  set(number 0)
  set(text)
  foreach(name IN LISTS ARGN)
    math(EXPR number "${number} + 1")
    string(APPEND text "  integer, parameter, public :: ${name} = ${number}\n")
  endforeach()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()
