"""The record of an ensemble, and the files that it vouches for."""

import json
from pathlib import Path

from chromabuild.base.checked_json import agrees
from chromabuild.base.errors import BadInputError, IntegrityError
from chromabuild.pipeline import provenance
from chromabuild.pipeline.ensemble.design import FOLDER, fold_name

FILE_NAME, PAGE = "ensemble.json", "ensemble.html"
FORMAT, VERSION = "chromabuild-ensemble", 1


def read_record(folder: Path) -> dict:
    """What is recorded of the ensemble of an output folder.

    Raises BadInputError where there is none, IntegrityError where the record is damaged.
    """
    if not (folder / FOLDER / FILE_NAME).is_file():
        raise BadInputError(f"{folder / FOLDER / FILE_NAME} does not exist: run `chromabuild ensemble` first")
    record = record_in(folder / FOLDER)
    if record is None:
        raise IntegrityError(f"{folder / FOLDER / FILE_NAME} is damaged or of another version: run `chromabuild "
                             "ensemble` again")
    return record


def record_in(folder: Path) -> dict | None:
    """The record in the folder of an ensemble; None where there is none, or it is damaged or of another version."""
    try:
        found = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    fits = isinstance(found, dict) and found.get("format") == FORMAT and found.get("version") == VERSION
    return found if fits and agrees(found) else None


def ensemble_files(folder: Path) -> dict[Path, str]:
    """Every file of the ensemble of an output folder, its folds included, to its checksum; empty where there is none.

    Raises IntegrityError where the record is damaged.
    """
    if not (folder / FOLDER / FILE_NAME).is_file():
        return {}
    record = read_record(folder)
    found = {folder / PAGE if name == PAGE else folder / FOLDER / name: digest
             for name, digest in record["files"].items()}
    for number in record["folds"]:
        own = folder / FOLDER / fold_name(number)
        for stage in provenance.read(own)["stages"].values():
            found |= {own / name: digest for name, digest in (stage["outputs"] | stage.get("companions", {})).items()}
    return found
