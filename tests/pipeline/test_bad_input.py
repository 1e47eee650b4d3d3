"""What a user can get wrong, through the command line: exit code, one sentence with the place, and nothing written.

The readers' own tests go through many more cases; here is what arrives at the terminal.
"""

import gzip
import shutil
import subprocess

import pytest
from support.command_line import chromabuild, refusal, result_of
from support.solvated_example import SOLUTE

from chromabuild.simulate import chromamd

SEQUENCE = "ACGTTGCA" * 80
BED = "chr1\t150\t151\tfirst\nchr1\t400\t401\tsecond\n"


@pytest.fixture
def locus(tmp_path):
    """A sound locus of 640 bp and two nucleosomes; tests damage it."""
    return written_locus(tmp_path)


def written_locus(folder):
    (folder / "locus.fa").write_text(f">chr1\n{SEQUENCE}\n")
    (folder / "nucleosomes.bed").write_text(BED)
    (folder / "locus.yaml").write_text("scaffold: {sweeps: 5}\n")
    return folder


def made(folder):
    """Everything in the output folder but the record, which is kept whatever happens."""
    return sorted(path.name for path in folder.rglob("results/**/*")
                  if path.is_file() and path.name not in ("provenance.json", ".provenance.json.lock"))


def refused(folder, *arguments, code=3):
    before = made(folder)
    sentence = refusal(chromabuild(*arguments, cwd=folder), code)
    assert made(folder) == before
    return sentence


def test_the_sound_locus_is_accepted(locus):
    """Or the refusals below would say nothing."""
    assert result_of("scaffold", cwd=locus)["summary"]["nucleosomes"] == 2
    assert made(locus) == ["contact_map.cool", "contact_map.npz", "scaffold.h5", "scaffold_trajectory.h5"]


@pytest.mark.parametrize(("sequence", "told"), [
    (SEQUENCE[:99] + "N" + SEQUENCE[100:], "base 100 of chr1 is 'N', an unknown base"),
    (SEQUENCE[:9] + "U" + SEQUENCE[10:], "base 10 of chr1 is 'U', not one of A, C, G, T"),
    ("MKTAYIAKQR" * 64, "base 1 of chr1 is 'M', not one of A, C, G, T"),
    (SEQUENCE[:350], "line 2: dyad 400 is outside the sequence chr1:0-350"),
    ("", "has no sequence"),
])
def test_bad_sequences(locus, sequence, told):
    (locus / "locus.fa").write_text(f">chr1\n{sequence}\n")
    assert told in refused(locus, "scaffold")


@pytest.mark.parametrize(("bed", "told"), [
    ("chr1\t150\t151\n# a remark\nchr1\t400\n", "line 3: 2 columns"),
    ("chr1 150\n", "line 1: 2 columns"),
    ("chr1\t150\t151\nchr1\t4e2\t401\n", "line 2: start '4e2' is not a whole number"),
    ("chr1\t151\t150\n", "line 1: end 150 is not beyond start 151"),
    ("chr1\t150\t151\nchr1\t900\t901\n", "line 2: dyad 900 is outside the sequence"),
])
def test_bad_nucleosomes(locus, bed, told):
    (locus / "nucleosomes.bed").write_text(bed)
    sentence = refused(locus, "scaffold")
    assert told in sentence and "nucleosomes.bed" in sentence


def test_overlaps_are_refused_when_asked_for(locus):
    (locus / "nucleosomes.bed").write_text("chr1\t150\t151\nchr1\t250\t251\n")
    sentence = refused(locus, "scaffold", "--set", "locus.overlaps=error")
    assert "line 1: dyad 150 does not fit (dyads 100 bp apart, 157 needed)" in sentence


def test_malformed_contacts(locus):
    (locus / "loops.bedpe").write_text("chr1\t0\t100\tchr1\t400\t500\nchr1\t0\t100\tchr1\tfar\t500\n")
    sentence = refused(locus, "scaffold", "--set", "locus.contacts=loops.bedpe")
    assert "loops.bedpe, line 2: start 'far'" in sentence


@pytest.mark.parametrize("file", ["locus.fa", "nucleosomes.bed"])
def test_missing_files(locus, file):
    (locus / file).unlink()
    sentence = refused(locus, "scaffold")
    assert file in sentence and "does not exist" in sentence


@pytest.mark.parametrize("file", ["locus.fa", "nucleosomes.bed"])
def test_truncated_gzip(locus, file):
    packed = gzip.compress((locus / file).read_bytes() * 3)
    (locus / file).write_bytes(packed[:len(packed) - 10])
    sentence = refused(locus, "scaffold")
    assert f"{file} is a damaged or truncated gzip file" in sentence


def test_windows_line_ends_and_gzip_make_no_difference(locus):
    plain = result_of("validate", cwd=locus)
    for file in ("locus.fa", "nucleosomes.bed"):
        (locus / file).write_bytes(gzip.compress((locus / file).read_bytes().replace(b"\n", b"\r\n")))
    assert result_of("validate", cwd=locus) == plain


@pytest.fixture(scope="module")
def solvated(tmp_path_factory):
    """A small solute in water, with its force field."""
    folder = tmp_path_factory.mktemp("solvated")
    (folder / "results").mkdir()
    shutil.copy(SOLUTE, folder / "results" / "solute_clean.h5")
    (folder / "locus.yaml").write_text("solvate: {padding: 5.0, brick_edge: 40.0}\nsimulate: {protocol: demo}\n")
    result_of("solvate", cwd=folder)
    result_of("topology", cwd=folder)
    return folder


@pytest.mark.parametrize(("setting", "told"), [
    ("solvate.box=[40,40,40]", "smaller than the solute"),
    ("solvate.box=[100,.inf,100]", "solvate.box"),
    ("solvate.box=[100,.nan,100]", "solvate.box"),
    ("solvate.padding=.inf", "solvate.padding"),
    ("solvate.padding=1.0e+7", "solvate.padding = 10000000.0 should be less than or equal to 1000"),
    ("solvate.box=[1.0e+7,100,100]", "beyond the 2,147,483 A that a brick's coordinates reach"),
    ("solvate.salt=7", "solvate.salt = 7 should be less than or equal to 6"),
    ("output=/", "output = '/' is no folder of its own"),
    ("output=locus.yaml", "a file: name a folder"),
    ("output=locus.yaml/deeper", "a file: name a folder"),
    ("scaffold.sweeps=100000000000000000000", "should be less than or equal to 1000000000"),
    ("refine.length=0 ps", "refine.length = '0 ps' is not a positive number with the unit"),
    ("relax.length=long", "relax.length = 'long' is not a positive number with the unit"),
])
def test_impossible_settings(solvated, setting, told):
    assert told in refused(solvated, "solvate", "--set", setting)


@pytest.fixture(scope="module")
def scaffold(tmp_path_factory):
    """A locus with its scaffold and some solute, so that the stages after them can begin; no test changes it."""
    folder = written_locus(tmp_path_factory.mktemp("scaffold"))
    result_of("scaffold", cwd=folder)
    shutil.copy(SOLUTE, folder / "results" / "solute_clean.h5")
    (folder / "where.bed").write_text("chr2\t140\t160\tH2A.Z\n")
    (folder / "what.bed").write_text("chr1\t140\t160\tH9.Z\n")
    (folder / "marked.bed").write_text("chr1\t140\t160\tH3K4me3\n")
    return folder


@pytest.mark.parametrize(("stage", "setting", "code"), [
    ("scaffold", "scaffold.replica=2", 3),
    ("scaffold", "scaffold.hotter=[1.2,1.1]", 3),
    ("scaffold --set scaffold.tails=flexible", "scaffold.core_charges=formal", 3),
    ("scaffold", "scaffold.acetylated=where.bed", 3),
    ("scaffold --set locus.nucleosomes= --set locus.circular=true", "locus.linking_number=5", 3),
    ("all", "clash.threshold=2.5", 3),
    ("all", "dynamics.cutoff=3", 3),
    ("scaffold", "locus.wrapping=thick", 3),
    ("all", "dynamics.switch_distance=20", 3),
    ("all", "dynamics.barostat_time=0.0001", 3),
    ("all --set dynamics.engine=openmm", "dynamics.platform=HIP", 3),
    ("build", "build.variants=[H9.Z]", 3),
    ("build", "build.variants=['H3:K999Q']", 3),
    ("build", "build.variants=['H3:A56Q']", 3),
    ("build", "build.marks=missing.bed", 3),
    ("build", "build.marks=where.bed", 3),
    ("build", "build.marks=what.bed", 3),
    ("build", "build.methylation=where.bed", 3),
    ("all", "build.marks=[marked.bed]", 3),
    ("build", "build.template=missing.h5", 3),
    ("build", "build.template=locus.fa", 3),
    ("solvate", "solvate.box=[300,300,10]", 3),
    ("solvate", "solvate.box=[1.0e+7,300,300]", 3),
    ("all", "solvate.box=[900,900,20.5]", 3),
    ("all --set solvate.box=[900,900,900]", "dynamics.cutoff=449", 3),
    ("all --set solvate.box=[900,900,900] --set dynamics.engine=openmm", "dynamics.cutoff=451", 3),
    ("all", "dynamics.pme_spacing=30", 3),
    ("all --set locus.nucleosomes=",
     'simulate.phases=[{name: p, steps: 1, restraints: [{group: tails, constant: 1}]}]', 3),
    ("all --set dynamics.force_field=charmm36m", "solvate.water=spce", 3),
])
def test_validate_says_what_a_later_stage_would(scaffold, stage, setting, code):
    """The same sentence, before the work."""
    words = stage.split()
    later = refused(scaffold, *words, "--set", setting, code=code)
    assert refused(scaffold, "validate", *words[1:], "--set", setting) == later


@pytest.mark.parametrize(("stage", "setting"), [
    ("all", "dynamics.ranks=100000"),
    ("all", "output=/proc/x"),
    ("scaffold", "output=/proc/x"),
])
def test_validate_says_what_this_machine_cannot_do(scaffold, stage, setting):
    """The same sentence and exit code as the work has."""
    later = refused(scaffold, stage, "--set", setting, code=6)
    assert refused(scaffold, "validate", "--set", setting, code=6) == later


def test_truncated_shard(solvated):
    """Found by both checks and by the engine, which does not begin."""
    path = sorted((solvated / "results" / "shards").glob("*.cbb"))[1]
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    try:
        for arguments in (("verify",), ("shards", "verify"), ("run",)):
            assert path.name in refusal(chromabuild(*arguments, cwd=solvated), 5), arguments
    finally:
        path.write_bytes(content)
    assert not list((solvated / "results").rglob("*.rst")) and not list((solvated / "results").rglob("*.dcd"))
    assert result_of("verify", cwd=solvated)


@pytest.mark.parametrize("verb", ["setup", "run", "energy"])
def test_unknown_control_key(tmp_path, verb):
    """The engine itself: file, line, the key and the nearest one that exists."""
    (tmp_path / "bad.inp").write_text("[ENERGY]\ncutofdist = 9.0\n")
    done = subprocess.run([chromamd.executable(), verb, "bad.inp"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 3
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("chromamd: ")
    assert "bad.inp" in line and "line 2" in line and "cutofdist" in line and "cutoffdist" in line
    assert list(tmp_path.iterdir()) == [tmp_path / "bad.inp"]
