"""``fedfuse monitor`` and ``fedfuse run --json``, as an operator's programs meet them."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from fedfuse.cli.monitor import pages
from fedfuse.federation.folder import RunFolder
from fedfuse.report.monitor import Monitor
from tests.cli.test_cli import QUICK, InProcess, command, in_process, only_sentence, settings

__all__ = ["in_process"]


def test_events_and_metrics_of_a_run_can_be_printed(tmp_path: Path, in_process: InProcess) -> None:
    answer = in_process("run", "digits", "--json", "--out", "mine", *settings(*QUICK))
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout == RunFolder(tmp_path / "mine").events.read_text()
    assert [json.loads(line)["event"] for line in answer.stdout.splitlines()][-1] == "run_finished"
    answer = in_process("monitor", "mine", "--once")
    assert answer.returncode == 0
    assert 'fedfuse_run_complete{run="mine"} 1\n' in answer.stdout
    assert 'fedfuse_round{run="mine"} 2\n' in answer.stdout


def test_the_pages_are_served_until_the_process_is_ended(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"event": "client_finished", "time": 1000.0}\n')
    options = ["monitor", str(tmp_path), "--address", "127.0.0.1:0", "--silence", "60"]
    server = subprocess.Popen(command(*options), stdout=subprocess.PIPE, text=True)
    try:
        page, address = (server.stdout.readline().split()[1] for _ in range(2))
        with urllib.request.urlopen(page, timeout=30) as answer:
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert b"fedfuse_last_event_timestamp_seconds" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(address.replace("metrics", "health"), timeout=30)
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=30) == 0
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def test_health_says_what_is_wrong(tmp_path: Path) -> None:
    watched = Monitor(RunFolder(tmp_path))
    page = pages(watched, None)["/health"]()
    assert (page.status, page.text) == (503, "there is no run yet\n")
    (tmp_path / "events.jsonl").write_text('{"event": "client_finished", "time": 1000.0}\n')
    page = pages(watched, None)["/health"]()
    assert (page.status, page.text) == (200, "ok\n")


def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path, in_process: InProcess) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        sentence = only_sentence(
            in_process("monitor", str(tmp_path), "--address", f"127.0.0.1:{taken.getsockname()[1]}")
        )
    assert sentence.endswith("choose another port")
