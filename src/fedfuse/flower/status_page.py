"""The pages of ``fedfuse flower status``: what the nodes of this machine do, for people and for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fedfuse.core.facts_page import facts_page, paragraph, section
from fedfuse.core.loopback import Page, Pages
from fedfuse.core.plain_json import dumps
from fedfuse.flower.status import in_words, statuses

LEAVE = (
    "Stop the node: Ctrl-C in its terminal, or systemctl stop if it is a service. It may come back with the same "
    "command. To leave for good, also ask whoever runs the SuperLink to unregister your key. What you sent before "
    "stays in the models that it went into."
)


def pages(state: Path) -> Pages:
    """What there is to see of the nodes that keep their state in this folder."""
    return {
        "/": lambda: Page(_html(statuses(state))),
        "/status.json": lambda: Page(dumps(statuses(state), indent=2) + "\n", "application/json"),
        "/metrics": lambda: Page("".join(_metrics(statuses(state))), "text/plain"),
        "/health": lambda: _health(statuses(state)),
    }


def _health(clients: Sequence[Mapping[str, Any]]) -> Page:
    bad = [client for client in clients if client.get("trouble")]
    if bad:
        return Page(f"trouble: {len(bad)}\n", "text/plain", HTTPStatus.SERVICE_UNAVAILABLE)
    return Page("ok\n", "text/plain")


def _html(clients: Sequence[Mapping[str, Any]]) -> str:
    sections = "".join(section(_heading(client), _rows(client), BAD) for client in clients)
    leaving = f"<h2>How to leave</h2>{paragraph(LEAVE)}"
    body = (sections or paragraph("No node of this folder was asked for anything yet.")) + leaving
    return facts_page("fedfuse node", "What this node does", body)


def _heading(client: Mapping[str, Any]) -> str:
    return f"{client.get('experiment')}, client {client.get('client')}"


BAD = ("refused", "trouble")


def _rows(client: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if client.get("trouble"):
        yield "trouble", str(client["trouble"])
    if client.get("refusals"):
        yield "refused", f"{client['refusals']} answers; the last one: {client.get('refused')}"
    yield "method", str(client.get("method"))
    yield "model", str(client.get("prototype") or "as the server chooses")
    yield "round", f"{client.get('round', 0)} of {client.get('rounds')}"
    yield "now", f"{client.get('doing')}, since {str(client.get('time')).replace('T', ' ').replace('+00:00', ' UTC')}"
    yield "examples", _number(client.get("examples"))
    if client.get("masked"):
        yield "last update", f"masked, in a sum of {_number(client['masked'])} clients"
    if client.get("privacy"):
        yield "epsilon so far", in_words(client["privacy"])
    for name, size in client["sent"].items():
        if size:
            yield f"sent: {name}", f"{_number(size)} bytes"
    yield "receipts", str(client["receipts"])


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else "unknown"


METRICS = {
    "round": ("gauge", "the latest round that the node was asked to train in"),
    "examples": ("gauge", "examples that the node trains on"),
    "refusals": ("counter", "answers that the server refused"),
    "troubles": ("counter", "tasks that the node could not do"),
}


def _metrics(clients: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for name, (kind, meaning) in METRICS.items():
        full = f"fedfuse_node_{name}{'_total' if kind == 'counter' else ''}"
        yield from _metric(full, kind, meaning, [({}, client, client.get(name) or 0) for client in clients])
    sent = [({"record": name}, client, size) for client in clients for name, size in client["sent"].items()]
    yield from _metric("fedfuse_node_sent_bytes_total", "counter", "bytes that the node sent", sent)
    epsilons = [({"against": a}, c, value) for c in clients for a, value in epsilons_of(c).items()]
    yield from _metric("fedfuse_node_epsilon", "gauge", "what the node has given away so far, at its delta", epsilons)
    heard: list[tuple[dict[str, str], Mapping[str, Any], Any]] = [
        ({}, client, _seconds(client.get("time"))) for client in clients
    ]
    yield from _metric("fedfuse_node_last_seconds", "gauge", "when the node last did something, in Unix time", heard)


def _metric(
    name: str, kind: str, meaning: str, values: Sequence[tuple[Mapping[str, str], Mapping[str, Any], Any]]
) -> Iterator[str]:
    yield f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n"
    for labels, client, value in values:
        every = {"experiment": client.get("experiment"), "client": client.get("client"), **labels}
        said = ",".join(f'{label}="{_label(text)}"' for label, text in every.items())
        yield f"{name}{{{said}}} {value}\n"


def epsilons_of(client: Mapping[str, Any]) -> dict[str, float]:
    """By whom they are about; what is no number is left out."""
    privacy = client.get("privacy")
    numbers = privacy.get("epsilon") if isinstance(privacy, dict) else None
    found = numbers.items() if isinstance(numbers, dict) else ()
    return {str(against): value for against, value in found if isinstance(value, int | float)}


def _label(value: Any) -> str:
    return str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _seconds(moment: Any) -> float:
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except ValueError:
        return 0.0
