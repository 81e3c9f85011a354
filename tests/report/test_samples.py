"""The picture of a generator's samples."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.parts.sources.generators import Generator, GeneratorCard, VaeSettings
from fedfuse.report.samples import draw_samples, samples_figure


def make_generator(shape=(1, 8, 8), classes=3, kind="images"):
    network = VaeSettings(latent=2, hidden=3)
    card = GeneratorCard(
        network=network,
        input_shape=shape,
        input_kind=kind,
        classes=classes,
        trained_on="",
        examples=2,
        epochs=1,
        seed=0,
    )
    with Key(1).default_generator():  # other weights might make the same of any noise
        return Generator(card, card.decoder())


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 6, 8)])
def test_every_sample_is_on_the_sheet_in_the_row_of_its_class(shape):
    generator = make_generator(shape)
    with torch.no_grad():
        generator.decoder.layers[0].weight.zero_()
        generator.decoder.layers[0].weight[:, 2:] = 50 * torch.eye(3)  # one hidden unit per class
        generator.decoder.layers[0].bias.zero_()
        last = generator.decoder.layers[2]
        last.weight[:], last.bias[:] = torch.tensor([-1.0, 0.0, 1.0]), 0
    (axes,) = samples_figure(generator, 4, 0).axes
    sheet = np.asarray(axes.images[0].get_array())
    _, height, width = shape
    assert sheet.shape == (3 * (height + 1), 4 * (width + 1), 3)
    for row, gray in enumerate((0.0, 0.5, 1.0)):
        for column in range(4):
            top, left = row * (height + 1), column * (width + 1)
            cell = sheet[top : top + height, left : left + width]
            assert np.allclose(cell, gray, atol=1e-6)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1", "2"]


def test_the_file_depends_on_the_seed_only(tmp_path):
    generator = make_generator()
    for name, seed in (("one", 0), ("same", 0), ("other", 1)):
        draw_samples(tmp_path / name, generator, 2, seed)
    one, same, other = ((tmp_path / name).read_bytes() for name in ("one", "same", "other"))
    assert one == same
    assert one != other
    assert Image.open(tmp_path / "one").size[0] > 100


@pytest.mark.parametrize(("shape", "kind"), [((5,), "features"), ((2, 8, 8), "images")])
def test_what_is_no_picture_is_refused(shape, kind):
    with pytest.raises(ConfigError, match="nothing that can be drawn"):
        samples_figure(make_generator(shape, kind=kind), 2, 0)
