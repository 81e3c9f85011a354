"""Runs whose server sees sums alone: their bits, what is refused and why, and when a sum is left unseen."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedfuse import audit
from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Update
from fedfuse.core.releases import Release
from fedfuse.experiment.assembly import build
from fedfuse.experiment.estimate.traffic import traffic
from fedfuse.experiment.run import Experiment
from fedfuse.federation.events import EventLog
from fedfuse.federation.sums.summation import SUMMAND
from fedfuse.parts.local import ControlVariates
from fedfuse.privacy.accountants import epsilon_of
from tests.helpers import Recorder, events_of, files_of, tiny_config, tiny_method, without_seconds

pytestmark = pytest.mark.usefixtures("without_pictures")
PLAIN = {"rounds": 2, "participation": 1.0, "claims": "taken", "moves": "taken"}
SUMS = {**PLAIN, "secure_sums": {}}
UNIFORM = {"kind": "mean", "weighting": "uniform"}
CLIP, NOISE = {"kind": "clip", "norm": 1.0}, {"kind": "noise", "multiplier": 2.0}
SHARED = {**NOISE, "shared": True}
VOTES = {"kind": "votes", "least": 0.5}
WIDE = {**SUMS, "secure_sums": {"range": 64}}
TWO = {"small": {"arch": "mlp", "hidden": [4]}, "wide": {"arch": "mlp", "hidden": [7]}}
EIGHT = {"kind": "iid", "clients": 8}

FITTING = {
    "fedavg": lambda **more: tiny_config("fedavg", **more),
    "uniform": lambda **more: tiny_config(tiny_method("fedavg", merge=UNIFORM), **more),
    "fedavgm": lambda **more: tiny_config("fedavgm", **more),
    "scaffold": lambda **more: tiny_config("scaffold", **more),
    "fedgkd-vote": lambda **more: tiny_config("fedgkd-vote", **more),
    "moon": lambda **more: tiny_config("moon", **more),
    "ds-fl": lambda **more: tiny_config("ds-fl", **more),
    "feded-w0": lambda **more: tiny_config("feded-w0", **more),
    "votes": lambda **more: tiny_config(tiny_method("feded-w0", protocol=VOTES, scores="uniform"), **more),
    "two models": lambda **more: tiny_config("scaffold", models=TWO, partition=EIGHT, **more),
    "two models, predictions": lambda **more: tiny_config("ds-fl", models=TWO, partition=EIGHT, **more),
    "clip and noise": lambda **more: tiny_config(
        tiny_method("fedavg", upload=[CLIP, {"kind": "noise", "deviation": 0.1}]), **more
    ),
}


def finished(config, out, **more):
    return Experiment(config).run(out, **more)


def history(result):
    return without_seconds([record.to_json() for record in result.history])


def models(result):
    return {name: result.model(name).state_dict() for name in result.accuracy}


def stop(entry):
    if entry["event"] == "round_started" and entry["round"] == 2:
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", list(FITTING))
def test_it_is_the_plain_run_but_for_the_grid(tmp_path, kind):
    """The same method on the same numbers, which differ in the seventh digit."""
    plain, summed = (
        finished(FITTING[kind](federation=federation), tmp_path / str(place))
        for place, federation in enumerate((PLAIN, SUMS))
    )
    for name, weights in models(plain).items():
        for key, tensor in weights.items():
            assert torch.allclose(models(summed)[name][key], tensor, atol=2e-3), (name, key)
    assert summed.history[-1].training_loss is None
    assert not events_of(summed.folder.path, "sum_withheld")


@pytest.mark.parametrize("kind", ["scaffold", "votes", "two models"])
def test_resumed_it_is_the_same_run(tmp_path, kind):
    straight = finished(FITTING[kind](federation=SUMS), tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        finished(FITTING[kind](federation=SUMS), tmp_path / "resumed", listeners=(stop,))
    resumed = finished(FITTING[kind](federation=SUMS), tmp_path / "resumed", resume=True)
    assert files_of(resumed.folder.final) == files_of(straight.folder.final)
    assert history(resumed) == history(straight)


def test_on_two_workers_it_is_the_same_run(tmp_path):
    config, workers = FITTING["scaffold"](federation=SUMS), {"kind": "local", "workers": 2}
    straight = finished(config, tmp_path / "straight")
    shared = finished(FITTING["scaffold"](federation=SUMS, engine=workers), tmp_path / "workers")
    assert files_of(shared.folder.final) == files_of(straight.folder.final)
    assert history(shared) == history(straight)


def test_it_is_part_of_what_an_experiment_is_and_only_if_it_is_there():
    assert "secure_sums" not in tiny_config("fedavg").identity()["federation"]
    one, other = (
        tiny_config("fedavg", federation={**SUMS, "secure_sums": sums}).sha256() for sums in ({}, {"range": 4})
    )
    assert one != other


def test_bytes_are_those_that_were_estimated(tmp_path):
    config = FITTING["uniform"](federation=SUMS)
    result = finished(config, tmp_path / "run")
    numbers = sum(tensor.numel() for tensor in models(result)["mlp"].values())
    assert result.summary["bytes_up"] == 2 * 4 * 4 * numbers  # rounds, clients, bytes
    said = traffic(build(config, EventLog()))
    assert (said.up, said.down) == (result.summary["bytes_up"], result.summary["bytes_down"])


def test_nothing_of_a_single_client_is_left_to_attack(tmp_path):
    finished(FITTING["fedavg"](federation={**SUMS, "rounds": 1}), tmp_path / "run")
    found = audit(tmp_path / "run", shadows=0)
    assert {one.what for one in found.findings} == {"final model mlp"}


@pytest.mark.parametrize(
    ("clients", "said"), [(None, "nobody's model is measured"), (True, "masked parties do not answer")]
)
def test_a_run_says_what_is_not_measured(tmp_path, clients, said):
    config = tiny_config("fedmd", federation={**SUMS, "rounds": 1}, evaluation={"clients": clients})
    result = finished(config, tmp_path / "run")
    assert any(said in caution for caution in result.cautions)
    assert (result.accuracy["mlp"] is None) == (clients is None)


REFUSED = {
    "feddf": ({}, "method.fuse ensemble_distillation asks single models; let clients send predictions or votes"),
    "fedbe": ({}, "method.fuse ensemble_distillation asks single models"),
    "1-ensemble": ({}, "method.fuse ensemble_only asks single models"),
    "fedma": ({}, "method.protocol layers sends something else than whole models"),
    "local-only": ({}, "method.protocol nothing sends nothing"),
    "centralised": ({}, "trains on everybody's examples in one place"),
    "fedgen": ({}, "method.local generative reads what each client says"),
    "feddistill-plus": ({}, "method.local label_logits reads what each client says"),
    "feded-w1": ({}, "method.scores labels weigh single clients; use uniform or examples"),
    "cronus": ({}, "method.scores agreement weigh single clients"),
    "cfd": ({}, r"method.upload\[0\] soft_labels packs numbers"),
    "fedavg": ({"screen": [{"kind": "norm_bound", "norm": 1.0}]}, "method.screen norm_bound compares single updates"),
    "fedprox": ({"merge": {"kind": "median"}}, "method.merge median looks at single models; use mean or momentum"),
    "moon": ({"upload": [{"kind": "half"}]}, r"method.upload\[0\] half packs numbers"),
    "fedavgm": ({"upload": [{**CLIP, "quantile": 0.5}]}, "clip lets each client say something aside"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_needs_more_than_sums_is_refused_with_the_way_out(name):
    parts, reason = REFUSED[name]
    with pytest.raises(ConfigError, match=f"^federation.secure_sums lets the server see sums alone, but .*{reason}"):
        build(tiny_config(tiny_method(name, **parts), federation=SUMS), EventLog())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"claims": "bounded"}, "set federation.claims to taken"),
        ({"moves": "bounded"}, "set federation.moves to taken"),
        ({"batch_norm": "last"}, "federation.batch_norm last takes the statistics of one client"),
        ({"keep_clients": True}, "federation.keep_clients keeps every client's model"),
        ({"clock": {}}, "federation.clock counts by how many examples"),
        ({"clients_per_round": 2}, "a round has 2 clients of 'mlp' at most, and no sum of fewer than 3"),
        ({"secure_sums": {"least": 5}}, "a round has 4 clients of 'mlp' at most"),
    ],
)
def test_federations_that_look_at_single_clients_are_refused(changes, reason):
    with pytest.raises(ConfigError, match=reason):
        build(tiny_config("fedavg", federation={**SUMS, **changes}), EventLog())


def test_an_objective_that_listens_otherwise_has_to_say_so_anew():
    class Curious(ControlVariates):
        kind: str = "curious"

        def after_round(self, view, updates, weights):
            return super().after_round(view, updates, weights)

    config = tiny_config("scaffold", federation=SUMS)
    method = config.method.model_copy(update={"local": Curious()})
    with pytest.raises(ConfigError, match=r"Curious reads what each client says"):
        build(config.model_copy(update={"method": method}), EventLog())


def played(config, bend):
    """One round of an engine whose answers are bent."""
    built = build(config, EventLog(listeners=((heard := Recorder()),)))
    engine = built.federation.engine

    class Bent(type(engine)):
        def train(self, tasks, states):
            yield from bend(list(super().train(tasks, states)))

    engine.__class__ = Bent
    before = built.federation.start()
    return before.server, built.federation.advance(before).server, heard


@pytest.mark.parametrize(("missing", "is_made"), [(0, True), (1, True), (2, False), (3, False), (4, False)])
def test_a_sum_of_too_few_is_never_made(missing, is_made):
    before, after, heard = played(FITTING["scaffold"](federation=SUMS), lambda answers: answers[missing:])
    assert bool(heard.of("sum_withheld")) == (not is_made and missing < 4)
    assert after.weights["mlp"].equals(before.weights["mlp"]) != is_made
    if heard.of("sum_withheld"):
        here = 4 - missing
        assert heard.of("sum_withheld")[0]["reason"] == (
            f"only {here} of 4 clients are in the sum of model 'mlp', and federation.secure_sums asks for 3"
        )


def test_one_model_may_have_a_sum_where_another_has_none():
    config = FITTING["two models"](federation=SUMS)
    before, after, heard = played(config, lambda answers: [a for a in answers if a[0].client not in (0, 1)])
    [withheld] = heard.of("sum_withheld")
    assert "only 2 of 4 clients are in the sum of model 'small'" in withheld["reason"]
    assert after.weights["small"].equals(before.weights["small"])
    assert not after.weights["wide"].equals(before.weights["wide"])


def of(update, **changes):
    return Update(**{**vars(update), **changes})


def other(update, change):
    return of(update, extras={SUMMAND: change(update.extras[SUMMAND])})


WRONG = {
    "too short": lambda update: other(update, lambda summand: summand[1:]),
    "of another type": lambda update: other(update, lambda summand: summand.float()),
    "narrower": lambda update: other(update, lambda summand: summand.int()),
    "with something beside it": lambda update: of(update, extras={**update.extras, "more": torch.zeros(1)}),
    "nothing": lambda update: of(update, extras={}),
    "of another round": lambda update: of(update, round=7),
    "many examples": lambda update: of(update, examples=0),
}


@pytest.mark.parametrize("kind", list(WRONG))
def test_a_summand_that_is_none_is_refused_and_the_others_are_added(kind):
    def bend(answers):
        return [(WRONG[kind](update) if update.client == 2 else update, state) for update, state in answers]

    _, bent, heard = played(FITTING["fedavg"](federation=SUMS), bend)
    _, missing, _ = played(FITTING["fedavg"](federation=SUMS), lambda answers: [a for a in answers if a[0].client != 2])
    assert heard.of("update_refused")[0]["client"] == 2
    assert bent.weights["mlp"].equals(missing.weights["mlp"])


def test_an_example_count_that_wraps_around_spoils_no_model():
    def bend(answers):
        def lie(summand):
            return torch.cat([torch.tensor([np.iinfo(np.int64).max]), summand[1:]])

        return [(other(u, lie) if u.client == 2 else u, state) for u, state in answers]

    before, after, heard = played(FITTING["fedavg"](federation=SUMS), bend)
    assert "a number that they cannot have" in heard.of("sum_withheld")[0]["reason"]
    assert after.weights["mlp"].equals(before.weights["mlp"])


@pytest.mark.parametrize("attack", [{"kind": "sign_flip", "factor": 1e9}, {"kind": "a_little_is_enough"}])
def test_hostile_clients_are_in_the_sum_and_move_it_no_further_than_the_range(attack):
    federation = {**SUMS, "rounds": 1, "secure_sums": {"range": 0.5}}
    config = FITTING["uniform"](federation=federation, attack={"clients": 1, **attack})
    built = build(config, EventLog())
    before = built.federation.start()
    after = built.federation.advance(before).server
    moved = after.weights["mlp"].flat - before.server.weights["mlp"].flat
    assert 0 < float(moved.abs().max()) <= 0.5
    assert after.history[-1].clients == (0, 1, 2, 3)


class TestSharedNoise:
    """The number holds against the server as well."""

    def config(self, federation=WIDE, budget=None, link=SHARED):
        method = tiny_method("fedavg", merge=UNIFORM, upload=[CLIP, link])
        return tiny_config(method, federation=federation, privacy={"unit": "client", "budget": budget})

    def epsilon(self, multiplier, visits):
        return epsilon_of([Release(multiplier, 1.0, visits)], 1e-5, "rdp")

    def test_there_is_one_number_and_it_is_of_the_sum(self, tmp_path):
        result = finished(self.config(), tmp_path / "run")
        told = result.summary["privacy"]["against"]
        assert told.keys() == {"everybody"}
        expected = self.epsilon(2.0, 2)
        assert expected < result.epsilon < 1.001 * expected  # for rounding, a little is added
        assert result.history[-1].privacy.server is None

    def test_of_a_coarse_grid_more_is_added(self, tmp_path):
        coarse = {**SUMS, "secure_sums": {"range": 64, "bits": 10}}
        results = [finished(self.config(f), tmp_path / str(place)) for place, f in enumerate((WIDE, coarse))]
        assert results[1].epsilon > 1.1 * results[0].epsilon

    def test_noise_that_is_missing_is_counted(self):
        _, after, _ = played(self.config(), lambda answers: answers[1:])
        bound = 2.0 * (3 / 4) ** 0.5
        assert after.history[-1].privacy.epsilon == pytest.approx(self.epsilon(bound, 1), rel=1e-3)

    def test_a_sum_that_costs_too_much_is_not_looked_at(self):
        budget = 1.01 * self.epsilon(2.0, 1)
        before, after, heard = played(self.config(budget=budget), lambda answers: answers[1:])
        assert "their noise is too little for the budget" in heard.of("sum_withheld")[0]["reason"]
        assert after.weights["mlp"].equals(before.weights["mlp"])
        assert after.history[-1].privacy.epsilon == 0

    def test_a_range_that_would_cut_off_the_noise_is_refused(self):
        with pytest.raises(ConfigError, match=r"range is 8, which would cut off noise .* 10\.24 or more"):
            build(self.config(federation=SUMS), EventLog())
        build(self.config(federation={**SUMS, "secure_sums": {"range": 10.24}}), EventLog())

    def test_noise_of_ones_own_is_counted_as_ever(self, tmp_path):
        result = finished(self.config(link=NOISE), tmp_path / "run")
        assert result.epsilon == pytest.approx(self.epsilon(2.0, 2))
