"""What varies over what: lists, ranges, parts; and one sentence for whatever is no list of values."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.core.errors import ConfigError
from fedfuse.experiment.variants import Axis, Range, axes_of


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("partition.alpha=0.1,1.0", (0.1, 1.0)),
        ("training.epochs=1..4", (1, 2, 3, 4)),
        ("training.epochs=1..9:3", (1, 5, 9)),
        ("x=0.01..1:log:3", (0.01, 0.1, 1.0)),
        ("x=1..100:log:3", (1, 10, 100)),
        ("x=-1..1:3", (-1, 0, 1)),
        ("x=.5..1.5:2", (0.5, 1.5)),
        ("x=1e-3..1e-1:log:3", (0.001, 0.01, 0.1)),
        ("models.mlp.hidden=[32],[64, 64]", ([32], [64, 64])),
        ("method.merge={kind: mean},{kind: ties, density: 0.2}", ({"kind": "mean"}, {"kind": "ties", "density": 0.2})),
        ("x='a,b',c", ("a,b", "c")),
        ("x=true,null", (True, None)),
        ("x=1,1.0,true", (1, 1.0, True)),
        ("x=only", ("only",)),
    ],
)
def test_what_commas_and_dots_say(text: str, values: tuple[Any, ...]) -> None:
    found = Axis.read(text).values
    assert found == values
    assert list(map(type, found)) == list(map(type, values))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("partition.alpha", "write KEY=VALUE,VALUE or KEY=LOW..HIGH"),
        ("=1", "write KEY=VALUE"),
        ("a=", "write KEY=VALUE"),
        ("a=1,1", "1 stands there twice"),
        ("a=2..1", "from a number to a larger one"),
        ("a=0..1:log", "above zero have logarithms"),
        ("a=0.0..1:linear", "may stand :log and a number of steps, not 'linear'"),
        ("a=0..1:5:6", "not '6'"),
        ("a=0.0..1:1", "from 2 to 10,000 steps"),
        ("a=[1,2", "is not YAML"),
        ("seed=0,1", "write seeds=0,1,2"),
        ("name=a,b", "names from what varies"),
        (f"a={'9' * 5000}..1", "a number has too many digits"),
        (".".join("a" * 60) + "=1", "keys deep"),
    ],
)
def test_what_is_no_list_of_values_is_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)) as refused:
        axes_of([text])
    assert str(refused.value).startswith("over=")
    assert "\n" not in str(refused.value)


def test_a_range_without_steps_has_no_end_of_values() -> None:
    with pytest.raises(ConfigError, match=re.escape("say how many, for example lr=0.01..1.0:log:5")):
        _ = Axis.read("lr=0.01..1:log").values


def test_a_key_is_varied_once_whatever_it_is_called() -> None:
    with pytest.raises(ConfigError, match="is varied twice"):
        axes_of(["method=fedavg,feddf", "method.name=fedprox,moon"])


def test_python_says_the_same() -> None:
    said = axes_of(["partition.alpha=0.1,1.0", "lr=0.01..1.0:log"])
    given_ = axes_of({"partition.alpha": [0.1, 1.0], "lr": Range(0.01, 1.0, log=True)})
    assert [(axis.address, axis.given) for axis in said] == [(axis.address, axis.given) for axis in given_]
    assert axes_of({"lr": "0.01..1.0:log"})[0].given == said[1].given
    with pytest.raises(ConfigError, match="give a list of values, a Range"):
        axes_of({"lr": 3})  # type: ignore[dict-item]


@given(low=st.floats(1e-8, 1e3), factor=st.floats(1.001, 1e6), steps=st.integers(2, 30), log=st.booleans())
def test_steps_are_at_equal_distances_and_keep_the_ends(low: float, factor: float, steps: int, log: bool) -> None:
    values = Range(low, low * factor, log, steps).values
    assert values is not None
    assert (values[0], values[-1]) == (low, low * factor)
    scaled = [math.log(value) if log else value for value in values]
    gaps = [after - before for before, after in itertools.pairwise(scaled)]
    assert max(gaps) == pytest.approx(min(gaps), rel=1e-3, abs=1e-9)


def test_ends_of_a_range_are_both_whole_or_both_not_however_they_are_written():
    assert str(Range(0.01, 1, log=True)) == str(Range(0.01, 1.0, log=True)) == "0.01..1.0:log"
    assert str(Range(1, 4)) == "1..4"
