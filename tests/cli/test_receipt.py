"""``fedfuse receipt`` as a command: written, shown, checked, and what it says of files that somebody touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_cli import QUICK, InProcess, only_sentence, settings
from tests.cli.test_cli import in_process as in_process

pytestmark = pytest.mark.usefixtures("without_pictures")


@pytest.fixture
def file(in_process: InProcess) -> Path:
    """The receipts of a client that sent something twice."""
    twice = (*QUICK, "federation.rounds=2", "federation.participation=1.0")
    assert in_process("run", "digits", "--out", "run", "-q", *settings(*twice)).returncode == 0
    assert "10 in receipts" in in_process("receipt", "write", "run", "--out", "receipts").stdout
    return Path("receipts") / "client-3.jsonl"


def test_what_left_is_shown_and_checked_beside_the_run(file: Path, in_process: InProcess) -> None:
    shown = in_process("receipt", "show", str(file)).stdout
    assert [line.split()[2] for line in shown.splitlines() if " update " in line] == ["round", "1", "2"]
    checked = in_process("receipt", "verify", str(file), "--run", "run")
    assert checked.returncode == 0, checked.stderr
    assert "2, each follows the one before; 0 signed" in checked.stdout
    assert "all 2 answers that the server has heard have a line" in checked.stdout


def test_a_head_that_was_noted_shows_what_was_cut_off(file: Path, tmp_path: Path, in_process: InProcess) -> None:
    said = in_process("receipt", "verify", str(file)).stdout
    head = next(line.split()[1] for line in said.splitlines() if line.startswith("head"))
    assert in_process("receipt", "verify", str(file), "--head", head).returncode == 0
    whole = (tmp_path / file).read_bytes()
    (tmp_path / file).write_bytes(whole.splitlines(keepends=True)[0])
    assert "cut off" in only_sentence(in_process("receipt", "verify", str(file), "--head", head))
    assert "cut off" in only_sentence(in_process("receipt", "verify", str(file), "--run", "run"))


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("verify", "receipts/client-3.jsonl", "--key", "ab"), "64 hexadecimal signs"),
        (("verify", "receipts/client-3.jsonl", "--key", "0" * 64), "not signed"),
        (("verify", "nothing.jsonl"), "No such file"),
        (("verify", "receipts/client-3.jsonl", "--run", "receipts"), "holds no run"),
        (("show", "run/config.yaml"), "no receipts"),
        (("write", "run", "--out", "receipts"), "there already"),
    ],
)
def test_mistakes_are_one_sentence(in_process: InProcess, arguments: tuple[str, ...], sentence: str) -> None:
    assert sentence in only_sentence(in_process("receipt", *arguments))
