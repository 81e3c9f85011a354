"""The page about a run: what its log says, and that no text from there becomes more than text."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest

from fedfuse.cli.monitor import pages
from fedfuse.federation.events import EventLog
from fedfuse.federation.folder import RunFolder
from fedfuse.report.monitor import Monitor
from fedfuse.report.run_page import BAD
from tests.report.test_monitor import a_round

FACT = re.compile(r"<dt>([^<]*)</dt><dd( class=bad)?>([^<]*)</dd>")


def shown(folder: Path, silence: float | None = None) -> str:
    return pages(Monitor(RunFolder(folder)), silence)["/"]().text


def facts(page: str) -> dict[str, str]:
    return {name: value for name, _, value in FACT.findall(page)}


def test_where_a_run_is(tmp_path: Path) -> None:
    with closing(EventLog(RunFolder(tmp_path).events)) as log:
        log.emit("run_started", rounds=9)
        log.emit("round_finished", **a_round(1, refused=[2], late=[3]))
        log.emit("model_diverged", round=1)
    page = shown(tmp_path)
    found = facts(page)
    assert (found["state"], found["round"], found["last round"]) == ("under way", "1 of 9", "took 1.5 s")
    assert (found["accuracy"], found["counted"], found["refused"], found["late"]) == ("0.2500", "2", "1", "1")
    assert (found["to the server"], found["to the clients"]) == ("10 bytes", "20 bytes")
    assert "Model mlp" in page
    assert "loss" not in found, "it was not measured"
    assert [name for name, bad, _ in FACT.findall(page) if bad] == ["models diverged"]


def test_trouble_is_what_is_seen_first(tmp_path: Path) -> None:
    assert facts(shown(tmp_path)) == {"trouble": "there is no run yet"}
    (tmp_path / "events.jsonl").write_text('{"event": "run_started", "rounds": 2, "time": 1000.0}\n')
    page = shown(tmp_path, silence=60)
    assert next(iter(facts(page))) == "trouble" in BAD
    assert facts(page)["trouble"].startswith("nothing happened for ")
    assert facts(page)["last event"] == "1970-01-01 00:16:40 UTC"


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>'])
def test_a_model_is_called_what_it_likes(tmp_path: Path, name: str) -> None:
    with closing(EventLog(RunFolder(tmp_path).events)) as log:
        log.emit("round_finished", **a_round(1, prototypes={name: {"accuracy": 0.5}}))
    page = shown(tmp_path)
    assert "&lt;" in page
    assert "<script>" not in page
    assert "<img" not in page
