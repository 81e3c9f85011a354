"""``fedfuse flower`` where Flower is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.test_cli import InProcess, in_process, only_sentence

__all__ = ["in_process"]


@pytest.mark.parametrize(
    "command", [["new", "app"], ["keys", "keys", "--nodes", "1"], ["superlink", "--insecure"]], ids=lambda c: c[0]
)
def test_the_missing_extra_is_named(
    tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    for module in [name for name in sys.modules if name.startswith("fedfuse.flower")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "flwr", None)
    answer = in_process("flower", *command)
    assert answer.returncode == 2
    assert only_sentence(answer) == "Flower needs an optional package: pip install 'fedfuse[flower]'"
    assert not any(tmp_path.iterdir())
