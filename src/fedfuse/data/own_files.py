"""The user's own files: parquet, npz or a folder of images."""

from __future__ import annotations

from pathlib import Path

from fedfuse.core.errors import DataError
from fedfuse.data.cache import cached
from fedfuse.data.readers import Contents, Found, Reading, read_folder, read_npz, read_parquet
from fedfuse.data.readers.folder import class_folders, folder_roots, image_files


def read_own_files(name: str, path: Path, test_path: Path | None, reading: Reading) -> Found:
    """Read ``path`` as the format ``name`` says."""
    for key, place in (("data.path", path), ("data.test_path", test_path)):
        if place is not None and not place.exists():
            raise DataError(f"{key}: {place} does not exist")
    return {"parquet": _parquet, "npz": _npz, "images": _images}[name](path, test_path, reading)


def cached_parquet(files: list[Path], reading: Reading) -> Contents:
    return cached(files, reading, lambda: read_parquet(files, reading))


def _parquet(path: Path, test_path: Path | None, reading: Reading) -> Found:
    train, test = _parquet_files(path, "data.path")
    if test_path is not None:
        first, second = _parquet_files(test_path, "data.test_path")
        test = first + second
    origin = ", ".join(file.name for file in train + test)
    return Found(cached_parquet(train, reading), cached_parquet(test, reading) if test else None, origin)


def _parquet_files(path: Path, key: str) -> tuple[list[Path], list[Path]]:
    """The training and the test files of a folder, told apart by 'test' in the name."""
    if path.is_file():
        return [path], []
    files = sorted(path.glob("*.parquet"))
    if not files:
        raise DataError(f"{key}: {path} holds no .parquet files")
    test = [file for file in files if "test" in file.stem]
    train = [file for file in files if "test" not in file.stem]
    return (train, test) if train else (test, [])


def _npz(path: Path, test_path: Path | None, reading: Reading) -> Found:
    train, test = read_npz(path, reading)
    if test_path is not None:
        test, _ = read_npz(test_path, reading)
    return Found(train, test, path.name)


def _images(path: Path, test_path: Path | None, reading: Reading) -> Found:
    train_root, test_root = folder_roots(path, test_path)
    classes = class_folders(train_root)
    test = None if test_root is None else _folder(test_root, classes, reading)
    return Found(_folder(train_root, classes, reading), test, path.name)


def _folder(root: Path, classes: tuple[str, ...], reading: Reading) -> Contents:
    files = image_files(root, classes)
    return cached([file for file, _ in files], reading, lambda: read_folder(files, classes, reading), classes)
