"""What the server makes of sound updates is measured before anybody gets it, and not more often than it changes."""

from __future__ import annotations

import pytest
import torch

from fedfuse.federation import server_models
from fedfuse.federation.absurd import Growth
from tests.helpers import Recorder, TinyNorm, make_bank, make_federation, played


@pytest.mark.parametrize(("policy", "times"), [("average", 1), ("last", 2)])
def test_merged_weights_are_measured_again_only_if_their_statistics_are_others(monkeypatch, policy, times):
    measured, fault = [], Growth.fault

    def noted(growth, prototype, weights):
        measured.append(prototype)
        return fault(growth, prototype, weights)

    monkeypatch.setattr(Growth, "fault", noted)
    played(make_federation(make_bank(mlp=TinyNorm()), batch_norm=policy), 1)
    assert measured == ["mlp"] * times


def test_statistics_that_nobody_could_work_with_go_no_further(monkeypatch):
    def unsettled(_policy, _view, _prototype, merged, _updates):
        return merged.with_buffers(torch.full_like(merged.buffers, torch.inf))

    monkeypatch.setattr(server_models, "settle", unsettled)
    heard = Recorder()
    federation = make_federation(make_bank(mlp=TinyNorm()), listener=heard)
    start = federation.start()
    after = played(federation, 1, start)
    assert after.server.weights["mlp"] is start.server.weights["mlp"]
    (event,) = heard.of("model_diverged")
    assert event["reason"] == "weights were not finite after the merge; kept: last round's weights"
