"""SWA: the average of stored iterates, a cyclic rate, statistics that belong to the average."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.experiment.assembly import build
from fedfuse.experiment.run import Experiment
from fedfuse.federation.events import EventLog
from fedfuse.methods import METHODS
from fedfuse.parts.fuse.distiller import DistillContext, Distiller
from fedfuse.parts.fuse.swa import Swa
from fedfuse.runtime.batch_norm import reestimate
from fedfuse.runtime.optimizers import Sgd
from tests.helpers import TinyNorm, make_bank, make_source, make_weights, played, tiny_config
from tests.parts.fuse.test_distiller import lessons_of

BANK = make_bank(norm=TinyNorm())
START = make_weights(BANK, "norm", 1)
SOURCE = make_source(40)


def distil(swa, steps, seen=None):
    student = BANK.lend("norm", START)
    batches = lessons_of(steps)
    if seen is not None:
        plain = batches

        def spy(i):
            seen.append(Weights.of(student))
            return plain[i]()

        batches = [lambda i=i: spy(i) for i in range(steps)]
    distiller = Distiller(optimizer=Sgd(learning_rate=0.2, momentum=0.5), schedule="constant", keep="last", swa=swa)
    distiller.distil(student, batches, DistillContext(SOURCE, None, Key(0), lambda *_: None))
    return Weights.of(student)


def test_the_result_is_the_mean_of_the_stored_iterates():
    seen: list[Weights] = []
    result = distil(Swa(collect_after=4, cycle=3), 15, seen)
    after = {step: seen[step].parameters.double() for step in range(1, 15)}  # before batch i = after i steps
    last = distil(None, 15)
    rate = Swa(collect_after=4, cycle=3)
    collected = [step for step in range(1, 16) if rate.collects(step)]
    assert collected == [6, 9, 12, 15]
    # The last iterate is seen by stopping the same run there without averaging what came before.
    final = distil(Swa(collect_after=14, cycle=3), 15)
    expected = (after[6] + after[9] + after[12] + final.parameters.double()) / 4
    torch.testing.assert_close(result.parameters.double(), expected, rtol=1e-5, atol=1e-6)
    assert not torch.equal(result.parameters, last.parameters)


def test_statistics_are_estimated_for_the_average():
    result = distil(Swa(collect_after=0, cycle=2), 8)
    model = make_bank(norm=TinyNorm()).lend("norm", result)
    reestimate(model, SOURCE)
    assert torch.equal(Weights.of(model).buffers, result.buffers)


def test_nothing_collected_leaves_the_last_student():
    assert torch.equal(distil(Swa(collect_after=100, cycle=5, lowest=1.0), 6).flat, distil(None, 6).flat)


def test_the_rate_goes_from_1_to_the_lowest_in_every_cycle():
    swa = Swa(cycle=25, lowest=0.4)
    rates = [1e-3 * swa.rate_fraction(step) for step in range(50)]
    assert rates[0] == rates[25] == pytest.approx(1e-3)
    assert rates[24] == rates[49] == pytest.approx(4e-4)
    assert all(a > b for a, b in pairwise(rates[:25]))
    assert swa.collects(275)
    assert not swa.collects(250)


def test_the_papers_schedule_collects_53_models():
    """10,000 inputs, batch 128, 20 epochs."""
    distiller = Distiller(epochs=20, keep="last", swa=Swa())
    steps = distiller.budget(10_000)
    assert steps == 1580
    assert sum(Swa().collects(step) for step in range(1, steps + 1)) == 53


@pytest.mark.parametrize("collect_after", [0, 1, 24, 25, 26, 250])
@pytest.mark.parametrize("cycle", [1, 7, 25])
def test_collections_are_counted_in_advance(collect_after, cycle):
    swa = Swa(collect_after=collect_after, cycle=cycle)
    for steps in range(300):
        assert swa.collections(steps) == sum(swa.collects(step) for step in range(1, steps + 1))


def test_a_run_says_how_many_students_it_averaged():
    fuse = {"distiller": {"epochs": 4, "batch_size": 8, "swa": {"collect_after": 3, "cycle": 2}}}
    config = tiny_config({"name": "fedbe", "fuse": fuse})
    federation = build(config, EventLog()).federation
    (record,) = played(federation, 1).server.history
    steps = int(record.prototypes["mlp"].fusion["steps"])
    assert record.prototypes["mlp"].fusion["collected"] == steps // 2 - 1 > 0


FEW = {"steps": 99, "keep": "last", "swa": {}}


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ({"name": "fedbe"}, "method.fuse.distiller"),
        ({"name": "feded-w0", "fuse": {"distiller": {"swa": {}}}}, "method.fuse.distiller"),
        ({"name": "true-labels", "fuse": {"distiller": FEW}}, "method.fuse.distiller"),
        ({"name": "fedavg", "start": {"kind": "labelled", "distiller": FEW}}, "method.start.distiller"),
    ],
    ids=["fedbe", "feded", "true-labels", "start"],
)
def test_an_average_of_nothing_is_refused_before_round_1(method, key):
    with pytest.raises(ConfigError, match=rf"{key}\.swa would collect no student: .* lower {key}\.swa"):
        build(tiny_config(method), EventLog())


@pytest.mark.parametrize("preset", ["digits", "phones"])
def test_presets_of_embedded_data_can_be_built_for_every_method(preset):
    for method in METHODS:
        if preset == "phones" and not METHODS[method].recipe.fuse.trains_without_clients("server"):
            continue
        if METHODS[method].recipe.merge.changes_widths or method == "fedgkd-plus":
            continue  # these want other networks than the preset's, and say so
        build(Experiment.load(preset, method=method).config, EventLog())
