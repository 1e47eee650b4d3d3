"""Is everything in an output folder as it was written?"""

from pathlib import Path

from chromabuild.analysis.record import FOLDER, table_states
from chromabuild.base.errors import BadInputError, ChromabuildError
from chromabuild.base.settings import Settings
from chromabuild.base.summary import Summary
from chromabuild.pipeline import provenance
from chromabuild.pipeline.ensemble.record import ensemble_files
from chromabuild.simulate.integrity import file_states, state_of


def verify_outputs(config: Settings) -> Summary:
    """Compare every file in the output folder with its checksum, those of an ensemble and of `analyse` too, and every
    shard with the manifest.

    Gives ``{"checks": [{"what", "result"}]}``; the result is ``ok`` or what is wrong. Raises BadInputError when
    nothing has been run, IntegrityError when the record itself is damaged.
    """
    folder = Path(config.output)
    stages = provenance.read(folder)["stages"]
    ensemble = ensemble_files(folder)
    if not stages and not ensemble:
        raise BadInputError(f"{folder} holds no results to verify: run `chromabuild all`")
    checks, seen = [], set()
    for stage in stages.values():
        for file, digest in (stage["outputs"] | stage.get("companions", {})).items():
            checks.append({"what": file, "result": state_of(folder / file, digest)})
            seen.add(folder / file)
    checks += [{"what": str(path.relative_to(folder)), "result": state_of(path, digest)}
               for path, digest in ensemble.items()]
    # A refused or interrupted rerun takes the stage out of the record; shards that still lie there are read anyway.
    if "solvate" in stages or (folder / "shards" / "manifest.json").exists():
        checks.append({"what": "shards", "result": _shards_state(folder / "shards")})
    for run in (folder / "md", *sorted(folder.glob("md/replica-*"))):
        checks += [{"what": str(path.relative_to(folder)), "result": state} for path, state in file_states(run, seen)]
    checks += [{"what": f"{FOLDER}/{name}", "result": state}
               for name, state in table_states(folder / FOLDER).items()]
    return {"output": str(folder), "checks": checks}


def _shards_state(folder: Path) -> str:
    from chromabuild.pipeline.inspect import verify_shard_set

    try:
        verify_shard_set(folder)
    except ChromabuildError as error:
        return str(error)
    return "ok"
