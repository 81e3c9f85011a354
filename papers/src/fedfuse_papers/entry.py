"""The entry file: one table or figure of a paper as a grid of experiments.

The product of the axes gives the cells. A cell's experiment is the paper's common setting, then the entry's
``experiment``, then the changes of its label on every axis, then those of labels that it has ``together``, then those
of the scale; each is laid over the one before. Labels are the papers' own words, so that a cell finds its printed
numbers by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from fedfuse.plugins import Raw, Settings, unknown

SCALES = ("smoke", "small", "paper")
ScaleName = Literal["smoke", "small", "paper"]


def _as_label(value: Any) -> Any:
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else value


Label = Annotated[str, BeforeValidator(_as_label)]
Labels = dict[str, Label]
"""One label for each of some axes."""


class Reading(Settings):
    """Which number of a finished run a cell shows."""

    what: Literal["last", "best", "before_fusion", "ensemble", "clients", "rounds_to_target"] = Field(
        "last",
        description="test accuracy after the last round, in the best round, of the merged model before fusion, of the "
        "ensemble, of the clients' own models on average; or the rounds until evaluation.target_accuracy",
    )
    at: float | None = Field(
        None, gt=0, le=1, description="not after the last round, but in the first measured one after this share of them"
    )
    model: str | None = Field(None, description="whose accuracy; without it, the last one of the experiment's models")

    @model_validator(mode="after")
    def _at_is_about_a_round(self) -> Self:
        if self.at is not None and self.what in ("best", "rounds_to_target"):
            raise ValueError(f"at names a round, but {self.what} is about the whole run")
        return self


class Together(Settings):
    """What several labels change if a cell has them all, beyond what each of them changes by itself."""

    cells: Labels = Field(min_length=2, description="the labels, of two or more axes")
    changes: Raw


class Scale(Settings):
    """What a scale changes in every cell."""

    seeds: int = Field(1, ge=1, description="seeds 0, 1, ... of every cell, unless --seeds says otherwise")
    changes: Raw = Field(default_factory=dict, description="laid over every cell's experiment")
    axes: dict[str, dict[Label, Raw]] = Field(
        default_factory=dict, description="laid over the cells with a label, in the place of the axis' own changes"
    )
    keep: dict[str, tuple[Label, ...]] = Field(
        default_factory=dict, description="of these axes only these labels; the other cells are not run at this scale"
    )


class Picture(Settings):
    """How an entry is drawn from its finished runs."""

    kind: Literal["curves", "lines", "partitions", "boundaries", "simplex", "confidence", "features", "latent"]
    x: str | None = Field(None, description="lines: the axis along which they run")
    cells: Labels = Field(default_factory=dict, description="draw only the cells with these labels")


class Entry(Settings):
    """One table or figure."""

    title: str
    experiment: Raw = Field(description="the keys of an experiment file that all cells share")
    axes: dict[str, dict[Label, Raw]] = Field(
        min_length=1,
        description="what varies: axis, label, and what that label changes in the experiment; the key read changes "
        "which number is shown",
    )
    together: tuple[Together, ...] = Field((), description="laid over the cells that have all of some labels")
    without: tuple[Labels, ...] = Field((), description="cells with these labels do not exist")
    read: Reading = Field(default_factory=Reading)
    printed: Labels = Field(default_factory=dict, description="which printed numbers: keys of papers.yaml")
    scales: dict[ScaleName, Scale]
    picture: Picture | None = None
    notes: str = Field("", description="where this differs from the paper, and why")

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        missing = [name for name in SCALES if name not in self.scales]
        if missing:
            raise ValueError(f"scales has no '{missing[0]}'; an entry has {', '.join(SCALES)}")
        for labels in self.without:
            self.check(labels, "without")
        for one in self.together:
            self.check(one.cells, "together")
        for name, scale in self.scales.items():
            for axis, kept in scale.keep.items():
                for label in kept:
                    self.check({axis: label}, f"scales.{name}.keep")
            for axis, changes in scale.axes.items():
                for label in changes:
                    self.check({axis: label}, f"scales.{name}.axes")
        if self.picture is not None:
            self.check(self.picture.cells, "picture.cells")
            if self.picture.x is not None and self.picture.x not in self.axes:
                raise ValueError(f"picture.x: {unknown('axis', self.picture.x, self.axes)}")
        return self

    def check(self, labels: Mapping[str, str], where: str) -> None:
        """Refuse labels of an axis that this entry does not have."""
        for axis, label in labels.items():
            if axis not in self.axes:
                raise ValueError(f"{where}: {unknown('axis', axis, self.axes)}")
            if label not in self.axes[axis]:
                raise ValueError(f"{where}: {unknown(axis, label, self.axes[axis])}")

    def combinations(self, scale: ScaleName) -> list[Labels]:
        """The labels of every cell at this scale, in the order of the axes."""
        keep = self.scales[scale].keep
        kept = [[label for label in labels if label in keep.get(axis, labels)] for axis, labels in self.axes.items()]
        everything = [dict(zip(self.axes, labels, strict=True)) for labels in product(*kept)]
        return [labels for labels in everything if not any(agrees(labels, gap) for gap in self.without)]


def agrees(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether a cell has all the labels that are wanted."""
    return all(labels[axis] == label for axis, label in wanted.items())


def in_words(axis: str, label: str) -> str:
    """A label for readers who do not see its axis: a bare number is said with it."""
    return f"{axis.replace('_', ' ')} {label}" if label.replace(".", "").isdigit() else label
