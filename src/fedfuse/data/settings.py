"""Which dataset an experiment uses, and how its examples are prepared and divided."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictFloat, StrictInt, field_validator, model_validator

from fedfuse.catalogue.datasets import CATALOGUE
from fedfuse.core.errors import unknown
from fedfuse.core.part import Settings
from fedfuse.data.tokens import TextSettings

HUB_PREFIX = "hf:"
OWN_FILES = ("parquet", "csv", "npz", "images", "python")
IN_MEMORY = ("arrays", "tables")
GENERATED = ("blobs", "swiss_roll")
INSTALLED = ("digits",)


def _share_or_count(value: Any) -> Any:
    """1 is one example and 1.0 would be all of them, so the type decides and the ranges do not meet."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number; give a share such as 0.1 or a count such as 1000")
    if isinstance(value, int) and value < 0:
        raise ValueError(f"{value} is negative; a count is a whole number from 0")
    if isinstance(value, float) and not 0 <= value < 1:
        raise ValueError(f"{value} is not a share; a share is at least 0 and below 1, a count has no decimal point")
    return value


Share = Annotated[StrictInt | StrictFloat, BeforeValidator(_share_or_count)]
Official = Literal["official"]


def _share_count_or_official(value: Any) -> Any:
    return value if value == "official" else _share_or_count(value)


ShareOrOfficial = Annotated[StrictInt | StrictFloat | Official, BeforeValidator(_share_count_or_official)]


class DataSettings(Settings):
    """The ``data`` section of an experiment."""

    name: str = Field(
        description="A dataset of the catalogue (digits, cifar10, ...); parquet, csv, npz, images or python for "
        "your own data; "
        "or hf:<name or folder> for a Hugging Face dataset."
    )
    path: str | None = Field(
        None,
        description="Your file or folder, or module:function for python, or the hash of arrays and tables that Python "
        "gave; for a dataset of the catalogue, the folder its files lie in.",
    )
    test_path: str | None = Field(None, description="Your own test file or folder, when it lies elsewhere than path.")
    input_column: str | None = Field(None, description="The column of images, of texts or of lists of numbers.")
    label_column: str | None = Field(
        None, description="The column of labels: whole numbers from 0, or words, numbered in alphabetical order."
    )
    client_column: str | None = Field(
        None, description="The column that says whose each example is, for partition natural."
    )
    ignore_columns: tuple[str, ...] = Field(
        (), description="Columns of a table that are no inputs, such as the number of a row; they are not read."
    )
    client_files: bool = Field(
        False,
        description="path is a folder with one file per client (images: one folder per client), named after it.",
    )
    resize: int | None = Field(
        None, ge=1, le=4096, description="Side in pixels to which images are resized, by averaging boxes of pixels."
    )
    channels: Literal[1, 3] | None = Field(None, description="Make all images gray (1) or RGB (3).")
    text: TextSettings | None = Field(
        None, description="How texts become numbers; for data that holds texts, the defaults if not given."
    )
    train_limit: int | None = Field(
        None, ge=1, description="Keep only this many training examples, drawn at random, for quick trials."
    )
    test_limit: int | None = Field(None, ge=1, description="Keep only this many test examples, drawn at random.")
    test: Share = Field(
        0.2, description="Share or count of examples split off for testing when the dataset has no test split."
    )
    validation: ShareOrOfficial = Field(
        0.1,
        description="Share or count of the training examples that the server validates on; or official: the dataset's "
        "own validation split, which leaves all training examples to the clients.",
    )
    public: ShareOrOfficial = Field(
        0.0,
        description="Share or count of the training examples that become public data; or official: the public "
        "examples that Python gave.",
    )
    split: Literal["random", "in_order"] = Field(
        "random",
        description="Which examples become public, validation and test: random ones, or by their place in the file. "
        "in_order: the first are public (FedED's code), then the clients', then validation (FedDF's code), then test.",
    )
    normalisation: Literal["dataset", "none", "half"] = Field(
        "dataset", description="The dataset's own constants, none at all, or 0.5 for every mean and deviation."
    )
    augment: tuple[Literal["crop", "flip"], ...] = Field(
        (), description="Random changes of training images: crop (after zero padding) and horizontal flip."
    )
    crop_padding: int = Field(
        4, ge=1, le=64, description="Pixels of zero padding around an image before it is cropped."
    )
    examples: int | None = Field(
        None, ge=1, le=10_000_000, description="Size of a generated set (blobs, swiss_roll); 600 if not given."
    )
    classes: int | None = Field(
        None, ge=2, le=1000, description="Number of classes of a generated set (blobs, swiss_roll); 3 if not given."
    )
    spread: float | None = Field(
        None, ge=0, le=10, description="Deviation of the noise of a generated set; blobs 0.3, swiss_roll 0.04."
    )

    @field_validator("name")
    @classmethod
    def _known_name(cls, name: str) -> str:
        if name in CATALOGUE or name in (*OWN_FILES, *IN_MEMORY) or name.removeprefix(HUB_PREFIX) not in ("", name):
            return name
        raise ValueError(unknown("dataset", name, [*CATALOGUE, *OWN_FILES, f"{HUB_PREFIX}<name>"]))

    @field_validator("augment")
    @classmethod
    def _no_repetition(cls, augment: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if augment is not None and len(set(augment)) < len(augment):
            raise ValueError(f"{list(augment)} names one augmentation twice; name each once")
        return augment

    @model_validator(mode="after")
    def _only_what_applies(self) -> DataSettings:
        if self.name in OWN_FILES and self.path is None:
            raise ValueError(f"data.name = {self.name} reads your own files, so data.path must say where they are")
        if self.name in IN_MEMORY and self.path is None:
            raise ValueError(f"data.name = {self.name} is for data that Python gives; see docs/python.md")
        if self.public == "official" and self.name not in IN_MEMORY:
            raise ValueError(f"data.public = official, but {self.name} has no public split of its own; give a share")
        if self.client_column is not None and self.client_files:
            raise ValueError("data.client_column and data.client_files both say whose each example is; keep one")
        if self.validation == "official" and not self._has_validation():
            raise ValueError(
                f"data.validation = official, but {self.name} has no validation split of its own; give a share such as "
                "0.1 or a count such as 1000"
            )
        for key in ("input_column", "label_column", "client_column"):
            if getattr(self, key) in self.ignore_columns:
                raise ValueError(f"data.{key} and data.ignore_columns both name '{getattr(self, key)}'; keep one")
        for key in irrelevant(self.name):
            if getattr(self, key):
                raise ValueError(f"data.{key} has no meaning for data.name = {self.name}; remove it")
        return self

    @property
    def own_code(self) -> tuple[str, ...]:
        """The address of the user's function, if one makes the data."""
        return (str(self.path),) if self.name == "python" and ":" in str(self.path) else ()

    def _has_validation(self) -> bool:
        """Whether the dataset has an official validation split, or may have one."""
        card = CATALOGUE.get(self.name)
        return (
            self.name.startswith(HUB_PREFIX) or self.name in IN_MEMORY
            if card is None
            else card.validation_size is not None
        )


def irrelevant(name: str) -> tuple[str, ...]:
    """Keys that have no meaning for a dataset of this name."""
    generator = ("examples", "classes", "spread")
    columns = ("input_column", "label_column", "client_column", "ignore_columns")
    if name in GENERATED:
        return ("path", "test_path", *columns, "client_files", "resize", "channels", "augment")
    if name in INSTALLED:
        return ("path", "test_path", *columns, "client_files", *generator)
    if name in CATALOGUE:
        return ("test_path", *columns, "client_files", *generator)
    if name.startswith(HUB_PREFIX):
        return ("path", "test_path", "client_files", *generator)
    if name == "tables":
        return ("test_path", "client_files", *generator)
    if name in ("python", "arrays"):
        return ("test_path", *columns, "client_files", *generator)
    return generator if name in ("parquet", "csv") else (*columns, *generator)
