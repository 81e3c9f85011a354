"""A node runs what its owner has accepted, and nothing that only looks like it."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from flwr.app import Message, RecordDict
from flwr.cli.build import build_fab_from_disk
from flwr.supercore.fab import Fab
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.supercore.run import Run
from flwr.supernode import start_client_internal as flower
from flwr.supernode.nodestate import NodeStateFactory
from typer.testing import CliRunner

from fedfuse.cli.app import app as cli
from fedfuse.core.errors import ConfigError, FedfuseError
from fedfuse.flower.bundles import accepted_hashes, hash_of, hash_of_app, reason_to_refuse
from fedfuse.flower.flower_version import check_version
from fedfuse.flower.project import new_project
from fedfuse.flower.supernode import REFUSAL, guarded


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("apps") / "our-app"
    new_project(folder)
    return folder


def offer(bundle: bytes, **settings) -> tuple[Fab, Run]:
    """What a SuperLink says of a run of this bundle."""
    fab = Fab(hashlib.sha256(bundle).hexdigest(), bundle, {})
    run = replace(Run.create_empty(7), fab_id="fedfuse/our-app", fab_version="1.0.0", override_config=settings)
    return fab, replace(run, fab_hash=fab.hash_str)


class TestHash:
    def test_it_is_that_of_flowers_own_bundle(self, app, tmp_path):
        bundle = build_fab_from_disk(app)
        (tmp_path / "it.fab").write_bytes(bundle)
        assert hash_of_app(app) == hashlib.sha256(bundle).hexdigest() == hash_of_app(tmp_path / "it.fab")

    def test_neither_time_nor_place_nor_order_changes_it(self, app, tmp_path):
        other = tmp_path / "elsewhere" / "our-app"
        files = sorted((path for path in app.rglob("*") if path.is_file()), reverse=True)
        for file in files:
            copy = other / file.relative_to(app)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
            copy.chmod(0o700)
            os.utime(copy, (1, 1))
        for folder in ("keys", "runs/x"):
            (other / folder).mkdir(parents=True)
            (other / folder / "parties.json").write_text("{}")
        (other / "our_app" / "__pycache__").mkdir()
        (other / "our_app" / "__pycache__" / "x.pyc").write_bytes(b"made by a run")
        assert hash_of_app(other) == hash_of_app(app)
        with zipfile.ZipFile(io.BytesIO(build_fab_from_disk(app))) as bundle:
            assert {entry.compress_type for entry in bundle.infolist()} == {zipfile.ZIP_STORED}, "no zlib in it"

    def test_every_byte_of_the_code_counts(self, app, tmp_path):
        new_project(tmp_path / "our-app")
        assert hash_of_app(tmp_path / "our-app") == hash_of_app(app)
        with (tmp_path / "our-app" / "our_app" / "experiment.yaml").open("a") as file:
            file.write("#")
        assert hash_of_app(tmp_path / "our-app") != hash_of_app(app)

    def test_so_do_the_settings_that_a_run_changes(self, app):
        words = ["", "set='seed=2'", "set='seed=3'", "other='seed=2'"]
        assert len({hash_of_app(app, word) for word in words}) == 4
        assert hash_of_app(app, "out='runs/x'") == hash_of_app(app), "a node has nothing to do with the run folder"
        assert hash_of_app(app, "set='seed=2' out='a'") == hash_of_app(app, "out='b' set='seed=2'")

    def test_on_the_command_line(self, app):
        answer = CliRunner().invoke(cli, ["flower", "hash", str(app), "--run-config", "set='seed=2'"])
        assert answer.output == hash_of_app(app, "set='seed=2'") + "\n"

    @pytest.mark.parametrize("what", ["nowhere", "empty", "broken"])
    def test_what_is_no_app(self, tmp_path, what):
        (tmp_path / "empty").mkdir()
        (tmp_path / "broken").mkdir()
        (tmp_path / "broken" / "pyproject.toml").write_text("[project\n")
        with pytest.raises(ConfigError, match=what):
            accepted_hashes([str(tmp_path / what)])

    def test_hashes_and_apps_and_any(self, app):
        assert accepted_hashes(["ab" * 32, str(app), "any"]) == ["ab" * 32, hash_of_app(app), "any"]
        assert accepted_hashes([]) == []


class TestReasons:
    def test_the_accepted_one(self, app):
        fab, run = offer(build_fab_from_disk(app), out="runs/x")
        assert reason_to_refuse(fab, run, [hash_of_app(app)]) is None
        assert reason_to_refuse(fab, run, ["any"]) is None

    def test_the_sentence_says_what_to_do(self, app):
        fab, run = offer(build_fab_from_disk(app))
        for accepted in ([], ["ab" * 32]):
            reason = reason_to_refuse(fab, run, accepted)
            assert f"start this node with --accept {hash_of_app(app)}" in reason
            assert "fedfuse/our-app 1.0.0" in reason

    def test_accepted_code_with_other_settings(self, app):
        """A setting can name a function to call."""
        fab, run = offer(build_fab_from_disk(app), set="models.mlp.arch=own")
        assert "is not accepted here" in reason_to_refuse(fab, run, [hash_of_app(app)])
        assert reason_to_refuse(fab, run, [hash_of(fab.content, run.override_config)]) is None

    @pytest.mark.parametrize(
        "lie", [{"fab_id": "fedfuse/older-app"}, {"fab_version": "0.9.0"}, {"fab_version": "1.0.0/../../x"}]
    )
    def test_accepted_code_under_the_name_of_another(self, app, lie):
        """Flower would unpack this one, and run the one of that name that was unpacked before."""
        fab, run = offer(build_fab_from_disk(app))
        assert reason_to_refuse(fab, replace(run, **lie), [hash_of_app(app)]) == (
            "the app is not the one that its run names"
        )
        fab.hash_str = "ab" * 32
        assert reason_to_refuse(fab, run, [hash_of_app(app)]) == "the app is not the one that its run names"

    @pytest.mark.parametrize("name", ["\x1b[2J", "a\nINFO : all is well", "x" * 5000])
    def test_names_that_write_into_the_log(self, app, name):
        fab, run = offer(build_fab_from_disk(app))
        reason = reason_to_refuse(fab, replace(run, fab_id=name, fab_version=name), [])
        assert reason.isprintable()
        assert len(reason) < 600


class TestNode:
    """Flower's own function that takes a message, with the guard around it."""

    def take(self, bundle, accepted, **settings):
        objects = ObjectStoreFactory()
        state = NodeStateFactory(objectstore_factory=objects).state()
        state.set_node_id(3)
        question = Message(RecordDict(), dst_node_id=3, message_type="query")
        question.metadata.__dict__.update(_run_id=7, _src_node_id=1)
        question.metadata.__dict__["_message_id"] = question.object_id
        objects_of = flower.get_all_nested_objects(question)
        fab, run = offer(bundle, **settings)
        number = guarded(flower._pull_and_store_message, accepted)(
            state=state,
            object_store=objects.store(),
            node_config={},
            receive=lambda: (question, flower.get_object_tree(question)),
            get_run=lambda _number: run,
            get_fab=lambda _hash, _number: fab,
            pull_object=lambda _run, name: objects_of[name].deflate(),
            confirm_message_received=lambda _run, _object: None,
            trusted_entities=None,
        )
        assert number == 7
        return state, question

    def test_a_refused_app_is_not_stored_and_the_server_is_told_one_sentence(self, app, caplog):
        bundle = build_fab_from_disk(app)
        logging.getLogger("flwr").propagate = True
        with caplog.at_level(logging.ERROR, "flwr"):
            state, question = self.take(bundle, [])
        (reply,) = state.get_messages_legacy(is_reply=True)
        assert reply.has_error()
        assert reply.error.reason == REFUSAL
        assert reply.metadata.reply_to_message_id == question.metadata.message_id
        assert state.get_run(7) is None
        assert state.get_fab(hashlib.sha256(bundle).hexdigest()) is None
        assert f"--accept {hash_of_app(app)}" in caplog.text

    def test_an_accepted_one_is(self, app):
        bundle = build_fab_from_disk(app)
        state, _ = self.take(bundle, [hash_of_app(app)])
        assert state.get_messages_legacy(is_reply=True) == []
        assert state.get_run(7).fab_id == "fedfuse/our-app"
        assert state.get_fab(hashlib.sha256(bundle).hexdigest()).content == bundle


@pytest.mark.parametrize("version", ["1.42.0", "2.0", "1.4.1", "1.40.9", "junk"])
def test_an_unknown_flower_is_not_guarded_and_not_started(version):
    with pytest.raises(FedfuseError, match=r"was made for Flower 1\.41"):
        check_version(version)
    check_version("1.41.3")


def test_nodes_and_superlinks_do_without_torch():
    """They wait for months."""
    code = "import sys, fedfuse.flower.supernode, fedfuse.flower.superlink; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], timeout=60).returncode == 0
