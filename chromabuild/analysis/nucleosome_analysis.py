"""Nucleosomes along a trajectory, as an analysis of MDAnalysis."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.spatial import cKDTree

from chromabuild.analysis.arm_measures import REACH, detached_arms, linker_histone_pose, residues_at
from chromabuild.analysis.frame_analysis import FrameAnalysis
from chromabuild.analysis.helix_shape import helix_axes, local_bends
from chromabuild.analysis.histones import HistoneChain, reference_fold
from chromabuild.analysis.nucleosome_measures import (
    BRIDGE,
    CATIONS,
    CONTACT,
    PATCH,
    PATCH_ATOMS,
    ChainStructure,
    dimer_shifts,
    hinge,
    phosphates_held,
    residues_near,
    tail_shape,
    tails_of,
    wrapping,
)
from chromabuild.analysis.nucleotides import PLACE, Pairs, helix_of
from chromabuild.analysis.whole_nucleosomes import SITES, Chains, Nucleosome, WholeNucleosomes, core_of

if TYPE_CHECKING:
    import MDAnalysis


class NucleosomeAnalysis(FrameAnalysis):
    """Unwrapping, sliding, gaping, splitting, contacts and tails of all nucleosomes of a universe.

    Nucleosomes are found in the frame that the universe shows when the analysis is made. Results with f frames, m
    nucleosomes, t tails (all nucleosomes, in the order of ``tails``) and c residues of histones (``chains`` in a row):

    - ``rmsd`` (f, m) and ``chain_rmsd`` (f, h): folds of the octamers, and of each of their h chains (``chains``) in
      its octamer, from 1KX5, angstrom; ``dimer`` (f, m, 2): ``dimer_shifts``, angstrom;
    - ``unwrapped`` (f, m, 2): base pairs detached at both ends; ``detached`` (f, m, 147): by site;
    - ``slid`` (f, m): base pairs; ``turned`` (f, m): degree; ``hinge`` (f, m, 3): degree, about y the gaping;
    - ``wrapped`` (f, m, 2): mean twist of the steps of the 147 sites, and their mean bend over a turn, degree;
    - ``patch`` (f, m, 2): arginines and lysines at the acidic patches, and those of H4 tails among them;
    - ``phosphate`` (f, m, 2, 147): whether the phosphate of each site on either strand is held by a histone;
    - ``arm`` (f, m, 2): of ten base pairs beyond either end of the path how many are off the path that they have on a
      linker histone in PDB 4QLC, NaN where the DNA ends; ``linker_histone`` (f, m, 3): residues of the linker histone
      that touch the entering arm, wrapped DNA and the leaving arm, NaN where there is none; ``pose`` (f, m, 3):
      ``linker_histone_pose``, angstrom, angstrom, degree;
    - ``tail`` (f, t, 2): end-to-end distance and radius of gyration, angstrom;
    - ``contact`` (f, c): whether a residue touches DNA; ``structure`` (f, c): 0 loop, 1 helix, 2 strand, -1 unknown;
    - ``alpha`` (f, c, 3): C-alpha atoms as seen from their own octamer, angstrom.

    Raises BadInputError where the universe has no DNA or no nucleosome.

    >>> import MDAnalysis
    >>> found = NucleosomeAnalysis(MDAnalysis.Universe("1kx5.pdb")).run()
    >>> found.results.unwrapped.tolist()
    [[[0, 0]]]
    """

    MEASURES: ClassVar[dict[str, type]] = {
        "rmsd": np.float32, "chain_rmsd": np.float32, "dimer": np.float32, "unwrapped": np.int32, "detached": bool,
        "slid": np.float32, "turned": np.float32, "hinge": np.float32, "wrapped": np.float32, "patch": np.int32,
        "phosphate": bool, "arm": np.float32, "linker_histone": np.float32, "pose": np.float32, "tail": np.float32,
        "contact": bool, "structure": np.int8, "alpha": np.float32}

    def __init__(self, universe: "MDAnalysis.Universe", whole: WholeNucleosomes | None = None,
                 verbose: bool = False) -> None:
        super().__init__(universe, verbose)
        self.whole = whole or WholeNucleosomes(universe)
        self.nucleosomes = self.whole.nucleosomes
        self.chains = [(k, chain) for k, nucleosome in enumerate(self.nucleosomes)
                       for _, chain in nucleosome.octamer.present]
        """Number of the nucleosome, and the chain."""
        self._crystal = [reference_fold().alpha[place][chain.crystal[chain.core] - 1]
                         for nucleosome in self.nucleosomes for place, chain in nucleosome.octamer.present]
        self.tails = [(k, tail) for k, nucleosome in enumerate(self.nucleosomes)
                      for tail in tails_of(nucleosome.octamer)]
        self._charges = _Charges(self.chains, universe.atoms.names)
        self._structure = ChainStructure([chain for _, chain in self.chains], universe.atoms.names,
                                         universe.residues.resnames)

    def measures(self, position: np.ndarray, box: np.ndarray | None) -> dict[str, np.ndarray]:
        """What is kept of one frame, from all atoms (n, 3) and the box of the universe."""
        whole = self.whole
        dna = whole.nucleotides.positions(position, box)
        chains = whole.chains(position, dna, box)
        origin, frame = whole.nucleotides.base_frames(dna)
        helices = [helix_of(pairs, origin, frame) for pairs in whole.nucleotides.duplexes]
        bends = [local_bends(helix_axes(helix.frame, pairs.closed), pairs.closed)
                 for helix, pairs in zip(helices, whole.nucleotides.duplexes, strict=True)]
        atoms = dna.reshape(-1, 3)
        dna_tree = cKDTree(atoms[np.isfinite(atoms[:, 0])])
        nitrogens = self._charges.nitrogens(chains.heavy)
        cores = [core_of(nucleosome.octamer, chains) for nucleosome in self.nucleosomes]
        found: dict[str, list] = {measure: [] for measure in self.MEASURES}
        for nucleosome, core in zip(self.nucleosomes, cores, strict=True):
            found["rmsd"].append(core.rmsd)
            found["dimer"].append(dimer_shifts(nucleosome.octamer, chains.alpha))
            sites = nucleosome.sites(whole.nucleotides)
            if nucleosome.duplex < 0:
                blank = {"detached": np.zeros(SITES, bool), "unwrapped": (0, 0), "slid": np.nan, "turned": np.nan,
                         "hinge": np.full(3, np.nan), "wrapped": np.full(2, np.nan),
                         "phosphate": np.zeros((2, SITES), bool), "arm": np.full(2, np.nan),
                         "linker_histone": np.full(3, np.nan), "pose": np.full(3, np.nan)}
                for measure, values in blank.items():
                    found[measure].append(values)
                continue
            pairs, helix = whole.nucleotides.duplexes[nucleosome.duplex], helices[nucleosome.duplex]
            seen = (helix.origin - core.origin) @ core.frame
            wrapped = wrapping(seen, helix.frame[:, :, 0] @ core.frame, sites, pairs.closed)
            found["detached"].append(wrapped.detached)
            found["unwrapped"].append(wrapped.unwrapped)
            found["slid"].append(wrapped.slid)
            found["turned"].append(wrapped.turned)
            found["hinge"].append(hinge(seen, sites))
            found["arm"].append(detached_arms(seen, nucleosome.dyad, pairs.closed))
            found["linker_histone"].append(self._touched(nucleosome, pairs, chains, dna))
            guest = nucleosome.linker_histone
            found["pose"].append(np.full(3, np.nan) if guest is None else linker_histone_pose(
                guest, (chains.alpha[id(guest)] - core.origin) @ core.frame))
            steps = sites[:-1][(sites[:-1] >= 0) & (sites[1:] >= 0)]
            found["wrapped"].append((helix.step[steps, 5].mean(), _mean(bends[nucleosome.duplex][steps])))
            rows = np.stack([pairs.first[sites], pairs.second[sites]])
            held = phosphates_held(dna[rows][:, :, [PLACE["OP1"], PLACE["OP2"]]], nitrogens)
            found["phosphate"].append(held & (sites >= 0))
        found["patch"] = self._charges.at_patches(chains.heavy, len(self.nucleosomes))
        for _, tail in self.tails:
            found["tail"].append(tail_shape(tail, chains.alpha[id(tail.chain)], chains.heavy[id(tail.chain)]))
        for (k, chain), crystal in zip(self.chains, self._crystal, strict=True):
            found["contact"].append(residues_near(chain, chains.heavy[id(chain)], dna_tree))
            alpha = (chains.alpha[id(chain)] - cores[k].origin) @ cores[k].frame
            found["alpha"].append(alpha)
            found["chain_rmsd"].append(np.sqrt(((alpha[chain.core] - crystal) ** 2).sum(axis=1).mean()))
        joined = {measure: np.concatenate(found[measure]) for measure in ("contact", "alpha")}
        joined["structure"] = self._structure(chains.heavy)
        return {measure: joined.get(measure, found[measure]) for measure in self.MEASURES}

    @staticmethod
    def _touched(nucleosome: Nucleosome, pairs: Pairs, chains: Chains, dna: np.ndarray) -> np.ndarray:
        """(3,) residues of the linker histone at the entering arm, at wrapped DNA and at the leaving arm."""
        chain, n = nucleosome.linker_histone, len(pairs.first)
        if chain is None:
            return np.full(3, np.nan)
        site = nucleosome.dyad + np.arange(-REACH, REACH + 1)
        site = np.unique(site % n) if pairs.closed else site[(site >= 0) & (site < n)]
        from_dyad = site - nucleosome.dyad
        if pairs.closed:
            from_dyad = (from_dyad + n // 2) % n - n // 2
        atoms = np.concatenate([dna[pairs.first[site]], dna[pairs.second[site]]])
        number = np.repeat(np.tile(from_dyad, 2), atoms.shape[1])
        flat = atoms.reshape(-1, 3)
        known = np.isfinite(flat[:, 0])
        return np.array(residues_at(chains.heavy[id(chain)], chain.heavy_residue, flat[known], number[known], CONTACT),
                        dtype=float)


def _mean(values: np.ndarray) -> float:
    """Of what is a number; NaN where nothing is."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


class _Charges:
    """Charged atoms of histones: places of nitrogens, cations and acids among the heavy atoms of each chain."""

    def __init__(self, chains: list[tuple[int, HistoneChain]], names: np.ndarray) -> None:
        self._chains = chains
        self._nitrogens, self._cations, self._acids = [], [], []
        for k, (nucleosome, chain) in enumerate(chains):
            here = names[chain.heavy].astype(str)
            self._nitrogens.append(np.flatnonzero(np.char.startswith(here, "N")))
            cations = np.flatnonzero(np.isin(here, CATIONS))
            residue = chain.heavy_residue[cations]
            is_core = np.isin(residue, chain.core)
            is_tail = (chain.number[residue] <= 23) & (chain.family == "H4")
            self._cations.append((cations, np.stack([np.full(len(cations), nucleosome), np.full(len(cations), k),
                                                     residue, is_core, is_tail], axis=1)))
            patch = np.isin(chain.crystal[chain.heavy_residue], PATCH.get(chain.family, ()))
            self._acids.append(np.flatnonzero(patch & np.isin(here, PATCH_ATOMS)))

    def nitrogens(self, heavy: dict[int, np.ndarray]) -> cKDTree:
        """All nitrogens of histones in a frame."""
        return cKDTree(np.concatenate([heavy[id(chain)][places] for (_, chain), places in
                                       zip(self._chains, self._nitrogens, strict=True)]))

    def at_patches(self, heavy: dict[int, np.ndarray], nucleosomes: int) -> np.ndarray:
        """(m, 2) arginines and lysines within ``BRIDGE`` of an acidic patch of each nucleosome, and those of H4 tails.

        The folds of the nucleosome itself are left out: they touch it always.
        """
        cations = np.concatenate([heavy[id(chain)][places] for (_, chain), (places, _) in
                                  zip(self._chains, self._cations, strict=True)])
        facts = np.concatenate([fact for _, fact in self._cations])
        tree, found = cKDTree(cations), np.zeros((nucleosomes, 2), dtype=int)
        near: list[set[int]] = [set() for _ in range(nucleosomes)]
        for (nucleosome, chain), places in zip(self._chains, self._acids, strict=True):
            for hits in tree.query_ball_point(heavy[id(chain)][places], BRIDGE):
                near[nucleosome].update(hits)
        for nucleosome, hits in enumerate(near):
            here = facts[sorted(hits)] if hits else facts[:0]
            here = here[(here[:, 0] != nucleosome) | (here[:, 3] == 0)]
            residues = np.unique(here[:, [1, 2, 4]], axis=0)
            found[nucleosome] = len(residues), residues[:, 2].sum()
        return found
