"""Where a result comes from: effective settings, versions, seed and checksums of inputs.

A stage's provenance travels inside its output files and is the same for the same inputs, settings and seed (no times,
no machine, no thread counts), so that outputs are reproducible byte for byte. The record of a run (times, checksums
of outputs, results for the report) is kept beside them in ``provenance.json``.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from chromabuild.base.checked_json import KEY, agrees, checked_text
from chromabuild.base.errors import IntegrityError
from chromabuild.base.files import atomic_path, file_hash, locked
from chromabuild.base.record import Provenance, Record, StageRecord
from chromabuild.base.settings import INPUT_FILE_KEYS, Settings
from chromabuild.base.versions import versions

FORMAT = "chromabuild-provenance"
VERSION = 1
FILE_NAME = "provenance.json"


def effective_settings(config: Settings, sections: tuple[str, ...]) -> dict:
    """The settings of the named sections (``clash``) or keys (``dynamics.force_field``), defaults included.

    Files are named without their folder.
    """
    settings: dict = {}
    for name in sections:
        section, _, key = name.partition(".")
        values = getattr(config, section).model_dump(mode="json")
        settings.setdefault(section, {}).update({key: values[key]} if key else values)
    for section, key in INPUT_FILE_KEYS:
        value = settings.get(section, {}).get(key)
        if value:
            settings[section][key] = [Path(one).name for one in value] if isinstance(value, list) else Path(value).name
    return settings


def describe(stage: str, config: Settings, sections: tuple[str, ...], inputs: Mapping[str, Path]) -> Provenance:
    """The provenance of one stage, to be carried in every file that it writes.

    Inputs are named by role and given as file name and blake3.
    """
    return {
        "stage": stage,
        "seed": config.seed,
        "settings": effective_settings(config, sections),
        "inputs": {role: {"file": path.name, "blake3": file_hash(path)} for role, path in inputs.items()},
        "versions": versions(),
    }


def read(folder: str | Path) -> Record:
    """The record of an output folder: ``{"stages": {name: ...}}``; empty when nothing has been run there.

    Raises IntegrityError when the file is damaged.
    """
    path = Path(folder) / FILE_NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"format": FORMAT, "version": VERSION, "stages": {}}
    except (json.JSONDecodeError, UnicodeDecodeError):
        data = None
    if (not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION
            or not agrees(data)):
        raise IntegrityError(f"{path} is damaged or of another version: delete it and run `chromabuild all` again")
    return data


def record(folder: str | Path, stage: str, entry: StageRecord | None) -> None:
    """Put one stage's entry into the folder's record, or take it out (None); safe against concurrent stages."""
    folder = Path(folder)
    with locked(folder / f".{FILE_NAME}.lock"):
        data = read(folder)
        data["stages"].pop(stage, None)
        if entry is not None:
            data["stages"][stage] = entry
        data.pop(KEY, None)
        with atomic_path(folder / FILE_NAME) as part:
            part.write_text(checked_text(data, indent=1), encoding="utf-8")
