"""How long a run will take: what two miniatures take here and now, carried over to the real numbers of everything.

Between the two, clients train longer, fusions take more steps and more inputs are asked about: the difference tells
what one operation costs in this network, batch and part, and the rest is what comes on top of it each time. Operations
are counted as the simulated clock counts them (federation/clock/work.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean

from fedfuse.core.messages import Task, Update
from fedfuse.core.weights import NOTHING
from fedfuse.engines import LocalEngineSettings
from fedfuse.engines.joined import WORTH_SECONDS, other_cores
from fedfuse.experiment.assembly import Built
from fedfuse.experiment.estimate.miniature import Clock, Miniature, Size
from fedfuse.experiment.estimate.traffic import inputs_of_a_round
from fedfuse.federation.clock.work import RoundWork
from fedfuse.models.operations import operations_of
from fedfuse.parts.fuse import EnsembleOnly, Fuse, FusionWork
from fedfuse.parts.sources.synthesised.source import SynthesisedSource
from fedfuse.runtime.source import Source

BATCHES, STEPS, INPUTS = (1, 3), (2, 6), (64, 192)
"""Of the two miniatures: batches of a client, steps of a fusion, public inputs."""
ENOUGH = 0.4
"""Seconds that clients, and a fusion, of the second one may take: what is shorter is mostly dust."""
FEW = 2
"""Clients of each model, if they are trained one by one."""
Point = tuple[float, float]
"""Operations, and the seconds that they take."""
QUICK = 1.0
"""Seconds of a round, below which it is played once more, to be measured without the dust of the first."""
CLOSING = 1.5
"""Seconds for pictures and files at the end."""


@dataclass(frozen=True)
class Duration:
    """Seconds of one run: before the first round, and of all rounds by what they are spent on."""

    preparing: float
    clients: float
    fusing: float
    evaluating: float
    others: float
    processes: int = 1

    @property
    def seconds(self) -> float:
        """As processes share the work of clients and teachers."""
        shared = (self.clients + self.fusing) / self.processes
        return self.preparing + shared + self.evaluating + self.others


def duration(built: Built, preparing: float) -> Duration:
    """Of an experiment that was put together in so many seconds."""
    few = _measured(built, _size(built, 0))
    more = _measured(built, _longer(built, _size(built, 1), few))
    rounds, wanted = built.config.federation.rounds, built.federation.wanted
    clients = rounds * _clients(built, few, more)
    fusing = rounds * _fusing(built, few, more)
    looks = len({*range(built.config.evaluation.every, rounds + 1, built.config.evaluation.every), rounds})
    evaluating = looks * _evaluating(built, few, more)
    closing = CLOSING if built.config.evaluation.pictures else 0.0
    others = rounds * (few.seconds["merge"] * wanted / few.clients + few.seconds["remember"]) + closing
    begun = preparing + _beginning(built, few)
    return Duration(begun, clients, fusing, evaluating, others, _processes(built, clients + fusing))


@dataclass(frozen=True)
class _Measured:
    """A miniature by the clock: one round, after it has warmed up."""

    small: Miniature
    seconds: Mapping[str, float]
    starting: float

    @property
    def clients(self) -> int:
        return self.small.clients

    @property
    def by_model(self) -> Mapping[str, float]:
        return self.small.prototypes.clients_of

    @property
    def inputs(self) -> int:
        return 0 if self.small.source is None else len(self.small.source)


def _size(built: Built, place: int) -> Size:
    training = built.clients.training
    return Size(
        clients=_together(built),
        examples=BATCHES[place] * training.batch_size,
        inputs=INPUTS[place],
        test=(place + 1) * min(built.config.evaluation.batch_size, len(built.federation.test) // 2 or 1),
        steps=STEPS[place],
    )


def _longer(built: Built, size: Size, few: _Measured) -> Size:
    """More epochs and steps where they are quick, but no more than the experiment has."""
    one_epoch = sum(few.seconds[name] for name in built.federation.bank.prototypes) * BATCHES[1] / BATCHES[0]
    epochs = min(built.clients.training.epochs, int(ENOUGH / max(one_epoch, 1e-6)))
    distiller = getattr(built.config.recipe.fuse, "distiller", None)
    budget = distiller.budget(inputs_of_a_round(built)) if distiller else 0
    steps = min(budget, int(ENOUGH / max(few.seconds["fuse"] / STEPS[0], 1e-6)))
    return replace(size, epochs=max(1, epochs), steps=max(STEPS[1], steps))


def _measured(built: Built, size: Size) -> _Measured:
    small = Miniature.of(built, size, all_at_once=True)
    began = Clock()
    snapshot = small.start()
    starting = began.seconds
    rounds = 2
    for number in (1, 2, 3):
        if number <= rounds:
            snapshot = small.advance(snapshot)
        if number == 2 and small.ledger.of_round(2) < QUICK:
            rounds = 3
    seconds = small.ledger.seconds
    parts = {what for _, what in seconds}
    best = {what: min(seconds[number, what] for number in range(2, rounds + 1)) for what in parts}
    return _Measured(small, defaultdict(float, best), starting)


def _together(built: Built) -> int:
    """Clients of each model: a stack of them where small ones are trained together, else a few."""
    clients, names = built.clients, built.federation.prototypes
    each = -(-built.federation.wanted // len(built.federation.bank.prototypes))
    stacked = max(clients.stack_of(Task(1, client, names[client], NOTHING)) for client in (0, len(names) - 1))
    return min(each, max(FEW, stacked))


def _clients(built: Built, few: _Measured, more: _Measured) -> float:
    """Of one round, in the mean: every client of every model, as often as it is drawn."""
    work = RoundWork(built.config.recipe, built.federation.bank, built.clients.training)
    names, inputs, total = built.federation.prototypes, inputs_of_a_round(built), 0.0
    points = {name: (_point(few, name), _point(more, name)) for name in set(names)}
    for client, name in enumerate(names):
        examples = built.clients.size_of(Task(1, client, name, NOTHING))
        total += _line(_of_client(work, more, name, examples, inputs), *points[name])
    return total * built.federation.wanted / built.federation.clients * _epochs_share(built)


def _epochs_share(built: Built) -> float:
    """Stragglers train fewer epochs, in the mean."""
    training = built.clients.training
    least = training.fewest_epochs
    return 1.0 if least is None else (least + training.epochs) / 2 / training.epochs


def _of_client(work: RoundWork, measured: _Measured, name: str, examples: int, inputs: int) -> float:
    """Operations of one client in a round; the task is like the miniature's latest."""
    task = measured.small.ledger.tasks[name]
    update = Update(task.round, task.client, name, NOTHING, examples)
    return work.of_client(task, update, _Counted(inputs))  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Counted:
    """Public inputs of which only the number matters."""

    number: int

    def __len__(self) -> int:
        return self.number


def _point(measured: _Measured, name: str) -> Point:
    """One client of the miniature."""
    small, clients = measured.small, measured.small.players
    own = [client for client, model in enumerate(small.prototypes) if model == name]
    work = RoundWork(small.recipe, small.bank, clients.training)
    operations = [_of_client(work, measured, name, len(clients.datasets[client]), measured.inputs) for client in own]
    return fmean(operations), measured.seconds[name] / len(own)


def _line(operations: float, few: Point, more: Point) -> float:
    """Seconds along the line through two measured points; in proportion, where the two tell nothing apart."""
    slope = (more[1] - few[1]) / (more[0] - few[0]) if more[0] > few[0] else 0.0
    if slope <= 0:
        return more[1] * operations / more[0] if more[0] else more[1]
    return max(more[1] + slope * (operations - more[0]), min(few[1], more[1]) * min(1.0, operations / few[0]))


def _fusing(built: Built, few: _Measured, more: _Measured) -> float:
    """Of one round."""
    recipe, source, rounds = built.config.recipe, built.source, built.config.federation.rounds
    real = _fusion_operations(built, recipe.fuse, inputs_of_a_round(built), _clients_by_model(built), source, rounds)
    points = [
        (
            _fusion_operations(built, one.small.recipe.fuse, one.inputs, one.by_model, one.small.source, rounds=1),
            one.seconds["fuse"],
        )
        for one in (few, more)
    ]
    if not points[1][0]:
        return more.seconds["fuse"]
    return _line(real, points[0], points[1]) + _validating(built, few, more)


def _fusion_operations(
    built: Built, fuse: Fuse, inputs: int, clients: Mapping[str, float], source: Source | None, rounds: int
) -> float:
    """Passes of a round's fusion through all networks; inputs that are made are passes of the teachers, too."""
    bank = built.federation.bank
    each = {name: operations_of(bank.network(name), bank.input_shape) for name in bank.prototypes}
    distiller = getattr(fuse, "distiller", None)
    taken = dict.fromkeys(bank.prototypes, distiller.budget(inputs) if distiller else 0)
    passes = fuse.passes(FusionWork(inputs, built.config.source.is_fresh, clients, taken)) if inputs else {}
    total = sum(number * each[name] for name, number in passes.items())
    if isinstance(source, SynthesisedSource) and passes:
        total += source.settings.passes(rounds) * sum(number * each[name] for name, number in clients.items())
    return float(total)


def _clients_by_model(built: Built) -> dict[str, float]:
    federation = built.federation
    share = federation.wanted / federation.clients
    return {name: number * share for name, number in federation.prototypes.clients_of.items()}


def _validating(built: Built, few: _Measured, more: _Measured) -> float:
    """Looks of a distillation at the validation split."""
    distiller, validation = getattr(built.config.recipe.fuse, "distiller", None), built.federation.validation
    if distiller is None or validation is None or distiller.keep != "best":
        return 0.0
    looks = float(distiller.budget(inputs_of_a_round(built)) / distiller.evaluate_every)
    models = len(built.federation.bank.prototypes)
    return looks * len(validation) * models * _per_example(built, few, more)


def _per_example(built: Built, few: _Measured, more: _Measured) -> float:
    """Seconds of one model's answer to one example."""
    examples = [len(measured.small.test) for measured in (few, more)]
    gap = more.seconds["evaluate"] - few.seconds["evaluate"]
    if gap > 0 and examples[1] > examples[0]:
        return gap / (examples[1] - examples[0]) / _models_asked(built, more.clients)
    return more.seconds["evaluate"] / examples[1] / _models_asked(built, more.clients)


def _evaluating(built: Built, few: _Measured, more: _Measured) -> float:
    """Of one round that is evaluated."""
    examples = len(built.federation.test)
    if built.federation.judging is not None:
        examples += len(built.federation.judging)
    return examples * _models_asked(built, built.federation.wanted) * _per_example(built, few, more)


def _models_asked(built: Built, clients: int) -> float:
    """How many models a round asks about the test examples: before and after fusion, and those of the ensemble."""
    recipe, models = built.config.recipe, len(built.federation.bank.prototypes)
    asked = models * (1 + recipe.fuse.makes_students) if recipe.has_server_model else 0
    has_ensemble = recipe.fuse.reads == "weights" and built.config.evaluation.ensemble
    return max(1, asked + (clients if has_ensemble or isinstance(recipe.fuse, EnsembleOnly) else 0))


def _beginning(built: Built, few: _Measured) -> float:
    """First weights that take work: epochs over the public inputs."""
    start, source = built.config.recipe.start, built.source
    if not start.is_work or source is None:
        return few.starting
    inputs = len(few.small.source or ())
    return few.starting * getattr(start, "epochs", 1) * len(source) / max(1, inputs)


def _processes(built: Built, seconds: float) -> int:
    """Who works on it: what the engine says, and this machine's cores where it decides by itself."""
    engine = built.config.engine
    if not isinstance(engine, LocalEngineSettings):
        return 1
    if engine.workers == "auto":
        return 1 + min(other_cores(), built.federation.wanted - 1) if seconds > 2 * WORTH_SECONDS else 1
    return min(max(1, int(engine.workers)), built.federation.wanted)
