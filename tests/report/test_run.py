from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fedfuse import report
from fedfuse.report import draw_run
from fedfuse.report.comparison import draw_comparison
from tests.report.samples import check_picture, history, partition


def test_both_pictures_are_written_into_a_new_folder(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "pictures"
    paths = draw_run(folder, history(3), partition(5, 4), 0.8)
    assert paths == [folder / "accuracy.png", folder / "partition.png"]
    assert sorted(folder.iterdir()) == paths
    for path in paths:
        check_picture(path)


def test_same_run_same_bytes_in_any_thread(tmp_path: Path) -> None:
    def draw(name: str) -> list[bytes]:
        comparison = tmp_path / name / "comparison.png"
        draw_comparison(comparison, {"feddf": [[(1, 0.2)], [(1, 0.4)]]}, 0.5, "title")
        paths = draw_run(tmp_path / name, history(3), partition(5, 4), 0.8)
        return [path.read_bytes() for path in [*paths, comparison]]

    first = draw("first")
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(draw, ("second", "third"))) == [first, first]


def test_pyplot_stays_out() -> None:
    sources = Path(report.__file__).parent.glob("*.py")
    imports = [line for source in sources for line in source.read_text().splitlines() if "import" in line]
    assert imports
    assert not [line for line in imports if "pyplot" in line]
