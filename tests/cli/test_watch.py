"""``fedfuse watch`` and ``--watch``, as a person meets them."""

from __future__ import annotations

import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest
from benchmarks.report.runs import Made, write_run

from tests.cli.test_cli import BRIEF, InProcess, command, in_process, only_sentence, settings

__all__ = ["in_process"]


def test_the_page_is_served_until_the_process_is_ended_and_nothing_is_written(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "a", Made(rounds=2))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    server = subprocess.Popen(command("watch"), cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        page = server.stdout.readline().split()[1]
        with urllib.request.urlopen(page, timeout=30) as answer:
            assert "The run is finished." in answer.read().decode()
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=30) == 0
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_port_that_is_taken_is_one_sentence_and_nothing_is_run(tmp_path: Path, in_process: InProcess) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert only_sentence(in_process("watch", ".", "--port", port)).endswith("choose another port")
        answer = in_process("run", "digits", "--out", "mine", "--port", port, *settings(*BRIEF))
        assert only_sentence(answer).endswith("choose another port")
    assert not (tmp_path / "mine").exists()


def test_a_folder_that_is_not_there_is_one_sentence(in_process: InProcess) -> None:
    assert "does not exist" in only_sentence(in_process("watch", "nowhere"))


@pytest.mark.parametrize("start", [["run", "digits"], ["compare", "digits", "--methods", "fedavg", "--jobs", "2"]])
def test_the_address_is_said_beside_what_is_printed(in_process: InProcess, start: list[str]) -> None:
    answer = in_process(*start, "--out", "mine", "--watch", "-q", *settings(*BRIEF))
    assert (answer.returncode, answer.stdout) == (0, "")
    assert answer.stderr.startswith("live page: http://127.0.0.1:")


def test_no_browser_is_no_reason_to_stop(in_process: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address))
    answer = in_process("run", "digits", "--out", "mine", "--open", "-q", *settings(*BRIEF))
    assert answer.returncode == 0
    assert "no browser was found here" in answer.stderr
    assert opened[0] in answer.stderr
