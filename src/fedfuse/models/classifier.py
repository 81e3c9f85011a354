"""What every model of fedfuse is: features, then a classifier on top of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from fedfuse.core.errors import DataError

if TYPE_CHECKING:
    from fedfuse.models.predictor import Predictor


class Classifier(nn.Module, ABC):
    """A network cut before its last layer: ``forward(x)`` is ``classifier(features(x))``.

    A subclass sets ``classifier`` (from ``feature_size`` numbers to one logit per class) and defines ``features``.
    """

    classifier: nn.Module
    feature_size: int
    predictor: Predictor | None = None
    """What the file that the network comes from says of raw inputs and classes."""
    classes_: NDArray[Any] | None = None
    """The names of the classes, or their numbers where they have none; None where no file has said it."""

    @abstractmethod
    def features(self, x: Tensor) -> Tensor:
        """The representation of a batch, of shape (batch, ``feature_size``)."""

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.features(x))
        return logits

    def predict(self, raw: Any) -> NDArray[Any]:
        """The class of each raw input, one of ``classes_``; the kinds of raw inputs are in docs/using-a-model.md."""
        return self.known().predict(self, raw)

    def predict_proba(self, raw: Any) -> NDArray[np.float32]:
        """The probability of each class (columns, as ``classes_``) for each raw input (rows)."""
        return self.known().probabilities(self, raw)

    def extra_repr(self) -> str:
        return self.predictor.in_words() if self.predictor else ""

    def known(self) -> Predictor:
        """What reads raw inputs for this network, or a DataError if its file does not say."""
        if self.predictor is None:
            raise DataError(
                "this model's file has no normalisation, class names or tokenizer, like those of earlier versions; run "
                "the experiment again, or prepare the inputs yourself and call model(tensor)"
            )
        return self.predictor


class LayeredClassifier(Classifier):
    """The plain case: layers in a row, then one linear layer."""

    def __init__(self, layers: nn.Sequential, feature_size: int, classes: int) -> None:
        super().__init__()
        self.layers = layers
        self.feature_size = feature_size
        self.classifier = nn.Linear(feature_size, classes)

    def features(self, x: Tensor) -> Tensor:
        h: Tensor = self.layers(x)
        return h


class ProjectedClassifier(Classifier):
    """Any classifier with a projection head: Linear d-d, ReLU, Linear d-``size``; features are the head's output."""

    def __init__(self, body: Classifier, size: int, classes: int) -> None:
        super().__init__()
        width = body.feature_size
        body.classifier = nn.Identity()  # its place is taken by the classifier behind the head
        self.body = body
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, size))
        self.feature_size = size
        self.classifier = nn.Linear(size, classes)

    def features(self, x: Tensor) -> Tensor:
        projected: Tensor = self.head(self.body.features(x))
        return projected
