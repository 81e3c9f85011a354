from __future__ import annotations

from dataclasses import replace

from fedfuse.core.files import write_text
from fedfuse_papers.entries import names
from fedfuse_papers.output import markdown
from fedfuse_papers.pages import write_pages
from fedfuse_papers.store import Store
from tests.papers.test_output import LEDGER


def pages_of(tmp_path, *scales, picture=False):
    store = Store(tmp_path / "store")
    for scale in scales:
        ledger = replace(LEDGER, scale=scale)
        write_text(store.table(ledger.name, scale, ".md"), markdown(ledger))
        ledger.save(store)
        if picture:
            store.table(ledger.name, scale, ".png").write_bytes(scale.encode())
    folder = tmp_path / "pages"
    folder.mkdir()
    return [page.name for page in write_pages(store, folder)], folder


def test_nothing_was_run_and_the_list_says_so(tmp_path):
    pages, folder = pages_of(tmp_path)
    assert pages == ["tables.md"]
    lines = (folder / "tables.md").read_text(encoding="utf-8").splitlines()
    assert sum(line.endswith("| not run | not run |") for line in lines) == len(names())


def test_smoke_is_no_result(tmp_path):
    assert pages_of(tmp_path, "smoke")[0] == ["tables.md"]


def test_an_entry_that_was_run_has_a_page_with_its_tables_and_pictures(tmp_path):
    pages, folder = pages_of(tmp_path, "small", "paper", picture=True)
    assert pages == ["tables.md", "feddf-table2.md"]
    page = (folder / "feddf-table2.md").read_text(encoding="utf-8")
    for scale in ("small", "paper"):
        assert markdown(replace(LEDGER, scale=scale)) in page
        assert f"![feddf/table2 at scale {scale}](feddf-table2-{scale}.png)" in page
        assert (folder / f"feddf-table2-{scale}.png").read_bytes() == scale.encode()
    assert page.index("scale paper") < page.index("scale small")


def test_the_list_counts_cells_with_all_seeds_and_verdicts(tmp_path):
    _, folder = pages_of(tmp_path, "small")
    line = next(x for x in (folder / "tables.md").read_text(encoding="utf-8").splitlines() if "[feddf/table2]" in x)
    assert line.startswith("| [feddf/table2](feddf-table2.md) | table 2: ")
    assert line.endswith("| not run | 1 of 3 cells; seeds: 2; not enough seeds: 1 |")
