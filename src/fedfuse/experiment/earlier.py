"""The run that a folder holds already, beside the experiment that wants the folder: is it this very run?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedfuse.core.errors import ConfigError, RunFolderError
from fedfuse.core.origin import origin
from fedfuse.experiment.choices import as_begun
from fedfuse.experiment.config import ExperimentConfig, Raw, read_yaml, validate
from fedfuse.experiment.longer import Length
from fedfuse.experiment.provenance import beginning
from fedfuse.experiment.stored import check_models, load_run
from fedfuse.federation.checkpoint import Saved, load_checkpoint
from fedfuse.federation.events import read_events
from fedfuse.federation.folder import RunFolder

ELSEWHERE = "choose another --out, or replace it with --overwrite"


def other_experiment(config: ExperimentConfig, folder: RunFolder) -> str | None:
    """Where the run's config differs from this one, in words; None if it does not."""
    try:
        earlier = validate(read_yaml(folder.config), str(folder.config))
    except ConfigError as error:
        return f"holds an experiment that this version cannot read ({error}); {ELSEWHERE}"
    config = as_begun(config, earlier)
    length = Length(earlier, config)
    if length.differs:
        reason = length.reason_against(folder)
        return f"{reason}; {ELSEWHERE}" if reason else _other_code(config, folder)
    if earlier.sha256() != config.sha256():
        key, before, now = _first_difference(earlier.course(), config.course())
        return f"holds another experiment: {key} is {before} there and {now} here; {ELSEWHERE}"
    return _other_code(config, folder)


def is_this_very(config: ExperimentConfig, folder: RunFolder) -> bool:
    """Whether the run in a folder is this experiment's, with as many rounds."""
    return other_experiment(config, folder) is None and not length_of(config, folder).differs


def length_of(config: ExperimentConfig, folder: RunFolder) -> Length:
    """The run in a folder as it was begun, and as it is wanted now."""
    earlier = validate(read_yaml(folder.config))
    return Length(earlier, as_begun(config, earlier))


def continued(config: ExperimentConfig, folder: RunFolder) -> ExperimentConfig:
    """The experiment as the run in a folder began it, with what that run chose by itself."""
    return length_of(config, folder).wanted if folder.holds_a_run() else config


def last_checkpoint(config: ExperimentConfig, folder: RunFolder) -> Saved | None:
    """From where the run in a folder goes on; None if it never came to a checkpoint."""
    length = length_of(config, folder) if folder.holds_a_run() else Length(config, config)
    if length.differs:
        saved = length.checkpoint(folder)
    else:
        saved = load_checkpoint(folder.checkpoints, config.of_checkpoints, folder.events)
    if saved is None and _had_checkpoints(config, folder):
        raise refusal(
            folder, f"holds a run, but its checkpoints are gone ({folder.checkpoints}); bring them back, {ELSEWHERE}"
        )
    return saved


def _had_checkpoints(config: ExperimentConfig, folder: RunFolder) -> bool:
    """Whether a round was begun after one that has a checkpoint in any case, or there are models already."""
    every = config.federation.checkpoint_every
    first = 1 if every == "auto" else every
    begun = sum(event["event"] == "round_started" for event in read_events(folder.events))
    return begun > first or any(folder.models())


def unusable(config: ExperimentConfig, folder: RunFolder) -> str | None:
    """Why the run in a folder is not this experiment's, or cannot be read or gone on with; None if it can."""
    try:
        if reason := other_experiment(config, folder):
            return reason
        if folder.is_complete() and not length_of(config, folder).differs:
            check_models(folder, load_run(folder.path).summary)
        else:
            last_checkpoint(continued(config, folder), folder)
    except RunFolderError as error:
        return f"cannot be gone on with: {error}"
    return None


def other_rounds(rounds: int, folder: RunFolder) -> int | None:
    """How many rounds the run was last gone on with to have, if that was another number."""
    before = [start.get("rounds") for start in _starts(folder)][-1:]
    return before[0] if before and before[0] != rounds and isinstance(before[0], int) else None


def other_versions(folder: RunFolder) -> dict[str, tuple[str, str]]:
    """The versions of fedfuse and torch that the run was last gone on with, and the present ones, where they differ."""
    starts, now = _starts(folder), origin().to_json()
    before = starts[-1].get("origin") if starts else None
    if not isinstance(before, dict):
        return {}
    changed = (what for what in ("fedfuse", "torch") if before.get(what) != now[what])
    return {what: (str(before.get(what)), str(now[what])) for what in changed}


def _other_code(config: ExperimentConfig, folder: RunFolder) -> str | None:
    """Whose source is no longer what it was when the run began; None if all of it is."""
    before = beginning(folder).get("code", {})
    changed = [address for address, now in config.foreign_code.items() if before.get(address, now) != now]
    return f"was begun with other code behind {changed[0]}; bring it back, {ELSEWHERE}" if changed else None


def other_data(facts: Mapping[str, Any], folder: RunFolder) -> str | None:
    """Which examples or distillation inputs are no longer those that the run began with; None if all are."""
    began = beginning(folder)
    for what, name in (("data", "the data"), ("source", "the distillation inputs"), ("clock", "the device trace")):
        before, now = began.get(what) or {}, facts.get(what) or {}
        if "sha256" in before and before["sha256"] != now["sha256"]:
            return f"was begun with other contents of {name} ({now['name']}); bring them back, {ELSEWHERE}"
    return None


def as_long_as_begun(config: ExperimentConfig, folder: RunFolder) -> ExperimentConfig:
    """The experiment with as many rounds as the run in a folder was first to have: so it has one name for ever."""
    rounds = beginning(folder).get("rounds") if folder.holds_a_run() else None
    if type(rounds) is not int or rounds < 1:
        return config
    return config.model_copy(update={"federation": config.federation.model_copy(update={"rounds": rounds})})


def has_other_origin(folder: RunFolder) -> bool:
    """Whether any part of the run was made by another version, with another torch or on another kind of machine."""
    return any(start.get("origin") != origin().to_json() for start in _starts(folder))


def _starts(folder: RunFolder) -> list[dict[str, Any]]:
    """How the run was begun, and gone on with."""
    return [event for event in read_events(folder.events) if event["event"] in ("run_started", "run_resumed")]


def refusal(folder: RunFolder, reason: str) -> RunFolderError:
    """The sentence for a folder that is not replaced unasked."""
    return RunFolderError(f"{folder.path} {reason}")


def _first_difference(before: Raw, now: Raw, prefix: str = "") -> tuple[str, Any, Any]:
    for key in sorted(before.keys() | now.keys()):
        one, other = before.get(key), now.get(key)
        if one != other:
            if isinstance(one, dict) and isinstance(other, dict):
                return _first_difference(one, other, f"{prefix}{key}.")
            return f"{prefix}{key}", one, other
    raise AssertionError("called for different configs only")
