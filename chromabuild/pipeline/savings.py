"""What a change of the settings would save, as sentences: fewer atoms, and what follows from them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings
from chromabuild.pipeline.plan import Estimate, Parts, estimate
from chromabuild.pipeline.relaxing import BUILT, CLEAN, REFINED, RELAXED
from chromabuild.pipeline.speeds import REFERENCE, Speed

COMMON_PADDING = 10.0
"""Angstrom."""
WORTHWHILE = 0.9
"""A change is named where it leaves no more of the atoms."""
OF_THE_FOLD = ("scaffold.h5", BUILT, REFINED, CLEAN, RELAXED)
"""What a change of the scaffold makes stale."""


@dataclass(frozen=True)
class Saving:
    """A change, and what the build needs then."""

    settings: dict[str, object]
    """Dotted keys."""
    build: Estimate

    @property
    def keys(self) -> str:
        """The change as people write it."""
        return ", ".join(f"{key}: {'(empty)' if value is None else value}" for key, value in self.settings.items())

    def line(self, before: Estimate) -> str:
        """For people."""
        run = self.build.memory["run"], sum(self.build.disk.values())
        fewer = 1 - self.build.atoms / before.atoms
        return (f"{self.keys} makes it about {self.build.atoms:.3g} atoms, {fewer:.0%} fewer: "
                f"{run[0]:.2g} instead of {before.memory['run']:.2g} GB of memory, {run[1]:.2g} instead of "
                f"{sum(before.disk.values()):.2g} GB of disk, and as much of the time")

    def as_dict(self) -> dict:
        """Plain data for JSON."""
        return {"settings": self.settings, "atoms": self.build.atoms, "memory_run": self.build.memory["run"],
                "disk": sum(self.build.disk.values()), "seconds_run": self.build.seconds["run"]}


def savings(config: Settings, threads: int, before: Estimate, speed: Speed, parts: Parts) -> list[Saving]:
    """Worthwhile changes, what saves most first."""
    found = [_saving(config, keys, threads, speed, parts) for keys in
             (*_candidates(config, len(parts.fibre.dyads)), *_other_shape(config))]
    worthwhile = [one for one in found if one and one.build.atoms < WORTHWHILE * before.atoms]
    return sorted(worthwhile, key=lambda one: one.build.atoms)


def saving_that_fits(config: Settings, stage: str, memory: float, threads: int, parts: Parts) -> Saving | None:
    """The first change, of what has made the box large, that takes the memory of a stage below so much (GB): padding
    or box, then walls, then the choice of the conformation, then all together, then another shape of the box. None
    where none does."""
    changes = list(_candidates(config, len(parts.fibre.dyads)))
    together = {key: value for keys in changes for key, value in keys.items()}
    if len(changes) > 1:
        changes.append(together)
    changes += _other_shape(config)
    found = (_saving(config, keys, threads, REFERENCE, parts) for keys in changes)
    return next((one for one in found if one and one.build.memory[stage] <= memory), None)


def _saving(config: Settings, keys: Mapping[str, object], threads: int, speed: Speed, parts: Parts) -> Saving | None:
    """A change; None where its build cannot be estimated."""
    changed = config.model_copy(deep=True)
    for key, value in keys.items():
        section, name = key.split(".")
        setattr(getattr(changed, section), name, value)
    stale = OF_THE_FOLD if any(key.startswith("scaffold.") for key in keys) else ()
    try:
        return Saving(dict(keys), estimate(changed, threads, stale=stale, speed=speed, parts=parts))
    except (BadInputError, ValueError):  # a damaged file of the fold: the stage that reads it says so
        return None


def _other_shape(config: Settings) -> Iterator[dict[str, object]]:
    """Of the box, where its edges are not given."""
    if config.solvate.edges is None:
        yield {"solvate.box": "dodecahedron" if config.solvate.shape == "rectangular" else None}


def _candidates(config: Settings, nucleosomes: int) -> Iterator[dict[str, object]]:
    solvate, scaffold = config.solvate, config.scaffold
    if solvate.edges is not None:
        yield {"solvate.box": None}
    elif solvate.padding > COMMON_PADDING:
        yield {"solvate.padding": COMMON_PADDING}
    if solvate.edges is not None:
        return
    if nucleosomes < 2:
        if nucleosomes == 0 and scaffold.packing == "free" and not config.locus.is_bare_circle:
            yield {"scaffold.packing": "compact"}
        return
    has_walls = scaffold.container or scaffold.confinement_radius
    if has_walls or (scaffold.packing == "free" and scaffold.choose == "last"):
        yield {"scaffold.packing": "compact", **({"scaffold.container": None} if scaffold.container else {}),
               **({"scaffold.confinement_radius": None} if scaffold.confinement_radius else {})}
    if scaffold.choose != "smallest-box":
        yield {"scaffold.choose": "smallest-box", **({"scaffold.container": None} if scaffold.container else {})}
