"""Updates beyond what memory shall hold lie in a file: the same round, and no model more in memory."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.weights import Weights
from fedfuse.engines.jobs import ServerJob
from fedfuse.engines.packing import SharedTensors, pack, tensors_in, unpack
from fedfuse.federation import shelf
from fedfuse.federation.shelf import Shelf, ShelvedWeights
from tests.engines.players import federation, result
from tests.helpers import make_bank, make_update, make_weights


@pytest.fixture
def full(monkeypatch):
    """Nothing more fits into memory."""
    monkeypatch.setattr(shelf, "IN_MEMORY", 0)


def update_of(client):
    return make_update(make_weights(make_bank(), "mlp", client), client)


def shelved():
    place = Shelf(None)
    return [place.hold(update_of(client)) for client in range(3)]


@pytest.mark.parametrize("method", ["feddf", "fedbe", "feded-w2", "fedma"])
@pytest.mark.usefixtures("full")
def test_a_round_is_the_same(method, monkeypatch):
    away = result(federation(method))
    monkeypatch.setattr(shelf, "IN_MEMORY", 2**40)
    assert away == result(federation(method))


def test_small_ones_stay_in_memory():
    updates = shelved()
    assert not any(isinstance(update.weights, ShelvedWeights) for update in updates)


@pytest.mark.usefixtures("full")
class TestShelvedWeights:
    def test_they_are_what_they_were(self, tmp_path):
        update = update_of(0)
        kept = Shelf(tmp_path).hold(update).weights
        assert isinstance(kept, ShelvedWeights)
        assert not isinstance(kept.here, ShelvedWeights)
        assert kept.equals(update.weights)
        assert kept.nbytes == update.weights.nbytes
        assert dict(kept).keys() == dict(update.weights).keys()
        model = make_bank().lend("mlp", kept)
        assert Weights.of(model).equals(update.weights)

    def test_some_numbers_are_read_alone(self, tmp_path, monkeypatch):
        place = Shelf(tmp_path)
        updates = [update_of(client) for client in range(2)]
        _, kept = [place.hold(update).weights for update in updates]
        monkeypatch.setattr(ShelvedWeights, "read", None)
        assert torch.equal(kept.between(3, 8), updates[1].weights.flat[3:8])

    def test_the_file_has_no_name(self, tmp_path):
        kept = Shelf(tmp_path).hold(update_of(0))
        assert kept.weights.flat.isfinite().all()
        assert list(tmp_path.iterdir()) == [], "a killed run leaves nothing behind"

    def test_they_travel_one_by_one_and_are_not_read_to_be_looked_for(self, monkeypatch):
        updates = shelved()
        reads, read = [], ShelvedWeights.read
        monkeypatch.setattr(ShelvedWeights, "read", lambda own: reads.append(own) or read(own))
        jobs = [ServerJob(1, "ask", update.weights.equals) for update in updates]
        shared = SharedTensors(jobs)
        assert tensors_in(updates) == []
        assert reads == []
        came = unpack(shared.packed(jobs[1]), shared.common())
        assert reads == [updates[1].weights]
        assert came.work(updates[1].weights)
        assert type(unpack(pack(updates[2].weights))) is Weights


def test_a_file_that_was_cut_is_told(monkeypatch):
    monkeypatch.setattr(shelf, "IN_MEMORY", 0)
    kept = Shelf(None).hold(update_of(0)).weights
    kept._file.truncate(3)
    with pytest.raises(OSError, match="ends too early"):
        assert torch.isfinite(kept.flat).all()
