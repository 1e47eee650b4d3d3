"""The radius of gyration of 12 nucleosomes against salt, beside Sun, Zhang & Schlick (PNAS 102:8180, 2005).

The published set, not the one that folding uses: DNA leaves a disk of radius 4.8 nm, 1.8 nm above and below its
middle, at 90 degrees; linkers of six beads 3 nm apart with a stretching constant of 5000 kBT/l0^2; excluded volume
with sigma 2.5 nm between linkers and cores, 1.5 nm between cores; tails rigid where the crystal has them; no floors.
The charges are ours: 300 of the core and 50 tail beads, both after the nonlinear Poisson-Boltzmann field at each salt.
With --tails smeared they are 353 on the smooth envelope of the whole particle, sun_2005_charges.json, written by

    python templates/tools/make_core_charges.py 1kx5.pdb --whole --sites 353 --salt 0.01 0.03 0.05 0.1 0.2 --output FILE

Every second replica begins extended, the others compact. With --hotter each replica is a parallel tempering of its own:
as many more walks at these multiples of the temperature exchange conformations with it every ten sweeps.

With --changes the same at --salt with one constant of the model changed after another, as far as the paper leaves them
open. --reference names the arrays of a run that the authors' group has published (sites and charges of core and tails
at 150 mmol/L, in the published frame), and its charges are tried as well.

Printed for each salt: mean radius of gyration of the core centres with its standard deviation over the run, as
published, and the standard error over the replicas; and mean energies in kcal/mol beside the published.
"""

import argparse
import json
import time
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from common.command import Benchmark

from chromabuild.molecule.residues import residue_library, residue_names
from chromabuild.nucleosome.octamer import octamer
from mesoscale.core_charges import tail_charge_scale
from mesoscale.cores import Core, crystal_core
from mesoscale.model import Chain, Parameters, straight_conformation, with_field
from mesoscale.montecarlo import RANDOM_PER_TRIAL, Walk, exchange
from mesoscale.observables import radius_of_gyration

# mol/L: radius of gyration (nm) and its standard deviation, energies in kcal/mol: bend, electrostatic. Tables 4 and 5
# of the supporting information.
PUBLISHED = {0.01: (41, 3, 86, 3), 0.03: (31, 3, 75, -48), 0.05: (24, 3, 70, -86), 0.1: (19, 1, 60, -108),
             0.2: (19, 1, 57, -117)}  # fmt: skip
CHARGES = Path(__file__).with_name("sun_2005_charges.json")
NUCLEOSOMES, BEADS, SPACING, TURN = 12, 6, 3.0, np.radians(90)
REST_TWIST = 0.0215  # radian a segment, of six beads
# Copies and first residues of the pieces of five residues, from the core to the tip.
TAIL_PIECES = (("AE", range(36, 0, -5)), ("BF", range(21, 0, -5)), ("CG", range(16, 0, -5)), ("DH", range(21, 0, -5)),
               ("CG", range(114, 128, 5)))  # fmt: skip
LINKER_BP = 61  # a repeat of 208 base pairs less 147
ROUND_BJERRUM = 0.7125  # nm, of a dielectric constant of 80 at 293.15 K
PER_CUBIC_NM = 0.602214  # ions of each sign, of 1 mol/L
KCAL = 0.58254  # kcal/mol in kBT at 293.15 K


def crystal_tails() -> np.ndarray:
    """Middles (50, 3), nm, of the tails' pieces of five residues in 1KX5, in the order of mesoscale.tails.TAILS."""
    particle, library = octamer("crystal"), residue_library()
    names = residue_names()
    template = particle.residue_template
    first = np.concatenate([[0], np.cumsum([len(library[names[t]].atoms) for t in template])])
    found = []
    for copies, starts in TAIL_PIECES:
        for copy in copies:
            for start in starts:
                at = np.flatnonzero((particle.residue_chain == particle.chain.index(copy))
                                    & (particle.residue_number == start + 2))  # fmt: skip
                atom = library[names[template[at[0]]]].index["CA"]
                found.append(particle.position[first[at[0]] + atom])
    return np.array(found) / 10


@dataclass(frozen=True)
class Change:
    """Constants that the paper leaves open, and what stands for them: rest twist of the linkers (radian a segment),
    spacing of their beads (nm), what formal charges of tails are multiplied with (None: as the project does), whether
    water has the dielectric constant 80 and the screening length that follows, cutoff (nm; None: nine screening
    lengths), and whether the charges of core and tails are those of --reference."""

    rest_twist: float = REST_TWIST
    spacing: float = SPACING
    tail_scale: float | None = None
    round_dielectric: bool = False
    cutoff: float | None = None
    of_reference: bool = False


UNCHANGED = Change()


def linker_twist(degree_per_bp: float) -> float:
    """Radian a segment of a linker of LINKER_BP base pairs: what is left of whole turns, spread evenly."""
    return float(np.radians((LINKER_BP * degree_per_bp + 180) % 360 - 180)) / (BEADS + 1)


def changes() -> dict[str, Change]:
    """By name, each alone and together."""
    rest = LINKER_BP * 0.34 / (BEADS + 1)
    together = Change(linker_twist(34.95), rest, 1.12, True, 7.0)
    return {
        "none": Change(),
        "twist of 61 base pairs of 34.95 degrees": Change(linker_twist(34.95)),
        "twist of 61 base pairs of 34.45 degrees": Change(linker_twist(34.45)),
        "linkers as long as 61 base pairs, twist of 34.95 degrees": Change(linker_twist(34.95), rest),
        "tails with formal charges": Change(tail_scale=1.0),
        "tails with 1.12 times formal charges": Change(tail_scale=1.12),
        "tails with 1.5 times formal charges": Change(tail_scale=1.5),
        "screening of water of dielectric constant 80": Change(round_dielectric=True),
        "cutoff of 7 nm": Change(cutoff=7.0),
        "61 base pairs, 1.12, 80 and 7 nm together": together,
        "charges of the group's run": Change(of_reference=True),
        "charges of the group's run, 61 base pairs, 80 and 7 nm": replace(together, of_reference=True),
    }


def published_core(salt: float, tails: str, change: Change, reference: Path | None) -> Core:
    """The published joints with our charges of the core and its tails, turned into the published frame."""
    a, b, c = np.eye(3)
    a_in, b_in = np.cos(TURN) * a + np.sin(TURN) * b, np.cos(TURN) * b - np.sin(TURN) * a
    dyad = -(b + b_in) / np.linalg.norm(b + b_in)  # our x; the superhelix climbs against c, along our z
    into = np.stack([dyad, np.cross(-c, dyad), -c], axis=1)
    if change.of_reference:
        run_ = np.load(reference)
        site, charge = (np.concatenate([run_[f"core_{what}"], run_[f"tail_{what}"]]) for what in ("site", "charge"))
        into = np.eye(3)  # it is in the published frame
    elif tails == "smeared":
        fitted = json.loads(CHARGES.read_text())
        rows = np.array(fitted["sites"])
        site, charge = rows[:, :3] / 10, rows[:, 3 + fitted["salt"].index(salt)].copy()
    else:
        ours = crystal_core(salt=salt)
        site, charge = ours.site.copy(), ours.site_charge.copy()
        site[-50:] = crystal_tails()  # the rigid tails come last
        if change.tail_scale is not None:
            charge[-50:] *= change.tail_scale / tail_charge_scale(salt)
    return Core(
        joint_point=np.array([-4.8 * b - 1.8 * c, -4.8 * b_in + 1.8 * c]),
        joint_frame=np.stack([np.eye(3), np.stack([a_in, b_in, c], axis=1)]),
        site=site @ into.T, site_charge=charge,
        sphere=np.zeros((1, 3)), sphere_radius=np.full(1, 0.01), sphere_near=np.zeros((1, 2), np.int32),
    )  # fmt: skip


def published_chain(salt: float, tails: str = "beads", change: Change = UNCHANGED, reference: Path | None = None
                    ) -> Chain:
    """Twelve cores and eleven linkers."""
    spacing = change.spacing
    parameters = Parameters(salt=salt)
    core = np.concatenate([np.append(k + 1, np.zeros(BEADS, int)) for k in range(NUCLEOSOMES)])[: -BEADS]
    n = len(core)
    thermal = parameters.thermal_energy
    bjerrum, kappa = parameters.bjerrum_length, parameters.kappa
    if change.round_dielectric:
        bjerrum = ROUND_BJERRUM
        kappa = float(np.sqrt(8 * np.pi * bjerrum * PER_CUBIC_NM * salt))
    return Chain(
        shape=published_core(salt, tails, change, reference), core=core.astype(np.int32), bp=np.arange(n, dtype=float),
        linker=np.cumsum(core > 0)[:-1].astype(np.int32), rest_length=np.full(n - 1, spacing),
        stretch_k=np.full(n - 1, 5000 / spacing**2), bend_k=np.full(n - 1, 50 / spacing),
        twist_k=np.full(n - 1, 300.0 / spacing / thermal), rest_twist=np.full(n - 1, change.rest_twist),
        charge=np.where(core > 0, 0.0, spacing * parameters.linker_charge), contact=np.zeros((0, 2), np.int32),
        contact_k=np.zeros(0), contact_distance=np.zeros(0), bjerrum_length=bjerrum,
        kappa=kappa, cutoff=change.cutoff or 9 / kappa, excluded_k=parameters.excluded_k, sigma=(3.6, 2.5, 1.5),
        dna_radius=0.01, floor_k=0.0, confinement_k=0.0, confinement_radius=0.0, wall_k=0.0, wall=(0.0, 0.0, 0.0),
    )  # fmt: skip


def starts(chain: Chain) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Two conformations with straight linkers: at their rest twist, which is compact, and the most extended of those
    with another twist.
    """
    turned = [straight_conformation(replace(chain, rest_twist=chain.rest_twist + twist / (BEADS + 1)))
              for twist in np.radians(np.arange(0, 360, 20))]  # fmt: skip
    return {"compact": turned[0], "extended": max(turned, key=lambda found: radius_of_gyration(found[0][chain.cores]))}


def run(
    chain: Chain, start: tuple[np.ndarray, np.ndarray], sweeps: int, seed: int, hotter: list[float]
) -> tuple[list[float], np.ndarray, float]:
    """Radius of gyration (nm) every tenth sweep, the mean energies (8,) of the second half, kBT, and the share of the
    exchanges with hotter walks that were accepted."""
    walks = [Walk.begin(chain, *start, temperature) for temperature in (1.0, *hotter)]
    random = np.random.Generator(np.random.Philox(key=seed))
    radius, energy, exchanged = [], [], np.zeros(2, int)
    for block in range(sweeps // 10):
        for walk in walks:
            counts = walk.advance(random.random((10 * chain.n, RANDOM_PER_TRIAL)), strict=False)
            if block < sweeps // 40:
                walk.adapt(*counts)
        if hotter:
            exchanged += exchange(walks, block % 2, random)
        radius.append(radius_of_gyration(walks[0].position[chain.cores]))
        energy.append(walks[0].energy)
    return radius, np.mean(energy[len(energy) // 2 :], axis=0), exchanged[1] / max(exchanged[0], 1)


def try_changes(benchmark: Benchmark, given: argparse.Namespace) -> None:
    """What each constant that the paper leaves open does to the radius."""
    table = benchmark.table(
        "chosen" if given.only else "changes",
        "Twelve nucleosomes with tails as beads: radius of gyration (nm) with one constant changed, and its "
        "error over replicas", **{
            "salt, mmol/L": ".0f", "change": "", "radius of gyration: published": "", "radius of gyration": ".1f",
            "moved by": ".1f", "from extended starts": ".1f", "from compact starts": ".1f",
            "bending energy, kcal/mol": ".0f", "electrostatic energy, kcal/mol": ".0f"})
    found = json.loads(given.work.read_text()) if given.work.exists() else {}
    for salt in given.salt:
        base = None
        for name, change in changes().items():
            if (change.of_reference and given.reference is None) or (given.only and name not in given.only):
                continue
            key = f"{salt:g} {given.sweeps} {given.replicas} {name}"
            if key not in found:
                chain = with_field(published_chain(salt, "beads", change, given.reference))
                begin = list(starts(chain).values())
                runs = [run(chain, begin[seed % 2], given.sweeps, seed + 1, given.hotter)
                        for seed in range(given.replicas)]
                radii = [float(np.mean(radius[len(radius) // 2 :])) for radius, *_ in runs]
                found[key] = radii, *(float(np.mean([terms[k] for _, terms, _ in runs]) * KCAL) for k in (1, 3))
                given.work.write_text(json.dumps(found, indent=1))
            radii, bend, electrostatic = found[key]
            mean, error = np.mean(radii), np.std(radii, ddof=1) / np.sqrt(len(radii))
            base = base or (mean, error)
            moved = None if name == "none" else {"value": float(mean - base[0]),
                                                 "error": float(np.hypot(error, base[1]))}
            table.row(1000 * salt, name, f"{PUBLISHED[salt][0]} ± {PUBLISHED[salt][1]}",
                      {"value": float(mean), "error": float(error)}, moved, float(np.mean(radii[1::2])),
                      float(np.mean(radii[::2])), bend, electrostatic)
            print(f"{1000 * salt:g} mmol/L, {name}: {mean:.1f} +- {error:.1f}", flush=True)


def main() -> None:
    """Run and report."""
    benchmark = Benchmark(__doc__)
    parser = benchmark.parser
    parser.add_argument("--salt", type=float, nargs="*", default=list(PUBLISHED))
    parser.add_argument("--sweeps", type=int, default=4000)
    parser.add_argument("--replicas", type=int, default=4, help="every second one begins extended")
    parser.add_argument("--hotter", type=float, nargs="*", default=[], help="ascending multiples of the temperature")
    parser.add_argument("--work", type=Path, default=Path("sun_2005.json"), help="runs by salt, read and added to")
    parser.add_argument("--tails", nargs="+", choices=["beads", "smeared"], default=["beads", "smeared"])
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--changes", action="store_true", help="one constant changed after another, tails as beads")
    parser.add_argument("--only", nargs="*", default=[], metavar="CHANGE",
                        help="--changes: these alone, in a table of their own (none: as it is)")
    parser.add_argument("--reference", type=Path, help=".npz with charges of the authors' group")
    given = benchmark.start(quick={"salt": [0.2], "tails": ["beads"], "sweeps": 40, "replicas": 2})
    if given.changes:
        try_changes(benchmark, given)
        benchmark.finish()
        return
    table = benchmark.table(
        "radius", "Twelve nucleosomes: radius of gyration (nm) and energies (kcal/mol) against salt, compared with "
        "Sun, Zhang & Schlick (2005)", **{
            "tails": "", "salt, mmol/L": ".0f", "radius of gyration: published": "",
            "radius of gyration: this model, standard deviation": ".1f", "error of the mean": ".1f",
            "bending energy: published": "", "bending energy: this model": ".0f",
            "electrostatic energy: published": "", "electrostatic energy: this model": ".0f", "CPU time, s": ".0f"})
    found = json.loads(given.work.read_text()) if given.work.exists() else {}
    for tails, salt in product(given.tails, given.salt):
        chain = with_field(published_chain(salt, tails))
        begun = time.process_time()
        begin = list(starts(chain).items())
        runs = [run(chain, begin[seed % 2][1], given.sweeps, seed + 1, given.hotter)
                for seed in range(given.replicas)]  # fmt: skip
        later = np.array([radius[len(radius) // 2 :] for radius, *_ in runs])
        halves = later.mean(axis=1)
        energy = np.mean([terms for _, terms, _ in runs], axis=0) * KCAL
        found[f"{tails} {salt:g}"] = {
            "radius": halves.mean(), "error": halves.std(ddof=1) / np.sqrt(len(halves)), "deviation": later.std(),
            "replicas": halves.tolist(), "begun": [[begin[k % 2][0], runs[k][0][0]] for k in range(len(runs))],
            "second_quarter": [np.mean(radius[len(radius) // 4 : len(radius) // 2]) for radius, *_ in runs],
            "stretch": energy[0], "bend": energy[1], "twist": energy[2], "electrostatic": energy[3],
            "excluded": energy[4], "sweeps": given.sweeps, "hotter": given.hotter,
            "exchanged": [accepted for *_, accepted in runs], "cpu": time.process_time() - begun,
            "series": [radius[:: max(1, len(radius) // 100)] for radius, *_ in runs],
        }  # fmt: skip
        given.work.write_text(json.dumps(found, indent=1))
        published = PUBLISHED[salt]
        one = found[f"{tails} {salt:g}"]
        print(f"replicas {np.round(halves, 1).tolist()}, second quarter {np.round(one['second_quarter'], 1).tolist()}")
        table.row(tails, 1000 * salt, f"{published[0]} ± {published[1]}",
                  {"value": float(one["radius"]), "error": float(one["deviation"])}, float(one["error"]), published[2],
                  float(one["bend"]), published[3], float(one["electrostatic"]), one["cpu"])
    benchmark.finish()
    if given.figure is not None:
        draw(found, given.figure)


def draw(found: dict, path: Path) -> None:
    """The figure."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5.5, 4), dpi=110)
    salts = sorted(PUBLISHED)
    axis.errorbar([1000 * s for s in salts], [PUBLISHED[s][0] for s in salts], [PUBLISHED[s][1] for s in salts],
                  fmt="s", color="k", mfc="none", capsize=3, label="Sun, Zhang & Schlick 2005")  # fmt: skip
    names = {"smeared": "charges on the envelope of the whole particle", "beads": "tails as beads"}
    for (tails, name), colour in zip(names.items(), ("tab:blue", "tab:orange"), strict=True):
        ours = sorted(float(key.split()[1]) for key in found if key.startswith(tails))
        radius, error = ([found[f"{tails} {s:g}"][key] for s in ours] for key in ("radius", "deviation"))
        if ours:
            axis.errorbar([1000 * s for s in ours], radius, error, fmt="o", color=colour, capsize=3, label=name)
    axis.set_xscale("log")
    axis.set_xlabel("monovalent salt, mmol/L")
    axis.set_ylabel("radius of gyration of 12 nucleosomes, nm")
    axis.set_ylim(0, None)
    axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    main()
