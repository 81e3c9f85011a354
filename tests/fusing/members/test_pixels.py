"""Preprocessing of folders, against the processors of transformers themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from fedfuse.core.errors import DataError
from fedfuse.fusing.members.huggingface.pixels import cropped, pixels_of

HERE = Path("preprocessor_config.json")
CASES: list[tuple[str, dict[str, Any]]] = [
    ("ViT", {}),
    ("ViT", {"size": {"height": 20, "width": 12}, "resample": 3, "image_mean": [0.1, 0.2, 0.3]}),
    ("ViT", {"do_resize": False, "do_normalize": False}),
    ("ViT", {"size": 16, "do_rescale": False}),
    ("DeiT", {"size": {"height": 24, "width": 24}, "crop_size": {"height": 20, "width": 18}}),
    ("Beit", {"size": {"height": 24, "width": 24}, "do_center_crop": True, "crop_size": 16}),
    ("Bit", {"size": {"shortest_edge": 20}, "crop_size": 16}),
    ("Bit", {"size": 12, "crop_size": {"height": 16, "width": 16}}),
    ("ConvNext", {"size": {"shortest_edge": 20}}),
    ("ConvNext", {"size": {"shortest_edge": 384}}),
    ("Levit", {"size": {"shortest_edge": 20}, "crop_size": 16}),
    ("MobileViT", {"size": {"shortest_edge": 20}, "crop_size": 16}),
    ("MobileNetV2", {"size": {"shortest_edge": 21}, "crop_size": 16}),
    ("EfficientNet", {"size": {"height": 20, "width": 20}}),
    ("Pvt", {"size": {"height": 20, "width": 20}}),
]


@pytest.mark.parametrize(("kind", "config"), CASES)
def test_as_transformers_does(kind: str, config: dict[str, Any]) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = getattr(transformers, f"{kind}ImageProcessorPil", None)
    if theirs is None:
        pytest.skip("this version of transformers has other processors")
    images = torch.randint(256, (3, 3, 17, 23), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    pictures = [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in images]
    expected = theirs(**config)(pictures, return_tensors="np")["pixel_values"]
    steps = pixels_of({"image_processor_type": f"{kind}ImageProcessorFast", **config}, 3, HERE)
    found = steps(images, "net").numpy()
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 2e-6
    assert steps.shape in (None, found.shape[1:])


def test_a_crop_of_what_is_too_small_has_black_around_it() -> None:
    image = torch.full((1, 1, 3, 6), 7, dtype=torch.uint8)
    found = cropped(image, 5, 4)
    assert found.shape == (1, 1, 5, 4)
    assert found[0, 0].tolist() == [[0] * 4, [7] * 4, [7] * 4, [7] * 4, [0] * 4]


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"image_processor_type": "Sam2ImageProcessor"}, "preprocessing by 'Sam2ImageProcessor' is not known here"),
        ({"size": {"height": 10**9, "width": 8}}, "'1000000000' is no number of pixels"),
        ({"size": {"longest_edge": 8}}, "is no size of images"),
        ({"resample": 77}, "none of Pillow's filters"),
        ({"resample": []}, "none of Pillow's filters"),
        ({"image_mean": [0.5], "image_std": [1, 2, 3]}, "not one pair for each of 3 channels"),
        ({"image_std": [0.0, 1, 1]}, "not one pair for each"),
        ({"image_std": ["x", 1, 1]}, "holds what is no number"),
        ({"rescale_factor": float("nan")}, "rescale_factor is no number above 0"),
        ({"do_pad": True}, "images are padded"),
    ],
)
def test_what_is_not_known_is_told(config: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        pixels_of(config, 3, HERE)
