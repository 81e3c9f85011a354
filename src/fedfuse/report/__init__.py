"""Pictures of runs: accuracy curves, partitions, comparisons of methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedfuse.data import PartitionReport
from fedfuse.federation import RoundRecord

__all__ = ["draw_run"]


def draw_run(
    folder: Path,
    history: Sequence[RoundRecord],
    partition: PartitionReport,
    target: float | None,
    run: str = "",
    data: str = "",
) -> list[Path]:
    """Write the pictures of one run into ``folder`` and return their paths.

    What the ``run`` and its ``data`` are called stands in their titles.
    """
    about = f"{run} on {data}" if data and not run.startswith(data) else run
    # matplotlib takes a second, which a process that draws nothing, such as a worker or a node, need not pay.
    from fedfuse.report.curves import draw_curves
    from fedfuse.report.metric_curves import draw_metrics
    from fedfuse.report.partition import draw_partition

    accuracy, shares, metrics = (folder / f"{name}.png" for name in ("accuracy", "partition", "metrics"))
    draw_curves(accuracy, history, target, about)
    draw_partition(shares, partition, data)
    if not any(own.metrics for record in history for own in record.prototypes.values()):
        return [accuracy, shares]
    draw_metrics(metrics, history, about)
    return [accuracy, shares, metrics]
