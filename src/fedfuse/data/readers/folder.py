"""Image folders: ``root/train/<class>/*.png`` and ``root/test/<class>/*.png``, or ``root/<class>/*.png``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from fedfuse.core.errors import DataError
from fedfuse.core.text import is_utf8
from fedfuse.data.readers.bounds import check_is_file
from fedfuse.data.readers.contents import Contents, Reading
from fedfuse.data.readers.images import decode_images

LEFT_BEHIND = frozenset({"thumbs.db", "ehthumbs.db", "desktop.ini", "__macosx"})
"""What systems write into folders by themselves."""
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff"})


def folder_roots(root: Path, test_root: Path | None) -> tuple[Path, Path | None]:
    """The folders of the training and of the test classes, however their names are capitalised."""
    splits = {entry.name.lower(): entry for entry in _entries(root) if entry.is_dir()}
    train = splits.get("train")
    if train is None:
        return root, test_root
    test = test_root or splits.get("test")
    for other in _entries(root):
        if other not in (train, splits.get("test")) and not _is_same(other, test):
            raise DataError(
                f"{other} lies beside {train.name} and would not be read; remove it, or set data.test_path to it if it "
                "holds the test examples"
            )
    return train, test


def _entries(root: Path) -> list[Path]:
    return _visible(root.iterdir(), root) if root.is_dir() else []


def _is_same(path: Path, other: Path | None) -> bool:
    return other is not None and other.exists() and path.samefile(other)


def class_folders(root: Path) -> tuple[str, ...]:
    """One class per subfolder, in the order of their names."""
    return subfolders(root, "one subfolder of images per class")


def subfolders(root: Path, wish: str) -> tuple[str, ...]:
    """Their names in order; ``wish`` says what they should be."""
    if not root.is_dir():
        raise DataError(f"data.path: {root} is not a folder; it must hold {wish}")
    entries = _visible(root.iterdir(), root)
    if not entries:
        raise DataError(f"data.path: {root} has no subfolders; it must hold {wish}")
    for entry in entries:
        if not is_utf8(entry.name):
            raise DataError(f"{str(entry)!a} has a name that is not UTF-8; rename it")
        if not entry.is_dir():
            raise DataError(f"{entry} is not a folder; {root} must hold {wish}, and nothing else")
    return tuple(entry.name for entry in entries)


def image_files(root: Path, classes: Sequence[str]) -> list[tuple[Path, int]]:
    """Every image with its label, in the order of classes and then of names."""
    unexpected = set(class_folders(root)) - set(classes)
    if unexpected:
        raise DataError(
            f"{root} has a folder '{min(unexpected)}' that the training folder lacks; class names must agree"
        )
    files = [
        (path, label)
        for label, name in enumerate(classes)
        if (root / name).is_dir()
        for path in _only_images(_visible((root / name).iterdir(), root))
    ]
    if not files:
        raise DataError(f"{root} holds no images; its subfolders must hold files such as .png or .jpg")
    return files


def all_images(root: Path) -> list[Path]:
    """Every image at any depth, in the order of the names."""
    files = _only_images(path for path in _visible(root.rglob("*"), root) if not path.is_dir())
    if not files:
        raise DataError(f"{root} holds no images; it must hold files such as .png or .jpg, at any depth")
    return files


def read_folder(files: Sequence[tuple[Path, int]], classes: tuple[str, ...], reading: Reading) -> Contents:
    """The images of :func:`image_files`, decoded."""
    paths = [path for path, _ in files]
    inputs = decode_images([paths], len(paths), lambda position: str(paths[position]), reading)
    return Contents(inputs, np.array([label for _, label in files], dtype=np.int64), classes)


def _visible(paths: Iterable[Path], root: Path) -> list[Path]:
    """In the order of their names, without what is hidden in ``root`` or was put there by no person."""
    return sorted(path for path in paths if not any(map(_is_hidden, path.relative_to(root).parts)))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name.lower() in LEFT_BEHIND


def _only_images(paths: Iterable[Path]) -> list[Path]:
    """The same paths: nothing is passed over in silence that might have been an example."""
    images = list(paths)
    for path in images:
        if path.suffix.lower() not in SUFFIXES:
            raise DataError(f"{path} is not an image; remove it or give a folder of nothing but images")
        check_is_file(path)
    return images
