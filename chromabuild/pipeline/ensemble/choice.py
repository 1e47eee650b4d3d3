"""Folds of an ensemble that are built: each in a folder of its own, from which the chain goes on."""

import shutil
from collections.abc import Sequence
from os.path import relpath
from pathlib import Path

from chromabuild.analysis.fold_clusters import cluster_folds
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import atomic_path, file_names
from chromabuild.base.in_use import in_use
from chromabuild.base.settings import INPUT_FILE_KEYS, Settings, commented_yaml
from chromabuild.base.summary import Summary
from chromabuild.pipeline import chain, provenance
from chromabuild.pipeline.ensemble.design import Design, fold_name, make_design
from chromabuild.pipeline.ensemble.fold import STAGE
from chromabuild.pipeline.ensemble.record import read_record
from chromabuild.pipeline.ensemble.results import read_differences

BUILDS = "builds"
WORDS = ("typical", "compact", "representatives")
"""What a fold may be chosen by, beside its number."""


def choose_folds(config: Settings, words: Sequence[str]) -> Summary:
    """Make ready the build of folds of an ensemble, each in ``builds/fold_NNNN`` of the output folder.

    ``words``: numbers, ``typical`` (differs least from all others), ``compact`` (has the smallest box),
    ``representatives`` (one of each group of folds) or ``representatives:K`` (of K groups). The folder holds the fold,
    its record and a settings file with its seed, and ``chromabuild all`` goes on from there. What was built of the same
    fold stays.

    Raises BadInputError for other words, for folds that there are none of or that have changed since, and where there
    is no ensemble.
    """
    folder = Path(config.output)
    record = read_record(folder)
    design = make_design(config.model_copy(update={"ensemble": config.ensemble.model_copy(update=record["design"])}))
    numbers = list(dict.fromkeys(number for word in words for number in _numbers(word, record, folder)))
    made = [_prepare(design, number) for number in numbers]
    return {"folds": numbers, "settings": [str(path) for path in made]}


def _numbers(word: str, record: dict, folder: Path) -> list[int]:
    """The folds that one word means."""
    folds, summary = record["folds"], record["summary"]
    name, _, count = word.partition(":")
    if word in ("typical", "compact"):
        return [summary[word]]
    if word == "representatives":
        return summary["representatives"]
    if name == "representatives" and count.isdigit():
        if not 1 <= int(count) <= len(folds):
            raise BadInputError(f"--choose {word}: there are {len(folds)} folds: choose 1 to {len(folds)}")
        return [folds[k] for k in cluster_folds(read_differences(folder), int(count)).medoids]
    if word.isdigit() and int(word) in folds:
        return [int(word)]
    said = record["left_out"].get(word)
    if said:
        raise BadInputError(f"--choose {word}: this fold was left out, for {said}")
    raise BadInputError(f"--choose {word}: choose {', '.join(WORDS)}, representatives:K, or a fold from "
                        f"{folds[0]} to {folds[-1]}")


def _prepare(design: Design, number: int) -> Path:
    """The settings file of a build of one fold, after putting the fold beside it."""
    source = design.fold_settings(number)
    description = chain.describe(STAGE, source)
    if not chain.is_current(STAGE, source, description):
        raise BadInputError(f"{source.output} is no fold of these settings: give --choose the same --set and --seed as "
                            "the ensemble, or run `chromabuild ensemble` again")
    folder = Path(design.config.output) / BUILDS / fold_name(number)
    target = source.model_copy(update={"output": str(folder)})
    with in_use(folder):
        if not chain.is_current(STAGE, target, description):
            provenance.record(folder, STAGE.name, None)
            for file in STAGE.outputs:
                with atomic_path(folder / file) as part:
                    shutil.copyfile(Path(source.output) / file, part)
            entry = provenance.read(source.output)["stages"][STAGE.name]
            provenance.record(folder, STAGE.name, {**entry, "companions": {}})
        path = folder / "locus.yaml"
        with atomic_path(path) as part:
            part.write_text(commented_yaml(_beside(target, folder)), encoding="utf-8")
    return path


def _beside(config: Settings, folder: Path) -> Settings:
    """The settings as a file in ``folder`` says them: paths are relative to it, and it is the output folder itself."""
    sections: dict[str, dict[str, object]] = {}
    for section, key in INPUT_FILE_KEYS:
        given = getattr(getattr(config, section), key)
        paths = tuple(relpath(path, folder.resolve()) for path in file_names(given))
        if paths:
            sections.setdefault(section, {})[key] = paths[0] if isinstance(given, str) else paths
    if config.simulate.phases:
        sections.setdefault("simulate", {})["protocol"] = None
    copies = {name: getattr(config, name).model_copy(update=update) for name, update in sections.items()}
    return config.model_copy(update={"output": ".", **copies})
