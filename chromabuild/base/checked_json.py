"""JSON files with a checksum of their own content, by which damage shows."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from blake3 import blake3

KEY = "checksum"


def checked_text(data: Mapping[str, object], indent: int | None = None) -> str:
    """The text of a JSON file that holds ``data`` and, under ``checksum``, blake3 of the rest."""
    return json.dumps({**data, KEY: _checksum(data)}, indent=indent) + "\n"


def is_unharmed(path: Path) -> bool:
    """Whether a file that ``checked_text`` filled is there, and as it was written."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and agrees(found)


def agrees(data: Mapping[str, object]) -> bool:
    """Whether what was read of such a file agrees with its checksum; files of 0.2.0 have none.

    One that ends with a checksum under another name has lost a bit of that name.
    """
    if KEY not in data:
        last = next(reversed(data.values()), None)
        return not (isinstance(last, str) and re.fullmatch(r"[0-9a-f]{64}", last))
    return data[KEY] == _checksum({key: value for key, value in data.items() if key != KEY})


def _checksum(data: Mapping[str, object]) -> str:
    # As it will be read: tuples are lists in JSON, and keys are text.
    return blake3(json.dumps(json.loads(json.dumps(data)), sort_keys=True).encode()).hexdigest()
