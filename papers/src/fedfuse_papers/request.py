"""One table or figure as it is asked for: run what is not finished, and put theirs and ours side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from rich.markup import escape

from fedfuse import ConfigError, DataError, Experiment, check_data, run_all
from fedfuse.plugins import batch_progress, console, print_facts, unknown, write_text
from fedfuse_papers.cells import Cell, cells_of
from fedfuse_papers.entries import claims_of, load_entry
from fedfuse_papers.entry import SCALES, Entry, ScaleName
from fedfuse_papers.ledger import ledger
from fedfuse_papers.output import csv_text, markdown
from fedfuse_papers.pictures import draw_entry
from fedfuse_papers.store import Store, is_finished
from fedfuse_papers.terminal import cell_table, claim_text


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
            cell.experiment(0)  # refuses an impossible one
        return Request(name, entry, size, chosen, seeds or list(range(entry.scales[size].seeds)), store)

    def run(self, jobs: int) -> None:
        """Whatever is not finished yet."""
        runs = self.store.runs(self.cells, self.seeds)
        open_runs = {folder: run for folder, run in runs.items() if not is_finished(folder)}
        console.print(self.entry.title, highlight=False)
        console.print(f"runs: {len(runs)}, finished: {len(runs) - len(open_runs)}", highlight=False)
        if open_runs:
            _check_data(open_runs.values(), self.scale)
            with batch_progress(console, jobs) as progress:
                run_all(open_runs, jobs=jobs, progress=progress)

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


def _check_data(experiments: Iterable[Experiment], scale: ScaleName) -> None:
    """Refuse now what would fail hours later, and numbers beside the printed ones from a part of the paper's data."""
    try:
        check_data(experiments, whole=scale == "paper")
    except DataError as error:
        raise DataError(f"{error}; or leave out the cells that need it with --cells") from None


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
