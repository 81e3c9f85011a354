"""A worker process and the handle by which the run holds it: packages with jobs go in, packages with results come out.

The process is spawned, never forked. The clients' examples and all other tensors it is born with are shared memory, so
that many workers hold one dataset. It ends when it is told to, and at once when the process that started it is gone.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing import resource_tracker, spawn
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess, get_spawning_popen
from typing import Any

import numpy as np
import torch.multiprocessing
from torch import Tensor

from fedfuse.core.errors import FedfuseError
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

    def __init__(self, clients: Clients, lasting: Sequence[Tensor], imports_script: bool = True) -> None:
        self.clients = clients
        self.lasting = lasting
        self.imports_script = imports_script
        self._is_ready = False
        self._process: SpawnProcess | None = None
        self._birth: Any = None
        self._pipe: Connection | None = None
        self._round: SharedTensors | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self, timeout: float | None = None) -> None:
        """Start the process, unless it runs; ``ask`` waits until it is ready."""
        if self._process is not None:
            return
        context = torch.multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        given = (self.clients, self.lasting, theirs, _Birth(self))
        process = context.Process(target=_serve, args=given, daemon=True)
        try:
            with (
                _deaf_to_interrupts(),
                nullcontext() if self.imports_script else _without_script(),
                self._lost_after(_seconds_to_start(timeout)),
            ):
                process.start()
            self._process = process
        except RuntimeError as error:
            if "shm" in str(error):
                raise FedfuseError(
                    "the data does not fit into this machine's shared memory (/dev/shm), through which workers get it; "
                    "enlarge it (docker run --shm-size) or use engine.workers=1"
                ) from error
            raise
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
        """End the process; whoever waits for its answer, or for its start, finds it lost."""
        if hasattr(self._birth, "pid"):
            self._birth.kill()

    def end(self) -> int | None:
        """End the process and wait until it is gone; its exit code."""
        process, birth, pipe = self._process, self._birth, self._pipe
        self._process = self._birth = self._pipe = self._round = None
        self._is_ready = False
        if pipe is not None:
            pipe.close()  # the process notices, if it waits for a task
        if process is not None:
            process.join(0.2)
        if not hasattr(birth, "pid"):
            return None
        birth.kill()
        code: int | None = birth.wait()
        if process is not None:
            process.join()
        return code

    @contextmanager
    def _lost_after(self, seconds: float | None) -> Iterator[None]:
        """A process that ends in here, or takes longer than this, is lost."""
        late = threading.Event()
        try:
            with _deadline(seconds, self, late):
                yield
        except (EOFError, OSError) as error:
            code = self.end()
            how = _ended(code) if code is not None else f"could not be started ({error})"
            raise LostError(f"gave no answer in {seconds:g} s" if late.is_set() else how) from None


@dataclass(frozen=True)
class _Birth:
    """Shows a worker its process before that has read what it is born with: so it can be killed if it never does."""

    worker: Worker

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        self.worker._birth = get_spawning_popen()
        return type(None), ()


def _seconds_to_start(timeout: float | None) -> float | None:
    return None if timeout is None else max(timeout, START_SECONDS)


def _serve(clients: Clients, lasting: Sequence[Tensor], pipe: Connection, _birth: None) -> None:
    """The worker process: one job after another until the pipe is closed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    common, known = list[Bytes](), as_bytes(lasting)
    _send(pipe, Packed(READY, []))
    while True:
        try:
            packed = _receive(pipe)
        except (EOFError, OSError):
            return
        if packed.note == COMMON:
            common = list(packed.tensors)
        else:
            _send(pipe, answer(clients, packed, common, known))


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


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """What is started here never hears Ctrl-C, which a terminal sends to all: the parent alone decides what follows."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows has none
        yield
        return
    resource_tracker.ensure_running()  # its own start would lift the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_one_at_a_time = threading.Lock()


@contextmanager
def _without_script() -> Iterator[None]:
    """What is started here does not run the script that started it, which may have no guard against that."""
    with _one_at_a_time:
        prepare = spawn.get_preparation_data
        spawn.get_preparation_data = lambda name: {
            key: value for key, value in prepare(name).items() if not key.startswith("init_main_")
        }
        try:
            yield
        finally:
            spawn.get_preparation_data = prepare


def _end_with_parent() -> None:
    parent: Any = multiprocessing.parent_process()
    parent.join()
    os._exit(1)


def _ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was killed by {signal.Signals(-code).name}"
