"""Which files are those of rounds."""

from __future__ import annotations

from fedfuse.core.round_files import path_of, rounds_in


def test_rounds_are_found_again_in_order(tmp_path):
    for number in (0, 9, 10, 999_999, 1_000_000, 123_456_789):
        path_of(tmp_path, number, ".x").touch()
    assert rounds_in(tmp_path, ".x") == [0, 9, 10, 999_999, 1_000_000, 123_456_789]
    assert rounds_in(tmp_path, ".y") == rounds_in(tmp_path / "nowhere", ".x") == []


def test_other_names_are_of_somebody_else(tmp_path):
    names = ("round-1", "round-best", "round-0000001", "round--00001", "round-000001 ", "xround-000001", "round-٠٠٠٠٠١")
    for name in (*names, "round-000002.x", "round-" + "9" * 200):
        (tmp_path / f"{name}.x").touch()
    assert rounds_in(tmp_path, ".x") == []
