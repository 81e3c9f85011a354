"""Who had which examples, as pages and notebooks draw it."""

from __future__ import annotations

import numpy as np

from fedfuse.core.plain_text import one_line
from fedfuse.data import PartitionReport
from fedfuse.data.partition.report import borders
from fedfuse.report.page.data import Shares

MOST_COLUMNS = 60
"""Of a partition; neighbours share one."""
MOST_CELLS = 6000


def shares_of_report(report: PartitionReport, words: str) -> Shares:
    """Of many clients, neighbours together, and of very many classes only the words."""
    columns = min(len(report.assignment), MOST_COLUMNS)
    if columns * report.classes > MOST_CELLS:
        return Shares(words, [], [], [], [])
    edges = borders(len(report.assignment), columns)
    together = np.diff(edges)
    counts = (report.counts(columns) / together[:, None]).T
    sizes = np.add.reduceat(report.sizes, edges[:-1]) / together
    alone = columns == len(report.assignment)
    names = [report.clients[int(first)].name if alone else str(first) for first in edges[:-1]]
    return Shares(
        words,
        [one_line(name) for name in names],
        [one_line(name) for name in report.called],
        [[round(float(count), 1) for count in row] for row in counts],
        [round(float(size), 1) for size in sizes],
        int(together.max()),
    )
