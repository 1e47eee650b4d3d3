"""Proteins at their sites on a locus: which structure stands where, checked before anything is built."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from chromabuild.base.errors import BadInputError
from chromabuild.base.files import file_names
from chromabuild.base.settings import Settings
from chromabuild.nucleosome.mark_names import nearest_name
from chromabuild.proteins.complex import Complex, name_of_file, read_complex
from mesoscale.fibre import BoundProtein, Fibre
from mesoscale.scaffold import BoundProteins

if TYPE_CHECKING:
    from chromabuild.genome.locus import Locus


def fibre_with_proteins(locus: "Locus", config: Settings) -> Fibre:
    """The mesoscale fibre of a locus with its proteins.

    Raises BadInputError for a protein without a structure and a footprint of another length than the structure's DNA.
    """
    fibre, proteins = locus.fibre(), []
    files = structure_files(config)
    for site in locus.proteins:
        where = f"{config.locus.proteins}, line {site.line}"
        found = _complex_of(files, site.name, where)
        if site.end - site.first_bp != len(found.sequence):
            raise BadInputError(f"{where}: {site.name} covers {site.end - site.first_bp} bp, the DNA of {found.path} "
                                f"has {len(found.sequence)} base pairs ({found.sequence}): give the footprint this "
                                "length")
        proteins.append(BoundProtein(site.name, site.first_bp, found.body(site.reverse), site.reverse))
    return replace(fibre, proteins=tuple(proteins)) if proteins else fibre


def structure_files(config: Settings) -> dict[str, str]:
    """File of each structure by its name. Raises BadInputError where two files have one name."""
    files: dict[str, str] = {}
    for path in file_names(config.build.structures):
        name = name_of_file(path)
        if name in files:
            raise BadInputError(f"build.structures: {files[name]} and {path} are both called {name}: rename one")
        files[name] = path
    return files


def _complex_of(files: dict[str, str], name: str, where: str) -> Complex:
    if name not in files:
        known = (f"the structures are {', '.join(sorted(files))}, the nearest is {nearest_name(name, list(files))}"
                 if files else "build.structures names no file")
        raise BadInputError(f"{where}: {name} has no structure: {known}; add a file that is called {name}, such as "
                            f"{name}.pdb or {name}.cif, to build.structures")
    return read_complex(files[name])


def complexes_of(proteins: "BoundProteins | Sequence[BoundProtein] | None", config: Settings) -> list[Complex]:
    """The structure of each protein of a scaffold or a fibre. Raises BadInputError where there is none that fits."""
    if proteins is None:
        return []
    rows = (zip(proteins.name, proteins.first_bp.tolist(), proteins.last_bp.tolist(), strict=True)
            if isinstance(proteins, BoundProteins) else ((one.name, one.first_bp, one.last_bp) for one in proteins))
    files, found = structure_files(config), []
    for name, first, last in rows:
        one = _complex_of(files, name, "the scaffold")
        if last - first + 1 != len(one.sequence):
            raise BadInputError(f"the scaffold holds {last - first + 1} base pairs for {name}, the DNA of {one.path} "
                                f"has {len(one.sequence)}: run chromabuild scaffold again")
        found.append(one)
    return found


def protein_counts(proteins: "BoundProteins | None", complexes: Sequence[Complex], sequence: str) -> list[dict]:
    """How many of each protein there are, and in how many base pairs in all the locus differs from the structure.

    ``sequence`` is that of the fibre.
    """
    rows: dict[str, dict] = {}
    for k, one in enumerate(complexes):
        first, reverse = int(proteins.first_bp[k]), bool(proteins.reverse[k])
        here = sequence[first:first + len(one.sequence)]
        differing = sum(a != b for a, b in zip(here, one.strand(reverse), strict=True))
        row = rows.setdefault(one.name, {"protein": one.name, "structure": Path(one.path).name, "sites": 0,
                                         **one.report, "base_pairs_differing": 0})
        row["sites"] += 1
        row["base_pairs_differing"] += differing
    return list(rows.values())
