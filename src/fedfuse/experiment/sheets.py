"""What a finished run or comparison says: names and numbers for people."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fedfuse.data import PartitionReport
from fedfuse.federation.summary import SIMULATED
from fedfuse.report.sheet import Names, Sheet

if TYPE_CHECKING:
    from fedfuse.experiment.comparison import Comparison, Row, Spread
    from fedfuse.experiment.result import RunResult
    from fedfuse.experiment.run import Experiment


MISSING = ("clients_absent", "clients_late", "updates_refused", "clients_screened")
"""What may become of a client that is asked, other than that it counts; a row and a summary have these numbers."""


def summary_sheet(summary: Mapping[str, Any]) -> Sheet:
    """One finished run, a row per prototype."""
    what = "test accuracy" if summary["server_models"] else "mean test accuracy of the clients' own models"
    lines = {name: _line(values, summary["target_accuracy"]) for name, values in summary["prototypes"].items()}
    headings = tuple(next(iter(lines.values())))
    rows = [((name,), tuple(line.values())) for name, line in lines.items()]
    return Sheet(f"{summary['name']}, {summary['method']}: {what}", ("model",), headings, rows)


def _line(values: Mapping[str, Any], target: float | None) -> dict[str, str]:
    """One prototype's numbers by their headings."""
    return {
        "last": percent(values["accuracy_last"]),
        "best": percent(values["accuracy_best"]),
        "before\nfusion": percent(values["accuracy_before_fusion"]),
        "ensemble": percent(values["ensemble_accuracy"]),
        _to_target("rounds", target): _reached(values["rounds_to_target"], values["rounds_to_target_earliest"]),
        **({_to_target("simulated s", target): _seconds(values[SIMULATED])} if SIMULATED in values else {}),
        "parameters": f"{values['parameters']:,}",
    }


def comparison_sheet(comparison: Comparison) -> Sheet:
    """Methods side by side, mean ± standard deviation over seeds. A column that says nothing is left out."""
    rows, keys = comparison.rows, names_shown(comparison.rows)
    columns = {
        "accuracy\nlast, %": [_spread(row.accuracy_last, 100, 2) for row in rows],
        "accuracy\nbest, %": [_spread(row.accuracy_best, 100, 2) for row in rows],
        _to_target("rounds", comparison.target): [
            _rounds(row.rounds_to_target, row.rounds_to_target_earliest) for row in rows
        ],
        "up\nMB": [_mean(row.bytes_up, 1e-6, 2) for row in rows],
        "down\nMB": [_mean(row.bytes_down, 1e-6, 2) for row in rows],
        "time\ns": [_mean(row.seconds, 1, 1) for row in rows],
    }
    if any(row.simulated_seconds_to_target for row in rows):
        columns[_to_target("simulated s", comparison.target)] = [
            _rounds(row.simulated_seconds_to_target or (), row.simulated_seconds_to_target or ()) for row in rows
        ]
    for name in MISSING:
        numbers = [sum(getattr(row, name)) for row in rows]
        if any(numbers):
            columns[name.replace("_", "\n")] = list(map(str, numbers))
    counts = {len(row.seeds) for row in rows}
    if len(counts) > 1:
        columns["seeds"] = [str(len(row.seeds)) for row in rows]
    cells = zip(*columns.values(), strict=True)
    lines = [(names_of(row, keys), own) for row, own in zip(rows, cells, strict=True)]
    return Sheet(_over_seeds(counts), keys, tuple(columns), lines)


def names_shown(rows: Sequence[Row]) -> Names:
    """The keys of a comparison's rows that tell them apart, and the method."""
    shown = {
        "experiment": len({row.experiment for row in rows}) > 1,
        "method": True,
        "model": len({row.prototype for row in rows}) > 1,
    }
    return tuple(key for key, is_shown in shown.items() if is_shown)


def names_of(row: Row, keys: Names) -> Names:
    names = {"experiment": row.experiment, "method": row.method, "model": row.prototype}
    return tuple(names[key] for key in keys)


def closing_facts(experiment: Experiment, result: RunResult) -> dict[str, object]:
    """What the numbers of a run were made from and whether they can be trusted, and where the rest is."""
    summary = result.summary
    facts: dict[str, object] = {
        "data": PartitionReport.load(result.folder.partition).in_words(),
        "traffic": f"{size(summary['bytes_up'])} up, {size(summary['bytes_down'])} down, {summary['seconds']:.1f} s",
    }
    if experiment.config.answers_as_ensemble:
        facts["result"] = "the accuracy of the ensemble; the answer of this method is no single model's"
    if best := summary.get("best"):
        facts["best"] = _best(best)
    if "simulated_seconds" in summary:
        facts["clock"] = f"{_seconds(summary['simulated_seconds'])} simulated s"
    asked = sum(len(record.clients) for record in result.history)
    for name in MISSING:
        if number := summary.get(name):
            facts[name.partition("_")[2]] = f"{number} of {asked} updates; {result.folder.events.name} says why"
    if summary.get("untaught"):
        facts["untaught"] = f"{', '.join(summary['untaught'])}: final weights are those of the start"
    picture = result.folder.pictures / "accuracy.png"
    return {**facts, "folder": result.folder.path, **({"picture": picture} if picture.exists() else {})}


def comparison_facts(comparison: Comparison) -> dict[str, object]:
    """What is missing in the table, and where the rest is."""
    facts: dict[str, object] = {"folder": comparison.folder, "picture": comparison.picture}
    if not comparison.unfinished:
        return facts
    return {"missing": f"{len(comparison.unfinished)} of {comparison.planned} runs, which are not finished", **facts}


def _best(best: Mapping[str, Any]) -> str:
    """The best round, and what ended the run if it waited for a better one in vain."""
    judged = percent(best["value"]) if best["by"] == "accuracy" else f"{best['value']:.4g}"
    models = ", ".join(f"{name} {percent(accuracy)}" for name, accuracy in best["accuracy"].items())
    ended = "; no better one came in time" if best["ran_out_of_patience"] else ""
    return f"round {best['round']}, {best['by']} on {best['on']} {judged}; test accuracy {models}{ended}"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f} %".replace(".00 %", " %")


def size(count: float) -> str:
    """Bytes in words."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1000
    raise AssertionError("the loop returns")


def _over_seeds(counts: Collection[int]) -> str:
    if set(counts) == {1}:
        return "1 seed"
    return "mean ± std over seeds" if len(counts) > 1 else f"{next(iter(counts))} seeds, mean ± std"


def _to_target(what: str, target: float | None) -> str:
    return f"{what} to\n{'target' if target is None else percent(target)}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _spread(spread: Spread | None, factor: float, digits: int) -> str:
    """A deviation is of several values."""
    if spread is None:
        return "-"
    deviation = "" if spread.std is None else f" ± {factor * spread.std:.{digits}f}"
    return f"{_mean(spread, factor, digits)}{deviation}"


def _mean(spread: Spread, factor: float, digits: int) -> str:
    return f"{factor * spread.mean:.{digits}f}"


def _reached(number: int | None, earliest: int | None) -> str:
    """A round, or the latest that it can have been where not every round was looked at."""
    return "-" if number is None else f"{'≤ ' if number != earliest else ''}{number}"


def _rounds(values: tuple[float | None, ...], earliest: tuple[float | None, ...]) -> str:
    """The mean over the seeds that got there, and how many did if not all."""
    reached = [value for value in values if value is not None]
    if not reached:
        return "-"
    mean = f"{'≤ ' if values != earliest else ''}{sum(reached) / len(reached):,.1f}"
    return mean if len(reached) == len(values) else f"{mean} ({len(reached)} of {len(values)})"
