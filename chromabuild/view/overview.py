"""What the page holds from the start: the path of the DNA, nucleosomes, what they carry, contacts, tracks, frames."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.ndimage import uniform_filter1d

from chromabuild.molecule.colours import HISTONE_COLOURS, STRAND_COLOURS
from chromabuild.report.pictures import CORE_HEIGHT, CORE_RADIUS, FIBRE_COLOURS
from chromabuild.report.render import sky_visibility
from chromabuild.view.binary import finest_step, quantised, quaternions
from chromabuild.view.frames import Frames
from chromabuild.view.tracks import Track

if TYPE_CHECKING:
    from mesoscale.scaffold import Scaffold

POINTS = 12_000
"""Places along the DNA that are drawn, as far as they are at most WIDEST apart."""
WIDEST = 10  # base pairs: a turn of wound DNA keeps eight places
DNA_RADIUS = 10.0  # angstrom
SMOOTH = 8  # base pairs to each side over which shadows are averaged
NO_MARK = 255


def drawn_places(n_bp: int) -> np.ndarray:
    """The base pairs through which the DNA is drawn, (p,): equally spaced, and the last."""
    stride = min(max(1, -(-n_bp // POINTS)), WIDEST)
    return np.append(np.arange(0, n_bp - 1, stride), n_bp - 1)


def overview(scaffold: "Scaffold", carried: Sequence[tuple[str, ...]] = (), tracks: Sequence[Track] = (),
             frames: Frames | None = None) -> tuple[dict, dict[str, np.ndarray]]:
    """Facts for JSON, and arrays for the page.

    ``carried``: variants, mutations and other marks of every nucleosome, or nothing. Coordinates are int16 in steps of
    ``facts["step"]`` angstrom from ``facts["centre"]``.
    """
    places = drawn_places(len(scaffold.base))
    clouds = [scaffold.origin, scaffold.core_origin]
    clouds += [frames.path.reshape(-1, 3), frames.core.reshape(-1, 3)] if frames else []
    everything = np.concatenate(clouds)
    low, high = everything.min(axis=0), everything.max(axis=0)
    centre = np.round((low + high) / 2, 3)
    step = round(finest_step(2 * float(np.abs([low - centre, high - centre]).max())), 3)
    marks = list(dict.fromkeys(carried)) if carried else []
    marks = [labels for labels in marks if labels][:NO_MARK]
    mark = [marks.index(labels) if labels in marks else NO_MARK for labels in carried]
    shade_path, shade_core = _shade(scaffold, places)
    arrays = {
        "path": quantised(scaffold.origin, centre, step),
        "base": scaffold.base,
        "first_bp": scaffold.first_bp, "last_bp": scaffold.last_bp, "dyad": scaffold.dyad,
        "mapped": _mapped_dyads(scaffold),
        "core": quantised(scaffold.core_origin, centre, step), "core_turn": quaternions(scaffold.core_frame),
        "mark": np.array(mark if carried else [NO_MARK] * len(scaffold.dyad), np.uint8),
        "drawn": places.astype(np.int32), "shade": shade_path, "core_shade": shade_core,
        "contact": np.array([[*_within(scaffold, *c["first"]), *_within(scaffold, *c["second"])]
                             for c in scaffold.contacts], np.int32).reshape(-1, 4),
        "contact_weight": np.array([c.get("weight", 1.0) for c in scaffold.contacts], np.float32),
    }  # fmt: skip
    if frames:
        arrays |= {"frame_path": quantised(frames.path, centre, step),
                   "frame_core": quantised(frames.core, centre, step),
                   "frame_core_turn": quaternions(frames.core_frame)}
    facts = {
        "name": scaffold.name, "chromosome": scaffold.chromosome, "start": int(scaffold.position[0]),
        "first": int(scaffold.position.min()),
        "step": step, "centre": centre.tolist(), "marks": [", ".join(labels) for labels in marks],
        "tracks": [{"name": track.name, "features": track.features} for track in tracks],
        "dropped": [int(scaffold.position[0]) + _index(scaffold, change["from"]) for change in scaffold.shifts
                    if change["to"] is None],
        "frames": frames.label if frames else [],
        "sizes": {"dna": DNA_RADIUS, "core": CORE_RADIUS, "height": CORE_HEIGHT},
        "colours": {"fibre": np.round(FIBRE_COLOURS, 3).tolist(), "molecules": HISTONE_COLOURS | STRAND_COLOURS},
    }  # fmt: skip
    return facts, arrays


def _mapped_dyads(scaffold: "Scaffold") -> np.ndarray:
    """(m,) where each dyad was mapped, as an index of a base pair; beyond the locus where it was there."""
    mapped_from = {change["to"]: change["from"] for change in scaffold.shifts if change["to"] is not None}
    places = scaffold.position[scaffold.dyad].tolist()
    return np.array([_index(scaffold, mapped_from.get(place, place)) for place in places], np.int32)


def _within(scaffold: "Scaffold", first: int, end: int) -> tuple[int, int]:
    """A stretch, half open; of one across the seam of a circle the longer part."""
    n = len(scaffold.position)
    return (first, end) if end <= n else (first, n) if 2 * n >= first + end else (0, end - n)


def _index(scaffold: "Scaffold", place: int) -> int:
    """The base pair at a place on the chromosome, which may lie beyond the locus unless that is a circle."""
    index = place - int(scaffold.position[0])
    return index % len(scaffold.position) if scaffold.circular else index


def _shade(scaffold: "Scaffold", places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share of the sky, 0 to 255, that places of the DNA and cores see: soft shadows, drawn at no cost."""
    axis = scaffold.core_frame[:, :, 2] * CORE_HEIGHT / 2
    fill = scaffold.core_origin[:, None] + np.linspace(-0.7, 0.7, 3)[None, :, None] * axis[:, None]
    position = np.concatenate([scaffold.origin[places], fill.reshape(-1, 3)])
    radius = np.append(np.full(len(places), DNA_RADIUS), np.full(3 * len(fill), CORE_RADIUS))
    seen = sky_visibility(position, radius, cell=8.0)
    width = 2 * max(SMOOTH // int(places[1] - places[0]), 0) + 1
    path = uniform_filter1d(seen[:len(places)], width, mode="nearest")
    core = seen[len(places):].reshape(-1, 3).max(axis=1)
    return tuple(np.round(255 * part).astype(np.uint8) for part in (path, core))
