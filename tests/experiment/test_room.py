"""Networks that no memory could hold are refused before they are built."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedfuse import Experiment
from fedfuse.core.errors import ConfigError
from fedfuse.core.memory import free_memory
from fedfuse.experiment import room
from fedfuse.experiment.room import check_room
from fedfuse.models import Mlp, TextTransformer


@pytest.mark.parametrize("hidden", [[10**12], [10**12, 10**12], [10**9] * 3, [10**60]])
def test_a_run_says_so_and_leaves_no_folder(out: Path, hidden: list[int]) -> None:
    experiment = Experiment.load("digits", models={"m": {"arch": "mlp", "hidden": hidden}})
    with pytest.raises(ConfigError, match=r"models\.m (needs .* GB of memory|is larger than any machine's memory)"):
        experiment.run(out)
    assert not out.exists()


def test_it_counts_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """4 x 10 + 10 and 10 x 3 + 3 numbers of four bytes."""
    monkeypatch.setattr(room, "free_memory", lambda: 83 * 4)
    check_room({"m": Mlp(hidden=(10,))}, (4,), 3)
    monkeypatch.setattr(room, "free_memory", lambda: 83 * 4 - 1)
    with pytest.raises(ConfigError, match=r"models\.m needs 0\.0 GB"):
        check_room({"m": Mlp(hidden=(10,))}, (4,), 3)
    monkeypatch.setattr(room, "free_memory", lambda: None)
    check_room({"m": Mlp(hidden=(10**12,))}, (4,), 3)


def test_the_system_says_how_much_is_free() -> None:
    free = free_memory()
    assert free is None or 0 < free < 2**50


def test_layers_are_counted_before_they_are_built() -> None:
    for build in (lambda: Mlp(hidden=(1,) * 1001), lambda: TextTransformer(layers=10**9)):
        with pytest.raises(ValueError, match=r"at most 1000|less than or equal to 1000"):
            build()
