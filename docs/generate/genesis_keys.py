"""Keys of GENESIS and what they are in chromamd, from what the program itself prints by `chromamd help genesis`."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from chromabuild.simulate.executable import executable
from generate.markdown import cell, code, table

ROW = re.compile(r"(?P<kind>same|other|ignored|imported|missing) +\[(?P<section>\w+)\] (?P<name>\S+?)"
                 r"(?: = (?P<word>\S+))?(?: \((?P<harmless>.*?)\))?: ?(?P<about>.*)")
HEADINGS = {
    "same": "Same\n\nThese mean what they mean in GENESIS.",
    "other": "Other\n\nThese keys are known, with another meaning.",
    "imported": "Imported\n\nFiles of other programs, [imported by the run](../../how-to/run-genesis-files.md).",
    "ignored": "Ignored\n\nThese are accepted and listed in the log, since what they do has no counterpart here.",
    "missing": "Missing\n\nThese are refused, but for the values that ask for nothing.",
}


@dataclass(frozen=True)
class GenesisKey:
    """One line of the table."""

    kind: str
    section: str
    name: str
    word: str
    harmless: str
    about: str


def parse(text: str) -> Iterator[GenesisKey]:
    """Every line of the help text. Raises ValueError on a line of another form."""
    for line in text.splitlines():
        match = ROW.fullmatch(line)
        if not match:
            raise ValueError(f"chromamd help genesis prints a line of unknown form: {line!r}")
        yield GenesisKey(**{key: value or "" for key, value in match.groupdict().items()})


def pages() -> dict[str, str]:
    """File name -> text."""
    done = subprocess.run([executable(), "help", "genesis"], capture_output=True, text=True, check=True)
    keys = list(parse(done.stdout))
    text = ("# GENESIS keys: same, ignored, other, missing\n\n"
            "What the keys of GENESIS' control files (spdyn and atdyn 2.1) are in `chromamd`. `chromamd help genesis`\n"
            "prints this table, `chromamd check FILE ...` says of control files whether they are accepted. A key that\n"
            "ends with `#` has a number there.\n")
    for kind, heading in HEADINGS.items():
        text += f"\n## {heading}\n\n"
        chosen = [key for key in keys if key.kind == kind]
        if kind == "same":
            sections = dict.fromkeys(key.section for key in chosen)
            text += table(("section", "keys"), [
                (code(f"[{name}]"), ", ".join(code(key.name) for key in chosen if key.section == name))
                for name in sections])
        else:
            rows = [(code(f"[{key.section}]"), code(f"{key.name} = {key.word}" if key.word else key.name),
                     *([", ".join(map(code, key.harmless.split()))] if kind == "missing" else []), cell(key.about))
                    for key in chosen]
            head = ("section", "key", "harmless values", "what it does, and what to use") if kind == "missing" else \
                ("section", "key", "here" if kind == "other" else "what it is")
            text += table(head, rows)
    return {"genesis-keys.md": text}
