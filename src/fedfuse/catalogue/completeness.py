"""Whether files hold the dataset that they are named after, or only a part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fedfuse.catalogue.card import Card, Format


def what_is_missing(card: Card, counts: Mapping[str, int], origin: str) -> str | None:
    """One sentence if the numbers of examples, by split, are not the official ones."""
    if card.sizes is None:
        return None
    official = {"training": card.sizes[0], "test": card.sizes[1]}
    if "validation" in counts:
        official["validation"] = card.validation_size or 0
    if counts == official:
        return None
    title = card.title.partition(":")[0]
    return f"{title} has {_in_words(official)}, but {_in_words(counts)} lie in {origin}"


def _in_words(counts: Mapping[str, int]) -> str:
    if "test" not in counts:
        return f"{counts['training']:,} examples without a test split"
    *others, last = [f"{count:,} {part}" for part, count in counts.items()]
    return f"{', '.join(others)} and {last} examples"


def count_examples(format: Format, files: Sequence[Path]) -> int | None:
    """How many examples files hold, without decoding them; None where only reading all of it would tell."""
    if format == "parquet":
        return _parquet_rows(files)
    if format == "jsonl":
        return sum(bool(line.strip()) for file in files for line in file.read_bytes().splitlines())
    if format in RECORDS:
        return sum(file.stat().st_size // RECORDS[format] for file in files)
    return None


def _parquet_rows(files: Sequence[Path]) -> int | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return sum(int(pq.read_metadata(file).num_rows) for file in files)
    except (OSError, pa.ArrowException):  # a damaged file is told of by whoever reads it
        return None


RECORDS: dict[Format, int] = {"cifar10": 1 + 3 * 32 * 32, "cifar100": 2 + 3 * 32 * 32, "stl10": 3 * 96 * 96}
"""Bytes of one example in formats that have nothing else."""
