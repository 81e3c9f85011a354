"""Answers while students learn: the same bits in any chunks, each asked for once, and only those that are needed."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace

import pytest
import torch

from fedfuse.core.randomness import Key
from fedfuse.core.weights import mean
from fedfuse.data import Transform
from fedfuse.data.dataset import Normalisation
from fedfuse.models import Mlp
from fedfuse.parts.fuse import Distiller, EnsembleDistillation, answers
from fedfuse.parts.fuse.answers import AnswerTable, in_order_of_need
from fedfuse.parts.fuse.batches import steps_of
from fedfuse.parts.teachers import Ensemble, Question, Teacher
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.evaluate import Score
from fedfuse.runtime.optimizers import Sgd
from fedfuse.runtime.pool import Pool
from fedfuse.runtime.source import Source
from tests.helpers import CPU, make_source, make_update, make_view

VIEWS = ["fixed", "student", "augmented"]
DISTILLER = Distiller(steps=12, batch_size=10, optimizer=Sgd(learning_rate=0.3), evaluate_every=2)
BANK = ModelBank({"a": Mlp(hidden=(8,)), "b": Mlp(hidden=(12,))}, (1, 4, 4), 4, CPU)
TEACHERS = [make_update(BANK.initial(p, Key(i)), client=i, prototype=p) for i, p in enumerate("aab")]
INPUTS = 60


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(answers, "CHUNK", 20)


def images():
    raw = torch.randint(0, 256, (INPUTS, 1, 4, 4), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    return Source("images", raw, Transform(Normalisation((0.5,), (0.5,)), (1, 4, 4), crop_padding=1, flip=True), CPU)


def fused(views, prototypes="ab", distiller=DISTILLER, **view):
    fuse = EnsembleDistillation(views=views, distiller=distiller, absent="keep")
    merged = {p: mean([t.weights for t in TEACHERS if t.prototype == p], [1.0] * "aab".count(p)) for p in prototypes}
    surroundings = {"source": images(), **view}
    return fuse.fuse(make_view(BANK, {p: BANK.initial(p, Key(9)) for p in "ab"}, **surroundings), merged, TEACHERS)


def bits(result):
    return {prototype: weights.sha256() for prototype, weights in result.weights.items()}


class Counting(Pool):
    """Counts what teachers are asked about, by what they see and who they are."""

    def __init__(self):
        self.inputs, self.jobs = Counter(), 0

    def map(self, what, work, items):
        def watched(job):
            question, teacher = job
            self.jobs += 1
            for batch in question.batches:
                for row in batch():
                    self.inputs[teacher.weights.sha256(), row.numpy().tobytes()] += 1
            return work((question, teacher))

        return super().map(what, watched, items)


@pytest.mark.parametrize("views", VIEWS)
@pytest.mark.parametrize("prototypes", ["a", "ab"])
def test_chunks_do_not_change_bits(views, prototypes, monkeypatch):
    chunks = bits(fused(views, prototypes))
    monkeypatch.setattr(answers, "CHUNK", 10**6)
    assert bits(fused(views, prototypes)) == chunks


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("pool", [Pool(), pytest.param(None, id="elsewhere")])
def test_several_students_have_the_same_answers_kept_or_asked_anew(kept, pool, monkeypatch):
    expected = {p: bits(fused("augmented", p))[p] for p in "ab"}
    monkeypatch.setattr(answers, "KEPT", 2**28 if kept else 0)
    assert bits(fused("augmented", pool=pool or Elsewhere())) == expected


class Elsewhere(Pool):
    """Students learn from a copy of everything, as in other processes."""

    def run(self, what, work, progress):
        return super().run(what, pickle.loads(pickle.dumps(work)), progress)


@pytest.mark.parametrize("views", ["fixed", "student"])
def test_the_whole_table_travels(views):
    assert bits(fused(views, pool=Elsewhere())) == bits(fused(views))


@pytest.mark.parametrize("views", VIEWS)
def test_every_teacher_sees_every_input_once(views):
    """However many students and steps there are; a fresh view is an input of its own."""
    pool = Counting()
    fused(views, pool=pool)
    assert pool.inputs.total() == len(TEACHERS) * (120 if views == "augmented" else INPUTS)
    assert views == "augmented" or set(pool.inputs.values()) == {1}


@pytest.mark.parametrize("views", VIEWS)
def test_what_no_step_came_to_is_not_asked(views):
    """Patience ends after four steps, which need forty inputs."""

    class Falling:
        def score(self, _):
            return Score(0.0, 1.0)

    pool = Counting()
    impatient = DISTILLER.model_copy(update={"patience": 2, "evaluate_every": 2})
    assert fused(views, "a", impatient, pool=pool, validation=Falling()).report["a"]["steps"] == 4
    assert pool.jobs == 2 * len(TEACHERS)


def test_positions_come_in_the_order_in_which_steps_need_them(monkeypatch):
    source = make_source(50)
    plan = steps_of(source, 30, 7, Key(3))
    chunks = in_order_of_need(source, plan)
    assert [len(chunk) for chunk in chunks] == [20, 20, 10]
    epoch = torch.cat([where for where, _ in plan])[:50]
    assert torch.equal(torch.cat(chunks), epoch), "one permutation"
    monkeypatch.setattr(answers, "CHUNK", 50)
    (alone,) = in_order_of_need(source, plan)
    assert torch.equal(alone, torch.arange(50)), "as they lie"


def test_a_row_that_has_not_come_is_waited_for_and_no_other():
    taken = []

    def coming():
        for number in range(3):
            taken.append(number)
            yield torch.full((2, 3), float(number))

    table = AnswerTable(6, [torch.tensor([4, 1]), torch.tensor([0, 5]), torch.tensor([2, 3])], coming())
    assert table[torch.tensor([1])].tolist() == [[0.0] * 3]
    assert taken == [0]
    assert table[torch.tensor([5, 4])].tolist() == [[1.0] * 3, [0.0] * 3]
    assert taken == [0, 1]
    assert torch.equal(pickle.loads(pickle.dumps(table)), torch.tensor([1.0, 0, 2, 2, 0, 1])[:, None].expand(6, 3))


def test_no_process_is_given_all_teachers():
    """Weights are a job's own, however many chunks there are, so that an engine does not take them for common ones."""
    seen = []

    class Watching(Pool):
        def map(self, what, work, items):
            seen.extend(items)
            return super().map(what, work, items)

    fused("fixed", "a", pool=Watching())
    flats = [id(teacher.weights.flat) for _, teacher in seen]
    assert len(flats) == len(set(flats)) == 3 * len(TEACHERS)


def test_views_are_not_held_longer_than_their_chunk():
    ensemble = Ensemble(BANK, [Teacher("a", TEACHERS[0].weights)], "mean_logits")
    batches = EnsembleDistillation(views="augmented", distiller=DISTILLER)._batches(
        make_view(BANK, source=images()), images(), ensemble
    )
    fresh = batches[0].args[0]
    for batch in batches:
        batch()
        assert sum(step._made is not None for step in fresh.steps) < 2
        assert len(fresh._said) < 2


def test_questions_are_small_parcels():
    """A question names its inputs and does not carry them."""
    source = replace(images(), raw=torch.zeros(5000, 1, 4, 4, dtype=torch.uint8))
    plan = steps_of(source, 2, 10, Key(0))
    steps = EnsembleDistillation(views="augmented", distiller=DISTILLER)._fresh(source, plan)
    steps[0].asked()
    question = Question(BANK, [step.asked for step in steps], "mean_logits")
    there = pickle.loads(pickle.dumps(question))
    assert all(batch.__self__._made is None for batch in there.batches)
    assert torch.equal(there.batches[0](), steps[0].shown())
