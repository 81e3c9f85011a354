"""What travels for masks, as Flower records: client numbers in ``config``, keys and shares as arrays of bytes.

    message          config                                        arrays
    keys             attempt, server-round, client, experiment
      answer         attempt                                       keys
    shares           attempt, members, neighbours                  mask-keys, share-keys
      answer         attempt                                       sealed, commitment
    a task's letters attempt, senders  (record masking)            sealed  (record letters)
    opening          attempt, members
      answer         attempt                                       seeds, secrets

Rows of arrays are in the order of the client numbers that they are about, from the smallest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedfuse.core.errors import DataError
from fedfuse.flower.reading import record_of, tensor_of, word_of
from fedfuse.flower.records import ARRAYS, CONFIG
from fedfuse.flower.versions import FORMAT, OURS, check_format

KEYS, SHARES, OPENING = "keys", "shares", "opening"
"""What nodes are asked for, beside training."""
MASKING, LETTERS = "masking", "letters"
"""The records of a task that carry what it needs for masks."""
ATTEMPT, MEMBERS, NEIGHBOURS, SENDERS = "attempt", "members", "neighbours", "senders"
MOST_CLIENTS = 1_000_000


def message(config: Mapping[str, Any], **arrays: Sequence[bytes]) -> RecordDict:
    """One message; arrays are rows of bytes, all as long as the first."""
    return RecordDict({CONFIG: ConfigRecord({FORMAT: OURS, **config}), ARRAYS: rows_record(arrays)})


def rows_record(arrays: Mapping[str, Sequence[bytes]]) -> ArrayRecord:
    return ArrayRecord({name.replace("_", "-"): Array(_as_table(rows)) for name, rows in arrays.items()})


def config_of(content: RecordDict) -> Mapping[str, Any]:
    config: Mapping[str, Any] = record_of(content, CONFIG, ConfigRecord)
    check_format(config)
    return config


def attempt_of(config: Mapping[str, Any]) -> str:
    """The name of an attempt, which its server has drawn."""
    attempt = word_of(config, ATTEMPT)
    if not re.fullmatch(r"[0-9a-f]{32}", attempt):
        raise DataError(f"'{ATTEMPT}' is no name of one")
    return attempt


def clients_in(config: Mapping[str, Any], name: str) -> list[int]:
    """Client numbers, from the smallest, none of them twice."""
    found = config.get(name)
    if not isinstance(found, list) or len(found) > MOST_CLIENTS or not all(type(one) is int for one in found):
        raise DataError(f"'{name}' is no list of clients")
    if any(one >= other for one, other in pairwise([-1, *found])):
        raise DataError(f"'{name}' is no list of different clients, from the smallest")
    return list(found)


def rows_of(content: RecordDict, name: str, number: int, width: int, record: str = ARRAYS) -> list[bytes]:
    """So many rows of so many bytes."""
    arrays = record_of(content, record, ArrayRecord)
    if name not in arrays:
        raise DataError(f"'{name}' is missing")
    tensor = tensor_of(arrays[name])
    fits = tensor.ndim == 2 and len(tensor) == number and (not number or tensor.shape[1] == width)
    if tensor.dtype != torch.uint8 or not fits:
        raise DataError(f"'{name}' is of another shape or type than {(number, width)} of bytes")
    return [row.tobytes() for row in tensor.numpy()]


def _as_table(rows: Sequence[bytes]) -> np.ndarray[Any, Any]:
    width = len(rows[0]) if rows else 0
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), width)
