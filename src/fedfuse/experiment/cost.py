"""How long experiments would take on this machine, as an order of magnitude.

    seconds = operations / speed + steps * overhead

Operations are counted from the config: every local step is a forward and a backward pass (three forward passes) over a
mini-batch; a distillation step is that for every student, and one forward pass for every teacher; a step that makes
inputs is a forward and a backward pass for every teacher. Evaluation is left out, and early stopping, so this is on the
high side for methods that distil until validation accuracy stops rising. Speed and overhead are measured once and kept
in a file.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from fedfuse.core.files import write_text
from fedfuse.core.origin import machine
from fedfuse.core.plain_json import dumps
from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.data import CATALOGUE, DataSettings
from fedfuse.data.settings import Official
from fedfuse.data.tokens import VOCABULARY, TextSettings
from fedfuse.data.toys import EXAMPLES
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.run import Experiment
from fedfuse.models import Architecture, Mlp, ResNet, create
from fedfuse.models.operations import BACKWARD, forward_operations
from fedfuse.parts.fuse import EnsembleDistillation, FusionWork, PredictionDistillation, TrueLabels
from fedfuse.parts.sources import OtherDataset, Synthesised
from fedfuse.runtime.optimizers import Sgd

BENCHMARK_SECONDS = 0.5
UNLISTED = {"digits": 1797}
UNKNOWN_SOURCE = 10_000


@dataclass(frozen=True)
class Speed:
    """What the machine does on one thread."""

    operations_per_second: float
    seconds_per_step: float


@dataclass(frozen=True)
class Work:
    """What a run consists of."""

    operations: float
    steps: float

    def seconds(self, speed: Speed) -> float:
        return self.operations / speed.operations_per_second + self.steps * speed.seconds_per_step


def expected_seconds(experiments: Experiment | Sequence[Experiment], speed: str | Path) -> float | None:
    """How long runs would take one after another, those with the same content counted once.

    None if a network is not known without fetching it. ``speed`` is the file that keeps the benchmark of this machine.

    >>> fedfuse.expected_seconds([Experiment.load("digits")], "runs/speed.json") > 0
    True
    """
    if isinstance(experiments, Experiment):
        experiments = [experiments]
    configs = [experiment.config for experiment in experiments]
    return total(configs).seconds(speed_here(Path(speed))) if all(map(is_countable, configs)) else None


def speed_here(path: Path) -> Speed:
    """The benchmark of this machine, made once; another machine's does not count."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if known.pop("machine", None) == machine():
        return Speed(**known)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        overhead = _seconds_per_step(Mlp(hidden=(8,)), (2,), batch=2)
        network, shape, batch = ResNet(arch="resnet8"), (3, 32, 32), 64
        seconds = _seconds_per_step(network, shape, batch)
    finally:
        torch.set_num_threads(threads)
    operations = BACKWARD * batch * forward_operations(network, shape, 10)
    speed = Speed(operations / max(seconds - overhead, 1e-6), overhead)
    write_text(path, dumps({"machine": machine(), **asdict(speed)}, indent=2) + "\n")
    return speed


def is_countable(config: ExperimentConfig) -> bool:
    """Whether its networks are known without fetching any: that of a pre-trained encoder comes with its weights."""
    return all(architecture.taught_on is None for architecture in config.models.values())


def work_of(config: ExperimentConfig) -> Work:
    """All rounds of one run."""
    federation, training = config.federation, config.training
    examples, shape, classes = _data(config.data)
    per_image = {name: forward_operations(arch, shape, classes) for name, arch in config.models.items()}
    clients = getattr(config.partition, "clients", None) or 1
    sampled = federation.clients_per_round or max(1, round(federation.participation * clients))
    own_share = examples / clients
    mean = sum(per_image.values()) / len(per_image)
    steps = sampled * training.epochs * math.ceil(own_share / training.batch_size)
    operations = BACKWARD * mean * sampled * training.epochs * own_share
    fuse = config.recipe.fuse
    if isinstance(fuse, EnsembleDistillation | PredictionDistillation | TrueLabels):
        inputs = _source_size(config)
        taken = dict.fromkeys(per_image, fuse.distiller.budget(inputs))
        clients_of = dict.fromkeys(per_image, sampled / len(per_image))
        fusion = fuse.passes(FusionWork(inputs, config.source.is_fresh, clients_of, taken))
        steps += sum(taken.values())
        if isinstance(config.source, Synthesised):
            asked = config.source.passes(federation.rounds)
            operations += asked * sum(clients_of[prototype] * each for prototype, each in per_image.items())
        operations += sum(number * per_image[prototype] for prototype, number in fusion.items())
    return Work(federation.rounds * operations, federation.rounds * steps)


def total(configs: Sequence[ExperimentConfig]) -> Work:
    """Of several runs, those with the same content counted once."""
    works = [work_of(config) for config in {config.sha256(): config for config in configs}.values()]
    return Work(sum(work.operations for work in works), sum(work.steps for work in works))


def _data(settings: DataSettings) -> tuple[int, tuple[int, ...], int]:
    """Training examples of the clients, the shape of an input, and classes."""
    card, examples = CATALOGUE[settings.name], _size(settings)
    shape: tuple[int, ...] = card.shape
    if card.is_text:
        text = settings.text or TextSettings()
        shape = TextShape(text.max_length, text.vocabulary or VOCABULARY)
    if settings.resize is not None and len(shape) == 3:
        shape = (settings.channels or shape[0], settings.resize, settings.resize)
    kept = examples - _count(settings.public, examples) - _count(settings.validation, examples)
    return max(1, kept), shape, settings.classes or card.classes


def _source_size(config: ExperimentConfig) -> int:
    source = config.source
    if source.kind == "held_out":
        size = _count(config.data.public, _size(config.data))
    else:
        size = _size(source.data) if isinstance(source, OtherDataset) else getattr(source, "size", UNKNOWN_SOURCE)
    limit = getattr(source, "limit", None)
    return max(1, min(round(getattr(source, "fraction", 1.0) * size), limit or size))


def _size(settings: DataSettings) -> int:
    """Training examples in the file."""
    card = CATALOGUE[settings.name]
    examples = card.sizes[0] if card.sizes else settings.examples or UNLISTED.get(settings.name, EXAMPLES)
    return min(examples, settings.train_limit or examples)


def _count(share: int | float | Official, examples: int) -> int:
    if share == "official":
        return 0
    return share if isinstance(share, int) else round(share * examples)


def _seconds_per_step(architecture: Architecture, shape: tuple[int, ...], batch: int) -> float:
    """The quickest of several training steps: others are slowed down by what else the machine does."""
    model = create(architecture, shape, 10, Key(0))
    optimizer = Sgd(learning_rate=0.01).build(model)
    inputs, labels = torch.zeros(batch, *shape), torch.zeros(batch, dtype=torch.long)
    quickest, began = math.inf, time.perf_counter()
    while time.perf_counter() - began < BENCHMARK_SECONDS:
        start = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        quickest = min(quickest, time.perf_counter() - start)
    return quickest
