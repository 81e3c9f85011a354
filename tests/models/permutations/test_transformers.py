"""Networks of ``transformers``, built from their config: whatever order their units are put into, the same function."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.randomness import Key
from tests.models.permutations.test_units import assert_same_function

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.long

WIDE = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 32}
IMAGES = {
    "vit": {"image_size": 32, "patch_size": 8, **WIDE},
    "convnext": {"patch_size": 2, "hidden_sizes": [8, 12], "depths": [1, 1], "num_stages": 2},
    "swin": {
        "image_size": 32,
        "patch_size": 2,
        "embed_dim": 8,
        "depths": [2, 2],
        "num_heads": [2, 4],
        "window_size": 4,
    },
    "resnet": {"embedding_size": 8, "hidden_sizes": [16, 24], "depths": [1, 1]},
    "mobilevit": {"image_size": 32, "hidden_sizes": [8, 8, 8], "neck_hidden_sizes": [8] * 7, "num_attention_heads": 2},
}
TEXTS = {
    "bert": {"vocab_size": 50, **WIDE},
    "distilbert": {"vocab_size": 50, "dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 32},
}


def built(kind, network, settings):
    with Key(1).default_generator():
        config = transformers.AutoConfig.for_model(kind, num_labels=4, **settings)
        return getattr(transformers, network).from_config(config)


@pytest.mark.parametrize("kind", list(IMAGES))
def test_of_images(kind):
    network = built(kind, "AutoModelForImageClassification", IMAGES[kind])
    assert not assert_same_function(network, torch.rand(2, 3, 32, 32, generator=Key(0).torch())).unfollowed


@pytest.mark.parametrize("kind", list(TEXTS))
def test_of_texts(kind):
    network = built(kind, "AutoModelForSequenceClassification", TEXTS[kind])
    assert not assert_same_function(network, torch.randint(1, 50, (2, 9), generator=Key(0).torch())).unfollowed
