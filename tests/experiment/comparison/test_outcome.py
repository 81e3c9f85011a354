"""What a comparison's table and picture say, against the runs' own records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

from fedfuse.experiment.comparison import Cell, Comparison, Spread, conclude
from fedfuse.experiment.looking.tables import comparison_sheet
from fedfuse.experiment.result import RunResult
from fedfuse.experiment.run import Experiment
from fedfuse.experiment.sheets import summary_sheet
from fedfuse.federation.folder import RunFolder
from tests.helpers import tiny_config, tiny_method

MIXED = {"small": {"arch": "mlp", "hidden": [5]}, "wide": {"arch": "mlp", "hidden": [9]}}

pytestmark = pytest.mark.usefixtures("without_pictures")


def compared(folder: Path, methods: Sequence[Any], seeds: Sequence[int] = (0,), **sections: Any) -> Comparison:
    cells = []
    for index, method in enumerate(methods):
        for seed in seeds:
            config = tiny_config(method, seed=seed, **sections)
            cells.append(Cell(Experiment(config), RunFolder(folder / f"{index}-{seed}")))
    return conclude(cells, {cell: run(cell) for cell in cells}, folder)


def run(cell: Cell) -> RunResult:
    return cell.experiment.run(cell.folder.path)


def column(comparison: Comparison, heading: str) -> list[str]:
    sheet = comparison_sheet(comparison)
    place = sheet.headings.index(heading)
    return [numbers[place] for _, numbers in sheet.rows]


LAST = "accuracy\nlast, %"


@pytest.mark.parametrize("models", [{"mlp": {"arch": "mlp"}}, MIXED, {"ensemble": {"arch": "mlp"}}], ids=str)
def test_a_method_that_answers_as_an_ensemble_is_shown_with_its_ensemble(tmp_path: Path, models: Any) -> None:
    comparison = compared(tmp_path, ["1-ensemble", "fedavg"], models=models)
    ensemble, *others = comparison.rows
    rounds = [json.loads(line) for line in (tmp_path / "0-0" / "events.jsonl").read_text().splitlines()]
    measured = [event["ensemble_accuracy"] for event in rounds if event["event"] == "round_finished"]
    assert (ensemble.method, ensemble.prototype) == ("1-ensemble", "ensemble")
    assert ensemble.accuracy_last is not None
    assert ensemble.accuracy_best is not None
    assert ensemble.accuracy_last.values == (measured[-1],)
    assert ensemble.accuracy_best.values == (max(measured),)
    assert [row.prototype for row in others] == list(models)
    own = json.loads((tmp_path / "1-0" / "summary.json").read_text())["prototypes"]
    assert [row.accuracy_last.mean for row in others if row.accuracy_last] == [
        own[name]["accuracy_last"] for name in models
    ]


def test_the_picture_draws_the_ensemble_under_the_methods_name(tmp_path: Path) -> None:
    cells = [
        Cell(Experiment(tiny_config(method, models=MIXED)), RunFolder(tmp_path / method))
        for method in ("1-ensemble", "fedavg")
    ]
    results = {cell: run(cell) for cell in cells}
    curves = conclude(cells, results, tmp_path).curves()
    assert list(curves) == ["1-Ensemble", "FedAvg small", "FedAvg wide"]
    history = results[cells[0]].history
    assert curves["1-Ensemble"] == [[(record.round, record.ensemble_accuracy) for record in history]]


def test_a_fusion_that_only_measures_beside_another_method_leaves_that_methods_answer(tmp_path: Path) -> None:
    method = {**tiny_method("fedavg"), "fuse": {"kind": "ensemble_only"}}
    (row,) = compared(tmp_path, [method]).rows
    assert row.prototype == "mlp"


def test_rounds_to_target_of_an_ensemble_are_its_own(tmp_path: Path) -> None:
    (row,) = compared(tmp_path, ["1-ensemble"], evaluation={"target_accuracy": 0.01}).rows
    assert row.rounds_to_target == (1,)
    (row,) = compared(tmp_path / "high", ["1-ensemble"], evaluation={"target_accuracy": 1.0}).rows
    assert row.rounds_to_target == (None,)


def test_one_seed_has_no_deviation(tmp_path: Path) -> None:
    one = compared(tmp_path / "one", ["fedavg"])
    assert one.rows[0].accuracy_last is not None
    assert one.rows[0].accuracy_last.std is None
    written = json.loads((tmp_path / "one" / "comparison.json").read_text())["rows"][0]
    assert written["accuracy_last"]["std"] is None
    assert written["seconds"]["std"] is None
    assert comparison_sheet(one).title == "1 seed"
    assert "±" not in column(one, LAST)[0]


def test_several_seeds_have_their_sample_deviation(tmp_path: Path) -> None:
    three = compared(tmp_path, ["fedavg"], seeds=(0, 1, 2))
    spread = three.rows[0].accuracy_last
    assert spread is not None
    assert spread.std == pytest.approx(stdev(spread.values))
    assert comparison_sheet(three).title == "3 seeds, mean ± std"
    assert column(three, LAST) == [f"{100 * spread.mean:.2f} ± {100 * stdev(spread.values):.2f}"]
    assert three.rows[0].seeds == (0, 1, 2)


def test_what_was_not_measured_is_a_dash(tmp_path: Path) -> None:
    comparison = compared(tmp_path, ["local-only", "1-ensemble"], evaluation={"clients": False, "ensemble": False})
    assert [row.accuracy_last for row in comparison.rows] == [None, None]
    assert column(comparison, LAST) == ["-", "-"]


def test_a_mean_is_of_all_seeds_or_of_none() -> None:
    assert Spread.of_measured([0.5, None]) is None
    assert Spread.of_measured([0.5, 0.7]) == Spread.of([0.5, 0.7])


def test_refused_updates_are_counted(tmp_path: Path) -> None:
    wild = {"epochs": 1, "batch_size": 8, "optimizer": {"kind": "sgd", "learning_rate": 1e30}}
    refused = compared(tmp_path / "wild", ["fedavg"], training=wild)
    events = (tmp_path / "wild" / "0-0" / "events.jsonl").read_text().count('"update_refused"')
    assert events > 0
    assert refused.rows[0].updates_refused == (events,)
    assert column(refused, "updates\nrefused") == [str(events)]
    assert "updates\nrefused" not in comparison_sheet(compared(tmp_path / "calm", ["fedavg"])).headings


def test_a_target_that_was_looked_for_every_other_round_is_an_upper_bound(tmp_path):
    evaluation = {"every": 2, "target_accuracy": 0.3}
    cell = Cell(Experiment(tiny_config(evaluation=evaluation, federation={"rounds": 4})), RunFolder(tmp_path / "run"))
    result = cell.experiment.run(tmp_path / "run")
    (row,) = conclude([cell], {cell: result}, tmp_path).rows
    (reached,), (earliest,) = row.rounds_to_target, row.rounds_to_target_earliest
    assert reached % 2 == 0
    assert earliest == reached - 1
    sheet = comparison_sheet(conclude([cell], {cell: result}, tmp_path))
    assert f"≤ {reached:.1f}" in sheet.rows[0][1]
    assert f"≤ {reached}" in summary_sheet(result.summary).rows[0][1]
