"""ONNX, asked through the optional package ``onnxruntime``: only its voice is known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedfuse.core.errors import ConfigError, DataError, MissingExtraError, shortened
from fedfuse.data.readers.bounds import beside, check_is_file
from fedfuse.fusing.members.asking import checked_logits, in_batches
from fedfuse.fusing.members.base import About, Member, Voice
from fedfuse.fusing.members.files import in_brief, sha256_of_files
from fedfuse.fusing.members.inputs import Preparation
from fedfuse.fusing.members.said import Gives, Said
from fedfuse.fusing.members.tensors import common_dtype
from fedfuse.fusing.members.torchscript import RAW, exported, preparation_of
from fedfuse.fusing.raw import Raw, rows_of
from fedfuse.models.export.graph import LOGITS
from fedfuse.runtime.source import prediction_batch

LARGEST = 2_000_000_000
"""Bytes of a graph without its external data: what its format can hold."""
MOST_AT_ONCE = 1024
"""Inputs that a graph may want together; those that are missing are filled up."""
SMALLEST = 1e-30
"""In the place of a probability of 0, which has no logarithm."""
TYPES: Mapping[str, Any] = {
    "tensor(uint8)": np.uint8,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
}
"""What a graph may read."""
CHANNELS = (1, 3)


@dataclass(frozen=True)
class Ends:
    """Where inputs go in, and where the answer comes out."""

    input: str
    dtype: Any
    batch: int | None
    """None: any number of inputs at a time."""
    shape: tuple[int, ...] | None
    channels_last: bool
    output: str
    classes: int | None
    gives: Gives


class OnnxMember(Member):
    """A graph, with tensors beside it perhaps."""

    def __init__(self, path: Path, said: Said) -> None:
        self.path = path
        graph = _read(path)
        session = self._session(1)
        self._ends = ends = _ends(session, graph, path, said.gives)
        ours = exported({one.key: one.value for one in graph.metadata_props}, path)
        if ours is not None:
            self._preparation = ours.preparation(path)
        else:
            self._preparation = _preparation(ends, said, path)
        names = ours.class_names if ours is not None else None
        count = said.class_count or (len(names) if names else ends.classes)
        if count is None:
            raise ConfigError(f"{path} does not say how many classes it knows; give classes=")
        tensors = list(graph.graph.initializer)
        shapes = {str(number): tuple(one.dims) for number, one in enumerate(tensors)}
        self.about = About(
            name=said.name,
            origin=str(path),
            format="ONNX",
            architecture=shortened(graph.graph.name or "graph", 60),
            reads=self._preparation.reads,
            shape=self._preparation.shape,
            classes=count,
            class_names=said.class_names(count, names),
            parameters=sum(math.prod(shapes[str(n)]) for n, one in enumerate(tensors) if one.data_type in _DTYPES),
            dtype=common_dtype(
                {str(n): _DTYPES.get(one.data_type, torch.int64) for n, one in enumerate(tensors)}, shapes
            ),
            sha256=sha256_of_files([path, *_beside(graph, path)]),
            licence=said.licence,
            notes=(*self._preparation.notes, *_doubts(ends, said.gives, ours is not None)),
        )

    @contextmanager
    def speaking(self, device: torch.device) -> Iterator[Voice]:
        """On the CPU, whatever the device: its arithmetic there is the same everywhere."""
        session = self._session(torch.get_num_threads())

        def answer(raw: Raw) -> Tensor:
            values = self._fed(self._preparation(raw, self.about.name))
            try:
                said = session.run([self._ends.output], {self._ends.input: values})[0]
            except Exception as error:  # the package's own errors
                raise ConfigError(f"{self.about.name} cannot answer: {in_brief(error)}") from None
            said = torch.from_numpy(np.asarray(said, dtype=np.float32).reshape(len(values), -1))[: len(raw)]
            logits = checked_logits(said, len(raw), self.about.classes, self.about.name)
            return logits.clamp(min=SMALLEST).log() if self._ends.gives == "probabilities" else logits

        if self._ends.batch is None:
            yield in_batches(answer, self.about.classes, prediction_batch(torch.device("cpu")))
        else:
            yield _in_fixed_batches(answer, self.about.classes, self._ends.batch)

    def _fed(self, values: Tensor) -> NDArray[Any]:
        """As the graph takes them: its type, its order of axes, and its number of rows."""
        ends = self._ends
        if ends.channels_last and values.ndim == 4:
            values = values.permute(0, 2, 3, 1)
        if ends.batch is not None and len(values) < ends.batch:
            values = torch.cat([values, values[-1:].expand(ends.batch - len(values), *values.shape[1:])])
        return np.ascontiguousarray(values.numpy(), dtype=ends.dtype)

    def _session(self, threads: int) -> Any:
        runtime = _package("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.use_deterministic_compute = True
        options.log_severity_level = 4
        try:
            return runtime.InferenceSession(str(self.path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the package has an error of its own for everything
            raise DataError(f"{self.path} cannot be run by onnxruntime ({in_brief(error)})") from None


_DTYPES = {1: torch.float32, 10: torch.float16, 11: torch.float64, 16: torch.bfloat16}
"""Floating types by their numbers in the format."""


def _in_fixed_batches(answer: Any, classes: int, size: int) -> Voice:
    """For a graph that takes so many inputs at a time and no other number; the last batch is filled up."""

    def voice(raw: Raw) -> Tensor:
        if not len(raw):
            return torch.empty(0, classes)
        return torch.cat([answer(rows_of(raw, slice(at, at + size))) for at in range(0, len(raw), size)])

    return voice


def _package(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        raise MissingExtraError("reading ONNX", "export") from None


def _read(path: Path) -> Any:
    """The graph without its external data, which must lie beside it."""
    onnx = _package("onnx")
    check_is_file(path)
    if path.stat().st_size > LARGEST:
        raise DataError(f"{path} is larger than 2 GB, which no ONNX file is; keep its tensors in files beside it")
    try:
        graph = onnx.load_model_from_string(path.read_bytes())
    except Exception as error:  # of protobuf
        raise DataError(f"{path} is no ONNX file ({in_brief(error)}); fetch it again") from None
    if not graph.graph.node:
        raise DataError(f"{path} holds no ONNX graph; fetch it again")
    for place in _beside(graph, path):
        check_is_file(place)
    return graph


def _beside(graph: Any, path: Path) -> list[Path]:
    """The files in which its tensors lie, if not in it."""
    names = set()
    for tensor in _tensors(graph.graph):
        for entry in tensor.external_data:
            if entry.key == "location":
                names.add(entry.value)
    files = [beside(path.parent, name, str(path)) for name in sorted(names)]
    for file in files:
        if not file.exists():
            raise DataError(f"{path} keeps tensors in {file.name}, which does not lie beside it; fetch it")
    return files


def _tensors(graph: Any) -> Iterator[Any]:
    """All constants of a graph, and of the graphs inside its nodes."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("g"):
                yield from _tensors(attribute.g)
            for inner in attribute.graphs:
                yield from _tensors(inner)


def _ends(session: Any, graph: Any, path: Path, gives: Gives | None) -> Ends:
    given = session.get_inputs()
    if len(given) != 1:
        names = ", ".join(one.name for one in given)
        raise DataError(f"{path} reads {len(given)} inputs ({shortened(names)}); only graphs with one can be asked")
    first = given[0]
    if first.type not in TYPES:
        what = "the numbers of tokens and not texts" if "int64" in first.type or "int32" in first.type else first.type
        raise DataError(f"{path} reads {what}, for which there is no preparation; give the model itself")
    sides = [size if isinstance(size, int) else None for size in first.shape]
    if sides and sides[0] is not None and not 1 <= sides[0] <= MOST_AT_ONCE:
        raise DataError(
            f"{path} reads {sides[0]} inputs at a time, and not 1 to {MOST_AT_ONCE}; export it with any number"
        )
    outputs = [one for one in session.get_outputs() if one.type in TYPES and len(one.shape) in (0, 2)]
    if not outputs:
        raise DataError(f"{path} gives no table of numbers, one row for each input")
    chosen = next((one for one in outputs if one.name == LOGITS), outputs[0])
    classes = chosen.shape[1] if len(chosen.shape) == 2 and isinstance(chosen.shape[1], int) else None
    maker = next((node.op_type for node in graph.graph.node if chosen.name in node.output), "")
    found: Gives = "probabilities" if maker == "Softmax" else "logits"
    channels_last = len(sides) == 4 and sides[1] not in CHANNELS and sides[3] in CHANNELS
    inner = [sides[3], sides[1], sides[2]] if channels_last else sides[1:]
    known = tuple(size for size in inner if size is not None)
    return Ends(
        input=first.name,
        dtype=TYPES[first.type],
        batch=sides[0] if sides else None,
        shape=known if len(known) == len(inner) else None,
        channels_last=channels_last,
        output=chosen.name,
        classes=classes,
        gives=gives or found,
    )


def _preparation(ends: Ends, said: Said, path: Path) -> Preparation:
    if said.shape is not None and ends.shape is not None and tuple(said.shape) != ends.shape:
        raise ConfigError(f"{path} reads inputs of {ends.shape}, and not of {tuple(said.shape)}")
    wanted = ends.shape or said.shape
    if wanted is not None and len(wanted) not in (1, 3):
        raise DataError(f"{path} reads inputs of shape {wanted}, which are neither images nor rows of numbers")
    if ends.dtype != np.uint8:
        return preparation_of(said, wanted)
    if said.normalise not in (None, RAW):
        raise ConfigError(f"{path} reads bytes and normalises them itself; leave normalise out")
    return preparation_of(replace(said, normalise=RAW), wanted)


def _doubts(ends: Ends, said: Gives | None, ours: bool) -> tuple[str, ...]:
    """What was decided by a look at the graph alone."""
    if ours or said is not None or ends.gives == "logits":
        return ()
    return (f"its output '{ends.output}' is that of a Softmax, so it is read as probabilities",)
