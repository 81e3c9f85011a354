"""What pages say of licences."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedfuse.fusing.members.licences import Origins, origins_in


@pytest.mark.parametrize(
    ("page", "origins"),
    [
        ("---\nlicense: mit\n---\ntext", Origins("mit")),
        ("---\nlicense: [mit, apache-2.0]\nbase_model: a/b\n---\n", Origins("mit, apache-2.0", "a/b")),
        ("---\nlicense: other\nlicense_name: our-own\n---\n", Origins("our-own")),
        ("---\nlicense: other\n---\n", Origins("other")),
        ("# A page\nlicense: mit\n", Origins()),
        ("---\nlicense: mit\n", Origins()),
        ("---\nlicense: [\n---\n", Origins()),
        ("---\n- license\n---\n", Origins()),
        ("---\nlicense: {a: 1}\n---\n", Origins()),
        ("", Origins()),
    ],
)
def test_lines_on_top_of_a_page(page: str, origins: Origins, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(page)
    assert origins_in(tmp_path) == origins


def test_otherwise_the_licence_itself(tmp_path: Path) -> None:
    assert origins_in(tmp_path) == Origins()
    (tmp_path / "LICENSE").write_text("\n   Apache License\n Version 2.0\n")
    assert origins_in(tmp_path) == Origins("Apache License")
