"""Scaffold: the sampled fibre with a frame for every base pair and every nucleosome, as
docs/reference/file-formats.md describes it.

Inside the model lengths are nm; a Scaffold is in angstrom, as its readers expect.
"""

import io
import json
import os
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TypedDict

import h5py
import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize
from scipy.spatial import ConvexHull, QhullError
from scipy.spatial.transform import Rotation

from mesoscale.cores import crystal_path, transported
from mesoscale.energy import twist_deviations
from mesoscale.fibre import Adjustment, Fibre, MissingDimer
from mesoscale.model import Chain, Parameters, body_points, segment_ends
from mesoscale.observables import fibre_observables
from mesoscale.restraints import ContactEntry

Array = NDArray[np.float64]
FORMAT = "chromabuild-scaffold"
VERSION = 1
NM = 10.0  # angstrom
CURVE_POINTS = 40  # points a segment of the curve is measured with
BOX_MARGIN = 2.0  # nm: DNA around its axis and water
_OF_PROTEINS = ("first_bp", "last_bp", "reverse", "origin", "frame")
SIMPLEX = 0.2 * np.array([[-1, -1, -1], [2, 0, 0], [0, 2, 0], [0, 0, 2]])  # radian: where the search for the box begins


class LinkerEntry(TypedDict):
    """A linker as it is laid out between two base pairs, the last of one core and the first of the next."""

    first_bp: int
    last_bp: int
    rise: float
    """Angstrom a step."""
    twist: float
    """Degree a step."""
    contour_excess: float
    """Angstrom by which the whole linker is longer than at rest."""
    twist_excess: float
    """Degree by which the whole linker is overwound."""


@dataclass
class BoundProteins:
    """k proteins on DNA, angstrom: first and last base pair (k,), whether strand I of the structure is strand II of the
    fibre (k,), and the place of their own frames: origin (k, 3), frame (k, 3, 3)."""

    name: list[str]
    first_bp: NDArray[np.int32]
    last_bp: NDArray[np.int32]
    reverse: NDArray[np.bool_]
    origin: Array
    frame: Array


@dataclass
class Scaffold:
    """n base pairs and m nucleosomes, angstrom; frames have their axes as columns.

    Of base pairs: origin (n, 3), frame (n, 3, 3), base (n,) ASCII letter of strand I, nucleosome (n,) it is wrapped on
    or -1, position (n,) on the chromosome, 0-based. Of nucleosomes: core_origin (m, 3), core_frame (m, 3, 3); dyad,
    first_bp and last_bp (m,) are indices of base pairs here.

    `shifts` are the fibre's `adjustments`. `energy` holds series over the run (kBT, nm), `acceptance` the accepted
    share per move, `contact_map` (k, k) counts over the sampled conformations. `observables` are as
    `fibre_observables` gives them.
    """

    name: str
    chromosome: str
    origin: Array
    frame: Array
    base: NDArray[np.uint8]
    nucleosome: NDArray[np.int32]
    position: NDArray[np.int64]
    core_origin: Array
    core_frame: Array
    dyad: NDArray[np.int32]
    first_bp: NDArray[np.int32]
    last_bp: NDArray[np.int32]
    shifts: list[Adjustment] = field(default_factory=list)
    contacts: list[ContactEntry] = field(default_factory=list)
    linkers: list[LinkerEntry] = field(default_factory=list)
    energy: dict[str, Array] = field(default_factory=dict)
    acceptance: dict[str, float] = field(default_factory=dict)
    observables: dict[str, float | int | list[float]] = field(default_factory=dict)
    contact_map: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    contact_resolution: int = 0  # base pairs a bin
    floor_violations: int = 0
    deepest_violation: float = 0.0  # nm
    provenance: dict = field(default_factory=dict)
    tails: Array | None = None  # (m, 50, 3) angstrom, beads in the order of mesoscale.tails.TAILS
    linker_histones: Array | None = None  # (k, 28, 3) angstrom: 6 beads of the head, 22 of the C-terminal domain
    linker_histone_core: NDArray[np.int32] | None = None  # (k,) nucleosomes that carry them
    circular: bool = False  # whether the last base pair is followed by the first
    missing: list[MissingDimer] = field(default_factory=list)  # H2A-H2B dimers that each nucleosome lacks; empty: none
    proteins: BoundProteins | None = None

    _DATASETS = {
        "bp/origin": "origin",
        "bp/frame": "frame",
        "bp/base": "base",
        "bp/nucleosome": "nucleosome",
        "bp/position": "position",
        "nucleosome/origin": "core_origin",
        "nucleosome/frame": "core_frame",
        "nucleosome/dyad_index": "dyad",
        "nucleosome/first_bp": "first_bp",
        "nucleosome/last_bp": "last_bp",
    }
    _PLAIN = ("name", "chromosome", "contact_resolution", "floor_violations", "deepest_violation")
    _JSON = ("shifts", "contacts", "linkers", "observables", "provenance")

    def _repr_html_(self) -> str:
        facts = {"base pairs": f"{len(self.base):,}", "nucleosomes": f"{len(self.dyad):,}",
                 "overlaps left": self.floor_violations}
        facts |= {name.replace("_", " "): f"{value:.6g}" for name, value in self.observables.items()
                  if isinstance(value, float)}
        rows = "".join(f"<tr><th style='text-align:left'>{escape(name)}</th><td>{value}</td></tr>"
                       for name, value in facts.items())
        return f"<b>Scaffold of {escape(self.name)}</b><table>{rows}</table>"

    def write(self, path: str | Path) -> None:
        """Write scaffold.h5; the file appears whole or not at all. The same scaffold gives the same bytes."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            # In memory first: HDF5 does not survive a disk that is full when it closes a file.
            image = io.BytesIO()
            with h5py.File(image, "w", libver=("v110", "v110")) as file:
                file.attrs["format"] = FORMAT
                file.attrs["version"] = VERSION
                for key in self._PLAIN:
                    file.attrs[key] = getattr(self, key)
                if self.circular:
                    file.attrs["circular"] = True
                if any(self.missing):
                    file.attrs["missing_dimers"] = json.dumps(self.missing)
                for key in self._JSON:
                    file.attrs[key] = json.dumps(getattr(self, key), sort_keys=True)
                for dataset, attribute in self._DATASETS.items():
                    file.create_dataset(dataset, data=getattr(self, attribute), track_times=False)
                file.create_dataset("contact_map", data=self.contact_map, track_times=False)
                if self.tails is not None:
                    file.create_dataset("tails/beads", data=self.tails, track_times=False)
                if self.linker_histones is not None:
                    file.create_dataset("linker_histones/beads", data=self.linker_histones, track_times=False)
                    file.create_dataset("linker_histones/nucleosome", data=self.linker_histone_core, track_times=False)
                if self.proteins is not None:
                    file.attrs["proteins"] = json.dumps(self.proteins.name)
                    for name in _OF_PROTEINS:
                        file.create_dataset(f"protein/{name}", data=getattr(self.proteins, name), track_times=False)
                for name, series in self.energy.items():
                    file.create_dataset(f"energy/{name}", data=series, track_times=False)
                for name, rate in self.acceptance.items():
                    file.create_dataset(f"acceptance/{name}", data=rate, track_times=False)
            with open(part, "wb") as handle:
                handle.write(image.getbuffer())
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)

    @classmethod
    def read(cls, path: str | Path) -> "Scaffold":
        """Read scaffold.h5. Raises ValueError when the file is not a scaffold of this version."""
        try:
            with h5py.File(path, "r") as file:
                known = file.attrs.get("format") == FORMAT and file.attrs.get("version") == VERSION
                if not known:
                    raise KeyError(f"it is not a {FORMAT} file of version {VERSION}")
                values = {attribute: file[dataset][()] for dataset, attribute in cls._DATASETS.items()}
                for key in cls._PLAIN:
                    value = file.attrs[key]
                    values[key] = value if isinstance(value, str) else value.item()
                for key in cls._JSON:
                    values[key] = json.loads(file.attrs[key])
                values["circular"] = bool(file.attrs.get("circular", False))
                values["contact_map"] = file["contact_map"][()]
                values["tails"] = file["tails/beads"][()] if "tails/beads" in file else None
                for name, key in (("linker_histones", "beads"), ("linker_histone_core", "nucleosome")):
                    dataset = f"linker_histones/{key}"
                    values[name] = file[dataset][()] if dataset in file else None
                values["missing"] = json.loads(file.attrs.get("missing_dimers", "[]"))
                if "proteins" in file.attrs:
                    values["proteins"] = BoundProteins(json.loads(file.attrs["proteins"]), **{
                        name: file[f"protein/{name}"][()] for name in _OF_PROTEINS})
                values["energy"] = {name: series[()] for name, series in file.get("energy", {}).items()}
                values["acceptance"] = {name: float(rate[()]) for name, rate in file.get("acceptance", {}).items()}
                return cls(**values)
        # Whatever h5py, or json, makes of a damaged file.
        except (OSError, LookupError, ValueError, TypeError, AttributeError, RuntimeError, MemoryError) as error:
            raise ValueError(f"{path} cannot be read as a scaffold ({error}): make it again") from None


def _linker_frames(
    points: Array, first: Array | None, last: Array | None, steps: int, whole_twist: float, closed: bool = False
) -> tuple[Array, Array, float]:
    """Base-pair origins (steps + 1, 3) and frames along a smooth curve through `points`, and the twist per step.

    `first` and `last` are the frames (columns x, y, z) at the two ends; None at a free end. Between two given frames
    the twist (radian) is the one nearest to `whole_twist` that meets both; with a free end it is that. A `closed`
    curve, whose last point is its first, meets the frame with which it begins.
    """
    chord = np.linalg.norm(np.diff(points, axis=0), axis=1)
    knots = np.concatenate([[0.0], np.cumsum(chord)])
    clamped = [(1, frame[:, 2]) if frame is not None else (2, np.zeros(3)) for frame in (first, last)]
    curve = CubicSpline(knots, points, bc_type="periodic" if closed else tuple(clamped))
    pieces = zip(knots, knots[1:], strict=False)
    fine = np.unique(np.concatenate([np.linspace(a, b, CURVE_POINTS + 1) for a, b in pieces]))
    arc = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(curve(fine), axis=0), axis=1))])
    at = np.interp(np.linspace(0.0, arc[-1], steps + 1), arc, fine)
    origin, tangent = curve(at), curve(at, 1)
    tangent /= np.linalg.norm(tangent, axis=1)[:, None]
    if closed:
        across = first[:, :1] - tangent[0, :, None] * (tangent[0] @ first[:, 0])
        first = last = across / np.linalg.norm(across)

    forward = first is not None
    order = range(1, steps + 1) if forward else range(steps - 1, -1, -1)
    x = np.zeros_like(origin)
    here = 0 if forward else steps
    x[here] = (first if forward else last)[:, 0]
    for k in order:
        x[k] = transported(x[here], tangent[here], tangent[k])
        x[k] -= (x[k] @ tangent[k]) * tangent[k]
        x[k] /= np.linalg.norm(x[k])
        here = k
    total = whole_twist
    if first is not None and last is not None:
        y = np.cross(tangent[-1], x[-1])
        missing = np.arctan2(last[:, 0] @ y, last[:, 0] @ x[-1])
        total = missing + 2 * np.pi * np.round((total - missing) / (2 * np.pi))
    angle = total * (np.arange(steps + 1) / steps - (0.0 if forward else 1.0))
    x = np.cos(angle)[:, None] * x + np.sin(angle)[:, None] * np.cross(tangent, x)
    return origin, np.stack([x, np.cross(tangent, x), tangent], axis=2), total / steps


def build_scaffold(
    fibre: Fibre, chain: Chain, position: Array, frame: Array, parameters: Parameters, tails: Array | None = None,
    linker_histones: Array | None = None,
) -> Scaffold:
    """Base-pair frames of a conformation: the crystal path on every core, smooth curves in linkers and at free ends;
    beads of tails (m, 50, 3) and of linker histones (k, 28, 3) come along.

    The result is turned so that the box around it is small, with its longest edge along x and its shortest along z.
    """
    n = len(fibre.sequence)
    origin, frames = np.zeros((n, 3)), np.zeros((n, 3, 3))
    nucleosome = np.full(n, -1, np.int32)
    places = fibre.places
    is_bare_circle = chain.is_circle and not places
    begin = round(chain.bp[0]) if is_bare_circle else 0
    for place, p in zip(places, chain.cores, strict=True):
        if place.protein >= 0:
            body = fibre.proteins[place.protein].body
            path_origin, path_frame = body.origin, body.frame
        else:
            path_origin, path_frame = crystal_path(fibre.wrapped[place.nucleosome])
        wrapped = slice(place.first_bp, place.last_bp + 1)
        origin[wrapped] = position[p] + path_origin @ frame[p].T
        frames[wrapped] = frame[p] @ path_frame
        nucleosome[wrapped] = place.nucleosome

    start, end = segment_ends(chain, position, frame)
    # The sampled twist decides how often a linker turns; its ends alone would leave whole turns open.
    deviation = np.where(chain.twist_k > 0, twist_deviations(chain, position, frame), 0.0)
    natural = np.radians(parameters.twist_per_bp)
    linkers: list[LinkerEntry] = []
    apart, turned_off = [0.0], [0.0]
    for number in np.unique(chain.linker):
        segments = np.flatnonzero(chain.linker == number)
        points = np.concatenate([start[segments[:1]], end[segments]])
        before, after = segments[0], chain.end_of_segment[segments[-1]]
        from_bp = places[chain.core[before] - 1].last_bp if chain.core[before] else 0
        to_bp = places[chain.core[after] - 1].first_bp if chain.core[after] else n - 1
        if is_bare_circle:
            from_bp, to_bp = begin, begin + n
        if to_bp < from_bp:  # across the seam of a circle
            to_bp += n
        inside = np.arange(from_bp, to_bp + 1) % n
        start_frame = frames[from_bp] if chain.core[before] else None
        if not len(chain.cores):  # DNA alone starts as its first bead lies: tangent, then two normals
            start_frame = frame[0][:, [1, 2, 0]]
        path, turned, twist = _linker_frames(
            points,
            start_frame,
            frames[inside[-1]] if chain.core[after] else None,
            to_bp - from_bp,
            (to_bp - from_bp) * natural + float(deviation[segments].sum()),
            is_bare_circle,
        )
        for at, bp, core in ((0, from_bp, before), (-1, inside[-1], after)):
            if chain.core[core]:
                apart.append(float(np.linalg.norm(path[at] - origin[bp])))
                turned_off.append(_angle_between(turned[at], frames[bp]))
        # The ends of the curve are base pairs of the cores and stay as the crystal has them.
        keep = slice(1 if chain.core[before] else 0, -1 if chain.core[after] or is_bare_circle else None)
        origin[inside[keep]], frames[inside[keep]] = path[keep], turned[keep]
        steps, rise = int(to_bp - from_bp), float(np.linalg.norm(np.diff(path, axis=0), axis=1).mean()) * NM
        linkers.append(
            {"first_bp": int(from_bp), "last_bp": int(inside[-2 if is_bare_circle else -1]),
             "rise": rise, "twist": float(np.degrees(twist)),
             "contour_excess": steps * (rise - parameters.rise * NM),
             "twist_excess": float(np.degrees(steps * (twist - natural)))}
        )  # fmt: skip

    is_nucleosome = np.array([place.protein < 0 for place in places], bool)
    (core_position, core_frame), bound = (
        (position[at], frame[at]) for at in (chain.cores[is_nucleosome], chain.cores[~is_nucleosome]))
    in_order = np.roll(origin, -begin, axis=0)  # numbered from elsewhere, a circle lies the same way
    turn, centre = box_axes(np.concatenate([in_order, body_points(chain, position, frame)])), in_order.mean(axis=0)
    return Scaffold(
        name=fibre.name,
        chromosome=str(fibre.chromosome),  # one that knows its other names, as text
        origin=(origin - centre) @ turn * NM,
        frame=turn.T @ frames,
        base=np.frombuffer(fibre.sequence.encode("ascii"), np.uint8).copy(),
        nucleosome=nucleosome,
        position=fibre.position,
        core_origin=(core_position - centre) @ turn * NM,
        core_frame=turn.T @ core_frame,
        dyad=np.array(fibre.dyads, np.int32),
        first_bp=np.array(fibre.first_bp, np.int32),
        last_bp=np.array(fibre.last_bp, np.int32),
        shifts=list(fibre.adjustments),
        linkers=linkers,
        tails=None if tails is None else (tails - centre) @ turn * NM,
        linker_histones=None if linker_histones is None else (linker_histones - centre) @ turn * NM,
        observables=fibre_observables(position, core_position)
        | {"joint_gap": max(apart), "joint_turn": max(turned_off)},
        missing=list(fibre.missing),
        circular=fibre.circular,
        proteins=BoundProteins([one.name for one in fibre.proteins], np.array(
            [one.first_bp for one in fibre.proteins], np.int32), np.array(
            [one.last_bp for one in fibre.proteins], np.int32), np.array([one.reverse for one in fibre.proteins], bool),
            (bound[0] - centre) @ turn * NM, turn.T @ bound[1]) if fibre.proteins else None,
    )


def _angle_between(one: Array, other: Array) -> float:
    """Angle (degree) of the rotation between two frames (3, 3); from the chord, which is exact for small ones."""
    return float(np.degrees(2 * np.arcsin(min(1.0, np.linalg.norm(one - other) / np.sqrt(8)))))


def box_axes(points: Array) -> Array:
    """Rotation (3, 3) whose columns are the edges of a small box around points (n, 3), longest first; right-handed.

    It starts from the principal axes and is refined by a downhill search for the least volume.
    """
    if len(points) < 3:  # as many as there are axes
        points = np.concatenate([points, points])
    try:
        hull = points[ConvexHull(points).vertices]
    except QhullError:  # of a few points on a line, or in a plane
        hull = points
    start = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2].T

    def axes(turn: Array) -> Array:
        return start @ Rotation.from_rotvec(turn).as_matrix()

    def volume(turn: Array) -> float:
        return float(np.prod(np.ptp(hull @ axes(turn), axis=0) + 2 * BOX_MARGIN))

    best = minimize(volume, np.zeros(3), method="Nelder-Mead", options={"initial_simplex": SIMPLEX, "xatol": 1e-3})
    found = axes(best.x)
    found = found[:, np.argsort(-np.ptp(hull @ found, axis=0))]
    # Signs by a rule, so that the result does not depend on the linear algebra library.
    for k in range(2):
        found[:, k] *= np.sign(found[np.argmax(np.abs(found[:, k])), k])
    found[:, 2] = np.cross(found[:, 0], found[:, 1])
    return found


def box_volume(points: Array) -> float:
    """Volume (nm^3) of the box around points (n, 3) along its `box_axes`, with BOX_MARGIN on every side."""
    return float(np.prod(np.ptp(points @ box_axes(points), axis=0) + 2 * BOX_MARGIN))
