"""A checkpoint gives back exactly what was put in, and a damaged one is never read."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file

from fedfuse.core.errors import RunFolderError
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.federation import RoundRecord, ServerState, Snapshot
from fedfuse.federation.checkpoint import load_checkpoint, save_checkpoint
from fedfuse.federation.state import PrototypeRecord
from fedfuse.models import Mlp
from tests.helpers import TinyNorm, make_bank, make_weights

BANK = make_bank(a=TinyNorm(), b=Mlp(hidden=(5,)))


def record_of(number):
    metrics = {"auroc": None, "macro_f1": 2 / 3, "per_class_accuracy.a.b": 0.1 * 3}
    entry = PrototypeRecord(0.1 + 0.2, 1 / 3, None, {"steps": 5, "best_step": 2}, metrics, {"macro_f1": 1 / 7})
    prototypes = {"a": entry, "b": PrototypeRecord()}
    return RoundRecord(number, (0, 2), (2,), (), 4, 8, 0.7, None, prototypes, 1.25, {}, {"macro_f1": 1 / 9})


def snapshot_of(number, memory=None, clients=None):
    weights = {p: make_weights(BANK, p, number) for p in BANK.prototypes}
    history = tuple(record_of(i + 1) for i in range(number))
    return Snapshot(ServerState(number, weights, memory or {}, history), clients or {})


def assert_same(one, other):
    assert one.server.round == other.server.round
    assert one.server.history == other.server.history
    assert list(one.server.weights) == list(other.server.weights)
    assert all(one.server.weights[p].equals(other.server.weights[p]) for p in one.server.weights)
    for before, after in ((one.server.memory, other.server.memory), (one.clients, other.clients)):
        assert set(before) == set(after)
        for group in before:
            assert set(before[group]) == set(after[group])
            for name, tensor in before[group].items():
                assert after[group][name].dtype == tensor.dtype
                assert torch.equal(after[group][name], tensor)


RICH = {
    "local": {"c": torch.randn(3, 4), "count": torch.tensor(7), "bits": torch.zeros(0, dtype=torch.uint8)},
    "merge/a": {"velocity": torch.randn(5)},
    "screen/0": {"x": torch.tensor([True, False])},
    "fuse": {"layers.1.weight": torch.randn(2, 3).t()},
}
STATES = {0: {"c_i": torch.randn(4)}, 12: {"previous": torch.randn(2, 2), "n": torch.tensor(1, dtype=torch.int64)}}


@pytest.mark.parametrize("number", [0, 1, 3])
def test_round_trip_is_exact(tmp_path, number):
    snapshot = snapshot_of(number, RICH, STATES)
    save_checkpoint(tmp_path, snapshot, "id")
    assert_same(load_checkpoint(tmp_path, "id"), snapshot)


def test_tensors_that_share_memory_with_the_weights_are_saved(tmp_path):
    snapshot = snapshot_of(1)
    flat = snapshot.server.weights["a"].flat
    shared = {"local": {"teacher": flat, "parameters": snapshot.server.weights["a"].parameters}}
    snapshot = Snapshot(ServerState(1, snapshot.server.weights, shared), {0: {"previous": flat}, 1: {"previous": flat}})
    save_checkpoint(tmp_path, snapshot, "id")
    assert_same(load_checkpoint(tmp_path, "id"), snapshot)


def test_a_name_may_have_a_slash(tmp_path):
    snapshot = snapshot_of(1, {"local": {"teacher/0": torch.ones(1), "teacher/1": torch.zeros(1)}})
    save_checkpoint(tmp_path, snapshot, "id")
    assert_same(load_checkpoint(tmp_path, "id"), snapshot)


def test_nothing_saved_is_none(tmp_path):
    assert load_checkpoint(tmp_path / "nowhere", "id") is None


def test_the_newest_is_read_and_one_more_is_kept(tmp_path):
    for number in range(1, 5):
        save_checkpoint(tmp_path, snapshot_of(number), "id")
    assert len(list(tmp_path.iterdir())) == 2
    assert_same(load_checkpoint(tmp_path, "id"), snapshot_of(4))


def test_rounds_are_ordered_as_numbers(tmp_path):
    for number in (9, 10, 100):
        save_checkpoint(tmp_path, Snapshot(ServerState(number, snapshot_of(1).server.weights)), "id")
    assert load_checkpoint(tmp_path, "id").server.round == 100


@pytest.mark.parametrize("left", [0, 4, 200, -1])
def test_a_truncated_newest_falls_back_to_the_one_before(tmp_path, left):
    save_checkpoint(tmp_path, snapshot_of(1, RICH), "id")
    newest = save_checkpoint(tmp_path, snapshot_of(2, RICH), "id")
    newest.write_bytes(newest.read_bytes()[:left])
    assert_same(load_checkpoint(tmp_path, "id"), snapshot_of(1, RICH))


def test_a_file_of_somebody_else_falls_back_to_the_one_before(tmp_path):
    save_checkpoint(tmp_path, snapshot_of(1), "id")
    save_file({"x": torch.zeros(1)}, tmp_path / "round-000002.safetensors")
    assert_same(load_checkpoint(tmp_path, "id"), snapshot_of(1))


def test_only_damaged_ones_are_none(tmp_path):
    save_checkpoint(tmp_path, snapshot_of(1), "id").write_bytes(b"half")
    assert load_checkpoint(tmp_path, "id") is None


def test_another_experiments_is_refused(tmp_path):
    save_checkpoint(tmp_path, snapshot_of(1), "id")
    with pytest.raises(RunFolderError, match="another experiment"):
        load_checkpoint(tmp_path, "other")


@pytest.mark.parametrize(("written", "age"), [(1, "an earlier"), (99, "a later")])
def test_one_of_another_format_is_refused_in_one_sentence(tmp_path, written, age):
    path = save_checkpoint(tmp_path, snapshot_of(1, RICH, STATES), "id")
    tensors, about = read_safetensors(path)
    write_safetensors(path, tensors, {**about, "format": written})
    with pytest.raises(RunFolderError, match=f"was written by {age} version of fedfuse.*--overwrite"):
        load_checkpoint(tmp_path, "id")


def test_the_same_snapshot_gives_the_same_bytes(tmp_path):
    snapshot = snapshot_of(2, RICH, STATES)
    one, other = (save_checkpoint(tmp_path / where, snapshot, "id").read_bytes() for where in ("x", "y"))
    assert one == other


def test_a_record_of_a_version_without_metrics_is_read():
    record = record_of(1).to_json()
    own = record["prototypes"]["a"]
    del record["ensemble_metrics"], own["metrics"], own["metrics_before_fusion"]
    read = RoundRecord.from_json(record)
    assert read.ensemble_metrics == read.prototypes["a"].metrics == read.prototypes["a"].metrics_before_fusion == {}
    assert read.to_json() == record
