"""FedAvg by hand in plain PyTorch: what somebody writes who needs nothing but these numbers.

It trains, averages and evaluates, and does nothing else: no log, no checkpoint, no check, torch's own optimiser and
allocator. With ``tricks`` it has those of fedfuse that a loop can have without stacking clients or starting processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedfuse.experiment.bench import networks
from fedfuse.experiment.bench.clock import Moment
from fedfuse.experiment.bench.work import CLASSES, PLAIN, Examples, Tricks, Work

LaidOut = TypeVar("LaidOut", Tensor, nn.Module)
PADDING = 4


def play(work: Work, examples: Examples, tricks: Tricks = PLAIN) -> list[Moment]:
    """All rounds; the moment at which each was over."""
    prepare(tricks)
    loop = _Loop(work, examples, tricks)
    ends = []
    for _ in range(work.rounds):
        loop.round()
        ends.append(Moment.now())
    return ends


def network_of(work: Work) -> nn.Module:
    """As fedfuse builds it, where it is one of fedfuse's architectures."""
    if hasattr(networks, work.network):
        return getattr(networks, work.network)()  # type: ignore[no-any-return]
    from pydantic import TypeAdapter

    from fedfuse.models import AnyArchitecture

    settings = architecture(work)
    return TypeAdapter(AnyArchitecture).validate_python(settings).build(work.shape, CLASSES)


def architecture(work: Work) -> dict[str, object]:
    """The network as an experiment file names it."""
    if hasattr(networks, work.network):
        return {"arch": "own", "callable": f"{networks.__name__}:{work.network}"}
    return {"arch": work.network, **({"hidden": [32]} if work.network == "mlp" else {})}


def normalised(inputs: Tensor) -> Tensor:
    """Images to about -1..1; numbers as they are."""
    return inputs.float().div_(127.5).sub_(1) if inputs.dtype == torch.uint8 else inputs.float()


def augmented(images: Tensor) -> Tensor:
    """Each image padded, cropped and flipped at random, all of a batch at once."""
    count, channels, height, width = images.shape
    rows, columns = torch.arange(height).expand(count, -1), torch.arange(width).expand(count, -1)
    columns = torch.where(torch.randint(0, 2, (count, 1)).bool(), columns.flip(-1), columns)
    corners = torch.randint(0, 2 * PADDING + 1, (2, count, 1))
    rows, columns = rows + corners[0], columns + corners[1]
    padded = F.pad(images, (PADDING,) * 4)
    where = (rows[:, :, None] * (width + 2 * PADDING) + columns[:, None, :]).reshape(count, 1, -1)
    return padded.reshape(count, channels, -1).gather(2, where.expand(-1, channels, -1)).view(images.shape)


class _Loop:
    """The model, the examples and where each client's lie."""

    def __init__(self, work: Work, examples: Examples, tricks: Tricks) -> None:
        self.work, self.tricks = work, tricks
        self.model = self._laid_out(network_of(work))
        self.inputs = torch.from_numpy(examples.inputs)
        if not work.augment:
            self.inputs = normalised(self.inputs)
        self.labels = torch.from_numpy(examples.labels)
        self.test_inputs, self.test_labels = (
            normalised(torch.from_numpy(examples.test_inputs)),
            torch.from_numpy(examples.test_labels),
        )
        self.order = torch.randperm(work.clients * work.examples)
        self.weights = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}

    def round(self) -> None:
        chosen = torch.randperm(self.work.clients)[: self.work.sampled].tolist()
        trained = [self._train(client) for client in chosen]
        self.weights = {
            name: torch.stack([state[name].float() for state in trained]).mean(0).to(tensor.dtype)
            for name, tensor in self.weights.items()
        }
        self.model.load_state_dict(self.weights)
        self._accuracy()

    def _train(self, client: int) -> dict[str, Tensor]:
        self.model.load_state_dict(self.weights)
        self.model.train()
        fused = True if self.tricks.fused else None
        optimizer = torch.optim.SGD(
            self.model.parameters(), lr=self.work.rate, momentum=self.work.momentum, fused=fused
        )
        for inputs, labels in self._batches(client):
            optimizer.zero_grad()
            F.cross_entropy(self.model(inputs), labels).backward()
            optimizer.step()
        return {name: tensor.clone() for name, tensor in self.model.state_dict().items()}

    def _batches(self, client: int) -> Iterator[tuple[Tensor, Tensor]]:
        size = self.work.examples
        own = self.order[client * size : (client + 1) * size]
        inputs, labels = self.inputs[own], self.labels[own]
        for _ in range(self.work.epochs):
            for where in torch.randperm(size).split(self.work.batch):
                batch = inputs[where]
                if self.work.augment:
                    batch = normalised(augmented(batch))
                yield self._laid_out(batch), labels[where]

    @torch.inference_mode()
    def _accuracy(self) -> float:
        self.model.eval()
        return float((self.model(self._laid_out(self.test_inputs)).argmax(1) == self.test_labels).float().mean())

    def _laid_out(self, what: LaidOut) -> LaidOut:
        if not self.tricks.channels_last or (isinstance(what, Tensor) and what.ndim != 4):
            return what
        return what.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def prepare(tricks: Tricks) -> None:
    """Threads, seed and allocator of this process."""
    torch.set_num_threads(tricks.threads)
    torch.manual_seed(0)
    if tricks.keep_memory:
        from fedfuse.runtime.allocator import keep_freed_memory

        keep_freed_memory()
