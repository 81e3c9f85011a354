"""Tables in a narrow terminal."""

from __future__ import annotations

import io

from rich.console import Console

from fedfuse.cli.tables import table


def test_a_narrow_terminal_breaks_words_and_cuts_nothing() -> None:
    rows = table("method", "network", "ours", numbers=("ours",), first_may_wrap=True)
    rows.add_row("ensemble of ten Dirichlet(0.5) samples", "a_word_of_many_letters", "89.25 ± 1.92")
    text = io.StringIO()
    Console(file=text, width=40).print(rows)
    assert "89.25 ± 1.92" in text.getvalue()
    assert "…" not in text.getvalue()
    assert max(map(len, text.getvalue().splitlines())) <= 40
