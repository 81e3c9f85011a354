"""Tiny-ImageNet's original folder: ``train/<wnid>/images/*.JPEG``, and ``val`` with one list of file names and wnids.

Classes are the sorted wnids, as in the parquet files of the hub.
"""

from __future__ import annotations

from pathlib import Path

from fedfuse.core.errors import DataError
from fedfuse.data.readers.bounds import beside

ANNOTATIONS = "val_annotations.txt"


def tiny_imagenet_files(part: Path) -> tuple[list[tuple[Path, int]], tuple[str, ...]]:
    """Every image of ``train`` or ``val`` with its label, and the names of the classes."""
    classes = _classes(part.parent / "wnids.txt")
    files = _listed(part, classes) if (part / ANNOTATIONS).is_file() else _in_folders(part, classes)
    if not files:
        raise DataError(f"{part} holds no images; unpack tiny-imagenet-200.zip again")
    return files, classes


def _classes(path: Path) -> tuple[str, ...]:
    if not path.is_file():
        raise DataError(f"{path} is missing; unpack tiny-imagenet-200.zip again")
    return tuple(sorted(_text(path).split()))


def _in_folders(part: Path, classes: tuple[str, ...]) -> list[tuple[Path, int]]:
    return [
        (path, label) for label, name in enumerate(classes) for path in sorted((part / name / "images").glob("*.JPEG"))
    ]


def _listed(part: Path, classes: tuple[str, ...]) -> list[tuple[Path, int]]:
    labels = {name: label for label, name in enumerate(classes)}
    files = []
    for row, line in enumerate(_text(part / ANNOTATIONS).splitlines()):
        name, wnid = (*line.split("\t"), "", "")[:2]
        if wnid not in labels:
            raise DataError(f"{part / ANNOTATIONS}, row {row}: '{wnid}' is not a class of wnids.txt")
        files.append((beside(part / "images", name, ANNOTATIONS), labels[wnid]))
    return files


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{path} is not text; unpack tiny-imagenet-200.zip again") from None
