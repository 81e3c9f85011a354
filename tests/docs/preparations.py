"""What readers of a page have already: the files that it calls theirs, and the names that its Python assumes."""

from __future__ import annotations

import csv
import json
import runpy
import shutil
from collections.abc import Callable

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

import fedfuse
from fedfuse.core.randomness import Key
from fedfuse.models.export import export
from fedfuse.parts.local import Proximal
from tests.docs.blocks import ROOT
from tests.docs.reader import Reader

CLASSES = ("bee", "cat", "owl")


class Net(nn.Sequential):
    """A network of a reader's own, for images of 3 x 16 x 16."""

    def __init__(self) -> None:
        super().__init__(nn.Flatten(), nn.Linear(768, 8), nn.ReLU(), nn.Linear(8, 3))


def pictures(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise of three brightnesses, with their classes."""
    labels = np.arange(count) % 3
    images = np.random.default_rng(0).integers(0, 100, (count, 3, 16, 16)) + 70 * labels[:, None, None, None]
    return images.astype(np.uint8), np.array(CLASSES)[labels]


def checkpoints(reader: Reader) -> None:
    """Three models of three architectures, of different makers, and a folder of images."""
    images, labels = pictures(60)
    for name, arch in {"hospital-a": "mlp", "hospital-b": "resnet8", "phone": "cnn3"}.items():
        values = {"models": {"net": {"arch": arch}}, "method": "fedavg", "federation": {"rounds": 1}}
        fedfuse.run(
            {**values, "partition": {"kind": "iid", "clients": 2}}, data=(images, labels), out=reader.folder / name
        )
    saved = "final/net.safetensors"
    shutil.copy(reader.folder / "hospital-b" / saved, reader.folder / "hospital-b.safetensors")
    export(fedfuse.load_model(reader.folder / "phone" / saved), reader.folder / "phone.onnx")
    (reader.folder / "images").mkdir()
    for number, image in enumerate(images[:30]):
        Image.fromarray(image.transpose(1, 2, 0)).save(reader.folder / "images" / f"{number}.png")


def readme(reader: Reader) -> None:
    checkpoints(reader)
    reader.write_files("docs/own-method.md")
    reader.run("compare", "digits", "--methods", "fedavg,feddf", "--out", "runs/demo", folder=reader.folder)
    images, labels = pictures(300)
    reader.names |= {"inputs": images, "labels": labels, "MyModule": Net}


def merges(reader: Reader) -> None:
    """Four files of one network's weights: single, in a folder, in shards."""
    weights = {"layer.weight": torch.ones(4, 4), "layer.bias": torch.zeros(4)}
    for name in ("b", "c", "base"):
        (reader.folder / name).mkdir()
    for number, place in enumerate(("a", "b/model", "base/model")):
        changed = {name: values + number for name, values in weights.items()}
        save_file(changed, reader.folder / f"{place}.safetensors")
    for name, values in weights.items():
        save_file({name: values}, reader.folder / "c" / f"{name}.safetensors")
    index = {"weight_map": {name: f"{name}.safetensors" for name in weights}}
    (reader.folder / "c" / "model.safetensors.index.json").write_text(json.dumps(index))


def examples(reader: Reader) -> None:
    shutil.copytree(ROOT / "examples", reader.folder / "examples", dirs_exist_ok=True)


def fuse(reader: Reader) -> None:
    examples(reader)
    checkpoints(reader)
    images, _ = pictures(30)
    shutil.copy(reader.folder / "phone.onnx", reader.folder / "c.onnx")
    shutil.copytree(reader.folder / "hospital-a", reader.folder / "b")
    shutil.copy(reader.folder / "hospital-b.safetensors", reader.folder / "b.safetensors")
    reader.names |= {"net_a": Net(), "net": Net(), "images": images}


def clock(reader: Reader) -> None:
    examples(reader)
    columns = ["speed", "down", "up", "latency"]
    with (reader.folder / "devices.csv").open("w", newline="") as file:
        csv.writer(file).writerows([columns, *([1e9, 1e6, 1e6, 0.1] for _ in range(20))])


def alignment(reader: Reader) -> None:
    a, b, c = (nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)) for _ in range(3))
    reader.names |= {"network": a, "a": a, "b": b, "c": c, "inputs": torch.randn(8, 4, generator=Key(0).torch())}


def using_a_model(reader: Reader) -> None:
    reader.write_files("docs/models.md")
    reader.write_files("docs/data.md")
    runpy.run_path("make_patients.py")
    reader.run("run", "patients.yaml", folder=reader.folder)


def experiment_file(reader: Reader) -> None:
    reader.write_files("docs/metrics.md")
    reader.names |= {"Experiment": fedfuse.Experiment, "Proximal": Proximal}


PREPARATIONS: dict[str, Callable[[Reader], None]] = {
    "README.md": readme,
    "examples/README.md": examples,
    "docs/alignment.md": alignment,
    "docs/clock.md": clock,
    "docs/experiment-file.md": experiment_file,
    "docs/fuse.md": fuse,
    "docs/merges.md": merges,
    "docs/using-a-model.md": using_a_model,
}
