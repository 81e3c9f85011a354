"""target auto: the ensemble that is best on validation examples teaches, as if the file had named it."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.weights import Weights
from fedfuse.experiment.assembly import build
from fedfuse.experiment.config import validate
from fedfuse.federation.events import EventLog
from fedfuse.models import Mlp
from fedfuse.parts.fuse import Distiller, EnsembleDistillation, EnsembleOnly
from fedfuse.parts.fuse.auto_target import chosen
from fedfuse.parts.scores import ByEntropy, ByLabels
from fedfuse.parts.teachers import Ensemble, Teacher
from fedfuse.runtime.optimizers import Sgd
from fedfuse.runtime.pool import Pool
from tests.helpers import (
    CLASSES,
    FEATURES,
    make_bank,
    make_evaluator,
    make_examples,
    make_federation,
    make_recipe,
    make_source,
    make_update,
    make_view,
    make_weights,
    played,
    tiny_config,
    tiny_method,
)
from tests.parts.teachers.test_ensemble import Backwards

DISTILLER = Distiller(steps=6, batch_size=5, optimizer=Sgd(learning_rate=0.3), evaluate_every=2)
AUTO = EnsembleDistillation(target="auto", distiller=DISTILLER)


def knowing(bank, loud, noise, seed):
    """A linear teacher that knows the task more or less, and says so loudly or not."""
    matrix = torch.zeros(CLASSES, FEATURES)
    matrix[:, :CLASSES] = torch.eye(CLASSES)
    matrix += noise * torch.randn(matrix.shape, generator=torch.Generator().manual_seed(seed))
    layout = bank.layout("flat")
    return Weights(torch.cat([(loud * matrix).reshape(-1), torch.zeros(CLASSES)]), layout)


def uneven():
    """Two quiet teachers that know something, and one that shouts nonsense."""
    bank = make_bank(flat=Mlp(hidden=()))
    said = [knowing(bank, 1, 0.2, 1), knowing(bank, 1, 0.2, 2), knowing(bank, 60, 5, 3)]
    return bank, [make_update(weights, client=k, prototype="flat") for k, weights in enumerate(said)]


def view_of(bank, **more):
    return make_view(bank, {"flat": make_weights(bank, "flat", 9)}, **{"source": make_source(60), **more})


def test_validation_makes_a_shouting_teacher_quiet():
    bank, updates = uneven()
    evaluator = make_evaluator(make_examples(150, seed=5))
    view = view_of(bank, validation=evaluator)
    auto = EnsembleOnly(target="auto").ensemble(view, {}, updates)
    plain = EnsembleOnly().ensemble(view, {}, updates)
    test = make_evaluator(make_examples(400, seed=6))
    assert test.score_logits(auto).accuracy > test.score_logits(plain).accuracy + 0.1
    fused = EnsembleOnly(target="auto").fuse(view, {}, updates)
    assert "150 labelled examples" in fused.ensemble
    assert not EnsembleOnly().fuse(view, {}, updates).ensemble


def test_without_validation_the_choice_is_by_agreement():
    bank, updates = uneven()
    auto = EnsembleOnly(target="auto")
    assert "probability with the 3 members" in auto.fuse(view_of(bank), {}, updates).ensemble
    test = make_evaluator(make_examples(400, seed=6))
    heard = test.score_logits(auto.ensemble(view_of(bank), {}, updates))
    assert heard.accuracy >= test.score_logits(EnsembleOnly().ensemble(view_of(bank), {}, updates)).accuracy


def test_what_is_chosen_teaches_as_if_the_file_had_named_it():
    """Teachers that agree leave nothing to gain, so that the fusion's usual target stays."""
    bank = make_bank(flat=Mlp(hidden=()))
    updates = [make_update(knowing(bank, 1, 0.1, k), client=k, prototype="flat") for k in range(3)]
    merged = {"flat": make_weights(bank, "flat", 4)}
    auto, named = AUTO, EnsembleDistillation(target="mean_logits", distiller=DISTILLER)
    fused = auto.fuse(view_of(bank), merged, updates)
    assert fused.ensemble.startswith("mean of logits: ")
    assert fused.weights["flat"].equals(named.fuse(view_of(bank), merged, updates).weights["flat"])


def test_one_teacher_leaves_nothing_to_choose():
    bank, updates = uneven()
    merged = {"flat": updates[0].weights}
    fused = AUTO.fuse(view_of(bank), merged, updates[:1])
    assert fused.weights["flat"].equals(updates[0].weights), "as Algorithm 1 leaves the model of the only client"
    assert not fused.ensemble


def test_loudness_multiplies_logits_wherever_a_teacher_is_asked():
    bank, updates = uneven()
    inputs = make_examples(8).inputs
    weights = updates[0].weights
    loud = Ensemble(bank, [Teacher("flat", weights, loudness=3.0)], "mean_logits").log_probabilities(inputs)
    tripled = Ensemble(bank, [Teacher("flat", Weights(3 * weights.flat, weights.layout))], "mean_logits")
    assert torch.allclose(loud, tripled.log_probabilities(inputs), atol=1e-5)


def test_scores_count_as_they_do_without_it():
    bank, updates = uneven()
    view = view_of(bank, validation=make_evaluator(make_examples(60, seed=5)), scores=ByEntropy())
    ensemble = AUTO._ensemble(view, {}, updates)
    assert ensemble.weigh is not None
    assert ensemble.log_probabilities(make_examples(5).inputs).isfinite().all()


def test_scores_of_public_inputs_are_compared_on_public_inputs():
    bank, updates = uneven()
    tables = [torch.rand(60, CLASSES, generator=torch.Generator().manual_seed(k)) for k in range(3)]
    teachers = [Teacher("flat", u.weights, table) for u, table in zip(updates, tables, strict=True)]
    view = view_of(bank, validation=make_evaluator(make_examples(60, seed=5)), scores=ByLabels())
    assert "members" in chosen(view, Ensemble(bank, teachers, "mean_probabilities")).why


def test_every_round_says_what_it_chose_and_gives_the_same_bits_again():
    recipe = make_recipe(fuse=AUTO)
    one, other = (played(make_federation(recipe=recipe, validation=12, source=30), 2) for _ in range(2))
    assert all("labelled examples" in record.ensemble_choice for record in one.server.history)
    assert [r.ensemble_choice for r in one.server.history] == [r.ensemble_choice for r in other.server.history]
    assert all(one.server.weights[p].equals(other.server.weights[p]) for p in one.server.weights)
    record = one.server.history[0]
    assert type(record).from_json(record.to_json()).ensemble_choice == record.ensemble_choice
    plain = played(make_federation(recipe=make_recipe(fuse=EnsembleDistillation(distiller=DISTILLER)), source=30), 1)
    assert "ensemble_choice" not in plain.server.history[0].to_json()


@pytest.mark.parametrize("has_validation", [True, False])
def test_who_answers_and_when_never_changes_the_choice(has_validation):
    bank, updates = uneven()
    validation = make_evaluator(make_examples(60, seed=5)) if has_validation else None
    merged = {"flat": make_weights(bank, "flat", 4)}
    here, elsewhere = (
        AUTO.fuse(view_of(bank, validation=validation, pool=pool), merged, updates) for pool in (Pool(), Backwards())
    )
    assert here.ensemble == elsewhere.ensemble
    assert here.weights["flat"].equals(elsewhere.weights["flat"])


def test_it_needs_something_to_compare_on():
    method = tiny_method("1-ensemble", fuse={"kind": "ensemble_only", "target": "auto"})
    config = tiny_config(method, data={"name": "blobs", "examples": 150, "validation": 0})
    with pytest.raises(ConfigError, match=r"^method\.fuse\.target auto compares ensembles on validation examples or"):
        build(config, EventLog())
    with pytest.raises(ConfigError, match="target"):
        validate({**config.model_dump(mode="json"), "method": {"name": "feddf", "fuse": {"target": "automatic"}}})
