"""What a folder's ``preprocessor_config.json`` does to images, in the order and arithmetic of transformers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, Literal

import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import pad

from fedfuse.catalogue.card import Normalisation
from fedfuse.core.errors import DataError, shortened
from fedfuse.fusing.members.images import resized, with_channels

LARGEST = 4096
"""Pixels of an image's side."""
HALF = (0.5, 0.5, 0.5)
IMAGENET = {"image_mean": (0.485, 0.456, 0.406), "image_std": (0.229, 0.224, 0.225)}
CLIP = {"image_mean": (0.48145466, 0.4578275, 0.40821073), "image_std": (0.26862954, 0.26130258, 0.27577711)}
COMMON: dict[str, Any] = {
    "do_resize": True,
    "do_center_crop": False,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "resample": 2,
    "image_mean": HALF,
    "image_std": HALF,
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "ViT": {"size": {"height": 224, "width": 224}},
    "DeiT": {"resample": 3, "size": {"height": 256, "width": 256}, "do_center_crop": True, "crop_size": 224},
    "Beit": {"resample": 3, "size": {"height": 224, "width": 224}, "crop_size": 224},
    "Bit": {"resample": 3, "size": {"shortest_edge": 224}, "do_center_crop": True, "crop_size": 224, **CLIP},
    "CLIP": {"resample": 3, "size": {"shortest_edge": 224}, "do_center_crop": True, "crop_size": 224, **CLIP},
    "Siglip": {"resample": 3, "size": {"height": 224, "width": 224}},
    "ConvNext": {"resample": 3, "size": {"shortest_edge": 384}, "crop_pct": 224 / 256},
    "Pvt": {"resample": 3, "size": {"height": 224, "width": 224}, **IMAGENET},
    "Levit": {"resample": 3, "size": {"shortest_edge": 224}, "do_center_crop": True, "crop_size": 224, **IMAGENET},
    "MobileNetV1": {"size": {"shortest_edge": 256}, "do_center_crop": True, "crop_size": 224},
    "MobileNetV2": {"size": {"shortest_edge": 256}, "do_center_crop": True, "crop_size": 224},
    "MobileViT": {
        "resample": 3,
        "size": {"shortest_edge": 224},
        "do_center_crop": True,
        "crop_size": 256,
        "do_normalize": False,
        "do_flip_channel_order": True,
    },
    "EfficientNet": {"resample": 3, "size": {"height": 346, "width": 346}, "crop_size": 289, "include_top": True},
}
"""What each kind of processor does where its file is silent."""
SHORTEST = frozenset({"Bit", "CLIP", "ConvNext", "Levit", "MobileNetV1", "MobileNetV2", "MobileViT"})
"""Kinds that take a single number for the shorter side, and not for both."""
LEVIT = 256 / 224
"""LeViT resizes to this many times the size that it names."""

Fit = Literal["both", "shortest"]


@dataclass(frozen=True)
class Pixels:
    """Resize, crop, rescale, normalise; each step only if it is there."""

    channels: int
    fit: Fit | None
    size: tuple[int, int]
    """Height and width; of ``shortest`` the shorter side twice."""
    resample: int
    inner_crop: tuple[int, int] | None
    """Right after resizing, as ConvNeXt's has it."""
    crop: tuple[int, int] | None
    factor: float | None
    offset: float
    constants: tuple[Normalisation, ...]
    flips: bool

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Of what comes out; None where it depends on what goes in."""
        last = self.crop or self.inner_crop or (self.size if self.fit == "both" else None)
        return None if last is None else (self.channels, *last)

    def __call__(self, images: Tensor, name: str) -> Tensor:
        images = with_channels(images, self.channels, name)
        if self.fit is not None:
            images = resized(images, *self._target(images), self.resample)
        for crop in (self.inner_crop, self.crop):
            if crop is not None:
                images = cropped(images, *crop)
        values = images.to(torch.float32) if self.factor is None else (images.double() * self.factor).float()
        values = values + self.offset if self.offset else values
        for constants in self.constants:
            mean, std = (torch.tensor(one).view(-1, 1, 1) for one in (constants.mean, constants.std))
            values = (values - mean) / std
        return values.flip(1) if self.flips else values

    def in_words(self, only_constants: bool) -> dict[str, Any]:
        """The keys of a file that has these constants; of a file that is new, all others too."""
        constants = self.constants[0]
        keys = {
            "do_rescale": True,
            "rescale_factor": self.factor,
            "do_normalize": True,
            "image_mean": list(constants.mean),
            "image_std": list(constants.std),
            **({"include_top": False, "rescale_offset": False} if only_constants else {}),
        }
        if only_constants:
            return keys
        size = {"size": {"height": self.size[0], "width": self.size[1]}, "resample": self.resample}
        return {**keys, "do_resize": self.fit is not None, **(size if self.fit is not None else {})}

    def _target(self, images: Tensor) -> tuple[int, int]:
        if self.fit == "both":
            return self.size
        height, width = images.shape[2:]
        wanted = self.size[0]
        if height < width:
            return wanted, _bounded(int(wanted * width / height))
        return _bounded(int(wanted * height / width)), wanted


def cropped(images: Tensor, height: int, width: int) -> Tensor:
    """The middle; of images that are too small, with black around them."""
    found = images.shape[2:]
    top, left = (found[0] - height) // 2, (found[1] - width) // 2
    if height > found[0] or width > found[1]:
        rows, columns = max(height, found[0]), max(width, found[1])
        above, before = ceil((rows - found[0]) / 2), ceil((columns - found[1]) / 2)
        images = pad(images, (before, columns - found[1] - before, above, rows - found[0] - above))
        top, left = max(0, top + above), max(0, left + before)
    return images[:, :, top : top + height, left : left + width]


def pixels_of(config: Mapping[str, Any], channels: int, where: Path) -> Pixels:
    """The steps that a file asks for; a sentence about those that are not known here."""
    kind = _kind(config, where)
    values = {**COMMON, **DEFAULTS[kind], **{key: value for key, value in config.items() if value is not None}}
    if values.get("do_pad"):
        raise DataError(f"{where}: images are padded (do_pad), which is not known here; give it as ONNX")
    fit, size = _size(values.get("size"), kind in SHORTEST, where) if values["do_resize"] else (None, (0, 0))
    inner_crop = None
    if kind == "ConvNext" and fit is not None:
        inner_crop, size = (
            (size, _enlarged(size, 1 / _number(values, "crop_pct", where))) if size[0] < 384 else (None, size)
        )
        fit = "shortest" if inner_crop else "both"
    if kind == "Levit" and fit == "shortest":
        size = _enlarged(size, LEVIT)
    constants = [_constants(values, channels, where)] if values["do_normalize"] else []
    if kind == "EfficientNet" and values.get("include_top"):
        again = _constants(values, channels, where)
        constants.append(Normalisation((0.0,) * channels, again.std))
    return Pixels(
        channels=channels,
        fit=fit,
        size=size,
        resample=_resample(values["resample"], where),
        inner_crop=inner_crop,
        crop=_size(values.get("crop_size"), False, where)[1] if values["do_center_crop"] else None,
        factor=_number(values, "rescale_factor", where) if values["do_rescale"] else None,
        offset=-1.0 if kind == "EfficientNet" and values.get("rescale_offset") else 0.0,
        constants=tuple(constants),
        flips=bool(values.get("do_flip_channel_order")),
    )


def plain(channels: int, side: tuple[int, int] | None, constants: Normalisation) -> Pixels:
    """Of a folder without a processor: as large as its network, and with these constants."""
    return Pixels(channels, "both" if side else None, side or (0, 0), 2, None, None, 1 / 255, 0.0, (constants,), False)


def _kind(config: Mapping[str, Any], where: Path) -> str:
    named = config.get("image_processor_type") or config.get("feature_extractor_type") or "ViTImageProcessor"
    kind = str(named)
    for ending in ("Fast", "Pil", "ImageProcessor", "FeatureExtractor"):
        kind = kind.removesuffix(ending)
    if kind not in DEFAULTS:
        raise DataError(
            f"{where}: preprocessing by {shortened(str(named))!a} is not known here; export the model with it to ONNX"
        )
    return kind


def _size(value: Any, shortest: bool, where: Path) -> tuple[Fit, tuple[int, int]]:
    if isinstance(value, Mapping):
        if set(value) == {"shortest_edge"}:
            return "shortest", (_side(value["shortest_edge"], where),) * 2
        if set(value) == {"height", "width"}:
            return "both", (_side(value["height"], where), _side(value["width"], where))
    elif isinstance(value, list | tuple) and len(value) == 2:
        return "both", (_side(value[0], where), _side(value[1], where))
    elif isinstance(value, int):
        return "shortest" if shortest else "both", (_side(value, where),) * 2
    raise DataError(f"{where}: {shortened(str(value))!a} is no size of images that is known here")


def _side(value: Any, where: Path) -> int:
    if type(value) is not int or not 1 <= value <= LARGEST:
        raise DataError(f"{where}: {shortened(str(value))!a} is no number of pixels from 1 to {LARGEST}")
    return value


def _bounded(side: int) -> int:
    return min(side, 4 * LARGEST)


def _enlarged(size: tuple[int, int], factor: float) -> tuple[int, int]:
    return (int(size[0] * factor),) * 2


def _number(values: Mapping[str, Any], key: str, where: Path) -> float:
    value = values.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise DataError(f"{where}: {key} is no number above 0")
    return float(value)


def _resample(value: Any, where: Path) -> int:
    if type(value) is not int or value not in set(Image.Resampling):
        raise DataError(f"{where}: resample {shortened(str(value))!a} is none of Pillow's filters, 0 to 5")
    return value


def _constants(values: Mapping[str, Any], channels: int, where: Path) -> Normalisation:
    def numbers(key: str) -> tuple[float, ...]:
        found = values[key]
        found = list(found) if isinstance(found, list | tuple) else [found] * channels
        try:
            return tuple(map(float, found))
        except (TypeError, ValueError):
            raise DataError(f"{where}: {key} holds what is no number") from None

    mean, std = numbers("image_mean"), numbers("image_std")
    if len(mean) != channels and len(set(mean)) == len(set(std)) == 1:  # gray images with the constants of colours
        mean, std = mean[:1] * channels, std[:1] * channels
    sound = all(map(math.isfinite, (*mean, *std))) and min(std, default=0) > 0
    if not sound or len(mean) != channels or len(std) != channels:
        raise DataError(f"{where}: image_mean and image_std are not one pair for each of {channels} channels")
    return Normalisation(mean, std)
