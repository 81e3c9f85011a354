"""A party's own side of a promise: noise that nobody can compute, books that nobody else keeps, a budget that holds."""

from __future__ import annotations

import json
import logging
import stat
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from flwr.app import MessageType

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task
from fedfuse.core.secret_key import SecretKey
from fedfuse.core.weights import NOTHING
from fedfuse.experiment.run import Experiment
from fedfuse.federation.engine import QuorumError
from fedfuse.flower import client_app
from fedfuse.flower.failures import SpentError
from fedfuse.flower.party import everything
from fedfuse.flower.private import PartyPrivacy
from fedfuse.flower.receipts import read_receipts
from fedfuse.flower.records import order_from_records, report_from_records
from fedfuse.flower.server import run_on
from fedfuse.flower.status import statuses
from fedfuse.flower.status_page import pages
from tests.flower.federation import CrashError, crash_in, flower_config, grid_for, grid_of
from tests.helpers import events_of, files_of, tiny_method

pytestmark = pytest.mark.usefixtures("without_pictures")
EVERYBODY = {"rounds": 2, "participation": 1.0}
LINKS = [{"kind": "clip", "norm": 0.5}, {"kind": "noise", "multiplier": 1.0}]
BY_CLIENT = {"unit": "client", "delta": 1e-5}
UNIFORM = {"kind": "mean", "weighting": "uniform"}


def private_config(links=LINKS, privacy=BY_CLIENT, **sections):
    method = tiny_method("fedavg", merge=UNIFORM, upload=links)
    return flower_config(method, **{"privacy": privacy, "federation": EVERYBODY, **sections})


def by_examples(**sections):
    training = {"epochs": 1, "batch_size": 8, "privacy": {"norm": 1.0, "multiplier": 1.5}}
    usual = {"training": training, "privacy": {"unit": "example"}, "federation": EVERYBODY}
    return flower_config("fedavg", **{**usual, **sections})


def sent_by(grid):
    """Everything that leaves, by node."""
    sent = {number: [] for number in grid.nodes}
    for number, node in grid.nodes.items():
        node.bend = lambda reply, number=number: sent[number].append(reply) or [reply]
    return sent


def updates_of(replies):
    return [reply.content for reply in replies if reply.metadata.message_type == MessageType.TRAIN]


def entered(privacy, task):
    try:
        privacy.check_budget(task)
        time.sleep(0.01)
        privacy.enter(task)
    except SpentError:
        return False
    return True


def payload(content):
    return torch.cat([torch.from_numpy(array.numpy()).reshape(-1).double() for array in content["extras"].values()])


class TestSecrets:
    def test_two_nodes_with_one_seed_and_one_number_draw_other_noise(self, tmp_path):
        config, payloads = private_config(federation={"rounds": 1}), []
        for place in ("one", "other"):
            (tmp_path / place).mkdir()
            grid = grid_for(config, tmp_path / place)
            sent = sent_by(grid)
            run_on(grid, config, tmp_path / place / "run")
            payloads.append(payload(updates_of(sent[100])[0]))
        apart = payloads[0] - payloads[1]
        expected = 0.5 * 2**0.5  # two draws of deviation multiplier x norm, on the very same update
        assert 0.7 * expected < float(apart.std()) < 1.3 * expected

    def test_nobody_can_take_the_noise_away_who_knows_the_seed(self, tmp_path):
        config = private_config(federation={"rounds": 1})
        run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
        local = private_config(federation={"rounds": 1}, engine={"kind": "local"})
        simulated = Experiment(local).run(tmp_path / "local")
        assert files_of(simulated.folder.final) != files_of(tmp_path / "flower" / "final")
        assert simulated.summary["privacy"]["noise"] == "from the seed: a simulation"

    def test_the_log_and_the_summary_say_whose_noise_it_is(self, tmp_path, caplog):
        config = private_config()
        with caplog.at_level(logging.INFO, logger="flwr"):
            result = run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
        assert "privacy of every client is promised, by noise from secrets of this machine" in caplog.text
        assert result.summary["privacy"]["noise"] == "from secrets of the parties"
        assert events_of(result.folder.path, "run_started")[0]["privacy"]["noise"] == "from secrets of the parties"

    def test_noise_without_a_promise_is_said_to_protect_nothing(self, tmp_path, caplog):
        method = tiny_method("fedavg", upload=[{"kind": "noise", "deviation": 0.1}])
        config = flower_config(method, federation={"rounds": 1})
        run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
        assert "the server can compute it and take it away; it protects nothing" in caplog.text

    def test_examples_are_drawn_by_the_secret_too(self, tmp_path):
        config, weights = by_examples(federation={"rounds": 1}), []
        for place in ("one", "other"):
            (tmp_path / place).mkdir()
            grid = grid_for(config, tmp_path / place)
            sent = sent_by(grid)
            run_on(grid, config, tmp_path / place / "run")
            weights.append(updates_of(sent[100])[0]["arrays"])
        assert all((weights[0][name].numpy() != weights[1][name].numpy()).all() for name in weights[0])


class TestAnswersAgain:
    def test_a_server_that_fell_back_gets_the_same_bytes_and_nothing_is_counted_twice(self, tmp_path):
        config = private_config(federation={"rounds": 3, "participation": 1.0})
        grid = grid_for(config, tmp_path)
        sent = sent_by(grid)
        crash_in(grid, 2)
        with pytest.raises(CrashError):
            run_on(grid, config, tmp_path / "flower")
        grid.waiting.clear()
        result = run_on(grid, config, tmp_path / "flower")
        for replies in sent.values():
            rounds = [content["config"]["server-round"] for content in updates_of(replies)]
            assert rounds == [1, 2, 2, 3]
            first, again = updates_of(replies)[1:3]
            assert torch.equal(payload(first), payload(again))
        theirs = result.summary["privacy"]["against"]["everybody"]["clients"]
        for status in statuses(tmp_path / "nodes"):
            assert status["privacy"]["epsilon"]["everybody"] == theirs[str(status["client"])]

    def test_another_task_of_the_same_round_is_answered_with_new_noise_and_counted(self, tmp_path):
        config = private_config(federation={"rounds": 1, "participation": 1.0})
        grid = grid_for(config, tmp_path)
        sent = sent_by(grid)
        first = run_on(grid, config, tmp_path / "one")
        run_on(grid, config, tmp_path / "two")  # another run on the same parties, from the same first weights
        task = grid.nodes[100].messages[-1]
        task.content["arrays"]["classifier.bias"] = type(task.content["arrays"]["classifier.bias"])(
            task.content["arrays"]["classifier.bias"].numpy() + 1
        )
        grid.nodes[100].answer(task)
        one, same, other = (payload(content) for content in updates_of(sent[100]))
        assert torch.equal(one, same)
        assert not torch.isclose(one, other).any()
        once = first.summary["privacy"]["epsilon"]
        [status] = [status for status in statuses(tmp_path / "nodes") if status["client"] == 0]
        assert status["privacy"]["epsilon"]["everybody"] > once

    def test_a_restarted_node_goes_on_with_its_books(self, tmp_path):
        config = private_config()
        grid = grid_for(config, tmp_path)
        run_on(grid, config, tmp_path / "one")
        before = {s["client"]: s["privacy"]["epsilon"]["everybody"] for s in statuses(tmp_path / "nodes")}
        other = config.model_copy(update={"seed": 7})
        (tmp_path / "experiment.yaml").write_text(other.to_yaml())
        again = grid_of(client_app(tmp_path / "experiment.yaml"), 4, state=str(tmp_path / "nodes"))
        run_on(again, other, tmp_path / "two")
        after = {s["client"]: s["privacy"]["epsilon"]["everybody"] for s in statuses(tmp_path / "nodes")}
        assert all(after[client] > before[client] for client in before)

    @pytest.mark.parametrize("damage", [b"", b"x", b"0" * 64 + b"\nrubbish"])
    def test_a_damaged_answer_is_none(self, tmp_path, damage):
        config = private_config(federation={"rounds": 1, "participation": 1.0})
        grid = grid_for(config, tmp_path)
        sent = sent_by(grid)
        run_on(grid, config, tmp_path / "one")
        for answer in (tmp_path / "nodes").rglob("*.answer"):
            answer.write_bytes(damage)
        run_on(grid, config, tmp_path / "two")
        one, other = (payload(content) for content in updates_of(sent[100]))
        assert not torch.equal(one, other)


class TestWhatStaysUnsaid:
    def test_of_a_client_nothing_but_its_noised_update_leaves(self, tmp_path):
        config = private_config()
        grid = grid_for(config, tmp_path)
        sent = sent_by(grid)
        run_on(grid, config, tmp_path / "flower")
        description, *updates = sent[100]
        assert description.content["config"]["num-examples"] == 1
        for reply in updates:
            assert dict(reply.content["metrics"]) == {"num-examples": 1}
            assert list(reply.content["extras"]) == ["upload/weights"]
            assert not reply.content["arrays"]
            assert not reply.content["test-outputs"]

    def test_of_examples_the_number_is_told_and_the_loss_is_not(self, tmp_path):
        config = by_examples()
        grid = grid_for(config, tmp_path)
        sent = sent_by(grid)
        run_on(grid, config, tmp_path / "flower")
        for reply in sent[100][1:]:
            assert list(reply.content["metrics"]) == ["num-examples"]
            assert reply.content["metrics"]["num-examples"] > 1

    def test_a_server_that_asks_for_test_outputs_gets_none(self, tmp_path):
        method = tiny_method("fedmd", upload=LINKS)
        config = flower_config(method, privacy=BY_CLIENT, federation=EVERYBODY)
        grid = grid_for(config, tmp_path)
        run_on(grid, config, tmp_path / "flower")
        task = grid.nodes[100].messages[-1]
        task.content["config"]["asks"] = ["test_outputs"]
        [reply] = grid.nodes[100].answer(task)
        assert not reply.content["test-outputs"]

    def test_clients_own_models_are_not_measured_on_real_parties(self, tmp_path):
        config = private_config(evaluation={"clients": True})
        with pytest.raises(ConfigError, match="asks what clients' own models say about the test"):
            run_on(grid_for(config, tmp_path), config, tmp_path / "flower")

    def test_guests_are_not_promised_anything(self, tmp_path):
        config = private_config(engine={"kind": "flower", "guests": True})
        with pytest.raises(ConfigError, match="nobody knows what guests add noise to"):
            run_on(grid_for(config, tmp_path), config, tmp_path / "flower")


class TestBudget:
    def test_the_party_stops_by_itself_whatever_the_server_says(self, tmp_path, caplog):
        config = private_config(federation={"rounds": 3, "participation": 1.0})
        grid = grid_for(config, tmp_path, budget=8.0)  # multiplier 1: 4.73 after one answer, 7.08 after two
        with pytest.raises(QuorumError, match="round 3: 0 of 4 updates count"):
            run_on(grid, config, tmp_path / "flower")
        reasons = {event["reason"] for event in events_of(tmp_path / "flower", "update_refused")}
        assert reasons == {"its privacy budget is spent; the node's own log says more"}
        assert "above the budget of 8; this client takes part no more" in caplog.text
        assert all(s["privacy"]["epsilon"]["everybody"] <= 8 for s in statuses(tmp_path / "nodes"))

    def test_who_allows_so_much_answers_nobody_who_counts_nothing(self, tmp_path, caplog):
        config = flower_config("fedavg", federation={"rounds": 1})
        with pytest.raises(Exception, match="0 of"):
            run_on(grid_for(config, tmp_path, budget=4.0), config, tmp_path / "flower")
        assert "this node has a budget of 4, but the experiment promises no privacy" in caplog.text

    def test_two_answers_at_a_time_are_both_counted_and_none_is_too_many(self, tmp_path):
        """A node may work for two runs at once; each had read the books before the other wrote into them."""
        config = private_config(federation={"rounds": 1, "participation": 1.0})
        (tmp_path / "experiment.yaml").write_text(config.to_yaml())
        promise = everything(config).promise
        task = Task(1, 0, "mlp", NOTHING)
        mine, others = (PartyPrivacy(promise, tmp_path / "books", 0, 20, 8.0) for _ in range(2))
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda one: entered(one, task), [mine, others] * 8))
        assert done.count(True) == 2  # 7.08 after two answers, more than 8 after three
        assert mine.numbers()["epsilon"]["everybody"] == pytest.approx(7.08, abs=0.01)

    def test_books_go_on_with_no_promise_about_something_else(self, tmp_path, caplog):
        config = private_config(federation={"rounds": 1})
        run_on(grid_for(config, tmp_path), config, tmp_path / "one")
        other = by_examples(federation={"rounds": 1})
        with pytest.raises(Exception, match="0 of"):
            run_on(grid_for(other, tmp_path), other, tmp_path / "two")
        assert "under a promise of another unit, or against others" in caplog.text

    @pytest.mark.parametrize("budget", [0, -1.0, "many", True])
    def test_a_budget_that_is_none(self, tmp_path, caplog, budget):
        config = private_config(federation={"rounds": 1})
        with pytest.raises(Exception, match="0 of"):
            run_on(grid_for(config, tmp_path, budget=budget), config, tmp_path / "flower")
        assert "budget is an epsilon, a number above 0" in caplog.text

    def test_damaged_books_stop_the_party(self, tmp_path, caplog):
        config = private_config(federation={"rounds": 1})
        run_on(grid_for(config, tmp_path), config, tmp_path / "one")
        for books in (tmp_path / "nodes" / "privacy").rglob("*.safetensors"):
            books.write_bytes(books.read_bytes()[:-3])
        other = config.model_copy(update={"seed": 3})
        with pytest.raises(Exception, match="0 of"):
            run_on(grid_for(other, tmp_path), other, tmp_path / "two")
        assert "what this client has given away so far, cannot be read" in caplog.text


class TestWhatThePartySees:
    def test_status_page_and_receipts_have_the_party_s_own_numbers(self, tmp_path):
        config = private_config()
        result = run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
        numbers = result.summary["privacy"]["against"]["everybody"]["clients"]
        shown = pages(tmp_path / "nodes")
        assert f"{numbers['0']:.4g} against everybody, at delta 1e-05, of every client" in shown["/"]().text
        metrics = shown["/metrics"]().text
        labels = f'experiment="{config.name}",client="0",against="everybody"'
        assert f"fedfuse_node_epsilon{{{labels}}} {numbers['0']}" in metrics
        lines = list(read_receipts(tmp_path / "nodes" / "receipts" / config.name / "client-0.jsonl"))
        assert [line.get("privacy", {}).get("epsilon", {}).get("everybody") for line in lines][-1] == numbers["0"]
        assert "privacy" not in lines[0]

    def test_the_books_are_for_nobody_else(self, tmp_path):
        config = private_config()
        run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
        files = [*(tmp_path / "nodes").rglob("privacy/*/*.safetensors"), *(tmp_path / "nodes").rglob("*.answer")]
        assert files
        assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)

    def test_no_secret_is_written_anywhere(self, tmp_path, caplog, monkeypatch):
        made = []
        fresh = SecretKey.fresh
        monkeypatch.setattr(SecretKey, "fresh", staticmethod(lambda: made.append(fresh()) or made[-1]))
        config = private_config()
        with caplog.at_level(logging.DEBUG):
            run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
        assert len({key.seed for key in made}) == 8
        files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        everything = b"".join([*files, caplog.text.encode()])
        for key in made:
            for form in (str(key.seed), f"{key.seed:x}", key.seed.to_bytes(32, "big").hex()):
                assert form.encode() not in everything
            assert key.seed.to_bytes(32, "big") not in everything
            assert key.seed.to_bytes(32, "little") not in everything


def test_shared_noise_tells_the_party_both_numbers(tmp_path):
    links = [LINKS[0], {**LINKS[1], "shared": True}]
    config = private_config(links, federation={**EVERYBODY, "claims": "taken", "moves": "taken"})
    result = run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
    numbers = result.summary["privacy"]["against"]
    assert numbers["server"]["epsilon"] > numbers["others"]["epsilon"]
    [status] = [s for s in statuses(tmp_path / "nodes") if s["client"] == 0]
    assert status["privacy"]["epsilon"] == {against: own["clients"]["0"] for against, own in numbers.items()}


def test_an_answer_that_is_given_again_is_read_as_the_first(tmp_path):
    config = private_config(federation={"rounds": 1})
    grid = grid_for(config, tmp_path)
    run_on(grid, config, tmp_path / "flower")
    task = grid.nodes[100].messages[-1]
    replies = [grid.nodes[100].answer(task)[0] for _ in range(2)]
    texts = [json.dumps({n: list(map(str, r)) for n, r in reply.content.items()}) for reply in replies]
    assert texts[0] == texts[1]
    order = order_from_records(task.content)
    assert report_from_records(replies[0].content, order.task).update.client == 0
