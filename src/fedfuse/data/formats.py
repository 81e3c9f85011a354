"""From the files of a dataset of the catalogue to its contents, whatever format they are in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from fedfuse.catalogue.card import Format
from fedfuse.data.cache import cached
from fedfuse.data.own_files import cached_table, decoded
from fedfuse.data.readers import Contents, Reading
from fedfuse.data.readers.cifar import read_cifar10, read_cifar100
from fedfuse.data.readers.idx import read_emnist_letters, read_idx
from fedfuse.data.readers.imagenet32 import read_imagenet32
from fedfuse.data.readers.jsonl import read_jsonl
from fedfuse.data.readers.stl10 import read_stl10
from fedfuse.data.readers.svhn import read_svhn
from fedfuse.data.readers.tiny_imagenet import tiny_imagenet_files

RAW: dict[Format, Callable[[Sequence[Path], Reading], Contents]] = {
    "idx": read_idx,
    "emnist": read_emnist_letters,
    "cifar10": read_cifar10,
    "cifar100": read_cifar100,
    "svhn": read_svhn,
    "stl10": read_stl10,
    "imagenet32": read_imagenet32,
}


def read_format(name: Format, files: Sequence[Path], reading: Reading) -> Contents:
    """Encoded images and texts come through the cache; raw images are as quick to read, unless they are resized."""
    if name == "parquet":
        return cached_table("parquet", files, reading)
    if name == "jsonl":
        return cached(files, reading, lambda: read_jsonl(files, reading))
    if name == "tiny_imagenet":
        (part,) = files
        return decoded(*tiny_imagenet_files(part), reading)
    if reading.resize is None:
        return RAW[name](files, reading)
    return cached(files, reading, lambda: RAW[name](files, reading))
