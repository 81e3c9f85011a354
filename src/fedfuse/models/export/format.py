"""What a format of files can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from fedfuse.models.classifier import Classifier


class Format(ABC):
    """Writes a model, and finds out whether the file is the same model."""

    @abstractmethod
    def reads(self, model: Classifier) -> str:
        """What goes into the file's network, in words; a DataError if this model cannot be written so."""

    @abstractmethod
    def gives(self, model: Classifier) -> str:
        """What comes out."""

    @abstractmethod
    def write(self, model: Classifier, path: Path) -> None:
        """Write the file."""

    @abstractmethod
    def difference(self, model: Classifier, path: Path) -> float:
        """The largest one between the file's numbers and the model's."""
