"""Whether datasets can be had, asked before anything runs."""

from __future__ import annotations

import pytest

from fedfuse import DataError, Experiment, check_data


@pytest.fixture(autouse=True)
def _nothing_is_there(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("FEDFUSE_DATA", str(tmp_path))


def experiment(data: str, source: str = "digits", method: str = "fedavg") -> Experiment:
    model = {"arch": "mlp", "hidden": [4]}
    other = {"kind": "dataset", "data": {"name": source}}
    return Experiment(data={"name": data}, models={"model": model}, method=method, source=other)


def test_a_dataset_that_cannot_be_had_is_refused() -> None:
    check_data([experiment("digits")], whole=True)
    with pytest.raises(DataError, match="CIFAR-10 is not in"):
        check_data([experiment("digits"), experiment("cifar10")])


def test_a_source_counts_if_the_method_reads_it() -> None:
    check_data([experiment("digits", source="cifar10")])
    with pytest.raises(DataError, match="CIFAR-10 is not in"):
        check_data([experiment("digits", source="cifar10", method="feddf")])
