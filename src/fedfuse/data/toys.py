"""Small datasets that need no files: generated from a key, or installed with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fedfuse.core.randomness import Key
from fedfuse.data.readers.contents import Array, Contents, Found, Reading
from fedfuse.data.readers.images import refit_images
from fedfuse.data.settings import DataSettings

EXAMPLES = 600
CLASSES = 3


def read_toy(settings: DataSettings, reading: Reading, key: Key) -> Found:
    """The toy that the settings name."""
    if settings.name == "digits":
        return Found(digits(reading), None, "scikit-learn")
    generate = GENERATORS[settings.name]
    examples, classes = settings.examples or EXAMPLES, settings.classes or CLASSES
    contents = (
        generate(examples, classes, key)
        if settings.spread is None
        else generate(examples, classes, key, settings.spread)
    )
    return Found(contents, None, "generated")


def blobs(examples: int, classes: int, key: Key, spread: float = 0.3) -> Contents:
    """Gaussian blobs whose centres lie evenly on the unit circle; classes differ in size by at most one."""
    random = key.child("blobs").numpy()
    labels = _labels(examples, classes, random)
    angles = 2 * np.pi * labels / classes
    return _plane(np.cos(angles), np.sin(angles), labels, classes, spread, random)


def swiss_roll(examples: int, classes: int, key: Key, spread: float = 0.04) -> Contents:
    """Spiral arms around one centre, one class per arm, after the three-class toy of FedBE's figure 1.

    The paper gives no formula: here an arm turns by three quarters of a circle while its radius grows to 1.
    """
    random = key.child("swiss_roll").numpy()
    labels = _labels(examples, classes, random)
    along = random.uniform(0.1, 1.0, examples)
    angles = 2 * np.pi * labels / classes + 1.5 * np.pi * along
    return _plane(along * np.cos(angles), along * np.sin(angles), labels, classes, spread, random)


def digits(reading: Reading) -> Contents:
    """The 1,797 images in their published order, 0..16 stretched to 0..255."""
    table = _digits_table()
    images = np.rint(table[:, :-1].reshape(-1, 1, 8, 8) * (255 / 16)).astype(np.uint8)
    inputs = refit_images(images, reading, lambda row: f"digits, row {row}")
    return Contents(inputs, table[:, -1].astype(np.int64), tuple(str(name) for name in range(10)))


def _digits_table() -> Array:
    """A row of 64 pixels and the label for each image, from scikit-learn's file: its import takes longer than a run."""
    package = find_spec("sklearn")  # without its modules, so that nothing is imported
    folders = package.submodule_search_locations if package else None
    file = Path(folders[0], "datasets", "data", "digits.csv.gz") if folders else None
    if file and file.exists():
        return np.loadtxt(file, delimiter=",")
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    return np.column_stack([pixels, labels])


GENERATORS: dict[str, Callable[..., Contents]] = {"blobs": blobs, "swiss_roll": swiss_roll}


def _labels(examples: int, classes: int, random: np.random.Generator) -> Array:
    return random.permutation(np.arange(examples, dtype=np.int64) % classes)


def _plane(x: Array, y: Array, labels: Array, classes: int, spread: float, random: np.random.Generator) -> Contents:
    points = np.stack([x, y], axis=1) + spread * random.standard_normal((len(labels), 2))
    return Contents(points.astype(np.float32), labels, tuple(str(label) for label in range(classes)))
