"""What is known about a dataset before it is read: its card."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Format = Literal[
    "parquet", "idx", "emnist", "cifar10", "cifar100", "svhn", "stl10", "tiny_imagenet", "imagenet32", "jsonl"
]


@dataclass(frozen=True)
class Normalisation:
    """Per-channel constants, none for texts; images are first scaled from 0..255 to 0..1."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @staticmethod
    def uniform(choice: Literal["none", "half"], channels: int) -> Normalisation:
        """The same constants for every channel: none at all, or 0.5 for mean and deviation."""
        mean, std = {"none": (0.0, 1.0), "half": (0.5, 0.5)}[choice]
        return Normalisation((mean,) * channels, (std,) * channels)


@dataclass(frozen=True)
class Layout:
    """Patterns of the files of one dataset inside a folder; without ``test`` there is no official split."""

    train: str
    test: str | None = None
    format: Format = "parquet"
    validation: str | None = None
    """Of the official validation split, which only counts for those who ask for it."""

    @property
    def parts(self) -> dict[str, str]:
        """The patterns by the split that they are of."""
        every = {"training": self.train, "test": self.test, "validation": self.validation}
        return {part: pattern for part, pattern in every.items() if pattern is not None}

    @property
    def names(self) -> str:
        """The files in words."""
        return " and ".join(pattern.replace("*.parquet", ".parquet") for pattern in self.parts.values())


@dataclass(frozen=True)
class Hub:
    """A dataset's name on the Hugging Face hub, and the parquet files that hold it there."""

    name: str
    files: Layout


@dataclass(frozen=True)
class Package:
    """A package of an operating system that holds a dataset, and the folder it installs."""

    name: str
    folder: str
    files: Layout


@dataclass(frozen=True)
class Card:
    """One dataset of the catalogue."""

    title: str
    shape: tuple[int, ...]
    """Of one input; nothing for texts, whose shape ``data.text`` decides."""
    classes: int
    licence: str
    normalisation: Normalisation | None = None
    """The constants of the papers; None: measured on the training examples."""
    layouts: tuple[Layout, ...] = ()
    """The first one whose training files are there is read; none for sets that are generated or installed."""
    sizes: tuple[int, int] | None = None
    """Examples of the official training and test splits; None: there is no official split."""
    home: str | None = None
    """Where the original files come from."""
    label_column: str = "label"
    client_column: str | None = None
    """The column that says whose each example is, in data that comes separated by client."""
    hub: Hub | None = None
    package: Package | None = None

    validation_size: int | None = None
    """Examples of the official validation split, if there is one."""

    @property
    def without_validation(self) -> Card:
        """For those who do not ask for the validation split, and then need not have its file."""
        hub = None if self.hub is None else replace(self.hub, files=replace(self.hub.files, validation=None))
        return replace(self, layouts=tuple(replace(one, validation=None) for one in self.layouts), hub=hub)

    @property
    def is_text(self) -> bool:
        return not self.shape

    @property
    def inputs(self) -> str:
        """What one input is, in a word."""
        return "text" if self.is_text else "x".join(map(str, self.shape))
