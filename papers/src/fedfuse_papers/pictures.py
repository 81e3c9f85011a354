"""Pictures of entries, drawn from finished runs; those that show models take the first finished seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedfuse import Key, LastRound, RoundRecord, RunResult, Weights, list_methods, replay
from fedfuse.report.comparison import draw_comparison
from fedfuse.report.partition import draw_partitions
from fedfuse_papers.cells import Cell
from fedfuse_papers.drawing.boundaries import draw_boundaries, grid
from fedfuse_papers.drawing.confidence import Answers, draw_confidence
from fedfuse_papers.drawing.scatter import Labelled, draw_latent, draw_scatter
from fedfuse_papers.drawing.simplex import draw_simplex, mixtures
from fedfuse_papers.drawing.trend import draw_trend
from fedfuse_papers.entry import Entry, Picture, agrees, in_words
from fedfuse_papers.store import Store

MOST_POINTS = 1000
SIMPLEX_STEPS = 20


@dataclass(frozen=True)
class Subject:
    """What a picture is drawn from: cells with at least one finished seed."""

    title: str
    picture: Picture
    cells: list[Cell]
    seeds: list[int]
    store: Store

    def first_seed(self, cell: Cell) -> int:
        return next(seed for seed in self.seeds if self.store.measure(cell, seed) is not None)

    def runs(self, cell: Cell) -> list[RunResult]:
        """The finished ones."""
        return [run for seed in self.seeds if (run := self.store.run(cell, seed))]

    def last_round(self, cell: Cell) -> LastRound:
        return replay(self.store.folder(cell.experiment(self.first_seed(cell))))

    def name(self, cell: Cell, without: str | None = None) -> str:
        """The labels in which the cells differ."""
        varying = [axis for axis in cell.labels if len({other.labels[axis] for other in self.cells}) > 1]
        return " ".join(in_words(axis, cell.labels[axis]) for axis in varying if axis != without)


def draw_entry(path: Path, entry: Entry, cells: Sequence[Cell], seeds: Sequence[int], store: Store) -> bool:
    """Write the entry's picture, if it has one and some of its runs are there."""
    picture = entry.picture
    if picture is None:
        return False
    there = [
        cell
        for cell in cells
        if agrees(cell.labels, picture.cells) and any(store.measure(cell, seed) is not None for seed in seeds)
    ]
    if there:
        DRAWINGS[picture.kind](path, Subject(entry.title, picture, there, list(seeds), store))
    return bool(there)


def _curves(path: Path, subject: Subject) -> None:
    """Accuracy round by round, of cells with different runs."""
    curves: dict[str, list[list[tuple[int, float]]]] = {}
    for cell in subject.cells:
        if cell.reading.at is not None:
            continue  # the same run as its neighbours
        curves[subject.name(cell)] = [
            [(record.round, value) for record in run.history if (value := _accuracy(cell, record)) is not None]
            for run in subject.runs(cell)
        ]
    draw_comparison(path, curves, None, subject.title)


def _accuracy(cell: Cell, record: RoundRecord) -> float | None:
    if cell.reading.what == "ensemble":
        return record.ensemble_accuracy
    return record.prototypes[cell.reading.model or list(record.prototypes)[-1]].accuracy


def _lines(path: Path, subject: Subject) -> None:
    """The cells' numbers along one axis; round by round if only one label of that axis is there."""
    axis = subject.picture.x or next(iter(subject.cells[0].labels))
    if len({cell.labels[axis] for cell in subject.cells}) == 1:
        return _curves(path, subject)
    lines: dict[str, dict[str, list[float]]] = {}
    for cell in subject.cells:
        measured = [subject.store.measure(cell, seed) for seed in subject.seeds]
        values = [one.value for one in measured if one is not None]
        lines.setdefault(subject.name(cell, without=axis), {})[cell.labels[axis]] = values
    draw_trend(path, lines, axis, subject.title)


def _partitions(path: Path, subject: Subject) -> None:
    """Who holds what, cell by cell."""
    draw_partitions(path, {subject.name(cell): subject.runs(cell)[0].partition for cell in subject.cells})


def _boundaries(path: Path, subject: Subject) -> None:
    """Of one cell the clients, their average, their ensemble and the final model; of several, client and final."""
    models, points, labels, extent = {}, np.empty((0, 2)), np.empty(0, dtype=np.int64), (0.0, 1.0, 0.0, 1.0)
    for cell in subject.cells:
        last = subject.last_round(cell)
        examples = last.test
        points, labels = examples.inputs.double().numpy(), examples.labels.numpy()
        positions, extent = grid(points)
        raw = torch.from_numpy(positions).float()
        own = [last.probabilities(update.weights, raw) for update in last.updates]
        final = last.probabilities(last.final, raw)
        if len(subject.cells) == 1:
            models = {f"client {update.client}": answer for update, answer in zip(last.updates, own, strict=True)}
            models["average"] = last.probabilities(last.average, raw)
            models["ensemble"] = torch.stack(own).clamp_min(1e-30).log().mean(dim=0).softmax(dim=1)  # mean logits
            models[list_methods()[cell.experiment(0).config.method.name].title] = final
        else:
            models |= {f"{subject.name(cell)}, client {last.updates[0].client}": own[0], subject.name(cell): final}
    draw_boundaries(path, {name: _array(answer) for name, answer in models.items()}, points, labels, extent)


def _simplex(path: Path, subject: Subject) -> None:
    """Accuracy of every mixture of the last round's three clients."""
    last = subject.last_round(subject.cells[0])
    updates, weights = last.updates[:3], mixtures(SIMPLEX_STEPS)
    accuracy = [last.accuracy(last.mixture(shares)) for shares in weights.tolist()]
    total = sum(update.examples for update in updates)
    names = [f"client {update.client}" for update in updates]
    draw_simplex(path, weights, accuracy, names, [update.examples / total for update in updates])


def _confidence(path: Path, subject: Subject) -> None:
    """How sure the last round's clients are, and models sampled around them."""
    cell = subject.cells[0]
    last = subject.last_round(cell)
    key = Key(subject.first_seed(cell)).child("confidence")
    clients = [_answers(last, update.weights) for update in last.updates]
    samples = [_answers(last, weights) for weights in last.sampled(key)]
    draw_confidence(path, {"clients": _together(clients), "sampled models": _together(samples)})


def _features(path: Path, subject: Subject) -> None:
    """Features of test inputs under the final model and a client's, in two dimensions by t-SNE."""
    from sklearn.manifold import TSNE

    models: dict[str, Labelled] = {}
    for cell in subject.cells:
        last = subject.last_round(cell)
        examples = last.test
        raw, labels = examples.inputs[:MOST_POINTS], examples.labels[:MOST_POINTS].numpy()
        for name, weights in (("global", last.final), (f"client {last.updates[0].client}", last.updates[0].weights)):
            perplexity = min(30.0, (len(raw) - 1) / 3)
            embedding = TSNE(perplexity=perplexity, init="pca", random_state=0, n_jobs=1)
            points = embedding.fit_transform(_array(last.features(weights, raw)))
            models[f"{subject.name(cell)}, {name}"] = (points, labels)
    draw_scatter(path, models)


def _latent(path: Path, subject: Subject) -> None:
    """What the autoencoder of the first client makes of test inputs, of classes it has and has not seen."""
    last = subject.last_round(subject.cells[0])
    client = last.updates[0].client
    network = last.autoencoder(client)
    labels = last.test.labels[:MOST_POINTS]
    inputs = last.prepared(last.test.inputs[:MOST_POINTS])
    with torch.no_grad():
        codes = network[0](inputs).double().cpu()
        errors = (network(inputs) - inputs).square().flatten(1).mean(dim=1).cpu()
    counts = last.class_counts(client)
    by_class = {label: float(errors[labels == label].mean()) for label in labels.unique().tolist()}
    losses = {
        "classes the client has": {label: error for label, error in by_class.items() if counts[label]},
        "classes it has not": {label: error for label, error in by_class.items() if not counts[label]},
    }
    draw_latent(path, (_plane(codes), labels.numpy()), losses)


def _plane(codes: Tensor) -> NDArray[np.float64]:
    """The two directions of largest variance."""
    centred = codes - codes.mean(dim=0)
    directions = torch.linalg.svd(centred, full_matrices=False).Vh[:2]
    return _array(centred @ directions.T)


def _answers(last: LastRound, weights: Weights) -> Answers:
    sureness, choice = last.probabilities(weights, last.test.inputs).max(dim=1)
    return _array(sureness), (choice == last.test.labels).numpy()


def _together(answers: Iterable[Answers]) -> Answers:
    sureness, right = zip(*answers, strict=True)
    return np.concatenate(sureness), np.concatenate(right)


def _array(tensor: Tensor) -> NDArray[np.float64]:
    array: NDArray[np.float64] = tensor.double().numpy()
    return array


DRAWINGS: dict[str, Callable[[Path, Subject], None]] = {
    "curves": _curves,
    "lines": _lines,
    "partitions": _partitions,
    "boundaries": _boundaries,
    "simplex": _simplex,
    "confidence": _confidence,
    "features": _features,
    "latent": _latent,
}
