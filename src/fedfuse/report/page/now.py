"""What goes on in runs, above the page about them: how far each is, what it does, what is left, what went wrong.

Times pass while nothing is sent: an element has the moment that it counts from (``data-...``), and the script of a live
page counts on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from fedfuse.report.page.html import Content, Html, element
from fedfuse.report.remaining import clock, seconds_left

State = Literal["running", "finished", "stopped"]
LONG = 60.0
"""Seconds without any event that are worth a word, if rounds take less."""
MANY_ROUNDS = 3
"""The same, in rounds."""
SHOWN = 50
"""Finished runs; more are only counted."""


@dataclass(frozen=True)
class RunNow:
    """One run at this moment; times are seconds since 1970."""

    label: str
    state: State
    round: int
    """The latest finished one."""
    rounds: int
    measured: str = ""
    """Accuracies of the latest finished round."""
    step: str = ""
    since: float | None = None
    """When the round that is under way began."""
    each: float | None = None
    """What a round takes."""
    at_most: bool = False
    """Whether it may end earlier."""
    last_time: float | None = None
    mishaps: Sequence[str] = ()

    @property
    def left(self) -> int:
        return max(0, self.rounds - self.round) if self.state == "running" else 0


def now_section(runs: Sequence[RunNow], tag: str, time: float | None) -> Html:
    """All runs, those that go on first; ``tag`` is that of the page below. Without a time, a script says it."""
    going = [run for run in runs if run.state != "finished"]
    over = [run for run in runs if run.state == "finished"]
    more = [element("p", f"{len(over) - SHOWN} more are finished.")] if len(over) > SHOWN else []
    rows = [_run(run, time) for run in (*going, *over[:SHOWN])]
    return element(
        "section",
        element("h2", "Now"),
        element("p", summed_up(runs), id="now-said", role="status"),
        element("ul", *rows, class_="now") if rows else "",
        *more,
        id="now",
        aria_label="Now",
        data_page=tag,
        data_short=in_short(runs),
    )


def summed_up(runs: Sequence[RunNow]) -> str:
    """In a sentence."""
    if not runs:
        return "There is no run yet; it will show up here."
    count = {state: sum(run.state == state for run in runs) for state in ("running", "finished", "stopped")}
    if count["running"]:
        words = [f"{number} {'is' if number == 1 else 'are'} {state}" for state, number in count.items() if number]
        return f"{_runs(len(runs))}: {', '.join(words)}."
    if count["stopped"]:
        return f"Nothing goes on: {count['finished']} of {_runs(len(runs))} {_is(count['finished'])} finished."
    return "The run is finished." if len(runs) == 1 else f"All {len(runs)} runs are finished."


def in_short(runs: Sequence[RunNow]) -> str:
    """For the title of a window: rounds of all runs."""
    if not runs:
        return "waiting"
    if all(run.state == "finished" for run in runs):
        return "finished"
    return f"{sum(run.round for run in runs)}/{sum(max(run.rounds, run.round) for run in runs)}"


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _run(run: RunNow, time: float | None) -> Html:
    far = f"round {run.round} of {run.rounds}"
    planned = run.round if run.state == "finished" else run.rounds
    bar = element("progress", value=run.round, max=max(planned, 1), aria_label=f"{run.label}: {far}")
    words = [element("span", word) for word in (far, run.measured) if word]
    mishaps = [element("ul", *(element("li", said) for said in run.mishaps), class_="mishaps")] if run.mishaps else []
    return element(
        "li",
        element("p", element("b", run.label), " ", element("span", _state(run), class_="state")),
        bar,
        element("p", *_separated([*words, *_going_on(run, time)]), class_="small"),
        *mishaps,
        class_=run.state,
    )


def _state(run: RunNow) -> str:
    return {"running": "running", "finished": "finished", "stopped": "not finished, and no process works on it"}[
        run.state
    ]


def _going_on(run: RunNow, time: float | None) -> Iterator[Html]:
    if run.state != "running":
        return
    if run.step:
        yield element("span", run.step)
    since = run.since if run.since is not None else run.last_time
    if run.each is not None and since is not None and run.left:
        left = seconds_left(run.each, run.left, time - since) if time is not None else None
        bound = "at most " if run.at_most else ""
        yield element(
            "span",
            "" if left is None else f"{bound}{clock(left)} left",
            data_left=run.left,
            data_each=repr(run.each),
            data_since=repr(since),
            data_bound=bound,
        )
    if run.last_time is not None:
        long = max(LONG, MANY_ROUNDS * (run.each or 0.0))
        quiet = time - run.last_time if time is not None else 0.0
        text = f"nothing has happened for {clock(quiet)}" if quiet > long else ""
        yield element("span", text, class_="quiet", data_quiet=repr(run.last_time), data_long=repr(long))


def _separated(words: Sequence[Html]) -> Iterator[Content]:
    for place, word in enumerate(words):
        yield from ([" "] if place else [])
        yield word
