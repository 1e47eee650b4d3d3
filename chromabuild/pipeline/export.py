"""Results in the files of other programs."""

import filecmp
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from chromabuild.base.errors import BadInputError, ChromabuildError
from chromabuild.base.settings import Settings
from chromabuild.base.summary import Summary
from chromabuild.base.whole_folder import whole_folder
from chromabuild.pipeline.ask import refuse_without_memory
from chromabuild.pipeline.needs import OPENMM_BYTES_PER_ATOM, export_memory
from chromabuild.pipeline.results import Results, open_results, phase_done

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from chromabuild.export.selection import ChosenMolecules
    from chromabuild.export.solvent import SolventKind
    from chromabuild.export.system import BuiltSystem
    from chromabuild.molecule.solute import Solute
    from chromabuild.shards import StoredVectors
    from chromabuild.simulate.end_pairs import EndBond
    from chromabuild.simulate.protocol import PlannedPhase
    from mesoscale.scaffold import Scaffold

Program = Literal["gromacs", "openmm", "amber", "namd", "genesis", "lammps"]
_BED = "nucleosomes.bed"
_PRMTOP, _PSF = "system.prmtop", "system.psf"
_MAIN_FILES = {"gromacs": ("system.top",), "openmm": ("system.xml",), "amber": (_PRMTOP,), "namd": (_PRMTOP, _PSF),
               "genesis": (_PRMTOP, _PSF), "lammps": ("system.data",)}
"""One of which every export has."""


def export_results(settings: Settings, program: Program, folder: Path | None = None, part: str = "system",
                   after: str | None = None, force: bool = False) -> Summary:
    """Write what was built as input of another program into ``folder``, by default ``export/PROGRAM`` of the output
    folder.

    ``part``: the whole ``system`` with the protocol of the settings; the ``solute`` alone, without it; or a selection
    as ``chromabuild shards merge`` takes it, whose molecules are exported whole, with the protocol of a part
    (``_protocol_of_part``). ``after``: the phase at whose end coordinates and velocities are, and after which the
    protocol goes on; None: as built. Raises BadInputError where results are missing, for an unknown phase, for a
    selection that is none, where the folder holds an export unless ``force``, and for what the program's files cannot
    hold. All files appear together or none; BusyError while another process exports into the folder.
    """
    if program not in get_args(Program):
        raise BadInputError(f"there is no export to {program}: choose from {', '.join(get_args(Program))}")
    output = Path(settings.output)
    folder = folder or output / "export" / program
    _refuse_old(folder, program, force)
    if part not in ("system", "solute"):
        from chromabuild.shards.selection import parse_selection

        parse_selection(part)  # what is wrong with it is said before large files are read
    results = open_results(output)
    _ask_for_memory(results, program, f"the export to {program}")
    system = built_system(results, after)
    told: Summary = {}
    phases, held = _protocol(settings, after) if part != "solute" else ((), [])
    if part != "system":
        chosen = system.chosen(part)
        whole, system = system, system.of_molecules(chosen)
        phases, held, dropped = _protocol_of_part(phases, held, whole, chosen, system)
        told = {"part": part, "selected atoms": chosen.selected,
                "net charge": f"{system.topology.net_charge:+.2f} e",
                **({"restraints left out": ", ".join(dropped)} if dropped else {})}
    if program == "openmm":
        told["memory of OpenMM"] = f"{OPENMM_BYTES_PER_ATOM * system.topology.n_atoms / 1e9:.1f} GB"
    with whole_folder(folder, _MAIN_FILES[program]) as made:
        _refuse_old(folder, program, force)
        paths = _writer(program)(system, made, settings.dynamics, phases, settings.seed, held)
    return {"folder": str(folder), "atoms": system.topology.n_atoms, **told, "coordinates": after or "as built",
            "files": [str(path.relative_to(made)) for path in paths]}


def _refuse_old(folder: Path, program: Program, force: bool) -> None:
    """Raise BadInputError for a folder that holds an export unless ``force``."""
    if any((folder / name).exists() for name in _MAIN_FILES[program]) and not force:
        raise BadInputError(f"{folder} holds an export already: give another --output, or --force to replace it")


def _protocol(settings: Settings, after: str | None) -> "tuple[tuple[PlannedPhase, ...], list[EndBond]]":
    """The phases of the settings, or those after one of them, and the base pairs that they hold."""
    from chromabuild.simulate.end_pairs import end_bonds
    from chromabuild.simulate.protocol import plan_phases

    phases = plan_phases(settings.simulate)
    done = next((phase.number for phase in phases if phase.name == after), 0)
    phases = phases[done:]
    held = end_bonds(Path(settings.output) / "topology.h5") if any(phase.end_pairs for phase in phases) else []
    return phases, held


def _protocol_of_part(phases: "Sequence[PlannedPhase]", held: "Sequence[EndBond]", whole: "BuiltSystem",
                      chosen: "ChosenMolecules", part: "BuiltSystem"
                      ) -> "tuple[tuple[PlannedPhase, ...], list[EndBond], list[str]]":
    """Phases and base pairs for a part of a system, and the groups of restraints that have no atom there.

    Restraints on these are left out. Constant volume takes the place of constant pressure unless all water is there: a
    part does not fill the box.
    """
    from chromabuild.simulate.groups import atoms_of_group

    topology = whole.topology
    fills = all(len(rows) == count for rows, count, t in zip(
        chosen.of_run, topology.run_count.tolist(), topology.run_template.tolist(), strict=True)
        if topology.templates[t].rigid_water)
    places = [(bond, [chosen.place(topology, atom) for atom in bond.atoms]) for bond in held]
    bonds = [replace(bond, atoms=(first, second)) for bond, (first, second) in places
             if first is not None and second is not None]
    groups = sorted({one.group for phase in phases for one in phase.restraints})
    empty = [group for group in groups if not len(atoms_of_group(group, part.topology))]
    return tuple(replace(
        phase, restraints=tuple(one for one in phase.restraints if one.group not in empty),
        end_pairs=phase.end_pairs if bonds else 0.0,
        ensemble="NVT" if phase.ensemble == "NPT" and not fills else phase.ensemble) for phase in phases), bonds, empty


def _writer(program: Program) -> "Callable[..., list[Path]]":
    """What writes a system for a program: ``(system, folder, dynamics, phases, seed, end_bonds)``."""
    if program == "gromacs":
        from chromabuild.export.gromacs import export_gromacs as export
    elif program == "openmm":
        from chromabuild.export.openmm_files import export_openmm as export
    elif program == "amber":
        from chromabuild.export.amber import export_amber as export
    elif program == "namd":
        from chromabuild.export.namd import export_namd as export
    elif program == "genesis":
        from chromabuild.export.genesis import export_genesis as export
    else:
        from chromabuild.export.lammps import export_lammps as export
    return export


def export_structure(settings: Settings, path: Path, region: str | None = None, nucleosomes: str | None = None,
                     as_built: bool = False, after: str | None = None, frame: int | None = None,
                     water: float | None = None, force: bool = False) -> Summary:
    """Write the solute, or a part of it, as mmCIF, BinaryCIF or PDB.

    ``region``: ``chrXIII:1000-2000``; ``nucleosomes``: ``3-7``, from 1. ``as_built``: before the correction of clashes;
    ``after``: at the end of a phase of the dynamics, or in a ``frame`` of it, from 1 or from -1 backwards. ``water``:
    with the waters and ions that are so near (angstrom), in the coordinates of the box. Raises BadInputError where
    results are missing, for choices that contradict each other or choose nothing, and where the file is there unless
    ``force``.
    """
    from chromabuild.export.structure import write_structure

    _leave(path, force)
    _ask_for_memory(open_results(Path(settings.output)), "structure", f"the export to {path.name}")
    chosen = _chosen_solute(settings, region, nucleosomes, as_built, after, frame, water)
    write_structure(chosen.solute, path, chosen.title, chosen.solute.provenance, chosen.solvent)
    return {"file": str(path), **chosen.summary}


def export_scene(settings: Settings, path: Path, region: str | None = None, nucleosomes: str | None = None,
                 as_built: bool = False, after: str | None = None, frame: int | None = None,
                 force: bool = False) -> Summary:
    """Write the solute, or a part of it, with colours and representations for ChimeraX, VMD, Mol* or Mesoscale
    Explorer, by the suffix of the file.

    Arguments and errors as for ``export_structure``. Mesoscale Explorer shows whole loci: BadInputError for a part.
    """
    from chromabuild.export.scene import write_scene

    _leave(path, force)
    if path.suffix == ".zip" and (region, nucleosomes, after, frame) != (None, None, None, None):
        raise BadInputError(f"{path} would place rigid bodies of the whole scaffold: leave out --region, "
                            "--nucleosomes, --after and --frame, or name it .mvsx")
    if path.suffix == ".zip" and settings.refine.enabled and not as_built:
        raise BadInputError(f"{path} would place rigid bodies of the scaffold, which refine.enabled moved: give "
                            "--as-built, or name it .mvsx")
    _ask_for_memory(open_results(Path(settings.output)), "structure", f"the export to {path.name}")
    chosen = _chosen_solute(settings, region, nucleosomes, as_built, after, frame)
    with whole_folder(path.parent, (path.name,)) as made:
        _leave(path, force)
        files = write_scene(chosen.solute, made / path.name, chosen.title, chosen.scaffold)
        for file in files[1:]:
            # The structure of a scene for another program is the same file.
            if not (path.with_name(file.name).exists() and filecmp.cmp(file, path.with_name(file.name), shallow=False)):
                _leave(path.with_name(file.name), force)
    return {"files": [str(path.with_name(file.name)) for file in files], **chosen.summary}


def export_tracks(settings: Settings, folder: Path | None = None, force: bool = False) -> Summary:
    """Write what was built as tracks of genome browsers into ``folder``, by default ``export/tracks`` of the output
    folder. Raises BadInputError where there is no scaffold, and where tracks are there unless ``force``."""
    from chromabuild.export.tracks import write_tracks
    from mesoscale.scaffold import Scaffold

    output = Path(settings.output)
    folder = folder or output / "export" / "tracks"
    _leave(folder / _BED, force)
    if not (output / "scaffold.h5").is_file():
        raise BadInputError(f"{output} holds no scaffold: run `chromabuild scaffold`")
    with whole_folder(folder, (_BED,)) as made:
        _leave(folder / _BED, force)
        paths = write_tracks(Scaffold.read(output / "scaffold.h5"), made)
    return {"folder": str(folder), "files": [path.name for path in paths]}


def _ask_for_memory(results: Results, kind: str, what: str) -> None:
    """Raise ResourceError for an export that needs more memory than there is; what is missing or damaged, its reader
    says."""
    from chromabuild.molecule.solute import Solute

    try:
        solute = Solute.open(results.folder / "solute_clean.h5")
    except ChromabuildError:
        return
    atoms = solute.n_atoms
    solute.position.file.close()
    refuse_without_memory(export_memory(kind, atoms), f"{what} of {atoms:.3g} atoms of solute",
                          "run it where there is more: output folders can be copied to other machines")


def _leave(path: Path, force: bool) -> None:
    """Raise BadInputError for a file that is there unless ``force``."""
    if path.exists() and not force:
        raise BadInputError(f"{path} is there already: give another name, or --force to replace it")


@dataclass(frozen=True)
class _Chosen:
    """A solute or a part of it in one of its states."""

    solute: "Solute"
    scaffold: "Scaffold"
    title: str
    summary: Summary
    solvent: "Sequence[SolventKind]" = ()


def _chosen_solute(settings: Settings, region: str | None, nucleosomes: str | None, as_built: bool,
                   after: str | None, frame: int | None, water: float | None = None) -> _Chosen:
    from chromabuild.export.region import base_pairs_of_nucleosomes, base_pairs_of_region, part_of_solute

    if region is not None and nucleosomes is not None:
        raise BadInputError("--region and --nucleosomes choose differently: give one of them")
    if as_built and after is not None:
        raise BadInputError("--as-built and --after are two states of the same atoms: give one of them")
    results = open_results(Path(settings.output))
    solute = results.solute if as_built else results.solvated_solute
    if frame is not None and after is None:
        raise BadInputError(f"--frame {frame} needs a phase of the dynamics: name it with --after")
    if water is not None and as_built:
        raise BadInputError("--water is of the box, which holds the solute without clashes: leave out --as-built")
    if after is not None or water is not None:
        position, box, all_atoms = _state(results, solute, after, frame)
        solute = replace(solute, position=position)
    scaffold = results.scaffold
    first, last = 0, len(scaffold.base) - 1
    if region is not None:
        first, last = base_pairs_of_region(region, scaffold)
    elif nucleosomes is not None:
        first, last = base_pairs_of_nucleosomes(nucleosomes, scaffold)
    if (first, last) != (0, len(scaffold.base) - 1):
        solute = part_of_solute(solute, scaffold, first, last)
    where = f"{scaffold.chromosome}:{scaffold.position[first] + 1}-{scaffold.position[last] + 1}"
    solvent: Sequence[SolventKind] = ()
    if water is not None:
        solvent = _solvent(results, all_atoms, box, solute, water)
    state = "as built" if as_built else f"after {after}" if after else "without clashes"
    if frame is not None:
        state = f"frame {frame} of {after}"
    return _Chosen(solute, scaffold, f"{scaffold.name}, {where}, {state}",
                   {"region": where, "base pairs": last - first + 1,
                    "nucleosomes": len(set(solute.molecule_nucleosome.tolist()) - {-1}), "atoms": solute.n_atoms,
                    **({"waters": sum(kind.count for kind in solvent if kind.is_water),
                        "ions": sum(kind.count for kind in solvent if not kind.is_water)}
                       if water is not None else {}), "coordinates": state}, solvent)


def built_system(results: Results, after: str | None) -> "BuiltSystem":
    """Force field and coordinates, as built or at the end of a phase."""
    from chromabuild.export.system import BuiltSystem
    from chromabuild.forcefield.topology_file import Topology
    from chromabuild.shards import store_shards
    from chromabuild.simulate.restart_file import store_restart

    topology = Topology.read(results.folder / "topology.h5")
    try:
        solute = results.solvated_solute
    except BadInputError:
        solute = None
    if after is None:
        box, position = store_shards(results.folder / "shards")
        return BuiltSystem(topology, position, box, solute)
    phase = phase_done(results, after)
    end = store_restart(phase.restart, topology.n_atoms, results.folder)
    velocity = end.velocity if phase.kind == "dynamics" else None
    return BuiltSystem(topology, end.position, end.box, solute, velocity).whole(results.folder)


def _state(results: Results, solute: "Solute", after: str | None,
           frame: int | None) -> "tuple[np.ndarray, np.ndarray, np.ndarray | StoredVectors]":
    """(n, 3) of the solute with its molecules together as they were built, the box (3,), and (atoms, 3) of all atoms
    that are there: in the shards, at the end of a phase, or in a frame of it."""
    from chromabuild.export.frame import gathered, read_frame
    from chromabuild.shards import store_shards

    built_box, built = store_shards(results.folder / "shards")
    n = solute.n_atoms
    if after is None:
        return built[:n], built_box, built
    phase = phase_done(results, after)
    if frame is None:
        from chromabuild.simulate.restart_file import store_restart

        end = store_restart(phase.restart, len(built), results.folder)
        position, box = end.position, end.box
    elif phase.trajectory is None:
        raise BadInputError(f"phase {after} has written no frames: leave out --frame for its end, or give it a "
                            "trajectory_period")
    else:
        position, box = read_frame(phase.trajectory, frame, n)
    return gathered(position[:n], solute, box, built[:n]), box, position


def _solvent(results: Results, position: "np.ndarray | StoredVectors", box: "np.ndarray", solute: "Solute",
             distance: float) -> "list[SolventKind]":
    """Waters and ions within a distance of a solute."""
    from chromabuild.export.solvent import solvent_near
    from chromabuild.forcefield.topology_file import Topology
    from chromabuild.shards.shard_set import ShardSet

    topology = Topology.read(results.folder / "topology.h5")
    if len(position) != topology.n_atoms:
        raise BadInputError("the trajectory holds no water: leave out --frame for the end of the phase, or --water; "
                            "dynamics.trajectory_selection: all keeps it")
    return solvent_near(topology, position, box, solute.position, distance,
                        ShardSet.read(results.folder / "shards").manifest.counts["solute"])
