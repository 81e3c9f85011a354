"""Readers of files: each turns one format into arrays that have been checked."""

from fedfuse.data.readers.contents import Contents, Found, Reading
from fedfuse.data.readers.csv import read_csv
from fedfuse.data.readers.folder import read_folder
from fedfuse.data.readers.npz import read_npz
from fedfuse.data.readers.parquet import read_parquet

__all__ = ["Contents", "Found", "Reading", "read_csv", "read_folder", "read_npz", "read_parquet"]
