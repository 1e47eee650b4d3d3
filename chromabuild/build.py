"""From a scaffold to an all-atom solute: relax linkers, place bases, close backbones, add octamers and hydrogens."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from chromabuild import __version__
from chromabuild.config import BuildSection, Config
from chromabuild.dna.backbone import (
    ATOM_CLASS,
    SUGAR,
    Obstacles,
    base_layout,
    close_backbone,
    measure_backbone,
    place_bases,
    wrong_chirality,
)
from chromabuild.dna.helix import DYAD, RelaxedPath, crystal_path, relax_path, superhelix_path
from chromabuild.dna.sequence import BASES, base_index, both_strands
from chromabuild.dna.stacking import relax_bases
from chromabuild.dna.steps import dna_parameters, split_pair
from chromabuild.errors import BadInputError
from chromabuild.hydrogens import place_hydrogens, settle_thymine_methyls
from chromabuild.nucleosome.marks import octamer_recipes
from chromabuild.nucleosome.octamer import Octamer, histone_segid, place_octamer
from chromabuild.nucleosome.recipe import OctamerRecipe, build_octamer
from chromabuild.nucleosome.scaffold_tails import BEADS, follow_beads
from chromabuild.nucleosome.settling import settle_histones
from chromabuild.nucleosome.template_file import read_template
from chromabuild.residues import residue_library, residue_names
from chromabuild.solute import MAX_RESIDUES_PER_SEGMENT, Solute, base_36
from chromabuild.sterics.cell_list import CellList

CHAIN_LETTERS = ascii_uppercase + ascii_lowercase + digits
OUTLIER = 4.0  # standard deviations
PHOSPHATE_REACH = 10.0  # angstrom from C1' to what the farthest oxygen of its phosphate can touch
BESIDE_DNA = 7.0  # angstrom: farther from wrapped DNA, an atom of an octamer does not bother any backbone
BEAD_TOLERANCE = 3.0  # angstrom rms from a tail's beads
SEAM = 30  # base pairs that a circle repeats on either side

Progress = Callable[[str, float], None]


def build_solute(scaffold: Any, config: Config, threads: int = 1, progress: Progress | None = None) -> Solute:
    """All atoms of a fibre: both strands from end to end, and the histones of every nucleosome.

    Args:
        scaffold: a ``mesoscale.scaffold.Scaffold``, angstrom (docs/formats.md, section 1).
        config: ``config.build.nucleosome_path`` chooses the path of wrapped DNA, ``config.build.tails`` the
            conformation of the histone tails.
        threads: for the backbone closure; the result does not depend on it.
        progress: called with what is being done and the fraction done.

    Returns:
        The solute; ``solute.provenance["build_report"]`` holds costs of linkers and the quality of the backbone.

    Raises:
        BadInputError: a base that is not A, C, G, T, or a linker that cannot be built.
    """
    def say(what: str, fraction: float) -> None:
        if progress is not None:
            progress(what, fraction)

    say("relaxing linkers", 0.0)
    sequence = base_index(scaffold.base)
    recipes = octamer_recipes(config.build, scaffold.chromosome, scaffold.position[scaffold.dyad], config.seed)
    octamers = [octamer_of_recipe(recipe) for recipe in recipes]
    tails = {}
    if config.build.tails == "scaffold":
        octamers, tails = _with_scaffold_tails(octamers, scaffold, config.seed)
    path = relaxed_path(scaffold, sequence, config.build, octamers, threads)
    say("closing the backbone", 0.2)
    # The regular superhelix runs through the octamer: no backbone can keep clear of that.
    histones = None if config.build.nucleosome_path == "superhelix" else _atoms_beside_dna(octamers, path)
    dna_position, dna_template, report = build_dna(sequence, path.origin, path.frame, threads, histones=histones)
    del histones
    say("placing histones", 0.8)
    solute = assemble_solute(dna_position, dna_template, octamers, path.core_origin, path.core_frame)
    del dna_position, octamers
    say("making room for histones", 0.85)
    settled = settle_histones(solute, threads)
    solute.provenance = {
        "stage": "build",
        "chromabuild": __version__,
        "locus": scaffold.name,
        "nucleosome_path": config.build.nucleosome_path,
        "tails": config.build.tails,
        "build_report": report | path.summary() | {"octamers": _octamer_counts(recipes)} | tails | settled,
    }
    say("done", 1.0)
    return solute


def _with_scaffold_tails(octamers: list[Octamer], scaffold: Any, seed: int) -> tuple[list[Octamer], dict]:
    """Octamers whose tails follow the scaffold's beads, and how closely."""
    if scaffold.tails is None:
        raise BadInputError("the scaffold holds no tail beads for build.tails = scaffold: run chromabuild scaffold")
    beads = np.einsum("mji,mkj->mki", scaffold.core_frame, scaffold.tails - scaffold.core_origin[:, None])
    surroundings, _ = _wrapped_dna()
    result, deviation = list(octamers), np.full(beads.shape[:2], np.nan)
    for core in dict.fromkeys(id(core) for core in octamers):
        rows = np.flatnonzero([id(other) == core for other in octamers])
        positions, deviation[rows] = follow_beads(octamers[rows[0]], beads[rows], surroundings, seed)
        for row, position in zip(rows, positions, strict=True):
            result[row] = replace(octamers[row], position=position)
    start = np.concatenate([[0], np.cumsum(BEADS)[:-1]])
    square = np.add.reduceat(np.nan_to_num(deviation) ** 2, start, axis=1)
    count = np.add.reduceat(np.isfinite(deviation).astype(int), start, axis=1)
    rms = np.sqrt(square / np.maximum(count, 1))
    return result, {"tail_beads_followed": int(count.sum()),
                    "tail_bead_rms": round(float(np.sqrt(square.sum() / max(count.sum(), 1))), 3),
                    "tail_bead_rms_largest": round(float(rms.max()), 3),
                    "tails_beyond_3_angstrom": int(np.sum(rms > BEAD_TOLERANCE))}


def relaxed_path(
    scaffold: Any, sequence: np.ndarray, settings: BuildSection, octamers: Sequence[Octamer] = (), threads: int = 1
) -> RelaxedPath:
    """Base pairs and cores of the scaffold with relaxed linkers, wrapped and joined as the settings say.

    Linkers keep clear of the ``octamers`` that the cores will carry.
    """
    path = crystal_path()
    if settings.template is not None:
        template = read_template(settings.template)
        path = template.origin, template.frame
    if settings.nucleosome_path == "superhelix":
        path = superhelix_path(settings.superhelix_outer_diameter, settings.superhelix_pitch, settings.superhelix_rise)
    core = np.asarray(scaffold.nucleosome)
    on_core = np.zeros(len(core), dtype=int)
    wrapped = core >= 0
    on_core[wrapped] = np.flatnonzero(wrapped) - np.asarray(scaffold.dyad)[core[wrapped]]
    if np.abs(on_core).max(initial=0) > DYAD:
        far = int(np.argmax(np.abs(on_core)))
        raise BadInputError(
            f"base pair {far} lies {abs(on_core[far])} bp from the dyad of nucleosome {core[far]} that it is wrapped "
            f"on, beyond the {DYAD} of a core: make the scaffold again"
        )
    return relax_path(
        sequence, scaffold.origin, scaffold.frame, scaffold.core_origin, scaffold.core_frame, core, on_core, path,
        [octamer.alpha_carbons for octamer in octamers], settings.steps,
        settings.linker_phase_limit, threads)


def base_frames(
    sequence: np.ndarray, origin: np.ndarray, frame: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bases (2n,), base origins (2n, 3) and frames (2n, 3, 3) of strand I, then strand J, from base pairs.

    Args:
        sequence: (n,) 0..3 for A, C, G, T of strand I.
        origin: (n, 3) of the base pairs, angstrom.
        frame: (n, 3, 3).
        threads: for the relaxation of overlapping bases.
    """
    parameters = dna_parameters()
    pair = np.array([parameters.pair[letter] for letter in BASES])[sequence]
    (origin_i, frame_i), (origin_j, frame_j) = split_pair(origin, frame, pair)
    bases = both_strands(sequence)
    origins = np.concatenate([origin_i, origin_j[::-1]])
    frames = np.concatenate([frame_i, frame_j[::-1]])
    return bases, *relax_bases(bases, origins, frames, pair, threads)


def _atoms_beside_dna(octamers: list[Octamer], path: RelaxedPath) -> tuple[np.ndarray, np.ndarray] | None:
    """Heavy atoms (k, 3) of placed octamers that wrapped DNA can touch, and their ``ATOM_CLASS`` (k,)."""
    if not octamers:
        return None
    library, wrapped, beside = list(residue_library().values()), cKDTree(_wrapped_dna()[0]), {}
    for core in octamers:
        if id(core) not in beside:
            element = np.concatenate([library[k].elements for k in core.residue_template])
            near = wrapped.query(core.position, distance_upper_bound=BESIDE_DNA)[0] < BESIDE_DNA
            rows = np.flatnonzero(near & (element != "H"))
            kind = np.array([ATOM_CLASS.get(e, ATOM_CLASS["C"]) for e in element[rows]], dtype=np.int32)
            beside[id(core)] = core.position[rows], kind
    position = [origin + beside[id(core)][0] @ frame.T
                for core, origin, frame in zip(octamers, path.core_origin, path.core_frame, strict=True)]
    return np.concatenate(position), np.concatenate([beside[id(core)][1] for core in octamers])


def build_dna(
    sequence: np.ndarray, origin: np.ndarray, frame: np.ndarray, threads: int = 1, circular: bool = False,
    histones: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray, dict]:
    """All atoms of a duplex with free 5' and 3' hydroxyls, or of a closed circle without ends.

    Args:
        sequence: (n,) 0..3 for A, C, G, T of strand I.
        origin: (n, 3) of the base pairs, angstrom.
        frame: (n, 3, 3).
        threads: for relaxing bases and closing the backbone; the result does not depend on it.
        circular: whether the last base pair is followed by the first.
        histones: (k, 3) atoms that the backbone keeps clear of, and their ``ATOM_CLASS`` (k,); not beside circles.

    Returns:
        Positions (atoms, 3), library indices of the residues (2n,) - strand I, then strand J - and the report on the
        backbone's quality.
    """
    if circular:
        bases, base_atoms, sugar, iterations = _closed_circle(sequence, origin, frame, threads)
    else:
        bases, origins, frames = base_frames(sequence, origin, frame, threads)
        base_atoms, c1 = place_bases(bases, origins, frames)
        obstacles = None if histones is None else _obstacles(c1, *histones, threads)
        sugar, iterations = close_backbone(bases, origins, frames, threads, obstacles=obstacles)

    n, index = len(sequence), {name: k for k, name in enumerate(residue_names())}
    template = np.array([index[f"D{letter}"] for letter in BASES])[bases]
    for end, suffix in () if circular else ((0, "5"), (n - 1, "3"), (n, "5"), (2 * n - 1, "3")):
        template[end] = index[f"D{BASES[bases[end]]}{suffix}"]
    library = list(residue_library().values())
    sizes = np.array([len(entry.atoms) for entry in library])
    first_atom = np.concatenate([[0], np.cumsum(sizes[template])])
    position = np.zeros((first_atom[-1], 3))
    for kind in np.unique(template):
        which, atoms = np.flatnonzero(template == kind), library[kind].index
        letter = library[kind].name[1]
        for source, names in ((sugar, SUGAR), (base_atoms, base_layout().atoms[letter])):
            for k, name in enumerate(names):
                if name in atoms:
                    position[first_atom[which] + atoms[name]] = source[which, k]
    place_hydrogens(position, template, first_atom)
    settle_thymine_methyls(position, template, first_atom)
    return position, template.astype(np.uint16), _backbone_report(bases, sugar, base_atoms, iterations, circular)


def _obstacles(c1: np.ndarray, position: np.ndarray, atom_class: np.ndarray, threads: int) -> Obstacles | None:
    """Those of the atoms (k, 3) that the sugar-phosphates at ``c1`` (2n, 3) can touch."""
    nucleotide, atom = CellList(position, PHOSPHATE_REACH, threads).in_spheres(c1, PHOSPHATE_REACH)
    if not len(atom):
        return None
    atom = atom[np.lexsort((atom, nucleotide))]
    first = np.concatenate([[0], np.cumsum(np.bincount(nucleotide, minlength=len(c1)))]).astype(np.int32)
    return Obstacles(first, atom_class[atom], np.ascontiguousarray(position[atom], dtype=float))


def _closed_circle(
    sequence: np.ndarray, origin: np.ndarray, frame: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Bases (2n,), their atoms, sugar-phosphates and closure iterations of both strands of a circle.

    It is closed as a longer duplex whose ends repeat what lies beyond the seam; once more with the true neighbours
    there, so that both sides of the seam meet.
    """
    n = len(sequence)
    if n <= 2 * SEAM:
        raise BadInputError(f"a circle of {n} base pairs is too small to be built: take more than {2 * SEAM}")
    around = np.arange(-SEAM, n + SEAM) % n
    bases, origins, frames = base_frames(sequence[around], origin[around], frame[around], threads)
    inner = np.concatenate([SEAM + np.arange(n), n + 3 * SEAM + np.arange(n)])
    repeated = np.concatenate([inner[around], inner[n + around]])
    place = bases, origins[repeated], frames[repeated]  # a base and its copy must lie in the same place
    sugar, iterations = close_backbone(*place, threads)
    sugar, more = close_backbone(*place, threads, start=sugar[repeated])
    base_atoms, _ = place_bases(*place)
    return tuple(part[inner] for part in (bases, base_atoms, sugar, iterations + more))


def _backbone_report(
    bases: np.ndarray, sugar: np.ndarray, base_atoms: np.ndarray, iterations: np.ndarray, circular: bool
) -> dict:
    pairs = len(bases) // 2
    if circular:  # the last nucleotide of each strand once more before its first; its own row is dropped
        rows = np.arange(2 * pairs).reshape(2, -1)
        rows = np.concatenate([rows[:, -1:], rows], axis=1).ravel()
        bases, sugar, base_atoms = bases[rows], sugar[rows], base_atoms[rows]
    geometry = measure_backbone(bases, sugar, base_atoms, torsions=False)
    o3_p, wrong = geometry.bond[:, 0], wrong_chirality(sugar, base_atoms).sum(axis=0)
    return {
        "base_pairs": pairs,
        "o3_p_shortest": round(float(np.nanmin(o3_p)), 4),
        "o3_p_longest": round(float(np.nanmax(o3_p)), 4),
        "bond_rmsz": round(float(np.sqrt(np.nanmean(geometry.bond_z**2))), 4),
        "angle_rmsz": round(float(np.sqrt(np.nanmean(geometry.angle_z**2))), 4),
        "bond_outliers": int(np.sum(np.abs(geometry.bond_z) > OUTLIER)),
        "angle_outliers": int(np.sum(np.abs(geometry.angle_z) > OUTLIER)),
        "wrong_chirality": dict(zip(("C1'", "C3'", "C4'"), wrong.tolist(), strict=True)),
        "closure_iterations": round(float(iterations.mean()), 1),
    }


def _dna_segments(n: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Segment names, segment of every residue (2n,), residue numbers (2n,) of both strands."""
    pieces = -(-n // MAX_RESIDUES_PER_SEGMENT)
    names = [f"D{strand}{base_36(k, 2)}" for strand in "IJ" for k in range(pieces)]
    segment, within = np.divmod(np.arange(n), MAX_RESIDUES_PER_SEGMENT)
    return names, np.concatenate([segment, pieces + segment]), np.tile(within + 1, 2)


@cache
def octamer_of_recipe(recipe: OctamerRecipe) -> Octamer:
    """The octamer of a recipe; new side chains keep clear of DNA on the crystal's path, A, C, G, T in turn."""
    if not recipe.mutations:
        return build_octamer(recipe, np.zeros((0, 3)), np.zeros(0, dtype=bool))
    return build_octamer(recipe, *_wrapped_dna())


@cache
def _wrapped_dna() -> tuple[np.ndarray, np.ndarray]:
    """Heavy atoms (n, 3) of DNA on the crystal's path, A, C, G, T in turn, and which are polar (n,)."""
    origin, frame = crystal_path()
    position, template, _ = build_dna(np.arange(len(origin)) % 4, origin, frame)
    library = list(residue_library().values())
    element = np.concatenate([library[kind].elements for kind in template])
    heavy = element != "H"
    return position[heavy], np.isin(element[heavy], ("N", "O"))


def _octamer_counts(recipes: list[OctamerRecipe]) -> list[dict]:
    """How many nucleosomes carry which histones."""
    return [{"histones": "template" if recipe.template else recipe.species,
             "marks": ", ".join((*recipe.variants, *recipe.mutations)) or "none",
             "linker_histone": recipe.linker_histone or "none",
             "nucleosomes": recipes.count(recipe)} for recipe in sorted(set(recipes))]


def assemble_solute(dna_position: np.ndarray, dna_template: np.ndarray, octamers: list[Octamer],
                    core_origin: np.ndarray, core_frame: np.ndarray, circular: bool = False) -> Solute:
    """Join DNA, as ``build_dna`` gives it, and octamers on their cores in the order that ``Solute`` prescribes.

    Args:
        dna_position: (atoms, 3) angstrom.
        dna_template: (2n,) library indices.
        octamers: one for each of m cores.
        core_origin: (m, 3) angstrom.
        core_frame: (m, 3, 3).
        circular: whether ``build_dna`` closed the strands to circles.
    """
    n = len(dna_template) // 2
    segment_name, segment, number = _dna_segments(n)
    dna_segments = len(segment_name)
    segment_name += [histone_segid(k, chain) for k, core in enumerate(octamers) for chain in core.chain]
    chains = [len(core.chain) for core in octamers]
    first_segment = dna_segments + np.concatenate([[0], np.cumsum(chains)])
    residues_of_chain = np.concatenate([np.zeros(0, dtype=int), *(np.bincount(c.residue_chain) for c in octamers)])
    histone_residues = 2 * n + np.concatenate([[0], np.cumsum(residues_of_chain)])
    templates = [core.residue_template for core in octamers]
    histone_segments = [first_segment[k] + core.residue_chain for k, core in enumerate(octamers)]
    placed = [place_octamer(core, origin, frame)
              for core, origin, frame in zip(octamers, core_origin, core_frame, strict=True)]
    return Solute(
        position=np.concatenate([dna_position.astype(np.float32), *placed]),
        residue_template=np.concatenate([dna_template, *templates]).astype(np.uint16),
        residue_number=np.concatenate([number, *(core.residue_number for core in octamers)]).astype(np.int32),
        residue_segment=np.concatenate([segment, *histone_segments]).astype(np.uint16),
        segment_name=segment_name,
        segment_chain=[CHAIN_LETTERS[k % len(CHAIN_LETTERS)] for k in range(len(segment_name))],
        molecule_first_residue=np.concatenate([[0, n], histone_residues]).astype(np.int64),
        molecule_name=["DNA-I", "DNA-J", *(name for core in octamers for name in core.histone)],
        molecule_nucleosome=np.concatenate([[-1, -1], np.repeat(np.arange(len(octamers)), chains)]).astype(np.int32),
        circular=(0, 1) if circular else (),
    )  # fmt: skip
