"""Locus files to scaffold.h5."""

from typing import TYPE_CHECKING

from chromabuild.base.errors import BadInputError, ClashesRemainError
from chromabuild.base.summary import Summary
from chromabuild.pipeline.stages.stage import Job, Stage

if TYPE_CHECKING:
    from chromabuild.base.settings import Settings
    from chromabuild.genome.locus import Locus
    from mesoscale.restraints import ContactEntry
    from mesoscale.scaffold import Scaffold

# Observables of the scaffold as summaries call them.
OBSERVABLE_NAMES = {
    "radius_of_gyration": "radius_of_gyration_nm", "end_to_end": "end_to_end_nm", "contacts": "core_contacts",
    "sedimentation_coefficient": "sedimentation_coefficient_svedberg", "triplet_angle": "triplet_angle_degree",
    "packing_ratio": "nucleosomes_per_11_nm", "energy_drift": "energy_drift_kbt", "energy_noise": "energy_noise_kbt",
    "energy_at_rest": "energy_at_rest",
    "contact_pattern": "core_pairs_within_12_nm", "joint_gap": "joint_gap_nm", "joint_turn": "joint_turn_degree",
    "truncation_bound": "truncation_bound_kbt_per_e",
    "squeezing_energy": "squeezing_energy_kbt_per_particle",
}  # fmt: skip


def run(job: Job) -> Summary:
    """Locus files to scaffold.h5. Raises ClashesRemainError when DNA and cores still overlap."""
    from chromabuild.api import fibre_of, fold, with_core_charges
    from chromabuild.genome.contact_map import write_contact_map
    from chromabuild.genome.locus import load_locus
    from chromabuild.nucleosome.linker_arms import held_arms

    locus = load_locus(job.config.locus, job.config.seed)
    scaffold = fold(locus, job.config, threads=job.threads, progress=job.progress,
                    trajectory=job.folder / "scaffold_trajectory.h5")
    fibre = fibre_of(locus, job.config)
    charges = with_core_charges(fibre, job.config)[1]
    scaffold.provenance = job.provenance | ({"core_charges": charges} if charges else {})
    scaffold.write(job.folder / "scaffold.h5")
    write_contact_map(scaffold.contact_map, scaffold.contact_resolution, scaffold.chromosome, locus.start, job.folder)
    if scaffold.floor_violations:
        raise ClashesRemainError(f"{scaffold.floor_violations} pairs of DNA and cores overlap in the folded fibre, by "
                                 f"up to {scaffold.deepest_violation:.3f} nm: try another --seed, more room "
                                 "(scaffold.container, confinement_radius) or longer linkers (locus.minimum_linker)")
    return locus.summary() | (_linking(scaffold, fibre.linking_number, job.threads) if scaffold.circular else {}) | {
        "sweeps": job.config.scaffold.sweeps,
        "linker_histones": sum(fibre.linker_histone),
        **({"linker_arms_held": arms} if (arms := held_arms(fibre)) else {}),
        "acetylated_nucleosomes": sum(fibre.acetylated),
        "restraints": sum(contact["kept"] is not None for contact in scaffold.contacts),
        "restraints_kept": sum(bool(contact["kept"]) for contact in scaffold.contacts),
        **{OBSERVABLE_NAMES[name]: _SHOWN.get(name, lambda value: value)(value)
           for name, value in scaffold.observables.items()},
        "core_charges": charges, "contact_distances": _as_given(scaffold.contacts, locus)}


def _as_given(contacts: list["ContactEntry"], locus: "Locus") -> list["ContactEntry"]:
    """Contacts counted from the first base pair of the input, before which a circle may begin."""
    from chromabuild.genome.circle import given_interval

    if not locus.turn:
        return contacts
    return [one | {key: list(given_interval(one[key], 0, locus.turn, len(locus.sequence)))
                   for key in ("first", "second")} for one in contacts]


def _linking(scaffold: "Scaffold", wanted: int | None, threads: int) -> Summary:
    """How often the strands of a circle turn about each other, how often those of bare DNA would at rest, the
    superhelical density, and with nucleosomes the turns by which linkers are overwound.

    Raises BadInputError for a knot, and where squeezing has led DNA through DNA.
    """
    from chromabuild.dna.curve import TWIST
    from chromabuild.dna.knot import knot_determinant
    from chromabuild.dna.linking import twist, writhe

    number = round(twist(scaffold.origin, scaffold.frame, closed=True) + writhe(scaffold.origin, True, threads))
    relaxed = len(scaffold.base) * TWIST / 360.0
    told = {"linking_number": number, "relaxed_turns": round(relaxed, 2),
            "superhelical_density": round((number - relaxed) / relaxed, 4) + 0.0}
    if not scaffold.linkers:  # it is laid flat
        return told
    if (knot := knot_determinant(scaffold.origin)) != 1 or wanted not in (None, number):
        found = f"a linking number of {number}" if knot == 1 else f"a knot (determinant {knot})"
        raise BadInputError(f"the circle is folded to {found}: try another --seed, or more room (scaffold.packing: "
                            "free, choose: last)")
    if not len(scaffold.dyad) and scaffold.proteins is None:
        return told
    each = {"linking_difference_a_nucleosome": round((number - relaxed) / len(scaffold.dyad), 2)} if len(
        scaffold.dyad) else {}
    return told | {"linking_difference": round(number - relaxed, 2), **each,
                   "linker_overwinding_turns": round(sum(one["twist_excess"] for one in scaffold.linkers) / 360.0, 3)}


def _at_rest(rest: bool) -> str:
    """Whether sampling may end here."""
    return "yes" if rest else "no: sample longer (scaffold.sweeps)"


def _by_distance(shares: list[float]) -> dict[str, float]:
    """Shares of pairs, named by how far apart along the fibre they are."""
    return {f"i+{k}": round(share, 3) for k, share in enumerate(shares, start=1)}


_SHOWN = {"contact_pattern": _by_distance, "energy_at_rest": _at_rest}


def _of_charges(config: "Settings") -> tuple[str, ...]:
    """Fitted charges are those of what the nucleosomes carry; nothing else in the fold asks for it."""
    return (("build.histones", "build.variants", "build.template", "build.ph", "build.track_mark",
             "build.track_threshold") if config.scaffold.core_charges == "fitted" else ())


STAGE = Stage("scaffold", "mesoscale scaffold",
              ("locus", "scaffold", "build.linker_histone", "build.linker_histone_share", "build.linker_arms",
               "build.marks",
               "build.structures"),
              ("scaffold.h5", "contact_map.npz", "contact_map.cool"), run,
              companions=("scaffold_trajectory.h5",),
              files=("locus.fasta", "locus.nucleosomes", "locus.chromosome_names", "locus.contacts", "locus.proteins",
                     "locus.missing_dimers", "scaffold.acetylated", "scaffold.contact_energies", "build.marks",
                     "build.structures"),
              settings_of=_of_charges)
