"""Private runs: their bits, their records, what leaves, and where they stop."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

import fedfuse
from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import TEST_OUTPUTS
from fedfuse.core.releases import Release
from fedfuse.experiment.assembly import build
from fedfuse.experiment.looking.tables import comparison_sheet
from fedfuse.experiment.run import Experiment
from fedfuse.experiment.sheets import closing_facts
from fedfuse.experiment.stored import load_run
from fedfuse.federation.engine import Missed
from fedfuse.federation.events import EventLog
from fedfuse.federation.folder import RunFolder
from fedfuse.privacy.accountants import epsilon_of
from fedfuse.report.monitor import Monitor
from fedfuse.report.prometheus import exposition
from fedfuse.report.run_page import run_page
from tests.helpers import Recorder, events_of, files_of, tiny_config, tiny_method, without_seconds

pytestmark = pytest.mark.usefixtures("without_pictures")
UNIFORM = {"kind": "mean", "weighting": "uniform"}
CLIP, NOISE = {"kind": "clip", "norm": 1.0}, {"kind": "noise", "multiplier": 2.0}
ADAPTIVE = {"kind": "clip", "norm": 0.3, "quantile": 0.5}
DP_SGD = {"epochs": 1, "batch_size": 8, "privacy": {"norm": 1.0, "multiplier": 1.2}}
CLIENT, EXAMPLE = {"unit": "client"}, {"unit": "example"}
STATISTICS = {"kind": "statistics", "norm": 1.0, "multiplier": 3.0}
PART = {"rounds": 2, "participation": 0.75}
VOTES = {"kind": "votes", "teachers": 2, "deviation": 3.0}

KINDS = {
    "clients": lambda **more: tiny_config(
        tiny_method("fedavg", merge=UNIFORM, upload=[CLIP, NOISE]), privacy=CLIENT, **more
    ),
    "a norm that is looked for": lambda **more: tiny_config(
        tiny_method("feddf", merge=UNIFORM, upload=[ADAPTIVE, NOISE, {"kind": "top_k"}]), privacy=CLIENT, **more
    ),
    "shared": lambda federation=PART, **more: tiny_config(
        tiny_method("fedavg", merge=UNIFORM, upload=[CLIP, {**NOISE, "shared": True}]),
        privacy=CLIENT,
        federation={**federation, "claims": "taken", "moves": "taken"},
        **more,
    ),
    "statistics": lambda **more: tiny_config(
        tiny_method("scaffold", upload=[CLIP, NOISE, STATISTICS]), privacy=CLIENT, **more
    ),
    "examples": lambda **more: tiny_config(tiny_method("scaffold"), privacy=EXAMPLE, training=DP_SGD, **more),
    "votes": lambda **more: tiny_config(tiny_method("feded-w0", protocol=VOTES), privacy=EXAMPLE, **more),
}
every_kind = pytest.mark.parametrize("kind", list(KINDS))


def finished(config, out, **more):
    return Experiment(config).run(out, **more)


def history(result):
    return without_seconds([record.to_json() for record in result.history])


def stop(entry):
    if entry["event"] == "round_started" and entry["round"] == 2:
        raise KeyboardInterrupt


class TestBits:
    @every_kind
    def test_resumed_it_is_the_same_run(self, tmp_path, kind):
        straight = finished(KINDS[kind](), tmp_path / "straight")
        with pytest.raises(KeyboardInterrupt):
            finished(KINDS[kind](), tmp_path / "resumed", listeners=(stop,))
        self.same(finished(KINDS[kind](), tmp_path / "resumed", resume=True), straight)

    @pytest.mark.parametrize("kind", ["a norm that is looked for", "examples"])
    def test_on_two_workers_it_is_the_same_run(self, tmp_path, kind):
        straight = finished(KINDS[kind](), tmp_path / "straight")
        self.same(finished(KINDS[kind](engine={"kind": "local", "workers": 2}), tmp_path / "workers"), straight)

    def same(self, one, other):
        assert files_of(one.folder.final) == files_of(other.folder.final)
        assert history(one) == history(other)
        assert without_seconds(one.summary) == without_seconds(other.summary)

    def test_a_promise_alone_changes_no_bit(self, tmp_path):
        """Noise of a deviation, with and without somebody who counts it: but for the examples that are not told."""
        method = tiny_method("fedavg", merge=UNIFORM, upload=[CLIP, {"kind": "noise", "deviation": 2.0}])
        plain = finished(tiny_config(method), tmp_path / "plain")
        counted = finished(tiny_config(method, privacy=CLIENT), tmp_path / "counted")
        assert files_of(plain.folder.final) == files_of(counted.folder.final)
        assert counted.epsilon == pytest.approx(finished(KINDS["clients"](), tmp_path / "same").epsilon)

    def test_identities_of_runs_without_a_promise_are_what_they_were(self):
        upload = tiny_config(tiny_method("fedavg", upload=[CLIP, {"kind": "noise", "deviation": 2.0}])).identity()
        assert upload["method"]["upload"] == [CLIP, {"kind": "noise", "deviation": 2.0}]
        assert "privacy" not in upload
        assert "privacy" not in upload["training"]

    def test_a_promise_is_part_of_what_a_run_is(self):
        one, other = KINDS["clients"](), KINDS["clients"]().model_copy(update={"privacy": None})
        assert one.sha256() != other.sha256()


class TestWhatIsTold:
    @every_kind
    def test_every_round_and_the_summary_have_epsilon(self, tmp_path, kind):
        result = finished(KINDS[kind](), tmp_path / "run")
        epsilons = [record.privacy.epsilon for record in result.history]
        assert 0 < epsilons[0] < epsilons[1] == result.epsilon
        logged = events_of(tmp_path / "run", "round_finished")
        assert [event["privacy"]["epsilon"] for event in logged] == epsilons
        told = result.summary["privacy"]
        assert max(told["against"][next(iter(told["against"]))]["clients"].values()) == told["epsilon"]
        assert told["noise"] == "from the seed: a simulation"
        assert events_of(tmp_path / "run", "run_started")[0]["privacy"]["planned"] >= told["epsilon"] - 1e-9

    def test_of_a_client_nothing_but_its_update_is_told(self, tmp_path):
        finished(KINDS["clients"](), tmp_path / "run")
        for event in events_of(tmp_path / "run", "client_finished"):
            assert event["examples"] == 1
            assert event["metrics"] == {}
        assert all(event["training_loss"] is None for event in events_of(tmp_path / "run", "round_finished"))

    def test_a_run_without_a_promise_says_nothing_of_it(self, tmp_path):
        result = finished(tiny_config(), tmp_path / "run")
        assert result.epsilon is None
        assert "privacy" not in result.summary
        assert "privacy" not in events_of(tmp_path / "run", "round_finished")[0]

    def test_the_closing_lines_and_the_pages_say_it(self, tmp_path):
        experiment = Experiment(KINDS["shared"](name="both"))
        result = experiment.run(tmp_path / "run")
        told = closing_facts(experiment, result)["privacy"]
        assert "against others" in told
        assert "against server" in told
        assert told.endswith("at delta 1e-05, of every client (rdp); noise from the seed: a simulation")
        counts = Monitor(RunFolder(tmp_path / "run")).look()
        page = run_page(counts, "run", True, None)
        assert "epsilon so far" in page
        assert "towards the server" in page
        assert f'fedfuse_epsilon{{run="run"}} {result.epsilon!r}' in exposition(counts, "run", True)

    def test_a_comparison_has_a_column(self, tmp_path):
        methods = [
            tiny_method("fedavg", merge=UNIFORM, upload=[CLIP, {**NOISE, "multiplier": z}], label=f"z{z}")
            for z in (1.0, 4.0)
        ]
        base = KINDS["clients"]().model_dump(mode="json", exclude={"method"})
        comparison = fedfuse.compare(base, methods, [0, 1], out=tmp_path / "all")
        assert comparison.rows[0].epsilon[0] > comparison.rows[1].epsilon[0]
        assert "epsilon" in comparison_sheet(comparison).text()
        stored = json.loads((tmp_path / "all" / "comparison.json").read_text())
        assert stored["rows"][0]["epsilon"] == list(comparison.rows[0].epsilon)

    def test_an_unfinished_run_is_read_as_far_as_it_got(self, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            finished(KINDS["clients"](), tmp_path / "run", listeners=(stop,))
        result = load_run(tmp_path / "run")
        assert result.history[-1].privacy.epsilon > 0
        assert result.epsilon == result.history[-1].privacy.epsilon


class TestBudget:
    def config(self, **more):
        # With multiplier 2: 2.17, 3.2, 4.05, 4.73 after one to four visits.
        privacy = {**CLIENT, "budget": 4.2}
        return KINDS["clients"](federation={"rounds": 9, "participation": 0.75, **more}).model_copy(
            update={"privacy": tiny_config(tiny_method("local-only"), privacy=privacy).privacy}
        )

    def test_clients_stop_one_by_one_and_the_run_with_the_last(self, tmp_path):
        heard = Recorder()
        result = finished(self.config(), tmp_path / "run", listeners=(heard,))
        visits = dict.fromkeys(range(4), 0)
        for record in result.history:
            for client in record.clients:
                visits[client] += 1
        assert set(visits.values()) == {3}
        assert result.epsilon <= 4.2
        assert len(result.history) < 9
        assert result.history[-1].privacy.left == 0
        assert sorted(event["client"] for event in heard.of("client_spent")) == [0, 1, 2, 3]

    def test_resumed_it_stops_where_it_would_have(self, tmp_path):
        straight = finished(self.config(), tmp_path / "straight")
        with pytest.raises(KeyboardInterrupt):
            finished(self.config(), tmp_path / "run", listeners=(stop,))
        resumed = finished(self.config(), tmp_path / "run", resume=True)
        assert history(resumed) == history(straight)

    def test_noise_is_chosen_for_the_budget_and_written_down(self, tmp_path):
        auto = [CLIP, {**NOISE, "multiplier": "auto"}]
        config = tiny_config(tiny_method("fedavg", merge=UNIFORM, upload=auto), privacy={**CLIENT, "budget": 3.0})
        result = finished(config, tmp_path / "run")
        assert 2.9 < result.summary["privacy"]["epsilon"] <= 3.0
        written = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
        chosen = written["method"]["upload"][1]["multiplier"]
        assert events_of(tmp_path / "run", "run_started")[0]["chosen"]["method.upload[1].multiplier"] == chosen
        again = finished(config, tmp_path / "run", resume=True)
        assert again.epsilon == result.epsilon
        with pytest.raises(KeyboardInterrupt):
            finished(config, tmp_path / "other", listeners=(stop,))
        assert files_of(finished(config, tmp_path / "other", resume=True).folder.final) == files_of(result.folder.final)

    def test_too_little_shared_noise_keeps_the_sum_at_home(self):
        config = KINDS["shared"](federation={"rounds": 2, "participation": 1.0})
        budget = 3.3
        config = config.model_copy(update={"privacy": config.privacy.model_copy(update={"budget": budget})})
        built = build(config, EventLog(listeners=((heard := Recorder()),)))

        class Missing(type(built.federation.engine)):
            def train(self, tasks, states):
                yield from super().train(tasks[:1], states)  # three of four never answer

        built.federation.engine.__class__ = Missing
        before = built.federation.start()
        after = built.federation.advance(before)
        assert heard.of("sum_withheld")[0]["reason"].startswith("only 1 of 4 clients are in the sum")
        assert after.server.weights["mlp"].equals(before.server.weights["mlp"])
        assert after.server.history[-1].privacy.epsilon == 0
        assert after.server.history[-1].privacy.server > 0

    def test_who_was_absent_took_a_share_of_the_noise_away(self):
        built = build(KINDS["shared"](federation={"rounds": 2, "participation": 1.0}), EventLog())

        class Absent(type(built.federation.engine)):
            def train(self, tasks, states):
                yield from super().train(tasks[1:], states)

            def missed(self):
                return {0: Missed("absent", "its node went away")}

        built.federation.engine.__class__ = Absent
        after = built.federation.advance(built.federation.start()).server
        assert after.history[-1].absent == (0,)
        expected = epsilon_of([Release(2.0 * (3 / 4) ** 0.5)], 1e-5, "rdp")
        assert after.history[-1].privacy.epsilon == pytest.approx(expected)


class TestMeasurements:
    def test_own_models_are_measured_where_they_are_private_themselves(self, tmp_path):
        method = tiny_method("fedmd")
        covered = finished(tiny_config(method, privacy=EXAMPLE, training=DP_SGD), tmp_path / "covered")
        assert covered.accuracy["mlp"] is not None
        links = [CLIP, NOISE]
        silent = finished(tiny_config(tiny_method("fedmd", upload=links), privacy=CLIENT), tmp_path / "silent")
        assert silent.accuracy["mlp"] is None

    def test_scores_about_test_inputs_do_not_leave_without_noise(self):
        """FedED-w1 sends label counts with them, which have noise in the update alone."""
        method = tiny_method("feded-w1", upload=[{"kind": "statistics", "multiplier": 1.0}])
        built = build(tiny_config(method, privacy=EXAMPLE, training=DP_SGD), EventLog())
        clients, told = built.federation.engine.clients, []
        work = clients.work_together

        def watched(tasks, states):
            answers = work([replace(task, asks=(*task.asks, TEST_OUTPUTS)) for task in tasks], states)
            told.extend(update.test_outputs for update, _ in answers)
            return answers

        object.__setattr__(clients, "work_together", watched)
        built.federation.advance(built.federation.start())
        built.federation.engine.close()
        assert told
        assert not any(told)

    def test_a_simulation_may_measure_them_and_says_what_that_is(self, tmp_path):
        method = tiny_method("fedmd", upload=[CLIP, NOISE])
        config = tiny_config(method, privacy=CLIENT, evaluation={"clients": True})
        result = finished(config, tmp_path / "run")
        assert result.accuracy["mlp"] is not None
        assert any("real parties would not answer" in caution for caution in result.cautions)


@pytest.mark.parametrize(
    ("kind", "delta", "is_said"),
    [
        ("clients", 0.25, True),
        ("clients", 0.01, False),
        ("examples", 0.25, True),
        ("examples", 1e-5, False),
    ],
)
def test_a_delta_with_which_one_of_all_may_be_published_is_said(tmp_path, kind, delta, is_said):
    config = KINDS[kind]()
    config = config.model_copy(update={"privacy": config.privacy.model_copy(update={"delta": delta})})
    result = finished(config, tmp_path / "run")
    said = [caution for caution in result.cautions if "would be private enough" in caution]
    assert bool(said) == is_said
    assert all("set it well below" in caution for caution in said)


class TestNoiseInTheUploads:
    def uploads(self, **more):
        """What leaves each client in each round, of a training that moves nothing."""
        config = KINDS["clients"](**more).model_copy(update={"seed": 1})
        training = config.training.model_copy(
            update={"optimizer": config.training.optimizer.model_copy(update={"learning_rate": 1e-12})}
        )
        built = build(config.model_copy(update={"training": training}), EventLog())
        sent, snapshot = {}, built.federation.start()
        work = built.clients.work_together

        def watched(tasks, states):
            answers = work(tasks, states)
            for task, (update, _) in zip(tasks, answers, strict=True):
                sent[task.round, task.client] = update.extras["upload/weights"] - task.weights.flat
            return answers

        object.__setattr__(built.federation.engine.clients, "work_together", watched)
        for _ in range(3):
            snapshot = built.federation.advance(snapshot)
        built.federation.engine.close()
        return sent

    def test_has_the_variance_that_is_promised_and_no_memory(self):
        sent = self.uploads(engine={"kind": "local", "workers": 1}, federation={"rounds": 3, "participation": 1.0})
        assert len(sent) == 12
        table = torch.stack(list(sent.values()))
        assert float(table.std()) == pytest.approx(2.0, rel=0.08)
        correlations = torch.corrcoef(table).fill_diagonal_(0)
        assert float(correlations.abs().max()) < 0.55, "between clients and between rounds"


class TestPlan:
    def test_is_what_the_run_comes_to(self, tmp_path):
        for kind in ("clients", "examples"):
            config = KINDS[kind]()
            plan = fedfuse.plan_privacy(Experiment(config))
            result = finished(config, tmp_path / kind)
            assert plan.epsilon == pytest.approx(result.epsilon)
            told = {int(c): e for c, e in result.summary["privacy"]["against"]["everybody"]["clients"].items()}
            assert plan.clients == pytest.approx(told)
            assert list(plan.by_round.values()) == sorted(plan.by_round.values())

    def test_noise_for_budgets(self):
        plan = fedfuse.plan_privacy(Experiment(KINDS["clients"]()), budgets=[1.0, 4.0])
        assert plan.noise[1.0]["method.upload[1].multiplier"] > plan.noise[4.0]["method.upload[1].multiplier"]
        assert "noise that a budget needs" in repr(plan)

    def test_without_a_promise_there_is_nothing_to_plan(self):
        with pytest.raises(ConfigError, match="this experiment promises no privacy"):
            fedfuse.plan_privacy(Experiment(tiny_config()))


def test_replaying_the_last_round_gives_the_same(tmp_path):
    result = finished(KINDS["clients"](), tmp_path / "run")
    last = fedfuse.replay(result.folder.path)
    assert last.final.equals(fedfuse.Weights.of(result.model()))


def test_the_folder_of_an_experiment_that_is_private_has_no_more_files(tmp_path):
    plain = finished(tiny_config(), tmp_path / "plain")
    private = finished(KINDS["clients"](), tmp_path / "private")
    names = [
        sorted(str(p.relative_to(r.folder.path)) for p in Path(r.folder.path).rglob("*")) for r in (plain, private)
    ]
    assert names[0] == names[1]
