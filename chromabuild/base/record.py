"""What is recorded of a build: the entries of ``provenance.json``, and what travels inside every file of a stage."""

from typing import NotRequired, TypedDict

from chromabuild.base.summary import Summary


class InputEntry(TypedDict):
    """One input file: its name without the folder, and its checksum."""

    file: str
    blake3: str


class Provenance(TypedDict):
    """What one stage's files were made from; the same for the same inputs, settings and seed."""

    stage: str
    seed: int
    settings: dict[str, dict]
    """Section to key to value."""
    inputs: dict[str, InputEntry]
    """By role."""
    versions: dict[str, str]


class StageRecord(TypedDict):
    """What is recorded of a stage that has run."""

    title: str
    provenance: Provenance
    started: str
    """UTC, as 2026-01-31T12:34:56Z."""
    seconds: float
    threads: int
    outputs: dict[str, str]
    """File, relative to the output folder, to blake3."""
    companions: NotRequired[dict[str, str]]
    """The same of files that no stage reads."""
    summary: Summary


class Record(TypedDict):
    """``provenance.json`` of an output folder."""

    format: str
    version: int
    stages: dict[str, StageRecord]
