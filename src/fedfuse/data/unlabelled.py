"""Inputs without labels: a folder of images, or one file: npz, parquet, CSV, JSON Lines or lines of text."""

from __future__ import annotations

from pathlib import Path

from fedfuse.core.errors import DataError
from fedfuse.data.cache import cached
from fedfuse.data.own_files import TABLES, cached_table
from fedfuse.data.readers import Reading, read_folder
from fedfuse.data.readers.bounds import check_is_file
from fedfuse.data.readers.contents import Array
from fedfuse.data.readers.folder import all_images
from fedfuse.data.readers.lines import read_lines
from fedfuse.data.readers.npz import read_npz_inputs


def read_unlabelled(path: Path, reading: Reading) -> Array:
    """The inputs at ``path``; every file there is read or named in an error."""
    if path.is_dir():
        files = all_images(path)
        return cached(files, reading, lambda: read_folder([(file, 0) for file in files], (), reading)).inputs
    if not path.exists():
        raise DataError(f"data.path: {path} does not exist")
    check_is_file(path)
    if path.suffix == ".npz":
        return read_npz_inputs(path, reading)
    if path.suffix[1:] in TABLES:
        return cached_table(path.suffix[1:], [path], reading).inputs
    if path.suffix == ".txt":
        return cached([path], reading, lambda: read_lines(path, reading)).inputs
    raise DataError(f"data.path: {path} is neither a folder of images nor an .npz, .parquet, .csv, .jsonl or .txt file")
