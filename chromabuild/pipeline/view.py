"""The viewer of what an output folder holds."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from chromabuild.base.errors import BadInputError
from chromabuild.base.in_use import in_use
from chromabuild.base.progress import Progress, silent
from chromabuild.base.settings import Settings
from chromabuild.base.summary import Summary
from chromabuild.genome.chromosomes import Chromosome
from chromabuild.molecule.solute import Solute
from mesoscale.scaffold import Scaffold

ATOM_FILES = (("solute_clean.h5", "without clashes"), ("solute.h5", "as built"))


def view_results(settings: Settings, folder: Path | None = None, tracks: Sequence[Path] = (), frames: int = 20,
                 force: bool = False, progress: Progress = silent) -> Summary:
    """Write the viewer into ``folder``, by default ``view`` of the output folder.

    ``tracks``: BED files; ``frames``: at most so many of the dynamics. Atoms and frames are left out where there are
    none yet. Raises BadInputError without a scaffold, for tracks and marks that cannot be used, and where the folder
    holds a viewer, or something else, unless ``force``; BusyError while another process writes there.
    """
    from chromabuild.view.document import write_page
    from chromabuild.view.frames import read_frames
    from chromabuild.view.overview import drawn_places
    from chromabuild.view.tracks import read_track

    output = Path(settings.output)
    folder = folder or output / "view"
    if folder.exists() and not folder.is_dir():
        raise BadInputError(f"{folder} is a file: give a folder as --output")
    _refuse_old(folder, force)
    scaffold = _scaffold(output)
    start, end = int(scaffold.position.min()), int(scaffold.position.max()) + 1
    chromosome = Chromosome.of_table(scaffold.chromosome, settings.locus.chromosome_names)
    read = [read_track(path, chromosome, start, end, int(scaffold.position[0]) - start) for path in tracks]
    carried, family = _histones(settings, scaffold)
    solute, state = _atoms(output)
    shown = None
    if solute is not None and frames:
        shown = read_frames(_trajectories(output), solute, scaffold, drawn_places(len(scaffold.base)), frames)
    with in_use(folder, is_lock_kept=False):
        _refuse_old(folder, force)
        size = write_page(folder, scaffold, solute, carried, family, read, shown, state, progress)
    return {"page": str(folder / "index.html"), "base pairs": len(scaffold.base), "nucleosomes": len(scaffold.dyad),
            "contacts": len(scaffold.contacts), "tracks": [track.name for track in read],
            "atoms": f"{solute.n_atoms} ({state})" if solute is not None else "none: run chromabuild build",
            "frames": len(shown.label) if shown else 0, "megabytes": round(size / 1e6, 1)}


def _refuse_old(folder: Path, force: bool) -> None:
    if (folder / "index.html").exists() and not force:
        raise BadInputError(f"{folder} holds a page already: give another --output, or --force to replace it")


def _scaffold(output: Path) -> Scaffold:
    path = output / "scaffold.h5"
    if not path.exists():
        raise BadInputError(f"{path} does not exist: run chromabuild scaffold")
    try:
        return Scaffold.read(path)
    except ValueError as error:
        raise BadInputError(f"{error}, with chromabuild scaffold") from error


def _atoms(output: Path) -> tuple[Solute | None, str]:
    """The solute of the latest stage, and which that is."""
    for name, state in ATOM_FILES:
        if (output / name).exists():
            return Solute.read(output / name), state
    return None, ""


def _trajectories(output: Path) -> list[tuple[str, Path]]:
    """(phase, DCD file) of everything that was simulated; nothing where there was no dynamics."""
    from chromabuild.simulate.result import FILE_NAME, Run

    if not (output / "md" / FILE_NAME).exists():
        return []
    return [(phase.name, phase.trajectory) for phase in Run.read(output / "md").phases if phase.trajectory]


def _histones(settings: Settings, scaffold: Scaffold) -> tuple[list[tuple[str, ...]], dict[str, str]]:
    """What every nucleosome carries by the settings, and the family of each kind of histone."""
    from chromabuild.genome.circle import Circle
    from chromabuild.nucleosome.marks import octamer_recipes, within_stretches
    from chromabuild.nucleosome.octamer import FAMILIES

    position = scaffold.position[scaffold.dyad]
    chromosome = Chromosome.of_table(scaffold.chromosome, settings.locus.chromosome_names)
    circle = Circle.around(scaffold.position, settings.locus, scaffold.circular)
    recipes = octamer_recipes(settings.build, chromosome, position, settings.seed, scaffold.missing, circle)
    acetylated = np.zeros(len(position), bool)
    if settings.scaffold.acetylated:
        acetylated = within_stretches(settings.scaffold.acetylated, chromosome, position, circle=circle)
    carried = [(*recipe.marks, *([recipe.linker_histone] if recipe.linker_histone else []),
                *(["acetylated tails"] if tails else [])) for recipe, tails in zip(recipes, acetylated, strict=True)]
    family = {name: name for name in FAMILIES}
    for recipe in set(recipes):
        family |= {variant: recipe.entry(variant)["family"] for variant in recipe.variants}
    return carried, family
