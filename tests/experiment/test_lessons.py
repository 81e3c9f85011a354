"""What is said of a run that taught little or nothing."""

from __future__ import annotations

import pytest

from fedfuse.core.errors import NothingLearntError
from fedfuse.experiment.lessons import check_that_something_was_learnt, doubts
from fedfuse.experiment.progress import SAID, Lines

WELL = {
    "rounds": 3, "prototypes": {"small": {}, "wide": {}}, "untaught": [], "rounds_in_vain": 0,
    "clients_absent": 0, "clients_late": 2, "updates_refused": 4,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({}, []),
        ({"untaught": ["wide"]}, ["model wide was never taught: its final weights are those of the start"]),
        ({"rounds_in_vain": 2}, ["nobody counted in 2 of 3 rounds, which left everything as it was"]),
    ],
)
def test_what_is_left_of_an_honest_effort_is_no_failure(changes, sentences):
    summary = {**WELL, **changes}
    assert list(doubts(summary)) == sentences
    check_that_something_was_learnt(summary)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rounds_in_vain": 3}, "nobody counted in any of 3 rounds: clients were 2 times late, 4 times refused; "),
        ({"untaught": ["small", "wide"]}, "no model was taught in any round"),
    ],
)
def test_nothing_is(changes, sentence):
    with pytest.raises(NothingLearntError, match=sentence):
        check_that_something_was_learnt({**WELL, **changes})


def test_summaries_of_older_runs_say_nothing_about_it():
    older = {"rounds": 3, "prototypes": {"small": {}}, "updates_refused": 9}
    assert not list(doubts(older))
    check_that_something_was_learnt(older)


def test_of_a_thousand_refusals_the_first_are_shown_and_other_mishaps_too():
    lines = []
    listener = Lines("run", lines.append)
    for _ in range(2):
        listener({"event": "run_started", "rounds": 1, "data": {}, "source": None})
        for client in range(1000):
            listener({"event": "update_refused", "round": 1, "client": client, "reason": "NaN"})
        listener({"event": "nobody_counted", "round": 1, "reason": "1000 refused"})
        listener({"event": "run_finished", "seconds": 1.0, "doubts": ["one", "two"]})
    shown = [f"client {client} was refused: NaN" for client in range(SAID)]
    shown[-1] += " (more of this kind: see events.jsonl)"
    last = ["round 1: nobody counted (1000 refused); the models stay as they are", "one; two"]
    assert lines == [*shown, *last] * 2
