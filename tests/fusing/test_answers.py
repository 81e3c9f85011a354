"""Members are asked once: after a kill, with a damaged file and in other processes, the same bits."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.fusing import answers as module
from fedfuse.fusing.answers import ask
from fedfuse.fusing.classes import common_classes
from fedfuse.parts.voting import Voting
from tests.fusing.members_to_ask import FEATURES, Matrix

INPUTS = 2500


def inputs(count=INPUTS, seed=0):
    return torch.randn(count, FEATURES, generator=torch.Generator().manual_seed(seed))


def members():
    return [Matrix("a", seed=1), Matrix("b", ("z", "u"), 2, seed=2)]


def asked(tmp_path, some=None, raw=None, **more):
    some = some or members()
    return ask(some, inputs() if raw is None else raw, common_classes([m.about for m in some]), tmp_path, **more)


def test_every_member_says_what_it_would_say_alone(tmp_path):
    told = []
    said = asked(tmp_path, progress=lambda *step: told.append(step))
    assert torch.allclose(said.of(0), inputs() @ members()[0].matrix, atol=1e-5)
    assert torch.equal(said.of(1, torch.tensor([7, 3])), said.of(1)[[7, 3]])
    assert len(said) == INPUTS
    assert told == [("teachers", done, 6) for done in range(7)]


def test_nothing_is_asked_twice(tmp_path):
    first = asked(tmp_path)
    again = members()
    second = asked(tmp_path, again)
    assert [member.questions for member in again] == [0, 0]
    assert all(torch.equal(first.of(k), second.of(k)) for k in range(2))


def test_a_fusion_that_was_killed_goes_on(tmp_path):
    whole = asked(tmp_path / "whole")
    dying = members()
    dying[1].dies_after = 20  # in the second of three chunks, of 16 batches each
    with pytest.raises(KeyboardInterrupt):
        asked(tmp_path / "killed", dying)
    after = members()
    resumed = asked(tmp_path / "killed", after)
    assert after[0].questions == 0
    assert 0 < after[1].questions < 39
    assert all(torch.equal(whole.of(k), resumed.of(k)) for k in range(2))


def test_other_members_and_other_inputs_are_asked_anew(tmp_path):
    asked(tmp_path)
    other = [Matrix("a", seed=1), Matrix("b", ("z", "u"), 2, seed=3)]
    asked(tmp_path, other)
    assert other[0].questions == 0 < other[1].questions
    fresh = members()
    changed = inputs()
    changed[0, 0] += 1
    asked(tmp_path, fresh, changed)
    assert fresh[0].questions == 16, "the chunk that has changed, and no other"


def test_a_damaged_file_is_asked_for_again(tmp_path):
    whole = asked(tmp_path)
    path = whole.chunks[0][1].path
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    whole.chunks[1][0].path.write_bytes(b"")
    again = members()
    mended = asked(tmp_path, again)
    assert [member.questions for member in again] == [16, 16]
    assert torch.equal(mended.of(0), asked(tmp_path / "new").of(0))


def test_the_ensemble_chunk_by_chunk_is_the_ensemble(tmp_path):
    said = asked(tmp_path)
    fitted = Voting("mean_logits", "normalised", "confidence").fitted(said.heard())
    assert torch.equal(said.log_probabilities(fitted), fitted.log_probabilities(said.heard().said))


def test_texts_are_told_apart(tmp_path):
    class Counting(Matrix):
        def voice(self, raw):
            self.questions += 1
            return torch.tensor([[float(len(text)), 1.0, 0.0] for text in raw])

    said = asked(tmp_path, [Counting("a")], ["ab", "c"])
    assert said.of(0)[:, 0].tolist() == [2.0, 1.0]
    other = [Counting("a")]
    assert asked(tmp_path, other, ["a", "bc"]).of(0)[:, 0].tolist() == [1.0, 2.0]
    assert other[0].questions == 1


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_member_without_finite_answers_is_refused(tmp_path, wrong):
    raw = inputs(30)
    raw[11, 0] = wrong
    with pytest.raises(
        DataError, match=r"^a does not answer with finite numbers \(input 11 and 0 others of 30\); mend"
    ):
        asked(tmp_path, raw=raw)


def test_a_member_with_other_columns_than_classes_is_refused(tmp_path):
    member = Matrix("a")
    member.matrix = member.matrix[:, :2]
    with pytest.raises(
        DataError, match=r"^a answers 30 inputs with a table of 30x2, and not with a row for each and a"
    ):
        asked(tmp_path, [member], inputs(30))
    with pytest.raises(DataError, match=r"^there are no inputs"):
        asked(tmp_path, raw=inputs(0))


@pytest.mark.long
def test_other_processes_give_the_same_bits(tmp_path):
    here, there = asked(tmp_path / "here"), asked(tmp_path / "there", workers=2)
    assert all(torch.equal(here.of(k), there.of(k)) for k in range(2))


def test_a_worker_of_a_pool_which_may_have_no_processes_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    with pytest.raises(ConfigError, match=r"^workers = 2 needs processes of its own"):
        asked(tmp_path, workers=2)


def test_a_member_that_cannot_travel_is_asked_here(tmp_path):
    some = members()
    some[0].stays = lambda: None
    some[1].stays = lambda: None
    assert not module._can_travel(some[0])
    assert torch.equal(asked(tmp_path, some, workers=2).of(0), asked(tmp_path / "here").of(0))


def test_what_a_script_defines_is_asked_here(monkeypatch):
    member = members()[0]
    assert module._can_travel(member)
    member.named = type("Own", (), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "Own", member.named, raising=False)
    assert not module._can_travel(member)


UNGUARDED = """
import sys, torch
from pathlib import Path
from fedfuse.fusing.answers import ask
from fedfuse.fusing.classes import common_classes
from tests.fusing.members_to_ask import FEATURES, Matrix

print("begun")
members = [Matrix("a", seed=1), Matrix("b", seed=2)]
members[1].seconds = float(sys.argv[2])
inputs, classes = torch.zeros(2500, FEATURES), common_classes([m.about for m in members])
answers = ask(members, inputs, classes, Path(sys.argv[1]), workers=2)
print(len(answers))
"""


def script(tmp_path, seconds):
    path = tmp_path / "script.py"
    path.write_text(UNGUARDED)
    command = [sys.executable, str(path), str(tmp_path / "answers"), str(seconds)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )


@pytest.mark.long
def test_a_script_needs_no_guard_against_processes_that_it_starts(tmp_path):
    with script(tmp_path, 0) as running:
        assert running.communicate(timeout=300)[0].split() == ["begun", "2500"]


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc").exists(), reason="it looks for processes there")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_the_one_that_started_them(tmp_path, end):
    with script(tmp_path, 0.1) as running:
        wait_until(lambda: len(list((tmp_path / "answers").glob("*.safetensors"))) >= 3)  # all of the first member's
        mine = descendants(running.pid)
        assert len(mine) >= 2
        running.send_signal(end)
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in mine))
    assert len(list((tmp_path / "answers").glob("*.safetensors"))) < 6


def descendants(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [one for child in children for one in (child, *descendants(child))]


def wait_until(happens, seconds=120):
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)
