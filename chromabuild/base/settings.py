"""locus.yaml: one file describes a build. Each section belongs to one stage; every default is stated here, with its unit."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Discriminator, Field, Tag, ValidationError

from chromabuild.base.duration import DURATION
from chromabuild.base.errors import BadInputError
from chromabuild.base.files import file_names
from chromabuild.base.force_fields import FORCE_FIELDS, Cutoffs, ForceFieldName, SwitchForm, WaterName
from chromabuild.base.launchers import launcher_problem
from chromabuild.base.phases import Length, Phase, check_phases, shipped_phases
from chromabuild.base.section import Positive, Section

_TO_PHASE = "give it to a phase of simulate.phases, or choose a simulate.protocol"
MOVED_KEYS = {
    "dynamics.minimise_steps": "give steps to a phase of kind minimise in simulate.phases, or choose a simulate.protocol",
    **{f"dynamics.{key}": _TO_PHASE for key in ("steps", "timestep", "hydrogen_mass_factor", "ensemble")},
    **{f"dynamics.{key}": f"set simulate.{key}, or give it to a phase of simulate.phases"
       for key in ("temperature", "pressure", "output_period", "trajectory_period")},
}
"""Keys of older files, and where each belongs now."""
INPUT_FILE = {"format": "path"}
"""Marks a setting that names a file of the user's; ``input_files`` finds them by it."""


class LocusSection(Section):
    """What is built."""

    name: str = Field("locus", description="name of the locus, used in titles")
    fasta: str = Field("locus.fa", json_schema_extra=INPUT_FILE, description="FASTA file, plain or gz, of the locus or of a genome")
    record: str | None = Field(None, description="FASTA record; empty: the only one")
    region: str | None = Field(None, description="place of the locus, e.g. chrIV:433,501-441,500 (first and last base, from 1); it is cut from a genome's files, and what lies elsewhere is left out; empty: the record is the locus")
    chromosome_names: str | None = Field(None, json_schema_extra=INPUT_FILE, description="table of chromosome names, a line a chromosome with all its names, as in UCSC's chromAlias.txt: files may use any of them; empty: names that differ by `chr` or capitals are one")
    start: int | None = Field(None, ge=0, description="first base of the locus in the coordinates of BED and BEDPE, 0-based; empty: read from the FASTA header (name:start-end, 1-based) or 0")
    nucleosomes: str | None = Field("nucleosomes.bed", json_schema_extra=INPUT_FILE, description="BED of dyads (1 bp) or nucleosomes (their middle is the dyad), or narrowPeak (the summit is); empty: none, DNA alone")
    contacts: str | None = Field(None, json_schema_extra=INPUT_FILE, description="BEDPE of contacts, or .cool/.mcool/.hic; empty: none")
    proteins: str | None = Field(None, json_schema_extra=INPUT_FILE, description="BED of other proteins on the DNA: the interval is the footprint, column 4 names the structure in build.structures, column 6 is the strand; empty: none")
    wrapped_length: int = Field(147, ge=101, le=147, description="bp wrapped on a core, where `wrapping` does not say otherwise")
    wrapping: Literal["uniform", "width", "thick"] = Field("uniform", description="what is wrapped: wrapped_length on every core; the BED interval, e.g. an MNase fragment, cut to 147; or columns 7 and 8 of BED (thickStart, thickEnd), which may be asymmetric about the dyad and, of nucleosomes with a linker histone, reach 83 bp to either side")
    missing_dimers: str | None = Field(None, json_schema_extra=INPUT_FILE, description="BED of hexasomes and tetrasomes: nucleosomes whose dyad lies inside lack the H2A-H2B dimer that column 4 names (proximal: on the side of lower positions, of higher ones where column 6 is -; distal; or both), and the DNA that it holds is unwrapped; empty: none")
    minimum_linker: int = Field(10, ge=0, description="bp left between neighbouring cores when dyads are too close")
    circular: bool = Field(False, description="whether the sequence is closed to a circle, such as a plasmid or a minichromosome; intervals of input files across base pair 1 end beyond its last one")
    linking_number: int | None = Field(None, ge=1, description="turns of one strand of a circle about the other; empty: the nearest to relaxed DNA, with nucleosomes or other proteins that whose linkers are nearest to rest")
    overlaps: Literal["shift", "best-score", "draw", "error"] = Field("shift", description="what to do with dyads that are too close: least-squares shift, best-scoring subset, one of the alternatives drawn by the seed in proportion to their scores, or refuse")

    @property
    def is_bare_circle(self) -> bool:
        """Whether it is closed DNA alone."""
        return self.circular and self.nucleosomes is None and self.proteins is None


class ScaffoldSection(Section):
    """The mesoscale model."""

    temperature: Positive = Field(293.15, description="kelvin")
    salt: float = Field(0.15, ge=0.01, le=0.2, description="monovalent salt, mol/L, from 0.01 to 0.2")
    core_charges: Literal["fitted", "formal"] = Field("fitted", description="charges of the core: 300 sites fitted to the Poisson-Boltzmann field of its own histones, or a third as many formal charges, for large loci: sampling is many times faster")
    tails: Literal["rigid", "flexible"] = Field("rigid", description="histone tails while the fibre moves: at rest on their cores, or chains of beads sampled with it, which linker histones and acetylation act through (with fitted charges only)")
    acetylated: str | None = Field(None, json_schema_extra=INPUT_FILE, description="BED or narrowPeak of acetylated stretches: tails of nucleosomes whose dyad lies inside are the stiff ones of acetylation; empty: none")
    magnesium: bool = Field(False, description="the published treatment of Mg2+: linkers repel each other over 0.4 nm only and bend more easily")
    replicas: int = Field(1, ge=1, description="folds that share the contacts by frequency, the strongest in all, the weakest in one of them; 1: one fold that keeps all")
    replica: int = Field(1, ge=1, description="which of the replicas this is")
    contact_energies: str | None = Field(None, json_schema_extra=INPUT_FILE, description="table of contacts with their frequencies and energies (`chromabuild contact-energies` writes it): each fold is drawn from the ensemble that has them; contacts of the locus then restrain nothing; empty: none")
    hotter: tuple[Annotated[float, Field(gt=1)], ...] = Field((), description="parallel tempering: ascending temperatures of further walks, multiples of `temperature`, e.g. [1.05, 1.1]; with rigid tails only")
    sweeps: int = Field(2000, ge=1, le=1_000_000_000, description="Monte Carlo sweeps (one trial a particle); from 100 on up to twice as many, until the energy is at rest")
    confinement_radius: Positive | None = Field(None, description="nm; a soft sphere around the fibre; empty: none")
    container: tuple[Positive, Positive, Positive] | None = Field(None, description="nm; full edges of a box with soft walls around the fibre; empty: none")
    packing: Literal["compact", "free"] = Field("compact", description="without `confinement_radius`, `container`, `contact_energies` and `choose: smallest-box`; compact: soft walls, of two nucleosomes and more those of a cube in which DNA is as dense as in metaphase chromosomes (6.5 nm3 a base pair), of DNA alone longer than 50 nm those of a channel of 2 nm; free: no walls, a loose coil in many times more water")
    choose: Literal["last", "smallest-box"] = Field("last", description="which conformation is built: the last one sampled, or the best of several that were annealed under pressure into a small box")

    @property
    def says_how_to_fold(self) -> bool:
        """Whether something else than `packing` says what room there is.

        Energies of contacts are those of an ensemble in the sphere that they were fitted in, or in none.
        """
        return bool(self.container or self.confinement_radius or self.contact_energies
                    or self.choose == "smallest-box")

    @property
    def is_packed(self) -> bool:
        """Whether a fibre that would be a loose coil gets the walls of `packing`: where nothing else gives it room."""
        return self.packing == "compact" and not self.says_how_to_fold


class EnsembleSection(Section):
    """Many folds of the locus (`chromabuild ensemble`), and what they are compared with."""

    folds: int = Field(8, ge=2, le=9999, description="folds, or the most of them with `until_converged`; contacts are shared out to them by frequency")
    rounds: int = Field(1, ge=1, le=99, description="rounds of folds; from 2 on all folds have all contacts, and after each round but the last the energies of contacts are changed towards the frequencies that they shall have")
    until_converged: bool = Field(False, description="whether no more folds are made once the reliability of the mean contact map has come to `reliability`")
    reliability: float = Field(0.9, gt=0, lt=1, description="correlation, from split halves, that the mean distance-normalised map is to have with that of as many other folds")
    map: str | None = Field(None, json_schema_extra=INPUT_FILE, description="contact map that the folds are compared with: .cool, .mcool, .hic, or BEDPE with a count a pixel; empty: locus.contacts where that is a matrix, else none")
    bin: int | None = Field(None, ge=50, description="bp a bin of the comparison; empty: 2000, of a locus below 40 kb a twentieth of it")
    slope_from: int = Field(4000, ge=1, description="bp; contacts against distance are fitted from here")
    slope_to: int = Field(20000, ge=1, description="bp; to here")
    hold_out: float = Field(0.0, ge=0, lt=1, description="share of the pixels of the comparison, drawn by the seed, whose contacts restrain no fold: agreement there is a prediction")


class BuildSection(Section):
    """The all-atom solute."""

    nucleosome_path: Literal["crystal", "superhelix"] = Field("crystal", description="crystal frames of 1KX5 or of build.template, or a regular superhelix: by default the 28 A / 106 A one of jcc.25840")
    template: str | None = Field(None, json_schema_extra=INPUT_FILE, description="nucleosome template file of your own (`chromabuild template add`): its DNA path and histones instead of those of 1KX5; empty: none")
    structures: str | tuple[str, ...] | None = Field(None, json_schema_extra=INPUT_FILE, description="structures (PDB or mmCIF) of the proteins of locus.proteins, each with its DNA, in files that are named for them, e.g. [TBP.cif, CTCF.pdb]; empty: none")
    superhelix_pitch: float = Field(28.0, ge=20, le=60, description="angstrom a turn of the superhelix")
    superhelix_outer_diameter: float = Field(106.0, ge=80, le=160, description="angstrom, of the outer surface of superhelical DNA; its axis lies 10 A further in")
    superhelix_rise: float = Field(3.4, ge=3.2, le=3.6, description="angstrom along the superhelix from one base pair to the next")
    steps: Literal["sequence", "generic"] = Field("sequence", description="rest and stiffness of linker steps: of each dinucleotide (Olson 1998), or straight B-DNA everywhere")
    linker_phase_limit: Positive = Field(5.0, description="kT; linkers whose twist does not fit and costs more are offered a shift by one base pair in the report")
    histones: Literal["xenopus", "human", "mouse", "fly", "yeast"] = Field("xenopus", description="species of the histones: those of PDB 1KX5, or modelled on it")
    variants: tuple[str, ...] = Field((), description="histone variants, modifications and mutations on every nucleosome, e.g. [H2A.Z, H3K27ac, 'H3:K56Q']")
    marks: str | tuple[str, ...] | None = Field(None, json_schema_extra=INPUT_FILE, description="what nucleosomes carry by place, in one file or a list: BED (column 4 names a variant, modification, mutation or linker histone, column 5 scores it), peaks of the mark that their file is named for (H3K27ac.narrowPeak), or a bigWig signal; nucleosomes whose dyad lies inside carry it; empty: none")
    track_mark: str | None = Field(None, description="what nucleosomes carry in peaks, and where a bigWig signal is high, of files in `marks` that are not named for a mark, e.g. H2A.Z")
    track_threshold: float | None = Field(None, description="mean of a bigWig signal over the 147 base pairs around a dyad (zero where there is none) from which on a nucleosome carries the mark")
    methylation: str | None = Field(None, json_schema_extra=INPUT_FILE, description="bedMethyl (column 11: percent of reads) or BED of modified cytosines by place and strand: 5mC, 5hmC, 5fC; empty: none")
    five_prime: Literal["hydroxyl", "phosphate"] = Field("hydroxyl", description="what the 5' ends of linear DNA carry, a hydroxyl or a phosphate (of charge -1, with its hydrogen)")
    three_prime: Literal["hydroxyl", "phosphate"] = Field("hydroxyl", description="what the 3' ends of linear DNA carry; a phosphate (of charge -1, with its hydrogen) where the force field has it: charmm36m")
    methylation_threshold: float | None = Field(None, gt=0, le=1, description="fraction of reads from which on a cytosine is modified; empty: drawn by the seed with the fraction as probability, both strands of a CpG alike")
    ph: float | None = Field(None, ge=0, le=14, description="pH at which histidines of histones are protonated by their pKa (needs the package propka); empty: neutral, tautomers by hydrogen bonds")
    linker_histone: Literal["none", "H5", "H1.0", "H1.4"] = Field("none", description="linker histone on the dyad: chicken H5 (residues 19-108), human H1.0 or human H1.4")
    linker_histone_share: float = Field(1.0, ge=0, le=1, description="share of the nucleosomes that carry it, drawn by the seed")
    linker_arms: Literal["free", "held"] = Field("free", description="the ten base pairs on either side of a nucleosome with a linker histone: linker DNA that may go anywhere, or held on their path in PDB 4QLC as part of the core; `locus.wrapping: thick` says it for each nucleosome")
    tails: Literal["compact", "crystal", "scaffold"] = Field("compact", description="histone tails lying on their own nucleosome, as in solution; as in 1KX5, stretched out by crystal packing: a much larger box; or following the tail beads of the scaffold")


class RefineSection(Section):
    """Dynamics of the built solute as beads, three a nucleotide and one an amino acid, before clashes are corrected."""

    enabled: bool = Field(False, description="whether the built solute moves as beads and is laid back on them: a fold from the mesoscale model settles at the resolution of residues")
    minimise_steps: int = Field(2000, ge=1, description="steps of minimisation before dynamics, and again after it, so that atoms are laid on beads without thermal noise")
    length: Length | None = Field("100 ps", description="Langevin dynamics at simulate.temperature, with its unit; empty: minimisation alone")
    timestep: float = Field(10.0, gt=0, le=20, description="fs")
    friction: Positive = Field(1.0, description="of Langevin dynamics, 1/ps")
    cutoff: float = Field(30.0, ge=15, le=100, description="angstrom; charges, which salt screens as section solvate says, are shifted to no force and energy there")


class ClashSection(Section):
    """Clash detection and correction."""

    mode: Literal["default", "paper"] = Field("default", description="paper: exactly the phi/chi rotations of jcc.25840")
    threshold: Positive = Field(0.9, description="angstrom; non-bonded pairs closer than this are clashes")


class RelaxSection(Section):
    """Minimisation and short dynamics of the solute alone, its charges in implicit solvent, before water is added."""

    enabled: bool = Field(False, description="whether the chain has this stage: for solutes of millions of atoms; smaller ones relax as well, and faster, in their water")
    minimise_steps: int = Field(300, ge=1, description="steps of minimisation")
    length: Length | None = Field("1 ps", description="Langevin dynamics after that, from 50 K to simulate.temperature, with its unit; empty: none")
    restraint: float = Field(1.0, ge=0, description="kcal/mol/angstrom^2 on heavy atoms when dynamics begins; it falls linearly to zero; 0: none")
    dielectric: float = Field(4.0, ge=1, description="relative permittivity, or its slope an angstrom")
    dielectric_form: Literal["distance", "constant"] = Field("distance", description="permittivity that grows with the distance of two charges, as between atoms of one molecule, or the same everywhere (water: 78)")
    cutoff: float = Field(8.0, ge=6, description="angstrom; Lennard-Jones is switched off over the last 2, charges are shifted to no force and energy there; salt screens them as that of section solvate does")


Concentration = Annotated[float, Field(ge=0, le=6)]
"""mol/L; chlorides of sodium, potassium, magnesium and calcium dissolve up to 4 to 6."""




SHAPE, EDGES = "shape", "edges"
Box = Annotated[Annotated[Literal["dodecahedron", "octahedron"], Tag(SHAPE)]
                | Annotated[tuple[Positive, Positive, Positive], Tag(EDGES)],
                Discriminator(lambda value: SHAPE if isinstance(value, str) else EDGES)]


class SolvateSection(Section):
    """Water, ions and bricks."""

    padding: Annotated[float, Field(gt=0, le=1000)] = Field(10.0, description="angstrom between solute and box face, half of what lies between the solute and its periodic images at least")
    box: Box | None = Field(None, description="box edges, angstrom; or dodecahedron (rhombic) or octahedron (truncated): shapes with 71 % and 77 % of the volume of the cube whose images are as far apart, as large as solute and padding need; empty: rectangular, solute extent + padding")
    water: WaterName = Field("tip3p", description="water model: tip3p and spce have three points, opc and tip4pew four; the ions' parameters are those made for it")
    salt: Concentration = Field(0.15, description="NaCl beyond neutrality, mol/L")
    potassium_chloride: Concentration = Field(0.0, description="KCl beyond neutrality, mol/L")
    magnesium_chloride: Concentration = Field(0.0, description="MgCl2 beyond neutrality, mol/L")
    calcium_chloride: Concentration = Field(0.0, description="CaCl2 beyond neutrality, mol/L")
    counterion: Literal["sodium", "potassium", "magnesium", "calcium"] = Field("sodium", description="what neutralises a negative solute (a positive one: chloride)")
    ion_placement: Literal["uniform", "debye-hueckel"] = Field("uniform", description="ions anywhere in the water, or drawn with the weight of the solute's Debye-Hueckel potential: cations near DNA")
    magnesium_hexahydrates: float = Field(0.0, ge=0, le=1, description="Mg(H2O)6 for each phosphate of the DNA: octahedra of six waters that are bound to its free oxygens (outer sphere), beside the magnesium of magnesium_chloride and counterion, which is placed like all ions")
    spermine: float = Field(0.0, ge=0, le=1, description="spermine (+4) for each phosphate of the DNA, placed beside it; with force fields that describe it by analogy")
    spermidine: float = Field(0.0, ge=0, le=1, description="spermidine (+3) for each phosphate of the DNA, in the same way")
    brick_edge: float = Field(100.0, ge=15, le=200, description="target edge of a brick (one shard), angstrom")
    compress: bool = Field(True, description="write .pdb.zst instead of .pdb")

    @property
    def shape(self) -> Literal["rectangular", "dodecahedron", "octahedron"]:
        """Of the box."""
        return self.box if isinstance(self.box, str) else "rectangular"

    @property
    def edges(self) -> tuple[float, float, float] | None:
        """Of the box where they are given."""
        return None if isinstance(self.box, str) else self.box


class DynamicsSection(Section):
    """How forces are computed and atoms moved, in every phase of a simulation."""

    engine: Literal["chromamd", "openmm"] = Field("chromamd", description="chromamd: our MPI engine; openmm: OpenMM, on a GPU where there is one")
    platform: Literal["auto", "CUDA", "HIP", "OpenCL", "CPU", "Reference"] = Field("auto", description="of engine openmm; auto: the fastest that finds a device")
    platform_precision: Literal["mixed", "single", "double"] = Field("mixed", description="of engine openmm on a GPU")
    devices: Annotated[str, Field(pattern=r"^[0-9]*(,[0-9]+)*$")] = Field("", description="GPUs of engine openmm by number, such as `0` or `0,1`; empty: OpenMM's choice")
    force_field: ForceFieldName = Field("amber14", description="amber14: ff14SB + OL15; amber-bsc1: ff14SB + bsc1; amber19: ff19SB + OL21; charmm36m: CHARMM36m, CHARMM36 and CHARMM's water; charmm36m-analogy: the same, and parameters by analogy for methylated lysine and arginine, crotonyl-lysine and polyamines; amber14-analogy, amber-bsc1-analogy, amber19-analogy: those of AMBER, and parameters by analogy for ubiquitinated lysine, polyamines and bonds of zinc")
    force_field_files: tuple[str, ...] = Field((), json_schema_extra=INPUT_FILE, description="OpenMM force-field files (XML) of your own, read after those of `force_field`")
    cutoff: float | None = Field(None, ge=6, description="angstrom, real-space electrostatics and Lennard-Jones; empty: what the force field was made with, 9 (amber) or 12 (charmm36m)")
    switch_distance: Positive | None = Field(None, description="angstrom, where Lennard-Jones begins to be switched off; the cutoff: plain truncation; empty: plain truncation (amber) or 2 before the cutoff (charmm36m)")
    switch: SwitchForm | None = Field(None, description="what is switched off: energy or force of Lennard-Jones; empty: energy (amber) or force (charmm36m)")
    dispersion_correction: bool | None = Field(None, description="whether energy and pressure of Lennard-Jones beyond the cutoff count, as of a uniform density; empty: as the force field was made, true (amber) or false (charmm36m, and where the force is switched off)")
    pairlist_buffer: Positive = Field(1.5, description="angstrom, reach of the pair list beyond the cutoff")
    pme_spline_order: int = Field(4, ge=4, le=10, description="order of the B-splines of PME")
    pme_spacing: float = Field(1.2, ge=0.25, le=2, description="angstrom, widest spacing of the PME grid")
    thermostat: Literal["bussi", "nose-hoover", "langevin", "berendsen"] = Field("bussi", description="bussi: stochastic velocity rescaling (engine openmm: always langevin)")
    thermostat_time: Positive | None = Field(None, description="ps, relaxation time of the temperature, of langevin (and so of engine openmm) the inverse of its friction; empty: 0.1, of langevin 1")
    barostat_time: Positive = Field(2.0, description="ps, relaxation time of the pressure (engine openmm: Monte Carlo moves instead)")
    deterministic: bool = Field(False, description="the same bits on any number of ranks and threads; slower (engine openmm: on the same machine and platform, on one thread of a CPU)")
    trajectory_selection: Literal["auto", "all", "solute", "solute-and-ions"] = Field("auto", description="atoms of the trajectory and of topology.psf; auto: all below a million, from there on solute and ions")
    checkpoint: Annotated[str, Field(pattern=DURATION)] = Field("15 min", description="wall-clock time between checkpoints, e.g. 90 s, 15 min, 1 h: a run that is killed goes on from the last one; 0 min: only when asked to stop")
    max_force: float = Field(10000.0, ge=0, description="kcal/mol/angstrom: dynamics of engine chromamd ends where the force on an atom is larger; 0: off, as for all `max_` keys")
    max_temperature: float | None = Field(None, ge=0, description="kelvin: it ends where solute or solvent is hotter; empty: three times what the thermostat is set to, and chance")
    max_drift: float = Field(1.0, ge=0, description="kT/ps/atom: it ends where the conserved energy drifts faster, over a ps or more")
    max_volume_ratio: float = Field(2.0, ge=0, description="it ends where the box has become so many times larger or smaller in the course of a phase")
    ranks: int = Field(1, ge=1, description="MPI ranks")
    tune: bool = Field(False, description="engine chromamd: ranks (unless there are several), threads, ranks for reciprocal space, FFT scheme, overlap and load balance are tried out at the start of a run and kept")
    launcher: str = Field("auto", description="what starts the ranks: mpirun, srun, flux, or a command of your own with {ranks}, {threads} and {program}; auto: what the environment variable CHROMABUILD_LAUNCHER says, else srun inside a Slurm job where the MPI library works with it, else mpirun")

    @property
    def cutoffs(self) -> Cutoffs:
        """How non-bonded interactions end, with what the force field was made with where nothing is set."""
        return FORCE_FIELDS[self.force_field].cutoffs(self.cutoff, self.switch_distance, self.switch,
                                                      self.dispersion_correction)

    @property
    def friction(self) -> float:
        """Of Langevin dynamics, 1/ps."""
        return 1 / (self.thermostat_time or 1.0)

    @property
    def temperature_time(self) -> float:
        """Ps, in which other thermostats bring the temperature to theirs."""
        return self.thermostat_time or 0.1


HEALTH_KEYS = ("max_force", "max_temperature", "max_drift", "max_volume_ratio")
"""Of the section `dynamics`: bands that a simulation must not leave. They do not change its course."""


class SimulateSection(Section):
    """What is simulated: phases in order, those of a shipped protocol or your own."""

    protocol: Literal["demo", "standard", "careful"] | None = Field("standard", description="demo: a minute; standard: minimisation, heating, release of restraints, 10 ns at constant pressure; careful: slower to the same; empty: the `phases`")
    phases: tuple[Phase, ...] = Field((), description="your own phases instead of a protocol, each with the keys of the table below")
    replicas: int = Field(1, ge=1, description="independent runs of all phases from the same start, each with a seed of its own: the first in `md/`, the others in `md/replica-2/` and so on")
    temperature: Positive = Field(310.0, description="kelvin, of phases that give none, and where a protocol heats to")
    pressure: float = Field(1.0, description="atm, of phases at constant pressure that give none")
    output_period: int = Field(500, ge=1, description="steps between energies, of dynamics that gives none")
    trajectory_period: int = Field(5000, ge=1, description="steps between frames, of dynamics that gives none")

    def chosen(self) -> tuple[Phase, ...]:
        """The phases, of the protocol or the user's own."""
        return self.phases or shipped_phases(self.protocol or "standard", self.temperature)


class Settings(Section):
    """The whole of locus.yaml."""

    seed: int = Field(1, ge=0, description="every random decision follows from it")
    output: str = Field("results", description="folder of everything that is written")
    locus: LocusSection = LocusSection()
    scaffold: ScaffoldSection = ScaffoldSection()
    ensemble: EnsembleSection = EnsembleSection()
    build: BuildSection = BuildSection()
    refine: RefineSection = RefineSection()
    clash: ClashSection = ClashSection()
    relax: RelaxSection = RelaxSection()
    solvate: SolvateSection = SolvateSection()
    dynamics: DynamicsSection = DynamicsSection()
    simulate: SimulateSection = SimulateSection()

    @property
    def is_laid_flat(self) -> bool:
        """Whether the locus is a circle of DNA alone that nothing asks to fold, so that its path is known."""
        return self.locus.is_bare_circle and self.locus.contacts is None and not self.scaffold.says_how_to_fold

    @classmethod
    def read(cls, path: str | Path, overrides: Mapping[str, object] | None = None) -> "Settings":
        """Read locus.yaml, as ``load_config`` does."""
        return load_config(path, overrides)


def input_files(config: Settings) -> dict[str, tuple[str, ...]]:
    """The user's files that the settings name: dotted key (``build.marks``) to paths; empty keys are left out."""
    found = {f"{section}.{key}": file_names(getattr(getattr(config, section), key))
             for section, key in INPUT_FILE_KEYS}
    return {dotted: paths for dotted, paths in found.items() if paths}


def _input_file_keys() -> Iterator[tuple[str, str]]:
    for section, info in Settings.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, Section):
            for key, field in info.annotation.model_fields.items():
                if field.json_schema_extra == INPUT_FILE:
                    yield section, key


INPUT_FILE_KEYS = tuple(_input_file_keys())
"""(section, key) of every setting that names a file of the user's."""


def parse_override(text: str) -> tuple[str, object]:
    """``section.key=value`` of the command line as key and value; the value is read as YAML.

    Raises BadInputError when there is no ``=`` or the value is not YAML.

    >>> parse_override("solvate.box=[90, 90, 120]")
    ('solvate.box', [90, 90, 120])
    """
    key, equals, value = text.partition("=")
    try:
        if not equals:
            raise ValueError
        return key.strip(), yaml.safe_load(value)
    except (ValueError, yaml.YAMLError):
        raise BadInputError(f"--set {text} is not of the form section.key=value, e.g. solvate.padding=15") from None


def validated(data: dict, overrides: Mapping[str, object], path: Path | str) -> Settings:
    """The settings ``data`` of the file ``path`` with dotted ``overrides``, checked.

    Raises BadInputError with one sentence for an unknown key or a bad value.
    """
    for dotted, value in {**_rivals(overrides), **overrides}.items():
        *sections, key = dotted.split(".")
        target = data
        for name in sections:
            target = target.setdefault(name, {}) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            raise BadInputError(f"{dotted} cannot be set: {'.'.join(sections)} is not a section of {path}")
        target[key] = value
    try:
        config = Settings.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"] if part not in (SHAPE, EDGES))
        message = re.sub(r"^(Value error, |Input |Value )", "", first["msg"])
        if key in MOVED_KEYS:
            raise BadInputError(f"{path}: {key} has moved: {MOVED_KEYS[key]}") from None
        if first["type"] == "extra_forbidden":
            raise BadInputError(f"{path}: unknown setting {key}; see `chromabuild init` for all settings") from None
        raise BadInputError(f"{path}: {key} = {first['input']!r} {message}") from None
    if config.simulate.protocol is None and not config.simulate.phases:
        raise BadInputError(f"{path}: simulate has neither protocol nor phases: set simulate.protocol to standard")
    if config.simulate.phases and config.simulate.protocol and "protocol" in config.simulate.model_fields_set:
        raise BadInputError(f"{path}: simulate.protocol and simulate.phases are both given: leave one of them empty")
    check_phases(config.simulate.phases, str(path))
    problem = (_problem_of_replicas(config) or _problem_of_boosts(config) or _problem_of_tail(config.dynamics)
               or _problem_of_refinement(config))
    if problem:
        raise BadInputError(f"{path}: {problem}")
    problem = launcher_problem(config.dynamics.launcher)
    if problem:
        raise BadInputError(f"{path}: dynamics.launcher = {config.dynamics.launcher!r} {problem}")
    return config


def _problem_of_replicas(config: Settings) -> str | None:
    """What an exchange of temperatures does not go with."""
    exchanging = next((phase for phase in config.simulate.phases if phase.exchange), None)
    if exchanging is None or exchanging.exchange is None:
        return None
    n, dynamics = len(exchanging.exchange.temperatures), config.dynamics
    if dynamics.engine != "chromamd":
        return (f"phase {exchanging.name} exchanges temperatures, which dynamics.engine {dynamics.engine} does not: "
                "set dynamics.engine to chromamd")
    if dynamics.ranks % n:
        return (f"dynamics.ranks = {dynamics.ranks} cannot be shared out evenly among the {n} temperatures of phase "
                f"{exchanging.name}: give a multiple of {n}")
    if dynamics.thermostat == "berendsen":
        return (f"phase {exchanging.name} exchanges temperatures, which needs their canonical ensembles: set "
                "dynamics.thermostat to bussi, nose-hoover or langevin")
    return None


def _problem_of_boosts(config: Settings) -> str | None:
    """What Gaussian boosts do not go with."""
    boosted = next((phase for phase in config.simulate.phases if phase.boost), None)
    if boosted is None or config.dynamics.engine == "chromamd":
        return None
    return (f"phase {boosted.name} has a boost, which dynamics.engine {config.dynamics.engine} does not know: set "
            "dynamics.engine to chromamd")


def _problem_of_refinement(config: Settings) -> str | None:
    """What dynamics of beads do not go with."""
    if config.refine.enabled and config.locus.circular:
        return ("refine.enabled does not go with locus.circular, since the backbone of a circle is not laid back on beads: "
                "set it to false")
    return None


def _problem_of_tail(dynamics: DynamicsSection) -> str | None:
    """What the correction for dispersion does not go with."""
    if not (dynamics.cutoffs.tail and dynamics.cutoffs.force_switch):
        return None
    return ("dynamics.dispersion_correction = true does not go with a force of Lennard-Jones that is switched off: leave "
            "it empty, or set dynamics.switch to energy")


def _rivals(overrides: Mapping[str, object]) -> dict[str, object]:
    """Of the protocol and the phases, what an override of the other replaces."""
    replaced: dict[str, object] = {}
    if overrides.get("simulate.phases"):
        replaced["simulate.protocol"] = None
    if overrides.get("simulate.protocol"):
        replaced["simulate.phases"] = ()
    return replaced


def changed(settings: Settings | None, section: str, keys: Mapping[str, object], seed: int | None, where: str) -> Settings:
    """Settings (None: the defaults) with some ``keys`` of a section, and the seed unless None, replaced.

    Raises BadInputError, which names ``where``, for an unknown key or a bad value.
    """
    overrides = {f"{section}.{key}": str(value) if isinstance(value, Path) else value for key, value in keys.items()}
    if seed is not None:
        overrides["seed"] = seed
    if not overrides:
        return settings or Settings()
    return validated((settings or Settings()).model_dump(), overrides, where)


class _RepeatedKeyError(ValueError):
    """A key of a mapping that stands there already."""

    def __init__(self, key: str, line: int) -> None:
        super().__init__(key)
        self.key, self.line = key, line


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a key that is given twice is an error; PyYAML takes the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        """A mapping. Raises _RepeatedKeyError."""
        seen = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:merge" and key.value in seen:
                raise _RepeatedKeyError(str(key.value), key.start_mark.line + 1)
            if isinstance(key, yaml.ScalarNode):
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def load_config(path: str | Path, overrides: Mapping[str, object] | None = None) -> Settings:
    """Read and validate locus.yaml; relative paths in it are taken from its folder.

    ``overrides`` maps dotted keys (``seed``, ``dynamics.ranks``) to the values that replace those of the file.
    Raises BadInputError with one sentence for a missing file, broken YAML, an unknown key or a bad value.
    """
    path = Path(path)
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeys) or {}
    except FileNotFoundError:
        raise BadInputError(f"{path} does not exist: write one with `chromabuild init`") from None
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}): name a settings file with --config") from None
    except _RepeatedKeyError as error:
        raise BadInputError(f"{path}, line {error.line}: {error.key} is given a second time: keep one") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = getattr(error, "problem_mark", None)
        line = f", line {where.line + 1}" if where else ""
        raise BadInputError(f"{path}{line} is not valid YAML: correct it or write a new one with `chromabuild init`") from None
    if not isinstance(data, dict):
        raise BadInputError(f"{path} holds no settings: write a new one with `chromabuild init`")
    config = validated(data, overrides or {}, path)
    folder = path.resolve().parent
    for dotted, paths in input_files(config).items():
        section, key = dotted.split(".")
        whole = tuple(os.path.normpath(folder / path) for path in paths)
        given = getattr(getattr(config, section), key)
        setattr(getattr(config, section), key, whole[0] if isinstance(given, str) else whole)
    output = folder / config.output
    if output.resolve() == Path("/"):
        raise BadInputError(f"{path}: output = {config.output!r} is no folder of its own: name one, such as results")
    taken = next(one for one in (output, *output.parents) if one.exists())
    if not taken.is_dir():
        raise BadInputError(f"{path}: output = {config.output!r} lies in or is {taken}, a file: name a folder")
    config.output = str(output)
    return config


def commented_yaml(config: Settings) -> str:
    """All settings as YAML, each with its description as a comment."""

    def dump(value: object) -> str:
        return yaml.safe_dump(value, default_flow_style=True).strip().removesuffix("...").strip() if value is not None else ""

    lines = ["# chromabuild: settings of one build. Units: angstrom, fs, kelvin, mol/L unless said otherwise."]
    for name, info in type(config).model_fields.items():
        value = getattr(config, name)
        if not isinstance(value, Section):
            lines.append(f"{name}: {dump(value)}  # {info.description}")
            continue
        lines += ["", f"{name}:  # {(type(value).__doc__ or '').strip()}"]
        for key, field_info in type(value).model_fields.items():
            entry = getattr(value, key)
            if isinstance(entry, tuple):
                entry = [item.model_dump(mode="json", exclude_defaults=True) if isinstance(item, Section) else item
                         for item in entry]
            lines.append(f"  {key}: {dump(entry)}  # {field_info.description}".replace(":   #", ":  #"))
    return "\n".join(lines) + "\n"
