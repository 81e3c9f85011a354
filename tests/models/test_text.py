"""Text models: padding is invisible, and the convolutions are those of the paper."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.core.weights import Weights
from fedfuse.models import Architecture, TextCnn, TextTransformer, create
from fedfuse.models.saved import load_model, save_model

SHAPE = TextShape(length=12, vocabulary=40)
MODELS = [TextCnn(embedding=6, channels=5), TextTransformer(width=8, heads=2)]
each_model = pytest.mark.parametrize("architecture", MODELS, ids=lambda architecture: architecture.arch)


def texts() -> torch.Tensor:
    tokens = torch.randint(1, SHAPE.vocabulary, (4, SHAPE.length), generator=Key(1).torch())
    lengths = torch.tensor([1, 2, 5, 7])
    return tokens * (torch.arange(SHAPE.length) < lengths[:, None])


@each_model
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("noisy_padding", [False, True])
def test_padding_changes_nothing(architecture: Architecture, gradients: bool, noisy_padding: bool) -> None:
    model = create(architecture, SHAPE, 3, Key(0)).eval()
    if noisy_padding:  # as when a server draws weights at random: the embedding of padding is never read
        with torch.no_grad():
            model.embedding.weight[0] = 100.0
    tokens = texts()
    with torch.set_grad_enabled(gradients):
        whole, trimmed = model(tokens), model(tokens[:, :7])
        alone = torch.cat([model(row[row != 0][None]) for row in tokens])
    assert torch.allclose(whole, trimmed, atol=1e-6)
    assert torch.allclose(whole, alone, atol=1e-6)
    assert not torch.allclose(whole[0], whole[1], atol=1e-4)


@each_model
def test_the_order_of_words_counts(architecture: Architecture) -> None:
    model = create(architecture, SHAPE, 3, Key(0)).eval()
    tokens = texts()[3:, :7]
    assert not torch.allclose(model(tokens), model(tokens.flip(1)), atol=1e-5)


def test_features_of_the_cnn_by_hand() -> None:
    model = create(TextCnn(embedding=3, channels=2, widths=(2, 3), dropout=0.0), SHAPE, 3, Key(0)).eval()
    row = texts()[2]
    embedded = [model.embedding.weight[token] for token in row[row != 0]]
    found = []
    for width, (_, convolution) in zip((2, 3), model.convolutions, strict=True):
        before, after = (width - 1) // 2, width // 2
        line = [torch.zeros(3)] * before + embedded + [torch.zeros(3)] * after
        windows = [torch.stack(line[start : start + width], dim=1) for start in range(len(embedded))]
        answers = torch.stack([(convolution.weight * window).sum(dim=(1, 2)) + convolution.bias for window in windows])
        found.append(F.relu(answers).amax(dim=0))
    assert torch.allclose(model.features(row[None])[0], torch.cat(found), atol=1e-6)


@each_model
def test_a_saved_model_is_the_same(architecture: Architecture, tmp_path) -> None:
    model = create(architecture, SHAPE, 3, Key(0)).eval()
    save_model(tmp_path / "m.safetensors", architecture, SHAPE, 3, Weights.of(model))
    again = load_model(tmp_path / "m.safetensors")
    with torch.no_grad():
        assert torch.equal(again(texts()), model(texts()))


@each_model
def test_layers_begin_differently(architecture: Architecture) -> None:
    """Copies of one layer would begin with equal weights."""
    model = create(architecture, SHAPE, 3, Key(0))
    matrices = [p.flatten().tolist() for _, p in model.named_parameters() if p.ndim > 1]
    assert len({tuple(matrix) for matrix in matrices}) == len(matrices)
