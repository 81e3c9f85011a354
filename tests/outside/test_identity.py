"""What is foreign is known by its address and its source: nothing of it is taken for something else."""

from __future__ import annotations

import importlib
import sys

import pytest
import torch

from fedfuse.core.errors import ConfigError, RunFolderError
from fedfuse.core.foreign import source_sha256
from fedfuse.core.imports import import_object
from fedfuse.experiment.api import compare
from fedfuse.experiment.run import Experiment
from tests.helpers import files_of
from tests.outside.parts import PARTS, TINY

pytestmark = pytest.mark.usefixtures("without_pictures")
SNEAKY = """
from fedfuse.parts.local import Proximal
from tools import factor

class Sneaky(Proximal):
    def begin(self, client):
        return super().begin(client)
"""
TOOLS = "factor = 1\n"
SNEAKY_METHOD = {"name": "fedavg", "local": {"kind": "sneaky:Sneaky"}}


@pytest.fixture
def sneaky(own_module):
    """Writes the file of a part, or of what it imports, and forgets what was imported of it before."""

    def write(name="sneaky", text=SNEAKY):
        (own_module / f"{name}.py").write_text(text)
        for module in ("sneaky", "tools"):
            sys.modules.pop(module, None)
        importlib.invalidate_caches()

    write("tools", TOOLS)
    write()
    return write


def experiment(method, **sections):
    return Experiment({**TINY, "method": method, **sections})


def stop(event):
    """Once there is a checkpoint."""
    if event["event"] == "round_started" and event["round"] == 2:
        raise KeyboardInterrupt


@pytest.mark.usefixtures("sneaky")
def test_a_class_that_is_derived_from_ours_is_not_taken_for_it():
    ours = experiment({"name": "fedavg", "local": {"kind": "proximal"}}).config
    theirs = experiment(SNEAKY_METHOD).config
    assert theirs.method.local.kind == "sneaky:Sneaky"
    assert theirs.sha256() != ours.sha256()
    assert theirs.identity()["code"] == {"sneaky:Sneaky": source_sha256("sneaky:Sneaky")}
    assert "code" not in ours.identity()


@pytest.mark.usefixtures("sneaky")
def test_an_object_of_it_is_the_same_as_its_address():
    part = import_object("sneaky:Sneaky", "test")()
    assert experiment({"name": "fedavg", "local": part}).config.sha256() == experiment(SNEAKY_METHOD).config.sha256()


@pytest.mark.usefixtures("sneaky")
def test_it_cannot_call_itself_as_one_of_ours():
    with pytest.raises(ValueError, match="Input should be 'sneaky:Sneaky'"):
        import_object("sneaky:Sneaky", "test")(kind="proximal")


@pytest.mark.parametrize("name", [name for name in PARTS if name != "engine"])
@pytest.mark.usefixtures("here")
def test_the_identity_has_the_address_and_the_hash_of_every_part(name):
    outside = PARTS[name]
    identity = Experiment(outside.sections(outside.as_file)).config.identity()
    assert identity["code"] == {outside.address: source_sha256(outside.address)}


@pytest.mark.usefixtures("here")
def test_the_identity_of_a_whole_method_has_all_its_parts():
    identity = experiment("my_methods:FEDDYN").config.identity()
    assert set(identity["code"]) == {"my_methods:Dynamic", "my_methods:DynamicMean"}


@pytest.mark.usefixtures("here")
def test_an_engine_changes_no_bit_and_so_no_identity():
    outside = PARTS["engine"]
    with_it, without = Experiment(outside.sections(outside.as_file)), experiment("fedavg")
    assert with_it.config.sha256() == without.config.sha256()


def test_a_part_that_is_derived_from_another_outside_has_the_source_of_both(sneaky):
    sneaky("tools", TOOLS + SNEAKY.replace("from tools import factor", "").replace("Sneaky", "Base"))
    sneaky(text="from tools import Base\nclass Sneaky(Base):\n    pass\n")
    assert set(experiment(SNEAKY_METHOD).config.identity()["code"]) == {"sneaky:Sneaky", "tools:Base"}


@pytest.mark.parametrize(("name", "text"), [("sneaky", SNEAKY + "# mended\n"), ("tools", "factor = 2\n")])
class TestAfterAChangeOfTheCode:
    """Of the part's own file, or of a helper beside it."""

    def test_the_identity_is_another_one(self, sneaky, name, text):
        before = experiment(SNEAKY_METHOD).config.sha256()
        sneaky(name, text)
        assert experiment(SNEAKY_METHOD).config.sha256() != before
        sneaky("tools", TOOLS)
        sneaky()
        assert experiment(SNEAKY_METHOD).config.sha256() == before

    def test_a_run_is_not_gone_on_with_unless_the_code_is_brought_back(self, sneaky, out, tmp_path, name, text):
        expected = experiment(SNEAKY_METHOD).run(tmp_path / "straight")
        with pytest.raises(KeyboardInterrupt):
            experiment(SNEAKY_METHOD).run(out, listeners=(stop,))
        sneaky(name, text)
        with pytest.raises(RunFolderError, match="was begun with other code behind sneaky:Sneaky; bring it back"):
            experiment(SNEAKY_METHOD).run(out, resume=True)
        sneaky("tools", TOOLS)
        sneaky()
        assert files_of(experiment(SNEAKY_METHOD).run(out, resume=True).folder.final) == files_of(expected.folder.final)

    def test_a_finished_run_is_not_shown_as_the_present_codes(self, sneaky, tmp_path, name, text):
        compare({**TINY}, [SNEAKY_METHOD], [0], out=tmp_path / "study")
        sneaky(name, text)
        with pytest.raises(RunFolderError, match="was begun with other code behind sneaky:Sneaky"):
            compare({**TINY}, [SNEAKY_METHOD], [0], out=tmp_path / "study")


@pytest.mark.usefixtures("sneaky")
def test_code_that_was_changed_after_its_import_is_not_run_under_the_new_hash(own_module):
    config = experiment(SNEAKY_METHOD).config
    (own_module / "sneaky.py").write_text(SNEAKY + "# mended\n")
    with pytest.raises(ConfigError, match=r"sneaky.py was changed after this process had imported it; start the"):
        config.sha256()


def test_a_single_installed_module_does_not_drag_its_neighbours_in(own_module):
    """Beside it lie the packages of others, which it imports too."""
    (own_module / "other-1.0.dist-info").mkdir()
    (own_module / "other.py").write_text("value = 1\n")
    (own_module / "alone.py").write_text("import other\n\nvalue = other.value\n")
    before = source_sha256("alone:value")
    (own_module / "other.py").write_text("value = 2\n")
    assert source_sha256("alone:value") == before


def test_a_model_of_a_part_from_outside_is_loaded_only_if_told_to_trust_it(folder, monkeypatch, tmp_path):
    import fedfuse
    from fedfuse.core.errors import DataError

    monkeypatch.chdir(folder)
    outside = PARTS["model"]
    run = Experiment(outside.sections(outside.as_file)).run(tmp_path / "run")
    path = run.folder.final_weights("mlp")
    with pytest.raises(DataError, match="my_model:Narrow"):
        fedfuse.load_model(path)
    network = fedfuse.load_model(path, trust_own_code=True)
    with torch.no_grad():
        inputs = torch.randn(5, 2)
        assert torch.equal(network(inputs), run.model()(inputs))
