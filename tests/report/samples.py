"""Small histories and partitions for the tests of pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from fedfuse.data import PartitionReport
from fedfuse.data.partition import Assignment
from fedfuse.federation import RoundRecord
from fedfuse.federation.state import PrototypeRecord


def record(number: int, prototypes: Mapping[str, PrototypeRecord], ensemble: float | None = None) -> RoundRecord:
    return RoundRecord(number, (0,), (), (), 1, 1, 0.5, ensemble, prototypes, 0.1)


def history(rounds: int, names: tuple[str, ...] = ("small", "big")) -> list[RoundRecord]:
    """Accuracies that rise, and that fusion raises by ten points."""
    return [
        record(
            number,
            {
                name: PrototypeRecord(0.2 + 0.7 * number / rounds - 0.05 * index, 1.0, 0.1 + 0.7 * number / rounds)
                for index, name in enumerate(names)
            },
            0.25 + 0.7 * number / rounds,
        )
        for number in range(1, rounds + 1)
    ]


def partition(clients: int, classes: int, largest: int = 300) -> PartitionReport:
    counts = np.random.default_rng(0).integers(0, largest + 1, size=(clients, classes))
    return partition_with(counts, [f"c{number}" for number in range(clients)])


def partition_with(counts: np.ndarray, names: Sequence[str] | None = None) -> PartitionReport:
    """A partition with these numbers of examples by client and class."""
    clients, classes = counts.shape
    settings = {"kind": "dirichlet", "clients": clients, "alpha": 0.1}
    assignment = Assignment(np.arange(counts.sum()), np.cumsum(counts.sum(axis=1)))
    labels = np.repeat(np.tile(np.arange(classes), clients), counts.ravel())
    return PartitionReport(settings, int(counts.sum()), classes, assignment, labels, names)


def line_data(figure: Figure) -> dict[str, list[tuple[int, float]]]:
    """What was drawn, by the label of the line; matplotlib's own labels start with an underscore."""
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    return {
        str(label): [(int(x), float(y)) for x, y in np.asarray(line.get_xydata())]
        for label, line in lines.items()
        if not str(label).startswith("_")
    }


def legend_labels(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def check_picture(path: Path, width: int = 1200, height: int = 600) -> None:
    """A whole PNG of at least this size that shows something."""
    with Image.open(BytesIO(path.read_bytes())) as image:
        image.load()
        assert image.format == "PNG"
        assert image.width >= width
        assert image.height >= height
        assert not image.info.keys() & {"Software", "Creation Time"}
        assert len(set(image.convert("L").tobytes())) > 10
