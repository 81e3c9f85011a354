"""The summary of a finished run."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

from fedfuse.experiment.result import RunResult
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.state import History, PrototypeRecord, ServerState
from fedfuse.federation.summary import summarise
from tests.federation.test_checkpoint import record_of, snapshot_of
from tests.fuzzing.checkpoint import as_json
from tests.fuzzing.mutation import bytes_of, value_of
from tests.fuzzing.place import place


def honest() -> list[bytes]:
    record = replace(record_of(1), prototypes={"a": PrototypeRecord(0.5), "b": PrototypeRecord()}, ensemble_metrics={})
    state = ServerState(1, snapshot_of(1).server.weights, {}, History([record]))
    return [json.dumps(summarise(state, {"name": "x", "method": "fedavg", "seed": 0}, 0.5)).encode()]


def mutate(rng: Random, case: bytes) -> bytes:
    if rng.random() < 0.5:
        return bytes_of(rng, case)
    return json.dumps(as_json(value_of(rng, json.loads(case)))).encode()


def read(case: bytes) -> None:
    folder = RunFolder(place("finished"))
    folder.path.mkdir(exist_ok=True)
    folder.summary.write_bytes(case)
    result = RunResult(folder, folder.read_summary(), ())
    assert repr(result).startswith("RunResult(")
