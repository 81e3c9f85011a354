"""check_part: whoever breaks a law is named with the law and with what differed; our own parts keep them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from fedfuse import Method
from fedfuse.parts.local import Plain, Proximal
from fedfuse.parts.merge import Mean, Momentum
from fedfuse.testing import check_part
from fedfuse.testing.laws import EVERY
from fedfuse.testing.slots import SLOTS
from tests.outside.page import ROOT
from tests.testing import bad_parts

BROKEN = {
    bad_parts.Talkative: ("runs", "the server refused an update: "),
    bad_parts.Infinite: ("runs", "weights were not finite after the merge"),
    bad_parts.Failing: ("runs", "the metric failed: "),
    bad_parts.KeepsNumbers: ("keeps nothing but tensors", r"'local/visits' in the state of client \d is a int, but"),
    bad_parts.KeepsGraphs: ("keeps nothing but tensors", r"'local/first' in the state of client \d still has its grad"),
    bad_parts.GlobalRandomness: ("gives the same bits again", "the weights of model one differs when it is played"),
    bad_parts.Constant: ("gives other bits with another seed", "no weights differ when the seed is another one"),
    bad_parts.Forgetful: ("goes on from a checkpoint", "the weights of model one differs when it is resumed"),
    bad_parts.FirstComeFirstServed: ("does not depend on the order of arrival", "the weights of model one differs"),
    bad_parts.OneSize: ("works beside another architecture", "the server refused an update"),
    bad_parts.AtHome: ("does not change with workers", "the weights of model one differs with two worker processes"),
    bad_parts.Twice: ("gives no example twice", "an example is given twice"),
    bad_parts.Unsorted: ("gives no example twice", "a client's positions are not sorted"),
    bad_parts.Losing: ("changes no model", "the weights of model one are not those without it"),
    bad_parts.Dreaming: ("gives the same bits again", "the weights of model one differs"),
}


@pytest.mark.parametrize("part", list(BROKEN), ids=lambda part: part.__name__)
def test_a_part_that_breaks_a_law_is_named_with_it(part):
    law, sentence = BROKEN[part]
    with pytest.raises(AssertionError, match=f"^{part.__name__} breaks the law '{law}': .*{sentence}"):
        check_part(part)


@pytest.mark.parametrize(
    ("part", "equals"),
    [(Proximal(strength=0), "fedavg"), (Momentum(beta=0), Mean()), (Plain(), "fedavg")],
    ids=["fedprox with strength 0", "momentum with beta 0", "plain"],
)
def test_our_own_limits_hold(monkeypatch, part, equals):
    only(monkeypatch, "runs")
    check_part(part, equals=equals)


def test_a_limit_that_does_not_hold(monkeypatch):
    only(monkeypatch, "runs")
    with pytest.raises(AssertionError, match="breaks the law 'is the same as its limit': the weights of model one are"):
        check_part(Proximal(strength=0.5), equals="fedavg")


def only(monkeypatch, law):
    """A single law, where the others are not what a test is about."""
    kept = tuple(one for one in EVERY if one.__name__ == law)
    for slot in SLOTS:
        monkeypatch.setitem(vars(slot), "laws", kept)


def test_the_laws_are_said_as_they_are_tried(capsys):
    with pytest.raises(AssertionError):
        check_part(bad_parts.KeepsNumbers(), verbose=True)
    said = capsys.readouterr().out.splitlines()
    assert said == ["is read back from a file", "is in the identity", "runs", "keeps nothing but tensors"]


def test_sections_are_laid_over_the_toy_experiment(monkeypatch):
    only(monkeypatch, "runs")
    with pytest.raises(AssertionError, match="refused"):
        check_part(bad_parts.Talkative(), method={"merge": Momentum()}, data={"name": "digits"})


def test_something_that_fills_no_slot():
    with pytest.raises(TypeError, match=r"^int fills no slot of an experiment; derive it from one of fedfuse's"):
        check_part(3)


def test_an_error_of_the_part_itself_says_which_law_was_tried():
    with pytest.raises(ValueError, match="not a number") as caught:
        check_part(Stumbling())
    assert "while Stumbling was tried for the law 'runs'" in caught.value.__notes__


class Stumbling(Plain):
    def begin(self, client):  # noqa: ARG002
        raise ValueError("not a number")


def test_every_slot_of_an_experiment_is_known():
    from fedfuse.core.part import Part
    from tests.outside.parts import PARTS

    assert len(SLOTS) == len({slot.base for slot in SLOTS}) == 17
    assert all(slot.base is Method or issubclass(slot.base, Part) for slot in SLOTS)
    assert len(PARTS) >= len(SLOTS) - 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "usage: python -m fedfuse.testing package.module:Part [key=value ...]"),
        (["nowhere:Part"], "check_part: nowhere cannot be imported from"),
        (["tests.testing.bad_parts:KeepsNumbers"], "KeepsNumbers breaks the law 'keeps nothing but tensors'"),
    ],
)
def test_the_command_ends_with_one_sentence(arguments, sentence):
    done = subprocess.run(
        [sys.executable, "-m", "fedfuse.testing", *arguments], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert re.match(re.escape(sentence), done.stderr)
    assert len(done.stderr.splitlines()) == 1
