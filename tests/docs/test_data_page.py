"""The table of docs/data.md, from a file that a hospital's spreadsheet might have written to answers on raw rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import fedfuse
from tests.docs.blocks import texts_of


def block(page: str, kind: str, word: str) -> str:
    [found] = [one for one in texts_of(f"docs/{page}", kind) if word in one]
    return found


@pytest.mark.usefixtures("without_pictures")
def test_the_hospitals_table_as_the_pages_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    exec(block("data.md", "python", "# make_patients.py"), {})
    Path("patients.yaml").write_text(block("data.md", "yaml", "# patients.yaml"), encoding="utf-8")
    result = fedfuse.run("patients.yaml")
    shown = block("data.md", "console", "fedfuse run patients.yaml").splitlines()
    assert result.notes == shown[2 : shown.index("...")]
    assert result.cautions == []
    for page, word in (("data.md", '"dose": 2.4'), ("using-a-model.md", "latin-1")):
        exec(block(page, "python", word), {})
    printed = capsys.readouterr().out
    assert printed.count("['bösartig']") == 2
    assert "reads the columns age, dose, sex (divers, männlich, weiblich), smoker" in printed


def test_what_the_export_section_shows_is_what_a_graph_says() -> None:
    from fedfuse.data.raw import RawTable
    from fedfuse.data.readers.encoding import Column, Encoding

    words = ("divers", "männlich", "weiblich")
    columns = (Column(name="age", fill=51.0), Column(name="sex", kind="category", categories=words))
    about = RawTable(mean=(0.0,) * 4, std=(1.0,) * 4, encoding=Encoding(columns=columns)).about
    import json

    assert json.loads(block("using-a-model.md", "json", "age")) == about["columns"]
