"""`chromabuild init`: a settings file with every default, for the user's own files or for a bundled locus."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import yaml

from chromabuild.base.errors import BadInputError, ResourceError
from chromabuild.base.files import atomic_path, file_names
from chromabuild.base.settings import INPUT_FILE_KEYS, commented_yaml, validated
from chromabuild.genome.arrays import Array
from chromabuild.pipeline.workflow import workflow_folder

EXAMPLES = {"demo": "demo.yaml", "chrXIII": "chrXIII.yaml"}
"""Settings file of each bundled locus."""


def write_settings(folder: Path, file_name: str, example: str | None, files: dict[str, Path],
                   overrides: dict[str, object], seed: int | None, force: bool, array: Array | None = None
                   ) -> list[Path]:
    """Write the settings file into ``folder`` and, for an example or an array, its locus beside it; gives what was
    written.

    ``files`` maps ``fasta``, ``nucleosomes`` and ``contacts`` to the user's files, ``overrides`` may name others; a
    sequence without nucleosomes is DNA alone. Raises BadInputError when a named file is missing, when several of them
    say what the locus is, or when a file would be replaced without ``force``; ResourceError when one cannot be written:
    those that were are removed again.
    """
    given = [f"--{word}" for word, is_there in (("example", example), ("array", array), ("fasta", "fasta" in files))
             if is_there]
    if len(given) > 1:
        raise BadInputError(f"{' and '.join(given)} each say what the locus is: give one of them")
    data: dict = {}
    copies: dict[Path, Path] = {}
    if example is not None:
        source = workflow_folder() / "config" / EXAMPLES[example]
        data = yaml.safe_load(source.read_text(encoding="utf-8"))
        if "locus.region" in overrides:
            data.get("scaffold", {}).pop("confinement_radius", None)  # it is that of the whole locus
        for section, key in INPUT_FILE_KEYS:
            value = data.get(section, {}).get(key)
            if value:
                originals = [(source.parent / path).resolve() for path in file_names(value)]
                copies |= {original: folder / original.name for original in originals}
                names = [original.name for original in originals]
                data[section][key] = names[0] if isinstance(value, str) else names
        data.pop("output", None)
    texts: dict[Path, str] = {}
    if array is not None:
        data["locus"] = {"name": array.name, "fasta": f"{array.name}.fa", "nucleosomes": f"{array.name}.bed"}
        texts = {folder / f"{array.name}.fa": array.fasta(), folder / f"{array.name}.bed": array.bed()}
    elif "fasta" in files and "nucleosomes" not in files:
        data["locus"] = {"nucleosomes": None}
    for key, path in files.items():
        if not path.is_file():
            raise BadInputError(f"{path} does not exist: correct --{key}")
        data.setdefault("locus", {})[key] = _from(folder, path)
    if seed is not None:
        overrides = overrides | {"seed": seed}
    target = folder / file_name
    config = validated(data, overrides, target)
    for dotted in {f"{section}.{key}" for section, key in INPUT_FILE_KEYS} & {*overrides}:
        section, key = dotted.split(".")
        value = getattr(getattr(config, section), key)
        names = tuple(_found(folder, name, dotted, {*copies.values(), *texts}) for name in file_names(value))
        if names:
            setattr(getattr(config, section), key, names[0] if isinstance(value, str) else names)
    for path in (target, *copies.values(), *texts):
        if path.exists() and not force:
            raise BadInputError(f"{path} is already there: choose another folder or replace it with --force")
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    new = [path for path in (target, *copies.values(), *texts) if not path.exists()]
    try:
        _make_folder(folder)
        for original, copy in copies.items():
            with atomic_path(copy) as part:
                shutil.copyfile(original, part)
        for path, text in (texts | {target: commented_yaml(config)}).items():
            with atomic_path(path) as part:
                part.write_text(text, encoding="utf-8")
    except ResourceError:  # the same command must find all as it was
        for path in new:
            path.unlink(missing_ok=True)
        for path in made:
            with suppress(OSError):
                path.rmdir()
        raise
    return [target, *copies.values(), *texts]


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResourceError(f"cannot make the folder {folder}: {error.strerror}") from None


def _found(folder: Path, name: str, key: str, to_come: set[Path]) -> str:
    """How settings in ``folder`` name a file that is given as seen from there or, as options are, from here.

    ``to_come`` are about to be written. Raises BadInputError when it is at neither place.
    """
    from_there = Path(os.path.normpath(folder.resolve() / name))  # the folder itself may not be there yet
    if from_there.is_file() or folder / name in to_come:
        return name
    if not Path(name).is_file():
        raise BadInputError(f"{name} does not exist: correct --set {key}")
    return _from(folder, Path(name))


def _from(folder: Path, path: Path) -> str:
    """How settings in ``folder`` name a file: from there when it lies in the folder or beside it, so that both can be
    moved together; else in full."""
    file, home = path.resolve(), folder.resolve()
    return os.path.relpath(file, home) if file.is_relative_to(home.parent) else str(file)
