"""The record of the tables in a folder, and what it says of each measure: source, frames, and checksums of files."""

import json
from collections.abc import Mapping
from pathlib import Path

from chromabuild.base.checked_json import agrees, checked_text
from chromabuild.base.files import atomic_path, file_hash

FOLDER, FILE_NAME = "analysis", "analysis.json"
FORMAT, VERSION = "chromabuild-analysis", 4


def read_record(folder: Path) -> dict[str, dict]:
    """Measure to entry; empty where there is no record, or it is damaged or of another version."""
    try:
        found = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    fits = isinstance(found, dict) and found.get("format") == FORMAT and found.get("version") == VERSION
    return found["measures"] if fits and agrees(found) else {}


def write_record(folder: Path, measures: Mapping[str, dict]) -> None:
    """Replace the record."""
    with atomic_path(folder / FILE_NAME) as part:
        part.write_text(checked_text({"format": FORMAT, "version": VERSION, "measures": measures}, indent=1),
                        encoding="utf-8")


def table_states(folder: Path) -> dict[str, str]:
    """``ok`` or what is wrong with each file that the record in a folder vouches for, and with itself; empty where
    there is none."""
    if not (folder / FILE_NAME).is_file():
        return {}
    record = read_record(folder)
    found = {FILE_NAME: "ok" if record else "damaged, or of another version"}
    return found | {name: state for entry in record.values() for name, state in _states(folder, entry).items()}


def is_whole(folder: Path, entry: dict) -> bool:
    """Whether all files of a measure are there, as they were written."""
    return all(state == "ok" for state in _states(folder, entry).values())


def _states(folder: Path, entry: dict) -> dict[str, str]:
    return {name: "missing" if not (folder / name).is_file() else
            "ok" if file_hash(folder / name) == digest else "damaged" for name, digest in entry["files"].items()}
