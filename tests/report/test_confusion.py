"""The square of what is taken for what, against the counts it is drawn from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedfuse.report.confusion import MOST_NUMBERS, confusion_figure, draw_confusion, row_shares
from tests.report.samples import check_picture

COUNTS = [[8, 2, 0], [1, 3, 0], [0, 0, 0]]
NAMES = ["ant", "$bee$", "c" * 200]


def test_rows_are_shares_of_their_class_and_an_empty_class_is_zeros() -> None:
    shares = row_shares(COUNTS)
    assert shares.tolist() == [[0.8, 0.2, 0.0], [0.25, 0.75, 0.0], [0.0, 0.0, 0.0]]


def test_cells_show_their_share_and_classes_their_names() -> None:
    axes = confusion_figure(COUNTS, NAMES, "about").axes[0]
    numbers = {tuple(map(int, text.get_position())): text.get_text() for text in axes.texts}
    assert numbers == {(0, 0): "80", (1, 0): "20", (0, 1): "25", (1, 1): "75"}
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[:2] == ["ant", "$bee$"]
    assert len(labels[2]) <= 18


@pytest.mark.parametrize("classes", [1, 2, MOST_NUMBERS + 1, 100])
def test_any_number_of_classes(tmp_path: Path, classes: int) -> None:
    counts = np.random.default_rng(0).integers(0, 50, size=(classes, classes)).tolist()
    draw_confusion(tmp_path / "confusion.png", counts, [f"class {number}" for number in range(classes)], "about " * 30)
    check_picture(tmp_path / "confusion.png", 700, 600)
