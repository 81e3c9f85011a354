"""Three hospitals: small networks that were trained apart on handwritten digits, each on classes of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.data.raw import RawImages
from fedfuse.models import Architecture, Cnn, Mlp, create
from fedfuse.models.interface import Interface
from fedfuse.models.saved import save_model

MLP, CNN = Mlp(arch="mlp", hidden=[24]), Cnn(arch="cnn2")
SHAPE = (1, 8, 8)
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class Digits:
    """uint8 images and labels: to train models on, to teach a student with (labels unknown), and to measure on."""

    images: Tensor
    labels: Tensor
    public: Tensor
    test: tuple[Tensor, Tensor]


@pytest.fixture(scope="session")
def digits() -> Digits:
    data = load_digits()
    images = torch.from_numpy((data.images * 15.9375).astype("uint8"))[:, None]
    labels = torch.from_numpy(data.target).long()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    own, public, test = order[:700], order[700:1300], order[1300:]
    return Digits(images[own], labels[own], images[public], (images[test], labels[test]))


def train(digits: Digits, architecture: Architecture, classes: Sequence[int], seed: int, path: Path) -> Path:
    """A network that knows these classes, as a file of fedfuse."""
    known = torch.tensor(list(classes))
    mine = torch.isin(digits.labels, known)
    images, labels = digits.images[mine], torch.searchsorted(known, digits.labels[mine])
    network = create(architecture, SHAPE, len(classes), Key(seed))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    random = torch.Generator().manual_seed(seed)
    for _ in range(60):
        some = torch.randint(len(labels), (64,), generator=random)
        loss = F.cross_entropy(network((images[some] / 255 - 0.3) / 0.37), labels[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    interface = Interface(inputs=RawImages(mean=(0.3,), std=(0.37,)), class_names=tuple(WORDS[c] for c in classes))
    save_model(path, architecture, SHAPE, len(classes), Weights.of(network), interface, network)
    return path


@pytest.fixture(scope="session")
def hospitals(digits: Digits, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """a and b have one architecture, c another; each has seen few examples of some classes."""
    folder = tmp_path_factory.mktemp("hospitals")
    parts = {"a": (MLP, range(6)), "b": (MLP, range(4, 10)), "c": (CNN, (0, 2, 4, 6, 8))}
    found = {}
    for seed, (name, (architecture, often)) in enumerate(parts.items()):
        found[name] = train(_skewed(digits, often, seed), architecture, range(10), seed, folder / f"{name}.safetensors")
    return found


def _skewed(digits: Digits, often: Sequence[int], seed: int) -> Digits:
    rarely = torch.rand(len(digits.labels), generator=torch.Generator().manual_seed(seed)) < 0.05
    kept = torch.isin(digits.labels, torch.tensor(list(often))) | rarely
    return Digits(digits.images[kept], digits.labels[kept], digits.public, digits.test)


@pytest.fixture(scope="session")
def specialists(digits: Digits, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two networks of one architecture with different label sets, of which three classes are known to both."""
    folder = tmp_path_factory.mktemp("specialists")
    return {
        "low": train(digits, MLP, range(7), 5, folder / "low.safetensors"),
        "high": train(digits, MLP, range(4, 10), 6, folder / "high.safetensors"),
    }
