"""A checkpoint gives back exactly what was put in, and a damaged one is never read."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from fedfuse.core.errors import RunFolderError
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.federation import RoundRecord, ServerState, Snapshot
from fedfuse.federation.checkpoint import Saved, go_on_from, load_checkpoint, new_states, save_checkpoint
from fedfuse.federation.client_states import HeldStates
from fedfuse.federation.events import EventLog
from fedfuse.federation.state import History, PrototypeRecord
from fedfuse.models import Mlp
from tests.helpers import TinyNorm, files_of, make_bank, make_weights

LOG = "events.jsonl"
BANK = make_bank(a=TinyNorm(), b=Mlp(hidden=(5,)))


def record_of(number):
    metrics = {"auroc": None, "macro_f1": 2 / 3, "per_class_accuracy.a.b": 0.1 * 3}
    entry = PrototypeRecord(0.1 + 0.2, 1 / 3, None, {"steps": 5, "best_step": 2}, metrics, {"macro_f1": 1 / 7})
    prototypes = {"a": entry, "b": PrototypeRecord()}
    return RoundRecord(number, (0, 2), (2,), (), 4, 8, 0.7, None, prototypes, 1.25, {}, {"macro_f1": 1 / 9})


def snapshot_of(number, memory=None, clients=None):
    weights = {p: make_weights(BANK, p, number) for p in BANK.prototypes}
    history = History(record_of(i + 1) for i in range(number))
    return Snapshot(ServerState(number, weights, memory or {}, history), HeldStates(clients))


def saved(folder, *snapshots, identity="id"):
    """Checkpoints of one run, one after the other; the path of the last."""
    states, record, path = new_states(folder), 0, None
    with closing(EventLog(folder / LOG)) as log:
        for snapshot in snapshots:
            for one in snapshot.server.history[record:]:
                log.emit("round_finished", **one.to_json())
            record = len(snapshot.server.history)
            states = states.after(snapshot.server.round, snapshot.clients.items())
            path = save_checkpoint(folder, Saved(replace(snapshot, clients=states), log.mark()), identity)
    return path


def loaded(folder, identity="id"):
    found = load_checkpoint(folder, identity, folder / LOG)
    return found and found.snapshot


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
    saved(tmp_path, snapshot)
    assert_same(loaded(tmp_path), snapshot)


def test_tensors_that_share_memory_with_the_weights_are_saved(tmp_path):
    snapshot = snapshot_of(1)
    flat = snapshot.server.weights["a"].flat
    shared = {"local": {"teacher": flat, "parameters": snapshot.server.weights["a"].parameters}}
    snapshot = Snapshot(
        ServerState(1, snapshot.server.weights, shared), HeldStates({0: {"previous": flat}, 1: {"previous": flat}})
    )
    saved(tmp_path, snapshot)
    assert_same(loaded(tmp_path), snapshot)


def test_a_name_may_have_a_slash(tmp_path):
    snapshot = snapshot_of(1, {"local": {"teacher/0": torch.ones(1), "teacher/1": torch.zeros(1)}})
    saved(tmp_path, snapshot)
    assert_same(loaded(tmp_path), snapshot)


def test_nothing_saved_is_none(tmp_path):
    assert loaded(tmp_path / "nowhere") is None


def test_the_newest_is_read_and_one_more_is_kept(tmp_path):
    saved(tmp_path, *(snapshot_of(number) for number in range(1, 5)))
    assert len(list(tmp_path.glob("*.safetensors"))) == 2
    assert_same(loaded(tmp_path), snapshot_of(4))


def test_rounds_are_ordered_as_numbers(tmp_path):
    saved(tmp_path, *(Snapshot(ServerState(number, snapshot_of(1).server.weights)) for number in (9, 10, 100)))
    assert loaded(tmp_path).server.round == 100


@pytest.mark.parametrize("left", [0, 4, 200, -1])
@pytest.mark.parametrize("what", ["checkpoint", "states"])
def test_a_truncated_newest_falls_back_to_the_one_before(tmp_path, what, left):
    newest = saved(tmp_path, snapshot_of(1, RICH, STATES), snapshot_of(2, RICH, STATES))
    if what == "states":
        newest = tmp_path / "clients" / "round-000002.states"
    newest.write_bytes(newest.read_bytes()[:left])
    assert_same(loaded(tmp_path), snapshot_of(1, RICH, STATES))


def test_a_log_that_lost_its_end_falls_back_to_the_one_before(tmp_path):
    saved(tmp_path, snapshot_of(1, RICH, STATES), snapshot_of(2, RICH, STATES))
    log = tmp_path / LOG
    log.write_bytes(log.read_bytes()[:-1])
    assert_same(loaded(tmp_path), snapshot_of(1, RICH, STATES))


@pytest.mark.parametrize("what", [LOG, "clients"])
def test_without_log_or_states_one_sentence_says_what_is_missing(tmp_path, what):
    saved(tmp_path, snapshot_of(1, RICH, STATES), snapshot_of(2, RICH, STATES))
    (tmp_path / what).rename(tmp_path / "away")
    with pytest.raises(RunFolderError, match=rf"{what} is not as the run left it.*; bring back what is damaged"):
        loaded(tmp_path)
    (tmp_path / "away").rename(tmp_path / what)
    assert_same(loaded(tmp_path), snapshot_of(2, RICH, STATES))


def test_states_in_memory_only_are_no_checkpoint(tmp_path):
    with pytest.raises(TypeError, match="new_states"):
        save_checkpoint(tmp_path, Saved(snapshot_of(1, RICH, STATES), EventLog().mark()), "id")


def test_what_is_later_is_set_aside(tmp_path):
    newest = saved(tmp_path, snapshot_of(1, RICH, STATES), snapshot_of(2, RICH, STATES))
    newest.write_bytes(newest.read_bytes()[:-1])
    go_on_from(tmp_path, load_checkpoint(tmp_path, "id", tmp_path / LOG))
    assert sorted(path.name for path in tmp_path.rglob("round-*")) == [
        "round-000001.safetensors",
        "round-000001.states",
        "round-000002.safetensors.damaged",
    ]
    assert_same(loaded(tmp_path), snapshot_of(1, RICH, STATES))


def test_a_file_of_somebody_else_falls_back_to_the_one_before(tmp_path):
    saved(tmp_path, snapshot_of(1))
    save_file({"x": torch.zeros(1)}, tmp_path / "round-000002.safetensors")
    assert_same(loaded(tmp_path), snapshot_of(1))


def test_only_damaged_ones_are_named(tmp_path):
    saved(tmp_path, snapshot_of(1)).write_bytes(b"half")
    with pytest.raises(RunFolderError, match=r"round-000001\.safetensors \(the file ends too early\); bring back"):
        loaded(tmp_path)


def test_files_of_others_are_neither_counted_nor_removed(tmp_path):
    """Copies that a person put aside sort after every number."""
    kept = saved(tmp_path, snapshot_of(1), snapshot_of(2))
    for name in (
        "round-best.safetensors",
        "round-keep.safetensors",
        "round-3.safetensors",
        "round-0000009.safetensors",
    ):
        (tmp_path / name).write_bytes(kept.read_bytes())
    saved(tmp_path, *(snapshot_of(number) for number in range(1, 6)))
    assert sorted(path.name for path in tmp_path.glob("*.safetensors")) == [
        "round-0000009.safetensors",
        "round-000004.safetensors",
        "round-000005.safetensors",
        "round-3.safetensors",
        "round-best.safetensors",
        "round-keep.safetensors",
    ]


def test_states_of_another_run_are_noticed(tmp_path):
    """As many clients with states of as many rounds, but other states."""
    (tmp_path / "other").mkdir()
    other = {0: {"c_i": torch.zeros(4)}, 12: STATES[12]}
    saved(tmp_path, snapshot_of(1, RICH, STATES))
    saved(tmp_path / "other", snapshot_of(1, RICH, other))
    place = "clients/round-000001.states"
    (tmp_path / place).write_bytes((tmp_path / "other" / place).read_bytes())
    with pytest.raises(RunFolderError, match="clients is not as the run left it"):
        loaded(tmp_path)


def test_states_that_are_damaged_during_a_run_are_not_used(tmp_path):
    saved(tmp_path, snapshot_of(1, RICH, STATES))
    found = loaded(tmp_path)
    segment = tmp_path / "clients" / "round-000001.states"
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    segment.write_bytes(content)
    with pytest.raises(
        RunFolderError, match=r"was damaged or removed while the run was using it .*resume=True goes on"
    ):
        found.clients[12]


def test_another_experiments_is_refused(tmp_path):
    saved(tmp_path, snapshot_of(1))
    with pytest.raises(RunFolderError, match="another experiment"):
        loaded(tmp_path, "other")


@pytest.mark.parametrize(("written", "age"), [(2, "an earlier"), (3, "an earlier"), (99, "a later")])
def test_one_of_another_format_is_refused_in_one_sentence(tmp_path, written, age):
    path = saved(tmp_path, snapshot_of(1, RICH, STATES))
    tensors, about = read_safetensors(path)
    write_safetensors(path, tensors, {**about, "format": written})
    with pytest.raises(RunFolderError, match=f"was written by {age} version of fedfuse.*overwrite=True"):
        loaded(tmp_path)


def test_the_same_snapshot_gives_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("fedfuse.federation.events.time.time", lambda: 0.0)
    for where in ("x", "y"):
        (tmp_path / where).mkdir()
        saved(tmp_path / where, snapshot_of(2, RICH, STATES))
    assert files_of(tmp_path / "x") == files_of(tmp_path / "y")


def test_the_number_of_rounds_before_does_not_matter_to_its_size(tmp_path):
    sizes = []
    for number in (2, 60):
        (tmp_path / str(number)).mkdir()
        sizes.append(saved(tmp_path / str(number), snapshot_of(number, RICH)).stat().st_size)
    assert sizes[1] - sizes[0] <= 16, "a few more digits"


def test_a_record_of_a_version_without_metrics_is_read():
    record = record_of(1).to_json()
    own = record["prototypes"]["a"]
    del record["ensemble_metrics"], own["metrics"], own["metrics_before_fusion"]
    read = RoundRecord.from_json(record)
    assert read.ensemble_metrics == read.prototypes["a"].metrics == read.prototypes["a"].metrics_before_fusion == {}
    assert read.to_json() == record
