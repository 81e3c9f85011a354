"""The user's own files: parquet, CSV, npz or a folder of images; one set, or one file or folder per client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedfuse.core.errors import DataError, shortened
from fedfuse.data.cache import cached
from fedfuse.data.readers import Contents, Found, Reading, read_folder, read_npz
from fedfuse.data.readers.bounds import check_is_file
from fedfuse.data.readers.contents import join
from fedfuse.data.readers.csv import csv_table
from fedfuse.data.readers.folder import class_folders, folder_roots, image_files, subfolders
from fedfuse.data.readers.jsonl import jsonl_table
from fedfuse.data.readers.npz import npz_classes
from fedfuse.data.readers.parquet import parquet_table
from fedfuse.data.readers.survey import surveyed
from fedfuse.data.readers.table import Table, contents_of_tables

TABLES: dict[str, Callable[[Path, Reading], Table]] = {
    "parquet": parquet_table,
    "csv": csv_table,
    "jsonl": jsonl_table,
}


def read_own_files(name: str, path: Path, test_path: Path | None, client_files: bool, reading: Reading) -> Found:
    """Read ``path`` as the format ``name`` says."""
    for key, place in (("data.path", path), ("data.test_path", test_path)):
        if place is not None and not _exists(place):
            raise DataError(f"{key}: {shortened(str(place), 300)} does not exist")
    if client_files and not path.is_dir():
        raise DataError(f"data.client_files: {path} is not a folder; it must hold one file or folder per client")
    if name == "images":
        return _images_by_client(path, test_path, reading) if client_files else _images(path, test_path, reading)
    if name in TABLES:
        return _tables(name, path, test_path, client_files, reading)
    read = _by_client if client_files else _one_set
    return read(name, path, test_path, reading)


def cached_table(name: str, files: Sequence[Path], reading: Reading) -> Contents:
    """Tables as the reading says, in their order."""
    return cached(files, reading, lambda: contents_of_tables([TABLES[name](file, reading) for file in files], reading))


def _tables(name: str, path: Path, test_path: Path | None, client_files: bool, reading: Reading) -> Found:
    """What the training files hold decides how the test files are read."""
    files, test_files = (_files(path, name, "data.path"), []) if client_files else _train_and_test(path, name)
    if test_path is not None:
        test_files = _files(test_path, name, "data.test_path")
    train = cached(
        files,
        reading,
        lambda: _surveyed_tables(name, files, client_files, reading),
        ["a client per file"] if client_files else (),
    )
    origin = path.name if client_files else ", ".join(file.name for file in [*files, *test_files])
    if not test_files:
        return Found(train, None, origin)
    return Found(train, cached_table(name, test_files, as_surveyed(reading, train)), origin)


def as_surveyed(reading: Reading, train: Contents) -> Reading:
    """The reading for whatever shall be like these training examples."""
    encoding = None if train.columns is None else train.columns.as_encoding
    return replace(reading, classes=train.classes, encoding=encoding)


def _surveyed_tables(name: str, files: Sequence[Path], client_files: bool, reading: Reading) -> Contents:
    tables = [TABLES[name](file, reading) for file in files]
    told = surveyed(tables, reading)
    if not client_files:
        return contents_of_tables(tables, told)
    parts = [_owned(contents_of_tables([table], told), file.stem) for table, file in zip(tables, files, strict=True)]
    return join(parts, [file.name for file in files])


def _one_set(name: str, path: Path, test_path: Path | None, reading: Reading) -> Found:
    train_files, test_files = _train_and_test(path, name)
    if test_path is not None:
        test_files = _files(test_path, name, "data.test_path")
    reading = _knowing_classes(train_files, reading)
    train, own_test = _read(train_files, reading)
    test = _read(test_files, reading)[0] if test_files else own_test
    return Found(train, test, ", ".join(file.name for file in [*train_files, *test_files]))


def _by_client(name: str, path: Path, test_path: Path | None, reading: Reading) -> Found:
    """A file per client, named after it; test examples inside the files are pooled."""
    files = _files(path, name, "data.path")
    reading = _knowing_classes(files, reading)
    parts = [_read([file], reading) for file in files]
    names = [file.name for file in files]
    train = join([_owned(part, file.stem) for (part, _), file in zip(parts, files, strict=True)], names)
    if test_path is not None:
        return Found(train, _read(_files(test_path, name, "data.test_path"), reading)[0], path.name)
    return Found(train, _pooled([test for _, test in parts], names), path.name)


def _knowing_classes(files: Sequence[Path], reading: Reading) -> Reading:
    """Several archives are looked at together; a single one tells by itself."""
    if len(files) == 1 or reading.classes is not None:
        return reading
    return replace(reading, classes=npz_classes(files, reading))


def _read(files: Sequence[Path], reading: Reading) -> tuple[Contents, Contents | None]:
    parts = [read_npz(file, reading) for file in files]
    names = [file.name for file in files]
    return join([train for train, _ in parts], names), _pooled([test for _, test in parts], names)


def _pooled(tests: Sequence[Contents | None], names: Sequence[str]) -> Contents | None:
    """The test examples of those files that have any."""
    there = [(test, name) for test, name in zip(tests, names, strict=True) if test is not None]
    return join([test for test, _ in there], [name for _, name in there]) if there else None


def _owned(contents: Contents, client: str) -> Contents:
    return replace(contents, clients=np.full(len(contents.labels), client))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is longer than any file's
        return False


def _files(path: Path, name: str, key: str) -> list[Path]:
    if path.is_file():
        return [path]
    files = sorted(path.glob(f"*.{name}"))
    if not files:
        raise DataError(f"{key}: {path} holds no .{name} files")
    for file in files:
        check_is_file(file)
    return files


def _train_and_test(path: Path, name: str) -> tuple[list[Path], list[Path]]:
    """The training and the test files of a folder, told apart by 'test' in the name."""
    files = _files(path, name, "data.path")
    test = [file for file in files if "test" in file.stem] if path.is_dir() else []
    train = [file for file in files if file not in test]
    return (train, test) if train else (test, [])


def _images(path: Path, test_path: Path | None, reading: Reading) -> Found:
    train_root, test_root = folder_roots(path, test_path)
    classes = class_folders(train_root)
    test = None if test_root is None else decoded(image_files(test_root, classes), classes, reading)
    return Found(decoded(image_files(train_root, classes), classes, reading), test, path.name)


def _images_by_client(path: Path, test_path: Path | None, reading: Reading) -> Found:
    """``path/<client>/<class>/*.png``; a client need not have every class."""
    clients = subfolders(path, "one subfolder per client")
    classes = tuple(sorted({name for client in clients for name in class_folders(path / client)}))
    files = [image_files(path / client, classes) for client in clients]
    train = decoded([file for part in files for file in part], classes, reading)
    owners = np.repeat(clients, [len(part) for part in files])
    test = None if test_path is None else decoded(image_files(test_path, classes), classes, reading)
    return Found(replace(train, clients=owners), test, path.name)


def decoded(files: list[tuple[Path, int]], classes: tuple[str, ...], reading: Reading) -> Contents:
    """The images of a list of files, through the cache."""
    return cached([file for file, _ in files], reading, lambda: read_folder(files, classes, reading), classes)
