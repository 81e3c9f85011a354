"""``fedfuse reproduce``: the list, one table, and the sentences for what cannot be."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from fedfuse_papers.entries import names
from fedfuse_papers.listing import duration
from tests.cli.test_cli import InProcess
from tests.cli.test_cli import in_process as in_process

pytestmark = pytest.mark.usefixtures("without_pictures")
SMALLEST = ("reproduce", "feddf/table8", "--out", "out", "--cells", "method=FedAvg", "--cells", "local_scheme=SGD")


def test_a_table_is_run_once_and_shown_again(in_process: InProcess, tmp_path: Path) -> None:
    first = in_process(*SMALLEST)
    assert first.returncode == 0
    assert "runs: 1, finished: 0" in first.stdout
    assert "72.73" in first.stdout
    again = in_process(*SMALLEST, "--seeds", "0,1")
    assert "runs: 2, finished: 1" in again.stdout
    shown = in_process(*SMALLEST, "--show")
    assert "runs:" not in shown.stdout
    rows = list(csv.DictReader((tmp_path / "out" / "tables" / "feddf-table8-smoke.csv").open()))
    assert [row["seeds"] for row in rows] == ["0", "0", "2", "0"]
    record = json.loads((tmp_path / "out" / "tables" / "feddf-table8-smoke.json").read_text())
    assert record["seeds"] == [0, 1]
    assert (tmp_path / "out" / "tables" / "feddf-table8-smoke.md").read_text().startswith("## FedDF, table 8")


def test_all_results_as_pages(in_process: InProcess, tmp_path: Path) -> None:
    in_process("reproduce", "feddf/figure1", "--out", "out", "--scale", "small", "--seeds", "0")
    done = in_process("reproduce", "--out", "out", "--pages", "pages")
    assert done.stdout.split() == ["pages", "2", "in", "pages"]
    run = next((tmp_path / "out" / "runs").iterdir()).name
    page = (tmp_path / "pages" / "feddf-figure1.md").read_text()
    assert f"`{run[:8]}`" in page
    assert "fedfuse reproduce feddf/figure1 --scale small --seeds 0" in page


def test_the_list_names_every_entry_with_its_needs_times_and_state(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FEDFUSE_DATA", raising=False)
    monkeypatch.setattr("fedfuse.plugins.console.width", 300)
    monkeypatch.setattr("fedfuse_papers.listing.names", lambda: ["feddf/figure3", "feddf/table8"])
    in_process(*SMALLEST)
    listed = in_process("reproduce", "--out", "out").stdout
    assert "feddf/table8" in listed
    assert "(ag_news)" in listed
    assert "last result: smoke 1/4 cells" in listed
    assert "not run yet" in listed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("feddf/table9",), "unknown table or figure 'feddf/table9'"),
        (("feddf/table8", "--scale", "tiny"), "--scale: unknown scale 'tiny'"),
        (("feddf/table8", "--cells", "method"), "--cells method: write AXIS=LABEL,LABEL"),
        (("feddf/table8", "--cells", "method=FedX"), "--cells: unknown method 'FedX'"),
        (("feddf/table8", "--seeds", "a"), "--seeds a: write whole numbers"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(
    in_process: InProcess, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    result = in_process("reproduce", *arguments)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert not (tmp_path / "reproduction").exists()


def test_a_dataset_that_cannot_be_had_is_refused_before_the_first_run(
    in_process: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("FEDFUSE_DATA", str(tmp_path))
    monkeypatch.setattr("fedfuse_papers.request.run_all", pytest.fail)
    result = in_process("reproduce", "feddf/table8", "--scale", "paper")
    assert result.returncode == 2
    assert "CIFAR-10" in result.stderr
    assert "leave out the cells that need it with --cells" in result.stderr


@pytest.fixture
def part_of_cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten images of each split that are called CIFAR-10."""
    for part in ("train", "test"):
        rows = [bytes([label]) + bytes(3 * 32 * 32) for label in range(10)]
        file = "data_batch_1.bin" if part == "train" else "test_batch.bin"
        (tmp_path / "cifar-10-batches-bin").mkdir(exist_ok=True)
        (tmp_path / "cifar-10-batches-bin" / file).write_bytes(b"".join(rows))
    monkeypatch.setenv("FEDFUSE_DATA", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.usefixtures("part_of_cifar")
def test_scale_paper_refuses_a_part_of_a_dataset(in_process: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedfuse_papers.request.run_all", pytest.fail)
    result = in_process("reproduce", "feddf/table8", "--scale", "paper", "--cells", "method=FedAvg")
    assert result.returncode == 2
    assert "CIFAR-10 has 50,000 training and 10,000 test examples, but 10 training and 10 test" in result.stderr
    assert "leave out the cells that need it with --cells" in result.stderr


@pytest.mark.usefixtures("part_of_cifar")
def test_a_part_is_said_by_the_lists_and_by_every_run_of_it(in_process: InProcess, tmp_path: Path) -> None:
    card = " ".join(in_process("datasets", "cifar10").stdout.split())
    assert "at hand a part, in" in card
    assert "but 10 training and 10 test examples lie in data_batch_1.bin, test_batch.bin" in card
    (tmp_path / "e.yaml").write_text(
        "{data: {name: cifar10, validation: 0}, partition: {kind: iid, clients: 2}, models: {m: {arch: cnn1}},"
        " federation: {rounds: 1}}"
    )
    said = "CIFAR-10 has 50,000 training and 10,000 test examples, but 10 training"
    assert in_process("run", "e.yaml", "--out", "one").stdout.count(said) == 1
    compared = in_process("compare", "e.yaml", "--methods", "fedavg,fedprox", "--out", "both", "--jobs", "2")
    assert compared.stdout.count(said) == 1
    assert said in json.loads((tmp_path / "one" / "summary.json").read_text())["data"]["incomplete"]


def test_smoke_says_that_its_numbers_mean_nothing(in_process: InProcess, tmp_path: Path) -> None:
    said = "their numbers mean nothing beside the printed ones"
    assert said in " ".join(in_process(*SMALLEST).stdout.split())
    assert said in (tmp_path / "out" / "tables" / "feddf-table8-smoke.md").read_text()


def test_nothing_is_shown_and_written_where_nothing_was_run(in_process: InProcess, tmp_path: Path) -> None:
    for arguments in (SMALLEST, ("reproduce", "fedgkd/table9", "--scale", "paper", "--out", "out")):
        shown = in_process(*arguments, "--show")
        assert shown.returncode == 2
        assert "is finished at scale" in shown.stderr
        assert not (tmp_path / "out").exists()


def test_ctrl_c_says_how_to_go_on(in_process: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fedfuse_papers.request.run_all", interrupted)
    result = in_process(*SMALLEST)
    assert result.returncode == 2
    assert result.stderr == "fedfuse: interrupted; finished rounds are kept, go on with: the same command\n"


def test_names_are_in_the_order_of_the_papers() -> None:
    assert names()[:3] == ["feddf/table1", "feddf/table2", "feddf/table3"]
    assert names().index("fedbe/table8") < names().index("fedbe/figure1")


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (59, "59 s"), (90, "1.5 min"), (7200, "2 h"), (86400 * 40, "40 d")]
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
