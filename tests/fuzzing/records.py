"""Records that came over the network: tasks, answers, and what a node says about itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from random import Random
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.recorddict_pb2 import RecordDict as ProtoRecordDict
from google.protobuf.message import DecodeError

from fedfuse.core.errors import DataError
from fedfuse.core.messages import Task, Update
from fedfuse.core.weights import Layout, Weights
from fedfuse.federation.inspection import ExpectedUpdate, reason_to_refuse, with_sound_metrics
from fedfuse.federation.sums.settings import SecureSums
from fedfuse.flower.masking.messages import SHARES, attempt_of, clients_in, config_of, message, rows_of
from fedfuse.flower.masking.party import Held, PartyMasks
from fedfuse.flower.masking.primitives import fresh_pair
from fedfuse.flower.masking.server import Masking
from fedfuse.flower.records import (
    Order,
    Report,
    order_from_records,
    order_to_records,
    report_from_records,
    report_to_records,
)
from fedfuse.flower.roster import member_of
from fedfuse.parts.tensor_spec import TensorSpec

LAYOUT = Layout((("layer.weight", (3, 2)), ("layer.bias", (3,))), (("mean", (3,)),))
WEIGHTS = Weights(torch.arange(12.0), LAYOUT)
TASK = Task(1, 2, "mlp", WEIGHTS, {"local/control": torch.zeros(9)}, ("test_outputs",))
EXTRAS = {"local/control_change": torch.ones(9), "scores/half": torch.ones(2, 2, dtype=torch.bfloat16)}
OUTPUTS = {"predictions": torch.zeros(4, 3)}
UPDATE = Update(1, 2, "mlp", WEIGHTS, 12, EXTRAS, {"loss": 0.5, "steps": 3}, OUTPUTS)
DUE = {"local/control_change": (9,), "scores/half": TensorSpec((2, 2), torch.bfloat16)}
EXPECTED = ExpectedUpdate(LAYOUT, DUE, {"predictions": (4, 3)})

SUMS = SecureSums()
VALUES: list[Any] = [
    0, -1, 3, 2**53 + 1, 2**63 - 1, True, 1.5, float("nan"), float("inf"), 1e308, "", "many", "a\nb\x1b[2J",
    "x" * 10**5, b"", b"x", [], [1, 2], ["a"], ["a"] * 3, [1.5], [True], [float("nan")],
]  # fmt: skip
HEADERS = [
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (10000000000000000000000000000000,), }",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,",
    b"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
    b"{'descr': '>f4', 'fortran_order': True, 'shape': (3,), }",
    b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }",
    b"{'descr': '<U999999999', 'fortran_order': False, 'shape': (3,), }",
    b"{'shape': (3,), 'fortran_order': False, 'descr': '<f4', }",
    b"(" * 900,
    b"-" * 900,
    b"{" * 900,
    b"0" * 900,
    b"",
]
DTYPES = ["f4", "f8", "f2", "i2", "i4", "i8", "u1", "u2", "b1", "c8", "S3", "U3", "M8[s]"]

Case = tuple[str, bytes]


@cache
def _guest() -> RecordDict:
    arrays = {name: Array(tensor.numpy()) for name, tensor in WEIGHTS.items()}
    return RecordDict({"arrays": ArrayRecord(arrays), "metrics": MetricRecord({"num-examples": 5, "loss": 0.1})})


@cache
def _masks() -> dict[str, RecordDict]:
    """What parties and a server send each other to agree on masks."""
    sent: dict[str, RecordDict] = {}
    parties = {client: PartyMasks(SUMS, client, RecordDict()) for client in range(3)}

    def ask(step: str, asked: Mapping[int, RecordDict]) -> Iterator[tuple[int, RecordDict]]:
        for client, content in asked.items():
            party, attempt = parties[client], content["config"]["attempt"]
            answer = party.shares(content)[1] if step == SHARES else party.keys(attempt, 1, "e" * 64)
            sent[f"asked for {step}"], sent[f"{step} for masks"] = content, answer
            yield client, answer

    masking = Masking(SUMS, ask, lambda _client, _why: None)
    letters = masking.agree([range(3)], {"server-round": 1, "experiment": "e" * 64})
    sent["letters"] = RecordDict({"config": ConfigRecord({}), **letters[2]})
    sent["asked to open"] = message({"attempt": masking.attempt, "members": [0, 1, 2]})
    sent["shares to open"] = message({"attempt": masking.attempt}, seeds=[b"x" * 52] * 3, secrets=[])
    return sent


def _read_masks(what: str, content: RecordDict) -> None:
    """By whoever gets it; a party has not begun anything, but for letters."""
    config = config_of(content)
    if what == "letters":
        state = RecordDict({"fedfuse-masking": _held()})
        PartyMasks(SUMS, 2, state).asked_to(content)
    elif what in ("asked for shares", "asked to open"):
        clients_in(config, "members")
        attempt_of(config)
        if what == "asked for shares":
            rows_of(content, "mask-keys", len(clients_in(config, "neighbours")), 49)
    else:
        attempt_of(config)
        widths = {"keys for masks": ("keys", 2, 49), "shares for masks": ("sealed", 2, 268)}
        name, number, width = widths.get(what, ("seeds", 3, 52))
        if what != "asked for keys":
            rows_of(content, name, number, width)


@cache
def _held() -> ConfigRecord:
    """What client 2 holds when letters come: neighbours of whom nothing is known but their keys."""
    keys = [fresh_pair() for _ in range(4)]
    own, others = keys[:2], [public for _, public in keys[2:]]
    attempt = _masks()["letters"]["masking"]["attempt"]
    held = Held(attempt, "shares", 1, "e" * 64, *own[0], *own[1], [0, 1, 2], [0, 1], others, others, b"s" * 32)
    shares = {"senders": [], "secret_shares": [b"x" * 68], "seed_shares": [b"x" * 52], "task": ""}
    return ConfigRecord({**vars(held), **shares})


def honest() -> list[Case]:
    contents = {
        "task": order_to_records(Order(TASK, "e" * 64, 0)),
        "answer": report_to_records(Report(UPDATE, keeps_state=True)),
        "answer of a guest": _guest(),
        "node": RecordDict({"config": ConfigRecord({"client": 2, "num-examples": 5, "prototype": "mlp"})}),
        **_masks(),
    }
    return [(what, _packed(content)) for what, content in contents.items()]


def mutate(rng: Random, case: Case) -> Case:
    what, data = case
    if rng.random() < 0.25:
        return what, _damaged(rng, data)
    content = _opened(data)
    for _ in range(rng.choice((1, 1, 2))):
        rng.choice(CHANGES)(rng, content)
    return what, _packed(content)


def read(case: Case) -> None:
    what, data = case
    content = _opened(data)
    if what == "task":
        order_from_records(content)
    elif what == "node":
        member_of(content)
    elif what in _masks():
        _read_masks(what, content)
    else:
        report = report_from_records(content, TASK)
        update = with_sound_metrics(report.update)
        json.dumps([update.examples, update.metrics], allow_nan=False)
        expected = EXPECTED if what == "answer" else ExpectedUpdate(LAYOUT, {}, {})
        if reason := reason_to_refuse(update, TASK, expected):
            raise DataError(reason)
        assert update.weights.is_finite()


def _packed(content: RecordDict) -> bytes:
    packed: bytes = recorddict_to_proto(content).SerializeToString()
    return packed


def _opened(data: bytes) -> RecordDict:
    """What Flower makes of the bytes; if it cannot, nothing of ours has to."""
    try:
        return recorddict_from_proto(ProtoRecordDict.FromString(data))
    except (DecodeError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError("this is no message") from error


def _damaged(rng: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randrange(len(changed) + 1)
        end = place + rng.randrange(1, 20)
        match rng.randrange(4):
            case 0:
                changed[place:end] = rng.randbytes(rng.randrange(20))
            case 1:
                changed[place:end] = b""
            case 2:
                changed[place:place] = changed[place:end]
            case _ if place < len(changed):
                changed[place] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _a_value(rng: Random, content: RecordDict) -> None:
    """Another value, or none, in a record of numbers and words."""
    record = _some(rng, content, ConfigRecord, MetricRecord)
    if record is not None and len(record):
        name, value = rng.choice(list(record)), rng.choice(VALUES)
        if rng.random() < 0.2:
            del record[name]
        elif isinstance(record, ConfigRecord) or _is_metric(value):
            record[name] = value


def _is_metric(value: Any) -> bool:
    values = value if isinstance(value, list) else [value]
    return all(type(one) in (int, float) for one in values) and value != []


def _more_values(rng: Random, content: RecordDict) -> None:
    record = _some(rng, content, ConfigRecord, MetricRecord)
    if record is not None:
        for number in range(rng.choice((1, 1, 1, 20, 300))):
            record[f"{number}"] = 1


def _an_array(rng: Random, content: RecordDict) -> None:
    """Another array, in sense or out of it."""
    record = _some(rng, content, ArrayRecord)
    if record is None or not len(record):
        return
    name = rng.choice(list(record))
    array = record[name]
    match rng.randrange(6):
        case 0:
            record[name] = Array(np.zeros(rng.choice([(), (3,), (2, 3), (0,), (9,)]), rng.choice(DTYPES)))
        case 1:
            header = rng.choice(HEADERS)
            start = b"\x93NUMPY" + bytes([rng.choice((1, 2, 3)), 0])
            length = len(header).to_bytes(2 if start[6] == 1 else 4, "little")
            record[name] = Array(array.dtype, array.shape, array.stype, start + length + header + array.data[128:])
        case 2:
            record[name] = Array(array.dtype, array.shape, array.stype, _damaged(rng, array.data))
        case 3:
            stype = rng.choice(["torch.pickle", "", "x" * 10**5])
            record[name] = Array(array.dtype, array.shape, stype, array.data)
        case 4:
            start = rng.choice([b"PK\x03\x04", b"\x80\x04", b""])
            record[name] = Array(array.dtype, array.shape, array.stype, start + array.data)
        case _:
            bad = rng.choice([np.nan, np.inf, 1e30, -1e14])
            record[name] = Array(np.full(rng.choice([(3, 2), (3,), (9,), (4, 3)]), bad, "f"))


def _names(rng: Random, content: RecordDict) -> None:
    record = _some(rng, content, ArrayRecord)
    if record is not None and len(record):
        name = rng.choice(list(record))
        array = record.pop(name)
        for other in rng.choice([(), ("x" * 10**4,), (name, "more"), [str(number) for number in range(500)]]):
            record[other] = array


def _records(rng: Random, content: RecordDict) -> None:
    """Another record under a name, or none."""
    name = rng.choice(list(content)) if len(content) else "config"
    others = [ArrayRecord(), ConfigRecord({"a": 1}), MetricRecord({"a": 1}), *content.values()]
    content.pop(name, None)
    if rng.random() < 0.7:
        content[name] = rng.choice(others)


def _some(rng: Random, content: RecordDict, *kinds: type) -> Any:
    found = [record for record in content.values() if isinstance(record, kinds)]
    return rng.choice(found) if found else None


CHANGES: list[Callable[[Random, RecordDict], None]] = [
    _a_value, _a_value, _an_array, _an_array, _names, _records, _more_values,
]  # fmt: skip
