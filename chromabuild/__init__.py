"""chromabuild: from a gene locus to a running all-atom molecular dynamics simulation.

The names below are the public interface, and read as a build goes:

    from chromabuild import (Locus, add_solvent, assign_force_field, build_solute, fold, remove_clashes, run_dynamics)

    locus = Locus.from_files("locus.fa", "nucleosomes.bed", "contacts.bedpe")
    scaffold = fold(locus, sweeps=500, seed=1)
    solute = build_solute(scaffold)
    solute, report = remove_clashes(solute)
    shards = add_solvent(solute, "shards", padding=10.0)
    topology = assign_force_field(solute, shards)
    run = run_dynamics(topology, shards, "md", protocol="standard")

``run_chain`` does all of this for a settings file, with records and resuming, and ``open_results`` reads what is there.
``Scaffold``, ``Solute``, ``ClashReport``, ``ShardSet``, ``Topology`` and ``Run`` read what they or the chain wrote with
``read``; in a notebook they show themselves. ``DnaAnalysis``, ``NucleosomeAnalysis``, ``FibreAnalysis``,
``SolventAnalysis`` and ``StructureAnalysis`` measure trajectories, as analyses of MDAnalysis; ``Ensemble`` measures
many folds of a locus.

The functions are verbs with their object because the plain verbs are subpackages (``chromabuild.build``,
``chromabuild.solvate``, ``chromabuild.simulate``), and a package cannot have both under one name.

Versions are semantic (https://semver.org): what ``__all__`` names, the command line, the settings and the file formats
change in incompatible ways with the first number only, while that is 0 with the second; all else may change at any
time. Names are imported when they are first used, so that ``import chromabuild`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chromabuild.analysis.dna_analysis import DnaAnalysis
    from chromabuild.analysis.ensemble import Ensemble
    from chromabuild.analysis.fibre_analysis import FibreAnalysis
    from chromabuild.analysis.nucleosome_analysis import NucleosomeAnalysis
    from chromabuild.analysis.solvent_analysis import SolventAnalysis
    from chromabuild.analysis.structure_analysis import StructureAnalysis
    from chromabuild.api import (
        add_bound_ions,
        add_solvent,
        assign_force_field,
        build_solute,
        fold,
        refine_solute,
        relax_solute,
        remove_clashes,
        run_dynamics,
    )
    from chromabuild.base.errors import ChromabuildError
    from chromabuild.base.settings import Settings
    from chromabuild.clash.report import ClashReport
    from chromabuild.forcefield.topology_file import Topology
    from chromabuild.genome.locus import Locus
    from chromabuild.molecule.solute import Solute
    from chromabuild.pipeline.results import open_results, run_chain
    from chromabuild.shards.shard_set import ShardSet
    from chromabuild.simulate.result import Run
    from mesoscale.scaffold import Scaffold

    __version__: str

__all__ = [
    "ChromabuildError",
    "ClashReport",
    "DnaAnalysis",
    "Ensemble",
    "FibreAnalysis",
    "Locus",
    "NucleosomeAnalysis",
    "Run",
    "Scaffold",
    "Settings",
    "ShardSet",
    "Solute",
    "SolventAnalysis",
    "StructureAnalysis",
    "Topology",
    "__version__",
    "add_bound_ions",
    "add_solvent",
    "assign_force_field",
    "build_solute",
    "fold",
    "open_results",
    "refine_solute",
    "relax_solute",
    "remove_clashes",
    "run_chain",
    "run_dynamics",
]

_HOME = {
    "chromabuild.analysis.dna_analysis": ("DnaAnalysis",),
    "chromabuild.analysis.ensemble": ("Ensemble",),
    "chromabuild.analysis.fibre_analysis": ("FibreAnalysis",),
    "chromabuild.analysis.nucleosome_analysis": ("NucleosomeAnalysis",),
    "chromabuild.analysis.solvent_analysis": ("SolventAnalysis",),
    "chromabuild.analysis.structure_analysis": ("StructureAnalysis",),
    "chromabuild.api": ("add_bound_ions", "add_solvent", "assign_force_field", "build_solute", "fold", "refine_solute",
                        "relax_solute", "remove_clashes", "run_dynamics"),
    "chromabuild.base.errors": ("ChromabuildError",),
    "chromabuild.base.settings": ("Settings",),
    "chromabuild.clash.report": ("ClashReport",),
    "chromabuild.forcefield.topology_file": ("Topology",),
    "chromabuild.genome.locus": ("Locus",),
    "chromabuild.molecule.solute": ("Solute",),
    "chromabuild.pipeline.results": ("open_results", "run_chain"),
    "chromabuild.shards.shard_set": ("ShardSet",),
    "chromabuild.simulate.result": ("Run",),
    "mesoscale.scaffold": ("Scaffold",),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name == "__version__":
        found = _version()
    elif name in _MODULE:
        found = getattr(import_module(_MODULE[name]), name)
    else:
        raise AttributeError(f"module 'chromabuild' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    """The version in pyproject.toml, as installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("chromabuild")
    except PackageNotFoundError:  # run from a source tree that was built in place
        return "0+source"
