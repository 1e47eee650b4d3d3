"""Which force field knows what, CHARMM's recipes, the user's own files, and the sentences for what cannot be."""

from pathlib import Path

import numpy as np
import pytest
from support.command_line import chromabuild, refusal
from support.molecular_systems import make_solute

from chromabuild.base.errors import BadInputError
from chromabuild.base.force_fields import FORCE_FIELDS
from chromabuild.base.settings import DynamicsSection, Settings, load_config
from chromabuild.forcefield.assign import make_topology
from chromabuild.forcefield.charmm import charmm_recipe
from chromabuild.forcefield.rules import check_residues, is_known
from chromabuild.molecule.residues import residue_library
from chromabuild.pipeline.provenance import effective_settings
from chromabuild.pipeline.stages import STAGES
from chromabuild.simulate.chromamd import energy_section
from chromabuild.simulate.openmm_engine import nonbonded_options


@pytest.mark.parametrize("force_field", FORCE_FIELDS)
def test_every_unmodified_residue_is_known(force_field):
    """CHARMM has ions for its own three-point water alone, AMBER no 3'-phosphates; polyamines are by analogy."""
    unknown = [name for name, one in residue_library().items()
               if not one.modification and not is_known(name, force_field)]
    form = FORCE_FIELDS[force_field]
    expected = ["HOH4"] if form.is_charmm else [f"D{base}3P" for base in "ACGT"]
    assert unknown == expected + ([] if form.by_analogy else ["SPM", "SPD"])


@pytest.mark.parametrize(("residue", "recipe"), [
    ("ALA", ("ALA",)), ("NALA", ("ALA", "NTER")), ("NPRO", ("PRO", "PROP")), ("CHIE", ("HSE", "CTER")),
    ("DT5", ("THY", "DEO5TER")), ("HOH", ("TIP3",)), ("SEP", None), ("CALY", None), ("M3L", None)])
def test_recipes_of_charmm(residue, recipe):
    """Ends of a protein have the patches of any amino acid; what the file lacks has no recipe."""
    assert charmm_recipe(residue, {"ALA", "PRO", "HSE", "THY", "TIP3"}) == recipe


def test_an_unknown_residue_is_refused_with_what_knows_it():
    assert is_known("SEP", "charmm36m") and not is_known("SEP", "amber14")
    with pytest.raises(BadInputError, match="amber14 does not know SEP: set dynamics.force_field to charmm36m"):
        check_residues(["ALA", "SEP"], "amber14")
    with pytest.raises(BadInputError, match="charmm36m does not know XYZ: name a file"):
        check_residues(["XYZ"], "charmm36m")


def test_default_cutoffs_are_those_of_the_force_field():
    """CHARMM's force switch from 10 to 12 angstrom, in chromamd and OpenMM; AMBER's plain 9; what is set wins."""
    assert DynamicsSection().cutoffs == (9.0, None, False, True)
    charmm = DynamicsSection(force_field="charmm36m")
    assert charmm.cutoffs == (12.0, 10.0, True, False)
    keys = energy_section(charmm)
    assert [keys[k] for k in ("cutoffdist", "switchdist", "pairlistdist", "vdw_force_switch")] == [12, 10, 13.5, True]
    options = nonbonded_options(charmm, np.full(3, 50.0))
    assert (options.cutoff, options.switch_distance, options.force_switch) == (12, 10, True)
    assert energy_section(DynamicsSection())["vdw_force_switch"] is None
    assert DynamicsSection(force_field="charmm36m", cutoff=10, switch_distance=10).cutoffs == (10, 10, False, False)
    assert DynamicsSection(force_field="charmm36m", cutoff=10).cutoffs == (10, 8, True, False)
    assert DynamicsSection(force_field="charmm36m", switch="energy", dispersion_correction=True).cutoffs == (
        12, 10, False, True)
    assert DynamicsSection(switch_distance=7, switch="force").cutoffs == (9, 7, True, False)
    assert DynamicsSection(dispersion_correction=False).cutoffs == (9, None, False, False)


def write_sodium(path: Path, force_field: str) -> None:
    """A file of the user's with a sodium of mass 24.5, sigma 2 angstrom, epsilon 0.3 kJ/mol. CHARMM's files give
    Lennard-Jones parameters in a force of their own."""
    lennard_jones = 'sigma="0.2" epsilon="0.3"'
    scales, in_nonbonded, own = {
        "amber14": ('coulomb14scale="0.8333333333333334" lj14scale="0.5"', lennard_jones, ""),
        "charmm36m": ('coulomb14scale="1.0" lj14scale="1.0"', 'sigma="1.0" epsilon="0.0"', '<LennardJonesForce '
                      f'lj14scale="1.0"><Atom class="MINE" {lennard_jones}/></LennardJonesForce>')}[force_field]
    path.write_text(f"""<ForceField>
<AtomTypes><Type name="my-sodium" class="MINE" element="Na" mass="24.5"/></AtomTypes>
<Residues><Residue name="NA" override="1"><Atom name="NA" type="my-sodium" charge="1.0"/></Residue></Residues>
<NonbondedForce {scales}><UseAttributeFromResidue name="charge"/>
<Atom type="my-sodium" {in_nonbonded}/></NonbondedForce>
{own}
</ForceField>""")


@pytest.mark.parametrize("force_field", ["amber14", "charmm36m"])
def test_own_files_are_read_after_the_force_field(tmp_path, force_field):
    """A sodium of the user's own takes the place of the other; all else stays as it is."""
    write_sodium(tmp_path / "my.xml", force_field)
    counts = {"water": 1, "sodium": 2}
    plain = make_topology(make_solute([["DA5", "DT3"]]), counts, force_field)
    mine = make_topology(make_solute([["DA5", "DT3"]]), counts, force_field, files=[tmp_path / "my.xml"])
    sodium = mine.templates[-1]
    assert sodium.name == "NA" and sodium.mass.tolist() == [24.5]
    k = sodium.lj_type[0]
    assert [mine.lj_sigma[k], mine.lj_epsilon[k]] == pytest.approx([2.0, 0.3 / 4.184], rel=1e-9)
    assert np.array_equal(plain.templates[0].dihedral_k, mine.templates[0].dihedral_k)
    assert np.array_equal(plain.templates[0].charge, mine.templates[0].charge)
    assert mine.provenance["force_field_files"][-1] == "my.xml"


@pytest.mark.parametrize(("name", "text", "said"), [
    ("my.str", "* toppar\nread rtf card append\n", "is a CHARMM file"),
    ("my.frcmod", "remark\nMASS\n", "an AMBER file"),
    ("my.xml", "<System/>", "holds <System>"), ("my.xml", "<ForceField>", "is no XML"),
    ("my.xml", "<ForceField><Nonsense/></ForceField>", None)])
def test_other_files_are_refused(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    if said is None:  # what OpenMM does not know it leaves out
        make_topology(None, {"water": 1}, files=[tmp_path / name])
        return
    with pytest.raises(BadInputError, match=said):
        make_topology(None, {"water": 1}, files=[tmp_path / name])
    with pytest.raises(BadInputError, match="correct its name"):
        make_topology(None, {"water": 1}, files=[tmp_path / "absent.xml"])


def test_own_files_lie_beside_the_settings_and_are_inputs(tmp_path):
    """Their paths are from the settings' folder, and stages name them without it."""
    (tmp_path / "locus.yaml").write_text("dynamics: {force_field_files: [my.xml, more/other.xml]}\n")
    config = load_config(tmp_path / "locus.yaml")
    assert config.dynamics.force_field_files == (str(tmp_path / "my.xml"), str(tmp_path / "more" / "other.xml"))
    stage = next(one for one in STAGES if one.name == "topology")
    assert stage.input_paths(config)["force_field_files-2"] == tmp_path / "more" / "other.xml"
    assert effective_settings(config, ("dynamics",))["dynamics"]["force_field_files"] == ["my.xml", "other.xml"]
    assert Settings().dynamics.force_field_files == ()


def test_validate_refuses_a_missing_file(tmp_path):
    assert chromabuild("init", "--example", "demo", cwd=tmp_path).returncode == 0
    said = refusal(chromabuild("validate", "--set", "dynamics.force_field_files=[my.xml]", cwd=tmp_path), 3)
    assert "my.xml" in said and "dynamics.force_field_files" in said
