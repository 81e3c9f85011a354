"""What a page about runs shows, from the runs: the values that ``report/page`` turns into HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fedfuse.core.views import SPENT
from fedfuse.experiment.assembly import cautions
from fedfuse.experiment.lessons import doubts
from fedfuse.experiment.looking import variation
from fedfuse.experiment.looking.curves import Measured, metrics_of, seeds_of, together
from fedfuse.experiment.looking.grouping import Line, how_far
from fedfuse.experiment.looking.labels import labels_of
from fedfuse.experiment.looking.one_run import COMMANDS, MOST_REASONS, facts_of_run
from fedfuse.experiment.looking.page.examples import class_tables, squares
from fedfuse.experiment.looking.page.groups import groups
from fedfuse.experiment.looking.pairing import differences, reference_of
from fedfuse.experiment.looking.pictures import about
from fedfuse.experiment.looking.several import varying_keys, who_has
from fedfuse.experiment.looking.stored_run import WHY, StoredRun
from fedfuse.experiment.looking.tables import comparison_sheet, difference_sheet
from fedfuse.experiment.sheets import MISSING
from fedfuse.report.intervals import t_quantile
from fedfuse.report.page.data import Differing, Fusion, PageData, Row, RunFacts, Seed
from fedfuse.report.sheet import Sheet

if TYPE_CHECKING:
    from fedfuse.experiment.looking.comparison import Comparison

MOST_KEYS = 60
"""In which recipes or configs differ, that are listed."""
FUSION = ("accuracy_before_fusion", "accuracy_last", "ensemble_accuracy")


def page_data(comparison: Comparison, title: str | None = None, reference: str | None = None) -> PageData:
    """All that the page shows of these runs."""
    lines, labels = comparison.lines, labels_of(comparison.lines)
    metrics = metrics_of(lines)
    most = max((len(line.runs) for line in lines), default=1)
    return PageData(
        title=title or about(lines),
        subtitle=_subtitle(comparison),
        table=_named(comparison_sheet(comparison, "95"), labels),
        differences=_differences(comparison, labels, reference),
        metrics=_named(comparison_sheet(comparison, "95", metrics), labels) if metrics else None,
        fusion=_fusion_sheet(comparison, labels),
        attendance=_attendance(comparison, labels),
        rows=[_row(line, label) for line, label in zip(lines, labels, strict=True)],
        groups=groups(comparison, labels),
        quantiles=[0.0, 0.0, *(round(t_quantile(seeds), 5) for seeds in range(2, most + 1))],
        classes=list(class_tables(lines, labels)),
        squares=list(squares(lines, labels)),
        differing=[Differing(key, who_has(lines, key)) for key in varying_keys(lines)[:MOST_KEYS]],
        recipes=list(_recipes(lines)),
        runs=[_run(run) for run in comparison.runs],
        reasons={label: list(_reasons(line)) for line, label in zip(lines, labels, strict=True)},
        notes=[*comparison.remarks, *_doubts(comparison), *comparison.unreadable],
    )


def _doubts(comparison: Comparison) -> list[str]:
    """What a reader of the numbers should know, each sentence once."""
    said = (
        f"{run.label}: {sentence}"
        for run in comparison.runs
        for sentence in (*cautions(run.summary), *doubts(run.summary))
    )
    return list(dict.fromkeys(said))


def _reasons(line: Line) -> Iterator[str]:
    """Why clients that were asked did not count, of all seeds together."""
    for event in WHY:
        found = sum((run.reasons.get(event, Counter()) for run in line.runs), Counter[str]())
        word = event.rpartition("_")[2]
        yield from (f"{word}, {count:,} times: {reason}" for reason, count in found.most_common(MOST_REASONS))


def _subtitle(comparison: Comparison) -> str:
    runs, finished = len(comparison.runs), sum(run.result.is_finished for run in comparison.runs)
    state = "all finished" if runs == finished else f"{finished} of them finished"
    return f"{_count(len(comparison.rows), 'row')} from {_count(runs, 'run')}, {state}"


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def _named(sheet: Sheet, labels: list[str]) -> Sheet:
    """The same numbers with one name for each row, as pictures call it."""
    rows = [((label,), numbers) for label, (_, numbers) in zip(labels, sheet.rows, strict=True)]
    return Sheet(sheet.title, ("method",), sheet.headings, rows, sheet.best)


def _differences(comparison: Comparison, labels: list[str], reference: str | None) -> Sheet | None:
    """Against the reference, by the same names."""
    sheet = difference_sheet(comparison, reference)
    if sheet is None:
        return None
    compared = differences(comparison.lines, reference_of(comparison.lines, reference))
    there = [label for label, own in zip(labels, compared, strict=True) if own is not None]
    return _named(sheet, there)


def _fusion_sheet(comparison: Comparison, labels: list[str]) -> Sheet | None:
    """Where something was measured before a fusion, or of an ensemble."""
    fused = [row.accuracy_before_fusion is not None or row.ensemble_accuracy is not None for row in comparison.rows]
    if not any(fused):
        return None
    whole = comparison_sheet(comparison, "95", FUSION)
    rows = [own for own, is_fused in zip(_named(whole, labels).rows, fused, strict=True) if is_fused]
    return Sheet(whole.title, ("method",), ("before fusion, %", "after fusion, %", "ensemble, %"), rows)


def _attendance(comparison: Comparison, labels: list[str]) -> Sheet:
    """Of all seeds together: who was asked, counted, and was missing in which way."""
    rows = []
    for line, label in zip(comparison.lines, labels, strict=True):
        asked = sum(len(record.clients) for run in line.runs for record in run.result.history)
        counted = sum(run.summary["updates_counted"] for run in line.runs)
        missing = [sum(run.summary[name] for run in line.runs) for name in MISSING]
        rows.append(((label,), tuple(f"{number:,}" for number in (asked, counted, *missing))))
    headings = ("asked", "counted", *(name.partition("_")[2] for name in MISSING))
    return Sheet("updates of all rounds and seeds", ("method",), headings, rows)


def _row(line: Line, label: str) -> Row:
    note = "" if line.is_finished else f"so far, {how_far(line.runs[0])}"
    return Row(label, list(_seeds(line)), _fusion(line), note)


def _seeds(line: Line) -> Iterator[Seed]:
    by_axis: dict[str, list[Measured]] = {over: seeds_of(line, over) for over in SPENT}
    for place, one in enumerate(by_axis["rounds"]):
        spent = {over: own[place].spent for over, own in by_axis.items() if own}
        yield Seed(one.seed, one.rounds, one.values, spent)


def _fusion(line: Line) -> Fusion | None:
    if line.prototype is None:
        return None
    curves = {what: _mean(line, what) for what in ("accuracy", "before_fusion", "ensemble")}
    return Fusion(*curves.values()) if curves["before_fusion"] or curves["ensemble"] else None


def _mean(line: Line, what: str) -> list[tuple[float, float]]:
    """Over seeds, in the rounds that all of them measured."""
    common = together(seeds_of(line, "rounds", what))
    return [(number, sum(values) / len(values)) for number, _, values in common]


def _recipes(lines: tuple[Line, ...]) -> Iterator[Differing]:
    """In which keys the methods differ, each of which is once among the rows."""
    settings = [{"method": line.setting["method"]} for line in lines]
    own = set(varying_keys(lines))
    for key in [key for key in variation.varying(settings) if key not in own][:MOST_KEYS]:
        yield Differing(key, who_has(lines, key))


def _run(run: StoredRun) -> RunFacts:
    facts: Mapping[str, str | list[str]] = facts_of_run(run)
    told = {name: [said] if isinstance(said, str) else said for name, said in facts.items() if said}
    command = next((told[name][0] for name in COMMANDS if name in told), "")
    shown = {name: said for name, said in told.items() if name not in (*COMMANDS, "run", "picture")}
    return RunFacts(run.label, "finished" if run.result.is_finished else how_far(run), shown, command)
