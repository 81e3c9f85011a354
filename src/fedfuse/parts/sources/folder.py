"""The user's own inputs without labels: a folder of images, however it is divided, or one file of inputs."""

from __future__ import annotations

import re
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.paths import PathText, expanded
from fedfuse.data import Normalisation, Transform
from fedfuse.data.dataset import kind_of
from fedfuse.data.measure import measure
from fedfuse.data.readers import Reading
from fedfuse.data.unlabelled import read_unlabelled
from fedfuse.parts.sources.base import FiniteSource, Surroundings, make_source
from fedfuse.runtime.source import Source


class UnlabelledFiles(FiniteSource):
    """All images at and below a folder, or the inputs of one file; labels are not read."""

    kind: Literal["folder"] = "folder"
    path: PathText = Field(
        description="a folder of images at any depth, or an .npz, .parquet, .csv, .jsonl or .txt file; columns of a "
        "table are those of the clients' by name"
    )
    input_column: str | None = Field(None, description="of a table: the column of images, texts or lists of numbers")
    resize: int | None = Field(
        None, ge=1, le=4096, description="side in pixels to which images are resized, by averaging boxes of pixels"
    )
    channels: Literal[1, 3] | None = Field(None, description="make all images gray (1) or RGB (3)")
    normalisation: Literal["experiment", "dataset", "none", "half"] = Field(
        "experiment",
        description="the constants of the clients' data, those measured on these inputs, none at all, or 0.5 for every "
        "mean and deviation",
    )

    def open(self, surroundings: Surroundings) -> Source:
        path = expanded(self.path, "source.path")
        reading = Reading(
            self.input_column,
            resize=self.resize,
            channels=self.channels,
            labelled=False,
            tokenizer=surroundings.tokenizer,
            encoding=None if surroundings.columns is None else surroundings.columns.as_encoding,
        )
        try:
            inputs = torch.from_numpy(read_unlabelled(path, reading))
        except DataError as error:
            raise DataError(_KEYS.sub(r"source.\1", str(error))) from error
        if inputs.dtype != torch.uint8 and (self.resize or self.channels):
            raise ConfigError(
                f"source.resize and source.channels are for images, but {path} holds {kind_of(inputs)}; remove them"
            )
        kinds = kind_of(inputs), surroundings.clients.kind
        if kinds[0] != kinds[1]:
            raise ConfigError(f"source.path: {path} holds {kinds[0]}, but the clients have {kinds[1]}")
        if kind_of(inputs) == "texts" and self.normalisation != "experiment":
            raise ConfigError(f"source.normalisation is for images and numbers, but {path} holds texts; remove it")
        return make_source(
            path.name,
            self.part_of(inputs, surroundings.key),
            self._transform(inputs, surroundings.transform),
            surroundings,
            "set source.resize or source.channels, or choose another source",
        )

    def _transform(self, inputs: Tensor, own: Transform) -> Transform:
        """The experiment's augmentation with the chosen constants."""
        if self.normalisation == "experiment":
            return own
        if self.normalisation == "dataset":
            constants = measure(inputs.numpy())
        else:
            constants = Normalisation.uniform(self.normalisation, inputs.shape[1])
        return Transform(constants, tuple(inputs.shape[1:]), own.crop_padding, own.flip)


_KEYS = re.compile(r"\bdata\.(path|input_column|resize|channels)\b")
"""The readers name the keys of the ``data`` section; here they lie in ``source``."""
