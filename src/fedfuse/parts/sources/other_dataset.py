"""The inputs of a dataset that no client has."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field

from fedfuse.core.errors import ConfigError
from fedfuse.data import Dataset, DataSettings, Transform, load
from fedfuse.data.tokens import tokenizer_of
from fedfuse.data.transform import chosen_normalisation
from fedfuse.parts.sources.base import FiniteSource, Surroundings, check_classes, make_source
from fedfuse.runtime.source import Source


class PublicData(DataSettings):
    """Another dataset's section; models read its inputs as the clients', with the same constants and augmentation."""

    normalisation: Literal["experiment", "dataset", "none", "half"] = Field(  # type: ignore[assignment]
        "experiment",
        description="The constants of the clients' data, the dataset's own (FedDF's code), none at all, or 0.5 for "
        "every mean and deviation.",
    )
    augment: tuple[Literal["crop", "flip"], ...] | None = Field(  # type: ignore[assignment]
        None, description="Random changes of these images; those of the clients' if not given, [] for none."
    )
    crop_padding: int = Field(4, ge=1, le=64, description="Pixels of zero padding, if augment here names crop.")


class OtherDataset(FiniteSource):
    """Another dataset's training inputs; the number of its classes does not matter."""

    kind: Literal["dataset"] = "dataset"
    data: PublicData = Field(description="the dataset, as in the section data")
    classes: tuple[int, ...] | None = Field(
        None, min_length=1, description="only inputs of these classes (FedDF Fig. 6)"
    )

    def open(self, surroundings: Surroundings) -> Source:
        ours = surroundings.tokenizer
        if self.data.text is not None and tokenizer_of(self.data.text) != ours:
            raise ConfigError("source.data.text differs from data.text, but models read one kind of tokens; remove it")
        dataset = load(self.data, surroundings.key.child("load"), ours, surroundings.columns)
        inputs, labels = dataset.train.inputs, dataset.train.labels
        if self.classes is not None:
            check_classes(self.classes, dataset.classes, dataset.name)
            wanted = torch.isin(labels, torch.tensor(self.classes))
            inputs, labels = inputs[wanted], labels[wanted]
        return make_source(
            dataset.name,
            self.part_of(inputs, surroundings.key),
            self._transform(dataset, surroundings.transform),
            surroundings,
            "set source.data.resize or source.data.channels, or choose another source",
            self.part_of(labels, surroundings.key),
            dataset.incomplete,
        )

    def _transform(self, dataset: Dataset, clients: Transform) -> Transform:
        """The chosen constants and augmentation; the clients' unless this section says otherwise."""
        is_theirs = self.data.normalisation == "experiment"
        constants = clients.normalisation if is_theirs else chosen_normalisation(dataset, self.data)
        padding, flip, augment = clients.crop_padding, clients.flip, self.data.augment
        if augment is not None:
            padding, flip = self.data.crop_padding if "crop" in augment else 0, "flip" in augment
        return Transform(constants, dataset.shape, padding, flip)
