"""A built system as GROMACS input: topology, coordinates, index groups, parameters of each phase, and the commands."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from chromabuild.base.settings import DynamicsSection
from chromabuild.export.gromacs.coordinates import write_gro, write_index
from chromabuild.export.gromacs.molecules import fast_bonds, write_topology
from chromabuild.export.gromacs.parameters import energy_parameters, phase_parameters
from chromabuild.export.parts import heavy_hydrogens, phase_script, write_texts
from chromabuild.export.system import BuiltSystem
from chromabuild.forcefield.molecule_runs import MoleculeRuns
from chromabuild.forcefield.topology_file import Topology
from chromabuild.simulate.end_pairs import EndBond
from chromabuild.simulate.groups import NUCLEOTIDES
from chromabuild.simulate.openmm_engine import nonbonded_options
from chromabuild.simulate.protocol import PlannedPhase

_PHASE = """\
# phase NAME COORDINATES [CHECKPOINT]: prepare and run a phase that is not done
phase() {
  [[ ! -f "$1.gro" ]] || return 0
  [[ -f "$1.tpr" ]] ||
    $GMX grompp -f "$1.mdp" -c "$2" -r system.gro ${3:+-t "$3"} -p system.top -n index.ndx -o "$1.tpr" \\
      -po "$1_used.mdp"
  $GMX mdrun -deffnm "$1" -cpi "$1.cpt" $MDRUN
}

"""


def export_gromacs(system: BuiltSystem, folder: Path, dynamics: DynamicsSection, phases: Sequence[PlannedPhase],
                   seed: int, end_bonds: Sequence[EndBond] = ()) -> list[Path]:
    """Write the files into ``folder``, which is made; gives their paths.

    ``phases``: each becomes an mdp file and a pair of commands in ``run.sh``; none: topology, coordinates and groups
    alone. Raises BadInputError where force field or phases cannot be translated.
    """
    groups = sorted({restraint.group for phase in phases for restraint in phase.restraints})
    heavy = heavy_hydrogens(phases, "GROMACS")
    longest = max((phase.timestep for phase in phases if phase.kind == "dynamics"), default=0.0)
    has_fast_bonds = any(fast_bonds(template, heavy, longest).any() for template in system.topology.templates)
    paths = write_topology(system.topology, folder, groups, heavy, end_bonds, longest)
    write_gro(folder / "system.gro", system)
    write_index(folder / "index.ndx", index_groups(system.topology))
    paths += [folder / "system.gro", folder / "index.ndx"]
    if not phases:
        return paths
    options = nonbonded_options(dynamics, system.box)
    chosen = MoleculeRuns.of(system.topology).ranges(dynamics.trajectory_selection)
    everything = sum(last - first + 1 for first, last in chosen) == system.topology.n_atoms
    texts = {"energy.mdp": energy_parameters(dynamics, options)}
    for phase in phases:
        # In all of dynamics, so that no phase begins with bonds that are not at their length.
        texts[f"{phase.stem}.mdp"] = phase_parameters(phase, dynamics, options, seed,
                                                      "System" if everything else "Frames",
                                                      has_fast_bonds and phase.kind == "dynamics")
    if not everything:
        write_index(folder / "index.ndx", index_groups(system.topology) | {"Frames": chosen})
    texts["run.sh"] = _commands(phases)
    return paths + write_texts(folder, texts)


def index_groups(topology: Topology) -> dict[str, list[tuple[int, int]]]:
    """Groups as ranges of atoms counted from 1: all, DNA, proteins, both, water, ions, and each of the ions' kinds."""
    found: dict[str, list[tuple[int, int]]] = {"System": [(1, topology.n_atoms)]}
    first = topology.run_first_atom.tolist()
    for which, (start, end) in zip(topology.run_template.tolist(), pairwise(first), strict=True):
        template = topology.templates[which]
        if template.rigid_water:
            names = ["Water"]
        elif template.n_atoms == 1:
            names = ["Ions", template.name]
        else:
            names = ["Solute", "DNA" if template.residue_name[0].decode()[:2] in NUCLEOTIDES else "Protein"]
        for name in names:
            found.setdefault(name, []).append((start + 1, end))
    return {name: _joined(ranges) for name, ranges in found.items()}


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    result = ranges[:1]
    for first, last in ranges[1:]:
        if result[-1][1] + 1 == first:
            result[-1] = (result[-1][0], last)
        else:
            result.append((first, last))
    return result


def _commands(phases: Sequence[PlannedPhase]) -> str:
    """A script that runs the phases in turn, and can be called again after an interruption."""
    lines = [_PHASE]
    before, checkpoint = "system.gro", ""
    for phase in phases:
        lines.append(f"phase {phase.stem} {before}{checkpoint}\n")
        before = f"{phase.stem}.gro"
        checkpoint = f" {phase.stem}.cpt" if phase.kind == "dynamics" else ""
    variables = 'GMX="${GMX:-gmx}"\nMDRUN="${MDRUN:-}"'
    return phase_script("GMX names the program, MDRUN options of mdrun.", variables, lines,
                        "one that was interrupted goes on")
