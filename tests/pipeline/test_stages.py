"""The stage objects are whole: everything that they name exists, and no setting or file of the user's is left out."""

from dataclasses import replace
from graphlib import CycleError

import pytest

from chromabuild.base.settings import INPUT_FILE_KEYS, Settings
from chromabuild.pipeline import chain
from chromabuild.pipeline.provenance import effective_settings
from chromabuild.pipeline.stages import STAGES
from chromabuild.pipeline.stages.stage import in_order


def test_every_file_of_the_settings_is_an_input_of_a_stage_that_depends_on_its_name():
    read = {key for stage in STAGES for key in stage.files}
    assert read | {"ensemble.map"} == {f"{section}.{key}" for section, key in INPUT_FILE_KEYS}
    for stage in STAGES:
        settings = effective_settings(Settings(), stage.settings)
        assert all(key.split(".")[1] in settings[key.split(".")[0]] for key in stage.files), stage.name


def test_every_section_decides_over_a_stage():
    """Each key that a stage names exists, and each section belongs to one stage as a whole; `ensemble` belongs to the
    command of that name."""
    sections = {name for name, info in Settings.model_fields.items() if hasattr(info.annotation, "model_fields")}
    whole = [name for stage in STAGES for name in stage.settings if "." not in name]
    assert sorted(whole) == sorted(sections - {"ensemble"})
    for stage in STAGES:
        assert effective_settings(Settings(), stage.settings).keys() == {n.split(".")[0] for n in stage.settings}


def test_the_fold_depends_on_histones_only_where_it_has_their_charges():
    fold = next(stage for stage in STAGES if stage.name == "scaffold")
    of = {name: Settings.model_validate({"scaffold": {"core_charges": name}}) for name in ("formal", "fitted")}
    assert fold.decided_by(of["formal"]) == fold.settings
    more = set(fold.decided_by(of["fitted"])) - set(fold.settings)
    assert "build.variants" in more and all(hasattr(of["fitted"].build, key.split(".")[1]) for key in more)


def test_settings_name_files_without_their_folder():
    config = Settings.model_validate({"build": {"template": "/home/me/my.nucleosome.h5",
                                                "marks": "/home/me/marks.bed"}})
    assert "/home" not in str(effective_settings(config, ("build",)))


def test_order_follows_from_what_stages_read():
    assert in_order(reversed(STAGES)) == STAGES
    first, second = STAGES[:2]
    with pytest.raises(ValueError, match="stage build reads scaffold.h5, which no stage writes"):
        in_order([second])
    with pytest.raises(CycleError):
        in_order([replace(first, reads={"solute": second.outputs[0]}), second])


def test_roles_are_unique():
    for stage in STAGES:
        roles = [*stage.reads, *(key.split(".")[1] for key in stage.files)]
        assert len(roles) == len(set(roles)), stage.name
    assert chain.LAST == "report"
