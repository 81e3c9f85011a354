"""TensorBoard: event files in the run's folder. ``tensorboard --logdir runs`` shows every run below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from fedfuse.report.trackers.base import Ending, Session, TrackedRun, Tracker

FILES = "events.out.tfevents.*"


class TensorBoard(Tracker):
    """Event files for TensorBoard, in the run's own folder unless another one is given."""

    package: ClassVar[str] = "tensorboard"
    kind: Literal["tensorboard"] = "tensorboard"
    folder: str | None = Field(None, description="where runs lie, a folder each; if not given, in the run's own")

    def open(self, run: TrackedRun) -> Session:
        folder = run.folder / "tensorboard" if self.folder is None else Path(self.folder) / run.folder.name
        return _Session(folder, run)


class _Session(Session):
    def __init__(self, folder: Path, run: TrackedRun) -> None:
        from torch.utils.tensorboard.summary import hparams
        from torch.utils.tensorboard.writer import SummaryWriter

        if run.resumed_at is None:
            for older in folder.glob(FILES):  # of a run that was overwritten
                older.unlink()
        # What an earlier process wrote of later rounds is shown no more.
        purge = None if run.resumed_at is None else run.resumed_at + 1
        self.writer: Any = SummaryWriter(str(folder), purge_step=purge)
        self.run, self.hparams, self._last = run, hparams, run.resumed_at or 0
        if run.resumed_at is None:
            table = "\n".join(f"    {key}: {value}" for key, value in run.parameters.items())
            self.writer.add_text("experiment", table, 0)

    @property
    def last_round(self) -> int:
        return self._last

    def numbers(self, number: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, number)
        self.writer.flush()

    def mishap(self, number: int, sentence: str) -> None:
        self.writer.add_text("mishaps", sentence, number)

    def finish(self, ending: Ending, summary: Mapping[str, float], files: Sequence[Path]) -> None:
        if ending == "finished":
            metrics = {f"summary/{name}": value for name, value in summary.items()}
            for part in self.hparams(dict(self.run.parameters), metrics):
                self.writer.file_writer.add_summary(part)
            for name, value in metrics.items():
                self.writer.add_scalar(name, value, int(summary["rounds"]))
            for path in files:
                if path.suffix == ".png":
                    self.writer.add_image(f"pictures/{path.stem}", _pixels(path), 0, dataformats="HWC")
        self.writer.close()


def _pixels(path: Path) -> Any:
    import numpy as np
    from PIL import Image

    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))
