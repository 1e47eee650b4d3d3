"""What has parameters by analogy is said before the work, and refused where the force field's name does not say so."""

from pathlib import Path

import pytest
from support.command_line import chromabuild, refusal, result_of

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "marked-promoter"
SETTINGS = f"""
locus: {{fasta: {EXAMPLE}/locus.fa, nucleosomes: {EXAMPLE}/dyads.bed, region: "chrXIII:43,955-44,130"}}
scaffold: {{sweeps: 5, core_charges: formal}}
build: {{variants: [H3K27ac, H3K4me3]}}
dynamics: {{force_field: charmm36m-analogy}}
"""
NOTE = "parameters of H3K4me3 are by analogy"


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "locus.yaml").write_text(SETTINGS)
    return tmp_path


def test_validate_and_all_say_it_first(folder):
    assert NOTE in result_of("validate", cwd=folder)["note"]
    done = chromabuild("all", "--until", "build", cwd=folder)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"note: {NOTE}") and lines[1].startswith("mesoscale scaffold")
    plain = ("--set", "build.variants=[H3K27ac]")
    assert "note" not in result_of("validate", *plain, cwd=folder)


def test_other_force_fields_refuse_before_the_work(folder):
    sentence = refusal(chromabuild("all", "--set", "dynamics.force_field=charmm36m", cwd=folder), 3)
    assert "no parameters for H3K4me3" in sentence and "set dynamics.force_field to charmm36m-analogy" in sentence
    assert not (folder / "results").exists()
