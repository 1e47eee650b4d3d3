"""Settings drawn at random over all that the schema allows, ends and odd values more often than others."""

import math
import random
import types
from collections.abc import Mapping
from typing import Annotated, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from chromabuild.base.section import Section
from chromabuild.base.settings import INPUT_FILE_KEYS, Settings

LONG = {"dynamics.tune", "dynamics.launcher", "dynamics.checkpoint", "locus.fasta", "locus.record", "locus.region",
        "locus.start", "locus.wrapping", "simulate.protocol", "seed", "output"}
"""What is not drawn: it makes a trial long, or goes with files."""
HEALTH = {"dynamics.max_temperature", "dynamics.max_drift", "dynamics.max_volume_ratio", "dynamics.max_force"}
"""Bands that a start from scratch leaves; not drawn."""
BOUNDS = {"scaffold.sweeps": (1, 4), "solvate.padding": (0.01, 40.0), "solvate.box": (15.0, 120.0),
          "solvate.brick_edge": (25.0, 200.0), "dynamics.ranks": (1, 4), "simulate.replicas": (1, 2),
          "relax.minimise_steps": (1, 4), "phase.steps": (1, 4), "dynamics.pme_spacing": (0.5, 1e4),
          "scaffold.replicas": (1, 3), "ensemble.folds": (2, 4)}
"""Narrower than the schema, to keep trials short."""
LENGTHS = ("1 fs", "3 fs", "0.001 fs", "1e-9 ps", "0.004 ps")


def settings(draw: random.Random, changes: int) -> dict[str, object]:
    """Dotted keys and values: so many of the settings, and phases of a few steps."""
    keys = [f"{name}.{key}" for name, section in _sections().items() for key in section.model_fields
            if (name, key) not in INPUT_FILE_KEYS]
    keys = [key for key in keys if key not in LONG | HEALTH | {"simulate.phases"} and not key.startswith("ensemble.")]
    found = {key: _value(key, _field(key), draw) for key in draw.sample(keys, changes)}
    return found | {"simulate.phases": _phases(draw)}


def _sections() -> dict[str, type[Section]]:
    return {name: info.annotation for name, info in Settings.model_fields.items()
            if isinstance(info.annotation, type) and issubclass(info.annotation, Section)}


def _field(key: str) -> FieldInfo:
    section, name = key.split(".")
    return _sections()[section].model_fields[name]


def _phases(draw: random.Random) -> list[dict[str, object]]:
    """One to three phases, each of which sets some of its keys."""
    from chromabuild.base.phases import Phase

    phases = []
    for k in range(draw.randint(1, 3)):
        kind = draw.choice(["minimise", "dynamics", "dynamics"])
        phase: dict[str, object] = {"name": f"p{k}", "kind": kind, "steps": draw.randint(1, 4)}
        allowed = ("hydrogen_mass_factor", "restraints", "end_pairs", "output_period", "trajectory_period", *(
            ("ensemble", "temperature", "pressure", "timestep", "exchange", "boost") if kind == "dynamics" else ()))
        for name in draw.sample(allowed, draw.randint(0, 3)):
            phase[name] = _value(f"phase.{name}", Phase.model_fields[name], draw)
        phases.append(phase)
    return phases


def _value(key: str, info: FieldInfo, draw: random.Random) -> object:
    if key in BOUNDS:
        low, high = BOUNDS[key]
        bounds = [Ge(low), Le(high)]
    else:
        bounds = list(info.metadata)
    return _of_type(key, info.annotation, bounds, info.default, draw)


def _of_type(key: str, kind: object, bounds: list[object], default: object, draw: random.Random) -> object:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        more = [one for item in inner[1:] for one in getattr(item, "metadata", [item])]
        return _of_type(key, inner[0], bounds if key in BOUNDS else bounds + more, default, draw)
    if origin is Literal:
        return draw.choice(inner)
    if origin in (Union, types.UnionType):
        return _of_type(key, draw.choice(inner), bounds, default, draw)
    if origin is tuple:
        count = draw.randint(0, 3) if inner[-1] is Ellipsis else len(inner)
        return [_of_type(key, inner[0], bounds, default, draw) for _ in range(count)]
    if isinstance(kind, type) and issubclass(kind, Section):
        return {name: _value(f"{key}.{name}", info, draw) for name, info in kind.model_fields.items()
                if info.is_required() or draw.random() < 0.4}
    if kind is bool:
        return draw.random() < 0.5
    if kind in (int, float):
        return _number(kind, bounds, default, draw)
    if kind is str:
        return _text(key, default, draw)
    return None


def _number(kind: type, bounds: list[object], default: object, draw: random.Random) -> float:
    """Ends of the range, near the default, or anywhere on a logarithmic scale."""
    low = next((one.ge if isinstance(one, Ge) else one.gt for one in bounds if isinstance(one, (Ge, Gt))), -1e6)
    high = next((one.le if isinstance(one, Le) else one.lt for one in bounds if isinstance(one, (Le, Lt))), 1e9)
    is_open = any(isinstance(one, Gt) for one in bounds), any(isinstance(one, Lt) for one in bounds)
    middle = default if isinstance(default, (int, float)) and not isinstance(default, bool) else max(low, 1.0)
    choice = draw.random()
    if choice < 0.15:
        value = low + (1e-9 if is_open[0] else 0) if not (is_open[0] and kind is int) else low + 1
    elif choice < 0.25:
        value = high * (1 - 1e-9) if is_open[1] else high
    elif choice < 0.7 and middle:
        value = middle * math.exp(draw.gauss(0.0, 1.0))
    else:
        floor = max(abs(low), 1e-6)
        value = math.exp(draw.uniform(math.log(floor), math.log(max(high, 2 * floor))))
    value = min(max(value, low), high)
    return round(value) if kind is int else float(f"{value:.6g}") if low < value < high else value


def _text(key: str, default: object, draw: random.Random) -> object:
    if key in ("relax.length", "phase.length"):
        return draw.choice(LENGTHS)
    if key == "build.variants":
        return draw.choice(["H2A.Z", "H3.3", "H3K27ac", "H3K4me3", "H4K16ac", "CENP-A", "H2BK120ub", "H3:K56Q", "H3.1"])
    if key == "build.track_mark":
        return draw.choice(["H2A.Z", "H3K27ac", "nonsense"])
    if key == "dynamics.devices":
        return draw.choice(["", "0", "0,1", "7"])
    return default


def as_sections(dotted: Mapping[str, object]) -> dict[str, object]:
    """The same, a mapping a section."""
    found: dict[str, object] = {}
    for key, value in dotted.items():
        section, _, name = key.partition(".")
        if name:
            found.setdefault(section, {})[name] = value
        else:
            found[section] = value
    return found
