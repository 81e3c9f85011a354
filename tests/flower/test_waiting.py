"""A node that comes back before the SuperLink has noticed that it was gone."""

from __future__ import annotations

import json

import httpx
import pytest
from flwr.supercore.error import ApiErrorCode, FlowerError

from fedfuse.flower import waiting


class SuperLink:
    """Refuses so many requests, each with this code, and counts the seconds that it was left alone."""

    def __init__(self, monkeypatch, refusals, code=ApiErrorCode.FLEET_NODE_ACTIVATION_FAILED):
        self.refusals, self.code, self.seconds, self.asked = refusals, code, 0.0, 0
        monkeypatch.setattr(waiting.time, "monotonic", lambda: self.seconds)
        monkeypatch.setattr(waiting.time, "sleep", self.pass_time)

    def pass_time(self, seconds):
        assert seconds > 0
        self.seconds += seconds

    def activate(self, _client, _request):
        self.asked += 1
        if self.asked > self.refusals:
            return "let in"
        answer = httpx.Response(412, text=json.dumps(FlowerError(self.code, "").to_json("turned away")))
        raise httpx.HTTPStatusError("412", request=httpx.Request("POST", "https://127.0.0.1"), response=answer)


def test_it_asks_until_it_is_let_in(monkeypatch):
    link = SuperLink(monkeypatch, refusals=11)
    assert waiting.patient(link.activate, 90)(None, None) == "let in"
    assert link.seconds == 11 * waiting.ASKED_EVERY


@pytest.mark.parametrize("seconds", [0, 12, 90])
def test_it_leaves_after_so_long(monkeypatch, seconds):
    link = SuperLink(monkeypatch, refusals=1000)
    with pytest.raises(httpx.HTTPStatusError):
        waiting.patient(link.activate, seconds)(None, None)
    assert link.seconds == seconds


def test_another_refusal_is_final(monkeypatch):
    link = SuperLink(monkeypatch, refusals=5, code=ApiErrorCode.FLEET_INVALID_HEARTBEAT_INTERVAL)
    with pytest.raises(httpx.HTTPStatusError):
        waiting.patient(link.activate, 90)(None, None)
    assert link.asked == 1
