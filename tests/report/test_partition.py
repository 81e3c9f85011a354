from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from fedfuse.report.partition import (
    describe,
    draw_partition,
    draw_partitions,
    partition_figure,
    partitions_figure,
    sample_counts,
    ticks,
)
from fedfuse.report.saving import save
from tests.report.samples import check_picture, partition


def bubbles(figure: Figure) -> PathCollection:
    (found,) = [c for c in figure.axes[1].collections if c.get_label() == "examples"]
    assert isinstance(found, PathCollection)
    return found


def test_a_bubble_per_held_class_with_an_area_proportional_to_its_count() -> None:
    report = partition(6, 4, largest=5)
    drawn = bubbles(partition_figure(report))
    clients, classes = np.asarray(drawn.get_offsets()).astype(int).T
    counts = report.counts()
    assert len(clients) == np.count_nonzero(counts)
    areas = drawn.get_sizes()
    assert np.isfinite(areas).all()
    np.testing.assert_allclose(areas / areas[0], counts[clients, classes] / counts[clients[0], classes[0]])


def test_clients_have_their_names_on_the_axis() -> None:
    labels = partition_figure(partition(5, 4)).axes[1].get_xticklabels()
    assert [label.get_text() for label in labels] == ["c0", "c1", "c2", "c3", "c4"]


def test_bars_are_the_client_sizes() -> None:
    report = partition(6, 4)
    bars = partition_figure(report).axes[0].containers[0]
    assert [bar.get_height() for bar in bars] == [client.size for client in report.clients]


def test_full_bubbles_do_not_overlap() -> None:
    figure = partition_figure(partition(30, 10))
    axes = figure.axes[1]
    figure.draw_without_rendering()
    box = axes.get_window_extent()
    cell = min(box.width / 30, box.height / 10) * 72 / figure.dpi
    assert np.sqrt(bubbles(figure).get_sizes().max()) <= 1.02 * cell


@pytest.mark.parametrize(("clients", "classes"), [(1, 1), (4, 2), (2, 3), (10, 10), (30, 2)])
def test_the_circles_of_the_legend_do_not_overlap_and_stay_inside(clients: int, classes: int) -> None:
    figure = partition_figure(partition(clients, classes))
    figure.draw_without_rendering()
    (legend,) = figure.legends
    circles = [circle(figure, handle) for handle in legend.legend_handles]
    for (_, above, one), (_, below, other) in itertools.pairwise(circles):
        assert above - one >= below + other
    x, y, radius = circles[0]
    assert legend.get_title().get_window_extent().y0 >= y + radius
    assert x + radius <= legend.get_texts()[0].get_window_extent().x0


def circle(figure: Figure, handle: object) -> tuple[float, float, float]:
    """Centre and radius of a circle of the legend, in pixels."""
    assert isinstance(handle, PathCollection)
    ((x, y),) = handle.get_offset_transform().transform(handle.get_offsets())
    return x, y, float(np.sqrt(handle.get_sizes()[0])) / 2 * figure.dpi / 72


def test_long_names_leave_room_for_the_bubbles() -> None:
    report = partition(30, 10)
    long = [f"hospital of our lady in {one.name}" for one in report.clients]
    figure = partition_figure(replace(report, names=long))
    figure.draw_without_rendering()
    assert figure.axes[1].get_window_extent().height >= 0.4 * figure.bbox.height
    labels = [label.get_text() for label in figure.axes[1].get_xticklabels()]
    assert len(set(labels)) == len(labels)
    assert [label.rpartition(" ")[2] for label in labels] == [one.name for one in report.clients]


@pytest.mark.parametrize("clients", [1, 2, 4])
def test_names_of_few_clients_lie_level_and_side_by_side(clients: int) -> None:
    names = [f"General Hospital of Saint Elizabeth {number}" for number in range(clients)]
    figure = partition_figure(replace(partition(clients, 2), names=names))
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in figure.axes[1].get_xticklabels()]
    assert all(box.width > box.height for box in boxes)
    assert all(one.x1 < other.x0 for one, other in itertools.pairwise(boxes))


def test_classes_have_their_names_on_the_axis_as_they_are() -> None:
    names = ["malignant", "$x$ \x1b[2J", "n" * 300]
    figure = partition_figure(replace(partition(5, 3), class_names=names))
    labels = [label.get_text() for label in figure.axes[1].get_yticklabels()]
    assert labels[:2] == ["malignant", "$x$  [2J"]
    assert len(labels[2]) <= 18
    figure.draw_without_rendering()
    numbers = [label.get_text() for label in partition_figure(partition(5, 3)).axes[1].get_yticklabels()]
    assert numbers == ["0", "1", "2"]


@pytest.mark.parametrize(("clients", "classes"), [(1, 1), (1, 2), (10, 10), (100, 100), (120, 200)])
def test_any_size_gives_a_picture_of_bounded_size(tmp_path: Path, clients: int, classes: int) -> None:
    figure = partition_figure(partition(clients, classes))
    assert max(figure.get_size_inches()) <= 16
    if (clients, classes) in ((1, 1), (100, 100)):
        save(figure, tmp_path / "partition.png")
        check_picture(tmp_path / "partition.png")


def test_clients_without_examples(tmp_path: Path) -> None:
    draw_partition(tmp_path / "partition.png", partition(3, 3, largest=0))
    check_picture(tmp_path / "partition.png")


def test_the_title_names_the_settings() -> None:
    report = partition(10, 3)
    assert describe(report) == f"Partition: dirichlet (alpha 0.1): {report.examples:,} examples at 10 clients"
    left = replace(report, examples=report.examples + 7)
    assert describe(left).endswith(", 7 unassigned")


@pytest.mark.parametrize("number", [0, 1, 10, 25, 26, 100, 200, 1000])
def test_ticks_are_few_and_start_at_zero(number: int) -> None:
    positions = ticks(number)
    assert len(positions) <= 25
    assert not number or positions[0] == 0


@pytest.mark.parametrize("largest", [1, 3, 99, 100, 54321])
def test_sample_counts_do_not_exceed_the_largest(largest: int) -> None:
    samples = sample_counts(largest)
    assert 1 <= min(samples) <= max(samples) <= largest


def test_partitions_side_by_side_share_one_scale_of_bubbles(tmp_path: Path) -> None:
    reports = {"alpha 1": partition(4, 10, 100), "alpha 0.1": partition(4, 10, 1)}
    large, small = (axes.collections[0].get_sizes().max() for axes in partitions_figure(reports).axes)
    assert large > 50 * small
    draw_partitions(tmp_path / "partitions.png", reports)
    check_picture(tmp_path / "partitions.png", 400, 300)
