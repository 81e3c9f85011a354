"""Metrics in whole runs: from files, of one's own, resumed, beside the same training."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from fedfuse.core.errors import ConfigError, RunFolderError
from fedfuse.experiment.assembly import build
from fedfuse.experiment.choices import as_begun
from fedfuse.experiment.comparison import Cell, conclude
from fedfuse.experiment.config import validate
from fedfuse.experiment.looking.metric_sheets import comparison_metric_sheets, metric_sheets
from fedfuse.experiment.run import Experiment
from fedfuse.federation.events import EventLog
from fedfuse.federation.folder import RunFolder
from fedfuse.parts.metrics import CalibrationError, MacroF1
from tests.experiment.test_resume import StopAt, assert_same
from tests.helpers import events_of, files_of, tiny_config, tiny_method, without_seconds

pytestmark = pytest.mark.usefixtures("without_pictures")

EVERY = [
    "accuracy",
    "loss",
    "macro_f1",
    "balanced_accuracy",
    "auroc",
    "calibration_error",
    "per_class_accuracy",
]
MODULE = """
from fedfuse.parts.metrics import Metric

class TopK(Metric):
    k: int = 3
    unit = "percent"

    def compute(self, predictions):
        best = predictions.logits.argsort(axis=1)[:, -self.k :]
        return (best == predictions.labels[:, None]).any(axis=1).mean()

class Errors(Metric):
    better = "lower"

    def compute(self, predictions):
        return int((predictions.predicted != predictions.labels).sum())

class Broken(Metric):
    def compute(self, predictions):
        raise RuntimeError("no luck")

class Empty(Metric):
    pass

class Stranger:
    pass
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "own_metrics.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield "own_metrics"
    sys.modules.pop("own_metrics", None)


def experiment(method="fedavg", metrics=(), **sections):
    return Experiment(tiny_config(method, **{"evaluation": {"metrics": metrics}, **sections}))


def macro_f1(model, test):
    with torch.no_grad():
        answers = model(test.transform(test.examples.inputs)).argmax(dim=1)
    return f1_score(test.examples.labels, answers, average="macro")


@pytest.mark.parametrize("method", ["fedavg", "feddf", "fedmd", "1-ensemble", "local-only"])
def test_metrics_change_nothing_else(tmp_path, method):
    plain = experiment(method).run(tmp_path / "plain")
    measured = experiment(method, EVERY).run(tmp_path / "measured")
    assert files_of(plain.folder.final) == files_of(measured.folder.final)
    for before, after in zip(plain.history, measured.history, strict=True):
        bare = {name: value for name, value in after.to_json().items() if name != "ensemble_metrics"}
        bare["prototypes"] = {
            name: {key: value for key, value in own.items() if not key.startswith("metrics")}
            for name, own in bare["prototypes"].items()
        }
        assert without_seconds(bare) == without_seconds(before.to_json())


@pytest.mark.parametrize("method", ["fedavg", "feddf"])
def test_accuracy_and_loss_as_metrics_are_the_records_own(out, method):
    result = experiment(method, EVERY).run(out)
    for record in result.history:
        for own in record.prototypes.values():
            assert own.metrics["accuracy"] == own.accuracy
            assert own.metrics["loss"] == pytest.approx(own.loss)
            assert own.metrics_before_fusion.get("accuracy") == own.accuracy_before_fusion
        assert record.ensemble_metrics.get("accuracy") == record.ensemble_accuracy


def test_the_record_of_the_final_model_is_scikit_learns(out):
    one = experiment("feddf", ["macro_f1"])
    result = one.run(out)
    test, model = build(one.config, EventLog()).federation.test, result.model()
    expected = macro_f1(model, test)
    assert result.history[-1].prototypes["mlp"].metrics == {"macro_f1": pytest.approx(expected)}


def test_without_a_servers_model_it_is_the_mean_over_the_clients_own(out):
    one = experiment("local-only", ["macro_f1", "per_class_accuracy"], federation={"rounds": 2})
    result = one.run(out)
    test = build(one.config, EventLog()).federation.test
    values = [macro_f1(result.client_model(client), test) for client in range(4)]
    assert result.history[-1].prototypes["mlp"].metrics == {
        "macro_f1": pytest.approx(np.mean(values)),
        "per_class_accuracy": None,
    }


def test_only_evaluated_rounds_have_metrics(out):
    evaluation = {"every": 2, "metrics": ["macro_f1"]}
    result = Experiment(tiny_config(federation={"rounds": 3}, evaluation=evaluation)).run(out)
    assert [list(record.prototypes["mlp"].metrics) for record in result.history] == [[], ["macro_f1"], ["macro_f1"]]


def test_a_metric_from_outside_is_named_in_the_file_by_its_address(module, out):
    metrics = [f"{module}:TopK", {"kind": f"{module}:TopK", "k": 1, "label": "top1"}, f"{module}:Errors"]
    one = experiment(metrics=metrics)
    result = one.run(out)
    last = result.history[-1].prototypes["mlp"]
    assert last.metrics["TopK"] == 1  # of three classes
    assert last.metrics["top1"] == last.accuracy
    assert last.metrics["Errors"] == pytest.approx((1 - last.accuracy) * result.summary["data"]["test"])
    assert list(result.summary["code"]) == [f"{module}:Errors", f"{module}:TopK"]
    begun = Experiment.load(out).config
    assert as_begun(one.config, begun) == begun
    entries = result.summary["prototypes"]["mlp"]["metrics"]
    shown = {name: (entry["better"], entry["unit"]) for name, entry in entries.items()}
    assert shown == {"TopK": ("higher", "percent"), "top1": ("higher", "percent"), "Errors": ("lower", "number")}


def test_a_metric_from_outside_comes_by_set_and_as_an_object(module):
    loaded = Experiment.load("digits", [f"evaluation.metrics=[macro_f1, {{kind: '{module}:TopK', k: 2}}]"])
    top_k = type(loaded.config.evaluation.metrics[1])
    same = Experiment.load("digits", evaluation={"metrics": [MacroF1(), top_k(k=2)]})
    assert same.config == loaded.config
    assert same.config.sha256() == loaded.config.sha256()


@pytest.mark.parametrize("method", ["feddf", "fedmd"])
@pytest.mark.parametrize(("kind", "count"), [("client_finished", 2), ("round_finished", 1), ("round_finished", 2)])
def test_a_run_with_metrics_goes_on_with_the_same_bits(module, tmp_path, method, kind, count):
    one = experiment(method, [*EVERY, f"{module}:TopK", f"{module}:Broken"], federation={"rounds": 3})
    expected = one.run(tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        one.run(tmp_path / "stopped", listeners=(StopAt(kind, count),))
    assert_same(one.run(tmp_path / "stopped", resume=True), expected)


def test_a_metric_that_fails_is_null_in_every_file_and_said_once(module, out):
    result = experiment("feddf", ["macro_f1", f"{module}:Broken"]).run(out)
    (event,) = events_of(out, "metric_failed")
    assert (event["metric"], event["reason"]) == ("Broken", "RuntimeError: no luck (own_metrics.py, line 20)")
    for record in result.history:
        assert record.prototypes["mlp"].metrics["Broken"] is None
        assert record.prototypes["mlp"].metrics["macro_f1"] is not None
    entry = json.loads((out / "summary.json").read_text())["prototypes"]["mlp"]["metrics"]["Broken"]
    assert (entry["last"], entry["best"], entry["round_of_best"]) == (None, None, None)


@pytest.mark.parametrize(
    ("metrics", "sentence"),
    [
        (["macro-f1"], r"evaluation\.metrics\.0: unknown kind 'macro-f1' \(did you mean 'macro_f1'\?\)"),
        (["own_metrics:Nothing"], r"evaluation\.metrics\.0: kind: unknown name 'Nothing'"),
        (["own_metrics:Stranger"], r"own_metrics:Stranger is no Metric; derive it from fedfuse\.Metric"),
        (["own_metrics:Empty"], "own_metrics:Empty has no compute, without which it is no Metric; write it"),
        (["no_such_module:X"], "no_such_module cannot be imported"),
        ([{"kind": "calibration_error", "bin": 3}], r"evaluation\.metrics\.0: unknown key 'bin' \(did you mean 'bins'"),
        ([{"kind": "calibration_error", "bins": 0}], r"evaluation\.metrics\.0\.bins is 0, but should be greater"),
        (["auroc", "auroc"], r"evaluation: metrics has two that are called 'auroc'; give one of them another label"),
        ([{"kind": "auroc", "label": "a.b"}], r"evaluation\.metrics\.0\.label is 'a\.b', but should be text"),
        ("auroc", r"evaluation\.metrics is 'auroc', but should be a list"),
        ([3], r"evaluation\.metrics\.0 is 3, but should be a mapping"),
    ],
)
@pytest.mark.usefixtures("module")
def test_what_cannot_work_is_refused_before_anything_runs(metrics, sentence):
    with pytest.raises(ConfigError, match=sentence):
        tiny_config(evaluation={"metrics": metrics})


class TestIdentity:
    def test_no_metrics_is_the_identity_of_before(self):
        assert "metrics" not in tiny_config().identity()["evaluation"]
        assert tiny_config().sha256() == tiny_config(evaluation={"metrics": []}).sha256()

    def test_other_metrics_are_another_experiment(self, out):
        experiment(metrics=["macro_f1"]).run(out)
        for others in ([], ["auroc"], [{"kind": "calibration_error", "bins": 3}]):
            with pytest.raises(RunFolderError, match="evaluation"):
                experiment(metrics=others).run(out, resume=True)

    def test_the_source_of_a_metric_from_outside_is_in_it(self, module, tmp_path):
        before = experiment(metrics=[f"{module}:TopK"]).config.sha256()
        (tmp_path / "own_metrics.py").write_text(MODULE + "\n# changed\n")
        del sys.modules[module]
        assert experiment(metrics=[f"{module}:TopK"]).config.sha256() != before

    def test_a_name_alone_is_the_same_as_spelled_out(self):
        short, long = (tiny_config(evaluation={"metrics": [one]}) for one in ("macro_f1", {"kind": "macro_f1"}))
        assert short == long
        assert validate(json.loads(json.dumps(short.model_dump(mode="json")))) == short


def compared(tmp_path, methods, metrics, seeds=(0, 1), **sections):
    sections = {"evaluation": {"metrics": metrics}, **sections}
    configs = [tiny_config(method, seed=seed, **sections) for method in methods for seed in seeds]
    cells = [Cell(Experiment(one), RunFolder(tmp_path / str(number))) for number, one in enumerate(configs)]
    return conclude(cells, {cell: cell.experiment.run(cell.folder.path) for cell in cells}, tmp_path)


class TestTables:
    def test_a_comparison_shows_whichever_metrics_are_named(self, tmp_path):
        methods = ["fedavg", "fedmd", "1-ensemble"]
        comparison = compared(tmp_path, methods, ["macro_f1", "calibration_error", "per_class_accuracy"])
        (sheet,) = comparison_metric_sheets(comparison)
        assert sheet.keys == ("metric", "method", "model")
        shown = {names[:2]: numbers for names, numbers in sheet.rows}
        history = [Experiment.load(tmp_path / str(n)).run(tmp_path / str(n), resume=True).history for n in (0, 1)]
        for metric, pick in (("macro_f1", max), ("calibration_error", min)):
            curves = [[record.prototypes["mlp"].metrics[metric] for record in rounds] for rounds in history]
            last, best = [curve[-1] for curve in curves], [pick(curve) for curve in curves]
            expected = [f"{100 * np.mean(v):.2f} ± {100 * np.std(v, ddof=1):.2f} %" for v in (last, best)]
            assert list(shown[metric, "fedavg"]) == expected
            assert (metric, "fedmd") in shown
            assert "%" in shown[metric, "1-ensemble"][0]
        assert ("per_class_accuracy.0", "fedavg") in shown
        assert max(len(line.plain) for line in sheet.lines(80)) <= 80
        record = json.loads((tmp_path / "comparison.json").read_text())
        assert record["rows"][0]["metrics"]["macro_f1"]["last"]["values"] == [
            rounds[-1].prototypes["mlp"].metrics["macro_f1"] for rounds in history
        ]

    def test_a_comparison_without_metrics_has_no_table_of_them(self, tmp_path):
        assert comparison_metric_sheets(compared(tmp_path, ["fedavg"], [])) == []

    def test_a_run_shows_last_best_before_fusion_and_the_ensemble(self, out):
        models = {"ensemble": {"arch": "mlp", "hidden": [6]}}
        metrics = ["macro_f1", {"kind": "calibration_error", "label": "ece"}, "loss"]
        result = experiment("feddf", metrics, models=models).run(out)
        (sheet,) = metric_sheets(result.summary)
        assert [names for names, _ in sheet.rows] == [
            (metric, "ensemble") for metric in ("macro_f1", "ece", "loss") for _ in ("the model", "the ensemble")
        ]
        last = result.history[-1]
        values = [last.prototypes["ensemble"].metrics["loss"], last.ensemble_metrics["loss"]]
        assert [numbers[0] for names, numbers in sheet.rows if names[0] == "loss"] == [f"{v:.4g}" for v in values]
        before = last.prototypes["ensemble"].metrics_before_fusion["loss"]
        assert [numbers[2] for names, numbers in sheet.rows if names[0] == "loss"] == [f"{before:.4g}", "-"]

    def test_a_summary_of_an_older_version_has_no_table_of_metrics(self, out):
        summary = experiment().run(out).summary
        del summary["ensemble_metrics"], summary["prototypes"]["mlp"]["metrics"]
        assert metric_sheets(summary) == []


def test_variants_of_one_kind_have_labels(out):
    few, many = CalibrationError(bins=2, label="ece2"), CalibrationError(bins=50)
    result = experiment(metrics=[few, many]).run(out)
    assert list(result.history[-1].prototypes["mlp"].metrics) == ["ece2", "calibration_error"]


def test_metrics_are_also_measured_with_the_statistics_of_each_batch(out):
    federation = {"rounds": 1, "batch_norm": "batch"}
    result = Experiment(
        tiny_config(tiny_method("feddf"), federation=federation, evaluation={"metrics": ["accuracy"], "batch_size": 7})
    ).run(out)
    own = result.history[-1].prototypes["mlp"]
    assert own.metrics["accuracy"] == own.accuracy
