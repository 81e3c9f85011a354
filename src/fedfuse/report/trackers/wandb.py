"""Weights & Biases. Without a network, ``mode: offline`` writes what ``wandb sync`` hands over later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from fedfuse.report.trackers.base import Ending, Session, TrackedRun, Tracker


class WeightsAndBiases(Tracker):
    """Runs of a project of Weights & Biases."""

    package: ClassVar[str] = "wandb"
    kind: Literal["wandb"] = "wandb"
    project: str = Field("fedfuse", description="the project that runs are put into")
    entity: str | None = Field(None, description="the team or user; if not given, the one that is logged in")
    mode: Literal["online", "offline"] | None = Field(None, description="if not given, what WANDB_MODE says, or online")

    def open(self, run: TrackedRun) -> Session:
        import wandb

        opened = wandb.init(
            project=self.project,
            entity=self.entity,
            mode=self.mode,
            id=run.id,
            name=run.name,
            group=run.group,
            config=dict(run.parameters),
            dir=str(run.folder),
            resume="allow",
            settings=wandb.Settings(console="off", silent=True),
        )
        return _Session(opened, wandb.Image)


class _Session(Session):
    def __init__(self, run: Any, image: Any) -> None:
        self.run, self.image = run, image

    @property
    def last_round(self) -> int | None:
        """Steps that are there are refused by W&B itself; offline nobody knows them."""
        return max(0, int(self.run.step) - 1) if self.run.resumed else None

    def numbers(self, number: int, values: Mapping[str, float]) -> None:
        self.run.log(dict(values), step=number)

    def mishap(self, number: int, sentence: str) -> None:
        self.run.alert(title=f"round {number}", text=sentence)

    def finish(self, ending: Ending, summary: Mapping[str, float], files: Sequence[Path]) -> None:
        self.run.summary.update({f"summary/{name}": value for name, value in summary.items()})
        pictures = {f"pictures/{path.stem}": self.image(str(path)) for path in files if path.suffix == ".png"}
        if pictures:
            self.run.log(pictures, step=int(summary.get("rounds", 0)))
        for path in (path for path in files if path.suffix != ".png"):
            self.run.save(str(path), base_path=str(path.parents[1]), policy="now")
        self.run.finish(exit_code=int(ending == "failed"))
