"""Which dataset an experiment uses, and how its examples are prepared and divided."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictFloat, StrictInt, field_validator, model_validator

from fedfuse.catalogue.datasets import CATALOGUE
from fedfuse.core.errors import unknown
from fedfuse.core.part import Settings
from fedfuse.core.paths import PathText
from fedfuse.data.table_settings import ColumnName, Decimal, LabelNames, Separator, TextEncoding
from fedfuse.data.tokens import TextSettings

HUB_PREFIX = "hf:"
TABLES = ("parquet", "csv", "jsonl")
OWN_FILES = (*TABLES, "npz", "images", "python")
IN_MEMORY = ("arrays", "tables")
DIALECT = ("separator", "decimal", "encoding", "header")
LATER = ("labels", "categories", "empty_cells", "empty_values", *DIALECT)
"""Keys that experiments could not name at first."""
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


class Constants(Settings):
    """What inputs are normalised with: (x - mean) / std; of images after their bytes were scaled to 0..1."""

    mean: tuple[float, ...] = Field(min_length=1, description="for each channel or column, or one for all")
    std: tuple[Annotated[float, Field(gt=0)], ...] = Field(min_length=1, description="as many, above 0")

    @model_validator(mode="after")
    def _as_many(self) -> Constants:
        if len(self.mean) != len(self.std):
            raise ValueError(f"there are {len(self.mean)} means and {len(self.std)} deviations; give as many of each")
        return self


ShareOrOfficial = Annotated[StrictInt | StrictFloat | Official, BeforeValidator(_share_count_or_official)]


class DataSettings(Settings):
    """The ``data`` section of an experiment."""

    name: str = Field(
        description="A dataset of the catalogue (digits, cifar10, ...); parquet, csv, jsonl, npz, images or python for "
        "your own data; "
        "or hf:<name or folder> for a Hugging Face dataset."
    )
    path: PathText | None = Field(
        None,
        description="Your file or folder, or module:function for python, or the hash of arrays and tables that Python "
        "gave; for a dataset of the catalogue, the folder its files lie in.",
    )
    test_path: PathText | None = Field(
        None, description="Your own test file or folder, when it lies elsewhere than path."
    )
    input_column: ColumnName | None = Field(None, description="The column of images, of texts or of lists of numbers.")
    label_column: ColumnName | None = Field(
        None,
        description="The column of labels: whole numbers from 0 or 1, truth values, or words, numbered in alphabetical "
        "order.",
    )
    client_column: ColumnName | None = Field(
        None, description="The column that says whose each example is, for partition natural."
    )
    ignore_columns: tuple[ColumnName, ...] = Field(
        (), description="Columns of a table that are no inputs, such as the number of a row; they are not read."
    )
    labels: LabelNames = Field(
        {}, description="Which class each label is, such as {0: benign, 1: malignant}; several may be one class."
    )
    categories: tuple[ColumnName, ...] = Field(
        (), description="Columns that are categories although their cells are numbers, or more words than usual."
    )
    empty_cells: Literal["refuse", "fill"] = Field(
        "refuse",
        description="Whether cells of input columns may be empty. fill: a number is the median of the training "
        "examples, a truth value their more frequent one, a category none of all.",
    )
    empty_values: tuple[str, ...] = Field(
        (), description="What else stands for an empty cell in a table, such as '?'; NA and the like do in any case."
    )
    separator: Separator | None = Field(
        None, description="What separates the cells of a CSV file; told by the file if not given."
    )
    decimal: Decimal | None = Field(
        None, description="The decimal sign of a CSV file, a point or a comma; told by the file if not given."
    )
    encoding: TextEncoding | None = Field(
        None, description="How a CSV file is encoded, such as latin-1; UTF-8 if not given, or as its first bytes say."
    )
    header: bool = Field(
        True, description="Whether a CSV file begins with the names of its columns; otherwise they are 1, 2, 3, ..."
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
    normalisation: Literal["dataset", "training", "none", "half"] | Constants = Field(
        "dataset",
        description="The dataset's own constants, which are measured on all training examples of own data before test "
        "examples are split off; training: measured on those that are no test examples; none at all; half: 0.5 for "
        "every mean and deviation; or {mean: [...], std: [...]}.",
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
        if self.test_path is not None and self.test != type(self).model_fields["test"].default:
            raise ValueError("data.test and data.test_path both say which examples are for testing; keep one")
        if self.test_path is not None and self.test_path == self.path:
            raise ValueError("data.path and data.test_path are the same; the test would be about learnt examples")
        for key in ("input_column", "label_column", "client_column"):
            for other in ("ignore_columns", "categories"):
                if getattr(self, key) in getattr(self, other):
                    raise ValueError(f"data.{key} and data.{other} both name '{getattr(self, key)}'; keep one")
        if both := set(self.ignore_columns) & set(self.categories):
            raise ValueError(f"data.ignore_columns and data.categories both name '{min(both)}'; keep one")
        for key in irrelevant(self.name):
            if getattr(self, key) not in (None, (), {}, type(self).model_fields[key].default):
                raise ValueError(f"data.{key} has no meaning for data.name = {self.name}; remove it")
        return self

    @property
    def unsaid(self) -> set[str]:
        """Keys that change nothing where they are not used, so that they are no part of older experiments' identity."""
        return {key for key in LATER if getattr(self, key) == type(self).model_fields[key].default}

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
    generator, files = ("examples", "classes", "spread"), ("test_path", "client_files")
    columns = ("input_column", "label_column", "client_column", "ignore_columns")
    cells = ("categories", "empty_cells", "empty_values")
    if name in GENERATED:
        return ("path", *files, *columns, "labels", *cells, *DIALECT, "resize", "channels", "augment")
    if name in INSTALLED:
        return ("path", *files, *columns, "labels", *cells, *DIALECT, *generator)
    if name in CATALOGUE:
        return (*files, *columns, "labels", *cells, *DIALECT, *generator)
    if name.startswith(HUB_PREFIX):
        return ("path", *files, *DIALECT, *generator)
    if name == "tables":
        return (*files, *DIALECT, *generator)
    if name in ("python", "arrays"):
        return (*files, *columns, *cells, *DIALECT, *generator)
    if name == "csv":
        return generator
    if name in TABLES:
        return (*DIALECT, *generator)
    return (*columns, *cells, *DIALECT, *generator, *(("labels",) if name == "images" else ()))
