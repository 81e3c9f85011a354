"""A SuperNode that waits until it is let in.

A SuperLink takes a node that was killed for connected until it has missed its heartbeats, about a minute, and turns the
next one with its key away till then. Flower's own SuperNode exits at that.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import httpx
from flwr.supercore.error import ApiErrorCode, FlowerError
from flwr.supernode.fleet_http_client import FleetHttpClient

ASKED_EVERY = 5.0
"""Seconds."""

logger = logging.getLogger("flwr")
Activate = Callable[[FleetHttpClient, Any], Any]


def wait_to_be_let_in(seconds: float) -> None:
    """A SuperNode that is started in this process asks again for so long."""
    FleetHttpClient.ActivateNode = patient(FleetHttpClient.ActivateNode, seconds)


def patient(activate: Activate, seconds: float) -> Activate:
    """The same request, made again and again until it is granted or so long has passed."""

    def activate_at_last(client: FleetHttpClient, request: Any) -> Any:
        until = time.monotonic() + seconds
        while True:
            try:
                return activate(client, request)
            except httpx.HTTPStatusError as error:
                left = until - time.monotonic()
                if left <= 0 or not _is_turned_away(error):
                    raise
            logger.warning(
                "fedfuse: the SuperLink does not let this node in yet: it has not noticed that the one before it is "
                "gone, which takes about a minute, or does not know its key. Asking again for %.0f s",
                left,
            )
            time.sleep(min(ASKED_EVERY, left))

    return activate_at_last


def _is_turned_away(error: httpx.HTTPStatusError) -> bool:
    answer = FlowerError.from_json(error.response.text)
    return answer is not None and answer.code == ApiErrorCode.FLEET_NODE_ACTIVATION_FAILED
