"""Raw inputs as people have them, to what a network was trained on: what a saved model knows of its data."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fedfuse.catalogue.datasets import find_card
from fedfuse.data.dataset import Dataset, kind_of
from fedfuse.data.raw.base import RawInputs
from fedfuse.data.raw.images import RawImages
from fedfuse.data.raw.numbers import RawNumbers
from fedfuse.data.raw.tables import RawTable
from fedfuse.data.raw.texts import RawTexts
from fedfuse.data.settings import DataSettings
from fedfuse.data.tokens import TextSettings
from fedfuse.data.transform import chosen_normalisation

__all__ = ["AnyRawInputs", "RawImages", "RawInputs", "RawNumbers", "RawTable", "RawTexts", "raw_inputs_of"]

AnyRawInputs = Annotated[RawImages | RawNumbers | RawTable | RawTexts, Field(discriminator="kind")]


def raw_inputs_of(dataset: Dataset, settings: DataSettings) -> RawImages | RawNumbers | RawTable | RawTexts:
    """How the inputs of a dataset were made, so that others can be made alike."""
    if dataset.tokenizer is not None:
        return RawTexts.of(dataset.tokenizer, settings.text or TextSettings())
    normalisation = chosen_normalisation(dataset, settings)
    constants = {"mean": normalisation.mean, "std": normalisation.std}
    if kind_of(dataset.train.inputs) == "images":
        return RawImages(**constants, resize=settings.resize, channels=_converted_to(settings))
    columns = dataset.columns
    if columns is not None and columns.encoding is not None:
        return RawTable(**constants, encoding=columns.encoding, beside=columns.beside)
    return RawNumbers(
        **constants, columns=columns.inputs if columns else None, beside=columns.beside if columns else ()
    )


def _converted_to(settings: DataSettings) -> int | None:
    """The channels that all images are given; None where they are left as they are."""
    card = find_card(settings.name)
    return settings.channels or (card.shape[0] if card is not None and len(card.shape) == 3 else None)
