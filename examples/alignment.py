"""Networks that were trained apart, averaged as they are and after alignment: ``python examples/alignment.py``."""

from __future__ import annotations

from collections.abc import Callable

import torch
from sklearn.datasets import load_digits
from torch import nn

from fedfuse import Key, Weights
from fedfuse.core.weights import mean
from fedfuse.models import Mlp, ResNet, create
from fedfuse.models.modes import batch_norms_training
from fedfuse.models.permutations import align

IMAGES, LABELS = (torch.tensor(array) for array in load_digits(return_X_y=True))
INPUTS = (IMAGES / 16).float().reshape(-1, 1, 8, 8)
TRAIN, PUBLIC, TEST = slice(0, 1000), slice(1000, 1200), slice(1200, None)

ARCHITECTURES = {
    **{f"mlp, {width} and {width // 2} units": Mlp(hidden=(width, width // 2)) for width in (32, 128, 512)},
    "resnet8": ResNet(arch="resnet8"),
}


def trained(network: nn.Module, seed: int) -> Weights:
    random, optimizer = Key(seed).torch(), torch.optim.Adam(network.parameters(), lr=0.003)
    for _ in range(150):
        batch = torch.randint(0, 1000, (64,), generator=random)
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(INPUTS[batch]), LABELS[batch]).backward()
        optimizer.step()
    return Weights.of(network)


@torch.no_grad()
def accuracy(network: nn.Module, weights: Weights, anew: bool = False) -> float:
    """In percent; with BatchNorm statistics as they are, or computed ``anew`` on inputs without labels."""
    weights.load_into(network)
    if anew:
        with batch_norms_training(network) as layers:
            for layer in layers:
                layer.reset_running_stats()
                layer.momentum = None
            network(INPUTS[PUBLIC])
    return 100 * float((network.eval()(INPUTS[TEST]).argmax(dim=1) == LABELS[TEST]).float().mean())


def line(make: Callable[[int], nn.Module], number: int) -> list[str]:
    first, *others = weights = [trained(make(seed), seed) for seed in range(number)]
    aligned = align(make(0), INPUTS[:2], first, others, Key(0))
    averages = [mean([first, *rest], [1] * number) for rest in (others, aligned)]
    alone = [accuracy(make(0), one) for one in weights]
    merged = [accuracy(make(0), average, anew) for anew in (False, True) for average in averages]
    return [f"{min(alone):.1f} to {max(alone):.1f}", *(f"{one:.1f}" for one in merged)]


def main() -> None:
    print("| network | how many | alone | averaged | aligned | averaged, anew | aligned, anew |")
    for name, architecture in ARCHITECTURES.items():
        for number in (2, 3):
            cells = line(lambda seed, own=architecture: create(own, (1, 8, 8), 10, Key(seed)), number)  # type: ignore[misc]
            print("|", " | ".join([name, str(number), *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
