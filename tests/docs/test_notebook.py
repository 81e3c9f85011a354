"""The notebook of the examples: kept without outputs, and run from top to bottom by a kernel, as a reader would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parent.parent.parent / "examples" / "notebook.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]


def html_of(cell: Any) -> list[str]:
    return [output["data"]["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]


def test_nothing_is_kept_of_whoever_ran_it_last() -> None:
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in CELLS if cell["cell_type"] == "code")


@pytest.mark.long
def test_every_cell_runs_and_shows_what_it_should(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    work = tmp_path / "work"
    work.mkdir()
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(work)}}).execute()
    cells = {cell.source: cell for cell in notebook.cells if cell.cell_type == "code"}

    first = next(cell for source, cell in cells.items() if source.startswith("result = fedfuse.run("))
    live, shown = html_of(first)
    assert 'value="5" max="5"' in live, "one display, renewed until the last round"
    assert "finished" in live
    assert "<svg" in shown
    assert shown.count("<table>") == 1

    compared = next(cell for source, cell in cells.items() if source.startswith("comparison = "))
    live, shown = html_of(compared)
    assert "6/6 runs" in live
    assert shown.count('class="swatch') == 3

    gone_on = notebook.cells[-2]
    assert any("goes on with what is there" in html for html in html_of(gone_on))
    assert (work / "runs" / "curves.pdf").exists()
