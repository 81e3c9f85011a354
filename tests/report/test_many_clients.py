"""A picture of many clients: as many things drawn for a million as for a thousand, and the numbers are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.patches import StepPatch

from fedfuse.report.many_clients import MOST_COLUMNS, Columns
from fedfuse.report.partition import MOST_CLIENTS, draw_partition, partition_figure, partitions_figure
from tests.report.samples import check_picture, partition, partition_with


def test_columns_are_means_of_neighbours():
    columns = Columns.of(partition_with(np.array([[2, 0], [4, 0], [0, 3], [1, 0], [0, 9]])), most=2)
    assert columns.edges.tolist() == [0, 3, 5]
    assert columns.sizes.tolist() == [3, 5]
    assert columns.largest.tolist() == [4, 9]
    assert columns.counts.tolist() == [[2, 1], [0.5, 4.5]]
    assert columns.centres.tolist() == [1, 3.5]
    assert columns.has_several


@pytest.mark.parametrize("clients", [3, 499, 501, 1234])
def test_nobody_is_left_out(clients):
    report = partition(clients, 4)
    columns = Columns.of(report)
    together = np.diff(columns.edges)
    assert together.min() >= 1
    np.testing.assert_allclose((columns.sizes * together).sum(), report.sizes.sum())
    np.testing.assert_allclose((columns.counts * together[:, None]).sum(axis=0), report.counts().sum(axis=0))
    assert columns.has_several == (clients > MOST_COLUMNS)


@pytest.mark.parametrize("clients", [MOST_CLIENTS + 1, 3_000, 100_000])
def test_two_steps_and_one_image_are_all_that_is_drawn(clients):
    figure = partition_figure(partition(clients, 5, largest=3))
    above, below = figure.axes[:2]
    assert all(isinstance(patch, StepPatch) for patch in above.patches)
    assert len(above.patches) == (2 if clients > MOST_COLUMNS else 1)
    (image,) = (found for found in below.collections if isinstance(found, QuadMesh))
    assert np.asarray(image.get_array()).size <= 5 * MOST_COLUMNS
    assert len(below.get_xticks()) <= 25


def test_it_becomes_a_picture(tmp_path: Path):
    draw_partition(tmp_path / "partition.png", partition(2_000, 10))
    check_picture(tmp_path / "partition.png")


def test_clients_without_examples(tmp_path: Path):
    draw_partition(tmp_path / "partition.png", partition(300, 3, largest=0))
    check_picture(tmp_path / "partition.png")


def test_side_by_side_with_a_small_one_the_scale_is_the_same():
    small, large = partitions_figure(
        {"few": partition(4, 10, largest=3), "many": partition(20_000, 10, largest=3)}
    ).axes
    assert len(large.collections[0].get_sizes()) <= 10 * MOST_CLIENTS
    assert large.get_xlim() == (-0.5, 19_999.5)
    assert small.get_xlim() == (-0.5, 3.5)
