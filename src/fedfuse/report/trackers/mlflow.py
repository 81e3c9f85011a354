"""MLflow: runs of an experiment in a tracking store, a local file or a server."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from fedfuse.report.trackers.base import Ending, Session, TrackedRun, Tracker

TAG = "fedfuse.run"
"""By which a run is found again."""
AT_ONCE = 100
"""Parameters that MLflow takes in one call."""
ENDINGS = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}


class Mlflow(Tracker):
    """Runs in an MLflow store: parameters, curves, a summary, pictures."""

    package: ClassVar[str] = "mlflow"
    kind: Literal["mlflow"] = "mlflow"
    uri: str | None = Field(None, description="the store; if not given, what MLFLOW_TRACKING_URI or MLflow itself says")
    experiment: str = Field("fedfuse", description="the MLflow experiment that runs are put into")

    def open(self, run: TrackedRun) -> Session:
        from mlflow.tracking import MlflowClient

        client = MlflowClient(self.uri)
        found = client.get_experiment_by_name(self.experiment)
        experiment = client.create_experiment(self.experiment) if found is None else found.experiment_id
        return _Session(client, experiment, run)


class _Session(Session):
    def __init__(self, client: Any, experiment: str, run: TrackedRun) -> None:
        self.client, self.run = client, run
        found = client.search_runs([experiment], f"tags.`{TAG}` = '{run.id}'", max_results=1)
        self._last = 0
        if found:
            self.id = found[0].info.run_id
            self._last = self._round_there()
            client.update_run(self.id, status="RUNNING")
            return
        tags = {TAG: run.id, "mlflow.runName": run.name, **({"fedfuse.group": run.group} if run.group else {})}
        self.id = client.create_run(experiment, run_name=run.name, tags=tags).info.run_id
        self._log_parameters()

    @property
    def last_round(self) -> int:
        return self._last

    def numbers(self, number: int, values: Mapping[str, float]) -> None:
        self._log(values, number)

    def mishap(self, number: int, sentence: str) -> None:
        self.client.log_text(self.id, f"{sentence}\n", f"mishaps/round-{number:06}.txt")

    def finish(self, ending: Ending, summary: Mapping[str, float], files: Sequence[Path]) -> None:
        self._log({f"summary/{name}": value for name, value in summary.items()}, int(summary.get("rounds", 0)))
        for path in files:
            self.client.log_artifact(self.id, str(path), path.parent.name)
        self.client.set_terminated(self.id, ENDINGS[ending])

    def _log(self, values: Mapping[str, float], step: int) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self.client.log_batch(self.id, [Metric(name, value, now, step) for name, value in values.items()])

    def _log_parameters(self) -> None:
        from mlflow.entities import Param

        params = [Param(key, str(value)) for key, value in self.run.parameters.items()]
        for first in range(0, len(params), AT_ONCE):
            self.client.log_batch(self.id, params=params[first : first + AT_ONCE])

    def _round_there(self) -> int:
        """The last one that is there as a whole; a round goes in by one call."""
        history = self.client.get_metric_history(self.id, "round/seconds")
        return max((point.step for point in history), default=0)
