"""A party's seat: what its log, status and receipts say, and what the server never gets to know."""

from __future__ import annotations

import json
import logging
import re

import numpy as np
import pytest
from flwr.app import MessageType
from PIL import Image

from fedfuse.core.errors import ConfigError
from fedfuse.experiment.run import Experiment
from fedfuse.flower import client_app
from fedfuse.flower.failures import RAISED, SENTENCES
from fedfuse.flower.party import clients_of, settings_of
from fedfuse.flower.receipts import read_receipts
from fedfuse.flower.server import run_on
from fedfuse.flower.status import statuses
from tests.flower.federation import assert_same, flower_config, grid_for, grid_of, local_config

pytestmark = pytest.mark.usefixtures("without_pictures")
ONE_ROUND = {"rounds": 1}


def receipts_of(state, client: int, experiment: str = "experiment"):
    return list(read_receipts(state / "receipts" / experiment / f"client-{client}.jsonl"))


def spoil_weights(reply):
    if reply.metadata.message_type == MessageType.TRAIN:
        for name, array in reply.content["arrays"].items():
            reply.content["arrays"][name] = type(array)(np.full(array.shape, np.nan, np.float32))
    return [reply]


class TestWhatLeft:
    def test_every_message_has_its_receipt(self, tmp_path):
        config = flower_config("scaffold", federation={"rounds": 2})
        grid = grid_for(config, tmp_path)
        sent = {node: [] for node in grid.nodes}
        for number, node in grid.nodes.items():
            node.bend = lambda reply, number=number: sent[number].append(reply) or [reply]
        run_on(grid, config, tmp_path / "flower")
        for client in range(4):
            lines = receipts_of(tmp_path / "nodes", client, config.name)
            replies = sent[100 - client]
            assert [line["purpose"] for line in lines] == ["description", "update", "update"]
            assert [line["round"] for line in lines] == [0, 1, 2]
            for line, reply in zip(lines, replies, strict=True):
                assert line["records"].keys() == reply.content.keys()
                for name, record in reply.content.array_records.items():
                    sizes = {key: len(array.data) for key, array in record.items()}
                    assert {key: size for key, _, _, size in line["records"][name]["arrays"]} == sizes
                    assert line["records"][name]["bytes"] == sum(sizes.values())
            assert "local/control_change" in [
                name.partition("/layers")[0] for name, *_ in lines[1]["records"]["extras"]["arrays"]
            ]

    def test_nothing_leaves_without_a_receipt(self, tmp_path):
        config = flower_config(federation=ONE_ROUND)
        grid = grid_for(config, tmp_path)
        (tmp_path / "nodes").mkdir()
        (tmp_path / "nodes" / "receipts").write_text("in the way")
        with pytest.raises(Exception, match="0 of 4 updates count"):
            run_on(grid, config, tmp_path / "flower")

    def test_the_bits_stay_those_of_the_local_engine(self, tmp_path):
        config = flower_config("scaffold")
        flower = run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
        assert_same(flower, Experiment(local_config("scaffold")).run(tmp_path / "local"), tmp_path / "nodes")


class TestTheLog:
    def test_it_says_what_happens(self, tmp_path, caplog):
        config = flower_config("feddf", federation=ONE_ROUND, name="trial")
        with caplog.at_level(logging.INFO, logger="flwr"):
            run_on(grid_for(config, tmp_path, prototype="mlp"), config, tmp_path / "flower")
        said = "\n".join(record.getMessage() for record in caplog.records)
        assert re.search(r"trial \(feddf\), client 0: \d+ examples, model mlp; to leave, stop this node", said)
        assert re.search(r"trial \(feddf\), client 0: round 1 of 1, trains mlp on \d+ examples", said)
        assert re.search(r"client 0: round 1 of 1, done in \d+\.\d s", said)
        assert re.search(r"sends update: arrays [\d,]+ bytes, .*config \d+ bytes, metrics \d+ bytes; receipt in ", said)

    def test_a_party_is_told_why_its_answer_was_refused(self, tmp_path, caplog):
        config = flower_config(federation={"rounds": 2})
        grid = grid_for(config, tmp_path)
        grid.nodes[98].bend = spoil_weights
        result = run_on(grid, config, tmp_path / "flower")
        assert [record.refused for record in result.history] == [(2,), (2,)]
        assert "client 2: the server did not take the last answer: weights are not finite" in caplog.text
        [status] = [status for status in statuses(tmp_path / "nodes") if status["client"] == 2]
        assert (status["refusals"], status["refused"]) == (1, "weights are not finite")

    @pytest.mark.parametrize("reason", ["\x1b[2J\nINFO : all is well", "x" * 10**5, 7, b"\xff", ["a"]])
    def test_a_reason_from_a_hostile_server(self, tmp_path, caplog, reason):
        config = flower_config(federation=ONE_ROUND)
        grid = grid_for(config, tmp_path)
        run_on(grid, config, tmp_path / "flower")
        task = grid.nodes[100].messages[-1]
        task.content["config"]["refused"] = reason
        caplog.clear()
        [reply] = grid.nodes[100].answer(task)
        assert reply.has_content()
        for record in caplog.records:
            assert record.getMessage().isprintable()
            assert len(record.getMessage()) < 1000


def test_a_task_for_a_model_that_nobody_has(tmp_path, caplog):
    """A name that a hostile server made up does not even get into the log."""
    config = flower_config(federation=ONE_ROUND)
    grid = grid_for(config, tmp_path)
    run_on(grid, config, tmp_path / "flower")
    task = grid.nodes[100].messages[-1]
    task.content["config"]["prototype"] = "mlp\nINFO : all is well"
    caplog.clear()
    [reply] = grid.nodes[100].answer(task)
    assert reply.error.code == 102
    assert "all is well" not in caplog.text


class TestTrouble:
    """The party reads one sentence, the server a fixed one."""

    def ask(self, tmp_path, **node_config):
        config = flower_config(federation=ONE_ROUND)
        grid = grid_for(config, tmp_path, **node_config)
        node = grid.nodes[100]
        replies = []
        node.bend = lambda reply: replies.append(reply) or [reply]
        with pytest.raises(Exception, match="0 of 4 updates count"):
            run_on(grid, config, tmp_path / "flower")
        return replies[0]

    @pytest.mark.parametrize(
        ("node_config", "code", "sentence"),
        [
            ({"data": "/srv/patients-of-ward-7.csv"}, 102, "/srv/patients-of-ward-7.csv does not exist"),
            ({"loader": "nobodys:load"}, 101, "loader: nobodys cannot be imported"),
            ({"prototype": "mpl"}, 101, "unknown prototype 'mpl' (did you mean 'mlp'?)"),
            ({"set": "training.epochs=9"}, 101, "a node cannot change that alone"),
            ({"client": "zero"}, 101, "say which client this node is"),
        ],
    )
    def test_one_sentence_for_the_party_and_a_fixed_one_for_the_server(
        self, tmp_path, caplog, node_config, code, sentence
    ):
        reply = self.ask(tmp_path, **node_config)
        assert (reply.error.code, reply.error.reason) == (code, SENTENCES[code])
        [said] = {record.getMessage() for record in caplog.records if record.levelno == logging.ERROR}
        assert sentence in said
        assert not any(record.exc_info for record in caplog.records)

    def test_a_value_of_the_data_stays(self, tmp_path, caplog):
        (tmp_path / "ours.csv").write_text("x0,x1,label\n1,Mia Musterfrau,0\n")
        reply = self.ask(tmp_path, data=str(tmp_path / "ours.csv"))
        assert "'Mia Musterfrau' is not a number" in caplog.text
        assert "Musterfrau" not in repr(reply.error)
        assert str(tmp_path) not in repr(reply.error)

    def test_an_error_that_nobody_thought_of(self, tmp_path, caplog, monkeypatch):
        def fail(*_args, **_kwargs):
            raise ZeroDivisionError("patient 4711")

        monkeypatch.setattr("fedfuse.flower.node.clients_of", fail)
        reply = self.ask(tmp_path)
        assert (reply.error.code, reply.error.reason) == (2, RAISED)
        assert "patient 4711" in caplog.text

    def test_it_is_in_status_and_receipts_until_it_is_over(self, tmp_path):
        self.ask(tmp_path, data="/srv/gone.csv")
        [status] = [status for status in statuses(tmp_path / "nodes") if status["client"] == 0]
        assert status["trouble"].startswith("/srv/gone.csv does not exist")
        line = receipts_of(tmp_path / "nodes", 0)[-1]
        assert (line["purpose"], line["records"]["error"]["values"]["code"]) == ("trouble", 102)
        config = flower_config(federation=ONE_ROUND)
        run_on(grid_for(config, tmp_path), config, tmp_path / "better")
        [status] = [status for status in statuses(tmp_path / "nodes") if status["client"] == 0]
        assert status["trouble"] is None
        assert status["troubles"] >= 1


class TestOwnData:
    def test_three_parties_with_three_formats(self, tmp_path):
        """Each answers for as many examples as its own file has, and nobody wrote a line of code."""
        config = flower_config(federation=ONE_ROUND)
        held = clients_of(config, 0, {}).datasets[0]
        x, y = held.inputs.numpy()[:6], held.labels.numpy()[:6]
        np.savez(tmp_path / "a.npz", x=x[:3].astype(np.float64), y=y[:3])
        rows = "\n".join(f"{a},{b},{label}" for (a, b), label in zip(x[:4].tolist(), y[:4].tolist(), strict=True))
        (tmp_path / "b.csv").write_text(f"first,second,finding\n{rows}\n")
        (tmp_path / "b.yaml").write_text("{name: csv, path: b.csv, label_column: finding}")
        (tmp_path / "c_of_party.py").write_text(f"def load():\n    return {x[:5].tolist()}, {y[:5].tolist()}\n")
        grid = grid_for(config, tmp_path)
        grid.nodes[100].context.node_config["data"] = str(tmp_path / "a.npz")
        grid.nodes[99].context.node_config["data"] = str(tmp_path / "b.yaml")
        grid.nodes[98].context.node_config["loader"] = "c_of_party:load"
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)
            run_on(grid, config, tmp_path / "flower")
        counted = [receipts_of(tmp_path / "nodes", client)[-1]["records"]["metrics"] for client in range(3)]
        assert [metrics["values"]["num-examples"] for metrics in counted] == [3, 4, 5]

    def test_tables_of_words_and_gaps_by_the_experiments_encoding(self, tmp_path):
        """The common file knows the categories and the medians; a party's own table needs neither."""
        rows = [f"{'fmx'[n % 3]},{'' if n == 4 else n},{'yes' if n % 2 else 'no'}" for n in range(60)]
        (tmp_path / "common.csv").write_text("sex,age,ill\n" + "\n".join(rows) + "\n")
        (tmp_path / "ours.csv").write_text("age;ill;sex;bed\n71,5;yes;m;1\n;no;m;2\n30,0;no;m;3\n")
        data = {"name": "csv", "path": str(tmp_path / "common.csv"), "label_column": "ill", "empty_cells": "fill"}
        sections = {
            "data": {**data, "public": 0.3},
            "partition": {"kind": "iid", "clients": 2},
            "federation": ONE_ROUND,
        }
        config = flower_config("feddf", **sections)
        grid = grid_for(config, tmp_path)
        grid.nodes[100].context.node_config["data"] = str(tmp_path / "ours.csv")
        result = run_on(grid, config, tmp_path / "flower")
        assert result.history[0].refused == ()
        examples = clients_of(config, 0, {"data": str(tmp_path / "ours.csv")}).datasets[0]
        median = result.model().known().interface.inputs.encoding.columns[1].fill
        assert examples.inputs.tolist() == [[0, 1, 0, 71.5], [0, 1, 0, median], [0, 1, 0, 30]]
        (tmp_path / "again").mkdir()
        everybody = run_on(grid_for(config, tmp_path / "again"), config, tmp_path / "everybody")
        local = Experiment(local_config("feddf", **sections)).run(tmp_path / "local")
        assert_same(everybody, local, tmp_path / "again" / "nodes")

    def test_pictures_in_a_folder_and_in_arrays(self, tmp_path):
        """The common pictures lie elsewhere on each machine, and a party need not have every class."""
        pictures = np.random.default_rng(1).integers(0, 255, (24, 8, 8), np.uint8)
        for number, picture in enumerate(pictures):
            folder = tmp_path / "common" / ("benign", "malignant")[number % 2]
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(folder / f"{number}.png")
        (tmp_path / "ours" / "malignant").mkdir(parents=True)
        for number in range(5):
            Image.fromarray(pictures[number]).convert("RGB").save(tmp_path / "ours" / "malignant" / f"{number}.png")
        np.savez(tmp_path / "theirs.npz", x=pictures[:6], y=np.array(["malignant", "benign"] * 3))
        config = flower_config(
            "feddf",
            federation=ONE_ROUND,
            data={"name": "images", "path": str(tmp_path / "common"), "public": 0.3},
            partition={"kind": "iid", "clients": 2},
        )
        elsewhere = config.model_copy(update={"data": config.data.model_copy(update={"path": "/elsewhere"})})
        grid = grid_for(elsewhere, tmp_path, set=f"data.path={tmp_path / 'common'}")
        for node, data in zip((100, 99), ("ours", "theirs.npz"), strict=True):
            grid.nodes[node].context.node_config["data"] = str(tmp_path / data)
        result = run_on(grid, config, tmp_path / "flower")
        assert result.history[0].refused == ()
        counted = [receipts_of(tmp_path / "nodes", client)[-1]["records"]["metrics"] for client in range(2)]
        assert [metrics["values"]["num-examples"] for metrics in counted] == [5, 6]

    def test_the_apps_own_function_goes_before_data_and_behind_a_loader(self, tmp_path):
        config = flower_config(federation=ONE_ROUND)
        file = tmp_path / "experiment.yaml"
        file.write_text(config.to_yaml())
        seen = []

        def load_data(node_config):
            seen.append(node_config["data"])
            return [[0.0, 1.0]] * 7, [0] * 7

        grid = grid_of(
            client_app(file, load_data), 4, data="a name that only the app knows", state=str(tmp_path / "nodes")
        )
        run_on(grid, config, tmp_path / "flower")
        assert set(seen) == {"a name that only the app knows"}
        assert receipts_of(tmp_path / "nodes", 0)[-1]["records"]["metrics"]["values"]["num-examples"] == 7

    @pytest.mark.parametrize("given", [7, [1, 2, 3], "ab c", {"x": 1}])
    def test_what_is_no_pair(self, given):
        from fedfuse.core.errors import DataError

        with pytest.raises(DataError, match="it must give"):
            clients_of(flower_config(), 0, {}, lambda _config: given)


class TestOwnSettings:
    def test_where_this_machine_has_the_experiments_data(self, tmp_path):
        (tmp_path / "common data.csv").write_text("a,b,label\n" + "1,2,0\n3,4,1\n" * 30)
        file = tmp_path / "experiment.yaml"
        config = flower_config(data={"name": "csv", "path": "/nowhere/common.csv"})
        file.write_text(config.to_yaml())
        told = {"set": f"'data.path={tmp_path}/common data.csv'"}
        assert settings_of(file, {}, told).data.path == f"{tmp_path}/common data.csv"
        assert len(clients_of(settings_of(file, {}, told), 0, told).datasets) == 4

    def test_nothing_that_all_must_share(self, tmp_path):
        file = tmp_path / "experiment.yaml"
        file.write_text(flower_config().to_yaml())
        with pytest.raises(ConfigError, match="a node cannot change that alone"):
            settings_of(file, {}, {"set": "federation.rounds=1"})


def test_the_status_is_plain_json(tmp_path):
    config = flower_config(federation=ONE_ROUND, name="trial")
    run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
    [status] = [status for status in statuses(tmp_path / "nodes") if status["client"] == 3]
    assert json.loads(json.dumps(status, allow_nan=False)) == status
    assert (status["experiment"], status["method"], status["round"], status["rounds"]) == ("trial", "fedavg", 1, 1)
    assert (
        status["examples"]
        == receipts_of(tmp_path / "nodes", 3, "trial")[-1]["records"]["metrics"]["values"]["num-examples"]
    )
