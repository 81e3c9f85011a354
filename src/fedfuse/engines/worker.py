"""A worker process and the handle by which the run holds it: packages with jobs go in, packages with results come out.

The process is spawned, never forked. Whatever it is born with, the clients' examples above all, is in shared memory, so
that many workers hold one dataset, and so that nobody waits until a process that may never do so has read it. It ends
when it is told to, and at once when the process that started it is gone.
"""

from __future__ import annotations

import pickle
import signal
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

import numpy as np
import torch
import torch.multiprocessing
from torch import Tensor

from fedfuse.core.errors import FedfuseError
from fedfuse.engines.beginnings import deaf_to_interrupts, end_with_parent, without_script
from fedfuse.engines.jobs import Job
from fedfuse.engines.packing import Bytes, Packed, SharedTensors, as_bytes, pack, unpack
from fedfuse.federation.client import Clients
from fedfuse.runtime.pool import Progress, silence

COMMON, READY = b"", b"ready"
"""Notes of packages that hold no value: what the next jobs have in common, and a worker's first word."""
START_SECONDS = 30.0
"""What a start may take, however short the timeout of jobs is: it takes seconds, and more where much else is done."""


class LostError(Exception):
    """A worker ended before it answered; the text says how."""


class Worker:
    """One worker process, started when it is first needed, and again after it was lost."""

    def __init__(self, packed: bytes, lasting: Sequence[Tensor], imports_script: bool = True) -> None:
        self.packed = packed
        """The clients without their tensors, which are ``lasting``."""
        self.lasting = lasting
        self.imports_script = imports_script
        self._is_ready = False
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None
        self._round: SharedTensors | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process, unless it runs; ``ask`` waits until it is ready."""
        if self._process is not None:
            return
        context = torch.multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        try:
            [packed] = in_shared_memory([torch.frombuffer(bytearray(self.packed), dtype=torch.uint8)])
            process = context.Process(target=_serve, args=(packed, self.lasting, theirs), daemon=True)
            with deaf_to_interrupts(), nullcontext() if self.imports_script else without_script():
                process.start()
            self._process = process
        finally:
            theirs.close()

    def await_ready(self) -> None:
        """Wait for the process's first word."""
        assert self._pipe is not None
        if not self._is_ready:
            _receive(self._pipe)
            self._is_ready = True

    def ask(self, shared: SharedTensors, job: Job, timeout: float | None) -> Any:
        """Let the worker do one job; an error of the job's own is raised here as it was there."""
        assert self._pipe is not None
        with self._lost_after(_seconds_to_start(timeout)):
            self.await_ready()
        with self._lost_after(timeout):
            if self._round is not shared:
                _send(self._pipe, Packed(COMMON, shared.common()))
                self._round = shared
            _send(self._pipe, shared.packed(job))
            reply = unpack(_receive(self._pipe))
        if isinstance(reply, Exception):
            raise reply
        return reply

    def kill(self) -> None:
        """End the process; whoever waits for its answer, or for its first word, finds it lost."""
        if self._process is not None:
            self._process.kill()

    def end(self) -> int | None:
        """End the process and wait until it is gone; its exit code."""
        process, pipe, self._process, self._pipe, self._round = self._process, self._pipe, None, None, None
        self._is_ready = False
        if process is None:
            return None
        if pipe is not None:
            pipe.close()  # the process notices, if it waits for a task
        process.join(0.2)
        process.kill()
        process.join()
        return process.exitcode

    @contextmanager
    def _lost_after(self, seconds: float | None) -> Iterator[None]:
        """A process that ends in here, or takes longer than this, is lost."""
        late = threading.Event()
        try:
            with _deadline(seconds, self, late):
                yield
        except (EOFError, OSError):
            code = self.end()
            raise LostError(f"gave no answer in {seconds:g} s" if late.is_set() else _ended(code)) from None


def in_shared_memory(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """The same tensors, moved there now.

    A process's start would do it by itself, in whatever thread starts it, while another one may compute with memory
    that is gone by then.
    """
    try:
        for tensor in tensors:
            tensor.share_memory_()
    except RuntimeError as error:
        if "shm" not in str(error):
            raise
        raise FedfuseError(
            "the data does not fit into this machine's shared memory (/dev/shm), through which workers get it; enlarge "
            "it (docker run --shm-size) or use engine.workers=1"
        ) from error
    return tensors


def _seconds_to_start(timeout: float | None) -> float | None:
    return None if timeout is None else max(timeout, START_SECONDS)


def _serve(packed: Tensor, lasting: Sequence[Tensor], pipe: Connection) -> None:
    """The worker process: one job after another until the pipe is closed."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    common, known = list[Bytes](), as_bytes(lasting)
    clients: Clients = unpack(Packed(packed.numpy().tobytes(), []), lasting=known)
    _send(pipe, Packed(READY, []))
    while True:
        try:
            parcel = _receive(pipe)
        except (EOFError, OSError):
            return
        if parcel.note == COMMON:
            common = list(parcel.tensors)
        else:
            _send(pipe, answer(clients, parcel, common, known))


def answer(
    clients: Clients, packed: Packed, common: Sequence[Bytes], lasting: Sequence[Bytes], progress: Progress = silence
) -> Packed:
    """The packed result of a packed job, or the error that it ran into."""
    try:
        return pack(unpack(packed, common, lasting)(clients, progress))
    except Exception as error:
        return pack(_portable(error))


def _portable(error: Exception) -> Exception:
    """The error, or its sentence in another one if it cannot travel; with the traceback if nobody expected it."""
    if not isinstance(error, FedfuseError):
        error.add_note(traceback.format_exc())
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        kind = FedfuseError if isinstance(error, FedfuseError) else RuntimeError
        other = kind(str(error))
        for note in getattr(error, "__notes__", ()):
            other.add_note(note)
        return other
    return error


def _send(pipe: Connection, packed: Packed) -> None:
    pipe.send((packed.note, [len(tensor) for tensor in packed.tensors]))
    for tensor in packed.tensors:
        pipe.send_bytes(tensor.data)


def _receive(pipe: Connection) -> Packed:
    note, sizes = pipe.recv()
    tensors = [np.empty(size, dtype=np.uint8) for size in sizes]
    for tensor in tensors:
        pipe.recv_bytes_into(tensor.data)
    return Packed(note, tensors)


@contextmanager
def _deadline(seconds: float | None, worker: Worker, late: threading.Event) -> Iterator[None]:
    """Kill the worker when the time is over: a process that hangs is not polite enough for anything else."""
    if seconds is None:
        yield
        return

    def expire() -> None:
        late.set()
        worker.kill()

    timer = threading.Timer(seconds, expire)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _ended(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    return f"was killed by {signal.Signals(-code).name}"
