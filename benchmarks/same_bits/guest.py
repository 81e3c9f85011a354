"""What the cases bring from outside: a loader, a network and two generators, and the files that they read.

It must run with every version of fedfuse, so it imports nothing of it.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

WORDS = ("good", "bad", "film", "plot", "slow", "great", "dull", "cast", "never", "again", "the", "a", "very", "not")


def load() -> tuple[np.ndarray, np.ndarray]:
    """Numbers with three classes."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, size=150)
    return (rng.normal(size=(150, 5)) + labels[:, None]).astype(np.float32), labels


def network(input_shape: tuple[int, ...], classes: int, hidden: int) -> nn.Module:
    size = int(np.prod(input_shape))
    return nn.Sequential(nn.Flatten(), nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, classes))


def generate(count: int, generator: torch.Generator) -> Tensor:
    return torch.rand(count, 1, 8, 8, generator=generator)


def generate_of(count: int, generator: torch.Generator, labels: Tensor) -> Tensor:
    return (torch.rand(count, 1, 8, 8, generator=generator) + labels.view(-1, 1, 1, 1) / 10) / 2


def write_files(folder: Path) -> None:
    """The files that cases name."""
    rng = np.random.default_rng(2)
    inputs, labels = load()
    np.savez(folder / "numbers.npz", x=inputs, y=labels)
    np.savez(folder / "inputs.npz", rng.integers(0, 256, size=(40, 1, 8, 8), dtype=np.uint8))
    hospitals = [["a", "b", "c"][i % 3] for i in range(len(labels))]
    header = [f"x{i}" for i in range(inputs.shape[1])]
    rows = [[*map(float, x), int(y), h] for x, y, h in zip(inputs, labels, hospitals, strict=True)]
    _write_csv(folder / "visits.csv", [*header, "outcome", "hospital"], rows)
    _write_csv(folder / "visits-without.csv", [*header[1:], "outcome"], [row[1:-1] for row in rows])
    _write_patients(folder)
    devices: list[list[object]] = [[1e6, 1e5, 5e4, "0-2 4-40"], [2e5, 4e4, 1e4, ""], [5e6, 2e5, 1e5, "3-40"]]
    _write_csv(folder / "devices.csv", ["speed", "down", "up", "present"], devices)
    words = random.Random(3)
    texts = [[" ".join(words.choices(WORDS, k=words.randint(2, 14))), i % 2] for i in range(120)]
    _write_csv(folder / "texts.csv", ["text", "label"], texts)
    for part, size in (("train", 60), ("test", 20), ("validation", 15)):
        some = [" ".join(words.choices(WORDS, k=words.randint(2, 14))) for _ in range(size)]
        pq.write_table(pa.table({"text": some, "label": [i % 5 for i in range(size)]}), folder / f"sst5-{part}.parquet")


def _write_patients(folder: Path) -> None:
    """A table with words, truth values, gaps and decimal commas, and the same with numbers alone."""
    draw = random.Random(4)
    rows = [_patient(draw) for _ in range(150)]
    train = rows[:110]
    ages, doses = (sorted(row[place] for row in train if row[place] is not None) for place in (0, 1))
    smokers = [row[3] for row in train if row[3] is not None]
    fills = [_median(ages), _median(doses), None, sum(smokers) > len(smokers) / 2]
    for name, part in (("", train), ("-test", rows[110:])):
        text = [["age", "dose", "sex", "smoker", "ward", "finding"], *map(_in_words, part)]
        (folder / f"patients{name}.csv").write_bytes("\n".join(map(";".join, text)).encode("latin-1"))
        header = ["age", "dose", "sex=männlich", "sex=weiblich", "smoker", "ward=1", "ward=2", "finding"]
        _write_csv(folder / f"encoded{name}.csv", header, [_in_numbers(row, fills) for row in part])
    complete = [row for row in rows if None not in row]
    whole = [[*row[:3], str(row[3]).lower(), row[5]] for row in complete]
    _write_csv(folder / "complete.csv", whole[0], whole[1:])


def _patient(draw: random.Random) -> list[Any]:
    age, dose, smoker = draw.randint(20, 90), round(draw.gauss(2, 0.7), 2), draw.random() < 0.4
    sex, ward = draw.choice(["weiblich", "männlich"]), draw.choice([1, 2])
    finding = "M" if (age - 50) / 15 + dose * (sex == "männlich") + smoker > 1.4 else "B"
    cells: list[Any] = [age, dose, sex, smoker, ward, finding]
    if draw.random() < 0.2:
        cells[draw.randrange(4)] = None
    return cells


def _median(values: list[float]) -> float:
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def _in_words(row: list[Any]) -> list[str]:
    age, dose, sex, smoker, ward, finding = row
    decimal, truth = ("" if cell is None else str(cell).lower().replace(".", ",") for cell in (dose, smoker))
    return ["?" if age is None else str(age), decimal, sex or "", truth, str(ward), finding]


def _in_numbers(row: list[Any], fills: list[Any]) -> list[object]:
    age, dose, sex, smoker = (fill if cell is None else cell for cell, fill in zip(row[:4], fills, strict=True))
    words = [int(sex == "männlich"), int(sex == "weiblich")]
    return [age, dose, *words, int(smoker), int(row[4] == 1), int(row[4] == 2), row[5]]


def _write_csv(path: Path, header: list[str], rows: list[list[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
