"""Paired differences: a change that changes nothing has none, and the numbers are those of the statistics book."""

from __future__ import annotations

import math

import pytest
import yaml
from benchmarks.paired import curve, main, rows

from tests.helpers import tiny_config

pytestmark = pytest.mark.usefixtures("without_pictures")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "experiment.yaml"
    values = tiny_config("fedavg").model_dump(mode="json", exclude={"method"})
    path.write_text(yaml.safe_dump({**values, "federation": {"rounds": 3}}))
    return str(path)


def test_mean_and_standard_error():
    without = [{1: 0.5, 2: 0.6}, {1: 0.7, 2: 0.6}, {1: 0.6, 2: 0.6, 3: 0.9}]
    changed = [{1: 0.6, 2: 0.6}, {1: 0.7, 2: 0.6}, {1: 0.8, 2: 0.6, 3: 0.1}]
    first, second = rows(without, changed)
    assert (first.round, second.round) == (1, 2)
    assert first.without == pytest.approx(60)
    assert first.gain == pytest.approx(10)
    assert first.error == pytest.approx(10 / math.sqrt(3))
    assert (second.gain, second.error) == (0, 0)


def test_a_run_has_an_accuracy_for_every_round(file):
    measured = curve(file, (1, ["evaluation.every=2"]))
    assert set(measured) == {2, 3}
    assert all(0 <= accuracy <= 1 for accuracy in measured.values())
    assert curve(file, (1, [])) != curve(file, (2, []))


def test_the_same_twice_makes_no_difference(file, capsys):
    assert main([file, "--set", "method=fedprox", "--change", "compute.threads=1", "--seeds", "0,1"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["round", "without", "change", "error"]
    assert [line.split()[2:] for line in lines] == [["+0.00", "0.00"]] * 3


def test_a_mistake_is_told_before_anything_runs(file, capsys):
    with pytest.raises(SystemExit):
        main([file, "--change", "method.local.strenght=1", "--set", "method=fedprox"])
    assert "strenght" in capsys.readouterr().err
