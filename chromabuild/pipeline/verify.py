"""Is everything in an output folder as it was written?"""

from pathlib import Path

from chromabuild.base.errors import BadInputError, ChromabuildError
from chromabuild.base.files import file_hash
from chromabuild.base.settings import Settings
from chromabuild.base.summary import Summary
from chromabuild.pipeline import provenance


def verify_outputs(config: Settings) -> Summary:
    """Compare every recorded output with its checksum, and every shard with the manifest.

    Gives ``{"checks": [{"what", "result"}]}``; the result is ``ok`` or what is wrong. Raises BadInputError when
    nothing has been run, IntegrityError when the record itself is damaged.
    """
    folder = Path(config.output)
    stages = provenance.read(folder)["stages"]
    if not stages:
        raise BadInputError(f"{folder} holds no results to verify: run `chromabuild all`")
    checks = []
    for stage in stages.values():
        for file, digest in stage["outputs"].items():
            checks.append({"what": file, "result": _file_state(folder / file, digest)})
    # A refused or interrupted rerun takes the stage out of the record; shards that still lie there are read anyway.
    if "solvate" in stages or (folder / "shards" / "manifest.json").exists():
        checks.append({"what": "shards", "result": _shards_state(folder / "shards")})
    return {"output": str(folder), "checks": checks}


def _file_state(path: Path, digest: str) -> str:
    if not path.is_file():
        return "missing"
    return "ok" if file_hash(path) == digest else "damaged"


def _shards_state(folder: Path) -> str:
    from chromabuild.pipeline.inspect import verify_shard_set

    try:
        verify_shard_set(folder)
    except ChromabuildError as error:
        return str(error)
    return "ok"
