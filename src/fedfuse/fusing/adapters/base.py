"""The model that an adapter was trained from, as the classifier that it becomes with the adapter's own last layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor, nn

from fedfuse.fusing.adapters.layers import Kind, kind_of
from fedfuse.fusing.members.huggingface.folder import Folder
from fedfuse.fusing.members.huggingface.network import class_of, config_of, head_of, names_of_files, outlined


@dataclass(frozen=True)
class Base:
    """A folder whose config names a classifier and the number of its classes, whatever network its files hold."""

    folder: Folder

    @cached_property
    def weights(self) -> Mapping[str, Tensor]:
        """By their names in the folder's files."""
        return self.folder.tensors

    @cached_property
    def cls(self) -> Any:
        return class_of(self.folder)

    @cached_property
    def network(self) -> nn.Module:
        """Without numbers."""
        return outlined(self.folder, self.cls, config_of(self.folder))

    @cached_property
    def names(self) -> dict[str, str]:
        """What files call a tensor, by what the network does; without those that lie there in another form."""
        return names_of_files(self.network)

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the classifier's tensors, by the names that files have for them."""
        state = self.network.state_dict()
        return {name: tuple(state[own].shape) for own, name in self.names.items()}

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """Of layers that can have a low-rank change, by their names in the network."""
        found = ((name, kind_of(module)) for name, module in self.network.named_modules())
        return {name: kind for name, kind in found if kind is not None and f"{name}.weight" in self.names}

    @cached_property
    def head(self) -> frozenset[str]:
        """The tensors whose rows are classes, by their names in the network."""
        return head_of(self.cls, config_of(self.folder), str(self.folder.path))

    @cached_property
    def places(self) -> dict[str, str]:
        """Where a tensor of the classifier lies among the base's weights, by its name in a classifier's files.

        An encoder's files leave out what a classifier calls its encoder by, and have no last layer.
        """
        prefix = f"{self.cls.base_model_prefix}."
        found = {}
        for own, name in self.names.items():
            candidates = (name, own, name.removeprefix(prefix), own.removeprefix(prefix))
            place = next((one for one in candidates if one in self.weights), None)
            if place is not None:
                found[name] = place
        return found

    def has(self, name: str) -> bool:
        """Whether the base has this tensor of the classifier, and not one for other classes."""
        return name in self.places and self.folder.shapes[self.places[name]] == self.shapes[name]

    def tensor(self, name: str) -> Tensor:
        """A tensor of the classifier that the base has."""
        return self.weights[self.places[name]]


def classifier_in(folder: Folder, class_name: str, classes: int | None = None) -> Base:
    """A base as this classifier, of so many classes or of as many as its config says."""
    named = Folder(folder.path, {**folder.config, "architectures": [class_name]})
    if classes is None or classes == len(named.class_names):
        return Base(named)
    kept = {key: value for key, value in named.config.items() if key not in ("id2label", "label2id")}
    return Base(Folder(folder.path, {**kept, "num_labels": classes}))
