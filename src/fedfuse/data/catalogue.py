"""The datasets known by name; a new one is one more card."""

from __future__ import annotations

from dataclasses import dataclass

from fedfuse.data.dataset import Normalisation


@dataclass(frozen=True)
class Layout:
    """Patterns of the files of one dataset inside the data folder; without ``test`` there is no official split."""

    train: str
    test: str | None = None


@dataclass(frozen=True)
class Card:
    """What is known about a dataset before it is read."""

    title: str
    shape: tuple[int, ...]
    classes: int
    licence: str
    normalisation: Normalisation | None = None
    """The constants of the papers; None: measured on the training examples."""
    layouts: tuple[Layout, ...] = ()
    """The first one whose training files are there is read; none for sets that are generated or installed."""
    label_column: str = "label"
    client_column: str | None = None
    """The column that says whose each example is, in data that comes separated by client."""
    hub: str | None = None
    """Its name on the Hugging Face hub."""
    hub_test_split: str = "test"


def find_card(name: str) -> Card | None:
    return CATALOGUE.get(name)


HALF_COLOUR = Normalisation((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))

CATALOGUE: dict[str, Card] = {
    "digits": Card("Handwritten digits of scikit-learn", (1, 8, 8), 10, "CC BY 4.0"),
    "blobs": Card("Gaussian blobs on a circle", (2,), 3, "generated"),
    "swiss_roll": Card("Spiral arms in the plane (the toy of FedBE, figure 1)", (2,), 3, "generated"),
    "mnist": Card(
        "MNIST",
        (1, 28, 28),
        10,
        "CC BY-SA 3.0",
        Normalisation((0.1307,), (0.3081,)),
        (Layout("mnist-train*.parquet", "mnist-test*.parquet"),),
        hub="ylecun/mnist",
    ),
    "cifar10": Card(
        "CIFAR-10",
        (3, 32, 32),
        10,
        "cite Krizhevsky 2009",
        Normalisation((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),  # FedDF's code
        (Layout("cifar10-train*.parquet", "cifar10-test*.parquet"),),
        hub="uoft-cs/cifar10",
    ),
    "cifar100": Card(
        "CIFAR-100",
        (3, 32, 32),
        100,
        "cite Krizhevsky 2009",
        Normalisation((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),  # FedDF's code
        (
            Layout("cifar100-train*.parquet", "cifar100-test*.parquet"),
            # Class-balanced draws of all 60,000 images: not the official split.
            Layout("cifar100-pool-0of*.parquet", "cifar100-pool-1of*.parquet"),
        ),
        label_column="fine_label",
        hub="uoft-cs/cifar100",
    ),
    "tiny_imagenet": Card(
        "Tiny-ImageNet",
        (3, 64, 64),
        200,
        "non-commercial research",
        HALF_COLOUR,  # FedGKD's code
        (
            Layout("tiny_imagenet-train*.parquet", "tiny_imagenet-val*.parquet"),
            Layout("tiny_imagenet-val*.parquet"),
        ),
        hub="zh-plus/tiny-imagenet",
        hub_test_split="valid",
    ),
    "usps": Card(
        "USPS digits",
        (1, 16, 16),
        10,
        "unknown",
        Normalisation((0.2545,), (0.3846,)),  # measured on the training file
        (Layout("usps-train*.parquet", "usps-test*.parquet"),),
        hub="flwrlabs/usps",
    ),
    "omniglot": Card(
        "Omniglot characters at 28 x 28",
        (1, 28, 28),
        242,
        "MIT",
        Normalisation((0.1543,), (0.3349,)),  # measured on the file
        (Layout("omniglot28*.parquet"),),
    ),
    "femnist_digits": Card(
        "FEMNIST, digits of a few writers",
        (1, 28, 28),
        10,
        "BSD 2-Clause (LEAF)",
        Normalisation((0.0369,), (0.1608,)),  # measured on the file
        (Layout("femnist_digits*.parquet"),),
        client_column="client",
    ),
}
