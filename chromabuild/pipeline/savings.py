"""What a change of the settings would save, as sentences: fewer atoms, and what follows from them."""

from collections.abc import Iterator
from dataclasses import dataclass

from chromabuild.base.errors import BadInputError
from chromabuild.base.settings import Settings
from chromabuild.pipeline.limits import COMMON_PADDING
from chromabuild.pipeline.plan import Estimate, Parts, estimate
from chromabuild.pipeline.relaxing import CLEAN, RELAXED
from chromabuild.pipeline.speeds import Speed

WORTHWHILE = 0.9
"""A change is named where it leaves no more of the atoms."""
OF_THE_FOLD = ("scaffold.h5", "solute.h5", CLEAN, RELAXED)
"""What a change of the scaffold makes stale."""


@dataclass(frozen=True)
class Saving:
    """A change, and what the build needs then."""

    settings: dict[str, object]
    """Dotted keys."""
    build: Estimate

    def line(self, before: Estimate) -> str:
        """For people."""
        keys = ", ".join(f"{key}: {'(empty)' if value is None else value}" for key, value in self.settings.items())
        run = self.build.memory["run"], sum(self.build.disk.values())
        return (f"{keys} makes it about {self.build.atoms:.3g} atoms, {1 - self.build.atoms / before.atoms:.0%} fewer: "
                f"{run[0]:.2g} instead of {before.memory['run']:.2g} GB of memory, {run[1]:.2g} instead of "
                f"{sum(before.disk.values()):.2g} GB of disk, and as much of the time")

    def as_dict(self) -> dict:
        """Plain data for JSON."""
        return {"settings": self.settings, "atoms": self.build.atoms, "memory_run": self.build.memory["run"],
                "disk": sum(self.build.disk.values()), "seconds_run": self.build.seconds["run"]}


def savings(config: Settings, threads: int, before: Estimate, speed: Speed, parts: Parts) -> list[Saving]:
    """Worthwhile changes, what saves most first."""
    found = []
    for keys in _candidates(config, len(parts.fibre.dyads)):
        changed = config.model_copy(deep=True)
        for key, value in keys.items():
            section, name = key.split(".")
            setattr(getattr(changed, section), name, value)
        stale = OF_THE_FOLD if any(key.startswith("scaffold.") for key in keys) else ()
        try:
            build = estimate(changed, threads, stale=stale, speed=speed, parts=parts)
        except (BadInputError, ValueError):  # a damaged file of the fold: the stage that reads it says so
            continue
        if build.atoms < WORTHWHILE * before.atoms:
            found.append(Saving(keys, build))
    return sorted(found, key=lambda one: one.build.atoms)


def _candidates(config: Settings, nucleosomes: int) -> Iterator[dict[str, object]]:
    solvate, scaffold = config.solvate, config.scaffold
    if solvate.box is not None:
        yield {"solvate.box": None}
    elif solvate.padding > COMMON_PADDING:
        yield {"solvate.padding": COMMON_PADDING}
    if solvate.box is not None:
        return
    if nucleosomes < 2:
        if nucleosomes == 0 and scaffold.packing == "free" and not config.locus.circular:
            yield {"scaffold.packing": "compact"}
        return
    has_walls = scaffold.container or scaffold.confinement_radius
    if has_walls or (scaffold.packing == "free" and scaffold.choose == "last"):
        yield {"scaffold.packing": "compact", **({"scaffold.container": None} if scaffold.container else {}),
               **({"scaffold.confinement_radius": None} if scaffold.confinement_radius else {})}
    if scaffold.choose != "smallest-box":
        yield {"scaffold.choose": "smallest-box", **({"scaffold.container": None} if scaffold.container else {})}
