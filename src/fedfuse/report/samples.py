"""What a generator makes: one row per class, side by side."""

from __future__ import annotations

from pathlib import Path

import torch
from matplotlib.figure import Figure

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.parts.sources.generators import Generator
from fedfuse.report.saving import save
from fedfuse.report.style import INK, SMALL_SIZE, new_figure

CELL = 0.5  # inches per sample
MOST_CLASSES = 50


def draw_samples(path: Path, generator: Generator, per_class: int, seed: int) -> None:
    """Write ``per_class`` samples of every class as a PNG."""
    save(samples_figure(generator, per_class, seed), path)


def samples_figure(generator: Generator, per_class: int, seed: int) -> Figure:
    """The picture of :func:`draw_samples`; of many classes the first ones."""
    card = generator.card
    if card.input_kind != "images" or card.input_shape[0] not in (1, 3):
        raise ConfigError(f"a generator of {card.input_kind} makes nothing that can be drawn; leave --picture away")
    classes = min(card.classes, MOST_CLASSES)
    labels = torch.arange(classes).repeat_interleave(per_class)
    images = generator(len(labels), Key(seed).child("samples").torch(), labels).movedim(1, -1)
    channels, height, width = card.input_shape
    # One picture of all samples with a border of one pixel, so that no cell is smoothed or cut on its own.
    sheet = torch.ones(classes * (height + 1), per_class * (width + 1), channels)
    for position, image in enumerate(images):
        top, left = position // per_class * (height + 1), position % per_class * (width + 1)
        sheet[top : top + height, left : left + width] = image
    figure = new_figure(CELL * per_class + 0.8, CELL * height / width * classes + 0.4)
    axes = figure.add_subplot()
    axes.imshow(sheet.expand(-1, -1, 3).numpy(), interpolation="nearest")
    axes.set_yticks([(row + 0.5) * (height + 1) for row in range(classes)], [str(row) for row in range(classes)])
    axes.set_xticks([])
    axes.set_ylabel("Class", fontsize=SMALL_SIZE, color=INK)
    axes.tick_params(length=0, labelsize=SMALL_SIZE, labelcolor=INK)
    axes.set_frame_on(False)
    return figure
