"""Checkpoints into one, by a merge that works piece by piece."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.files import write_text
from fedfuse.core.plain_json import dumps
from fedfuse.core.randomness import Key
from fedfuse.core.tensor_files import Like, write_pieces
from fedfuse.core.version import __version__
from fedfuse.core.weights import shares
from fedfuse.fusing.merging.checkpoint import INDEX, ONE, Checkpoint
from fedfuse.fusing.merging.file_stacks import FileStacks, Merging
from fedfuse.fusing.merging.same_shape import require_same_shape
from fedfuse.fusing.merging.workplace import working
from fedfuse.parts.merge import Merge, PiecewiseMerge, Soup
from fedfuse.runtime.pool import Progress, silence

SHARD = 5 * 10**9
"""Bytes of a file of several."""

Plan = Mapping[str, Mapping[str, Like]]
"""The files of the result, and what is in each."""


@dataclass(frozen=True)
class MergedFiles:
    """What was made of what: the hashes of files by their names; of the inputs, those of the base come last."""

    path: Path
    files: Mapping[str, str]
    inputs: Sequence[Mapping[str, str]]


def merge_files(
    models: Sequence[str | Path],
    out: str | Path,
    merge: Merge,
    *,
    base: str | Path | None = None,
    examples: Sequence[int] | None = None,
    seed: int = 0,
    shard_bytes: int = SHARD,
    progress: Progress = silence,
) -> MergedFiles:
    """Merge safetensors files, indices of several, or folders with either; ``base`` is what they were trained from.

    ``out`` is a file if it ends in .safetensors, else a folder with as many files as are needed. No more is in memory
    than a piece of one tensor of each model. ``examples`` say how much models count where the merge asks for that.
    A merge that was interrupted goes on where it was.
    """
    piecewise = _usable(merge, models, base, examples)
    checkpoints = [Checkpoint.at(Path(model)) for model in models]
    start = [Checkpoint.at(Path(base))] if base is not None else []
    require_same_shape([*checkpoints, *start])
    counts = shares(piecewise.coefficients(examples or [1] * len(models)))
    inputs = [checkpoint.sha256 for checkpoint in (*checkpoints, *start)]
    target, is_file = Path(out), Path(out).suffix == ".safetensors"
    plan = _plan(checkpoints[0], None if is_file else shard_bytes)
    with working(target, _identity(piecewise, counts, inputs, len(start), seed, plan)) as place:
        stacks = FileStacks(checkpoints, start[0] if piecewise.counts_from_base else None, Key(seed).child("merge"))
        survey = {} if plan.keys() <= place.files.keys() else piecewise.survey(stacks)
        merging = Merging(stacks, piecewise, counts, survey)
        for done, (name, tensors) in enumerate(plan.items()):
            progress("files", done, len(plan))
            place.write(name, partial(write_pieces, tensors=tensors, pieces=merging.pieces))
        if len(plan) > 1:
            place.write(INDEX, partial(write_text, text=_index(plan)))
        progress("files", len(plan), len(plan))
        place.finish(target, ONE if is_file else None)
        return MergedFiles(target, place.files, inputs)


def _usable(
    merge: Merge, models: Sequence[str | Path], base: str | Path | None, examples: Sequence[int] | None
) -> PiecewiseMerge:
    if not isinstance(merge, PiecewiseMerge) or (isinstance(merge, Soup) and merge.form == "greedy"):
        raise ConfigError(
            f"merge {merge.kind} asks for more than files: inputs, labels or layers; with files alone there are soup "
            "(form: uniform), task_arithmetic, ties and dare"
        )
    if not models:
        raise ConfigError("there are no models to merge")
    if merge.counts_from_base and base is None:
        raise ConfigError(f"merge {merge.kind} counts from the model that all were trained from; say which is the base")
    if examples is None and merge.coefficients([1, 2]) != merge.coefficients([1, 1]):
        raise ConfigError(f"merge {merge.kind} weighs models by their examples; say how many each was trained on")
    if examples is not None and (len(examples) != len(models) or min(examples) < 1):
        raise ConfigError(f"{len(models)} models need as many positive numbers of examples")
    return merge


def _identity(
    merge: PiecewiseMerge,
    counts: Sequence[float],
    inputs: Sequence[Mapping[str, str]],
    bases: int,
    seed: int,
    plan: Plan,
) -> str:
    """Two merges with the same one write the same bytes, file by file."""
    about = {
        "merge": merge.model_dump(mode="json"),
        "shares": list(counts),
        "inputs": [dict(files) for files in inputs],
        "bases": bases,
        "seed": seed,
        "plan": {file: list(tensors) for file, tensors in plan.items()},
        "versions": [__version__, torch.__version__],
    }
    return hashlib.sha256(dumps(about).encode()).hexdigest()


def _plan(like: Checkpoint, shard_bytes: int | None) -> Plan:
    groups: list[dict[str, Like]] = [{}]
    size = 0
    for name, held in like.tensors.items():
        size += held.like.nbytes
        if shard_bytes is not None and groups[-1] and size > shard_bytes:
            groups.append({})
            size = held.like.nbytes
        groups[-1][name] = held.like
    if len(groups) == 1:
        return {ONE: groups[0]}
    return {f"model-{place:05}-of-{len(groups):05}.safetensors": group for place, group in enumerate(groups, start=1)}


def _index(plan: Plan) -> str:
    """As Hugging Face has it."""
    named = {tensor: file for file, group in plan.items() for tensor in group}
    total = sum(like.nbytes for group in plan.values() for like in group.values())
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(named.items()))}
    return json.dumps(index, indent=2) + "\n"
