"""What ``fedfuse reproduce`` does: the list of tables and figures, one of them run, theirs and ours side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from rich.markup import escape
from rich.padding import Padding

from fedfuse.cli.batch import batch_progress
from fedfuse.cli.console import console, print_facts
from fedfuse.cli.ledger import cell_table, claim_text
from fedfuse.core.errors import ConfigError, DataError, unknown
from fedfuse.core.files import write_text
from fedfuse.core.randomness import Key
from fedfuse.data import CATALOGUE, load
from fedfuse.data.hub_files import offline
from fedfuse.data.lookup import at_hand, how_to_get
from fedfuse.experiment.comparison import finished_runs
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.reproduce import (
    PAPERS,
    SCALES,
    Cell,
    Entry,
    ScaleName,
    Store,
    cells_of,
    claims_of,
    ledger,
    load_entry,
    names,
)
from fedfuse.reproduce.cells import data_of
from fedfuse.reproduce.cost import Speed, is_countable, speed_here, total
from fedfuse.reproduce.output import csv_text, markdown
from fedfuse.reproduce.pages import write_pages
from fedfuse.reproduce.pictures import draw_entry
from fedfuse.reproduce.store import finished_cells


@dataclass(frozen=True)
class Request:
    """What was asked for, checked before anything runs."""

    name: str
    entry: Entry
    scale: ScaleName
    cells: list[Cell]
    seeds: list[int]
    store: Store

    @staticmethod
    def of(name: str, scale: str, cells: Sequence[str], seeds: list[int] | None, store: Store) -> Request:
        size = _scale(scale)
        entry = load_entry(name)
        chosen = cells_of(name, entry, size, dict(map(_choice, cells)))
        for cell in chosen:
            cell.config(0)  # refuses an impossible one
        return Request(name, entry, size, chosen, seeds or list(range(entry.scales[size].seeds)), store)

    def run(self, jobs: int) -> None:
        """Whatever is not finished yet."""
        runs = self.store.runs(self.cells, self.seeds)
        open_runs = [run for run in runs if not run.folder.is_complete()]
        console.print(self.entry.title, highlight=False)
        console.print(f"runs: {len(runs)}, finished: {len(runs) - len(open_runs)}", highlight=False)
        if open_runs:
            configs = [run.experiment.config for run in open_runs]
            _check_data(configs)
            if self.scale == "paper":
                _check_whole(configs)
            with batch_progress(console, jobs) as progress:
                for _ in finished_runs(open_runs, jobs, progress):
                    pass

    def report(self) -> None:
        """Print the tables and write them, with every cell of the entry that is finished."""
        name, entry, scale, store = self.name, self.entry, self.scale, self.store
        last = store.last(name, scale)
        seeds = sorted({*self.seeds, *(last["seeds"] if last else ())})
        everything = [cell for cell in cells_of(name, entry, scale) if cell.is_possible]
        result = ledger(name, entry, claims_of(name), everything, scale, seeds, store)
        shown = ledger(name, entry, claims_of(name), self.cells, scale, seeds, store)
        if not any(row.values for row in shown.rows):
            raise ConfigError(f"no run of these cells of {name} is finished at scale {scale}; leave out --show to run")
        console.print(cell_table(shown))
        for sentence in shown.cautions:
            console.print(f"[yellow]{escape(sentence)}[/]\n", highlight=False)
        if shown.verdicts:
            console.print(*claim_text(shown), sep="\n", highlight=False)
        result.save(store)
        write_text(store.table(name, scale, ".md"), markdown(result))
        write_text(store.table(name, scale, ".csv"), csv_text(result))
        print_facts(table=store.table(name, scale, ".md"), csv=store.table(name, scale, ".csv"))
        if draw_entry(store.table(name, scale, ".png"), entry, self.cells, seeds, store):
            print_facts(picture=store.table(name, scale, ".png"))


def write_all(store: Store, folder: Path) -> None:
    """Every result so far as Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    print_facts(pages=f"{len(write_pages(store, folder))} in {folder}")


def list_entries(store: Store) -> None:
    """Every table and figure: what it needs, how long it would take here, what was found last."""
    speed = speed_here(store)
    for paper, citation in PAPERS.items():
        console.print(f"\n[bold]{escape(citation)}[/]", highlight=False)
        for name in names():
            if name.startswith(f"{paper}/"):
                entry = load_entry(name)
                times = ", ".join(f"{scale} {_time(name, entry, scale, speed)}" for scale in get_args(ScaleName))
                console.print(f"[bold]{name}[/]  {escape(entry.title.partition(', ')[2])}", highlight=False)
                facts = f"needs {_needs(name, entry)}; takes {times}; {_state(name, store)}"
                console.print(Padding(escape(facts), (0, 0, 0, 4)), style="dim", highlight=False)
    console.print(
        "\nTimes are orders of magnitude for one process on this machine. A dataset in brackets is not at hand, of "
        "one marked (part) less than the whole. "
        "fedfuse reproduce ENTRY --scale small runs one; --show prints its last result.",
        highlight=False,
    )


def duration(seconds: float) -> str:
    """A rough time in words."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.2g} {unit}" if seconds < 10 * length else f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"


def _check_data(configs: Sequence[ExperimentConfig]) -> None:
    """Refuse now what would fail hours later: a dataset that is neither here nor to be fetched."""
    for name in dict.fromkeys(settings.name for config in configs for settings in data_of(config)):
        card = CATALOGUE.get(name)
        if card and at_hand(card) == "no" and (card.hub is None or offline()):
            raise DataError(f"{how_to_get(card)}; or leave out the cells that need it with --cells")


def _check_whole(configs: Sequence[ExperimentConfig]) -> None:
    """Refuse to put numbers beside the printed ones that were made with a part of the paper's data."""
    settings = {one.model_dump_json(): one for config in configs for one in data_of(config)}
    for one in settings.values():
        if (sentence := load(one, Key(0)).incomplete) is not None:
            raise DataError(f"{sentence}; complete the files, or leave out the cells that need them with --cells")


def _scale(word: str) -> ScaleName:
    for name in get_args(ScaleName):
        if name == word:
            return name  # type: ignore[no-any-return]
    raise ConfigError(f"--scale: {unknown('scale', word, SCALES)}")


def _choice(text: str) -> tuple[str, list[str]]:
    axis, equals, labels = text.partition("=")
    if not equals or not labels:
        raise ConfigError(f"--cells {text}: write AXIS=LABEL,LABEL, for example method=FedAvg,FedDF")
    return axis, [label.strip() for label in labels.split(",")]


def _time(name: str, entry: Entry, scale: ScaleName, speed: Speed) -> str:
    cells = cells_of(name, entry, scale)
    if not all(cell.is_possible and is_countable(cell.config(0)) for cell in cells):
        return "-"
    work = total([cell.config(0) for cell in cells])
    return duration(entry.scales[scale].seeds * work.seconds(speed))


def _needs(name: str, entry: Entry) -> str:
    sets = dict.fromkeys(
        data["name"]
        for cell in cells_of(name, entry, "paper")
        for data in (cell.raw["data"], cell.raw.get("source", {}).get("data"))
        if data
    )
    return ", ".join(_at_hand(one) for one in sets)


def _at_hand(dataset: str) -> str:
    return {"no": f"({dataset})", "part": f"{dataset} (part)", "yes": dataset}[at_hand(CATALOGUE[dataset])]


def _state(name: str, store: Store) -> str:
    states = []
    for scale in SCALES:
        last = store.last(name, scale)
        if last is not None:
            states.append(f"{scale} {finished_cells(last)}/{len(last['rows'])}")
    return f"last result: {', '.join(states)} cells" if states else "not run yet"
