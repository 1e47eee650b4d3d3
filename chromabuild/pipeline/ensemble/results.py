"""What is found of an ensemble as files: maps, tables, a record, and the page."""

import io
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from chromabuild.analysis.ensemble import Ensemble
from chromabuild.analysis.ensemble_result import EnsembleResult
from chromabuild.base.checked_json import checked_text
from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.base.files import atomic_path, file_hash
from chromabuild.base.progress import Progress, silent
from chromabuild.base.summary import Summary
from chromabuild.genome.contact_map import sorted_pixels, upper_pixels, write_nucleosome_map, write_pixels
from chromabuild.pipeline import provenance
from chromabuild.pipeline.ensemble.design import FOLDER, Design
from chromabuild.pipeline.ensemble.fold import DONE, why_failed
from chromabuild.pipeline.ensemble.record import FILE_NAME, FORMAT, PAGE, VERSION, record_in

DIFFERENCES = "differences.npz"
DESIGN = ("folds", "rounds", "bin", "hold_out")
"""Settings that decide the settings of folds."""


def sum_up(design: Design, states: Mapping[int, str], measured: np.ndarray | None,
           progress: Progress = silent) -> Summary:
    """Write everything that is found of folds, by number and state, unless it is there already; the summary.

    Raises BadInputError where fewer than two folds can be built.
    """
    numbers = tuple(number for number, state in sorted(states.items()) if state == DONE)
    left_out = {number: why_failed(design.fold_settings(number)) for number, state in sorted(states.items())
                if state != DONE}
    if len(numbers) < 2:
        why = f": {next(iter(left_out.values()))}" if left_out else ""
        raise BadInputError(f"{len(numbers)} of {len(states)} folds can be built, of 2 that an ensemble needs{why}")
    key = _key(design, numbers)
    record = record_in(design.folder)
    if record is not None and record["key"] == key and all(
            _is_there(design, name, digest) for name, digest in record["files"].items()):
        return record["summary"] | {"up_to_date": True}
    result = found_of(design, numbers, left_out, measured, progress)
    files = _written(design, result)
    from chromabuild.report.ensemble_page import write_ensemble_page

    write_ensemble_page(result, design.config.locus.name, Path(design.config.output) / PAGE)
    summary = result.summary()
    record = {"format": FORMAT, "version": VERSION, "key": key, "seed": design.config.seed, "folds": list(numbers),
              "design": {name: getattr(design.config.ensemble, name) for name in DESIGN},
              "left_out": {str(number): said for number, said in left_out.items()}, "summary": summary,
              "files": {name: file_hash(_path(design, name)) for name in [*files, PAGE]}}
    with atomic_path(design.folder / FILE_NAME) as part:
        part.write_text(checked_text(record, indent=1), encoding="utf-8")
    return summary | {"up_to_date": False}


def found_of(design: Design, numbers: tuple[int, ...], left_out: Mapping[int, str], measured: np.ndarray | None,
             progress: Progress = silent) -> EnsembleResult:
    """What is found of the folds of these numbers."""
    ensemble = Ensemble.read([design.fold_folder(number) / "scaffold.h5" for number in numbers], progress)
    section, contacts = design.config.ensemble, design.locus.contacts
    return EnsembleResult(
        ensemble, numbers, ensemble.binned(design.bin_size), measured, design.held_out(),
        (section.slope_from, section.slope_to), section.reliability, ensemble.contact_frequencies(contacts),
        design.targets(contacts), left_out)


def read_differences(folder: Path) -> np.ndarray:
    """Root mean square difference (f, f) of the recorded folds, nm. Raises IntegrityError where it is damaged."""
    path = folder / FOLDER / DIFFERENCES
    try:
        with np.load(path) as data:
            return data["difference"]
    except (OSError, ValueError, KeyError, EOFError):
        raise IntegrityError(f"{path} is damaged or missing: run `chromabuild ensemble` again") from None


def _written(design: Design, result: EnsembleResult) -> list[str]:
    """Names of the files of maps and tables, after writing them."""
    folder, ensemble = design.folder, result.ensemble
    chromosome = ensemble.chromosome
    mean, start = ensemble.mean_map()
    write_pixels(upper_pixels(mean), len(mean), ensemble.resolution, chromosome, start, folder / "map_beads.cool")
    binned = result.binned
    write_pixels(upper_pixels(binned.mean), len(binned.mean), binned.size, chromosome, binned.start,
                 folder / "map_bins.cool")
    pairs, start = ensemble.base_pair_map()
    write_pixels(sorted_pixels(pairs), pairs.shape[0], ensemble.base_pair_bin, chromosome, start,
                 folder / "map_base_pairs.cool")
    files = ["map_beads.cool", "map_bins.cool", "map_base_pairs.cool"]
    if len(ensemble.folds[0].dyads) > 1:
        counts, edges = ensemble.nucleosome_map()
        write_nucleosome_map(counts, edges, chromosome, folder / "map_nucleosomes.cool")
        files.append("map_nucleosomes.cool")
    for name, table in result.tables().items():
        table.write(folder / f"{name}.csv")
        files.append(f"{name}.csv")
    clusters = ensemble.clusters
    packed = io.BytesIO()
    np.savez_compressed(packed, numbers=np.array(result.numbers), difference=clusters.difference, tree=clusters.tree,
                        cluster=clusters.cluster)
    with atomic_path(folder / DIFFERENCES) as part:
        part.write_bytes(packed.getvalue())
    return [*files, DIFFERENCES]


def _key(design: Design, numbers: tuple[int, ...]) -> str:
    """Of all that the results follow from."""
    from hashlib import blake2b

    from chromabuild import __version__

    made = [provenance.read(design.fold_folder(number))["stages"]["scaffold"]["outputs"]["scaffold.h5"]
            for number in numbers]
    section = design.config.ensemble.model_dump(mode="json") | {
        "map": file_hash(design.map_file) if design.map_file else None}
    content = [__version__, VERSION, design.config.seed, design.config.locus.name, section, numbers, made,
               repr(design.locus.contacts)]
    return blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


def _path(design: Design, name: str) -> Path:
    return Path(design.config.output) / PAGE if name == PAGE else design.folder / name


def _is_there(design: Design, name: str, digest: str) -> bool:
    path = _path(design, name)
    return path.is_file() and file_hash(path) == digest
