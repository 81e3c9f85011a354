"""What all members say about all inputs, asked one member at a time and kept in files, so that nothing is asked twice.

Inputs are asked about in chunks, each of which is a file that is named after everything that decides what is in it: the
member, the inputs, how they are cut into batches, the version of torch. A fusion that was killed goes on with the next
chunk; damaged files are asked for again. Bits depend neither on that nor on the number of processes.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import pickle
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path

import torch
from torch import Tensor

from fedfuse.core.errors import DataError, FedfuseError
from fedfuse.core.slices import slices, steady_slices
from fedfuse.core.tensor_files import DamagedError, read_safetensors, write_safetensors
from fedfuse.engines.beginnings import check_may_have_others, deaf_to_interrupts, end_with_parent, without_script
from fedfuse.fusing.classes import Classes
from fedfuse.fusing.members import Member, Voice
from fedfuse.fusing.raw import Raw, rows_of
from fedfuse.parts.voting import FittedVoting, Heard
from fedfuse.runtime.pool import Progress, silence

CHUNK, BATCH = 1024, 64
VERSION = 1
"""Of what is asked and how."""
LOGITS = "logits"
CPU = torch.device("cpu")
LOOK_EVERY = 0.2
"""Seconds between two looks at what other processes have done."""


@dataclass(frozen=True)
class Chunk:
    """Some inputs in their batches, and where what a member says about them is kept."""

    path: Path
    rows: slice


Missing = tuple[Member, list[Chunk]]
"""A member, and what it was not asked about yet."""


@dataclass(frozen=True)
class Answers:
    """What members say about all inputs; read from the files whenever it is asked for."""

    members: tuple[Member, ...]
    classes: Classes
    chunks: tuple[tuple[Chunk, ...], ...]
    """Of each member."""

    def __len__(self) -> int:
        return self.chunks[0][-1].rows.stop if self.chunks[0] else 0

    def of(self, member: int, rows: Tensor | None = None) -> Tensor:
        """A member's logits over the common classes that it knows, for all inputs or for some."""
        said = torch.cat([_read(chunk, self.members[member]) for chunk in self.chunks[member]])
        return self.classes.heard(member, said if rows is None else said[rows])

    def heard(self, rows: Tensor | None = None, labels: Tensor | None = None) -> Heard:
        """What a vote can be fitted to and compared on: all inputs, or some, with their labels if there are any."""
        said = [self.of(member, rows) for member in range(len(self.members))]
        return Heard(said, self.classes.sets, labels)

    def log_probabilities(self, voting: FittedVoting) -> Tensor:
        """What the ensemble says about all inputs, a chunk at a time."""
        return torch.cat(
            [
                voting.log_probabilities(
                    [
                        self.classes.heard(place, _read(chunk, member))
                        for place, (member, chunk) in enumerate(zip(self.members, chunks, strict=True))
                    ]
                )
                for chunks in zip(*self.chunks, strict=True)
            ]
        )


def ask(
    members: Sequence[Member],
    raw: Raw,
    classes: Classes,
    folder: Path,
    progress: Progress = silence,
    device: torch.device = CPU,
    workers: int = 1,
) -> Answers:
    """Ask whoever was not asked yet; the folder is made if need be, and may be shared by several fusions.

    ``workers`` is a number of processes in which members are asked, each with one member in memory.
    """
    if not len(raw):
        raise DataError("there are no inputs to ask the members about")
    digests = [(_digest(rows_of(raw, rows)), rows) for rows in slices(len(raw), CHUNK)]
    chunks = tuple(
        tuple(Chunk(folder / f"{_key(member, digest, device)}.safetensors", rows) for digest, rows in digests)
        for member in members
    )
    missing = [(m, [chunk for chunk in own if not _is_there(chunk, m)]) for m, own in zip(members, chunks, strict=True)]
    total, left = sum(map(len, chunks)), sum(len(own) for _, own in missing)
    progress("teachers", total - left, total)
    elsewhere = [(m, own) for m, own in missing if workers > 1 and left > 1 and own and _can_travel(m)]
    for count in _asked_elsewhere(elsewhere, raw, device, workers):
        progress("teachers", total - left + count, total)
    left -= sum(len(own) for _, own in elsewhere)
    for member, own in missing:
        for _ in _asked_here(member, [] if (member, own) in elsewhere else own, raw, device):
            left -= 1
            progress("teachers", total - left, total)
    return Answers(tuple(members), classes, chunks)


def _asked_here(member: Member, missing: Sequence[Chunk], raw: Raw, device: torch.device) -> Iterator[Chunk]:
    """Ask a member in this process, chunk by chunk."""
    if not missing:
        return
    with _one_thread(), torch.inference_mode(), member.speaking(device) as voice:
        for chunk in missing:
            _ask_about(chunk, rows_of(raw, chunk.rows), member, voice)
            yield chunk


def _asked_elsewhere(missing: Sequence[Missing], raw: Raw, device: torch.device, workers: int) -> Iterator[int]:
    """Ask members in other processes, of which each takes every so-manieth chunk; how many chunks are done."""
    if not missing:
        return
    check_may_have_others(f"workers = {workers}")
    shares = [(member, own[start::workers]) for member, own in missing for start in range(min(workers, len(own)))]
    paths = [chunk.path for _, own in missing for chunk in own]
    context = multiprocessing.get_context("spawn")
    given_up = context.Event()
    with ProcessPoolExecutor(min(workers, len(shares)), context, _begin, (given_up,)) as pool:
        with deaf_to_interrupts(), without_script():
            jobs = [pool.submit(_ask_share, m, [(c, rows_of(raw, c.rows)) for c in own], device) for m, own in shares]
        unfinished, done = set(jobs), 0
        try:
            while unfinished:
                finished, unfinished = wait(unfinished, timeout=LOOK_EVERY, return_when=FIRST_COMPLETED)
                for job in finished:
                    job.result()
                before, done = done, sum(path.exists() for path in paths)
                if done > before:
                    yield done
        except BrokenProcessPool:
            raise FedfuseError(
                "a process that asked members was lost, perhaps for want of memory; what was answered is kept, so go "
                "on with fewer workers"
            ) from None
        finally:
            given_up.set()
            for job in unfinished:
                job.cancel()


_given_up: Event | None = None
"""In another process: whether nobody waits any more for what it does."""


def _begin(given_up: Event) -> None:
    """The first thing that another process does."""
    global _given_up
    _given_up = given_up
    threading.Thread(target=end_with_parent, daemon=True).start()


def _ask_share(member: Member, share: Sequence[tuple[Chunk, Raw]], device: torch.device) -> None:
    with _one_thread(), torch.inference_mode(), member.speaking(device) as voice:
        for chunk, raw in share:
            if _given_up is not None and _given_up.is_set():
                return
            _ask_about(chunk, raw, member, voice)


def _ask_about(chunk: Chunk, raw: Raw, member: Member, voice: Voice) -> None:
    about, batches = member.about, steady_slices(len(raw), BATCH)
    logits = torch.cat([_checked(voice(rows_of(raw, rows)), rows, member) for rows in batches])
    wrong = (~logits.isfinite()).any(dim=1).nonzero()
    if len(wrong):
        raise DataError(
            f"{about.name} does not answer with finite numbers (input {chunk.rows.start + int(wrong[0])} and "
            f"{len(wrong) - 1} others of {len(logits)}); mend it or leave it out"
        )
    write_safetensors(chunk.path, {LOGITS: logits}, {"member": about.name, "sha256": about.sha256})


def _checked(said: Tensor, rows: slice, member: Member) -> Tensor:
    expected = (rows.stop - rows.start, member.about.classes)
    if tuple(said.shape) != expected:
        raise DataError(
            f"{member.about.name} answers {expected[0]} inputs with a table of {'x'.join(map(str, said.shape))}, and "
            f"not with a row for each and a column for each of its {expected[1]} classes; leave it out"
        )
    return said.detach().to("cpu", torch.float32)


def _is_there(chunk: Chunk, member: Member) -> bool:
    """Whether the file is there and sound; one that is not is asked for again."""
    try:
        _read(chunk, member)
    except (OSError, DamagedError):
        return False
    return True


def _read(chunk: Chunk, member: Member) -> Tensor:
    tensors, _ = read_safetensors(chunk.path)
    said = tensors.get(LOGITS)
    expected = (chunk.rows.stop - chunk.rows.start, member.about.classes)
    if said is None or said.dtype != torch.float32 or tuple(said.shape) != expected:
        raise DamagedError("it holds something else")
    return said


def _key(member: Member, inputs: str, device: torch.device) -> str:
    about = member.about
    parts = (VERSION, BATCH, about.sha256, about.classes, inputs, device.type, torch.__version__)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _digest(raw: Raw) -> str:
    """Of the inputs themselves."""
    digest = hashlib.sha256()
    if isinstance(raw, Tensor):
        digest.update(repr((raw.dtype, tuple(raw.shape))).encode())
        digest.update(raw.contiguous().numpy().data)
    else:
        for text in raw:
            content = text.encode("utf-8", "surrogatepass")
            digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def _can_travel(member: Member) -> bool:
    """Whether another process can be given the member; what a script or a notebook defines is not known there."""
    try:
        return b"__main__" not in pickle.dumps(member)
    except Exception:
        return False


@contextmanager
def _one_thread() -> Iterator[None]:
    """How many threads there are can change the last bit."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
