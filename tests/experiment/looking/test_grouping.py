"""Which runs form a row, and what rows are called that differ in more than their seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.report.runs import CLIENTS, Made, write_run

import fedfuse
from fedfuse.experiment.looking import variation
from fedfuse.experiment.looking.comparison import Comparison

MLP = {"mlp": {"arch": "mlp"}}


def divided(alpha: float) -> dict[str, Any]:
    return {"partition": {"kind": "dirichlet", "clients": CLIENTS, "alpha": alpha}}


def gathered(folder: Path, *runs: Made) -> Comparison:
    for number, made in enumerate(runs):
        write_run(folder / str(number), made)
    return fedfuse.load_runs(folder)


def test_seeds_are_one_row_on_whatever_machine_they_ran(tmp_path: Path) -> None:
    elsewhere = {"compute": {"threads": 4, "stack": False, "device": "cpu"}, "engine": {"kind": "local", "workers": 3}}
    drawn = {"evaluation": {"target_accuracy": 0.7, "pictures": False}}
    found = gathered(tmp_path, Made(seed=0), Made(seed=1, sections=elsewhere), Made(seed=2, sections=drawn))
    (row,) = found.rows
    assert row.seeds == (0, 1, 2)
    assert row.variant == ""


@pytest.mark.parametrize(
    ("sections", "names"),
    [
        (divided(0.1), ["alpha=0.5", "alpha=0.1"]),
        ({"partition": {"kind": "iid", "clients": CLIENTS}}, ["partition=dirichlet", "partition=iid"]),
        ({"training": {"epochs": 7}}, ["epochs=1", "epochs=7"]),
        ({"training": {"optimizer": {"kind": "sgd", "momentum": 0.5}}}, ["momentum=0", "momentum=0.5"]),
        ({"models": {"mlp": {"arch": "mlp", "hidden": [7]}}}, ["hidden=[64]", "hidden=[7]"]),
        ({"compute": {"precision": "bf16"}}, ["precision=float32", "precision=bf16"]),
        ({"data": {"name": "blobs", "examples": 99}}, ["examples=2000", "examples=99"]),
    ],
    ids=str,
)
def test_rows_that_differ_otherwise_are_called_by_the_keys_that_differ(
    tmp_path: Path, sections: dict[str, Any], names: list[str]
) -> None:
    found = gathered(tmp_path, Made(), Made(sections=sections), Made(seed=1))
    assert [row.variant for row in found.rows] == names
    assert [row.seeds for row in found.rows] == [(0, 1), (0,)]
    assert found.names() == [f"FedAvg {name}" for name in names]


def test_what_differs_only_between_methods_is_said_too(tmp_path: Path) -> None:
    """Nobody should take one of them for better because its data were easier."""
    found = gathered(tmp_path, Made("fedavg", sections=divided(0.1)), Made("feddf", sections=divided(1.0)))
    assert [(row.method, row.variant) for row in found.rows] == [("fedavg", "alpha=0.1"), ("feddf", "alpha=1")]


def test_variants_of_a_method_are_told_apart_and_other_methods_keep_their_names(tmp_path: Path) -> None:
    strong = {"method": {"name": "fedprox", "local": {"strength": 5.0}}}
    found = gathered(tmp_path, Made("fedprox"), Made(sections=strong), Made("fedavg"))
    assert found.names() == ["FedProx strength=0.01", "FedProx strength=5", "FedAvg"]


def test_a_label_is_a_name_of_its_own(tmp_path: Path) -> None:
    strong = {"method": {"name": "fedprox", "label": "strong", "local": {"strength": 5.0}}}
    assert gathered(tmp_path, Made("fedprox"), Made(sections=strong)).names() == ["FedProx", "strong"]


def test_experiments_of_other_names_are_other_rows(tmp_path: Path) -> None:
    found = gathered(tmp_path, Made(name="a"), Made(name="b"), Made(name="b", seed=1))
    assert [(row.experiment, row.seeds) for row in found.rows] == [("a", (0,)), ("b", (0, 1))]
    assert found.names() == ["a FedAvg", "b FedAvg"]


def test_many_keys_are_counted_and_names_stay_different(tmp_path: Path) -> None:
    same = {"step_decay": 0.5, "shuffle": False}
    runs = [Made(sections={"training": {"epochs": n, "batch_size": n, "stop_above": float(n), **same}}) for n in (2, 3)]
    found = gathered(tmp_path, Made(), *runs)
    assert len(set(found.names())) == 3
    assert all(row.variant.endswith(" more") for row in found.rows[1:])


def test_the_same_run_in_two_folders_counts_once_and_the_finished_one_counts(tmp_path: Path) -> None:
    found = gathered(tmp_path, Made(rounds=3, planned=5), Made(rounds=5), Made(rounds=5))
    (row,) = found.rows
    assert (row.seeds, row.rounds) == ((0,), (5,))
    assert len(found.remarks) == 2
    assert all("is the same run as" in remark for remark in found.remarks)


def test_finished_runs_are_not_averaged_with_others(tmp_path: Path) -> None:
    found = gathered(tmp_path, Made(rounds=5), Made(seed=1, rounds=2, planned=5))
    (row,) = found.rows
    assert row.seeds == (0,)
    assert found.remarks == ("study fedavg seed 1 is not finished (round 2 of 5) and not counted",)


def test_runs_that_are_all_unfinished_are_compared_at_the_round_that_all_have(tmp_path: Path) -> None:
    found = gathered(tmp_path, Made(rounds=4, planned=9), Made(seed=1, rounds=2, planned=9), Made("feddf", rounds=3))
    row, other = found.rows
    assert (row.seeds, row.rounds, row.is_finished) == ((0, 1), (2, 2), False)
    second = [run.result.history[1].prototypes["mlp"].accuracy for run in found.runs[:2]]
    assert row.accuracy_last is not None
    assert row.accuracy_last.values == tuple(second)
    assert other.is_finished


def test_a_run_without_a_round_is_in_no_row(tmp_path: Path) -> None:
    write_run(tmp_path / "begun", Made(rounds=0, planned=3))
    write_run(tmp_path / "other", Made("feddf"))
    with pytest.raises(fedfuse.FedfuseError, match="holds no run"):
        fedfuse.load_run(tmp_path / "begun")
    assert [row.method for row in fedfuse.load_runs(tmp_path).rows] == ["feddf"]


def test_other_contents_under_the_same_name_are_told(tmp_path: Path) -> None:
    found = gathered(tmp_path, Made("fedavg"), Made("feddf", data_sha256="f" * 64))
    (remark,) = found.remarks
    assert remark == (
        "study feddf seed 0 had other examples than study fedavg seed 0, though both name the same; do not compare them"
    )


def test_what_varies_is_the_kind_and_not_every_key_of_it() -> None:
    configs = [
        {"partition": {"kind": "iid", "clients": 3}, "a": {"x": 1}},
        {"partition": {"kind": "dirichlet", "clients": 3, "alpha": 1.0}, "a": {"x": 1, "y": None}},
        {"partition": {"kind": "dirichlet", "clients": 3, "alpha": 2.0}, "a": {"x": 1}},
    ]
    assert variation.varying(configs) == ["partition.kind", "partition.alpha"]
    assert variation.varying(configs[:1]) == []
    assert variation.varying([{"models": {"a": {"arch": "x"}}}, {"models": {"b": {"arch": "x"}}}]) == ["models"]


def test_short_names_are_the_shortest_that_mean_one_key() -> None:
    config = {"training": {"epochs": 1, "rate": 2}, "method": {"fuse": {"epochs": 3, "kind": "x"}}}
    names = variation.short_names(["training.epochs", "training.rate", "method.fuse.kind"], [config])
    assert names == {"training.epochs": "training.epochs", "training.rate": "rate", "method.fuse.kind": "fuse"}


def test_values_of_any_kind_are_short_words() -> None:
    values = [True, None, 0.1 + 0.2, 3, "x" * 100, ["a"], {"kind": "iid", "n": 1}, {"a": 1, "b": 2}, "\x1b[2J"]
    words = [variation.in_words(value) for value in values]
    assert words[:4] == ["yes", "-", "0.3", "3"]
    assert len(words[4]) <= 24
    assert words[5:] == ['["a"]', "iid", "a, b", " [2J"]
