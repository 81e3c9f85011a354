"""What a run says: names and numbers for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fedfuse.data import PartitionReport
from fedfuse.federation.summary import SIMULATED
from fedfuse.report.sheet import Sheet

if TYPE_CHECKING:
    from fedfuse.experiment.result import RunResult
    from fedfuse.experiment.run import Experiment


MISSING = ("clients_absent", "clients_late", "updates_refused", "clients_screened")
"""What may become of a client that is asked, other than that it counts; a row and a summary have these numbers."""
BOUNDED = ("claims_bounded", "moves_bounded")
"""What may be bounded of one that counts; a summary has these numbers."""


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
        to_target("rounds", target): reached(values["rounds_to_target"], values["rounds_to_target_earliest"]),
        **({to_target("simulated s", target): seconds(values[SIMULATED])} if SIMULATED in values else {}),
        "parameters": "-" if values["parameters"] is None else f"{values['parameters']:,}",
    }


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
        facts["clock"] = f"{seconds(summary['simulated_seconds'])} simulated s"
    if "privacy" in summary:
        facts["privacy"] = privacy_in_words(summary["privacy"])
    asked = sum(len(record.clients) for record in result.history)
    for name in MISSING:
        if number := summary.get(name):
            facts[name.partition("_")[2]] = f"{number} of {asked} updates; {result.folder.events.name} says why"
    for name in BOUNDED:
        if number := summary.get(name):
            what = f"bounded in {number} of {asked} updates"
            facts[name.partition("_")[0]] = f"{what}; {result.folder.events.name} says why"
    if summary.get("untaught"):
        facts["untaught"] = f"{', '.join(summary['untaught'])}: final weights are those of the start"
    picture = result.folder.pictures / "accuracy.png"
    return {**facts, "folder": result.folder.path, **({"picture": picture} if picture.exists() else {})}


def _best(best: Mapping[str, Any]) -> str:
    """The best round, and what ended the run if it waited for a better one in vain."""
    judged = percent(best["value"]) if best["by"] == "accuracy" else f"{best['value']:.4g}"
    models = ", ".join(f"{name} {percent(accuracy)}" for name, accuracy in best["accuracy"].items())
    ended = "; no better one came in time" if best["ran_out_of_patience"] else ""
    return f"round {best['round']}, {best['by']} on {best['on']} {judged}; test accuracy {models}{ended}"


def privacy_in_words(privacy: Mapping[str, Any]) -> str:
    """What was promised, and what it came to for the client that gave away most."""
    against = privacy.get("against", {})
    numbers = [f"{_epsilon(own['epsilon'])} against {whom}" for whom, own in against.items()]
    said = ", ".join(numbers) or f"{_epsilon(privacy['planned'])} as planned"
    return (
        f"epsilon {said}, at delta {privacy['delta']:g}, of every {privacy['unit']} ({privacy['accountant']}); "
        f"noise {privacy['noise']}"
    )


def _epsilon(value: float | None) -> str:
    return "without bound" if value is None else f"{value:.3g}"


def largest_epsilon(values: tuple[float | None, ...] | None) -> str:
    """The largest over seeds: that is what can be promised of all of them."""
    if not values:
        return "-"
    return _epsilon(None if None in values else max(value for value in values if value is not None))


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f} %".replace(".00 %", " %")


def size(count: float) -> str:
    """Bytes in words."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1000
    raise AssertionError("the loop returns")


def to_target(what: str, target: float | None) -> str:
    return f"{what} to\n{'target' if target is None else percent(target)}"


def seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def reached(number: int | None, earliest: int | None) -> str:
    """A round, or the latest that it can have been where not every round was looked at."""
    return "-" if number is None else f"{'≤ ' if number != earliest else ''}{number}"
