"""What a run came to: its numbers, its models, and where they lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedfuse.core.errors import ConfigError, RunFolderError, unknown
from fedfuse.core.views import Spent
from fedfuse.data import PartitionReport
from fedfuse.experiment.assembly import cautions, notes
from fedfuse.experiment.frames import frame_of
from fedfuse.experiment.model_files import Which, client_model_file, model_file
from fedfuse.experiment.provenance import Provenance, starts
from fedfuse.experiment.sheets import percent, summary_sheet
from fedfuse.experiment.shown import ShownPartition, accuracies, bars, curve_figure
from fedfuse.federation import RoundRecord
from fedfuse.federation.folder import RunFolder
from fedfuse.models import Classifier
from fedfuse.models.saved import load_model

if TYPE_CHECKING:
    from fedfuse.experiment.looking.comparison import Comparison


@dataclass(frozen=True, repr=False)
class RunResult:
    """A run, as far as it is finished."""

    folder: RunFolder
    summary: dict[str, Any]
    history: tuple[RoundRecord, ...]
    is_finished: bool = True
    stopped: str = field(default="", compare=False)
    """Why it is not finished, if a listener stopped it."""
    runs_own_code: bool = field(default=False, compare=False)
    """Whether this process made the run, and so has called whatever builds its models already."""

    @property
    def accuracy(self) -> dict[str, float]:
        """Test accuracy after the last round, by prototype."""
        return {name: values["accuracy_last"] for name, values in self.summary["prototypes"].items()}

    @property
    def notes(self) -> list[str]:
        """What was done with the data that nobody had asked for, a line each."""
        return notes(self.summary)

    @property
    def epsilon(self) -> float | None:
        """What the client has given away that gave most; None if no privacy is promised, or there is no bound.

        ``summary["privacy"]`` has everybody's.
        """
        last = self.history[-1].privacy if self.history else None
        return last.epsilon if last else None

    @property
    def cautions(self) -> list[str]:
        """What a reader of its numbers should know about its data, in sentences."""
        return cautions(self.summary)

    @property
    def partition(self) -> PartitionReport:
        """Who had which examples."""
        return ShownPartition.load(self.folder.partition)

    @property
    def provenance(self) -> list[Provenance]:
        """When, with which code and where it was begun and gone on with."""
        return list(starts(self.folder))

    def model(self, prototype: str | None = None, trust_own_code: bool = False, *, which: Which = "last") -> Classifier:
        """The final model of a prototype, ready for inference; the only one if there is one.

        ``which`` is the ``last`` round's or the ``best`` one's, where ``evaluation.keep_best`` has kept that.

        Of a run that another process made, a network of one's own (``arch: own``) is rebuilt only with
        ``trust_own_code``: its file names a function, which is imported and called.
        """
        prototypes = self.summary["prototypes"]
        name = prototype or next(iter(prototypes))
        if name not in prototypes:
            raise ConfigError(unknown("model", name, prototypes))
        if not self.is_finished:
            raise RunFolderError(f"the run in {self.folder.path} has no final model yet; resume it")
        file = model_file(self.folder, f"{name}.safetensors", which)
        return load_model(file, trust_own_code or self.runs_own_code)

    def client_model(
        self, client: int, trust_own_code: bool = False, *, round: int | None = None, which: Which = "last"
    ) -> Classifier:
        """A client's own model: its final one, where a method leaves none on the server, or that of a ``round``.

        Models of single rounds are there where ``federation.keep_clients`` has kept them.
        """
        file = client_model_file(self.folder, client, round, which)
        return load_model(file, trust_own_code or self.runs_own_code)

    def describe(self, width: int = 80) -> str:
        """All there is to see of the run in words, as ``fedfuse show`` prints it."""
        return self._looked_at().describe(width)

    def plot(self, path: str | Path, x: Spent = "rounds", y: str = "accuracy", **options: Any) -> Path:
        """Write a picture of the run as it lies in its folder; ``options`` are those of ``Comparison.plot``."""
        return self._looked_at().plot(path, x, y, **options)

    def report(self, path: str | Path, *, title: str | None = None) -> Path:
        """Write a page of HTML about the run, which opens without a network."""
        return self._looked_at().report(path, title=title)

    def _looked_at(self) -> Comparison:
        from fedfuse.experiment.looking.gathering import load_runs

        return load_runs(self.folder.path)

    def records(self) -> list[dict[str, Any]]:
        """The history as plain rows, one for every round and model."""
        return [row for record in self.history for row in _rows(record.to_json())]

    def to_frame(self) -> Any:
        """The history as a pandas data frame."""
        return frame_of(self.records())

    def __repr__(self) -> str:
        about, state = self.summary, "" if self.is_finished else f"{self._unfinished}, "
        curves = {name: bars([value for _, value in points]) for name, points in accuracies(self.history).items()}
        models = ", ".join(f"{name} {curves.get(name, '')}{percent(own)}" for name, own in self.accuracy.items())
        return (
            f"RunResult({about['name']} {about['method']} seed {about['seed']}: {models}, {state}"
            f"{about['rounds']} rounds, {about['seconds']:.1f} s, {self.folder.path})"
        )

    @property
    def _unfinished(self) -> str:
        return f"stopped ({self.stopped})" if self.stopped else "unfinished"

    def _repr_html_(self) -> str:
        state = "" if self.is_finished else f"{escape(self._unfinished)}, {self.summary['rounds']} rounds so far, "
        curve = curve_figure(self.history, self.summary["target_accuracy"])
        return f"{summary_sheet(self.summary).html()}{curve}<p>{state}{escape(str(self.folder.path))}</p>"


def _rows(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A round's rows: of each model its own numbers, and beside them those of the whole round."""
    record = {"absent": (), "late": (), **record}
    whole = _flat(
        {key: value for key, value in record.items() if key in ("clock", "privacy") or not isinstance(value, Mapping)}
    )
    for name, values in record["prototypes"].items():
        yield {"round": whole["round"], "model": name, **_flat(values), **whole}


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers as they are, of lists the lengths, of mappings each number."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}_{name}": number for name, number in _flat(value).items()}
        else:
            flat[key] = len(value) if isinstance(value, tuple) else value
    return flat
