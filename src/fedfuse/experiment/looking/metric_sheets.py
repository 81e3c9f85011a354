"""The metrics that an experiment names, below the table of accuracies: a row each, so that any number of them fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fedfuse.core.plain_text import one_line
from fedfuse.core.views import Width
from fedfuse.experiment.looking.columns import Look
from fedfuse.experiment.looking.labels import ENSEMBLE
from fedfuse.experiment.looking.rows import MetricSpread, Spread
from fedfuse.experiment.looking.tables import names_of, names_shown
from fedfuse.experiment.sheets import percent
from fedfuse.report.sheet import Sheet

if TYPE_CHECKING:
    from fedfuse.experiment.looking.comparison import Comparison

TITLE = "other metrics"
BEFORE = "metrics_before_fusion"


def metric_sheets(summary: Mapping[str, Any]) -> list[Sheet]:
    """One finished run, a row per metric and model; nothing if it measured accuracy and loss only."""
    models = [(name, own.get("metrics", {}), own.get(BEFORE, {})) for name, own in summary["prototypes"].items()]
    models.append((ENSEMBLE, summary.get("ensemble_metrics", {}), {}))
    rows = [
        ((one_line(metric), model), _numbers(metrics[metric], before.get(metric)))
        for metric in _all(metrics for _, metrics, _ in models)
        for model, metrics, before in models
        if metric in metrics
    ]
    return [Sheet(TITLE, ("metric", "model"), ("last", "best", "before\nfusion"), rows)] if rows else []


def comparison_metric_sheets(comparison: Comparison, width: Width = "std") -> list[Sheet]:
    """Methods side by side, metric by metric."""
    names = names_shown(comparison.rows)
    rows = [
        ((one_line(metric), *names_of(row, names)), _spreads(row.metrics[metric], width))
        for metric in _all(row.metrics for row in comparison.rows)
        for row in comparison.rows
        if metric in row.metrics
    ]
    return [Sheet(TITLE, ("metric", *names), ("last", "best"), rows)] if rows else []


def _all(several: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(metric for metrics in several for metric in metrics))


def _numbers(entry: Mapping[str, Any], before: float | None) -> tuple[str, ...]:
    return tuple(_value(value, entry["unit"]) for value in (entry["last"], entry["best"], before))


def _spreads(metric: MetricSpread, width: Width) -> tuple[str, ...]:
    return tuple(_spread(spread, metric.unit, width) for spread in (metric.last, metric.best))


def _spread(spread: Spread | None, unit: str, width: Width) -> str:
    reach = None if spread is None else Look(width).reach(spread)
    if spread is None or reach is None:
        return _value(spread.mean if spread else None, unit)
    if unit == "percent":
        return f"{100 * spread.mean:.2f} ± {100 * reach:.2f} %"
    return f"{spread.mean:.4g} ± {reach:.2g}"


def _value(value: float | None, unit: str) -> str:
    return percent(value) if value is None or unit == "percent" else f"{value:.4g}"
