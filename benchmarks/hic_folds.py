"""What folds down to the base pair keep of the polymer that they follow: distances, contacts, slope.

    python benchmarks/hic_agreement.py --table energies.bedpe --without 0
    chromabuild scaffold --seed 1 --set scaffold.contact_energies=energies.bedpe --set scaffold.confinement_radius=190
    python benchmarks/hic_folds.py energies.bedpe results/scaffold.h5 [scaffold.h5 of other seeds ...]

Contacts of a few folds are few, and their distances are compared. Of coarse paths, with a node for each nucleosome, as
every fold begins with, there are enough to compare contacts within 25 nm with the Hi-C map as well, at pixels that the
energies know and at the part that --without of hic_agreement.py left out.
"""

from dataclasses import replace

import numpy as np
from common.command import Benchmark
from common.hic_scores import pearson, slope, stratum_adjusted
from hic_agreement import CONFIG, HIC, NEAR, ensemble, parts_of

from chromabuild.analysis.contact_statistics import by_distance
from chromabuild.base.settings import load_config
from chromabuild.genome.circle import separation
from chromabuild.genome.contact_energies import read_contact_energies
from chromabuild.genome.contact_targets import BinnedCounts, read_counts, visibilities
from chromabuild.genome.locus import load_locus
from mesoscale.binned_polymer import BinnedPolymer, contact_frequencies, drawn_guide
from mesoscale.model import Chain, Parameters, build_chain
from mesoscale.observables import contact_map
from mesoscale.polymer import coarse_path, nodes_of
from mesoscale.scaffold import Scaffold

NM = 10.0  # angstrom


def distances(place: np.ndarray) -> np.ndarray:
    """Root mean square distance (n, n) of bins in conformations (s, n, 3)."""
    square = np.zeros(place.shape[1:2] * 2)
    for one in place:
        square += ((one[:, None] - one[None]) ** 2).sum(axis=2)
    return np.sqrt(square / len(place))


def paths_in_bins(chain: Chain, start: int, counts: BinnedCounts, paths: int) -> tuple[np.ndarray, np.ndarray]:
    """Contacts within 25 nm (paths, n, n) of nodes of coarse paths, and places (paths, n, 3) of the nodes nearest to
    the middles of the bins."""
    nodes, places = nodes_of(chain), []
    for k in range(paths):
        random = np.random.Generator(np.random.Philox(key=[k, 1]))
        places.append(coarse_path(chain, nodes, random, drawn_guide(chain, random)))
    bp = chain.bp[nodes] + start - counts.start
    bins = len(counts.count)
    inside = (bp >= 0) & (bp < bins * counts.size)
    mapped = [contact_map(bp[inside], [place[inside]], bins, counts.size) for place in places]
    middle = [int(np.argmin(np.abs(bp - one))) for one in counts.middle - counts.start]
    return np.array(mapped, float), np.stack(places)[:, middle]


def main() -> None:
    """Compare."""
    benchmark = Benchmark(__doc__)
    add = benchmark.parser.add_argument
    add("table", help="energies that the folds have")
    add("scaffolds", nargs="+")
    add("--radius", type=float, default=190.0, help="nm, of their confining sphere")
    add("--samples", type=int, default=19200, help="conformations of the polymer")
    add("--paths", type=int, default=300, help="coarse paths")
    add("--without", type=int, default=0, help="part of the pixels that the energies do not know")
    add("--seed", type=int, default=1)
    given = benchmark.start(quick={"samples": 640, "paths": 4})
    fibre = load_locus(load_config(CONFIG).locus).fibre()
    counts = read_counts(HIC, fibre.chromosome, fibre.start, fibre.start + len(fibre.sequence))
    parameters = Parameters(confinement_radius=given.radius, core_charges="formal")
    chain = build_chain(fibre, parameters)
    entries = read_contact_energies(given.table, fibre.chromosome, fibre.start, len(fibre.sequence))
    pair = (np.array([(one.first[0], one.second[0]) for one in entries]) + fibre.start - counts.start) // counts.size
    polymer = BinnedPolymer.of(chain, counts.middle - fibre.start)
    polymer = polymer.with_energies(pair, np.array([one.energy for one in entries]))
    samples = ensemble(polymer, given.samples, given.seed)
    folds = [Scaffold.read(path) for path in given.scaffolds]
    middle = np.rint(counts.middle).astype(int) - fibre.start
    place = np.stack([fold.origin[middle] / NM for fold in folds])
    far, model = distances(place), distances(samples[:: max(1, len(samples) // 2000)])
    upper = np.triu_indices(len(middle), 1)
    random = np.random.default_rng(given.seed)
    few = [distances(samples[random.choice(len(samples), len(folds), replace=False)]) for _ in range(20)]

    table = benchmark.table("folds", f"{len(folds)} folds down to the base pair, and the polymer that they follow",
                            quantity="", folds=".3g", **{"as many polymers": ".3g", "polymer": ".3g"})
    for k in (1, 2, 5, 10, 20, 35):
        table.row(f"root mean square distance at {k * counts.size // 1000} kb, nm",
                  *(float(np.sqrt(np.mean([np.diagonal(one**2, k).mean() for one in maps])))
                    for maps in ([far], few, [model])))
    table.row("correlation of the distances of all bins with the polymer's",
              float(np.corrcoef(far[upper], model[upper])[0, 1]),
              float(np.mean([np.corrcoef(one[upper], model[upper])[0, 1] for one in few])), 1.0)
    made = contact_frequencies(samples)
    table.row("frequency of a contact of bins, 4 to 20 kb", float(by_distance(contact_frequencies(place))[2:11].mean()),
              None, float(by_distance(made)[2:11].mean()))
    table.row("pairs of DNA and cores that overlap", float(np.mean([fold.floor_violations for fold in folds])), None,
              None)
    table.row("loops of the locus closed in a fold, of 7", float(np.mean([
        sum(bool(contact["kept"]) for contact in fold.contacts) for fold in folds])), None, None)

    whole = build_chain(replace(fibre, contact_energies=entries), parameters)
    of_paths, nodes = paths_in_bins(whole, fibre.start, counts, given.paths)
    mapped = of_paths.sum(axis=0)
    drawn = [slope(of_paths[random.integers(0, given.paths, given.paths)].sum(axis=0), 2, 10) for _ in range(100)]
    left_out = parts_of("random", len(middle), given.seed) == given.without
    visible, _ = visibilities(counts.count, ~left_out)
    weight = np.outer(visible, visible)
    near = separation(len(middle)) <= NEAR
    paths = benchmark.table("paths", f"{given.paths} coarse paths with a node for each nucleosome, and the polymer",
                            quantity="", **{"coarse paths": ".3g", "polymer": ".3g"})
    paths.row("slope of contacts, 4 to 20 kb", {"value": slope(mapped, 2, 10), "error": float(np.std(drawn))},
              slope(made, 2, 10))
    paths.row("frequency of a contact of bins, 4 to 20 kb",
              *(float(by_distance(one)[2:11].mean()) for one in (contact_frequencies(nodes), made)))
    for name, scored in (("known", ~left_out), ("left out", left_out)):
        for pairs, which in (("all pairs", scored), ("up to 20 kb", scored & near)):
            for measure, function in (("Pearson", pearson), ("SCC", stratum_adjusted)):
                paths.row(f"{measure} with the counts, pixels {name}, {pairs}",
                          *(function(one * weight, counts.count, which) for one in (mapped, made)))
    benchmark.finish()


if __name__ == "__main__":
    main()
