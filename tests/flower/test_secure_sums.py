"""Masked sums on Flower: the bits of a simulation, whoever drops out when, and nothing else for the server to see."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest
from flwr.app import MessageType

from fedfuse.core.errors import ConfigError
from fedfuse.core.releases import Release
from fedfuse.experiment.assembly import build
from fedfuse.experiment.run import Experiment
from fedfuse.federation.engine import QuorumError
from fedfuse.federation.events import EventLog
from fedfuse.flower import client_app
from fedfuse.flower.check import rehearse
from fedfuse.flower.receipts import read_receipts
from fedfuse.flower.server import run_on
from fedfuse.flower.status import statuses
from fedfuse.flower.status_page import pages
from fedfuse.privacy.accountants import epsilon_of
from tests.flower.federation import (
    CrashError,
    assert_same,
    crash_in,
    flower_config,
    grid_for,
    grid_of,
    history,
    local_config,
)  # fmt: skip
from tests.helpers import BentEngine, events_of, files_of, tiny_method

pytestmark = pytest.mark.usefixtures("without_pictures")
SUMS = {"rounds": 2, "participation": 1.0, "claims": "taken", "moves": "taken", "secure_sums": {}}
UNIFORM = {"kind": "mean", "weighting": "uniform"}
TWO = {"small": {"arch": "mlp", "hidden": [4]}, "wide": {"arch": "mlp", "hidden": [7]}}
SEVEN = {"kind": "iid", "clients": 7}
FEW = {**SUMS, "secure_sums": {"neighbours": 4, "share": 0.55}}
WIDE = {**SUMS, "secure_sums": {"range": 64}}
SHARED = [{"kind": "clip", "norm": 1.0}, {"kind": "noise", "multiplier": 2.0, "shared": True}]
KINDS = {
    "fedavg": ("fedavg", {}),
    "uniform": (tiny_method("fedavg", merge=UNIFORM), {}),
    "scaffold": ("scaffold", {}),
    "ds-fl": ("ds-fl", {}),
    "votes": (tiny_method("feded-w0", protocol={"kind": "votes"}, scores="uniform"), {}),
    "two models": ("fedavgm", {"models": TWO, "partition": {"kind": "iid", "clients": 6}}),
    "two models, predictions": ("feded-w0", {"models": TWO}),
    "some neighbours": ("fedavg", {"partition": SEVEN, "federation": FEW}),
}


def configs(kind, **sections):
    method, own = KINDS[kind]
    return [make(method, **{"federation": SUMS, **own, **sections}) for make in (flower_config, local_config)]


@pytest.mark.parametrize("kind", list(KINDS))
def test_masked_it_is_the_same_run(tmp_path, kind):
    config, local = configs(kind)
    flower = run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
    assert flower.summary["updates_refused"] == 0
    assert not events_of(tmp_path / "flower", "sum_withheld")
    assert_same(flower, Experiment(local).run(tmp_path / "local"), tmp_path / "nodes")


STEPS = {"keys": "query.keys", "shares": "query.shares", "task": MessageType.TRAIN, "opening": "query.opening"}


def falls_once(grid, after):
    """The server is killed when it first waits for answers to a message of this type."""
    pull = grid.pull_messages

    def crash(ids):
        if grid.nodes[100].messages[-1].metadata.message_type == after:
            grid.pull_messages = pull
            raise CrashError
        return pull(ids)

    grid.pull_messages = crash


def lost_in(grid, client, step, number=None):
    """A client's answers in one step of a round never arrive; of every round, if none is named."""
    node, rounds = grid.nodes[100 - client], []

    def bend(reply):
        last = node.messages[-1]
        rounds.append(last.content["config"].get("server-round", rounds[-1] if rounds else 0))
        is_lost = last.metadata.message_type == STEPS[step] and (number is None or rounds[-1] == number)
        return [] if is_lost else [reply]

    node.bend = bend


@pytest.mark.parametrize("step", ["keys", "shares", "task"])
@pytest.mark.parametrize("kind", ["scaffold", "some neighbours"])
def test_without_a_client_it_is_the_run_without_its_update(tmp_path, kind, step):
    config, local = configs(kind)
    grid, lost = grid_for(config, tmp_path), 1
    lost_in(grid, lost, step, number=2)
    flower = run_on(grid, config, tmp_path / "flower")
    assert flower.history[1].late == (lost,)
    inner = build(local, EventLog()).federation.engine
    deaf = BentEngine(inner, lambda pairs: [p for p in pairs if (p[0].round, p[0].client) != (2, lost)])
    assert_same(flower, Experiment(local).run(tmp_path / "local", engine=deaf), tmp_path / "nodes")


def test_who_is_gone_after_its_answer_is_in_the_sum(tmp_path):
    config, local = configs("fedavg")
    grid = grid_for(config, tmp_path)
    lost_in(grid, 1, "opening", number=2)
    flower = run_on(grid, config, tmp_path / "flower")
    assert_same(flower, Experiment(local).run(tmp_path / "local"), tmp_path / "nodes")


def test_a_summand_that_is_none_is_one_refused_client(tmp_path):
    config, local = configs("fedavg")
    grid, liar = grid_for(config, tmp_path), 1

    def bend(reply):
        if reply.metadata.message_type == MessageType.TRAIN:
            summand = reply.content["extras"]["sums/summand"]
            reply.content["extras"]["sums/summand"] = type(summand)(summand.numpy()[:-1])
        return [reply]

    grid.nodes[100 - liar].bend = bend
    flower = run_on(grid, config, tmp_path / "flower")
    assert [record.refused for record in flower.history] == [(liar,), (liar,)]
    inner = build(local, EventLog()).federation.engine
    deaf = BentEngine(inner, lambda pairs: [pair for pair in pairs if pair[0].client != liar])
    without = Experiment(local).run(tmp_path / "local", engine=deaf)
    assert files_of(flower.folder.final) == files_of(without.folder.final)


def test_a_sum_that_too_few_help_to_open_is_not_seen_and_the_run_goes_on(tmp_path):
    config, _ = configs("fedavg", federation={**SUMS, "rounds": 3})
    grid = grid_for(config, tmp_path)
    for client in (0, 1):
        lost_in(grid, client, "opening", number=2)
    result = run_on(grid, config, tmp_path / "flower")
    [withheld] = events_of(tmp_path / "flower", "sum_withheld")
    assert withheld["round"] == 2
    assert withheld["reason"] == "the sum of model 'mlp' of 4 clients: 2 of them helped to open it, and 3 are needed"
    assert [record.prototypes["mlp"].untaught for record in result.history] == [False, True, False]


def test_too_few_that_agree_on_masks_are_no_quorum(tmp_path):
    config, _ = configs("fedavg")
    grid = grid_for(config, tmp_path)
    for client in (0, 1):
        lost_in(grid, client, "shares")
    with pytest.raises(QuorumError, match="0 of 4 updates count"):
        run_on(grid, config, tmp_path / "flower")
    reasons = {event["client"]: event["reason"] for event in events_of(tmp_path / "flower", "client_late")}
    assert reasons[3] == "only 2 of 4 clients agreed on masks"
    assert not any(m.metadata.message_type == MessageType.TRAIN for n in grid.nodes.values() for m in n.messages)


@pytest.mark.parametrize("number", [1, 2])
def test_a_server_that_was_killed_asks_with_new_keys_and_comes_to_the_same(tmp_path, number):
    config, local = configs("scaffold", federation={**SUMS, "rounds": 3})
    grid = grid_for(config, tmp_path)
    crash_in(grid, number)
    with pytest.raises(CrashError):
        run_on(grid, config, tmp_path / "flower")
    grid.waiting.clear()
    flower = run_on(grid, config, tmp_path / "flower")
    assert_same(flower, Experiment(local).run(tmp_path / "local"), tmp_path / "nodes")
    attempts = [m.content["config"]["attempt"] for m in grid.nodes[100].messages if "query.keys" in str(m.metadata)]
    assert len(set(attempts)) == len(attempts) == 4


def test_a_server_that_was_killed_after_the_opening_sees_the_same_sum_and_no_other(tmp_path):
    """Without one client more, the difference would be that client's update."""
    config, _ = configs("fedavg")
    grid = grid_for(config, tmp_path)
    falls_once(grid, after="query.opening")
    with pytest.raises(CrashError):
        run_on(grid, config, tmp_path / "flower")
    grid.waiting.clear()
    lost_in(grid, 3, "task", number=1)
    result = run_on(grid, config, tmp_path / "flower")
    [withheld] = events_of(tmp_path / "flower", "sum_withheld")
    assert withheld["reason"].endswith("of 3 clients: 0 of them helped to open it, and 3 are needed")
    assert result.history[0].prototypes["mlp"].untaught
    assert not result.history[1].prototypes["mlp"].untaught


class TestWhatTheServerSees:
    @pytest.fixture
    def seen(self, tmp_path):
        """All that leaves, by client, in a run of one round."""
        config, _ = configs("uniform", federation={**SUMS, "rounds": 1})
        grid, sent = grid_for(config, tmp_path), {client: [] for client in range(4)}
        for client, replies in sent.items():
            grid.nodes[100 - client].bend = lambda reply, replies=replies: replies.append(reply) or [reply]
        run_on(grid, config, tmp_path / "flower")
        return sent

    def updates(self, sent):
        found = {}
        for client, replies in sent.items():
            [content] = [reply.content for reply in replies if reply.metadata.message_type == MessageType.TRAIN]
            found[client] = content
        return found

    def test_masked_numbers_and_nothing_about_a_client(self, seen):
        sent = seen
        built = build(local_config(KINDS["uniform"][0], federation={**SUMS, "rounds": 1}), EventLog())
        for client, content in self.updates(sent).items():
            assert list(content["arrays"]) == []
            assert list(content["extras"]) == ["sums/summand"]
            assert dict(content["metrics"]) == {"num-examples": 1}
            summand = content["extras"]["sums/summand"].numpy()
            assert summand.dtype == np.int32
            honest = abs(summand.astype(np.int64)) < built.clients.sums.settings.largest
            assert honest.mean() < 0.1, client  # within the range by chance alone: one of 256

    def test_descriptions_say_no_number_of_examples(self, seen):
        for replies in seen.values():
            assert replies[0].content["config"]["num-examples"] == 1

    def test_two_attempts_have_nothing_in_common(self, seen, tmp_path):
        sent = seen
        (tmp_path / "again").mkdir()
        config = flower_config(KINDS["uniform"][0], federation={**SUMS, "rounds": 1})
        grid, again = grid_for(config, tmp_path / "again"), {client: [] for client in range(4)}
        for client, replies in again.items():
            grid.nodes[100 - client].bend = lambda reply, replies=replies: replies.append(reply) or [reply]
        run_on(grid, config, tmp_path / "again" / "flower")
        for client, content in self.updates(again).items():
            one, other = (c["extras"]["sums/summand"].numpy() for c in (content, self.updates(sent)[client]))
            assert (one != other).mean() > 0.95

    @pytest.mark.usefixtures("seen")
    def test_no_secret_is_on_a_disk(self, tmp_path):
        """What a node keeps is what it kept without masks, and two digests for each answer."""
        files = {path.name for path in (tmp_path / "nodes").rglob("*") if path.is_file()}
        assert {name for name in files if "client" not in name} <= {"sums.txt", "receipts.key", "receipts.pub"}
        for path in (tmp_path / "nodes").rglob("sums.txt"):
            assert [len(word) for word in path.read_text().split()] == [64, 64]


class TestAParty:
    def test_it_gives_no_plain_update_to_a_server_that_leaves_the_masks_out(self, tmp_path, caplog):
        config, _ = configs("fedavg")
        grid = grid_for(config, tmp_path)
        plain = flower_config("fedavg", federation={**SUMS, "secure_sums": None})
        with pytest.raises(QuorumError):
            run_on(grid, plain, tmp_path / "flower")
        assert "asks for the update itself, but was promised nothing but sums" in caplog.text
        for node in grid.nodes.values():
            assert not any("extras" in m.content and m.metadata.message_type != "train" for m in node.messages)

    @pytest.mark.parametrize("lie", [{"experiment": "f" * 64}, {"server-round": 9}])
    def test_it_gives_no_answer_with_masks_of_another_experiment_or_round(self, tmp_path, caplog, lie):
        """What it keeps of sums that were opened lies with the experiment of the masks."""
        config, _ = configs("fedavg", federation={**SUMS, "rounds": 1})
        grid = grid_for(config, tmp_path)
        push = grid.push_messages

        def bend(messages):
            messages = list(messages)
            for message in messages:
                if message.metadata.message_type == STEPS["keys"]:
                    for name, value in lie.items():
                        message.content["config"][name] = value
            return push(messages)

        grid.push_messages = bend
        with pytest.raises(QuorumError):
            run_on(grid, config, tmp_path / "flower")
        assert "masks were agreed on for another round or experiment" in caplog.text

    def test_it_makes_no_masks_for_an_experiment_without_sums(self, tmp_path, caplog):
        config, _ = configs("fedavg")
        plain = flower_config("fedavg", federation={**SUMS, "secure_sums": None})
        with pytest.raises(QuorumError):
            run_on(grid_for(plain, tmp_path), config, tmp_path / "flower")
        assert "the experiment has no federation.secure_sums" in caplog.text

    @pytest.mark.parametrize("kind", ["fedavg", "fedmd"])
    def test_nothing_leaves_beside_the_sum_where_examples_are_private_either(self, tmp_path, kind):
        """What a private model says costs no epsilon, and would show all the same whose model says it."""
        training = {"epochs": 1, "batch_size": 8, "privacy": {"norm": 1.0, "multiplier": 1.5}}
        config = flower_config(kind, federation=SUMS, training=training, privacy={"unit": "example"})
        grid, sent = grid_for(config, tmp_path), []
        grid.nodes[100].bend = lambda reply: sent.append(reply) or [reply]
        push = grid.push_messages

        def bend(messages):
            messages = list(messages)
            for message in messages:
                if message.metadata.message_type == MessageType.TRAIN:
                    message.content["config"]["asks"] = ["test_outputs"]
            return push(messages)

        grid.push_messages = bend
        run_on(grid, config, tmp_path / "flower")
        updates = [reply.content for reply in sent if reply.metadata.message_type == MessageType.TRAIN]
        assert len(updates) == 2
        for content in updates:
            assert not content["test-outputs"]
            assert not content["arrays"]
            assert list(content["extras"]) == ["sums/summand"]
            assert dict(content["metrics"]) == {"num-examples": 1}

    def test_its_receipts_say_what_was_masked(self, tmp_path, caplog):
        config, _ = configs("fedavg", name="masked")
        with caplog.at_level(logging.INFO, logger="flwr"):
            run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
        lines = list(read_receipts(tmp_path / "nodes" / "receipts" / "masked" / "client-2.jsonl"))
        assert [(line["purpose"], line["round"]) for line in lines] == [
            ("description", 0),
            *((purpose, number) for number in (1, 2) for purpose in ("keys", "shares", "update", "opening")),
        ]
        assert [line.get("masked", False) for line in lines if line["purpose"] == "update"] == [True, True]
        assert not any(line.get("masked") for line in lines if line["purpose"] != "update")
        assert "the update is masked" in caplog.text

    def test_what_it_says_of_shares_is_no_secret(self, tmp_path):
        """Receipts have sizes and digests of keys and shares, and not themselves."""
        config, _ = configs("fedavg", name="masked")
        run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
        for line in read_receipts(tmp_path / "nodes" / "receipts" / "masked" / "client-2.jsonl"):
            assert "values" not in line["records"].get("arrays", {})
            assert len(json.dumps(line)) < 3000

    def test_flower_check_says_what_will_leave(self, tmp_path):
        config, _ = configs("fedavg")
        rehearsal = rehearse(config, 1, {"state": str(tmp_path)})
        assert rehearsal.loss > 0
        assert rehearsal.records["extras"]["arrays"][0][0] == "sums/summand"
        assert rehearsal.hidden.startswith("masked; what is seen of updates are sums of 3 clients or more")

    def test_its_status_says_that_it_is_hidden(self, tmp_path):
        config, _ = configs("fedavg")
        run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
        assert {status["masked"] for status in statuses(tmp_path / "nodes")} == {4}
        assert "masked, in a sum of 4 clients" in pages(tmp_path / "nodes")["/"]().text


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        ({"engine": {"kind": "flower", "guests": True}}, "which guests do not; set engine.guests to false"),
        ({"evaluation": {"clients": True}}, "lets nobody see a single client: set it to null"),
    ],
)
def test_what_real_parties_would_not_do_is_refused(tmp_path, sections, reason):
    config = flower_config("fedavg", **{"federation": SUMS, **sections})
    with pytest.raises(ConfigError, match=reason):
        run_on(grid_of(client_app("nowhere.yaml"), 1), config, tmp_path / "flower")


class TestSharedNoise:
    def config(self, **privacy):
        method = tiny_method("fedavg", merge=UNIFORM, upload=SHARED)
        return flower_config(method, federation=WIDE, privacy={"unit": "client", **privacy})

    def epsilon(self, multiplier, times=1):
        return epsilon_of([Release(multiplier, 1.0, times)], 1e-5, "rdp")

    def test_the_server_counts_what_happened_and_a_party_the_worst_that_it_allows(self, tmp_path):
        config = self.config()
        result = run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
        theirs = result.summary["privacy"]["against"]
        assert theirs.keys() == {"everybody"}
        assert theirs["everybody"]["epsilon"] == pytest.approx(self.epsilon(2.0, 2), rel=1e-3)
        for status in statuses(tmp_path / "nodes"):
            worst = self.epsilon(2.0 * (3 / 4) ** 0.5, 2)  # three of four are enough for a sum
            assert status["privacy"]["epsilon"] == {"everybody": pytest.approx(worst, rel=1e-3)}

    def test_the_sum_has_the_noise_of_one_mechanism(self, tmp_path):
        config, sums = self.config(), []
        for place in range(12):
            (tmp_path / str(place)).mkdir()
            one = config.model_copy(update={"federation": config.federation.model_copy(update={"rounds": 1})})
            result = run_on(grid_for(one, tmp_path / str(place)), one, tmp_path / str(place) / "flower")
            weights = result.model("mlp").state_dict()
            sums.append(4 * np.concatenate([t.numpy().reshape(-1) for t in weights.values()]))
        deviation = np.stack(sums).std(axis=0, ddof=1)
        assert 0.85 * 2.0 < np.sqrt((deviation**2).mean()) < 1.15 * 2.0

    def test_a_task_that_is_sent_again_is_counted_once(self, tmp_path):
        config = self.config()
        grid = grid_for(config, tmp_path)
        crash_in(grid, 2)
        with pytest.raises(CrashError):
            run_on(grid, config, tmp_path / "flower")
        grid.waiting.clear()
        run_on(grid, config, tmp_path / "flower")
        worst = self.epsilon(2.0 * (3 / 4) ** 0.5, 2)
        for status in statuses(tmp_path / "nodes"):
            assert status["privacy"]["epsilon"]["everybody"] == pytest.approx(worst, rel=1e-3)

    def test_an_answer_is_not_given_again_for_a_sum_with_less_noise(self, tmp_path):
        """Seven agreed on masks and the server fell; of the five that do again, four can open the sum."""
        method = tiny_method("fedavg", merge=UNIFORM, upload=SHARED)
        federation = {**WIDE, "rounds": 1}
        config = flower_config(method, federation=federation, privacy={"unit": "client"}, partition=SEVEN)
        grid = grid_for(config, tmp_path)
        falls_once(grid, after=MessageType.TRAIN)
        with pytest.raises(CrashError):
            run_on(grid, config, tmp_path / "flower")
        grid.waiting.clear()
        for client in (5, 6):
            lost_in(grid, client, "keys")
        result = run_on(grid, config, tmp_path / "flower")
        real = result.summary["privacy"]["against"]["everybody"]["clients"]["0"]
        assert real == pytest.approx(self.epsilon(2.0 * (5 / 7) ** 0.5), rel=1e-3)
        [status] = [status for status in statuses(tmp_path / "nodes") if status["client"] == 0]
        each = [Release(2.0 * (needed / 7) ** 0.5) for needed in (5, 4)]
        worst = epsilon_of(each, 1e-5, "rdp")
        assert status["privacy"]["epsilon"]["everybody"] == pytest.approx(worst, rel=1e-3)

    def test_a_server_that_lies_about_how_many_share_the_noise_fools_no_books(self, tmp_path):
        """Its own budget stops a party that is told to add next to nothing."""
        config = self.config(budget=1.5 * self.epsilon(2.0 * (3 / 4) ** 0.5, 2))
        grid = grid_for(config, tmp_path)
        push = grid.push_messages

        def lie(messages):
            messages = list(messages)
            for message in messages:
                extras = message.content.get("extras", {})
                if "upload/1/parties" in extras:
                    extras["upload/1/parties"] = type(extras["upload/1/parties"])(np.array(10**6))
            return push(messages)

        grid.push_messages = lie
        with pytest.raises(QuorumError):
            run_on(grid, config, tmp_path / "flower")
        for status in statuses(tmp_path / "nodes"):
            assert "takes part no more" in status["trouble"]


def test_the_run_is_stored_as_any_other(tmp_path):
    config, local = configs("fedavg")
    one = run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
    other = Experiment(local).run(tmp_path / "local")
    assert files_of(one.folder.final) == files_of(other.folder.final)
    assert history(one) == history(other)
    assert one.summary["bytes_up"] == other.summary["bytes_up"]
