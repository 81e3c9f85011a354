"""Raw batches to what a model sees: augmentation on raw pixels, then normalisation; of texts, no needless padding."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from fedfuse.catalogue.card import Normalisation
from fedfuse.core.errors import ConfigError
from fedfuse.core.text import PADDING
from fedfuse.data.dataset import Dataset, kind_of
from fedfuse.data.settings import Constants, DataSettings


class Transform:
    """Normalise and augment batches on whatever device they are on; holds constants only."""

    def __init__(
        self, normalisation: Normalisation, shape: tuple[int, ...], crop_padding: int = 0, flip: bool = False
    ) -> None:
        self.normalisation = normalisation
        self.crop_padding = crop_padding
        self.flip = flip
        mean, std = (
            torch.tensor(values, dtype=torch.float64).reshape(-1, *[1] * (len(shape) - 1))
            for values in (normalisation.mean, normalisation.std)
        )
        self._shift = (-mean / std).float()
        self._image_scale = (1 / (255 * std)).float()
        self._feature_scale = (1 / std).float()

    @staticmethod
    def of(dataset: Dataset, settings: DataSettings) -> Transform:
        return Transform(
            chosen_normalisation(dataset, settings),
            dataset.shape,
            settings.crop_padding if "crop" in settings.augment else 0,
            "flip" in settings.augment,
        )

    @property
    def augments(self) -> bool:
        return self.crop_padding > 0 or self.flip

    def __call__(self, inputs: Tensor) -> Tensor:
        """(x - mean) / std in float32, where uint8 is first scaled to 0..1; texts as :func:`trim` leaves them."""
        if kind_of(inputs) == "texts":
            return trim(inputs)
        shift = self._shift.to(inputs.device)
        if inputs.is_floating_point():
            return torch.addcmul(shift, inputs.to(torch.float32), self._feature_scale.to(inputs.device))
        # The conversion made a fresh tensor, so working in place is safe and twice as fast.
        return inputs.to(torch.float32).mul_(self._image_scale.to(inputs.device)).add_(shift)

    def augment(self, inputs: Tensor, generator: torch.Generator | None) -> Tensor:
        """Crop and flip each raw image at random; every number comes from the (CPU) generator.

        Padding is with raw zeros, that is black, as in the papers' code, and not with the normalised zero.
        """
        if not self.augments:
            return inputs
        count, _, height, width = inputs.shape
        rows, columns = torch.arange(height).expand(count, -1), torch.arange(width).expand(count, -1)
        if self.flip:
            chosen = torch.randint(0, 2, (count, 1), generator=generator).bool()
            columns = torch.where(chosen, columns.flip(-1), columns)
        if self.crop_padding:
            corners = torch.randint(0, 2 * self.crop_padding + 1, (2, count, 1), generator=generator)
            rows, columns = rows + corners[0], columns + corners[1]
        return _pick(F.pad(inputs, (self.crop_padding,) * 4), rows, columns)


def trim(tokens: Tensor) -> Tensor:
    """A batch of texts, int64, cut to the longest of them."""
    longest = int((tokens != PADDING).sum(dim=1).max()) if len(tokens) else 0
    return tokens[:, :longest].long()


def chosen_normalisation(dataset: Dataset, settings: DataSettings) -> Normalisation:
    """The constants that ``data.normalisation`` asks for."""
    chosen, size = settings.normalisation, len(dataset.normalisation.mean)
    if isinstance(chosen, Constants):
        return _given(chosen, size)
    if chosen in ("none", "half"):
        return Normalisation.uniform(chosen, size)
    return dataset.normalisation


def _given(constants: Constants, size: int) -> Normalisation:
    given = len(constants.mean)
    if given not in (1, size):
        raise ConfigError(
            f"data.normalisation has constants for {given} channels or columns, but the inputs have {size}; give as "
            "many, or one of each for all"
        )
    repeated = size if given == 1 else 1
    return Normalisation(constants.mean * repeated, constants.std * repeated)


def _pick(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Of each image the pixels at its own rows and columns; one gather over flat pixels beats indexing by four axes."""
    count, channels, _, width = images.shape
    where = (rows[:, :, None] * width + columns[:, None, :]).reshape(count, 1, -1).to(images.device)
    picked = images.reshape(count, channels, -1).gather(2, where.expand(-1, channels, -1))
    return picked.view(count, channels, rows.shape[1], columns.shape[1])
