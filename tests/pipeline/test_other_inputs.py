"""DNA alone, circles and arrays, by init and through the stages that make atoms."""

import json

import numpy as np
import pytest
from support.command_line import chromabuild, refusal, result_of
from support.universes import universe_of

from chromabuild.analysis.fibre import base_pair_frames, dna_atoms
from chromabuild.analysis.fibre_analysis import FibreAnalysis
from chromabuild.base.settings import load_config
from chromabuild.dna.knot import knot_determinant
from chromabuild.dna.linking import twist, writhe
from chromabuild.dna.steps import analyse
from chromabuild.genome.arrays import POSITIONING, array_of
from chromabuild.genome.fasta import read_fasta
from chromabuild.genome.nucleosomes import read_nucleosomes
from chromabuild.molecule.solute import Solute
from mesoscale.fibre import Fibre
from mesoscale.model import Parameters, build_chain, straight_conformation
from mesoscale.scaffold import Scaffold, build_scaffold

DUPLEX = "ACGTTGCATGCATCGATCGATTACGCTAGCGGACT"
CIRCLE = 3 * DUPLEX
SMALL = ("--set", "solvate.padding=4", "--set", "scaffold.sweeps=100")


def written(folder, sequence):
    (folder / "dna.fa").write_text(f">dna\n{sequence}\n")
    return folder / "dna.fa"


@pytest.fixture(scope="module")
def duplex(tmp_path_factory):
    folder = tmp_path_factory.mktemp("duplex")
    result_of("init", ".", "--fasta", written(folder, DUPLEX), *SMALL, cwd=folder)
    result_of("all", "--until", "solvate", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def circle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("circle")
    result_of("init", ".", "--fasta", written(folder, CIRCLE), "--circular", *SMALL, cwd=folder)
    result_of("all", "--until", "topology", cwd=folder)
    return folder


@pytest.mark.slow
def test_dna_alone_is_whole(duplex):
    """Two strands with their ends, and nothing in each other's way."""
    solute = Solute.read(duplex / "results/solute_clean.h5")

    assert solute.n_atoms == _atoms(DUPLEX, ends=True)
    assert solute.molecule_name == ["DNA-I", "DNA-J"] and not solute.circular
    told = result_of("clash", "check", "results/solute_clean.h5", cwd=duplex)
    assert told["fatal"] == 0


@pytest.mark.slow
def test_a_plan_that_folds_knows_what_is_built(duplex, tmp_path):
    """Before anything is there: atoms within 15 %. Afterwards, what other settings would replace tells nothing."""
    for name in ("dna.fa", "locus.yaml"):
        (tmp_path / name).write_bytes((duplex / name).read_bytes())
    planned = result_of("plan", "--fold", cwd=tmp_path)
    manifest = json.loads((duplex / "results/shards/manifest.json").read_text())
    assert planned["box_from"] == "a fold like that of the build" and planned["stale"] == []
    assert planned["atoms"] == pytest.approx(manifest["atoms"], rel=0.15)
    assert not (tmp_path / "results").exists()
    assert result_of("plan", cwd=duplex)["stale"] == []
    other = result_of("plan", "--set", "build.steps=generic", cwd=duplex)
    assert other["box_from"] == "scaffold.h5" and "scaffold.h5" not in other["stale"]
    assert {"solute.h5", "solute_clean.h5", "shards/manifest.json"} <= set(other["stale"])
    assert "scaffold.h5" in result_of("plan", "--set", "scaffold.sweeps=101", cwd=duplex)["stale"]


@pytest.mark.slow
def test_a_circle_closes(circle):
    """No end, a bond across the seam of either strand, and a linking number that is a whole number of turns."""
    solute = Solute.read(circle / "results/solute_clean.h5")
    n = len(CIRCLE)
    assert solute.circular == (0, 1) and solute.n_atoms == _atoms(CIRCLE, ends=False)
    bonds = solute.bonds()
    for strand in (0, 1):
        residues = np.searchsorted(solute.residue_first_atom, np.sort(bonds, axis=1), side="right") - 1
        seam = (residues == [strand * n, strand * n + n - 1]).all(axis=1)
        assert seam.sum() == 1
        one, other = bonds[seam][0]
        assert np.linalg.norm(solute.position[one] - solute.position[other]) == pytest.approx(1.61, abs=0.1)  # O3'-P
    scaffold = Scaffold.read(circle / "results/scaffold.h5")
    linking = twist(scaffold.origin, scaffold.frame, closed=True) + writhe(scaffold.origin, closed=True)
    assert scaffold.circular and linking == pytest.approx(10, abs=1e-6)  # 105 base pairs, 10.5 a turn
    told = json.loads((circle / "results/provenance.json").read_text())["stages"]["scaffold"]["summary"]
    assert (told["linking_number"], told["relaxed_turns"], told["superhelical_density"]) == (10, 10.0, 0.0)
    planned = result_of("plan", cwd=circle)
    assert planned["solute_atoms"] == solute.n_atoms


@pytest.fixture(scope="module")
def minichromosome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("minichromosome")
    result_of("init", ".", "--array", "2x601:187", "--circular", "--set", "scaffold.core_charges=formal", *SMALL,
              cwd=folder)
    result_of("all", "--until", "clash", cwd=folder)
    return folder


@pytest.mark.slow
def test_a_circle_with_nucleosomes_closes(minichromosome):
    """From an array to atoms: bonds across the seam, nothing in each other's way, base pairs whole. The linking
    number of the atoms is the one that the scaffold reports: less by about one a nucleosome than that of bare DNA."""
    folder = minichromosome / "results"
    solute, n = Solute.read(folder / "solute_clean.h5"), 2 * 187
    assert solute.circular == (0, 1) and solute.molecule_nucleosome.max() == 1
    bonds = solute.bonds()
    for strand in (0, 1):
        residues = np.searchsorted(solute.residue_first_atom, np.sort(bonds, axis=1), side="right") - 1
        ((one, other),) = bonds[(residues == [strand * n, strand * n + n - 1]).all(axis=1)]
        assert np.linalg.norm(solute.position[one] - solute.position[other]) == pytest.approx(1.607, abs=0.03)  # O3'-P
    origin, frame = base_pair_frames(dna_atoms(solute))
    steps = analyse(origin, frame, np.roll(origin, -1, axis=0), np.roll(frame, -1, axis=0))
    assert steps[:, 2].min() > 2.7 and steps[:, 2].max() < 4.3 and steps[:, 5].min() > 15  # rise, twist
    told = json.loads((folder / "provenance.json").read_text())["stages"]["scaffold"]["summary"]
    linking = twist(origin, frame, closed=True) + writhe(origin, closed=True)
    assert linking == pytest.approx(told["linking_number"], abs=1e-4)
    assert told["linking_difference_a_nucleosome"] == pytest.approx(-1.0, abs=0.5)
    assert result_of("clash", "check", "results/solute_clean.h5", cwd=minichromosome)["fatal"] == 0
    assert knot_determinant(origin) == 1
    analysis = FibreAnalysis(universe_of(solute)).run()
    assert [one.before for one in analysis.linkers] == [0, 1]
    across = analysis.linkers[1]
    rows = np.arange(across.first - 1, across.last + 1)
    assert rows[0] < n <= rows[-1]
    assert analysis.results.linker[0, 1, 1] == pytest.approx(steps[rows % n, 5].sum(), abs=1.0)  # degree
    assert np.isfinite(analysis.results.entry_exit).all()


def _atoms(sequence, ends):
    """Of residue templates of AMBER: DA 32, DT 32, DC 30, DG 33; a 5' end without phosphate has two less, a 3' end
    one more."""
    size = {"A": 32, "T": 32, "C": 30, "G": 33}
    partner = {"A": "T", "T": "A", "C": "G", "G": "C"}
    return sum(size[base] + size[partner[base]] for base in sequence) + (2 * (1 - 2) if ends else 0)


@pytest.mark.parametrize(("arguments", "sentence"), [
    (("--circular", "--nucleosomes", "dna.bed"), "fewer than the 147 of one nucleosome"),
    (("--set", "locus.linking_number=3"), "linear DNA has none"),
    (("--circular", "--set", "locus.linking_number=40"), "degree"),
])
def test_what_cannot_be(tmp_path, arguments, sentence):
    written(tmp_path, CIRCLE)
    (tmp_path / "dna.bed").write_text("dna\t50\t51\n")
    done = chromabuild("init", ".", "--fasta", "dna.fa", *arguments, cwd=tmp_path)
    if done.returncode == 0:
        done = chromabuild("scaffold", cwd=tmp_path)
    assert sentence in refusal(done, 3)


def test_arrays(tmp_path):
    told = result_of("init", "fibre", "--array", "3x601:197", cwd=tmp_path)
    names = [path.split("/")[-1] for path in told["written"]]
    assert names == ["locus.yaml", "array_3x601_197.fa", "array_3x601_197.bed"]
    summary = result_of("validate", cwd=tmp_path / "fibre")
    assert (summary["base_pairs"], summary["nucleosomes"], summary["adjusted_dyads"]) == (3 * 197, 3, 0)
    name, sequence = read_fasta(tmp_path / "fibre/array_3x601_197.fa")
    dyads = [n.dyad for n in read_nucleosomes(tmp_path / "fibre/array_3x601_197.bed", name, 0, len(sequence))]
    assert np.diff(dyads).tolist() == [197, 197]
    assert all(sequence[dyad - 73:dyad + 74] == POSITIONING["601"] for dyad in dyads)
    assert len(POSITIONING["601"]) == 147 and array_of("1x601:147").sequence == POSITIONING["601"]


@pytest.mark.parametrize("text", ["12x601", "12x602:197", "0x601:197", "2x601:150", "1x601:146", "1x601:349", "x601:9"])
def test_arrays_that_are_none(tmp_path, text):
    assert "--array" in refusal(chromabuild("init", ".", "--array", text, cwd=tmp_path), 3)


def test_only_one_input_says_what_the_locus_is(tmp_path):
    written(tmp_path, DUPLEX)
    done = chromabuild("init", "x", "--array", "2x601:197", "--fasta", "dna.fa", cwd=tmp_path)
    assert "--array and --fasta each say what the locus is" in refusal(done, 3)


@pytest.mark.parametrize("length", [10, 35, 400])
def test_the_scaffold_of_straight_dna_is_b_dna(length):
    """Beads of DNA alone carry all of its charge and length; rise and twist are those of the model."""
    fibre, parameters = Fibre("A" * length, ()), Parameters()
    chain = build_chain(fibre, parameters)
    assert not len(chain.cores) and chain.rest_length.sum() == pytest.approx(parameters.rise * (length - 1))
    assert chain.charge.sum() == pytest.approx(parameters.linker_charge * parameters.rise * (length - 1))
    scaffold = build_scaffold(fibre, chain, *straight_conformation(chain), parameters)
    steps = np.diff(scaffold.origin, axis=0)
    assert np.linalg.norm(steps, axis=1) == pytest.approx(10 * parameters.rise, rel=1e-6)
    turn = np.einsum("nij,nij->n", scaffold.frame[:-1, :, :1], scaffold.frame[1:, :, :1])
    assert turn == pytest.approx(np.cos(np.radians(parameters.twist_per_bp)), abs=1e-6)


@pytest.mark.parametrize(("region", "radius"), [((), 60.0), (("--region", "chrXIII:36,501-62,500"), None)])
def test_part_of_an_example_leaves_its_sphere(tmp_path, region, radius):
    """The sphere holds the whole locus: a part has the walls of its own size."""
    result_of("init", ".", "--example", "chrXIII", *region, cwd=tmp_path)
    assert load_config(tmp_path / "locus.yaml").scaffold.confinement_radius == radius
