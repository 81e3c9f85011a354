"""The inputs of a dataset that no client has."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field

from fedfuse.core.errors import ConfigError
from fedfuse.data import DataSettings, Transform, load
from fedfuse.data.tokens import tokenizer_of
from fedfuse.fusion.sources.base import FiniteSource, Surroundings, check_classes, make_source
from fedfuse.runtime.source import Source


class PublicData(DataSettings):
    """Another dataset's section; models read its inputs as they read the clients', with the same constants."""

    normalisation: Literal["experiment", "dataset", "none", "half"] = Field(  # type: ignore[assignment]
        "experiment",
        description="The constants of the clients' data, the dataset's own (FedDF's code), none at all, or 0.5 for "
        "every mean and deviation.",
    )


class OtherDataset(FiniteSource):
    """Another dataset's training inputs; the number of its classes does not matter."""

    kind: Literal["dataset"] = "dataset"
    data: PublicData
    classes: tuple[int, ...] | None = Field(
        None, min_length=1, description="only inputs of these classes (FedDF Fig. 6)"
    )

    def open(self, surroundings: Surroundings) -> Source:
        ours = surroundings.tokenizer
        if self.data.text is not None and tokenizer_of(self.data.text) != ours:
            raise ConfigError("source.data.text differs from data.text, but models read one kind of tokens; remove it")
        dataset = load(self.data, surroundings.key.child("load"), ours)
        inputs, labels = dataset.train.inputs, dataset.train.labels
        if self.classes is not None:
            check_classes(self.classes, dataset.classes, dataset.name)
            wanted = torch.isin(labels, torch.tensor(self.classes))
            inputs, labels = inputs[wanted], labels[wanted]
        return make_source(
            dataset.name,
            self.part_of(inputs, surroundings.key),
            self._transform(Transform.of(dataset, self.data), dataset.shape, surroundings.transform),
            surroundings,
            "set source.data.resize or source.data.channels, or choose another source",
            self.part_of(labels, surroundings.key),
            dataset.incomplete,
        )

    def _transform(self, own: Transform, shape: tuple[int, ...], clients: Transform) -> Transform:
        """Its own augmentation with the chosen constants."""
        constants = (clients if self.data.normalisation == "experiment" else own).normalisation
        return Transform(constants, shape, own.crop_padding, own.flip)
